"""A trigram model with Kneser–Ney smoothing: what counts of the pretraining text know of both tasks.

*BERT and transfer* compares its networks with it, at hidden tokens and at sentences out of order.
"""

import functools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor

from course_utils.data.text import MASK
from course_utils.lessons.bert_and_transfer.tasks import VOCAB, Labeled, hidden, sentences
from course_utils.lessons.gpt.ngrams import discounts

Ngram = tuple[int, ...]
"""Ids of neighboring tokens."""


class Trigrams:
    """Counts of single tokens, pairs and triples of a text, smoothed as in `ngrams.kneser_ney_losses`.

    The probabilities of all tokens are given at once: of those that may follow, or of those that may fill a gap.

    Args:
        rows: sentences, each a list of ids with its marks.

    Attributes:
        single: P(token), (VOCAB,).
        pairs: P(token | the token before it), (VOCAB, VOCAB), a row for each token before.
        rest: what each history of two tokens leaves to the shorter one, (VOCAB, VOCAB).
        thirds: for each place of a triple, the other two tokens → the tokens there, and their shares.
    """

    def __init__(self, rows: Iterable[Sequence[int]]):
        rows = list(rows)
        triples: Counter[Ngram] = Counter()
        for row in rows:
            triples.update(zip(row, row[1:], row[2:], strict=False))
        starts: Counter[Ngram] = Counter(
            (row[0], row[1]) for row in rows
        )  # nothing comes before them
        pairs = Counter(triple[1:] for triple in triples) + starts
        single = Counter(pair[1] for pair in pairs)
        self.single = self._probs_of_tokens(single)
        self.pairs = self._probs_after_one(pairs)
        shares, given = _discounted(triples)
        self.rest = torch.ones(VOCAB, VOCAB)
        for history, share in given.items():
            self.rest[history] = share
        self.thirds = [self._by_the_others(shares, place) for place in range(3)]

    @staticmethod
    def _probs_of_tokens(single: Mapping[int, int]) -> Tensor:
        """P(token), (VOCAB,)."""
        shares, given = _discounted({(token,): count for token, count in single.items()})
        probs = given[()] * (torch.ones(VOCAB) / VOCAB)
        for (token,), share in shares.items():
            probs[token] += share
        return probs

    def _probs_after_one(self, pairs: Mapping[Ngram, int]) -> Tensor:
        """P(token | the token before it), (VOCAB, VOCAB), a row for each token before."""
        shares, given = _discounted(pairs)
        probs = self.single.repeat(VOCAB, 1)
        for (first,), share in given.items():
            probs[first] = share * self.single
        for pair, share in shares.items():
            probs[pair] += share
        return probs

    @staticmethod
    def _by_the_others(
        shares: Mapping[Ngram, float], place: int
    ) -> dict[Ngram, tuple[list[int], list[float]]]:
        """The other two tokens → the tokens at a place of the triples, and their shares."""
        found: dict[Ngram, tuple[list[int], list[float]]] = {}
        for triple, share in shares.items():
            others = (*triple[:place], *triple[place + 1 :])
            ids, of_ids = found.setdefault(others, ([], []))
            ids.append(triple[place])
            of_ids.append(share)
        return found

    def _with_thirds(self, probs: Tensor, place: int, others: tuple[int, int]) -> Tensor:
        """Probabilities (VOCAB,) with the shares of the triples added that have these two other tokens."""
        ids, shares = self.thirds[place].get(others, ([], []))
        probs = probs.clone()
        probs[ids] += torch.tensor(shares)
        return probs

    def after(self, *history: int) -> Tensor:
        """P(token | up to two tokens before it), (VOCAB,)."""
        if len(history) < 2:
            return self.pairs[history[-1]]
        first, second = history[-2:]
        return self._with_thirds(self.rest[first, second] * self.pairs[second], 2, (first, second))

    def gap(self, left: Sequence[int], right: Sequence[int]) -> Tensor:
        """P(token | the tokens on both sides, of which two are used on each), (VOCAB,).

        It is proportional to the probability of the sentence with the token in the gap, and 0 for special tokens.
        """
        before, behind = left[-1], right[:2]
        probs = self.after(*left[-2:])
        next_one = self.rest[before] * self.pairs[:, behind[0]]
        probs = probs * self._with_thirds(next_one, 1, (before, behind[0]))
        if len(behind) > 1:
            one_more = self.rest[:, behind[0]] * self.pairs[behind[0], behind[1]]
            probs = probs * self._with_thirds(one_more, 0, (behind[0], behind[1]))
        probs[: MASK + 1] = 0.0
        return probs / probs.sum()


def _discounted(counts: Mapping[Ngram, int]) -> tuple[dict[Ngram, float], dict[Ngram, float]]:
    """N-gram → its discounted share of its history's counts, and history → the share left to the shorter history."""
    discount = discounts(Counter(counts))
    total: Counter[Ngram] = Counter()
    given: Counter[Ngram] = Counter()
    for gram, count in counts.items():
        total[gram[:-1]] += count
        given[gram[:-1]] += discount[min(count, 3) - 1]
    shares = {
        gram: (count - discount[min(count, 3) - 1]) / total[gram[:-1]]
        for gram, count in counts.items()
    }
    return shares, {history: given[history] / total[history] for history in total}


@functools.cache
def trigrams() -> Trigrams:
    """The trigram model of the pretraining text."""
    ids, lengths = sentences()
    rows = zip(ids.tolist(), lengths.tolist(), strict=True)
    return Trigrams(row[:length] for row, length in rows)


@functools.cache
def hidden_losses() -> dict[str, float]:
    """Mean loss at the hidden tokens, by the tokens that are looked at: one or two on the left, or two on each side."""
    (data, places), table = hidden(), trigrams()
    probs: dict[str, list[Tensor]] = {name: [] for name in ("one left", "two left", "two each")}
    for row, place, length in zip(
        data.ids.tolist(), places.tolist(), data.lengths.tolist(), strict=True
    ):
        left, token, right = row[:place], row[place], row[place + 1 : length]
        probs["one left"].append(table.after(left[-1])[token])
        probs["two left"].append(table.after(*left)[token])
        probs["two each"].append(table.gap(left, right)[token])
    return {name: -torch.stack(probs).log().mean().item() for name, probs in probs.items()}


def strangeness_by_both_sides(data: Labeled) -> Tensor:
    """(sentences,): the sum of the losses of all tokens, each hidden in turn and guessed from both sides."""
    table, sums = trigrams(), []
    for row, length in zip(data.ids.tolist(), data.lengths.tolist(), strict=True):
        probs = [
            table.gap(row[:place], row[place + 1 : length])[row[place]]
            for place in range(1, length - 1)
        ]
        sums.append(-torch.stack(probs).log().sum())
    return torch.stack(sums)


def strangeness_from_left(data: Labeled) -> Tensor:
    """(sentences,): −ln P of the sentence, each token guessed from the two before it."""
    table, sums = trigrams(), []
    for row, length in zip(data.ids.tolist(), data.lengths.tolist(), strict=True):
        probs = [table.after(*row[:place])[row[place]] for place in range(1, length)]
        sums.append(-torch.stack(probs).log().sum())
    return torch.stack(sums)
