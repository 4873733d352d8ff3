"""Sentences in which two words hang on another one: "it" and an adjective, which take a noun's French gender.

"the cat saw the apple near the desk and the coat, and it was ripe": *it* is the apple, *la pomme*, so a French
translation says *elle* and *mûre*. Four nouns of four kinds; the adjective fits one kind only.
"""

from typing import NamedTuple

import torch
from torch import Tensor

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

GENDERS = ("masculine", "feminine")
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
    number = {word: place for place, word in enumerate(VOCABULARY)}
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
