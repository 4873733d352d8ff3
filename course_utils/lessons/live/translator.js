// The translator in a page: a sentence is translated as it is written, and every map can be looked at. The parts
// `maps`, `table` and `next` are written by widget.py, too, for pages without scripts: both write the same.
globalThis.live_translator = (() => {
  "use strict";
  const SHOWN = 5; // candidates for the next word
  const LONGEST = 40; // tokens of a translation
  const OURS = 'data-lm-suppress-shortcuts="true"'; // keys are the reader's, not Lab's
  const KINDS = { cross: ".cross_attention", decoder: ".self_attention", encoder: ".attention" };
  const TITLES = {
    cross: "Cross-attention",
    decoder: "Self-attention of the decoder",
    encoder: "Self-attention of the encoder",
  };

  const escaped = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const safe = (text) => text.replace(/[&<>"]/g, (letter) => escaped[letter]);
  const percent = (p) => Math.floor(100 * p + 0.5);
  const range = (length) => Array.from({ length }, (_, i) => i);

  // What a translation looks like from inside ---------------------------------------------------

  function follow(model, words, sentence, beams) {
    const { tokenize, greedy, beamSearch, ids: { BOS, EOS, UNK }, tools } = globalThis.live_engine;
    const tokens = tokenize(sentence);
    const source = [...tokens.map((token) => words.ids.get(token) ?? UNK), EOS];
    const said = beams > 1
      ? beamSearch(model, source, beams, LONGEST)
      : greedy(model, source, LONGEST);
    const state = model.start(source);
    const maps = { encoder: stacked(model, KINDS.encoder) };
    const logits = model.step([BOS, ...said], state);
    maps.decoder = stacked(model, KINDS.decoder);
    maps.cross = stacked(model, KINDS.cross);
    const next = logits.map((row) => {
      const p = tools.softmax(row);
      return largest(p, SHOWN).map((id) => [words.target[id], p[id]]);
    });
    const french = said.map((id) => words.target[id]);
    const ended = said.length < LONGEST ? "<eos>" : "…";
    return { source: [...tokens, "<eos>"], read: ["<bos>", ...french], says: [...french, ended], maps, next };
  }

  // The places of the largest numbers, the largest first.
  function largest(numbers, count) {
    const best = [];
    numbers.forEach((number, place) => {
      if (best.length === count && number <= numbers[best.at(-1)]) return;
      best.push(place);
      best.sort((a, b) => numbers[b] - numbers[a]);
      best.length = Math.min(best.length, count);
    });
    return best;
  }

  // The maps of one kind, layer by layer, and their mean.
  function stacked(model, kind) {
    const names = Object.keys(model.maps).filter((name) => name.endsWith(kind));
    const layers = names.map((name) => model.maps[name]);
    const every = layers.flat();
    const mean = every[0].map((row, i) => row.map((_, j) =>
      every.reduce((total, map) => total + map[i][j], 0) / every.length));
    return { layers, mean };
  }

  // Which map is chosen, its rows and its columns.
  function chosen(trace, { kind, layer, head }) {
    const { layers, mean } = trace.maps[kind];
    const weights = layer === "mean" ? mean : layers[layer][head];
    const rows = kind === "encoder" ? trace.source : trace.read;
    const columns = kind === "decoder" ? trace.read : trace.source;
    return { weights, rows, columns };
  }

  const named = ({ layer, head }) =>
    layer === "mean" ? "mean of all heads" : `layer ${layer}, head ${head}`;

  // HTML ----------------------------------------------------------------------------------------

  // A small map: for each tenth of weight one path of squares.
  function svg(weights) {
    const tenths = Array.from({ length: 11 }, () => "");
    weights.forEach((row, i) => row.forEach((weight, j) => {
      tenths[Math.floor(10 * weight + 0.5)] += `M${j} ${i}h1v1h-1z`;
    }));
    const paths = range(11).filter((tenth) => tenth && tenths[tenth])
      .map((tenth) => `<path fill-opacity="${tenth / 10}" d="${tenths[tenth]}"></path>`);
    const box = `0 0 ${weights[0].length} ${weights.length}`;
    return `<svg aria-hidden="true" viewBox="${box}" preserveAspectRatio="none">${paths.join("")}</svg>`;
  }

  function mapsHTML(trace, view) {
    const { layers } = trace.maps[view.kind];
    const every = layers.flatMap((heads, layer) => heads.map((_, head) => ({ layer, head })));
    const buttons = [...every, { layer: "mean", head: 0 }].map((place) => {
      const pressed = place.layer === view.layer && place.head === view.head;
      const { weights } = chosen(trace, { ...view, ...place });
      return `<button type="button" ${OURS} aria-pressed="${pressed}" data-layer="${place.layer}" ` +
        `data-head="${place.head}">${svg(weights)}<span>${named(place)}</span></button>`;
    });
    return buttons.join("");
  }

  function tableHTML(trace, view) {
    const { weights, rows, columns } = chosen(trace, view);
    const english = view.kind === "encoder";
    const [down, across] = [english ? "en" : "fr", view.kind === "decoder" ? "fr" : "en"];
    const word = (tag, scope, language, text) =>
      `<${tag} scope="${scope}" lang="${language}">${safe(text)}</${tag}>`;
    const heads = columns.map((text) => word("th", "col", across, text)).join("");
    const lines = rows.map((text, i) => {
      const says = english ? "" : word("th", "row", "fr", trace.says[i]);
      const cells = Array.from(weights[i], (weight) => {
        const share = percent(weight);
        return share ? `<td style="--w: ${share / 100}">${share}</td>` : "<td>0</td>";
      });
      const now = !english && i === view.step ? ' aria-current="step"' : "";
      return `<tr${now}>${word("th", "row", down, text)}${says}${cells.join("")}</tr>`;
    });
    const first = english ? '<th scope="col">word</th>' : '<th scope="col">reads</th><th scope="col">says</th>';
    return `<table><caption>${TITLES[view.kind]}, ${named(view)}: each row in percent</caption>` +
      `<thead><tr>${first}${heads}</tr></thead><tbody>${lines.join("")}</tbody></table>`;
  }

  function nextHTML(trace, view) {
    const read = trace.read.slice(0, view.step + 1).join(" ");
    const items = trace.next[view.step].map(([token, p]) =>
      `<li style="--w: ${percent(p) / 100}"><span lang="fr">${safe(token)}</span> <span>${percent(p)} %</span></li>`);
    return `<p>Having read <strong lang="fr">${safe(read)}</strong>, it says ` +
      `<strong lang="fr">${safe(trace.says[view.step])}</strong>. The likeliest next words:</p>` +
      `<ol>${items.join("")}</ol>`;
  }

  // Words that are not known --------------------------------------------------------------------

  // How many letters have to be changed, added or left out.
  function distance(a, b) {
    let row = range(b.length + 1);
    for (let i = 1; i <= a.length; i += 1) {
      const before = row;
      row = [i];
      for (let j = 1; j <= b.length; j += 1) {
        const same = before[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
        row.push(Math.min(same, before[j] + 1, row[j - 1] + 1));
      }
    }
    return row.at(-1);
  }

  function suggestions(unknown, words) {
    const rated = words.source.slice(4).map((word) => {
      const begins = unknown.length > 2 && word.startsWith(unknown.slice(0, 3));
      return { word, far: distance(unknown, word) - (begins ? 0.5 : 0), begins };
    });
    const near = rated.filter(({ far, begins }) => begins || far <= Math.min(2, unknown.length / 2));
    return near.sort((a, b) => a.far - b.far).slice(0, 3).map(({ word }) => word);
  }

  // The widget ----------------------------------------------------------------------------------

  function live_translator(form, bundle) {
    const model = new globalThis.live_engine.Transformer(bundle);
    const { source, target } = bundle.vocabularies;
    const words = { source, target, ids: new Map(source.map((word, id) => [word, id])) };
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    const field = (name) => form.elements[name];
    const view = { kind: "cross", layer: Number(form.dataset.layer), head: 0, step: 0 };
    let trace;

    const show = (name, html) => {
      part(name).innerHTML = html;
    };
    const draw = {
      maps: () => show("maps", mapsHTML(trace, view)),
      table: () => show("table", tableHTML(trace, view)),
      next: () => {
        show("next", nextHTML(trace, view));
        const text = `${view.step + 1} of ${trace.read.length}: ${trace.says[view.step]}`;
        field("step").setAttribute("aria-valuetext", text);
        part("step").textContent = text;
      },
    };
    const drawAll = () => Object.values(draw).forEach((each) => each());

    function ask() {
      const tokens = globalThis.live_engine.tokenize(field("sentence").value);
      const unknown = [...new Set(tokens)].filter((token) => !words.ids.has(token));
      const none = tokens.every((token) => unknown.includes(token));
      show("unknown", unknown.map(askInstead).join(" ") + (tokens.length ? "" : "Write an English sentence."));
      part("inside").hidden = none;
      part("said").textContent = none ? "–" : "";
      if (none) return;
      trace = follow(model, words, field("sentence").value, Number(field("search").value));
      part("said").textContent = trace.says.slice(0, -1).join(" ");
      view.step = Math.min(view.step, trace.says.length - 1);
      field("step").max = trace.says.length;
      field("step").value = view.step + 1;
      drawAll();
      compare(tokens.join(" "));
    }

    function askInstead(token) {
      const others = suggestions(token, words).map((word) =>
        `<button type="button" ${OURS} data-for="${safe(token)}">${safe(word)}</button>`);
      const like = others.length ? ` Words it knows: ${others.join(" ")}` : "";
      return `<span>It does not know <q>${safe(token)}</q>.${like}</span>`;
    }

    // What an example should have been, where the model is wrong.
    function compare(sentence) {
      const example = bundle.examples.find((each) => each.sentence === sentence);
      const wrong = example && part("said").textContent !== example.right;
      show("right", wrong ? `Wrong. Right is: <span lang="fr">${safe(example.right)}</span>` : "");
    }

    function write(sentence) {
      field("sentence").value = sentence;
      ask();
    }

    form.addEventListener("submit", (event) => event.preventDefault());
    form.addEventListener("input", ({ target: input }) => {
      if (input.name === "sentence" || input.name === "search") return ask();
      if (input.name === "kind") view.kind = input.value;
      if (input.name === "step") view.step = Number(input.value) - 1;
      return input.name === "kind" ? drawAll() : [draw.table(), draw.next()];
    });
    form.addEventListener("click", (event) => {
      const button = event.target.closest("button");
      if (!button) return;
      const { example, layer, head, for: unknown } = button.dataset;
      if (example) write(bundle.examples[Number(example)].sentence);
      if (unknown) {
        const tokens = globalThis.live_engine.tokenize(field("sentence").value);
        write(tokens.map((token) => (token === unknown ? button.textContent : token)).join(" "));
        field("sentence").focus();
      }
      if (layer) {
        view.layer = layer === "mean" ? layer : Number(layer);
        view.head = Number(head);
        part("maps").querySelectorAll("button").forEach((each) =>
          each.setAttribute("aria-pressed", each === button));
        draw.table();
      }
    });

    ask();
    form.querySelector("fieldset").disabled = false;
    form.dataset.ready = "true";
  }

  return live_translator;
})();
