"""Texts as ETC reads them: sentences, pieces of a vocabulary, tensors of ids.

The same sentences and pieces as tasks/text in C++, by the Unicode tables of
these packages: PyPI's regex, and tokenizers (WordPiece, tokenizer.json) or
sentencepiece. Imports nothing of this package: `realetc export --format
huggingface` writes this file as it is.
"""
import dataclasses
import functools
import json
import operator
import os
import pathlib
import typing
import unicodedata

import torch

# --- Sentences ----------------------------------------------------------------

# The lists of tasks/text/sentence_splitter.cc, without the last full stop.
_ABBREVIATIONS = frozenset("""
    adm approx apr assn assoc aug ave brig bros ca capt cf cmdr co col corp
    cpl dec dept dr etc feb fr ft gen gov hon inc jan jr jul jun lt ltd maj md
    messrs mr mrs ms mt mts nov oct ph.d pres prof pvt rep rev sen sens sept
    sgt sr st ste supt trans univ viz vs""".split())
_BEFORE_NUMBERS = frozenset(
    "art ch fig figs mar no nos pp pt sec sep vol vols".split())
_STARTERS = frozenset("""
    a according after all also although among an and as at because before
    between both but by currently despite during each following for from he
    her his how however if in it its later many most on once one other she
    since some such that the their then there these they this those though
    thus to under until we what when where which while who with""".split())
_LONGEST_WORD = 16
_LINE_ENDS = str.maketrans(dict.fromkeys("\n\r\x85\u2028\u2029", " "))
_SPACES = frozenset("\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" +
                    "".join(map(chr, range(0x2000, 0x200b))))


def import_package(name, use):
  """Imports a package of PyPI, or says what it is needed for."""
  try:
    return __import__(name)
  except ImportError as error:
    package = name.partition(".")[0]
    raise ImportError(f"{use} needs the package {package}: pip install "
                      f"{package}") from error


@functools.lru_cache(None)
def _sentence_rules():
  """The rules SB5 to SB11 of Unicode Standard Annex 29 as expressions.

  Semicolons, SContinue since Unicode 15.1, are none, as in Debian 12's ICU.
  """
  regex = import_package("regex", "splitting texts into sentences")
  ignored = r"[\p{SB=Extend}\p{SB=Format}]*+"
  return {name: regex.compile(rule) for name, rule in {
      "end": rf"(?P<mark>[\p{{SB=ATerm}}\p{{SB=STerm}}]){ignored}(?P<more>(?:"
             rf"\p{{SB=Close}}{ignored})*+(?:\p{{SB=Sp}}{ignored})*+)",
      "full_stop": r"\p{SB=ATerm}",
      "numeric": r"\p{SB=Numeric}",
      "upper": r"\p{SB=Upper}",
      "letter_before": rf"[\p{{SB=Upper}}\p{{SB=Lower}}]{ignored}$",
      "goes_on": r"(?![;\u037e\ufe14\ufe54\uff1b])"
                 r"[\p{SB=SContinue}\p{SB=ATerm}\p{SB=STerm}]",
      "lower_next": r"[^\p{SB=OLetter}\p{SB=Upper}\p{SB=Lower}\p{SB=Sep}"
                    r"\p{SB=CR}\p{SB=LF}\p{SB=ATerm}\p{SB=STerm}]*+"
                    r"\p{SB=Lower}",
  }.items()}


def _unicode_ends(text):
  """Ends of the sentences of Unicode Standard Annex 29."""
  rules = _sentence_rules()
  ends = []
  for found in rules["end"].finditer(text):
    at = found.end()
    if at == len(text):
      break
    if rules["full_stop"].match(found["mark"]):
      begin = found.start()
      if not found["more"] and (
          rules["numeric"].match(text, at) or
          (rules["upper"].match(text, at) and
           rules["letter_before"].search(text, max(0, begin - 32), begin))):
        continue
      if rules["lower_next"].match(text, at):
        continue
    if not rules["goes_on"].match(text, at):
      ends.append(at)
  return [*ends, len(text)] if text else []


def _skip(text, begin, end, unwanted):
  while begin < end and unwanted(text[begin]):
    begin += 1
  return begin


