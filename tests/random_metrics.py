#!/usr/bin/env python3
"""Compares our metrics with scikit-learn's, SciPy's and SQuAD's scripts'.

  python3 tests/random_metrics.py [BUILD [CASES]]  # default: build/release 1000

Each case is a file of random answers and one of random predictions, of the
tasks glue, classify and squad in turns: few rows and many, rare classes, ties,
only one class, texts that normalize to nothing. All metrics should be those of
the other implementation, and none should be missing. tasks_run_task_test scores
them all in one process, since a start of the program takes longer than a case;
the first of each kind is scored by the program too.

scikit-learn and SciPy say what GLUE's and our own documents' metrics are. The
official evaluation scripts of SQuAD are no package; their functions stand here
as doc/squad.md 9 and 10 have them, and are first held against results of the
scripts themselves, where the folder that CONTRIBUTING.md tells of is there.

Ends with 77, after saying why, where the Python packages are missing.
"""
import collections
import json
import math
import os
import pathlib
import random
import re
import string
import subprocess
import sys
import tempfile
import warnings

try:
  import numpy
  import scipy.stats
  import sklearn.metrics
  import sklearn.preprocessing
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("ETC_SHARED_DIR", ROOT.parent / "shared"))
# Sums in another order, of at most some hundred numbers between 0 and 100.
TOLERANCE = 1e-9


# SQuAD's official evaluation, versions 1.1 and 2.0.


def normalize(text):
  text = "".join(c for c in text.lower() if c not in string.punctuation)
  return " ".join(re.sub(r"\b(a|an|the)\b", " ", text).split())


def overlap_f1(words, gold):
  common = collections.Counter(words) & collections.Counter(gold)
  shared = sum(common.values())
  if shared == 0:
    return 0
  precision, recall = shared / len(words), shared / len(gold)
  return 2 * precision * recall / (precision + recall)


def exact(prediction, answer):
  return int(normalize(prediction) == normalize(answer))


def f1_of_1(prediction, answer):
  return overlap_f1(normalize(prediction).split(), normalize(answer).split())


def f1_of_2(prediction, answer):
  words, gold = normalize(prediction).split(), normalize(answer).split()
  if not words or not gold:
    return int(words == gold)
  return overlap_f1(words, gold)


def squad1(questions, predictions):
  scores = [[max(score(predictions[q["id"]], a["text"]) for a in q["answers"])
             for score in (exact, f1_of_1)]
            for q in questions if q["id"] in predictions]
  return {name: 100 * sum(column) / len(questions)
          for name, column in zip(("exact_match", "f1"), zip(*scores))}


def raw_scores(questions, predictions):
  scores = {}
  for question in questions:
    if question["id"] in predictions:
      answers = [a["text"] for a in question["answers"]
                 if normalize(a["text"])] or [""]
      scores[question["id"]] = [
          max(score(predictions[question["id"]], a) for a in answers)
          for score in (exact, f1_of_2)]
  return scores


def squad2(questions, predictions):
  scores = raw_scores(questions, predictions)
  result = {}
  for prefix, counts in (("", lambda q: True),
                         ("HasAns_", lambda q: q["answers"]),
                         ("NoAns_", lambda q: not q["answers"])):
    rows = [scores[q["id"]] for q in questions
            if q["id"] in scores and counts(q)]
    if rows:
      for name, column in zip(("exact", "f1"), zip(*rows)):
        result[prefix + name] = 100 * sum(column) / len(rows)
      result[prefix + "total"] = len(rows)
  return result


def best_thresholds(questions, predictions, null_odds):
  """`find_all_best_thresh`; predictions are those without a threshold."""
  scores = raw_scores(questions, predictions)
  has_answer = {q["id"]: bool(q["answers"]) for q in questions}
  result = {}
  for column, name in enumerate(("best_exact", "best_f1")):
    score = best = sum(not has for has in has_answer.values())
    threshold = 0.0
    for key in sorted(null_odds, key=null_odds.get):
      score += (scores[key][column] if has_answer[key] else
                -1 if predictions[key] else 0)
      if score > best:
        best, threshold = score, null_odds[key]
    result[name] = 100 * best / len(scores)
    result[name + "_thresh"] = threshold
  return result


