#!/usr/bin/env python3
"""Compares the encoder-decoder with PyTorch's and CTranslate2's in one run.

  python3 bench/translation_peers.py [BUILD [ROUNDS [THREADS]]]
  # default: build/release 3 2; a minute or two on two idle cores

Training: forward and backward of 2048 target tokens in sentences of 16, model
"small" of doc/translation.md 10 without residual scores, label smoothing 0.1,
against torch.nn.Transformer with a tied table and cross_entropy of the same
smoothing; tokens a second. Decoding: 128 sources of 16 tokens, beam 5, 16
steps, float32, against CTranslate2 with the same weights, which reach it as
fairseq's checkpoint (translation_bench writes it) through CTranslate2's own
model specification; sentences a second.

Programs alternate, each in a process of its own, ROUNDS times; medians and the
ratio ours / theirs are printed, with the machine's load before and after. More
threads than idle cores measure how both wait for them, and take far longer.

Both searches should find the same: with random weights no sentence ends by
itself, so after 15 tokens both hold the 5 most probable beginnings, and the
number of sources is said where these are equal. The best of them is not
compared: our last token is the end, as fairseq forces it, and its probability
counts, while CTranslate2 stops at 16 tokens of any kind.

Ends with 77, after saying why, where Python has not torch and ctranslate2.
"""
import argparse
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
LENGTH, VOCABULARY, SENTENCES, BEAM = 16, 8000, 128, 5
WIDTH, INNER, HEADS, LAYERS = 256, 1024, 4, 3
SECONDS = 1.0  # of one measurement, at least
TARGETS = {"training": 1.5, "decoding": 0.7}


def rate(work, units):
  """Units a second of `work`, after one call that is not counted."""
  work()
  calls = 0
  start = time.perf_counter()
  while True:
    work()
    calls += 1
    seconds = time.perf_counter() - start
    if seconds >= SECONDS:
      return units * calls / seconds


def positions(torch, length, width):
  """The sinusoidal table of doc/translation.md 1.3, from position 2 on."""
  half = width // 2
  frequencies = torch.exp(torch.arange(half) * -(math.log(10000) / (half - 1)))
  angles = torch.arange(2, 2 + length)[:, None] * frequencies[None, :]
  return torch.cat([angles.sin(), angles.cos()], dim=1)


def measure_torch(threads):
  import torch
  torch.set_num_threads(threads)
  torch.manual_seed(1)
  model = torch.nn.Transformer(
      d_model=WIDTH, nhead=HEADS, num_encoder_layers=LAYERS,
      num_decoder_layers=LAYERS, dim_feedforward=INNER, dropout=0.1,
      batch_first=True)
  table = torch.nn.Embedding(VOCABULARY, WIDTH)
  torch.nn.init.normal_(table.weight, std=WIDTH ** -0.5)
  place = positions(torch, LENGTH, WIDTH)
  mask = torch.nn.Transformer.generate_square_subsequent_mask(LENGTH)
  source, target = torch.randint(4, VOCABULARY, (2, SENTENCES, LENGTH))
  drop = torch.nn.Dropout(0.1)

  def update():
    model.zero_grad(set_to_none=True)
    table.zero_grad(set_to_none=True)
    embed = lambda ids: drop(math.sqrt(WIDTH) * table(ids) + place)
    out = model(embed(source), embed(target), tgt_mask=mask, tgt_is_causal=True)
    logits = out @ table.weight.T
    torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), target.flatten(), label_smoothing=0.1,
        reduction="sum").backward()

  return {"rate": rate(update, SENTENCES * LENGTH),
          "version": torch.__version__}


def convert(folder):
  """Writes the CTranslate2 model of the checkpoint in `folder`."""
  import torch
  from ctranslate2.converters import utils
  from ctranslate2.specs import common_spec, transformer_spec
  with torch.serialization.safe_globals([argparse.Namespace]):
    checkpoint = torch.load(folder / "model.pt", weights_only=True)
  weights = {name: tensor.numpy() for name, tensor in
             checkpoint["model"].items()}
  spec = transformer_spec.TransformerSpec.from_config(
      (checkpoint["args"].encoder_layers, checkpoint["args"].decoder_layers),
      checkpoint["args"].encoder_attention_heads, pre_norm=False,
      activation=common_spec.Activation.RELU)

  def linear(to, name):
    to.weight = weights[name + ".weight"]
    to.bias = weights[name + ".bias"]

  def norm(to, name):
    to.gamma = weights[name + ".weight"]
    to.beta = weights[name + ".bias"]

  def attention(to, name, is_self):
    parts = []
    for i in range(3):
      part = common_spec.LinearSpec()
      rows = slice(i * WIDTH, (i + 1) * WIDTH)
      part.weight = weights[name + ".in_proj_weight"][rows]
      part.bias = weights[name + ".in_proj_bias"][rows]
      parts.append(part)
    if is_self:
      utils.fuse_linear(to.linear[0], parts)
    else:
      to.linear[0].weight, to.linear[0].bias = parts[0].weight, parts[0].bias
      utils.fuse_linear(to.linear[1], parts[1:])
    linear(to.linear[-1], name + ".out_proj")
    norm(to.layer_norm, name + "_layer_norm")

  for side, stack in (("encoder", spec.encoder), ("decoder", spec.decoder)):
    embeddings = stack.embeddings
    (embeddings[0] if isinstance(embeddings, list) else embeddings).weight = (
        weights[side + ".embed_tokens.weight"])
    stack.scale_embeddings = math.sqrt(WIDTH)
    stack.position_encodings.encodings = positions(torch, 1024, WIDTH).numpy()
    for n, layer in enumerate(stack.layer):
      name = f"{side}.layers.{n}."
      attention(layer.self_attention, name + "self_attn", True)
      if side == "decoder":
        attention(layer.attention, name + "encoder_attn", False)
      linear(layer.ffn.linear_0, name + "fc1")
      linear(layer.ffn.linear_1, name + "fc2")
      norm(layer.ffn.layer_norm, name + "final_layer_norm")
  spec.decoder.projection.weight = weights["decoder.embed_tokens.weight"]
  words = ["<s>", "<blank>", "</s>", "<unk>"]
  words += [str(i) for i in range(4, VOCABULARY)]
  spec.register_source_vocabulary(words)
  spec.register_target_vocabulary(words)
  spec.config.decoder_start_token = spec.config.eos_token
  # The sources of translation_bench are as they are, without an end.
  spec.config.add_source_eos = False
  spec.validate()
  spec.optimize(quantization=None)
  (folder / "ctranslate2").mkdir()
  spec.save(str(folder / "ctranslate2"))


