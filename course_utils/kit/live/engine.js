// The Transformer without a library: what course_utils.models.transformer computes, in plain JavaScript.
//
// A vector is a Float64Array, a matrix an array of its rows. One sentence at a time: no batch, no padding.
// `this.p` is the state_dict of PyTorch, so a name such as "encoder.0.attention.query_proj" means the same here.
globalThis.live_engine = (() => {
  "use strict";
  const [PAD, UNK, BOS, EOS] = [0, 1, 2, 3];

  // Numbers -------------------------------------------------------------------------------------

  const range = (length) => Array.from({ length }, (_, i) => i);
  const plus = (a, b) => vector(a.length, (i) => a[i] + b[i]);
  const mean = (a) => a.reduce((sum, value) => sum + value, 0) / a.length;

  function vector(length, numberAt) {
    const numbers = new Float64Array(length);
    for (let i = 0; i < length; i += 1) numbers[i] = numberAt(i);
    return numbers;
  }

  function dot(a, b) {
    let [even, odd] = [0, 0]; // two sums that need not wait for each other: faster than one
    for (let i = 0; i < a.length - 1; i += 2) {
      even += a[i] * b[i];
      odd += a[i + 1] * b[i + 1];
    }
    return a.length % 2 ? even + odd + a.at(-1) * b.at(-1) : even + odd;
  }

  // Zeros where every score is −∞.
  function softmax(scores) {
    const most = Math.max(...scores);
    if (most === -Infinity) return scores.map(() => 0);
    const powers = scores.map((score) => Math.exp(score - most));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  }

  // The average of `rows` that `weights` make.
  function mix(weights, rows) {
    return vector(rows[0].length, (j) => {
      let sum = 0;
      for (let i = 0; i < rows.length; i += 1) sum += weights[i] * rows[i][j];
      return sum;
    });
  }

  // Positions -----------------------------------------------------------------------------------

  // Sines in the even columns, cosines in the odd ones.
  function sinusoids(position, dim) {
    return vector(dim, (j) => {
      const angle = position / 10000 ** ((j - (j % 2)) / dim);
      return j % 2 ? Math.cos(angle) : Math.sin(angle);
    });
  }

  // Layers --------------------------------------------------------------------------------------

  // A vector cut into the parts that belong to the heads.
  const inHeads = (x, dim) => range(x.length / dim).map((h) => x.slice(h * dim, (h + 1) * dim));
  const emptyCache = () => ({ keys: [], values: [] });

  class Network {
    // A bundle: config and tensors, as course_utils.kit.live.packing packs them.
    constructor({ config, tensors }) {
      this.p = globalThis.live_unpack(tensors);
      this.config = config;
      this.maps = {}; // name of an attention → its latest weights, heads × queries × keys
      this.inside = {}; // … → what they were computed from, and what was computed with them
    }

    // How many layers there are under a name.
    layers(name) {
      const places = Object.keys(this.p).filter((key) => key.startsWith(`${name}.`));
      return range(new Set(places.map((key) => key.split(".")[1])).size).map((i) => `${name}.${i}`);
    }

    // x Wᵀ + b
    linear(name, x) {
      const weight = this.p[`${name}.weight`];
      const bias = this.p[`${name}.bias`] ?? new Float64Array(weight.length);
      return x.map((row) => vector(weight.length, (j) => dot(weight[j], row) + bias[j]));
    }

    // LayerNorm has a bias and takes the mean away, RMSNorm neither. A name without weights changes nothing.
    norm(name, x) {
      const weight = this.p[`${name}.weight`];
      const bias = this.p[`${name}.bias`];
      if (!weight) return x;
      return x.map((row) => {
        const center = bias ? mean(row) : 0;
        const moved = row.map((value) => value - center);
        const scale = 1 / Math.sqrt(mean(moved.map((value) => value * value)) + 1e-5);
        return moved.map((value, j) => value * scale * weight[j] + (bias ? bias[j] : 0));
      });
    }

    // softmax(q kᵀ / √d) v in each head. Tokens in `cache` came earlier; the new keys and values join them.
    attention(name, x, source, { causal = false, cache = emptyCache() } = {}) {
      const heads = this.config.num_heads ?? 4;
      const start = cache.keys.length;
      // project
      const projected = this.linear(`${name}.query_proj`, x);
      const dim = projected[0].length / heads;
      const placed = (row, i) => inHeads(row, dim).map((head) => this.place(head, start + i));
      const queries = projected.map(placed);
      const values = this.linear(`${name}.value_proj`, source);
      cache.keys.push(...this.linear(`${name}.key_proj`, source).map(placed));
      cache.values.push(...values.map((row) => inHeads(row, dim)));
      const group = heads / cache.keys[0].length; // so many heads of queries share one of keys
      const maps = range(heads).map((h) => {
        const keys = cache.keys.map((key) => key[Math.floor(h / group)]);
        return queries.map((query, i) => {
          // score, scale
          const scores = vector(keys.length, (j) => dot(query[h], keys[j]) / Math.sqrt(dim));
          const seen = scores.map((s, j) => (causal && j > start + i ? -Infinity : s)); // mask
          return softmax(this.looks(name, h, i, seen)); // normalize
        });
      });
      this.maps[name] = maps;
      // mix
      const valuesOf = (h) => cache.values.map((value) => value[Math.floor(h / group)]);
      const averages = maps.map((rows, h) => rows.map((weights) => mix(weights, valuesOf(h))));
      const mixed = this.changed(`${name}.heads`, averages);
      // merge
      const at = (i, j) => mixed[Math.floor(j / dim)][i][j % dim];
      const merged = queries.map((_, i) => vector(heads * dim, (j) => at(i, j)));
      this.inside[name] = { queries, ...cache, mixed, merged, causal, start, group };
      return this.changed(name, this.linear(`${name}.out_proj`, merged));
    }

    feedForward(name, x) {
      const activated = this.linear(`${name}.0`, x).map((row) => row.map((h) => Math.max(0, h)));
      return this.linear(`${name}.3`, activated);
    }

    // x + f(norm(x)), or, with the norm after, norm(x + f(x)).
    residual(name, x, sublayer) {
      const sum = (y) => x.map((row, i) => plus(row, y[i]));
      if (this.config.norm_first ?? true) return sum(sublayer(this.norm(`${name}_norm`, x)));
      return this.norm(`${name}_norm`, sum(sublayer(x)));
    }

    encoderLayer(name, x, options) {
      const attend = (y) => this.attention(`${name}.attention`, y, y, options);
      return this.think(name, this.residual(`${name}.attention`, x, attend));
    }

    // The end of each layer.
    think(name, x) {
      const place = `${name}.feed_forward`;
      const net = (y) => this.changed(place, this.feedForward(place, y));
      return this.changed(`${name}.residual`, this.residual(place, x, net));
    }

    decoderLayer(name, x, memory, cache) {
      const known = cache.source.keys.length > 0; // the source's keys are projected once
      const source = [known ? [] : memory, { cache: cache.source }];
      const past = { causal: true, cache: cache.target };
      const attend = (y) => this.attention(`${name}.self_attention`, y, y, past);
      const look = (y) => this.attention(`${name}.cross_attention`, y, ...source);
      x = this.residual(`${name}.self_attention`, x, attend);
      return this.think(name, this.residual(`${name}.cross_attention`, x, look));
    }
  }

  // Others change: the scores of a head's query i, what a place gives (interventions.js), and what tells
  // queries and keys their positions after the projection (nothing, where embeddings do).
  Object.assign(Network.prototype, {
    looks: (name, h, i, scores) => scores,
    changed: (name, x) => x,
    place: (head, position) => head,
  });

  // The Transformer -----------------------------------------------------------------------------

  class Transformer extends Network {
    embed(name, ids, start) {
      const table = this.p[`${name}.weight`];
      const dim = table[0].length;
      const scaled = (id) => table[id].map((value) => value * Math.sqrt(dim));
      return ids.map((id, i) => plus(scaled(id), sinusoids(start + i, dim)));
    }

    // Ids of the source → a translation under way: the encoded source, and a cache for each layer.
    start(ids) {
      let x = this.embed("source_embedding", ids, 0);
      for (const name of this.layers("encoder")) x = this.encoderLayer(name, x);
      const both = () => ({ target: emptyCache(), source: emptyCache() });
      const caches = this.layers("decoder").map(both);
      return { memory: this.norm("encoder_norm", x), caches, length: 0 };
    }

    // Reads target ids: for each of them the logits of the token after it. The state moves on.
    step(ids, state) {
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

  // Decoding ------------------------------------------------------------------------------------

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

  // Words ---------------------------------------------------------------------------------------

  // What Python calls white space; the \s of JavaScript is another set.
  const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;
  const MARKS = /([.,!?;:…¿¡"«»()])/g;

  function tokenize(text) {
    const plain = text.replaceAll("\ufeff", "").replaceAll("’", "'").toLowerCase().normalize("NFC");
    return plain.replace(MARKS, " $1 ").split(SPACES).filter((token) => token);
  }

  const tools = { range, vector, plus, dot, mix, softmax, argmax, speakable, emptyCache };
  return { ids: { PAD, UNK, BOS, EOS }, tools, Network, Transformer, greedy, beamSearch, tokenize };
})();
