"""Checks of *Scoring functions*: Gaussian weights, gaps on paper, additive scores; and of masks."""

import math

import torch

from course_utils.lessons.check import (
    Check,
    expect,
    expect_close,
    expect_equal,
    expect_shape,
    expect_sums_to_one,
    unchanged,
)
from course_utils.pooling import kernel_weights

# Gaussian weights by one matrix product ---------------------------------------------------------

fixed_gaussian_weights = Check("fixed_gaussian_weights")


@fixed_gaussian_weights.must(
    "there is one weight for each pair of a query and a key",
    hint="A term with one number per key must broadcast over the queries. On which axis do its numbers stand?",
)
def _(candidate):
    expect_shape(candidate(torch.randn(3, 5), torch.randn(7, 5)), (3, 7))


@fixed_gaussian_weights.must(
    "the weights of each query sum to 1", hint="Over which axis does a query compare its keys?"
)
def _(candidate):
    expect_sums_to_one(candidate(torch.randn(4, 5), torch.randn(6, 5)), (4, 6))


@fixed_gaussian_weights.must(
    "keys at equal distance from a query get equal weights",
    hint=(
        "Which shape has the term in ‖k‖², and along which axis does it then differ?",
        "A softmax does not see what is the same for all keys of a row. Which of your terms is that now?",
    ),
)
def _(candidate):
    query = torch.tensor([[1.0, 2.0]])
    keys = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 2.0]])  # all at distance 1
    expect_close(candidate(query, keys), torch.full((1, 3), 1 / 3), "three keys at distance 1")


@fixed_gaussian_weights.must(
    "the weights are those of the Gaussian kernel of width 1",
    hint="Compare with cu.kernel_weights(queries, keys) entry by entry. Is your kernel as wide?",
)
def _(candidate):
    queries, keys = torch.randn(5, 3), torch.randn(8, 3)
    expect_close(candidate(queries, keys), kernel_weights(queries, keys), "random keys")


@fixed_gaussian_weights.must(
    "the weights stay finite far from the origin",
    hint="The exponential of 1,800 is infinite in float32. Which function normalizes without computing it?",
)
def _(candidate):
    queries = torch.tensor([[60.0, 0.0], [0.0, 60.0]])
    keys = torch.tensor([[59.0, 0.0], [60.0, 1.5], [0.0, 59.0]])
    expected = kernel_weights(queries, keys)
    expect_close(candidate(queries, keys), expected, "points 60 from the origin")


# A padding mask and a causal mask in one --------------------------------------------------------

decoder_mask = Check("decoder mask")


@decoder_mask.must(
    "the mask is boolean with axes (batch, 1, queries, keys)",
    hint="Which operator combines two boolean masks? Which axis lets one mask serve all heads?",
)
def _(candidate):
    mask = expect_shape(candidate(torch.tensor([2, 4]), 4), (2, 1, 4, 4))
    expect_equal(mask.dtype, torch.bool, "dtype")


@decoder_mask.must(
    "a position may attend to itself", hint="Is the diagonal of your causal mask True?"
)
def _(candidate):
    mask = expect_shape(candidate(torch.tensor([4]), 4), (1, 1, 4, 4))
    expect(bool(mask[0, 0].diagonal().all()), "some position of a full sequence may not see itself")


@decoder_mask.must(
    "no position attends to a later one",
    hint="Queries go down, keys go right. For which of j < i, j = i, j > i may query i see key j?",
)
def _(candidate):
    mask = expect_shape(candidate(torch.tensor([4, 3]), 4), (2, 1, 4, 4))
    future = mask & torch.ones(4, 4, dtype=torch.bool).triu(1)
    expect(not future.any(), "some position may see a later one")


@decoder_mask.must(
    "no position attends to padding",
    hint="Which axis do the lengths limit, queries or keys? Is one permission enough for a pair?",
)
def _(candidate):
    mask = expect_shape(candidate(torch.tensor([2, 4, 0]), 4), (3, 1, 4, 4))
    padding = mask[0, 0, :, 2:].any() or mask[2].any()
    expect(not padding, "some position may see a padding token")


