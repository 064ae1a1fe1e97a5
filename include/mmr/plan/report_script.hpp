// The script of a report: draws the data of the page as SVG and tables. No libraries, no network.
#pragma once

#include <string_view>

namespace mmr::detail {

inline constexpr std::string_view report_script = R"js(
'use strict';
const D = JSON.parse(document.getElementById('data').textContent);
const $ = id => document.getElementById(id);
const colour = k => 'var(--c' + k + ')';

// Numbers as people read them.
function digits(x) { const s = Math.abs(x); return x.toFixed(s < 9.995 ? 2 : s < 99.95 ? 1 : 0); }
function bytes(b) {
  const units = ['B', 'kB', 'MB', 'GB', 'TB', 'PB'];
  let u = 0;
  while (Math.abs(b) >= 999.5 && u < 5) { b /= 1000; ++u; }
  return (u === 0 ? String(Math.round(b)) : digits(b)) + ' ' + units[u];
}
function seconds(s) {
  if (s === 0) return '0 s';
  if (s < 999.5e-9) return digits(s * 1e9) + ' ns';
  if (s < 999.5e-6) return digits(s * 1e6) + ' \u00b5s';
  if (s < 0.9995) return digits(s * 1e3) + ' ms';
  return s < 99.5 ? digits(s) + ' s' : Math.round(s).toLocaleString('en') + ' s';
}

// Elements. Text is always set as text, so that no name can be markup.
const NS = 'http://www.w3.org/2000/svg';
function fill(e, attributes, children) {
  for (const [k, v] of Object.entries(attributes || {}))
    if (k === 'tip') hover(e, v); else if (k === 'click') e.addEventListener('click', v); else e.setAttribute(k, v);
  for (const c of [].concat(children === undefined ? [] : children)) e.append(c);
  return e;
}
const el = (tag, attributes, children) => fill(document.createElement(tag), attributes, children);
const sv = (tag, attributes, children) => fill(document.createElementNS(NS, tag), attributes, children);
const label = (x, y, text, more) => sv('text', Object.assign({ x, y }, more), text);
function hover(e, text) {
  const tip = $('tip');
  e.addEventListener('mousemove', event => {
    tip.textContent = typeof text === 'function' ? text(event) : text;
    tip.style.display = 'block';
    const x = event.clientX + 14, y = event.clientY + 14;
    tip.style.left = Math.min(x, innerWidth - tip.offsetWidth - 8) + 'px';
    tip.style.top = (y + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 8 : y) + 'px';
  });
  e.addEventListener('mouseleave', () => { tip.style.display = 'none'; });
}

// Scales and their ticks.
function linear(from, to, a, b) {
  const step = Math.pow(10, Math.floor(Math.log10((to - from) / 4 || 1)));
  const wide = [1, 2, 2.5, 5, 10].map(k => k * step).find(s => (to - from) / s <= 5) || step;
  const ticks = [];
  for (let t = Math.ceil(from / wide) * wide; t <= to * (1 + 1e-9); t += wide) ticks.push(t);
  return { at: v => a + (v - from) / ((to - from) || 1) * (b - a), ticks };
}
function logarithmic(from, to, a, b) {
  const l = Math.log(from), r = Math.log(to);
  let ticks = [];
  const marks = to / from > 200 ? [1] : to / from > 20 ? [1, 3] : [1, 2, 5];
  for (let p = Math.floor(Math.log10(from)); p <= Math.ceil(Math.log10(to)); ++p)
    for (const m of marks) { const t = m * Math.pow(10, p); if (t >= from && t <= to) ticks.push(t); }
  return { at: v => a + (Math.log(v) - l) / ((r - l) || 1) * (b - a), ticks };
}
function scale(values, a, b, room) {
  const low = Math.min(...values), high = Math.max(...values);
  if (low > 0 && high / low > 5) return logarithmic(low / Math.pow(high / low, room), high * Math.pow(high / low, room), a, b);
  const pad = (high - low) * room || Math.abs(high) * 0.1 || 1;
  return linear(Math.max(0, low - pad), high + pad, a, b);
}

const limits = [];
if (D.device_bytes !== null) limits.push([D.device_bytes, 'device ' + bytes(D.device_bytes)]);
if (D.budget !== null) limits.push([D.budget, 'budget ' + bytes(D.budget)]);
const solver = p => /^(memory|time)/.test(p.name);

function drawFront(box) {
  const W = 590, H = 370, L = 62, R = 16, T = 22, B = 40;
  let points = D.plans.map(p => ({ p, x: p.per_device.peak_live, y: p.step_time_s }));
  // What is far off would press the rest together: it is named instead.
  const lean = Math.min(...points.map(q => q.x)), quick = Math.min(...points.map(q => q.y));
  const far = points.filter(q => q.x > 6 * lean || q.y > 4 * quick);
  if (far.length < points.length - 1) points = points.filter(q => !far.includes(q));
  else far.length = 0;
  const widest = Math.max(6 * lean, ...points.map(q => q.x)), near = limits.filter(l => l[0] <= widest);
  const all = points.concat(D.front.map(f => ({ x: f.peak_live, y: f.step_time_s })));
  const xs = scale(all.map(q => q.x).concat(near.map(l => l[0])), L, W - R, 0.06), ys = scale(all.map(q => q.y), H - B, T, 0.09);
  const svg = sv('svg', { viewBox: '0 0 ' + W + ' ' + H, role: 'img' });
  for (const t of xs.ticks) svg.append(sv('line', { x1: xs.at(t), x2: xs.at(t), y1: T, y2: H - B, class: 'grid' }), label(xs.at(t), H - B + 16, bytes(t), { class: 'soft', 'text-anchor': 'middle' }));
  for (const t of ys.ticks) svg.append(sv('line', { x1: L, x2: W - R, y1: ys.at(t), y2: ys.at(t), class: 'grid' }), label(L - 6, ys.at(t) + 4, seconds(t), { class: 'soft', 'text-anchor': 'end' }));
  svg.append(label(W - R, H - 6, 'peak memory a device \u2192', { class: 'soft', 'text-anchor': 'end' }), label(4, 12, 'seconds a step \u2191', { class: 'soft' }));
  for (const [v, text] of near) {
    const x = xs.at(v), left = x > W - 150;
    svg.append(sv('line', { x1: x, x2: x, y1: T - 6, y2: H - B, class: 'limitline' }),
               label(left ? x - 5 : x + 5, T + 2, text, { class: 'limit', 'text-anchor': left ? 'end' : 'start' }));
  }
  const taken = near.map(([v]) => ({ x0: xs.at(v) + 3, x1: xs.at(v) + 100, y0: T - 10, y1: T + 5 }));
  if (D.front.length > 0) {
    const path = D.front.map((f, k) => (k ? 'L' : 'M') + xs.at(f.peak_live).toFixed(1) + ' ' + ys.at(f.step_time_s).toFixed(1)).join('');
    svg.append(sv('path', { d: path, fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2 }));
    for (const f of D.front)
      svg.append(sv('circle', { cx: xs.at(f.peak_live), cy: ys.at(f.step_time_s), r: 4, fill: 'var(--card)', stroke: 'var(--accent)', 'stroke-width': 2,
        tip: 'on the front\npeak ' + bytes(f.peak_live) + '\nstep ' + seconds(f.step_time_s) + (f.proved ? '' : '\nnot proved best') }));
  }
  for (const q of all) taken.push({ x0: xs.at(q.x) - 5, x1: xs.at(q.x) + 5, y0: ys.at(q.y) - 5, y1: ys.at(q.y) + 5 });
  const free = r => r.x0 > L && r.x1 < W + 4 && r.y0 > 0 && r.y1 < H - B && !taken.some(t => t.x0 < r.x1 && t.x1 > r.x0 && t.y0 < r.y1 && t.y1 > r.y0);
  for (const q of points) {
    const x = xs.at(q.x), y = ys.at(q.y), w = 6.6 * q.p.name.length;
    svg.append(sv('circle', { cx: x, cy: y, r: 5, fill: solver(q.p) ? 'var(--accent)' : 'var(--c1)', stroke: 'var(--card)', 'stroke-width': 1.5, tip: summary(q.p) }));
    // The first place around the point where the name covers nothing.
    const spots = [];
    for (const d of [0, 12, 24, 36, 48, 60, 72, 84, 96]) for (const s of d ? [-1, 1] : [1]) spots.push([8, 4 + s * d, 'start'], [-8, 4 + s * d, 'end']);
    const at = spots.find(([dx, dy, side]) => { const x0 = side === 'start' ? x + dx : x + dx - w; return free({ x0, x1: x0 + w, y0: y + dy - 10, y1: y + dy + 2 }); });
    if (!at) continue;
    const x0 = at[2] === 'start' ? x + at[0] : x + at[0] - w;
    taken.push({ x0, x1: x0 + w, y0: y + at[1] - 10, y1: y + at[1] + 2 });
    if (Math.abs(at[1] - 4) > 8) svg.append(sv('line', { x1: x, y1: y, x2: x + at[0] * 0.8, y2: y + at[1] - 4, class: 'axis' }));
    svg.append(label(x + at[0], y + at[1], q.p.name, { 'text-anchor': at[2], 'font-weight': solver(q.p) ? 600 : 400 }));
  }
  box.append(svg);
  const off = far.map(q => q.p.name + ' (' + bytes(q.x) + ', ' + seconds(q.y) + ')').concat(limits.filter(l => !near.includes(l)).map(l => l[1]));
  if (off.length) box.append(el('p', { class: 'note', style: 'margin:6px 0 0' }, 'Off the chart: ' + off.join(', ')));
}
function summary(p) {
  const d = p.per_device;
  return p.name + ': ' + p.objective + '\npeak ' + bytes(d.peak_live) + ', of which redundant ' + bytes(p.peak_redundant.reduce((a, b) => a + b, 0)) +
    '\narena ' + bytes(d.arena) + '\nstep ' + seconds(p.step_time_s) + ' (operators ' + seconds(p.compute_s) + ')\nsends ' + bytes(p.comm_bytes) +
    (p.fits === null ? '' : p.fits ? '\nfits' : '\ndoes not fit') + '\nclick to see it below';
}

function drawBars(box) {
  const legend = el('div', { class: 'legend' });
  D.classes.forEach((c, k) => legend.append(el('span', {}, [el('i', { style: 'background:' + colour(k) }), c])));
  legend.append(el('span', {}, [el('i', { style: 'background:repeating-linear-gradient(45deg,var(--soft),var(--soft) 2px,transparent 2px,transparent 4px)' }), 'redundant']));
  box.append(legend);
  const row = 26, W = 590, R = 74, T = 20, H = T + row * D.plans.length + 8;
  // As wide as the longest name; the first stands in bold.
  const most_letters = 26, shown = p => p.name.length > most_letters ? p.name.slice(0, most_letters - 1) + '\u2026' : p.name;
  const L = 16 + Math.max(...D.plans.map((p, i) => (i === 0 ? 7.7 : 6.6) * shown(p).length));
  const totals = D.plans.map(p => p.per_device.peak_live), most = Math.max(...totals), least = Math.min(...totals);
  // Bars that would make the others too short to read are cut.
  const wanted = Math.max(...limits.map(l => l[0] * 1.15), least * 4, D.plans[0].per_device.peak_live * 1.2), cap = most > 2 * wanted ? wanted : most;
  const xs = linear(0, cap, L, W - R);
  const svg = sv('svg', { viewBox: '0 0 ' + W + ' ' + H, role: 'img' });
  svg.append(sv('defs', {}, sv('pattern', { id: 'hatch', width: 5, height: 5, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' },
    sv('line', { x1: 0, y1: 0, x2: 0, y2: 5, stroke: 'var(--card)', 'stroke-width': 3, opacity: 0.75 }))));
  for (const t of xs.ticks) svg.append(sv('line', { x1: xs.at(t), x2: xs.at(t), y1: T - 4, y2: H - 6, class: 'grid' }), label(xs.at(t), 10, bytes(t), { class: 'soft', 'text-anchor': 'middle' }));
  const figures = [];  // Over the lines of the limits.
  D.plans.forEach((p, i) => {
    const y = T + i * row + 3;
    let sum = 0;
    const g = sv('g', { style: 'cursor:pointer', click: () => choose(i), tip: summary(p) + '\n\n' + D.classes.map((c, k) => p.peak_classes[k] ? c + ' ' + bytes(p.peak_classes[k]) + (p.peak_redundant[k] ? ', redundant ' + bytes(p.peak_redundant[k]) : '') : '').filter(s => s).join('\n') });
    g.append(sv('rect', { x: 0, y: y - 3, width: W, height: row, fill: 'transparent' }), label(L - 8, y + 14, shown(p), { 'text-anchor': 'end', 'font-weight': i === 0 ? 600 : 400 }));
    p.peak_classes.forEach((b, k) => {
      const part = (from, to, extra) => {
        const a = xs.at(Math.min(from, cap)), w = xs.at(Math.min(to, cap)) - a;
        if (w > 0.05) g.append(sv('rect', { x: a, y, width: w, height: row - 7, fill: colour(k) }));
        if (w > 0.05 && extra) g.append(sv('rect', { x: a, y, width: w, height: row - 7, fill: 'url(#hatch)' }));
      };
      part(sum, sum + b - p.peak_redundant[k], false);
      part(sum + b - p.peak_redundant[k], sum + b, true);
      sum += b;
    });
    const end = xs.at(Math.min(sum, cap));
    if (sum > cap * 1.0001) g.append(sv('path', { d: 'M' + (end - 12) + ' ' + (y - 1) + 'l6 ' + (row - 5) / 2 + 'l-6 ' + (row - 5) / 2 + 'h5l6 ' + -(row - 5) / 2 + 'l-6 ' + -(row - 5) / 2 + 'z', fill: 'var(--card)' }));
    figures.push(label(end + 6, y + 14, bytes(sum), { class: p.fits === false ? 'limit' : '', 'pointer-events': 'none' }));
    svg.append(g);
  });
  for (const [v, text] of limits) if (v <= cap) svg.append(sv('line', { x1: xs.at(v), x2: xs.at(v), y1: T - 4, y2: H - 6, class: 'limitline', tip: text }));
  svg.append(sv('line', { x1: xs.at(D.floor), x2: xs.at(D.floor), y1: T - 4, y2: H - 6, stroke: 'var(--good)', 'stroke-dasharray': '2 3', 'stroke-width': 1.5, tip: 'without redundancy ' + bytes(D.floor) }), ...figures);
  box.append(svg);
}

function drawLive(p) {
  const box = $('live');
  box.replaceChildren();
  const W = 860, H = 300, L = 62, R = 12, T = 22, B = 34, live = p.live;
  const totals = live.bytes.map(b => b.reduce((x, y) => x + y, 0)), most = Math.max(...totals);
  const near = limits.filter(l => l[0] < 1.4 * most);
  const xs = linear(0, live.steps, L, W - R), ys = linear(0, Math.max(most * 1.06, ...near.map(l => l[0] * 1.04)), H - B, T);
  const svg = sv('svg', { viewBox: '0 0 ' + W + ' ' + H, role: 'img' });
  for (const t of ys.ticks) svg.append(sv('line', { x1: L, x2: W - R, y1: ys.at(t), y2: ys.at(t), class: 'grid' }), label(L - 6, ys.at(t) + 4, bytes(t), { class: 'soft', 'text-anchor': 'end' }));
  const bands = [[0, Math.min(live.backward, live.update), 'forward'], [live.backward, live.steps, live.update < live.steps ? 'backward and update' : 'backward']];
  for (const [from, to, text] of bands) if (to > from) svg.append(label((xs.at(from) + xs.at(to)) / 2, H - B + 16, text, { class: 'soft', 'text-anchor': 'middle' }));
  if (live.backward < live.steps) svg.append(sv('line', { x1: xs.at(live.backward), x2: xs.at(live.backward), y1: T, y2: H - B + 8, class: 'axis' }));
  const below = live.bytes.map(() => 0);
  D.classes.forEach((c, k) => {
    if (!live.bytes.some(b => b[k])) return;
    const low = [], high = [];
    live.bytes.forEach((b, i) => {
      const from = xs.at(live.at[i]), to = xs.at(i + 1 < live.at.length ? live.at[i + 1] : live.steps);
      high.push(from.toFixed(1) + ' ' + ys.at(below[i] + b[k]).toFixed(1), to.toFixed(1) + ' ' + ys.at(below[i] + b[k]).toFixed(1));
      low.push(from.toFixed(1) + ' ' + ys.at(below[i]).toFixed(1), to.toFixed(1) + ' ' + ys.at(below[i]).toFixed(1));
      below[i] += b[k];
    });
    svg.append(sv('path', { d: 'M' + high.join('L') + 'L' + low.reverse().join('L') + 'Z', fill: colour(k) }));
  });
  for (const [v, text] of near) svg.append(sv('line', { x1: L, x2: W - R, y1: ys.at(v), y2: ys.at(v), class: 'limitline' }), label(W - R, ys.at(v) - 4, text, { class: 'limit', 'text-anchor': 'end' }));
  const px = xs.at(live.peak + 0.5), py = ys.at(most), right = px > W * 0.6;
  svg.append(sv('line', { x1: px, x2: px, y1: T - 4, y2: H - B, stroke: 'var(--ink)', 'stroke-dasharray': '2 3' }), sv('circle', { cx: px, cy: py, r: 3.5, fill: 'var(--ink)' }),
    label(right ? px - 6 : px + 6, T - 6, 'peak ' + bytes(most) + ' at step ' + (live.peak + 1) + ' of ' + live.steps, { 'text-anchor': right ? 'end' : 'start', 'font-weight': 600 }));
  const line = sv('line', { y1: T, y2: H - B, stroke: 'var(--soft)', visibility: 'hidden' });
  const cover = sv('rect', { x: L, y: T, width: W - L - R, height: H - T - B, fill: 'transparent', tip: event => {
    const r = cover.getBoundingClientRect(), step = (event.clientX - r.left) / r.width * live.steps;
    let i = live.at.findIndex((a, k) => (k + 1 < live.at.length ? live.at[k + 1] : live.steps) > step);
    if (i < 0) i = live.at.length - 1;
    line.setAttribute('visibility', 'visible');
    for (const a of ['x1', 'x2']) line.setAttribute(a, xs.at(live.at[i] + 0.5));
    return 'step ' + (live.at[i] + 1) + ': ' + live.ops[i] + '\n' + bytes(totals[i]) + ' live\n' + D.classes.map((c, k) => live.bytes[i][k] ? c + ' ' + bytes(live.bytes[i][k]) : '').filter(s => s).reverse().join('\n');
  } });
  svg.append(line, cover);
  const items = el('div', { class: 'items' }, el('h3', {}, 'The largest at the peak'));
  for (const [name, kind, times, size] of p.peak_items)
    items.append(el('div', { tip: name + '\n' + D.classes[kind] + ', ' + times + (times > 1 ? ' buffers, ' : ' buffer, ') + bytes(size) },
      [el('u', { style: 'width:' + (100 * size / p.peak_items[0][3]).toFixed(1) + '%;background:' + colour(kind) }), el('b', {}, name + (times > 1 ? ' \u00d7' + times : '')), el('em', {}, bytes(size))]));
  box.append(el('div', {}, svg), items);
}

// Axes that tensors are split on get a colour each, the same in every plan.
const splits = [];
for (const p of D.plans) for (const card of p.map) for (const row of card.rows) for (const c of row.cells)
  if (c) for (const how of c.place) if (how !== 'R' && how !== 'P' && !splits.includes(how)) splits.push(how);
const hues = ['#2f6fd0', '#c2611f', '#2b8a5e', '#8550c7', '#b0892a', '#c24a78', '#2a8fa0', '#7a6a58', '#5c6fb8', '#6c8f2f', '#a24f4f', '#4f7a8a'];
function pill(how, axis) {
  if (how === 'R') return el('span', { class: 'pill whole', title: 'replicated along ' + axis }, 'whole');
  if (how === 'P') return el('span', { class: 'pill sum', title: 'partial sums along ' + axis }, 'partial');
  return el('span', { class: 'pill', style: 'background:' + hues[splits.indexOf(how) % hues.length], title: 'split on ' + how + ' along ' + axis }, how);
}
// Moves of one kind together; "all-gather over a, all-gather over b" in short.
function together(moves) {
  const all = [];
  for (const [how, to, sent, time] of moves) {
    let m = all.find(x => x.how === how);
    if (!m) all.push(m = { how, to: [], sent: 0, time: 0, short: how.replaceAll(' over ', ' ') });
    m.to.push(to);
    m.sent += sent;
    m.time += time;
  }
  for (const m of all) {
    const kinds = [];
    for (const step of m.how.split(', ')) {
      const [kind, axis] = step.split(' over ');
      const last = kinds[kinds.length - 1];
      if (last && last[0] === kind) last.push(axis); else kinds.push([kind, axis]);
    }
    m.short = kinds.map(k => k[0] + ' ' + k.slice(1).join('+')).join(', ');
  }
  return all;
}
const sections = ['Inputs', 'Parameters', 'Optimizer state', 'Gradients', 'Activations, forward', 'Activations, backward'];
function drawMap(p) {
  const box = $('map');
  box.replaceChildren();
  for (const card of [...p.map].sort((a, b) => (a.block === '') - (b.block === ''))) {
    if (card.rows.length === 0) continue;
    const table = el('table', { class: card.columns.length > 1 ? 'map many' : 'map' });
    const alike = c => card.block === '' ? '' : c.first === c.last ? card.block + '.' + c.first : card.block + '.' + c.first + ' to ' + c.last + '  \u00d7' + (c.last - c.first + 1);
    table.append(el('tr', {}, [el('th', { class: 'block' }, card.block === '' ? 'Outside of the layers' : 'Layers ' + card.block)].concat(
      card.columns.map(c => el('th', {}, [el('div', {}, alike(c)), el('span', { class: 'place' }, D.mesh.map(m => el('span', { class: 'pill', style: 'color:var(--soft)' }, m[0] + ' ' + m[1])))])))));
    let section = -1;
    for (const row of card.rows) {
      if (row.section !== section) table.append(el('tr', { class: 'section' }, el('td', { colspan: card.columns.length + 1 }, sections[section = row.section])));
      const few = card.columns.length === 1;
      table.append(el('tr', {}, [el('td', { class: 'name', title: row.name }, row.name + (row.times > 1 ? ' \u00d7' + row.times : ''))].concat(row.cells.map((c, k) => {
        if (!c) return el('td', {}, '\u2013');
        // What differs from the column before should be seen at once.
        const before = k > 0 ? row.cells[k - 1] : null;
        if (before && JSON.stringify([before.place, before.bytes, before.moves]) === JSON.stringify([c.place, c.bytes, c.moves]))
          return el('td', { class: 'same' }, 'the same');
        const cell = el('div', { class: 'cell' }, [el('span', { class: 'place' }, c.place.map((how, a) => pill(how, D.mesh[a][0]))), el('span', { class: 'bytes' }, bytes(c.bytes))]);
        if (c.redundant > 0.02 * c.bytes) {
          if (few) cell.append(el('span', { class: 'waste' }, bytes(c.redundant) + ' redundant'));
          fill(cell.children[1], { class: 'bytes over', tip: bytes(c.redundant) + ' redundant' });
        }
        const moves = together(c.moves), shown = moves.slice(0, few ? 2 : 1);
        for (const m of shown)
          cell.append(el('span', { class: 'move', tip: m.how + '\nfor ' + m.to.join('\nand ') + (m.sent ? '\nsends ' + bytes(m.sent) : '\nsends nothing') + ' in ' + seconds(m.time) + ' a step' }, ['\u2192 ' + (m.sent ? bytes(m.sent) + ' ' : ''), el('b', {}, m.short + (m.to.length > 1 ? ' \u00d7' + m.to.length : ''))]));
        if (moves.length > shown.length)
          cell.append(el('span', { class: 'move', tip: moves.slice(shown.length).map(m => m.how + ' for ' + m.to.join(' and ') + ', sends ' + bytes(m.sent)).join('\n') }, '+' + (moves.length - shown.length)));
        return el('td', {}, cell);
      }))));
    }
    box.append(el('div', { class: 'scroll' }, table));
  }
}

function drawRun(run) {
  const box = $('run');
  if (run.losses.length > 1) {
    const W = 590, H = 260, L = 52, R = 12, T = 16, B = 34;
    const xs = linear(1, run.losses.length, L, W - R), ys = scale(run.losses.filter(x => isFinite(x)), H - B, T, 0.06);
    const svg = sv('svg', { viewBox: '0 0 ' + W + ' ' + H, role: 'img' });
    for (const t of ys.ticks) svg.append(sv('line', { x1: L, x2: W - R, y1: ys.at(t), y2: ys.at(t), class: 'grid' }), label(L - 6, ys.at(t) + 4, digits(t), { class: 'soft', 'text-anchor': 'end' }));
    for (const t of xs.ticks) if (Number.isInteger(t)) svg.append(label(xs.at(t), H - B + 16, String(t), { class: 'soft', 'text-anchor': 'middle' }));
    svg.append(sv('path', { d: run.losses.map((y, i) => (i ? 'L' : 'M') + xs.at(i + 1).toFixed(1) + ' ' + ys.at(y).toFixed(1)).join(''), fill: 'none', stroke: 'var(--accent)', 'stroke-width': 2 }),
      label(W - R, H - 4, 'step \u2192', { class: 'soft', 'text-anchor': 'end' }), label(4, 10, 'loss', { class: 'soft' }));
    run.losses.forEach((y, i) => svg.append(sv('circle', { cx: xs.at(i + 1), cy: ys.at(y), r: 5, fill: 'transparent', tip: 'step ' + (i + 1) + ': loss ' + y.toFixed(4) })));
    box.append(el('div', {}, [el('p', { class: 'note' }, 'Loss ' + run.losses[0].toFixed(4) + ' \u2192 ' + run.losses[run.losses.length - 1].toFixed(4) + ', ' + Math.round(run.tokens_per_second).toLocaleString('en') + ' tokens/s'), svg]));
  }
  const n = run.predicted.length, most = Math.max(...run.predicted, ...run.allocated, ...run.measured), row = n > 16 ? 16 : 30, W = 590, L = 66, R = 20, T = 20, H = T + n * row + 6;
  const xs = linear(0, most * 1.02, L, W - R), svg = sv('svg', { viewBox: '0 0 ' + W + ' ' + H, role: 'img' });
  for (const t of xs.ticks) svg.append(sv('line', { x1: xs.at(t), x2: xs.at(t), y1: T - 4, y2: H, class: 'grid' }), label(xs.at(t), 10, bytes(t), { class: 'soft', 'text-anchor': 'middle' }));
  for (let r = 0; r < n; ++r) {
    const y = T + r * row, text = 'rank ' + r + '\npredicted arena ' + bytes(run.predicted[r]) + '\nallocated ' + bytes(run.allocated[r]) + '\nresident ' + bytes(run.measured[r]);
    const g = sv('g', { tip: text });
    g.append(label(L - 8, y + row / 2 + 4, 'rank ' + r, { class: 'soft', 'text-anchor': 'end' }), sv('rect', { x: L, y: y + 2, width: xs.at(run.measured[r]) - L, height: row - 6, fill: 'var(--c2)' }),
      sv('rect', { x: L, y: y + 2, width: xs.at(run.predicted[r]) - L, height: row - 6, fill: 'none', stroke: 'var(--ink)', 'stroke-width': 1.5 }));
    svg.append(g);
  }
  box.append(el('div', {}, [el('p', { class: 'note' }, 'Bytes of each rank: the frame is what was predicted and allocated, the filling is what is resident.'), svg]));
}

function choose(i) {
  document.querySelectorAll('#tabs button').forEach((b, k) => b.setAttribute('aria-pressed', k === i));
  $('tip').style.display = 'none';
  drawLive(D.plans[i]);
  drawMap(D.plans[i]);
}
drawFront($('front'));
drawBars($('bars'));
D.plans.forEach((p, i) => $('tabs').append(el('button', { type: 'button', click: () => choose(i) }, p.name)));
if (D.run) drawRun(D.run);
choose(Math.max(0, D.run ? D.plans.findIndex(p => p.name === D.run.plan) : 0));
)js";

}  // namespace mmr::detail
