"""Texts as ETC reads them: sentences, pieces of a vocabulary, tensors of ids.

The same sentences and pieces as tasks/text in C++, by the Unicode tables of
these packages: PyPI's regex, and tokenizers (WordPiece, tokenizer.json) or
sentencepiece. Imports nothing of this package: `realetc export --format
huggingface` writes this file as it is.
"""
import contextlib
import dataclasses
import functools
import json
import operator
import os
import pathlib
import re
import shutil
import typing
import unicodedata
import warnings

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


# In the order of kVocabularies in etc/weights/tokenizer_files.cc.
_VOCABULARIES = ("vocab.txt", "tokenizer.model",
                 "vocab_bert_uncased_english.txt", "vocab_gpt_for_etc.model",
                 "spiece.model", "sentencepiece.bpe.model")
_TOKENIZER_JSON = "tokenizer.json"
# Read by realetc alone.
_BYTE_LEVEL_FILES = ("vocab.json", "merges.txt")
_SETTINGS = "tokenizer_config.json"
_POOLING_FILE = "1_Pooling/config.json"
# Files of a checkpoint by which texts become inputs, and outputs vectors.
TEXT_FILES = (*_VOCABULARIES, _TOKENIZER_JSON, *_BYTE_LEVEL_FILES, _SETTINGS,
              "special_tokens_map.json", "added_tokens.json", _POOLING_FILE)
_MARKS = (("[CLS]", "[SEP]"), ("<unused_63>", "<unused_2>"), ("<s>", "</s>"))
# Of a tokenizer.json of another kind than BERT's.
_OTHER_MARKS = (_MARKS[0], _MARKS[2], _MARKS[1])
# BERT's control pieces, which in a text are text, by their roles.
_CONTROLS = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]",
             "sep_token": "[SEP]", "mask_token": "[MASK]"}
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

  Of BERT's, control pieces in a text are plain text, as they are not added; of
  another tokenizer.json special tokens are found, and those around a text are
  its post-processor's.
  """

  def __init__(self, tokenizer, path, is_berts=True):
    self._tokenizer = tokenizer
    tokenizer.no_truncation()
    tokenizer.no_padding()
    pieces = tokenizer.get_vocab()
    self.size = 1 + max(pieces.values(), default=-1)
    around, between = (None, None) if is_berts else self._marks(pieces, path)
    self.cls, self.separator = around or _find_marks(
        tokenizer.token_to_id, path, _MARKS if is_berts else _OTHER_MARKS)
    self.begins_words_with_blanks = not is_berts and any(
        self._first_word(" a").startswith(mark) and
        not self._first_word("a").startswith(mark)
        for mark in ("\u0120", "\u2581"))
    self.between = between
    if between is None:
      # Byte-level BPE, whose words are bytes, with RoBERTa's names.
      is_robertas = (not around and
                     self.cls == tokenizer.token_to_id("<s>") and
                     self._first_word("\u00df").startswith("\u00c3"))
      self.between = [self.separator] * (2 if is_robertas else 1)

  def _marks(self, pieces, path):
    """Ids that post_processor has around a text, and between two; or None.

    As ReadPostProcessor in C++ (tasks/text/huggingface/post_processor.h).
    """
    text = next((text for text in ("a", *pieces) if self._tokenizer.encode(
        text, add_special_tokens=False).ids), "")
    single, pair = (self._tokenizer.encode(*texts)
                    for texts in ((text,), (text, text)))
    ids = [[id_ for id_, number in zip(one.ids, one.sequence_ids)
            if number is None] for one in (single, pair)]
    # The order of the parts: runs of pieces of a text are one.
    parts = ["".join("m" if number is None else "ab"[number]
                     for number in one.sequence_ids) for one in (single, pair)]
    if (not re.fullmatch("a+|ma+m", parts[0]) or
        not re.fullmatch("a+b+|ma+m*b+m", parts[1]) or
        ids[1] and ids[0] != [ids[1][0], ids[1][-1]]):
      raise ValueError(f"{path}: post_processor should put one special piece "
                       "before a text and one behind it, or none, and the "
                       "same around a pair")
    return ids[0] or None, ids[1][1:-1] if ids[1] else None

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


_KINDS = {bool: "true or false", int: "an integer", str: "a string",
          dict: "an object"}


def _typed(fields, name, kind, where, default=None):
  """fields[name], or the default; ValueError if it is of another kind."""
  value = fields.get(name, default)
  if value is not default and type(value) is not kind:  # a bool is no integer
    raise ValueError(f"{where}: {name} should be {_KINDS[kind]}, but is "
                     f"{json.dumps(value)}")
  return value


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


def _set_words(tokenizer, values):
  """Makes a tokenizer's words those of C++, by values of _Statements."""
  tokenizers = import_package("tokenizers", "WordPiece")
  steps, splitters = tokenizers.normalizers, tokenizers.pre_tokenizers

  def replace(pattern, text):
    return steps.Replace(tokenizers.Regex(pattern), text)

  found = [replace(_DELETED, "")] if values["clean_text"] else []
  found.append(replace(r"\s", " "))
  if values["do_lower_case"]:
    found += [replace(_FINAL_SIGMA, "\u03c2"), steps.Lowercase()]
  if values.get("strip_accents", values["do_lower_case"]):
    found += [steps.NFD(), replace(r"\p{Mn}", "")]
  tokenizer.normalizer = steps.Sequence(found)
  alone = _PUNCTUATION + (
      _IDEOGRAPHS if values["tokenize_chinese_chars"] else "")
  tokenizer.pre_tokenizer = splitters.Sequence([
      splitters.WhitespaceSplit(),
      splitters.Split(tokenizers.Regex(f"[{alone}]"), "isolated")])


