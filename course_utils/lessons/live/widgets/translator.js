// The translator in a page: a sentence is translated as it is written, and every map can be looked at. The parts
// `maps`, `table` and `next` are written by translator.py, too, for pages without scripts: both write the same.
(globalThis.live_widgets ??= {}).translator = (() => {
  "use strict";
  const { safe, mean, named, mapAt, largest, gallery, table, bars, unknownWord, follow } = globalThis.live_parts;
  const SHOWN = 5; // candidates for the next word
  const LONGEST = 40; // tokens of a translation
  const KINDS = { cross: ".cross_attention", decoder: ".self_attention", encoder: ".attention" };
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
    const said = beams > 1
      ? beamSearch(model, source, beams, LONGEST)
      : greedy(model, source, LONGEST);
    const state = model.start(source);
    const maps = { encoder: layersOf(model, KINDS.encoder) };
    const logits = model.step([BOS, ...said], state);
    maps.decoder = layersOf(model, KINDS.decoder);
    maps.cross = layersOf(model, KINDS.cross);
    const next = logits.map((row) => {
      const p = tools.softmax(row);
      return largest(p, SHOWN).map((id) => [words.target[id], p[id]]);
    });
    const french = said.map((id) => words.target[id]);
    const ended = said.length < LONGEST ? "<eos>" : "…";
    return { source: [...tokens, "<eos>"], read: ["<bos>", ...french], says: [...french, ended], maps, next };
  }

  // The maps of one kind, layer by layer.
  const namesOf = (model, kind) => Object.keys(model.maps).filter((name) => name.endsWith(kind));
  const layersOf = (model, kind) => namesOf(model, kind).map((name) => model.maps[name]);

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

  // The widget ----------------------------------------------------------------------------------

  return function translator(form, bundle) {
    const model = new globalThis.live_engine.Transformer(bundle);
    const { explain, listen } = globalThis.live_explain;
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
    let trace;

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
      const anew = !["kind", "map", "step", "cell", "operation"].includes(changed);
      if (anew || !trace) ask();
      if (part("inside").hidden) return;
      const { kind, map, step } = view();
      if (anew || changed === "kind") show("maps", gallery(trace.maps[kind], map));
      if (changed !== "cell" && changed !== "operation") show("table", tableHTML(trace, view()));
      explain(form, model, attentions(kind, map), wordsOf(trace, kind));
      show("next", nextHTML(trace, view()));
      const text = `${step + 1} of ${trace.read.length}: ${trace.says[step]}`;
      field.step.setAttribute("aria-valuetext", text);
      part("step").textContent = text;
    }

    // What the chosen map shows, as `explain` takes it: one head, or all.
    function attentions(kind, map) {
      const every = namesOf(model, KINDS[kind]).flatMap((name, layer) =>
        model.maps[name].map((_, head) => ({ name, head, place: `${layer}.${head}` })));
      return map === "mean" ? every : every.filter(({ place }) => place === map);
    }

    const set = follow(form, draw, { written: true });
    listen(part("table"), set);
    form.addEventListener("click", ({ target: clicked }) => {
      const { example, for: unknown } = clicked.closest("button")?.dataset ?? {};
      if (example) set("sentence", bundle.examples[Number(example)].sentence);
      if (unknown) {
        const tokens = globalThis.live_engine.tokenize(field.sentence.value);
        set("sentence", tokens.map((token) => (token === unknown ? clicked.textContent : token)).join(" "));
        field.sentence.focus();
      }
    });
  };
})();
