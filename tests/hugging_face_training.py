#!/usr/bin/env python3
"""Compares updates of `realetc train` with those of HuggingFace's own code.

  python3 tests/hugging_face_training.py [BUILD [DRAWS]]

BUILD is build/release by default, and DRAWS, of dropout, 1,000.

Makes small random models as tests/hugging_face_heads.py does, and trains them
by both on the same rows of the samples of glue and squad, each update on all of
them.

- Without dropout, classes of texts and of pairs, and answers in contexts, by
  AdamW with warm-up and clipped gradients: the loss and the norm of the gradient
  of each update should be the same.
- At a learning rate that changes nothing, on all of the samples: batches have
  the tokens and, of texts, the losses of those that bench/realetc_batches.py
  says.
- With dropout, at a learning rate that changes nothing: the losses are draws of
  one distribution, and so are the norms. Dropout at another place, or with
  another rate, moves their means or changes how far they spread.

Says so and ends where the Python packages torch and transformers are missing.
"""
import json
import math
import pathlib
import statistics
import subprocess
import sys
import tempfile

try:
  import torch
  import transformers
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "bench"))
import hugging_face_finetune  # noqa: E402
import realetc_batches  # noqa: E402

SAMPLE = ROOT / "tasks/glue/sample"
ROWS = 16
LENGTH = 64
RATE = 1e-3
NO_RATE = 1e-12  # 0 is not allowed
STEPS = 30
# Sums in another order, and what the updates make of them.
TOLERANCE = 1e-4
DROPOUT = 0.2


def read_vocabulary(task):
  text = (ROOT / f"tasks/{task}/sample/vocab.txt").read_text()
  return text.split("\n")[:-1]


def write_model(folder, kind, vocabulary, dropout):
  torch.manual_seed(1)
  config = transformers.BertConfig(
      vocab_size=len(vocabulary), hidden_size=32, num_hidden_layers=2,
      num_attention_heads=4, intermediate_size=64,
      max_position_embeddings=LENGTH, initializer_range=0.3,
      hidden_dropout_prob=dropout,
      attention_probs_dropout_prob=dropout,
      # That of our head for GLUE, whatever the model has.
      classifier_dropout=0.1 if dropout > 0 else 0.0)
  model = kind(config)
  for name, parameter in model.named_parameters():
    if name.endswith("bias"):
      torch.nn.init.normal_(parameter, std=0.3)
  model.save_pretrained(folder)
  (folder / "vocab.txt").write_text("\n".join(vocabulary) + "\n")
  return model


def train(model, batch, steps, rate):
  """Losses and gradients' norms of HuggingFace's model."""
  torch.manual_seed(2)
  model.train()
  optimizer = hugging_face_finetune.make_optimizer(model)
  updates = []
  for step in range(steps):
    loss = model(**batch).loss
    loss.backward()
    norm = torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    for group in optimizer.param_groups:
      group["lr"] = hugging_face_finetune.rate_at(step, steps, rate)
    optimizer.step()
    optimizer.zero_grad()
    updates.append((loss.item(), norm.item()))
  return updates


def run_realetc(program, settings, folder):
  """The lines of the updates of `realetc train`, of the model in the
  folder."""
  imported, config = folder / "imported", folder / "config.json"
  config.write_text(json.dumps({
      "model": {"path": f"{imported}/etc_config.json"},
      "init": str(imported),
      "tokenizer": {"vocabulary": f"{folder}/model/vocab.txt"},
      "data": {"train": [str(settings["data"])],
               "max_global_length": settings.get("length", LENGTH)},
      "optimizer": {"type": "adamw"},
      "train": {"learning_rate": settings["rate"],
                "batch_size": ROWS, "micro_batch_size": 4,
                "steps": settings["steps"], "evaluate_every": 0, "threads": 1},
      "task": settings["task"], settings["task"]: settings["options"]}))
  for command in ([program, "import", folder / "model", imported],
                  [program, "train", config, "--output", folder / "run"]):
    done = subprocess.run(command, cwd=ROOT, capture_output=True,
                          encoding="utf-8")
    if done.returncode != 0:
      sys.exit(f"{command}: {done.stderr}")
  with open(folder / "run/seed-1/metrics.jsonl", encoding="utf-8") as file:
    lines = [json.loads(line) for line in file]
  return [line for line in lines if "loss" in line]


def losses_and_norms(lines):
  return [(line["loss"], line["gradient_norm"]) for line in lines]


def read_rows(is_pair, count=ROWS):
  """The first rows of the sample, or all of them: first text, second, label."""
  with open(SAMPLE / "train.tsv", encoding="utf-8-sig") as file:
    rows = [line.rstrip("\n").split("\t") for line in file][1:]
  rows = rows[:count]
  return [(row[3], row[4] if is_pair else None, row[0]) for row in rows]


