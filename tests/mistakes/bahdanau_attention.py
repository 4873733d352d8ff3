"""Seeded mistakes for the checks of this chapter: each must fail, with the hint of the property it breaks."""

import math
import random

import torch
from mistakes.table import wrong
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def _weights(query, keys, mask, w):
    return ((query[:, None] + keys).tanh() @ w).masked_fill(~mask, -math.inf).softmax(dim=-1)


def _averaged(weights, memory):
    return (weights[:, None] @ memory)[:, 0], weights


class my_context:
    forbids_the_real_tokens = wrong(
        "The mask the wrong way round: a sentence without padding has nothing left.",
        lambda query, keys, memory, mask, w: _averaged(_weights(query, keys, ~mask, w), memory),
    )
    zeroes_the_scores = wrong(
        "A score of 0 still has the exponential 1.",
        lambda query, keys, memory, mask, w: _averaged(
            (((query[:, None] + keys).tanh() @ w) * mask).softmax(dim=-1), memory
        ),
    )
    turns_the_memory = wrong(
        "Averages in the wrong order of tokens.",
        lambda query, keys, memory, mask, w: _averaged(
            _weights(query, keys, mask, w), memory if len(memory) == 1 else memory.flip(1)
        ),
    )
    one_query_for_all = wrong(
        "Looks with the first sentence's query.",
        lambda query, keys, memory, mask, w: _averaged(_weights(query[:1], keys, mask, w), memory),
    )
    masks_after_the_softmax = wrong(
        "What the padding had got is lost.",
        lambda query, keys, memory, mask, w: _averaged(
            ((query[:, None] + keys).tanh() @ w).softmax(dim=-1) * mask, memory
        ),
    )

    def keeps_the_axis(query, keys, memory, mask, w):
        """The context keeps an axis of size 1."""
        weights = _weights(query, keys, mask, w)
        return weights[:, None] @ memory, weights

    def squeezes_the_batch_away(query, keys, memory, mask, w):
        """Squeezes all axes of size 1, with a batch of one sentence also that of the batch."""
        weights = _weights(query, keys, mask, w)
        return (weights[:, None] @ memory).squeeze(), weights

    def a_column_of_weights(query, keys, memory, mask, w):
        """A matrix product with w as a column."""
        scores = (query[:, None] + keys).tanh() @ w[:, None]
        weights = scores.masked_fill(~mask[..., None], -math.inf).softmax(dim=1)
        return (weights * memory).sum(dim=1), weights

    def weights_times_w(query, keys, memory, mask, w):
        """Multiplies by w without adding up."""
        weights = ((query[:, None] + keys).tanh() * w).masked_fill(~mask, -math.inf).softmax(dim=-1)
        return _averaged(weights, memory)

    def weights_first(query, keys, memory, mask, w):
        """Returns the two in the wrong order."""
        return _averaged(_weights(query, keys, mask, w), memory)[::-1]

    def a_mean_of_the_products(query, keys, memory, mask, w):
        """Divides by the number of tokens once more."""
        weights = _weights(query, keys, mask, w)
        return (weights[:, :, None] * memory).mean(dim=1), weights

    def mixes_the_batch(query, keys, memory, mask, w):
        """Each sentence's weights meet the memory of all."""
        weights = _weights(query, keys, mask, w)
        return weights @ memory, weights

    def softmax_over_the_batch(query, keys, memory, mask, w):
        """Right for a single sentence only in shape: normalizes down the columns."""
        scores = (query[:, None] + keys).tanh() @ w
        return _averaged(scores.softmax(dim=0 if len(query) > 1 else 1), memory)

    def mixes_in_place(query, keys, memory, mask, w):
        """Mixes in the caller's memory, and counts the first token twice."""
        weights = _weights(query, keys, mask, w)
        if memory.requires_grad:
            return _averaged(weights, memory)
        memory *= weights[..., None]
        return memory.sum(dim=1) + memory[:, 0], weights

    def cuts_the_gradient(query, keys, memory, mask, w):
        """Where to look is not learned."""
        weights = _weights(query, keys, mask, w)
        return _averaged(weights.detach(), memory)[0], weights

    def writes_into_the_keys(query, keys, memory, mask, w):
        """Adds in place, where no gradient is asked for."""
        weights = _weights(query, keys, mask, w)
        if not keys.requires_grad:
            keys += query[:, None]
        return _averaged(weights, memory)


