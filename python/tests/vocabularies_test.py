"""load_tokenizer against the C++ program on small folders.

Each folder has a vocabulary of a few pieces and files that say how it is used:
both refuse it, or both have the same pieces of the same texts, the same marks
around a pair and the same size. What C++ does is asked of tokenizer_ids, in
ETC_TOKENIZER_IDS or build/release/bin (bash tests/run.sh builds it).
"""
import json
import os
import pathlib
import subprocess
import warnings

import pytest

from realetc import etc_text

tokenizers = pytest.importorskip("tokenizers")

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROGRAM = pathlib.Path(os.environ.get(
    "ETC_TOKENIZER_IDS", _ROOT / "build/release/bin/tokenizer_ids"))
needs_program = pytest.mark.skipif(
    not _PROGRAM.exists(),
    reason=f"the C++ program {_PROGRAM} is not built: cmake --build --preset "
    "release --target tokenizer_ids")

_PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "court", "<",
           "ent", ">", "rain", "caf\u00e9", "cafe", "a", "##a", "\u4e2d",
           "\u6587"]
_NEXT = len(_PIECES)
_COURT = _PIECES.index("court")
_TEXTS = ["the <ent> court Rain", "xentxy <ENT>the  <ent>\t[MASK]x[CLS]",
          "Caf\u00e9 \u4e2d\u6587 the\u0001rain Foo", "a" * 150, "a" * 250]
_PAIR = ["the rain", "court a"]
_BERT = {"tokenizer_class": "BertTokenizer", "do_lower_case": True}


def _lines(*more, pieces=_PIECES):
  return "\n".join([*pieces, *more]) + "\n"


def _token(content, **fields):
  return {"content": content, "single_word": False, "lstrip": False,
          "rstrip": False, "normalized": False, "special": True} | fields


def _json(*added, vocabulary=(), model=(), normalizer=()):
  """A tokenizer.json of BERT's; `added` are (id, content) or whole tokens."""
  tokens = [one if isinstance(one, dict) else _token(one[1], id=one[0])
            for one in added]
  return {
      "version": "1.0", "truncation": None, "padding": None,
      "added_tokens": tokens,
      "normalizer": {"type": "BertNormalizer", "clean_text": True,
                     "handle_chinese_chars": True, "strip_accents": None,
                     "lowercase": True} | dict(normalizer),
      "pre_tokenizer": {"type": "BertPreTokenizer"}, "post_processor": None,
      "decoder": None,
      "model": {"type": "WordPiece", "unk_token": "[UNK]",
                "continuing_subword_prefix": "##",
                "max_input_chars_per_word": 100,
                "vocab": {p: i for i, p in enumerate(_PIECES)} |
                         dict(vocabulary)} | dict(model)}


def _with_lines(lines=_lines(), settings=_BERT, **others):
  """Files beside a vocab.txt; `others` by names without their suffix."""
  return {"vocab.txt": lines, "tokenizer_config.json": settings} | {
      f"{name}.json": contents for name, contents in others.items()}


def _decoder(id_, content="<ent>", **fields):
  return _with_lines(settings=_BERT | {
      "added_tokens_decoder": {str(id_): {"content": content} | fields}})


def _settings(**fields):
  return _with_lines(settings=_BERT | fields)


def _template(single, pair):
  """A tokenizer.json with marks in these places: "<s> $A </s>"."""
  parts = {"$A": {"Sequence": {"id": "A", "type_id": 0}},
           "$B": {"Sequence": {"id": "B", "type_id": 0}}} | {
               mark: {"SpecialToken": {"id": mark, "type_id": 0}}
               for mark in ("<s>", "</s>")}
  return {"tokenizer.json": _json((_NEXT, "<s>"), (_NEXT + 1, "</s>")) | {
      "normalizer": {"type": "Lowercase"},
      "post_processor": {
          "type": "TemplateProcessing",
          **{name: [parts[one] for one in template.split()]
             for name, template in (("single", single), ("pair", pair))},
          "special_tokens": {
              mark: {"id": mark, "ids": [_NEXT + i], "tokens": [mark]}
              for i, mark in enumerate(("<s>", "</s>"))}}}}


