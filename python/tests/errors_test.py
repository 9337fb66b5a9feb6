"""Mistakes end in one error that names the argument."""
import functools
import importlib.metadata
import pathlib
import runpy
import shutil
import subprocess
import sys

import pytest
import torch

import realetc
from realetc import _library
from realetc import patterns


def _tensors(**changed):
  lead = (2, 3)
  out = {"query": torch.randn(*lead, 5, 4), "key": torch.randn(*lead, 7, 4),
         "value": torch.randn(*lead, 7, 6)}
  return out | changed


_SPARSE = functools.partial(realetc.sparse_attention,
                            pattern=patterns.unrestricted())
_DENSE = realetc.residual_attention


@pytest.mark.parametrize("function, changed, message", [
    (_SPARSE, {"query": torch.randn(5, 4)}, r"query should be \[batch, heads"),
    (_SPARSE, {"key": torch.randn(2, 3, 7, 5)},
     r"key should be \[2, 3, 7, 4\], but is \[2, 3, 7, 5\]"),
    (_SPARSE, {"value": torch.randn(2, 3, 8, 6)}, r"value should be \[2, 3, 7"),
    (_SPARSE, {"value": [1.0]}, "value should be a tensor, but is list"),
    (_SPARSE, {"query": torch.zeros(2, 3, 5, 4, dtype=torch.int64)},
     "query should be of floating-point numbers, but is torch.int64"),
    (_SPARSE, {"key": torch.randn(2, 3, 7, 4).double()},
     "key is torch.float64, but query is torch.float32"),
    (_SPARSE, {"value": torch.randn(2, 3, 7, 6).double()},
     "value is torch.float64, but query is torch.float32"),
    (_SPARSE, {"query": torch.randn(2, 3, 5, 4).double()},
     "key is torch.float32, but query is torch.float64"),
    (_SPARSE, {"previous": torch.randn(2, 3, 5, 7).double()},
     "previous is torch.float64, but query is torch.float32"),
    (_SPARSE, {"gate": torch.ones(3).double(), "residual": "gate"},
     "gate is torch.float64, but query is torch.float32"),
    (_SPARSE, {"pattern": patterns.causal(3), "relative": (
        torch.randn(10, 3, 4), torch.randn(10, 3).double())},
     "relative.bias is torch.float64, but query is torch.float32"),
    (_SPARSE, {"key": torch.empty(2, 3, 7, 4, device="meta")},
     "key is on meta, but query on cpu"),
    (_SPARSE, {"previous": torch.randn(2, 3, 5, 8)},
     r"previous should be \[2, 3, 5, 7\], but is \[2, 3, 5, 8\]"),
    (_SPARSE, {"previous": torch.randn(2, 3, 5, 7), "residual": "off"},
     'previous scores are given, but residual is "off"'),
    (_SPARSE, {"previous": torch.randn(2, 3, 5, 7), "residual": "mean"},
     'residual="mean" needs layers'),
    (_SPARSE, {"previous": torch.randn(2, 3, 5, 7), "residual": "gate"},
     'residual="gate" needs gate'),
    (_SPARSE, {"gate": torch.ones(3)}, 'gate is given, but residual is "sum"'),
    (_SPARSE, {"gate": torch.ones(2), "residual": "gate"},
     r"gate should be \[3\], but is \[2\]"),
    (_SPARSE, {"previous": torch.randn(2, 3, 5, 7), "layers": 1.5},
     "layers should be an integer, but is 1.5"),
    (_SPARSE, {"layers": 2}, "layers is 2, but there are no previous scores"),
    (_SPARSE, {"residual": "max"}, "residual should be one of off, sum, mean"),
    (_SPARSE, {"dropout": 1.0}, r"dropout should be in \[0, 1\), but is 1.0"),
    (_SPARSE, {"residual": "decay", "decay": 1.5}, "decay should be above 0"),
    (_SPARSE, {"implementation": "fast"}, "implementation should be auto"),
    (_SPARSE, {"pattern": "causal"}, "pattern should be a realetc.patterns"),
    (_SPARSE, {"pattern": patterns.causal(3)}, "relative is missing"),
    (_SPARSE, {"pattern": patterns.causal(3), "relative": (
        torch.randn(9, 3, 4), torch.randn(9, 3))},
     "relative should have at least 10 ids for a distance of 3, but has 9"),
    (_SPARSE, {"relative": (torch.randn(9, 3, 4), torch.randn(9, 3))},
     "relative is given, but pattern has no relative ids"),
    (_SPARSE, {"pattern": patterns.padding(torch.ones(2, 8).bool())},
     r"pattern: the mask of keys is \[2, 8\], but queries and keys want "
     r"\[2, 7\]"),
    (_SPARSE, {"pattern": patterns.documents(torch.ones(2, 6).long(),
                                             torch.ones(2, 7).long())},
     r"pattern: ids is \[2, 6\], but queries and keys want \[2, 5\]"),
    (_SPARSE, {"pattern": patterns.matrix(torch.ones(2, 5, 8).bool())},
     r"pattern: the mask is \[2, 5, 8\], but"),
    (_DENSE, {"mask": torch.zeros(5, 7)},
     "mask should be a bool tensor.* but is torch.float32; what is added"),
    (_DENSE, {"mask": torch.ones(2, 3, 5, 7).bool()}, "masks of single heads"),
    (_DENSE, {"mask": torch.ones(6, 7).bool()}, r"mask should be \[2, 1, 5, 7"),
    (_DENSE, {"previous": torch.randn(5, 6)},
     r"previous should be a tensor that broadcasts to .* = \[2, 3, 5, 7\]"),
    (_DENSE, {"key": torch.randn(2, 2, 7, 4), "enable_gqa": True},
     "query's 3 heads should be a multiple"),
    (_DENSE, {"key": torch.randn(2, 0, 7, 4), "enable_gqa": True},
     "query's 3 heads should be a multiple of those of key, 0, and value, 3"),
    (_DENSE, {"previous": torch.randn(5, 7).double()},
     "previous is torch.float64, but query is torch.float32"),
])
def test_error_names_the_argument(function, changed, message):
  with pytest.raises(ValueError, match=message):
    function(**_tensors(**changed))


