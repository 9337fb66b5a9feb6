#!/usr/bin/env python3
"""Compares the scores of the task tokens with PyPI's seqeval.

  python3 tests/random_spans.py [BUILD [CASES]]  # default: build/release 1000

Each case is a CoNLL file of random labels and one of random predictions for its
words: few documents and many, of one sentence or several, labels that make no
sense (I- without B-, E- and S- among them, another label in the middle), types
with a hyphen and beyond ASCII, files without any span. In turns the gold is good
IOB2, read by the default `tokens.tags`, odd labels for "conlleval", and both for
"strict_iob2" and "strict_iobes". Precision, recall and F1, those of each type
and their support should be those of seqeval's default mode, and of its mode
"strict" with the schemes IOB2 and IOBES; none should be missing.
tasks_run_task_test scores all cases in one process, with predictions as JSON
lines with spans in the place of labels, too; the first cases are scored by the
program as well.

Ends with 77, after saying why, where Python has no seqeval.
"""
import importlib.metadata
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import warnings

try:
  from seqeval import scheme as schemes
  from seqeval.metrics import sequence_labeling
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
TOLERANCE = 1e-12
READINGS = ("iob2", "conlleval", "strict_iob2", "strict_iobes")
SCHEMES = {"strict_iob2": schemes.IOB2, "strict_iobes": schemes.IOBES}
TYPES = ("PER", "B-LOC", "org", "caf\u00e9", "\u6771")


def odd_tags(draws, size, types, prefixes):
  share = draws.choice((0.1, 0.5, 0.9))
  return [f"{draws.choice(prefixes)}-{draws.choice(types)}"
          if draws.random() < share else "O" for _ in range(size)]


def good_tags(draws, size, types, prefixes):
  tags = []
  while len(tags) < size:
    if draws.random() < 0.5:
      tags.append("O")
    else:
      label = draws.choice(types)
      span = [f"B-{label}"] + [f"I-{label}"] * draws.choice((0, 0, 1, 3))
      if prefixes == "BIES":
        span[-1] = ("E" if len(span) > 1 else "S") + span[-1][1:]
      tags += span
  tags = tags[:size]
  return tags


def changed(draws, tags, types, prefixes):
  """Predictions that are nearly right, or odd."""
  rate = draws.choice((0, 0.1, 0.4, 1))
  return [odd_tags(draws, 1, types, prefixes)[0] if draws.random() < rate
          else tag for tag in tags]


def conll(documents):
  """Documents of sentences of tags; one of a single sentence has no marks."""
  lines = []
  for sentences in documents:
    lines.append("-DOCSTART- O\n\n")
    for sentence in sentences:
      lines += [f"w{i} {tag}\n" for i, tag in enumerate(sentence)]
      lines.append("\n")
  return "".join(lines)


def entities_of(tags, scheme):
  """(type, first, last) of a sentence; by the default mode without a scheme."""
  if scheme is None:
    return sequence_labeling.get_entities(tags)
  return [(entity.tag, entity.start, entity.end - 1)
          for entity in schemes.Entities([tags], scheme).entities[0]]


def expected_scores(gold, predicted, scheme):
  """seqeval's, of lists of sentences."""
  options = {} if scheme is None else {"mode": "strict", "scheme": scheme}

  def value(metric, average):
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # of 0 / 0, which is 0
      return metric(gold, predicted, average=average, zero_division=0,
                    **options)

  metrics = {"precision": sequence_labeling.precision_score,
             "recall": sequence_labeling.recall_score,
             "f1": sequence_labeling.f1_score}
  expected = {name: float(value(metric, "micro"))
              for name, metric in metrics.items()}
  entities = [[entity for tags in sentences
               for entity in entities_of(tags, scheme)]
              for sentences in (gold, predicted)]
  types = sorted({entity[0] for found in entities for entity in found})
  if types:
    for name, metric in metrics.items():
      for label, score in zip(types, value(metric, None), strict=True):
        expected[f"{name}[{label}]"] = float(score)
  for label in types:
    expected[f"support[{label}]"] = sum(
        entity[0] == label for entity in entities[0])
  return expected


