"""Checks of *From GPT to an assistant*: which tokens are targets, and the loss of DPO."""

import math

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.text import EOS, PAD
from course_utils.kit.check import Check
from course_utils.kit.expect import (
    Unmet,
    expect,
    expect_close,
    expect_same_gradients,
    expect_shape,
    expect_tensors,
)
from course_utils.lessons.from_gpt_to_assistant.world import IGNORED

# Which tokens are targets -------------------------------------------------------------------------

fixed_targets = Check()


def _texts() -> tuple[Tensor, Tensor]:
    """Two texts, <eos> question answer <eos>, the second one shorter; and the lengths of their questions."""
    first = [EOS, 11, 12, 13, 14, 21, 22, 23, EOS]
    second = [EOS, 11, 15, 24, 25, EOS, PAD, PAD, PAD]
    return torch.tensor([first, second]), torch.tensor([4, 2])


@fixed_targets.must("gives inputs and targets of one shape, one token shorter than the texts")
def gives_inputs_and_targets_of_one_shape(candidate):
    """Each input has the token after it as its target. How many tokens of a text have one after them?"""
    ids, asked = _texts()
    try:
        answer = candidate(ids.clone(), asked)
    except RuntimeError as error:
        broadcast = "must match the size" in str(error) or "not broadcastable" in str(error)
        hint = (
            "`position` has one number for each column, and `asked` has one for each text. To compare each text with "
            "each column, `asked` needs a second axis. How does `buggy_targets` give it one?"
        )
        raise Unmet(str(error), hint if broadcast else "") from error
    for tensor in expect_tensors(answer, "inputs", "targets"):
        expect_shape(tensor, (2, 8))


fixed_targets.must_keep_inputs(
    _texts,
    "A slice is a view: `ids[:, 1:]` has no numbers of its own, so whoever writes −100 into it writes it into `ids` "
    "and into the inputs. Where is a `.clone()` missing?",
    "leaves the texts as they are",
)


@fixed_targets.must("reads all tokens but the last, the question too")
def reads_all_tokens_but_last(candidate):
    """What does the model have to read to answer? Only *targets* are ignored, and the inputs stay as they are."""
    ids, asked = _texts()
    inputs, _ = candidate(ids.clone(), asked)
    expect_close(inputs, ids[:, :-1], "the inputs")


@fixed_targets.must("keeps the first word of the answer as a target")
def asks_for_first_word_of_answer(candidate):
    """Which input comes right before the first word of the answer, and at which position? `<eos>` is at position 0, so
    the last of 4 words of a question is at position 4.

    Write down the targets of one text below its inputs, and mark those that belong to the question. Which comparison
    keeps the next one, `<` or `<=`?
    """
    ids, asked = _texts()
    inputs, targets = candidate(ids.clone(), asked)
    kept = targets[targets != IGNORED]
    hint = ""
    if kept.equal(inputs[targets != IGNORED]):
        hint = "Each target is its own input. The target at a position is the token *after* it. Where do you shift?"
    elif (targets[0, :4] != IGNORED).all() and (targets[0, 4:] == IGNORED).all():
        hint = "You keep the question and ignore the answer. Which way round is the comparison?"
    elif targets[1, 2] == IGNORED and targets[0, 4] != IGNORED:
        hint = (
            "The longer question is right, and the shorter one loses too much. Each text has its own length in "
            "`asked`. Do you compare with it, or with one number for all?"
        )
    for row, place in enumerate(asked.tolist()):
        got = int(targets[row, place])
        expect(
            got == int(ids[row, place + 1]),
            f"text {row}: the target at position {place} is {got}, expected {int(ids[row, place + 1])}, "
            "the answer's first word",
            hint,
        )


