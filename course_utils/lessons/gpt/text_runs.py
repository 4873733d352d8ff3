"""Counted n-grams, and a GPT on Tiny Shakespeare, character by character, at the size that nanoGPT has for a CPU.

Four layers, four heads, 128 features, windows of 64 characters; the first nine tenths of the text are for training and
the last tenth for validation, as there. nanoGPT says a validation loss of 1.88 after 2,000 steps of 12 windows; this
run takes more steps, with a larger rate. Both were set before it, and there is one seed.
"""

import argparse
import hashlib
import inspect
import math
import platform
import time
from functools import cache, partial
from pathlib import Path
from pydoc_data import topics

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.data.loading import Loader
from course_utils.data.prose import TextBatch, TextLoader, cut_windows, next_token, story_text
from course_utils.data.registry import DataUnavailable, fetch
from course_utils.decoding import next_token_probs
from course_utils.kit.runs import StoredRun, stored, stored_run
from course_utils.kit.stored_model import StoredModel, load_model
from course_utils.lessons.gpt.ngrams import kneser_ney_losses, kneser_ney_probs
from course_utils.lessons.gpt.own import READER, Pieces, pieces_of_reader
from course_utils.lessons.gpt.training import evaluate, train, windows
from course_utils.lessons.sequence_to_sequence.translator_training import curves_of
from course_utils.models.language import GPT
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import language_model_loss
from course_utils.train.trainer import Trainer

# GPT on whole Shakespeare -------------------------------------------------------------------------

LENGTH = 64  # characters of a window
SIZE = {"embed_dim": 128, "num_heads": 4, "num_layers": 4, "max_len": LENGTH, "dropout": 0.0}
STEPS, BATCH, RATE, WARMUP = 3000, 12, 3e-3, 100
SAMPLED = (0, 100, 300, 1000, 2000, STEPS)  # steps at which it writes
EVERY = 500  # steps between two validations
ORDERS = 7  # of the longest n-grams counted


def characters() -> tuple[str, Tensor, Tensor]:
    """The alphabet in order, and the ids of the training and of the validation text."""
    text = fetch("tinyshakespeare").read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(text)))
    stream = ids(text, alphabet)
    cut = int(0.9 * len(stream))
    return alphabet, stream[:cut], stream[cut:]


