"""Chapters of one's own: a folder beside the course's, to which no release of the course writes.

    own/own.toml               what there is: [[chapter]] with notebook, title and, if you like, prerequisites
    own/source/my_sensors.py   a source
    own/my_sensors.ipynb       its notebook, made by `make notebooks CHAPTER=my_sensors`

They stand in the contents of the book, on Lab's start page, in the handout and in the tests; map, ways and the
README's table show the course as it is released. Rules of size, glossary and quiz are for the course's.
"""

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from course_utils.files import ROOT
from course_utils.studio import StudioError
from course_utils.studio.manifest import Chapter, load
from course_utils.studio.schema import OWN, OWN_LIST, OWN_NAME

HEAD = "# Our own chapters, in the order of the book. No release of the course writes into this folder.\n"
SKELETON = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # {title}
#
# **What is the question of this chapter?**
# It needs [{first.title}](../notebooks/{first.notebook}.ipynb).

# %%
import torch

import course_utils as cu

cu.seed_everything(0)

# %% [markdown]
# ## What is measured
#
# Say what the reader sees, and what to look for in it.

# %%
width = 0.5  # try 0.1 … 3.0
keys = torch.linspace(0, 5, 6)
weights = cu.kernel_weights(torch.tensor([2.0]), keys, width=width)
fig, ax = cu.subplots(alt="Bars: the weights of six keys; those near the query 2 are the highest.")
ax.bar(keys.tolist(), weights[0].tolist(), width=0.5)
ax.set(xlabel="key", ylabel="weight")
fig

# %% [markdown]
# Say what was to be seen.
"""


class OwnError(StudioError):
    """An own chapter that cannot be begun: why, and what to do."""


def begin(name: str, title: str, root: Path) -> Chapter:
    """Write the skeleton of a chapter, and name it in the list.

    Args:
        name: of its files, such as ``"my_sensors"``.
        title: empty for the name in words.
        root: the repository.

    Raises:
        OwnError: the name cannot be one, or is taken.
    """
    if not re.fullmatch(OWN_NAME, name):
        raise OwnError(
            f"{name!r} is no name of a chapter; write small letters, digits and _, such as my_sensors."
        )
    chapter = Chapter(name, title or name.replace("_", " ").capitalize(), kind="own", root=root)
    course = load(root / "book.toml", files=False)
    taken = {one.slug for one in course.everything} | {one.notebook for one in course.everything}
    if name in taken or chapter.source.exists() or chapter.ipynb.exists():
        raise OwnError(f"There is a chapter {name!r} already; choose another name.")
    chapter.source.parent.mkdir(parents=True, exist_ok=True)
    chapter.source.write_text(
        SKELETON.format(title=chapter.title, first=course.chapters[0]), encoding="utf-8"
    )
    listed = root / OWN_LIST
    before = listed.read_text(encoding="utf-8") if listed.is_file() else HEAD
    quoted = json.dumps(chapter.title, ensure_ascii=False)
    entry = f'\n[[chapter]]\nnotebook = "{name}"\ntitle = {quoted}\n'
    listed.write_text(before.rstrip("\n") + "\n" + entry, encoding="utf-8")
    return chapter


def main(argv: Sequence[str] | None = None) -> int:
    """Begin a chapter, and make its notebook."""
    from course_utils.studio import notebooks

    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio chapter",
        description="Begin a chapter of your own, in the folder own/, and make its notebook.",
    )
    parser.add_argument("name", metavar="NAME", help="of its files, such as my_sensors")
    parser.add_argument("--title", default="", help="default: the name in words")
    parser.add_argument("--book", type=Path, default=ROOT / "book.toml", help="the manifest")
    options = parser.parse_args(argv)
    try:
        chapter = begin(options.name, options.title, options.book.resolve().parent)
        print(notebooks.make(chapter))
    except StudioError as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"Write in {OWN}/source/{chapter.notebook}.py, or in Lab in {OWN}/{chapter.notebook}.ipynb;\n"
        f"then: make notebooks CHAPTER={chapter.notebook}"
    )
    return 0
