"""The texts of questions as HTML, and what a page must not tell before it is asked.

Authors write `code`, *emphasis* and **strong** words; everything else stands as it is written.
"""

import base64
import html
import json
import re
from typing import Any

MASK = 0x2A  # of each byte: enough that neither a reader of the page's source nor a search finds a word


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
    """Plain data as letters that tell nothing; `UNSEAL` opens them in a page."""
    text = json.dumps(data, ensure_ascii=False, sort_keys=True)
    return base64.b64encode(bytes(byte ^ MASK for byte in text.encode())).decode()


UNSEAL = (
    "const unseal = (text) => JSON.parse(new TextDecoder().decode("
    f"Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0) ^ {MASK})));"
)
