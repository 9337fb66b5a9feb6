"""PyPI's tensorboard reads the event files of runs as they should be shown.

  tensorboard_test.py REALETC SOURCES

Trains the demo of glue with gates, ends it between two checkpoints by SIGINT
and, in another run, by SIGKILL, and resumes it. Holds what EventAccumulator has,
and that of TensorBoard's server, against metrics.jsonl: every scalar at every
step once, the configuration, histograms of gates. Of the run that was killed
both forget the updates that were made again, and say so; there is no other
warning. Exit code 77: there is no package tensorboard.
"""
import json
import logging
import os
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
        from tensorboard.backend.event_processing import \
            plugin_event_accumulator
        from tensorboard.util import tensor_util
except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)

STEPS = 40
EVALUATE_EVERY = 10


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
                    f"train.steps={STEPS}",
                    f"train.evaluate_every={EVALUATE_EVERY}",
                    "train.threads=1", "train.watch_scores=5"):
        command += ["--set", setting]
    if resume:
        command.append("--resume")
    return subprocess.Popen(command, cwd=sources, stdout=subprocess.DEVNULL,
                            stderr=subprocess.PIPE, text=True)


def lines_of(metrics):
    return [json.loads(line) for line in
            metrics.read_text(encoding="utf-8").splitlines()]


def end_in_the_middle(process, metrics, ending):
    """Sends a signal where updates were made since the last checkpoint."""
    deadline = time.monotonic() + 600
    is_sent = False
    while not is_sent and process.poll() is None \
            and time.monotonic() < deadline:
        # Holds it, so that it does not come to the next checkpoint meanwhile.
        process.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, process.pid,
                  os.WSTOPPED | os.WEXITED | os.WNOWAIT)
        lines = lines_of(metrics) if metrics.exists() else []
        if len(lines) > EVALUATE_EVERY:
            is_sent = 3 <= lines[-1]["step"] % EVALUATE_EVERY <= 7
        if is_sent:
            process.send_signal(ending)
        process.send_signal(signal.SIGCONT)
        time.sleep(0.002)
    _, err = process.communicate(timeout=600)
    expected = {signal.SIGINT: 75, signal.SIGKILL: -signal.SIGKILL}[ending]
    assert process.returncode == expected, (process.returncode, err)


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


def read(module, folder, guidance, is_purged):
    """Reads a folder; the only warnings are of what the reader forgets."""
    warned = Warned()
    for name in (None, "tensorboard"):
        logging.getLogger(name).addHandler(warned)
    with warnings.catch_warnings(record=True) as raised:
        warnings.simplefilter("always")
        reader = module.EventAccumulator(str(folder), size_guidance=guidance)
        reader.Reload()
    for name in (None, "tensorboard"):
        logging.getLogger(name).removeHandler(warned)
    ours = [str(one.message) for one in raised
            if not issubclass(one.category, DeprecationWarning)]
    assert not ours, ours
    assert all("Purging" in message for message in warned.messages) and \
        bool(warned.messages) == is_purged, warned.messages
    return reader


def check_scalars(expected, found_of):
    points = 0
    for tag, values in expected.items():
        found = found_of(tag)
        assert [step for step, _ in found] == [step for step, _ in values], \
            (tag, found)
        for (_, value), (_, wanted) in zip(found, values):
            assert abs(value - wanted) <= 1e-6 * abs(wanted), (tag, value)
        points += len(found)
    return points


def check(folder, lines, is_purged):
    expected = expected_scalars(lines)
    reader = read(event_accumulator, folder,
                  {event_accumulator.SCALARS: 0, event_accumulator.TENSORS: 0,
                   event_accumulator.HISTOGRAMS: 0}, is_purged)
    assert set(reader.Tags()["scalars"]) == set(expected), \
        set(reader.Tags()["scalars"]) ^ set(expected)
    points = check_scalars(expected, lambda tag: [
        (event.step, event.value) for event in reader.Scalars(tag)])

    server = read(plugin_event_accumulator, folder,
                  {plugin_event_accumulator.TENSORS: 0}, is_purged)
    check_scalars(expected, lambda tag: [
        (event.step, tensor_util.make_ndarray(event.tensor_proto).item())
        for event in server.Tensors(tag)])
    assert len(server.Tensors("configuration")) == 1

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
          f"{len(gates)} histograms, each once")


def main():
    program, sources = sys.argv[1:]
    for ending in (signal.SIGINT, signal.SIGKILL):
        with tempfile.TemporaryDirectory() as temporary:
            seed = pathlib.Path(temporary) / "run" / "seed-1"
            metrics = seed / "metrics.jsonl"
            end_in_the_middle(train(program, sources, str(seed.parent), False),
                              metrics, ending)
            process = train(program, sources, str(seed.parent), True)
            _, err = process.communicate(timeout=600)
            assert process.returncode == 0, err
            lines = lines_of(metrics)
            assert len([line for line in lines if "loss" in line]) == STEPS
            check(seed / "tensorboard", lines, ending == signal.SIGKILL)


if __name__ == "__main__":
    main()
