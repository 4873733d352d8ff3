// A model at several steps of its training: a control `checkpoint` chooses among them, the last is the trained model. Of
// the others the weights are loaded when a reader asks for them.
globalThis.live_checkpoints = (() => {
  "use strict";
  const { slider: range, partsOf } = globalThis.live_parts;
  const DIGITS = { minimumFractionDigits: 1, maximumFractionDigits: 1 };

  // What is shown beside the control.
  function named({ steps, loss }) {
    const after = steps ? `${steps.toLocaleString("en")} steps` : "untrained";
    return `${after}, perplexity ${Math.exp(loss).toLocaleString("en", DIGITS)}`;
  }

  // The control; it stands at the end.
  function slider({ checkpoints }, label = "Trained for") {
    const [last, name] = [checkpoints.length - 1, named(checkpoints.at(-1))];
    const attributes = `name="checkpoint" min="0" max="${last}" value="${last}" aria-valuetext="${name}"`;
    return range(label, attributes, "checkpoint", name, "cu-live-step");
  }

  // Follows the control of a form; `make` makes a model of a bundle.
  function chosen(form, trained, make) {
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

    // The chosen model; null as long as it is loaded, and then `ready` is called.
    return (ready) => {
      const place = Number(control.value);
      const name = named(trained.checkpoints[place]);
      control.setAttribute("aria-valuetext", name);
      partsOf(form).part("checkpoint").textContent = models[place] ? name : "loading …";
      if (!models[place]) load(place).then(ready);
      return models[place];
    };
  }

  return { slider, chosen };
})();
