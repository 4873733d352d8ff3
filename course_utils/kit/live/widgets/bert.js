// A BERT: it fills the gaps of a sentence, and shows what each gap looked at.
import { explain, explained, listenToTable } from "../closer.js";
import { BOS, EOS, MASK } from "../engine.js";
import { clicks, follow, partsOf } from "../form.js";
import { BERT } from "../models.js";
import { choiceButton, gallery, largest, mapAt, percent, region, safe, selfTable, sentenceField, sentences, slider, softmax } from "../parts.js";
import { correct, Subwords } from "../text.js";

const SHOWN = 8; // candidates for a gap
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

// The likeliest tokens as bars. Only a whole word can fill a gap: a piece would be cut anew.
function nextHTML(p, tokens, id) {
  const fits = (token) => id === MASK && token > MASK && tokens[token].endsWith("␣");
  const items = largest(p, SHOWN).map((token) => `<li style="--w: ${percent(p[token]) / 100}; --before: ${percent(p[token]) / 100}">` +
    `${choiceButton(fits(token) ? token : null, safe(tokens[token]))} <span>${percent(p[token])} %</span></li>`);
  const place = id === MASK ? "In this gap" : `In the place of <strong>${safe(tokens[id])}</strong>, which it reads,`;
  return `<p>${place} it expects:</p><ol class="cu-live-choices">${items.join("")}</ol>`;
}

// The text, each piece on a ground that is as dark as its weight; "␣" ends a word. now: the piece that is marked.
function textHTML(pieces, weights, now) {
  return pieces.map((piece, i) => {
    const space = /[␣>_]$/.test(piece) ? " " : "";
    const current = i === now ? ' aria-current="true"' : "";
    return `<span data-place="${i}"${current} style="--w: ${percent(weights[i]) / 100}">${safe(piece.replace("␣", ""))}</span>${space}`;
  }).join("").trim();
}

// A sentence as a model reads it: ids, logits of what belongs in each place, and maps.
function read(model, subwords, sentence) {
  const ids = encoded(subwords, sentence);
  const logits = model.step(ids, model.start());
  return { ids, logits, maps: model.layers("layers").map((name) => model.maps[`${name}.attention`]) };
}

const piecesOf = (ids, tokens) => ids.map((id) => (id === MASK ? "___" : tokens[id]));

// What is shown first, of a sentence with a gap.
function state([bundle], { sentence }) {
  const subwords = new Subwords(bundle.vocabularies);
  return { bundle, sentence, ...read(new BERT(bundle), subwords, sentence) };
}

function html({ bundle, sentence, ids, logits, maps }) {
  const { tokens } = bundle.vocabularies;
  const [map, place] = ["1.0", ids.indexOf(MASK)];
  const pieces = piecesOf(ids, tokens);
  const name = safe(`${place + 1} of ${ids.length}: ${pieces[place]}`);
  const steps = `name="place" min="1" max="${ids.length}" value="${place + 1}" aria-valuetext="${name}"`;
  const [right, count] = bundle.score;
  return `<p>Write a sentence with gaps: <kbd>___</kbd>. The stored BERT fills them here, in your browser.</p>
<div class="cu-live-ask">
${sentenceField("Sentence", "sentence", sentence)}
</div>
<p class="cu-live-examples">Examples: ${sentences(bundle.examples)}</p>
<p class="cu-live-unknown" aria-live="polite" data-part="unread"></p>
<p class="cu-live-text" data-part="text">${textHTML(pieces, mapAt(maps, map)[place], place)}</p>
<p class="cu-live-status" aria-live="polite" data-part="status"></p>
${slider("Token", steps, "place", name, "cu-live-step")}
<div class="cu-live-next" data-part="next">${nextHTML(softmax(logits[place]), tokens, MASK)}</div>
<p aria-live="polite" data-part="right"></p>
<input type="hidden" name="map" value="${map}">
<div class="cu-live-maps" role="group" aria-label="Maps by layer and head" data-part="maps">\
${gallery(maps, map)}</div>
${region("The chosen map", "table", selfTable(maps, map, pieces, place))}
${explained()}
<p class="cu-live-note">The stronger the color behind a piece of the text, the larger its weight for the \
marked token. A gap is one token: \
words that fall into pieces cannot come. Of ${count} tokens hidden in sentences that it has not read, its first guess \
is right for ${percent(right / count)} %. The third example is one of the others.</p>`;
}

function mount(form, [bundle]) {
  const model = new BERT(bundle);
  const names = model.layers("layers").map((name) => `${name}.attention`);
  const subwords = new Subwords(bundle.vocabularies);
  const { tokens } = subwords;
  const { field, part, show, write, say } = partsOf(form);
  let [ids, logits, maps] = [[], [], []];

  function ask() {
    const sentence = field.sentence.value;
    ({ ids, logits, maps } = read(model, subwords, sentence));
    field.place.max = ids.length;
    show("maps", gallery(maps, field.map.value));
    tell(sentence);
  }

  // What is new to it, and what an example should have been.
  function tell(sentence) {
    const unread = subwords.unreadHTML(sentence.split(GAP).join(" "));
    show("unread", unread + (GAP.test(sentence) ? "" : " Write ___ where a word is missing."));
    const example = bundle.examples.find((each) => each.sentence === sentence);
    const wrong = example && example.said !== example.right;
    write("right", wrong ? `Wrong. Right is: ${example.right.replace("␣", "")}` : "");
  }

  // `changed`: the control that a reader moved; the first time, and with a new sentence, all is drawn.
  function draw(changed) {
    const whole = [undefined, "sentence"].includes(changed) || !ids.length;
    if (whole) ask();
    if (changed === "sentence") field.place.value = Math.max(ids.indexOf(MASK), 0) + 1;
    const place = Math.min(Number(field.place.value), ids.length) - 1;
    const pieces = piecesOf(ids, tokens);
    show("text", textHTML(pieces, mapAt(maps, field.map.value)[place], place));
    show("next", nextHTML(softmax(logits[place]), tokens, ids[place]));
    if (changed !== "cell" && changed !== "operation") show("table", selfTable(maps, field.map.value, pieces, place));
    explain(form, model, names, field.map.value, { queries: pieces, keys: pieces, languages: ["en", "en"] });
    say(field.place, "place", `${place + 1} of ${ids.length}: ${pieces[place]}`);
  }

  // The gap of the chosen place, and its likeliest token: for those who hear the page.
  function fill(choice) {
    if (!ids.length) ask();
    const place = Number(field.place.value) - 1;
    const gap = ids.slice(0, place).filter((id) => id === MASK).length;
    set("sentence", filled(field.sentence.value, gap, tokens[choice].replace("␣", "")));
    write("status", `Filled: ${field.sentence.value}`);
    field.place.focus(); // the button is gone
  }

  const set = follow(form, draw);
  tell(field.sentence.value);
  listenToTable(part("table"), set);
  clicks(form, {
    choice: (id) => fill(Number(id)),
    place: (i) => set("place", Number(i) + 1),
    example: (i) => set("sentence", bundle.examples[i].sentence),
    for: correct(field.sentence, set),
  }, "button, [data-place]");
}

export { state, html, mount };
