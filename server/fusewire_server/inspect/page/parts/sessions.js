// The table of sessions: sorted by any column, filtered by a text, each row changed in its place.

import { arrange, make, setText, setWidth } from "../basics/dom.js";
import { duration, plural, rate, share, size } from "../basics/format.js";

const SORT_EVERY_MS = 3000; // so that rows do not jump while one reads them

const COLUMNS = [
  { key: "name", name: "session", text: row => row.name, order: row => row.name },
  { key: "wait", name: "waits for", text: row => row.wait || "its client", order: row => row.wait },
  { key: "ops", name: "ops/s", text: row => rate(row.ops), order: row => -row.ops },
  { key: "p50", name: "step p50", text: row => step(row.p50), order: row => -row.p50 },
  { key: "p99", name: "step p99", text: row => step(row.p99), order: row => -row.p99 },
  { key: "device", name: "device", text: row => share(row.device), order: row => -row.device, isBar: true },
  { key: "bytes", name: "memory", text: row => size(row.bytes), order: row => -row.bytes },
];
const step = seconds => (seconds ? duration(seconds) : "–");

export class SessionTable {
  constructor() {
    this.rows = new Map();
    this.sort = "device";
    this.isReversed = false;
    this.sortedAt = -Infinity;
    this.order = [];
    this.title = make("h3", { id: "sessions-title" }, "Sessions");
    this.filter = make("input", { type: "search", placeholder: "name, id or tenant", "aria-label": "Filter sessions",
      oninput: () => this.again() });
    this.body = make("tbody");
    this.heads = COLUMNS.map(column => make("th", { scope: "col", class: column.key },
      make("button", { type: "button", onclick: () => this.sortBy(column.key) }, column.name)));
    this.element = make("section", { class: "card sessions" },
      make("div", { class: "title" }, this.title, this.filter),
      make("div", { class: "scroll", tabindex: "0", role: "region", "aria-labelledby": "sessions-title" },
        make("table", {}, make("thead", {}, make("tr", {}, ...this.heads)), this.body)));
  }

  sortBy(key) {
    this.isReversed = this.sort === key && !this.isReversed;
    this.sort = key;
    this.again();
  }

  again() {
    this.sortedAt = -Infinity;
    if (this.store) this.show(this.store);
  }

  show(store) {
    this.store = store;
    const { state } = store;
    const before = new Map(store.earlier.sessions.map(each => [each.session, each]));
    const seconds = Math.max((state.taken_at_ns - store.earlier.taken_at_ns) / 1e9, 1e-9);
    const rows = new Map(state.sessions.map(each => [each.session, rowOf(each, before, seconds, state.steps)]));
    setText(this.title, plural(state.stats.sessions, "session") +
      (state.other_sessions ? `, ${state.other_sessions} of them not shown` : ""));
    this.arrange(rows);
    const most = Math.max(...[...rows.values()].map(row => row.device), 1e-9);
    for (const [id, row] of rows) this.fill(id, row, most);
  }

  // Puts the rows in order now and then, and meanwhile new ones at the end.
  arrange(rows) {
    const now = performance.now();
    if (now - this.sortedAt > SORT_EVERY_MS) {
      this.sortedAt = now;
      const { order } = COLUMNS.find(each => each.key === this.sort);
      const sign = this.isReversed ? -1 : 1;
      const ids = [...rows.keys()].sort((a, b) => sign * compare(order(rows.get(a)), order(rows.get(b))));
      this.order = ids;
      this.heads.forEach((head, place) => {
        const isSorted = COLUMNS[place].key === this.sort;
        head.setAttribute("aria-sort", isSorted ? (this.isReversed ? "ascending" : "descending") : "none");
      });
    }
    const known = new Set(this.order);
    const ids = [...this.order, ...[...rows.keys()].filter(id => !known.has(id))].filter(id => rows.has(id));
    this.order = ids;
    const text = this.filter.value.trim().toLowerCase();
    arrange(this.body, ids.filter(id => !text || rows.get(id).all.includes(text)).map(id => this.lineOf(id).line));
    for (const id of this.rows.keys()) if (!rows.has(id)) this.rows.delete(id);
  }

  lineOf(id) {
    if (!this.rows.has(id)) {
      const link = make("a", { href: "#company/" + id });
      const bar = make("i", { class: "share" });
      const cells = COLUMNS.map(column => {
        if (column.key === "name") return make("th", { scope: "row" }, link);
        const text = make("span");
        return make("td", { class: column.key }, column.isBar ? bar : null, text);
      });
      this.rows.set(id, { line: make("tr", {}, ...cells), link, bar, cells });
    }
    return this.rows.get(id);
  }

  fill(id, row, most) {
    const { line, link, bar, cells } = this.lineOf(id);
    COLUMNS.forEach((column, place) => {
      if (column.key !== "name") setText(cells[place].lastElementChild, column.text(row));
    });
    setText(link, row.name);
    link.title = row.title;
    setWidth(bar, row.device / most / 2);
    line.className = row.wait.startsWith("kernel") || row.wait === "held" ? "stuck" : row.ops ? "" : "idle";
  }
}

function rowOf(each, before, seconds, steps) {
  const old = before.get(each.session) || each;
  const measured = steps[each.session] || { p50_s: 0, p99_s: 0 };
  return {
    name: each.name || each.session,
    title: `${each.session}, tenant ${each.tenant}, ${each.client}`,
    all: [each.name, each.session, each.tenant, each.client, ...Object.values(each.labels)].join(" ").toLowerCase(),
    wait: each.state === "detached" ? "its client's connection" : each.wait_reason,
    ops: Math.max(each.ops - old.ops, 0) / seconds,
    p50: measured.p50_s,
    p99: measured.p99_s,
    device: Math.max(each.device_ns - old.device_ns, 0) / 1e9 / seconds,
    bytes: each.live_bytes,
  };
}

function compare(a, b) {
  return typeof a === "string" ? a.localeCompare(b, "en", { numeric: true }) : a - b;
}
