"""Scripts that hold the C++ program against HuggingFace's own packages.

They want torch, transformers and tokenizers, which the environment of these tests
has, and programs in build/release (bash tests/run.sh builds all of them).
"""
import pathlib
import subprocess
import sys

import pytest

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_BUILD = _ROOT / "build/release"
_SKIPPED = 77


@pytest.mark.skipif(
    not (_BUILD / "bin/tokenizer_ids").exists() or
    not (_BUILD / "tests").exists(),
    reason=f"{_BUILD} has no tests: bash tests/run.sh builds them")
@pytest.mark.parametrize("script, arguments", [
    ("heads", []), ("exports", []), ("training", ["300"]),
    ("tokenizers", ["300"])])
def test_script_finds_no_difference(script, arguments):
  done = subprocess.run(
      [sys.executable, _ROOT / f"tests/hugging_face_{script}.py", _BUILD,
       *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      check=False)
  if done.returncode == _SKIPPED:
    pytest.skip(done.stdout.strip().splitlines()[-1])
  assert done.returncode == 0, done.stdout
