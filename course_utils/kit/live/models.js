// The course's networks on the layers of engine.js: the Transformer, GPT and BERT, the vision transformer, and Bahdanau's
// GRU; and how a translation is decoded.

class Transformer extends Network {
  embed(name, ids, start) {
    const table = this.p[`${name}.weight`];
    const dim = table[0].length;
    const scaled = (id) => table[id].map((value) => value * Math.sqrt(dim));
    return ids.map((id, i) => plus(scaled(id), sinusoids(start + i, dim)));
  }

  // Ids of the source → a translation under way: the encoded source, and a cache for each layer.
  start(ids) {
    this.position = 0;
    let x = this.embed("source_embedding", ids, 0);
    for (const name of this.layers("encoder")) x = this.encoderLayer(name, x);
    const both = () => ({ target: emptyCache(), source: emptyCache() });
    const caches = this.layers("decoder").map(both);
    return { memory: this.norm("encoder_norm", x), caches, length: 0 };
  }

  // Reads target ids: for each of them the logits of the token after it. The state moves on.
  step(ids, state) {
    this.position = state.length;
    let x = this.embed("target_embedding", ids, state.length);
    this.layers("decoder").forEach((name, i) => {
      x = this.decoderLayer(name, x, state.memory, state.caches[i]);
    });
    state.length += ids.length;
    return this.linear("output", this.norm("decoder_norm", x));
  }

  // A copy that goes on by itself: a beam.
  fork(state) {
    const copied = ({ keys, values }) => ({ keys: [...keys], values: [...values] });
    const both = ({ target, source }) => ({ target: copied(target), source: copied(source) });
    return { ...state, caches: state.caches.map(both) };
  }
}

// <pad> and <bos> are never a next word.
const speakable = (logits) =>
  logits.map((logit, id) => (id === PAD || id === BOS ? -Infinity : logit));
const argmax = (a) => a.reduce((best, value, i) => (value > a[best] ? i : best), 0);
const next = (model, id, state) => speakable(model.step([id], state).at(-1));

function greedy(model, source, maxLen = 50, state = model.start(source)) {
  const said = [];
  while (said.length < maxLen) {
    const token = argmax(next(model, said.at(-1) ?? BOS, state));
    if (token === EOS) break;
    said.push(token);
  }
  return said;
}

// The `size` best beginnings; a finished one of n tokens is ranked by log p / ((5 + n) / 6)^penalty.
// `watch` is told the candidates of each length, the best first, and those that end.
function beamSearch(model, source, size = 4, maxLen = 50, penalty = 0.6, watch = () => {}) {
  let best = { score: -Infinity, said: [] };
  let beams = [{ score: 0, said: [], state: model.start(source) }];
  for (let length = 1; length <= maxLen; length += 1) {
    const ended = [];
    const grown = beams.flatMap(({ score, said, state }) => {
      const p = softmax(next(model, said.at(-1) ?? BOS, state));
      const logP = p.map((each) => score + Math.log(each));
      const rank = logP[EOS] / ((5 + length) / 6) ** penalty;
      if (rank > best.score) best = { score: rank, said };
      ended.push({ score: logP[EOS], rank, said });
      const words = range(p.length).filter((id) => id !== EOS).sort((a, b) => p[b] - p[a]);
      return words.slice(0, size).map((id) => ({ score: logP[id], said: [...said, id], state }));
    });
    grown.sort((a, b) => b.score - a.score);
    watch(grown, ended);
    beams = grown.slice(0, size).map((beam) => ({ ...beam, state: model.fork(beam.state) }));
    if (best.score >= beams[0].score / ((5 + maxLen) / 6) ** penalty) break;
  }
  return best.said;
}

// What later models changed in the blocks ------------------------------------------------------

const sigmoid = (x) => 1 / (1 + Math.exp(-x));
const activations = {
  relu: (x) => Math.max(0, x),
  gelu: (x) => (x * (1 + erf(x / Math.SQRT2))) / 2,
  swiglu: (x) => x * sigmoid(x),
};

class Variants extends Network {
  // Rotary positions: columns 2j and 2j + 1 turn together.
  rotated(head, position) {
    if (!this.config.rotary) return head;
    return head.map((value, j) => {
      const angle = position / 10000 ** ((j - (j % 2)) / head.length);
      const other = j % 2 ? head[j - 1] : -head[j + 1];
      return value * Math.cos(angle) + other * Math.sin(angle);
    });
  }

  feedForward(name, x) {
    const kind = this.config.activation ?? "gelu";
    const activated = (part) =>
      this.linear(`${name}.${part}`, x).map((row) => row.map(activations[kind]));
    if (kind !== "swiglu") return this.linear(`${name}.3`, activated("0"));
    const up = this.linear(`${name}.up`, x);
    const gated = activated("gate").map((row, i) => row.map((gate, j) => gate * up[i][j]));
    return this.linear(`${name}.down`, gated);
  }
}

class GPT extends Variants {
  causal = true;

  start() {
    return { caches: this.layers("layers").map(emptyCache), length: 0 };
  }

