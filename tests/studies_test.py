#!/usr/bin/env python3
"""Runs bench/studies.sh with --quick: all studies, interrupted and again.

  python3 tests/studies_test.py SOURCE_DIR BIN_DIR

A tiny random BERT and rows in GLUE's formats stand in for real ones
(tests/documents/stand_ins.py), an invented language for Multi30k; text is doc/.
Every run has to leave a result, a
diverged one too, every study a table and a picture; a second start makes no run
again; mistakes end in one line before anything is written.

Ends with 77, after saying why, where Python lacks matplotlib.
"""

import json
import math
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import xml.etree.ElementTree

SOURCE, BINARIES = (pathlib.Path(path).resolve() for path in sys.argv[1:3])
sys.path[:0] = [str(SOURCE / folder) for folder in ('tests/documents', 'bench')]
# pylint: disable=wrong-import-position
import stand_ins
import studies
# pylint: enable=wrong-import-position

RUNS = {'depth': 2 * 2 * 6, 'robustness': 2 * 2 * 2 * 2, 'half': 2 * 2 * 2,
        'switch': 2 * 2 * 4, 'hops': 2 * 3 * 4, 'translation_depth': 2 * 4,
        'multi30k_tiny': 2 * 2}
STOPPED = 75


def has_matplotlib():
  return any(subprocess.run([python, '-c', 'import matplotlib'], check=False,
                            stderr=subprocess.DEVNULL).returncode == 0
             for python in ('python3', '/usr/bin/python3')
             if python != '/usr/bin/python3' or os.path.exists(python))


