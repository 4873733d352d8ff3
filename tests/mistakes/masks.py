"""Mistakes in the exercises of *Masks*, each with the property that catches it and its hint."""

import math

import torch
from mistakes.table import mistake

from course_utils import masks


@mistake(
    "my_mask", caught_by="returns a boolean mask of shape", hint="Which axis does each of them"
)
def aligned_from_the_right(numbers):
    """(batch, keys) meets (queries, keys)."""
    return (numbers > 0) & _triangle(numbers)


@mistake("my_mask", caught_by="lets no query attend to padding", hint="Is it a sentence")
def padding_is_a_sentence(numbers):
    """Padding has one number, too."""
    return _same(numbers) & _triangle(numbers)


@mistake("my_mask", caught_by="lets no query attend to another", hint="Compare their numbers")
def all_sentences(numbers):
    """The mask of the text above: padding and the future."""
    return (numbers > 0)[:, None, :] & _triangle(numbers)


@mistake(
    "my_mask", caught_by="lets no query attend to padding", hint="Whose row of `numbers` do you"
)
def of_the_query(numbers):
    """Permits a padded query nothing, and every key."""
    return (numbers > 0)[:, :, None] & _triangle(numbers)


@mistake(
    "my_mask", caught_by="lets no query attend to a later key", hint="Which half of the square lies"
)
def upper_triangle(numbers):
    """Rows and columns exchanged: the future is permitted."""
    return _right(numbers).mT


@mistake("my_mask", caught_by="permits every other pair of words", hint="Which pair do you forbid")
def not_itself(numbers):
    """One off to the other side."""
    return _right(numbers).tril(-1)


@mistake("my_mask", caught_by="says True where a query may attend", hint="True means")
def true_forbids(numbers):
    """The habit of nn.MultiheadAttention: True for what is forbidden."""
    return ~_right(numbers)


@mistake("my_mask", caught_by="returns a boolean mask of shape", hint="Which `dtype`")
def counts(numbers):
    """Ones and zeros."""
    return _right(numbers).int()


@mistake(
    "my_mask",
    caught_by="returns a boolean mask of shape",
    reason="truth values and numbers",
    hint="Which `dtype`",
)
def numbers_for_truth_values(numbers):
    """torch.ones without a dtype."""
    return _right(numbers) & torch.ones(numbers.shape[-1], numbers.shape[-1]).tril()


@mistake(
    "my_mask",
    caught_by="returns a boolean mask of shape",
    reason="ambiguous",
    hint="joins two tensors entry by entry",
)
def joined_by_and(numbers):
    """`and` asks a tensor for one truth value."""
    return _same(numbers) and (numbers > 0)[:, None, :] and _triangle(numbers)


@mistake("my_mask", caught_by="works for a row of any length", hint="four words of the example")
def four_words(numbers):
    """The size of the example, written as a number."""
    return _right(numbers) & torch.ones(4, 4, dtype=torch.bool).tril()


@mistake("my_mask", caught_by="permits every other pair of words", hint="Which pair do you forbid")
def first_sentence(numbers):
    """Only the words with the number 1."""
    return _right(numbers) & (numbers == 1)[:, None, :]


@mistake(
    "my_mask", caught_by="returns a boolean mask of shape", hint="What does `causal_mask` do, step"
)
def by_the_package(numbers):
    """The course's function."""
    return _same(numbers) & (numbers > 0)[:, None, :] & masks.causal_mask(numbers.shape[-1])


@mistake("my_mask", caught_by="lets no query attend to padding", hint="Does each comparison have")
def without_brackets(numbers):
    """`&` binds more tightly than `==`."""
    return numbers[:, :, None] == numbers[:, None, :] & _triangle(numbers)


@mistake("my_mask", caught_by="leaves the caller's numbers", hint="Does a line write into")
def in_place(numbers):
    """Changes what was handed in."""
    mask = _right(numbers)
    numbers *= 0
    return mask


def _triangle(numbers):
    return torch.ones(numbers.shape[-1], numbers.shape[-1], dtype=torch.bool).tril()


def _same(numbers):
    return numbers[:, :, None] == numbers[:, None, :]


def _right(numbers):
    return _same(numbers) & (numbers > 0)[:, None, :] & _triangle(numbers)


@mistake("diagnosis", caught_by="names a patient's number", hint="What should the function return?")
def no_number():
    """Only the name."""
    return "polarity"


