// A tour of a widget: cards one after the other. A card opens what it speaks of, marks it, and may set a task.
//
// A card: { title, text, mark, open, task, done }. mark: a CSS selector of parts of the form; open: name → value of
// controls; task: a sentence; done: form → whether it is done. The number of the card stands in the control `tour`.
globalThis.live_tour = (() => {
  "use strict";
  const { OURS } = globalThis.live_parts;
  const button = (action, text) => `<button type="button" ${OURS} data-tour="${action}">${text}</button>`;

  // Where it begins.
  const place = () => `<p><input type="hidden" name="tour" value="">${button("1", "Take the tour")}</p>`;

  function tour(form, cards) {
    const begin = form.querySelector("[name=tour]").parentElement;
    const box = document.createElement("section");
    box.className = "cu-live-tour";
    box.setAttribute("aria-label", "Tour");
    box.hidden = true;
    box.innerHTML = '<strong tabindex="-1"></strong><p></p><p data-task=""></p><p role="status"></p>' +
      button("back", "Back") + button("next", "Next") + button("", "Leave");
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
      const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
      part?.scrollIntoView({ block: "nearest", behavior: calm ? "auto" : "smooth" });
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

    form.addEventListener("click", ({ target }) => {
      const asked = target.closest("[data-tour]")?.dataset.tour;
      if (asked === undefined) return;
      const number = Number(control.value);
      write("tour", { back: String(number - 1), next: String(number + 1) }[asked] ?? asked);
      if (asked === "") begin.lastElementChild.focus();
    });
    form.addEventListener("keydown", (event) => {
      if (event.key !== "Escape" || box.hidden) return;
      write("tour", "");
      begin.lastElementChild.focus();
      event.stopPropagation();
    });
    return { draw };
  }

  return Object.assign(tour, { place });
})();
