"""EtcModel against the C++ encoder, and plain attention against the kernels.

Checkpoints are written by Python and read by tests/tasks/encode_by_file.cc, so
names and files go both ways. Outputs of C++ are those of another LibTorch and
its own products: equal to 1e-5 of their size. Pieces and sentences are equal.
The program is found in ETC_ENCODE_BY_FILE or in build/release/bin (cmake --build
--preset release --target encode_by_file).
"""
import copy
import json
import math
import os
import pathlib
import pickle
import random
import shutil
import subprocess
import threading

import pytest
import torch

import realetc
from realetc import etc_model

pytest.importorskip("tokenizers")
pytest.importorskip("regex")
safetensors = pytest.importorskip("safetensors.torch")

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROGRAM = pathlib.Path(os.environ.get(
    "ETC_ENCODE_BY_FILE", _ROOT / "build/release/bin/encode_by_file"))
needs_program = pytest.mark.skipif(
    not _PROGRAM.exists(),
    reason=f"the C++ library's {_PROGRAM} is not built: cmake --build --preset "
    "release --target encode_by_file")

_BERT = {"has_long_tokens": False, "share_att_output_projection": True,
         "relative_pos_max_distance": 0, "relative_vocab_size": None,
         "max_absolute_position_embeddings": 128}
_CONFIGS = [
    {"residual_attention": mode} for mode in etc_model.RESIDUAL_MODES] + [
    {"residual_attention": "gate", "residual_gate_init": 0.5,
     "use_hard_g2l_mask": True, "use_hard_l2g_mask": True,
     "share_qkv_projections": False, "sublayer": "pre_norm",
     "final_layer_norm": True},
    {"residual_attention": "decay", "share_qkv_projections": False,
     "share_kv_projections": True, "sublayer": "admin", "hidden_act": "relu",
     "share_feed_forward_params": False, "embedding_size": 8,
     "att_size_per_head": 5},
    {"residual_attention": "mean", "relative_pos_max_distance": 0,
     "relative_vocab_size": None, "sublayer": "rezero",
     "max_absolute_position_embeddings": 300, "hidden_act": "gelu_erf"},
    {"residual_attention": "sum", "relative_pos_max_distance": 0,
     "relative_vocab_size": 8, "hidden_act": "tanh"},
    {"residual_attention": "sum", **_BERT},
    {"residual_attention": "gate", **_BERT},
]
_PUNCTUATION = "!\"#$%&'()*+,-./:;<=>?@[]^_`{|}~"
_LETTERS = "abcdefghijklmnopqrstuvwxyz0123456789äöüéßñαβγδοσς中文。！“”«»"
VOCABULARY = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *_LETTERS,
              *(f"##{c}" for c in _LETTERS), *_PUNCTUATION, "the", "court",
              "##ing", "rain", "judge"]
TEXTS = [
    "The court ruled. Judge Johann S. Bach (of St. Paul) disagreed! Why?",
    "It rained at 3 p.m. The judge, however, said \"no.\" Then\nhe left.[1] He "
    "came back.  See fig. 3 and Vol. IX. U.S. Army. e.g. this. \u201cYes.\u201d So.",
    "One",
    "\u4e2d\u6587\u3002\u6587\u4e2d\uff01Stra\u00dfe n\u00e4her. " * 20,
]


def _config(**fields):
  base = {"vocab_size": len(VOCABULARY), "segment_vocab_size": 3,
          "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2,
          "local_radius": 3, "relative_pos_max_distance": 4,
          "relative_vocab_size": 14, "intermediate_size": 24,
          "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0,
          "initializer_range": 0.3}
  return realetc.EtcConfig(**(base | fields))


def _model(config, attention_class=None):
  torch.manual_seed(0)
  model = realetc.EtcModel(config, attention_class)
  with torch.no_grad():
    for parameter in model.parameters():  # no two are the same
      parameter.add_(torch.randn(parameter.shape) * 0.1)
  return model


def _write(model, folder):
  model.save_pretrained(folder)
  (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n",
                                    encoding="utf-8")
  (folder / "tokenizer_config.json").write_text('{"do_lower_case": true}\n')
  return folder


def _run_cpp(folders, texts, tmp_path):
  """What C++ makes of the texts by each checkpoint, in one start."""
  lines = tmp_path / "texts.jsonl"
  lines.write_text("".join(json.dumps(text) + "\n" for text in texts))
  outs = [tmp_path / f"out-{i}.safetensors" for i in range(len(folders))]
  subprocess.run([_PROGRAM], check=True, text=True, input="".join(
      f"{folder} {lines} {out}\n" for folder, out in zip(folders, outs)))
  return [safetensors.load_file(out) for out in outs]


def _bytes(text, pieces):
  """[pieces, 3]: ids, and bytes in place of characters."""
  ends = [0]
  for character in text:
    ends.append(ends[-1] + len(character.encode()))
  return [[piece.id, ends[piece.begin], ends[piece.end]] for piece in pieces]


def _assert_near(actual, expected):
  torch.testing.assert_close(actual, expected, rtol=1e-5,
                             atol=1e-5 * max(1.0, expected.abs().max().item()))


@pytest.fixture(scope="module")
def of_cpp(tmp_path_factory):
  """A checkpoint of each of _CONFIGS, and what C++ makes of TEXTS by it."""
  parent = tmp_path_factory.mktemp("of_cpp")
  folders = [_write(_model(_config(**fields)), parent / f"checkpoint-{i}")
             for i, fields in enumerate(_CONFIGS)]
  return list(zip(folders, _run_cpp(folders, TEXTS, parent)))


@needs_program
@pytest.mark.parametrize("plain", (False, True), ids=("kernels", "plain"))
@pytest.mark.parametrize("number", range(len(_CONFIGS)), ids=lambda n: "_".join(
    map(str, _CONFIGS[n].values())))
def test_outputs_are_those_of_cpp(number, plain, of_cpp):
  config = _config(**_CONFIGS[number])
  folder, found = of_cpp[number]
  model = realetc.EtcModel.from_pretrained(
      folder, attention_class=realetc.PlainGlobalLocalAttention if plain
      else None)
  output, inputs = model.encode(TEXTS)
  for b, (text, pieces) in enumerate(zip(TEXTS, inputs.pieces)):
    assert _bytes(text, pieces) == found[f"pieces.{b}"].tolist()
    tokens = len(pieces) + 2
    if config.has_long_tokens:
      assert (inputs["sentence_ids"][b, 1:tokens - 1].tolist() ==
              found[f"sentences.{b}"].tolist())
      _assert_near(output.long_output[b, :tokens],
                   found["long_output"][b, :tokens])
      tokens = 1 + len(inputs.sentences[b])
    _assert_near(output.global_output[b, :tokens],
                 found["global_output"][b, :tokens])


@needs_program
@pytest.mark.parametrize("number", range(len(_CONFIGS)), ids=lambda n: "_".join(
    map(str, _CONFIGS[n].values())))
def test_vectors_are_those_of_cpp(number, of_cpp):
  folder, found = of_cpp[number]
  model = realetc.EtcModel.from_pretrained(folder)
  vectors, means = model.embed(TEXTS), model.embed(TEXTS, pooling="mean")
  for b, (text, one, mean) in enumerate(zip(TEXTS, vectors, means)):
    _assert_near(one.document, found[f"document.{b}"])
    _assert_near(one.sentences, found[f"parts.{b}"])
    _assert_near(mean.document, found[f"mean_document.{b}"])
    _assert_near(mean.sentences, found[f"mean_parts.{b}"])
    assert mean[2:] == one[2:]
    assert ([one.cut_pieces, one.dropped_sentences] ==
            found[f"unread.{b}"].tolist())
    assert ([[len(text[:end].encode()) for end in span]
             for span in one.spans] == found[f"ranges.{b}"].tolist())
  if not model.config.has_long_tokens:
    assert len(vectors[3].spans) == 3  # chunks of 126 pieces


