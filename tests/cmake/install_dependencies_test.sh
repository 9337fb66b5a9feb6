#!/usr/bin/env bash
# cmake/install_dependencies.sh with stand-ins for dpkg-query, apt-get, sudo and
# id: when apt-get is called, what is said before root is needed, and where its
# output goes. Help and mistakes of tests/run.sh, too, which calls it.
set -euo pipefail
unset CMAKE_PREFIX_PATH Torch_DIR
script=$(dirname "${BASH_SOURCE[0]}")/../../cmake/install_dependencies.sh

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failures=0

# Programs on the PATH of a case: the stand-ins and these.
mkdir "$work/tools"
for tool in bash cat dirname env grep mktemp readlink rm sed uname; do
  ln -s "$(command -v "$tool")" "$work/tools/$tool"
done

# stand_in NAME BODY...: a program of this name; it notes its call in $calls.
stand_in() {
  local name=$1
  shift
  printf '#!/bin/bash\necho "%s $*" >>"%s/calls"\n%s\n' \
    "$name" "$work" "$*" >"$work/bin/$name"
  chmod +x "$work/bin/$name"
}

# begin USER_ID MISSING...: a machine on which these packages are missing.
begin() {
  rm -rf "$work/bin" "$work/tmp"
  mkdir "$work/bin" "$work/tmp"
  : >"$work/calls"
  stand_in id "echo $1"
  shift
  cat >"$work/bin/dpkg-query" <<END
#!/bin/bash
for missing in $*; do [[ \${*: -1} == "\$missing" ]] && exit 1; done
echo installed
END
  chmod +x "$work/bin/dpkg-query"
  stand_in apt-get 'for i in {1..1000}; do echo "Get:$i package"; done'
}

run() {
  status=0
  TMPDIR=$work/tmp PATH=$work/bin:$work/tools bash "$script" "$@" \
    >"$work/out" 2>"$work/err" || status=$?
}

check() {
  local claim=$1
  shift
  if ! "$@"; then
    echo "FAILED: $claim" >&2
    head -n 20 "$work/out" "$work/err" "$work/calls" >&2
    failures=$((failures + 1))
  fi
}

begin 1000
run
check "succeeds if all are there" test "$status" -eq 0
check "does not call apt-get then" test "$(grep -c apt-get "$work/calls")" -eq 0
check "says so in one line" test "$(wc -l <"$work/out")" -eq 1

begin 0 libhwy-dev python3-matplotlib
run python3-matplotlib
check "succeeds as root" test "$status" -eq 0
check "updates and installs" test "$(cat "$work/calls")" = "id -u
apt-get update -q
apt-get install -q -y --no-install-recommends libhwy-dev python3-matplotlib"
check "prints one line" test "$(wc -l <"$work/out")" -eq 1
check "names what is missing" grep -q "libhwy-dev python3-matplotlib" "$work/out"
check "hides apt-get's output" test "$(grep -c Get: "$work/out" "$work/err" |
  grep -vc ':0$')" -eq 0
check "leaves no log" test -z "$(ls "$work/tmp")"

begin 1000 libhwy-dev
stand_in sudo "grep -c sudo '$work/out' >'$work/said'; exec \"\$@\""
run
check "succeeds through sudo" test "$status" -eq 0
check "calls apt-get through it" grep -q "^sudo apt-get update" "$work/calls"
check "speaks of it before" test "$(cat "$work/said")" -ge 1

begin 1000 libhwy-dev
run
check "fails without root and sudo" test "$status" -eq 1
check "names what is missing then" grep -q "root or sudo.*libhwy-dev" "$work/err"
check "does not call apt-get either" test \
  "$(grep -c apt-get "$work/calls")" -eq 0

begin 1000 libtorch-dev libopenblas0-openmp
mkdir -p "$work/torch/share/cmake/Torch"
touch "$work/torch/share/cmake/Torch/TorchConfig.cmake"
for named in CMAKE_PREFIX_PATH="/none:$work/torch" \
  CMAKE_PREFIX_PATH="$work/torch/share/cmake" \
  Torch_DIR="$work/torch/share/cmake/Torch"; do
  status=0
  (export "$named" && run && exit "$status") || status=$?
  check "needs no LibTorch of Debian's beside $named" test "$status" -eq 0
done
CMAKE_PREFIX_PATH=/none run
check "needs Debian's where no other is named" test "$status" -eq 1
check "says what builds without packages" grep -q "cmake --workflow" "$work/err"

begin 0 libhwy-dev
stand_in apt-get '[[ $1 == update ]] || { echo "E: no libhwy-dev"; exit 100; }'
run
check "fails if apt-get does" test "$status" -eq 1
check "shows its output" grep -q "E: no libhwy-dev" "$work/err"
check "keeps the log" test -n "$(ls "$work/tmp")"

begin 0 libhwy-dev
rm "$work/bin/apt-get"
run
check "fails without apt-get" test "$status" -eq 1
check "says what to install" grep -q "no apt-get.*libhwy-dev" "$work/err"

begin 0 libhwy-dev --colour
run --help
check "explains itself" test "$status" -eq 0
check "prints the comment at its head" grep -q "^Installs what RealETC" "$work/out"
check "prints no code" test "$(grep -c pipefail "$work/out")" -eq 0
check "installs nothing at --help" test ! -s "$work/calls"
run --colour
check "refuses what is no package" test "$status" -eq 1
check "names the unknown option" grep -q "no option --colour" "$work/err"
check "installs nothing at a mistake" test ! -s "$work/calls"

script=$(dirname "$script")/../tests/run.sh
run --help
check "tests/run.sh explains itself" test "$status" -eq 0
check "names its presets" grep -q "^PRESET is release" "$work/out"
run Release
check "tests/run.sh refuses an unknown preset" test "$status" -eq 2
check "lists those that there are" grep -q "are: release debug" "$work/err"
check "installs nothing before" test ! -s "$work/calls"

echo "$failures failed"
[[ $failures -eq 0 ]]
