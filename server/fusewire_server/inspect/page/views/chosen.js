// A view of one thing that the address names: it asks the server about it again and again while it is shown.

export class Chosen {
  // A subclass has `path(chosen)`, and `tell(answer)`, which gets undefined if the server knows no such thing.
  constructor(store, ask, againMs) {
    Object.assign(this, { store, ask, againMs });
  }

  enter(chosen) {
    this.chosen = chosen;
    this.load();
  }

  leave() {
    clearTimeout(this.timer);
  }

  // Chooses something while nothing is chosen.
  begin(first) {
    if (!this.chosen && first) this.enter(first);
  }

  async load() {
    clearTimeout(this.timer);
    const { chosen } = this;
    if (!chosen) return;
    const answer = await this.ask(this.path(encodeURIComponent(chosen))).catch(() => undefined);
    const body = answer?.ok ? await answer.json().catch(() => undefined) : undefined;
    if (chosen !== this.chosen) return;
    if (answer) this.tell(body);
    this.timer = setTimeout(() => this.element.isConnected && this.load(), this.againMs);
  }
}
