#!/usr/bin/env bash
# Installs the dependencies, builds everything and runs tests:
#
#   bash tests/run.sh [PRESET [-L LABEL | -LE LABEL] [CMAKE_OPTION...]]
#
# PRESET is release (default), debug, asan, tsan or libtorch2. Tests with the
# labels `slow` and `release-check` are left out: `-L LABEL` runs those of one
# label and no others, `-LE LABEL` all but those. `release-check` are the tests of
# some minutes that .ci/run runs, and a first look can do without: the commands
# of all pages, the package in a project of its own, a hundred kills of a run, runs
# of several processes and hosts, runs on a stand-in for CUDA.
#
#   bash tests/run.sh release -L release-check
#   bash tests/run.sh release -L slow
#
# Ends with a line "N passed, N failed" and exits with 0 only if everything was
# built and no test failed.
#
# LibTorch is the one that build/PRESET was configured with; the first time, the
# one that CMAKE_PREFIX_PATH or Torch_DIR names, as environment variable or
# CMAKE_OPTION, else Debian's.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

preset=${1:-release}
# Repeats the names of CMakePresets.json, for machines without CMake yet.
presets="release debug asan tsan libtorch2"
if [[ " $presets " != *" $preset "* ]]; then
  echo "tests/run.sh: there is no preset \"$preset\"; there are: $presets" >&2
  exit 2
fi
shift || true
run_tests=(ctest --preset "$preset")
if [[ ${1:-} == -L || ${1:-} == -LE ]]; then
  run_tests=(ctest --test-dir "build/$preset" --output-on-failure
    "$1" "${2:?LABEL is missing}")
  shift 2
fi
jobs=${ETC_JOBS:-$(nproc)}
# Two tests a core: many wait for the disk, or for processes of their own.
export CMAKE_BUILD_PARALLEL_LEVEL=$jobs CTEST_PARALLEL_LEVEL=$((2 * jobs))

prefixes=${CMAKE_PREFIX_PATH:-}
for option in "$@"; do
  [[ $option != -DCMAKE_PREFIX_PATH=* && $option != -DTorch_DIR=* ]] ||
    prefixes+=:${option#*=}
done
configured=$(sed -n 's/^Torch_DIR:PATH=//p' "build/$preset/CMakeCache.txt" \
  2>/dev/null || true)
[[ $configured == /usr/lib/* ]] || prefixes+=:$configured
CMAKE_PREFIX_PATH=$prefixes bash cmake/install_dependencies.sh

mkdir -p "build/$preset"
log=build/$preset/run.log
echo "Building and testing the preset '$preset', $jobs files at a time;" \
  "all output goes to $log too."
status=0
{
  cmake --preset "$preset" "$@" &&
    cmake --build --preset "$preset" &&
    "${run_tests[@]}"
} 2>&1 | tee "$log" || status=$?

# CTest's own summary: "98% tests passed, 2 tests failed out of 100".
summary=$(grep -E '^[0-9]+% tests passed' "$log" | tail -n 1 || true)
if [[ -z $summary ]]; then
  echo "The build did not get as far as the tests; see $log." >&2
  echo "0 passed, 0 failed"
  exit 1
fi
read -r failed total < <(sed -E \
  's/^.* ([0-9]+) tests? failed out of ([0-9]+).*$/\1 \2/' <<<"$summary")
# Test cases that found nothing to run on, as GoogleTest has them.
details=build/$preset/Testing/Temporary/LastTest.log
skipped=$(grep -cE '^\[  SKIPPED \] .* ms\)$' "$details" || true)
echo "Preset '$preset': $((total - failed)) of $total test programs passed;" \
  "test cases skipped in them: $skipped ($details says why)."
echo "$((total - failed)) passed, $failed failed"
exit "$status"