@fixed_targets.must("ignores every word of the question")
def asks_for_no_word_of_question(candidate):
    """The target at position 0 is the first word of the question. So at which position is its last word, and which
    targets have to go?
    """
    ids, asked = _texts()
    _, targets = candidate(ids.clone(), asked)
    for row, length in enumerate(asked.tolist()):
        kept = (targets[row, :length] != IGNORED).nonzero().flatten().tolist()
        expect(
            not kept,
            f"text {row}: at position {kept[0] if kept else ''} a word of the question is a target",
        )


@fixed_targets.must("keeps the <eos> after the answer as a target")
def asks_for_end(candidate):
    """Who tells the model to stop? The `<eos>` after the answer is a target, too, and only padding is ignored."""
    ids, asked = _texts()
    _, targets = candidate(ids.clone(), asked)
    ends = [int(targets[0, 7]), int(targets[1, 4])]
    expect(ends == [EOS, EOS], f"the targets at the two ends are {ends}, expected {[EOS, EOS]}")


@fixed_targets.must("ignores the padding")
def asks_for_no_padding(candidate):
    """What comes after the `<eos>` of a short text is padding, `PAD`. Which line ignores it?"""
    ids, asked = _texts()
    _, targets = candidate(ids.clone(), asked)
    padded = targets[1, 5:].tolist()
    one_left = (
        "One padding is left as a target. Do you look for padding among the *inputs*? After the last `<eos>` the "
        "input is a word, and its target is padding already. Look among the targets."
    )
    expect(
        padded == [IGNORED] * 3,
        f"at the padding the targets are {padded}, expected {[IGNORED] * 3}",
        one_left if padded[1:] == [IGNORED] * 2 else "",
    )


# The loss of DPO ----------------------------------------------------------------------------------

my_dpo_loss = Check()


def _pairs(size: int = 5) -> list[Tensor]:
    """Log-probabilities of preferred and rejected answers, under the model and under the reference."""
    return [-20 * torch.rand(size) for _ in range(4)]


def dpo(
    preferred: Tensor, rejected: Tensor, ref_preferred: Tensor, ref_rejected: Tensor, beta: float
) -> Tensor:
    """The loss as binary cross-entropy: the preferred answer is the class that is there."""
    logits = beta * (preferred - rejected - ref_preferred + ref_rejected)
    return F.binary_cross_entropy_with_logits(logits, torch.ones_like(logits))


@my_dpo_loss.must("is one number, the mean over the losses of the pairs")
def is_mean_over_pairs(candidate):
    """A loss is one number. How do you make one out of the losses of the pairs: do you add them?

    With twice as many pairs a *sum* would be twice as large. Take the mean.
    """
    values = _pairs()
    got = candidate(*values, 0.1)
    expect_shape(got, ())
    twice = candidate(*[torch.cat([each, each]) for each in values], 0.1)
    expect_close(twice, got, "the loss of every pair taken twice")
    each = [candidate(*pair, 0.1) for pair in zip(*(v.split(1) for v in values), strict=True)]
    early = (
        "Do you take the mean of the margins? Each pair has a loss of its own. First compute −ln σ of each margin, "
        "and the mean at the very end."
    )
    expect_close(
        got, torch.stack(each).mean(), "the loss of five pairs, by their own losses", hint=early
    )


@my_dpo_loss.must("is ln 2 as long as the model is the reference")
def is_ln_2_at_start(candidate):
    """At the start the model is the reference. So both log-ratios are 0, and with them the margin, whatever the four
    numbers are. Does each answer's log-probability under the reference stand in your margin, with the other sign?

    A difference of the two answers under one model isn't zero here.
    """
    beta = 0.1
    preferred, rejected, *others = _pairs()
    got = candidate(preferred, rejected, preferred, rejected, beta)
    expected = torch.tensor(math.log(2))
    same = torch.isclose(candidate(*others, *others, beta), got).all()
    hints = {
        -1.0: "Your loss has the right size and the wrong sign. Look at the last of the four lines: the loss is "
        "*minus* ln σ of the margin.",
        beta: "β stands outside of the sigmoid, as a factor of the loss. It multiplies the log-ratios, before σ.",
    }
    after = (
        "The margin is 0 here, as it has to be. What does the last of the four lines make of it?"
    )
    hint = next(
        (text for factor, text in hints.items() if torch.isclose(got, factor * expected).all()),
        after if same else "",
    )
    expect_close(got, expected, "the loss at the start", hint=hint)


