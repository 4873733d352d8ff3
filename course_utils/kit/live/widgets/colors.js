// Filled and empty symbols: the reader gives each empty one the color of its filled partner, and sees the whole picture,
// or how many symbols of each color there are, or only what is near.

const [SIDE, CELL, FAR] = [8, 40, 4]; // pixels; what one is drawn with; rows or columns between partners, at least
const COLORS = { blue: "key", red: "query", green: "value", plum: "plum" };
const NAMES = Object.keys(COLORS);

// Corners around (0, 0): at every angle one far away, and between two of them one at `inner` of it.
function corners(count, turn, inner) {
  const at = (i) => {
    const [angle, radius] = [Math.PI * (turn + i / count), i % 2 ? 14 * inner : 14];
    return `${(radius * Math.cos(angle)).toFixed(1)} ${(radius * Math.sin(angle)).toFixed(1)}`;
  };
  return `M${range(2 * count).filter((i) => inner || i % 2 === 0).map(at).join("L")}z`;
}
const PLUS = "M-4 -12h8v8h8v8h-8v8h-8v-8h-8v-8h8z";
const SHAPES = [
  ["circle", "M-11 0a11 11 0 1 0 22 0a11 11 0 1 0 -22 0z"], ["square", "M-10 -10h20v20h-20z"],
  ["triangle", corners(3, -0.5)], ["diamond", corners(4, 0)], ["plus", PLUS], ["star", corners(5, -0.5, 0.45)],
  ["downward triangle", corners(3, 0.5)], ["cross", PLUS],
];

// What may be seen: a name, and the best accuracy that it allows, by the number of symbols.
const VIEWS = {
  whole: ["the whole picture", () => 1],
  counts: ["only how many are blue, red, …", (symbols) => ({ 2: 0.625, 4: 0.53125, 8: 0.4423 })[symbols]],
  near: ["only three pixels around", () => 0.25],
};
const SEEN = Object.keys(VIEWS);

const rowOf = (pixel) => Math.floor(pixel / SIDE);
const apart = (a, b) => Math.max(Math.abs(rowOf(a) - rowOf(b)), Math.abs((a % SIDE) - (b % SIDE)));

// Where the filled and the empty one of each shape are, and their color: the same picture for the same seed.
function pictureOf(seed, symbols) {
  const taken = new Set();
  let throws = 0;
  const draw = (sides) => Math.floor(sides * dice(10 * seed + symbols, throws++));
  return range(symbols).map(() => {
    for (;;) {
      const [filled, empty] = [draw(SIDE ** 2), draw(SIDE ** 2)];
      if (apart(filled, empty) < FAR || taken.has(filled) || taken.has(empty)) continue;
      taken.add(filled).add(empty);
      return { filled, empty, color: draw(NAMES.length) };
    }
  });
}

const middle = (pixel) => [CELL * ((pixel % SIDE) + 0.5), CELL * (rowOf(pixel) + 0.5)];

function symbolAt(pixel, shape, color, sort) {
  const turn = SHAPES[shape][0] === "cross" ? " rotate(45)" : "";
  const paint = color === undefined ? "" : ` style="color: var(--cu-${COLORS[NAMES[color]]})"`;
  return `<path class="cu-live-${sort}" transform="translate(${middle(pixel).join(" ")})${turn}"${paint} d="${SHAPES[shape][1]}"></path>`;
}

// The picture as far as it may be seen; once all is painted, all of it, with a line between partners.
function drawing(picture, painted, sees) {
  const [now, isDone] = [picture[painted.length], painted.length === picture.length];
  const isSeen = (pixel) => isDone || sees !== "near" || apart(pixel, now.empty) < FAR;
  const hidden = range(SIDE ** 2).filter((pixel) => !isSeen(pixel))
    .map((pixel) => `M${CELL * (pixel % SIDE)} ${CELL * rowOf(pixel)}h${CELL}v${CELL}h-${CELL}z`).join("");
  const lines = range(SIDE + 1).map((i) => `M0 ${CELL * i}H${CELL * SIDE}M${CELL * i} 0V${CELL * SIDE}`).join("");
  const ways = isDone ? picture.map(({ filled, empty, color }, i) =>
    `<path class="cu-live-way"${painted[i] === color ? "" : ' stroke-dasharray="4 5"'} ` +
      `d="M${middle(empty).join(" ")}L${middle(filled).join(" ")}"></path>`) : [];
  const symbols = picture.flatMap(({ filled, empty, color }, i) => [
    isSeen(filled) && (isDone || sees !== "counts") ? symbolAt(filled, i, color, "filled") : "",
    isSeen(empty) ? symbolAt(empty, i, painted[i], "empty") : "",
  ]);
  const [x, y] = isDone ? [0, 0] : middle(now.empty).map((at) => at - CELL / 2);
  const frame = isDone ? "" : `<path class="cu-live-asked" d="M${x} ${y}h${CELL}v${CELL}h-${CELL}z"></path>`;
  return `<path class="cu-live-grid" d="${lines}"></path><path class="cu-live-hidden" d="${hidden}"></path>` +
    `${ways.join("")}${symbols.join("")}${frame}`;
}

// The picture in words: the filled symbols whose color may be seen.
function inWords(picture, painted, sees) {
  const [now, isDone] = [picture[painted.length], painted.length === picture.length];
  const seen = picture.map(({ filled, color }, i) =>
    isDone || sees === "whole" || (sees === "near" && apart(filled, now.empty) < FAR) ? `${SHAPES[i][0]} ${NAMES[color]}` : "");
  return `A picture of 8 × 8 pixels. Filled symbols that you see: ${seen.filter(Boolean).join(", ") || "none"}.`;
}

