#!/usr/bin/env python3
"""Writes the bundled sample: train.json, dev.json and vocab.txt.

The questions are in WikiHop's format. Each is a world of its own: one document
says in which town a person lives, five say in which country a town lies, and
none says both.

    country_of mira dolan
    Mira Dolan lives in North Haven.  +  North Haven is a town in Karsia.

All names are invented. Every candidate occurs in one document, in the same
words as the others. Which country a town lies in is drawn anew for each
instance, so there is nothing to memorise; answers are spread evenly over the
countries and over the places in the list of candidates. Chance is 0.2, and no
document alone, nor all those about towns together, gives more.

Towns share words (North Haven, South Haven, North Bridge), so both have to be
read. In train.json most people live in the north, and most in a place called
Haven; in dev.json all towns are equally frequent. If they were so in train.json
too, no single step of the way from person to town to country would be of use
before all others are known, and a model that starts from random weights would
take very long to find it. To know the favourites does not help with dev.json.

Plain Python 3, no arguments; the same bytes at every run:

    python3 tasks/wikihop/sample/generate.py
"""

import itertools
import json
import pathlib
import random

SEED = 20240521
NUM_TRAIN = 1000
NUM_DEV = 200
NUM_CANDIDATES = 5

FIRST_NAMES = """mira odo lenka tarv isolt brenn quill sanna edrik yola fenn
 orla davin tamsa rurik elwy""".split()
LAST_NAMES = """dolan verrick ashgrove tolm brandel korsky mayle ostrin pelham
 quade rennick sarno thule umber wexley yarrow""".split()
COUNTRIES = """karsia belmora tundria ostvale navoria qarath zemland ilvania
 dorrim falken merova sulien""".split()
# With the weights of the two words of a person's town in train.json.
TOWN_WORDS = [{"north": 14, "south": 3, "east": 3}, {"haven": 3, "bridge": 1}]
TOWNS = [" ".join(words) for words in itertools.product(*TOWN_WORDS)]
# Follows every second fact about a town.
REMARKS = ["It is small.", "It lies on a river.", "The town is old."]

# Words of no name, and the tokens that BERT's vocabulary begins with. WikiHop
# uses ids 1, 3, 4 and 5 for global tokens.
WORDS = """_ . a country in is it lies lives of old on river small the
 town""".split()
SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[unused2]", "[unused3]",
           "[unused4]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def balanced(rng, values, count):
  """`count` draws in which all `values` are equally frequent, up to one."""
  draws = [values[i % len(values)] for i in range(count)]
  rng.shuffle(draws)
  return draws


def make_instance(rng, instance_id, home, answer, position):
  """One question; `answer` stands at `position` among the candidates."""
  candidates = rng.sample([c for c in COUNTRIES if c != answer],
                          NUM_CANDIDATES - 1)
  candidates.insert(position, answer)
  towns = rng.sample([t for t in TOWNS if t != home], NUM_CANDIDATES - 1)
  towns.insert(position, home)
  person = f"{rng.choice(FIRST_NAMES)} {rng.choice(LAST_NAMES)}"
  supports = [f"{person.title()} lives in {home.title()}."]
  for town, country in zip(towns, candidates):
    support = f"{town.title()} is a town in {country.title()}."
    if rng.random() < 0.5:
      support += " " + rng.choice(REMARKS)
    supports.append(support)
  rng.shuffle(supports)
  return {
      "id": instance_id,
      "query": f"country_of {person}",
      "answer": answer,
      "candidates": candidates,
      "supports": supports,
  }


def favourite_homes(rng, count):
  """`count` towns whose words are drawn by their weights."""
  return [" ".join(rng.choices(list(words), list(words.values()))[0]
                   for words in TOWN_WORDS) for _ in range(count)]


def make_split(rng, name, homes):
  answers = balanced(rng, COUNTRIES, len(homes))
  positions = balanced(rng, range(NUM_CANDIDATES), len(homes))
  return [make_instance(rng, f"SAMPLE_{name}_{i}", homes[i], answers[i],
                        positions[i]) for i in range(len(homes))]


def main():
  folder = pathlib.Path(__file__).resolve().parent
  rng = random.Random(SEED)
  for name, homes in (("train", favourite_homes(rng, NUM_TRAIN)),
                      ("dev", balanced(rng, TOWNS, NUM_DEV))):
    # One array on one line, as in the official files.
    text = json.dumps(make_split(rng, name, homes), separators=(",", ":"))
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
  towns = [word for words in TOWN_WORDS for word in words]
  words = SPECIAL + WORDS + FIRST_NAMES + LAST_NAMES + towns + COUNTRIES
  assert len(words) == len(set(words))
  (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


if __name__ == "__main__":
  main()
