"""Checks: scores, masks, masked softmax and attention in pieces."""

import math

import torch

from course_utils.lessons.check import Check, expect, expect_close, expect_shape
from course_utils.pooling import kernel_weights

# Gaussian weights by one matrix product ---------------------------------------------------------


gaussian_by_product = Check("Gaussian weights by one matrix product")


@gaussian_by_product.must(
    "there is one weight for each pair of a query and a key",
    hint=(
        "queries @ keys.T pairs each query with each key; what is due once per key has to "
        "broadcast over the queries"
    ),
)
def _(candidate):
    expect_shape(candidate(torch.randn(3, 5), torch.randn(7, 5)), (3, 7))


@gaussian_by_product.must(
    "the weights of each query sum to 1", hint="over which axis does a query compare its keys?"
)
def _(candidate):
    weights = candidate(torch.randn(4, 5), torch.randn(6, 5))
    expect_shape(weights, (4, 6))
    expect_close(weights.sum(dim=-1), torch.ones(4), "sums of the rows")


@gaussian_by_product.must(
    "keys at equal distance from a query get equal weights",
    hint=(
        "one of the three terms in the expansion must not be dropped here, and its factor and "
        "sign matter; take the query (1, 2) and compute both scores with a pencil"
    ),
)
def _(candidate):
    query = torch.tensor([[1.0, 2.0]])
    keys = torch.tensor([[1.0, 1.0], [2.0, 2.0], [0.0, 2.0]])  # all at distance 1
    expect_close(candidate(query, keys), torch.full((1, 3), 1 / 3), "three keys at distance 1")


@gaussian_by_product.must(
    "the weights are those of the Gaussian kernel of width 1",
    hint="compare with cu.kernel_weights(queries, keys) entry by entry: is the kernel as wide?",
)
def _(candidate):
    queries, keys = torch.randn(5, 3), torch.randn(8, 3)
    expect_close(candidate(queries, keys), kernel_weights(queries, keys), "random keys")


@gaussian_by_product.must(
    "the weights stay finite far from the origin",
    hint="the exponential of 1,800 is infinite; softmax takes care of that, exp and a division do not",
)
def _(candidate):
    queries = torch.tensor([[60.0, 0.0], [0.0, 60.0]])
    keys = torch.tensor([[59.0, 0.0], [60.0, 1.5], [0.0, 59.0]])
    expect_close(
        candidate(queries, keys), kernel_weights(queries, keys), "points 60 from the origin"
    )


# A padding mask and a causal mask in one --------------------------------------------------------


decoder_mask = Check("decoder mask")


@decoder_mask.must(
    "the mask is boolean with axes (batch, 1, queries, keys)",
    hint="a boolean & combines two masks and broadcasts; which axis lets one mask serve all heads?",
)
def _(candidate):
    mask = candidate(torch.tensor([2, 4]), 4)
    expect_shape(mask, (2, 1, 4, 4))
    expect(mask.dtype == torch.bool, f"the mask has dtype {mask.dtype}; torch.bool is due")


@decoder_mask.must(
    "a position may attend to itself", hint="is the diagonal of the causal mask True?"
)
def _(candidate):
    mask = candidate(torch.tensor([4]), 4)
    expect_shape(mask, (1, 1, 4, 4))
    expect(bool(mask[0, 0].diagonal().all()), "some position of a full sequence may not see itself")


@decoder_mask.must(
    "no position attends to a later one",
    hint="query i, key j: for which of j < i, j = i, j > i may it look? Queries go down, keys go right",
)
def _(candidate):
    mask = candidate(torch.tensor([4, 3]), 4)
    expect_shape(mask, (2, 1, 4, 4))
    future = mask & torch.ones(4, 4, dtype=torch.bool).triu(1)
    expect(not future.any(), "some position may see a later one")


@decoder_mask.must(
    "no position attends to padding",
    hint="a pair has to be permitted by both masks, and the lengths bound the keys",
)
def _(candidate):
    mask = candidate(torch.tensor([2, 4, 0]), 4)
    expect_shape(mask, (3, 1, 4, 4))
    expect(
        not mask[0, 0, :, 2:].any() and not mask[2].any(), "some position may see a padding token"
    )


@decoder_mask.must(
    "everything else is permitted",
    hint=(
        "count for length 3 of 5: queries 0 to 4 may see 1, 2, 3, 3, 3 keys; padded queries "
        "count as well, since their output is discarded later"
    ),
)
def _(candidate):
    mask = candidate(torch.tensor([3, 5, 1]), 5)
    expect_shape(mask, (3, 1, 5, 5))
    counts = mask.sum(dim=(1, 2, 3))
    expect(
        counts.tolist() == [12, 15, 5],
        f"lengths 3, 5 and 1 of 5 permit {counts.tolist()} pairs; [12, 15, 5] is due",
    )


