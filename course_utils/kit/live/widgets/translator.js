// The translator: what it says, where it looks for each word, and what it says when it may not look there.

const SHOWN = 5; // candidates for the next word
const REST = 250; // ms without a key: what a reader writes is then translated
const INVITATION = "Press an English word to forbid it, or choose a French word to see where it looks.";
const NOTHING = { words: [], looks: [] };
const LARGER = "everyday_fr"; // a model of pieces of words
const LONGEST = 40; // tokens of a translation
const UNSURE = 0.5; // a word that is less probable is marked
const KINDS = { cross: ".cross_attention", decoder: ".self_attention", encoder: ".attention" };
const LABELS = [["cross", "French to English"], ["decoder", "French to French"], ["encoder", "English to English"]];
const TITLES = {
  cross: "Cross-attention",
  decoder: "Self-attention of the decoder",
  encoder: "Self-attention of the encoder",
};
// Sentences, and the word to forbid: then the translator says something else. None is asked for in chapter 00.
const FINDS = [
  ["please take the train .", 3], ["is the bakery open ?", 3], ["julia is waiting for him .", 3], ["she has a black cat .", 5],
];

// What it may not look at -----------------------------------------------------------------------

// words: of the source, at every step; looks: [row, word], rows of the maps. As many as leave a look at every step.
function forbiddenLooks(forbid, line, count) {
  const numbers = (text) => text.split(".").map(Number);
  const among = (text) => [...new Set(text.split(",").filter(Boolean))];
  const isPlace = (j) => Number.isInteger(j) && j >= 0 && j < count;
  const words = among(forbid).map(Number).filter(isPlace).slice(0, count - 1);
  const looks = [];
  for (const [i, j] of among(line).map(numbers)) {
    const here = looks.filter(([step]) => step === i).length + words.length;
    if (isPlace(j) && i >= 0 && i < LONGEST && !words.includes(j) && here < count - 1) looks.push([i, j]);
  }
  return { words, looks };
}

// Forbids a model these looks and no others. source: words with their places; deeper: in the encoder, too.
function forbid(model, source, { words, looks }, deeper) {
  const keys = words.flatMap((j) => source[j].places);
  model.forbidden = [
    { place: deeper ? /cross|encoder/ : /cross/, keys },
    ...looks.map(([query, j]) => ({ place: /cross/, queries: [query], keys: source[j].places })),
  ];
}

// What a translation looks like from inside ---------------------------------------------------

// A sentence ends with a sign, also where a reader has not written it yet; the larger model has learned to do without.
function heard({ language, bundle }, text) {
  return language.read(bundle.pieces || /[.?!…]\s*$/.test(text) || !text.trim() ? text : `${text} .`);
}

// A question: asked, what a language has read of a sentence; beams; away, what it may not look at, and whether the
// encoder may not either.
function translate(who, { asked, beams, away, deeper }) {
  forbid(who.model, asked.words, away, deeper);
  return translated(who, asked, beams);
}

// asked: what a language has read of a sentence.
function translated({ model, language }, asked, beams) {
  const state = model.start(asked.ids);
  const reading = new Reading(model, () => model.fork(state));
  const watched = [];
  const watch = (grown, ended) => watched.push({ grown, ended });
  const said = beams > 1
    ? beamSearch(model, asked.ids, beams, LONGEST, 0.6, watch)
    : greedy(reading, asked.ids, LONGEST, state);
  reading.read([BOS, ...said]);
  const maps = {
    encoder: namesOf(model, KINDS.encoder).map((name) => model.maps[name]),
    decoder: namesOf(model, KINDS.decoder).map((name) => reading.map(name)),
    cross: namesOf(model, KINDS.cross).map((name) => reading.map(name, asked.ids.length)),
  };
  const french = language.says([...said, EOS]);
  if (said.length === LONGEST) french.at(-1).text = "…";
  const tree = beams > 1 && growTree(watched, beams, said);
  const tokens = {
    source: asked.ids.map((id, i) => asked.words.find(({ places }) => places.length === 1 && places[0] === i)?.text ??
      language.token(id)),
    read: [BOS, ...said].map(language.token),
    says: [...said.map(language.token), french.at(-1).text],
  };
  return {
    language, source: asked.words, says: french, text: french.slice(0, -1).map(({ text }) => text).join(" "), tokens,
    ids: [...said, EOS], next: reading.logits.map(softmax), maps, tree, reading,
  };
}

