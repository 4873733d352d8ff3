"""The plainest translator: it answers with the translation of the most similar sentence that it has read."""

from collections.abc import Sequence

import torch
from torch import Tensor

from course_utils.data.text import UNK, Vocabulary
from course_utils.data.translation import Pair
from course_utils.kit.runs import stored
from course_utils.lessons.sequence_to_sequence.real_translation import real_pairs
from course_utils.lessons.sequence_to_sequence.small_world import references_of
from course_utils.metrics import bleu


def nearest_translations(train: Sequence[Pair], test: Sequence[Pair]) -> list[str]:
    """The translations of those training sentences that have most words in common with each of the test.

    Words count by how rare they are (the logarithm of the inverse share of sentences that have them), and the
    overlap is divided by both sentences' lengths, as in the cosine of two vectors.
    """
    english = Vocabulary(pair.source for pair in train)
    read = _word_counts(train, english)
    rows, words = read.indices()
    sentences_with = torch.bincount(words, minlength=len(english)).float()
    rarity = (len(train) / sentences_with.clamp(min=1)).log()
    rarity[UNK] = 0.0
    norms = torch.bincount(rows, (read.values() * rarity[words]) ** 2, minlength=len(train))
    test_counts = _word_counts(test, english).to_dense()
    nearest = []
    for counts in (test_counts * rarity**2).split(100):  # as many as fit in memory
        overlap = torch.sparse.mm(read, counts.T) / norms.sqrt().clamp(min=1e-6)[:, None]
        nearest += overlap.argmax(dim=0).tolist()
    return [" ".join(train[row].target) for row in nearest]


def _word_counts(pairs: Sequence[Pair], english: Vocabulary) -> Tensor:
    """How often each source sentence has each word: a sparse matrix (sentences, words)."""
    places = [(row, i) for row, pair in enumerate(pairs) for i in english.encode(pair.source)]
    size = (len(pairs), len(english))
    counts = torch.ones(len(places))
    ones = torch.sparse_coo_tensor(torch.tensor(places).T, counts, size, check_invariants=False)
    return ones.coalesce()  # adds up those of one place


@stored(cases=[{}])
def look_up() -> dict[str, dict[str, float]]:
    """BLEU of the plainest translator, which looks up the nearest sentence that it has read."""
    train, validation, test = real_pairs()
    scores = {}
    for name, pairs in (("val_bleu", validation), ("test_bleu", test)):
        references = references_of(pairs)
        asked = list({" ".join(pair.source): pair for pair in pairs}.values())
        translations = nearest_translations(train, asked)
        scores[name] = bleu(translations, list(references.values()))
    return {"result": scores}
