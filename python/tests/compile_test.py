"""torch.compile, torch.export and autocast, without graph breaks.

Compiled functions have to give the bits of eager ones: the operations are the
same. opcheck compares shapes, strides and dtypes of traced and real results.
"""
import functools
import io

import pytest
import torch

import realetc
from conftest import MODES, cases, run
from realetc import etc_model
from realetc import patterns

# Every case without carried scores and with gates, which have all arguments;
# the modes between differ in numbers, which two cases show.
in_cases_and_modes = pytest.mark.parametrize("case, residual", [
    pytest.param(case, mode, id=f"{case.name}-{mode}")
    for case in cases() for mode in MODES
    if mode in ("off", "gate") or case.name in ("causal_relative",
                                                "window_documents")])


def _saved_and_loaded(program):
  file = io.BytesIO()
  torch.export.save(program, file)
  file.seek(0)
  return torch.export.load(file)


@in_cases_and_modes
def test_operations_pass_opcheck(case, residual, monkeypatch):
  calls = []
  forward = torch.ops.realetc.attention_forward
  monkeypatch.setattr(torch.ops.realetc, "attention_forward",
                      lambda *args: (calls.append(args), forward(*args))[1],
                      raising=False)
  realetc.sparse_attention(pattern=case.pattern, residual=residual,
                           **case.tensors(residual))
  monkeypatch.undo()
  torch.library.opcheck(forward.default, calls[0], test_utils=(
      "test_schema", "test_autograd_registration", "test_faketensor",
      "test_aot_dispatch_dynamic"))


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
def test_the_backward_pass_of_any_strides_passes_opcheck(dtype, monkeypatch):
  calls = []
  backward = torch.ops.realetc.attention_backward
  monkeypatch.setattr(torch.ops.realetc, "attention_backward",
                      lambda *args: (calls.append(args), backward(*args))[1],
                      raising=False)
  q, k, v = (torch.randn(2, 3, 4, 9, dtype=dtype).transpose(2, 3)
             .requires_grad_() for _ in range(3))
  context, _ = realetc.residual_attention(q, k, v)
  context.square().sum().backward()
  monkeypatch.undo()
  torch.library.opcheck(backward.default, calls[0], test_utils=(
      "test_schema", "test_faketensor"))


@in_cases_and_modes
def test_compiled_attention_has_the_bits_of_eager(case, residual):
  torch._dynamo.reset()
  attention = functools.partial(realetc.sparse_attention, residual=residual)
  compiled = torch.compile(attention, fullgraph=True, backend="aot_eager")
  arguments = case.tensors(residual)
  for expected, found in zip(run(case, attention, arguments),
                             run(case, compiled, arguments)):
    for a, b in zip(expected, found):
      assert torch.equal(a, b)


@pytest.mark.parametrize("mask", (None, (9, 9), (2, 1, 1, 9)))
def test_masks_are_made_within_the_graph(mask):
  torch._dynamo.reset()
  torch.manual_seed(0)
  if mask is not None:
    mask = torch.rand(mask) < 0.7
  q = torch.randn(2, 2, 9, 4)

  def attend(x, m):
    context, scores = realetc.residual_attention(x, x, x, None, m, True)
    return realetc.residual_attention(context, x, x, scores, m)[0]

  compiled = torch.compile(attend, fullgraph=True, backend="aot_eager")
  assert torch.equal(compiled(q, mask), attend(q, mask))


def test_inductor_compiles_a_training_step():
  torch._dynamo.reset()
  torch.manual_seed(0)
  layer = realetc.GlobalLocalAttention(16, 2, 3, max_distance=2)
  longs, globals_ = torch.randn(2, 20, 16), torch.randn(2, 4, 16)
  mask = torch.arange(20) < torch.tensor([[20], [11]])
  pattern = patterns.global_local(3, mask, max_distance=2)

  def loss_of(x, g):
    y, h, scores = layer(x, g, pattern)
    y, h, scores = layer(y, h, pattern, scores)
    return (y.square().mean() + h.square().mean() +
            scores.l2l.square().mean())

  compiled = torch.compile(loss_of, fullgraph=True)
  gradients = []
  for function in (loss_of, compiled):
    layer.zero_grad()
    loss = function(longs, globals_)
    loss.backward()
    gradients.append([loss.detach()] + [p.grad.clone()
                                        for p in layer.parameters()])
  for a, b in zip(*gradients):
    torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-6)


def test_other_lengths_do_not_break_the_graph():
  torch._dynamo.reset()
  compiled = torch.compile(
      lambda x, p: realetc.residual_attention(x, x, x, p, is_causal=True),
      fullgraph=True, backend="aot_eager", dynamic=True)
  for length in (5, 9, 13):
    q = torch.randn(1, 2, length, 4)
    p = torch.randn(1, 2, length, length)
    expected = realetc.residual_attention(q, q, q, p, is_causal=True)
    for a, b in zip(compiled(q, p), expected):
      assert torch.equal(a, b)


def test_export_keeps_the_operation():
  class Model(torch.nn.Module):

    def forward(self, x, bias):
      return realetc.residual_attention(x, x, x, bias, is_causal=True)

  inputs = torch.randn(2, 2, 9, 4), torch.randn(2, 9, 9)
  program = torch.export.export(Model(), inputs)
  targets = [str(node.target) for node in program.graph.nodes]
  assert targets.count("realetc.attention_forward.default") == 1
  for a, b in zip(program.module()(*inputs), Model()(*inputs)):
    assert torch.equal(a, b)


