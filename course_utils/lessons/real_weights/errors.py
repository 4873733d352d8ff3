"""What an error says about a learner's block, or about the reading of four bits: a hint for each message."""

import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from torch import Tensor

SIZES = re.compile(r"tensor a \((\d+)\) must match the size of tensor b \((\d+)\) .*dimension (\d)")
"""PyTorch's words for two tensors that do not broadcast."""


@contextmanager
def explained(about: Callable[[str], str], otherwise: str = "") -> Iterator[None]:
    """Give an error that the block raises the hint `about(its message)`, or else `otherwise`."""
    try:
        yield
    except (AttributeError, NameError) as error:  # the kit has a general hint for others of these
        vars(error)["hint"] = about(str(error))
        raise
    except (IndexError, RuntimeError, TypeError, ValueError) as error:
        vars(error)["hint"] = about(str(error)) or otherwise
        raise


def _first(hints: tuple[tuple[str, str], ...], said: str) -> str:
    """The hint of the first pattern that is found; {0} in it is the pattern's first group."""
    found = ((re.search(pattern, said), hint) for pattern, hint in hints)
    return next((hint.format(*match.groups()) for match, hint in found if match), "")


# A block ----------------------------------------------------------------------------------------


def about_parts(said: str) -> str:
    """A hint for an error of `__init__`; empty if nothing is known about it."""
    return _first(PARTS, said)


WHAT_IT_TAKES = (
    "Which part does this line make, and what does it take? A question mark behind its name shows it: run "
    "`cu.MultiHeadAttention?` in a new cell."
)
SWIGLU = "Which network has a gate? Take `SwiGLU` in place of `FeedForward`: three matrices, gate, up and down."
_IN_THE_CALL = (
    "Which arguments does the attention take when it is *made*? Its sizes, `num_kv_heads=` and `bias=`. But `{0}=` "
    "belongs to its call in `forward`."
)
_ROTATION_BY_NAME = (
    "Which arguments of `Rotation` go by name? `start=` and `base=`. Before them stand only the number of tokens and "
    "the size of a head."
)
_TWO_SIZES = (
    "Which two sizes does a `Rotation` need? The number of tokens, `x.shape[1]`, and the size of a head. Make one, and "
    "hand it to the attention as `encode=`."
)
_ORDER = (
    "Which size comes first in `Rotation`? The number of tokens, and then the size of a head, embed_dim / num_heads, "
    "which is even."
)
PARTS = (
    (r"Module\.__init__\(\) call",
     "What does `__init__` of a module do first? It calls `super().__init__()`, which makes room for the parts."),
    (r"MultiHeadAttention\.__init__\(\) takes",
     "Which arguments of the attention go by name? Write `num_kv_heads=num_kv_heads`: only the first two need "
     "no name."),
    (r"MultiHeadAttention\.__init__\(\) got .* '(encode|is_causal|cache)'", _IN_THE_CALL),
    (r"MultiHeadAttention\.__init__\(\) got",
     "Which arguments does the attention take? embed_dim and num_heads, and by name `num_kv_heads=` and `bias=`."),
    (r"activation='\w+' is unknown", SWIGLU),
    (r"course_utils' has no attribute '(?:SwiGLU|RMSNorm)'",
     "Where do the new parts come from? `SwiGLU` is imported above, without `cu.`, and `nn.RMSNorm` is PyTorch's."),
    (r"(?:RMSNorm|SwiGLU)\.__init__\(\) got .* '(bias)'",
     "Which part has biases to leave out? Only the attention takes `{0}=False`: RMSNorm and SwiGLU have none anyway."),
    (r"divisible",
     "In which order do the sizes stand? `embed_dim` first, then `num_heads`, and `num_kv_heads` by its name."),
    (r"Rotation\.__init__\(\) takes", _ROTATION_BY_NAME),
    (r"name '(x|y|cache|length|seq_len)' is not defined",
     "Where is `{0}` known? Only in `forward`, so make the rotation there."),
)  # fmt: skip
"""Words of an error of `__init__`, and a hint."""