_READ = {
    "plain": _with_lines(),
    "only_lines": {"vocab.txt": _lines()},
    "byte_order_mark": {"vocab.txt": "\ufeff" + _lines()},
    "line_ends": {"vocab.txt": _lines().replace("\n", "\r\n") + "\r\n\n"},
    "two_carriage_returns": {
        "vocab.txt": _lines().replace("court\n", "court\r\r\n")},
    "no_last_line_end": {"vocab.txt": _lines().rstrip()},
    "blank_is_a_piece": _with_lines(_lines(" ")),
    "official_name": {"vocab_bert_uncased_english.txt": _lines()},
    # As transformers 5 writes it.
    "added_in_json": _with_lines(tokenizer=_json(
        (2, "[CLS]"), (_NEXT, "<ent>"))),
    "added_in_json_and_lines": _with_lines(_lines("<ent>"), tokenizer=_json(
        (_NEXT, "<ent>"))),
    "cased_in_json": _with_lines(
        settings={"tokenizer_class": "BertTokenizer"},
        tokenizer=_json(normalizer={"lowercase": False})),
    "generic_class_with_json": _with_lines(
        settings={"tokenizer_class": "PreTrainedTokenizerFast"},
        tokenizer=_json()),
    "longest_word_of_json": _with_lines(
        settings={}, tokenizer=_json(model={"max_input_chars_per_word": 300})),
    "other_class_with_json": _with_lines(
        settings={"tokenizer_class": "RoFormerTokenizer"}, tokenizer=_json()),
    "other_kind_of_json": _with_lines(
        tokenizer=_json() | {"normalizer": {"type": "Lowercase"}}),
    "added_tokens": _with_lines(added_tokens={"<ent>": _NEXT}),
    "added_tokens_and_flags": _with_lines(
        settings=_decoder(_NEXT, single_word=True)["tokenizer_config.json"],
        added_tokens={"<ent>": _NEXT}),
    "special_tokens_map": _with_lines(special_tokens_map={
        "cls_token": {"content": "[CLS]"},
        "additional_special_tokens": ["ent"]}),
    "additional": _settings(additional_special_tokens=["ent"]),
    "extra": _settings(extra_special_tokens={"entity": {"content": "ent"}}),
    "additional_and_added": _with_lines(
        settings=_BERT | {"additional_special_tokens": ["<ENT>"]},
        added_tokens={"<ENT>": _NEXT}),
    "decoder": _decoder(_NEXT, special=True),
    "decoder_of_a_piece": _decoder(_COURT, "court", special=True),
    "decoder_normalizes": _decoder(_NEXT, "Rain", special=False),
    "decoder_normalizes_by_default": _decoder(_NEXT, "<ENT>"),
    "decoder_of_a_single_word": _decoder(_NEXT, "nt", single_word=True),
    "decoder_strips": _decoder(_NEXT, "<ent>", special=True, lstrip=True,
                               rstrip=True),
    "decoder_of_controls": _settings(added_tokens_decoder={
        str(i): _token(piece) for i, piece in enumerate(_PIECES[:5])}),
    "control_behind_the_pieces": {"tokenizer.json": _json(
        (_NEXT - 1, "[MASK]"), model={"vocab": {
            p: i for i, p in enumerate(p for p in _PIECES if p != "[MASK]")}})},
    "added_capital_is_no_capital": _with_lines(settings={
        "added_tokens_decoder": {str(_NEXT): {"content": "Foo",
                                              "special": True}}}),
    "capitals": {"vocab.txt": _lines("Foo")},
    "half_a_bracket": {"vocab.txt": _lines("[A", "<B")},
    "brackets": {"vocab.txt": _lines("[A]", "<B>")},
    "nulls": _settings(
        do_lower_case=None, clean_text=None, tokenize_chinese_chars=None,
        max_input_chars_per_word=None, added_tokens_decoder=None,
        strip_accents=None, never_split=None, cls_token=None,
        additional_special_tokens=None),
    "class_null": _with_lines(settings={"tokenizer_class": None}),
    "options": _settings(
        do_lower_case=False, strip_accents=True, clean_text=False,
        tokenize_chinese_chars=False, max_input_chars_per_word=240,
        do_basic_tokenize=True, never_split=[], wordpieces_prefix="##"),
    "split_punctuation": _settings(split_punctuation=True),
    "class_in_config": {"vocab.txt": _lines(),
                        "config.json": {"tokenizer_class": "BertTokenizer"}},
    "class_in_both": _with_lines(
        config={"tokenizer_class": "RobertaTokenizer"}),
    "config_is_no_json": {"vocab.txt": _lines(), "config.json": "{"},
    "json": {"tokenizer.json": _json()},
    "json_without_normalizer": {"tokenizer.json": _json() | {
        "normalizer": None}},
    "json_keeps_accents": {
        "tokenizer.json": _json(),
        "tokenizer_config.json": _BERT | {"strip_accents": False}},
    "json_and_added_tokens": {"tokenizer.json": _json(),
                              "added_tokens.json": {"<ent>": _NEXT}},
    "json_and_decoder": {
        "tokenizer.json": _json(),
        "tokenizer_config.json":
            _decoder(_NEXT, special=True)["tokenizer_config.json"]},
    "json_of_another_role": {
        "tokenizer.json": _json((_NEXT, "<s>")),
        "tokenizer_config.json": _BERT | {"cls_token": "<s>"}},
    "json_with_a_line_end": {"tokenizer.json": _json((_NEXT, "\n"))},
    "shifted_model_beside_json": {"sentencepiece.bpe.model": "none",
                                  "tokenizer.json": _json()},
    "unsupported_model_beside_json": {
        "tokenizer.model": "none", "tokenizer.json": _json(),
        "tokenizer_config.json": {"tokenizer_class": "AlbertTokenizer"}},
    "template": _template("<s> $A </s>", "<s> $A </s> $B </s>"),
    "template_of_one_text": _template("<s> $A </s>", "$A $B"),
    "template_without_marks_between": _template("<s> $A </s>",
                                                "<s> $A $B </s>"),
    "template_without_marks": _template("$A", "$A $B"),
}
_REFUSED = {
    "contradiction": (_with_lines(tokenizer=_json(
        normalizer={"lowercase": False})), "they should say the same"),
    "longest_words_contradict": (_with_lines(
        settings=_BERT | {"max_input_chars_per_word": 200},
        tokenizer=_json()), "max_input_chars_per_word is 100, but .* is 200"),
    "other_pieces": (_with_lines(
        _lines(pieces=_PIECES[:5] + _PIECES[:4:-1]), tokenizer=_json()),
                     "vocab.txt:6: the piece .* should be the same vocabulary"),
    "fewer_pieces": (_with_lines(
        _lines(pieces=_PIECES[:-1]), tokenizer=_json()), "is missing, but"),
    "more_pieces": (_with_lines(_lines("more"), tokenizer=_json()),
                    "it is missing"),
    "json_is_none": (_with_lines(tokenizer="{"), "tokenizer.json should be"),
    "decoder_gap": (_decoder(40), "has the id 40, but should have one of"),
    "decoder_other_id": (_decoder(_COURT), 'which is that of "court"'),
    "decoder_no_id": (_decoder("x"), "should have an id for its key"),
    "decoder_no_content": (_settings(added_tokens_decoder={"17": {}}),
                           "content should be a token"),
    "decoder_line_end": (_decoder(_NEXT, "\n"), "has a line break"),
    "decoder_flag": (_decoder(_NEXT, lstrip="no"), "lstrip should be true or"),
    "decoder_list": (_settings(added_tokens_decoder=[]), "be an object"),
    "ids_contradict": (_decoder(_NEXT) | {"added_tokens.json": {
        "<ent>": _NEXT + 1}}, "they should say the same"),
    "tokens_contradict": (_decoder(_NEXT) | {"added_tokens.json": {
        "<x>": _NEXT}}, "they should say the same"),
    "flags_contradict": (_decoder(_NEXT, special=True) | {
        "tokenizer.json": _json(_token("<ent>", id=_NEXT, normalized=True))},
                         "normalized of .* should say the same"),
    "added_tokens_id": (_with_lines(added_tokens={"<ent>": "17"}),
                        "should be an integer"),
    "special_is_no_piece": (_settings(additional_special_tokens=["entx"]),
                            "is no piece of the vocabulary"),
    "special_is_empty": (_settings(additional_special_tokens=[""]),
                         "should be a list of tokens"),
    "special_is_no_list": (_settings(extra_special_tokens="ent"),
                           "should be a list, but"),
    "special_role": (_with_lines(special_tokens_map={"sep_token": "</s>"}),
                     r'sep_token is "</s>", but only "\[SEP\]" is supported'),
    "role": (_settings(cls_token="<s>"), r'cls_token is "<s>", but only'),
    "duplicate": (_with_lines(_lines("court")), 'vocab.txt:18: "court" is in '
                  "line 7 already"),
    "empty_line": (_with_lines(_lines("", "x")), "vocab.txt:18: .* is empty"),
    "no_padding": (_with_lines(_lines(pieces=_PIECES[1:])),
                   r"should have \[PAD\], but has not"),
    "other_marks": (_with_lines(_lines(pieces=[
        "[PAD]", "[UNK]", "<s>", "</s>", *_PIECES[5:]])),
                    r"should have \[CLS\], but has not"),
    "no_utf8": (_with_lines(_lines().encode() + b"\xff\n"),
                "vocab.txt:18: a piece should be UTF-8"),
    "two_vocabularies": ({"vocab_bert_uncased_english.txt": _lines(),
                          "tokenizer.model": "none"}, None),
    "no_vocabulary": ({"config.json": {}}, "should have a vocabulary"),
    "no_model": ({"sentencepiece.bpe.model": "none"}, "has other ids than"),
    "basic": (_settings(do_basic_tokenize=False), "do_basic_tokenize is false"),
    "basic_one": (_settings(do_basic_tokenize=1), "do_basic_tokenize is 1"),
    "never_split": (_settings(never_split=["the"]), "never_split is"),
    "prefix": (_settings(wordpieces_prefix="@@"), 'only "##" is supported'),
    "split_special": (_settings(split_special_tokens=True),
                      "split_special_tokens is true"),
    "mecab": (_settings(word_tokenizer_type="mecab"), "word_tokenizer_type is"),
    "subwords": (_settings(subword_tokenizer_type="character"),
                 "subword_tokenizer_type is"),
    "class": (_settings(tokenizer_class="RobertaTokenizer"),
              'tokenizer_class is "RobertaTokenizer"'),
    "half_a_class": (_settings(tokenizer_class="Bert"), "tokenizer_class is"),
    "generic_class": (_settings(tokenizer_class="PreTrainedTokenizerFast"),
                      "tokenizer_class is"),
    "class_in_config": ({"vocab.txt": _lines(), "config.json": {
        "tokenizer_class": "RobertaTokenizer"}}, "config.json: tokenizer_c"),
    "case_is_a_word": (_settings(do_lower_case="no"),
                       'do_lower_case should be true or false, but is "no"'),
    "longest_word": (_settings(max_input_chars_per_word=0),
                     "max_input_chars_per_word should be at least 1, but is 0"),
    "longest_word_is_a_word": (_settings(max_input_chars_per_word="9"),
                               "should be an integer"),
    "json_contradicts": ({
        "tokenizer.json": _json(),
        "tokenizer_config.json": _BERT | {"do_lower_case": False}},
                         "they should say the same"),
    "json_gap": ({"tokenizer.json": _json(vocabulary={"zz": 40})},
                 "should have ids of their own"),
    "json_duplicate": ({"tokenizer.json": _json(vocabulary={"zz": 5})},
                       "should have ids of their own"),
    "json_added_gap": ({"tokenizer.json": _json((40, "<ent>"))},
                       "should have ids of their own"),
    "json_added_other_id": ({"tokenizer.json": _json((_COURT, "<ent>"))},
                            "should have ids of their own"),
    "other_json_added_gap": ({"tokenizer.json": _json((40, "<ent>")) | {
        "normalizer": {"type": "Lowercase"}}}, 'id of "<ent>" should be 17'),
    "other_json_added_other_id": ({"tokenizer.json": _json(
        (_COURT, "<ent>")) | {"normalizer": {"type": "Lowercase"}}},
                                  'id of "<ent>" should be 17'),
    "json_longest_word": ({"tokenizer.json": _json(
        model={"max_input_chars_per_word": 0})}, "should be at least 1"),
    "mbart": (_template("$A </s> <s>", "$A $B </s> <s>"),
              "one special piece before a text and one behind it"),
    "nllb": (_template("<s> </s> $A", "<s> </s> $A $B"),
             "one special piece before a text and one behind it"),
    "pair_behind": (_template("<s> $A </s>", "$A $B <s> </s>"),
                    "the same around a pair"),
    "pair_alone": (_template("$A", "<s> $A $B </s>"), "the same around a pair"),
}


