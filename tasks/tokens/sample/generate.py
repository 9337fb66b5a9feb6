#!/usr/bin/env python3
"""Writes the sample of tokens: train.conll.gz, dev.jsonl, vocab.txt.

  python3 tasks/tokens/sample/generate.py

Invented reports about people, firms or towns: which of them, the beginning
says, and some hundred words later there are names where nothing near tells it
("In march the agent saw Mill."). The same words are no names behind an article
("the mill was old"). So who reads a sentence at a time finds the names, but is
left to guess their labels. Half of the names have two words. Half of the training
reports say again, now and then, what they are about: names are learnt from these
first.

train.conll.gz has words with IOB2 labels, dev.jsonl texts with spans.
"""
import gzip
import json
import pathlib
import random

FOLDER = pathlib.Path(__file__).parent
NAMES = "Mill Lake Stone Field Wood Hill Church Bell Marsh Ford".split()
FIRST = ("New", "Old")
SUBJECTS = {"person": ("people who paint", "painters", "doctors"),
            "firm": ("firms", "companies", "goods of companies"),
            "town": ("towns", "villages", "villages by the river")}
MENTIONS = ("In {month} the {one} saw {name} .",
            "Nobody wrote about {name} in those weeks .",
            "{name} was in the news again , said the {one} .",
            "The letter from {name} was about the {thing} .",
            "The {one} had no answer to {name} , and the {other} saw the "
            "{thing} .")
PEOPLE = "agent neighbour plumber expert builder".split()
THINGS = "roof door window lift garden cellar stairs fence".split()
MONTHS = "january march may july october december".split()
SPECIAL = ["[PAD]", "[unused0]", "[unused1]", "[UNK]", "[CLS]", "[SEP]"]


def filler(draws):
  one, other = draws.sample(PEOPLE, 2)
  here, there = draws.sample(THINGS, 2)
  return draws.choice((
      f"In {draws.choice(MONTHS)} the {one} wrote about the {here} and the "
      f"{there} , and the {other} had no answer .",
      f"The {draws.choice(NAMES).lower()} was old , said the {one} .",
      f"The {one} found a {here} by the {draws.choice(NAMES).lower()} .",
      f"The {here} and the {there} were new , said the {other} ."))


def tagged(sentence, name=None, label=None):
  """The words of a sentence, each with its IOB2 label."""
  words = []
  for word in sentence.split():
    if word == "NAME":
      parts = name.split()
      words.append((parts[0], f"B-{label}"))
      words += [(part, f"I-{label}") for part in parts[1:]]
    else:
      words.append((word, "O"))
  return words


def report(draws, size, reminders=0.0):
  """Sentences of words with labels: three, then `size`, before each of which the
  subject is named again with the probability `reminders`."""
  label = draws.choice(sorted(SUBJECTS))
  sentences = [tagged(f"This report is about {subject} .")
               for subject in draws.sample(SUBJECTS[label], 3)]
  for _ in range(size):
    if draws.random() < reminders:
      sentences.append(tagged(
          f"This report is about {draws.choice(SUBJECTS[label])} ."))
    if draws.random() < 0.75:
      name = draws.choice(NAMES)
      if draws.random() < 0.5:
        name = f"{draws.choice(FIRST)} {name}"
      one, other = draws.sample(PEOPLE, 2)
      sentences.append(tagged(draws.choice(MENTIONS).format(
          name="NAME", month=draws.choice(MONTHS), one=one, other=other,
          thing=draws.choice(THINGS)), name, label))
    else:
      sentences.append(tagged(filler(draws)))
  return sentences


def conll(reports):
  lines = []
  for sentences in reports:
    lines.append("-DOCSTART- O\n\n")
    for sentence in sentences:
      lines += [f"{word} {label}\n" for word, label in sentence]
      lines.append("\n")
  return "".join(lines)


def record(number, sentences):
  """A text as people write it, and its spans."""
  text, spans = "", []
  for i, sentence in enumerate(sentences):
    for j, (word, label) in enumerate(sentence):
      if text and word not in ".,":
        text += "\n" if j == 0 and i % 5 == 0 else " "
      start = len(text)
      text += word
      if label.startswith("B-"):
        spans.append({"start": start, "end": len(text), "label": label[2:]})
      elif label.startswith("I-"):
        spans[-1]["end"] = len(text)
  return {"id": f"report-{number}", "text": text, "spans": spans}


def main():
  draws = random.Random(1)
  train = [report(draws, draws.choice((1, 3, 6, 10, 15, 20)),
                  reminders=draws.choice((0.0, 0.5)))
           for _ in range(900)]
  dev = [report(draws, draws.randint(15, 25)) for _ in range(60)]
  with open(FOLDER / "train.conll.gz", "wb") as file:
    # The same bytes whenever this is run.
    with gzip.GzipFile(filename="", fileobj=file, mode="wb", mtime=0) as packed:
      packed.write(conll(train).encode())
  with open(FOLDER / "dev.jsonl", "w", encoding="utf-8") as file:
    for number, sentences in enumerate(dev):
      file.write(json.dumps(record(number, sentences)) + "\n")
  words = {word.lower() for sentences in train + dev for sentence in sentences
           for word, _ in sentence}
  (FOLDER / "vocab.txt").write_text("\n".join(SPECIAL + sorted(words)) + "\n")


if __name__ == "__main__":
  main()
