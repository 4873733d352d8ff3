"""Mistakes in the exercises of *Multi-head attention*, each with the property that catches it and its hint."""

import copy

import torch
from mistakes.table import mistake


@mistake(
    "join_heads", caught_by="keeps the numbers of one token", hint="In which order are the numbers"
)
def wrong_transpose(heads):
    """Exchanges length and head_dim."""
    return heads.transpose(2, 3).reshape(len(heads), heads.shape[2], -1)


@mistake(
    "join_heads", caught_by="puts head 0 first in each row", hint="the head, or the feature within"
)
def features_first(heads):
    """Lets the head run fastest."""
    return heads.permute(0, 2, 3, 1).flatten(2)


@mistake(
    "join_heads",
    caught_by="turns (batch, heads, length, head_dim)",
    reason="view size is not compatible",
    hint="Which method copies",
)
def view_after_transpose(heads):
    """Joins the right axes by a view, which needs another order in memory."""
    return heads.transpose(1, 2).view(len(heads), heads.shape[2], -1)


@mistake(
    "join_heads",
    caught_by="turns (batch, heads, length, head_dim)",
    hint="Which two of the four axes",
)
def heads_added(heads):
    """Adds the heads."""
    return heads.sum(dim=1)


@mistake(
    "join_heads",
    caught_by="turns (batch, heads, length, head_dim)",
    reason="the numbers of two heads",
    hint="How many heads are there",
)
def only_two_heads(heads):
    """Joins head 0 and head 1."""
    return torch.cat([heads[:, 0], heads[:, 1]], dim=-1)


@mistake("join_heads", caught_by="undoes the split, for 1, 2, 4", hint="Is a size written into")
def three_heads_of_four(heads):
    """Has sizes written into it."""
    return heads.transpose(1, 2).reshape(-1, heads.shape[2], 12)[: len(heads)] * (
        heads.shape[1] < 12
    )


@mistake("join_heads", caught_by="lets gradients come back", hint="Which line leaves the graph?")
def without_gradient(heads):
    """Copies the numbers."""
    return heads.detach().transpose(1, 2).flatten(2)


def _zeroed(layer, head, *parts, axis=0):
    """A copy of the layer with zeros at a head of these parameters, cut into heads along `axis`."""
    layer = copy.deepcopy(layer)
    for part in parts:
        heads = layer.get_parameter(part).data.unflatten(axis, (layer.num_heads, -1))
        heads.select(axis, head).zero_()
    return layer


@mistake(
    "fixed_without_head", caught_by="silences the head instead", hint="What does a softmax make"
)
def queries_at_zero(layer, head):
    """Zeroes the head's queries: it then averages uniformly, and still speaks."""
    return _zeroed(layer, head, "query_proj.weight", "query_proj.bias")


@mistake(
    "fixed_without_head",
    caught_by="outputs what the other heads give",
    hint="Where does the head enter",
)
def always_the_first(layer, head):
    """Takes out head 0 whatever is asked."""
    return _zeroed(layer, 0, "out_proj.weight", axis=1)


@mistake(
    "fixed_without_head", caught_by="outputs what the other heads give", hint="belongs to no head"
)
def value_weights_only(layer, head):
    """Forgets the bias of the values: a constant remains."""
    return _zeroed(layer, head, "value_proj.weight")


@mistake(
    "fixed_without_head", caught_by="outputs what the other heads give", hint="do its rows belong"
)
def rows_for_columns(layer, head):
    """Clears rows of the last weight: features of the output."""
    return _zeroed(layer, head, "out_proj.weight")


@mistake(
    "fixed_without_head", caught_by="outputs what the other heads give", hint="belongs to no head"
)
def the_bias_of_all(layer, head):
    """Clears the columns, and a part of the bias that belongs to no head."""
    return _zeroed(_zeroed(layer, head, "out_proj.weight", axis=1), head, "out_proj.bias")


@mistake(
    "fixed_without_head",
    caught_by="returns a layer that can be called",
    hint="What does your function return?",
)
def a_function_for_a_layer(layer, head):
    """Returns a function that computes the right thing, and is no layer."""
    return lambda *given: _zeroed(layer, head, "out_proj.weight", axis=1)(*given)


@mistake(
    "fixed_without_head", caught_by="leaves the caller's layer unchanged", hint="Whose weights"
)
def not_fixed(layer, head):
    """The bug as it stands in the chapter: the queries, and in place."""
    width = layer.out_proj.in_features // layer.num_heads
    with torch.no_grad():
        layer.query_proj.weight[head * width : (head + 1) * width] = 0
        layer.query_proj.bias[head * width : (head + 1) * width] = 0
    return layer


@mistake(
    "fixed_without_head",
    caught_by="returns a layer that can be called",
    hint="What does your function return?",
)
def returns_the_output(layer, head):
    """Returns what the layer computes for one input, not a layer."""
    x = torch.randn(2, 5, layer.query_proj.in_features)
    return layer(x, x, x)


@mistake(
    "fixed_without_head",
    caught_by="outputs what the other heads give",
    hint="Where does the head enter",
)
def width_four(layer, head):
    """Has the width of a head written into it."""
    layer = copy.deepcopy(layer)
    layer.out_proj.weight.data[:, 4 * head : 4 * head + 4] = 0
    return layer


@mistake(
    "fixed_without_head", caught_by="returns a layer that can be called", hint="torch.no_grad()"
)
def asks_for_gradients(layer, head):
    """Changes a parameter in place, without `torch.no_grad()`."""
    layer = copy.deepcopy(layer)
    width = layer.out_proj.in_features // layer.num_heads
    layer.out_proj.weight[:, head * width : (head + 1) * width] = 0
    return layer