@mistake("diagnosis", caught_by="names a patient's number", hint="What do you return?")
def unknown_name():
    """None of the seven."""
    return (9, "padding")


@mistake("diagnosis", caught_by="names what the patient has", hint="Polarity puts all weight")
def polarity_for_no_axis():
    """Both give padding weight."""
    return (9, "polarity")


@mistake("diagnosis", caught_by="names what the patient has", hint="Does a row of")
def zeroed_for_ones():
    """Both have the same pattern of zeros."""
    return (1, "zero the scores")


@mistake("diagnosis", caught_by="names what the patient has", hint="Does a row of")
def ones_for_zeroed():
    """The same the other way round."""
    return (7, "zeros and ones")


def _filled(scores, attn_mask, number=-math.inf):
    return scores.masked_fill(~attn_mask, number).softmax(dim=-1)


def _afterwards(scores, attn_mask):
    return scores.softmax(dim=-1) * attn_mask


@mistake("fixed_masked_softmax", caught_by="shares the weight", hint="Do you mask before")
@mistake("my_masked_softmax", caught_by="shares the weight", hint="Do you mask before")
def multiplies_afterwards(*given):
    """Rows no longer sum to 1."""
    return _afterwards(*given)


@mistake(
    "fixed_masked_softmax", caught_by="leaves the caller's scores", hint="Does a line write into"
)
def writes_into_the_scores(scores, attn_mask):
    """masked_fill_ with an underscore changes the caller's tensor."""
    return scores.masked_fill_(~attn_mask, -math.inf).softmax(dim=-1)


@mistake(
    "fixed_masked_softmax",
    caught_by="runs, and gives one weight",
    hint="In which line do the shapes",
)
def minus_the_mask(scores, attn_mask):
    """A minus is no "not" for truth values."""
    return scores.masked_fill(-attn_mask, -math.inf).softmax(dim=-1)


@mistake(
    "fixed_masked_softmax",
    caught_by="keeps no trace of a forbidden score",
    hint="Which operation replaces",
)
def computes_with_forbidden_scores(scores, attn_mask):
    """Multiplies what it should replace: 0 · ∞ is NaN."""
    return (scores * attn_mask - 1e9 * ~attn_mask).softmax(dim=-1)


@mistake("fixed_masked_softmax", caught_by="copes with a forbidden key", hint="below every other")
def minus_a_hundred(*given):
    """Lower than most scores, not than all."""
    return _filled(*given, -100.0)


@mistake("fixed_masked_softmax", caught_by="copes with a forbidden key", hint="below every other")
def minus_twenty(*given):
    """-20 is lower than these scores, not than all."""
    return _filled(*given, -20.0)


@mistake("fixed_masked_softmax", caught_by="copes with a forbidden key", hint="below every other")
def minus_twelve(*given):
    """Low enough for the example, and for nothing else."""
    return _filled(*given, -12.0)


@mistake("fixed_masked_softmax", caught_by="shares the weight", hint="has the exponential 0")
def minus_five(*given):
    """Not even low enough for the example."""
    return _filled(*given, -5.0)


@mistake(
    "fixed_masked_softmax",
    caught_by="runs, and gives one weight",
    reason="it calls masked_softmax",
    hint="step by step",
)
def borrowed(scores, attn_mask):
    """Wraps the package's own."""
    return masks.masked_softmax(scores, attn_mask)


@mistake(
    "fixed_masked_softmax", caught_by="copes with a forbidden key", hint="Whose score is that here?"
)
@mistake(
    "my_masked_softmax",
    caught_by="works for scores of any size",
    hint="Which step can't handle a huge",
)
def renormalizes_with_epsilon(*given):
    """1e-9 in the denominator: zeros where there should be weights."""
    return (w := _afterwards(*given)) / (w.sum(dim=-1, keepdim=True) + 1e-9)


@mistake(
    "fixed_masked_softmax", caught_by="copes with a forbidden key", hint="Whose score is that here?"
)
def clamps_the_sum(*given):
    """No 0/0, and no weights either, where the forbidden score is far above."""
    return (w := _afterwards(*given)) / w.sum(dim=-1, keepdim=True).clamp(min=1e-30)


@mistake(
    "fixed_masked_softmax",
    caught_by="lets the mask broadcast",
    hint="Which line needs a mask of full",
)
@mistake(
    "my_masked_softmax", caught_by="lets the mask broadcast", hint="Which line needs a mask of full"
)
def needs_a_mask_of_full_size(scores, attn_mask):
    """Indexes with the mask, which then has to have the scores' own shape."""
    filled = scores.clone()
    filled[~attn_mask] = -math.inf
    return filled.softmax(dim=-1)


