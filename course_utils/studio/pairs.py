"""Two halves of one text: what happens when a notebook and its source disagree, so that no edit is lost.

A pair is ``notebooks/NN.ipynb``, which students open, and ``notebooks/source/NN.py``, which authors
edit. Lab saves both (jupytext). Other editors, downloads, backups and merges change one of them.
Every cell of a published notebook carries the digest of its text as its id, and editors keep ids. So
each cell is known to be *in both halves*, *as published*, or *written* into one half only:

    cells written in    what is opened            what is kept as NN.kept-2026-11-21-1802.ipynb
    the notebook only   the notebook              nothing: all that the source holds is known
    the source only     the source                nothing: all that the notebook holds is known
    both                the half saved later      the other half
    neither             the half saved later      nothing: a cell is missing or in another place

The times of the files decide in the last two rows only, so a pull may set them as it likes.
`make notebooks` executes the source whatever the notebook says, and keeps a notebook that holds
cells of somebody's. A copy is never overwritten, and nothing but its owner removes it.

`PairedContents` opens and saves pairs for ``make lab``; a chapter as it was committed is trusted, and opening one
does not mark it as changed. The module imports nothing else of the
course, so that Jupyter's server can load it from its file without PyTorch.
"""

import hashlib
import os
import shutil
import subprocess
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import jupytext
import nbformat
from jupytext import AsyncTextFileContentsManager
from nbformat import NotebookNode
from tornado.web import HTTPError

FORMAT = "py:percent"
SAME_AGE = 2_000_000_000  # ns: a pull or a copy writes both halves at once
# What nbformat raises for a file that holds anything else.
NOT_ONE = (ValueError, AttributeError, TypeError, nbformat.ValidationError)
NOTE = "course-note"  # tags a cell that is shown and never saved


# Cells and their names --------------------------------------------------------


def digest(cell: NotebookNode) -> str:
    """Eight hexadecimal digits for a cell's kind and text."""
    return hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]


def name_cells(notebook: NotebookNode) -> NotebookNode:
    """Give each cell, in place, an id made from its content: a new cell leaves the others' alone."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        name = digest(cell)
        seen[name] += 1
        cell["id"] = name if seen[name] == 1 else f"{name}-{seen[name]}"
    return notebook


def texts(notebook: NotebookNode) -> list[str]:
    """The digests of a notebook's cells, in order, after a way through its source and back."""
    text = jupytext.writes(nbformat.from_dict(notebook), FORMAT)
    return [digest(cell) for cell in jupytext.reads(text, FORMAT).cells]


def published(notebook: NotebookNode) -> set[str]:
    """The digests that its cells had when the notebook was made."""
    return {cell.get("id", "").partition("-")[0] for cell in notebook.cells}


# A pair -----------------------------------------------------------------------


class Difference(NamedTuple):
    """How two halves differ: in anything, and which cells somebody wrote into one of them only."""

    any: bool
    in_notebook: frozenset[str]
    in_source: frozenset[str]


class UnreadableError(ValueError):
    """A notebook that is no JSON, such as one in which a merge left its marks."""


