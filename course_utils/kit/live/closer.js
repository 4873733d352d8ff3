// What a reader looks closer with: a number of a map explains itself, a tour leads through the widget, and a slider goes
// back in the training of its model.

// How a number was computed ---------------------------------------------------------------------
//
// The query, the key, their products, the scale, the mask and the softmax's sum, operation by operation. For every widget
// whose model is a Network of engine.js: `inside` holds what was computed.

const OPERATIONS = ["project", "score", "scale", "mask", "normalize", "mix", "merge"];
const HINT = "Choose a number of the table: the page shows how it was computed.";

// How query i of a head came to its weight for key j. An attention may bring its own `terms` and `scale`.
function work(model, name, head, i, j) {
  const inside = model.inside[name];
  const { causal, start, position = 0, terms: added, merged } = inside;
  const query = inside.queries[i][head];
  const shared = Math.floor(head / inside.group);
  const [keys, values] = [inside.keys, inside.values].map((rows) => rows.map((heads) => heads[shared]));
  const scale = inside.scale ?? Math.sqrt(query.length);
  const termsOf = added ?? ((q, k) => q.map((value, d) => value * k[d]));
  const terms = keys.map((key) => Array.from(termsOf(query, key)));
  const scores = terms.map(total);
  const scaled = scores.map((score) => score / scale);
  const seen = model.allowed(name, position + i, scaled);
  const allowed = keys.map((_, key) => (!causal || key <= start + i) && seen[key] > -Infinity);
  const most = Math.max(...scaled.filter((_, key) => allowed[key]));
  const powers = scaled.map((score, key) => (allowed[key] ? Math.exp(score - most) : 0));
  const sum = total(powers);
  const weights = powers.map((power) => power / sum);
  const mixed = Array.from(values[0], (_, d) => total(values.map((value, key) => weights[key] * value[d])));
  const heads = inside.mixed.map((rows) => rows[i]);
  const output = merged && model.linear(`${name}.out_proj`, [merged[i]])[0];
  return {
    i, j, head, query, keys, values, terms, scores, scale, scaled, allowed, most, powers, sum, weights, mixed, heads,
    output, causal, added: Boolean(added),
  };
}

const two = (number) => fixed(number, 2);
const four = (number) => fixed(number, 4);

// One sentence or two for an operation; query and key are words, as HTML.
const EXPLAINED = {
  project: ({ query, head, added }, word) =>
    `The query of ${word.query} and the key of ${word.key}: ${query.length} numbers each` +
    (added ? "." : `, those of head ${head}, made by W<sub>Q</sub> and W<sub>K</sub>.`),
  score: ({ scores, j, added }) => (added
    ? `The score: query and key are added, each number goes through tanh and is weighted, and the sum is ${four(scores[j])}.`
    : `The products of the two, number by number, sum to the score q·k = ${four(scores[j])}.`),
  scale: ({ scores, scaled, scale, query, j, added }) => (added
    ? "An additive score is not scaled."
    : `${four(scores[j])} / √${query.length} = ${four(scores[j])} / ${two(scale)} = ${four(scaled[j])}.`),
  mask: ({ allowed, causal, i, j }, word) => {
    const count = allowed.filter(Boolean).length;
    if (!causal && count === allowed.length) return "Nothing is masked: each key may be attended to.";
    const why = causal && j > i ? "comes later" : "is forbidden";
    const ends = allowed[j] ? "" : ` ${word.key} ${why}: its weight is 0.`;
    const who = causal ? "may attend to itself and to what came before:" : "may attend to";
    return `${word.query} ${who} ${count} of ${allowed.length} keys.${ends}`;
  },
  normalize: ({ scaled, most, powers, sum, weights, allowed, j }) => (allowed[j]
    ? `exp(${two(scaled[j])} − ${most < 0 ? `(${two(most)})` : two(most)}) = ${four(powers[j])}; the largest score is taken from all. ` +
      `Divided by the sum of the row: ${four(powers[j])} / ${four(sum)} = <strong>${four(weights[j])}</strong>.`
    : "A masked key has no part in the sum: <strong>0</strong>."),
  mix: ({ weights, j }, word) =>
    `The value of ${word.key} times ${four(weights[j])}, plus the other values times their weights: the mixed value.`,
  merge: ({ heads, output }) => (output
    ? `The mixed values of all ${heads.length} heads stand side by side, and W<sub>O</sub> makes ` +
      `${output.length} numbers of them: what this attention hands on.`
    : "There is one head: its mixed value is handed on as it is."),
};

