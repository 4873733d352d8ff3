"""Checks: the warm-up formula, label smoothing, clipping, epochs needed, and a broken loop."""

import math

import torch
import torch.nn.functional as F
from torch import nn

from course_utils.lessons.check import Check, expect, expect_close, expect_shape

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


noam_rate = Check("the warm-up formula")


@noam_rate.must(
    "during the warm-up the rate at step s is s times the rate at step 1",
    hint=(
        "which of the two terms is the smaller one before step `warmup`, and which power of the "
        "step stands in it?"
    ),
)
def _(candidate):
    for step in (1, 2, 500, 3999):
        first = candidate(1, embed_dim=512, warmup=4000)
        _near(candidate(step, embed_dim=512, warmup=4000), step * float(first), f"step {step}")


@noam_rate.must(
    "at step `warmup` it is 1 / √(embed_dim · warmup)",
    hint="put step = warmup into both terms: they must agree. Is embed_dim under a root?",
)
def _(candidate):
    for embed_dim, warmup in ((512, 4000), (256, 4000), (64, 50)):
        peak = (embed_dim * warmup) ** -0.5
        rate = candidate(warmup, embed_dim=embed_dim, warmup=warmup)
        _near(rate, peak, f"the rate at step {warmup} for embed_dim={embed_dim}")


@noam_rate.must(
    "afterwards it falls as 1/√step: half at four times the warm-up",
    hint="after the warm-up the other term is the smaller one",
)
def _(candidate):
    peak = float(candidate(50, embed_dim=64, warmup=50))
    _near(candidate(200, embed_dim=64, warmup=50), peak / 2, "the rate at step 200")
    _near(candidate(5000, embed_dim=64, warmup=50), peak / 10, "the rate at step 5000")


# Label smoothing --------------------------------------------------------------------------------


def _logits() -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(6, 5) * 2, torch.tensor([0, 4, 2, 2, 1, 3])


smoothed_loss = Check("label smoothing")


@smoothed_loss.must("the loss of a batch is one number", hint="take the mean over the batch")
def _(candidate):
    expect_shape(candidate(*_logits(), 0.1), ())


@smoothed_loss.must(
    "with ε = 0 it is cross-entropy",
    hint="minus the log-probability of the right class, averaged over the rows",
)
def _(candidate):
    logits, targets = _logits()
    expect_close(candidate(logits, targets, 0.0), F.cross_entropy(logits, targets), "ε = 0")


@smoothed_loss.must(
    "three classes, ε = 0.3: targets 0.8, 0.1, 0.1",
    hint="ε is shared out among *all* classes, the right one included",
)
def _(candidate):
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    expected = -(1 - 0.3 + 0.1) * math.log(0.5) - 2 * 0.1 * math.log(0.25)
    loss = candidate(logits, torch.tensor([0]), 0.3)
    expect_close(loss, torch.tensor(expected), "probabilities ½, ¼, ¼, class 0, ε = 0.3")


@smoothed_loss.must(
    "it equals F.cross_entropy with label_smoothing, gradient included",
    hint="is the number of classes taken from the logits? Is every step differentiable?",
)
def _(candidate):
    logits, targets = _logits()
    logits.requires_grad_()
    for epsilon in (0.1, 0.5):
        expected = F.cross_entropy(logits, targets, label_smoothing=epsilon)
        actual = candidate(logits, targets, epsilon)
        expect_close(actual, expected, f"ε = {epsilon}")
        gradient = torch.autograd.grad(actual, logits)[0]
        expect_close(gradient, torch.autograd.grad(expected, logits)[0], "the gradient")


@smoothed_loss.must(
    "it is finite for a model that is very sure",
    hint=(
        "the logarithm of a probability that was rounded to 0 is −∞: which function gives "
        "log-probabilities at once?"
    ),
)
def _(candidate):
    logits = torch.tensor([[1000.0, 0.0, -1000.0]])
    loss = candidate(logits, torch.tensor([0]), 0.3)
    expect_close(loss, torch.tensor(300.0), "logits 1000, 0, −1000, class 0, ε = 0.3")


# Clipping ---------------------------------------------------------------------------------------


def _length(gradients) -> torch.Tensor:
    return torch.cat([gradient.flatten() for gradient in gradients]).norm()


def _given() -> list[torch.Tensor]:
    return [torch.tensor([3.0, 0.0]), torch.tensor([[4.0], [12.0]])]  # 3, 5, 13


clip_together = Check("gradient clipping")


@clip_together.must(
    "a gradient that is short enough stays as it is", hint="the factor is never above 1"
)
def _(candidate):
    for limit in (13.0, 20.0):
        clipped = candidate(_given(), limit)
        for one, other in zip(clipped, _given(), strict=True):
            expect_close(one, other, f"length 13, limit {limit:g}")


