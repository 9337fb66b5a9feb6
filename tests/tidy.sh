#!/usr/bin/env bash
# Runs clang-tidy (.clang-tidy says which checks) over the files of libraries and
# programs that do without LibTorch, whose headers take a minute each:
#
#   bash tests/tidy.sh [FILE_PATTERN]      # an extended regular expression
#
# Configures the preset `release` if need be. Exits with 1 at a finding.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

pattern=${1:-.}
build=build/release
[[ -f $build/compile_commands.json ]] ||
  cmake --preset release --log-level=WARNING >/dev/null

# Precompiled headers are in g++'s own format, and only LibTorch has them.
mapfile -t files < <(python3 - "$build/compile_commands.json" <<'END'
import json
import os
import sys

for entry in json.load(open(sys.argv[1])):
  path = os.path.relpath(os.path.join(entry["directory"], entry["file"]))
  if "torch" not in entry["command"] and not path.startswith(("build", "tests")):
    print(path)
END
)
mapfile -t files < <(printf '%s\n' "${files[@]}" | grep -E -- "$pattern" | sort)
echo "clang-tidy: ${#files[@]} files"
printf '%s\0' "${files[@]}" | xargs -0 -n 4 -P "${ETC_JOBS:-$(nproc)}" \
  clang-tidy -p "$build" --quiet --warnings-as-errors='*' 2>/dev/null
