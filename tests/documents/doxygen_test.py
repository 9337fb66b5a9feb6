#!/usr/bin/env python3
"""Makes the pages of the installed headers, and looks for what has no comment.

  python3 tests/documents/doxygen_test.py DOXYGEN DOXYFILE

Fails at a warning of Doxygen's, and at a class, an enumeration or a free function
without a comment; a function directly below another shares that one's. Members
may say all by their names. Doxygen sees the headers through
cmake/doxygen_filter.awk, so that this tests the filter too.
"""

import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

# Comments of which the filter has to keep the text and the layout: a compound or
# member of it, and a part of its description.
KEPT = [
    ('etc::ResidualScores::g2g', '[B, N, G, G]'),
    ('etc::RelativeId', '   delta >= 0   min(delta, m)          0 is the'),
    ('etc::RelativeId', 'delta <  0   m + min(-delta, m)     m + 1 is the left'),
    ('etc::EtcModel', 'Holds a EtcModelImpl'),
    ('RealETC', 'sparse attention with residual scores'),
]


def text(element, *names):
  """The words of the descriptions of an element, with their layout."""
  parts = [''.join(found.itertext()) for name in names
           for found in element.findall(name)]
  return '\n'.join(parts).strip()


def description(element):
  return text(element, 'title', 'briefdescription', 'detaileddescription')


def place(element):
  location = element.find('location')
  return location.get('file'), int(location.get('line'))


def last_line(element):
  location = element.find('location')
  return int(location.get('bodyend') or location.get('line'))


def read(folder):
  """(name, element) of all classes and members, free functions, enumerations."""
  for path in sorted(folder.glob('*.xml')):
    for compound in ElementTree.parse(path).getroot().findall('compounddef'):
      if compound.get('kind') == 'file' or compound.get('prot') == 'private':
        continue  # what is in a file comes as the namespace's
      name = compound.findtext('compoundname')
      if compound.get('kind') == 'page':
        name = compound.findtext('title')
      yield name, compound
      for member in compound.iter('memberdef'):
        if member.get('prot') == 'private':
          continue
        yield f'{name}::{member.findtext("name")}', member


def undocumented(entities):
  free = [(place(e), name, e) for name, e in entities
          if e.get('kind') == 'function' and name.count('::') == 1]
  for name, e in entities:
    if e.get('kind') in ('class', 'struct', 'enum') and not description(e):
      yield f'{place(e)[0]}:{place(e)[1]}: {name} has no comment'
  above = None
  for (file, line), name, e in sorted(free, key=lambda one: one[0]):
    if not description(e) and above != (file, line - 1):
      yield f'{file}:{line}: {name} has no comment'
    else:
      above = (file, last_line(e))


def main(doxygen, doxyfile):
  with tempfile.TemporaryDirectory() as folder:
    settings = pathlib.Path(doxyfile).read_text() + (
        f'\nOUTPUT_DIRECTORY = "{folder}"\nGENERATE_XML = YES\n'
        'GENERATE_HTML = NO\n')
    result = subprocess.run([doxygen, '-'], input=settings, text=True,
                            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                            check=False)
    print(result.stdout, end='')
    entities = list(read(pathlib.Path(folder) / 'xml'))
  mistakes = list(undocumented(entities))
  found = {}
  for name, e in entities:
    found.setdefault(name, '')
    found[name] += description(e)
  mistakes += [f'the page of {name} does not say "{part}"'
               for name, part in KEPT if part not in found.get(name, '')]
  mistakes += [f'the page of {name} shows the marks of comments'
               for name, said in found.items() if '//' in said]
  print('\n'.join(mistakes + [f'{len(found)} entities, {len(mistakes)} mistakes, '
                              f'Doxygen: {result.returncode}']))
  return 1 if mistakes or result.returncode or not found else 0


if __name__ == '__main__':
  sys.exit(main(sys.argv[1], sys.argv[2]))
