// Draws the ops of a program as a graph, with a hull around the ops of each group in the colour of its launch. Dashed
// lines are reads from memory.

import { make } from "../basics/dom.js";
import { layout } from "./layout.js";

export const MOST_NODES = 300;
const [WIDTH, HEIGHT, GAP_X, GAP_Y, EDGE, HULL] = [104, 30, 22, 36, 14, 6];
const SVG = "http://www.w3.org/2000/svg";

function svg(tag, attributes, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

// `pick(op)` is called with the op whose node is clicked or entered.
export function opGraph(pick) {
  const place = make("div", { class: "graph scroll", tabindex: "0", role: "group", "aria-label": "Graph of the ops" });
  const words = make("p", { class: "soft" });
  const element = make("section", { class: "card" }, make("h3", {}, "Ops as a graph"), words, place);
  let nodes = [];

  // `placesOf(op)` returns the launches that compute an op.
  function show(compiled, placesOf) {
    const ops = compiled?.ops || [];
    const canDraw = ops.length > 0 && ops.length <= MOST_NODES && compiled.reads.length === ops.length;
    place.hidden = !canDraw;
    words.textContent = canDraw ? "A hull is a group of ops in one kernel, its colour and number the launch. A dashed line is a read from memory."
      : ops.length ? `The program has ${ops.length} ops, and a graph of more than ${MOST_NODES} is no help: see the list.`
        : "Nothing is told before it has a plan.";
    nodes = [];
    place.replaceChildren(...(canDraw ? [draw(compiled, placesOf)] : []));
  }

  function draw(compiled, placesOf) {
    const drawn = layout(compiled.reads);
    const x = at => EDGE + at * (WIDTH + GAP_X);
    const y = layer => EDGE + layer * (HEIGHT + GAP_Y);
    const fromMemory = new Set(compiled.unfused.map(each => `${each.producer} ${each.consumer}`));
    const lines = drawn.lines.map(({ from, to, path }) => svg("path", {
      class: fromMemory.has(`${from} ${to}`) ? "memory" : "", d: curve(path, x, y) }));
    const corners = drawn.nodes.map(({ layer, place }) => [x(place), y(layer)]);
    nodes = compiled.ops.map((op, index) => node(op, index, placesOf(index), ...corners[index]));
    return svg("svg", { width: x(drawn.width) - GAP_X + EDGE, height: y(drawn.layers) - GAP_Y + EDGE, role: "presentation" },
      ...hulls(compiled, placesOf, corners, drawn.lines.map(line => ({ ...line, d: curve(line.path, x, y) }))), ...lines,
      ...nodes);
  }

  // Returns what lies behind the nodes and lines of each group: wide ones in the colour of its launch.
  function hulls(compiled, placesOf, corners, lines) {
    const parts = new Map();
    const add = (launch, part) => parts.set(launch, [...(parts.get(launch) || []), part]);
    corners.forEach(([left, top], index) => placesOf(index).slice(0, 1).forEach(launch => add(launch, svg("rect",
      { x: left - HULL, y: top - HULL, width: WIDTH + 2 * HULL, height: HEIGHT + 2 * HULL, rx: 6 + HULL }))));
    for (const { from, to, d } of lines) {
      const groups = new Set(compiled.ops[from].groups);
      if (compiled.ops[to].groups.some(each => groups.has(each))) add(placesOf(from)[0], svg("path", { d }));
    }
    return [...parts].map(([launch, of]) => svg("g", { class: `hull launch${launch % 9}` }, ...of));
  }

  function node(op, index, places, x, y) {
    const made = places.length ? `launch ${places.map(each => each + 1).join(", ")}` : op.form;
    const [name, number] = [shortened(op.name) + " ", places.length ? String(places[0] + 1) : ""];
    const element = svg("g", { class: `node launch${places.length ? places[0] % 9 : "None"}`, tabindex: "0", role: "button",
      transform: `translate(${x} ${y})`, "aria-label": `${name}${number}: op ${index}, ${made}`, "aria-pressed": "false" },
    svg("rect", { width: WIDTH, height: HEIGHT, rx: 6 }),
    svg("text", { x: 9, y: 19 }, name),
    svg("text", { x: WIDTH - 8, y: 19, class: "number" }, number),
    svg("title", {}, `${index} ${op.name}: ${made}`));
    element.addEventListener("click", () => pick(index));
    element.addEventListener("keydown", event => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      pick(index);
    });
    return element;
  }

  // Marks the node of an op, and those of the same launch.
  function mark(op, placesOf) {
    const places = new Set(op === undefined ? [] : placesOf(op));
    nodes.forEach((each, index) => {
      each.setAttribute("aria-pressed", String(index === op));
      each.classList.toggle("beside", index !== op && placesOf(index).some(launch => places.has(launch)));
    });
    nodes[op]?.scrollIntoView({ block: "nearest", inline: "nearest" });
  }
  return { element, show, mark };
}

function curve(path, x, y) {
  const middle = path.map(([layer, at]) => [x(at) + WIDTH / 2, y(layer)]);
  let text = `M ${middle[0][0]} ${middle[0][1] + HEIGHT}`;
  for (let each = 1; each < middle.length; each += 1) {
    const isLast = each === middle.length - 1;
    const [fromX, fromY] = [middle[each - 1][0], middle[each - 1][1] + HEIGHT];
    const [toX, toY] = middle[each];
    text += ` C ${fromX} ${fromY + GAP_Y / 2}, ${toX} ${toY - GAP_Y / 2}, ${toX} ${toY}`;
    if (!isLast) text += ` L ${toX} ${toY + HEIGHT}`;
  }
  return text;
}

function shortened(name) {
  return name.length > 12 ? name.slice(0, 11) + "…" : name;
}
