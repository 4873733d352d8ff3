"""Tasks that ask two questions at once, whose right attention maps are known, and a small network for each.

The first is a cabinet of eight drawers, A to H, with a white (+1) or a black (−1) ball in each. A request such as
"CF" asks for the balls in drawer C *and* in drawer F, in this order. A drawer carries its label once, in the first
half of its features; a request carries two labels, one in each half. The network is one attention layer and a linear
readout, nothing else.

The second asks at the verb of a sentence who does it, and to whom. Sentences such as "yesterday the young doctor
followed the queen ." have a person as subject, and as object another person or a thing. The words are those of the
course's translator; the sentences are made here.
"""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.figures import COLORS, Picture, subplots
from course_utils.kit.runs import StoredRun

# Two look-ups at once -----------------------------------------------------------------------------

# The task ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class TwoLookups:
    """All requests for two of the drawers, and all fillings of the cabinet.

    Attributes:
        pairs: (requests, 2), the two drawers asked for; every ordered pair of distinct ones.
        queries: (requests, 2 · drawers), a one-hot label in each half.
        keys: (drawers, 2 · drawers), a one-hot label in the first half, zeros in the second.
        balls: (fillings, drawers), every way to fill the drawers with +1 and −1.
    """

    pairs: Tensor
    queries: Tensor
    keys: Tensor
    balls: Tensor

    @property
    def drawers(self) -> list[str]:
        """Names of the drawers: A, B, …"""
        return [chr(ord("A") + index) for index in range(len(self.keys))]

    @property
    def requests(self) -> list[str]:
        """Names of the requests: AB, AC, …, in the order of `pairs`."""
        return ["".join(self.drawers[index] for index in pair) for pair in self.pairs.tolist()]

    def inputs(self, balls: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys and values for cabinets (batch, drawers), each with a batch axis.

        A value holds its ball in the first feature and zeros elsewhere.
        """
        values = balls.new_zeros(*balls.shape, self.keys.shape[-1])
        values[..., 0] = balls
        batch = len(balls)
        return self.queries.expand(batch, -1, -1), self.keys.expand(batch, -1, -1), values

    def answers(self, balls: Tensor) -> Tensor:
        """The balls asked for: (batch, drawers) → (batch, requests, 2)."""
        return balls[:, self.pairs]


def two_lookups() -> TwoLookups:
    """The task for eight drawers; nothing about it is random."""
    label = torch.eye(8)
    pairs = torch.tensor(list(itertools.permutations(range(8), 2)))
    return TwoLookups(
        pairs=pairs,
        queries=label[pairs].flatten(1),
        keys=torch.cat([label, torch.zeros_like(label)], dim=1),
        balls=torch.tensor(list(itertools.product([-1.0, 1.0], repeat=8))),
    )


# The network ------------------------------------------------------------------------------------


class LookupNetwork(nn.Module):
    """Attention, then a linear readout of two numbers whose signs are the answer.

    Args:
        embed_dim: size of queries, keys and values: twice the number of drawers.
        num_heads: number of heads; divides `embed_dim`.
        attention: a layer to use in place of `MultiHeadAttention`, called in the same way.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, attention: nn.Module | None = None):
        super().__init__()
        self.attention = attention or MultiHeadAttention(embed_dim, num_heads)
        self.readout = nn.Linear(embed_dim, 2)

    def forward(self, queries: Tensor, keys: Tensor, values: Tensor) -> Tensor:
        """(batch, requests, embed_dim), (batch, drawers, embed_dim) twice → (batch, requests, 2)."""
        return self.readout(self.attention(queries, keys, values))


def train_lookups(
    network: LookupNetwork, *, steps: int = 300, lr: float = 0.01, seed: int = 0
) -> LookupNetwork:
    """Train on 16 random cabinets a step, all requests each, by cross-entropy on the two signs.

    Args:
        network: to be trained.
        steps: of Adam with rate `lr`.
        seed: of the cabinets drawn.

    Returns:
        The network that was given.
    """
    task = two_lookups()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr)
    for _ in range(steps):
        balls = task.balls[torch.randint(len(task.balls), (16,), generator=generator)]
        logits = network(*task.inputs(balls))
        loss = F.binary_cross_entropy_with_logits(logits, (task.answers(balls) > 0).float())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return network


@torch.no_grad()
def lookup_accuracy(network: LookupNetwork) -> Tensor:
    """Share of right answers over *all* requests and fillings: (first ball, second ball, both)."""
    right = _right(network)
    return torch.stack([*right.float().mean(dim=(0, 1)), right.all(dim=-1).float().mean()])


@torch.no_grad()
def lookup_cases(network: LookupNetwork) -> Tensor:
    """Shares of right answers (first ball, second ball, both) where the balls are alike, where they differ: (2, 3)."""
    task, right = two_lookups(), _right(network)
    alike = task.answers(task.balls).prod(dim=-1) > 0
    right = torch.cat([right, right.all(dim=-1, keepdim=True)], dim=-1).float()
    return torch.stack([right[alike].mean(dim=0), right[~alike].mean(dim=0)])