def check_official():
  """The functions above, against what the scripts themselves computed."""
  folder = SHARED / "golden/text_tasks"
  if not folder.is_dir():
    print(f"no {folder}: SQuAD's functions are not held against the scripts'")
    return

  def read(name):
    return json.loads((folder / name).read_text(encoding="utf-8"))

  def questions(name):
    return [q for article in read(name)["data"]
            for paragraph in article["paragraphs"] for q in paragraph["qas"]]

  golden = read("squad_metrics.json")
  for pair in golden["pairs"]:
    found = [score(pair["pred"], pair["gold"])
             for score in (exact, f1_of_1, f1_of_2)]
    expect_near("a pair", dict(zip("abc", found)), dict(zip(
        "abc", (pair["em"], pair["f1_v1"], pair["f1_v2"]))))
  totals = golden["totals"]
  expect_near("version 1.1",
              squad1(questions("squad_metrics_v1_data.json"),
                     read("squad_metrics_v1_predictions.json")),
              totals["v1.1"])
  data = questions("squad_metrics_v2_data.json")
  predictions = read("squad_metrics_v2_predictions.json")
  null_odds = read("squad_metrics_v2_na_prob.json")
  expected = totals["v2.0, no na file"]
  expect_near("version 2.0", squad2(data, predictions), expected)
  best = best_thresholds(data, predictions, null_odds)
  expect_near("best thresholds", best, {
      name: totals["v2.0, na file, threshold 1.0"][name] for name in best})


# Random data. Each maker gives the files' contents, arguments of `realetc
# score`, and what it should print.


def skewed(draws, values):
  """Weights that make some values rare, or leave one only."""
  kind = draws.random()
  if kind < 0.1:
    return [1] + [0] * (len(values) - 1)
  if kind < 0.4:
    return [1] * len(values)
  return [draws.random() ** 4 + 1e-3 for _ in values]


def labels_and_predictions(draws, values, size):
  """Predictions that are better than chance, or not."""
  gold = draws.choices(values, skewed(draws, values), k=size)
  guess = draws.choices(values, skewed(draws, values), k=size)
  right = draws.choice((0, 0.3, 0.7, 0.95, 1))
  return gold, [g if draws.random() < right else p for g, p in zip(gold, guess)]


def size_of(draws):
  return draws.choice((1, 2, 3, 10, 40, 300))


def finite(value):
  """Of a constant, for which the others say nan or warn, ours say 0."""
  return 0.0 if math.isnan(value) else float(value)


def matthews(gold, predicted):
  return finite(sklearn.metrics.matthews_corrcoef(gold, predicted))


def correlations(gold, predicted):
  if len(set(gold)) < 2 or len(set(predicted)) < 2:
    return {"pearson": 0.0, "spearman": 0.0}
  return {"pearson": finite(scipy.stats.pearsonr(gold, predicted)[0]),
          "spearman": finite(scipy.stats.spearmanr(gold, predicted)[0])}


def glue_case(name, header, line, values, score):
  """A maker of a task of GLUE with labels: `line` makes a row of a label."""
  def make(draws):
    gold, predicted = labels_and_predictions(draws, values, size_of(draws))
    rows = header + [line(i, label) for i, label in enumerate(gold)]
    said = ["index\tprediction"] + [f"{i}\t{label}" for i, label in
                                    enumerate(predicted)]
    return {
        "files": {"dev.tsv": "\n".join(rows) + "\n",
                  "predictions.tsv": "\n".join(said) + "\n"},
        "task": "glue", "arguments": ["dev.tsv", "predictions.tsv"],
        "config": {"glue": {"name": name}},
        "expected": {**score(gold, predicted),
                     "distinct_predictions": len(set(predicted))}}
  return make