@needs_program
@pytest.mark.parametrize("fields", ({}, _BERT), ids=("etc", "bert"))
def test_vectors_of_several_texts_are_those_of_cpp(fields, tmp_path):
  # A title does not end as a sentence does.
  documents = [["The court", "it rained. Why?"], ["One", "", "judge"]]
  folder = _write(_model(_config(**fields)), tmp_path / "checkpoint")
  [found] = _run_cpp([folder], documents, tmp_path)
  model = realetc.EtcModel.from_pretrained(folder)
  for b, one in enumerate(model.embed(documents)):
    _assert_near(one.document, found[f"document.{b}"])
    _assert_near(one.sentences, found[f"parts.{b}"])
  # Bytes of the texts joined by line feeds.
  assert found["ranges.0"].tolist() == (
      [[0, 25]] if fields else [[0, 9], [10, 20], [21, 25]])


@needs_program
def test_sentences_and_pieces_of_odd_texts_are_those_of_cpp(tmp_path):
  generator = random.Random(1)
  parts = ["The ", "a", "U.", "S.", "mr. ", "Fig. ", "3", ".", "!", "? ", "...",
           " ", "\n", "\u2028", "\u00a0", "\"", "'", "(", ")", "[", "]", ",",
           ";", ":", "\u201c", "\u201d", "\u00e4", "e\u0301", "\u200d", "\u00ad",
           "\u4e2d", "\u3002", "\uff0e", "\u2026", "\U0001f600", "\x1c", "\x0b",
           "He ", "he ", "Ph.D. ", "p.m. ", "\u1e9e", "\u0130", "-", "\u2014 ",
           # Of private use, final sigmas, a late ideograph.
           "\uf0b7", "\u039f\u0394\u039f\u03a3", "\u03a3", "\u0345",
           "\U0002b820"]
  texts = ["x " + "".join(generator.choices(parts, k=generator.randint(1, 60)))
           for _ in range(600)]
  folder = _write(_model(_config(num_hidden_layers=1)), tmp_path / "checkpoint")
  [found] = _run_cpp([folder], texts, tmp_path)
  inputs = realetc.EtcModel.from_pretrained(folder).inputs(texts)
  for b, (text, pieces) in enumerate(zip(texts, inputs.pieces)):
    assert ([one[0] for one in _bytes(text, pieces)] ==
            found[f"pieces.{b}"][:, 0].tolist()), repr(text)
    assert (inputs["sentence_ids"][b, 1:len(pieces) + 1].tolist() ==
            found[f"sentences.{b}"].tolist()), repr(text)


def test_inputs_are_made_anew_of_their_tensors(tmp_path):
  folder = _write(_model(_config(num_hidden_layers=1)), tmp_path / "checkpoint")
  made = realetc.EtcModel.from_pretrained(folder).inputs(TEXTS)
  again = type(made)(made)  # as transformers' Trainer and torch's scatter do
  assert again.keys() == made.keys()
  assert all(again[name] is tensor for name, tensor in made.items())


def test_any_iterable_of_texts_is_read(tmp_path):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config()), tmp_path / "checkpoint"))
  expected = model.inputs(TEXTS)["input_ids"]
  for texts in (tuple(TEXTS), iter(TEXTS), dict.fromkeys(TEXTS)):
    assert torch.equal(model.inputs(texts)["input_ids"], expected)
  assert len(model.embed(iter(TEXTS), batch_size=3)) == len(TEXTS)


