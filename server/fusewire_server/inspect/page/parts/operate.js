// Operates the server. Each act first says in a dialog what will happen, and then shows what the server answered.

import { make, setText } from "../basics/dom.js";
import { ask, hasToken } from "../live/token.js";

// Returns buttons for acts: each has a `name`, and `of()` returns its `title`, `words`, `method` and `path`.
export function actButton(name, of, isGrave = false) {
  return make("button", { type: "button", class: isGrave ? "grave" : undefined, onclick: () => confirm(of()) }, name);
}

// Tells whether this page can operate: a server takes acts of a page only with a token that allows them.
export function mayOperate(state) {
  return Boolean(state?.may_operate && hasToken());
}

function confirm({ title, words, method, path, content }) {
  const answer = make("p", { role: "status" });
  const act = make("button", { type: "button", class: "grave" }, title);
  const close = make("button", { type: "button", onclick: () => dialog.close() }, "Cancel");
  const heading = make("h2", { id: "act-title" }, title + "?");
  const dialog = make("dialog", { "aria-labelledby": "act-title", "aria-describedby": "act-words" },
    heading, make("p", { id: "act-words" }, words), answer, make("p", { class: "buttons" }, close, act));
  act.addEventListener("click", async () => {
    act.disabled = true;
    setText(answer, await answerTo(method, path, content));
    act.remove();
    setText(close, "Close");
    close.focus();
  });
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  close.focus();
}

// Asks the server to act, and returns its answer in words.
async function answerTo(method, path, content) {
  const options = { method, ...(content && { body: JSON.stringify(content) }) };
  const answer = await ask(path, options).catch(() => undefined);
  if (!answer) return "The server does not answer.";
  const reply = await answer.json().catch(() => ({}));
  if (!answer.ok) return `Refused: ${reply.detail || answer.statusText}`;
  return "Done: " + Object.entries(reply).map(([name, value]) => `${name.replace(/^is_/, "").replaceAll("_", " ")}: ${value}`).join(", ");
}

// Returns a card with the acts on the server as a whole.
export function operateCard() {
  const hold = actButton("Hold the device", () => ({ title: "Hold the device", method: "POST", path: "/v1/device/hold",
    words: "No submission begins until somebody releases the device, and the server is not ready for new sessions. " +
      "What runs goes on; sessions stay open, and wait." }));
  const release = actButton("Release the device", () => ({ title: "Release the device", method: "POST",
    path: "/v1/device/release", words: "The device takes submissions again, first those that wait." }));
  let [isDraining, hasAsked] = [false, false];
  const drain = actButton("Drain the server", () => ({ title: isDraining ? "End the server now" : "Drain the server",
    method: "POST", path: "/v1/drain",
    words: isDraining ? "It drains already. Asked again, it ends at once, and all sessions are lost."
      : "The server takes no more sessions, lets those that there are finish their work, and ends. " +
        "Nothing takes this back." }), true);
  const level = make("select", { id: "log-level" }, ...["debug", "info", "warning", "error"].map(
    each => make("option", {}, each)));
  const log = actButton("Set", () => ({ title: "Set the level of the log", method: "PUT", path: "/v1/log",
    content: { level: level.value }, words: `The server logs from the level ${level.value} on, until it ends.` }));
  const acts = make("p", { class: "acts" }, hold, release, drain,
    make("span", {}, make("label", { for: "log-level" }, "Log from "), level, " ", log));
  const without = make("p", { class: "soft" }, "A page operates a server by a token of the scope admin only: ",
    make("code", {}, "fusewire ui"), " opens this page with yours.");
  const element = make("section", { class: "card" }, make("h3", {}, "Operate"), acts, without);

  function show(state) {
    element.hidden = !state.may_operate;
    acts.hidden = !mayOperate(state);
    without.hidden = !acts.hidden;
    hold.hidden = state.stats.is_held;
    release.hidden = !state.stats.is_held;
    isDraining = state.stats.is_draining;
    if (!acts.hidden && !hasAsked) {
      hasAsked = true;
      ask("/v1/log").then(answer => answer.json()).then(reply => { level.value = reply.level; }, () => { hasAsked = false; });
    }
    setText(drain, isDraining ? "End the server now" : "Drain the server");
  }
  return { element, show };
}

// Returns a button that ends a session. `chosen` returns the session's view, or undefined.
export function endButton(chosen) {
  return actButton("End this session", () => {
    const session = chosen();
    return { title: "End this session", method: "DELETE", path: "/v1/sessions/" + encodeURIComponent(session.session),
      words: `The calls of the client of ${session.name || session.session} (tenant ${session.tenant}) raise an error ` +
        "that says so, and its values are freed. Nothing takes this back." };
  }, true);
}
