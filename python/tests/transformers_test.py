"""`realetc export --format huggingface` in HuggingFace's transformers.

A classifier that realetc trained for two updates is exported and loaded by
AutoModel and AutoModelForSequenceClassification, in a process of its own, with
the package realetc and without it (plain PyTorch): probabilities are those of
`realetc predict`, outputs those of EtcModel, labels are kept. What transformers
saves is read by realetc again. The program is found in ETC_PROGRAM or
build/release/bin (cmake --build --preset release --target realetc). Tested with
transformers 4.57 and 5.24.
"""
import csv
import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

import pytest
import torch

import realetc
from realetc import etc_text

pytest.importorskip("transformers")
pytest.importorskip("tokenizers")
safetensors = pytest.importorskip("safetensors.torch")

_ROOT = pathlib.Path(__file__).resolve().parents[2]
_PROGRAM = pathlib.Path(os.environ.get(
    "ETC_PROGRAM", _ROOT / "build/release/bin/realetc"))
_SAMPLE = _ROOT / "tasks/classify/sample/dev.csv.gz"
_LABELS = ["owner", "retrial", "tenant"]

pytestmark = pytest.mark.skipif(
    not _PROGRAM.exists(),
    reason=f"the C++ program {_PROGRAM} is not built: cmake --build --preset "
    "release --target realetc")

# Run with the folder of the export; BODY fills `tensors`.
_SCRIPT = """
import json, sys, warnings
folder, out, plain = sys.argv[1:4]
if plain == "plain":
  sys.modules["realetc"] = None
import torch, transformers
from safetensors.torch import save_file
texts = json.load(open(folder + "/texts.json"))
tensors = {}
with torch.no_grad():
BODY
save_file({name: t.contiguous() for name, t in tensors.items()}, out)
"""


def _realetc(*arguments):
  return subprocess.run(
      [_PROGRAM, *map(str, arguments)], check=True, cwd=_ROOT, text=True,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT).stdout


def _run(folder, tmp_path, body, plain="realetc"):
  """The tensors that `body` makes in a process with this export."""
  script, out = tmp_path / "script.py", tmp_path / "out.safetensors"
  indented = "".join(f"  {line}\n" for line in body.strip().splitlines())
  script.write_text(_SCRIPT.replace("BODY\n", indented))
  done = subprocess.run(
      [sys.executable, script, folder, out, plain], check=False, text=True,
      stdout=subprocess.PIPE, stderr=subprocess.STDOUT, env=os.environ | {
          "HF_HOME": str(tmp_path / "hub"), "HF_HUB_OFFLINE": "1",
          "OMP_NUM_THREADS": "1"})
  assert done.returncode == 0, done.stdout
  assert "newly initialized" not in done.stdout, done.stdout
  assert "MISSING" not in done.stdout, done.stdout
  return safetensors.load_file(out)


@pytest.fixture(scope="module", name="run")
def fixture_run(tmp_path_factory):
  """A run of two updates, and its texts."""
  folder = tmp_path_factory.mktemp("run")
  _realetc("train", "tasks/classify/configs/demo.json", "--set",
           "train.steps=2", "--set", "train.evaluate_every=2", "--set",
           "residual_attention=gate", "--set", "model.residual_gate_init=0.5",
           "--output", folder / "run")
  with gzip.open(_SAMPLE, "rt", encoding="utf-8") as file:
    rows = list(csv.DictReader(file))[:6]
  return folder / "run", rows


@pytest.fixture(scope="module", name="exported")
def fixture_exported(run, tmp_path_factory):
  folder = tmp_path_factory.mktemp("export") / "court"
  _realetc("export", run[0], folder, "--format", "huggingface")
  (folder / "texts.json").write_text(json.dumps(
      [row["text"] for row in run[1]]))
  return folder


_CLASSIFY = """
model = transformers.AutoModelForSequenceClassification.from_pretrained(
    folder, trust_remote_code=True)
assert model.encoder.is_plain == (plain == "plain")
assert [model.config.id2label[i] for i in range(3)] == [
    "owner", "retrial", "tenant"], model.config.id2label
assert model.config.problem_type == "single_label_classification"
inputs = model.inputs(texts)
output = model(**inputs, labels=torch.zeros(len(texts), dtype=torch.int64))
assert torch.allclose(output.loss, -output.logits.log_softmax(-1)[:, 0].mean())
tensors["logits"] = output.logits
"""


