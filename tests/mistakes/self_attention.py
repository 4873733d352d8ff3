"""Mistakes in the exercises of *Self-attention*, each with the property that catches it and its hint."""

import math

import torch
from mistakes.table import mistake


@mistake("self_attention", caught_by="gives five answers of size 3", hint="What do you return?")
def returns_the_weights(X, W_q, W_k, W_v):
    """Stops before the values."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1)


@mistake("self_attention", caught_by="gives the mean of the values", hint="divide the scores")
def scaled_after_the_softmax(X, W_q, W_k, W_v):
    """The division stands outside the softmax."""
    return ((X @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v) / math.sqrt(W_q.shape[1])


@mistake(
    "self_attention",
    caught_by="gives five answers of size 3",
    reason="got shape (5, 6)",
    hint="their values",
)
def mixes_the_words(X, W_q, W_k, W_v):
    """Forgets W_V."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1) @ X


@mistake(
    "self_attention",
    caught_by="gives each query a row of the scores",
    hint="Does your softmax run along",
)
def softmax_over_queries(X, W_q, W_k, W_v):
    """The columns sum to 1 instead of the rows."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-2) @ (X @ W_v)


@mistake(
    "self_attention", caught_by="divides the scores by √d, where d", hint="By what do you divide?"
)
def scaled_by_the_embedding(X, W_q, W_k, W_v):
    """√M of the embedding instead of √d of the query."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(X.shape[-1])).softmax(-1) @ (X @ W_v)


@mistake("self_attention", caught_by="answers the sentences", hint="`shape[-1]` the last")
def d_of_the_second_axis(X, W_q, W_k, W_v):
    """shape[1] is d for one sentence, and another axis for a batch."""
    q = X @ W_q
    return (q @ (X @ W_k).mT / math.sqrt(q.shape[1])).softmax(-1) @ (X @ W_v)


@mistake("self_attention", caught_by="gives five answers of size 3", hint="`torch.sqrt` wants")
def root_of_a_number(X, W_q, W_k, W_v):
    """torch.sqrt takes tensors only."""
    q = X @ W_q
    return (q @ (X @ W_k).mT / torch.sqrt(q.shape[-1])).softmax(-1) @ (X @ W_v)


