#!/usr/bin/env bash
# Checks that each file of a library and of a program compiles by itself, with all
# warnings as errors. Builds compile many files as one, where a file may use what
# another one includes; not those of benchmarks and examples.
#
#   bash tests/alone.sh [FILE_PATTERN]     # an extended regular expression
#
# Files are parsed up to a false `static_assert` behind their last line: the
# instantiation of LibTorch's templates, which would follow, takes most of a file's
# time and is done where the libraries are built. Exits with 1 at a finding.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pattern=${1:-}
build=build/release
jobs=${ETC_JOBS:-$(nproc)}
# The commands and the precompiled headers of the preset `release`.
[[ -e $build/compile_commands.json ]] || cmake --preset release >/dev/null
cmake --build "$build" -j "$jobs" --target etc_core_pch etc_torch_pch >/dev/null

# Each file with the directory and the command that compiles it, or the one that it
# is a part of.
mapfile -d '' -t entries < <(python3 - "$build/compile_commands.json" "$pattern" <<'END'
import json
import os
import re
import shlex
import sys

for entry in json.load(open(sys.argv[1])):
  files = [entry["file"]]
  if "/Unity/" in entry["file"]:
    files = re.findall(r'^#include "(.*)"$', open(entry["file"]).read(), re.M)
  words = shlex.split(entry["command"])
  words = words[:words.index("-o")] + [
      "-Wshadow", "-Werror", "-Wfatal-errors", "-fsyntax-only", "-x", "c++", "-"]
  for path in (os.path.relpath(os.path.realpath(file)) for file in files):
    if (re.match("(base|attention|etc|tasks)/", path) and
        re.search(sys.argv[2], path)):
      print(path, entry["directory"], shlex.join(words), sep="\n", end="\0")
END
)
echo "alone: ${#entries[@]} files"
check() {
  { read -r path; read -r directory; read -r command; } <<<"$1"
  local errors
  errors=$(cd "$directory" &&
    printf '#include "%s"\nstatic_assert(false);\n' "$OLDPWD/$path" |
      eval "$command" 2>&1 || true)
  [[ $errors == "<stdin>:2:15: error: static assertion failed"* ]] ||
    { printf '%s\n%s\n' "$path" "$errors" >&2; return 1; }
}
export -f check
printf '%s\0' "${entries[@]}" |
  xargs -0 -n 1 -P "$jobs" bash -c 'check "$0"'
