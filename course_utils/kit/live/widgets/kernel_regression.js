// Kernel regression: points to drag, a query with its window, and a width that is learned.

// Kernel regression as course_utils.pooling computes it, and the slope by which a width is learned ----

// Each kernel from the squared scaled distance s = u². How it changes with log σ: s becomes smaller by 2s.
const KERNELS = {
  gaussian: { value: (s) => Math.exp(-s / 2), slope: (s) => s * Math.exp(-s / 2) },
  boxcar: { value: (s) => (s <= 1 ? 1 : 0), slope: () => 0 },
  triangular: {
    value: (s) => Math.max(0, 1 - Math.sqrt(s)),
    slope: (s) => (s < 1 ? Math.sqrt(s) : 0),
  },
  epanechnikov: { value: (s) => Math.max(0, 1 - s), slope: (s) => (s < 1 ? 2 * s : 0) },
};

const product = (a, b) => a.reduce((sum, number, i) => sum + number * b[i], 0);

// u² for each key. A softmax does not see what all have in common: the nearest key's is taken away.
function scaled(query, keys, kernel, width) {
  const squared = keys.map((key) => (query - key) ** 2);
  const nearest = kernel === "gaussian" ? Math.min(...squared) : 0;
  return squared.map((distance) => (distance - nearest) / width / width);
}

// One weight for each key, or NaN where no key is in reach.
function weights(query, keys, kernel, width) {
  const heights = scaled(query, keys, kernel, width).map(KERNELS[kernel].value);
  const sum = total(heights);
  return heights.map((height) => height / sum);
}

const average = (query, points, kernel, width) =>
  product(weights(query, points.map(([x]) => x), kernel, width), points.map(([, y]) => y));

// Each value is predicted from the others: the mean squared error, and its derivative for log σ.
function leaveOneOut(points, kernel, width) {
  const { value, slope } = KERNELS[kernel];
  const [errors, slopes] = [[], []];
  points.forEach(([x, y], i) => {
    const others = points.filter((_, j) => j !== i);
    const values = others.map((point) => point[1]);
    const squared = scaled(x, others.map((point) => point[0]), kernel, width);
    const heights = squared.map(value);
    const rises = squared.map(slope);
    const sum = total(heights);
    const predicted = product(heights, values) / sum;
    const change = (product(rises, values) - predicted * total(rises)) / sum;
    errors.push((predicted - y) ** 2);
    slopes.push(2 * (predicted - y) * change);
  });
  const error = total(errors) / points.length;
  if (Number.isNaN(error)) return { error: Infinity, slope: 0 }; // a point has no other in reach
  return { error, slope: total(slopes) / points.length };
}

// Gradient descent with Adam for one number: `step` takes the slope there, and says how far to go.
class Adam {
  mean = 0;
  square = 0;
  steps = 0;

  step(slope, rate) {
    this.steps += 1;
    this.mean = 0.9 * this.mean + 0.1 * slope;
    this.square = 0.999 * this.square + 0.001 * slope ** 2;
    const mean = this.mean / (1 - 0.9 ** this.steps);
    const square = this.square / (1 - 0.999 ** this.steps);
    return (-rate * mean) / (Math.sqrt(square) + 1e-8);
  }
}

const MIDDLE = 2.4; // from here the curve is drawn, to where the query stands
const PLACES = range(101).map((i) => i / 20);
const [NARROW, WIDE] = [0.02, 10];
const WIDTHS = range(61).map((i) => NARROW * (WIDE / NARROW) ** (i / 60));
const RATES = ["0.03", "0.05", "0.1", "0.3"];
const [FEWEST, MOST] = [2, 60]; // points
const STEPS = 200; // of one play
const NEAR = 14; // a finger hits a point that is not farther away, in units of the picture

const round = (number) => Number(number.toFixed(3));

// Points as the form holds them: "0.5 1.25,0.75 -0.3".
const parsed = (text) => text.split(",").map((pair) => pair.split(" ").map(Number));
const written = (points) => points.map((pair) => pair.map(round).join(" ")).join(",");

