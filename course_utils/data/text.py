"""Texts out of files, tokenization, vocabularies with fixed special tokens, and padding.

Taught in *Bahdanau attention: learning to align*.
"""

import codecs
import re
import unicodedata
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

import torch
from torch import Tensor

from course_utils.arguments import check_positive, refuse_text
from course_utils.files import path_of

SPECIALS = ("<pad>", "<unk>", "<bos>", "<eos>")
PAD, UNK, BOS, EOS = range(4)
"""Ids of the special tokens in every vocabulary.

No word of a text has one of these ids: a word that is spelled `<eos>` is a word, with an id of its own or `UNK`. Only
functions that frame or mask ids write special tokens, such as `Subwords.sentence`, `collate` and `masked_token`.
"""

MASK = len(SPECIALS)
"""Id of `<mask>` in every `Subwords`, after the special tokens."""

DOCUMENTS = {b"{\\rtf": "rich text (RTF)", b"%PDF": "a PDF"}
"""First bytes of files that could be taken for plain text → what they are."""

MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order mark at the start of a file → its encoding; a mark comes before those that it begins with."""

_SPACES = re.compile(r"[\s\u00a0\u202f]+")
_PUNCTUATION = re.compile(
    r"([.,!?;:…¿¡\"«»()“”„‹›〝〞〟―]|—{2,}"
    r"|[。，、；：？！．｡､（）「」『』《》〈〉【】〔〕｢｣]"  # Chinese, Japanese, and full-width Latin
    r"|[।॥؟،؛۔։።፣፤፥፦፧།༎၊။។៕៖])"  # Hindi, Arabic, Urdu, Armenian, Amharic, Tibetan, Burmese, Khmer
)
_SPACELESS = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Japanese and Chinese
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]{3}"  # Thai, Lao, Burmese, Khmer
)
"""Three letters in a row of a script that puts no spaces between words."""

FEW, MANY = 100, 1000
"""Tokens from which on it is said that most occur once: of scripts without spaces, and of any."""


def read_text(path: str | Path, *, most: int | None = None) -> str:
    """The text of a file in the encoding that its first bytes say, in UTF-8, or in Windows' one of western languages.

    Line ends become those of Unix.

    Args:
        path: of the file, as `path_of` reads it.
        most: the number of letters that are taken of a longer file; None takes all.

    Raises:
        ValueError: there is no such file, or it is no plain text, or in another encoding; the message says what to do.
    """
    path = path_of(path)
    if not path.is_file():
        what = "This is a folder" if path.is_dir() else "There is no file"
        raise ValueError(f"{what}: {path.resolve()}. Put in the path of a text file.")
    with open(path, "rb") as file:
        raw = file.read(-1 if most is None else 4 * most)
        more = bool(file.read(1))
    encoding = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "utf-8")
    text: str | None
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(raw, final=not more)
    except UnicodeDecodeError:
        text = _western(raw)
    if document := next((kind for first, kind in DOCUMENTS.items() if raw.startswith(first)), ""):
        raise ValueError(
            f"{path.name} is {document}. Open it in the program that wrote it, save it as plain text (.txt), "
            "and put in the path of that file."
        )
    if text is None or any(text.count(letter) for letter in map(chr, (0, 1, 2, 3, 4, 5, 6))):
        raise ValueError(
            f"{path.name} is no plain text in UTF-8. Open it in the program that wrote it, choose “Save as”, "
            "plain text (.txt) with the encoding UTF-8, and put in the path of that file."
        )
    return text.replace("\r\n", "\n").replace("\r", "\n")[:most]


def _western(raw: bytes) -> str | None:
    """The text of these bytes in Windows' encoding of western languages; None if few letters would be plain ones."""
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return None
    return text if sum(letter > "\x7f" for letter in text) < len(text) / 4 else None


# Tokens -----------------------------------------------------------------------------------------


def normalize(text: str) -> str:
    """The text in lower case and in Unicode's form NFC, with plain spaces and apostrophes and no byte-order mark."""
    lower = text.replace("\ufeff", "").replace("’", "'").lower()
    return _SPACES.sub(" ", unicodedata.normalize("NFC", lower)).strip()


def tokenize(text: str) -> list[str]:
    """The words and punctuation marks of a text; an apostrophe stays in its word (i'm, j'ai).

    Words are what stands between spaces. A language without them, such as Chinese, Japanese or Thai, is better cut into
    letters, `list(normalize(text))`, or into subwords (`data.prose.Subwords`).

    >>> tokenize("Go!")
    ['go', '!']
    """
    return _PUNCTUATION.sub(r" \1 ", normalize(text)).split()


