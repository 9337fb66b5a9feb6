"""The definition of attention in plain tensor operations.

As attention/backends/reference/dense_attention.h: any floating dtype, any
device, differentiable any number of times, O(queries x keys) memory. All is
computed in float32 or more. Everything else is compared with it.
"""
import math

import torch

from realetc import _operations
from realetc.etc_attention import masked_softmax


class _OwnColumns:
  """Moves numbers for own keys between windows and a dense matrix.

  Windows are [..., T, columns], where column w of row i is key i + w - before,
  the matrix is [..., T, keys]. Without a window (None) they are the same.
  """

  def __init__(self, queries, keys, before, columns, device):
    self.is_windowed = columns is not None
    if not self.is_windowed:
      return
    query = torch.arange(queries, device=device).unsqueeze(1)
    column = torch.arange(keys, device=device) - query + before
    self.in_window = (column >= 0) & (column < columns)
    self.column = column.masked_fill(~self.in_window, 0)
    key = query + torch.arange(columns, device=device) - before
    self.in_keys = (key >= 0) & (key < keys)
    self.key = key.masked_fill(~self.in_keys, 0)

  def to_dense(self, windows):
    """[..., T, columns] -> [..., T, keys], 0 outside of the windows."""
    if not self.is_windowed:
      return windows
    column = self.column.expand(*windows.shape[:-1], -1)
    return windows.gather(-1, column).masked_fill(~self.in_window, 0)

  def from_dense(self, dense):
    """[..., T, keys] -> [..., T, columns], 0 for keys that there are not."""
    if not self.is_windowed:
      return dense
    key = self.key.expand(*dense.shape[:-1], -1)
    return dense.gather(-1, key).masked_fill(~self.in_keys, 0)


def _own_columns_of(pattern, query, own_keys):
  queries = query.shape[2]
  columns = pattern.window_columns(queries, own_keys)
  before = (pattern.before if pattern.has_two_blocks()
            else min(pattern.before, queries))
  return _OwnColumns(queries, own_keys, before, columns, query.device)


def _relative_scores(query, embedding, bias, ids):
  """q . E[id] + bias[id]: [B, N, T, keys]."""
  by_id = (torch.matmul(query, embedding.permute(1, 2, 0)) +
           bias.t().unsqueeze(1))
  return by_id.gather(-1, ids.unsqueeze(1).expand(-1, query.shape[1], -1, -1))


def attention(query, own_key, own_value, other_key, other_value,
              relative_embedding, relative_bias, own_previous, other_previous,
              own_gate, other_gate, pattern, score_factor, divisor, dropout):
  """Context, own and other scores, as torch.ops.realetc.attention_forward."""
  dtype = _operations.score_dtype(query.dtype)
  query = query.to(dtype)
  own_keys, other_keys = own_key.shape[2], other_key.shape[2]
  own_mask, own_ids, other_mask, other_ids = torch.ops.realetc.masks(
      query.detach(), own_keys, other_keys, pattern.first, pattern.second,
      pattern.numbers())
  columns = _own_columns_of(pattern, query, own_keys)

  def join(of_own, of_other):
    return torch.cat([columns.to_dense(of_own), of_other], -1)

  key = torch.cat([own_key, other_key], 2).to(dtype)
  own = torch.matmul(query, key.transpose(-2, -1))
  if relative_embedding is not None:
    own = own + _relative_scores(query, relative_embedding.to(dtype),
                                 relative_bias.to(dtype),
                                 join(own_ids, other_ids))
  own = own / math.sqrt(query.shape[3]) * score_factor
  scores = own
  if own_previous is not None:
    previous = join(own_previous, other_previous)
    scores = own + previous
  if own_gate is not None:
    gates = torch.cat([own_gate.unsqueeze(1).expand(-1, own_keys),
                       other_gate.unsqueeze(1).expand(-1, other_keys)], 1)
    logits = own + gates.unsqueeze(1) * previous
  else:
    logits = scores / divisor
  allowed = join(own_mask, other_mask).unsqueeze(1)
  weights = torch.dropout(masked_softmax(logits, allowed), dropout, True)
  value = torch.cat([own_value, other_value], 2)
  context = torch.matmul(weights, value.to(weights.dtype)).to(value.dtype)
  return (context, columns.from_dense(scores[..., :own_keys]),
          scores[..., own_keys:])
