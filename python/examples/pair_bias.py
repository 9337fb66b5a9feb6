"""Attention with a learned bias for each pair of tokens, as in AlphaFold.

  python python/examples/pair_bias.py
"""
import torch
from torch import nn

import realetc


class PairBiasAttention(nn.Module):
  """Tokens [B, T, hidden] attend with a bias from pairs [B, T, T, pair]."""

  def __init__(self, hidden, pair, heads):
    super().__init__()
    self.heads = heads
    self.qkv = nn.Linear(hidden, 3 * hidden)
    self.bias = nn.Linear(pair, heads, bias=False)
    self.output = nn.Linear(hidden, hidden)

  def forward(self, tokens, pairs):
    q, k, v = self.qkv(tokens).unflatten(
        -1, (3 * self.heads, -1)).transpose(1, 2).chunk(3, 1)
    bias = self.bias(pairs).permute(0, 3, 1, 2)  # [B, heads, T, T]
    context, _ = realetc.residual_attention(q, k, v, previous=bias)
    return self.output(context.transpose(1, 2).flatten(2))


def main():
  torch.manual_seed(0)
  model = PairBiasAttention(hidden=32, pair=8, heads=4)
  optimizer = torch.optim.Adam(model.parameters(), 1e-2)
  pairs = torch.randn(2, 40, 40, 8)
  tokens = torch.randn(2, 40, 32)
  # Each token should get what the token with the largest first pair feature has.
  target = tokens.gather(1, pairs[..., 0].argmax(-1, keepdim=True).expand(
      -1, -1, 32))
  for step in range(1, 101):
    loss = nn.functional.mse_loss(model(tokens, pairs), target)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    if step == 1 or step % 20 == 0:
      print(f"step {step}  loss {loss.item():.4f}")


if __name__ == "__main__":
  main()
