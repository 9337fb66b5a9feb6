#!/usr/bin/env python3
"""Compares inputs of two texts with those of PyPI's tokenizers.

  python3 tests/random_pairs.py [BUILD [PAIRS]]  # default: build/release 1000

A byte-level BPE is trained on our pages, and gets the post-processors of
RoBERTa, BERT and XLM-RoBERTa, templates with no, two and three pieces between
the texts, and none. The ids of random pairs of texts, special pieces among
them, should be those of `tokenizers`, and those of an input by RoBERTa's
post-processor where the tokenizer.json has none. The same of vocab.json with
merges.txt alone, with RoBERTa's special pieces; of GPT-2's, which have none,
the ids of each text.

Ends with 77, after saying why, where Python has no tokenizers.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile

# Ends with 77 itself.
from hugging_face_tokenizers import ROOT, bpe, odd_texts
import tokenizers
from tokenizers import pre_tokenizers, processors


def post_processors(tokenizer):
  """Ours, and the one that its inputs should be equal to."""
  pieces = {name: tokenizer.token_to_id(name) for name in
            ("<s>", "</s>", "<unk>", "<mask>")}

  def template(pair):
    return processors.TemplateProcessing(single="<s> $A </s>", pair=pair,
                                         special_tokens=list(pieces.items()))

  sep, cls = ("</s>", pieces["</s>"]), ("<s>", pieces["<s>"])
  roberta = processors.RobertaProcessing(sep, cls, trim_offsets=True,
                                         add_prefix_space=False)
  yield "RoBERTa", roberta, roberta
  bert = processors.BertProcessing(sep, cls)
  yield "BERT", bert, bert
  for pair in ("<s> $A </s> </s> $B </s>", "<s> $A </s> $B:1 </s>:1",
               "<s> $A $B </s>", "<s> $A </s> <mask>:1 <unk> $B </s>"):
    yield pair, template(pair), template(pair)
  yield "a sequence", processors.Sequence(
      [processors.ByteLevel(), roberta]), roberta
  yield "none", None, roberta


def ours(program, path, inputs):
  lines = "".join(json.dumps(one, ensure_ascii=False) + "\n"
                  for one in inputs)
  done = subprocess.run([program, path], input=lines.encode(),
                        stdout=subprocess.PIPE, check=True)
  return [json.loads(line) for line in done.stdout.splitlines()]


def check(name, found, tokenizer, pairs):
  if len(found) != len(pairs):
    sys.exit(f"{name}: {len(found)} inputs of {len(pairs)}")
  for ids, (a, b) in zip(found, pairs):
    expected = tokenizer.encode(a, b).ids
    if ids != expected:
      sys.exit(f"{name}: {a!r} and {b!r} are {ids}, not {expected}")
  print(f"{name}: {len(pairs)} pairs, {sum(map(len, found))} pieces: equal",
        flush=True)


def check_merges(program, folder, tokenizer, texts, pairs):
  """vocab.json and merges.txt of the tokenizer, without a tokenizer.json."""
  files = tokenizer.model.save(folder)
  check("vocab.json and merges.txt", ours(program, folder, pairs), tokenizer,
        pairs)
  special = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
  vocabulary = pathlib.Path(files[0])
  pieces = {piece if piece not in special else f"x{piece}": id for piece, id in
            json.loads(vocabulary.read_text(encoding="utf-8")).items()}
  vocabulary.write_text(json.dumps(pieces), encoding="utf-8")
  gpt2 = tokenizers.Tokenizer(tokenizers.models.BPE.from_file(*files))
  gpt2.pre_tokenizer = pre_tokenizers.ByteLevel(False)
  found = [[piece[0] for piece in ids] for ids in ours(program, folder, texts)]
  for ids, text in zip(found, texts, strict=True):
    if ids != gpt2.encode(text).ids:
      sys.exit(f"GPT-2: {text!r} is {ids}, not {gpt2.encode(text).ids}")
  print(f"GPT-2's files: {len(texts)} texts, {sum(map(len, found))} pieces: "
        "equal")


def main():
  build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                       ROOT / "build/release").resolve()
  count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
  program = build / "bin/tokenizer_ids"
  texts = odd_texts(count)
  draws = random.Random(2)
  pairs = [(draws.choice(texts), draws.choice(texts)) for _ in range(count)]
  print(f"tokenizers {tokenizers.__version__}")
  with tempfile.TemporaryDirectory() as folder:
    tokenizer = bpe(pre_tokenizers.ByteLevel(False))
    for name, processor, expected in post_processors(tokenizer):
      settings = json.loads(tokenizer.to_str())
      settings["post_processor"] = processor and json.loads(
          processor.__getstate__())
      path = pathlib.Path(folder) / "tokenizer.json"
      path.write_text(json.dumps(settings), encoding="utf-8")
      tokenizer.post_processor = expected
      check(name, ours(program, path, pairs), tokenizer, pairs)
  with tempfile.TemporaryDirectory() as folder:
    check_merges(program, folder, tokenizer, texts, pairs)


if __name__ == "__main__":
  main()