def classification_batch(rows, vocabulary):
  """What BertForSequenceClassification takes."""
  ids = {word: i for i, word in enumerate(vocabulary)}
  examples = []
  for first, second, _ in rows:
    words = ["[CLS]", *first.split(), "[SEP]"]
    types = [0] * len(words)
    if second is not None:
      words += [*second.split(), "[SEP]"]
      types += [1] * (len(words) - len(types))
    examples.append({"input_ids": [ids[word] for word in words],
                     "token_type_ids": types})
  return {**hugging_face_finetune.collate(examples, pad=0),
          "labels": torch.tensor([int(label) for _, _, label in rows])}


def compare_updates(what, lines, theirs):
  ours = losses_and_norms(lines)
  largest = max(abs(a - b) / max(abs(b), 1e-2) for update in zip(ours, theirs)
                for a, b in zip(*update))
  print(f"{what}: losses from {theirs[0][0]:.3f} to {theirs[-1][0]:.3f} in "
        f"{len(ours)} updates, and norms of gradients: they differ by "
        f"{largest:.1e} at most", flush=True)
  if len(ours) != STEPS or largest > TOLERANCE:
    sys.exit(f"they should differ by {TOLERANCE} at most:\n{ours}\n{theirs}")


def write_table(path, rows):
  is_pair = rows[0][1] is not None
  table = ["text\ttext_b\tlabel" if is_pair else "text\tlabel"]
  table += ["\t".join(cell for cell in row if cell is not None)
            for row in rows]
  path.write_text("\n".join(table) + "\n")


def compare_classes(program, is_pair, folder):
  """By the task classify, whose head has the model's dropout: none."""
  vocabulary = read_vocabulary("glue")
  model = write_model(folder / "model",
                      transformers.BertForSequenceClassification, vocabulary,
                      dropout=0.0)
  rows = read_rows(is_pair)
  write_table(folder / "train.tsv", rows)
  ours = run_realetc(program, {
      "data": folder / "train.tsv", "steps": STEPS, "rate": RATE,
      "task": "classify", "options": {"labels": ["0", "1"]}}, folder)
  compare_updates("pairs" if is_pair else "texts", ours, train(
      model, classification_batch(rows, vocabulary), STEPS, RATE))


def write_questions(path, tokenizer):
  """Questions of one length, so that nothing is padded: padding has a part in
  the loss of HuggingFace's code, but not in ours."""
  with open(ROOT / "tasks/squad/sample/train.json", encoding="utf-8") as file:
    articles = json.load(file)["data"]
  of_length = {}
  for article in articles:
    for paragraph in article["paragraphs"]:
      for question in paragraph["qas"]:
        length = len(tokenizer(question["question"],
                               paragraph["context"])["input_ids"])
        if question["answers"] and length <= LENGTH:
          of_length.setdefault(length, []).append(
              {"context": paragraph["context"],
               "qas": [{key: question[key]
                        for key in ("id", "question", "answers")}]})
  most = max(of_length.values(), key=len)
  path.write_text(json.dumps(
      {"data": [{"title": "", "paragraphs": most[:ROWS]}]}))


def compare_answers(program, folder):
  """SQuAD, whose head has no dropout: targets and the loss of both ends."""
  vocabulary = read_vocabulary("squad")
  model = write_model(folder / "model", transformers.BertForQuestionAnswering,
                      vocabulary, dropout=0.0)
  tokenizer = transformers.BertTokenizer(
      vocab=str(folder / "model/vocab.txt"))
  write_questions(folder / "train.json", tokenizer)
  task = hugging_face_finetune.SquadTask(
      {"max_length": LENGTH, "doc_stride": 16}, tokenizer)
  examples = hugging_face_finetune.flatten(task.read(folder / "train.json"))
  ours = run_realetc(program, {
      "data": folder / "train.json", "steps": STEPS, "rate": RATE,
      "task": "squad",
      "options": {"doc_stride": 16, "max_query_length": 16}}, folder)
  compare_updates("answers", ours, train(
      model, {**hugging_face_finetune.collate(examples, pad=0),
              **task.targets(examples)}, STEPS, RATE))


def compare_batches(what, lines, batches, num_tokens):
  """Whether updates had as many tokens as the batches. Returns these."""
  batches = [batch for _, batch in zip(lines, batches)]
  wrong = [i for i, (line, batch) in enumerate(zip(lines, batches))
           if line["tokens"] != sum(map(num_tokens, batch))]
  if not lines or wrong:
    sys.exit(f"{what}: other batches than bench/realetc_batches.py says in the "
             f"updates {wrong}")
  return batches


