// The view Program: what each program is, how it runs, its launches, its kernels' sources, and who uses it.

import { colorOf } from "./colors.js";
import { arrange, make, setText } from "./dom.js";
import { count, duration, plural, share, size } from "./format.js";
import { digestOf, sessionsOf } from "./records.js";
import { rowsChart } from "./rows.js";
import { showSource } from "./source.js";

const AGAIN_MS = 2000;

export class Program {
  constructor(store, ask) {
    this.store = store;
    this.ask = ask;
    this.lines = new Map();
    this.list = make("ol", { class: "programs" });
    this.title = make("h2", {}, "Programs");
    this.state = make("dl", { class: "facts" });
    this.words = make("p", { class: "soft" });
    this.launches = make("ol", { class: "launches" });
    this.source = make("pre", { tabindex: "0", "aria-label": "Source of the kernel" });
    this.sourceTitle = make("h3", {}, "Source");
    this.ops = make("ol", { class: "ops" });
    this.users = make("p", { class: "chips" });
    this.rows = rowsChart("Rows of its submissions");
    const plan = make("section", { class: "card" }, make("h3", {}, "Launches, in order"), this.launches,
      this.sourceTitle, this.source);
    const why = make("section", { class: "card" }, make("h3", {}, "What became of each op"), this.ops);
    this.detail = make("div", { class: "detail" },
      make("section", { class: "card" }, this.title, this.state, this.words, make("h3", {}, "Sessions that ran it lately"), this.users),
      plan, why, this.rows.element);
    this.element = make("div", { class: "two" },
      make("section", { class: "card list", "aria-label": "Programs" }, this.list), this.detail);
  }

  enter(digest) {
    this.chosen = digest;
    this.kernel = undefined;
    this.load();
  }

  leave() {
    clearTimeout(this.timer);
  }

