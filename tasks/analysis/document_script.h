#ifndef ETC_TASKS_ANALYSIS_DOCUMENT_SCRIPT_H_
#define ETC_TASKS_ANALYSIS_DOCUMENT_SCRIPT_H_

namespace etc {

// The fixed parts of a document page (tasks/analysis/document_html.h).

inline constexpr char kDocumentBody[] = R"html(
<noscript><p>This page needs JavaScript, which is in the page itself.</p>
</noscript>
<form id="choice" aria-label="Layer, head and token">
<label>Layer <select id="layer"></select></label>
<label>Head <select id="head"></select></label>
<span class="token-choice"><label>Token <input id="token" size="6"
  autocomplete="off" aria-describedby="token-help"></label>
<button type="button" id="before" aria-label="Token before">&#8592;</button>
<button type="button" id="behind" aria-label="Token behind">&#8594;</button>
</span>
<output id="chosen" aria-live="polite"></output>
</form>
<p id="complaint" role="alert" hidden></p>
<section aria-labelledby="attends">
<h2 id="attends">Where its attention goes</h2>
<p id="summary"></p>
<div class="mass" id="mass" role="img"></div>
<div class="wide"><table id="largest"><thead><tr>
<th scope="col">Key</th><th scope="col">Block</th>
<th scope="col">In its context</th>
<th scope="col" class="number">Probability</th>
<th scope="col"><span class="hidden">Bar</span></th></tr></thead>
<tbody></tbody></table></div>
</section>
<section aria-labelledby="tokens-title">
<h2 id="tokens-title">Tokens</h2>
<p class="faint" id="token-help">Choose a token by a click, by the arrow keys
(up and down: a line), or by its name: 5 is long token 5, g5 is global token 5.
</p>
<p class="faint legend" id="legend"></p>
<div id="tokens" role="listbox" tabindex="0" aria-label="Tokens"></div>
</section>
<section aria-labelledby="pattern-title">
<h2 id="pattern-title">Who sees whom</h2>
<figure><div id="picture"><span class="top"></span><span class="side"></span>
<canvas id="pattern" role="img"></canvas></div>
<figcaption id="pattern-caption"></figcaption></figure>
<div class="wide"><table id="blocks"><thead><tr><th scope="col">Block</th>
<th scope="col">Who sees whom</th>
<th scope="col" class="number">Pairs seen</th>
<th scope="col" class="number">Of all pairs</th>
<th scope="col" class="number">Mean attention</th></tr></thead>
<tbody></tbody></table></div>
</section>
)html";

inline constexpr char kDocumentStyle[] = R"css(
#facts th { white-space: nowrap; }
#facts td { overflow-wrap: anywhere; }
#choice { position: sticky; top: 0; z-index: 1; background: var(--page);
  border-bottom: 1px solid var(--line); padding: 0.5rem 0; display: flex;
  flex-wrap: wrap; gap: 0.3rem 0.9rem; align-items: baseline; }
#choice select, #choice input, #choice button { font: inherit; color: inherit;
  background: var(--panel); border: 1px solid var(--line);
  border-radius: 4px; padding: 0.1rem 0.4rem; }
#choice output { font-weight: 600; overflow-wrap: anywhere; }
#choice button { min-width: 2rem; }
.token-choice { white-space: nowrap; }
#complaint { border-left: 4px solid var(--red); padding-left: 0.6rem; }
.hidden { position: absolute; clip-path: inset(50%); width: 1px; height: 1px;
  overflow: hidden; }
.mass { display: flex; height: 1.1rem; max-width: 46rem; margin-bottom: 0.6rem;
  border: 1px solid var(--line); print-color-adjust: exact; }
.mass[hidden] { display: none; }
.mass > i { display: block; }
#largest td:nth-child(3) { min-width: 14rem; }
#largest td:last-child { width: 8rem; }
.bar { display: block; height: 0.8rem; margin-top: 0.25rem; min-width: 1px;
  print-color-adjust: exact; }
.context b { border-bottom: 2px solid currentColor; }
#tokens { max-height: 70vh; overflow-y: auto; border: 1px solid var(--line);
  padding: 0.4rem; line-height: 1.9; }
#tokens:focus-visible { outline: 2px solid var(--series-1); }
.line { display: flex; gap: 0.5rem; }
.line.paragraph { border-top: 1px solid var(--line); }
.line > .owner { flex: 0 0 4.2rem; color: var(--faint); font-size: 0.8rem;
  text-align: right; overflow: hidden; }
