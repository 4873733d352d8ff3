"""Printing to a terminal whose encoding lacks a letter, such as Windows' cp1252: the nearest ASCII in its place.

`import course_utils` calls `print_any_letter`, since otherwise a check mark in a report raises UnicodeEncodeError.
"""

import codecs
import io
import sys
import unicodedata

NEAREST = {
    "✓": "+", "✗": "x", "·": ".", "○": "o", "→": "->", "−": "-", "–": "-", "×": "x", "⁄": "/",
    "“": '"', "”": '"', "‘": "'", "’": "'", "√": "sqrt ", "≤": "<=", "≥": ">=",
}  # fmt: skip
"""Letter → ASCII that looks like it; accents are removed without it."""


def nearest(error: UnicodeError) -> tuple[str, int]:
    """ASCII for the letters that could not be encoded, "?" for one without any: an error handler of `codecs`.

    Returns:
        The text, and the index at which encoding goes on.
    """
    if not isinstance(error, UnicodeEncodeError):
        raise error
    text = ""
    for letter in error.object[error.start : error.end]:
        parts = [NEAREST.get(part, part) for part in unicodedata.normalize("NFKD", letter)]
        text += "".join(part for part in parts if part.isascii()) or "?"
    return text, error.end


def print_any_letter() -> None:
    """Let standard output write what its encoding lacks by `nearest`, where it would raise an error."""
    codecs.register_error("nearest", nearest)
    stdout = sys.stdout
    if isinstance(stdout, io.TextIOWrapper) and stdout.errors in ("strict", "surrogateescape"):
        stdout.reconfigure(errors="nearest")
