"""Expectations: what the test of a check's property calls to say what it found and what it expected.

    weights = expect_shape(candidate(torch.randn(3, 4)), (3, 4))
    expect_close(weights.sum(-1), torch.ones(3), "sums of the rows")

One that does not hold raises `Unmet`, whose text becomes the reason in the check's report.
"""

import copy
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

SHORT_ROW = 6  # numbers; a reason shows such a row whole


class Unmet(AssertionError):
    """An expectation that does not hold. The text says what was found and what is expected.

    Args:
        reason: the text.
        hint: where to look for just this mistake; the property's own hints come after it.
    """

    def __init__(self, reason: str, hint: str = ""):
        super().__init__(reason)
        self.hint = hint


class WrongKind(Unmet):
    """A result of another type than the task asks for."""


def kind_of(value: Any) -> str:
    """The type of a value with its article: "a list", "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiou' else 'a'} {name}"


def expect(condition: bool, reason: str, hint: str = "") -> None:
    """Fail with `reason`, and a hint for this mistake if there is one, unless the condition holds."""
    if not condition:
        raise Unmet(reason, hint)


def _expect_kind(right: bool, kind: str, actual: Any) -> None:
    if not right:
        raise WrongKind(f"got {kind_of(actual)}, expected {kind}")


def expect_equal(actual: Any, expected: Any, what: str) -> None:
    """Fail unless the two are equal; the reason names both."""
    expect(actual == expected, f"{what}: got {actual}, expected {expected}")


def expect_number(actual: Any, expected: float, what: str) -> None:
    """Fail unless `actual` is a number, or a tensor without axes, and `expected` up to rounding."""
    scalar = torch.is_tensor(actual) and actual.ndim == 0
    _expect_kind(scalar or isinstance(actual, int | float), "a number", actual)
    near = math.isclose(float(actual), expected, rel_tol=1e-5, abs_tol=1e-12)
    expect(near, f"{what} is {float(actual):.4g}, expected {expected:.4g}")


def expect_shape(actual: Any, shape: tuple[int, ...]) -> Tensor:
    """`actual`, if it is a tensor of this shape; fail otherwise."""
    _expect_kind(isinstance(actual, Tensor), "a tensor", actual)
    expect(tuple(actual.shape) == shape, f"got shape {tuple(actual.shape)}, expected shape {shape}")
    return actual


def expect_tensors(actual: Any, *names: str) -> tuple[Tensor, ...]:
    """The entries of `actual`, if it is a tuple or a list of a tensor for each name; fail otherwise."""
    counted = isinstance(actual, tuple | list) and len(actual) == len(names)
    right = counted and all(isinstance(entry, Tensor) for entry in actual)
    _expect_kind(right, f"a tuple of {len(names)} tensors ({', '.join(names)})", actual)
    return tuple(actual)


def expect_close(
    actual: Any,
    expected: Tensor,
    what: str = "",
    *,
    entry: str = "entry",
    atol: float = 1e-5,
    rtol: float = 1e-4,
    hint: str = "",
) -> None:
    """Fail unless `actual` is a tensor of the expected shape and values; the reason shows where they differ most.

    Args:
        actual: the candidate's result.
        expected: what it should be.
        what: which result it is, as in "the gradient of the width"; shown first.
        entry: the name of one of its numbers, as in "prediction 7 is 1.94".
        atol, rtol: as in `torch.isclose`.
        hint: shown for this mistake before the property's own hints.
    """
    expect_shape(actual, tuple(expected.shape))
    expect(not actual.is_complex(), "got complex numbers, expected real ones")
    actual, expected = (each.detach().to(expected.dtype).double() for each in (actual, expected))
    near = torch.isclose(actual, expected, atol=atol, rtol=rtol, equal_nan=True)
    if not near.all():
        gap = (actual - expected).abs().nan_to_num(math.inf).masked_fill(near, -1)
        detail = _side_by_side(actual, expected, int(gap.argmax()), entry)
        raise Unmet(f"{what}: {detail}" if what else detail, hint)


def _side_by_side(actual: Tensor, expected: Tensor, place: int, entry: str) -> str:
    """The entry, or its whole row if that is short, and what is expected there; `place` is a flat index."""
    *row, column = (int(i) for i in torch.unravel_index(torch.tensor(place), actual.shape or (1,)))
    if actual.ndim and 1 < actual.shape[-1] <= SHORT_ROW:
        shown, at = slice(None), row
    else:
        shown, at = slice(column, column + 1), [*row, column] if actual.ndim else []
    pair = [
        each.reshape(actual.shape or (1,))[(*row, shown)].tolist() for each in (actual, expected)
    ]
    digits = next((n for n in (3, 6) if _numbers(pair[0], n) != _numbers(pair[1], n)), 9)
    result, correct = (_numbers(row, digits) for row in pair)
    if not at:
        return f"got {result}, expected {correct}"
    index = at[0] if len(at) == 1 else at
    return f"{'row' if shown == slice(None) else entry} {index} is {result}, expected {correct}"


def _numbers(values: list[float], digits: int) -> str:
    """A number, or the numbers of a row in brackets."""
    text = ", ".join(f"{value:.{digits}g}" for value in values)
    return text if len(values) == 1 else f"[{text}]"


def expect_sums_to_one(actual: Any, shape: tuple[int, ...]) -> None:
    """Fail unless `actual` is a tensor of this shape whose rows, along the last axis, sum to 1."""
    sums = expect_shape(actual, shape).sum(dim=-1)
    expect_close(sums, torch.ones(shape[:-1]), "sums of the rows")


def expect_same_gradients(
    candidate: Callable[..., Any],
    reference: Callable[..., Tensor],
    *,
    hint: str = "",
    atol: float = 1e-5,
    rtol: float = 1e-4,
    **inputs: Tensor,
) -> None:
    """Fail unless the candidate's answer has the shape of the reference's, and the same gradient for each input.

    Both are called with the inputs in their order; what is derived is a random mixture of the answer's entries.
    """
    names = list(inputs)
    gradients, mixture = [], torch.empty(0)
    for function in (reference, candidate):
        leaves = [tensor.detach().clone().requires_grad_() for tensor in inputs.values()]
        answer = function(*leaves)
        if function is reference:
            mixture = 1 + torch.rand_like(answer)
        else:
            expect_shape(answer, tuple(mixture.shape))
            expect(answer.requires_grad, f"no gradient reaches the {' or the '.join(names)}", hint)
        gradients.append(torch.autograd.grad((answer * mixture).sum(), leaves, allow_unused=True))
    for name, right, mine in zip(names, *gradients, strict=True):
        expect(mine is not None, f"no gradient reaches the {name}", hint)
        expect_close(mine, right, f"the gradient of the {name}", atol=atol, rtol=rtol, hint=hint)


def expect_unchanged(candidate: Callable[..., Any], *inputs: Any) -> Any:
    """The candidate's answer, if the call leaves the tensors and lists that it is given as they were."""
    with unchanged(*inputs):
        return candidate(*inputs)


@contextmanager
def unchanged(*inputs: Any) -> Iterator[None]:
    """Fail if the block changes one of these tensors or lists, or makes one require a gradient."""
    before = copy.deepcopy(inputs)
    yield
    expect(_same(before, inputs), "the call changed its inputs")
    expect(
        _require_grad(before) == _require_grad(inputs),
        "the call made PyTorch follow a tensor that it was given",
        "Which tensor do you call `requires_grad_()` on? Make a new one first, as in `x.clone().requires_grad_()`.",
    )


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(_same, before, after))
    return torch.equal(before, after) if isinstance(before, Tensor) else before == after


def _require_grad(some: Any) -> list[bool]:
    """Whether each tensor requires a gradient, in nested lists as well."""
    if isinstance(some, list | tuple):
        return [required for entry in some for required in _require_grad(entry)]
    return [some.requires_grad] if isinstance(some, Tensor) else []
