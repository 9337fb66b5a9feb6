"""A layer of ETC: global-local attention with four blocks of carried scores."""
from realetc import attention as attention_lib
from realetc import etc_attention
from realetc import patterns


class GlobalLocalAttention(etc_attention.PlainGlobalLocalAttention):
  """ETC's fused global-local attention with residual scores in all four blocks.

  As PlainGlobalLocalAttention, whose arguments it takes, but computed by
  torch.ops.realetc, and for any realetc.patterns.GlobalLocalPattern.

  Args:
    implementation: as sparse_attention.
  """

  def __init__(self, hidden_size, num_heads, radius, *, implementation="auto",
               **options):
    attention_lib.check_implementation(implementation)
    super().__init__(hidden_size, num_heads, radius, **options)
    self.implementation = implementation

  def _attention(self, side, operands, pattern, previous, gates, layers):
    relative = getattr(self, f"{side}_relative", None)
    return attention_lib.two_block_attention(
        operands, pattern, previous, residual=self.residual,
        relative=relative and (relative.embedding, relative.bias),
        gates=gates, layers=layers, decay=self.decay,
        dropout=self.dropout if self.training else 0.0,
        implementation=self.implementation)

  def _sides(self, pattern, long_input, global_input):
    if pattern is None:
      pattern = patterns.global_local(self.radius)
    if not isinstance(pattern, patterns.GlobalLocalPattern):
      raise ValueError("pattern should be a realetc.patterns."
                       f"GlobalLocalPattern, but is {type(pattern).__name__}")
    if pattern.radius != self.radius:
      raise ValueError(f"pattern should have the layer's radius, "
                       f"{self.radius}, but has {pattern.radius}")
    if pattern.max_distance is None:
      pattern = pattern._replace(max_distance=self.max_distance)
    if pattern.max_distance != self.max_distance:
      raise ValueError(
          f"pattern has relative ids up to {pattern.max_distance}, but the "
          f"layer's max_distance is {self.max_distance}")
    if self.causal and not pattern.is_causal:
      pattern = pattern._replace(is_causal=True)
    if pattern.is_causal and not self.causal:
      raise ValueError("pattern is causal, but the layer is not")
    sides = pattern.long_side(), pattern.global_side()
    for side, own, other in zip(sides, (long_input, global_input),
                                (global_input, long_input)):
      attention_lib._check_pattern(  # pylint: disable=protected-access
          side, own.unsqueeze(1), own.shape[1], other.shape[1])
    return sides
