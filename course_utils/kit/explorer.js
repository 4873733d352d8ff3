// An explorer: a form whose controls choose a picture. JupyterLab calls `render`, and the kernel draws the
// picture; a page of the book calls `page`, which has all pictures.

// Connects a form; `moved` is called with the position of each control when the reader has moved one.
function connect(form, moved) {
  const groups = [...form.querySelectorAll("[data-count]")];
  const caption = form.querySelector(".cu-caption");
  const drawParts = stack(form.querySelector(".cu-stage"));
  let newest = null;

  const position = (group) => {
    const input = group.querySelector("input:checked, input[type=range], select");
    return input ? Number(input.value) : 0; // an unticked box is the first value: off
  };
  const describe = () => {
    for (const slider of form.querySelectorAll("input[type=range]")) {
      const text = JSON.parse(slider.dataset.texts)[slider.value];
      slider.setAttribute("aria-valuetext", text);
      slider.parentElement.querySelector("output").textContent = text;
    }
  };
  form.addEventListener("input", () => {
    describe();
    moved(groups.map(position));
  });
  form.addEventListener("submit", (event) => event.preventDefault());

  return {
    image: () => form.querySelector(".cu-stage img"),
    positions: () => groups.map(position),
    fits(positions) {
      const isPlace = (at, count) => Number.isInteger(at) && at >= 0 && at < count;
      return groups.length === positions.length &&
        groups.every(({ dataset }, i) => isPlace(positions[i], Number(dataset.count)));
    },
    index: (positions) => groups.reduce((index, group, i) => index * group.dataset.count + positions[i], 0),
    move(positions) {
      groups.forEach((group, i) => {
        for (const input of group.querySelectorAll("input, select")) {
          if (input.matches("[type=radio], [type=checkbox]")) input.checked = Number(input.value) === positions[i];
          else input.value = positions[i];
        }
      });
      describe();
    },
    async show(image) {
      newest = image;
      await image.decode(); // shown when decoded: nothing flickers
      if (image !== newest) return; // a newer one was asked for
      this.image().replaceWith(image);
      drawParts();
      caption.textContent = image.alt;
    },
  };
}

// Where the stage is too narrow for the labels, the parts of the picture stand one below the other, each on a canvas;
// a part without anything in it is left out. The image itself stays, for those who hear it. Returns what draws again.
function stack(stage) {
  const cuts = JSON.parse(stage.dataset.cuts), least = Number(stage.dataset.least), width = cuts.at(-1);
  const background = /url\("(.*)"\)/.exec(stage.style.backgroundImage); // of a page's frames
  const ground = background && Object.assign(new Image(), { src: background[1] });
  const parts = cuts.slice(1).map((right, i) => {
    const left = cuts[i], part = right - left, canvas = document.createElement("canvas");
    canvas.setAttribute("aria-hidden", "true");
    canvas.style.minWidth = `${least * part}px`;
    canvas.style.maxWidth = `${Math.max(least, 1) * part}px`;
    return { canvas, left, part };
  });
  const draw = () => {
    const image = stage.querySelector("img"), scale = image.naturalWidth / width;
    if (!stage.classList.contains("cu-stacked") || !scale) return;
    for (const { canvas, left, part } of parts) {
      canvas.width = scale * part;
      canvas.height = image.naturalHeight;
      const context = canvas.getContext("2d", { willReadFrequently: true });
      for (const layer of [ground, image]) if (layer) context.drawImage(layer, -scale * left, 0);
      const colors = new Uint32Array(context.getImageData(0, 0, canvas.width, canvas.height).data.buffer);
      canvas.hidden = colors.every((color) => color === colors[0]);
    }
  };
  stage.append(...parts.map(({ canvas }) => canvas));
  new ResizeObserver(async ([{ contentRect }]) => {
    stage.classList.toggle("cu-stacked", contentRect.width < least * width - 1);
    await ground?.decode();
    stage.querySelector("img").decode().then(draw, () => {}); // in Lab the first picture is still to come
  }).observe(stage);
  return draw;
}

const PATIENCE = 1000; // ms; a picture takes a tenth of it
const SILENT = "The kernel hasn't drawn this yet. If it was restarted or is gone, run this cell again.";