class _Unsupported(ValueError):
  """A vocabulary is used as only a tokenizer.json beside it may describe."""


def _refuse_other(where, found, supported, advice=""):
  raise _Unsupported(f"{where} is {json.dumps(found)}, but only {supported} is "
                     f"supported{advice}")


@dataclasses.dataclass
class _AddedToken:
  """A piece that is found in a text as a whole, as AddedToken in C++."""
  content: str
  id: int
  where: str  # file and field, for messages
  single_word: bool = False
  normalized: bool = False
  has_flags: bool = True  # the file has all fields, not only content and id


class _Statements:
  """Statements of files about the use of a vocabulary; they may not differ.

  As TokenizerStatements in C++ (etc/weights/tokenizer_statements.h).

  Attributes:
    values: by the names of tokenizer_config.json.
    places: by the same names, of the first statement.
    added: _AddedTokens by their contents.
    special: (content, place) of special tokens that are named without ids.
  """

  def __init__(self):
    self.values, self.places, self.added, self.special = {}, {}, {}, []
    self._contents = {}  # of added tokens by id

  def state(self, name, value, where):
    """Takes a value of a file; None is no statement."""
    if value is None:
      return
    known = self.values.setdefault(name, value)
    self._check_same(known, self.places.setdefault(name, where), value, where)

  def add(self, token):
    """Takes an added token of a file."""
    content = self._contents.setdefault(token.id, token.content)
    known = self.added.setdefault(token.content, token)
    self._check_same(content, f"id {token.id}", token.content, token.where)
    names = ("id", "single_word", "normalized") if (
        known.has_flags and token.has_flags) else ("id",)
    for name in names:
      self._check_same(*(part for one in (known, token) for part in (
          getattr(one, name),
          f"{name} of {json.dumps(one.content)} in {one.where}")))
    if not known.has_flags:
      self.added[token.content] = token

  @staticmethod
  def _check_same(known, place, value, where):
    if known != value:
      raise ValueError(f"{where} is {json.dumps(value)}, but {place} is "
                       f"{json.dumps(known)}; they should say the same")


# Options that change the treatment of a text, and the only value of each.
_ONLY = {"do_basic_tokenize": True, "split_special_tokens": False,
         "never_split": [], "wordpieces_prefix": "##",
         "word_tokenizer_type": "basic", "subword_tokenizer_type": "wordpiece"}


def _content_of(token):
  """The content of a token, which is that or an object with it; or ""."""
  content = token.get("content") if isinstance(token, dict) else token
  return content if isinstance(content, str) else ""


