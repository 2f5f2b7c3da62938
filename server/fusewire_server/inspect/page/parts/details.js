// Tells one block of the stream: its program, who is in it, its times by phase, and why it ended there.

import { make } from "../basics/dom.js";
import { count, duration, plural, size } from "../basics/format.js";
import { colorOf } from "../basics/colors.js";
import { REASONS, digestOf, sessionsOf } from "../live/records.js";

const FORMS = {
  ops: "op by op", launches: "the launches of its plan", graphs: "a captured graph", persistent: "a persistent kernel",
};

export function details(record, state) {
  const digest = digestOf(record);
  const program = state.programs.find(each => each.digest === digest);
  const title = digest ? make("a", { href: "#program/" + digest }, digest.slice(0, 12)) : "a program of others";
  const key = make("i", { class: "key" });
  key.style.background = colorOf(digest) || "var(--faint)";
  const head = record.count > 1 ? `${count(record.count)} submissions of ` : `Submission ${record.number} of `;
  return [
    make("h3", {}, key, head, title),
    make("dl", { class: "facts" }, ...facts(record, program).map(
      ([name, text]) => make("div", {}, make("dt", {}, name), make("dd", {}, text)))),
    phases(record),
    make("p", {}, make("strong", {}, "Why it ended there: "), digest ? REASONS[record.reason] || "unknown" : "not told"),
    make("p", { class: "chips" }, make("strong", {}, "Sessions: "), ...chips(record)),
  ];
}

function facts(record, program) {
  const perRow = record.count > 1 ? "rows, mean" : "rows";
  return [
    [perRow, count(record.rows)],
    ["iterations", count(record.iterations)],
    ["operations", program ? count(program.ops * record.iterations) : "–"],
    ["tier", record.tier ? `${program?.tier || 1}: by a plan` : "0: op by op"],
    ["form", (record.tier && program && FORMS[program.form]) || FORMS.ops],
    ["results", size(record.resultBytes)],
    ["failed rows", record.failed ? count(record.failed) : "none"],
  ];
}

// A bar of the times of the submission, or of the worst of several.
function phases(record) {
  const deviceNs = record.deviceNs / record.count;
  const parts = [
    ["waited in the queue", record.queueNs, "queue"],
    ["ordered, launched, reported", Math.max(record.orderNs - deviceNs, 0), "order"],
    ["on the device", deviceNs, "device"],
  ];
  const total = parts.reduce((sum, [, ns]) => sum + ns, 0) || 1;
  const pieces = parts.map(([, ns, kind]) => {
    const piece = make("i", { class: kind });
    piece.style.width = (100 * ns) / total + "%";
    return piece;
  });
  const lines = parts.map(([name, ns, kind]) => make("li", {}, make("i", { class: "key " + kind }),
    make("span", {}, name), make("span", { class: "amount" }, duration(ns / 1e9))));
  return make("div", {}, make("div", { class: "stack" }, ...pieces), make("ol", { class: "legend" }, ...lines));
}

function chips(record) {
  const sessions = sessionsOf(record);
  if (!sessions.length) return [plural(record.rows, "session") + " of others"];
  const hidden = record.count > 1 ? 0 : record.rows - sessions.length;
  const shown = sessions.map(each =>
    each.id ? make("a", { class: "chip", href: "#company/" + each.id }, each.name) : make("span", { class: "chip" }, each.name));
  return hidden > 0 ? [...shown, make("span", { class: "chip" }, `${hidden} of others`)] : shown;
}
