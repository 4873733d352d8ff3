// A question before a result. The reader commits to a choice or a number, and only then the page opens what it says.
for (const form of document.querySelectorAll(".cu-predict:not([data-ready])")) {
  form.dataset.ready = "true";
  const asked = form.querySelector(".answers");
  const said = form.querySelector(".said");
  const field = form.querySelector("input");
  for (const control of form.querySelectorAll("input, button")) {
    control.disabled = false;
    control.dataset.lmSuppressShortcuts = "true"; // its keys are not for Lab
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const task = unseal(form.dataset.sealed);
    const near = (number, value) => Math.abs(number - value) <= task.within + 1e-12;
    const choice = event.submitter;
    const given = field ? field.valueAsNumber : Number(choice.value);
    const right = field ? near(given, task.answer) : given === task.answer;
    const known = field && task.known.find(([value]) => near(given, value));
    const reason = !field ? task.reasons[given] : known ? known[1] : given < task.answer ? task.less : task.more;
    const answer = field ? task.answer : form.querySelector(`[value="${task.answer}"]`).innerHTML;
    const words = field ? given : choice.innerHTML;
    form.dataset.state = right ? "right" : "wrong";
    asked.innerHTML = `<span>${words}</span>`;
    said.innerHTML = right ? `<p>Right. ${task.why}</p>`
      : `<p>Not quite. ${reason}</p><details><summary>The answer, and why</summary><p>${answer}. ${task.why}</p></details>`;
    for (const summary of said.querySelectorAll("summary")) summary.dataset.lmSuppressShortcuts = "true";
    said.focus({ preventScroll: true });
  });
  field?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // in a browser Enter sends the form; inside a notebook Lab lets nothing happen
    form.requestSubmit();
  });
}
