#!/usr/bin/env python3
"""Runs scripts of bench/ on files as programs write them: length_plot.py, report.py,
run.sh.

  python3 tests/bench_report_test.py SOURCE_DIR

Files have repetitions, aggregates, failed runs and a BLAS without AVX, or are not
whole. A stand-in for matplotlib draws nothing; stand-ins for programs measure nothing.
"""

import json
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile
import unittest

SOURCE = pathlib.Path(sys.argv[1]).resolve()
SLOW_BLAS = ('OpenBLAS 0.3.21 Prescott: does not know this CPU and computes without '
             'AVX; set OPENBLAS_CORETYPE=SkylakeX')
MATPLOTLIB = {'__init__.py': 'def use(_): pass\n', 'pyplot.py': '''
from unittest import mock

def subplots(figsize):
  return mock.Mock(), mock.Mock(lines=[])

def close(_): pass
'''}
CURVES = (('dense', 'off'), ('kernel', 'sum'), ('kernel', 'off'))


def name(backend, residual, length, threads=1):
  return (f'Attention/{backend}/training/residual:{residual}/fp32/long:{length}/'
          f'global:256/radius:84/threads:{threads}/real_time')


def run(of, milliseconds, **fields):
  return {'name': of, 'run_type': 'iteration', 'real_time': milliseconds,
          'cpu_time': milliseconds, 'time_unit': 'ms',
          'peak_bytes': 1e6 * milliseconds, **fields}


def aggregate(of, kind, milliseconds):
  return {**run(f'{of}_{kind}', milliseconds), 'run_type': 'aggregate',
          'aggregate_name': kind}


def failed(of):
  return {'name': of, 'run_type': 'iteration', 'error_occurred': True,
          'error_message': 'no such file', 'real_time': 0.0, 'cpu_time': 0.0,
          'time_unit': 'ms'}


class BenchReportTest(unittest.TestCase):

  def setUp(self):
    folder = tempfile.TemporaryDirectory()
    self.addCleanup(folder.cleanup)
    self.folder = pathlib.Path(folder.name)
    (self.folder / 'matplotlib').mkdir()
    for file, text in MATPLOTLIB.items():
      (self.folder / 'matplotlib' / file).write_text(text)

  def write(self, runs, blas='OpenBLAS 0.3.21 SkylakeX'):
    (self.folder / 'attention.1.json').write_text(json.dumps({
        'context': {'num_cpus': 2, 'date': '2024-01-01T00:00:00+00:00',
                    'BLAS': blas},
        'benchmarks': runs}))

  def script(self, script, *arguments):
    return subprocess.run(
        [sys.executable, '-B', SOURCE / 'bench' / script, self.folder, *arguments],
        check=False, capture_output=True, text=True,
        env={**os.environ, 'PYTHONPATH': str(self.folder)})

  def interrupt(self):
    (self.folder / 'interrupted.json').write_text('{"context": {}, "benchmarks": [')


class LengthPlotTest(BenchReportTest):

  def write_curves(self, repetitions, blas='OpenBLAS 0.3.21 SkylakeX',
                   lengths=(1024, 2048)):
    self.write([each for backend, residual in CURVES for length in lengths
                for each in repetitions(name(backend, residual, length))], blas)

  def plot(self):
    return self.script('length_plot.py', self.folder / 'length.svg')

  def test_takes_the_median_of_repetitions_without_their_aggregates(self):
    self.write_curves(lambda of: [
        run(of, 1000), run(of, 3000), run(of, 2000), aggregate(of, 'mean', 2000),
        aggregate(of, 'stddev', 10), aggregate(of, 'cv', 0.01), failed(of)])
    self.interrupt()
    result = self.plot()
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn('| 1024 | ' + ' | '.join(['2.00 s, 2000 MB'] * 3) + ' |',
                  result.stdout)
    self.assertIn('failed: no such file', result.stderr)
    self.assertIn('interrupted.json: is no whole file (interrupted?)', result.stderr)
    picture = (self.folder / 'length.svg').read_text()
    self.assertTrue(picture.endswith('</svg>\n'), picture)
    self.assertNotIn('without AVX', result.stderr + picture)

  def test_leaves_the_picture_where_there_is_one_length(self):
    (self.folder / 'length.svg').write_text('as it was')
    self.write_curves(lambda of: [run(of, 1000)], lengths=(1024,))
    result = self.plot()
    self.assertNotEqual(result.returncode, 0)
    self.assertIn('needs at least two lengths, has 1024', result.stderr)
    self.assertNotIn('Traceback', result.stderr)
    self.assertEqual((self.folder / 'length.svg').read_text(), 'as it was')

  def test_says_that_there_are_aggregates_alone(self):
    self.write_curves(lambda of: [aggregate(of, 'mean', 2000)])
    result = self.plot()
    self.assertNotEqual(result.returncode, 0)
    self.assertIn('attention.1.json: has aggregates alone', result.stderr)

  def test_names_a_blas_without_avx(self):
    self.write_curves(lambda of: [run(of, 1000)], SLOW_BLAS)
    result = self.plot()
    self.assertIn(SLOW_BLAS, result.stderr)
    self.assertIn('a BLAS that computes without AVX</text>',
                  (self.folder / 'length.svg').read_text())


