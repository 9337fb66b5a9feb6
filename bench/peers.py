#!/usr/bin/env python3
"""Measures what else computes long documents in PyTorch, on a GPU or a CPU.

  python3 bench/peers.py [--seconds 150] [--json FILE] [--ours FILE]...
  python3 bench/peers.py --device cpu --cases encoder/bert --precisions bf16
  python3 bench/peers.py --device cpu --tiny   # tries all of it

Encoders of BERT base's size (12 layers, hidden 768, 12 heads of 64, 3072 inner
features, 30522 pieces), random weights, one example of L tokens and, but for
BERT, G = 256 global tokens before them:

  encoder/bert           transformers' BertModel, attention "sdpa", dropout 0.1
  encoder/bert/dropout:0 the same without dropout
  encoder/longformer     transformers' LongformerModel, attention_window 168, so
                         that a token sees 84 to each side; the model pads L + G
                         to a multiple of 168
  encoder/flex           layers of this file, whose attention is flex_attention
                         with ETC's pattern (radius 84; g2g, g2l, l2g, l2l); its
                         weights have no dropout, which flex_attention has not
  encoder/flex-carried   the same with RealFormer's scores, from layer to layer

`training` is forward, mean of squares of all outputs, backward and an update by
torch.optim.AdamW(fused=True); `inference` is forward without gradients, in eval
mode. bf16 is torch.autocast over float32 weights, in both. float32 products are
without TensorFloat-32, PyTorch's default; --tf32 turns it on.

One layer's attention (L + G tokens, 12 heads of 64; bf16 tensors or float32):

  attention/flex-carried   scores of the layer before, a dense tensor
                           [12, L + G, L + G] that requires a gradient, are
                           added by score_mod
  attention/flex-stacked   the same, and the scores of the next layer: their
                           product and, backward, their gradient (given)
  attention/flex           without carried scores
  attention/sdpa           scaled_dot_product_attention of all pairs
  attention/sdpa-carried   the same; carried scores with the pattern's mask are
                           its attn_mask, which may require a gradient

flex_attention returns no scores, so that those of the next layer are
baddbmm(carried, query, key^T) for all pairs. Its gradient for a captured tensor
is as large as the tensor: zeros in float32, filled by atomic additions where
the mask lets something through, then rounded to the tensor's type. Its kernels
compute offsets into captured tensors in 32 bits, so from 2^31 elements on heads
are taken in groups (`groups` in the results) with a tensor each; one tensor
would be read at wrong addresses (pytorch/pytorch#145869). Outputs of the last
head, and gradients of its carried scores, are compared with the formula in a
few rows.

Times are medians of CUDA events, or on a CPU of a clock, with two threads, after
a first call, which compiles
(torch.compile, dynamic=False, of flex_attention alone), and one more. peak is
what torch.cuda.max_memory_allocated says of one call beside weights, their
gradients and the optimizer; of `attention` beside queries, keys, values, their
gradients and those of outputs, but with carried scores and their gradients.

--ours joins Google Benchmark's JSON of bench/encoder_bench or attention_bench:
each peer's time and memory over ours, of the fastest run whose name has
device:cuda, or for a CPU threads:2, and the same sizes, without a period. Cases run in the order of the
table in a process, and in another one after an error that leaves CUDA unusable.
What --seconds has no room for is in the table as "not measured"; a case that
still runs 15 seconds later is ended.
"""
import argparse
import dataclasses
import functools
import gc
import importlib.metadata
import json
import math
import os
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import threading
import time

from measured import Measured

NOT_MEASURED = "not measured: out of time"
NO_BACKWARD = "not measured: flex_attention has no backward pass on the CPU"
VOCABULARY = 30522
GRACE = 15  # seconds that a running case may take beyond --seconds
UNUSABLE = 4  # exit status of a worker that cannot use its device any more
WORKER = "--worker"


@dataclasses.dataclass(frozen=True)
class Sizes:
  """Sizes of the model, and of what is measured."""
  layers: int = 12
  hidden: int = 768
  heads: int = 12
  inner: int = 3072
  globals_: int = 256
  radius: int = 84
  square: int = 8192  # of the matrices whose product is a ceiling
  copied: int = 1 << 30  # bytes
  measure_seconds: float = 0.5
  captured_limit: int = 1 << 31  # elements that 32 bits can index

  @property
  def head_dim(self):
    return self.hidden // self.heads


# With a limit by which two heads of 64 + 16 tokens are two groups.
TINY = Sizes(layers=2, hidden=32, heads=2, inner=64, globals_=16, radius=8,
             square=256, copied=1 << 22, measure_seconds=0.05,
             captured_limit=(64 + 16) ** 2 + 1)


