// One attention head, and its gradients by the chain rule: what autograd does, written out. Vectors are rows.
globalThis.live_head = (() => {
  "use strict";

  const dot = (a, b) => a.reduce((sum, number, i) => sum + number * b[i], 0);
  const transposed = (A) => A[0].map((_, j) => A.map((row) => row[j]));
  const times = (A, B) => {
    const columns = transposed(B);
    return A.map((row) => columns.map((column) => dot(row, column)));
  };

  function softmax(scores) {
    const most = Math.max(...scores);
    const powers = scores.map((score) => Math.exp(score - most));
    const sum = powers.reduce((a, b) => a + b);
    return powers.map((power) => power / sum);
  }

  // X: n words × M features; `asking`: the words that ask, all of them by default. W: the matrices Q and K, M × d, and
  // V, M × d_v.
  function forward(X, W, asking = X) {
    const [Q, K, V] = [times(asking, W.Q), times(X, W.K), times(X, W.V)]; // project
    const scale = 1 / Math.sqrt(Q[0].length);
    const scores = times(Q, transposed(K)).map((row) => row.map((score) => score * scale)); // score, scale
    const weights = scores.map(softmax); // normalize
    return { X, asking, Q, K, V, scale, weights, Z: times(weights, V) }; // mix
  }

  // From the gradient of the loss for Z to those for W, backwards through every operation.
  function backward({ X, asking, Q, K, V, scale, weights }, dZ) {
    const dV = times(transposed(weights), dZ); // mix
    const dWeights = times(dZ, transposed(V));
    const dScores = weights.map((row, i) => { // normalize: α (g − Σ α g), for each row
      const mean = dot(row, dWeights[i]);
      return row.map((weight, j) => weight * (dWeights[i][j] - mean) * scale); // scale
    });
    const dQ = times(dScores, K); // score
    const dK = times(transposed(dScores), Q);
    const words = transposed(X);
    return { Q: times(transposed(asking), dQ), K: times(words, dK), V: times(words, dV) }; // project
  }

  // Only the last word asks, and its answer is one number, a logit: the loss is log(1 + e^−z) if right is 1, and
  // log(1 + e^z) if right is 0.
  const chance = (z) => 1 / (1 + Math.exp(-z));
  const surprise = (z, right) => {
    const against = right ? -z : z;
    return Math.max(against, 0) + Math.log1p(Math.exp(-Math.abs(against)));
  };

  // Each pair of entries of some matrices.
  const joined = (A, B, join) => Object.fromEntries(Object.entries(A).map(([name, matrix]) =>
    [name, matrix.map((row, i) => row.map((entry, j) => join(entry, B[name][i][j])))]));

  // The mean loss over sentences { X, right }, how many answers are right, and the gradients for W.
  function lossOf(sentences, W) {
    const count = sentences.length;
    let [loss, hits, gradients] = [0, 0, joined(W, W, () => 0)];
    for (const { X, right } of sentences) {
      const passed = forward(X, W, X.slice(-1));
      const [[z]] = passed.Z;
      loss += surprise(z, right) / count;
      hits += Number(z > 0 === Boolean(right));
      const slopes = backward(passed, [[(chance(z) - right) / count]]);
      gradients = joined(gradients, slopes, (sum, more) => sum + more);
    }
    return { loss, hits, gradients };
  }

  // One step of gradient descent.
  const descended = (W, gradients, rate) => joined(W, gradients, (weight, slope) => weight - rate * slope);

  return { forward, backward, lossOf, descended, chance, surprise };
})();
