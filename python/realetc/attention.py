"""Attention that takes scores from below and gives them to the layer above."""
import contextlib
import math

import torch
from torch.autograd import forward_ad

from realetc import _operations
from realetc import patterns
from realetc import reference
from realetc.etc_attention import Operands
from realetc.etc_attention import RESIDUAL_MODES
from realetc.etc_attention import residual_factors
from realetc.patterns import check


def _check_tensor(tensor, name, shape, query):
  """Checks that a floating tensor has `shape` and goes with the queries."""
  check(isinstance(tensor, torch.Tensor),
        f"{name} should be a tensor, but is {type(tensor).__name__}")
  check(tensor.is_floating_point(),
        f"{name} should be of floating-point numbers, but is {tensor.dtype}")
  check(_operations.score_dtype(tensor.dtype) ==
        _operations.score_dtype(query.dtype),
        f"{name} is {tensor.dtype}, but query is {query.dtype}")
  check(tensor.device == query.device,
        f"{name} is on {tensor.device}, but query on {query.device}")
  check(len(tensor.shape) == len(shape) and
        all(a == b for a, b in zip(tensor.shape, shape)),
        f"{name} should be {list(shape)}, but is {list(tensor.shape)}")


def _check_heads(tensor, name):
  check(isinstance(tensor, torch.Tensor),
        f"{name} should be a tensor, but is {type(tensor).__name__}")
  check(tensor.dim() == 4,
        f"{name} should be [batch, heads, length, head_dim], but its shape is "
        f"{list(tensor.shape)}")


def _check_pattern_tensor(tensor, name, length, query, queries_too=False):
  """Checks a tensor of a pattern whose last axis are tokens."""
  if tensor is None:
    return
  batch, _, queries, _ = query.shape
  expected = [batch, length]
  if queries_too:  # a matrix, where 1 stands for all
    fits = all(a in (1, b) for a, b in
               zip(tensor.shape, (batch, queries, length)))
    expected = [batch, queries, length]
  else:
    fits = tensor.shape[0] == batch and tensor.shape[-1] == length
  check(fits, f"pattern: {name} is {list(tensor.shape)}, but queries and keys "
        f"want {expected}")


def _check_pattern(pattern, query, own_keys, other_keys):
  check(isinstance(pattern, patterns.Pattern),
        "pattern should be a realetc.patterns.Pattern, but is "
        f"{type(pattern).__name__}")
  keys = own_keys + other_keys
  if pattern.has_two_blocks():
    is_long = pattern.kind == patterns._LONG_SIDE  # pylint: disable=protected-access
    longs, globals_ = ((own_keys, other_keys) if is_long
                       else (other_keys, own_keys))
    _check_pattern_tensor(pattern.first, "of long tokens", longs, query)
    _check_pattern_tensor(pattern.second, "of global tokens", globals_, query)
  elif pattern.kind == patterns._MATRIX:  # pylint: disable=protected-access
    _check_pattern_tensor(pattern.first, "the mask", keys, query, True)
  elif pattern.second is None:
    _check_pattern_tensor(pattern.first, "the mask of keys", keys, query)
  else:
    _check_pattern_tensor(pattern.first, "ids", query.shape[2], query)
    _check_pattern_tensor(pattern.second, "key_ids", keys, query)


def _in_one_dtype(operands):
  """On the CPU numbers of 16 bits are computed with in float32."""
  dtype = operands.query.dtype
  if operands.query.device.type == "cpu":
    dtype = _operations.score_dtype(dtype)
  return Operands(*(tensor.to(dtype) for tensor in operands))


def _layers_below(previous, residual, layers):
  """How many layers' scores are in `previous`."""
  if previous is None:
    check(not layers, f"layers is {layers}, but there are no previous scores")
    return 0
  if layers is None:
    check(residual not in ("mean", "decay"),
          f'residual="{residual}" needs layers, the number of layers whose '
          "scores are in previous")
    return 1
  patterns.check_integer(layers, "layers")
  check(layers >= 1, f"layers should be at least 1, but is {layers}")
  return layers


