// In which layer does a language model look up a country? Its last word may not look at the country in one layer, or from
// one layer on. All answers were recorded beforehand, by the model of chapter 18.

const LAYERS = 30; // layers; −1 stands for none
const PLACES = [-1, ...range(LAYERS)];
const PAUSE = 260; // milliseconds between two layers
const NEAR = 6; // so far may a slider jump, and the reader has been at the layers between
const SHOWN = ["Japan", "France", "Germany", "Norway"]; // as buttons
const MODES = ["alone", "from"];

// What was recorded: [probability of the capital, [[token, probability] × 5]] -------------------

const rowAt = (country, mode, layer) => (layer < 0 ? country.whole : country[mode][layer]);
const likeliest = ([, [[token]]]) => token.trim() || "␣";
const isRight = ({ piece }, row) => likeliest(row) === piece;
const says = (country, row) => (isRight(country, row) ? country.capital : likeliest(row));
const lowest = ({ alone }) => alone.reduce((best, [p], layer) => (p < alone[best][0] ? layer : best), 0);

// Where a walk stops: the answer is lost in this layer, or it is there again from this layer on.
function isCliff(country, mode, layer) {
  if (layer < 1) return false;
  const [before, now] = [layer - 1, layer].map((each) => isRight(country, rowAt(country, mode, each)));
  return mode === "alone" ? before && !now : now && !before;
}

// Where a reader has been: "Japan.alone.7f", a bit for each place -------------------------------

function visitsIn(text, countries) {
  const visits = new Map();
  for (const [name, mode, bits] of text.split(" ").map((each) => each.split("."))) {
    const number = Number.parseInt(bits, 16);
    if (number >= 0 && MODES.includes(mode) && countries.some((each) => each.country === name) && number < 2 ** PLACES.length) {
      visits.set(`${name}.${mode}`, new Set(PLACES.filter((_, i) => Math.floor(number / 2 ** i) % 2)));
    }
  }
  return visits;
}

const visitsText = (visits) => [...visits].filter(([, been]) => been.size > 1).map(([name, been]) =>
  `${name}.${[...been].reduce((sum, layer) => sum + 2 ** (layer + 1), 0).toString(16)}`).join(" ");

// In words --------------------------------------------------------------------------------------

const whereText = (mode, layer) => (mode === "alone" ? `in layer ${layer}` : `from layer ${layer} on`);

// The layer that a reader has found, and for how many countries it is the same.
function foundText(country, found) {
  const same = found.filter((each) => lowest(each) === lowest(country)).length;
  if (found.length < 2) return "Is it the same layer for another country?";
  return same === found.length ? `It is the same layer for ${found.length === 2 ? "both" : `all ${numberWord(found.length)}`} countries that you have tried.`
    : "It is not the same layer for each country that you have tried.";
}

function storyHTML(country, mode, layer, found) {
  const [row, name, capital] = [rowAt(country, mode, layer), `<em translate="no">${country.country}</em>`, `<em translate="no">${country.capital}</em>`];
  const [before, p] = [country.whole, row].map(([each]) => each.toFixed(2));
  const word = `<em translate="no">${safe(says(country, row))}</em>`;
  if (layer < 0) {
    return isRight(country, row)
      ? `The word <em translate="no">is</em> may look everywhere, and the likeliest next word is ${word}. In which layer must it look at ${name}? Make a guess before you move.`
      : `The word <em translate="no">is</em> may look everywhere, and still the likeliest next word is ${word}, and not ${capital}, which has ${p}.`;
  }
  const without = `Without a look at ${name} ${whereText(mode, layer)},`;
  if (mode === "alone" && layer === lowest(country) && !isRight(country, row)) {
    return `<strong>There.</strong> One look in one layer is missing, ${capital} falls from ${before} to ${p}, and the likeliest word is \
${word}. ${foundText(country, found)}`;
  }
  if (!isRight(country, row)) return `${without} the likeliest word is ${word}, and ${capital} has ${p}.`;
  const isLess = country.whole[0] - row[0] > 0.1;
  return `${without} it still says ${word}, with ${p}${isLess ? `. It was surer before, with ${before}, but it can do without this look.`
    : mode === "alone" ? ". It can do without this look." : ". By then it no longer has to look."}`;
}

const valueText = (country, mode, layer) => {
  const row = rowAt(country, mode, layer);
  const where = layer < 0 ? "allowed in every layer" : `not ${whereText(mode, layer)}`;
  return `${where}: ${says(country, row)}, ${country.capital} ${row[0].toFixed(2)}`;
};

