"""The bits of the C++ library, built with another LibTorch.

tests/attention/attention_by_file.cc computes the same inputs by the library's own
SparseAttention and kernels; contexts, scores and all gradients have to be equal
to the bit. The program is found in ETC_ATTENTION_BY_FILE or in build/release/bin
(cmake --build --preset release --target attention_by_file).
"""
import os
import pathlib
import struct
import subprocess

import pytest
import torch

from conftest import MODES
from realetc import attention
from realetc import patterns

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROGRAM = pathlib.Path(os.environ.get(
    "ETC_ATTENTION_BY_FILE", _ROOT / "build/release/bin/attention_by_file"))

pytestmark = pytest.mark.skipif(
    not _PROGRAM.exists(),
    reason=f"the C++ library's {_PROGRAM} is not built: cmake --build --preset "
    "release --target attention_by_file")

_NAMES = ("query", "own_key", "own_value", "other_key", "other_value",
          "embedding", "bias", "own_gate", "other_gate", "own_previous",
          "other_previous")


def _write(path, tensors):
  with open(path, "wb") as file:
    for tensor in tensors:
      if tensor is None:
        file.write(struct.pack("<q", -1))
        continue
      file.write(struct.pack(f"<{1 + tensor.dim()}q", tensor.dim(),
                             *tensor.shape))
      file.write(tensor.detach().float().contiguous().numpy().tobytes())


def _read(path):
  data = path.read_bytes()
  tensors, place = [], 0
  while place < len(data):
    dims, = struct.unpack_from("<q", data, place)
    place += 8
    if dims < 0:
      tensors.append(None)
      continue
    shape = struct.unpack_from(f"<{dims}q", data, place)
    place += 8 * dims
    count = torch.Size(shape).numel()
    tensors.append(torch.frombuffer(bytearray(data[place:place + 4 * count]),
                                    dtype=torch.float32).reshape(shape)
                   if count else torch.empty(shape))
    place += 4 * count
  return tensors


def _sides(longs, globals_):
  """Own and other keys of both sides of ETC, with their patterns."""
  mask = torch.arange(longs) < torch.tensor([[longs], [longs - 30]])
  globals_mask = torch.arange(globals_) < torch.tensor([[globals_],
                                                        [globals_ - 2]])

  def both(causal):
    return patterns.global_local(20, mask, globals_mask, max_distance=4,
                                 causal=causal)

  return {
      "long": (both(False).long_side(), longs, globals_, 41, 4, [20]),
      "global": (both(False).global_side(), globals_, longs, globals_, 4, [20]),
      "causal-long": (both(True).long_side(), longs, globals_, 21, 4, [20]),
  }


def _one_block(length):
  """One block of keys: pattern, own and other keys, columns."""
  generator = torch.Generator().manual_seed(3)
  mask = torch.rand(2, length, generator=generator) < 0.8
  ids = torch.randint(0, 4, (2, length), generator=generator)
  matrix = torch.rand(2, length, length, generator=generator) < 0.9
  return {
      "all": (patterns.unrestricted(), 0, length, 0, 0, []),
      "causal": (patterns.causal(6), 0, length, 0, 6, []),
      "window": (patterns.window(9, 4), length, 0, 14, 0, [9, 4]),
      "keys": (patterns.padding(mask), 0, length, 0, 0, []),
      "documents": (patterns.documents(ids), 0, length, 0, 0, []),
      "matrix": (patterns.matrix(matrix), 0, length, 0, 0, []),
  }


_CASES = _one_block(150) | _sides(150, 11)


def _inputs(name, residual):
  """Random inputs by name, and the layers below."""
  _, own, other, columns, distance, _ = _CASES[name]
  heads, head_dim, value_dim = 3, 16, 12
  queries = own or other
  layers = 0 if residual == "off" else 3
  torch.manual_seed(5)

  def random(*shape):
    return torch.randn(shape, requires_grad=True)

  inputs = dict.fromkeys(_NAMES)
  inputs["query"] = random(2, heads, queries, head_dim)
  for block, keys in (("own", own), ("other", other)):
    inputs[f"{block}_key"] = random(2, heads, keys, head_dim)
    inputs[f"{block}_value"] = random(2, heads, keys, value_dim)
  if distance:
    inputs["embedding"] = random(2 * distance + 4, heads, head_dim)
    inputs["bias"] = random(2 * distance + 4, heads)
  if layers:
    inputs["own_previous"] = random(2, heads, queries, columns)
    inputs["other_previous"] = random(2, heads, queries, other)
  if residual == "gate":
    inputs["own_gate"], inputs["other_gate"] = random(heads), random(heads)
  return inputs, layers


def _compute(name, residual, path):
  """Results of this package; writes the inputs to `path`, and their case."""
  pattern, *_, distance, numbers = _CASES[name]
  inputs, layers = _inputs(name, residual)
  outputs = attention.two_block_attention(
      attention.Operands(*(inputs[one] for one in _NAMES[:5])), pattern,
      (inputs["own_previous"], inputs["other_previous"]), residual=residual,
      relative=(inputs["embedding"], inputs["bias"]) if distance else None,
      gates=(inputs["own_gate"], inputs["other_gate"]), layers=layers,
      decay=0.8, dropout=0.0, implementation="auto")
  outputs = outputs if layers else outputs[:1]
  weights = [torch.randn(one.shape) for one in outputs]
  leaves = [one for one in inputs.values() if one is not None]
  gradients = torch.autograd.grad(outputs, leaves, weights)
  nothing = [None] * (3 - len(outputs))
  _write(path, [*inputs.values(), pattern.first, pattern.second, *weights,
                *nothing])
  words = [path, f"{path}.out", residual, layers, 0.8, name, distance, *numbers]
  return [*outputs, *nothing, *gradients], " ".join(map(str, words))


@pytest.fixture(name="results", scope="module")
def _results(tmp_path_factory):
  """Results of this package and of the library, by case; in one process."""
  folder = tmp_path_factory.mktemp("library")
  ours, lines = {}, []
  for name in _CASES:
    for residual in MODES:
      path = folder / f"{name}-{residual}"
      ours[name, residual], line = _compute(name, residual, path)
      lines.append(line + "\n")
  subprocess.run([_PROGRAM], input="".join(lines), text=True, check=True)
  return {key: (tensors, _read(folder / f"{'-'.join(key)}.out"))
          for key, tensors in ours.items()}


@pytest.mark.parametrize("residual", MODES)
@pytest.mark.parametrize("name", _CASES)
def test_bits_are_those_of_the_library(name, residual, results):
  expected, found = results[name, residual]
  assert len(found) == len(expected)
  for number, (a, b) in enumerate(zip(expected, found)):
    if a is None:
      assert b is None
      continue
    assert torch.equal(a, b), f"tensor {number} differs by {(a - b).abs().max()}"
