"""sparse_attention against its definition, and gradients against differences.

The definition is realetc.reference in float64. The kernels (float32) may have
twice the error of the definition in float32, and 2e-6 of the largest number.
gradcheck's central differences are taken of the definition and of the operation
in double, which then is the blocked backend. Dropout is compared by its mean.
"""
import dataclasses
import functools

import pytest
import torch

import realetc
from conftest import (MODES, assert_as_exact, in_dtype, leaves_of, run,
                      visible_scores)
from realetc import patterns
from realetc import reference as definition


@pytest.mark.parametrize("residual", MODES)
def test_kernels_match_the_definition(case, residual):
  arguments = case.tensors(residual)
  attention = functools.partial(realetc.sparse_attention, residual=residual)
  reference = functools.partial(attention, implementation="reference")
  exact = run(case, reference, in_dtype(arguments, torch.float64))
  actual = run(case, attention, arguments)
  near = run(case, reference, arguments)
  for a, n, e in zip(actual, near, exact):
    assert_as_exact(a, n, e)


@pytest.mark.parametrize("implementation", ("auto", "reference"))
@pytest.mark.parametrize("residual", MODES)
def test_gradients_are_those_of_central_differences(case, residual,
                                                    implementation):
  case = dataclasses.replace(
      case, batch=2 if case.pattern.first is not None else 1, heads=2)
  arguments = case.tensors(residual, torch.float64)
  names = [name for name, value in arguments.items()
           if isinstance(value, (torch.Tensor, tuple))]
  tensors = leaves_of(arguments)

  def attend(*leaves):
    leaves = list(leaves)
    given = dict(arguments)
    for name in names:
      given[name] = (tuple((leaves.pop(0), leaves.pop(0)))
                     if name == "relative" else leaves.pop(0))
    context, scores = realetc.sparse_attention(
        pattern=case.pattern, residual=residual, implementation=implementation,
        **given)
    return context if scores is None else (context,
                                           visible_scores(case, scores))

  assert torch.autograd.gradcheck(attend, tensors, fast_mode=True)


def test_reference_has_second_derivatives_and_the_operation_refuses():
  query = torch.randn(1, 1, 4, 3, dtype=torch.float64, requires_grad=True)

  def attend(q, implementation):
    return realetc.residual_attention(q, q, q, residual="off",
                                      implementation=implementation)[0]

  assert torch.autograd.gradgradcheck(
      lambda q: attend(q, "reference"), [query])
  gradient, = torch.autograd.grad(attend(query, "auto").sum(), query,
                                  create_graph=True)
  with pytest.raises(RuntimeError, match="gradients of gradients"):
    gradient.sum().backward()


@pytest.mark.parametrize("name", ("query", "previous"))
def test_reference_has_forward_derivatives_and_the_operation_refuses(name):
  torch.manual_seed(0)
  q, k, v = torch.randn(3, 1, 2, 4, 3, dtype=torch.float64)
  bias = torch.randn(1, 2, 4, 4, dtype=torch.float64)

  def attend(x, implementation):
    given = {"query": q, "previous": bias} | {name: x}
    return realetc.residual_attention(key=k, value=v, **given,
                                      implementation=implementation)[0]

  at = q if name == "query" else bias
  tangent, step = torch.randn_like(at), 1e-6
  _, found = torch.func.jvp(lambda x: attend(x, "reference"), (at,), (tangent,))
  difference = (attend(at + step * tangent, "auto") -
                attend(at - step * tangent, "auto")) / (2 * step)
  torch.testing.assert_close(found, difference, rtol=1e-5, atol=1e-7)
  for derivative in (
      lambda f: torch.func.jvp(f, (at,), (tangent,)),
      lambda f: torch.func.jacfwd(f)(at)):
    with pytest.raises(NotImplementedError, match="no forward-mode deriv"):
      derivative(lambda x: attend(x, "auto"))
  with torch.autograd.forward_ad.dual_level():
    attend(at, "auto")  # no tangents


@pytest.mark.parametrize("implementation", ("auto", "reference"))
def test_vmap_gives_the_contexts_of_each(implementation):
  torch.manual_seed(0)
  q = torch.randn(3, 2, 2, 6, 4)

  def attend(x):
    return realetc.sparse_attention(x, x, x, patterns.window(2),
                                    implementation=implementation)

  for found, expected in zip(torch.func.vmap(attend)(q),
                             zip(*(attend(one) for one in q))):
    torch.testing.assert_close(found, torch.stack(expected))


