"""Attention with carried scores and pair biases, sparse and dense.

  residual_attention    dense attention that also takes and returns scores: a
                        drop-in for scaled_dot_product_attention with bool
                        masks that are alike for all heads
  sparse_attention      the same over a pattern (realetc.patterns)
  GlobalLocalAttention  a layer of ETC: a long and a global stream of tokens
  EtcModel              the encoder, its checkpoints, and texts as its input

python/README.md begins with examples. torch.ops.realetc has the operations.
"""
import importlib.metadata

from realetc import _library

_library.load()

# pylint: disable=wrong-import-position
from realetc import patterns
from realetc.attention import residual_attention
from realetc.attention import sparse_attention
from realetc.etc_attention import PlainGlobalLocalAttention
from realetc.etc_attention import ResidualScores
from realetc.etc_model import EtcConfig
from realetc.etc_model import EtcModel
from realetc.etc_text import split_sentences
from realetc.global_local_attention import GlobalLocalAttention

__version__ = importlib.metadata.version("realetc")

__all__ = ["EtcConfig", "EtcModel", "GlobalLocalAttention",
           "PlainGlobalLocalAttention", "ResidualScores", "patterns",
           "residual_attention", "sparse_attention", "split_sentences"]
