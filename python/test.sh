#!/usr/bin/env bash
# Builds and tests the Python package:
#
#   bash python/test.sh [ENVIRONMENT [PYTEST_OPTION...]]
#
# in ENVIRONMENT, by default build/python-environment, which python/environment.sh
# makes and completes. Ends with "N passed, N failed" and the time; where PyPI cannot
# be reached, or there is no compiler or Highway, says so in a line that begins with
# "Skipped", and exits with 77. Tests beside the C++ library want its programs and
# tests in build/release (bash tests/run.sh). Those that are skipped, for want of
# them or of a package, are listed.
set -euo pipefail
# Sets `environment` from the first argument, `python` and `skip`.
source "$(dirname "${BASH_SOURCE[0]}")/environment.sh"
shift || true
log=build/python-test.log

started=$SECONDS
if ! "$python" -m pip install --no-build-isolation --no-deps --force-reinstall \
    ./python > "$log" 2>&1; then
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
