// Shows the source of a kernel with its keywords, numbers and comments told apart, and notes beside its lines.

import { make } from "../basics/dom.js";

const WORDS = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(\b(?:void|int|float|double|const|for|if|else|while|return|static|inline|extern|struct|unsigned|long|char|bool|__global__|__device__|__shared__|restrict|__restrict__|int64_t|int32_t|uint32_t|uint64_t|size_t)\b)|(\b(?:0x[0-9a-f]+|\d[\d.]*(?:e[+-]?\d+)?f?)\b)/gi;
const CLASSES = [undefined, "comment", "word", "number"];

// `notes` holds a text and an op by the number of the line, from 1 on. Those of the op `chosen` stand out.
export function showSource(element, text, notes = new Map(), chosen = undefined) {
  const shown = text + JSON.stringify([...notes, chosen]);
  if (element.shown === shown) return;
  element.shown = shown;
  const ends = endsOf(text, notes);
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(WORDS)) {
    pushText(parts, text, last, found.index, ends, chosen);
    const kind = CLASSES[[1, 2, 3].find(each => found[each] !== undefined)];
    parts.push(make("span", { class: kind }, found[0]));
    last = found.index + found[0].length;
  }
  pushText(parts, text, last, text.length, ends, chosen);
  element.replaceChildren(...parts);
}

// Returns each note with the place where its line ends, in order.
function endsOf(text, notes) {
  let line = 0;
  const ends = [];
  for (let end = text.indexOf("\n"); end >= 0; end = text.indexOf("\n", end + 1)) {
    line += 1;
    if (notes.has(line)) ends.push([end, notes.get(line)]);
  }
  return ends;
}

// Adds the text up to `end`, and behind each line that ends in it the line's note.
function pushText(parts, text, first, end, ends, chosen) {
  while (ends.length && ends[0][0] < end) {
    const [place, note] = ends.shift();
    parts.push(text.slice(first, place), make("span", { class: note.op === chosen ? "note chosen" : "note" }, "  ◂ " + note.text));
    first = Math.max(place, first);
  }
  parts.push(text.slice(first, end));
}
