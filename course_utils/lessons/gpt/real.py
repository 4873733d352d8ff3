"""Counted n-grams, and a GPT on Tiny Shakespeare, character by character, at the size that nanoGPT has for a CPU.

Four layers, four heads, 128 features, windows of 64 characters; the first nine tenths of the text are for training and
the last tenth for validation, as there. nanoGPT says a validation loss of 1.88 after 2,000 steps of 12 windows; this
run takes more steps, with a larger rate. Both were set before it, and there is one seed.
"""

import math
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from course_utils.data.loading import Loader
from course_utils.data.prose import Subwords, TextBatch, TextLoader, cut_windows, next_token
from course_utils.data.registry import fetch
from course_utils.data.text import EOS
from course_utils.decoding import next_token_probs
from course_utils.kit.runs import StoredRun, stored, stored_runs
from course_utils.lessons.gpt.training import evaluate, train, windows
from course_utils.models.language import GPT
from course_utils.runtime import evaluating, seed_everything
from course_utils.train.losses import language_model_loss
from course_utils.train.trainer import Trainer


def ngram_losses(
    train: Sequence[int], test: Sequence[int], order: int, vocab_size: int
) -> list[float]:
    """Mean loss on `test` with n-grams of 1, 2, …, `order` tokens, in nats per token.

    With c(h, w) how often w follows the history h, c(h) how often h is followed at all and u(h) by how many different
    tokens, P_n(w | h) = (c(h, w) + u(h) P_(n−1)(w)) / (c(h) + u(h)); P_0 is uniform. Witten and Bell (1991), "The
    zero-frequency problem".
    """
    probs, losses = [1 / vocab_size] * len(test), []
    for n in range(1, order + 1):
        grams = Counter(zip(*(train[start:] for start in range(n)), strict=False))
        total: Counter[tuple] = Counter()
        kinds: Counter[tuple] = Counter()
        for gram, count in grams.items():
            total[gram[:-1]] += count
            kinds[gram[:-1]] += 1
        for position in range(n - 1, len(test)):
            gram = tuple(test[position - n + 1 : position + 1])
            if h := total[gram[:-1]]:
                u = kinds[gram[:-1]]
                probs[position] = (grams[gram] + u * probs[position]) / (h + u)
        losses.append(-sum(map(math.log, probs)) / len(probs))
    return losses


def kneser_ney_losses(
    train: Sequence[int], test: Sequence[int], order: int, vocab_size: int
) -> list[float]:
    """Mean loss on `test` with n-grams of 1, 2, …, `order` tokens, smoothed as Kneser and Ney do, in nats per token.

    Each count gives up a discount D, by whether it is 1, 2 or more, and the shorter history shares out what was given
    up: P_n(w | h) = (c(h, w) − D(c(h, w)) + d(h) P_(n−1)(w)) / c(h). All but the longest n-grams count not how often
    they stand there, but after how many different tokens. Chen and Goodman (1999), "An empirical study of smoothing
    techniques for language modeling", section 3.
    """
    grams = [Counter(zip(*(train[i:] for i in range(n)), strict=False)) for n in range(order + 1)]
    kinds = [Counter(gram[1:] for gram in longer) for longer in grams[1:]]  # of tokens before
    lower, losses = [1 / vocab_size] * len(test), []
    for n in range(1, order + 1):
        probs = _leaning(grams[n], n, test, lower)
        losses.append(-sum(map(math.log, probs)) / len(probs))
        lower = _leaning(kinds[n], n, test, lower) if n < order else lower
    return losses


def _leaning(
    counts: Counter[tuple], n: int, test: Sequence[int], lower: list[float]
) -> list[float]:
    """The probability of each token of `test`, where the n-grams lean on those of n − 1 tokens."""
    once, twice, thrice, often = (sum(c == k for c in counts.values()) for k in (1, 2, 3, 4))
    y = once / (once + 2 * twice)
    discount = [1 - 2 * y * twice / once, 2 - 3 * y * thrice / twice, 3 - 4 * y * often / thrice]
    total: Counter[tuple] = Counter()
    given: Counter[tuple] = Counter()
    for gram, count in counts.items():
        total[gram[:-1]] += count
        given[gram[:-1]] += discount[min(count, 3) - 1]
    probs = list(lower)
    for position in range(n - 1, len(test)):
        gram = tuple(test[position - n + 1 : position + 1])
        if whole := total[gram[:-1]]:
            count = counts[gram]
            discounted = count - discount[min(count, 3) - 1] if count else 0.0
            probs[position] = (discounted + given[gram[:-1]] * lower[position]) / whole
    return probs


