"""Checks of *Training transformers*: the warm-up formula, label smoothing, clipping, epochs needed, a broken loop."""

import copy
import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.lessons.check import (
    Check,
    expect,
    expect_close,
    expect_equal,
    expect_number,
    expect_shape,
    unchanged,
)

# The warm-up formula ----------------------------------------------------------------------------

noam_rate = Check("the warm-up formula")


@noam_rate.must(
    "during the warm-up the rate at step s is s times the rate at step 1",
    hint="Which of the two terms is smaller before step `warmup`? Which power of the step stands in it?",
)
def _(candidate):
    first = candidate(1, embed_dim=512, warmup=4000)
    for step in (1, 2, 500, 3999):
        rate = candidate(step, embed_dim=512, warmup=4000)
        expect_number(rate, step * float(first), f"the rate at step {step}")


@noam_rate.must(
    "at step `warmup` it is 1 / √(embed_dim · warmup)",
    hint="Put step = warmup into both terms. Do they agree? Is embed_dim under a root?",
)
def _(candidate):
    for embed_dim, warmup in ((512, 4000), (256, 4000), (64, 50)):
        rate = candidate(warmup, embed_dim=embed_dim, warmup=warmup)
        what = f"the rate at step {warmup} for embed_dim={embed_dim}"
        expect_number(rate, (embed_dim * warmup) ** -0.5, what)


@noam_rate.must(
    "afterwards it falls as 1/√step: half at four times the warm-up",
    hint="Which of the two terms is smaller after the warm-up?",
)
def _(candidate):
    peak = float(candidate(50, embed_dim=64, warmup=50))
    for step, expected in ((200, peak / 2), (5000, peak / 10)):
        rate = candidate(step, embed_dim=64, warmup=50)
        expect_number(rate, expected, f"the rate at step {step}")


# Label smoothing --------------------------------------------------------------------------------

smoothed_loss = Check("label smoothing")


def _logits() -> tuple[Tensor, Tensor]:
    return torch.randn(6, 5) * 2, torch.tensor([0, 4, 2, 2, 1, 3])


@smoothed_loss.must(
    "the loss of a batch is one number", hint="What is done with the losses of the rows?"
)
def _(candidate):
    expect_shape(candidate(*_logits(), 0.1), ())


@smoothed_loss.must(
    "with ε = 0 it is cross-entropy",
    hint="Which log-probability counts when only one class has a target above 0?",
)
def _(candidate):
    logits, targets = _logits()
    expect_close(candidate(logits, targets, 0.0), F.cross_entropy(logits, targets), "ε = 0")


@smoothed_loss.must(
    "three classes, ε = 0.3: targets 0.8, 0.1, 0.1",
    hint="Among how many classes is ε shared? Does the right class get a share?",
)
def _(candidate):
    logits = torch.tensor([[0.5, 0.25, 0.25]]).log()
    expected = -(1 - 0.3 + 0.1) * math.log(0.5) - 2 * 0.1 * math.log(0.25)
    loss = candidate(logits, torch.tensor([0]), 0.3)
    expect_close(loss, torch.tensor(expected), "probabilities ½, ¼, ¼, class 0, ε = 0.3")


@smoothed_loss.must(
    "it equals F.cross_entropy with label_smoothing, gradient included",
    hint="Is the number of classes taken from the logits? Is every step differentiable?",
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
    hint="A probability can be rounded to 0. Which function gives log-probabilities without that step?",
)
def _(candidate):
    logits = torch.tensor([[1000.0, 0.0, -1000.0]])
    loss = candidate(logits, torch.tensor([0]), 0.3)
    expect_close(loss, torch.tensor(300.0), "logits 1000, 0, −1000, class 0, ε = 0.3")


# Clipping ---------------------------------------------------------------------------------------

clip_together = Check("gradient clipping")


def _given() -> list[Tensor]:
    return [torch.tensor([3.0, 0.0]), torch.tensor([[4.0], [12.0]])]  # 3, 5, together 13


@clip_together.must(
    "a gradient that is short enough stays as it is",
    hint="How large may the factor become at most?",
)
def _(candidate):
    for limit in (13.0, 20.0):
        for one, other in zip(candidate(_given(), limit), _given(), strict=True):
            expect_close(one, other, f"length 13, limit {limit:g}")


@clip_together.must(
    "a longer one gets the length `limit`, over all tensors together",
    hint="Do you compute one length for the whole list? How do the lengths of the tensors add up to it?",
)
def _(candidate):
    for limit in (1.0, 6.5):
        clipped = torch.cat([gradient.flatten() for gradient in candidate(_given(), limit)])
        expect_close(clipped.norm(), torch.tensor(limit), f"the length with limit {limit:g}")


