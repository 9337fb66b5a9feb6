#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of glue.

    demo.py chance GOLD             the accuracy of the more frequent label
    demo.py show GOLD PREDICTIONS   three pairs with what was predicted
"""

import collections
import sys


def read(path):
  with open(path, encoding="utf-8-sig") as file:
    return [line.rstrip("\n").split("\t") for line in file][1:]


def chance(rows):
  counts = collections.Counter(row[0] for row in rows)
  return max(counts.values()) / len(rows)


def show(rows, predictions):
  for row, (index, label) in list(zip(rows, predictions))[:3]:
    print(f"  {index}")
    print(f"    predicted  {label}")
    print(f"    gold       {row[0]}")
    print(f"    first      {row[3]}")
    print(f"    second     {row[4]}")


def main():
  rows = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(rows):.4f}")
  else:
    show(rows, read(sys.argv[3]))


if __name__ == "__main__":
  main()
