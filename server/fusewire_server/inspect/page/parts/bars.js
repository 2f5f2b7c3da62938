// Draws bars below one another, each with its name and its figures beside it.

import { arrange, make, once, setText, setWidth } from "../basics/dom.js";

// `nameOf(item)` returns the element that names a bar. Items have a `key`, a `share` of the longest bar, and a `told`.
export function bars(nameOf) {
  const element = make("ol", { class: "bars" });
  const lineOf = once((key, item) => {
    const [fill, told] = [make("i"), make("span", { class: "told" })];
    return { fill, told, line: make("li", {}, nameOf(item), make("b", {}, fill), told) };
  });

  function show(items) {
    const lines = items.map(item => lineOf(item.key, item));
    arrange(element, lines.map(each => each.line));
    items.forEach((item, place) => {
      setWidth(lines[place].fill, item.share);
      setText(lines[place].told, item.told);
    });
  }
  return { element, show };
}
