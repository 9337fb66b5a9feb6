#!/usr/bin/env python3
"""Runs every command that README.md and the other pages show.

  python3 tests/documents/commands_test.py SOURCE_DIR BIN_DIR

In blocks of shell (```sh) and of examples ("$ command") each block runs as it
stands, in the order of the page, in a folder where stand_ins.py has put samples
in the place of downloads; a command that fails fails the test. Names in capitals
(CONFIG, HOST) stand for what the reader has, and get a value here. What builds,
tests or measures the project itself takes hours: of these commands the scripts,
presets, targets and filters that they name have to exist. Inside a sentence, a
command's name and its flags have to be those that `--help` knows.
"""

import functools
import json
import os
import pathlib
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import textwrap

import stand_ins

PLACEHOLDERS = {
    'CONFIG': 'tasks/wikihop/configs/base.json --output runs/config_{}',
    'NUMBER_OF_WINDOWS': '10',
    'HOST': '127.0.0.1',
}

# Programs of a block that runs here. Any other has to be checked by one of
# CHECKS, so that a new kind of command cannot be passed over.
RUN = {'realetc', 'export', 'curl', 'unzip', 'mkdir', 'for', 'done', 'do',
       '(cd', 'torchrun', 'mpirun', 'srun', 'cd', 'zip', '['}


def copies(modes):
  """Commands that put the demos of stand_ins.train_demos under names of runs."""
  return ['mkdir -p runs'] + [f'cp -a demos/{mode} runs/{name}'
                              for name, mode in modes.items()]


# Runs that a page takes as given.
PREPARATION = {
    'doc/attention_analysis.md': copies({'demo': 'sum', 'off': 'off',
                                         'sum': 'sum'}),
    'doc/distributed.md': [
        "realetc tokenize 'books/*.txt' --format text --documents 2 "
        '--vocabulary vocab.txt --output corpus.tokens'],
    'doc/predicting.md': copies({'demo': 'sum'}),
    'doc/reports.md': copies({'off': 'off', 'sum': 'sum'}),
    'tasks/classify/README.md': [
        'cp tasks/classify/configs/documents_etc_base.json documents.json'],
    'tasks/tokens/README.md': [
        'cp tasks/tokens/configs/names_etc_base.json names.json'],
    'tasks/glue/README.md': [
        f'realetc train tasks/glue/configs/mrpc_bert_base.json '
        f'--set init=bert-base-uncased --set tokenizer.vocabulary=vocab.txt '
        f'--set glue.name={name.lower()} --set data.train={name}/train.tsv '
        f'--set data.dev={dev} --output runs/{name}'
        for name, dev in [
            ('CoLA', 'CoLA/dev.tsv'), ('SST-2', 'SST-2/dev.tsv'),
            ('MRPC', 'MRPC/dev.tsv'), ('STS-B', 'STS-B/dev.tsv'),
            ('QQP', 'QQP/dev.tsv'), ('QNLI', 'QNLI/dev.tsv'),
            ('RTE', 'RTE/dev.tsv'), ('WNLI', 'WNLI/dev.tsv'),
            ('MNLI', "'[\"MNLI/dev_matched.tsv\", "
                     "\"MNLI/dev_mismatched.tsv\"]'")]],
}


class Failure(Exception):
  pass


def shell(line, work, **options):
  return subprocess.run(['bash', '-c', f'set -e\n{line}'], cwd=work, text=True,
                        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                        stderr=subprocess.STDOUT, **options)


def prepare(line, work):
  result = shell(line, work)
  if result.returncode:
    raise SystemExit(f'preparing: {line}\n{result.stdout}')


def blocks(text):
  """(line number, commands) of each block of shell or of an example."""
  for match in re.finditer(r'^( *)```(\w*)\n(.*?)^ *```', text, re.S | re.M):
    body = textwrap.dedent(match.group(3))
    line = text.count('\n', 0, match.start()) + 2
    if match.group(2) in ('sh', 'bash'):
      yield line, body
    elif body.startswith('$ '):
      yield line, '\n'.join(examples(body))


def examples(body):
  """The commands behind "$ ", without what they print."""
  follows = False
  for line in body.splitlines():
    if follows or line.startswith('$ '):
      yield line.removeprefix('$ ')
      follows = line.endswith('\\')


