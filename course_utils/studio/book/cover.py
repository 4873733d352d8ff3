"""The first page of the book: a question, a live model that answers it, more to play with, and the map."""

import re
from collections.abc import Callable
from pathlib import Path

from course_utils.kit import live
from course_utils.studio.book.widgets import live_html
from course_utils.studio.course_map import CourseMap
from course_utils.studio.manifest import Chapter, Manifest

PAGE = Path(__file__).with_name("cover.md")
HTML = "````{{raw}} html\n{}\n````\n"
MAP = "## The map"
# Each piece: the slug of the chapter that explains it, what is said above it, and its live model.
PIECES: tuple[tuple[str, str, Callable], ...] = (
    (
        "gpt",
        "A GPT that learns your own text. Press Learn, and watch what it writes.",
        live.character_gpt,
    ),
    (
        "queries_keys_values",
        "Ask for an animal that is not in the table: drag the cross.",
        live.look_up,
    ),
    ("gpt", "A small GPT goes on with a sentence.", live.gpt),
    (
        "vision_transformers",
        "Draw a garment, or choose one: a vision transformer names it.",
        live.vit,
    ),
    (
        "diffusion",
        "Noise becomes what two words ask for. Press a word to forbid it, and no pixel may attend to it.",
        live.words,
    ),
    (
        "real_weights",
        "A real language model was asked this. Forbid a word: what does it answer then?",
        live.question,
    ),
)


def cover(course: Manifest, *, live_models: bool) -> str:
    """The page in MyST.

    Args:
        course: its chapters and ways make the map, its chapters have tiles.
        live_models: whether it shows some; else the page is the title, the map, and how to run the course.
    """
    links = re.sub(r'(?<=href=")([^"]+)\.ipynb', r"\1.html", CourseMap(course)._repr_html_())
    translator, tiles = _widgets(course) if live_models else ("", "")
    page = PAGE.read_text(encoding="utf-8").format(
        title=course.title,
        chapters=len(course.chapters),
        first=course.chapters[0].notebook,
        translator=translator,
        tiles=tiles,
        map=HTML.format(links),
        clone=f"git clone {course.repository}\n" if course.repository else "",
        **scores(live.read_card("everyday_fr")),
    )
    return page if live_models else f"# {course.title}\n\n{page[page.index(MAP) :]}"


def scores(card: dict) -> dict[str, float]:
    """The scores of the everyday model: on visitors' sentences as a reader judged, on others by comparison.

    An answer that nobody has judged yet is not right.
    """
    visitors = card["visitors"]
    unread = [sentence for sentence in visitors if not sentence["read"]]
    return card | {
        "visitors": len(visitors),
        "right": sum(sentence.get("right", False) for sentence in visitors),
        "unread": len(unread),
        "unread_right": sum(sentence.get("right", False) for sentence in unread),
        "tests": card["score"][1],
        "test_bleu": 100 * card["test_bleu"],
        "looked_up_bleu": 100 * card["looked_up_bleu"],
    }


def _widgets(course: Manifest) -> tuple[str, str]:
    """The translator, and a tile for each piece whose chapter the course has."""
    chapters = {chapter.slug: chapter for chapter in course.chapters}
    pieces = [piece for piece in PIECES if piece[0] in chapters]
    translator = live.translator("Please take the train.", compact=True, everyday=True)
    first, *others = live_html(translator, *(make() for _, _, make in pieces))
    tiles = [
        _tile(chapters[slug], sentence, widget)
        for (slug, sentence, _), widget in zip(pieces, others, strict=True)
    ]
    number = ("No", "One", "Two", "Three", "Four", "Five", "Six")[len(tiles)]
    row = HTML.format(f'<div class="cu-tiles">{"".join(tiles)}</div>')
    return HTML.format(first), f"## {number} more to play with\n\n{row}\n" if tiles else ""


def _tile(chapter: Chapter, sentence: str, widget: str) -> str:
    return (
        f'<section class="cu-tile" aria-label="{sentence.partition(".")[0]}"><p>{sentence}</p>{widget}'
        f'<p><a href="{chapter.notebook}.html">{chapter.number} · {chapter.title}</a></p></section>'
    )