@decoder_mask.must(
    "everything else is permitted",
    hint="Count for length 3 of 5: how many keys may each of the queries 0 to 4 see? A padded query "
    "counts as well, since its output is discarded later.",
)
def _(candidate):
    mask = expect_shape(candidate(torch.tensor([3, 5, 1]), 5), (3, 1, 5, 5))
    counts = mask.sum(dim=(1, 2, 3)).tolist()
    expect_equal(counts, [12, 15, 5], "permitted pairs for the lengths 3, 5 and 1 of 5")


# Masked softmax: find the bug -------------------------------------------------------------------

masked_softmax = Check("masked softmax")

_MASK = torch.tensor([[True, True, False, False], [True, False, True, True]])
_EMPTY_ROW = torch.tensor([[True, True, False], [False, False, False]])


def _reference(scores, mask):
    return scores.masked_fill(~mask, -math.inf).softmax(dim=-1)


@masked_softmax.must(
    "permitted keys share the weight as in a softmax over them alone",
    hint="True = may attend. Scores with the exponentials 1, 2, 3, 4, of which the first two are permitted: "
    "which weights do you expect?",
)
def _(candidate):
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]).log()
    expected = torch.tensor([[1 / 3, 2 / 3, 0, 0], [1 / 8, 0, 3 / 8, 4 / 8]])
    expect_close(candidate(scores, _MASK), expected, "exponentials 1, 2, 3, 4")


@masked_softmax.must(
    "the mask broadcasts to the scores",
    hint="Scores (batch, heads, queries, keys) come with masks such as (batch, 1, 1, keys). Which line "
    "needs a mask of full size?",
)
def _(candidate):
    scores = torch.randn(2, 3, 5, 4)
    mask = torch.tensor([[True, True, False, False], [True, True, True, False]])[:, None, None, :]
    expected = _reference(scores, mask)
    expect_close(candidate(scores, mask), expected, "a mask (batch, 1, 1, keys) for several heads")


@masked_softmax.must(
    "the caller's scores are not changed",
    hint="Functions that end in an underscore, and assignments with [], write into the caller's memory.",
)
def _(candidate):
    scores = torch.randn(2, 4)
    with unchanged(scores):
        candidate(scores, _MASK)


@masked_softmax.must(
    "scores of any size are fine",
    hint="What is exp(score − largest score) if the largest score belongs to a forbidden key? When are "
    "forbidden keys excluded?",
)
def _(candidate):
    for shift in (-2e6, 2e6):
        scores = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]]) + shift * _MASK
        expected = _reference(scores, _MASK)
        expect_close(candidate(scores, _MASK), expected, f"permitted scores near {shift:g}")


@masked_softmax.must(
    "half precision is fine",
    hint="The largest float16 is 65,504. Which number is below all others in every dtype?",
)
def _(candidate):
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    weights = expect_shape(candidate(scores.half(), _MASK), (2, 4))
    expect_equal(weights.dtype, torch.float16, "dtype for scores in float16")
    expect_close(weights, _reference(scores, _MASK), "float16", atol=2e-3)


@masked_softmax.must(
    "a row without any permitted key gives zeros",
    hint="How can you find such rows in the mask? They need a treatment of their own.",
)
def _(candidate):
    weights = candidate(torch.zeros(2, 3), _EMPTY_ROW)
    expect_close(weights, torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]), "an empty second row")


@masked_softmax.must(
    "the gradient is finite, also when a row is empty",
    hint="A NaN inside the softmax comes back in the gradient, even if the output hides it. What does the "
    "softmax see in an empty row?",
)
def _(candidate):
    scores = torch.randn(2, 3, requires_grad=True)
    candidate(scores, _EMPTY_ROW)[:, 0].sum().backward()
    finite = scores.grad is not None and bool(scores.grad.isfinite().all())
    expect(finite, "the gradient is not finite when a row is empty")


