"""Byte-pair encoding from a list of merges, as `subwords.js` does it in a page."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from course_utils.data.prose import WORD_END
from course_utils.data.text import MASK, UNK, tokenize


class Pieces:
    """The subwords of a stored language model.

    Args:
        vocabularies: `tokens` by id, and `merges`, "a b" for the pair of a and b, in the order in which they were
            learned.
    """

    def __init__(self, vocabularies: Mapping[str, Sequence[str]]):
        self.tokens = list(vocabularies["tokens"])
        self._ranks = {pair: rank for rank, pair in enumerate(vocabularies["merges"])}
        self._ids = {token: index for index, token in enumerate(self.tokens)}

    def pieces(self, word: str) -> list[str]:
        """Of all pairs of neighbors, the one that was learned first is merged next."""
        pieces = [*word, WORD_END]
        while pairs := [f"{a} {b}" for a, b in pairwise(pieces)]:
            first = min(pairs, key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if first not in self._ranks:
                break
            place = pairs.index(first)
            pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
        return pieces

    def encode(self, text: str) -> list[int]:
        """Ids of a text's pieces; an unknown character is `UNK`."""
        words = tokenize(text.replace(WORD_END, " "))
        pieces = [piece for word in words for piece in self.pieces(word)]
        return [self._ids.get(piece, UNK) for piece in pieces]

    def decode(self, ids: Iterable[int]) -> str:
        """Words separated by spaces; special tokens are left out, unknown characters and gaps are not."""
        shown = [index for index in ids if index == UNK or index >= MASK]
        named = (f" {self.tokens[i]} " if i in (UNK, MASK) else self.tokens[i] for i in shown)
        return " ".join("".join(named).replace(WORD_END, " ").split())