.line > .pieces { flex: 1; min-width: 0; overflow-wrap: anywhere; }
.piece { display: inline-block; max-width: 100%; line-height: 1.4;
  padding: 0 0.25rem; margin-right: 1px; border-radius: 3px;
  cursor: pointer; color: var(--faint); border-bottom: 3px solid transparent;
  print-color-adjust: exact; }
.pieces small { color: var(--faint); font-size: 0.7em; }
.piece.seen { color: var(--ink);
  background: color-mix(in srgb, var(--ink) 9%, var(--page)); }
.piece.top { border-bottom-color: var(--series-2);
  background: color-mix(in srgb, var(--series-2) var(--share), var(--page)); }
.piece[aria-selected="true"] { outline: 2px solid var(--series-1);
  outline-offset: 1px; font-weight: 600; color: var(--ink); }
.legend .piece { cursor: default; }
#picture { position: relative; max-width: 40rem; padding: 1.3rem 0 0 1.3rem; }
#picture span { position: absolute; display: flex; justify-content: start;
  gap: 1%; color: var(--faint); font-size: 0.8rem; line-height: 1.2rem;
  white-space: nowrap; }
#picture .top { top: 0; left: 1.3rem; right: 0; }
#picture .side { left: 0; top: 1.3rem; bottom: 0; writing-mode: vertical-lr; }
#picture b { font-weight: 400; overflow: hidden; text-overflow: ellipsis; }
#pattern { width: 100%; display: block; cursor: crosshair; }
.swatch { display: inline-block; width: 0.8rem; height: 0.8rem;
  margin-right: 0.4rem; print-color-adjust: exact; }
