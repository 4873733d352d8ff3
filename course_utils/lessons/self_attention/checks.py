"""Checks of *Self-attention*: from embeddings to answers, a forbidden link, a test for order, and costs on paper.

The references are sums written out.
"""

import math

import torch
from torch import Tensor

from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_close, expect_equal, expect_shape
from course_utils.kit.on_paper import on_paper
from course_utils.masks import causal_mask
from course_utils.positions import sinusoidal_table

# Self-attention ---------------------------------------------------------------------------------

self_attention = Check(forbids=["scaled_dot_product_attention"])


def _matrices(M: int = 6, d: int = 4, d_v: int = 3) -> tuple[Tensor, Tensor, Tensor]:
    return torch.randn(M, d), torch.randn(M, d), torch.randn(M, d_v)


def _word_by_word(X: Tensor, W_q: Tensor, W_k: Tensor, W_v: Tensor) -> Tensor:
    """Self-attention one word after the other: (words, M) → (words, d_v)."""
    answers = []
    for word in X:
        scores = torch.stack([(word @ W_q) @ (other @ W_k) for other in X])
        weights = (scores / math.sqrt(W_q.shape[1])).softmax(-1)
        answers.append(sum(a * (other @ W_v) for a, other in zip(weights, X, strict=True)))
    return torch.stack(answers)


@self_attention.must("gives five answers of size 3 for five words and a W_V of size (6, 3)")
def gives_one_answer_per_word_of_size_of_value(candidate):
    """Words are rows. On which side of each matrix does X go? Write the shapes below your products, and see which
    axes meet.
    """
    answers = candidate(torch.randn(5, 6), *_matrices())
    hint = "What do the weights mix? Not the words themselves but their values, X times W_V."
    expect(getattr(answers, "shape", None) != (5, 6), "got shape (5, 6), expected (5, 3)", hint)
    hint = "What do you return? One number for each pair of words is a weight, and weights mix the values."
    expect(getattr(answers, "shape", None) != (5, 5), "got shape (5, 5), expected (5, 3)", hint)
    expect_shape(answers, (5, 3))


@self_attention.must("gives the mean of the values if W_Q = 0")
def gives_mean_of_values_if_queries_are_0(candidate):
    """Equal scores give equal weights. Along which axis do yours sum to 1? Each query shares its weight among the
    keys.
    """
    X, (W_q, W_k, W_v) = torch.randn(5, 6), _matrices()
    expected = (X @ W_v).mean(0).expand(5, 3)
    answers = expect_shape(candidate(X, 0 * W_q, W_k, W_v), (5, 3))
    late = torch.allclose(answers * math.sqrt(4), expected, atol=1e-5)  # d = 4
    hint = "Do you divide by √d after the softmax? Then the weights no longer sum to 1, so divide the scores."
    expect_close(answers, expected, "the answers with W_Q = 0", hint=hint if late else "")


@self_attention.must("gives each query a row of the scores")
def gives_each_query_row_of_scores(candidate):
    """A row of the scores belongs to one query. Does your softmax run along it, over the keys? If so, look at which
    factor you transpose, because entry (i, j) is query i times key j.
    """
    W_q = torch.tensor([[90.0, 0.0], [90.0, 0.0]])
    expected = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    answers = candidate(torch.eye(2), W_q, torch.eye(2), torch.eye(2))
    expect_close(answers, expected, "two words that both look for the first")


@self_attention.must("divides the scores by √d, where d is the size of a query")
def divides_scores_by_root_d_where_d_is_size_of_query(candidate):
    """By what do you divide? Take d from the last axis of the queries, not of X, and divide before the softmax."""
    X, matrices = torch.randn(5, 6), _matrices(d=2)
    expected = _word_by_word(X, *matrices)
    expect_close(candidate(X, *matrices), expected, "six features, d = 2")


@self_attention.must("answers the sentences of a batch one by one")
def answers_sentences_of_batch_one_by_one(candidate):
    """What do `.T` and `dim=1` mean when there are more axes in front? Count axes from the end, with `mT` and
    `dim=-1`.
    """
    X, (W_q, *others) = torch.randn(2, 3, 4, 6), _matrices()

    def one_by_one(W_q: Tensor) -> Tensor:
        rows = [_word_by_word(x, W_q, *others) for x in X.flatten(0, 1)]
        return torch.stack(rows).view(2, 3, 4, 3)

    answers, hint = candidate(X, W_q, *others), ""
    of_axis_1 = one_by_one(
        W_q * math.sqrt(W_q.shape[-1] / X.shape[1])
    )  # the scale, with d from axis 1
    if getattr(answers, "shape", None) == of_axis_1.shape and torch.allclose(
        answers, of_axis_1, atol=1e-5
    ):
        hint = "Where does your d come from? `shape[1]` is an axis in front here, `shape[-1]` the last."
    expect_close(answers, one_by_one(W_q), "sentences in two more axes", hint=hint)


