// Draws the timeline of a profile on a canvas, and tells of the block that is picked.

"use strict";

const DATA = JSON.parse(document.getElementById("data").textContent);
const TEXTS = DATA.texts;
const KINDS = { code: "your code, and recording", cut: "cutting into segments", read: "waiting for a value",
  credit: "waiting for the device to catch up", frame: "a frame on its way", submission: "computing on the device, a colour for each program" };
const PALETTES = {
  light: ["#1f6fd1", "#b83280", "#7a5af5", "#8a6d00", "#2b8a3e", "#0b7285", "#d9631e"],
  dark: ["#6ea8fe", "#f783c1", "#b197fc", "#e3c341", "#69db7c", "#66d9e8", "#ff9d5c"],
};
const [AXIS, LABEL, GAP, LEAST_BLOCK, MARGIN, LEAST_SPAN] = [22, 18, 8, 1.5, 0.02, 1000];
const HEIGHTS = { thread: 30, frames: 16, device: 30, series: 34 };

const blocks = DATA.blocks.map(([track, kind, began, ended, label, segment, line, facts], place) => (
  { place, track, kind: TEXTS[kind], began, ended, label: TEXTS[label], segment, line: TEXTS[line], facts }));
const segments = DATA.segments.map(([label, line, ops, iterations, why, names]) => (
  { label: TEXTS[label], line: TEXTS[line], ops, iterations, why: TEXTS[why], names: TEXTS[names] }));
const byTrack = DATA.tracks.map(() => []);
const bySegment = new Map();
for (const block of blocks) {
  byTrack[block.track].push(block);
  if (block.segment < 0) continue;
  if (!bySegment.has(block.segment)) bySegment.set(block.segment, []);
  bySegment.get(block.segment).push(block);
}
const spent = new Map();
for (const block of blocks) {
  if (block.kind === "submission") spent.set(block.label, (spent.get(block.label) || 0) + block.ended - block.began);
}
const hues = new Map([...spent].sort((a, b) => b[1] - a[1]).map(([label], place) => [label, place]));
const byId = id => document.getElementById(id);
const canvas = byId("timeline");
const context = canvas.getContext("2d");
const scheme = matchMedia("(prefers-color-scheme: dark)");
let view = { from: 0, to: DATA.length };
let bands = [];
let drawnWidth = 0;
let picked;

// ---- words ----

function duration(ns) {
  const [unit, scale] = ns >= 1e9 ? ["s", 1e9] : ns >= 1e6 ? ["ms", 1e6] : ns >= 1e3 ? ["µs", 1e3] : ["ns", 1];
  const value = ns / scale;
  return `${value >= 100 || scale === 1 ? Math.round(value) : value.toPrecision(3)} ${unit}`;
}

function size(bytes) {
  const [unit, scale] = bytes >= 2 ** 30 ? ["GiB", 2 ** 30] : bytes >= 2 ** 20 ? ["MiB", 2 ** 20] : ["KiB", 2 ** 10];
  return bytes < 1024 ? `${bytes} bytes` : `${(bytes / scale).toFixed(1)} ${unit}`;
}

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