@media print { #choice { position: static; } .token-choice button,
  #token-help { display: none; } #tokens.short { max-height: none; }
  #largest td:nth-child(3) { min-width: 0; } }
@media (max-width: 480px) { .line > .owner { flex-basis: 2.2rem; }
  #blocks th:nth-child(2), #blocks td:nth-child(2) { display: none; }
  #largest td:nth-child(3) { min-width: 9rem; }
  #largest td:last-child { width: 3rem; } }
)css";

inline constexpr char kDocumentScript[] = R"js(
'use strict';
(() => {
const data = JSON.parse(document.getElementById('data').textContent);
const G = data.globals, L = data.longs, T = G + L, K = data.most;
const byId = (id) => document.getElementById(id);
const blocks = [
  {name: 'g2g', text: 'global tokens see global tokens', series: 3},
  {name: 'g2l', text: 'global tokens see long tokens', series: 2},
  {name: 'l2g', text: 'long tokens see global tokens', series: 4},
  {name: 'l2l', text: 'long tokens see long tokens', series: 1}];
const blockOf = (token, key) =>
    blocks[(token < G ? 0 : 2) + (key < G ? 0 : 1)];
const colour = (block) => `var(--series-${block.series})`;
const nameOf = (token) => token < G ? 'g' + token : String(token - G);
const percent = (p) => (100 * p).toFixed(1) + '\u00a0%';
const count = (n) => n.toLocaleString('en').replaceAll(',', '\u202f');
// The chosen layer and head, as places in the lists of the page, and token.
const state = {layer: 0, head: 0, token: L > 0 ? G : 0};

function element(name, properties, ...children) {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
}

// --- Data ------------------------------------------------------------------

const unpacked = new Map();
function headRows(layer, head) {
  const id = layer + ' ' + head;
  if (!unpacked.has(id)) {
    const text = atob(data.rows[layer][head]);
    const bytes = Uint8Array.from(text, (c) => c.charCodeAt(0));
    const Keys = data.keyBytes === 2 ? Uint16Array : Uint32Array;
    let at = 0;
    const take = (Numbers, size) => {
      const numbers = new Numbers(bytes.buffer, at, size);
      at += numbers.byteLength;
      return numbers;
    };
    unpacked.set(id, {keys: take(Keys, T * K), p: take(Uint16Array, T * K),
                      rest: take(Uint16Array, T),
                      toGlobals: take(Uint16Array, T)});
  }
  return unpacked.get(id);
}

function largestOf(token) {
  const rows = headRows(state.layer, state.head);
  const largest = [];
  for (let k = token * K; k < (token + 1) * K && rows.p[k] > 0; ++k) {
    largest.push({key: rows.keys[k], p: rows.p[k] / data.units});
  }
  return {largest, rest: rows.rest[token] / data.units,
          toGlobals: rows.toGlobals[token] / data.units};
}

const seenCount = (token) => data.sees[token].reduce(
    (sum, edge, i) => sum + (i % 2 ? edge : -edge), 0);

// --- Tokens ----------------------------------------------------------------

const pieces = [];  // elements, by token
const lines = [];   // first token of each line, ascending
function addLine(box, begin, end, owner, label, isParagraph) {
  const line = element('div', {className: 'line'});
  line.setAttribute('role', 'group');
  line.setAttribute('aria-label', label);
  if (isParagraph) line.classList.add('paragraph');
  const tokens = element('span', {className: 'pieces'});
  if (begin >= G) {
    tokens.append(element('small', {ariaHidden: 'true'}, begin - G), ' ');
  }
  for (let t = begin; t < end; ++t) {
    const text = data.tokens[t];
    const piece = element('span', {className: 'piece', id: 't' + nameOf(t)},
                          text.trim() === '' ? '\u2423' : text);
    if (t < G && L > 0) piece.prepend(element('small', {}, t + ' '));
    piece.dataset.token = t;
    piece.setAttribute('role', 'option');
    piece.setAttribute('aria-selected', 'false');
    pieces.push(piece);
    tokens.append(piece, ' ');
  }
  line.append(element('span', {className: 'owner'}, owner), tokens);
  box.append(line);
  lines.push(begin);
}

function addTokens() {
  const box = byId('tokens');
  if (T <= 2000) box.classList.add('short');
  for (let begin = 0; begin < G;) {
    const end = Math.min(G, begin + 24);
    addLine(box, begin, end, 'g' + begin +
                (end - 1 > begin ? '\u2013' + (end - 1) : ''),
            'Global tokens ' + begin + ' to ' + (end - 1), false);
    begin = end;
  }
  for (let i = 0; i < L;) {
    let end = i + 1;
    while (end < L && end - i < 400 &&
           data.sentence[end] === data.sentence[i] &&
           data.segment[end] === data.segment[i]) ++end;
    const owner = data.sentence[i];
    const other = i > 0 && (data.segment[i] !== data.segment[i - 1] ||
                            data.paragraph[i] !== data.paragraph[i - 1]);
    const label = 'Long tokens ' + i + ' to ' + (end - 1) +
        (owner < 0 ? ', of no sentence'
                   : ', sentence of global token ' + owner);
    const link = owner < 0 ? '\u2014' : element(
        'a', {href: '#token=g' + owner, title: 'its global token',
              tabIndex: -1}, 'g' + owner);
    addLine(box, G + i, G + end, link, label, i === 0 || other);
    i = end;
  }
  box.addEventListener('click', (event) => {
    const piece = event.target.closest('.piece');
    if (piece) choose({token: Number(piece.dataset.token)});
  });
  box.addEventListener('keydown', onKey);
}

function lineOf(token) {
  let low = 0, high = lines.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (lines[middle] <= token) low = middle; else high = middle - 1;
  }
  return low;
}

function onKey(event) {
  if (event.altKey || event.ctrlKey || event.metaKey) return;
  const line = lineOf(state.token), column = state.token - lines[line];
  const inLine = (other) => {
    if (other < 0 || other >= lines.length) return state.token;
    const end = other + 1 < lines.length ? lines[other + 1] : T;
    return Math.min(lines[other] + column, end - 1);
  };
  const moves = {ArrowLeft: () => Math.max(0, state.token - 1),
                 ArrowRight: () => Math.min(T - 1, state.token + 1),
                 ArrowUp: () => inLine(line - 1),
                 ArrowDown: () => inLine(line + 1),
                 Home: () => 0, End: () => T - 1};
  if (Object.hasOwn(moves, event.key)) {
    event.preventDefault();
    choose({token: moves[event.key]()}, true);
  }
}

let marked = [];
function markTokens(row) {
  for (const piece of marked) {
    piece.className = 'piece';
    piece.style.removeProperty('--share');
    piece.setAttribute('aria-selected', 'false');
    piece.removeAttribute('title');
  }
  marked = [];
  const sees = data.sees[state.token];
  for (let r = 0; r < sees.length; r += 2) {
    for (let t = sees[r]; t < sees[r + 1]; ++t) {
      pieces[t].classList.add('seen');
      marked.push(pieces[t]);
    }
  }
  const most = row.largest.length > 0 ? row.largest[0].p : 1;
  for (const {key, p} of row.largest) {
    pieces[key].classList.add('top');
    pieces[key].style.setProperty('--share', (8 + 50 * p / most) + '%');
    pieces[key].title = nameOf(key) + ': ' + p.toFixed(5);
  }
  const chosen = pieces[state.token];
  chosen.setAttribute('aria-selected', 'true');
  marked.push(chosen);
  byId('tokens').setAttribute('aria-activedescendant', chosen.id);
  byId('legend').replaceChildren(
      element('span', {className: 'piece'}, 'not seen'), ' ',
      element('span', {className: 'piece seen'}, 'seen'), ' ',
      element('span', {className: 'piece seen top', style: '--share: 58%'},
              'most attention'),
      row.largest.length > 0 ? ' here ' + most.toFixed(5) +
          '; colour is relative to that' : '');
}

function scrollToChosen() {
  const box = byId('tokens'), piece = pieces[state.token];
  const outer = box.getBoundingClientRect();
  const inner = piece.getBoundingClientRect();
  if (inner.top < outer.top || inner.bottom > outer.bottom) {
    box.scrollTop += inner.top - outer.top - outer.height / 2;
  }
}

// --- Where attention goes --------------------------------------------------

function contextOf(key) {
  const context = element('span', {className: 'context'});
  if (key < G && L > 0) {
    context.append(element('b', {}, data.tokens[key]));
    const owned = firstOwned.get(key);
    if (owned !== undefined) {
      context.append(' of: ' + data.tokens.slice(
          G + owned.begin, G + Math.min(owned.end, owned.begin + 6)).join(' ') +
          (owned.end > owned.begin + 6 ? ' \u2026' : ''));
    }
    return context;
  }
  const first = L > 0 ? G : 0;
  const segment = data.segment[key - G];
  for (let t = Math.max(first, key - 3); t < Math.min(T, key + 4); ++t) {
    if (data.segment[t - G] !== segment) continue;
    context.append(t === key ? element('b', {}, data.tokens[t])
                             : data.tokens[t], ' ');
  }
  return context;
}

const firstOwned = new Map();
function findOwned() {
  for (const owners of [data.sentence, data.paragraph]) {
    owners.forEach((g, i) => {
      if (g < 0) return;
      const owned = firstOwned.get(g);
      if (owned === undefined) firstOwned.set(g, {begin: i, end: i + 1});
      else if (owned.end === i) owned.end = i + 1;
    });
  }
}

function showRow(row) {
  const token = state.token, seen = seenCount(token);
  const text = data.tokens[token];
  byId('chosen').textContent = '\u201c' + text + '\u201d';
  const toLongs = row.largest.length > 0 ? 1 - row.toGlobals : 0;
  const shown = row.largest.length;
  const split = G > 0 && L > 0 && shown > 0
      ? percent(row.toGlobals) + ' of its attention goes to global tokens, ' +
        percent(toLongs) + ' to long tokens.' : '';
  const links = token < G ? [] : linksOf(token - G);
  const linked = links.length === 0 ? ''
      : ' and is linked with ' + links.map((g) => 'g' + g).join(', ');
  byId('summary').textContent =
      (token < G ? 'Global token ' : 'Long token ') + nameOf(token).replace(
          'g', '') + ' \u201c' + text + '\u201d sees ' + count(seen) +
      (seen === 1 ? ' token' : ' tokens') + linked + '. ' + split;
  const mass = byId('mass');
  mass.hidden = split === '';
  mass.setAttribute('aria-label', split);
  const part = (share, key) => {
    const bar = element('i', {});
    bar.style.width = 100 * share + '%';
    bar.style.background = colour(blockOf(token, key));
    return bar;
  };
  mass.replaceChildren(part(row.toGlobals, 0), part(toLongs, G));
  const most = shown > 0 ? row.largest[0].p : 1;
  const body = byId('largest').tBodies[0];
  body.replaceChildren(...row.largest.map(({key, p}) => {
    const block = blockOf(token, key);
    const bar = element('i', {className: 'bar'});
    bar.style.width = 100 * p / most + '%';
    bar.style.background = colour(block);
    const link = element('a', {href: fragmentOf({token: key})}, nameOf(key));
    const made = element('tr', {},
        element('td', {className: 'number'}, link),
        element('td', {}, block.name + (key === token ? ' (itself)' : '')),
        element('td', {}, contextOf(key)),
        element('td', {className: 'number p'}, p.toFixed(5)),
        element('td', {}, bar));
    made.dataset.key = nameOf(key);
    return made;
  }));
  if (shown > 0) {
    const rest = element('tr', {id: 'rest'},
        element('td', {}), element('td', {}),
        element('td', {}, seen > shown
            ? 'the rest: ' + count(seen - shown) +
                  (seen - shown === 1 ? ' more token' : ' more tokens') +
                  ' that it sees'
            : 'the rest: it sees no more tokens'),
        element('td', {className: 'number p'}, row.rest.toFixed(5)),
        element('td', {}));
    body.append(rest);
  }
}

// --- Who sees whom ---------------------------------------------------------

let picture = null;  // {image, size, split, gap}
const axis = (i) => i < G ? i * picture.split / G
    : picture.split + picture.gap + (i - G) * picture.longSize / L;

// Adds the part of a pixel row that [begin, end) covers.
function cover(sums, begin, end, weight) {
  for (let x = Math.floor(begin); x < end && x < sums.length; ++x) {
    sums[x] += weight * (Math.min(x + 1, end) - Math.max(x, begin));
  }
}

function colourNumbers(name) {
  const text = getComputedStyle(document.documentElement)
      .getPropertyValue(name).trim();
  return [1, 3, 5].map((at) => parseInt(text.slice(at, at + 2), 16));
}

// The global tokens that a long token is linked with: its sentence, its
// paragraph, and links of the task.
const linksOf = (i) => [...new Set([data.sentence[i], data.paragraph[i],
                                    data.linked[i]])].filter((g) => g >= 0);

function seesPair(token, key) {
  const sees = data.sees[token];
  for (let r = 0; r < sees.length; r += 2) {
    if (sees[r] <= key && key < sees[r + 1]) return true;
  }
  return false;
}

// Darkens the pairs that see each other with the relative id of a link.
function markLinks(image) {
  const size = picture.size, ink = colourNumbers('--ink');
  const ends = (token) => {
    const begin = axis(token);
    const step = token < G ? picture.split / G : picture.longSize / L;
    const first = Math.floor(begin);
    return [first, Math.max(first + 1, Math.round(begin + step))];
  };
  const done = new Uint8Array(size * size);
  const mark = (row, column) => {
    if (!seesPair(row, column)) return;
    const [top, bottom] = ends(row), [left, right] = ends(column);
    for (let y = top; y < Math.min(size, bottom); ++y) {
      for (let x = left; x < Math.min(size, right); ++x) {
        const at = y * size + x;
        if (done[at] === 1) continue;
        done[at] = 1;
        for (let c = 0; c < 3; ++c) {
          image.data[4 * at + c] =
              0.5 * image.data[4 * at + c] + 0.5 * ink[c];
        }
        image.data[4 * at + 3] = 255;
      }
    }
  };
  for (let i = 0; i < L; ++i) {
    for (const g of linksOf(i)) {
      mark(G + i, g);
      mark(g, G + i);
    }
  }
}

function makePicture() {
  const canvas = byId('pattern');
  const size = Math.max(200, Math.round(
      canvas.clientWidth * Math.min(2, window.devicePixelRatio || 1)));
  canvas.width = canvas.height = size;
  const gap = G > 0 && L > 0 ? Math.round(size / 100) : 0;
  const split = G === 0 ? 0 : L === 0 ? size : Math.round(
      Math.min(0.4, Math.max(0.15, G / T)) * size);
  picture = {size, gap, split, longSize: size - split - gap};
  const image = canvas.getContext('2d').createImageData(size, size);
  const colours = blocks.map(
      (block) => colourNumbers('--series-' + block.series));
  const parts = [{from: 0, to: G, at: 0, size: split},
                 {from: G, to: T, at: split + gap, size: picture.longSize}];
  for (const [side, rows] of parts.entries()) {
    const scale = (rows.to - rows.from) / rows.size;
    for (let y = 0; y < rows.size && rows.to > rows.from; ++y) {
      const first = rows.from + Math.floor(y * scale);
      const last = Math.max(first + 1, Math.min(
          rows.to, rows.from + Math.floor((y + 1) * scale)));
      const sums = new Float64Array(size);
      for (let t = first; t < last; ++t) {
        const sees = data.sees[t];
        for (let r = 0; r < sees.length; r += 2) {
          const begin = axis(sees[r]);
          const end = begin + (sees[r + 1] - sees[r]) *
              (sees[r] < G ? split / G : picture.longSize / L);
          cover(sums, begin, end, 1 / (last - first));
        }
      }
      for (let x = 0; x < size; ++x) {
        const isLong = L > 0 && x >= split + gap;
        const inGap = x >= split && !isLong;
        const rgb = colours[2 * side + (isLong ? 1 : 0)];
        const at = 4 * ((rows.at + y) * size + x);
        image.data.set(rgb, at);
        image.data[at + 3] = inGap ? 0 : sums[x] > 0.002
            ? 255 * Math.min(1, 0.3 + 0.7 * sums[x]) : 16;
      }
    }
  }
  markLinks(image);
  picture.image = image;
  for (const [place, verb] of [['.top', 'looked at'], ['.side', 'looking']]) {
    const share = (part) => 'flex: 0 0 ' + (99 * part / size) + '%';
    const label = (part, text) => part === 0 ? '' :
        element('b', {style: share(part), title: text + ', ' + verb}, text);
    document.querySelector('#picture ' + place).replaceChildren(
        label(split, 'global'), label(picture.longSize, 'long, ' + verb));
  }
}

function drawPicture() {
  if (picture === null) makePicture();
  const context = byId('pattern').getContext('2d');
  context.putImageData(picture.image, 0, 0);
  const ink = getComputedStyle(document.documentElement)
      .getPropertyValue('--ink').trim();
  const token = state.token;
  const step = token < G ? picture.split / G : picture.longSize / L;
  context.strokeStyle = ink;
  context.lineWidth = Math.max(1, picture.size / 400);
  const height = Math.max(step, context.lineWidth);
  context.strokeRect(0, axis(token), picture.size, height);
}

function showBlocks() {
  const sums = blocks.map(() => ({pairs: 0, all: 0, mass: 0, rows: 0}));
  const rows = headRows(state.layer, state.head);
  sums[0].all = G * G; sums[1].all = sums[2].all = G * L; sums[3].all = L * L;
  for (let t = 0; t < T; ++t) {
    const side = t < G ? 0 : 2, sees = data.sees[t];
    for (let r = 0; r < sees.length; r += 2) {
      sums[side + (sees[r] < G ? 0 : 1)].pairs += sees[r + 1] - sees[r];
    }
    if (sees.length > 0) {
      const share = rows.toGlobals[t] / data.units;
      sums[side].mass += share;
      sums[side + 1].mass += 1 - share;
      ++sums[side].rows; ++sums[side + 1].rows;
    }
  }
  byId('blocks').tBodies[0].replaceChildren(...blocks.flatMap((block, b) => {
    const sum = sums[b];
    if (sum.all === 0) return [];
    const swatch = element('i', {className: 'swatch'});
    swatch.style.background = colour(block);
    const made = element('tr', {}, element('td', {}, swatch, block.name),
        element('td', {}, block.text),
        element('td', {className: 'number pairs'}, count(sum.pairs)),
        element('td', {className: 'number'}, percent(sum.pairs / sum.all)),
        element('td', {className: 'number'},
                sum.rows > 0 ? percent(sum.mass / sum.rows) : '\u2014'));
    made.dataset.block = block.name;
    return [made];
  }));
  const canvas = byId('pattern');
  canvas.setAttribute('aria-label', 'Picture of the pairs of tokens that see ' +
      'each other: ' + blocks.map((block, b) => sums[b].all === 0 ? '' :
          block.name + ' ' + percent(sums[b].pairs / sums[b].all)).filter(
              (text) => text !== '').join(', '));
  byId('pattern-caption').textContent =
      'Each row is a token that looks, each column a token that is looked at' +
      (G > 0 && L > 0 ? '; the ' + count(G) + ' global tokens come first, on ' +
           'a scale of their own, then the ' + count(L) + ' long tokens' : '') +
      '. Drawn from the runs of keys that the model computes by' +
      (G > 0 && L > 0 ? '; darker: pairs with the relative id of a link, of ' +
           'a long token with its sentence, its paragraph or what the task ' +
           'links it with' : '') + '. The frame is ' +
      'the chosen token; a click chooses another one. Mean attention is that ' +
      'of the chosen layer and head, over the tokens that look.';
}

// --- Choice ----------------------------------------------------------------

const fragmentOf = (change) => {
  const at = {...state, ...change};
  return '#layer=' + data.layers[at.layer] + '&head=' + data.heads[at.head] +
      '&token=' + nameOf(at.token);
};

function complain(text) {
  byId('complaint').textContent = text;
  byId('complaint').hidden = text === '';
}

function tokenOf(name) {
  const match = /^\s*(g?)(\d+)\s*$/.exec(name);
  if (match === null) return -1;
  const index = Number(match[2]);
  if (match[1] === 'g' || L === 0) return index < G ? index : -1;
  return index < L ? G + index : -1;
}

function choose(change, scrolls) {
  const old = {...state};
  Object.assign(state, change);
  complain('');
  const row = largestOf(state.token);
  byId('layer').value = data.layers[state.layer];
  byId('head').value = data.heads[state.head];
  byId('token').value = nameOf(state.token);
  markTokens(row);
  showRow(row);
  if (old.layer !== state.layer || old.head !== state.head ||
      byId('blocks').tBodies[0].rows.length === 0) showBlocks();
  drawPicture();
  scrollToChosen();
  history.replaceState(null, '', fragmentOf({}));
}

function readFragment() {
  const wanted = new URLSearchParams(location.hash.slice(1));
  const change = {}, complaints = [];
  for (const [name, list] of [['layer', data.layers], ['head', data.heads]]) {
    if (!wanted.has(name)) continue;
    const index = list.findIndex((i) => String(i) === wanted.get(name));
    if (index >= 0) change[name] = index;
    else complaints.push('The page has no ' + name + ' ' + wanted.get(name) +
                         '; it has ' + list.join(', ') + '.');
  }
  if (wanted.has('token')) {
    const token = tokenOf(wanted.get('token'));
    if (token >= 0) change.token = token;
    else complaints.push(noToken(wanted.get('token')));
  }
  choose(change);
  complain(complaints.join(' '));
}

const noToken = (name) => 'There is no token ' + name + '; there are ' +
    [L > 0 ? '0 to ' + (L - 1) : '', G > 0 ? 'g0 to g' + (G - 1) : ''].filter(
        (text) => text !== '').join(' and ') + '.';

function start() {
  if (T === 0) return complain('The example has no tokens.');
  for (const [name, list] of [['layer', data.layers], ['head', data.heads]]) {
    byId(name).append(...list.map((i) => element('option', {value: i}, i)));
    byId(name).addEventListener('change', () => choose(
        {[name]: list.findIndex((i) => String(i) === byId(name).value)}));
  }
  byId('choice').addEventListener('submit', (event) => {
    event.preventDefault();
    const token = tokenOf(byId('token').value);
    if (token >= 0) choose({token}, true);
    else complain(noToken(byId('token').value));
  });
  byId('token').addEventListener('change', () =>
      byId('choice').requestSubmit());
  byId('before').addEventListener('click', () =>
      choose({token: Math.max(0, state.token - 1)}));
  byId('behind').addEventListener('click', () =>
      choose({token: Math.min(T - 1, state.token + 1)}));
  byId('pattern').addEventListener('click', (event) => {
    const y = event.offsetY * picture.size / event.target.clientHeight;
    const token = y < picture.split ? Math.floor(y * G / picture.split)
        : G + Math.floor((y - picture.split - picture.gap) * L /
                         picture.longSize);
    if (y < picture.split || y >= picture.split + picture.gap) {
      choose({token: Math.min(T - 1, Math.max(0, token))});
    }
  });
  const redraw = () => { picture = null; drawPicture(); };
  window.matchMedia('(prefers-color-scheme: dark)').addEventListener(
      'change', redraw);
  window.addEventListener('resize', redraw);
  window.addEventListener('beforeprint', redraw);
  window.addEventListener('hashchange', readFragment);
  findOwned();
  addTokens();
  readFragment();
}
start();
})();
)js";

}  // namespace etc

#endif  // ETC_TASKS_ANALYSIS_DOCUMENT_SCRIPT_H_
