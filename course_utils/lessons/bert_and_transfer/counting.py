"""What counts of the pretraining text know: about a hidden token, and about a sentence out of order."""

import functools
import itertools
from collections import Counter

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.text import MASK
from course_utils.lessons.bert_and_transfer.pretraining import sentences
from course_utils.lessons.bert_and_transfer.tasks import VOCAB, Labeled, few, labeled, task, texts


class Counts:
    """Tables of single tokens, pairs and triples, smoothed as in *GPT* (Witten and Bell, 1991)."""

    def __init__(self, table: Tensor, lengths: Tensor):
        rows = [row[:n] for row, n in zip(table.tolist(), lengths.tolist(), strict=True)]
        tokens = torch.tensor([i for row in rows for i in row])
        single = torch.bincount(tokens, minlength=VOCAB).float()
        kinds = (single > 0).sum()
        self.single = (single + kinds / VOCAB) / (single.sum() + kinds)
        ends = torch.tensor([pair for row in rows for pair in itertools.pairwise(row)])
        pairs = torch.bincount(ends[:, 0] * VOCAB + ends[:, 1], minlength=VOCAB**2)
        pairs = pairs.view(VOCAB, VOCAB).float()
        kinds = (pairs > 0).sum(dim=1, keepdim=True)
        behind = pairs.sum(dim=1, keepdim=True)
        self.pairs = (pairs + kinds * self.single) / (behind + kinds).clamp(min=1)
        triples = Counter(t for row in rows for t in zip(row, row[1:], row[2:], strict=False))
        self.behind: dict[tuple[int, int], Counter] = {}
        self.between: dict[tuple[int, int], Counter] = {}
        for (left, middle, right), count in triples.items():
            self.behind.setdefault((left, middle), Counter())[right] = count
            self.between.setdefault((left, right), Counter())[middle] = count

    def third(self, first: int, second: int) -> Tensor:
        """P(token | the two before it), (VOCAB,)."""
        return _leaning(self.behind.get((first, second)), self.pairs[second])

    def middle(self, left: int, right: int) -> Tensor:
        """P(token | its left and its right neighbor), (VOCAB,); it leans on the pairs of both sides."""
        both = self.pairs[left] * self.pairs[:, right]
        return _leaning(self.between.get((left, right)), both / both.sum())


def _leaning(seen: Counter | None, shorter: Tensor) -> Tensor:
    if not seen:
        return shorter
    counts = torch.zeros(VOCAB)
    counts[list(seen)] = torch.tensor(list(seen.values()), dtype=torch.float)
    return (counts + len(seen) * shorter) / (counts.sum() + len(seen))


@functools.cache
def counts() -> Counts:
    """Those of the pretraining text."""
    return Counts(*sentences())


# One hidden token -------------------------------------------------------------------------------


@functools.cache
def hidden() -> tuple[Labeled, Tensor]:
    """The test sentences, and in each the place of one ordinary token, (sentences,)."""
    data = labeled([(text, 0) for text in texts().test])
    chance = torch.rand(data.ids.shape, generator=torch.Generator().manual_seed(0))
    return data, chance.masked_fill(data.ids <= MASK, -1.0).argmax(dim=1)


def counted_losses() -> dict[str, float]:
    """Mean loss at the hidden tokens of what is counted."""
    data, places = hidden()
    table, found = (
        counts(),
        {"frequencies": [], "one before": [], "two before": [], "both neighbors": []},
    )
    for row, place in zip(data.ids.tolist(), places.tolist(), strict=True):
        token = row[place]
        found["frequencies"].append(table.single[token])
        found["one before"].append(table.pairs[row[place - 1], token])
        two = table.third(*row[place - 2 : place]) if place > 1 else table.pairs[row[place - 1]]
        found["two before"].append(two[token])
        found["both neighbors"].append(table.middle(row[place - 1], row[place + 1])[token])
    return {name: -torch.stack(probs).log().mean().item() for name, probs in found.items()}


@torch.no_grad()
def hidden_loss(model: nn.Module) -> float:
    """Mean loss at the hidden tokens: behind what stands before them for a GPT, else under a mask."""
    data, places = hidden()
    rows = torch.arange(len(places))
    tokens = data.ids.clone()
    causal = getattr(model, "is_causal", False)
    if not causal:
        tokens[rows, places] = MASK
    logits = model(tokens, data.lengths)[rows, places - int(causal)]
    return F.cross_entropy(logits, data.ids[rows, places]).item()


# Sentences out of order -------------------------------------------------------------------------


def strangeness(data: Labeled) -> Tensor:
    """(sentences, 2): mean and largest loss of a sentence's tokens by counted triples."""
    table, found = counts(), []
    for row, length in zip(data.ids.tolist(), data.lengths.tolist(), strict=True):
        probs = [table.pairs[row[0], row[1]]]
        for place in range(2, length):
            probs.append(table.third(row[place - 2], row[place - 1])[row[place]])
        losses = -torch.stack(probs).log()
        found.append(torch.stack([losses.mean(), losses.max()]))
    return torch.stack(found)


def counted_accuracy(count: int, seed: int) -> float:
    """Test accuracy where the largest loss, or the mean, above a threshold says "out of order".

    The threshold is the best one for the labeled sentences; which of the two is chosen on the validation part.
    """
    train, (val, test) = few("order", count, seed), task("order")
    best = (-1.0, 0.0)
    for column in (0, 1):
        x = strangeness(train)[:, column]
        right = torch.stack([((x > cut).long() == train.labels).float().mean() for cut in x])
        cut = x[right.argmax()]
        scores = [
            ((s[:, column] > cut).long() == part.labels).float().mean().item()
            for part, s in ((val, _parts()[0]), (test, _parts()[1]))
        ]
        best = max(best, (scores[0], scores[1]), key=lambda pair: pair[0])
    return best[1]


@functools.cache
def _parts() -> tuple[Tensor, Tensor]:
    val, test = task("order")
    return strangeness(val), strangeness(test)
