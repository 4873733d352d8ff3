"""What the last word alone tells about the next one: the bound that a language model has to beat."""

import torch
from torch import Tensor


def from_the_last_word(text: Tensor) -> float:
    """The least mean loss, over the words of `text`, of one who knows only the last word: H(next | last) in nats.

    Args:
        text: (sentences, n) tokens; those below 0 are past the end.
    """
    last, after = text[:, :-1], text[:, 1:]
    told = after >= 0
    size = int(text.max()) + 1
    pairs = torch.bincount(last[told] * size + after[told], minlength=size**2).view(size, size)
    chances = pairs / pairs.sum(1, keepdim=True)
    return -torch.special.xlogy(pairs, chances)[pairs > 0].sum().item() / pairs.sum().item()
