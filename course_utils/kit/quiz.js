// A quiz: an answer is marked, and its reason shown, as soon as it is chosen. What was missed is asked again in a recall.
for (const quiz of document.querySelectorAll(".course-quiz:not([data-ready])")) {
  const name = (question) => `course-quiz/${question.dataset.key}`;
  const missed = (question) => { try { return localStorage.getItem(name(question)) !== null; } catch { return false; } };
  const note = (question) => { try { localStorage.setItem(name(question), "missed"); } catch {} }; // a private window may refuse
  const forget = (question) => { try { localStorage.removeItem(name(question)); } catch {} };
  quiz.dataset.ready = "true";
  quiz.querySelector(".plain").remove();
  quiz.addEventListener("submit", (event) => event.preventDefault());
  const recall = quiz.dataset.kind === "recall";
  if (recall) {
    const all = [...quiz.querySelectorAll("fieldset")];
    const drawn = all.filter((question) => !question.closest("details"));
    const shown = [...all.filter(missed), ...drawn.filter((question) => !missed(question))].slice(0, drawn.length);
    quiz.querySelector("script").before(...shown);
    quiz.querySelector("details")?.remove();
    for (const question of drawn) if (!shown.includes(question)) question.remove();
    for (const question of shown) if (missed(question)) question.querySelector(".source span").textContent = "You missed this question of";
  }
  for (const question of quiz.querySelectorAll("fieldset")) {
    const reason = question.querySelector(".reason");
    const answers = [...question.querySelectorAll("label")];
    const right = answers.filter((answer) => answer.dataset.correct);
    const chosen = (answer) => answer.querySelector("input").checked;
    let judged = false; // by the first answer
    for (const answer of answers) answer.querySelector("input").dataset.lmSuppressShortcuts = "true"; // keys are not for Lab
    question.addEventListener("change", ({ target }) => {
      for (const answer of answers) answer.className = !chosen(answer) ? "" : answer.dataset.correct ? "right" : "wrong";
      const answer = target.closest("label");
      reason.className = `reason ${answer.className}`;
      reason.innerHTML = chosen(answer) ? answer.dataset.why : "";
      if (right.length > 1 && chosen(answer)) reason.append(` (${right.filter(chosen).length} of ${right.length} found.)`);
      if (judged) return;
      if (answer.className === "wrong") note(question);
      else if (recall && right.every(chosen)) forget(question);
      judged = answer.className === "wrong" || right.every(chosen);
    });
  }
}