# One forbidden link -----------------------------------------------------------------------------

all_but_one = Check()


@all_but_one.must("returns a boolean mask of shape (n, n)")
def returns_boolean_mask_of_shape(candidate):
    """How many queries and keys do n tokens have? Build the mask with `torch.ones(n, n, dtype=torch.bool)`."""
    mask = candidate(4, 1, 2)
    expect_shape(mask, (4, 4))
    expect_equal(mask.dtype, torch.bool, "the mask's dtype")


@all_but_one.must("forbids the link from the query to the key")
def forbids_link_from_query_to_key(candidate):
    """False forbids. Which entry did you set to False? The queries are the rows, so it is `mask[query, key]`."""
    mask = candidate(4, 1, 2)
    hint = "False forbids, and True permits. How many links does your mask permit? Turn it around."
    alone = bool(mask[1, 2]) and int(mask.sum()) == 1
    expect(not alone, "the mask permits one link and forbids the 15 others", hint)
    expect_equal(bool(mask[1, 2]), False, "the entry in row 1, column 2")
    expect_equal(bool(candidate(6, 5, 0)[5, 0]), False, "the entry in row 5, column 0")


@all_but_one.must("permits every other link")
def permits_every_other_link(candidate):
    """How many entries of your mask are False? Only the one link is; the other queries may still attend to this key."""
    expect_equal(int(candidate(4, 1, 2).sum()), 15, "the number of permitted links of four tokens")
    expect_equal(int(candidate(6, 3, 3).sum()), 35, "the number of permitted links of six tokens")


# Does a layer ignore the order? -----------------------------------------------------------------

fixed_order_test = Check()


def _attend(x, mask=None):
    scores = x @ x.transpose(-2, -1) / math.sqrt(x.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1) @ x


def _expect_verdict(candidate, layer, x, expected: bool, what: str, hint: str = ""):
    verdict = candidate(layer, x)
    kind = type(verdict).__name__
    make_bool = "What does your comparison return? `bool(…)` makes True or False of a tensor."
    expect(isinstance(verdict, bool), f"got {kind}, expected True or False", make_bool)
    expect(verdict == expected, f"{what}: got {verdict}, expected {expected}", hint)


@fixed_order_test.must("says that plain self-attention ignores the order")
def says_that_plain_self_attention_ignores_order(candidate):
    """Do you compare the outputs in the same order? If we permute the words, axis 1, the outputs come out permuted as
    well, so put one of the two into the order of the other.
    """
    x = torch.randn(2, 6, 4)
    _expect_verdict(candidate, lambda x: 2 * x, x, True, "a layer that doubles each word")
    _expect_verdict(candidate, _attend, x, True, "plain self-attention", _TOO_STRICT)


_TOO_STRICT = "Is your comparison too strict? Sums in another order differ in the last digits: allow a tolerance."


@fixed_order_test.must("forgives rounding errors")
def forgives_rounding_errors(candidate):
    """Is your comparison too strict? Sums in another order differ in the last digits, so allow a small tolerance."""

    def layer(x):
        return 100 * _attend(x)

    _expect_verdict(candidate, layer, torch.randn(2, 60, 48), True, "self-attention over 60 words")


@fixed_order_test.must("notices positions in the input")
def notices_positions_in_input(candidate):
    """Does the layer really see another order of words? They are along axis 1. If so, check that your tolerance isn't
    too generous.
    """

    def layer(x):
        return _attend(x + sinusoidal_table(x.shape[1], x.shape[2]))

    def faint(x):
        return _attend(x) + 0.01 * torch.arange(x.shape[1])[:, None]

    _expect_verdict(
        candidate, layer, torch.randn(2, 6, 4), False, "self-attention with positions added"
    )
    _expect_verdict(
        candidate, faint, torch.randn(2, 6, 4), False, "0.01 for each position added at the end"
    )


@fixed_order_test.must("notices a causal mask")
def notices_causal_mask(candidate):
    """Do you compare every output? One of them, or a mean over the words, can hide the difference."""

    def layer(x):
        return _attend(x, causal_mask(x.shape[1]))

    _expect_verdict(candidate, layer, torch.randn(2, 6, 4), False, "causal self-attention")


