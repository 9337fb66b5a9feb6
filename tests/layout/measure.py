#!/usr/bin/env python3
"""Measures the structure of the code, and fails where it breaks a rule.

  python3 tests/layout/measure.py [ROOT] [--list N] [--self-test]

Prints one line for each figure, with its bound, and names what breaks it:

  include directions   tasks -> etc -> attention -> base, never upwards; in
                       tasks/, text, data and train know no task and no command,
                       and tasks do not know each other
  public headers       those that are installed (PUBLIC_HEADERS in a layer's
                       CMakeLists.txt) include only such ones of ours, and are
                       few; doc/architecture.md has a row for each
  file lengths         headers at most 300 lines; sources, and headers of code
                       (-inl.h), at most 600
  function lengths     at most 60 lines, braces included
  repetition           share of the tasks' lines that stand in another task too,
                       after the tasks' names were made one. It should be 10 %;
                       the bound is what it was when last lowered. Not counted
                       are comments, preprocessor lines, and lines with
                       fewer than 8 letters and digits
  repetition proper    the same without lines that code outside of the tasks has
                       too, such as "continue;" or "namespace etc {"
  metaphors            words of our own that stand for terms of the field

--list N shows the N most frequent of the repeated lines. --self-test breaks each
rule once in a small tree and looks whether that is found. Exits with 1 if a bound
is broken.
"""
import argparse
import collections
import fnmatch
import os
import re
import subprocess
import sys
import tempfile

LAYERS = ["base", "attention", "etc", "tasks"]
SHARED_IN_TASKS = ["text", "data", "distributed", "train"]
MAX_HEADER, MAX_SOURCE, MAX_FUNCTION = 300, 600, 60
MAX_REPETITION = 15.0
MAX_REPETITION_PROPER = 10.0
MAX_PUBLIC_HEADERS = 20
MIN_CHARACTERS = 8
METAPHORS = re.compile(
    r"\b(storeys?|nobody's weights|hears? of (each|all)|of unknown "
    r"content|why kernels do not serve|at the door)\b", re.IGNORECASE)


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
      if parts[0] == target[0] == "tasks" and len(target) > 2:
        from_shared = parts[1] in SHARED_IN_TASKS
        upward |= from_shared and target[1] in tasks + ["commands"]
        upward |= (parts[1] in tasks and target[1] in tasks + ["commands"] and
                   target[1] != parts[1])
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
    if length > (MAX_HEADER if path.endswith(".h") and
                 not path.endswith("-inl.h") else MAX_SOURCE):
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
    elif continued:
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


def normalised_lines(path, names):
  """The lines of a file that count, blanks and the tasks' names made one."""
  for line in read(path).split("\n"):
    line = re.sub(r"//.*", "", line).strip()
    if line.startswith("#"):
      continue
    line = re.sub(r"\s+", " ", names.sub("TASK", line))
    if len(re.findall(r"\w", line)) >= MIN_CHARACTERS:
      yield line


def repetition(paths, tasks):
  """Shares in percent, all and proper, and a Counter of the repeated lines."""
  names = re.compile("|".join(sorted(tasks, key=len, reverse=True)),
                     re.IGNORECASE)
  lines = collections.defaultdict(list)
  outside = set()
  for path in paths:
    parts = path.split("/")
    if parts[0] == "tasks" and parts[1] in tasks:
      lines[parts[1]] += normalised_lines(path, names)
    elif parts[0] in LAYERS:
      outside.update(normalised_lines(path, names))
  repeated = collections.Counter()
  for task in tasks:
    others = {line for other in tasks if other != task for line in lines[other]}
    repeated.update(line for line in lines[task] if line in others)
  total = max(sum(len(own) for own in lines.values()), 1)
  proper = sum(number for line, number in repeated.items()
               if line not in outside)
  return 100 * repeated.total() / total, 100 * proper / total, repeated


def metaphors(paths):
  broken = []
  for path in paths:
    for number, line in enumerate(read(path).split("\n"), 1):
      if METAPHORS.search(line) and path != "tests/layout/measure.py":
        broken.append(f"{path}:{number}: {line.strip()}")
  return broken


