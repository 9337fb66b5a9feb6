"""The ETC encoder with residual scores, in PyTorch.

Parameters have the names of C++'s EtcModel (etc/model.h), so weights of either
load in the other. Attention is realetc.GlobalLocalAttention where realetc is
installed, else PlainGlobalLocalAttention: the same in tensor operations.
`realetc export --format huggingface` writes this file as it is.
"""
import contextlib
import copy
import dataclasses
import json
import math
import numbers
import os
import pathlib
import threading
import typing
import warnings

import torch
from torch import nn
from torch.nn import functional
from torch.utils import checkpoint

from .etc_attention import everything
from .etc_attention import initialize
from .etc_attention import make_linear
from .etc_attention import PlainGlobalLocalAttention
from .etc_attention import RESIDUAL_MODES
from .etc_attention import residual_factors
from .etc_attention import ResidualScores
from .etc_attention import serializable
from .etc_attention import TokenPattern
from .etc_text import chunks_of_texts
from .etc_text import copy_text_files
from .etc_text import import_package
from .etc_text import list_of_texts
from .etc_text import load_tokenizer
from .etc_text import make_inputs
from .etc_text import read_json
from .etc_text import read_pooling
from .etc_text import read_text_options
from .etc_text import read_transformers_config
from .etc_text import replacing
from .etc_text import source_folder
from .etc_text import span_of
from .etc_text import tensors_of_chunks
from .etc_text import TRANSFORMERS_CONFIG
from .etc_text import write_text_options

try:
  import realetc
except ModuleNotFoundError:
  realetc = None
except ImportError as error:
  warnings.warn(f"attention is computed by plain PyTorch: {error}")
  realetc = None

POOLINGS = ("first", "mean")
SUBLAYERS = ("post_norm", "pre_norm", "rezero", "admin")


# Named functions: pickle takes no lambdas.
def _gelu(x):
  return functional.gelu(x, approximate="tanh")


def _linear(x):
  return x


ACTIVATIONS = {
    "relu": functional.relu,
    "gelu": _gelu,
    "gelu_erf": functional.gelu,
    "tanh": torch.tanh,
    "linear": _linear,
}


@dataclasses.dataclass
class EtcConfig:
  """The fields of etc_config.json, as EtcConfig in C++ (etc/config.h)."""
  vocab_size: int
  segment_vocab_size: int = 16
  embedding_size: typing.Optional[int] = None
  hidden_size: int = 768
  num_hidden_layers: int = 12
  num_attention_heads: int = 12
  local_radius: int = 84
  att_size_per_head: typing.Optional[int] = None
  relative_pos_max_distance: int = 12
  relative_vocab_size: typing.Optional[int] = 32
  max_absolute_position_embeddings: int = 0
  intermediate_size: int = 3072
  hidden_act: str = "gelu"
  hidden_dropout_prob: float = 0.1
  attention_probs_dropout_prob: float = 0.1
  initializer_range: float = 0.02
  share_feed_forward_params: bool = True
  share_kv_projections: bool = False
  share_qkv_projections: bool = True
  share_att_output_projection: bool = False
  use_hard_g2l_mask: bool = False
  use_hard_l2g_mask: bool = False
  grad_checkpointing_period: int = 0
  sublayer: str = "post_norm"
  residual_attention: str = "off"
  residual_gate_init: float = 0.0
  residual_decay: float = 0.9
  layer_norm_epsilon: float = 1e-12
  has_long_tokens: bool = True
  final_layer_norm: bool = False
  depth_scaled_initializer: bool = False

  @classmethod
  def from_dict(cls, fields, source="the configuration"):
    """Reads the fields that are known; ValueError if one has no such value."""
    known = {field.name for field in dataclasses.fields(cls)}
    values = {key: value for key, value in fields.items() if key in known}
    is_pre = fields.get("use_pre_activation_order", False)
    if is_pre is True:
      values.setdefault("sublayer", "pre_norm")
    config = cls(**{"vocab_size": None} | values)
    check_config(config, source)
    own = config.sublayer == "pre_norm"
    if is_pre is not own and "use_pre_activation_order" in fields:
      raise ValueError(
          f"{source}: use_pre_activation_order should be {json.dumps(own)} "
          f"where sublayer is {config.sublayer}, but is {json.dumps(is_pre)}")
    return config

  def to_json(self):
    """The contents of an etc_config.json."""
    fields = dataclasses.asdict(self)
    fields["use_pre_activation_order"] = self.sublayer == "pre_norm"
    return json.dumps(fields, indent=2, sort_keys=True,
                      default=lambda number: number.item()) + "\n"  # NumPy's


def activation_of(config):
  """The name in ACTIVATIONS; official readers take any case, and null."""
  return str(config.hidden_act or "linear").lower()


_LEAST_SIZES = {
    "vocab_size": 1, "segment_vocab_size": 1, "hidden_size": 1,
    "num_hidden_layers": 1, "num_attention_heads": 1, "local_radius": 1,
    "relative_pos_max_distance": 0, "max_absolute_position_embeddings": 0,
    "intermediate_size": 1, "grad_checkpointing_period": 0,
    "embedding_size": 1, "att_size_per_head": 1, "relative_vocab_size": 1}
_OPTIONAL_SIZES = ("embedding_size", "att_size_per_head", "relative_vocab_size")