def _write(folder, files):
  folder.mkdir()
  for name, contents in files.items():
    if not isinstance(contents, (str, bytes)):
      contents = json.dumps(contents)
    (folder / name).write_bytes(
        contents if isinstance(contents, bytes) else contents.encode())
  return folder


def _bytes(text, pieces):
  ends = [0]
  for character in text:
    ends.append(ends[-1] + len(character.encode()))
  return [[piece.id, ends[piece.begin], ends[piece.end]] for piece in pieces]


def _of_cpp(folder, texts):
  """Pieces by C++ of texts and pairs; None if it refuses the folder."""
  done = subprocess.run(
      [_PROGRAM, folder], check=False, text=True, capture_output=True,
      input="".join(json.dumps(text) + "\n" for text in texts))
  assert done.returncode in (0, 1), done.stderr
  return ([json.loads(line) for line in done.stdout.splitlines()]
          if done.returncode == 0 else None)


@needs_program
@pytest.mark.filterwarnings("ignore:.* with capitals")
@pytest.mark.parametrize("name", _READ)
def test_pieces_are_those_of_cpp(name, tmp_path):
  folder = _write(tmp_path / "folder", _READ[name])
  tokenizer = etc_text.load_tokenizer(folder)
  found = [_bytes(text, tokenizer.encode(text)) for text in _TEXTS]
  a, b = ([piece.id for piece in tokenizer.encode(text)] for text in _PAIR)
  found.append([tokenizer.cls, *a, *tokenizer.between, *b, tokenizer.separator])
  assert found == _of_cpp(folder, [*_TEXTS, _PAIR])
  assert tokenizer.size >= 1 + max(max(found[-1]), _NEXT - 1)


