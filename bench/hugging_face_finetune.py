#!/usr/bin/env python3
"""Fine-tunes a BERT by HuggingFace's transformers, for bench/real_bert.py.

  python3 bench/hugging_face_finetune.py SETTINGS.json

SETTINGS has what one run needs: `task` (a name in GLUE below, or "squad"),
`model` (a folder that transformers reads), `train` and `dev` (official files; an
empty `dev` means no evaluation), `seed`, `epochs` or `steps`, `batch_size`,
`micro_batch_size`, `max_length`, `doc_stride`, `learning_rate`, `threads`,
`predictions` and `result` (files to write). `start`, if not empty, is a
checkpoint of `realetc` (a file of safetensors): its head is what the model begins
with, and the batches are those of `realetc` with this seed.

Model, tokenizer and dropout are those of transformers, with its default
attention; the optimizer is torch.optim.AdamW. Micro-batches are padded to their
longest example. What is set here so as to be that of `realetc`:

- the learning rate falls as BERT's, rate * (1 - t / N) after the warm-up, and
  not from the full rate down as in get_linear_schedule_with_warmup;
- batches are cut from pools of 16 batches sorted by length (`group_by_length`
  of transformers' Trainer does so with 50), which saves padding;
- windows of SQuAD begin `doc_stride` tokens apart, as in run_squad.py of BERT,
  where transformers' examples take that number for what windows share;
- an update counts `batch_size` windows; the number of updates counts questions.

What is left of differences: random numbers (with `start`, those of dropout
alone), and of SQuAD that padding has a part in the loss, and that answers are
found by offsets of characters, without the rule of maximal context.
"""

import json
import os
import random
import sys
import time

import torch
import transformers
from safetensors.torch import load_file

import realetc_batches

WARMUP = 0.1
WEIGHT_DECAY = 0.01
EPSILON = 1e-6
CLIP_NORM = 1.0
MAX_QUERY = 64
N_BEST = 20
MAX_ANSWER = 30

# Columns of the first text, the second one and the label; labels, or none of a
# score; whether there is a header.
GLUE = {
    "cola": (3, None, 1, ("0", "1"), False),
    "sst2": (0, None, 1, ("0", "1"), True),
    "mrpc": (3, 4, 0, ("0", "1"), True),
    "stsb": (7, 8, -1, None, True),
    "rte": (1, 2, -1, ("entailment", "not_entailment"), True),
}