def _write_records(path, records):
  path.write_text("".join(json.dumps(one) + "\n" for one in records))
  return path


def _predicted(run, records, tmp_path):
  """Probabilities by `realetc predict`."""
  _realetc("predict", run, "--data",
           _write_records(tmp_path / "records.jsonl", records), "--output",
           tmp_path / "predictions.json")
  found = (tmp_path / "predictions.json").read_text().splitlines()
  return torch.tensor([[json.loads(line)["probabilities"][label]
                        for label in _LABELS] for line in found])


@pytest.mark.parametrize("plain", ("realetc", "plain"))
def test_classifier_predicts_as_realetc(run, exported, plain, tmp_path):
  logits = _run(exported, tmp_path, _CLASSIFY, plain)["logits"]
  expected = _predicted(run[0], [{"title": "", "text": row["text"]}
                                 for row in run[1]], tmp_path)
  # Six digits are written.
  torch.testing.assert_close(logits.softmax(-1), expected, rtol=0, atol=2e-6)


def test_fields_are_read_as_realetc_reads_them(run, exported, tmp_path):
  folder = tmp_path / "court"
  shutil.copytree(exported, folder)
  # Short texts, whose titles have a larger part in them.
  records = [{"title": row["title"], "text": row["text"][:40]}
             for row in run[1]]
  (folder / "texts.json").write_text(json.dumps(
      [[one["title"], one["text"]] for one in records]))
  found = _run(folder, tmp_path, """
model = transformers.AutoModelForSequenceClassification.from_pretrained(
    folder, trust_remote_code=True)
tensors["fields"] = model(**model.inputs(texts)).logits.softmax(-1)
tensors["joined"] = model(**model.inputs(
    ["\\n".join(text) for text in texts])).logits.softmax(-1)
""")
  expected = _predicted(run[0], records, tmp_path)
  torch.testing.assert_close(found["fields"], expected, rtol=0, atol=2e-6)
  assert (found["joined"] - expected).abs().max() > 1e-4


@pytest.mark.parametrize("settings", (
    ("data.max_long_length=64", "data.max_global_length=4"),
    ("data.max_global_length=64", "model.has_long_tokens=false",
     "model.share_att_output_projection=true",
     "model.relative_pos_max_distance=0",
     "model.max_absolute_position_embeddings=64"),
), ids=("etc", "bert"))
def test_pairs_are_read_as_realetc_reads_them(run, settings, tmp_path):
  records = [{"text": row["title"] if i % 2 else row["text"],
              "text_b": row["text"][40 * i:], "outcome": _LABELS[i % 3]}
             for i, row in enumerate(run[1])]
  data = _write_records(tmp_path / "pairs.jsonl", records)
  _realetc("train", "tasks/classify/configs/demo.json", *(
      part for setting in (
          f"data.train={data}", f"data.dev={data}", "classify.text=text",
          "train.steps=2", "train.evaluate_every=2", "train.batch_size=6",
          "train.micro_batch_size=6", *settings)
      for part in ("--set", setting)), "--output", tmp_path / "run")
  folder = tmp_path / "pairs"
  _realetc("export", tmp_path / "run", folder, "--format", "huggingface")
  (folder / "texts.json").write_text(json.dumps(
      [[one[name] for one in records] for name in ("text", "text_b")]))
  found = _run(folder, tmp_path, """
model = transformers.AutoModelForSequenceClassification.from_pretrained(
    folder, trust_remote_code=True)
inputs = model.inputs(*texts)
assert inputs["input_ids"].shape[1] == 64 and min(inputs.cut_pieces) > 0
tensors["pairs"] = model(**inputs).logits.softmax(-1)
tensors["swapped"] = model(**model.inputs(*texts[::-1])).logits.softmax(-1)
""")
  expected = _predicted(tmp_path / "run", records, tmp_path)
  torch.testing.assert_close(found["pairs"], expected, rtol=0, atol=2e-6)
  assert (found["swapped"] - expected).abs().max() > 1e-4


