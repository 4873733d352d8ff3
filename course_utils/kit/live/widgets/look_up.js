// A look-up: a query is dragged over a table of animals; scores, weights and answer follow. Or it goes by itself, along
// the slope, to an answer that is wanted.

const [LEFT, RIGHT, TOP, BOTTOM] = [30, 390, 10, 370];
const RING = 20; // radius around a key with weight 1
const TEMPERATURES = [0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 100];

const [MOST_STEPS, STEP, PAUSE] = [200, 0.02, 40]; // of a walk; the longest step; milliseconds between two

const shares = (numbers) => numbers.map((number) => number / total(numbers));

// Equal weights for the k best scores; ties share.
const top = (k) => (scaled) => {
  const kth = [...scaled].sort((a, b) => b - a)[Math.min(k, scaled.length) - 1];
  return shares(scaled.map((a) => Number(a >= kth)));
};

// From scores / T, the largest of them 0, to weights. All but the softmax are hard: their slope is 0.
const YOURS = "Your query";
const LOOK_UPS = {
  softmax: (scaled) => shares(scaled.map(Math.exp)),
  nearest: top(1),
  "top two": top(2),
  average: (scaled) => shares(scaled.map(() => 1)),
};

// Scores −½‖q − k‖², weights, the answer, and its slope: how many years per unit of size, and of home.
function find(query, rows, temperature, kind) {
  const scores = rows.map(([x, y]) => -((query[0] - x) ** 2 + (query[1] - y) ** 2) / 2 + 0);
  const most = Math.max(...scores);
  const weights = LOOK_UPS[kind](scores.map((score) => (score - most) / temperature));
  const answer = total(rows.map((row, i) => weights[i] * row[2]));
  const slope = [0, 1].map((axis) => kind !== "softmax" ? 0 :
    total(rows.map((row, i) => (weights[i] * (row[2] - answer) * (row[axis] - query[axis])) / temperature)));
  return { scores, weights, answer, slope };
}

const inside = (query, ends) => query.every((at, axis) => ends[axis][0] <= at && at <= ends[axis][1]);

// Where a query comes to by small steps along the slope, toward the wanted answer: all its places, up to the first one
// outside of the picture.
function stepsTo(query, rows, temperature, kind, wanted, ends) {
  const places = [query];
  while (places.length <= MOST_STEPS && inside(places.at(-1), ends)) {
    const { answer, slope } = find(places.at(-1), rows, temperature, kind);
    const steepness = Math.hypot(...slope);
    const miss = wanted - answer;
    if (steepness < 1e-6 || Math.abs(miss) < 0.05) break;
    const far = Math.sign(miss) * Math.min(STEP, Math.abs(miss) / steepness);
    places.push(places.at(-1).map((at, axis) => at + (far * slope[axis]) / steepness));
  }
  return places;
}

function tableHTML(names, rows, { scores, weights, answer }, unit) {
  const heads = ["key", "score a", "weight α", `${safe(unit)} v`, `α × ${safe(unit)}`];
  const lines = rows.map((row, i) =>
    `<tr><th scope="row" ${DATA}>${safe(names[i])}</th><td>${fixed(scores[i], 3)}</td>` +
      `<td style="--w: ${weights[i].toFixed(2)}">${weights[i] ? fixed(weights[i], 2) : 0}</td>` +
      `<td>${row[2]}</td><td>${fixed(weights[i] * row[2], 2)}</td></tr>`);
  return `<table><thead><tr>${columnHeads(heads)}</tr></thead><tbody>${lines.join("")}` +
    `<tr><th scope="row">sum</th><td></td><td>1.00</td><td></td><td>${fixed(answer, 2)}</td></tr></tbody></table>`;
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
      textAt(pixel(across(x)), pixel(down(y) + RING + 15), "middle", safe(name), ` class="notranslate" ${DATA}`);
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
  const trail = (places) => line(places.map(([x, y]) => [across(x), down(y)]));
  return { keysHTML, cross, queryAt, trail };
}

// What a query gives: the keys, the cross, the table and the answer in words.
function shown(data, query, temperature, kind) {
  const { animals, queries, features: [across, up, unit] } = data;
  const rows = Object.values(animals);
  const words = { ...animals, ...queries };
  const found = find(query, rows, temperature, kind);
  const flat = found.slope.every((each) => Math.abs(each) < 1e-6);
  const near = (word) => query.every((at, i) => Math.abs(at - words[word][i]) < 1e-9);
  const title = Object.keys(words).findLast(near) ?? YOURS;
  const plane = planeOf(data);
  return {
    keys: plane.keysHTML(found.weights),
    query: plane.cross(query),
    table: tableHTML(Object.keys(animals), rows, found, unit),
    said: `${title === YOURS ? title : asIs(title)}, ${safe(across)} ${fixed(query[0], 2)}, ${safe(up)} ${fixed(query[1], 2)}, T = ${temperature}: ` +
      `the answer is ${fixed(found.answer, 1)} ${safe(unit)}. ` + (flat
      ? "Its slope is 0: a small step changes nothing."
      : `Its slope: ${fixed(found.slope[0], 1)} ${safe(unit)} per unit of ${safe(across)}, ${fixed(found.slope[1], 1)} per unit of ${safe(up)}.`),
  };
}

