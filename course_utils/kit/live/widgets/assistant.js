// One question, four stages of one small GPT: pretrained, fine-tuned on answers, and from there trained on preferences in two
// ways. Each writes its answer here; a card says what is true in their world.

const MOST = 20; // tokens of an answer

// The words of a world, spelled as it spells them; a reader may write them in any case.
class Words {
  constructor({ words }) {
    this.words = words;
    this.ids = new Map(words.map((word, id) => [word.toLowerCase(), id]).slice(EOS + 1));
  }

  encode(text) {
    return tokenize(text).map((word) => this.ids.get(word) ?? UNK);
  }

  unknown(text) {
    return [...new Set(tokenize(text))].filter((word) => !this.ids.has(word));
  }

  unknownHTML(text) {
    const lower = ["", "", "", "", ...this.ids.keys()];
    return this.unknown(text).map((word) => unknownWord(word, lower)).join(" ");
  }
}

// What a model writes behind a question, always the likeliest token: [{ word, p }], and whether it came to an end.
function answerOf(model, words, question) {
  const state = model.start();
  let logits = model.step([EOS, ...words.encode(question)], state).at(-1);
  const said = [];
  while (said.length < MOST) {
    const [p, token] = [softmax(logits), argmax(speakable(logits))];
    if (token === EOS) return { said, ended: true };
    said.push({ word: words.words[token], p: p[token] });
    logits = model.step([token], state).at(-1);
  }
  return { said, ended: false };
}

// log p(answer | question)
function logLikelihood(model, words, question, answer) {
  const [asked, answered] = [[EOS, ...words.encode(question)], [...words.encode(answer), EOS]];
  const logits = model.step([...asked, ...answered.slice(0, -1)], model.start()).slice(asked.length - 1);
  return total(answered.map((token, i) => Math.log(softmax(logits[i])[token])));
}

// What is asked, with the question mark that a reader may leave out.
const asked = (text) => (tokenize(text).at(-1) === "?" ? text : `${text} ?`);

// What the world knows of a question: its attribute, its person, and what is true. A first name comes before a last one.
function known({ world }, question) {
  const spoken = tokenize(asked(question));
  const asksFor = ([, form]) => tokenize(form.replace("{n}", "")).every((word) => spoken.includes(word));
  const key = Object.entries(world.questions).find(asksFor)?.[0];
  const named = (some, word) => some.find((each) => each.toLowerCase() === word);
  const pairs = spoken.map((word, i) => [named(world.first, word), named(world.last, spoken[i + 1])]);
  const name = pairs.find((pair) => pair.every(Boolean))?.join(" ") ?? "";
  const person = world.people.find((each) => each.name === name);
  return { key, name, person, truth: key && person ? person[key] : "" };
}

// The margin of DPO, the reward of the polite answer minus that of the long one, with the fine-tuned model as reference.
function marginOf([model, reference], words, { world }, question, { key, truth }) {
  const fact = world.facts[key].replace("{v}", truth);
  const [polite, long] = ["polite", "long"].map((manner) => `${world.manners[manner]}${fact}`);
  const gain = (answer) => logLikelihood(model, words, question, answer) - logLikelihood(reference, words, question, answer);
  return world.beta * (gain(polite) - gain(long));
}

// Whose value it is, of those with a biography who share a first or a last name.
function namesakesHTML({ people }, name, key, value) {
  const shares = (other) => other.split(" ").some((half, i) => half === name.split(" ")[i]);
  const found = people.filter((each) => each[key] === value && shares(each.name)).map((each) => asIs(each.name));
  const all = [found.slice(0, -1).join(", "), found.at(-1)].filter(Boolean).join(" and ");
  return all ? `Made up: the ${key} of ${all}.` : "Made up.";
}

function verdictHTML({ world }, { said }, { key, name, person, truth }) {
  if (said.some(({ word }) => word === "?")) return "It asks more questions.";
  if (!key || !name) return "";
  const value = said.map(({ word }) => word).find((word) => world.values[key].includes(word));
  if (!value) return `It names no ${key}.`;
  if (!person) return namesakesHTML(world, name, key, value);
  return value === truth ? "True." : `Wrong: the biographies say ${asIs(truth, "em")}.`;
}

const wordsHTML = ({ said, ended }) => said.map(({ word, p }) =>
  `<span class="said" style="--p: ${p.toFixed(2)}"><b ${DATA}>${safe(word)}</b><small>${p.toFixed(2)}</small></span>`)
  .join(" ") + (ended ? "" : " …");

function truthHTML(bundle, question) {
  const { key, name, person, truth } = known(bundle, question);
  if (!key || !name) return "Ask for the town, the work or the pet of somebody, with the first and then the last name.";
  if (!person) return `No biography tells of ${asIs(name)}.`;
  const inTuning = person.asked ? `Fine-tuning asked about ${asIs(name)}, too.` : `Fine-tuning never asked about ${asIs(name)}.`;
  return `In the biographies: <strong ${DATA}>${safe(truth)}</strong>. ${inTuning}`;
}

// The four models, each with its answer; without answers where they don't know a word, or nothing is asked.
function stagesHTML(models, words, bundle, text) {
  const [question, isAsked] = [asked(text), tokenize(text).length && !words.unknown(text).length];
  const found = known(bundle, question);
  return bundle.stages.map(([title, how], i) => {
    const answer = isAsked ? answerOf(models[i], words, question) : { said: [], ended: true };
    const margin = isAsked && i > 1 && found.truth ? `Margin, polite over long-winded: ${fixed(marginOf([models[i], models[1]], words, bundle, question, found), 1)}` : "";
    return `<div class="stage" data-key="${i}"><p class="how"><strong>${title}</strong> <span>${how}</span></p><p class="answer">${wordsHTML(answer)}</p>` +
      `<p class="verdict"><span>${isAsked ? verdictHTML(bundle, answer, found) : ""}</span> <small>${margin}</small></p></div>`;
  }).join("");
}

const made = (bundles) => [bundles.map((each) => new GPT(each)), new Words(bundles[0].vocabularies)];

const state = (bundles, { question }) => ({ bundles, question });

function html({ bundles, question }) {
  const [models, words] = made(bundles);
  return `<div class="cu-live-ask">
${sentenceField("Ask", "question", question)}
</div>
<p class="cu-live-examples">Or ask: ${sentences(bundles[0].examples)}</p>
<p class="cu-live-unknown" aria-live="polite" data-part="unknown"></p>
<p aria-live="polite" data-part="truth">${truthHTML(bundles[0], question)}</p>
<div class="cu-assistant" data-part="stages">${stagesHTML(models, words, bundles[0], question)}</div>
<p class="cu-live-note">The number below a word is its probability. Fine-tuning continues the first of these GPTs, and each \
of the last two continues the second. They know ${words.ids.size} words.</p>`;
}

function mount(form, bundles) {
  const [models, words] = made(bundles);
  const { field, part, show } = partsOf(form);
  function draw() {
    const question = field.question.value;
    show("unknown", words.unknownHTML(question));
    show("truth", truthHTML(bundles[0], question));
    become(part("stages"), stagesHTML(models, words, bundles[0], question));
  }
  const set = follow(form, draw);
  clicks(form, {
    example: (i) => set("question", bundles[0].examples[i].sentence),
    for: correct(field.question, set),
  });
}
