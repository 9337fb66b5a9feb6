"""ETC's attention with residual scores, in PyTorch's tensor operations.

Imports nothing of this package: `realetc export --format huggingface` writes
this file as it is.
"""
import math
import typing

import torch
from torch import nn
from torch.nn import functional
from torch.utils import _pytree

RESIDUAL_MODES = ("off", "sum", "mean", "decay", "gate")
_LOW_PRECISION = (torch.bfloat16, torch.float16)
# C++'s kLargestDecayFactor.
_LARGEST_DECAY_FACTOR = 1e4


def serializable(named_tuple):
  """Lets torch.export.save write a class of named tuples."""
  register = getattr(_pytree, "_register_namedtuple", None)
  if register is not None:  # a private function
    # transformers loads copies of this file as modules of other names.
    register(named_tuple, serialized_type_name=f"{named_tuple.__module__}."
             f"{named_tuple.__qualname__}")
  return named_tuple


@serializable
class ResidualScores(typing.NamedTuple):
  """The scores that one layer carries to the next, one tensor for each block.

  With B batch, N heads, L long length, G global length and radius r: never
  masked, never divided. Column w of row i of l2l is key i + w - r.
  """
  g2g: torch.Tensor  # [B, N, G, G]
  g2l: torch.Tensor  # [B, N, G, L]
  l2g: torch.Tensor  # [B, N, L, G]
  l2l: torch.Tensor  # [B, N, L, 2r + 1], causal [B, N, L, r + 1]
  layers: int = 1  # layers whose scores are in the sum


def residual_factors(residual, layers, decay):
  """The factor of a layer's own scores, and the divisor of the sum."""
  if residual == "mean":
    return 1.0, layers + 1
  if residual == "decay":
    if not 0.0 < decay < 1.0:
      raise ValueError(f"decay should be above 0 and below 1, but is {decay}")
    divisor = math.pow(decay, -layers)
    if divisor >= _LARGEST_DECAY_FACTOR:
      raise ValueError(
          f"a decay of {decay} is too small for {layers + 1} layers")
    return (1.0 - decay) * divisor, divisor
  return 1.0, 1.0


# --- Who sees whom ------------------------------------------------------------


class TokenPattern:
  """ETC's pattern of tokens as masks and relative ids.

  Fields as of realetc.patterns.global_local_tokens; attention/pattern.h has the
  formulas. With W = 2 radius + 1, masks are bool and ids int64.
  """

  def __init__(self, radius, longs, globals_, max_distance, hard_l2g=False,
               hard_g2l=False):
    self.radius, self.max_distance = radius, max_distance
    segment, example, sentence, paragraph, linked, free_l2g = longs.unbind(1)
    global_example, global_segment, free_g2l = globals_.unbind(1)
    device = longs.device
    window = torch.arange(-radius, radius + 1, device=device)
    padded = functional.pad(segment, (radius, radius), value=-1)
    keys = (padded.unfold(1, 2 * radius + 1, 1) if segment.shape[1]
            else segment.new_empty(len(segment), 0, 2 * radius + 1))
    index = torch.arange(globals_.shape[2], device=device)

    def at(ids):  # [B, L, G]: the global token that a long one refers to
      return ids.unsqueeze(2) == index

    owned = at(sentence) | at(paragraph)
    both = ((example.unsqueeze(2) == global_example.unsqueeze(1)) &
            (example >= 0).unsqueeze(2))
    l2g, g2l = both, both
    if hard_l2g:
      l2g = both & (owned | (free_l2g != 0).unsqueeze(2))
    if hard_g2l:
      g2l = both & (owned | (free_g2l != 0).unsqueeze(1))
    # [B, L, W], [B, L, G], [B, G, G], [B, G, L]
    self.l2l_mask = (keys == segment.unsqueeze(2)) & (segment >= 0).unsqueeze(2)
    self.l2g_mask, self.g2l_mask = l2g, g2l.transpose(1, 2)
    self.g2g_mask = (
        (global_example.unsqueeze(2) == global_example.unsqueeze(1)) &
        (global_example >= 0).unsqueeze(2))
    if not max_distance:
      return
    self.l2l_ids = self._distance_ids(window)  # [W]
    not_linked = 2 * max_distance + 1
    self.l2g_ids = not_linked + (owned | at(linked)).long()
    self.g2l_ids = self.l2g_ids.transpose(1, 2)
    same = global_segment.unsqueeze(2) == global_segment.unsqueeze(1)
    self.g2g_ids = torch.where(
        same, self._distance_ids(index - index.unsqueeze(1)), not_linked + 2)

  def _distance_ids(self, delta):
    near = delta.abs().clamp(max=self.max_distance)
    return torch.where(delta >= 0, near, near + self.max_distance)


