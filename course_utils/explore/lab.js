// Says aloud what ipywidgets leaves unsaid: its sliders have no name and read out an index, its
// radio buttons no common name, its images no alt text. Runs when `this`, an empty image, fails to load.
const watch = (tries) => {
  const box = this.closest(".cu-explorer");
  if (!box) return tries && requestAnimationFrame(() => watch(tries - 1));
  const label = (part) => part.querySelector("label").textContent;
  const name = () => {
    for (const part of box.querySelectorAll(".cu-slider")) {
      const handle = part.querySelector("[role=slider]");
      handle?.setAttribute("aria-label", label(part));
      handle?.setAttribute("aria-valuetext", part.querySelector(".widget-readout").textContent);
    }
    for (const part of box.querySelectorAll(".cu-radio")) {
      part.setAttribute("role", "radiogroup");
      part.setAttribute("aria-label", label(part));
    }
    const caption = box.querySelector(".cu-caption");
    if (caption) box.querySelector("img.widget-image")?.setAttribute("alt", caption.textContent);
  };
  name();
  new MutationObserver(name).observe(box, { childList: true, characterData: true, subtree: true });
};
watch(300);
