"""Trains ETC with gates on documents, and gives vectors of their sentences.

  python python/examples/documents.py [CHECKPOINT]

CHECKPOINT is a directory that `realetc import`, `realetc export --format
huggingface` or a run of `realetc train` wrote; without it a small model with
first values and a vocabulary of letters is made.
"""
import pathlib
import random
import sys
import tempfile

import torch
from torch import nn

import realetc


def small_checkpoint(directory):
  """A checkpoint of ours with first values."""
  letters = "abcdefghijklmnopqrstuvwxyz."
  pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *letters,
            *(f"##{letter}" for letter in letters)]
  torch.manual_seed(0)
  realetc.EtcModel(realetc.EtcConfig(
      len(pieces), hidden_size=32, num_hidden_layers=2, num_attention_heads=4,
      local_radius=8, relative_pos_max_distance=4, intermediate_size=64,
      initializer_range=0.1, residual_attention="gate")).save_pretrained(
          directory)
  (pathlib.Path(directory) / "vocab.txt").write_text("\n".join(pieces))
  return directory


def documents(count):
  """Texts of five sentences, of which one says who won."""
  others = ["Rain fell.", "We sang.", "She left.", "He wrote.", "They met."]
  labels = torch.arange(count) % 2
  texts = []
  for label in labels:
    sentences = random.choices(others, k=5)
    sentences[random.randrange(5)] = ("Owners won.", "Tenants did.")[label]
    texts.append(" ".join(sentences))
  return texts, labels


class Classifier(nn.Module):
  """Two labels by the first global token, which sees all of the text."""

  def __init__(self, directory):
    super().__init__()
    self.encoder = realetc.EtcModel.from_pretrained(directory)
    self.output = nn.Linear(self.encoder.config.hidden_size, 2)

  def forward(self, texts):
    encoded = self.encoder.run_texts(self.encoder.inputs(texts))
    return self.output(encoded.global_output[:, 0])


def main():
  random.seed(0)
  with tempfile.TemporaryDirectory() as folder:
    model = Classifier(sys.argv[1] if len(sys.argv) > 1
                       else small_checkpoint(folder)).train()
    optimizer = torch.optim.Adam(model.parameters(), 3e-3)
    for step in range(1, 51):
      texts, labels = documents(32)
      loss = nn.functional.cross_entropy(model(texts), labels)
      optimizer.zero_grad()
      loss.backward()
      optimizer.step()
      if step == 1 or step % 10 == 0:
        print(f"step {step}  loss {loss.item():.4f}")
    text = texts[0]
    vectors = model.encoder.embed([text])[0]
    for vector, (begin, end) in zip(vectors.sentences, vectors.spans):
      print(text[begin:end], [round(one, 2) for one in vector[:4].tolist()])


if __name__ == "__main__":
  main()
