#!/usr/bin/env python3
"""Draws doc/pictures/mask.svg: the mask of a layer, and the scores between layers.

  python3 doc/pictures/mask.py > doc/pictures/mask.svg
"""

GLOBAL, LONG, RADIUS = 4, 14, 2

STYLE = '''
  text { font-family: system-ui, -apple-system, "Segoe UI", Helvetica, Arial,
         sans-serif; font-size: 13px; fill: #1f2328; }
  .small { font-size: 12px; fill: #59636e; }
  .in { font-weight: 600; fill: #ffffff; text-anchor: middle; }
  .middle { text-anchor: middle; }
  .end { text-anchor: end; }
  .none { fill: #eaeef2; }
  .g2g { fill: #8250df; }
  .g2l { fill: #bc4c00; }
  .l2g { fill: #1a7f37; }
  .l2l { fill: #0969da; }
  .line { stroke: #59636e; stroke-width: 1.5; fill: none; }
  .head { fill: #59636e; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f6fc; }
    .small { fill: #9198a1; }
    .in { fill: #ffffff; }
    .none { fill: #262c36; }
    .g2g { fill: #8957e5; }
    .g2l { fill: #bd561d; }
    .l2g { fill: #238636; }
    .l2l { fill: #1f6feb; }
    .line { stroke: #9198a1; }
    .head { fill: #9198a1; }
  }
'''


def block(query, key):
    """The block of a pair of tokens, global ones first; "none" if masked."""
    if query < GLOBAL:
        return 'g2g' if key < GLOBAL else 'g2l'
    if key < GLOBAL:
        return 'l2g'
    return 'l2l' if abs(query - key) <= RADIUS else 'none'


def matrix(left, top, cell, gap, space):
    """The mask as squares; `gap` between the streams, `space` between cells."""
    def place(index):
        return index * cell + (gap if index >= GLOBAL else 0)
    for query in range(GLOBAL + LONG):
        for key in range(GLOBAL + LONG):
            yield (f'<rect class="{block(query, key)}" '
                   f'x="{left + place(key):g}" y="{top + place(query):g}" '
                   f'width="{cell - space:g}" height="{cell - space:g}"/>')


def text(x, y, content, kind=''):
    return f'<text class="{kind}" x="{x:g}" y="{y:g}">{content}</text>'


def arrow_up(x, bottom, top):
    yield f'<path class="line" d="M{x:g} {bottom:g}V{top + 6:g}"/>'
    yield (f'<path class="head" d="M{x - 5:g} {top + 8:g}L{x:g} {top:g}'
           f'L{x + 5:g} {top + 8:g}Z"/>')


def picture():
    cell, gap, left, top = 17, 8, 108, 58
    side = (GLOBAL + LONG) * cell + gap
    long_begin = GLOBAL * cell + gap
    global_middle, long_middle = GLOBAL * cell / 2, (long_begin + side) / 2
    yield text(left + side / 2, 20, 'Who attends to whom in a layer', 'middle')
    yield text(left + global_middle, top - 10, 'global', 'small middle')
    yield text(left + long_middle, top - 10, 'keys: long tokens', 'small middle')
    yield text(left - 10, top + global_middle + 4, 'global', 'small end')
    yield text(left - 10, top + long_middle - 4, 'queries:', 'small end')
    yield text(left - 10, top + long_middle + 12, 'long tokens', 'small end')
    yield from matrix(left, top, cell, gap, 1.5)
    for name, x, y in [
            ('g2g', global_middle, global_middle),
            ('g2l', long_middle, global_middle),
            ('l2g', global_middle, long_middle),
            ('l2l', long_middle, long_middle)]:
        yield (f'<rect class="{name}" x="{left + x - 20:g}" '
               f'y="{top + y - 11:g}" width="38" height="20"/>')
        yield text(left + x - 0.75, top + y + 4, name, 'in')
    # The same mask in three layers, scores carried from each to the next.
    small, small_gap, between = 4.6, 3, 34
    small_side = (GLOBAL + LONG) * small + small_gap
    right = left + side + 110
    yield text(right + small_side + 20, 20, 'Scores carried upwards', 'middle')
    bottom = top + side
    for layer in range(1, 4):
        y = bottom - layer * small_side - (layer - 1) * between
        yield from matrix(right, y, small, small_gap, 0.6)
        yield text(right - 12, y + small_side / 2 + 4, f'layer {layer}',
                   'small end')
        if layer < 3:
            x = right + small_side / 2
            yield from arrow_up(x, y - 4, y - between + 5)
            carried = '+'.join(f's{chr(0x2080 + n)}' for n in range(1, layer + 1))
            yield text(x + 12, y - between / 2 + 4, carried, 'small')
        softmax = ' + '.join(f's{chr(0x2080 + n)}' for n in range(1, layer + 1))
        yield text(right + small_side + 12, y + small_side / 2 - 4, 'softmax of',
                   'small')
        yield text(right + small_side + 12, y + small_side / 2 + 13, softmax)


def main():
    width, height = 740, 392
    print(f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" '
          f'height="{height}" viewBox="0 0 {width} {height}" role="img">')
    print('<title>Four blocks of attention, and scores carried from layer to '
          'layer</title>')
    print(f'<style>{STYLE}</style>')
    print(*picture(), sep='\n')
    print('</svg>')


if __name__ == '__main__':
    main()
