"""torch.ops.realetc.attention_forward and _backward, joined for autograd.

The operations are those of python/csrc/attention_ops.cc. Here torch.compile
learns the shapes of their results, and autograd which belongs to which.
"""
import torch

# Parameters of both passes: tensors, then settings.
_TENSORS = 12
_SETTINGS = 5
_SHARED = _TENSORS + _SETTINGS


def score_dtype(dtype):
  """The dtype of scores of operands of `dtype`."""
  return torch.float32 if dtype in (torch.bfloat16, torch.float16) else dtype


def _own_columns(own_keys, pattern):
  """Columns of own scores, of a pattern's numbers (patterns.Pattern)."""
  kind, before, after, _, causal, _, _ = pattern
  if kind == 4:  # the long side of ETC
    return before + 1 + (0 if causal else before)
  if kind == 2 and own_keys > 0:  # a window; one over other keys has none
    return min(before, own_keys) + 1 + min(after, own_keys)
  return own_keys


@torch.library.register_fake("realetc::attention_forward")
def _fake_forward(query, own_key, own_value, other_key, other_value,
                  relative_embedding, relative_bias, own_gate, other_gate, seed,
                  first, second, pattern, residual, layers, decay, dropout,
                  own_previous, other_previous):
  del other_value, relative_embedding, relative_bias, own_gate, other_gate, seed
  del first, second, layers, decay, dropout, own_previous, other_previous
  batch, heads, queries, _ = query.shape
  value_dim = own_value.shape[3]
  # Heads of a token side by side.
  context = query.new_empty_strided(
      (batch, heads, queries, value_dim),
      (queries * heads * value_dim, value_dim, heads * value_dim, 1))
  dtype = score_dtype(query.dtype)
  if residual == "off":
    own = query.new_empty((0,), dtype=torch.float32)
    other = query.new_empty((0,), dtype=torch.float32)
  else:
    columns = _own_columns(own_key.shape[2], pattern)
    own = query.new_empty((batch, heads, queries, columns), dtype=dtype)
    other = query.new_empty((batch, heads, queries, other_key.shape[2]),
                            dtype=dtype)
  row_max = query.new_empty((batch, heads, queries), dtype=torch.float32)
  return context, own, other, row_max, torch.empty_like(row_max)


@torch.library.register_fake("realetc::attention_backward")
def _fake_backward(query, own_key, own_value, other_key, other_value,
                   relative_embedding, relative_bias, own_gate, other_gate,
                   seed, first, second, pattern, residual, layers, decay,
                   dropout, context, own_scores, other_scores, row_max,
                   row_inverse_sum, context_gradient, own_gradient,
                   other_gradient, previous_gradient):
  del seed, first, second, pattern, decay, dropout, context, row_max
  del row_inverse_sum, context_gradient, own_gradient, other_gradient
  gradients = []
  for tensor in (query, own_key, own_value, other_key, other_value,
                 relative_embedding, relative_bias):
    if tensor is not None:
      # As the operation reads it.
      rows = (tensor if tensor.shape[-1] == 1 or tensor.stride(-1) == 1
              else tensor.contiguous())
      gradients.append(torch.empty_like(rows))
  if layers > 0:
    if residual == "gate":
      gradients += [torch.empty_like(own_gate), torch.empty_like(other_gate)]
    if previous_gradient:
      gradients += [torch.empty_like(own_scores), torch.empty_like(other_scores)]
  return gradients


@torch.library.register_fake("realetc::masks")
def _fake_masks(query, own_keys, other_keys, first, second, pattern):
  del first, second
  batch, _, queries, _ = query.shape
  columns = _own_columns(own_keys, pattern)

  def block(keys):
    mask = query.new_empty((batch, queries, keys), dtype=torch.bool)
    has_ids = pattern[3] > 0
    return (mask, query.new_empty((batch, queries, keys) if has_ids else (0,),
                                  dtype=torch.int64))

  return block(columns) + block(other_keys)


def _set_up(ctx, inputs, output):
  # Gradients that are not there stay None: zeros would be as large as scores.
  ctx.set_materialize_grads(False)
  ctx.mark_non_differentiable(output[3], output[4])
  ctx.save_for_backward(*inputs[:_TENSORS], *output)
  ctx.settings = inputs[_TENSORS:_SHARED]
  ctx.previous_gradient = any(ctx.needs_input_grad[_SHARED:])


def _backward(ctx, context_gradient, own_gradient, other_gradient, *_):
  saved = ctx.saved_tensors
  tensors, output = saved[:_TENSORS], saved[_TENSORS:]
  residual, layers = ctx.settings[1:3]
  if residual == "off":
    own_gradient = other_gradient = None
  gradients = iter(torch.ops.realetc.attention_backward(
      *tensors, *ctx.settings, *output, context_gradient, own_gradient,
      other_gradient, ctx.previous_gradient))
  # In the order of the forward pass.
  operands = [None if tensor is None else next(gradients)
              for tensor in tensors[:7]]
  gates = ([next(gradients), next(gradients)]
           if residual == "gate" and layers > 0 else [None, None])
  previous = ([next(gradients), next(gradients)]
              if layers > 0 and ctx.previous_gradient else [None, None])
  return (*operands, *gates, *[None] * (_SHARED - 9), *previous)


def _refuse(ctx, *gradients):
  del ctx, gradients
  raise RuntimeError(
      "gradients of gradients do not pass the fused operation; use "
      'implementation="reference" for them')


torch.library.register_autograd("realetc::attention_forward", _backward,
                                setup_context=_set_up)
torch.library.register_autograd("realetc::attention_backward", _refuse)