def _skip_back(text, begin, end, unwanted):
  while end > begin and unwanted(text[end - 1]):
    end -= 1
  return end


def _is_bracket(character):
  return unicodedata.category(character) == "Ps"


def _is_opener(character):
  return character in "\"'" or unicodedata.category(character) in ("Ps", "Pi")


def _is_letter(character):
  return character.isascii() and character.isalpha()


def _last_word(text):
  """ASCII letters and full stops at the end; "" if they end a longer word."""
  begin = _skip_back(text, max(0, len(text) - _LONGEST_WORD - 1), len(text),
                     lambda c: c == "." or _is_letter(c))
  if begin and unicodedata.category(text[begin - 1])[0] in "L" or (
      begin and unicodedata.category(text[begin - 1]) == "Nd"):
    return ""
  return text[begin:]


def _is_abbreviation(left, right):
  """True if the full stop that ends `left` seems to be an abbreviation's."""
  if not left.endswith("."):
    return False
  last = _last_word(left[:-1]).lower()
  right = right[_skip(right, 0, len(right), _is_opener):]
  if last in _BEFORE_NUMBERS:
    return right[:1].isascii() and right[:1].isdigit()
  is_initials = len(last) % 2 == 1 and all(
      _is_letter(c) if i % 2 == 0 else c == "." for i, c in enumerate(last))
  first = right[:_skip(right, 0, min(len(right), _LONGEST_WORD + 1),
                       _is_letter)]
  return (is_initials or last in _ABBREVIATIONS) and (
      first.lower() not in _STARTERS)


def split_sentences(text):
  """The sentences of an English text as (begin, end), without white space.

  As SplitSentences in C++ (tasks/text/sentence_splitter.h): Unicode's rules,
  line ends as white space, no breaks after abbreviations and initials.
  """
  text = text.translate(_LINE_ENDS)
  is_space = _SPACES.__contains__
  sentences = []
  begin = _skip(text, 0, len(text), is_space)
  for unicode_end in _unicode_ends(text):
    end = _skip_back(text, begin, unicode_end, is_space)
    after = _skip(text, unicode_end, len(text), is_space)
    if end == unicode_end and after < len(text):
      end = after = _skip_back(text, begin, end, _is_bracket)
    if end <= begin or (after < len(text) and _is_abbreviation(
        text[max(begin, end - 64):end], text[after:after + 256])):
      continue
    sentences.append((begin, end))
    begin = after
  return sentences


# --- Tokenizers ---------------------------------------------------------------


class Piece(typing.NamedTuple):
  """One piece of a text: its id, and the characters that it stands for."""
  id: int
  begin: int
  end: int


# By file, in the order of etc/weights/tokenizer_files.cc.
_SENTENCEPIECE_FILES = ("tokenizer.model", "vocab_gpt_for_etc.model",
                        "spiece.model")
_WORDPIECE_FILES = ("vocab.txt", "vocab_bert_uncased_english.txt")
_POOLING_FILE = "1_Pooling/config.json"
# Files of a checkpoint by which texts become inputs, and outputs vectors.
TEXT_FILES = (*_SENTENCEPIECE_FILES, *_WORDPIECE_FILES, "tokenizer.json",
              "tokenizer_config.json", _POOLING_FILE)
_MARKS = (("[CLS]", "[SEP]"), ("<unused_63>", "<unused_2>"), ("<s>", "</s>"))
# Of a tokenizer.json of another kind than BERT's.
_OTHER_MARKS = (_MARKS[0], _MARKS[2], _MARKS[1])
# BERT's control pieces, which in a text are text.
_CONTROLS = ("[CLS]", "[SEP]", "[PAD]", "[UNK]", "[MASK]")
# As kClasses in etc/weights/tokenizer_files.cc, without "Tokenizer".
_BERTS_CLASSES = ("Bert", "ConvBert", "DistilBert", "DPRContextEncoder",
                  "Electra", "DPRQuestionEncoder", "LayoutLM", "Lxmert",
                  "MobileBert", "SqueezeBert")
_GENERIC_CLASSES = ("PreTrainedTokenizerFast", "TokenizersBackend")


