"""Checks of *Training transformers*: what a context tells, rates on paper, a broken loop."""

import copy
import math
import warnings

import torch
from torch import Tensor, nn

from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_close, expect_equal, expect_number
from course_utils.kit.on_paper import on_paper

# The loss of a model that sees only a context ---------------------------------------------------

loss_given = Check()


def _expect_loss(actual, expected: float, what: str, slips: dict[str, float]) -> None:
    """Fail as `expect_number` does, with a hint for a likely mistake."""
    scalar = torch.is_tensor(actual) and actual.ndim == 0
    if scalar or isinstance(actual, int | float):
        for hint, value in slips.items():
            reason = f"{what} is {float(actual):.4g}, expected {expected:.4g}"
            expect(not math.isclose(float(actual), value, rel_tol=1e-4), reason, hint)
    expect_number(actual, expected, what)


@loss_given.must("gives ln 2 = 0.693 for one context and the tokens a b")
def gives_ln_2_for_two_equally_likely_tokens(candidate):
    """Which probability does the best model give a token that is one of two? Its share, so begin by counting.

    Is your logarithm the natural one, and do you divide the sum by the number of tokens?
    """
    bits = "Which logarithm do you take? The loss is in nats, so it has to be the natural one, `math.log`."
    summed = "What is the mean of the two losses? You return their sum, so divide by the number of tokens."
    sign = "Which sign has the logarithm of a probability? It is negative, and a loss is −ln p."
    right = math.log(2)
    slips = {bits: 1.0, summed: 2 * right, sign: -right}
    _expect_loss(candidate([0, 0], ["a", "b"]), right, "the loss of a b", slips)


@loss_given.must("gives 0.562 for one context and the tokens a a b a")
def gives_entropy_of_unequal_tokens(candidate):
    """Does a count three times in your mean, and b once? The mean goes over the tokens, not over the kinds of token."""
    smooth = (
        "Do you add something to the counts? Nothing is unseen here, so each probability is a plain share, "
        "with no smoothing."
    )
    slips = {smooth: -(3 * math.log(4 / 6) + math.log(2 / 6)) / 4}
    expected = -(3 * math.log(0.75) + math.log(0.25)) / 4
    _expect_loss(candidate([0] * 4, list("aaba")), expected, "the loss of a a b a", slips)


@loss_given.must("gives 0 if the context determines the token")
def gives_0_if_context_determines_token(candidate):
    """Do you count the tokens of each context separately? Each context needs a count of its own."""
    answer = candidate(["x", "y", "x", "y"], ["a", "b", "a", "b"])
    expect_number(answer, 0.0, "the loss of tokens that follow from their contexts")


@loss_given.must("gives 0.477 for contexts x x x y and tokens a a b b")
def averages_over_two_contexts(candidate):
    """In context x, what are the probabilities of a and of b? Do the same for context y, then average over the four
    tokens.

    It is −ln ⅔ twice, −ln ⅓ once, −ln 1 once, and then the mean of the four.
    """
    expected = -(2 * math.log(2 / 3) + math.log(1 / 3)) / 4
    expect_number(candidate(list("xxxy"), list("aabb")), expected, "the loss")


@loss_given.must("counts each token once, not each context once")
def counts_each_token_once_not_each_context_once(candidate):
    """Is your result a mean over all tokens? A mean of the contexts' means counts a rare context too much."""
    contexts, tokens = list("xxxxxxyy"), list("aaaaaabc")
    expect_number(candidate(contexts, tokens), math.log(2) / 4, "the loss of x six times, y twice")


@loss_given.must("takes contexts that are numbers, words, or tuples of words")
def takes_contexts_that_are_numbers_words_or_tuples_of_words(candidate):
    """Do you use the contexts as indices? A dictionary or a Counter takes any of them as a key."""
    contexts = [("the", "old"), ("the", "old"), (), ()]
    expect_number(candidate(contexts, list("abab")), math.log(2), "the loss with tuples")


# Rates on paper ---------------------------------------------------------------------------------

