"""Mistakes that learners make in the exercises of *Self-attention*; each must fail its check with a hint."""

import math

import torch

# self_attention ---------------------------------------------------------------------------------


def returns_the_weights(X, W_q, W_k, W_v):
    """Stops before the values."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-1)


def no_softmax(X, W_q, W_k, W_v):
    """Scores times values."""
    return (X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1]) @ (X @ W_v)


def scaled_after_the_softmax(X, W_q, W_k, W_v):
    """The division stands outside the softmax."""
    return ((X @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v) / math.sqrt(W_q.shape[1])


def keys_ask(X, W_q, W_k, W_v):
    """The transposed scores: keys ask and queries are found."""
    return ((X @ W_k) @ (X @ W_q).mT / math.sqrt(W_q.shape[1])).softmax(-1) @ (X @ W_v)


def softmax_over_queries(X, W_q, W_k, W_v):
    """The columns sum to 1 instead of the rows."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(-2) @ (X @ W_v)


def not_scaled(X, W_q, W_k, W_v):
    """No √d."""
    return ((X @ W_q) @ (X @ W_k).mT).softmax(-1) @ (X @ W_v)


def scaled_by_the_embedding(X, W_q, W_k, W_v):
    """√M of the embedding instead of √d of the query."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(X.shape[-1])).softmax(-1) @ (X @ W_v)


def for_one_sentence(X, W_q, W_k, W_v):
    """dim=1 counts from the front: wrong as soon as there is a batch."""
    return ((X @ W_q) @ (X @ W_k).mT / math.sqrt(W_q.shape[1])).softmax(1) @ (X @ W_v)


# fixed_order_test ----------------------------------------------------------------------------------


def expects_the_same_outputs(layer, x):
    """Compares outputs place by place: that would be invariance."""
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x[:, order]), layer(x), atol=1e-4)


def permutes_the_batch(layer, x):
    """Permutes the sequences of the batch, not the tokens."""
    order = torch.arange(len(x)).flip(0)
    return torch.allclose(layer(x[order]), layer(x)[order], atol=1e-4)


def to_the_last_bit(layer, x):
    """Asks for equality to the last bit."""
    order = torch.randperm(x.shape[1])
    return torch.equal(layer(x[:, order]), layer(x)[:, order])


def permutes_the_outputs_only(layer, x):
    """Gives the layer the same input twice."""
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x)[:, order], layer(x)[:, order], atol=1e-3)


def compares_the_means(layer, x):
    """Compares the mean over the tokens."""
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x[:, order]).mean(1), layer(x).mean(1), atol=1e-3)


def compares_the_last_output(layer, x):
    """Looks at the last token only, and leaves it in its place."""
    order = torch.cat([torch.randperm(x.shape[1] - 1), torch.tensor([x.shape[1] - 1])])
    return torch.allclose(layer(x[:, order])[:, -1], layer(x)[:, -1], atol=1e-3)


def reverses_only(layer, x):
    """Tries one order, the reverse."""
    return torch.allclose(layer(x.flip(1)), layer(x).flip(1), atol=1e-3)


def shifts_only(layer, x):
    """Tries cyclic shifts."""
    return torch.allclose(layer(x.roll(1, 1)), layer(x).roll(1, 1), atol=1e-3)


def swaps_the_first_two(layer, x):
    """Tries one swap."""
    order = torch.arange(x.shape[1])
    order[:2] = torch.tensor([1, 0])
    return torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=1e-3)


def forgives_too_much(layer, x):
    """A tolerance of a tenth."""
    order = torch.randperm(x.shape[1])
    return torch.allclose(layer(x[:, order]), layer(x)[:, order], atol=0.1)


def compares_the_sorted_outputs(layer, x):
    """Compares the outputs as sets, wherever they stand."""
    order = torch.randperm(x.shape[1])
    same = torch.allclose(layer(x[:, order]).sort(1).values, layer(x).sort(1).values, atol=1e-3)
    return bool(same)


def answers_with_a_tensor(layer, x):
    """A tensor of one truth value is not a bool."""
    order = torch.randperm(x.shape[1])
    return (layer(x[:, order]) - layer(x)[:, order]).abs().max() < 1e-3


# predicted_costs --------------------------------------------------------------------------------


def forgets_the_projections():
    """(c) without the three projections."""
    return [1920, 1280, 1600, 10, 3, 5]


def forgets_the_kernel():
    """(a) as if the kernel were one word wide."""
    return [640, 1280, 3520, 10, 3, 5]


def one_product_a_step():
    """(b) without the product of the state."""
    return [1920, 640, 3520, 10, 3, 5]


def counts_all_products():
    """(d) and (e): all products, though some need nothing from each other."""
    return [1920, 1280, 3520, 20, 5, 5]


def only_attention_miscounted():
    """(e): one layer, one step."""
    return [1920, 1280, 3520, 10, 1, 5]


def kernels_that_do_not_overlap():
    """(f): ⌈10 / 3⌉."""
    return [1920, 1280, 3520, 10, 3, 4]


MISTAKES = {
    "self_attention": [
        returns_the_weights,
        no_softmax,
        scaled_after_the_softmax,
        keys_ask,
        softmax_over_queries,
        not_scaled,
        scaled_by_the_embedding,
        for_one_sentence,
    ],
    "fixed_order_test": [
        expects_the_same_outputs,
        permutes_the_batch,
        to_the_last_bit,
        permutes_the_outputs_only,
        compares_the_means,
        compares_the_last_output,
        reverses_only,
        shifts_only,
        swaps_the_first_two,
        forgives_too_much,
        compares_the_sorted_outputs,
        answers_with_a_tensor,
    ],
    "predicted_costs": [
        forgets_the_projections,
        forgets_the_kernel,
        one_product_a_step,
        counts_all_products,
        only_attention_miscounted,
        kernels_that_do_not_overlap,
    ],
}
