"""Equality with a reference: "the same as PyTorch", in outputs and in gradients, as one printed line."""

import copy
import inspect
import math
from collections.abc import Callable, Iterator
from functools import partial
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from course_utils.kit.guard import one_line, strict
from course_utils.runtime import own_random_numbers

PACKAGES = {"torch": "PyTorch", "course_utils": "course_utils"}
"""How the printed line calls what is written in a package."""

Outcome = tuple[dict[str, Tensor], dict[str, Tensor | None]]
"""What a function gave, by name: its outputs; and the gradients, None where none arrived."""


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
    line = _compared(mine, reference, inputs, options, tolerance)
    if strict() and not line.startswith("equal to"):
        raise AssertionError(line)
    print(line)


def _compared(
    mine: Callable, reference: Callable, inputs: tuple, options: dict, tolerance: float
) -> str:
    name = _origin(reference)
    names = _argument_names(mine, len(inputs))
    for precision in (torch.float64, None):
        theirs = _outcome(reference, names, inputs, options, precision)
        yours = _outcome(mine, names, inputs, options, precision)
        if not isinstance(theirs, str) and not isinstance(yours, str):
            break
    if isinstance(theirs, str):
        return f"nothing to compare with: {name} {theirs}"
    if isinstance(yours, str):
        return f"differs from {name}: yours {yours}"
    tolerance = max([tolerance, *map(_rounding, yours[0].values())])
    if difference := _difference(yours, theirs, name, tolerance):
        return f"differs from {name}: {difference}{_weights_differ(mine, reference)}"
    shared = yours[1].keys() & theirs[1].keys()
    count = sum(yours[1][key] is not None or theirs[1][key] is not None for key in shared)
    gradients = f" and {count} gradient{'s' * (count > 1)}" if count else ""
    digits = f"{tolerance:.0e}".replace("e-0", "e-")
    return f"equal to {name}: outputs{gradients}, to {digits}"


def _argument_names(function: Callable, count: int) -> list[str]:
    """What a function calls its first arguments."""
    called = function.forward if isinstance(function, nn.Module) else function
    try:
        parameters = list(inspect.signature(called).parameters.values())
    except (TypeError, ValueError):  # a function of PyTorch's that is written in C++
        parameters = []
    names = [entry.name for entry in parameters if entry.kind is not entry.KEYWORD_ONLY]
    return (names + [f"input {place}" for place in range(len(names), count)])[:count]


# Outputs and gradients --------------------------------------------------------------------------


def _outcome(
    function: Callable,
    names: list[str],
    inputs: tuple,
    options: dict,
    precision: torch.dtype | None,
) -> Outcome | str:
    """Outputs and gradients for copies of the arguments and weights; or why there are none."""
    default = torch.get_default_dtype()
    try:
        torch.set_default_dtype(precision or default)  # also of what `torch.zeros` makes
        values = [_copied(value, precision) for value in inputs]
        named = {key: _copied(value, precision) for key, value in options.items()}
        leaves = dict(zip(names, values, strict=True)) | named
        with own_random_numbers(), torch.enable_grad():
            if isinstance(function, nn.Module):
                weights = {key: _copied(w, precision) for key, w in function.named_parameters()}
                buffers = {
                    key: _copied(b, precision).detach() for key, b in function.named_buffers()
                }
                answer = functional_call(function, weights | buffers, tuple(values), named)
                leaves |= {f"the parameter {key}": weight for key, weight in weights.items()}
            else:
                answer = function(*values, **named)
            outputs = list(_tensors(answer))
            gradients = _gradients(outputs, leaves)
    except Exception as error:
        return f"stops with {one_line(f'{type(error).__name__}: {error}')}"
    finally:
        torch.set_default_dtype(default)
    if not outputs:
        return "gives nothing back; is the `return` still to be written?"
    keys = [f"output {place}" for place in range(len(outputs))] if outputs[1:] else ["the output"]
    return {key: output.detach() for key, output in zip(keys, outputs, strict=True)}, gradients


def _copied(value: Any, precision: torch.dtype | None) -> Any:
    """A copy; a floating-point tensor in this precision, and asking for a gradient."""
    if not isinstance(value, Tensor):
        return copy.deepcopy(value)
    value = value.detach().clone()
    if not value.is_floating_point():
        return value
    return value.to(precision or value.dtype).requires_grad_()


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
        raise TypeError(f"got {type(answer).__name__}, expected tensors")


