"""Mistakes that the checks of *Multi-head attention* must catch."""

import copy
import math

import torch

# split_into_heads -------------------------------------------------------------------------------


def reshape_only(x, num_heads):
    """Reads the numbers in memory order: tokens get mixed."""
    batch, length, embed_dim = x.shape
    return x.reshape(batch, num_heads, length, embed_dim // num_heads)


def columns_interleaved(x, num_heads):
    """Head i gets columns i, i + h, i + 2h, …"""
    return x.unflatten(-1, (-1, num_heads)).permute(0, 3, 1, 2)


def heads_behind_length(x, num_heads):
    """Forgets to exchange the axes."""
    return x.unflatten(-1, (num_heads, -1))


def heads_folded_into_the_batch(x, num_heads):
    """(batch · heads, length, head_dim), as older code has it."""
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2).flatten(0, 1)


def two_or_three_heads(x, num_heads):
    """Never splits into more than three heads."""
    num_heads = min(num_heads, 3)
    return x.unflatten(-1, (num_heads, -1)).transpose(1, 2)


# head_contributions -----------------------------------------------------------------------------


def rows_for_columns(heads, weight):
    """Gives head i the i-th rows of the weight."""
    blocks = weight.T.unflatten(1, (heads.shape[1], -1))[: weight.shape[0]]
    return torch.einsum("bhnd,ohd->bhno", heads, blocks)


def equal_shares(heads, weight):
    """Splits the output evenly: the sum is right, the shares are not."""
    output = heads.transpose(1, 2).flatten(2) @ weight.T
    return (output / heads.shape[1])[:, None].expand(-1, heads.shape[1], -1, -1)


def only_its_own_slice(heads, weight):
    """Keeps each head in its own slice of the output: no mixing."""
    return heads @ weight[: heads.shape[-1], : heads.shape[-1]].T


def summed_already(heads, weight):
    """Returns the sum."""
    return heads.transpose(1, 2).flatten(2) @ weight.T


def square_only(heads, weight):
    """Takes the output to be as large as the joined heads."""
    blocks = weight[: heads.shape[1] * heads.shape[3]].unflatten(1, (heads.shape[1], -1))
    padded = weight.new_zeros(heads.shape[1] * heads.shape[3], *blocks.shape[1:])
    padded[: len(blocks)] = blocks
    return torch.einsum("bhnd,ohd->bhno", heads, padded)


# fixed_multi_head -------------------------------------------------------------------------------


def _heads(x, w_q, w_k, w_v, num_heads, attn_mask, scale):
    q, k, v = ((x @ w.T).unflatten(-1, (num_heads, -1)).transpose(1, 2) for w in (w_q, w_k, w_v))
    scores = (q @ k.transpose(-2, -1) * scale).masked_fill(~attn_mask, -math.inf)
    return scores.softmax(dim=-1) @ v


def not_fixed(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """The bug as it stands in the chapter: merged without a transpose."""
    scale = 1 / math.sqrt(x.shape[-1] // num_heads)
    return _heads(x, w_q, w_k, w_v, num_heads, attn_mask, scale).reshape(x.shape) @ w_o.T


def wrong_transpose(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """Exchanges length and head_dim."""
    scale = 1 / math.sqrt(x.shape[-1] // num_heads)
    heads = _heads(x, w_q, w_k, w_v, num_heads, attn_mask, scale)
    return heads.transpose(2, 3).reshape(x.shape) @ w_o.T


def columns_in_another_order(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """Merges with the head running fastest."""
    scale = 1 / math.sqrt(x.shape[-1] // num_heads)
    heads = _heads(x, w_q, w_k, w_v, num_heads, attn_mask, scale)
    return heads.permute(0, 2, 3, 1).flatten(2) @ w_o.T


def root_of_embed_dim(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """Merges rightly, but scales by the root of embed_dim."""
    heads = _heads(x, w_q, w_k, w_v, num_heads, attn_mask, 1 / math.sqrt(x.shape[-1]))
    return heads.transpose(1, 2).flatten(2) @ w_o.T


def sums_the_heads(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """Adds the heads instead of joining them."""
    scale = 1 / math.sqrt(x.shape[-1] // num_heads)
    return _heads(x, w_q, w_k, w_v, num_heads, attn_mask, scale).sum(dim=1)


def always_one_head(x, w_q, w_k, w_v, w_o, num_heads, attn_mask):
    """Nothing is mixed any more, because there is only one head."""
    return _heads(x, w_q, w_k, w_v, 1, attn_mask, 1 / math.sqrt(x.shape[-1]))[:, 0] @ w_o.T


# without_head -----------------------------------------------------------------------------------


def in_place(layer, head):
    """Changes the layer that was handed in."""
    layer.out_proj.weight.data.unflatten(1, (layer.num_heads, -1))[:, head] = 0
    return layer


def rows_of_the_output(layer, head):
    """Zeroes output dimensions, not the head."""
    layer = copy.deepcopy(layer)
    layer.out_proj.weight.data.unflatten(0, (layer.num_heads, -1))[head] = 0
    return layer


def bias_too(layer, head):
    """Takes the bias away with the head."""
    layer = copy.deepcopy(layer)
    layer.out_proj.weight.data.unflatten(1, (layer.num_heads, -1))[:, head] = 0
    layer.out_proj.bias.data.zero_()
    return layer


def queries_at_zero(layer, head):
    """Zeroes the head's queries: it then averages uniformly, and still speaks."""
    layer = copy.deepcopy(layer)
    layer.query_proj.weight.data.unflatten(0, (layer.num_heads, -1))[head] = 0
    layer.query_proj.bias.data.unflatten(0, (layer.num_heads, -1))[head] = 0
    return layer


def always_the_first(layer, head):
    """Takes out head 0 whatever is asked."""
    layer = copy.deepcopy(layer)
    layer.out_proj.weight.data.unflatten(1, (layer.num_heads, -1))[:, 0] = 0
    return layer


def value_weights_only(layer, head):
    """Forgets the bias of the values: a constant remains."""
    layer = copy.deepcopy(layer)
    layer.value_proj.weight.data.unflatten(0, (layer.num_heads, -1))[head] = 0
    return layer


def returns_the_output(layer, head):
    """Returns what the layer computes for one input, not a layer."""
    x = torch.randn(2, 5, layer.query_proj.in_features)
    return layer(x, x, x)


MISTAKES = {
    "split_into_heads": [
        reshape_only,
        columns_interleaved,
        heads_behind_length,
        heads_folded_into_the_batch,
        two_or_three_heads,
    ],
    "head_contributions": [
        rows_for_columns,
        equal_shares,
        only_its_own_slice,
        summed_already,
        square_only,
    ],
    "fixed_multi_head": [
        not_fixed,
        wrong_transpose,
        columns_in_another_order,
        root_of_embed_dim,
        sums_the_heads,
        always_one_head,
    ],
    "without_head": [
        in_place,
        rows_of_the_output,
        bias_too,
        queries_at_zero,
        always_the_first,
        value_weights_only,
        returns_the_output,
    ],
}
