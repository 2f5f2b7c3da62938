// Writes figures for people: counts, rates, sizes, durations, shares.

const UNITS = [[1e9, " G"], [1e6, " M"], [1e3, " k"]];

// Returns a number with three digits, and none after the point that says nothing.
function short(value) {
  return value >= 100 ? String(Math.round(value)) : String(+value.toPrecision(3));
}

export function count(value) {
  for (const [unit, name] of UNITS) if (value >= 10 * unit) return short(value / unit) + name;
  return Math.round(value).toLocaleString("en");
}

export function rate(value) {
  return value > 0 && value < 10 ? value.toFixed(1) : count(value);
}

export function size(bytes) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let place = 0;
  while (bytes >= 1024 && place < units.length - 1) {
    bytes /= 1024;
    place += 1;
  }
  return (place && bytes < 10 ? bytes.toFixed(1) : Math.round(bytes)) + " " + units[place];
}

export function duration(seconds) {
  if (seconds <= 0) return "0";
  if (seconds < 1e-6) return Math.round(seconds * 1e9) + " ns";
  if (seconds < 1e-3) return short(seconds * 1e6) + " µs";
  if (seconds < 1) return short(seconds * 1e3) + " ms";
  if (seconds < 120) return short(seconds) + " s";
  return seconds < 7200 ? Math.round(seconds / 60) + " min" : (seconds / 3600).toFixed(1) + " h";
}

export function share(value) {
  return value > 0 && value < 0.01 ? "<1 %" : Math.round(100 * value) + " %";
}

export function plural(number, one, many = one + "s") {
  return count(number) + " " + (number === 1 ? one : many);
}
