// A GPT of characters that learns in the page: what course_utils.models.language.GPT computes, forwards and backwards, and
// the step of torch.optim.AdamW. All of it is one function, so that a worker can be given its text.
function learning(erf) {
  const [BETA1, BETA2, EPSILON, DECAY] = [0.9, 0.999, 1e-8, 0.01];
  const SIZES = { embedDim: 48, numHeads: 4, numLayers: 2, maxLen: 32, batch: 8 };
  const EARLY = [5, 10]; // steps after which it shows what it has learned, besides each 25th

  // Numbers of a seed, from 0 to 1: mulberry32.
  const dice = (seed) => () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let bits = Math.imul(seed ^ (seed >>> 15), seed | 1);
    bits ^= bits + Math.imul(bits ^ (bits >>> 7), bits | 61);
    return ((bits ^ (bits >>> 14)) >>> 0) / 2 ** 32;
  };

  // A matrix, row after row, and the gradient of the loss by it.
  class Matrix {
    constructor(rows, columns, numberAt = null) {
      Object.assign(this, { rows, columns });
      this.data = new Float32Array(rows * columns);
      this.gradient = new Float32Array(rows * columns);
      if (numberAt) for (let i = 0; i < this.data.length; i += 1) this.data[i] = numberAt(i);
    }
  }

  // Adds A B, rows × columns: A[i, k] stands at i · ai + k · ak, B[k, j] at k · bk + j · bj. Four columns at a time: that is
  // twice as fast as one.
  function addProduct(to, [rows, columns, inner], A, [ai, ak], B, [bk, bj]) {
    for (let i = 0; i < rows; i += 1) {
      for (let j = 0; j < columns; j += 4) {
        let [a, b, c, d] = [0, 0, 0, 0];
        for (let k = 0; k < inner; k += 1) {
          const value = A[i * ai + k * ak];
          const at = k * bk + j * bj;
          a += value * B[at];
          b += value * B[at + bj];
          c += value * B[at + 2 * bj];
          d += value * B[at + 3 * bj];
        }
        [a, b, c, d].forEach((sum, more) => { to[i * columns + j + more] += sum; });
      }
    }
  }

  // The network ---------------------------------------------------------------------------------

  // Each operation leaves on the tape how the gradient of its result goes back to what it was made from.
  class GPT {
    constructor(vocabSize, { embedDim, numHeads, numLayers, maxLen }, random) {
      Object.assign(this, { vocabSize, numHeads, numLayers, maxLen, tape: [], p: {} });
      const normal = () => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
      const table = (rows) => new Matrix(4 * Math.ceil(rows / 4), embedDim, (i) =>
        (i < rows * embedDim ? normal() / Math.sqrt(embedDim) : 0)); // up to three rows to spare, for linear
      const linear = (name, inputs, outputs) => {
        const uniform = () => (2 * random() - 1) / Math.sqrt(inputs);
        this.p[`${name}.weight`] = new Matrix(outputs, inputs, uniform);
        this.p[`${name}.bias`] = new Matrix(1, outputs, uniform);
      };
      const norm = (name) => {
        this.p[`${name}.weight`] = new Matrix(1, embedDim, () => 1);
        this.p[`${name}.bias`] = new Matrix(1, embedDim);
      };
      this.p["embedding.weight"] = table(vocabSize);
      this.p["positions.weight"] = table(maxLen);
      for (let layer = 0; layer < numLayers; layer += 1) {
        const attention = `layers.${layer}.attention`;
        for (const part of ["query", "key", "value", "out"]) linear(`${attention}.${part}_proj`, embedDim, embedDim);
        linear(`layers.${layer}.feed_forward.0`, embedDim, 4 * embedDim);
        linear(`layers.${layer}.feed_forward.3`, 4 * embedDim, embedDim);
        norm(`${attention}_norm`);
        norm(`layers.${layer}.feed_forward_norm`);
      }
      norm("norm");
    }

    // Rows of the table for the tokens, and of the positions: sequences of one length, one after another.
    embed(ids, length) {
      const [table, positions] = [this.p["embedding.weight"], this.p["positions.weight"]];
      const dim = table.columns;
      const x = new Matrix(ids.length, dim);
      const each = (use) => ids.forEach((id, i) => {
        for (let j = 0; j < dim; j += 1) use(i * dim + j, id * dim + j, (i % length) * dim + j);
      });
      each((at, token, position) => { x.data[at] = table.data[token] + positions.data[position]; });
      this.tape.push(() => each((at, token, position) => {
        table.gradient[token] += x.gradient[at];
        positions.gradient[position] += x.gradient[at];
      }));
      return x;
    }

    // x Wᵀ + b
    linear(x, weight, bias = new Matrix(1, weight.rows)) {
      const [n, rows, outputs] = [weight.columns, x.rows, weight.rows];
      const y = new Matrix(rows, outputs, (i) => bias.data[i % outputs]);
      addProduct(y.data, [rows, outputs, n], x.data, [n, 1], weight.data, [1, n]);
      this.tape.push(() => {
        addProduct(x.gradient, [rows, n, outputs], y.gradient, [outputs, 1], weight.data, [n, 1]);
        addProduct(weight.gradient, [outputs, n, rows], y.gradient, [1, outputs], x.data, [n, 1]);
        y.gradient.forEach((gradient, i) => { bias.gradient[i % outputs] += gradient; });
      });
      return y;
    }

    named(name, x) {
      return this.linear(x, this.p[`${name}.weight`], this.p[`${name}.bias`]);
    }

    // LayerNorm: each row with mean 0 and variance 1, times a weight, plus a bias.
    norm(name, x) {
      const [weight, bias, dim] = [this.p[`${name}.weight`], this.p[`${name}.bias`], x.columns];
      const y = new Matrix(x.rows, dim);
      const plain = new Float32Array(x.data.length);
      const scales = new Float32Array(x.rows);
      for (let i = 0; i < x.rows; i += 1) {
        const row = x.data.subarray(i * dim, (i + 1) * dim);
        let [mean, variance] = [0, 0];
        for (const value of row) mean += value / dim;
        for (const value of row) variance += (value - mean) ** 2 / dim;
        scales[i] = 1 / Math.sqrt(variance + 1e-5);
        for (let j = 0; j < dim; j += 1) {
          plain[i * dim + j] = (row[j] - mean) * scales[i];
          y.data[i * dim + j] = plain[i * dim + j] * weight.data[j] + bias.data[j];
        }
      }
      this.tape.push(() => {
        for (let i = 0; i < x.rows; i += 1) {
          let [mean, along] = [0, 0];
          for (let j = 0; j < dim; j += 1) {
            const at = i * dim + j;
            weight.gradient[j] += y.gradient[at] * plain[at];
            bias.gradient[j] += y.gradient[at];
            mean += (y.gradient[at] * weight.data[j]) / dim;
            along += (y.gradient[at] * weight.data[j] * plain[at]) / dim;
          }
          for (let j = 0; j < dim; j += 1) {
            const at = i * dim + j;
            x.gradient[at] += scales[i] * (y.gradient[at] * weight.data[j] - mean - plain[at] * along);
          }
        }
      });
      return y;
    }

    // softmax(q kᵀ / √d) v in each head; a token sees itself and what stands before it in its sequence.
    attention(name, x, length) {
      const [q, k, v] = ["query", "key", "value"].map((part) => this.named(`${name}.${part}_proj`, x));
      const [dim, size] = [x.columns, x.columns / this.numHeads];
      const scale = 1 / Math.sqrt(size);
      const mixed = new Matrix(x.rows, dim);
      const weights = new Float32Array(x.rows * this.numHeads * length);
      const dot = (a, i, b, j) => {
        let sum = 0;
        for (let c = 0; c < size; c += 1) sum += a[i + c] * b[j + c];
        return sum;
      };
      const add = (into, i, factor, from, j) => {
        for (let c = 0; c < size; c += 1) into[i + c] += factor * from[j + c];
      };
      // For each query of each head: where it stands, the first of its keys, how many it sees, and its weights.
      const each = (use) => {
        for (let i = 0; i < x.rows; i += 1) {
          for (let h = 0; h < this.numHeads; h += 1) {
            const place = (i * this.numHeads + h) * length;
            const seen = (i % length) + 1;
            use(i * dim + h * size, (i - seen + 1) * dim + h * size, seen, weights.subarray(place, place + seen));
          }
        }
      };
      each((query, keys, seen, row) => {
        for (let j = 0; j < seen; j += 1) row[j] = dot(q.data, query, k.data, keys + j * dim) * scale;
        const most = row.reduce((a, b) => Math.max(a, b));
        let sum = 0;
        for (let j = 0; j < seen; j += 1) sum += row[j] = Math.exp(row[j] - most);
        for (let j = 0; j < seen; j += 1) add(mixed.data, query, row[j] /= sum, v.data, keys + j * dim);
      });
      this.tape.push(() => each((query, keys, seen, row) => {
        const back = new Float32Array(seen);
        let along = 0;
        for (let j = 0; j < seen; j += 1) {
          back[j] = dot(mixed.gradient, query, v.data, keys + j * dim);
          along += row[j] * back[j];
        }
        for (let j = 0; j < seen; j += 1) {
          const gradient = row[j] * (back[j] - along) * scale; // of the score
          add(v.gradient, keys + j * dim, row[j], mixed.gradient, query);
          add(q.gradient, query, gradient, k.data, keys + j * dim);
          add(k.gradient, keys + j * dim, gradient, q.data, query);
        }
      }));
      return this.named(`${name}.out_proj`, mixed);
    }

    // x Φ(x), Φ the distribution function of the normal distribution.
    gelu(x) {
      const below = x.data.map((value) => (1 + erf(value / Math.SQRT2)) / 2);
      const y = new Matrix(x.rows, x.columns, (i) => x.data[i] * below[i]);
      this.tape.push(() => x.data.forEach((value, i) => {
        const density = Math.exp((-value * value) / 2) / Math.sqrt(2 * Math.PI);
        x.gradient[i] += y.gradient[i] * (below[i] + value * density);
      }));
      return y;
    }

    plus(x, y) {
      const sum = new Matrix(x.rows, x.columns, (i) => x.data[i] + y.data[i]);
      this.tape.push(() => sum.gradient.forEach((gradient, i) => {
        x.gradient[i] += gradient;
        y.gradient[i] += gradient;
      }));
      return sum;
    }

    // Ids of sequences of one length, one after another → logits of the token after each.
    logits(ids, length) {
      this.tape = [];
      let x = this.embed(ids, length);
      for (let layer = 0; layer < this.numLayers; layer += 1) {
        const [attention, network] = [`layers.${layer}.attention`, `layers.${layer}.feed_forward`];
        x = this.plus(x, this.attention(attention, this.norm(`${attention}_norm`, x), length));
        const hidden = this.gelu(this.named(`${network}.0`, this.norm(`${network}_norm`, x)));
        x = this.plus(x, this.named(`${network}.3`, hidden));
      }
      return this.linear(this.norm("norm", x), this.p["embedding.weight"]);
    }

    // The mean of −log p of what follows; its gradients, too, if they are wanted.
    loss(ids, targets, length, { back = false } = {}) {
      const logits = this.logits(ids, length);
      let loss = 0;
      targets.forEach((target, i) => {
        const from = i * logits.columns;
        const p = softmax(logits.data.subarray(from, from + this.vocabSize));
        loss -= Math.log(p[target]) / targets.length;
        p.forEach((each, j) => { logits.gradient[from + j] = (each - (j === target)) / targets.length; });
      });
      if (back) {
        for (const { gradient } of Object.values(this.p)) gradient.fill(0);
        for (const carry of this.tape.reverse()) carry();
      }
      return loss;
    }
  }

  function softmax(scores) {
    const most = scores.reduce((a, b) => Math.max(a, b));
    const powers = Array.from(scores, (score) => Math.exp(score - most));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  }

  class AdamW {
    constructor(parameters, rate) {
      const zeros = ({ data }) => new Float32Array(data.length);
      Object.assign(this, { rate, steps: 0, all: parameters.map((p) => ({ p, m: zeros(p), v: zeros(p) })) });
    }

    step() {
      this.steps += 1;
      const [first, second] = [1 - BETA1 ** this.steps, 1 - BETA2 ** this.steps];
      for (const { p: { data, gradient }, m, v } of this.all) {
        for (let i = 0; i < data.length; i += 1) {
          m[i] += (1 - BETA1) * (gradient[i] - m[i]);
          v[i] = BETA2 * v[i] + (1 - BETA2) * gradient[i] ** 2;
          data[i] -= this.rate * (DECAY * data[i] + m[i] / first / (Math.sqrt(v[i] / second) + EPSILON));
        }
      }
    }
  }

  // A text ----------------------------------------------------------------------------------------

  // Its last tenth is held out, 2,000 letters at most are asked: the network never learns from them.
  class Training {
    constructor(text, { rate = 3e-3, seed = 0, sizes = {} } = {}) {
      const letters = [...text];
      this.letters = [...new Set(letters)].sort();
      const places = new Map(this.letters.map((letter, id) => [letter, id]));
      const ids = letters.map((letter) => places.get(letter));
      const cut = Math.ceil(0.9 * ids.length);
      Object.assign(this, { ...SIZES, ...sizes, ids: ids.slice(0, cut), held: ids.slice(cut, cut + 2000), random: dice(seed) });
      this.model = new GPT(this.letters.length, this, this.random);
      this.optimizer = new AdamW(Object.values(this.model.p), rate);
    }

    // Places of the text, drawn by chance, and what follows them.
    draw() {
      const last = this.ids.length - this.maxLen;
      const starts = Array.from({ length: this.batch }, () => Math.floor(this.random() * last));
      const part = (shift) => starts.flatMap((start) => this.ids.slice(start + shift, start + shift + this.maxLen));
      return [part(0), part(1)];
    }

    // One step: the loss before it.
    step() {
      const loss = this.model.loss(...this.draw(), this.maxLen, { back: true });
      this.optimizer.step();
      return loss;
    }

    // The mean loss on what was held out, in windows that follow one another.
    heldOut() {
      const length = Math.min(this.maxLen, this.held.length - 1);
      const count = Math.floor((this.held.length - 1) / length) * length;
      return this.model.loss(this.held.slice(0, count), this.held.slice(1, count + 1), length);
    }

    // Goes on from a beginning, from a line break without one; letters that the text does not have are left out. Towards
    // temperature 0 the likeliest letter follows.
    write(count, { beginning = "\n", temperature = 0.8, seed = 0 } = {}) {
      const random = dice(seed);
      const said = [...beginning].map((letter) => this.letters.indexOf(letter)).filter((id) => id >= 0);
      if (!said.length) said.push(0);
      const begun = beginning === "\n" ? 1 : 0; // the line break is not written
      for (let more = 0; more < count; more += 1) {
        const window = said.slice(-this.maxLen);
        const logits = this.model.logits(window, window.length);
        const last = logits.data.slice(-logits.columns).subarray(0, this.letters.length);
        const p = softmax(last.map((logit) => logit / Math.max(temperature, 1e-3)));
        let left = random();
        said.push(Math.max(0, p.findIndex((each) => (left -= each) < 0)));
      }
      return said.slice(begun).map((id) => this.letters[id]).join("");
    }

    seen() {
      return { heldOut: this.heldOut(), text: this.write(60) };
    }

    about() {
      return { letters: this.letters.length, counted: this.counted(), repeated: this.repeated() };
    }

    // The share of what was held out whose next 20 letters stand in the training text, too.
    repeated() {
      const windows = (ids) => ids.slice(19).map((_, i) => ids.slice(i, i + 20).join(" "));
      const [known, held] = [new Set(windows(this.ids)), windows(this.held)];
      return held.filter((each) => known.has(each)).length / held.length;
    }

    // The least loss on what was held out by counting: p(letter | the n before it), n from 0 to 6, with modified Kneser–Ney
    // smoothing, as kneser_ney_losses of course_utils.lessons.gpt.ngrams computes it.
    counted() {
      const { ids, held } = this;
      const most = 6;
      const grams = Array.from({ length: most + 2 }, (_, n) => countsOf(ids.map((_, i) => ids.slice(i, i + n)), n));
      let lower = held.map(() => 1 / this.letters.length);
      const losses = [];
      for (let n = 1; n <= most + 1; n += 1) {
        const p = leaning(grams[n], n, held, lower);
        losses.push(p.reduce((loss, each) => loss - Math.log(each) / p.length, 0));
        if (n > most) break;
        const after = [...grams[n + 1]].flatMap(([history, next]) => // each longer n-gram once, without its first letter
          [...next.keys()].map((id) => [...history.split(" ").slice(1).map(Number), id]));
        lower = leaning(countsOf(after, n), n, held, lower);
      }
      const least = Math.min(...losses);
      return { loss: least, letters: losses.indexOf(least) };
    }
  }

  // How often each letter follows each n − 1 letters, by these as a text: n-grams of other lengths are left out.
  function countsOf(grams, n) {
    const counts = new Map();
    for (const gram of grams) {
      if (gram.length !== n || !n) continue;
      const history = gram.slice(0, -1).join(" ");
      if (!counts.has(history)) counts.set(history, new Map());
      const next = counts.get(history);
      next.set(gram[n - 1], (next.get(gram[n - 1]) ?? 0) + 1);
    }
    return counts;
  }

  // What a count of 1, of 2, and of 3 or more gives up; half of it where a text is too short to estimate that.
  function discounts(counts) {
    const times = [0, 0, 0, 0, 0];
    for (const next of counts.values()) for (const count of next.values()) if (count < 5) times[count] += 1;
    const [, once, twice, thrice, often] = times;
    const y = once / (once + 2 * twice);
    const estimated = [1 - (2 * y * twice) / once, 2 - (3 * y * thrice) / twice, 3 - (4 * y * often) / thrice];
    return estimated.every((discount, i) => discount > 0 && discount < i + 1) ? estimated : [0.5, 1, 1.5];
  }

  // The probability of each letter of a text, where n-grams lean on shorter ones.
  function leaning(counts, n, text, lower) {
    const discount = discounts(counts);
    const given = (count) => (count ? discount[Math.min(count, 3) - 1] : 0);
    return text.map((id, i) => {
      const next = i < n - 1 ? null : counts.get(text.slice(i - n + 1, i).join(" "));
      if (!next) return lower[i];
      let [sum, saved] = [0, 0];
      for (const count of next.values()) [sum, saved] = [sum + count, saved + given(count)];
      const count = next.get(id) ?? 0;
      return (count - given(count) + saved * lower[i]) / sum;
    });
  }

  // What a worker does, and a page that has none: `hear` takes { begin: text and options }, { run: yes or no } and { write:
  // options }; `tell` is told about the text, then the loss before each step, now and then what there is to see, and what
  // was written.
  function learner(tell) {
    let [training, running, step] = [null, false, 0];
    function work() {
      if (!running) return;
      const loss = training.step();
      step += 1;
      tell({ step, loss, ...(step % 25 && !EARLY.includes(step) ? {} : training.seen()) });
      setTimeout(work);
    }
    return ({ begin, run, write }) => {
      if (write) return tell({ written: training.write(200, write) });
      if (begin) {
        [training, step] = [new Training(begin.text, begin), 0];
        tell({ step, ...training.seen(), about: training.about() });
      }
      const starts = run && !running;
      running = run ?? false;
      if (starts) work();
    };
  }

  return { Training, learner };
}