def accuracy(gold, predicted):
  return {"accuracy": float(sklearn.metrics.accuracy_score(gold, predicted))}


def accuracy_and_f1(gold, predicted):
  result = accuracy(gold, predicted)
  result["f1"] = float(sklearn.metrics.f1_score(
      gold, predicted, pos_label="1", zero_division=0))
  return {"combined": (result["accuracy"] + result["f1"]) / 2, **result}


def accuracy_and_matthews(gold, predicted):
  return {"matthews": matthews(gold, predicted), **accuracy(gold, predicted)}


def numbers(draws):
  """Scores from 0 to 5 and predictions of them, with ties or without."""
  size = size_of(draws)
  digits = draws.choice((0, 1, 3))
  gold = [round(draws.uniform(0, 5), digits) for _ in range(size)]
  noise = draws.choice((0, 0.5, 3, 100))
  digits = draws.choice((0, 1, 15))
  predicted = [round(draws.choice((g, g, -g)) + draws.gauss(0, noise), digits)
               for g in gold]
  if draws.random() < 0.1:
    predicted = [predicted[0]] * size
  return gold, predicted


def stsb_case(draws):
  gold, predicted = numbers(draws)
  header = ("index genre filename year old_index source1 source2 sentence1 "
            "sentence2 score").replace(" ", "\t")
  rows = [header] + [f"{i}\tg\tf\ty\t0\ta\tb\tone\ttwo\t{g}"
                     for i, g in enumerate(gold)]
  said = ["index\tprediction"]
  said += [f"{i}\t{p!r}" for i, p in enumerate(predicted)]
  pair = correlations(gold, predicted)
  return {
      "files": {"dev.tsv": "\n".join(rows) + "\n",
                "predictions.tsv": "\n".join(said) + "\n"},
      "task": "glue", "arguments": ["dev.tsv", "predictions.tsv"],
      "config": {"glue": {"name": "stsb"}},
      "expected": {"combined": sum(pair.values()) / 2, **pair,
                   "distinct_predictions": len(set(predicted))}}


def mnli_case(draws):
  """One of MNLI's two sets: each has indices, and a file of predictions."""
  values = ("contradiction", "entailment", "neutral")
  name = draws.choice(("matched", "mismatched"))
  gold, predicted = labels_and_predictions(draws, values, size_of(draws))
  rows = ["index\tsentence1\tsentence2\tgold_label"]
  rows += [f"{i}\tone\ttwo\t{label}" for i, label in enumerate(gold)]
  said = ["index\tprediction"] + [f"{i}\t{label}" for i, label in
                                 enumerate(predicted)]
  share = accuracy(gold, predicted)["accuracy"]
  return {"files": {f"dev_{name}.tsv": "\n".join(rows) + "\n",
                    "predictions.tsv": "\n".join(said) + "\n"},
          "task": "glue", "arguments": [f"dev_{name}.tsv", "predictions.tsv"],
          "config": {"glue": {"name": "mnli"}},
          "expected": {"accuracy": share, f"accuracy_{name}": share,
                       "distinct_predictions": len(set(predicted))}}


def classify_files(draws, gold, predicted, key, type_name, expected):
  """Documents and predictions for them, the latter in any order."""
  rows = [{"id": f"d{i}", "text": "some text", "label": g}
          for i, g in enumerate(gold)]
  said = [{"id": f"d{i}", key: p} for i, p in enumerate(predicted)]
  draws.shuffle(said)
  options = {"type": type_name}
  if type_name != "number":
    options["labels"] = list(LABELS)
  return {
      "files": {"dev.jsonl": "".join(json.dumps(row) + "\n" for row in rows),
                "predictions.jsonl": "".join(json.dumps(row) + "\n"
                                             for row in said)},
      "task": "classify", "arguments": ["dev.jsonl", "predictions.jsonl"],
      "config": {"classify": options}, "expected": expected}


