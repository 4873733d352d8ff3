// The machine: a drawing of the whole Transformer that translates. Each part shows what it adds. An ablated part
// adds zeros, and the French shows what the other parts can do alone.

const LONGEST = 20; // tokens of a translation
const FULL = 1.5; // ratio of a full bar
const UNSURE = 0.5; // a word that is less probable is marked
const sublayers = (layer, names) => names.map((name) => `${layer}.${name}`);
const SIDES = {
  encoder: ["source_embedding.positions", ...["encoder.0", "encoder.1"].flatMap((layer) =>
    sublayers(layer, ["attention", "feed_forward"]))],
  decoder: ["target_embedding.positions", ...["decoder.0", "decoder.1"].flatMap((layer) =>
    sublayers(layer, ["self_attention", "cross_attention", "feed_forward"]))],
};
const WHOLE = ["norms", "residuals"]; // of all layers at once
const PARTS = [...SIDES.encoder, ...SIDES.decoder, ...WHOLE];
const KINDS = {
  positions: ["Positions", "where each word stands"],
  attention: ["Self-attention", "looks at all the words"],
  self_attention: ["Masked self-attention", "looks at the French so far"],
  cross_attention: ["Cross-attention", "looks at the English"],
  feed_forward: ["Feed-forward", "one word at a time"],
  norms: ["Layer norms", "one size for all"],
  residuals: ["Residuals", "let vectors pass by"],
};
// A sentence, what to look for in it, and whether it is found.
const HUNTS = [
  ["Tom doesn't know Anna.", "Without which box is Anna the one who doesn't know?", ({ text }) => text.startsWith("anna ne connaît pas")],
  ["Oscar was a doctor.", "Without which box is Oscar a doctor twice?", ({ text }) => text.includes("médecin était médecin")],
  ["He isn't a painter.", "Without which box is he a painter after all?", ({ text }) => text === "il est peintre ."],
  ["Her bottle is full.", "Without which two boxes is it <em>son bouteille</em>?", ({ text }) => text.includes("son bouteille")],
  ["The dog is behind the house.", "How many boxes can you ablate without changing a word? Six is good.",
    ({ text, off }, before) => text === before.text && off.length > 5],
];

const kindOf = (part) => part.split(".").at(-1);
const sideOf = (part) => (SIDES.encoder.includes(part) ? "encoder" : "decoder");
const layerOf = (part) => part.match(/\.(\d)\./)?.[1];
function nameOf(part) {
  const name = KINDS[kindOf(part)][0].toLowerCase();
  if (WHOLE.includes(part)) return name;
  return `${name} (${sideOf(part)}${layerOf(part) ? `, layer ${layerOf(part)}` : ""})`;
}

// The model ------------------------------------------------------------------------------------

class Machine extends Transformer {
  off = []; // names of the PARTS that are ablated
  added = {}; // part → what it added to each token, rows
  passing = {}; // part → what it was added to

  norm(name, x) {
    return this.off.includes("norms") ? x : super.norm(name, x);
  }

  residual(part, x, sublayer) {
    return this.sum(part, x, sublayer(this.norm(`${part}_norm`, x)), !this.off.includes("residuals"));
  }

  embed(name, ids, start) {
    const table = this.p[`${name}.weight`];
    const dim = table[0].length;
    const words = ids.map((id) => table[id].map((value) => value * Math.sqrt(dim)));
    return this.sum(`${name}.positions`, words, ids.map((_, i) => sinusoids(start + i, dim)));
  }

  sum(part, x, given, passes = true) {
    const zeros = (rows) => rows.map((row) => new Float64Array(row.length));
    const added = this.off.includes(part) ? zeros(given) : given;
    const passing = passes ? x : zeros(x);
    for (const [record, rows] of [[this.added, added], [this.passing, passing]]) {
      record[part] = [...(record[part] ?? []).slice(0, this.position), ...rows];
    }
    return passing.map((row, i) => plus(row, added[i]));
  }
}

