// A part of the page that is wider than its room takes the focus, so that the arrow keys scroll it, too.
(() => {
  "use strict";
  const WIDE = "article :is(.cu-figure, pre, .output, .table-wrapper, mjx-container)";
  const settle = (part) => {
    const scrolls = part.scrollWidth > part.clientWidth && getComputedStyle(part).overflowX !== "visible";
    if (scrolls && !part.matches("[tabindex]")) {
      part.tabIndex = 0;
      part.dataset.scrolled = "";
    } else if (!scrolls && "scrolled" in part.dataset) {
      part.removeAttribute("tabindex");
      delete part.dataset.scrolled;
    }
  };
  const observer = new ResizeObserver((entries) => entries.forEach(({ target }) => settle(target)));
  document.addEventListener("DOMContentLoaded", () => document.querySelectorAll(WIDE).forEach((part) => observer.observe(part)));
})();
