"""Maps of words over words, read off a translator with attention."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from course_utils.cache import record_attention
from course_utils.data.text import Vocabulary
from course_utils.data.translation import Pair, collate
from course_utils.runtime import evaluating


@torch.no_grad()
def word_maps(
    model: nn.Module,
    pairs: Sequence[Pair],
    source_vocab: Vocabulary,
    target_vocab: Vocabulary,
    *,
    batch_size: int = 128,
) -> list[Tensor]:
    """For each pair a map (target words, source words) of weights, in eval mode, on the CPU.

    The decoder is given the words of the target one after the other. The row of `<eos>` is left out.
    So is the column of `<eos>`, which is no word: what remains of a row is normalized again.

    Raises:
        ValueError: `model` has not exactly one attention module.
    """
    device = next(model.parameters()).device
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].source))
    result: list[Tensor] = [torch.empty(0)] * len(pairs)
    with evaluating(model):
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            batch = collate(
                [
                    (source_vocab.encode(pairs[row].source), target_vocab.encode(pairs[row].target))
                    for row in rows
                ]
            ).to(device)
            with record_attention(model) as maps:
                model(batch.source, batch.source_lens, batch.target_in)
            if len(maps) != 1:
                raise ValueError(f"{type(model).__name__} has {len(maps)} attention modules, not 1")
            (weights,) = maps.values()
            for row, whole in zip(rows, weights.cpu(), strict=True):
                words = whole[: len(pairs[row].target), : len(pairs[row].source)]
                result[row] = words / words.sum(dim=1, keepdim=True)
    return result