predicted_steps = on_paper({
    "a": (2, "the learning rate of step 450",
         "In thousandths the rate is 6 at step 50. How much smaller is 1/√step at nine times the step?"),
    "b": (5, "how far the first step moves the weight",
         "What are Adam's two averages after one gradient, corrected? Write them with g, then divide.",
         "They are g and g², and g / √g² is ±1, for the clipped g as well."),
    "c": (0.99, "the paper's peak learning rate",
         "At which step are both terms of the minimum equal? The peak is there.",
         "At t = W it is 1/√(d · W)."),
})  # fmt: skip


# A rate that follows the wrong clock: find the bug ----------------------------------------------

fixed_fit = Check()

LR, WARMUP, EPOCHS = 0.1, 5, 4


def _schedule(step: int) -> float:
    return min(step / WARMUP, math.sqrt(WARMUP / step)) if step else 0.0


def _problem() -> tuple[nn.Linear, list[Tensor]]:
    return nn.Linear(4, 1), [torch.randn(6, 4) for _ in range(3)]


def _loss(model, batch):
    return (model(batch)[:, 0] - batch.sum(dim=1)).square().mean()


def _rates_of_fit(candidate, model, batches) -> list[float]:
    rates = candidate(model, batches, _loss, epochs=EPOCHS, lr=LR, schedule=_schedule)
    expect(isinstance(rates, list), f"got a {type(rates).__name__}, expected a list of rates")
    return [float(rate) for rate in rates]


@fixed_fit.must("returns one rate for each batch of each epoch")
def returns_one_rate_for_each_batch_of_each_epoch(candidate):
    """How often does the optimizer step? Record the rate once for each of these steps."""
    expect_equal(len(_rates_of_fit(candidate, *_problem())), 12, "rates for 4 epochs of 3 batches")


@fixed_fit.must("takes the first step at the rate lr · schedule(1)")
def takes_first_step_at_rate_lr_schedule(candidate):
    """With which number does LambdaLR call your schedule first? It counts the steps that are *done*, so it begins at
    0.
    """
    expect_number(
        _rates_of_fit(candidate, *_problem())[0], LR / WARMUP, "the rate of the first step"
    )


@fixed_fit.must("takes step t at the rate lr · schedule(t), whatever the epoch")
def takes_step_t_at_rate_lr_schedule_whatever_epoch(candidate):
    """How often do you call `scheduler.step()`? It should be once for each step of the optimizer."""
    rates = _rates_of_fit(candidate, *_problem())
    for step in (2, WARMUP, 7, 12):
        expect_number(rates[step - 1], LR * _schedule(step), f"the rate of step {step}")


@fixed_fit.must("moves the weights at these rates")
def moves_weights_at_these_rates(candidate):
    """Are the rates that you return those that the optimizer used? Read the rate right before `optimizer.step()`.

    Is everything else as in `buggy_fit`? It has Adam as PyTorch makes it, new gradients for each batch, and no
    clipping.
    """
    model, batches = _problem()
    right, other = copy.deepcopy(model), copy.deepcopy(model)
    with warnings.catch_warnings():  # of a scheduler that steps first, whose rates can be right
        warnings.simplefilter("ignore")
        rates = _rates_of_fit(candidate, model, batches)
    for follower, planned in ((right, rates), (other, [LR] * len(rates))):
        optimizer = torch.optim.Adam(follower.parameters())
        for step, rate in enumerate(planned):
            optimizer.param_groups[0]["lr"] = rate
            optimizer.zero_grad()
            _loss(follower, batches[step % len(batches)]).backward()
            optimizer.step()
    constant = torch.allclose(model.weight, other.weight, atol=1e-5)
    reason = f"the weights moved as at the constant rate {LR:g}"
    expect(not constant, reason)
    hint = (
        "What else did you change in `buggy_fit`? It has Adam as PyTorch makes it, new gradients for each batch, and "
        "no clipping. If that is as it was, the optimizer did not use the rates that you return."
    )
    expect_close(model.weight, right.weight.detach(), "the weights after 12 steps", hint=hint)
