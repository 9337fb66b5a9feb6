"""Version and dependencies of the package, for scikit-build-core.

The library is compiled for one version of torch, and depends on that.
"""
import pathlib
import re


def dynamic_metadata(field, settings=None):
  """Returns the value of `field`: "version" or "dependencies"."""
  if settings:
    raise ValueError(f"{field} takes no settings, but has {settings}")
  if field == "version":
    project = pathlib.Path(__file__).parent.parent / "CMakeLists.txt"
    if not project.exists():
      raise ValueError(
          "realetc is built from a checkout of RealETC, by pip install ./python: "
          "a source distribution lacks the C++ code")
    found = re.search(r"project\(RealETC\s+VERSION ([\d.]+)",
                      project.read_text(encoding="utf-8"))
    if found is None:
      raise ValueError(f"{project} names no version of RealETC")
    return found.group(1)
  if field == "dependencies":
    import torch  # not at the top: a version needs no torch

    return ["torch==" + torch.__version__.split("+")[0]]
  raise ValueError(f"{field} is not a field of this provider")