const across = (x) => 34 + (396 * x) / 5;
const acrossWidths = (width) => 34 + (396 * Math.log(width / NARROW)) / Math.log(WIDE / NARROW);
const pixel = (number) => number.toFixed(1);

function circles(points, shares, chosen, height) {
  return points.map(([x, y], i) => {
    const size = pixel(3 + 14 * Math.sqrt(shares[i] || 0));
    const current = i === chosen ? ' aria-current="true"' : "";
    return `<circle cx="${pixel(across(x))}" cy="${pixel(height(y))}" r="${size}"${current}></circle>`;
  }).join("");
}

const bars = (points, shares) => {
  const most = Math.max(...shares);
  return points.map(([x], i) => `M${pixel(across(x))} 345V${pixel(345 - (75 * shares[i]) / most)}`).join("");
};

// The window: as high as the kernel is over each place.
function windowOver(query, kernel, width) {
  const shape = KERNELS[kernel].value;
  const edge = PLACES.map((x) => [across(x), 345 - 75 * shape(((x - query) / width) ** 2)]);
  return `${line(edge)}L430.0 345L34.0 345Z`;
}

const heightIn = ([low, high]) => (y) => 250 - (240 * (y - low)) / (high - low);

// The paths of the upper picture, and what is said about it. seen: the places at which the curve is drawn.
function fitted({ points, kernel, width, query, chosen }, seen, height) {
  const shares = weights(query, points.map(([x]) => x), kernel, width);
  const answer = average(query, points, kernel, width);
  const reached = Number.isFinite(answer);
  const used = 1 / total(shares.map((share) => share * share));
  return {
    fit: line(seen.map((x) => [across(x), height(average(x, points, kernel, width))])),
    points: circles(points, shares, chosen, height),
    window: windowOver(query, kernel, width),
    bars: reached ? bars(points, shares) : "",
    query: `M${pixel(across(query))} 30V345`,
    cx: pixel(across(query)),
    cy: pixel(reached ? height(answer) : -50),
    said: `Query ${fixed(query, 2)}, width ${width.toFixed(3)}: ` + (reached
      ? `the average is ${fixed(answer, 2)}, as if ${used.toFixed(1)} points shared the weight equally. ` +
        `The longest bar is a weight of ${Math.max(...shares).toFixed(2)}.`
      : "no point is in reach, so there is no average."),
  };
}

const curveOf = (points, kernel) => WIDTHS.map((each) => leaveOneOut(points, kernel, each).error);

// The same of the lower picture. curve: errors of all widths; trail: widths of earlier steps.
function judged({ points, kernel, width }, curve, trail, steps) {
  const { error, slope } = leaveOneOut(points, kernel, width);
  const top = Math.max(...curve.filter(Number.isFinite), 1e-9);
  const heightOf = (e) => 150 - (130 * e) / top;
  const atOf = (each) => [acrossWidths(each), heightOf(leaveOneOut(points, kernel, each).error)];
  return {
    errors: line(WIDTHS.map((each, i) => [acrossWidths(each), heightOf(curve[i])])),
    trail: line(trail.map(atOf)),
    cx: pixel(acrossWidths(width)),
    cy: pixel(Number.isFinite(error) ? heightOf(error) : -50),
    top: top.toFixed(1),
    learned: `Step ${steps}: width ${width.toFixed(3)}, ` + (Number.isFinite(error)
      ? `leave-one-out error ${error.toFixed(3)}, its slope in log σ ${fixed(slope, 4)}.`
      : "no leave-one-out error: a point has no other in reach."),
  };
}

// The first points; truth: the true curve at PLACES.
function state(_, { points, truth }) {
  const heights = points.map(([, y]) => y);
  const ends = [Math.floor(Math.min(...heights, 0) - 0.5), Math.ceil(Math.max(...heights, 6) + 0.5)];
  return { points, truth, ends, kernel: "gaussian", width: 0.4, query: MIDDLE, chosen: 0 };
}

