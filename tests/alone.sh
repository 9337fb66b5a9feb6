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
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pattern=${1:-}
build=build/alone
jobs=${ETC_JOBS:-$(nproc)}
cmake -G Ninja -S . -B "$build" --log-level=WARNING >/dev/null \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DETC_BUILD_TESTS=OFF -DETC_BUILD_EXAMPLES=OFF -DCMAKE_UNITY_BUILD=OFF \
  -DETC_WARNINGS_AS_ERRORS=ON
cmake --build "$build" -j "$jobs" --target etc_core_pch etc_torch_pch >/dev/null

# Each file with the directory and the command that compiles it.
mapfile -d '' -t entries < <(python3 - "$build/compile_commands.json" "$pattern" <<'END'
import json
import os
import re
import shlex
import sys

for entry in json.load(open(sys.argv[1])):
  path = os.path.relpath(entry["file"])
  if path.startswith("build") or not re.search(sys.argv[2], path):
    continue
  words = shlex.split(entry["command"])
  at = words.index("-o")
  words = words[:at] + ["-Wfatal-errors", "-fsyntax-only", "-x", "c++", "-"]
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
