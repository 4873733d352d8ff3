"""Counting as a language model: n-grams with the smoothing of Witten and Bell, as *GPT* writes it."""

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
