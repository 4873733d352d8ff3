"""SmolLM2 with fewer bits: its matrices rounded again, in blocks of several sizes.

`fewer_bits` is a stored run of *Real weights*, which needs the model's file.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.kit.runs import stored
from course_utils.lessons.real_weights.smollm import loss_on_story, reference

BITS = [
    {"bits": 0, "block": 0},  # as it comes
    *({"bits": bits, "block": block} for block in (32, 64, 192, 0) for bits in (2, 3, 4, 5, 6)),
]

SHIFT = 16
"""Columns by which our blocks are shifted against the file's own, on which four bits would cost nothing."""


def quantized(weights: Tensor, bits: int, block: int) -> Tensor:
    """The matrix (rows, columns) with each number at the nearest of 2^bits levels of its block.

    The levels of a block go from its least to its largest number. A block has `block` neighbors of a row, or all of
    them if it is 0.
    """
    shifted = weights.roll(SHIFT, dims=1)
    rows = shifted.reshape(-1, block or weights.shape[-1])
    low, high = rows.min(1, keepdim=True).values, rows.max(1, keepdim=True).values
    step = ((high - low) / (2**bits - 1)).clamp(min=1e-12)
    return (low + step * ((rows - low) / step).round()).view_as(weights).roll(-SHIFT, dims=1)


@stored(cases=BITS)
def fewer_bits(*, bits: int, block: int) -> dict[str, Any]:
    """The loss on our story, and what follows “The capital of France is”, with the layers' matrices rounded again.

    "stored" is the number of bits for each number, with its share of the scale and of the least value (16 bits each).

    Args:
        bits: of a number; 0 leaves the matrices as they come.
        block: numbers that share a scale; 0 for a whole row.
    """
    lm = reference()
    matrices = [p for n, p in lm.model.named_parameters() if n.startswith("layers") and p.ndim == 2]
    with rounded(matrices, bits, block), torch.inference_mode():
        loss = loss_on_story(lm)
        writes = lm.write("The capital of France is", max_new=6)
    numbers = sum(p.numel() for p in matrices)
    scales = sum(p.numel() // (block or p.shape[-1]) for p in matrices)
    result = {"loss": loss, "stored": bits + 32 * scales / numbers if bits else 5}
    return {"result": result, "examples": [{"writes": writes}]}


@contextlib.contextmanager
def rounded(matrices: Sequence[Tensor], bits: int, block: int) -> Iterator[None]:
    """Inside the block the matrices are `quantized`, unless `bits` is 0; afterwards they are as before."""
    kept = [matrix.clone() for matrix in matrices]
    try:
        if bits:
            for matrix in matrices:
                matrix.copy_(quantized(matrix, bits, block))
        yield
    finally:
        for matrix, before in zip(matrices, kept, strict=True):
            matrix.copy_(before)