@pytest.mark.parametrize("make, message", [
    (lambda: patterns.padding(torch.ones(2, 7)), "mask should be a bool tensor"),
    (lambda: patterns.padding(torch.ones(7).bool()),
     "mask should have 2 dimensions"),
    (lambda: patterns.matrix(torch.ones(5, 7).bool()),
     "mask should have 3 dimensions"),
    (lambda: patterns.documents(torch.ones(2, 7)), "ids should be a tensor of"),
    (lambda: patterns.documents(torch.ones(7).long()),
     r"ids should be \[batch, length\]"),
    (lambda: patterns.window(-1), "a window should be at least 0"),
    (lambda: patterns.window(1.5), "before should be an integer, but is 1.5"),
    (lambda: patterns.window(1, 2.0), "after should be an integer, but is 2.0"),
    (lambda: patterns.causal(-1), "max_distance should be at least 0"),
    (lambda: patterns.causal(1.5),
     "max_distance should be an integer, but is 1.5"),
    (lambda: patterns.global_local(1.5), "radius should be an integer"),
    (lambda: patterns.global_local(0), "radius should be at least 1"),
    (lambda: patterns.global_local(3, long_ids=torch.ones(2, 7).long()),
     "global_ids should be a tensor"),
    (lambda: patterns.global_local(3, torch.ones(2, 7).bool(),
                                   long_ids=torch.ones(2, 7).long()),
     "masks and ids are given"),
    (lambda: patterns.global_local_tokens(
        3, torch.zeros(2, 5, 7).int(), torch.zeros(2, 3, 4).int()),
     r"long_tokens should be int32 \[batch, 6, length\]"),
    (lambda: patterns.global_local(3).long_side().only_keys(
        torch.ones(2, 7).bool()), "takes no further masks"),
    (lambda: patterns.documents(torch.ones(2, 7).long()).only_documents(
        torch.ones(2, 7).long()), "has documents already"),
])
def test_pattern_names_its_argument(make, message):
  with pytest.raises(ValueError, match=message):
    make()


@pytest.mark.parametrize("pattern, message", [
    (patterns.documents(torch.full((2, 5), -1), torch.ones(2, 7).long()),
     "query_ids should be from 0 to"),
    (patterns.Pattern(9), "pattern has the unknown kind 9"),
])
def test_operation_refuses_what_only_data_tell(pattern, message):
  with pytest.raises(RuntimeError, match=message):
    realetc.sparse_attention(pattern=pattern, **_tensors())


@pytest.mark.parametrize("shape", ((2, 5, 7), (3, 5, 7), (2, 2, 5, 7), (7,)))
def test_a_mask_of_heads_is_refused(shape):
  q, k = torch.randn(2, 2, 5, 4), torch.randn(2, 2, 7, 4)
  mask = torch.ones(shape).bool()
  with pytest.raises(ValueError, match=r"mask should be \[T, S\] or \[B, 1, T, S\]"
                     rf", but is \[{', '.join(map(str, shape))}\]"):
    _DENSE(q, k, k, mask=mask)


def _layer(**options):
  return realetc.GlobalLocalAttention(8, 2, 3, **options)


def _inputs():
  return torch.randn(2, 9, 8), torch.randn(2, 4, 8)


