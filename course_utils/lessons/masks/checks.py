"""Checks of *Masks*: both masks, two masked softmaxes, and a diagnosis."""

import math

import torch
from torch import Tensor

from course_utils.attention import masked_softmax
from course_utils.kit.check import (
    Check,
    Unmet,
    WrongKind,
    expect,
    expect_close,
    expect_equal,
    expect_same_gradients,
    expect_shape,
)
from course_utils.lessons.masks import clinic

# Several sentences in a row -----------------------------------------------------------------------

_NUMBERS = torch.tensor([[1, 1, 1, 1], [0, 0, 1, 2], [1, 2, 2, 0]])
my_mask = Check("my_mask", forbids=["causal_mask", "padding_mask"])


@my_mask.must("it is boolean, (batch, queries, keys)")
def _(candidate):
    """The causal mask is (queries, keys), `numbers` is (batch, keys). Which axis has `numbers` to get, and where?

    `numbers[:, None, :]` is (batch, 1, keys), `numbers[:, :, None]` is (batch, queries, 1).

    `&` takes truth values on both sides: `torch.ones` makes them with `dtype=torch.bool`.
    """
    mask = expect_shape(_of_truth_values(candidate, _NUMBERS.clone()), (3, 4, 4))
    expect(mask.dtype == torch.bool, f"dtype: {mask.dtype}; expected torch.bool", _TRUTH_VALUES)


_TRUTH_VALUES = (
    "`torch.ones(…)` makes numbers. Which `dtype` makes truth values, and what joins two of them?"
)


def _of_truth_values(candidate, numbers: Tensor) -> Tensor:
    """The candidate's mask; an `&` with numbers is said as what it is."""
    try:
        return candidate(numbers)
    except NotImplementedError as error:
        raise Unmet("`&` stands between truth values and numbers", _TRUTH_VALUES) from error


@my_mask.must("a row may have any length")
def _(candidate):
    """Which number in your function stands for the four words of the example? `numbers.shape` knows it."""
    expect_shape(candidate(torch.randint(3, (2, 6))), (2, 6, 6))


@my_mask.must("no query may attend to padding")
def _(candidate):
    """Whose row of `numbers` do you use: that of the sentence, or that of the query? Where there are as many of
    both, nothing is raised.

    A count says where the padding is if it stands at the end. In front it does not.
    """
    for numbers in (_NUMBERS, torch.randint(3, (4, 4))):
        padded = candidate(numbers.clone()) & (numbers == 0)[:, None, :]
        of_padding = torch.equal(padded, padded & (numbers == 0)[:, :, None])
        seen = padded.sum().item()
        expect(
            seen == 0,
            f"pairs of a query and a padded key: {seen}; expected 0",
            "`<pad>` has the number 0, as all padding of its row has. Is it a sentence?"
            if of_padding
            else "",
        )


@my_mask.must("no query may attend to a later key")
def _(candidate):
    """Rows are queries and columns are keys. Which half of the square lies after the query?"""
    seen = candidate(_NUMBERS.clone()).triu(1).sum().item()
    expect_equal(seen, 0, "pairs of a query and a later key")


@my_mask.must("no query may attend to another sentence")
def _(candidate):
    """When are a query and a key of one sentence? Compare their numbers, a column with a row."""
    other = _NUMBERS[:, :, None] != _NUMBERS[:, None, :]
    seen = (candidate(_NUMBERS.clone()) & other & (_NUMBERS > 0)[:, :, None]).sum().item()
    expect_equal(seen, 0, "pairs of words of two sentences")


@my_mask.must("every other pair of words is permitted")
def _(candidate):
    """A query may attend to itself, and to each earlier word of its sentence.

    How many sentences may a row have? More than two.
    """
    for numbers in (_NUMBERS, torch.randint(4, (5, 5))):
        earlier = torch.arange(numbers.shape[-1])[:, None] >= torch.arange(numbers.shape[-1])
        same = numbers[:, :, None] == numbers[:, None, :]
        expected = int((same & (numbers > 0)[:, None, :] & earlier).sum())
        of_words = candidate(numbers.clone())[numbers > 0]
        expect_equal(int(of_words.sum()), expected, "permitted pairs")


my_mask.must_keep_inputs(
    lambda: [_NUMBERS.clone()],
    "`&=` and functions that end in an underscore write into the caller's memory.",
    "the caller's numbers are not changed",
)


# Masked softmax ---------------------------------------------------------------------------------

_MASK = torch.tensor([[True, True, False, False], [True, False, True, True]])
_EMPTY_ROW = torch.tensor([[True, True, False], [False, False, False]])


