"""GlobalLocalAttention against dense attention, and stacks of it."""
import functools

import pytest
import torch
from torch.utils.checkpoint import checkpoint

import realetc
from conftest import MODES, assert_as_exact
from realetc import patterns


def _stack(layers=3, **options):
  torch.manual_seed(0)
  gates = options.get("residual") == "gate"
  return torch.nn.ModuleList(
      realetc.GlobalLocalAttention(
          16, 2, 3, gate_init=0.7 if gates and n > 0 else None, dropout=0.0,
          initializer_range=0.3, **options)
      for n in range(layers))


def _run(stack, longs, globals_, pattern):
  scores, total = None, 0.0
  for layer in stack:
    longs, globals_, scores = layer(longs, globals_, pattern, scores)
    total = total + longs.square().sum() + globals_.square().sum()
  if scores is not None:
    total = total + sum(one.sin().sum() for one in scores[:1])
  # Gradients are of order 1 then. Those of key biases, nearly 0, are sums of many
  # such terms that cancel.
  total = total / 100
  total.backward()
  gradients = [p.grad for p in stack.parameters()]
  for p in stack.parameters():
    p.grad = None
  return [longs.detach(), globals_.detach(), total.detach(), *gradients]


def _inputs(dtype=torch.float32):
  torch.manual_seed(1)
  longs, globals_ = torch.randn(2, 23, 16), torch.randn(2, 5, 16)
  mask = torch.arange(23) < torch.tensor([[23], [15]])
  return longs.to(dtype), globals_.to(dtype), mask


@pytest.mark.parametrize("options", (
    {}, {"max_distance": 4}, {"share_qkv": False},
    {"share_qkv": False, "share_kv": True, "max_distance": 2},
    {"share_output": True}, {"causal": True, "max_distance": 4}),
    ids=lambda options: "_".join(options) or "plain")
@pytest.mark.parametrize("residual", MODES)
def test_kernels_match_the_reference_through_a_stack(options, residual):
  longs, globals_, mask = _inputs()
  stack = _stack(residual=residual, **options)
  pattern = patterns.global_local(
      3, mask, max_distance=options.get("max_distance", 0),
      causal=options.get("causal", False))
  actual = _run(stack, longs, globals_, pattern)
  for layer in stack:
    layer.implementation = "reference"
  near = _run(stack, longs, globals_, pattern)
  exact = _run(stack.double(), longs.double(), globals_.double(), pattern)
  assert_as_exact(actual, near, exact)


def test_checkpointed_layers_have_the_same_gradients():
  longs, globals_, mask = _inputs()
  stack = _stack(residual="gate", max_distance=4)
  pattern = patterns.global_local(3, mask, max_distance=4)
  expected = _run(stack, longs, globals_, pattern)
  for layer in stack:
    layer.forward = functools.partial(checkpoint, layer.forward,
                                      use_reentrant=False)
  for a, b in zip(_run(stack, longs, globals_, pattern), expected):
    torch.testing.assert_close(a, b)


def test_scores_have_the_four_shapes_and_the_sum_of_layers():
  longs, globals_, _ = _inputs()
  layer, = _stack(layers=1)
  *_, first = layer(longs, globals_)
  *_, second = layer(longs, globals_, previous=first)
  shapes = {name: list(getattr(second, name).shape)
            for name in ("g2g", "g2l", "l2g", "l2l")}
  assert shapes == {"g2g": [2, 2, 5, 5], "g2l": [2, 2, 5, 23],
                    "l2g": [2, 2, 23, 5], "l2l": [2, 2, 23, 7]}
  assert second.layers == 2
  torch.testing.assert_close(second.l2l, 2 * first.l2l)
  # Of pairs that see each other: a dense product.
  heads = [layer._heads(name, tokens) for name, tokens in  # pylint: disable=protected-access
           (("long_query", longs), ("l2g_key", globals_))]
  torch.testing.assert_close(first.l2g, heads[0] @ heads[1].mT / 8**0.5)


def test_a_pattern_has_the_relative_positions_of_the_layer():
  longs, globals_, _ = _inputs()
  layer, = _stack(layers=1, max_distance=4)
  mask = torch.ones(2, 23, dtype=torch.bool)
  expected = layer(longs, globals_)
  for pattern in (patterns.global_local(3, mask),
                  patterns.global_local(3, mask, max_distance=4)):
    found = layer(longs, globals_, pattern)
    assert torch.equal(found[0], expected[0])
    assert torch.equal(found[1], expected[1])


