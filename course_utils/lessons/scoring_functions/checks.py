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


@fixed_gaussian_weights.must("the weights of each query sum to 1")
def _(candidate):
    """What makes weights of scores, and over which axis does a query compare its keys?"""
    expect_sums_to_one(candidate(torch.randn(4, 4), torch.randn(4, 4)), (4, 4))


@fixed_gaussian_weights.must("keys at equal distance from a query get equal weights")
def _(candidate):
    """By hand, q·k − ½‖k‖² is 2 for each of the keys (1, 1), (2, 2) and (0, 2). Which three numbers does your
    softmax get?

    Which shape has the term in ‖k‖², and along which axis does it then differ?
    """
    queries = torch.tensor([[1.0, 2.0]]).repeat(3, 1)
    keys = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 2.0]])  # all at distance 1
    weights = expect_shape(candidate(queries, keys), (3, 3)).detach()
    shown = ", ".join(f"{weight:.2f}" for weight in weights[0].tolist())
    expect_close(weights, torch.full((3, 3), 1 / 3), f"query (1, 2): {shown}; expected 0.33 each")


@fixed_gaussian_weights.must("the weights are those of the Gaussian kernel of width 1")
def _(candidate):
    """Compare with cu.kernel_weights(queries, keys) entry by entry. Is your kernel as wide?"""
    queries, keys = torch.randn(5, 3), torch.randn(8, 3)
    expect_close(candidate(queries, keys), kernel_weights(queries, keys), "random keys")


@fixed_gaussian_weights.must("the weights stay finite far from the origin")
def _(candidate):
    """The exponential of 1,800 is infinite in float32. Which function normalizes without computing it?"""
    queries = torch.tensor([[60.0, 0.0], [0.0, 60.0]])
    keys = torch.tensor([[59.0, 0.0], [60.0, 1.5], [0.0, 59.0]])
    expected = kernel_weights(queries, keys)
    expect_close(candidate(queries, keys), expected, "points 60 from the origin")


@fixed_gaussian_weights.must("no vector is kept for each pair")
def _(candidate):
    """Which shape has queries[:, None] - keys? Which matrix product holds all q·k at once?"""
    size = 64
    queries, keys = (torch.randn(size, size, requires_grad=True) for _ in range(2))
    each = numbers_kept(candidate, queries, keys) / size**2
    expect(each < 8, f"{each:.0f} numbers for each pair of {size}; a product needs about 3")


@fixed_gaussian_weights.must(
    "it is made of the matrix product, not of distances that PyTorch computes"
)
def _(candidate):
    """`torch.cdist` is right, and hides the three terms. Which of them does the matrix product hold?"""
    called = calls(candidate, torch.randn(2, 3), torch.randn(4, 3))
    asked = {"cdist", "pairwise_distance", "dist"}.intersection(called)
    expect(not asked, f"it calls {', '.join(asked)}")


fixed_gaussian_weights.must_pass_gradients(
    kernel_weights,
    lambda: {"queries": torch.randn(5, 3), "keys": torch.randn(8, 3)},
    "Does a `detach()` or a `torch.no_grad()` keep a part of the formula from the way back?",
    "the gradients are those of the Gaussian kernel",
)

# Additive scores --------------------------------------------------------------------------------

my_additive_scores = Check(
    "my_additive_scores", forbids=["additive_scores", "AdditiveAttention.scores"]
)


def _parts(*batch: int, n: int = 3, m: int = 4) -> tuple[torch.Tensor, ...]:
    """Queries of 5 numbers, keys of 2, and the three weights for 6 hidden units."""
    queries, keys = torch.randn(*batch, n, 5), torch.randn(*batch, m, 2)
    return queries, keys, torch.randn(5, 6), torch.randn(2, 6), torch.randn(6)


@my_additive_scores.must("there is one score for each query and each key")
def _(candidate):
    """Every row of queries @ w_q has to meet every row of keys @ w_k. Which axes has their sum, and what removes
    the last one?

    An axis of size 1 in the right place lets (n, 1, h) and (1, m, h) broadcast.
    """
    expect_shape(candidate(*_parts()), (3, 4))


@my_additive_scores.must("the example comes out as by hand")
def _(candidate):
    """For the first key the sum is (0, 1). Where does the tanh stand, and what does w do with its two numbers?

    A score is neither scaled nor normalized. Does anything follow the product with w?
    """
    queries, keys = torch.tensor([[0.5]]), torch.tensor([[1.0, -0.5], [0.0, 0.5]])
    w_q, w_k = torch.tensor([[1.0, 0.0]]), torch.tensor([[0.0, 1.0], [1.0, 0.0]])
    expected = torch.tensor([[-math.tanh(1), math.tanh(1)]])
    expect_close(candidate(queries, keys, w_q, w_k, torch.tensor([1.0, -1.0])), expected, "by hand")


@my_additive_scores.must("each score is that of its own pair")
def _(candidate):
    """Compute one entry alone, from one row of the queries and one of the keys. Is it at (query, key)?"""
    queries, keys, w_q, w_k, w = _parts(n=4, m=4)
    scores = expect_shape(candidate(queries, keys, w_q, w_k, w), (4, 4))
    for i, j in ((0, 0), (1, 3), (3, 1)):
        alone = (queries[i] @ w_q + keys[j] @ w_k).tanh() @ w
        expect_close(scores[i, j], alone, f"query {i} and key {j}")


@my_additive_scores.must("more queries and keys take no more steps")
def _(candidate):
    """A loop over queries or keys takes a step for each. Which two axes of size 1 make all sums at once?"""
    few, many = (calls(candidate, *_parts(n=n, m=m)).total() for n, m in ((2, 3), (5, 8)))
    expect(many == few, f"{few} calls of PyTorch for 2 queries and 3 keys, {many} for 5 and 8")


@my_additive_scores.must("it works for a batch as for one sequence")
def _(candidate):
    """With a batch the first axis is not that of the queries. From which end can axes be counted?"""
    queries, keys, *weights = _parts(2)
    together = expect_shape(candidate(queries, keys, *weights), (2, 3, 4)).detach()
    for i in range(2):
        expect_close(candidate(queries[i], keys[i], *weights), together[i], f"sequence {i} alone")


my_additive_scores.must_pass_gradients(
    additive_scores,
    lambda: dict(zip(("queries", "keys", "w_q", "w_k", "w"), _parts(), strict=True)),
    "Which line leaves the graph: a detach, .item(), or a new tensor that collects the results?",
    "gradients reach queries, keys and weights",
)