@pytest.mark.parametrize("plain", ("realetc", "plain"))
def test_encoder_gives_the_outputs_of_etc_model(exported, plain, tmp_path):
  found = _run(exported, tmp_path, """
import os
os.chdir(os.path.dirname(folder))
model = transformers.AutoModel.from_pretrained(os.path.basename(folder),
                                               trust_remote_code=True)
os.chdir("/")  # texts are read by the folder as it was named before
assert type(model).__name__ == "RealEtcModel"
output = model(**model.inputs(texts))
tensors["longs"] = output.last_hidden_state
tensors["globals"] = output.global_hidden_state
tensors["document"] = model.embed(texts)[1].document
assert torch.equal(output.pooler_output, output.global_hidden_state[:, 0])
assert torch.equal(model(**model.inputs(texts), return_dict=False)[0],
                   output.last_hidden_state)
""", plain)
  model = realetc.EtcModel.from_pretrained(exported)
  assert model.config.residual_attention == "gate"
  output, inputs = model.encode(json.loads((exported / "texts.json").read_text()))
  mask = inputs["attention_mask"].unsqueeze(-1)
  size = output.long_output.abs().max().item()
  torch.testing.assert_close(found["longs"] * mask, output.long_output * mask,
                             rtol=1e-5, atol=1e-5 * size)
  torch.testing.assert_close(found["document"], output.global_output[1, 0],
                             rtol=1e-5, atol=1e-5 * size)


def test_tokenizer_of_transformers_has_the_same_ids(exported, tmp_path):
  found = _run(exported, tmp_path, """
tokenizer = transformers.AutoTokenizer.from_pretrained(
    folder, trust_remote_code=True)
model = transformers.AutoModel.from_pretrained(folder, trust_remote_code=True)
made = tokenizer(texts, padding=True, return_tensors="pt")
own = model.inputs(texts)
mask = own["attention_mask"]
assert torch.equal(made["attention_mask"], mask)
assert torch.equal(made["input_ids"] * mask, own["input_ids"] * mask)
with warnings.catch_warnings(record=True) as caught:
  warnings.simplefilter("always")
  model(**own)
  assert not caught, caught[0].message
  tensors["one"] = model(**made).global_hidden_state
  assert "no sentence_ids" in str(caught[0].message)
  caught.clear()
  model(**made, sentence_ids=torch.full_like(made["input_ids"], -1))
  assert not caught, caught[0].message
""")
  assert found["one"].shape[1] == 1


def test_tokenizer_without_a_post_processor_has_the_same_ids(tmp_path):
  import tokenizers  # pylint: disable=import-outside-toplevel
  from realetc import modeling_realetc  # pylint: disable=import-outside-toplevel
  specials = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
  splitter = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
  pieces = [*specials, *sorted(splitter.alphabet())]
  whole = tokenizers.Tokenizer(tokenizers.models.BPE(
      {piece: i for i, piece in enumerate(pieces)}, []))
  whole.pre_tokenizer = splitter
  whole.add_special_tokens(specials)
  modeling_realetc.RealEtcModel(modeling_realetc.RealEtcConfig(
      vocab_size=len(pieces), hidden_size=8, num_hidden_layers=1,
      num_attention_heads=2, intermediate_size=8, local_radius=2)
  ).save_pretrained(tmp_path / "ours")
  whole.save(str(tmp_path / "ours/tokenizer.json"))
  _realetc("export", tmp_path / "ours", tmp_path / "exported", "--format",
           "huggingface")
  (tmp_path / "exported/texts.json").write_text(json.dumps(
      ["The rain. An end.", "A <mask>"]))
  _run(tmp_path / "exported", tmp_path, """
tokenizer = transformers.AutoTokenizer.from_pretrained(
    folder, trust_remote_code=True)
model = transformers.AutoModel.from_pretrained(folder, trust_remote_code=True)
for second in ([], [texts[::-1]]):
  made = tokenizer(texts, *second, padding=True, return_tensors="pt")
  own = model.inputs(texts, *second)
  mask = own["attention_mask"]
  assert torch.equal(made["attention_mask"], mask)
  assert torch.equal(made["input_ids"] * mask, own["input_ids"] * mask)
assert torch.equal(made["token_type_ids"], own["token_type_ids"])
tensors["ids"] = own["input_ids"]
""")


