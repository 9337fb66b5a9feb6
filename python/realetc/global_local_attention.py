"""A layer of ETC: global-local attention with four blocks of carried scores."""
import typing

import torch
from torch import nn

from realetc import attention as attention_lib
from realetc import patterns


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


class RelativePositions(nn.Module):
  """The learned relative positions of one softmax."""

  def __init__(self, ids, heads, head_size):
    super().__init__()
    self.embedding = nn.Parameter(torch.empty(ids, heads, head_size))
    self.bias = nn.Parameter(torch.zeros(ids, heads))
    nn.init.trunc_normal_(self.embedding, std=0.5, a=-1.0, b=1.0)

  def table(self):
    return attention_lib.RelativeTable(self.embedding, self.bias)


class GlobalLocalAttention(nn.Module):
  """ETC's fused global-local attention with residual scores in all four blocks.

    long    softmax over [l2l ; l2g], then an output projection
    global  softmax over [g2g ; g2l], then an output projection

  Parameters have the names of C++'s GlobalLocalAttention, so weights of either
  load in the other. Shared projections are registered once, under the name of
  the long stream's.

  Args:
    hidden_size: features of both streams, or of the long one alone if
      `global_hidden_size` is given, which needs no sharing.
    num_heads, head_size: heads, and features of each (hidden_size / num_heads).
    radius: tokens that a long token sees to each side.
    max_distance: m of the relative positions; 0: none.
    residual: mode of the carried scores; "off": nothing is carried.
    gate_init: the layer has gates, for residual="gate", that begin with it.
      Needed in all layers but the first of a stack.
    share_qkv, share_kv, share_output: as the C++ options share_qkv_projections,
      share_kv_projections and share_output_projection.
    causal: no output of a long token depends on a later one.
    dropout: of attention weights, in training.
    implementation: as sparse_attention.
  """

  def __init__(self, hidden_size, num_heads, radius, *, head_size=None,
               global_hidden_size=None, max_distance=0, residual="sum",
               decay=0.9, gate_init=None, share_qkv=True, share_kv=False,
               share_output=False, causal=False, dropout=0.0,
               initializer_range=0.02, implementation="auto"):
    super().__init__()
    global_size = global_hidden_size or hidden_size
    if head_size is None:
      if hidden_size % num_heads:
        raise ValueError(f"hidden_size, {hidden_size}, should be a multiple of "
                         f"num_heads, {num_heads}, or head_size be given")
      head_size = hidden_size // num_heads
    if (share_qkv or share_kv or share_output) and global_size != hidden_size:
      raise ValueError(
          f"shared projections need equal hidden sizes, but hidden_size is "
          f"{hidden_size} and global_hidden_size {global_size}")
    if residual not in attention_lib.RESIDUAL_MODES:
      raise ValueError(
          "residual should be one of "
          f"{', '.join(attention_lib.RESIDUAL_MODES)}, but is {residual!r}")
    self.num_heads, self.head_size = num_heads, head_size
    self.radius, self.max_distance = radius, max_distance
    self.residual, self.decay, self.causal = residual, decay, causal
    self.dropout, self.implementation = dropout, implementation
    self._share_qkv, self._share_kv = share_qkv, share_kv or share_qkv
    self._share_output = share_output
    self._add_projections(hidden_size, global_size)
    if max_distance > 0:
      ids = 2 * max_distance + 4
      self.long_relative = RelativePositions(ids, num_heads, head_size)
      self.global_relative = RelativePositions(ids, num_heads, head_size)
    if gate_init is not None:
      for name in ("g2g_gate", "g2l_gate", "l2l_gate", "l2g_gate"):
        setattr(self, name,
                nn.Parameter(torch.full((num_heads,), float(gate_init))))
    self._initialize(initializer_range)

  def _add_projections(self, long_size, global_size):
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
      setattr(self, name, nn.Linear(size, features))
    self.long_output = nn.Linear(features, long_size)
    if not self._share_output:
      self.global_output = nn.Linear(features, global_size)

  def _initialize(self, deviation):
    for module in self.modules():
      if isinstance(module, nn.Linear):
        nn.init.trunc_normal_(module.weight, std=deviation, a=-2 * deviation,
                              b=2 * deviation)
        nn.init.zeros_(module.bias)

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
    operands = attention_lib._Operands(  # pylint: disable=protected-access
        self._heads(f"{side}_query", own),
        self._heads(f"{blocks[0]}_key", own),
        self._heads(f"{blocks[0]}_value", own),
        self._heads(f"{blocks[1]}_key", other),
        self._heads(f"{blocks[1]}_value", other))
    scores, layers = (None, None), 0
    if previous is not None:
      scores = [getattr(previous, block) for block in blocks]
      layers = previous.layers
    gates = [getattr(self, f"{block}_gate", None) for block in blocks]
    relative = getattr(self, f"{side}_relative", None)
    context, own_scores, other_scores = attention_lib.two_block_attention(
        operands, pattern, scores, residual=self.residual,
        relative=None if relative is None else relative.table(), gates=gates,
        layers=layers, decay=self.decay,
        dropout=self.dropout if self.training else 0.0,
        implementation=self.implementation)
    output = (self.long_output if side == "long" or self._share_output
              else self.global_output)
    joined = context.to(operands.query.dtype).transpose(1, 2).flatten(2)
    return output(joined), own_scores, other_scores

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
    columns = self.radius + 1 + (0 if self.causal else self.radius)
    shapes = {"g2g": (globals_, globals_), "g2l": (globals_, longs),
              "l2g": (longs, globals_), "l2l": (longs, columns)}
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

  def _pattern(self, pattern):
    if pattern is None:
      pattern = patterns.global_local(self.radius,
                                      max_distance=self.max_distance)
    if not isinstance(pattern, patterns.GlobalLocalPattern):
      raise ValueError("pattern should be a realetc.patterns."
                       f"GlobalLocalPattern, but is {type(pattern).__name__}")
    if pattern.radius != self.radius:
      raise ValueError(f"pattern should have the layer's radius, "
                       f"{self.radius}, but has {pattern.radius}")
    if pattern.max_distance > self.max_distance:
      raise ValueError(
          f"pattern has relative ids up to {pattern.max_distance}, but the "
          f"layer's max_distance is {self.max_distance}")
    if self.causal and not pattern.is_causal:
      pattern = pattern._replace(is_causal=True)
    if pattern.is_causal and not self.causal:
      raise ValueError("pattern is causal, but the layer is not")
    return pattern

  def forward(self, long_input, global_input, pattern=None, previous=None):
    """Both streams behind their output projections, and the scores.

    Args:
      long_input: [B, L, hidden_size].
      global_input: [B, G, global_hidden_size].
      pattern: a realetc.patterns.GlobalLocalPattern; None: everything visible.
      previous: the ResidualScores of the layer below, None in the first one.

    Returns:
      Outputs [B, L, hidden_size] and [B, G, global_hidden_size], and the
      ResidualScores for the layer above, None with residual="off".
    """
    self._check_inputs(long_input, global_input)
    self._check_previous(previous, *long_input.shape[:2],
                         global_input.shape[1])
    pattern = self._pattern(pattern)
    for side, own, other in (
        (pattern.long_side(), long_input, global_input),
        (pattern.global_side(), global_input, long_input)):
      attention_lib._check_pattern(  # pylint: disable=protected-access
          side, own.unsqueeze(1), own.shape[1], other.shape[1])
    longs, l2l, l2g = self._attend("long", long_input, global_input,
                                   pattern.long_side(), previous)
    globals_, g2g, g2l = self._attend("global", global_input, long_input,
                                      pattern.global_side(), previous)
    if self.residual == "off":
      return longs, globals_, None
    layers = 1 if previous is None else previous.layers + 1
    return longs, globals_, ResidualScores(g2g, g2l, l2g, l2l, layers)
