"""Checks of *Real weights*: a block for SmolLM2's weights, its parameters on paper, four bits, a forbidden look."""

from collections.abc import Callable, Iterable, Iterator

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.cache import KVCache
from course_utils.interventions import intervene
from course_utils.kit.candidate import NotDone
from course_utils.kit.check import Check
from course_utils.kit.expect import (
    Unmet,
    expect,
    expect_close,
    expect_equal,
    expect_same_gradients,
    expect_shape,
    expect_unchanged,
    kind_of,
)
from course_utils.kit.on_paper import on_paper, read_number
from course_utils.layers import EncoderLayer
from course_utils.lessons.real_weights.errors import (
    BITS,
    BLOCK,
    COLUMNS,
    ROTATION_FOR_HEADS,
    explained,
)
from course_utils.models.language import GPT
from course_utils.positions import Rotation

# A block of SmolLM2 -----------------------------------------------------------------------------

my_block = Check()

HEADS, KV_HEADS, WIDTH = 6, 2, 40
Slips = Iterable[tuple[str, Tensor]]
"""What likely mistakes would give, each with the hint for it."""


def _learner_block(candidate, embed_dim: int = 24, base: float = 10_000.0) -> nn.Module:
    """The learner's block.

    Raises:
        NotDone: no part of it is made: the class is still the stub.
    """
    try:
        with explained(BLOCK):
            block = candidate(embed_dim, HEADS, KV_HEADS, WIDTH, base)
    except NotImplementedError:
        raise NotDone from None
    expect(isinstance(block, nn.Module), f"got {kind_of(block)}, expected a module", _MODULE)
    open_parts = [name for name, part in vars(block).items() if part is ...]
    if not vars(block).get("_modules") and (open_parts or _returns_nothing(block, embed_dim)):
        raise NotDone
    expect(not open_parts, f"{' and '.join(open_parts)}: nothing there yet", _OPEN)
    theirs = any(isinstance(part, EncoderLayer) for part in block.modules())
    expect(not theirs, "it uses EncoderLayer, and this is what the task asks you to write", _OURS)
    return block


def _returns_nothing(block: nn.Module, embed_dim: int) -> bool:
    try:
        answer = block.forward(torch.randn(1, 2, embed_dim))
    except NotImplementedError:
        return True
    except Exception:
        return False
    return answer is None or answer is ...


_MODULE = "What does your class inherit from? Its first line is `class MyBlock(nn.Module):`."
_OPEN = "Which part takes the place of `...`? The comment beside it says what stood there in *GPT*."
_OURS = "What does `EncoderLayer.forward` do, step by step? Write these steps."


def _reference(embed_dim: int = 24, base: float = 10_000.0) -> EncoderLayer:
    """The library's block, with random weights that are large enough for each look to matter."""
    block = EncoderLayer(
        embed_dim, HEADS, WIDTH, dropout=0.0, norm_first=True, activation="swiglu", norm="rms", rotary=True,
        rotary_base=base, num_kv_heads=KV_HEADS, bias=False,
    )  # fmt: skip
    with torch.no_grad():
        for name, parameter in block.named_parameters():
            parameter.add_(0.2 * torch.randn_like(parameter))
            parameter.mul_(3 if "query" in name or "key" in name else 1)
    return block


def _block_and_reference(
    candidate, embed_dim: int = 24, base: float = 10_000.0
) -> tuple[nn.Module, EncoderLayer]:
    """The learner's block and the library's, with equal weights."""
    reference = _reference(embed_dim, base)
    block = _learner_block(candidate, embed_dim, base)
    block.load_state_dict(reference.state_dict())
    return block, reference


def _answer(block: nn.Module, x: Tensor, *cache: KVCache) -> Tensor:
    with explained(BLOCK):
        answer = block(x.clone(), *cache)
    expect(answer is not None and answer is not ..., "`forward` gives nothing yet", _RETURN)
    return expect_shape(answer, tuple(x.shape))


_RETURN = (
    "Does `forward` end with `return`? It gives the stream x, to which both parts have been added."
)


def _expect_output(
    answer: Tensor, expected: Tensor, what: str, slips: Slips = (), **near: float
) -> None:
    """Fail unless both are close, with the hint for the slip that would give this answer."""
    near = near or {"atol": 1e-4}
    hint = ""
    for about, other in slips:
        fits = torch.allclose(answer, other, **near) and not torch.allclose(other, expected, **near)
        hint = hint or (about if fits else "")
    expect_close(answer, expected, what, hint=hint, **near)


