"""Tokenization, vocabularies with fixed special tokens, and padding.

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
"""Id of `<mask>` in every `Subwords`, after the special tokens."""

_SPACES = re.compile(r"[\s\u00a0\u202f]+")
_PUNCTUATION = re.compile(r"([.,!?;:…¿¡\"«»()])")


def normalize(text: str) -> str:
    """The text in lower case and in Unicode's form NFC, with plain spaces and apostrophes and no byte-order mark."""
    lower = text.replace("\ufeff", "").replace("’", "'").lower()
    return _SPACES.sub(" ", unicodedata.normalize("NFC", lower)).strip()


def tokenize(text: str) -> list[str]:
    """The words and punctuation marks of a text; an apostrophe stays in its word (i'm, j'ai).

    >>> tokenize("Go!")
    ['go', '!']
    """
    return _PUNCTUATION.sub(r" \1 ", normalize(text)).split()


class Vocabulary:
    """A mapping between tokens and ids: special tokens first, then by descending frequency.

    Args:
        sentences: tokenized sentences of the training data.
        min_freq: the smallest count with which a token gets an id; rarer ones become `<unk>`.

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
    def from_tokens(cls, tokens: Sequence[str]) -> "Vocabulary":
        """The vocabulary whose attribute `tokens` is this one, in the order of ids.

        Raises:
            ValueError: the tokens do not begin with the special tokens, or one occurs twice.
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
        """The ids of tokens; an unknown token becomes `UNK`."""
        return [self._ids.get(token, UNK) for token in tokens]

    def decode(self, ids: Iterable[int]) -> list[str]:
        """The tokens of ids up to the first `<eos>`, without `<pad>` and `<bos>`.

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
    """Ids (batch, longest), padded on the right with `PAD`, and lengths (batch,), both int64."""
    lengths = [len(sequence) for sequence in sequences]
    longest = max(lengths)
    padded = [[*sequence, *[PAD] * (longest - len(sequence))] for sequence in sequences]
    return torch.tensor(padded, dtype=torch.long), torch.tensor(lengths)
