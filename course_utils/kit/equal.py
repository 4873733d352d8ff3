"""Equality of two functions or modules, in outputs and gradients, shown as one printed line."""

import copy
import inspect
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.func import functional_call

from course_utils.kit.guard import one_line, strict
from course_utils.runtime import own_random_numbers

PACKAGES = {"torch": "PyTorch", "course_utils": "course_utils"}

GRADIENT = "the gradient of "

Results = dict[str, Tensor | None]
"""Outputs and gradients by name; None for an input or weight that no gradient reached."""


def equal(
    mine: Callable[..., Any],
    reference: Callable[..., Any],
    *inputs: Any,
    tolerance: float = 1e-6,
    **options: Any,
) -> None:
    """Compare outputs and gradients of two functions or modules, and print whether they are equal.

        cu.equal(masked_softmax, cu.masked_softmax, scores, mask)
        equal to course_utils: outputs and 1 gradient, to 1e-6

    If they differ, it prints the first output, or input or weight with another gradient, and where and by how much.
    Both are called with copies of inputs and weights in double precision and with the same random numbers; where one
    of them insists on single precision, in that, to 1e-5. The gradients are those of a random weighted sum of all
    outputs, and are compared for inputs and for weights that both modules have.

    Args:
        mine: the function or module that was written on the page.
        reference: the one to compare with.
        inputs: the arguments of both.
        tolerance: the largest difference, as a fraction of the reference's largest entry or of 1, if that is larger.
        options: keyword arguments of both.

    Raises:
        AssertionError: they differ and COURSE_STRICT=1; without it, this is only printed.
        Exception: whatever `reference` raises.
    """
    name = _name(reference)
    names = _argument_names(mine, len(inputs))
    stopped = ""
    try:
        theirs, yours = (
            _results(f, names, inputs, options, torch.float64) for f in (reference, mine)
        )
    except Exception:
        theirs, yours = _results(reference, names, inputs, options), {}
        try:
            yours = _results(mine, names, inputs, options)
        except Exception as error:
            stopped = f"yours stops with {one_line(f'{type(error).__name__}: {error}')}"
    found = [tensor for tensor in (*theirs.values(), *yours.values()) if tensor is not None]
    if any(tensor.is_floating_point() and tensor.dtype != torch.float64 for tensor in found):
        tolerance = max(tolerance, 1e-5)
    if difference := stopped or _difference(theirs, yours, tolerance):
        report = f"differs from {name}: {difference}{_weights_differ(mine, reference)}"
        if strict():
            raise AssertionError(report)
    else:
        both = [key for key in theirs if key in yours and key.startswith(GRADIENT)]
        count = sum(theirs[key] is not None or yours[key] is not None for key in both)
        gradients = f" and {count} gradient{'s' * (count > 1)}" if count else ""
        report = f"equal to {name}: outputs{gradients}, to {tolerance:.0e}".replace("e-0", "e-")
    print(report)


def _name(reference: Any) -> str:
    """The package of a function or module, or the name of a function that is written on the page."""
    owner = type(reference) if isinstance(reference, nn.Module) else reference
    package = (getattr(owner, "__module__", None) or "").split(".")[0]
    name = getattr(owner, "__name__", "<lambda>").replace("<lambda>", "the reference")
    return PACKAGES.get(package, name)


def _argument_names(function: Callable, count: int) -> list[str]:
    try:
        names = list(inspect.signature(getattr(function, "forward", function)).parameters)
    except (TypeError, ValueError):  # a function of PyTorch's that is written in C++
        names = []
    return (names + [f"input {place}" for place in range(len(names), count)])[:count]


