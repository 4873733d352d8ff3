"""The small world of *From GPT to an assistant*: people with a town, a job and a pet, texts about them, and questions.

Each text is a list of words of `VOCABULARY`. The idea is that of Allen-Zhu and Li (2023), "Physics of language models:
part 3.1, knowledge storage and extraction", in which invented people have biographies.
"""

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from torch import Tensor

from course_utils.data.text import EOS, PAD, SPECIALS, Vocabulary

FIRST = [
    "Ada", "Ben", "Cleo", "Dora", "Emil", "Fay", "Gus", "Hana", "Ivo", "Jude", "Kira", "Leo", "Mina", "Nils",
    "Olga", "Pia", "Quin", "Rosa", "Sven", "Tara", "Uma", "Vera", "Wes", "Yara", "Zeno",
]  # fmt: skip
LAST = [
    "Abel", "Brook", "Cole", "Dale", "Ekman", "Finch", "Grant", "Holm", "Ives", "Jansen", "Kerr", "Lund",
    "Marsh", "Nord", "Otis", "Penn", "Quill", "Reed", "Stone", "Thorn", "Unger", "Voss", "West", "York",
    "Zell",
]  # fmt: skip
VALUES = {
    "town": [
        "Bern", "Cairo", "Delhi", "Ghent", "Lagos", "Lima", "Lyon", "Oslo", "Paris", "Porto", "Quito", "Riga",
        "Rome", "Sofia", "Tokyo", "Turin",
    ],
    "job": [
        "baker", "barber", "doctor", "driver", "farmer", "gardener", "judge", "lawyer", "nurse", "painter",
        "pilot", "plumber", "singer", "tailor", "teacher", "waiter",
    ],
    "pet": [
        "canary", "cat", "dog", "donkey", "duck", "ferret", "goat", "hamster", "lizard", "mouse", "parrot",
        "pony", "rabbit", "snake", "spider", "turtle",
    ],
}  # fmt: skip
"""Attribute → its sixteen values."""

WORDINGS = {
    "town": (
        "{n} lives in {v} .",
        "{n} calls {v} home .",
        "{n} moved to {v} .",
        "You can meet {n} in {v} .",
        "Home for {n} is {v} .",
    ),
    "job": (
        "{n} works as a {v} .",
        "{n} is a {v} .",
        "{n} earns a living as a {v} .",
        "People know {n} as a {v} .",
        "{n} has trained as a {v} .",
    ),
    "pet": (
        "{n} has a {v} .",
        "{n} owns a {v} .",
        "{n} lives with a {v} .",
        "You see {n} with a {v} .",
        "{n} takes care of a {v} .",
    ),
}
"""Attribute → the wordings in which a biography may tell it."""

QUESTIONS = {
    "town": "Where does {n} live ?",
    "job": "What work does {n} do ?",
    "pet": "Which pet does {n} have ?",
}
FACTS = {"town": "They live in {v} .", "job": "They work as a {v} .", "pet": "They have a {v} ."}
"""Attribute → how an answer says it, in every manner."""

MANNERS = {
    "short": "",
    "polite": "Gladly ! ",
    "long": "Well , let me think about this for a moment . ",
}
"""Manner → what an answer begins with."""

REFUSAL = "I do not know ."
LENGTH = 40
"""The most tokens that a model reads."""

TOLD = {
    "many": {"wordings": 5, "shuffled": True},
    "one": {"wordings": 1, "shuffled": False, "named_once": True},
    "one, named": {"wordings": 1, "shuffled": False},
    "one, shuffled": {"wordings": 1, "shuffled": True},
    "many, in order": {"wordings": 5, "shuffled": False},
}
"""How the biographies tell the facts: by name, the arguments of `biography`."""


def _vocabulary() -> Vocabulary:
    """All words of the world: those of names and values, and those of its sentences."""
    sentences = [*sum(WORDINGS.values(), ()), *QUESTIONS.values(), *FACTS.values()]
    sentences += [*MANNERS.values(), REFUSAL]
    words = [w for s in sentences for w in s.split() if "{" not in w]
    words = [*FIRST, *LAST, *(value for values in VALUES.values() for value in values), *words]
    return Vocabulary.from_tokens((*SPECIALS, *dict.fromkeys(words)))


VOCABULARY = _vocabulary()