def _read_special_tokens(fields, path, statements):
  """The fields that tokenizer_config.json and special_tokens_map.json share."""
  for role, piece in _CONTROLS.items():
    if fields.get(role) is not None and _content_of(fields[role]) != piece:
      _refuse_other(f"{path}: {role}", fields[role], json.dumps(piece))
  for name in ("additional_special_tokens", "extra_special_tokens"):
    tokens = [] if fields.get(name) is None else fields[name]
    if not isinstance(tokens, (list, dict)):
      raise ValueError(f"{path}: {name} should be a list, but is "
                       f"{json.dumps(tokens)}")
    for token in tokens.values() if isinstance(tokens, dict) else tokens:
      if not _content_of(token):
        raise ValueError(f"{path}: {name} should be a list of tokens, but has "
                         f"{json.dumps(token)}")
      statements.special.append((_content_of(token), f"{path}: {name}"))


def _read_added_token(fields, id_, where):
  """An added token of a file of HuggingFace's; normalized as by default."""
  content = _content_of(fields)
  if not isinstance(fields, dict) or not content:
    raise ValueError(f"{where}: content should be a token, but is "
                     f"{json.dumps(fields)}")
  special, single_word, *_ = (
      _typed(fields, name, bool, where, False)
      for name in ("special", "single_word", "lstrip", "rstrip"))
  return _AddedToken(content, id_, where, single_word, _typed(
      fields, "normalized", bool, where, not special))


def _read_settings(path, statements):
  """tokenizer_config.json, as C++'s ReadTokenizerConfig."""
  fields = read_json(path)
  for name, kind in (
      ("do_lower_case", bool), ("strip_accents", bool),
      ("tokenize_chinese_chars", bool), ("clean_text", bool),
      ("max_input_chars_per_word", int), ("split_punctuation", bool),
      ("tokenizer_class", str)):
    statements.state(name, _typed(fields, name, kind, path), f"{path}: {name}")
  _check_longest_word(statements.values.get("max_input_chars_per_word"), path)
  for name, only in _ONLY.items():
    found = fields.get(name)
    if found is not None and (type(found), found) != (type(only), only):
      _refuse_other(f"{path}: {name}", found, json.dumps(only))
  _read_special_tokens(fields, path, statements)
  decoder = _typed(fields, "added_tokens_decoder", dict, path) or {}
  for id_, token in decoder.items():
    where = f"{path}: added_tokens_decoder[{json.dumps(id_)}]"
    if not re.fullmatch("[0-9]+", id_):
      raise ValueError(f"{where} should have an id for its key")
    statements.add(_read_added_token(token, int(id_), where))


def _check_longest_word(limit, path):
  if limit is not None and limit < 1:
    raise ValueError(f"{path}: max_input_chars_per_word should be at least 1, "
                     f"but is {limit}")


def _read_special_tokens_map(path, statements):
  _read_special_tokens(read_json(path), path, statements)


def _read_added_tokens(path, statements):
  """added_tokens.json: {"[ENT0]": 30522}."""
  fields = read_json(path)
  for content in fields:
    id_ = _typed(fields, content, int, path, -1)
    if not content or id_ < 0:
      raise ValueError(f"{path} should have ids of tokens, but has "
                       f"{json.dumps({content: id_})}")
    statements.add(_AddedToken(content, id_, str(path), normalized=True,
                               has_flags=False))


def _read_class(path, statements):
  """The class that HuggingFace takes where tokenizer_config.json names none."""
  try:
    fields = read_json(path)
  except (OSError, ValueError):
    return  # the model's file, whose mistakes others report
  kind = _typed(fields, "tokenizer_class", str, path)
  if "tokenizer_class" not in statements.values:
    statements.state("tokenizer_class", kind, f"{path}: tokenizer_class")


def _read_statements(folder):
  """Reads the _Statements of the files beside a WordPiece vocabulary."""
  statements = _Statements()
  for name, read in ((_SETTINGS, _read_settings),
                     ("special_tokens_map.json", _read_special_tokens_map),
                     ("added_tokens.json", _read_added_tokens),
                     (TRANSFORMERS_CONFIG, _read_class)):
    # A link that leads nowhere is not passed over, but cannot be read.
    if os.path.lexists(folder / name):
      read(folder / name, statements)
  return statements


def _read_lines(path):
  """The pieces of a vocab.txt by their ids."""
  contents = path.read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
  contents = [line.rstrip(b"\r") for line in contents]
  while contents and not contents[-1]:
    contents.pop()
  lines = []
  for number, line in enumerate(contents, 1):
    try:
      lines.append(line.decode())
    except UnicodeDecodeError as error:
      raise ValueError(f"{path}:{number}: a piece should be UTF-8, but "
                       f"{line!r} is not") from error
  return lines


