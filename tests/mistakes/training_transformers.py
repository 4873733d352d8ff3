"""Mistakes that the checks of *Training transformers* must catch."""

import math
from collections import Counter, defaultdict

import torch

# loss_given -------------------------------------------------------------------------------------


def _shares(contexts, tokens):
    pairs, of_context = Counter(zip(contexts, tokens, strict=True)), Counter(contexts)
    return [pairs[c, t] / of_context[c] for c, t in zip(contexts, tokens, strict=True)]


def without_context(contexts, tokens):
    """Forgets the contexts."""
    counts = Counter(tokens)
    return -sum(math.log(counts[token] / len(tokens)) for token in tokens) / len(tokens)


def joint(contexts, tokens):
    """Takes the share of the pair, not that within its context."""
    pairs = Counter(zip(contexts, tokens, strict=True))
    return -sum(math.log(n / len(tokens)) * n for n in pairs.values()) / len(tokens)


def summed(contexts, tokens):
    """A sum, not a mean."""
    return -sum(map(math.log, _shares(contexts, tokens)))


def mean_of_means(contexts, tokens):
    """Each context counts once."""
    losses = defaultdict(list)
    for context, share in zip(contexts, _shares(contexts, tokens), strict=True):
        losses[context].append(-math.log(share))
    return sum(sum(some) / len(some) for some in losses.values()) / len(losses)


def in_bits(contexts, tokens):
    """The logarithm to the base 2."""
    return -sum(map(math.log2, _shares(contexts, tokens))) / len(tokens)


def as_index(contexts, tokens):
    """Contexts have to be small numbers."""
    counts = [0] * 100
    for context in contexts:
        counts[context] += 1
    pairs = Counter(zip(contexts, tokens, strict=True))
    return -sum(
        math.log(pairs[c, t] / counts[c]) for c, t in zip(contexts, tokens, strict=True)
    ) / len(tokens)


# predicted_steps --------------------------------------------------------------------------------


def no_warm_up():
    """The full rate at once, and no idea of Adam."""
    return [6, 1.5, 300, 3, 0.7]


def clipped_steps():
    """Right, but for clipping and for the paper's peak."""
    return [3, 3, 3, 0.03, 4]


def falls_as_a_line():
    """The rate at 200 as on a straight line, and the peak without the root."""
    return [3, 1.2, 3, 3, 0.001]


# fixed_fit --------------------------------------------------------------------------------------


def _fit(model, batches, loss, epochs, lr, schedule, *, first, per_epoch):
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: schedule(done + first))
    rates = []
    for _epoch in range(epochs):
        for batch in batches:
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
            if not per_epoch:
                scheduler.step()
        if per_epoch:
            scheduler.step()
    return rates


def not_fixed(model, batches, loss, *, epochs, lr, schedule):
    """As it was given."""
    return _fit(model, batches, loss, epochs, lr, schedule, first=0, per_epoch=True)


def still_per_epoch(model, batches, loss, *, epochs, lr, schedule):
    """Starts at step 1, and still counts epochs."""
    return _fit(model, batches, loss, epochs, lr, schedule, first=1, per_epoch=True)


def first_step_lost(model, batches, loss, *, epochs, lr, schedule):
    """Counts steps, from 0: the first step has rate 0."""
    return _fit(model, batches, loss, epochs, lr, schedule, first=0, per_epoch=False)


def a_rate_per_epoch(model, batches, loss, *, epochs, lr, schedule):
    """Notes one rate per epoch."""
    rates = _fit(model, batches, loss, epochs, lr, schedule, first=1, per_epoch=False)
    return rates[:: len(batches)]


def notes_what_it_does_not_use(model, batches, loss, *, epochs, lr, schedule):
    """Returns the right rates and trains at a constant one."""
    _fit(model, batches, loss, epochs, lr, lambda step: 1.0, first=1, per_epoch=False)
    return [lr * schedule(step) for step in range(1, epochs * len(batches) + 1)]


def scheduler_first(model, batches, loss, *, epochs, lr, schedule):
    """The scheduler steps before the optimizer; the rates are right, and PyTorch warns."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda done: schedule(done or 1))
    rates = []
    for _epoch in range(epochs):
        for batch in batches:
            scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])
            optimizer.zero_grad()
            loss(model, batch).backward()
            optimizer.step()
    return rates


MISTAKES = {
    "loss_given": [without_context, joint, summed, mean_of_means, in_bits, as_index],
    "predicted_steps": [no_warm_up, clipped_steps, falls_as_a_line],
    "fixed_fit": [
        scheduler_first, not_fixed, still_per_epoch, first_step_lost, a_rate_per_epoch, notes_what_it_does_not_use,
    ],
}  # fmt: skip

ANSWERS = {
    "scheduler_first": ("before `optimizer.step()`", "optimizer used"),
}