def _block_by_hand(
    block: EncoderLayer, x: Tensor, read: Callable[[Tensor], Tensor], **options
) -> Tensor:
    """x and what the attention gives, if it reads read(x)."""
    y = read(x)
    return x + block.attention(y, y, y, is_causal=True, **options)


@my_block.must("has the parameters of a block of SmolLM2, name for name")
def has_parameters_of_block_of_smollm2_name_for_name(candidate):
    """What are your four parts called? The weights come by name, so the parts have to be `attention`, `attention_norm`,
    `feed_forward` and `feed_forward_norm`.

    Print `[*MyBlock(24, 6, 2, 40, 1e5).state_dict()]`, and compare it with the names above.
    """
    wanted, mine = (
        {name: tuple(each.shape) for name, each in block.named_parameters()}
        for block in (_reference(), _learner_block(candidate))
    )
    missing, extra = [*(wanted.keys() - mine.keys())], [*(mine.keys() - wanted.keys())]
    if missing or extra:
        both = (("missing", missing), ("too many", extra))
        said = (f"{what}: {', '.join(sorted(names)[:2])}" for what, names in both if names)
        raise Unmet("; ".join(said), _about_names(missing, extra))
    for name, shape in wanted.items():
        reason = f"{name} has shape {mine[name]}, expected {shape}"
        hint = _NORM_SIZE if "norm" in name else _FFN if "feed" in name else _KV
        expect(mine[name] == shape, reason, hint)


def _about_names(missing: list[str], extra: list[str]) -> str:
    """The hint for these names; empty where only the names are wrong."""
    if all(any(name.startswith("feed_forward.") for name in names) for names in (missing, extra)):
        return _GATE
    for part, hint in (("_norm.bias", _RMS), ("_proj.bias", _BIAS)):
        if any(name.endswith(part) for name in extra):
            return hint
    return _TWO_NORMS if not extra and all("norm" in name for name in missing) else ""


_GATE = "Which network has a gate? Take `SwiGLU` in place of `FeedForward`: three matrices, gate, up and down."
_TWO_NORMS = (
    "How many norms does a block have? Attention and network each read through one of their own."
)
_RMS = "Which norm has a bias? LayerNorm has one, but RMSNorm only multiplies, so it has a single weight for a feature."
_BIAS = "Do SmolLM2's projections add anything? Its file has no biases, so the attention needs `bias=False`."
_FFN = (
    "Which widths does your network have? `SwiGLU` takes `embed_dim` and `ffn_dim`, in this order."
)
_NORM_SIZE = "How many numbers does a norm multiply? The features of the stream: `nn.RMSNorm(embed_dim, eps=1e-5)`."
_KV = "How many heads of keys and values are there? Hand on `num_kv_heads`, or there are as many as for the queries."


@my_block.must("gives an output of the shape of x")
def gives_output_of_shape_of_x(candidate):
    """What does each part get? Attention takes queries, keys and values, three times the same y. `Rotation` rotates the
    columns of each *head*, at every position of x: it takes `x.shape[1]` and the size of a head, embed_dim / num_heads.
    """
    block, _ = _block_and_reference(candidate)
    _answer(block, torch.randn(2, 5, 24))
    _answer(block, torch.randn(1, 1, 24))


@my_block.must("keeps earlier outputs as they are when a later token changes")
def hides_later_tokens(candidate):
    """Who may look at whom? A GPT reads to the left only, and attention has an argument for it, `is_causal`."""
    block, _ = _block_and_reference(candidate)
    x = torch.randn(2, 5, 24)
    later = x.clone()
    later[:, 3] = torch.randn(24)
    before, after = _answer(block, x), _answer(block, later)
    expect_close(after[:, :3], before[:, :3], "token 3 was changed, outputs before it")


@my_block.must("lets x pass unchanged if attention and network give zeros")
def lets_x_pass_unchanged_if_attention_and_network_give_zeros(candidate):
    """What happens to x besides the two sums? Only the parts read through a norm. Give what the norm returns a name of
    its own, such as y, and add to x itself.
    """
    block, _ = _block_and_reference(candidate)
    for part in ("attention.out_proj", "feed_forward.down"):
        block.state_dict()[f"{part}.weight"].zero_()
    x = torch.randn(2, 5, 24)
    slips = [(_RESIDUAL, torch.zeros_like(x)), (_TWICE, 2 * x)]
    _expect_output(_answer(block, x), x, "both parts give zeros, the output against x", slips)