def commands(block):
  """The lines of a block, joined where they go on, without comments."""
  joined = re.sub(r'\\\n\s*', ' ', block)
  for line in joined.splitlines():
    line = re.sub(r'(^|\s)#.*$', '', line).strip()
    if line:
      yield line


def program(command):
  words = command.split()
  while words and re.match(r'^\w+=\S*$', words[0]):
    words.pop(0)
  return words[0]


def filled(command, number, work):
  """The command with values for names in capitals; its output is free."""
  for name, value in PLACEHOLDERS.items():
    command = re.sub(rf'\b{name}\b', value.format(number), command)
  run = re.search(r'realetc train (\S+)(?:.*--output (\S+))?', command)
  if run and '--resume' not in command:
    output = run.group(2) or json.loads((work / run.group(1)).read_text())[
        'output']
    shutil.rmtree(work / output, ignore_errors=True)
  return command


# --- Commands that are checked, not run --------------------------------------


def check_script(words, source, _):
  path = source / words[1]
  if not path.is_file():
    raise Failure(f'there is no {words[1]}')
  check = (['bash', '-n'] if path.suffix == '.sh'
           else [sys.executable, '-c', 'import ast, sys; '
                 'ast.parse(open(sys.argv[1]).read())'])
  if subprocess.run(check + [str(path)], check=False).returncode:
    raise Failure(f'{words[1]} is not valid')


@functools.cache
def listing(command, folder):
  return subprocess.run(command.split(), cwd=folder, text=True, check=True,
                        stdout=subprocess.PIPE).stdout


def check_cmake(words, source, binaries):
  build = binaries.parent
  is_target = False
  for flag, value in zip(words, words[1:]):
    # Several may follow. Pages of headers are made where there is doxygen.
    is_target = not value.startswith('-') and (is_target or flag == '--target')
    if is_target and (value != 'doc' or shutil.which('doxygen')) and not re.search(
        rf'^{re.escape(value)}:',
        listing('cmake --build . --target help', build), re.M):
      raise Failure(f'there is no target {value}')
    if flag == '-R' and not re.search(rf'^ *Test +#\d+: .*{value}',
                                      listing('ctest -N', build), re.M):
      raise Failure(f'no test is called {value}')
    if flag == '--preset' and f'"{value}"' not in listing(
        'cmake --list-presets=all', source):
      raise Failure(f'there is no preset {value}')
    if flag == '-S' and not (source / value / 'CMakeLists.txt').is_file():
      raise Failure(f'there is no project in {value}')


def check_benchmark(words, source, binaries):
  path = binaries / pathlib.Path(words[0]).name
  if not path.exists():  # Built without benchmarks.
    if not (source / 'bench' / f'{path.name}.cc').is_file():
      raise Failure(f'there is no {path.name}')
    return
  chosen = [word for word in words if word.startswith('--benchmark_filter')]
  # Exits with 1 where none is chosen.
  listed = subprocess.run([str(path), '--benchmark_list_tests=true'] + chosen,
                          text=True, stdout=subprocess.PIPE, check=False,
                          stderr=subprocess.DEVNULL)
  if listed.returncode == 0 and listed.stdout.strip():
    return
  # Those on a device are there where one is.
  code = (source / 'bench' / f'{path.name}.cc').read_text()
  on_device = path.name.startswith('cuda_') or (
      'device:cuda' in ' '.join(chosen) and '/device:cuda' in code)
  if not on_device:
    raise Failure(f'{" ".join(chosen)} chooses no benchmark')


def check_perf(words, source, binaries):
  if len(words) > 2:
    check_benchmark(words[2:], source, binaries)


def check_compiler(words, source, _):
  for word in words:
    if word.endswith('.cc') and not (source / word).is_file():
      raise Failure(f'there is no {word}')


def check_nothing(words, source, binaries):
  """Takes a network (Python's packages), or a whole build (packages)."""
  del words, source, binaries


CHECKS = {
    'bash': check_script, 'python3': check_script, 'cmake': check_cmake,
    'ctest': check_cmake, 'perf': check_perf,
    'g++': check_compiler, 'cpack': check_nothing,
    'hf/bin/pip': check_nothing, 'hf/bin/python': check_script,
    'pip': check_nothing, 'python': check_script,
}


