// What a translator reads and says, word by word: one with a vocabulary of words, or one with pieces of words, whose
// bundle says `pieces`. A word is { text, places }: where its tokens stand.
globalThis.live_language = (bundle) => {
  "use strict";
  const { ids: { UNK, EOS }, tokenize } = globalThis.live_engine;
  const END = "␣"; // of a word, in its last piece
  const subwords = bundle.pieces ? new globalThis.live_subwords.Subwords(bundle.vocabularies) : null;
  const { source, target } = subwords ? { source: subwords.tokens, target: subwords.tokens } : bundle.vocabularies;
  const ids = new Map(source.map((token, id) => [token, id]));

  // Quotes, apostrophes and dashes as the training sentences have them.
  const plain = (text) => text.normalize("NFC").replace(/[‘’‛ʼ′`´]/g, "'").replace(/[“”„″]/g, '"').replace(/[‐‑–—]/g, "-");

  // [text, number of tokens] of each word → words.
  function placed(lengths) {
    let end = 0;
    return lengths.map(([text, length]) => {
      end += length;
      return { text, places: Array.from({ length }, (_, i) => end - length + i) };
    });
  }

  // A text → the ids that the model reads, its words, and what it has no token for: words, which are read as <unk>, or
  // letters, which are left out.
  function read(text) {
    const words = tokenize(subwords ? plain(text).replaceAll(END, " ") : text);
    const unknown = [...new Set(subwords ? words.join("") : words)].filter((token) => !ids.has(token));
    const spelled = (word) => [...word].filter((letter) => ids.has(letter)).join("");
    const kept = subwords ? words.map(spelled).filter((word) => word) : words;
    const tokens = kept.map((word) => (subwords ? subwords.pieces(word) : [word]));
    const lengths = kept.map((word, i) => [word, tokens[i].length]);
    return {
      ids: [...tokens.flat().map((token) => ids.get(token) ?? UNK), EOS],
      words: placed([...lengths, ["<eos>", 1]]),
      unknown,
    };
  }

  // Ids that were said → words; a place is the step that said it.
  function says(said) {
    const lengths = [];
    said.forEach((id, i) => {
      if (!subwords || !i || id === EOS || target[said[i - 1]].endsWith(END)) lengths.push(["", 0]);
      const word = lengths.at(-1);
      word[0] += target[id].replace(END, "");
      word[1] += 1;
    });
    return placed(lengths);
  }

  // A head's weights between tokens → between words: all that goes to a word's pieces, on average over those that ask.
  function words(rows, queries, keys) {
    const sum = (numbers) => numbers.reduce((a, b) => a + b, 0);
    const weight = (query, key) => sum(query.places.map((i) => sum(key.places.map((j) => rows[i][j])))) / query.places.length;
    return queries.map((query) => keys.map((key) => weight(query, key)));
  }

  // A token by itself; a piece that does not end its word ends in a hyphen.
  function token(id) {
    const text = target[id];
    if (!subwords || text.startsWith("<")) return text;
    return text === END ? END : text.endsWith(END) ? text.slice(0, -1) : `${text}-`;
  }

  // French words → a line as one writes it, with capitals where the English text has them.
  function written(french, text) {
    const first = (word) => word.charAt(0).toUpperCase() + word.slice(1);
    const begins = (word) => /^\p{Lu}/u.test(word);
    const asked = text.trim().split(/[^\p{L}\p{N}'’-]+/u).filter((word) => word);
    const shouted = text === text.toUpperCase();
    const names = new Set(shouted ? [] : asked.slice(1).filter(begins).map((word) => word.toLowerCase().replace(/['’].*/, "")));
    const named = french.map((word) => word.split("'").map((part) => (names.has(part) ? first(part) : part)).join("'"));
    const line = named.join(" ")
      .replace(/ ([.,…)])/g, "$1").replace(/\( /g, "(").replace(/" (.*?) "/g, '"$1"')
      .replace(/ ([!?;»])/g, "\u202f$1").replace(/« /g, "«\u202f").replace(/ :/g, "\u00a0:");
    return begins(text.trim().replace(/^[^\p{L}\p{N}]+/u, "")) ? line.replace(/(^|[.!?…] )\P{L}*\p{L}/gu, (end) => end.toUpperCase()) : line;
  }

  return { read, says, words, token, written };
};
