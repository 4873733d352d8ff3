"""The gender of "it" and of an adjective in French, learned by attention and by an average."""

import torch
from torch import nn
from torch.nn import functional as F

from course_utils.lessons.self_attention.agreement import (
    ADJECTIVE,
    IT,
    VOCABULARY,
    make_sentences,
)
from course_utils.runtime import seed_everything

KINDS = "average", "average, hidden layer", "one attention", "two attentions"
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
    """One of the `KINDS`, with a class of attention such as the chapter's."""
    seed_everything(seed)
    if "average" in kind:
        return Reader(Average(32), hidden=148 if "hidden" in kind else 0)
    return Reader(*(attention(32, 32, 32) for _ in range(1 + ("two" in kind))))


def gender_loss(model, batch):
    """Summed over "it" and the adjective of each sentence, and how many these are."""
    logits = model(batch[0])[:, [IT, ADJECTIVE]].flatten(0, 1)  # (2 · batch, 2)
    targets = batch[1].repeat_interleave(2)
    return F.cross_entropy(logits, targets, reduction="sum"), len(logits)


def train(model, seed, steps=600, rate=3e-3):
    """With Adam, on batches of 64 of the 2,000 sentences."""
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
def score(model, test=True):
    """The share of right genders at either word."""
    tokens, gender, _ = test_set if test else train_set
    right = (model(tokens).argmax(dim=-1) == gender[:, None]).float().mean(dim=0)
    return {"it": right[IT].item(), "adjective": right[ADJECTIVE].item()}
