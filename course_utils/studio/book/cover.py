"""The first page of the book: a question, a live model that answers it, four more to play with, and the map."""

import re
from collections.abc import Mapping
from pathlib import Path

from course_utils.kit import live
from course_utils.studio.book.explorers import page
from course_utils.studio.book.live import page as alive
from course_utils.studio.course_map import CourseMap
from course_utils.studio.manifest import Manifest

HTML = "````{{raw}} html\n{}\n````\n"
TILES = {  # slug of the chapter that tells about it → what stands over the tile
    "queries_keys_values": "Ask for an animal that is not in the table: drag the cross.",
    "gpt": "A small GPT goes on with a sentence.",
    "vision_transformers": "Draw a garment, or choose one: a vision transformer names it.",
    "diffusion": "Noise becomes clothes: move the slider to the right.",
}


def toys(course: Manifest, explorers: Path) -> dict[str, str]:
    """The live models of the cover, as HTML: slug → the tile's; "" → what answers the question.

    Args:
        course: its chapters have tiles.
        explorers: the folder in which pages of explorers are kept.
    """
    made = {
        "queries_keys_values": lambda: alive(live.look_up()),
        "gpt": lambda: alive(live.gpt()),
        "vision_transformers": lambda: alive(live.vit()),
        "diffusion": lambda: page("from_noise", {}, explorers),
    }
    question = alive(live.translator(compact=True, everyday=True))
    slugs = [chapter.slug for chapter in course.chapters if chapter.slug in made]
    return {"": question} | {slug: made[slug]() for slug in slugs}


def cover(course: Manifest, toys: Mapping[str, str]) -> str:
    """The page in MyST. Without `toys` it is the title, the map, and how to run the course.

    Args:
        course: its chapters and ways make the map.
        toys: as `toys` gives them.
    """
    shown = re.sub(r'(?<=href=")([^"]+)\.ipynb', r"\1.html", CourseMap(course)._repr_html_())
    clone = f"git clone {course.repository}\n" if course.repository else ""
    count = len(course.chapters)
    head = f"# {course.title}\n"
    if toys:
        number = {1: "One", 2: "Two", 3: "Three", 4: "Four"}.get(len(toys) - 1)
        tiles = f"## {number} more to play with\n\n{HTML.format(_tiles(course, toys))}"
        more = tiles if number else ""
        head = f"""# When it says a word, where does it look?

A small translator runs in this page.
Cross out a word that it looks at, and it says something else.

{HTML.format(toys[""])}
{_scores(live.told("everyday_fr"))}

**{course.title}**: {count} chapters, each built from a few lines of code that you run, change and take apart.
No account, no server: what answers here is computed by your browser.

{more}"""
    return f"""{head}
## The map

{HTML.format(shown)}
## Run it yourself

In the book you read and play; in JupyterLab you change the code and solve the exercises, and are told at once whether
your solution is right. You need Python 3.11 or newer and the folder of the course:

```bash
{clone}make lab     # an environment is made, and JupyterLab opens on its start page
make book    # makes these pages
```
"""


def _scores(told: dict) -> str:
    """What the everyday model gets right: of the sentences of visitors as a reader judged, of others by comparison.

    An answer that nobody has judged yet is not right.
    """
    visitors = told["visitors"]
    unread = [one for one in visitors if not one["read"]]
    right, fresh = (sum(one.get("right", False) for one in some) for some in (visitors, unread))
    exact, found = (
        f"{told[f'{name}_exact']:.0%} (BLEU {100 * told[f'{name}_bleu']:.0f})"
        for name in ("test", "looked_up")
    )
    return (
        f"What you type is answered by a larger model, trained on {told['read']:,} short sentences. Of {len(visitors)} "
        f"that visitors might type, written before it had answered any, it got {right} right, as one of us reads "
        f"French; of the {len(unread)} that it had not read, {fresh}. Of {told['score'][1]:,} other unread sentences "
        f"it says {exact} to the letter; looking the nearest one up, {found}."
    )


def _tiles(course: Manifest, toys: Mapping[str, str]) -> str:
    tiles = ""
    for chapter in course.chapters:
        if chapter.slug in TILES:
            link = f'<a href="{chapter.notebook}.html">{chapter.number} · {chapter.title}</a>'
            tiles += (
                f'<section class="cu-tile" aria-label="{chapter.title}"><p>{TILES[chapter.slug]}</p>'
                f"{toys[chapter.slug]}<p>{link}</p></section>"
            )
    return f'<div class="cu-tiles">{tiles}</div>'
