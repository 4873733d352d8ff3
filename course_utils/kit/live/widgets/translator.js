// The translator: a sentence is translated as it is written, and every map can be looked at.
(globalThis.live_widgets ??= {}).translator = (() => {
  "use strict";
  const { OURS, safe, radios, sentences, named, mapAt, needMap, largest, gallery, table, bars } = globalThis.live_parts;
  const { unknownWord, knownTokens, replaced, follow } = globalThis.live_parts;
  const { headsOf, explain, listen, place } = globalThis.live_explain;
  const SHOWN = 5; // candidates for the next word
  const LONGEST = 40; // tokens of a translation
  const KINDS = { cross: ".cross_attention", decoder: ".self_attention", encoder: ".attention" };
  const LABELS = [["cross", "French to English"], ["decoder", "French to French"], ["encoder", "English to English"]];
  const TITLES = {
    cross: "Cross-attention",
    decoder: "Self-attention of the decoder",
    encoder: "Self-attention of the encoder",
  };

  // What a translation looks like from inside ---------------------------------------------------

  function translated(model, words, sentence, beams) {
    const { tokenize, greedy, beamSearch, ids: { BOS, EOS, UNK }, tools } = globalThis.live_engine;
    const tokens = tokenize(sentence);
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
    const next = reading.logits.map((row) => {
      const p = tools.softmax(row);
      return largest(p, SHOWN).map((id) => [words.target[id], p[id]]);
    });
    const french = said.map((id) => words.target[id]);
    const ended = said.length < LONGEST ? "<eos>" : "…";
    const tree = beams > 1 && globalThis.live_tree.grow(watched, beams, said);
    return {
      source: [...tokens, "<eos>"], read: ["<bos>", ...french], says: [...french, ended], maps, next, tree, reading,
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

  // HTML ----------------------------------------------------------------------------------------

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

  function nextHTML(trace, { step }) {
    const read = trace.read.slice(0, step + 1).join(" ");
    return `<p>Having read <strong lang="fr">${safe(read)}</strong>, it says ` +
      `<strong lang="fr">${safe(trace.says[step])}</strong>. The likeliest next words:</p>` +
      bars(trace.next[step], "fr");
  }

  // What is shown first, of a sentence whose words it knows.
  function state([bundle], { sentence, checkpoints }) {
    const { source, target } = bundle.vocabularies;
    knownTokens(sentence, source);
    const model = new globalThis.live_engine.Transformer(bundle);
    const words = { source, target, ids: new Map(source.map((word, id) => [word, id])) };
    return { bundle, sentence, checkpoints, trace: translated(model, words, sentence, 1) };
  }

  function html({ bundle, sentence, checkpoints, trace }) {
    const view = { kind: "cross", map: `${trace.maps.cross.length - 1}.0`, step: 0 };
    const [right, count] = bundle.score;
    const step = safe(`1 of ${trace.says.length}: ${trace.says[0]}`);
    return `<p>Write an English sentence. The stored translator answers here, in your browser.</p>
<div class="cu-live-ask">
<label class="cu-live-sentence"><span class="cu-live-label">English</span> <input type="text" ${OURS} \
name="sentence" maxlength="100" value="${safe(sentence)}" spellcheck="false" autocapitalize="off"></label>
<label><span class="cu-live-label">Search</span> <select ${OURS} name="search"><option value="1">greedy</option>\
<option value="4">beam of 4</option></select></label>
</div>
<p class="cu-live-examples">Examples: ${sentences(bundle.examples)}</p>
${checkpoints ? globalThis.live_checkpoints.slider(bundle) : ""}
<div aria-live="polite"><p class="cu-live-said"><span class="cu-live-label">French</span> \
<strong lang="fr" data-part="said">${safe(trace.says.slice(0, -1).join(" "))}</strong></p>
<p data-part="right"></p>
<p class="cu-live-unknown" data-part="unknown"></p></div>
<div data-part="inside">
<div data-part="tree"></div>
<fieldset class="cu-live-kinds"><legend>Attention</legend> ${radios("kind", LABELS, view.kind)}</fieldset>
<input type="hidden" name="map" value="${view.map}">
<div class="cu-live-maps" role="group" aria-label="Maps by layer and head" data-part="maps">\
${gallery(trace.maps.cross, view.map)}</div>
<div class="cu-live-table" role="region" aria-label="The chosen map" tabindex="0" ${OURS} data-part="table">\
${tableHTML(trace, view)}</div>
${place()}
<label class="cu-live-step"><span class="cu-live-label">Step</span> <input type="range" ${OURS} \
name="step" min="1" max="${trace.says.length}" value="1" aria-valuetext="${step}"> <output aria-live="off" \
data-part="step">${step}</output></label>
<div class="cu-live-next" data-part="next">${nextHTML(trace, view)}</div>
</div>
<p class="cu-live-note">It knows ${bundle.vocabularies.source.length - 4} English words, and is often wrong: of \
${count} test sentences it gets about ${Math.round((5 * right) / count)} in 5 right, word for word. The third \
example is one of the others. The test sentences are made by the same rules as most of those that it has read: of \
other sentences fewer are right.</p>`;
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
      title: "Step by step",
      text: "The network says one word at a time. The bars show its likeliest next words, with their probabilities.",
      mark: ".cu-live-step, .cu-live-next",
      task: "Move the step to the end. What does the network say after the full stop?",
      done: ({ elements }) => elements.step.value === elements.step.max,
    },
    {
      title: "A row of weights",
      text: "Each row of the table is one step: the weights of the English words in percent.",
      mark: '[data-part="table"]',
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
      title: "Eight heads",
      text: "Two layers have four heads each, and each head has a map of its own. The last picture is their mean.",
      mark: '[data-part="maps"]',
      open: { map: "1.0" },
      task: "Choose another head. Do the bars change? Why not?",
      done: ({ elements }) => elements.map.value !== "1.0",
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
    const view = () => ({
      kind: field.kind.value,
      map: field.map.value,
      step: Math.min(Number(field.step.value), trace.says.length) - 1,
    });
    let [model, trace] = [chosen(), null];

    function ask() {
      const tokens = globalThis.live_engine.tokenize(field.sentence.value);
      const unknown = [...new Set(tokens)].filter((token) => !words.ids.has(token));
      const none = tokens.every((token) => unknown.includes(token));
      const named = unknown.map((token) => unknownWord(token, source)).join(" ");
      show("unknown", named + (tokens.length ? "" : "Write an English sentence."));
      part("inside").hidden = none;
      part("said").textContent = none ? "–" : "";
      if (none) return;
      trace = translated(model, words, field.sentence.value, Number(field.search.value));
      part("said").textContent = trace.says.slice(0, -1).join(" ");
      show("tree", trace.tree ? globalThis.live_tree.html(trace.tree, words.target) : "");
      field.step.max = trace.says.length;
      compare(tokens.join(" "));
    }

    // What an example should have been, where the model is wrong.
    function compare(sentence) {
      const example = bundle.examples.find((each) => each.sentence === sentence);
      const wrong = example && part("said").textContent !== example.right;
      show("right", wrong ? `Wrong. Right is: <span lang="fr">${safe(example.right)}</span>` : "");
    }

    // `changed`: the control that a reader moved; without it all is drawn.
    function draw(changed) {
      needMap(form);
      const now = chosen(() => draw(changed));
      if (!now) return; // it is loaded, and then drawn
      model = now;
      if (changed !== "tour") drawAll(changed);
      tour.draw();
    }

    function drawAll(changed) {
      const anew = !["kind", "map", "step", "cell", "operation"].includes(changed);
      if (anew || !trace) ask();
      if (part("inside").hidden) return;
      const { kind, map, step } = view();
      if (anew || changed === "kind") show("maps", gallery(trace.maps[kind], map));
      if (changed !== "cell" && changed !== "operation") show("table", tableHTML(trace, view()));
      if (field.cell.value) trace.reading.again();
      explain(form, model, headsOf(model, namesOf(model, KINDS[kind]), map), wordsOf(trace, kind));
      show("next", nextHTML(trace, view()));
      const text = `${step + 1} of ${trace.read.length}: ${trace.says[step]}`;
      field.step.setAttribute("aria-valuetext", text);
      part("step").textContent = text;
    }

    const tour = globalThis.live_tour(form, CARDS);
    const set = follow(form, draw, { written: true });
    listen(part("table"), set);
    form.addEventListener("click", ({ target: clicked }) => {
      const { example, for: unknown } = clicked.closest("button")?.dataset ?? {};
      if (example) set("sentence", bundle.examples[Number(example)].sentence);
      if (unknown) {
        set("sentence", replaced(field.sentence.value, unknown, clicked.textContent));
        field.sentence.focus();
      }
    });
  }

  return { state, html, mount };
})();
