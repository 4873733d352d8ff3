"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch

# fixed_gaussian_weights -------------------------------------------------------------------------


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


# predicted_gaps ---------------------------------------------------------------------------------


def only_the_direction_counts():
    """Believes that the length of a query does not matter."""
    return [3, 1.5, 3, 5, 3]


def lengths_squared():
    """Halves both keys and takes a quarter."""
    return [9, 0.75, 3, 5, 3]


def a_shift_of_the_keys_counts():
    """Adds q · (5, −1) to one of the scores only."""
    return [9, 1.5, 6, 5, 3]


def a_shift_of_the_query_drops_out():
    """Takes the query for a key."""
    return [9, 1.5, 3, 3, 3]


def the_root_takes_care():
    """Believes that 1/√d makes any number of features harmless: 3/√2."""
    return [9, 1.5, 3, 5, 2.12]


def four_gaps():
    """Leaves out the last."""
    return [9, 1.5, 3, 5]


# my_additive_scores -----------------------------------------------------------------------------


def query_meets_its_own_key(queries, keys, w_q, w_k, w):
    """Adds row i to row i: fits only where there are as many keys as queries."""
    return (queries @ w_q + keys @ w_k).tanh() @ w


def keys_down_queries_across(queries, keys, w_q, w_k, w):
    """(m, n) in place of (n, m)."""
    return ((queries @ w_q).unsqueeze(-3) + (keys @ w_k).unsqueeze(-2)).tanh() @ w


def turned_around(queries, keys, w_q, w_k, w):
    """The right shape, with queries and keys changed over where their numbers are equal."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores.mT if scores.shape[-1] == scores.shape[-2] else scores


def without_tanh(queries, keys, w_q, w_k, w):
    """A sum of two parts: every query would get the same weights."""
    return ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)) @ w


def tanh_at_the_end(queries, keys, w_q, w_k, w):
    """The tanh around the score."""
    return (((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)) @ w).tanh()


def tanh_before_the_sum(queries, keys, w_q, w_k, w):
    """tanh of each part, then the sum."""
    return ((queries @ w_q).tanh().unsqueeze(-2) + (keys @ w_k).tanh().unsqueeze(-3)) @ w


def scaled_by_root_h(queries, keys, w_q, w_k, w):
    """Divides by √h, which was not asked for."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores / math.sqrt(len(w))


def already_weights(queries, keys, w_q, w_k, w):
    """Returns weights, not scores."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return scores.softmax(dim=-1)


def without_a_batch(queries, keys, w_q, w_k, w):
    """Counts the new axes from the front."""
    return ((queries @ w_q)[:, None] + (keys @ w_k)[None]).tanh() @ w


def numbers_collected(queries, keys, w_q, w_k, w):
    """Collects plain numbers in a new tensor."""
    scores = ((queries @ w_q).unsqueeze(-2) + (keys @ w_k).unsqueeze(-3)).tanh() @ w
    return torch.tensor(scores.tolist())


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
    "fixed_gaussian_weights": [
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
    "predicted_gaps": [
        only_the_direction_counts,
        lengths_squared,
        a_shift_of_the_keys_counts,
        a_shift_of_the_query_drops_out,
        the_root_takes_care,
        four_gaps,
    ],
    "my_additive_scores": [
        query_meets_its_own_key,
        keys_down_queries_across,
        turned_around,
        without_tanh,
        tanh_at_the_end,
        tanh_before_the_sum,
        scaled_by_root_h,
        already_weights,
        without_a_batch,
        numbers_collected,
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