def _tokenizer_of(contents, path):
  """The tokenizers.Tokenizer of the contents of a tokenizer.json."""
  tokenizers = import_package("tokenizers", str(path))
  try:
    return tokenizers.Tokenizer.from_str(json.dumps(contents))
  except Exception as error:  # the package raises nothing narrower
    raise ValueError(f"{path} cannot be read by tokenizers: {error}"
                     ) from error


def _check_berts(contents, path):
  """_Unsupported for a tokenizer.json that no vocab.txt could be."""
  def part(name):
    found = contents.get(name)
    return found if isinstance(found, dict) else {}

  model = part("model")
  is_old = ("vocab" in model and "continuing_subword_prefix" in model and
            "merges" not in model)
  for name, found, only in (
      ("model.type", model.get("type", "WordPiece" if is_old else None),
       "WordPiece"),
      ("pre_tokenizer.type", part("pre_tokenizer").get("type"),
       "BertPreTokenizer"),
      ("normalizer.type", "BertNormalizer" if contents.get("normalizer") is None
       else part("normalizer").get("type"), "BertNormalizer"),
      ("model.continuing_subword_prefix",
       model.get("continuing_subword_prefix", "##"), "##"),
      ("model.unk_token", model.get("unk_token", "[UNK]"), "[UNK]")):
    if found != only:
      _refuse_other(f"{path}: {name}", found, json.dumps(only))


def _pieces_of_json(path, vocabulary, added):
  """The pieces by their ids: those of the model, and added ones."""
  pieces = {}
  count = len(vocabulary) + len(added)
  for piece, id_ in (*vocabulary.items(),
                     *((token.content, token.id) for token in added)):
    if not piece or "\n" in piece or "\r" in piece:
      _refuse_other(f"{path}: the piece with the id {id_}", piece,
                    "a line that is not empty")
    if id_ >= count or vocabulary.get(piece, id_) != id_ or (
        pieces.setdefault(id_, piece) != piece):
      raise ValueError(
          f"{path}: the {count} pieces should have ids of their own from 0 on, "
          f"but that of {json.dumps(piece)} is {id_}")
  for id_ in range(max(pieces, default=-1)):
    if id_ not in pieces:
      raise ValueError(f"{path}: ids should be those from 0 to {max(pieces)}, "
                       f"but there is no {id_}")
  return [pieces[id_] for id_ in range(len(pieces))]


def _read_berts_json(path, statements):
  """Reads BERT's tokenizer.json, as C++'s ReadTokenizerJson.

  Returns all its pieces by their ids, those that words are cut into, and added
  ones.
  """
  contents = read_json(path)
  _check_berts(contents, path)
  _tokenizer_of(contents, path)  # what is read below is well-formed
  model, normalizer = contents["model"], contents.get("normalizer")
  where = f"{path}: normalizer"
  limit = model.get("max_input_chars_per_word", 100)
  _check_longest_word(limit, path)
  added = [_read_added_token(token, token["id"], f"{path}: added_tokens[{i}]")
           for i, token in enumerate(contents.get("added_tokens") or [])]
  lines = _pieces_of_json(path, model["vocab"], added)
  if normalizer is None:
    statements.state("do_lower_case", False, where)
    for name in ("clean_text", "tokenize_chinese_chars"):
      statements.values.setdefault(name, False)
  else:
    for name, field in (("do_lower_case", "lowercase"),
                        ("strip_accents", "strip_accents"),
                        ("clean_text", "clean_text"),
                        ("tokenize_chinese_chars", "handle_chinese_chars")):
      statements.state(name, normalizer.get(field), f"{where}.{field}")
  statements.state("max_input_chars_per_word", limit,
                   f"{path}: model.max_input_chars_per_word")
  for token in added:
    statements.add(token)
  return lines, set(model["vocab"]), {token.content for token in added}


def _check_same_pieces(path, lines, whole, others, added):
  """ValueError if vocab.txt has others than tokenizer.json, but for added ones.

  As C++'s CheckSamePieces.
  """
  for i in range(max(len(lines), len(others))):
    piece, other = (json.dumps(one[i]) if i < len(one) else "missing"
                    for one in (lines, others))
    if piece != other and (i < len(lines) or others[i] not in added):
      raise ValueError(f"{path}:{i + 1}: the piece is {piece}, but in {whole}, "
                       f"which lies beside it, it is {other}; they should be "
                       "the same vocabulary")