class ReportTest(BenchReportTest):

  def test_takes_all_repetitions_and_names_what_it_left_out(self):
    dense = name('dense', 'off', 4096, threads=2)
    kernel = name('kernel', 'off', 4096, threads=2)
    self.write([run(dense, 9.0), run(dense, 30.0), run(dense, 10.0),
                aggregate(dense, 'mean', 500.0), run(kernel, 2.0),
                run(kernel, 5.0), run(kernel, 1.0),
                failed('Examples/squad/sample')], SLOW_BLAS)
    self.interrupt()
    result = self.script('report.py')
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn('Kernels over dense attention at length 4096, forward and '
                  'backward | 5 | times faster', result.stdout)
    page = (self.folder / 'report.html').read_text()
    self.assertNotIn('_mean', page)
    for text in (result.stderr, page):
      self.assertIn('Examples/squad/sample failed: no such file', text)
      self.assertIn('interrupted.json: is no whole file (interrupted?)', text)
      self.assertIn(SLOW_BLAS, text)


# Writes a file as a program of bench/ that fails or dies does.
PROGRAM = '''#!/bin/sh
for flag; do
  case $flag in --benchmark_out=*) out=${flag#*=} ;; esac
done
[ -n "$out" ] || exit 0
echo "Examples/squad/sample ERROR OCCURRED: 'no such file'"
printf '%s' "$FILE" > "$out"
exit 1
'''


class RunTest(BenchReportTest):

  def setUp(self):
    super().setUp()
    programs = self.folder / 'build/release/bin'
    for folder in ('bench', 'cmake', 'programs', programs):
      (self.folder / folder).mkdir(parents=True)
    shutil.copy(SOURCE / 'bench/run.sh', self.folder / 'bench')
    shutil.copy(SOURCE / 'cmake/show_help.sh', self.folder / 'cmake')
    (self.folder / 'bench/report.py').write_text('print("the report")\n')
    (self.folder / 'cmake/install_dependencies.sh').write_text('')
    self.write_program(self.folder / 'programs/cmake', '#!/bin/sh\n')
    for measured in ('attention', 'dense_attention', 'encoder', 'layer', 'data',
                     'tokenizer', 'pretraining'):
      self.write_program(programs / f'{measured}_bench', PROGRAM)

  def write_program(self, path, text):
    path.write_text(text)
    path.chmod(0o755)

  def measure(self, file):
    return subprocess.run(
        ['bash', self.folder / 'bench/run.sh'], check=False,
        capture_output=True, text=True,
        env={**os.environ, 'PYTHONPATH': str(self.folder), 'FILE': file,
             'PATH': f'{self.folder / "programs"}:{os.environ["PATH"]}'})

  def test_goes_on_after_a_run_that_failed(self):
    result = self.measure(json.dumps(
        {'context': {}, 'benchmarks': [failed('Examples/squad/sample')]}))
    self.assertEqual(result.returncode, 0, result.stderr)
    self.assertIn('warning: runs of data failed', result.stderr)
    self.assertIn('the report', result.stdout)
    self.assertTrue((self.folder / 'runs/bench/data.3.json').exists())

  def test_goes_on_after_a_program_that_died(self):
    result = self.measure('{"context": {}, "benchmarks": [')
    self.assertEqual(result.returncode, 1, result.stderr)
    self.assertIn('warning: attention_bench died, this turn of attention_base is '
                  'lost', result.stderr)
    self.assertIn('warning: data_bench died', result.stderr)
    self.assertIn('nothing was measured', result.stderr)
    self.assertEqual(list(self.folder.glob('runs/bench/*.json')), [])

  def test_keeps_earlier_results_elsewhere(self):
    results = self.folder / 'runs/bench'
    results.mkdir(parents=True)
    for file in ('data.1.json', 'data.9.json', 'report.html'):
      (results / file).write_text('earlier')
    result = self.measure('{"context": {}, "benchmarks": []}')
    self.assertEqual(result.returncode, 0, result.stderr)
    [before] = results.glob('before-*')
    self.assertIn(f'earlier results are in runs/bench/{before.name}', result.stdout)
    self.assertEqual({file.name: file.read_text() for file in before.iterdir()},
                     dict.fromkeys(('data.1.json', 'data.9.json', 'report.html'),
                                   'earlier'))
    self.assertFalse((results / 'data.9.json').exists())
    self.assertNotEqual((results / 'data.1.json').read_text(), 'earlier')


if __name__ == '__main__':
  unittest.main(argv=sys.argv[:1], verbosity=2)