@mistake(
    "fixed_masked_softmax",
    caught_by="passes on the gradients",
    hint="Does a step cut off the way back",
)
@mistake(
    "my_masked_softmax",
    caught_by="passes on the right gradients",
    hint="adding −∞ to it, or replacing",
)
def detached_denominator(scores, attn_mask):
    """Right weights, and the gradient of the numerator alone."""
    nowhere = ~attn_mask.any(dim=-1, keepdim=True)
    filled = scores.masked_fill(~attn_mask, -math.inf).masked_fill(nowhere, 0.0)
    parts = (filled - filled.amax(dim=-1, keepdim=True)).exp()
    weights = parts / parts.sum(dim=-1, keepdim=True).detach()
    return weights.masked_fill(~attn_mask, 0.0)


@mistake(
    "fixed_masked_softmax",
    caught_by="passes on the gradients",
    hint="Does a step cut off the way back",
)
@mistake(
    "my_masked_softmax",
    caught_by="passes on the right gradients",
    hint="adding −∞ to it, or replacing",
)
def zero_gradient(scores, attn_mask):
    """Right weights, and a gradient of zeros."""
    right = detached_denominator(scores.detach(), attn_mask)
    return right + 0 * scores.nan_to_num(0.0, 0.0, 0.0)


@mistake(
    "my_masked_softmax",
    caught_by="works for scores of any size",
    hint="Which step can't handle a huge",
)
def minus_a_billion_billion(*given):
    """-1e18 survives any score of float32, but float16 has no such number."""
    return _filled(*given, -1e18)


@mistake(
    "my_masked_softmax",
    caught_by="works in half precision",
    hint="Which number is below all others",
)
def answers_in_float32(scores, attn_mask):
    """Computes in float32 and forgets to go back."""
    return _filled(scores.float(), attn_mask).nan_to_num()


@mistake("my_masked_softmax", caught_by="gives zeros for a row", hint="How can you find such rows")
def minus_infinity(*given):
    """An empty row is NaN."""
    return _filled(*given)


@mistake(
    "my_masked_softmax", caught_by="keeps a NaN score visible", hint="Which rows may you replace?"
)
def hides_nan(*given):
    """Replaces each NaN after the softmax, also those that a broken model made."""
    return _filled(*given).nan_to_num()


@mistake(
    "my_masked_softmax",
    caught_by="runs, and gives one weight",
    reason="it calls masked_softmax",
    hint="step by step",
)
def from_its_own_module(scores, attn_mask):
    """The course's function by another name."""
    return masks.masked_softmax(scores, attn_mask)


@mistake(
    "my_masked_softmax", caught_by="works for scores of any size", hint="a score may be below it"
)
def a_billion(scores, attn_mask):
    """-1e9 is lower than most scores, not than all."""
    return _filled(scores, attn_mask, -1e9).nan_to_num() * attn_mask


@mistake(
    "my_masked_softmax",
    caught_by="keeps no trace of a forbidden score",
    hint="Which operation replaces",
)
def adds_and_multiplies(scores, attn_mask):
    """Empty rows are treated before the softmax, but a forbidden NaN is added to, not replaced."""
    nowhere = ~attn_mask.any(dim=-1, keepdim=True)
    bias = torch.zeros(attn_mask.shape, dtype=scores.dtype)
    bias = bias.masked_fill(~attn_mask & ~nowhere, -math.inf)
    return (scores + bias).softmax(dim=-1) * attn_mask


@mistake("my_masked_softmax", caught_by="leaves the caller's scores", hint="Does a line write into")
def writes_into_the_mask(scores, attn_mask):
    """An empty row becomes a full one, in the caller's mask as well."""
    nowhere = ~attn_mask.any(dim=-1, keepdim=True)
    attn_mask |= nowhere
    weights = scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1)
    return weights.masked_fill(nowhere, 0.0)


@mistake(
    "my_masked_softmax", caught_by="runs, and gives one weight", hint="In which line do the shapes"
)
def forgets_keepdim(scores, attn_mask):
    """(queries,) does not broadcast along the keys."""
    nowhere = ~attn_mask.any(dim=-1)
    filled = scores.masked_fill(~attn_mask, -math.inf).masked_fill(nowhere, 0.0)
    return filled.softmax(dim=-1).masked_fill(~attn_mask, 0.0)
