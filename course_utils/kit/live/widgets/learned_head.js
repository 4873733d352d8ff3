// One attention head, trained in the page: an adjective learns which noun it belongs to. The training follows from rate
// and seed alone: at any step the page shows what so many steps have made of the matrices.

const NOUNS = [["cat", "mouse"], ["lemon", "apple"], ["desk", "table"]]; // masculine and feminine in French
const ADJECTIVES = ["hungry", "ripe", "varnished"]; // each fits one kind of noun
const WORDS = [...NOUNS.flat(), ...ADJECTIVES];
const SIZES = { Q: 2, K: 2, V: 1 };
const RATES = ["0.3", "1", "3"];
const STEPS = 300;
const DARK = 3; // a number of this size has the darkest ground

const oneHot = (id) => WORDS.map((_, i) => Number(i === id));
// The nouns of a sentence by their genders, three zeros or ones, and then an adjective.
const wordsOf = (genders, adjective) =>
  [...genders.map((gender, kind) => 2 * kind + gender), NOUNS.flat().length + adjective].map(oneHot);
const SENTENCES = range(ADJECTIVES.length).flatMap((adjective) => range(8).map((number) => {
  const genders = NOUNS.map((_, kind) => (number >> kind) & 1);
  return { X: wordsOf(genders, adjective), right: genders[adjective] };
}));

function untrained(seed) {
  let place = 0;
  const drawn = () => dice(seed, place++) - 0.5;
  return Object.fromEntries(Object.entries(SIZES).map(([name, size]) =>
    [name, WORDS.map(() => range(size).map(drawn))]));
}

// The head, and its gradients by the chain rule: what autograd does, written out. Vectors are rows ----

const transposed = (A) => A[0].map((_, j) => A.map((row) => row[j]));
const times = (A, B) => {
  const columns = transposed(B);
  return A.map((row) => columns.map((column) => dot(row, column)));
};

// X: n words × M features; `asking`: the words that ask, all of them by default. W: the matrices Q and K, M × d, and
// V, M × d_v.
function forward(X, W, asking = X) {
  const [Q, K, V] = [times(asking, W.Q), times(X, W.K), times(X, W.V)]; // project
  const scale = 1 / Math.sqrt(Q[0].length);
  const scores = times(Q, transposed(K)).map((row) => row.map((score) => score * scale)); // score, scale
  const weights = scores.map(softmax); // normalize
  return { X, asking, Q, K, V, scale, weights, Z: times(weights, V) }; // mix
}

// From the gradient of the loss for Z to those for W, backwards through every operation.
function backward({ X, asking, Q, K, V, scale, weights }, dZ) {
  const dV = times(transposed(weights), dZ); // mix
  const dWeights = times(dZ, transposed(V));
  const dScores = weights.map((row, i) => { // normalize: α (g − Σ α g), for each row
    const mean = dot(row, dWeights[i]);
    return row.map((weight, j) => weight * (dWeights[i][j] - mean) * scale); // scale
  });
  const dQ = times(dScores, K); // score
  const dK = times(transposed(dScores), Q);
  const words = transposed(X);
  return { Q: times(transposed(asking), dQ), K: times(words, dK), V: times(words, dV) }; // project
}

// Only the last word asks, and its answer is one number, a logit: the loss is log(1 + e^−z) if right is 1, and
// log(1 + e^z) if right is 0.
const chance = (z) => 1 / (1 + Math.exp(-z));
const surprise = (z, right) => {
  const against = right ? -z : z;
  return Math.max(against, 0) + Math.log1p(Math.exp(-Math.abs(against)));
};

// Each pair of entries of some matrices.
const joined = (A, B, join) => Object.fromEntries(Object.entries(A).map(([name, matrix]) =>
  [name, matrix.map((row, i) => row.map((entry, j) => join(entry, B[name][i][j])))]));

// The mean loss over sentences { X, right }, how many answers are right, and the gradients for W.
function lossOf(sentences, W) {
  const count = sentences.length;
  let [loss, hits, gradients] = [0, 0, joined(W, W, () => 0)];
  for (const { X, right } of sentences) {
    const passed = forward(X, W, X.slice(-1));
    const [[z]] = passed.Z;
    loss += surprise(z, right) / count;
    hits += Number(z > 0 === Boolean(right));
    const slopes = backward(passed, [[(chance(z) - right) / count]]);
    gradients = joined(gradients, slopes, (sum, more) => sum + more);
  }
  return { loss, hits, gradients };
}