def test_tokens_added_by_transformers_are_found(tmp_path):
  import transformers  # pylint: disable=import-outside-toplevel
  from realetc import modeling_realetc  # pylint: disable=import-outside-toplevel
  pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "the", "<", "ent",
            ">", "rain"]
  source, saved = tmp_path / "source", tmp_path / "saved"
  modeling_realetc.RealEtcModel(modeling_realetc.RealEtcConfig(
      vocab_size=len(pieces), hidden_size=8, num_hidden_layers=1,
      num_attention_heads=2, intermediate_size=8, local_radius=2)
  ).save_pretrained(source)
  (source / "vocab.txt").write_text("\n".join(pieces) + "\n")
  (source / "tokenizer_config.json").write_text(json.dumps(
      {"tokenizer_class": "BertTokenizer", "do_lower_case": True}))
  tokenizer = transformers.BertTokenizerFast.from_pretrained(source)
  tokenizer.add_tokens(["<ent>"])
  model = modeling_realetc.RealEtcModel.from_pretrained(source)
  model.resize_token_embeddings(len(tokenizer))
  tokenizer.save_pretrained(saved)
  model.save_pretrained(saved)
  _realetc("import", saved, tmp_path / "ours")
  text = "the <ent> Rain"
  expected = tokenizer(text)["input_ids"]
  assert expected == [2, 5, len(pieces), 9, 3]
  for model in (modeling_realetc.RealEtcModel.from_pretrained(saved),
                realetc.EtcModel.from_pretrained(saved),
                realetc.EtcModel.from_pretrained(tmp_path / "ours")):
    assert model.inputs([text])["input_ids"].tolist() == [expected]


# Labels in another order than the export's.
_CHANGE = """
labels = ["tenant", "owner", "retrial"]
model = transformers.AutoModelForSequenceClassification.from_pretrained(
    folder, trust_remote_code=True, OPTIONS)
assert [model.config.id2label[i] for i in range(3)] == labels
tensors["logits"] = model(**model.inputs(texts)).logits
tensors["global"] = model.encoder.embed(texts)[0].document
"""


@pytest.mark.parametrize("place", ("elsewhere", "court"))
def test_saved_by_transformers_it_comes_back(place, exported, tmp_path):
  folder, saved = tmp_path / "court", tmp_path / place
  shutil.copytree(exported, folder)
  before = _run(folder, tmp_path, _CHANGE.replace("OPTIONS", """
    residual_attention="sum", max_global_length=3, id2label=dict(
        enumerate(labels)), label2id={"tenant": 0, "owner": 1, "retrial": 2}
""") + f"""
model.save_pretrained({str(saved)!r})
""")
  shutil.copyfile(exported / "texts.json", saved / "texts.json")
  after = _run(saved, tmp_path, _CHANGE.replace(", OPTIONS", ""))
  for name, tensor in before.items():
    torch.testing.assert_close(after[name], tensor)
  # EtcModel and C++ read what transformers says.
  model = realetc.EtcModel.from_pretrained(saved)
  assert model.config.residual_attention == "sum"
  [vectors] = model.embed(json.loads((saved / "texts.json").read_text())[:1])
  assert len(vectors.spans) == 2
  torch.testing.assert_close(vectors.document, before["global"], rtol=1e-5,
                             atol=1e-5)
  text = _realetc("import", saved, tmp_path / "ours")
  assert "0 tenant" in text and "2 retrial" in text, text
  config = json.loads((tmp_path / "ours/etc_config.json").read_text())
  assert config["residual_attention"] == "sum"
  theirs = safetensors.load_file(saved / "model.safetensors")
  ours = safetensors.load_file(tmp_path / "ours/model.safetensors")
  assert theirs.keys() == ours.keys()
  assert all(torch.equal(tensor, ours[name]) for name, tensor in theirs.items())


