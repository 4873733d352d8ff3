"""Checks of *Masks*: both masks, two masked softmaxes, and a diagnosis."""

import math
import re

import torch
from torch import Tensor

from course_utils.kit.check import Check
from course_utils.kit.expect import (
    Unmet,
    WrongKind,
    expect,
    expect_close,
    expect_equal,
    expect_same_gradients,
    expect_shape,
)
from course_utils.lessons.masks import clinic
from course_utils.masks import masked_softmax

# Several sentences in a row -----------------------------------------------------------------------

_NUMBERS = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 2], [1, 2, 2, 0]])
my_mask = Check(forbids=["causal_mask", "padding_mask"])


@my_mask.must("returns a boolean mask of shape (batch, queries, keys)")
def returns_boolean_mask_of_shape(candidate):
    """The causal mask is (queries, keys), `numbers` is (batch, keys). Which axis does each of them lack? Write the
    shapes below each other, aligned at the right.

    `numbers[:, None, :]` is (batch, 1, keys), `numbers[:, :, None]` is (batch, queries, 1).

    `&` needs truth values on both sides, and `torch.ones` makes them with `dtype=torch.bool`.
    """
    mask = expect_shape(_call_with_boolean_hint(candidate, _NUMBERS.clone()), (3, 4, 4))
    expect(
        mask.dtype == torch.bool, f"got the dtype {mask.dtype}, expected torch.bool", _TRUTH_VALUES
    )


_TRUTH_VALUES = "`torch.ones(…)` makes numbers. Which `dtype` makes truth values? Only those can be joined by `&`."


def _call_with_boolean_hint(candidate, numbers: Tensor) -> Tensor:
    """The candidate's mask; PyTorch's error about `&` between numbers gets a reason and a hint."""
    try:
        return candidate(numbers)
    except NotImplementedError as error:
        raise Unmet("`&` is used between truth values and numbers", _TRUTH_VALUES) from error


@my_mask.must("says True where a query may attend")
def says_true_where_query_may_attend(candidate):
    """True means “may attend” in this course. Which pairs does your mask mark with True, the permitted ones or the
    forbidden ones? `nn.MultiheadAttention` has the opposite habit, and `~mask` turns one into the other.
    """
    mask = expect_shape(candidate(_NUMBERS.clone()), (3, 4, 4)).bool()
    inverted = bool(mask.any()) and not mask[_permitted(_NUMBERS)].any()
    expect(not inverted, "each pair that should be permitted is False, and others are True")


def _permitted(numbers: Tensor) -> Tensor:
    """(batch, keys) → the right mask, (batch, queries, keys)."""
    earlier = torch.ones(numbers.shape[-1], numbers.shape[-1], dtype=torch.bool).tril()
    same = numbers[:, :, None] == numbers[:, None, :]
    return same & (numbers > 0)[:, None, :] & earlier


@my_mask.must("works for a row of any length")
def works_for_row_of_any_length(candidate):
    """Does your function contain a 4, for the four words of the example? Take the length from `numbers.shape`
    instead.
    """
    expect_shape(candidate(torch.randint(3, (2, 6))), (2, 6, 6))


@my_mask.must("lets no query attend to padding")
def lets_no_query_attend_to_padding(candidate):
    """Whose row of `numbers` do you use, the sentence's or the query's? Look at its axes: if both have the same size,
    PyTorch raises no error.

    A count finds the padding only if it is at the end. Compare `numbers` with 0, and it may be in front.
    """
    for numbers in (_NUMBERS, torch.randint(3, (4, 4))):
        mask = candidate(numbers.clone())
        padded = mask & (numbers == 0)[:, None, :]
        hint = ""
        if torch.equal(padded, padded & (numbers == 0)[:, :, None]):
            hint = "All padding of a row has the number 0. Is it a sentence? Equal numbers don't suffice."
        earlier = torch.ones(4, 4, dtype=torch.bool).tril()
        if torch.equal(mask, numbers[:, :, None] == numbers[:, None, :] & earlier):
            hint = (
                "Does each comparison have its own parentheses? `a == b & c` means `a == (b & c)`."
            )
        seen = padded.sum().item()
        expect(seen == 0, f"pairs of a query and a padded key: got {seen}, expected 0", hint)


