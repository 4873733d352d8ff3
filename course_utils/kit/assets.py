"""Style sheets and scripts of the kit, as text: a piece of a page carries its own along."""

from functools import cache
from pathlib import Path

from course_utils.figures.style import tokens_css


@cache
def asset(name: str) -> str:
    """The text of a style sheet, with the colors that it uses, or of a script that stands beside this file."""
    text = (Path(__file__).parent / name).read_text(encoding="utf-8")
    return tokens_css() + text if name.endswith(".css") else text