def _results(
    function: Callable,
    names: list[str],
    inputs: tuple,
    options: dict,
    dtype: torch.dtype | None = None,
) -> Results:
    """The outputs and gradients for copies of the arguments and weights, in `dtype` or in their own precision."""

    def leaf(value: Any) -> Any:
        if not isinstance(value, Tensor):
            return copy.deepcopy(value)
        if not value.is_floating_point():
            return value.detach().clone()
        return value.detach().to(dtype or value.dtype, copy=True).requires_grad_()

    arguments, named = tuple(map(leaf, inputs)), {key: leaf(v) for key, v in options.items()}
    leaves = dict(zip(names, arguments, strict=True)) | named
    default = torch.get_default_dtype()
    torch.set_default_dtype(dtype or default)  # also of what `torch.zeros` makes
    try:
        with own_random_numbers(), torch.enable_grad():
            if isinstance(function, nn.Module):
                weights = {key: leaf(weight) for key, weight in function.named_parameters()}
                buffers = {key: leaf(buffer).detach() for key, buffer in function.named_buffers()}
                answer = functional_call(function, weights | buffers, arguments, named)
                leaves |= weights
            else:
                answer = function(*arguments, **named)
    finally:
        torch.set_default_dtype(default)
    answers = answer if isinstance(answer, list | tuple) else [answer]
    outputs = [torch.as_tensor(part) for part in answers if part is not None and part is not ...]
    if not outputs:
        raise ValueError("it gives nothing back; is the `return` still to be written?")
    keys = [f"output {place}" for place in range(len(outputs))] if outputs[1:] else ["the output"]
    return dict(zip(keys, outputs, strict=True)) | _gradients(outputs, leaves)


def _gradients(outputs: list[Tensor], leaves: dict[str, Any]) -> Results:
    """The gradients of a weighted sum of all outputs; the weights are random, and the same at each call."""
    leaves = {
        GRADIENT + key: leaf
        for key, leaf in leaves.items()
        if isinstance(leaf, Tensor) and leaf.requires_grad
    }
    generator = torch.Generator().manual_seed(1)
    weights = [torch.randn(o.shape, generator=generator, dtype=torch.float64) for o in outputs]
    pairs = [(o, w.to(o)) for o, w in zip(outputs, weights, strict=True) if o.requires_grad]
    if not pairs or not leaves:
        return dict.fromkeys(leaves)
    # single numbers: given `grad_outputs`, PyTorch would import SymPy first, which takes 2 s
    sums = [(output * weight).sum() for output, weight in pairs]
    gradients = torch.autograd.grad(sums, list(leaves.values()), allow_unused=True)
    return dict(zip(leaves, gradients, strict=True))


def _difference(theirs: Results, mine: Results, tolerance: float) -> str:
    """The first output or gradient that differs, and what `torch.testing.assert_close` says of it; "" if none does."""
    number, wanted = (
        sum(not key.startswith(GRADIENT) for key in found) for found in (mine, theirs)
    )
    if number != wanted:
        return f"yours gives {number} outputs, expected {wanted}"
    for key, found in mine.items():
        expected = theirs.get(key, found)
        if found is None and (expected is None or not expected.any()):
            continue
        if found is None:
            return f"{key} is missing"
        if expected is None:
            expected = torch.zeros_like(found)
        if found.shape != expected.shape:
            return f"{key} has shape {tuple(found.shape)}, expected {tuple(expected.shape)}"
        sizes = expected.detach().cpu().double().abs().nan_to_num(nan=0, posinf=0).flatten()
        largest = torch.cat([sizes, torch.ones(1)]).max().item()
        try:
            torch.testing.assert_close(
                found,
                expected,
                rtol=0,
                atol=tolerance * largest,
                equal_nan=True,
                check_dtype=False,
                check_device=False,
            )
        except AssertionError as error:
            lines = [line.rstrip(".") for line in str(error).splitlines()[1:] if line]
            return f"{key} is off. {'. '.join(lines[:2])}"  # without the relative difference
    return ""


def _weights_differ(mine: Any, reference: Any) -> str:
    """The commonest reason why two modules differ: they began with other weights."""
    if isinstance(mine, nn.Module) and isinstance(reference, nn.Module):
        theirs = dict(reference.named_parameters())
        for key, weight in mine.named_parameters():
            if key in theirs and not torch.equal(weight, theirs[key]):
                return f". Their weights differ ({key}): load one's into the other first"
    return ""
