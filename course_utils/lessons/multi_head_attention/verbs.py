"""Who does it, and to whom? A task that asks two questions at the verb of a sentence, and the readers trained on it.

Sentences such as "yesterday the young doctor followed the queen ." have a person as subject, and as object another
person or a thing. The words are those of the course's translator; the sentences are made here. *Multi-head attention*
trains readers with one head and with two, and shows the stored runs of `verb_readers`.
"""

import itertools
import random
from collections.abc import Sequence
from dataclasses import dataclass

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.figures import COLORS, Picture, subplots
from course_utils.kit.runs import StoredRun
from course_utils.train.steps import take_steps

# The sentences ------------------------------------------------------------------------------------

PEOPLE = ["boy", "girl", "man", "woman", "king", "queen", "doctor", "neighbor"]
THINGS = ["house", "car", "book", "table", "bridge", "castle", "boat", "mirror"]
VERBS = ["saw", "followed", "liked", "chose", "drew", "found"]
ADJECTIVES = ["young", "small", "old", "beautiful"]
BEFORE, AFTER = ("", "yesterday"), ("", "again")
WORDS = ["<pad>", "the", ".", *PEOPLE, *THINGS, *VERBS, *ADJECTIVES, *filter(None, BEFORE + AFTER)]
LENGTH = 10
"""Number of places in the longest sentence."""
NOUNS = PEOPLE + THINGS
TRAIN, TEST = 2000, 500
BATCH = 64
"""Sentences of a training step."""


@dataclass(frozen=True)
class Sentences:
    """A batch of sentences, padded.

    Attributes:
        tokens: (batch, LENGTH), places in `WORDS`.
        lengths: (batch,), numbers of words.
        verbs: (batch,), the place of the verb.
        nouns: (batch, 2), subject and object, as places in `NOUNS`.
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

    def __getitem__(self, rows: slice | Tensor) -> "Sentences":
        """Some of the sentences."""
        return Sentences(self.tokens[rows], self.lengths[rows], self.verbs[rows], self.nouns[rows])


def sentences(objects: str, *, seed: int = 0) -> tuple[Sentences, Sentences]:
    """2,000 sentences to train on and 500 to test with, all different, with a person as subject.

    Args:
        objects: "people" (another person than the subject) or "things".
        seed: of the choices.
    """
    second_nouns = {"people": PEOPLE, "things": THINGS}[objects]
    pairs = [(subject, other) for subject in PEOPLE for other in second_nouns if subject != other]
    chance, by_text = random.Random(f"{seed} {objects}"), {}
    while len(by_text) < TRAIN + TEST:
        sentence = _sentence(chance, *chance.choice(pairs))
        by_text[" ".join(sentence[0])] = sentence
    batch = _batch(list(by_text.values()))
    return batch[:TRAIN], batch[TRAIN:]


Sentence = tuple[list[str], int, list[int]]
"""The words of a sentence, the place of its verb, and subject and object as places in `NOUNS`."""


def _sentence(chance: random.Random, subject: str, thing: str) -> Sentence:
    """A sentence about a subject and an object, whose other words are drawn."""
    first = [chance.choice(BEFORE), "the", chance.choice(["", *ADJECTIVES]), subject]
    last = ["the", chance.choice(["", *ADJECTIVES]), thing, chance.choice(AFTER), "."]
    before = [word for word in first if word]
    words = [*before, chance.choice(VERBS), *filter(None, last)]
    return words, len(before), [NOUNS.index(subject), NOUNS.index(thing)]


def _batch(sentences: Sequence[Sentence]) -> Sentences:
    """The sentences as numbers, padded."""
    tokens = torch.zeros(len(sentences), LENGTH, dtype=torch.long)
    for row, (words, _, _) in enumerate(sentences):
        tokens[row, : len(words)] = torch.tensor([WORDS.index(word) for word in words])
    lengths = torch.tensor([len(words) for words, _, _ in sentences])
    verbs, nouns = (torch.tensor([sentence[column] for sentence in sentences]) for column in (1, 2))
    return Sentences(tokens, lengths, verbs, nouns)


# The readers --------------------------------------------------------------------------------------


class VerbReader(nn.Module):
    """Network that names subject and object: word and place as a vector, one attention, a linear readout at the verb.

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
        """Scores of each noun as subject, and as object: (batch, 2, nouns)."""
        x = self.words(batch.tokens) + self.places.weight
        real = torch.arange(LENGTH) < batch.lengths[:, None]
        at_verb = x[torch.arange(len(x)), batch.verbs][:, None]  # (batch, 1, embed_dim): one query
        answer = self.attention(at_verb, x, x, real[:, None, None])[:, 0]
        return self.readout(answer).unflatten(-1, (2, -1))


