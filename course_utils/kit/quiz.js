// A quiz: an answer is marked, and its reason opens below it, as soon as it is chosen, and it is remembered. What was
// missed is asked again in a recall. The questions at a chapter's end come one at a time, and then a link to what comes
// next. A reader who has chosen a way is asked about what she reads on it.
const stored = (key) => { try { return localStorage.getItem(key); } catch { return null; } }; // a private window may refuse
const store = (key, value) => { try { localStorage.setItem(key, value); } catch {} };
const add = (parent, tag, attributes) => parent.appendChild(Object.assign(document.createElement(tag), attributes));
const LEAST = 2; // questions at a chapter's end

function enliven(quiz) {
  const untouched = quiz.cloneNode(true);
  const name = (question) => `course-quiz/${question.dataset.key}`;
  const missed = (question) => stored(name(question)) !== null;
  const note = (question) => store(name(question), "missed");
  const forget = (question) => { try { localStorage.removeItem(name(question)); } catch {} };
  const keep = (control) => { control.dataset.lmSuppressShortcuts = "true"; }; // its keys are not for Lab
  quiz.dataset.ready = "true";
  quiz.querySelector(".plain").remove();
  quiz.addEventListener("submit", (event) => event.preventDefault());
  const way = JSON.parse(stored("cu-way") || '""');
  const on = ({ dataset }) => dataset.ways.split("|").includes(way);
  const followed = way && on(quiz); // else the reader is where her way does not lead
  const recall = quiz.dataset.kind === "recall";
  if (quiz.dataset.kind !== "section") {
    const all = [...quiz.querySelectorAll("fieldset")];
    const drawn = all.filter((question) => !question.closest(".course-quiz details")); // the book folds whole recalls
    const read = followed ? all.filter(on) : all;
    const inOrder = recall ? [...read.filter(missed), ...read.filter((question) => !missed(question))] : read;
    const count = recall ? drawn.length : Math.max(LEAST, drawn.filter((question) => read.includes(question)).length);
    const shown = inOrder.slice(0, followed || recall ? count : drawn.length);
    (quiz.querySelector(".onward") ?? quiz.querySelector("script")).before(...shown);
    quiz.querySelector("details")?.remove();
    for (const question of drawn) if (!shown.includes(question)) question.remove();
    if (recall) for (const question of shown) if (missed(question)) question.querySelector(".source span").textContent = "You missed this question of";
  }
  const questions = [...quiz.querySelectorAll("fieldset")];
  const dots = quiz.dataset.kind === "quiz" && questions.length > 1 ? steps() : [];

  function steps() {
    const row = add(quiz, "p", { className: "steps" });
    const made = questions.map((_, i) => add(row, "button", { type: "button", ariaLabel: `Question ${i + 1} of ${questions.length}` }));
    const next = add(row, "button", { type: "button", className: "next", textContent: "Next question" });
    let at;
    const show = (place) => {
      at = place;
      questions.forEach((question, i) => { question.hidden = i !== at; });
      made.forEach((dot, i) => { dot.ariaCurrent = i === at ? "step" : null; });
      next.hidden = at === questions.length - 1;
    };
    made.forEach((dot, i) => dot.addEventListener("click", () => show(i)));
    next.addEventListener("click", () => { show(at + 1); questions[at].querySelector("input").focus({ preventScroll: true }); });
    [...made, next].forEach(keep);
    show(0);
    return made;
  }

  // When all questions are answered, what comes next is a click away.
  const answered = new Set();
  const onward = quiz.querySelector(".onward");
  if (onward) {
    quiz.append(onward); // below the steps
    const links = [...onward.children];
    const shown = (followed && links.find(on)) || links.find(({ dataset }) => "always" in dataset);
    for (const link of links) link.hidden = link !== shown;
    if (!shown) onward.remove();
    else if (!questions.length) onward.hidden = false;
  }
  const lead = (question) => { if (onward && answered.add(question).size === questions.length) onward.hidden = false; };

  // A recall asks anew; elsewhere the answers of last time stand there.
  const answersOf = (question) => `course-answers/${question.dataset.key}`;
  const rememberAnswers = (question) => {
    const places = [...question.querySelectorAll("input")].flatMap(({ checked }, i) => (checked ? [i] : []));
    if (!recall) store(answersOf(question), JSON.stringify(places));
  };
  let restoring = false; // what was wrong then is not missed again
  const restoreAnswers = (question) => {
    if (recall) return;
    restoring = true;
    const inputs = [...question.querySelectorAll("input")];
    for (const place of JSON.parse(stored(answersOf(question)) ?? "[]")) {
      if (!inputs[place]) continue; // the quiz has changed since
      inputs[place].checked = true;
      inputs[place].dispatchEvent(new Event("change", { bubbles: true }));
    }
    restoring = false;
  };

  questions.forEach((question, place) => {
    const answers = [...question.querySelectorAll("label")];
    const chosen = (answer) => answer.querySelector("input").checked;
    const reason = add(question, "p", { className: "reason", ariaLive: "polite" });
    let judged = false; // by the first answer
    question.querySelectorAll("input").forEach(keep);
    question.addEventListener("change", ({ target }) => {
      const key = JSON.parse(question.dataset.answers);
      const isRight = (answer) => key[answers.indexOf(answer)][0];
      const right = answers.filter(isRight);
      for (const answer of answers) answer.className = !chosen(answer) ? "" : isRight(answer) ? "right" : "wrong";
      const answer = target.closest("label");
      answer.after(reason);
      reason.className = `reason ${answer.className}`;
      reason.innerHTML = chosen(answer) ? key[answers.indexOf(answer)][1] : "";
      rememberAnswers(question);
      if (right.length > 1 && chosen(answer)) reason.append(` (${right.filter(chosen).length} of ${right.length} found.)`);
      if (judged) return;
      if (answer.className === "wrong" && !restoring) note(question);
      else if (recall && right.every(chosen)) forget(question);
      judged = answer.className === "wrong" || right.every(chosen);
      if (!judged) return;
      if (dots.length) dots[place].className = answer.className;
      lead(question);
    });
    restoreAnswers(question);
  });
  const next = dots.findIndex((dot) => !dot.className);
  if (next > 0) dots[next].click();

  // Another way is chosen on the map: the quiz begins again.
  addEventListener("cu-way", () => {
    if (!quiz.isConnected) return;
    quiz.replaceWith(untouched);
    enliven(untouched);
  }, { once: true });
}

for (const quiz of document.querySelectorAll(".course-quiz:not([data-ready])")) enliven(quiz);
