// Brings an empty form to life: what it shows first, then all that a reader does. models: names of the bundles that it
// is given.
globalThis.live_begin = (form, models, options) => {
  const { state, html, mount } = globalThis.live_widgets[form.dataset.live];
  const given = models.map((name) => globalThis.live_bundles[name]);
  form.querySelector(".cu-live-note")?.remove(); // it says that nothing answers yet
  form.querySelector("fieldset").innerHTML = html(state(given, options));
  mount(form, given);
};
