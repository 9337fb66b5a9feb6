#!/usr/bin/env python3
"""Writes the sample of classify: train.csv.gz, dev.csv.gz, vocab.txt.

  python3 tasks/classify/sample/generate.py

Invented reports about flats: who won the dispute, the owner or the tenant, or is
there a retrial? The first sentence says for whom the court ruled, and one far
behind it whether that ruling was upheld on appeal, or annulled, which makes it a
retrial; all others are about other things. Of
train.csv.gz a third of the reports has no appeal, and they are short to long, as
real collections are. In dev.csv.gz each has one behind its first 1,500 words, and
half of the rulings are annulled: who does not read that far is right half of the
time at best, and so is who always says the most frequent outcome.
"""
import csv
import gzip
import io
import pathlib
import random

FOLDER = pathlib.Path(__file__).parent
SIDES = ("owner", "tenant")
PEOPLE = "agent clerk neighbour plumber painter witness expert builder".split()
THINGS = "roof door window lift heating garden cellar kitchen stairs fence".split()
DEEDS = "saw sent asked wrote paid called found measured".split()
MONTHS = "january march may july october december".split()
TITLES = [f"Flat {number}, {street} Street"
          for number in range(1, 10)
          for street in ("Mill", "Church", "Station", "Lake")]
SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]"]
FAR = 1500


def filler(random_):
  one, other = random_.sample(PEOPLE, 2)
  here, there = random_.sample(THINGS, 2)
  return random_.choice([
      f"In {random_.choice(MONTHS)} the {one} {random_.choice(DEEDS)} about the "
      f"{here} and the {there}, and the {other} had no answer to that for "
      "many weeks.",
      f"The {one} said that the {here} was old, that the {there} was new, and "
      f"that the {other} had been there in {random_.choice(MONTHS)}.",
      f"A letter from the {one} was read, in which the {here} is called \"as "
      f"good as new\", and the {other} {random_.choice(DEEDS)} about the "
      f"{there}."])


def words(text):
  """About what a tokenizer makes of it."""
  for mark in ".,:\"":
    text = text.replace(mark, f" {mark} ")
  return text.lower().split()


def report(random_, side, appeal, before, after):
  """The sentences between ruling and appeal have at least `before` words."""
  sentences = [f"The court ruled for the {side}: the {side} was right, and what "
               f"the {side} had asked for was due."]
  size = 0
  while size < before:
    sentences.append(filler(random_))
    size += len(words(sentences[-1]))
  if appeal:
    sentences.append(f"On appeal the ruling was {appeal}, all of it {appeal}.")
  sentences += [filler(random_) for _ in range(after)]
  paragraphs = [" ".join(sentences[i:i + 8]) for i in range(0, len(sentences), 8)]
  return "\n".join(paragraphs)


def records(name, size, appeals, lengths, seed):
  random_ = random.Random(seed)
  for i in range(size):
    side, appeal = SIDES[i % 2], appeals[i // 2 % len(appeals)]
    outcome = "retrial" if appeal == "annulled" else side
    before = lengths(random_)
    after = random_.randint(0, min(4, before // 20))
    yield {"id": f"{name}-{i}", "title": random_.choice(TITLES),
           "text": report(random_, side, appeal, before, after),
           "outcome": outcome}


def short_to_long(random_):
  return random_.choice([0, 0, 0, 0, 0, 10, 10, 20, 40, 80, 160, 320, 1280])


def write(name, rows):
  rows = list(rows)
  table = io.StringIO()
  writer = csv.DictWriter(table, rows[0])
  writer.writeheader()
  writer.writerows(rows)
  with open(FOLDER / f"{name}.csv.gz", "wb") as file:
    # The same bytes whenever this is run.
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
      packed.write(table.getvalue().encode())
  return {word for row in rows
          for word in words(row["title"] + " " + row["text"])}


def main():
  known = write("train", records("train", 900, ("", "upheld", "annulled"),
                                 short_to_long, 1))
  dev = list(records("dev", 80, ("upheld", "annulled"),
                     lambda random_: random_.randint(FAR, 1750), 2))
  for row in dev:
    every = words(row["text"])
    assert every.index("appeal") > FAR and len(every) < 1980, row["id"]
  known |= write("dev", dev)
  vocabulary = SPECIAL + sorted(known)
  (FOLDER / "vocab.txt").write_text("\n".join(vocabulary) + "\n")


if __name__ == "__main__":
  main()