def _check_settings(residual, dropout, implementation):
  check(residual in RESIDUAL_MODES,
        f"residual should be one of {', '.join(RESIDUAL_MODES)}, but is "
        f"{residual!r}")
  check(0.0 <= dropout < 1.0, f"dropout should be in [0, 1), but is {dropout}")
  check_implementation(implementation)


def check_implementation(implementation):
  check(implementation in ("auto", "reference"),
        "implementation should be auto or reference, but is "
        f"{implementation!r}")


def _refuse_tangents(tensors):
  """The operation would drop derivatives of forward mode in silence."""
  # pylint: disable=protected-access
  if torch.compiler.is_compiling() or forward_ad._current_level < 0:
    return
  if any(one is not None and forward_ad.unpack_dual(one).tangent is not None
         for one in tensors):
    raise NotImplementedError(
        "the fused operation has no forward-mode derivatives; "
        'implementation="reference" has')


def _without_autocast(device):
  return (torch.autocast(device, enabled=False)
          if torch.amp.is_autocast_available(device)
          else contextlib.nullcontext())


def two_block_attention(operands, pattern, previous, *, residual, relative,
                        gates, layers, decay, dropout, implementation):
  """sparse_attention over own and other keys, checked: pairs of scores."""
  operands = _in_one_dtype(operands)
  dtype = _operations.score_dtype(operands.query.dtype)
  if not torch.compiler.is_compiling():  # else each `layers` has a graph
    residual_factors(residual, layers, decay)  # the ValueError of a decay
  previous = [None if one is None else one.to(dtype) for one in previous]
  is_gated = residual == "gate" and layers > 0
  gates = [one.to(dtype) if is_gated else None for one in gates]
  relative = ([None, None] if relative is None or pattern.max_distance == 0
              else [one.to(operands.query.dtype) for one in relative])
  if implementation == "reference":
    factor, divisor = residual_factors(residual, layers, decay)
    with _without_autocast(operands.query.device.type):
      return reference.attention(
          *operands, *relative, *previous, *gates, pattern, factor, divisor,
          dropout)
  _refuse_tangents((*operands, *relative, *previous, *gates))
  seed = None
  if dropout > 0.0:
    seed = torch.randint(torch.iinfo(torch.int64).max, (1,))
  context, own, other, _, _ = torch.ops.realetc.attention_forward(
      *operands, *relative, *gates, seed, pattern.first, pattern.second,
      pattern.numbers(), residual, layers, decay, dropout, *previous)
  return context, own, other


def _one_block(query, key, value, pattern, previous, gate):
  """The operands with all keys in one of two blocks, and pairs of the others.

  With a window all keys are own keys, else other keys, as the kernels divide
  those among threads.
  """
  columns = pattern.window_columns(query.shape[2], key.shape[2])
  is_own = columns is not None

  def pair(all_, none):
    return (all_, none) if is_own else (none, all_)

  keys = pair(key, key.detach()[:, :, :0])
  values = pair(value, value.detach()[:, :, :0])
  scores = (None, None) if previous is None else pair(
      previous, previous.detach()[..., :0])
  gates = (None, None) if gate is None else pair(
      gate, torch.zeros_like(gate.detach()))
  operands = Operands(query, keys[0], values[0], keys[1], values[1])
  return operands, scores, gates, is_own


def _check_one_block(query, key, value, pattern, previous, gate):
  for tensor, name in ((query, "query"), (key, "key"), (value, "value")):
    _check_heads(tensor, name)
  batch, heads, queries, head_dim = query.shape
  keys = key.shape[2]
  _check_tensor(query, "query", query.shape, query)
  _check_tensor(key, "key", (batch, heads, keys, head_dim), query)
  _check_tensor(value, "value", (batch, heads, keys, value.shape[3]), query)
  _check_pattern(pattern, query, 0, keys)
  columns = pattern.window_columns(queries, keys)
  if previous is not None:
    _check_tensor(previous, "previous",
                  (batch, heads, queries, keys if columns is None else columns),
                  query)
  if gate is not None:
    _check_tensor(gate, "gate", (heads,), query)


def _check_residual(residual, has_previous, gate):
  check(residual != "off" or not has_previous,
        'previous scores are given, but residual is "off"')
  check(residual == "gate" or gate is None,
        f'gate is given, but residual is "{residual}"')
  check(residual != "gate" or not has_previous or gate is not None,
        'residual="gate" needs gate where there are previous scores')


