#!/usr/bin/env python3
"""Kills processes of a run at random, again and again.

  python3 tests/random_kills.py build/release/bin/realetc [--kills 50]
      [--processes 3] [--seed 1]

A run of several processes on the bundled sample of WikiHop is disturbed by
SIGKILL: a random one of its processes, at a random moment from its start to its
end. Each time the others have to end within `train.timeout_s` (10 s here), with
an error each, of which one at least names the process that was killed (who comes
after the others have given up can only say that nobody is there). The run is
resumed, and when it has come to its end its weights and its optimizer's state
have to be those of a run that was left alone, bit for bit. Then the next run
begins, until there were that many kills.

Prints a line for each kill, and one with what was seen of all. Exits with 1 if
something of that did not hold. Not part of the test suite: takes ten
minutes on two cores.
"""

import argparse
import hashlib
import os
import pathlib
import random
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMEOUT = 10.0  # train.timeout_s
# What processes need besides to notice, to say it and to end.
GRACE = 15.0


def free_port():
  with socket.socket() as s:
    s.bind(("127.0.0.1", 0))
    return s.getsockname()[1]


class Run:
  """One start of all processes."""

  def __init__(self, program, processes, output, resume):
    self.logs = [tempfile.TemporaryFile() for _ in range(processes)]
    environment = {
        **os.environ, "WORLD_SIZE": str(processes), "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port())
    }
    command = [
        str(program), "train", "tasks/wikihop/configs/demo.json", "--output",
        str(output)
    ]
    for option in [
        "train.steps=60", "train.batch_size=24", "train.micro_batch_size=4",
        "train.evaluate_every=20", "train.checkpoint_every=7",
        "train.threads=1", f"train.timeout_s={TIMEOUT:g}",
        "model.hidden_dropout_prob=0.1"
    ]:
      command += ["--set", option]
    if resume:
      command.append("--resume")
    self.processes = [
        subprocess.Popen(command,
                         cwd=ROOT,
                         stdout=subprocess.DEVNULL,
                         stderr=log,
                         env={
                             **environment, "RANK": str(rank),
                             "LOCAL_RANK": str(rank)
                         }) for rank, log in enumerate(self.logs)
    ]

  def ended(self):
    return all(p.poll() is not None for p in self.processes)

  def runs_for(self, seconds):
    """Waits; whether all processes are still there."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
      if self.ended():
        return False
      time.sleep(0.01)
    return not self.ended()

  def wait(self, seconds):
    """Whether all end in time; those that do not are ended."""
    deadline = time.monotonic() + seconds
    while not self.ended() and time.monotonic() < deadline:
      time.sleep(0.02)
    in_time = self.ended()
    for process in self.processes:
      process.kill()
      process.wait()
    return in_time

  def errors(self, rank):
    self.logs[rank].seek(0)
    text = self.logs[rank].read().decode(errors="replace")
    return [line for line in text.splitlines() if line.startswith("realetc: ")]


def weights_of(output):
  """Of weights and optimizer: a digest of all numbers, without the headers, of
  which one counts the bytes of a file with times in it."""
  digest = hashlib.sha256()
  folder = output / "seed-1" / "checkpoints" / "last"
  files = sorted(f for f in folder.rglob("*") if f.suffix == ".safetensors")
  if not files:
    sys.exit(f"{folder} has no weights")
  for file in files:
    contents = file.read_bytes()
    digest.update(contents[8 + int.from_bytes(contents[:8], "little"):])
  return digest.hexdigest()


def main():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
  parser.add_argument("program", type=pathlib.Path)
  parser.add_argument("--kills", type=int, default=50)
  parser.add_argument("--processes", type=int, default=3)
  parser.add_argument("--seed", type=int, default=1)
  arguments = parser.parse_args()
  program = arguments.program.resolve()
  draw = random.Random(arguments.seed)
  work = tempfile.TemporaryDirectory()
  folder = pathlib.Path(work.name)
  failures = []

  def expect(holds, what):
    if not holds:
      failures.append(what)
      print(f"  FAILED: {what}", flush=True)

  begin = time.monotonic()
  undisturbed = Run(program, arguments.processes, folder / "alone", False)
  expect(undisturbed.wait(600), "the undisturbed run ended in time")
  duration = time.monotonic() - begin
  if any(p.returncode != 0 for p in undisturbed.processes):
    sys.exit(f"the undisturbed run failed: {undisturbed.errors(0)}")
  weights = weights_of(folder / "alone")
  print(f"{arguments.processes} processes; undisturbed {duration:.1f} s")

  kills = runs = 0
  slowest = 0.0
  while kills < arguments.kills:
    output = folder / f"run-{runs}"
    disturbances = 0
    while True:
      has_begun = (output / "seed-1").exists()
      run = Run(program, arguments.processes, output, has_begun)
      is_last = kills >= arguments.kills or disturbances >= 8
      rank = draw.randrange(arguments.processes)
      if not is_last and not run.runs_for(draw.uniform(0, duration)):
        is_last = True
      if is_last:
        expect(run.wait(600), "the run ended in time")
        for r, process in enumerate(run.processes):
          expect(process.returncode == 0,
                 f"process {r} came to the end: {run.errors(r)}")
        break
      victim = run.processes[rank]
      victim.send_signal(signal.SIGKILL)
      killed = time.monotonic()
      in_time = run.wait(TIMEOUT + GRACE)
      seconds = time.monotonic() - killed
      others = [p for p in run.processes if p is not victim]
      if victim.returncode != -signal.SIGKILL or all(
          p.returncode == 0 for p in others):
        break  # It was at its end already.
      kills += 1
      disturbances += 1
      slowest = max(slowest, seconds)
      said = [
          line for r in range(arguments.processes) if r != rank
          for line in run.errors(r)[:1]
      ]
      print(f"{kills}: process {rank}, others ended in {seconds:.1f} s: "
            f"{said[0] if said else 'nothing said'}", flush=True)
      expect(in_time, "the others ended in time")
      for r, process in enumerate(run.processes):
        if r != rank:
          expect(process.returncode not in (0, None) and process.returncode > 0,
                 f"process {r} ended with an error: {process.returncode}")
          expect(run.errors(r), f"process {r} says an error")
      expect(any(re.search(rf"process {rank}(?! of)\b", line) for line in said),
             f"somebody names process {rank}: {said}")
    expect(weights_of(output) == weights,
           f"run {runs} has the weights of the undisturbed one")
    runs += 1
    print(f"run {runs} done, {disturbances} kills", flush=True)
  print(f"{kills} kills in {runs} runs: the others ended within "
        f"{slowest:.1f} s, {len(failures)} failures")
  return 1 if failures else 0


if __name__ == "__main__":
  sys.exit(main())
