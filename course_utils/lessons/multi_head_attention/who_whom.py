"""Who does it, and to whom? Two questions at the verb of a sentence, and a network of one attention for them.

Sentences such as "yesterday the young doctor followed the queen ." have a person as subject, and as object
another person or a thing. The words are those of the course's translator; the sentences are made here.
"""

import random
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

PEOPLE = ["boy", "girl", "man", "woman", "king", "queen", "doctor", "neighbor"]
THINGS = ["house", "car", "book", "table", "bridge", "castle", "boat", "mirror"]
VERBS = ["saw", "followed", "liked", "chose", "drew", "found"]
ADJECTIVES = ["young", "small", "old", "beautiful"]
BEFORE, AFTER = ("", "yesterday"), ("", "again")
WORDS = ["<pad>", "the", ".", *PEOPLE, *THINGS, *VERBS, *ADJECTIVES, *filter(None, BEFORE + AFTER)]
LENGTH = 10  # places of the longest sentence
NOUNS = PEOPLE + THINGS
TRAIN, TEST = 2000, 500


@dataclass(frozen=True)
class Sentences:
    """A batch of sentences, filled up with <pad>.

    Attributes:
        tokens: (batch, LENGTH), places in WORDS.
        lengths: (batch,).
        verbs: (batch,), the place of the verb.
        nouns: (batch, 2), subject and object, as places in NOUNS.
    """

    tokens: Tensor
    lengths: Tensor
    verbs: Tensor
    nouns: Tensor

    @property
    def texts(self) -> list[list[str]]:
        """The words of each sentence, without padding."""
        rows = zip(self.tokens.tolist(), self.lengths.tolist(), strict=True)
        return [[WORDS[token] for token in row[:length]] for row, length in rows]

    def __getitem__(self, rows) -> "Sentences":
        """Some of the sentences."""
        return Sentences(self.tokens[rows], self.lengths[rows], self.verbs[rows], self.nouns[rows])


def sentences(objects: str, *, seed: int = 0) -> tuple[Sentences, Sentences]:
    """2,000 sentences to train on and 500 others to test on, all different, with a person as subject.

    Args:
        objects: "people" (another person than the subject) or "things".
        seed: of the choices.
    """
    seconds = {"people": PEOPLE, "things": THINGS}[objects]
    pairs = [(one, other) for one in PEOPLE for other in seconds if one != other]
    draw, made = random.Random(f"{seed} {objects}"), {}
    while len(made) < TRAIN + TEST:
        words, verb, nouns = _sentence(draw, *draw.choice(pairs))
        made[" ".join(words)] = (words, verb, nouns)
    batch = _batch(list(made.values()))
    return batch[:TRAIN], batch[TRAIN:]


def _sentence(draw: random.Random, subject: str, thing: str) -> tuple[list[str], int, list[int]]:
    """Its words, the place of its verb, and its nouns."""
    first = [draw.choice(BEFORE), "the", draw.choice(["", *ADJECTIVES]), subject]
    last = ["the", draw.choice(["", *ADJECTIVES]), thing, draw.choice(AFTER), "."]
    before = [word for word in first if word]
    words = [*before, draw.choice(VERBS), *filter(None, last)]
    return words, len(before), [NOUNS.index(subject), NOUNS.index(thing)]


def _batch(made: list[tuple[list[str], int, list[int]]]) -> Sentences:
    tokens = torch.zeros(len(made), LENGTH, dtype=torch.long)
    for row, (words, _, _) in enumerate(made):
        tokens[row, : len(words)] = torch.tensor([WORDS.index(word) for word in words])
    lengths = torch.tensor([len(words) for words, _, _ in made])
    verbs, nouns = (torch.tensor([one[part] for one in made]) for part in (1, 2))
    return Sentences(tokens, lengths, verbs, nouns)


class VerbReader(nn.Module):
    """Word and place as a vector, one attention, and a linear readout at the verb: who, and whom?

    Args:
        attention: a layer called as `attention(queries, keys, values, attn_mask)`.
        embed_dim: size of the vectors.
    """

    def __init__(self, attention: nn.Module, embed_dim: int = 32):
        super().__init__()
        self.words = nn.Embedding(len(WORDS), embed_dim)
        self.places = nn.Embedding(LENGTH, embed_dim)
        self.attention = attention
        self.readout = nn.Linear(embed_dim, 2 * len(NOUNS))

    def forward(self, batch: Sentences) -> Tensor:
        """A score for each noun as subject, and as object: (batch, 2, nouns)."""
        x = self.words(batch.tokens) + self.places.weight
        real = torch.arange(LENGTH) < batch.lengths[:, None]
        at_verb = x[torch.arange(len(x)), batch.verbs][:, None]  # (batch, 1, embed_dim): one query
        answer = self.attention(at_verb, x, x, real[:, None, None])[:, 0]
        return self.readout(answer).unflatten(-1, (2, -1))


def train_reader(
    reader: VerbReader, objects: str, *, steps: int = 300, lr: float = 0.01, seed: int = 0
) -> float:
    """Train on 2,000 sentences with such objects, by cross-entropy on both answers.

    Args:
        reader: to be trained.
        objects: "people" or "things".
        steps: of Adam with rate `lr`, 64 sentences each.
        seed: of the sentences and their order.

    Returns:
        The loss of the last 50 steps, in nats, mean of both answers.
    """
    train, _ = sentences(objects, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(reader.parameters(), lr=lr)
    losses = []
    for _ in range(steps):
        batch = train[torch.randint(len(train.tokens), (64,), generator=generator)]
        loss = F.cross_entropy(reader(batch).flatten(0, 1), batch.nouns.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return sum(losses[-50:]) / len(losses[-50:])


@torch.no_grad()
def reader_accuracy(reader: VerbReader, batch: Sentences) -> list[float]:
    """Share of sentences whose subject is right, whose object is right, and both."""
    right = reader(batch).argmax(dim=-1) == batch.nouns
    return [*right.float().mean(dim=0).tolist(), right.all(dim=1).float().mean().item()]