function html(first) {
  const { points, ends: [low, high], width, query } = first;
  const [[x, y]] = points;
  const fit = fitted(first, [query], heightIn(first.ends));
  const learning = judged(first, curveOf(points, first.kernel), [], 0);
  const sliders = [
    ["Query q", 'name="query" min="0" max="5" step="0.05"', query, "query", fixed(query, 2)],
    ["Width σ", `data-part="slider" min="${Math.log(NARROW).toFixed(2)}" max="2.3" step="0.02"`,
      Math.log(width).toFixed(3), "slider", fixed(width, 3)],
    ["Point", `name="point" min="1" max="${points.length}" step="1"`, 1, "point", `1 of ${points.length}`],
    ["x", 'data-part="x" min="0" max="5" step="0.05"', x, "x", fixed(x, 2)],
    ["y", `data-part="y" min="${low}" max="${high}" step="0.05"`, y, "y", fixed(y, 2)],
  ].map(([label, attributes, value, name, text]) =>
    slider(label, `${attributes} value="${value}" aria-valuetext="${text}"`, `${name}-text`, text));
  return `<p>Drag a point or the query (the upright line). Click on an empty place to add a point.</p>
<input type="hidden" name="points" value="${written(points)}"><input type="hidden" name="width" value="${width}">
<div class="cu-live-ask">${select("Kernel", "kernel", Object.keys(KERNELS))}
${sliders[0]}
${sliders[1]}
<label>${input("checkbox", 'name="whole"')} whole curve</label></div>
${plotHTML(first, fit)}
<p aria-live="polite" data-part="said">${fit.said}</p>
<div class="cu-live-ask" role="group" aria-label="One point">${sliders[2]}
${sliders[3]}
${sliders[4]}
${button('data-part="add"', "Add at the query")}
${button('data-part="remove"', "Remove")}
${button('data-part="again"', "First points")}</div>
<details ${OURS}><summary>Learn the width: leave-one-out error and gradient descent</summary>
${errorsHTML(learning)}
<div class="cu-live-ask">${button('data-part="step"', "Step")}
${button('data-part="play"', "Play")}
${select("Rate", "rate", RATES, "0.05")}</div>
<p aria-live="polite" data-part="learned">${learning.learned}</p></details>
<p class="cu-live-note">Every number here is computed from the points that you see.</p>`;
}

// Points, query and answer above, the window and its weights below.
function plotHTML({ truth, ends }, fit) {
  const [[low, high], height] = [ends, heightIn(ends)];
  const curve = line(PLACES.map((x, i) => [across(x), height(truth[i])]));
  const below = range(6).map((tick) => textAt(across(tick), 364, "middle", tick));
  const beside = range(high - low + 1).map((i) => low + i)
    .filter((tick) => tick % (high - low < 16 ? 2 : 4) === 0)
    .map((tick) => textAt(28, pixel(height(tick) + 5), "end", fixed(tick, 0)));
  const label = "Points with the fitted curve and one query; below, the window and the weights";
  return plot(label, "440 388", `<path class="cu-live-axis" d="M34 10V250H430M34 345H430"></path>${below.join("")}${beside.join("")}
<text x="2" y="135">y</text>${textAt(430, 382, "end", "x")}
<text x="22" y="342" transform="rotate(-90 22 342)">weight</text>
<path class="cu-live-truth" d="${curve}"></path>
<path class="cu-live-window" data-part="window" d="${fit.window}"></path>
<path class="cu-live-bars" data-part="bars" d="${fit.bars}"></path>
<path class="cu-live-query" data-part="query" d="${fit.query}"></path>
<path class="cu-live-fit" data-part="fit" d="${fit.fit}"></path>
<g class="cu-live-points" data-part="points">${fit.points}</g>
<circle class="cu-live-answer" data-part="answer" cx="${fit.cx}" cy="${fit.cy}" r="6"></circle>
<g aria-hidden="true"><path class="cu-live-truth" d="M44 20H70"></path><text x="76" y="25">true curve</text>
<path class="cu-live-fit" d="M160 20H186"></path><circle class="cu-live-answer" cx="173" cy="20" r="6"></circle>
<text x="192" y="25">average</text></g>`, ` data-part="plot" data-low="${low}" data-high="${high}"`);
}

