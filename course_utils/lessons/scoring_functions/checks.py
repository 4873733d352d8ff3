"""Checks of *Scoring functions*: Gaussian weights, gaps on paper, additive scores."""

import math

import torch

from course_utils.lessons.check import (
    Check,
    expect,
    expect_close,
    expect_shape,
    expect_sums_to_one,
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
