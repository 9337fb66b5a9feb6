#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of WikiHop.

    demo.py chance GOLD             the accuracy of guessing
    demo.py show GOLD PREDICTIONS   three questions with what was predicted
"""

import json
import sys


def read(path):
  with open(path, encoding="utf-8") as file:
    return json.load(file)


def chance(records):
  return sum(1 / len(r["candidates"]) for r in records) / len(records)


def show(records, predictions):
  for record in records[:3]:
    print(f"  {record['query'].replace('_', ' ')}?")
    print(f"    predicted  {predictions[record['id']]}")
    print(f"    gold       {record['answer']}, of "
          f"{', '.join(record['candidates'])}")
    for support in record["supports"]:
      print(f"    document   {support}")


def main():
  records = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(records):.4f}")
  else:
    show(records, read(sys.argv[3]))


if __name__ == "__main__":
  main()
