// A GPT: it writes token by token, from a seed, shows what each token was drawn from and looked at, and writes anew where
// a token may not be looked at.

const SHOWN = 8; // candidates for the next token
const PACE = 120; // milliseconds from token to token
const TOP_K = [0, 1, 3, 10, 50]; // so many tokens may be drawn; 0 stands for all
const ACTS = { write: "Write", one: "One token", again: "Begin again" };

// softmax(logits / temperature) over the k best; towards temperature 0 the best gets all. k = 0 stands for all.
function probabilities(logits, temperature, k) {
  const count = temperature === 0 ? 1 : k;
  const kept = count && new Set(largest(logits, count));
  const limited = Array.from(logits, (logit, id) => (!kept || kept.has(id) ? logit / (temperature || 1) : -Infinity));
  return softmax(limited);
}

// The token at which the sum of the probabilities passes a number from 0 to 1.
function drawn(p, number) {
  let sum = 0;
  const token = p.findIndex((each) => (sum += each) > number);
  return token < 0 ? p.indexOf(Math.max(...p)) : token;
}

// So many equally likely tokens would leave the choice as open.
const openness = (p) => Math.exp(-total(p.map((each) => (each > 0 ? each * Math.log(each) : 0))));

// before: what it was drawn from before tokens were forbidden; null where it has read another text since, and
// undefined where none is.
function nextHTML(logits, tokens, { p, follows, free, before }) {
  const plain = before === undefined ? probabilities(logits, 1, 0) : before;
  const shown = largest(logits, SHOWN);
  if (follows !== undefined && !shown.includes(follows)) shown.push(follows);
  const items = shown.map((id) => ({ text: tokens[id], choice: free ? id : null, now: p[id], before: plain?.[id] }));
  const said = follows === undefined ? "The next token" : `Here came ${asIs(tokens[follows], "strong")}. It`;
  const tick = before === undefined ? " (tick: the softmax without temperature and top k)"
    : before ? " (tick: before)" : ", having read another text than before";
  return `<p>${said} is drawn from${tick}:</p>${odds(items, "en", tokens[follows])}` +
    `<p>The choice is as open as among ${openness(p).toFixed(1)} equally likely tokens.</p>`;
}

// The text, and what the token behind `step` looks at; forbidden: positions that no later token may look at.
function linesHTML(squares, map, all, tokens, { step, forbidden, before }) {
  const other = before ? fresh(all, before) : [];
  const row = mapAt(squares, map)[step];
  const texts = [...all.map((id) => tokens[id]), ...(all.length > step + 1 ? [] : ["…"])];
  const words = texts.map((text, i) => ({ text, isSign: all[i] === EOS, pressed: forbidden.includes(i), sorts: [other.includes(i) && "fresh"] }));
  return arcs({ weights: row, now: step + 1 }, words, "Text: press a token to forbid it");
}

function beforeHTML(all, tokens, { forbidden, before }, decode) {
  if (!forbidden.length) return "";
  const names = forbidden.map((i) => `<em translate="no">${safe(tokens[all[i]].replace("␣", ""))}</em>`);
  return withoutHTML(names, before.join() === all.join() ? null : decode(before), "");
}

// A text ends with <eos>, or when the window is full; until then a token more is drawn.
const isEnd = (all, window) => all.length > window || (all.length > 1 && all.at(-1) === EOS);
function drawnOn(all, reading, [temperature, k], seed) {
  reading.read(all);
  return [...all, drawn(probabilities(reading.logits[all.length - 1], temperature, k), dice(seed, all.length))];
}

const writtenHTML = (subwords, ids) => `Written: ${asIs(subwords.decode(ids))}`;

// What is shown first: a beginning, and how it goes on.
function state([bundle], { prompt, temperature, seed }) {
  const window = bundle.config.max_len;
  const model = new GPT(bundle);
  const subwords = new Subwords(bundle.vocabularies);
  const reading = new Reading(model);
  const begun = [EOS, ...subwords.encode(prompt)];
  let ids = begun;
  do ids = drawnOn(ids, reading, [temperature, 0], seed); while (!isEnd(ids, window));
  const squares = model.layers("layers").map((name) => reading.map(`${name}.attention`));
  return { bundle, prompt, temperature, seed, subwords, begun, ids, squares, logits: reading.logits };
}