@masked_softmax.must(
    "a NaN score stays visible",
    hint="Replacing every NaN hides a broken model. Which rows may be replaced?",
)
def _(candidate):
    weights = candidate(torch.tensor([[0.0, math.nan, 1.0]]), torch.tensor([[True, True, False]]))
    hidden = not expect_shape(weights, (1, 3))[0, :2].isnan().all()
    expect(not hidden, "a NaN among the permitted scores was hidden")


# Five gaps on paper ----------------------------------------------------------------------------

predicted_gaps = Check("predicted_gaps")


GAPS = {"a": 9, "b": 1.5, "c": 3, "d": 5, "e": 3}


def _expect_gap(candidate, letter: str) -> None:
    """Fail unless the candidate's number for this letter is right; the reason names all that are not."""
    answers = candidate()
    expect(isinstance(answers, list | tuple), "a list of five numbers is expected")
    expect(len(answers) == 5, f"{len(answers)} entries; expected five numbers, for a to e")
    given = dict(zip(GAPS, answers, strict=True))
    for key, answer in given.items():
        expect(isinstance(answer, int | float), f"({key}) is no number yet")
    wrong = [key for key, answer in given.items() if not abs(answer - GAPS[key]) < 0.02]
    others = [f"({key})" for key in wrong if key != letter]
    also = f"; not right either: {', '.join(others)}" if others else "; the others are right"
    expect(letter not in wrong, f"your answer to ({letter}) is {given[letter]:g}{also}")


@predicted_gaps.must(
    "(a) is what a longer query gives",
    hint="What happens to each of the two scores if all numbers of the query are multiplied by 3?",
)
def _(candidate):
    _expect_gap(candidate, "a")


@predicted_gaps.must(
    "(b) is what shorter keys give",
    hint="Halve the keys, and write both dot products down again.",
)
def _(candidate):
    _expect_gap(candidate, "b")


@predicted_gaps.must(
    "(c) is what a shift of all keys gives",
    hint=(
        "Compute q · (5, −1). In how many of the two scores does it turn up?",
        "What does a softmax do with a number that is added to all scores of a query?",
    ),
)
def _(candidate):
    _expect_gap(candidate, "c")


@predicted_gaps.must(
    "(d) is what a shift of the query gives",
    hint="The gap is q · (k₀ − k₁). What is q now?",
)
def _(candidate):
    _expect_gap(candidate, "d")


@predicted_gaps.must(
    "(e) is what doubled features give",
    hint=(
        "The sum has each product twice now. By what is it divided, with four features?",
        "The root of 4 divides a sum that has doubled. Are features that repeat each other independent?",
    ),
)
def _(candidate):
    _expect_gap(candidate, "e")


# Additive scores --------------------------------------------------------------------------------

my_additive_scores = Check("my_additive_scores")


def _parts(*batch: int, n: int = 3, m: int = 4) -> tuple[torch.Tensor, ...]:
    """Queries of 5 numbers, keys of 2, and the three weights for 6 hidden units."""
    queries, keys = torch.randn(*batch, n, 5), torch.randn(*batch, m, 2)
    return queries, keys, torch.randn(5, 6), torch.randn(2, 6), torch.randn(6)


@my_additive_scores.must(
    "there is one score for each query and each key",
    hint=(
        "What are the shapes of queries @ w_q and keys @ w_k? Every row of the one has to meet every row of "
        "the other.",
        "An axis of size 1 in the right place lets (n, 1, h) and (1, m, h) broadcast.",
    ),
)
def _(candidate):
    expect_shape(candidate(*_parts()), (3, 4))


@my_additive_scores.must(
    "the example comes out as by hand",
    hint=(
        "For the first key the sum is (0, 1). Where does the tanh stand, and what does w do with its two numbers?",
        "A score is neither scaled nor normalized. Does anything follow the product with w?",
    ),
)
def _(candidate):
    queries, keys = torch.tensor([[0.5]]), torch.tensor([[1.0, -0.5], [0.0, 0.5]])
    w_q, w_k = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    expected = torch.tensor([[-math.tanh(1), math.tanh(1)]])
    expect_close(candidate(queries, keys, w_q, w_k, torch.tensor([1.0, -1.0])), expected, "by hand")


