// Shows who holds the memory of the device: a bar of what is in use by owner, and how much of the device that is.

import { arrange, make, once, setText, setWidth } from "../basics/dom.js";
import { plural, size } from "../basics/format.js";

const MOST_OWNERS = 9;

export function memoryMap() {
  const [bar, list, whole] = [make("div", { class: "stack" }), make("ol", { class: "legend" }), make("p", {})];
  const element = make("section", { class: "card memory" }, make("h3", {}, "Memory by owner"), bar, list, whole);
  const made = once(() => {
    const [piece, name, amount] = [make("i"), make("span"), make("span", { class: "amount" })];
    return { piece, name, amount, line: make("li", {}, make("i", { class: "key" }), name, amount) };
  });

  function partOf(key, place) {
    const part = made(key);
    part.piece.className = part.line.firstElementChild.className = "key owner" + place;
    return part;
  }

  function show(state) {
    const owners = ownersOf(state);
    const total = owners.reduce((sum, each) => sum + each.bytes, 0);
    const shown = owners.map((each, place) => ({ ...each, ...partOf(each.key, each.place ?? place) }));
    arrange(bar, shown.map(each => each.piece));
    arrange(list, shown.map(each => each.line));
    for (const each of shown) {
      setWidth(each.piece, total ? each.bytes / total : 0);
      setText(each.name, each.text);
      setText(each.amount, size(each.bytes));
    }
    const { memory, backend } = state.stats;
    setText(whole, `${size(memory.live_bytes + memory.pool_bytes)} of the device's ${size(backend.memory_bytes)};` +
      ` at most ${size(memory.peak_bytes)} of values since the start`);
  }
  return { element, show };
}

function ownersOf(state) {
  const sessions = state.sessions.filter(each => each.live_bytes > 0).sort((a, b) => b.live_bytes - a.live_bytes);
  const owners = sessions.slice(0, MOST_OWNERS).map(
    each => ({ key: each.session, text: each.name || each.session, bytes: each.live_bytes }));
  const rest = sessions.slice(MOST_OWNERS);
  const restBytes = rest.reduce((sum, each) => sum + each.live_bytes, 0);
  if (rest.length) {
    owners.push({ key: "(rest)", text: plural(rest.length, "more session"), bytes: restBytes, place: "Rest" });
  }
  const pool = state.stats.memory.pool_bytes;
  return [...owners, { key: "(pool)", text: "kept free", bytes: pool, place: "Free" }];
}