@clip_together.must(
    "its direction stays: one factor for all entries",
    hint="Is every tensor, and every entry, multiplied by the same number?",
)
def _(candidate):
    for one, other in zip(candidate(_given(), 6.5), _given(), strict=True):
        expect_close(one, other / 2, "limit 6.5 halves a gradient of length 13")


@clip_together.must("the arguments are not changed", hint="Does an operation end in `_` or `*=`?")
def _(candidate):
    gradients = _given()
    with unchanged(gradients):
        candidate(gradients, 1.0)


@clip_together.must("zero gradients give zeros", hint="What is 0 / 0, and when does it occur?")
def _(candidate):
    clipped = candidate([torch.zeros(3), torch.zeros(2, 2)], 1.0)
    expect_close(torch.cat([g.flatten() for g in clipped]), torch.zeros(7), "all gradients zero")


# Epochs needed ----------------------------------------------------------------------------------

epochs_needed = Check("epochs needed")


def _epochs(candidate, curve, level, expected):
    expect_number(candidate(curve, level), expected, f"the number of epochs to {level} in {curve}")


@epochs_needed.must(
    "a level that is reached exactly after epoch 3 takes 3",
    hint="After which epoch was the first entry of the list measured?",
)
def _(candidate):
    _epochs(candidate, [0.1, 0.3, 0.8, 0.9], 0.8, 3)


@epochs_needed.must(
    "between two measurements the curve is a straight line",
    hint="Which share of the rise from one measurement to the next is needed?",
)
def _(candidate):
    _epochs(candidate, [0.1, 0.3, 0.7, 0.9], 0.4, 2.25)


@epochs_needed.must("before the first epoch BLEU is 0", hint="Where does the first line begin?")
def _(candidate):
    _epochs(candidate, [0.8, 0.9], 0.4, 0.5)


@epochs_needed.must(
    "the first time counts", hint="A curve may fall again. Where do you stop looking?"
)
def _(candidate):
    _epochs(candidate, [0.2, 0.6, 0.1, 0.9], 0.5, 1.75)


@epochs_needed.must(
    "a level that is never reached takes math.inf", hint="What comes after the loop?"
)
def _(candidate):
    for level in (0.5, 0.95):
        _epochs(candidate, [0.0, 0.3, 0.4], level, math.inf)


# A rate that follows the wrong clock: find the bug ----------------------------------------------

fixed_fit = Check("a rate that follows the steps")

LR, WARMUP, EPOCHS = 0.1, 5, 4


def _schedule(step: int) -> float:
    return min(step / WARMUP, math.sqrt(WARMUP / step)) if step else 0.0


def _problem() -> tuple[nn.Linear, list[Tensor]]:
    return nn.Linear(4, 1), [torch.randn(6, 4) for _ in range(3)]


def _loss(model, batch):
    return (model(batch)[:, 0] - batch.sum(dim=1)).square().mean()


def _fitted(candidate, model, batches) -> list[float]:
    rates = candidate(model, batches, _loss, epochs=EPOCHS, lr=LR, schedule=_schedule)
    expect(isinstance(rates, list), f"a list of rates is expected, got a {type(rates).__name__}")
    return [float(rate) for rate in rates]


@fixed_fit.must(
    "there is one rate for each batch of each epoch",
    hint="How often does the optimizer step, and how often do you record the rate?",
)
def _(candidate):
    expect_equal(len(_fitted(candidate, *_problem())), 12, "rates for 4 epochs of 3 batches")


@fixed_fit.must(
    "the first step has rate lr · schedule(1)",
    hint="LambdaLR counts the steps that are *done*. With which number does it call your schedule first?",
)
def _(candidate):
    expect_number(_fitted(candidate, *_problem())[0], LR / WARMUP, "the rate of the first step")


@fixed_fit.must(
    "step s has rate lr · schedule(s), whatever the epoch",
    hint="How often is `scheduler.step()` called, and how often should it be?",
)
def _(candidate):
    rates = _fitted(candidate, *_problem())
    for step in (2, WARMUP, 7, 12):
        expect_number(rates[step - 1], LR * _schedule(step), f"the rate of step {step}")


@fixed_fit.must(
    "the weights have moved at these rates",
    hint="Are the rates that you return those that the optimizer used?",
)
def _(candidate):
    model, batches = _problem()
    right = copy.deepcopy(model)
    _fitted(candidate, model, batches)
    optimizer = torch.optim.Adam(right.parameters())
    for step in range(1, EPOCHS * len(batches) + 1):
        optimizer.param_groups[0]["lr"] = LR * _schedule(step)
        optimizer.zero_grad()
        _loss(right, batches[(step - 1) % len(batches)]).backward()
        optimizer.step()
    expect_close(model.weight, right.weight.detach(), "the weights after 12 steps")