class StudiesTest(unittest.TestCase):

  @classmethod
  def setUpClass(cls):
    cls.folder = tempfile.TemporaryDirectory()
    cls.addClassCleanup(cls.folder.cleanup)
    cls.work = pathlib.Path(cls.folder.name)
    cls.out = cls.work / 'out'
    stand_ins.copy_data(SOURCE, cls.work)
    stand_ins.copy_glue(cls.work)
    stand_ins.write_hugging_face_bert(cls.work / 'bert',
                                      stand_ins.union_vocabulary(SOURCE))
    stand_ins.write_multi30k(SOURCE, cls.work, cls.prepare)

  @classmethod
  def prepare(cls, line):
    subprocess.run(
        ['bash', '-c', line], cwd=cls.work, check=True,
        env={**os.environ, 'PATH': f'{BINARIES}:{os.environ["PATH"]}'},
        stdout=subprocess.DEVNULL)

  def command(self, study, *arguments, out=None):
    inputs = []
    if study == 'switch':
      inputs = ['--bert', self.work / 'bert', '--glue', self.work]
    elif study == 'multi30k_tiny':
      inputs = ['--data', self.work / 'data/multi30k']
    elif study not in ('hops', 'translation_depth'):
      inputs = ['--data', SOURCE / 'doc']
    return ['bash', SOURCE / 'bench/studies.sh', study, '--quick', '--seeds',
            '2', '--out', out or self.out, *inputs, *arguments]

  def start(self, command, realetc=BINARIES / 'realetc'):
    return subprocess.Popen(
        [str(word) for word in command], text=True, stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=self.work,
        env={**os.environ, 'REALETC': str(realetc)})

  def run_study(self, study, *arguments):
    process = self.start(self.command(study, *arguments))
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 0, output)
    return output

  def results(self, study):
    path = self.out / study / 'results.jsonl'
    if not path.exists():
      return []
    return [json.loads(line) for line in path.read_text().splitlines()]

  def check_study(self, study):
    """Its results by their settings, after a second start that runs nothing."""
    self.run_study(study)
    results = self.results(study)
    self.assertEqual(len(results), RUNS[study])
    for result in results:
      self.assertIn(result['status'], ('finished', 'reached', 'diverged'))
    self.assertEqual(list((self.out / study / 'runs').iterdir()), [])
    table = (self.out / study / 'table.md').read_text()
    self.assertTrue(table.startswith('| '), table)
    root = xml.etree.ElementTree.parse(self.out / study / 'picture.svg')
    self.assertTrue(root.getroot().tag.endswith('svg'))
    written = (self.out / study / 'results.jsonl').stat().st_mtime_ns
    again = self.run_study(study)
    self.assertIn(table, again)
    self.assertEqual(written,
                     (self.out / study / 'results.jsonl').stat().st_mtime_ns)
    return {tuple(result['settings'].values()): result for result in results}

  def test_depth_has_entropy_and_largest_score(self):
    for result in self.check_study('depth').values():
      self.assertEqual(result['status'], 'finished')
      scores = result['scores'][-1]
      self.assertGreater(scores['largest'], 0)
      self.assertEqual(len(scores['long_entropy']),
                       result['settings']['layers'])

  def test_robustness_shows_diverged_runs(self):
    for (_, rate, _, _), result in self.check_study('robustness').items():
      self.assertEqual(result['status'] == 'diverged', rate > 1, result)
    self.assertIn('2 of 2 diverged',
                  (self.out / 'robustness/table.md').read_text())

  def test_switch_begins_where_off_does_with_gates_only(self):
    results = self.check_study('switch')
    for (task, mode, seed), result in results.items():
      off = results[task, 'off', seed]
      if mode in ('off', 'gate'):
        self.assertEqual(result['before'], off['before'])
        self.assertEqual({**off['switched'][mode], 'step': 0},
                         {**off['evaluations'][-1], 'step': 0})
      self.assertEqual(result['steps'], 10)

  def test_hops_counts_updates(self):
    for result in self.check_study('hops').values():
      self.assertLessEqual(result['steps'], 20)
      self.assertEqual(result['evaluations'][0]['step'], 1)

  def test_a_target_is_reached_by_the_first_evaluation_at_or_above_it(self):
    evaluations = [{'step': step, 'accuracy': accuracy} for step, accuracy in
                   ((50, 0.85), (100, 0.9), (150, 0.85), (200, 0.95))]
    result = {'status': 'reached', 'evaluations': evaluations}
    self.assertEqual(studies.updates_to_target(result), 100)
    self.assertEqual(
        studies.updates_to_target({**result, 'status': 'finished'}), math.inf)

  def test_translation_depth_scores_the_last_checkpoint(self):
    for (variant, _), result in self.check_study('translation_depth').items():
      self.assertEqual(result['status'], 'finished')
      self.assertEqual(len(result['evaluations']), 10)
      self.assertGreaterEqual(result['bleu']['bleu'], 0)
      self.assertEqual(result['config']['model']['encoder_sublayer'],
                       'admin' if variant.startswith('ADMIN') else 'post_norm')
    self.assertIn('tok:13a', (self.out / 'translation_depth/table.md')
                  .read_text())

  def test_multi30k_keeps_averaged_models(self):
    study = 'multi30k_tiny'
    for (mode, seed), result in self.check_study(study).items():
      self.assertEqual(result['steps'], 9)
      self.assertEqual(len(result['evaluations']), 3)
      self.assertIn('bleu', result['bleu'])
      model = self.out / study / f'models/mode={mode},seed={seed}'
      average = json.loads((model / 'average.json').read_text())
      self.assertEqual(average['steps'], [6, 9])

  def test_an_interrupted_study_goes_on(self):
    for study in ('half', 'multi30k_tiny'):
      process = self.start(self.command(study, '--jobs', '1'))
      deadline = time.monotonic() + 600
      while not self.results(study) and process.poll() is None:
        self.assertLess(time.monotonic(), deadline)
        time.sleep(0.05)
      process.send_signal(signal.SIGTERM)
      output, _ = process.communicate()
      self.assertEqual(process.returncode, STOPPED, output)
      self.assertIn('the same command goes on', output)
      done = self.results(study)
      self.assertLess(len(done), RUNS[study])
      self.check_study(study)
      self.assertEqual(self.results(study)[:len(done)], done)

  def test_mistakes_are_one_line_before_any_run(self):
    out = self.work / 'nothing'
    empty = self.work / 'empty'
    empty.mkdir()
    program = BINARIES / 'realetc'
    for arguments, realetc, message in (
        (('depth', '--data', self.work / 'absent'), program,
         'there is no folder'),
        (('depth', '--data', empty), program, 'files below it'),
        (('depth',), empty / 'realetc', 'there is no program'),
        (('switch', '--bert', empty), program, 'config.json'),
        (('switch', '--glue', empty), program, 'train.tsv'),
        (('multi30k_tiny', '--data', empty), program, 'train.en')):
      process = self.start(self.command(*arguments, out=out), realetc)
      output, _ = process.communicate()
      self.assertEqual(process.returncode, 1, output)
      self.assertIn(message, output)
      self.assertEqual(output.count('\n'), 1, output)
      self.assertFalse(out.exists())

  def test_set_changes_all_configurations(self):
    out = self.work / 'set'
    process = self.start(self.command(
        'hops', '--only', 'hops=1', '--only', 'mode=off', '--set',
        'train.weight_decay=3', out=out))
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 1, output)
    self.assertIn('weight_decay', output)
    process = self.start(self.command(
        'hops', '--only', 'hops=1', '--only', 'mode=off', '--set',
        'optimizer.weight_decay=0.5', out=out))
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 0, output)
    self.assertIn('Set: optimizer.weight_decay=0.5.', output)
    self.assertIn('mode=off,seed=1: 20 updates\n', output)
    for line in (out / 'hops/results.jsonl').read_text().splitlines():
      config = json.loads(line)['config']
      self.assertEqual(config['optimizer']['weight_decay'], 0.5)

  def test_set_changes_nothing_that_the_study_decides(self):
    for field in ('train.steps=2', 'residual_attention=off', 'train={}',
                  'train.seeds=[7]'):
      out = self.work / 'decided'
      process = self.start(self.command('hops', '--only', 'mode=off', '--set',
                                        field, out=out))
      output, _ = process.communicate()
      self.assertEqual(process.returncode, 1, output)
      self.assertIn('--set names ' + field.partition('=')[0], output)
      self.assertIn('--only and --seeds choose', output)
      self.assertFalse((out / 'hops/results.jsonl').exists())

  def test_results_of_other_settings_are_refused(self):
    out = self.work / 'others'
    (out / 'hops').mkdir(parents=True)
    (out / 'hops/results.jsonl').write_text(json.dumps(
        {'settings': {'hops': 1, 'questions': 100, 'mode': 'off', 'seed': 1},
         'config': {}}) + '\n')
    process = self.start(self.command('hops', out=out))
    output, _ = process.communicate()
    self.assertEqual(process.returncode, 1, output)
    self.assertIn('results of other settings', output)


if __name__ == '__main__':
  if not has_matplotlib():
    print('skipped: python3 has no matplotlib (Debian: python3-matplotlib)')
    sys.exit(77)
  unittest.main(argv=sys.argv[:1] + sys.argv[3:])
