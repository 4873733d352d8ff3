"""Recall of pairs: a network of *Attention at length* reads pairs of a key and a value, and is asked for each key."""

from types import SimpleNamespace

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.registry import fetch
from course_utils.kit.comparison import grid
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import load_model
from course_utils.lessons.attention_at_length.blocks import whole
from course_utils.lessons.gpt.own import READER, pieces_of_reader
from course_utils.lessons.real_weights.windows import window
from course_utils.models.language import GPT
from course_utils.recording import record_attention

PAIRS = (4, 8, 16, 32, 64)
"""Numbers of pairs that a network is trained on and asked about."""
SYMBOLS, WIDTH = 128, 64
"""How many keys and how many values there are; the size of a value."""
RATES, SEEDS, STEPS = (0.003, 0.01, 0.03, 0.1, 0.3), range(3), 6000
NAMES = ("Recall", "linear_attention", "pairs", "train")
"""The names of the page that the runs need."""


@torch.no_grad()
def accuracies(chapter: SimpleNamespace, model: nn.Module, seed: int) -> list[float]:
    """Share of the values that a network finds, in 256 texts for each of `PAIRS`."""
    draws, found = torch.Generator().manual_seed(seed), []
    for n in PAIRS:
        keys, values = chapter.pairs(n, 256, draws)
        found.append((model(keys, values).argmax(-1) == values).float().mean().item())
    return found


def in_a_window(n: int, kept: int) -> float:
    """Share of the values that a look-up finds if it keeps the last pairs, up to `kept`, and guesses the others."""
    share = min(1, kept / n)
    return share + (1 - share) / SYMBOLS


def numbers_kept(dim: int, width: int = WIDTH) -> int:
    """Numbers in the state of linear attention, S and z."""
    return dim * width + dim


def pairs_of_same_memory(dim: int, width: int = WIDTH) -> int:
    """How many pairs of a key and a value the numbers of such a state would hold."""
    return numbers_kept(dim, width) // (dim + width)


def signed(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with q · k itself as the weight, of either sign and divided by no sum: q, k (…, n, r), v (…, n, d_v).

    So its state is S alone. The 8 only makes its answers smaller at the start of a training.
    """
    return q @ (k.mT @ v) / 8


def positive(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """`signed` of the page's positive features: linear attention without its division."""
    return signed(F.elu(q) + 1, F.elu(k) + 1, v)


def divided(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Attention with q · k itself as the weight, of either sign, divided by the sum of the weights' absolute values."""
    weights = q @ k.mT
    return weights @ v / weights.abs().sum(-1, keepdim=True)


def _trained(
    chapter: SimpleNamespace, how: str, dim: int, width: int = WIDTH, **settings
) -> tuple[dict, dict]:
    """Result and curves of a training; its accuracies on texts for the choice of a rate, and on others."""
    attend = {
        "softmax": whole,
        "linear": chapter.linear_attention,
        "signed": signed,
        "positive": positive,
        "divided": divided,
    }[how]
    torch.manual_seed(settings["seed"])
    model, curve = chapter.Recall(attend, dim, width), []

    def watch(step: int, model: nn.Module) -> None:
        if step % 1000 == 0:
            curve.append([step, accuracies(chapter, model, seed=7)[-1]])

    chapter.train(model, watch=watch, **settings)
    validation = accuracies(chapter, model, seed=7)
    result = {"validation": sum(validation) / len(validation)}
    result |= zip(map(str, PAIRS), accuracies(chapter, model, seed=8), strict=True)
    return result, {"64 pairs": curve}


SIDES = ({"how": "softmax", "dim": 8}, *({"how": "linear", "dim": dim} for dim in (8, 16, 32)))


@stored(
    cases=[
        *grid(SIDES, RATES, SEEDS),
        *grid(SIDES[3:], [1.0], SEEDS),
        *grid([{"how": "signed", "dim": 16}], (0.001, *RATES[:4]), SEEDS),
        *grid([{"how": "positive", "dim": 16}], RATES[:4], SEEDS),
        *grid([{"how": "divided", "dim": 16}], RATES[:4], SEEDS),
    ],
    chapter=NAMES,
)
def recalled(chapter: SimpleNamespace, *, how: str, dim: int, rate: float, seed: int) -> dict:
    """A network trained on texts of 4 to 64 pairs, with a softmax, linear attention, or without parts of it."""
    result, curves = _trained(chapter, how, dim=dim, steps=STEPS, rate=rate, seed=seed)
    return {"result": result, "curves": curves}


@stored(cases=[{"dim": 8, "width": 8}], rates=RATES[:3], seeds=SEEDS, chapter=NAMES)
def small_pairs(chapter: SimpleNamespace, *, dim: int, width: int, rate: float, seed: int) -> dict:
    """A softmax with keys and values of a few numbers, trained for as many steps as the page's own network."""
    result, _ = _trained(chapter, "softmax", dim, width, steps=1500, rate=rate, seed=seed)
    return {"result": result}


@stored(cases=[{"how": "linear", "dim": 16}], seeds=SEEDS, chapter=NAMES)
def trained_longer(chapter: SimpleNamespace, *, how: str, dim: int, seed: int) -> dict:
    """The same for twice as many steps."""
    result, curves = _trained(chapter, how, dim=dim, steps=2 * STEPS, rate=RATES[3], seed=seed)
    return {"result": result, "curves": curves}


@stored(cases=[{"how": "linear", "dim": 16}], seeds=SEEDS, chapter=NAMES)
def of_64_alone(chapter: SimpleNamespace, *, how: str, dim: int, seed: int) -> dict:
    """The same, trained on texts of 64 pairs alone."""
    result, curves = _trained(
        chapter, how, dim=dim, steps=STEPS, rate=RATES[3], seed=seed, sizes=(64,)
    )
    return {"result": result, "curves": curves}


@stored()
@torch.no_grad()
def small_gpt() -> dict:
    """Loss of the GPT that has read Shakespeare, on 400 texts of 64 tokens from the 33rd on, through two windows.

    "on the first": the largest mean weight of a head on the first token there.
    """
    stored_model = load_model(READER)
    model = GPT(**stored_model.config).eval()
    model.load_state_dict(stored_model.state)
    plays = fetch("tinyshakespeare").read_text(encoding="utf-8")[200_000:400_000]
    ids = pieces_of_reader().encode(plays)[: 400 * 65].view(400, 65)
    asked, n = ids[:, :-1], ids.shape[1] - 1
    views = {"whole past": window(n, n)}
    for size in (8, 16):
        views |= {
            f"last {size}": window(n, size),
            f"first 1, last {size - 1}": window(n, size - 1, [0]),
        }
    result = {}
    for name, mask in views.items():
        x = model.embedding(asked) + model.positions(torch.arange(n))
        for layer in model.layers:
            x = layer(x, mask)
        losses = F.cross_entropy(model.output(model.norm(x)).mT, ids[:, 1:], reduction="none")
        result[name] = losses[:, n // 2 :].mean().item()
    with record_attention(model) as maps:
        model(asked)
    on_first = [weights[:, :, n // 2 :, 0].mean((0, 2)).max().item() for weights in maps.values()]
    return {"result": result | {"on the first": max(on_first)}}
