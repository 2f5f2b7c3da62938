// Keeps what the stream told: the last states, from which rates follow, and the records of the last minutes.

const MOST_STATES = 600;
const MOST_RECORDS = 100000;
const RATE_OVER_NS = 2.4e9;

export class Store {
  constructor() {
    this.states = [];
    this.series = { at: [], busy: [], ops: [], rows: [] };
    this.records = new Map(); // of each device, in the order of their beginnings
    this.offsetMs = Infinity; // the server's clock ahead of the page's is at most this
  }

  get state() {
    return this.states[this.states.length - 1];
  }

  // Returns the server's time now, in ns, as far as the page can know it.
  nowNs() {
    return (performance.now() - this.offsetMs) * 1e6;
  }

  add(state, records, isFirst) {
    const before = this.state;
    if (before && (before.stats.started_at !== state.stats.started_at || before.taken_at_ns > state.taken_at_ns)) {
      this.forget();
    }
    this.offsetMs = Math.min(this.offsetMs, performance.now() - state.taken_at_ns / 1e6);
    this.states.push(state);
    if (this.states.length > 8) this.states.shift();
    if (isFirst) this.records.clear();
    for (const record of records) this.keep(record);
    for (const [device, kept] of this.records) {
      if (kept.length > MOST_RECORDS) this.records.set(device, kept.slice(-MOST_RECORDS / 2));
    }
    this.measure();
  }

  forget() {
    this.states = [];
    this.records.clear();
    this.offsetMs = Infinity;
  }

  keep(record) {
    let kept = this.records.get(record.device);
    if (!kept) this.records.set(record.device, (kept = []));
    let place = kept.length;
    while (place && kept[place - 1].beganNs > record.beganNs) place -= 1;
    kept.splice(place, 0, record);
  }

  // Returns the state that rates are measured from: the newest one that is old enough.
  get earlier() {
    const least = this.state.taken_at_ns - RATE_OVER_NS;
    const old = this.states.filter(each => each.taken_at_ns <= least);
    return old[old.length - 1] || this.states[0];
  }

  // Returns how much a figure grows in a second. `read` takes it from a state.
  perSecond(read) {
    const seconds = (this.state.taken_at_ns - this.earlier.taken_at_ns) / 1e9;
    return seconds > 0 ? Math.max(read(this.state) - read(this.earlier), 0) / seconds : 0;
  }

  measure() {
    if (this.states.length < 2) return;
    const { at, busy, ops, rows } = this.series;
    const submissions = this.perSecond(state => state.stats.totals.submissions);
    // When the server took it, by the page's clock: a page that was busy takes several at once.
    at.push((performance.timeOrigin + this.offsetMs + this.state.taken_at_ns / 1e6) / 1000);
    busy.push(100 * this.busy());
    ops.push(this.perSecond(state => state.stats.totals.ops));
    rows.push(submissions ? this.perSecond(state => state.stats.totals.rows) / submissions : null);
    if (at.length > MOST_STATES) [at, busy, ops, rows].forEach(each => each.shift());
  }

  // Returns the share of time in which the devices worked.
  busy() {
    const devices = Math.max(this.state.stats.devices.length, 1);
    return Math.min(this.perSecond(state => state.stats.phases.device.total_ns) / 1e9 / devices, 1);
  }
}
