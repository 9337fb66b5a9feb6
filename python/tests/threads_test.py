"""The kernels run on torch's threads, in one OpenMP, with the same bits on each."""
import pathlib
import re
import subprocess
import sys

import pytest
import torch

import realetc


def _step():
  generator = torch.Generator().manual_seed(0)
  q, k, v = (torch.randn(1, 3, 700, 16, generator=generator,
                         requires_grad=True) for _ in range(3))
  bias = torch.randn(3, 700, 700, generator=generator, requires_grad=True)
  context, scores = realetc.residual_attention(q, k, v, bias)
  outputs = [context, scores]
  return outputs + list(torch.autograd.grad(
      context.square().sum() + scores.sum(), [q, k, v, bias]))


def test_numbers_of_threads_change_no_bit():
  before = torch.get_num_threads()
  try:
    results = []
    for threads in (1, 2, 5):
      torch.set_num_threads(threads)
      results.append(_step())
  finally:
    torch.set_num_threads(before)
  for other in results[1:]:
    assert all(torch.equal(a, b) for a, b in zip(results[0], other))


@pytest.mark.parametrize("first", ("torch", "realetc"))
def test_process_has_one_openmp(first):
  code = (f"import {first}, torch, realetc; torch.set_num_threads(2)\n"
          "q = torch.randn(1, 8, 600, 8); torch.randn(600, 600).exp()\n"
          "realetc.residual_attention(q, q, q)\n"
          "print(open('/proc/self/maps', encoding='utf-8').read())")
  maps = subprocess.run([sys.executable, "-c", code], check=True,
                        stdout=subprocess.PIPE, text=True).stdout
  libraries = {pathlib.Path(path).resolve() for path in
               re.findall(r"(/\S*/lib(?:gomp|omp|iomp)\S*)", maps)}
  assert len(libraries) == 1, libraries
  assert libraries == {pathlib.Path(path).resolve() for path in
                       torch.ops.realetc.openmp_libraries()}


def test_set_num_threads_reaches_the_kernels():
  code = ("import os, torch, realetc, sys; torch.set_num_threads(int(sys.argv"
          "[1]))\nq = torch.randn(1, 64, 600, 8)\n"
          "before = len(os.listdir('/proc/self/task'))\n"
          "realetc.residual_attention(q, q, q)\n"
          "print(len(os.listdir('/proc/self/task')) - before)")
  started = [int(subprocess.run([sys.executable, "-c", code, str(threads)],
                                check=True, stdout=subprocess.PIPE,
                                text=True).stdout) for threads in (1, 4)]
  assert started == [0, 3]