// What it says without the parts that are off, how sure it is, and what each part added.
function translated({ model, language }, asked, off = []) {
  Object.assign(model, { off, added: {}, passing: {} });
  const state = model.start(asked.ids);
  const reading = new Reading(model, () => state);
  const said = greedy(reading, asked.ids, LONGEST, state);
  reading.read([BOS, ...said]);
  const maps = Object.fromEntries(Object.keys(model.maps).map((name) => [name,
    name.startsWith("encoder") ? model.maps[name] : reading.map(name, name.includes("cross") ? asked.ids.length : undefined)]));
  const isCut = said.length === LONGEST;
  const words = language.says(said).map(({ text }) => text);
  const sure = said.map((id, i) => softmax(speakable(reading.logits[i]))[id]);
  const { added, passing } = model;
  const source = asked.words.map(({ text }, i, { length }) => (i === length - 1 ? "end" : text));
  const ids = isCut ? said : [...said, EOS];
  return { off, source, said, ids, words, text: words.join(" "), sure, isCut, logits: reading.logits, added, passing, maps };
}

const size = (row) => Math.sqrt(total(row.map((value) => value * value)));
// ‖what a part adds‖ / ‖what it is added to‖, of each token.
const ratios = ({ added, passing }, part) => added[part].map((row, i) => size(row) / size(passing[part][i]));

// How many words of either are not in the other.
const changes = (now, before) =>
  Math.max(fresh(now.words, before.words).length, fresh(before.words, now.words).length);

// The drawing ----------------------------------------------------------------------------------

const readsOf = (trace, side) =>
  (side === "encoder" ? trace.source : ["start", ...trace.words].slice(0, trace.ids.length));
// The token in focus: at first the last word before the point.
function focusOf({ now, before }, chosen) {
  const at = (given, usual, side) => {
    const number = /^\d+$/.test(given) ? Number(given) : usual;
    return Math.min(number, readsOf(now, side).length - 1);
  };
  return {
    encoder: at(chosen.en, Math.max(0, now.source.length - 3), "encoder"),
    decoder: at(chosen.fr, Math.max(0, before.ids.length - 3), "decoder"),
  };
}

function wire(part) {
  const sum = '<path class="branch" d="M66 34H23"/><path class="tip" d="M18.5 34l7-3.5v7z"/>' +
    '<circle cx="12" cy="34" r="6.5"/><path d="M12 30.5v7M8.5 34h7"/>';
  const stream = (y1, y2, sort = "") => `<path class="stream${sort}" d="M12 ${y1}V${y2}"/>`;
  const read = `${stream(0, 9)}${stream(9, 28, " shortcut")}${stream(34, 48)}<path class="branch" d="M12 9H66"/>` +
    '<rect class="norm" x="21" y="1" width="35" height="16" rx="8"/><text x="38.5" y="13">norm</text>';
  return `<svg class="wire" aria-hidden="true">${kindOf(part) === "positions" ? stream(0, 48) : read}${sum}</svg>`;
}

const switchButton = (part, off) => button(`class="switch" role="switch" aria-checked="${!off.includes(part)}" ` +
  `data-switch="${part}" aria-label="${nameOf(part)}"`, "<i></i>");

// What was found when only this part was ablated.
function foundHTML(count) {
  if (count === undefined) return "";
  return count ? `<em>${count} changed</em>` : '<em class="same">same</em>';
}

function strip(name, numbers, most) {
  const cells = Array.from(numbers, (value, i) => `<rect class="${value > 0 ? "more" : "less"}" x="${i}" width="1" ` +
    `height="1" fill-opacity="${Math.min(1, Math.abs(value) / most).toFixed(2)}"/>`).join("");
  return `<div class="strip"><span>${name}</span><svg viewBox="0 0 ${numbers.length} 1" preserveAspectRatio="none" ` +
    `role="img" aria-label="${name}: ${numbers.length} numbers">${cells}</svg></div>`;
}

