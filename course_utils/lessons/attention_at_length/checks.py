"""Checks of *Attention at length*: attention in blocks, the bytes of a cache, and linear attention token by token."""

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import torch
from torch import Tensor
from torch.multiprocessing.reductions import StorageWeakRef
from torch.nn import functional as F
from torch.overrides import TorchFunctionMode

from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_close, expect_shape, expect_tensors
from course_utils.kit.on_paper import on_paper
from course_utils.lessons.attention_at_length.blocks import fused, in_blocks


class _Watch(TorchFunctionMode):
    """Counts numbers: those of the largest tensor that an operation makes, and those that are held and read.

    Args:
        free: a tensor whose reading doesn't count.

    Attributes:
        count: numbers of the largest tensor.
        held: the most numbers at one time in all tensors made so far that somebody still holds.
        read: numbers that all operations read. Views and putting tensors together don't count.
    """

    count = held = read = 0

    def __init__(self, free: Tensor | None = None):
        super().__init__()
        self._free = set() if free is None else {_place(free)}
        self._living: dict[int, tuple[StorageWeakRef, int]] = {}
        self._numbers = 0  # of `_living`, where some may be dead already

    def __torch_function__(self, func, types, args=(), kwargs=None):
        made = func(*args, **(kwargs or {}))
        results, inputs = _tensors([made]), _tensors([*args, *(kwargs or {}).values()])
        self.count = max([self.count, *(each.numel() for each in results)])
        places = {_place(each) for each in inputs}
        new = [each for each in results if _place(each) not in places]  # no views
        for each in new:
            self._hold(each)
        if new and func not in (torch.cat, torch.concat, torch.stack, torch.vstack):
            self.read += sum(each.numel() for each in inputs if _place(each) not in self._free)
        return made

    def _hold(self, result: Tensor) -> None:
        storage = result.untyped_storage()
        numbers = storage.nbytes() // result.element_size()
        self._living[_place(result)] = StorageWeakRef(storage), numbers
        self._numbers += numbers
        if self._numbers > self.held:
            alive = {at: each for at, each in self._living.items() if not each[0].expired()}
            self._living, self._numbers = alive, sum(numbers for _, numbers in alive.values())
            self.held = max(self.held, self._numbers)


def _place(tensor: Tensor) -> int:
    """What a tensor has in common with its views, and with no other tensor that lives at the same time."""
    return tensor.untyped_storage()._cdata


def _tensors(values) -> list[Tensor]:
    """All tensors among `values` and in their lists and tuples."""
    within = [
        each for value in values for each in (value if isinstance(value, tuple | list) else [value])
    ]
    return [each for each in within if isinstance(each, Tensor)]


@contextmanager
def _watch(free: Tensor | None = None) -> Iterator[_Watch]:
    with torch.no_grad(), _Watch(free) as mode:
        yield mode


# Attention in blocks ------------------------------------------------------------------------------

attention_in_blocks = Check(forbids=["scaled_dot_product_attention", "softmax"])

Candidate = Callable[..., tuple[Tensor, Tensor]]


def _inputs(n: int = 10, scale: float = 1.0) -> tuple[Tensor, Tensor, Tensor]:
    q, k, v = torch.randn(n, 4), torch.randn(n, 4), torch.randn(n, 3)
    return scale * q, k, v


def _answers(candidate: Candidate, *inputs: Tensor, size: int) -> Tensor:
    return expect_tensors(candidate(*inputs, size), "answers", "log-sum-exp")[0].to(inputs[2])


@attention_in_blocks.must("returns answers (n, d_v), and log-sum-exps (n, 1)")
def returns_two_tensors(candidate):
    """What shape do c and s have? `amax(dim=1, keepdim=True)` and `sum(dim=1, keepdim=True)` give (n, 1), which
    broadcasts over the columns of a block and of the values.
    """
    answers, lse = expect_tensors(candidate(*_inputs(), 4), "answers", "log-sum-exp")
    expect_shape(answers, (10, 3))
    expect_shape(lse, (10, 1))


