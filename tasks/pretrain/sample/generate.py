#!/usr/bin/env python3
"""Writes the bundled corpus: corpus.txt.gz, a sentence a line, an empty line
between documents.

Each document is a world of its own, in the words of WikiHop's sample
(tasks/wikihop/sample/generate.py), whose vocabulary it is tokenized with: five
towns in five countries, two people who live in them, and in which country each
of them therefore is.

    Mira Dolan lives in North Haven.
    North Haven is a town in Karsia. It lies on a river.
    The country of Mira Dolan is Karsia.

Which country a town lies in is drawn anew for each document, so a masked word
of the last sentence can only be told by going from person to town to country;
most others by the sentences around, or not at all.

Plain Python 3, no arguments; the same bytes at every run:

    python3 tasks/pretrain/sample/generate.py
"""

import gzip
import importlib.util
import math
import pathlib
import random

SEED = 20260711
NUM_DOCUMENTS = 4000
NUM_TOWNS = 5
NUM_PEOPLE = 2

FOLDER = pathlib.Path(__file__).resolve().parent


def load_words():
  """The words of WikiHop's sample."""
  path = FOLDER.parent.parent / "wikihop" / "sample" / "generate.py"
  spec = importlib.util.spec_from_file_location("wikihop_sample", path)
  module = importlib.util.module_from_spec(spec)
  spec.loader.exec_module(module)
  return module


def make_document(rng, words):
  """The sentences of one world, in random order but for the conclusions."""
  towns = rng.sample(words.TOWNS, NUM_TOWNS)
  countries = rng.sample(words.COUNTRIES, NUM_TOWNS)
  people = [f"{first} {last}" for first, last in
            zip(rng.sample(words.FIRST_NAMES, NUM_PEOPLE),
                rng.sample(words.LAST_NAMES, NUM_PEOPLE))]
  # As in WikiHop's training part, some towns are more frequent than others.
  weights = [math.prod(weight[word] for weight, word in
                       zip(words.TOWN_WORDS, town.split())) for town in towns]
  homes = rng.choices(range(NUM_TOWNS), weights, k=NUM_PEOPLE)
  facts = [[f"{person.title()} lives in {towns[home].title()}."]
           for person, home in zip(people, homes)]
  for town, country in zip(towns, countries):
    fact = [f"{town.title()} is a town in {country.title()}."]
    if rng.random() < 0.5:
      fact.append(rng.choice(words.REMARKS))
    facts.append(fact)
  rng.shuffle(facts)
  conclusions = [f"The country of {person.title()} is "
                 f"{countries[home].title()}."
                 for person, home in zip(people, homes)]
  return [sentence for fact in facts for sentence in fact] + conclusions


def main():
  rng = random.Random(SEED)
  words = load_words()
  text = "\n\n".join("\n".join(make_document(rng, words))
                     for _ in range(NUM_DOCUMENTS)) + "\n"
  (FOLDER / "corpus.txt.gz").write_bytes(
      gzip.compress(text.encode("utf-8"), mtime=0))


if __name__ == "__main__":
  main()