def write_atomically(path, text):
    partial = path + ".partial"
    with open(partial, "w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    os.replace(partial, path)


class GlueTask:
    """Rows of an official file of GLUE."""

    def __init__(self, settings, tokenizer):
        self.columns = GLUE[settings["task"]]
        self.tokenizer = tokenizer
        self.max_length = settings["max_length"]

    def make_model(self, folder):
        labels = self.columns[3]
        options = ({"num_labels": len(labels)} if labels else
                   {"num_labels": 1, "problem_type": "regression"})
        return transformers.AutoModelForSequenceClassification.from_pretrained(
            folder, **options)

    def read(self, path):
        """Records, each of one example: the rows."""
        first, second, label, labels, has_header = self.columns
        with open(path, encoding="utf-8-sig", newline="\n") as file:
            rows = [line.rstrip("\r\n").split("\t") for line in file]
        header = rows.pop(0) if has_header else []
        records = []
        for number, row in enumerate(rows):
            texts = [row[first]] + ([] if second is None else [row[second]])
            inputs = self.tokenizer(*texts, truncation="longest_first",
                                    max_length=self.max_length, padding=False)
            records.append([{
                "id": row[0] if header[:1] == ["index"] else str(number),
                "input_ids": inputs["input_ids"],
                "token_type_ids": inputs["token_type_ids"],
                "label": (labels.index(row[label]) if labels else
                          float(row[label]))}])
        return records

    def targets(self, examples):
        labels = [example["label"] for example in examples]
        return {"labels": torch.tensor(labels)}

    def predictions(self, examples, outputs):
        """The file of GLUE's server, with all digits of scores."""
        labels = self.columns[3]
        lines = ["index\tprediction"]
        for example, (logits,) in zip(examples, outputs):
            said = labels[logits.argmax()] if labels else repr(logits[0].item())
            lines.append(f"{example['id']}\t{said}")
        return "\n".join(lines) + "\n"


class SquadTask:
    """Windows over the contexts of SQuAD v1.1."""

    def __init__(self, settings, tokenizer):
        self.tokenizer = tokenizer
        self.max_length = settings["max_length"]
        self.stride = settings["doc_stride"]

    def make_model(self, folder):
        return transformers.AutoModelForQuestionAnswering.from_pretrained(
            folder)

    def windows(self, question, context):
        """[CLS] question [SEP] window [SEP], one window after the other."""
        cls, sep = self.tokenizer.cls_token_id, self.tokenizer.sep_token_id
        options = {"add_special_tokens": False, "padding": False,
                   "truncation": False}
        asked = self.tokenizer(question, **options)["input_ids"][:MAX_QUERY]
        text = self.tokenizer(context, return_offsets_mapping=True, **options)
        ids, offsets = text["input_ids"], text["offset_mapping"]
        room = self.max_length - len(asked) - 3
        begin = 0
        while True:
            length = min(room, len(ids) - begin)
            yield {
                "input_ids": [cls, *asked, sep, *ids[begin:begin + length],
                              sep],
                "token_type_ids": [0] * (len(asked) + 2) + [1] * (length + 1),
                "first": len(asked) + 2,
                "offsets": offsets[begin:begin + length]}
            if begin + length == len(ids):
                return
            begin += min(length, self.stride)

    def read(self, path):
        """Records, each of some windows: the questions."""
        with open(path, encoding="utf-8") as file:
            articles = json.load(file)["data"]
        records = []
        for article in articles:
            for paragraph in article["paragraphs"]:
                for question in paragraph["qas"]:
                    records.append([])
                    answer = question["answers"][0]
                    start = answer["answer_start"]
                    end = start + len(answer["text"])
                    for window in self.windows(question["question"],
                                               paragraph["context"]):
                        window["id"] = question["id"]
                        window["context"] = paragraph["context"]
                        window["answer"] = answer_in(window, start, end)
                        records[-1].append(window)
        return records

    def targets(self, examples):
        first, last = zip(*(example["answer"] for example in examples))
        return {"start_positions": torch.tensor(first),
                "end_positions": torch.tensor(last)}

    def predictions(self, examples, outputs):
        best = {}
        for example, (starts, ends) in zip(examples, outputs):
            kept, _ = best.get(example["id"], (None, ""))
            score, text = best_answer(example, starts, ends)
            if kept is None or (score is not None and score > kept):
                best[example["id"]] = (score, text)
        return json.dumps({key: text for key, (_, text) in best.items()})


def answer_in(window, start, end):
    """The first and last position of the answer's tokens; [CLS] twice if the
    window does not have all of it."""
    offsets = window["offsets"]
    first = next((i for i, (_, e) in enumerate(offsets) if e > start), None)
    last = next((i for i in reversed(range(len(offsets)))
                 if offsets[i][0] < end), None)
    if (first is None or last is None or offsets[0][0] > start or
        offsets[-1][1] < end or last < first):
        return 0, 0
    return window["first"] + first, window["first"] + last


def best_answer(window, starts, ends):
    """The largest sum of a start and an end, and the text between them."""
    first = window["first"]
    size = len(window["offsets"])
    best, text = None, ""
    for start in starts.topk(min(N_BEST, len(starts))).indices.tolist():
        for end in ends.topk(min(N_BEST, len(ends))).indices.tolist():
            if (not first <= start <= end < first + size or
                end - start >= MAX_ANSWER):
                continue
            score = (starts[start] + ends[end]).item()
            if best is None or score > best:
                best = score
                text = window["context"][window["offsets"][start - first][0]:
                                         window["offsets"][end - first][1]]
    return best, text


def collate(examples, pad):
    """Rows padded to the longest: what a model of transformers takes."""
    length = max(len(example["input_ids"]) for example in examples)

    def padded(rows, padding):
        return torch.tensor([row + [padding] * (length - len(row))
                             for row in rows])

    ids = [example["input_ids"] for example in examples]
    types = [example["token_type_ids"] for example in examples]
    return {"input_ids": padded(ids, pad), "token_type_ids": padded(types, 0),
            "attention_mask": padded([[1] * len(row) for row in ids], 0)}


def make_optimizer(model):
    decayed, others = [], []
    for name, parameter in model.named_parameters():
        is_other = name.endswith("bias") or "LayerNorm" in name
        (others if is_other else decayed).append(parameter)
    return torch.optim.AdamW(
        [{"params": decayed, "weight_decay": WEIGHT_DECAY},
         {"params": others, "weight_decay": 0.0}], lr=0.0, eps=EPSILON)


def rate_at(step, steps, rate):
    warmup = int(steps * WARMUP)
    return rate * (step / warmup if step < warmup else 1 - step / steps)


def num_tokens(example):
    return len(example["input_ids"])


def flatten(records):
    return [example for record in records for example in record]


def batches(examples, size, seed):
    """Whole batches of one random order after the other, without end."""
    draws = random.Random(seed)
    while True:
        order = list(examples)
        draws.shuffle(order)
        pool_size = size * realetc_batches.POOL_BATCHES
        for begin in range(0, len(order), pool_size):
            parts = realetc_batches.cut(order[begin:begin + pool_size], size,
                                        num_tokens)
            draws.shuffle(parts)
            yield from parts


def load_head(model, checkpoint):
    """Parameters that `realetc` calls head.NAME are taken over as NAME."""
    prefix = "head."
    head = {name[len(prefix):]: tensor
            for name, tensor in load_file(checkpoint).items()
            if name.startswith(prefix)}
    unknown = model.load_state_dict(head, strict=False).unexpected_keys
    if not head or unknown:
        sys.exit(f"{checkpoint}: its head has {sorted(head)}, of which the "
                 f"model of transformers does not have {unknown}")


def train(model, task, records, steps, settings, pad):
    """Makes all updates; the seconds of each."""
    optimizer = make_optimizer(model)
    model.train()
    seconds = []
    size = settings["batch_size"]
    seed = settings["seed"]
    stream = (realetc_batches.batches(records, size, seed, num_tokens)
              if settings["start"] else batches(flatten(records), size, seed))
    for step in range(steps):
        begin = time.monotonic()
        batch = next(stream)
        for at in range(0, size, settings["micro_batch_size"]):
            part = batch[at:at + settings["micro_batch_size"]]
            loss = model(**collate(part, pad), **task.targets(part)).loss
            (loss * (len(part) / size)).backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), CLIP_NORM)
        for group in optimizer.param_groups:
            group["lr"] = rate_at(step, steps, settings["learning_rate"])
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.monotonic() - begin)
        if step % 50 == 0:
            print(f"update {step + 1} of {steps}: loss {loss.item():.4f}, "
                  f"{seconds[-1]:.2f} s", flush=True)
    return seconds


