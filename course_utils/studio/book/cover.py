"""The first page of the book: a question, a live model that answers it, more to play with, and the map."""

import re
from pathlib import Path

from course_utils.kit import live
from course_utils.studio.book.widgets import explorer_html, live_html
from course_utils.studio.course_map import CourseMap
from course_utils.studio.manifest import Chapter, Manifest

PAGE = Path(__file__).with_name("cover.md")
HTML = "````{{raw}} html\n{}\n````\n"
MAP = "## The map"
TILES = {  # slug of the chapter that tells about it → what stands over the tile
    "queries_keys_values": "Ask for an animal that is not in the table: drag the cross.",
    "gpt": "A small GPT goes on with a sentence.",
    "vision_transformers": "Draw a garment, or choose one: a vision transformer names it.",
    "diffusion": "Noise becomes clothes: move the slider to the right.",
}
MODELS = {"queries_keys_values": live.look_up, "gpt": live.gpt, "vision_transformers": live.vit}
"""Slug → the live model of its tile; the tile of diffusion is an explorer."""


def cover(course: Manifest, cache: Path | None) -> str:
    """The page in MyST.

    Args:
        course: its chapters and ways make the map, its chapters have tiles.
        cache: the folder of explorers' pages; without one the page is the title, the map, and how to run the course.
    """
    links = re.sub(r'(?<=href=")([^"]+)\.ipynb', r"\1.html", CourseMap(course)._repr_html_())
    translator = live.translator(compact=True, everyday=True)
    page = PAGE.read_text(encoding="utf-8").format(
        title=course.title,
        chapters=len(course.chapters),
        translator=HTML.format(live_html(translator)) if cache else "",
        tiles=_tiles(course, cache) if cache else "",
        map=HTML.format(links),
        clone=f"git clone {course.repository}\n" if course.repository else "",
        **scores(live.read_card("everyday_fr")),
    )
    return page if cache else f"# {course.title}\n\n{page[page.index(MAP) :]}"


def scores(card: dict) -> dict[str, float]:
    """What the everyday model gets right: of visitors' sentences as a reader judged, of others by comparison.

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


def _tiles(course: Manifest, cache: Path) -> str:
    tiles = [_tile(chapter, cache) for chapter in course.chapters if chapter.slug in TILES]
    number = ("No", "One", "Two", "Three", "Four")[len(tiles)]
    row = HTML.format(f'<div class="cu-tiles">{"".join(tiles)}</div>')
    return f"## {number} more to play with\n\n{row}\n" if tiles else ""


def _tile(chapter: Chapter, cache: Path) -> str:
    model = MODELS.get(chapter.slug)
    widget = live_html(model()) if model else explorer_html("from_noise", {}, cache)
    return (
        f'<section class="cu-tile" aria-label="{chapter.title}"><p>{TILES[chapter.slug]}</p>{widget}'
        f'<p><a href="{chapter.notebook}.html">{chapter.number} · {chapter.title}</a></p></section>'
    )
