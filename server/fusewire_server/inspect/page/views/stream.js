// The view Stream: the launches of the last minutes, to move in and to click.

import { colorOf } from "../basics/colors.js";
import { details } from "../parts/details.js";
import { arrange, make, setText } from "../basics/dom.js";
import { count, duration, share } from "../basics/format.js";
import { digestOf } from "../live/records.js";
import { Timeline } from "../parts/timeline.js";

const SPANS_S = [0.1, 0.5, 2, 10, 60, 300];
const BEHIND_NS = 0.9e9; // the picture runs so far behind, so that what it shows is there already
const MOST_PROGRAMS = 8;
const LEAST_NS = 1e5;
const MOST_NS = 6e11;
const HELP = "Drag or ← → to move, wheel or + − to zoom, click a block or use [ ] to pick one, Space to stop or go on.";

export class Stream {
  // `open` asks for records for pixels of so many ns.
  constructor(store, open) {
    this.store = store;
    this.open = open;
    this.spanNs = 2e9;
    this.endNs = undefined; // of the picture, while it stands still
    this.session = "";
    this.canvas = make("canvas", { id: "timeline", tabindex: "0", role: "img", "aria-label": "Launches over time. " + HELP });
    this.timeline = new Timeline(this.canvas);
    this.legend = make("ol", { class: "legend programs", "aria-label": "Programs" });
    this.details = make("div", { class: "card details", role: "region", "aria-live": "polite", "aria-label": "The block" },
      make("p", { class: "soft" }, "Click a block, and this tells its rows, times and sessions."));
    this.element = make("div", { class: "stream" }, make("h2", { class: "hidden" }, "Stream"),
      make("section", { class: "card" }, this.controls(), this.canvas, this.legend,
        make("p", { class: "soft help" }, HELP)), this.details);
    this.listen();
  }

  controls() {
    this.spans = SPANS_S.map(seconds => make("button", { type: "button", onclick: () => this.zoomTo(seconds * 1e9) },
      duration(seconds)));
    this.pause = make("button", { type: "button", onclick: () => this.toggle() }, "Stop");
    this.choice = make("select", { "aria-label": "Session that stands out",
      onchange: () => { this.session = this.choice.value; this.draw(); } }, make("option", { value: "" }, "all sessions"));
    this.figures = make("p", { class: "soft", id: "stream-figures" });
    return make("div", { class: "title" },
      make("div", { class: "group", role: "group", "aria-label": "Time shown" }, ...this.spans), this.pause, this.choice, this.figures);
  }

