// Draws small charts of the last minutes by uPlot.

import { theme } from "../basics/colors.js";
import { make } from "../basics/dom.js";

const HEIGHT = 112;

// Returns a card with a chart of one figure. `format` writes its values; `most` fixes the top of the scale.
export function chart(title, format, colorName, most) {
  const value = make("output", { class: "figure" });
  const place = make("div", { class: "plot" });
  const card = make("section", { class: "card chart" }, make("h3", {}, title), value, place);
  let plot;
  function draw(data) {
    if (!place.clientWidth) return;
    if (!plot) plot = new uPlot(options(place, format, colorName, most), data, place);
    else plot.setData(data);
  }
  function fit() {
    if (plot) plot.setSize({ width: place.clientWidth, height: HEIGHT });
  }
  function forget() {
    plot?.destroy();
    plot = undefined;
  }
  return { card, value, draw, fit, forget };
}

function options(place, format, colorName, most) {
  const axis = { stroke: theme("--soft"), font: "11px system-ui", ticks: { show: false }, gap: 4 };
  return {
    width: place.clientWidth,
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    padding: [6, 24, 0, 0],
    scales: { x: { time: true }, y: { range: (_, __, high) => [0, most || Math.max(high * 1.15, 1)] } },
    axes: [
      { ...axis, size: 20, space: 90, grid: { show: false }, values: (_, splits) => splits.map(clock) },
      { ...axis, size: 44, space: 34, grid: { stroke: theme("--line"), width: 1 },
        values: (_, splits) => splits.map(format) },
    ],
    series: [{}, { stroke: theme(colorName), width: 1.75, fill: theme(colorName) + "22", points: { show: false } }],
  };
}

function clock(seconds) {
  return new Date(1000 * seconds).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}