def _find_marks(id_of, path, pairs=_MARKS):
  for pair in pairs:
    ids = [id_of(mark) for mark in pair]
    if None not in ids:
      return ids
  named = ", or ".join(f'"{first}" and "{last}"' for first, last in pairs)
  raise ValueError(f"{path} should have the pieces {named}, but has none of "
                   "these pairs")


class _HuggingFaceTokenizer:
  """A tokenizer of the package tokenizers.

  Of BERT's, control pieces in a text are plain text; of another tokenizer.json
  special tokens are found, and those around a text are its post-processor's.
  """

  def __init__(self, tokenizer, path, is_berts=True):
    self._tokenizer = tokenizer
    tokenizer.encode_special_tokens = is_berts
    tokenizer.no_truncation()
    tokenizer.no_padding()
    around, pair = ([], []) if is_berts else (
        tokenizer.encode("").ids, tokenizer.encode("", "").ids)
    if len(around) not in (0, 2) or pair and around != [pair[0], pair[-1]]:
      raise ValueError(f"{path}: post_processor should put one special piece "
                       "before a text and one behind it, or none, and the "
                       "same around a pair")
    self.cls, self.separator = around or _find_marks(
        tokenizer.token_to_id, path, _MARKS if is_berts else _OTHER_MARKS)
    self.size = tokenizer.get_vocab_size()
    self.begins_words_with_blanks = not is_berts and any(
        self._first_word(" a").startswith(mark) and
        not self._first_word("a").startswith(mark)
        for mark in ("\u0120", "\u2581"))
    self.between = pair[1:-1]
    if not pair:
      # Byte-level BPE, whose words are bytes, with RoBERTa's names.
      is_robertas = (not around and
                     self.cls == tokenizer.token_to_id("<s>") and
                     self._first_word("\u00df").startswith("\u00c3"))
      self.between = [self.separator] * (2 if is_robertas else 1)

  def _first_word(self, text):
    """The first word of a text as the model gets it."""
    normalizer = self._tokenizer.normalizer
    splitter = self._tokenizer.pre_tokenizer
    text = text if normalizer is None else normalizer.normalize_str(text)
    words = [(text,)] if splitter is None else splitter.pre_tokenize_str(text)
    return words[0][0] if words else ""

  def encode(self, text):
    found = self._tokenizer.encode(text, add_special_tokens=False)
    return [Piece(id_, *offsets)
            for id_, offsets in zip(found.ids, found.offsets)]


class _SentencePieceTokenizer:
  """A SentencePiece model, with ETC's rule of pieces that end in a comma."""

  begins_words_with_blanks = False

  def __init__(self, processor, path):
    self._processor = processor
    self.size = processor.get_piece_size()
    self.cls, self.separator = _find_marks(self._id, path)
    self.between = [self.separator]

  def _id(self, piece):
    found = self._processor.piece_to_id(piece)
    return found if self._processor.id_to_piece(found) == piece else None

  def _encode(self, text):
    """(spelling, Piece) of each piece."""
    if hasattr(self._processor, "encode_as_offset_mapping"):
      found = self._processor.encode_as_offset_mapping(text)
      return [(spelt, Piece(id_, *offsets)) for spelt, id_, offsets in zip(
          found["pieces"], found["ids"], found["offsets"])]
    # Before version 0.2.2 or so.
    found = self._processor.encode(text, out_type="immutable_proto")
    return [(one.piece, Piece(one.id, one.begin, one.end))
            for one in found.pieces]

  def encode(self, text):
    pieces = []
    for spelt, piece in self._encode(text):
      if len(spelt) > 1 and spelt[-1] == "," and spelt[-2].isdigit():
        # doc/formats.md 4.7: "12," is "12" and ",".
        ids = self._processor.encode(spelt.replace("\u2581", "")[:-1])
        ids.append(self._processor.piece_to_id(","))
        pieces += [Piece(id_, piece.begin, piece.end) for id_ in ids]
      else:
        pieces.append(piece)
    return pieces


def read_json(path):
  try:
    found = json.loads(path.read_text(encoding="utf-8"))
  except (json.JSONDecodeError, UnicodeDecodeError) as error:
    raise ValueError(f"{path} should be JSON, but: {error}") from error
  if not isinstance(found, dict):
    raise ValueError(f"{path} should be a JSON object")
  return found