@clip_together.must(
    "a longer one gets the length `limit`, over all tensors together",
    hint="one length for the whole list: the root of the sum of all squares",
)
def _(candidate):
    for limit in (1.0, 6.5):
        clipped = candidate(_given(), limit)
        expect_close(_length(clipped), torch.tensor(limit), f"the length with limit {limit:g}")


@clip_together.must(
    "its direction stays: one factor for all entries",
    hint="is every tensor, and every entry, multiplied by the same number?",
)
def _(candidate):
    clipped = candidate(_given(), 6.5)
    for one, other in zip(clipped, _given(), strict=True):
        expect_close(one, other / 2, "limit 6.5 halves a gradient of length 13")


@clip_together.must("the arguments are not changed", hint="does an operation end in `_` or `*=`?")
def _(candidate):
    gradients = _given()
    candidate(gradients, 1.0)
    same = all(torch.equal(one, other) for one, other in zip(gradients, _given(), strict=True))
    expect(same, "the gradients that were handed in have changed")


@clip_together.must("zero gradients give zeros", hint="what is 0 / 0, and when does it occur?")
def _(candidate):
    clipped = candidate([torch.zeros(3), torch.zeros(2, 2)], 1.0)
    expect_close(torch.cat([g.flatten() for g in clipped]), torch.zeros(7), "all gradients zero")


# Epochs needed ----------------------------------------------------------------------------------


epochs_needed = Check("epochs needed")


@epochs_needed.must(
    "a level that is reached exactly after epoch 3 takes 3",
    hint="the first entry of the list was measured after *one* epoch",
)
def _(candidate):
    _near(candidate([0.1, 0.3, 0.8, 0.9], 0.8), 3, "epochs to 0.8 in 0.1, 0.3, 0.8, 0.9")


@epochs_needed.must(
    "in between, we go along a straight line",
    hint="which share of the rise from one measurement to the next is needed?",
)
def _(candidate):
    _near(candidate([0.1, 0.3, 0.7, 0.9], 0.4), 2.25, "epochs to 0.4 in 0.1, 0.3, 0.7, 0.9")


@epochs_needed.must("before the first epoch BLEU is 0", hint="the line begins at epoch 0, BLEU 0")
def _(candidate):
    _near(candidate([0.8, 0.9], 0.4), 0.5, "epochs to 0.4 in 0.8, 0.9")


@epochs_needed.must(
    "the first time counts", hint="a curve may fall again: where do you stop looking?"
)
def _(candidate):
    _near(candidate([0.2, 0.6, 0.1, 0.9], 0.5), 1.75, "epochs to 0.5 in 0.2, 0.6, 0.1, 0.9")


@epochs_needed.must("a level that is never reached takes math.inf", hint="what follows the loop?")
def _(candidate):
    for level in (0.5, 0.95):
        answer = candidate([0.0, 0.3, 0.4], level)
        expect(
            answer == math.inf, f"{answer} epochs to {level} in 0.0, 0.3, 0.4; it is never reached"
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


fixed_fit = Check("a rate that follows the steps")


@fixed_fit.must(
    "there is one rate for each batch of each epoch",
    hint="note the rate once per step of the optimizer",
)
def _(candidate):
    rates, _ = _fitted(candidate)
    expect(len(rates) == 12, f"{len(rates)} rates for 4 epochs of 3 batches; 12 are expected")


@fixed_fit.must(
    "the first step has rate lr · schedule(1)",
    hint="LambdaLR counts what is *done*: with which number does it call your schedule first?",
)
def _(candidate):
    _near(_fitted(candidate)[0][0], LR / WARMUP, "the rate of the first step")


@fixed_fit.must(
    "step s has rate lr · schedule(s), whatever the epoch",
    hint="how often is `scheduler.step()` called, and how often should it be?",
)
def _(candidate):
    rates, _ = _fitted(candidate)
    for step in (2, WARMUP, 7, 12):
        _near(rates[step - 1], LR * _schedule(step), f"the rate of step {step}")


@fixed_fit.must(
    "the weights have moved at these rates",
    hint="are the rates you return those that the optimizer used?",
)
def _(candidate):
    _, model = _fitted(candidate)
    right, batches = _problem()
    optimizer = torch.optim.Adam(right.parameters())
    for step in range(1, EPOCHS * len(batches) + 1):
        optimizer.param_groups[0]["lr"] = LR * _schedule(step)
        optimizer.zero_grad()
        _loss(right, batches[(step - 1) % len(batches)]).backward()
        optimizer.step()
    expect_close(model.weight, right.weight.detach(), "the weights after 12 steps")
