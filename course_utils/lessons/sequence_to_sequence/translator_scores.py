"""What a translator has learned: BLEU by source sentence, translations with their references, and attention maps."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.data.text import Vocabulary
from course_utils.data.translation import Pair
from course_utils.decoding import translate
from course_utils.lessons.sequence_to_sequence.small_world import (
    Vocabularies,
    batch_of,
    references_of,
)
from course_utils.metrics import bleu
from course_utils.recording import record_attention
from course_utils.runtime import evaluating

MAX_LEN = 20
"""The most tokens of a translation."""
MAPS_AT_A_TIME = 128


def readable_pairs(pairs: Sequence[Pair], vocabularies: Vocabularies) -> list[Pair]:
    """The pairs whose source has at least one known word."""
    return [pair for pair in pairs if any(word in vocabularies[0] for word in pair.source)]


def bleu_by_source(
    model: nn.Module,
    pairs: Sequence[Pair],
    vocabularies: Vocabularies,
    *,
    max_len: int = MAX_LEN,
) -> float:
    """BLEU of greedy translations; each source sentence is translated once, and has all its references."""
    references = references_of(pairs)
    translations = translate(model, list(references), *vocabularies, max_len=max_len)
    return bleu(translations, list(references.values()))


def translated_examples(
    model: nn.Module,
    pairs: Sequence[Pair],
    vocabularies: Vocabularies,
    count: int,
    *,
    max_len: int = MAX_LEN,
) -> list[dict[str, Any]]:
    """The first `count` source sentences, each with "source", what the model has "said", and its "references"."""
    references = references_of(pairs)
    sources = list(references)[:count]
    translations = translate(model, sources, *vocabularies, max_len=max_len)
    examples = []
    for source, said in zip(sources, translations, strict=True):
        examples.append({"source": source, "said": said, "references": references[source]})
    return examples


@torch.no_grad()
def word_maps(
    model: nn.Module, pairs: Sequence[Pair], source_vocab: Vocabulary, target_vocab: Vocabulary
) -> list[Tensor]:
    """The attention weights of each pair, a map (target words, source words), on the CPU.

    The decoder is given the words of the target one after the other. The row of `<eos>` is left out. So is the column
    of `<eos>`, which is no word; what remains of a row is normalized again.

    Args:
        model: a translator with one attention module; it is in eval mode meanwhile.
        pairs: sentences of words that both vocabularies know.
        source_vocab, target_vocab: the vocabularies that the model was trained with.
    """
    device = next(model.parameters()).device
    by_length = sorted(range(len(pairs)), key=lambda index: len(pairs[index].source))
    result: list[Tensor] = [torch.empty(0)] * len(pairs)
    with evaluating(model):
        for begin in range(0, len(pairs), MAPS_AT_A_TIME):
            rows = by_length[begin : begin + MAPS_AT_A_TIME]
            batch = batch_of([pairs[row] for row in rows], (source_vocab, target_vocab)).to(device)
            with record_attention(model) as maps:
                model(batch.source, batch.source_lens, batch.target_in)
            (weights,) = maps.values()
            for row, whole in zip(rows, weights.cpu(), strict=True):
                words = whole[: len(pairs[row].target), : len(pairs[row].source)]
                result[row] = words / words.sum(dim=1, keepdim=True)
    return result
