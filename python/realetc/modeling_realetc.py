"""ETC with residual scores for HuggingFace's transformers.

`realetc export --format huggingface CHECKPOINT DIR` writes this file, and those
that it imports, beside the weights:

  model = AutoModel.from_pretrained(DIR, trust_remote_code=True)
  output = model(**model.inputs(["A long document. ..."]))

Attention is computed by the package realetc where that is installed, else in
plain PyTorch.
"""
import dataclasses
import os
import pathlib
import typing
import warnings

import torch
from torch import nn
from torch.nn import functional
from transformers import PretrainedConfig
from transformers import PreTrainedModel
from transformers.utils import ModelOutput

# In this form transformers finds the files.
from .etc_attention import initialize
from .etc_model import Encoder
from .etc_model import EtcConfig
from .etc_text import copy_text_files
from .etc_text import source_folder
from .etc_text import TextOptions
from .etc_text import TEXT_FILES
from .etc_text import with_stated


class RealEtcConfig(PretrainedConfig):
  """The fields of EtcConfig, and how texts become inputs (TextOptions)."""
  model_type = "realetc"

  def __init__(self, vocab_size=0, max_long_length=4096, max_global_length=512,
               sentences="icu", **fields):
    own = {field.name: fields.pop(field.name, field.default)
           for field in dataclasses.fields(EtcConfig)
           if field.name != "vocab_size"}
    self.vocab_size = vocab_size
    for name, value in own.items():
      setattr(self, name, value)
    self.max_long_length = max_long_length
    self.max_global_length = max_global_length
    self.sentences = sentences
    super().__init__(**fields)

  def text_options(self):
    """Lengths and sentences (etc_text.TextOptions)."""
    return with_stated(TextOptions(self.has_long_tokens), vars(self),
                       self.name_or_path or type(self).__name__)


@dataclasses.dataclass
class RealEtcOutput(ModelOutput):
  """Outputs of the encoder.

  Attributes:
    last_hidden_state: [B, T, H], of the tokens of the texts.
    global_hidden_state: [B, 1 + S, H]: of the whole text, and its sentences; of
      BERT the same as last_hidden_state.
    pooler_output: [B, H], of the whole text: the first global token.
  """
  last_hidden_state: typing.Optional[torch.Tensor] = None
  global_hidden_state: typing.Optional[torch.Tensor] = None
  pooler_output: typing.Optional[torch.Tensor] = None


@dataclasses.dataclass
class RealEtcClassifierOutput(ModelOutput):
  """loss, if there are labels, and logits [B, labels] or [B, T, labels]."""
  loss: typing.Optional[torch.Tensor] = None
  logits: typing.Optional[torch.Tensor] = None


class RealEtcPreTrainedModel(PreTrainedModel):
  """Weights, by the names of RealETC's own checkpoints."""
  config_class = RealEtcConfig
  base_model_prefix = "encoder"
  supports_gradient_checkpointing = True
  # Heads of pre-training, and of a classifier for the encoder alone.
  _keys_to_ignore_on_load_unexpected = [r"^head\."]

  def __init__(self, config, *arguments, **options):
    super().__init__(config, *arguments, **options)
    # Texts are read from it later, in whatever directory.
    name = self.name_or_path or ""
    self._folder = os.path.abspath(name) if os.path.isdir(name) else None

  def _init_weights(self, module):
    initialize(module)

  def text_directory(self):
    """The folder of the vocabulary, which is fetched from a hub if need be."""
    if self._folder is not None:
      return source_folder(self._folder)
    name = self.config._name_or_path  # pylint: disable=protected-access
    if not name:
      raise ValueError("a model that was not loaded has no vocabulary: give "
                       "input_ids")
    if os.path.isdir(name):  # set after construction
      return os.path.abspath(name)
    import huggingface_hub  # pylint: disable=import-outside-toplevel
    return huggingface_hub.snapshot_download(
        name, allow_patterns=list(TEXT_FILES),
        revision=getattr(self.config, "_commit_hash", None))

  def save_pretrained(self, save_directory, *arguments, **options):
    """As PreTrainedModel's, and the vocabulary of the model loaded."""
    self.base_model.check_own_config()
    target = pathlib.Path(save_directory)
    if self.config._name_or_path:  # pylint: disable=protected-access
      try:
        # Before the target is there, which may be named as a model of the hub.
        loaded = pathlib.Path(self.text_directory())
      except (OSError, ValueError) as error:  # no such folder, and no hub
        warnings.warn(f"the vocabulary is not saved: {error}")
      else:
        target.mkdir(parents=True, exist_ok=True)
        copy_text_files(loaded, target, overwrite=False)
    super().save_pretrained(save_directory, *arguments, **options)

  def text_options(self):
    return self.config.text_options()

  def _returned(self, result, return_dict):
    """A tuple, if the argument or without it the config asks for one."""
    if return_dict is None:
      return_dict = self.config.return_dict
    return result.to_tuple() if return_dict is False else result


# Arguments of other models, and the ways that there are instead.
_UNSUPPORTED = {
    "inputs_embeds": "give input_ids",
    "output_attentions": "`realetc attention` and `realetc document` show "
                         "attention",
    "output_hidden_states": "last_hidden_state is that of the last layer; "
                            "forward hooks on `layers` of the encoder see each",
}


def _refuse(config, **given):
  """ValueError for what an argument, or without it the config, asks for."""
  for name, value in given.items():
    if value is None:
      value = getattr(config, name, None)
    if value is not None and value is not False:
      raise ValueError(f"{name} is not supported by RealETC's models: "
                       f"{_UNSUPPORTED[name]}")


