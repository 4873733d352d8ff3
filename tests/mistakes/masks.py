"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch
from mistakes.table import wrong

from course_utils import masks


class my_mask:
    aligned_from_the_right = wrong("(batch, keys) meets (queries, keys).",
        lambda numbers: (numbers > 0) & _triangle(numbers))
    padding_is_a_sentence = wrong("Padding has one number, too.", lambda numbers: _same(numbers) & _triangle(numbers))
    all_sentences = wrong("The mask of the text above: padding and the future.",
        lambda numbers: (numbers > 0)[:, None, :] & _triangle(numbers))
    of_the_query = wrong("Permits a padded query nothing, and every key.",
        lambda numbers: (numbers > 0)[:, :, None] & _triangle(numbers))
    upper_triangle = wrong("Rows and columns exchanged: the future is permitted.", lambda numbers: _right(numbers).mT)
    not_itself = wrong("One off to the other side.", lambda numbers: _right(numbers).tril(-1))
    true_forbids = wrong("The habit of nn.MultiheadAttention: True for what is forbidden.",
        lambda numbers: ~_right(numbers))
    counts = wrong("Ones and zeros.", lambda numbers: _right(numbers).int())
    numbers_for_truth_values = wrong("torch.ones without a dtype.",
        lambda numbers: _right(numbers) & torch.ones(numbers.shape[-1], numbers.shape[-1]).tril())
    four_words = wrong("The size of the example, written as a number.",
        lambda numbers: _right(numbers) & torch.ones(4, 4, dtype=torch.bool).tril())
    first_sentence = wrong("Only the words with the number 1.",
        lambda numbers: _right(numbers) & (numbers == 1)[:, None, :])
    by_the_package = wrong("The course's function.",
        lambda numbers: _same(numbers) & (numbers > 0)[:, None, :] & masks.causal_mask(numbers.shape[-1]))

    without_brackets = wrong("`&` binds more tightly than `==`.",
        lambda numbers: numbers[:, :, None] == numbers[:, None, :] & _triangle(numbers))

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


class diagnosis:
    no_number = wrong("Only the name.", lambda: "polarity")
    unknown_name = wrong("None of the seven.", lambda: (9, "padding"))
    polarity_for_no_axis = wrong("Both give padding weight.", lambda: (9, "polarity"))
    zeroed_for_ones = wrong("Both have the same pattern of zeros.", lambda: (1, "zero the scores"))
    ones_for_zeroed = wrong("The same the other way round.", lambda: (7, "zeros and ones"))


def _filled(scores, attn_mask, number=-math.inf):
    return scores.masked_fill(~attn_mask, number).softmax(dim=-1)


def _afterwards(scores, attn_mask):
    return scores.softmax(dim=-1) * attn_mask


class fixed_masked_softmax:
    multiplies_afterwards = wrong("Rows no longer sum to 1.", lambda *given: _afterwards(*given))
    writes_into_the_scores = wrong("masked_fill_ with an underscore changes the caller's tensor.",
        lambda scores, attn_mask: scores.masked_fill_(~attn_mask, -math.inf).softmax(dim=-1))
    minus_the_mask = wrong('A minus is no "not" for truth values.',
        lambda scores, attn_mask: scores.masked_fill(-attn_mask, -math.inf).softmax(dim=-1))
    computes_with_forbidden_scores = wrong("Multiplies what it should replace: 0 · ∞ is NaN.",
        lambda scores, attn_mask: (scores * attn_mask - 1e9 * ~attn_mask).softmax(dim=-1))
    minus_a_hundred = wrong("Lower than most scores, not than all.", lambda *given: _filled(*given, -100.0))
    minus_twenty = wrong("-20 is lower than these scores, not than all.", lambda *given: _filled(*given, -20.0))
    minus_twelve = wrong("Low enough for the example, and for nothing else.", lambda *given: _filled(*given, -12.0))
    minus_five = wrong("Not even low enough for the example.", lambda *given: _filled(*given, -5.0))
    borrowed = wrong("Wraps the package's own.", lambda scores, attn_mask: masks.masked_softmax(scores, attn_mask))
    renormalizes_with_epsilon = wrong("1e-9 in the denominator: zeros where there should be weights.",
        lambda *given: (w := _afterwards(*given)) / (w.sum(dim=-1, keepdim=True) + 1e-9))
    clamps_the_sum = wrong("No 0/0, and no weights either, where the forbidden score is far above.",
        lambda *given: (w := _afterwards(*given)) / w.sum(dim=-1, keepdim=True).clamp(min=1e-30))

    def needs_a_mask_of_full_size(scores, attn_mask):
        """Indexes with the mask, which then has to have the scores' own shape."""
        filled = scores.clone()
        filled[~attn_mask] = -math.inf
        return filled.softmax(dim=-1)

    def detached_denominator(scores, attn_mask):
        """Right weights, and the gradient of the numerator alone."""
        nowhere = ~attn_mask.any(dim=-1, keepdim=True)
        filled = scores.masked_fill(~attn_mask, -math.inf).masked_fill(nowhere, 0.0)
        parts = (filled - filled.amax(dim=-1, keepdim=True)).exp()
        weights = parts / parts.sum(dim=-1, keepdim=True).detach()
        return weights.masked_fill(~attn_mask, 0.0)

    def zero_gradient(scores, attn_mask):
        """Right weights, and a gradient of zeros."""
        right = fixed_masked_softmax.detached_denominator(scores.detach(), attn_mask)
        return right + 0 * scores.nan_to_num(0.0, 0.0, 0.0)