def asked_weights(weights: Tensor) -> Tensor:
    """(batch, heads, requests, drawers) → (heads, 2): mean weight on the drawer asked for first, and on the second."""
    pairs = two_lookups().pairs
    return weights.gather(-1, pairs.expand(*weights.shape[:-1], 2)).mean(dim=(0, 2))


def _right(network: LookupNetwork) -> Tensor:
    """(fillings, requests, 2): which answers are right."""
    task = two_lookups()
    return (network(*task.inputs(task.balls)) > 0) == (task.answers(task.balls) > 0)


def most_right(averages: Tensor, signs: Tensor) -> int:
    """In how many of four cases two answers are right, read off one average by the best linear rules.

    Args:
        averages: (4,), what the head returns.
        signs: (4, 2), the two balls.
    """
    cuts = torch.cat([averages - 1e-4, averages.max()[None] + 1])[:, None]
    above = averages > cuts  # (5, 4): u > 0
    predicted = torch.cat([above, ~above])  # and u < 0
    first, second = (predicted == (signs[:, ball] > 0) for ball in (0, 1))
    return int((first[:, None] & second).sum(dim=-1).max())


# All trainings in one picture --------------------------------------------------------------------

NAMES = {1: "one head", 2: "two heads"}


def reader_ends(run: StoredRun) -> pd.DataFrame:
    """A row for each reader of a run of `verb_readers`: rate and seed, the share at the end, and head 0's weights."""
    rows = []
    for name in run.curves:
        rate, seed = name.split(", ")
        values = {of: run.result[f"{name}, {of}"] for of in ("both", "subject", "object", "spread")}
        rows.append({"name": name, "rate": float(rate), "seed": int(seed)} | values)
    return pd.DataFrame(rows)


def best_rate(ends: pd.DataFrame) -> float:
    """The rate with the highest mean share at the end."""
    return ends.groupby("rate")["both"].mean().idxmax()


def show_over_steps(runs: Sequence[StoredRun]) -> Picture:
    """Share of unseen sentences with both nouns right over the steps: a panel a run, a line a training."""
    readers, endings = [reader_ends(run) for run in runs], []
    titles = [f"{run.config['objects']}, {NAMES[run.config['num_heads']]}" for run in runs]
    for title, ends in zip(titles, readers, strict=True):
        at_best = ends[ends["rate"] == best_rate(ends)]["both"]
        endings.append(f"{title}: {int((at_best > 0.95).sum())} of {len(at_best)} end above 0.95.")
    picture, axes = subplots(
        1, len(runs), width=8.6, height=2.8, sharey=True,
        alt="Both nouns right over the steps of training, at the best rate. " + " ".join(endings),
    )  # fmt: skip
    for ax, run, title, ends in zip(axes, runs, titles, readers, strict=True):
        best = best_rate(ends)
        for _, end in ends.sort_values("rate", key=lambda rates: rates == best).iterrows():
            steps, shares = zip(*run.curves[end["name"]], strict=True)
            is_best = end["rate"] == best
            color, width = (COLORS["key"], 1.6) if is_best else ("0.8", 0.8)
            ax.plot(steps, shares, color=color, linewidth=width)
        ax.set(title=title, xlabel="steps", xscale="log", ylim=(0, 1.05))
        ax.set_xticks([50, 200, 1000, 3000], ["50", "200", "1,000", "3,000"])
        ax.minorticks_off()
    axes[0].set_ylabel("both nouns right")
    return picture


# Who does it, and to whom? ------------------------------------------------------------------------

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
    pairs = [(subject, other) for subject in PEOPLE for other in seconds if subject != other]
    draw, splits = random.Random(f"{seed} {objects}"), {}
    while len(splits) < TRAIN + TEST:
        words, verb, nouns = _sentence(draw, *draw.choice(pairs))
        splits[" ".join(words)] = (words, verb, nouns)
    batch = _batch(list(splits.values()))
    return batch[:TRAIN], batch[TRAIN:]


def _sentence(draw: random.Random, subject: str, thing: str) -> tuple[list[str], int, list[int]]:
    """The words of a sentence, the place of its verb, and its nouns."""
    first = [draw.choice(BEFORE), "the", draw.choice(["", *ADJECTIVES]), subject]
    last = ["the", draw.choice(["", *ADJECTIVES]), thing, draw.choice(AFTER), "."]
    before = [word for word in first if word]
    words = [*before, draw.choice(VERBS), *filter(None, last)]
    return words, len(before), [NOUNS.index(subject), NOUNS.index(thing)]


def _batch(sentences: list[tuple[list[str], int, list[int]]]) -> Sentences:
    tokens = torch.zeros(len(sentences), LENGTH, dtype=torch.long)
    for row, (words, _, _) in enumerate(sentences):
        tokens[row, : len(words)] = torch.tensor([WORDS.index(word) for word in words])
    lengths = torch.tensor([len(words) for words, _, _ in sentences])
    verbs, nouns = (torch.tensor([sentence[column] for sentence in sentences]) for column in (1, 2))
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
