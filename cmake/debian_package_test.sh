#!/usr/bin/env bash
# Packs the release build as Debian packages, installs them in a bare Debian, and
# builds and runs examples there. As root, with Debian's mirror reachable, which
# is why no other test calls it:
#
#   bash cmake/debian_package_test.sh [ROOT]
#
# ROOT is where the bare Debian is, or is put by debootstrap (default: a new
# folder below /var/tmp, 2 GB, which is removed at the end).
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/show_help.sh"
cd "$(dirname "${BASH_SOURCE[0]}")/.."

fail() {
  echo "debian_package_test: $*" >&2
  exit 1
}
[[ $(id -u) -eq 0 ]] || fail "needs root, for chroot"
for program in debootstrap dpkg-shlibdeps; do
  command -v "$program" >/dev/null ||
    fail "there is no $program (Debian packages debootstrap, dpkg-dev)"
done

build=$PWD/build/release
packages=$build/packages
step() { printf '\n== %s\n' "$*"; }

step "Packages"
rm -rf "$packages"
# Gives the packages a revision, as distributions do.
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$packages" \
  -D CPACK_DEBIAN_PACKAGE_RELEASE=1 >/dev/null
rm -rf "$packages/_CPack_Packages"
for package in "$packages"/*.deb; do
  echo "$(basename "$package"): $(($(stat -c %s "$package") / 1000)) kB," \
    "$(dpkg-deb --field "$package" Installed-Size) kB installed"
  echo "  depends on $(dpkg-deb --field "$package" Depends)"
done

if [[ -n ${1:-} ]]; then
  root=$1
else
  root=$(mktemp -d /var/tmp/bare_debian.XXXXXX)
  trap 'rm -rf "$root"' EXIT
fi
step "A bare Debian in $root"
[[ -x $root/bin/sh ]] ||
  debootstrap --variant=minbase bookworm "$root" >/dev/null ||
  fail "debootstrap failed; $root/debootstrap/debootstrap.log says why"
echo "$(chroot "$root" dpkg-query --show | wc -l) packages"
rm -rf "$root/packages"
cp -r "$packages" "$root/packages"

# The script that runs in there; /proc is mounted for it alone.
cat >"$root/packages/test.sh" <<'END'
set -euo pipefail
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
cd /packages
apt-get update -q >apt.log 2>&1 || { cat apt.log; exit 1; }
apt_install() {
  apt-get install -q -y --no-install-recommends "$@" >>apt.log 2>&1 ||
    { tail -n 20 apt.log; exit 1; }
}
echo "== The program alone"
apt_install ./realetc_*.deb ./realetc-modules_*.deb
realetc --version
cd /usr/share/realetc
realetc train tasks/classify/configs/demo.json --set train.steps=20 \
  --set train.evaluate_every=20 --output /tmp/demo >/tmp/demo.log 2>&1 ||
  { cat /tmp/demo.log; exit 1; }
realetc evaluate /tmp/demo
echo "== Examples by CMake and the library"
cd /packages
apt_install ./librealetc-dev_*.deb g++ cmake make pkg-config
cmake -S /usr/share/realetc/examples -B /tmp/examples >/tmp/cmake.log
cmake --build /tmp/examples --parallel "$(nproc)" >>/tmp/cmake.log
ctest --test-dir /tmp/examples --output-on-failure
echo "== An example by pkg-config"
g++ -std=c++20 /usr/share/realetc/examples/attention_padding.cc -o /tmp/padding \
  $(pkg-config --cflags --libs realetc)
/tmp/padding
echo "== Removed again"
apt-get remove -q -y realetc librealetc-dev realetc-modules >>apt.log 2>&1
if find /usr -ipath '*realetc*' -print -quit | grep .; then
  echo "was left behind" >&2
  exit 1
fi
END
# shellcheck disable=SC2016 # $1 is the inner shell's.
unshare --mount bash -c '
  mount -t proc proc "$1/proc"
  exec chroot "$1" bash /packages/test.sh' _ "$root"
step "All passed"
