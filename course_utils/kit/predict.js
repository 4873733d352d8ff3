// A question before a result. The reader commits to a choice or a number and then sees both, and why.
function predict(root, task) {
  const add = (parent, tag, attributes = {}, html = "") => {
    const node = parent.appendChild(document.createElement(tag));
    for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
    node.innerHTML = html;
    return node;
  };
  const plain = root.querySelector(".cu-plain");
  if (!plain) return; // done before
  plain.remove();
  const form = add(root, "form", { autocomplete: "off", novalidate: "" });
  const fields = add(form, "fieldset");
  add(fields, "legend", {}, `Predict: ${task.question}`);
  if (task.choices) {
    task.choices.forEach((choice, i) => {
      const label = add(fields, "label");
      add(label, "input", { type: "radio", name: "choice", value: i });
      add(label, "span", {}, choice);
    });
  } else {
    const label = add(fields, "label", {}, `<span>A number from ${task.low} to ${task.high}</span>`);
    add(label, "input", { type: "number", name: "choice", min: task.low, max: task.high, step: "any" });
  }
  const buttons = add(form, "p");
  add(buttons, "button", { type: "submit" }, "This is my prediction");
  const skip = add(buttons, "button", { type: "button" }, "Skip");
  const said = add(form, "div", { "aria-live": "polite", class: "cu-said" });
  const keep = (nodes) => { for (const node of nodes) node.dataset.lmSuppressShortcuts = "true"; }; // keys are theirs, not Lab's
  keep(form.querySelectorAll("input, button"));

  const known = (number) => task.known.find(([value]) => Math.abs(number - value) <= task.within)?.[1];
  const right = (given) => (task.choices ? given === task.answer : Math.abs(given - task.answer) <= task.within + 1e-12);
  const reason = (given) =>
    task.choices ? task.reasons[given] : known(given) ?? (given < task.answer ? task.less : task.more);
  const shown = (given) => `<strong>${task.choices ? task.choices[given] : given}</strong>`;
  const say = (html, state = "") => {
    said.innerHTML = html;
    said.dataset.state = state;
    keep(said.querySelectorAll("summary"));
  };
  const answer = () => `<p>The answer: ${shown(task.answer)}.</p>
    <details><summary>Why? Say it in your own words, then compare.</summary><p>${task.why}</p></details>`;

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = (new FormData(form).get("choice") ?? "").trim();
    const given = Number(text);
    if (task.choices && !text) say("Choose first, or skip.");
    else if (!task.choices && !(text && given >= task.low && given <= task.high)) say(`Write a number from ${task.low} to ${task.high}, or skip.`);
    else if (right(given)) say(`<p>Your prediction: ${shown(given)}. Right.</p>${answer()}`, "right");
    else say(`<p>Your prediction: ${shown(given)}. ${reason(given)}</p>${answer()}`, "wrong");
  });
  form.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.target.type !== "number") return;
    event.preventDefault(); // in a browser Enter sends the form; inside a notebook Lab lets nothing happen
    form.requestSubmit();
  });
  skip.addEventListener("click", () => say(answer()));
}