def _append_added_tokens(lines, statements):
  """The pieces with the added tokens that are none of them yet behind them."""
  known, all_lines = set(lines), list(lines)
  for token in sorted(statements.added.values(), key=lambda token: token.id):
    content, id_ = json.dumps(token.content), token.id
    if id_ < len(lines) and lines[id_] == token.content:
      continue
    if "\n" in token.content or "\r" in token.content:
      raise ValueError(f"{token.where}: the added token {content} has a line "
                       "break; a tokenizer.json alone can have it")
    if id_ != len(all_lines) or token.content in known:
      expected = (f"which is that of {json.dumps(lines[id_])}"
                  if id_ < len(lines) else "but should have one of the "
                  "vocabulary, or the next one behind it")
      raise ValueError(f"{token.where}: the added token {content} has the id "
                       f"{id_}, {expected}")
    all_lines.append(token.content)
  return all_lines


def _find_special_tokens(lines, statements):
  """Gives special tokens without ids those of the vocabulary."""
  ids = {piece: i for i, piece in reversed(list(enumerate(lines)))}
  for content, where in statements.special:
    token = statements.added.get(content)
    if token is not None:
      token.normalized = token.normalized and token.has_flags
    elif content in ids:
      statements.added[content] = _AddedToken(content, ids[content], where)
    else:
      raise ValueError(
          f"{where} has {json.dumps(content)}, which is no piece of the "
          "vocabulary: tokenizer.json, added_tokens.json or "
          "added_tokens_decoder should give its id")


def _check_class(statements, has_json, path):
  """Refuses another class than BERT's tokenizer, maybe by another name."""
  kind = statements.values.get("tokenizer_class")
  if (kind is not None and not (has_json and kind in _GENERIC_CLASSES) and
      kind.removesuffix("Fast") not in [f"{name}Tokenizer"
                                        for name in _BERTS_CLASSES]):
    _refuse_other(statements.places["tokenizer_class"], kind,
                  '"BertTokenizer" (or a class that is the same under another '
                  "name)", f" beside {path.name}")


def _is_cased(lines, statements, path):
  """True if pieces have capitals, where no file says do_lower_case."""
  capitals = [
      piece for piece in lines
      if any(c != c.lower() for c in piece) and piece not in statements.added
      and not (len(piece) > 2 and piece[0] + piece[-1] in ("[]", "<>"))]
  if capitals:
    warnings.warn(
        f"{path} has {len(capitals)} piece{'s' if capitals[1:] else ''} with "
        f"capitals, such as {json.dumps(capitals[0])}, and no file beside it "
        "says do_lower_case: it is taken for a cased one, and text is not "
        "folded to lower case")
  return bool(capitals)


def _check_pieces_of_words(path, lines):
  """ValueError for pieces that C++'s ParseWordPieceTokenizer refuses."""
  first = {}
  for number, piece in enumerate(lines, 1):
    if not piece:
      raise ValueError(f"{path}:{number}: a piece should be here, but the line "
                       "is empty")
    if first.setdefault(piece, number) != number:
      raise ValueError(f"{path}:{number}: {json.dumps(piece)} is in line "
                       f"{first[piece]} already")
  for piece in ("[PAD]", "[UNK]", "[CLS]", "[SEP]"):
    if piece not in first:
      raise ValueError(f"{path}: the vocabulary ({len(lines)} pieces) should "
                       f"have {piece}, but has not")


def _load_wordpiece(path):
  """BERT's tokenizer of a vocab.txt or tokenizer.json, with all files beside.

  As ReadWordPieceFiles and DescribeTokenizer in C++
  (etc/weights/tokenizer_files.h).
  """
  whole = path.parent / _TOKENIZER_JSON
  lines = None if path == whole else _read_lines(path)
  words = set(lines or ())
  statements = _read_statements(path.parent)
  has_json = os.path.lexists(whole)
  if has_json:
    others, words, added = _read_berts_json(whole, statements)
    if lines is not None:
      _check_same_pieces(path, lines, whole, others, added)
    lines = others
  _check_class(statements, has_json, path)
  lines = _append_added_tokens(lines, statements)
  _find_special_tokens(lines, statements)
  values = {"clean_text": True, "tokenize_chinese_chars": True,
            "max_input_chars_per_word":
                100 if "tokenizer_class" in statements.values else 200
            } | statements.values
  if "do_lower_case" not in values:
    values["do_lower_case"] = not _is_cased(lines, statements, path)
  _check_pieces_of_words(path, lines)
  added = [token for token in statements.added.values()
           if token.content not in _CONTROLS.values()]
  # Added tokens that no word is cut into are those that no model has.
  outside = {token.content for token in added} - words
  return _make_wordpiece(
      path, {piece: i for i, piece in enumerate(lines) if piece not in outside},
      values, sorted(added, key=lambda token: token.id))