def test_it_trains_in_transformers(exported, tmp_path):
  losses = _run(exported, tmp_path, """
model = transformers.AutoModelForSequenceClassification.from_pretrained(
    folder, trust_remote_code=True).train()
inputs = model.inputs(texts)
labels = torch.arange(len(texts)) % 3
def gradients():
  model.zero_grad()
  torch.manual_seed(0)
  with torch.enable_grad():
    model(**inputs, labels=labels).loss.backward()
  return [p.grad.clone() for p in model.parameters() if p.grad is not None]
before = gradients()
calls = []
hook = model.encoder.layers[1].register_forward_pre_hook(
    lambda *_: calls.append(1))
model.gradient_checkpointing_enable({"use_reentrant": True})
again = gradients()
assert len(calls) == 2 and len(again) == len(before)
assert all(torch.equal(a, b) for a, b in zip(again, before))
model.gradient_checkpointing_disable()
gradients()
assert len(calls) == 3
hook.remove()
optimizer = torch.optim.Adam(model.parameters(), 1e-3)
losses = []
with torch.enable_grad():
  for _ in range(6):
    loss = model(**inputs, labels=labels).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    losses.append(loss.detach())
assert model.encoder.layers[1].attention.g2g_gate.grad.abs().max() > 0
tensors["losses"] = torch.stack(losses)
""")["losses"]
  assert losses[-1] < losses[0]


def test_the_recipe_of_trainer_trains(exported, tmp_path):
  pytest.importorskip("accelerate")
  page = (_ROOT / "doc/weights.md").read_text(encoding="utf-8")
  [recipe] = [one for one in re.findall(r"```python\n(.*?)```", page, re.S)
              if "Trainer(" in one]
  _run(exported, tmp_path, f"""
torch.set_grad_enabled(True)
records = [{{"text": text, "label": "tenant"}} for text in texts]
{recipe.replace('"DIR"', "folder").replace('"trained"', "folder + '-trained'")}
tensors["loss"] = torch.tensor(trainer.state.log_history[-1]["train_loss"])
""")


def test_tokens_are_classified(tmp_path):
  names = tmp_path / "names"
  _realetc("train", "tasks/tokens/configs/demo.json", "--set",
           "train.steps=2", "--set", "train.evaluate_every=2", "--output",
           tmp_path / "run")
  _realetc("export", tmp_path / "run", names, "--format", "huggingface")
  texts = ["The builder saw Lake. Field had no answer.", "The letter."]
  (names / "texts.json").write_text(json.dumps(texts))
  logits = _run(names, tmp_path, """
model = transformers.AutoModelForTokenClassification.from_pretrained(
    folder, trust_remote_code=True)
assert [model.config.id2label[i] for i in range(7)] == [
    "O", "B-firm", "I-firm", "B-person", "I-person", "B-town", "I-town"]
inputs = model.inputs(texts)
labels = torch.full_like(inputs["input_ids"], -100)
labels[:, 1] = 2
output = model(**inputs, labels=labels)
assert torch.allclose(output.loss,
                      -output.logits.log_softmax(-1)[:, 1, 2].mean())
tensors["logits"] = output.logits
""")["logits"]
  output, inputs = realetc.EtcModel.from_pretrained(names).encode(texts)
  head = safetensors.load_file(names / "model.safetensors")
  expected = torch.nn.functional.linear(
      output.long_output, head["head.classifier.weight"],
      head["head.classifier.bias"])
  mask = inputs["attention_mask"].unsqueeze(-1)
  torch.testing.assert_close(logits * mask, expected * mask, rtol=1e-5,
                             atol=1e-5 * expected.abs().max().item())


def _small_classifier(**fields):
  from realetc import modeling_realetc  # pylint: disable=import-outside-toplevel
  return modeling_realetc.RealEtcForSequenceClassification(
      modeling_realetc.RealEtcConfig(
          vocab_size=20, hidden_size=8, num_hidden_layers=1,
          num_attention_heads=2, intermediate_size=8, local_radius=2, **fields))