// The first query of a table. data: animals, name → size, home, years; queries, name → size, home; features, what these
// three numbers are called.
function state(_, { animals, queries, features }) {
  const places = [...Object.values(animals), ...Object.values(queries), [0, 0], [1, 1]];
  const rounded = (number) => Number(number.toFixed(2));
  const ends = [0, 1].map((axis) => {
    const all = places.map((place) => place[axis]);
    return [rounded(Math.min(...all) - 0.2), rounded(Math.max(...all) + 0.1)];
  });
  return { data: { animals, queries, features, ends }, query: Object.values(queries)[0], place: 6, kind: "softmax", wanted: 20 };
}

function html({ data, query, place, kind, wanted }) {
  const temperature = TEMPERATURES[place];
  const found = shown(data, query, temperature, kind);
  const words = [...Object.keys(data.queries), ...Object.keys(data.animals)]
    .map((name) => button(`${DATA} data-word="${safe(name)}"`, safe(name)));
  const [across, up, unit] = data.features.map(safe);
  const sliders = ["size", "home"].map((name, i) => slider([across, up][i],
    `name="${name}" min="${data.ends[i][0]}" max="${data.ends[i][1]}" step="0.01" value="${query[i]}"`,
    name, fixed(query[i], 2)));
  sliders.push(slider("Temperature T", `name="temperature" min="0" max="${TEMPERATURES.length - 1}" step="1" ` +
    `value="${place}" aria-valuetext="${temperature}"`, "temperature", temperature));
  const picture = `<path class="cu-live-axis" d="M${LEFT} ${TOP}V${BOTTOM}H${RIGHT}"></path>
${textAt(RIGHT, BOTTOM + 20, "end", across)}
${textAt(LEFT - 10, TOP, "end", up, ` transform="rotate(-90 ${LEFT - 10} ${TOP})"`)}
<g data-part="keys">${found.keys}</g>
<path class="cu-live-query" data-part="trail" d=""></path>
<path class="cu-live-cross" data-part="query" d="${found.query}"></path>`;
  return `<p>Drag the query (the cross), or begin at a word. Or let it walk, by small steps along the slope, to the answer that you want.</p>
<p class="cu-live-examples">Ask for: ${words.join(" ")}</p>
<div class="cu-live-ask">${sliders.join(" ")}</div>
<div class="cu-live-ask">${select("Look-up", "kind", Object.keys(LOOK_UPS))}
${labeled("Wanted", `${input("number", `name="wanted" value="${wanted}" step="any"`)} ${unit}`)}
${button('data-part="walk"', "Walk there")}</div>
<p aria-live="polite" data-part="said">${found.said}</p>
<div class="cu-live-beside">${plot(`Keys on the plane of ${across} and ${up}, and the query`, "400 400", picture,
    ` data-part="plane" data-table="${safe(JSON.stringify(data))}"`, " cu-live-plane")}
${region("Scores, weights and values", "table", found.table)}</div>
<p class="cu-live-note">Every number here is computed from the table.</p>`;
}

function mount(form) {
  const { field, part, show, write, put, say } = partsOf(form);
  const data = JSON.parse(part("plane").dataset.table);
  const words = { ...data.animals, ...data.queries };
  const plane = planeOf(data);
  let [places, timer] = [[], null]; // of a walk, up to now

  const settings = () => [TEMPERATURES[field.temperature.value], field.kind.value];

  function ask(query, end) {
    const [temperature, kind] = settings();
    const found = shown(data, query, temperature, kind);
    show("keys", found.keys);
    put("query", { d: found.query });
    put("trail", { d: plane.trail(places) });
    show("table", found.table);
    ["size", "home"].forEach((name, axis) => write(name, fixed(query[axis], 2)));
    say(field.temperature, "temperature", temperature);
    show("said", found.said + end);
  }

  const here = () => [Number(field.size.value), Number(field.home.value)];

  function draw() {
    clearTimeout(timer);
    places = [];
    ask(here(), "");
  }

  // The walk is known at once, and shown step by step.
  function go() {
    clearTimeout(timer);
    const begin = places.at(-1) ?? here();
    const all = stepsTo(begin, Object.values(data.animals), ...settings(), Number(field.wanted.value), data.ends);
    let shownSteps = isCalm() ? all.length - 1 : 0;
    function next() {
      places = all.slice(0, shownSteps + 1);
      const query = places.at(-1);
      ["size", "home"].forEach((name, axis) => { field[name].value = query[axis]; });
      const ended = shownSteps === all.length - 1;
      ask(query, ended ? ` ${endOf(all)}` : "");
      shownSteps += 1;
      if (!ended) timer = setTimeout(next, PAUSE);
    }
    next();
  }

  function endOf(all) {
    const query = all.at(-1);
    const { answer } = find(query, Object.values(data.animals), ...settings());
    const steps = all.length - 1;
    if (Math.abs(answer - field.wanted.value) < 0.05) return `It arrived, after ${steps} steps.`;
    if (!inside(query, data.ends)) return `It has left the picture, after ${steps} steps.`;
    return steps === MOST_STEPS ? `After ${steps} steps it has not arrived.` : `It stays there, after ${steps} steps.`;
  }

  const set = follow(form, draw);

  function move([size, home]) {
    set("size", size);
    set("home", home);
  }

  clicks(form, { word: (name) => move(words[name]), part: go });
  const at = pointed(part("plane"), 400);
  const drag = (event) => event.buttons && move(plane.queryAt(...at(event)));
  drags(part("plane"), { down: drag, move: drag });
}
