// A network without a library: what course_utils.attention and its layers compute, in plain JavaScript.
//
// A vector is a Float64Array, a matrix an array of its rows. One sentence at a time: no batch, no padding.
// `this.p` is the state_dict of PyTorch, so a name such as "encoder.0.attention.query_proj" means the same here.

const [PAD, UNK, BOS, EOS, MASK] = [0, 1, 2, 3, 4];

// Numbers -------------------------------------------------------------------------------------

const plus = (a, b) => vector(a.length, (i) => a[i] + b[i]);
const rowMean = (a) => total(a) / a.length;

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

// The average of `rows` that `weights` make.
function mix(weights, rows) {
  return vector(rows[0].length, (j) => {
    let sum = 0;
    for (let i = 0; i < rows.length; i += 1) sum += weights[i] * rows[i][j];
    return sum;
  });
}

// Sines in the even columns, cosines in the odd ones.
function sinusoids(position, dim) {
  return vector(dim, (j) => {
    const angle = position / 10000 ** ((j - (j % 2)) / dim);
    return j % 2 ? Math.cos(angle) : Math.sin(angle);
  });
}

// The error function, to 1.5e-7: Abramowitz and Stegun (1964), 7.1.26. It needs nothing around it: a worker gets its text.
function erf(x) {
  const factors = [1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592];
  const t = 1 / (1 + 0.3275911 * Math.abs(x));
  let sum = 0;
  for (const factor of factors) sum = (sum + factor) * t;
  return Math.sign(x) * (1 - sum * Math.exp(-x * x));
}

// The weights of a bundle, as course_utils.kit.live.stored packs them -------------------------

function bytesOf(base64) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64).buffer; // browsers since 2025
  const letters = atob(base64);
  const bytes = new Uint8Array(letters.length);
  for (let i = 0; i < bytes.length; i += 1) bytes[i] = letters.charCodeAt(i);
  return bytes.buffer;
}

// A number in half precision: sign, 5 bits of exponent, 10 of fraction.
function half(bits) {
  const sign = bits & 0x8000 ? -1 : 1;
  const exponent = (bits >> 10) & 31;
  const fraction = (bits & 1023) / 1024;
  return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
}

// Whole numbers from -31 on, a letter each.
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
function stepsOf(letters) {
  const places = new Int8Array(128);
  for (let i = 0; i < 64; i += 1) places[LETTERS.charCodeAt(i)] = i - 31;
  const steps = new Int8Array(letters.length);
  for (let i = 0; i < steps.length; i += 1) steps[i] = places[letters.charCodeAt(i)];
  return steps;
}

// Whole numbers, each row with its scale; or numbers in half precision, without.
function unpackedNumbers({ shape, scales, data, letters }) {
  if (!scales) return Float64Array.from(new Uint16Array(bytesOf(data)), half);
  const size = shape.at(-1);
  const steps = letters ? stepsOf(letters) : new Int8Array(bytesOf(data));
  const numbers = new Float64Array(steps.length);
  new Float32Array(bytesOf(scales)).forEach((scale, row) => {
    const end = (row + 1) * size;
    for (let j = row * size; j < end; j += 1) numbers[j] = Math.fround(steps[j] * scale);
  });
  return numbers;
}

// found: all that has been unpacked; of a tensor with several names, the others name the first.
function tensorOf(packed, found) {
  if (packed.same) return found[packed.same];
  const numbers = unpackedNumbers(packed);
  if (packed.shape.length === 1) return numbers;
  const size = packed.shape.at(-1);
  const row = (_, i) => numbers.subarray(i * size, (i + 1) * size);
  return Array.from({ length: numbers.length / size }, row);
}

// Name → a vector, or a matrix as its rows; each is unpacked when it is first asked for, or when the page has nothing
// else to do.
function unpack(tensors) {
  const found = {};
  for (const [name, packed] of Object.entries(tensors)) {
    Object.defineProperty(found, name, {
      configurable: true, enumerable: true,
      get: () => Object.defineProperty(found, name, { value: tensorOf(packed, found) })[name],
    });
  }
  const names = Object.keys(tensors);
  const next = (idle) => {
    while (names.length && idle.timeRemaining() > 0) void found[names.pop()];
    if (names.length) requestIdleCallback(next);
  };
  globalThis.requestIdleCallback?.(next);
  return found;
}