_RESIDUAL = "Who adds x to what a part gives? Each part has its residual: `x = x + …`."
_TWICE = "How often do you add x? Once for each part, and the second sum begins with the first one's result."


@my_block.must("lets each part read the stream through its own norm")
def lets_each_part_read_stream_through_its_own_norm(candidate):
    """What does each part read? The attention reads `attention_norm` of x, and the network reads `feed_forward_norm` of
    what x is *then*, after the attention has been added.
    """
    block, reference = _block_and_reference(candidate)
    x = torch.randn(6, 1, 24)  # one token alone, so that its position does not matter
    _expect_output(
        _answer(block, x),
        reference(x, is_causal=True),
        "one token alone",
        _norm_slips(reference, x),
    )


def _norm_slips(block: EncoderLayer, x: Tensor) -> Iterator[tuple[str, Tensor]]:
    first, second, network = block.attention_norm, block.feed_forward_norm, block.feed_forward
    right, plain = _block_by_hand(block, x, first), _block_by_hand(block, x, lambda x: x)
    yield _NO_NORM.format("attention", "attention_norm"), plain + network(second(plain))
    yield _NO_NORM.format("network", "feed_forward_norm"), right + network(right)
    yield _NO_NORM.format("attention", "attention_norm"), plain + network(plain)
    exchanged = _block_by_hand(block, x, second)
    yield _EXCHANGED, exchanged + network(first(exchanged))
    yield _OWN_NORM, right + network(first(right))
    yield _OLD_X, right + network(first(x))
    yield _OLD_X, right + network(second(x))
    centered = _block_by_hand(block, x, lambda x: F.layer_norm(x, x.shape[-1:], first.weight))
    yield _MEAN, centered + network(F.layer_norm(centered, x.shape[-1:], second.weight))


_NO_NORM = "What does the {} read? Not x itself: it reads through its norm, `self.{}(x)`."
_EXCHANGED = "Which norm belongs to which part? The names say it, and their weights differ: yours are exchanged."
_OWN_NORM = "Which norm does the network read through? It has one of its own, `feed_forward_norm`."
_OLD_X = "What does the network read? The stream after the attention, so call its norm on the new x, not on the old."
_MEAN = (
    "Does your norm subtract the mean? LayerNorm does, and RMSNorm only divides: take `nn.RMSNorm`."
)


@my_block.must("adds ε = 10⁻⁵ under the root in both norms")
def adds_epsilon_under_root_in_both_norms(candidate):
    """Which ε does `nn.RMSNorm` take if you don't name one? A hundred times smaller one, and with small numbers this
    shows. The file says 10⁻⁵: `eps=1e-5`.
    """
    for silent, norm in (
        ("feed_forward.down", "attention_norm"),
        ("attention.out_proj", "feed_forward_norm"),
    ):
        block, reference = _block_and_reference(candidate)
        for each in (block, reference):
            each.state_dict()[f"{silent}.weight"].zero_()
        x = 1e-3 * torch.randn(2, 1, 24)
        expected = reference(x, is_causal=True)
        _expect_output(_answer(block, x), expected, f"{norm}, small numbers", atol=1e-5)


@my_block.must("rotates queries and keys by their positions")
def rotates_queries_and_keys_by_their_positions(candidate):
    """Where does your rotation go? The attention rotates queries and keys after their projection, if it gets your
    rotation as `encode=`.

    A rotation needs the number of tokens, `x.shape[1]`, so that each of them has a position of its own.
    """
    block, reference = _block_and_reference(
        candidate, embed_dim=12
    )  # two columns a head: their pace has no base
    x = torch.randn(2, 6, 12)
    expected, rotation = reference(x, is_causal=True), Rotation(6, 2)
    slips = []
    for turned, hint in (("", _TURN), ("queries", _TURN_BOTH), ("keys", _TURN_BOTH)):
        y = _block_by_hand(
            reference, x, reference.attention_norm, encode=_rotation_of_one(turned, rotation)
        )
        slips.append((hint, y + reference.feed_forward(reference.feed_forward_norm(y))))
    y = _block_by_hand(reference, x, lambda x: Rotation(6, 12)(reference.attention_norm(x)))
    slips.append((ROTATION_FOR_HEADS, y + reference.feed_forward(reference.feed_forward_norm(y))))
    _expect_output(_answer(block, x), expected, "six tokens", slips)


