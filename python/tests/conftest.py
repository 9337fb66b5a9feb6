"""What the tests share: cases of patterns and modes, and comparisons."""
import dataclasses

import pytest
import torch

from realetc import patterns

MODES = ("off", "sum", "mean", "decay", "gate")


@dataclasses.dataclass
class Case:
  """Inputs of sparse_attention over T queries and S keys."""
  name: str
  pattern: patterns.Pattern
  queries: int = 37
  keys: int = 37
  columns: int = 37  # of scores
  batch: int = 2
  heads: int = 3
  head_dim: int = 8
  value_dim: int = 5

  def tensors(self, residual, dtype=torch.float32, seed=0):
    """Arguments of sparse_attention by name, each with a gradient."""
    generator = torch.Generator().manual_seed(seed)

    def random(*shape):
      return torch.randn(shape, generator=generator, dtype=dtype,
                         requires_grad=True)

    lead = (self.batch, self.heads)
    out = {"query": random(*lead, self.queries, self.head_dim),
           "key": random(*lead, self.keys, self.head_dim),
           "value": random(*lead, self.keys, self.value_dim)}
    if residual != "off":
      out["previous"] = random(*lead, self.queries, self.columns)
      out["layers"] = 2
    if residual == "gate":
      out["gate"] = random(self.heads)
    if self.pattern.max_distance > 0:
      ids = 2 * self.pattern.max_distance + 4
      out["relative"] = (random(ids, self.heads, self.head_dim),
                         random(ids, self.heads))
    return out


def cases():
  """Patterns of every kind; lengths straddle vectors and tiles."""
  generator = torch.Generator().manual_seed(1)
  lengths = torch.tensor([[37], [20]])
  mask = torch.arange(37) < lengths
  ids = (torch.arange(37) // 9 + 1).expand(2, -1) * mask
  matrix = torch.rand(2, 37, 50, generator=generator) < 0.3
  matrix[0, 3] = False
  return [
      Case("all", patterns.unrestricted(), keys=50, columns=50),
      Case("causal", patterns.causal()),
      Case("causal_relative", patterns.causal(max_distance=5)),
      Case("window", patterns.window(4, 2, max_distance=3), columns=7),
      Case("wide_window", patterns.window(60, 60)),
      Case("padding", patterns.padding(mask)),
      Case("documents", patterns.documents(ids)),
      Case("window_documents", patterns.window(5).only_documents(ids),
           columns=11),
      Case("matrix", patterns.matrix(matrix), keys=50, columns=50),
      Case("one_query", patterns.unrestricted(), queries=1),
  ]


@pytest.fixture(params=cases(), ids=lambda case: case.name)
def case(request):
  """Each of the cases."""
  return request.param


def leaves_of(arguments):
  """The tensors of arguments that want a gradient, in order."""
  out = []
  for value in arguments.values():
    for tensor in value if isinstance(value, tuple) else (value,):
      if isinstance(tensor, torch.Tensor) and tensor.requires_grad:
        out.append(tensor)
  return out


def in_dtype(arguments, dtype):
  """Copies of the arguments in another dtype, leaves again."""
  def convert(value):
    if isinstance(value, tuple):
      return tuple(convert(one) for one in value)
    if isinstance(value, torch.Tensor):
      return value.detach().to(dtype).requires_grad_()
    return value
  return {name: convert(value) for name, value in arguments.items()}


def visible_scores(case, scores):
  """Scores of pairs that see each other; others are unspecified."""
  masks = torch.ops.realetc.masks(
      torch.empty(case.batch, 1, case.queries, 1),
      case.keys if case.columns != case.keys else 0,
      0 if case.columns != case.keys else case.keys, case.pattern.first,
      case.pattern.second, case.pattern.numbers())
  mask = masks[0] if case.columns != case.keys else masks[2]
  return scores.masked_fill(~mask.unsqueeze(1).to(scores.device), 0.0)


def run(case, function, arguments, seed=7):
  """Context, visible scores, and gradients of both by random weights."""
  context, scores = function(pattern=case.pattern, **arguments)
  outputs = [context]
  if scores is not None:
    outputs.append(visible_scores(case, scores))
  generator = torch.Generator().manual_seed(seed)
  weights = [torch.randn(output.shape, generator=generator).to(output.dtype)
             for output in outputs]
  gradients = torch.autograd.grad(outputs, leaves_of(arguments), weights,
                                  allow_unused=True)
  return outputs, gradients


def assert_as_exact(actual, reference, exact, floor=2e-6):
  """Errors of `actual` against float64 are at most twice the reference's."""
  for number, (a, r, e) in enumerate(zip(actual, reference, exact)):
    if e is None:
      assert a is None or a.abs().max() == 0
      continue
    size = max(1.0, e.abs().max().item()) if e.numel() else 1.0
    error = (a.double() - e).abs().max().item() if e.numel() else 0.0
    allowed = (r.double() - e).abs().max().item() if e.numel() else 0.0
    assert error <= 2 * allowed + floor * size, (
        f"tensor {number}: error {error}, the reference's {allowed}")
