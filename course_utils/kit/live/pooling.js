// Kernel regression as course_utils.pooling computes it, and the slope by which a width is learned.
globalThis.live_pooling = (() => {
  "use strict";
  const { total } = globalThis.live_parts;

  // Each kernel from the squared scaled distance s = u². How it changes with log σ: s becomes smaller by 2s.
  const KERNELS = {
    gaussian: { value: (s) => Math.exp(-s / 2), slope: (s) => s * Math.exp(-s / 2) },
    boxcar: { value: (s) => (s <= 1 ? 1 : 0), slope: () => 0 },
    triangular: {
      value: (s) => Math.max(0, 1 - Math.sqrt(s)),
      slope: (s) => (s < 1 ? Math.sqrt(s) : 0),
    },
    epanechnikov: { value: (s) => Math.max(0, 1 - s), slope: (s) => (s < 1 ? 2 * s : 0) },
  };

  const product = (a, b) => a.reduce((sum, number, i) => sum + number * b[i], 0);

  // u² for each key. A softmax does not see what all have in common: the nearest key's is taken away.
  function scaled(query, keys, kernel, width) {
    const squared = keys.map((key) => (query - key) ** 2);
    const nearest = kernel === "gaussian" ? Math.min(...squared) : 0;
    return squared.map((distance) => (distance - nearest) / width / width);
  }

  // One weight for each key, or NaN where no key is in reach.
  function weights(query, keys, kernel, width) {
    const heights = scaled(query, keys, kernel, width).map(KERNELS[kernel].value);
    const sum = total(heights);
    return heights.map((height) => height / sum);
  }

  const average = (query, points, kernel, width) =>
    product(weights(query, points.map(([x]) => x), kernel, width), points.map(([, y]) => y));

  // Each value is predicted from the others: the mean squared error, and its derivative for log σ.
  function leaveOneOut(points, kernel, width) {
    const { value, slope } = KERNELS[kernel];
    const errors = [];
    const slopes = [];
    points.forEach(([x, y], i) => {
      const others = points.filter((_, j) => j !== i);
      const values = others.map((point) => point[1]);
      const squared = scaled(x, others.map((point) => point[0]), kernel, width);
      const heights = squared.map(value);
      const rises = squared.map(slope);
      const sum = total(heights);
      const predicted = product(heights, values) / sum;
      const change = (product(rises, values) - predicted * total(rises)) / sum;
      errors.push((predicted - y) ** 2);
      slopes.push(2 * (predicted - y) * change);
    });
    const error = total(errors) / points.length;
    if (Number.isNaN(error)) return { error: Infinity, slope: 0 }; // a point has no other in reach
    return { error, slope: total(slopes) / points.length };
  }

  // Gradient descent with Adam for one number: `step` takes the slope there, and says how far to go.
  class Adam {
    mean = 0;
    square = 0;
    steps = 0;

    step(slope, rate) {
      this.steps += 1;
      this.mean = 0.9 * this.mean + 0.1 * slope;
      this.square = 0.999 * this.square + 0.001 * slope ** 2;
      const mean = this.mean / (1 - 0.9 ** this.steps);
      const square = this.square / (1 - 0.999 ** this.steps);
      return (-rate * mean) / (Math.sqrt(square) + 1e-8);
    }
  }

  return { KERNELS, weights, average, leaveOneOut, Adam };
})();