@dataclasses.dataclass(frozen=True)
class Case:
  name: str
  length: int = 0
  precision: str = "bf16"
  needs: float = 6  # seconds that should be left when it begins


def all_cases(lengths, precisions):
  """The cases, the most important first."""
  order = [("attention/flex-carried", 25), ("attention/flex-stacked", 6),
           ("encoder/flex-carried", 25), ("encoder/bert", 6),
           ("encoder/bert/dropout:0", 6), ("encoder/longformer", 6),
           ("attention/sdpa", 4), ("attention/flex", 20),
           ("encoder/flex", 10), ("attention/sdpa-carried", 4)]
  return [Case("ceilings", needs=4)] + [
      Case(name, length, precision, needs) for precision in precisions
      for name, needs in order for length in lengths]


class Machine:
  """A device, with its clock and its memory."""

  def __init__(self, torch, device, sizes):
    self.torch = torch
    self.device = device
    self.is_cuda = device == "cuda"
    self.sizes = sizes

  def synchronize(self):
    if self.is_cuda:
      self.torch.cuda.synchronize()

  def allocated(self):
    return self.torch.cuda.memory_allocated() if self.is_cuda else 0

  def peak(self, function, before):
    """Bytes at the peak of `function` beyond `before`; None of the CPU."""
    if not self.is_cuda:
      function()
      return None
    self.synchronize()
    self.torch.cuda.reset_peak_memory_stats()
    function()
    self.synchronize()
    return self.torch.cuda.max_memory_allocated() - before

  def timed(self, function, calls):
    """Seconds of each of some calls, which CUDA gets one after the other."""
    if not self.is_cuda:
      marks = [time.perf_counter()]
      for _ in range(calls):
        function()
        marks.append(time.perf_counter())
      return [end - start for start, end in zip(marks, marks[1:])]
    marks = [self.torch.cuda.Event(enable_timing=True)
             for _ in range(calls + 1)]
    marks[0].record()
    for mark in marks[1:]:
      function()
      mark.record()
    self.synchronize()
    return [start.elapsed_time(end) / 1e3
            for start, end in zip(marks, marks[1:])]

  def first_call(self, function):
    """Seconds of a call that may compile."""
    start = time.perf_counter()
    function()
    self.synchronize()
    return time.perf_counter() - start

  def measure(self, function):
    """Median and spread of calls, of which the first does not count."""
    [first] = self.timed(function, 1)
    calls = min(max(int(self.sizes.measure_seconds / first), 3), 50)
    seconds = self.timed(function, calls)
    return {"ms": 1e3 * statistics.median(seconds),
            "min_ms": 1e3 * min(seconds), "max_ms": 1e3 * max(seconds),
            "calls": len(seconds)}

  def autocast(self, precision):
    return self.torch.autocast(self.device, dtype=self.torch.bfloat16,
                               enabled=precision == "bf16")

  def dtype(self, precision):
    return (self.torch.bfloat16 if precision == "bf16" else
            self.torch.float32)


