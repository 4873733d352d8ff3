"""N-grams with modified Kneser–Ney smoothing, the number to beat in *GPT*, and their losses in bits per character."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import Any

from course_utils.data.prose import Subwords
from course_utils.data.text import EOS


def kneser_ney_losses(
    train: Sequence[int], test: Sequence[int], order: int, vocab_size: int
) -> list[float]:
    """Mean loss on `test` with n-grams of 1, 2, …, `order` tokens, smoothed as Kneser and Ney do, in nats per token."""
    rows = kneser_ney_probs(train, test, order, vocab_size)
    return [-sum(map(math.log, probs)) / len(probs) for probs in rows]


def kneser_ney_probs(
    train: Sequence[int], test: Sequence[int], order: int, vocab_size: int
) -> list[list[float]]:
    """The probability of each token of `test`, a row for n-grams of each length from 1 to `order` tokens.

    Each count gives up a discount D, by whether it is 1, 2 or more, and the shorter history shares out what was given
    up: P_n(w | h) = (c(h, w) − D(c(h, w)) + d(h) P_(n−1)(w)) / c(h). All but the longest n-grams count not how often
    they stand there, but after how many different tokens. Chen and Goodman (1999), "An empirical study of smoothing
    techniques for language modeling", section 3 (modified Kneser–Ney).
    """
    grams = [_ngrams(train, n) for n in range(order + 1)]
    # For each n-gram, how many different tokens stand before it.
    kinds = [Counter(gram[1:] for gram in longer) for longer in grams[1:]]
    lower, rows = [1 / vocab_size] * len(test), []
    for n in range(1, order + 1):
        rows.append(_interpolated(grams[n], n, test, lower))
        lower = _interpolated(kinds[n], n, test, lower) if n < order else lower
    return rows


def _ngrams(tokens: Sequence[int], n: int) -> Counter[tuple]:
    """How often each n-gram of so many tokens occurs."""
    shifted = [tokens[start:] for start in range(n)]
    return Counter(zip(*shifted, strict=False))


def discounts(counts: Counter[tuple]) -> tuple[float, float, float]:
    """What a count of 1, of 2, and of 3 or more gives up, estimated from how many n-grams occur 1, 2, 3 and 4 times.

    In a short text or a small alphabet no n-gram may occur, say, exactly twice, or the estimate may give up more than
    the count or less than nothing; then half of each count up to 3 is given up.
    """
    once, twice, thrice, often = (sum(c == k for c in counts.values()) for k in (1, 2, 3, 4))
    if once and twice and thrice:
        y = once / (once + 2 * twice)
        estimated = (
            1 - 2 * y * twice / once,
            2 - 3 * y * thrice / twice,
            3 - 4 * y * often / thrice,
        )
        if all(0 < discount < count for count, discount in enumerate(estimated, start=1)):
            return estimated
    return 0.5, 1.0, 1.5


def _interpolated(
    counts: Counter[tuple], n: int, test: Sequence[int], lower: list[float]
) -> list[float]:
    """The probability of each token of `test` by n-grams that are interpolated with shorter ones.

    Args:
        counts: of the n-grams.
        n: their length.
        test: the tokens.
        lower: the probability of each token by n-grams of n − 1 tokens.
    """
    discount = discounts(counts)
    total: Counter[tuple] = Counter()
    given: Counter[tuple] = Counter()
    for gram, count in counts.items():
        total[gram[:-1]] += count
        given[gram[:-1]] += discount[min(count, 3) - 1]
    probs = list(lower)
    for position in range(n - 1, len(test)):
        gram = tuple(test[position - n + 1 : position + 1])
        if whole := total[gram[:-1]]:
            count = counts[gram]
            discounted = count - discount[min(count, 3) - 1] if count else 0.0
            probs[position] = (discounted + given[gram[:-1]] * lower[position]) / whole
    return probs


# Losses with different tokens, brought to bits per character of the text --------------------------

ORDER = 8
"""Tokens of the longest n-grams."""
HELD_OUT = 10
"""Every tenth sentence is held out."""


def compare(sentences: Sequence[str], sizes: Sequence[int]) -> Any:
    """A table of the best n-grams on characters, and on subwords of each size.

    Args:
        sentences: every tenth is held out, the others are counted.
        sizes: of the vocabularies of subwords.

    Returns:
        A pandas.DataFrame, a row for each kind of token: the best n, loss and perplexity per token, bits per character.
    """
    import pandas as pd

    unread = sentences[::HELD_OUT]
    read = [text for index, text in enumerate(sentences) if index % HELD_OUT]
    letters = sum(len(text) + 1 for text in unread)  # and the sentence's end
    rows = {}
    for size in (0, *sizes):
        name, encode, vocab_size = _tokens(read, size)
        streams = []
        for texts in (read, unread):
            streams.append([i for text in texts for i in [*encode(text), EOS]])
        losses = kneser_ney_losses(*streams, ORDER, vocab_size)
        best = min(losses)
        rows[name] = {
            "best n": losses.index(best) + 1,
            "loss per token": best,
            "perplexity": math.exp(best),
            "bits per character": best * len(streams[1]) / letters / math.log(2),
        }
    return pd.DataFrame(rows).T.astype({"best n": int})


def _tokens(read: Sequence[str], size: int) -> tuple[str, Any, int]:
    """The name of a kind of token, how a text is encoded, and how many tokens there are; 0 stands for characters."""
    if size:
        subwords = Subwords(read, size=size)
        return f"{size} subwords", subwords.encode, len(subwords)
    alphabet = {letter: 5 + index for index, letter in enumerate(sorted(set("".join(read))))}
    return "characters", lambda text: [alphabet.get(c, 1) for c in text], 5 + len(alphabet)
