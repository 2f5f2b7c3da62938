// Gives each program a colour that it keeps, and reads the colours of the theme from the style sheet.

const PALETTES = {
  light: ["#1f6fd1", "#d9631e", "#12876f", "#b83280", "#7a5af5", "#8a6d00", "#2b8a3e", "#c92a2a", "#0b7285", "#5c5f66"],
  dark: ["#6ea8fe", "#ff9d5c", "#4fd1b5", "#f783c1", "#b197fc", "#e3c341", "#69db7c", "#ff8787", "#66d9e8", "#adb5bd"],
};
const places = new Map();
const scheme = matchMedia("(prefers-color-scheme: dark)");

export function colorOf(digest) {
  if (!digest) return "";
  if (!places.has(digest)) places.set(digest, places.size);
  const palette = PALETTES[isDark() ? "dark" : "light"];
  return palette[places.get(digest) % palette.length];
}

export function isDark() {
  return scheme.matches;
}

export function onTheme(call) {
  scheme.addEventListener("change", call);
}

export function theme(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
