"""Stored runs of the further page of *Real weights*: the logit lens, longer copies, mistakes that raise no error."""

import contextlib
from collections.abc import Iterator
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.prose import story_text
from course_utils.interventions import record_activations
from course_utils.kit.runs import stored
from course_utils.lessons.real_weights.experiments import COUNTRIES
from course_utils.lessons.real_weights.smollm import BASE, SIZES, SmolLM, chat, reference

LAYERS = SIZES["num_layers"]
CAPITALS = COUNTRIES["well known"] | COUNTRIES["another city is larger"]
PROMPTS = (
    "<|endoftext|>The capital of {} is",
    "<|endoftext|>The currency of {} is",
    "<|endoftext|>The people of {} are",
    "<|endoftext|>The food in {} is",
    "<|endoftext|>Q: What is the capital of {}? A: It is",
    "The capital of {} is",
)


def _capitals(lm: SmolLM, prompt: str) -> tuple[Tensor, Tensor]:
    """Ids of a prompt for each country, (countries, n), and the first token of each capital, (countries,)."""
    first = torch.cat([lm.encode(" " + capital)[:, 0] for capital in CAPITALS.values()])
    return lm.encode(*(prompt.format(country) for country in CAPITALS)), first


def rank(scores: Tensor, wanted: Tensor) -> Tensor:
    """Ranks, from 1, of the wanted tokens (rows,) in rows of scores (rows, vocabulary): (rows,)."""
    return (scores > scores.gather(1, wanted[:, None])).sum(1) + 1


# The logit lens -----------------------------------------------------------------------------------


def lens(lm: SmolLM, x: Tensor, *, centered: bool = False) -> Tensor:
    """Logits (texts, vocabulary) that a stream (texts, embed_dim) would give if no layer came after it.

    nostalgebraist (2020), "Interpreting GPT: the logit lens". If it is centered, each logit's mean over the texts is
    subtracted.
    """
    logits = lm.model.output(lm.model.norm(x))
    return logits - logits.mean(0) if centered else logits


def streams(lm: SmolLM, prompt: str) -> Tensor:
    """(layers, countries, embed_dim): the residual stream after each layer, at the last token of a prompt."""
    ids, _ = _capitals(lm, prompt)
    with torch.inference_mode(), record_activations(lm.model) as run:
        lm.model(ids)
    return torch.stack([run[f"layers.{layer}.residual"][:, -1] for layer in range(LAYERS)])


def matched(x: Tensor, y: Tensor) -> int:
    """Number of rows of x (texts, embed_dim) whose largest cosine is that with y's row of the same number.

    Of both, the mean over the texts is subtracted first.
    """
    x, y = (F.normalize(each - each.mean(0), dim=-1) for each in (x, y))
    return int(((x @ y.T).argmax(1) == torch.arange(len(x))).sum())


def preferred(logits: Tensor, wanted: Tensor) -> int:
    """Number of rows whose wanted token has the largest logit of all the tokens that some row wants; wanted (rows,)."""
    names = wanted.unique()
    return int((names[logits[:, names].argmax(-1)] == wanted).sum())


def read(lm: SmolLM, x: Tensor, *, centered: bool) -> dict[str, float]:
    """Scores of what a lens reads in streams (countries, embed_dim), of the capital and of the country itself.

    For each its median rank, and for how many countries the right one is `preferred`.
    """
    logits = lens(lm, x, centered=centered)
    _, capital = _capitals(lm, PROMPTS[0])
    names = {"capital": capital, "country": countries(lm)}
    seen = {name: rank(logits, token).median().item() for name, token in names.items()}
    return seen | {f"right {name}": preferred(logits, token) for name, token in names.items()}


def countries(lm: SmolLM) -> Tensor:
    """The first token of each country, (countries,)."""
    return lm.encode(*(" " + country for country in CAPITALS))[:, 0]


@stored(cases=[{"prompt": prompt, "other": PROMPTS[prompt == PROMPTS[0]]} for prompt in PROMPTS])
def logit_lens(*, prompt: str, other: str) -> dict[str, Any]:
    """What both lenses `read` after each layer at the last token of a prompt.

    "matched" is the number of countries whose vector is nearest to that of the same country in the other prompt.
    """
    lm = reference()
    ids, wanted = _capitals(lm, prompt)
    x, y = streams(lm, prompt), streams(lm, other)
    curves: dict[str, list] = {"matched": []}
    with torch.inference_mode():
        answered = int((lm.model(ids)[:, -1].argmax(-1) == wanted).sum())
        for layer in range(LAYERS):
            curves["matched"].append([layer, matched(x[layer], y[layer])])
            for name, centered in (("plain", False), ("centered", True)):
                for what, value in read(lm, x[layer], centered=centered).items():
                    curves.setdefault(f"{name} {what}", []).append([layer, value])
    after = {name: curve[23][1] for name, curve in curves.items()}
    return {"result": {"answered": answered, **after}, "curves": curves}


