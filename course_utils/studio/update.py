"""Take a new release over the handout in use: ``make update FROM=release.zip``, and nobody's work is lost.

Notebooks are brought together cell by cell (`carry`). Any other file is the release's; one that the reader has changed
is kept beside it under a dated name, as every notebook with work in it is. The reader's own files stay. Everything is
made ready before the first file is replaced, and each is replaced in one step, so that an interrupt leaves old or new,
and the same command again does the rest.
"""

import os
import re
import shutil
import subprocess
import tempfile
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from course_utils.files import locked
from course_utils.kit.stubs import HANDED_OUT, exercises
from course_utils.studio import StudioError
from course_utils.studio.carry import CELLS, Carried, answered, carry, remember
from course_utils.studio.handed import Handed, digest_of, files, read
from course_utils.studio.pairs import UnreadableError, bare, is_edited, write
from course_utils.studio.pairs import read as read_notebook
from course_utils.studio.schema import OWN

if TYPE_CHECKING:
    from nbformat import NotebookNode

MARKS = re.compile(r"^<{7}.*?\n(.*?)(?:^\|{7}.*?)?^={7}.*?^>{7}[^\n]*\n?", re.M | re.S)
NEEDED = ("pyproject.toml", "constraints.txt")
STAGE = ".update-"  # how the folder begins in which all is made ready


class UpdateError(StudioError):
    """A release that cannot be taken over: nothing was changed."""


class Page(NamedTuple):
    """A notebook of the release, and what it replaces.

    Attributes:
        path: where it will stand.
        old: the reader's, if there is one, perhaps under an earlier number.
        mine: what that says; None where it is no notebook.
        new: the release's.
    """

    path: Path
    old: Path | None
    mine: "NotebookNode | None"
    new: "NotebookNode"


def update(root: Path, source: str) -> list[str]:
    """Bring a handout to another release.

    Args:
        root: the handout in use.
        source: a folder or a zip file with a handout, or a revision that git knows in `root`, such as origin/main;
            of a revision the notebooks alone are taken, because git brings the rest.

    Returns:
        What was done, in a few lines.

    Raises:
        UpdateError: there is no release, or nothing to bring to it.
    """
    try:
        with ExitStack() as stack:
            folder, whole = stack.enter_context(_release(root, source))
            before = read(root)
            if whole and not before.files:
                raise UpdateError(
                    f"{root} is no handout: it has no {HANDED_OUT}. In a clone of the course, git pull brings "
                    "the release; then name the revision, as in FROM=origin/main, for the notebooks."
                )
            stack.enter_context(locked(root / HANDED_OUT, timeout=0))
            return _take_over(root, folder, before, whole)
    except TimeoutError:
        raise UpdateError(f"Another update of {root} is running; wait for it.") from None
    except OSError as error:
        said = f"{error.strerror or error}: {error.filename or root}"
        raise UpdateError(f"{said}. Make that right, and give the command again.") from None


def here() -> Path | None:
    """The handout in which this process works, if it does; the course may be installed elsewhere."""
    folders = (Path.cwd(), *Path.cwd().parents)
    return next((folder for folder in folders if (folder / HANDED_OUT).is_file()), None)


# The release ------------------------------------------------------------------------------------


@contextmanager
def _release(root: Path, source: str) -> Iterator[tuple[Path, bool]]:
    """The folder of a release, and whether all of it is to be taken."""
    path = Path(source)
    with tempfile.TemporaryDirectory() as place:
        if path.is_dir():
            folder, whole = path, True
        else:
            archive, whole = (
                (path, True) if path.is_file() else (_archived(root, source, place), False)
            )
            try:
                with zipfile.ZipFile(archive) as content:
                    content.extractall(Path(place, "release"))
            except zipfile.BadZipFile:
                raise UpdateError(
                    f"{source} is no zip file; name the one you downloaded."
                ) from None
            folder = Path(place, "release")
        tops = [folder, *(inside for inside in sorted(folder.iterdir()) if inside.is_dir())]
        mark = HANDED_OUT if whole else "notebooks"
        found = next((top for top in tops if (top / mark).exists()), None)
        if found is None:
            raise UpdateError(f"{source} holds no handout: there is no {mark} in it.")
        if found.resolve() == root.resolve():
            raise UpdateError(f"{source} is the handout in use; name the new one.")
        yield found, whole


