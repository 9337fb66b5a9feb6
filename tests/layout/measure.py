#!/usr/bin/env python3
"""Measures the structure of the code, and fails where it breaks a rule.

  python3 tests/layout/measure.py [ROOT]

Prints one line for each rule, and names what breaks it:

  include directions   tasks -> etc -> attention -> base, never upwards; in
                       tasks/, a folder includes only itself and what stands
                       before it in TASK_LEVELS, so benchmarks do not know each
                       other
  public headers       those that are installed (PUBLIC_HEADERS in a layer's
                       CMakeLists.txt) include only such ones of ours;
                       doc/architecture.md has a row for each, and realetc.h
                       includes each
  function lengths     at most 60 lines, braces included
  dumped JSON          json::dump throws at a name of a file that is not UTF-8;
                       JsonText (base/json_text.h) does not

and advice, which breaks nothing: headers of more than 300 lines, and sources
or headers of code (-inl.h) of more than 600, are worth a look whether they
hold one subject. Exits with 1 if a rule is broken.
"""
import argparse
import fnmatch
import os
import re
import subprocess
import sys

LAYERS = ["base", "attention", "etc", "tasks"]
# What tasks/ is made of, lowest first: folders, and files of tasks/ itself.
# Benchmarks, and what stands on one line, do not include each other.
BENCHMARKS = "benchmarks"
TASK_LEVELS = [["metrics", "pages", "text", "data"],
               ["output", "distributed"],
               ["config"],
               ["task"],
               ["inputs", "train", "report"],
               [BENCHMARKS, "pretrain"],
               ["registry"],
               ["runs"],
               ["run_task"],
               ["inference"],
               ["analysis"],
               ["commands"],
               ["realetc_main"]]
# Sources that python/CMakeLists.txt does without: of their headers the types alone
# are used.
NOT_IN_PYTHON = {"attention/sparse_attention.cc", "base/linear.cc"}
HEADER_ADVICE, SOURCE_ADVICE, MAX_FUNCTION = 300, 600, 60


def tracked(pattern):
  """Paths of files that git knows, or of all files outside of a checkout."""
  try:
    out = subprocess.run(["git", "ls-files", "-z", "--", *pattern],
                         check=True, capture_output=True, text=True).stdout
    paths = [path for path in out.split("\0") if path]
  except (subprocess.CalledProcessError, FileNotFoundError):
    paths = [os.path.relpath(os.path.join(folder, name))
             for folder, _, names in os.walk(".") for name in names]
    paths = [path for path in paths if not path.startswith("build/") and
             any(fnmatch.fnmatch(path, one) for one in pattern)]
  return sorted(path for path in paths if os.path.exists(path))


def read(path):
  with open(path, encoding="utf-8") as file:
    return file.read()


def task_names():
  """The benchmarks: directories of tasks/ that none of the shared ones is."""
  return sorted(
      name for name in os.listdir("tasks")
      if os.path.exists(f"tasks/{name}/configs"))


def part_of_tasks(path, tasks):
  """The folder or file of TASK_LEVELS that a path in tasks/ is in, its level."""
  part = re.sub(r"\.(h|cc)$", "", path.split("/")[1])
  known = BENCHMARKS if part in tasks and part != "pretrain" else part
  for level, parts in enumerate(TASK_LEVELS):
    if known in parts:
      return part, level
  return part, None


def upward_includes(paths, tasks):
  """'path: include' for each include that breaks the directions."""
  broken = []
  for path in paths:
    parts = path.split("/")
    if parts[0] not in LAYERS:
      continue
    for include in re.findall(r'^#include "([^"]+)"', read(path), re.M):
      target = include.split("/")
      if target[0] not in LAYERS:
        continue
      upward = LAYERS.index(target[0]) > LAYERS.index(parts[0])
      if parts[0] == target[0] == "tasks":
        part, level = part_of_tasks(path, tasks)
        included, included_level = part_of_tasks(include, tasks)
        if level is None or included_level is None:
          upward = True  # a folder that TASK_LEVELS should name
        elif part != included:
          upward |= included_level >= level
      if upward:
        broken.append(f"{path}: includes {include}")
  return broken


def public_headers():
  """The paths of the headers that are installed, in order."""
  public = set()
  for layer in LAYERS:
    path = f"{layer}/CMakeLists.txt"
    if os.path.exists(path):
      named = re.search(r"PUBLIC_HEADERS((?:\s+[\w/.-]+\.h)+)", read(path))
      public |= {f"{layer}/{header}"
                 for header in (named.group(1).split() if named else [])}
  return sorted(public)


def private_includes():
  """'path: include' where an installed header includes one that is not."""
  public = public_headers()
  return [f"{path}: includes {include}" for path in public
          for include in re.findall(r'^#include "([^"]+)"', read(path), re.M)
          if include.split("/")[0] in LAYERS and include not in public]


def umbrella_differences():
  """Where the includes of realetc.h and the installed headers differ."""
  path = "realetc.h"
  included = re.findall(r'^#include "([^"]+)"$',
                        read(path) if os.path.exists(path) else "", re.M)
  public = public_headers()
  return ([f"{path}: does not include {header}"
           for header in public if header not in included] +
          [f"{path}: {header} is not installed"
           for header in included if header not in public])


