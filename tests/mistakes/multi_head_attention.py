"""Mistakes that the checks of *Multi-head attention* must catch."""

import copy

import torch
from mistakes.table import wrong


class join_heads:
    wrong_transpose = wrong("Exchanges length and head_dim.",
        lambda heads: heads.transpose(2, 3).reshape(len(heads), heads.shape[2], -1))
    features_first = wrong("Lets the head run fastest.", lambda heads: heads.permute(0, 2, 3, 1).flatten(2))
    heads_added = wrong("Adds the heads.", lambda heads: heads.sum(dim=1))
    three_heads_of_four = wrong("Has sizes written into it.",
        lambda heads: heads.transpose(1, 2).reshape(-1, heads.shape[2], 12)[:len(heads)] * (heads.shape[1] < 12))
    without_gradient = wrong("Copies the numbers.", lambda heads: heads.detach().transpose(1, 2).flatten(2))


class fixed_without_head:
    def not_fixed(layer, head):
        """The bug as it stands in the chapter: the queries, and in place."""
        width = layer.out_proj.in_features // layer.num_heads
        with torch.no_grad():
            layer.query_proj.weight[head * width : (head + 1) * width] = 0
            layer.query_proj.bias[head * width : (head + 1) * width] = 0
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

    def rows_for_columns(layer, head):
        """Clears rows of the last weight: features of the output."""
        layer = copy.deepcopy(layer)
        layer.out_proj.weight.data.unflatten(0, (layer.num_heads, -1))[head] = 0
        return layer

    def the_bias_of_all(layer, head):
        """Clears the columns, and a part of the bias that belongs to no head."""
        layer = copy.deepcopy(layer)
        layer.out_proj.weight.data.unflatten(1, (layer.num_heads, -1))[:, head] = 0
        layer.out_proj.bias.data.unflatten(0, (layer.num_heads, -1))[head] = 0
        return layer

    def asks_for_gradients(layer, head):
        """Changes a parameter in place, without `torch.no_grad()`."""
        layer = copy.deepcopy(layer)
        width = layer.out_proj.in_features // layer.num_heads
        layer.out_proj.weight[:, head * width : (head + 1) * width] = 0
        return layer


ANSWERS = {
    "asks_for_gradients": ("a layer that can be called", "torch.no_grad()"),
    "rows_for_columns": ("that of the other heads", "do its rows belong"),
    "the_bias_of_all": ("that of the other heads", "belongs to no head"),
    "value_weights_only": ("that of the other heads", "belongs to no head"),
}
