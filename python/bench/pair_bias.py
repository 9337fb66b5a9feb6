"""Attention with a learned bias of each score: time and memory, in one run.

  python python/bench/pair_bias.py [--length 4096] [--heads 8] [--threads 2]

Forward and backward pass at one length, with gradients for queries, keys, values
and the bias [1, heads, length, length]:

  realetc         residual_attention
  math            scaled_dot_product_attention with an additive mask that needs
                  a gradient, which torch computes by its math backend
  plain           matmul, add, softmax, matmul
  flex, forward   flex_attention compiled, forward only: it has no backward pass
                  on the CPU (left out without --flex)

Each in a process of its own, for its peak of memory: that of the process less
what it had before the first pass, inputs and their gradients left out. The
median of --repetitions passes after one that warms up; "CPU s" is the time of all
threads in both passes, which other programs on the machine change less.
"""
import argparse
import json
import resource
import statistics
import subprocess
import sys
import time

VARIANTS = ("realetc", "math", "plain", "flex")


def attention_of(name):
  """The function of a variant: (q, k, v, bias) -> context."""
  # Here, so that the parent needs no torch.
  import torch
  from torch.nn import functional

  def plain(q, k, v, bias):
    scores = q @ k.transpose(-2, -1) / q.shape[-1]**0.5 + bias
    return scores.softmax(-1) @ v

  if name == "realetc":
    import realetc
    return lambda q, k, v, bias: realetc.residual_attention(q, k, v, bias)[0]
  if name == "math":
    return lambda q, k, v, bias: functional.scaled_dot_product_attention(
        q, k, v, attn_mask=bias)
  if name == "flex":
    from torch.nn.attention import flex_attention
    compiled = torch.compile(flex_attention.flex_attention)

    def flex(q, k, v, bias):
      return compiled(q, k, v, score_mod=lambda score, b, h, i, j:
                      score + bias[b, h, i, j])
    return flex
  return plain


def measure(name, arguments):
  """Prints the results of one variant as JSON."""
  import torch

  torch.set_num_threads(arguments.threads)
  torch.manual_seed(0)
  forward_only = name == "flex"

  def random(*shape):
    return torch.randn(shape).requires_grad_(not forward_only)

  shape = (1, arguments.heads, arguments.length, arguments.head_size)
  inputs = [random(*shape) for _ in range(3)]
  inputs.append(random(1, arguments.heads, arguments.length, arguments.length))
  gradient = torch.randn(shape)
  attend = attention_of(name)
  if not forward_only:  # gradients, as an optimizer step leaves them
    for tensor in inputs:
      tensor.grad = torch.zeros_like(tensor)
  before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  times = []
  cpu_times = []
  for _ in range(arguments.repetitions + 1):
    cpu_start = time.process_time()
    start = time.perf_counter()
    context = attend(*inputs)
    middle = time.perf_counter()
    if not forward_only:
      context.backward(gradient)
    times.append((middle - start, time.perf_counter() - middle))
    cpu_times.append(time.process_time() - cpu_start)
    checksum = context.double().sum().item()
    del context
  after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
  print(json.dumps({
      "forward": statistics.median(one for one, _ in times[1:]),
      "backward": statistics.median(one for _, one in times[1:]),
      "cpu": statistics.median(cpu_times[1:]), "peak": (after - before) * 1024, "checksum": checksum,
      "torch": torch.__version__}))


def main():
  parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
  parser.add_argument("--length", type=int, default=4096)
  parser.add_argument("--heads", type=int, default=8)
  parser.add_argument("--head-size", type=int, default=64)
  parser.add_argument("--threads", type=int, default=2)
  parser.add_argument("--repetitions", type=int, default=3)
  parser.add_argument("--flex", action="store_true",
                      help="flex_attention's forward pass as well")
  parser.add_argument("--variant", choices=VARIANTS, help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  if arguments.variant:
    measure(arguments.variant, arguments)
    return
  print(f"{arguments.length} tokens, {arguments.heads} heads of "
        f"{arguments.head_size}, {arguments.threads} threads, median of "
        f"{arguments.repetitions}")
  print("| | forward s | backward s | both s | CPU s | peak MB |\n| --- | --- | "
        "--- | --- | --- | --- |")
  for name in VARIANTS if arguments.flex else VARIANTS[:-1]:
    output = subprocess.run(
        [sys.executable, __file__, *sys.argv[1:], "--variant", name],
        check=True, stdout=subprocess.PIPE, text=True).stdout
    result = json.loads(output.splitlines()[-1])
    both = result["forward"] + result["backward"]
    backward = "" if name == "flex" else f"{result['backward']:.2f}"
    print(f"| {name} | {result['forward']:.2f} | {backward} | {both:.2f} | "
          f"{result['cpu']:.2f} | "
          f"{result['peak'] / 1e6:.0f} |", flush=True)


if __name__ == "__main__":
  main()