def test_texts_are_cut_at_the_lengths_of_training(tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  settings = {"data": {"max_long_length": 20, "max_global_length": 3}}
  model = realetc.EtcModel.from_pretrained(folder)
  (folder / "run_config.json").write_text(json.dumps(settings))
  inputs = model.inputs(["A. B. C. " * 10])
  assert inputs["input_ids"].shape == (1, 20)
  # "A. B. C." is a sentence each: three of ten fit, two have a token.
  assert inputs.cut_pieces == [60 - 18] and inputs.dropped_sentences == [1]
  assert inputs["sentence_ids"].tolist() == [
      [-1, *[0] * 6, *[1] * 6, *[-1] * 7]]
  # A sentence that is cut in two ends with its last piece.
  assert model.inputs(["one.two. " * 10]).sentences == [[(0, 20)]]


@pytest.mark.parametrize("name, contents, message", (
    ("text_options.json", {"max_long_length": "64"},
     'text_options.json: max_long_length should be an integer, but is "64"'),
    ("text_options.json", {"max_long_length": 64.5}, "an integer, but is 64.5"),
    ("text_options.json", {"max_global_length": None}, "integer, but is null"),
    ("text_options.json", {"sentences": 3}, "sentences should be a string"),
    ("run_config.json", {"data": []}, "run_config.json: data should be an obj"),
    ("run_config.json", {"data": {"max_long_length": True}},
     "run_config.json: data: max_long_length should be an integer"),
    ("config.json", {"model_type": "realetc", "max_long_length": "64"},
     "config.json: max_long_length should be an integer"),
))
def test_mistakes_in_lengths_are_named(name, contents, message, tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  model = realetc.EtcModel.from_pretrained(folder)
  (folder / name).write_text(json.dumps(contents))
  with pytest.raises(ValueError, match=message):
    model.inputs(["One"])


@pytest.mark.parametrize("fields, options, message", (
    ({"vocab_size": 300}, {}, f"has {len(VOCABULARY)} pieces, but the token "
     "table 300 rows; they should be equal, or the table rounded up"),
    ({"segment_vocab_size": 2}, {}, "segment_vocab_size should be at least 3"),
    ({"max_absolute_position_embeddings": 64}, {"max_global_length": 99},
     "max_long_length should be at most 64, .*, but is 4096"),
    ({"max_absolute_position_embeddings": 64},
     {"max_global_length": 99, "max_long_length": 64},
     "max_global_length should be at most 64, .*, but is 99"),
    (_BERT, {"max_global_length": 129}, "max_global_length should be at most"),
), ids=("vocabulary", "types", "longs", "globals", "bert"))
def test_tables_without_rows_for_texts_are_refused(fields, options, message,
                                                   tmp_path):
  folder = _write(_model(_config(**fields)), tmp_path / "checkpoint")
  if options:
    (folder / "text_options.json").write_text(json.dumps(options))
  model = realetc.EtcModel.from_pretrained(folder)
  for _ in range(2):  # what is refused is not kept
    for call in (model.inputs, model.embed):
      with pytest.raises(ValueError, match=message):
        call(["One"])


def test_lengths_and_sentences_survive_saving(tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  settings = {"data": {"max_long_length": 20, "max_global_length": 3,
                       "sentences": "tables"}}
  (folder / "run_config.json").write_text(json.dumps(settings))
  model = realetc.EtcModel.from_pretrained(folder)
  model.save_pretrained(tmp_path / "saved")
  again = realetc.EtcModel.from_pretrained(tmp_path / "saved")
  assert not (tmp_path / "saved/run_config.json").exists()
  assert again.text_options() == model.text_options()
  assert again.text_options().max_long_length == 20
  assert again.text_options().sentences == "tables"


def test_lengths_and_sentences_of_an_export_are_read(tmp_path):
  folder = _write(_model(_config(max_absolute_position_embeddings=64)),
                  tmp_path / "checkpoint")
  model = realetc.EtcModel.from_pretrained(folder)
  path = folder / "config.json"
  path.write_text(json.dumps({"model_type": "bert", "max_long_length": 20}))
  assert model.text_options().max_long_length == 64
  path.write_text(json.dumps({"model_type": "realetc", "max_long_length": 20,
                              "sentences": "tables"}))
  found = model.text_options()
  assert (found.max_long_length, found.sentences) == (20, "tables")
  # What transformers leaves out is RealEtcConfig's default.
  assert found.max_global_length == 512


def test_a_model_is_saved_into_its_own_folder(tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  (tmp_path / "link").symlink_to(folder)
  model = realetc.EtcModel.from_pretrained(folder)
  expected = model.inputs(TEXTS)["input_ids"]
  model.save_pretrained(folder)
  model.save_pretrained(tmp_path / "link")
  again = realetc.EtcModel.from_pretrained(folder)
  assert torch.equal(again.inputs(TEXTS)["input_ids"], expected)


def test_a_folder_named_from_here_is_found_from_elsewhere(tmp_path,
                                                          monkeypatch):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  (folder / "run_config.json").write_text('{"data": {"max_long_length": 20}}')
  monkeypatch.chdir(tmp_path)
  model = realetc.EtcModel.from_pretrained("checkpoint")
  (tmp_path / "elsewhere").mkdir()
  monkeypatch.chdir(tmp_path / "elsewhere")
  assert model.inputs(["A. B. C. " * 10])["input_ids"].shape == (1, 20)
  model.save_pretrained("saved")
  assert (tmp_path / "elsewhere/saved/vocab.txt").exists()


def test_no_vocabulary_of_another_model_stays(tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  (folder / "tokenizer_config.json").unlink()
  saved = tmp_path / "saved"
  _write(_model(_config()), saved)
  (saved / "vocab.txt").write_text("[UNK]\n")
  for name in ("added_tokens.json", "merges.txt"):
    (saved / name).write_text("{}")
  (folder / "special_tokens_map.json").write_text('{"sep_token": "[SEP]"}')
  realetc.EtcModel.from_pretrained(folder).save_pretrained(saved)
  assert (saved / "vocab.txt").read_text().split("\n")[:-1] == VOCABULARY
  assert (saved / "special_tokens_map.json").exists()
  for name in ("tokenizer_config.json", "added_tokens.json", "merges.txt"):
    assert not (saved / name).exists()


@pytest.mark.parametrize(
    "name", ("model.safetensors", "etc_config.json", "config.json"))
def test_a_checkpoint_survives_a_save_that_fails(name, tmp_path, monkeypatch):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  # As an export for transformers has it, beside etc_config.json.
  (folder / "config.json").write_text(json.dumps(
      {"model_type": "realetc"} | json.loads(_config().to_json())))
  before = {path.name: path.read_bytes() for path in folder.iterdir()}
  model = realetc.EtcModel.from_pretrained(folder)
  model.set_residual_attention("sum")
  with torch.no_grad():
    model.embedding.token.weight.add_(1)

  write_text = pathlib.Path.write_text

  def fail(*arguments, **options):
    path = next(one for one in arguments if isinstance(one, pathlib.Path))
    if path.name != f".{name}.partial":
      return write_text(*arguments, **options)
    path.write_bytes(b"0123456789")
    raise OSError("no space left")

  if name == "model.safetensors":
    monkeypatch.setattr(safetensors, "save_file", fail)
  else:
    monkeypatch.setattr(pathlib.Path, "write_text", fail)
  with pytest.raises(OSError, match="no space left"):
    model.save_pretrained(folder)
  monkeypatch.undo()
  assert {path.name: path.read_bytes() for path in folder.iterdir()} == before
  model.save_pretrained(folder)
  assert realetc.EtcModel.from_pretrained(
      folder).config.residual_attention == "sum"


def test_saving_says_that_the_folder_of_the_vocabulary_is_gone(tmp_path):
  folder, moved = tmp_path / "checkpoint", tmp_path / "moved"
  _write(_model(_config()), folder)
  (folder / "text_options.json").write_text('{"max_long_length": 20}')
  model = realetc.EtcModel.from_pretrained(folder)
  model.inputs(TEXTS)  # has the tokenizer now
  folder.rename(moved)
  before = {path.name: path.read_bytes() for path in moved.iterdir()}
  for directory in (moved, tmp_path / "new"):
    with pytest.raises(FileNotFoundError, match="checkpoint, which .* is gone"):
      model.save_pretrained(directory)
  with pytest.raises(FileNotFoundError, match="is gone"):
    model.inputs(TEXTS)
  assert not (tmp_path / "new").exists()
  assert {path.name: path.read_bytes() for path in moved.iterdir()} == before
  model.directory = moved
  model.save_pretrained(tmp_path / "new")
  assert realetc.EtcModel.from_pretrained(
      tmp_path / "new").text_options().max_long_length == 20
  shutil.rmtree(moved)
  model.directory = None
  model.save_pretrained(tmp_path / "weights")
  assert not (tmp_path / "weights/text_options.json").exists()


def _cannot_open(path, framework):
  """The answer of safetensors, which has one for every error of open()."""
  del framework
  raise FileNotFoundError(f"No such file or directory: {path}")


def test_nothing_of_another_model_is_lost_by_saving(tmp_path, monkeypatch):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  model = realetc.EtcModel.from_pretrained(folder)
  weights = folder / "model.safetensors"
  tensors = safetensors.load_file(weights)
  safetensors.save_file(tensors | {"head.classifier.weight": torch.ones(2)},
                        weights)
  before = weights.read_bytes()
  with pytest.raises(ValueError, match="has head.classifier.weight, which is"):
    realetc.EtcModel.from_pretrained(folder).save_pretrained(folder)
  assert weights.read_bytes() == before
  # Names without a prefix are an encoder's.
  safetensors.save_file({name.removeprefix("encoder."): tensor
                         for name, tensor in tensors.items()}, weights)
  model.save_pretrained(folder)
  # Weights that safetensors cannot open may be another model's.
  with monkeypatch.context() as patch, pytest.raises(FileNotFoundError):
    patch.setattr("safetensors.safe_open", _cannot_open)
    model.save_pretrained(folder)
  weights.write_bytes(before[:100])  # of a save that was interrupted
  model.save_pretrained(folder)
  assert safetensors.load_file(weights).keys() == tensors.keys()
  (folder / "run_config.json").write_text("{}")
  with pytest.raises(ValueError, match="a checkpoint of a run"):
    model.save_pretrained(folder)


@pytest.mark.parametrize("name", etc_model.ACTIVATIONS)
def test_a_model_can_be_pickled(name):
  model = _model(_config(hidden_act=name, num_hidden_layers=1)).eval()
  again = pickle.loads(pickle.dumps(model))
  ids = torch.arange(6).view(1, 6)
  assert torch.equal(again(ids, ids[:, :2]).long_output,
                     model(ids, ids[:, :2]).long_output)


def test_encoding_keeps_the_training_flag_of_each_module(tmp_path):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config()), tmp_path / "checkpoint")).train()
  model.layers[0].eval()
  before = [module.training for module in model.modules()]
  model.embed(TEXTS[:1])
  assert [module.training for module in model.modules()] == before


def test_threads_that_encode_keep_the_training_flags(tmp_path, monkeypatch):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config()), tmp_path / "checkpoint")).train()
  both_run = threading.Barrier(2)
  first_is_back = threading.Event()
  flags = []
  run = model.run_texts

  def meet(inputs):
    both_run.wait(60)
    if threading.current_thread().name == "second":
      first_is_back.wait(60)
      flags.append(any(one.training for one in model.modules()))
    return run(inputs)

  monkeypatch.setattr(model, "run_texts", meet)
  first, second = (threading.Thread(target=model.embed, args=(TEXTS[:1],),
                                    name=name) for name in ("first", "second"))
  first.start()
  second.start()
  first.join()
  first_is_back.set()
  second.join()
  assert flags == [False]
  assert all(module.training for module in model.modules())


def test_a_copy_made_while_a_model_encodes_has_flags_of_its_own(
    tmp_path, monkeypatch):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config()), tmp_path / "checkpoint")).train()
  copies, flags = [], []
  run = realetc.EtcModel.run_texts

  def copy_and_run(self, inputs):
    flags.append(self.training)
    if self is model:
      copies.extend((copy.deepcopy(self), pickle.loads(pickle.dumps(self))))
    return run(self, inputs)

  monkeypatch.setattr(realetc.EtcModel, "run_texts", copy_and_run)
  model.embed(TEXTS[:1])
  for one in copies:
    one.train().embed(TEXTS[:1])
    assert one.training
  assert flags == [False] * 3


def _both(fields):
  """The same model with kernels and in plain PyTorch."""
  kernels = _model(_config(**fields))
  plain = realetc.EtcModel(_config(**fields), realetc.PlainGlobalLocalAttention)
  plain.load_state_dict(kernels.state_dict())
  return kernels, plain


@pytest.mark.parametrize("fields", _CONFIGS, ids=lambda f: "_".join(
    map(str, f.values())))
