// Patches: those of a garment are forbidden, until the stored vision transformer takes it for another one.

const [SIDE, PATCH] = [28, 7]; // pixels
const PAUSE = 350; // ms between two patches that the page forbids
const KINDS = ["a T-shirt", "trousers", "a pullover", "a dress", "a coat", "a sandal", "a shirt", "a sneaker", "a bag", "an ankle boot"];
const bare = (kind) => KINDS[kind].replace(/^an? /, "");
const isMany = (kind) => KINDS[kind] === bare(kind); // trousers
const nameHTML = (kind) => asIs(bare(kind)); // of a class
const withArticle = (kind, name = bare(kind)) => KINDS[kind].replace(bare(kind), "") + asIs(name);

// The model ------------------------------------------------------------------------------------

const patchOf = (pixel) => Math.floor(pixel / SIDE / PATCH) * ROW + Math.floor((pixel % SIDE) / PATCH);

// The logits when no token may look at some patches; or when these are painted black.
function logitsWithout(model, pixels, gone, isBlack) {
  const seen = pixels.map((value, i) => (isBlack && gone.includes(patchOf(i)) ? 0 : value) / 127.5 - 1);
  model.forbidden = isBlack ? [] : [{ place: /attention$/, keys: gone.map((patch) => patch + 1) }]; // key 0: class token
  return Array.from(model.logits([inRows(seen, SIDE)]));
}

const highest = (numbers) => numbers.indexOf(Math.max(...numbers));

// What there is to see: the garment, the patches that are forbidden, and what the model says with and without them.
function seenWith(model, garments, { garment: name, gone, black, guess }) {
  const garment = garments.find((each) => each.name === name);
  if (!garment) throw new RangeError("no such garment"); // an address may hold anything
  const pixels = pixelsOf(garment.picture);
  const before = logitsWithout(model, pixels, [], false);
  const logits = logitsWithout(model, pixels, gone, black);
  const guessed = garments.some((each) => each.name === guess) ? guess : "";
  return { garment: { ...garment, kind: highest(before) }, gone, black, guess: guessed, before, logits, says: highest(logits) };
}

// What is told ---------------------------------------------------------------------------------

const questionHTML = ({ garment }) => `How many patches of ${isMany(garment.kind) ? "" : "a "}${asIs(garment.name)} must you forbid before ` +
  `${isMany(garment.kind) ? "they are" : "it is"} ${withArticle(garment.target)}?`;
const saysHTML = ({ garment, says }) => `The model says <strong${says === garment.kind ? "" : ' class="other"'} ${DATA}>${bare(says)}</strong>`;

function barsHTML({ garment, logits, says }) {
  const rows = softmax(logits).map((p, kind) => {
    const sort = kind === garment.kind ? "own" : kind === says ? "other" : "";
    return `<li class="${sort}"${kind === says ? ' aria-current="true"' : ""} style="--w: ${p.toFixed(3)}">` +
      `${nameHTML(kind)} <span>${percent(p)} %</span></li>`;
  });
  return `<ol>${rows.join("")}</ol>`;
}

const pipsHTML = ({ garment, gone, says }) => range(COUNT).map((i) =>
  `<i${i < gone.length ? ` class="${says === garment.kind ? "own" : "other"}"` : ""}></i>`).join("");

function guessHTML(garments, guess) {
  const names = garments.map(({ name }) => button(`data-guess="${name}" aria-pressed="${guess === name}"`, `the ${asIs(name)}`));
  return `<span>Before you press: for which of the three is one forbidden patch enough?</span> ${names.join(" ")}`;
}

// The lead of the garment's own score over the highest of the others.
const lead = (logits, kind) => logits[kind] - Math.max(...logits.filter((_, other) => other !== kind));

function toldHTML({ garment, gone, black, guess, before, logits, says }, garments) {
  const { name } = garment;
  if (!gone.length) {
    return guess ? `You guess the ${asIs(guess)}. Now forbid patches, and find out.` : guessHTML(garments, guess);
  }
  if (gone.length === COUNT && !black) {
    return `All 16 patches are forbidden. The model sees nothing at all, and then it says ${asIs(bare(says), "strong")}, whatever the picture is.`;
  }
  const count = `<strong>${gone.length}</strong> of 16 patches ${gone.length === 1 ? "is" : "are"} ${black ? "painted black" : "forbidden"}, and`;
  if (says === garment.kind) {
    const next = highest(logits.map((logit, kind) => (kind === says ? -Infinity : logit)));
    return `${count} it still says ${nameHTML(says)}. Its score leads that of the next class, ${nameHTML(next)}, by ` +
      `${lead(logits, says).toFixed(1)}. With all patches the lead was ${lead(before, says).toFixed(1)}.`;
  }
  const become = `${count} the ${asIs(name)} ${isMany(garment.kind) ? "have" : "has"} become ${withArticle(says)}.`;
  if (black) return become;
  if (says !== garment.target) return `${become} But can you make it ${withArticle(garment.target)}?`;
  if (gone.length > garment.fewest) return `${become} Can you do it with fewer?`;
  const guessed = garment.fewest === 1 && guess ? ` You guessed the ${asIs(guess)}${guess === garment.name ? ", and you were right" : ""}.` : "";
  return `${become} Fewer are not enough.${guessed}`;
}

// What is told when the page has forbidden the fewest.
function foundHTML({ garment }) {
  const { fewest, ways, choices } = garment;
  if (fewest === 1) return `<strong>One patch</strong> is enough, the left half of the collar. No other single patch is.`;
  const warning = isMany(garment.kind) ? ` But remember what the model says when it sees nothing: ${asIs("trousers", "em")}. They may last so long ` +
    `partly because ${asIs("trousers")} are its answer of last resort.` : "";
  return `<strong>${fewest} patches</strong> are enough, and fewer are not. Of all ${choices.toLocaleString("en")} ways to forbid ` +
    `${fewest}, only ${ways} do it.${warning}`;
}

