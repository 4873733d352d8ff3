"""Tasks for *BERT and transfer*: hidden tokens, and sentences out of order, with what counting knows of both.

The sentences of the tasks are never read in pretraining. One is in order or not, and each comes twice: as it is, and
with two neighboring words exchanged. Both have the same words, so a bag of words is right in exactly half of them.
"""

import functools
import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.prose import IGNORE, Subwords, load_english
from course_utils.data.text import MASK, pad
from course_utils.lessons.gpt.ngrams import discounts

VOCAB = 512  # tokens
POOL, VAL, TEST = 1500, 250, 750  # sentences to be labeled, to choose with, and to measure with
SHORTEST = 5  # tokens of a sentence in a task, the last mark included


@dataclass(frozen=True)
class Texts:
    """The course's English sentences, divided.

    Attributes:
        read: what models are pretrained on, without labels.
        pool, val, test: sentences of the tasks; none of them is in `read`.
        subwords: learned from `read`.
    """

    read: tuple[str, ...]
    pool: tuple[str, ...]
    val: tuple[str, ...]
    test: tuple[str, ...]
    subwords: Subwords


@functools.cache
def texts() -> Texts:
    """The division, always the same."""
    sentences = load_english()
    random.Random(0).shuffle(sentences)
    corpus, labeled_pool, read = set(sentences), [], []
    for text in sentences:
        long = len(text.split()) >= SHORTEST and exchanges(text, corpus)
        (labeled_pool if long and len(labeled_pool) < POOL + VAL + TEST else read).append(text)
    parts = labeled_pool[:POOL], labeled_pool[POOL : POOL + VAL], labeled_pool[POOL + VAL :]
    return Texts(tuple(read), *map(tuple, parts), Subwords(read, size=VOCAB))


def exchanges(text: str, corpus: set[str]) -> list[str]:
    """What the exchange of two neighbors can make of a sentence; its last mark stays, and no known sentence."""
    words = text.split()
    exchanged = []
    for i in range(len(words) - 2):
        other = " ".join([*words[:i], words[i + 1], words[i], *words[i + 2 :]])
        if other not in corpus:
            exchanged.append(other)
    return exchanged


@dataclass(frozen=True)
class Labeled:
    """Sentences with their classes, as a batch.

    Attributes:
        ids: (sentences, longest) with <bos> and <eos>, padded on the right.
        lengths: (sentences,)
        labels: (sentences,)
        texts: the same, in words.
    """

    ids: Tensor
    lengths: Tensor
    labels: Tensor
    texts: tuple[str, ...]


def labeled(pairs: Sequence[tuple[str, int]]) -> Labeled:
    """Pairs of a sentence and its class, as one batch."""
    ids, lengths = pad([texts().subwords.sentence(text) for text, _ in pairs])
    labels = torch.tensor([label for _, label in pairs])
    return Labeled(ids, lengths, labels, tuple(text for text, _ in pairs))


def in_order(sentences: Sequence[str], seed: int = 0) -> Labeled:
    """Each sentence as it is (class 0), and with two neighbors exchanged (class 1)."""
    corpus, draws = set(load_english()), random.Random(seed)
    pairs = []
    for text in sentences:
        pairs += [(text, 0), (draws.choice(exchanges(text, corpus)), 1)]
    return labeled(pairs)


@functools.cache
def order_task() -> tuple[Labeled, Labeled]:
    """Validation and test part."""
    return in_order(texts().val), in_order(texts().test)