def _check_relative(relative, pattern, query):
  if relative is None:
    check(pattern.max_distance == 0,
          f"pattern has relative ids up to {pattern.max_distance}, but "
          "relative is missing")
    return
  check(pattern.max_distance > 0,
        "relative is given, but pattern has no relative ids: give it "
        "max_distance")
  ids = relative[0].shape[0]
  _check_tensor(relative[0], "relative.embedding",
                (ids, query.shape[1], query.shape[3]), query)
  _check_tensor(relative[1], "relative.bias", (ids, query.shape[1]), query)
  check(pattern.max_distance == 0 or ids >= 2 * pattern.max_distance + 4,
        f"relative should have at least {2 * pattern.max_distance + 4} ids for "
        f"a distance of {pattern.max_distance}, but has {ids}")


def sparse_attention(query, key, value, pattern, previous=None, residual="sum",
                     *, relative=None, gate=None, layers=None, decay=0.9,
                     dropout=0.0, implementation="auto"):
  """Attention over a pattern that adds scores from below before the softmax.

    own     = c (q . k + q . E[id] + bias[id]) / sqrt(d)
    scores  = previous + own
    context = dropout(softmax over visible keys of scores / divisor) . v

  with c and divisor 1 for "sum"; attention/residual_attention.h has the other
  modes. Differentiable in query, key, value, previous, relative and gate, and
  both results are: the layer above sends a gradient into the scores too.
  All tensors are float64, or float32 and 16 bits in any mixture, of which keys,
  values and the relative table take the query's dtype off the CPU; and finite,
  padding included: weight 0 times NaN is NaN.

  Args:
    query: [B, N, T, d]; key: [B, N, S, d]; value: [B, N, S, e]. On the CPU
      numbers of 16 bits are computed with in float32.
    pattern: who sees whom (realetc.patterns).
    previous: scores of the layer below, or any additive bias, finite: to hide
      keys is the pattern's. [B, N, T, S], or with a window
      [B, N, T, before + 1 + after], where column w of row i is key
      i + w - before. None: zeros.
    residual: "off", "sum", "mean", "decay" or "gate".
    relative: (embedding [ids, N, d], bias [ids, N]), ids >= 2 max_distance + 4.
    gate: [N], the factor of previous scores in the logits, for "gate".
    layers: layers whose scores are in `previous`; for "mean" and "decay".
    decay: beta of "decay".
    dropout: the probability of dropping a weight.
    implementation: "auto": fused kernels for float32 and less on the CPU, and
      blocks of tensor operations elsewhere, with gradients once. "reference":
      dense tensor operations, differentiable any number of times.

  Returns:
    context [B, N, T, e] in the dtype of the query, and the scores, shaped as
    `previous`, in float32 or more; None for "off". Scores of pairs that may not
    see each other are unspecified, but finite.

  Raises:
    ValueError: a shape, a dtype, a device or a setting that does not fit.
  """
  _check_settings(residual, dropout, implementation)
  _check_one_block(query, key, value, pattern, previous, gate)
  _check_residual(residual, previous is not None, gate)
  _check_relative(relative, pattern, query)
  operands, scores, gates, is_own = _one_block(query, key, value, pattern,
                                               previous, gate)
  context, own, other = two_block_attention(
      operands, pattern, scores, residual=residual, relative=relative,
      gates=gates, layers=_layers_below(previous, residual, layers),
      decay=decay, dropout=dropout, implementation=implementation)
  if residual == "off":
    return context.to(query.dtype), None
  return context.to(query.dtype), own if is_own else other


