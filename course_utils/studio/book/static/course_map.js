// The map of the course: a way that is chosen, its stops, what a chapter needs, what the reader has done, and where to go
// on. On a chapter's page, lines about the ways and what comes next follow the one that is chosen. The map is the same in
// JupyterLab, where its cell runs this, too.
(() => {
  "use strict";
  const PROGRESS = "cu-progress", PLACE = "cu-place", WAY = "cu-way";
  const OURS = /^(cu-|course-)/; // all that the course keeps in the browser's storage
  const recall = (key, otherwise) => {
    try {
      return JSON.parse(localStorage.getItem(key)) ?? otherwise;
    } catch { // nothing is kept here
      return otherwise;
    }
  };
  const keep = (key, value) => {
    try {
      localStorage.setItem(key, JSON.stringify(value));
    } catch { // nor there
    }
  };

  // Of each chapter: how many questions are answered, how many there are, and whether its end has been seen.
  function noteProgress() {
    const page = location.pathname.split("/").at(-1).replace(/\.html$/, "");
    const end = document.querySelector("#take-aways");
    if (!end) return;
    const questions = document.querySelectorAll(".cu-predict, .course-quiz[data-kind=quiz] fieldset");
    const note = (seen) => {
      const progress = recall(PROGRESS, {});
      const answered = [...questions].filter((question) => question.dataset.state || question.querySelector("label :checked")).length;
      const read = seen || (progress[page]?.[2] ?? false);
      if (answered || read) keep(PROGRESS, { ...progress, [page]: [answered, questions.length, read] });
      if (answered || read) keep(PLACE, page);
    };
    note(false);
    addEventListener("scroll", () => { if (scrollY > innerHeight) keep(PLACE, page); }, { passive: true });
    for (const event of ["change", "click"]) addEventListener(event, () => setTimeout(note, 0, false));
    new IntersectionObserver(([{ isIntersecting }], observer) => {
      if (!isIntersecting) return;
      observer.disconnect();
      note(true);
    }).observe(end);
  }

  function followTheWay() {
    const way = recall(WAY, "");
    const on = (element) => Boolean(way && element?.dataset.ways?.split("|").includes(way));
    const followed = on(document.querySelector(".cu-eyebrow")); // else she is where her way does not lead
    for (const sign of document.querySelectorAll(".cu-off-way")) sign.hidden = !on(sign);
    for (const line of document.querySelectorAll(".cu-way")) line.hidden = followed && !on(line);
    for (const text of new Set([...document.querySelectorAll(".cu-way")].map((line) => line.closest("p")))) {
      if (text) text.hidden = [...text.childNodes].every((node) => node.hidden || (!node.tagName && !node.data?.trim()));
    }
    const cards = [...document.querySelectorAll(".cu-next")];
    const chosen = cards.find(on);
    for (const card of cards) {
      const next = card.querySelector("small");
      next.textContent = next.textContent.split(" · ")[0] + (card === chosen ? ` · ${way}` : "");
      if (chosen) card.hidden = card !== chosen;
    }
  }

  // Where the reader was, over the map and on the cover's button, and a way to forget it.
  function goOn(map, station) {
    if (!station) return;
    station.dataset.here = "";
    const [link, name] = [station.querySelector("a"), station.querySelector("a > span").textContent];
    const title = `${station.dataset.number} · ${name}`;
    const place = document.createElement("p");
    place.className = "cu-map-place";
    place.append("Last time you were in ", Object.assign(document.createElement("a"), { href: link.href, textContent: title }), ". ");
    const forget = Object.assign(document.createElement("button"), { type: "button", textContent: "Forget my answers and where I was" });
    forget.addEventListener("click", () => {
      for (const key of Object.keys(localStorage).filter((each) => OURS.test(each))) localStorage.removeItem(key);
      location.reload();
    });
    place.append(forget);
    map.querySelector(".cu-map-lines").before(place);
    if (document.querySelector(".cu-start")) {
      const back = Object.assign(document.createElement("p"), { className: "cu-map-place" });
      back.append("Welcome back. Go on with ", Object.assign(document.createElement("a"), { href: link.href, textContent: title }), ".");
      document.querySelector("article h1").after(back);
    }
    for (const start of document.querySelectorAll(".cu-start")) {
      start.href = link.href;
      start.textContent = `Go on with ${title}`;
    }
  }

  function enliven(map) {
    map.dataset.ready = "";
    const stations = [...map.querySelectorAll("[data-page]")];
    const said = map.querySelector(".cu-map-said");
    const progress = recall(PROGRESS, {});
    for (const station of stations) {
      const [answered, asked, read] = progress[station.dataset.page] ?? [];
      if (asked === undefined) continue;
      station.dataset.state = read && answered === asked ? "done" : "begun";
      station.style.setProperty("--share", `${Math.max(10, (100 * answered) / (asked || 1))}%`);
      station.querySelector("a").title = read && answered === asked ? "done" : `begun: ${answered} of ${asked} questions answered`;
    }
    goOn(map, stations.find(({ dataset }) => dataset.page === recall(PLACE, "")));

    let way = ""; // what the chosen one takes
    const explain = (station) => {
      const needs = station?.dataset.needs.split(" ").filter(Boolean) ?? [];
      for (const each of stations) each.toggleAttribute("data-needed", needs.includes(each.dataset.number));
      const question = station?.querySelector("small").textContent ?? way;
      said.textContent = question + (needs.length ? ` It needs ${needs.join(", ")}.` : "");
    };
    for (const station of stations) {
      for (const event of ["pointerenter", "focusin"]) station.addEventListener(event, () => explain(station));
      for (const event of ["pointerleave", "focusout"]) station.addEventListener(event, () => explain(null));
    }

    const buttons = [...map.querySelectorAll("[data-way]")].map((item) => {
      const button = document.createElement("button");
      button.type = "button";
      button.innerHTML = item.innerHTML;
      item.replaceChildren(button);
      return button;
    });
    const title = (button) => button.querySelector("span").textContent;
    const choose = (chosen) => {
      for (const stops of map.querySelectorAll("[data-stops]")) stops.hidden = stops.dataset.stops !== chosen?.parentElement.dataset.way;
      for (const each of buttons) each.setAttribute("aria-pressed", each === chosen);
      way = chosen?.querySelector("i").textContent ?? "";
      explain(null);
      const number = chosen?.parentElement.dataset.way;
      for (const { dataset } of stations) {
        if (chosen && !dataset.ways.split(" ").includes(number)) dataset.off = "";
        else delete dataset.off;
      }
    };
    for (const button of buttons) {
      button.addEventListener("click", () => {
        const chosen = button.getAttribute("aria-pressed") === "true" ? undefined : button;
        keep(WAY, chosen ? title(chosen) : "");
        choose(chosen);
        dispatchEvent(new Event("cu-way")); // for quizzes and other maps
      });
    }
    const follow = () => choose(buttons.find((button) => title(button) === recall(WAY, "")));
    follow();
    addEventListener("cu-way", () => { if (map.isConnected) follow(); });
  }

  const begin = () => document.querySelectorAll(".cu-map:not([data-ready])").forEach(enliven);
  if (document.currentScript?.closest(".cu-map") || document.readyState !== "loading") {
    begin(); // the map's own script
    return;
  }
  addEventListener("DOMContentLoaded", () => {
    noteProgress();
    followTheWay();
    addEventListener("cu-way", followTheWay);
    begin();
  });
})();
