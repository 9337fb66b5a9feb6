#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of OpenKP.

    demo.py chance GOLD             the F1@3 of guessing among the names
    demo.py show GOLD PREDICTIONS   three pages with what was predicted
"""

import json
import sys

KEY_PHRASES = 3


def read(path):
  with open(path, encoding="utf-8") as file:
    return [json.loads(line) for line in file]


def chance(records):
  """Who knows the names of a page but not which of them are its key phrases.
  All pieces have one but the title and two of the menu."""
  shares = [KEY_PHRASES / (len(json.loads(r["VDOM"])) - 3) for r in records]
  return sum(shares) / len(shares)


def look(feature):
  column = "main column" if feature[0] < 1000 else "beside it"
  return f"{column}, {'bold' if feature[9] else 'plain'}"


def show(records, predictions):
  phrases = {p["url"]: p["KeyPhrases"] for p in predictions}
  for record in records[:3]:
    print(f"  {record['url']}")
    first = [" ".join(words) for words in phrases[record["url"]][:KEY_PHRASES]]
    gold = [" ".join(words) for words in record["KeyPhrases"]]
    print(f"    predicted  {', '.join(first)}")
    print(f"    gold       {', '.join(gold)}")
    for element in json.loads(record["VDOM"]):
      if any(f" {phrase} " in f" {element['text']} " for phrase in first + gold):
        print(f"    page       {element['text']}  ({look(element['feature'])})")


def main():
  records = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(records):.4f}")
  else:
    show(records, read(sys.argv[3]))


if __name__ == "__main__":
  main()
