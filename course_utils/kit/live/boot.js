// Brings the widget before this script to life, as soon as a reader comes near. kind: of widget; models: the names of its
// bundles; sources: the scripts that it needs, the bundles among them; folder: where other bundles are.
(kind, models, sources, folder) => {
  const form = document.currentScript.parentElement.querySelector("form.cu-live:not([data-met])");
  form.dataset.met = "true";
  const asleep = form.querySelector(".cu-refused");
  asleep?.remove(); // this script runs
  const same = [...document.querySelectorAll(`form[data-live="${kind}"]`)];
  form.dataset.address = `${kind}.${same.indexOf(form)}`;
  const NEAR = 1000; // pixels from what is seen
  const known = (globalThis.live_loading ??= {}); // a script that two widgets need is loaded once
  const load = (src) => (known[src] ??= new Promise((done, fail) => {
    const script = document.createElement("script"); // all are asked for at once, and run in this order
    document.head.append(Object.assign(script, { src, async: false, onload: done, onerror: fail }));
  }));
  globalThis.live_load = (name) => load(`${folder}/${name}.js`); // a bundle that is needed later
  const start = async () => {
    try {
      await Promise.all(sources.map(load));
    } catch {
      asleep.textContent = "Nothing answers here, because its files could not be loaded. Load the page again.";
      return form.querySelector("fieldset").before(asleep);
    }
    globalThis.live_widgets[kind].mount(form, models.map((name) => globalThis.live_bundles[name]));
  };
  const observer = new IntersectionObserver((entries) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    start();
  }, { rootMargin: `${NEAR}px` });
  // What is near from the beginning is loaded at once, while the browser paints the page.
  const { top, height } = form.getBoundingClientRect();
  if (height && top < innerHeight + NEAR) start();
  else observer.observe(form);
  const asked = () => globalThis.cu_address().get("live") === form.dataset.address;
  const come = () => asked() && form.scrollIntoView(); // then it is near
  for (const event of ["hashchange", "load"]) addEventListener(event, come);
  come();
}
