"""Checks of *Scoring functions*: Gaussian weights, additive scores."""

import math

import torch

from course_utils.kit.check import (
    Check,
    expect,
    expect_close,
    expect_shape,
    expect_sums_to_one,
)
from course_utils.kit.tracing import calls
from course_utils.lessons.scoring_functions.scores import additive_scores, numbers_kept
from course_utils.pooling import kernel_weights

# Gaussian weights by one matrix product ---------------------------------------------------------

fixed_gaussian_weights = Check("fixed_gaussian_weights", forbids=["gaussian_weights"])


@fixed_gaussian_weights.must("gives each query weights that sum to 1")
def _(candidate):
    """A query compares its keys, so over which axis does it share its weight? That is the axis for your softmax."""
    expect_sums_to_one(candidate(torch.randn(4, 4), torch.randn(4, 4)), (4, 4))


@fixed_gaussian_weights.must("gives equal weights to keys at the same distance from a query")
def _(candidate):
    """By hand, q·k − ½‖k‖² is 2 for each of the keys (1, 1), (2, 2) and (0, 2). Which three numbers does your softmax
    get? Print them, they should be equal.

    Which shape does the term in ‖k‖² have? It should differ along the axis of the keys, and only there.
    """
    queries = torch.tensor([[1.0, 2.0]]).repeat(3, 1)
    keys = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 2.0]])  # all at distance 1
    weights = expect_shape(candidate(queries, keys), (3, 3)).detach()
    expect_close(weights, torch.full((3, 3), 1 / 3), "the weights of the query (1, 2)")


@fixed_gaussian_weights.must("equals the Gaussian kernel of width 1")
def _(candidate):
    """Is your kernel as wide as it should be? Compare with `cu.kernel_weights(queries, keys)` entry by entry."""
    queries, keys = torch.randn(5, 3), torch.randn(8, 3)
    expect_close(candidate(queries, keys), kernel_weights(queries, keys), "random keys")


@fixed_gaussian_weights.must("stays finite far from the origin")
def _(candidate):
    """The exponential of 1,800 is infinite in float32. Which function normalizes without computing it? It subtracts
    the largest score first.
    """
    queries = torch.tensor([[60.0, 0.0], [0.0, 60.0]])
    keys = torch.tensor([[59.0, 0.0], [60.0, 1.5], [0.0, 59.0]])
    expected = kernel_weights(queries, keys)
    expect_close(candidate(queries, keys), expected, "points 60 from the origin")


@fixed_gaussian_weights.must("keeps no vector for each pair of points")
def _(candidate):
    """Which shape does `queries[:, None] - keys` have? It holds a vector for each pair; a matrix product gives all
    q·k without it.
    """
    size = 64
    queries, keys = (torch.randn(size, size, requires_grad=True) for _ in range(2))
    each = numbers_kept(candidate, queries, keys) / size**2
    expect(
        each < 8,
        f"{each:.0f} numbers are kept for each of the {size} · {size} pairs, expected about 3",
    )


@fixed_gaussian_weights.must("uses the matrix product, not PyTorch's distances")
def _(candidate):
    """`torch.cdist` is right, but it hides the three terms of the distance. Which of them does the matrix product
    hold? Write out the others.
    """
    called = calls(candidate, torch.randn(2, 3), torch.randn(4, 3))
    asked = {"cdist", "pairwise_distance", "dist"}.intersection(called)
    expect(not asked, f"it calls {', '.join(asked)}")


fixed_gaussian_weights.must_pass_gradients(
    kernel_weights,
    lambda: {"queries": torch.randn(5, 3), "keys": torch.randn(8, 3)},
    "Does a step cut off the way back for a part of the formula? Look for a `detach()` or a `torch.no_grad()`.",
    "passes on the gradients of the Gaussian kernel",
)

# Additive scores --------------------------------------------------------------------------------

my_additive_scores = Check(
    "my_additive_scores", forbids=["additive_scores", "AdditiveAttention.scores"]
)


def _parts(*batch: int, n: int = 3, m: int = 4) -> tuple[torch.Tensor, ...]:
    """Queries of 5 numbers, keys of 2, and the three weights for 6 hidden units."""
    queries, keys = torch.randn(*batch, n, 5), torch.randn(*batch, m, 2)
    return queries, keys, torch.randn(5, 6), torch.randn(2, 6), torch.randn(6)


@my_additive_scores.must("gives one score for each query and each key")
def _(candidate):
    """Every row of `queries @ w_q` meets every row of `keys @ w_k`. Which axes does their sum have? The product with
    w then removes the last one.

    An axis of size 1 in the right place lets (n, 1, h) and (1, m, h) broadcast.
    """
    expect_shape(candidate(*_parts()), (3, 4))


@my_additive_scores.must("gives the scores of the example by hand")
def _(candidate):
    """For the first key the sum is (0, 1). Which two numbers does the tanh make of it? Multiply them by w and add,
    and compare with your score.

    A score is neither scaled nor normalized, so nothing follows the product with w.
    """
    queries, keys = torch.tensor([[0.5]]), torch.tensor([[1.0, -0.5], [0.0, 0.5]])
    w_q, w_k = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    expected = torch.tensor([[-math.tanh(1), math.tanh(1)]])
    expect_close(candidate(queries, keys, w_q, w_k, torch.tensor([1.0, -1.0])), expected, "by hand")


@my_additive_scores.must("gives each pair its own score")
def _(candidate):
    """Is the score of query i and key j at (i, j)? Compute one entry separately, from one row of the queries and one
    of the keys.
    """
    queries, keys, w_q, w_k, w = _parts(n=4, m=4)
    scores = expect_shape(candidate(queries, keys, w_q, w_k, w), (4, 4))
    for i, j in ((0, 0), (1, 3), (3, 1)):
        alone = (queries[i] @ w_q + keys[j] @ w_k).tanh() @ w
        expect_close(scores[i, j], alone, f"query {i} and key {j}")


@my_additive_scores.must("takes no more steps for more queries and keys")
def _(candidate):
    """Does a loop run over queries or keys? Two axes of size 1 make all the sums at once."""
    few, many = (calls(candidate, *_parts(n=n, m=m)).total() for n, m in ((2, 3), (5, 8)))
    expect(many == few, f"{few} calls of PyTorch for 2 queries and 3 keys, but {many} for 5 and 8")


@my_additive_scores.must("works for a batch as it does for one sequence")
def _(candidate):
    """With a batch the first axis doesn't belong to the queries. From which end should you count the axes? Negative
    numbers count from the last.
    """
    queries, keys, *weights = _parts(2)
    together = expect_shape(candidate(queries, keys, *weights), (2, 3, 4)).detach()
    for i in range(2):
        expect_close(candidate(queries[i], keys[i], *weights), together[i], f"sequence {i} alone")


my_additive_scores.must_pass_gradients(
    additive_scores,
    lambda: dict(zip(("queries", "keys", "w_q", "w_k", "w"), _parts(), strict=True)),
    "Which line leaves the graph? Look for a `detach()`, an `.item()`, or a new tensor that collects the results.",
    "lets gradients reach queries, keys and weights",
)
