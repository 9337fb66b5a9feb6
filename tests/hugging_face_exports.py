#!/usr/bin/env python3
"""Compares models that `realetc import` and `export` pass on with HuggingFace's.

  python3 tests/hugging_face_exports.py [BUILD]     # default: build/release

Makes small random models of BERT and RoBERTa with each head that we know, saves
them with save_pretrained, has `realetc` import them and export them again, and
loads the result with the same class: no weight may be missing or left over, the
outputs must be the same to the bit, and what config.json says must be kept. Also
what torch.save writes in each form that it has, and tokenizers of other kinds than
transformers takes for a model: AutoTokenizer must give the same ids and padding, and
where tokenizer.json has no post-processor those with the pieces that our tasks put
around texts. Says so and ends where the Python packages torch and transformers are
missing.
"""
import json
import pathlib
import subprocess
import sys
import tempfile

try:
  import safetensors.torch
  import tokenizers
  from tokenizers import models, normalizers, pre_tokenizers, processors, trainers
  import torch
  import transformers
except ImportError as error:
  print(f"skipped: {error}")
  sys.exit(77)

ROOT = pathlib.Path(__file__).resolve().parent.parent
WORDS = 30
# Class and fields of the configuration.
MODELS = [
    ("BertModel", {}),
    ("BertForMaskedLM", {"hidden_act": "relu"}),
    ("BertForPreTraining", {}),
    ("BertForSequenceClassification",
     {"id2label": {0: "x", 1: "y", 2: "z"}, "classifier_dropout": 0.25,
      "problem_type": "multi_label_classification", "pad_token_id": 4}),
    ("BertForTokenClassification", {"id2label": {0: "O", 1: "B", 2: "I"}}),
    ("BertForMultipleChoice", {}),
    ("BertForQuestionAnswering", {}),
    ("RobertaModel", {}),
    ("RobertaForMaskedLM", {}),
    ("RobertaForSequenceClassification",
     {"id2label": {0: "x", 1: "y"}, "problem_type": "single_label_classification"}),
    ("RobertaForTokenClassification", {"id2label": {0: "O", 1: "B", 2: "I"}}),
    ("RobertaForMultipleChoice", {}),
    ("RobertaForQuestionAnswering", {"pad_token_id": 3}),
    ("XLMRobertaForMaskedLM", {}),
    ("XLMRobertaForSequenceClassification", {"id2label": {0: "x", 1: "y"}}),
    ("CamembertModel", {}),
    ("CamembertForQuestionAnswering", {}),
]
KEPT = ["model_type", "architectures", "pad_token_id", "id2label", "label2id",
        "problem_type", "classifier_dropout", "max_position_embeddings",
        "hidden_act", "layer_norm_eps", "type_vocab_size", "vocab_size"]


BERTS = ("[CLS]", "[PAD]", "[SEP]", "[UNK]", "[MASK]")
ROBERTAS = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
TEXTS = ["A long document. With Sentences.", "Na\u00efve <mask> caf\u00e9 [MASK] end",
         "x"]