@pytest.mark.parametrize("residual", ("sum", "gate"))
def test_views_of_any_strides_give_the_same_bits(case, residual):
  arguments = case.tensors(residual)
  strided = {}
  for name, value in arguments.items():
    if isinstance(value, torch.Tensor) and value.dim() == 4:
      wide = torch.zeros(value.shape[0], value.shape[2], value.shape[1],
                         2 * value.shape[3])
      # Heads of a token side by side; of some, elements apart as well.
      part = (wide[..., :value.shape[3]] if name in ("query", "previous")
              else wide[..., ::2])
      part.copy_(value.detach().transpose(1, 2))
      value = part.transpose(1, 2)
      assert not value.is_contiguous()
      value.requires_grad_()
    strided[name] = value
  attention = functools.partial(realetc.sparse_attention, residual=residual)
  for expected, found in zip(run(case, attention, arguments),
                             run(case, attention, strided)):
    for a, b in zip(expected, found):
      assert torch.equal(a, b)


def test_broadcast_previous_gets_the_summed_gradient():
  torch.manual_seed(0)
  q = torch.randn(3, 2, 6, 4)
  bias = torch.randn(2, 6, 6, requires_grad=True)
  context, _ = realetc.residual_attention(q, q, q, bias)
  gradient, = torch.autograd.grad(context.square().sum(), bias)
  whole = bias.detach().expand(3, 2, 6, 6).clone().requires_grad_()
  context, _ = realetc.residual_attention(q, q, q, whole)
  expected, = torch.autograd.grad(context.square().sum(), whole)
  torch.testing.assert_close(gradient, expected.sum(0))


@pytest.mark.parametrize("shape", ((9, 11), (1, 9, 11), (3, 1, 9, 11),
                                   (3, 1, 1, 11), (1, 1, 1, 11), (1, 11)))
@pytest.mark.parametrize("is_causal", (False, True))
def test_masks_are_those_of_scaled_dot_product_attention(shape, is_causal):
  torch.manual_seed(0)
  q, k, v = (torch.randn(3, 2, length, 8) for length in (9, 11, 11))
  mask = torch.rand(shape) < 0.6
  mask[..., 0] = True  # torch's own gives NaN to queries that see nothing
  allowed = mask & (torch.ones(9, 11, dtype=torch.bool).tril()
                    if is_causal else True)
  bias = torch.randn(3, 2, 9, 11)
  expected = torch.nn.functional.scaled_dot_product_attention(
      q, k, v, attn_mask=bias.masked_fill(~allowed, -torch.inf), scale=0.3)
  for implementation in ("auto", "reference"):
    context, _ = realetc.residual_attention(
        q, k, v, bias, mask, is_causal, scale=0.3,
        implementation=implementation)
    torch.testing.assert_close(context, expected, rtol=1e-5, atol=2e-6)


@pytest.mark.parametrize("dtype", (torch.float32, torch.float64))
@pytest.mark.parametrize("implementation", ("auto", "reference"))
def test_a_bias_may_be_the_lowest_number(implementation, dtype):
  torch.manual_seed(0)
  q, k, v = torch.randn(3, 1, 2, 5, 4, dtype=dtype)
  bias = torch.zeros(2, 5, 5, dtype=dtype)
  bias[:, :, 0] = torch.finfo(dtype).min  # all that the first query sees
  past = torch.ones(5, 5, dtype=torch.bool).tril()
  expected = torch.nn.functional.scaled_dot_product_attention(
      q, k, v, attn_mask=bias.masked_fill(~past, -torch.inf))
  context, _ = realetc.residual_attention(
      q, k, v, bias, is_causal=True, implementation=implementation)
  torch.testing.assert_close(context, expected, rtol=1e-5, atol=2e-6)


def test_grouped_heads_are_those_of_scaled_dot_product_attention():
  torch.manual_seed(0)
  q, k, v = torch.randn(2, 6, 9, 8), *torch.randn(2, 2, 3, 9, 8)
  context, _ = realetc.residual_attention(q, k, v, is_causal=True,
                                          enable_gqa=True)
  expected = torch.nn.functional.scaled_dot_product_attention(
      q, k, v, is_causal=True, enable_gqa=True)
  torch.testing.assert_close(context, expected, rtol=1e-5, atol=2e-6)


def test_queries_that_see_nothing_get_zeros_and_send_no_gradient():
  q = torch.randn(1, 1, 3, 4, requires_grad=True)
  mask = torch.tensor([[True, True, True], [False, False, False],
                       [True, False, True]])
  context, _ = realetc.residual_attention(q, q.detach(), q.detach(), mask=mask)
  assert torch.equal(context[0, 0, 1], torch.zeros(4))
  context.sum().backward()
  assert torch.equal(q.grad[0, 0, 1], torch.zeros(4))


def test_a_mask_of_many_runs_is_computed_by_tensor_operations():
  torch.manual_seed(0)
  q = torch.randn(1, 1, 400, 4)
  mask = (torch.arange(400) % 2 == 0).expand(400, 400)  # 200 runs, 64 at most
  expected = realetc.residual_attention(q, q, q, mask=mask,
                                        implementation="reference")
  found = realetc.residual_attention(q, q, q, mask=mask)
  torch.testing.assert_close(found[0], expected[0], rtol=1e-5, atol=1e-6)


