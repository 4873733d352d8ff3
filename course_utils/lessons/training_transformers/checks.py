"""Checks: the warm-up formula, label smoothing, clipping, epochs needed, and a broken loop."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.lessons.check import Check, Property, expect, expect_close, expect_shape

__all__ = ["clip_together", "epochs_needed", "fixed_fit", "noam_rate", "smoothed_loss"]

# The warm-up formula ----------------------------------------------------------------------------


def _near(actual, expected: float, what: str) -> None:
    expect(
        isinstance(actual, int | float) or (torch.is_tensor(actual) and actual.ndim == 0),
        f"a number is expected, got a {type(actual).__name__}",
    )
    expect(
        math.isclose(float(actual), expected, rel_tol=1e-5, abs_tol=1e-12),
        f"{what} is {float(actual):.4g}; {expected:.4g} is expected",
    )


def _rises_in_a_line(candidate):
    for step in (1, 2, 500, 3999):
        first = candidate(1, embed_dim=512, warmup=4000)
        _near(candidate(step, embed_dim=512, warmup=4000), step * float(first), f"step {step}")


def _peaks_at_warmup(candidate):
    for embed_dim, warmup in ((512, 4000), (256, 4000), (64, 50)):
        peak = (embed_dim * warmup) ** -0.5
        rate = candidate(warmup, embed_dim=embed_dim, warmup=warmup)
        _near(rate, peak, f"the rate at step {warmup} for embed_dim={embed_dim}")


def _halves_at_four_times_warmup(candidate):
    peak = float(candidate(50, embed_dim=64, warmup=50))
    _near(candidate(200, embed_dim=64, warmup=50), peak / 2, "the rate at step 200")
    _near(candidate(5000, embed_dim=64, warmup=50), peak / 10, "the rate at step 5000")


noam_rate = Check(
    "the warm-up formula",
    [
        Property(
            "during the warm-up the rate at step s is s times the rate at step 1",
            _rises_in_a_line,
            "which of the two terms is the smaller one before step `warmup`, and which power of the "
            "step stands in it?",
        ),
        Property(
            "at step `warmup` it is 1 / √(embed_dim · warmup)",
            _peaks_at_warmup,
            "put step = warmup into both terms: they must agree. Is embed_dim under a root?",
        ),
        Property(
            "afterwards it falls as 1/√step: half at four times the warm-up",
            _halves_at_four_times_warmup,
            "after the warm-up the other term is the smaller one",
        ),
    ],
)

# Label smoothing --------------------------------------------------------------------------------


def _logits() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(6, 5) * 2, torch.tensor([0, 4, 2, 2, 1, 3])


def _is_one_number(candidate):
    expect_shape(candidate(*_logits(), 0.1), ())


def _plain_without_smoothing(candidate):
    logits, targets = _logits()
    expect_close(candidate(logits, targets, 0.0), F.cross_entropy(logits, targets), "ε = 0")


def _by_hand(candidate):
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    expected = -(1 - 0.3 + 0.1) * math.log(0.5) - 2 * 0.1 * math.log(0.25)
    loss = candidate(logits, torch.tensor([0]), 0.3)
    expect_close(loss, torch.tensor(expected), "probabilities ½, ¼, ¼, class 0, ε = 0.3")


def _equals_the_library(candidate):
    logits, targets = _logits()
    logits.requires_grad_()
    for epsilon in (0.1, 0.5):
        expected = F.cross_entropy(logits, targets, label_smoothing=epsilon)
        actual = candidate(logits, targets, epsilon)
        expect_close(actual, expected, f"ε = {epsilon}")
        gradient = torch.autograd.grad(actual, logits)[0]
        expect_close(gradient, torch.autograd.grad(expected, logits)[0], "the gradient")


def _finite_for_sure_models(candidate):
    logits = torch.tensor([[1000.0, 0.0, -1000.0]])
    loss = candidate(logits, torch.tensor([0]), 0.3)
    expect_close(loss, torch.tensor(300.0), "logits 1000, 0, −1000, class 0, ε = 0.3")


smoothed_loss = Check(
    "label smoothing",
    [
        Property(
            "the loss of a batch is one number", _is_one_number, "take the mean over the batch"
        ),
        Property(
            "with ε = 0 it is cross-entropy",
            _plain_without_smoothing,
            "minus the log-probability of the right class, averaged over the rows",
        ),
        Property(
            "three classes, ε = 0.3: targets 0.8, 0.1, 0.1",
            _by_hand,
            "ε is shared out among *all* classes, the right one included",
        ),
        Property(
            "it equals F.cross_entropy with label_smoothing, gradient included",
            _equals_the_library,
            "is the number of classes taken from the logits? Is every step differentiable?",
        ),
        Property(
            "it is finite for a model that is very sure",
            _finite_for_sure_models,
            "the logarithm of a probability that was rounded to 0 is −∞: which function gives "
            "log-probabilities at once?",
        ),
    ],
)

# Clipping ---------------------------------------------------------------------------------------


def _length(gradients) -> torch.Tensor:
    return torch.cat([gradient.flatten() for gradient in gradients]).norm()


def _given() -> list[torch.Tensor]:
    return [torch.tensor([3.0, 0.0]), torch.tensor([[4.0], [12.0]])]  # 3, 5, 13


def _short_ones_stay(candidate):
    for limit in (13.0, 20.0):
        clipped = candidate(_given(), limit)
        for one, other in zip(clipped, _given(), strict=True):
            expect_close(one, other, f"length 13, limit {limit:g}")


def _long_ones_get_the_limit(candidate):
    for limit in (1.0, 6.5):
        clipped = candidate(_given(), limit)
        expect_close(_length(clipped), torch.tensor(limit), f"the length with limit {limit:g}")


def _direction_stays(candidate):
    clipped = candidate(_given(), 6.5)
    for one, other in zip(clipped, _given(), strict=True):
        expect_close(one, other / 2, "limit 6.5 halves a gradient of length 13")


def _arguments_stay(candidate):
    gradients = _given()
    candidate(gradients, 1.0)
    same = all(torch.equal(one, other) for one, other in zip(gradients, _given(), strict=True))
    expect(same, "the gradients that were handed in have changed")


def _zero_stays_zero(candidate):
    clipped = candidate([torch.zeros(3), torch.zeros(2, 2)], 1.0)
    expect_close(torch.cat([g.flatten() for g in clipped]), torch.zeros(7), "all gradients zero")


clip_together = Check(
    "gradient clipping",
    [
        Property(
            "a gradient that is short enough stays as it is",
            _short_ones_stay,
            "the factor is never above 1",
        ),
        Property(
            "a longer one gets the length `limit`, over all tensors together",
            _long_ones_get_the_limit,
            "one length for the whole list: the root of the sum of all squares",
        ),
        Property(
            "its direction stays: one factor for all entries",
            _direction_stays,
            "is every tensor, and every entry, multiplied by the same number?",
        ),
        Property(
            "the arguments are not changed",
            _arguments_stay,
            "does an operation end in `_` or `*=`?",
        ),
        Property(
            "zero gradients give zeros", _zero_stays_zero, "what is 0 / 0, and when does it occur?"
        ),
    ],
)

# Epochs needed ----------------------------------------------------------------------------------


def _reached_exactly(candidate):
    _near(candidate([0.1, 0.3, 0.8, 0.9], 0.8), 3, "epochs to 0.8 in 0.1, 0.3, 0.8, 0.9")


def _between_epochs(candidate):
    _near(candidate([0.1, 0.3, 0.7, 0.9], 0.4), 2.25, "epochs to 0.4 in 0.1, 0.3, 0.7, 0.9")


def _first_epoch(candidate):
    _near(candidate([0.8, 0.9], 0.4), 0.5, "epochs to 0.4 in 0.8, 0.9")


def _the_first_time(candidate):
    _near(candidate([0.2, 0.6, 0.1, 0.9], 0.5), 1.75, "epochs to 0.5 in 0.2, 0.6, 0.1, 0.9")


def _never(candidate):
    for level in (0.5, 0.95):
        answer = candidate([0.0, 0.3, 0.4], level)
        expect(
            answer == math.inf, f"{answer} epochs to {level} in 0.0, 0.3, 0.4; it is never reached"
        )


epochs_needed = Check(
    "epochs needed",
    [
        Property(
            "a level that is reached exactly after epoch 3 takes 3",
            _reached_exactly,
            "the first entry of the list was measured after *one* epoch",
        ),
        Property(
            "in between, we go along a straight line",
            _between_epochs,
            "which share of the rise from one measurement to the next is needed?",
        ),
        Property(
            "before the first epoch BLEU is 0", _first_epoch, "the line begins at epoch 0, BLEU 0"
        ),
        Property(
            "the first time counts",
            _the_first_time,
            "a curve may fall again: where do you stop looking?",
        ),
        Property("a level that is never reached takes math.inf", _never, "what follows the loop?"),
    ],
)

# A loop whose rate follows the wrong clock ------------------------------------------------------

LR, WARMUP, EPOCHS = 0.1, 5, 4


def _schedule(step: int) -> float:
    return min(step / WARMUP, math.sqrt(WARMUP / step)) if step else 0.0


def _problem() -> tuple[nn.Linear, list[torch.Tensor]]:
    torch.manual_seed(3)
    return nn.Linear(4, 1), [torch.randn(6, 4) for _ in range(3)]


def _loss(model, batch):
    return (model(batch)[:, 0] - batch.sum(dim=1)).square().mean()


def _fitted(candidate) -> tuple[list[float], nn.Linear]:
    model, batches = _problem()
    rates = candidate(model, batches, _loss, epochs=EPOCHS, lr=LR, schedule=_schedule)
    expect(isinstance(rates, list), f"a list of rates is expected, got a {type(rates).__name__}")
    return [float(rate) for rate in rates], model


def _a_rate_for_each_step(candidate):
    rates, _ = _fitted(candidate)
    expect(len(rates) == 12, f"{len(rates)} rates for 4 epochs of 3 batches; 12 are expected")


def _first_rate(candidate):
    _near(_fitted(candidate)[0][0], LR / WARMUP, "the rate of the first step")


def _rates_follow_the_steps(candidate):
    rates, _ = _fitted(candidate)
    for step in (2, WARMUP, 7, 12):
        _near(rates[step - 1], LR * _schedule(step), f"the rate of step {step}")


def _weights_follow_the_rates(candidate):
    _, model = _fitted(candidate)
    right, batches = _problem()
    optimizer = torch.optim.Adam(right.parameters())
    for step in range(1, EPOCHS * len(batches) + 1):
        optimizer.param_groups[0]["lr"] = LR * _schedule(step)
        optimizer.zero_grad()
        _loss(right, batches[(step - 1) % len(batches)]).backward()
        optimizer.step()
    expect_close(model.weight, right.weight.detach(), "the weights after 12 steps")


fixed_fit = Check(
    "a rate that follows the steps",
    [
        Property(
            "there is one rate for each batch of each epoch",
            _a_rate_for_each_step,
            "note the rate once per step of the optimizer",
        ),
        Property(
            "the first step has rate lr · schedule(1)",
            _first_rate,
            "LambdaLR counts what is *done*: with which number does it call your schedule first?",
        ),
        Property(
            "step s has rate lr · schedule(s), whatever the epoch",
            _rates_follow_the_steps,
            "how often is `scheduler.step()` called, and how often should it be?",
        ),
        Property(
            "the weights have moved at these rates",
            _weights_follow_the_rates,
            "are the rates you return those that the optimizer used?",
        ),
    ],
)
