#!/usr/bin/env python3
"""Compares heads that `realetc import` takes over with HuggingFace's own code.

  python3 tests/hugging_face_heads.py [BUILD]     # default: build/release

Makes a small random BertForSequenceClassification, BertForQuestionAnswering and
BertForTokenClassification, saves each with save_pretrained, and has
tasks/glue/task_test import them and compare logits of rows of the sample of glue.
Says so and ends where the Python packages torch and transformers are missing.
"""
import json
import os
import pathlib
import subprocess
import sys
import tempfile

try:
  import torch
  import transformers
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLE = ROOT / "tasks/glue/sample"
ROWS = 8


def write_model(kind, vocabulary, folder):
  """A model with all of its parameters at random, and its logits."""
  torch.manual_seed(1)
  model = kind(
      transformers.BertConfig(
          vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2,
          num_attention_heads=4, intermediate_size=64,
          max_position_embeddings=64, initializer_range=0.3))
  for name, parameter in model.named_parameters():
    if name.endswith("bias"):
      torch.nn.init.normal_(parameter, std=0.3)
  model.eval()
  model.save_pretrained(folder)
  (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
  ids = {word: i for i, word in enumerate(vocabulary)}
  logits = []
  with open(SAMPLE / "dev.tsv", encoding="utf-8-sig") as file:
    for line in list(file)[1:ROWS + 1]:
      first, second = (text.split() for text in line.rstrip("\n").split("\t")[3:])
      words = ["[CLS]", *first, "[SEP]", *second, "[SEP]"]
      types = [0] * (len(first) + 2) + [1] * (len(second) + 1)
      with torch.no_grad():
        output = model(input_ids=torch.tensor([[ids[word] for word in words]]),
                       token_type_ids=torch.tensor([types]))
      if "logits" not in output:
        logits.append([output.start_logits[0].tolist(),
                       output.end_logits[0].tolist()])
      else:  # those of tokens with the outputs first, as the two above
        logits.append(output.logits[0].t().tolist())
  (folder / "logits.json").write_text(json.dumps(logits))


def main():
  build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                       ROOT / "build/release")
  vocabulary = (SAMPLE / "vocab.txt").read_text().split("\n")[:-1]
  with tempfile.TemporaryDirectory() as folder:
    for kind in (transformers.BertForSequenceClassification,
                 transformers.BertForQuestionAnswering,
                 transformers.BertForTokenClassification):
      write_model(kind, vocabulary, pathlib.Path(folder) / kind.__name__)
    # CTest knows the program that has the test.
    done = subprocess.run(
        ["ctest", "--test-dir", build, "-R", "^tasks/glue/task_test$",
         "--output-on-failure", "--no-tests=error"],
        env={**os.environ, "ETC_HUGGING_FACE_MODELS": folder,
             "GTEST_OUTPUT": f"json:{folder}/result.json"},
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False)
    if done.returncode != 0:
      sys.exit(done.stdout)
    result = json.loads(pathlib.Path(folder, "result.json").read_text())
    (tests,) = [suite["testsuite"] for suite in result["testsuites"]
                if suite["name"] == "HuggingFaceHeadTest"]
    for test in tests:
      print(f"{test['name']}: logits differ by {test['largest_error']} at most")


if __name__ == "__main__":
  main()