def _rotation_of_one(turned: str, rotation: Rotation) -> Callable[[Tensor], Tensor]:
    """A rotation of the queries alone or the keys alone, of which there are fewer heads; of neither for ""."""
    count = {"queries": HEADS, "keys": KV_HEADS, "": 0}[turned]
    return lambda heads: rotation(heads) if heads.shape[1] == count else heads


_TURN = (
    "How does your block know the order of the tokens? In yours they might as well stand anywhere. Make a `Rotation`, "
    "and hand it to the attention as `encode=`."
)
_TURN_BOTH = (
    "What is rotated? Queries *and* keys, so that the angle between them tells their distance."
)


@my_block.must("rotates queries and keys as slowly as `base` says")
def rotates_queries_and_keys_as_slowly_as_base_says(candidate):
    """Where does the argument `base` go? Keep it in `__init__`, and hand it to the `Rotation`."""
    block, reference = _block_and_reference(candidate, embed_dim=48, base=50.0)
    x = torch.randn(2, 9, 48)
    slips = []
    for base, hint in ((10_000.0, _BASE), (100_000.0, _FIXED_BASE)):
        reference.rotary_base = base
        slips.append((hint, reference(x, is_causal=True)))
    reference.rotary_base = 50.0
    _expect_output(_answer(block, x), reference(x, is_causal=True), "base 50, nine tokens", slips)


_BASE = (
    "Which base does your `Rotation` have? 10,000, which is its default, and no error is raised. SmolLM2 "
    "has learned with 100,000, and with 10,000 it would still say *Paris*, only a little less surely. Hand on `base=`."
)
_FIXED_BASE = "Is 100,000 written in your block? It is SmolLM2's base, but another model has another one: use `base`."


@my_block.must("gives on a cache, piece by piece, what it gives at once")
def gives_on_cache_piece_by_piece_what_it_gives_at_once(candidate):
    """Where does a new token stand? Behind all that the cache holds, so its rotation has `start=cache.length`, or 0 if
    there is no cache.

    When do you read `cache.length`? The attention appends the new tokens, so read it before.
    """
    block, reference = _block_and_reference(candidate)
    x, cache, pieces = torch.randn(2, 6, 24), KVCache(), (3, 2, 1)
    with torch.no_grad():
        answer = torch.cat([_answer(block, part, cache) for part in x.split(pieces, 1)], 1)
        reason = f"the cache holds {cache.length} tokens after 6 were read"
        expect(cache.length == 6, reason, _CACHE)
        slips = [
            (_START, _outputs_on_cache(reference, x.split(pieces, 1), starts=(0, 0, 0))),
            (_PROMPT, _outputs_on_cache(reference, x.split(pieces, 1), is_causal=False)),
        ]
        expected = reference(x, is_causal=True)
    _expect_output(answer, expected, "pieces of 3, 2 and 1 token", slips)


