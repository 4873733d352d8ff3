// One explorer in a page: its controls choose a frame, which lies over the stage's background.
(() => {
  const form = document.currentScript.closest("form");
  const stage = form.querySelector(".cu-stage");
  const caption = form.querySelector(".cu-caption");
  const frames = JSON.parse(form.querySelector("script[type='application/json']").textContent);
  const groups = [...form.querySelectorAll("[data-count]")];

  const position = (group) => {
    const input = group.querySelector("input:checked, input[type=range], select");
    return input ? Number(input.value) : 0; // an unticked box is the first value: off
  };
  const images = frames.map(({ alt }) => Object.assign(new Image(), { alt, width: stage.dataset.width, height: stage.dataset.height }));
  const load = (index) => {
    const image = images[index];
    if (!image.src) image.src = "data:image/webp;base64," + frames[index].webp;
    return image.decode();
  };

  let wanted = null;
  const show = () => {
    let index = 0;
    for (const group of groups) index = index * Number(group.dataset.count) + position(group);
    for (const group of form.querySelectorAll(".cu-slider")) {
      const range = group.querySelector("input");
      const text = JSON.parse(range.dataset.texts)[range.value];
      group.querySelector("output").textContent = text;
      range.setAttribute("aria-valuetext", text);
    }
    wanted = index;
    load(index).then(() => {
      if (wanted !== index) return; // a newer value came while this one was decoded
      stage.replaceChildren(images[index]);
      caption.textContent = frames[index].alt;
    });
  };
  form.addEventListener("input", show);
  form.addEventListener("submit", (event) => event.preventDefault());

  // Decode every frame before it is asked for, when the reader comes near and the browser is idle.
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 50));
  const preload = (index) => {
    if (index < images.length) load(index).finally(() => idle(() => preload(index + 1)));
  };
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    idle(() => preload(0));
  }, { rootMargin: "600px" }).observe(form);
})();