@my_mask.must("lets no query attend to a later key")
def lets_no_query_attend_to_later_key(candidate):
    """Rows are queries and columns are keys. Which half of the square lies after the query? Keep the other one, with
    its diagonal.
    """
    seen = candidate(_NUMBERS.clone()).triu(1).sum().item()
    expect_equal(seen, 0, "pairs of a query and a later key")


@my_mask.must("lets no query attend to another sentence")
def lets_no_query_attend_to_another_sentence(candidate):
    """When do a query and a key belong to one sentence? Compare their numbers, a column with a row."""
    other = _NUMBERS[:, :, None] != _NUMBERS[:, None, :]
    seen = (candidate(_NUMBERS.clone()) & other & (_NUMBERS > 0)[:, :, None]).sum().item()
    expect_equal(seen, 0, "pairs of words of two sentences")


@my_mask.must("permits every other pair of words")
def permits_every_other_pair_of_words(candidate):
    """Which pair do you forbid that should be permitted? A query may attend to itself, and to each earlier word of
    its sentence.

    A row may hold more than two sentences, so compare their numbers instead of naming them.

    Does each comparison have its own parentheses? `a & b > 0` means `(a & b) > 0`, so write `a & (b > 0)`.
    """
    for numbers in (_NUMBERS, torch.randint(4, (5, 5))):
        expected = int(_permitted(numbers).sum())
        of_words = candidate(numbers.clone())[numbers > 0]
        expect_equal(int(of_words.sum()), expected, "permitted pairs")


my_mask.must_keep_inputs(
    lambda: [_NUMBERS.clone()],
    (
        "Does a line write into the caller's memory? `&=` and methods that end in an underscore do, so make a "
        "new tensor."
    ),
    "leaves the caller's numbers unchanged",
)


# Masked softmax ---------------------------------------------------------------------------------

_MASK = torch.tensor([[True, True, False, False], [True, False, True, True]])
_EMPTY_ROW = torch.tensor([[True, True, False], [False, False, False]])


def _reference(scores: Tensor, mask: Tensor) -> Tensor:
    """The masked softmax of scores whose rows have a permitted key each."""
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


def _gives_weights(candidate) -> None:
    expect_shape(candidate(torch.zeros(2, 4), _MASK.clone()), (2, 4))


def _shares_the_weight(candidate) -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]).log()
    expected = torch.tensor([[1 / 3, 2 / 3, 0, 0], [1 / 8, 0, 3 / 8, 4 / 8]])
    weights = expect_shape(candidate(scores, _MASK.clone()), (2, 4))
    expect_close(weights, expected, "exponentials 1, 2, 3, 4", hint=_hint_for_weights(weights))


def _hint_for_weights(weights: Tensor) -> str:
    """A hint for what the weights of permitted and forbidden keys show; empty if nothing in particular."""
    permitted, forbidden = weights.masked_fill(~_MASK, 0.0), weights.masked_fill(_MASK, 0.0)
    if not permitted[0].any() and forbidden[0].any():
        return "True means: may attend. Which scores did you overwrite? `~mask` is True at the forbidden ones."
    if 0 < forbidden.max() < 0.1:
        return "Forbidden keys get a little weight. Which number has the exponential 0? Use it as their score."
    if forbidden.any():
        return "Forbidden keys get weight. Do you give them a score of 0? Its exponential is 1, so choose another."
    if (permitted.sum(dim=-1) < 0.999).all():
        return "The permitted weights don't sum to 1. Do you mask before the softmax, or after it? Before is right."
    return ""


def _mask_broadcasts(candidate) -> None:
    scores = torch.randn(2, 3, 5, 4)
    mask = torch.tensor([[True, True, False, False], [True, True, True, False]])[:, None, None, :]
    expected = _reference(scores, mask)
    expect_close(candidate(scores, mask), expected, "a mask (batch, 1, 1, keys) for several heads")


def _expect_softmax_gradients(candidate, mask: Tensor) -> None:
    """Compare the gradients of scores and values with those of a softmax over the permitted keys."""
    expect_same_gradients(
        lambda scores, values: candidate(scores, mask.clone()) @ values,
        lambda scores, values: masked_softmax(scores, mask) @ values,
        scores=torch.randn(mask.shape),
        values=torch.randn(mask.shape[-1], 2),
    )


def _no_trace(candidate) -> None:
    for odd in (math.inf, -math.inf, math.nan):
        scores = torch.tensor([[0.0, 0.7, odd, odd], [1.0, odd, 0.5, 0.0]])
        expected = _reference(scores, _MASK)
        expect_close(candidate(scores, _MASK.clone()), expected, f"forbidden scores of {odd}")


