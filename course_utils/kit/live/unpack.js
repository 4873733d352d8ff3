// The weights of a bundle, as course_utils.kit.live.packing packs them: name → a vector, or a matrix as its rows.
globalThis.live_unpack = (() => {
  "use strict";

  function bytesOf(base64) {
    if (Uint8Array.fromBase64) return Uint8Array.fromBase64(base64).buffer; // browsers since 2025
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

  // Whole numbers from -31 on, a letter each.
  const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  function stepsOf(letters) {
    const places = new Int8Array(128);
    for (let i = 0; i < 64; i += 1) places[LETTERS.charCodeAt(i)] = i - 31;
    const steps = new Int8Array(letters.length);
    for (let i = 0; i < steps.length; i += 1) steps[i] = places[letters.charCodeAt(i)];
    return steps;
  }

  // Whole numbers, each row with its scale; or numbers in half precision, without.
  function numbersOf({ shape, scales, data, letters }) {
    if (!scales) return Float64Array.from(new Uint16Array(bytesOf(data)), half);
    const size = shape.at(-1);
    const steps = letters ? stepsOf(letters) : new Int8Array(bytesOf(data));
    const numbers = new Float64Array(steps.length);
    new Float32Array(bytesOf(scales)).forEach((scale, row) => {
      const end = (row + 1) * size;
      for (let j = row * size; j < end; j += 1) numbers[j] = Math.fround(steps[j] * scale);
    });
    return numbers;
  }

  // found: all that has been unpacked; of a tensor with several names, the others name the first.
  function unpack(packed, found) {
    if (packed.same) return found[packed.same];
    const numbers = numbersOf(packed);
    if (packed.shape.length === 1) return numbers;
    const size = packed.shape.at(-1);
    const row = (_, i) => numbers.subarray(i * size, (i + 1) * size);
    return Array.from({ length: numbers.length / size }, row);
  }

  // Each tensor is unpacked when it is first asked for, or when the page has nothing else to do.
  return (tensors) => {
    const found = {};
    for (const [name, packed] of Object.entries(tensors)) {
      Object.defineProperty(found, name, {
        configurable: true, enumerable: true,
        get: () => Object.defineProperty(found, name, { value: unpack(packed, found) })[name],
      });
    }
    const names = Object.keys(tensors);
    const next = (idle) => {
      while (names.length && idle.timeRemaining() > 0) void found[names.pop()];
      if (names.length) requestIdleCallback(next);
    };
    globalThis.requestIdleCallback?.(next);
    return found;
  };
})();