# Classes of characters of tasks/text/basic_tokenizer.h, which are Google's:
# those of BertNormalizer and BertPreTokenizer are others (doc/formats.md 4.5).
_DELETED = r"[\p{Cc}\p{Cf}\x{fffd}&&[^\t\n\r]]"
_PUNCTUATION = r"!-/:-@\[-`{-~\p{P}"
_IDEOGRAPHS = (r"\x{3400}-\x{4dbf}\x{4e00}-\x{9fff}\x{f900}-\x{faff}"
               r"\x{20000}-\x{2a6df}\x{2a700}-\x{2ceaf}\x{2f800}-\x{2fa1f}")
# Final_Sigma of Unicode's table 3-17, the letters before it left out by \K.
_CASED = r"[\p{Cased}&&\P{Case_Ignorable}]"
_FINAL_SIGMA = (rf"{_CASED}\p{{Case_Ignorable}}*\K\x{{3a3}}"
                rf"(?!\p{{Case_Ignorable}}*{_CASED})")


def _set_words(tokenizer, fields):
  """Makes a tokenizer's words those of C++, by a BertNormalizer's fields."""
  tokenizers = import_package("tokenizers", "WordPiece")
  steps, splitters = tokenizers.normalizers, tokenizers.pre_tokenizers

  def replace(pattern, text):
    return steps.Replace(tokenizers.Regex(pattern), text)

  lowercase = fields.get("lowercase", True)
  strip_accents = fields.get("strip_accents")
  found = [replace(_DELETED, "")] if fields.get("clean_text", True) else []
  found.append(replace(r"\s", " "))
  if lowercase:
    found += [replace(_FINAL_SIGMA, "\u03c2"), steps.Lowercase()]
  if lowercase if strip_accents is None else strip_accents:
    found += [steps.NFD(), replace(r"\p{Mn}", "")]
  tokenizer.normalizer = steps.Sequence(found)
  alone = _PUNCTUATION + (
      _IDEOGRAPHS if fields.get("handle_chinese_chars", True) else "")
  tokenizer.pre_tokenizer = splitters.Sequence([
      splitters.WhitespaceSplit(),
      splitters.Split(tokenizers.Regex(f"[{alone}]"), "isolated")])


def _make_wordpiece(path, vocabulary, limit, fields, added):
  """BERT's tokenizer as C++ has it.

  Args:
    path: names the file in messages.
    vocabulary: ids by piece.
    limit: characters of a word at most.
    fields: of a BertNormalizer.
    added: the fields of added tokens, in the order of their ids.
  """
  tokenizers = import_package("tokenizers", f"the WordPiece vocabulary {path}")
  if "[UNK]" not in vocabulary:
    raise ValueError(f'{path} should have the piece "[UNK]", but has not')
  tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(
      vocabulary, unk_token="[UNK]", max_input_chars_per_word=limit))
  _set_words(tokenizer, fields)
  tokenizer.add_tokens([
      tokenizers.AddedToken(
          token["content"], single_word=token.get("single_word", False),
          lstrip=token.get("lstrip", False), rstrip=token.get("rstrip", False),
          normalized=token.get("normalized", False),
          special=token["content"] in _CONTROLS)  # not found in a text
      for token in added])
  return _HuggingFaceTokenizer(tokenizer, path)


def _names_berts_class(kind):
  """Whether a tokenizer_class is BERT's tokenizer, maybe by another name."""
  return kind.removesuffix("Fast") in [f"{name}Tokenizer"
                                       for name in _BERTS_CLASSES]


def _check_statement(path, options, name, is_supported, supported):
  """Refuses what tokenizer_config.json beside a vocabulary says of it."""
  if options.get(name) is not None and not is_supported(options[name]):
    raise ValueError(
        f"{path.parent}/tokenizer_config.json: {name} is "
        f"{json.dumps(options[name])}, but only {supported} is supported "
        f"beside {path.name}")


