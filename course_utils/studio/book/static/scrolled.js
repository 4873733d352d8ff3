// A part of the page that is wider than its room takes the focus, so that the arrow keys scroll it, too, and has a shade
// at the edge behind which there is more. On paper, what explains is open: all
// folds but hints, solutions, and the code of pictures.
(() => {
  "use strict";
  const WIDE = "article :is(.cu-figure, pre, .output, .table-wrapper, .pst-scrollable-table-container, mjx-container)";
  const settle = (part) => {
    const scrolls = part.scrollWidth > part.clientWidth && getComputedStyle(part).overflowX !== "visible";
    if (scrolls && !("scrolled" in part.dataset)) {
      part.dataset.scrolled = part.matches("[tabindex]") ? "" : "focus"; // MathJax gives formulas the focus itself
      part.tabIndex = 0;
    } else if (!scrolls && "scrolled" in part.dataset) {
      if (part.dataset.scrolled) part.removeAttribute("tabindex");
      delete part.dataset.scrolled;
    }
  };
  const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => settle(target)));
  const watch = (root) => root.querySelectorAll(WIDE).forEach((part) => observer.observe(part));
  const set = new MutationObserver((changes) => changes.forEach(({ target }) => watch(target))); // formulas come late
  document.addEventListener("DOMContentLoaded", () => {
    watch(document);
    document.querySelectorAll("article .math").forEach((formula) => set.observe(formula, { childList: true }));
  });

  let opened = [];
  addEventListener("beforeprint", () => {
    opened = [...document.querySelectorAll("article details:not([open], .cu-links *, .tag_hide-input > *)")];
    opened.forEach((fold) => { fold.open = true; });
  });
  addEventListener("afterprint", () => opened.forEach((fold) => { fold.open = false; }));
})();
