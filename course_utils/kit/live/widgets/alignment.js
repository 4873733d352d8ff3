// Alignments: where Bahdanau's translator and the Transformer look for each word of their French.

const LONGEST = 40; // tokens of a translation
const NAMES = { attention: "Bahdanau", cross: "Transformer" };
const FRENCH = [["own", "each its own"], ["corpus", "the corpus's"]]; // what stands at the rows of the maps
const LOOKS = /(^|\.cross_)attention$/; // an attention from French to English

// What a translator says to ids of English, and where it looks: for its own French, or for French that is given.
function looked(model, source, words, given = null) {
  const state = model.start(source);
  const reading = new Reading(model, () => model.fork(state));
  const said = greedy(reading, source, LONGEST, state);
  const read = given?.map((word) => Math.max(words.indexOf(word), 0) || UNK) ?? said;
  reading.read([BOS, ...read]);
  const own = said.map((id) => words[id]);
  const ended = given || said.length < LONGEST ? "<eos>" : "…";
  const names = Object.keys(model.maps).filter((name) => LOOKS.test(name));
  const maps = names.map((name) => reading.map(name, source.length));
  return { own, says: [...(given ?? own), ended], names, maps, reading };
}

// Gold links, "0-1" for English 0 and French 1, as places of a map: row.column, "1.0".
const placesOf = (links) => links.split(" ").map((link) => link.split("-").reverse().join("."));

// How many French words have their largest weight on a gold link; <eos> does not count.
function hitsOf(weights, places) {
  const words = Array.from(weights).slice(0, -1);
  return words.filter((row, i) => places.includes(`${i}.${largest(Array.from(row).slice(0, -1), 1)[0]}`)).length;
}

function saidHTML(which, own, gold) {
  const said = own.join(" ");
  const other = gold && `The corpus has: <span translate="no" lang="fr">${safe(gold.french)}</span>`;
  const verdict = gold?.french === said ? "This is the corpus's French." : other ?? "";
  return `<p class="cu-live-said"><span class="cu-live-label">${NAMES[which]}</span> ` +
    `<strong translate="no" lang="fr">${safe(said)}</strong></p><p>${verdict}</p>`;
}

function goldHTML(tokens, gold) {
  if (!gold) return "The course's corpus does not have this sentence: its gold links are not known.";
  const french = gold.french.split(" ");
  const linked = tokens.map((_, s) => french.filter((_, t) => gold.places.includes(`${t}.${s}`)).join(" "));
  const said = tokens.map((word, s) =>
    linked[s] && /^[\p{L}\d]/u.test(word) && `<q translate="no">${safe(word)}</q> – <span translate="no" lang="fr">${safe(linked[s])}</span>`);
  return `Gold links of the corpus, framed where a map has its French: ${said.filter(Boolean).join("; ")}.`;
}

// The map of a translator, and how often it looks at a gold link. map: which of the Transformer's is shown.
function sideHTML(which, { says, maps }, tokens, gold, map) {
  const framed = says.slice(0, -1).join(" ") === gold?.french ? gold.places : [];
  const weights = which === "cross" ? mapAt(maps, map) : maps[0][0];
  const title = which === "cross" ? `Cross-attention, ${named(map)}` : "Attention";
  const large = table({
    caption: `${title}, in percent`,
    corner: ["says"],
    rows: says.map((word) => [word]),
    columns: [...tokens, "<eos>"],
    weights,
    languages: ["fr", "en"],
    framed,
  });
  const hits = `Largest weight on a gold link: ${hitsOf(weights, framed)} of ${says.length - 1} words.`;
  return { table: large, counted: framed.length ? hits : "" };
}

// English → French and links, of the sentences whose gold links are known.
const goldIn = ({ gold }) =>
  new Map(gold.map(([english, french, links]) => [english, { french, places: placesOf(links) }]));

// What is shown first, of a sentence whose words are known.
function state([bahdanau, transformer], { sentence }) {
  const { source, target } = bahdanau.vocabularies;
  const tokens = tokenize(sentence);
  const english = [...tokens.map((token) => idsOf(source).get(token)), EOS];
  const looks = {
    attention: looked(new AttentionTranslator(bahdanau), english, target),
    cross: looked(new Transformer(transformer), english, target),
  };
  return { bahdanau, transformer, sentence, tokens, gold: goldIn(bahdanau).get(tokens.join(" ")), looks };
}