@pytest.mark.parametrize("length", ("64", None))
def test_lengths_that_are_no_numbers_are_refused(length):
  with pytest.raises(ValueError, match="RealEtcConfig: max_long_length should "
                     "be .*, but is"):
    _small_classifier(max_long_length=length).text_options()


def test_each_reads_what_the_other_saved_into_its_folder(tmp_path):
  from realetc import modeling_realetc  # pylint: disable=import-outside-toplevel
  ids = torch.arange(6).view(1, 6)
  config = modeling_realetc.RealEtcConfig(
      vocab_size=20, hidden_size=8, num_hidden_layers=3, num_attention_heads=2,
      intermediate_size=8, local_radius=2, max_global_length=7)
  modeling_realetc.RealEtcModel(config).save_pretrained(tmp_path)
  own = realetc.EtcModel.from_pretrained(tmp_path, residual_attention="sum")
  assert own.text_options().max_global_length == 7
  own.save_pretrained(tmp_path)
  other = modeling_realetc.RealEtcModel.from_pretrained(tmp_path)
  assert other.config.residual_attention == "sum"
  expected = own.run_texts({"input_ids": ids}).long_output
  assert torch.equal(other(ids).last_hidden_state, expected)
  # And back.
  other.set_residual_attention("mean")
  assert not torch.equal(other(ids).last_hidden_state, expected)
  other.config.max_global_length = 9
  other.save_pretrained(tmp_path)
  own = realetc.EtcModel.from_pretrained(tmp_path)
  assert own.config.residual_attention == "mean"
  assert own.text_options().max_global_length == 9
  assert torch.equal(own.run_texts({"input_ids": ids}).long_output,
                     other(ids).last_hidden_state)
  other.config.residual_attention = "off"
  with pytest.raises(ValueError, match="change it by set_residual_attention"):
    other.save_pretrained(tmp_path / "new")
  assert not (tmp_path / "new").exists()


def test_shards_are_read(tmp_path):
  from realetc import modeling_realetc  # pylint: disable=import-outside-toplevel
  shards, index = tmp_path / "shards", "model.safetensors.index.json"
  model = _small_classifier()
  model.save_pretrained(shards, max_shard_size="2KB")
  assert not (shards / "model.safetensors").exists()
  own = realetc.EtcModel.from_pretrained(shards)
  expected = model.encoder.state_dict()
  assert own.state_dict().keys() == expected.keys()
  assert all(torch.equal(tensor, expected[name])
             for name, tensor in own.state_dict().items())
  _realetc("import", shards, tmp_path / "ours")
  ours = safetensors.load_file(tmp_path / "ours/model.safetensors")
  assert torch.equal(ours["encoder.embedding.token.weight"],
                     expected["embedding.token.weight"])
  with pytest.raises(ValueError, match="has head.*would be lost"):
    own.save_pretrained(shards)
  # Saving an encoder alone writes one file, which is read before the shards.
  model.encoder.save_pretrained(tmp_path / "encoder", max_shard_size="2KB")
  own.set_residual_attention("sum")
  own.save_pretrained(tmp_path / "encoder")
  assert modeling_realetc.RealEtcModel.from_pretrained(
      tmp_path / "encoder").config.residual_attention == "sum"
  for name in ("../model.safetensors", "", "..", None):
    (shards / index).write_text(json.dumps({"weight_map": {"x": name}}))
    with pytest.raises(ValueError, match="should name files beside it"):
      realetc.EtcModel.from_pretrained(shards)
  (shards / index).write_text('{"weight_map": {}}')
  with pytest.raises(ValueError, match="should name files beside it"):
    realetc.EtcModel.from_pretrained(shards)
  (shards / index).write_text('{"weight_map": {"x": "gone.safetensors"}}')
  with pytest.raises(ValueError, match="has no gone.safetensors"):
    realetc.EtcModel.from_pretrained(shards)


def test_a_batch_may_be_empty():
  for fields in ({}, {"has_long_tokens": False, "relative_vocab_size": None,
                      "share_att_output_projection": True,
                      "relative_pos_max_distance": 0}):
    model = _small_classifier(num_labels=3, **fields)
    nothing = torch.zeros(0, 6, dtype=torch.int64)
    assert model(nothing, sentence_ids=nothing).logits.shape == (0, 3)


