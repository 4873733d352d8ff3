"""Hints for the commonest errors that a learner's block and `my_q4_1` raise, by words of the error's message.

The checks of *Real weights* call the learner's code inside `explained(BLOCK)` or `explained(BITS)`. An error that no
pattern fits gets the hint of the property that was tried.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager

ROTATION_FOR_HEADS = (
    "What does the attention turn? Its *heads*, after the projections, so don't turn y. Hand on the rotation itself, "
    "`encode=rotation`, and the attention calls it."
)
COLUMNS = (
    "Which shapes meet in this line? Print them: numbers (blocks, 32), and d and m as columns, (blocks, 1). A slice "
    "such as `raw[:, 0:2]` keeps the axis, and an index drops it."
)

BLOCK = {
    r"Module\.__init__\(\) call":
        "What does `__init__` of a module do first? It calls `super().__init__()`, which makes room for the parts.",
    r"MultiHeadAttention\.__init__\(\) (?:takes|got)":
        "Which arguments does the attention take when it is *made*? embed_dim and num_heads, and by name "
        "`num_kv_heads=num_kv_heads` and `bias=`. But `encode=`, `is_causal=` and `cache=` belong to its call in "
        "`forward`.",
    r"MultiHeadAttention\.forward\(\) (?:takes|got)|attn_mask":
        "Which arguments does the call take? Three times y, and then by name `is_causal=`, `cache=` and `encode=`. Its "
        "sizes belong to the attention's making in `__init__`.",
    r"Rotation\.__init__\(\)|even size|'bool' object is not callable":
        "Which arguments does a `Rotation` take? The number of tokens, `x.shape[1]`, then the size of a head, and by "
        "name `start=` and `base=`. Make one, and hand it to the attention as `encode=`.",
    r"'Tensor' object is not callable":
        ROTATION_FOR_HEADS,
    r"'NoneType' object has no attribute 'length'|'NoneType' has no len":
        "Which position has the first token when there is no cache? 0, so ask first whether `cache is None`.",
    r"forward\(\) takes ":
        "What does `forward` take besides x? A cache, too: keep its first line, `def forward(self, x, cache=None):`.",
    r"(?:name|has no attribute) '(base|embed_dim|num_heads|head_dim)'":
        "Where is `{0}` known? Only in `__init__`, so keep it there as `self.{0} = …`, and read `self.{0}` in "
        "`forward`.",
    r"__init__\(\)|is unknown|divisible":
        "Which part does this line make, and what does it take? A question mark behind its name shows it: run "
        "`cu.MultiHeadAttention?` in a new cell.",
}  # fmt: skip
"""Pattern of the message → hint, for errors of `__init__` and `forward` of a block."""

BITS = {
    r"only one element tensors|converted to Scalar":
        "How many blocks does `raw` have here? Three, and `float(…)` and `.item()` need exactly one number: keep d and "
        "m as columns, (blocks, 1).",
    r"to view Byte as":
        "How many bytes does a float16 have? Two, so d is `raw[:, 0:2]` and m `raw[:, 2:4]`, each viewed as "
        "`torch.float16`, and only then made a float32.",
    r"not implemented for 'Float'":
        "What can `&` and `>>` take? Whole numbers, so take the halves of the bytes before anything becomes a float.",
    r"cat\(\)|Dimension out of range":
        "What does `torch.cat` take? A list of tensors, `[low, high]`, and the axis that grows.",
    r"must match the size of tensor|Expected size|except in dimension|values to unpack|number of sizes provided":
        COLUMNS,
}  # fmt: skip
"""Pattern of the message → hint, for errors of `my_q4_1`."""


@contextmanager
def explained(hints: Mapping[str, str]) -> Iterator[None]:
    """Give an error that is raised inside the block the hint for its message, if `hints` has one, as `error.hint`."""
    try:
        yield
    except Exception as error:
        if hint := hint_for(str(error), hints):
            vars(error)["hint"] = hint
        raise


def hint_for(message: str, hints: Mapping[str, str]) -> str:
    """The hint of the first pattern that is found in a message; empty if none is.

    {0} in a hint stands for the first group of its pattern.
    """
    for pattern, hint in hints.items():
        if match := re.search(pattern, message):
            return hint.format(*match.groups())
    return ""
