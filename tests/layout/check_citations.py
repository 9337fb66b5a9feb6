#!/usr/bin/env python3
"""Checks that what the repository cites is there.

  check_citations.py ROOT      all tracked files below ROOT

A citation is a path from the root and section numbers: `doc/model.md 3.2`,
`doc/model.md 3.2, 10.1`, `doc/formats.md 4.1 to 4.4`, `doc/nq.md 9.1, trap 4`.
A section is a heading that begins with its number, or a row of a table whose
first cell is a number of three parts (`| 2.5.9 |`); a trap is a numbered line
below the heading "Traps". Also checked: relative links in *.md, with their
anchors; in doc/, references like §3.4 to sections of the same document; in
tables whose header links to a document (`[section](../../doc/nq.md)`), the
numbers below it.

Prints `file:line: what is wrong` for each mistake and exits with 1 if there
was one.
"""

import os
import re
import subprocess
import sys
from pathlib import Path
from urllib.parse import unquote

SUFFIXES = {'.cc', '.cmake', '.h', '.md', '.py', '.sh'}
NUMBER = r'\d+(?:\.\d+)*'
NUMBERS = rf'{NUMBER}(?:(?:[,;]|,?\s+and|\s+to)\s+{NUMBER})*'
CITATION = re.compile(rf'(?<![\w/.\-])(doc/[\w\-./]+\.md)(?:\s+({NUMBERS}))?'
                      rf'(?:[,;]\s+traps?\s+({NUMBERS}))?')
LINK = re.compile(r'\[(?:[^\[\]]|\[[^\[\]]*\])*\]\(([^()\s]+(?:\([^()]*\))?)\)')
HEADING = re.compile(r'#{1,6}\s+(.*?)\s*#*$')
# What citations looked like before doc/ was there: nobody can resolve them.
STALE = [
    (re.compile(rf'(?i)\bspec(?:ification,)?\s+{NUMBER}'),
     'cite as `doc/<name>.md <section>`'),
    (re.compile(r'\b(?:ETC|ST|TF)\d+\b'),
     'a code of an error: cite the rule, as `doc/formats.md 2.5.9`'),
]


def tracked_files(root):
    """Paths of the files that belong to the repository, or to its export."""
    try:
        def git(*arguments):
            return subprocess.run(['git', '-C', root, *arguments], check=True,
                                  capture_output=True, text=True).stdout
        if Path(git('rev-parse', '--show-toplevel').strip()) == root.resolve():
            return [p for p in git('ls-files', '-z').split('\0')
                    if p and (root / p).is_file()]
    except (OSError, subprocess.CalledProcessError):
        pass
    found = []
    for folder, folders, files in os.walk(root):
        folders[:] = [f for f in folders if f not in ('.git', 'build')]
        found += [str((Path(folder) / f).relative_to(root)) for f in files]
    return sorted(found)


def without_code(text):
    """Markdown with fenced and inline code blanked, lines kept."""
    blank = lambda m: re.sub(r'[^\n]', ' ', m.group(0))
    text = re.sub(r'(?ms)^```.*?^```', blank, text)
    return re.sub(r'(`+)(?!`)[^\n]+?(?<!`)\1(?!`)', blank, text)


def anchor(heading):
    """The anchor that GitHub gives to a heading."""
    heading = re.sub(r'\[([^\]]*)\]\([^)]*\)', r'\1', heading)
    heading = re.sub(r'[^\w\- ]', '', heading.replace('`', '').lower())
    return heading.replace(' ', '-')


class Document:
    """Sections, anchors and traps of a markdown file."""

    def __init__(self, text):
        self.sections, self.anchors, self.traps = set(), set(), set()
        is_traps, is_code = False, False
        for line in text.splitlines():
            if line.startswith('```'):
                is_code = not is_code
            heading = None if is_code else HEADING.match(line)
            if heading:
                title = heading.group(1)
                number = re.match(rf'({NUMBER})\.?\s', title)
                if number:
                    self.sections.add(number.group(1))
                is_traps = title.endswith('Traps')
                name, count = anchor(title), 0
                while name in self.anchors:
                    count += 1
                    name = f'{anchor(title)}-{count}'
                self.anchors.add(name)
            row = re.match(r'\|\s*(\d+\.\d+\.\d+)\s*\|', line)
            if row:
                self.sections.add(row.group(1))
            item = re.match(r'(\d+)\.\s', line)
            if is_traps and item:
                self.traps.add(item.group(1))
        self.anchors |= set(re.findall(r'<a (?:id|name)="([^"]+)"', text))


