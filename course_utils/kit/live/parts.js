// What live widgets are made of: controls, small maps, a map as a table, bars, and how a form is followed.
globalThis.live_parts = (() => {
  "use strict";
  const OURS = 'data-lm-suppress-shortcuts="true"'; // keys are the reader's, not Lab's
  const escaped = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  const safe = (text) => String(text).replace(/[&<>"]/g, (letter) => escaped[letter]);
  const percent = (p) => Math.floor(100 * p + 0.5);
  const range = (length) => Array.from({ length }, (_, i) => i);

  const total = (numbers) => numbers.reduce((sum, number) => sum + number, 0);
  const within = (low, number, high) => Math.min(high, Math.max(low, number));
  const isCalm = () => globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches;

  // Controls ------------------------------------------------------------------------------------

  const input = (type, attributes) => `<input type="${type}" ${OURS} ${attributes}>`;
  const button = (attributes, text) => `<button type="button" ${OURS} ${attributes}>${text}</button>`;
  const labeled = (label, control, sort = "") =>
    `<label${sort && ` class="${sort}"`}><span class="cu-live-label">${label}</span> ${control}</label>`;

  // A choice among few or many: of each its value and label, or a text that is both.
  const radios = (name, choices, chosen) => choices.map(([value, label]) =>
    `<label>${input("radio", `name="${name}" value="${value}"${value === chosen ? " checked" : ""}`)} ${label}</label>`).join("");
  const select = (label, name, choices, chosen) => labeled(label, `<select ${OURS} name="${name}">${choices.map((each) => {
    const [value, text] = [each].flat();
    const attributes = (text === undefined ? "" : ` value="${value}"`) + (value === chosen ? " selected" : "");
    return `<option${attributes}>${text ?? value}</option>`;
  }).join("")}</select>`);

  // A range, and what its value is beside it.
  const slider = (label, attributes, part, text, sort = "cu-live-slider") =>
    labeled(label, `${input("range", attributes)} <output aria-live="off" data-part="${part}">${text}</output>`, sort);

  const sentenceField = (label, name, text) => labeled(label, input("text", `name="${name}" maxlength="100" ` +
    `value="${safe(text)}" spellcheck="false" autocapitalize="off"`), "cu-live-sentence");
  const numberField = (label, name, most, value) =>
    labeled(label, input("number", `name="${name}" min="0" max="${most}" value="${value}"`));

  // A button for each example of a bundle, with its sentence.
  const sentences = (examples) => examples.map((each, i) => button(`data-example="${i}"`, safe(each.sentence))).join(" ");

  // What may be wider than the page, and scrolls.
  const region = (label, part, content) =>
    `<div class="cu-live-table" role="region" aria-label="${label}" tabindex="0" ${OURS} data-part="${part}">${content}</div>`;
  const columnHeads = (names) => names.map((name) => `<th scope="col">${name}</th>`).join("");

  // A number with so many digits after the point, and a real minus sign; what is rounded to 0 has none.
  const fixed = (number, digits) => number.toFixed(digits).replace(/^-(?=[0.]*$)/, "").replace("-", "−");

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
    const word = (scope, language, text) => `<th scope="${scope}" lang="${language}">${safe(text)}</th>`;
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

  // [word, probability] as bars.
  function bars(items, language = "en") {
    const lines = items.map(([text, p]) =>
      `<li style="--w: ${percent(p) / 100}"><span lang="${language}">${safe(text)}</span> <span>${percent(p)} %</span></li>`);
    return `<ol>${lines.join("")}</ol>`;
  }

  // Candidates as bars, each a button: a bar for the probability, a line below it for the one before the limits.
  // items: { text, choice, before, after }; a choice that is null cannot be taken.
  const choiceButton = (choice, text) => button(choice === null ? 'disabled=""' : `data-choice="${choice}"`, text);
  function choices(items) {
    const lines = items.map(({ text, choice, before, after }) => {
      const both = percent(before) === percent(after) ? "" : `${percent(before)} → `;
      return `<li style="--w: ${percent(after) / 100}; --before: ${percent(before) / 100}">` +
        `${choiceButton(choice, safe(text))} <span>${both}${percent(after)} %</span></li>`;
    });
    return `<ol class="cu-live-choices">${lines.join("")}</ol>`;
  }

  // A text, each piece on a ground that is as dark as its weight; "␣" ends a word. now: the piece that is marked.
  function weighted(pieces, weights, now) {
    const spans = pieces.map((piece, i) => {
      const space = /[␣>_]$/.test(piece) ? " " : "";
      const shown = safe(piece.replace("␣", ""));
      const current = i === now ? ' aria-current="true"' : "";
      return `<span data-place="${i}"${current} style="--w: ${percent(weights[i] ?? 0) / 100}">${shown}</span>${space}`;
    });
    return spans.join("").trim();
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

  // Known words like this one, for "am" also "i'm"; the first four of a vocabulary are no words.
  function suggestions(unknown, vocabulary) {
    const most = Math.min(2, unknown.length / 2);
    const begin = unknown.length > 2 ? unknown.slice(0, 3) : null;
    const verb = /^(am|are|is)$/.test(unknown) ? `'${unknown.slice(1)}` : null;
    const near = vocabulary.slice(4).flatMap((word) => {
      const begins = begin !== null && word.startsWith(begin);
      const short = verb !== null && word.endsWith(verb);
      const apart = Math.abs(word.length - unknown.length); // no distance is smaller
      if (apart > most && !begins && !short) return [];
      const far = short ? 0 : distance(unknown, word) - (begins ? 0.5 : 0);
      return begins || far <= most ? [{ word, far }] : [];
    });
    return near.sort((a, b) => a.far - b.far).slice(0, 3).map(({ word }) => word);
  }

  // "It does not know wuman. Words it knows: woman", each known one a button.
  function unknownWord(token, vocabulary, told = `It does not know <q>${safe(token)}</q>.`) {
    const others = suggestions(token, vocabulary).map((word) => button(`data-for="${safe(token)}"`, safe(word)));
    return `<span>${told}${others.length ? ` Words it knows: ${others.join(" ")}` : ""}</span>`;
  }

  // The text with another word in place of an unknown one; "i'm" for "am" takes the place of "i am".
  function replaced(text, unknown, word) {
    const tokens = globalThis.live_engine.tokenize(text);
    const inside = (token, i) => tokens[i + 1] === unknown && word.startsWith(`${token}'`);
    return tokens.filter((token, i) => !inside(token, i)).map((token) => (token === unknown ? word : token)).join(" ");
  }

  // The form ------------------------------------------------------------------------------------

  // What does not fit into a field is left out: that is said.
  function sayLimits(form) {
    for (const field of form.querySelectorAll("[maxlength]")) {
      const told = document.createElement("small");
      told.setAttribute("role", "status");
      (field.closest("label") ?? field).after(told);
      field.addEventListener("beforeinput", ({ data }) => {
        const kept = field.value.length - (field.selectionEnd - field.selectionStart);
        const fits = kept + (data ?? "").length <= field.maxLength;
        told.textContent = fits ? "" : `At most ${field.maxLength} characters: the rest is left out.`;
      });
    }
  }

  // All that a reader chose stands in named controls, a map in a hidden one: `draw` follows them.
  // Written by the widget itself, a value is followed when it says so by `set`. written: the first state, which is
  // there, is drawn anew only where the address asks for another.
  function follow(form, draw, { written = false } = {}) {
    const set = (name, value) => {
      form.elements[name].value = value;
      form.elements[name].dispatchEvent?.(new Event("input", { bubbles: true }));
    };
    form.addEventListener("submit", (event) => event.preventDefault());
    sayLimits(form);
    const press = (map) => form.querySelectorAll("button[data-map]")
      .forEach((each) => each.setAttribute("aria-pressed", each.dataset.map === map));
    form.addEventListener("input", ({ target }) => {
      if (!target.name) return;
      if (target.name === "map") press(target.value);
      draw(target.name);
    });
    form.addEventListener("click", ({ target }) => {
      const button = target.closest("button[data-map]");
      if (button) set("map", button.dataset.map);
    });
    const restored = globalThis.live_address?.connect(form, draw);
    if (!written && !restored) draw();
    form.querySelector("fieldset").disabled = false;
    form.dataset.ready = "true";
    return set;
  }

  // The controls of a form, and its parts by their names; `show` fills a part. `say`: the value of a control in words.
  function partsOf(form) {
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    const show = (name, html) => {
      part(name).innerHTML = html;
    };
    const say = (control, name, text) => {
      control.setAttribute("aria-valuetext", text);
      part(name).textContent = text;
    };
    return { field: form.elements, part, show, say };
  }

  // What a click does, by the names of a button's data: { example: (value, button) => … }.
  function clicks(form, acts, buttons = "button") {
    form.addEventListener("click", ({ target }) => {
      const clicked = target.closest(buttons);
      for (const [name, value] of Object.entries(clicked?.dataset ?? {})) acts[name]?.(value, clicked);
    });
  }

  // The act "for": a known word takes the place of an unknown one.
  const correct = (control, set) => (unknown, { textContent }) => {
    set(control.name, replaced(control.value, unknown, textContent));
    control.focus();
  };

  // Steps that are played, and paused, by a button; a reader who is calm sees the end at once. spoken: parts that are
  // not read aloud at each step; isLast: whether the step to come is the last one.
  function player(play, spoken, { step, isLast, end }, pause = 40) {
    let timer = null;
    const tell = (text, how) => {
      play.textContent = text;
      for (const each of spoken) each.setAttribute("aria-live", how);
    };
    function stop() {
      clearInterval(timer);
      timer = null;
      tell("Play", "polite");
    }
    function go() {
      if (isCalm()) {
        end();
        return;
      }
      tell("Pause", "off");
      timer = setInterval(() => {
        if (isLast()) stop();
        step();
      }, pause);
    }
    return { go, stop, isOn: () => timer !== null };
  }

  // Where a pointer is, in the units of a picture that is so many wide.
  const pointed = (picture, width) => ({ clientX, clientY }) => {
    const box = picture.getBoundingClientRect();
    return [clientX - box.left, clientY - box.top].map((far) => (width * far) / box.width);
  };

  return {
    OURS, safe, percent, range, total, within, isCalm, fixed, dice, largest, // numbers and texts
    input, button, labeled, radios, select, slider, sentenceField, numberField, sentences, region, columnHeads, // controls
    svg, mean, named, mapAt, needMap, mapButton, gallery, table, selfTable, bars, choiceButton, choices, weighted, // pictures
    suggestions, unknownWord, follow, partsOf, clicks, correct, player, pointed, // the form
  };
})();
