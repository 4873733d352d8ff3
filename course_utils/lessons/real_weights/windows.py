"""What SmolLM2 loses when it sees a part of its past only, and what its cache costs, for *Attention at length*.

Each experiment is a function of the model, for `smollm.known`, and returns what JSON can hold; `runs` of this lesson
records what they give. After Xiao et al. (2024), "Efficient streaming language models with attention sinks".
"""

import contextlib
import copy
import math
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.attention import dot_product_weights
from course_utils.cache import KVCache
from course_utils.data.prose import story_text
from course_utils.data.registry import fetch
from course_utils.files import data_path
from course_utils.lessons.real_weights.smollm import SmolLM
from course_utils.masks import causal_mask, masked_softmax
from course_utils.models.language import GPT, TextState
from course_utils.positions import Rotation

Attend = Callable[..., Tensor]
"""What stands in for `MultiHeadAttention.attend`; same arguments, same averages (batch, heads, queries, head_dim)."""

LENGTH, FROM, BLOCK = 1536, 128, 64
"""Tokens of a text that are asked; the first of them that counts in a mean; tokens of a block."""

# Texts --------------------------------------------------------------------------------------------

TEXTS = ("pages", "ferry", "orchard", "story", "plays")
"""Four texts of our own, which SmolLM2 can't have read, and Shakespeare's plays, which it has."""


def words_of(text: str) -> str:
    """One of `TEXTS`. The plays are fetched where they aren't in the cache."""
    if text == "plays":
        return fetch("tinyshakespeare").read_text(encoding="utf-8")[:8000]
    if text == "story":
        return story_text()
    lines = data_path(f"prose/{text}.txt").read_text(encoding="utf-8").splitlines()
    return "\n".join(line for line in lines if line and not line.startswith("#"))


