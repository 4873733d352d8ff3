"""Sentences whose "it" has a French gender, and small networks that learn this gender: by attention or by an average.

"the cat saw the apple near the desk and the coat , and it was ripe .": *it* is the apple, *la pomme*, so a French
translation says *elle* and *mûre*. There are four nouns of four kinds, and the adjective fits one kind only. The run
`reader` trains on them, and *Self-attention* shows its results.
"""

from collections.abc import Callable
from functools import cache
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.runtime import seed_everything
from course_utils.train.steps import take_steps

# The sentences ------------------------------------------------------------------------------------

NOUNS = {
    "animal": (("cat", "dog", "horse", "rabbit"), ("mouse", "cow", "frog", "goat")),
    "food": (("bread", "cheese", "cake", "egg"), ("apple", "pear", "soup", "salad")),
    "furniture": (("bed", "desk", "sofa", "stool"), ("table", "chair", "wardrobe", "shelf")),
    "clothes": (("coat", "hat", "sweater", "glove"), ("shirt", "skirt", "dress", "jacket")),
}
"""Kind → nouns that are masculine in French, and those that are feminine."""

ADJECTIVES = {
    "animal": ("hungry", "tired", "asleep"),
    "food": ("ripe", "salty", "tasty"),
    "furniture": ("folding", "rickety", "varnished"),
    "clothes": ("torn", "knitted", "ironed"),
}
"""Kind → adjectives that only things of this kind have in these sentences; each has two forms in French."""

TEMPLATE = "the {} saw the {} near the {} and the {} , and it was {} ."
NOUN_PLACES, IT, ADJECTIVE = (1, 4, 7, 10), 13, 15
"""Places of the four nouns, of "it" and of the adjective, from 0."""

VOCABULARY = tuple(
    sorted(
        {word for both in NOUNS.values() for words in both for word in words}
        | {word for words in ADJECTIVES.values() for word in words}
        | set(TEMPLATE.replace("{}", "").split())
    )
)


class Sentences(NamedTuple):
    """Sentences as numbers, with the answers.

    Attributes:
        tokens: (sentences, 17), places in `VOCABULARY`.
        gender: (sentences,), 0 masculine or 1 feminine: of the noun that "it" stands for.
        meant: (sentences,), the place of this noun in its sentence.
    """

    tokens: Tensor
    gender: Tensor
    meant: Tensor

    def words(self, row: int) -> list[str]:
        """The words of one sentence."""
        return [VOCABULARY[token] for token in self.tokens[row].tolist()]


def make_sentences(train: int, test: int, seed: int = 0) -> tuple[Sentences, Sentences]:
    """Sentences to train on and others to test with, all different.

    Nouns, their genders, the order of the kinds and the adjective are drawn independently.
    """
    generator = torch.Generator().manual_seed(seed)
    number = {word: index for index, word in enumerate(VOCABULARY)}
    kinds, seen, rows = list(NOUNS), set(), []

    def draw(choices: int) -> int:
        return int(torch.randint(choices, (), generator=generator))

    while len(rows) < train + test:
        order = torch.randperm(4, generator=generator).tolist()
        genders = [draw(2) for _ in kinds]
        nouns = [NOUNS[kinds[kind]][genders[kind]][draw(4)] for kind in order]
        kind = draw(4)
        sentence = TEMPLATE.format(*nouns, ADJECTIVES[kinds[kind]][draw(3)])
        if sentence not in seen:
            seen.add(sentence)
            tokens = [number[word] for word in sentence.split()]
            rows.append((tokens, genders[kind], NOUN_PLACES[order.index(kind)]))
    columns = [torch.tensor(column) for column in zip(*rows, strict=True)]
    return Sentences(*(x[:train] for x in columns)), Sentences(*(x[train:] for x in columns))


TRAIN, TEST = 2000, 1000


@cache
def train_and_test() -> tuple[Sentences, Sentences]:
    """The sentences of all readers: 2,000 to train on, 1,000 to test with."""
    return make_sentences(TRAIN, TEST)


# The readers --------------------------------------------------------------------------------------

READERS = "average", "average, hidden layer", "one attention", "two attentions"
WIDTH = 32


class Reader(nn.Module):
    """Network that gives each word scores of the two genders: (batch, n) tokens → (batch, n, 2).

    Args:
        mixers: layers (batch, n, WIDTH) → the same shape, or one that can be added to it; each inside a residual.
        hidden: the size of the output's hidden layer; 0 for a linear output.
    """

    def __init__(self, *mixers: nn.Module, hidden: int = 0):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), WIDTH)
        self.mixers = nn.ModuleList(mixers)
        self.output: nn.Module = nn.Linear(WIDTH, 2)
        if hidden:
            self.output = nn.Sequential(nn.Linear(WIDTH, hidden), nn.ReLU(), nn.Linear(hidden, 2))

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, n) → (batch, n, 2): scores of masculine and feminine."""
        x = self.embedding(tokens)
        for mix in self.mixers:
            x = x + mix(x)
        return self.output(x)


class Average(nn.Module):
    """Mean of all values, the same for each word: (…, n, d) → (…, 1, d)."""

    def __init__(self, d: int):
        super().__init__()
        self.W_V = nn.Linear(d, d, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        """(…, n, d) → (…, 1, d)."""
        return self.W_V(x).mean(dim=-2, keepdim=True)


def new_reader(attention: Callable[[int, int, int], nn.Module], kind: str, seed: int) -> Reader:
    """An untrained reader.

    Args:
        attention: a class of attention such as the chapter's, built from the sizes of inputs, keys and values.
        kind: one of `READERS`. The average's hidden layer gives it about as many weights as one attention has.
        seed: of the weights.
    """
    seed_everything(seed)
    if "average" in kind:
        return Reader(Average(WIDTH), hidden=148 if "hidden" in kind else 0)
    layers = 2 if "two" in kind else 1
    return Reader(*(attention(WIDTH, WIDTH, WIDTH) for _ in range(layers)))


def train_reader(model: Reader, seed: int, *, steps: int = 600, rate: float = 3e-3) -> None:
    """Train a reader with Adam, on batches of 64 of the training sentences.

    The loss is the mean cross-entropy at "it" and at the adjective.
    """
    train, _ = train_and_test()
    generator = torch.Generator().manual_seed(seed)

    def loss_of_a_batch() -> Tensor:
        chosen = torch.randint(TRAIN, (64,), generator=generator)
        logits = model(train.tokens[chosen])[:, [IT, ADJECTIVE]].flatten(0, 1)  # (2 · 64, 2)
        targets = train.gender[chosen].repeat_interleave(2)
        return F.cross_entropy(logits, targets, reduction="sum") / len(logits)

    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    take_steps(optimizer, loss_of_a_batch, steps=steps, rate=lambda _: rate, clip_norm=None)


@torch.no_grad()
def accuracies_of_words(model: Reader, sentences: Sentences) -> dict[str, float]:
    """Accuracy of the gender at "it", and at the adjective."""
    genders = model(sentences.tokens).argmax(dim=-1)
    right = (genders == sentences.gender[:, None]).float().mean(dim=0)
    return {"it": right[IT].item(), "adjective": right[ADJECTIVE].item()}
