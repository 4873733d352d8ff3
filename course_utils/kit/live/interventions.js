// The verbs of course_utils.interventions for the networks of engine.js: forbid looks, take parts away, put in those of
// another run. Places, heads, layers and positions are named and counted as there.
(() => {
  "use strict";
  const HOOKS = ["start", "step", "looks", "changed"];
  const QUERIES = ".query_proj.weight";
  const has = (numbers, number) => numbers === undefined || [numbers].flat().includes(number);

  function placesOf(model) {
    const weights = Object.keys(model.p).filter((name) => name.endsWith(QUERIES));
    const names = weights.map((name) => name.slice(0, -QUERIES.length));
    const attentions = names.filter((name) => name.includes(".")); // in a layer
    const layers = new Set(attentions.map((name) => name.slice(0, name.lastIndexOf("."))));
    const parts = [...layers].flatMap((name) => [`${name}.feed_forward`, `${name}.residual`]);
    return { attentions, parts: [...attentions, ...parts] };
  }

  // Whether `name` has the parts of `place` in this order, and ends as it does.
  function fits(place, name) {
    const [wanted, parts] = [place.split("."), name.split(".")];
    if (wanted.at(-1) !== parts.at(-1)) return false;
    let from = -1;
    return wanted.every((part) => (from = parts.indexOf(part, from + 1)) >= 0);
  }

  function chosen(names, { place, layers }) {
    const named = names.filter((name) => place === undefined || fits(place, name));
    const found = named.filter((name) => has(layers, Number(name.match(/\.(\d+)\./)[1])));
    if (!found.length) {
      throw new RangeError(`place=${place}, layers=${layers}; there are ${names.join(", ")}`);
    }
    return found;
  }

  // Put functions of these names in front of the model's own; `end` takes them away again.
  function hook(model, made) {
    const before = Object.fromEntries(HOOKS.map((name) => [name, model[name]?.bind(model)]));
    const own = HOOKS.filter((name) => Object.hasOwn(model, name)).map((name) => [name, model[name]]);
    let position = 0; // of the first token of a call
    const start = (ids) => {
      position = 0;
      return before.start(ids);
    };
    const step = (ids, state) => {
      position = state.length;
      return before.step(ids, state);
    };
    Object.assign(model, before.step && { start, step }, made(before, () => position));
    return () => {
      for (const name of HOOKS) delete model[name];
      Object.assign(model, Object.fromEntries(own));
    };
  }

  // Rows of a place, or of each of its heads, exchanged at these positions.
  const exchanged = (rows, positions, first, value) =>
    rows.map((row, i) => (has(positions, first + i) ? value(row, first + i) : row));

  function intervene(model) {
    const { attentions, parts } = placesOf(model);
    const [looks, changes] = [[], []];
    const replace = ({ heads, positions, ...where }, value) => {
      for (const name of chosen(where.place === undefined ? attentions : parts, where)) {
        const place = heads === undefined ? name : `${name}.heads`;
        const rowsOf = (rows, first, h) => exchanged(rows, positions, first, value(place, h));
        const all = (x, first) => x.map((rows, h) => (has(heads, h) ? rowsOf(rows, first, h) : rows));
        changes.push([place, heads === undefined ? rowsOf : all]);
      }
    };
    const end = hook(model, (before, position) => ({
      looks(name, h, i, scores) {
        const none = (look) => look.names.includes(name) && has(look.heads, h) && has(look.queries, position() + i);
        const keys = looks.filter(none).map((look) => look.keys);
        return before.looks(name, h, i, scores).map((s, j) => (keys.some((all) => has(all, j)) ? -Infinity : s));
      },
      changed: (name, x) => changes.reduce(
        (y, [place, change]) => (place === name ? change(y, position()) : y), before.changed(name, x)),
    }));
    const of = (run, place, h) => (h === undefined ? run[place] : run[place][h]);
    const meanOf = (rows) => rows[0].map((_, j) => rows.reduce((sum, row) => sum + row[j], 0) / rows.length);
    return {
      knockOut: ({ queries, keys, heads, ...where }) =>
        looks.push({ names: chosen(attentions, where), queries, keys, heads }),
      // By zero or, with a run, by the mean over its positions.
      ablate: ({ run, ...what }) => replace(what, (place, h) => {
        const mean = run && meanOf(of(run, place, h));
        return (row) => mean ?? row.map(() => 0);
      }),
      patch: ({ run, ...what }) => replace(what, (place, h) => (row, i) => of(run, place, h)[i]),
      end,
    };
  }

  // What every place gives until `end`: `run`, positions × features, of heads heads × positions × head_dim.
  function recordActivations(model) {
    const run = {};
    const end = hook(model, (before, position) => ({
      changed(name, x) {
        const y = before.changed(name, x);
        const behind = (rows, old = []) => [...old.slice(0, position()), ...rows];
        run[name] = name.endsWith(".heads")
          ? y.map((rows, h) => behind(rows, run[name]?.[h])) : behind(y, run[name]);
        return y;
      },
    }));
    return { run, end };
  }

  Object.assign(globalThis.live_engine, { intervene, recordActivations });
})();
