// One gap, two readers: a BERT, which reads both sides of it, and a GPT of the same size, which reads only the left.

const SHOWN = 6; // candidates for a gap
const GAP = /_+/;

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

const piecesOf = (ids, tokens) => ids.map((id) => (id === MASK ? "___" : tokens[id]));
const spaced = (piece) => safe(piece.replace("␣", "")) + (/[␣>_]$/.test(piece) ? " " : "");
const joined = (pieces) => pieces.map(spaced).join("").trim();

// The likeliest tokens as bars. Only a whole word can fill a gap: a piece would be cut anew.
function barsHTML(logits, tokens, isGap) {
  const p = softmax(logits);
  const fits = (token) => isGap && token > MASK && tokens[token].endsWith("␣");
  const shown = largest(p, SHOWN).filter((token) => percent(p[token]) > 0);
  const rest = restOf(shown.map((token) => p[token]));
  const items = shown.map((token) => `<li style="--w: ${percent(p[token]) / 100}; --before: ${percent(p[token]) / 100}">` +
    `${choiceButton(fits(token) ? token : null, safe(tokens[token]))} <span>${percent(p[token])} %</span></li>`);
  const others = rest ? `<li class="others" style="--w: 0; --before: 0"><span>others</span> <span>${rest} %</span></li>` : "";
  return `<ol class="cu-live-choices">${items.join("")}${others}</ol>`;
}

// What the reader of both sides expects in a place, and what the other one expects there.
function bothHTML({ ids, logits }, tokens, place) {
  const pieces = piecesOf(ids, tokens);
  const before = pieces.slice(1, Math.max(place, 1));
  const [left, right] = [joined(before), joined(pieces.slice(place + 1, -1))];
  return `<p><strong>Reads both sides</strong> (BERT)<br><span ${DATA}>${left} <strong>${safe(pieces[place])}</strong> ${right}</span></p>` +
    barsHTML(logits[place], tokens, ids[place] === MASK);
}
function leftHTML({ ids, guesses }, tokens, place) {
  const left = joined(piecesOf(ids, tokens).slice(1, Math.max(place, 1)));
  const begins = `<p><strong>Reads only the left</strong> (GPT)<br><span ${DATA}>${left} <strong>…</strong></span></p>`;
  if (place === 0) return `${begins}<p>Nothing comes before the first token.</p>`;
  if (!guesses[place - 1]) return `${begins}<p>It has never seen a gap, so fill the earlier one first.</p>`;
  return begins + barsHTML(guesses[place - 1], tokens, ids[place] === MASK);
}

// The text, each piece on a ground that is as dark as its weight; "␣" ends a word. now: the piece that is marked.
function textHTML(pieces, weights, now) {
  return pieces.map((piece, i) => {
    const [text, space] = spaced(piece).split(/( )$/);
    const current = i === now ? ' aria-current="true"' : "";
    return `<span data-place="${i}"${current} style="--w: ${percent(weights[i]) / 100}">${text}</span>${space ?? ""}`;
  }).join("").trim();
}

// A sentence as both read it: ids; of the BERT logits of what belongs in each place, and its maps; of the GPT, which stops
// at the first gap, logits of what comes next.
function read([model, left], subwords, sentence) {
  const ids = encoded(subwords, sentence);
  const logits = model.step(ids, model.start());
  const end = ids.includes(MASK) ? ids.indexOf(MASK) : ids.length;
  const guesses = left.step(ids.slice(0, end), left.start());
  return { ids, logits, guesses, maps: model.layers("layers").map((name) => model.maps[`${name}.attention`]) };
}

// What is shown first, of a sentence with a gap.
function state([bundle, left], { sentence }) {
  const subwords = new Subwords(bundle.vocabularies);
  return { bundle, sentence, ...read([new BERT(bundle), new GPT(left)], subwords, sentence) };
}

