#!/usr/bin/env python3
"""Latency and throughput of a predictor on a pipe, beside transformers' pipeline.

  PYTHON bench/predictor.py MODEL OUT [--texts 1000] [--length 512]
                                      [--in-flight 8] [--threads 2]

MODEL is a folder of a BERT in HuggingFace's form (config.json,
model.safetensors, vocab.txt); PYTHON has torch and transformers, as for
bench/real_bert.py, which says where a small model comes from. With `random` for
MODEL it is one of BERT base's shape, with random weights and a vocabulary of its
own.

Fine-tunes a classifier by one update at a rate too small to change a weight,
exports it for transformers, and gives both the same texts of exactly --length
tokens, in turns of a tenth of them each:

  latency      one text at a time, the next one after the answer: p50 and p99
  texts/s      --in-flight texts on their way at a time: lines of `realetc predict
               --data - --output -`, a batch of the pipeline

Prints both, and fails if the two predict another label for any text. Its files are
in OUT/predictor, which is made anew. `realetc` is build/release/bin/realetc, or
what REALETC says.
"""

import argparse
import collections
import json
import os
import random
import shutil
import string
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
REALETC = os.environ.get("REALETC",
                         os.path.join(ROOT, "build/release/bin/realetc"))
TURNS = 10


def make_random_bert(folder):
    """A BERT of the base model's shape, all of whose weights are random."""
    import torch
    import transformers
    os.makedirs(folder, exist_ok=True)
    torch.manual_seed(1)
    words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
    words += [a + b + c for a in string.ascii_lowercase
              for b in string.ascii_lowercase for c in string.ascii_lowercase]
    with open(os.path.join(folder, "vocab.txt"), "w", encoding="utf-8") as file:
        file.write("\n".join(words) + "\n")
    config = transformers.BertConfig(vocab_size=len(words))
    transformers.BertModel(config).save_pretrained(folder)
    return folder


def texts_of(vocabulary, length, count):
    """Texts of `length` tokens, [CLS] and [SEP] among them."""
    with open(vocabulary, encoding="utf-8") as file:
        words = [line.strip() for line in file]
    words = [word for word in words if word.isascii() and word.isalpha()]
    draws = random.Random(1)
    return [" ".join(draws.choices(words, k=length - 2)) for _ in range(count)]


def call(command, log):
    with open(log, "a", encoding="utf-8") as file:
        if subprocess.run(command, cwd=ROOT, stdout=file,
                          stderr=subprocess.STDOUT, check=False).returncode:
            sys.exit("predictor: %s failed: see %s" % (command[1], log))


def make_checkpoint(model, texts, length, out):
    """A classifier on the model, and the same for transformers: two folders."""
    log = os.path.join(out, "realetc.log")
    imported = os.path.join(out, "imported")
    call([REALETC, "import", model, imported], log)
    train = os.path.join(out, "train.tsv")
    with open(train, "w", encoding="utf-8") as file:
        file.write("sentence\tlabel\n")
        for i, text in enumerate(texts[:2]):
            file.write("%s\t%d\n" % (text, i))
    run = os.path.join(out, "run")
    values = {
        "model": {"path": imported + "/etc_config.json"}, "init": model,
        "tokenizer.vocabulary": model + "/vocab.txt", "data.train": [train],
        "data.dev": [], "data.max_global_length": length, "train.steps": 1,
        "train.learning_rate": 1e-12, "train.batch_size": 2,
        "train.micro_batch_size": 1, "train.evaluate_every": 0,
        "train.seeds": [1], "glue.name": "sst2", "output": run,
    }
    command = [REALETC, "train", "tasks/glue/configs/mrpc_bert_base.json"]
    for field, value in values.items():
        command += ["--set", "%s=%s" % (field, json.dumps(value))]
    call(command, log)
    exported = os.path.join(out, "exported")
    call([REALETC, "export", run, exported, "--format", "safetensors"], log)
    return run, exported


