// A GPT in a page: it writes token by token, from a seed, and shows what each token was drawn from and looked at. The
// parts `text`, `next`, `maps` and `table` are written by gpt.py, too, for pages without scripts.
(globalThis.live_widgets ??= {}).gpt = (() => {
  "use strict";
  const parts = globalThis.live_parts;
  const { range, largest, mapAt, named, safe } = parts;
  const SHOWN = 8; // candidates for the next token
  const PACE = 120; // milliseconds from token to token
  const EOS = 3;

  // Drawing a token -----------------------------------------------------------------------------

  // A number from 0 to 1 for each place of a text: the same seed, the same numbers.
  function dice(seed, place) {
    let bits = Math.imul(seed, 0x9e3779b1) + Math.imul(place + 1, 0x85ebca6b);
    bits = Math.imul(bits ^ (bits >>> 16), 0x7feb352d);
    bits = Math.imul(bits ^ (bits >>> 15), 0x846ca68b);
    return ((bits ^ (bits >>> 16)) >>> 0) / 2 ** 32;
  }

  // softmax(logits / temperature) over the k best; towards temperature 0 the best gets all. k = 0 stands for all.
  function probabilities(logits, temperature, k) {
    const kept = new Set(largest(logits, temperature === 0 ? 1 : k || logits.length));
    const best = Math.max(...logits);
    const powers = Array.from(logits, (logit, id) =>
      (kept.has(id) ? Math.exp((logit - best) / (temperature || 1)) : 0));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  }

  // The token at which the sum of the probabilities passes a number from 0 to 1.
  function drawn(p, number) {
    let sum = 0;
    const token = p.findIndex((each) => (sum += each) > number);
    return token < 0 ? p.indexOf(Math.max(...p)) : token;
  }

  // So many equally likely tokens would leave the choice as open.
  const openness = (p) =>
    Math.exp(p.reduce((sum, each) => (each > 0 ? sum - each * Math.log(each) : sum), 0));

  // Reading on a cache --------------------------------------------------------------------------

  // A text as the model has read it: for each token the logits of the next, and its row in every map.
  class Reading {
    constructor(model) {
      this.model = model;
      this.ids = [];
    }

    // Reads ids; of those that it has read already, it keeps all.
    read(ids) {
      const goesOn = this.ids.length && this.ids.every((id, i) => id === ids[i]);
      if (!goesOn) Object.assign(this, { ids: [], logits: [], maps: [], state: this.model.start() });
      const fresh = ids.slice(this.ids.length);
      if (!fresh.length) return;
      this.logits.push(...this.model.step(fresh, this.state));
      this.model.layers("layers").forEach((name, layer) => {
        const heads = this.model.maps[`${name}.attention`];
        this.maps[layer] ??= heads.map(() => []);
        heads.forEach((rows, head) => this.maps[layer][head].push(...rows));
      });
      this.ids = ids;
    }

    // Layers × heads × queries × keys; no token attends to a later one.
    squares() {
      const whole = (row) => this.ids.map((_, i) => row[i] ?? 0);
      return this.maps.map((heads) => heads.map((rows) => rows.map(whole)));
    }
  }

  // HTML ----------------------------------------------------------------------------------------

  const nameOf = (tokens, id) => (id === undefined ? "…" : tokens[id]);

  function nextHTML(logits, tokens, { p, follows, free }) {
    const before = probabilities(logits, 1, 0);
    const shown = largest(logits, SHOWN);
    if (follows !== undefined && !shown.includes(follows)) shown.push(follows);
    const items = shown.map((id) => ({
      text: tokens[id], choice: free ? id : null, before: before[id], after: p[id],
    }));
    const said = follows === undefined ? "The next token" : `Here came <strong>${safe(tokens[follows])}</strong>. It`;
    return `<p>${said} is drawn from (bars; the lines are the softmax alone):</p>${parts.choices(items, follows)}` +
      `<p>The choice is as open as among ${openness(p).toFixed(1)} equally likely tokens.</p>`;
  }

  function tableHTML(squares, map, pieces, step) {
    return parts.table({
      caption: `Self-attention, ${named(map)}: each row in percent`,
      corner: ["reads"],
      rows: pieces.map((piece) => [piece]),
      columns: pieces,
      weights: mapAt(squares, map),
      now: step,
    });
  }

  // The widget ----------------------------------------------------------------------------------

  return function gpt(form, bundle) {
    const model = new globalThis.live_engine.GPT(bundle);
    const { Subwords, replaced } = globalThis.live_subwords;
    const subwords = new Subwords(bundle.vocabularies);
    const { tokens } = subwords;
    const window = bundle.config.max_len;
    const reading = new Reading(model);
    const field = form.elements;
    const part = (name) => form.querySelector(`[data-part="${name}"]`);
    const show = (name, html) => {
      part(name).innerHTML = html;
    };
    let timer = 0;
    let squares;

    // The beginning as ids. `written` holds what was drawn, behind the beginning for which it was drawn.
    const begun = () => [EOS, ...subwords.encode(field.prompt.value)].slice(0, window);
    function written() {
      const [ids, ...prompt] = field.written.value.split("|");
      if (prompt.join("|") !== field.prompt.value) return [];
      const all = ids.split(" ").filter(Boolean).map(Number);
      return all.filter((id) => Number.isInteger(id) && id >= 0 && id < tokens.length);
    }
    const text = () => [...begun(), ...written()].slice(0, window + 1);
    const ended = (all) => all.length > window || (all.length > 1 && all.at(-1) === EOS);
    const remember = (all) => set("written", `${all.slice(begun().length).join(" ")}|${field.prompt.value}`);

    const limits = () => [Number(field.temperature.value), Number(field.top_k.value)];
    // The text with one token more.
    function longer(all) {
      reading.read(all.slice(0, window));
      const p = probabilities(reading.logits[all.length - 1], ...limits());
      return [...all, drawn(p, dice(Number(field.seed.value), all.length))];
    }

    function write(all) {
      const calm = globalThis.matchMedia("(prefers-reduced-motion: reduce)").matches;
      let next = longer(all);
      timer = 0;
      while (calm && !ended(next)) next = longer(next);
      if (!ended(next)) timer = setTimeout(() => write(next), PACE);
      remember(next);
    }

    // `changed`: the control that a reader moved; at first all is drawn.
    function draw(changed) {
      if (changed !== "written") stop();
      const whole = [undefined, "prompt", "written"].includes(changed);
      const all = text();
      const read = all.slice(0, ended(all) ? -1 : window);
      if (whole) {
        reading.read(read);
        squares = reading.squares();
        field.step.max = read.length;
        if (changed) field.step.value = read.length;
        show("unread", subwords.unread(field.prompt.value).map((word) => subwords.unreadWord(word)).join(" "));
        show("maps", parts.gallery(squares, field.map.value));
        if (!timer) part("status").textContent = ended(all) ? `Written: ${subwords.decode(all)}` : "";
        part("full").hidden = all.length <= window;
      }
      const step = Math.min(Number(field.step.value), read.length) - 1;
      const pieces = read.map((id) => tokens[id]);
      const p = probabilities(reading.logits[step], ...limits());
      const view = { p, follows: all[step + 1], free: step >= begun().length - 1 };
      const row = mapAt(squares, field.map.value)[step];
      show("text", parts.weighted(all.map((id) => tokens[id]), row, step));
      if (whole || ["step", "map"].includes(changed)) show("table", tableHTML(squares, field.map.value, pieces, step));
      show("next", nextHTML(reading.logits[step], tokens, view));
      part("temperature").textContent = limits()[0].toFixed(1);
      const name = `${step + 1} of ${read.length}: ${pieces[step]}`;
      field.step.setAttribute("aria-valuetext", name);
      part("step").textContent = name;
    }

    function stop() {
      clearTimeout(timer);
      timer = 0;
    }

    const does = {
      write: () => write(ended(text()) ? begun() : text()),
      one: () => !ended(text()) && remember(longer(text())),
      again: () => remember(begun()),
    };
    const set = parts.follow(form, draw);
    form.addEventListener("click", ({ target }) => {
      const { act, choice, place, for: word } = target.closest("button, [data-place]")?.dataset ?? {};
      stop();
      if (act) does[act]();
      if (choice) {
        remember([...text().slice(0, Number(field.step.value)), Number(choice)]);
        field.step.focus(); // the button is gone
      }
      if (place) set("step", Number(place) + 1);
      if (!word) return;
      set("prompt", replaced(field.prompt.value, word, target.textContent));
      field.prompt.focus();
    });
  };
})();