function theme(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// ---- drawing ----

function colors() {
  const found = { palette: PALETTES[scheme.matches ? "dark" : "light"] };
  for (const name of ["card", "line", "soft", "text", "band", "faint", "on", "accent", ...Object.keys(KINDS)]) found[name] = theme("--" + name);
  return found;
}

function colorOf(block, now) {
  return block.kind === "submission" ? now.palette[hues.get(block.label) % now.palette.length] : now[block.kind];
}

function layOut() {
  let top = AXIS;
  bands = [];
  DATA.tracks.forEach((name, track) => {
    const kinds = byTrack[track].length ? byTrack[track][0].kind : "code";
    const height = HEIGHTS[kinds === "submission" ? "device" : kinds === "frame" ? "frames" : "thread"];
    bands.push({ name, track, top: top + LABEL, height });
    top += LABEL + height + GAP;
  });
  DATA.series.forEach(([name, unit, points]) => {
    if (!points.length) return;
    bands.push({ name, unit, points, most: points.reduce((most, each) => Math.max(most, each[1]), 1), top: top + LABEL, height: HEIGHTS.series });
    top += LABEL + HEIGHTS.series + GAP;
  });
  canvas.style.height = `${top}px`;
  drawnWidth = canvas.clientWidth;
  const ratio = devicePixelRatio || 1;
  canvas.width = Math.round(canvas.clientWidth * ratio);
  canvas.height = Math.round(top * ratio);
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
}

const xOf = ns => (ns - view.from) / (view.to - view.from) * drawnWidth;

function draw() {
  const began = performance.now();
  const now = colors();
  const width = canvas.clientWidth;
  context.fillStyle = now.card;
  context.fillRect(0, 0, width, canvas.clientHeight);
  drawAxis(now, width);
  for (const band of bands) {
    context.fillStyle = now.band;
    context.fillRect(0, band.top, width, band.height);
    if (band.points) drawSeries(band, now, width);
    else drawBlocks(band, now, width);
    context.fillStyle = now.text;
    context.font = "600 12px system-ui, sans-serif";
    const most = band.unit === "bytes" ? `, at most ${size(band.most)}` : band.points ? `, at most ${band.most} ${band.unit}` : "";
    context.fillText(`${band.name}${most}`, 2, band.top - 5);
  }
  if (picked) drawPicked(now);
  canvas.dataset.drawMs = (performance.now() - began).toFixed(1);
  canvas.dataset.blocks = blocks.length;
}

function drawAxis(now, width) {
  const perPixel = (view.to - view.from) / Math.max(width, 1);
  const step = stepOf(perPixel * 90);
  context.font = "11px system-ui, sans-serif";
  context.textAlign = "center";
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    const x = Math.round(xOf(at)) + 0.5;
    context.fillStyle = now.line;
    context.fillRect(x, AXIS - 4, 1, canvas.clientHeight);
    context.fillStyle = now.soft;
    context.fillText(markOf(at, step), Math.min(Math.max(x, 22), width - 26), 12);
  }
  context.textAlign = "left";
}

// Writes a mark with as many digits as tell it from its neighbours.
function markOf(ns, step) {
  const [unit, scale] = view.to >= 1e9 ? ["s", 1e9] : view.to >= 1e6 ? ["ms", 1e6] : ["µs", 1e3];
  return `${(ns / scale).toFixed(Math.max(0, Math.ceil(Math.log10(scale / step) - 1e-9)))} ${unit}`;
}

function stepOf(least) {
  for (let unit = 1; ; unit *= 10) for (const each of [1, 2, 5]) if (each * unit >= least) return each * unit;
}

// Draws blocks that are wide enough one by one. Of the others it draws how much of a pixel each colour takes.
function drawBlocks(band, now, width) {
  const kept = byTrack[band.track];
  const perPixel = (view.to - view.from) / Math.max(width, 1);
  const parts = new Map();
  let column = -1;
  for (let place = firstAfter(kept, view.from); place < kept.length && kept[place].began < view.to; place += 1) {
    const block = kept[place];
    const [x, end] = [(block.began - view.from) / perPixel, (block.ended - view.from) / perPixel];
    if (end - x >= LEAST_BLOCK) {
      drawBlock(band, block, Math.max(x, -2), Math.min(end, width + 2), now);
      continue;
    }
    if (Math.floor(x) !== column) {
      drawColumn(band, column, parts, perPixel);
      column = Math.floor(x);
      parts.clear();
    }
    const color = colorOf(block, now);
    parts.set(color, (parts.get(color) || 0) + Math.max(block.ended - block.began, perPixel / 8));
  }
  drawColumn(band, column, parts, perPixel);
}

function drawColumn(band, column, parts, perPixel) {
  let bottom = band.top + band.height;
  for (const [color, ns] of parts) {
    const height = Math.min(Math.max(ns / perPixel * band.height, 2), bottom - band.top);
    context.fillStyle = color;
    context.fillRect(column, bottom - height, 1, height);
    bottom -= height;
  }
}

function drawBlock(band, block, x, end, now) {
  context.fillStyle = colorOf(block, now);
  context.fillRect(x, band.top, Math.max(end - x - 0.5, 1), band.height);
  if (end - x < 46) return;
  context.save();
  context.beginPath();
  context.rect(x, band.top, end - x - 4, band.height);
  context.clip();
  context.fillStyle = block.kind === "code" ? now.text : now.on;
  if (!scheme.matches && block.kind === "submission") context.fillStyle = now.card;
  context.font = "12px system-ui, sans-serif";
  context.fillText(block.kind === "read" || block.kind === "credit" ? block.line || block.label : block.label, x + 5, band.top + band.height / 2 + 4);
  context.restore();
}

