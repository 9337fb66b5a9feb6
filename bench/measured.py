"""Files of Google Benchmark: the runs in them that count."""

import json

# base/machine_description.cc says it of OpenBLAS on a CPU that is newer.
WITHOUT_AVX = 'computes without AVX'


class Measured:
    """The runs of a file, each repetition one; others are in `left_out`.

    One that is no whole file has none, and an empty `context`.
    """

    def __init__(self, path):
        self.context = {}
        self.runs = []
        # A line for each run that failed; aggregates repeat what runs say.
        self.left_out = []
        try:
            with open(path, encoding='utf-8') as file:
                data = json.load(file)
        except ValueError:
            self.left_out.append(f'{path}: is no whole file (interrupted?)')
            return
        self.context = data['context']
        aggregates = 0
        for run in data['benchmarks']:
            if run.get('error_occurred'):
                self.left_out.append(f'{path}: {run["name"]} failed: '
                                     f'{run.get("error_message", "")}')
            elif run.get('run_type') == 'aggregate':
                aggregates += 1
            else:
                self.runs.append(run)
        if aggregates and not self.runs:
            self.left_out.append(
                f'{path}: has aggregates alone: measure without '
                '--benchmark_report_aggregates_only')

    def warnings(self):
        """Lines for people on what was measured."""
        blas = self.context.get('BLAS', '')
        slow = [f'shares of sgemm and ratios to dense attention are those of a '
                f'slow BLAS: {blas}'] if WITHOUT_AVX in blas else []
        return slow + self.left_out