LABELS = ("art", "bus, line", "café", "d", "e f")


def name_of(label):
  """The label in the name of a metric: as JSON where it has a comma."""
  return json.dumps(label) if "," in label else label


def label_table(gold, predicted, names):
  """Of each label; `gold` and `predicted` as scikit-learn takes them."""
  columns = sklearn.metrics.precision_recall_fscore_support(
      gold, predicted, labels=names, zero_division=0)
  return {f"{metric}[{name_of(label)}]": float(value)
          for metric, column in zip(("precision", "recall", "f1", "support"),
                                    columns)
          for label, value in zip(names, column)}


def one_label_case(draws):
  values = LABELS[:draws.randint(2, len(LABELS))]
  gold, predicted = labels_and_predictions(draws, values, size_of(draws))
  names = sorted(set(gold) | set(predicted))

  def f1(average):
    return float(sklearn.metrics.f1_score(gold, predicted, labels=names,
                                          average=average, zero_division=0))

  expected = {**accuracy(gold, predicted), "macro_f1": f1("macro"),
              "micro_f1": f1("micro"), "mcc": matthews(gold, predicted),
              **label_table(gold, predicted, names)}
  table = sklearn.metrics.confusion_matrix(gold, predicted, labels=names)
  for row, counts in zip(names, table):
    for column, count in zip(names, counts):
      if count > 0:
        expected[f"confusion[{name_of(row)},{name_of(column)}]"] = int(count)
  return classify_files(draws, gold, predicted, "label", "one", expected)


def several_labels_case(draws):
  share = [draws.random() ** 2 for _ in LABELS]
  flip = draws.choice((0, 0.05, 0.3, 0.5))
  gold, predicted = [], []
  for _ in range(size_of(draws)):
    gold.append([label for label, often in zip(LABELS, share)
                 if draws.random() < often])
    predicted.append([label for label in LABELS
                      if (label in gold[-1]) != (draws.random() < flip)])
  names = sorted(set(sum(gold + predicted, [])))
  binarizer = sklearn.preprocessing.MultiLabelBinarizer(classes=LABELS)
  rows, said = binarizer.fit_transform(gold), binarizer.transform(predicted)
  expected = {"exact_match": float(numpy.all(rows == said, axis=1).mean()),
              "micro_f1": 0.0, "macro_f1": 0.0}
  if names:
    columns = [LABELS.index(label) for label in names]
    for average in ("micro", "macro"):
      expected[f"{average}_f1"] = float(sklearn.metrics.f1_score(
          rows, said, labels=columns, average=average, zero_division=0))
    values = sklearn.metrics.precision_recall_fscore_support(
        rows, said, labels=columns, zero_division=0)
    for metric, column in zip(("precision", "recall", "f1", "support"), values):
      for label, value in zip(names, column):
        expected[f"{metric}[{name_of(label)}]"] = float(value)
  return classify_files(draws, gold, predicted, "labels", "several", expected)


def number_case(draws):
  gold, predicted = numbers(draws)
  return classify_files(
      draws, gold, predicted, "value", "number",
      {**correlations(gold, predicted),
       "mse": float(sklearn.metrics.mean_squared_error(gold, predicted)),
       "mae": float(sklearn.metrics.mean_absolute_error(gold, predicted))})


WORDS = ("the", "The", "a", "an", "AN", "of", "town", "Town,", "U.S.", "us",
         "1,000", "1000", "café", "Café", "“quoted”", "quoted", "x–y",
         "cat-dog", "catdog", "theta", "İstanbul", "straße", "10th", "century",
         "_", "...", "$5", "ﬁve", "10³", "a_b", "日本", "an'", "é", "e\u0301",
         "the\u0301")
SPACES = (" ", " ", " ", " ", "  ", "\u00a0", "\t", "\u2003", "-")


def text(draws, least=1):
  words = draws.choices(WORDS, k=draws.choice((least, 1, 2, 3, 5)))
  return "".join(word + draws.choice(SPACES) for word in words).strip()


