// Reads the live stream: messages of a state and of records. It connects again when the stream ends or breaks.

import { ask } from "./token.js";
import { readRecords } from "./records.js";

const AGAIN_MS = 1000;
const MOST_AGAIN_MS = 10000;

// Calls `onMessage(state, records, isFirst)`, and `onTrouble(text, status)` when there is no stream.
export class Live {
  constructor(onMessage, onTrouble) {
    this.onMessage = onMessage;
    this.onTrouble = onTrouble;
    this.devices = new Map();
    this.pixelNs = 0;
    this.run = 0;
  }

  // Begins a stream with records for pixels of so many ns, instead of the one that there is.
  open(pixelNs) {
    this.pixelNs = pixelNs;
    this.abort?.abort();
    this.follow(++this.run);
  }

  async follow(run) {
    let waitMs = AGAIN_MS;
    while (run === this.run) {
      this.abort = new AbortController();
      try {
        const answer = await ask(`/v1/live?pixel_ns=${this.pixelNs}`, { signal: this.abort.signal });
        if (!answer.ok) {
          const problem = await answer.json().catch(() => ({}));
          if (run === this.run) this.onTrouble(problem.detail || answer.statusText, answer.status);
          if (answer.status === 401 || answer.status === 403) return;
        } else {
          waitMs = AGAIN_MS;
          this.devices = new Map();
          await this.read(answer.body.getReader(), run);
        }
      } catch (error) {
        if (run !== this.run) return;
        this.onTrouble("the server does not answer", 0);
      }
      if (run !== this.run) return;
      await new Promise(resolve => setTimeout(resolve, waitMs));
      waitMs = Math.min(2 * waitMs, MOST_AGAIN_MS);
    }
  }

  async read(reader, run) {
    let held = new Uint8Array(0);
    let isFirst = true;
    for (;;) {
      const { done, value } = await reader.read();
      if (done || run !== this.run) return;
      held = joined(held, value);
      for (;;) {
        const length = lengthOf(held);
        if (length > held.length) break;
        this.take(held.slice(0, length), isFirst);
        isFirst = false;
        held = held.slice(length);
      }
    }
  }

  take(bytes, isFirst) {
    const view = new DataView(bytes.buffer);
    const [stateBytes, records] = [view.getUint32(0, true), view.getUint32(4, true)];
    const state = JSON.parse(new TextDecoder().decode(bytes.subarray(8, 8 + stateBytes)));
    state.names.forEach(names => this.learn(names));
    const found = readRecords(new DataView(bytes.buffer, 8 + stateBytes, records), device => this.devices.get(device));
    this.onMessage(state, found, isFirst);
  }

  // Learns names. Numbers of another watch mean something else, so they get tables of their own.
  learn(given) {
    let names = this.devices.get(given.device);
    if (names === undefined || names.watch !== given.watch) {
      names = { watch: given.watch, programs: new Map(), sessions: new Map() };
      this.devices.set(given.device, names);
    }
    for (const [number, [digest, besideNs, ownNs]] of Object.entries(given.programs)) {
      names.programs.set(+number, { digest, besideNs, ownNs });
    }
    for (const [bit, [id, name, tenant]] of Object.entries(given.sessions)) {
      names.sessions.set(+bit, { bit: +bit, id, name: name || id, tenant });
    }
  }
}

function lengthOf(bytes) {
  if (bytes.length < 8) return Infinity;
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  return 8 + view.getUint32(0, true) + view.getUint32(4, true);
}

function joined(first, second) {
  if (!first.length) return second;
  const all = new Uint8Array(first.length + second.length);
  all.set(first);
  all.set(second, first.length);
  return all;
}
