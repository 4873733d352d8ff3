"""Executing chapters for the book, once for each state of code, library, data and pinned versions.

The cache is jupyter-cache's: it finds an executed notebook by its code cells, so a change of prose
executes nothing. What it does not look at stands in the name of its folder: a digest of
``course_utils``, ``data`` and ``constraints.txt``.
"""

import copy
import hashlib
import json
import os
import shutil
import time
from pathlib import Path

from jupyter_cache import get_cache
from jupyter_cache.base import CacheBundleIn
from nbformat import NotebookNode

from course_utils.runtime import ROOT
from course_utils.studio import notebooks
from course_utils.studio.manifest import Chapter

INPUTS = ("course_utils", "data", "constraints.txt")
KEPT = 3  # caches of earlier states, for going back and forth between branches


def digest(root: Path = ROOT) -> str:
    """A name for the state of everything that chapters read beside their own code and their quiz."""
    state = hashlib.sha256()
    for name in INPUTS:
        entry = root / name
        for file in sorted(entry.rglob("*")) if entry.is_dir() else [entry]:
            if file.is_file() and "__pycache__" not in file.parts:
                state.update(
                    f"{file.relative_to(root).as_posix()}\0{file.stat().st_size}\0".encode()
                )
                state.update(file.read_bytes())
    return state.hexdigest()[:16]


def cache_folder(out: Path, root: Path = ROOT) -> Path:
    """The folder of the cache for the present state; of earlier ones only the newest few are kept."""
    folder = out / "cache" / digest(root)
    folder.mkdir(parents=True, exist_ok=True)
    folder.touch()
    earlier = sorted(folder.parent.iterdir(), key=lambda path: path.stat().st_mtime, reverse=True)
    for old in earlier[KEPT + 1 :]:
        shutil.rmtree(old)
    return folder


def executed(
    chapter: Chapter, folder: Path, *, progress: str | None = None
) -> tuple[NotebookNode, bool]:
    """The chapter's source with the outputs that it has in the book, and whether they came from the cache.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
    """
    notebook = notebooks.read_source(chapter.source)
    code, cache = code_only(notebook, _quiz(chapter)), get_cache(folder)
    try:
        done = cache.get_cache_bundle(cache.match_cache_notebook(code).pk).nb
        cached = True
    except KeyError:
        start = time.perf_counter()
        done = notebooks.execute(
            copy.deepcopy(code),
            cwd=chapter.ipynb.parent,
            env={"COURSE_BOOK": "1"},
            progress=progress,
        )
        _note_time(folder, chapter, time.perf_counter() - start, done.metadata.get("peak_mb"))
        done.metadata = code.metadata
        notebooks.clean(done)
        done.metadata = code.metadata
        cache.cache_notebook_bundle(
            CacheBundleIn(done, str(chapter.ipynb)), check_validity=False, overwrite=True
        )
        cached = False
    cells = (cell for cell in notebook.cells if cell.cell_type == "code")
    for cell, result in zip(cells, done.cells, strict=True):
        cell.outputs, cell.execution_count = result.outputs, result.execution_count
    return notebook, cached


def measured(folder: Path) -> dict[str, dict]:
    """By notebook what its execution took: `seconds`, `peak_mb` (or None) and `cores`."""
    path = folder / "times.json"
    return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}


def _note_time(folder: Path, chapter: Chapter, seconds: float, peak_mb: int | None) -> None:
    one = {"seconds": round(seconds, 1), "peak_mb": peak_mb, "cores": os.cpu_count()}
    times = json.dumps({**measured(folder), chapter.notebook: one}, indent=1)
    (folder / "times.json").write_text(times, encoding="utf-8")


def code_only(notebook: NotebookNode, quiz: bytes = b"") -> NotebookNode:
    """The notebook that is executed and looked up: code without tags, so that a new tag executes nothing.

    A cell reads the chapter's quiz, so the quiz counts as code: its digest stands in the kernelspec,
    which jupyter-cache compares too.
    """
    notebook = copy.deepcopy(notebook)
    notebook.cells = [cell for cell in notebook.cells if cell.cell_type == "code"]
    for cell in notebook.cells:
        cell.metadata, cell.outputs, cell.execution_count = NotebookNode(), [], None
    notebook.metadata.kernelspec["quiz"] = hashlib.sha256(quiz).hexdigest()
    return notebook


def _quiz(chapter: Chapter) -> bytes:
    path = chapter.root / "course_utils" / "lessons" / chapter.slug / "quiz.toml"
    return path.read_bytes() if path.is_file() else b""