function html({ bundle, prompt, temperature, seed, subwords, begun, ids, squares, logits }) {
  const [map, step, window] = [String(squares.length - 1), begun.length - 1, bundle.config.max_len];
  const pieces = ids.map((id) => subwords.tokens[id]);
  const read = pieces.slice(0, -1);
  const view = { p: probabilities(logits[step], temperature, 0), follows: ids[step + 1], free: true };
  const name = safe(`${step + 1} of ${read.length}: ${read[step]}`);
  const written = `${ids.slice(begun.length).join(" ")}|${prompt}`;
  const buttons = Object.entries(ACTS).map(([act, text]) => button(`data-act="${act}"`, text));
  const temperatures = `name="temperature" min="0" max="2" step="0.1" value="${temperature}"`;
  const steps = `name="step" min="1" max="${read.length}" value="${step + 1}" aria-valuetext="${name}"`;
  return `<p>Begin a sentence, and a small GPT goes on. The arcs lead from a token to those that it looks at. Press a token to \
forbid it: no later one may look at it any more.</p>
<div class="cu-live-ask">
${sentenceField("Beginning", "prompt", prompt)}
${numberField("Seed", "seed", 9999, seed)}
</div>
<div class="cu-live-ask">
${slider("Temperature", temperatures, "temperature", temperature.toFixed(1), "cu-live-step cu-live-short")}
${select("Top k", "top_k", TOP_K.map((k) => [k, k || "all"]))}
</div>
<p class="cu-live-examples">${buttons.join(" ")}</p>
${checkpointSlider(bundle)}
<p class="cu-live-unknown" data-part="unread"></p>
<input type="hidden" name="written" value="${safe(written)}">
<input type="hidden" name="forbid" value="">
<div class="cu-live-stage" data-part="lines">${linesHTML(squares, map, ids, subwords.tokens, { step, forbidden: [] })}</div>
<p class="cu-live-before" data-part="before"></p>
<p data-part="full"${ids.length > window ? "" : ' hidden=""'}>Its window of ${window} tokens is full.</p>
<p class="cu-live-status" aria-live="polite" data-part="status">${writtenHTML(subwords, ids)}</p>
${slider("Token", steps, "step", name, "cu-live-step", `${DATA} `)}
<div class="cu-live-next" data-part="next">${nextHTML(logits[step], subwords.tokens, view)}</div>
<input type="hidden" name="map" value="${map}">
<div class="cu-live-heads" role="group" aria-label="Heads" data-part="maps">${headButtons(squares, map, true)}</div>
${closer(selfTable(squares, map, read, step))}
<p class="cu-live-note">This GPT was trained on \
the course's ${bundle.read.toLocaleString("en")} English sentences, with \
${subwords.words.length.toLocaleString("en")} different words, and \
nothing else. On sentences outside its training set its perplexity is ${Math.exp(bundle.loss).toFixed(1)}. What it \
writes often makes no sense.</p>`;
}

const BEGUN = { prompt: "she wants to", written: "|she wants to" };
const PLAIN = { temperature: "1", top_k: "0", seed: "0" };
const drawnIn = ({ elements }) => elements.written.value.split("|")[0].split(" ").filter(Boolean).length;
const CARDS = [
  {
    title: "A beginning", mark: ".cu-live-sentence", open: PLAIN,
    text: "Here you write how a text begins. The network runs in this page, and goes on.",
    task: "Write: the old woman",
    done: ({ elements }) => tokenize(elements.prompt.value).join(" ") === "the old woman",
  },
  {
    title: "Token by token", mark: ".cu-live-examples, [data-part=lines]", open: BEGUN,
    text: "The network draws one token, reads the text with it, and draws the next. <eos> ends the text.",
    task: "Press “One token” three times.", done: (form) => drawnIn(form) > 2,
  },
  {
    title: "Subwords", mark: '[data-part="unread"]', open: { prompt: "the old wuman" },
    text: "A token is a word or a piece of one; ␣ ends a word. A word outside its training set often falls into pieces.",
    task: "Put the known word in its place. How many tokens has the text now?",
    done: (form) => said(form, "unread") === "",
  },
  {
    title: "What comes next", mark: '[data-part="next"]', open: BEGUN,
    text: "The bars show the likeliest next tokens with their probabilities. Each of them is a button.",
    task: "Choose one that you did not expect. How does the text go on?", done: (form) => drawnIn(form) > 0,
  },
  {
    title: "Temperature", mark: ".cu-live-short, [data-part=next]", open: { ...BEGUN, temperature: "1" },
    text: "The logits are divided by the temperature before the softmax. At 0 the likeliest token gets all.",
    task: "Turn it to 0, then to 2. Among how many tokens is the choice as open?",
    done: ({ elements }) => elements.temperature.value === "2",
  },
  {
    title: "Top k", mark: "[name=top_k], [data-part=next]", open: { temperature: "1", top_k: "0" },
    text: "Only the k likeliest tokens may be drawn. The tick at a bar is the probability before this limit.",
    task: "Choose 3. Which tokens are left, and what is their sum?",
    done: ({ elements }) => elements.top_k.value === "3",
  },
  {
    title: "The seed", mark: "[name=seed], .cu-live-examples", open: { ...BEGUN, ...PLAIN },
    text: "The same seed, beginning and limits draw the same text. Another seed may draw another one.",
    task: "Take another seed, and press “Write”.",
    done: (form) => form.elements.seed.value !== "0" && said(form, "status") !== "",
  },
  {
    title: "What a token attends to", mark: "[data-part=lines], [data-part=maps]", open: { map: "1" },
    text: "An arc is as wide as its weight, in the mean of the last layer or in the head that is chosen.",
    task: "Choose other heads. Is there one in which the token before gets most of the weight?",
    done: ({ elements }) => elements.map.value !== "1",
  },
  {
    title: "Forbid a token", mark: "[data-part=lines], [data-part=before]", open: { ...BEGUN, ...PLAIN },
    text: "No later token may look at a forbidden one. The rest is written anew, with the same seed.",
    task: "Press the token wants, then “Write”.",
    done: ({ elements }) => elements.forbid.value === "2" && drawnIn({ elements }) > 0,
  },
  {
    title: "No look ahead", mark: '[data-part="table"]', open: { map: "0.0", cell: "", operation: "mask" },
    text: "No token may attend to a later one: above the diagonal of the table all weights are 0.",
    task: "Choose a number above the diagonal, with the mouse, or with the arrow keys and Enter.", done: isAhead,
  },
  {
    title: "Where a number comes from", mark: '[data-part="explain"]',
    open: { map: "0.0", cell: "1.0", operation: "project" },
    text: "Query and key of the number that you choose, and how its weight is computed, operation by operation.",
    task: "Go from project to merge. Where does the sum of the row stand?",
    done: ({ elements }) => elements.cell.value !== "" && elements.operation.value === "merge",
  },
];

