"""Who sees whom: patterns for sparse_attention and GlobalLocalAttention.

A pattern is a few numbers and at most two tensors, made without looking at
data, so it can be made within or outside of torch.compile. B is the batch, T
the number of queries, S that of keys, L and G those of long and global tokens.
"""
import typing

import torch

from realetc.etc_attention import serializable

# As in python/csrc/pattern_arguments.h.
_ALL_KEYS, _CAUSAL, _WINDOW, _MATRIX, _LONG_SIDE, _GLOBAL_SIDE = range(6)

_INTEGERS = (torch.int32, torch.int64)


def check(condition, message):
  """ValueError with the message unless the condition holds."""
  if not condition:
    raise ValueError(message)


def _check_bool(mask, name, dims):
  check(isinstance(mask, torch.Tensor) and mask.dtype == torch.bool,
        f"{name} should be a bool tensor, true where attention is allowed, "
        f"but is {getattr(mask, 'dtype', type(mask).__name__)}")
  check(mask.dim() == dims,
        f"{name} should have {dims} dimensions, but its shape is "
        f"{list(mask.shape)}")


def _check_ids(ids, name):
  check(isinstance(ids, torch.Tensor) and ids.dtype in _INTEGERS,
        f"{name} should be a tensor of int64 or int32, but is "
        f"{getattr(ids, 'dtype', type(ids).__name__)}")
  check(ids.dim() == 2,
        f"{name} should be [batch, length], but its shape is "
        f"{list(ids.shape)}")


def check_integer(number, name):
  """Refuses floats; other types are left to the operation's schema.

  Integers are of many types: numpy's, and torch.SymInt in torch.export.
  """
  check(not isinstance(number, float),
        f"{name} should be an integer, but is {number}")


def _check_distance(max_distance):
  check_integer(max_distance, "max_distance")
  check(max_distance >= 0,
        f"max_distance should be at least 0, but is {max_distance}")


def _check_radius(radius):
  check_integer(radius, "radius")
  check(radius >= 1, f"radius should be at least 1, but is {radius}")


@serializable
class Pattern(typing.NamedTuple):
  """A pattern of one softmax; made by the functions of this module."""
  kind: int
  before: int = 0
  after: int = 0
  max_distance: int = 0
  is_causal: bool = False
  hard_l2g: bool = False
  hard_g2l: bool = False
  first: typing.Optional[torch.Tensor] = None
  second: typing.Optional[torch.Tensor] = None

  def only_keys(self, mask):
    """The same without the keys at which `mask`, bool [B, S], is false."""
    _check_bool(mask, "mask", 2)
    self._check_one_block()
    if self.kind == _MATRIX:
      return self._replace(first=self.first & mask.unsqueeze(1))
    if self.second is not None:
      return self._replace(second=self.second.masked_fill(~mask, 0))
    return self._replace(first=mask if self.first is None
                         else self.first & mask)

  def only_documents(self, ids, key_ids=None):
    """The same, but that queries see only keys of their own document.

    `ids` [B, T] and `key_ids` [B, S] (left out: `ids`) are integers from 0 on,
    equal within a document; 0 is padding, which sees nothing and is not seen.
    """
    key_ids = ids if key_ids is None else key_ids
    _check_ids(ids, "ids")
    _check_ids(key_ids, "key_ids")
    self._check_one_block()
    check(self.second is None, "the pattern has documents already")
    if self.kind == _MATRIX:
      same = ids.unsqueeze(2).eq(key_ids.unsqueeze(1)) & ids.ne(0).unsqueeze(2)
      return self._replace(first=self.first & same)
    if self.first is not None:  # a mask of keys
      key_ids = key_ids.masked_fill(~self.first, 0)
    return self._replace(first=ids, second=key_ids)

  def numbers(self):
    """The numbers as torch.ops.realetc takes them."""
    return [self.kind, self.before, self.after, self.max_distance,
            int(self.is_causal), int(self.hard_l2g), int(self.hard_g2l)]

  def has_two_blocks(self):
    """Returns true of a side of a GlobalLocalPattern."""
    return self.kind in (_LONG_SIDE, _GLOBAL_SIDE)

  def window_columns(self, queries, keys):
    """Columns of own scores, before + 1 + after, or None without a window.

    A window as wide as the sequence, or over keys that are not the queries'
    own tokens, has a column for each key.
    """
    if self.kind == _LONG_SIDE:
      return self.before + 1 + (0 if self.is_causal else self.before)
    if self.kind != _WINDOW or queries != keys:
      return None
    columns = min(self.before, queries) + 1 + min(self.after, queries)
    return columns if columns < keys else None

  def _check_one_block(self):
    check(not self.has_two_blocks(),
          "a side of a GlobalLocalPattern takes no further masks")


def unrestricted(max_distance=0):
  """Every query sees every key.

  With `max_distance` m > 0 each pair has a relative id by its distance, for the
  relative table of sparse_attention; so in the next ones.
  """
  _check_distance(max_distance)
  return Pattern(_ALL_KEYS, max_distance=max_distance)