def _archived(root: Path, revision: str, place: str) -> Path:
    """What a revision holds, as a zip file."""
    git = ["git", "-C", str(root)]
    asked = [*git, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^{{commit}}"]
    unknown = UpdateError(
        f"{revision} is no folder, no file, and no revision that git knows in {root}; name the new handout."
    )
    try:
        found = subprocess.run(asked, capture_output=True, text=True)
    except FileNotFoundError:
        raise unknown from None
    if found.returncode:
        raise unknown
    archive = Path(place, "archive.zip")
    command = [*git, "archive", "--format=zip", f"--output={archive}", found.stdout.strip()]
    subprocess.run(command, check=True, capture_output=True)
    return archive


# Notebooks --------------------------------------------------------------------------------------


def _pages(root: Path, folder: Path, before: Handed) -> Iterator[Page]:
    renamed = _renamed(root, folder, before)
    for name in filter(_is_page, files(folder)):
        old = root / name if (root / name).is_file() else None
        if name in renamed and not old:
            old = root / renamed[name]
        yield Page(root / name, old, _readers(old) if old else None, _releases(folder / name))


def _releases(path: Path) -> "NotebookNode":
    """A notebook of the release; where a teacher has edited the handout, its cells' ids tell the new text."""
    notebook = read_notebook(path)
    return remember(bare(notebook)) if is_edited(notebook) else notebook


def _renamed(root: Path, folder: Path, before: Handed) -> dict[str, str]:
    """The notebooks that the release has under another number: its name → the name here."""
    new = {_slug(name): name for name in files(folder) if _is_page(name)}
    pages = [name for name in before.files if _is_page(name) and name not in new.values()]
    return {
        new[_slug(name)]: name for name in pages if _slug(name) in new and (root / name).is_file()
    }


def _is_page(name: str) -> bool:
    return name.endswith(".ipynb")


def _slug(name: str) -> str:
    """A notebook's path without its number."""
    folder, _, file = name.rpartition("/")
    return f"{folder}/{file.partition('_')[2]}"


def _readers(path: Path) -> "NotebookNode | None":
    """A reader's notebook; of one in which a merge has left its marks, the reader's side."""
    import nbformat

    try:
        return read_notebook(path)
    except UnreadableError:
        text = path.read_text(encoding="utf-8", errors="replace")
    try:
        notebook = nbformat.reads(MARKS.sub(r"\1", text), as_version=4)
        return notebook if "cells" in notebook else None
    except (ValueError, AttributeError, TypeError, nbformat.ValidationError):
        return None


def _moved(pages: list[Page], stubs: dict[str, str]) -> dict[str, "NotebookNode"]:
    """Answers to exercises that stand in another notebook now, by the name of the check."""
    found = {}
    for page in pages:
        if page.mine is not None:
            here = {name for name, _ in exercises(page.new.cells)}
            found |= {n: c for n, c in answered(page.mine, stubs).items() if n not in here}
    return found


def _is_same(one: "NotebookNode", other: "NotebookNode") -> bool:
    mine, new = ([(cell.cell_type, cell.source) for cell in half.cells] for half in (one, other))
    return mine == new and one.metadata.get(CELLS) == other.metadata.get(CELLS)


# Taking over ------------------------------------------------------------------------------------


class Stage:
    """Files made ready in a folder of the handout, and what they will replace.

    Args:
        root: the handout in use.
    """

    def __init__(self, root: Path) -> None:
        for left in root.glob(f"{STAGE}*"):  # of an update that was killed
            shutil.rmtree(left, ignore_errors=True)
        self.root, self.folder = root, Path(tempfile.mkdtemp(prefix=STAGE, dir=root))
        self.ready: list[tuple[Path, Path]] = []

    def path(self, target: Path) -> Path:
        """Where to write what is to become `target`."""
        part = self.folder / str(len(self.ready))
        self.ready.append((part, target))
        return part

    def keep(self, path: Path) -> str:
        """A copy beside a file, under a name with the day that is not taken; where it is, or was before."""
        text = path.read_bytes()
        for number in range(1, 10_000):
            name = f"{path.stem}.kept-{date.today()}{f'-{number}' * (number > 1)}{path.suffix}"
            copy = path.with_name(name)
            if not copy.exists():
                shutil.copy(path, self.path(copy))
            if not copy.exists() or copy.read_bytes() == text:
                break
        return copy.relative_to(self.root).as_posix()

    def replace(self, gone: list[Path]) -> None:
        """Put all in place, each file in one step, and delete what is `gone`; the list of files comes last."""
        if hasattr(os, "sync"):
            os.sync()
        listing = [one for one in self.ready if one[1].name == HANDED_OUT]
        for part, target in (one for one in self.ready if one not in listing):
            target.parent.mkdir(parents=True, exist_ok=True)
            part.replace(target)
        for path in gone:
            path.unlink(missing_ok=True)
        for part, target in listing:
            part.replace(target)


def _take_over(root: Path, folder: Path, before: Handed, whole: bool) -> list[str]:
    stage = Stage(root)
    try:
        said, gone = _stage_notebooks(stage, folder, before)
        if whole:
            others = _stage_files(stage, folder, before)
            said, gone = said + others[0], gone + others[1]
        stage.replace(gone)
    finally:
        shutil.rmtree(stage.folder, ignore_errors=True)
    if any(target.name in NEEDED and target.parent == root for _, target in stage.ready):
        said.append(
            "What the course needs has changed: `make lab` installs it, or tools/bootstrap.py"
        )
    return [*said, "Close a notebook that is open, and open it again"] if stage.ready else said


def _stage_notebooks(stage: Stage, folder: Path, before: Handed) -> tuple[list[str], list[Path]]:
    """Make the notebooks ready, copies first; what to say of each with a reader's work in it, and old names."""
    from nbformat.v4 import new_notebook

    pages = list(_pages(stage.root, folder, before))
    moved, said, ready = _moved(pages, before.stubs), [], []
    for page in pages:
        done = carry(page.mine or new_notebook(), page.new, before.stubs, moved)
        if page.mine and page.old == page.path and _is_same(page.mine, done.notebook):
            continue
        ready.append((done.notebook, page.path))
        if page.old and (page.mine is None or is_edited(page.mine)):
            said.append(
                f"{page.path.stem}: {_told(page, done)}\n  as it was: {stage.keep(page.old)}"
            )
    for notebook, path in ready:
        write(notebook, stage.path(path))
    said.append(f"New from the release: {len(ready)} of {len(pages)} notebooks")
    return said, [stage.root / old for old in _renamed(stage.root, folder, before).values()]


def _told(page: Page, done: Carried) -> str:
    if page.mine is None:
        return "yours could not be read, and the release's takes its place"
    parts = [f"carried over: {', '.join(done.answers)}"] if done.answers else []
    if done.changed:
        parts.append(f"changed stubs, each in a cell below your answer: {', '.join(done.changed)}")
    if done.own:
        parts.append(f"other cells of yours: {done.own}")
    return "; ".join(parts) or "as in the release"


def _stage_files(stage: Stage, folder: Path, before: Handed) -> tuple[list[str], list[Path]]:
    """Make all other files ready, the list of them last; what to say, and what the release no longer has."""
    root, kept = stage.root, []
    names = [name for name in files(folder) if not _is_page(name) and name != HANDED_OUT]
    changed = [
        name
        for name in names
        if not (root / name).is_file() or digest_of(root / name) != digest_of(folder / name)
    ]
    for name in changed:
        if (root / name).is_file() and digest_of(root / name) != before.files.get(name):
            kept.append(stage.keep(root / name))
    for name in changed:
        shutil.copy(folder / name, stage.path(root / name))
    shutil.copy(folder / HANDED_OUT, stage.path(root / HANDED_OUT))
    gone = [
        root / name
        for name, digest in before.files.items()
        if name not in names and not _is_page(name) and not name.startswith(f"{OWN}/")
        if (root / name).is_file() and digest_of(root / name) == digest
    ]
    said = [f"Other files that were not as handed out are kept: {', '.join(kept)}"] if kept else []
    return [f"Other files of the release: {len(changed)} new", *said], gone