def check_config(config, source="the configuration"):
  """ValueError for fields of EtcConfig of which C++ makes no model either."""
  def check(is_met, name, expected):
    if not is_met:
      raise ValueError(f"{source}: {name} should be {expected}, but is "
                       f"{getattr(config, name)!r}")

  def number(name):
    value = getattr(config, name)
    return value if isinstance(value, numbers.Real) else math.nan

  for field in dataclasses.fields(EtcConfig):
    check(field.type is not bool or isinstance(getattr(config, field.name),
                                               bool),
          field.name, "true or false")
  for name, least in _LEAST_SIZES.items():
    size = getattr(config, name)
    check(isinstance(size, numbers.Integral) and size >= least or
          size is None and name in _OPTIONAL_SIZES, name,
          f"a whole number of at least {least}")
  for name, value, allowed in (
      ("sublayer", config.sublayer, SUBLAYERS),
      ("residual_attention", config.residual_attention, RESIDUAL_MODES),
      ("hidden_act", activation_of(config), ACTIVATIONS)):
    check(value in allowed, name, f"one of {', '.join(allowed)}")
  for name in ("hidden_dropout_prob", "attention_probs_dropout_prob"):
    check(0 <= number(name) < 1, name, "at least 0 and below 1")
  # As the bounds of etc/config_fields.h: all three become float32.
  check(0 < number("initializer_range") <= 100, "initializer_range",
        "above 0 and at most 100")
  check(1e-30 <= number("layer_norm_epsilon") <= 1, "layer_norm_epsilon",
        "at least 1e-30 and at most 1")
  check(0 < number("residual_decay") < 1, "residual_decay",
        "above 0 and below 1")
  check(abs(number("residual_gate_init")) <= 1e6, "residual_gate_init",
        "at least -1e6 and at most 1e6")
  residual_factors(config.residual_attention, config.num_hidden_layers - 1,
                   config.residual_decay)
  for name in ("share_qkv_projections", "share_att_output_projection",
               "share_feed_forward_params"):
    check(config.has_long_tokens or getattr(config, name), name,
          "true where has_long_tokens is false")
  check(not config.final_layer_norm or config.sublayer == "pre_norm",
        "final_layer_norm", "false where sublayer is not pre_norm")


class EmbeddingTable(nn.Embedding):
  """Vectors by id, and a projection where they have another width."""

  def __init__(self, rows, width, size, deviation):
    # With a weight given, none is drawn.
    super().__init__(rows, width, _weight=torch.empty(rows, width))
    self.deviation = deviation
    if size != width:
      self.projection = make_linear(width, size, 1 / math.sqrt(width))
    initialize(self)

  def forward(self, ids):
    vectors = functional.embedding(ids, self.weight)
    return self.projection(vectors) if hasattr(self, "projection") else vectors


class Embedding(nn.Module):
  """dropout(LayerNorm(token + segment [+ position] [+ adder])) by stream."""

  def __init__(self, config):
    super().__init__()
    size, deviation = config.hidden_size, config.initializer_range
    self.token = EmbeddingTable(config.vocab_size,
                                config.embedding_size or size, size, deviation)
    self.segment = EmbeddingTable(config.segment_vocab_size, size, size,
                                  deviation)
    streams = ("long", "global") if config.has_long_tokens else ("global",)
    if config.max_absolute_position_embeddings > 0:
      for stream in streams:
        setattr(self, f"{stream}_position", EmbeddingTable(
            config.max_absolute_position_embeddings, size, size, deviation))
    for stream in streams:
      setattr(self, f"{stream}_norm",
              nn.LayerNorm(size, config.layer_norm_epsilon))
    self.dropout = nn.Dropout(config.hidden_dropout_prob)
    self._size = size

  def forward(self, stream, ids, segments, positions=None, adder=None):
    """ids and segments [B, length] -> [B, length, H].

    A segment outside of its table gives a zero vector.
    """
    if ids.shape[1] == 0:
      return self.token.weight.new_empty(*ids.shape, self._size)
    rows = self.segment.weight.shape[0]
    known = (segments >= 0) & (segments < rows)
    total = self.token(ids) + (self.segment(segments.masked_fill(~known, 0)) *
                               known.unsqueeze(-1))
    table = getattr(self, f"{stream}_position", None)
    if table is not None:
      if positions is None:
        positions = torch.arange(ids.shape[1], device=ids.device)
      total = total + table(positions)
    elif positions is not None:
      raise ValueError("position ids are given, but "
                       "max_absolute_position_embeddings is 0")
    if adder is not None:
      total = total + adder
    return self.dropout(getattr(self, f"{stream}_norm")(total))