def _gradients(outputs: list[Tensor], leaves: dict[str, Any]) -> dict[str, Tensor | None]:
    """Those of a weighted sum of all outputs, by name; the weights are random and the same at each call."""
    leaves = {
        f"the gradient of {key}": leaf
        for key, leaf in leaves.items()
        if isinstance(leaf, Tensor) and leaf.requires_grad
    }
    generator = torch.Generator().manual_seed(1)
    sums = []
    for output in outputs:
        weight = torch.randn(output.shape, generator=generator, dtype=torch.float64)
        if output.requires_grad:
            sums.append((output * weight.to(output)).sum())
    if not sums or not leaves:
        return dict.fromkeys(leaves)
    # single numbers: given `grad_outputs`, PyTorch would import SymPy first, which takes 2 s
    gradients = torch.autograd.grad(sums, list(leaves.values()), allow_unused=True)
    return dict(zip(leaves, gradients, strict=True))


# Differences ------------------------------------------------------------------------------------


def _rounding(tensor: Tensor) -> float:
    """Ten units of rounding of a tensor's entries, rounded up to a power of ten."""
    if not tensor.is_floating_point():
        return 0.0
    return 10.0 ** math.ceil(math.log10(10 * torch.finfo(tensor.dtype).eps))


def _difference(yours: Outcome, theirs: Outcome, name: str, tolerance: float) -> str:
    """What differs, by how much and where, in the gradients only if no output does; empty if nothing does."""
    if len(yours[0]) != len(theirs[0]):
        return f"yours gives {len(yours[0])} tensors, {name} {len(theirs[0])}"
    for ours, other in zip(yours, theirs, strict=True):
        gaps = {key: _gap(ours[key], other[key], name, tolerance) for key in ours if key in other}
        if any(gaps.values()):
            return "; ".join(f"{key} {gap}" for key, gap in gaps.items() if gap)
    return ""


def _gap(mine: Tensor | None, theirs: Tensor | None, name: str, tolerance: float) -> str:
    """By how much two tensors differ, and where; empty if they don't."""
    if mine is None:
        return "is missing" if theirs is not None and theirs.any() else ""
    theirs = torch.zeros_like(mine) if theirs is None else theirs
    if mine.shape != theirs.shape:
        return f"has shape {tuple(mine.shape)}, {name}'s {tuple(theirs.shape)}"
    mine, theirs = mine.double().cpu(), theirs.double().cpu()
    alike = (mine == theirs) | (mine.isnan() & theirs.isnan())
    gaps = (mine - theirs).abs().masked_fill(alike, 0).nan_to_num(nan=math.inf)
    finite = theirs.abs().nan_to_num(nan=0, posinf=0)
    scale = finite.max().clamp(min=1) if finite.numel() else 1
    if not (gaps > tolerance * scale).any():
        return ""
    place = tuple(int(i) for i in torch.unravel_index(gaps.argmax(), gaps.shape))
    where = f" at {list(place)}" if place else ""
    return (
        f"is off by {gaps[place]:.2g}{where} (yours {mine[place]:.4g}, {name} {theirs[place]:.4g})"
    )


def _weights_differ(mine: Any, reference: Any) -> str:
    """The commonest reason for a difference of two modules: they began with other weights."""
    if isinstance(mine, nn.Module) and isinstance(reference, nn.Module):
        theirs = dict(reference.named_parameters())
        for key, weight in mine.named_parameters():
            if key in theirs and not torch.equal(weight, theirs[key]):
                return f". Their weights differ ({key}): load one's into the other first"
    return ""


def _origin(reference: Any) -> str:
    """Whose function this is, for the printed line."""
    while isinstance(reference, partial):
        reference = reference.func
    if (package := _package(reference)) in PACKAGES:
        return PACKAGES[package]
    name = getattr(reference, "__name__", type(reference).__name__)
    if name != "<lambda>":
        return name
    used = (_package(reference.__globals__.get(word)) for word in reference.__code__.co_names)
    return next((PACKAGES[package] for package in used if package in PACKAGES), "the reference")


def _package(thing: Any) -> str:
    """Where something was written: the first word of its module's name."""
    if isinstance(thing, ModuleType):
        return thing.__name__.split(".")[0]
    if not (inspect.isroutine(thing) or isinstance(thing, type)):
        thing = type(thing)  # a module of torch.nn, or another object that can be called
    thing = getattr(thing, "__objclass__", thing)  # torch.Tensor.softmax
    return (thing.__module__ or "").split(".")[0]
