#!/usr/bin/env python3
"""Starts programs of bench/, which CTest has where they are built.

  python3 tests/bench_programs_test.py BIN_DIR
"""

import csv
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

BINARIES = pathlib.Path(sys.argv[1]).resolve()


def start(program, *arguments, **environment):
  return subprocess.run([BINARIES / program, *arguments], check=False,
                        capture_output=True, text=True,
                        env={**os.environ, **environment})


class BenchProgramsTest(unittest.TestCase):

  def test_data_bench_reads_the_sample_of_each_task(self):
    result = start('data_bench', '--benchmark_min_time=0',
                   '--benchmark_filter=/sample')
    self.assertEqual(result.returncode, 0, result.stdout)
    self.assertNotIn('ERROR', result.stdout)
    for task in ('wikihop', 'hotpotqa', 'openkp', 'nq', 'squad', 'tokens'):
      self.assertIn(f'Examples/{task}/sample', result.stdout)

  def test_a_failed_run_is_the_exit_code(self):
    with tempfile.TemporaryDirectory() as folder:
      data = pathlib.Path(folder, 'data/wikihop')
      data.mkdir(parents=True)
      (data / 'dev.sample.json').write_text('[{}]')
      result = start('data_bench', '--benchmark_filter=wikihop/real',
                     ETC_SHARED_DIR=folder)
    self.assertEqual(result.returncode, 1, result.stdout)
    self.assertIn('ERROR OCCURRED', result.stdout)

  def test_an_exception_is_the_failure_of_its_run_alone(self):
    with tempfile.TemporaryDirectory() as folder:
      written = pathlib.Path(folder, 'encoder.json')
      result = start(
          'encoder_bench', '--benchmark_min_time=0',
          '--benchmark_filter=base/training/residual:off/reverse/bf16/files/'
          'layers:12/long:(4096|16384)/', f'--benchmark_out={written}',
          '--benchmark_out_format=json', TMPDIR=str(pathlib.Path(folder, 'none')))
      runs = json.loads(written.read_text())['benchmarks']
    self.assertEqual(result.returncode, 1, result.stderr)
    self.assertEqual([run['error_occurred'] for run in runs], [True, True])
    for run in runs:
      self.assertIn('none', run['error_message'])
      self.assertNotIn('\n', run['error_message'])

  def test_a_filter_that_matches_nothing_is_the_exit_code(self):
    for flags in ((), ('--benchmark_list_tests',)):
      result = start('data_bench', '--benchmark_filter=nothing', *flags)
      self.assertEqual(result.returncode, 1, result.stdout)
      self.assertIn('Failed to match', result.stderr)
    listed = start('data_bench', '--benchmark_filter=/sample',
                   '--benchmark_list_tests')
    self.assertEqual(listed.returncode, 0, listed.stderr)
    self.assertIn('Examples/wikihop/sample', listed.stdout)

  def test_layer_bench_writes_csv(self):
    result = start(
        'layer_bench', '--benchmark_min_time=0', '--benchmark_format=csv',
        '--benchmark_filter=whole/fp32/forward.*threads:2|norm/.*forward.*threads:2')
    self.assertEqual(result.returncode, 0, result.stderr)
    rows = list(csv.DictReader(
        result.stdout[result.stdout.index('name,'):].splitlines()))
    self.assertEqual(len(rows), 3, result.stdout)
    for row in rows:
      self.assertGreater(float(row['items_per_second']), 0, row)

  def test_memory_of_attention_has_the_carried_scores(self):
    result = start(
        'attention_bench', '--benchmark_min_time=0', '--benchmark_format=json',
        '--benchmark_filter=Attention/kernel/.*/fp32/long:1024/global:256/radius:84/'
        'threads:1/')
    self.assertEqual(result.returncode, 0, result.stderr)
    peak = {tuple(run['name'].split('/')[2:4]): run['peak_bytes']
            for run in json.loads(result.stdout)['benchmarks']}
    # Scores of 12 heads: 169 neighbours and 256 global tokens of each long token, all
    # tokens of each global one. Code that is read meanwhile counts as well.
    scores = 0.9 * 4 * 12 * (1024 * (169 + 256) + 256 * (1024 + 256))
    for what, times in (('forward', 1), ('training', 1.5)):
      more = peak[what, 'residual:sum'] - peak[what, 'residual:off']
      self.assertGreater(more, times * scores, peak)

  def test_sum_bench_ends_at_its_flags(self):
    self.assertEqual(start('sum_bench', '--help').returncode, 0)
    mistyped = start('sum_bench', '--benchmark_filtre=base')
    self.assertEqual(mistyped.returncode, 1)
    self.assertIn('--benchmark_filtre=base', mistyped.stderr)
    self.assertEqual(mistyped.stderr.count('\n'), 1, mistyped.stderr)

  def test_warns_of_a_blas_without_avx(self):
    version = start('realetc', '--version', OPENBLAS_CORETYPE='Prescott').stdout
    result = start('product_bench', '--benchmark_list_tests',
                   OPENBLAS_CORETYPE='Prescott')
    self.assertEqual('without AVX' in version,
                     'warning: shares of sgemm' in result.stderr, result.stderr)


if __name__ == '__main__':
  unittest.main(argv=sys.argv[:1], verbosity=2)
