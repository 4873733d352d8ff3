// Any number of a map explains itself: the query, the key, their products, the scale, the mask and the softmax's sum,
// operation by operation. For every widget whose model is a Network of engine.js: `inside` holds what was computed.
globalThis.live_explain = (() => {
  "use strict";
  const { OURS, safe, radios, columnHeads, percent, range, total, fixed, named, partsOf } = globalThis.live_parts;
  const OPERATIONS = ["project", "score", "scale", "mask", "normalize", "mix", "merge"];
  const HINT = "Choose a number of the table: the page shows how it was computed.";

  // What was computed -----------------------------------------------------------------------------

  // How query i of a head came to its weight for key j. An attention may bring its own `terms` and `scale`.
  function work(model, name, head, i, j) {
    const found = model.inside[name];
    const query = found.queries[i][head];
    const shared = Math.floor(head / found.group);
    const keys = found.keys.map((heads) => heads[shared]);
    const values = found.values.map((heads) => heads[shared]);
    const scale = found.scale ?? Math.sqrt(query.length);
    const termsOf = found.terms ?? ((q, k) => q.map((value, d) => value * k[d]));
    const terms = keys.map((key) => Array.from(termsOf(query, key)));
    const scores = terms.map(total);
    const scaled = scores.map((score) => score / scale);
    const seen = model.looks(name, head, i, scaled);
    const allowed = keys.map((_, key) => (!found.causal || key <= found.start + i) && seen[key] > -Infinity);
    const most = Math.max(...scaled.filter((_, key) => allowed[key]));
    const powers = scaled.map((score, key) => (allowed[key] ? Math.exp(score - most) : 0));
    const sum = powers.reduce((total, power) => total + power, 0);
    const weights = powers.map((power) => power / sum);
    const mixed = Array.from(values[0], (_, d) =>
      values.reduce((total, value, key) => total + weights[key] * value[d], 0));
    const heads = found.mixed.map((rows) => rows[i]);
    const output = found.merged && model.linear(`${name}.out_proj`, [found.merged[i]])[0];
    return {
      i, j, head, query, keys, values, terms, scores, scale, scaled, allowed, most, powers, sum, weights, mixed, heads,
      output, causal: found.causal, added: Boolean(found.terms),
    };
  }

  // What is said about it -------------------------------------------------------------------------

  const two = (number) => fixed(number, 2);
  const four = (number) => fixed(number, 4);

  // One sentence or two for an operation; query and key are words, as HTML.
  const SAYS = {
    project: ({ query, head, added }, word) =>
      `The query of ${word.query} and the key of ${word.key}: ${query.length} numbers each` +
      (added ? "." : `, those of head ${head}, made by W<sub>Q</sub> and W<sub>K</sub>.`),
    score: ({ scores, j, added }) => (added
      ? `The score: query and key are added, tanh is taken, each number is weighted; the sum is ${four(scores[j])}.`
      : `The products of the two, number by number, sum to the score q·k = ${four(scores[j])}.`),
    scale: ({ scores, scaled, scale, query, j, added }) => (added
      ? "An additive score is not scaled."
      : `${four(scores[j])} / √${query.length} = ${four(scores[j])} / ${two(scale)} = ${four(scaled[j])}.`),
    mask: ({ allowed, causal, i, j }, word) => {
      const count = allowed.filter(Boolean).length;
      if (!causal && count === allowed.length) return "Nothing is masked: each key may be attended to.";
      const why = causal && j > i ? "comes later" : "is crossed out";
      const ends = allowed[j] ? "" : ` ${word.key} ${why}: its weight is 0.`;
      return causal
        ? `${word.query} may attend to itself and to what came before: ${count} of ${allowed.length} keys.${ends}`
        : `${word.query} may attend to ${count} of ${allowed.length} keys.${ends}`;
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

  function rowsHTML(rows) {
    const cells = (numbers) => Array.from(numbers, (x) => `<td>${two(x)}</td>`).join("");
    return rows.map(([name, numbers, end = ""]) =>
      `<tr><th scope="row">${name}</th>${cells(numbers)}<td>${end}</td></tr>`).join("");
  }

  // The vectors of one head, number by number; more rows with each operation.
  function vectorsHTML(found, reached) {
    const { j, head, query, keys, values, terms, scores, weights, mixed, heads, output, added } = found;
    const rows = [["query", query], ["key", keys[j]]];
    if (reached > 0) rows.push([added ? "terms" : "products", terms[j], `sum ${two(scores[j])}`]);
    const size = query.length;
    const vectors = [[`Query and key of head ${head}`, size, rows]];
    if (reached > 4) {
      const part = values[j].map((value) => value * weights[j]);
      vectors.push([`Value and mixed value of head ${head}`, mixed.length,
        [["value", values[j]], ["weight × value", part], ["all keys: mixed", mixed]]]);
    }
    if (reached > 5 && output) {
      vectors.push(["Side by side", heads[0].length, heads.map((numbers, h) => [`head ${h}`, numbers])]);
      const lines = range(Math.ceil(output.length / size)).map((line) =>
        [`${line * size} …`, output.slice(line * size, (line + 1) * size)]);
      vectors.push(["Merged", size, lines]);
    }
    return vectors.map(([caption, count, lines]) => regionHTML(caption,
      `<tr><td></td>${columnHeads(range(count))}<td></td></tr>`, rowsHTML(lines)));
  }

  // The whole row of the map, key by key; a column more with each operation.
  function rowHTML(found, words, reached) {
    const { scores, scaled, allowed, powers, sum, weights, j } = found;
    const columns = [
      ["score", scores.map(two), ""],
      ["scaled", scaled.map(two), ""],
      ["may attend", allowed.map((yes) => (yes ? "yes" : "no")), ""],
      ["exp", powers.map(four), four(sum)],
      ["weight", weights.map(four), "1"],
    ].slice(0, reached < 4 ? reached : 5); // to normalize gives exp and weight at once
    const lines = words.keys.map((word, key) => {
      const cells = columns.map(([, texts]) => `<td>${texts[key]}</td>`).join("");
      const begin = `<th scope="row" lang="${words.languages[1]}">${safe(word)}</th>`;
      return `<tr${key === j ? ' aria-current="true"' : ""}>${begin}${cells}</tr>`;
    });
    const sums = columns.map(([, , text]) => `<td>${text}</td>`).join("");
    const foot = reached > 3 ? `<tr><th scope="row">sum</th>${sums}</tr>` : "";
    return regionHTML("All keys of this row", `<tr>${columnHeads(["key", ...columns.map(([name]) => name)])}</tr>`,
      lines.join("") + foot);
  }

  const regionHTML = (caption, head, body) =>
    `<div class="cu-live-numbers" role="region" aria-label="${caption}" tabindex="0" ${OURS}>` +
    `<table><caption>${caption}</caption><thead>${head}</thead><tbody>${body}</tbody></table></div>`;

  const quoted = (word, language) => `<q lang="${language}">${safe(word)}</q>`;

  // A weight up to an operation. words: queries and keys, the tokens, and the languages of the two.
  function html(found, words, word, operation) {
    const reached = OPERATIONS.indexOf(operation);
    const tables = vectorsHTML(found, reached);
    if (reached > 0) tables.splice(1, 0, rowHTML(found, words, reached));
    return `<p aria-live="polite"><strong>${operation}</strong>: ${SAYS[operation](found, word)}</p>` + tables.join("");
  }

  // Which number is explained; the mean of several heads is that of their weights.
  function ofHTML(every, word) {
    const weights = every.map(({ weights: row, j }) => row[j]);
    const mean = total(weights) / weights.length;
    const weight = `<strong>${four(mean)}</strong>, ${percent(mean)} %`;
    const which = `Query ${word.query}, key ${word.key}: the weight is ${weight}`;
    if (every.length === 1) return `${which}. The steps of attention lead to it:`;
    const list = every.map(({ place }, i) => `${named(place)}: ${four(weights[i])}`).join("; ");
    return `${which}, the mean of ${every.length} heads (${list}). ` +
      "Choose one of their maps to see how its weight was computed.";
  }

  // The large table -------------------------------------------------------------------------------

  const cellsOf = (row) => [...(row?.querySelectorAll("td") ?? [])];
  const cellAt = (table, i, j) => cellsOf(table.tBodies[0].rows[i])[j];

  // A place in the table: "2.0" is row 2, column 0. What is no place gives null.
  function placeIn(table, value) {
    const [i, j] = value.split(".").map(Number);
    return value.includes(".") && cellAt(table, i, j) ? [i, j] : null;
  }

  // All numbers are one stop of the tab key.
  function stopAt(cell) {
    cell.closest("table").querySelector('td[tabindex="0"]')?.setAttribute("tabindex", "-1");
    cell.tabIndex = 0;
  }

  // The chosen number is selected; none is where `place` is null.
  function mark(table, place) {
    if (table.getAttribute("role") !== "grid") for (const each of table.querySelectorAll("td")) each.tabIndex = -1;
    table.setAttribute("role", "grid");
    const cell = cellAt(table, ...(place ?? [0, 0]));
    table.querySelector("[aria-selected]")?.removeAttribute("aria-selected");
    stopAt(cell);
    if (place) cell.setAttribute("aria-selected", "true");
  }

  // Keys and clicks in the table: arrows move, Enter and Space choose by `set("cell", "2.0")`.
  function listen(region, set) {
    if (!region.querySelector('[role="grid"]')) mark(region.querySelector("table"), null);
    const placed = (cell) => {
      const row = cell.parentElement;
      return [row.sectionRowIndex, cellsOf(row).indexOf(cell)];
    };
    const focus = (cell) => {
      stopAt(cell);
      cell.focus();
    };
    region.addEventListener("click", ({ target }) => {
      const cell = target.closest("tbody td");
      if (!cell) return;
      focus(cell);
      set("cell", placed(cell).join("."));
    });
    region.addEventListener("keydown", (event) => {
      const cell = event.target.closest("tbody td");
      if (!cell) return;
      const [i, j] = placed(cell);
      const moved = {
        ArrowUp: [i - 1, j],
        ArrowDown: [i + 1, j],
        ArrowLeft: [i, j - 1],
        ArrowRight: [i, j + 1],
        Home: [i, 0],
        End: [i, cellsOf(cell.parentElement).length - 1],
      }[event.key];
      if (moved) {
        const next = cellAt(cell.closest("table"), ...moved);
        if (next) focus(next);
      } else if (event.key === "Enter" || event.key === " ") {
        set("cell", `${i}.${j}`);
      } else {
        return;
      }
      event.preventDefault();
      event.stopPropagation();
    });
  }

  // The place below a table where one of its numbers is explained, and its controls.
  const place = () => '<input type="hidden" name="cell" value=""><div class="cu-live-explain" data-part="explain">' +
    `<p data-part="of">${HINT}</p><fieldset class="cu-live-kinds" data-part="operations" hidden="">` +
    "<legend>Operation</legend> " +
    `${radios("operation", OPERATIONS.map((name) => [name, name]), "normalize")}</fieldset>` +
    '<div data-part="work"></div></div>';

  // The form ------------------------------------------------------------------------------------

  // The heads that a map shows: one, or all those whose mean it is. names: of the attentions, layer by layer.
  function headsOf(model, names, map) {
    const every = names.flatMap((name, layer) =>
      model.maps[name].map((_, head) => ({ name, head, place: `${layer}.${head}` })));
    return map === "mean" ? every : every.filter(({ place }) => place === map || place.startsWith(`${map}.`));
  }

  // Shows how the number was computed that the control `cell` names, up to the operation in the control of that name.
  // attentions: what `headsOf` gives; words: queries and keys, the tokens, and `languages` of the two.
  function explain(form, model, attentions, words) {
    const { part } = partsOf(form);
    const table = part("table").querySelector("table");
    const chosen = placeIn(table, form.elements.cell.value);
    mark(table, chosen);
    part("operations").hidden = !chosen || attentions.length > 1;
    part("work").innerHTML = "";
    part("of").textContent = HINT;
    if (!chosen) return;
    const every = attentions.map(({ name, head, place }) => ({ place, ...work(model, name, head, ...chosen) }));
    const word = {
      query: quoted(words.queries[chosen[0]], words.languages[0]),
      key: quoted(words.keys[chosen[1]], words.languages[1]),
    };
    part("of").innerHTML = ofHTML(every, word);
    if (every.length === 1) part("work").innerHTML = html(every[0], words, word, form.elements.operation.value);
  }

  return { work, place, headsOf, explain, listen };
})();