def evaluate(model, examples, size, pad):
    """The logits of each example, without those of padding."""
    model.eval()
    outputs = []
    with torch.inference_mode():
        for at in range(0, len(examples), size):
            part = examples[at:at + size]
            output = model(**collate(part, pad))
            for row, example in enumerate(part):
                length = len(example["input_ids"])
                outputs.append((output.logits[row],) if "logits" in output else
                               (output.start_logits[row][:length],
                                output.end_logits[row][:length]))
    return outputs


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    with open(sys.argv[1], encoding="utf-8") as file:
        settings = json.load(file)
    torch.set_num_threads(settings["threads"])
    transformers.set_seed(settings["seed"])
    tokenizer = transformers.AutoTokenizer.from_pretrained(settings["model"])
    make_task = SquadTask if settings["task"] == "squad" else GlueTask
    task = make_task(settings, tokenizer)
    model = task.make_model(settings["model"])
    pad = tokenizer.pad_token_id
    if settings["start"]:
        load_head(model, settings["start"])
    records = task.read(settings["train"])
    steps = settings.get("steps") or int(
        len(records) / settings["batch_size"] * settings["epochs"])
    seconds = train(model, task, records, steps, settings, pad)
    if settings["dev"]:
        dev = flatten(task.read(settings["dev"]))
        outputs = evaluate(model, dev, settings["micro_batch_size"], pad)
        write_atomically(settings["predictions"],
                         task.predictions(dev, outputs))
    write_atomically(settings["result"], json.dumps({
        "update_seconds": seconds,
        "attention": model.config._attn_implementation,
        "versions": [torch.__version__, transformers.__version__]}))


if __name__ == "__main__":
    main()