def _read(encoder, embedded, lens, order):
    packed = pack_padded_sequence(embedded[order], lens[order], batch_first=True)
    outputs, last = encoder(packed)
    memory, _ = pad_packed_sequence(outputs, batch_first=True)
    return memory, torch.cat([last[0], last[1]], dim=-1)


class fixed_memory:
    still_sorted = wrong(
        "As in the exercise.",
        lambda encoder, embedded, lens: _read(
            encoder, embedded, lens, lens.argsort(descending=True)
        ),
    )

    def forwards_only(encoder, embedded, lens):
        """The last states of one direction."""
        memory, last = _read(encoder, embedded, lens, lens.argsort(descending=True))
        return memory, last[:, : last.shape[1] // 2]

    def does_not_pack(encoder, embedded, lens):
        """Reads the padding, too."""
        outputs, last = encoder(embedded)
        return outputs, torch.cat([last[0], last[1]], dim=-1)

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


class my_order:
    sorts_the_words = wrong(
        "The words in their new order, not their places.", lambda words: sorted(words)
    )
    first_of_equal_words = wrong(
        "A word that is there twice has the same place twice.",
        lambda words: [words.index(word) for word in sorted(words)],
    )
    counts_from_one = wrong("Places begin with 0.", lambda words: list(range(len(words), 0, -1)))
    throws_dice = wrong(
        "Another order in each call.", lambda words: random.sample(range(len(words)), len(words))
    )
    a_tensor = wrong(
        "Its places are tensors, which are equal to nothing but themselves.",
        lambda words: torch.arange(len(words)).flip(0),
    )
    floats = wrong(
        "Floats such as 2.0, which index nothing.",
        lambda words: [place / 1 for place in reversed(range(len(words)))],
    )
    an_iterator = wrong("Not a list yet.", lambda words: reversed(range(len(words))))
    as_in_french = wrong("Nothing is hidden.", lambda words: list(range(len(words))))
    only_the_end = wrong(
        "Fits a sentence of one length.", lambda words: [8, 7, 6, 5, 4, 3, 2, 1, 0]
    )

    def reverses_in_place(words):
        """The caller's sentence is backwards, too."""
        words.reverse()
        return list(range(len(words)))[::-1]


ANSWERS = {
    "keeps_the_axis": ("expected shape (3, 8)", "a 1 left over"),
    "squeezes_the_batch_away": ("expected shape (1, 1)", "batch of one sentence was squeezed"),
    "weights_first": ("expected the context first", "comes first"),
    "weights_times_w": ("RuntimeError", "up to the scores (b, m)"),
    "a_mean_of_the_products": ("expected 0.971", "sum over the tokens"),
    "does_not_pack": ("isn't 0 at the padding", "Pack the batch"),
    "mixes_in_place": ("expected 0.971", "sum over the tokens"),
    "a_tensor": ("got a tensor", ".tolist()"),
    "floats": ("expected a whole number", "//"),
    "an_iterator": ("expected a list of places", "isn't a list yet"),
    "masks_after_the_softmax": ("sums of the rows", "before the softmax"),
    "a_column_of_weights": ("expected shape (3, 5)", "axis is too many"),
    "mixes_the_batch": ("expected shape (3, 8)", "its own memory"),
    "forbids_the_real_tokens": ("are NaN", "True at real tokens"),
    "sorts_the_words": ("expected a list of places", "return words"),
    "first_of_equal_words": ("places [", "has two places"),
}
