// The view Program: what each program is, how it runs, its launches, its kernels' sources, and who uses it.

import { colorOf } from "../basics/colors.js";
import { arrange, make, once, setText, showFacts } from "../basics/dom.js";
import { count, duration, plural, share, size } from "../basics/format.js";
import { digestOf, sessionsOf } from "../live/records.js";
import { opGraph } from "../parts/graph.js";
import { rowsChart } from "../parts/rows.js";
import { showSource } from "../parts/source.js";
import { Chosen } from "./chosen.js";

const AGAIN_MS = 2000;

export class Program extends Chosen {
  constructor(store, ask) {
    super(store, ask, AGAIN_MS);
    this.lineOf = once((digest, program) => lineOf(program));
    this.list = make("ol", { class: "programs" });
    this.title = make("h2", {}, "Programs");
    this.state = make("dl", { class: "facts" });
    this.words = make("p", { class: "soft" });
    this.launches = make("ol", { class: "launches" });
    this.source = make("pre", { tabindex: "0", "aria-label": "Source of the kernel" });
    this.sourceTitle = make("h3", {}, "Source");
    this.ops = make("ol", { class: "ops" });
    this.users = make("p", { class: "chips" });
    this.alike = make("p", { class: "chips" });
    this.graph = opGraph(op => this.pickOp(op));
    this.rows = rowsChart("Rows of its submissions");
    const plan = make("section", { class: "card" }, make("h3", {}, "Launches, in order"), this.launches,
      this.sourceTitle, this.source);
    const why = make("section", { class: "card" }, make("h3", {}, "What became of each op"), this.ops);
    this.detail = make("div", { class: "detail" },
      make("section", { class: "card" }, this.title, this.state, this.words, make("h3", {}, "Sessions that ran it lately"), this.users,
        this.alike),
      this.graph.element, plan, why, this.rows.element);
    this.element = make("div", { class: "two" },
      make("section", { class: "card list", "aria-label": "Programs" }, this.list), this.detail);
  }

  path(digest) {
    return "/v1/programs/" + digest;
  }

  show() {
    const { state } = this.store;
    if (!state) return;
    this.begin(state.programs[0]?.digest);
    const deviceNs = new Map(state.programs.map(each => [each.digest, each.row_ns * each.rows]));
    const total = [...deviceNs.values()].reduce((sum, each) => sum + each, 0) || 1;
    const order = [...state.programs].sort((a, b) => deviceNs.get(b.digest) - deviceNs.get(a.digest));
    arrange(this.list, order.map(each => this.lineOf(each.digest, each).line));
    for (const each of state.programs) {
      const { line, link, amount } = this.lineOf(each.digest, each);
      if (each.digest === this.chosen) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
      line.className = each.digest === this.chosen ? "chosen" : "";
      setText(amount, `${plural(each.ops, "op")} · tier ${each.tier} · ${share(deviceNs.get(each.digest) / total)}`);
    }
  }

  tell(answer) {
    this.detail.classList.toggle("unknown", !answer);
    if (!answer) {
      setText(this.title, `No program ${this.chosen.slice(0, 12)} is known`);
      return;
    }
    const { program, compiled, alike } = answer;
    setText(this.title, "Program " + program.digest.slice(0, 12));
    showFacts(this.state, [
      ["operations", count(program.ops)], ["tier", String(program.tier)], ["form", program.form],
      ["state", program.state], ["rows", count(program.rows)], ["submissions", count(program.submissions)],
      ["time of a row", duration(program.row_ns / 1e9)], ["planning", duration(program.planning_ns / 1e9)],
      ["compiling", duration(program.compiling_ns / 1e9)],
      ["arena of a row", compiled ? size(compiled.arena_bytes) : "–"],
    ]);
    setText(this.words, [
      program.refusal && `It has no plan: ${program.refusal}.`,
      program.why_no_graph && `No captured graph: ${program.why_no_graph}.`,
      program.why_not_persistent && `Not persistent: ${program.why_not_persistent}.`,
      !compiled && "It runs op by op until it has a plan.",
    ].filter(Boolean).join(" "));
    this.rows.show(program.rows_per_launch.buckets);
    this.showUsers();
    this.alike.replaceChildren(...(alike.length ? [make("strong", {}, "The same ops for other sizes: "), ...alike.map(each =>
      make("a", { class: "chip", href: "#program/" + each.digest, title: each.difference },
        `${each.digest.slice(0, 8)}: ${each.difference}`))] : []));
    this.showPlan(program.digest, compiled);
  }