function drawSeries(band, now, width) {
  const { points } = band;
  context.fillStyle = now.accent;
  context.globalAlpha = 0.55;
  context.beginPath();
  const bottom = band.top + band.height;
  const yOf = value => bottom - value / band.most * (band.height - 2);
  let place = Math.max(firstPoint(points, view.from) - 1, 0);
  context.moveTo(0, bottom);
  let level = points[place][0] <= view.from ? points[place][1] : 0;
  context.lineTo(0, yOf(level));
  for (; place < points.length && points[place][0] <= view.to; place += 1) {
    const x = Math.max(Math.floor(xOf(points[place][0])), 0);
    context.lineTo(x, yOf(level));
    level = points[place][1];
    while (place + 1 < points.length && xOf(points[place + 1][0]) < x + 1) level = Math.max(level, points[++place][1]);
    context.lineTo(x, yOf(level));
  }
  context.lineTo(width, yOf(level));
  context.lineTo(width, bottom);
  context.fill();
  context.globalAlpha = 1;
}

// Outlines the block, and draws arrows through what became of its segment.
function drawPicked(now) {
  context.strokeStyle = context.fillStyle = now.text;
  context.lineWidth = 2;
  const box = block => {
    const band = bands[block.track];
    return { x: xOf(block.began), end: Math.max(xOf(block.ended), xOf(block.began) + 1), top: band.top, height: band.height };
  };
  const { x, end, top, height } = box(picked);
  context.strokeRect(x - 1, top - 1, end - x + 2, height + 2);
  context.lineWidth = 1.5;
  const chain = chainOf(picked.segment).map(box);
  for (let place = 1; place < chain.length; place += 1) {
    const [a, b] = [chain[place - 1], chain[place]];
    const [fromX, fromY] = [(a.x + a.end) / 2, a.top + a.height / 2];
    const [toX, toY] = [b.x, b.top + b.height / 2];
    context.beginPath();
    context.moveTo(fromX, fromY);
    context.bezierCurveTo(fromX, toY, (fromX + toX) / 2, toY, toX, toY);
    context.stroke();
    context.beginPath();
    context.moveTo(toX + 1, toY);
    context.lineTo(toX - 6, toY - 4);
    context.lineTo(toX - 6, toY + 4);
    context.fill();
  }
}

const STAGES = ["code", "cut", "frame", "submission"];

function chainOf(segment) {
  const found = segment < 0 ? [] : (bySegment.get(segment) || []).filter(each => STAGES.includes(each.kind));
  return found.sort((a, b) => STAGES.indexOf(a.kind) - STAGES.indexOf(b.kind) || a.began - b.began).slice(0, 40);
}

