"""Texts out of files, tokenization, vocabularies with fixed special tokens, and padding.

Taught in *Bahdanau attention: learning to align*.
"""

import codecs
import re
import unicodedata
import warnings
import zipfile
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

PACKED = (
    b"PK\3\4",
    b"\x1f\x8b",
    b"BZh",
    b"\xfd7zXZ\0",
    b"7z\xbc\xaf",
    b"Rar!",
    b"\x28\xb5\x2f\xfd",
)
"""First bytes of archives and compressed files."""

MARKS = {
    codecs.BOM_UTF8: "utf-8-sig",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
"""Byte-order mark at the start of a file → its encoding; a mark comes before those that it begins with."""

_INVISIBLE = re.compile(r"[\u00ad\u061c\u200b\u200e\u200f\u202a-\u202e\u2060\u2066-\u2069\ufeff]+")
"""Soft hyphens, spaces of no width, and marks of the direction of writing: how a word is set, and none of it.

Joiners (U+200C and U+200D) stay: they are spelling in Persian and Hindi, and make one emoji of several.
"""

_SPACES = re.compile(r"[\s\u00a0\u202f]+")
_PUNCTUATION = re.compile(
    r"([.,!?;:…¿¡\"«»()“”„‹›〝〞〟―]|—{2,}"
    r"|[。，、；：？！．｡､（）「」『』《》〈〉【】〔〕｢｣]"  # Chinese, Japanese, and full-width Latin
    r"|[।॥؟،؛۔։።፣፤፥፦፧།༎၊။។៕៖])"  # Hindi, Arabic, Urdu, Armenian, Amharic, Tibetan, Burmese, Khmer
)
SPACELESS = re.compile(
    "[\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"  # Japanese and Chinese
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff]"  # Thai, Lao, Burmese, Khmer
)
"""A letter of a script that puts no spaces between words."""

_SPACELESS = re.compile(SPACELESS.pattern + "{3}")

FEW, MANY = 100, 1000
"""Tokens from which on it is said that most occur once: of scripts without spaces, and of any."""


def read_text(path: str | Path, *, most: int | None = None) -> str:
    """The text of a file in the encoding that its first bytes say, in UTF-8, or in Windows' one of western languages.

    Line ends become those of Unix.

    Args:
        path: of the file, as `path_of` reads it.
        most: the number of letters that are taken of a longer file; None takes all.

    Raises:
        UserWarning: some bytes are wrong in a file that is in UTF-8 otherwise, and "�" stands for them; or the
            encoding can't be known, and Windows' western one is assumed. The message shows where, or which words.
        ValueError: there is no such file, or it is no plain text, or in another encoding; the message says what to do.
    """
    path = path_of(path)
    if not path.is_file():
        what = "This is a folder" if path.is_dir() else "There is no file"
        raise ValueError(f"{what}: {path.resolve()}. Put in the path of a text file.")
    with open(path, "rb") as file:
        raw = file.read(-1 if most is None else 4 * most)
        more = bool(file.read(1))
    if document := next((kind for first, kind in DOCUMENTS.items() if raw.startswith(first)), ""):
        raise ValueError(
            f"{path.name} is {document}. Open it in the program that wrote it, save it as plain text (.txt), "
            "and put in the path of that file."
        )
    if (inside := _packed(path, raw)) is not None:
        raise ValueError(
            f"{path.name} is an archive. Unpack it, and put in the path of a text file in it{inside}."
        )
    encoding = next((name for mark, name in MARKS.items() if raw.startswith(mark)), "utf-8")
    text: str | None
    said = ""
    try:
        text = codecs.getincrementaldecoder(encoding)().decode(raw, final=not more)
    except UnicodeDecodeError:
        text, said = _mended(raw, encoding, final=not more)
    if text is None or any(text.count(letter) for letter in map(chr, (0, 1, 2, 3, 4, 5, 6))):
        raise ValueError(
            f"{path.name} is no plain text in UTF-8. Open it in the program that wrote it, choose “Save as”, "
            "plain text (.txt) with the encoding UTF-8, and put in the path of that file."
        )
    if said:
        warnings.warn(f"{path.name} {said}", stacklevel=2)
    return _unix(text)[:most]


