#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy says which checks) over the files of libraries and
# programs that do without LibTorch, whose headers take a minute each:
#
#   bash tests/tidy.sh [FILE_PATTERN]      # an extended regular expression
#
# Without a pattern files are checked many at a time, as one file that includes
# them, which takes a quarter of the time. Exits with 1 at a finding.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pattern=${1:-}
build=build/tidy
# Unity files include ".cc" files, which may each say `using Json`.
options=()
if [[ -z $pattern ]]; then
  options=(--checks=-bugprone-suspicious-include --extra-arg=-Wno-shadow)
fi
cmake -G Ninja -S . -B "$build" --log-level=WARNING >/dev/null \
  -DCMAKE_BUILD_TYPE=Release -DCMAKE_EXPORT_COMPILE_COMMANDS=ON \
  -DETC_BUILD_TESTS=OFF -DCMAKE_UNITY_BUILD_BATCH_SIZE=64 \
  -DCMAKE_DISABLE_PRECOMPILE_HEADERS=ON \
  -DCMAKE_UNITY_BUILD="$([[ -z $pattern ]] && echo ON || echo OFF)"

mapfile -t files < <(python3 - "$build/compile_commands.json" <<'END'
import json
import os
import sys

for entry in json.load(open(sys.argv[1])):
  path = os.path.relpath(os.path.join(entry["directory"], entry["file"]))
  is_ours = not path.startswith("build") or "/Unity/" in path
  if "torch" not in entry["command"] and is_ours:
    print(path)
END
)
mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -E -- "$pattern" | sort)
echo "clang-tidy: ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 1 -P "${ETC_JOBS:-$(nproc)}" \
  clang-tidy -p "$build" --quiet --warnings-as-errors='*' "${options[@]}" \
  2>/dev/null
