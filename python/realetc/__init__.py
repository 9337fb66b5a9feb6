"""Attention with carried scores and pair biases, sparse and dense.

  residual_attention    dense attention that also takes and returns scores: a
                        drop-in for scaled_dot_product_attention
  sparse_attention      the same over a pattern (realetc.patterns)
  GlobalLocalAttention  a layer of ETC: a long and a global stream of tokens

python/README.md begins with examples. torch.ops.realetc has the operations.
"""
from realetc import _library

_library.load()

# pylint: disable=wrong-import-position
from realetc import patterns
from realetc.attention import residual_attention
from realetc.attention import sparse_attention
from realetc.global_local_attention import GlobalLocalAttention
from realetc.global_local_attention import ResidualScores

__all__ = ["GlobalLocalAttention", "ResidualScores", "patterns",
           "residual_attention", "sparse_attention"]
