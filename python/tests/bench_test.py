"""Scripts of bench/ before their measurements, which take too long here."""
import pathlib
import subprocess
import sys

_BENCH = pathlib.Path(__file__).resolve().parents[2] / "bench"


def _run(script, *arguments):
  return subprocess.run(
      [sys.executable, "-B", _BENCH / script, *arguments], check=False,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
      env={"REALETC": "/bin/false", "PATH": "/usr/bin:/bin"})


def test_the_predictor_deletes_nothing_of_others(tmp_path):
  model = tmp_path / "models/bert"
  model.mkdir(parents=True)
  (model / "vocab.txt").write_text("the\n")
  (tmp_path / "models/notes.txt").write_text("mine")
  done = _run("predictor.py", model, tmp_path / "models", "--texts", "3")
  assert "import failed" in done.stdout, done.stdout
  assert (model / "vocab.txt").read_text() == "the\n"
  assert (tmp_path / "models/notes.txt").read_text() == "mine"


def test_an_unknown_task_is_named(tmp_path):
  done = _run("real_bert.py", "finetune", "a", "b", "c", tmp_path / "out",
              "--tasks", "rte,foo")
  assert done.returncode == 2
  assert "a task should be one of rte, mrpc," in done.stdout, done.stdout
  assert "but is 'foo'" in done.stdout
  assert not (tmp_path / "out").exists()
