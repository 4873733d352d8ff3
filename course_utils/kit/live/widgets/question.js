// A question to a language model, token by token: what does it answer when it may not look at one of them? All answers were
// recorded beforehand, by the model of chapter 18.

const LONG = 64; // letters of an answer that is written smaller
const NAMED = 4; // tokens that are forbidden at once and named one by one
const MARKS = { same: "=", other: "≈", gone: "≠" };
const ORDINALS = ["first", "second", "third"];
const capital = (text) => text[0].toUpperCase() + text.slice(1);

// A question and its answers ---------------------------------------------------------------------

// "capital of Japan"
const shortOf = (question) => question.replace(/^What is the /, "").replace(/\?$/, "");
const keyOf = (gone) => [...gone].sort((a, b) => a - b).join(",");

// [words, percents, more] → { words, shares, more }
function answerTo({ answers }, gone) {
  const answer = answers[keyOf(gone)];
  if (!answer) throw new RangeError("no such answer"); // an address may hold anything
  const [words, percents, more] = answer.map((each) => (typeof each === "string" ? each.split(" ").filter(Boolean) : each));
  return { words, shares: percents.map((each) => each / 100), more: Boolean(more) };
}

const says = (question, gone) =>
  answerTo(question, gone).words.join(" ").toLowerCase().includes(question.key.toLowerCase());

// What forbidding a token does: "same" words, "other" words that still say the key, or the key is "gone".
function effectOf(question, token) {
  if (!says(question, [token])) return "gone";
  return answerTo(question, [token]).words.join(" ") === answerTo(question, []).words.join(" ") ? "same" : "other";
}

// Places of its words, of the second turn, and all that is found by looking at each answer.
function studied(question) {
  const { tokens, answers } = question;
  const [from, to] = [tokens.indexOf("\n") + 1, tokens.indexOf("<|im_end|>")];
  const words = range(to - from).map((i) => from + i);
  const effects = tokens.map((_, token) => effectOf(question, token));
  const of = (effect) => effects.flatMap((each, token) => (each === effect ? [token] : []));
  const sets = Object.keys(answers).filter(Boolean).map((key) => key.split(",").map(Number))
    .filter((gone) => gone.every((token) => words.includes(token)));
  const hasSets = sets.length === 2 ** words.length - 1;
  const most = Math.max(0, ...sets.filter((gone) => says(question, gone)).map((gone) => gone.length));
  return { ...question, words, effects, same: of("same"), lost: of("gone"), hasSets, fewest: words.length - most,
    reply: tokens.lastIndexOf("<|im_start|>") };
}

// Tokens in words -------------------------------------------------------------------------------

const isWord = ({ words }, token) => words.includes(token);
const bare = ({ tokens }, token) => (tokens[token] === "\n" ? "↵" : tokens[token].trim());

// Which of several equal ones a token is; the model meets the very first one before all others.
function whichOf({ tokens }, token) {
  if (token === 0) return "the very first token";
  const equal = range(tokens.length).filter((each) => tokens[each].trim() === tokens[token].trim());
  return equal.length > 1 ? `the ${ORDINALS[equal.indexOf(token)]} of ${numberWord(equal.length)}` : "";
}

const nameHTML = (question, token) => {
  const which = whichOf(question, token);
  const sort = isWord(question, token) ? "em" : "code";
  return `${asIs(bare(question, token), sort)}${which && ` (${which})`}`;
};

const namesHTML = (question, gone) => (gone.length > NAMED
  ? `${numberWord(gone.length)} of the ${question.tokens.length} tokens`
  : gone.map((token) => nameHTML(question, token)).join(", "));

// Before the question there are others who may look: the reader is told who may not.
function ruleText({ words }, gone) {
  if (!gone.some((token) => token < words[0])) return "";
  const rule = `No token from the question on may look at ${gone.length > 1 ? "them" : "it"}.`;
  return gone.length === 1 && gone[0] === 0 ? `${rule} Only “user” and the line break after it may still look at it.` : rule;
}