class RealEtcModel(RealEtcPreTrainedModel, Encoder):
  """The encoder of texts.

  `inputs` makes its arguments of texts: with a global token for each sentence,
  as the model was trained. Those of a tokenizer alone (AutoTokenizer, pipeline)
  have no sentence_ids, and then there is a global token for the whole text
  only; a warning says so.
  """

  def __init__(self, config):
    super().__init__(config)
    self.build(config)
    self.post_init()

  def get_input_embeddings(self):
    return self.embedding.token

  def set_input_embeddings(self, value):
    self.embedding.token = value

  def forward(self, input_ids, attention_mask=None, token_type_ids=None,
              sentence_ids=None, return_dict=None, inputs_embeds=None,
              output_attentions=None, output_hidden_states=None):
    """Reads a batch of texts, [CLS] pieces [SEP].

    Args:
      input_ids: int64 [B, T].
      attention_mask: [B, T], 0 for padding.
      token_type_ids: [B, T], 1 for a second text.
      sentence_ids: int64 [B, T], the sentence of each token from 0, -1 for
        none.
      return_dict: False for a tuple; None is the config's.
      inputs_embeds, output_attentions, output_hidden_states: None or False; of
        the last two, None is the config's, which may not be True either.
    """
    _refuse(self.config, inputs_embeds=inputs_embeds,
            output_attentions=output_attentions,
            output_hidden_states=output_hidden_states)
    if (sentence_ids is None and self.config.has_long_tokens and
        self.config.max_global_length > 1):
      warnings.warn(
          "no sentence_ids: there is one global token for the whole text and "
          "none for its sentences; a model that was trained with both is worse "
          "without: make the arguments by model.inputs, or give sentence_ids "
          "of -1 if this is meant")
    output = self.run_texts({
        "input_ids": input_ids, "attention_mask": attention_mask,
        "token_type_ids": token_type_ids, "sentence_ids": sentence_ids})
    texts = (output.long_output if self.config.has_long_tokens
             else output.global_output)
    return self._returned(
        RealEtcOutput(texts, output.global_output, output.global_output[:, 0]),
        return_dict)


class _RealEtcWithHead(RealEtcPreTrainedModel):
  """An encoder below a head, which a subclass computes: _logits and _loss."""

  def __init__(self, config):
    super().__init__(config)
    self.encoder = RealEtcModel(config)
    self.head = nn.ModuleDict(self._layers(config))
    self.dropout = nn.Dropout(config.hidden_dropout_prob)
    self.post_init()

  def get_input_embeddings(self):
    return self.encoder.get_input_embeddings()

  def set_input_embeddings(self, value):
    self.encoder.set_input_embeddings(value)

  def inputs(self, texts, texts_b=None, split_sentences=None):
    """As RealEtcModel.inputs."""
    return self.encoder.inputs(texts, texts_b, split_sentences)

  def forward(self, input_ids, attention_mask=None, token_type_ids=None,
              sentence_ids=None, labels=None, return_dict=None,
              inputs_embeds=None, output_attentions=None,
              output_hidden_states=None):
    """Returns logits, and with labels (see the class) their loss.

    Arguments are those of RealEtcModel.forward.
    """
    logits = self._logits(self.encoder(
        input_ids, attention_mask, token_type_ids, sentence_ids,
        return_dict=True, inputs_embeds=inputs_embeds,
        output_attentions=output_attentions,
        output_hidden_states=output_hidden_states))
    loss = None if labels is None else self._loss(logits, labels)
    return self._returned(RealEtcClassifierOutput(loss, logits), return_dict)


class RealEtcForSequenceClassification(_RealEtcWithHead):
  """A classifier of whole texts: of their first global token.

  Its labels: int64 [B] or [B, 1], or for several labels float [B, labels], or
  for a regression float [B]; their loss is that of config.problem_type.
  """
  _keys_to_ignore_on_load_unexpected = [r"^head\.(?!pooler|classifier)"]

  @staticmethod
  def _layers(config):
    return {"pooler": nn.Linear(config.hidden_size, config.hidden_size),
            "classifier": nn.Linear(config.hidden_size, config.num_labels)}

  def _logits(self, output):
    pooled = torch.tanh(self.head["pooler"](output.pooler_output))
    return self.head["classifier"](self.dropout(pooled))

  def _loss(self, logits, labels):
    problem = self.config.problem_type
    if problem is None:
      problem = ("regression" if self.config.num_labels == 1 else
                 "multi_label_classification" if labels.is_floating_point()
                 else "single_label_classification")
    if problem != "single_label_classification":
      # Losses of one dtype, which have gradients, and not of 16 bits.
      logits = logits.to(torch.promote_types(logits.dtype, torch.float32))
      labels = labels.to(logits.dtype)
    if problem == "regression":
      return functional.mse_loss(logits, labels.reshape(logits.shape))
    if problem == "multi_label_classification":
      return functional.binary_cross_entropy_with_logits(logits, labels)
    return functional.cross_entropy(logits, labels.reshape(-1))


class RealEtcForTokenClassification(_RealEtcWithHead):
  """A classifier of each token, as in BertForTokenClassification.

  Its labels: int64 [B, T], -100 for tokens that have none; their loss is the
  mean cross entropy.
  """
  _keys_to_ignore_on_load_unexpected = [r"^head\.(?!classifier)"]

  @staticmethod
  def _layers(config):
    return {"classifier": nn.Linear(config.hidden_size, config.num_labels)}

  def _logits(self, output):
    return self.head["classifier"](self.dropout(output.last_hidden_state))

  def _loss(self, logits, labels):
    return functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-100)
