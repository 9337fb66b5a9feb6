#!/usr/bin/env bash
# Installs what RealETC is built with on Debian 12 or later, as root or through
# sudo. README.md says what each package is for. Changes nothing when all of
# them are there.
set -euo pipefail

packages=(
  g++ cmake ninja-build pkg-config
  libtorch-dev libgloo-dev libopenblas0-openmp libdnnl-dev
  libabsl-dev nlohmann-json3-dev libsnappy-dev zlib1g-dev libcli11-dev libhwy-dev
  libicu-dev libsentencepiece-dev
  libgtest-dev libgmock-dev libbenchmark-dev
  clang-format python3
)

is_installed() {
  dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null |
    grep -qx installed
}

if ! command -v apt-get >/dev/null; then
  echo "install_dependencies: there is no apt-get here; please install what" \
    "corresponds to: ${packages[*]}" >&2
  exit 1
fi

missing=()
for package in "${packages[@]}"; do
  is_installed "$package" || missing+=("$package")
done
if [[ ${#missing[@]} -eq 0 ]]; then
  echo "Packages: all ${#packages[@]} are installed."
else
  as_root=()
  if [[ $EUID -ne 0 ]]; then
    if ! command -v sudo >/dev/null; then
      echo "install_dependencies: needs root or sudo to install:" \
        "${missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  echo "Packages: installing ${missing[*]}"
  "${as_root[@]}" apt-get update -q
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y \
    --no-install-recommends "${missing[@]}"
fi

# With the plain reference BLAS everything is some 20 times slower.
blas=$(readlink -f /usr/lib/"$(uname -m)"-linux-gnu/libblas.so.3 || true)
if [[ $blas != *openblas-openmp* ]]; then
  echo "Warning: libblas.so.3 is ${blas:-absent}, not OpenBLAS with OpenMP;" \
    "see update-alternatives(1). Everything will be slow." >&2
fi