function pythonText({ gone, garment, says, black }) {
  const answer = (kind) => `vit(${garment.name}).argmax()  # ${kind}, ${bare(kind)}`;
  if (!gone.length || black) return answer(garment.kind);
  const keys = [...gone].sort((a, b) => a - b).map((patch) => patch + 1);
  return `with cu.intervene(vit) as acts:\n    acts.forbid(keys=[${keys.join(", ")}])  # key 0 is the class token\n    ${answer(says)}`;
}

// What is shown --------------------------------------------------------------------------------

function boardHTML({ garment, gone, black }) {
  const label = "The 16 patches: arrow keys move, space forbids a patch or allows it again";
  const away = black ? ", painted black" : ", forbidden";
  const squares = range(COUNT).map((patch) =>
    [`data-patch="${patch}" aria-pressed="${gone.includes(patch)}"`, gone.includes(patch) ? away : ""]);
  return gridHTML(label, garment.picture, squares, black ? "taken black" : "taken");
}

function garmentsHTML(garments, chosen) {
  const choices = garments.map(({ name, picture }) =>
    `<label>${input("radio", `name="garment" value="${name}"${name === chosen ? " checked" : ""}`)} ` +
    `<i style="background-image: url(${picture})"></i> ${asIs(name)}</label>`);
  return `<fieldset class="garments"><legend>Garment</legend> ${choices.join(" ")}</fieldset>`;
}

function buttonsHTML({ gone }) {
  const off = gone.length ? "" : ' disabled=""';
  return `${button('data-find=""', "Find the fewest")} ${button(`data-back=""${off}`, "Allow the last again")} ${button(`data-all=""${off}`, "Allow all again")}`;
}

function state([bundle], { garment, garments }) {
  const view = { garment, gone: [], black: false, guess: "" };
  return { garments, seen: seenWith(new ViT(bundle), garments, view) };
}

function html({ garments, seen }) {
  return `<p class="cu-patches-question" data-part="question">${questionHTML(seen)}</p>
<input type="hidden" name="gone" value=""><input type="hidden" name="guess" value="">
<div class="cu-patches" data-part="patches" data-garments="${safe(JSON.stringify(garments))}">${garmentsHTML(garments, seen.garment.name)}
<div class="board" data-part="board">${boardHTML(seen)}</div>
<div class="answers"><p class="says" aria-live="polite" data-part="says">${saysHTML(seen)}</p>
<div data-part="bars">${barsHTML(seen)}</div>
<div class="pips" aria-hidden="true" data-part="pips">${pipsHTML(seen)}</div>
<p class="news" aria-live="polite" data-part="news">${toldHTML(seen, garments)}</p>
<p class="buttons" data-part="buttons">${buttonsHTML(seen)}</p></div></div>
<p><label>${input("checkbox", 'name="black"')} Paint them black instead, and compare</label></p>
<details><summary>The same in Python</summary><pre ${OURS} ${DATA} tabindex="0" data-part="python">${pythonText(seen)}</pre></details>
<p class="cu-live-note">A forbidden patch isn't painted. Its score becomes −∞ before the softmax, so it has the weight 0 in \
every head of both layers, and the other patches share what it had.</p>`;
}

function mount(form, [bundle]) {
  const model = new ViT(bundle);
  const { field, part, show, write } = partsOf(form);
  const garments = JSON.parse(part("patches").dataset.garments);
  let [timer, note] = [0, ""]; // what the page does or tells by itself

  const gone = () => [...new Set(field.gone.value.split(".").filter(Boolean).map(Number))]
    .filter((patch) => Number.isInteger(patch) && patch >= 0 && patch < COUNT);
  const take = (patches) => set("gone", patches.join("."));

  function draw(changed) {
    if (changed === "garment") field.gone.value = "";
    if (changed !== "gone") stop();
    const view = { garment: field.garment.value, gone: gone(), black: field.black.checked, guess: field.guess.value };
    const seen = seenWith(model, garments, view);
    show("question", questionHTML(seen));
    become(part("board"), boardHTML(seen));
    become(part("bars"), barsHTML(seen));
    become(part("buttons"), buttonsHTML(seen));
    show("pips", pipsHTML(seen));
    for (const [name, text] of [["says", saysHTML(seen)], ["news", note || toldHTML(seen, garments)]]) {
      if (part(name).innerHTML !== text) show(name, text); // what is the same is not read aloud again
    }
    write("python", pythonText(seen));
    return seen;
  }

  function stop() {
    clearTimeout(timer);
    note = "";
  }

  function back() {
    stop();
    take(gone().slice(0, -1));
  }

  // Forbids the fewest, which are known beforehand: one after the other before the reader's eyes, or at once.
  function find() {
    stop();
    field.black.checked = false;
    const { fewest, patches } = garments.find(({ name }) => name === field.garment.value);
    const next = (count) => {
      if (count === fewest) note = foundHTML(seenWith(model, garments, { garment: field.garment.value, gone: [], black: false }));
      take(patches.slice(0, count));
      if (count < fewest) timer = setTimeout(next, PAUSE, count + 1);
    };
    next(isCalm() ? fewest : 1);
  }

  const set = follow(form, draw);
  clicks(form, {
    patch: (value) => {
      stop();
      const patch = Number(value);
      take(gone().includes(patch) ? gone().filter((other) => other !== patch) : [...gone(), patch]);
    },
    guess: (name) => set("guess", name),
    find,
    back,
    all: () => { stop(); take([]); },
  });
  walk(part("board"), back);
}