class _Connected(nn.Module):
  """A module with residual connections, as `sublayer` says, by their prefix."""

  def __init__(self, config):
    super().__init__()
    self._sublayer = config.sublayer
    self._dropout = config.hidden_dropout_prob

  def _add_connection(self, config, prefix=""):
    if config.sublayer == "rezero":
      setattr(self, f"{prefix}alpha", nn.Parameter(torch.empty(1)))
    else:
      setattr(self, f"{prefix}norm",
              nn.LayerNorm(config.hidden_size, config.layer_norm_epsilon))
    if config.sublayer == "admin":
      setattr(self, f"{prefix}omega",
              nn.Parameter(torch.empty(config.hidden_size)))
    initialize(self)

  def _begin(self, stream, prefix=""):
    if self._sublayer == "pre_norm" and stream.shape[1]:
      return getattr(self, f"{prefix}norm")(stream)
    return stream

  def _end(self, change, stream, prefix=""):
    if not stream.shape[1]:
      return stream
    change = torch.dropout(change, self._dropout, self.training)
    if self._sublayer == "rezero":
      return stream + getattr(self, f"{prefix}alpha") * change
    if self._sublayer == "admin":
      stream = getattr(self, f"{prefix}omega") * stream
    total = stream + change
    return total if self._sublayer == "pre_norm" else getattr(
        self, f"{prefix}norm")(total)


def _output_factor(config):
  return (1 / math.sqrt(2 * config.num_hidden_layers)
          if config.depth_scaled_initializer else 1.0)


class FeedForward(_Connected):
  """hidden -> intermediate -> hidden in a residual connection."""

  def __init__(self, config):
    super().__init__(config)
    deviation = config.initializer_range
    self.intermediate = make_linear(config.hidden_size,
                                    config.intermediate_size, deviation)
    self.output = make_linear(config.intermediate_size, config.hidden_size,
                              deviation * _output_factor(config))
    self._activation = ACTIVATIONS[activation_of(config)]
    self._add_connection(config)

  def forward(self, stream):
    if not stream.shape[1]:
      return stream
    inner = self._activation(self.intermediate(self._begin(stream)))
    return self._end(self.output(inner), stream)


class EncoderLayer(_Connected):
  """Attention of both streams, then the feed-forward block of each."""

  def __init__(self, config, is_first, attention_class):
    super().__init__(config)
    has_gates = config.residual_attention == "gate" and not is_first
    self.attention = attention_class(
        config.hidden_size, config.num_attention_heads, config.local_radius,
        head_size=config.att_size_per_head,
        max_distance=config.relative_pos_max_distance,
        relative_vocab_size=config.relative_vocab_size or 0,
        residual=config.residual_attention, decay=config.residual_decay,
        gate_init=config.residual_gate_init if has_gates else None,
        has_long_tokens=config.has_long_tokens,
        share_qkv=config.share_qkv_projections,
        share_kv=config.share_kv_projections,
        share_output=config.share_att_output_projection,
        dropout=config.attention_probs_dropout_prob,
        initializer_range=config.initializer_range,
        output_initializer_factor=_output_factor(config))
    for stream in ("long", "global") if config.has_long_tokens else ("global",):
      self._add_connection(config, f"{stream}_attention_")
    if config.share_feed_forward_params:
      self.feed_forward = FeedForward(config)
    else:
      self.long_feed_forward = FeedForward(config)
      self.global_feed_forward = FeedForward(config)

  def forward(self, longs, globals_, pattern, scores):
    streams = {"long": longs, "global": globals_}
    *changes, scores = self.attention(
        *(self._begin(x, f"{name}_attention_") for name, x in streams.items()),
        pattern, scores)
    outputs = []
    for change, (name, stream) in zip(changes, streams.items()):
      block = (self.feed_forward if hasattr(self, "feed_forward")
               else getattr(self, f"{name}_feed_forward"))
      outputs.append(block(self._end(change, stream, f"{name}_attention_")))
    return (*outputs, scores)


@serializable
class EtcOutput(typing.NamedTuple):
  """Outputs of the last layer, and the scores that it would carry on."""
  long_output: torch.Tensor  # [B, L, H]
  global_output: torch.Tensor  # [B, G, H]
  scores: typing.Optional[ResidualScores] = None


class TextVectors(typing.NamedTuple):
  """Vectors of one text and of its sentences, of BERT its chunks.

  ETC reads a text in one pass and has no vector for what it cuts off; BERT
  reads all of it in chunks, and `document` is the mean of theirs, or of all
  their tokens.
  """
  document: torch.Tensor  # [H]
  sentences: torch.Tensor  # [sentences or chunks, H]
  spans: list  # (begin, end) of their pieces in the text
  cut_pieces: int = 0  # as of TextInputs
  dropped_sentences: int = 0


class TextTokens(typing.NamedTuple):
  """A batch of texts as arguments of EtcModel.forward."""
  token_ids: torch.Tensor
  global_token_ids: torch.Tensor
  long_tokens: torch.Tensor
  global_tokens: torch.Tensor
  segment_ids: torch.Tensor
  global_segment_ids: torch.Tensor