# Losses with different tokens, brought to bits per character of the text --------------------------

ORDER = 8  # of the longest n-grams
HELD_OUT = 10  # every tenth sentence


def compare(sentences: Sequence[str], sizes: Sequence[int]) -> Any:
    """A table of the best n-grams on characters, and on subwords of each size.

    Args:
        sentences: every tenth is held out, the others are counted.
        sizes: of the vocabularies of subwords.

    Returns:
        A pandas.DataFrame, a row for each kind of token: the best n, loss and perplexity per token, bits per character.
    """
    import pandas as pd

    unread = sentences[::HELD_OUT]
    read = [text for index, text in enumerate(sentences) if index % HELD_OUT]
    letters = sum(len(text) + 1 for text in unread)  # and the sentence's end
    rows = {}
    for size in (0, *sizes):
        name, encode, vocab_size = _tokens(read, size)
        streams = [[i for text in texts for i in [*encode(text), EOS]] for texts in (read, unread)]
        losses = ngram_losses(*streams, ORDER, vocab_size)
        best = min(losses)
        rows[name] = {
            "best n": losses.index(best) + 1,
            "loss per token": best,
            "perplexity": math.exp(best),
            "bits per character": best * len(streams[1]) / letters / math.log(2),
        }
    return pd.DataFrame(rows).T.astype({"best n": int})


def _tokens(read: Sequence[str], size: int) -> tuple[str, Any, int]:
    """The name of a kind of token, how a text is encoded, and how many tokens there are; 0 stands for characters."""
    if size:
        subwords = Subwords(read, size=size)
        return f"{size} subwords", subwords.encode, len(subwords)
    alphabet = {letter: 5 + index for index, letter in enumerate(sorted(set("".join(read))))}
    return "characters", lambda text: [alphabet.get(c, 1) for c in text], 5 + len(alphabet)


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
    number = {character: index for index, character in enumerate(alphabet)}
    stream = torch.tensor([number[character] for character in text])
    return alphabet, *stream.split([cut := int(0.9 * len(stream)), len(stream) - cut])


@stored(cases=[{"steps": STEPS, "batch": BATCH, "seed": 0}])
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

    train(
        model,
        lambda generator: windows(training, LENGTH, batch, generator),
        steps=steps,
        lr=RATE,
        warmup=WARMUP,
        seed=seed,
        watch=watch,
    )
    result = {
        "val_loss": curves["val_loss"][-1][1],
        "best_val_loss": min(loss for _, loss in curves["val_loss"]),
        "val_loss_read": round(evaluate(model, validation, LENGTH, read=LENGTH // 2), 4),
        "seconds": round(spent[0]),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }
    return {"result": result, "curves": curves, "examples": texts}


@stored(cases=[{}])
def shakespeare_ngrams() -> dict:
    """Validation loss of counting, for n-grams of 1 to `ORDERS` characters."""
    alphabet, training, validation = characters()
    losses = ngram_losses(training.tolist(), validation.tolist(), ORDERS, len(alphabet))
    return {"result": {str(order): round(loss, 4) for order, loss in enumerate(losses, 1)}}


@torch.no_grad()
def write(model: GPT, alphabet: str, count: int, *, temperature: float = 0.8) -> str:
    """`count` characters behind a line's end; where the table of positions ends, its last half is read again."""
    generator = torch.Generator().manual_seed(1)
    ids = [alphabet.index("\n")]
    with evaluating(model):
        state, new = model.start(), torch.tensor([ids])
        for _ in range(count):
            if state.length == LENGTH:
                state, new = model.start(), torch.tensor([ids[-LENGTH // 2 :]])
            probs = next_token_probs(model.step(new, state), temperature=temperature)
            new = torch.multinomial(probs, 1, generator=generator)
            ids.append(int(new))
    return "".join(alphabet[index] for index in ids[1:])


# What the chapter shows -------------------------------------------------------------------------


def real_run() -> StoredRun:
    """The stored run on Tiny Shakespeare."""
    (run,) = stored_runs("gpt", "shakespeare")
    return run


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
    minutes=5,
    quick={"steps": 2, "width": 12, "layers": 1, "length": 16},
)
def full_size(
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
    return {
        "result": {name: round(value, 4) for name, value in result.items()},
        "curves": {
            name: [[row["step"], round(row[name], 4)] for row in history.rows]
            for name in ("train_loss", "val_loss")
        },
    }