# Masked softmax ---------------------------------------------------------------------------------

_MASK = torch.tensor([[True, True, False, False], [True, False, True, True]])


masked_softmax = Check("masked softmax")


@masked_softmax.must(
    "permitted keys share the weight as in a softmax over them alone",
    hint="exponentials 1, 2, 3, 4 with the first two permitted give 1/3, 2/3, 0, 0; True = may attend",
)
def _(candidate):
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]]).log()
    expected = torch.tensor([[1 / 3, 2 / 3, 0, 0], [1 / 8, 0, 3 / 8, 4 / 8]])
    expect_close(candidate(scores, _MASK), expected, "exponentials 1, 2, 3, 4")


@masked_softmax.must(
    "the mask broadcasts to the scores",
    hint="scores (batch, heads, queries, keys) come with masks such as (batch, 1, 1, keys)",
)
def _(candidate):
    scores = torch.randn(2, 3, 5, 4)
    mask = torch.tensor([[True, True, False, False], [True, True, True, False]])[:, None, None, :]
    expected = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    expect_close(candidate(scores, mask), expected, "a mask (batch, 1, 1, keys) for several heads")


@masked_softmax.must(
    "the caller's scores are not changed",
    hint="functions that end in an underscore and assignments with [] write into the caller's memory",
)
def _(candidate):
    scores = torch.randn(2, 4)
    before = scores.clone()
    candidate(scores, _MASK)
    expect(torch.equal(scores, before), "the scores are other after the call than before")


@masked_softmax.must(
    "scores of any size are fine",
    hint=(
        "what does exp(score − largest score) become if the largest score belongs to a forbidden key? "
        "Exclude forbidden keys before the softmax"
    ),
)
def _(candidate):
    for shift in (-2e6, 2e6):
        scores = torch.tensor([[0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 2.0]])
        scores = scores + shift * _MASK
        expected = scores.masked_fill(~_MASK, -math.inf).softmax(dim=-1)
        expect_close(candidate(scores, _MASK), expected, f"permitted scores near {shift:g}")


@masked_softmax.must(
    "half precision is fine",
    hint="float16 ends at 65,504; which number smaller than all others exists in every dtype?",
)
def _(candidate):
    scores = torch.tensor([[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 4.0]])
    weights = candidate(scores.half(), _MASK)
    expect(
        isinstance(weights, torch.Tensor) and weights.dtype == torch.float16,
        "float16 scores give another dtype",
    )
    expected = scores.masked_fill(~_MASK, -math.inf).softmax(dim=-1)
    expect_close(weights, expected, "float16", atol=2e-3)


@masked_softmax.must(
    "a row without any permitted key gives zeros",
    hint="find those rows with mask.any(dim=-1, keepdim=True) and treat them on their own",
)
def _(candidate):
    mask = torch.tensor([[True, True, False], [False, False, False]])
    weights = candidate(torch.zeros(2, 3), mask)
    expect_close(weights, torch.tensor([[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]]), "an empty second row")


