#!/usr/bin/env bash
# Installs what RealETC is built with on Debian 12 or later, as root or through
# sudo. doc/building.md says what each package is for.
#
#   bash cmake/install_dependencies.sh [PACKAGE...]   # and these
#
# Where CMAKE_PREFIX_PATH or Torch_DIR in the environment names another LibTorch,
# without Debian's and its BLAS.
#
# Calls apt-get only if a package is missing; its output goes to a log that is
# shown if it fails.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/show_help.sh"

# True if CMAKE_PREFIX_PATH or Torch_DIR names a LibTorch.
names_torch() {
  local folders folder below
  IFS=':;' read -ra folders <<<"${Torch_DIR:-}:${CMAKE_PREFIX_PATH:-}"
  for folder in "${folders[@]}"; do
    for below in "" /Torch /share/cmake/Torch; do
      [[ -n $folder && -e $folder$below/TorchConfig.cmake ]] && return
    done
  done
  return 1
}

torch=(libtorch-dev libopenblas0-openmp)
! names_torch || torch=()
packages=(
  g++ cmake ninja-build pkg-config
  "${torch[@]}" libgloo-dev libdnnl-dev
  libabsl-dev nlohmann-json3-dev libsnappy-dev libssl-dev zlib1g-dev
  libcli11-dev libhwy-dev
  libicu-dev libsentencepiece-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  clang-format python3
  "$@"
)

is_installed() {
  dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null |
    grep -qx installed
}

fail() {
  echo "install_dependencies: $*" >&2
  exit 1
}
for package in "$@"; do
  [[ $package != -* ]] || fail "there is no option $package; see --help"
done

# Runs a command, as root if there is something before it, with its output in
# the log.
logged() {
  echo "+ $*" >>"$log"
  "$@" >>"$log" 2>&1 && return
  cat "$log" >&2
  fail "\"$*\" failed; its output is above and in $log"
}

install() {
  local as_root=() how="as root"
  if [[ $(id -u) -ne 0 ]]; then
    command -v sudo >/dev/null ||
      fail "needs root or sudo to install: ${missing[*]}. With the same from" \
        "elsewhere, \"cmake --workflow --preset release\" builds and tests."
    as_root=(sudo)
    how="as root, for which sudo may ask for your password"
  fi
  log=$(mktemp "${TMPDIR:-/tmp}/install_dependencies.XXXXXX.log")
  echo "Packages: installing ${#missing[@]} of ${#packages[@]} with apt-get," \
    "$how: ${missing[*]} (log: $log)"
  logged "${as_root[@]}" apt-get update -q
  logged "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install \
    -q -y --no-install-recommends "${missing[@]}"
  rm -f "$log"
}

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "Packages: all ${#packages[@]} are installed."
elif command -v apt-get >/dev/null; then
  install
else
  fail "there is no apt-get here; please install what corresponds to:" \
    "${missing[*]}"
fi

# With the plain reference BLAS everything is some 20 times slower.
blas=$(readlink -f /usr/lib/"$(uname -m)"-linux-gnu/libblas.so.3 || true)
if [[ ${#torch[@]} -gt 0 && $blas != *openblas-openmp* ]]; then
  echo "Warning: libblas.so.3 is ${blas:-absent}, not OpenBLAS with OpenMP;" \
    "see update-alternatives(1). Everything will be slow." >&2
fi
