// A model at several steps of its training: a control `checkpoint` chooses among them, the last is the trained model. Of
// the others the weights are loaded when a reader asks for them.
globalThis.live_checkpoints = (form, trained, make) => {
  "use strict";
  const DIGITS = { minimumFractionDigits: 1, maximumFractionDigits: 1 };
  const control = form.elements.checkpoint;
  if (!control) { // there is no choice
    const model = make(trained);
    return () => model;
  }
  const models = trained.checkpoints.map(() => null);
  models[models.length - 1] = make(trained);

  async function load(place) {
    const { model } = trained.checkpoints[place];
    if (!globalThis.live_bundles[model]) await globalThis.live_load(model);
    models[place] = make({ ...trained, tensors: globalThis.live_bundles[model].tensors });
  }

  // What is shown beside the control.
  function named() {
    const { steps, loss } = trained.checkpoints[control.value];
    const after = steps ? `${steps.toLocaleString("en")} steps` : "untrained";
    return `${after}, perplexity ${Math.exp(loss).toLocaleString("en", DIGITS)}`;
  }

  // The chosen model; null as long as it is loaded, and then `ready` is called.
  return (ready) => {
    const place = Number(control.value);
    const name = named();
    control.setAttribute("aria-valuetext", name);
    form.querySelector('[data-part="checkpoint"]').textContent = models[place] ? name : "loading …";
    if (!models[place]) load(place).then(ready);
    return models[place];
  };
};
