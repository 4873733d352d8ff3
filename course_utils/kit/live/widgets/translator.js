// The translator: what it says, where it looks for each word, and what it says when it may not look there.
(globalThis.live_widgets ??= {}).translator = (() => {
  "use strict";
  const { OURS, safe, radios, named, mapAt, needMap, largest, table } = globalThis.live_parts;
  const { unknownWord, knownTokens, replaced, follow } = globalThis.live_parts;
  const { rows, heads, odds, fresh, become, listen: listenToLines, appear } = globalThis.live_lines;
  const { headsOf, explain, listen, place } = globalThis.live_explain;
  const SHOWN = 5; // candidates for the next word
  const LONGEST = 40; // tokens of a translation
  const UNSURE = 0.5; // a word that is less probable is marked
  const KINDS = { cross: ".cross_attention", decoder: ".self_attention", encoder: ".attention" };
  const LABELS = [["cross", "French to English"], ["decoder", "French to French"], ["encoder", "English to English"]];
  const TITLES = {
    cross: "Cross-attention",
    decoder: "Self-attention of the decoder",
    encoder: "Self-attention of the encoder",
  };
  // Sentences, and the word to cross out: without it, it says something else.
  const FINDS = [
    ["she has a red car .", 4], ["the old woman is sleeping .", 2], ["my mother likes the blue dress .", 1],
    ["she has a black cat .", 5],
  ];

  // What it may not look at -----------------------------------------------------------------------

  // words: of the source, at every step; looks: [step, word]. As many as leave a look at every step.
  function crossedOut(forbid, line, count) {
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

  // In force until what is returned is called. deeper: in the encoder, too.
  function forbidden(model, { words, looks }, deeper) {
    const acts = globalThis.live_engine.intervene(model);
    if (words.length) acts.knockOut({ place: "cross_attention", keys: words });
    if (words.length && deeper) acts.knockOut({ place: "encoder.attention", keys: words });
    for (const [queries, keys] of looks) acts.knockOut({ place: "cross_attention", queries, keys });
    return acts.end;
  }

  // What a translation looks like from inside ---------------------------------------------------

  // A sentence ends with a sign, also where a reader has not written it yet.
  function tokensOf(sentence) {
    const tokens = globalThis.live_engine.tokenize(sentence);
    return !tokens.length || /^[.?!…]$/.test(tokens.at(-1)) ? tokens : [...tokens, "."];
  }

  function translated(model, words, tokens, beams) {
    const { greedy, beamSearch, ids: { BOS, EOS, UNK }, tools } = globalThis.live_engine;
    const source = [...tokens.map((token) => words.ids.get(token) ?? UNK), EOS];
    const state = model.start(source);
    const reading = new globalThis.live_reading.Reading(model, () => model.fork(state));
    const watched = [];
    const watch = (grown, ended) => watched.push({ grown, ended });
    const said = beams > 1
      ? beamSearch(model, source, beams, LONGEST, 0.6, watch)
      : greedy(reading, source, LONGEST, state);
    reading.read([BOS, ...said]);
    const maps = {
      encoder: namesOf(model, KINDS.encoder).map((name) => model.maps[name]),
      decoder: namesOf(model, KINDS.decoder).map((name) => reading.map(name)),
      cross: namesOf(model, KINDS.cross).map((name) => reading.map(name, source.length)),
    };
    const french = said.map((id) => words.target[id]);
    const ended = said.length < LONGEST ? "<eos>" : "…";
    const tree = beams > 1 && globalThis.live_tree.grow(watched, beams, said);
    return {
      source: [...tokens, "<eos>"], read: ["<bos>", ...french], says: [...french, ended],
      text: french.join(" "), ids: [...said, EOS], next: reading.logits.map(tools.softmax), maps, tree, reading,
    };
  }

  // The attentions of one kind, layer by layer.
  const namesOf = (model, kind) => Object.keys(model.maps).filter((name) => name.endsWith(kind));

  // Which tokens stand at the rows and columns of a map, and their languages.
  function wordsOf(trace, kind) {
    const english = kind === "encoder";
    return {
      queries: english ? trace.source : trace.read,
      keys: kind === "decoder" ? trace.read : trace.source,
      languages: [english ? "en" : "fr", kind === "decoder" ? "fr" : "en"],
    };
  }

  // The word that is now at first: the one that looks farthest from its own place.
  function farthest({ says, source, maps }) {
    const isWord = (text) => /^\p{L}/u.test(text);
    const far = mapAt(maps.cross, String(maps.cross.length - 1)).map((row, i) =>
      Math.max(0, ...Array.from(row, (w, j) => (isWord(says[i]) && isWord(source[j]) ? w * Math.abs(i - j) : 0))));
    return far.indexOf(Math.max(...far));
  }

  // Until which step both have read the same.
  const sameUntil = (trace, before) => {
    const other = trace.ids.findIndex((id, i) => id !== before.ids[i]);
    return other < 0 ? trace.ids.length : other;
  };

  // HTML ----------------------------------------------------------------------------------------

  function linesHTML(trace, before, { map, step }, { words, looks }) {
    const other = fresh(trace.ids, before.ids);
    const above = trace.source.map((text, j) => ({ text, pressed: words.includes(j) }));
    const below = trace.says.map((text, i) => {
      const sure = trace.next[i][trace.ids[i]];
      const sorts = [other.includes(i) && "fresh", sure < UNSURE && "unsure"];
      return { text, sorts, title: sure < UNSURE ? `${Math.round(100 * sure)} %` : "" };
    });
    const crossed = looks.map((look) => look.join("."));
    const view = { weights: mapAt(trace.maps.cross, map), now: step, crossed };
    return rows(view, [above, below], ["English: press a word to cross it out", "French: choose a word"], ["en", "fr"]);
  }

  function beforeHTML(trace, before, { words, looks }) {
    if (!words.length && !looks.length) return "";
    const named = [
      ...words.map((j) => `<em>${safe(trace.source[j])}</em>`),
      ...looks.map(([i, j]) => `<em>${safe(trace.source[j])}</em> at word ${i + 1}`),
    ];
    const was = trace.text === before.text ? "the same" : `before: <s lang="fr">${safe(before.text)}</s>`;
    return `without ${named.join(", ")} — ${was} <button type="button" ${OURS} data-undo="">undo</button>`;
  }

  const deeperHTML = ({ source }, { words }) => (words.length
    ? `Other words have read ${words.map((j) => `<em>${safe(source[j])}</em>`).join(", ")} in the encoder: forbid that, too`
    : "");

  const unsureHTML = (trace) => (trace.ids.some((id, i) => trace.next[i][id] < UNSURE)
    ? '<span class="unsure">Dotted</span>: it gave this word less than 50 %.' : "");

  function nextHTML(trace, before, target, step) {
    const now = trace.next[step];
    const other = trace !== before;
    const then = other && step <= sameUntil(trace, before) ? before.next[step] : null;
    const best = largest(now, SHOWN);
    if (then && !best.includes(largest(then, 1)[0])) best[SHOWN - 1] = largest(then, 1)[0];
    const items = best.map((id) => ({ text: target[id], now: now[id], before: then?.[id] }));
    const what = then ? " Tick: before." : other ? " It has read other words than before: no bar to compare." : "";
    return `<p>Word ${step + 1} of ${trace.says.length}: it says <strong lang="fr">${safe(trace.says[step])}</strong>.` +
      `${what}</p>${odds(items, "fr", trace.says[step])}`;
  }

  function tableHTML(trace, { kind, map, step }) {
    const english = kind === "encoder";
    const { keys, languages } = wordsOf(trace, kind);
    return table({
      caption: `${TITLES[kind]}, ${named(map)}: each row in percent`,
      corner: english ? ["word"] : ["reads", "says"],
      rows: english ? trace.source.map((text) => [text]) : trace.read.map((text, i) => [text, trace.says[i]]),
      columns: keys,
      weights: mapAt(trace.maps[kind], map),
      languages,
      now: english ? -1 : step,
    });
  }

  // What is shown first, of a sentence whose words it knows.
  function state([bundle], { sentence, checkpoints, compact }) {
    const { source, target } = bundle.vocabularies;
    knownTokens(sentence, source);
    const model = new globalThis.live_engine.Transformer(bundle);
    const words = { source, target, ids: new Map(source.map((word, id) => [word, id])) };
    return { bundle, sentence, checkpoints, compact, trace: translated(model, words, tokensOf(sentence), 1) };
  }

  function examplesHTML(bundle) {
    const cut = ([sentence, out], i) => `<button type="button" ${OURS} data-find="${i}">${sentence.split(" ")
      .map((word, j) => (j === out ? `<s>${word}</s>` : word)).join(" ")}</button>`;
    const whole = ({ sentence, said, right }, i) => `<span>${said === right ? "" : "wrong: "}` +
      `<button type="button" ${OURS} data-example="${i}">${safe(sentence)}</button></span>`;
    return `<p class="cu-live-examples cu-live-tries"><span>Try</span> ${FINDS.map(cut).join(" ")}</p>
<p class="cu-live-examples cu-live-tries"><span>Examples</span> ${bundle.examples.map(whole).join(" ")}</p>`;
  }

  function html({ bundle, sentence, checkpoints, compact, trace }) {
    const view = { kind: "cross", map: String(trace.maps.cross.length - 1), step: farthest(trace) };
    const [right, count] = bundle.score;
    const none = { words: [], looks: [] };
    const lede = compact ? "" : "<p>Write an English sentence. The line from a French word shows where it looks. " +
      "Press an English word: it may not be looked at any more.</p>\n";
    return `${lede}<div class="cu-live-ask">
<label class="cu-live-sentence"><span class="cu-live-label">English</span> <input type="text" ${OURS} \
name="sentence" maxlength="100" value="${safe(sentence)}" spellcheck="false" autocapitalize="off"></label>
</div>
${examplesHTML(bundle)}
${checkpoints ? globalThis.live_checkpoints.slider(bundle) : ""}
<p class="cu-live-unknown" aria-live="polite" data-part="unknown"></p>
<div data-part="inside">
<input type="hidden" name="forbid" value=""><input type="hidden" name="line" value="">\
<input type="hidden" name="step" value="${view.step + 1}">
<div class="cu-live-stage" data-part="lines">${linesHTML(trace, trace, view, none)}</div>
<p class="cu-heard" role="status" lang="fr" data-part="said">${safe(trace.text)}</p>
<p class="cu-live-before" data-part="before"></p>
<p role="status" data-part="told"></p>
<p class="cu-live-aside" data-part="right"></p>
<p class="cu-live-aside" data-part="unsure">${unsureHTML(trace)}</p>
<p class="cu-live-aside" data-part="deeper" hidden=""><label><input type="checkbox" ${OURS} \
name="encoder"> <span></span></label></p>
<div class="cu-live-next" data-part="next">${nextHTML(trace, trace, bundle.vocabularies.target, view.step)}</div>
<input type="hidden" name="map" value="${view.map}">
<div class="cu-live-heads" role="group" aria-label="Heads" data-part="maps">${heads(trace.maps.cross, view.map)}</div>
<label class="cu-live-closer"><input type="checkbox" ${OURS} name="closer"> Look closer</label>
<div class="cu-live-close">
${globalThis.live_tour.place()}
<div class="cu-live-ask"><fieldset class="cu-live-kinds"><legend>Attention</legend> \
${radios("kind", LABELS, view.kind)}</fieldset>
<label><span class="cu-live-label">Search</span> <select ${OURS} name="search"><option value="1">greedy</option>\
<option value="4">beam of 4</option></select></label></div>
<div data-part="tree"></div>
<div class="cu-live-table" role="region" aria-label="The chosen map" tabindex="0" ${OURS} data-part="table">\
${tableHTML(trace, view)}</div>
${place()}
</div>
</div>
${compact ? "" : `<p class="cu-live-note">It knows ${bundle.vocabularies.source.length - 4} English words, and is often \
wrong: of ${count} test sentences it gets about ${Math.round((5 * right) / count)} in 5 right, word for word. The test \
sentences are made by the same rules as most of those that it has read: of other sentences fewer are right.</p>`}`;
  }

  // The tour --------------------------------------------------------------------------------------

  const said = (form, name) => form.querySelector(`[data-part="${name}"]`).textContent;
  const CARDS = [
    {
      title: "Any sentence",
      text: "Here you write in English, and below you read the French. The network runs in this page.",
      mark: ".cu-live-ask",
      open: { search: "1", kind: "cross" },
      task: "Write: he's calm .",
      done: ({ elements }) => globalThis.live_engine.tokenize(elements.sentence.value).join(" ") === "he's calm .",
    },
    {
      title: "Words that it does not know",
      text: "A word that it did not learn is read as <unk>. The page names it, and offers words that are spelled alike.",
      mark: '[data-part="unknown"]',
      open: { sentence: "the old wuman is sleeping ." },
      task: "Put the known word in its place.",
      done: (form) => said(form, "unknown") === "",
    },
    {
      title: "A line is a look",
      text: "One French word is marked. Its lines lead to the English words that it looks at, with their weights in percent.",
      mark: "[data-part=lines], [data-part=next]",
      open: { sentence: "she has a red car .", forbid: "", map: "1" },
      task: "Choose the last French word, with the mouse or with the arrow keys. Where does it look?",
      done: ({ elements }) => elements.step.value === "6",
    },
    {
      title: "Take a word away",
      text: "A word that is crossed out may not be looked at. The bars show what is likely now, the ticks what was before.",
      mark: "[data-part=lines], [data-part=before]",
      open: { sentence: "she has a red car ." },
      task: "Press the English word car.",
      done: ({ elements }) => elements.forbid.value === "4",
    },
    {
      title: "Eight heads",
      text: "Two layers have four heads each, and each looks elsewhere. The first picture is the mean of the last layer.",
      mark: '[data-part="maps"]',
      open: { map: "1" },
      task: "Choose another head. Do the bars change? Why not?",
      done: ({ elements }) => elements.map.value !== "1",
    },
    {
      title: "A row of weights",
      text: "Each row of the table is one step: the weights of the English words in percent.",
      mark: '[data-part="table"]',
      open: { forbid: "", map: "1.0" },
      task: "Choose the largest number of a row, with the mouse, or with the arrow keys and Enter.",
      done: (form) => {
        const cell = form.querySelector('[data-part="table"] [aria-selected="true"]');
        const row = cell ? [...cell.parentElement.querySelectorAll("td")] : [];
        return Boolean(cell) && Number(cell.textContent) === Math.max(...row.map((each) => Number(each.textContent)));
      },
    },
    {
      title: "Where a number comes from",
      text: "Query and key of the number that you chose, and how its weight is computed, operation by operation.",
      mark: '[data-part="explain"]',
      open: { operation: "project" },
      task: "Go from project to normalize. Where does the sum of the row stand?",
      done: ({ elements }) => elements.operation.value === "normalize",
    },
    {
      title: "The decoder's own words",
      text: "In this self-attention no word may attend to a later one: above the diagonal all weights are 0.",
      mark: '[data-part="table"]',
      open: { kind: "decoder", map: "0.0", cell: "", operation: "mask" },
      task: "Choose a number above the diagonal, and read what is said about the mask.",
      done: ({ elements }) => {
        const [query, key] = elements.cell.value.split(".").map(Number);
        return key > query;
      },
    },
    {
      title: "Beam search",
      text: "A beam keeps the four best beginnings of each length. The tree shows these, and what was dropped.",
      mark: '[data-part="tree"]',
      open: { search: "4", kind: "cross" },
      task: "Find a beginning that was kept and did not win. What does its log-probability say?",
    },
    {
      title: "It is often wrong",
      text: "Of the three examples the third is translated wrongly. The page then says what would be right.",
      mark: ".cu-live-examples, [data-part=right]",
      open: { search: "1" },
      task: "Choose the third example. Which word is wrong?",
      done: (form) => said(form, "right") !== "",
    },
  ];

  // The widget ----------------------------------------------------------------------------------

  function mount(form, [bundle]) {
    const { Transformer } = globalThis.live_engine;
    const chosen = globalThis.live_checkpoints.chosen(form, bundle, (packed) => new Transformer(packed));
    const { source, target } = bundle.vocabularies;
    const words = { source, target, ids: new Map(source.map((word, id) => [word, id])) };
    const field = form.elements;
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    const show = (name, html) => {
      part(name).innerHTML = html;
    };
    let model = null;
    let before = null; // what it says when it may look everywhere
    let trace = null;
    let away = { words: [], looks: [] };
    let free = () => {}; // takes the ban from the model
    const view = () => ({
      kind: field.kind.value,
      map: field.map.value,
      step: Math.max(1, Math.min(Math.floor(Number(field.step.value)) || 1, trace.says.length)) - 1,
    });

    function ask(changed) {
      const tokens = tokensOf(field.sentence.value);
      const unknown = [...new Set(tokens)].filter((token) => !words.ids.has(token));
      const none = tokens.every((token) => unknown.includes(token) || token === ".");
      const like = unknown.map((token) => unknownWord(token, source)).join(" ");
      show("unknown", like + (tokens.length ? "" : "Write an English sentence."));
      part("inside").hidden = none;
      if (none) return;
      if (changed === "sentence") field.forbid.value = field.line.value = "";
      const translate = () => translated(model, words, tokens, Number(field.search.value));
      const isNew = !["forbid", "line", "encoder"].includes(changed);
      free();
      if (isNew || !before) before = translate();
      away = crossedOut(field.forbid.value, field.line.value, before.source.length);
      free = forbidden(model, away, field.encoder.checked);
      trace = away.words.length || away.looks.length ? translate() : before;
      show("tree", trace.tree ? globalThis.live_tree.html(trace.tree, words.target) : "");
    }

    // What an example should have been, where the model is wrong.
    function rightHTML() {
      const sentence = trace.source.slice(0, -1).join(" ");
      const example = trace === before && bundle.examples.find((each) => each.sentence === sentence);
      const wrong = example && trace.text !== example.right;
      return wrong ? `Wrong. Right is: <span lang="fr">${safe(example.right)}</span>` : "";
    }

    // `changed`: the control that a reader moved; without it all is drawn. filled: those that an address filled.
    function draw(changed, filled = [changed]) {
      needMap(form);
      const now = chosen(() => draw(changed, filled));
      if (!now) return; // it is loaded, and then drawn
      if (now !== model) free();
      model = now;
      if (!["tour", "closer"].includes(changed)) drawAll(changed, filled);
      tour.draw();
    }

    function drawAll(changed, filled) {
      const anew = !["kind", "map", "step", "cell", "operation"].includes(changed);
      if (anew || !trace) ask(changed);
      if (part("inside").hidden) return;
      if (!filled.includes("step")) {
        if (changed === "sentence") field.step.value = farthest(trace) + 1;
        const other = sameUntil(trace, before);
        const isCut = filled.includes("forbid") || filled.includes("line");
        if (isCut && other < trace.ids.length) field.step.value = other + 1;
      }
      const { kind, map, step } = view();
      become(part("lines"), linesHTML(trace, before, view(), away));
      if (part("said").textContent !== trace.text) part("said").textContent = trace.text;
      show("before", beforeHTML(trace, before, away));
      if (anew) part("told").textContent = "";
      show("right", rightHTML());
      show("unsure", unsureHTML(trace));
      part("deeper").hidden = !away.words.length;
      part("deeper").querySelector("span").innerHTML = deeperHTML(trace, away);
      show("next", nextHTML(trace, before, target, step));
      if (anew) become(part("maps"), heads(trace.maps.cross, map));
      if (changed !== "cell" && changed !== "operation") show("table", tableHTML(trace, view()));
      if (field.cell.value) trace.reading.again();
      explain(form, model, headsOf(model, namesOf(model, KINDS[kind]), map), wordsOf(trace, kind));
    }

    // Crosses a place out, or lets it be; the last look stays.
    function toggle(name, place) {
      if (!trace) draw();
      const list = field[name].value.split(",").filter(Boolean);
      const next = list.includes(place) ? list.filter((each) => each !== place) : [...list, place];
      const values = { forbid: field.forbid.value, line: field.line.value, [name]: next.join(",") };
      const { words: cut, looks } = crossedOut(values.forbid, values.line, trace.source.length);
      const kept = name === "forbid" ? cut.map(String) : looks.map((look) => look.join("."));
      if (next.length > list.length && !kept.includes(place)) {
        part("told").textContent = "It has to look somewhere: the last look stays.";
      } else {
        set(name, next.join(","));
      }
    }

    function undo() {
      if (!field.forbid.value && !field.line.value) return false;
      field.line.value = "";
      set("forbid", "");
      return true;
    }

    const tour = globalThis.live_tour(form, CARDS);
    const set = follow(form, draw, { written: true });
    listen(part("table"), set);
    listenToLines(part("lines"), {
      now: (i) => String(i + 1) !== field.step.value && set("step", String(i + 1)),
      cross: (j) => toggle("forbid", String(j)),
      crossLook: (look) => toggle("line", look),
      undo,
    });
    appear(part("lines"));
    form.addEventListener("click", ({ target: clicked }) => {
      const { example, find, for: unknown, undo: back } = clicked.closest("button")?.dataset ?? {};
      if (example) set("sentence", bundle.examples[Number(example)].sentence);
      if (find) {
        set("sentence", FINDS[Number(find)][0]);
        set("forbid", String(FINDS[Number(find)][1]));
      }
      if (back !== undefined) {
        undo();
        part("lines").querySelector('[tabindex="0"]').focus();
      }
      if (unknown) {
        set("sentence", replaced(field.sentence.value, unknown, clicked.textContent));
        field.sentence.focus();
      }
    });
  }

  return { state, html, mount };
})();