def _reference(scores: Tensor, mask: Tensor) -> Tensor:
    """Right where each row has a permitted key."""
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


def _gives_weights(candidate) -> None:
    expect_shape(candidate(torch.zeros(2, 4), _MASK.clone()), (2, 4))


def _shares_the_weight(candidate) -> None:
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]).log()
    expected = torch.tensor([[1 / 3, 2 / 3, 0, 0], [1 / 8, 0, 3 / 8, 4 / 8]])
    weights = expect_shape(candidate(scores, _MASK.clone()), (2, 4))
    seen = weights.masked_fill(_MASK, 0.0).max().item()
    low = "Forbidden keys get weight. Which number has the exponential 0?" if 0 < seen < 0.1 else ""
    expect_close(weights, expected, "exponentials 1, 2, 3, 4", hint=low)


def _mask_broadcasts(candidate) -> None:
    scores = torch.randn(2, 3, 5, 4)
    mask = torch.tensor([[True, True, False, False], [True, True, True, False]])[:, None, None, :]
    expected = _reference(scores, mask)
    expect_close(candidate(scores, mask), expected, "a mask (batch, 1, 1, keys) for several heads")


def _same_gradients(candidate, mask: Tensor) -> None:
    """Those of scores and values."""
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


RUNS = "it runs, and gives one weight for each score"
RUNS_HINT = (
    "In which line do the shapes or types not fit? For a tensor of truth values “not” is `~`, and `any(dim=-1)` "
    "drops an axis unless `keepdim=True`."
)
SHARED = "permitted keys share the weight as in a softmax over them alone"
SHARED_HINT = (
    "True = may attend, and each row is shared out along the last axis. Scores with the exponentials "
    "1, 2, 3, 4, of which the first two are permitted: which weights do you expect?"
)
BROADCAST_HINT = (
    "Scores (batch, heads, queries, keys) come with masks such as (batch, 1, 1, keys). Which line "
    "needs a mask of full size?"
)
NO_TRACE = "a forbidden score leaves no trace, even if it is infinite or NaN"
NO_TRACE_HINT = (
    "What is ∞ − ∞, what is 0 · ∞, and what is NaN plus anything? Which operation replaces a number and does "
    "not compute with it?",
    "`masked_fill` replaces.",
)
KEPT = "the caller's scores and mask are not changed"
KEPT_HINT = (
    "Functions that end in an underscore, and assignments with [], write into the caller's memory."
)

# … with a bug to find

fixed_masked_softmax = Check("fixed_masked_softmax", forbids=["masked_softmax"])
fixed_masked_softmax.must(RUNS, hint=RUNS_HINT)(_gives_weights)
fixed_masked_softmax.must(SHARED, hint=SHARED_HINT)(_shares_the_weight)


@fixed_masked_softmax.must("a forbidden key may have the largest score")
def _(candidate):
    """A softmax subtracts the largest score of the row first. Whose score is that here, and what is exp(0 − 120) in
    single precision, about?

    Once a sum of permitted weights has become 0, no division repairs it. What has to happen before the softmax?
    """
    for loud in (50.0, 120.0, 1e6):
        scores = torch.tensor([[0.0, 0.7, loud, 0.7 * loud], [1.0, loud, 0.5, 0.0]])
        expected = _reference(scores, _MASK)
        expect_close(candidate(scores, _MASK.clone()), expected, f"a forbidden score of {loud:g}")
    expect_close(
        candidate(scores - 2000.0 * _MASK, _MASK.clone()),
        expected,
        "permitted scores near −2,000",
        hint="Is the number that you fill in below all scores? Which number is below every other?",
    )


fixed_masked_softmax.must(NO_TRACE, hint=NO_TRACE_HINT)(_no_trace)
fixed_masked_softmax.must("the mask broadcasts to the scores", hint=BROADCAST_HINT)(
    _mask_broadcasts
)
fixed_masked_softmax.must_keep_inputs(lambda: [torch.randn(2, 4), _MASK.clone()], KEPT_HINT, KEPT)
fixed_masked_softmax.must(
    "the gradients of scores and values are those of a softmax over the permitted keys",
    hint="Does a `detach()` or a `torch.no_grad()` keep a part of the formula from the way back?",
)(lambda candidate: _same_gradients(candidate, _MASK))

# … that passes everything