// The inside of a part that is open: its maps, and the numbers of the word in focus.
function insideHTML({ now }, part, at) {
  const queries = readsOf(now, sideOf(part));
  const keys = kindOf(part) === "cross_attention" ? now.source : queries;
  const word = `<em translate="no">${safe(queries[at])}</em>`;
  const heads = (now.maps[part] ?? []).map((rows, head) => {
    const row = Array.from(rows[at]);
    const best = row.indexOf(Math.max(...row));
    const cells = rows.map((weights, i) => Array.from(weights, (weight, j) => (weight > 0.005
      ? `<rect x="${j}" y="${i}" width="1" height="1" fill-opacity="${weight.toFixed(2)}"/>` : "")).join("")).join("");
    return `<figure><svg viewBox="0 0 ${row.length} ${rows.length}" role="img" aria-label="Weights of head ${head}">${cells}` +
      `<rect class="now" y="${at}" width="${row.length}" height="1"/></svg>` +
      `<figcaption>head ${head} <b translate="no">${safe(keys[best])}</b> ${Math.round(100 * row[best])} %</figcaption></figure>`;
  }).join("");
  const maps = heads && `<p>Where ${word} looks, head by head: its row is framed, and below is the word it looks at most.</p>` +
    `<div class="heads">${heads}</div>`;
  const [passing, added] = [now.passing[part][at], now.added[part][at]];
  const sum = plus(passing, added);
  const most = 0.7 * Math.max(...[...passing, ...added, ...sum].map(Math.abs)) || 1;
  const strips = strip("passes by", passing, most) + strip("+ adds", added, most) + strip("= goes on", sum, most);
  return `<div class="inside">${maps}${now.off.includes(part) ? "<p>It is ablated, so it adds zeros.</p>" : ""}${strips}` +
    `<p>The ${sum.length} numbers of ${word}: blue is above zero, the warm color below.</p></div>`;
}

function rowHTML(run, part, at, { open, tried }) {
  const [name, told] = KINDS[kindOf(part)];
  const ratio = ratios(run.now, part)[at];
  const [number, width] = Number.isFinite(ratio) ? [ratio.toFixed(2), Math.min(1, ratio / FULL)] : ["only this", 1];
  const isOpen = open === part;
  return `<div class="unit${run.now.off.includes(part) ? " off" : ""}${isOpen ? " opened" : ""}" data-key="${part}">${wire(part)}` +
    `<div class="box">${button(`class="open" data-open="${part}" aria-expanded="${isOpen}"`, `<strong>${name}</strong> <span>${told}</span>`)}` +
    `<div class="bar"><i style="--w: ${width.toFixed(3)}"></i><span><span>${number}</span> ${foundHTML(tried[part])}</span></div>` +
    `${switchButton(part, run.now.off)}</div>${isOpen ? insideHTML(run, part, at) : ""}</div>`;
}

const end = (content) => '<div class="end"><svg class="wire" aria-hidden="true"><path class="stream" d="M12 0V6M12 21V33"/>' +
  '<rect class="norm" x="-6" y="5" width="36" height="16" rx="8"/><text x="12" y="17">norm</text>' +
  `<path class="tip down" d="M12 38l-4.5-7h9z"/></svg><span>${content}</span></div>`;

function columnHTML(run, side, at, view) {
  const [short, language] = side === "encoder" ? ["en", "en"] : ["fr", "fr"];
  const words = readsOf(run.now, side).map((text, i) =>
    button(`data-${short}="${i}" aria-pressed="${at === i}"${/^(start|end)$/.test(text) ? ' class="mark"' : ""}`, safe(text)));
  const layer = (text) => `<div class="layer"><span>${text}</span></div>`;
  const rows = SIDES[side].map((part, i) => {
    const number = layerOf(part);
    const isNew = number !== undefined && number !== layerOf(SIDES[side][i - 1]);
    return (isNew ? layer(`layer ${number}`) : "") + rowHTML(run, part, at, view);
  }).join("");
  const [title, told] = { encoder: ["Encoder", "reads the English"], decoder: ["Decoder", "reads the French so far"] }[side];
  const last = side === "encoder" ? `the <strong>memory</strong>: ${run.now.source.length} vectors to look at`
    : `a logit (a score) for each of ${run.words.toLocaleString("en")} words; the largest wins`;
  return `<div class="column ${side}" role="group" aria-label="${title}"><p class="head"><strong>${title}</strong> ${told}</p>` +
    `<div class="words" translate="no" lang="${language}">${words.join("")}</div>${layer(`embedding: ${run.size} numbers a word`)}${rows}${end(last)}</div>`;
}

