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

Plain Python 3; the same bytes at every run:

    python3 tasks/wikihop/sample/generate.py

With `--hops K FOLDER` it writes files of the same names to FOLDER instead, with
questions (32,000 for training, or as many as `--questions`) that need K of their
5 K - 4 documents, K from 1 to 4:

    country_of mira
    Mira learns from Odo.  +  Odo works for Lenka.  +  Lenka lives in Corvale.
    +  Corvale is a town in Karsia.

As above one document tells of the person asked for; of each further link there are
five, in chains without a common name, so that they say nothing about the answer
until the chain that they belong to is known. In train.json equally many questions
begin at each distance from the country, so that a model can learn one step after
the other; in dev.json all begin K steps away. In train.json the names of the
question's chain are drawn by weights, as people's towns are above and for the same
reason.
"""

import argparse
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

# Chains of documents: what is said of a person or town and the next one of the
# chain, from the country up.
LINKS = ["{} is a town in {}.", "{} lives in {}.", "{} works for {}.",
         "{} learns from {}."]
HOPS_TOWNS = """arden brackmoor corvale dunmere elswick farholt glenby hollin
 ingmere kelder lostock marden""".split()
# Of each link's beginning, from the country up.
HOPS_NAMES = [HOPS_TOWNS, FIRST_NAMES[:10], LAST_NAMES[:10],
              FIRST_NAMES[10:] + LAST_NAMES[10:]]
NUM_HOPS_TRAIN = 32000
NUM_HOPS_DEV = 200

# Words of no name, and the tokens that BERT's vocabulary begins with. WikiHop
# uses ids 1, 3, 4 and 5 for global tokens.
WORDS = """_ . a country in is it lies lives of old on river small the
 town""".split()
HOPS_WORDS = """_ . a country in is lives of town works for learns
 from""".split()
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


def names_with_favourite(rng, names, count, position, weighted):
  """`count` different names; the one at `position` is drawn first, if `weighted`
  with 1 / its place in `names` as its weight."""
  weights = [1 / (i + 1) if weighted else 1 for i in range(len(names))]
  favourite = rng.choices(names, weights)[0]
  drawn = rng.sample([name for name in names if name != favourite], count - 1)
  drawn.insert(position, favourite)
  return drawn


def make_chain_instance(rng, instance_id, start, answer, position, weighted):
  """One question of `--hops`: five chains of `start` documents, of which the
  first is kept of the question's own alone; that ends at `answer`, which stands at
  `position` among the candidates."""
  candidates = rng.sample([c for c in COUNTRIES if c != answer],
                          NUM_CANDIDATES - 1)
  candidates.insert(position, answer)
  levels = [candidates]
  for names in HOPS_NAMES[:start]:
    levels.append(names_with_favourite(rng, names, NUM_CANDIDATES, position,
                                       weighted))
  supports = [
      LINKS[level].format(levels[level + 1][chain].title(),
                          levels[level][chain].title())
      for level in range(start) for chain in range(NUM_CANDIDATES)
      if level < start - 1 or chain == position]
  rng.shuffle(supports)
  return {
      "id": instance_id,
      "query": f"country_of {levels[start][position]}",
      "answer": answer,
      "candidates": candidates,
      "supports": supports,
  }


def make_chains(rng, name, hops, starts):
  answers = balanced(rng, COUNTRIES, len(starts))
  positions = balanced(rng, range(NUM_CANDIDATES), len(starts))
  return [make_chain_instance(rng, f"HOPS_{hops}_{name}_{i}", starts[i], answers[i],
                              positions[i], name == "train")
          for i in range(len(starts))]


def write(folder, splits, words, towns):
  for name, records in splits:
    # One array on one line, as in the official files.
    text = json.dumps(records, separators=(",", ":"))
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
  words = SPECIAL + words + FIRST_NAMES + LAST_NAMES + towns + COUNTRIES
  assert len(words) == len(set(words))
  (folder / "vocab.txt").write_text("\n".join(words) + "\n", encoding="utf-8")


def write_sample(folder):
  rng = random.Random(SEED)
  write(folder, [(name, make_split(rng, name, homes)) for name, homes in (
      ("train", favourite_homes(rng, NUM_TRAIN)),
      ("dev", balanced(rng, TOWNS, NUM_DEV)))], WORDS,
        [word for words_of in TOWN_WORDS for word in words_of])


def write_hops(folder, hops, questions):
  rng = random.Random(SEED)
  write(folder, [(name, make_chains(rng, name, hops, starts))
                 for name, starts in (
                     ("train", balanced(rng, range(1, hops + 1), questions)),
                     ("dev", [hops] * NUM_HOPS_DEV))], HOPS_WORDS, HOPS_TOWNS)


def main():
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("--hops", type=int, choices=range(1, len(LINKS) + 1))
  parser.add_argument("--questions", type=int)
  parser.add_argument("folder", nargs="?", type=pathlib.Path,
                      default=pathlib.Path(__file__).resolve().parent)
  arguments = parser.parse_args()
  if arguments.hops is None:
    if arguments.questions is not None:
      parser.error("--questions goes with --hops")
    write_sample(arguments.folder)
  else:
    if arguments.folder == parser.get_default("folder"):
      parser.error("--hops should have a folder of its own")
    questions = arguments.questions
    write_hops(arguments.folder, arguments.hops,
               NUM_HOPS_TRAIN if questions is None else questions)


if __name__ == "__main__":
  main()