  showUsers() {
    const users = new Map();
    for (const record of [...this.store.records.values()].flat().slice(-5000)) {
      if (digestOf(record) === this.chosen) for (const each of sessionsOf(record)) if (each.id) users.set(each.id, each.name);
    }
    const chips = [...users].map(([id, name]) => make("a", { class: "chip", href: "#company/" + id }, name));
    this.users.replaceChildren(...(chips.length ? chips : ["none in the last minutes"]));
  }

  showPlan(digest, compiled) {
    const groups = compiled?.groups || [];
    const known = `${digest} ${compiled?.arena_bytes} ${groups.length}`; // a plan does not change
    if (known === this.known) return;
    this.known = known;
    this.compiled = compiled;
    const launchOf = groups.flatMap((group, place) => Array(group.instances).fill(place));
    this.placesOf = op => [...new Set(compiled.ops[op].groups.map(group => launchOf[group]))];
    this.launches.replaceChildren(...groups.map((group, place) => make("li", {},
      make("button", { type: "button", "aria-pressed": "false", onclick: () => this.pick(place) },
        make("b", {}, String(place + 1)), make("code", {}, group.kernel),
        make("span", {}, `${plural(group.instances, "group")}, sizes ${group.sizes.join(" × ") || "none"}`)))));
    if (!groups.length) this.launches.replaceChildren(make("li", { class: "soft" }, "none: it has no plan"));
    this.graph.show(compiled, this.placesOf);
    this.showOps(compiled);
    this.pick(0);
  }

  // Shows for each op the launches that compute it, or what else became of it, and why it reads others from memory.
  showOps(compiled) {
    const items = (compiled?.ops || []).map((op, index) => {
      const launches = this.placesOf(index).map(place => make("button", { type: "button",
        onclick: () => this.pickOp(index, place) }, `launch ${place + 1}`));
      const reasons = compiled.unfused.filter(each => each.consumer === index && each.producer !== index).map(each =>
        make("span", { class: "reason" },
          `reads ${each.producer} ${compiled.ops[each.producer].name} from memory: ${compiled.reasons[each.reason]}`));
      return make("li", {}, make("b", {}, `${index} ${op.name}`), ...(launches.length ? launches : [op.form]), ...reasons);
    });
    this.ops.replaceChildren(...(items.length ? items : [make("li", {}, "nothing is told before it has a plan")]));
  }

  // Returns for the lines of a kernel the ops that they compute in the first group of a launch, by line number.
  notesOf(compiled, group, source) {
    const values = group?.values[0] || [];
    const notes = (source?.lines || []).filter(each => values[each.value] >= 0).map(each =>
      [each.line, { op: values[each.value], text: `${values[each.value]} ${compiled.ops[values[each.value]].name}` }]);
    return new Map(notes);
  }

  // Returns how far to scroll past the text that all kernels begin with.
  topOf({ text, kernel }) {
    const lines = text.split("\n");
    const line = lines.findIndex(each => each.includes(kernel));
    return line < 0 ? 0 : (Math.max(line - 1, 0) * this.source.scrollHeight) / lines.length;
  }

  // Selects an op: in the graph, in the list, and in the source of a launch that computes it.
  pickOp(op, place = this.placesOf(op)[0]) {
    this.pick(place, op);
    this.graph.mark(op, this.placesOf);
    [...this.ops.children].forEach((line, index) => line.classList.toggle("chosen", index === op));
    this.ops.children[op].scrollIntoView({ block: "nearest" });
    this.source.querySelector(".note.chosen")?.scrollIntoView({ block: "nearest" });
  }

  // Shows a launch. The lines of its source that compute an op stand out.
  pick(place, op) {
    const { compiled } = this;
    const group = compiled?.groups[place];
    [...this.launches.querySelectorAll("button")].forEach((button, each) =>
      button.setAttribute("aria-pressed", String(each === place)));
    const source = compiled?.sources.find(each => each.kernel === group?.kernel);
    setText(this.sourceTitle, source ? "Source of " + source.kernel : "Source");
    showSource(this.source, source ? source.text : "no kernel of its own", this.notesOf(compiled, group, source), op);
    this.source.scrollTop = source ? this.topOf(source) : 0;
    if (op === undefined) this.graph.mark(undefined, this.placesOf);
  }
}

function lineOf({ digest }) {
  const key = make("i", { class: "key" });
  key.style.background = colorOf(digest);
  const link = make("a", { href: "#program/" + digest }, digest.slice(0, 12));
  const amount = make("span", { class: "amount" });
  return { line: make("li", {}, key, link, amount), link, amount };
}
