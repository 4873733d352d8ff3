// The vision transformer: a picture is drawn, uploaded or chosen; every change is answered at once.

const SIDE = 28; // pixels
const STRONG = 3; // so many times the mean weight is drawn as strong as possible
const PEN = 1.4; // pixels from the pen's middle to its edge

// A picture is SIDE × SIDE numbers from 0, black, to 255; in the form it stands as base64.
const parsed = (text) => Array.from(atob(text), (letter) => letter.charCodeAt(0));
const written = (pixels) => btoa(String.fromCharCode(...pixels));

// What a model makes of a picture -------------------------------------------------------------

const meanOf = (heads) => mean([heads]);

// The class token's row of R₁ R₀, where R = (mean of the heads + identity) / 2.
function rolledOut(layers) {
  const halves = layers.map((heads) =>
    meanOf(heads).map((row, i) => row.map((weight, j) => (weight + (i === j ? 1 : 0)) / 2)));
  return halves.reduceRight((flow, half) =>
    half[0].map((_, j) => flow.reduce((sum, share, i) => sum + share * half[i][j], 0)),
  [1, ...Array(halves[0].length - 1).fill(0)]);
}

function look(model, pixels) {
  const image = inRows(pixels.map((value) => value / 127.5 - 1), SIDE);
  const p = softmax(model.logits([image]));
  const layers = Object.values(model.maps);
  const width = SIDE / (model.config.patch_size ?? 7);
  const onPatches = (row) => inRows(Array.from(row).slice(1), width);
  const maps = layers.map((heads) => [...heads, meanOf(heads)].map((map) => onPatches(map[0])));
  return { p, maps, rollout: onPatches(rolledOut(layers)) };
}

// The maps by their places: "1.4" is block 1, after its four heads, their mean; then "rollout".
const mapsOf = ({ maps, rollout }) => Object.fromEntries([
  ...maps.flatMap((heads, block) => heads.map((weights, head) => [`${block}.${head}`, {
    title: `block ${block}, ${head === heads.length - 1 ? "mean of the heads" : `head ${head}`}`, weights,
  }])),
  ["rollout", { title: "rollout", weights: rollout }],
]);

const strength = (weights) =>
  weights.map((row) => row.map((weight) => Math.min(1, (weight * weights.length * row.length) / STRONG)));
const photo = (pixels) => svg(inRows(pixels.map((value) => value / 255), SIDE));

const mapsHTML = (seen, chosen) => Object.entries(mapsOf(seen)).map(([place, { title, weights }]) =>
  mapButton(place, chosen, `${svg(strength(weights))}<span>${title}</span>`)).join("");

function whereText(seen, place) {
  const { title, weights } = mapsOf(seen)[place];
  const all = weights.flat();
  const most = all.indexOf(Math.max(...all));
  const width = weights[0].length;
  return `${title[0].toUpperCase()}${title.slice(1)}: most weight, ${percent(all[most])} %, is on row ` +
    `${Math.floor(most / width)}, column ${most % width} of ${weights.length} × ${width} patches, from 0.`;
}

const SHOWN = "1.4"; // the map that is shown first
const sizeOf = ({ config }) => config.patch_size ?? 7;
const overHTML = (pixels, seen, map) => photo(pixels) + svg(strength(mapsOf(seen)[map].weights));
const barsHTML = (seen, kinds) => `<ol>${kinds.map((kind, i) =>
  `<li style="--w: ${percent(seen.p[i]) / 100}"><span translate="no" lang="en">${kind}</span> <span>${percent(seen.p[i])} %</span></li>`).join("")}</ol>`;
function saidText(seen, kinds) {
  const best = seen.p.indexOf(Math.max(...seen.p));
  return `${kinds[best]}, ${percent(seen.p[best])} %`;
}

function state(bundles) {
  const pixels = parsed(bundles[0].examples[0].pixels);
  return { bundles, pixels, seen: look(new ViT(bundles[0]), pixels) };
}

function html({ bundles, pixels, seen }) {
  const [{ kinds, examples, score: [, count] }] = bundles;
  const buttons = examples.map((each, i) =>
    button(`data-example="${i}" aria-label="Example ${i}: ${each.right}"`, photo(parsed(each.pixels))));
  const sizes = radios("patch", bundles.map(sizeOf).map((size) => [size, `${size} × ${size}`]), sizeOf(bundles[0]));
  const shares = bundles.map((bundle) => {
    const [right, all] = bundle.score;
    return `${percent(right / all)} % (patches of ${sizeOf(bundle)} × ${sizeOf(bundle)})`;
  });
  return `<p>Draw a piece of clothing, light on black, or choose a picture. The stored model answers here, in \
your browser.</p>
<input type="hidden" name="image" value="0"><input type="hidden" name="map" value="${SHOWN}">
<div class="cu-live-vit"><div>
<div class="cu-live-photo" role="application" tabindex="0" ${OURS} aria-label="Drawing board: arrow keys move the pen, \
space puts it down and lifts it" data-part="board">${photo(pixels)}</div>
<p>${button('data-part="clear"', "Clear")}</p>
<p class="cu-live-examples">Examples: ${buttons.join(" ")}</p>
<p>${labeled("Your picture", input("file", 'accept="image/*" data-part="file"'), "cu-live-file")}</p></div>
<div><div class="cu-live-photo" role="img" aria-label="Where the class token looks" data-part="seen">\
${overHTML(pixels, seen, SHOWN)}</div>
<p data-part="where">${whereText(seen, SHOWN)}</p></div>
<div class="cu-live-kindly"><div aria-live="polite"><p class="cu-live-said"><span class="cu-live-label">It says</span> \
<strong ${DATA} data-part="said">${saidText(seen, kinds)}</strong></p>
<p data-part="right"></p></div>
<div data-part="bars">${barsHTML(seen, kinds)}</div></div></div>
<fieldset class="cu-live-kinds"><legend>Patches</legend> ${sizes}</fieldset>
<div class="cu-live-maps cu-live-vit-maps" role="group" aria-label="Weights of the class token by block and head" \
data-part="maps">${mapsHTML(seen, SHOWN)}</div>
<p class="cu-live-note">It knows ten kinds of clothes, light on black, and nothing else: whatever you draw, its answer \
is one of the ten. Its accuracy on ${count} test pictures: ${shares.join(", ")}. It names the third example \
wrongly.</p>`;
}