def test_plain_gradients_are_those_of_kernels(fields):
  has_long = fields.get("has_long_tokens", True)
  ids = torch.randint(0, 50, (2, 41), generator=torch.Generator().manual_seed(1))
  mask = (torch.arange(41) < torch.tensor([[41], [23]])).long()
  sentences = (torch.arange(41) // 6).expand(2, -1) - 1
  tokens = etc_model.tokens_of_texts(has_long, ids, mask, None,
                                     sentences if has_long else None)
  found = []
  for model in _both(fields):
    longs, globals_, _ = model.run(*tokens)
    if has_long:
      longs = longs * mask.unsqueeze(-1)
    else:
      globals_ = globals_ * mask.unsqueeze(-1)
    (longs.square().sum() + globals_.sin().sum()).backward()
    found.append([longs, globals_, *(p.grad for p in model.parameters())])
  largest = max(t.abs().max().item() for t in found[0][2:] if t is not None)
  for kernel, plain in zip(*found):
    if kernel is None or plain is None:
      assert plain is None or plain.abs().max() == 0
      assert kernel is None or kernel.abs().max() == 0
    else:
      torch.testing.assert_close(kernel, plain, rtol=1e-4, atol=1e-6 * largest)


@pytest.mark.parametrize("plain", (False, True), ids=("kernels", "plain"))
def test_training_learns_gates_through_carried_scores(plain):
  model = _both({"residual_attention": "gate", "residual_gate_init": 0.0})[plain]
  model.train()
  head = torch.nn.Linear(16, 2)
  parameters = [*model.parameters(), *head.parameters()]
  optimizer = torch.optim.Adam(parameters, 2e-3)
  ids = torch.randint(5, 50, (8, 30), generator=torch.Generator().manual_seed(2))
  labels = torch.arange(8) % 2
  before = {name: p.detach().clone() for name, p in model.named_parameters()
            if name.endswith("_gate")}
  assert len(before) == 8
  losses = []
  for _ in range(12):
    output = model.run(*etc_model.tokens_of_texts(
        True, ids, sentence_ids=torch.arange(30).expand(8, -1) // 10))
    texts = output.global_output[:, 0] + output.long_output.mean(1)
    loss = torch.nn.functional.cross_entropy(head(texts), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.item())
  assert losses[-1] < 0.8 * losses[0]
  after = dict(model.named_parameters())
  assert all(not torch.equal(after[name], old) for name, old in before.items())


def test_embed_gives_rows_of_the_global_output(tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  model = realetc.EtcModel.from_pretrained(folder).train()
  vectors = model.embed(TEXTS)
  assert model.training
  output, inputs = model.encode(TEXTS)
  for b, one in enumerate(vectors):
    assert torch.equal(one.document, output.global_output[b, 0])
    assert one.sentences.shape == (len(one.spans), 16)
    # Nothing else of the batch is kept with them.
    for vector in (one.document, one.sentences):
      assert vector.untyped_storage().nbytes() == 4 * vector.numel()
    assert one.spans == inputs.sentences[b]
  assert [TEXTS[0][slice(*span)] for span in vectors[0].spans] == [
      "The court ruled.", "Judge Johann S. Bach (of St. Paul) disagreed!",
      "Why?"]
  # A text by itself is what it is in a batch.
  alone = model.embed(TEXTS[2:3])[0]
  torch.testing.assert_close(alone.document, vectors[2].document)


def test_embed_says_how_much_of_a_text_is_cut(tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  (folder / "run_config.json").write_text(json.dumps(
      {"data": {"max_long_length": 20, "max_global_length": 3}}))
  model = realetc.EtcModel.from_pretrained(folder)
  cut, whole = model.embed(["A. B. C. " * 10, "One"])
  assert (cut.cut_pieces, cut.dropped_sentences) == (60 - 18, 1)
  assert len(cut.sentences) == len(cut.spans) == 2
  assert (whole.cut_pieces, whole.dropped_sentences) == (0, 0)


def test_embed_reads_all_of_a_text_by_bert(tmp_path, monkeypatch):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config(**_BERT)), tmp_path / "checkpoint")).train()
  # 300 pieces in chunks of 128 positions less [CLS] and [SEP].
  text = ("the court " * 150).strip()
  spans = [(0, 629), (630, 1259), (1260, 1499)]
  sizes = []
  run = model.run_texts
  with monkeypatch.context() as patch:
    patch.setattr(model, "run_texts", lambda inputs: (
        sizes.append(len(inputs["input_ids"])), run(inputs))[1])
    long, short = model.embed([text, "One"], batch_size=3)
    assert sizes == [3, 1]
    assert model.embed([text], batch_size=1)[0].spans == spans
    assert sizes == [3, 1, 1, 1, 1]
  assert model.training
  assert long.spans == spans and short.spans == [(0, 3)]
  expected = torch.stack([
      model.encode([text[slice(*span)]])[0].global_output[0, 0]
      for span in spans])
  _assert_near(long.sentences, expected)
  _assert_near(long.document, expected.mean(0))
  _assert_near(short.document, model.encode(["One"])[0].global_output[0, 0])
  assert (long.cut_pieces, long.dropped_sentences) == (0, 0)
  assert model.embed([]) == []
  with pytest.raises(ValueError, match="text 1 should have at least one piece"):
    model.embed(["One", " "])
  with pytest.raises(ValueError, match="list of strings"):
    model.embed("One")


@pytest.mark.parametrize("fields", ({}, _BERT), ids=("etc", "bert"))
def test_embed_pools_as_sentence_transformers_says(fields, tmp_path):
  folder = _write(_model(_config(**fields)), tmp_path / "checkpoint")
  model = realetc.EtcModel.from_pretrained(folder)
  output, inputs = model.encode(["The judge, the court.", "One"])
  states = output.global_output if fields else output.long_output
  expected = [states[b, :len(pieces) + 2].mean(0)  # with [CLS] and [SEP]
              for b, pieces in enumerate(inputs.pieces)]
  first = model.embed(["One"])[0].document
  _assert_near(first, output.global_output[1, 0])
  pooling = folder / "1_Pooling/config.json"
  pooling.parent.mkdir()
  for asked, vector in (
      ({"pooling_mode_cls_token": False, "pooling_mode_mean_tokens": True},
       expected[1]), ({"pooling_mode": "mean"}, expected[1]),
      ({"pooling_mode_cls_token": True, "pooling_mode_max_tokens": False},
       first), ({"pooling_mode": ["cls"]}, first)):
    pooling.write_text(json.dumps({"word_embedding_dimension": 16} | asked))
    again = realetc.EtcModel.from_pretrained(folder)
    again.save_pretrained(tmp_path / "saved")
    again = realetc.EtcModel.from_pretrained(tmp_path / "saved")
    _assert_near(again.embed(["The judge, the court.", "One"])[1].document,
                 vector)
    _assert_near(again.embed(["One"], pooling="first")[0].document, first)
  for asked in ({"pooling_mode_max_tokens": True}, {"pooling_mode": 3},
                {"pooling_mode": ["cls", "mean"]}):
    pooling.write_text(json.dumps(asked))
    again = realetc.EtcModel.from_pretrained(folder)
    with pytest.raises(ValueError, match='should ask for "cls" or "mean", but'):
      again.embed(["One"])
    _assert_near(again.embed(["One"], pooling="mean")[0].document, expected[1])
  with pytest.raises(ValueError, match="pooling should be one of first, mean"):
    model.embed(["One"], pooling="max")


def test_means_are_of_the_tokens_of_sentences_and_of_all_chunks(tmp_path):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config()), tmp_path / "etc"))
  output, inputs = model.encode(TEXTS[:2])
  found = model.embed(TEXTS[:2], pooling="mean")
  for states, owners, one in zip(output.long_output, inputs["sentence_ids"],
                                 found):
    _assert_near(one.sentences, torch.stack([
        states[owners == s].mean(0) for s in range(len(one.spans))]))
  # 300 pieces in chunks of 128 positions less [CLS] and [SEP].
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config(**_BERT)), tmp_path / "bert"))
  text = ("the court " * 150).strip()
  [found] = model.embed([text], pooling="mean")
  states = [model.encode([text[slice(*span)]])[0].global_output[0]
            for span in found.spans]
  assert [len(one) for one in states] == [128, 128, 50]
  _assert_near(found.sentences, torch.stack([one.mean(0) for one in states]))
  _assert_near(found.document, torch.cat(states).mean(0))


def test_embed_takes_batches(tmp_path, monkeypatch):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config()), tmp_path / "checkpoint"))
  texts = [*TEXTS, *TEXTS][:5]
  whole = model.embed(texts, batch_size=5)
  sizes = []
  run = model.run_texts
  monkeypatch.setattr(model, "run_texts", lambda inputs: (
      sizes.append(len(inputs["input_ids"])), run(inputs))[1])
  for one, expected in zip(model.embed(texts, batch_size=2), whole):
    torch.testing.assert_close(one.document, expected.document)
    torch.testing.assert_close(one.sentences, expected.sentences)
    assert one.spans == expected.spans
  assert sizes == [2, 2, 1]
  # A text that is refused has its own number, and costs no pass.
  with pytest.raises(ValueError, match="text 3 should have at least one piece"):
    model.embed(["One", "two", "three", " "], batch_size=2)
  assert sizes == [2, 2, 1]
  with pytest.raises(ValueError, match="batch_size should be at least 1"):
    model.embed(texts, batch_size=0)


