"""The examples of python/README.md run, and their losses fall."""
import os
import pathlib
import re
import subprocess
import sys

import pytest

_PYTHON = pathlib.Path(__file__).resolve().parents[1]
_EXAMPLES = sorted(path.name for path in (_PYTHON / "examples").glob("*.py"))


@pytest.mark.parametrize("name", _EXAMPLES)
def test_example_trains(name):
  if name == "documents.py":
    for package in ("regex", "safetensors", "tokenizers"):
      pytest.importorskip(package)
  output = _run(_PYTHON / "examples" / name)
  losses = [float(one) for one in re.findall(r"loss ([\d.]+)", output)]
  assert len(losses) >= 5 and losses[-1] < 0.9 * losses[0], output


def _run(*arguments):
  # On a machine with much else to do, two threads wait for each other.
  return subprocess.run(
      [sys.executable, *arguments], check=True, stdout=subprocess.PIPE,
      text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}).stdout


def _code(path):
  """The lines of a file between its first class and `def main`."""
  return re.search(r"^class .*?(?=^def main)", path.read_text(encoding="utf-8"),
                   re.M | re.S).group().strip()


@pytest.mark.parametrize("name", _EXAMPLES)
def test_readme_shows_the_example(name):
  readme = (_PYTHON / "README.md").read_text(encoding="utf-8")
  assert f"examples/{name}" in readme
  assert _code(_PYTHON / "examples" / name) in readme


def test_benchmark_runs():
  output = _run(_PYTHON / "bench/pair_bias.py", "--length", "64", "--heads",
                "2", "--threads", "1", "--repetitions", "1")
  rows = [line.split("|")[1].strip() for line in output.splitlines()[3:]]
  assert rows == ["realetc", "math", "plain"]