@dataclass(frozen=True)
class Pair:
    """The two files of a chapter."""

    notebook: Path
    source: Path

    @classmethod
    def of(cls, path: Path) -> "Pair | None":
        """The pair that a file belongs to; None outside of a course, which has a ``book.toml``."""
        folder = path.parent.parent if path.parent.name == "source" else path.parent
        if path.suffix not in (".ipynb", ".py") or not (folder.parent / "book.toml").is_file():
            return None
        pair = cls(folder / f"{path.stem}.ipynb", folder / "source" / f"{path.stem}.py")
        return pair if path in (pair.notebook, pair.source) else None

    @property
    def whole(self) -> bool:
        """Whether both halves are there."""
        return self.notebook.is_file() and self.source.is_file()

    def read(self) -> NotebookNode:
        """The notebook.

        Raises:
            UnreadableError: it is none.
        """
        try:
            return nbformat.reads(self.notebook.read_text(encoding="utf-8"), as_version=4)
        except NOT_ONE as error:
            raise UnreadableError(f"{self.notebook.name} is no notebook") from error

    def read_source(self) -> NotebookNode:
        """The notebook that the source describes."""
        return jupytext.read(self.source, fmt=FORMAT)

    def difference(self) -> Difference:
        """Compare the inputs of both halves: the kinds and texts of the cells.

        Raises:
            UnreadableError: the notebook is none.
        """
        notebook = self.read()
        left, right = texts(notebook), [digest(cell) for cell in self.read_source().cells]
        known = published(notebook)
        return Difference(
            left != right,
            frozenset(left) - set(right) - known,
            frozenset(right) - set(left) - known,
        )

    def cells(self) -> dict[Path, set[str]]:
        """The digests of the cells in each half that is there."""
        halves = {}
        if self.source.is_file():
            halves[self.source] = {digest(cell) for cell in self.read_source().cells}
        if self.notebook.is_file():
            try:
                halves[self.notebook] = set(texts(self.read()))
            except UnreadableError:
                halves[self.notebook] = {"unreadable"}
        return halves

    def later(self, *, if_same: Path) -> Path:
        """The half that was saved later; `if_same` if a pull or a copy wrote both at once."""
        notebook, source = (half.stat().st_mtime_ns for half in (self.notebook, self.source))
        if abs(notebook - source) <= SAME_AGE:
            return if_same
        return self.notebook if notebook > source else self.source

    def keep(self, half: Path) -> Path:
        """Copy one half to a notebook of its own, beside the pair; nothing is overwritten."""
        stamp = time.strftime("%Y-%m-%d-%H%M")
        name, number = f"{self.notebook.stem}.kept-{stamp}", 1
        while (copy := self.notebook.with_name(f"{name}.ipynb")).exists():
            number += 1
            name = f"{self.notebook.stem}.kept-{stamp}-{number}"
        try:
            notebook = self.read() if half == self.notebook else self.read_source()
        except UnreadableError:
            shutil.copyfile(half, copy)  # whatever it is, as it is
            return copy
        # A notebook for itself: without this, saving it in Lab would write a source, too.
        notebook.metadata["jupytext"] = {"formats": "ipynb"}
        with copy.open("x", encoding="utf-8") as file:
            nbformat.write(notebook, file)
        return copy

    def keep_edits(self) -> Path | None:
        """Keep the notebook if it holds what its source lacks; where the copy is, if one was made."""
        if not self.whole or not self.notebook.stat().st_size:
            return None
        try:
            lost = bool(self.difference().in_notebook)
        except UnreadableError:
            lost = True
        return self.keep(self.notebook) if lost else None

    def choose(self, difference: Difference) -> tuple[Path, bool]:
        """The half to open, and whether the other one holds cells that would be lost."""
        _, in_notebook, in_source = difference
        if in_notebook and in_source:
            return self.later(if_same=self.notebook), True  # there a learner writes
        if in_notebook or in_source:
            return (self.notebook if in_notebook else self.source), False
        return self.later(if_same=self.source), False

    def make_notebook_no_newer(self) -> None:
        """Set back the notebook's time, which says nothing here: jupytext refuses pairs by it."""
        notebook, source = (half.stat() for half in (self.notebook, self.source))
        if notebook.st_mtime_ns > source.st_mtime_ns:
            os.utime(self.notebook, ns=(notebook.st_atime_ns, source.st_mtime_ns))


# Lab --------------------------------------------------------------------------


def is_committed(path: Path) -> bool:
    """Whether git holds this file as it is; False without git, or outside of a repository."""

    def git(*command: str) -> str:
        done = subprocess.run(
            ["git", *command],
            cwd=path.parent,
            capture_output=True,
            text=True,
            check=True,
            timeout=10,
        )
        return done.stdout.strip()

    try:
        return git("rev-parse", f"HEAD:./{path.name}") == git("hash-object", path.name)
    except (OSError, subprocess.SubprocessError):
        return False


def of_the_kernel(metadata: dict) -> dict:
    """What Lab writes into a notebook's metadata when its kernel starts; nothing for a kernel of another kind.

    With it there from the start, opening a notebook does not mark it as changed.
    """
    from ipykernel.ipkernel import IPythonKernel
    from jupyter_client.kernelspec import KernelSpecManager, NoSuchKernel

    name = metadata.get("kernelspec", {}).get("name")
    if name != "python3":
        return {}
    try:
        spec = KernelSpecManager().get_kernel_spec(name)
    except NoSuchKernel:
        return {}
    kernel = {"name": name, "display_name": spec.display_name, "language": spec.language}
    return {"kernelspec": kernel, "language_info": dict(IPythonKernel.language_info)}


def note(copy: Path, why: str) -> NotebookNode:
    """The cell above an opened notebook that tells of a copy; it has the tag `NOTE`."""
    text = (
        f"**{why}** The other version is kept as [{copy.name}]({copy.name}): copy from it what you "
        "miss here, and delete it when you are done. This note is not saved."
    )
    return nbformat.v4.new_markdown_cell(text, metadata={"tags": [NOTE]})


