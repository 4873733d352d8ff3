"""Tasks that tell an attention from an average, and a text to write on.

"Anna's car is red. Ben's car is blue. Ben's?" takes one look-up; a friend's car takes two. A statement is one token,
and so is the question. The order says nothing, since nobody is told where a token stands: what is asked for stands
at the same position in every text.

"the cat saw the apple near the desk and the coat, and it was ripe": *it* is the apple, *la pomme*, so a French
translation says *elle* and *mûre*. Four nouns of four kinds; the adjective fits one kind only.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.text import BOS, EOS, Vocabulary
from course_utils.data.translation import load_grammar
from course_utils.runtime import seed_everything

# Whose car? ---------------------------------------------------------------------------------------

NAMES = (
    "Anna", "Ben", "Clara", "David", "Emma", "Felix", "Gina", "Hugo",
    "Ida", "Jonas", "Kim", "Leo", "Mia", "Noah", "Olga", "Paul",
)  # fmt: skip
COLORS = ("red", "blue", "green", "white", "black", "gray", "brown", "yellow")
FRIENDS = 8
"""Number of people, the first ones, whose friend is named."""
CARS, ASKED = len(NAMES) * len(COLORS), len(NAMES) * len(COLORS) + len(NAMES)

TEXTS = (
    *(f"{name}'s car is {color}" for name in NAMES for color in COLORS),
    *(f"{name}'s?" for name in NAMES),
    *(f"{name}'s friend is {other}" for name in NAMES[:FRIENDS] for other in NAMES[:FRIENDS]),
)
"""What each token says."""

NOT_ASKED = -100
"""A target at which nothing is asked; `cross_entropy` leaves it out."""


def owners(count: int, generator: torch.Generator, *, pairs: int) -> tuple[Tensor, Tensor]:
    """`pairs` cars of different people, then whose color is asked: that of the first.

    Returns:
        tokens: (count, pairs + 1).
        targets: (count, pairs + 1), `NOT_ASKED` but for the last: the number of a color.
    """
    who = torch.rand(count, len(NAMES), generator=generator).argsort(1)[:, :pairs]
    color = torch.randint(len(COLORS), (count, pairs), generator=generator)
    tokens = torch.cat([who * len(COLORS) + color, CARS + who[:, :1]], 1)
    return tokens, _at_the_end(tokens, color[:, 0])


def friends(count: int, generator: torch.Generator, *, people: int = 3) -> tuple[Tensor, Tensor]:
    """Whose friend is who, in a ring, then the cars, then: which color has the car of the first one's friend?

    Returns:
        tokens: (count, 2 · people + 1): the friend of the first is the last of the people.
        targets: as in `owners`.
    """
    who = torch.rand(count, FRIENDS, generator=generator).argsort(1)[:, :people]
    color = torch.randint(len(COLORS), (count, people), generator=generator)
    links = ASKED + who * FRIENDS + who.roll(1, 1)
    tokens = torch.cat([links, who * len(COLORS) + color, CARS + who[:, :1]], 1)
    return tokens, _at_the_end(tokens, color[:, -1])


def counting(pairs: int) -> float:
    """The share of right answers of one who says the most frequent color."""
    tokens, _ = owners(20_000, torch.Generator().manual_seed(0), pairs=pairs)
    color = tokens[:, :-1] % len(COLORS)
    often = torch.nn.functional.one_hot(color, len(COLORS)).sum(1).amax(1)
    return (often / pairs).mean().item()


def _at_the_end(tokens: Tensor, color: Tensor) -> Tensor:
    targets = torch.full_like(tokens, NOT_ASKED)
    targets[:, -1] = color
    return targets


# Sentences in which two words hang on another one -------------------------------------------------

NOUNS = {
    "animal": (("cat", "dog", "horse", "rabbit"), ("mouse", "cow", "frog", "goat")),
    "food": (("bread", "cheese", "cake", "egg"), ("apple", "pear", "soup", "salad")),
    "furniture": (("bed", "desk", "sofa", "stool"), ("table", "chair", "wardrobe", "shelf")),
    "clothes": (("coat", "hat", "sweater", "glove"), ("shirt", "skirt", "dress", "jacket")),
}
"""Kind → nouns whose French translation is masculine, and those where it is feminine."""

ADJECTIVES = {
    "animal": ("hungry", "tired", "asleep"),
    "food": ("ripe", "salty", "tasty"),
    "furniture": ("folding", "rickety", "varnished"),
    "clothes": ("torn", "knitted", "ironed"),
}
"""Kind → what only things of this kind are, in these sentences; each has two forms in French."""

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
    """Sentences as numbers, and what is asked.

    Attributes:
        tokens: (sentences, 17), places in `VOCABULARY`.
        gender: (sentences,), 0 masculine or 1 feminine: that of the noun which "it" stands for.
        meant: (sentences,), the place of that noun in its sentence.
    """

    tokens: Tensor
    gender: Tensor
    meant: Tensor

    def words(self, row: int) -> list[str]:
        """The words of one sentence."""
        return [VOCABULARY[token] for token in self.tokens[row].tolist()]


def make_sentences(train: int, test: int, seed: int = 0) -> tuple[Sentences, Sentences]:
    """Sentences to learn from and others to test with; no sentence comes twice.

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
    tokens, gender, meant = (torch.tensor(column) for column in zip(*rows, strict=True))
    every = Sentences(tokens, gender, meant)
    return Sentences(*(x[:train] for x in every)), Sentences(*(x[train:] for x in every))


