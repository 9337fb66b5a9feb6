#!/usr/bin/env python3
"""Looks for the programs that pages show among those that tests build.

  python3 tests/documents/programs_test.py SOURCE_DIR

Each block of C++ or CMake in those pages has to be in a file of examples/ or
tests/package/, line for line; the block may be indented less. And
doc/library.md links to each program of examples/.
"""

import pathlib
import re
import sys
import textwrap

PAGES = ['README.md', 'doc/library.md', 'doc/predicting.md']
PROGRAMS = ['examples/*.cc', 'examples/CMakeLists.txt', 'tests/package/*.cc',
            'tests/package/CMakeLists.txt']


def parts(text, lines):
  """All parts of a text of that many lines, each without its common indent."""
  text = text.splitlines()
  for first in range(len(text) - lines + 1):
    yield textwrap.dedent('\n'.join(text[first:first + lines]))


def main(source):
  files = [path for pattern in PROGRAMS for path in source.glob(pattern)]
  texts = {path: path.read_text() for path in files}
  shown, mistakes = 0, 0
  for page in PAGES:
    text = (source / page).read_text()
    for match in re.finditer(r'^```(?:cpp|cmake)\n(.*?)^```', text,
                             re.S | re.M):
      block = textwrap.dedent(match.group(1).rstrip('\n'))
      count = block.count('\n') + 1
      shown += 1
      if not any(block in parts(one, count) for one in texts.values()):
        line = text.count('\n', 0, match.start()) + 1
        print(f'{page}:{line}: no file of {", ".join(PROGRAMS)} has this block')
        mistakes += 1
  page = (source / 'doc/library.md').read_text()
  for path in sorted(source.glob('examples/*.cc')):
    if f'(../examples/{path.name})' not in page:
      print(f'doc/library.md: has no link to examples/{path.name}')
      mistakes += 1
  print(f'{shown} blocks, {mistakes} mistakes')
  return 1 if mistakes or not shown else 0


if __name__ == '__main__':
  sys.exit(main(pathlib.Path(sys.argv[1])))