class Vocabulary:
    """A mapping between tokens and ids: special tokens first, then by descending frequency.

    A token of a text that is spelled like a special one, such as `<eos>`, has an id of its own.

    Args:
        sentences: tokenized sentences of the training data.
        min_freq: the smallest count with which a token gets an id; rarer ones become `<unk>`.

    Raises:
        UserWarning: most tokens occur once, as in a language without spaces, so that little can be learned.
        TypeError: `sentences` or one of them is a `str`, which would give a vocabulary of letters.
        ValueError: there are no sentences, or `min_freq` is below 1.
    """

    def __init__(self, sentences: Iterable[Sequence[str]], *, min_freq: int = 1):
        check_positive(min_freq=min_freq)
        refuse_text("sentences", sentences, "a list of tokenized sentences")
        counts: Counter[str] = Counter()
        sentences_of_a_word = 0.0  # more than 0 if they are more than half
        for sentence in sentences:
            refuse_text("a sentence", sentence, "a list of tokens, as from tokenize(sentence),")
            counts.update(sentence)
            sentences_of_a_word += 0.5 if _is_a_word(sentence) else -0.5
        if not counts:
            raise ValueError("sentences is empty; a vocabulary needs training data")
        frequent = [token for token, count in counts.items() if count >= min_freq]
        frequent.sort(key=lambda token: (-counts[token], token))
        self._number(frequent)
        if sentences_of_a_word > 0 or _mostly_once(counts):
            rare = max(counts, key=len)
            warnings.warn(
                f"most tokens occur once, such as {_cut_off(rare)!r}, so little can be learned of them. Does the "
                "language put no spaces between words? Then cut its sentences into letters, with "
                "load_pairs(…, cut=list) or list(sentence), or into subwords, with Subwords(sentences).pieces",
                stacklevel=2,
            )

    def _number(self, words: Iterable[str]) -> None:
        self.tokens = (*SPECIALS, *words)
        self._ids = {word: i for i, word in enumerate(self.tokens) if i >= len(SPECIALS)}

    @classmethod
    def from_tokens(cls, tokens: Sequence[str]) -> "Vocabulary":
        """The vocabulary whose attribute `tokens` is this one, in the order of ids.

        Raises:
            ValueError: the tokens do not begin with the special tokens, or a later one occurs twice.
        """
        words = tokens[len(SPECIALS) :]
        if tuple(tokens[: len(SPECIALS)]) != SPECIALS or len(set(words)) < len(words):
            raise ValueError(
                f"tokens begin with {', '.join(SPECIALS)}, and each word is there once"
            )
        vocabulary = cls.__new__(cls)
        vocabulary._number(words)
        return vocabulary

    def __len__(self) -> int:
        return len(self.tokens)

    def __contains__(self, token: str) -> bool:
        """Whether a token of a text has an id of its own; special tokens are none of a text."""
        return token in self._ids

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} tokens)"

    def encode(self, tokens: Iterable[str]) -> list[int]:
        """The ids of tokens of a text; an unknown one becomes `UNK`, also if it is spelled like a special token."""
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


def _is_a_word(sentence: Sequence[str]) -> bool:
    """Whether a sentence, apart from its marks, is one token in a script without spaces."""
    words = [token for token in sentence if not _PUNCTUATION.fullmatch(token)]
    return len(words) == 1 and bool(_SPACELESS.search(words[0]))


def _mostly_once(counts: Counter[str]) -> bool:
    """Whether more than half of the running tokens occur once: of all, or of those in a script without spaces."""
    spaceless = {token: count for token, count in counts.items() if _SPACELESS.search(token)}
    return any(
        sum(found.values()) >= least and 2 * list(found.values()).count(1) > sum(found.values())
        for found, least in ((counts, MANY), (spaceless, FEW))
    )


def _cut_off(token: str) -> str:
    return token if len(token) <= 20 else token[:20] + "…"


def pad(sequences: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
    """Ids (batch, longest), padded on the right with `PAD`, and lengths (batch,), both int64."""
    lengths = [len(sequence) for sequence in sequences]
    longest = max(lengths)
    padded = [[*sequence, *[PAD] * (longest - len(sequence))] for sequence in sequences]
    return torch.tensor(padded, dtype=torch.long), torch.tensor(lengths)
