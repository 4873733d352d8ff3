"""Mistakes in the exercises of *Training transformers*, each with the property that catches it and its hint."""

import math
from collections import Counter, defaultdict

import torch
from mistakes.table import mistake


def _shares(contexts, tokens):
    pairs, of_context = Counter(zip(contexts, tokens, strict=True)), Counter(contexts)
    return [pairs[c, t] / of_context[c] for c, t in zip(contexts, tokens, strict=True)]


@mistake("loss_given", caught_by="gives ln 2 = 0.693 for one context", hint="Which logarithm")
def in_bits(contexts, tokens):
    """The logarithm to the base 2."""
    return -sum(map(math.log2, _shares(contexts, tokens))) / len(tokens)


@mistake(
    "loss_given",
    caught_by="gives ln 2 = 0.693 for one context",
    hint="divide by the number of tokens",
)
def not_divided(contexts, tokens):
    """The sum of the losses."""
    return -sum(map(math.log, _shares(contexts, tokens)))


@mistake("loss_given", caught_by="gives ln 2 = 0.693 for one context", hint="Which sign")
def sign_forgotten(contexts, tokens):
    """The mean of ln p."""
    return sum(map(math.log, _shares(contexts, tokens))) / len(tokens)


@mistake("loss_given", caught_by="gives 0.562 for one context", hint="no smoothing")
def add_one(contexts, tokens):
    """Adds one to each count."""
    pairs, of_context = Counter(zip(contexts, tokens, strict=True)), Counter(contexts)
    kinds = len(set(tokens))
    logs = [
        math.log((pairs[c, t] + 1) / (of_context[c] + kinds))
        for c, t in zip(contexts, tokens, strict=True)
    ]
    return -sum(logs) / len(tokens)


@mistake("loss_given", caught_by="gives 0.562 for one context", hint="not over the kinds")
def over_kinds(contexts, tokens):
    """Each kind of token counts once."""
    pairs, of_context = Counter(zip(contexts, tokens, strict=True)), Counter(contexts)
    return -sum(math.log(n / of_context[c]) for (c, _), n in pairs.items()) / len(pairs)


@mistake(
    "loss_given", caught_by="gives 0 if the context determines", hint="Do you count the tokens"
)
def without_context(contexts, tokens):
    """Forgets the contexts."""
    counts = Counter(tokens)
    return -sum(math.log(counts[token] / len(tokens)) for token in tokens) / len(tokens)


@mistake("loss_given", caught_by="gives 0.477 for contexts x x x y", hint="In context x, what")
def mean_of_means(contexts, tokens):
    """Each context counts once."""
    losses = defaultdict(list)
    for context, share in zip(contexts, _shares(contexts, tokens), strict=True):
        losses[context].append(-math.log(share))
    return sum(sum(some) / len(some) for some in losses.values()) / len(losses)


@mistake(
    "loss_given", caught_by="gives 0 if the context determines", hint="Do you count the tokens"
)
def as_index(contexts, tokens):
    """Contexts have to be small numbers."""
    counts = [0] * 100
    for context in contexts:
        counts[context] += 1
    pairs = Counter(zip(contexts, tokens, strict=True))
    return -sum(
        math.log(pairs[c, t] / counts[c]) for c, t in zip(contexts, tokens, strict=True)
    ) / len(tokens)


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


@mistake("fixed_fit", caught_by="takes the first step", hint="With which number does LambdaLR")
def not_fixed(*given, **options):
    """As it was given."""
    return _fit(*given, **options, first=0, per_epoch=True)


@mistake("fixed_fit", caught_by="takes step t", hint="How often do you call")
def still_per_epoch(*given, **options):
    """Starts at step 1, and still counts epochs."""
    return _fit(*given, **options, first=1, per_epoch=True)


@mistake(
    "fixed_fit", caught_by="returns one rate for each batch", hint="How often does the optimizer"
)
def a_rate_per_epoch(model, batches, *given, **options):
    """Notes one rate per epoch."""
    return _fit(model, batches, *given, **options, first=1, per_epoch=False)[:: len(batches)]


@mistake(
    "fixed_fit",
    caught_by="moves the weights at these rates",
    reason="constant rate 0.1",
    hint="optimizer used",
)
def notes_what_it_does_not_use(model, batches, loss, *, epochs, lr, schedule):
    """Returns the right rates and trains at a constant one."""
    _fit(model, batches, loss, epochs, lr, lambda step: 1.0, first=1, per_epoch=False)
    return [lr * schedule(step) for step in range(1, epochs * len(batches) + 1)]


@mistake("fixed_fit", caught_by="moves the weights at these rates", hint="no clipping")
def another_adam(model, batches, loss, *, epochs, lr, schedule):
    """The rates are right and used, but with the averages of the chapter's own loop."""
    optimizer = torch.optim.Adam(model.parameters(), lr=lr, betas=(0.9, 0.98))
    rates = []
    for step in range(1, epochs * len(batches) + 1):
        optimizer.param_groups[0]["lr"] = lr * schedule(step)
        rates.append(lr * schedule(step))
        optimizer.zero_grad()
        loss(model, batches[(step - 1) % len(batches)]).backward()
        optimizer.step()
    return rates


ON_PAPER = {
    "predicted_steps": {
        "a": 0.7,  # falls as 1/step
        "b": 500,  # the rate times the gradient, without Adam
        "c": 4,  # takes the peak for that of the example
    },
}
