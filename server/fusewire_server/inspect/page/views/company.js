// The view Company: whose rows share a session's launches, what that saves it, and how long it waits for others.

import { make, setText } from "../basics/dom.js";
import { count, duration, plural, share } from "../basics/format.js";
import { bars } from "../parts/bars.js";
import { endButton, mayOperate } from "../parts/operate.js";
import { Chosen } from "./chosen.js";

const AGAIN_MS = 1000;

export class Company extends Chosen {
  constructor(store, ask) {
    super(store, ask, AGAIN_MS);
    this.choice = make("select", { id: "company-session", onchange: () => { location.hash = "#company/" + this.choice.value; } });
    this.title = make("h2", {}, "Company");
    this.words = make("p", { class: "words", "aria-live": "off" });
    this.tiles = ["saved", "longer", "waited"].map(kind => {
      const [value, note] = [make("output", { class: "figure" }), make("p", { class: "soft" })];
      return { kind, value, note, card: make("section", { class: "card tile" }, make("h3", {}, TITLES[kind]), value, note) };
    });
    this.list = bars(each => make("a", { href: "#company/" + each.session }, each.name || each.session));
    this.end = endButton(() => this.store.state.sessions.find(each => each.session === this.chosen));
    this.more = make("p", { class: "soft" });
    this.element = make("div", { class: "company" },
      make("section", { class: "card" },
        make("div", { class: "title" }, this.title, make("label", { for: "company-session" }, "Session "), this.choice, this.end),
        this.words),
      make("div", { class: "charts" }, ...this.tiles.map(each => each.card)),
      make("section", { class: "card" }, make("h3", {}, "Sessions whose rows ran in the same submissions"), this.list.element, this.more));
  }

  path(session) {
    return `/v1/sessions/${session}/company`;
  }

  show() {
    const { state } = this.store;
    if (!state) return;
    const sessions = state.sessions.map(each => [each.session, each.name || each.session]);
    sessions.sort((a, b) => a[1].localeCompare(b[1], "en", { numeric: true }));
    this.begin(state.sessions[0]?.session);
    this.end.hidden = !mayOperate(state) || !state.sessions.some(each => each.session === this.chosen);
    const known = this.chosen + sessions.join();
    if (known === this.known) return;
    this.known = known;
    this.choice.replaceChildren(...sessions.map(([id, name]) =>
      make("option", { value: id, selected: id === this.chosen }, name)));
  }

  tell(company) {
    if (!company) {
      setText(this.words, "No launch of this session was seen since the page watches.");
      return;
    }
    const mean = company.submissions ? company.rows / company.submissions : 0;
    const shared = company.submissions ? company.shared_submissions / company.submissions : 0;
    setText(this.words, `In the last ${duration(company.seconds)}, ${count(company.shared_submissions)} of its ` +
      `${plural(company.submissions, "submission")} (${share(shared)}) carried rows of other sessions too: ` +
      `${mean.toFixed(1)} rows on average.`);
    const alone = company.device_ns - company.longer_ns + company.saved_ns;
    const figures = {
      saved: [company.saved_ns, company.shared_submissions ? `of the device's time, ${share(company.saved_ns / Math.max(alone, 1))}` +
        ` of what it would take alone; the estimate is off by ${share(company.error)}` : "no other session shared its submissions"],
      longer: [company.longer_ns, "because rows of others ran beside its own"],
      waited: [company.waited_ns, "while the device worked for others alone"],
    };
    for (const { kind, value, note } of this.tiles) {
      setText(value, duration(figures[kind][0] / 1e9));
      setText(note, figures[kind][1]);
    }
    const most = Math.max(...company.companions.map(each => each.submissions), 1);
    this.list.show(company.companions.map(each => ({ ...each, key: each.session, share: each.submissions / most,
      amount: `${count(each.submissions)} · ${share(each.submissions / company.submissions)}` })));
    setText(this.more, company.companions.length ? "" : "none");
    if (company.other_companions) setText(this.more, `and ${plural(company.other_companions, "session")} of other tenants`);
  }
}

const TITLES = { saved: "Sharing saved it", longer: "Its rows lasted longer by", waited: "It waited for others" };