def test_export_of_the_module_takes_a_pattern():
  layer = realetc.GlobalLocalAttention(16, 2, 3).eval()
  mask = torch.arange(20) < torch.tensor([[20], [11]])
  inputs = (torch.randn(2, 20, 16), torch.randn(2, 4, 16),
            patterns.global_local(3, mask))
  program = torch.export.export(layer, inputs)
  for one in (program, _saved_and_loaded(program)):
    found = one.module()(*inputs)
    assert isinstance(found[2], realetc.ResidualScores)
    for a, b in zip(found[:2], layer(*inputs)[:2]):
      torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def _encoder(layers=2, residual="sum"):
  torch.manual_seed(0)
  return realetc.EtcModel(realetc.EtcConfig(
      30, hidden_size=16, num_hidden_layers=layers, num_attention_heads=2,
      local_radius=3, relative_pos_max_distance=4, intermediate_size=16,
      residual_attention=residual)).eval()


@pytest.mark.parametrize("residual", ("sum", "decay"))
def test_layers_that_are_compiled_one_by_one_share_graphs(residual):
  torch._dynamo.reset()
  model = _encoder(12, residual)
  inputs = torch.arange(20).expand(2, -1), torch.arange(4).expand(2, -1)
  expected = model(*inputs)
  counter = torch._dynamo.testing.CompileCounter()
  for layer in model.layers:
    layer.compile(backend=counter, fullgraph=True)
  found = model(*inputs)
  # One without scores from below, one of a layer below, one of any number.
  assert counter.frame_count <= 3
  assert found.scores.layers == 12
  assert torch.equal(found.global_output, expected.global_output)


def test_export_of_the_reference_takes_other_lengths():
  layer = realetc.GlobalLocalAttention(16, 2, 3,
                                       implementation="reference").eval()
  program = torch.export.export(
      layer, (torch.randn(2, 20, 16), torch.randn(2, 4, 16)),
      dynamic_shapes=({1: torch.export.Dim("longs", min=2, max=99)},
                      {1: torch.export.Dim("globals", min=2, max=99)}))
  inputs = torch.randn(2, 31, 16), torch.randn(2, 5, 16)
  for a, b in zip(program.module()(*inputs)[:2], layer(*inputs)[:2]):
    torch.testing.assert_close(a, b, rtol=1e-5, atol=1e-6)


def test_an_exported_encoder_is_saved():
  model = _encoder()
  inputs = torch.arange(20).expand(2, -1), torch.arange(4).expand(2, -1)
  program = _saved_and_loaded(torch.export.export(model, inputs))
  found, expected = program.module()(*inputs), model(*inputs)
  assert isinstance(found, etc_model.EtcOutput) and found.scores.layers == 2
  torch.testing.assert_close(found.global_output, expected.global_output)


def test_an_encoder_compiles_beside_its_tokens_of_texts():
  torch._dynamo.reset()
  model = _encoder()
  ids = torch.randint(0, 30, (2, 20))
  sentences = (torch.arange(20) // 6).expand(2, -1)
  tokens = etc_model.tokens_of_texts(True, ids, sentence_ids=sentences)
  compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
  for a, b in zip(compiled(**tokens._asdict())[:2],
                  model(**tokens._asdict())[:2]):
    torch.testing.assert_close(a, b)


# The mask of every second key has too many runs for the fused kernels.
@pytest.mark.parametrize("implementation, is_fused", (
    ("auto", True), ("auto", False), ("reference", True)))
def test_autocast_rounds_no_score(implementation, is_fused):
  torch.manual_seed(0)
  operands = [torch.randn(1, 2, 400, 8, requires_grad=True) for _ in range(3)]
  mask = None if is_fused else (torch.arange(400) % 2 == 0).expand(400, 400)

  def attend(autocast_backward):
    context, scores = realetc.residual_attention(
        *operands, mask=mask, implementation=implementation)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast_backward):
      gradients = torch.autograd.grad((context + context.sin()).sum(), operands)
    return context.detach(), scores.detach(), *gradients

  expected = attend(autocast_backward=False)
  with torch.autocast("cpu", torch.bfloat16):
    # Autograd makes the reference's backward pass, and rounds inside of it.
    found = attend(autocast_backward=implementation == "auto")
  for a, b in zip(found, expected):
    assert torch.equal(a, b)


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_autocast_keeps_scores_in_float32(dtype):
  torch.manual_seed(0)
  layer = realetc.GlobalLocalAttention(16, 2, 3, max_distance=2)
  longs, globals_ = torch.randn(2, 20, 16), torch.randn(2, 4, 16)
  exact = layer(longs, globals_)
  with torch.autocast("cpu", dtype):
    y, h, scores = layer(longs, globals_)
    y, h, scores = layer(y, h, None, scores)
  assert y.dtype == h.dtype == dtype
  assert all(one.dtype == torch.float32 for one in scores[:4])
  (y.float().sum() + scores.g2l.sum()).backward()
  assert all(p.grad is not None and p.grad.dtype == torch.float32
             for p in layer.parameters())
  with torch.autocast("cpu", dtype):
    near = layer(longs, globals_)
  torch.testing.assert_close(near[0].float(), exact[0], rtol=0.05, atol=0.02)