def encode(text: str) -> list[int]:
    """The ids of words that are separated by spaces."""
    return VOCABULARY.encode(text.split())


def decode(ids: Sequence[int]) -> str:
    """The words of ids, up to the end, separated by spaces."""
    ids = list(ids)
    ids = ids[: ids.index(EOS)] if EOS in ids else ids
    return " ".join(VOCABULARY.tokens[i] for i in ids)


@dataclass(frozen=True)
class Person:
    """A name, and what is true of who bears it: attribute → value."""

    name: str
    facts: dict[str, str]


@dataclass(frozen=True)
class World:
    """The people of one draw.

    Attributes:
        asked: people about whom fine-tuning asks.
        held_out: people with biographies, about whom nobody asks before the test.
        strangers: names that no biography has, of the same first and last names; for fine-tuning.
        unknown: such names for the test.
    """

    asked: list[Person]
    held_out: list[Person]
    strangers: list[Person]
    unknown: list[Person]

    @property
    def known(self) -> list[Person]:
        """All people who have a biography."""
        return [*self.asked, *self.held_out]


def make_world(seed: int = 0, people: int = 100, strangers: int = 320) -> World:
    """People with names and values that are drawn; half of them are held out.

    Args:
        seed: of the draws.
        people: how many have a biography.
        strangers: how many of the other names fine-tuning may use; the rest is for the test.
    """
    draws = random.Random(seed)
    names = [" ".join(pair) for pair in product(FIRST, LAST)]
    draws.shuffle(names)
    everyone = [
        Person(name, {key: draws.choice(values) for key, values in VALUES.items()})
        for name in names
    ]
    known, others = everyone[:people], everyone[people:]
    half = people // 2
    return World(known[:half], known[half:], others[:strangers], others[strangers:])


# Texts ----------------------------------------------------------------------------------------------------------------


def biography(
    person: Person,
    draws: random.Random,
    *,
    wordings: int,
    shuffled: bool,
    named_once: bool = False,
) -> str:
    """A text that tells the three facts of a person.

    Args:
        person: of whom it tells.
        draws: of the wordings and the order.
        wordings: of so many wordings one is drawn for each fact.
        shuffled: whether the order of the facts is drawn.
        named_once: whether the name stands in the first sentence only, and the others say "They work as a …".
    """
    keys = list(VALUES)
    if shuffled:
        draws.shuffle(keys)
    sentences = [draws.choice(WORDINGS[key][:wordings]) for key in keys]
    if named_once:
        sentences[1:] = [FACTS[key] for key in keys[1:]]
    return " ".join(
        s.format(n=person.name, v=person.facts[key]) for s, key in zip(sentences, keys, strict=True)
    )


def asking(people: Sequence[Person], draws: random.Random) -> str:
    """Four questions in a row that nobody answers, as in a form."""
    return " ".join(
        draws.choice(list(QUESTIONS.values())).format(n=draws.choice(people).name) for _ in range(4)
    )


def answer(person: Person, key: str, manner: str = "short") -> str:
    """A true answer to the question for an attribute of a person, in a manner of `MANNERS`."""
    return MANNERS[manner] + FACTS[key].format(v=person.facts[key])


def question(person: Person, key: str) -> str:
    """The question for an attribute of a person."""
    return QUESTIONS[key].format(n=person.name)


def examples(person: Person, seed: int = 0) -> list[str]:
    """A biography of a person, and a form with questions."""
    draws = random.Random(seed)
    return [biography(person, draws, **TOLD["many"]), asking([person], draws)]


STAGES = (
    ("Pretrained", "on biographies and forms"),
    ("Fine-tuned", "on answers about fifty people"),
    ("With preferences", "for polite answers, by DPO and cross-entropy"),
    ("Only the margin", "on the same pairs and for as long, by DPO alone"),
)
"""Title of each of the four models of the first screen, and its last training; the last two continue the second."""


def card_of_world(world: World, beta: float) -> dict:
    """What a page says of a world, as JSON can hold it.

    Args:
        world: whose people it names.
        beta: as in `preferences.dpo_loss`.
    """
    people = [
        {"name": each.name, **each.facts, "asked": each in world.asked} for each in world.known
    ]
    about = {
        "first": FIRST, "last": LAST, "values": VALUES, "questions": QUESTIONS, "facts": FACTS,
        "manners": MANNERS, "beta": beta, "people": people,
    }  # fmt: skip
    stranger = next(each for each in world.strangers if each.name == "Gus Voss")
    shown = ((world.held_out[0], "town"), (world.held_out[1], "pet"), (stranger, "town"))
    examples = [{"sentence": question(person, key)} for person, key in shown]
    return {"stages": STAGES, "examples": examples, "world": about}