// Layers --------------------------------------------------------------------------------------

// A vector cut into the parts that belong to the heads.
const inHeads = (x, dim) => range(x.length / dim).map((h) => x.slice(h * dim, (h + 1) * dim));
const emptyCache = () => ({ keys: [], values: [] });

class Network {
  // A bundle: config and tensors, as course_utils.kit.live.stored packs them.
  constructor({ config, tensors }) {
    this.p = unpack(tensors);
    this.config = config;
    this.maps = {}; // name of an attention → its latest weights, heads × queries × keys
    this.inside = {}; // … → what they were computed from, and what was computed with them
    this.position = 0; // of the first token that is read now
    this.forbidden = []; // { place, queries, keys }: what queries may not look at in attentions whose name fits
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
      const center = bias ? rowMean(row) : 0;
      const moved = row.map((value) => value - center);
      const scale = 1 / Math.sqrt(rowMean(moved.map((value) => value * value)) + 1e-5);
      return moved.map((value, j) => value * scale * weight[j] + (bias ? bias[j] : 0));
    });
  }

  // softmax(q kᵀ / √d) v in each head. Tokens in `cache` came earlier; the new keys and values join them.
  attention(name, x, source, { causal = false, cache = emptyCache() } = {}) {
    const heads = this.config.num_heads ?? 4;
    const start = cache.keys.length;
    const { position } = this;
    // project
    const projected = this.linear(`${name}.query_proj`, x);
    const dim = projected[0].length / heads;
    const placed = (row, i) => inHeads(row, dim).map((head) => this.rotated(head, start + i));
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
        return softmax(this.allowed(name, position + i, seen)); // normalize
      });
    });
    this.maps[name] = maps;
    // mix
    const valuesOf = (h) => cache.values.map((value) => value[Math.floor(h / group)]);
    const mixed = maps.map((rows, h) => rows.map((weights) => mix(weights, valuesOf(h))));
    // merge
    const at = (i, j) => mixed[Math.floor(j / dim)][i][j % dim];
    const merged = queries.map((_, i) => vector(heads * dim, (j) => at(i, j)));
    this.inside[name] = { queries, ...cache, mixed, merged, causal, start, group, position };
    return this.linear(`${name}.out_proj`, merged);
  }

  // The scores of a query, −∞ for keys that are forbidden to it; without `queries` they are forbidden to all.
  allowed(name, query, scores) {
    const bans = this.forbidden.filter(({ place, queries }) => place.test(name) && (queries?.includes(query) ?? true));
    return scores.map((score, key) => (bans.some(({ keys }) => keys.includes(key)) ? -Infinity : score));
  }

  // What tells a head's queries and keys their positions after the projection: nothing, where embeddings do.
  rotated(head, position) {
    return head;
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
    return this.residual(place, x, (y) => this.feedForward(place, y));
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

// Words ---------------------------------------------------------------------------------------

// What Python calls white space; the \s of JavaScript is another set.
const SPACES = /[\t-\r\x1c-\x20\x85\xa0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]+/g;
const INVISIBLE = /[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+/g;
const PUNCTUATION = new RegExp("([.,!?;:…¿¡\"«»()“”„‹›〝〞〟―]|—{2,}|[。，、；：？！．｡､（）「」『』《》〈〉【】〔〕｢｣]" +
  "|[।॥؟،؛۔։።፣፤፥፦፧།༎၊။។៕៖])", "g");

function tokenize(text) {
  const plain = text.replace(INVISIBLE, "").replaceAll("İ", "i").replaceAll("’", "'").toLowerCase().normalize("NFC");
  return plain.replace(PUNCTUATION, " $1 ").split(SPACES).filter((token) => token);
}