def tokens_of_texts(has_long_tokens, input_ids, attention_mask=None,
                    token_type_ids=None, sentence_ids=None):
  """Texts or pairs of `inputs` as tokens of both streams (doc/glue.md 11).

  ETC has them as long tokens, with types 1 and 2, and before them, global, a
  token (1) that all belong to and one (2) for each sentence; BERT as global
  ones. Arguments int64 [B, T] as of TextInputs; token_type_ids are 0 and 1.
  """
  ones = torch.ones_like(input_ids)
  mask = (ones if attention_mask is None else attention_mask).bool()
  types = torch.zeros_like(ones) if token_type_ids is None else token_type_ids
  example = torch.where(mask, 1, -1)
  if not has_long_tokens:
    nothing = input_ids[:, :0]
    longs, _ = everything(len(input_ids), 0, 0, input_ids.device)
    globals_ = torch.stack([example, 0 * ones, 0 * ones], 1).int()
    return TextTokens(nothing, input_ids, longs, globals_, nothing, types)
  if sentence_ids is None:
    sentence_ids = -ones
  owners = torch.where(mask, sentence_ids, -1) + 1
  last = owners.amax(1)
  longest = functional.pad(last, (0, 1)).max()  # of an empty batch 0
  index = torch.arange(int(longest) + 1, device=input_ids.device)
  is_there = index <= last.unsqueeze(1)
  longs = torch.stack([example, example, owners, 0 * ones, -ones, 0 * ones], 1)
  none = torch.zeros_like(is_there, dtype=torch.int64)
  globals_ = torch.stack([torch.where(is_there, 1, -1), none, none], 1)
  return TextTokens(input_ids, torch.where(is_there, (index > 0).long() + 1, 0),
                    longs.int(), globals_.int(), types + 1, none)


def _token_means(states, attention_mask, sentence_ids=None):
  """The mean state of each text's tokens, and of each sentence's.

  Those of a text are all of its tokens, [CLS] and [SEP] too, as in
  sentence-transformers. [B, T, H] -> [B, 1 + S, H].
  """
  members = attention_mask.unsqueeze(1) == 1
  if sentence_ids is not None:
    index = torch.arange(int(sentence_ids.max()) + 1).unsqueeze(1)
    members = torch.cat([members, sentence_ids.unsqueeze(1) == index], 1)
  counts = members.sum(-1, keepdim=True).clamp(min=1).to(states.device)
  return members.to(states) @ states / counts


# Fields that may change after a model is built: transformers sets the rows of a
# table of another size, masks and the period of checkpoints are read by each
# call, and the layers have the mode.
_CHANGEABLE = ("vocab_size", "use_hard_g2l_mask", "use_hard_l2g_mask",
               "grad_checkpointing_period", "residual_attention",
               "residual_decay")

# Rows of the token table without a piece, at most: tables are rounded up to a
# multiple of up to 128.
_MOST_UNUSED_ROWS = 127

# One for all models: a lock can be neither copied nor pickled.
_flags_lock = threading.Lock()
# By model: calls of _evaluate now, and modules in training before them. Copies
# of a model that are made meanwhile have none.
_evaluations = {}


