#!/usr/bin/env python3
"""What bench/pretraining_study.sh needs beside `realetc`.

  python3 bench/pretraining_study.py vocabulary VOCAB.TXT TEXT...
  python3 bench/pretraining_study.py report runs/pretraining_study/1000

The first writes a small WordPiece vocabulary for some texts: all of their
characters, alone and within words, and their most frequent words. The second
draws curves.svg, the accuracy on held-out text with the spread of the seeds, and
writes table.md, which it prints too.
"""

import collections
import glob
import json
import os
import re
import statistics
import sys

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = 1500

VARIANTS = (("post_ln", "Post-LN"), ("pre_ln", "Pre-LN"),
            ("sum", "residual sum"), ("mean", "residual mean"))
METRICS = ("masked_lm_accuracy", "masked_lm_loss")


def write_vocabulary(path, texts):
    words = collections.Counter()
    characters = collections.Counter()
    for text in texts:
        with open(text, encoding="utf-8", errors="replace") as file:
            for line in file:
                for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", line.lower()):
                    words[word] += 1
                    characters.update(word)
    alone = [c for c, count in characters.most_common() if count >= 5]
    pieces = list(SPECIAL) + alone
    pieces += ["##" + c for c in alone if c.isalnum()]
    pieces += [w for w, _ in words.most_common(WORDS) if len(w) > 1]
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join(pieces) + "\n")


def evaluations(folder, variant):
    """Of each seed, metrics by step."""
    seeds = []
    pattern = os.path.join(folder, variant, "*", "seed-*", "metrics.jsonl")
    for path in sorted(glob.glob(pattern)):
        with open(path, encoding="utf-8") as file:
            lines = [json.loads(line) for line in file]
        seeds.append({line["step"]: line["evaluation"] for line in lines
                      if "evaluation" in line})
    return seeds


def seconds(folder, variant):
    """Median seconds of training an update, over all seeds."""
    rates = []
    pattern = os.path.join(folder, variant, "*", "seed-*", "metrics.jsonl")
    for path in glob.glob(pattern):
        with open(path, encoding="utf-8") as file:
            for line in map(json.loads, file):
                if "examples_per_second" in line:
                    rates.append(line["examples"] / line["examples_per_second"])
    return statistics.median(rates)


def spread(values):
    if len(values) < 2:
        return 0.0
    return statistics.stdev(values)


def report(folder):
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(6, 4))
    lines = ["| | masked tokens told, % | loss | s an update |",
             "| --- | --- | --- | --- |"]
    for variant, name in VARIANTS:
        seeds = evaluations(folder, variant)
        if not seeds:
            sys.exit("pretraining_study: there are no runs in %s" %
                     os.path.join(folder, variant))
        steps = sorted(set.intersection(*(set(seed) for seed in seeds)))
        curve = [[100 * seed[step][METRICS[0]] for seed in seeds]
                 for step in steps]
        mean = [statistics.mean(values) for values in curve]
        axes.plot(steps, mean, marker="o", markersize=3, label=name)
        axes.fill_between(steps, [min(values) for values in curve],
                          [max(values) for values in curve], alpha=0.2)
        cells = []
        for metric in METRICS:
            scale = 1 if metric.endswith("loss") else 100
            values = [scale * seed[steps[-1]][metric] for seed in seeds]
            cells.append("%.2f ± %.2f" % (statistics.mean(values),
                                          spread(values)))
        lines.append("| %s | %s | %.2f |" %
                     (name, " | ".join(cells), seconds(folder, variant)))
    axes.set_xlabel("updates")
    axes.set_ylabel("masked tokens told on held-out text, %")
    axes.grid(True, alpha=0.2)
    axes.legend()
    figure.tight_layout()
    figure.savefig(os.path.join(folder, "curves.svg"), metadata={"Date": None})
    table = "\n".join(lines)
    with open(os.path.join(folder, "table.md"), "w", encoding="utf-8") as file:
        file.write(table + "\n")
    print(table)
    print("Means and standard deviations of %d seeds after %d updates; curves "
          "in %s" % (len(seeds), steps[-1], os.path.join(folder, "curves.svg")))


def main():
    if len(sys.argv) >= 4 and sys.argv[1] == "vocabulary":
        write_vocabulary(sys.argv[2], sys.argv[3:])
    elif len(sys.argv) == 3 and sys.argv[1] == "report":
        report(sys.argv[2])
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()