def compare_batches_of_texts(program, folder):
  """Two epochs and more, each of some pools of batches."""
  vocabulary = read_vocabulary("glue")
  model = write_model(folder / "model",
                      transformers.BertForSequenceClassification, vocabulary,
                      dropout=0.0)
  rows = read_rows(is_pair=True, count=None)
  write_table(folder / "train.tsv", rows)
  lines = run_realetc(program, {
      "data": folder / "train.tsv", "steps": 2 * len(rows) // ROWS + 10,
      "rate": NO_RATE, "task": "classify", "options": {"labels": ["0", "1"]}},
                   folder)

  def num_tokens(row):
    return len(row[0].split()) + len(row[1].split()) + 3

  batches = compare_batches("texts", lines, realetc_batches.batches(
      [[row] for row in rows], ROWS, 1, num_tokens), num_tokens)
  with torch.inference_mode():
    losses = [model(**classification_batch(batch, vocabulary)).loss.item()
              for batch in batches]
  largest = max(abs(line["loss"] - loss) for line, loss in zip(lines, losses))
  print(f"batches of texts: the tokens of {len(lines)} are the same, their "
        f"losses of {min(losses):.3f} to {max(losses):.3f} differ by "
        f"{largest:.1e} at most", flush=True)
  if largest > TOLERANCE:
    sys.exit(f"they should differ by {TOLERANCE} at most")


def compare_batches_of_windows(program, folder):
  """Records that have several examples, by their tokens alone."""
  write_model(folder / "model", transformers.BertForQuestionAnswering,
              read_vocabulary("squad"), dropout=0.0)
  length = 32  # less than the contexts need
  task = hugging_face_finetune.SquadTask(
      {"max_length": length, "doc_stride": 8},
      transformers.BertTokenizer(vocab=str(folder / "model/vocab.txt")))
  with open(ROOT / "tasks/squad/sample/train.json", encoding="utf-8") as file:
    articles = json.load(file)["data"]
  for article in articles:
    for paragraph in article["paragraphs"]:
      paragraph["qas"] = [question for question in paragraph["qas"]
                          if question["answers"]]
  (folder / "train.json").write_text(json.dumps({"data": articles}))
  records = task.read(folder / "train.json")
  examples = len(hugging_face_finetune.flatten(records))
  lines = run_realetc(program, {
      "data": folder / "train.json", "steps": examples // ROWS + 10,
      "rate": NO_RATE, "length": length, "task": "squad",
      "options": {"doc_stride": 8, "max_query_length": 16}}, folder)
  num_tokens = hugging_face_finetune.num_tokens
  compare_batches("windows", lines, realetc_batches.batches(
      records, ROWS, 1, num_tokens), num_tokens)
  print(f"batches of windows: the tokens of {len(lines)} are the same, from "
        f"{len(records)} questions with {examples} windows", flush=True)


def compare_dropout(program, folder, draws):
  vocabulary = read_vocabulary("glue")
  model = write_model(folder / "model",
                      transformers.BertForSequenceClassification, vocabulary,
                      dropout=DROPOUT)
  lines = (SAMPLE / "train.tsv").read_text(encoding="utf-8-sig").split("\n")
  (folder / "train.tsv").write_text("\n".join(lines[:ROWS + 1]) + "\n")
  ours = losses_and_norms(run_realetc(program, {
      "data": folder / "train.tsv", "steps": draws, "rate": NO_RATE,
      "task": "glue", "options": {"name": "mrpc"}}, folder))
  theirs = train(
      model, classification_batch(read_rows(is_pair=True), vocabulary), draws,
      NO_RATE)
  for name, ours_of, theirs_of in zip(
      ("losses", "norms"), zip(*ours), zip(*theirs)):
    error = math.sqrt((statistics.variance(ours_of) +
                       statistics.variance(theirs_of)) / draws)
    means = statistics.mean(ours_of), statistics.mean(theirs_of)
    spreads = statistics.stdev(ours_of), statistics.stdev(theirs_of)
    away = (means[0] - means[1]) / error
    print(f"dropout {DROPOUT}, {draws} draws: {name} "
          f"{means[0]:.4f} ± {spreads[0]:.4f} and "
          f"{means[1]:.4f} ± {spreads[1]:.4f}, {away:+.1f} standard errors",
          flush=True)
    # Each logarithm of a spread has an error of 1 / sqrt(2 draws).
    if (abs(away) > 4 or
        abs(math.log(spreads[0] / spreads[1])) > 4.4 / math.sqrt(draws)):
      sys.exit(f"the {name} are not of one distribution")


def main():
  build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                       ROOT / "build/release").resolve()
  draws = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
  program = build / "bin/realetc"
  torch.set_num_threads(1)
  comparisons = {
      "texts": lambda folder: compare_classes(program, False, folder),
      "pairs": lambda folder: compare_classes(program, True, folder),
      "answers": lambda folder: compare_answers(program, folder),
      "batches of texts": lambda folder: compare_batches_of_texts(
          program, folder),
      "batches of windows": lambda folder: compare_batches_of_windows(
          program, folder),
      "dropout": lambda folder: compare_dropout(program, folder, draws)}
  with tempfile.TemporaryDirectory() as name:
    for part, compare in comparisons.items():
      folder = pathlib.Path(name) / part
      folder.mkdir()
      compare(folder)


if __name__ == "__main__":
  main()
