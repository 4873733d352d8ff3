"""Stored runs of *GPT* on other texts than Shakespeare's plays: GPTs that have read the plays or nothing, and n-grams.

The texts come with the course or with Python, so that everybody has them.
"""

import argparse
import hashlib
import inspect
import platform
from functools import cache, partial
from pydoc_data import topics

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.prose import story_text
from course_utils.data.registry import DataUnavailable, fetch
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel, load_model
from course_utils.lessons.gpt.ngrams import kneser_ney_losses, kneser_ney_probs
from course_utils.lessons.gpt.own import READER, Pieces, pieces_of_reader
from course_utils.lessons.gpt.text_runs import LENGTH, ORDERS, ids
from course_utils.lessons.gpt.training import evaluate, train, windows
from course_utils.models.language import GPT
from course_utils.runtime import evaluating

OWN = {"story": 5_000, "topics": 26_000, "argparse": 100_000}
"""Text → characters taken of it: the course's story, pages of Python's documentation, and code."""

EDITION = "3.11.7"

SHA256 = {"topics": "aa07c809f8ccc737", "argparse": "dc1eba8adfdf6159"}
"""First digits of the checksums of the texts that come with Python, in the edition that the stored runs read."""


def own_text(name: str) -> str:
    """The first characters of a text that comes with the course or with Python, as in `OWN`.

    Raises:
        DataUnavailable: this Python has the text in another edition, whose losses would be other ones.
    """
    if name == "story":
        return story_text()
    module = {"topics": topics, "argparse": argparse}[name]
    text = "\n".join(module.topics.values()) if name == "topics" else inspect.getsource(module)
    text = text[: OWN[name]]
    if not hashlib.sha256(text.encode()).hexdigest().startswith(SHA256[name]):
        raise DataUnavailable(
            f"The stored runs read the text {name!r} of Python {EDITION}, and Python {platform.python_version()} has"
            f" another edition: make these runs with Python {EDITION}."
        )
    return text


@cache
def read_shakespeare() -> tuple[str, dict[str, Tensor]]:
    """The alphabet and the weights of a GPT of the chapter's size that has read Shakespeare's plays.

    The alphabet has the characters of the three texts, too.
    """
    plays = fetch("tinyshakespeare").read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(plays).union(*map(own_text, OWN))))
    model, stream = own_model(alphabet), ids(plays, alphabet)
    train(model, partial(windows, stream, LENGTH, 32), steps=1200, lr=1e-2)
    return alphabet, model.state_dict()


def own_model(alphabet: str) -> GPT:
    """The chapter's GPT for these characters, untrained."""
    torch.manual_seed(0)
    sizes = {"embed_dim": 64, "num_heads": 4, "num_layers": 2, "max_len": LENGTH}
    return GPT(len(alphabet), **sizes, dropout=0.0)


def own_parts(name: str, alphabet: str) -> tuple[Tensor, Tensor]:
    """The first nine tenths of a text, and the rest in whole half windows, with half a window before it."""
    whole, half = ids(own_text(name), alphabet), LENGTH // 2
    cut = int(0.9 * len(whole))
    asked = (len(whole) - cut) // half * half
    return whole[:cut], whole[cut - half - 1 : cut + asked]