// The attentions of one kind, layer by layer.
const namesOf = (model, kind) => Object.keys(model.maps).filter((name) => name.endsWith(kind));

// The tokens at the rows and columns of a map, and their languages.
function wordsOf(trace, kind) {
  const english = kind === "encoder";
  return {
    queries: english ? trace.tokens.source : trace.tokens.read,
    keys: kind === "decoder" ? trace.tokens.read : trace.tokens.source,
    languages: [english ? "en" : "fr", kind === "decoder" ? "fr" : "en"],
  };
}

// The weights of French words for English words.
const between = ({ language, says, source, maps }, map) => language.words(mapAt(maps.cross, map), says, source);

// The word that is now at first: the one that looks most at the word to forbid, or else farthest from its own place.
function firstWord(trace) {
  const { says, source, maps } = trace;
  const [, asked] = FINDS.find(([sentence]) => sentence === source.slice(0, -1).map(({ text }) => text).join(" ")) ?? [];
  const looks = between(trace, String(maps.cross.length - 1));
  if (asked !== undefined) return largest(looks.map((row) => row[asked]), 1)[0];
  const isWord = ({ text }) => /^\p{L}/u.test(text);
  const far = looks.map((row, i) =>
    Math.max(0, ...Array.from(row, (w, j) => (isWord(says[i]) && isWord(source[j]) ? w * Math.abs(i - j) : 0))));
  return far.indexOf(Math.max(...far));
}

// Whether both have read the same before this word, and the first word that is another.
const hasReadTheSame = (trace, before, i) => trace.ids.slice(0, trace.says[i].places[0]).every((id, row) => id === before.ids[row]);
const firstOther = (trace, before) => trace.says.findIndex(({ text }, i) => text !== before.says[i]?.text);
const sureOf = ({ next, ids }, { places }) => places.reduce((p, row) => p * next[row][ids[row]], 1);

// The word that a row of the maps belongs to.
const wordAt = ({ says }, row) => says.findIndex(({ places }) => places.includes(row));

function linesHTML(trace, before, { map, step }, { words, looks }) {
  const texts = ({ says }) => says.map(({ text }) => text);
  const other = fresh(texts(trace), texts(before));
  const above = trace.source.map(({ text }, j, { length }) => ({ text, isSign: j === length - 1, pressed: words.includes(j) }));
  const below = trace.says.map((word, i) => {
    const [text, sure] = [word.text, sureOf(trace, word)];
    const sorts = [other.includes(i) && "fresh", sure < UNSURE && "unsure"];
    return { text, isSign: text === "<eos>", sorts, title: sure < UNSURE ? `${Math.round(100 * sure)} %` : "" };
  });
  const forbidden = looks.map(([row, j]) => `${wordAt(trace, row)}.${j}`);
  const view = { weights: between(trace, map), now: step, forbidden };
  return rows(view, [above, below], ["English: press a word to forbid it", "French: choose a word"], ["en", "fr"]);
}

function beforeHTML(trace, before, { words, looks }) {
  if (!words.length && !looks.length) return INVITATION;
  const names = [
    ...words.map((j) => `<em translate="no">${safe(trace.source[j].text)}</em>`),
    ...looks.map(([row, j]) => `<em translate="no">${safe(trace.source[j].text)}</em> at word ${wordAt(before, row) + 1}`),
  ].filter((text, i, every) => every.indexOf(text) === i);
  return withoutHTML(names, trace.text === before.text ? null : before.text, ' lang="fr"');
}