class EtcAttention:
  """ETC's pattern by flex_attention: global tokens, then long ones."""

  def __init__(self, machine, length, autotune):
    from torch.nn.attention import flex_attention
    torch, sizes = machine.torch, machine.sizes
    globals_, radius = sizes.globals_, sizes.radius
    self.machine = machine
    self.tokens = globals_ + length
    self.scale = sizes.head_dim ** -0.5

    def visible(_batch, _head, query, key):
      return ((query < globals_) | (key < globals_) |
              ((query - key).abs() <= radius))

    self.block_mask = flex_attention.create_block_mask(
        visible, None, None, self.tokens, self.tokens, device=machine.device)
    self.visible = visible
    torch._dynamo.config.recompile_limit = 64
    self.plain, self.carried = (torch.compile(
        function, dynamic=False, fullgraph=True,
        mode="max-autotune-no-cudagraphs" if autotune else None)
        for function in (flex_plain, flex_carried))
    self.groups = self.head_groups()
    self.has_backward = machine.is_cuda

  def head_groups(self):
    """Slices of heads whose scores 32 bits can index."""
    sizes = self.machine.sizes
    most = max(1, (sizes.captured_limit - 1) // self.tokens ** 2)
    number = math.ceil(sizes.heads / most)
    heads = math.ceil(sizes.heads / number)
    return [slice(at, min(at + heads, sizes.heads))
            for at in range(0, sizes.heads, heads)]

  def attend(self, query, key, value, carried):
    """Attention to what is visible; `carried` is a list of a tensor [heads,
    tokens, tokens] for each group of heads, or None."""
    # Outside autocast, as a state of its own would be compiled once more.
    with self.machine.torch.autocast(
        self.machine.device, dtype=self.machine.torch.bfloat16, enabled=False):
      if carried is None:
        return self.plain(query, key, value, self.block_mask)
      outputs = [
          self.carried(query[:, heads], key[:, heads], value[:, heads], scores,
                       self.block_mask)
          for heads, scores in zip(self.groups, carried)]
    return (outputs[0] if len(outputs) == 1 else
            self.machine.torch.cat(outputs, dim=1))

  def next_scores(self, query, key, carried):
    """Scores of all pairs with those of the layer before, by group."""
    torch = self.machine.torch
    pairs = [(query[0, heads], key[0, heads].transpose(-2, -1))
             for heads in self.groups]
    if carried is None:
      return [torch.bmm(queries * self.scale, keys) for queries, keys in pairs]
    return [torch.baddbmm(scores, queries, keys, alpha=self.scale)
            for scores, (queries, keys) in zip(carried, pairs)]


def flex_plain(query, key, value, block_mask):
  from torch.nn.attention.flex_attention import flex_attention
  return flex_attention(query, key, value, block_mask=block_mask)


def flex_carried(query, key, value, carried, block_mask):
  from torch.nn.attention.flex_attention import flex_attention

  def add(score, _batch, head, query_index, key_index):
    return score + carried[head, query_index, key_index]

  return flex_attention(query, key, value, score_mod=add,
                        block_mask=block_mask)


def make_flex_encoder(machine, attention, carries):
  """A post-norm encoder of BERT's layers whose attention is `attention`."""
  torch, sizes = machine.torch, machine.sizes
  nn = torch.nn

  class Layer(nn.Module):

    def __init__(self):
      super().__init__()
      self.qkv = nn.Linear(sizes.hidden, 3 * sizes.hidden)
      self.out = nn.Linear(sizes.hidden, sizes.hidden)
      self.norm = nn.LayerNorm(sizes.hidden)
      self.inner = nn.Linear(sizes.hidden, sizes.inner)
      self.outer = nn.Linear(sizes.inner, sizes.hidden)
      self.last_norm = nn.LayerNorm(sizes.hidden)
      self.dropout = nn.Dropout(0.1)

    def forward(self, hidden, carried, is_last):
      query, key, value = split_heads(self.qkv(hidden), sizes)
      heads = attention.attend(query, key, value, carried)
      scores = (attention.next_scores(query, key, carried)
                if carries and not is_last else None)
      heads = heads.transpose(1, 2).flatten(2)
      hidden = self.norm(hidden + self.dropout(self.out(heads)))
      inner = nn.functional.gelu(self.inner(hidden))
      return self.last_norm(hidden + self.dropout(self.outer(inner))), scores

  class Encoder(nn.Module):

    def __init__(self):
      super().__init__()
      self.pieces = nn.Embedding(VOCABULARY, sizes.hidden)
      self.positions = nn.Embedding(attention.tokens, sizes.hidden)
      self.norm = nn.LayerNorm(sizes.hidden)
      self.dropout = nn.Dropout(0.1)
      self.layers = nn.ModuleList(Layer() for _ in range(sizes.layers))

    def forward(self, ids):
      hidden = self.pieces(ids) + self.positions.weight
      hidden, carried = self.dropout(self.norm(hidden)), None
      for number, layer in enumerate(self.layers, 1):
        hidden, carried = layer(hidden, carried, number == sizes.layers)
      return hidden

  return Encoder()


def split_heads(qkv, sizes):
  """[batch, tokens, 3 hidden] as three of [batch, heads, tokens, head_dim]."""
  return qkv.unflatten(-1, (3, sizes.heads, sizes.head_dim)).permute(
      2, 0, 3, 1, 4).unbind(0)


def make_transformers_model(machine, kind, length, dropout):
  """(model, its inputs, number of tokens)."""
  import transformers
  torch, sizes = machine.torch, machine.sizes
  common = {"vocab_size": VOCABULARY, "hidden_size": sizes.hidden,
            "num_hidden_layers": sizes.layers,
            "num_attention_heads": sizes.heads,
            "intermediate_size": sizes.inner, "hidden_dropout_prob": dropout,
            "attention_probs_dropout_prob": dropout}
  tokens = length if kind == "bert" else length + sizes.globals_
  ids = torch.randint(5, VOCABULARY, (1, tokens), device=machine.device)
  inputs = {"input_ids": ids}
  with torch.device(machine.device):
    if kind == "bert":
      model = transformers.BertModel(transformers.BertConfig(
          **common, max_position_embeddings=tokens,
          attn_implementation="sdpa"), add_pooling_layer=False)
      if model.config._attn_implementation != "sdpa":
        raise RuntimeError("BertModel did not take attention by SDPA")
    else:
      window = 2 * sizes.radius
      padded = math.ceil(tokens / window) * window
      model = transformers.LongformerModel(transformers.LongformerConfig(
          **common, max_position_embeddings=padded + 2, attention_window=window,
          pad_token_id=1), add_pooling_layer=False)
      inputs["attention_mask"] = torch.ones_like(ids)
      inputs["global_attention_mask"] = (
          torch.arange(tokens) < sizes.globals_).long()[None]
  return model, inputs, tokens


class Worker:
  """Measures cases one after the other; yields their rows."""

  def __init__(self, arguments):
    import torch
    if arguments.device == "cuda" and not torch.cuda.is_available():
      sys.exit(f"torch {torch.__version__} finds no CUDA device; --device cpu "
               "--tiny tries the rest")
    self.torch = torch
    self.sizes = TINY if arguments.tiny else Sizes()
    self.machine = Machine(torch, arguments.device, self.sizes)
    self.autotune = arguments.autotune
    if arguments.device == "cpu":
      torch.set_num_threads(2)
    if arguments.tf32:
      torch.set_float32_matmul_precision("high")
    torch.manual_seed(1)
    # Makes cuBLAS's workspaces of both threads, which belong to no case.
    square = torch.randn(8, 8, device=arguments.device, requires_grad=True)
    (square @ square).sum().backward()
    # Masks of one length serve all its cases.
    self.attention = functools.lru_cache(maxsize=None)(
        lambda length: EtcAttention(self.machine, length, self.autotune))

  def run(self, case):
    if case.name == "ceilings":
      return self.ceilings()
    kind, name = case.name.split("/", 1)
    return (self.encoder if kind == "encoder" else self.one_layer)(name, case)

  def ceilings(self):
    torch, machine, sizes = self.torch, self.machine, self.sizes
    left, right = (torch.randn(sizes.square, sizes.square, dtype=torch.bfloat16,
                               device=machine.device) for _ in range(2))
    product = torch.empty_like(left)
    row = machine.measure(lambda: torch.mm(left, right, out=product))
    rate = 2e-9 * sizes.square ** 3 / row["ms"]
    yield {"what": f"bf16 product of {sizes.square}^3", **row,
           "rate": f"{rate:.0f} TFLOP/s"}
    source = torch.randn(sizes.copied // 4, device=machine.device)
    target = torch.empty_like(source)
    row = machine.measure(lambda: target.copy_(source))
    rate = 2e-6 * sizes.copied / row["ms"]
    yield {"what": f"copy of {sizes.copied >> 20} MiB", **row,
           "rate": f"{rate:.0f} GB/s read and written"}

  def encoder(self, name, case):
    torch, machine = self.torch, self.machine
    if name.startswith("flex"):
      attention = self.attention(case.length)
      with torch.device(machine.device):
        model = make_flex_encoder(machine, attention, name == "flex-carried")
        ids = torch.randint(5, VOCABULARY, (1, attention.tokens))
      tokens = attention.tokens
      forward = lambda: model(ids)
      extra = ({"groups": len(attention.groups)} if name == "flex-carried"
               else {})
    else:
      dropout = 0.0 if name.endswith("/dropout:0") else 0.1
      model, inputs, tokens = make_transformers_model(
          machine, name.split("/")[0], case.length, dropout)
      forward = lambda: model(**inputs)[0]
      extra = {}
    context = functools.partial(machine.autocast, case.precision)
    extra["tokens"] = tokens
    if name.startswith("flex") and not attention.has_backward:
      yield {"what": "training", **extra, "error": NO_BACKWARD}
    else:
      yield from guarded("training", extra, lambda: self.training(
          model, forward, context))
      model.zero_grad(set_to_none=True)
    model.eval()
    yield from guarded("inference", extra, lambda: self.inference(
        forward, context))

  def training(self, model, forward, context):
    machine = self.machine
    model.train()
    optimizer = self.torch.optim.AdamW(model.parameters(), lr=1e-6, fused=True)

    def step(keep_gradients=False):
      optimizer.zero_grad(set_to_none=not keep_gradients)
      with context():
        output = forward()
      output.float().square().mean().backward()
      optimizer.step()

    first = machine.first_call(step)
    row = machine.measure(step)
    # Gradients remain: `before` has them, as it has weights and optimizer.
    before = machine.allocated()
    peak = machine.peak(lambda: step(keep_gradients=True), before)
    return {"first_s": first, **row, "peak_bytes": peak}

  def inference(self, forward, context):
    machine = self.machine

    def run():
      with self.torch.no_grad(), context():
        forward()

    first = machine.first_call(run)
    before = machine.allocated()
    peak = machine.peak(run, before)
    return {"first_s": first, **machine.measure(run), "peak_bytes": peak}

  def one_layer(self, name, case):
    yield from OneLayer(self, name, case).rows()


class OneLayer:
  """Attention of one layer, by one of the ways named above."""

  def __init__(self, worker, name, case):
    torch, machine, sizes = worker.torch, worker.machine, worker.sizes
    self.torch, self.machine, self.sizes = torch, machine, sizes
    self.name = name
    self.case = case
    self.tokens = sizes.globals_ + case.length
    dtype = machine.dtype(case.precision)
    self.dtype = dtype
    self.etc = None if name == "sdpa" else worker.attention(case.length)
    # In one tensor, as a layer has them, so that strides are the encoder's.
    qkv = torch.randn(1, self.tokens, 3 * sizes.hidden, dtype=dtype,
                      device=machine.device)
    self.inputs = [part.detach() for part in split_heads(qkv, sizes)]
    self.output_gradient = torch.randn(
        1, self.tokens, sizes.heads, sizes.head_dim, dtype=dtype,
        device=machine.device).transpose(1, 2)
    self.carries = name.endswith(("-carried", "-stacked"))
    self.is_stacked = name.endswith("-stacked")
    self.is_flex = name.startswith("flex")

  def make_carried(self, before):
    """Scores of the layer before, and the gradients of the next one's."""
    torch, sizes = self.torch, self.sizes
    self.before = before
    self.carried = self.next_gradients = None
    if not self.carries:
      return

    def tensors():
      groups = (self.etc.groups if self.is_flex else [slice(0, sizes.heads)])
      return [torch.randn(heads.stop - heads.start, self.tokens, self.tokens,
                          dtype=self.dtype, device=self.machine.device)
              for heads in groups]

    self.carried = tensors()
    if not self.is_flex:
      index = torch.arange(self.tokens, device=self.machine.device)
      self.hidden = ~self.etc.visible(0, 0, index[:, None], index[None, :])
    if self.is_stacked:
      self.next_gradients = tensors()

  def forward(self):
    """(outputs, scores for the next layer or None)."""
    query, key, value = self.inputs
    functional = self.torch.nn.functional
    if self.name == "sdpa":
      return functional.scaled_dot_product_attention(query, key, value), None
    if not self.is_flex:
      mask = self.carried[0].masked_fill(self.hidden, -math.inf)[None]
      return functional.scaled_dot_product_attention(
          query, key, value, attn_mask=mask), None
    outputs = self.etc.attend(query, key, value, self.carried)
    scores = (self.etc.next_scores(query, key, self.carried)
              if self.is_stacked else None)
    return outputs, scores

  def infer(self):
    with self.torch.no_grad(), self.machine.autocast(self.case.precision):
      return self.forward()[0]

  def step(self):
    """Forward and backward; gradients are new tensors, as in a stack."""
    for tensor in [*self.inputs, *(self.carried or [])]:
      tensor.grad = None
    with self.machine.autocast(self.case.precision):
      outputs, scores = self.forward()
    self.torch.autograd.backward(
        [outputs, *(scores or [])],
        [self.output_gradient, *(self.next_gradients or [])])

  def rows(self):
    machine = self.machine
    extra = {"tokens": self.tokens}
    if self.carries and self.is_flex:
      extra["groups"] = len(self.etc.groups)
    failed = list(guarded("made", extra, lambda: self.make_carried(
        machine.allocated()) or {}))
    if "error" in failed[0]:
      yield {**failed[0], "what": "forward"}
      return
    if self.carries:
      extra["carried_bytes"] = sum(scores.nbytes for scores in self.carried)
    yield from guarded("forward", extra, self.measure_forward)
    if self.is_flex and not self.etc.has_backward:
      yield {"what": "forward and backward", **extra, "error": NO_BACKWARD}
      return
    yield from guarded("forward and backward", extra, self.measure_step)

  def measure_forward(self):
    machine = self.machine
    first = machine.first_call(self.infer)
    peak = machine.peak(self.infer, self.before)
    return {"first_s": first, **machine.measure(self.infer),
            "peak_bytes": peak, "output_error": self.output_error()}

  def measure_step(self):
    machine = self.machine
    for tensor in [*self.inputs, *(self.carried or [])]:
      tensor.requires_grad_()
    gradients = sum(tensor.nbytes for tensor in self.inputs)
    first = machine.first_call(self.step)
    peak = machine.peak(self.step, self.before + gradients)
    row = {"first_s": first, **machine.measure(self.step), "peak_bytes": peak}
    if self.carries:
      row["gradient_error"] = self.gradient_error()
    return row

  def formula(self, rows):
    """Probabilities and outputs of the last head in float32."""
    query, key, value = (part[0, -1].detach().float() for part in self.inputs)
    scores = query[rows] @ key.T * self.sizes.head_dim ** -0.5
    if self.carries:
      scores = scores + self.carried[-1][-1, rows].detach().float()
    if self.etc is not None:
      index = self.torch.arange(self.tokens, device=self.machine.device)
      visible = self.etc.visible(0, 0, rows[:, None], index[None, :])
      scores = scores.masked_fill(~visible, -math.inf)
    weights = scores.softmax(-1)
    return weights, weights @ value, value

  def some_rows(self):
    last, globals_ = self.tokens - 1, self.sizes.globals_
    return self.torch.tensor([0, globals_ - 1, globals_, last // 2, last],
                             device=self.machine.device)

  def output_error(self):
    rows = self.some_rows()
    return self.compared("outputs", self.infer()[0, -1, rows],
                         self.formula(rows)[1])

  def gradient_error(self):
    rows = self.some_rows()
    self.step()
    weights, outputs, value = self.formula(rows)
    gradient = self.output_gradient[0, -1, rows].float()
    expected = weights * (gradient @ value.T -
                          (gradient * outputs).sum(-1, keepdim=True))
    if self.is_stacked:
      expected = expected + self.next_gradients[-1][-1, rows].float()
    return self.compared("gradients of carried scores",
                         self.carried[-1].grad[-1, rows], expected)

  def compared(self, what, found, expected):
    """Largest error over the largest value; raises where it is no rounding."""
    error = ((found.float() - expected).abs().max() /
             expected.abs().max()).item()
    if not error < 0.03:  # bf16 has rounded what enters, and probabilities
      raise ArithmeticError(f"wrong {what}, by {error:.2g} of the largest")
    return error


def guarded(what, extra, measure):
  """The row of a measurement, or one that says why there is none."""
  import torch
  error = None
  try:
    row = measure()
  except torch.OutOfMemoryError:
    error = "out of memory"
  except Exception as failure:  # kernels of others raise whatever they like
    print(failure, file=sys.stderr)
    text = str(failure).strip()
    error = ("out of memory" if "out of memory" in text.lower() else
             f"failed: {type(failure).__name__}: {text.partition(chr(10))[0]}")
  if error is not None:  # frames of the exception have gone by now
    row = {"error": error}
    gc.collect()
    if torch.cuda.is_available():
      torch.cuda.empty_cache()
  yield {"what": what, **extra, **row}


def work(arguments):
  """Prints a line of JSON for the context and each row, and where a case
  begins. Ends itself if a case takes longer than it may."""
  left = arguments.deadline - time.time() + GRACE
  watchdog = threading.Timer(max(left, 1), os._exit, [UNUSABLE + 1])
  watchdog.daemon = True
  watchdog.start()
  # Processes that compile would keep a pipe open that they inherit.
  pipe = os.fdopen(os.dup(1), "w")
  os.dup2(2, 1)

  def say(message):
    print(json.dumps(message), file=pipe, flush=True)

  worker = Worker(arguments)
  say({"context": describe(worker.torch, arguments)})
  for number in map(int, arguments.worker.split(",")):
    case = arguments.chosen[number]
    say({"begins": number})
    if arguments.deadline - time.time() < case.needs:
      say({"row": {"what": "", "error": NOT_MEASURED}})
      continue
    for row in guarded_rows(worker, case):
      say({"row": row})
    gc.collect()
    try:
      worker.machine.synchronize()
      if worker.machine.is_cuda:
        worker.torch.cuda.empty_cache()
    except Exception as failure:
      print(failure, file=sys.stderr)
      os._exit(UNUSABLE)
  say({"done": True})


def guarded_rows(worker, case):
  """Rows of a case whose making may fail too."""
  rows = worker.run(case)
  while True:
    made = list(guarded("", {}, lambda: next(rows, None) or {"end": True}))[0]
    if "end" in made:
      return
    yield made
    if not made["what"]:
      return


def describe(torch, arguments):
  context = {"torch": torch.__version__, "python": platform.python_version(),
             "transformers": version("transformers"),
             "float32": "TensorFloat-32" if arguments.tf32 else
             "without TensorFloat-32",
             "tiny": arguments.tiny, "device": arguments.device,
             "autotune": arguments.autotune}
  if arguments.device == "cuda":
    properties = torch.cuda.get_device_properties(0)
    context.update({"card": properties.name,
                    "memory_bytes": properties.total_memory,
                    "cuda": torch.version.cuda, "driver": driver(),
                    "triton": version("triton")})
  return context


def version(package):
  try:
    return importlib.metadata.version(package)
  except importlib.metadata.PackageNotFoundError:
    return "none"


def driver():
  try:
    return subprocess.run(
        ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"],
        check=True, stdout=subprocess.PIPE, text=True,
        timeout=20).stdout.strip().splitlines()[0]
  except (OSError, subprocess.SubprocessError, IndexError) as error:
    return f"unknown ({error})"


def write_atomically(path, text):
  partial = path.with_name(path.name + ".partial")
  with open(partial, "w", encoding="utf-8") as file:
    file.write(text)
    file.flush()
    os.fsync(file.fileno())
  os.replace(partial, path)


class Ours:
  """Runs of our benchmarks on a device, by what their names say."""

  def __init__(self, paths, device):
    self.device = device  # what begins a part of their names
    runs = {}
    for path in paths:
      found = 0
      for run in self.read(path):
        parts = run["name"].split("/")
        if not any(part.startswith(self.device) for part in parts):
          continue
        found += 1
        runs.setdefault(run["name"], []).append(run)
      if not found:
        sys.exit(f"{path}: should have runs whose names have {self.device}, but "
                 "has none")
    self.runs = [self.summary(name, each) for name, each in runs.items()]

  @staticmethod
  def read(path):
    try:
      return Measured(path).runs
    except (OSError, ValueError, KeyError, TypeError) as error:
      sys.exit(f"{path}: should be Google Benchmark's JSON "
               f"({type(error).__name__}: {error})")

  @staticmethod
  def summary(name, runs):
    unit = {"ns": 1e-6, "us": 1e-3, "ms": 1.0, "s": 1e3}
    peaks = [run["peak_bytes"] for run in runs if "peak_bytes" in run]
    return {"name": name, "parts": set(name.split("/")),
            "ms": statistics.median(run["real_time"] * unit[run["time_unit"]]
                                    for run in runs),
            "peak_bytes": statistics.median(peaks) if peaks else None}

  def find(self, case, what, residual):
    """The fastest run with these sizes, or None."""
    mode = {"training": "training", "inference": "inference",
            "forward": "forward", "forward and backward": "training"}.get(what)
    kind = case.name.split("/")[0]
    wanted = ({"Encoder", "base", "layers:12"} if kind == "encoder" else
              {"Attention", "radius:84"})
    wanted |= {mode, f"residual:{residual}", case.precision,
               f"long:{case.length}", "global:256"}
    others = {"blocked", "dense", "reference", "slices", "files"}
    matching = [run for run in self.runs
                if wanted <= run["parts"] and not others & run["parts"] and
                not any(part.startswith("period:") for part in run["parts"])]
    return min(matching, key=lambda run: run["ms"], default=None)

  def ratios(self, case, row):
    """(time over ours, memory over ours, names), of residual off, sum."""
    carries = case.name.endswith(("-carried", "-stacked"))
    times, peaks, names = [], [], []
    for residual in ("sum",) if carries else ("off", "sum"):
      run = self.find(case, row["what"], residual)
      if run is None or "ms" not in row:
        continue
      names.append(run["name"])
      times.append(f"{residual} {row['ms'] / run['ms']:.2f}")
      if row.get("peak_bytes") and run["peak_bytes"]:
        peaks.append(f"{residual} {row['peak_bytes'] / run['peak_bytes']:.2f}")
    return ", ".join(times), ", ".join(peaks), names


def table(cases, results, ours):
  """The lines of a table in Markdown."""
  head = ["case", "long tokens", "precision", "", "ms", "peak MB", ""]
  if ours:
    head[-1:-1] = ["time / ours", "memory / ours"]
  lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
  names = []
  for number, case in enumerate(cases):
    for row in results[number]:
      peak = row.get("peak_bytes")
      cells = [case.name, str(case.length or ""),
               case.precision if case.length else "", row["what"],
               f"{row['ms']:.2f}" if "ms" in row else "",
               "" if peak is None else f"{peak / 1e6:.0f}"]
      if ours:
        times, peaks, joined = ours.ratios(case, row)
        cells += [times, peaks]
        names += [name for name in joined if name not in names]
      remarks = [row.get("error") and f"**{row['error']}**", row.get("rate")]
      if row.get("groups", 1) > 1:
        remarks.append(f"heads in {row['groups']} groups")
      cells.append(", ".join(filter(None, remarks)))
      lines.append("| " + " | ".join(cells) + " |")
  lines += ["", *(f"ours: {name}" for name in names)]
  return lines + extrapolations(cases, results)


def extrapolations(cases, results):
  """Scores that a whole encoder would keep, computed and not measured."""
  lines = []
  for number, case in enumerate(cases):
    for row in results[number][:1]:
      if case.name == "attention/flex-carried" and "carried_bytes" in row:
        size = row["carried_bytes"] / 1e9
        lines.append(
            f"Carried scores of {case.length} long tokens in {case.precision}: "
            f"{size:.2f} GB; extrapolated, {11 * size:.1f} GB of an encoder of "
            "12 layers (the last has none), without gradients")
  return lines


def ending(status):
  """What a worker's exit status says of the case that it had begun."""
  if status == UNUSABLE + 1:
    return NOT_MEASURED
  if status == -signal.SIGKILL:
    return "failed: killed, as the system does where memory runs out"
  return f"failed: left the device unusable (status {status})"


def run_cases(arguments, changed):
  """Rows by number of case, by workers; calls `changed` after each."""
  context, results = {}, {}
  left = list(range(len(arguments.chosen)))
  while left and time.time() < arguments.deadline:
    command = [sys.executable, __file__, *arguments.passed, WORKER,
               ",".join(map(str, left)), "--deadline", str(arguments.deadline)]
    begun = None
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as worker:
      for line in worker.stdout:
        message = json.loads(line)
        if "context" in message and not context:
          context.update(message["context"])
          print(", ".join(f"{name} {value}" for name, value in context.items()),
                flush=True)
        if "begins" in message:
          begun = message["begins"]
          left.remove(begun)
          results[begun] = []
        elif "row" in message:
          results[begun].append(message["row"])
          changed(context, results)
          progress(arguments.chosen[begun], message["row"])
    if worker.returncode == 0:
      break
    if begun is None:
      print(f"a worker ended with {worker.returncode} before any case began",
            file=sys.stderr)
      break
    results[begun].append({"what": "", "error": ending(worker.returncode)})
    changed(context, results)
  for number in left:
    results[number] = [{"what": "", "error": NOT_MEASURED}]
  if context:
    changed(context, results)
  return results, bool(context)


def progress(case, row):
  said = f"{row['ms']:.2f} ms" if "ms" in row else row["error"]
  print(f"{case.name} {case.length or ''} {row['what']}: {said}",
        file=sys.stderr, flush=True)


def parse():
  parser = argparse.ArgumentParser(
      description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
  parser.add_argument("--seconds", type=float, default=150)
  parser.add_argument("--json", type=pathlib.Path)
  parser.add_argument("--ours", type=pathlib.Path, action="append", default=[])
  parser.add_argument("--lengths", default="4096,16384")
  parser.add_argument("--precisions", default="bf16,fp32")
  parser.add_argument("--cases", default="",
                      help="names, or what they begin with, by commas")
  parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
  parser.add_argument("--tiny", action="store_true",
                      help="two layers of 32 features, 64 long tokens")
  parser.add_argument("--tf32", action="store_true")
  parser.add_argument("--autotune", action="store_true",
                      help="torch.compile tries several tiles: takes minutes")
  parser.add_argument(WORKER, help=argparse.SUPPRESS)
  parser.add_argument("--deadline", type=float, help=argparse.SUPPRESS)
  arguments = parser.parse_args()
  arguments.passed = sys.argv[1:]
  if arguments.deadline is None:
    arguments.deadline = time.time() + arguments.seconds
  lengths = [64] if arguments.tiny else [
      int(length) for length in arguments.lengths.split(",")]
  precisions = arguments.precisions.split(",")
  if not set(precisions) <= {"bf16", "fp32"}:
    parser.error("--precisions should be of bf16 and fp32, but is "
                 f"{arguments.precisions}")
  prefixes = tuple(arguments.cases.split(","))
  arguments.chosen = [case for case in all_cases(lengths, precisions)
                      if case.name.startswith(prefixes)]
  if not arguments.chosen:
    parser.error(f"--cases: no case begins with {arguments.cases}")
  return arguments


def main():
  arguments = parse()
  if arguments.worker is not None:
    work(arguments)
    return
  ours = None
  if arguments.ours:
    ours = Ours(arguments.ours, {"cuda": "device:cuda",
                                 "cpu": "threads:2"}[arguments.device])

  def changed(context, results):
    if arguments.json:
      write_atomically(arguments.json, json.dumps({
          "context": context,
          "rows": [{"case": case.name, "length": case.length,
                    "precision": case.precision, **row}
                   for case, rows in ((arguments.chosen[number], rows)
                                      for number, rows in
                                      sorted(results.items()))
                   for row in rows]}, indent=1) + "\n")

  start = time.time()
  results, has_begun = run_cases(arguments, changed)
  if not has_begun:
    sys.exit(1)
  print("\n".join(table(arguments.chosen, results, ours)))
  print(f"{time.time() - start:.0f} s")


if __name__ == "__main__":
  main()
