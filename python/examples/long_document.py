"""Global-local attention over a long document: 4096 tokens, 64 sentences.

Each sentence has a global token, which all long tokens see; long tokens see 64
tokens to each side. Scores of all four blocks are carried from layer to layer.

  python python/examples/long_document.py
"""
import torch
from torch import nn

import realetc


class Layer(nn.Module):
  """ETC's layer: attention and a feed-forward product for both streams."""

  def __init__(self, hidden, heads, radius):
    super().__init__()
    self.attention = realetc.GlobalLocalAttention(hidden, heads, radius,
                                                  max_distance=12)
    self.norm1, self.norm2 = nn.LayerNorm(hidden), nn.LayerNorm(hidden)
    self.feed_forward = nn.Sequential(nn.Linear(hidden, 4 * hidden), nn.GELU(),
                                      nn.Linear(4 * hidden, hidden))

  def forward(self, longs, sentences, pattern, scores):
    long_context, sentence_context, scores = self.attention(
        longs, sentences, pattern, scores)
    longs = self.norm1(longs + long_context)
    sentences = self.norm1(sentences + sentence_context)
    return (self.norm2(longs + self.feed_forward(longs)),
            self.norm2(sentences + self.feed_forward(sentences)), scores)


def main():
  torch.manual_seed(0)
  length, count, hidden = 4096, 64, 64
  words = torch.randint(1000, (1, length))
  mask = torch.arange(length).unsqueeze(0) < 4000  # the rest is padding
  pattern = realetc.patterns.global_local(64, long_mask=mask, max_distance=12)
  embed = nn.Embedding(1000, hidden)
  layers = nn.ModuleList(Layer(hidden, 4, radius=64) for _ in range(3))
  head = nn.Linear(hidden, 1)  # which sentence has word 7?
  sentence_of = torch.arange(length) * count // length
  target = torch.zeros(1, count)
  target[0, sentence_of[(words[0] == 7) & mask[0]]] = 1
  parameters = [*embed.parameters(), *layers.parameters(), *head.parameters()]
  optimizer = torch.optim.Adam(parameters, 1e-3)
  for step in range(1, 6):
    longs = embed(words)
    # A sentence begins as the mean of its words.
    sentences = longs.new_zeros(1, count, hidden).index_add(
        1, sentence_of, longs) * count / length
    scores = None
    for layer in layers:
      longs, sentences, scores = layer(longs, sentences, pattern, scores)
    loss = nn.functional.binary_cross_entropy_with_logits(
        head(sentences).squeeze(-1), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}  loss {loss.item():.4f}")
  print("carried scores:", {name: list(value.shape) for name, value in
                            scores._asdict().items() if name != "layers"})


if __name__ == "__main__":
  main()