const numbersHTML = (caption, head, body) =>
  `<div class="cu-live-numbers" role="region" aria-label="${caption}" tabindex="0" ${OURS}>` +
  `<table><caption>${caption}</caption><thead><tr>${head}</tr></thead><tbody>${body}</tbody></table></div>`;
const cellsHTML = (texts) => Array.from(texts, (text) => `<td>${text}</td>`).join("");

// The vectors of one head, number by number; more rows with each operation.
function vectorsHTML({ j, head, query, keys, values, terms, scores, weights, mixed, heads, output, added }, reached) {
  const [rows, size] = [[["query", query], ["key", keys[j]]], query.length];
  if (reached > 0) rows.push([added ? "terms" : "products", terms[j], `sum ${two(scores[j])}`]);
  const vectors = [[`Query and key of head ${head}`, size, rows]];
  if (reached > 4) {
    const part = values[j].map((value) => value * weights[j]);
    vectors.push([`Value and mixed value of head ${head}`, mixed.length,
      [["value", values[j]], ["weight × value", part], ["all keys: mixed", mixed]]]);
  }
  if (reached > 5 && output) {
    vectors.push(["Side by side", heads[0].length, heads.map((numbers, h) => [`head ${h}`, numbers])]);
    const begins = range(Math.ceil(output.length / size)).map((line) => line * size);
    vectors.push(["Merged", size, begins.map((begin) => [`${begin} …`, output.slice(begin, begin + size)])]);
  }
  return vectors.map(([caption, count, lines]) => numbersHTML(caption, `<td></td>${columnHeads(range(count))}<td></td>`,
    lines.map(([name, numbers, end = ""]) =>
      `<tr><th scope="row">${name}</th>${cellsHTML(Array.from(numbers, two))}<td>${end}</td></tr>`).join("")));
}

// The whole row of the map, key by key; a column more with each operation.
function weightsHTML({ scores, scaled, allowed, powers, sum, weights, j }, words, reached) {
  const columns = [
    ["score", scores.map(two), ""],
    ["scaled", scaled.map(two), ""],
    ["may attend", allowed.map((yes) => (yes ? "yes" : "no")), ""],
    ["exp", powers.map(four), four(sum)],
    ["weight", weights.map(four), "1"],
  ].slice(0, reached < 4 ? reached : 5); // to normalize gives exp and weight at once
  const lines = words.keys.map((word, key) => `<tr${key === j ? ' aria-current="true"' : ""}>` +
    `<th scope="row" translate="no" lang="${words.languages[1]}">${safe(word)}</th>${cellsHTML(columns.map(([, texts]) => texts[key]))}</tr>`);
  const foot = `<tr><th scope="row">sum</th>${cellsHTML(columns.map(([, , text]) => text))}</tr>`;
  return numbersHTML("All keys of this row", columnHeads(["key", ...columns.map(([name]) => name)]),
    lines.join("") + (reached > 3 ? foot : ""));
}

// A weight up to an operation. words: queries and keys, the tokens, and the languages of the two.
function workHTML(found, words, word, operation) {
  const reached = OPERATIONS.indexOf(operation);
  const tables = vectorsHTML(found, reached);
  if (reached > 0) tables.splice(1, 0, weightsHTML(found, words, reached));
  return `<p aria-live="polite"><strong>${operation}</strong>: ${EXPLAINED[operation](found, word)}</p>` + tables.join("");
}

// Which number is explained; the mean of several heads is that of their weights.
function whichHTML(every, word) {
  const weights = every.map(({ weights: row, j }) => row[j]);
  const mean = total(weights) / weights.length;
  const which = `Query ${word.query}, key ${word.key}: the weight is <strong>${four(mean)}</strong>, ${percent(mean)} %`;
  if (every.length === 1) return `${which}. The steps of attention lead to it:`;
  const list = every.map(({ place }, i) => `${named(place)}: ${four(weights[i])}`).join("; ");
  return `${which}, the mean of ${every.length} heads (${list}). ` +
    "Choose one of their maps to see how its weight was computed.";
}

// The place below a table where one of its numbers is explained, and its controls.
const explained = () => '<input type="hidden" name="cell" value=""><div class="cu-live-explain" data-part="explain">' +
  `<p data-part="of">${HINT}</p><fieldset class="cu-live-kinds" data-part="operations" hidden="">` +
  "<legend>Operation</legend> " +
  `${radios("operation", OPERATIONS.map((name) => [name, name]), "normalize")}</fieldset>` +
  '<div data-part="work"></div></div>';

