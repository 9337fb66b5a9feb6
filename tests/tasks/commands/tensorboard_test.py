"""PyPI's tensorboard reads the event files of a run, without a warning.

  tensorboard_test.py REALETC SOURCES

Trains the demo of glue with gates, stops it by SIGINT in the middle and resumes
it, and holds what EventAccumulator has against metrics.jsonl: every scalar at
every step once, the configuration, histograms of gates. Exit code 77: there is
no package tensorboard.
"""
import json
import logging
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import warnings

try:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of the package itself
        from tensorboard.backend.event_processing import event_accumulator
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

STEPS = 40


class Warned(logging.Handler):
    """Keeps the warnings and errors that the reader logs."""

    def __init__(self):
        super().__init__(logging.WARNING)
        self.messages = []

    def emit(self, record):
        self.messages.append(record.getMessage())


def train(program, sources, output, resume):
    command = [program, "train", "tasks/glue/configs/demo.json",
               "--output", output]
    for setting in ("residual_attention=gate", "train.tensorboard=true",
                    f"train.steps={STEPS}", "train.evaluate_every=10",
                    "train.threads=1", "train.watch_scores=5"):
        command += ["--set", setting]
    if resume:
        command.append("--resume")
    return subprocess.Popen(command, cwd=sources, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def lines_of(metrics):
    return [json.loads(line) for line in
            metrics.read_text(encoding="utf-8").splitlines()]


def stop_in_the_middle(process, metrics):
    """SIGINT once 12 lines are there; a run that was faster is at its end."""
    deadline = time.monotonic() + 600
    while process.poll() is None and time.monotonic() < deadline:
        if metrics.exists() and metrics.read_bytes().count(b"\n") >= 12:
            process.send_signal(signal.SIGINT)
            break
        time.sleep(0.01)
    _, err = process.communicate(timeout=600)
    assert process.returncode in (0, 75), err
    print("stopped" if process.returncode == 75 else "was at its end already")


def numbers_of(prefix, value, found):
    """Adds each number in a value by the tag that it should have."""
    if isinstance(value, bool):
        return
    if isinstance(value, (int, float)):
        found[prefix] = value
    elif isinstance(value, dict):
        for name, part in value.items():
            numbers_of(f"{prefix}/{name}", part, found)
    elif isinstance(value, list):
        for index, part in enumerate(value):
            numbers_of(f"{prefix}/{index}", part, found)


def expected_scalars(lines):
    expected = {}
    for line in lines:
        found = {}
        for field, value in line.items():
            if field == "step":
                continue
            if "evaluation" not in line:
                numbers_of(f"train/{field}", value, found)
            elif field == "evaluation":
                numbers_of("evaluation", value, found)
            else:
                numbers_of(f"evaluated/{field}", value, found)
        for tag, value in found.items():
            expected.setdefault(tag, []).append((line["step"], value))
    return expected


def check(folder, lines):
    warned = Warned()
    for name in (None, "tensorboard"):
        logging.getLogger(name).addHandler(warned)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        reader = event_accumulator.EventAccumulator(
            str(folder), size_guidance={event_accumulator.SCALARS: 0,
                                        event_accumulator.TENSORS: 0,
                                        event_accumulator.HISTOGRAMS: 0})
        reader.Reload()
        tags = reader.Tags()
    ours = [str(one.message) for one in raised
            if not issubclass(one.category, DeprecationWarning)]
    assert not ours and not warned.messages, (ours, warned.messages)

    expected = expected_scalars(lines)
    assert set(tags["scalars"]) == set(expected), \
        set(tags["scalars"]) ^ set(expected)
    points = 0
    for tag, values in expected.items():
        found = [(event.step, event.value) for event in reader.Scalars(tag)]
        assert [step for step, _ in found] == [step for step, _ in values], tag
        for (_, value), (_, wanted) in zip(found, values):
            assert abs(value - wanted) <= 1e-6 * abs(wanted), (tag, value)
        points += len(found)

    text = reader.Tensors("configuration")
    assert len(text) == 1
    configuration = text[0].tensor_proto.string_val[0].decode()
    assert json.loads(configuration)["train"]["tensorboard"] is True

    gates = reader.Histograms("train/gates")
    assert [event.step for event in gates] == list(range(1, STEPS + 1))
    mean = gates[-1].histogram_value.sum / gates[-1].histogram_value.num
    wanted = [line["gate_mean"] for line in lines if "gate_mean" in line][-1]
    assert abs(mean - wanted) <= 1e-6 * abs(wanted) + 1e-9, (mean, wanted)
    print(f"{points} points of {len(expected)} scalars, "
          f"{len(gates)} histograms, no warning")


def main():
    program, sources = sys.argv[1:]
    with tempfile.TemporaryDirectory() as temporary:
        seed = pathlib.Path(temporary) / "run" / "seed-1"
        metrics = seed / "metrics.jsonl"
        stop_in_the_middle(
            train(program, sources, str(seed.parent), False), metrics)
        process = train(program, sources, str(seed.parent), True)
        _, err = process.communicate(timeout=600)
        assert process.returncode == 0, err
        lines = lines_of(metrics)
        assert len([line for line in lines if "loss" in line]) == STEPS
        check(seed / "tensorboard", lines)


if __name__ == "__main__":
    main()