@fixed_order_test.must("notices layers that ignore only some orders")
def notices_layers_that_ignore_only_some_orders(candidate):
    """Which orders do you try? A reversal is only one of many, and so are a cyclic shift and a swap of two words."""

    def mirrored(x):
        position = torch.arange(x.shape[1])
        return _attend(x + torch.minimum(position, position.flip(0))[:, None])

    def in_a_ring(x):
        return x.roll(1, dims=1) + 2 * x + x.roll(-1, dims=1)

    def last_apart(x):
        return torch.cat([x[:, :-1], -x[:, -1:]], dim=1)

    x = torch.randn(2, 9, 4)
    _expect_verdict(candidate, mirrored, x, False, "positions that read the same from both ends")
    _expect_verdict(candidate, in_a_ring, x, False, "a convolution whose ends are joined")
    x = torch.randn(2, 60, 4)
    _expect_verdict(
        candidate, last_apart, x, False, "a layer that changes the sign of the last word"
    )


@fixed_order_test.must("notices a layer that ignores every second order")
def notices_layer_that_ignores_every_second_order(candidate):
    """One order drawn at random may be one that the layer ignores. How many do you draw? With several, that becomes
    unlikely.
    """

    def signed(x):
        return _attend(x) * torch.where(x[:, :1, :1] > x[:, 1:2, :1], 1, -1)

    for _ in range(8):
        x = torch.randn(1, 9, 4)
        _expect_verdict(candidate, signed, x, False, "a sign that only the first two words decide")


@fixed_order_test.must("notices an output that doesn't move with its word")
def notices_output_that_doesnt_move_with_its_word(candidate):
    """If word 5 moves to position 0, where do you look for its output? It should have moved along."""

    def sorting(x):
        return x.sort(dim=1).values

    def constant(x):
        return torch.arange(x.shape[1])[None, :, None].expand(x.shape) + 0 * x

    x = torch.randn(2, 6, 4)
    _expect_verdict(candidate, sorting, x, False, "a layer that sorts its words")
    _expect_verdict(candidate, constant, x, False, "a layer that returns each word's position")


# Whose old car? ---------------------------------------------------------------------------------

whose_old_car = on_paper({
    "a": (0.4, "the weight of “amigo”",
         "The products aren't the scores yet. By what do we divide them? Then all eight words count.",
         "The scores are ln 6, ln 3, and six times 0, so the exponentials are 6, 3, and six times 1."),
    "b": (0.2, "the weight of “Ana”",
         "The row is the same as in (a). Which sum do its exponentials have? Divide the one of “Ana” by it."),
    "c": (0.6, "how much “her” is in the answer",
         "Weights come from keys, and the keys are the same. Whose values are (0, 1) now? Add up their weights."),
    "d": (0.5, "the weight of “amigo”, with “Ana” forbidden",
         "What is the sum of the exponentials without “Ana”? A mask works before the softmax, so the others "
         "share the whole weight."),
})  # fmt: skip

# Six costs on paper -------------------------------------------------------------------------------

predicted_costs = on_paper({
    "a": (1920, "the multiply-adds of the convolution",
         "How many products of a word with an 8 × 8 matrix does one output take? One for each word that it "
         "reads.",
         "Each of the 10 outputs reads 3 words, and each word times a matrix is 8 · 8 multiply-adds."),
    "b": (1280, "the multiply-adds of the recurrence",
         "What does one step read? The word and the state before it, each times a matrix of its own.",
         "The word times W_x and the state times W_h, 8 · 8 each, for 10 words."),
    "c": (3520, "the multiply-adds of self-attention",
         "Which five matrix products does it take? Write down their shapes, three for the projections and two "
         "for the attention.",
         "Three times (10, 8) by (8, 8), for the scores (10, 8) by (8, 10), to mix (10, 10) by (10, 8)."),
    "d": (10, "the products that wait in the recurrence",
         "Which products can we compute before any state is known? The others wait for each other.",
         "We compute all x W_x at once, and at the same time the product of the zero state. Then nine states "
         "wait in turn."),
    "e": (3, "the products that wait in self-attention",
         "Do the three projections wait for each other? Go through the five products of (c) and see what each "
         "of them needs.",
         "One product needs the queries, and one needs the weights."),
    "f": (5, "the layers of the convolution",
         "From the last word to the first it is 9 words back. How far back does one layer read? Divide, and "
         "mind the remainder.",
         "It reads k − 1 = 2 words back, so four layers reach 8 words back."),
})  # fmt: skip
