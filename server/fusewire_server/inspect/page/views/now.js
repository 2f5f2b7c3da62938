// The view Now: what the server does, for whom, and what each session waits for.

import { chart } from "../parts/charts.js";
import { onTheme } from "../basics/colors.js";
import { make, setText, showFacts } from "../basics/dom.js";
import { count, duration, plural, rate, share, size } from "../basics/format.js";
import { memoryMap } from "../parts/memory.js";
import { operateCard } from "../parts/operate.js";
import { rowsChart } from "../parts/rows.js";
import { SessionTable } from "../parts/sessions.js";

export class Now {
  constructor(store) {
    this.store = store;
    this.busy = chart("Device busy", value => Math.round(value) + " %", "--c1", 100);
    this.ops = chart("Operations a second", count, "--c2");
    this.together = chart("Rows a launch", value => value.toFixed(value < 10 ? 1 : 0), "--c3");
    this.charts = [this.busy, this.ops, this.together];
    this.facts = make("dl", { class: "facts" });
    this.memory = memoryMap();
    this.rows = rowsChart("Rows of submissions in the last seconds");
    this.sessions = new SessionTable();
    this.operate = operateCard();
    this.element = make("div", { class: "now" },
      make("h2", { class: "hidden" }, "Now"),
      make("div", { class: "charts" }, ...this.charts.map(each => each.card)),
      this.facts,
      this.sessions.element,
      make("div", { class: "pair" }, this.memory.element, this.rows.element),
      this.operate.element);
    onTheme(() => this.charts.forEach(each => each.forget()));
    addEventListener("resize", () => this.charts.forEach(each => each.fit()));
  }

  show() {
    const { store } = this;
    if (!store.state) return;
    const { at, busy, ops, rows } = store.series;
    const last = list => (list.length ? list[list.length - 1] : 0) || 0;
    [[this.busy, busy], [this.ops, ops], [this.together, rows]].forEach(([each, data]) => each.draw([at, data]));
    setText(this.busy.value, share(store.busy()));
    setText(this.ops.value, rate(last(ops)));
    setText(this.together.value, last(rows).toFixed(1));
    this.showFacts();
    this.sessions.show(store);
    this.memory.show(store.state);
    this.rows.show(grown(store));
    this.operate.show(store.state);
  }

  showFacts() {
    const { store } = this;
    const { stats } = store.state;
    showFacts(this.facts, [
      ["submissions", rate(store.perSecond(state => state.stats.totals.submissions)) + "/s"],
      ["kernel launches", rate(store.perSecond(state => state.stats.totals.launches)) + "/s"],
      ["rows that wait", count(stats.queue.ready)],
      ["oldest of them", stats.queue.ready ? duration(stats.queue.oldest_s) : "none"],
      ["programs", count(stats.programs)],
      ["received", size(store.perSecond(state => state.stats.totals.received_bytes)) + "/s"],
      ["sent", size(store.perSecond(state => state.stats.totals.sent_bytes)) + "/s"],
    ]);
  }
}

// Returns the histogram of rows a submission over the last seconds.
function grown(store) {
  const before = new Map(store.earlier.stats.rows_per_launch.buckets.map(each => [each.at_most, each.count]));
  return store.state.stats.rows_per_launch.buckets.map(
    each => ({ at_most: each.at_most, count: each.count - (before.get(each.at_most) || 0) }));
}