def _unix(text: str) -> str:
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _packed(path: Path, raw: bytes) -> str | None:
    """Words that name a file in an archive, "" if none can be named; None if these bytes are of no archive."""
    if zipfile.is_zipfile(path):
        try:
            with zipfile.ZipFile(path) as archive:
                names = [name for name in archive.namelist() if not name.endswith("/")]
        except zipfile.BadZipFile:
            return ""
        if {"[Content_Types].xml", "mimetype"} & set(names):
            return None  # a document of Word, Excel or LibreOffice
        largest = max(names, key=lambda name: archive.getinfo(name).file_size, default="")
        return f", such as {largest}" * bool(largest)
    endings = (".zip", ".gz", ".tgz", ".bz2", ".xz", ".7z", ".rar", ".zst")
    known = raw.startswith(PACKED[1:]) or (
        raw.startswith(PACKED[0]) and path.name.lower().endswith(endings)
    )
    return "" if known or raw[257:262] == b"ustar" else None


def _mended(raw: bytes, encoding: str, *, final: bool) -> tuple[str | None, str]:
    """The text of bytes that are not all in UTF-8, and what is to be said of it; None if it can't be read.

    Letters of several bytes hardly ever come about by chance. So where there are as many of them as wrong bytes, the
    file is in UTF-8 and damaged. Else nothing tells one language's letters from another's: no library does on a few
    lines either, so that Windows' western encoding is assumed, which is said with words in which the reader sees it.
    """
    text = codecs.getincrementaldecoder("utf-8")("replace").decode(raw, final=final)
    wrong = text.count("\ufffd") - raw.count("\ufffd".encode())
    if encoding == "utf-8-sig" or sum(letter > "\x7f" for letter in text) >= 2 * wrong:
        text = _unix(text.removeprefix("\ufeff"))
        before = text[: text.index("\ufffd")].split("\n")
        line, column = len(before), len(before[-1]) + 1
        shown = text.split("\n")[line - 1][max(0, column - 20) : column + 20].strip()
        places = "place" if wrong == 1 else "places"
        return text, (
            f"is in UTF-8, but in {wrong} {places} its bytes are no letter, and “�” stands there; "
            f"the first is in line {line}, column {column} ({shown!r}). Is the file cut off, or "
            "was a part of it pasted from elsewhere? Correct it in an editor, and save it as UTF-8."
        )
    if encoding != "utf-8":
        return None, ""
    try:
        text = raw.decode("cp1252")
    except UnicodeDecodeError:
        return None, ""
    if sum(letter > "\x7f" for letter in text) >= len(text) / 4:
        return None, ""
    words = [word for word in re.split(r"[\s,;.!?]+", text) if not word.isascii()]
    words.sort(key=lambda word: not any(letter.isalpha() > letter.isascii() for letter in word))
    seen = ", ".join(dict.fromkeys(_cut_off(word) for word in words[:3]))
    return text, (
        "is not in UTF-8, and nothing in it says which encoding it is in; the western one of Windows (cp1252) was "
        f"assumed, and gives {seen}. Is a letter wrong there, as in “¿ó³ty” for “żółty”? Then open the file in the "
        "program that wrote it, save it as UTF-8, and read it again."
    )


# Tokens -----------------------------------------------------------------------------------------


def normalize(text: str) -> str:
    """The text in lower case and in Unicode's form NFC, with plain spaces and apostrophes and no invisible marks."""
    return _plain(_INVISIBLE.sub("", text.replace("İ", "i")))


def _plain(text: str) -> str:
    lower = text.replace("\ufeff", "").replace("’", "'").lower()
    return _SPACES.sub(" ", unicodedata.normalize("NFC", lower)).strip()


def tokenize(text: str) -> list[str]:
    """The words and punctuation marks of a text; an apostrophe stays in its word (i'm, j'ai).

    Words are what stands between spaces. A language without them, such as Chinese, Japanese or Thai, is better cut into
    letters, `list(normalize(text))`, or into subwords (`data.prose.Subwords`).

    >>> tokenize("Go!")
    ['go', '!']
    """
    return _cut(normalize(text))


def tokenize_with_marks(text: str) -> list[str]:
    """As `tokenize`, with invisible marks left in words: so the archives were cut when the stored models learned."""
    return _cut(_plain(text))


def _cut(text: str) -> list[str]:
    return _PUNCTUATION.sub(r" \1 ", text).split()


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
