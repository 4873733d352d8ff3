"""How many matrix products wait for each other, read off the graph that autograd keeps."""

from typing import Any

from torch import Tensor

PRODUCTS = {
    "MmBackward": 1, "BmmBackward": 1, "AddmmBackward": 1, "BaddbmmBackward": 1, "MvBackward": 1,
    "ConvolutionBackward": 1, "ScaledDotProduct": 2,
}  # fmt: skip
"""Matrix products in a node of autograd's graph, by the beginning of its name."""


def waiting_products(output: Tensor) -> int:
    """Matrix products that wait for each other: how many lie on the longest way from an input to `output`.

    This is read off the graph that autograd keeps, so an input or a weight has to require gradients.
    However many processors there are, these products can only be computed one after the other. A
    convolution is one product; PyTorch's fused attention is two (scores, mixing).

    Raises:
        ValueError: `output` was computed without gradients.
    """
    if output.grad_fn is None:
        raise ValueError("output has no graph; compute it from tensors that require gradients")
    longest: dict[Any, int] = {None: 0}
    todo: list[Any] = [output.grad_fn]
    while todo:
        node = todo[-1]
        parents = [parent for parent, _ in node.next_functions]
        missing = [parent for parent in parents if parent not in longest]
        if missing:
            todo += missing
            continue
        own = next((count for name, count in PRODUCTS.items() if node.name().startswith(name)), 0)
        longest[node] = own + max((longest[parent] for parent in parents), default=0)
        todo.pop()
    return longest[output.grad_fn]