// What is shown ---------------------------------------------------------------------------------

function tokenHTML(question, token, { gone, tried, several }) {
  const [isOff, effect] = [gone.includes(token), tried.includes(token) ? question.effects[token] : ""];
  const which = whichOf(question, token);
  const label = [question.tokens[token] === "\n" ? "line break" : bare(question, token), which, isOff && "forbidden",
    effect && effectText(question, effect)];
  const sort = isWord(question, token) ? "word" : "mark";
  const off = several && sort === "mark" ? ' disabled=""' : "";
  return button(`class="token ${sort}" data-token="${token}" aria-pressed="${isOff}" data-effect="${effect}" title="${which}" ` +
    `aria-label="${safe(label.filter(Boolean).join(", "))}"${off}`,
  `<span>${safe(bare(question, token))}</span><small aria-hidden="true">${MARKS[effect] ?? ""}</small>`);
}

const keyHTML = ({ key }) => asIs(key, "em");
const effectHTML = (question, effect) => effectText({ key: keyHTML(question) }, effect);
const effectText = ({ key }, effect) => ({ same: "no word changes", other: `other words, still ${key}`, gone: `${key} is gone` })[effect];

// In three lines. What has no blank before it, as "?" and "istant", stands close to the token before it.
function promptHTML(question, view) {
  const { tokens, words, reply } = question;
  const isGlued = (token) => /^[a-z?]/.test(tokens[token]) && !["\n", ">"].includes(tokens[token - 1].at(-1));
  const lines = [[0, words[0]], [words[0], reply], [reply, tokens.length]].map(([from, to]) => {
    const line = [];
    for (const token of range(to - from).map((i) => from + i)) {
      const html = tokenHTML(question, token, view);
      if (token > from && isGlued(token)) line.push(`<span class="glued">${line.pop()}${html}</span>`);
      else line.push(html);
    }
    return `<div>${line.join(" ")}</div>`;
  });
  return lines.join("");
}

function saidHTML(question, gone) {
  const { words, shares, more } = answerTo(question, gone);
  const news = fresh(words, answerTo(question, []).words);
  if (!words.length) return '<em class="rest">nothing</em>';
  const each = words.map((word, i) => `<span class="said${news.includes(i) ? " fresh" : ""}" style="--p: ${shares[i]}; --i: ${i}">` +
    `<b translate="no">${safe(word)}</b> <small>${shares[i].toFixed(2)}</small></span>`);
  return each.join(" ") + (more ? ' <span class="rest">…</span>' : "");
}

function beforeHTML(question, gone) {
  if (!gone.length) return "A bar and its number are the probability of a word. They say how sure the model was, not whether it is right.";
  const [was, now] = [answerTo(question, []).words, answerTo(question, gone).words];
  const lost = fresh(was, now);
  const isSame = was.join(" ") === now.join(" ");
  const old = was.map((word, i) => (lost.includes(i) ? `<s translate="no">${safe(word)}</s>` : safe(word))).join(" ");
  const rule = ruleText(question, gone);
  return `<i>without</i> ${namesHTML(question, gone)}${isSame ? ": not a word changes." : ` <i>— before:</i> <span ${DATA}>${old}</span>`} ` +
    `${button('data-undo=""', gone.length > 1 ? "allow them again" : "allow again")}${rule && `<br>${rule}`}`;
}

// What is read aloud: who may not look, the answer, and what follows from it.
function heardHTML(question, { gone, several }) {
  const words = answerTo(question, gone).words.join(" ");
  const told = several ? leftHTML(question, gone)
    : gone.length === 1 ? `${capital(effectHTML(question, question.effects[gone[0]]))}.` : "";
  return [ruleText(question, gone), `It answers: ${words ? asIs(words) : "nothing"}`, told].filter(Boolean).join(" ");
}

// The search ------------------------------------------------------------------------------------