class Realetc:
    """`realetc predict` on a pipe."""

    name = "realetc"

    def __init__(self, run, arguments):
        self.process = subprocess.Popen(
            [REALETC, "predict", run, "--data", "-", "--output", "-",
             "--threads", str(arguments.threads), "--batch-size",
             str(arguments.in_flight)],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL)
        self.in_flight = arguments.in_flight

    def send(self, text):
        self.process.stdin.write(json.dumps({"text": text}).encode() + b"\n")
        self.process.stdin.flush()

    def receive(self):
        return json.loads(self.process.stdout.readline())["label"]

    def predict(self, text):
        self.send(text)
        return self.receive()

    def predict_all(self, texts):
        labels = []
        waiting = collections.deque(texts)
        sent = 0
        while len(labels) < len(texts):
            while waiting and sent - len(labels) < self.in_flight:
                self.send(waiting.popleft())
                sent += 1
            labels.append(self.receive())
        return labels

    def close(self):
        self.process.stdin.close()
        if self.process.wait() != 0:
            sys.exit("predictor: realetc predict failed")


class Transformers:
    """transformers' pipeline for text classification."""

    name = "transformers"

    def __init__(self, model, tokenizer, arguments):
        import torch
        import transformers
        torch.set_num_threads(arguments.threads)
        self.pipeline = transformers.pipeline(
            "text-classification", model=model,
            tokenizer=transformers.AutoTokenizer.from_pretrained(tokenizer))
        self.length = arguments.length
        self.in_flight = arguments.in_flight

    def check(self, text):
        """Whether it reads the words of a text: releases differ in tokenizers."""
        tokenizer = self.pipeline.tokenizer
        ids = tokenizer(text)["input_ids"]
        if len(ids) != self.length or tokenizer.unk_token_id in ids:
            sys.exit("predictor: transformers' tokenizer does not know the texts")

    def predict(self, text):
        return self.pipeline(text)[0]["label"]

    def predict_all(self, texts):
        return [result["label"] for result in
                self.pipeline(texts, batch_size=self.in_flight)]

    def close(self):
        pass


def percentile(values, share):
    return sorted(values)[min(len(values) - 1, int(share * len(values)))]


def measure(systems, texts):
    """Seconds of each text alone, seconds for all texts, and labels."""
    alone = {system.name: [] for system in systems}
    together = {system.name: 0.0 for system in systems}
    labels = {system.name: [] for system in systems}
    step = -(-len(texts) // TURNS)
    for system in systems:
        system.predict(texts[0])  # what happens once
    for begin in range(0, len(texts), step):
        part = texts[begin:begin + step]
        for system in systems:
            for text in part:
                started = time.perf_counter()
                labels[system.name].append(system.predict(text))
                alone[system.name].append(time.perf_counter() - started)
        for system in systems:
            started = time.perf_counter()
            again = system.predict_all(part)
            together[system.name] += time.perf_counter() - started
            if again != labels[system.name][begin:begin + step]:
                sys.exit("predictor: %s has other labels in batches" %
                         system.name)
    return alone, together, labels


def main():
    parser = argparse.ArgumentParser(
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("out", type=os.path.abspath)
    parser.add_argument("--texts", type=int, default=1000)
    parser.add_argument("--length", type=int, default=512)
    parser.add_argument("--in-flight", type=int, default=8)
    parser.add_argument("--threads", type=int, default=2)
    arguments = parser.parse_args()
    out = os.path.join(arguments.out, "predictor")
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    model = (make_random_bert(os.path.join(out, "random"))
             if arguments.model == "random"
             else os.path.abspath(arguments.model))
    texts = texts_of(os.path.join(model, "vocab.txt"), arguments.length,
                     arguments.texts)
    run, exported = make_checkpoint(model, texts, arguments.length, out)
    systems = [Realetc(run, arguments), Transformers(exported, model, arguments)]
    systems[1].check(texts[0])
    alone, together, labels = measure(systems, texts)
    for system in systems:
        system.close()
    if labels["realetc"] != labels["transformers"]:
        sys.exit("predictor: the two predict other labels")
    print("load %.1f on %d cores, %d threads; %d texts of %d tokens" %
          (os.getloadavg()[0], os.cpu_count(), arguments.threads,
           arguments.texts, arguments.length))
    print("| | p50, ms | p99, ms | texts/s, %d in flight |\n"
          "| --- | --- | --- | --- |" % arguments.in_flight)
    for system in systems:
        times = alone[system.name]
        print("| %s | %.1f | %.1f | %.2f |" %
              (system.name, 1e3 * percentile(times, 0.5),
               1e3 * percentile(times, 0.99),
               len(texts) / together[system.name]))


if __name__ == "__main__":
    main()
