// Draws a histogram of the rows of submissions, as bars with their figures beside them.

import { make } from "../basics/dom.js";
import { count, share } from "../basics/format.js";
import { bars } from "./bars.js";

export function rowsChart(title) {
  const list = bars(({ key }) => make("span", {}, key === 1 ? "1 row" : key === 2 ? "2 rows" : `${key / 2 + 1} to ${key}`));

  // Takes buckets of a power of two each: how many submissions had at most so many rows, and more than half of it.
  function show(buckets) {
    const total = buckets.reduce((sum, each) => sum + each.count, 0) || 1;
    list.show(buckets.map(each =>
      ({ key: each.at_most, share: each.count / total, amount: `${count(each.count)} · ${share(each.count / total)}` })));
  }
  return { element: make("section", { class: "card" }, make("h3", {}, title), list.element), show };
}
