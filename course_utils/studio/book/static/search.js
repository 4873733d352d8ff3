// The search page: sections that hold the words, the best first, each with the sentence that was found.
(() => {
  "use strict";
  const MOST = [24, 10, 6]; // of sections of chapters, of exercises, of pages for teachers, which come in this order
  const MOST_WHILE_TYPING = 8;
  const SAME = [["sqrt", "√"], ["root", "√"], ["alpha", "α"], ["sigma", "σ"], ["softmax", "soft max"], ["dot", "·"], ["infinity", "∞"]];
  const COMMON = new Set("a an and are as at by do does for from how in is it of on or that the this to what when where which who why with".split(" "));

  const BACK = /^(teaching|administrators|accessibility|privacy|moved|bibliography)/; // pages that no chapter is
  const kind = ({ page, title }) => (BACK.test(page) ? 2 : /^Exercise \d/.test(title) ? 1 : 0);

  const plain = (text) => text.toLowerCase().normalize("NFKD").replace(/[\u0300-\u036f]/g, "");
  const escaped = (word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const sum = (numbers) => numbers.reduce((all, each) => all + each, 0);
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
      const score = held && (whole + sum(scores)) * (held / patterns.length) ** 2;
      return { page, place, book, title, text, score, patterns, holdsAll: held === patterns.length };
    });
    const best = rows.filter(({ score }) => score > 0).sort((a, b) => b.holdsAll - a.holdsAll || b.score - a.score);
    const kinds = (some) => MOST.flatMap((most, i) => some.filter((row) => kind(row) === i).slice(0, most));
    return [true, false].flatMap((all) => kinds(best.filter(({ holdsAll }) => holdsAll === all))).slice(0, sum(MOST));
  }

  // Of a term in the glossary its first sentence. Else the sentence that holds most of the words, and of those the one with
  // the fewest signs of a formula.
  const SIGN = /[_^=√∈≤≥≈≠…‖Σ·×±→\u0370-\u03ff]/g;
  function sentence({ page, text, patterns }) {
    const sentences = text.split(/(?<=[.!?])\s+/);
    const held = (each) => patterns.filter((one) => plain(each).search(one) >= 0).length;
    if (page.startsWith("C_glossary")) return sentences[0];
    const value = (each) => held(each) - Math.min(each.match(SIGN)?.length ?? 0, 99) / 100;
    const found = sentences.reduce((best, each) => (value(each) > value(best) ? each : best), sentences[0] ?? "");
    return found.length > 280 ? `${found.slice(0, 280).replace(/\s\S*$/, "")} …` : found;
  }

  function show(query) {
    const results = document.getElementById("search-results");
    if (!results) return; // closed in the meantime
    const whileTyping = Boolean(results.closest("dialog"));
    const rows = found(query);
    const add = (parent, tag, attributes) => parent.appendChild(Object.assign(document.createElement(tag), attributes));
    const count = rows.length === sum(MOST) ? `The best ${rows.length}` : rows.length;
    results.replaceChildren();
    add(results, "p", { className: "search-summary", role: "status", textContent: rows.length ? `${count} ${rows.length === 1 ? "section" : "sections"} for “${query}”.` : `Nothing in the book has “${query}”. Try fewer words, or look into the glossary.` });
    const list = add(results, "ul", { className: "search" });
    for (const row of whileTyping ? rows.slice(0, MOST_WHILE_TYPING) : rows) {
      const item = add(list, "li", {});
      add(item, "a", { href: `${row.page}?found#${row.place}`, textContent: row.title });
      if (row.book !== row.title) add(item, "small", { textContent: ` ${row.book}` });
      add(item, "p", { className: "context", textContent: sentence(row) });
    }
    if (whileTyping && rows.length > MOST_WHILE_TYPING) add(results, "p", { className: "search-summary", textContent: "Enter shows all." });
  }

  // Sphinx's own search gives way, whichever of the two scripts is read first.
  let asked = "";
  const replace = () => {
    if (typeof Search === "undefined") return;
    Search.performSearch = (query) => {
      asked = query;
      if (window.SECTIONS) return show(query);
      if (document.querySelector("script[src='sections.js']")) return undefined; // on its way
      const script = Object.assign(document.createElement("script"), { src: "sections.js" });
      script.addEventListener("load", () => show(asked));
      document.head.append(script);
      return undefined;
    };
  };
  replace();
  document.addEventListener("DOMContentLoaded", replace);
})();
