"""Read alignments off a translator's attention: maps of words over words, and links.

Above: `models` and `data`. Below: `metrics`, which scores the links. Taught in chapter 04.
"""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from course_utils.attention import record_attention
from course_utils.data.text import Vocabulary
from course_utils.data.translation import Pair, collate
from course_utils.metrics import Links


@torch.no_grad()
def word_maps(
    model: nn.Module,
    pairs: Sequence[Pair],
    source_vocab: Vocabulary,
    target_vocab: Vocabulary,
    *,
    batch_size: int = 128,
) -> list[Tensor]:
    """For each pair a map (target words, source words) of weights, in eval mode.

    The decoder is given the words of the target one after the other. The row of `<eos>` is left out.
    So is the column of `<eos>`, which is no word: what remains of a row is normalized again.

    Raises:
        ValueError: `model` has not exactly one attention module.
    """
    order = sorted(range(len(pairs)), key=lambda index: len(pairs[index].source))
    result: list[Tensor] = [torch.empty(0)] * len(pairs)
    mode = model.training
    model.eval()
    try:
        for begin in range(0, len(order), batch_size):
            rows = order[begin : begin + batch_size]
            batch = collate(
                [
                    (source_vocab.encode(pairs[row].source), target_vocab.encode(pairs[row].target))
                    for row in rows
                ]
            )
            with record_attention(model) as maps:
                model(batch.source, batch.source_lens, batch.target_in)
            if len(maps) != 1:
                raise ValueError(f"{type(model).__name__} has {len(maps)} attention modules, not 1")
            (weights,) = maps.values()
            for row, whole in zip(rows, weights, strict=True):
                words = whole[: len(pairs[row].target), : len(pairs[row].source)]
                result[row] = words / words.sum(dim=1, keepdim=True)
    finally:
        model.train(mode)
    return result


def links_both_ways(weights: Tensor) -> Links:
    """Links (source, target) of a map (target, source), so that no word is left without one.

    Each target word is linked to the source word it looks at most. Each source word that none of them
    chose is linked to the target word that looks at it most.
    """
    links = {(int(source), target) for target, source in enumerate(weights.argmax(dim=1))}
    chosen = {source for source, _ in links}
    for source, target in enumerate(weights.argmax(dim=0).tolist()):
        if source not in chosen:
            links.add((source, target))
    return frozenset(links)
