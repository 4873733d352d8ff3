// What a model of language reads and says: words and pieces of words as tokens, a text that is read token by token, and
// words that are not known.

// Token → id, without the special tokens, which come first: a word that a reader writes is none of them, however it is
// spelled.
const idsOf = (tokens, specials = EOS + 1) =>
  new Map(tokens.slice(specials).map((token, i) => [token, specials + i]));

// Byte-pair encoding --------------------------------------------------------------------------

const END = "␣"; // stands behind each word, before the first merge

class Subwords {
  // tokens by id; merges, "a b" for the pair of a and b, in the order in which they were learned; words: all of the
  // training.
  constructor({ tokens, merges, words }) {
    this.tokens = tokens;
    this.words = words;
    this.ids = idsOf(tokens, MASK + 1);
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
    const words = tokenize(text.replaceAll(END, " "));
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
    const words = new Set(tokenize(text.replaceAll(END, " ")));
    return [...words].filter((word) => !this.words.includes(word)).map((word) => this.unreadWord(word)).join(" ");
  }

  // "It has never read wuman, and reads it in pieces: w u man␣. Words it knows: woman", each known one a button. A
  // word may be one piece, as a part of other words was.
  unreadWord(word) {
    const pieces = this.pieces(word).map((piece) => (this.ids.has(piece) ? piece : this.tokens[UNK]));
    const cut = pieces.length > 1 ? "in pieces" : "as one piece";
    const told = `It has never read <q translate="no">${safe(word)}</q>, and reads it ${cut}: ${asIs(pieces.join(" "))}.`;
    return unknownWord(word, ["", "", "", "", ...this.words], told);
  }
}

// Words of a translator ----------------------------------------------------------------------

// What a translator reads and says, word by word: one with a vocabulary of words, or one with pieces of words, whose
// bundle says `pieces`. A word is { text, places }: where its tokens stand.
function languageOf(bundle) {
  const subwords = bundle.pieces ? new Subwords(bundle.vocabularies) : null;
  const { source, target } = subwords ? { source: subwords.tokens, target: subwords.tokens } : bundle.vocabularies;
  const ids = idsOf(source, subwords ? MASK + 1 : EOS + 1);

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

  // A text → the ids that the model reads, its words with "<eos>" as the last, and what it has no token for: words, which are read as <unk>, or
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
    const weight = (query, key) =>
      total(query.places.map((i) => total(key.places.map((j) => rows[i][j])))) / query.places.length;
    return queries.map((query) => keys.map((key) => weight(query, key)));
  }

  // A token by itself; a piece that does not end its word ends in a hyphen.
  function token(id) {
    const text = target[id];
    if (!subwords || id <= MASK) return text;
    return text === END ? END : text.endsWith(END) ? text.slice(0, -1) : `${text}-`;
  }

  return { read, says, words, token };
}

// A text under way ----------------------------------------------------------------------------

class Reading {
  // begin: gives a state of the model in which nothing has been read.
  constructor(model, begin = () => model.start()) {
    Object.assign(this, { model, begin });
    this.restart();
  }

  restart() {
    Object.assign(this, { ids: [], logits: [], rows: {}, state: this.begin(), atOnce: false });
  }

  // Reads more ids, as a model does, and gives the logits after each of them.
  step(fresh) {
    const before = { ...this.model.maps };
    const logits = this.model.step(fresh, this.state);
    for (const [name, heads] of Object.entries(this.model.maps)) {
      if (heads === before[name]) continue; // an attention of the encoder
      this.rows[name] ??= heads.map(() => []);
      heads.forEach((rows, head) => this.rows[name][head].push(...rows));
    }
    this.atOnce = !this.ids.length;
    this.ids.push(...fresh);
    this.logits.push(...logits);
    return logits;
  }

  // Reads ids; those at the beginning that it has read already are kept.
  read(ids) {
    const other = this.ids.findIndex((id, i) => id !== ids[i]);
    if (other >= 0) this.back(other);
    if (this.ids.length < ids.length) this.step(ids.slice(this.ids.length));
  }

  // Back to where it had read so many tokens; a model that cannot forget begins anew.
  back(length) {
    if (!length || !this.model.forget) return this.restart();
    this.model.forget(this.state, length);
    const everyRow = Object.values(this.rows).flat();
    for (const each of [this.ids, this.logits, ...everyRow]) each.length = length;
    this.atOnce = false;
  }

  // Reads all once more in one step: then the model has the inside of every row, to be explained.
  again() {
    if (!this.atOnce) this.model.step(this.ids, this.begin());
    this.atOnce = true;
  }

  // The weights of an attention, heads × queries × keys; among its own tokens, none attends to a later one.
  map(name, keys = this.ids.length) {
    const whole = (row) => Float64Array.from({ length: keys }, (_, j) => row[j] ?? 0);
    return this.rows[name].map((rows) => rows.map(whole));
  }
}

// Words that are not known --------------------------------------------------------------------

// How many letters have to be changed, added or left out.
function distance(a, b) {
  let row = range(b.length + 1);
  for (let i = 1; i <= a.length; i += 1) {
    const before = row;
    row = [i];
    for (let j = 1; j <= b.length; j += 1) {
      const same = before[j - 1] + (a[i - 1] === b[j - 1] ? 0 : 1);
      row.push(Math.min(same, before[j] + 1, row[j - 1] + 1));
    }
  }
  return row.at(-1);
}

// Known words like this one, for "am" also "i'm"; the first four of a vocabulary are no words.
function suggestions(unknown, vocabulary) {
  const most = Math.min(2, unknown.length / 2);
  const begin = unknown.length > 2 ? unknown.slice(0, 3) : null;
  const verb = /^(am|are|is)$/.test(unknown) ? `'${unknown.slice(1)}` : null;
  const near = vocabulary.slice(4).flatMap((word) => {
    const begins = begin !== null && word.startsWith(begin);
    const short = verb !== null && word.endsWith(verb);
    const apart = Math.abs(word.length - unknown.length); // no distance is smaller
    if (apart > most && !begins && !short) return [];
    const far = short ? 0 : distance(unknown, word) - (begins ? 0.5 : 0);
    return begins || far <= most ? [{ word, far }] : [];
  });
  return near.sort((a, b) => a.far - b.far).slice(0, 3).map(({ word }) => word);
}

// "It does not know wuman. Words it knows: woman", each known one a button.
function unknownWord(token, vocabulary, told = `It does not know <q translate="no">${safe(token)}</q>.`) {
  const others = suggestions(token, vocabulary).map((word) => button(`${DATA} data-for="${safe(token)}"`, safe(word)));
  return `<span>${told}${others.length ? ` Words it knows: ${others.join(" ")}` : ""}</span>`;
}

// The text with another word in place of an unknown one; "i'm" for "am" takes the place of "i am".
function replaced(text, unknown, word) {
  const tokens = tokenize(text);
  const inside = (token, i) => tokens[i + 1] === unknown && word.startsWith(`${token}'`);
  return tokens.filter((token, i) => !inside(token, i)).map((token) => (token === unknown ? word : token)).join(" ");
}

// What a click on a known word does: it takes the place of an unknown one in a field.
const correct = (field, set) => (unknown, { textContent }) => {
  set(field.name, replaced(field.value, unknown, textContent));
  field.focus();
};
