"""Two tasks for *BERT and transfer*, on sentences that no pretraining reads: in order or not, and the tense.

In the first, each sentence comes twice: as it is, and with two neighboring words exchanged. Both have the
same words, so that a bag of words is right in exactly half of them.
"""

import functools
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.prose import Subwords, load_english
from course_utils.data.text import pad
from course_utils.data.translation import load_grammar
from course_utils.files import data_path

VOCAB = 512  # tokens
POOL, VAL, TEST = 1500, 250, 750  # sentences to be labeled, to choose with, and to measure with
SHORTEST = 5  # tokens of a sentence in a task, the last mark included
DATA = [
    "translation/grammar_fr.tsv",
    "translation/sentences.tsv",
    "translation/lexicon/verbs.tsv",
    "translation/lexicon/intransitives.tsv",
]


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
    known, kept, read = set(sentences), [], []
    for text in sentences:
        long = len(text.split()) >= SHORTEST and exchanges(text, known)
        (kept if long and len(kept) < POOL + VAL + TEST else read).append(text)
    parts = kept[:POOL], kept[POOL : POOL + VAL], kept[POOL + VAL :]
    return Texts(tuple(read), *map(tuple, parts), Subwords(read, size=VOCAB))


def exchanges(text: str, known: set[str]) -> list[str]:
    """What the exchange of two neighbors can make of a sentence; its last mark stays, and no known sentence."""
    words = text.split()
    found = []
    for i in range(len(words) - 2):
        other = " ".join([*words[:i], words[i + 1], words[i], *words[i + 2 :]])
        if other not in known:
            found.append(other)
    return found


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


@functools.cache
def _known() -> tuple[set[str], dict[str, int]]:
    """All sentences, and the tense of those that have one."""
    return set(load_english()), load_tenses()


def in_order(sentences: Sequence[str], seed: int = 0) -> Labeled:
    """Each sentence as it is (class 0), and with two neighbors exchanged (class 1)."""
    known, draws = _known()[0], random.Random(seed)
    pairs = []
    for text in sentences:
        pairs += [(text, 0), (draws.choice(exchanges(text, known)), 1)]
    return labeled(pairs)


def tense(sentences: Sequence[str], seed: int = 0) -> Labeled:
    """The sentences in the present (0), the past (1) or the future (2), as many of each."""
    known = _known()[1]
    by_label: list[list[str]] = [[], [], []]
    for text in sentences:
        if text in known:
            by_label[known[text]].append(text)
    count = min(map(len, by_label))
    pairs = [(text, label) for label, rows in enumerate(by_label) for text in rows[:count]]
    random.Random(seed).shuffle(pairs)
    return labeled(pairs)


TASKS: dict[str, Callable[..., Labeled]] = {"order": in_order, "tense": tense}
CLASSES = {"order": 2, "tense": 3}


@functools.cache
def task(name: str) -> tuple[Labeled, Labeled]:
    """Validation and test part of a task."""
    return TASKS[name](texts().val), TASKS[name](texts().test)


@functools.cache
def few(name: str, count: int, seed: int) -> Labeled:
    """`count` labeled sentences of a task, drawn from the pool."""
    sentences = random.Random(seed).sample(texts().pool, POOL)
    chosen = TASKS[name](sentences[: count // 2] if name == "order" else sentences, seed)
    rows = slice(count)
    return Labeled(chosen.ids[rows], chosen.lengths[rows], chosen.labels[rows], chosen.texts[rows])


# What a bag can do ------------------------------------------------------------------------------


def bag(data: Labeled, neighbors: bool = False) -> Tensor:
    """(sentences, …) which tokens a sentence has; with `neighbors` which pairs of neighbors."""
    if not neighbors:
        counts = torch.zeros(len(data.labels), VOCAB)
        return counts.scatter_(1, data.ids, 1.0)
    pairs = data.ids[:, :-1] * VOCAB + data.ids[:, 1:]
    return torch.zeros(len(data.labels), VOCAB**2).scatter_(1, pairs, 1.0)


def bag_accuracy(name: str, count: int, seed: int, *, neighbors: bool = False) -> float:
    """Test accuracy of logistic regression on a bag of tokens, or of pairs of neighbors."""
    train, (val, test) = few(name, count, seed), task(name)
    read = bag(train, neighbors)
    used = read.any(dim=0)
    read, best = read[:, used], (-1.0, 0.0)
    parts = [(bag(part, neighbors)[:, used], part.labels) for part in (val, test)]
    for decay in (1e-4, 1e-3, 1e-2):
        weights = _logistic(read, train.labels, CLASSES[name], decay)
        scores = [
            ((x @ weights[:-1] + weights[-1]).argmax(1) == y).float().mean() for x, y in parts
        ]
        best = max(best, (scores[0].item(), scores[1].item()), key=lambda pair: pair[0])
    return best[1]


def _logistic(x: Tensor, y: Tensor, classes: int, decay: float) -> Tensor:
    """Weights (features + 1, classes), the last row for the constant."""
    weights = torch.zeros(x.shape[1] + 1, classes, requires_grad=True)
    fit = torch.optim.LBFGS([weights], max_iter=100)

    def closure() -> Tensor:
        fit.zero_grad()
        loss = F.cross_entropy(x @ weights[:-1] + weights[-1], y)
        loss = loss + decay * weights[:-1].square().sum()
        loss.backward()
        return loss

    fit.step(closure)
    return weights.detach()


# The tense of a sentence, by the forms of its verb ------------------------------------------------

TENSES = ("present", "past", "future")

_PAST = {"was", "were", "wasn't", "weren't", "had", "did", "didn't"}
_FUTURE = {"will", "won't"}


def load_tenses() -> dict[str, int]:
    """The generated sentences, each with its tense's place in `TENSES`, by the lexicon's forms of verbs.

    "did", "was" and the past forms of verbs say past; "will" and "going to" before a verb say future;
    what has none of them is present. A verb whose past is spelled as its base (put, read) says
    nothing, so its sentences are left out unless an auxiliary decides.
    """
    bases, pasts = _verb_forms()
    spelled_alike = bases & pasts
    labels = {}
    for text in sorted({" ".join(pair.source) for pair in load_grammar("fr")}):
        words = text.split()
        trios = zip(words, words[1:], words[2:], strict=False)
        going = any(trio[:2] == ("going", "to") and trio[2] in bases for trio in trios)
        future = going or not _FUTURE.isdisjoint(words) or any(w.endswith("'ll") for w in words)
        past = not (_PAST | pasts - bases).isdisjoint(words)
        if future + past == 1 or (not future and not past and spelled_alike.isdisjoint(words)):
            labels[text] = 2 if future else int(past)
    return labels


def _verb_forms() -> tuple[set[str], set[str]]:
    """Base forms, and past forms, of the lexicon's verbs."""
    bases, pasts = {"be", "have"}, set()
    for name in ("verbs", "intransitives"):
        path = data_path(f"translation/lexicon/{name}.tsv")
        for line in path.read_text(encoding="utf-8").splitlines():
            if line and not line.startswith("#"):
                base, past, *_ = line.split("\t")
                bases.add(base.split()[0])
                pasts.add(past.split()[0])
    return bases, pasts
