#!/usr/bin/env python3
"""Writes the bundled sample: train.json, dev.json and vocab.txt.

The files are in the format of SQuAD v2.0. Each paragraph says of some people in
which town they live, in sentences of two kinds and any order:

    Mira lives in North Haven. The town of Odo is Karsia.

A question names a person:

    Where does Mira live?       North Haven
    Where does Lenka live?      no answer, if the paragraph does not name her

Towns are drawn anew for each paragraph, so there is nothing to memorise, and who
does not read the question finds one town among four or more. Some people are
asked for more often: small models find out sooner what questions are for. One
paragraph in eight is so long that it needs two windows. One question in four has
no answer.

In dev.json three people answered, some of them with a word too much ("in
Karsia"), as in the official file.

Plain Python 3, no arguments; the same bytes at every run:

    python3 tasks/squad/sample/generate.py
"""

import hashlib
import json
import pathlib
import random

SEED = 20240715
NUM_TRAIN = 700
NUM_DEV = 40
QUESTIONS = 4
FACTS = 4
FACTS_OF_LONG_PARAGRAPHS = 7
PARAGRAPHS_OF_AN_ARTICLE = 10

# How often each is asked for.
PEOPLE = {"Mira": 5, "Odo": 4, "Lenka": 3, "Tarv": 2, "Isolt": 1, "Brenn": 1,
          "Quill": 1, "Sanna": 1}
# The vocabulary has them without accents, the text with.
TOWNS = """Karsia Belmora Tundria Ostvåle Navoria Qarath Zémland Ilvania
 Dorrim Falken Merova Sulien""".split()
TOWNS += [f"{first} {last}" for first in ("North", "South")
          for last in ("Haven", "Bridge")]
SENTENCES = ["{person} lives in {town}.", "The town of {person} is {town}."]
WORDS = """. ? lives in the town of is where does live""".split()
SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[unused2]", "[UNK]", "[CLS]",
           "[SEP]"]
FOLDER = pathlib.Path(__file__).resolve().parent


def make_context(rng, facts):
  """The text, and of each person where the town begins in it."""
  context = ""
  starts = {}
  for person, town in facts:
    sentence = rng.choice(SENTENCES)
    context += " " if context else ""
    starts[person] = len(context) + sentence.format(
        person=person, town="{town}").index("{town}")
    context += sentence.format(person=person, town=town)
  return context, starts


def make_answers(rng, context, town, start, num_annotators):
  answers = []
  for annotator in range(num_annotators):
    # The first one, whose answer training would take, marks it right.
    wider = annotator > 0 and rng.random() < 0.2
    begin = context.rindex(" ", 0, start - 1) + 1 if wider else start
    answers.append({"text": context[begin:start + len(town)],
                    "answer_start": begin})
  return answers


def ask_for(rng, people):
  return rng.choices(people, [PEOPLE[person] for person in people])[0]


def make_paragraph(rng, name, is_long, num_annotators):
  count = FACTS_OF_LONG_PARAGRAPHS if is_long else FACTS
  people = rng.sample(list(PEOPLE), count)
  facts = list(zip(people, rng.sample(TOWNS, count)))
  context, starts = make_context(rng, facts)
  questions = []
  for number in range(QUESTIONS):
    is_impossible = number == 0
    person = ask_for(rng, [name for name in PEOPLE
                           if (name in starts) != is_impossible])
    key = hashlib.sha256(f"{name}.{number}".encode()).hexdigest()[:24]
    questions.append({
        "id": key,
        "question": f"Where does {person} live?",
        "answers": [] if is_impossible else make_answers(
            rng, context, dict(facts)[person], starts[person], num_annotators),
        "is_impossible": is_impossible})
  return {"context": context, "qas": questions}


def write(name, num_paragraphs, num_annotators, rng):
  paragraphs = [make_paragraph(rng, f"{name}.{i}", i % 8 == 7, num_annotators)
                for i in range(num_paragraphs)]
  articles = [{"title": f"Towns_{first // PARAGRAPHS_OF_AN_ARTICLE}",
               "paragraphs": paragraphs[first:first + PARAGRAPHS_OF_AN_ARTICLE]}
              for first in range(0, num_paragraphs, PARAGRAPHS_OF_AN_ARTICLE)]
  text = json.dumps({"version": "v2.0", "data": articles},
                    separators=(",", ":"), ensure_ascii=False)
  (FOLDER / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def write_vocabulary():
  plain = [word.lower().replace("å", "a").replace("é", "e")
           for name in [*PEOPLE, *TOWNS] for word in name.split()]
  words = WORDS + sorted(set(plain))
  (FOLDER / "vocab.txt").write_text("\n".join(SPECIAL + words) + "\n",
                                    encoding="utf-8")


def main():
  rng = random.Random(SEED)
  write("train", NUM_TRAIN, 1, rng)
  write("dev", NUM_DEV, 3, rng)
  write_vocabulary()


if __name__ == "__main__":
  main()