def train_reader(
    reader: VerbReader, objects: str, *, steps: int = 300, lr: float = 0.01, seed: int = 0
) -> float:
    """Train a reader on the 2,000 sentences with such objects, by cross-entropy on both answers.

    Args:
        reader: to be trained.
        objects: "people" or "things".
        steps: of Adam with rate `lr`, `BATCH` sentences each.
        seed: of the sentences and their order.

    Returns:
        The loss of the last 50 steps, in nats, mean of both answers.
    """
    train, _ = sentences(objects, seed=seed)
    generator = torch.Generator().manual_seed(seed)
    losses: list[float] = []

    def loss_of_a_batch() -> Tensor:
        batch = train[torch.randint(TRAIN, (BATCH,), generator=generator)]
        return F.cross_entropy(reader(batch).flatten(0, 1), batch.nouns.flatten())

    take_steps(
        torch.optim.Adam(reader.parameters(), lr=lr),
        loss_of_a_batch,
        steps=steps,
        rate=lambda _: lr,
        clip_norm=None,
        after_step=lambda step, loss: losses.append(loss),
    )
    return sum(losses[-50:]) / len(losses[-50:])


@torch.no_grad()
def reader_accuracy(reader: VerbReader, batch: Sentences) -> list[float]:
    """Accuracy on the subject, on the object, and on both."""
    right = reader(batch).argmax(dim=-1) == batch.nouns
    return [*right.float().mean(dim=0).tolist(), right.all(dim=1).float().mean().item()]


# The stored runs of many readers ------------------------------------------------------------------

RATES, SEEDS = (0.001, 0.003, 0.01, 0.03), (0, 1, 2, 3, 4)
"""The readers of a run of `verb_readers`: one for each rate and seed."""
HEADS = {1: "one head", 2: "two heads"}


def reader_key(rate: float, seed: int) -> str:
    """The name of a reader in the curves of `verb_readers`; its results have such names as "0.01, 3, both"."""
    return f"{rate:g}, {seed}"


def reader_ends(run: StoredRun) -> pd.DataFrame:
    """Table with a row for each reader of a run of `verb_readers`.

    The columns are `rate` and `seed`, the accuracy on `both` nouns at the end, and of head 0 the mean
    weights on `subject` and `object` and the `spread` of the first.
    """
    rows = []
    for rate, seed in itertools.product(RATES, SEEDS):
        key = reader_key(rate, seed)
        values = {
            name: run.result[f"{key}, {name}"] for name in ("both", "subject", "object", "spread")
        }
        rows.append({"rate": rate, "seed": seed} | values)
    return pd.DataFrame(rows)


def best_rate(ends: pd.DataFrame) -> float:
    """The rate with the highest mean share at the end, in a table of `reader_ends`."""
    return ends.groupby("rate")["both"].mean().idxmax()


def show_over_steps(runs: Sequence[StoredRun]) -> Picture:
    """Picture of the accuracy on both nouns of unseen sentences over the steps: a panel a run, a line a reader.

    The readers at the best rate are drawn last, in color.
    """
    tables = [reader_ends(run) for run in runs]
    titles = [f"{run.config['objects']}, {HEADS[run.config['num_heads']]}" for run in runs]
    texts = ["Both nouns right over the steps of training, at the best rate."]
    for title, ends in zip(titles, tables, strict=True):
        at_best = ends[ends["rate"] == best_rate(ends)]["both"]
        texts.append(f"{title}: {int((at_best > 0.95).sum())} of {len(at_best)} end above 0.95.")
    picture, axes = subplots(1, len(runs), width=8.6, height=2.8, sharey=True, alt=" ".join(texts))
    for ax, run, title, ends in zip(axes, runs, titles, tables, strict=True):
        best = best_rate(ends)
        best_last = ends.sort_values("rate", key=lambda rates: rates == best)
        for rate, seed in zip(best_last["rate"], best_last["seed"], strict=True):
            steps, shares = zip(*run.curves[reader_key(rate, seed)], strict=True)
            color, width = (COLORS["key"], 1.6) if rate == best else ("0.8", 0.8)
            ax.plot(steps, shares, color=color, linewidth=width)
        ax.set(title=title, xlabel="steps", xscale="log", ylim=(0, 1.05))
        ax.set_xticks([50, 200, 1000, 3000], ["50", "200", "1,000", "3,000"])
        ax.minorticks_off()
    axes[0].set_ylabel("both nouns right")
    return picture