def spans_of(document, scheme):
  """The spans of a document's text, by seqeval, as our prediction files."""
  spans, begin = [], 0
  for sentence in document:
    ends = []
    for i in range(len(sentence)):
      ends.append((begin, begin + len(f"w{i}")))
      begin = ends[-1][1] + 1
    spans += [{"start": ends[first][0], "end": ends[last][1], "label": label}
              for label, first, last in entities_of(sentence, scheme)]
  return spans


def make_case(number):
  draws = random.Random(number)
  reading = READINGS[number % len(READINGS)]
  is_good = reading == "iob2" or (reading != "conlleval" and
                                  draws.random() < 0.5)
  types = TYPES[:draws.randint(1, len(TYPES))]
  prefixes = {"strict_iob2": "BI", "strict_iobes": "BIES"}.get(
      reading, draws.choice(("BI", "BIES")))
  gold = []
  for _ in range(draws.choice((1, 2, 5, 30))):
    gold.append([])
    for _ in range(draws.choice((1, 1, 3))):
      size = draws.randint(1, 12)
      gold[-1].append(good_tags(draws, size, types, "BI" if reading == "iob2"
                                else prefixes) if is_good else
                      odd_tags(draws, size, types, prefixes))
  predicted = [[changed(draws, tags, types, prefixes) for tags in sentences]
               for sentences in gold]
  return gold, predicted, reading


def flat(documents):
  return [sentence for document in documents for sentence in document]


def write_case(number, folder):
  gold, predicted, reading = make_case(number)
  scheme = SCHEMES.get(reading)
  own = folder / str(number)
  own.mkdir()
  (own / "gold.conll").write_text(conll(gold), encoding="utf-8")
  (own / "predicted.conll").write_text(conll(predicted), encoding="utf-8")
  (own / "predicted.jsonl").write_text("".join(
      json.dumps({"id": str(i), "spans": spans_of(document, scheme)}) + "\n"
      for i, document in enumerate(predicted)))
  (own / "config.json").write_text(json.dumps(
      {"task": "tokens", "model": {"preset": "bert_base"},
       "tokens": {} if reading == "iob2" else {"tags": reading}}))
  return expected_scores(flat(gold), flat(predicted), scheme)


def case_of(number, predictions):
  return {"task": "tokens", "gold": f"{number}/gold.conll",
          "predictions": f"{number}/{predictions}",
          "config": f"{number}/config.json", "as_official": False}


def check(what, found, expected):
  if set(found) != set(expected):
    sys.exit(f"{what}: metrics are {sorted(found)}, not {sorted(expected)}")
  for name, value in expected.items():
    if not abs(found[name] - value) <= TOLERANCE:
      sys.exit(f"{what}: {name} is {found[name]!r}, not {value!r}")


def main():
  build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                       ROOT / "build/release").resolve()
  count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    expected = [write_case(number, folder) for number in range(count)]
    files = ("predicted.conll", "predicted.jsonl")
    (folder / "cases.json").write_text(json.dumps(
        [case_of(number, file) for file in files for number in range(count)]))
    subprocess.run(
        [build / "tests/tasks_run_task_test",
         "--gtest_filter=RandomMetricsTest.*"], check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "ETC_RANDOM_METRICS": name})
    scores = json.loads((folder / "scores.json").read_text())
    for number, found in enumerate(scores):
      check(f"case {number % count}, {files[number // count]}", found,
            expected[number % count])
    for number, reading in enumerate(READINGS[:count]):
      case = case_of(number, files[0])
      for options in (["--config", case["config"]],
                      ["--set", f"tokens.tags={reading}"]):
        printed = json.loads(subprocess.run(
            [build / "bin/realetc", "score", "tokens", case["gold"],
             case["predictions"], *options, "--json"],
            cwd=folder, check=True, stdout=subprocess.PIPE).stdout)
        check(f"the program with {options}", printed, expected[number])
  values = sum(len(values) for values in expected)
  print(f"{count} cases, {values} values: equal to those of seqeval "
        f"{importlib.metadata.version('seqeval')}")


if __name__ == "__main__":
  main()
