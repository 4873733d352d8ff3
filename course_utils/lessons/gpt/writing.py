"""What *GPT*'s exercises build: pieces of a word, and a text written on a cache."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from course_utils.decoding import next_token_probs
from course_utils.runtime import evaluating


def encode_word(word: str, merges: Sequence[tuple[str, str]]) -> list[str]:
    """The pieces of a word, without its end mark, under merges in the order in which they were learned.

    Sennrich, Haddow and Birch (2016), "Neural machine translation of rare words with subword units", section 3.2.
    """
    pieces = [*word, "␣"]
    for left, right in merges:
        place = 0
        while place < len(pieces) - 1:
            if (pieces[place], pieces[place + 1]) == (left, right):
                pieces[place : place + 2] = [left + right]
            place += 1
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