function render({ model, el }) {
  el.innerHTML = model.get("form");
  const form = el.querySelector("form");
  const alert = form.querySelector("[role=alert]");
  for (const input of form.querySelectorAll("input, select")) input.dataset.lmSuppressShortcuts = "true"; // keys are theirs, not Lab's
  const say = (text) => {
    alert.textContent = text;
    alert.hidden = !text;
    form.toggleAttribute("data-silent", text === SILENT);
  };
  let waiting = null;
  const answered = () => {
    clearTimeout(waiting);
    say(model.get("alert"));
  };
  const explorer = connect(form, (positions) => {
    model.set("positions", positions);
    model.save_changes(); // one message at a time: while the kernel draws, only the newest positions wait
    clearTimeout(waiting);
    const isDrawn = () => String(model.get("drawn")) === String(positions);
    waiting = setTimeout(() => say(isDrawn() ? "" : model.get("alert") || SILENT), PATIENCE);
  });
  const listeners = {
    "change:drawn": answered,
    "change:alert": answered,
    "change:positions": () => explorer.move(model.get("positions")),
    "change:frame": () => {
      const { png, alt } = model.get("frame");
      const image = explorer.image().cloneNode();
      image.alt = alt;
      image.src = URL.createObjectURL(new Blob([png], { type: "image/png" }));
      explorer.show(image).finally(() => URL.revokeObjectURL(image.src));
    },
  };
  for (const [event, listener] of Object.entries(listeners)) {
    model.on(event, listener);
    listener();
  }
  return () => Object.entries(listeners).forEach(([event, listener]) => model.off(event, listener));
}

function page(form) {
  form.querySelector(".cu-refused").remove(); // this script runs
  const frames = JSON.parse(form.querySelector("script[type='application/json']").textContent);
  const explorer = connect(form, (positions) => explorer.show(load(explorer.index(positions))));
  const first = explorer.image();
  const images = frames.map(() => null); // made when they are first asked for
  const load = (index) => {
    const { alt, webp } = frames[index];
    return (images[index] ??= Object.assign(first.cloneNode(), { alt, src: "data:image/webp;base64," + webp }));
  };

  // Decode each picture before it is asked for, when the reader comes near and the browser is idle.
  const idle = window.requestIdleCallback || ((work) => setTimeout(work, 50));
  const preload = (index) => {
    if (index < images.length) load(index).decode().finally(() => idle(() => preload(index + 1)));
  };
  new IntersectionObserver((entries, observer) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    observer.disconnect();
    idle(() => preload(0));
  }, { rootMargin: "600px" }).observe(form);
  addressed(form, explorer, (positions) => explorer.show(load(explorer.index(positions))));
}

// "#explorer=kernel_width.0&at=2.1" in the address: the first explorer of this name, its controls at these places.
function addressed(form, explorer, show) {
  const same = [...document.querySelectorAll(`form[data-explorer="${form.dataset.explorer}"]`)];
  const name = `${form.dataset.explorer}.${same.indexOf(form)}`;
  const restore = () => {
    const asked = globalThis.cu_address(), positions = (asked.get("at") ?? "").replace(/\.$/, "").split(".").map(Number);
    if (asked.get("explorer") !== name || !explorer.fits(positions)) return;
    explorer.move(positions);
    show(positions);
    form.scrollIntoView();
  };
  for (const event of ["load", "hashchange"]) addEventListener(event, restore);

  const line = document.createElement("div");
  line.className = "cu-link";
  line.innerHTML = '<button type="button">Copy link to this picture</button> <span role="status"></span>';
  line.firstChild.addEventListener("click", () => {
    const state = `#explorer=${name}&at=${explorer.positions().join(".")}`;
    const say = (text) => { line.lastChild.textContent = text; };
    const copied = () => say("Copied: the link opens this picture.");
    const refused = () => { location.hash = state; say("The link stands in the address bar."); };
    (navigator.clipboard?.writeText(location.href.split("#")[0] + state) ?? Promise.reject()).then(copied, refused);
  });
  form.append(line);
}
