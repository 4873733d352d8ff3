"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch

# gaussian_by_product ----------------------------------------------------------------------------


def drops_the_keys_term(queries, keys):
    """Scores q·k alone: long keys win."""
    return (queries @ keys.T).softmax(dim=-1)


def wrong_sign_of_the_keys_term(queries, keys):
    """Adds half the squared norm where it has to be subtracted."""
    return (queries @ keys.T + keys.square().sum(-1) / 2).softmax(dim=-1)


def forgets_the_half(queries, keys):
    """Subtracts the squared norm, not half of it."""
    return (queries @ keys.T - keys.square().sum(-1)).softmax(dim=-1)


def keys_term_on_the_wrong_axis(queries, keys):
    """The keys' norms stand in a column, so that they meet the queries' axis."""
    return (queries @ keys.T - keys.square().sum(-1, keepdim=True) / 2).softmax(dim=-1)


def softmax_over_the_queries(queries, keys):
    """Normalizes over the queries, not over the keys."""
    return (queries @ keys.T - keys.square().sum(-1) / 2).softmax(dim=0)


def divides_by_root_d(queries, keys):
    """Scales by 1/√d as well: a Gaussian of another width, right only for equal distances."""
    scores = queries @ keys.T - keys.square().sum(-1) / 2
    return (scores / math.sqrt(queries.shape[-1])).softmax(dim=-1)


def overflows(queries, keys):
    """Exponentials divided by their sum: infinity over infinity for far points."""
    weights = (queries @ keys.T - keys.square().sum(-1) / 2).exp()
    return weights / weights.sum(dim=-1, keepdim=True)


# decoder_mask -----------------------------------------------------------------------------------


def _valid(valid_lens, length):
    return (torch.arange(length) < valid_lens[:, None])[:, None, None, :]


def without_a_head_axis(valid_lens, length):
    """(batch, queries, keys): meets the heads' axis as soon as there are heads."""
    return _valid(valid_lens, length)[:, 0] & torch.ones(length, length, dtype=torch.bool).tril()


def of_zeros_and_infinities(valid_lens, length):
    """A float mask to be added, where a boolean one is asked for."""
    mask = _valid(valid_lens, length) & torch.ones(length, length, dtype=torch.bool).tril()
    return torch.zeros(mask.shape).masked_fill(~mask, -math.inf)


def off_by_one(valid_lens, length):
    """A position does not see itself."""
    return _valid(valid_lens, length) & torch.ones(length, length, dtype=torch.bool).tril(-1)


def sees_one_ahead(valid_lens, length):
    """A position sees the next one."""
    return _valid(valid_lens, length) & torch.ones(length, length, dtype=torch.bool).tril(1)


def or_for_and(valid_lens, length):
    """Permits what one of the two masks permits."""
    return _valid(valid_lens, length) | torch.ones(length, length, dtype=torch.bool).tril()


def causal_only(valid_lens, length):
    """Forgets the lengths."""
    mask = torch.ones(length, length, dtype=torch.bool).tril()
    return mask.expand(len(valid_lens), 1, length, length)


def pads_the_queries_too(valid_lens, length):
    """Forbids padded queries everything: harmless to the loss, but more than was asked for."""
    valid = _valid(valid_lens, length)
    return (
        valid & valid.transpose(-2, -1) & torch.ones(length, length, dtype=torch.bool).tril()
        | torch.eye(length, dtype=torch.bool) & valid
    )


# masked_softmax ---------------------------------------------------------------------------------


def opposite_polarity(scores, attn_mask):
    """True taken for "forbidden"."""
    return scores.masked_fill(attn_mask, -math.inf).softmax(dim=-1)


def softmax_over_queries(scores, attn_mask):
    """Normalizes down the columns."""
    return scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-2)


def zeroes_the_scores(scores, attn_mask):
    """A score of 0 still has the exponential 1."""
    return (scores * attn_mask).softmax(dim=-1)


def multiplies_afterwards(scores, attn_mask):
    """Rows no longer sum to 1."""
    return scores.softmax(dim=-1) * attn_mask


def needs_a_mask_of_full_size(scores, attn_mask):
    """Indexes with the mask, which then has to have the scores' own shape."""
    filled = scores.clone()
    filled[~attn_mask] = -math.inf
    return filled.softmax(dim=-1)


def writes_into_the_scores(scores, attn_mask):
    """masked_fill_ with an underscore changes the caller's tensor."""
    return scores.masked_fill_(~attn_mask, -math.inf).softmax(dim=-1)


def minus_a_million(scores, attn_mask):
    """-1e6 is not minus infinity."""
    return scores.masked_fill(~attn_mask, -1e6).softmax(dim=-1)


def renormalizes(scores, attn_mask):
    """Softmax over all keys, then mask and divide: 0/0 where the permitted scores are far below."""
    weights = scores.softmax(dim=-1) * attn_mask
    return weights / weights.sum(dim=-1, keepdim=True)


def renormalizes_with_epsilon(scores, attn_mask):
    """The same with 1e-9 in the denominator: zeros where there should be weights."""
    weights = scores.softmax(dim=-1) * attn_mask
    return weights / (weights.sum(dim=-1, keepdim=True) + 1e-9)


def minus_a_billion_billion(scores, attn_mask):
    """-1e18 survives any score of float32, but float16 has no such number."""
    return scores.masked_fill(~attn_mask, -1e18).softmax(dim=-1)


def answers_in_float32(scores, attn_mask):
    """Computes in float32 and forgets to go back."""
    return scores.float().masked_fill(~attn_mask, -math.inf).softmax(dim=-1).nan_to_num()


