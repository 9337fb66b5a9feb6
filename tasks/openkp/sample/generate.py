#!/usr/bin/env python3
"""Writes the bundled sample: train.jsonl, dev.jsonl and vocab.txt.

The documents are in OpenKP's format: web pages of invented words, each piece
of the page with its place and its look. Every piece but the title and the menu
names one thing in a sentence:

    we like the old copper lantern most of all

and the three things that the page is about are its key phrases. Only the look
of a piece tells which: key phrases stand in bold in the main column. Other
pieces of the main column are plain, and the advertisements beside it are bold
as well, so that neither the place nor the weight of the letters is enough. What
the look does not say, the words do: where in the sentence the name of the thing
begins and ends. Names have one to three words.

A name stands once in a page, and all words are equally frequent in key phrases
and elsewhere, so there is nothing to memorise; names are drawn anew for each
page. Who cannot see the page finds 3 names among 16, and no more by chance.

Plain Python 3, no arguments; the same bytes at every run:

    python3 tasks/openkp/sample/generate.py
"""

import json
import pathlib
import random

SEED = 20240523
NUM_TRAIN = 240
NUM_DEV = 60
NUM_KEYS = 3
NUM_PLAIN = 8
NUM_ADVERTISEMENTS = 5

QUALITIES = """amber ashen broad copper crimson early frozen gentle hollow
 hidden ivory little narrow old pale quiet silver stormy""".split()
MATERIALS = """birch clay glass granite iron linen maple marble oak paper
 pine velvet walnut wool""".split()
THINGS = """anchor bridge candle compass drum engine fiddle garden harbor
 kettle ladder lantern mirror needle orchard pillow quilt saddle tower violin
 wagon window""".split()
# The blank for the name is "_". No word of a name is used elsewhere.
SENTENCES = """we like the _ most of all
 here is how to find a _ near you
 read more about the _ today
 nobody knows who made this _ for us
 the _ is what people come for
 look at our _ before you go
 what makes a good _ is the work
 some say that every _ has a story""".split("\n")
TITLES = ["welcome to the page", "all you can read here", "a page for you"]
MENU = ["home", "find", "read more", "about us"]
SPECIAL = ["[PAD]", "[unused0]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def feature(x, width, y, height, block, inline, heading, leaf, font, bold):
  """The ten numbers of a node, in the order of the official files."""
  return [float(value) for value in (x, width, y, height, block, inline,
                                     heading, leaf, font, bold)]


def node_features(kind, rng, y):
  """Of a piece and of the column that it is in."""
  main = feature(200, 700, 100, 1400, 1, 0, 0, 0, 14, 0)
  side = feature(1000, 300, 100, 1400, 1, 0, 0, 0, 12, 0)
  if kind == "title":
    return feature(200, 700, y, 45, 1, 0, 1, 1, 28, 1), main
  if kind == "menu":
    return feature(10, 120, y, 20, 0, 1, 0, 0, 12, 0), side
  is_bold = kind != "plain"
  if kind == "advertisement":
    x, font, parent = 1000 + 10 * rng.randrange(3), 12, side
  else:
    x, font, parent = 200 + 10 * rng.randrange(3), 14, main
  return feature(x, 500, y, 15, 0, 0, 0, 0, font, is_bold), parent


def draw_names(rng, count):
  """`count` names of one to three words, no word in two of them."""
  qualities = rng.sample(QUALITIES, len(QUALITIES))
  materials = rng.sample(MATERIALS, len(MATERIALS))
  things = rng.sample(THINGS, count)
  names = []
  for index, thing in enumerate(things):
    words = [thing]
    if index % 3 >= 1 and materials:
      words.insert(0, materials.pop())
    if index % 3 == 2 and qualities:
      words.insert(0, qualities.pop())
    names.append(words)
  rng.shuffle(names)
  return names


def make_document(rng, document_id, url):
  kinds = (["key"] * NUM_KEYS + ["plain"] * NUM_PLAIN +
           ["advertisement"] * NUM_ADVERTISEMENTS)
  names = draw_names(rng, len(kinds))
  rng.shuffle(kinds)
  pieces = [("menu", item) for item in rng.sample(MENU, 2)]
  pieces.append(("title", rng.choice(TITLES)))
  for kind, name in zip(kinds, names):
    sentence = rng.choice(SENTENCES).strip()
    pieces.append((kind, sentence.replace("_", " ".join(name))))
  words, elements = [], []
  for index, (kind, text) in enumerate(pieces):
    node, parent = node_features(kind, rng, 40 + 60 * index)
    start = len(words)
    words += text.split(" ")
    elements.append({"Id": document_id, "text": text,
                     "feature": node + parent, "start_idx": start,
                     "end_idx": len(words)})
  return {
      "url": url,
      "text": " ".join(words),
      "VDOM": json.dumps(elements, separators=(",", ":")),
      "KeyPhrases": [name for kind, name in zip(kinds, names)
                     if kind == "key"],
  }


def main():
  folder = pathlib.Path(__file__).resolve().parent
  rng = random.Random(SEED)
  for split, count in (("train", NUM_TRAIN), ("dev", NUM_DEV)):
    lines = [json.dumps(make_document(rng, i, f"http://{split}.example/{i}"),
                        separators=(",", ":")) for i in range(count)]
    (folder / f"{split}.jsonl").write_text("\n".join(lines) + "\n",
                                           encoding="utf-8")
  plain = sorted({word for text in SENTENCES + TITLES + MENU
                  for word in text.split() if word != "_"})
  words = SPECIAL + plain + QUALITIES + MATERIALS + THINGS
  assert len(words) == len(set(words))
  (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


if __name__ == "__main__":
  main()
