"""Residual scores in torch.nn.TransformerEncoderLayer, and a training step.

  python python/examples/encoder_layer.py
"""
import torch
from torch import nn

import realetc


class ResidualEncoderLayer(nn.TransformerEncoderLayer):
  """The same layer and weights, with scores carried from layer to layer."""

  def forward(self, x, scores=None):
    attention = self.self_attn
    q, k, v = nn.functional.linear(
        x, attention.in_proj_weight, attention.in_proj_bias).unflatten(
            -1, (3 * attention.num_heads, -1)).transpose(1, 2).chunk(3, 1)
    context, scores = realetc.residual_attention(q, k, v, previous=scores)
    x = self.norm1(x + self.dropout1(
        attention.out_proj(context.transpose(1, 2).flatten(2))))
    return self.norm2(x + self._ff_block(x)), scores


def main():
  torch.manual_seed(0)
  layers = nn.ModuleList(
      ResidualEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
      for _ in range(4))
  head = nn.Linear(64, 10)
  optimizer = torch.optim.Adam([*layers.parameters(), *head.parameters()], 1e-3)
  tokens = torch.randn(8, 50, 64)
  labels = torch.randint(10, (8,))
  for step in range(1, 11):
    x, scores = tokens, None
    for layer in layers:
      x, scores = layer(x, scores)
    loss = nn.functional.cross_entropy(head(x.mean(1)), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step}  loss {loss.item():.4f}")


if __name__ == "__main__":
  main()
