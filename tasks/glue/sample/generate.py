#!/usr/bin/env python3
"""Writes the sample of glue: train.tsv, dev.tsv, test.tsv, vocab.txt.

  python3 tasks/glue/sample/generate.py

Files as MRPC's, with what makes those hard to read: a byte order mark, and
quotation marks that are not quotes of the file. Each row has two sentences on
who did what. The second says the same in other words in half of the rows; in
the others it denies it. What was done to and when differ at random.
"""
import pathlib
import random

# Words for the same in one line.
WHO = [
    "bank lender", "court judge", "army military", "farmer grower",
    "doctor physician", "lawyer attorney"
]
WHAT = [
    "rejected refused", "bought acquired", "began started", "ended finished",
    "praised hailed", "repaired fixed"
]
OBJECTS = "plan house talks project offer work road deal".split()
DAYS = "monday tuesday wednesday thursday friday".split()
DENIALS = ["never", "hardly", "not once"]
FRAMES = [
    "the {who} {what} the {object} on {day} .",
    "\" the {who} {what} the {object} , it said on {day} .",
    "on {day} , the {who} {what} the {object} .",
    "the {object} \" , the {who} {what} it on {day} .",
]
SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]"]
OTHER = "the on it said never hardly not once , . \"".split()
FOLDER = pathlib.Path(__file__).parent


def sentence(random_, who, what, denies, used):
  # The second sentence has other words for the same.
  who, what = (random_.choice([w for w in line.split() if w not in used])
               for line in (WHO[who], WHAT[what]))
  return random_.choice(FRAMES).format(
      who=who, what=f"{random_.choice(DENIALS)} {what}" if denies else what,
      object=random_.choice(OBJECTS), day=random_.choice(DAYS))


def rows(size, seed):
  random_ = random.Random(seed)
  for i in range(size):
    who, what = random_.randrange(len(WHO)), random_.randrange(len(WHAT))
    label = i % 2
    a = sentence(random_, who, what, False, set())
    b = sentence(random_, who, what, not label, set(a.split()))
    yield label, 2 * i, 2 * i + 1, a, b


def write(name, lines):
  with open(FOLDER / name, "w", encoding="utf-8", newline="\n") as file:
    file.write("\n".join(lines) + "\n")


def main():
  header = "#1 ID\t#2 ID\t#1 String\t#2 String"
  for name, size, seed in (("train.tsv", 600, 1), ("dev.tsv", 120, 2)):
    write(name, [f"\ufeffQuality\t{header}"] +
          ["\t".join(map(str, row)) for row in rows(size, seed)])
  write("test.tsv", [f"index\t{header}"] + [
      "\t".join(map(str, (i, *row[1:])))
      for i, row in enumerate(rows(30, 3))
  ])
  words = sum((line.split() for line in WHO + WHAT), []) + OBJECTS + DAYS
  write("vocab.txt", SPECIAL + sorted(words + OTHER))


if __name__ == "__main__":
  main()
