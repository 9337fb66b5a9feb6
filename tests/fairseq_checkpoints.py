#!/usr/bin/env python3
"""Takes checkpoints of fairseq's form through `realetc import` and `export`.

  python3 tests/fairseq_checkpoints.py [BUILD]  # default: build/release

Python's torch.save writes them, as a zip archive and in the format of before
PyTorch 1.6: random weights in the names of fairseq of 2019 (doc/translation.md
1.7), with and without ADMIN's omegas, Pre-LN, one table or three, the options
as argparse.Namespace under "args" or as a dictionary under "cfg". Imported and
exported again, torch.load should read the same tensors to the bit and the same
options. With --fold-omegas no omega should be left.

Ends with 77, after saying why, where Python has no torch.
"""
import argparse
import pathlib
import subprocess
import sys
import tempfile

try:
  import torch
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
WIDTH, INNER, ROWS, HEADS, LAYERS = 8, 12, 16, 2, {"encoder": 2, "decoder": 3}
# Buffers without meaning, which need not survive.
BUFFERS = (".version", "._float_tensor")


def attention(prefix):
  return {prefix + ".in_proj_weight": (3 * WIDTH, WIDTH),
          prefix + ".in_proj_bias": (3 * WIDTH,),
          prefix + ".out_proj.weight": (WIDTH, WIDTH),
          prefix + ".out_proj.bias": (WIDTH,),
          prefix + "_layer_norm.weight": (WIDTH,),
          prefix + "_layer_norm.bias": (WIDTH,)}


def layer(side, n, kind):
  prefix = f"{side}.layers.{n}."
  shapes = attention(prefix + "self_attn")
  omegas = ["attention_ratio_change", "fc_ratio_change"]
  if side == "decoder":
    shapes |= attention(prefix + "encoder_attn")
    omegas = ["self_ratio_change", "encoder_ratio_change", "fc_ratio_change"]
  shapes |= {prefix + "fc1.weight": (INNER, WIDTH),
             prefix + "fc1.bias": (INNER,),
             prefix + "fc2.weight": (WIDTH, INNER),
             prefix + "fc2.bias": (WIDTH,),
             prefix + "final_layer_norm.weight": (WIDTH,),
             prefix + "final_layer_norm.bias": (WIDTH,)}
  if kind == "admin":
    shapes |= {prefix + name: (WIDTH,) for name in omegas}
  return shapes


def make_model(kind, sharing):
  shapes = {"encoder.embed_tokens.weight": (ROWS, WIDTH),
            "decoder.embed_tokens.weight": (ROWS, WIDTH)}
  for side, count in LAYERS.items():
    for n in range(count):
      shapes |= layer(side, n, kind)
    if kind == "pre_norm":
      shapes |= {side + ".layer_norm.weight": (WIDTH,),
                 side + ".layer_norm.bias": (WIDTH,)}
  if sharing == "none":
    shapes["decoder.embed_out"] = (ROWS, WIDTH)
  model = {name: torch.rand(shape) + 0.5 for name, shape in shapes.items()}
  if sharing == "all":
    model["decoder.embed_tokens.weight"] = model["encoder.embed_tokens.weight"]
  # The first omegas can be folded only where they are 1.
  for name in ("encoder.layers.0.attention_ratio_change",
               "decoder.layers.0.self_ratio_change"):
    if name in model:
      model[name] = torch.ones(WIDTH)
  model["encoder.version"] = torch.tensor([3.0])
  model["encoder.embed_positions._float_tensor"] = torch.zeros(1)
  return model


def options():
  return {"encoder_attention_heads": HEADS, "decoder_attention_heads": HEADS,
          "dropout": 0.3, "attention_dropout": 0.1, "activation_dropout": 0.2,
          "max_source_positions": 77, "max_target_positions": 99,
          "activation_fn": "relu", "data": ["somewhere"], "lr": [0.001],
          "left_pad_source": True, "user_dir": None}


def without_buffers(model):
  return {name: tensor for name, tensor in model.items()
          if not name.endswith(BUFFERS)}


def run(program, *arguments):
  done = subprocess.run([program, *map(str, arguments)],
                        stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
  if done.returncode != 0:
    sys.exit(f"realetc {arguments}: {done.stdout.decode()}")


def exported(program, folder, source, *flags):
  """What torch.load reads once `source` was imported and exported."""
  run(program, "import", source, folder / "ours")
  run(program, "export", folder / "ours", folder / "theirs", *flags)
  return torch.load(folder / "theirs/model.pt", weights_only=False)


def check(program, kind, sharing, place, is_archive):
  model = make_model(kind, sharing)
  said = (argparse.Namespace(**options()) if place == "args" else
          {"model": options(), "common": {"seed": 1}})
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    source = folder / "checkpoint1.pt"
    torch.save({place: said, "model": model, "best_loss": 1.0,
                "extra_state": {"train_iterator": {"epoch": 1}}}, source,
               _use_new_zipfile_serialization=is_archive)
    (folder / "dict.txt").write_text("".join(f"w{i} 1\n" for i in
                                             range(ROWS - 4)))
    found = exported(program, folder, source)
    expected = without_buffers(model)
    ours = without_buffers(found["model"])
    if ours.keys() != expected.keys():
      sys.exit(f"{kind}, {sharing}: {ours.keys() ^ expected.keys()} differ")
    for tensor_name, tensor in expected.items():
      if not torch.equal(ours[tensor_name], tensor):
        sys.exit(f"{kind}, {sharing}: {tensor_name} differs")
    for option in ("encoder_attention_heads", "dropout", "attention_dropout",
                   "activation_dropout", "max_source_positions",
                   "max_target_positions", "activation_fn"):
      if getattr(found["args"], option) != options()[option]:
        sys.exit(f"{option} is {getattr(found['args'], option)}")
    if found["args"].encoder_normalize_before != (kind == "pre_norm"):
      sys.exit("encoder_normalize_before differs")
    if (folder / "theirs/dict.txt").read_text() != (
        folder / "dict.txt").read_text():
      sys.exit("dict.txt differs")


def check_folding(program):
  with tempfile.TemporaryDirectory() as name:
    folder = pathlib.Path(name)
    torch.save({"args": argparse.Namespace(**options()),
                "model": make_model("admin", "all")}, folder / "a.pt")
    found = exported(program, folder, folder / "a.pt", "--fold-omegas")
    left = [key for key in found["model"] if "ratio_change" in key]
    if left or found["args"].init_type != "default":
      sys.exit(f"omegas are left: {left}")


def main():
  build = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else
                       ROOT / "build/release").resolve()
  program = build / "bin/realetc"
  torch.manual_seed(1)
  cases = [("post_norm", "all", "args", True), ("admin", "all", "args", False),
           ("pre_norm", "none", "cfg", True),
           ("post_norm", "decoder", "cfg", False)]
  for case in cases:
    check(program, *case)
  check_folding(program)
  print(f"{len(cases)} checkpoints of torch {torch.__version__} came back")


if __name__ == "__main__":
  main()