  listen() {
    const { canvas } = this;
    let pressed;
    canvas.addEventListener("pointerdown", event => {
      pressed = { x: event.offsetX, endNs: this.end(), hasMoved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", event => {
      if (!pressed) return;
      const moved = event.offsetX - pressed.x;
      if (Math.abs(moved) > 4) pressed.hasMoved = true;
      if (pressed.hasMoved) this.moveTo(pressed.endNs - moved * this.perPixel);
    });
    canvas.addEventListener("pointerup", event => {
      if (pressed && !pressed.hasMoved) this.pick(this.timeline.at(this.store.records, event.offsetX, event.offsetY));
      pressed = undefined;
    });
    canvas.addEventListener("wheel", event => {
      event.preventDefault();
      if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.moveTo(this.end() + event.deltaX * this.perPixel);
      else this.zoomTo(this.spanNs * Math.exp(event.deltaY / 400), event.offsetX / canvas.clientWidth);
    }, { passive: false });
    canvas.addEventListener("keydown", event => {
      const act = this.keys()[event.key];
      if (!act) return;
      event.preventDefault();
      act();
    });
    addEventListener("resize", () => this.draw());
  }

  keys() {
    return {
      ArrowLeft: () => this.moveTo(this.end() - this.spanNs / 8),
      ArrowRight: () => this.moveTo(this.end() + this.spanNs / 8),
      "+": () => this.zoomTo(this.spanNs / 1.5, 0.5),
      "=": () => this.zoomTo(this.spanNs / 1.5, 0.5),
      "-": () => this.zoomTo(this.spanNs * 1.5, 0.5),
      " ": () => this.toggle(),
      End: () => this.moveTo(Infinity),
      "[": () => this.step(-1),
      "]": () => this.step(1),
      Escape: () => this.pick(undefined),
    };
  }

  get perPixel() {
    return this.spanNs / Math.max(this.canvas.clientWidth, 1);
  }

  // The pixels that records are asked for: a power of two, so that few zooms need a new stream.
  get pixelNs() {
    const width = this.canvas.clientWidth || 1000;
    return this.spanNs / width < 2e4 ? 0 : 2 ** Math.floor(Math.log2(this.spanNs / width));
  }

  newest() {
    return this.store.nowNs() - BEHIND_NS;
  }

  end() {
    return this.endNs ?? this.newest();
  }

  moveTo(endNs) {
    const isStill = endNs < this.newest();
    if (isStill && this.endNs === undefined) this.stoppedNs = this.newest();
    this.endNs = isStill ? endNs : undefined;
    setText(this.pause, this.endNs === undefined ? "Stop" : "Go on");
    this.draw();
  }

  toggle() {
    this.moveTo(this.endNs === undefined ? this.newest() - 1 : Infinity);
  }

  // Shows so much time; what lies at the share `at` of the width stays there while the picture stands still.
  zoomTo(spanNs, at = 1) {
    const span = Math.min(Math.max(spanNs, LEAST_NS), MOST_NS);
    if (this.endNs !== undefined || at < 0.9) this.moveTo(this.end() + (1 - at) * (span - this.spanNs));
    this.spanNs = span;
    clearTimeout(this.asking);
    this.asking = setTimeout(() => this.askAgain(), 350);
    this.draw();
  }

  askAgain() {
    if (this.pixelNs === this.asked) return;
    this.asked = this.pixelNs;
    if (this.isShown) this.open(this.asked);
  }

  pick(record) {
    this.selected = record;
    this.details.replaceChildren(...(record ? details(record, this.store.state)
      : [make("p", { class: "soft" }, "Click a block, and this tells its rows, times and sessions.")]));
    this.draw();
  }

  // Picks the block before or after the one that is picked, or the newest in the picture.
  step(by) {
    const all = [...this.store.records.values()][0] || [];
    const device = this.selected ? this.store.records.get(this.selected.device) || all : all;
    const seen = device.filter(each => each.beganNs <= this.end());
    const found = this.selected ? device[device.indexOf(this.selected) + by] : seen[seen.length - 1];
    if (!found) return;
    if (this.endNs === undefined) this.toggle();
    this.pick(found);
    if (found.beganNs < this.end() - this.spanNs) this.moveTo(found.endedNs + this.spanNs / 2);
    if (found.endedNs > this.end()) this.moveTo(Math.min(found.endedNs + this.spanNs / 2, this.newest() - 1));
  }

  enter() {
    if (this.isShown) return;
    this.isShown = true;
    this.asked = this.pixelNs;
    this.frame();
  }

  leave() {
    this.isShown = false;
  }

  frame() {
    if (!this.isShown) return;
    const still = this.endNs !== undefined || matchMedia("(prefers-reduced-motion: reduce)").matches;
    const now = performance.now();
    if (!still && now - (this.drawnAt || 0) > Math.max(this.perPixel / 2e6, 30)) this.draw();
    requestAnimationFrame(() => this.frame());
  }

  show() {
    if (!this.store.state) return;
    this.showChoice();
    this.showLegend();
    this.draw();
  }

  draw() {
    const { store } = this;
    if (!store.state || !this.canvas.clientWidth) return;
    const began = performance.now();
    this.drawnAt = began;
    const to = this.end();
    const devices = [...store.records.keys()].sort((a, b) => a - b);
    this.timeline.fit(devices.length ? devices : [0]);
    this.timeline.newestNs = this.endNs === undefined ? to : this.stoppedNs;
    this.timeline.draw(store.records, to - this.spanNs, to, { session: this.session, selected: this.selected });
    this.canvas.dataset.drawMs = (performance.now() - began).toFixed(2);
    this.spans.forEach((button, place) =>
      button.setAttribute("aria-pressed", String(Math.abs(SPANS_S[place] * 1e9 - this.spanNs) < 1)));
  }

  // Returns the records that lie in the picture.
  seen() {
    const [from, to] = [this.end() - this.spanNs, this.end()];
    return [...this.store.records.values()].flat().filter(each => each.endedNs > from && each.beganNs < to);
  }

  showLegend() {
    const totals = new Map();
    let [deviceNs, submissions, rows] = [0, 0, 0];
    for (const record of this.seen()) {
      const digest = digestOf(record);
      totals.set(digest, (totals.get(digest) || 0) + record.deviceNs);
      deviceNs += record.deviceNs;
      submissions += record.count;
      rows += record.count * record.rows;
    }
    const order = [...totals].sort((a, b) => b[1] - a[1]).slice(0, MOST_PROGRAMS);
    const lines = order.map(([digest, ns]) => {
      const key = make("i", { class: "key" });
      key.style.background = colorOf(digest) || "var(--faint)";
      const name = digest ? make("a", { href: "#program/" + digest }, digest.slice(0, 8)) : make("span", {}, "others");
      return make("li", {}, key, name, make("span", { class: "amount" }, share(deviceNs ? ns / deviceNs : 0)));
    });
    this.legend.replaceChildren(...lines);
    setText(this.figures, `${count(submissions)} submissions, ${submissions ? (rows / submissions).toFixed(1) : 0} rows each`);
  }

  showChoice() {
    const sessions = [...this.store.state.sessions].map(each => [each.session, each.name || each.session]);
    sessions.sort((a, b) => a[1].localeCompare(b[1], "en", { numeric: true }));
    const ids = sessions.map(([id]) => id).join();
    if (ids === this.known) return;
    this.known = ids;
    this.choice.replaceChildren(make("option", { value: "" }, "all sessions"),
      ...sessions.map(([id, name]) => make("option", { value: id, selected: id === this.session }, name)));
  }
}
