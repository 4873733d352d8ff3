// What the scripts of live widgets need of a browser, and how their first states are asked for.
globalThis.atob = (text) => {
  const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const values = Object.fromEntries([...letters].map((letter, value) => [letter, value]));
  let [bits, count, bytes] = [0, 0, ""];
  for (const letter of text.replace(/=+$/, "")) {
    bits = ((bits << 6) | values[letter]) & 0xfff;
    count += 6;
    if (count >= 8) bytes += String.fromCharCode((bits >> (count -= 8)) & 255);
  }
  return bytes;
};
globalThis.firstState = (kind, models, options) => {
  const { state, html } = live_widgets[kind];
  return html(state(models.map((name) => live_bundles[name]), options));
};
