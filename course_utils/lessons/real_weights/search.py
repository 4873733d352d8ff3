"""Search in the course's own pages by shared words, by MiniLM's vectors, and by both: stored runs of *Real weights*.

What was recorded depends on the pages as they were on that day, so it isn't made again when they change.
"""

import math
import re
import tomllib
from collections import Counter
from collections.abc import Sequence
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from course_utils.files import LESSONS, ROOT
from course_utils.kit.runs import stored
from course_utils.lessons.real_weights.meaning import encoder, words

OWN_WORDS = """
03 | Why do we divide by the square root of the size?
04 | How do I stop a model from peeking at later words?
13 11 | What makes writing fast, since old words need not be read again?
08 | Several attentions at the same time
15 | A picture cut into squares
09 | How does the network know the order of the words?
14 | Teach with few labels
12 | My training explodes at the beginning
17 | making a picture out of noise
04 | what if a sentence is shorter than the others in the batch?
02 | why is the average of all neighbors bad at the border?
14 | Guess hidden words to learn a language
06 | Which word of the source belongs to the word being written?
11 | Keep several unfinished translations and go on with the best ones
05 11 | How good is a translation, as a number?
05 | The long memory of a network that reads one word after another is too small
07 | a word looks at all other words of its own sentence
02 | predict a noisy curve from nearby points
13 | write a text letter by letter, one after the other
12 | slowly raise the size of the steps at the start of training
10 | shortcuts around each part so that a deep network can learn
03 | which of two ways of comparing two vectors is better?
01 | look up a word in a dictionary, but softly
15 | a photo is classified by a network for language
16 | every pixel asks every other pixel
17 | the text tells what the picture should show
09 | sine waves that mark places
00 | what I need to install and how the course works
"""
"""Numbers of chapters, and a question about them in the words of somebody who doesn't know the book's."""

Section = tuple[str, str, str]
"""The page, the section's title, and its text or a piece of it."""


class BM25:
    """Scores of texts for a query, by the words that they share; rare words count more.

    Robertson and Zaragoza (2009), "The probabilistic relevance framework: BM25 and beyond".

    Args:
        texts: that are searched.
        k: how much a word counts that a text has several times.
        b: how much long texts are held back, from 0 to 1.
    """

    def __init__(self, texts: Sequence[str], k: float = 1.5, b: float = 0.75):
        self.bags = [Counter(words(text)) for text in texts]
        sizes = [sum(bag.values()) for bag in self.bags]
        mean = sum(sizes) / len(sizes)
        self.shift = [k * (1 - b + b * size / mean) for size in sizes]
        found = Counter(word for bag in self.bags for word in bag)
        self.rare = {w: math.log(1 + (len(texts) - n + 0.5) / (n + 0.5)) for w, n in found.items()}
        self.k = k

    def __call__(self, query: str) -> Tensor:
        """The score of each text, (texts,)."""
        query_words = set(words(query))
        scores = []
        for bag, shift in zip(self.bags, self.shift, strict=True):
            shared = query_words & bag.keys()
            scores.append(
                sum(self.rare[w] * bag[w] * (self.k + 1) / (bag[w] + shift) for w in shared)
            )
        return torch.tensor(scores, dtype=torch.float32)


SOURCES = ROOT / "notebooks" / "source"
UNTAUGHT = ("References", "Quiz", "Take-aways")
"""Titles of sections that teach nothing."""


def sections() -> list[Section]:
    """The sections of the first 18 chapters, of their further pages and of the appendices that teach."""
    pages = [p for p in sorted(SOURCES.glob("*.py")) if re.match(r"0|1[0-7]|[BDF]_", p.name)]
    return [
        (path.stem, title, text)
        for path in pages
        for title, text in _sections_of(path)
        if title not in UNTAUGHT and len(text) > 150
    ]


def _sections_of(path: Path) -> list[tuple[str, str]]:
    """(title, text) of the sections of a page, without tables, formulas, references and smaller titles."""
    cells = re.findall(r"# %% \[markdown\]\n((?:#.*\n)+)", path.read_text(encoding="utf-8"))
    found: list[tuple[str, list[str]]] = []
    for line in (line[1:].strip() for cell in cells for line in cell.splitlines()):
        if line.startswith(("# ", "## ")):
            found.append((line.lstrip("# "), []))
        elif found and line and not line.startswith(("|", "$$", "- [", "#")):
            found[-1][1].append(_plain(line))
    return [(title, " ".join(lines)) for title, lines in found if lines]


def _plain(text: str) -> str:
    """Markdown without its links and stars."""
    return re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", text).replace("*", "")


def pieces(text: str, size: int) -> list[str]:
    """A text in pieces of whole sentences, each of about `size` words; whole if it is 0."""
    made: list[list[str]] = [[]]
    for sentence in re.split(r"(?<=[.?!:]) ", text):
        if size and sum(len(s.split()) for s in made[-1]) >= size:
            made.append([])
        made[-1].append(sentence)
    return [" ".join(piece) for piece in made]


