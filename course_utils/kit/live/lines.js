// Lines between words, one for each look, as wide as its weight. Where a line begins and ends follows from the letters of
// the words: nothing is measured, so a notebook's output, a phone and paper show the same.

const LEAST = 0.1; // a smaller weight has no line,
const LEAST_NOW = 0.02; // but for the word that is now
const EM = 20; // units of a drawing
const HEIGHT = 100; // between two rows
const WORD_HEIGHT = 44; // pixels, of a word in a column
const [MOST_WORDS, WIDEST] = [14, 44]; // words, and em, of a row: what is longer stands in columns on any screen
const WAIT = 120; // ms: a hand on its way to somewhere else changes nothing

// About how many em a word takes, with the space around it.
const roomOf = ({ text, isSign }) => (isSign ? 2.1 : 0.9) + [...(isSign ? "" : text)].reduce(
  (sum, letter) => sum + (/[.,!?':;iIjlrtf]/.test(letter) ? 0.34 : /[mwMW…]/.test(letter) ? 0.88 : 0.55), 0);

// The middles of words in a row that is centered in `width`.
function middles(rooms, width) {
  let x = (width - total(rooms)) / 2;
  return rooms.map((room) => (x += room) - room / 2);
}

const style = (weight) => `style="--w: ${percent(weight) / 100}"`;

// Lines from the words above (or left) to those below (or right): `path(i, j)` is that of look i.j.
function linesSVG({ weights, now, forbidden }, path, box) {
  const isForbidden = (i, j) => forbidden.includes(`${i}.${j}`);
  const line = (i, j) => `<path ${style(weights[i][j])} data-key="${j}" d="${path(i, j)}"></path>`;
  const every = weights.map((row, i) => {
    const lines = Array.from(row, (weight, j) => (weight >= LEAST ? line(i, j) : ""));
    return `<g data-key="${i}" style="--i: ${i}">${lines.join("")}</g>`;
  });
  const own = Array.from(weights[now], (weight, j) => {
    if (weight < LEAST_NOW && !isForbidden(now, j)) return "";
    const sort = isForbidden(now, j) ? ' class="no"' : "";
    return `<g data-key="${j}" data-look="${now}.${j}"><path class="hit" d="${path(now, j)}"></path>` +
      `<path${sort} ${style(weight)} d="${path(now, j)}"></path></g>`;
  });
  return `<svg aria-hidden="true" ${box}><g data-key="all">${every.join("")}</g>` +
    `<g data-key="now" class="now" style="--i: ${now}">${own.join("")}</g></svg>`;
}

const faint = (text) => (/^([.,!?;:…]|<\w+>)$/.test(text) ? "faint" : "");
// The end of a sentence, with which a GPT also begins, is no word of it.
const sign = (text) => `<span class="cu-sign" aria-label="the ${text}" role="img">${text}</span>`;
const shownHTML = (text, isSign, begins) => (isSign ? sign(begins ? "start" : "end") : safe(text.replace(END, "")));

function wordHTML(room, { text, sorts = [], data, pressed, current, share, title, weight, isSign, begins }, i) {
  const sort = [faint(text), ...sorts].filter(Boolean).join(" ");
  const given = (name, value) => (value === undefined || value === "" ? "" : ` ${name}="${value}"`);
  const style = `--room: ${room.toFixed(2)}; --i: ${i}${weight === undefined ? "" : `; --w: ${percent(weight) / 100}`}`;
  return button(`${data} style="${style}"${given("class", sort)}${given("aria-pressed", pressed)}` +
    `${given("aria-current", current || "")}${given("data-share", share)}${given("title", title)}`, shownHTML(text, isSign, begins));
}

// Two rows of words and the lines between them. isSign: a word is the end. above: of [{ text, isSign, pressed }] each can be forbidden; below: of
// [{ text, isSign, sorts }] one is `now`; weights: of the words below for those above; forbidden: the looks "i.j" that are forbidden.
function rows(looks, [above, below], labels, languages) {
  const { weights, now } = looks;
  const rooms = [above, below].map((words) => words.map(roomOf));
  const width = Math.max(...rooms.map(total));
  const [xs, ys] = rooms.map((each) => middles(each, width).map((x) => (EM * x).toFixed(1)));
  const high = (i) => WORD_HEIGHT * (i + 0.5);
  const across = (i, j) => `M${xs[j]} 0C${xs[j]} 50 ${ys[i]} 50 ${ys[i]} ${HEIGHT}`;
  const beside = (i, j) => `M0 ${high(j)}C50 ${high(j)} 50 ${high(i)} 100 ${high(i)}`;
  const tall = WORD_HEIGHT * Math.max(above.length, below.length);
  const columns = width > WIDEST || Math.max(above.length, below.length) > MOST_WORDS;
  const row = (which, words) => `<div role="group" class="cu-words" translate="no" lang="${languages[which]}" ` +
    `aria-label="${labels[which]}">${words.join("")}</div>`;
  const asked = above.map((word, j) => wordHTML(rooms[0][j], {
    ...word, data: `data-word="${j}" data-look="${now}.${j}"`, share: percent(weights[now][j]) || "",
  }, j));
  const said = below.map((word, i) => wordHTML(rooms[1][i], {
    ...word, data: `data-step="${i}"`, current: i === now,
  }, i));
  return `<div class="cu-lines${columns ? " cu-columns" : ""}" style="--width: ${width.toFixed(2)}; --tall: ${tall}">` +
    row(0, asked) +
    linesSVG(looks, across, `class="across" viewBox="0 0 ${(EM * width).toFixed(1)} ${HEIGHT}"`) +
    linesSVG(looks, beside, `class="beside" viewBox="0 0 100 ${tall}" preserveAspectRatio="none"`) +
    `${row(1, said)}</div>`;
}

// One row of tokens: arcs lead from the token `now` to those before it, by the weights of the token that was read last. A
// text that is too long for a line, or on a phone, has washes behind its tokens instead. tokens: [{ text, isSign, pressed, sorts }].
// Pieces of a word touch, each with a line of its own below; between words there is a space.
function arcs({ weights, now }, tokens, label) {
  const isWhole = ({ text, isSign }) => isSign || text.endsWith(END) || /^<\w+>$/.test(text);
  const goesOn = tokens.map((token, i) => !isWhole(token) && i < tokens.length - 1 && token.text !== "…");
  const rooms = tokens.map(({ text, isSign }, i) =>
    roomOf({ text: text.replace(END, ""), isSign }) - 0.3 * (1 + goesOn[i] + (goesOn[i - 1] ?? false)));
  const width = total(rooms) + 1;
  const xs = middles(rooms, width).map((x) => EM * x);
  const path = (i, j) => {
    const high = HEIGHT - Math.min(HEIGHT, 20 + (xs[i] - xs[j]) / 3);
    return `M${xs[j].toFixed(1)} ${HEIGHT}C${xs[j].toFixed(1)} ${high} ${xs[i].toFixed(1)} ${high} ${xs[i].toFixed(1)} ${HEIGHT}`;
  };
  const words = tokens.map((token, i) => wordHTML(rooms[i], {
    ...token, data: `data-word="${i}" data-hover="${i}"`, current: i === now, weight: weights[i] ?? 0, begins: !i,
    sorts: [...(token.sorts ?? []), goesOn[i] && "goes-on", goesOn[i - 1] && "piece"],
    share: i < now && percent(weights[i]) > 1 ? percent(weights[i]) : "",
  }, i));
  const looks = { weights: tokens.map((_, i) => (i === now ? weights.slice(0, now) : [])), now, forbidden: [] };
  return `<div class="cu-arcs${width > WIDEST ? " cu-washes" : ""}" style="--width: ${width.toFixed(2)}">` +
    `${linesSVG(looks, path, `class="over" viewBox="0 0 ${(EM * width).toFixed(1)} ${HEIGHT}"`)}` +
    `<div role="group" class="cu-words" translate="no" lang="en" aria-label="${label}">${words.join("")}</div></div>`;
}

// A head as a small picture of its lines: between two rows, or as arcs over one.
function glyph(weights, over) {
  const [rows, columns] = [weights.length, weights[0].length];
  const x = (place, count) => (2 + (50 * (place + 0.5)) / count).toFixed(1);
  const arc = (a, b) => `M${b} 28Q${((Number(a) + Number(b)) / 2).toFixed(1)} ${(28 - 1.1 * (a - b)).toFixed(1)} ${a} 28`;
  const line = (i, j) => (over ? arc(x(i, rows), x(j, columns)) : `M${x(j, columns)} 2L${x(i, rows)} 28`);
  const fifths = Array.from({ length: 6 }, () => "");
  weights.forEach((row, i) => row.forEach((weight, j) => (fifths[Math.round(5 * weight)] += line(i, j))));
  const paths = fifths.map((d, fifth) => (fifth && d ? `<path stroke-opacity="${fifth / 5}" d="${d}"></path>` : ""));
  return `<svg aria-hidden="true" viewBox="0 0 54 30">${paths.join("")}</svg>`;
}

// The mean of the last layer, then every head of every layer, each a button.
function headButtons(maps, chosen, over = false) {
  const last = String(maps.length - 1);
  const drawn = (place, text) => mapButton(place, chosen, glyph(mapAt(maps, place), over) + text);
  const each = maps.flatMap((layer, l) => layer.map((_, h) =>
    drawn(`${l}.${h}`, `layer ${l},<br>head ${h}`)));
  return drawn(last, named(last)) + each.join("");
}

// What is left of the whole, in percent: what is shown and the others add up to 100.
const restOf = (shares) => Math.max(0, 100 - total(shares.map(percent)));

// Bars: what is likely now, with a tick where it was before, and all others in one line. items: [{ text, now, before,
// choice }], before may be missing; with a choice the word is a button. What has less than 1 % is one of the others.
function odds(all, language, current) {
  const items = all.filter(({ text, now, before = 0 }) => text === current || Math.max(percent(now), percent(before)) > 0);
  const most = Math.max(...items.flatMap(({ now, before = 0 }) => [now, before]));
  const end = [0.1, 0.25].find((each) => most <= each) ?? 1;
  const name = (text, choice) => (choice === undefined
    ? `<span translate="no" lang="${language}">${shownHTML(text, text === "<eos>")}</span>` : choiceButton(choice, safe(text)));
  const lines = items.map(({ text, now, before = now, choice }) => {
    const change = percent(before) === percent(now) ? "" : `${percent(before)} → `;
    const tick = change ? `<i style="--w: ${percent(before / end) / 100}"></i>` : "";
    return `<li${text === current ? ' aria-current="true"' : ""}>${name(text, choice)}` +
      `<i style="--w: ${percent(now / end) / 100}">${tick}</i><span>${change}${percent(now)} %</span></li>`;
  });
  const rest = restOf(items.map(({ now }) => now));
  const was = restOf(items.map(({ now, before = now }) => before));
  if (rest || was) {
    const bar = rest <= 100 * end ? `<i style="--w: ${rest / (100 * end)}"></i>` : "<span></span>";
    lines.push(`<li class="others"><span>others</span>${bar}<span>${was === rest ? "" : `${was} → `}${rest} %</span></li>`);
  }
  const scale = end < 1 ? `<p class="cu-live-note">A full bar is ${percent(end)} %.</p>` : "";
  return `<ol class="cu-odds">${lines.join("")}</ol>${scale}`;
}

// "without car — before: elle a une voiture rouge ." names: of what is forbidden, as HTML; was: what stood there before,
// or null where it is the same.
const withoutHTML = (names, was, language) =>
  `without ${names.join(", ")} — ${was === null ? "the same" : `before: <s ${DATA}${language}>${safe(was)}</s>`} ${button('data-undo=""', "allow again")}`;

// The places of `now` that are in no longest common subsequence with `before`.
function fresh(now, before) {
  const length = Array.from({ length: now.length + 1 }, () => new Array(before.length + 1).fill(0));
  for (let i = now.length - 1; i >= 0; i -= 1) {
    for (let j = before.length - 1; j >= 0; j -= 1) {
      length[i][j] = now[i] === before[j] ? length[i + 1][j + 1] + 1 : Math.max(length[i + 1][j], length[i][j + 1]);
    }
  }
  const found = [];
  let j = 0;
  now.forEach((word, i) => {
    while (j < before.length && word !== before[j] && length[i][j + 1] === length[i][j]) j += 1;
    if (j < before.length && word === before[j]) j += 1;
    else found.push(i);
  });
  return found;
}

// In a page -------------------------------------------------------------------------------------

// Brings `old` to what `next` is and keeps what has the same key: a focus stays, and a width can glide.
const nodeKey = (node, i) => node.dataset?.key ?? `${node.nodeName} ${i}`;
function adapt(old, next) {
  for (const { name } of [...old.attributes]) {
    if (name !== "tabindex" && !next.hasAttribute(name)) old.removeAttribute(name);
  }
  for (const { name, value } of next.attributes) if (old.getAttribute(name) !== value) old.setAttribute(name, value);
  const known = new Map([...old.childNodes].map((child, i) => [nodeKey(child, i), child]));
  const children = [...next.childNodes].map((child, i) => {
    const before = known.get(nodeKey(child, i));
    if (before?.nodeName !== child.nodeName) return child;
    if (child.nodeType === 1) adapt(before, child);
    else if (before.data !== child.data) before.data = child.data;
    return before;
  });
  for (const child of [...old.childNodes]) if (!children.includes(child)) child.remove();
  children.forEach((child, i) => {
    if (old.childNodes[i] !== child) old.insertBefore(child, old.childNodes[i] ?? null);
  });
}

// One word of each row is a stop of the tab key.
function stops(stage) {
  for (const row of stage.querySelectorAll(".cu-words")) {
    const stop = row.querySelector(":focus, [aria-current]") ?? row.querySelector('[tabindex="0"]') ?? row.firstChild;
    for (const word of row.children) word.tabIndex = word === stop ? 0 : -1;
  }
}

function become(stage, html) {
  const next = stage.cloneNode(false);
  next.innerHTML = html;
  adapt(stage, next);
  stops(stage);
}

// To the next word of a row, or to the other row: there to the word that is now, else to the first stop.
function moved(stage, word, key) {
  const inColumns = getComputedStyle(stage.querySelector(".cu-words")).flexDirection === "column";
  const [back, on, up, down] = ["ArrowLeft", "ArrowRight", "ArrowUp", "ArrowDown"];
  const [before, after] = inColumns ? [up, down] : [back, on];
  if (key === before) return word.previousElementSibling;
  if (key === after) return word.nextElementSibling;
  const rows = [...stage.querySelectorAll(".cu-words")];
  const other = { [inColumns ? back : up]: rows[0], [inColumns ? on : down]: rows.at(-1) }[key];
  return other && other !== word.parentElement ? other.querySelector('[tabindex="0"]') : null;
}

// Lines appear word by word, once, when they are first seen; where there is less room than a row takes, as on a phone.
const NARROW_STAGE = 580; // pixels
function appear(stage) {
  const sized = new ResizeObserver(([{ contentRect: { width } }]) => {
    stage.closest("form").toggleAttribute("data-narrow", width > 0 && width < NARROW_STAGE);
    if (width) stage.style.setProperty("--stage", `${width}px`);
  });
  sized.observe(stage);
  const seen = new IntersectionObserver((entries) => {
    if (!entries.some(({ isIntersecting }) => isIntersecting)) return;
    seen.disconnect();
    const form = stage.closest("form");
    form.dataset.seen = "";
    form.addEventListener("input", () => (form.dataset.seen = "before"), { once: true });
  }, { threshold: 0.5 });
  seen.observe(stage);
}

// act: `now(i)`, `forbid(j)` a word, `forbidLook("i.j")` if looks can be forbidden, and `undo()`, true if there was
// something to undo.
function listenToLines(stage, act) {
  let timer = 0;
  const at = ({ target }) => target.closest("button, [data-look]");
  const here = (event) => {
    clearTimeout(timer); // what a hand or a key does last, counts
    act.now(Number(at(event).dataset.step ?? at(event).dataset.hover));
  };
  stops(stage);
  stage.addEventListener("click", (event) => {
    clearTimeout(timer);
    const { word, step, look } = at(event)?.dataset ?? {};
    if (step) here(event);
    else if (look && (!word || event.shiftKey)) act.forbidLook?.(look);
    else if (word) act.forbid(Number(word));
  });
  stage.addEventListener("focusin", (event) => {
    if (at(event)?.dataset.step) here(event);
    stops(stage);
  });
  // What is drawn anew under a pointer at rest was not chosen by it.
  let rest = "";
  const place = (event) => `${event.clientX} ${event.clientY}`;
  for (const kind of ["pointermove", "pointerdown"]) stage.addEventListener(kind, (event) => { rest = place(event); });
  stage.addEventListener("pointerover", (event) => {
    if (place(event) === rest) return;
    clearTimeout(timer);
    const { step, hover } = at(event)?.dataset ?? {};
    if (event.pointerType === "mouse" && (step ?? hover)) timer = setTimeout(() => here(event), WAIT);
  });
  stage.addEventListener("pointerleave", () => clearTimeout(timer));
  stage.addEventListener("keydown", (event) => {
    if (!event.target.matches(".cu-words > *")) return;
    if (event.key === "Escape" ? !act.undo() : !moved(stage, event.target, event.key)?.focus) return;
    if (event.key !== "Escape") moved(stage, event.target, event.key).focus();
    event.preventDefault();
    event.stopPropagation();
  });
  clicks(stage.closest("form"), {
    undo() {
      act.undo();
      stage.querySelector('[tabindex="0"]').focus();
    },
  });
  appear(stage);
}

// A beam as a tree ------------------------------------------------------------------------------
//
// Beam search as a tree: a column for each length, the beginnings that were kept and those that were dropped, each with
// its log-probability. beamSearch of models.js tells `watch` the candidates of each length.

const NODE = { width: 128, height: 19 }; // pixels

// What was watched, one { grown, ended } for each length → the root; a node's children are the best first.
// best: the ids of what was chosen in the end.
function growTree(watched, size, best) {
  const node = (said, score, more) => ({ said, score, children: [], ...more });
  const root = node([], 0, { kept: true, chosen: true });
  const nodes = new Map([["", root]]);
  let rankOfBest = -Infinity;
  for (const { grown, ended } of watched) {
    for (const { said, score, rank } of ended) {
      if (rank <= rankOfBest) continue; // as an end it was worse than an earlier one
      rankOfBest = rank;
      const chosen = said.join() === best.join();
      nodes.get(said.join()).children.push(node(said, score, { end: true, rank, chosen }));
    }
    grown.forEach(({ said, score }, place) => {
      const begins = said.every((id, i) => id === best[i]);
      const child = node(said, score, { kept: place < size, chosen: begins });
      nodes.get(said.slice(0, -1).join()).children.push(child);
      nodes.set(said.join(), child);
    });
  }
  return root;
}

// Column by column; below each other the children of one node, then those of the next.
function levelsOf(root) {
  const found = [];
  for (let level = [root]; level.length; level = level.flatMap(({ children }) => children)) {
    level.forEach((node, row) => Object.assign(node, { x: found.length * NODE.width, y: (row + 0.5) * NODE.height }));
    found.push(level);
  }
  return found;
}

const stateOf = ({ kept, end, chosen }) => (chosen ? "chosen" : end ? "end" : kept ? "kept" : "dropped");
const wordOf = ({ said, end }, token) => (end ? "<eos>" : said.length ? token(said.at(-1)) : "<bos>");
const labelOf = (node, token) => `${safe(wordOf(node, token))} ${fixed(node.score, 2)}`;

function pictureHTML(root, token) {
  const levels = levelsOf(root);
  const height = NODE.height * Math.max(...levels.map((level) => level.length));
  const every = levels.flat();
  const lines = every.flatMap((node) => node.children.map((child) =>
    `<path class="${stateOf(child)}" d="M${node.x + NODE.width - 24} ${node.y}L${child.x - 2} ${child.y}"></path>`));
  const texts = every.map((node) =>
    `<text class="${stateOf(node)}" x="${node.x}" y="${node.y + 4}">${labelOf(node, token)}</text>`);
  const box = `width="${levels.length * NODE.width + 24}" height="${height}"`;
  return `<svg aria-hidden="true" ${box}>${lines.join("")}${texts.join("")}</svg>`;
}

const STATES = { chosen: "chosen", end: "an end, not the best", kept: "kept", dropped: "dropped" };

function listHTML(node, token) {
  const children = node.children.length
    ? `<ul>${node.children.map((child) => listHTML(child, token)).join("")}</ul>`
    : "";
  return `<li><span ${DATA}>${labelOf(node, token)}</span>, ${STATES[stateOf(node)]}${children}</li>`;
}

// The tree as a picture, and as a nested list to unfold; `token` gives the text of an id.
function treeHTML(root, token) {
  return '<p>The beam as a tree: each beginning with the logarithm of its probability. In bold what is chosen, ' +
    "in normal type what is kept, in italics what is dropped.</p>" +
    `<div class="cu-live-tree" role="region" aria-label="The beam as a tree" tabindex="0" ${OURS} translate="no" lang="fr">` +
    `${pictureHTML(root, token)}</div><details><summary ${OURS}>The tree as a list</summary>` +
    `<ul class="cu-live-list">${listHTML(root, token)}</ul></details>`;
}