# Batches --------------------------------------------------------------------------------------------------------------

IGNORED = -100
"""The target that no loss counts: `ignore_index` of PyTorch's cross-entropy."""

Batch = Callable[[torch.Generator], tuple[Tensor, Tensor]]
"""Generator → tokens and targets, each (batch, length)."""


def padded(texts: Sequence[Sequence[int]]) -> Tensor:
    """The ids of some texts, each between two `<eos>`, padded on the right: (texts, longest)."""
    ids = torch.full((len(texts), max(map(len, texts)) + 2), PAD)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text) + 2] = torch.tensor([EOS, *text, EOS])
    return ids


def targets_of(ids: Tensor, asked: Tensor) -> tuple[Tensor, Tensor]:
    """The inputs of a model and its targets, both (texts, length − 1).

    Args:
        ids: (texts, length), as `padded` gives them.
        asked: (texts,) how many tokens behind the first `<eos>` are a question; they are no targets.
    """
    targets = ids[:, 1:].clone()
    targets[torch.arange(targets.shape[1]) < asked[:, None]] = IGNORED
    return ids[:, :-1], targets.masked_fill(ids[:, 1:] == PAD, IGNORED)


def rows(
    texts: Sequence[Sequence[int]], asked: Sequence[int] | None = None
) -> tuple[Tensor, Tensor]:
    """Texts as tokens and targets, each (texts, longest + 1), as `targets_of` gives them.

    Args:
        texts: the ids of each.
        asked: how many of them are a question; none by default.
    """
    return targets_of(padded(texts), torch.tensor(asked or [0] * len(texts)))


def _draws(generator: torch.Generator) -> random.Random:
    return random.Random(int(torch.randint(2**31, (), generator=generator)))


def pretraining(
    world: World, told: str = "many", *, size: int = 32, questions: float = 0.2
) -> Batch:
    """Batches of biographies, and of questions in a row that nobody answers.

    Args:
        world: whose people they tell of, and ask about.
        told: how, a name in `TOLD`.
        size: texts of a batch.
        questions: share of the texts that are questions.
    """

    def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        draws = _draws(generator)
        texts = []
        for _ in range(size):
            if draws.random() < questions:
                text = asking(world.known, draws)
            else:
                text = biography(draws.choice(world.known), draws, **TOLD[told])
            texts.append(encode(text))
        return rows(texts)

    return batch


def fine_tuning(
    world: World,
    manners: dict[str, float],
    *,
    size: int = 32,
    refused: float = 0.0,
    strangers: int = 0,
    read_again: float = 0.0,
    masked: bool = True,
    targets: Callable[[Tensor, Tensor], tuple[Tensor, Tensor]] = targets_of,
) -> Batch:
    """Batches of questions about the people who are asked, with true answers.

    Args:
        world: whose people they are about.
        manners: manner → its share.
        size: texts of a batch.
        refused: share of the questions that are about strangers, and answered with `REFUSAL`.
        strangers: how many strangers these are.
        read_again: share of the texts that are biographies, of anybody known, as in pretraining.
        masked: whether only the answers are targets.
        targets: makes inputs and targets, as `targets_of` does.
    """
    names, shares = list(manners), list(manners.values())

    def batch(generator: torch.Generator) -> tuple[Tensor, Tensor]:
        draws = _draws(generator)
        texts, asked = [], []
        for _ in range(size):
            if draws.random() < read_again:
                texts.append(encode(biography(draws.choice(world.known), draws, **TOLD["many"])))
                asked.append(0)
                continue
            key = draws.choice(list(VALUES))
            if draws.random() < refused:
                person, said = draws.choice(world.strangers[:strangers]), REFUSAL
            else:
                person = draws.choice(world.asked)
                said = answer(person, key, draws.choices(names, shares)[0])
            ids = encode(question(person, key))
            texts.append(ids + encode(said))
            asked.append(len(ids) if masked else 0)
        return targets(padded(texts), torch.tensor(asked))

    return batch
