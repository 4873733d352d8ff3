// A deck: reveal.js with formulas, and what would not fit its slide made smaller until it does.
window.MathJax = {
  tex: { inlineMath: [["\\(", "\\)"]], displayMath: [["\\[", "\\]"]] },
  svg: { fontCache: "local" },
  options: { enableMenu: false, skipHtmlTags: ["script", "style", "textarea", "pre", "code", "form"] },
  startup: { pageReady: () => MathJax.startup.defaultPageReady().then(begin) },
};

const SMALLEST = 0.55;

function fit(section) {
  const body = section?.querySelector(".body");
  if (!body || body.dataset.fitted) return;
  const over = () => body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1;
  for (let size = 1; over() && size > SMALLEST; size -= 0.05) body.style.zoom = size;
  body.dataset.fitted = "true";
}

function begin() {
  Reveal.on("ready", ({ currentSlide }) => fit(currentSlide));
  Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
  return Reveal.initialize({
    width: 1280, height: 720, margin: 0, center: false, hash: true, slideNumber: "c/t", transition: "none",
    keyboardCondition: (event) => !event.target.closest("form"), pdfSeparateFragments: false, plugins: [RevealNotes],
  });
}
