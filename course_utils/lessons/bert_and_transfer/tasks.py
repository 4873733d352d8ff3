"""The texts and tasks of *BERT and transfer*: hidden tokens, and sentences out of order.

The sentences of the tasks are never read in pretraining. One is in order or not, and each comes twice: as it is, and
with two neighboring words exchanged. Both have the same words, so a bag of words is right in exactly half of them.
"""

import functools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.prose import IGNORE, Subwords, load_english
from course_utils.data.text import MASK, pad

VOCAB = 512
"""Tokens."""
POOL, VAL, TEST = 1500, 250, 750
"""Sentences to be labeled, to choose with, and to measure with."""
SHORTEST = 5
"""Words of a sentence in a task at least, the last mark included."""


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
    """Sentences that an exchange of two neighboring words can make, none of the corpus; the last mark stays."""
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
    """The validation and the test part of the task, sentences in order or not."""
    return in_order(texts().val), in_order(texts().test)


@functools.cache
def few(count: int, seed: int) -> Labeled:
    """`count` labeled sentences, drawn from the pool, each in both forms."""
    return in_order(random.Random(seed).sample(texts().pool, POOL)[: count // 2], seed)


# Pretraining --------------------------------------------------------------------------------------

SIZES = {"embed_dim": 64, "num_heads": 4, "num_layers": 2}


def masking(ids: Tensor, vocab_size: int, share: float = 0.15) -> tuple[Tensor, Tensor]:
    """Tokens to be read and targets by BERT's rule, each (batch, length).

    Of the ordinary tokens `share` are picked. Of these 80% become the mask, 10% a random ordinary token, and
    10% stay; where nothing is picked the target is -100. Devlin et al. (2019), section 3.1.

    Args:
        ids: (batch, length).
        vocab_size: of which random tokens are drawn.
        share: of the tokens that are picked.
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


# One hidden token -----------------------------------------------------------------------------------


@functools.cache
def hidden() -> tuple[Labeled, Tensor]:
    """The test sentences, and in each the place of one ordinary token, (sentences,)."""
    data = labeled([(text, 0) for text in texts().test])
    chance = torch.rand(data.ids.shape, generator=torch.Generator().manual_seed(0))
    return data, chance.masked_fill(data.ids <= MASK, -1.0).argmax(dim=1)


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
