// A look-up: a query is dragged over a table of animals; scores, weights and answer follow.
(globalThis.live_widgets ??= {}).look_up = (() => {
  "use strict";
  const { OURS, safe, fixed, follow } = globalThis.live_parts;
  const [LEFT, RIGHT, TOP, BOTTOM] = [30, 390, 10, 370];
  const RING = 20; // radius around a key with weight 1
  const TEMPERATURES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100];

  // Scores −½‖q − k‖², and the softmax of scores / T.
  function weightsOf(query, keys, temperature) {
    const scores = keys.map(([x, y]) => -((query[0] - x) ** 2 + (query[1] - y) ** 2) / 2 + 0);
    const most = Math.max(...scores);
    const powers = scores.map((score) => Math.exp((score - most) / temperature));
    const sum = powers.reduce((a, b) => a + b);
    return { scores, weights: powers.map((power) => power / sum) };
  }

  const answerOf = (rows, weights) => rows.reduce((sum, row, i) => sum + weights[i] * row[2], 0);

  function tableHTML(names, rows, { scores, weights }) {
    const heads = ["key", "score a", "weight α", "years v", "α × years"];
    const head = heads.map((text) => `<th scope="col">${text}</th>`).join("");
    const lines = rows.map((row, i) =>
      `<tr><th scope="row">${safe(names[i])}</th><td>${fixed(scores[i], 3)}</td>` +
        `<td style="--w: ${weights[i].toFixed(2)}">${fixed(weights[i], 2)}</td>` +
        `<td>${row[2]}</td><td>${fixed(weights[i] * row[2], 2)}</td></tr>`);
    const sum = fixed(answerOf(rows, weights), 2);
    return `<table><thead><tr>${head}</tr></thead><tbody>${lines.join("")}` +
      `<tr><th scope="row">sum</th><td></td><td>1.00</td><td></td><td>${sum}</td></tr></tbody></table>`;
  }

  // The plane of the keys, and places on its picture; ends: the lowest and the highest size, and home.
  function planeOf({ animals, ends: [[low, high], [deep, tall]] }) {
    const across = (x) => LEFT + ((RIGHT - LEFT) * (x - low)) / (high - low);
    const down = (y) => BOTTOM - ((BOTTOM - TOP) * (y - deep)) / (tall - deep);
    const pixel = (number) => number.toFixed(1);

    const keysHTML = (weights) => Object.entries(animals).map(([name, [x, y]], i) => {
      const place = `cx="${pixel(across(x))}" cy="${pixel(down(y))}"`;
      return `<circle class="cu-live-ring" ${place} r="${RING}"></circle>` +
        `<circle class="cu-live-disk" ${place} r="${pixel(RING * Math.sqrt(weights[i]))}"></circle>` +
        `<text x="${pixel(across(x))}" y="${pixel(down(y) + RING + 15)}" text-anchor="middle">${safe(name)}</text>`;
    }).join("");

    function cross([x, y]) {
      const [left, right] = [pixel(across(x) - 8), pixel(across(x) + 8)];
      const [above, below] = [pixel(down(y) - 8), pixel(down(y) + 8)];
      return `M${left} ${above}L${right} ${below}M${left} ${below}L${right} ${above}`;
    }

    const queryAt = (x, y) => [
      low + ((x - LEFT) * (high - low)) / (RIGHT - LEFT),
      deep + ((BOTTOM - y) * (tall - deep)) / (BOTTOM - TOP),
    ];
    return { keysHTML, cross, queryAt };
  }

  // What a query gives: the keys, the cross, the table and the answer in words.
  function shown(data, query, temperature) {
    const { animals, queries } = data;
    const rows = Object.values(animals);
    const words = { ...animals, ...queries };
    const found = weightsOf(query, rows, temperature);
    const near = (word) => query.every((at, i) => Math.abs(at - words[word][i]) < 1e-9);
    const title = Object.keys(words).findLast(near) ?? "Your query";
    const plane = planeOf(data);
    return {
      keys: plane.keysHTML(found.weights),
      query: plane.cross(query),
      table: tableHTML(Object.keys(animals), rows, found),
      said: `${title}, size ${fixed(query[0], 2)}, home ${fixed(query[1], 2)}, T = ${temperature}: ` +
        `the answer is ${fixed(answerOf(rows, found.weights), 1)} years.`,
    };
  }

  // The first query of a table. data: animals, name → size, home, years; queries, name → size, home.
  function state(_, { animals, queries }) {
    const places = [...Object.values(animals), ...Object.values(queries), [0, 0], [1, 1]];
    const rounded = (number) => Number(number.toFixed(2));
    const ends = [0, 1].map((axis) => {
      const all = places.map((place) => place[axis]);
      return [rounded(Math.min(...all) - 0.2), rounded(Math.max(...all) + 0.1)];
    });
    return { data: { animals, queries, ends }, query: Object.values(queries)[0], place: 6 };
  }

  function html({ data, query, place }) {
    const temperature = TEMPERATURES[place];
    const found = shown(data, query, temperature);
    const words = [...Object.keys(data.queries), ...Object.keys(data.animals)].map((name) =>
      `<button type="button" ${OURS} data-word="${safe(name)}">${safe(name)}</button>`);
    const sliders = ["size", "home"].map((name, i) =>
      `<label class="cu-live-slider"><span class="cu-live-label">${name}</span> <input type="range" ${OURS} ` +
        `name="${name}" min="${data.ends[i][0]}" max="${data.ends[i][1]}" step="0.01" value="${query[i]}"> ` +
        `<output aria-live="off" data-part="${name}">${fixed(query[i], 2)}</output></label> `);
    return `<p>Drag the query (the cross), or begin at a word.</p>
<p class="cu-live-examples">Ask for: ${words.join(" ")}</p>
<div class="cu-live-ask">${sliders.join("")}<label class="cu-live-slider"><span class="cu-live-label">Temperature T\
</span> <input type="range" ${OURS} name="temperature" min="0" max="${TEMPERATURES.length - 1}" step="1" \
value="${place}" aria-valuetext="${temperature}"> <output aria-live="off" data-part="temperature">${temperature}\
</output></label></div>
<div class="cu-live-beside"><svg class="cu-live-plot cu-live-plane" role="img" aria-label="Keys on the plane \
of size and home, and the query" viewBox="0 0 400 400" data-part="plane" data-table="${safe(JSON.stringify(data))}">
<path class="cu-live-axis" d="M${LEFT} ${TOP}V${BOTTOM}H${RIGHT}"></path>
<text x="${RIGHT}" y="${BOTTOM + 20}" text-anchor="end">size</text>
<text x="${LEFT - 10}" y="${TOP}" text-anchor="end" transform="rotate(-90 ${LEFT - 10} ${TOP})">home</text>
<g data-part="keys">${found.keys}</g>
<path class="cu-live-cross" data-part="query" d="${found.query}"></path></svg>
<div class="cu-live-table" role="region" aria-label="Scores, weights and values" tabindex="0" ${OURS} \
data-part="table">${found.table}</div></div>
<p aria-live="polite" data-part="said">${safe(found.said)}</p>
<p class="cu-live-note">No stored model is behind this: all is computed from the table.</p>`;
  }

  function mount(form) {
    const field = form.elements;
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    const data = JSON.parse(part("plane").dataset.table);
    const words = { ...data.animals, ...data.queries };

    function draw() {
      const query = [Number(field.size.value), Number(field.home.value)];
      const temperature = TEMPERATURES[field.temperature.value];
      const found = shown(data, query, temperature);
      part("keys").innerHTML = found.keys;
      part("query").setAttribute("d", found.query);
      part("table").innerHTML = found.table;
      part("size").textContent = fixed(query[0], 2);
      part("home").textContent = fixed(query[1], 2);
      part("temperature").textContent = temperature;
      field.temperature.setAttribute("aria-valuetext", temperature);
      part("said").textContent = found.said;
    }

    const set = follow(form, draw);

    function ask([size, home]) {
      set("size", size);
      set("home", home);
    }

    form.addEventListener("click", ({ target }) => {
      const { word } = target.closest("button")?.dataset ?? {};
      if (word) ask(words[word]);
    });
    const plane = part("plane");
    function drag({ clientX, clientY, buttons }) {
      if (!buttons) return;
      const box = plane.getBoundingClientRect();
      const [x, y] = [clientX - box.left, clientY - box.top].map((far) => (400 * far) / box.width);
      ask(planeOf(data).queryAt(x, y));
    }
    plane.addEventListener("pointerdown", (event) => {
      plane.setPointerCapture(event.pointerId);
      drag(event);
    });
    plane.addEventListener("pointermove", drag);
  }

  return { state, html, mount };
})();