class Encoder:
  """The modules and passes of EtcModel, for classes that have a `config`."""

  def build(self, config, attention_class=None):
    """Registers the modules; `config` has the fields of EtcConfig."""
    check_config(config)
    self._built_with = {
        field.name: getattr(config, field.name)
        for field in dataclasses.fields(EtcConfig)
        if field.name not in _CHANGEABLE}
    if attention_class is None:
      attention_class = (PlainGlobalLocalAttention if realetc is None
                         else realetc.GlobalLocalAttention)
    self.is_plain = attention_class is PlainGlobalLocalAttention
    self.gradient_checkpointing = False  # transformers sets it
    self.embedding = Embedding(config)
    self.layers = nn.ModuleList(
        EncoderLayer(config, n == 0, attention_class)
        for n in range(config.num_hidden_layers))
    if config.final_layer_norm:
      for stream in ("long", "global") if config.has_long_tokens else (
          "global",):
        setattr(self, f"{stream}_final_norm",
                nn.LayerNorm(config.hidden_size, config.layer_norm_epsilon))

  def set_residual_attention(self, mode):
    """Changes the mode of a model that is built, as in C++ (etc/model.h).

    Gates stay, but a model without them cannot get them. They require gradients
    in the mode "gate" alone: DistributedDataParallel waits for those of all
    parameters that do.

    Raises:
      ValueError: there is no such mode, or it needs gates.
    """
    has_gates = any(hasattr(layer.attention, "g2g_gate")
                    for layer in self.layers)
    if mode == "gate" and len(self.layers) > 1 and not has_gates:
      raise ValueError('residual_attention cannot become "gate": the model was '
                       f'made with "{self.config.residual_attention}", and has '
                       'no gates')
    config = copy.copy(self.config)
    config.residual_attention = mode
    check_config(config)
    self.config.residual_attention = mode
    for layer in self.layers:
      layer.attention.residual = mode
      layer.attention.decay = config.residual_decay
      for name, parameter in layer.attention.named_parameters(recurse=False):
        if name.endswith(_GATE):
          parameter.requires_grad_(mode == "gate")

  def check_own_config(self):
    """ValueError if `config` is no longer that of the modules."""
    def check(name, own, advice):
      stated = getattr(self.config, name)
      if stated != own:
        raise ValueError(f"{name} of the configuration is {stated!r}, but of "
                         f"the model {own!r}: {advice}")

    for name, own in self._built_with.items():
      check(name, own, "make another with it, as by from_pretrained")
    for layer in self.layers:
      advice = "change it by set_residual_attention of the encoder"
      check("residual_attention", layer.attention.residual, advice)
      check("residual_decay", layer.attention.decay, advice)

  def pattern_of(self, long_tokens, global_tokens):
    """The pattern that the layers take, of the tokens that `run` takes."""
    config = self.config
    hard = {"hard_l2g": config.use_hard_l2g_mask,
            "hard_g2l": config.use_hard_g2l_mask}
    distance = config.relative_pos_max_distance
    if self.is_plain:
      return TokenPattern(config.local_radius, long_tokens, global_tokens,
                          distance, **hard)
    return realetc.patterns.global_local_tokens(
        config.local_radius, long_tokens, global_tokens, max_distance=distance,
        **hard)

  def run(self, token_ids, global_token_ids, long_tokens=None,
          global_tokens=None, segment_ids=None, global_segment_ids=None,
          position_ids=None, global_position_ids=None,
          long_embedding_adder=None, global_embedding_adder=None):
    """As EtcModel.forward."""
    self.check_own_config()
    if not self.config.has_long_tokens and token_ids.shape[1]:
      raise ValueError(f"there are {token_ids.shape[1]} long tokens, but "
                       "has_long_tokens is false: BERT's tokens are global")
    if segment_ids is None:
      segment_ids = torch.ones_like(token_ids)
    if global_segment_ids is None:
      global_segment_ids = torch.zeros_like(global_token_ids)
    all_long, all_global = everything(
        *token_ids.shape, global_token_ids.shape[1], token_ids.device)
    pattern = self.pattern_of(
        all_long if long_tokens is None else long_tokens,
        all_global if global_tokens is None else global_tokens)
    longs = self.embedding("long", token_ids, segment_ids, position_ids,
                           long_embedding_adder)
    globals_ = self.embedding("global", global_token_ids, global_segment_ids,
                              global_position_ids, global_embedding_adder)
    longs, globals_, scores = self._run_layers(longs, globals_, pattern)
    if self.config.final_layer_norm:
      if longs.shape[1]:
        longs = self.long_final_norm(longs)
      globals_ = self.global_final_norm(globals_)
    return EtcOutput(longs, globals_, scores)

  def _run_layers(self, longs, globals_, pattern):
    """The outputs of the last layer, and its scores.

    In training with grad_checkpointing_period p the backward pass computes p
    layers at a time again; without it, but with transformers' flag, one.
    """
    def run(layers, longs, globals_, scores):
      for layer in layers:
        longs, globals_, scores = layer(longs, globals_, pattern, scores)
      return longs, globals_, scores

    layers, state = list(self.layers), (longs, globals_, None)
    period = (self.config.grad_checkpointing_period or
              int(self.gradient_checkpointing))
    if not period or not self.training:
      return run(layers, *state)
    for begin in range(0, len(layers), period):
      # The reentrant form loses the gradients of carried scores.
      state = checkpoint.checkpoint(run, layers[begin:begin + period], *state,
                                    use_reentrant=False)
    return state

  def text_directory(self):
    """The folder of the vocabulary."""
    raise NotImplementedError

  def text_options(self):
    """Lengths and sentences (etc_text.TextOptions)."""
    raise NotImplementedError

  def inputs(self, texts, texts_b=None, split_sentences=None):
    """The etc_text.TextInputs of any iterable of texts, on the model's device.

    As EncodeTexts in C++: [CLS] pieces [SEP], cut at the model's length, and
    for ETC a global token for the whole text and for each sentence. Fields and
    pairs are read as by the task classify: [CLS] pieces [SEP] pieces [SEP], of
    which the longer text is cut.

    Args:
      texts: strings, or for a text of several fields (classify.text) the list
        of them, of which each begins a sentence.
      texts_b: the second text of each, in the same form.
      split_sentences: a function that gives the (begin, end) of the sentences
        of a string, in order; None: realetc.split_sentences.
    """
    texts = list_of_texts(texts)
    if texts_b is not None:
      texts_b = list_of_texts(texts_b, "texts_b")
      if len(texts_b) != len(texts):
        raise ValueError(f"texts_b should have a text for each of the "
                         f"{len(texts)} texts, but has {len(texts_b)}")
    made = make_inputs(texts, self._loaded_tokenizer(), self._checked_options(),
                       split_sentences, texts_b=texts_b)
    if not self.config.has_long_tokens and self.config.segment_vocab_size == 1:
      made.pop("token_type_ids", None)  # RoBERTa has one type for both
    return made.to(self.embedding.token.weight.device)

  def _loaded_tokenizer(self):
    if getattr(self, "_tokenizer", None) is None:
      tokenizer = load_tokenizer(self.text_directory())
      rows = self.config.vocab_size
      if not rows - _MOST_UNUSED_ROWS <= tokenizer.size <= rows:
        raise ValueError(
            f"{self.text_directory()}: the vocabulary has {tokenizer.size} "
            f"pieces, but the token table {rows} rows; they should be equal, "
            f"or the table rounded up by at most {_MOST_UNUSED_ROWS} rows")
      self._tokenizer = tokenizer
    return self._tokenizer

  def _checked_options(self):
    """text_options, if the tables have rows for them: CheckRoom in C++."""
    options, config = self.text_options(), self.config
    if config.has_long_tokens and config.segment_vocab_size < 3:
      raise ValueError(
          f"{self.text_directory()}: segment_vocab_size should be at least 3, "
          f"for the types of tokens, but is {config.segment_vocab_size}")
    rows = config.max_absolute_position_embeddings
    for name in ("max_long_length", "max_global_length"):
      length = getattr(options, name)
      if (0 < rows < length and
          (config.has_long_tokens or name == "max_global_length")):
        raise ValueError(
            f"{self.text_directory()}: {name} should be at most {rows}, the "
            f"positions of the model, but is {length}")
    return options

  def run_texts(self, inputs):
    """The EtcOutput of what `inputs` made, or of tensors of the same names."""
    return self.run(*tokens_of_texts(self.config.has_long_tokens, **inputs))

  def encode(self, texts, texts_b=None, split_sentences=None):
    """The EtcOutput of texts, and their inputs: without gradients or dropout.

    Row b of the long output, of BERT the global one, has the tokens of text b;
    row 0 of a global output is of the whole text, 1 + s of sentence s. All
    texts are one batch, padded to the longest; its memory grows with them.
    """
    inputs = self.inputs(texts, texts_b, split_sentences)
    return self._evaluate(inputs), inputs

  def _evaluate(self, inputs):
    """As run_texts, without gradients or dropout; of tensors on any device.

    Of threads that are here at once, the last restores the training flags.
    """
    device = self.embedding.token.weight.device
    with _flags_lock:
      calls, in_training = _evaluations.get(self) or (
          0, [one for one in self.modules() if one.training])
      _evaluations[self] = calls + 1, in_training
      if not calls:
        self.eval()
    try:
      with torch.no_grad():
        return self.run_texts({name: tensor.to(device)
                               for name, tensor in inputs.items()})
    finally:
      with _flags_lock:
        calls, in_training = _evaluations.pop(self)
        if calls > 1:
          _evaluations[self] = calls - 1, in_training
        else:
          for module in in_training:
            module.training = True

  def embed(self, texts, split_sentences=None, batch_size=8, pooling=None):
    """The TextVectors of each text, as EmbedText in C++.

    Args:
      texts, split_sentences: as of `inputs`.
      batch_size: texts that are encoded at once, of BERT chunks of them.
      pooling: "first" for the outputs of the first global token and of those
        of the sentences, of BERT of [CLS]; "mean" for the means of the outputs
        of all tokens of a text or chunk, and of the pieces of a sentence. None:
        as 1_Pooling/config.json of sentence-transformers says, else "first".
    """
    if batch_size < 1:
      raise ValueError(f"batch_size should be at least 1, but is {batch_size}")
    if pooling not in (None, *POOLINGS):
      raise ValueError(f"pooling should be one of {', '.join(POOLINGS)}, but "
                       f"is {pooling!r}")
    texts = list_of_texts(texts)
    if pooling is None:
      pooling = self._stated_pooling()
    if not self.config.has_long_tokens:
      return self._embed_chunks(texts, batch_size, pooling)
    tokenizer, options = self._loaded_tokenizer(), self._checked_options()
    batches = []  # all before the first pass: a text may be refused
    for start in range(0, len(texts), batch_size):
      batches.append(make_inputs(texts[start:start + batch_size], tokenizer,
                                 options, split_sentences, start))
      batches[-1].pieces.clear()  # most of the memory
    vectors = []
    for inputs in batches:
      # Views would keep the outputs of all tokens.
      vectors += [TextVectors(rows[0].clone(), rows[1:1 + len(spans)].clone(),
                              spans, *unread)
                  for rows, spans, *unread in zip(
                      self._pooled(inputs, pooling), inputs.sentences,
                      inputs.cut_pieces, inputs.dropped_sentences)]
    return vectors

  def _stated_pooling(self):
    if getattr(self, "_pooling", None) is None:
      self._pooling = read_pooling(self.text_directory())
    return self._pooling

  def _pooled(self, inputs, pooling):
    """Vectors [B, 1 + S or more, H] of texts, and of their sentences."""
    output = self._evaluate(inputs)
    if pooling == "first":
      return output.global_output
    states = (output.long_output if self.config.has_long_tokens
              else output.global_output)
    return _token_means(states, inputs["attention_mask"],
                        inputs.get("sentence_ids"))

  def _embed_chunks(self, texts, batch_size, pooling):
    """`embed` of BERT: the vectors of chunks, and their means."""
    tokenizer = self._loaded_tokenizer()
    of_texts = chunks_of_texts(texts, tokenizer, self._checked_options())
    chunks = [chunk for of_text in of_texts for chunk in of_text]
    rows = []
    for start in range(0, len(chunks), batch_size):
      inputs = tensors_of_chunks(chunks[start:start + batch_size], tokenizer)
      # A view would keep the outputs of all tokens.
      rows.extend(self._pooled(inputs, pooling)[:, 0].clone())
    next_row = iter(rows)
    vectors = []
    for of_text in of_texts:
      parts = torch.stack([next(next_row) for _ in of_text])
      # In 16 bits a sum of counts may be rounded, or infinite.
      weights = torch.tensor(
          [1 if pooling == "first" else len(chunk) + 2 for chunk in of_text],
          dtype=torch.promote_types(parts.dtype, torch.float32),
          device=parts.device)
      mean = weights / weights.sum() @ parts.to(weights)
      vectors.append(TextVectors(mean.to(parts), parts,
                                 [span_of(chunk) for chunk in of_text]))
    return vectors


