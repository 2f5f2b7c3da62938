// Draws bars below one another, each with its name and its figures beside it.

import { arrange, make, once, setText, setWidth } from "../basics/dom.js";

// `nameOf(item)` returns the element that names a bar. Items have a `key`, a `share` of the longest bar, and an `amount`.
export function bars(nameOf) {
  const element = make("ol", { class: "bars" });
  const lineOf = once((key, item) => {
    const [fill, amount] = [make("i"), make("span", { class: "amount" })];
    return { fill, amount, line: make("li", {}, nameOf(item), make("b", {}, fill), amount) };
  });

  function show(items) {
    const lines = items.map(item => lineOf(item.key, item));
    arrange(element, lines.map(each => each.line));
    items.forEach((item, place) => {
      setWidth(lines[place].fill, item.share);
      setText(lines[place].amount, item.amount);
    });
  }
  return { element, show };
}
