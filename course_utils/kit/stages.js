// A picture in stages: slider, buttons, arrow keys and swipes go from one drawing to the next; what has the same name in
// both travels.

const calm = matchMedia("(prefers-reduced-motion: reduce)");

// An image becomes a part of the page, so that its cells can travel and its colors follow the page. The book has done so
// already.
function inline(figure) {
  const image = figure.querySelector("img");
  if (!image) return;
  const bytes = Uint8Array.from(atob(image.src.split(",")[1]), (letter) => letter.charCodeAt(0));
  const drawing = new DOMParser().parseFromString(new TextDecoder().decode(bytes), "image/svg+xml").documentElement;
  drawing.querySelector("style")?.remove();
  drawing.setAttribute("role", "img");
  drawing.setAttribute("aria-label", image.alt);
  image.replaceWith(document.importNode(drawing, true));
}

// Where each named part of a stage stands: [x, y] of a text, [x, y, width, height] of a cell or bar.
const boxOf = ({ dataset }) => dataset.box?.split(" ").map(Number);
const places = (figure) =>
  new Map([...figure.querySelectorAll("[data-name]")].map((part) => [part.dataset.name, boxOf(part)]));

function travel(figure, before) {
  for (const part of figure.querySelector("svg").children) {
    const old = before.get(part.dataset.name);
    const now = boxOf(part);
    if (!old || old.length !== now.length) {
      const appears = [{ opacity: 0 }, { opacity: 0, offset: 0.45 }, { opacity: 1 }];
      part.animate(appears, { duration: 800, easing: "ease-out" });
      continue;
    }
    const [x, y, width = 1, height = 1] = now, [u, v, w = 1, h = 1] = old;
    const [across, down] = [width ? w / width : 1, height ? h / height : 1];
    const start = `translate(${u - x * across}px, ${v - y * down}px) scale(${across}, ${down})`;
    part.animate([{ transform: start }, { transform: "none" }], { duration: 600, easing: "ease-in-out" });
  }
}

// The drawing as a file: colors of the page, as they are now, in place of its variables.
function save(figure, name) {
  const svg = figure.querySelector("svg"), copy = svg.cloneNode(true);
  const [width, height] = svg.getAttribute("viewBox").split(" ").slice(2).map(Number);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((part, i) => {
    for (const look of ["fill", "stroke"]) {
      if (part.getAttribute(look)?.includes("var(")) part.setAttribute(look, getComputedStyle(originals[i])[look]);
    }
  });
  copy.setAttribute("width", 2 * width);
  copy.setAttribute("height", 2 * height);
  const ground = document.createElementNS(copy.namespaceURI, "rect");
  const look = { width, height, fill: getComputedStyle(figure).backgroundColor };
  for (const [key, value] of Object.entries(look)) ground.setAttribute(key, value);
  copy.prepend(ground);
  const file = new Blob([new XMLSerializer().serializeToString(copy)], { type: "image/svg+xml" });
  const link = Object.assign(document.createElement("a"), { download: name, href: URL.createObjectURL(file) });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

function start(section) {
  const figures = [...section.querySelectorAll("figure")], name = section.dataset.stages;
  figures.forEach(inline);
  const title = (place) => figures[place].querySelector(".title b").textContent;
  const bar = document.createElement("div");
  bar.className = "bar";
  bar.innerHTML = `<button type="button" data-go="-1" aria-label="Previous stage">‹</button>\
<button type="button" data-go="1" aria-label="Next stage">›</button>
<label><input type="range" min="1" max="${figures.length}" value="1" aria-label="Stage"><output></output></label>
<button type="button" data-do="all" aria-pressed="false">All stages</button>\
<button type="button" data-do="save">Save as SVG</button><span role="status"></span>`;
  section.append(bar);
  const slider = bar.querySelector("input"), whole = bar.querySelector("[data-do=all]");
  let now = 0;

  function show(to, quiet = false) {
    to = Math.max(0, Math.min(figures.length - 1, to));
    const before = to !== now && !quiet && !calm.matches && places(figures[now]);
    now = to;
    figures.forEach((figure, place) => figure.classList.toggle("now", place === to));
    slider.value = to + 1;
    slider.setAttribute("aria-valuetext", `${to + 1} of ${figures.length}: ${title(to)}`);
    bar.querySelector("output").textContent = `${to + 1} / ${figures.length}`;
    bar.querySelector("[data-go='-1']").disabled = to === 0;
    bar.querySelector("[data-go='1']").disabled = to === figures.length - 1;
    if (!quiet) {
      bar.querySelector("[role=status]").textContent = `${title(to)}. ${figures[to].querySelector("figcaption p").textContent}`;
      if (!section.closest(".jp-Cell")) history.replaceState(null, "", `#${name}-${to + 1}`);
    }
    if (before) travel(figures[to], before);
  }
  function all(on) {
    section.classList.toggle("all", on);
    whole.setAttribute("aria-pressed", on);
    whole.textContent = on ? "One stage" : "All stages";
    for (const figure of figures) on ? figure.setAttribute("tabindex", "0") : figure.removeAttribute("tabindex");
  }
  const go = (to) => { all(false); show(to); };

  bar.addEventListener("click", ({ target }) => {
    if (target.dataset.go) go(now + Number(target.dataset.go));
    if (target.dataset.do === "all") all(!section.classList.contains("all"));
    if (target.dataset.do === "save") save(figures[now], `${name}-${now + 1}.svg`);
  });
  slider.addEventListener("input", () => go(slider.value - 1));
  const open = (event) => {
    const figure = event.target.closest("figure");
    if (!figure || !section.classList.contains("all")) return;
    go(figures.indexOf(figure));
    slider.focus();
  };
  section.addEventListener("click", open);
  section.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && event.target.matches("figure")) return open(event);
    const step = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
    if (!step || event.target.matches("input") || event.altKey || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    event.stopPropagation();
    go(now + step);
  });
  let from = null;
  section.addEventListener("touchstart", ({ touches: [touch] }) => { from = touch; }, { passive: true });
  section.addEventListener("touchend", ({ changedTouches: [touch], target }) => {
    const [across, down] = [touch.clientX - from.clientX, touch.clientY - from.clientY].map(Math.round);
    const isSwipe = Math.abs(across) > Math.max(45, 1.5 * Math.abs(down));
    if (!isSwipe || !target.closest("figure") || section.classList.contains("all")) return;
    go(now + (across < 0 ? 1 : -1));
  });
  // The keys of its controls are not for Lab.
  for (const control of section.querySelectorAll("button, input, summary")) control.dataset.lmSuppressShortcuts = "true";
  const asked = () => Number(location.hash.match(`^#${name}-(\\d+)$`)?.[1] ?? 0);
  addEventListener("hashchange", () => {
    if (!asked()) return;
    all(false);
    show(asked() - 1, true);
    section.scrollIntoView({ block: "start" });
  });
  show(asked() - 1, true);
  if (asked()) section.scrollIntoView({ block: "start" });
}

for (const section of document.querySelectorAll(".cu-stages:not([data-ready])")) {
  section.dataset.ready = "true"; // the style sheet now shows one stage
  start(section);
}
