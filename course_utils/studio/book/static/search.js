// The search page: sections that hold the words, the best first, each with the sentence that was found.
(() => {
  "use strict";
  const MOST = 40;
  const SAME = [["sqrt", "√"], ["root", "√"], ["alpha", "α"], ["sigma", "σ"], ["softmax", "soft max"], ["dot", "·"], ["infinity", "∞"]];
  const COMMON = new Set("a an and are as at by do does for from how in is it of on or that the this to what when where which who why with".split(" "));

  const plain = (text) => text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "");
  const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  // A word is found where one begins with it; a sign anywhere.
  const pattern = (word) => {
    const same = SAME.filter((pair) => pair.includes(word)).flat();
    const stem = word.length > 4 ? word.replace(/(ing|es|s|ed)$/, "") : word;
    return new RegExp([stem, ...same].map((each) => (/^\w/.test(each) ? `\\b${escaped(each)}` : escaped(each))).join("|"), "g");
  };

  function found(query) {
    const asked = plain(query).match(/[\p{L}\p{N}_]+|[^\s\p{P}]/gu) ?? [];
    const words = asked.filter((word) => !COMMON.has(word));
    const patterns = (words.length ? words : asked).map(pattern);
    const count = (text, each) => text.match(each)?.length ?? 0;
    const rows = window.SECTIONS.map(([page, place, book, title, text]) => {
      const [heading, body] = [plain(title), plain(text)];
      const scores = patterns.map((each) => 12 * Math.min(count(heading, each), 1) + Math.log1p(count(body, each)));
      const held = scores.filter(Boolean).length;
      const whole = heading === plain(query).trim() ? 12 : 0; // the glossary's entry of a term comes first
      const score = held && (whole + scores.reduce((sum, each) => sum + each, 0)) * (held / patterns.length) ** 2;
      return { page, place, book, title, text, score, patterns };
    });
    return rows.filter(({ score }) => score > 0).sort((a, b) => b.score - a.score).slice(0, MOST);
  }

  // The sentence that holds most of the words.
  function sentence({ text, patterns }) {
    const sentences = text.split(/(?<=[.!?])\s+/);
    const held = (each) => patterns.filter((one) => plain(each).search(one) >= 0).length;
    return sentences.reduce((best, each) => (held(each) > held(best) ? each : best), sentences[0] ?? "").slice(0, 280);
  }

  function show(query) {
    const [results, rows] = [document.getElementById("search-results"), found(query)];
    const add = (parent, tag, attributes) => parent.appendChild(Object.assign(document.createElement(tag), attributes));
    results.replaceChildren();
    add(results, "p", { className: "search-summary", role: "status", textContent: rows.length ? `${rows.length === MOST ? "The best " : ""}${rows.length} sections for “${query}”.` : `Nothing in the book has “${query}”. Try fewer words, or look into the glossary.` });
    const list = add(results, "ul", { className: "search" });
    for (const row of rows) {
      const item = add(list, "li", {});
      add(item, "a", { href: `${row.page}?found#${row.place}`, textContent: row.title });
      if (row.book !== row.title) add(item, "small", { textContent: ` ${row.book}` });
      add(item, "p", { className: "context", textContent: sentence(row) });
    }
  }

  // Sphinx's own search gives way, whichever of the two scripts is read first.
  const replace = () => {
    if (typeof Search === "undefined") return;
    Search.performSearch = (query) => {
      const script = Object.assign(document.createElement("script"), { src: "sections.js" });
      script.addEventListener("load", () => show(query));
      document.head.append(script);
    };
  };
  replace();
  document.addEventListener("DOMContentLoaded", replace);
})();
