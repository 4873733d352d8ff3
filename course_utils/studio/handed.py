"""What a handout tells of itself in ``handout.json``: the files that it came with, and the stubs of its exercises.

So an update knows which files a reader has changed, and a check can give back its stub.
"""

import hashlib
import json
from collections.abc import Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import NamedTuple

from course_utils.files import atomic_write
from course_utils.kit.stubs import HANDED_OUT, exercises, text_of

# Made here, by the course, by a system or by an update; never a part of a release.
MADE = (".git", ".venv", "_build", "__pycache__", ".ipynb_checkpoints", ".DS_Store", "START.md")
PATTERNS = ("*.egg-info", "*.kept-*", "*.part", "*.lock", ".update-*")


class Handed(NamedTuple):
    """What a handout came with.

    Attributes:
        files: path in the handout → digest of the content.
        stubs: name of the check → text of the stub.
    """

    files: dict[str, str]
    stubs: dict[str, str]


def files(root: Path) -> Iterator[str]:
    """The files of a handout, as paths with forward slashes, in order."""
    for path in sorted(root.iterdir()):
        if not any(fnmatch(path.name, made) for made in (*MADE, *PATTERNS)):
            if path.is_dir():
                yield from (f"{path.name}/{inside}" for inside in files(path))
            elif path.is_file():
                yield path.name


def digest_of(path: Path) -> str:
    """Sixteen hexadecimal digits for a file's content."""
    return hashlib.sha256(path.read_bytes()).hexdigest()[:16]


def record(root: Path) -> None:
    """Write the ``handout.json`` of a finished handout."""
    names, stubs = [name for name in files(root) if name != HANDED_OUT], {}
    for name in (name for name in names if name.endswith(".ipynb")):
        cells = json.loads((root / name).read_text(encoding="utf-8"))["cells"]
        stubs |= {check: text_of(cell) for check, cell in exercises(cells)}
    known = {name: digest_of(root / name) for name in names}
    with atomic_write(root / HANDED_OUT) as part:
        content = {"files": known, "stubs": stubs}
        part.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


def read(root: Path) -> Handed:
    """What `record` wrote; nothing where that cannot be read."""
    try:
        content = json.loads((root / HANDED_OUT).read_text(encoding="utf-8"))
        return Handed(dict(content["files"]), dict(content["stubs"]))
    except (OSError, ValueError, KeyError, TypeError):
        return Handed({}, {})