const deeperHTML = ({ source }, { words }) => (words.length
  ? `Forbid this in the encoder as well, where other words have read ${words.map((j) => `<em translate="no">${safe(source[j].text)}</em>`).join(", ")}`
  : "");

const unsureHTML = (trace) => (trace.says.some((word) => sureOf(trace, word) < UNSURE)
  ? '<span class="unsure">Dotted</span>: it gave this word less than 50 %.' : "");

function nextHTML(trace, before, step) {
  const { text, places: [row, ...more] } = trace.says[step];
  const now = trace.next[row];
  const other = trace !== before;
  const then = other && hasReadTheSame(trace, before, step) ? before.next[row] : null;
  const best = largest(now, SHOWN);
  if (then && !best.includes(largest(then, 1)[0])) best[SHOWN - 1] = largest(then, 1)[0];
  const items = best.map((id) => ({ text: trace.language.token(id), now: now[id], before: then?.[id] }));
  const what = then ? " Tick: before." : other ? " It has read other words than before: no bar to compare." : "";
  const pieces = more.length ? `, in ${more.length + 1} pieces; the bars are of the first` : "";
  return `<p>Word ${step + 1} of ${trace.says.length}: it says <strong translate="no" lang="fr">${safe(text)}</strong>${pieces}.` +
    `${what}</p>${odds(items, "fr", trace.language.token(trace.ids[row]))}`;
}

function tableHTML(trace, { kind, map, step }) {
  const english = kind === "encoder";
  const { queries, keys, languages } = wordsOf(trace, kind);
  return table({
    caption: `${TITLES[kind]}, ${named(map)}: each row in percent`,
    corner: english ? ["word"] : ["reads", "says"],
    rows: queries.map((text, i) => (english ? [text] : [text, trace.tokens.says[i]])),
    columns: keys,
    weights: mapAt(trace.maps[kind], map),
    languages,
    now: english ? -1 : trace.says[step].places[0],
  });
}

// Who answers in the page itself, at once.
function answering(bundle) {
  const who = { bundle, model: new Transformer(bundle), language: languageOf(bundle) };
  return { ...who, here: () => who, answer: (question) => translate(who, question) };
}

// A worker answers as the page would: it is given a bundle, then questions. What it cannot send, the page has.
function serve() {
  let who = null;
  globalThis.onmessage = ({ data: { bundle, question } }) => {
    if (bundle) {
      who = answering(bundle);
      who.answer({ asked: heard(who, "a"), beams: 1, away: NOTHING }); // unpacks the weights before a reader asks
    } else {
      const { language, reading, ...trace } = who.answer(question);
      globalThis.postMessage(trace);
    }
  };
}

// Who answers in a worker, with a promise, so that the page stays free; where workers are refused, in the page. The worker's
// program is text, so that it runs from a file, too: `liveWidget` is the function around this script.
function employed(bundle) {
  const language = languageOf(bundle);
  let own = null;
  const here = () => (own ??= answering(bundle));
  const onPage = (question) => here().answer(question);
  const waiting = []; // { question, done } of those that the worker has
  let worker = null;
  const refused = () => {
    worker = null;
    for (const { question, done } of waiting.splice(0)) done(onPage(question));
  };
  try {
    worker = new Worker(URL.createObjectURL(new Blob([`(${liveWidget})();`], { type: "text/javascript" })));
    worker.onmessage = ({ data }) => waiting.shift().done({ ...data, language });
    worker.onerror = refused;
    worker.postMessage({ bundle });
  } catch {
    refused();
  }
  const answer = (question) => (worker ? new Promise((done) => {
    waiting.push({ question, done });
    worker.postMessage({ question });
  }) : onPage(question));
  return { bundle, language, here, answer };
}

const after = (answer, then) => (answer instanceof Promise ? answer.then(then) : then(answer));

