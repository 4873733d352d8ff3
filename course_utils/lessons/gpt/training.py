"""The training of *GPT* for its stored runs, as the chapter's own loop, and what its exercises build.

The page compares with these functions, and goes on with them where an exercise is not solved.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.decoding import next_token_probs
from course_utils.runtime import evaluating
from course_utils.train.steps import take_steps


def windows(
    stream: Tensor, length: int, count: int, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """`count` windows from random places of a text: tokens and targets, each (count, length).

    Args:
        stream: (number of tokens,) ids of the whole text.
        length: tokens of a window; the target of each is the token behind it.
        count: how many windows.
        generator: draws the places.
    """
    starts = torch.randint(len(stream) - length, (count, 1), generator=generator)
    both = stream[starts + torch.arange(length + 1)]
    return both[:, :-1], both[:, 1:]


def rate(step: int, steps: int, warmup: int) -> float:
    """The share of the largest rate at a step, from 0 on: it rises over `warmup` steps, and falls on half a cosine."""
    return min((step + 1) / warmup, 1.0) * (1 + math.cos(math.pi * step / steps)) / 2


def train(
    model: nn.Module,
    batch: Callable[[torch.Generator], tuple[Tensor, Tensor]],
    *,
    steps: int,
    lr: float,
    warmup: int = 30,
    seed: int = 0,
    watch: Callable[[int, float], None] | None = None,
) -> None:
    """Fit a language model in place to batches of tokens and targets, with AdamW.

    Args:
        model: tokens (batch, length) → logits (batch, length, vocabulary).
        batch: draws tokens and targets, with the generator that it is given.
        steps, lr, warmup: how many steps, the largest rate, and the steps until it is reached.
        seed: of the batches.
        watch: called before the first step (with 0 and NaN) and after each with its number and loss.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(model.parameters(), betas=(0.9, 0.99), weight_decay=0.1)

    def loss() -> Tensor:
        tokens, targets = batch(generator)
        return F.cross_entropy(model(tokens).flatten(0, 1), targets.flatten())

    if watch:
        watch(0, math.nan)
    take_steps(
        optimizer,
        loss,
        steps=steps,
        rate=lambda step: lr * rate(step - 1, steps, warmup),
        after_step=watch,
    )


@torch.no_grad()
def evaluate(model: nn.Module, stream: Tensor, length: int, *, read: int = 0) -> float:
    """Mean loss per token of a text, in windows one behind the other.

    Args:
        model: as in `train`.
        stream: (number of tokens,) ids.
        length: tokens of a window.
        read: so many tokens at a window's start are read and not counted; the windows overlap by them.
    """
    starts = torch.arange(0, len(stream) - length, length - read)[:, None]
    both = stream[starts + torch.arange(length + 1)]
    total = 0.0
    with evaluating(model):
        for rows in both.split(256):
            logits = model(rows[:, :-1])[:, read:]
            targets = rows[:, 1 + read :]
            total += F.cross_entropy(logits.mT, targets, reduction="sum").item()
    return total / (len(starts) * (length - read))


# What the exercises build -------------------------------------------------------------------------


def encode_word(word: str, merges: Sequence[tuple[str, str]]) -> list[str]:
    """The pieces of a word, without its end mark, under merges in the order in which they were learned.

    Sennrich, Haddow and Birch (2016), "Neural machine translation of rare words with subword units", section 3.2.
    """
    pieces = [*word, "␣"]
    for left, right in merges:
        index = 0
        while index < len(pieces) - 1:
            if (pieces[index], pieces[index + 1]) == (left, right):
                pieces[index : index + 2] = [left + right]
            index += 1
    return pieces


@torch.no_grad()
def generate(
    model: Any,
    prompt: Tensor,
    steps: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    generator: torch.Generator | None = None,
) -> Tensor:
    """Prompt and `steps` drawn tokens, (batch, length + steps); each is read once, on a cache.

    Args:
        model: with `start()` and `step(tokens, state)`, as `GPT` has them; read in eval mode.
        prompt: (batch, length) ids.
        steps: how many tokens are drawn.
        temperature, top_k: as in `next_token_probs`.
        generator: where the draws come from.
    """
    with evaluating(model):
        state, text, new = model.start(), prompt, prompt
        for _ in range(steps):
            logits = model.step(new, state)
            probs = next_token_probs(logits, temperature=temperature, top_k=top_k)
            new = torch.multinomial(probs, 1, generator=generator)
            text = torch.cat([text, new], dim=1)
    return text