def test_a_splitter_of_ones_own(tmp_path):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config()), tmp_path / "checkpoint"))
  spans = model.embed(["one two three"], lambda text: [(0, 7), (8, 13)])[0].spans
  assert spans == [(0, 7), (8, 13)]
  for split in (str.split, lambda _: ["ab"], lambda _: [(0, 14)],
                lambda _: [(0, 7), (5, 13)], lambda _: [(-3, 7)],
                lambda _: [(7, 0)], lambda _: [0, 7]):
    with pytest.raises(ValueError, match="should give the .begin, end. of each "
                       "sentence.* in the 13 characters of text 0"):
      model.inputs(["one two three"], split_sentences=split)
  (tmp_path / "checkpoint/run_config.json").write_text(
      '{"data": {"sentences": "tables"}}')
  with pytest.raises(ValueError, match="sentences of tables"):
    model.inputs(["one two three"])


def test_weights_survive_saving_and_another_mode(tmp_path):
  model = _model(_config(residual_attention="gate"))
  folder = _write(model, tmp_path / "one")
  loaded = realetc.EtcModel.from_pretrained(folder)
  loaded.save_pretrained(tmp_path / "two")
  again = realetc.EtcModel.from_pretrained(tmp_path / "two",
                                           residual_attention="off")
  assert again.config.residual_attention == "off"
  state = again.state_dict()
  assert not any(name.endswith("_gate") for name in state)
  assert all(torch.equal(model.state_dict()[name], value)
             for name, value in state.items())
  assert (tmp_path / "two/vocab.txt").exists()


def test_weights_without_gates_get_those_that_are_asked_for(tmp_path):
  _model(_config(residual_attention="sum")).save_pretrained(tmp_path)

  def load(**fields):
    return realetc.EtcModel.from_pretrained(tmp_path, **fields)

  ids = torch.arange(6).view(1, 6)
  for initial, mode in ((0.0, "off"), (1.0, "sum")):
    with pytest.warns(UserWarning, match=f"have no gates: all begin with "
                      f"{initial:g} .*, which computes what {mode} does"):
      gated = load(residual_attention="gate", residual_gate_init=initial)
    assert gated.config.residual_gate_init == initial
    assert torch.equal(gated(ids, ids[:, :2]).long_output,
                       load(residual_attention=mode)(
                           ids, ids[:, :2]).long_output)
  decayed = load(residual_attention="decay", residual_decay=0.8)
  assert decayed.layers[1].attention.decay == 0.8
  with pytest.raises(TypeError, match="hidden_size"):
    load(hidden_size=16)


@pytest.mark.parametrize("all_of_them", (False, True))
def test_gates_that_a_checkpoint_lost_are_no_new_gates(all_of_them, tmp_path):
  _model(_config(residual_attention="gate")).save_pretrained(tmp_path)
  path = tmp_path / "model.safetensors"
  tensors = safetensors.load_file(path)
  gates = [name for name in tensors if name.endswith("_gate")]
  for name in gates if all_of_them else gates[:1]:
    del tensors[name]
  safetensors.save_file(tensors, path)
  with pytest.raises(ValueError, match="lacks layers.1.attention.g2g_gate"):
    realetc.EtcModel.from_pretrained(tmp_path)
  if not all_of_them:
    _break(tmp_path, residual_attention="sum")
    with pytest.raises(ValueError, match="lacks layers.1.attention.g2g_gate"):
      realetc.EtcModel.from_pretrained(tmp_path, residual_attention="gate")


@pytest.mark.parametrize("plain", (False, True), ids=("kernels", "plain"))
def test_a_mode_is_changed_and_saved(plain, tmp_path):
  attention = realetc.PlainGlobalLocalAttention if plain else None
  config = _config(residual_attention="gate", residual_gate_init=0.5)
  model = _model(config, attention)
  ids = torch.arange(6).view(1, 6)
  before = model(ids, ids[:, :2]).long_output
  for mode in ("off", "sum", "mean", "decay", "gate"):
    model.set_residual_attention(mode)
    found = model(ids, ids[:, :2]).long_output
    assert torch.equal(found, before) == (mode == "gate")
    # DistributedDataParallel waits for the gradients that are required.
    assert all(p.requires_grad == (mode == "gate" or not name.endswith("_gate"))
               for name, p in model.named_parameters())
    model.save_pretrained(tmp_path)
    again = realetc.EtcModel.from_pretrained(tmp_path,
                                             attention_class=attention)
    assert again.config.residual_attention == mode
    assert torch.equal(again(ids, ids[:, :2]).long_output, found)
  assert config.residual_attention == "gate"  # another model may be of it
  with pytest.raises(ValueError, match="residual_attention should be one of"):
    model.set_residual_attention("add")
  with pytest.raises(ValueError, match='cannot become "gate": .* no gates'):
    _model(_config(residual_attention="sum")).set_residual_attention("gate")
  assert torch.equal(model(ids, ids[:, :2]).long_output, before)


def _set(name, value):
  return lambda model: setattr(model.config, name, value)


@pytest.mark.parametrize("change, message", (
    (_set("residual_attention", "sum"), "residual_attention .* 'sum', but .* "
     "'off'"),
    (_set("residual_decay", 0.5), "residual_decay of .* 0.5, but .* 0.9"),
    (_set("hidden_act", "relu"), "hidden_act .* 'relu', but .* 'gelu': make"),
    (_set("local_radius", 2), "local_radius .* 2, but .* 3: make"),
    (lambda model: setattr(model.layers[1].attention, "residual", "sum"),
     "residual_attention .* 'off', but .* 'sum'"),
))
def test_a_configuration_changed_later_is_refused(change, message, tmp_path):
  model = _model(_config(residual_attention="off"))
  built = copy.copy(model.config)
  change(model)
  ids = torch.arange(6).view(1, 6)
  for call in (lambda: model(ids, ids[:, :2]),
               lambda: model.save_pretrained(tmp_path / "saved")):
    with pytest.raises(ValueError, match=message):
      call()
  assert not (tmp_path / "saved").exists()
  for name in ("hidden_act", "local_radius"):
    setattr(model.config, name, getattr(built, name))
  model.config.grad_checkpointing_period = 2
  model.set_residual_attention(model.config.residual_attention)
  model.save_pretrained(tmp_path / "saved")
  model(ids, ids[:, :2])


def test_a_vocabulary_of_another_size_is_not_saved(tmp_path):
  model = _model(_config())
  model.config.vocab_size = 5
  with pytest.raises(ValueError, match=r"embedding.token.weight of the model "
                     r"is .*, but of one of its configuration \[5, 16\]"):
    model.save_pretrained(tmp_path / "saved")
  assert not (tmp_path / "saved").exists()


def _add_head(model):
  model.head = torch.nn.Linear(16, 2)


def _add_norm(model):
  torch.nn.utils.parametrizations.weight_norm(
      model.layers[0].attention.long_query)


@pytest.mark.parametrize("change, message", (
    (_add_head, "has head.bias"),
    (_add_norm, "has layers.0.attention.long_query.parametrizations"),
    (lambda model: delattr(model.embedding, "segment"),
     "lacks embedding.segment.weight"),
))
def test_weights_that_nobody_could_load_are_refused(change, message, tmp_path):
  model = _model(_config(residual_attention="gate"))
  change(model)
  with pytest.raises(ValueError, match=f"the model {message}.* merge adapters"):
    model.save_pretrained(tmp_path / "saved")
  assert not (tmp_path / "saved").exists()


def test_a_class_of_ones_own_saves_its_head(tmp_path):
  class Classifier(realetc.EtcModel):

    def __init__(self, *arguments):
      super().__init__(*arguments)
      self.head = torch.nn.Linear(16, 2)

  model = Classifier(_config())
  state = torch.get_rng_state()
  model.save_pretrained(tmp_path)
  assert torch.equal(torch.get_rng_state(), state)
  assert torch.equal(Classifier.from_pretrained(tmp_path).head.weight,
                     model.head.weight)


