// Starts the page: takes the token, follows the live stream, and shows the view that the address names.

import { Company } from "./views/company.js";
import { setText } from "./basics/dom.js";
import { Live } from "./live/live.js";
import { Now } from "./views/now.js";
import { Program } from "./views/program.js";
import { Store } from "./live/store.js";
import { Stream } from "./views/stream.js";
import { ask, setToken, takeFromLink } from "./live/token.js";

const COARSE_NS = 2 ** 26; // pixels of records while nobody looks at the stream
const get = id => document.getElementById(id);

takeFromLink();
const store = new Store();
const live = new Live(take, tell);
const views = {
  now: new Now(store),
  stream: new Stream(store, pixelNs => live.open(pixelNs)),
  program: new Program(store, ask),
  company: new Company(store, ask),
};
let shown;

function take(state, records, isFirst) {
  const began = performance.now();
  store.add(state, records, isFirst);
  get("ask").hidden = true;
  get("view").hidden = false;
  const { stats } = state;
  setText(get("device"), `${stats.backend.name} · ${stats.backend.device}`);
  setState(stats.is_draining ? "draining" : stats.is_held ? "held" : stats.is_ready ? "live" : "unready");
  shown?.show();
  get("view").dataset.redrawMs = (performance.now() - began).toFixed(2);
}

function tell(text, status) {
  setState(status === 503 ? "busy" : "offline", text);
  if (status !== 401 && status !== 403) return;
  get("view").hidden = true;
  get("ask").hidden = false;
  setText(get("refused"), text);
  get("token").focus();
}

function setState(word, text = "") {
  const state = get("state");
  state.className = word;
  setText(state, text ? `${word}: ${text}` : word);
}

function go() {
  const [name, argument = ""] = location.hash.slice(1).split("/");
  const view = views[name] || views.now;
  document.querySelectorAll("nav a").forEach(link => {
    if (views[link.dataset.view] === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  });
  if (view !== shown) {
    shown?.leave?.();
    shown = view;
    get("view").replaceChildren(view.element);
    const pixelNs = view.pixelNs ?? COARSE_NS;
    if (pixelNs !== live.pixelNs) live.open(pixelNs);
  }
  view.enter?.(decodeURIComponent(argument));
  view.show();
}

get("ask").addEventListener("submit", event => {
  event.preventDefault();
  setToken(get("token").value);
  get("token").value = "";
  live.open(live.pixelNs);
});
get("skip").addEventListener("click", event => {
  event.preventDefault();
  get("view").focus();
});
addEventListener("hashchange", go);
go();
