#!/usr/bin/env python3
"""Writes the sample of classify: train.jsonl, dev.jsonl, vocab.txt.

  python3 tasks/classify/sample/generate.py

Each text has 5 to 12 words, most of them of its topic and some of another one;
one in three has a second text of the same topic.
"""
import json
import pathlib
import random

WORDS = {
    "food": "bread soup apple rice cook salt pan lunch sugar bean".split(),
    "music": "song piano drum choir note violin band tune opera chord".split(),
    "sport": "ball goal race team score coach match swim run medal".split(),
}
FILLERS = "the a and with after before of in one new old we they".split()
SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]"]
FOLDER = pathlib.Path(__file__).parent


def text(random_, label):
  other = random_.choice([name for name in WORDS if name != label])
  words = [random_.choice(WORDS[label]) for _ in range(random_.randint(3, 5))]
  words += [random_.choice(WORDS[other]) for _ in range(random_.randint(0, 2))]
  words += [random_.choice(FILLERS) for _ in range(random_.randint(2, 5))]
  random_.shuffle(words)
  return " ".join(words)


def write(name, size, seed):
  random_ = random.Random(seed)
  with open(FOLDER / name, "w", encoding="utf-8") as file:
    for i in range(size):
      label = sorted(WORDS)[i % 3]
      record = {"id": f"{name.split('.')[0]}-{i}", "text": text(random_, label)}
      if i % 9 < 3:
        record["text_b"] = text(random_, label)
      file.write(json.dumps({**record, "label": label}) + "\n")


write("train.jsonl", 600, 1)
write("dev.jsonl", 120, 2)
vocabulary = SPECIAL + sorted(sum(WORDS.values(), []) + FILLERS)
(FOLDER / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
