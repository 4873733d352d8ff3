"""The texts of questions as HTML, and what a page must not tell before it is asked.

Authors write `code`, *emphasis* and **strong** words; everything else stands as it is written.
"""

import base64
import hashlib
import html
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from course_utils.files import LESSONS

SALT = 4  # bytes in front of what is sealed


def marked(text: str) -> str:
    """A text as HTML, in one line, with `code`, *emphasis* and **strong** words marked."""
    parts = re.split(r"`([^`]+)`", html.escape(" ".join(text.split())))  # text, code, text, …
    parts[::2] = map(_emphasized, parts[::2])
    parts[1::2] = [f"<code>{code}</code>" for code in parts[1::2]]
    return "".join(parts)


def _emphasized(text: str) -> str:
    """Stars mark words only where they touch them: 2 * 3 * 4 stays."""
    text = re.sub(r"\*\*(?!\s)([^*]+)(?<!\s)\*\*", r"<strong>\1</strong>", text)
    return re.sub(r"\*(?![\s*])([^*]+)(?<!\s)\*", r"<em>\1</em>", text)


def sealed(data: Any) -> str:
    """Plain data as letters that tell nothing; `unsealed` opens them, and in a page `UNSEAL`.

    Neither who reads the letters nor a search finds a word in them, or sees that two begin alike. It is no secret:
    a page that answers without asking anybody holds what it answers, and who runs its code can have all of it.
    """
    text = json.dumps(data, ensure_ascii=False, sort_keys=True).encode()
    salt = hashlib.sha256(text).digest()[:SALT]  # of the text: the same page each time
    return base64.b64encode(salt + _mixed(salt, text)).decode()


def unsealed(letters: str) -> Any:
    """The data that were sealed."""
    both = base64.b64decode(letters)
    return json.loads(_mixed(both[:SALT], both[SALT:]))


def _mixed(salt: bytes, text: bytes) -> bytes:
    return bytes(byte ^ other for byte, other in zip(text, _stream(salt), strict=False))


def _stream(salt: bytes) -> Iterator[int]:
    """Bytes without end, by Marsaglia's xorshift (2003, https://doi.org/10.18637/jss.v008.i14)."""
    state = int.from_bytes(salt) | 1
    while True:
        state ^= state << 13 & 0xFFFFFFFF
        state ^= state >> 17
        state ^= state << 5 & 0xFFFFFFFF
        yield state & 0xFF


UNSEAL = (
    "const unseal = (text) => { "
    "const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0)); "
    "let state = new DataView(bytes.buffer).getUint32(0) | 1; "
    "const next = () => { state ^= state << 13; state ^= state >>> 17; return state ^= state << 5; }; "
    f"const told = bytes.slice({SALT}).map((byte) => byte ^ next()); "
    "return JSON.parse(new TextDecoder().decode(told)); };"
)


def quiz_file(slug: str, folder: Path = LESSONS) -> str:
    """What a chapter's quiz file says, in TOML.

    Raises:
        FileNotFoundError: the chapter has none.
    """
    return (Path(folder) / slug / "quiz.toml").read_text(encoding="utf-8")