def test_arguments_of_others_are_taken_or_refused_by_name():
  model = _small_classifier(num_labels=3).eval()
  ids = torch.arange(6).view(1, 6)
  names = ("inputs_embeds", "output_attentions", "output_hidden_states")
  expected = model(ids).logits
  assert torch.equal(model(ids, **dict.fromkeys(names)).logits, expected)
  for name in names:
    with pytest.raises(ValueError, match=f"{name} is not supported"):
      model(ids, **{name: torch.ones(1, 6, 8) if name == names[0] else True})
  # The same in the config, unless the argument says otherwise.
  for name, instead in ((names[1], "realetc attention"),
                        (names[2], "last_hidden_state")):
    asked = _small_classifier(num_labels=3, **{name: True})
    for each in (asked, asked.encoder):
      with pytest.raises(ValueError, match=f"{name} is not.*{instead}"):
        each(ids)
    assert asked(ids, **{name: False}).logits.shape == (1, 3)
  asked = _small_classifier(num_labels=3, return_dict=False)
  assert isinstance(asked(ids), tuple) and isinstance(asked.encoder(ids), tuple)
  assert asked(ids, return_dict=True).logits.shape == (1, 3)


@pytest.mark.parametrize("fields", ({}, {"embedding_size": 4}))
@pytest.mark.parametrize("mean", (True, False))
def test_tokens_are_added(fields, mean):
  model = _small_classifier(**fields).eval()
  ids = torch.arange(6).view(1, 6)
  expected = model(ids).logits
  model.resize_token_embeddings(26, mean_resizing=mean)
  table = model.encoder.embedding.token
  assert model.get_input_embeddings() is table
  assert model.config.vocab_size == len(table.weight) == 26
  assert (0 if mean else 0.005) < table.weight[20:].std() < 0.05
  assert torch.equal(model(ids).logits, expected)
  assert model(ids + 20).logits.isfinite().all()


def test_the_folder_that_a_model_came_from_may_be_gone(tmp_path):
  (tmp_path / "court").mkdir()
  (tmp_path / "court/vocab.txt").write_text("[UNK]\n")
  model = _small_classifier(name_or_path=str(tmp_path / "court"))
  (tmp_path / "court").rename(tmp_path / "moved")
  with pytest.warns(UserWarning, match="vocabulary is not saved: .* is gone"):
    model.save_pretrained(tmp_path / "saved")
  assert (tmp_path / "saved/model.safetensors").exists()
  with pytest.raises(FileNotFoundError, match="court, which .* is gone"):
    model.inputs(["x"])


def test_a_folder_may_be_named_after_construction(tmp_path, monkeypatch):
  (tmp_path / "court").mkdir()
  (tmp_path / "court/vocab.txt").write_text("[UNK]\n")
  monkeypatch.chdir(tmp_path)
  model = _small_classifier()
  model.config._name_or_path = "court"  # pylint: disable=protected-access
  assert model.encoder.text_directory() == str(tmp_path / "court")
  model.save_pretrained("saved")
  assert (tmp_path / "saved/vocab.txt").read_text() == "[UNK]\n"


def test_labels_may_be_a_column():
  logits = torch.randn(4, 3)
  labels = torch.tensor([0, 2, 1, 1])
  model = _small_classifier(num_labels=3)
  loss = model._loss(logits, labels)  # pylint: disable=protected-access
  assert torch.equal(model._loss(logits, labels.view(4, 1)), loss)  # pylint: disable=protected-access
  assert torch.equal(loss, torch.nn.functional.cross_entropy(logits, labels))
  model = _small_classifier(num_labels=1)
  for numbers in (labels, labels.view(4, 1)):
    torch.testing.assert_close(
        model._loss(logits[:, :1], numbers),  # pylint: disable=protected-access
        (logits[:, 0] - labels).square().mean())


