// One attention head, trained in the page. The training follows from rate and seed alone: at any step the page shows what
// so many steps have made of the matrices. learned_head.py writes the first state.
(globalThis.live_widgets ??= {}).learned_head = (() => {
  "use strict";
  const { dice, percent, range, table, follow } = globalThis.live_parts;
  const { forward, lossOf, descended, chance } = globalThis.live_head;
  const NOUNS = [["cat", "mouse"], ["lemon", "apple"], ["desk", "table"]]; // masculine and feminine in French
  const ADJECTIVES = ["hungry", "ripe", "varnished"]; // each fits one kind of noun
  const WORDS = [...NOUNS.flat(), ...ADJECTIVES];
  const SIZES = { Q: 2, K: 2, V: 1 };
  const STEPS = 300;
  const PAUSE = 40; // ms between two steps
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

  // HTML ----------------------------------------------------------------------------------------

  const number = (x) => `${x < 0 ? "−" : ""}${(Math.floor(Math.abs(x) * 100 + 0.5) / 100).toFixed(2)}`;

  function matricesHTML(W) {
    const heads = ["q 1", "q 2", "k 1", "k 2", "v"].map((name) => `<th scope="col">${name}</th>`).join("");
    const lines = WORDS.map((word, i) => {
      const cells = [W.Q, W.K, W.V].flatMap((matrix) => matrix[i]).map((x) =>
        `<td style="--w: ${percent(Math.min(Math.abs(x), DARK) / DARK) / 100}"${x < 0 ? ' data-negative=""' : ""}>` +
          `${number(x)}</td>`);
      return `<tr><th scope="row">${word}</th>${cells.join("")}</tr>`;
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

  const placeOf = ({ loss }, step) =>
    [40 + (375 * step) / STEPS, 160 - (140 * Math.min(loss, 0.8)) / 0.8].map((each) => each.toFixed(1));

  // The widget ----------------------------------------------------------------------------------

  return function learnedHead(form) {
    const field = form.elements;
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    let [timer, training, made] = [null, null, ""];

    function draw() {
      const [rate, seed, step] = ["rate", "seed", "step"].map((name) => Number(field[name].value));
      if (!(Number.isInteger(seed) && seed >= 0 && seed <= 99)) return; // half written
      if (made !== `${rate} ${seed}`) [training, made] = [new Training(rate, seed), `${rate} ${seed}`];
      const { W, loss, hits } = training.at(step);
      const places = training.states.slice(0, step + 1).map(placeOf);
      part("curve").setAttribute("d", `M${places.map((place) => place.join(" ")).join("L")}`);
      ["cx", "cy"].forEach((name, i) => part("ball").setAttribute(name, places.at(-1)[i]));
      part("asks").innerHTML = asksHTML(W, NOUNS.map((_, kind) => Number(field[`noun${kind}`].value)));
      part("matrices").innerHTML = matricesHTML(W);
      part("said").textContent = `Step ${step}: loss ${loss.toFixed(3)}, ${hits} of ${SENTENCES.length} sentences right.`;
      part("at").textContent = `${step} of ${STEPS}`;
      field.step.setAttribute("aria-valuetext", part("at").textContent);
    }

    const set = follow(form, draw, { written: true });
    const at = () => Number(field.step.value);

    function pause() {
      clearInterval(timer);
      timer = null;
      part("play").textContent = "Play";
      part("said").setAttribute("aria-live", "polite");
    }

    function play() {
      if (at() === STEPS) set("step", 0);
      if (globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches) {
        set("step", STEPS); // no animation: only its end is shown
        return;
      }
      part("play").textContent = "Pause";
      part("said").setAttribute("aria-live", "off"); // or each step would be read aloud
      timer = setInterval(() => {
        if (at() + 1 >= STEPS) pause();
        set("step", at() + 1);
      }, PAUSE);
    }

    const does = {
      step: () => set("step", Math.min(at() + 1, STEPS)),
      play: () => play(),
      again: () => set("step", 0),
    };
    form.addEventListener("click", ({ target }) => {
      const act = target.closest("button")?.dataset.part;
      if (!does[act]) return;
      const running = timer !== null;
      if (running) pause();
      if (!running || act !== "play") does[act]();
    });
  };
})();