def undescribed_headers():
  """Where the table of installed headers and the headers differ."""
  path = "doc/architecture.md"
  rows = re.findall(r"^\| \[([\w/.-]+\.h)\]\(\.\./\1\) \|",
                    read(path) if os.path.exists(path) else "", re.M)
  public = public_headers()
  return ([f"{header}: no row in {path}"
           for header in public if header not in rows] +
          [f"{path}: {header} is not installed"
           for header in rows if header not in public])


def long_files(paths):
  broken = []
  for path in paths:
    if path.split("/")[0] not in LAYERS:
      continue
    length = read(path).count("\n")
    if length > (HEADER_ADVICE if path.endswith(".h") and
                 not path.endswith("-inl.h") else SOURCE_ADVICE):
      broken.append(f"{path}: {length} lines")
  return broken


def functions(text):
  """(first line, number of lines) of each definition in clang-format's layout.

  Such a definition ends with a brace in the column in which its first line
  begins; lambdas and blocks inside count as part of it.
  """
  lines = text.split("\n")
  for i, line in enumerate(lines):
    begins = re.match(r"^( {0,2})[A-Za-z~].*\) (const |noexcept |override )*\{$",
                      line)
    continued = re.match(r"^ {4,}.*\) (const |noexcept |override )*\{$", line)
    if begins:
      indent = begins.group(1)
      if re.match(r"^\s*(if|for|while|switch|else|do)\b", line):
        continue
      first = i
    elif continued and not re.match(r"^ *(return )?\[", line):  # no lambda
      # A definition whose head takes several lines: go back to its first.
      first = i
      while first > 0 and re.match(r"^ {4,}\S", lines[first]):
        first -= 1
      head = re.match(r"^( {0,2})[A-Za-z~]\S*.*[(,=:]$|^( {0,2})[A-Za-z~].*\(.*$",
                      lines[first])
      if not head or re.match(r"^\s*(if|for|while|switch|return)\b",
                              lines[first]):
        continue
      indent = re.match(r"^ *", lines[first]).group(0)
    else:
      continue
    for last in range(i + 1, len(lines)):
      if re.match(rf"^{indent}\}}", lines[last]):
        yield first + 1, last - first + 1
        break


def long_functions(paths):
  broken = []
  for path in paths:
    if path.split("/")[0] not in LAYERS:
      continue
    broken += [f"{path}:{first}: {length} lines"
               for first, length in functions(read(path))
               if length > MAX_FUNCTION]
  return broken


def dumped_json(paths):
  return [f"{path}:{number}: {line.strip()}"
          for path in paths
          if path.split("/")[0] in LAYERS and path != "base/json_text.cc"
          for number, line in enumerate(read(path).split("\n"), 1)
          if re.search(r"(\.|->)dump\(", line)]


def unlisted_python_sources():
  """Sources whose headers the Python package includes, and that it lacks."""
  path = "python/CMakeLists.txt"
  listed = re.findall(r"^  ((?:\w+/)+\w+\.cc)\b", read(path), re.M)
  if not listed:
    return [f"{path}: no list of sources is found"]
  included, waiting = set(), [name for name in listed if os.path.exists(name)]
  while waiting:
    for header in re.findall(r'^#include "([^"]+)"', read(waiting.pop()), re.M):
      if header not in included and os.path.exists(header):
        included.add(header)
        waiting.append(header)
  sources = {re.sub(r"\.h$", ".cc", header) for header in included}
  return [f"{path}: does not list {source}"
          for source in sorted(sources - set(listed) - NOT_IN_PYTHON)
          if os.path.exists(source)] + [
              f"{path}: {name} is not there"
              for name in listed if not os.path.exists(name)]


def main():
  parser = argparse.ArgumentParser(description="Measures the code's structure.")
  parser.add_argument("root", nargs="?", default=".")
  os.chdir(parser.parse_args().root)

  paths = tracked(["*.h", "*.cc"])
  tasks = task_names()
  rules = [
      ("upward includes", upward_includes(paths, tasks)),
      ("public headers that include others", private_includes()),
      ("public headers without a description", undescribed_headers()),
      ("public headers and realetc.h differ", umbrella_differences()),
      ("functions that are too long", long_functions(paths)),
      ("JSON dumped without JsonText", dumped_json(paths)),
      ("sources that the Python package lacks", unlisted_python_sources()),
  ]
  count = sum(1 for path in paths if path.split("/")[0] in LAYERS)
  print(f"{count} files in {', '.join(LAYERS)}; tasks: {', '.join(tasks)}; "
        f"{len(public_headers())} public headers")
  for rule, broken in rules:
    print(f"{rule}: {len(broken)} (at most 0)")
    for place in broken:
      print(f"  {place}")
  for place in long_files(paths):
    print(f"advice: {place}: does it hold one subject?")
  return 1 if any(broken for _, broken in rules) else 0


if __name__ == "__main__":
  sys.exit(main())