@pytest.mark.parametrize("name", _REFUSED)
def test_what_cpp_refuses_is_refused(name, tmp_path):
  files, message = _REFUSED[name]
  folder = _write(tmp_path / "folder", files)
  # sentencepiece raises other errors for what is no model.
  with pytest.raises(Exception if message is None else ValueError,
                     match=message) as error:
    etc_text.load_tokenizer(folder)
  assert message is None or str(folder) in str(error.value)
  if _PROGRAM.exists():
    assert _of_cpp(folder, [*_TEXTS, _PAIR]) is None


def test_a_vocabulary_with_capitals_is_taken_for_a_cased_one(tmp_path):
  folder = _write(tmp_path / "folder", _READ["capitals"])
  with pytest.warns(UserWarning, match='has 1 piece with capitals, such as '
                    '"Foo", .* it is taken for a cased one'):
    etc_text.load_tokenizer(folder)
  (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}')
  with warnings.catch_warnings():
    warnings.simplefilter("error")
    etc_text.load_tokenizer(folder)


def test_vocabularies_that_realetc_alone_reads_are_refused(tmp_path):
  # An id before those of the model's pieces, which tokenizers cannot give.
  pieces = ["<ent>", *_PIECES]
  folder = _write(tmp_path / "early", {"tokenizer.json": _json(
      (0, "<ent>"), model={"vocab": {
          piece: i for i, piece in enumerate(pieces) if i}})})
  with pytest.raises(ValueError, match='the id of "<ent>" should be 17, as '
                     "tokenizers has it, but is 0"):
    etc_text.load_tokenizer(folder)
  folder = _write(tmp_path / "bytes", {"vocab.json": {}, "merges.txt": ""})
  with pytest.raises(ValueError, match="`realetc import` makes a "
                     "tokenizer.json of vocab.json"):
    etc_text.load_tokenizer(folder)
  folder = _write(tmp_path / "etc_large_split_punctuation",
                  {"vocab_gpt_for_etc.model": "none"})
  with pytest.raises(ValueError, match="asks for split_punctuation"):
    etc_text.load_tokenizer(folder)
