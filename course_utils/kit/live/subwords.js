// Byte-pair encoding in a page: the pieces into which course_utils.data.prose.Subwords cuts a word.
globalThis.live_subwords = (() => {
  "use strict";
  const END = "␣"; // stands behind each word, before the first merge
  const UNK = 1;
  const MASK = 4;

  class Subwords {
    // tokens by id; merges, "a b" for the pair of a and b, in the order in which they were learned; words: all of the
    // training.
    constructor({ tokens, merges, words }) {
      this.tokens = tokens;
      this.words = words;
      this.ids = new Map(tokens.map((token, id) => [token, id]));
      this.ranks = new Map(merges.map((pair, rank) => [pair, rank]));
    }

    // Of all pairs of neighbors, the one that was learned first is merged next.
    pieces(word) {
      const pieces = [...word, END];
      while (true) {
        const ranks = pieces.slice(1).map((right, i) => this.ranks.get(`${pieces[i]} ${right}`) ?? Infinity);
        const first = Math.min(...ranks);
        if (first === Infinity) return pieces;
        const place = ranks.indexOf(first);
        pieces.splice(place, 2, pieces[place] + pieces[place + 1]);
      }
    }

    encode(text) {
      const words = globalThis.live_engine.tokenize(text.replaceAll(END, " "));
      return words.flatMap((word) => this.pieces(word)).map((piece) => this.ids.get(piece) ?? UNK);
    }

    // Words separated by spaces; special tokens are left out, unknown characters and gaps are not.
    decode(ids) {
      const named = (id) => (id === UNK || id === MASK ? ` ${this.tokens[id]} ` : this.tokens[id]);
      const letters = ids.filter((id) => id === UNK || id >= MASK).map(named).join("");
      return letters.replaceAll(END, " ").split(" ").filter((word) => word).join(" ");
    }

    // What is said of the words of a text that stood in no sentence of the training.
    unreadHTML(text) {
      const words = globalThis.live_engine.tokenize(text.replaceAll(END, " "));
      const unread = [...new Set(words)].filter((word) => !this.words.includes(word));
      return unread.map((word) => this.unreadWord(word)).join(" ");
    }

    // "It has never read wuman, and reads it in pieces: w u man␣. Words it knows: woman", each known one a button. A
    // word may be one piece, as a part of other words was.
    unreadWord(word) {
      const { safe, unknownWord } = globalThis.live_parts;
      const pieces = this.pieces(word).map((piece) => (this.ids.has(piece) ? piece : this.tokens[UNK]));
      const cut = pieces.length > 1 ? "in pieces" : "as one piece";
      const told = `It has never read <q>${safe(word)}</q>, and reads it ${cut}: ${safe(pieces.join(" "))}.`;
      return unknownWord(word, ["", "", "", "", ...this.words], told);
    }
  }

  return { Subwords };
})();
