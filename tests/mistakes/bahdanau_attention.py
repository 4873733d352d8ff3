"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math

import torch
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

# my_look ----------------------------------------------------------------------------------------


def weights_twice(query, keys, memory, mask, w):
    """Forgets the context."""
    weights = ((query[:, None] + keys).tanh() @ w).softmax(dim=-1)
    return weights, weights


def keeps_the_axis(query, keys, memory, mask, w):
    """The context keeps an axis of size 1."""
    weights = ((query[:, None] + keys).tanh() @ w).masked_fill(~mask, -math.inf).softmax(dim=-1)
    return weights[:, None] @ memory, weights


def without_tanh(query, keys, memory, mask, w):
    """The query cancels in the softmax."""
    weights = ((query[:, None] + keys) @ w).masked_fill(~mask, -math.inf).softmax(dim=-1)
    return (weights[:, None] @ memory)[:, 0], weights


def softmax_over_the_batch(query, keys, memory, mask, w):
    """Right for a single sentence only in shape: normalizes down the columns."""
    scores = (query[:, None] + keys).tanh() @ w
    weights = scores.softmax(dim=0 if len(query) > 1 else 1)
    return (weights[:, None] @ memory)[:, 0], weights


def without_mask(query, keys, memory, mask, w):
    """Looks at padding."""
    weights = ((query[:, None] + keys).tanh() @ w).softmax(dim=-1)
    return (weights[:, None] @ memory)[:, 0], weights


def zeroes_the_scores(query, keys, memory, mask, w):
    """A score of 0 still has the exponential 1."""
    weights = (((query[:, None] + keys).tanh() @ w) * mask).softmax(dim=-1)
    return (weights[:, None] @ memory)[:, 0], weights


def turns_the_memory(query, keys, memory, mask, w):
    """Averages in the wrong order of tokens."""
    weights = ((query[:, None] + keys).tanh() @ w).masked_fill(~mask, -math.inf).softmax(dim=-1)
    values = memory if len(memory) == 1 else memory.flip(1)
    return (weights[:, None] @ values)[:, 0], weights


def cuts_the_gradient(query, keys, memory, mask, w):
    """Where to look is not learned."""
    weights = ((query[:, None] + keys).tanh() @ w).masked_fill(~mask, -math.inf).softmax(dim=-1)
    return (weights.detach()[:, None] @ memory)[:, 0], weights


def one_query_for_all(query, keys, memory, mask, w):
    """Looks with the first sentence's query."""
    weights = ((query[:1, None] + keys).tanh() @ w).masked_fill(~mask, -math.inf).softmax(dim=-1)
    return (weights[:, None] @ memory)[:, 0], weights


def writes_into_the_keys(query, keys, memory, mask, w):
    """Adds in place, where no gradient is asked for."""
    added = query[:, None] + keys
    if not keys.requires_grad:
        keys += query[:, None]
    weights = (added.tanh() @ w).masked_fill(~mask, -math.inf).softmax(dim=-1)
    return (weights[:, None] @ memory)[:, 0], weights


# predicted_rates --------------------------------------------------------------------------------


def links_of_all_cells():
    """Every cell a link."""
    return [12, 0.43, 5, 0.11, 0.6]


def share_of_gold():
    """Recall in place of AER, in (b)."""
    return [3, 0.5, 5, 0.11, 0.6]


def one_link_left_over():
    """Forgets a column, in (c)."""
    return [3, 0.43, 4, 0.11, 0.6]


def first_rule_again():
    """(d) as (b)."""
    return [3, 0.43, 5, 0.43, 0.6]


def equal_means_none():
    """No link is found, in (e)."""
    return [3, 0.43, 5, 0.11, 1.0]


# fixed_memory -----------------------------------------------------------------------------------


def _read(encoder, embedded, lens, order):
    packed = pack_padded_sequence(embedded[order], lens[order], batch_first=True)
    outputs, last = encoder(packed)
    memory, _ = pad_packed_sequence(outputs, batch_first=True)
    return memory, torch.cat([last[0], last[1]], dim=-1)


def forwards_only(encoder, embedded, lens):
    """The last states of one direction."""
    memory, last = _read(encoder, embedded, lens, lens.argsort(descending=True))
    return memory, last[:, : last.shape[1] // 2]


def does_not_pack(encoder, embedded, lens):
    """Reads the padding, too."""
    outputs, last = encoder(embedded)
    return outputs, torch.cat([last[0], last[1]], dim=-1)


def still_sorted(encoder, embedded, lens):
    """As in the exercise."""
    return _read(encoder, embedded, lens, lens.argsort(descending=True))


def sorts_once_more(encoder, embedded, lens):
    """The same permutation again is not its inverse."""
    order = lens.argsort(descending=True)
    memory, last = _read(encoder, embedded, lens, order)
    return memory[order], last[order]


def last_states_still_sorted(encoder, embedded, lens):
    """Puts the memory back, and nothing else."""
    order = lens.argsort(descending=True)
    memory, last = _read(encoder, embedded, lens, order)
    return memory[order.argsort()], last


MISTAKES = {
    "my_look": [
        weights_twice,
        keeps_the_axis,
        without_tanh,
        softmax_over_the_batch,
        without_mask,
        zeroes_the_scores,
        turns_the_memory,
        cuts_the_gradient,
        one_query_for_all,
        writes_into_the_keys,
    ],
    "predicted_rates": [
        links_of_all_cells,
        share_of_gold,
        one_link_left_over,
        first_rule_again,
        equal_means_none,
    ],
    "fixed_memory": [
        forwards_only,
        does_not_pack,
        still_sorted,
        sorts_once_more,
        last_states_still_sorted,
    ],
}
