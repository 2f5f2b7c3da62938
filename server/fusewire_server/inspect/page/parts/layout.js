// Lays out a graph of ops in layers: each op lies below all ops that it reads, and lines cross little.
//
// The layers are those of longest paths, and the order in them is found by the barycentres of neighbours, in a few
// sweeps down and up, as by Sugiyama, Tagawa and Toda (1981). A line over several layers passes by a point in each.

const SWEEPS = 6;

// `reads[op]` holds the ops that an op reads, which come before it. Returns `nodes` with the layer and the place of
// each op, `layers` and `width` as their numbers, and `lines` of points [layer, place] from op to op.
export function layout(reads) {
  const layerOf = [];
  reads.forEach((from, op) => { layerOf[op] = from.length ? 1 + Math.max(...from.map(each => layerOf[each])) : 0; });
  sink(reads, layerOf);
  const layers = Array.from({ length: Math.max(0, ...layerOf) + 1 }, () => []);
  const points = layerOf.map((layer, op) => addPoint(layers, layer, op));
  const lines = reads.flatMap((from, op) => from.map(each => lineOf(layers, points, layerOf, each, op)));
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) order(layers, sweep % 2 === 0);
  const width = Math.max(1, ...layers.map(each => each.length));
  for (const layer of layers) layer.forEach((point, place) => { point.place = place + (width - layer.length) / 2; });
  return {
    nodes: points.map(({ layer, place }) => ({ layer, place })),
    layers: layers.length,
    width,
    lines: lines.map(({ from, to, path }) => ({ from, to, path: path.map(({ layer, place }) => [layer, place]) })),
  };
}

// Puts what reads no op right above the first op that reads it, so that no line runs past all others.
function sink(reads, layerOf) {
  const first = new Map();
  reads.forEach((from, op) => from.forEach(each => first.set(each, Math.min(first.get(each) ?? Infinity, layerOf[op]))));
  reads.forEach((from, op) => { if (!from.length && first.has(op)) layerOf[op] = first.get(op) - 1; });
}

function addPoint(layers, layer, op) {
  const point = { op, layer, place: layers[layer].length, above: [], below: [] };
  layers[layer].push(point);
  return point;
}

// Joins two ops by a point in each layer between theirs.
function lineOf(layers, points, layerOf, from, to) {
  const path = [points[from]];
  for (let layer = layerOf[from] + 1; layer < layerOf[to]; layer += 1) path.push(addPoint(layers, layer));
  path.push(points[to]);
  for (let each = 1; each < path.length; each += 1) {
    path[each].above.push(path[each - 1]);
    path[each - 1].below.push(path[each]);
  }
  return { from, to, path };
}

function order(layers, isDown) {
  for (const layer of isDown ? layers : [...layers].reverse()) {
    const middle = new Map(layer.map(point => [point, meanPlace(isDown ? point.above : point.below, point.place)]));
    layer.sort((a, b) => middle.get(a) - middle.get(b));
    layer.forEach((point, place) => { point.place = place; });
  }
}

function meanPlace(points, otherwise) {
  return points.length ? points.reduce((sum, each) => sum + each.place, 0) / points.length : otherwise;
}
