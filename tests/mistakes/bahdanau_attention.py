"""Mistakes in the exercises of *Bahdanau attention*, each with the property that catches it and its hint."""

import math
import random

import torch
from mistakes.table import mistake
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def _weights(query, keys, mask, w):
    return ((query[:, None] + keys).tanh() @ w).masked_fill(~mask, -math.inf).softmax(dim=-1)


def _averaged(weights, memory):
    return (weights[:, None] @ memory)[:, 0], weights


@mistake(
    "my_context",
    caught_by="gives each sentence weights that sum",
    reason="are NaN",
    hint="True at real tokens",
)
def forbids_the_real_tokens(query, keys, memory, mask, w):
    """The mask the wrong way round: a sentence without padding has nothing left."""
    return _averaged(_weights(query, keys, ~mask, w), memory)


@mistake("my_context", caught_by="gives padding no weight", hint="Where does the mask come in?")
def zeroes_the_scores(query, keys, memory, mask, w):
    """A score of 0 still has the exponential 1."""
    return _averaged((((query[:, None] + keys).tanh() @ w) * mask).softmax(dim=-1), memory)


@mistake(
    "my_context",
    caught_by="averages the memory, not the keys",
    hint="What is the context an average",
)
def turns_the_memory(query, keys, memory, mask, w):
    """Averages in the wrong order of tokens."""
    return _averaged(_weights(query, keys, mask, w), memory if len(memory) == 1 else memory.flip(1))


@mistake(
    "my_context", caught_by="gives the right weights, context", hint="Which of the steps differs"
)
def one_query_for_all(query, keys, memory, mask, w):
    """Looks with the first sentence's query."""
    return _averaged(_weights(query[:1], keys, mask, w), memory)


@mistake(
    "my_context",
    caught_by="gives each sentence weights that sum",
    reason="sums of the rows",
    hint="before the softmax",
)
def masks_after_the_softmax(query, keys, memory, mask, w):
    """What the padding had got is lost."""
    return _averaged(((query[:, None] + keys).tanh() @ w).softmax(dim=-1) * mask, memory)


@mistake(
    "my_context",
    caught_by="gives a context (batch, 2d)",
    reason="expected shape (3, 8)",
    hint="a 1 left over",
)
def keeps_the_axis(query, keys, memory, mask, w):
    """The context keeps an axis of size 1."""
    weights = _weights(query, keys, mask, w)
    return weights[:, None] @ memory, weights


@mistake(
    "my_context",
    caught_by="gives the weights 0.080, 0.368, 0.552",
    reason="expected shape (1, 1)",
    hint="batch of one sentence was squeezed",
)
def squeezes_the_batch_away(query, keys, memory, mask, w):
    """Squeezes all axes of size 1, with a batch of one sentence also that of the batch."""
    weights = _weights(query, keys, mask, w)
    return (weights[:, None] @ memory).squeeze(), weights


@mistake(
    "my_context",
    caught_by="gives a context (batch, 2d)",
    reason="expected shape (3, 5)",
    hint="axis is too many",
)
def a_column_of_weights(query, keys, memory, mask, w):
    """A matrix product with w as a column."""
    scores = (query[:, None] + keys).tanh() @ w[:, None]
    weights = scores.masked_fill(~mask[..., None], -math.inf).softmax(dim=1)
    return (weights * memory).sum(dim=1), weights


@mistake(
    "my_context",
    caught_by="gives a context (batch, 2d)",
    reason="RuntimeError",
    hint="up to the scores (b, m)",
)
def weights_times_w(query, keys, memory, mask, w):
    """Multiplies by w without adding up."""
    weights = ((query[:, None] + keys).tanh() * w).masked_fill(~mask, -math.inf).softmax(dim=-1)
    return _averaged(weights, memory)


@mistake(
    "my_context",
    caught_by="gives a context (batch, 2d)",
    reason="expected the context first",
    hint="comes first",
)
def weights_first(query, keys, memory, mask, w):
    """Returns the two in the wrong order."""
    return _averaged(_weights(query, keys, mask, w), memory)[::-1]


@mistake(
    "my_context",
    caught_by="gives the weights 0.080, 0.368, 0.552",
    reason="expected 0.971",
    hint="sum over the tokens",
)
def a_mean_of_the_products(query, keys, memory, mask, w):
    """Divides by the number of tokens once more."""
    weights = _weights(query, keys, mask, w)
    return (weights[:, :, None] * memory).mean(dim=1), weights


@mistake(
    "my_context",
    caught_by="gives a context (batch, 2d)",
    reason="expected shape (3, 8)",
    hint="its own memory",
)
def mixes_the_batch(query, keys, memory, mask, w):
    """Each sentence's weights meet the memory of all."""
    weights = _weights(query, keys, mask, w)
    return weights @ memory, weights


@mistake(
    "my_context",
    caught_by="gives each sentence weights that sum",
    hint="Over which axis is your softmax?",
)
def softmax_over_the_batch(query, keys, memory, mask, w):
    """Right for a single sentence only in shape: normalizes down the columns."""
    scores = (query[:, None] + keys).tanh() @ w
    return _averaged(scores.softmax(dim=0 if len(query) > 1 else 1), memory)