def byte_level(add_prefix_space=False, normalizer=None):
  tokenizer = tokenizers.Tokenizer(models.BPE())
  tokenizer.normalizer = normalizer
  tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(
      add_prefix_space=add_prefix_space)
  return tokenizer, trainers.BpeTrainer(
      vocab_size=300, special_tokens=list(ROBERTAS),
      initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def wordpiece():
  tokenizer = tokenizers.Tokenizer(models.WordPiece(unk_token="[UNK]"))
  tokenizer.normalizer = normalizers.BertNormalizer()
  tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
  return tokenizer, trainers.WordPieceTrainer(vocab_size=200,
                                              special_tokens=list(BERTS))


def unigram():
  tokenizer = tokenizers.Tokenizer(models.Unigram())
  tokenizer.normalizer = normalizers.NFKC()
  tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
  return tokenizer, trainers.UnigramTrainer(
      vocab_size=200, special_tokens=list(ROBERTAS), unk_token="<unk>")


# Class of a model and its tokenizer.
TOKENIZERS = [
    ("BertModel", wordpiece),
    ("BertModel", byte_level),
    ("RobertaModel", wordpiece),
    ("RobertaModel", byte_level),
    ("RobertaModel", lambda: byte_level(add_prefix_space=True)),
    ("RobertaModel", lambda: byte_level(normalizer=normalizers.Lowercase())),
    ("RobertaModel", unigram),
    ("XLMRobertaModel", unigram),
]


def make_tokenizer(build):
  tokenizer, trainer = build()
  lines = (ROOT / "README.md").read_text(encoding="utf-8").splitlines()
  tokenizer.train_from_iterator(lines, trainer)
  names = ROBERTAS if tokenizer.token_to_id("<s>") is not None else BERTS
  first, pad, last, unknown, mask = names
  # Pieces that tasks put around texts without a post-processor.
  is_byte_level = isinstance(tokenizer.model, models.BPE)
  between = f"{last} {last}" if is_byte_level else last
  tokenizer.post_processor = processors.TemplateProcessing(
      single=f"{first} $A {last}", pair=f"{first} $A {between} $B:1 {last}:1",
      special_tokens=[(name, tokenizer.token_to_id(name))
                      for name in (first, last)])
  return transformers.PreTrainedTokenizerFast(
      tokenizer_object=tokenizer, cls_token=first, pad_token=pad, sep_token=last,
      unk_token=unknown, mask_token=mask)


def make(name, fields):
  """A model with all of its parameters at random."""
  torch.manual_seed(1)
  kind = getattr(transformers, name)
  if "id2label" in fields:
    fields = {**fields, "label2id": {label: i for i, label in
                                     fields["id2label"].items()}}
  config = kind.config_class(
      **{**dict(vocab_size=WORDS, hidden_size=16, num_hidden_layers=2,
                num_attention_heads=2, intermediate_size=24,
                max_position_embeddings=20, initializer_range=0.3), **fields})
  model = kind(config).eval()
  for parameter in model.parameters():
    torch.nn.init.normal_(parameter, std=0.3)
  return model


def outputs(model, name):
  torch.manual_seed(2)
  ids = torch.randint(5, WORDS, (2, 9))
  inputs = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
  inputs["attention_mask"][1, 6:] = 0
  ids[1, 6:] = model.config.pad_token_id
  if "MultipleChoice" in name:
    inputs = {key: value[None] for key, value in inputs.items()}
  with torch.no_grad():
    result = model(**inputs)
  mask = inputs["attention_mask"]
  # Outputs of padding mean nothing.
  return {key: value[mask.bool()] if value.shape[:2] == mask.shape and
          value.dim() > 2 else value.masked_fill(mask == 0, 0)
          if value.shape == mask.shape else value
          for key, value in result.items() if torch.is_tensor(value)}


def run(program, *arguments):
  result = subprocess.run([program, *map(str, arguments)], capture_output=True,
                          text=True)
  if result.returncode != 0:
    sys.exit(f"{' '.join(map(str, arguments))}: {result.stderr}")
  return result


def check_model(program, name, fields, folder):
  model = make(name, fields)
  model.save_pretrained(folder / "there", safe_serialization=False)
  run(program, "import", folder / "there", folder / "ours")
  run(program, "export", folder / "ours", folder / "back", "--format",
      "safetensors")
  back, info = getattr(transformers, name).from_pretrained(
      folder / "back", output_loading_info=True)
  for key, names in info.items():
    if names and not all(each.endswith("position_ids") for each in names):
      sys.exit(f"{name}: {key}: {names}")
  for field in KEPT:
    one, other = getattr(model.config, field, None), getattr(back.config, field,
                                                             None)
    if one != other:
      sys.exit(f"{name}: {field} was {one} and is {other}")
  # Weights lie anywhere in memory where a file is mapped, and PyTorch's products
  # round as weights are aligned. Copies are aligned as those of `model`.
  for parameter in back.parameters():
    parameter.data = parameter.data.clone()
  expected, found = outputs(model, name), outputs(back.eval(), name)
  for key, value in expected.items():
    if not torch.equal(value, found[key]):
      sys.exit(f"{name}: {key} differs by {(value - found[key]).abs().max()}")
  print(f"{name}: the same")


def check_tokenizer(program, name, build, has_processor, folder):
  before = make_tokenizer(build)
  make(name, {"vocab_size": len(before)}).save_pretrained(folder / "there")
  before.save_pretrained(folder / "there")
  if not has_processor:
    path = folder / "there/tokenizer.json"
    contents = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(contents | {"post_processor": None}),
                    encoding="utf-8")
  run(program, "import", folder / "there", folder / "ours")
  for style in ("safetensors", "huggingface"):
    run(program, "export", folder / "ours", folder / style, "--format", style)
    after = transformers.AutoTokenizer.from_pretrained(folder / style,
                                                       trust_remote_code=True)
    for texts in ((TEXTS,), (TEXTS, TEXTS[::-1])):
      expected, found = (each(*texts, padding=True)["input_ids"]
                         for each in (before, after))
      if expected != found:
        sys.exit(f"{name}, {style}: ids were {expected} and are {found}")
    if after.mask_token_id != before.mask_token_id:
      sys.exit(f"{name}, {style}: the mask is {after.mask_token}")
  print(f"{name}, {type(before.backend_tokenizer.model).__name__}"
        f"{'' if has_processor else ' without a post-processor'}: the same ids")


