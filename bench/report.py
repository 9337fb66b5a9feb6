#!/usr/bin/env python3
"""Makes report.html, with a table and plots, of what bench/run.sh measured.

  python3 bench/report.py runs/bench

Reads all *.json there (Google Benchmark), each of which has what was measured
one after the other; medians count, of ratios those within such a file. Failed
runs, files that are not whole and a BLAS without AVX are named. Prints the table in
Markdown, as bench/README.md shows it.
"""

import glob
import html
import io
import os
import re
import statistics
import sys

import matplotlib

from measured import Measured

matplotlib.use("Agg")
import matplotlib.pyplot as plt  # noqa: E402


class Results:
    """Medians by name of benchmark: times and counters, as it names them."""

    def __init__(self, folder):
        samples = {}
        self.files = []
        self.machine = "nothing was measured"
        self.warnings = []
        for path in sorted(glob.glob(os.path.join(folder, "*.json"))):
            measured = Measured(path)
            context = measured.context
            self.warnings += [line for line in measured.warnings()
                              if line not in self.warnings]
            if not context:
                continue
            self.machine = ", ".join(
                ["%d cores" % context["num_cpus"], context["date"][:10]] +
                ["%s: %s" % (name, context[name])
                 for name in ("LibTorch", "linear layers", "BLAS")
                 if name in context])
            repetitions = {}
            for run in measured.runs:
                name = re.sub("/(real|manual)_time$", "", run["name"])
                repetitions.setdefault(name, []).append(run)
                samples.setdefault(name, []).append(run)
            self.files.append(self.medians(repetitions))
        self.runs = self.medians(samples)

    @staticmethod
    def medians(samples):
        return {
            name: {
                field: statistics.median(run[field] for run in runs)
                for field, value in runs[0].items() if isinstance(value, float)
            } for name, runs in samples.items()
        }

    def get(self, name, field="real_time"):
        return self.runs.get(name, {}).get(field)

    def times(self, slow, fast):
        """How many times faster; None if they were not measured together."""
        ratios = [runs[slow]["real_time"] / runs[fast]["real_time"]
                  for runs in self.files if slow in runs and fast in runs]
        return statistics.median(ratios) if ratios else None

    def percent_more(self, above, below):
        times = self.times(above, below)
        return None if times is None else 100 * (times - 1)


def attention(who, what, residual, length):
    globals_ = 64 if length <= 512 else 256
    return ("Attention/%s/%s/residual:%s/fp32/long:%d/global:%d/radius:84/"
            "threads:2" % (who, what, residual, length, globals_))


def encoder(what, residual, storage="reverse", precision="fp32"):
    return ("Encoder/base/%s/residual:%s/%s/%s/layers:12/long:4096/global:256/"
            "threads:2" % (what, residual, storage, precision))


def table(r):
    """(what, measured or None, its unit): what bench/README.md says."""
    def op(what, residual, length=4096):
        return attention("kernel", what, residual, length)

    def given_back(who):
        return attention(who, "training", "sum", 4096).replace(
            "/fp32/", "/fp32/given_back/")

    def extra_megabytes(storage, precision="fp32"):
        peak = r.get(encoder("training", "sum", storage, precision),
                     "peak_bytes")
        without = r.get(encoder("training", "off", "reverse", precision),
                        "peak_bytes")
        return None if None in (peak, without) else (peak - without) / 1e6

    def growth():
        times = r.times(op("training", "sum", 65536),
                        op("training", "sum", 2048))
        return None if times is None else times / 32

    step = encoder("training", "sum")
    for what, name in (("forward", "Attention, forward"),
                       ("training", "Attention, forward and backward")):
        for residual in ("off", "sum"):
            yield ("%s, residual %s" % (name, residual),
                   r.get(op(what, residual), "of_gemm"), "of sgemm")
    yield ("Kernels over the blocked path, forward and backward, sum",
           r.times(attention("blocked", "training", "sum", 4096),
                   op("training", "sum")), "times faster")
    yield ("The same, where freed memory goes back to the system",
           r.times(given_back("blocked"), given_back("kernel")),
           "times faster")
    for length in (1024, 4096, 16384):
        yield ("Kernels over dense attention at length %d, forward and "
               "backward" % length,
               r.times(attention("dense", "training", "off", length),
                       op("training", "off", length)), "times faster")
    for batch, examples in ((1, 1), (8, 1), (8, 8)):
        for what, name in (("forward", "forward"),
                           ("training", "forward and backward")):
            yield ("Kernels over softmax(Q K^T) V, 512 tokens%s, batch %d, %s"
                   % (" of 8 examples" if examples > 1 else "", batch, name),
                   r.get("Dense/%s/residual:off/dropout:0/batch:%d/tokens:512/"
                         "examples:%d/threads:2" % (what, batch, examples),
                         "speedup"), "times faster")
    for name, what in (
            ("base/mlm_cpc/residual:sum/layers:4/length:4096/micro_batch:1",
             "MLM and CPC, 4 layers of base, 4096 tokens"),
            ("bert_base/mlm_nsp/residual:sum/layers:4/length:512/"
             "micro_batch:8", "MLM and NSP, 4 layers of BERT, 512 tokens")):
        name = "Pretraining/%s/threads:2" % name
        yield ("Pre-training over fine-tuning: %s" % what,
               r.get(name, "of_fine_tuning"), "of its tokens/s")
        more = r.get(name, "more_bytes")
        yield ("The same, memory", None if more is None else more / 1e6,
               "MB more at the peak")
    yield ("Residual sum over off, attention forward",
           r.percent_more(op("forward", "sum"), op("forward", "off")),
           "% more time")
    yield ("Residual sum over off, attention forward and backward",
           r.percent_more(op("training", "sum"), op("training", "off")),
           "% more time")
    yield ("Residual sum over off, training step of 12 layers",
           r.percent_more(step, encoder("training", "off")), "% more time")
    yield ("Residual sum over off, training step, `reverse`",
           extra_megabytes("reverse"), "MB more at the peak")
    yield ("Residual sum over off, training step, `store`",
           extra_megabytes("store"), "MB more at the peak")
    for storage in ("reverse", "store"):
        yield ("The same on the blocked path, `%s`" % storage,
               extra_megabytes(storage, "fp32/blocked"), "MB more at the peak")
    yield ("Time for a token at length 65536", growth(), "of that at 2048")
    yield ("Training step of 12 layers, sum", r.get(step, "of_gemm"),
           "of sgemm")
    yield ("Training step of 12 layers, bf16 over fp32",
           r.times(step, encoder("training", "sum", precision="bf16")),
           "times faster")