function wholeHTML({ now }, { tried }) {
  const boxes = WHOLE.map((part) => `<div class="unit${now.off.includes(part) ? " off" : ""}" data-key="${part}"><div class="box">` +
    `<span><strong>${KINDS[part][0]}</strong> <span>${foundHTML(tried[part]) || KINDS[part][1]}</span></span>${switchButton(part, now.off)}</div></div>`);
  return `<div class="whole" role="group" aria-label="In every layer">${boxes.join("")}</div>`;
}

function machineHTML(run, view) {
  const at = focusOf(run, view);
  const sort = WHOLE.filter((part) => run.now.off.includes(part)).map((part) => ` no-${part}`).join("");
  const says = run.now.words[at.decoder] ?? "the end";
  return `<div class="machine${sort}">${columnHTML(run, "encoder", at.encoder, view)}${columnHTML(run, "decoder", at.decoder, view)}` +
    `${wholeHTML(run, view)}</div><p class="legend">The bar <i></i> compares the vector that a part adds with the vector that it is added to: ` +
    `for <em translate="no">${safe(run.now.source[at.encoder])}</em>, and for the step that says <em translate="no" lang="fr">${safe(says)}</em>. Press another word to see its bars.</p>`;
}

// The French, and under it what it was before, or what to look for.
function frenchHTML(run, view) {
  const { now, before } = run;
  const other = fresh(now.words, before.words);
  const at = focusOf(run, view).decoder;
  const words = now.words.map((text, i) => {
    const sorts = [other.includes(i) && "fresh", now.sure[i] < UNSURE && "unsure"].filter(Boolean).join(" ");
    return button(`data-fr="${i}" aria-pressed="${at === i}" class="${sorts}" title="${Math.round(100 * now.sure[i])} %"`, safe(text));
  });
  const silence = '<span class="silence" translate="yes" lang="en">nothing: it stops at once</span>';
  const line = `<p class="said"><strong>French</strong> <span translate="no" lang="fr">${words.join("") || silence}</span>` +
    `${now.isCut ? ' <span class="cut">… (we stop it here)</span>' : ""}</p>`;
  const hunt = HUNTS.find(([sentence]) => tokenize(sentence).join(" ") === run.asked);
  const isFound = hunt?.[2](now, before);
  const names = now.off.length < 3 ? now.off.map(nameOf).join(" and ") : `${now.off.length} parts`;
  const was = now.text === before.text && !now.isCut ? "It says the same" : `<s ${DATA} lang="fr">${safe(before.text)}</s> before, now`;
  const told = [
    now.off.length ? `${was} without ${names}.` : "",
    isFound ? '<strong class="found">✓ You found it.</strong>' : hunt ? `<span class="hunt">${hunt[1]}</span>` : "",
    !now.off.length && !hunt ? "Ablate a box: switch it off." : "",
    now.sure.some((share) => share < UNSURE) ? '<span class="key">Dotted: less than 50 % sure.</span>' : "",
  ].filter(Boolean).join(" ");
  return `${line}<div class="before"><p>${told}</p>${button(`data-on=""${now.off.length ? "" : ' hidden=""'}`, "All on")}</div>`;
}

const statusHTML = ({ now }) => `${now.off.length ? `Without ${now.off.map(nameOf).join(", ")}: ` : ""}` +
  (now.text ? `<span translate="no" lang="fr">${safe(now.text)}</span>` : "nothing");

// The form -------------------------------------------------------------------------------------

const answering = (bundle) => ({ model: new Machine(bundle), language: languageOf(bundle), bundle });
const heard = ({ language }, text) => language.read(/[.?!…]\s*$/.test(text) ? text : `${text} .`);
function ran(who, asked, before, off) {
  const now = off.length || !before ? translated(who, asked, off) : before;
  const { config } = who.bundle;
  const read = asked.words.slice(0, -1).map(({ text }) => text).join(" ");
  return { now, before: before ?? now, asked: read, words: config.target_size, size: config.embed_dim };
}

// What is shown first; off: the names of the parts that are ablated then.
function state([bundle], { sentence, off }) {
  const who = answering(bundle);
  const before = translated(who, heard(who, sentence));
  return { run: ran(who, heard(who, sentence), before, off), sentence, off };
}