def causal(max_distance=0):
  """Query i sees the keys [0, i]."""
  _check_distance(max_distance)
  return Pattern(_CAUSAL, max_distance=max_distance)


def window(before, after=None, max_distance=0):
  """Query i sees the keys [i - before, i + after]; `after` as `before`."""
  after = before if after is None else after
  check_integer(before, "before")
  check_integer(after, "after")
  check(before >= 0 and after >= 0,
        f"a window should be at least 0 to each side, but is {before} and "
        f"{after}")
  _check_distance(max_distance)
  return Pattern(_WINDOW, before=before, after=after, max_distance=max_distance)


def padding(mask):
  """Every query sees the keys at which `mask`, bool [B, S], is true."""
  return unrestricted().only_keys(mask)


def documents(ids, key_ids=None):
  """Block-diagonal: queries see keys of their own document (only_documents)."""
  return unrestricted().only_documents(ids, key_ids)


def matrix(mask, max_distance=0):
  """Query i sees the keys j at which `mask`, bool [B, T, S], is true.

  Sizes of 1 stand for all. It is read in each pass, a small part of its time;
  rows of a few runs of keys go to the kernels, others to tensor operations.
  """
  _check_bool(mask, "mask", 3)
  _check_distance(max_distance)
  return Pattern(_MATRIX, max_distance=max_distance, first=mask)


@serializable
class GlobalLocalPattern(typing.NamedTuple):
  """A pattern of both softmaxes of ETC, for GlobalLocalAttention.

  Made by global_local and global_local_tokens.
  """
  radius: int
  max_distance: typing.Optional[int] = None  # the layer's
  is_causal: bool = False
  hard_l2g: bool = False
  hard_g2l: bool = False
  longs: typing.Optional[torch.Tensor] = None
  globals: typing.Optional[torch.Tensor] = None

  def long_side(self):
    """The pattern of long queries over [l2l ; l2g]."""
    return self._side(_LONG_SIDE)

  def global_side(self):
    """The pattern of global queries over [g2g ; g2l]."""
    return self._side(_GLOBAL_SIDE)

  def _side(self, kind):
    return Pattern(kind, before=self.radius,
                   max_distance=self.max_distance or 0,
                   is_causal=self.is_causal, hard_l2g=self.hard_l2g,
                   hard_g2l=self.hard_g2l, first=self.longs,
                   second=self.globals)


def global_local(radius, long_mask=None, global_mask=None, *, long_ids=None,
                 global_ids=None, max_distance=None, causal=False):  # pylint: disable=redefined-outer-name
  """ETC's pattern: windows of `radius` to both sides, and global tokens.

  Long tokens see `radius` tokens to each side and all global tokens, global
  tokens see everything. Masks, bool [B, L] and [B, G], are false for padding.
  Or ids, integers [B, L] and [B, G], are equal within a document of packed rows
  and 0 for padding. `causal` restricts long tokens to the past, and global
  tokens as attention/attention_inputs.h says. `max_distance` of relative ids is
  by default the layer's; without a layer there are none then.
  """
  _check_radius(radius)
  if max_distance is not None:
    _check_distance(max_distance)
  masks = long_mask is not None or global_mask is not None
  ids = long_ids is not None or global_ids is not None
  check(not (masks and ids), "masks and ids are given; either should be")
  if long_mask is not None:
    _check_bool(long_mask, "long_mask", 2)
  if global_mask is not None:
    _check_bool(global_mask, "global_mask", 2)
  if ids:
    _check_ids(long_ids, "long_ids")
    _check_ids(global_ids, "global_ids")
  return GlobalLocalPattern(
      radius, max_distance=max_distance, is_causal=causal,
      longs=long_ids if ids else long_mask,
      globals=global_ids if ids else global_mask)


def global_local_tokens(radius, long_tokens, global_tokens, *, max_distance=12,
                        hard_l2g=False, hard_g2l=False, causal=False):  # pylint: disable=redefined-outer-name
  """ETC's pattern with segments, sentences and hard masks.

  `long_tokens`, int32 [B, 6, L]: segment, example (both -1 for padding), and the
  indices of the global tokens of its sentence, of its paragraph and of a link
  (-1 for none), and 1 where hard_l2g is ignored. `global_tokens`, int32
  [B, 3, G]: example (-1 for padding), segment, and 1 where hard_g2l is ignored.
  attention/pattern.h says who sees whom, and which relative ids they have.
  """
  _check_radius(radius)
  _check_distance(max_distance)
  for tokens, name, rows in ((long_tokens, "long_tokens", 6),
                             (global_tokens, "global_tokens", 3)):
    check(tokens.dtype == torch.int32 and tokens.dim() == 3 and
          tokens.shape[1] == rows,
          f"{name} should be int32 [batch, {rows}, length], but is "
          f"{tokens.dtype} {list(tokens.shape)}")
  return GlobalLocalPattern(radius, max_distance, causal, hard_l2g, hard_g2l,
                            long_tokens, global_tokens)