  // Reads ids: for each of them the logits of the token after it. The state moves on.
  step(ids, state) {
    this.position = state.length;
    const table = this.p["positions.weight"];
    const embedded = ids.map((id) => this.p["embedding.weight"][id]);
    let x = table ? embedded.map((row, i) => plus(row, table[state.length + i])) : embedded;
    this.layers("layers").forEach((name, i) => {
      x = this.encoderLayer(name, x, { causal: this.causal, cache: state.caches[i] });
    });
    state.length += ids.length;
    return this.linear("output", this.norm("norm", x));
  }

  // Only so many ids have been read.
  forget(state, length) {
    for (const { keys, values } of state.caches) keys.length = values.length = length;
    state.length = length;
  }
}

// The same, but each token sees the whole text: all ids in one step.
class BERT extends GPT {
  causal = false;
}

class ViT extends Variants {
  // An image, channels × rows × columns → its patches, row by row; in a patch the channel changes slowest.
  cutPatches(image, size) {
    const [height, width] = [image[0].length / size, image[0][0].length / size];
    const cut = (line, column) => line.slice(column * size, (column + 1) * size);
    const patch = (row, column) => Float64Array.from(image.flatMap((channel) =>
      range(size).flatMap((i) => cut(channel[row * size + i], column))));
    return range(height).flatMap((row) => range(width).map((column) => patch(row, column)));
  }

  // What the layers make of every token, the class token first.
  tokens(image) {
    const patches = this.linear("patch_embedding.proj", this.cutPatches(image, this.config.patch_size ?? 7));
    let x = [this.p.class_token[0], ...patches].map((row, i) => plus(row, this.p["positions.table"][i]));
    for (const name of this.layers("layers")) x = this.encoderLayer(name, x);
    return this.norm("norm", x);
  }

  // Logits of the classes.
  logits(image) {
    return this.linear("output", this.tokens(image).slice(0, 1))[0];
  }
}

// Bahdanau's translator -----------------------------------------------------------------------

// Two vectors as one.
const beside = (a, b) => Float64Array.from([...a, ...b]);

class AttentionTranslator extends Network {
  // One step of a GRU: its weights stand in three blocks, for reset, update and the new state.
  gru(name, ending, x, h) {
    const block = (kind, row) => {
      const weight = this.p[`${name}.weight_${kind}_${ending}`];
      const bias = this.p[`${name}.bias_${kind}_${ending}`];
      return vector(weight.length, (j) => dot(weight[j], row) + bias[j]);
    };
    const [inner, outer] = [block("ih", x), block("hh", h)];
    const size = h.length;
    return h.map((old, j) => {
      const reset = sigmoid(inner[j] + outer[j]);
      const update = sigmoid(inner[size + j] + outer[size + j]);
      const fresh = Math.tanh(inner[2 * size + j] + reset * outer[2 * size + j]);
      return (1 - update) * fresh + update * old;
    });
  }

  embed(name, id) {
    return this.p[`${name}.weight`][id];
  }

  start(ids) {
    const size = this.p["encoder.weight_hh_l0"][0].length;
    let x = ids.map((id) => this.embed("source_embedding", id));
    let last = [];
    const hidden = range(this.config.num_layers ?? 1).map((layer) => {
      const read = (rows, ending) => {
        let h = new Float64Array(size);
        return rows.map((row) => (h = this.gru("encoder", ending, row, h)));
      };
      const right = read(x, `l${layer}`);
      const left = read([...x].reverse(), `l${layer}_reverse`).reverse();
      last = beside(right.at(-1), left[0]);
      x = right.map((row, i) => beside(row, left[i]));
      return this.linear("bridge", [last])[0].map(Math.tanh);
    });
    return { memory: x, keys: this.linear("attention.key_proj", x), hidden };
  }

  // Reads target ids: for each of them the logits of the token after it. The state moves on.
  step(ids, state) {
    this.maps.attention = [[]];
    const [keys, values] = [state.keys, state.memory].map((rows) => rows.map((row) => [row]));
    const [weigh] = this.p["attention.score_proj.weight"];
    const terms = (query, key) => plus(query, key).map((sum, d) => weigh[d] * Math.tanh(sum));
    const inside = { queries: [], keys, values, mixed: [[]], terms, scale: 1, group: 1 };
    this.inside.attention = inside;
    return ids.map((id) => {
      const [query] = this.linear("attention.query_proj", [state.hidden.at(-1)]);
      inside.queries.push([query]);
      const added = state.keys.map((key) => plus(key, query).map(Math.tanh));
      const weights = softmax(this.linear("attention.score_proj", added).map(([score]) => score));
      this.maps.attention[0].push(weights);
      const context = mix(weights, state.memory);
      inside.mixed[0].push(context);
      let x = beside(this.embed("target_embedding", id), context);
      state.hidden = state.hidden.map((h, layer) => (x = this.gru("decoder", `l${layer}`, x, h)));
      const combined = this.linear("combine", [beside(x, context)])[0].map(Math.tanh);
      return this.linear("output", [combined])[0];
    });
  }

  fork(state) {
    return { ...state };
  }
}
