// Beam search as a tree: a column for each length, the beginnings that were kept and those that were dropped, each with
// its log-probability. beamSearch of engine.js tells `watch` the candidates of each length.
globalThis.live_tree = (() => {
  "use strict";
  const { OURS, safe } = globalThis.live_parts;
  const COLUMN = 128; // pixels
  const ROW = 19;
  const minus = (number) => number.toFixed(2).replace("-", "−");

  // What was watched, one { grown, ended } for each length → the root; a node's children are the best first.
  // best: the ids of what was chosen in the end.
  function grow(watched, size, best) {
    const node = (said, score, more) => ({ said, score, children: [], ...more });
    const root = node([], 0, { kept: true, chosen: true });
    const nodes = new Map([["", root]]);
    let rankOfBest = -Infinity;
    for (const { grown, ended } of watched) {
      for (const { said, score, rank } of ended) {
        if (rank <= rankOfBest) continue; // as an end it was worse than an earlier one
        rankOfBest = rank;
        const chosen = said.join() === best.join();
        nodes.get(said.join()).children.push(node(said, score, { end: true, rank, chosen }));
      }
      grown.forEach(({ said, score }, place) => {
        const begins = said.every((id, i) => id === best[i]);
        const child = node(said, score, { kept: place < size, chosen: begins });
        nodes.get(said.slice(0, -1).join()).children.push(child);
        nodes.set(said.join(), child);
      });
    }
    return root;
  }

  // Column by column; below each other the children of one node, then those of the next.
  function columns(root) {
    const found = [];
    for (let level = [root]; level.length; level = level.flatMap(({ children }) => children)) {
      level.forEach((node, row) => Object.assign(node, { x: found.length * COLUMN, y: (row + 0.5) * ROW }));
      found.push(level);
    }
    return found;
  }

  const state = ({ kept, end, chosen }) => (chosen ? "chosen" : end ? "end" : kept ? "kept" : "dropped");
  const wordOf = ({ said, end }, token) => (end ? "<eos>" : said.length ? token(said.at(-1)) : "<bos>");
  const named = (node, token) => `${safe(wordOf(node, token))} ${minus(node.score)}`;

  function svgHTML(root, token) {
    const levels = columns(root);
    const height = ROW * Math.max(...levels.map((level) => level.length));
    const every = levels.flat();
    const lines = every.flatMap((node) => node.children.map((child) =>
      `<path class="${state(child)}" d="M${node.x + COLUMN - 24} ${node.y}L${child.x - 2} ${child.y}"></path>`));
    const texts = every.map((node) =>
      `<text class="${state(node)}" x="${node.x}" y="${node.y + 4}">${named(node, token)}</text>`);
    const box = `width="${levels.length * COLUMN + 24}" height="${height}"`;
    return `<svg aria-hidden="true" ${box}>${lines.join("")}${texts.join("")}</svg>`;
  }

  const SAYS = { chosen: "chosen", end: "an end, not the best", kept: "kept", dropped: "dropped" };

  function listHTML(node, token) {
    const children = node.children.length
      ? `<ul>${node.children.map((child) => listHTML(child, token)).join("")}</ul>`
      : "";
    return `<li>${named(node, token)}, ${SAYS[state(node)]}${children}</li>`;
  }

  // The tree as a picture, and as a nested list to unfold; `token` gives the text of an id.
  function html(root, token) {
    return '<p>The beam as a tree: each beginning with the logarithm of its probability. In bold what is chosen, ' +
      "in normal type what is kept, in italics what is dropped.</p>" +
      `<div class="cu-live-tree" role="region" aria-label="The beam as a tree" tabindex="0" ${OURS} lang="fr">` +
      `${svgHTML(root, token)}</div><details><summary ${OURS}>The tree as a list</summary>` +
      `<ul class="cu-live-list">${listHTML(root, token)}</ul></details>`;
  }

  return { grow, html };
})();
