#!/usr/bin/env bash
# Runs a study of residual scores, or goes on with it: depth, switch, robustness,
# half, hops or translation_depth, a quarter of an hour to two hours on two
# cores, or multi30k_tiny, hours.
#
#   bash bench/studies.sh depth
#   bash bench/studies.sh --help
#
# The program is build/release/bin/realetc, or what REALETC says. May be
# interrupted: started again it goes on. Leaves results.jsonl, table.md and
# picture.svg in runs/studies/NAME. bench/studies.py says what is run.
set -euo pipefail

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Debian's matplotlib is its own Python's, which need not be the first.
python=python3
"$python" -c 'import matplotlib' 2>/dev/null || python=/usr/bin/python3
command -v "$python" >/dev/null ||
  { echo "studies: there is no python3: apt-get install python3-matplotlib" >&2
    exit 1; }
exec "$python" "$bench/studies.py" "$@"
