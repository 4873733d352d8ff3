// Says what ipywidgets leaves unsaid: its sliders have no name and read out an index, its radio buttons
// are no group, its images have no alt text, and Lab takes their arrow keys and letters for shortcuts.
// Runs when `this`, an empty image, fails to load.
const watch = (tries) => {
  const box = this.closest(".cu-explorer");
  if (!box) return tries && requestAnimationFrame(() => watch(tries - 1));
  const label = (part) => part.querySelector("label").textContent;
  const group = `cu-${Math.random()}`;
  const name = () => {
    for (const part of box.querySelectorAll("[role=slider], select, input")) part.dataset.lmSuppressShortcuts = "true";
    for (const part of box.querySelectorAll(".cu-slider")) {
      const handle = part.querySelector("[role=slider]");
      handle?.setAttribute("aria-label", label(part));
      const readout = part.querySelector(".widget-readout");
      handle?.setAttribute("aria-valuetext", readout.textContent);
      readout.contentEditable = "false"; // ipywidgets lets one type here, and then ignores it
    }
    box.querySelectorAll(".cu-radio").forEach((part, index) => {
      part.setAttribute("role", "radiogroup");
      part.setAttribute("aria-label", label(part));
      for (const radio of part.querySelectorAll("input")) radio.name = `${group}-${index}`;
    });
    const caption = box.querySelector(".cu-caption");
    caption?.setAttribute("aria-live", "polite");
    if (caption) box.querySelector("img.widget-image")?.setAttribute("alt", caption.textContent);
  };
  name();
  new MutationObserver(name).observe(box, { childList: true, characterData: true, subtree: true });
};
watch(300);
