"""Equality with a reference: "the same as PyTorch", in outputs and in gradients, as one printed line."""

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from course_utils.kit.guard import one_line, strict
from course_utils.runtime import own_random_numbers

Outcome = dict[str, Tensor | None]
"""What a function gave, by name: its outputs, then the gradients; None where no gradient arrived."""


def equal(
    mine: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Any,
    tolerance: float = 1e-6,
    **options: Any,
) -> None:
    """Compare outputs and gradients of two functions or modules, and print in one line what was found.

        cu.equal(masked_softmax, cu.masked_softmax, scores, mask)
        equal to course_utils: outputs and 1 gradient, to 1e-6

    Both get copies of the inputs and of the weights, and the same random numbers: the caller's stay as
    they are. The gradients are those of one random weighting of all outputs, for each
    floating-point input and for each parameter whose name both modules have. Everything is computed in
    double precision, so that rounding plays no part; where that is impossible, as it was handed in.

    Args:
        mine: what was written on the page.
        reference: what it is held against.
        inputs: what both are called with.
        tolerance: largest difference, as a part of the largest entry of the reference or of 1, whichever
            is larger; at least ten units of rounding of the precision that was computed in.
        options: arguments by name, for both.

    Raises:
        AssertionError: with COURSE_STRICT=1, the two differ. In a reader's hands that is printed.
    """
    name = _origin(reference)
    given = _given(mine, inputs, options)
    for precision in (torch.float64, None):
        theirs = _outcome(reference, given, len(inputs), precision)
        ours = _outcome(mine, given, len(inputs), precision)
        if isinstance(theirs, dict) and isinstance(ours, dict):
            break
    if not isinstance(theirs, dict):
        return _conclude(False, f"nothing to compare with: {name} {theirs}")
    if not isinstance(ours, dict):
        return _conclude(False, f"differs from {name}: yours {ours}")
    tolerance = max([tolerance, *map(_rounding, [*ours.values(), *theirs.values()])])
    differences = _differences(ours, theirs, name, tolerance)
    if differences:
        found = "; ".join(differences) + _other_weights(mine, reference)
        return _conclude(False, f"differs from {name}: {found}")
    both = [key for key in ours.keys() & theirs.keys() if key.startswith(GRADIENT)]
    count = sum(ours[key] is not None or theirs[key] is not None for key in both)
    gradients = f" and {count} gradient{'s' * (count > 1)}" if count else ""
    digits = f"{tolerance:.0e}".replace("e-0", "e-")
    return _conclude(True, f"equal to {name}: outputs{gradients}, to {digits}")


def _conclude(held: bool, line: str) -> None:
    if not held and strict():
        raise AssertionError(line)
    print(line)


GRADIENT = "the gradient of "


def _given(mine: Callable[..., Any], inputs: tuple, options: dict[str, Any]) -> dict[str, Any]:
    """The arguments by their names in `mine`, in order."""
    called = mine.forward if isinstance(mine, nn.Module) else mine
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):  # a function of PyTorch's that is written in C++
        parameters = []
    names = [one.name for one in parameters if one.kind is not inspect.Parameter.KEYWORD_ONLY]
    names += [f"input {place}" for place in range(len(names), len(inputs))]
    return dict(zip(names, inputs, strict=False)) | options


def _outcome(
    function: Callable[..., Any],
    given: dict[str, Any],
    num_inputs: int,
    precision: torch.dtype | None,
) -> Outcome | str:
    """Outputs and gradients for copies of the arguments and weights; or why there are none."""
    try:
        arguments = {key: _copied(value, precision) for key, value in given.items()}
        positional = list(arguments.values())[:num_inputs]
        options = dict(list(arguments.items())[num_inputs:])
        weights: dict[str, Tensor] = {}
        with own_random_numbers(), torch.enable_grad(), _default(precision):
            if isinstance(function, nn.Module):
                weights = {key: _copied(one, precision) for key, one in function.named_parameters()}
                buffers = {
                    key: _copied(one, precision).detach() for key, one in function.named_buffers()
                }
                answer = functional_call(function, weights | buffers, tuple(positional), options)
            else:
                answer = function(*positional, **options)
            outputs = list(_tensors(answer))
            if not outputs:
                return "gives nothing back; is the `return` still to be written?"
            inputs = arguments | {f"the parameter {key}": one for key, one in weights.items()}
            wanted = {
                f"{GRADIENT}{key}": one
                for key, one in inputs.items()
                if isinstance(one, Tensor) and one.requires_grad
            }
            gradients = _gradients(outputs, list(wanted.values()))
    except Exception as error:
        return f"stops with {one_line(f'{type(error).__name__}: {error}')}"
    names = [f"output {i}" for i in range(len(outputs))] if len(outputs) > 1 else ["the output"]
    found = zip([*names, *wanted], [*outputs, *gradients], strict=True)
    return {name: None if one is None else one.detach() for name, one in found}


def _copied(value: Any, precision: torch.dtype | None) -> Any:
    """A copy, in this precision and asking for a gradient if it is a floating-point tensor."""
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    floating = value.is_floating_point()
    value = value.detach().clone()
    return value.to(precision if floating and precision else value.dtype).requires_grad_(floating)


