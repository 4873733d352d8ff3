"""Mistakes that the checks of *Multi-head attention* must catch."""

import copy

import torch
from mistakes.table import wrong


class join_heads:
    wrong_transpose = wrong("Exchanges length and head_dim.",
        lambda heads: heads.transpose(2, 3).reshape(len(heads), heads.shape[2], -1))
    features_first = wrong("Lets the head run fastest.", lambda heads: heads.permute(0, 2, 3, 1).flatten(2))
    view_after_transpose = wrong("Joins the right axes by a view, which needs another order in memory.",
        lambda heads: heads.transpose(1, 2).view(len(heads), heads.shape[2], -1))
    heads_added = wrong("Adds the heads.", lambda heads: heads.sum(dim=1))
    three_heads_of_four = wrong("Has sizes written into it.",
        lambda heads: heads.transpose(1, 2).reshape(-1, heads.shape[2], 12)[:len(heads)] * (heads.shape[1] < 12))
    without_gradient = wrong("Copies the numbers.", lambda heads: heads.detach().transpose(1, 2).flatten(2))


def _zeroed(layer, head, *parts, axis=0):
    """A copy of the layer with zeros at a head of these parameters, cut into heads along `axis`."""
    layer = copy.deepcopy(layer)
    for part in parts:
        heads = layer.get_parameter(part).data.unflatten(axis, (layer.num_heads, -1))
        heads.select(axis, head).zero_()
    return layer


class fixed_without_head:
    queries_at_zero = wrong("Zeroes the head's queries: it then averages uniformly, and still speaks.",
        lambda layer, head: _zeroed(layer, head, "query_proj.weight", "query_proj.bias"))
    always_the_first = wrong("Takes out head 0 whatever is asked.",
        lambda layer, head: _zeroed(layer, 0, "out_proj.weight", axis=1))
    value_weights_only = wrong("Forgets the bias of the values: a constant remains.",
        lambda layer, head: _zeroed(layer, head, "value_proj.weight"))
    rows_for_columns = wrong("Clears rows of the last weight: features of the output.",
        lambda layer, head: _zeroed(layer, head, "out_proj.weight"))
    the_bias_of_all = wrong("Clears the columns, and a part of the bias that belongs to no head.",
        lambda layer, head: _zeroed(_zeroed(layer, head, "out_proj.weight", axis=1), head, "out_proj.bias"))
    a_function_for_a_layer = wrong("Returns a function that computes the right thing, and is no layer.",
        lambda layer, head: lambda *given: _zeroed(layer, head, "out_proj.weight", axis=1)(*given))

    def not_fixed(layer, head):
        """The bug as it stands in the chapter: the queries, and in place."""
        width = layer.out_proj.in_features // layer.num_heads
        with torch.no_grad():
            layer.query_proj.weight[head * width : (head + 1) * width] = 0
            layer.query_proj.bias[head * width : (head + 1) * width] = 0
        return layer

    def returns_the_output(layer, head):
        """Returns what the layer computes for one input, not a layer."""
        x = torch.randn(2, 5, layer.query_proj.in_features)
        return layer(x, x, x)

    def width_four(layer, head):
        """Has the width of a head written into it."""
        layer = copy.deepcopy(layer)
        layer.out_proj.weight.data[:, 4 * head : 4 * head + 4] = 0
        return layer

    def asks_for_gradients(layer, head):
        """Changes a parameter in place, without `torch.no_grad()`."""
        layer = copy.deepcopy(layer)
        width = layer.out_proj.in_features // layer.num_heads
        layer.out_proj.weight[:, head * width : (head + 1) * width] = 0
        return layer


ANSWERS = {
    "view_after_transpose": ("view size is not compatible", "Which method copies"),
    "asks_for_gradients": ("a layer that can be called", "torch.no_grad()"),
    "rows_for_columns": ("what the other heads give", "do its rows belong"),
    "the_bias_of_all": ("what the other heads give", "belongs to no head"),
    "value_weights_only": ("what the other heads give", "belongs to no head"),
}
