// The weights of a bundle, as course_utils.lessons.live.packing packs them: name → a vector, or a matrix as its rows.
globalThis.live_unpack = (() => {
  "use strict";

  function bytesOf(base64) {
    const letters = atob(base64);
    const bytes = new Uint8Array(letters.length);
    for (let i = 0; i < bytes.length; i += 1) bytes[i] = letters.charCodeAt(i);
    return bytes.buffer;
  }

  // A number in half precision: sign, 5 bits of exponent, 10 of fraction.
  function half(bits) {
    const sign = bits & 0x8000 ? -1 : 1;
    const exponent = (bits >> 10) & 31;
    const fraction = (bits & 1023) / 1024;
    return sign * (exponent ? 2 ** (exponent - 15) * (1 + fraction) : 2 ** -14 * fraction);
  }

  // Whole numbers of 8 bits, each row with its scale; or numbers in half precision, without.
  function unpack({ shape, scales, data }) {
    const size = shape.at(-1);
    const steps = scales && new Float32Array(bytesOf(scales));
    const numbers = scales
      ? new Int8Array(bytesOf(data))
      : Float64Array.from(new Uint16Array(bytesOf(data)), half);
    const rows = [];
    for (let start = 0; start < numbers.length; start += size) {
      const scale = steps ? steps[rows.length] : 1;
      const row = new Float64Array(size);
      for (let j = 0; j < size; j += 1) row[j] = Math.fround(numbers[start + j] * scale);
      rows.push(row);
    }
    return shape.length === 1 ? rows[0] : rows;
  }

  return (tensors) =>
    Object.fromEntries(Object.entries(tensors).map(([name, packed]) => [name, unpack(packed)]));
})();