def everything(batch, longs, globals_, device):
  """Rows of tokens that all see each other: int32 [B, 6, L] and [B, 3, G]."""
  row = torch.tensor([0, 0, -1, -1, -1, 0], dtype=torch.int32, device=device)
  return (row.view(1, 6, 1).expand(batch, 6, longs),
          torch.zeros(batch, 3, globals_, dtype=torch.int32, device=device))


# --- Attention ----------------------------------------------------------------


def _window_blocks(keys, radius, queries):
  """[B, N, L, d] -> [B, N, blocks, size + 2r, d]: what each block may see."""
  size = max(radius, 16)
  blocks = -(-queries // size)
  padded = functional.pad(
      keys, (0, 0, radius, radius + blocks * size - queries))
  return padded.unfold(2, size + 2 * radius, size).transpose(-2, -1), size


def _in_blocks(rows, size):
  """[B, N, L, d] -> [B, N, blocks, size, d]."""
  missing = -rows.shape[2] % size
  return functional.pad(rows, (0, 0, 0, missing)).unflatten(2, (-1, size))


def window_scores(query, key, radius):
  """[B, N, L, d] -> [B, N, L, 2r + 1]: column w of row i is key i + w - r."""
  queries, columns = query.shape[2], 2 * radius + 1
  if queries == 0:
    return query.new_empty(*query.shape[:3], columns)
  keys, size = _window_blocks(key, radius, queries)
  scores = _in_blocks(query, size) @ keys.transpose(-2, -1)
  # Row i of a block begins at its column i: rows one longer are straight.
  straight = functional.pad(scores.flatten(-2), (0, size)).unflatten(
      -1, (size, size + columns))
  return straight[..., :columns].flatten(2, 3)[:, :, :queries]


def window_context(weights, value, radius):
  """Weights [B, N, L, 2r + 1] of values [B, N, L, d] -> [B, N, L, d]."""
  queries = weights.shape[2]
  if queries == 0:
    return value
  values, size = _window_blocks(value, radius, queries)
  rows = functional.pad(_in_blocks(weights, size), (0, size)).flatten(-2)
  slanted = rows[..., :-size].unflatten(-1, (size, size + 2 * radius))
  return (slanted @ values).flatten(2, 3)[:, :, :queries]


class Operands(typing.NamedTuple):
  """Tensors of one softmax over two blocks of keys."""
  query: torch.Tensor
  own_key: torch.Tensor
  own_value: torch.Tensor
  other_key: torch.Tensor
  other_value: torch.Tensor


def masked_softmax(logits, allowed):
  """Weights of the allowed keys; 0 for others, and where none is allowed."""
  # The softmax of a row of -inf would be NaN.
  sees_any = allowed.any(-1, keepdim=True)
  hidden = torch.zeros_like(sees_any, dtype=logits.dtype).masked_fill(
      sees_any, -math.inf)
  return torch.softmax(torch.where(allowed, logits, hidden),
                       -1).masked_fill(~allowed, 0.0)


def _relative_scores(query, relative, own_ids, other_ids):
  """q . E[id] + bias[id] for own and other keys."""
  by_id = (query @ relative.embedding.permute(1, 2, 0) +
           relative.bias.t().unsqueeze(1))  # [B, N, T, ids]

  def of(ids):
    if ids.dim() == 1:  # by column
      return by_id.index_select(-1, ids)
    return by_id.gather(-1, ids.unsqueeze(1).expand(-1, by_id.shape[1], -1, -1))

  return of(own_ids), of(other_ids)


class RelativePositions(nn.Module):
  """The learned relative positions of one softmax."""

  def __init__(self, ids, heads, head_size):
    super().__init__()
    self.embedding = nn.Parameter(torch.empty(ids, heads, head_size))
    self.bias = nn.Parameter(torch.empty(ids, heads))
    initialize(self)


def make_linear(inputs, outputs, deviation):
  """A layer whose weight begins truncated normal."""
  layer = nn.Linear(inputs, outputs)
  layer.deviation = deviation
  initialize(layer)
  return layer


def _truncated_normal(tensor, deviation):
  nn.init.trunc_normal_(tensor, std=deviation, a=-2 * deviation,
                        b=2 * deviation)


def initialize(module):
  """Gives the parameters of one module, not of those in it, first values."""
  if isinstance(module, nn.Linear):
    _truncated_normal(module.weight, getattr(module, "deviation", 0.02))
    nn.init.zeros_(module.bias)
  elif isinstance(module, nn.LayerNorm):
    nn.init.ones_(module.weight)
    nn.init.zeros_(module.bias)
  # By name: in an exported folder, which has a copy of this file, the class of
  # that copy is another one than that of the package.
  elif type(module).__name__ == RelativePositions.__name__:
    _truncated_normal(module.embedding, 0.5)
    nn.init.zeros_(module.bias)
  elif isinstance(module, nn.Embedding):
    _truncated_normal(module.weight, getattr(module, "deviation", 0.02))
  else:
    for name, parameter in module.named_parameters(recurse=False):
      if name.endswith("_gate"):
        nn.init.constant_(parameter, module.gate_init)
      elif name.endswith("alpha"):
        nn.init.zeros_(parameter)
      elif name.endswith("omega"):
        nn.init.ones_(parameter)


class PlainGlobalLocalAttention(nn.Module):
  """ETC's fused global-local attention with residual scores in all four blocks.

    long    softmax over [l2l ; l2g], then an output projection
    global  softmax over [g2g ; g2l], then an output projection

  Parameters have the names of C++'s GlobalLocalAttention, so weights of either
  load in the other. Shared projections are registered once, under the name of
  the long stream's. Here in tensor operations, on any device and in any dtype;
  O(L (W + G)) memory for the scores of each head.

  Args:
    hidden_size: features of both streams, or of the long one alone if
      `global_hidden_size` is given, which needs no sharing.
    num_heads, head_size: heads, and features of each (hidden_size / num_heads).
    radius: tokens that a long token sees to each side.
    max_distance: m of the relative positions; 0: none.
    relative_vocab_size: rows of each relative table, at least 2 m + 4, which is
      the default.
    residual: mode of the carried scores; "off": nothing is carried.
    gate_init: the layer has gates, for residual="gate", that begin with it.
      Needed in all layers but the first of a stack.
    has_long_tokens: false for BERT, whose tokens are all global.
    share_qkv, share_kv, share_output: as the C++ options share_qkv_projections,
      share_kv_projections and share_output_projection.
    causal: no output of a long token depends on a later one.
    dropout: of attention weights, in training.
    initializer_range: standard deviation of kernels at first; of those of
      output projections it is multiplied by output_initializer_factor.
  """

  def __init__(self, hidden_size, num_heads, radius, *, head_size=None,
               global_hidden_size=None, max_distance=0,
               relative_vocab_size=None, residual="sum", decay=0.9,
               gate_init=None, has_long_tokens=True, share_qkv=True,
               share_kv=False, share_output=False, causal=False, dropout=0.0,
               initializer_range=0.02, output_initializer_factor=1.0):
    super().__init__()
    global_size = global_hidden_size or hidden_size
    if num_heads < 1:
      raise ValueError(f"num_heads should be at least 1, but is {num_heads}")
    if head_size is None:
      if hidden_size % num_heads:
        raise ValueError(f"hidden_size, {hidden_size}, should be a multiple of "
                         f"num_heads, {num_heads}, or head_size be given")
      head_size = hidden_size // num_heads
    if (share_qkv or share_kv or share_output) and global_size != hidden_size:
      raise ValueError(
          f"shared projections need equal hidden sizes, but hidden_size is "
          f"{hidden_size} and global_hidden_size {global_size}")
    if residual not in RESIDUAL_MODES:
      raise ValueError(
          f"residual should be one of {', '.join(RESIDUAL_MODES)}, but is "
          f"{residual!r}")
    self.num_heads, self.head_size = num_heads, head_size
    self.radius, self.max_distance = radius, max_distance
    self.residual, self.decay, self.causal = residual, decay, causal
    self.dropout, self.gate_init = dropout, gate_init
    self.has_long_tokens = has_long_tokens
    self._share_qkv, self._share_kv = share_qkv, share_kv or share_qkv
    self._share_output = share_output
    self._add_projections(hidden_size, global_size, initializer_range,
                          output_initializer_factor)
    self._add_relative(relative_vocab_size)
    if gate_init is not None:
      blocks = ("g2g", "g2l", "l2l", "l2g") if has_long_tokens else ("g2g",)
      for block in blocks:
        setattr(self, f"{block}_gate", nn.Parameter(torch.empty(num_heads)))
    initialize(self)

  def _add_projections(self, long_size, global_size, deviation, output_factor):
    features = self.num_heads * self.head_size
    sizes = {"long_query": long_size, "l2l_key": long_size,
             "l2l_value": long_size}
    if not self._share_kv:
      sizes |= {"l2g_key": global_size, "l2g_value": global_size}
    if not self._share_qkv:
      sizes |= {"global_query": global_size, "g2g_key": global_size,
                "g2g_value": global_size}
    if not self._share_kv:
      sizes |= {"g2l_key": long_size, "g2l_value": long_size}
    for name, size in sizes.items():
      setattr(self, name, make_linear(size, features, deviation))
    outputs = deviation * output_factor
    self.long_output = make_linear(features, long_size, outputs)
    if not self._share_output:
      self.global_output = make_linear(features, global_size, outputs)

  def _add_relative(self, rows):
    least = 2 * self.max_distance + 4
    if rows is None:
      rows = least if self.max_distance > 0 else 0
    if rows == 0 and self.max_distance == 0:
      return
    if rows < least:
      raise ValueError(f"relative_vocab_size should be at least {least}, but "
                       f"is {rows}")
    for side in ("long", "global") if self.has_long_tokens else ("global",):
      setattr(self, f"{side}_relative",
              RelativePositions(rows, self.num_heads, self.head_size))

  def _projection(self, name):
    """The layer `name`, or the one that is shared in its place."""
    if self._share_qkv:
      name = {"global_query": "long_query"}.get(name, name)
      if name.endswith(("_key", "_value")):
        name = "l2l" + name[3:]
    elif self._share_kv and name[:3] in ("l2g", "g2l"):
      name = {"l2g": "l2l", "g2l": "g2g"}[name[:3]] + name[3:]
    return getattr(self, name)

  def _heads(self, name, tokens):
    """[B, length, hidden] -> [B, N, length, d]."""
    projected = self._projection(name)(tokens)
    return projected.unflatten(-1, (self.num_heads, self.head_size)).transpose(
        1, 2)

  def _attend(self, side, own, other, pattern, previous):
    """One softmax: its output [B, length, hidden], own and other scores."""
    blocks = {"long": ("l2l", "l2g"), "global": ("g2g", "g2l")}[side]
    operands = Operands(self._heads(f"{side}_query", own),
                        self._heads(f"{blocks[0]}_key", own),
                        self._heads(f"{blocks[0]}_value", own),
                        self._heads(f"{blocks[1]}_key", other),
                        self._heads(f"{blocks[1]}_value", other))
    scores, layers = (None, None), 0
    if previous is not None:
      scores = [getattr(previous, block) for block in blocks]
      layers = previous.layers
    gates = [getattr(self, f"{block}_gate", None) for block in blocks]
    if gates[1] is None:  # BERT has no other keys
      gates[1] = gates[0]
    context, own_scores, other_scores = self._attention(
        side, operands, pattern, scores, gates, layers)
    output = (self.long_output if side == "long" or self._share_output
              else self.global_output)
    joined = context.to(operands.query.dtype).transpose(1, 2).flatten(2)
    return output(joined), own_scores, other_scores

  def _attention(self, side, operands, pattern, previous, gates, layers):
    """Context [B, N, T, d] and scores of one softmax, of a TokenPattern."""
    names = {"long": ("l2l", "l2g"), "global": ("g2g", "g2l")}[side]
    masks = [getattr(pattern, f"{name}_mask") for name in names]
    factor, divisor = residual_factors(self.residual, layers, self.decay)
    query, own_key, own_value, other_key, other_value = operands
    if side == "long":
      own = [window_scores(query, own_key, self.radius)]
    else:
      own = [query @ own_key.transpose(-2, -1)]
    own.append(query @ other_key.transpose(-2, -1))
    if query.dtype in _LOW_PRECISION:
      own = [block.float() for block in own]
    if pattern.max_distance > 0:
      terms = _relative_scores(
          query, getattr(self, f"{side}_relative"),
          *(getattr(pattern, f"{name}_ids") for name in names))
      own = [block + term for block, term in zip(own, terms)]
    own = [block / math.sqrt(self.head_size) * factor for block in own]
    scores = logits = own
    if layers > 0:
      scores = [a + b for a, b in zip(own, previous)]
      logits = scores
      if self.residual == "gate":
        logits = [a + gate.view(1, -1, 1, 1) * b
                  for a, gate, b in zip(own, gates, previous)]
    seen = torch.cat(masks, -1).unsqueeze(1)
    weights = masked_softmax(torch.cat(logits, -1) / divisor,
                             seen).to(query.dtype)
    weights = torch.dropout(weights, self.dropout, self.training)
    own_weights = weights[..., :own[0].shape[-1]]
    context = (window_context(own_weights, own_value, self.radius)
               if side == "long" else own_weights @ own_value)
    return (context + weights[..., own[0].shape[-1]:] @ other_value, *scores)

  def _window_columns(self):
    return self.radius + 1 + (0 if self.causal else self.radius)

  def _check_previous(self, previous, batch, longs, globals_):
    if previous is None:
      return
    if self.residual == "off":
      raise ValueError('previous scores are given, but residual is "off"')
    if not isinstance(previous, ResidualScores):
      raise ValueError("previous should be the ResidualScores of the layer "
                       f"below, but is {type(previous).__name__}")
    if self.residual == "gate" and not hasattr(self, "g2g_gate"):
      raise ValueError('residual="gate" carries scores to this layer, which '
                       "has no gates: give it gate_init")
    shapes = {"g2g": (globals_, globals_), "g2l": (globals_, longs),
              "l2g": (longs, globals_), "l2l": (longs, self._window_columns())}
    for name, shape in shapes.items():
      expected = (batch, self.num_heads, *shape)
      found = getattr(previous, name).shape
      if tuple(found) != expected:
        raise ValueError(f"previous.{name} should be {list(expected)}, but is "
                         f"{list(found)}")

  def _check_inputs(self, long_input, global_input):
    for tensor, name in ((long_input, "long_input"),
                         (global_input, "global_input")):
      size = self._projection("l2l_key" if name == "long_input"
                              else "g2g_key").in_features
      if tensor.dim() != 3 or tensor.shape[2] != size:
        raise ValueError(f"{name} should be [batch, length, {size}], but is "
                         f"{list(tensor.shape)}")
    if long_input.shape[0] != global_input.shape[0]:
      raise ValueError(
          f"global_input should have the batch of long_input, "
          f"{long_input.shape[0]}, but has {global_input.shape[0]}")
    if long_input.shape[1] > 0 and not self.has_long_tokens:
      raise ValueError(f"there are {long_input.shape[1]} long tokens, but "
                       "has_long_tokens is false")

  def _sides(self, pattern, long_input, global_input):
    """The pattern as `_attention` takes it, for each of both sides."""
    if self.causal:
      raise ValueError("causal layers need realetc.GlobalLocalAttention")
    if pattern is None:
      pattern = TokenPattern(
          self.radius, *everything(*long_input.shape[:2], global_input.shape[1],
                                   long_input.device), self.max_distance)
    if not isinstance(pattern, TokenPattern):
      raise ValueError("pattern should be a TokenPattern, but is "
                       f"{type(pattern).__name__}")
    if pattern.radius != self.radius or (
        pattern.max_distance > self.max_distance):
      raise ValueError(
          f"pattern has radius {pattern.radius} and max_distance "
          f"{pattern.max_distance}, but the layer {self.radius} and "
          f"{self.max_distance}")
    return pattern, pattern

  def forward(self, long_input, global_input, pattern=None, previous=None):
    """Both streams behind their output projections, and the scores.

    Args:
      long_input: [B, L, hidden_size].
      global_input: [B, G, global_hidden_size].
      pattern: a TokenPattern, or for realetc.GlobalLocalAttention a
        realetc.patterns.GlobalLocalPattern; None: everything visible.
      previous: the ResidualScores of the layer below, None in the first one.

    Returns:
      Outputs [B, L, hidden_size] and [B, G, global_hidden_size], and the
      ResidualScores for the layer above, None with residual="off".
    """
    self._check_inputs(long_input, global_input)
    self._check_previous(previous, *long_input.shape[:2],
                         global_input.shape[1])
    long_side, global_side = self._sides(pattern, long_input, global_input)
    if self.has_long_tokens:
      longs, l2l, l2g = self._attend("long", long_input, global_input,
                                     long_side, previous)
    else:
      batch = long_input.shape[0]
      longs = long_input
      l2l, l2g = (long_input.new_empty(batch, self.num_heads, 0, columns)
                  for columns in (self._window_columns(),
                                  global_input.shape[1]))
    globals_, g2g, g2l = self._attend("global", global_input, long_input,
                                      global_side, previous)
    if self.residual == "off":
      return longs, globals_, None
    layers = 1 if previous is None else previous.layers + 1
    return longs, globals_, ResidualScores(g2g, g2l, l2g, l2l, layers)