// What is shown first, of a sentence whose words it knows.
function state([bundle], options) {
  const who = answering(bundle);
  return { ...options, bundle, trace: translated(who, heard(who, options.sentence), 1) };
}

function examplesHTML(bundle, compact) {
  const cut = ([sentence, out], i) => button(`${DATA} data-find="${i}"`, sentence.split(" ")
    .map((word, j) => (j === out ? `<s>${word}</s>` : word)).join(" "));
  const example = (each, i) => `<span>${each.said === each.right ? "" : "it gets this one wrong: "}` +
    `${button(`${DATA} data-example="${i}"`, safe(each.sentence))}</span>`;
  const line = (name, buttons) => `<p class="cu-live-examples cu-live-tries"><span>${name}</span> ${buttons.join(" ")}</p>`;
  return line("Try", FINDS.map(cut)) + (compact ? "" : line("Examples", bundle.examples.map(example)));
}

const headsHTML = ({ maps }, { kind, map }) => `<p>Each picture is one head of the ${TITLES[kind].toLowerCase()}. Choose one to ` +
  `see its ${kind === "cross" ? "lines" : "numbers"}; the first is the mean over the heads of the last layer.</p>${headButtons(maps[kind], map)}`;

function html({ bundle, sentence, checkpoints, compact, everyday, trace }) {
  const view = { kind: "cross", map: String(trace.maps.cross.length - 1), step: firstWord(trace) };
  const [right, count] = bundle.score;
  const lede = compact ? "" : "<p>Write an English sentence. Lines lead from a French word to those that it attends to.</p>\n";
  const heads = '<div class="cu-live-heads" role="group" aria-label="Heads" data-part="maps">' +
    `${headsHTML(trace, view)}</div>\n`;
  const more = '<div class="cu-live-ask"><fieldset class="cu-live-kinds"><legend>Attention</legend> ' +
    `${radios("kind", LABELS, view.kind)}</fieldset>\n${select("Search", "search", [["1", "greedy"], ["4", "beam of 4"]])}` +
    `</div>\n<div data-part="tree"></div>\n${compact ? heads : ""}`;
  return `${lede}<div class="cu-live-ask">
${sentenceField("English", "sentence", sentence)}
${everyday ? select("Model", "model", [["", `small, of ${bundle.vocabularies.source.length - 4} words`], ["everyday", "larger, for your own sentences"]]) : ""}
</div>
${examplesHTML(bundle, compact)}
${checkpoints ? checkpointSlider(bundle) : ""}
<p class="cu-live-unknown" aria-live="polite" data-part="unknown"></p>
<div data-part="inside">
<input type="hidden" name="forbid" value=""><input type="hidden" name="line" value="">\
<input type="hidden" name="step" value="${view.step + 1}">
<div class="cu-live-stage" data-part="lines">${linesHTML(trace, trace, view, NOTHING)}</div>
<p class="cu-heard" role="status" translate="no" lang="fr" data-part="said">${safe(trace.text)}</p>
<p class="cu-live-before" data-part="before">${INVITATION}</p>
<p role="status" data-part="told"></p>
<p class="cu-live-aside" data-part="right"></p>
<p class="cu-live-aside" data-part="unsure">${unsureHTML(trace)}</p>
<p class="cu-live-aside" data-part="deeper" hidden=""><label>${input("checkbox", 'name="encoder"')} <span></span></label></p>
<div class="cu-live-next" data-part="next">${nextHTML(trace, trace, view.step)}</div>
<input type="hidden" name="map" value="${view.map}">
${compact ? "" : heads}${closer(tableHTML(trace, view), more)}
</div>
${compact ? "" : `<p class="cu-live-note">It knows ${bundle.vocabularies.source.length - 4} English words. On \
${count} test sentences its exact-match accuracy is ${percent(right / count)} %. Expect less of your own sentences, because \
most of its training set is made by the same rules as the test sentences.</p>`}`;
}

