// Draws a histogram of the rows of submissions, as bars with their figures beside them.

import { arrange, make, setText, setWidth } from "./dom.js";
import { count, share } from "./format.js";

export function rowsChart(title) {
  const list = make("ol", { class: "bars" });
  const element = make("section", { class: "card" }, make("h3", {}, title), list);
  const lines = new Map();

  function lineOf(most) {
    if (!lines.has(most)) {
      const [fill, told] = [make("i"), make("span", { class: "told" })];
      const name = most === 1 ? "1 row" : most === 2 ? "2 rows" : `${most / 2 + 1} to ${most}`;
      lines.set(most, { fill, told, line: make("li", {}, make("span", {}, name), make("b", {}, fill), told) });
    }
    return lines.get(most);
  }

  // Takes buckets of a power of two each: how many submissions had at most so many rows, and more than half of it.
  function show(buckets) {
    const total = buckets.reduce((sum, each) => sum + each.count, 0);
    arrange(list, buckets.map(each => lineOf(each.at_most).line));
    for (const each of buckets) {
      const { fill, told } = lineOf(each.at_most);
      setWidth(fill, total ? each.count / total : 0);
      setText(told, `${count(each.count)} · ${share(total ? each.count / total : 0)}`);
    }
    if (!buckets.length) arrange(list, []);
  }
  return { element, show };
}