def test_padding_and_packing_change_nothing_of_a_document():
  longs, globals_, mask = _inputs()
  layer, = _stack(layers=1)
  whole = layer(longs, globals_, patterns.global_local(3, mask))
  alone = layer(longs[1:, :15], globals_[1:])
  torch.testing.assert_close(whole[0][1:, :15], alone[0])
  torch.testing.assert_close(whole[1][1:], alone[1])
  # The same two documents in one row.
  row = torch.cat([longs[:1], longs[1:, :15]], 1)
  both = torch.cat([globals_[:1], globals_[1:]], 1)
  long_ids = torch.tensor([[1] * 23 + [2] * 15])
  global_ids = torch.tensor([[1] * 5 + [2] * 5])
  packed = layer(row, both, patterns.global_local(
      3, long_ids=long_ids, global_ids=global_ids))
  torch.testing.assert_close(packed[0][:, 23:], alone[0])
  torch.testing.assert_close(packed[1][:, 5:], alone[1])


def test_sentences_and_hard_masks_are_those_of_their_tokens():
  longs, globals_, _ = _inputs()
  layer, = _stack(layers=1, max_distance=2)
  sentence = (torch.arange(23) // 5).int()
  zeros, none = torch.zeros(23).int(), torch.full((23,), -1).int()
  long_tokens = torch.stack([zeros, zeros, sentence, none, none, zeros]).expand(
      2, -1, -1)
  global_tokens = torch.zeros(2, 3, 5).int()
  pattern = patterns.global_local_tokens(3, long_tokens, global_tokens,
                                         max_distance=2, hard_g2l=True)
  before = layer(longs, globals_, pattern)[1]
  longs = longs.clone()
  longs[:, 20:] += 1.0  # sentence 4
  after = layer(longs, globals_, pattern)[1]
  assert torch.equal(before[:, :4], after[:, :4])
  assert not torch.equal(before[:, 4], after[:, 4])


def test_causal_layer_does_not_look_ahead():
  longs, globals_, _ = _inputs()
  stack = _stack(causal=True)
  found = _run(stack, longs, globals_, None)[0]
  changed = longs.clone()
  changed[:, 12:] += 1.0
  assert torch.equal(found[:, :12],
                     _run(stack, changed, globals_, None)[0][:, :12])


@pytest.mark.parametrize("causal", (False, True))
def test_a_layer_without_long_tokens_takes_its_own_scores(causal):
  layer, = _stack(layers=1, has_long_tokens=False, causal=causal)
  inputs = torch.randn(2, 0, 16), torch.randn(2, 5, 16)
  *_, first = layer(*inputs)
  *_, second = layer(*inputs, previous=first)
  torch.testing.assert_close(second.g2g, 2 * first.g2g)


@pytest.mark.parametrize("implementation", ("auto", "reference"))
@pytest.mark.parametrize("longs, globals_", ((7, 0), (0, 4)))
def test_a_stream_may_be_empty(longs, globals_, implementation):
  layer, = _stack(layers=1, implementation=implementation)
  x = torch.randn(2, longs, 16, requires_grad=True)
  y = torch.randn(2, globals_, 16, requires_grad=True)
  out = layer(x, y)
  assert out[0].shape == x.shape and out[1].shape == y.shape
  (out[0].sum() + out[1].sum()).backward()
  assert torch.isfinite(x.grad).all() and torch.isfinite(y.grad).all()


def test_names_are_those_of_the_cpp_module():
  layer = realetc.GlobalLocalAttention(16, 2, 3, max_distance=4, gate_init=1.0)
  assert set(layer.state_dict()) == {
      f"{name}.{kind}" for name in ("long_query", "l2l_key", "l2l_value",
                                    "long_output", "global_output")
      for kind in ("weight", "bias")} | {
          f"{side}_relative.{kind}" for side in ("long", "global")
          for kind in ("embedding", "bias")} | {
              f"{block}_gate" for block in ("g2g", "g2l", "l2g", "l2l")}


def test_dropout_is_of_training_alone():
  longs, globals_, _ = _inputs()
  torch.manual_seed(0)
  layer = realetc.GlobalLocalAttention(16, 2, 3, dropout=0.5)
  a, b = layer(longs, globals_)[0], layer(longs, globals_)[0]
  assert not torch.equal(a, b)
  layer.eval()
  assert torch.equal(layer(longs, globals_)[0], layer(longs, globals_)[0])