function html({ bundle, sentence, ids, logits, guesses, maps }) {
  const { tokens } = bundle.vocabularies;
  const [map, place] = ["1.0", ids.indexOf(MASK)];
  const pieces = piecesOf(ids, tokens);
  const name = safe(`${place + 1} of ${ids.length}: ${pieces[place]}`);
  const steps = `name="place" min="1" max="${ids.length}" value="${place + 1}" aria-valuetext="${name}"`;
  const [right, count] = bundle.score;
  return `<p>Write a sentence with a gap, <kbd ${DATA}>___</kbd>. Two small networks say what belongs there.</p>
<div class="cu-live-ask">
${sentenceField("Sentence", "sentence", sentence)}
</div>
<p class="cu-live-examples">Examples: ${sentences(bundle.examples)}</p>
<p class="cu-live-unknown" aria-live="polite" data-part="unread"></p>
<div class="cu-live-beside">
<div class="cu-live-next" data-part="next">${bothHTML({ ids, logits }, tokens, place)}</div>
<div class="cu-live-next" data-part="left">${leftHTML({ ids, guesses }, tokens, place)}</div>
</div>
<p class="cu-live-status" aria-live="polite" data-part="status"></p>
<p aria-live="polite" data-part="right"></p>
<label class="cu-live-closer">${input("checkbox", 'name="closer"')} Look closer at the BERT</label>
<div class="cu-live-close">
<p class="cu-live-text" ${DATA} data-part="text">${textHTML(pieces, mapAt(maps, map)[place], place)}</p>
${slider("Token", steps, "place", name, "cu-live-step", `${DATA} `)}
<input type="hidden" name="map" value="${map}">
<div class="cu-live-maps" role="group" aria-label="Maps by layer and head" data-part="maps">\
${gallery(maps, map)}</div>
${region("The chosen map", "table", selfTable(maps, map, pieces, place))}
${explained()}
</div>
<p class="cu-live-note">Both were trained on the same sentences for the same number of steps. A gap is one token, so \
a word that falls into pieces cannot fill it. \
On ${count} tokens hidden in sentences outside its training set, the accuracy of the BERT's first guess is \
${percent(right / count)} %. In the third example it is wrong.</p>`;
}

function mount(form, [bundle, left]) {
  const models = [new BERT(bundle), new GPT(left)];
  const [model] = models;
  const names = model.layers("layers").map((name) => `${name}.attention`);
  const subwords = new Subwords(bundle.vocabularies);
  const { tokens } = subwords;
  const { field, part, show, say } = partsOf(form);
  let text = { ids: [] };

  function ask() {
    const sentence = field.sentence.value;
    text = read(models, subwords, sentence);
    field.place.max = text.ids.length;
    show("maps", gallery(text.maps, field.map.value));
    tell(sentence);
  }

  // What is new to them, and what an example should have been.
  function tell(sentence) {
    const unread = subwords.unreadHTML(sentence.split(GAP).join(" "));
    show("unread", unread + (GAP.test(sentence) ? "" : " Write ___ where a word is missing."));
    const example = bundle.examples.find((each) => each.sentence === sentence);
    const wrong = example && example.said !== example.right;
    show("right", wrong ? `Wrong. Right is: ${asIs(example.right.replace("␣", ""))}` : "");
  }

  // `changed`: the control that a reader moved; the first time, and with a new sentence, all is drawn.
  function draw(changed) {
    if ([undefined, "sentence"].includes(changed) || !text.ids.length) ask();
    const { ids, maps } = text;
    if (changed === "sentence") field.place.value = Math.max(ids.indexOf(MASK), 0) + 1;
    const place = Math.min(Number(field.place.value), ids.length) - 1;
    const pieces = piecesOf(ids, tokens);
    show("next", bothHTML(text, tokens, place));
    show("left", leftHTML(text, tokens, place));
    show("text", textHTML(pieces, mapAt(maps, field.map.value)[place], place));
    if (changed !== "cell" && changed !== "operation") show("table", selfTable(maps, field.map.value, pieces, place));
    explain(form, model, names, field.map.value, { queries: pieces, keys: pieces, languages: ["en", "en"] });
    say(field.place, "place", `${place + 1} of ${ids.length}: ${pieces[place]}`);
  }

  // The gap of the chosen place, and its likeliest token: for those who hear the page.
  function fill(choice) {
    if (!text.ids.length) ask();
    const place = Number(field.place.value) - 1;
    const gap = text.ids.slice(0, place).filter((id) => id === MASK).length;
    set("sentence", filled(field.sentence.value, gap, tokens[choice].replace("␣", "")));
    show("status", `Filled: ${asIs(field.sentence.value)}`);
    field.sentence.focus(); // the button is gone
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