function mount(form, [bundle]) {
  const readings = new Map();
  const chosen = checkpoint(form, bundle, (packed) => new GPT(packed));
  const subwords = new Subwords(bundle.vocabularies);
  const { tokens } = subwords;
  const window = bundle.config.max_len;
  const { field, part, show, write: tell, say } = partsOf(form);
  let timer = 0;
  let [reading, squares] = [null, null]; // of the chosen model
  let writer = field.checkpoint.value; // the model that wrote the text
  let before = null; // the text that stood there before a token was forbidden, and what it was drawn from
  const names = () => reading.model.layers("layers").map((name) => `${name}.attention`);

  // The beginning as ids. `written` holds what was drawn, behind the beginning for which it was drawn.
  const begun = () => [EOS, ...subwords.encode(field.prompt.value)].slice(0, window);
  function written() {
    const [ids, ...prompt] = field.written.value.split("|");
    if (prompt.join("|") !== field.prompt.value) return [];
    const all = ids.split(" ").filter(Boolean).map(Number);
    return all.filter((id) => Number.isInteger(id) && id >= 0 && id < tokens.length);
  }
  const text = () => [...begun(), ...written()].slice(0, window + 1);
  const ended = (all) => isEnd(all, window);
  const remember = (all) => set("written", `${all.slice(begun().length).join(" ")}|${field.prompt.value}`);

  const limits = () => [Number(field.temperature.value), Number(field.top_k.value)];
  // The text with one token more.
  const longer = (all) => drawnOn(all, reading, limits(), Number(field.seed.value));

  function write(all) {
    let next = longer(all);
    timer = 0;
    while (isCalm() && !ended(next)) next = longer(next);
    if (!ended(next)) timer = setTimeout(() => write(next), PACE);
    remember(next);
  }

  // What a model has read is kept with it.
  function take(model) {
    if (!model) return false;
    if (reading && model !== reading.model) reading.model.forbidden = [];
    if (!readings.has(model)) readings.set(model, new Reading(model));
    reading = readings.get(model);
    return true;
  }

  // What the chosen model makes of a beginning, at once.
  function rewrite(all = begun()) {
    while (!ended(all)) all = longer(all);
    field.written.value = `${all.slice(begun().length).join(" ")}|${field.prompt.value}`;
    return all;
  }

  // Positions that no later token may look at. Each still looks at itself, so a look is always left.
  const forbidden = () => [...new Set(field.forbid.value.split(",").filter(Boolean).map(Number))]
    .filter((i) => Number.isInteger(i) && i >= 0 && i < text().length - 1);

  // Forbids the looks; what comes after them is written anew. isWritten: a text is there already, from an address.
  function forbid(isWritten) {
    reading.model.forbidden = [];
    reading.restart();
    const keys = forbidden();
    if (!keys.length) {
      if (before) field.written.value = before.written;
      before = null;
      return;
    }
    if (!before) {
      const written = field.written.value;
      const all = isWritten ? rewrite() : text();
      reading.read(all.slice(0, window));
      before = { written: isWritten ? field.written.value : written, all, logits: [...reading.logits] };
      if (isWritten) field.written.value = written;
      reading.restart();
    }
    reading.model.forbidden = keys.map((key) =>
      ({ place: /attention/, queries: range(window - key - 1).map((i) => key + 1 + i), keys: [key] }));
    if (!isWritten) rewrite(text().slice(0, Math.max(begun().length, Math.min(...keys) + 1)));
  }

  // `changed`: the control that a reader moved; without it all is drawn. `filled`: those that an address filled.
  function draw(changed, filled = []) {
    needMap(form);
    if (changed !== "tour") drawAll(changed, filled);
    tour.draw();
  }

  function drawAll(changed, filled) {
    if (changed !== "written") stop();
    if (!take(chosen(() => draw(changed, filled)))) return; // it is loaded, and then drawn
    const other = field.checkpoint.value !== writer; // the text is by another model
    writer = field.checkpoint.value;
    if (changed === "prompt" || other) {
      reading.model.forbidden = [];
      before = null;
      field.forbid.value = filled.includes("forbid") ? field.forbid.value : "";
      if (changed === "prompt") reading.restart();
    }
    if (other && !filled.includes("written")) rewrite();
    if (changed === "forbid" || changed === undefined) forbid(changed === undefined && filled.includes("written"));
    const whole = [undefined, "prompt", "written", "checkpoint", "forbid"].includes(changed) || !squares;
    const all = text();
    const read = all.slice(0, ended(all) ? -1 : window);
    if (whole) {
      reading.read(read);
      squares = names().map((name) => reading.map(name));
      field.step.max = read.length;
      if (["prompt", "written", "checkpoint"].includes(changed)) field.step.value = read.length;
      if (before && (changed === "forbid" || !filled.includes("step"))) field.step.value = firstOther(all);
      show("unread", subwords.unreadHTML(field.prompt.value));
      become(part("maps"), headButtons(squares, field.map.value, true));
      if (!timer) show("status", ended(all) ? writtenHTML(subwords, all) : "");
      part("full").hidden = all.length <= window;
    }
    const step = Math.min(Number(field.step.value), read.length) - 1;
    const pieces = read.map((id) => tokens[id]);
    const p = probabilities(reading.logits[step], ...limits());
    const same = before && all.slice(0, step + 1).every((id, i) => id === before.all[i]) && before.logits[step];
    const view = {
      p, follows: all[step + 1], free: step >= begun().length - 1,
      before: before ? (same ? probabilities(same, ...limits()) : null) : undefined,
    };
    const cut = { step, forbidden: forbidden(), before: before?.all };
    become(part("lines"), linesHTML(squares, field.map.value, all, tokens, cut));
    show("before", beforeHTML(all, tokens, cut, (ids) => subwords.decode(ids)));
    if (whole || ["step", "map"].includes(changed)) show("table", selfTable(squares, field.map.value, pieces, step));
    show("next", nextHTML(reading.logits[step], tokens, view));
    if (field.cell.value) reading.again();
    explain(form, reading.model, names(), field.map.value, { queries: pieces, keys: pieces, languages: ["en", "en"] });
    tell("temperature", limits()[0].toFixed(1));
    say(field.step, "step", `${step + 1} of ${read.length}: ${pieces[step]}`);
  }

  // The step before the first token that is another than before.
  const firstOther = (all) => Math.max(1, Math.min(all.length - 1, ...all.flatMap((id, i) => (id === before.all[i] ? [] : [i]))));

  function undo() {
    if (!field.forbid.value) return false;
    set("forbid", "");
    return true;
  }

  function stop() {
    clearTimeout(timer);
    timer = 0;
  }

  const does = {
    write: () => write(ended(text()) ? begun() : text()),
    one: () => !ended(text()) && remember(longer(text())),
    again: () => remember(begun()),
  };
  const tour = startTour(form, CARDS);
  take(chosen(draw));
  const set = follow(form, draw);
  show("unread", subwords.unreadHTML(field.prompt.value));
  listenToTable(part("table"), set);
  listenToLines(part("lines"), {
    now: (i) => i > 0 && String(i) !== field.step.value && set("step", String(i)),
    forbid(i) {
      if (!squares) draw();
      const list = forbidden();
      if (i < text().length - 1) set("forbid", (list.includes(i) ? list.filter((each) => each !== i) : [...list, i]).join(","));
    },
    undo,
  });
  form.addEventListener("click", stop);
  clicks(form, {
    act: (name) => does[name](),
    choice(id) {
      remember([...text().slice(0, Number(field.step.value)), Number(id)]);
      field.step.focus(); // the button is gone
    },
    for: correct(field.prompt, set),
  });
}
