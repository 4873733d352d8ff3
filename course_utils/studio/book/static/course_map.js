// The map of the course: a way that is chosen, its stops, what a chapter needs, what the reader has done, and where to go
// on. On a chapter's page, lines about the ways and what comes next follow the one that is chosen. The map is the same in
// JupyterLab, where its cell runs this, too.
(() => {
  "use strict";
  const PROGRESS = "cu-progress", PLACE = "cu-place", WAY = "cu-way", FORGOTTEN = "#forgotten";
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

  const made = (tag, properties) => Object.assign(document.createElement(tag), properties);
  const told = (map, text = "") => {
    const place = made("p", { className: "cu-map-place", textContent: text });
    place.setAttribute("role", "status");
    map.querySelector(".cu-map-lines").before(place);
    return place;
  };
  const say = (line, text) => {
    line.style.minHeight = `${line.offsetHeight}px`; // as high as before
    line.textContent = text;
  };
  const FORGOT = "Forgotten. This browser keeps nothing of the course now.";

  // A button that asks once more before it forgets. What it says afterwards takes the same line: nothing on the page moves.
  function forgetButton(place, clear) {
    const button = (textContent, press) => {
      const it = made("button", { type: "button", textContent });
      it.addEventListener("click", press);
      return it;
    };
    const before = [...place.childNodes];
    const keepAll = () => {
      place.replaceChildren(...before, ask);
      ask.focus();
    };
    const forgetAll = () => {
      for (const key of Object.keys(localStorage).filter((each) => OURS.test(each))) localStorage.removeItem(key);
      if (document.querySelector(".cu-predict, .course-quiz")) { // their answers stand on this page
        history.replaceState(null, "", FORGOTTEN);
        location.reload();
        return;
      }
      clear();
      say(place, FORGOT);
      dispatchEvent(new Event("cu-way"));
    };
    const ask = button("Forget my answers and where I was", () => {
      const no = button("Keep them", keepAll);
      place.replaceChildren("Forget all answers, and where you were? ", button("Forget them", forgetAll), no);
      no.focus();
    });
    place.append(ask);
  }

  // Where the reader was, over the map and on the cover's button, and a way to forget it.
  function goOn(map, stations) {
    if (location.hash === FORGOTTEN) {
      told(map, FORGOT);
      history.replaceState(null, "", location.pathname + location.search); // a second load says nothing
      return;
    }
    const station = stations.find(({ dataset }) => dataset.page === recall(PLACE, ""));
    if (!station) return;
    station.dataset.here = "";
    const [link, name] = [station.querySelector("a"), station.querySelector("a > span").textContent];
    const title = `${station.dataset.number} · ${name}`;
    const place = told(map);
    place.append("Last time you were in ", made("a", { href: link.href, textContent: title }), ". ");
    const starts = [...document.querySelectorAll(".cu-start")];
    const first = starts.map(({ href, textContent }) => ({ href, textContent }));
    const back = made("p", { className: "cu-map-place" });
    forgetButton(place, () => {
      starts.forEach((start, i) => Object.assign(start, first[i]));
      say(back, "Welcome.");
      for (const each of stations) {
        for (const mark of ["state", "here"]) delete each.dataset[mark];
        each.querySelector("a").removeAttribute("title");
      }
    });
    if (starts.length) {
      back.append("Welcome back. Go on with ", made("a", { href: link.href, textContent: title }), ".");
      document.querySelector("article h1").after(back);
    }
    for (const start of starts) Object.assign(start, { href: link.href, textContent: `Go on with ${title}` });
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
    goOn(map, stations);

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
