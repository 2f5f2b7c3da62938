// Shows the source of a kernel with its keywords, numbers and comments told apart.

import { make } from "./dom.js";

const WORDS = /(\/\/[^\n]*|\/\*[\s\S]*?\*\/)|(\b(?:void|int|float|double|const|for|if|else|while|return|static|inline|extern|struct|unsigned|long|char|bool|__global__|__device__|__shared__|restrict|__restrict__|int64_t|int32_t|uint32_t|uint64_t|size_t)\b)|(\b(?:0x[0-9a-f]+|\d[\d.]*(?:e[+-]?\d+)?f?)\b)/gi;
const CLASSES = [undefined, "comment", "word", "number"];

export function showSource(element, text) {
  if (element.dataset.shown === String(text.length) && element.textContent === text) return;
  const parts = [];
  let last = 0;
  for (const found of text.matchAll(WORDS)) {
    parts.push(text.slice(last, found.index));
    const kind = CLASSES[[1, 2, 3].find(each => found[each] !== undefined)];
    parts.push(make("span", { class: kind }, found[0]));
    last = found.index + found[0].length;
  }
  element.replaceChildren(...parts, text.slice(last));
  element.dataset.shown = String(text.length);
}