// One step of gradient descent.
const descended = (W, gradients, rate) => joined(W, gradients, (weight, slope) => weight - rate * slope);

// A training: the matrices and the loss after each step that was asked for.
class Training {
  constructor(rate, seed) {
    this.rate = rate;
    this.states = [this.measured(untrained(seed))];
  }

  measured(W) {
    return { W, ...lossOf(SENTENCES, W) };
  }

  at(step) {
    while (this.states.length <= step) {
      const { W, gradients } = this.states.at(-1);
      this.states.push(this.measured(descended(W, gradients, this.rate)));
    }
    return this.states[step];
  }
}

const number = (x) => `${x < 0 ? "−" : ""}${(Math.floor(Math.abs(x) * 100 + 0.5) / 100).toFixed(2)}`;

function matricesHTML(W) {
  const heads = columnHeads(["q 1", "q 2", "k 1", "k 2", "v"]);
  const lines = WORDS.map((word, i) => {
    const cells = [W.Q, W.K, W.V].flatMap((matrix) => matrix[i]).map((x) =>
      `<td style="--w: ${percent(Math.min(Math.abs(x), DARK) / DARK) / 100}"${x < 0 ? ' data-negative=""' : ""}>` +
        `${number(x)}</td>`);
    return `<tr>${asIs(word, "th")}${cells.join("")}</tr>`;
  });
  return "<table><caption>W_Q, W_K and W_V, a row for each word: its query, its key and its value</caption>" +
    `<thead><tr><th>word</th>${heads}</tr></thead><tbody>${lines.join("")}</tbody></table>`;
}

function asksHTML(W, genders) {
  const passes = ADJECTIVES.map((_, adjective) => {
    const X = wordsOf(genders, adjective);
    return forward(X, W, X.slice(-1));
  });
  return table({
    caption: "Each adjective asks the nouns and itself: weights in percent, and whether it says feminine",
    corner: ["asks", "feminine", "is it"],
    rows: passes.map(({ Z: [[z]] }, i) => [ADJECTIVES[i], `${percent(chance(z))} %`, genders[i] ? "yes" : "no"]),
    columns: [...genders.map((gender, kind) => NOUNS[kind][gender]), "itself"],
    weights: passes.map(({ weights }) => weights[0]),
  });
}

const acrossOf = (step) => 40 + (375 * step) / STEPS;
const heightOf = (loss) => 160 - (140 * Math.min(loss, 0.8)) / 0.8;
const pointOf = ({ loss }, step) => [acrossOf(step), heightOf(loss)];

// The least loss of a head whose weights are all 1/4: the three nouns vote with values of one size.
function uniformLoss() {
  const votes = SENTENCES.map(({ X, right }) => {
    const feminine = X.slice(0, -1).map((word) => word.indexOf(1) % 2);
    return { vote: total(feminine.map((each) => 2 * each - 1)), right };
  });
  const lossAt = (size) => total(votes.map(({ vote, right }) => surprise(size * vote, right))) / votes.length;
  return Math.min(...range(4000).map((i) => lossAt(i / 1000)));
}

const saidOf = (step, { loss, hits }) =>
  `Step ${step}: loss ${loss.toFixed(3)}, ${hits} of ${SENTENCES.length} sentences right.`;

const state = (_, { rate, seed }) =>
  ({ rate: String(rate), seed, begun: new Training(rate, seed).at(0), uniform: uniformLoss() });

