"""The texts of questions and hints as HTML.

Authors write `code`, *emphasis* and **strong** words; everything else stands as it is written.
"""

import html
import json
import re
from pathlib import Path
from typing import Any

from course_utils.files import LESSONS


def to_html(text: str) -> str:
    """A text as HTML, in one line, with `code`, *emphasis* and **strong** words marked."""
    parts = re.split(r"`([^`]+)`", html.escape(" ".join(text.split())))  # text, code, text, …
    parts[::2] = map(_emphasized, parts[::2])
    parts[1::2] = [f"<code>{code}</code>" for code in parts[1::2]]
    return "".join(parts)


def _emphasized(text: str) -> str:
    """The text with starred words as HTML. A star marks only a word that it touches: 2 * 3 * 4 stays."""
    text = re.sub(r"\*\*(?!\s)([^*]+)(?<!\s)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\*(?![\s*])([^*]+)(?<!\s)\*", r"<em>\1</em>", text)


def json_attribute(data: Any) -> str:
    """Plain data as the value of an HTML attribute, in JSON for a page's script."""
    return html.escape(json.dumps(data, ensure_ascii=False, sort_keys=True))


def quiz_file(slug: str, folder: Path = LESSONS) -> str:
    """The text of a chapter's quiz file, in TOML.

    Raises:
        FileNotFoundError: the chapter has none.
    """
    return (Path(folder) / slug / "quiz.toml").read_text(encoding="utf-8")