// The heads that a map shows: one, or all those whose mean it is. names: of the attentions, layer by layer.
function headsOf(model, names, map) {
  const every = names.flatMap((name, layer) =>
    model.maps[name].map((_, head) => ({ name, head, place: `${layer}.${head}` })));
  return map === "mean" ? every : every.filter(({ place }) => place === map || place.startsWith(`${map}.`));
}

const cellsOf = (row) => [...(row?.querySelectorAll("td") ?? [])];
const cellAt = (table, [i, j]) => cellsOf(table.tBodies[0].rows[i])[j];

// All numbers of a table are one stop of the tab key.
function stopAt(cell) {
  cell.closest("table").querySelector('td[tabindex="0"]')?.setAttribute("tabindex", "-1");
  cell.tabIndex = 0;
}

// The number at a place, [row, column], is selected; none is where `place` is null.
function selectCell(table, place) {
  if (table.getAttribute("role") !== "grid") for (const each of table.querySelectorAll("td")) each.tabIndex = -1;
  table.setAttribute("role", "grid");
  const cell = cellAt(table, place ?? [0, 0]);
  table.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
  stopAt(cell);
  if (place) cell.setAttribute("aria-selected", "true");
}

// Shows how the number was computed that the control `cell` names ("2.0": row 2, column 0), up to the operation in the
// control of that name. names: of the attentions; map: which of their maps; words: queries and keys, the tokens, and
// `languages` of the two.
function explain(form, model, names, map, words) {
  const { part } = partsOf(form);
  const table = part("table").querySelector("table");
  const { cell, operation } = form.elements;
  const place = cell.value.split(".").map(Number);
  const chosen = cell.value.includes(".") && cellAt(table, place) ? place : null; // there may be no such place
  const heads = headsOf(model, names, map);
  selectCell(table, chosen);
  part("operations").hidden = !chosen || heads.length > 1;
  part("work").innerHTML = "";
  part("of").textContent = HINT;
  if (!chosen) return;
  const every = heads.map(({ name, head, place }) => ({ place, ...work(model, name, head, ...chosen) }));
  const [query, key] = [words.queries[chosen[0]], words.keys[chosen[1]]]
    .map((text, i) => `<q translate="no" lang="${words.languages[i]}">${safe(text)}</q>`);
  part("of").innerHTML = whichHTML(every, { query, key });
  if (every.length === 1) part("work").innerHTML = workHTML(every[0], words, { query, key }, operation.value);
}

// Keys and clicks in a table: arrows move, Enter and Space choose by `set("cell", "2.0")`.
function listenToTable(region, set) {
  if (!region.querySelector('[role="grid"]')) selectCell(region.querySelector("table"), null);
  const placeOf = (cell) => [cell.parentElement.sectionRowIndex, cellsOf(cell.parentElement).indexOf(cell)];
  const focus = (cell) => {
    stopAt(cell);
    cell.focus();
  };
  region.addEventListener("click", ({ target }) => {
    const cell = target.closest("tbody td");
    if (!cell) return;
    focus(cell);
    set("cell", placeOf(cell).join("."));
  });
  region.addEventListener("keydown", (event) => {
    const cell = event.target.closest("tbody td");
    if (!cell) return;
    const [i, j] = placeOf(cell);
    const next = {
      ArrowUp: [i - 1, j],
      ArrowDown: [i + 1, j],
      ArrowLeft: [i, j - 1],
      ArrowRight: [i, j + 1],
      Home: [i, 0],
      End: [i, cellsOf(cell.parentElement).length - 1],
    }[event.key];
    if (!next && event.key !== "Enter" && event.key !== " ") return;
    const other = next && cellAt(cell.closest("table"), next);
    if (other) focus(other);
    if (!next) set("cell", `${i}.${j}`);
    event.preventDefault();
    event.stopPropagation();
  });
}

// A tour ----------------------------------------------------------------------------------------
//
// Cards one after the other: { title, text, mark, open, task, done }. A card opens what it speaks of (`open`: name → value
// of controls), marks it (`mark`: a CSS selector of parts of the form), and may set a task, which is `done(form)`. The
// number of the card stands in the control `tour`.

const to = (number, text) => button(`data-tour="${number}"`, text);

// What a reader opens to look closer: where the tour begins, more controls, and a map whose numbers explain themselves.
const closer = (table, controls = "") => `<label class="cu-live-closer">${input("checkbox", 'name="closer"')} \
Look closer</label>
<div class="cu-live-close">
<p><input type="hidden" name="tour" value="">${to("1", "Take the tour")}</p>
${controls}${region("The chosen map", "table", table)}
${explained()}
</div>`;