class PairedContents(AsyncTextFileContentsManager):
    """Jupytext's contents manager, which compares a pair's halves before it opens or saves them."""

    def __init__(self, *args: object, **options: object):
        self._known: dict[Pair, set[str]] = {}  # the cells that this server read or wrote last
        super().__init__(*args, **options)

    async def get(self, path, content=True, type=None, format=None, **options):
        """A file's model. Both halves of a pair agree afterwards, or cannot be written."""
        pair = self._pair(path) if content and type in (None, "notebook") else None
        if pair is None or not pair.whole:
            return await super().get(path, content, type, format, **options)
        added = None
        try:
            added = await self._settle(pair, path)
        except (OSError, HTTPError) as error:
            self.log.warning("%s is opened without its source: %s", path, error)
            options["load_alternative_format"] = False
        model = await super().get(path, content, type, format, **options)
        notebook = model["content"]
        notebook.metadata.update(of_the_kernel(notebook.metadata))
        self._known[pair] = set().union(*pair.cells().values())
        if added:
            if notebook.nbformat_minor < 5:
                del added["id"]
            notebook.cells.insert(0, added)
        return model

    async def save(self, model, path=""):
        """Save both halves, without the note; keep what somebody else has put there meanwhile."""
        pair = self._pair(path) if model.get("type") == "notebook" else None
        if pair is None or not model.get("content"):
            return await super().save(model, path)
        notebook = nbformat.from_dict(model["content"])
        notebook.cells = [c for c in notebook.cells if NOTE not in c.metadata.get("tags", [])]
        if (kernel := notebook.metadata.get("kernelspec", {})).get("name") == "python3":
            kernel["display_name"] = "Python 3"  # as committed, whatever this machine calls it
        written = set(texts(notebook))
        self._keep_what_others_wrote(pair, written)
        saved = await super().save({**model, "content": notebook}, path)
        self._known[pair] = written
        return saved

    async def restore_checkpoint(self, checkpoint_id, path):
        """Go back to an earlier notebook; its source follows."""
        await super().restore_checkpoint(checkpoint_id, path)
        pair = self._pair(path)
        if pair and pair.whole:
            await self._settle(pair, path, reverted=True)

    def mark_trusted_cells(self, nb, path=""):
        """Trust a chapter as it was committed: its quizzes answer before any cell has run."""
        pair = self._pair(path)
        if pair and not self.notary.check_signature(nb) and is_committed(pair.notebook):
            self.notary.sign(nb)
        super().mark_trusted_cells(nb, path)

    def _pair(self, path: str) -> Pair | None:
        return Pair.of(Path(self._get_os_path(path.strip("/"))))

    async def _settle(self, pair: Pair, path: str, *, reverted: bool = False):
        """Choose a half and, if it is needed, write it into the other; the note on a copy, if any."""
        try:
            difference = pair.difference()
        except UnreadableError:
            copy = pair.keep(pair.notebook)
            self.log.warning("%s is no notebook: kept as %s", pair.notebook, copy.name)
            await self._write(pair, path, pair.read_source())
            return note(copy, "The notebook could not be read. You see its source.")
        if not difference.any:
            pair.make_notebook_no_newer()
            return None
        winner, loses = pair.choose(difference)
        if reverted:
            winner, loses = pair.notebook, bool(difference.in_source)
        loser = pair.source if winner == pair.notebook else pair.notebook
        copy = pair.keep(loser) if loses else None
        kept = f", the other is kept as {copy.name}" if copy else ""
        self.log.warning("%s and its source differ: %s is opened%s", path, winner.name, kept)
        if winner == pair.notebook:
            await self._write(pair, path, pair.read())
        else:
            pair.make_notebook_no_newer()
            if copy:
                model = await super().get(self._notebook_path(pair, path))
                await self._write(pair, path, model["content"])
        if copy is None:
            return None
        half = "notebook" if winner == pair.notebook else f"source, {winner.name}"
        return note(copy, f"This notebook and its source were both changed. You see the {half}.")

    def _notebook_path(self, pair: Pair, path: str) -> str:
        """The notebook's path for Jupyter, from that of either half."""
        parts = path.strip("/").split("/")[: -2 if path.endswith(".py") else -1]
        return "/".join([*parts, pair.notebook.name])

    async def _write(self, pair: Pair, path: str, notebook: NotebookNode) -> None:
        """Save both halves."""
        model = {"type": "notebook", "content": notebook}
        await super().save(model, self._notebook_path(pair, path))

    def _keep_what_others_wrote(self, pair: Pair, written: set[str]) -> None:
        """Keep each half whose file holds cells that this server has neither read nor is to write."""
        known = self._known.get(pair, set()) | written
        for half, cells in pair.cells().items():
            if not known >= cells:
                copy = pair.keep(half)
                self.log.warning("%s was changed elsewhere: kept as %s", half.name, copy.name)
                known |= cells