@attention_in_blocks.must("is a softmax if all keys are one block")
def is_softmax_in_one_block(candidate):
    """What is y divided by, in the end? By the sum of the exponentials, s.

    Are both sums made of the same exponentials, `(scores - c).exp()`?
    """
    q, k, v = _inputs()
    answers = _answers(candidate, q, k, v, size=10)
    undivided = (q @ k.T / 2).masked_fill(torch.ones(10, 10).triu(1).bool(), -math.inf)
    undivided = (undivided - undivided.amax(1, keepdim=True)).exp() @ v
    hint = ""
    if answers.isnan().any():
        hint = (
            "At the first block the old c is −∞. Is your factor 0 there, or do you have the new c minus the old one? "
            "And which of the two do you subtract from the scores? Remember that −∞ − (−∞) is NaN."
        )
    elif torch.allclose(answers, undivided, atol=1e-5):
        hint = "These are the sums y. What do they have to be divided by?"
    expect_close(answers, fused(q, k, v), entry="row", hint=hint)


@attention_in_blocks.must("gives the same answers in blocks of any size")
def same_in_blocks_of_any_size(candidate):
    """A new block may bring a larger score. What do you do with both old sums, s and y, before you add to them?

    The factor is the exponential of the old largest score minus the new one. Do you still have the old one when you
    compute it?
    """
    q, k, v = _inputs()
    right = fused(q, k, v)
    for size in (4, 3, 1, 12):
        answers = _answers(candidate, q, k, v, size=size)
        expect_close(
            answers,
            right,
            f"in blocks of {size}",
            entry="row",
            hint=_rescaled(answers, q, k, v, size),
        )


def _rescaled(answers: Tensor, q: Tensor, k: Tensor, v: Tensor, size: int) -> str:
    """A hint for five ways that are nearly right, and for a last block that is left out."""
    ways = {
        "neither": "You never multiply the old sums. With which c were they computed, and which c do you have now?",
        "only s": "You rescale s. Which other sum was computed with the old c?",
        "only y": "You rescale y. Which other sum was computed with the old c?",
        "turned": "Look at the sign in the exponent of your factor. If c rises, should the old sums grow or shrink?",
        "last": "Is c the largest score of this block, or of all blocks so far? `torch.maximum` compares two tensors.",
    }
    for way, hint in ways.items():
        if torch.allclose(answers, _wrongly(q, k, v, size, way), atol=1e-5, equal_nan=True):
            return hint
    if torch.allclose(answers, _without_last_keys(q, k, v, size), atol=1e-5, equal_nan=True):
        return f"Which keys does your last block have, if {size} doesn't divide {len(k)}? It is just shorter."
    return ""


def _without_last_keys(q: Tensor, k: Tensor, v: Tensor, size: int) -> Tensor:
    """The answers if only whole blocks are read."""
    read = len(k) // size * size
    scores = (q @ k.T / math.sqrt(q.shape[1])).masked_fill(
        torch.ones(len(q), len(k)).triu(1).bool(), -math.inf
    )
    return scores[:, :read].softmax(1) @ v[:read] if read else scores.new_full(v.shape, math.nan)


def _wrongly(q: Tensor, k: Tensor, v: Tensor, size: int, way: str) -> Tensor:
    """The answers if both sums are rescaled wrongly."""
    at = torch.arange(len(q))
    c, s, y = (
        torch.full((len(q), 1), -math.inf),
        torch.zeros(len(q), 1),
        torch.zeros(len(q), v.shape[1]),
    )
    for start in range(0, len(k), size):
        scores = q @ k[start : start + size].T / math.sqrt(q.shape[1])
        scores = scores.masked_fill(at[:, None] < at[start : start + size], -math.inf)
        most = scores.amax(1, keepdim=True)
        old, c = c, most if way == "last" else torch.maximum(c, most)
        e = (scores - c).exp()
        factor = (
            ((c - old) if way == "turned" else (old - c)).exp() if start else torch.ones_like(c)
        )
        s = s * (1 if way in ("neither", "only y") else factor) + e.sum(1, keepdim=True)
        y = y * (1 if way in ("neither", "only s") else factor) + e @ v[start : start + size]
    return y / s