function tallyHTML(question, tried) {
  const { key, effects } = question;
  const count = (effect) => tried.filter((token) => effects[token] === effect).length;
  const rows = Object.keys(MARKS).map((effect) => `<li><b>${MARKS[effect]}</b> \
<span>${effectHTML(question, effect)}</span> <span>${count(effect)}</span></li>`);
  return `<ul>${rows.join("")}</ul>`;
}

function searchHTML(question, { gone, tried }) {
  const { key, tokens, lost, same, answers } = question;
  const found = tried.filter((token) => lost.includes(token));
  const [isDone, count] = [found.length === lost.length, numberWord(lost.length)];
  const slots = lost.map((_, i) => (found[i] === undefined ? '<span class="slot">?</span>'
    : `<span class="slot full ${isWord(question, found[i]) ? "" : "sign"}" ${DATA}>${safe(bare(question, found[i]))}</span>`));
  const told = isDone && lost.some((token) => !isWord(question, token))
    ? "<p>One of them says nothing about the question, and yet the model can’t answer without it.</p>" : "";
  const isAll = gone.length > 1 && keyOf(gone) === keyOf(same);
  const all = isDone && answers[keyOf(same)]
    ? `<p>${button(`data-all="" aria-pressed="${isAll}"`, `Forbid all ${numberWord(same.length)} that change no word, at once`)}</p>` : "";
  const together = isAll && !says(question, gone)
    ? `<p>Each of the ${numberWord(same.length)} can be forbidden alone, but not all ${numberWord(same.length)} together.</p>` : "";
  return `<p class="task">Forbid one of the tokens. For ${tokens.length - lost.length} of the ${tokens.length} it still says ${keyHTML(question)}. \
${isDone ? `You found the other ${count}.` : `Find the other ${count}.`}</p>
<p class="slots">${slots.join(" ")}</p>${tried.length ? tallyHTML(question, tried) : "<p>Take one at a time: press a token to forbid it, and press it again to allow it.</p>"}${told}${all}${together}`;
}

function leftHTML({ words, ...question }, gone) {
  const key = keyHTML(question);
  const left = words.length - gone.length;
  const count = left ? `${capital(numberWord(left))} ${left === 1 ? "word is" : "words are"} left` : "No word is left";
  return `${count}, and ${says(question, gone) ? `it says ${key}` : `${key} is gone`}.`;
}

function severalHTML(question, { gone, least }) {
  const { key, words, fewest } = question;
  const [left, isThere] = [words.length - gone.length, says(question, gone)];
  const pips = words.map((_, i) => `<i class="${i < left ? (isThere ? "on" : "on lost") : ""}"></i>`).join("");
  const best = least === fewest ? `${capital(numberWord(fewest))} are enough, and fewer never are.`
    : least < words.length ? `The fewest so far: ${numberWord(least)}.` : "";
  return `<p class="task">Forbid as many words as you can, but it must still say ${keyHTML(question)}.</p>
<p class="pips" aria-hidden="true">${pips}</p><p>${leftHTML(question, gone)} ${best}</p>`;
}

const sideHTML = (question, view) => (view.several ? severalHTML : searchHTML)(question, view);

// The widget ------------------------------------------------------------------------------------

const state = (_, { question, questions }) =>
  ({ questions, at: questions.findIndex((each) => each.question === question) });

function html({ questions, at }) {
  const question = studied(questions[at]);
  const view = { gone: [], tried: [], several: false, least: question.words.length };
  const choices = questions.map((each, i) =>
    `<label>${input("radio", `name="question" value="${i}"${i === at ? " checked" : ""}`)} ${asIs(shortOf(each.question))}</label>`);
  return `<div class="cu-question" data-part="data" data-questions=${inAttribute(questions)}><input type="hidden" name="tried" value="">\
<input type="hidden" name="least" value=""><input type="hidden" name="off" value="">
<div class="prompt" role="group" aria-label="The prompt, token by token: arrow keys move, Enter forbids" ${OURS} ${DATA} data-part="prompt">${promptHTML(question, view)}</div>
<div class="side"><div data-part="side">${sideHTML(question, view)}</div>${labeled("Forbid several words at once", input("checkbox", 'name="several"'), "several")}</div>
<div class="answer"><p class="sentence" data-long="${answerTo(question, []).words.join(" ").length > LONG}" data-part="said">${saidHTML(question, [])}</p><p class="before" data-part="before">${beforeHTML(question, [])}</p>
<p class="cu-heard" aria-live="polite" data-part="heard">${heardHTML(question, view)}</p></div>
<fieldset class="choices"><legend>Another question: the</legend> ${choices.join(" ")}</fieldset></div>
<p class="cu-live-note">We recorded all answers of SmolLM2 beforehand. It always takes the likeliest token (greedy decoding), and you see its first sentence.</p>`;
}