// Blocks of a track are in order and do not overlap.
function firstAfter(kept, ns) {
  let [low, high] = [0, kept.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (kept[middle].ended < ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

function firstPoint(points, ns) {
  let [low, high] = [0, points.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (points[middle][0] <= ns) low = middle + 1;
    else high = middle;
  }
  return low;
}

// ---- moving ----

function show(from, to) {
  const span = Math.min(Math.max(to - from, LEAST_SPAN), DATA.length * (1 + 2 * MARGIN));
  const start = Math.min(Math.max(from, -DATA.length * MARGIN), DATA.length * (1 + MARGIN) - span);
  view = { from: start, to: start + span };
  requestAnimationFrame(draw);
}

function zoom(factor, share = 0.5) {
  const span = view.to - view.from;
  const at = view.from + span * share;
  show(at - span * factor * share, at + span * factor * (1 - share));
}

function move(share) {
  const by = (view.to - view.from) * share;
  show(view.from + by, view.to + by);
}

const showAll = () => show(-DATA.length * MARGIN, DATA.length * (1 + MARGIN));

function goTo(block) {
  const span = Math.max((block.ended - block.began) * 4, (view.to - view.from) / 50, LEAST_SPAN);
  const middle = (block.began + block.ended) / 2;
  show(middle - span / 2, middle + span / 2);
}

function pick(block) {
  picked = block;
  if (block && (block.ended < view.from || block.began > view.to)) {
    const span = view.to - view.from;
    show(block.began - span / 2, block.began + span / 2);
  }
  tell();
  requestAnimationFrame(draw);
}

function step(by) {
  const kept = byTrack[picked ? picked.track : 0];
  if (!kept || !kept.length) return;
  const place = picked ? kept.indexOf(picked) + by : firstAfter(kept, view.from);
  if (kept[place]) pick(kept[place]);
}

function changeTrack(by) {
  let track = (picked ? picked.track : -1) + by;
  while (byTrack[track] && !byTrack[track].length) track += by;
  if (!byTrack[track]) return;
  const middle = picked ? (picked.began + picked.ended) / 2 : (view.from + view.to) / 2;
  const kept = byTrack[track];
  pick(kept[Math.min(firstAfter(kept, middle), kept.length - 1)]);
}

function blockAt(x, y) {
  const band = bands.find(each => !each.points && y >= each.top - LABEL / 2 && y < each.top + each.height + GAP);
  if (!band) return undefined;
  const perPixel = (view.to - view.from) / canvas.clientWidth;
  const ns = view.from + x * perPixel;
  const kept = byTrack[band.track];
  let [best, least] = [undefined, 6 * perPixel];
  for (let place = firstAfter(kept, ns - least); place < kept.length && kept[place].began <= ns + least; place += 1) {
    const away = Math.max(kept[place].began - ns, ns - kept[place].ended, 0);
    if (away < least) [best, least] = [kept[place], away];
  }
  return best;
}

const KEYS = {
  ArrowLeft: () => move(-0.15), ArrowRight: () => move(0.15), "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6),
  0: showAll, Home: showAll, "[": () => step(-1), "]": () => step(1), ArrowUp: () => changeTrack(-1), ArrowDown: () => changeTrack(1),
  Enter: () => picked && goTo(picked), Escape: () => pick(undefined),
};

function listen() {
  canvas.addEventListener("keydown", event => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? undefined : KEYS[event.key];
    if (!act) return;
    event.preventDefault();
    act();
  });
  canvas.addEventListener("wheel", event => {
    if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY / 200), event.offsetX / canvas.clientWidth);
    else if (event.deltaX || event.shiftKey) move((event.deltaX || event.deltaY) / canvas.clientWidth);
    else return;
    event.preventDefault();
  }, { passive: false });
  const pointers = new Map();
  let moved = 0;
  canvas.addEventListener("pointerdown", event => {
    canvas.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, event.offsetX);
    moved = 0;
  });
  canvas.addEventListener("pointermove", event => {
    const block = pointers.size ? undefined : blockAt(event.offsetX, event.offsetY);
    canvas.title = block ? `${block.label}, ${duration(block.ended - block.began)}${block.line ? `, ${block.line}` : ""}` : "";
    if (!pointers.has(event.pointerId)) return;
    const before = [...pointers.values()];
    const by = event.offsetX - pointers.get(event.pointerId);
    pointers.set(event.pointerId, event.offsetX);
    moved += Math.abs(by);
    if (before.length === 1) move(-by / canvas.clientWidth);
    else {
      const after = [...pointers.values()];
      const [was, is] = [before, after].map(each => Math.max(Math.abs(each[0] - each[1]), 20));
      zoom(was / is, (after[0] + after[1]) / 2 / canvas.clientWidth);
    }
  });
  const release = event => pointers.delete(event.pointerId);
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerup", event => {
    release(event);
    if (moved < 4) pick(blockAt(event.offsetX, event.offsetY));
  });
  canvas.addEventListener("dblclick", () => picked && goTo(picked));
  byId("earlier").onclick = () => move(-0.4);
  byId("later").onclick = () => move(0.4);
  byId("in").onclick = () => zoom(0.5);
  byId("out").onclick = () => zoom(2);
  byId("fit").onclick = showAll;
  addEventListener("resize", () => { layOut(); draw(); });
  scheme.addEventListener("change", draw);
}

// ---- what is told ----

const WHY_CUT = { count: "there were enough ops", credit: "there were enough ops", age: "recording paused",
  idle: "the device had nothing to do", demand: "a value was asked for", body: "a loop was recorded once" };
