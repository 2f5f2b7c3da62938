// Makes and changes elements. Text is always set as text, so that no name of a client becomes markup.

export function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== undefined && value !== false) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter(child => child !== undefined && child !== null));
  return element;
}

// Sets the text of an element if it is another, so that nothing is drawn anew that has not changed.
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

export function setWidth(element, share) {
  element.style.width = (100 * Math.min(Math.max(share, 0), 1)).toFixed(2) + "%";
}

// Puts children into this order and drops all others, and moves only what is not in its place.
export function arrange(parent, children) {
  children.forEach((child, place) => {
    if (parent.children[place] !== child) parent.insertBefore(child, parent.children[place] || null);
  });
  while (parent.children.length > children.length) parent.lastElementChild.remove();
}

const MOST_KEPT = 5000; // so that a page that is open for days does not grow with sessions that came and went

// Returns a function that makes what belongs to a key once, and gives it again each time after.
export function once(makeOf) {
  const made = new Map();
  return (key, ...given) => {
    if (!made.has(key) && made.size >= MOST_KEPT) made.clear();
    if (!made.has(key)) made.set(key, makeOf(key, ...given));
    return made.get(key);
  };
}

// Shows figures, each a name and a text, in a list of definitions.
export function showFacts(list, figures) {
  const names = figures.map(([name]) => name).join();
  if (list.dataset.names !== names) {
    list.dataset.names = names;
    list.replaceChildren(...figures.map(([name]) => make("div", {}, make("dt", {}, name), make("dd"))));
  }
  figures.forEach(([, text], place) => setText(list.children[place].lastElementChild, text));
}
