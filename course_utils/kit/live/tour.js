// A tour of a widget: cards one after the other. A card opens what it speaks of, marks it, and may set a task.
//
// A card: { title, text, mark, open, task, done }. mark: a CSS selector of parts of the form; open: name → value of
// controls; task: a sentence; done: form → whether it is done. The number of the card stands in the control `tour`.
globalThis.live_tour = (() => {
  "use strict";
  const { button, input, region, isCalm, clicks } = globalThis.live_parts;
  const to = (number, text) => button(`data-tour="${number}"`, text);

  // What a reader opens to look closer: where the tour begins, more controls, and a map whose numbers explain themselves.
  const closer = (table, controls = "") => `<label class="cu-live-closer">${input("checkbox", 'name="closer"')} \
Look closer</label>
<div class="cu-live-close">
<p><input type="hidden" name="tour" value="">${to("1", "Take the tour")}</p>
${controls}${region("The chosen map", "table", table)}
${globalThis.live_explain.place()}
</div>`;

  function tour(form, cards) {
    const begin = form.querySelector("[name=tour]").parentElement;
    const box = document.createElement("section");
    box.className = "cu-live-tour";
    box.setAttribute("aria-label", "Tour");
    box.hidden = true;
    box.innerHTML = '<strong tabindex="-1"></strong><p></p><p data-task=""></p><p role="status"></p>' +
      to("back", "Back") + to("next", "Next") + to("", "Leave");
    form.querySelector("fieldset").append(box);
    const [title, text, task, status, back, next] = box.children;
    const control = form.elements.tour;
    let shown = "";

    const write = (name, value) => {
      if (form.elements[name].value === value) return;
      form.elements[name].value = value;
      const from = form.elements[name].dispatchEvent ? form.elements[name] : form.querySelector(`[name="${name}"]`);
      from.dispatchEvent(new Event("input", { bubbles: true }));
    };
    const mark = (selector) => {
      form.querySelectorAll(".cu-live-marked").forEach((part) => part.classList.remove("cu-live-marked"));
      const parts = selector ? [...form.querySelectorAll(selector)] : [];
      parts.forEach((part) => part.classList.add("cu-live-marked"));
      return parts[0];
    };

    function open(card, number) {
      for (const [name, value] of Object.entries(card.open ?? {})) write(name, value);
      title.textContent = `${number} of ${cards.length}: ${card.title}`;
      text.textContent = card.text;
      task.textContent = card.task ?? "";
      back.disabled = number === 1;
      next.disabled = number === cards.length;
      const part = mark(card.mark);
      if (part?.closest(".cu-live-close")) form.elements.closer.checked = true;
      title.focus({ preventScroll: true });
      part?.scrollIntoView({ block: "nearest", behavior: isCalm() ? "auto" : "smooth" });
    }

    // Follows the control `tour`, and the task of the card.
    function draw() {
      const card = cards[Number(control.value) - 1];
      box.hidden = !card;
      begin.hidden = Boolean(card);
      if (control.value !== shown) {
        shown = control.value;
        if (card) open(card, Number(shown));
        else mark("");
      }
      const done = Boolean(card?.done?.(form));
      if (status.textContent !== (done ? "Done." : "")) status.textContent = done ? "Done." : "";
    }

    function turn(asked) {
      const number = Number(control.value);
      write("tour", { back: String(number - 1), next: String(number + 1) }[asked] ?? asked);
      if (asked === "") begin.lastElementChild.focus();
    }
    clicks(form, { tour: turn });
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || box.hidden) return;
      turn("");
      event.stopPropagation();
    });
    return { draw };
  }

  // What several tasks ask for: words in a part, and a number above the diagonal of a map.
  const said = (form, name) => form.querySelector(`[data-part="${name}"]`).textContent;
  function isAhead({ elements }) {
    const [query, key] = elements.cell.value.split(".").map(Number);
    return key > query;
  }

  return Object.assign(tour, { closer, said, isAhead });
})();