@stored(cases=[{"steps": STEPS, "batch": BATCH, "seed": 0}], times=("seconds",))
def shakespeare(*, steps: int, batch: int, seed: int) -> dict:
    """Losses by step, CPU seconds of training alone, and what it writes at several steps.

    The validation loss counts all characters of windows one behind the other, the first of which have little
    to read. `val_loss_read` counts those with half a window or more before them, as n-grams have it.
    """
    alphabet, training, validation = characters()
    seed_everything(seed)
    model = GPT(len(alphabet), **SIZE)
    curves: dict[str, list] = {"train_loss": [], "val_loss": []}
    texts: list[dict] = []
    spent = [0.0, time.process_time()]  # CPU seconds of training, and when it went on

    def watch(step: int, loss: float) -> None:
        spent[0] += time.process_time() - spent[1]
        if step % EVERY == 0 or step == steps:
            curves["val_loss"].append([step, round(evaluate(model, validation, LENGTH), 4)])
            if step:
                curves["train_loss"].append([step, round(loss, 4)])
        if step in SAMPLED:
            texts.append({"step": step, "text": write(model, alphabet, 240)})
        spent[1] = time.process_time()

    batches = partial(windows, training, LENGTH, batch)
    train(model, batches, steps=steps, lr=RATE, warmup=WARMUP, seed=seed, watch=watch)
    result = {
        "val_loss": curves["val_loss"][-1][1],
        "best_val_loss": min(loss for _, loss in curves["val_loss"]),
        "val_loss_read": evaluate(model, validation, LENGTH, read=LENGTH // 2),
        "seconds": round(spent[0]),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    return {"result": result, "curves": curves, "examples": texts}


@stored(cases=[{}])
def shakespeare_kneser_ney() -> dict:
    """Validation loss of counting with modified Kneser–Ney smoothing, by the order: the number to beat."""
    alphabet, training, validation = characters()
    losses = kneser_ney_losses(training.tolist(), validation.tolist(), ORDERS + 1, len(alphabet))
    return {"result": {str(order): loss for order, loss in enumerate(losses, 1)}}


# A text of one's own ------------------------------------------------------------------------------

OWN = {"story": 5_000, "topics": 26_000, "argparse": 100_000}
"""The characters taken of three texts: the course's story, pages of Python's documentation, and code."""

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
def started() -> tuple[str, dict[str, Tensor]]:
    """A GPT of the chapter's size that has read Shakespeare: its alphabet, which has that of the three texts, too."""
    plays = fetch("tinyshakespeare").read_text(encoding="utf-8")
    alphabet = "".join(sorted(set(plays).union(*map(own_text, OWN))))
    model, stream = own_model(alphabet), ids(plays, alphabet)
    train(model, partial(windows, stream, LENGTH, 32), steps=1200, lr=1e-2)
    return alphabet, model.state_dict()


def ids(text: str, alphabet: str) -> Tensor:
    """(characters,) numbers of the characters of a text."""
    number = {character: index for index, character in enumerate(alphabet)}
    return torch.tensor([number[character] for character in text])


def own_model(alphabet: str) -> GPT:
    """The chapter's GPT for these characters, untrained."""
    torch.manual_seed(0)
    sizes = {"embed_dim": 64, "num_heads": 4, "num_layers": 2, "max_len": LENGTH}
    return GPT(len(alphabet), **sizes, dropout=0.0)


def own_parts(name: str, alphabet: str) -> tuple[Tensor, Tensor]:
    """The first nine tenths of a text, and the rest with half a window before it: whole half windows."""
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
    """Loss on the last tenth of a text, with a GPT that has the chapter's size and is kept at its best.

    It begins with random weights, or with those that have read Shakespeare's plays (`started`). Each character is
    asked once, with half a window or more before it.
    """
    alphabet = started()[0] if start == "Shakespeare" else "".join(sorted(set(own_text(text))))
    model, (read, unread) = own_model(alphabet), own_parts(text, alphabet)
    if start == "Shakespeare":
        model.load_state_dict(started()[1])
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
    """The least loss of counting on the same characters, in a text alone or after Shakespeare's plays."""
    plays = fetch("tinyshakespeare").read_text(encoding="utf-8") if before == "Shakespeare" else ""
    alphabet = "".join(sorted(set(plays + own_text(text))))
    read, unread = own_parts(text, alphabet)
    counts = ids(plays + own_text(text)[: len(read)], alphabet).tolist()
    asked = unread[LENGTH // 2 + 1 :].tolist()
    losses = kneser_ney_losses(counts, asked, ORDERS, len(alphabet))
    return {"result": {"Kneser–Ney": min(losses)}}


@stored(cases=[{"text": text} for text in ("story", "topics")])
def own_texts_mixed(*, text: str) -> dict:
    """The least loss of two tables of counts, the text's own and Shakespeare's, with their probabilities mixed.

    The length of the n-grams of each and the weight of the text's own are the best on the unread tenth.
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

PIECES = 1024  # tokens of the stored GPT
OWN_SIZE = {"embed_dim": 64, "num_heads": 4, "num_layers": 2, "max_len": LENGTH}
OWN_STEPS = {"story": 120, "topics": 240, "argparse": 240}
OWN_RATES = {
    "nothing": (1e-3, 3e-3, 1e-2, 3e-2),
    "Shakespeare": (1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2),
}


@stored(cases=[{"steps": 2500, "seed": 0}], saves={READER: {}})
def reader(*, steps: int, seed: int) -> dict:
    """A GPT of the chapter's size that has read Shakespeare's plays in pieces of words, stored for other texts."""
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
    """Loss a letter on the last tenth of a text, at the best step, of a GPT that reads pieces of words.

    It begins with random weights or with the stored ones (`reader`), and reads the same pieces in both cases. It is
    asked for the letters that `own_texts_counted` asks counting for.
    """
    pieces, whole = pieces_of_reader(), own_text(text)
    cut, half = int(0.9 * len(whole)), LENGTH // 2
    asked = whole[cut : cut + (len(whole) - cut) // half * half]
    read, unread = pieces.encode(whole[:cut]), pieces.encode(asked)
    model = _of_pieces(len(pieces), seed)
    if start == "Shakespeare":
        model.load_state_dict(load_model(READER).state)
    curve = []

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
    """The loss of all tokens of `unread` together, each with half a window or more before it."""
    half = LENGTH // 2
    extra = -len(unread) % half  # asked as well, to fill the windows, and left out
    both = torch.cat([read[-half - 1 - extra :], unread]).unfold(0, LENGTH + 1, half)
    with evaluating(model):
        logits = model(both[:, :-1])[:, half:]
    losses = F.cross_entropy(logits.mT, both[:, half + 1 :], reduction="none")
    return losses.flatten()[extra:].sum().item()


@torch.no_grad()
def write(model: GPT, alphabet: str, count: int) -> str:
    """`count` characters behind a line's end; where the table of positions ends, its last half is read again."""
    generator = torch.Generator().manual_seed(1)
    ids = [alphabet.index("\n")]
    with evaluating(model):
        state, new = model.start(), torch.tensor([ids])
        for _ in range(count):
            if state.length == LENGTH:
                state, new = model.start(), torch.tensor([ids[-LENGTH // 2 :]])
            probs = next_token_probs(model.step(new, state), temperature=0.8)
            new = torch.multinomial(probs, 1, generator=generator)
            ids.append(int(new))
    return "".join(alphabet[index] for index in ids[1:])


# What the chapter shows -------------------------------------------------------------------------


def real_run() -> StoredRun:
    """The stored run on Tiny Shakespeare."""
    return stored_run("gpt", "shakespeare")


# At full size, for a GPU ------------------------------------------------------------------------


class Windows(Loader):
    """Batches of windows from random places of a text; a pass has so many `steps`."""

    def __init__(self, stream: Tensor, length: int, *, steps: int, batch_size: int, seed: int):
        super().__init__(steps * batch_size, batch_size=batch_size, shuffle=True, seed=seed)
        self.stream, self.length = stream, length

    def _batch(self, rows: list[int], generator: torch.Generator) -> TextBatch:
        starts = torch.randint(len(self.stream) - self.length, (len(rows), 1), generator=generator)
        both = self.stream[starts + torch.arange(self.length + 1)]
        return next_token(both, torch.full((len(rows),), self.length + 1), generator)


@stored(
    cases=[{"steps": 5000, "width": 384, "layers": 6, "length": 256, "seed": 0}],
    minutes=2,
    quick={"steps": 2, "width": 12, "layers": 1, "length": 16},
)
def shakespeare_at_full_size(
    *, steps: int, width: int, layers: int, length: int, seed: int, checkpoint: Path | None = None
) -> dict:
    """At nanoGPT's size for a GPU: 6 layers, 6 heads, 384 features; the rate falls to a tenth on half a cosine."""
    alphabet, training, validation = characters()
    seed_everything(seed)
    sizes = {"embed_dim": width, "num_heads": 6, "num_layers": layers, "max_len": length}
    model = GPT(len(alphabet), **sizes, dropout=0.2)
    per_epoch = min(250, steps)  # between two validations

    def schedule(step: int) -> float:
        falling = (1 + math.cos(math.pi * step / steps)) / 2
        return min(step / 100, 0.1 + 0.9 * falling)

    history = Trainer(
        language_model_loss(),
        epochs=steps // per_epoch,
        lr=1e-3,
        schedule=schedule,
        weight_decay=0.1,
        betas=(0.9, 0.99),
        seed=seed,
        checkpoint=checkpoint,
        graphs=True,
    ).fit(
        model,
        Windows(training, length, steps=per_epoch, batch_size=64, seed=seed),
        TextLoader(
            cut_windows(validation.tolist(), length), next_token, batch_size=64, shuffle=False
        ),
        resume=checkpoint is not None,
    )
    losses = [row["val_loss"] for row in history.rows]
    result = {
        "val_loss": losses[-1],
        "best_val_loss": min(losses),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    curves = curves_of(history.rows, "train_loss", "val_loss", over="step")
    return {"result": result, "curves": curves}
