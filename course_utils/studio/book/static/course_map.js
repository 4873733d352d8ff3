// The map of the course: a way that is chosen, what a chapter needs, and which chapters were read to their end.
// What comes next at a chapter's end follows the way.
(() => {
  "use strict";
  const READ = "cu-read", WAY = "cu-way";
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

  // A chapter is read when its end has been seen.
  function noteTheEnd() {
    const page = location.pathname.split("/").at(-1).replace(/\.html$/, "");
    const end = document.querySelector("#take-aways");
    if (!end) return;
    new IntersectionObserver(([{ isIntersecting }], observer) => {
      if (!isIntersecting) return;
      observer.disconnect();
      keep(READ, [...new Set([...recall(READ, []), page])]);
    }).observe(end);
  }

  function followTheWay() {
    const way = recall(WAY, ""), cards = [...document.querySelectorAll(".cu-next")];
    const chosen = cards.find(({ dataset }) => dataset.ways.split("|").includes(way));
    if (!chosen) return;
    for (const card of cards) card.hidden = card !== chosen;
    chosen.querySelector("small").append(` · ${way}`);
  }

  function enliven(map) {
    const stations = [...map.querySelectorAll("[data-page]")];
    const said = map.querySelector(".cu-map-said");
    const seen = new Set(recall(READ, []));
    for (const station of stations.filter(({ dataset }) => seen.has(dataset.page))) {
      station.dataset.read = "";
      station.querySelector("a").title = "read";
    }

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
        choose(chosen);
        keep(WAY, chosen ? title(chosen) : "");
      });
    }
    choose(buttons.find((button) => title(button) === recall(WAY, "")));
  }

  addEventListener("DOMContentLoaded", () => {
    noteTheEnd();
    followTheWay();
    document.querySelectorAll(".cu-map").forEach(enliven);
  });
})();
