// The map of the course: a way that is chosen, what a chapter needs, and which chapters were read to their end.
(() => {
  "use strict";
  const KEY = "cu-read";
  const read = () => {
    try {
      return new Set(JSON.parse(localStorage.getItem(KEY) ?? "[]"));
    } catch { // nothing is kept here
      return new Set();
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
      try {
        localStorage.setItem(KEY, JSON.stringify([...read().add(page)]));
      } catch { // nor there
      }
    }).observe(end);
  }

  function enliven(map) {
    const stations = [...map.querySelectorAll("[data-page]")];
    const said = map.querySelector(".cu-map-said");
    const seen = read();
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
      button.addEventListener("click", () => {
        const chosen = button.getAttribute("aria-pressed") === "true" ? null : item.dataset.way;
        for (const each of buttons) each.setAttribute("aria-pressed", each === button && chosen !== null);
        way = chosen === null ? "" : button.querySelector("i").textContent;
        explain(null);
        for (const station of stations) {
          station.toggleAttribute("data-off", chosen !== null && !station.dataset.ways.split(" ").includes(chosen));
        }
      });
      button.setAttribute("aria-pressed", "false");
      return button;
    });
  }

  addEventListener("DOMContentLoaded", () => {
    noteTheEnd();
    document.querySelectorAll(".cu-map").forEach(enliven);
  });
})();