  show() {
    const { state } = this.store;
    if (!state) return;
    if (!this.chosen && state.programs.length) {
      this.chosen = state.programs[0].digest;
      this.load();
    }
    const deviceNs = new Map(state.programs.map(each => [each.digest, each.row_ns * each.rows]));
    const total = [...deviceNs.values()].reduce((sum, each) => sum + each, 0) || 1;
    const order = [...state.programs].sort((a, b) => deviceNs.get(b.digest) - deviceNs.get(a.digest));
    arrange(this.list, order.map(each => this.lineOf(each).line));
    for (const each of state.programs) {
      const { line, link, told } = this.lineOf(each);
      if (each.digest === this.chosen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      line.className = each.digest === this.chosen ? "chosen" : "";
      setText(told, `${plural(each.ops, "op")} · tier ${each.tier} · ${share(deviceNs.get(each.digest) / total)}`);
    }
  }

  lineOf(program) {
    if (!this.lines.has(program.digest)) {
      const key = make("i", { class: "key" });
      key.style.background = colorOf(program.digest);
      const link = make("a", { href: "#program/" + program.digest }, program.digest.slice(0, 12));
      const told = make("span", { class: "told" });
      this.lines.set(program.digest, { line: make("li", {}, key, link, told), link, told });
    }
    return this.lines.get(program.digest);
  }

  async load() {
    clearTimeout(this.timer);
    const digest = this.chosen;
    if (!digest) return;
    const answer = await this.ask("/v1/programs/" + encodeURIComponent(digest)).catch(() => undefined);
    if (digest !== this.chosen) return;
    if (answer?.ok) this.tell(await answer.json());
    else setText(this.title, `No program ${digest.slice(0, 12)} is known`);
    this.timer = setTimeout(() => this.element.isConnected && this.load(), AGAIN_MS);
  }

  tell({ program, compiled }) {
    setText(this.title, "Program " + program.digest.slice(0, 12));
    const figures = [
      ["operations", count(program.ops)], ["tier", String(program.tier)], ["form", program.form],
      ["state", program.state], ["rows", count(program.rows)], ["submissions", count(program.submissions)],
      ["time of a row", duration(program.row_ns / 1e9)], ["planning", duration(program.planning_ns / 1e9)],
      ["compiling", duration(program.compiling_ns / 1e9)],
      ["arena of a row", compiled ? size(compiled.arena_bytes) : "–"],
    ];
    this.state.replaceChildren(...figures.map(([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text))));
    setText(this.words, [
      program.refusal && `It has no plan: ${program.refusal}.`,
      program.why_no_graph && `No captured graph: ${program.why_no_graph}.`,
      program.why_not_persistent && `Not persistent: ${program.why_not_persistent}.`,
      !compiled && "It runs op by op until it has a plan.",
    ].filter(Boolean).join(" "));
    this.rows.show(program.rows_per_launch.buckets);
    this.showUsers();
    this.showPlan(compiled);
  }

  showUsers() {
    const users = new Map();
    for (const record of [...this.store.records.values()].flat().slice(-5000)) {
      if (digestOf(record) === this.chosen) for (const each of sessionsOf(record)) if (each.id) users.set(each.id, each.name);
    }
    const chips = [...users].map(([id, name]) => make("a", { class: "chip", href: "#company/" + id }, name));
    this.users.replaceChildren(...(chips.length ? chips : ["none in the last minutes"]));
  }

  showPlan(compiled) {
    const groups = compiled?.groups || [];
    const text = JSON.stringify(compiled);
    if (text === this.told) return;
    this.told = text;
    this.launches.replaceChildren(...groups.map((group, place) => make("li", {},
      make("button", { type: "button", "aria-pressed": "false", onclick: () => this.pick(compiled, place) },
        make("b", {}, String(place + 1)), make("code", {}, group.kernel),
        make("span", {}, `${plural(group.instances, "group")}, sizes ${group.sizes.join(" × ") || "none"}`)))));
    if (!groups.length) this.launches.replaceChildren(make("li", { class: "soft" }, "none: it has no plan"));
    this.showOps(compiled);
    this.pick(compiled, 0);
  }

  // Shows for each op the launches that compute it, or what else became of it, and why it reads others from memory.
  showOps(compiled) {
    const launchOf = (compiled?.groups || []).flatMap((group, place) => Array(group.instances).fill(place));
    const items = (compiled?.ops || []).map((op, index) => {
      const places = [...new Set(op.groups.map(group => launchOf[group]))];
      const launches = places.map(place => make("button", { type: "button", onclick: () => this.pick(compiled, place) },
        `launch ${place + 1}`));
      const reasons = compiled.unfused.filter(each => each.consumer === index && each.producer !== index).map(each =>
        make("span", { class: "told" },
          `reads ${each.producer} ${compiled.ops[each.producer].name} from memory: ${compiled.reasons[each.reason]}`));
      return make("li", {}, make("b", {}, `${index} ${op.name}`), ...(launches.length ? launches : [op.form]), ...reasons);
    });
    this.ops.replaceChildren(...(items.length ? items : [make("li", {}, "nothing is told before it has a plan")]));
  }

  // Returns for the lines of a kernel the ops that they compute in the first group of a launch, by line number.
  notesOf(compiled, group, source) {
    const values = group?.values[0] || [];
    const notes = (source?.lines || []).filter(each => values[each.value] >= 0).map(each =>
      [each.line, `${values[each.value]} ${compiled.ops[values[each.value]].name}`]);
    return new Map(notes);
  }

  // Returns how far to scroll past the text that all kernels begin with.
  topOf({ text, kernel }) {
    const lines = text.split("\n");
    const line = lines.findIndex(each => each.includes(kernel));
    return line < 0 ? 0 : (Math.max(line - 1, 0) * this.source.scrollHeight) / lines.length;
  }

  pick(compiled, place) {
    const group = compiled?.groups[place];
    [...this.launches.querySelectorAll("button")].forEach((button, each) =>
      button.setAttribute("aria-pressed", String(each === place)));
    const source = compiled?.sources.find(each => each.kernel === group?.kernel);
    setText(this.sourceTitle, source ? "Source of " + source.kernel : "Source");
    showSource(this.source, source ? source.text : "no kernel of its own", this.notesOf(compiled, group, source));
    this.source.scrollTop = source ? this.topOf(source) : 0;
  }
}
