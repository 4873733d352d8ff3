"""The longest chain of matrix products in a computation, counted in autograd's graph.

The further page of *Self-attention* compares layers by it: products on one chain are computed one after the other,
however many processors there are.
"""

from torch import Tensor
from torch.autograd.graph import Node

PRODUCTS = {
    "MmBackward": 1, "BmmBackward": 1, "AddmmBackward": 1, "BaddbmmBackward": 1, "MvBackward": 1,
    "ConvolutionBackward": 1, "ScaledDotProduct": 2,
}  # fmt: skip
"""Number of matrix products in a node of the graph, by the beginning of its name.

A convolution counts as one product. PyTorch's fused attention has two: the scores, and the mixture of the values.
"""


def waiting_products(output: Tensor) -> int:
    """Number of matrix products on the longest path from an input to `output`: each waits for the one before it.

    The graph is walked depth first with a stack of its own, because a recurrence over 1,000 words is deeper than
    Python's recursion limit.

    Args:
        output: computed from inputs or weights of which at least one requires gradients.

    Raises:
        ValueError: `output` was computed without gradients.
    """
    if output.grad_fn is None:
        raise ValueError("output has no graph; compute it from tensors that require gradients")
    longest: dict[Node, int] = {}  # from an input to this node
    stack = [output.grad_fn]
    while stack:
        node = stack[-1]
        parents = [parent for parent, _ in node.next_functions if parent is not None]
        unknown = [parent for parent in parents if parent not in longest]
        if unknown:
            stack += unknown
            continue
        longest[node] = products_in(node) + max((longest[parent] for parent in parents), default=0)
        stack.pop()
    return longest[output.grad_fn]


def products_in(node: Node) -> int:
    """Number of matrix products in one node of autograd's graph."""
    counts = [count for name, count in PRODUCTS.items() if node.name().startswith(name)]
    return counts[0] if counts else 0
