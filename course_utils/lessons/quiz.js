// A quiz: an answer is marked, and its reason shown, as soon as it is chosen.
for (const quiz of document.querySelectorAll(".course-quiz:not([data-ready])")) {
  quiz.dataset.ready = "true";
  quiz.querySelector(".plain").remove();
  quiz.addEventListener("submit", (event) => event.preventDefault());
  for (const question of quiz.querySelectorAll("fieldset")) {
    const reason = question.querySelector(".reason");
    const answers = [...question.querySelectorAll("label")];
    const right = answers.filter((answer) => answer.dataset.correct);
    const chosen = (answer) => answer.querySelector("input").checked;
    for (const answer of answers) answer.querySelector("input").dataset.lmSuppressShortcuts = "true"; // keys are not for Lab
    question.addEventListener("change", ({ target }) => {
      for (const answer of answers) answer.className = !chosen(answer) ? "" : answer.dataset.correct ? "right" : "wrong";
      const answer = target.closest("label");
      reason.className = `reason ${answer.className}`;
      reason.innerHTML = chosen(answer) ? answer.dataset.why : "";
      if (right.length > 1 && chosen(answer)) reason.append(` (${right.filter(chosen).length} of ${right.length} found.)`);
    });
  }
}