RUNS = "runs, and gives one weight for each score"
RUNS_HINT = (
    "In which line do the shapes or types not fit? For a tensor of truth values “not” is `~`, and `any(dim=-1)` "
    "drops an axis unless you say `keepdim=True`."
)
SHARED = "shares the weight as a softmax over the permitted keys only"
SHARED_HINT = (
    "Compute row 0 with a pencil. The exponentials are 1, 2, 3, 4, and only the first two keys are permitted. "
    "Which weights do you expect? Compare them with yours."
)
BROADCAST_HINT = (
    "Which line needs a mask of full size? Scores (batch, heads, queries, keys) come with masks such as "
    "(batch, 1, 1, keys), so let PyTorch broadcast it."
)
NO_TRACE = "keeps no trace of a forbidden score, even if it is infinite or NaN"
NO_TRACE_HINT = (
    "Each of ∞ − ∞, 0 · ∞ and NaN + 1 is NaN. Which operation replaces a number instead of computing with it?",
    "`masked_fill` replaces, so use it before the softmax.",
)
KEPT = "leaves the caller's scores and mask unchanged"
KEPT_HINT = (
    "Does a line write into the caller's memory? Methods that end in an underscore do, and so do "
    "assignments with []."
)

# … with a bug to find

fixed_masked_softmax = Check(forbids=["masked_softmax"])
fixed_masked_softmax.must(RUNS, hint=RUNS_HINT)(_gives_weights)
fixed_masked_softmax.must(SHARED, hint=SHARED_HINT)(_shares_the_weight)


@fixed_masked_softmax.must("copes with a forbidden key that has the largest score")
def copes_with_forbidden_key_that_has_largest_score(candidate):
    """A softmax first subtracts the largest score of the row. Whose score is that here? Compute exp(0 − 120) in
    single precision.

    Once the sum of the permitted weights has become 0, no division repairs it. What has to happen before the softmax?
    """
    for loud in (50.0, 120.0, 1e6):
        scores = torch.tensor([[0.0, 0.7, loud, 0.7 * loud], [1.0, loud, 0.5, 0.0]])
        expected = _reference(scores, _MASK)
        expect_close(candidate(scores, _MASK.clone()), expected, f"a forbidden score of {loud:g}")
    expect_close(
        candidate(scores - 2000.0 * _MASK, _MASK.clone()),
        expected,
        "permitted scores near −2,000",
        hint="The number that you fill in is above some scores. Which number is below every other?",
    )


fixed_masked_softmax.must(NO_TRACE, hint=NO_TRACE_HINT)(_no_trace)
fixed_masked_softmax.must("lets the mask broadcast to the scores", hint=BROADCAST_HINT)(
    _mask_broadcasts
)
fixed_masked_softmax.must_keep_inputs(lambda: [torch.randn(2, 4), _MASK.clone()], KEPT_HINT, KEPT)
fixed_masked_softmax.must(
    "passes on the gradients of a softmax over the permitted keys",
    hint="Does a step cut off the way back for a part of the formula? Look for a `detach()` or a `torch.no_grad()`.",
)(lambda candidate: _expect_softmax_gradients(candidate, _MASK))

# … that passes everything

my_masked_softmax = Check(forbids=["masked_softmax"])
my_masked_softmax.must(RUNS, hint=RUNS_HINT)(_gives_weights)
my_masked_softmax.must(SHARED, hint=SHARED_HINT)(_shares_the_weight)
my_masked_softmax.must("lets the mask broadcast to the scores", hint=BROADCAST_HINT)(
    _mask_broadcasts
)
my_masked_softmax.must_keep_inputs(lambda: [torch.randn(2, 3), _EMPTY_ROW.clone()], KEPT_HINT, KEPT)


@my_masked_softmax.must("works for scores of any size")
def works_for_scores_of_any_size(candidate):
    """Which step can't handle a huge score? If you fill in a number, a score may be below it; if you take exponentials
    yourself, they become 0 or ∞.

    Fill in the number that is below all others, and let `softmax` take the exponentials.
    """
    for shift in (-2e6, 2e6, -1e20):
        scores = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]) + shift * _MASK
        expected = _reference(scores, _MASK)
        expect_close(candidate(scores, _MASK.clone()), expected, f"permitted scores near {shift:g}")