def about_forward(said: str, x: Tensor, num_heads: int, held: int = 0) -> str:
    """A hint for an error of `forward(x)` with a cache of `held` tokens; empty if nothing is known about it."""
    if sizes := SIZES.search(said):
        theirs, turned, axis = map(int, sizes.groups())
        return _about_sizes(theirs, turned, axis, x, num_heads, held)
    return _first(FORWARD, said)


def _about_sizes(theirs: int, turned: int, axis: int, x: Tensor, num_heads: int, held: int) -> str:
    """A hint for a rotation that does not fit: it turns pairs of columns of (batch, heads, length, head_dim)."""
    batch, length, width = x.shape
    if axis == 2 and theirs == width // 2:
        return AT_HEADS
    if axis == 3 and theirs == width // num_heads // 2:
        return (
            f"How many columns does a head have here? {width} / {num_heads} = {2 * theirs}, and your rotation turns "
            f"{2 * turned}. Give it embed_dim / num_heads."
        )
    if axis != 2 or theirs != length:
        return ""
    count = (
        f"How many tokens does x have here? {length}, and your rotation has angles for {turned}. "
    )
    if held and turned == held + length:
        return f"{count}Only the new tokens are turned, so give it `x.shape[1]`, and `start=` says where they begin."
    if turned == width:
        return f"{count}The last axis holds the features, so take `x.shape[1]`."
    if turned == batch:
        return f"{count}`len(x)` counts the texts of a batch, so take `x.shape[1]`."
    return f"{count}Make it in `forward`, where the number of tokens, `x.shape[1]`, is known."


AT_HEADS = (
    "What does the attention turn? Its *heads*, after the projections, so don't turn y. Hand on the rotation itself, "
    "`encode=rotation`, and the attention calls it."
)
_NO_CACHE = "Which position has the first token when there is no cache? 0, so ask first whether `cache is None`."
FORWARD = (
    (r"'NoneType' object has no attribute 'length'|'NoneType' has no len|instances of 'NoneType'", _NO_CACHE),
    (r"'KVCache' has no len|instances of 'KVCache'|'int' object is not callable",
     "How many tokens does a cache hold? Its attribute `cache.length` says it."),
    (r"'Tensor' object is not callable", AT_HEADS),
    (r"MultiHeadAttention\.forward\(\) missing",
     "What does each part get? Attention takes queries, keys and values, three times the same y."),
    (r"MultiHeadAttention\.forward\(\) got .* '(num_kv_heads|bias)'",
     "Where does `{0}=` belong? To the attention's making in `__init__`, not to its call."),
    (r"MultiHeadAttention\.forward\(\) (?:got|takes)|attn_mask",
     "Which arguments does the call take? Three times y, and then by name `is_causal=`, `cache=` and `encode=`."),
    (r"Rotation\.__init__\(\) missing|'(?:bool|str)' object is not callable|torch\.Size|arange\(\)", _TWO_SIZES),
    (r"Rotation\.__init__\(\)", _ROTATION_BY_NAME),
    (r"even size", _ORDER),
    (r"forward\(\) (?:takes|got) ",
     "What does `forward` take besides x? A cache, too: keep its first line, `def forward(self, x, cache=None):`."),
    (r"name '(base|embed_dim|num_heads|num_kv_heads|ffn_dim|head_dim)' is not defined",
     "Where is `{0}` known? Only in `__init__`, so keep it there as `self.{0} = …`, and read `self.{0}` in `forward`."),
    (r"object has no attribute '(base|embed_dim|num_heads|head_dim)'",
     "Where is `self.{0}` set? Keep it in `__init__`, as `self.{0} = …`, so that `forward` finds it."),
)  # fmt: skip
"""Words of an error of `forward`, and a hint."""


# Four bits --------------------------------------------------------------------------------------


def about_bits(said: str, alone: Callable[[], Tensor]) -> str:
    """A hint for an error with three blocks, or empty; `alone` computes the first of them alone."""
    if sizes := SIZES.search(said):
        one, other, axis = map(int, sizes.groups())
        return _about_axes({one, other}, axis, alone)
    return _first(BITS, said)