@mistake("self_attention", caught_by="answers the sentences", hint="What do `.T` and `dim=1` mean")
def for_one_sentence(X, W_q, W_k, W_v):
    """dim=1 counts from the front: wrong as soon as there is a batch."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(1) @ (X @ W_v)


@mistake(
    "self_attention",
    caught_by="gives five answers of size 3",
    reason="it calls scaled_dot_product_attention",
    hint="step by step",
)
def lets_pytorch_attend(X, W_q, W_k, W_v):
    """Calls the operator that it should write."""
    return torch.nn.functional.scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v)


@mistake(
    "self_attention", caught_by="divides the scores by √d, where d", hint="By what do you divide"
)
def not_scaled(X, W_q, W_k, W_v):
    """Forgets √d."""
    return ((X @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v)


def _entries(n, **changed):
    """A mask that is True but where `changed` says otherwise."""
    mask = torch.ones(n, n, dtype=torch.bool)
    for where in changed.values():
        mask[where] = False
    return mask


@mistake(
    "all_but_one",
    caught_by="forbids the link from the query",
    hint="Which entry did you set to False?",
)
def forbids_the_reverse(n, query, key):
    """Exchanges query and key."""
    return _entries(n, at=(key, query))


@mistake("all_but_one", caught_by="permits every other link", hint="How many entries of your mask")
def forbids_the_row(n, query, key):
    """The query may attend to nothing."""
    return _entries(n, at=query)


@mistake("all_but_one", caught_by="permits every other link", hint="How many entries of your mask")
def forbids_the_column(n, query, key):
    """Nobody may attend to the key."""
    return _entries(n, at=(slice(None), key))


@mistake("all_but_one", caught_by="permits every other link", hint="How many entries of your mask")
def both_ways(n, query, key):
    """Forbids the reverse, too."""
    return _entries(n, at=(query, key), too=(key, query))


@mistake(
    "all_but_one",
    caught_by="forbids the link from the query",
    reason="permits one link",
    hint="False forbids",
)
def upside_down(n, query, key):
    """True where it is forbidden."""
    return ~_entries(n, at=(query, key))


@mistake(
    "all_but_one",
    caught_by="returns a boolean mask of shape",
    hint="How many queries and keys do n",
)
def adds_minus_infinity(n, query, key):
    """A mask to be added to the scores."""
    return torch.zeros(n, n).masked_fill(~_entries(n, at=(query, key)), -math.inf)


def _same(layer, x, order, **tolerance):
    """Right for a random order of the words."""
    return torch.allclose(layer(x[:, order]), layer(x)[:, order], **tolerance)


@mistake(
    "fixed_order_test", caught_by="notices layers that ignore", hint="Which orders do you try?"
)
def reverses_only(layer, x):
    """Tries one order, the reverse."""
    return torch.allclose(layer(x.flip(1)), layer(x).flip(1), atol=1e-3)


@mistake(
    "fixed_order_test", caught_by="notices layers that ignore", hint="Which orders do you try?"
)
def shifts_only(layer, x):
    """Tries cyclic shifts."""
    return torch.allclose(layer(x.roll(1, 1)), layer(x).roll(1, 1), atol=1e-3)


@mistake(
    "fixed_order_test",
    caught_by="says that plain self-attention ignores",
    hint="Is your comparison too strict?",
)
def to_the_last_bit(layer, x):
    """Asks for equality to the last bit."""
    return _same(layer, x, torch.randperm(x.shape[1]), rtol=0, atol=0)


@mistake("fixed_order_test", caught_by="notices a layer", hint="One order drawn at random")
def one_order_at_random(layer, x):
    """One random order of many."""
    return _same(layer, x, torch.randperm(x.shape[1]), rtol=1e-3, atol=1e-3)


@mistake(
    "fixed_order_test", caught_by="notices layers that ignore", hint="Which orders do you try?"
)
def swaps_the_first_two(layer, x):
    """Tries one swap."""
    return _same(layer, x, [1, 0, *range(2, x.shape[1])], atol=1e-3)


@mistake(
    "fixed_order_test", caught_by="notices positions in the input", hint="Does the layer really see"
)
def forgives_too_much(layer, x):
    """A tolerance of a tenth."""
    return _same(layer, x, torch.randperm(x.shape[1]), atol=0.1)


@mistake("fixed_order_test", caught_by="notices positions in the input", hint="axis 1")
def sentences_for_words(layer, x):
    """Permutes axis 0, the sentences."""
    return torch.allclose(layer(x.flip(0)), layer(x).flip(0), atol=1e-3)


@mistake(
    "fixed_order_test", caught_by="notices positions in the input", hint="Does the layer really see"
)
def permutes_the_outputs_only(layer, x):
    """Gives the layer the same input twice."""
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x)[:, order], layer(x)[:, order], atol=1e-3)


@mistake("fixed_order_test", caught_by="notices a layer", hint="How many do you draw?")
def compares_the_sorted_outputs(layer, x):
    """Compares the outputs as sets, wherever they stand."""
    other = layer(x[:, torch.randperm(x.shape[1])])
    return torch.allclose(other.sort(1).values, layer(x).sort(1).values, atol=1e-3)


@mistake(
    "fixed_order_test",
    caught_by="says that plain self-attention ignores",
    hint="What does your comparison",
)
def answers_with_a_tensor(layer, x):
    """A tensor of one truth value is not a bool."""
    order = torch.randperm(x.shape[1])
    return (layer(x[:, order]) - layer(x)[:, order]).abs().max() < 1e-3


ON_PAPER = {
    "whose_old_car": {
        "a": 36 / 51,  # not divided by √d
        "b": 3 / 9,  # the six others forgotten
        "c": 0.2,  # only Ana is a woman
        "d": 0.4,  # the weight is taken away after the softmax
    },
    "predicted_costs": {
        "a": 640,  # a kernel one word wide
        "b": 640,  # without the product of the state
        "c": 1600,  # without the three projections
        "d": 20,  # all products, though some need nothing from each other
        "e": 1,  # one layer, one step
        "f": 4,  # ⌈10 / 3⌉
    },
}
