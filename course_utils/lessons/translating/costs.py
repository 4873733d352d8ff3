"""What waits for what in a translator: products that can only be computed one after the other."""

import torch
from torch import nn

from course_utils.lessons.self_attention.layers import waiting_products
from course_utils.models.recurrent import AttentionTranslator


def recurrent(sizes: tuple[int, int]) -> AttentionTranslator:
    """The translator of *Bahdanau attention*, untrained, at that chapter's size."""
    return AttentionTranslator(*sizes, embed_dim=64, hidden_dim=64, dropout=0.0)


def waits(model: nn.Module, length: int) -> tuple[int, int]:
    """Products that wait for each other: in training, and in translating with `start` and `step`.

    In translating each word is chosen from the logits of the step before. A choice has no gradient, so the
    next word's embedding is joined to those logits by hand, with a factor of zero.

    Args:
        model: a translator with dropout off; it is left as it was.
        length: number of source tokens and of target tokens.
    """
    source, lens = torch.full((1, length), 5), torch.tensor([length])
    training = waiting_products(model(source, lens, source))
    logits = [torch.zeros(())]
    embedding = model.target_embedding
    handle = embedding.register_forward_hook(lambda module, given, out: out + 0 * logits[-1].sum())
    try:
        state = model.start(source, lens)
        for _ in range(length):
            logits.append(model.step(source[:, 0], state))
    finally:
        handle.remove()
    return training, waiting_products(logits[-1])