class my_masked_softmax:
    minus_a_billion_billion = wrong("-1e18 survives any score of float32, but float16 has no such number.",
        lambda *given: _filled(*given, -1e18))
    answers_in_float32 = wrong("Computes in float32 and forgets to go back.",
        lambda scores, attn_mask: _filled(scores.float(), attn_mask).nan_to_num())
    minus_infinity = wrong("An empty row is NaN.", lambda *given: _filled(*given))
    hides_nan = wrong("Replaces each NaN after the softmax, also those that a broken model made.",
        lambda *given: _filled(*given).nan_to_num())
    from_its_own_module = wrong("The course's function by another name.",
        lambda scores, attn_mask: masks.masked_softmax(scores, attn_mask))

    a_billion = wrong("-1e9 is lower than most scores, not than all.",
        lambda scores, attn_mask: _filled(scores, attn_mask, -1e9).nan_to_num() * attn_mask)
    multiplies_afterwards = fixed_masked_softmax.multiplies_afterwards
    needs_a_mask_of_full_size = fixed_masked_softmax.needs_a_mask_of_full_size
    renormalizes_with_epsilon = fixed_masked_softmax.renormalizes_with_epsilon
    detached_denominator = fixed_masked_softmax.detached_denominator
    zero_gradient = fixed_masked_softmax.zero_gradient

    def adds_and_multiplies(scores, attn_mask):
        """Empty rows are treated before the softmax, but a forbidden NaN is added to, not replaced."""
        nowhere = ~attn_mask.any(dim=-1, keepdim=True)
        bias = torch.zeros(attn_mask.shape, dtype=scores.dtype)
        bias = bias.masked_fill(~attn_mask & ~nowhere, -math.inf)
        return (scores + bias).softmax(dim=-1) * attn_mask

    def writes_into_the_mask(scores, attn_mask):
        """An empty row becomes a full one, in the caller's mask as well."""
        nowhere = ~attn_mask.any(dim=-1, keepdim=True)
        attn_mask |= nowhere
        weights = scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1)
        return weights.masked_fill(nowhere, 0.0)

    def forgets_keepdim(scores, attn_mask):
        """(queries,) does not broadcast along the keys."""
        nowhere = ~attn_mask.any(dim=-1)
        filled = scores.masked_fill(~attn_mask, -math.inf).masked_fill(nowhere, 0.0)
        return filled.softmax(dim=-1).masked_fill(~attn_mask, 0.0)


ANSWERS = {
    "numbers_for_truth_values": ("truth values and numbers", "Which `dtype`"),
    "counts": ("boolean", "Which `dtype`"),
    "four_words": ("any length", "four words of the example"),
    "padding_is_a_sentence": ("padding", "Is it a sentence"),
    "all_sentences": ("another sentence", "Compare their numbers"),
    "minus_a_hundred": ("largest score", "below every other"),
    "borrowed": ("it calls masked_softmax", "step by step"),
    "minus_twenty": ("largest score", "below every other"),
    "minus_twelve": ("largest score", "below every other"),
    "minus_five": ("shares the weight", "has the exponential 0"),
    "polarity_for_no_axis": ("what the patient has", "Polarity puts all weight"),
    "zeroed_for_ones": ("what the patient has", "Does a row of"),
    "ones_for_zeroed": ("what the patient has", "Does a row of"),
    "true_forbids": ("says True where", "True means"),
    "a_billion": ("scores of any size", "a score may be below it"),
    "aligned_from_the_right": ("(batch, queries, keys)", "Which axis does `numbers` need"),
    "from_its_own_module": ("it calls masked_softmax", "step by step"),
}
