// A live form: it follows what a reader moves, and its state can stand in the address of the page.
//
// "#live=translator.0&sentence=he's calm .&step=2" is the first translator of the page with these values in its named
// controls; "&hide=search,kind" hides controls: a teacher's link. Only in the book: there boot.js gives each form its
// name, `data-address`. What reads an address is address.js.

const LONGEST_VALUE = 2000; // characters of a value in an address
const OTHERS = /button|file|submit|output|fieldset/;
const controls = (form, name) => [...form.elements].filter((control) => control.name === name);
const names = (form) =>
  [...new Set([...form.elements].filter(({ name, type }) => name && !OTHERS.test(type)).map(({ name }) => name))];

function valueOf(form, name) {
  const control = form.elements[name];
  return control.type === "checkbox" ? String(Number(control.checked)) : control.value;
}

// Whether a control took another value: it takes none that is no choice of it.
function assign(form, name, value) {
  const control = form.elements[name];
  const before = valueOf(form, name);
  if (!/^text/.test(control.type)) value = value.replace(/\.+$/, ""); // a mail took the end of a sentence into the link
  if (value === before || value.length > LONGEST_VALUE) return false;
  if (control.type === "checkbox") control.checked = value === "1";
  else if (!control.options || [...control.options].some((option) => option.value === value)) control.value = value;
  if (control.maxLength > 0) control.value = control.value.slice(0, control.maxLength);
  return valueOf(form, name) !== before;
}

// What is hidden with a control; a hidden one stands before what is clicked.
const around = (control) => ({
  hidden: () => control.nextElementSibling,
  radio: () => control.closest("fieldset"),
})[control.type]?.() ?? control.closest("label") ?? control;

const first = new Map(); // form → [name, value] of its controls before an address or a reader changed one

// The state that the address asks for, if it names this form; what it does not name is as it was first. What can't be
// drawn is taken back.
function restore(form, draw) {
  const wanted = globalThis.cu_address();
  if (wanted.get("live") !== form.dataset.address) return false;
  const every = names(form);
  const before = every.map((name) => [name, valueOf(form, name)]);
  const fill = (values) => values.map(([name, value]) => assign(form, name, value)).includes(true);
  const drawWith = (values) => {
    const filled = values.map(([name]) => name);
    fill(values);
    draw(undefined, filled);
    if (fill(values)) draw(undefined, filled); // a range may have grown
  };
  try {
    fill(first.get(form));
    drawWith(every.filter((name) => wanted.has(name)).map((name) => [name, wanted.get(name)]));
  } catch {
    drawWith(before);
  }
  const hidden = (wanted.get("hide") ?? "").split(",");
  for (const name of every) {
    for (const control of controls(form, name)) around(control).toggleAttribute("data-away", hidden.includes(name));
  }
  form.scrollIntoView();
  return true;
}

// The address of what is shown: it names what is not as it was first.
function link(form) {
  const state = new URLSearchParams({ live: form.dataset.address });
  for (const [name, value] of first.get(form)) if (valueOf(form, name) !== value) state.set(name, valueOf(form, name));
  const isAway = (control) => around(control).hasAttribute("data-away");
  const away = names(form).filter((name) => controls(form, name).some(isAway));
  if (away.length) state.set("hide", away.join(","));
  return `${location.href.split("#")[0]}#${state}`;
}

// "Copy link to what you see", and where the clipboard is not allowed, the link to copy by hand.
function offerLink(form) {
  const line = document.createElement("p");
  line.className = "cu-live-link";
  line.innerHTML = '<button type="button">Copy link to what you see</button> <span role="status"></span>';
  const [copy, status] = line.children;
  const field = Object.assign(document.createElement("input"), { type: "text", readOnly: true });
  field.setAttribute("aria-label", "Link to what is shown");
  copy.addEventListener("click", async () => {
    field.value = link(form);
    try {
      await navigator.clipboard.writeText(field.value);
      field.remove();
      status.textContent = "Copied: the link opens this page as it is now.";
    } catch {
      status.textContent = "Copy it from here:";
      line.append(field);
      field.select();
    }
  });
  const closer = form.querySelector(".cu-live-closer");
  if (closer) closer.before(line);
  else form.querySelector("fieldset").append(line);
}

// What does not fit into a field is left out: that is said.
function sayLimits(form) {
  for (const field of form.querySelectorAll("[maxlength]")) {
    const status = document.createElement("small");
    status.setAttribute("role", "status");
    (field.closest("label") ?? field).after(status);
    field.addEventListener("beforeinput", ({ data }) => {
      const length = field.value.length - (field.selectionEnd - field.selectionStart) + (data ?? "").length;
      status.textContent = length <= field.maxLength ? "" : `At most ${field.maxLength} characters: the rest is left out.`;
    });
  }
}