@functools.cache
def few(count: int, seed: int) -> Labeled:
    """`count` labeled sentences, drawn from the pool; both forms of a sentence are among them."""
    return in_order(random.Random(seed).sample(texts().pool, POOL)[: count // 2], seed)


def bag(data: Labeled) -> Tensor:
    """(sentences, VOCAB) which tokens a sentence has."""
    return torch.zeros(len(data.labels), VOCAB).scatter_(1, data.ids, 1.0)


# Pretraining --------------------------------------------------------------------------------------

SIZES = {"embed_dim": 64, "num_heads": 4, "num_layers": 2}


def masking(ids: Tensor, vocab_size: int, share: float = 0.15) -> tuple[Tensor, Tensor]:
    """Tokens to be read and targets, (batch, length): BERT's rule.

    Of the ordinary tokens `share` are picked. Of these 80 % become the mask, 10 % a random ordinary token, and
    10 % stay; where nothing is picked the target is -100. Devlin et al. (2019), section 3.1.
    """
    picked = (torch.rand(ids.shape) < share) & (ids > MASK)
    fate = torch.rand(ids.shape)
    random_ids = torch.randint(MASK + 1, vocab_size, ids.shape)
    tokens = ids.masked_fill(picked & (fate < 0.8), MASK)
    tokens = torch.where(picked & (fate >= 0.8) & (fate < 0.9), random_ids, tokens)
    return tokens, ids.masked_fill(~picked, IGNORE)


@functools.cache
def sentences() -> tuple[Tensor, Tensor]:
    """The pretraining text, the shortest sentence first: ids (sentences, longest) and lengths."""
    ids = [texts().subwords.sentence(text) for text in texts().read]
    return pad(sorted(ids, key=len))


# What counts of the pretraining text know -----------------------------------------------------------


class Counts:
    """Single tokens, pairs and triples, smoothed as Kneser and Ney do (`ngrams.kneser_ney_losses`).

    A history of two tokens leans on the last one, and that on none. Chances are looked up for a whole column of
    tokens at once: those that may follow, or those that may fill a gap.
    """

    def __init__(self, rows: Iterable[Sequence[int]]):
        rows = list(rows)
        triples = Counter(t for row in rows for t in zip(row, row[1:], row[2:], strict=False))
        starts = Counter((row[0], row[1]) for row in rows)  # nothing comes before them
        pairs = Counter(triple[1:] for triple in triples) + starts
        single = Counter(pair[1] for pair in pairs)
        self.single = self._chances_of_tokens(single)
        self.pairs = self._chances_after_one(pairs)
        shares, given = _discounted(triples)
        self.rest = torch.ones(VOCAB, VOCAB)
        for history, share in given.items():
            self.rest[history] = share
        self.thirds = [self._by_the_others(shares, place) for place in range(3)]

    @staticmethod
    def _chances_of_tokens(single: Mapping[int, int]) -> Tensor:
        """P(token), (VOCAB,)."""
        shares, given = _discounted({(token,): count for token, count in single.items()})
        chances = given[()] * (torch.ones(VOCAB) / VOCAB)
        for (token,), share in shares.items():
            chances[token] += share
        return chances

    def _chances_after_one(self, pairs: Mapping[tuple, int]) -> Tensor:
        """P(token | the token before it), (VOCAB, VOCAB), a row for each token before."""
        shares, given = _discounted(pairs)
        chances = self.single.repeat(VOCAB, 1)
        for (first,), share in given.items():
            chances[first] = share * self.single
        for pair, share in shares.items():
            chances[pair] += share
        return chances

    @staticmethod
    def _by_the_others(
        shares: Mapping[tuple[int, ...], float], place: int
    ) -> dict[tuple[int, ...], tuple[list[int], list[float]]]:
        """The tokens at a place of the triples, and their shares, by the other two tokens."""
        found: dict[tuple[int, ...], tuple[list[int], list[float]]] = {}
        for triple, share in shares.items():
            others = (*triple[:place], *triple[place + 1 :])
            ids, of_ids = found.setdefault(others, ([], []))
            ids.append(triple[place])
            of_ids.append(share)
        return found

    def _with(self, chances: Tensor, place: int, others: tuple[int, int]) -> Tensor:
        ids, shares = self.thirds[place].get(others, ([], []))
        chances = chances.clone()
        chances[ids] += torch.tensor(shares)
        return chances

    def after(self, *history: int) -> Tensor:
        """P(token | up to two tokens before it), (VOCAB,)."""
        if len(history) < 2:
            return self.pairs[history[-1]]
        first, second = history[-2:]
        return self._with(self.rest[first, second] * self.pairs[second], 2, (first, second))

    def gap(self, left: Sequence[int], right: Sequence[int]) -> Tensor:
        """P(token | the tokens on both sides, of which two are used on each), (VOCAB,).

        The chance of the whole sentence with each token in the gap; special tokens have none.
        """
        before, behind = left[-1], right[:2]
        chances = self.after(*left[-2:])
        next_one = self.rest[before] * self.pairs[:, behind[0]]
        chances = chances * self._with(next_one, 1, (before, behind[0]))
        if len(behind) > 1:
            one_more = self.rest[:, behind[0]] * self.pairs[behind[0], behind[1]]
            chances = chances * self._with(one_more, 0, (behind[0], behind[1]))
        chances[: MASK + 1] = 0.0
        return chances / chances.sum()


def _discounted(counts: Mapping[tuple, int]) -> tuple[dict, dict]:
    """The discounted share of each n-gram, and the rest that each history leaves to the shorter one."""
    discount = discounts(Counter(counts))
    total: Counter[tuple] = Counter()
    given: Counter[tuple] = Counter()
    for gram, count in counts.items():
        total[gram[:-1]] += count
        given[gram[:-1]] += discount[min(count, 3) - 1]
    shares = {
        gram: (count - discount[min(count, 3) - 1]) / total[gram[:-1]]
        for gram, count in counts.items()
    }
    return shares, {history: given[history] / total[history] for history in total}


@functools.cache
def counts() -> Counts:
    """The counts of the pretraining text."""
    return Counts(row[:n] for row, n in zip(*(each.tolist() for each in sentences()), strict=True))


# One hidden token -----------------------------------------------------------------------------------


@functools.cache
def hidden() -> tuple[Labeled, Tensor]:
    """The test sentences, and in each the place of one ordinary token, (sentences,)."""
    data = labeled([(text, 0) for text in texts().test])
    chance = torch.rand(data.ids.shape, generator=torch.Generator().manual_seed(0))
    return data, chance.masked_fill(data.ids <= MASK, -1.0).argmax(dim=1)


@functools.cache
def counted_losses() -> dict[str, float]:
    """Mean loss at the hidden tokens of what is counted, by the number of tokens that it looks at on either side."""
    (data, places), table = hidden(), counts()
    chances: dict[str, list[Tensor]] = {name: [] for name in ("one left", "two left", "two each")}
    for row, place, length in zip(
        data.ids.tolist(), places.tolist(), data.lengths.tolist(), strict=True
    ):
        left, token, right = row[:place], row[place], row[place + 1 : length]
        chances["one left"].append(table.after(left[-1])[token])
        chances["two left"].append(table.after(*left)[token])
        chances["two each"].append(table.gap(left, right)[token])
    return {name: -torch.stack(probs).log().mean().item() for name, probs in chances.items()}


@torch.no_grad()
def hidden_loss(model: nn.Module) -> float:
    """Mean loss at the hidden tokens: after the tokens before them for a GPT, else under a mask."""
    data, places = hidden()
    rows = torch.arange(len(places))
    tokens = data.ids.clone()
    causal = getattr(model, "is_causal", False)
    if not causal:
        tokens[rows, places] = MASK
    logits = model(tokens, data.lengths)[rows, places - int(causal)]
    return F.cross_entropy(logits, data.ids[rows, places]).item()


# Sentences out of order -----------------------------------------------------------------------------


def counted_strangeness(data: Labeled) -> Tensor:
    """(sentences,) the losses of all tokens by counts of both sides, each hidden in turn, added up."""
    table, sums = counts(), []
    for row, length in zip(data.ids.tolist(), data.lengths.tolist(), strict=True):
        chances = [
            table.gap(row[:place], row[place + 1 : length])[row[place]]
            for place in range(1, length - 1)
        ]
        sums.append(-torch.stack(chances).log().sum())
    return torch.stack(sums)


def counted_left(data: Labeled) -> Tensor:
    """(sentences,) −ln P by counts of the two tokens before."""
    table, sums = counts(), []
    for row, length in zip(data.ids.tolist(), data.lengths.tolist(), strict=True):
        chances = [table.after(*row[:place])[row[place]] for place in range(1, length)]
        sums.append(-torch.stack(chances).log().sum())
    return torch.stack(sums)
