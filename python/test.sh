#!/usr/bin/env bash
# Builds and tests the Python package:
#
#   bash python/test.sh [ENVIRONMENT [PYTEST_OPTION...]]
#
# ENVIRONMENT is a folder that `python3 -m venv` made; by default
# build/python-environment, which is made where there is none. What it lacks of
# torch, scikit-build-core, pytest and packages for texts is installed from PyPI
# (torch with its CUDA libraries is some 3 GB; an environment with torch 2.7 or
# later serves). Ends with "N passed, N failed" and the time; where PyPI cannot be
# reached, or there is no compiler or Highway, says so in a line that begins with
# "Skipped", and exits with 77. Tests beside the C++ library want its programs and
# tests in build/release (bash tests/run.sh). Those that are skipped, for want of
# them or of a package, are listed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

environment=${1:-build/python-environment}
shift || true
python=$environment/bin/python
log=build/python-test.log
mkdir -p build

skip() {
  echo "Skipped: $1"
  exit 77
}

has() {
  "$python" -W ignore -c "import $1" 2>> "$log"
}

: > "$log"
command -v python3 > /dev/null || skip "there is no python3"
command -v c++ > /dev/null || skip "there is no C++ compiler"
if [[ ! -x $python ]]; then
  python3 -m venv "$environment" 2>> "$log" ||
    skip "python3 -m venv fails ($log); Debian's package is python3-venv"
fi
for package in torch scikit_build_core pytest; do
  if ! has "$package"; then
    echo "Installing ${package//_/-} in $environment."
    "$python" -m pip install --quiet "${package//_/-}" >> "$log" 2>&1 ||
      skip "pip cannot install ${package//_/-}: $(tail -n 1 "$log")"
  fi
done
for package in regex safetensors sentencepiece tokenizers transformers; do
  if ! has "$package"; then
    echo "Installing $package in $environment."
    "$python" -m pip install --quiet "$package" >> "$log" 2>&1 ||
      echo "pip cannot install $package: $(tail -n 1 "$log")"
  fi
done

started=$SECONDS
if ! "$python" -m pip install --no-build-isolation --no-deps --force-reinstall \
    ./python >> "$log" 2>&1; then
  if grep -q "There is no Highway" "$log"; then
    skip "Highway is not installed (Debian's libhwy-dev)"
  fi
  tail -n 60 "$log"
  echo "0 passed, 1 failed"
  exit 1
fi
built=$((SECONDS - started))

status=0
output=$(mktemp)
# Not from python/, where the sources of the package are.
"$python" -m pytest -rs --rootdir python/tests -p no:cacheprovider \
  python/tests "$@" | tee "$output" || status=$?
count() {
  tail -n 1 "$output" | grep -oE "[0-9]+ $1" | grep -oE '[0-9]+' || echo 0
}
echo "Built in $built s, tested in $((SECONDS - started - built)) s."
echo "$(count passed) passed, $(($(count failed) + $(count error))) failed"
rm -f "$output"
exit "$status"
