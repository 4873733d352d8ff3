// A BERT in a page: it fills the gaps of a sentence, and shows what each gap looked at. The parts `text`, `next`, `maps`
// and `table` are written by bert.py, too, for pages without scripts.
(globalThis.live_widgets ??= {}).bert = (() => {
  "use strict";
  const parts = globalThis.live_parts;
  const { largest, mapAt, named, safe } = parts;
  const SHOWN = 8; // candidates for a gap
  const [BOS, EOS, MASK] = [2, 3, 4];
  const GAP = /_+|<mask>/;

  // Ids of a sentence: each gap is one token that is hidden.
  function encoded(subwords, sentence) {
    const [first, ...others] = sentence.split(GAP).map((text) => subwords.encode(text));
    return [BOS, ...first, ...others.flatMap((ids) => [MASK, ...ids]), EOS];
  }

  // The sentence with a word in one of its gaps, counted from 0.
  function filled(sentence, gap, word) {
    const texts = sentence.split(GAP);
    const between = texts.slice(1).map((_, i) => (i === gap ? word : "___"));
    return texts.map((text, i) => text + (between[i] ?? "")).join("");
  }

  // HTML ----------------------------------------------------------------------------------------

  // Only a whole word can fill a gap: a piece would be cut anew.
  function nextHTML(p, tokens, id) {
    const whole = (token) => token > MASK && tokens[token].endsWith("␣");
    const items = largest(p, SHOWN).map((token) => ({
      text: tokens[token],
      choice: id === MASK && whole(token) ? token : null,
      before: p[token],
      after: p[token],
    }));
    const place = id === MASK ? "In this gap" : `In the place of <strong>${safe(tokens[id])}</strong>, which it reads,`;
    return `<p>${place} it expects:</p>${parts.choices(items)}`;
  }

  function tableHTML(maps, map, pieces, place) {
    return parts.table({
      caption: `Self-attention, ${named(map)}: each row in percent`,
      corner: ["reads"],
      rows: pieces.map((piece) => [piece]),
      columns: pieces,
      weights: mapAt(maps, map),
      now: place,
    });
  }

  // The widget ----------------------------------------------------------------------------------

  return function bert(form, bundle) {
    const model = new globalThis.live_engine.BERT(bundle);
        const { softmax } = globalThis.live_engine.tools;
    const { headsOf, explain, listen } = globalThis.live_explain;
    const names = model.layers("layers").map((name) => `${name}.attention`);
    const subwords = new globalThis.live_subwords.Subwords(bundle.vocabularies);
    const { tokens } = subwords;
    const field = form.elements;
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    const show = (name, html) => {
      part(name).innerHTML = html;
    };
    let [ids, logits, maps] = [[], [], []];

    function read() {
      const sentence = field.sentence.value;
      ids = encoded(subwords, sentence);
      logits = model.step(ids, model.start());
      maps = names.map((name) => model.maps[name]);
      field.place.max = ids.length;
      show("maps", parts.gallery(maps, field.map.value));
      tell(sentence);
    }

    // What is new to it, and what an example should have been.
    function tell(sentence) {
      const known = sentence.split(GAP).join(" ");
      const unread = subwords.unread(known).map((word) => subwords.unreadWord(word)).join(" ");
      show("unread", unread + (GAP.test(sentence) ? "" : " Write ___ where a word is missing."));
      const example = bundle.examples.find((each) => each.sentence === sentence);
      const wrong = example && example.said !== example.right;
      part("right").textContent = wrong ? `Wrong. Right is: ${example.right.replace("␣", "")}` : "";
    }

    // `changed`: the control that a reader moved; the first time, and with a new sentence, all is drawn.
    function draw(changed) {
      const whole = [undefined, "sentence"].includes(changed) || !ids.length;
      if (whole) read();
      if (changed === "sentence") field.place.value = Math.max(ids.indexOf(MASK), 0) + 1;
      const place = Math.min(Number(field.place.value), ids.length) - 1;
      const pieces = ids.map((id) => (id === MASK ? "___" : tokens[id]));
      show("text", parts.weighted(pieces, mapAt(maps, field.map.value)[place], place));
      show("next", nextHTML(softmax(logits[place]), tokens, ids[place]));
      if (changed !== "cell" && changed !== "operation") show("table", tableHTML(maps, field.map.value, pieces, place));
      const heads = headsOf(model, names, field.map.value);
      explain(form, model, heads, { queries: pieces, keys: pieces, languages: ["en", "en"] });
      const name = `${place + 1} of ${ids.length}: ${pieces[place]}`;
      field.place.setAttribute("aria-valuetext", name);
      part("place").textContent = name;
    }

    // The gap of the chosen place, and its likeliest token: for those who hear the page.
    function fill(choice) {
      if (!ids.length) read();
      const place = Number(field.place.value) - 1;
      const gap = ids.slice(0, place).filter((id) => id === MASK).length;
      set("sentence", filled(field.sentence.value, gap, tokens[choice].replace("␣", "")));
      part("status").textContent = `Filled: ${field.sentence.value}`;
      field.place.focus(); // the button is gone
    }

    const set = parts.follow(form, draw, { written: true });
    tell(field.sentence.value);
    listen(part("table"), set);
    form.addEventListener("click", ({ target }) => {
      const { choice, place, example, for: word } = target.closest("button, [data-place]")?.dataset ?? {};
      if (choice) fill(Number(choice));
      if (place) set("place", Number(place) + 1);
      if (example) set("sentence", bundle.examples[Number(example)].sentence);
      if (!word) return;
      set("sentence", parts.replaced(field.sentence.value, word, target.textContent));
      field.sentence.focus();
    });
  };
})();