def open_ctranslate2(folder, threads):
  """A translator, its sources, and what translation_bench found for them."""
  import ctranslate2
  said = json.loads((folder / "translations.json").read_text())
  sources = [[str(i) for i in ids] for ids in said["sources"]]
  translator = ctranslate2.Translator(
      str(folder / "ctranslate2"), device="cpu", compute_type="float32",
      inter_threads=1, intra_threads=threads)
  return translator, sources, said["translations"]


def decode(translator, sources, length, hypotheses=1):
  return translator.translate_batch(
      sources, beam_size=BEAM, length_penalty=1, max_batch_size=SENTENCES,
      num_hypotheses=hypotheses, min_decoding_length=length,
      max_decoding_length=length)


def measure_ctranslate2(folder, threads):
  import ctranslate2
  translator, sources, _ = open_ctranslate2(folder, threads)
  return {"rate": rate(lambda: decode(translator, sources, LENGTH),
                       len(sources)), "version": ctranslate2.__version__}


def agreement(folder, threads):
  """Sources whose hypotheses are the same, our forced end left out."""
  translator, sources, ours = open_ctranslate2(folder, threads)
  theirs = decode(translator, sources, LENGTH - 1, BEAM)
  return sum({tuple(map(str, ids[:-1])) for ids in found} ==
             set(map(tuple, result.hypotheses))
             for found, result in zip(ours, theirs))


def measure_ours(build, kind, threads):
  name = (f"update/off/fp32/tokens:2048/threads:{threads}/"
          if kind == "training" else
          f"decode/off/sentences:{SENTENCES}/beam:{BEAM}/threads:{threads}/")
  report = json.loads(subprocess.run(
      [build / "bin/translation_bench", f"--benchmark_filter=^Translation/{name}",
       "--benchmark_format=json", f"--benchmark_min_time={SECONDS}"],
      check=True, stdout=subprocess.PIPE).stdout)
  [run] = report["benchmarks"]
  return {"rate": run["tokens_per_second" if kind == "training" else
                      "sentences_per_second"]}


def in_process(peer, folder, threads):
  return json.loads(subprocess.run(
      [sys.executable, __file__, "--peer", peer, folder, str(threads)],
      check=True, stdout=subprocess.PIPE).stdout.splitlines()[-1])


def load():
  return "load " + " ".join(f"{value:.1f}" for value in os.getloadavg())


def compare(build, rounds, threads, folder):
  subprocess.run([build / "bin/translation_bench", "--write", folder],
                 check=True)
  in_process("convert", folder, threads)
  print(f"{rounds} rounds, {threads} threads, {load()}", flush=True)
  equal = in_process("agreement", folder, threads)
  print(f"decoding: the {BEAM} hypotheses of {equal} of {SENTENCES} sources are "
        "those of ctranslate2", flush=True)
  for kind, peer, unit in (("training", "torch", "tokens/s"),
                           ("decoding", "ctranslate2", "sentences/s")):
    ours, theirs = [], []
    for _ in range(rounds):
      ours.append(measure_ours(build, kind, threads)["rate"])
      last = in_process(peer, folder, threads)
      theirs.append(last["rate"])
    ratio = statistics.median(ours) / statistics.median(theirs)
    print(f"{kind}: {statistics.median(ours):.1f} {unit}, {peer} "
          f"{last['version']} {statistics.median(theirs):.1f}: {ratio:.2f} "
          f"(target {TARGETS[kind]}; by round "
          + ", ".join(f"{a / b:.2f}" for a, b in zip(ours, theirs)) + ")",
          flush=True)
  print(load())


def main():
  if len(sys.argv) > 1 and sys.argv[1] == "--peer":
    peer, folder, threads = sys.argv[2:]
    work = {"torch": lambda _, threads: measure_torch(threads),
            "ctranslate2": measure_ctranslate2, "agreement": agreement,
            "convert": lambda folder, _: convert(folder)}[peer]
    print(json.dumps(work(pathlib.Path(folder), int(threads))))
    return
  try:
    import ctranslate2  # pylint: disable=unused-import
    import torch  # pylint: disable=unused-import
  except ImportError as error:
    print(f"skipped: {error}")
    sys.exit(77)
  parser = argparse.ArgumentParser()
  parser.add_argument("build", nargs="?", default=ROOT / "build/release")
  parser.add_argument("rounds", nargs="?", type=int, default=3)
  parser.add_argument("threads", nargs="?", type=int, default=2)
  arguments = parser.parse_args()
  with tempfile.TemporaryDirectory() as folder:
    compare(pathlib.Path(arguments.build).resolve(), arguments.rounds,
            arguments.threads, folder)


if __name__ == "__main__":
  main()