function html({ run, sentence, off }) {
  const view = { sentence, open: "", en: "", fr: "", tried: {} };
  const tries = HUNTS.map(([text], i) => button(`${DATA} data-try="${i}"`, safe(text))).join(" ");
  const hidden = ["off", "open", "en", "fr"].map((name) =>
    input("hidden", `name="${name}" value="${name === "off" ? off.join(",") : ""}"`)).join("");
  return `<div class="cu-live-ask">${sentenceField("English", "sentence", sentence)}</div>
<p class="cu-live-examples cu-live-tries"><span>Try</span> ${tries}</p>
<p class="cu-live-unknown" aria-live="polite" data-part="unknown"></p>
${hidden}<div class="cu-machine"><div data-part="machine">${machineHTML(run, view)}</div>\
<svg class="link" aria-hidden="true"></svg></div>
<div class="cu-machine-french" data-part="french">${frenchHTML(run, view)}</div>
<p class="cu-heard" role="status" data-part="status">${statusHTML(run)}</p>`;
}

// The line from the memory to each cross-attention; on a phone, where one column stands below the other, there is none.
function drawLink(stage) {
  const frame = stage.getBoundingClientRect();
  const at = (node) => {
    const { left, right, top } = node.getBoundingClientRect();
    return { left: left - frame.left, right: right - frame.left, top: top - frame.top };
  };
  const [encoder, decoder, memory] = [".encoder", ".decoder", ".encoder .end"].map((name) => at(stage.querySelector(name)));
  const [x, y] = [encoder.right + 14, memory.top + 28];
  const ends = [...stage.querySelectorAll('[data-key$="cross_attention"]')].map((row) => {
    const { left, top } = at(row.querySelector(".box"));
    return { left, top: top + 22, sort: row.classList.contains("off") ? ' class="away"' : "" };
  });
  const heights = [y, ...ends.map(({ top }) => top)];
  const paths = ends.map(({ left, top, sort }) =>
    `<path class="gap" d="M${x + 10} ${top}h30"/><path${sort} d="M${x} ${top}H${left}m-6 -4l6 4-6 4"/>`);
  stage.querySelector(".link").innerHTML = decoder.left < x ? ""
    : `<path d="M20 ${y}H${x}M${x} ${Math.min(...heights)}V${Math.max(...heights)}"/>${paths.join("")}`;
}

function mount(form, [bundle]) {
  const who = answering(bundle);
  const { field, part, show } = partsOf(form);
  const tried = {}; // sentence → part → words that change when only this part is ablated
  const again = () => drawLink(form.querySelector(".cu-machine"));
  let [asked, before] = [null, null];

  function draw(changed) {
    const sentence = field.sentence.value.trim();
    if (changed === "sentence" || changed === undefined || !before) {
      asked = heard(who, sentence);
      if (changed === "sentence") field.en.value = field.fr.value = "";
      show("unknown", sentence ? asked.unknown.map((word) => unknownWord(word, bundle.vocabularies.source)).join(" ")
        : "Write an English sentence.");
      before = translated(who, asked);
    }
    const off = field.off.value.split(",").filter((name) => PARTS.includes(name));
    const run = ran(who, asked, before, off);
    if (off.length === 1) (tried[sentence] ??= {})[off[0]] = changes(run.now, before);
    const view = { sentence, tried: tried[sentence] ?? {}, open: field.open.value, en: field.en.value, fr: field.fr.value };
    become(part("machine"), machineHTML(run, view));
    become(part("french"), frenchHTML(run, view));
    again();
    if (part("status").innerHTML !== statusHTML(run)) show("status", statusHTML(run));
  }

  const set = follow(form, draw);
  new ResizeObserver(again).observe(part("machine"));
  document.fonts?.ready.then(again);
  clicks(form, {
    switch(name) {
      const off = field.off.value.split(",").filter(Boolean);
      set("off", (off.includes(name) ? off.filter((other) => other !== name) : [...off, name]).join(","));
    },
    open: (name) => set("open", field.open.value === name ? "" : name),
    en: (i) => set("en", i),
    fr: (i) => set("fr", i),
    try: (i) => set("sentence", HUNTS[i][0]),
    on() {
      form.querySelector(`[data-switch="${field.off.value.split(",").at(-1)}"]`)?.focus({ preventScroll: true });
      set("off", "");
    },
    for: correct(field.sentence, set),
  });
}
