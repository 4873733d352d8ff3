// What live widgets are made of: controls, maps as small pictures and as tables, and what plots are drawn with.

const OURS = 'data-lm-suppress-shortcuts="true"'; // keys are the reader's, not Lab's
const escaped = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;", "'": "&#39;" };
const safe = (text) => String(text).replace(/[&<>"]/g, (letter) => escaped[letter]);
// What a script is given, as the value of an attribute.
const inAttribute = (value) => `'${JSON.stringify(value).replace(/[&<>']/g, (letter) => escaped[letter])}'`;
// What a model reads and says, and the names in its data: a browser's translation leaves them as they are.
const DATA = 'translate="no"';
const asIs = (text, tag = "span") => `<${tag} ${DATA}>${safe(text)}</${tag}>`;
const percent = (p) => Math.floor(100 * p + 0.5);
const range = (length) => Array.from({ length }, (_, i) => i);

const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
const within = (low, number, high) => Math.min(high, Math.max(low, number));
const isCalm = () => globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches;

// Zeros where every score is −∞.
function softmax(scores) {
  const most = Math.max(...scores);
  if (most === -Infinity) return scores.map(() => 0);
  const powers = scores.map((score) => Math.exp(score - most));
  const sum = powers.reduce((a, b) => a + b);
  return powers.map((power) => power / sum);
}

// Controls ------------------------------------------------------------------------------------

const input = (type, attributes) => `<input type="${type}" ${OURS} ${attributes}>`;
const button = (attributes, text) => `<button type="button" ${OURS} ${attributes}>${text}</button>`;
const labeled = (label, control, sort = "") =>
  `<label${sort && ` class="${sort}"`}><span class="cu-live-label">${label}</span> ${control}</label>`;

// A choice among few or many: of each its value and label, or a text that is both.
const radios = (name, choices, chosen) => choices.map(([value, label]) =>
  `<label>${input("radio", `name="${name}" value="${value}"${value === chosen ? " checked" : ""}`)} ${label}</label>`).join("");
const select = (label, name, choices, chosen, more = "") => labeled(label, `<select ${OURS} ${more}name="${name}">${choices.map((each) => {
  const [value, text] = [each].flat();
  const attributes = (text === undefined ? "" : ` value="${value}"`) + (value === chosen ? " selected" : "");
  return `<option${attributes}>${text ?? value}</option>`;
}).join("")}</select>`);

// A range, and what its value is beside it.
const slider = (label, attributes, part, text, sort = "cu-live-slider", more = "") =>
  labeled(label, `${input("range", attributes)} <output aria-live="off" ${more}data-part="${part}">${text}</output>`, sort);

const sentenceField = (label, name, text) => labeled(label, input("text", `name="${name}" maxlength="100" ` +
  `value="${safe(text)}" spellcheck="false" autocapitalize="off"`), "cu-live-sentence");
const numberField = (label, name, most, value) =>
  labeled(label, input("number", `name="${name}" min="0" max="${most}" value="${value}"`));

// A button for each example of a bundle, with its sentence.
const sentences = (examples) => examples.map((each, i) => button(`${DATA} data-example="${i}"`, safe(each.sentence))).join(" ");

// What may be wider than the page, and scrolls.
const region = (label, part, content) =>
  `<div class="cu-live-table" role="region" aria-label="${label}" tabindex="0" ${OURS} data-part="${part}">${content}</div>`;
const columnHeads = (names) => names.map((name) => `<th scope="col">${name}</th>`).join("");

// A number with so many digits after the point, and a real minus sign; what is rounded to 0 has none.
const fixed = (number, digits) => number.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");

const NUMBER_WORDS = "no one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen".split(" ");
const numberWord = (number) => NUMBER_WORDS[number] ?? String(number);

// A number from 0 to 1 for each place: the same seed, the same numbers.
function dice(seed, place) {
  let bits = Math.imul(seed, 0x9e3779b1) + Math.imul(place + 1, 0x85ebca6b);
  bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d);
  bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b);
  return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
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

// Maps ----------------------------------------------------------------------------------------

// A small map: for each tenth of weight one path of squares.
function svg(weights) {
  const tenths = Array.from({ length: 11 }, () => "");
  weights.forEach((row, i) => row.forEach((weight, j) => {
    const tenth = Math.floor(10 * weight + 0.5);
    if (tenth) tenths[tenth] += `M${j} ${i}h1v1h-1z`;
  }));
  const paths = range(11).filter((tenth) => tenths[tenth])
    .map((tenth) => `<path fill-opacity="${tenth / 10}" d="${tenths[tenth]}"></path>`);
  const box = `0 0 ${weights[0].length} ${weights.length}`;
  return `<svg aria-hidden="true" viewBox="${box}" preserveAspectRatio="none">${paths.join("")}</svg>`;
}

// The mean of all heads of all layers: maps are layers × heads × queries × keys.
function mean(maps) {
  const every = maps.flat();
  return every[0].map((row, i) => Array.from(row, (_, j) =>
    every.reduce((total, map) => total + map[i][j], 0) / every.length));
}

// A place among the maps is "1.0", layer 1 and head 0, or "1", the mean of layer 1, or "mean".
function named(place) {
  const [layer, head] = place.split(".").map(safe);
  if (place === "mean") return "mean of all heads";
  return head === undefined ? `mean of layer ${layer}` : `layer ${layer}, head ${head}`;
}
function mapAt(maps, place) {
  const [layer, head] = place.split(".");
  if (place === "mean") return mean(maps);
  return head === undefined ? mean([maps[layer]]) : maps[layer][head];
}

// An address may name a map that is not there.
function needMap(form) {
  const there = form.querySelector(`[data-map="${CSS.escape(form.elements.map.value)}"]`);
  if (!there) throw new RangeError("no such map");
}

const mapButton = (place, chosen, content) =>
  button(`aria-pressed="${place === chosen}" data-map="${place}"`, content);

// All maps as buttons; the chosen one is pressed.
function gallery(maps, chosen) {
  const places = maps.flatMap((heads, layer) => heads.map((_, head) => `${layer}.${head}`));
  return [...places, "mean"].map((place) =>
    mapButton(place, chosen, `${svg(mapAt(maps, place))}<span>${named(place)}</span>`)).join("");
}

// A map in percent. corner: a name for each column of words at the left; rows: those words, row by row; columns:
// words over the numbers; languages: of rows and of columns; now: the row that is marked; framed: cells in a frame, by
// "row.column".
function table({ caption, corner, rows, columns, weights, languages = ["en", "en"], now = -1, framed = [] }) {
  const word = (scope, language, text) => `<th scope="${scope}" translate="no" lang="${language}">${safe(text)}</th>`;
  const heads = columns.map((text) => word("col", languages[1], text)).join("");
  const lines = rows.map((words, i) => {
    const begins = words.map((text) => word("row", languages[0], text)).join("");
    const cells = Array.from(weights[i], (weight, j) => {
      const share = percent(weight);
      const frame = framed.includes(`${i}.${j}`) ? ' data-framed=""' : "";
      return share ? `<td${frame} style="--w: ${share / 100}">${share}</td>` : `<td${frame}>0</td>`;
    });
    return `<tr${i === now ? ' aria-current="step"' : ""}>${begins}${cells.join("")}</tr>`;
  });
  return `<table><caption>${caption}</caption><thead><tr>${columnHeads(corner)}${heads}</tr></thead>` +
    `<tbody>${lines.join("")}</tbody></table>`;
}

// The same of a self-attention: a map of its maps, by its place, between the pieces of a text.
const selfTable = (maps, place, pieces, now) => table({
  caption: `Self-attention, ${named(place)}: each row in percent`, corner: ["reads"],
  rows: pieces.map((piece) => [piece]), columns: pieces, weights: mapAt(maps, place), now,
});

// A candidate as a button; a choice that is null cannot be taken.
const choiceButton = (choice, text) => button(`${DATA} ${choice === null ? 'disabled=""' : `data-choice="${choice}"`}`, text);

// Plots ---------------------------------------------------------------------------------------

// A line through places (x, y); where y is not finite there is a gap.
function line(places) {
  let pen = "M";
  return places.map(([x, y]) => {
    const reached = Number.isFinite(y) ? `${pen}${x.toFixed(1)} ${y.toFixed(1)}` : "";
    pen = reached ? "L" : "M";
    return reached;
  }).join("");
}

const textAt = (x, y, anchor, text, more = "") => `<text x="${x}" y="${y}" text-anchor="${anchor}"${more}>${text}</text>`;
const plot = (label, size, content, more = "", sort = "") =>
  `<svg class="cu-live-plot${sort}" role="img" aria-label="${label}" viewBox="0 0 ${size}"${more}>\n${content}</svg>`;