// Gives a control a value as if a reader had.
function setControl(form, name, value) {
  form.elements[name].value = value;
  controls(form, name)[0].dispatchEvent(new Event("input", { bubbles: true }));
}

// What a click does, by the names of a button's data: { example: (value, button) => … }.
function clicks(form, acts, buttons = "button") {
  form.addEventListener("click", ({ target }) => {
    const clicked = target.closest(buttons);
    for (const [name, value] of Object.entries(clicked?.dataset ?? {})) acts[name]?.(value, clicked);
  });
}

// Wakes a form in its first state. All that a reader chooses stands in named controls, a map in a hidden one: `draw` is
// told the name of the one that changed, or undefined and the names that an address has filled. Gives what sets one.
function follow(form, draw) {
  const set = (name, value) => setControl(form, name, value);
  form.addEventListener("submit", (event) => event.preventDefault());
  sayLimits(form);
  form.addEventListener("input", ({ target: { name, value } }) => {
    if (!name) return;
    if (name === "map") {
      for (const each of form.querySelectorAll("[data-map]")) each.setAttribute("aria-pressed", each.dataset.map === value);
    }
    draw(name);
  });
  clicks(form, { map: (place) => set("map", place) });
  if (form.dataset.address) {
    first.set(form, names(form).map((name) => [name, valueOf(form, name)]));
    offerLink(form);
    addEventListener("hashchange", () => restore(form, draw));
    restore(form, draw);
  }
  form.querySelector("fieldset").disabled = false;
  form.dataset.ready = "true";
  return set;
}

// The controls of a form, and its parts by their names: `show` fills one with HTML, `write` with text, `put` sets
// attributes. `say`: the value of a control in words.
function partsOf(form) {
  const part = (name) => form.querySelector(`[data-part="${name}"]`);
  const show = (name, html) => { part(name).innerHTML = html; };
  const write = (name, text) => { part(name).textContent = text; };
  const put = (name, values) => Object.entries(values).forEach(([key, value]) => part(name).setAttribute(key, value));
  const say = (control, name, text) => {
    control.setAttribute("aria-valuetext", text);
    write(name, text);
  };
  return { field: form.elements, part, show, write, put, say };
}

// Steps that are played, and paused, by a button; a reader who is calm sees the end at once. spoken: parts that are
// not read aloud at each step; isLast: whether the step to come is the last one; names: of the button at rest and on.
function player(play, spoken, { step, isLast, end }, pause = 40, names = ["Play", "Pause"]) {
  let timer = null;
  const become = (text, how) => {
    play.textContent = text;
    for (const each of spoken) each.setAttribute("aria-live", how);
  };
  function stop() {
    clearInterval(timer);
    timer = null;
    become(names[0], "polite");
  }
  function go() {
    if (isCalm()) return end();
    become(names[1], "off");
    timer = setInterval(() => {
      if (isLast()) stop();
      step();
    }, pause);
  }
  return { go, stop, isOn: () => timer !== null };
}

// Where a pointer is, in the units of a picture that is so many wide.
const pointed = (picture, width) => ({ clientX, clientY }) => {
  const box = picture.getBoundingClientRect();
  return [clientX - box.left, clientY - box.top].map((far) => (width * far) / box.width);
};

// Calls `drag` while a picture's pointer is down, from where it went down; `end` when it is lifted.
function drags(picture, { down, move, end = () => {} }) {
  picture.addEventListener("pointerdown", (event) => {
    if (down(event) === false) return;
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", move);
  for (const kind of ["pointerup", "pointercancel"]) picture.addEventListener(kind, end);
}

// Brings an empty form to life: what it shows first, then all that a reader does. models: names of the bundles that it
// is given. state, html and mount are those of the widget, whose script follows.
function begin(form, models, options) {
  const bundles = models.map((name) => globalThis.live_bundles[name]);
  form.querySelector(".cu-live-note")?.remove(); // it says that nothing answers yet
  form.querySelector("fieldset").innerHTML = html(state(bundles, options));
  mount(form, bundles);
}

// The same in JupyterLab, for anywidget: `model` holds what `panel` in widget.py hands over, `el` is the place for it.
function render({ model, el }) {
  el.innerHTML = model.get("form");
  Object.assign(globalThis.live_bundles ??= {}, model.get("bundles"));
  begin(el.querySelector("form"), model.get("models"), model.get("options"));
}
