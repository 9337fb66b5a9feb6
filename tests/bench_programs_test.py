#!/usr/bin/env python3
"""Starts programs of bench/, which CTest has where they are built.

  python3 tests/bench_programs_test.py BIN_DIR
"""

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
