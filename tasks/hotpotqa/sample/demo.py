#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of HotpotQA.

    demo.py chance GOLD             the joint F1 of guessing
    demo.py show GOLD PREDICTIONS   three questions with what was predicted
"""

import json
import sys


def read(path):
  with open(path, encoding="utf-8") as file:
    return json.load(file)


def chance(records):
  """Mean joint F1 of who knows the person's sentence and guesses the town.

  The right town: answer and facts are right. A wrong one: one fact of two is
  right, and the answer to a yes/no question is right half of the time.
  """
  total = 0
  for record in records:
    right = 1 / (len(record["context"]) - 1)
    if record["answer"] in ("yes", "no"):
      total += right * 0.5 + (1 - right) * 0.5 * 0.5
    else:
      total += right
  return total / len(records)


def sentence(record, fact):
  title, number = fact
  for paragraph_title, sentences in record["context"]:
    if paragraph_title == title and number < len(sentences):
      return sentences[number].strip()
  return "(no such sentence)"


def show(records, predictions):
  for record in records[:3]:
    print(f"  {record['question']}")
    print(f"    predicted  {predictions['answer'][record['_id']]}")
    print(f"    gold       {record['answer']}")
    for fact in predictions["sp"][record["_id"]]:
      mark = "right" if fact in record["supporting_facts"] else "wrong"
      print(f"    because    {sentence(record, fact)}  ({mark})")
    for fact in record["supporting_facts"]:
      if fact not in predictions["sp"][record["_id"]]:
        print(f"    missed     {sentence(record, fact)}")


def main():
  records = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(records):.4f}")
  else:
    show(records, read(sys.argv[3]))


if __name__ == "__main__":
  main()
