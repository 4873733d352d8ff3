// A question before a result. The reader commits to a choice or a number, and only then the page opens what it says.
// Afterwards the model or explorer nearby moves to what was asked for.

// The controls of a live model by name, of an explorer by label: [name, its inputs].
const controls = (toy) => toy.matches(".cu-live")
  ? [...toy.elements].filter(({ name }) => name).map(({ name }) => [name, [...toy.elements].filter((each) => each.name === name)])
  : [...toy.querySelectorAll("[data-count]")].map((group) => [
    group.querySelector(".cu-label, legend").textContent.trim(),
    [...group.querySelectorAll("input, select")],
  ]);

function put(inputs, wanted) {
  const text = String(wanted);
  const first = inputs[0];
  const chosen = first.type !== "radio" ? first : inputs.find((each) => [each.value, each.parentElement.textContent.trim()].includes(text));
  if (chosen.matches("[type=radio], [type=checkbox]")) chosen.checked = Boolean(wanted);
  else chosen.value = chosen.dataset.texts ? JSON.parse(chosen.dataset.texts).indexOf(text) : text;
  for (const kind of ["input", "change"]) chosen.dispatchEvent(new Event(kind, { bubbles: true }));
}

function toyOf(form, names) {
  const has = (toy) => names.every((name) => controls(toy).some(([known]) => known === name));
  const toys = [...document.querySelectorAll("form.cu-live, form[data-explorer]")].filter(has);
  return toys.find((toy) => form.compareDocumentPosition(toy) & Node.DOCUMENT_POSITION_FOLLOWING) ?? toys.at(-1);
}

// A live model that nobody has come near yet has to be loaded first.
function move(toy, state) {
  const go = () => { for (const [name, wanted] of Object.entries(state)) put(controls(toy).find(([known]) => known === name)[1], wanted); };
  if (!toy.matches(".cu-live") || toy.dataset.ready) return go();
  new MutationObserver((_, observer) => {
    if (!toy.dataset.ready) return;
    observer.disconnect();
    go();
  }).observe(toy, { attributes: true });
}

for (const form of document.querySelectorAll(".cu-predict:not([data-ready])")) {
  form.dataset.ready = "true";
  const asked = form.querySelector(".answers");
  const said = form.querySelector(".said");
  const field = form.querySelector("[type=number]");
  const handle = form.querySelector("[type=range]");
  for (const control of form.querySelectorAll("input, button")) {
    control.disabled = false;
    control.dataset.lmSuppressShortcuts = "true"; // its keys are not for Lab
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const task = JSON.parse(form.dataset.task);
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
    const toy = task.shows && toyOf(form, Object.keys(task.shows));
    if (toy) {
      move(toy, task.shows);
      said.insertAdjacentHTML("beforeend", '<p><button type="button">See it move</button></p>');
      said.lastChild.firstChild.addEventListener("click", () => toy.scrollIntoView({ block: "center", behavior: "smooth" }));
    }
    for (const summary of said.querySelectorAll("summary")) summary.dataset.lmSuppressShortcuts = "true";
    said.focus({ preventScroll: true });
  });
  handle?.addEventListener("input", () => { field.value = Number(handle.valueAsNumber.toPrecision(3)); });
  field?.addEventListener("input", () => { handle.value = field.value; });
  field?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // in a browser Enter sends the form; inside a notebook Lab lets nothing happen
    form.requestSubmit();
  });
}