def changed(draws, answer):
  """A prediction: an answer, nearly the same, or something else."""
  kind = draws.random()
  if kind < 0.3:
    return answer
  if kind < 0.6:
    return draws.choice((answer + "!", "the " + answer, answer.upper(),
                         answer + " " + text(draws), answer[1:]))
  return text(draws)


def questions_of(draws, has_impossible):
  """Question records, about a third of them without answer if they may be."""
  questions = []
  for i in range(size_of(draws)):
    answers = []
    if not (has_impossible and draws.random() < 0.4):
      answers = [{"text": text(draws), "answer_start": 0}
                 for _ in range(draws.choice((1, 1, 3)))]
    question = {"id": f"q{i}", "question": "What?", "answers": answers}
    if has_impossible:
      question["is_impossible"] = not answers
    questions.append(question)
  return questions


def said_of(draws, question, may_be_empty=True):
  if may_be_empty and draws.random() < 0.2:
    return ""
  answers = question["answers"] or [{"text": text(draws)}]
  # Without a word, so that it is no answer to nobody.
  return changed(draws, draws.choice(answers)["text"]) or "x"


def squad_files(questions, predictions, version, expected, arguments=()):
  gold = {"version": version, "data": [{"title": "t", "paragraphs": [
      {"context": "A context.", "qas": questions}]}]}
  return {
      "files": {"dev.json": json.dumps(gold),
                "predictions.json": json.dumps(predictions)},
      "task": "squad",
      "arguments": ["dev.json", "predictions.json", *arguments],
      "config": {"squad": {"version": version}}, "expected": expected}