const CARDS = [
  {
    title: "Any sentence", mark: ".cu-live-ask", open: { search: "1", kind: "cross" },
    text: "Here you write in English, and below you read the French. The network runs in this page.",
    task: "Write: he's calm .",
    done: ({ elements }) => tokenize(elements.sentence.value).join(" ") === "he's calm .",
  },
  {
    title: "Words that it does not know", mark: '[data-part="unknown"]',
    open: { sentence: "the old wuman is sleeping ." },
    text: "A word that it did not learn is read as <unk>. The page names it, and offers words that are spelled alike.",
    task: "Put the known word in its place.", done: (form) => said(form, "unknown") === "",
  },
  {
    title: "Lines are weights", mark: "[data-part=lines], [data-part=next]",
    open: { sentence: "please take the train .", forbid: "", map: "1" },
    text: "One French word is marked. Its lines lead to the English words that it attends to, with their weights in percent.",
    task: "Choose the French word train, with the mouse or with the arrow keys. To what does it attend?",
    done: ({ elements }) => elements.step.value === "3",
  },
  {
    title: "Forbid a word", mark: "[data-part=lines], [data-part=before]",
    open: { sentence: "please take the train ." },
    text: "No French word may attend to a forbidden word. The bars show what is likely now, the ticks what was likely before.",
    task: "Press the English word train.", done: ({ elements }) => elements.forbid.value === "3",
  },
  {
    title: "Eight heads", mark: '[data-part="maps"]', open: { map: "1" },
    text: "Two layers have four heads each, and each attends to other words. The first picture is the mean of the last layer.",
    task: "Choose another head. Do the bars change? Why not?", done: ({ elements }) => elements.map.value !== "1",
  },
  {
    title: "A row of weights", mark: '[data-part="table"]', open: { forbid: "", map: "1.0" },
    text: "Each row of the table is one step: the weights of the English words in percent.",
    task: "Choose the largest number of a row, with the mouse, or with the arrow keys and Enter.",
    done: (form) => {
      const cell = form.querySelector('[data-part="table"] [aria-selected="true"]');
      const row = cell ? [...cell.parentElement.querySelectorAll("td")] : [];
      return Boolean(cell) && Number(cell.textContent) === Math.max(...row.map((each) => Number(each.textContent)));
    },
  },
  {
    title: "Where a number comes from", mark: '[data-part="explain"]', open: { operation: "project" },
    text: "Query and key of the number that you chose, and how its weight is computed, operation by operation.",
    task: "Go from project to normalize. Where does the sum of the row stand?",
    done: ({ elements }) => elements.operation.value === "normalize",
  },
  {
    title: "The decoder's own words", mark: '[data-part="table"]',
    open: { kind: "decoder", map: "0.0", cell: "", operation: "mask" },
    text: "In this self-attention no word may attend to a later one: above the diagonal all weights are 0.",
    task: "Choose a number above the diagonal, and read what is said about the mask.", done: isAhead,
  },
  {
    title: "Beam search", mark: '[data-part="tree"]', open: { search: "4", kind: "cross" },
    text: "A beam keeps the four best beginnings of each length. The tree shows these, and what was dropped.",
    task: "Find a beginning that was kept and did not win. What does its log-probability say?",
  },
  {
    title: "It is often wrong", mark: ".cu-live-examples, [data-part=right]", open: { search: "1" },
    text: "Of the three examples the third is translated wrongly. The page then says what would be right.",
    task: "Choose the third example. Which word is wrong?", done: (form) => said(form, "right") !== "",
  },
];

