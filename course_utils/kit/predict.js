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

// What a prediction's section says after it that may give the answer away: from the first result on, or everything where
// there is no result. A section ends at a heading, which in Lab stands among the text of a cell, or at the next prediction.
// `seen` knows of Lab's cells which of them a reader has added, the text of each and the cell after it, because Lab renders a
// text late, and not while it is edited, and may take a cell that is far away off the page. What comes after a text that was
// never rendered is unknown. An exercise and its report are the reader's own.
function answersBelow(cell, seen) {
  const parts = [];
  let isWhole = !cell.matches(".jp-Cell");
  const isEnd = (part) => part.matches("section, h1, h2, h3, h4") || part.querySelector(".cu-predict");
  walk: for (let next = after(cell, seen); next; next = after(next, seen)) {
    if (next.matches(".cu-moved, .tag_exercise, .tag_check") || next.querySelector(".course-quiz")) continue;
    if ((seen.hers.has(next) && !isEnd(next)) || isCheck(next) || isCheck(after(next, seen))) continue;
    const rendered = next.querySelector(".jp-RenderedMarkdown")?.children ?? [];
    if (rendered.length) seen.texts.set(next, [...rendered]);
    if (next.matches(".jp-MarkdownCell") && !seen.texts.has(next)) break;
    for (const part of seen.texts.get(next) ?? [next]) {
      if (isEnd(part)) {
        isWhole = true;
        break walk;
      }
      parts.push(part);
    }
  }
  const first = parts.findIndex(isResult);
  if (first < 0 && !isWhole) return []; // a result may come
  return parts.filter((part, i) => i >= first || part.matches(".cu-claim"));
}
function after(cell, { following }) {
  const next = cell.nextElementSibling;
  const place = ({ dataset }) => Number(dataset.windowedListIndex ?? NaN);
  const isFar = next && place(next) - place(cell) > 1; // what comes between is off the page
  if (next && !isFar) following.set(cell, next);
  return following.get(cell);
}
const isCheck = (cell) => Boolean(cell?.matches(".jp-CodeCell") && cell.querySelector(".cu-report"));
const isResult = (part) =>
  part.matches(".jp-CodeCell, table, .pst-scrollable-table-container") || Boolean(part.querySelector(".cell_output"));

// The one of these to which the address leads: to its model or explorer in some state, or, from the search, to its section.
function askedFor(parts) {
  const asked = globalThis.cu_address?.() ?? new URLSearchParams(location.hash.slice(1));
  const [, name, place] = /^(.*)\.(\d+)$/.exec(asked.get("explorer")) ?? [];
  const target = name ? document.querySelectorAll(`form[data-explorer="${CSS.escape(name)}"]`)[place]
    : asked.has("live") ? document.querySelector(`[data-address="${CSS.escape(asked.get("live"))}"]`)
      : location.search === "?found" && document.getElementById(decodeURIComponent(location.hash.slice(1)));
  return target && parts.find((part) => part.contains(target) || part.closest("section") === target);
}

