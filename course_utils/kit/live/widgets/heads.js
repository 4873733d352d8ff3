// Heads: the reader's own look-ups in a cabinet of eight drawers, by weights that are written down.

const DRAWERS = [..."ABCDEFGH"];
const MOST = 4; // letters of a request
const FILLINGS = range(256).map((number) => DRAWERS.map((_, i) => ((number >> i) & 1 ? 1 : -1)));

// Heads × drawers: look-up j is done by head j mod h; its drawers have the score sharpness / √8, the others 0.
function weightsOf(request, heads, sharpness) {
  return range(heads).map((head) => {
    const asked = request.filter((_, place) => place % heads === head);
    const powers = DRAWERS.map((letter) => (asked.includes(letter) ? Math.exp(sharpness / Math.sqrt(8)) : 1));
    return powers.map((power) => power / total(powers));
  });
}

const numbersOf = (weights, balls) => weights.map((row) => total(row.map((weight, i) => weight * balls[i])));

// What a linear readout makes of the heads' numbers: of r look-ups that share a head, number t is white if more
// than t of them are.
function answersOf(request, heads, numbers) {
  return request.map((_, place) => {
    const shared = request.filter((__, other) => other % heads === place % heads).length;
    const cut = (2 * Math.floor(place / heads) + 1 - shared) / shared;
    return numbers[place % heads] > cut;
  });
}

// Over all fillings: how often each answer is right, and how often all are.
function sharesOf(request, heads, sharpness) {
  const weights = weightsOf(request, heads, sharpness);
  const right = FILLINGS.map((balls) =>
    answersOf(request, heads, numbersOf(weights, balls)).map((white, i) =>
      white === (balls[DRAWERS.indexOf(request[i])] > 0)));
  const share = (count) => count.length / FILLINGS.length;
  return {
    each: request.map((_, i) => share(right.filter((row) => row[i]))),
    every: share(right.filter((row) => row.every(Boolean))),
  };
}

// Of the 2ᵏ cases, so many pieces have h cuts at most.
function mostRight(k, heads) {
  let [choices, sum] = [1, 0];
  for (let i = 0; i <= Math.min(k, heads); i += 1) {
    sum += choices;
    choices = (choices * (k - i)) / (i + 1);
  }
  return sum / 2 ** k;
}

const color = (white) => (white ? "white" : "black");
const ballText = (white, i) => `${DRAWERS[i]} ${color(white[i])}`;

function tableHTML({ request, count }, weights, numbers) {
  const asked = (head) => request.filter((_, place) => place % count === head).join("") || "–";
  return table({
    caption: "Weights of each head on the drawers, in percent",
    corner: ["head", "asks for", "returns"],
    rows: range(count).map((head) => [head, asked(head), fixed(numbers[head], 2)]),
    columns: DRAWERS,
    weights,
  });
}

// What the layer makes of a request: its map, its answers, and how often they are right.
function shown({ request, count, sharpness, white }) {
  const weights = weightsOf(request, count, sharpness);
  const numbers = numbersOf(weights, white.map((each) => (each ? 1 : -1)));
  const said = answersOf(request, count, numbers).map((answer, i) => {
    const right = answer === white[DRAWERS.indexOf(request[i])];
    return `${request[i]} ${color(answer)}${right ? "" : " (wrong)"}`;
  });
  const { each, every } = sharesOf(request, count, sharpness);
  const listed = each.map((share, i) => `${request[i]} ${percent(share)} %`).join(", ");
  return {
    table: tableHTML({ request, count }, weights, numbers),
    said: `The readout says: ${said.join(", ")}.`,
    shares: `Accuracy over all 256 fillings: ${listed}; all at once ${percent(every)} %. ` +
      `No linear readout of as many heads has more than ${percent(mostRight(request.length, count))} %.`,
  };
}

const whiteIn = (balls) => [...balls].map((ball) => ball === "1");

const state = (_, { request, num_heads }) =>
  ({ request: [...request], count: num_heads, sharpness: 30, balls: "10110010" });

function html({ request, count, sharpness, balls }) {
  const white = whiteIn(balls);
  const found = shown({ request, count, sharpness, white });
  const counts = radios("heads", range(MOST).map((i) => [i + 1, i + 1]), count);
  const buttons = DRAWERS.map((_, i) => button(`data-ball="${i}"`, ballText(white, i)));
  const field = input("text", `name="request" value="${request.join("")}" maxlength="${MOST}" size="5" ` +
    'spellcheck="false" autocapitalize="characters"');
  const numbers = `name="sharpness" min="0" max="60" step="1" value="${sharpness}"`;
  return `<p>Ask for one to four drawers, and give the layer one to four heads. Click on a drawer to change its \
ball.</p>
<input type="hidden" name="balls" value="${balls}">
<div class="cu-live-ask">${labeled("Request", field)}
<fieldset class="cu-live-kinds"><legend>Heads</legend> ${counts}</fieldset>
${slider("Number in W_Q", numbers, "sharpness", sharpness)}</div>
<p class="cu-live-examples" data-part="balls">Drawers: ${buttons.join(" ")}</p>
${region("Weights of the heads", "table", found.table)}
<div aria-live="polite"><p data-part="said">${found.said}</p>
<p data-part="shares">${found.shares}</p></div>
<p class="cu-live-note">Nothing is trained here: the weights and the readout are written down. The balls are white, \
+1, or black, −1, and the keys do not show them.</p>`;
}

function mount(form) {
  const { field, part, show, write } = partsOf(form);

  function view() {
    const request = [...field.request.value.toUpperCase()].filter((letter) => letter.trim());
    const fits = request.every((letter, i) => DRAWERS.includes(letter) && request.indexOf(letter) === i);
    return {
      request: fits && request.length <= MOST ? request : [],
      count: Number(field.heads.value),
      sharpness: Number(field.sharpness.value),
      white: whiteIn(field.balls.value),
    };
  }

  function draw() {
    const chosen = view();
    const { request, sharpness, white } = chosen;
    write("sharpness", sharpness);
    form.querySelectorAll("[data-ball]").forEach((button, i) => {
      button.textContent = ballText(white, i);
    });
    part("table").hidden = !request.length;
    const found = request.length ? shown(chosen) : { said: "Write one to four different letters from A to H.", shares: "" };
    if (found.table) show("table", found.table);
    for (const name of ["said", "shares"]) write(name, found[name]);
  }

  const set = follow(form, draw);
  clicks(form, {
    ball: (i) => set("balls", [...field.balls.value].map((ball, j) => (Number(i) === j ? 1 - ball : ball)).join("")),
  });
}