def ids_of(lm: SmolLM, text: str, *, tokens: int = LENGTH, front: bool = True) -> Tensor:
    """Ids (1, n + 1) of <|endoftext|> and a text's first n tokens: whole blocks, at most `tokens`.

    Without a `front` they are (1, n), because nothing stands before the text.
    """
    ids = lm.encode(words_of(text))[:, :tokens]
    ids = ids[:, : ids.shape[1] // BLOCK * BLOCK]
    return torch.cat([torch.zeros(1, 1, dtype=torch.long), ids], dim=1) if front else ids


# Who may look at whom -----------------------------------------------------------------------------


def window(n: int, last: int, always: Sequence[int] = ()) -> Tensor:
    """Mask (n, n), True = may attend: to the last tokens, the query included, and to some that are always kept."""
    query, key = torch.arange(n)[:, None], torch.arange(n)
    kept = query - key < last
    kept[:, list(always)] = True
    return kept & causal_mask(n)


def losses(model: GPT, ids: Tensor, mask: Tensor) -> Tensor:
    """Nats that each token after the first costs, (n − 1,), if every layer looks through a mask.

    Args:
        ids: (1, n).
        mask: (n − 1, n − 1), True = may attend.
    """
    x = model.embedding(ids[:, :-1])
    for layer in model.layers:
        x = layer(x, mask)
    return F.cross_entropy(model.output(model.norm(x))[0], ids[0, 1:], reduction="none")


@contextlib.contextmanager
def attending(model: GPT, attend: Attend | None) -> Iterator[None]:
    """A block in which every attention of a model computes its averages by `attend`; None changes nothing."""
    layers = model.layers if attend else ()
    for layer in layers:
        layer.attention.attend = attend
    try:
        yield
    finally:
        for layer in layers:
            del layer.attention.attend


def shared(q: Tensor, *kv: Tensor) -> list[Tensor]:
    """Keys and values (batch, kv_heads, …), each repeated for the heads of q that share it."""
    return [each.repeat_interleave(q.shape[1] // each.shape[1], dim=1) for each in kv]


def in_full(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **_: bool) -> Tensor:
    """Attention with the whole matrix of weights; the mask is causal by default."""
    k, v = shared(q, k, v)
    mask = causal_mask(k.shape[-2], queries=q.shape[-2]) if mask is None else mask
    return dot_product_weights(q, k, mask) @ v


def recounted(model: GPT, n: int, first: int, last: int) -> Attend:
    """An attention in which positions are counted inside of what is kept: the first tokens and a window.

    So no distance is above first + last − 1. A query that stands farther from the first tokens is turned back.
    """
    farthest = first + last - 1
    back = Rotation(n - farthest, model.layers[0].rotary_dim, base=model.rotary_base)
    back.sin = -back.sin

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, **_: bool) -> Tensor:
        k, v = shared(q, k, v)
        turned = torch.cat([q[..., :farthest, :], back(q[..., farthest:, :])], dim=-2)
        scores = torch.cat([turned @ k[..., :first, :].mT, q @ k[..., first:, :].mT], dim=-1)
        return masked_softmax(scores / math.sqrt(q.shape[-1]), mask) @ v

    return attend


@dataclass(frozen=True)
class View:
    """What a token may see.

    Attributes:
        last: the number of the last tokens, itself included.
        always: positions that are kept beside them.
        sees: position → the only others that the token there may see.
        recounted: as in `recounted`; the kept positions are the first ones then.
    """

    last: int
    always: Sequence[int] = ()
    sees: Mapping[int, Sequence[int]] = field(default_factory=dict)
    recounted: bool = False

    def losses(self, model: GPT, ids: Tensor) -> Tensor:
        """Nats that each token after the first costs, (n − 1,), of ids (1, n)."""
        n, attend = ids.shape[1] - 1, None
        if self.recounted:
            attend = recounted(model, n, len(self.always), self.last)
        with attending(model, attend):
            return losses(model, ids, self.mask(n))

    def mask(self, n: int) -> Tensor:
        """(n, n), True = may attend."""
        mask = window(n, self.last, self.always)
        for place, others in self.sees.items():
            mask[place, :place] = False
            mask[place, list(others)] = True
        return mask


def _others(draw: int) -> list[int]:
    """Four random positions between the fifth and the 124th."""
    draws = torch.Generator().manual_seed(draw)
    return (5 + torch.randperm(119, generator=draws)[:4]).sort().values.tolist()


WHOLE = View(LENGTH + 1)
VIEWS: dict[str, dict[str, View]] = {
    "128": {
        "whole past": WHOLE,
        "last 128": View(128),
        "first 1, last 127": View(127, [0]),
        "first 4, last 124": View(124, range(4)),
        "second, last 127": View(127, [1]),
        "second to fifth, last 124": View(124, range(1, 5)),
        **{f"4 others, last 124, draw {draw}": View(124, _others(draw)) for draw in range(4)},
    },
    "sizes": {
        **{f"last {n}": View(n) for n in (16, 28, 32, 64, 256)},
        **{f"first 1, last {n}": View(n, [0]) for n in (15, 31, 63, 255)},
        "first 4, last 28": View(28, range(4)),
    },
    "alone": {
        "40th, last 127": View(127, [40]),
        "40th alone, last 127": View(127, [40], sees={40: []}),
        "90th, last 127": View(127, [90]),
        "90th alone, last 127": View(127, [90], sees={90: []}),
    },
    "with one other": {
        "40th with the 39th, last 127": View(127, [40], sees={40: [39]}),
        "90th with the 89th, last 127": View(127, [90], sees={90: [89]}),
    },
    "recounted": {
        "first 1, last 127": View(127, [0], recounted=True),
        "first 4, last 124": View(124, range(4), recounted=True),
        "first 4, last 28": View(28, range(4), recounted=True),
    },
}
"""Group → name → what is seen."""


def screen(
    lm: SmolLM, text: str, group: str = "128", front: bool = True, tokens: int = LENGTH
) -> dict[str, dict]:
    """View → {"mean": nats a token, from the 128th on, "by_block": means of 64 tokens, from the text's beginning}.

    Args:
        lm: the model.
        text: one of `TEXTS`.
        group: of `VIEWS`.
        front: whether <|endoftext|> stands before the text and is its first token.
        tokens: how many are read.
    """
    ids, gave = ids_of(lm, text, tokens=tokens, front=front), {}
    for name, view in VIEWS[group].items():
        each = view.losses(lm.model, ids)
        if not front:  # what stands first is asked by nobody
            each = torch.cat([each[:1], each])
        gave[name] = {
            "mean": each[FROM:].mean().item(),
            "by_block": each.view(-1, BLOCK).mean(1).tolist(),
        }
    return gave


def through(
    lm: SmolLM,
    last: int,
    always: Sequence[int] = (0,),
    alone: Sequence[int] = (),
    text: str = "pages",
    tokens: int = 1024,
) -> dict[str, float]:
    """Nats a token, from the 128th on, in a reader's own window, and if the whole past is seen.

    Args:
        lm: the model.
        last: how many of the last tokens are seen, the one that reads included.
        always: positions that are kept beside them; 0 is <|endoftext|>, which stands before the text.
        alone: positions of tokens that may see nobody but themselves.
        text: one of `TEXTS`.
        tokens: how many are read.
    """
    ids = ids_of(lm, text, tokens=tokens)
    views = {
        "loss": View(last, always, sees={place: [] for place in alone}),
        "whole past": WHOLE,
    }
    return {name: v.losses(lm.model, ids)[FROM:].mean().item() for name, v in views.items()}


def rise(of: dict, above: dict, unit: int = 2) -> tuple[float, float]:
    """The difference of two views' means and its standard error, from pairs of blocks.

    Args:
        of, above: what `screen` gives for a view.
        unit: blocks that are taken together, because neighbors in a text are alike.
    """
    blocks = torch.tensor(of["by_block"]) - torch.tensor(above["by_block"])
    blocks = blocks[FROM // BLOCK :]
    units = blocks[: len(blocks) // unit * unit].view(-1, unit).mean(1)
    return blocks.mean().item(), (units.std() / math.sqrt(len(units))).item()


# Why the first token --------------------------------------------------------------------------------


def weight_on_first(lm: SmolLM, text: str) -> dict[str, list[float]]:
    """Mean weights on the first token if the whole past is seen.

    "by_layer": over heads and the queries from the 128th on; "by_block": over heads and layers 12 to 29, for each 64
    queries; "second, by_layer": those on the second token.
    """
    ids = ids_of(lm, text)
    seen = weights_on(lm.model, ids, causal_mask(ids.shape[1] - 1), [0, 1])
    first, second = seen.unbind(-1)  # (layers, queries)
    return {
        "by_layer": first[:, FROM:].mean(1).tolist(),
        "by_block": first[12:].mean(0).view(-1, BLOCK).mean(1).tolist(),
        "second, by_layer": second[:, FROM:].mean(1).tolist(),
    }


def weight_on_kept(lm: SmolLM, text: str) -> dict[str, float]:
    """View → the mean weight on the position that it keeps beside its window.

    The mean is over heads, layers 12 to 29, and the queries from the 256th on, whose window has left it behind.
    """
    ids, gave = ids_of(lm, text), {}
    first = "first 1, last 127"
    for name, view in {first: VIEWS["128"][first], **VIEWS["alone"]}.items():
        seen = weights_on(lm.model, ids, view.mask(ids.shape[1] - 1), view.always)
        gave[name] = seen[12:, 2 * FROM :].mean().item()
    return gave


def weights_on(model: GPT, ids: Tensor, mask: Tensor, keys: Sequence[int]) -> Tensor:
    """Weights on some positions, (layers, n − 1, keys), means over heads, if every layer looks through a mask.

    Args:
        ids: (1, n).
        mask: (n − 1, n − 1), True = may attend.
        keys: the positions.
    """
    seen = []

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor, **_: bool) -> Tensor:
        k, v = shared(q, k, v)
        weights = dot_product_weights(q, k, mask)
        seen.append(weights[0][..., list(keys)].mean(0))
        return weights @ v

    with attending(model, attend):
        losses(model, ids, mask)
    return torch.stack(seen)


# A cache that throws away ---------------------------------------------------------------------------


class Recent(KVCache):
    """A cache of the first tokens and the last ones; it throws away what comes between.

    Args:
        first, last: how many it keeps.

    Attributes:
        length: number of tokens read, so that each keeps its position.
    """

    def __init__(self, first: int, last: int):
        super().__init__()
        self.first, self.last = first, last

    def append(self, keys: Tensor, values: Tensor) -> tuple[Tensor, Tensor]:
        """All keys and values that are kept, after those of one new token, (batch, heads, 1, head_dim), are added."""
        before = self._stored or (keys[..., :0, :], values[..., :0, :])
        pairs = zip(before, (keys, values), strict=True)
        kept = [torch.cat([old, new], dim=-2) for old, new in pairs]
        if kept[0].shape[-2] > self.first + self.last:
            kept = [
                torch.cat([x[..., : self.first, :], x[..., -self.last :, :]], dim=-2) for x in kept
            ]
        self.length += 1
        self._stored = kept[0], kept[1]
        return self._stored


def evicted(lm: SmolLM, text: str = "ferry", tokens: int = 128, last: int = 48) -> dict[str, dict]:
    """Logits of a text read token by token on a cache that throws the oldest away, against a mask in every layer.

    View → {"kept": tokens in the cache, "difference": the largest of a logit, "in float64": the same where all numbers
    have 64 bits}. "whole past" is a cache that throws nothing away: there the difference is mere rounding.
    """
    ids = ids_of(lm, text, tokens=tokens)[:, :-1]
    gave: dict[str, dict] = {}
    for kind, model in (
        ("difference", lm.model),
        ("in float64", copy.deepcopy(lm.model).double()),
    ):
        for name, view, caches in (
            ("whole past", WHOLE, [KVCache() for _ in model.layers]),
            (f"last {last}", View(last), [Recent(0, last) for _ in model.layers]),
            (f"first 1, last {last}", View(last, [0]), [Recent(1, last) for _ in model.layers]),
        ):
            state = TextState(list(caches))
            steps = torch.stack([model.step(ids[:, t], state) for t in range(ids.shape[1])], 1)
            x, mask = model.embedding(ids), view.mask(ids.shape[1])
            for layer in model.layers:
                x = layer(x, mask)
            apart = (steps - model.output(model.norm(x))).abs().max().item()
            kept = caches[0]._filled()[0].shape[-2] if name != "whole past" else caches[0].length
            gave.setdefault(name, {"kept": kept})[kind] = f"{apart:.0e}"
    return gave


# In pieces, and on the cache ------------------------------------------------------------------------


def in_pieces(block: int) -> Attend:
    """Attention that never holds more than (queries, block) scores; Milakov and Gimelshein (2018), Dao et al. (2022).

    It keeps the largest score so far, the sum of the weights, and the sum of the weighted values, and shrinks both sums
    when a larger score comes.
    """

    def attend(q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None, **_: bool) -> Tensor:
        k, v = shared(q, k, v)
        n, m = q.shape[-2], k.shape[-2]
        place = torch.arange(m - n, m)[:, None]
        largest = q.new_full((*q.shape[:-1], 1), -math.inf)
        total, averages = torch.zeros_like(largest), torch.zeros_like(q)
        for start in range(0, m, block):
            keys, values = k[..., start : start + block, :], v[..., start : start + block, :]
            scores = q @ keys.mT / math.sqrt(q.shape[-1])
            later = torch.arange(start, start + keys.shape[-2]) > place
            scores = scores.masked_fill(later, -math.inf)
            now = torch.maximum(largest, scores.amax(-1, keepdim=True))
            shrink, weights = (largest - now).exp(), (scores - now).exp()
            total = total * shrink + weights.sum(-1, keepdim=True)
            averages = averages * shrink + weights @ values
            largest = now
        return averages / total

    return attend


WAYS: dict[str, Attend | None] = {
    "operator": None, "matrix": in_full, "pieces of 64": in_pieces(64), "pieces of 37": in_pieces(37),
}  # fmt: skip
"""Ways to compute attention: PyTorch's operator, the whole matrix, blocks of keys."""


def logits_in_pieces(lm: SmolLM, text: str = "pages", tokens: int = 512) -> dict[str, dict]:
    """Way → how far its logits are from the operator's.

    "difference": the largest; "same best": the share of tokens after which the likeliest is the same. Of the operator:
    "largest logit".
    """
    ids = ids_of(lm, text, tokens=tokens)[:, :-1]
    logits = {}
    for name, attend in WAYS.items():
        with attending(lm.model, attend):
            logits[name] = lm.model(ids)
    whole = logits.pop("operator")
    gave: dict[str, dict] = {"operator": {"largest logit": whole.abs().max().item()}}
    for name, other in logits.items():
        same = (other.argmax(-1) == whole.argmax(-1)).float().mean().item()
        gave[name] = {"difference": f"{(other - whole).abs().max():.0e}", "same best": same}
    return gave


def seconds(f: Callable[[], object], times: int = 3) -> float:
    """The median CPU time of a call."""
    taken = []
    for _ in range(times):
        start = time.process_time()
        f()
        taken.append(time.process_time() - start)
    return statistics.median(taken)


def writing(lm: SmolLM, after: int = 512) -> dict[str, float]:
    """What reading and writing cost: CPU seconds, medians of three, and the cache's bytes a token.

    "read": a token of a text that is read at once; "written": a token on a cache that holds `after` tokens; "written,
    8 texts": one token of each of eight texts at a time; "written without": a token for which the text is read again.
    """
    model = lm.model
    ids = ids_of(lm, "pages", tokens=after)[:, 1:]
    gave: dict[str, float] = {"read": seconds(lambda: model.features(ids)) / after}
    for texts in (1, 2, 4, 8):
        state = model.start()
        model.step(ids.repeat(texts, 1), state)
        new = ids[:, -1].repeat(texts)
        model.step(new, state)  # grows the cache's storage
        name = "written" if texts == 1 else f"written, {texts} texts"
        eight = partial(_write, model, new, state, 8)
        gave[name] = seconds(eight) / 8
        if texts == 1:
            kept = sum(c.keys.numel() + c.values.numel() for c in state.caches)
            gave["bytes a token"] = 4 * kept / state.length
    gave["written without"] = seconds(lambda: model.output(model.features(ids)[:, -1]))
    gave["weights, MB"] = 4e-6 * sum(p.numel() for p in model.parameters())
    return gave


def _write(model: GPT, new: Tensor, state: TextState, count: int) -> None:
    for _ in range(count):
        model.step(new, state)


# Published models -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Config:
    """What a model's cache depends on.

    Attributes:
        layers, kv_heads, head_dim: sizes.
        heads: of queries.
        window: how many tokens a layer sees, if not all.
    """

    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int | None = None

    def cache_bytes(self, tokens: int, bytes_each: int = 2, kv_heads: int | None = None) -> int:
        """Bytes of the keys and values of so many tokens.

        Args:
            tokens: length of the text.
            bytes_each: of a number, 2 for float16 and bfloat16.
            kv_heads: the model's own by default.
        """
        kept = tokens if self.window is None else min(tokens, self.window)
        kv_heads = self.kv_heads if kv_heads is None else kv_heads
        return 2 * self.layers * kv_heads * self.head_dim * bytes_each * kept


CONFIGS = {
    "SmolLM2 135M": Config(30, 9, 3, 64),
    "Llama 2 7B": Config(32, 32, 32, 128),
    "Llama 3.1 8B": Config(32, 32, 8, 128),
    "Mistral 7B": Config(32, 32, 8, 128, window=4096),
    "Falcon 7B": Config(32, 71, 1, 64),
}
"""Published sizes.

Allal et al. (2025); Touvron et al. (2023), "Llama 2"; Grattafiori et al. (2024), "The Llama 3 herd of models", table 3;
Jiang et al. (2023), "Mistral 7B", table 1; Almazrouei et al. (2023), "The Falcon series of open language models".
"""
