#!/usr/bin/env bash
# A benchmark of long documents that anybody with Debian can make again: pages of
# its documentation packages, and two questions about them, answered by ETC, by
# ETC and BERT on the first 512 tokens, and by TF-IDF with logistic regression.
#
#   bash bench/debian_documents.sh chapters   # of which chapter is a page?
#   bash bench/debian_documents.sh links      # which page belongs to a link?
#   bash bench/debian_documents.sh --help
#
# The program is build/release/bin/realetc, or what REALETC says. May be
# interrupted: started again it goes on. Leaves documents, runs and table.md in
# runs/debian_documents. bench/debian_documents.py says what is done.
set -euo pipefail

bench=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
# Debian's modules are its own Python's, which need not be the first.
python=${PYTHON:-python3}
"$python" -c 'import bs4, sklearn' 2>/dev/null || python=/usr/bin/python3
"$python" -c 'import bs4, sklearn' 2>/dev/null ||
  { echo "debian_documents: Python lacks bs4 or sklearn:" \
      "apt-get install python3-bs4 python3-sklearn" >&2
    exit 1; }
exec "$python" "$bench/debian_documents.py" "$@"