# Questions, and the sections that answer them -------------------------------------------------------


def questions(asks: str) -> list[tuple[str, list[int]]]:
    """Each question, and the numbers of the sections that are right.

    Args:
        asks: "quiz", questions of a chapter's quiz, for which all of its sections are right; "glossary", an entry's
            first sentence without its term, for which the sections are right that it names; "own words".
    """
    parts = sections()
    if asks == "glossary":
        return _entries(parts)
    rows = _own_words() if asks == "own words" else _quiz_questions()
    found = [(text, _sections_in(parts, chapters)) for chapters, text in rows]
    return [(text, right) for text, right in found if right]


def _own_words() -> list[tuple[list[str], str]]:
    """The chapters that answer a question, by number, and the question."""
    rows = (line.split(" | ") for line in OWN_WORDS.strip().splitlines())
    return [(chapters.split(), text) for chapters, text in rows]


def _quiz_questions() -> list[tuple[list[str], str]]:
    """The chapter of each question of a quiz, by its slug, and the question."""
    return [
        ([path.parent.name], question["text"])
        for path in sorted(LESSONS.glob("*/quiz.toml"))
        for question in tomllib.loads(path.read_text(encoding="utf-8")).get("question", [])
    ]


def _sections_in(parts: list[Section], chapters: list[str]) -> list[int]:
    """The numbers of the sections that stand in one of these chapters (number or slug), or on its further page."""
    return [
        i
        for i, (page, *_) in enumerate(parts)
        if page[:2] in chapters or re.sub(r"_further.*", "", page[3:]) in chapters
    ]


def _entries(parts: list[Section]) -> list[tuple[str, list[int]]]:
    """The first sentence of each entry of the glossary, with "it" for its term, and the sections that it links to."""
    numbers = {(page, title.replace(" ", "-")): i for i, (page, title, _) in enumerate(parts)}
    text = (SOURCES / "C_glossary.py").read_text(encoding="utf-8")
    found = []
    for entry in text.split("# ### <a id=")[1:]:
        lines = [line.lstrip("# ").strip() for line in entry.splitlines() if line.strip("# ")]
        term = lines[0].split("</a>")[1].strip()
        taught = " ".join(line for line in lines[1:] if line.startswith("*Taught"))
        body = [line for line in lines[1:] if not line.startswith("*Taught")]
        links = re.findall(r"\((\w+)\.ipynb#([^)]*(?:\([^)]*\)[^)]*)*)\)", taught)
        right = [numbers[link] for link in links if link in numbers]
        if body and right:
            found.append((re.sub(re.escape(term), "it", _plain(body[0]), flags=re.I), right))
    return found


# Who finds them -----------------------------------------------------------------------------------


@cache
def _index(size: int) -> tuple[list[str], list[list[int]], Tensor]:
    """All pieces of so many words, the numbers of each section's pieces, and the pieces' vectors."""
    texts, of_section = list[str](), list[list[int]]()
    for _, title, text in sections():
        made = [f"{title}. {piece}" for piece in pieces(text, size)]
        of_section.append([*range(len(texts), len(texts) + len(made))])
        texts += made
    return texts, of_section, encoder().embed(texts)


def _standard(scores: Tensor) -> Tensor:
    """(questions, sections), each row with mean 0 and standard deviation 1."""
    return (scores - scores.mean(1, keepdim=True)) / scores.std(1, keepdim=True)


def ranks(scores: Tensor, right: Sequence[list[int]]) -> Tensor:
    """(questions,): the place, from 1, of the best right section; scores (questions, sections)."""
    best = torch.stack([row[numbers].max() for row, numbers in zip(scores, right, strict=True)])
    return (scores > best[:, None]).sum(1) + 1


SIZES = (0, 150, 70, 35)  # words of a piece


@stored(
    cases=[
        {"asks": asks, "size": size} for asks in ("quiz", "glossary", "own words") for size in SIZES
    ]
)
def search(*, asks: str, size: int) -> dict[str, dict]:
    """The share of questions for which a right section comes first, or is among the first three.

    Both sides read pieces of the same size, and a section has the score of its best one.
    """
    texts, of_section, vectors = _index(size)
    asked, right = zip(*questions(asks), strict=True)
    count = BM25(texts)

    def by_section(scores: Tensor) -> Tensor:
        return torch.stack([scores[:, numbers].amax(1) for numbers in of_section], dim=1)

    by_vector = by_section(encoder().embed(asked) @ vectors.T)
    by_words = by_section(torch.stack([count(question) for question in asked]))
    result: dict[str, float] = {
        "questions": len(asked), "sections": len(of_section), "pieces": len(texts)
    }  # fmt: skip
    for name, scores in (
        ("MiniLM", by_vector),
        ("BM25", by_words),
        ("both", _standard(by_vector) + _standard(by_words)),
    ):
        rank = ranks(scores, right)
        result[name] = (rank == 1).float().mean().item()
        result[f"{name}, first three"] = (rank <= 3).float().mean().item()
    return {"result": result}
