#!/usr/bin/env python3
"""Draws time and memory of attention against length, as README.md shows them.

  python3 bench/length_plot.py FOLDER doc/pictures/length.svg

Reads all *.json in FOLDER (attention_bench, see bench/README.md) and takes the
medians of CPU time and of peak_bytes. Prints them as a table. Failed runs, files
that are not whole and a BLAS without AVX are named on standard error, the latter in
the picture too.
"""

import glob
import html
import math
import os
import re
import statistics
import sys

from measured import WITHOUT_AVX, Measured

NAME = re.compile(r'Attention/(kernel|dense)/training/residual:(off|sum)/fp32/'
                  r'long:(\d+)/global:256/radius:84/threads:1/')
LABELS = {('dense', 'off'): 'dense, one head at a time, no residual scores',
          ('kernel', 'sum'): 'kernels, residual sum',
          ('kernel', 'off'): 'kernels, residual off'}
STYLE = '''
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial,
         sans-serif; font-size: 12px; fill: #59636e; }
  .title { font-size: 13px; fill: #1f2328; }
  .middle { text-anchor: middle; }
  .end { text-anchor: end; }
  .grid { stroke: #d1d9e0; stroke-width: 1; }
  .curve { fill: none; stroke-width: 2; }
  .dense-off { stroke: #bc4c00; fill: #bc4c00; }
  .kernel-sum { stroke: #0969da; fill: #0969da; }
  .kernel-off { stroke: #1a7f37; fill: #1a7f37; }
  .dense-off.curve, .kernel-sum.curve, .kernel-off.curve { fill: none; }
  .kernel-off.curve { stroke-dasharray: 5 4; }
  @media (prefers-color-scheme: dark) {
    text { fill: #9198a1; }
    .title { fill: #f0f6fc; }
    .grid { stroke: #3d444d; }
    .dense-off { stroke: #db6d28; fill: #db6d28; }
    .kernel-sum { stroke: #4493f8; fill: #4493f8; }
    .kernel-off { stroke: #3fb950; fill: #3fb950; }
  }
'''
WIDTH, HEIGHT, BOTTOM, TOP = 270, 210, 262, 52


def read(folder):
    """{(backend, residual): {length: (seconds, bytes)}}, medians, and warnings."""
    samples = {}
    warnings = []
    for path in sorted(glob.glob(os.path.join(folder, '*.json'))):
        measured = Measured(path)
        warnings += [line for line in measured.warnings()
                     if line not in warnings]
        for run in measured.runs:
            match = NAME.match(run['name'])
            if match:
                seconds = run['cpu_time'] * {
                    'ns': 1e-9, 'us': 1e-6, 'ms': 1e-3, 's': 1.0}[
                        run['time_unit']]
                samples.setdefault(match.groups()[:2], {}).setdefault(
                    int(match.group(3)), []).append(
                        (seconds, run['peak_bytes']))
    return {curve: {length: tuple(map(statistics.median, zip(*runs)))
                    for length, runs in sorted(lengths.items())}
            for curve, lengths in samples.items()}, warnings


def lengths_of(curves):
    return sorted({length for points in curves.values() for length in points})


def panel(curves, left, column, title, ticks):
    """One plot, both axes logarithmic. `ticks`: [(value, label)], ascending."""
    lengths = lengths_of(curves)
    low, high = ticks[0][0], ticks[-1][0]

    def x(length):
        return left + WIDTH * (math.log(length / lengths[0]) /
                               math.log(lengths[-1] / lengths[0]))

    def y(value):
        return BOTTOM - HEIGHT * math.log(value / low) / math.log(high / low)
    yield f'<text class="title" x="{left}" y="{TOP - 18}">{title}</text>'
    for value, label in ticks:
        yield (f'<path class="grid" d="M{left} {y(value):.1f}h{WIDTH}"/>'
               f'<text class="end" x="{left - 6}" y="{y(value) + 4:.1f}">'
               f'{label}</text>')
    for length in lengths:
        yield (f'<text class="middle" x="{x(length):.1f}" y="{BOTTOM + 18}">'
               f'{length // 1024}k</text>')
    yield (f'<text class="middle" x="{left + WIDTH / 2}" y="{BOTTOM + 36}">'
           'long tokens</text>')
    for curve in LABELS:
        kind = '-'.join(curve)
        points = [(x(length), y(values[column]))
                  for length, values in curves.get(curve, {}).items()]
        line = ' '.join(f'{a:.1f},{b:.1f}' for a, b in points)
        yield f'<polyline class="{kind} curve" points="{line}"/>'
        for a, b in points:
            yield f'<circle class="{kind}" cx="{a:.1f}" cy="{b:.1f}" r="2.5"/>'


def legend(left, y):
    for (curve, label), place in zip(LABELS.items(), (0, 330, 510)):
        x = left + place
        yield (f'<path class="{"-".join(curve)} curve" d="M{x} {y}h26"/>'
               f'<text x="{x + 32}" y="{y + 4}">{label}</text>')


def table(curves):
    yield '| long tokens | ' + ' | '.join(LABELS.values()) + ' |'
    yield '| --- ' * (len(LABELS) + 1) + '|'
    for length in lengths_of(curves):
        cells = [curves.get(curve, {}).get(length) for curve in LABELS]
        yield f'| {length} | ' + ' | '.join(
            f'{c[0]:.2f} s, {c[1] / 1e6:.0f} MB' if c else ''
            for c in cells) + ' |'


def picture(curves, is_slow):
    yield ('<svg xmlns="http://www.w3.org/2000/svg" width="740" height="340" '
           'viewBox="0 0 740 340" role="img">')
    yield '<title>Time and memory of attention against length</title>'
    yield f'<style>{STYLE}</style>'
    if is_slow:
        yield ('<text class="title" x="64" y="16">Dense attention by a BLAS that '
               f'{html.escape(WITHOUT_AVX)}</text>')
    yield from panel(curves, 64, 0, 'Time, forward and backward, one thread',
                     [(0.05, '0.05 s'), (0.1, '0.1 s'), (0.5, '0.5 s'),
                      (1, '1 s'), (5, '5 s'), (10, '10 s'), (50, '50 s')])
    yield from panel(curves, 440, 1, 'Memory at the peak',
                     [(1e7, '10 MB'), (1e8, '100 MB'), (1e9, '1 GB'),
                      (1e10, '10 GB')])
    yield from legend(64, 326)
    yield '</svg>'


def main(folder, output):
    curves, warnings = read(folder)
    for line in warnings:
        print(f'length_plot: warning: {line}', file=sys.stderr)
    if set(curves) != set(LABELS):
        raise SystemExit(f'{folder} should have {", ".join(LABELS.values())}')
    lengths = lengths_of(curves)
    if len(lengths) < 2:
        raise SystemExit(f'{folder}: needs at least two lengths, has {lengths[0]}')
    print(*table(curves), sep='\n')
    is_slow = any(WITHOUT_AVX in line for line in warnings)
    text = '\n'.join(picture(curves, is_slow)) + '\n'
    with open(output, 'w', encoding='utf-8') as file:
        file.write(text)


if __name__ == '__main__':
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
