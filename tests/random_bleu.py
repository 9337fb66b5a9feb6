#!/usr/bin/env python3
"""Compares our BLEU with PyPI's sacrebleu.

  python3 tests/random_bleu.py [BUILD [CORPORA]]  # default: build/release 300

Corpora are random: of a sentence or of many, hypotheses that are noisy copies,
shuffled, cut or foreign, words with punctuation, entities, digits with points,
commas and hyphens, white space of all kinds, empty lines; each scored by one of
sacrebleu's variants (13a or none, smoothing "exp" or none, cases). Scores,
precisions and counts should be equal to 1e-9, signatures but for the version.
The bleu_test scores all corpora in one process, and the first
ones by the program too. Where Multi30k's test set lies in the folder of shared
data (CONTRIBUTING.md), its texts are compared as well.

Ends with 77, after saying why, where Python has no sacrebleu.
"""
import json
import os
import pathlib
import random
import subprocess
import sys
import tempfile

try:
  import sacrebleu
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
SHARED = pathlib.Path(os.environ.get("ETC_SHARED_DIR", ROOT.parent / "shared"))
TOLERANCE = 1e-9
BY_PROGRAM = 4

WORDS = ("a b c the Mann fährt Rad, Rad. (zwei) 3.14 1,000.5 U.S. e.g. "
         "x-ray 10-year 20-30 -3 4- .5 5, ,5 ... -- &amp; &lt;b&gt; &quot;x&quot; "
         "&amp;lt; & <skipped> „Guten Tag“, it's don't §5 50% $7/day [x] {y} ^z^ "
         "~w~ `v` @u #t *s +r =q <p> |o| \\n _m_ ß ẞ İ ΑΣ ΑΣ, Größe 日本語。 №5, "
         "٣.٤ ½. a\u0301. 🚲, - – — ' \" ; : ? !").split(" ")
BLANKS = [" "] * 20 + ["  ", "\t", "\u00a0", "\u2028", "\u3000", "\u0085",
                       "\x1c", "\x0b"]


def sentence(draws, length):
  text = "".join(draws.choice(WORDS) + draws.choice(BLANKS)
                 for _ in range(length))
  return text if draws.random() < 0.3 else text.strip()


def noisy(draws, reference):
  """A hypothesis for a reference."""
  words = reference.split(" ")
  kind = draws.random()
  if kind < 0.2:
    return reference
  if kind < 0.3:
    draws.shuffle(words)
  elif kind < 0.4:
    words = words[:draws.randrange(len(words) + 1)]
  elif kind < 0.5:
    words += words
  elif kind < 0.6:
    return sentence(draws, draws.randrange(12))
  words = [draws.choice(WORDS) if draws.random() < 0.2 else word
           for word in words]
  text = " ".join(words)
  return text.upper() if draws.random() < 0.1 else text


def random_corpus(draws):
  count = draws.choice((1, 1, 2, 5, 30))
  longest = draws.choice((3, 8, 25))
  references = [sentence(draws, draws.randrange(longest + 1))
                for _ in range(count)]
  hypotheses = [noisy(draws, reference) for reference in references]
  return hypotheses, references


def read_lines(path):
  return path.read_text(encoding="utf-8").split("\n")[:-1]


def real_corpora():
  """Multi30k's test set: source and changed references as translations."""
  folder = SHARED / "data/multi30k"
  if not folder.exists():
    print("without Multi30k, which is not there")
    return []
  source = read_lines(folder / "test_2016_flickr.en")
  target = read_lines(folder / "test_2016_flickr.de")
  return [(source, target), (target, target),
          ([line.rsplit(" ", 1)[0] for line in target], target),
          ([target[(i + (i % 3 == 0)) % len(target)]
            for i in range(len(target))], target),
          ([line.lower() for line in target], target)]


def make_cases(count):
  draws = random.Random(1)
  cases = []
  corpora = [random_corpus(draws) for _ in range(count)] + real_corpora()
  for hypotheses, references in corpora:
    plain = draws.random() < 0.5 or len(hypotheses) >= 1000
    options = {} if plain else {
        "tokens": draws.choice(("13a", "none")),
        "smooth": draws.random() < 0.5, "lower_case": draws.random() < 0.5}
    cases.append({"hypotheses": hypotheses, "references": references,
                  "options": options})
  return cases


def expected(case):
  options = case["options"]
  metric = sacrebleu.BLEU(
      tokenize=options.get("tokens", "13a"),
      smooth_method="exp" if options.get("smooth", True) else "none",
      lowercase=options.get("lower_case", False), force=True)
  score = metric.corpus_score(case["hypotheses"], [case["references"]])
  signature = str(metric.get_signature()).rsplit("|version", 1)[0]
  return score, signature


def largest_difference(number, case, found):
  score, signature = expected(case)
  counts = (list(score.counts), list(score.totals), score.sys_len,
            score.ref_len, signature)
  ours = (found["matches"], found["totals"], found["hypothesis_length"],
          found["reference_length"], found["signature"])
  if ours != counts:
    sys.exit(f"corpus {number}: sacrebleu has {counts}, we have {ours}: {case}")
  difference = max(
      abs(found["score"] - score.score), abs(found["bp"] - score.bp),
      *(abs(100 * p - q) for p, q in zip(found["precisions"],
                                         score.precisions)))
  if not difference <= TOLERANCE:
    sys.exit(f"corpus {number}: differs by {difference}: {found}, {score}")
  return difference


def printed(build, case, folder):
  """The score that the program prints of a corpus, with all digits."""
  for name in ("hypotheses", "references"):
    (folder / name).write_text("".join(line + "\n" for line in case[name]),
                               encoding="utf-8", newline="\n")
  return json.loads(subprocess.run(
      [build / "bin/realetc", "score", "translation", "hypotheses",
       "references", "--json"], cwd=folder, check=True,
      stdout=subprocess.PIPE).stdout)["bleu"]


def main():
  build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                       ROOT / "build/release").resolve()
  cases = make_cases(int(sys.argv[2]) if len(sys.argv) > 2 else 300)
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    (folder / "cases.json").write_text(json.dumps(cases))
    subprocess.run([build / "tests/tasks_translation_bleu_test",
                    "--gtest_filter=RandomBleuTest.*"], check=True,
                   stdout=subprocess.DEVNULL,
                   env={**os.environ, "ETC_RANDOM_BLEU": name})
    found = json.loads((folder / "scores.json").read_text())
    largest = max(largest_difference(number, case, score) for
                  number, (case, score) in
                  enumerate(zip(cases, found, strict=True)))
    plain = [(case, score) for case, score in zip(cases, found)
             if not case["options"]][:BY_PROGRAM]
    for case, score in plain:
      if printed(build, case, folder) != score["score"]:
        sys.exit(f"the program prints another score than {score}: {case}")
  print(f"{len(cases)} corpora, sacrebleu {sacrebleu.__version__}: they differ "
        f"by {largest:.1e} at most")


if __name__ == "__main__":
  main()
