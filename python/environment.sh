#!/usr/bin/env bash
# Makes the Python environment in which python/test.sh, which includes this script,
# tests the package:
#
#   bash python/environment.sh [ENVIRONMENT]
#
# ENVIRONMENT is a folder that `python3 -m venv` made; by default
# build/python-environment, which is made where there is none. What it lacks of
# torch, scikit-build-core, pytest and packages for texts is installed from PyPI
# (torch with its CUDA libraries is some 3 GB; an environment with torch 2.7 or
# later serves). Where that fails for one that the tests cannot do without, or there
# is no compiler, says so in a line that begins with "Skipped", and exits with 77.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

environment=${1:-build/python-environment}
python=$environment/bin/python
log=build/python-environment.log
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
for package in accelerate regex safetensors sentencepiece tokenizers \
    transformers; do
  if ! has "$package"; then
    echo "Installing $package in $environment."
    "$python" -m pip install --quiet "$package" >> "$log" 2>&1 ||
      echo "pip cannot install $package: $(tail -n 1 "$log")"
  fi
done