def _check_added_ids(tokenizer, added):
  """ValueError for added tokens with other ids than tokenizers gives them.

  The package passes over those of a file: it takes the model's, or the next.
  """
  for token in added:
    found = tokenizer.token_to_id(token.content)
    if found != token.id:
      raise ValueError(f"{token.where}: the id of {json.dumps(token.content)} "
                       f"should be {found}, as tokenizers has it, but is "
                       f"{token.id}")


def _make_wordpiece(path, vocabulary, values, added):
  """BERT's tokenizer as C++ has it.

  Args:
    path: names the file in messages.
    vocabulary: ids of the pieces that words are cut into.
    values: of _Statements, all of them.
    added: _AddedTokens in the order of their ids.
  """
  tokenizers = import_package("tokenizers", f"the WordPiece vocabulary {path}")
  tokenizer = tokenizers.Tokenizer(tokenizers.models.WordPiece(
      vocabulary, unk_token="[UNK]",
      max_input_chars_per_word=values["max_input_chars_per_word"]))
  _set_words(tokenizer, values)
  # Blanks beside a token, lstrip and rstrip, have no pieces.
  tokenizer.add_tokens([
      tokenizers.AddedToken(token.content, single_word=token.single_word,
                            normalized=token.normalized, special=False)
      for token in added])
  _check_added_ids(tokenizer, added)
  return _HuggingFaceTokenizer(tokenizer, path)


def _load_sentencepiece(path):
  """A SentencePiece model, as DescribeSentencePiece in C++."""
  if path.name == "sentencepiece.bpe.model":
    raise _Unsupported(
        f"{path} has other ids than checkpoints with a vocabulary of this "
        "name: use a tokenizer.json, or rename a model of your own")
  settings = path.parent / _SETTINGS
  has_settings = os.path.lexists(settings)
  options = read_json(settings) if has_settings else {}
  kind = _typed(options, "tokenizer_class", str, settings)
  folds = _typed(options, "do_lower_case", bool, settings)
  splits = _typed(options, "split_punctuation", bool, settings)
  # RoBERTa's class is that of its vocab.json, beside which a model may lie.
  if kind is not None and kind.removesuffix("Fast") != "RobertaTokenizer":
    _refuse_other(f"{settings}: tokenizer_class", kind, "a model without a "
                  "class of its own, which gives text and ids as they are,",
                  f" beside {path.name}")
  if folds:
    _refuse_other(f"{settings}: do_lower_case", folds, "false",
                  f" beside {path.name}")
  # The folder of official ETC says it by its name alone.
  is_officials = not has_settings and (
      pathlib.Path(os.path.abspath(path)).parent.name ==
      "etc_large_split_punctuation")
  if splits or is_officials:
    raise ValueError(
        f"{settings if splits else path.parent} asks for split_punctuation, "
        "which the Python package does not have: give inputs made by realetc")
  package = import_package("sentencepiece", f"the SentencePiece model {path}")
  return _SentencePieceTokenizer(
      package.SentencePieceProcessor(model_file=str(path)), path)


