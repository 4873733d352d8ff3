"""Mistakes in the exercises of *Attention at length*, each with the property that catches it and its hint."""

import math

import torch
from mistakes.table import mistake
from torch.nn import functional as F

from course_utils.lessons.attention_at_length.blocks import scores_of


def _sums(q, k, v, size, *, begin=-math.inf, step):
    """c, s and y after all blocks; `step` rescales and adds."""
    c, s, y = (
        torch.full((len(q), 1), begin),
        torch.zeros(len(q), 1),
        torch.zeros(len(q), v.shape[1]),
    )
    for start in range(0, len(k), size):
        block = slice(start, start + size)
        c, s, y = step(c, s, y, scores_of(q, k, block), v[block])
    return c, s, y


def _add(c, s, y, scores, values, *, rescale_s=True, rescale_y=True, sign=1):
    old, c = c, torch.maximum(c, scores.amax(1, keepdim=True))
    e, factor = (scores - c).exp(), (sign * (old - c)).exp().nan_to_num(1, posinf=1)
    s = s * (factor if rescale_s else 1) + e.sum(1, keepdim=True)
    return c, s, y * (factor if rescale_y else 1) + e @ values


@mistake(
    "attention_in_blocks",
    caught_by="returns answers (n, d_v)",
    hint="What should the function return",
)
def answers_alone(q, k, v, size):
    """Returns the answers only."""
    _, s, y = _sums(q, k, v, size, step=_add)
    return y / s


@mistake("attention_in_blocks", caught_by="returns answers (n, d_v)", hint="keepdim=True")
def without_keepdim(q, k, v, size):
    """Returns the log-sum-exps without their second axis."""
    c, s, y = _sums(q, k, v, size, step=_add)
    return y / s, (c + s.log())[:, 0]


@mistake(
    "attention_in_blocks",
    caught_by="is a softmax if all keys",
    hint="What do they have to be divided by",
)
def undivided(q, k, v, size):
    """Forgets to divide."""
    c, s, y = _sums(q, k, v, size, step=_add)
    return y, c + s.log()


@mistake("attention_in_blocks", caught_by="is a softmax if all keys", hint="What is y divided by")
def softmax_of_each_block(q, k, v, size):
    """Divides in each block, and once more at the end."""

    def step(c, s, y, scores, values):
        c = torch.maximum(c, scores.amax(1, keepdim=True))
        e = (scores - c).exp()
        return c, s + e.sum(1, keepdim=True), y + e / e.sum(1, keepdim=True) @ values

    c, s, y = _sums(q, k, v, size, step=step)
    return y / s, c + s.log()


@mistake(
    "attention_in_blocks",
    caught_by="gives the same answers in blocks",
    hint="You never multiply the old sums",
)
def never_rescaled(q, k, v, size):
    """Adds sums that were computed with different c."""
    c, s, y = _sums(q, k, v, size, step=lambda *x: _add(*x, rescale_s=False, rescale_y=False))
    return y / s, c + s.log()


@mistake("attention_in_blocks", caught_by="gives the same answers in blocks", hint="You rescale s")
def only_s_rescaled(q, k, v, size):
    """Forgets to rescale y."""
    c, s, y = _sums(q, k, v, size, step=lambda *x: _add(*x, rescale_y=False))
    return y / s, c + s.log()


@mistake("attention_in_blocks", caught_by="gives the same answers in blocks", hint="You rescale y")
def only_y_rescaled(q, k, v, size):
    """Forgets to rescale s."""
    c, s, y = _sums(q, k, v, size, step=lambda *x: _add(*x, rescale_s=False))
    return y / s, c + s.log()


@mistake(
    "attention_in_blocks", caught_by="gives the same answers in blocks", hint="Look at the sign"
)
def rescaled_the_other_way(q, k, v, size):
    """Has new minus old in the exponent."""
    c, s, y = _sums(q, k, v, size, step=lambda *x: _add(*x, sign=-1))
    return y / s, c + s.log()


@mistake("attention_in_blocks", caught_by="is a softmax if all keys", hint="the old c is −∞")
def factor_turned_from_the_start(q, k, v, size):
    """Has new minus old in the exponent, also at the first block, where this is infinite."""

    def step(c, s, y, scores, values):
        old, c = c, torch.maximum(c, scores.amax(1, keepdim=True))
        e, factor = (scores - c).exp(), (c - old).exp()
        return c, s * factor + e.sum(1, keepdim=True), y * factor + e @ values

    c, s, y = _sums(q, k, v, size, step=step)
    return y / s, c + s.log()