@stored()
def bare_rows() -> dict[str, dict]:
    """What the centered lens `read`s in the countries' rows of the embedding, before any layer."""
    lm = reference()
    with torch.inference_mode():
        return {"result": read(lm, lm.model.embedding(countries(lm)), centered=True)}


# Longer copies ------------------------------------------------------------------------------------

TEXTS = {5: 40, 9: 40, 20: 24, 40: 16, 100: 8, 200: 8, 400: 4}
"""Tokens of a block → number of texts."""
TOKENS = {"all": (17, 49_152), "frequent": (300, 3_000), "rare": (40_000, 42_700)}
"""Kind of tokens → range of their ids; byte-pair encoding gives small ids to frequent pieces."""


@stored(
    cases=[
        *(
            {"tokens": tokens, "block": block, "times": 2 if block > 200 else 3}
            for tokens in ("all", "frequent")
            for block in TEXTS
        ),
        *({"tokens": "rare", "block": block, "times": 2} for block in (40, 200)),
    ]
)
def longer_copies(*, tokens: str, block: int, times: int) -> dict[str, dict]:
    """The share of a block's tokens that are copied rightly when it comes for the second, and for the third time.

    The block's first token, which nothing announces, doesn't count. Mean, least and most over the texts.
    """
    lm, draws = reference(), torch.Generator().manual_seed(3)
    ids = torch.randint(*TOKENS[tokens], (TEXTS[block], block), generator=draws)
    texts = torch.cat([torch.zeros(len(ids), 1, dtype=torch.long), *[ids] * times], dim=1)
    with torch.inference_mode():
        right = torch.cat(
            [lm.model(rows[:, :-1]).argmax(-1) == rows[:, 1:] for rows in texts.split(2)]
        )
    result: dict[str, float] = {"texts": len(ids)}
    for name, start in (("second", block), ("third", 2 * block))[: times - 1]:
        share = right[:, start + 1 : start + block].float().mean(1)
        result |= {
            name: share.mean().item(),
            f"{name}_least": share.min().item(),
            f"{name}_most": share.max().item(),
        }
    return {"result": result}


# Mistakes that raise no error ---------------------------------------------------------------------

MISTAKES = ("none", "base", "halves", "epsilon")


@contextlib.contextmanager
def mistaken(lm: SmolLM, mistake: str) -> Iterator[None]:
    """A block in which the model has a mistake of loading.

    Args:
        lm: the model, which is whole again afterwards.
        mistake: "base", 10,000 instead of 100,000; "halves", the rows of queries and keys as in Hugging Face's files,
            for a rotation of features j and j + d/2 instead of neighbors; "epsilon", 10⁻⁶ instead of 10⁻⁵; or "none".
    """
    norms = [part for part in lm.model.modules() if isinstance(part, torch.nn.RMSNorm)]
    turned = [p for n, p in lm.model.named_parameters() if "query_proj" in n or "key_proj" in n]
    kept = [p.data for p in turned]
    try:
        if mistake == "base":
            lm.model.rotary_base = BASE / 10
        elif mistake == "halves":
            size = lm.model.rotary_dim
            for p in turned:
                p.data = p.data.view(-1, size // 2, 2, p.shape[1]).transpose(1, 2).reshape(p.shape)
        elif mistake == "epsilon":
            for norm in norms:
                norm.eps = 1e-6
        yield
    finally:
        lm.model.rotary_base = BASE
        for norm in norms:
            norm.eps = 1e-5
        for p, data in zip(turned, kept, strict=True):
            p.data = data


@stored(cases=[{"mistake": mistake} for mistake in MISTAKES])
def silent(*, mistake: str) -> dict[str, Any]:
    """Scores of the model with a mistake: P(Paris), thirty capitals, the loss on our story, and its logits there.

    "asked": the first line of the answer to a question in the chat template.
    """
    lm = reference()
    story = torch.cat(
        [torch.zeros(1, 1, dtype=torch.long), lm.encode(story_text())[:, :600]], dim=1
    )
    ids, wanted = _capitals(lm, PROMPTS[0])
    paris = lm.encode(" Paris").item()
    with torch.inference_mode():
        right = lm.model(story[:, :-1])
        with mistaken(lm, mistake):
            logits, last = lm.model(story[:, :-1]), lm.model(ids)[:, -1]
            first = lm.model(lm.encode("The capital of France is"))[0, -1].softmax(-1)
            asked = lm.write(chat("What is the capital of Japan?"), max_new=10)
    return {
        "result": {
            "paris": first[paris].item(),
            "capitals": (last.argmax(-1) == wanted).sum().item(),
            "loss": F.cross_entropy(logits.mT, story[:, 1:]).item(),
            "moved": (logits - right).abs().max().item(),
            "largest": right.abs().max().item(),
        },
        "examples": [{"says": lm.decode([first.argmax()]), "asked": asked.strip().split("\n")[0]}],
    }
