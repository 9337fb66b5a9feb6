#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of classify.

    demo.py chance GOLD             the accuracy of guessing
    demo.py show GOLD PREDICTIONS   three texts with what was predicted
"""

import json
import sys


def read(path):
  with open(path, encoding="utf-8") as file:
    return [json.loads(line) for line in file]


def chance(records):
  return 1 / len({record["label"] for record in records})


def show(records, predictions):
  labels = {p["id"]: p["label"] for p in predictions}
  for record in records[:3]:
    print(f"  {record['id']}")
    print(f"    predicted  {labels[record['id']]}")
    print(f"    gold       {record['label']}")
    for key in ("text", "text_b"):
      if key in record:
        print(f"    {key:<10} {record[key]}")


def main():
  records = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(records):.4f}")
  else:
    show(records, read(sys.argv[3]))


if __name__ == "__main__":
  main()
