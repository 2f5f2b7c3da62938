// Keeps the token in memory. A link may bring it in its fragment, which browsers send to nobody; it is removed at once.

let token = "";

export function takeFromLink() {
  const found = /^#token=([^&]+)(?:&(.*))?$/.exec(location.hash);
  if (!found) return;
  token = decodeURIComponent(found[1]);
  history.replaceState(null, "", location.pathname + "#" + (found[2] || "now"));
}

export function setToken(text) {
  token = text.trim();
}

export function hasToken() {
  return token !== "";
}

// Asks the server by a path; the answer is that of `fetch`.
export function ask(path, options = {}) {
  const headers = { ...(token && { Authorization: "Bearer " + token }),
    ...(options.body && { "Content-Type": "application/json" }) };
  return fetch(path, { ...options, headers, cache: "no-store", credentials: "omit", redirect: "error" });
}
