"""From a line of text to token ids: tokenizing, vocabularies with fixed special tokens, padding.

Taught in *Bahdanau attention: learning to align*.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from course_utils.arguments import check_positive, refuse_text

SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")
PAD, UNK, BOS, EOS = range(4)
"""Ids of the special tokens in every vocabulary."""

MASK = len(SPECIALS)
"""Id of `<mask>` in every set of subwords: it follows the special tokens."""

_SPACES = re.compile(r"[\s\u00a0\u202f]+")
_PUNCTUATION = re.compile(r"([.,!?;:…¿¡\"«»()])")


def normalize(text: str) -> str:
    """Lower case, each letter with its accent as one character, plain spaces and straight apostrophes.

    A byte-order mark, with which some editors begin a file, is left out.
    """
    lower = text.replace("\ufeff", "").replace("’", "'").lower()
    return _SPACES.sub(" ", unicodedata.normalize("NFC", lower)).strip()


def tokenize(text: str) -> list[str]:
    """Split into words and punctuation marks; apostrophes stay inside their word (i'm, j'ai).

    >>> tokenize("Go!")
    ['go', '!']
    """
    return _PUNCTUATION.sub(r" \1 ", normalize(text)).split()


class Vocabulary:
    """Tokens and their ids: the special tokens first, then by falling frequency.

    Args:
        sentences: tokenized sentences, of the *training* data only.
        min_freq: tokens that are rarer become `<unk>`.

    Raises:
        TypeError: `sentences` or one of them is a `str`, which would give a vocabulary of letters.
        ValueError: there are no sentences, or `min_freq` is below 1.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], *, min_freq: int = 1):
        check_positive(min_freq=min_freq)
        refuse_text("sentences", sentences, "a list of tokenized sentences")
        counts: Counter[str] = Counter()
        for sentence in sentences:
            refuse_text("a sentence", sentence, "a list of tokens, as from tokenize(sentence),")
            counts.update(sentence)
        if not counts:
            raise ValueError("sentences is empty; a vocabulary needs training data")
        frequent = [token for token, count in counts.items() if count >= min_freq]
        frequent.sort(key=lambda token: (-counts[token], token))
        self.tokens = (*SPECIALS, *(token for token in frequent if token not in SPECIALS))
        self._ids = {token: index for index, token in enumerate(self.tokens)}

    @classmethod
    def of_tokens(cls, tokens: Sequence[str]) -> "Vocabulary":
        """The vocabulary with these `tokens`, in the order of their ids, as another one gave them.

        Raises:
            ValueError: they do not begin with the special tokens, or one is there twice.
        """
        if tuple(tokens[: len(SPECIALS)]) != SPECIALS or len(set(tokens)) < len(tokens):
            raise ValueError(f"tokens begin with {', '.join(SPECIALS)}, and each is there once")
        vocabulary = cls([tokens])
        vocabulary.tokens = tuple(tokens)
        vocabulary._ids = {token: index for index, token in enumerate(tokens)}
        return vocabulary

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        return token in self._ids

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """Ids; an unknown token becomes `UNK`."""
        return [self._ids.get(token, UNK) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """Tokens up to the first `<eos>`, without padding and `<bos>`.

        Raises:
            ValueError: an id is outside the vocabulary.
        """
        tokens = []
        for index in ids:
            if not 0 <= index < len(self):
                raise ValueError(f"id {index} is outside a vocabulary of {len(self)} tokens")
            if index == EOS:
                break
            if index not in (PAD, BOS):
                tokens.append(self.tokens[index])
        return tokens


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids (batch, longest) filled up with `PAD`, and the lengths (batch,)."""
    lengths = [len(sequence) for sequence in sequences]
    longest = max(lengths)
    padded = [[*sequence, *[PAD] * (longest - len(sequence))] for sequence in sequences]
    return torch.tensor(padded, dtype=torch.long), torch.tensor(lengths)