function mount(form, [bundle]) {
  const chosen = checkpoint(form, bundle, answering);
  const { field, part, show, write } = partsOf(form);
  let who = null; // answers
  let whole = null; // the answer when it may look everywhere, or its promise
  let before = null; // the same, as it is drawn
  let trace = null;
  let away = NOTHING;
  let asking = 0; // number of the latest question: what comes later to an earlier one is not drawn
  let inside = null; // what the page itself has read of the trace, where a reader looks closer
  const view = () => ({
    kind: field.kind.value,
    map: field.map.value,
    step: Math.max(1, Math.min(Math.floor(Number(field.step.value)) || 1, trace.says.length)) - 1,
  });

  // The larger model, once its weights are there; where they cannot be had the small one goes on. Then `ready` is called.
  let larger = null;
  async function loadLarger(ready) {
    try {
      const bundle = await bundleOf(LARGER);
      larger ??= employed(bundle);
    } catch {
      field.model.value = "";
    }
    ready();
  }
  function answers(ready) {
    if (field.model?.value !== "everyday") return chosen(ready);
    if (!larger) loadLarger(ready);
    return larger;
  }

  // Then `then` is called, if there is an answer.
  function ask(changed, then) {
    const { language, bundle: { pieces, vocabularies } } = who;
    const asked = heard(who, field.sentence.value);
    const none = asked.words.every(({ text }) => asked.unknown.includes(text) || /^([.?!…]|<eos>)$/.test(text));
    const unknown = pieces
      ? asked.unknown.map((letter) => `<span>It has no sign for <q translate="no">${safe(letter)}</q>.</span>`)
      : asked.unknown.map((token) => unknownWord(token, vocabularies.source));
    show("unknown", unknown.join(" ") + (field.sentence.value.trim() ? "" : "Write an English sentence."));
    part("inside").style.visibility = none ? "hidden" : ""; // it keeps its room
    asking += 1;
    if (none) return;
    if (changed === "sentence" || changed === "model") field.forbid.value = field.line.value = "";
    const number = asking;
    const looks = forbiddenLooks(field.forbid.value, field.line.value, asked.words.length);
    const plain = { asked, beams: Number(field.search.value), away: NOTHING, deeper: false };
    const question = { ...plain, away: looks, deeper: field.encoder.checked };
    const isCut = looks.words.length || looks.looks.length;
    if (!whole || !["forbid", "line", "encoder"].includes(changed)) whole = who.answer(plain);
    after(whole, (everywhere) => after(isCut ? who.answer(question) : everywhere, (now) => {
      if (number !== asking) return;
      before = { ...everywhere, question: plain };
      trace = isCut ? { ...now, question } : before;
      [away, inside] = [looks, null];
      show("tree", trace.tree ? treeHTML(trace.tree, language.token) : "");
      then();
    }));
  }

  // How the chosen number was computed: the page itself reads the sentence again.
  function explainCell({ kind, map }) {
    const words = wordsOf(trace, kind);
    if (!field.cell.value) return explain(form, { maps: {} }, [], map, words);
    inside ??= translate(who.here(), trace.question).reading;
    inside.again();
    explain(form, inside.model, namesOf(inside.model, KINDS[kind]), map, words);
  }

  // What an example should have been, where the model is wrong.
  function rightHTML() {
    const sentence = trace.source.slice(0, -1).map(({ text }) => text).join(" ");
    const example = trace === before && who.bundle.examples.find((each) => each.sentence === sentence);
    const wrong = example && trace.text !== example.right;
    return wrong ? `Wrong. Right is: <span translate="no" lang="fr">${safe(example.right)}</span>` : "";
  }

  // `changed`: the control that a reader moved; without it all is drawn. filled: those that an address filled.
  function draw(changed, filled = [changed]) {
    needMap(form);
    const now = answers(() => draw(changed, filled));
    if (!now) return; // it is loaded, and then drawn
    who = now;
    const anew = !["kind", "map", "step", "cell", "operation"].includes(changed);
    const drawAnswer = () => {
      drawAll(changed, filled, anew);
      tour.draw();
    };
    if (["tour", "closer"].includes(changed)) tour.draw();
    else if (trace && !anew) drawAnswer();
    else {
      ask(changed, drawAnswer);
      tour.draw();
    }
  }

  function drawAll(changed, filled, anew) {
    if (!filled.includes("step")) {
      if (changed === "sentence") field.step.value = firstWord(trace) + 1;
      const isCut = filled.includes("forbid") || filled.includes("line");
      if (isCut && firstOther(trace, before) >= 0) field.step.value = firstOther(trace, before) + 1;
    }
    const { kind, map, step } = view();
    become(part("lines"), linesHTML(trace, before, view(), away));
    if (part("said").textContent !== trace.text) write("said", trace.text);
    show("before", beforeHTML(trace, before, away));
    if (anew) write("told", "");
    show("right", rightHTML());
    show("unsure", unsureHTML(trace));
    part("deeper").hidden = !away.words.length;
    part("deeper").querySelector("span").innerHTML = deeperHTML(trace, away);
    show("next", nextHTML(trace, before, step));
    if (anew || filled.includes("kind")) become(part("maps"), headsHTML(trace, view()));
    if (changed !== "cell" && changed !== "operation") show("table", tableHTML(trace, view()));
    explainCell({ kind, map });
  }

  // Forbids positions, or allows them again; the last look stays allowed.
  function toggle(name, places) {
    const list = field[name].value.split(",").filter(Boolean);
    const isOut = places.every((place) => list.includes(place));
    const next = isOut ? list.filter((place) => !places.includes(place)) : [...new Set([...list, ...places])];
    const values = { forbid: field.forbid.value, line: field.line.value, [name]: next.join(",") };
    const { words, looks } = forbiddenLooks(values.forbid, values.line, trace.source.length);
    const kept = name === "forbid" ? words.map(String) : looks.map((look) => look.join("."));
    if (isOut || places.every((place) => kept.includes(place))) set(name, next.join(","));
    else write("told", "It has to attend to something, so the last word stays allowed.");
  }

  function undo() {
    if (!field.forbid.value && !field.line.value) return false;
    field.line.value = "";
    set("forbid", "");
    return true;
  }

  const tour = startTour(form, CARDS);
  const set = follow(form, draw);
  listenToTable(part("table"), set);
  listenToLines(part("lines"), {
    now: (i) => String(i + 1) !== field.step.value && set("step", String(i + 1)),
    forbid(j) {
      if (!trace) draw();
      if (trace) toggle("forbid", [String(j)]);
    },
    forbidLook(look) {
      if (!trace) draw();
      if (!trace) return;
      const [i, j] = look.split(".");
      toggle("line", trace.says[i].places.map((row) => `${row}.${j}`));
    },
    undo,
  });
  // What a reader writes is translated after a rest, and at once at a space, at Enter, or where something else is moved.
  let rest = 0;
  function flush() {
    if (!rest) return;
    clearTimeout(rest);
    rest = 0;
    set("sentence", field.sentence.value);
  }
  let isChosen = false; // the model, by the reader; otherwise the larger one answers what a reader writes, once it has come
  form.addEventListener("input", (event) => {
    const { target, isTrusted, data } = event;
    if (target !== field.sentence) flush();
    if (!isTrusted) return;
    isChosen ||= target === field.model;
    if (target !== field.sentence) return;
    clearTimeout(rest);
    rest = 0;
    if (field.model && larger && !isChosen) field.model.value = "everyday";
    if (data === " ") return;
    event.stopPropagation();
    rest = setTimeout(flush, REST);
  }, { capture: true });
  field.sentence.addEventListener("change", flush);
  if (field.model) requestIdleCallback(() => loadLarger(() => {}));
  function take(sentence) {
    if (field.model) field.model.value = ""; // it is the small model's
    set("sentence", sentence);
  }
  clicks(form, {
    example: (i) => take(bundle.examples[i].sentence),
    find(i) {
      take(FINDS[i][0]);
      set("forbid", String(FINDS[i][1]));
    },
    for: correct(field.sentence, set),
  });
}

if (globalThis.WorkerGlobalScope) serve();