@attention_in_blocks.must("survives scores in the hundreds, above zero and below")
def survives_large_scores(candidate):
    """What is e to the power of 200 in float32? Which number do you subtract from the scores first?"""
    q, v = torch.ones(10, 4), torch.randn(10, 3)
    k = torch.linspace(0, 3, 40).view(10, 4)
    for keys in (k, k.flip(0)):
        answers = _answers(candidate, 100 * q, keys, v, size=3)
        lost = ~answers.isfinite()
        hint = ""
        if lost[0].any() and not lost[-1].any():
            hint = (
                "Does each row have its own c? If a row's scores are far below c, all of its exponentials are 0, and "
                "0 / 0 is NaN. `amax(dim=1, keepdim=True)` takes the largest of each row."
            )
        expect(not lost.any(), f"{int(lost.sum())} of 30 numbers are NaN or infinite", hint)
        expect_close(answers, fused(100 * q, keys, v), entry="row")
    hint = (
        "Where does c begin? With c = 0 a row whose scores are all far below zero has only zeros to add up. Which "
        "number is below every score?"
    )
    below = _answers(candidate, 500 * q, -torch.ones(10, 4), torch.ones(10, 1), size=3)
    expect_close(below, torch.ones(10, 1), "where all scores are −1000", hint=hint)


@attention_in_blocks.must("returns the log-sum-exp of each row's scores")
def returns_log_sum_exp(candidate):
    """The sum s is one of e^(a − c). What is the logarithm of the sum of e^a, then? Multiplying by e^c
    becomes adding c.

    Is c the largest score at the end, of all blocks?
    """
    q, k, v = _inputs()
    _, lse = expect_tensors(candidate(q, k, v, 4), "answers", "log-sum-exp")
    expect_close(lse, in_blocks(q, k, v, 10)[1], "the log-sum-exps", entry="row")


@attention_in_blocks.must("never has more scores at once than those of one block")
def never_has_whole_matrix(candidate):
    """Do you keep the scores of all blocks, or compute all of them first? Three tensors are all that may go from one
    block to the next: c, s and y.
    """
    q, k, v = (torch.randn(64, 2) for _ in range(3))
    with _watch() as most:
        candidate(q, k, v, 4)
    expect(
        most.count <= 64 * 8,
        f"with 64 tokens in blocks of 4 a tensor has {most.count:,} numbers; one block has 256",
    )


# The cache ----------------------------------------------------------------------------------------

_ONE = 2 * 30 * 64 * 4

cache_on_paper = on_paper({
    "a": (3 * _ONE, "the bytes of one token",
          "For one head in one layer a token leaves a key and a value, with 64 numbers each. How many heads keep their "
          "own, in how many layers, and how many bytes does a number take?",
          "Multiply 2 (a key and a value), 30 layers, 3 heads, 64 features and 4 bytes."),
    "b": (9 * _ONE, "the bytes of one token with nine heads of keys and values",
          "What changes from (a)? Only the number of heads that keep keys and values of their own."),
    "c": (_ONE, "the bytes of one token with a single head of keys and values",
          "All heads of queries would look at the same keys. How many heads keep something?"),
    "d": (100_000 * 3 * _ONE / 1e9, "gigabytes for 100,000 tokens",
          "Multiply your answer to (a) by 100,000. A gigabyte is 10^9 bytes here, not 2^30."),
})  # fmt: skip


# Token by token -----------------------------------------------------------------------------------

recurrent = Check(forbids=["scaled_dot_product_attention", "softmax"])


def _features(n: int = 9) -> tuple[Tensor, Tensor, Tensor]:
    return torch.rand(n, 4) + 0.1, torch.rand(n, 4) + 0.1, torch.randn(n, 3)


