// The state of a widget in the address of the page: "#live=translator.0&sentence=he's calm .&step=2" is the first
// translator of the page with these values in its named controls. "&hide=search,kind" hides controls: a teacher's link.
// Only in the book: there boot.js gives each form its name, `data-address`.
globalThis.live_address = (() => {
  "use strict";
  const LONGEST = 2000; // characters of one value
  const asked = () => new URLSearchParams(location.hash.slice(1));
  const OTHERS = /button|file|submit|output|fieldset/;
  const chosen = (form) => [...form.elements].filter(({ name, type }) => name && !OTHERS.test(type));
  const names = (form) => [...new Set(chosen(form).map(({ name }) => name))];
  const controls = (form, name) => [...form.elements].filter((control) => control.name === name);

  // The value of a control, and whether a new one was taken: one that is no choice is not.
  const read = (form, name) => {
    const control = form.elements[name];
    return control.type === "checkbox" ? String(Number(control.checked)) : control.value;
  };

  function write(form, name, value) {
    const control = form.elements[name];
    const before = read(form, name);
    if (value === before || value.length > LONGEST) return false;
    if (control.type === "checkbox") control.checked = value === "1";
    else if (!control.options || [...control.options].some((option) => option.value === value)) control.value = value;
    if (control.maxLength > 0) control.value = control.value.slice(0, control.maxLength);
    return read(form, name) !== before;
  }

  // What is around a control; a hidden one stands before what is clicked.
  const around = (control) => ({
    hidden: () => control.nextElementSibling,
    radio: () => control.closest("fieldset"),
  })[control.type]?.() ?? control.closest("label") ?? control;

  function hide(form, wanted) {
    for (const name of names(form)) {
      for (const control of controls(form, name)) around(control).toggleAttribute("data-away", wanted.includes(name));
    }
  }

  const first = new Map(); // form → [name, value] of its controls before an address or a reader changed one

  // The state that the address asks for, if it names this form; what it does not name is as it was first. What can't be
  // drawn is taken back.
  function restore(form, draw) {
    const wanted = asked();
    if (wanted.get("live") !== form.dataset.address) return false;
    const before = names(form).map((name) => [name, read(form, name)]);
    const fill = (values) => values.map(([name, value]) => write(form, name, value)).includes(true);
    const named = names(form).filter((name) => wanted.has(name));
    const values = named.map((name) => [name, wanted.get(name)]);
    try {
      fill(first.get(form));
      fill(values);
      draw(undefined, named);
      if (fill(values)) draw(undefined, named); // a range may have grown
    } catch {
      const all = names(form);
      fill(before);
      draw(undefined, all);
      if (fill(before)) draw(undefined, all);
    }
    hide(form, (wanted.get("hide") ?? "").split(","));
    form.scrollIntoView();
    return true;
  }

  // It names what is not as it was first.
  function link(form) {
    const state = new URLSearchParams({ live: form.dataset.address });
    const isAway = (control) => around(control).hasAttribute("data-away");
    const away = names(form).filter((name) => controls(form, name).some(isAway));
    for (const [name, value] of first.get(form)) if (read(form, name) !== value) state.set(name, read(form, name));
    if (away.length) state.set("hide", away.join(","));
    return `${location.href.split("#")[0]}#${state}`;
  }

  // "Copy link", and where the clipboard is not allowed, the link to copy by hand.
  function offer(form) {
    const line = document.createElement("p");
    line.className = "cu-live-link";
    line.innerHTML = '<button type="button">Copy link</button> <span role="status"></span>';
    const [button, said] = line.children;
    const field = Object.assign(document.createElement("input"), { type: "text", readOnly: true });
    field.setAttribute("aria-label", "Link to what is shown");
    button.addEventListener("click", async () => {
      field.value = link(form);
      try {
        await navigator.clipboard.writeText(field.value);
        field.remove();
        said.textContent = "Copied: the link opens this page as it is now.";
      } catch {
        said.textContent = "Copy it from here:";
        line.append(field);
        field.select();
      }
    });
    const closer = form.querySelector(".cu-live-closer");
    if (closer) closer.before(line);
    else form.querySelector("fieldset").append(line);
  }

  // Gives the form its button, and its state when the address asks for one: then true.
  function connect(form, draw) {
    if (!form.dataset.address) return false;
    first.set(form, names(form).map((name) => [name, read(form, name)]));
    offer(form);
    addEventListener("hashchange", () => restore(form, draw));
    return restore(form, draw);
  }

  return { connect, link };
})();