function html({ bahdanau, transformer, sentence, tokens, gold, looks }) {
  const map = "mean";
  const sides = Object.keys(NAMES).map((which) => {
    const shown = sideHTML(which, looks[which], tokens, gold, map);
    return `<div data-part="${which}"><div aria-live="polite" data-part="said">` +
      `${saidHTML(which, looks[which].own, gold)}</div>${region(`Map: ${NAMES[which]}`, "table", shown.table)}` +
      `<p data-part="counted">${shown.counted}</p></div>`;
  });
  return `<p>Write an English sentence. Two stored translators answer here, in your browser.</p>
<div class="cu-live-ask">
${sentenceField("English", "sentence", sentence)}
</div>
<p class="cu-live-examples">Examples: ${sentences(bahdanau.examples)} \
${button('data-next=""', "another sentence with gold links")}</p>
<p class="cu-live-unknown" aria-live="polite" data-part="unknown"></p>
<div data-part="inside">
<fieldset class="cu-live-kinds"><legend>French in the rows</legend> ${radios("french", FRENCH, "own")}</fieldset>
<p aria-live="polite" data-part="gold">${goldHTML(tokens, gold)}</p>
${checkpointSlider(bahdanau, "Bahdanau trained for")}
<div class="cu-live-beside">${sides.join("")}</div>
<p class="cu-live-label">Maps of the Transformer</p>
<input type="hidden" name="map" value="${map}">
<div class="cu-live-maps" role="group" aria-label="Maps of the Transformer by layer and head" data-part="maps">\
${gallery(looks.cross.maps, map)}</div>
${explained()}
</div>
<p class="cu-live-note">Both know the same ${bahdanau.vocabularies.source.length - 4} English words and were trained on the \
same sentences, the Transformer for two epochs and Bahdanau's model for nine. On ${bahdanau.score[1]} sentences outside the \
training set the Transformer translates ${transformer.score[0]} exactly, and Bahdanau's ${bahdanau.score[0]}. Their trainings \
differ too much to say which kind is better. Gold links are known for ${bahdanau.gold.length} sentences that neither was \
trained on.</p>`;
}

function mount(form, [bahdanau, transformer]) {
  const trained = checkpoint(form, bahdanau, (packed) => new AttentionTranslator(packed));
  const models = { attention: trained(), cross: new Transformer(transformer) };
  const { source, target } = bahdanau.vocabularies; // the other's are the same
  const ids = idsOf(source);
  const known = goldIn(bahdanau);
  const { field, part, show } = partsOf(form);
  const inside = (which, name) => part(which).querySelector(`[data-part="${name}"]`);
  let tokens;
  let gold;
  let looks;

  function ask() {
    tokens = tokenize(field.sentence.value);
    const unknown = [...new Set(tokens)].filter((token) => !ids.has(token));
    const words = unknown.map((token) => unknownWord(token, source)).join(" ");
    show("unknown", words + (tokens.length ? "" : "Write an English sentence."));
    part("inside").hidden = tokens.every((token) => unknown.includes(token));
    if (part("inside").hidden) return;
    gold = known.get(tokens.join(" "));
    const given = field.french.value === "corpus" && gold ? gold.french.split(" ") : null;
    const english = [...tokens.map((token) => ids.get(token) ?? UNK), EOS];
    looks = {};
    for (const which of Object.keys(models)) {
      looks[which] = looked(models[which], english, target, given);
      inside(which, "said").innerHTML = saidHTML(which, looks[which].own, gold);
    }
    show("gold", goldHTML(tokens, gold));
    show("maps", gallery(looks.cross.maps, field.map.value));
  }

  function side(which) {
    const shown = sideHTML(which, looks[which], tokens, gold, field.map.value);
    inside(which, "table").innerHTML = shown.table;
    inside(which, "counted").textContent = shown.counted;
  }

  // How the chosen number was computed; `cell` holds whose it is, and where: "cross:2.0".
  function explained() {
    const [chosen, cell] = field.cell.value.split(":");
    const order = Object.keys(models).sort((a, b) => (a === chosen) - (b === chosen)); // the chosen one is the last
    for (const which of order) {
      const { names, says, reading } = looks[which];
      if (which === chosen) reading.again();
      const map = which === "attention" ? "0.0" : field.map.value;
      const inside = {
        querySelector: (selector) => part(which).querySelector(selector) ?? form.querySelector(selector),
        elements: { cell: { value: which === chosen ? cell ?? "" : "" }, operation: field.operation },
      };
      explain(inside, models[which], names, map, { queries: says, keys: [...tokens, "<eos>"], languages: ["fr", "en"] });
    }
  }

  // `changed`: the control that a reader moved; without it all is drawn.
  function draw(changed) {
    needMap(form);
    const now = trained(() => draw(changed));
    if (!now) return; // it is loaded, and then drawn
    models.attention = now;
    if (!["map", "cell", "operation"].includes(changed) || !looks) ask();
    if (part("inside").hidden) return;
    if (changed !== "operation" && changed !== "cell") Object.keys(models).forEach(side);
    explained();
  }

  const set = follow(form, draw);
  for (const which of Object.keys(models)) {
    listenToTable(inside(which, "table"), (_, place) => set("cell", `${which}:${place}`));
  }
  const lines = [...known.keys()];
  clicks(form, {
    example: (i) => set("sentence", bahdanau.examples[i].sentence),
    next: () => set("sentence", lines[(lines.indexOf(tokenize(field.sentence.value).join(" ")) + 1) % lines.length]),
    for: correct(field.sentence, set),
  });
}