// The leave-one-out error over the widths, and where the width stands.
function errorsHTML({ errors, trail, cx, cy, top }) {
  const ticks = [0.02, 0.1, 0.4, 1, 4, 10].map((tick) => textAt(pixel(acrossWidths(tick)), 168, "middle", tick));
  return plot("Leave-one-out error over the width", "440 190", `<path class="cu-live-axis" d="M34 14V150H430"></path>${ticks.join("")}
${textAt(430, 186, "end", "width σ")}${textAt(28, 155, "end", 0)}
<text x="22" y="110" transform="rotate(-90 22 110)">error</text>
<text x="28" y="24" text-anchor="end" data-part="top">${top}</text>
<path class="cu-live-errors" data-part="errors" d="${errors}"></path>
<path class="cu-live-fit" data-part="trail" d="${trail}"></path>
<circle class="cu-live-answer" data-part="ball" cx="${cx}" cy="${cy}" r="6"></circle>`);
}

function mount(form) {
  const { field, part, show, write, put, say } = partsOf(form);
  const picture = part("plot");
  const [low, high] = [Number(picture.dataset.low), Number(picture.dataset.high)];
  const height = heightIn([low, high]);
  const first = { points: field.points.value, width: field.width.value };
  let [adam, trail, training, last] = [new Adam(), [], false, STEPS]; // last: step of a play
  let known = { key: "", curve: [] }; // leave-one-out errors of all widths, and of which points

  function view() {
    const points = parsed(field.points.value);
    const numbers = [...points.flat(), Number(field.width.value)]; // an address may hold anything
    const fits = points.length >= FEWEST && points.length <= MOST && points.every((pair) => pair.length === 2);
    if (!fits || !numbers.every(Number.isFinite) || numbers.at(-1) <= 0) throw new RangeError("no such points");
    return {
      points,
      kernel: field.kernel.value,
      width: Number(field.width.value),
      query: Number(field.query.value),
      chosen: within(1, Number(field.point.value), points.length) - 1,
    };
  }

  function drawFit(now) {
    const { query } = now;
    const [from, to] = field.whole.checked ? [0, 5] : [Math.min(query, MIDDLE), Math.max(query, MIDDLE)];
    const seen = PLACES.filter((x) => x >= from - 1e-6 && x <= to + 1e-6);
    const fit = fitted(now, seen, height);
    for (const name of ["fit", "window", "bars", "query"]) put(name, { d: fit[name] });
    put("answer", { cx: fit.cx, cy: fit.cy });
    show("points", fit.points);
    write("said", fit.said);
  }

  function errorsFor({ points, kernel }) {
    const key = field.points.value + kernel;
    if (key !== known.key) known = { key, curve: curveOf(points, kernel) };
    return known.curve;
  }

  function drawError(now) {
    const learning = judged(now, errorsFor(now), trail, adam.steps);
    for (const name of ["errors", "trail"]) put(name, { d: learning[name] });
    put("ball", { cx: learning.cx, cy: learning.cy });
    for (const name of ["top", "learned"]) write(name, learning[name]);
  }

  function drawControls({ points, width, query, chosen }) {
    const [x, y] = points[chosen];
    field.point.max = points.length;
    say(field.query, "query-text", fixed(query, 2));
    for (const [name, value, text] of [["slider", Math.log(width), fixed(width, 3)], ["x", x, fixed(x, 2)], ["y", y, fixed(y, 2)]]) {
      part(name).value = value;
      say(part(name), `${name}-text`, text);
    }
    write("point-text", `${chosen + 1} of ${points.length}`);
    part("remove").disabled = points.length <= FEWEST;
    part("add").disabled = points.length >= MOST;
  }

  function draw(changed) {
    const kept = ["query", "whole", "point", "rate"].includes(changed);
    if (!training && !kept) forget();
    drawFit(view());
    drawError(view());
    drawControls(view());
  }

  function step() {
    const { points, kernel, width } = view();
    const { slope } = leaveOneOut(points, kernel, width);
    const next = Math.exp(Math.log(width) + adam.step(slope, Number(field.rate.value)));
    trail = [...(trail.length ? trail : [width]), within(NARROW, next, WIDE)];
    field.width.value = trail.at(-1);
  }

  // Steps of its own reset nothing.
  function stepped(count = 1) {
    range(count).forEach(step);
    training = true;
    set("width", field.width.value);
    training = false;
  }
  const { go, stop, isOn } = player(part("play"), [part("said"), part("learned")], {
    step: () => stepped(),
    isLast: () => adam.steps + 1 >= last,
    end: () => stepped(STEPS),
  });

  function forget() {
    if (isOn()) stop();
    [adam, trail] = [new Adam(), []];
  }

  const set = follow(form, draw);
  globalThis.requestIdleCallback?.(() => errorsFor(view())); // the first key need not wait for it

  function move(index, x, y) {
    const { points } = view();
    points[index] = [within(0, x, 5), within(low, y, high)];
    set("points", written(points));
  }

  function add(x, y) {
    const { points } = view();
    if (points.length >= MOST) return;
    set("points", written([...points, [within(0, x, 5), within(low, y, high)]]));
    set("point", points.length + 1);
  }

  // Where a pointer is: in the picture, and in the data.
  const at = pointed(picture, 440);
  function placed(event) {
    const [left, down] = at(event);
    return { left, down, x: ((left - 34) * 5) / 396, y: low + ((250 - down) * (high - low)) / 240 };
  }

  // What is under a pointer: the number of a point, "query", or nothing.
  function under({ left, down }) {
    const { points, query } = view();
    const far = points.map(([x, y]) => Math.hypot(across(x) - left, height(y) - down));
    const nearest = far.indexOf(Math.min(...far));
    if (down < 260 && far[nearest] <= NEAR) return nearest;
    return down >= 260 || Math.abs(across(query) - left) < NEAR / 2 ? "query" : null;
  }

  function drag(event) {
    const { x, y } = placed(event);
    if (held === "query") set("query", within(0, round(x), 5));
    else if (held !== null) move(held, x, y);
  }

  let [held, pressed] = [null, false]; // what is dragged; whether the last press was on something
  drags(picture, {
    down(event) {
      held = under(placed(event));
      pressed = held !== null;
      if (held === "query") drag(event);
      else if (pressed) set("point", held + 1);
      return pressed;
    },
    move: drag,
    end: () => (held = null),
  });
  picture.addEventListener("click", (event) => {
    if (!pressed) add(placed(event).x, placed(event).y);
  });

  part("slider").addEventListener("input", ({ target }) => set("width", round(Math.exp(target.value))));
  for (const name of ["x", "y"]) {
    part(name).addEventListener("input", () => move(view().chosen, Number(part("x").value), Number(part("y").value)));
  }

  const does = {
    add() {
      const { points, kernel, width, query } = view();
      const answer = average(query, points, kernel, width);
      add(query, Number.isFinite(answer) ? answer : (low + high) / 2);
    },
    remove() {
      const { points, chosen } = view();
      set("points", written(points.filter((_, i) => i !== chosen)));
    },
    again() {
      set("points", first.points);
      set("width", first.width);
    },
    step() {
      if (isOn()) stop();
      stepped();
    },
    play() {
      if (isOn()) {
        stop();
        part("learned").textContent += " Paused.";
      } else {
        last = adam.steps + STEPS;
        go();
      }
    },
  };
  clicks(form, { part: (act) => does[act]() });
}
