// A GPT of characters that learns the reader's text in a worker: its loss falls, and now and then it writes a line.

const { Training, learner } = learning(erf);
const RATES = ["0.001", "0.003", "0.01"];
const [SHORTEST, LONGEST] = [500, 50000]; // characters of a text
const STEPS = 2000;
const KEPT = [0, 5, 10, 25, 50, 100, 200, 400, 800, 1600]; // steps whose line stays

// A worker leaves the page free. It is given its program as text, so that it runs from a file, too.
const PROGRAM = `const hear = (${learning})(${erf}).learner((told) => postMessage(told));
onmessage = ({ data }) => hear(data);`;

function employed(tell) {
  try {
    const worker = new Worker(URL.createObjectURL(new Blob([PROGRAM], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => tell(data);
    return { send: (message) => worker.postMessage(message), end: () => worker.terminate() };
  } catch { // no workers here: the page itself takes a step at a time
    const send = learner(tell);
    return { send, end: () => send({ run: false }) };
  }
}

const MOST_REPEATED = 0.5; // of the validation text
// Steps on the axis, which grows with those that were made.
const axisOf = (step) => [100, 200, 500, 1000].find((most) => step <= most) ?? STEPS;
const across = (axis) => (step) => 40 + (370 * step) / axis;
const lossHeight = (most) => (loss) => 170 - (150 * Math.min(loss, most)) / most;

function state(_, { text, rate, seed }) {
  const training = new Training(text, { seed, rate });
  return { text, rate: String(rate), seed, begun: { step: 0, ...training.seen() }, about: training.about() };
}

// The least validation loss that counting reaches, and from how many letters before.
const countedSaid = ({ loss }) => `counting: ${fixed(loss, 2)}`;
const countedHTML = ({ counted: { loss, letters }, repeated }) => `<p>The dashed line is the baseline, which only counts: how often \
did each letter come after the same ${letters} letters? Its loss is ${fixed(loss, 2)}, and the GPT has to come below it.\
${repeated > MOST_REPEATED ? ` <strong>Your text repeats itself</strong>: ${percent(repeated)} % of the validation text stands in the training \
text word for word, so the counts have its answers, and the GPT hardly beats them. Take a text that says everything once.` : ""}</p>`;

// What the lines are, each with a piece of it.
const LEGEND = [["cu-live-errors", "training text", 150], ["cu-live-fit", "validation text", 288]].map(([sort, text, x]) =>
  `<path class="${sort}" d="M${x} 17h20"></path>${textAt(x + 26, 22, "start", text)}`).join("");

const mostOf = ({ letters }) => Math.ceil(Math.log(letters) + 0.5);

function plotHTML(about, axis = axisOf(0)) {
  const { counted } = about;
  const most = mostOf(about);
  const height = lossHeight(most);
  const steps = [0, axis / 2, axis].map((step) =>
    textAt(across(axis)(step), 188, step === axis ? "end" : "middle", step === axis ? `${step} steps` : step));
  const losses = range(most + 1).map((loss) => textAt(32, height(loss) + 5, "end", loss));
  const least = height(counted.loss);
  const label = `Loss over ${axis} steps, on the training text and on the validation text; a dashed line for the baseline, the least loss by counting, ` +
    fixed(counted.loss, 2);
  return plot(label, "440 194", `<path class="cu-live-axis" d="M40 14V170H412"></path>${steps.join("")}${losses.join("")}
<path class="cu-live-truth" d="M40 ${least.toFixed(1)}H410"></path>
${textAt(410, (least - 6).toFixed(1), "end", countedSaid(counted))}
${LEGEND}
<path class="cu-live-errors" data-part="loss" d=""></path>
<path class="cu-live-fit" data-part="held" d=""></path>`);
}

const lineHTML = ({ step, text }) => `<tr><th scope="row">${step}</th>${asIs(text.replace(/\s+/g, " "), "td")}</tr>`;

const saidOf = ({ step, heldOut, loss }) =>
  `Step ${step}: ${loss === undefined ? "" : `training loss ${fixed(loss, 2)}, `}validation loss ${fixed(heldOut, 2)}.`;

function html({ text, rate, seed, begun, about }) {
  return `<label class="cu-live-own"><span class="cu-live-label">Your text</span>
<textarea ${OURS} ${DATA} data-part="text" rows="5" maxlength="${LONGEST}" spellcheck="false">${safe(text)}</textarea></label>
<div class="cu-live-ask">${button('data-part="learn" aria-pressed="false"', "Learn")}
${button('data-part="again"', "Begin again")}
${select("Learning rate", "rate", RATES, rate)}
${numberField("Seed", "seed", 99, seed)}</div>
<p aria-live="polite" data-part="said">${saidOf(begun)}</p>
<div class="cu-live-beside"><div><div data-part="plot">${plotHTML(about)}</div><div data-part="counted">${countedHTML(about)}</div></div>
<table class="cu-live-verse"><caption>What it writes</caption><thead><tr>${columnHeads(["step", "text"])}</tr></thead>\
<tbody data-part="lines">${lineHTML(begun)}</tbody></table></div>
<div class="cu-live-ask">${sentenceField("Beginning", "beginning", "")}
${slider("Temperature", 'name="temperature" min="0" max="2" step="0.1" value="0.8"', "temperature", "0.8")}
${button('data-part="write"', "Write")}</div>
<p class="cu-live-written" ${DATA} aria-live="polite" data-part="written"></p>
<p class="cu-live-note">The losses are in nats per letter. The last tenth of the text is the validation text, and the GPT is \
never trained on it. The baseline is the best n-gram model of the same nine tenths (modified Kneser–Ney). The GPT has two layers of \
48 features and looks 32 letters back. Your text doesn't leave this page.</p>`;
}

function mount(form) {
  const { field, part, show, write, put } = partsOf(form);
  let [worker, drawn] = [null, false];
  let told = { steps: [], seen: [], about: null, axis: 0 }; // about: the text, once the worker has read it
  let tries = 0; // each "Write" draws anew
  const running = () => part("learn").getAttribute("aria-pressed") === "true";

  const press = (yes) => {
    put("learn", { "aria-pressed": yes });
    write("learn", yes ? "Stop" : told.steps.length ? "Go on" : "Learn");
    put("said", { "aria-live": yes ? "off" : "polite" }); // or each step would be read aloud
  };

  function path(points) {
    const [x, y] = [across(told.axis), lossHeight(mostOf(told.about))];
    return points.length > 1 ? line(points.map(([step, loss]) => [x(step), y(loss)])) : "";
  }

  function draw() {
    drawn = false;
    const { steps, seen, about } = told;
    if (!about) return; // it begins anew
    const axis = axisOf(steps.at(-1)?.[0] ?? 0);
    if (axis !== told.axis) show("plot", plotHTML(about, axis));
    told.axis = axis;
    put("loss", { d: path(steps) });
    put("held", { d: path(seen.map(({ step, heldOut }) => [step, heldOut])) });
    const [last, [step, loss]] = [seen.at(-1), steps.at(-1) ?? [0]];
    write("said", saidOf({ ...last, step, loss }));
    show("lines", seen.filter((each) => KEPT.includes(each.step) || each === last).map(lineHTML).join(""));
  }

  function hear(message) {
    const { step, loss, text, about, written } = message;
    if (written !== undefined) return write("written", written);
    if (about) {
      told = { steps: [], seen: [], about, axis: 0 };
      show("counted", countedHTML(about));
    }
    if (step) told.steps.push([step, loss]);
    if (text !== undefined) told.seen.push(message);
    if (step >= STEPS) run(false);
    if (!drawn) requestAnimationFrame(draw);
    drawn = true;
  }

  function run(yes) {
    worker.send({ run: yes });
    press(yes);
  }

  // A new training of what stands there; it waits for "Learn".
  function begin() {
    const [text, seed, rate] = [part("text").value, Number(field.seed.value), Number(field.rate.value)];
    const wrong = [
      [text.length < SHORTEST, `A text of ${SHORTEST} letters or more is needed; here are ${text.length}.`],
      [new Set(text).size > 500, "A text of at most 500 different letters is needed."],
      [!(Number.isInteger(seed) && seed >= 0 && seed <= 99), "A seed from 0 to 99 is needed."],
    ].find(([is]) => is);
    worker?.end();
    told = { steps: [], seen: [], about: null, axis: 0 };
    press(false);
    part("learn").disabled = Boolean(wrong);
    if (wrong) return write("said", wrong[1]);
    worker = employed(hear);
    worker.send({ begin: { text, seed, rate } });
  }

  function compose() {
    if (!worker) begin();
    if (part("learn").disabled) return;
    const [beginning, temperature] = [field.beginning.value || undefined, Number(field.temperature.value)];
    worker.send({ write: { beginning, temperature, seed: (tries += 1) } });
  }

  clicks(form, {
    part(act) {
      if (act === "write") return compose();
      if (act === "again" || !worker) begin();
      if (act === "learn") run(!running());
    },
  });
  let waiting = null;
  part("text").addEventListener("input", () => {
    clearTimeout(waiting);
    waiting = setTimeout(begin, 400); // not at each key
  });
  follow(form, (name) => {
    write("temperature", Number(field.temperature.value).toFixed(1));
    if (!["beginning", "temperature"].includes(name)) begin();
  });
}
