#!/usr/bin/env python3
"""Runs bench/real_bert.py with a model and files made here, in fp32 and in bf16.

  python3 tests/real_bert_test.py SOURCE_DIR BIN_DIR

Stopped after its first run, it goes on by the same command, and refuses another
one.
"""

import json
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time

SOURCE, BINARIES = map(pathlib.Path, sys.argv[1:3])
sys.path.insert(0, str(SOURCE / "tests/documents"))

import stand_ins  # pylint: disable=wrong-import-position

SEEDS = (1, 2, 3)
TASKS = ("rte", "stsb")


def start(work, *arguments):
    return subprocess.Popen(
        [sys.executable, SOURCE / "bench/real_bert.py", "finetune",
         work / "model", work, "none", work / "out", "--tasks", ",".join(TASKS),
         "--seeds", ",".join(map(str, SEEDS)), "--beside", "realetc-bf16",
         *arguments],
        env={**os.environ, "REALETC": str(BINARIES / "realetc")},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def check(condition, message):
    if not condition:
        print(message)
        sys.exit(1)


def results(work):
    return sorted((work / "out/results").glob("*.json"))


def main():
    with tempfile.TemporaryDirectory() as folder:
        work = pathlib.Path(folder)
        stand_ins.write_hugging_face_bert(
            work / "model", stand_ins.union_vocabulary(SOURCE))
        for name in ("RTE", "STS-B"):
            header, lines = stand_ins.GLUE[name][:2]
            for part in ("train", "dev"):  # 64 rows, two updates of an epoch
                stand_ins.write_lines(work / name / (part + ".tsv"), header,
                                      lines * 32)
        number = 2 * len(TASKS) * len(SEEDS)

        first = start(work)
        while first.poll() is None and not results(work):
            time.sleep(0.02)
        first.send_signal(signal.SIGINT)
        output = first.communicate()[0]
        check(first.returncode == 75 and "the same command goes on" in output,
              output)
        check(0 < len(results(work)) < number, output)

        second = start(work)
        output = second.communicate()[0]
        check(second.returncode == 0, output)
        check(len(results(work)) == number, output)
        for path in results(work):
            result = json.loads(path.read_text())
            check(result["updates"] == 6, "%s: %s" % (path, result))
        for row in ("rte in bf16, accuracy", "stsb in bf16, pearson"):
            check("| %s | " % row in output, output)

        other = start(work, "--threads", "2")
        output = other.communicate()[0]
        check(other.returncode == 1 and "is of other settings" in output, output)


main()