@pytest.mark.parametrize("make, message", [
    (lambda: realetc.GlobalLocalAttention(9, 2, 3), "hidden_size, 9, should"),
    (lambda: realetc.GlobalLocalAttention(24, 0, 3),
     "num_heads should be at least 1, but is 0"),
    (lambda: _layer(global_hidden_size=4), "shared projections need equal"),
    (lambda: _layer(residual="all"), "residual should be one of"),
    (lambda: _layer()(torch.randn(2, 9, 7), torch.randn(2, 4, 8)),
     r"long_input should be \[batch, length, 8\], but is \[2, 9, 7\]"),
    (lambda: _layer()(torch.randn(2, 9, 8), torch.randn(1, 4, 8)),
     "global_input should have the batch of long_input, 2, but has 1"),
    (lambda: _layer()(*_inputs(), patterns.causal()),
     "pattern should be a realetc.patterns.GlobalLocalPattern"),
    (lambda: _layer()(*_inputs(), patterns.global_local(4)),
     "pattern should have the layer's radius, 3, but has 4"),
    (lambda: _layer()(*_inputs(), patterns.global_local(3, max_distance=2)),
     "pattern has relative ids up to 2, but the layer's max_distance is 0"),
    (lambda: _layer(max_distance=4)(*_inputs(), patterns.global_local(
        3, max_distance=0)),
     "pattern has relative ids up to 0, but the layer's max_distance is 4"),
    (lambda: _layer(implementation="Refernce"),
     "implementation should be auto or reference, but is 'Refernce'"),
    (lambda: _layer()(*_inputs(), patterns.global_local(
        3, torch.ones(2, 8).bool())),
     r"pattern: of long tokens is \[2, 8\], but .* want \[2, 9\]"),
    (lambda: _layer()(*_inputs(), previous=torch.zeros(1)),
     "previous should be the ResidualScores"),
    (lambda: _layer()(*_inputs(), previous=realetc.ResidualScores(
        *torch.zeros(4, 2, 2, 4, 4))),
     r"previous.g2l should be \[2, 2, 4, 9\], but is \[2, 2, 4, 4\]"),
])
def test_module_names_its_argument(make, message):
  with pytest.raises(ValueError, match=message):
    make()


def test_gates_are_missed_where_scores_are_carried():
  longs, globals_ = _inputs()
  *_, scores = _layer(residual="gate")(longs, globals_)
  with pytest.raises(ValueError, match="which has no gates"):
    _layer(residual="gate")(longs, globals_, previous=scores)


def test_another_torch_is_refused_in_one_sentence():
  _library.check_torch("2.15.0+cpu", built_for="2.15.0+cu132")
  with pytest.raises(ImportError, match="built for torch 2.14.1, but torch is "
                     r"2.15.0\+cpu: install that one, or build") as error:
    _library.check_torch("2.15.0+cpu", built_for="2.14.1+cu132")
  assert "\n" not in str(error.value)


def test_kernels_that_cannot_be_loaded_say_why(tmp_path):
  absent = tmp_path / "operations.so"
  with pytest.raises(ImportError, match=rf"cannot be loaded: {absent}: cannot "
                     r"open shared object file.*\(they need Highway") as error:
    _library.load_kernels(absent)
  assert "\n" not in str(error.value)


def test_a_source_distribution_is_refused_in_one_sentence(tmp_path):
  metadata = pathlib.Path(__file__).resolve().parents[1] / "build_metadata.py"
  version = runpy.run_path(metadata)["dynamic_metadata"]("version")
  assert version == realetc.__version__
  copy = shutil.copy(metadata, tmp_path)
  with pytest.raises(ValueError, match=r"by pip install \./python: a source "
                     "distribution lacks the C.. code$"):
    runpy.run_path(copy)["dynamic_metadata"]("version")


def test_the_installed_package_has_its_license():
  assert any(file.name == "LICENSE"
             for file in importlib.metadata.files("realetc"))


def test_the_sources_are_refused_in_one_sentence():
  done = subprocess.run(
      [sys.executable, "-B", "-c", "import realetc"], check=False, text=True,
      cwd=pathlib.Path(__file__).resolve().parents[1], stderr=subprocess.PIPE)
  assert done.returncode == 1
  assert done.stderr.rstrip().endswith(
      "realetc has the sources of realetc, which are not compiled: start "
      "Python in another directory, after pip install ./python")


def test_a_second_openmp_is_refused():
  ours, of_torch = torch.ops.realetc.openmp_libraries()
  _library.check_openmp(ours, of_torch)
  with pytest.raises(ImportError, match="would run on the OpenMP library "
                     "/usr/lib/libomp.so, but torch runs on"):
    _library.check_openmp("/usr/lib/libomp.so", of_torch)