class Checker:

    def __init__(self, root):
        self.root = Path(root)
        self.files = tracked_files(self.root)
        self.folders = {''} | {str(parent) for f in self.files
                               for parent in Path(f).parents}
        self.documents = {}
        self.mistakes = []
        self.resolved = 0

    def document(self, path):
        if path not in self.documents:
            self.documents[path] = Document(
                (self.root / path).read_text(encoding='utf-8'))
        return self.documents[path]

    def fail(self, path, text, offset, message):
        line = text.count('\n', 0, offset) + 1
        self.mistakes.append(f'{path}:{line}: {message}')

    def sections(self, path, text, offset, cited, numbers, traps=''):
        """Checks that the document `cited` has these sections and traps."""
        if cited not in self.files:
            self.fail(path, text, offset, f'there is no {cited}')
            return
        document = self.document(cited)
        missing = [n for n in re.findall(NUMBER, numbers)
                   if n not in document.sections]
        missing += [f'trap {n}' for n in re.findall(NUMBER, traps)
                    if n not in document.traps]
        for name in missing:
            self.fail(path, text, offset, f'{cited} has no {name}')
        if not missing:
            self.resolved += 1

    def check_text(self, path, text):
        # A citation may go on behind the mark of the next comment line.
        plain = re.sub(r'(?m)^[ \t]*(?://+|#+)(?=[ \t])',
                       lambda m: ' ' * len(m.group(0)), text)
        if path.endswith('.md'):  # targets of links are check_links'
            plain = re.sub(r'\]\([^()\s]*\)',
                           lambda m: ' ' * len(m.group(0)), plain)
        for m in CITATION.finditer(plain):
            self.sections(path, text, m.start(), m.group(1), m.group(2) or '',
                          m.group(3) or '')
        for pattern, message in STALE:
            for m in pattern.finditer(plain):
                found = ' '.join(m.group(0).split())
                self.fail(path, text, m.start(), f'"{found}": {message}')

    def check_links(self, path, text):
        plain = without_code(text)
        for m in LINK.finditer(plain):
            target, _, fragment = m.group(1).partition('#')
            if re.match(r'[a-z][a-z+.\-]*:', target):
                continue
            full = os.path.normpath(os.path.join(
                os.path.dirname(path), unquote(target))) if target else path
            if full not in self.files and full not in self.folders:
                self.fail(path, text, m.start(), f'there is no {full}')
            elif fragment and (full not in self.files or unquote(fragment)
                               not in self.document(full).anchors):
                self.fail(path, text, m.start(), f'{full} has no #{fragment}')
            else:
                self.resolved += 1
        if path.startswith('doc/'):
            for m in re.finditer(rf'§({NUMBER})', plain):
                self.sections(path, text, m.start(), path, m.group(1))
        self.check_tables(path, text)

    def check_tables(self, path, text):
        columns, offset = {}, 0
        for line in text.splitlines(keepends=True):
            cells = line.strip().strip('|').split('|')
            if not line.startswith('|'):
                columns = {}
            elif not columns:
                for i, cell in enumerate(cells):
                    link = re.search(r'\]\(([^)]*doc/\w+\.md)\)', cell)
                    columns[i] = link and os.path.normpath(
                        os.path.join(os.path.dirname(path), link.group(1)))
            elif not set(line) <= set('|-: \n'):
                for i, cell in enumerate(cells):
                    numbers = re.match(NUMBERS, cell.strip())
                    if columns.get(i) and numbers:
                        self.sections(path, text, offset, columns[i],
                                      numbers.group(0))
            offset += len(line)

    def check(self):
        for path in self.files:
            if not (Path(path).suffix in SUFFIXES or
                    path.endswith('CMakeLists.txt')):
                continue
            text = (self.root / path).read_text(encoding='utf-8')
            self.check_text(path, text)
            if path.endswith('.md'):
                self.check_links(path, text)
        return self.mistakes


def main(arguments):
    if len(arguments) != 1 or arguments[0].startswith('-'):
        print(__doc__, file=sys.stderr)
        return 2
    checker = Checker(arguments[0])
    for mistake in checker.check():
        print(mistake)
    print(f'{checker.resolved} citations and links resolve, '
          f'{len(checker.mistakes)} mistakes')
    return 1 if checker.mistakes else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))
