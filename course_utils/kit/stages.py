"""A picture in stages: one drawing after another, each with its title, a sentence or two, and a question to try.

The reader goes on by a slider, arrow keys, buttons or a swipe, and what is the same in two stages travels from its
old place to its new one. All of it is HTML with a script (`stages.js`), the same in Lab and in the book, with no
kernel. Without the script the stages stand one below the other, so that a notebook that is not trusted, and a
printer, show them all.
"""

import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from importlib import import_module

from course_utils.files import LESSONS
from course_utils.kit.assets import asset
from course_utils.kit.drawings.canvas import Canvas
from course_utils.kit.rich_text import to_html


@dataclass(frozen=True)
class Stage:
    """The texts of one stage, as `rich_text.to_html` reads them.

    Attributes:
        title: a phrase.
        caption: one to three sentences on what is seen.
        question: to try with a pencil.
        answer: shown when it is asked for.
    """

    title: str
    caption: str
    question: str
    answer: str


class Stages:
    """A picture in stages; at the end of a cell it displays itself.

    Args:
        name: its name in the address (`#self-attention-3`) and in saved files.
        stages: in their order.
        sheets: a drawing for each stage.

    Raises:
        ValueError: there are more texts than drawings, or fewer, or the sheets differ in size, so that the page
        would jump.
    """

    def __init__(self, name: str, stages: Sequence[Stage], sheets: Sequence[Canvas]):
        self.name, self.stages, self.sheets = name, list(stages), list(sheets)
        if not len(self.stages) == len(self.sheets) > 0:
            raise ValueError(
                f"got {len(self.stages)} texts and {len(self.sheets)} drawings, expected a drawing for each text"
            )
        if len(sizes := {sheet.size for sheet in self.sheets}) > 1:
            raise ValueError(
                f"got sheets of sizes {sorted(sizes)}, expected one size for all stages"
            )

    def __repr__(self) -> str:
        return f"Stages({self.name!r}: {' · '.join(stage.title for stage in self.stages)})"

    def _repr_html_(self) -> str:
        figures = "".join(
            self._figure(*about) for about in zip(self.stages, self.sheets, strict=True)
        )
        return (
            f'<section class="cu-stages mathjax_ignore" data-stages="{self.name}"><style>{asset("stages.css")}</style>'
            f"{figures}<script>{{{asset('stages.js')}}}</script></section>"
        )

    def _figure(self, stage: Stage, sheet: Canvas) -> str:
        place = self.stages.index(stage) + 1
        turn = f"<details><summary>Your turn: {_rich(stage.question)}</summary><p>{_rich(stage.answer)}</p></details>"
        return (
            f'<figure><p class="title"><span>{place}</span><b>{_rich(stage.title)}</b></p>{sheet.image()}'
            f"<figcaption><p>{_rich(stage.caption)}</p>{turn}</figcaption></figure>\n"
        )


def stages(slug: str) -> Stages:
    """A lesson's picture in stages: its `stages.toml` with the drawings of its `stages.py`.

    The picture has the lesson's name, unless `name` in the file says what it shows.

    Raises:
        FileNotFoundError: the lesson has none; the message names those that do.
    """
    file = LESSONS / slug / "stages.toml"
    if not file.is_file():
        known = ", ".join(sorted(path.parent.name for path in LESSONS.glob("*/stages.toml")))
        raise FileNotFoundError(f"got slug={slug!r}, expected a lesson with stages: {known}")
    content = tomllib.loads(file.read_text(encoding="utf-8"))
    texts = [Stage(**texts) for texts in content["stage"]]
    sheets = import_module(f"course_utils.lessons.{slug}.stages").sheets()
    return Stages(content.get("name", slug.replace("_", "-")), texts, sheets)


def _rich(text: str) -> str:
    """A text as HTML, with W_Q and H_0 in italics with a subscript."""
    return re.sub(r"\b([A-Z])_(\w)\b", r"<i>\1</i><sub>\2</sub>", to_html(text))