@mistake(
    "attention_in_blocks",
    caught_by="gives the same answers in blocks",
    hint="Which keys does your last block have",
)
def whole_blocks_only(q, k, v, size):
    """Leaves out a last block that is shorter."""
    c, s, y = (torch.full((len(q), 1), -math.inf), torch.zeros(len(q), 1), torch.zeros_like(v))
    for block in (slice(at * size, (at + 1) * size) for at in range(len(k) // size)):
        c, s, y = _add(c, s, y, scores_of(q, k, block), v[block])
    return y / s, c + s.log()


@mistake(
    "attention_in_blocks",
    caught_by="survives scores in the hundreds",
    hint="Does each row have its own c",
)
def one_largest_for_all_rows(q, k, v, size):
    """Subtracts the largest score of all queries from every row."""

    def step(c, s, y, scores, values):
        old, c = c, torch.maximum(c, scores.max())
        e, factor = (scores - c).exp(), (old - c).exp()
        return c, s * factor + e.sum(1, keepdim=True), y * factor + e @ values

    c, s, y = _sums(q, k, v, size, step=step)
    return y / s, c + s.log()


@mistake(
    "attention_in_blocks", caught_by="gives the same answers in blocks", hint="of all blocks so far"
)
def largest_of_the_block(q, k, v, size):
    """Takes the largest score of each block for c."""

    def step(c, s, y, scores, values):
        old, c = c, scores.amax(1, keepdim=True)
        e, factor = (scores - c).exp(), (old - c).exp()
        return c, s * factor + e.sum(1, keepdim=True), y * factor + e @ values

    c, s, y = _sums(q, k, v, size, step=step)
    return y / s, c + s.log()


@mistake(
    "attention_in_blocks",
    caught_by="survives scores in the hundreds",
    hint="What is e to the power of 200",
)
def without_largest(q, k, v, size):
    """Subtracts nothing, and needs no factor."""

    def step(c, s, y, scores, values):
        e = scores.exp()
        return torch.zeros_like(c), s + e.sum(1, keepdim=True), y + e @ values

    c, s, y = _sums(q, k, v, size, step=step)
    return y / s, c + s.log()


@mistake(
    "attention_in_blocks", caught_by="survives scores in the hundreds", hint="Where does c begin"
)
def begins_at_zero(q, k, v, size):
    """Begins with c = 0."""
    c, s, y = _sums(q, k, v, size, begin=0.0, step=_add)
    return y / s, c + s.log()


@mistake(
    "attention_in_blocks", caught_by="returns the log-sum-exp", hint="Multiplying by e^c becomes"
)
def logarithm_of_s(q, k, v, size):
    """Forgets c."""
    _, s, y = _sums(q, k, v, size, step=_add)
    return y / s, s.log()


@mistake(
    "attention_in_blocks",
    caught_by="never has more scores",
    hint="Do you keep the scores of all blocks",
)
def whole_matrix(q, k, v, size):
    """Puts the blocks together first."""
    blocks = [scores_of(q, k, slice(start, start + size)) for start in range(0, len(k), size)]
    scores = torch.cat(blocks, dim=1)
    c = scores.amax(1, keepdim=True)
    e = (scores - c).exp()
    s = e.sum(1, keepdim=True)
    return e @ v / s, c + s.log()


ON_PAPER = {
    "cache_on_paper": {
        "a": 23_040,  # counts the keys only
        "b": 414_720,  # multiplies the answer to (a) by nine
        "c": 512,  # forgets the layers
        "d": 4.2915,  # divides by 2^30
    },
}


def _read(q, k, v):
    return [(torch.outer(key, value), key) for key, value in zip(k, v, strict=True)]


@mistake("recurrent", caught_by="gives an answer for each token", hint="`torch.stack`")
def last_answer(q, k, v):
    """Returns the last answer only."""
    S = k.T @ v
    return q[-1] @ S / (q[-1] @ k.sum(0))


@mistake("recurrent", caught_by="answers the first token", hint="Its weights don't add up to 1")
def not_divided(q, k, v):
    """Forgets z."""
    S, answers = torch.zeros(q.shape[1], v.shape[1]), []
    for asks, (outer, _) in zip(q, _read(q, k, v), strict=True):
        S = S + outer
        answers.append(asks @ S)
    return torch.stack(answers)


@mistake("recurrent", caught_by="answers the first token", hint="What is on the sheet when")
def asks_before_writing(q, k, v):
    """Asks before it writes the token on the sheet."""
    S, z, answers = torch.zeros(q.shape[1], v.shape[1]), torch.zeros(q.shape[1]), []
    for asks, (outer, key) in zip(q, _read(q, k, v), strict=True):
        answers.append(asks @ S / (asks @ z))
        S, z = S + outer, z + key
    return torch.stack(answers)


def _divided(q, k, v, by):
    S, z, answers = torch.zeros(q.shape[1], v.shape[1]), torch.zeros(q.shape[1]), []
    for n, (asks, (outer, key)) in enumerate(zip(q, _read(q, k, v), strict=True), start=1):
        S, z = S + outer, z + key
        answers.append(asks @ S / by(asks, z, n))
    return torch.stack(answers)


@mistake("recurrent", caught_by="answers the first token", hint="You divide by the sum of z")
def divided_by_sum_of_z(q, k, v):
    """Divides all queries by the same sum."""
    return _divided(q, k, v, lambda asks, z, n: z.sum())


@mistake("recurrent", caught_by="answers the first token", hint="by the number of tokens")
def divided_by_tokens(q, k, v):
    """Divides by the number of tokens so far."""
    return _divided(q, k, v, lambda asks, z, n: n)


@mistake("recurrent", caught_by="is the average of all values", hint="features already")
def features_again(q, k, v):
    """Applies the features to features."""
    q, k = F.elu(q) + 1, F.elu(k) + 1
    return _divided(q, k, v, lambda asks, z, n: asks @ z)


@mistake("recurrent", caught_by="answers the first token", hint="Is the sheet complete before")
def sees_everything(q, k, v):
    """Completes the sheet before anybody asks."""
    return q @ (k.T @ v) / (q @ k.sum(0))[:, None]


@mistake("recurrent", caught_by="doesn't change an answer", hint="Is S complete")
def others_complete(q, k, v):
    """Answers the first token alone, and all others from the complete sheet."""
    return torch.cat([v[:1], sees_everything(q, k, v)[1:]])


@mistake(
    "recurrent", caught_by="is the average of all values", hint="Each token gets its own value back"
)
def forgets(q, k, v):
    """Begins a new sheet with each token."""
    return torch.stack([
        asks @ outer / (asks @ key) for asks, (outer, key) in zip(q, _read(q, k, v), strict=True)
    ])  # fmt: skip


@mistake("recurrent", caught_by="is the average of all values", hint="plain mean")
def plain_mean(q, k, v):
    """Weights all values alike."""
    return v.cumsum(0) / torch.arange(1, len(v) + 1)[:, None]


@mistake("recurrent", caught_by="has a memory that doesn't grow", hint="a table of n × n")
def masked_table(q, k, v):
    """Computes the weights of all pairs."""
    weights = (q @ k.T).tril()
    return weights @ v / weights.sum(1, keepdim=True)


@mistake("recurrent", caught_by="has a memory that doesn't grow", hint="all earlier keys again")
def list_of_keys(q, k, v):
    """Keeps each key and each value in a list: a cache."""
    keys, values, answers = [], [], []
    for asks, key, value in zip(q, k, v, strict=True):
        keys.append(key)
        values.append(value)
        weights = torch.stack(keys) @ asks
        answers.append(weights @ torch.stack(values) / weights.sum())
    return torch.stack(answers)


@mistake("recurrent", caught_by="has a memory that doesn't grow", hint="all earlier keys again")
def sheet_written_anew(q, k, v):
    """Writes the whole past on a new sheet for each token."""
    answers = [
        q[i] @ (k[: i + 1].T @ v[: i + 1]) / (q[i] @ k[: i + 1].sum(0)) for i in range(len(q))
    ]
    return torch.stack(answers)


@mistake("recurrent", caught_by="is the average of all values", hint="What is left of the first")
def window_of_nine(q, k, v):
    """Forgets what is older than nine tokens."""
    spans = [slice(max(0, i - 8), i + 1) for i in range(len(q))]
    return torch.stack([
        asks @ (k[span].T @ v[span]) / (asks @ k[span].sum(0)) for asks, span in zip(q, spans, strict=True)
    ])  # fmt: skip


@mistake("recurrent", caught_by="is the average of all values", hint="What is left of the first")
def sheet_wiped(q, k, v):
    """Begins a new sheet every sixteen tokens."""
    parts = zip(*(each.split(16) for each in (q, k, v)), strict=True)
    return torch.cat([_divided(*part, lambda asks, z, n: asks @ z) for part in parts])


@mistake("recurrent", caught_by="has a memory that doesn't grow", hint="Do you keep S")
def list_of_sheets(q, k, v):
    """Keeps S and z of each token."""
    sheets = [(torch.zeros(k.shape[1], v.shape[1]), torch.zeros(k.shape[1]))]
    for outer, key in _read(q, k, v):
        sheets.append((sheets[-1][0] + outer, sheets[-1][1] + key))
    return torch.stack([
        asks @ S / (asks @ z) for asks, (S, z) in zip(q, sheets[1:], strict=True)
    ])  # fmt: skip


@mistake("recurrent", caught_by="has a memory that doesn't grow", hint="Did you leave PyTorch")
def plain_lists(q, k, v):
    """Computes all weights in plain Python."""
    keys, values, answers = k.tolist(), v.tolist(), []
    for i, asks in enumerate(q.tolist(), start=1):
        weights = [sum(a * b for a, b in zip(asks, key, strict=True)) for key in keys[:i]]
        columns = zip(*values[:i], strict=True)
        sums = [sum(a * b for a, b in zip(weights, column, strict=True)) for column in columns]
        answers.append([each / sum(weights) for each in sums])
    return torch.tensor(answers)