@stored(
    cases=[
        {"text": text, "start": start, "lr": lr, "steps": steps}
        for text, start, lr, steps in (
            ("story", "nothing", 3e-3, 300),
            ("story", "nothing", 1e-2, 300),
            ("story", "Shakespeare", 3e-3, 300),
            ("story", "Shakespeare", 1e-2, 300),
            ("topics", "nothing", 1e-2, 600),
            ("topics", "Shakespeare", 3e-3, 600),
            ("argparse", "nothing", 1e-2, 1000),
            ("argparse", "nothing", 1e-2, 3000),
            ("argparse", "Shakespeare", 3e-3, 1000),
        )
    ],
)
def own_texts(*, text: str, start: str, lr: float, steps: int) -> dict:
    """The least loss on the last tenth of a text during a training of a GPT of the chapter's size.

    It begins with random weights, or with those that have read Shakespeare's plays. The loss of each character is
    measured once, with half a window or more before it.
    """
    alphabet = (
        read_shakespeare()[0] if start == "Shakespeare" else "".join(sorted(set(own_text(text))))
    )
    model, (read, unread) = own_model(alphabet), own_parts(text, alphabet)
    if start == "Shakespeare":
        model.load_state_dict(read_shakespeare()[1])
    curve = []

    def watch(step: int, _: float) -> None:
        if step % (steps // 20) == 0:
            curve.append([step, round(evaluate(model, unread, LENGTH, read=LENGTH // 2), 4)])

    train(model, partial(windows, read, LENGTH, 16), steps=steps, lr=lr, watch=watch)
    return {"result": {"loss": min(loss for _, loss in curve)}, "curves": {"held_out": curve}}


@stored(
    cases=[
        {"text": text, "before": before} for text in OWN for before in ("nothing", "Shakespeare")
    ],
)
def own_texts_counted(*, text: str, before: str) -> dict:
    """The least loss of n-grams on the same characters, counted in a text alone or also in Shakespeare's plays."""
    plays = fetch("tinyshakespeare").read_text(encoding="utf-8") if before == "Shakespeare" else ""
    alphabet = "".join(sorted(set(plays + own_text(text))))
    read, unread = own_parts(text, alphabet)
    counts = ids(plays + own_text(text)[: len(read)], alphabet).tolist()
    asked = unread[LENGTH // 2 + 1 :].tolist()
    losses = kneser_ney_losses(counts, asked, ORDERS, len(alphabet))
    return {"result": {"Kneser–Ney": min(losses)}}


@stored(cases=[{"text": text} for text in ("story", "topics")])
def own_texts_mixed(*, text: str) -> dict:
    """The least loss of a mixture of two n-gram models, one of the text and one of Shakespeare's plays.

    The length of the n-grams of each and the weight of the text's own are the best on the validation text.
    """
    plays = fetch("tinyshakespeare").read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(plays + own_text(text))))
    read, unread = own_parts(text, alphabet)
    asked = unread[LENGTH // 2 + 1 :].tolist()
    own, other = (
        torch.tensor(kneser_ney_probs(counts.tolist(), asked, ORDERS, len(alphabet)))
        for counts in (read, ids(plays, alphabet))
    )
    weights = torch.arange(0, 1.01, 0.05)[:, None, None, None]
    losses = -(weights * own[:, None] + (1 - weights) * other).log().mean(dim=-1)
    weight, n, m = map(int, torch.unravel_index(losses.argmin(), losses.shape))
    result = {"loss": losses.min().item(), "weight": weights[weight].item(), "n": n + 1, "m": m + 1}
    return {"result": result}


# The same texts in pieces of words ----------------------------------------------------------------

PIECES = 1024
"""Tokens of the stored GPT."""

OWN_SIZE = {"embed_dim": 64, "num_heads": 4, "num_layers": 2, "max_len": LENGTH}

OWN_STEPS = {"story": 120, "topics": 240, "argparse": 240}

OWN_RATES = {
    "nothing": (1e-3, 3e-3, 1e-2, 3e-2),
    "Shakespeare": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
}


@stored(cases=[{"steps": 2500, "seed": 0}], saves={READER: {}})
def reader(*, steps: int, seed: int) -> dict:
    """The loss of a GPT that has read Shakespeare's plays in pieces of words; it is stored, for other texts."""
    plays = fetch("tinyshakespeare").read_text(encoding="utf-8")
    pieces = Pieces.learned(plays, PIECES)
    stream, model = pieces.encode(plays), _of_pieces(len(pieces), seed)
    train(model, partial(windows, stream, LENGTH, 32), steps=steps, lr=1e-2, seed=seed)
    vocabularies = {"tokens": pieces.tokens, "merges": pieces.merges}
    config = {"vocab_size": len(pieces)} | OWN_SIZE
    read = evaluate(model, stream[:20_000], LENGTH, read=LENGTH // 2)
    result = {"read_loss": read, "letters per piece": len(plays) / len(stream)}
    return {"result": result, "models": {READER: StoredModel.of(model, config, vocabularies)}}


@stored(
    cases=[
        {"text": text, "start": start, "steps": steps, "rate": rate, "seed": seed}
        for text, steps in OWN_STEPS.items()
        for start, rates in OWN_RATES.items()
        for rate in rates
        for seed in range(3)
    ],
)
def own_texts_in_pieces(*, text: str, start: str, steps: int, rate: float, seed: int) -> dict:
    """The least loss per letter on the last tenth of a text, during a training of a GPT that reads pieces of words.

    It begins with random weights or with the stored ones (`reader`), and reads the same pieces in both cases. The
    letters whose loss is measured are those of `own_texts_counted`.
    """
    pieces, whole = pieces_of_reader(), own_text(text)
    cut, half = int(0.9 * len(whole)), LENGTH // 2
    asked = whole[cut : cut + (len(whole) - cut) // half * half]
    read, unread = pieces.encode(whole[:cut]), pieces.encode(asked)
    model = _of_pieces(len(pieces), seed)
    if start == "Shakespeare":
        model.load_state_dict(load_model(READER).state)
    curve: list[list[float]] = []

    def watch(step: int, _: float) -> None:
        if step % (steps // 12) == 0:
            curve.append([step, round(loss_of_all(model, read, unread) / len(asked), 4)])

    train(model, partial(windows, read, LENGTH, 16), steps=steps, lr=rate, seed=seed, watch=watch)
    return {"result": {"loss": min(loss for _, loss in curve)}, "curves": {"held_out": curve}}


def _of_pieces(vocab_size: int, seed: int) -> GPT:
    torch.manual_seed(seed)
    return GPT(vocab_size, **OWN_SIZE, dropout=0.0)


@torch.no_grad()
def loss_of_all(model: GPT, read: Tensor, unread: Tensor) -> float:
    """The sum of the losses of all tokens of the validation text, each with half a window or more before it."""
    half = LENGTH // 2
    extra = -len(unread) % half  # tokens that fill the first window; their losses are left out
    both = torch.cat([read[-half - 1 - extra :], unread]).unfold(0, LENGTH + 1, half)
    with evaluating(model):
        logits = model(both[:, :-1])[:, half:]
    losses = F.cross_entropy(logits.mT, both[:, half + 1 :], reduction="none")
    return losses.flatten()[extra:].sum().item()
