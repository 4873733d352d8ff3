// Memory: a card is pressed, an arrow shows where the stored model says that its twin lies, and the look can be forbidden.

const SIDE = 56; // pixels
const CHANCE = 1 / (COUNT - 1);
const ATTENTION = "layers.0.attention";
const highest = (numbers) => numbers.indexOf(Math.max(...numbers));

// The model ------------------------------------------------------------------------------------

// Of each card the probabilities of the places where its twin may lie; `ban` forbids one card the look at another.
function answers(model, pixels, ban = null) {
  model.forbidden = ban ? [{ place: /attention$/, queries: [ban.card + 1], keys: [ban.twin + 1] }] : []; // 0: class token
  const tokens = model.tokens([inRows(pixels.map((value) => value / 127.5 - 1), SIDE)]).slice(1);
  return model.linear("output", tokens).map((scores, card) =>
    softmax(Array.from(scores, (score, place) => (place === card ? -Infinity : score))));
}

// How many twins are found, and what one card says, with the strongest look of any head at the place that it names.
function played(model, boards, { board, card, forbid }) {
  const deal = boards[board];
  if (!deal || !(card in deal.twins)) throw new RangeError("no such card"); // an address may hold anything
  const pixels = pixelsOf(deal.picture);
  const right = total(answers(model, pixels).map((p, other) => highest(p) === deal.twins[other]));
  const twin = deal.twins[card];
  const p = answers(model, pixels, forbid ? { card, twin } : null)[card];
  const says = highest(p);
  const looks = model.maps[ATTENTION].map((head) => head[card + 1][says + 1]);
  return { deal, card, forbid, right, twin, says, p: p[says], look: Math.max(...looks) };
}

// What is shown --------------------------------------------------------------------------------

const countText = ({ right }) => `Of the 16 cards ${right} find their twin when all looks are allowed. A random guess would find one.`;

function newsHTML({ card, forbid, twin, says, p, look }) {
  const hit = says === twin;
  const answer = `The card in ${placeOf(card)} ${forbid ? "may not look at its twin, and now says" : "says"}: my twin lies in ` +
    `<strong>${placeOf(says)}</strong> (${percent(p)} %).`;
  const verdict = hit ? "That is right." : `That is wrong: it lies in ${placeOf(twin)}.`;
  const seen = forbid ? "" : ` At its strongest, a head gives this card ${percent(look)} % of its weight.`;
  return `${answer} ${verdict}${seen}`;
}

function arrowHTML({ card, twin, says, p }) {
  const middle = (place) => [100 * ((place % ROW) + 0.5) / ROW, 100 * (Math.floor(place / ROW) + 0.5) / ROW];
  const [[x0, y0], [x1, y1]] = [middle(card), middle(says)];
  const far = Math.hypot(x1 - x0, y1 - y0);
  const [across, along] = [(x1 - x0) / far, (y1 - y0) / far];
  const tip = [x1 - 3 * across, y1 - 3 * along];
  const wing = (side) => `${tip[0] - 5 * across + side * 4 * along} ${tip[1] - 5 * along - side * 4 * across}`;
  const path = `M${x0 + 4 * across} ${y0 + 4 * along}L${tip.join(" ")}M${wing(1)}L${tip.join(" ")}L${wing(-1)}`;
  const width = 0.8 + 1.6 * Math.max(0, (p - CHANCE) / (1 - CHANCE));
  const sort = says === twin ? "right" : "wrong";
  return `<svg class="arrow" aria-hidden="true" viewBox="0 0 100 100"><path class="edge" stroke-width="${(width + 1.6).toFixed(2)}" ` +
    `d="${path}"></path><path class="${sort}" stroke-width="${width.toFixed(2)}" d="${path}"></path></svg>`;
}

function boardHTML(game) {
  const squares = range(COUNT).map((card) => [`data-card="${card}" aria-pressed="${card === game.card}"`]);
  const label = "Sixteen cards: arrow keys move, space asks a card for its twin";
  return gridHTML(label, game.deal.picture, squares, "cards") + arrowHTML(game);
}

function state([bundle]) {
  const view = { board: 0, card: bundle.first, forbid: false };
  return { bundle, game: played(new ViT(bundle), bundle.boards, view) };
}

function html({ bundle, game }) {
  const boards = radios("board", bundle.boards.map((_, i) => [i, i + 1]), 0);
  return `<fieldset class="cu-live-kinds"><legend>Deal</legend> ${boards}</fieldset>
<input type="hidden" name="card" value="${game.card}">
<div class="cu-patches"><div class="board" data-part="board">${boardHTML(game)}</div>
<div><p class="news" aria-live="polite" data-part="news">${newsHTML(game)}</p>
<p><label>${input("checkbox", 'name="forbid"')} Forbid this card to look at its twin</label></p>
<p data-part="count">${countText(game)}</p></div></div>
<p class="cu-live-note">The stored model has one block of attention. It has never seen these cards: they are test pictures.</p>`;
}

function mount(form, [bundle]) {
  const model = new ViT(bundle);
  const { field, part, show, write } = partsOf(form);

  function draw(changed) {
    if (changed === "board" || changed === "card") field.forbid.checked = false;
    const view = { board: Number(field.board.value), card: Number(field.card.value || NaN), forbid: field.forbid.checked };
    const game = played(model, bundle.boards, view);
    become(part("board"), boardHTML(game));
    write("count", countText(game));
    if (part("news").innerHTML !== newsHTML(game)) show("news", newsHTML(game));
  }

  const set = follow(form, draw);
  clicks(form, { card: (card) => set("card", card) });
  walk(part("board"));
}
