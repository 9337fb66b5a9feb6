#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of squad.

    demo.py chance GOLD             the F1 of never answering, in percent
    demo.py show GOLD PREDICTIONS   three questions with what was predicted
"""

import json
import sys


def read(path):
  with open(path, encoding="utf-8") as file:
    return json.load(file)


def questions(gold):
  return [(paragraph["context"], question) for article in gold["data"]
          for paragraph in article["paragraphs"]
          for question in paragraph["qas"]]


def chance(gold):
  """More than a town by chance has, of the four or more that there are."""
  impossible = [q["is_impossible"] for _, q in questions(gold)]
  return 100 * sum(impossible) / len(impossible)


def show(gold, predictions):
  for context, question in questions(gold)[:3]:
    answers = sorted({answer["text"] for answer in question["answers"]})
    print(f"  {question['question']}")
    print(f"    predicted  {predictions[question['id']] or '(no answer)'}")
    print(f"    gold       {' / '.join(answers) or '(no answer)'}")
    print(f"    context    {context}")


def main():
  gold = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(gold):.4f}")
  else:
    show(gold, read(sys.argv[3]))


if __name__ == "__main__":
  main()