SELF_TEST_TREE = {
    "base/low.h": '#include "etc/high.h"\nint in_every_layer;\n',
    "tasks/train/loop.cc": '#include "tasks/one/task.h"\n',
    "tasks/one/task.h": '#include "tasks/two/task.h"\nint ones_own_number;\n'
                        "int in_every_layer;\n",
    "tasks/one/configs/base.json": "{}\n",
    "tasks/two/task.h": "int the_number_of_two;\nint twos_own_number;\n"
                        "int in_every_layer;\n",
    "tasks/two/configs/base.json": "{}\n",
    "etc/long.h": "\n" * (MAX_HEADER + 1),
    "etc/long.cc": "\n" * (MAX_SOURCE + 1),
    "etc/short.h": "// The door of each storey.\n" + "\n" * (MAX_HEADER - 1),
    "etc/CMakeLists.txt": "etc_layer(NAME etc\n  PUBLIC_HEADERS\n"
                          "    functions.h\n    short.h)\n",
    "doc/architecture.md": "| [etc/functions.h](../etc/functions.h) | x |\n"
                           "| [etc/gone.h](../etc/gone.h) | x |\n",
    "etc/functions.h": '#include "etc/long.h"\n#include "etc/short.h"\n',
    "etc/functions.cc":
        "int Long(int first,\n         int second) {\n" +
        "  ++first;\n" * (MAX_FUNCTION - 2) + "}\n" +
        "int Short() {\n" + "  Call();\n" * (MAX_FUNCTION - 2) + "}\n",
}


def self_test():
  """Whether each mistake of SELF_TEST_TREE is found, and nothing else."""
  with tempfile.TemporaryDirectory() as root:
    os.chdir(root)
    for path, text in SELF_TEST_TREE.items():
      os.makedirs(os.path.dirname(path), exist_ok=True)
      with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    paths = tracked(["*.h", "*.cc"])
    share, proper, repeated = repetition(paths, task_names())
    found = {
        "upward": upward_includes(paths, task_names()),
        "private": private_includes(),
        "undescribed": undescribed_headers(),
        "files": long_files(paths),
        "functions": long_functions(paths),
        "metaphors": metaphors(paths),
        "repeated": sorted(repeated),
        "share": round(share),
        "proper": round(proper),
    }
    os.chdir("/")
  expected = {
      "upward": ["base/low.h: includes etc/high.h",
                 "tasks/one/task.h: includes tasks/two/task.h",
                 "tasks/train/loop.cc: includes tasks/one/task.h"],
      "private": ["etc/functions.h: includes etc/long.h"],
      "undescribed": ["etc/short.h: no row in doc/architecture.md",
                      "doc/architecture.md: etc/gone.h is not installed"],
      "files": ["etc/long.cc: 601 lines", "etc/long.h: 301 lines"],
      "functions": ["etc/functions.cc:1: 61 lines"],
      "metaphors": ["etc/short.h:1: // The door of each storey."],
      # "int ones_own_number;" and "int twos_own_number;" are one line when
      # names are. Four of five lines, two of them nowhere else.
      "repeated": ["int TASKs_own_number;", "int in_every_layer;"],
      "share": 80,
      "proper": 40,
  }
  for what, places in expected.items():
    if found[what] != places:
      print(f"{what}: found {found[what]}, expected {places}")
  return 0 if found == expected else 1


def main():
  parser = argparse.ArgumentParser(description="Measures the code's structure.")
  parser.add_argument("root", nargs="?", default=".")
  parser.add_argument("--list", type=int, default=0, metavar="N")
  parser.add_argument("--self-test", action="store_true")
  arguments = parser.parse_args()
  if arguments.self_test:
    return self_test()
  os.chdir(arguments.root)

  paths = tracked(["*.h", "*.cc"])
  tasks = task_names()
  share, proper, repeated = repetition(paths, tasks)
  checks = [
      ("upward includes", upward_includes(paths, tasks)),
      ("public headers that include others", private_includes()),
      ("public headers without a description", undescribed_headers()),
      ("files that are too long", long_files(paths)),
      ("functions that are too long", long_functions(paths)),
      ("metaphors", metaphors(paths + tracked(["*.md", "*CMakeLists.txt", "*.cmake"]))),
  ]
  count = sum(1 for path in paths if path.split("/")[0] in LAYERS)
  print(f"{count} files in {', '.join(LAYERS)}; tasks: {', '.join(tasks)}")
  failed = False
  for what, broken in checks:
    print(f"{what}: {len(broken)} (at most 0)")
    for place in broken:
      print(f"  {place}")
    failed |= bool(broken)
  public = len(public_headers())
  print(f"public headers: {public} (at most {MAX_PUBLIC_HEADERS})")
  failed |= public > MAX_PUBLIC_HEADERS
  print(f"repetition between tasks: {share:.1f} % (at most "
        f"{MAX_REPETITION:g} %)")
  for line, number in repeated.most_common(arguments.list):
    print(f"  {number} times: {line}")
  print(f"repetition proper: {proper:.1f} % (at most "
        f"{MAX_REPETITION_PROPER:g} %)")
  failed |= share > MAX_REPETITION or proper > MAX_REPETITION_PROPER
  return 1 if failed else 0


if __name__ == "__main__":
  sys.exit(main())