def _load_wordpiece(path, options):
  """BERT's tokenizer of a vocab.txt, used as tokenizer_config.json says."""
  has_whole = os.path.lexists(path.parent / "tokenizer.json")
  _check_statement(
      path, options, "tokenizer_class",
      lambda kind: (_names_berts_class(str(kind)) or
                    (has_whole and kind in _GENERIC_CLASSES)),
      '"BertTokenizer" (or a class that is the same under another name)')
  lines = path.read_text(encoding="utf-8-sig").split("\n")
  while lines and not lines[-1].strip():
    lines.pop()
  vocabulary = {line.rstrip("\r"): i for i, line in enumerate(lines)}
  has_capitals = any(word != word.lower() for word in vocabulary
                     if not word.startswith(("[", "<")))
  limit = options.get("max_input_chars_per_word",
                      100 if "tokenizer_class" in options else 200)
  fields = {"clean_text": options.get("clean_text", True),
            "handle_chinese_chars": options.get("tokenize_chinese_chars", True),
            "strip_accents": options.get("strip_accents"),
            "lowercase": options.get("do_lower_case", not has_capitals)}
  added = sorted(options.get("added_tokens_decoder", {}).items(),
                 key=lambda item: int(item[0]))
  return _make_wordpiece(path, vocabulary, limit, fields,
                         [token for _, token in added])


def _load_sentencepiece(path, options):
  if options.get("split_punctuation"):
    raise ValueError(
        f"{path.parent}/tokenizer_config.json asks for split_punctuation, "
        "which the Python package does not have: give inputs made by realetc")
  # RoBERTa's class is that of its vocab.json, beside which a model may lie.
  _check_statement(
      path, options, "tokenizer_class",
      lambda kind: str(kind).removesuffix("Fast") == "RobertaTokenizer",
      "a model without a class of its own, which gives text and ids as they "
      "are,")
  _check_statement(path, options, "do_lower_case", lambda folds: not folds,
                   "false")
  package = import_package("sentencepiece", f"the SentencePiece model {path}")
  return _SentencePieceTokenizer(
      package.SentencePieceProcessor(model_file=str(path)), path)


def _fits_in_lines(whole):
  """Whether each piece could be a line of a vocab.txt."""
  return all(piece and "\n" not in piece and "\r" not in piece for piece in (
      *(whole["model"].get("vocab") or {}),
      *(token["content"] for token in whole.get("added_tokens") or [])))


def _is_berts(whole, options):
  """Whether C++ reads a tokenizer.json as if it were a vocab.txt."""
  model, kind = whole.get("model") or {}, options.get("tokenizer_class")
  is_old = "continuing_subword_prefix" in model and "merges" not in model
  normalizer = whole.get("normalizer")
  return (
      model.get("type", "WordPiece" if is_old else None) == "WordPiece" and
      model.get("continuing_subword_prefix", "##") == "##" and
      model.get("unk_token", "[UNK]") == "[UNK]" and
      (not normalizer or normalizer.get("type") == "BertNormalizer") and
      (whole.get("pre_tokenizer") or {}).get("type") == "BertPreTokenizer" and
      (not kind or kind in _GENERIC_CLASSES or _names_berts_class(kind)) and
      _fits_in_lines(whole))


def _load_tokenizer_json(path, options):
  """A tokenizer.json; of BERT's kind it is used as a vocab.txt would be."""
  tokenizers = import_package("tokenizers", str(path))
  contents = read_json(path)
  try:  # of BERT's kind as well: what is read below is then well-formed
    tokenizer = tokenizers.Tokenizer.from_str(json.dumps(contents))
  except Exception as error:  # the package raises nothing narrower
    raise ValueError(f"{path} cannot be read by tokenizers: {error}"
                     ) from error
  if not _is_berts(contents, options):
    return _HuggingFaceTokenizer(tokenizer, path, is_berts=False)
  model = contents["model"]
  return _make_wordpiece(
      path, model["vocab"], model.get("max_input_chars_per_word", 100),
      contents.get("normalizer") or dict.fromkeys(
          ("clean_text", "handle_chinese_chars", "lowercase"), False),
      sorted(contents.get("added_tokens") or [],
             key=lambda token: token["id"]))