def _outputs_on_cache(
    block: EncoderLayer, parts: Iterable[Tensor], starts=(0, 3, 5), is_causal: bool = True
) -> Tensor:
    cache, answers = KVCache(), []
    for part, start in zip(parts, starts, strict=True):
        rotation = Rotation(part.shape[1], 24 // HEADS, start=start)
        answers.append(block(part, is_causal=is_causal, cache=cache, rotation=rotation))
    return torch.cat(answers, dim=1)


_CACHE = "Who fills the cache? The attention does, and looks at what it holds, if you hand it over as `cache=cache`."
_START = (
    "Where does each piece begin? Yours all begin at position 0, as if nothing had been read. A `Rotation` takes "
    "`start`, and the cache knows its `length`."
)
_PROMPT = "Who may look at whom within a piece? `is_causal=True` is right with a cache, too."


@my_block.must("leaves x as it was")
def leaves_x_as_it_was(candidate):
    """Does a line write into x? `x += …` changes the caller's tensor, so write `x = x + …`."""
    block, _ = _block_and_reference(candidate)
    with torch.no_grad():
        expect_unchanged(block, torch.randn(2, 5, 24))


@my_block.must("lets gradients through, by the parts and past them")
def lets_gradients_through_by_parts_and_past_them(candidate):
    """Where is the way back cut? Look for `no_grad`, `detach()` and `.data`. This chapter trains nothing, but if you
    adapt the model to a text of your own, you need the gradients.
    """
    block, reference = _block_and_reference(candidate)
    x = torch.randn(2, 5, 24)
    expect_same_gradients(
        block, lambda x: reference(x, is_causal=True), stream=x, atol=1e-3, rtol=1e-3
    )


# Counting on paper ------------------------------------------------------------------------------

LIKELY = {
    1_327_104: ("four matrices of 576 · 576",
        "How many heads of keys and values are there? Only 3, of 64 columns each, so two of the matrices are smaller."),
    995_328: ("three matrices of 576 · 576",
        "How many matrices does an attention have? Four, and those of keys and values serve only 3 heads of 64."),
    552_960: ("queries, keys and values, without the output",
        "What happens to the heads' results? One more matrix of 576 · 576 mixes them."),
    663_552: ("the matrices of queries and output",
        "How many matrices does an attention have? Keys and values have one each, too, of 576 · 192."),
    442_368: ("four matrices of 576 · 192",
        "How many heads of queries are there? 9, so the matrices of queries and output are 576 · 576."),
    886_272: ("an attention with biases", "Does anything get added in SmolLM2's attention? Leave the biases out."),
    1_769_472: ("two matrices of 576 · 1,536",
        "How many matrices does SwiGLU have? The gate has one of its own."),
    2_657_856: ("a network with biases", "Does SwiGLU add anything? It has three matrices and no biases."),
    3_981_312: ("a network of the width 4 · 576",
        "How wide is the network? Not four times 576: the file says 1,536."),
    3_538_944: ("attention and network only",
        "What stands before each of the two parts? A norm, and RMSNorm has one number for each of 576 features."),
    3_539_520: ("a block with one norm", "How many norms does a block have? Each of its two parts has its own."),
    3_541_248: ("a block with two LayerNorms",
        "How many numbers does RMSNorm have for a feature? Only one: it multiplies, and adds nothing."),
    134_514_432: ("a model without its last norm",
        "What comes between the last block and the output? One more norm."),
    162_826_560: ("a model with a matrix of its own for the output",
        "What does *tied* mean? The output uses the embedding's rows again, so they count once."),
    162_825_984: ("a model with a matrix of its own for the output, and without its last norm",
        "What does *tied* mean? The output uses the embedding's rows, so they count once. And one norm is missing."),
    106_202_880: ("thirty blocks and nothing else",
        "Is it (c)? One block is asked for. Is it (d)? Before the first block come 49,152 rows of 576."),
    106_203_456: ("thirty blocks and the last norm",
        "Is it (c)? One block is asked for. Is it (d)? Before the first block come 49,152 rows of 576."),
}  # fmt: skip
"""Wrong answers, what each counts, and where to look."""


def _read_count(answer) -> float:
    """The number in an answer; likely mistakes get a hint of their own."""
    number = read_number(answer)
    what, hint = LIKELY.get(number, ("", ""))
    expect(not what, f"{number:,.0f} counts {what}", hint)
    return number


count_by_hand = on_paper({
    "a": (884_736, "the attention of one block",
          "Which sizes do the four matrices have? Queries and output 576 · 576, keys and values 576 · (3 · 64).",
          "It is 2 · 576 · 576 + 2 · 576 · 192."),
    "b": (2_654_208, "the network of one block",
          "How many matrices does SwiGLU have, and how large are they? Gate and up widen, and down narrows."),
    "c": (3_540_096, "a whole block with its two norms",
          "What is there besides (a) and (b)? Two norms, with a number for each feature."),
    "d": (134_515_008, "the whole model",
          "What is there besides thirty blocks? Look before the first one, and after the last one.",
          "It is 30 times (c), 49,152 rows of 576, and 576 more. The output has the embedding's rows."),
}, read=_read_count, within=0.5)  # fmt: skip


# Numbers of four bits ---------------------------------------------------------------------------

my_q4_1 = Check()


def _pack_blocks(scales: list[float], leasts: list[float], numbers: Tensor) -> Tensor:
    """Bytes (blocks, 20) in the format of the file, from numbers (blocks, 32) between 0 and 15."""
    ends = torch.tensor([scales, leasts]).T.half().contiguous().view(torch.uint8)
    numbers = numbers.to(torch.uint8)
    return torch.cat([ends, numbers[:, :16] | numbers[:, 16:] << 4], dim=1)


def _decode_blocks(raw: Tensor) -> Tensor:
    scale, least, low, high = _unpack_blocks(raw)
    return scale * torch.cat([low, high], dim=1) + least


def _unpack_blocks(raw: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Scales and least values (blocks, 1), low and high halves (blocks, 16)."""
    scale, least = (part.clone().view(torch.float16).float() for part in (raw[:, :2], raw[:, 2:4]))
    return scale, least, raw[:, 4:] & 15, raw[:, 4:] >> 4


def _q4_1_slips(raw: Tensor) -> Iterator[tuple[str, Tensor]]:
    scale, least, low, high = _unpack_blocks(raw)
    n = torch.cat([low, high], dim=1)
    brain = raw[:, :4].clone().view(torch.bfloat16).float()
    whole, other = (part.clone().view(torch.int16).float() for part in (raw[:, :2], raw[:, 2:4]))
    yield _SCALE_FIRST, least * n + scale
    yield _LOW_FIRST, scale * torch.stack([low, high], dim=-1).flatten(1) + least
    yield _HIGH_FIRST, scale * torch.cat([high, low], dim=1) + least
    yield _SHIFT, scale * torch.cat([low, raw[:, 4:] & 240], dim=1) + least
    yield _SHIFT, scale * torch.cat([low, raw[:, 4:] / 16], dim=1) + least
    for shifted in (n.float() - 8, n - 8):
        yield _FROM_ZERO, scale * shifted
        yield _FROM_ZERO, scale * shifted + least
    for half in (raw[:, 4:] & 4, raw[:, 4:] & 16, raw[:, 4:] & 21, raw[:, 4:] % 15):
        yield _MASK, scale * torch.cat([half, high], dim=1) + least
    yield _ADD, scale * n - least
    yield _SIGN, least - scale * n
    yield _PRODUCT, scale + least + n
    yield _SIXTEEN, brain[:, :1] * n + brain[:, 1:]
    yield _ADD_ALONE, scale * (n + least)
    yield _LEAST, scale * n
    yield _HALF, whole * n + other
    for second in (1, 2):
        yield _TOGETHER, raw[:, :1].float() * n + raw[:, second : second + 1]


_SCALE_FIRST = (
    "Which two bytes come first? Those of the scale d, and then those of the least value m."
)
_LOW_FIRST = "Which number is the first byte's high half? Number 16, not number 1: all low halves come first."
_HIGH_FIRST = "Which half of a byte comes first? The low halves, `byte & 15`, are numbers 0 to 15."
_SHIFT = "How large is a high half? It lies between 0 and 15, so shift it down: `byte >> 4`."
_MASK = "Which number keeps the lowest four bits? 15, in bits 1111, so `byte & 15`. The remainder by 16 is the same."
_FROM_ZERO = (
    "Which numbers can four bits say? Here 0 to 15, and the least value is added. Q4_0, a format without one, "
    "subtracts 8 instead."
)
_ADD = "What is m? It is the least value of the block, so the number 0 stands for m itself: add it."
_SIGN = "Where does the number 15 lie? Above m, by 15 steps, so d · n is added: d · n + m."
_PRODUCT = "What happens to d? Each n is *multiplied* by it, and then m is added: d · n + m."
_SIXTEEN = (
    "Which floats of 16 bits are d and m? In this file they are `torch.float16`, and not bfloat16."
)
_ADD_ALONE = "What is multiplied by d? Only n: each number stands for d · n + m."
_LEAST = "What does the number 0 stand for? For the least value m, so add it to each d · n."
_TOGETHER = (
    "How many bytes is m? Bytes 2 and 3 together are one float of 16 bits, `raw[:, 2:4].view(torch.float16)`, and so "
    "are bytes 0 and 1, the scale d."
)
_HALF = "What do two bytes mean? `view(torch.int16)` reads a whole number. A scale is a float of 16 bits."


def _expect_decoded(candidate, raw: Tensor, what: str) -> None:
    answer = expect_shape(candidate(raw.clone()), (len(raw), 32))
    expect(not answer.is_complex(), "got complex numbers, expected real ones")
    answer = answer if answer.is_floating_point() else answer.float()
    slips = [(hint, other.to(answer.dtype)) for hint, other in _q4_1_slips(raw)]
    slips += [(_FIXED.format(parts), answer) for parts in _unused_parts(candidate, raw)]
    _expect_output(answer, _decode_blocks(raw).to(answer.dtype), what, slips, atol=1e-3)


def _unused_parts(candidate, raw: Tensor) -> Iterator[str]:
    """Those of d and m on which the answer for these blocks does not depend."""
    other = _pack_blocks([3.0], [7.0], torch.zeros(1, 32))
    before = candidate(raw.clone())
    for parts, first, last in (("d and m", 0, 4), ("m", 2, 4), ("d", 0, 2)):
        changed = raw.clone()
        changed[:, first:last] = other[:, first:last]
        matters = parts != "d" or bool(raw[:, 4:].any())
        if matters and torch.equal(before, candidate(changed)):
            yield parts


_FIXED = (
    "What in your function reads {} from `raw`? The answer stays the same for a block with other ones, so don't take "
    "the numbers of the cell above: read bytes 0 to 3."
)


@my_q4_1.must("gives 32 numbers for each block of 20 bytes")
def gives_32_numbers_for_each_block_of_20_bytes(candidate):
    """How many numbers does a byte hold? Two, its low half and its high half, and 16 bytes of each block hold numbers.

    Join the low halves and the high halves along `dim=1`.
    """
    raw = _pack_blocks([0.3, 0.25, 2.0], [-3.2, 1.0, 0.0], torch.randint(16, (3, 32)))
    with explained(BITS):
        answer = candidate(raw.clone())
    shape = tuple(getattr(answer, "shape", ()))
    expect(
        shape not in _SHAPES, f"got shape {shape}, expected shape (3, 32)", _SHAPES.get(shape, "")
    )
    expect_shape(answer, (3, 32))
    expect_shape(candidate(raw[:1].clone()), (1, 32))


_BLOCKS = "How many rows has raw? One for each block, so keep this axis: `raw[:, …]` takes bytes of every block."
_BYTES = (
    "Which bytes hold numbers? The first four of a block are d and m, so begin with `raw[:, 4:]`."
)
_STACKED = (
    "How many axes should the numbers have? Two, (blocks, 32), but `torch.stack` makes a third, so join with "
    "`torch.cat`."
)
_BELOW = (
    "Did you put the blocks below each other? `torch.cat` does so unless you say `dim=1`, which puts the halves side "
    "by side."
)
_SHAPES = {
    **dict.fromkeys(((3, count) for count in (20, 24, 28, 30, 34, 36, 40)), _BYTES),
    **dict.fromkeys(((1, 32), (32,), (96,)), _BLOCKS),
    **dict.fromkeys(((3, 2, 16), (2, 3, 16), (3, 16, 2)), _STACKED),
    (6, 16): _BELOW,
    (3, 3, 32): COLUMNS,
}  # fmt: skip
"""Wrong shapes, each with where to look."""


@my_q4_1.must("gives the least value where all numbers are 0")
def gives_least_value_where_all_numbers_are_0(candidate):
    """How do you read m? Bytes 2 and 3 together are one float of 16 bits: `raw[:, 2:4].view(torch.float16)`."""
    _expect_decoded(
        candidate, _pack_blocks([0.5], [-2.3], torch.zeros(1, 32)), "d = 0.5, m = −2.3, every n = 0"
    )


@my_q4_1.must("goes up by the scale from one number to the next")
def goes_up_by_scale_from_one_number_to_next(candidate):
    """How do you read d? Bytes 0 and 1 together are one float of 16 bits, and each n is multiplied by it."""
    for n in (1, 15):
        raw = _pack_blocks([0.5], [-2.3], torch.full((1, 32), n))
        _expect_decoded(candidate, raw, f"d = 0.5, m = −2.3, every n = {n}")


@my_q4_1.must("has the low halves as numbers 0 to 15, and the high halves as 16 to 31")
def puts_low_halves_before_high_halves(candidate):
    """In which order do the numbers come? All low halves, and then all high halves: join them with `torch.cat`."""
    counting = torch.arange(32) % 16
    _expect_decoded(
        candidate,
        _pack_blocks([1.0], [0.0], (7 * counting + torch.arange(32) // 16)[None] % 16),
        "d = 1, m = 0",
    )


@my_q4_1.must("gives each block its own scale and least value")
def gives_each_block_its_own_scale_and_least_value(candidate):
    """Whose d and m does each row use? Each block has its own: both are (blocks, 1), and meet numbers (blocks, 32)."""
    raw = _pack_blocks([0.5, 0.25, 2.0], [-3.0, 1.0, 0.5], torch.randint(16, (3, 32)))
    _expect_decoded(candidate, raw, "three blocks")


@my_q4_1.must("computes in float32")
def computes_in_float32(candidate):
    """When do d and m become float32? Before they are multiplied, or the result is rounded to 16 bits:
    call `.float()` on them.
    """
    raw = _pack_blocks([0.0123, 0.0456], [-0.0987, -0.321], torch.randint(16, (2, 32)))
    answer = candidate(raw.clone())
    expect_shape(answer, (2, 32))
    expect_equal(answer.dtype, torch.float32, "the result's dtype")
    expect_close(answer, _decode_blocks(raw), "two blocks", atol=1e-7, rtol=1e-6)


my_q4_1.must_keep_inputs(
    lambda: [_pack_blocks([0.5], [-2.3], torch.randint(16, (1, 32)))],
    "Does a line write into the bytes? `>>=` and `&=` do, and `raw >> 4` makes a new tensor.",
    "the bytes are not changed",
)

# A look in one layer ----------------------------------------------------------------------------

my_without_look = Check()

LENGTH = 7


def _model_and_ids() -> tuple[GPT, Tensor]:
    """A small model with clear opinions, and a text of seven tokens."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = GPT(20, embed_dim=16, num_heads=2, num_layers=3, dropout=0.0).eval()
        with torch.no_grad():
            for p in model.parameters():
                p.mul_(3)
        return model, torch.randint(20, (1, LENGTH))


def _probs_without(model: GPT, ids: Tensor, **forbidden) -> Tensor:
    with torch.no_grad(), intervene(model) as acts:
        acts.forbid(**forbidden)
        return model(ids)[0, -1].softmax(-1)


def _call_without_look(
    candidate: Callable, positions: list[int], layer: int
) -> tuple[Tensor, GPT, Tensor]:
    model, ids = _model_and_ids()
    with torch.no_grad(), explained(_LOOK):
        answer = candidate(model, ids, positions, layer)
    return expect_shape(answer, (20,)), model, ids


_LOOK = {
    "counted from 0": "At which position stands the last of n tokens, counted from 0? At n − 1: `ids.shape[1] - 1`."
}
"""Pattern of an error's message → hint, for a position that is counted from the end."""


@my_without_look.must("gives a probability for each token of the vocabulary")
def gives_probability_for_each_token_of_vocabulary(candidate):
    """Which row of the logits says what comes next? The one of the last token, `model(ids)[0, -1]`.

    A softmax makes probabilities of it.
    """
    answer, _, _ = _call_without_look(candidate, [2], 1)
    total = answer.sum().item()
    expect(
        abs(total - 1) < 1e-4 and answer.min() >= 0,
        f"the numbers sum to {total:.2f}, expected 1",
        "Are these still logits? `softmax(-1)` makes probabilities of them.",
    )


@my_without_look.must(
    "forbids the positions to the last token in this layer, and to no other token"
)
def forbids_positions_to_last_token_in_this_layer_only(candidate):
    """What is forbidden to whom, and in which layer? `acts.forbid(queries=…, keys=…, layers=…)` counts from 0."""
    for positions, layer in (([2], 1), ([3, 4], 2), ([1], 0)):
        answer, model, ids = _call_without_look(candidate, positions, layer)
        last = LENGTH - 1
        right = _probs_without(model, ids, queries=last, keys=positions, layers=layer)
        with torch.no_grad():
            first, whole = model(ids)[0, [0, -1]].softmax(-1)
        slips = (
            (first,
             "Whose row of the logits do you read? The last token says what comes next, not the first one."),
            (whole,
             "Is anything forbidden? The model has to run inside the block, and the last token is the query that asks; "
             "the positions are the keys."),
            (_probs_without(model, ids, keys=positions, layers=layer),
             "Who asks? Without `queries=` no token may look there, and only the last is meant: `ids.shape[1] - 1`."),
            (_probs_without(model, ids, queries=last, keys=positions),
             "In which layer? Without `layers=` it is forbidden in all of them."),
            (_probs_without(model, ids, queries=last, keys=positions[0], layers=layer),
             "How many positions are there? `keys=` takes the whole list."),
            (_probs_without(model, ids, queries=last, layers=layer),
             "What is forbidden? Without `keys=` everything is. Give it the positions."),
        )  # fmt: skip
        hints = [hint for other, hint in slips if torch.allclose(answer, other, atol=1e-5)]
        good = torch.allclose(answer, right, atol=1e-5)
        expect(
            good,
            f"no look at {positions} in layer {layer}: token 0 has {answer[0]:.3f}, expected {right[0]:.3f}",
            hints[0] if hints else "",
        )


@my_without_look.must("leaves the model as it was")
def leaves_model_as_it_was(candidate):
    """How long is the look forbidden? Only inside the block: use `with`, and call nothing by hand."""
    _, model, ids = _call_without_look(candidate, [2], 1)
    with torch.no_grad():
        after, fresh = model(ids), _model_and_ids()[0](ids)
    expect(torch.equal(after, fresh), "afterward the model gives different answers")