// "0.8 0.7 1.3": pairs of a question and a number.
const pairsIn = (text) => text.split(" ").filter(Boolean).map((pair) => pair.split(".").map(Number));

function mount(form) {
  const { field, part, show, put } = partsOf(form);
  const questions = JSON.parse(part("data").dataset.questions).map(studied);
  const at = () => Number(field.question.value);
  const gone = () => [...new Set(field.off.value.split(".").filter(Boolean).map(Number))];
  const isSeveral = () => field.several.checked && questions[at()].hasSets;

  // What a reader has tried, and the fewest words that were enough, of all questions.
  function remember(question) {
    const tried = pairsIn(field.tried.value).filter(([each, token]) => questions[each]?.tokens[token] !== undefined);
    const least = new Map(pairsIn(field.least.value).filter(([each, left]) => left >= questions[each]?.fewest));
    const [now] = gone();
    if (gone().length === 1 && !tried.some(([each, token]) => each === at() && token === now)) tried.push([at(), now]);
    const left = question.words.length - gone().length;
    if (isSeveral() && says(question, gone())) least.set(at(), Math.min(left, least.get(at()) ?? left));
    field.tried.value = tried.map((pair) => pair.join(".")).join(" ");
    field.least.value = [...least].map((pair) => pair.join(".")).join(" ");
    return {
      tried: tried.filter(([each]) => each === at()).map(([, token]) => token), least: least.get(at()) ?? question.words.length,
    };
  }

  let shown = "";
  function draw(changed) {
    const question = questions[at()];
    if (changed === "question") field.off.value = "";
    if (changed === "several" && (gone().length > 1 || !isWord(question, gone()[0]))) field.off.value = "";
    answerTo(question, gone()); // or it is refused, before anything is drawn
    const view = { gone: gone(), several: isSeveral(), ...remember(question) };
    if (view.several && !view.gone.every((token) => isWord(question, token))) throw new RangeError("no word");
    field.several.closest("label").hidden = !question.hasSets;
    become(part("prompt"), promptHTML(question, view));
    const said = saidHTML(question, view.gone);
    if (said !== shown) show("said", said); // words that are new come one by one
    shown = said;
    put("said", { "data-long": answerTo(question, view.gone).words.join(" ").length > LONG });
    become(part("before"), beforeHTML(question, view.gone));
    become(part("side"), sideHTML(question, view));
    show("heard", heardHTML(question, view));
  }

  const set = follow(form, draw);
  clicks(form, {
    token(value) {
      const token = Number(value);
      if (!isSeveral()) return set("off", keyOf(gone()) === value ? "" : value);
      set("off", (gone().includes(token) ? gone().filter((each) => each !== token) : [...gone(), token]).join("."));
    },
    undo() {
      const [first] = gone();
      set("off", "");
      form.querySelector(`[data-token="${first}"]`).focus(); // the button is gone
    },
    all() {
      const { same } = questions[at()];
      set("off", keyOf(gone()) === keyOf(same) ? "" : same.join("."));
    },
  });
  part("prompt").addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step) return;
    const tokens = [...part("prompt").querySelectorAll("button:enabled")];
    tokens[tokens.indexOf(event.target) + step]?.focus();
    event.preventDefault();
  });
}
