// Kernel regression in a page: points to drag, a query with its window, and a width that is learned. All pictures have
// the axes that kernel_regression.py drew; the paths in them are written by both.
(globalThis.live_widgets ??= {}).kernel_regression = (() => {
  "use strict";
  const { range, fixed, follow } = globalThis.live_parts;
  const { weights, average, leaveOneOut, Adam } = globalThis.live_pooling;
  const MIDDLE = 2.4; // from here the curve is drawn, to where the query stands
  const PLACES = range(101).map((i) => i / 20);
  const [NARROW, WIDE] = [0.02, 10];
  const WIDTHS = range(61).map((i) => NARROW * (WIDE / NARROW) ** (i / 60));
  const [FEWEST, MOST] = [2, 60]; // points
  const STEPS = 200; // of one play
  const PAUSE = 40; // ms between two of them
  const NEAR = 14; // a finger hits a point that is not farther away, in units of the picture

  const within = (low, number, high) => Math.min(high, Math.max(low, number));
  const round = (number) => Number(number.toFixed(3));

  // Points as the form holds them: "0.5 1.25,0.75 -0.3".
  const parsed = (text) => text.split(",").map((pair) => pair.split(" ").map(Number));
  const written = (points) => points.map((pair) => pair.map(round).join(" ")).join(",");

  // Paths ---------------------------------------------------------------------------------------

  const across = (x) => 34 + (396 * x) / 5;
  const acrossWidths = (width) => 34 + (396 * Math.log(width / NARROW)) / Math.log(WIDE / NARROW);
  const pixel = (number) => number.toFixed(1);

  // A line through places (x, y); where y is not finite there is a gap.
  function line(places) {
    let pen = "M";
    return places.map(([x, y]) => {
      const reached = Number.isFinite(y) ? `${pen}${pixel(x)} ${pixel(y)}` : "";
      pen = reached ? "L" : "M";
      return reached;
    }).join("");
  }

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
    const shape = {
      gaussian: (u) => Math.exp((-u * u) / 2),
      boxcar: (u) => (u <= 1 ? 1 : 0),
      triangular: (u) => Math.max(0, 1 - u),
      epanechnikov: (u) => Math.max(0, 1 - u * u),
    }[kernel];
    const edge = PLACES.map((x) => [across(x), 345 - 75 * shape(Math.abs(x - query) / width)]);
    return `${line(edge)}L430.0 345L34.0 345Z`;
  }

  // The widget ----------------------------------------------------------------------------------

  return function kernelRegression(form) {
    const field = form.elements;
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    const plot = part("plot");
    const [low, high] = [Number(plot.dataset.low), Number(plot.dataset.high)];
    const height = (y) => 250 - (240 * (y - low)) / (high - low);
    const first = { points: field.points.value, width: field.width.value };
    let [adam, trail, timer, training] = [new Adam(), [], null, false];
    let [curve, curveOf] = [[], ""]; // leave-one-out errors of all widths, and of which points

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

    // What is seen ------------------------------------------------------------------------------

    function drawFit({ points, kernel, width, query, chosen }) {
      const shares = weights(query, points.map(([x]) => x), kernel, width);
      const answer = average(query, points, kernel, width);
      const [from, to] = field.whole.checked ? [0, 5] : [Math.min(query, MIDDLE), Math.max(query, MIDDLE)];
      const seen = PLACES.filter((x) => x >= from - 1e-6 && x <= to + 1e-6);
      const fit = seen.map((x) => [across(x), height(average(x, points, kernel, width))]);
      const reached = Number.isFinite(answer);
      part("fit").setAttribute("d", line(fit));
      part("points").innerHTML = circles(points, shares, chosen, height);
      part("window").setAttribute("d", windowOver(query, kernel, width));
      part("bars").setAttribute("d", reached ? bars(points, shares) : "");
      part("query").setAttribute("d", `M${pixel(across(query))} 30V345`);
      part("answer").setAttribute("cx", pixel(across(query)));
      part("answer").setAttribute("cy", pixel(reached ? height(answer) : -50));
      const used = 1 / shares.reduce((sum, share) => sum + share * share, 0);
      part("said").textContent = `Query ${fixed(query, 2)}, width ${width.toFixed(3)}: ` + (reached
        ? `the average is ${fixed(answer, 2)}, as if ${used.toFixed(1)} points shared the weight equally. ` +
          `The longest bar is a weight of ${Math.max(...shares).toFixed(2)}.`
        : "no point is in reach, so there is no average.");
    }

    function curveFor({ points, kernel }) {
      if (curveOf === field.points.value + kernel) return;
      curveOf = field.points.value + kernel;
      curve = WIDTHS.map((each) => leaveOneOut(points, kernel, each).error);
    }

    function drawError({ points, kernel, width }) {
      curveFor({ points, kernel });
      const { error, slope } = leaveOneOut(points, kernel, width);
      const top = Math.max(...curve.filter(Number.isFinite), 1e-9);
      const heightOf = (e) => 150 - (130 * e) / top;
      const atOf = (each) => [acrossWidths(each), heightOf(leaveOneOut(points, kernel, each).error)];
      part("errors").setAttribute("d", line(WIDTHS.map((each, i) => [acrossWidths(each), heightOf(curve[i])])));
      part("trail").setAttribute("d", line(trail.map(atOf)));
      part("ball").setAttribute("cx", pixel(acrossWidths(width)));
      part("ball").setAttribute("cy", pixel(Number.isFinite(error) ? heightOf(error) : -50));
      part("top").textContent = top.toFixed(1);
      part("learned").textContent = `Step ${adam.steps}: width ${width.toFixed(3)}, ` + (Number.isFinite(error)
        ? `leave-one-out error ${error.toFixed(3)}, its slope in log σ ${fixed(slope, 4)}.`
        : "no leave-one-out error: a point has no other in reach.");
    }

    function drawControls({ points, width, query, chosen }) {
      const [x, y] = points[chosen];
      field.point.max = points.length;
      part("slider").value = Math.log(width);
      part("x").value = x;
      part("y").value = y;
      const texts = { slider: fixed(width, 3), query: fixed(query, 2), x: fixed(x, 2), y: fixed(y, 2) };
      for (const [name, text] of Object.entries(texts)) {
        const control = name === "query" ? field.query : part(name);
        control.setAttribute("aria-valuetext", text);
        part(`${name}-text`).textContent = text;
      }
      part("point-text").textContent = `${chosen + 1} of ${points.length}`;
      part("remove").disabled = points.length <= FEWEST;
      part("add").disabled = points.length >= MOST;
    }

    function draw(changed) {
      if (changed === "") return; // a slider without a name sets a named control
      const kept = ["query", "whole", "point", "rate"].includes(changed);
      if (!training && !kept) forget();
      drawFit(view());
      drawError(view());
      drawControls(view());
    }

    // What is changed ---------------------------------------------------------------------------

    const set = follow(form, draw, { written: true });
    globalThis.requestIdleCallback?.(() => curveFor(view())); // the first key need not wait for it

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
    function placed({ clientX, clientY }) {
      const box = plot.getBoundingClientRect();
      const [across_, down] = [clientX - box.left, clientY - box.top].map((part_) => (440 * part_) / box.width);
      return {
        across: across_,
        down,
        x: ((across_ - 34) * 5) / 396,
        y: low + ((250 - down) * (high - low)) / 240,
      };
    }

    // What is under a pointer: the number of a point, "query", or nothing.
    function under({ across: left, down }) {
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
    plot.addEventListener("pointerdown", (event) => {
      held = under(placed(event));
      pressed = held !== null;
      if (!pressed) return;
      plot.setPointerCapture(event.pointerId);
      if (held === "query") drag(event);
      else set("point", held + 1);
    });
    plot.addEventListener("pointermove", drag);
    for (const end of ["pointerup", "pointercancel"]) plot.addEventListener(end, () => (held = null));
    plot.addEventListener("click", (event) => {
      if (!pressed) add(placed(event).x, placed(event).y);
    });

    part("slider").addEventListener("input", ({ target }) => set("width", round(Math.exp(target.value))));
    for (const name of ["x", "y"]) {
      part(name).addEventListener("input", () => move(view().chosen, Number(part("x").value), Number(part("y").value)));
    }
    part("add").addEventListener("click", () => {
      const { points, kernel, width, query } = view();
      const answer = average(query, points, kernel, width);
      add(query, Number.isFinite(answer) ? answer : (low + high) / 2);
    });
    part("remove").addEventListener("click", () => {
      const { points, chosen } = view();
      set("points", written(points.filter((_, i) => i !== chosen)));
    });
    part("again").addEventListener("click", () => {
      set("points", first.points);
      set("width", first.width);
    });

    // Learning ----------------------------------------------------------------------------------

    function step() {
      const { points, kernel, width } = view();
      const { slope } = leaveOneOut(points, kernel, width);
      const next = Math.exp(Math.log(width) + adam.step(slope, Number(field.rate.value)));
      trail = [...(trail.length ? trail : [width]), within(NARROW, next, WIDE)];
      field.width.value = trail.at(-1);
    }

    // A step of one's own resets nothing.
    function shown() {
      training = true;
      set("width", field.width.value);
      training = false;
    }

    function speak(how) {
      for (const name of ["said", "learned"]) part(name).setAttribute("aria-live", how);
    }

    function pause() {
      clearInterval(timer);
      timer = null;
      part("play").textContent = "Play";
      speak("polite");
    }

    function forget() {
      if (timer) pause();
      [adam, trail] = [new Adam(), []];
    }

    function play() {
      if (matchMedia("(prefers-reduced-motion: reduce)").matches) {
        range(STEPS).forEach(step); // no animation: only its end is shown
        shown();
        return;
      }
      const last = adam.steps + STEPS;
      part("play").textContent = "Pause";
      speak("off"); // or each step would be read aloud
      timer = setInterval(() => {
        step();
        if (adam.steps >= last) pause();
        shown();
      }, PAUSE);
    }

    part("step").addEventListener("click", () => {
      if (timer) pause();
      step();
      shown();
    });
    part("play").addEventListener("click", () => {
      if (!timer) {
        play();
        return;
      }
      pause();
      part("learned").textContent += " Paused.";
    });
  };
})();
