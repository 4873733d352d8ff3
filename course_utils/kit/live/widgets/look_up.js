// A look-up in a page: the query is dragged, and scores, weights and the answer follow. look_up.py writes the same.
(globalThis.live_widgets ??= {}).look_up = (() => {
  "use strict";
  const { safe, fixed, follow } = globalThis.live_parts;
  const [LEFT, RIGHT, TOP, BOTTOM] = [30, 390, 10, 370];
  const RING = 20;

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

  return function lookUp(form) {
    const field = form.elements;
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    const { animals, queries, ends, temperatures } = JSON.parse(part("plane").dataset.table);
    const [names, rows] = [Object.keys(animals), Object.values(animals)];
    const words = { ...animals, ...queries };
    const [[low, high], [deep, tall]] = ends;
    const across = (x) => LEFT + ((RIGHT - LEFT) * (x - low)) / (high - low);
    const down = (y) => BOTTOM - ((BOTTOM - TOP) * (y - deep)) / (tall - deep);
    const pixel = (number) => number.toFixed(1);

    function keysHTML(weights) {
      return rows.map(([x, y], i) => {
        const place = `cx="${pixel(across(x))}" cy="${pixel(down(y))}"`;
        return `<circle class="cu-live-ring" ${place} r="${RING}"></circle>` +
          `<circle class="cu-live-disk" ${place} r="${pixel(RING * Math.sqrt(weights[i]))}"></circle>` +
          `<text x="${pixel(across(x))}" y="${pixel(down(y) + RING + 15)}" text-anchor="middle">${safe(names[i])}</text>`;
      }).join("");
    }

    function cross([x, y]) {
      const [left, right] = [pixel(across(x) - 8), pixel(across(x) + 8)];
      const [above, below] = [pixel(down(y) - 8), pixel(down(y) + 8)];
      return `M${left} ${above}L${right} ${below}M${left} ${below}L${right} ${above}`;
    }

    function draw() {
      const query = [Number(field.size.value), Number(field.home.value)];
      const temperature = temperatures[field.temperature.value];
      const found = weightsOf(query, rows, temperature);
      const name = Object.keys(words).findLast((word) => query.every((at, i) => Math.abs(at - words[word][i]) < 1e-9));
      const title = name ?? "Your query";
      part("keys").innerHTML = keysHTML(found.weights);
      part("query").setAttribute("d", cross(query));
      part("table").innerHTML = tableHTML(names, rows, found);
      part("size").textContent = fixed(query[0], 2);
      part("home").textContent = fixed(query[1], 2);
      part("temperature").textContent = temperature;
      field.temperature.setAttribute("aria-valuetext", temperature);
      part("said").textContent = `${title}, size ${fixed(query[0], 2)}, home ${fixed(query[1], 2)}, ` +
        `T = ${temperature}: the answer is ${fixed(answerOf(rows, found.weights), 1)} years.`;
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
      const size = low + ((x - LEFT) * (high - low)) / (RIGHT - LEFT);
      ask([size, deep + ((BOTTOM - y) * (tall - deep)) / (BOTTOM - TOP)]);
    }
    plane.addEventListener("pointerdown", (event) => {
      plane.setPointerCapture(event.pointerId);
      drag(event);
    });
    plane.addEventListener("pointermove", drag);
  };
})();
