// Two garments that appear for a caption of two words. Each pixel has the color of the word it attends to most, and a word can
// be forbidden from a step on. All runs were drawn beforehand, by the network of chapter 17.

const [ROWS, COLUMNS] = [7, 14]; // of a map of weights
const FIRST = 2; // the frame that is shown first
const PAUSE = 280; // milliseconds between two frames
const SHADES = 20; // of a word's color
const HALVES = ["left", "right"];

// A sheet has a frame of each step a column. Its first row is the run with both words; then come, for each word, the
// runs that forbid it from each of `starts` on. `gone`: { word, from }, or null.
const rowOf = ({ starts }, gone) => (gone ? 1 + gone.word * starts.length + starts.indexOf(gone.from) : 0);

const last = ({ frames }) => frames - 1;

function sheetStyle(data, frame, gone) {
  const row = gone && frame >= gone.from ? rowOf(data, gone) : 0;
  const rows = 2 * data.starts.length; // after the first
  return `background-position: ${((100 * frame) / last(data)).toFixed(3)}% ${((100 * row) / rows).toFixed(3)}%`;
}

// The weight of the left word at each place of the map; a word that is forbidden has none.
function weightsOf({ frames, captions }, at, frame, gone) {
  if (gone && frame >= gone.from) return Array(ROWS * COLUMNS).fill(gone.word === 0 ? 0 : 1);
  const map = captions[at].maps[Math.min(frame, frames - 2)];
  return range(ROWS * COLUMNS).map((i) => (map.charCodeAt(i) - 35) / 90);
}

// A layer of color: for each word and each shade one path of squares.
function colorsSVG(weights) {
  const shades = [{}, {}];
  weights.forEach((weight, i) => {
    const shade = Math.round(SHADES * Math.min(1, Math.abs(2 * weight - 1) * 1.25));
    const paths = shades[weight > 0.5 ? 0 : 1];
    paths[shade] = `${paths[shade] ?? ""}M${i % COLUMNS} ${Math.floor(i / COLUMNS)}h1v1h-1z`;
  });
  const paths = shades.flatMap((each, word) => Object.entries(each).filter(([shade]) => shade > 0).map(([shade, d]) =>
    `<path class="cu-live-${HALVES[word]}" fill-opacity="${shade / SHADES}" d="${d}"></path>`));
  return `<svg aria-hidden="true" viewBox="0 0 ${COLUMNS} ${ROWS}" preserveAspectRatio="none">${paths.join("")}</svg>`;
}

function pairHTML(data, at, frame, gone, colored) {
  const colors = colored ? colorsSVG(weightsOf(data, at, frame, gone)) : "";
  return `<div class="cu-live-sheet"${colored ? ' data-colored=""' : ""} style="${sheetStyle(data, frame, gone)}"></div>${colors}`;
}

// In words --------------------------------------------------------------------------------------

const article = (word) => (word === "trousers" ? "" : /^[aeiou]/i.test(word) ? "an " : "a ") + asIs(word);
const quoted = (word) => `“${asIs(word)}”`;
const stepText = ({ steps }, frame) => `step ${steps[frame]} of ${steps[0]}`;

function asked(data, at, frame) {
  const weights = weightsOf(data, at, frame, null);
  const left = weights.filter((_, i) => i % COLUMNS < COLUMNS / 2);
  return percent(left.filter((weight) => weight > 0.5).length / left.length);
}

function saidHTML(data, at, frame, gone) {
  const { words, named, changes } = data.captions[at];
  if (!gone) {
    if (frame < last(data)) return `On the left half, ${asked(data, at, frame)} % of the pixels attend mostly to ${quoted(words[0])}.`;
    const wrong = [0, 1].filter((word) => named[word] !== words[word]);
    const judged = wrong.map((word) => ` The classifier takes the ${HALVES[word]} half for ${article(named[word])}.`).join("");
    return `Finished.${judged} Now go back some steps, and forbid a word.`;
  }
  const [word, other] = [words[gone.word], words[1 - gone.word]];
  const end = changes[gone.word][data.starts.indexOf(gone.from)];
  const when = `Without ${quoted(word)} ${gone.from ? `from step ${data.steps[gone.from]} on` : "from the start"}`;
  const half = `the ${HALVES[gone.word]} half`;
  if (end === named[gone.word]) return `${when}, ${half} still ends as ${article(end)}. It was decided already.`;
  if (end === other) return `${when}, ${half} can attend only to ${quoted(other)}, and it becomes ${article(other)} as well.`;
  return `${when}, ${half} can attend only to ${quoted(other)}, and our classifier calls the result ${article(end)}.`;
}

const captionWordHTML = ({ steps, captions }, at, word, gone) => {
  const off = gone?.word === word;
  const when = off ? (gone.from ? `forbidden from step ${steps[gone.from]} on` : "forbidden from the start") : "press to forbid it";
  return `${asIs(captions[at].words[word])} <small>${when}</small>`;
};

const endLabel = (data, at, gone) =>
  `Without ${quoted(data.captions[at].words[gone.word])} ${gone.from ? `from step ${data.steps[gone.from]} on` : "from the start"}`;