def some_missing(draws, questions, predictions):
  """Leaves out predictions, and says whether it did; one is always kept."""
  if draws.random() < 0.8 or len(questions) < 2:
    return ()
  for question in draws.sample(questions, len(questions) // 2):
    del predictions[question["id"]]
  return ("--as-official",)


def squad1_case(draws):
  questions = questions_of(draws, has_impossible=False)
  predictions = {q["id"]: said_of(draws, q) for q in questions}
  arguments = some_missing(draws, questions, predictions)
  return squad_files(questions, predictions, "1.1",
                     squad1(questions, predictions), arguments)


def squad2_case(draws):
  questions = questions_of(draws, has_impossible=True)
  predictions = {q["id"]: said_of(draws, q) for q in questions}
  arguments = some_missing(draws, questions, predictions)
  return squad_files(questions, predictions, "2.0",
                     squad2(questions, predictions), arguments)


def squad2_best_case(draws):
  """n-best files, from which best texts, null odds and thresholds follow."""
  questions = questions_of(draws, has_impossible=True)
  digits = draws.choice((0, 6))  # ties
  candidates, best, null_odds = {}, {}, {}
  for question in questions:
    listed = [{"text": said_of(draws, question, may_be_empty=False),
               "start_logit": round(draws.gauss(0, 3), digits),
               "end_logit": round(draws.gauss(0, 3), digits)}
              for _ in range(draws.randint(1, 3))]
    # As the program writes them: the largest sum first.
    listed.sort(key=lambda c: -(c["start_logit"] + c["end_logit"]))
    first = listed[0]
    nothing = {"text": "", "start_logit": round(draws.gauss(0, 4), digits),
               "end_logit": round(draws.gauss(0, 4), digits)}
    listed.insert(draws.randint(0, len(listed)), nothing)
    key = question["id"]
    candidates[key] = listed
    best[key] = first["text"]
    null_odds[key] = (nothing["start_logit"] + nothing["end_logit"] -
                      first["start_logit"] - first["end_logit"])
  decided = {key: "" if null_odds[key] > 0 else best[key] for key in best}
  # By our own rules thresholds give their scores, which these may not.
  return squad_files(questions, candidates, "2.0",
                     {**squad2(questions, decided),
                      **best_thresholds(questions, best, null_odds)},
                     ("--as-official",))


MAKERS = (
    glue_case("cola", [], lambda i, label: f"s\t{label}\t\tA text.", ("0", "1"),
              accuracy_and_matthews),
    glue_case("sst2", ["sentence\tlabel"], lambda i, label: f"a text \t{label}",
              ("0", "1"), accuracy),
    glue_case("mrpc", ["Quality\t#1 ID\t#2 ID\t#1 String\t#2 String"],
              lambda i, label: f"{label}\t1\t2\tone\ttwo", ("0", "1"),
              accuracy_and_f1),
    glue_case("rte", ["index\tsentence1\tsentence2\tlabel"],
              lambda i, label: f"{i}\tone\ttwo\t{label}",
              ("entailment", "not_entailment"), accuracy),
    glue_case("ax", ["index\tsentence1\tsentence2\tlabel"],
              lambda i, label: f"{i}\tone\ttwo\t{label}",
              ("contradiction", "entailment", "neutral"),
              accuracy_and_matthews),
    mnli_case, stsb_case, one_label_case, several_labels_case, number_case,
    squad1_case, squad2_case, squad2_best_case)


# The comparison.


def expect_near(what, found, expected):
  """The largest difference; ends the program where one is too large."""
  if set(found) != set(expected):
    sys.exit(f"{what}: metrics are {sorted(found)}, not {sorted(expected)}")
  largest = 0
  for name, value in expected.items():
    difference = abs(found[name] - value)
    if not difference <= TOLERANCE:
      sys.exit(f"{what}: {name} is {found[name]!r}, not {value!r}")
    largest = max(largest, difference)
  return largest


def make_cases(count, folder):
  """Writes the files of all cases; what should be printed of each."""
  cases, expected = [], []
  for number in range(count):
    with warnings.catch_warnings():
      warnings.simplefilter("ignore")  # of constants and of only one class
      case = MAKERS[number % len(MAKERS)](random.Random(number))
    own = folder / str(number)
    own.mkdir()
    case["files"]["config.json"] = json.dumps(
        {"task": case["task"], "model": {"preset": "bert_base"},
         **case["config"]})
    for name, contents in case["files"].items():
      (own / name).write_text(contents, encoding="utf-8", newline="")
    gold, predictions, *options = case["arguments"]
    cases.append({"task": case["task"], "gold": f"{number}/{gold}",
                  "predictions": f"{number}/{predictions}",
                  "config": f"{number}/config.json",
                  "as_official": options == ["--as-official"]})
    expected.append((f"case {number} {case['config']}", case["expected"]))
  (folder / "cases.json").write_text(json.dumps(cases))
  return cases, expected


def printed(build, case, folder):
  """What the program prints of a case."""
  options = ["--as-official"] if case["as_official"] else []
  return json.loads(subprocess.run(
      [build / "bin/realetc", "score", case["task"], case["gold"],
       case["predictions"], "--config", case["config"], "--json", *options],
      cwd=folder, check=True, stdout=subprocess.PIPE).stdout)


def main():
  build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                       ROOT / "build/release").resolve()
  count = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
  check_official()
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    cases, expected = make_cases(count, folder)
    subprocess.run(
        [build / "tests/tasks_run_task_test",
         "--gtest_filter=RandomMetricsTest.*"], check=True,
        stdout=subprocess.DEVNULL,
        env={**os.environ, "ETC_RANDOM_METRICS": name})
    scores = json.loads((folder / "scores.json").read_text())
    largest = max(expect_near(what, found, values) for found, (what, values) in
                  zip(scores, expected, strict=True))
    for case, found in list(zip(cases, scores))[:len(MAKERS)]:
      if printed(build, case, folder) != found:
        sys.exit(f"the program prints other scores of {case} than {found}")
  values = sum(len(values) for _, values in expected)
  print(f"{count} cases, {values} values: they differ by {largest:.1e} at most")


if __name__ == "__main__":
  main()