_WEIGHTS = "model.safetensors"
_INDEX = _WEIGHTS + ".index.json"
ETC_CONFIG = "etc_config.json"
_PREFIX = "encoder."
_GATE = "_gate"


def _new_gates(initial):
  """The notice about new gates, in the words of C++.

  That is NewGatesText (etc/weights/weight_plan.cc).
  """
  like = {0: ", which computes what off does",
          1: ", which computes what sum does"}.get(initial, "")
  return (f"the weights have no gates: all begin with {initial:g} "
          f"(residual_gate_init){like}")


def _without_gates(names):
  return [name for name in names if not name.endswith(_GATE)]


def _advice_on(folder):
  """The end of a message about a folder that is no checkpoint."""
  best = sorted(str(path.parent) for above in (
      "", "checkpoints/", "*/checkpoints/", "*/*/checkpoints/")
                for path in folder.glob(f"{above}best/{ETC_CONFIG}"))
  if best:
    others = f", or another of its {len(best)}" if best[1:] else ""
    return f"it is a run: give its checkpoint, {best[0]}{others}"
  return "`realetc import` makes one of other weights"


def _weight_files(folder):
  """The file of a checkpoint's weights, or transformers' shards of them."""
  if os.path.lexists(folder / _WEIGHTS) or not os.path.lexists(
      folder / _INDEX):
    return [folder / _WEIGHTS]
  shard_of = read_json(folder / _INDEX).get("weight_map")
  names = list(shard_of.values()) if isinstance(shard_of, dict) else []
  for name in names or [None]:
    if (not isinstance(name, str) or pathlib.Path(name).name != name or
        not name.endswith(".safetensors")):
      raise ValueError(f"{folder / _INDEX} should name files beside it, "
                       f"*.safetensors, but names {name!r}")
  return [folder / name for name in sorted(set(names))]