@mistake(
    "my_context",
    caught_by="gives the weights 0.080, 0.368, 0.552",
    reason="expected 0.971",
    hint="sum over the tokens",
)
def mixes_in_place(query, keys, memory, mask, w):
    """Mixes in the caller's memory, and counts the first token twice."""
    weights = _weights(query, keys, mask, w)
    if memory.requires_grad:
        return _averaged(weights, memory)
    memory *= weights[..., None]
    return memory.sum(dim=1) + memory[:, 0], weights


@mistake(
    "my_context", caught_by="gives the right weights, context", hint="Does a line cut off the way"
)
def cuts_the_gradient(query, keys, memory, mask, w):
    """Where to look is not learned."""
    weights = _weights(query, keys, mask, w)
    return _averaged(weights.detach(), memory)[0], weights


@mistake("my_context", caught_by="leaves its inputs unchanged", hint="Does a line write into")
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


@mistake(
    "fixed_memory", caught_by="keeps row i of the memory", hint="In which order does the encoder"
)
def still_sorted(encoder, embedded, lens):
    """As in the exercise."""
    return _read(encoder, embedded, lens, lens.argsort(descending=True))


@mistake(
    "fixed_memory",
    caught_by="gives the memory (batch, tokens, 2d)",
    hint="What does the buggy version",
)
def forwards_only(encoder, embedded, lens):
    """The last states of one direction."""
    memory, last = _read(encoder, embedded, lens, lens.argsort(descending=True))
    return memory, last[:, : last.shape[1] // 2]


@mistake(
    "fixed_memory",
    caught_by="is right for a single sentence",
    reason="isn't 0 at the padding",
    hint="Pack the batch",
)
def does_not_pack(encoder, embedded, lens):
    """Reads the padding, too."""
    outputs, last = encoder(embedded)
    return outputs, torch.cat([last[0], last[1]], dim=-1)


@mistake(
    "fixed_memory", caught_by="keeps row i of the memory", hint="In which order does the encoder"
)
def sorts_once_more(encoder, embedded, lens):
    """The same permutation again is not its inverse."""
    order = lens.argsort(descending=True)
    memory, last = _read(encoder, embedded, lens, order)
    return memory[order], last[order]


@mistake("fixed_memory", caught_by="keeps row i of the last states", hint="What else has a row")
def last_states_still_sorted(encoder, embedded, lens):
    """Puts the memory back, and nothing else."""
    order = lens.argsort(descending=True)
    memory, last = _read(encoder, embedded, lens, order)
    return memory[order.argsort()], last


@mistake(
    "my_order",
    caught_by="returns a list of positions",
    reason="expected a list of positions",
    hint="return words",
)
def sorts_the_words(words):
    """The words in their new order, not their positions."""
    return sorted(words)


@mistake(
    "my_order",
    caught_by="uses each position from 0 to n − 1 once",
    reason="positions [",
    hint="has two positions",
)
def first_of_equal_words(words):
    """A word that is there twice has the same position twice."""
    return [words.index(word) for word in sorted(words)]


@mistake(
    "my_order",
    caught_by="uses each position from 0 to n − 1 once",
    hint="Which position is missing?",
)
def counts_from_one(words):
    """Positions begin with 0."""
    return list(range(len(words), 0, -1))


@mistake("my_order", caught_by="gives the same order", hint="What would the translator have")
def throws_dice(words):
    """Another order in each call."""
    return random.sample(range(len(words)), len(words))


@mistake(
    "my_order", caught_by="returns a list of positions", reason="got a tensor", hint=".tolist()"
)
def a_tensor(words):
    """Its positions are tensors, which are equal to nothing but themselves."""
    return torch.arange(len(words)).flip(0)


@mistake(
    "my_order", caught_by="returns a list of positions", reason="expected a whole number", hint="//"
)
def floats(words):
    """Floats such as 2.0, which index nothing."""
    return [position / 1 for position in reversed(range(len(words)))]


@mistake(
    "my_order",
    caught_by="returns a list of positions",
    reason="expected a list of positions",
    hint="isn't a list yet",
)
def an_iterator(words):
    """Not a list yet."""
    return reversed(range(len(words)))


@mistake(
    "my_order",
    caught_by="writes most sentences in another order",
    hint="Which sentences does your rule",
)
def as_in_french(words):
    """Nothing is hidden."""
    return list(range(len(words)))


@mistake("my_order", caught_by="returns a list of positions", hint="What does your rule return")
def only_the_end(words):
    """Fits a sentence of one length."""
    return [8, 7, 6, 5, 4, 3, 2, 1, 0]


@mistake("my_order", caught_by="leaves the sentence as it was", hint="Does a line sort or reverse")
def reverses_in_place(words):
    """The caller's sentence is backwards, too."""
    words.reverse()
    return list(range(len(words)))[::-1]