function endHTML(data, at, gone) {
  if (!gone) return "";
  return `<p>${endLabel(data, at, gone)}</p><div class="cu-live-pair" role="img" aria-label="The end with the word forbidden">\
${pairHTML(data, at, last(data), gone, false)}</div>`;
}

// The widget ------------------------------------------------------------------------------------

const sheetOf = ({ captions }, at) => `--sheet: url(data:image/png;base64,${captions[at].sheet})`;

function state([data], { caption }) {
  return { data, at: data.captions.findIndex(({ words }) => words.join(" | ") === caption) };
}

function html({ data, at }) {
  const { captions, frames, starts } = data;
  const words = [0, 1].map((word) =>
    button(`class="cu-live-${HALVES[word]}" data-word="${word}" aria-pressed="false" data-part="word${word}"`, captionWordHTML(data, at, word, null)));
  const step = slider("Step", `name="frame" min="0" max="${last(data)}" step="1" value="${FIRST}" aria-valuetext="${stepText(data, FIRST)}"`,
    "step", stepText(data, FIRST), "cu-live-step");
  const choices = radios("caption", captions.map((each, i) => [i, asIs(each.words.join(" | "))]), at);
  return `<p>The network begins with noise at step 200, and is finished at step 0. <strong>Press a word</strong> to forbid it from the start, and no \
pixel may attend to it. Or go to another step first, and press it there.</p>
<input type="hidden" name="without" value="">
<div class="cu-live-words" data-part="stage" style="${sheetOf(data, at)}; --frames: ${frames}; --runs: ${1 + 2 * starts.length}">
<div><div class="cu-live-caption">${words.join("")}</div>
<div class="cu-live-pair" role="img" aria-label="Two garments at ${stepText(data, FIRST)}" data-part="picture">${pairHTML(data, at, FIRST, null, true)}</div>
<div class="cu-live-walk">${button('data-part="play"', "Play")} ${step}</div></div>
<div class="cu-live-ends"><div><p>The end, with both words</p><div class="cu-live-pair" role="img" aria-label="The end with both words" \
data-part="both">${pairHTML(data, at, last(data), null, false)}</div></div>
<div data-part="without">${endHTML(data, at, null)}</div>
<p aria-live="polite" data-part="said">${saidHTML(data, at, FIRST, null)}</p>
${labeled("Color by the word", input("checkbox", 'name="colors" checked'))}</div></div>
<fieldset class="cu-live-kinds"><legend>Caption</legend> ${choices}</fieldset>
<p class="cu-live-note">Before step 0 you see the network's guess of the finished picture, in the colors of one attention \
head. We drew all runs beforehand, with one seed of the noise, and a word can be forbidden from six of the steps on. Between them a press \
takes the slider back to the last of the six. With this seed our classifier, a vision transformer, recognizes every \
garment, and with one of two other seeds it takes a sandal for a sneaker.</p>`;
}

function mount(form, [data]) {
  const { field, part, show, put, say } = partsOf(form);
  let moving = false; // whether the player moves the slider
  let hasMoved = false; // until then a word is forbidden from the start, where that has an effect

  // "0.4": the left word, from frame 4 on.
  function goneIn(text) {
    if (!text) return null;
    const [word, from] = text.split(".").map(Number);
    if (![0, 1].includes(word) || !data.starts.includes(from)) throw new RangeError("no such run"); // an address may hold anything
    return { word, from };
  }

  // `changed`: the control that a reader moved.
  function draw(changed) {
    if (changed === "caption" && field.without.value) field.without.value = "";
    const [at, frame, gone] = [Number(field.caption.value), Number(field.frame.value), goneIn(field.without.value)];
    if (changed === "frame" && !moving) stop();
    hasMoved ||= changed === "frame" || frame !== FIRST;
    part("stage").style.setProperty("--sheet", `url(data:image/png;base64,${data.captions[at].sheet})`);
    for (const word of [0, 1]) {
      show(`word${word}`, captionWordHTML(data, at, word, gone));
      put(`word${word}`, { "aria-pressed": gone?.word === word });
    }
    show("picture", pairHTML(data, at, frame, gone, field.colors.checked));
    put("picture", { "aria-label": `Two garments at ${stepText(data, frame)}` });
    say(field.frame, "step", stepText(data, frame));
    show("without", endHTML(data, at, gone));
    show("said", saidHTML(data, at, frame, gone));
  }

  const set = follow(form, draw);
  const to = (frame) => {
    moving = true;
    set("frame", frame);
    moving = false;
  };
  const at = () => Number(field.frame.value);
  const { go, stop, isOn } = player(part("play"), [part("said")], {
    step: () => to(Math.min(at() + 1, last(data))), isLast: () => at() + 1 >= last(data), end: () => to(last(data)),
  }, PAUSE);

  function forbid(word) {
    stop();
    const gone = goneIn(field.without.value);
    if (gone?.word === word) return set("without", "");
    const from = hasMoved ? data.starts.findLast((start) => start <= at()) : 0;
    if (at() < last(data)) to(from);
    set("without", `${word}.${from}`);
    if (at() < last(data) && !isCalm()) go();
  }

  clicks(form, {
    word: (word) => forbid(Number(word)),
    part(name) {
      if (name !== "play") return;
      if (isOn()) return stop();
      if (at() === last(data)) to(0);
      go();
    },
  });
}