function startTour(form, cards) {
  const begin = form.querySelector("[name=tour]").parentElement;
  const box = document.createElement("section");
  box.className = "cu-live-tour";
  box.setAttribute("aria-label", "Tour");
  box.hidden = true;
  box.innerHTML = '<strong tabindex="-1"></strong><p></p><p data-task=""></p><p role="status"></p>' +
    to("back", "Back") + to("next", "Next") + to("", "Leave");
  form.querySelector("fieldset").append(box);
  const [title, text, task, status, back, next] = box.children;
  const control = form.elements.tour;
  let shown = "";

  const write = (name, value) => form.elements[name].value !== value && setControl(form, name, value);
  const mark = (selector) => {
    form.querySelectorAll(".cu-live-marked").forEach((part) => part.classList.remove("cu-live-marked"));
    const parts = selector ? [...form.querySelectorAll(selector)] : [];
    parts.forEach((part) => part.classList.add("cu-live-marked"));
    return parts[0];
  };

  function open(card, number) {
    for (const [name, value] of Object.entries(card.open ?? {})) write(name, value);
    title.textContent = `${number} of ${cards.length}: ${card.title}`;
    text.textContent = card.text;
    task.textContent = card.task ?? "";
    back.disabled = number === 1;
    next.disabled = number === cards.length;
    const part = mark(card.mark);
    if (part?.closest(".cu-live-close")) form.elements.closer.checked = true;
    title.focus({ preventScroll: true });
    part?.scrollIntoView({ block: "nearest", behavior: isCalm() ? "auto" : "smooth" });
  }

  // Follows the control `tour`, and the task of the card.
  function draw() {
    const card = cards[Number(control.value) - 1];
    box.hidden = !card;
    begin.hidden = Boolean(card);
    if (control.value !== shown) {
      shown = control.value;
      if (card) open(card, Number(shown));
      else mark("");
    }
    const done = card?.done?.(form) ? "Done." : "";
    if (status.textContent !== done) status.textContent = done;
  }

  function turn(asked) {
    const number = Number(control.value);
    write("tour", { back: String(number - 1), next: String(number + 1) }[asked] ?? asked);
    if (asked === "") begin.lastElementChild.focus();
  }
  clicks(form, { tour: turn });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Escape" || box.hidden) return;
    turn("");
    event.stopPropagation();
  });
  return { draw };
}

// What several tasks ask for: words in a part, and a number above the diagonal of a map.
const said = (form, name) => partsOf(form).part(name).textContent;
function isAhead({ elements }) {
  const [query, key] = elements.cell.value.split(".").map(Number);
  return key > query;
}

// Checkpoints -----------------------------------------------------------------------------------
//
// A model at several steps of its training: a control `checkpoint` chooses among them, the last is the trained model. Of
// the others the weights are loaded when a reader asks for them.

const DIGITS = { minimumFractionDigits: 1, maximumFractionDigits: 1 };

// What is shown beside the control.
const describe = ({ steps, loss }) => (steps ? `${steps.toLocaleString("en")} steps` : "untrained") +
  `, perplexity ${Math.exp(loss).toLocaleString("en", DIGITS)}`;

// The control; it stands at the end.
function checkpointSlider({ checkpoints }, label = "Trained for") {
  const [last, name] = [checkpoints.length - 1, describe(checkpoints.at(-1))];
  const attributes = `name="checkpoint" min="0" max="${last}" value="${last}" aria-valuetext="${name}"`;
  return slider(label, attributes, "checkpoint", name, "cu-live-step");
}

// Follows the control of a form; `make` makes a model of a bundle. Gives a function that gives the chosen model; it gives
// null as long as the model is loaded, and then calls `ready`.
function checkpoint(form, trained, make) {
  const control = form.elements.checkpoint;
  const last = make(trained);
  if (!control) return () => last; // there is no choice
  const models = trained.checkpoints.map((_, place, { length }) => (place === length - 1 ? last : null));

  async function load(place) {
    const { model } = trained.checkpoints[place];
    const { tensors } = await bundleOf(model);
    models[place] = make({ ...trained, tensors });
  }

  return (ready) => {
    const place = Number(control.value);
    const name = describe(trained.checkpoints[place]);
    control.setAttribute("aria-valuetext", name);
    partsOf(form).write("checkpoint", models[place] ? name : "loading …");
    if (!models[place]) load(place).then(ready);
    return models[place];
  };
}

// The bundle of a model, loaded if it is not there yet.
async function bundleOf(model) {
  if (!globalThis.live_bundles[model]) await globalThis.live_load(model);
  return globalThis.live_bundles[model];
}