# The gender of "it" and of an adjective, learned by attention and by an average -------------------

READERS = "average", "average, hidden layer", "one attention", "two attentions"
train_set, test_set = make_sentences(2000, 1000)


class Reader(nn.Module):
    """(batch, n) tokens → (batch, n, 2): masculine or feminine, for each word."""

    def __init__(self, *mixers, d=32, hidden=0):
        super().__init__()
        self.embedding = nn.Embedding(len(VOCABULARY), d)
        self.mixers = nn.ModuleList(mixers)
        self.output = nn.Linear(d, 2)
        if hidden:
            deep = nn.Linear(d, hidden), nn.ReLU(), nn.Linear(hidden, 2)
            self.output = nn.Sequential(*deep)

    def forward(self, tokens):
        """Scores of the two genders."""
        x = self.embedding(tokens)
        for mix in self.mixers:
            x = x + mix(x)
        return self.output(x)


class Average(nn.Module):
    """(…, n, d) → (…, 1, d), the same for each word: the mean of all values."""

    def __init__(self, d):
        super().__init__()
        self.W_V = nn.Linear(d, d, bias=False)

    def forward(self, x):
        """The mean, for each word."""
        return self.W_V(x).mean(dim=-2, keepdim=True)


def new_reader(attention, kind, seed):
    """One of the `READERS`, with a class of attention such as the chapter's."""
    seed_everything(seed)
    if "average" in kind:
        return Reader(Average(32), hidden=148 if "hidden" in kind else 0)
    return Reader(*(attention(32, 32, 32) for _ in range(1 + ("two" in kind))))


def gender_loss(model, batch):
    """Summed over "it" and the adjective of each sentence, and how many these are."""
    logits = model(batch[0])[:, [IT, ADJECTIVE]].flatten(0, 1)  # (2 · batch, 2)
    targets = batch[1].repeat_interleave(2)
    return F.cross_entropy(logits, targets, reduction="sum"), len(logits)


def train_reader(model, seed, steps=600, rate=3e-3):
    """Train with Adam, on batches of 64 of the 2,000 sentences."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(model.parameters(), lr=rate)
    for _ in range(steps):
        chosen = torch.randint(2000, (64,), generator=generator)
        batch = train_set.tokens[chosen], train_set.gender[chosen]
        total, count = gender_loss(model, batch)
        optimizer.zero_grad()
        (total / count).backward()
        optimizer.step()


@torch.no_grad()
def reader_score(model, test=True):
    """The share of right genders at either word."""
    tokens, gender, _ = test_set if test else train_set
    right = (model(tokens).argmax(dim=-1) == gender[:, None]).float().mean(dim=0)
    return {"it": right[IT].item(), "adjective": right[ADJECTIVE].item()}


# A text to write on -------------------------------------------------------------------------------


def sentences() -> tuple[Tensor, Vocabulary]:
    """The grammar's English sentences, (sentences, n) tokens, −100 behind `<eos>`; and their words."""
    lines = sorted({pair.source for pair in load_grammar("fr")})
    vocabulary = Vocabulary(lines)
    rows = [torch.tensor([BOS, *vocabulary.encode(line), EOS]) for line in lines]
    return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-100), vocabulary


def from_the_last_word(text: Tensor) -> float:
    """The least mean loss, over the words of `text`, of one who knows only the last word: H(next | last) in nats.

    Args:
        text: (sentences, n) tokens; those below 0 are past the end.
    """
    last, after = text[:, :-1], text[:, 1:]
    real = after >= 0
    size = int(text.max()) + 1
    pairs = torch.bincount(last[real] * size + after[real], minlength=size**2).view(size, size)
    chances = pairs / pairs.sum(1, keepdim=True)
    return -torch.special.xlogy(pairs, chances)[pairs > 0].sum().item() / pairs.sum().item()