def test_dropout_drops_that_share_and_keeps_the_mean():
  torch.manual_seed(0)
  q = torch.zeros(1, 4, 200, 8)
  ones = torch.ones(1, 4, 200, 8)
  context, _ = realetc.residual_attention(q, q, ones, dropout_p=0.25)
  assert abs(context.mean().item() - 1.0) < 0.01
  assert context.std().item() > 0.01
  torch.manual_seed(0)
  again, _ = realetc.residual_attention(q, q, ones, dropout_p=0.25)
  assert torch.equal(context, again)


def test_low_precision_is_computed_in_float32():
  torch.manual_seed(0)
  q = torch.randn(1, 2, 30, 8)
  for dtype in (torch.bfloat16, torch.float16):
    low = q.to(dtype).requires_grad_()
    context, scores = realetc.residual_attention(low, low, low)
    assert context.dtype == dtype and scores.dtype == torch.float32
    wide = low.detach().float()
    expected, sums = realetc.residual_attention(wide, wide, wide)
    assert torch.equal(context, expected.to(dtype))
    assert torch.equal(scores, sums)
    context.float().sum().backward()
    assert low.grad.dtype == dtype


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float16))
def test_the_definition_computes_low_precision_in_float32(dtype):
  torch.manual_seed(0)
  low = torch.randn(3, 1, 2, 6, 4).to(dtype)

  def attend(operands):
    q, k, v = operands
    scores = (None, None)
    for _ in range(2):
      context, *scores = definition.attention(
          q, k[:, :, :0], v[:, :, :0], k, v, None, None, *scores, None, None,
          patterns.unrestricted(), 1.0, 1.0, 0.0)
    return context, scores[1]

  context, scores = attend(low)
  expected, sums = attend(low.float())
  assert context.dtype == dtype and scores.dtype == torch.float32
  assert torch.equal(context, expected.to(dtype))
  assert torch.equal(scores, sums)


def test_float32_and_16_bits_may_mix():
  torch.manual_seed(0)
  q, k, v = torch.randn(3, 1, 2, 6, 4)
  bias = torch.randn(2, 6, 6).bfloat16()
  for implementation in ("auto", "reference"):
    context, scores = realetc.residual_attention(
        q, k.bfloat16(), v.half(), bias, implementation=implementation)
    expected, sums = realetc.residual_attention(
        q, k.bfloat16().float(), v.half().float(), bias.float(),
        implementation=implementation)
    assert context.dtype == torch.float32
    assert torch.equal(context, expected) and torch.equal(scores, sums)


def test_a_scale_does_not_round_queries_of_low_precision():
  torch.manual_seed(0)
  for dtype in (torch.bfloat16, torch.float16):
    low = torch.randn(1, 2, 30, 8).to(dtype).requires_grad_()
    context, scores = realetc.residual_attention(low, low, low, scale=0.3)
    wide = low.detach().float()
    expected, sums = realetc.residual_attention(wide, wide, wide, scale=0.3)
    assert context.dtype == dtype and torch.equal(context, expected.to(dtype))
    assert torch.equal(scores, sums)
    context.float().sum().backward()
    assert low.grad.dtype == dtype


def test_scores_are_the_sum_over_layers():
  torch.manual_seed(0)
  total, scores = 0.0, None
  for layer in range(4):
    q, k, v = torch.randn(3, 1, 2, 20, 8)
    _, scores = realetc.residual_attention(q, k, v, scores, residual="mean",
                                           layers=layer or None)
    total = total + q @ k.transpose(-2, -1) / 8**0.5
  torch.testing.assert_close(scores, total, rtol=1e-5, atol=1e-5)


def test_empty_inputs_give_empty_results():
  q = torch.randn(2, 2, 0, 4, requires_grad=True)
  k = torch.randn(2, 2, 5, 4, requires_grad=True)
  context, scores = realetc.residual_attention(q, k, k)
  assert context.shape == (2, 2, 0, 4) and scores.shape == (2, 2, 0, 5)
  context.sum().backward()
  assert torch.equal(k.grad, torch.zeros_like(k))


@pytest.mark.parametrize("implementation", ("auto", "reference"))
def test_an_empty_batch_gives_relative_tables_zeros(implementation):
  q = torch.randn(0, 2, 5, 4, requires_grad=True)
  relative = (torch.randn(10, 2, 4, requires_grad=True),
              torch.randn(10, 2, requires_grad=True))
  context, scores = realetc.sparse_attention(
      q, q, q, patterns.causal(max_distance=3), relative=relative,
      implementation=implementation)
  assert context.shape == (0, 2, 5, 4) and scores.shape == (0, 2, 5, 5)
  (context.sum() + scores.sum()).backward()
  for table in relative:
    assert torch.equal(table.grad, torch.zeros_like(table))