def number(value):
    if value is None:
        return "not measured"
    return "%.0f" % value if abs(value) >= 100 else "%.3g" % value


def markdown(r):
    lines = ["| | measured | |", "| --- | --- | --- |"]
    lines += ["| %s | %s | %s |" % (what, number(value), unit)
              for what, value, unit in table(r)]
    return "\n".join(lines)


LINES = (("kernel", "off", "kernels, residual off"),
         ("kernel", "sum", "kernels, residual sum"),
         ("blocked", "sum", "blocked, residual sum"),
         ("reference", "sum", "reference, residual sum"),
         ("dense", "off", "dense"))


def plot(r, what, field, scale, label):
    """A figure of `field` against length, as SVG; empty without any points."""
    figure, axes = plt.subplots(figsize=(6, 4))
    for who, residual, name in LINES:
        pattern = (r"Attention/%s/%s/residual:%s/fp32/long:(\d+)/global:\d+/"
                   r"radius:84/threads:2" % (who, what, residual))
        # Of several numbers of globals the one that most lengths have.
        points = {}
        for full, run in r.runs.items():
            match = re.fullmatch(pattern, full)
            if match and full == attention(who, what, residual,
                                           int(match.group(1))):
                points[int(match.group(1))] = run[field] * scale
        if points:
            axes.plot(sorted(points), [points[x] for x in sorted(points)],
                      marker="o", label=name)
    if not axes.lines:
        plt.close(figure)
        return ""
    axes.set_xscale("log", base=2)
    axes.set_yscale("log")
    axes.set_xlabel("long tokens")
    axes.set_ylabel(label)
    axes.grid(True, which="both", alpha=0.2)
    axes.legend()
    out = io.StringIO()
    figure.tight_layout()
    figure.savefig(out, format="svg")
    plt.close(figure)
    return out.getvalue()[out.getvalue().index("<svg"):]


def report(r):
    cells = "".join(
        "<tr><td>%s</td><td>%s</td><td>%s</td></tr>" %
        (html.escape(what).replace("`", ""), number(value), unit)
        for what, value, unit in table(r))
    plots = "".join(
        "<h2>%s</h2>%s" % (title, svg) for title, svg in (
            ("Forward and backward: time",
             plot(r, "training", "real_time", 1, "milliseconds")),
            ("Forward and backward: memory",
             plot(r, "training", "peak_bytes", 1e-6, "MB at the peak")),
            ("Forward: time",
             plot(r, "forward", "real_time", 1, "milliseconds")),
        ) if svg)
    everything = "".join(
        "<tr><td>%s</td><td>%.3g</td><td>%s</td></tr>" %
        (html.escape(name), run["real_time"],
         ", ".join("%s %.3g" % (key, value) for key, value in run.items()
                   if key not in ("real_time", "cpu_time")))
        for name, run in sorted(r.runs.items()))
    return """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>RealETC: measured</title>
<style>
body { font-family: sans-serif; max-width: 60em; margin: 2em auto; }
td, th { padding: 0.2em 1em 0.2em 0; text-align: left; }
</style></head><body>
<h1>RealETC: measured</h1>
%s<p>%s. One layer of the base model: 12 heads of 64, radius 84, 256 global
tokens (64 up to length 512), two threads. Medians; all ratios are of one
run.</p>
<table>%s</table>%s
<h2>Everything</h2>
<table><tr><th>benchmark</th><th>time</th><th>counters</th></tr>%s</table>
</body></html>
""" % ("".join("<p><strong>%s</strong></p>\n" % html.escape(line)
               for line in r.warnings),
       html.escape(r.machine), cells, plots, everything)


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    folder = sys.argv[1]
    results = Results(folder)
    for line in results.warnings:
        print("report: warning: %s" % line, file=sys.stderr)
    if not results.runs:
        sys.exit("report: no results (*.json) in %s" % folder)
    path = os.path.join(folder, "report.html")
    with open(path + ".partial", "w", encoding="utf-8") as file:
        file.write(report(results))
    os.replace(path + ".partial", path)
    print("\nMedians of %s:\n\n%s\n\nReport: %s" %
          (results.machine, markdown(results), path))


if __name__ == "__main__":
    main()
