// Draws the launches of the last minutes on one canvas: a band for each device, a block for each submission.

import { colorOf, theme } from "../basics/colors.js";
import { duration } from "../basics/format.js";
import { bitsOf, digestOf, hasBit } from "../live/records.js";

const AXIS = 24;
const LABEL = 20;
const GAP = 14;
const LEAST_STRIPE = 4;
const LEAST_BLOCK = 1.5;
const COLUMN = 3;

// What is drawn. `bit` is the session that stands out on a device, by the device's number.
export class Timeline {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d");
    this.bands = [];
  }

  // Fits the canvas to its place and to the pixels of the screen.
  fit(devices) {
    const ratio = devicePixelRatio || 1;
    const [width, height] = [this.canvas.clientWidth, this.canvas.clientHeight];
    if (this.canvas.width !== Math.round(width * ratio) || this.canvas.height !== Math.round(height * ratio)) {
      this.canvas.width = Math.round(width * ratio);
      this.canvas.height = Math.round(height * ratio);
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.width = width;
    const each = (height - AXIS) / Math.max(devices.length, 1);
    this.bands = devices.map((device, place) => ({ device, top: place * each + LABEL, height: each - LABEL - GAP }));
    this.height = height;
  }

  draw(records, fromNs, toNs, { session, selected }) {
    this.fromNs = fromNs;
    this.perPixel = (toNs - fromNs) / Math.max(this.width, 1);
    this.colors = { back: theme("--card"), line: theme("--line"), soft: theme("--soft"), text: theme("--text"),
      band: theme("--band"), faint: theme("--faint") };
    const { context } = this;
    context.fillStyle = this.colors.back;
    context.fillRect(0, 0, this.width, this.height);
    this.drawAxis(toNs);
    let drawn = 0;
    for (const band of this.bands) {
      context.fillStyle = this.colors.band;
      context.fillRect(0, band.top, this.width, band.height);
      const kept = records.get(band.device) || [];
      const names = kept.length ? kept[kept.length - 1].names : undefined;
      const bit = [...(names?.sessions.values() || [])].find(each => each.id === session)?.bit;
      drawn += this.drawBand(band, kept, toNs, session ? bit ?? -1 : undefined);
      context.fillStyle = this.colors.text;
      context.font = "600 12px system-ui, sans-serif";
      context.fillText(`device ${band.device}`, 2, band.top - 6);
    }
    if (selected) this.outline(selected);
    return drawn;
  }

  // Draws blocks that are wide enough one by one. Of the others it draws how much of a column each program takes.
  drawBand(band, kept, toNs, bit) {
    const columns = new Map();
    let drawn = 0;
    for (let place = firstAfter(kept, this.fromNs); place < kept.length && kept[place].beganNs < toNs; place += 1) {
      const record = kept[place];
      const [x, end] = [this.xOf(record.beganNs), this.xOf(record.endedNs)];
      if (end - x >= LEAST_BLOCK) {
        this.drawBlock(band, record, x, end, colorOf(digestOf(record)) || this.colors.faint, bit);
        drawn += 1;
      } else {
        this.fillColumn(columns, record, x, bit);
      }
    }
    for (const [column, parts] of columns) drawn += this.drawColumn(band, column, parts);
    return drawn;
  }

  fillColumn(columns, record, x, bit) {
    const column = Math.floor(x / COLUMN);
    if (!columns.has(column)) columns.set(column, new Map());
    const isOut = bit !== undefined && !(bit >= 0 && hasBit(record, bit));
    const key = (isOut ? "-" : "+") + digestOf(record);
    const part = columns.get(column).get(key) || { digest: digestOf(record), isOut, ns: 0 };
    part.ns += record.deviceNs;
    columns.get(column).set(key, part);
  }

  drawColumn(band, column, parts) {
    const { context } = this;
    const share = band.height / (COLUMN * this.perPixel);
    let bottom = band.top + band.height;
    for (const part of [...parts.values()].sort((a, b) => (a.digest < b.digest ? -1 : 1))) {
      const height = Math.min(Math.max(part.ns * share, 0.75), bottom - band.top);
      context.globalAlpha = part.isOut ? 0.22 : 1;
      context.fillStyle = colorOf(part.digest) || this.colors.faint;
      context.fillRect(column * COLUMN, bottom - height, COLUMN - 0.5, height);
      bottom -= height;
    }
    context.globalAlpha = 1;
    return parts.size;
  }

  // A submission of many rows is a high block: the height tells how many sessions rode along, each by its stripe.
  drawBlock(band, record, x, end, color, bit) {
    const { context } = this;
    const width = end - x;
    const isOut = bit !== undefined && !(bit >= 0 && hasBit(record, bit));
    context.globalAlpha = isOut ? 0.22 : 1;
    context.fillStyle = color;
    context.fillRect(x, band.top, width, band.height);
    const sessions = Math.max(bitsOf(record).length, 1);
    const stripe = band.height / sessions;
    if (sessions > 1 && width >= 2 && stripe >= LEAST_STRIPE) {
      context.fillStyle = this.colors.back;
      for (let each = 1; each < sessions; each += 1) context.fillRect(x, band.top + each * stripe - 0.5, width, 1);
    }
    if (width > 3) {
      context.fillStyle = this.colors.back;
      context.fillRect(end - 0.75, band.top, 0.75, band.height);
    }
    if (!isOut && bit !== undefined && sessions > 1 && width >= 2) {
      const place = bitsOf(record).indexOf(bit);
      context.fillStyle = this.colors.text;
      context.fillRect(x, band.top + place * stripe, width, Math.max(stripe - 1, 2));
    }
    if (record.failed) {
      context.fillStyle = theme("--bad");
      context.fillRect(x, band.top + band.height + 2, Math.max(width, 3), 4);
    }
    context.globalAlpha = 1;
  }

  drawAxis(toNs) {
    const { context } = this;
    const step = stepOf(this.perPixel * 110);
    context.font = "11px system-ui, sans-serif";
    context.textAlign = "center";
    const first = this.newestNs - Math.floor((this.newestNs - this.fromNs) / step) * step;
    for (let at = first; at <= toNs; at += step) {
      const x = Math.round(this.xOf(at)) - 0.5;
      context.fillStyle = this.colors.line;
      context.fillRect(x, 0, 1, this.height - AXIS + 4);
      context.fillStyle = this.colors.soft;
      context.fillText(this.ago(at), Math.min(Math.max(x, 26), this.width - 22), this.height - 6);
    }
    context.textAlign = "left";
  }

  ago(atNs) {
    const seconds = (this.newestNs - atNs) / 1e9;
    return seconds < 0.0005 ? "now" : "−" + duration(seconds);
  }

  outline(record) {
    const band = this.bands.find(each => each.device === record.device);
    if (!band) return;
    const [x, end] = [this.xOf(record.beganNs), this.xOf(record.endedNs)];
    this.context.strokeStyle = this.colors.text;
    this.context.lineWidth = 2;
    this.context.strokeRect(x - 2, band.top - 2, Math.max(end - x, 1) + 4, band.height + 4);
  }

  xOf(ns) {
    return (ns - this.fromNs) / this.perPixel;
  }

  // Returns the record at a point, or the next one within a few pixels.
  at(records, x, y) {
    const band = this.bands.find(each => y >= each.top - LABEL && y < each.top + each.height + GAP);
    if (!band) return undefined;
    const ns = this.fromNs + x * this.perPixel;
    const kept = records.get(band.device) || [];
    let best;
    let least = 5 * this.perPixel;
    const from = firstAfter(kept, ns - 40 * this.perPixel);
    for (let place = from; place < kept.length && kept[place].beganNs <= ns + least; place += 1) {
      const record = kept[place];
      const away = Math.max(record.beganNs - ns, ns - record.endedNs, 0);
      if (away <= least) [best, least] = [record, away];
    }
    return best;
  }
}

// Returns the place of the first record that may be seen from a time on. Records are in the order of their beginnings.
function firstAfter(kept, ns) {
  let [low, high] = [0, kept.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (kept[middle].beganNs < ns) low = middle + 1;
    else high = middle;
  }
  while (low && kept[low - 1].endedNs > ns) low -= 1;
  return low;
}

function stepOf(leastNs) {
  for (let unit = 1; ; unit *= 10) {
    for (const each of [1, 2, 5]) if (each * unit >= leastNs) return each * unit;
  }
}