function html({ rate, seed, begun, uniform }) {
  const chosen = NOUNS.map((_, kind) => kind % 2); // the genders of the nouns that are shown first
  const nouns = NOUNS.map((pair, kind) => select(`Noun ${kind + 1}`, `noun${kind}`, [...pair.entries()], chosen[kind], `${DATA} `));
  const acts = Object.entries({ step: "One step", play: "Play", again: "Begin again" })
    .map(([act, name]) => button(`data-part="${act}"`, name));
  const steps = `name="step" min="0" max="${STEPS}" value="0" aria-valuetext="0 of ${STEPS}"`;
  return `<p>A sentence is three nouns and an adjective. The adjective needs the French gender of the noun that \
it fits: <q translate="no">hungry</q> that of the animal, <q translate="no">ripe</q> that of the fruit, <q translate="no">varnished</q> that of the furniture. \
The head begins with random matrices.</p>
<div class="cu-live-ask">${acts.join(" ")}
${select("Learning rate", "rate", RATES, rate)}
${numberField("Seed", "seed", 99, seed)}</div>
${slider("Step", steps, "at", `0 of ${STEPS}`, "cu-live-step")}
<p aria-live="polite" data-part="said">${saidOf(0, begun)}</p>
<div class="cu-live-beside"><div>${curveHTML(begun, uniform)}
<div class="cu-live-ask">${nouns.join("")}</div>
${region("Attention of the adjectives", "asks", asksHTML(begun.W, chosen))}</div>
${region("The three matrices", "matrices", matricesHTML(begun.W))}</div>
<p class="cu-live-note">Nothing is stored: your browser computes the gradients of the mean loss over all \
${SENTENCES.length} sentences, and goes one step of gradient descent at a time. The head knows the words by their \
places in a list only. No sentence is held out, so this shows what a head can fit, not what it would do with new \
words.</p>`;
}

// The loss over the steps, and the least that equal weights can reach.
function curveHTML(begun, uniform) {
  const [cx, cy] = pointOf(begun, 0).map((each) => each.toFixed(1));
  const least = heightOf(uniform);
  const steps = [0, 100, 200, 300].map((tick) => textAt(acrossOf(tick), 178, "middle", tick));
  const losses = [0, 0.4, 0.8].map((tick) => textAt(34, heightOf(tick) + 5, "end", tick));
  const label = `Loss over the steps; a line for the least loss with equal weights, ${uniform.toFixed(3)}`;
  return plot(label, "440 200", `<path class="cu-live-axis" d="M40 14V160H417"></path>${steps.join("")}${losses.join("")}
${textAt(415, 196, "end", "step")}
<path class="cu-live-truth" d="M40 ${least.toFixed(1)}H415"></path>
${textAt(415, (least - 6).toFixed(1), "end", `equal weights, at best ${uniform.toFixed(3)}`)}
<path class="cu-live-errors" data-part="curve" d="M${cx} ${cy}"></path>
<circle class="cu-live-answer" data-part="ball" cx="${cx}" cy="${cy}" r="6"></circle>`);
}

function mount(form) {
  const { field, part, show, write, put, say } = partsOf(form);
  let [training, made] = [null, ""];

  function draw() {
    const [rate, seed, step] = ["rate", "seed", "step"].map((name) => Number(field[name].value));
    if (!(Number.isInteger(seed) && seed >= 0 && seed <= 99)) return; // half written
    if (made !== `${rate} ${seed}`) [training, made] = [new Training(rate, seed), `${rate} ${seed}`];
    const now = training.at(step);
    const places = training.states.slice(0, step + 1).map(pointOf);
    const [cx, cy] = places.at(-1).map((each) => each.toFixed(1));
    put("curve", { d: line(places) });
    put("ball", { cx, cy });
    show("asks", asksHTML(now.W, NOUNS.map((_, kind) => Number(field[`noun${kind}`].value))));
    show("matrices", matricesHTML(now.W));
    write("said", saidOf(step, now));
    say(field.step, "at", `${step} of ${STEPS}`);
  }

  const set = follow(form, draw);
  const at = () => Number(field.step.value);

  const step = () => set("step", Math.min(at() + 1, STEPS));
  const { go, stop, isOn } = player(part("play"), [part("said")], {
    step, isLast: () => at() + 1 >= STEPS, end: () => set("step", STEPS),
  });
  const does = {
    step,
    again: () => set("step", 0),
    play() {
      if (at() === STEPS) set("step", 0);
      go();
    },
  };
  clicks(form, {
    part(act) {
      const running = isOn();
      if (running) stop();
      if (!running || act !== "play") does[act]();
    },
  });
}
