"""Mistakes that the checks of *Training transformers* must catch."""

import math
from itertools import pairwise

import torch
import torch.nn.functional as F

# noam_rate --------------------------------------------------------------------------------------


def larger_term(step, embed_dim, warmup):
    """Takes the larger of the two terms."""
    return embed_dim**-0.5 * max(step**-0.5, step * warmup**-1.5)


def without_size(step, embed_dim, warmup):
    """Forgets embed_dim."""
    return min(step**-0.5, step * warmup**-1.5)


def divided_by_warmup(step, embed_dim, warmup):
    """Rises to 1/√embed_dim and jumps down: the two terms do not meet."""
    return embed_dim**-0.5 * (step / warmup if step <= warmup else step**-0.5)


def stays_at_the_peak(step, embed_dim, warmup):
    """Never falls."""
    return (embed_dim * warmup) ** -0.5 * min(1.0, step / warmup)


# smoothed_loss ----------------------------------------------------------------------------------


def among_the_others(logits, targets, epsilon):
    """Shares ε among the wrong classes only."""
    log_p = logits.log_softmax(dim=-1)
    right = log_p.gather(-1, targets[:, None])[:, 0]
    wrong = (log_p.sum(dim=-1) - right) / (logits.shape[-1] - 1)
    return -((1 - epsilon) * right + epsilon * wrong).mean()


def logarithm_of_softmax(logits, targets, epsilon):
    """Takes the logarithm of probabilities that may have been rounded to 0."""
    log_p = logits.softmax(dim=-1).log()
    right = log_p.gather(-1, targets[:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.mean(dim=-1)).mean()


def summed_over_classes(logits, targets, epsilon):
    """Gives each class ε instead of ε/K."""
    log_p = logits.log_softmax(dim=-1)
    right = log_p.gather(-1, targets[:, None])[:, 0]
    return -((1 - epsilon) * right + epsilon * log_p.sum(dim=-1)).mean()


def loss_per_row(logits, targets, epsilon):
    """Returns a loss for each row."""
    return F.cross_entropy(logits, targets, label_smoothing=epsilon, reduction="none")


def right_class_keeps_one(logits, targets, epsilon):
    """Adds ε/K to all classes and takes nothing from the right one."""
    log_p = logits.log_softmax(dim=-1)
    right = log_p.gather(-1, targets[:, None])[:, 0]
    return -(right + epsilon * log_p.mean(dim=-1)).mean()


# clip_together ----------------------------------------------------------------------------------


def each_by_itself(gradients, limit):
    """Clips every tensor on its own: long ones lose direction against short ones."""
    return [g * min(1.0, limit / max(g.norm().item(), 1e-12)) for g in gradients]


def values_cut(gradients, limit):
    """Cuts values, not the length."""
    return [g.clamp(-limit, limit) for g in gradients]


def always_to_the_limit(gradients, limit):
    """Makes short gradients longer."""
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    return [g * limit / norm for g in gradients]


def in_place(gradients, limit):
    """Changes what it was given."""
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    factor = min(1.0, limit / max(norm.item(), 1e-12))
    return [g.mul_(factor) for g in gradients]


def nan_at_zero(gradients, limit):
    """0 · (limit / 0)."""
    norm = torch.cat([g.flatten() for g in gradients]).norm()
    return [g * (limit / norm) if not norm < limit or norm == 0 else g for g in gradients]


# epochs_needed ----------------------------------------------------------------------------------


def counts_from_zero(bleu, level):
    """Takes the index for the epoch."""
    return next((epoch for epoch, value in enumerate(bleu) if value >= level), math.inf)


def whole_epochs(bleu, level):
    """Rounds up."""
    return next((epoch for epoch, value in enumerate(bleu, 1) if value >= level), math.inf)


def last_when_never(bleu, level):
    """Says the last epoch when the level is never reached."""
    before = 0.0
    for epoch, value in enumerate(bleu, 1):
        if value >= level:
            return epoch - 1 + (level - before) / (value - before)
        before = value
    return len(bleu)


def starts_at_one(bleu, level):
    """Has no line before the first measurement."""
    for epoch, (before, value) in enumerate(pairwise(bleu), 1):
        if before >= level:
            return epoch
        if value >= level:
            return epoch + (level - before) / (value - before)
    return math.inf


def the_last_time(bleu, level):
    """Looks from the end."""
    for epoch in range(len(bleu), 0, -1):
        before = bleu[epoch - 2] if epoch > 1 else 0.0
        if bleu[epoch - 1] >= level > before:
            return epoch - 1 + (level - before) / (bleu[epoch - 1] - before)
    return math.inf


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


MISTAKES = {
    "noam_rate": [larger_term, without_size, divided_by_warmup, stays_at_the_peak],
    "smoothed_loss": [
        among_the_others, logarithm_of_softmax, summed_over_classes, loss_per_row,
        right_class_keeps_one,
    ],
    "clip_together": [each_by_itself, values_cut, always_to_the_limit, in_place, nan_at_zero],
    "epochs_needed": [counts_from_zero, whole_epochs, last_when_never, starts_at_one, the_last_time],
    "fixed_fit": [
        not_fixed, still_per_epoch, first_step_lost, a_rate_per_epoch, notes_what_it_does_not_use,
    ],
}  # fmt: skip