def _parallel(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    weights = (q @ k.T).tril()
    return weights @ v / weights.sum(1, keepdim=True)


def _recurrent(candidate: Callable[..., Tensor], q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    return expect_shape(candidate(q, k, v), tuple(v.shape)).to(v)


@recurrent.must("gives an answer for each token")
def gives_answer_for_each_token(candidate):
    """What is an answer? The query times S, a row with an entry for each column of the values. `torch.stack` makes one
    tensor of a list of rows.
    """
    _recurrent(candidate, *_features())


@recurrent.must("answers the first token with its own value")
def answers_first_with_own_value(candidate):
    """The first token sees only itself, so its weight is 1. Do you write a token on the sheet before you ask?

    Is the answer divided by the query times z?
    """
    q, k, v = _features()
    answers = _recurrent(candidate, q, k, v)
    first, hint = answers[0], ""
    of_sheets = (q @ k.T).tril() @ v
    nearly = {
        "You divide by the sum of z. Which sum of weights belongs to this query? It is the query times z.": (
            of_sheets / k.cumsum(0).sum(1, keepdim=True)
        ),
        "You divide by the number of tokens. But a weight isn't 1: what is the sum of φ(q)·φ(k) over the keys?": (
            of_sheets / torch.arange(1, 10)[:, None]
        ),
        "Is the sheet complete before the first token asks? It may hold only what was read so far.": (
            q @ (k.T @ v) / (q @ k.sum(0))[:, None]
        ),
    }
    if not first.isfinite().all():
        hint = "What is on the sheet when the first token asks? Write its key and value before."
    elif known := [
        hint for hint, wrong in nearly.items() if torch.allclose(answers, wrong, atol=1e-5)
    ]:
        hint = known[0]
    elif torch.allclose(first, (q[0] @ k[0]) * v[0], atol=1e-5):
        hint = "That is the query times S. Its weights don't add up to 1: what is the sum of φ(q)·φ(k) over the keys?"
    expect_close(first, v[0], hint=hint)


@recurrent.must("doesn't change an answer when a later token changes")
def doesnt_see_later_tokens(candidate):
    """Is S complete before the first token asks? It may hold only what was read so far."""
    q, k, v = _features()
    before = _recurrent(candidate, q, k, v)
    k, v = k.clone(), v.clone()
    k[6:], v[6:] = 5, 5
    after = _recurrent(candidate, q, k, v)
    expect_close(after[:6], before[:6], "after a change of token 6, the answers before")


@recurrent.must("is the average of all values so far, weighted by φ(q)·φ(k)")
def is_weighted_average(candidate):
    """S adds up products of a key's features (rows) and a value (columns): `torch.outer(key, value)`.

    Do both S and z keep what earlier tokens have written, and does each query get divided by its own sum?
    """
    q, k, v = _features()
    answers, hint = _recurrent(candidate, q, k, v), ""
    if torch.allclose(answers, v, atol=1e-5):
        hint = (
            "Each token gets its own value back. Do S and z keep what earlier tokens have written?"
        )
    elif torch.allclose(answers, _parallel(F.elu(q) + 1, F.elu(k) + 1, v), atol=1e-5):
        hint = "Here q and k are features already. Do you apply `features` to them once more?"
    elif torch.allclose(answers, v.cumsum(0) / torch.arange(1, 10)[:, None], atol=1e-5):
        hint = "That's the plain mean of the values so far. Where do the query and the key come in?"
    expect_close(answers, _parallel(q, k, v), entry="row", hint=hint)
    q, k, v = _features(200)
    hint = "Nine tokens are answered rightly. What is left of the first token when the last one asks? It stays in S."
    answers = _recurrent(candidate, q, k, v)
    expect_close(answers, _parallel(q, k, v), "in a text of 200 tokens", entry="row", hint=hint)


@recurrent.must("has a memory that doesn't grow with the text")
def has_memory_of_fixed_size(candidate):
    """Do you compute all weights, a table of n × n, or keep S for each token? Only S and z, as they are now, may go
    from one token to the next.
    """
    q, k, v = torch.rand(100, 16), torch.rand(100, 16), torch.rand(100, 15)
    with _watch(free=q) as most:
        candidate(q, k, v)
    expect(
        most.count <= k.numel(),
        f"with 100 tokens a tensor has {most.count:,} numbers, expected at most those of the inputs",
    )
    expect(
        most.read >= k.numel() + v.numel(),
        "we count what tensors read, and yours read less than the whole text",
        hint="Did you leave PyTorch, with `tolist` or NumPy? Let S and z be tensors.",
    )
    q = q[:25].clone()
    with _watch(free=q) as least:
        candidate(q, k[:25], v[:25])
    each = (most.held - least.held) / 75
    expect(
        each < 120,
        f"each token adds {each:.0f} numbers to what is kept; S has 240",
        hint="Do you keep S, or the product of a key and a value, for each token? Which S does the next token need?",
    )
    expect(
        most.read < 6 * least.read,
        f"a text of 100 tokens costs {most.read / least.read:.0f} times what one of 25 costs, expected 4",
        hint="Do you read all earlier keys again for each token? S and z hold what you need of them.",
    )