const countsOf = (picture) => NAMES.map((_, color) => picture.filter((each) => each.color === color).length);
const rightIn = (picture, painted) => painted.filter((color, i) => color === picture[i].color).length;

function told(picture, painted, sees) {
  const counts = countsOf(picture);
  if (painted.length === picture.length) {
    const wrong = painted.length - rightIn(picture, painted);
    return `${rightIn(picture, painted)} of ${painted.length} are right${wrong ? " (dashed lines: wrong)" : ""}. ` +
      `The baseline, which always names a most frequent color, gets ${Math.max(...counts)} of them right.`;
  }
  const asked = `Which color does the empty ${SHAPES[painted.length][0]} get? It is number ${painted.length + 1} of ${picture.length}.`;
  const listed = counts.map((count, color) => `${count} ${NAMES[color]}`).filter((_, color) => counts[color]).join(", ");
  return sees === "counts" ? `${asked} The filled symbols are ${listed}.` : asked;
}

// What has been right so far, and asked, for each view; and the best that it allows, once it was tried.
function tallyHTML(tally, symbols) {
  const rows = SEEN.map((view, i) => {
    const [name, best] = VIEWS[view];
    const [right, asked] = tally.slice(2 * i, 2 * i + 2);
    const [share, most] = [right / asked, best(symbols)];
    return `<tr><th scope="row">${name}</th>` + (asked
      ? `<td style="--w: ${share.toFixed(2)}">${right} of ${asked}, ${percent(share)} %</td><td>${percent(most)} %</td></tr>`
      : "<td>–</td><td>–</td></tr>");
  });
  return `<table><thead><tr>${columnHeads(["you see", "your accuracy", "best possible"])}</tr></thead>` +
    `<tbody>${rows.join("")}</tbody></table>`;
}

// What a form shows of its controls; junk in an address counts as nothing.
function viewOf({ symbols, sees, picture, painted, tally }) {
  const wanted = pictureOf(picture, symbols);
  const isDone = painted.length === symbols;
  return {
    drawing: drawing(wanted, painted, sees),
    label: inWords(wanted, painted, sees),
    said: told(wanted, painted, sees),
    tally: tallyHTML(tally, symbols),
    isDone,
  };
}

const NOTHING = SEEN.flatMap(() => [0, 0]);
const state = (_, { symbols, sees }) => ({ symbols, sees, picture: 0, painted: [], tally: NOTHING });

function html(given) {
  const shown = viewOf(given);
  const paints = NAMES.map((name, i) => button(`data-paint="${i}"`,
    `<span class="cu-live-swatch" style="background: var(--cu-${COLORS[name]})"></span>${name}`));
  const views = SEEN.map((view) => [view, VIEWS[view][0]]);
  const size = CELL * SIDE;
  return `<p>Each empty symbol gets the color of the filled symbol of the same shape. Press a color for the symbol in the frame.</p>
<div class="cu-live-ask">
<fieldset class="cu-live-kinds"><legend>Symbols</legend> ${radios("symbols", [2, 4, 8].map((n) => [n, n]), given.symbols)}</fieldset>
<fieldset class="cu-live-kinds"><legend>You see</legend> ${radios("sees", views, given.sees)}</fieldset></div>
<input type="hidden" name="picture" value="0"><input type="hidden" name="painted" value=""><input type="hidden" name="tally" value="${NOTHING}">
<div class="cu-live-beside"><div>${plot(shown.label, `${size} ${size}`,
    `<g data-part="drawing">${shown.drawing}</g>`, ' data-part="picture"', " cu-live-symbols")}</div>
<div><p aria-live="polite" data-part="said">${shown.said}</p>
<p class="cu-live-examples" data-part="paints">${paints.join(" ")}</p>
<p>${button('data-part="next"', "Next picture")}</p>
${region("Your accuracy", "tally", shown.tally)}</div></div>
<p class="cu-live-note">No network is behind this. The best possible accuracy is an average over all pictures.</p>`;
}

function mount(form) {
  const { field, part, show, write, put } = partsOf(form);
  const whole = (text) => Math.abs(Math.trunc(Number(text))) || 0;

  function given() {
    const symbols = Number(field.symbols.value);
    const tally = field.tally.value.split(",").map(whole);
    return {
      symbols,
      sees: field.sees.value,
      picture: whole(field.picture.value) % 1e6,
      painted: [...field.painted.value].filter((letter) => "0123".includes(letter)).map(Number).slice(0, symbols),
      tally: NOTHING.map((_, i) => tally[i] ?? 0),
    };
  }

  function draw(name) {
    if (name === "symbols") field.tally.value = NOTHING; // its best shares are others
    if (name === "symbols" || name === "sees") field.painted.value = "";
    const shown = viewOf(given());
    show("drawing", shown.drawing);
    put("picture", { "aria-label": shown.label });
    write("said", shown.said);
    show("tally", shown.tally);
    for (const each of form.querySelectorAll("[data-paint]")) each.disabled = shown.isDone;
  }

  const set = follow(form, draw);

  function paint(color) {
    const { symbols, sees, picture, painted, tally } = given();
    painted.push(Number(color));
    if (painted.length === symbols) {
      const at = 2 * SEEN.indexOf(sees);
      tally[at] += rightIn(pictureOf(picture, symbols), painted);
      tally[at + 1] += symbols;
      field.tally.value = tally;
    }
    set("painted", painted.join(""));
    if (painted.length === symbols) part("next").focus(); // the colors can no longer be pressed
  }

  function next() {
    field.painted.value = "";
    set("picture", given().picture + 1);
    form.querySelector("[data-paint]").focus();
  }

  clicks(form, { paint, part: (name) => name === "next" && next() });
}