def load_tokenizer(directory):
  """The tokenizer whose files lie in a directory.

  vocab.txt and SentencePiece models by the names that realetc knows, and
  tokenizer.json, used as all files beside say, as FindTokenizer in C++ does
  (etc/weights/tokenizer_files.h). `encode` gives pieces, `cls` and `separator`
  are ids, `between` those of the marks between two texts, and `size` is the
  largest id and 1.

  Raises:
    ValueError: there is none, or one that is not supported, or files
      contradict each other.
    OSError: a file cannot be read.
    ImportError: the package that reads it is not installed.
  """
  folder = pathlib.Path(directory)
  whole = folder / _TOKENIZER_JSON
  path = next((folder / name for name in (*_VOCABULARIES, _TOKENIZER_JSON)
               if os.path.lexists(folder / name)), None)
  if path is None:
    others = [name for name in _BYTE_LEVEL_FILES
              if os.path.lexists(folder / name)]
    raise ValueError(
        f"{folder} should have a vocabulary (vocab.txt, tokenizer.model or "
        "tokenizer.json), but has none" + (
            f": `realetc import` makes a tokenizer.json of {others[0]}"
            if others else ""))
  try:
    if path.suffix == ".model":
      return _load_sentencepiece(path)
    return _load_wordpiece(path)
  except _Unsupported:
    if not os.path.lexists(whole):
      raise
  contents = read_json(whole)
  tokenizer = _tokenizer_of(contents, whole)
  _check_added_ids(tokenizer, (
      _AddedToken(token["content"], token["id"], f"{whole}: added_tokens[{i}]")
      for i, token in enumerate(contents.get("added_tokens") or [])))
  return _HuggingFaceTokenizer(tokenizer, whole, is_berts=False)


# --- Inputs -------------------------------------------------------------------


@dataclasses.dataclass
class TextOptions:
  """How texts become inputs.

  As LoadedEncoder in C++ (tasks/inference/text_encoder.h).
  """
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
  """The object that states _STATED_OPTIONS, or None; and its place."""
  run = folder / "run_config.json"
  if os.path.lexists(run):
    return _typed(read_json(run), "data", dict, run, {}), f"{run}: data"
  exported = read_transformers_config(folder)
  if exported is not None:
    return exported, folder / TRANSFORMERS_CONFIG
  path = folder / _OPTIONS_FILE
  return (read_json(path), path) if os.path.lexists(path) else (None, path)


@contextlib.contextmanager
def replacing(path):
  """A path to write to, whose file takes the place of `path` in the end.

  What was there before stays whole if writing fails or is interrupted.
  """
  partial = path.with_name(f".{path.name}.partial")
  try:
    yield partial
    os.replace(partial, path)
  finally:
    partial.unlink(missing_ok=True)


def copy_text_files(source, target, overwrite):
  """Copies TEXT_FILES from a folder to another, which may be the same.

  With `overwrite` the target has those and no others in the end, or OSError is
  raised. Without it a file that is there stays, with a warning if it is another
  one, as for a file that cannot be copied.
  """
  for name in TEXT_FILES:
    old, new = source / name, target / name
    try:
      if not os.path.lexists(old):
        if overwrite:
          new.unlink(missing_ok=True)  # of a model that was there before
      elif new.exists() and (new.samefile(old) or not overwrite):
        if new.read_bytes() != old.read_bytes():
          warnings.warn(f"{new} is there already, and is not the one of this "
                        f"model, which is {old}")
      else:
        new.parent.mkdir(exist_ok=True)
        with replacing(new) as partial:
          shutil.copyfile(old, partial)
    except OSError as error:
      if overwrite:
        raise
      warnings.warn(f"{new} is not saved: {error}")


def source_folder(folder):
  """The folder that a model was loaded from, for what is read later."""
  if not os.path.isdir(folder):
    raise FileNotFoundError(
        f"{folder}, which has the vocabulary and the lengths of texts, is gone "
        "since the model was loaded from it")
  return folder


def with_stated(options, fields, where):
  """`options` with what `fields` state, which stand at `where`.

  Raises:
    ValueError: a field is of another type.
  """
  return dataclasses.replace(options, **{
      name: _typed(fields, name, type(default), where, default)
      for name, default in options.stated().items()})


def read_text_options(directory, config):
  """The options of a checkpoint: as its files state, or by its positions."""
  options = TextOptions(config.has_long_tokens)
  stated, where = _stated_options(pathlib.Path(directory))
  if stated is not None:
    return with_stated(options, stated, where)
  rows = config.max_absolute_position_embeddings
  if rows > 0:
    options.max_long_length = options.max_global_length = rows
  return options


def write_text_options(directory, options):
  """Writes the file by which read_text_options gives the same."""
  with replacing(pathlib.Path(directory) / _OPTIONS_FILE) as path:
    path.write_text(json.dumps(options.stated(), indent=2) + "\n",
                    encoding="utf-8")


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
  if (tokenizer.begins_words_with_blanks and text[begin - 1:begin] == " " and
      text[begin:begin + 1] != " "):
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