def test_a_class_with_arguments_of_its_own_saves_its_head(tmp_path):
  class Classifier(realetc.EtcModel):

    def __init__(self, config, *, labels):
      super().__init__(config)
      self.head = torch.nn.Linear(16, labels)

  model = Classifier(_config(), labels=3)
  model.save_pretrained(tmp_path)
  stored = safetensors.load_file(tmp_path / "model.safetensors")
  assert torch.equal(stored["encoder.head.weight"], model.head.weight)


@pytest.mark.parametrize("plain", (False, True), ids=("kernels", "plain"))
def test_layers_are_computed_again_with_the_same_gradients(plain):
  model = _model(_config(residual_attention="gate", num_hidden_layers=5,
                         hidden_dropout_prob=0.1,
                         attention_probs_dropout_prob=0.1),
                 realetc.PlainGlobalLocalAttention if plain else None)
  calls = []
  for layer in model.layers:
    layer.register_forward_pre_hook(lambda *_: calls.append(1))
  ids = torch.arange(6).view(1, 6)

  def gradients(period, training=True):
    calls.clear()
    model.config.grad_checkpointing_period = period
    model.train(training).zero_grad()
    torch.manual_seed(3)
    output = model(ids, ids[:, :2])
    streams = output.long_output[0] + output.global_output[0, 0]
    streams.pow(3).mean().backward()
    return [p.grad.clone() for p in model.parameters()]

  expected = gradients(0)
  assert len(calls) == 5
  for period in (1, 2, 7):
    found = gradients(period)
    assert len(calls) == 10
    assert all(torch.equal(a, b) for a, b in zip(found, expected))
  gradients(2, training=False)
  assert len(calls) == 5


def _break(folder, **fields):
  path = folder / "etc_config.json"
  path.write_text(json.dumps(json.loads(path.read_text()) | fields))


def _set_weight(folder, value):
  path = folder / "model.safetensors"
  tensors = safetensors.load_file(path)
  tensors["encoder.embedding.segment.weight"][1, 2] = value
  safetensors.save_file(tensors, path)