// A picture from a file: cut to a square, made gray and small, on black. A light ground is made dark.
async function read(file) {
  const bitmap = await createImageBitmap(file);
  const side = Math.min(bitmap.width, bitmap.height);
  const canvas = Object.assign(document.createElement("canvas"), { width: SIDE, height: SIDE });
  const context = canvas.getContext("2d");
  context.imageSmoothingQuality = "high";
  context.fillRect(0, 0, SIDE, SIDE);
  const corner = [(bitmap.width - side) / 2, (bitmap.height - side) / 2];
  context.drawImage(bitmap, ...corner, side, side, 0, 0, SIDE, SIDE);
  const { data } = context.getImageData(0, 0, SIDE, SIDE);
  const gray = range(SIDE * SIDE).map((i) =>
    Math.round(0.299 * data[4 * i] + 0.587 * data[4 * i + 1] + 0.114 * data[4 * i + 2]));
  const edge = gray.filter((_, i) => i < SIDE || i >= SIDE * (SIDE - 1) || i % SIDE % (SIDE - 1) === 0);
  const light = total(edge) / edge.length > 127;
  return { pixels: light ? gray.map((value) => 255 - value) : gray, light };
}

function mount(form, bundles) {
  const models = new Map(bundles.map((bundle) => [String(sizeOf(bundle)), new ViT(bundle)]));
  const { kinds, examples } = bundles[0];
  const { field, part, show, write } = partsOf(form);
  let [pixels, seen] = [pixelsOf(field.image.value), null];

  function pixelsOf(image) {
    return parsed(examples[image]?.pixels ?? image);
  }

  // `changed`: the control that a reader moved. The model is asked again unless only another map is shown.
  function draw(changed) {
    const { image, map, patch } = { image: field.image.value, map: field.map.value, patch: field.patch.value };
    if (changed !== "map" || !seen) {
      pixels = pixelsOf(image);
      if (pixels.length !== SIDE * SIDE) throw new RangeError("no such picture"); // an address may hold anything
      seen = look(models.get(patch), pixels);
      answer(examples[image]);
      show("maps", mapsHTML(seen, map));
      show("board", photo(pixels));
    }
    show("seen", overHTML(pixels, seen, map));
    write("where", whereText(seen, map));
  }

  function answer(example) {
    const best = seen.p.indexOf(Math.max(...seen.p));
    write("said", saidText(seen, kinds));
    const wrong = example && example.right !== kinds[best];
    show("right", wrong ? `Wrong. Right is: ${asIs(example.right)}` : "");
    show("bars", barsHTML(seen, kinds));
  }

  const set = follow(form, draw);
  clicks(form, {
    example: (i) => set("image", i),
    part: () => set("image", written(Array(SIDE * SIDE).fill(0))), // clear
  });
  part("file").addEventListener("change", async ({ target }) => {
    if (!target.files.length) return; // the dialog was left without a choice
    try {
      const found = await read(target.files[0]);
      set("image", written(found.pixels));
      write("right", found.light ? "Its ground is light: it was inverted." : "");
    } catch {
      write("right", "This is no picture that your browser can read.");
    }
  });

  // The pen -----------------------------------------------------------------------------------

  let [pen, down] = [[SIDE / 2, SIDE / 2], false]; // where it is, in pixels, and whether it draws
  let last = null; // where a pointer was that draws

  // A stroke from a place to another; from a place to itself it is a dot.
  function stroke([x0, y0], [x1, y1]) {
    const [across, along] = [x1 - x0, y1 - y0];
    const length = across ** 2 + along ** 2 || 1;
    const painted = pixels.map((value, i) => {
      const [x, y] = [(i % SIDE) + 0.5 - x0, Math.floor(i / SIDE) + 0.5 - y0];
      const share = within(0, (x * across + y * along) / length, 1);
      const far = Math.hypot(x - share * across, y - share * along);
      return Math.max(value, Math.round(255 * within(0, PEN + 0.5 - far, 1)));
    });
    set("image", written(painted));
  }

  const board = part("board");
  const place = pointed(board, SIDE);
  drags(board, {
    down(event) {
      last = place(event);
      stroke(last, last);
    },
    move(event) {
      if (!event.buttons || !last) return;
      const next = place(event);
      stroke(last, next);
      last = next;
    },
    end: () => (last = null),
  });
  board.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] }[event.key];
    if (!step && event.key !== " ") return;
    event.preventDefault();
    if (step) pen = pen.map((at, i) => within(0.5, at + step[i], SIDE - 0.5));
    else down = !down;
    board.style.setProperty("--x", pen[0] / SIDE);
    board.style.setProperty("--y", pen[1] / SIDE);
    board.dataset.pen = down ? "down" : "up";
    if (down) stroke(pen, pen);
  });
  board.addEventListener("blur", () => delete board.dataset.pen);
}
