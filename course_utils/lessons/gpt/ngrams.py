"""Counting as a language model: n-grams with the smoothing of Witten and Bell, as *GPT* writes it, and a better one."""

import math
from collections import Counter
from collections.abc import Sequence


def ngram_losses(
    train: Sequence[int], test: Sequence[int], order: int, vocab_size: int
) -> list[float]:
    """Mean loss on `test` with n-grams of 1, 2, …, `order` tokens, in nats per token.

    With c(h, w) how often w follows the history h, c(h) how often h is followed at all and u(h) by how many different
    tokens, P_n(w | h) = (c(h, w) + u(h) P_(n−1)(w)) / (c(h) + u(h)); P_0 is uniform. Witten and Bell (1991), "The
    zero-frequency problem".
    """
    probs, losses = [1 / vocab_size] * len(test), []
    for n in range(1, order + 1):
        grams = Counter(zip(*(train[start:] for start in range(n)), strict=False))
        total: Counter[tuple] = Counter()
        kinds: Counter[tuple] = Counter()
        for gram, count in grams.items():
            total[gram[:-1]] += count
            kinds[gram[:-1]] += 1
        for place in range(n - 1, len(test)):
            gram = tuple(test[place - n + 1 : place + 1])
            if h := total[gram[:-1]]:
                u = kinds[gram[:-1]]
                probs[place] = (grams[gram] + u * probs[place]) / (h + u)
        losses.append(-sum(map(math.log, probs)) / len(probs))
    return losses


def kneser_ney_losses(
    train: Sequence[int], test: Sequence[int], order: int, vocab_size: int
) -> list[float]:
    """Mean loss on `test` with n-grams of 1, 2, …, `order` tokens, smoothed as Kneser and Ney do, in nats per token.

    Each count gives up a discount D, by whether it is 1, 2 or more, and the shorter history shares out what was given
    up: P_n(w | h) = (c(h, w) − D(c(h, w)) + d(h) P_(n−1)(w)) / c(h). All but the longest n-grams count not how often
    they stand there, but after how many different tokens. Chen and Goodman (1999), "An empirical study of smoothing
    techniques for language modeling", section 3.
    """
    grams = [Counter(zip(*(train[i:] for i in range(n)), strict=False)) for n in range(order + 1)]
    kinds = [Counter(gram[1:] for gram in longer) for longer in grams[1:]]  # of tokens before
    lower, losses = [1 / vocab_size] * len(test), []
    for n in range(1, order + 1):
        probs = _leaning(grams[n], n, test, lower)
        losses.append(-sum(map(math.log, probs)) / len(probs))
        lower = _leaning(kinds[n], n, test, lower) if n < order else lower
    return losses


def _leaning(
    counts: Counter[tuple], n: int, test: Sequence[int], lower: list[float]
) -> list[float]:
    """The probability of each token of `test`, where the n-grams lean on those of n − 1 tokens."""
    once, twice, thrice, often = (sum(c == k for c in counts.values()) for k in (1, 2, 3, 4))
    y = once / (once + 2 * twice)
    discount = [1 - 2 * y * twice / once, 2 - 3 * y * thrice / twice, 3 - 4 * y * often / thrice]
    total: Counter[tuple] = Counter()
    given: Counter[tuple] = Counter()
    for gram, count in counts.items():
        total[gram[:-1]] += count
        given[gram[:-1]] += discount[min(count, 3) - 1]
    probs = list(lower)
    for place in range(n - 1, len(test)):
        gram = tuple(test[place - n + 1 : place + 1])
        if whole := total[gram[:-1]]:
            count = counts[gram]
            kept = count - discount[min(count, 3) - 1] if count else 0.0
            probs[place] = (kept + given[gram[:-1]] * lower[place]) / whole
    return probs