@my_masked_softmax.must("works in half precision")
def works_in_half_precision(candidate):
    """The largest float16 is 65,504. Which number is below all others in every dtype? Fill in that one.

    The weights have to come back in the dtype of the scores.
    """
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    weights = expect_shape(candidate(scores.half(), _MASK.clone()), (2, 4))
    expect_equal(weights.dtype, torch.float16, "dtype for scores in float16")
    expect_close(weights, _reference(scores, _MASK), "float16", atol=2e-3)


@my_masked_softmax.must("gives zeros for a row without any permitted key")
def gives_zeros_for_row_without_any_permitted_key(candidate):
    """How can you find such rows in the mask? They need a treatment of their own.

    `mask.any(dim=-1, keepdim=True)` is False there. Which scores must such a row not hold when the softmax sees it?

    Give such a row scores of 0 before the softmax, and give forbidden keys the weight 0 after it.
    """
    weights = candidate(torch.zeros(2, 3), _EMPTY_ROW.clone())
    expect_close(weights, torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]), "an empty second row")


my_masked_softmax.must(
    "passes on the right gradients of scores and values, even if a row is empty",
    hint=(
        "Which operation returns no gradient to a score: adding −∞ to it, or replacing it with "
        "`masked_fill`? Use that one, before the softmax.",
        "A NaN of the softmax returns through a sum to the scores. The way back needs the softmax's own "
        "output, so detach nothing and write nothing into it.",
    ),
)(lambda candidate: _expect_softmax_gradients(candidate, _EMPTY_ROW))
my_masked_softmax.must(NO_TRACE, hint=NO_TRACE_HINT)(_no_trace)


@my_masked_softmax.must("keeps a NaN score visible")
def keeps_nan_score_visible(candidate):
    """Which rows may you replace? Only those without a permitted key, because replacing every NaN hides a broken
    model.
    """
    weights = candidate(torch.tensor([[0.0, math.nan, 1.0]]), torch.tensor([[True, True, False]]))
    hidden = not expect_shape(weights, (1, 3))[0, :2].isnan().all()
    expect(not hidden, "a NaN among the permitted scores was hidden")


# The clinic -------------------------------------------------------------------------------------

_SHOWS = {
    "polarity": "Polarity puts all weight of some rows on padding",
    "zeros and ones": "Where nothing is forbidden, padding gets weight and the rows leak, each key by its own score",
    "zero the scores": "Scores of 0 give padding and later words weight, and all forbidden keys of a row the same",
    "no axis": "With the wrong sentence's padding, padding gets weight, and no row leaks",
    "off by one": "A triangle that is off by one leaks, and gives padding nothing",
    "over the queries": "A softmax over the queries has rows that do not sum to 1, and padding gets nothing",
    "upper left": "A mask at the upper left is wrong only where there are more keys than queries",
}


def _name(text: str) -> str:
    if not isinstance(text, str):
        raise WrongKind(f"got {text!r}, expected the mistake's name in quotes")
    name = " ".join(re.sub("[-_,]", " ", text.lower()).split())
    expect(name in _SHOWS, f"{text!r} is not one of the seven: {', '.join(_SHOWS)}")
    return name


diagnosis = Check(forbids=["mistake_of"])


@diagnosis.must("names a patient's number and one of the seven mistakes")
def names_patients_number_and_one_of_seven_mistakes(candidate):
    """What do you return? We expect a pair such as `return case, "polarity"`, with a name from the table."""
    answer = candidate()
    if not isinstance(answer, tuple | list) or len(answer) != 2 or not isinstance(answer[0], int):
        raise WrongKind(f"got {answer!r}, expected a number and a name")
    _name(answer[1])


@diagnosis.must("names what the patient has")
def names_what_the_patient_has(candidate):
    """Which of the four numbers are 0? Compare `four_numbers(patient.attend)` with the table."""
    case, text = candidate()
    name, found = _name(text), clinic.mistake_of(case)
    look = "`four_numbers(patient.attend)`"
    if {name, found} == {"zeros and ones", "zero the scores"}:  # the same pattern of zeros
        look = "a row of `patient.attend(x, x, one_hot, words)`"
    why = f"{_SHOWS[name]}. Does {look} show that?"
    expect(found == name, f"patient {case} does not have the mistake “{name}”", why)