def load_tokenizer(directory):
  """The tokenizer whose files lie in a directory.

  vocab.txt and SentencePiece models by the names that realetc knows, and
  tokenizer.json. `encode` gives pieces, `cls` and `separator` are ids, and
  `between` those of the marks between two texts.

  Raises:
    ValueError: there is none, or one that is not supported.
    OSError: a file cannot be read.
    ImportError: the package that reads it is not installed.
  """
  folder = pathlib.Path(directory)
  settings = folder / "tokenizer_config.json"
  # A link that leads nowhere is not passed over, but cannot be read.
  options = read_json(settings) if os.path.lexists(settings) else {}
  for name in _WORDPIECE_FILES:
    if os.path.lexists(folder / name):
      return _load_wordpiece(folder / name, options)
  for name in _SENTENCEPIECE_FILES:
    if os.path.lexists(folder / name):
      return _load_sentencepiece(folder / name, options)
  whole = folder / "tokenizer.json"
  if not os.path.lexists(whole):
    raise ValueError(
        f"{folder} should have a vocabulary (vocab.txt, tokenizer.model or "
        "tokenizer.json), but has none")
  return _load_tokenizer_json(whole, options)


# --- Inputs -------------------------------------------------------------------


@dataclasses.dataclass
class TextOptions:
  """How texts become inputs: as LoadedEncoder in C++ (tasks/inference/text_encoder.h)."""
  has_long_tokens: bool = True
  # Tokens of each stream at most.
  max_long_length: int = 4096
  max_global_length: int = 512
  # "icu", or a folder of tables of Punkt, which Python does not read.
  sentences: str = "icu"

  def stated(self):
    """The fields that a file states beside the encoder's configuration."""
    return {name: getattr(self, name) for name in _STATED_OPTIONS}


TRANSFORMERS_CONFIG = "config.json"
_OPTIONS_FILE = "text_options.json"
_STATED_OPTIONS = ("max_long_length", "max_global_length", "sentences")


def read_transformers_config(folder):
  """The fields of a RealEtcConfig in a folder; None if there is none."""
  path = folder / TRANSFORMERS_CONFIG
  fields = read_json(path) if os.path.lexists(path) else {}
  return fields if fields.get("model_type") == "realetc" else None


def _stated_options(folder):
  """The object that states _STATED_OPTIONS; None if no file does."""
  if os.path.lexists(folder / "run_config.json"):
    return read_json(folder / "run_config.json").get("data", {})
  exported = read_transformers_config(folder)
  if exported is not None:
    return exported
  if os.path.lexists(folder / _OPTIONS_FILE):
    return read_json(folder / _OPTIONS_FILE)
  return None


def source_folder(folder):
  """The folder that a model was loaded from, for what is read later."""
  if not os.path.isdir(folder):
    raise FileNotFoundError(
        f"{folder}, which has the vocabulary and the lengths of texts, is gone "
        "since the model was loaded from it")
  return folder


def read_text_options(directory, config):
  """The options of a checkpoint: as its files state, or by its positions."""
  options = TextOptions(config.has_long_tokens)
  stated = _stated_options(pathlib.Path(directory))
  if stated is not None:
    return dataclasses.replace(options, **{
        name: stated[name] for name in _STATED_OPTIONS if name in stated})
  rows = config.max_absolute_position_embeddings
  if rows > 0:
    options.max_long_length = options.max_global_length = rows
  return options


def write_text_options(directory, options):
  """Writes the file by which read_text_options gives the same."""
  (pathlib.Path(directory) / _OPTIONS_FILE).write_text(
      json.dumps(options.stated(), indent=2) + "\n", encoding="utf-8")


_POOLING_OF_MODE = {"cls": "first", "cls_token": "first", "mean": "mean",
             "mean_tokens": "mean"}


def read_pooling(directory):
  """"first" or "mean", as sentence-transformers' file says; "first" if none.

  Its older versions write a flag for each mode, pooling_mode_mean_tokens.
  """
  path = pathlib.Path(directory) / _POOLING_FILE
  if not os.path.lexists(path):
    return "first"
  fields, flag = read_json(path), "pooling_mode_"
  modes = fields.get("pooling_mode", [
      name.removeprefix(flag) for name, is_set in fields.items()
      if name.startswith(flag) and is_set])
  modes = [modes] if isinstance(modes, str) else modes
  if modes not in [[name] for name in _POOLING_OF_MODE]:
    raise ValueError(f'{path} should ask for "cls" or "mean", but asks for '
                     f"{json.dumps(modes)}: give pooling")
  return _POOLING_OF_MODE[modes[0]]


