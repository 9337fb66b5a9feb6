#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of classify.

    demo.py chance GOLD             the share of the most frequent outcome
    demo.py show GOLD PREDICTIONS   three reports with what was predicted
"""

import collections
import csv
import gzip
import json
import sys


def read(path):
  with gzip.open(path, "rt", encoding="utf-8", newline="") as file:
    return list(csv.DictReader(file))


def chance(records):
  outcomes = collections.Counter(record["outcome"] for record in records)
  return max(outcomes.values()) / len(records)


def show(records, predictions):
  for record in records[:3]:
    text = record["text"].replace("\n", " ")
    appeal = text.index("On appeal")
    prediction = predictions[record["id"]]
    print(f"  {record['id']}, {record['title']}")
    print(f"    predicted  {prediction['label']}, probability "
          f"{prediction['probabilities'][prediction['label']]:.2f}")
    print(f"    gold       {record['outcome']}")
    print(f"    word 1     {text[:text.index('.') + 1]}")
    print(f"    word {len(text[:appeal].split()) + 1:<5} "
          f"{text[appeal:text.index('.', appeal) + 1]}")


def main():
  records = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(records):.4f}")
  else:
    with open(sys.argv[3], encoding="utf-8") as file:
      predictions = [json.loads(line) for line in file]
    show(records, {prediction["id"]: prediction for prediction in predictions})


if __name__ == "__main__":
  main()
