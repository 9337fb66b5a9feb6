#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of tokens.

    demo.py chance GOLD             F1 of the most frequent label for each name
    demo.py show GOLD PREDICTIONS   three reports with what was found in them
"""

import collections
import json
import sys


def read(path):
  with open(path, encoding="utf-8") as file:
    return [json.loads(line) for line in file]


def chance(records):
  """All names are found, so precision and recall are the same share."""
  labels = collections.Counter(span["label"] for record in records
                               for span in record["spans"])
  return max(labels.values()) / sum(labels.values())


def show(records, predictions):
  for record in records[:3]:
    text = record["text"]
    gold = {(span["start"], span["end"]): span["label"]
            for span in record["spans"]}
    print(f"  {record['id']}: {len(text.split())} words, {len(gold)} names")
    found = predictions[record["id"]]
    for span in found[:3] + found[-2:]:
      begin = text.rfind(" ", 0, max(0, span["start"] - 24)) + 1
      right = gold.get((span["start"], span["end"]))
      print(f"    {span['start']:5}-{span['end']:<5} {span['label']:<7} "
            f"gold {right or 'none':<7} "
            f"{text[begin:span['start']]}[{text[span['start']:span['end']]}]"
            .replace("\n", " "))


def main():
  records = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(records):.4f}")
  else:
    show(records, {prediction["id"]: prediction["spans"]
                   for prediction in read(sys.argv[3])})


if __name__ == "__main__":
  main()
