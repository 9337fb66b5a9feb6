#!/usr/bin/env python3
"""What tasks/demo.sh prints about the sample of Natural Questions.

    demo.py chance GOLD             the F1 of guessing among the facts
    demo.py show GOLD PREDICTIONS   three questions with what was predicted
"""

import json
import sys

NEEDED_ANNOTATORS = 2


def read(path):
  with open(path, encoding="utf-8") as file:
    return [json.loads(line) for line in file]


def facts(record):
  """Candidates that say something of one thing: paragraphs, tables, items."""
  tokens = record["document_tokens"]
  return [c for c in record["long_answer_candidates"]
          if tokens[c["start_token"]]["token"] in ("<P>", "<Table>", "<Li>")]


def is_answered(record):
  marked = [a for a in record["annotations"]
            if a["long_answer"]["start_token"] >= 0]
  return len(marked) >= NEEDED_ANNOTATORS


def chance(records):
  """F1 of who gives one of the facts of each page, at best knowing which pages
  have the answer: precision and recall are the share of one fact."""
  shares = [1 / len(facts(r)) for r in records if is_answered(r)]
  return sum(shares) / len(shares)


def text(record, span):
  """The words of a span of the page."""
  tokens = record["document_tokens"][span["start_token"]:span["end_token"]]
  return " ".join(t["token"] for t in tokens if not t["html_token"])


def said(record, answer):
  """An annotation or a prediction in words: the short and the long answer."""
  yes_no = answer["yes_no_answer"].lower()
  short = [text(record, s) for s in answer["short_answers"]]
  if yes_no != "none":
    short = [yes_no]
  if answer["long_answer"]["start_token"] < 0:
    return "no answer"
  return (f"{', '.join(short) or '(no short answer)'}"
          f"  ({text(record, answer['long_answer'])})")


def most_common(record):
  """What most annotators say."""
  all_said = [said(record, a) for a in record["annotations"]]
  return max(all_said, key=all_said.count)


def show(records, predictions):
  by_id = {p["example_id"]: p for p in predictions["predictions"]}
  for record in records[:3]:
    prediction = by_id[record["example_id"]]
    print(f"  {record['question_text']}")
    print(f"    predicted  {said(record, prediction)}")
    print(f"    gold       {most_common(record)}")


def main():
  records = read(sys.argv[2])
  if sys.argv[1] == "chance":
    print(f"{chance(records):.4f}")
    return
  with open(sys.argv[3], encoding="utf-8") as file:
    show(records, json.load(file))


if __name__ == "__main__":
  main()