@masked_softmax.must(
    "the gradient is finite, also when a row is empty",
    hint=(
        "scores + (−inf) passes gradients on, and NaN with them; the softmax had better never see a row "
        "of nothing but −inf"
    ),
)
def _(candidate):
    scores = torch.randn(2, 3, requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    candidate(scores, mask)[:, 0].sum().backward()
    expect(
        scores.grad is not None and bool(scores.grad.isfinite().all()),
        "the gradient is not finite when a row is empty",
    )


@masked_softmax.must(
    "a NaN score stays visible",
    hint="replacing every NaN hides the day a model breaks; treat only the rows that are empty",
)
def _(candidate):
    weights = candidate(torch.tensor([[0.0, math.nan, 1.0]]), torch.tensor([[True, True, False]]))
    expect_shape(weights, (1, 3))
    expect(bool(weights[0, :2].isnan().all()), "a NaN among the permitted scores was covered up")


# Bilinear scores --------------------------------------------------------------------------------


bilinear_scores = Check("bilinear scores")


@bilinear_scores.must(
    "there is one score for each query and key of a sequence",
    hint="(batch, queries, query_dim) @ (query_dim, key_dim) is a batch of queries in the keys' space",
)
def _(candidate):
    scores = candidate(torch.randn(2, 3, 5), torch.randn(2, 4, 7), torch.randn(5, 7))
    expect_shape(scores, (2, 3, 4))


@bilinear_scores.must(
    "with the identity as M they are dot products",
    hint="no scale is asked for here, and no softmax: scores only",
)
def _(candidate):
    queries, keys = torch.randn(2, 3, 4), torch.randn(2, 5, 4)
    expected = queries @ keys.transpose(1, 2)
    expect_close(candidate(queries, keys, torch.eye(4)), expected, "M = identity")


@bilinear_scores.must(
    "the example comes out as with a pencil",
    hint="q = (1, 2) and M = [[1, 0, 2], [0, 3, 1]]: qᵀM = (1, 6, 4)",
)
def _(candidate):
    queries = torch.tensor([[[1.0, 2.0]]])
    keys = torch.tensor([[[1.0, 0.0, 1.0], [0.0, 1.0, 0.0]]])
    matrix = torch.tensor([[1.0, 0.0, 2.0], [0.0, 3.0, 1.0]])
    expect_close(candidate(queries, keys, matrix), torch.tensor([[[5.0, 6.0]]]), "the example")


@bilinear_scores.must(
    "a sequence's scores do not depend on its batch",
    hint="something was summed or normalized over the batch",
)
def _(candidate):
    queries, keys, matrix = torch.randn(2, 3, 4), torch.randn(2, 5, 6), torch.randn(4, 6)
    whole = candidate(queries, keys, matrix)
    expect_shape(whole, (2, 3, 5))
    for i in range(2):
        alone = candidate(queries[i : i + 1], keys[i : i + 1], matrix)
        expect_close(alone, whole[i : i + 1].detach(), f"sequence {i} alone and in the batch")


# Attention in pieces ----------------------------------------------------------------------------


def _additive(seed: int = 1):
    """A scoring function that records how many queries it sees at once."""
    generator = torch.Generator().manual_seed(seed)
    w_q, w_k, w_v = (torch.randn(shape, generator=generator) for shape in [(3, 5), (4, 5), (5,)])

    def score(queries, keys):
        score.seen.append(queries.shape[-2])
        added = (queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)
        return added.tanh() @ w_v

    score.seen = []
    return score


def _pieces(num_queries: int = 7):
    return torch.randn(2, num_queries, 3), torch.randn(2, 6, 4), torch.randn(2, 6, 2)


attention_in_pieces = Check("attention in pieces")


@attention_in_pieces.must(
    "it equals attention over all queries at once",
    hint="each piece of queries meets all the keys; the outputs are joined along the queries' axis",
)
def _(candidate):
    queries, keys, values = _pieces(6)
    score = _additive()
    expected = score(queries, keys).softmax(dim=-1) @ values
    expect_close(candidate(queries, keys, values, score, 3), expected, "6 queries in pieces of 3")


@attention_in_pieces.must(
    "the last piece may be shorter",
    hint="7 queries in pieces of 3 are 3, 3 and 1; look at torch.split",
)
def _(candidate):
    queries, keys, values = _pieces(7)
    score = _additive()
    expected = score(queries, keys).softmax(dim=-1) @ values
    for chunk in (3, 10):
        expect_close(
            candidate(queries, keys, values, score, chunk),
            expected,
            f"7 queries in pieces of {chunk}",
        )


@attention_in_pieces.must(
    "never more than `chunk` queries are scored at once",
    hint="split the queries before they are scored, into pieces that are as large as permitted",
)
def _(candidate):
    queries, keys, values = _pieces(7)
    score = _additive()
    candidate(queries, keys, values, score, 2)
    expect(bool(score.seen), "the scoring function was never called")
    expect(
        max(score.seen) <= 2, f"{max(score.seen)} queries were scored at once; at most 2 are due"
    )
    expect(len(score.seen) <= 4, f"{len(score.seen)} calls for 7 queries in pieces of 2; 4 are due")


@attention_in_pieces.must(
    "gradients flow through it",
    hint="do not detach, and do not collect results in a tensor that does not follow gradients",
)
def _(candidate):
    queries, keys, values = _pieces(5)
    keys.requires_grad_()
    score = _additive()
    (expected,) = torch.autograd.grad((score(queries, keys).softmax(-1) @ values).sum(), keys)
    outputs = candidate(queries, keys, values, score, 2)
    expect(outputs.requires_grad, "the output is cut off from the keys: no gradient")
    (actual,) = torch.autograd.grad(outputs.sum(), keys)
    expect_close(actual, expected, "gradient of the keys")