// What is shown ---------------------------------------------------------------------------------

const shownFirst = (countries) => SHOWN.flatMap((name) => countries.filter((each) => each.country === name));
const others = (countries) => countries.filter((each) => !SHOWN.includes(each.country)).map((each) => each.country).sort();

function countriesHTML(countries, chosen) {
  const buttons = shownFirst(countries).map(({ country }) =>
    button(`${DATA} data-country="${country}" aria-pressed="${country === chosen}"`, country));
  const options = others(countries).map((name) => `<option${name === chosen ? " selected" : ""}>${name}</option>`);
  return `<span>Country</span> ${buttons.join(" ")} <select ${OURS} ${DATA} aria-label="Another country" data-part="other">\
<option value="">another …</option>${options.join("")}</select>`;
}

function sentenceHTML(country, mode, layer) {
  const row = rowAt(country, mode, layer);
  const told = layer < 0 ? "" : `not ${whereText(mode, layer)}`;
  return `<span ${DATA}>The capital of <span class="look${told && " no"}">${country.country} <span class="asks">is</span> \
<span class="arc" aria-hidden="true"><svg aria-hidden="true" viewBox="0 0 100 100" preserveAspectRatio="none"><path d="M0 100C0 -33 100 -33 100 100"></path></svg>\
<small translate="yes">${told}</small></span></span> <strong class="${isRight(country, row) ? "" : "wrong"}">${safe(says(country, row))}</strong></span>`;
}

function oddsHTML({ piece }, [, top]) {
  const rows = top.map(([token, p]) => `<li${token.trim() === piece ? ' aria-current="true"' : ""}>${asIs(token.trim() || "␣")} \
<i style="--w: ${p.toFixed(3)}"></i> <span>${p.toFixed(2)}</span></li>`);
  const rest = 1 - total(top.map(([, p]) => Number(p.toFixed(2)))); // as they are written, all add up
  const others = rest < 0.005 ? "" : `<li class="others"><span>others</span> <i style="--w: ${rest.toFixed(3)}"></i> <span>${rest.toFixed(2)}</span></li>`;
  return `<ol class="cu-odds">${rows.join("")}${others}</ol>`;
}

// Thirty columns, and one before them with nothing forbidden; they appear where a reader has been.
function stripHTML(country, mode, here, been) {
  const columns = PLACES.map((layer) => {
    const row = rowAt(country, mode, layer);
    const sort = [been.has(layer) ? (isRight(country, row) ? "" : "wrong") : "unseen", layer === here ? "here" : ""];
    return `<div class="${sort.filter(Boolean).join(" ")}"><i style="--p: ${been.has(layer) ? row[0].toFixed(3) : 0}"></i></div>`;
  });
  const [p] = country.whole;
  return `${columns.join("")}<p style="--p: ${p.toFixed(3)}"><span>${asIs(country.capital, "bdi")}, nothing forbidden: ${p.toFixed(2)}</span></p>`;
}

// The number of the layer where the slider is, and every fifth one that is not close to it.
const ticksHTML = (here) => PLACES.map((layer) => {
  const isShown = layer === here || (Math.abs(layer - here) > 1 && layer % 5 === 0) || layer < 0;
  return `<span${layer === here ? ' class="here"' : ""}>${isShown ? (layer < 0 ? "–" : layer) : ""}</span>`;
}).join("");

// The widget ------------------------------------------------------------------------------------

function state(_, { country, countries }) {
  return { countries, country: countries.find((each) => each.country === country) };
}