def check(command, source, binaries):
  words = shlex.split(command)
  while re.match(r'^\w+=\S*$', words[0]):
    words.pop(0)
  if words[:3] == ['python3', '-m', 'venv']:
    return
  if words[0].startswith('build/release/bin/'):
    return check_benchmark(words, source, binaries)
  if words[0] not in CHECKS:
    raise Failure(f'neither run nor checked here: {words[0]}')
  CHECKS[words[0]](words, source, binaries)


# --- Commands inside a sentence ----------------------------------------------


def help_of(words, work, known):
  if words not in known:
    result = shell(shlex.join(('realetc',) + words + ('--help',)), work)
    known[words] = result.stdout if result.returncode == 0 else None
  return known[words]


def check_mention(span, work, known):
  """`realetc COMMAND ... --flag` in a sentence: do both exist?"""
  words = re.findall(r'\S+', span)[1:]
  if not words:
    return
  if words[0].startswith('-'):
    text = help_of((), work, known)
  elif not re.match(r'^[a-z]+$', words[0]):
    return
  else:
    text = help_of((words[0],), work, known)
    if text is None:
      raise Failure(f'realetc has no command {words[0]}')
  for flag in re.findall(r'(?<![\w-])--[a-z][a-z-]*', span):
    if not re.search(rf'(?<![\w-]){flag}(?![\w-])', text):
      raise Failure(f'{words[0]} has no {flag}')


# --- Pages -------------------------------------------------------------------


def run_block(block, work, source, binaries):
  """Runs one block; returns how many of its commands ran."""
  lines = list(commands(block))
  there = [line for line in lines if program(line) in RUN]
  for line in lines:
    if line not in there:
      check(line, source, binaries)
  if there:
    result = shell('\n'.join(filled(line, number, work)
                             for number, line in enumerate(there)), work)
    if result.returncode:
      raise Failure(f'exit code {result.returncode}\n{result.stdout[-3000:]}')
  return len(there)


def run_page(page, source, binaries, work, known):
  text = (source / page).read_text()
  failures, ran = [], 0
  shutil.rmtree(work / 'runs', ignore_errors=True)
  for line in PREPARATION.get(page, []):
    prepare(line, work)
  for line, block in blocks(text):
    try:
      ran += run_block(block, work, source, binaries)
    except Failure as failure:
      failures.append(f'{page}:{line}: {failure}\n{block}')
  prose = re.sub(r'^ *```.*?^ *```', lambda m: '\n' * m.group().count('\n'),
                 text, flags=re.S | re.M)
  for match in re.finditer(r'`(realetc [^`]*)`', prose):
    line = prose.count('\n', 0, match.start()) + 1
    try:
      check_mention(match.group(1), work, known)
    except Failure as failure:
      failures.append(f'{page}:{line}: {failure}')
  return ran, failures


def main(source, binaries):
  pages = sorted(page for page in subprocess.run(
      ['find', '.', '-name', '*.md', '-not', '-path', './build/*', '-not',
       '-path', './runs/*', '-printf', '%P\n'], cwd=source, text=True,
      stdout=subprocess.PIPE, check=True).stdout.split())
  failures, total, known = 0, 0, {}
  with tempfile.TemporaryDirectory() as folder:
    work = pathlib.Path(folder)
    os.environ.update(
        PATH=f'{work / "programs"}:{os.environ["PATH"]}',
        DOWNLOADS=str(work / 'downloads'), OMP_NUM_THREADS='1')

    stand_ins.prepare(source, work, binaries / 'realetc',
                      lambda line: prepare(line, work))
    for page in pages:
      ran, failed = run_page(page, source, binaries, work, known)
      print('\n'.join(failed + [f'{page}: {ran} commands ran']), flush=True)
      total += ran
      failures += len(failed)
  print(f'{total} commands of {len(pages)} pages ran, {failures} failed')
  return 1 if failures or total == 0 else 0


if __name__ == '__main__':
  sys.exit(main(pathlib.Path(sys.argv[1]).resolve(),
                pathlib.Path(sys.argv[2]).resolve()))
