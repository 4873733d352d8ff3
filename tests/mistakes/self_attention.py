"""Mistakes that learners make in the exercises of *Self-attention*; each must fail its check with a hint."""

import math

import torch
from mistakes.table import wrong


class self_attention:
    returns_the_weights = wrong("Stops before the values.",
        lambda X, W_q, W_k, W_v: ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1))
    scaled_after_the_softmax = wrong("The division stands outside the softmax.",
        lambda X, W_q, W_k, W_v: ((X @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v) / math.sqrt(W_q.shape[1]))
    mixes_the_words = wrong("Forgets W_V.",
        lambda X, W_q, W_k, W_v: ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1) @ X)
    softmax_over_queries = wrong("The columns sum to 1 instead of the rows.",
        lambda X, W_q, W_k, W_v: ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-2) @ (X @ W_v))
    scaled_by_the_embedding = wrong("√M of the embedding instead of √d of the query.",
        lambda X, W_q, W_k, W_v: ((X @ W_q) @ (X @ W_k).mT / math.sqrt(X.shape[-1])).softmax(-1) @ (X @ W_v))
    for_one_sentence = wrong("dim=1 counts from the front: wrong as soon as there is a batch.",
        lambda X, W_q, W_k, W_v: ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(1) @ (X @ W_v))
    lets_pytorch_attend = wrong("Calls the operator that it should write.",
        lambda X, W_q, W_k, W_v: torch.nn.functional.scaled_dot_product_attention(X @ W_q, X @ W_k, X @ W_v))
    not_scaled = wrong("Forgets √d.", lambda X, W_q, W_k, W_v: ((X @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v))


def _entries(n, **changed):
    """A mask that is True but where `changed` says otherwise."""
    mask = torch.ones(n, n, dtype=torch.bool)
    for where in changed.values():
        mask[where] = False
    return mask


class all_but_one:
    forbids_the_reverse = wrong("Exchanges query and key.", lambda n, query, key: _entries(n, at=(key, query)))
    forbids_the_row = wrong("The query may look at nothing.", lambda n, query, key: _entries(n, at=query))
    forbids_the_column = wrong("Nobody may look at the key.", lambda n, query, key: _entries(n, at=(slice(None), key)))
    both_ways = wrong("Forbids the reverse, too.", lambda n, query, key: _entries(n, at=(query, key), too=(key, query)))
    upside_down = wrong("True where it is forbidden.", lambda n, query, key: ~_entries(n, at=(query, key)))
    adds_minus_infinity = wrong("A mask to be added to the scores.",
        lambda n, query, key: torch.zeros(n, n).masked_fill(~_entries(n, at=(query, key)), -math.inf))


def _same(layer, x, order, **tolerance):
    """Right for a random order of the words."""
    return torch.allclose(layer(x[:, order]), layer(x)[:, order], **tolerance)


class fixed_order_test:
    reverses_only = wrong("Tries one order, the reverse.",
        lambda layer, x: torch.allclose(layer(x.flip(1)), layer(x).flip(1), atol=1e-3))
    shifts_only = wrong("Tries cyclic shifts.",
        lambda layer, x: torch.allclose(layer(x.roll(1, 1)), layer(x).roll(1, 1), atol=1e-3))
    to_the_last_bit = wrong("Asks for equality to the last bit.",
        lambda layer, x: _same(layer, x, torch.randperm(x.shape[1]), rtol=0, atol=0))
    one_order_at_random = wrong("One random order of many.",
        lambda layer, x: _same(layer, x, torch.randperm(x.shape[1]), rtol=1e-3, atol=1e-3))
    swaps_the_first_two = wrong("Tries one swap.",
        lambda layer, x: _same(layer, x, [1, 0, *range(2, x.shape[1])], atol=1e-3))
    forgives_too_much = wrong("A tolerance of a tenth.",
        lambda layer, x: _same(layer, x, torch.randperm(x.shape[1]), atol=0.1))
    sentences_for_words = wrong("Permutes axis 0, the sentences.",
        lambda layer, x: torch.allclose(layer(x.flip(0)), layer(x).flip(0), atol=1e-3))

    def permutes_the_outputs_only(layer, x):
        """Gives the layer the same input twice."""
        order = torch.randperm(x.shape[1])
        return torch.allclose(layer(x)[:, order], layer(x)[:, order], atol=1e-3)

    def compares_the_sorted_outputs(layer, x):
        """Compares the outputs as sets, wherever they stand."""
        other = layer(x[:, torch.randperm(x.shape[1])])
        return torch.allclose(other.sort(1).values, layer(x).sort(1).values, atol=1e-3)

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

ANSWERS = {
    "upside_down": ("allows one link", "False forbids"),
    "mixes_the_words": ("got shape (5, 6)", "their values"),
    "scaled_after_the_softmax": ("the mean of the values", "divide the scores"),
    "lets_pytorch_attend": ("it calls scaled_dot_product_attention", "step by step"),
    "not_scaled": ("divides the scores by √d", "By what do you divide"),
    "sentences_for_words": ("positions in the input", "axis 1"),
    "one_order_at_random": ("every second order", "One order drawn at random"),
}