const WORDS = { way_ns: "on the way, both ways", queue_ns: "in the queue", run_ns: "launch and device", device_ns: "on the device",
  size_bytes: "size", segments: "segments in it", iterations: "iterations", rows: "rows of its submission", submission: "submission number",
  tier: "runs", failed: "failed" };

function factText(name, value) {
  if (name.endsWith("_ns")) return duration(value);
  if (name.endsWith("_bytes")) return size(value);
  if (name === "tier") return value ? "by its plan" : "op by op";
  return name === "failed" ? (value ? "yes" : "") : value.toLocaleString("en");
}

function tell() {
  const place = byId("details");
  place.replaceChildren();
  if (!picked) return;
  const segment = segments[picked.segment];
  const facts = [["took", duration(picked.ended - picked.began)], ["from", duration(Math.max(picked.began, 0))],
    ["your line", picked.line || segment?.line || ""]];
  for (const [name, value] of Object.entries(picked.facts)) facts.push([WORDS[name] || name, factText(name, value)]);
  if (segment) facts.push(["ops", segment.ops.toLocaleString("en")], ["cut because", WHY_CUT[segment.why] || segment.why]);
  place.append(
    make("h3", {}, `${picked.label === picked.line ? KINDS[picked.kind] : picked.label}`),
    make("dl", { className: "facts" }, ...facts.filter(([, text]) => text !== "").map(([name, text]) =>
      make("div", {}, make("dt", {}, name), make("dd", {}, text)))));
  if (segment?.names) place.append(make("p", {}, `ops of an iteration: ${segment.names}`));
}

function fillTable(id, heads, rows) {
  const table = byId(id);
  table.replaceChildren(
    make("thead", {}, make("tr", {}, ...heads.map(each => make("th", { scope: "col" }, each)))),
    make("tbody", {}, ...rows.map(([first, ...rest]) =>
      make("tr", {}, make("th", { scope: "row", title: first }, first), ...rest.map(each => make("td", {}, each))))));
}

function fillTables() {
  const lines = new Map();
  const programs = new Map();
  for (const block of blocks) {
    const [ns, line] = [block.ended - block.began, block.line || segments[block.segment]?.line];
    if (line) {
      const one = lines.get(line) || lines.set(line, { code: 0, wait: 0, submission: 0, all: 0 }).get(line);
      one.all += ns;
      one[block.kind === "read" || block.kind === "credit" ? "wait" : block.kind === "submission" ? "submission" : "code"] += ns;
    }
    if (block.kind === "submission") {
      const one = programs.get(block.label) || programs.set(block.label, { submissions: 0, ns: 0, line }).get(block.label);
      one.submissions += 1;
      one.ns += ns;
    }
  }
  const shown = ns => (ns ? duration(ns) : "");
  fillTable("line-table", ["line", "code, cutting", "waits", "device"], [...lines].sort((a, b) => b[1].all - a[1].all).slice(0, 100)
    .map(([line, one]) => [line, shown(one.code), shown(one.wait), shown(one.submission)]));
  fillTable("program-table", ["program", "line", "submissions", "device", "each"], [...programs].sort((a, b) => b[1].ns - a[1].ns).slice(0, 100)
    .map(([label, one]) => [label, one.line || "", one.submissions.toLocaleString("en"), duration(one.ns), duration(one.ns / one.submissions)]));
}

function fillHead() {
  byId("head").textContent = DATA.head;
  byId("device").textContent = DATA.device;
  byId("shares").setAttribute("aria-label", DATA.shares.map(each => each[2]).join("; "));
  for (const [kind, share, text] of DATA.shares) {
    const part = make("i", { className: `k-${kind}`, title: text });
    part.style.flexGrow = share;
    if (share > 0) byId("shares").append(part);
    byId("lines").append(make("li", {}, make("span", { className: `key k-${kind}` }), make("span", {}, text)));
  }
  for (const note of DATA.notes) byId("notes").append(make("li", {}, note));
  byId("notes").hidden = !DATA.notes.length;
  const seen = new Set(blocks.map(each => each.kind));
  for (const kind of Object.keys(KINDS)) {
    if (seen.has(kind)) byId("legend").append(make("li", {}, make("span", { className: `key k-${kind}` }), KINDS[kind]));
  }
}

fillHead();
fillTables();
layOut();
listen();
showAll();