@my_dpo_loss.must("takes each log-ratio as a difference of log-probabilities")
def takes_differences(candidate):
    """The four inputs are logarithms already. What becomes of the ratio of two numbers if one has their logarithms?

    A ratio becomes a difference: there is nothing to divide, and no logarithm is taken before σ.
    """
    values = _pairs()
    got = candidate(*values, 0.1)
    shifted = [each - less for each, less in zip(values, (5, 1, 5, 1), strict=True)]
    expect_close(candidate(*shifted, 0.1), got, "the loss, where no log-ratio has changed")


@my_dpo_loss.must("falls when the preferred answer becomes more probable, or the rejected one less")
def falls_with_margin(candidate):
    """Are both log-ratios in your margin, and which one has a minus sign? Look at the third of the four lines.

    The loss is −ln σ of the margin, so it falls when the margin rises.
    """
    preferred, rejected, ref_preferred, ref_rejected = _pairs()
    preferred, rejected = preferred - 3, rejected - 3  # below zero, as any log-probability
    before = candidate(preferred, rejected, ref_preferred, ref_rejected, 0.1)
    after = {
        "the preferred answers are more probable": candidate(
            preferred + 2, rejected, ref_preferred, ref_rejected, 0.1
        ),
        "the rejected answers are less probable": candidate(
            preferred, rejected - 2, ref_preferred, ref_rejected, 0.1
        ),
    }
    both = all(loss > before for loss in after.values())
    hint = "Your two answers have changed places. Which of them does your margin reward?"
    for what, loss in after.items():
        reason = f"if {what}, the loss goes from {before:.3f} to {loss:.3f}"
        expect(bool(loss < before), reason, hint if both else "")


@my_dpo_loss.must("counts every log-ratio beta times")
def counts_ratio_beta_times(candidate):
    """Where does β stand: inside or outside of the sigmoid, or nowhere? It multiplies both log-ratios, before σ."""
    for beta in (0.1, 0.5, 2.0):
        values = _pairs()
        got, (preferred, rejected, ref_preferred, ref_rejected) = candidate(*values, beta), values
        ratios = (preferred - ref_preferred).exp() - (rejected - ref_rejected).exp()
        hint = (
            "Your margin subtracts the ratios themselves. The reward is β times the *logarithm* of a ratio, and that "
            "is a difference of two of the inputs, without any `exp`."
        )
        by_ratios = torch.isclose(got, -F.logsigmoid(beta * ratios).mean(), rtol=1e-4).all()
        expect_close(
            got, dpo(*values, beta), f"the loss with beta = {beta}", hint=hint if by_ratios else ""
        )


@my_dpo_loss.must("stays finite where the margin is very negative")
def stays_finite(candidate):
    """What is ln σ(−399) if σ is rounded to 0 first, or if e^399 is too large for a float? `F.logsigmoid` computes
    all in one step.
    """
    low, high = torch.tensor([-400.0]), torch.tensor([-1.0])
    got = candidate(low, high, high, high, 1.0)
    expect_close(got, torch.tensor(399.0), "the loss at a margin of −399")


@my_dpo_loss.must("gradients reach the log-probabilities under the model")
def gradients_reach_inputs(candidate):
    """Is a number taken out of a tensor on the way, by `.item()` or by `torch.tensor(…)`, or is the model's part
    computed under `torch.no_grad()`? Only the reference needs no gradients.
    """
    preferred, rejected, *reference = _pairs()
    expect_same_gradients(
        lambda first, second: candidate(first, second, *reference, 0.1),
        lambda first, second: dpo(first, second, *reference, 0.1),
        preferred=preferred,
        rejected=rejected,
    )