@contextmanager
def _default(precision: torch.dtype | None) -> Iterator[None]:
    """What is made in between, as by `torch.zeros`, has this precision."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(precision or before)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def _tensors(answer: Any) -> Iterator[Tensor]:
    """All tensors and numbers in an answer, in order; a None among others is left out."""
    if isinstance(answer, Tensor):
        yield answer
    elif isinstance(answer, bool | int | float):
        yield torch.tensor(answer)
    elif isinstance(answer, list | tuple):
        for part in answer:
            yield from _tensors(part)
    elif answer is not None and answer is not ...:
        raise TypeError(f"tensors are expected, not {type(answer).__name__}")


def _gradients(outputs: list[Tensor], wanted: list[Tensor]) -> list[Tensor | None]:
    """Those of a weighted sum of all outputs; the weights are random and the same at each call."""
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(one.shape, generator=generator, dtype=torch.float64) for one in outputs]
    sums = [
        (one * weight.to(one)).sum()
        for one, weight in zip(outputs, weights, strict=True)
        if one.requires_grad
    ]
    if not sums or not wanted:
        return [None] * len(wanted)
    # single numbers: given `grad_outputs`, PyTorch would import SymPy first, which takes 2 s
    return list(torch.autograd.grad(sums, wanted, allow_unused=True))


def _rounding(value: Tensor | None) -> float:
    """Ten units of rounding of a tensor's entries, rounded up to a power of ten."""
    if value is None or not value.is_floating_point():
        return 0.0
    return 10.0 ** math.ceil(math.log10(10 * torch.finfo(value.dtype).eps))


def _differences(ours: Outcome, theirs: Outcome, name: str, tolerance: float) -> list[str]:
    """What differs, by how much and where; gradients only if no output does."""
    outputs = [[key for key in one if not key.startswith(GRADIENT)] for one in (ours, theirs)]
    if outputs[0] != outputs[1]:
        return [f"yours gives {len(outputs[0])} tensors, {name} {len(outputs[1])}"]
    gradients = [key for key in ours if key.startswith(GRADIENT) and key in theirs]
    for keys in (outputs[0], gradients):
        found = [
            f"{key} {why}" for key in keys if (why := _gap(ours[key], theirs[key], name, tolerance))
        ]
        if found:
            return found
    return []


def _gap(mine: Tensor | None, theirs: Tensor | None, name: str, tolerance: float) -> str:
    """By how much two tensors differ, and where; empty if they don't."""
    if mine is None:
        return "is missing" if theirs is not None and theirs.any() else ""
    theirs = torch.zeros_like(mine) if theirs is None else theirs
    if mine.shape != theirs.shape:
        return f"has shape {tuple(mine.shape)}, {name}'s {tuple(theirs.shape)}"
    one, other = mine.detach().double().cpu(), theirs.detach().double().cpu()
    alike = (one == other) | (one.isnan() & other.isnan())
    gaps = (one - other).abs().masked_fill(alike, 0).nan_to_num(nan=math.inf)
    largest = other[other.isfinite()].abs().max().item() if other.isfinite().any() else 1.0
    if not (gaps > tolerance * max(1.0, largest)).any():
        return ""
    place = tuple(int(i) for i in torch.unravel_index(gaps.argmax(), gaps.shape))
    where = f" at {list(place)}" if place else ""
    return f"is off by {gaps[place]:.2g}{where} (yours {one[place]:.4g}, {name} {other[place]:.4g})"


def _other_weights(mine: Any, reference: Any) -> str:
    """The commonest reason for a difference of two modules: they began with other weights."""
    if not (isinstance(mine, nn.Module) and isinstance(reference, nn.Module)):
        return ""
    ours, theirs = dict(mine.named_parameters()), dict(reference.named_parameters())
    for key in ours:
        if key in theirs and not torch.equal(ours[key], theirs[key]):
            return f". Their weights differ ({key}): load one's into the other first"
    return ""


def _origin(reference: Any) -> str:
    """Whose function this is, for the printed line."""
    while isinstance(reference, partial):
        reference = reference.func
    package = _package(reference)
    if package in NAMES:
        return NAMES[package]
    name = getattr(reference, "__name__", type(reference).__name__)
    if name != "<lambda>":
        return name
    used = (reference.__globals__.get(word) for word in reference.__code__.co_names)
    known = [NAMES[_package(value)] for value in used if _package(value) in NAMES]
    return known[0] if known else "the reference"


NAMES = {"torch": "PyTorch", "course_utils": "course_utils"}


def _package(thing: Any) -> str:
    """Where something was written: the first word of its module's name."""
    if isinstance(thing, ModuleType):
        return thing.__name__.split(".")[0]
    if not (inspect.isroutine(thing) or isinstance(thing, type)):
        thing = type(thing)  # a module of torch.nn, or another object that can be called
    thing = getattr(thing, "__objclass__", thing)  # torch.Tensor.softmax
    return (thing.__module__ or "").split(".")[0]