def _dense_pattern(mask, is_causal, query, keys):
  """The pattern of a mask of examples, tokens and keys."""
  pattern = patterns.causal() if is_causal else patterns.unrestricted()
  if mask is None:
    return pattern
  check(isinstance(mask, torch.Tensor) and mask.dtype == torch.bool,
        "mask should be a bool tensor, true where attention is allowed, but is "
        f"{getattr(mask, 'dtype', type(mask).__name__)}; what is added to "
        "scores is `previous`")
  batch, _, queries, _ = query.shape
  # Of 3 dimensions scaled_dot_product_attention takes the first for heads.
  check(2 <= mask.dim() <= 4 and (mask.dim() == 2 or mask.shape[-3] == 1),
        f"mask should be [T, S] or [B, 1, T, S], but is {list(mask.shape)}; "
        "masks of examples need that 1 for the heads, and masks of single heads "
        "go to `previous`, as large negative numbers")
  whole = mask.squeeze(1) if mask.dim() == 4 else mask
  whole = whole if whole.dim() == 3 else whole.unsqueeze(0)
  check(all(a in (1, b) for a, b in zip(whole.shape, (batch, queries, keys))),
        f"mask should be {[batch, 1, queries, keys]} or have sizes of 1 "
        f"instead, but is {list(mask.shape)}")
  if whole.shape[1] == 1 and queries != 1:
    return pattern.only_keys(whole[:, 0].expand(batch, keys))
  if is_causal:
    past = torch.ones(queries, keys, dtype=torch.bool,
                      device=mask.device).tril()
    whole = whole & past
  return patterns.matrix(whole)


def residual_attention(query, key, value, previous=None, mask=None,
                       is_causal=False, *, residual="sum", gate=None,
                       layers=None, decay=0.9, dropout_p=0.0, scale=None,
                       enable_gqa=False, implementation="auto"):
  """Dense attention with carried scores, or with any additive pair bias.

  As torch.nn.functional.scaled_dot_product_attention, but that `previous` is
  added to the scores before the softmax, with its exact gradient, that the sum
  is returned for the layer above, and that masks are bool and alike for all
  heads:

    context, scores = residual_attention(q, k, v, previous=scores)

  Args:
    query: [B, N, T, d]; key: [B, N, S, d]; value: [B, N, S, e]; dtypes and
      padding as sparse_attention.
    previous: what broadcasts to [B, N, T, S]: the scores of the layer below
      (RealFormer), or a bias for each pair of tokens, such as [N, T, S]; all
      finite.
    mask: bool, true where attention is allowed: [T, S] or [B, 1, T, S];
      [B, 1, 1, S] for padding. A query that sees nothing gets 0.
    is_causal: query i sees the keys [0, i]; also with a mask.
    residual, gate, layers, decay, implementation: as sparse_attention.
    dropout_p: the probability of dropping a weight.
    scale: the factor of q . k; 1 / sqrt(d) by default.
    enable_gqa: repeats the heads of key and value to as many as query has.

  Returns:
    context [B, N, T, e] and scores [B, N, T, S], None with residual="off".
  """
  for tensor, name in ((query, "query"), (key, "key"), (value, "value")):
    _check_heads(tensor, name)
  if enable_gqa:
    check(all(heads > 0 and query.shape[1] % heads == 0
              for heads in (key.shape[1], value.shape[1])),
          f"query's {query.shape[1]} heads should be a multiple of those of "
          f"key, {key.shape[1]}, and value, {value.shape[1]}")
    key = key.repeat_interleave(query.shape[1] // key.shape[1], 1)
    value = value.repeat_interleave(query.shape[1] // value.shape[1], 1)
  dtype = query.dtype
  if scale is not None:
    if query.device.type == "cpu":  # so that the product is not rounded
      query = query.to(_operations.score_dtype(dtype))
    query = query * (scale * math.sqrt(query.shape[3]))
  if previous is not None:
    shape = (*query.shape[:3], key.shape[2])
    check(isinstance(previous, torch.Tensor) and
          previous.dim() <= 4 and
          all(a in (1, b) for a, b in
              zip(reversed(previous.shape), reversed(shape))),
          "previous should be a tensor that broadcasts to [batch, heads, "
          f"queries, keys] = {list(shape)}, but is "
          f"{list(getattr(previous, 'shape', [type(previous).__name__]))}")
    previous = previous.expand(shape)
  context, scores = sparse_attention(
      query, key, value, _dense_pattern(mask, is_causal, query, key.shape[2]),
      previous, residual, gate=gate, layers=layers, decay=decay,
      dropout=dropout_p, implementation=implementation)
  return context.to(dtype), scores