my_masked_softmax = Check("my_masked_softmax", forbids=["masked_softmax"])
my_masked_softmax.must(RUNS, hint=RUNS_HINT)(_gives_weights)
my_masked_softmax.must(SHARED, hint=SHARED_HINT)(_shares_the_weight)
my_masked_softmax.must("the mask broadcasts to the scores", hint=BROADCAST_HINT)(_mask_broadcasts)
my_masked_softmax.must_keep_inputs(lambda: [torch.randn(2, 3), _EMPTY_ROW.clone()], KEPT_HINT, KEPT)


@my_masked_softmax.must("scores of any size are fine")
def _(candidate):
    """Is there a score that is lower than a number you fill in, or one whose exponential is 0 or ∞?

    Which number is below all others?
    """
    for shift in (-2e6, 2e6, -1e20, torch.finfo(torch.float32).min):
        scores = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]) + shift * _MASK
        expected = _reference(scores, _MASK)
        expect_close(candidate(scores, _MASK.clone()), expected, f"permitted scores near {shift:g}")


@my_masked_softmax.must("half precision is fine")
def _(candidate):
    """The largest float16 is 65,504. Which number is below all others in every dtype?

    The weights have to come back in the dtype of the scores.
    """
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    weights = expect_shape(candidate(scores.half(), _MASK.clone()), (2, 4))
    expect_equal(weights.dtype, torch.float16, "dtype for scores in float16")
    expect_close(weights, _reference(scores, _MASK), "float16", atol=2e-3)


@my_masked_softmax.must("a row without any permitted key gives zeros")
def _(candidate):
    """How can you find such rows in the mask? They need a treatment of their own.

    `mask.any(dim=-1, keepdim=True)` is False there. What must not stand in such a row when the softmax sees it?

    Give such a row scores of 0 before the softmax, and forbidden keys the weight 0 after it.
    """
    weights = candidate(torch.zeros(2, 3), _EMPTY_ROW.clone())
    expect_close(weights, torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]), "an empty second row")


my_masked_softmax.must(
    "the gradients of scores and values are right, also when a row is empty",
    hint=(
        "Which operation hands no gradient back to a score: adding −∞ to it, or replacing it with `masked_fill`?",
        "A NaN of the softmax goes back through a sum to the scores. And the way back needs the softmax's own "
        "output: nothing may be detached, and nothing written into it.",
    ),
)(lambda candidate: _same_gradients(candidate, _EMPTY_ROW))
my_masked_softmax.must(NO_TRACE, hint=NO_TRACE_HINT)(_no_trace)


@my_masked_softmax.must("a NaN score stays visible")
def _(candidate):
    """Replacing every NaN hides a broken model. Which rows may be replaced?"""
    weights = candidate(torch.tensor([[0.0, math.nan, 1.0]]), torch.tensor([[True, True, False]]))
    hidden = not expect_shape(weights, (1, 3))[0, :2].isnan().all()
    expect(not hidden, "a NaN among the permitted scores was hidden")


# The clinic -------------------------------------------------------------------------------------

_SHOWS = {
    "polarity": "Polarity puts all weight of some rows on padding",
    "zeros and ones": "Where nothing is forbidden, padding gets weight and the rows leak",
    "no axis": "With the wrong sentence's padding, padding gets weight, and no row leaks",
    "off by one": "A triangle that is off by one leaks, and gives padding nothing",
    "over the queries": "A softmax over the queries has rows that do not sum to 1, and padding gets nothing",
    "upper left": "A mask at the upper left is wrong only where there are more keys than queries",
}


def _name(text: str) -> str:
    if not isinstance(text, str):
        raise WrongKind(f"the mistake's name in quotes is expected, got {text!r}")
    name = " ".join(text.lower().replace("_", " ").replace(",", " ").split())
    expect(name in _SHOWS, f"{text!r} is none of the six: {', '.join(_SHOWS)}")
    return name


diagnosis = Check("diagnosis", forbids=["mistake_of"])


@diagnosis.must("it is a patient's number and the name of one of the six mistakes")
def _(candidate):
    """Such as `return case, "polarity"`, with the names of the table."""
    answer = candidate()
    if not isinstance(answer, tuple | list) or len(answer) != 2 or not isinstance(answer[0], int):
        raise WrongKind(f"a number and a name are expected, got {answer!r}")
    _name(answer[1])


@diagnosis.must("this is what the patient has")
def _(candidate):
    """`four_numbers(patient.attend)`, beside the table: which of the four are 0?"""
    case, text = candidate()
    name = _name(text)
    why = f"{_SHOWS[name]}. Does `four_numbers(patient.attend)` say so?"
    expect(clinic.mistake_of(case) == name, f"patient {case} has something else than {name}", why)
