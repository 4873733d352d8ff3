(() => {
  const form = document.currentScript.parentElement.querySelector("form.cu-live:not([data-met])");
  form.dataset.met = "true";
  const known = (globalThis.live_loading ??= {}); // a script that two widgets need is loaded once
  const load = (src) => (known[src] ??= new Promise((done, fail) => {
    document.head.append(Object.assign(document.createElement("script"), { src, onload: done, onerror: fail }));
  }));
  const start = async () => {
    for (const src of SOURCES) await load(src);
    globalThis.live_widgets[KIND](form, ...MODELS.map((name) => globalThis.live_bundles[name]));
  };
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    start();
  }, { rootMargin: "1000px" }).observe(form);
})();