@pytest.mark.parametrize("change, message", (
    (lambda f: (f / "etc_config.json").unlink(), "has no etc_config.json"),
    (lambda f: (f / "model.safetensors").unlink(), "has no model.safetensors"),
    (lambda f: (f / "etc_config.json").write_text("{"), "should be JSON"),
    (lambda f: _break(f, vocab_size=None), "vocab_size should be"),
    (lambda f: _break(f, sublayer="middle"), "sublayer should be one of"),
    (lambda f: _break(f, hidden_act="swish"), "hidden_act should be one of"),
    (lambda f: _break(f, intermediate_size=23), r"should be \[23, 16\]"),
    (lambda f: _break(f, num_hidden_layers=4), "lacks layers.3"),
    (lambda f: _break(f, num_hidden_layers=2), "has unexpectedly layers.2"),
    (lambda f: _break(f, use_pre_activation_order=True),
     "use_pre_activation_order should be false where sublayer is post_norm"),
    (lambda f: _break(f, use_pre_activation_order=None), "but is null"),
    (lambda f: _break(f, use_hard_g2l_mask="false"),
     "use_hard_g2l_mask should be true or false, but is 'false'"),
    (lambda f: _set_weight(f, math.nan), "segment.weight should have finite"),
    (lambda f: _set_weight(f, -math.inf), "segment.weight should have finite"),
), ids=lambda one: one if isinstance(one, str) else "")
def test_mistakes_in_checkpoints_are_named(change, message, tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  change(folder)
  with pytest.raises(ValueError, match=message):
    realetc.EtcModel.from_pretrained(folder)


@pytest.mark.parametrize("above", ("", "checkpoints", "seed-1/checkpoints",
                                   "lr-1/seed-1/checkpoints"))
def test_the_checkpoint_of_a_run_is_named(above, tmp_path):
  best = tmp_path / "run" / above / "best"
  best.parent.mkdir(parents=True)
  _write(_model(_config(num_hidden_layers=1)), best)
  with pytest.raises(ValueError, match=f"it is a run: .* checkpoint, {best}$"):
    realetc.EtcModel.from_pretrained(tmp_path / "run")


def test_one_checkpoint_of_a_grid_is_named(tmp_path):
  for rate in range(3):
    best = tmp_path / f"grid/lr-{rate}/seed-1/checkpoints/best"
    best.mkdir(parents=True)
    (best / "etc_config.json").write_text("{}")
  with pytest.raises(ValueError, match="it is a run: give its checkpoint, "
                     r"\S*/lr-0/seed-1/checkpoints/best, or another of its 3$"):
    realetc.EtcModel.from_pretrained(tmp_path / "grid")


@pytest.mark.parametrize("fields, message", (
    ({"sublayer": "pre-norm"}, "sublayer should be one of post_norm"),
    ({"hidden_act": "swish"}, "hidden_act should be one of relu"),
    ({"residual_attention": "add"}, "residual_attention should be one of off"),
    ({"local_radius": 0}, "local_radius should be a whole number of at least"),
    ({"num_hidden_layers": 2.0}, "num_hidden_layers should be a whole number"),
    ({"embedding_size": 0}, "embedding_size should be a whole number"),
    ({"hidden_dropout_prob": 1.0}, "hidden_dropout_prob should be at least 0"),
    ({"hidden_dropout_prob": "0.1"}, "hidden_dropout_prob should .* '0.1'"),
    ({"initializer_range": 0.0}, "initializer_range should be above 0"),
    ({"residual_decay": 1.5}, "residual_decay should be above 0 and below 1"),
    ({"residual_attention": "decay", "residual_decay": 0.001},
     "a decay of 0.001 is too small for 3 layers"),
    ({"has_long_tokens": False}, "share_att_output_projection should be true"),
    ({"final_layer_norm": True}, "final_layer_norm should be false where"),
    ({"use_hard_l2g_mask": "false"}, "use_hard_l2g_mask should be true or"),
    ({"share_kv_projections": 1}, "share_kv_projections should be true or"),
    ({"residual_gate_init": math.nan}, "residual_gate_init should be at least"),
    ({"residual_gate_init": math.inf}, "residual_gate_init should be at least"),
    ({"residual_gate_init": 1e39}, "residual_gate_init should be at least"),
    ({"layer_norm_epsilon": 1e-40}, "layer_norm_epsilon should be at least"),
    ({"initializer_range": 1e3}, "initializer_range should be above 0"),
), ids=lambda one: one if isinstance(one, str) else "")
def test_mistakes_in_configurations_are_named(fields, message):
  with pytest.raises(ValueError, match=message):
    realetc.EtcModel(_config(**fields))


def test_numbers_of_numpy_are_numbers(tmp_path):
  numpy = pytest.importorskip("numpy")
  fields = {"hidden_size": 16, "local_radius": 3, "relative_vocab_size": 14,
            "hidden_dropout_prob": 0.0, "initializer_range": 0.25,
            "residual_attention": "decay", "residual_decay": 0.5}
  kinds = {int: numpy.int64, float: numpy.float32, str: str}
  config = _config(**{name: kinds[type(value)](value)
                      for name, value in fields.items()})
  model, expected = _model(config), _model(_config(**fields))
  ids = torch.arange(6).view(1, 6)
  assert torch.equal(model(ids, ids[:, :2]).long_output,
                     expected(ids, ids[:, :2]).long_output)
  model.save_pretrained(tmp_path)
  assert (realetc.EtcModel.from_pretrained(tmp_path).config ==
          _config(**fields))
  with pytest.raises(ValueError, match="hidden_size should be a whole number"):
    _model(_config(hidden_size=numpy.float32(16)))


@pytest.mark.parametrize("given, name", (("GELU", "gelu"), (None, "linear"),
                                         ("", "linear")))
def test_activations_are_named_as_officially(given, name, tmp_path):
  model, expected = (_model(_config(hidden_act=one)) for one in (given, name))
  ids = torch.arange(6).view(1, 6)
  assert torch.equal(model(ids, ids[:, :2]).long_output,
                     expected(ids, ids[:, :2]).long_output)
  model.save_pretrained(tmp_path)
  realetc.EtcModel.from_pretrained(tmp_path)


def test_long_tokens_of_bert_are_refused():
  ids = torch.arange(6).view(1, 6)
  with pytest.raises(ValueError, match="there are 6 long tokens, but "
                     "has_long_tokens is false"):
    _model(_config(**_BERT))(ids, ids[:, :2])


@pytest.mark.parametrize("change, texts, message", (
    (lambda f: (f / "vocab.txt").unlink(), ["x"], "should have a vocabulary"),
    (lambda f: (f / "vocab.txt").write_text("[PAD]\n[UNK]\nx\n"), ["x"],
     r"\[CLS\]"),
    (lambda f: (f / "vocab.txt").write_text("\n".join(
        VOCABULARY + ["more"])), ["x"], "token table"),
    (lambda f: None, "x", "list of strings, .*, but is str"),
    (lambda f: None, None, "list of strings, .*, but is NoneType"),
    (lambda f: None, ["x", 3.5], "lists of them, but text 1 is float"),
    (lambda f: None, ["x", ["a", None]], "lists of them, but text 1 is None"),
    (lambda f: None, ["x", ["", " "]], "text 1 should have at least one piece"),
    (lambda f: None, ["x", "a\ud800b"],
     "text 1 has a lone surrogate, at character 1"),
    (lambda f: None, [], "at least one text"),
    (lambda f: None, ["x", " \n"], "text 1 should have at least one piece"),
), ids=lambda one: one if isinstance(one, str) else "")
def test_mistakes_in_texts_are_named(change, texts, message, tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  change(folder)
  model = realetc.EtcModel.from_pretrained(folder)
  with pytest.raises(ValueError, match=message):
    model.inputs(texts)


def test_fields_each_begin_a_sentence(tmp_path):
  model = realetc.EtcModel.from_pretrained(
      _write(_model(_config()), tmp_path / "checkpoint"))
  fields = ["the court", "", "judge. it rained", "the end"]
  found = model.inputs([fields, "the"])
  assert len(found.sentences[0]) == 3
  assert [piece.id for piece in found.pieces[0]] == [
      piece.id for text in fields if text
      for piece in model.inputs([text]).pieces[0]]
  joined = model.inputs(["\n".join(fields)])
  assert len(joined.sentences[0]) == 1
  one, other = model.embed([fields, tuple(fields)])
  _assert_near(one.document, other.document)
  assert one.sentences.shape[0] == 3


@pytest.mark.parametrize("fields", ({}, _BERT), ids=("etc", "bert"))
def test_of_pairs_the_longer_text_is_cut(fields, tmp_path):
  folder = _write(_model(_config(**fields)), tmp_path / "checkpoint")
  (folder / "text_options.json").write_text(json.dumps(
      {"max_long_length": 13, "max_global_length": 13 if fields else 4}))
  model = realetc.EtcModel.from_pretrained(folder)
  a, b, dot, cls, end = map(VOCABULARY.index,
                            ["judge", "court", ".", "[CLS]", "[SEP]"])
  # Sentences of two pieces; there is room for ten.
  made = model.inputs(["Judge. " * 4, "", "Judge. " * 4],
                      ["Court.", "Court.", "Court. " * 6])
  assert made["input_ids"].tolist() == [
      [cls, *[a, dot] * 4, end, b, dot, end],
      [cls, end, b, dot, end, *[0] * 8],
      # Where both are as long, the second is cut.
      [cls, a, dot, a, dot, a, end, b, dot, b, dot, b, end]]
  assert made["token_type_ids"].tolist() == [
      [0] * 10 + [1] * 3, [0, 0, 1, 1, 1, *[0] * 8], [0] * 7 + [1] * 6]
  assert made.cut_pieces == [0, 0, 10]
  if not fields:
    # Three sentences have a token, those of the first text before the others.
    assert made["sentence_ids"].tolist() == [
        [-1, 0, 0, 1, 1, 2, 2, -1, -1, -1, -1, -1, -1],
        [-1, -1, 0, 0, -1, *[-1] * 8],
        [-1, 0, 0, 1, 1, 2, -1, -1, -1, -1, -1, -1, -1]]
    assert made.dropped_sentences == [2, 0, 3]
  output, alone = model.encode([""], ["Court."])
  assert alone["input_ids"].shape == (1, 5)
  _assert_near(model.run_texts(made).global_output[1, :2],
               output.global_output[0, :2])
  for texts, message in (
      ((["a", "b"], ["a"]), "texts_b should .* 2 texts, but has 1"),
      ((["a"], ["\ud800"]), "texts_b: text 0 has a lone surrogate"),
      ((["", ""], ["b", " "]), "text 1 should have at least one piece")):
    with pytest.raises(ValueError, match=message):
      model.inputs(*texts)


def test_a_model_of_one_type_has_it_for_both_texts(tmp_path):
  folder = _write(_model(_config(**_BERT | {"segment_vocab_size": 1})),
                  tmp_path / "checkpoint")
  made = realetc.EtcModel.from_pretrained(folder).inputs(["a"], ["b"])
  assert made["input_ids"].shape == (1, 5) and "token_type_ids" not in made


def test_a_tokenizer_json_is_read(tmp_path):
  tokenizers = pytest.importorskip("tokenizers")
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  model = realetc.EtcModel.from_pretrained(folder)
  texts = [*TEXTS, "\uf0b7 \u039f\u0394\u039f\u03a3"]
  expected = model.inputs(texts)
  vocabulary = {piece: i for i, piece in enumerate(VOCABULARY)}
  whole = tokenizers.Tokenizer(tokenizers.models.WordPiece(
      vocabulary, unk_token="[UNK]", max_input_chars_per_word=200))
  whole.normalizer = tokenizers.normalizers.BertNormalizer()
  whole.pre_tokenizer = tokenizers.pre_tokenizers.BertPreTokenizer()
  whole.add_special_tokens(["[CLS]", "[SEP]"])
  whole.enable_truncation(5)
  (folder / "vocab.txt").unlink()
  whole.save(str(folder / "tokenizer.json"))
  model = realetc.EtcModel.from_pretrained(folder)
  found = model.inputs(texts)
  assert torch.equal(found["input_ids"], expected["input_ids"])
  # A control piece in a text is text, another special one is found.
  whole.add_special_tokens(["judge"])
  whole.save(str(folder / "tokenizer.json"))
  model = realetc.EtcModel.from_pretrained(folder)
  pieces = model.inputs(["[SEP]xjudgex"]).pieces[0]
  assert VOCABULARY.index("[SEP]") not in [piece.id for piece in pieces]
  assert VOCABULARY.index("judge") in [piece.id for piece in pieces]
  # Malformed files are named.
  contents = json.loads(whole.to_str())
  del contents["added_tokens"][0]["id"]
  (folder / "tokenizer.json").write_text(json.dumps(contents))
  with pytest.raises(ValueError, match="tokenizer.json cannot be read by"):
    etc_model.load_tokenizer(folder)
  # Without a splitter it is not BERT's: a whole text is one word.
  contents = json.loads(whole.to_str()) | {"pre_tokenizer": None}
  (folder / "tokenizer.json").write_text(json.dumps(contents))
  model = realetc.EtcModel.from_pretrained(folder)
  pieces = model.inputs(["the judge[SEP]"]).pieces[0]
  assert [piece.id for piece in pieces] == [
      VOCABULARY.index(piece) for piece in ("[UNK]", "judge", "[SEP]")]
  # Nor with a piece that is no line of a vocab.txt: its control pieces are
  # found.
  contents = json.loads(whole.to_str())
  contents["added_tokens"].append(contents["added_tokens"][0] | {
      "id": len(VOCABULARY), "content": "\n"})
  (folder / "tokenizer.json").write_text(json.dumps(contents))
  assert etc_model.load_tokenizer(folder).encode("[SEP]")[0].id == (
      VOCABULARY.index("[SEP]"))


@pytest.mark.parametrize("name", ("tokenizer_config.json", "vocab.txt",
                                  "text_options.json"))
def test_a_link_that_leads_nowhere_is_no_absent_file(name, tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  (folder / name).unlink(missing_ok=True)
  (folder / name).symlink_to("nowhere")
  model = realetc.EtcModel.from_pretrained(folder)
  with pytest.raises(FileNotFoundError, match=name):
    model.inputs(TEXTS)


@pytest.mark.parametrize("name", ("etc_config.json", "model.safetensors"))
def test_a_link_in_the_place_of_weights_is_no_absent_file(name, tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  (folder / name).unlink()
  (folder / name).symlink_to("nowhere")
  with pytest.raises(FileNotFoundError, match=name):
    realetc.EtcModel.from_pretrained(folder)


def test_weights_are_saved_before_a_vocabulary_that_cannot_be(tmp_path):
  folder = _write(_model(_config()), tmp_path / "checkpoint")
  model = realetc.EtcModel.from_pretrained(folder)
  expected = model.inputs(TEXTS)["input_ids"]
  (folder / "tokenizer.json").symlink_to("nowhere")  # vocab.txt comes first
  saved = tmp_path / "saved"
  with pytest.raises(FileNotFoundError, match="tokenizer.json"):
    model.save_pretrained(saved)
  again = realetc.EtcModel.from_pretrained(saved)
  for name, tensor in model.state_dict().items():
    assert torch.equal(again.state_dict()[name], tensor)
  assert torch.equal(again.inputs(TEXTS)["input_ids"], expected)


def _write_byte_level(folder, processor):
  """RoBERTa's kind of tokenizer.json, with a piece for each byte."""
  tokenizers = pytest.importorskip("tokenizers")
  specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
  alphabet = sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
  pieces = [*specials, *alphabet, "th", "the", "\u0120the"]
  whole = tokenizers.Tokenizer(tokenizers.models.BPE(
      {piece: i for i, piece in enumerate(pieces)},
      [("t", "h"), ("th", "e"),
       ("\u0120", "the")]))
  whole.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(
      add_prefix_space=False)
  if processor:
    whole.post_processor = tokenizers.processors.RobertaProcessing(
        ("</s>", 2), ("<s>", 0), add_prefix_space=False)
  whole.add_special_tokens(specials)
  folder.mkdir()
  _model(_config(vocab_size=len(pieces), num_hidden_layers=1)).save_pretrained(
      folder)
  whole.save(str(folder / "tokenizer.json"))
  return whole


@pytest.mark.parametrize("processor", (False, True))
def test_special_tokens_of_byte_level_pieces_are_found(processor, tmp_path):
  whole = _write_byte_level(tmp_path / "checkpoint", processor)
  model = realetc.EtcModel.from_pretrained(tmp_path / "checkpoint")
  text = "the <mask> the</s>"
  found = model.inputs([text])["input_ids"][0].tolist()
  assert found == [0, *whole.encode(text, add_special_tokens=False).ids, 2]
  assert found.count(4) == 1 and found.count(2) == 2
  # A sentence behind a blank begins with it, one behind a line end does not.
  pieces = model.inputs(["the the\nthe"], split_sentences=lambda _: [
      (0, 3), (4, 7), (8, 11)]).pieces[0]
  blank, none = whole.token_to_id("\u0120the"), whole.token_to_id("the")
  assert pieces == [(none, 0, 3), (blank, 4, 7), (none, 8, 11)]
  # One that has the blank itself gets no second one.
  [pieces] = model.inputs(["a  the"], split_sentences=lambda _: [(2, 6)]).pieces
  assert [piece.id for piece in pieces] == [blank]
  # RoBERTa has two separators between texts, with its post-processor or not.
  found = model.inputs([text], ["the"])
  assert found["input_ids"].tolist() == [
      [0, *whole.encode(text, add_special_tokens=False).ids, 2, 2, none, 2]]
  assert found["token_type_ids"][0, -3:].tolist() == [0, 1, 1]


def test_marks_between_texts_are_the_post_processors(tmp_path):
  whole = _write_byte_level(tmp_path / "checkpoint", False)
  templates = pytest.importorskip("tokenizers").processors.TemplateProcessing
  specials = [("<s>", 0), ("</s>", 2), ("<mask>", 4)]
  texts = ["the rain"], ["the end"]
  for single, pair, between in (
      ("<s> $A </s>", "<s> $A <mask> </s> <mask> $B </s>", [4, 2, 4]),
      ("<s> $A </s>", "<s> $A $B </s>", []),
      ("<s> $A </s>", None, [2]),  # tokenizers has none at all then
      ("$A", None, [2, 2])):
    whole.post_processor = templates(single, pair, specials)
    whole.save(str(tmp_path / "checkpoint/tokenizer.json"))
    model = realetc.EtcModel.from_pretrained(tmp_path / "checkpoint")
    ids = [whole.encode(text, add_special_tokens=False).ids for [text] in texts]
    assert model.inputs(*texts)["input_ids"].tolist() == [
        [0, *ids[0], *between, *ids[1], 2]]
  whole.post_processor = templates("<s> $A </s>", "<mask> $A $B </s>", specials)
  whole.save(str(tmp_path / "checkpoint/tokenizer.json"))
  with pytest.raises(ValueError, match="and the same around a pair"):
    realetc.EtcModel.from_pretrained(tmp_path / "checkpoint").inputs(*texts)


def test_a_post_processor_with_one_special_token_is_refused(tmp_path):
  whole = _write_byte_level(tmp_path / "checkpoint", False)
  whole.post_processor = pytest.importorskip(
      "tokenizers").processors.TemplateProcessing("$A </s>", None,
                                                  [("</s>", 2)])
  whole.save(str(tmp_path / "checkpoint/tokenizer.json"))
  with pytest.raises(ValueError, match="one special piece before a text and"):
    realetc.EtcModel.from_pretrained(tmp_path / "checkpoint").inputs(["the"])


@needs_program
def test_byte_level_pieces_are_those_of_cpp(tmp_path):
  folder = tmp_path / "checkpoint"
  _write_byte_level(folder, True)
  texts = ["the rain. The <mask> of it. the judge!\nthe end. the", " the",
           "it</s> is. <s>the. Stra\u00dfe the"]
  [found] = _run_cpp([folder], texts, tmp_path)
  inputs = realetc.EtcModel.from_pretrained(folder).inputs(texts)
  for b, pieces in enumerate(inputs.pieces):
    assert ([piece.id for piece in pieces] ==
            found[f"pieces.{b}"][:, 0].tolist())
    assert (inputs["sentence_ids"][b, 1:len(pieces) + 1].tolist() ==
            found[f"sentences.{b}"].tolist())


@pytest.mark.parametrize("options, message", (
    ({"tokenizer_class": "AlbertTokenizer"},
     "only a model without a class of its own"),
    ({"do_lower_case": True},
     "do_lower_case is true, but only false is supported"),
    ({"do_lower_case": 1}, "do_lower_case should be true or false, but is 1"),
    ({"split_punctuation": True}, "split_punctuation")))
def test_sentencepiece_that_realetc_refuses_is_refused(options, message,
                                                       tmp_path):
  folder = _write(_model(_config(num_hidden_layers=1)), tmp_path / "checkpoint")
  (folder / "vocab.txt").rename(folder / "tokenizer.model")
  (folder / "tokenizer_config.json").write_text(json.dumps(options))
  with pytest.raises(ValueError, match=message) as error:
    realetc.EtcModel.from_pretrained(folder).inputs(["a text"])
  assert str(folder / "tokenizer_config.json") in str(error.value)


@needs_program
@pytest.mark.parametrize("marks", (["<unused_63>", "<unused_2>"], []))
def test_sentencepiece_is_that_of_cpp(marks, tmp_path):
  sentencepiece = pytest.importorskip("sentencepiece")
  (tmp_path / "corpus.txt").write_text(
      "in 1992, 12 of 34, and 56, of the 1992, rain\n" * 50)
  folder = _write(_model(_config(num_hidden_layers=1)), tmp_path / "checkpoint")
  (folder / "vocab.txt").unlink()
  (folder / "tokenizer_config.json").write_text('{"do_lower_case": false}\n')
  sentencepiece.SentencePieceTrainer.train(
      input=str(tmp_path / "corpus.txt"), vocab_size=38 + len(marks),
      model_type="bpe", model_prefix=str(folder / "tokenizer"), minloglevel=2,
      user_defined_symbols=[*marks, "1992,"])
  texts = ["in 1992, rain of 34, 35,,", "\ufb01ne  rain, 1992,1992,"]
  [found] = _run_cpp([folder], texts, tmp_path)
  inputs = realetc.EtcModel.from_pretrained(folder).inputs(texts)
  for b, pieces in enumerate(inputs.pieces):
    assert [piece.id for piece in pieces] == found[f"pieces.{b}"][:, 0].tolist()