def check_torch_save(program, folder):
  """A state dict with entries that nothing reads, in each form."""
  model = make("BertModel", {})
  model.save_pretrained(folder / "there", safe_serialization=False)
  state = dict(model.state_dict())
  marked = torch.nn.Parameter(state["embeddings.LayerNorm.weight"])
  marked.note = "an attribute"
  state["embeddings.LayerNorm.weight"] = marked
  state["odd.complex"] = torch.zeros(2, dtype=torch.complex64)
  state["odd.sparse"] = torch.eye(2).to_sparse()
  state["odd.quantized"] = torch.quantize_per_tensor(torch.ones(2), 0.1, 0,
                                                     torch.qint8)
  state["odd.set"] = {1, 2}
  state["odd.device"] = torch.device("cpu")
  imported = []
  for protocol in (2, 3, 4):
    for is_zip in (True, False):
      torch.save(state, folder / "there/pytorch_model.bin",
                 pickle_protocol=protocol,
                 _use_new_zipfile_serialization=is_zip)
      target = folder / f"ours-{protocol}-{is_zip}"
      run(program, "import", folder / "there", target)
      imported.append(safetensors.torch.load_file(target / "model.safetensors"))
      if imported[-1].keys() != imported[0].keys():
        sys.exit(f"torch.save, protocol {protocol}: other tensors")
      for key, value in imported[0].items():
        if not torch.equal(imported[-1][key], value):
          sys.exit(f"torch.save, protocol {protocol}: {key} differs")
  run(program, "inspect", folder / "there")
  run(program, "export", target, folder / "back", "--format", "safetensors")
  back = transformers.BertModel.from_pretrained(folder / "back")
  for key, value in back.state_dict().items():
    if not torch.equal(value, state[key]):
      sys.exit(f"torch.save: {key} differs")
  print("torch.save: the same in each form")


def main():
  build = sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release"
  program = pathlib.Path(build) / "bin/realetc"
  for name, fields in MODELS:
    with tempfile.TemporaryDirectory() as folder:
      check_model(program, name, fields, pathlib.Path(folder))
  for name, build in TOKENIZERS:
    for has_processor in (True, False):
      with tempfile.TemporaryDirectory() as folder:
        check_tokenizer(program, name, build, has_processor,
                        pathlib.Path(folder))
  with tempfile.TemporaryDirectory() as folder:
    check_torch_save(program, pathlib.Path(folder))


if __name__ == "__main__":
  main()