class TextInputs(dict):
  """Tensors of a batch of texts, by the names of forward's arguments.

  With B texts and the longest of T tokens, all int64 [B, T]: input_ids,
  attention_mask (0 for padding), for ETC sentence_ids (-1 for none), and of
  pairs token_type_ids (1 for the second text).

  Attributes:
    pieces: the Pieces of each text, then those of its second one; token 1 + i
      is piece i of the first. Places are those in the string of a list.
    sentences: (begin, end) of the sentences of each text that have a global
      token, from their first piece to their last; empty for BERT.
    cut_pieces: pieces of each text that were cut off at its end, or at the ends
      of a pair.
    dropped_sentences: sentences of each text before them without a global
      token.
  """

  def __init__(self, *arguments, **tensors):
    super().__init__(*arguments, **tensors)
    self.pieces, self.sentences = [], []
    self.cut_pieces, self.dropped_sentences = [], []

  def to(self, device):
    """Moves the tensors to a device."""
    for name, tensor in self.items():
      self[name] = tensor.to(device)
    return self


def _encode_sentence(text, begin, end, tokenizer):
  """The Pieces of text[begin:end], which with a blank before it begins so."""
  start = begin
  if tokenizer.begins_words_with_blanks and text[begin - 1:begin] == " ":
    start -= 1
  found = [Piece(p.id, max(p.begin + start, begin), p.end + start)
           for p in tokenizer.encode(text[start:end])]
  if start < begin and found and found[-1].end <= begin:
    return []  # nothing but the blank
  return found


def _encode_text(text, number, tokenizer, split):
  """The Pieces of a text, a list of strings, and of each of its sentences.

  Sentences are those of `split` that have a piece; None: of BERT, without.
  """
  pieces, sentences = [], []
  for part in text:
    for begin, end in ([(0, len(part))] if split is None
                       else _sentences_of(part, number, split)):
      found = _encode_sentence(part, begin, end, tokenizer)
      pieces += found
      if found and split is not None:
        sentences.append(found)
  return pieces, sentences


def _check_pieces(has_pieces, number):
  if not has_pieces:
    raise ValueError(
        f"text {number} should have at least one piece, but is empty, white "
        "space, or characters that the tokenizer drops")


def span_of(pieces):
  """(begin, end) of the Pieces of a sentence or chunk."""
  return (min(piece.begin for piece in pieces),
          max(piece.end for piece in pieces))


def _sentences_of(text, number, split):
  """The sentences that `split` gives, checked."""
  spans, behind = [], 0
  for span in split(text):
    try:
      begin, end = map(operator.index, span)
    except (TypeError, ValueError):
      begin, end = -1, -1
    if not behind <= begin <= end <= len(text):
      raise ValueError(
          "split_sentences should give the (begin, end) of each sentence, one "
          f"behind the other, but gives {span!r} in the {len(text)} characters "
          f"of text {number}")
    spans.append((begin, end))
    behind = end
  return spans


def _room(options, marks=2):
  """The most pieces of texts with so many marks."""
  return (options.max_long_length if options.has_long_tokens
          else options.max_global_length) - marks


def _lengths_within(room, lengths):
  """Lengths of a text or two, the longer one cut: CutLongerText in C++."""
  lengths = list(lengths)
  for _ in range(sum(lengths) - room):
    lengths[0 if lengths[0] > lengths[-1] else -1] -= 1
  return lengths


def _add_texts(texts, number, tokenizer, options, split, inputs):
  """Adds a text or a pair to `inputs`; returns ids, sentences and types."""
  marks = [tokenizer.between, [tokenizer.separator]][-len(texts):]
  encoded = [_encode_text(text, number, tokenizer, split) for text in texts]
  _check_pieces(any(pieces for pieces, _ in encoded), number)
  lengths = _lengths_within(_room(options, 1 + sum(map(len, marks))),
                            [len(pieces) for pieces, _ in encoded])
  ids, owners, types = [tokenizer.cls], [-1], [0]
  kept_pieces, spans, cut, dropped = [], [], 0, 0
  for kind, ((pieces, sentences), length) in enumerate(zip(encoded, lengths)):
    cut += len(pieces) - length
    kept_pieces += pieces[:length]
    ids += [piece.id for piece in pieces[:length]] + marks[kind]
    types += [kind] * (len(ids) - len(types))
    for sentence in sentences:
      sentence = sentence[:length]
      length -= len(sentence)
      if not sentence:
        break
      has_token = len(spans) < options.max_global_length - 1
      owners += [len(spans) if has_token else -1] * len(sentence)
      if has_token:
        spans.append(span_of(sentence))
      else:
        dropped += 1
    owners += [-1] * (len(ids) - len(owners))
  inputs.pieces.append(kept_pieces)
  inputs.sentences.append(spans)
  inputs.cut_pieces.append(cut)
  inputs.dropped_sentences.append(dropped)
  return ids, owners, types