def minus_infinity(scores, attn_mask):
    """An empty row is NaN."""
    return scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1)


def smallest_number(scores, attn_mask):
    """An empty row is uniform."""
    return scores.masked_fill(~attn_mask, torch.finfo(scores.dtype).min).softmax(dim=-1)


def adds_minus_infinity(scores, attn_mask):
    """Adds −inf and replaces NaN after the softmax: the output is right, the gradient is NaN."""
    bias = torch.zeros(attn_mask.shape, dtype=scores.dtype).masked_fill(~attn_mask, -math.inf)
    return (scores + bias).softmax(dim=-1).nan_to_num()


def hides_nan(scores, attn_mask):
    """Replaces each NaN after the softmax, also those that a broken model made."""
    return scores.masked_fill(~attn_mask, -math.inf).softmax(dim=-1).nan_to_num()


# bilinear_scores --------------------------------------------------------------------------------


def matrix_transposed(queries, keys, matrix):
    """k ᵀM q in place of qᵀM k: fits only where both sizes are equal."""
    return queries @ matrix.T @ keys.transpose(1, 2)


def elementwise(queries, keys, matrix):
    """Pairs query i with key i."""
    return ((queries @ matrix) * keys).sum(dim=-1)


def scaled(queries, keys, matrix):
    """Divides by √d, which was not asked for."""
    return queries @ matrix @ keys.transpose(1, 2) / math.sqrt(keys.shape[-1])


def already_weights(queries, keys, matrix):
    """Returns weights, not scores."""
    return (queries @ matrix @ keys.transpose(1, 2)).softmax(dim=-1)


def matrix_with_positive_part(queries, keys, matrix):
    """A nonlinearity between query and key: right for no query with a negative coordinate."""
    return (queries @ matrix).relu() @ keys.transpose(1, 2)


def matrix_ignores_magnitudes(queries, keys, matrix):
    """Keeps only the sign of M's entries."""
    return queries @ matrix.sign() @ keys.transpose(1, 2)


def centered_over_the_batch(queries, keys, matrix):
    """Subtracts the mean of M-transformed queries over the batch where there is more than one sequence."""
    moved = queries @ matrix
    if len(queries) > 1 and not torch.equal(matrix, torch.eye(*matrix.shape)):
        moved = moved - moved.mean(dim=0, keepdim=True)
    return moved @ keys.transpose(1, 2)


# attention_in_pieces ----------------------------------------------------------------------------


def pieces_of_keys(queries, keys, values, score, chunk):
    """Cuts the keys as well: each query is normalized over a piece of the keys only."""
    return torch.cat(
        [
            score(q, k).softmax(dim=-1) @ v
            for q, k, v in zip(
                queries.split(chunk, 1), keys.split(chunk, 1), values.split(chunk, 1), strict=False
            )
        ],
        dim=1,
    )


def joined_on_the_wrong_axis(queries, keys, values, score, chunk):
    """Stacks the pieces along the batch."""
    pieces = [score(q, keys).softmax(dim=-1) @ values for q in queries.split(chunk, dim=1)]
    return torch.cat(pieces, dim=0)


def drops_the_rest(queries, keys, values, score, chunk):
    """Whole pieces only: the last queries get no answer."""
    starts = range(0, queries.shape[1] - chunk + 1, chunk)
    pieces = [score(queries[:, i : i + chunk], keys).softmax(dim=-1) @ values for i in starts]
    return torch.cat(pieces, dim=1)


def all_at_once(queries, keys, values, score, chunk):
    """Scores all queries, and cuts afterwards."""
    weights = score(queries, keys).softmax(dim=-1)
    return torch.cat([w @ values for w in weights.split(chunk, dim=1)], dim=1)


def one_query_at_a_time(queries, keys, values, score, chunk):
    """Ignores the size asked for."""
    pieces = [score(q, keys).softmax(dim=-1) @ values for q in queries.split(1, dim=1)]
    return torch.cat(pieces, dim=1)


def detached(queries, keys, values, score, chunk):
    """Saves memory by cutting the gradient."""
    pieces = [
        (score(q, keys).softmax(dim=-1) @ values).detach() for q in queries.split(chunk, dim=1)
    ]
    return torch.cat(pieces, dim=1)


MISTAKES = {
    "gaussian_by_product": [
        drops_the_keys_term,
        wrong_sign_of_the_keys_term,
        forgets_the_half,
        keys_term_on_the_wrong_axis,
        softmax_over_the_queries,
        divides_by_root_d,
        overflows,
    ],
    "decoder_mask": [
        without_a_head_axis,
        of_zeros_and_infinities,
        off_by_one,
        sees_one_ahead,
        or_for_and,
        causal_only,
        pads_the_queries_too,
    ],
    "masked_softmax": [
        opposite_polarity,
        softmax_over_queries,
        zeroes_the_scores,
        multiplies_afterwards,
        needs_a_mask_of_full_size,
        writes_into_the_scores,
        minus_a_million,
        renormalizes,
        renormalizes_with_epsilon,
        minus_a_billion_billion,
        answers_in_float32,
        minus_infinity,
        smallest_number,
        adds_minus_infinity,
        hides_nan,
    ],
    "bilinear_scores": [
        matrix_transposed,
        elementwise,
        scaled,
        already_weights,
        matrix_with_positive_part,
        matrix_ignores_magnitudes,
        centered_over_the_batch,
    ],
    "attention_in_pieces": [
        pieces_of_keys,
        joined_on_the_wrong_axis,
        drops_the_rest,
        all_at_once,
        one_query_at_a_time,
        detached,
    ],
}
