"""Writes the text of test files as one file, which compiles much faster.

  python3 tests/join_files.py JOINED FILE...

Each file's unnamed namespace is given a name, so that names in one never clash
with those in another. Messages and debuggers name the files as they are.
"""

import pathlib
import re
import sys

tests = pathlib.Path(__file__).resolve().parent
joined = pathlib.Path(sys.argv[1])
parts = []
for name in sys.argv[2:]:
  path = pathlib.Path(name)
  text = path.read_text(encoding="utf-8")
  own = re.sub(r"\W", "_", str(
      path.resolve().relative_to(tests).with_suffix("")))
  text = re.sub(r"^namespace \{$", f"namespace {own} {{", text, flags=re.M)
  parts.append(f'#line 1 "{path}"\n{text}')
joined.parent.mkdir(parents=True, exist_ok=True)
joined.write_text("\n".join(parts), encoding="utf-8")