def _padded(rows, padding):
  longest = max(map(len, rows))
  return torch.tensor([row + [padding] * (longest - len(row)) for row in rows])


def _id_tensors(rows):
  return {"input_ids": _padded(rows, 0),
          "attention_mask": _padded([[1] * len(ids) for ids in rows], 0)}


def list_of_texts(texts, name="texts"):
  """The texts of any iterable, each as the list of its strings.

  ValueError if they are no Unicode strings, or lists of them.
  """
  expected = f"{name} should be a list of strings, or of lists of them"
  if isinstance(texts, str) or not hasattr(texts, "__iter__"):
    raise ValueError(f"{expected}, but is {type(texts).__name__}")
  found = [list(text) if isinstance(text, (list, tuple)) else [text]
           for text in texts]
  for number, text in enumerate(found):
    for part in text:
      if not isinstance(part, str):
        raise ValueError(
            f"{expected}, but text {number} is {type(part).__name__}")
      try:
        part.encode()
      except UnicodeEncodeError as error:
        raise ValueError(f"{name}: text {number} has a lone surrogate, at "
                         f"character {error.start}") from error
  return found


def _check_lengths(options, marks=2):
  least = max(3, marks)
  needed = {"max_long_length": least, "max_global_length": 1} if (
      options.has_long_tokens) else {"max_global_length": least}
  for name, least in needed.items():
    if getattr(options, name) < least:
      raise ValueError(f"{name} should be at least {least}, but is "
                       f"{getattr(options, name)}")


def make_inputs(texts, tokenizer, options, split=None, first=0, texts_b=None):
  """TextInputs of list_of_texts, as EncodeTexts in C++ makes them.

  `split` gives the (begin, end) of the sentences of a text; split_sentences by
  default. Messages count texts from `first`. With second texts, pairs as the
  task classify in C++ makes them.
  """
  pairs = list(zip(texts, *([] if texts_b is None else [texts_b])))
  _check_lengths(options, 2 if texts_b is None else 2 + len(tokenizer.between))
  if not texts:
    raise ValueError("there should be at least one text to encode")
  if options.has_long_tokens and split is None and options.sentences != "icu":
    raise ValueError(
        f"the model was trained with the sentences of {options.sentences}, "
        "which the Python package does not split; give split_sentences, which "
        "returns the (begin, end) of each")
  inputs = TextInputs()
  split = (split or split_sentences) if options.has_long_tokens else None
  ids, owners, types = zip(*(
      _add_texts(pair, number, tokenizer, options, split, inputs)
      for number, pair in enumerate(pairs, first)))
  inputs.update(_id_tensors(ids))
  if options.has_long_tokens:
    inputs["sentence_ids"] = _padded(owners, -1)
  if texts_b is not None:
    inputs["token_type_ids"] = _padded(types, 0)
  return inputs


def chunks_of_texts(texts, tokenizer, options):
  """The chunks of list_of_texts for BERT: lists of at most _room() Pieces."""
  _check_lengths(options)
  room = _room(options)
  chunks = []
  for number, text in enumerate(texts):
    pieces, _ = _encode_text(text, number, tokenizer, split=None)
    _check_pieces(pieces, number)
    chunks.append([pieces[begin:begin + room]
                   for begin in range(0, len(pieces), room)])
  return chunks


def tensors_of_chunks(chunks, tokenizer):
  """The tensors of TextInputs for a batch of chunks."""
  return _id_tensors([
      [tokenizer.cls, *(piece.id for piece in chunk), tokenizer.separator]
      for chunk in chunks])
