// A deck: reveal.js with formulas, and what would not fit its slide made smaller until it does.
window.MathJax = {
  tex: { inlineMath: [["$", "$"], ["\\(", "\\)"]], displayMath: [["$$", "$$"], ["\\[", "\\]"]], processEscapes: true },
  svg: { fontCache: "local" },
  options: { enableMenu: false, skipHtmlTags: ["script", "style", "textarea", "pre", "code", "form"] },
  startup: { pageReady: () => MathJax.startup.defaultPageReady().then(begin) },
};

const SMALLEST = 0.45;

function fit(section) {
  const body = section?.querySelector(".body");
  if (!body) return;
  const over = () => body.scrollHeight > body.clientHeight + 1 || body.scrollWidth > body.clientWidth + 1;
  for (let size = Number(body.style.zoom || 1); over() && size > SMALLEST; ) body.style.zoom = size -= 0.05;
  if (body.dataset.fitted) return;
  body.dataset.fitted = "true";
  const toy = body.querySelector("form"); // it grows when its model has come
  if (toy) new ResizeObserver(() => fit(section)).observe(toy);
}

// The cells of a slide, without its notes, in one box.
function boxed(section) {
  const body = document.createElement("div");
  body.className = "body";
  body.append(...[...section.children].filter((child) => child.tagName !== "ASIDE"));
  section.prepend(body);
}

// A tour through a model is a section, and so would be a slide; on slides there is none.
function withoutTours(toy) {
  const drop = () => toy.querySelectorAll("section").forEach((tour) => tour.remove());
  new MutationObserver(drop).observe(toy, { childList: true, subtree: true });
}

function begin() {
  document.querySelectorAll(".slides > section > section").forEach(boxed);
  document.querySelectorAll("form.cu-live").forEach(withoutTours);
  Reveal.on("ready", ({ currentSlide }) => fit(currentSlide));
  Reveal.on("slidechanged", ({ currentSlide }) => fit(currentSlide));
  return Reveal.initialize({
    width: 1280, height: 720, display: "flex", margin: 0, center: false, hash: true, slideNumber: "c/t", transition: "none",
    keyboardCondition: (event) => !event.target.closest("form"), pdfSeparateFragments: false, plugins: [RevealNotes],
  });
}