def _check_target(folder, safetensors):
  """ValueError if saving would lose weights of another kind, or their use."""
  if os.path.lexists(folder / "run_config.json"):
    raise ValueError(f"{folder} is a checkpoint of a run, with more than an "
                     "encoder: save elsewhere")
  names = []
  for path in _weight_files(folder):
    if not path.exists():
      continue
    try:
      with safetensors.safe_open(path, "pt") as stored:
        names += stored.keys()
    except safetensors.SafetensorError:
      pass  # a save was interrupted
  heads = [name for name in names if not name.startswith(_PREFIX)]
  if heads and len(heads) < len(names):
    raise ValueError(f"{folder} has {heads[0]}, which is not the encoder's and "
                     "would be lost: save elsewhere")


class EtcModel(Encoder, nn.Module):
  """The ETC encoder with residual attention scores.

    model = realetc.EtcModel.from_pretrained("checkpoints/etc_base")
    output, inputs = model.encode(["A long document. ..."])

  Args:
    config: an EtcConfig.
    attention_class: PlainGlobalLocalAttention for plain tensor operations.

  A subclass takes (config, attention_class), by which from_pretrained makes it.
  """

  def __init__(self, config, attention_class=None):
    super().__init__()
    self.config = copy.copy(config)  # set_residual_attention changes it
    self.directory = None
    self.build(config, attention_class)

  def forward(self, token_ids, global_token_ids, long_tokens=None,
              global_tokens=None, **inputs):
    """Outputs of both streams, and the scores carried so far.

    Args:
      token_ids: int64 [B, L]; none of BERT's tokens, which are all global.
      global_token_ids: int64 [B, G].
      long_tokens, global_tokens: who sees whom, int32 [B, 6, L] and [B, 3, G]
        as realetc.patterns.global_local_tokens has them; None: everything.
      **inputs: segment_ids (default 1) and position_ids (0, 1, ...) int64
        [B, L], long_embedding_adder [B, L, H], and the same of global tokens:
        global_segment_ids (0), global_position_ids, global_embedding_adder.

    Returns:
      An EtcOutput.
    """
    return self.run(token_ids, global_token_ids, long_tokens, global_tokens,
                    **inputs)

  def text_directory(self):
    if self.directory is None:
      raise ValueError("a model without a directory has no vocabulary: make it "
                       "by from_pretrained, or give tokens to forward")
    return source_folder(self.directory)

  def text_options(self):
    return read_text_options(self.text_directory(), self.config)

  @classmethod
  def from_pretrained(cls, directory, *, attention_class=None,
                      residual_attention=None, residual_decay=None,
                      residual_gate_init=None):
    """Loads a checkpoint of ours, in evaluation mode.

    Args:
      directory: what `realetc import`, `realetc export --format huggingface`
        and runs (checkpoints/best) write: model.safetensors or its shards, and
        etc_config.json or the config.json of an export, which comes first.
      attention_class: as of the class.
      residual_attention, residual_decay: a mode, and beta of "decay", in the
        place of the checkpoint's.
      residual_gate_init: the gates of weights that have none, for "gate": 0,
        with which it begins as "off", or 1, as "sum". A warning says so.

    Raises:
      ValueError: the files are not those of a checkpoint of ours, or weights
        are infinite or not a number.
      OSError: a file cannot be read.
      ImportError: PyPI's safetensors is not installed.
    """
    folder = pathlib.Path(directory)
    fields = read_transformers_config(folder)
    source = folder / (ETC_CONFIG if fields is None else TRANSFORMERS_CONFIG)
    weights = _weight_files(folder)
    for path in (source, *weights):
      if not os.path.lexists(path):
        raise ValueError(
            f"{folder} should be a checkpoint directory with {ETC_CONFIG} and "
            f"{_WEIGHTS}, but has no {path.name}; {_advice_on(folder)}")
    if fields is None:
      fields = read_json(source)
    given = {"residual_attention": residual_attention,
             "residual_decay": residual_decay,
             "residual_gate_init": residual_gate_init}
    config = EtcConfig.from_dict(
        fields | {name: value for name, value in given.items()
                  if value is not None}, source)
    model = cls(config, attention_class)
    model.directory = folder.absolute()  # texts are read from it later
    model._fill(weights, fields.get("residual_attention"))
    return model.eval()

  def _fill(self, paths, stored_mode):
    """Loads the encoder's tensors; another mode may want gates, or none."""
    path = paths[0].parent if paths[1:] else paths[0]
    safetensors = import_package(
        "safetensors.torch", str(path)).torch
    stored = {}
    for one in paths:
      stored |= safetensors.load_file(one)
    has_prefix = any(name.startswith(_PREFIX) for name in stored)
    if any(name.startswith("etc_document_bert/") for name in stored):
      raise ValueError(f"{path} has the names of official ETC: `realetc "
                       "import` makes a checkpoint of ours of it")
    tensors = {name.removeprefix(_PREFIX): tensor
               for name, tensor in stored.items()
               if name.startswith(_PREFIX) or not has_prefix}
    for name, own in self.state_dict().items():
      tensor = tensors.get(name, own)
      if tensor.shape != own.shape:
        raise ValueError(f"{path}: {name} should be {list(own.shape)}, but is "
                         f"{list(tensor.shape)}")
      if name in tensors and not tensor.to(own.dtype).isfinite().all():
        raise ValueError(f"{path}: {name} should have finite elements, but has "
                         "some that are infinite or not a number")
    missing, surplus = self.load_state_dict(tensors, strict=False)
    if self.config.residual_attention != "gate":
      surplus = _without_gates(surplus)
    elif stored_mode != "gate" and len(_without_gates(tensors)) == len(tensors):
      without = _without_gates(missing)
      if len(without) < len(missing):
        warnings.warn(f"{path}: {_new_gates(self.config.residual_gate_init)}",
                      stacklevel=3)
      missing = without
    for what, names in (("lacks", missing), ("has unexpectedly", surplus)):
      if names:
        raise ValueError(f"{path} {what} {', '.join(names[:3])}"
                         f"{' and more' if len(names) > 3 else ''}")

  def _check_own_weights(self):
    """ValueError if from_pretrained would refuse names or shapes of weights."""
    try:
      with torch.device("meta"):
        built = type(self)(self.config, type(self.layers[0].attention))
    except TypeError:
      return  # from_pretrained of this class cannot call its constructor either
    own, expected = (
        {name: list(tensor.shape) for name, tensor in model.state_dict().items()
         if not name.endswith(_GATE)} for model in (self, built))
    for what, names in (("has", own.keys() - expected.keys()),
                        ("lacks", expected.keys() - own.keys())):
      if names:
        raise ValueError(
            f"the model {what} {min(names)}, unlike one of its configuration: "
            "merge adapters, and save heads elsewhere")
    for name, shape in own.items():
      if shape != expected[name]:
        raise ValueError(f"{name} of the model is {shape}, but of one of its "
                         f"configuration {expected[name]}: change both")

  def save_pretrained(self, directory):
    """Writes a checkpoint directory of ours, which `init` in C++ takes too.

    Beside it, of a model that was loaded, the vocabulary, text_options.json and
    sentence-transformers' 1_Pooling/config.json, by which from_pretrained makes
    the same inputs of texts, and the same vectors. A config.json of `realetc
    export --format huggingface` is changed with it. A file that was there is
    replaced when the new one is whole.

    Raises:
      ValueError: the directory is a run's checkpoint, or has a model with a
        head, which would be lost, `config` was changed after the model was
        built, or parameters were added, renamed or are of another size, as by
        adapters, so that from_pretrained would refuse them; nothing is written.
      FileNotFoundError: the folder that the model was loaded from is gone;
        nothing is written. Set model.directory to where it is, or to None for
        weights alone.
      OSError: a file cannot be written, or the weights that are there, or one
        of the vocabulary, which comes last, cannot be read.
      ImportError: PyPI's safetensors is not installed.
    """
    safetensors = import_package("safetensors.torch", "writing weights")
    folder = pathlib.Path(directory)
    self.check_own_config()
    self._check_own_weights()
    _check_target(folder, safetensors)
    exported = read_transformers_config(folder)
    options = None if self.directory is None else self.text_options()
    files = {ETC_CONFIG: self.config.to_json()}
    if exported is not None:
      exported |= json.loads(self.config.to_json())
      exported |= {} if options is None else options.stated()
      files[TRANSFORMERS_CONFIG] = json.dumps(exported, indent=2) + "\n"
    folder.mkdir(parents=True, exist_ok=True)
    with contextlib.ExitStack() as stack:  # all are written, then all replaced
      safetensors.torch.save_file(
          {_PREFIX + name: tensor.contiguous()
           for name, tensor in self.state_dict().items()},
          stack.enter_context(replacing(folder / _WEIGHTS)), {"format": "pt"})
      for name, contents in files.items():
        path = stack.enter_context(replacing(folder / name))
        path.write_text(contents, encoding="utf-8")
    if options is not None:
      write_text_options(folder, options)
      copy_text_files(self.directory, folder, overwrite=True)