@pytest.mark.parametrize("dtype", (torch.bfloat16, torch.float64))
@pytest.mark.parametrize("labels", (1, 3))
def test_scores_of_any_dtype_are_trained(dtype, labels):
  model = _small_classifier(num_labels=labels)
  logits = torch.randn(4, labels).to(dtype).requires_grad_()
  model._loss(logits, torch.rand(4, labels)).backward()  # pylint: disable=protected-access
  assert logits.grad.dtype == dtype and logits.grad.abs().sum() > 0


def test_a_model_of_the_hub_is_saved_with_its_vocabulary(tmp_path, monkeypatch):
  import huggingface_hub  # pylint: disable=import-outside-toplevel
  hub = tmp_path / "hub"
  hub.mkdir()
  (hub / "vocab.txt").write_text("[UNK]\n")
  asked = []

  def download(name, **options):
    asked.append(name)
    assert options["allow_patterns"] == list(etc_text.TEXT_FILES)
    return str(hub)

  monkeypatch.setattr(huggingface_hub, "snapshot_download", download)
  model = _small_classifier()
  model.config._name_or_path = "somebody/court"  # pylint: disable=protected-access
  model.save_pretrained(tmp_path / "saved")
  assert asked == ["somebody/court"]
  assert (tmp_path / "saved/vocab.txt").read_text() == "[UNK]\n"

  # A target of the same name is not taken for the model.
  monkeypatch.chdir(tmp_path)
  model.save_pretrained("somebody/court")
  assert (tmp_path / "somebody/court/vocab.txt").read_text() == "[UNK]\n"
  monkeypatch.chdir(hub)

  # What is there already may be somebody's own, and stays.
  (tmp_path / "saved/vocab.txt").write_text("[PAD]\n")
  with pytest.warns(UserWarning, match="vocab.txt is there already"):
    model.save_pretrained(tmp_path / "saved")
  assert (tmp_path / "saved/vocab.txt").read_text() == "[PAD]\n"

  # A link that leads nowhere is passed over, and the rest is copied.
  (hub / "tokenizer.json").symlink_to("nowhere")
  (hub / "tokenizer_config.json").write_text("{}")
  with pytest.warns(UserWarning, match="tokenizer.json is not saved"):
    model.save_pretrained(tmp_path / "linked")
  assert (tmp_path / "linked/tokenizer_config.json").read_text() == "{}"
  assert (tmp_path / "linked/model.safetensors").exists()

  def fail(name, **options):
    raise OSError(f"no {name} with {options}")

  monkeypatch.setattr(huggingface_hub, "snapshot_download", fail)
  with pytest.warns(UserWarning, match="vocabulary is not saved: no somebody"):
    model.save_pretrained(tmp_path / "again")
  assert (tmp_path / "again/model.safetensors").exists()


def test_a_new_head_has_first_values(exported, tmp_path):
  found = _run(exported, tmp_path, """
import shutil
base = folder + "-encoder"
transformers.AutoModel.from_pretrained(folder, trust_remote_code=True
                                       ).save_pretrained(base)
logger = transformers.logging.set_verbosity_error()
model = transformers.AutoModelForSequenceClassification.from_pretrained(
    base, trust_remote_code=True, num_labels=5)
shutil.rmtree(base)
tensors["weight"] = model.head["classifier"].weight
tensors["bias"] = model.head["classifier"].bias
""")
  assert found["weight"].shape[0] == 5
  assert 0.005 < found["weight"].std() < 0.04 and found["bias"].abs().max() == 0


@pytest.mark.parametrize("plain", ("realetc", "plain"))
def test_new_relative_positions_have_first_values(exported, plain, tmp_path):
  found = _run(exported, tmp_path, """
transformers.logging.set_verbosity_error()
model = transformers.AutoModel.from_pretrained(
    folder, trust_remote_code=True, relative_vocab_size=80,
    ignore_mismatched_sizes=True)
for name, tensor in model.named_parameters():
  if "relative" in name:
    tensors[name] = tensor
""", plain)
  tables = [one for name, one in found.items() if name.endswith("embedding")]
  assert tables and all(0.3 < one.std() < 0.6 for one in tables)
  assert all(one.abs().max() == 0 for name, one in found.items()
             if name.endswith("bias"))
