// The view Company: whose rows share a session's launches, what that saves it, and how long it waits for others.

import { arrange, make, setText, setWidth } from "./dom.js";
import { count, duration, plural, share } from "./format.js";

const AGAIN_MS = 1000;

export class Company {
  constructor(store, ask) {
    this.store = store;
    this.ask = ask;
    this.lines = new Map();
    this.choice = make("select", { id: "company-session", onchange: () => { location.hash = "#company/" + this.choice.value; } });
    this.title = make("h2", {}, "Company");
    this.words = make("p", { class: "words", "aria-live": "off" });
    this.tiles = ["saved", "longer", "waited"].map(kind => {
      const [value, told] = [make("output", { class: "figure" }), make("p", { class: "soft" })];
      return { kind, value, told, card: make("section", { class: "card tile" }, make("h3", {}, TITLES[kind]), value, told) };
    });
    this.list = make("ol", { class: "bars" });
    this.more = make("p", { class: "soft" });
    this.element = make("div", { class: "company" },
      make("section", { class: "card" },
        make("div", { class: "title" }, this.title, make("label", { for: "company-session" }, "Session "), this.choice), this.words),
      make("div", { class: "charts" }, ...this.tiles.map(each => each.card)),
      make("section", { class: "card" }, make("h3", {}, "Sessions whose rows ran in the same submissions"), this.list, this.more));
  }

  enter(session) {
    this.chosen = session;
    this.load();
  }

  leave() {
    clearTimeout(this.timer);
  }

  show() {
    const { state } = this.store;
    if (!state) return;
    const sessions = state.sessions.map(each => [each.session, each.name || each.session]);
    sessions.sort((a, b) => a[1].localeCompare(b[1], "en", { numeric: true }));
    if (!this.chosen && state.sessions.length) {
      this.chosen = state.sessions[0].session;
      this.load();
    }
    const known = this.chosen + sessions.join();
    if (known === this.known) return;
    this.known = known;
    this.choice.replaceChildren(...sessions.map(([id, name]) =>
      make("option", { value: id, selected: id === this.chosen }, name)));
  }

  async load() {
    clearTimeout(this.timer);
    const session = this.chosen;
    if (session) {
      const answer = await this.ask(`/v1/sessions/${encodeURIComponent(session)}/company`).catch(() => undefined);
      if (session !== this.chosen) return;
      if (answer?.ok) this.tell(await answer.json());
      else setText(this.words, "No launch of this session was seen since the page watches.");
    }
    this.timer = setTimeout(() => this.element.isConnected && this.load(), AGAIN_MS);
  }

  tell(company) {
    const mean = company.submissions ? company.rows / company.submissions : 0;
    const shared = company.submissions ? company.shared_submissions / company.submissions : 0;
    setText(this.words, `In the last ${duration(company.seconds)}, ${count(company.shared_submissions)} of its ` +
      `${plural(company.submissions, "submission")} (${share(shared)}) carried rows of other sessions too: ` +
      `${mean.toFixed(1)} rows on average.`);
    const alone = company.device_ns - company.longer_ns + company.saved_ns;
    const figures = {
      saved: [company.saved_ns, `of the device's time, ${share(company.saved_ns / Math.max(alone, 1))} of what it would take alone;` +
        ` the estimate is off by ${share(company.error)}`],
      longer: [company.longer_ns, "because rows of others ran beside its own"],
      waited: [company.waited_ns, "while the device worked for others alone"],
    };
    for (const { kind, value, told } of this.tiles) {
      setText(value, duration(figures[kind][0] / 1e9));
      setText(told, figures[kind][1]);
    }
    const most = Math.max(...company.companions.map(each => each.submissions), 1);
    arrange(this.list, company.companions.map(each => this.lineOf(each).line));
    for (const each of company.companions) {
      const { fill, told } = this.lineOf(each);
      setWidth(fill, each.submissions / most);
      setText(told, `${count(each.submissions)} · ${share(each.submissions / company.submissions)}`);
    }
    setText(this.more, company.companions.length ? "" : "none");
    if (company.other_companions) setText(this.more, `and ${plural(company.other_companions, "session")} of other tenants`);
  }

  lineOf(companion) {
    if (!this.lines.has(companion.session)) {
      const [fill, told] = [make("i"), make("span", { class: "told" })];
      const link = make("a", { href: "#company/" + companion.session }, companion.name || companion.session);
      this.lines.set(companion.session, { fill, told, line: make("li", {}, link, make("b", {}, fill), told) });
    }
    return this.lines.get(companion.session);
  }
}

const TITLES = { saved: "Sharing saved it", longer: "Its rows lasted longer by", waited: "It waited for others" };
