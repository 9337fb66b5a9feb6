"""Loads the library of torch.ops.realetc, compiled for one torch."""
import pathlib

import torch

try:
  from realetc import _build
except ImportError as error:
  raise ImportError(
      f"{pathlib.Path(__file__).parent} has the sources of realetc, which are "
      "not compiled: start Python in another directory, after pip install "
      "./python") from error


def check_torch(version, built_for=_build.TORCH_VERSION):
  """Raises ImportError unless torch `version` is the one that was built for.

  What follows a "+", the kind of the build, does not matter.
  """
  if version.split("+")[0] != built_for.split("+")[0]:
    raise ImportError(
        f"realetc was built for torch {built_for.split('+')[0]}, but torch is "
        f"{version}: install that one, or build realetc again by pip install "
        "--no-build-isolation ./python")


def check_openmp(ours, of_torch):
  """Raises ImportError unless kernels and torch have one OpenMP library.

  Two would have two sets of threads, and torch.set_num_threads would not reach
  the kernels.
  """
  if not ours or pathlib.Path(ours).resolve() != pathlib.Path(
      of_torch).resolve():
    raise ImportError(
        f"realetc's kernels would run on the OpenMP library {ours or '(none)'}, "
        f"but torch runs on {of_torch or '(none)'}: import torch before other "
        "packages that bring an OpenMP library")


def load_kernels(path):
  """Loads the library `path` once; raises ImportError with the linker's reason."""
  try:
    torch.ops.load_library(path)
  except OSError as error:
    raise ImportError(
        f"realetc's kernels cannot be loaded: {error.__cause__ or error} (they "
        "need Highway: Debian's libhwy1)") from error


def load():
  """Loads the library once; raises ImportError if it does not fit torch."""
  check_torch(torch.__version__)
  load_kernels(pathlib.Path(__file__).parent / "operations.so")
  check_openmp(*torch.ops.realetc.openmp_libraries())
