"""Mistakes that the checks of *Multi-head attention* must catch."""

import copy

import torch

# predicted_heads --------------------------------------------------------------------------------


def head_and_token_exchanged():
    """Takes the second index for the head."""
    return [14, 18, 2, 6, 0]


def reshape_taken_for_the_split():
    """Believes that both do the same."""
    return [10, 10, 4, 2, 0]


def split_taken_for_the_reshape():
    """Reads the numbers in memory order in both cases."""
    return [18, 18, 2, 2, 0]


def all_tokens_in_each_head():
    """Believes that a reshape leaves all tokens in each head."""
    return [10, 18, 4, 6, 0]


def joined_without_harm():
    """Believes that joining undoes the split in any order."""
    return [10, 18, 2, 2, 0]


def one_head_differs():
    """Believes that the transpose matters with one head, too."""
    return [10, 18, 2, 6, 24]


# join_heads -------------------------------------------------------------------------------------


def reshape_only(heads):
    """Joins in memory order, without a transpose."""
    batch, num_heads, length, head_dim = heads.shape
    return heads.reshape(batch, length, num_heads * head_dim)


def wrong_transpose(heads):
    """Exchanges length and head_dim."""
    return heads.transpose(2, 3).reshape(len(heads), heads.shape[2], -1)


def features_first(heads):
    """Lets the head run fastest."""
    return heads.permute(0, 2, 3, 1).flatten(2)


def heads_added(heads):
    """Adds the heads."""
    return heads.sum(dim=1)


def not_joined(heads):
    """Exchanges the axes and stops."""
    return heads.transpose(1, 2)


def three_heads_of_four(heads):
    """Has sizes written into it."""
    return heads.transpose(1, 2).reshape(-1, heads.shape[2], 12)[: len(heads)] * (
        heads.shape[1] < 12
    )


def without_gradient(heads):
    """Copies the numbers."""
    return heads.detach().transpose(1, 2).flatten(2)


# fixed_without_head -----------------------------------------------------------------------------


def not_fixed(layer, head):
    """The bug as it stands in the chapter: the queries, and in place."""
    width = layer.out_proj.in_features // layer.num_heads
    with torch.no_grad():
        layer.query_proj.weight[head * width : (head + 1) * width] = 0
        layer.query_proj.bias[head * width : (head + 1) * width] = 0
    return layer


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


def a_function_for_a_layer(layer, head):
    """Returns a function that computes the right thing, and is no layer."""
    fewer = copy.deepcopy(layer)
    fewer.out_proj.weight.data.unflatten(1, (layer.num_heads, -1))[:, head] = 0
    return lambda queries, keys, values: fewer(queries, keys, values)


def width_four(layer, head):
    """Has the width of a head written into it."""
    layer = copy.deepcopy(layer)
    layer.out_proj.weight.data[:, 4 * head : 4 * head + 4] = 0
    return layer


MISTAKES = {
    "predicted_heads": [
        head_and_token_exchanged,
        reshape_taken_for_the_split,
        split_taken_for_the_reshape,
        all_tokens_in_each_head,
        joined_without_harm,
        one_head_differs,
    ],
    "join_heads": [
        reshape_only,
        wrong_transpose,
        features_first,
        heads_added,
        not_joined,
        three_heads_of_four,
        without_gradient,
    ],
    "fixed_without_head": [
        not_fixed,
        in_place,
        rows_of_the_output,
        bias_too,
        queries_at_zero,
        always_the_first,
        value_weights_only,
        returns_the_output,
        a_function_for_a_layer,
        width_four,
    ],
}
