"""Checks: properties that right code has, for learners' exercises and for our own tests.

A check tries a candidate against a list of properties, in order, and reports in words. It never
raises: a stub is "not done yet", a failed property comes with a hint. Each check is proved in CI to
pass the solution, to recognise the stub, and to fail seeded mistakes with a hint.

    def _rows_sum_to_one(candidate):
        weights = candidate(torch.randn(3, 4))
        expect_close(weights.sum(-1), torch.ones(3))

    softmax = Check("softmax", [
        Property("each row sums to 1", _rows_sum_to_one, hint="divide by the sum over dim=-1"),
    ])

    softmax(my_softmax)   # a Report, displayed at the end of a cell
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch


class NotDone(Exception):
    """The candidate is still a stub: it returns `...` or None, or raises NotImplementedError."""


@dataclass(frozen=True)
class Property:
    """One sentence that is true of right code.

    Attributes:
        sentence: what holds, in words ("each row sums to 1").
        test: called with the candidate; raises an AssertionError (or anything) where it fails.
        hint: where to look then; never the solution.
    """

    sentence: str
    test: Callable[[Any], None]
    hint: str


@dataclass(frozen=True)
class Report:
    """What a check found.

    Attributes:
        name: of the check.
        held: sentences of the properties that hold, in order, up to the first that does not.
        failed: the first property that does not hold, if any.
        reason: why it does not, in one line.
        done: False while the candidate is a stub.
        total: number of properties.
    """

    name: str
    held: tuple[str, ...]
    total: int
    failed: Property | None = None
    reason: str = ""
    done: bool = True

    @property
    def passed(self) -> bool:
        """Whether every property holds."""
        return self.done and self.failed is None

    @property
    def hint(self) -> str:
        """Where to look when a property fails; empty otherwise."""
        return self.failed.hint if self.failed else ""

    def __repr__(self) -> str:
        if not self.done:
            return f"{self.name}: not done yet. Fill in the cell above and run it, then this one."
        lines = [f"  ✓ {sentence}" for sentence in self.held]
        if self.passed:
            return "\n".join([f"{self.name}: passed, {self.total} of {self.total}.", *lines])
        return "\n".join(
            [
                f"{self.name}: not yet, {len(self.held)} of {self.total}.",
                *lines,
                f"  ✗ {self.failed.sentence}",
                f"    {self.reason}",
                f"    Hint: {self.hint}",
            ]
        )


class Check:
    """Properties under a name; call it with a learner's function.

    Args:
        name: shown in the report.
        properties: tried in order; the first failure ends the check.
    """

    def __init__(self, name: str, properties: Sequence[Property]):
        if not properties:
            raise ValueError(f"check {name!r} has no properties, so it cannot fail")
        self.name = name
        self.properties = tuple(properties)

    def __call__(self, candidate: Any) -> Report:
        """Try the properties on `candidate`; never raises. The caller's random state is kept."""
        held: list[str] = []
        with torch.random.fork_rng(devices=[]):
            for prop in self.properties:
                torch.manual_seed(0)
                try:
                    prop.test(_watch(candidate))
                except NotDone:
                    return Report(self.name, (), len(self.properties), done=False)
                except Exception as error:
                    return Report(
                        self.name, tuple(held), len(self.properties), prop, _one_line(error)
                    )
                held.append(prop.sentence)
        return Report(self.name, tuple(held), len(self.properties))

    def __repr__(self) -> str:
        return f"Check({self.name!r}, {len(self.properties)} properties)"


def _watch(candidate: Any) -> Any:
    """The candidate, wrapped so that a stub's answer ends the check as "not done yet"."""
    if candidate is None or candidate is ...:
        raise NotDone
    if isinstance(candidate, type) or not callable(candidate):
        return candidate

    def watched(*args, **kwargs):
        try:
            answer = candidate(*args, **kwargs)
        except NotImplementedError:
            raise NotDone from None
        if answer is None or answer is ...:
            raise NotDone
        return answer

    return watched


def _one_line(error: Exception) -> str:
    text = " ".join(str(error).split())
    text = text if len(text) <= 200 else text[:197] + "…"
    return text if isinstance(error, AssertionError) and text else f"{type(error).__name__}: {text}"


def expect(condition: bool, reason: str) -> None:
    """Fail with `reason` unless the condition holds."""
    if not condition:
        raise AssertionError(reason)


def expect_close(
    actual: Any, expected: torch.Tensor, reason: str = "", *, atol: float = 1e-5, rtol: float = 1e-4
) -> None:
    """Fail unless `actual` is a tensor of the expected shape and values, and say how far off it is."""
    expect_shape(actual, tuple(expected.shape))
    expect(not actual.is_complex(), "the entries are complex numbers; real ones are expected")
    actual = actual.detach().to(expected.dtype)
    if not torch.allclose(actual, expected, atol=atol, rtol=rtol, equal_nan=True):
        if actual.isfinite().all() and expected.isfinite().all():
            detail = f"largest difference {(actual - expected).abs().max().item():.2g}"
        else:
            detail = "some entries are NaN or infinite where they should not be, or the reverse"
        raise AssertionError(f"{reason}: {detail}" if reason else detail)


def expect_shape(actual: Any, shape: tuple[int, ...]) -> None:
    """Fail unless `actual` is a tensor of this shape."""
    expect(isinstance(actual, torch.Tensor), f"a tensor is expected, got a {type(actual).__name__}")
    expect(
        tuple(actual.shape) == shape, f"shape {tuple(actual.shape)}; expected shape {tuple(shape)}"
    )
