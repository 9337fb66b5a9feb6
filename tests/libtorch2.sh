#!/usr/bin/env bash
# Builds everything with the LibTorch of a Python environment, such as PyPI's
# newest, and runs all tests:
#
#   bash tests/libtorch2.sh [ENVIRONMENT [CMAKE_OPTION...]]
#
# ENVIRONMENT is a folder that `python3 -m venv` made, with torch in it. Where
# there is none, by default in build/libtorch2-python, it is made, and the newest
# torch is downloaded (some 2 GB). Builds in build/libtorch2, with warnings as
# errors; ends with "N passed, N failed" as tests/run.sh does.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../cmake/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

environment=${1:-build/libtorch2-python}
shift || true

if [[ ! -x $environment/bin/python ]]; then
  bash cmake/install_dependencies.sh python3-venv
  echo "Installing torch in $environment."
  python3 -m venv "$environment"
  "$environment/bin/python" -m pip install --quiet torch
fi
# Says nothing that CMake could take for a path if torch is not there.
prefix=$("$environment/bin/python" -W ignore -c \
  'import torch; print(torch.utils.cmake_prefix_path)')

exec bash tests/run.sh libtorch2 "-DTorch_DIR=$prefix/Torch" \
  -DETC_WARNINGS_AS_ERRORS=ON "$@"
