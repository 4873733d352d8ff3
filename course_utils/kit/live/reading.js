// A text as a model reads it, token by token or all at once: for each token the logits of the next, and its row in
// every map. What has been read stays, so no token is read twice.
globalThis.live_reading = (() => {
  "use strict";

  class Reading {
    // begin: gives a state of the model in which nothing has been read.
    constructor(model, begin = () => model.start()) {
      Object.assign(this, { model, begin });
      this.restart();
    }

    restart() {
      Object.assign(this, { ids: [], logits: [], rows: {}, state: this.begin(), atOnce: false });
    }

    // Reads more ids, as a model does, and gives the logits after each of them.
    step(fresh) {
      const before = { ...this.model.maps };
      const logits = this.model.step(fresh, this.state);
      for (const [name, heads] of Object.entries(this.model.maps)) {
        if (heads === before[name]) continue; // an attention of the encoder
        this.rows[name] ??= heads.map(() => []);
        heads.forEach((rows, head) => this.rows[name][head].push(...rows));
      }
      this.atOnce = !this.ids.length;
      this.ids.push(...fresh);
      this.logits.push(...logits);
      return logits;
    }

    // Reads ids; those at the beginning that it has read already are kept.
    read(ids) {
      const other = this.ids.findIndex((id, i) => id !== ids[i]);
      if (other >= 0) this.back(other);
      if (this.ids.length < ids.length) this.step(ids.slice(this.ids.length));
    }

    // Back to where it had read so many tokens; a model that cannot forget begins anew.
    back(length) {
      if (!length || !this.model.forget) {
        this.restart();
        return;
      }
      this.model.forget(this.state, length);
      const everyRow = Object.values(this.rows).flat();
      for (const each of [this.ids, this.logits, ...everyRow]) each.length = length;
      this.atOnce = false;
    }

    // Reads all once more in one step: then the model has the inside of every row, to be explained.
    again() {
      if (!this.atOnce) this.model.step(this.ids, this.begin());
      this.atOnce = true;
    }

    // The weights of an attention, heads × queries × keys; among its own tokens, none attends to a later one.
    map(name, keys = this.ids.length) {
      const whole = (row) => Float64Array.from({ length: keys }, (_, j) => row[j] ?? 0);
      return this.rows[name].map((rows) => rows.map(whole));
    }
  }

  return { Reading };
})();