@my_additive_scores.must(
    "each score is that of its own pair",
    hint="Compute one entry alone, from one row of the queries and one of the keys. Is it at (query, key)?",
)
def _(candidate):
    queries, keys, w_q, w_k, w = _parts(n=4, m=4)
    scores = expect_shape(candidate(queries, keys, w_q, w_k, w), (4, 4))
    for i, j in ((0, 0), (1, 3), (3, 1)):
        alone = (queries[i] @ w_q + keys[j] @ w_k).tanh() @ w
        expect_close(scores[i, j], alone, f"query {i} and key {j}")


@my_additive_scores.must(
    "it works for a batch as for one sequence",
    hint="Count the new axis from the end: unsqueeze(-2), not [:, None].",
)
def _(candidate):
    queries, keys, *weights = _parts(2)
    together = expect_shape(candidate(queries, keys, *weights), (2, 3, 4)).detach()
    for i in range(2):
        expect_close(candidate(queries[i], keys[i], *weights), together[i], f"sequence {i} alone")


@my_additive_scores.must(
    "gradients reach queries, keys and weights",
    hint="Which line leaves the graph: a detach, .item(), or a new tensor that collects the results?",
)
def _(candidate):
    parts = [part.requires_grad_() for part in _parts()]
    scores = expect_shape(candidate(*parts), (3, 4))
    expect(scores.requires_grad, "no gradient arrives anywhere")
    scores.sum().backward()
    names = ("queries", "keys", "w_q", "w_k", "w")
    missing = [name for name, part in zip(names, parts, strict=True) if part.grad is None]
    expect(not missing, f"no gradient reaches {', '.join(missing)}")


# Attention in pieces ----------------------------------------------------------------------------

attention_in_pieces = Check("attention in pieces")


def _additive():
    """A scoring function that records how many queries it sees at once."""
    w_q, w_k, w_v = torch.randn(3, 5), torch.randn(4, 5), torch.randn(5)

    def score(queries, keys):
        score.seen.append(queries.shape[-2])
        added = (queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)
        return added.tanh() @ w_v

    score.seen = []
    return score


def _call(num_queries):
    return torch.randn(2, num_queries, 3), torch.randn(2, 6, 4), torch.randn(2, 6, 2), _additive()


def _at_once(queries, keys, values, score):
    return score(queries, keys).softmax(dim=-1) @ values


@attention_in_pieces.must(
    "it equals attention over all queries at once",
    hint="Each piece of queries needs all the keys. Along which axis are the outputs joined?",
)
def _(candidate):
    call = _call(6)
    expect_close(candidate(*call, 3), _at_once(*call), "6 queries in pieces of 3")


@attention_in_pieces.must(
    "the last piece may be shorter",
    hint="7 queries in pieces of 3 are 3, 3 and 1. What happens to the last one?",
)
def _(candidate):
    call = _call(7)
    for chunk in (3, 10):
        expect_close(candidate(*call, chunk), _at_once(*call), f"7 queries in pieces of {chunk}")


@attention_in_pieces.must(
    "never more than `chunk` queries are scored at once",
    hint="Which lines run before the queries are split? Are the pieces as large as permitted?",
)
def _(candidate):
    *tensors, score = _call(7)
    candidate(*tensors, score, 2)
    expect(bool(score.seen), "the scoring function was never called")
    expect(
        max(score.seen) <= 2, f"{max(score.seen)} queries were scored at once; expected at most 2"
    )
    expect(
        len(score.seen) <= 4, f"{len(score.seen)} calls for 7 queries in pieces of 2; expected 4"
    )


@attention_in_pieces.must(
    "gradients flow through it",
    hint="Which line leaves the graph: a detach, or a new tensor that collects the results?",
)
def _(candidate):
    call = _call(5)
    call[1].requires_grad_()
    (expected,) = torch.autograd.grad(_at_once(*call).sum(), call[1])
    outputs = expect_shape(candidate(*call, 2), (2, 5, 2))
    expect(outputs.requires_grad, "no gradient reaches the keys")
    (actual,) = torch.autograd.grad(outputs.sum(), call[1])
    expect_close(actual, expected, "gradient of the keys")