def _about_axes(pair: set[int], axis: int, alone: Callable[[], Tensor]) -> str:
    if axis == 0:
        return BELOW if pair == {3, 6} else _ROWS
    if pair in ({2, 32}, {2, 16}):
        return _TWO_BYTES
    if 3 not in pair:
        return _ROWS if pair & {10, 20} else ""
    answer = None
    with suppress(Exception):
        answer = alone()
    if not isinstance(answer, Tensor):
        return STACKED if pair == {2, 3} else COLUMNS
    if answer.ndim == 3:
        return STACKED
    if tuple(answer.shape) == (2, 16):
        return BELOW
    whole = not answer.is_complex() and bool((answer == answer.round()).all())
    return _ONE_BYTE if whole else COLUMNS


BELOW = (
    "Did you put the blocks below each other? `torch.cat` does so unless you say `dim=1`, which puts the halves side "
    "by side."
)
STACKED = (
    "How many axes should the numbers have? Two, (blocks, 32), but `torch.stack` makes a third, so join with "
    "`torch.cat`."
)
COLUMNS = (
    "Which shapes meet? Numbers (blocks, 32) and, in yours, one d for each block in a row. Keep d and m as columns, "
    "(blocks, 1): a slice such as `raw[:, 0:2]` keeps the axis, and an index drops it."
)
_ONE_BYTE = (
    "How many bytes is d? Two bytes *together* are one float16, `raw[:, 0:2].view(torch.float16)`, and this is a "
    "column, (blocks, 1)."
)
_TWO_BYTES = (
    "How many numbers are the first two bytes? They are *one* float16: `.view(torch.float16)` reads them so, and "
    "`.float()` or `.to(…)` makes two numbers of two bytes."
)
_ROWS = "What does the first index of `raw` count? The blocks, so the bytes come second: `raw[:, 0:2]`, `raw[:, 4:]`."
SHAPES = (
    "Which shapes meet in this line? Print those of d, m and n before it: they should be (blocks, 1), (blocks, 1) and "
    "(blocks, 32)."
)
BITS = (
    (r"only one element tensors",
     "How many numbers does a tensor of three blocks hold? `float(…)` and `torch.tensor([…])` need exactly one: keep d "
     "and m as columns, (blocks, 1), and join tensors with `torch.cat`."),
    (r"converted to Scalar",
     "How many blocks does `raw` have here? Three, and `.item()` needs exactly one number: keep d and m as columns, "
     "(blocks, 1)."),
    (r"Byte as Float|Byte as Double",
     "How many bits are two bytes? 16, so view them as `torch.float16`, and only then call `.float()`."),
    (r"to view Byte as",
     "Which bytes are one float16? Two neighbors, 0 and 1 or 2 and 3: `raw[:, 0:2].view(torch.float16)`."),
    (r"bitwise|shift|for &|for >>",
     "What has halves of four bits? A whole number, so take `& 15` and `>> 4` of the bytes, and make floats later."),
    (r"values to unpack",
     "Along which axis does Python unpack a tensor? Along the first, the blocks. Take the columns one by one: "
     "`[:, 0:1]` and `[:, 1:2]`."),
    (r"Dimension out of range",
     "How many axes do the halves have? Two, (blocks, 16), counted from 0: join them along `dim=1`."),
    (r"expand\(",
     "How many blocks does `raw` have here? Three, so n has 32 numbers for each, (blocks, 32). `&` and `>>` work on "
     "all bytes at once."),
    (r"cat\(\)", "What does `torch.cat` take? A *list* of tensors, `torch.cat([low, high], dim=1)`."),
    (r"index \d+ is out of bounds for dimension 0", _ROWS),
    (r"Expected size|except in dimension", _ROWS),
    (r"name 'byte' is not defined",
     "What is `byte`? It stands for each of the 16 bytes, so write `raw[:, 4:]`: `&` and `>>` work on all at once."),
    (r"name '(d|m)' is not defined",
     "Where does `{0}` come from? Read it from `raw`, as the cell above reads its two numbers."),
)  # fmt: skip
"""Words of an error of `my_q4_1`, and a hint."""