function html({ countries, country }) {
  const [mode, layer] = ["alone", -1];
  const modes = [["alone", "in this layer alone"], ["from", "from this layer on"]];
  return `<div class="cu-layers" data-part="data" data-countries=${inAttribute(countries)}><input type="hidden" name="country" value="${country.country}">\
<p class="cu-live-tries" data-part="countries">${countriesHTML(countries, country.country)}</p>
<p class="sentence" data-part="sentence">${sentenceHTML(country, mode, layer)}</p>
<div class="two"><div data-part="odds">${oddsHTML(country, country.whole)}</div>
<div><div class="strip" aria-hidden="true" data-part="strip">${stripHTML(country, mode, layer, new Set([layer]))}</div>
<div class="ticks" aria-hidden="true" data-part="ticks">${ticksHTML(layer)}</div>
${input("range", `name="layer" min="-1" max="${LAYERS - 1}" step="1" value="-1" aria-label="Layer in which it may not look at the country" \
aria-valuetext="${safe(valueText(country, mode, layer))}"`)}</div></div><input type="hidden" name="seen" value="">
<div class="controls">${button('data-part="walk"', "Walk through the layers")} <fieldset><legend class="cu-heard">It may not look</legend>${radios("mode", modes, mode)}</fieldset></div>
<p class="story" aria-live="polite" data-part="story">${storyHTML(country, mode, layer, [])}</p></div>
<p class="cu-live-note">Only the last word, <em translate="no">is</em>, may not look at the country, and in all nine heads of a layer. The numbers are \
probabilities, and a capital of several tokens is counted by its first one. We recorded all answers beforehand.</p>`;
}

function mount(form) {
  const { field, part, show } = partsOf(form);
  const countries = JSON.parse(part("data").dataset.countries);
  let visits = new Map();
  let isMoving = false; // whether a walk moves the slider

  const chosen = () => countries.find((each) => each.country === field.country.value);
  const layerNow = () => Number(field.layer.value);
  const been = () => {
    const name = `${field.country.value}.${field.mode.value}`;
    if (!visits.has(name)) visits.set(name, new Set());
    return visits.get(name).add(-1);
  };

  let last = -1;
  // The layers between, when the slider has gone a little further than to the next one.
  function visit(layer) {
    const between = Math.abs(layer - last) < NEAR ? PLACES.filter((each) => (each - last) * (each - layer) < 0) : [];
    for (const each of [...between, layer]) been().add(each);
    last = layer;
  }

  // changed: the control that a reader moved; without one an address has filled them.
  function draw(changed) {
    const country = chosen();
    if (!country) throw new RangeError("no such country"); // an address may hold anything
    if (!isMoving) stop();
    if (changed === "country") field.layer.value = -1;
    if (changed !== "layer") last = layerNow();
    if (!changed) visits = visitsIn(field.seen.value, countries);
    visit(layerNow());
    field.seen.value = visitsText(visits);
    const [mode, layer] = [field.mode.value, layerNow()];
    const found = countries.filter((each) => visits.get(`${each.country}.alone`)?.has(lowest(each)));
    become(part("countries"), countriesHTML(countries, country.country));
    part("other").value = SHOWN.includes(country.country) ? "" : country.country;
    become(part("sentence"), sentenceHTML(country, mode, layer));
    become(part("odds"), oddsHTML(country, rowAt(country, mode, layer)));
    become(part("strip"), stripHTML(country, mode, layer, been()));
    show("ticks", ticksHTML(layer));
    field.layer.setAttribute("aria-valuetext", valueText(country, mode, layer));
    const story = storyHTML(country, mode, layer, found);
    if (part("story").innerHTML !== story) show("story", story); // what is the same is not read aloud again
  }

  const to = (layer) => {
    isMoving = true;
    set("layer", within(-1, layer, LAYERS - 1));
    isMoving = false;
  };
  const isLast = () => layerNow() + 1 >= LAYERS - 1 || isCliff(chosen(), field.mode.value, layerNow() + 1);
  const { go, stop, isOn } = player(part("walk"), [part("story")], {
    step: () => to(layerNow() + 1),
    isLast,
    end: () => {
      while (!isLast()) to(layerNow() + 1);
      to(layerNow() + 1);
    },
  }, PAUSE, ["Walk through the layers", "Stop"]);
  const set = follow(form, draw);
  clicks(form, {
    country: (name) => set("country", name),
    part(name) {
      if (name !== "walk") return;
      if (isOn()) return stop();
      if (layerNow() === LAYERS - 1) to(-1);
      go();
    },
  });
  part("countries").addEventListener("change", ({ target }) => { if (target.value) set("country", target.value); });

  const strip = part("strip");
  let isHeld = false;
  const follows = ({ clientX }) => {
    const { left, width } = strip.getBoundingClientRect();
    const layer = within(-1, Math.floor((PLACES.length * (clientX - left)) / width) - 1, LAYERS - 1);
    if (layer !== layerNow()) set("layer", layer);
  };
  drags(strip, {
    down: (event) => { isHeld = true; follows(event); },
    move: (event) => { if (isHeld) follows(event); },
    end: () => { isHeld = false; },
  });
}