for (const form of document.querySelectorAll(".cu-predict:not([data-ready])")) {
  form.dataset.ready = "true";
  form.querySelector(".cu-refused")?.remove(); // this script runs
  const task = JSON.parse(form.dataset.task);
  const answers = form.querySelector(".answers");
  const reply = form.querySelector(".said");
  const field = form.querySelector("[type=number]");
  const handle = form.querySelector("[type=range]");
  const name = `course-predict/${form.querySelector("legend").textContent}`;
  const remember = (guess) => { try { localStorage.setItem(name, JSON.stringify(guess)); } catch {} }; // a private window may refuse
  const remembered = () => { try { return JSON.parse(localStorage.getItem(name)); } catch { return null; } };
  const showMe = Object.assign(document.createElement("button"), { type: "button", className: "show-me", textContent: "Show me" });
  answers.append(showMe);
  for (const control of form.querySelectorAll("input, button")) {
    control.disabled = false;
    control.dataset.lmSuppressShortcuts = "true"; // its keys are not for Lab
  }

  // Until then a veil lies over the results. Page and notebook are still growing when this runs, and in Lab a cell may be
  // moved, run again or deleted later. So each time the veil is laid anew: where it was and no longer belongs, it is lifted.
  const cell = form.closest(".cell, .jp-Cell");
  const seen = { cells: new WeakSet(), hers: new WeakSet(), texts: new WeakMap(), following: new WeakMap() };
  let veiled = [], isOpen = false;
  // Lab attaches the cells of a notebook one after the other. A cell that comes between them is a reader's.
  function meet() {
    let isLast = true;
    for (const each of [...(cell.parentElement?.querySelectorAll(":scope > .jp-Cell") ?? [])].reverse()) {
      if (seen.cells.has(each)) isLast = false;
      else if (!isLast && !each.matches(".jp-mod-rendered")) seen.hers.add(each);
      seen.cells.add(each);
    }
  }
  function veil() {
    meet();
    if (!isOpen && !(cell.isConnected && cell.contains(form))) lift(); // it is deleted, or run again, and another form asks
    const below = isOpen ? [] : answersBelow(cell, seen);
    for (const part of veiled) if (!below.includes(part) && part.veiledBy === form) delete part.dataset.veil;
    for (const part of below) {
      part.veiledBy = form;
      part.dataset.veil = part === below.find(isResult) ? "result" : "more";
    }
    veiled = below;
  }
  const growth = new MutationObserver(veil);
  const notice = document.createElement("p");
  notice.className = "cu-opened";
  notice.textContent = "Your link leads here, so this is open, although the question above it still waits for your guess.";
  function lift() {
    notice.remove();
    growth.disconnect();
    isOpen = true;
    if (cell) veil();
  }
  function follow() {
    const asked = !form.dataset.state && askedFor(answersBelow(cell, seen));
    if (!asked) return;
    lift();
    asked.before(notice); // the question itself may be above the screen
  }

  // The choice by its place or the number, or null for a reader who wants to see the result without a guess.
  function judge(guess) {
    const near = (number, value) => Math.abs(number - value) <= task.within + 1e-12;
    const label = (place) => form.querySelector(`[value="${place}"]`).innerHTML;
    const right = field ? near(guess, task.answer) : guess === task.answer;
    const mistake = field && task.known.find(([value]) => near(guess, value));
    const reason = !field ? task.reasons[guess] : mistake ? mistake[1] : guess < task.answer ? task.less : task.more;
    const answer = `${field ? task.answer : label(task.answer)}. ${task.why}`;
    form.dataset.state = guess === null ? "shown" : right ? "right" : "wrong";
    reply.innerHTML = guess === null ? `<p>${answer}</p>` : right ? `<p>Right. ${task.why}</p>`
      : `<p>Not quite. ${reason}</p><details><summary>The answer, and why</summary><p>${answer}</p></details>`;
    if (guess === null) showMe.remove();
    else answers.innerHTML = `<span>${field ? guess : label(guess)}</span>`;
    for (const summary of reply.querySelectorAll("summary")) summary.dataset.lmSuppressShortcuts = "true";
    lift();
  }

  function commit(guess) {
    judge(guess);
    remember(guess ?? "shown");
    const toy = task.shows && toyOf(form, Object.keys(task.shows));
    if (toy) {
      move(toy, task.shows);
      reply.insertAdjacentHTML("beforeend", '<p><button type="button">See it move</button></p>');
      reply.lastChild.firstChild.addEventListener("click", () => toy.scrollIntoView({ block: "center", behavior: "smooth" }));
    }
    reply.focus({ preventScroll: true });
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    commit(field ? field.valueAsNumber : Number(event.submitter.value));
  });
  showMe.addEventListener("click", () => commit(null));
  handle?.addEventListener("input", () => { field.value = Number(handle.valueAsNumber.toPrecision(3)); });
  field?.addEventListener("input", () => { handle.value = field.value; });
  field?.addEventListener("keydown", (event) => {
    if (event.key !== "Enter") return;
    event.preventDefault(); // in a browser Enter sends the form; inside a notebook Lab lets nothing happen
    form.requestSubmit();
  });
  const before = remembered();
  const isKnown = before !== null && (before === "shown" || field || task.reasons[before] !== undefined);
  if (isKnown) judge(before === "shown" ? null : before);
  if (form.dataset.state || !cell) continue;
  veil();
  growth.observe(cell.parentElement, { childList: true, subtree: true });
  addEventListener("load", veil);
  for (const event of ["load", "hashchange"]) addEventListener(event, follow);
}
