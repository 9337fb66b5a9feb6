#!/usr/bin/env python3
"""Writes the bundled sample: train.json, dev.json and vocab.txt.

The questions are in HotpotQA's format. Each is a world of its own: a paragraph
about a person says in which town that person lives, one about the town in which
country it lies, and none says both.

    In which country does Mira live?
    [Mira] Mira lives in North Haven. She is a baker.
    [North Haven] North Haven is a town in Karsia. It lies on a river.
    -> Karsia; supporting facts [Mira, 0], [North Haven, 0]

One question in ten asks "Does Mira live in Karsia?", yes or no. The context has
five more towns. All names are invented. Which country a town lies in is drawn
anew for each question, so there is nothing to memorise, and the order of
paragraphs and of the two sentences in each is random. Who knows the person's
sentence and guesses the town has a joint F1 below 0.2.

Towns share words (North Haven, South Haven, North Bridge), so both have to be
read. In train.json more people live in the north, and in places called Haven,
in dev.json all towns are equally frequent (see the sample of WikiHop for the
reason).

Plain Python 3, no arguments; the same bytes at every run:

    python3 tasks/hotpotqa/sample/generate.py
"""

import itertools
import json
import pathlib
import random

SEED = 20240607
NUM_TRAIN = 1000
NUM_DEV = 200
NUM_TOWNS = 6
SHARE_OF_YES_NO = 0.1

PEOPLE = """Mira Odo Lenka Tarv Isolt Brenn Quill Sanna Edrik Yola Fenn Orla
 Davin Tamsa Rurik Elwy""".split()
# The vocabulary has them without accents, the text with.
COUNTRIES = """Karsia Belmora Tundria Ostvåle Navoria Qarath Zémland Ilvania
 Dorrim Falken Merova Sulien""".split()
# With the weights of the two words of a person's town in train.json.
TOWN_WORDS = [{"North": 8, "South": 3, "East": 3, "West": 3},
              {"Haven": 3, "Bridge": 2}]
TOWNS = [" ".join(words) for words in itertools.product(*TOWN_WORDS)]
TRADES = "baker painter teacher farmer".split()
REMARKS = ["It is small.", "It lies on a river.", "The town is old.",
           "It has a market."]

# Words of no name.
WORDS = """. ? a country does has in is it lies lives live market of old on
 river she small the town which""".split()
# BERT's vocabulary has [UNK] in line 100 and [CLS] in line 101, from 0.
CLS = 101


def paragraph(rng, title, fact, remark):
  """A paragraph of two sentences in random order, and the fact's number."""
  sentences = [fact, remark]
  rng.shuffle(sentences)
  number = sentences.index(fact)
  return [title, [sentences[0], " " + sentences[1]]], number


def make_question(rng, question_id, home, answer, yes_no):
  """A question about a person who lives in `home`, in the country `answer`."""
  others = rng.sample([c for c in COUNTRIES if c != answer], NUM_TOWNS - 1)
  towns = rng.sample([t for t in TOWNS if t != home], NUM_TOWNS - 1)
  person = rng.choice(PEOPLE)
  text, number = paragraph(rng, person, f"{person} lives in {home}.",
                           f"She is a {rng.choice(TRADES)}.")
  context = [text]
  facts = [[person, number]]
  for town, country in zip([home] + towns, [answer] + others):
    text, number = paragraph(rng, town, f"{town} is a town in {country}.",
                             rng.choice(REMARKS))
    context.append(text)
    facts.append([town, number])
  question = f"In which country does {person} live?"
  if yes_no:
    asked = answer if yes_no == "yes" else rng.choice(others)
    question = f"Does {person} live in {asked}?"
  rng.shuffle(context)
  return {
      "_id": question_id,
      "question": question,
      "answer": yes_no or answer,
      "supporting_facts": [facts[0], facts[1]],
      "context": context,
      "type": "comparison" if yes_no else "bridge",
      "level": "easy",
  }


def balanced(rng, values, count):
  """`count` draws in which all `values` are equally frequent, up to one."""
  draws = [values[i % len(values)] for i in range(count)]
  rng.shuffle(draws)
  return draws


def favourite_homes(rng, count):
  """`count` towns whose words are drawn by their weights."""
  return [" ".join(rng.choices(list(words), list(words.values()))[0]
                   for words in TOWN_WORDS) for _ in range(count)]


def make_split(rng, name, homes):
  count = len(homes)
  answers = balanced(rng, COUNTRIES, count)
  num_yes_no = round(SHARE_OF_YES_NO * count)
  kinds = (["yes", "no"] * num_yes_no)[:num_yes_no]
  kinds += [""] * (count - num_yes_no)
  rng.shuffle(kinds)
  return [make_question(rng, f"SAMPLE_{name}_{i}", homes[i], answers[i],
                        kinds[i]) for i in range(count)]


def write_vocabulary(path):
  names = PEOPLE + [word for words in TOWN_WORDS for word in words]
  countries = [c.replace("å", "a").replace("é", "e") for c in COUNTRIES]
  words = WORDS + TRADES + [n.lower() for n in names + countries]
  assert len(words) == len(set(words))
  # Unused lines keep [CLS] where BERT has it.
  lines = ["[PAD]"] + [f"[unused{i}]" for i in range(99)]
  lines += ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  assert lines[CLS] == "[CLS]"
  path.write_text("\n".join(lines + words) + "\n", encoding="utf-8")


def main():
  folder = pathlib.Path(__file__).resolve().parent
  rng = random.Random(SEED)
  for name, homes in (("train", favourite_homes(rng, NUM_TRAIN)),
                      ("dev", balanced(rng, TOWNS, NUM_DEV))):
    # One array on one line, as in the official files.
    text = json.dumps(make_split(rng, name, homes), separators=(",", ":"),
                      ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")
  write_vocabulary(folder / "vocab.txt")


if __name__ == "__main__":
  main()
