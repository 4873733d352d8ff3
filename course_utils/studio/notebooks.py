"""Source in, executed notebook out: ``notebooks/source/NN.py`` becomes ``notebooks/NN.ipynb``.

`make` executes and cleans, so that running twice changes no byte. `check` holds a committed notebook
against its source and against `rules`.
"""

import asyncio
import contextlib
import json
import os
import re
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path

from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from course_utils.files import ROOT
from course_utils.studio import StudioError, kernel, rules
from course_utils.studio.manifest import Chapter
from course_utils.studio.page import Page
from course_utils.studio.pairs import (
    UnreadableError,
    bare,
    differences,
    is_edited,
    read,
    read_source,
    sync,
    write,
)

CELL_TIMEOUT = 900  # seconds: a cell may take 15, and a busy machine many times as long


class NotebookError(StudioError):
    """A notebook that could not be made: which one, which cell, and why."""


# Executing --------------------------------------------------------------------


class ThisInterpreter(AsyncKernelManager):
    """Starts kernels with the Python that runs this, whatever kernelspecs the machine has."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """How a kernel is started."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        argv.append("--log-level=ERROR")  # recent kernels warn at each start that they speak TCP
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


class Client(NotebookClient):
    """Ends the kernel when this process is told to stop, even if the running cell refuses to."""

    stopped = False

    def obey_signals(self) -> None:
        """Take over from nbclient, whose own handlers end in an error of their own."""
        loop = asyncio.get_running_loop()
        with contextlib.suppress(RuntimeError):  # not the main thread, or Windows
            for number in (signal.SIGINT, signal.SIGTERM):
                loop.add_signal_handler(number, self._stop)

    def _stop(self) -> None:
        self.stopped = True
        os.kill(self.km.provisioner.pid, signal.SIGKILL)


def execute(
    notebook: NotebookNode,
    *,
    cwd: Path | str,
    env: Mapping[str, str] | None = None,
    progress: str | None = None,
) -> NotebookNode:
    """Run all cells in a fresh kernel and fill in their outputs, in place.

    Args:
        notebook: as `read_source` gives it.
        cwd: the folder in which the kernel starts.
        env: variables added to this process's own.
        progress: the label of a bar over the cells, shown in a terminal; None shows none.

    Returns:
        The same notebook; ``metadata.peak_mb`` is the kernel's peak memory, where it is known.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
        nbclient.exceptions.CellTimeoutError: a cell took longer than CELL_TIMEOUT.
        nbclient.exceptions.DeadKernelError: the kernel ended, for lack of memory perhaps.
        KeyboardInterrupt: this process was told to stop; the kernel has ended, too.
    """
    bar = tqdm(
        total=len(notebook.cells),
        desc=progress,
        unit="cell",
        leave=False,
        disable=None if progress else True,
    )

    def note(cell: NotebookNode, cell_index: int, **_: object) -> None:
        bar.update(cell_index + 1 - bar.n)
        notebook.metadata["peak_mb"] = _peak_mb(client.km.provisioner.pid)

    client = Client(
        notebook,
        kernel_manager_class=ThisInterpreter,
        resources={"metadata": {"path": str(cwd)}},
        timeout=CELL_TIMEOUT,
        record_timing=False,
        store_widget_state=False,
        on_cell_executed=note,
        on_notebook_start=lambda notebook: client.obey_signals(),
    )
    with bar:
        try:
            client.execute(env=_environment() | dict(env or {}))
        except DeadKernelError:
            if client.stopped:
                raise KeyboardInterrupt from None
            raise
    return notebook


def _environment() -> dict[str, str]:
    """This process's variables, with the course in reach even where it is not installed."""
    paths = [str(ROOT), os.environ.get("PYTHONPATH", "")]
    return kernel.environment() | {
        "PYTHONPATH": os.pathsep.join(filter(None, paths)),
        "COURSE_STRICT": "1",  # a broken claim is an error, and nothing of this machine is shown
    }


def _peak_mb(pid: int) -> int | None:
    """The most memory a process has held so far, in MB; None where there is no /proc."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return None
    return round(int(found[1]) * 1024 / 1e6) if found else None


# Cleaning ---------------------------------------------------------------------


def clean(notebook: NotebookNode) -> NotebookNode:
    """Drop, in place, what differs between two runs or machines and says nothing to a reader."""
    executed = 0
    for cell in bare(notebook).cells:
        if cell.cell_type == "code":
            if cell.execution_count is not None:
                executed += 1
                cell.execution_count = executed
            cell.outputs = _clean_outputs(cell)
    return notebook


def _clean_outputs(cell: NotebookNode) -> list[NotebookNode]:
    outputs: list[NotebookNode] = []
    for output in cell.outputs:
        before = outputs[-1] if outputs else {}
        if output.output_type == "stream" and output.name == before.get("name"):
            before.text += output.text  # the kernel happened to send it in pieces
        else:
            outputs.append(output)
    for output in outputs:
        output.pop("transient", None)
        output.get("data", {}).pop(rules.WIDGET_VIEW, None)
        if "execution_count" in output:
            output.execution_count = cell.execution_count
        if output.output_type == "stream":
            output.text = re.sub(r"\S*ipykernel_\d+\S*\.py", "<cell>", output.text)
            output.text = re.sub(r"\S*site-packages/", "", output.text)
    return [output for output in outputs if output.get("data") != {}]


def keep_measured(notebook: NotebookNode, old: NotebookNode) -> NotebookNode:
    """Keep the old outputs of cells that measure this machine, unless more than numbers changed.

    A cell tagged ``nbval-ignore-output`` prints other seconds at each run; with this, making the
    notebook again changes no byte.
    """
    before = {cell.get("id"): cell for cell in old.cells}
    for cell in notebook.cells:
        measured = rules.IGNORE in rules.tags(cell) and cell.id in before
        if measured and _gist(cell) == _gist(before[cell.id]):
            cell.outputs = before[cell.id].outputs
    return clean(notebook)


def _gist(cell: NotebookNode) -> str:
    """A cell's outputs without pictures, counts, numbers, units and spacing."""
    outputs = json.dumps(cell.get("outputs", []), sort_keys=True, ensure_ascii=False)
    outputs = re.sub(r'"image/[^"]+": "[^"]*"', "", outputs)
    number, unit = r"[-−+]?\d[\d.,]*(e[-+]?\d+)?", r"([kKMGTµμmn]?i?(s|B|Hz)\b)?"
    return re.sub(rf"{number}\s*{unit}|\\n|\s+", "", outputs)


# Making one notebook ----------------------------------------------------------


def make(chapter: Chapter, *, fresh: bool = False) -> str:
    """Execute a chapter's source and put the clean notebook in place of the old one.

    What was written into the old notebook alone goes into the source first.

    Args:
        chapter: which one.
        fresh: also renew the outputs of cells that measure this machine.

    Returns:
        One line with the seconds, the peak memory, and what happened to the source.

    Raises:
        NotebookError: nothing was made, and the old notebook is as it was.
    """
    from course_utils.studio.first_states import fill  # slow to import

    start = time.perf_counter()
    if not chapter.source.is_file():
        raise NotebookError(f"{chapter.notebook}: {chapter.source} is missing; write it first.")
    kept = _settle(chapter)
    notebook = read_source(chapter.source)
    try:
        execute(notebook, cwd=chapter.ipynb.parent, progress=chapter.notebook)
    except CellTimeoutError:
        raise _failure(chapter, f"a cell took more than {CELL_TIMEOUT} s") from None
    except DeadKernelError:
        raise _failure(chapter, "the kernel ended, for lack of memory perhaps") from None
    except CellExecutionError:
        raise _failure(chapter, *_first_error(notebook)) from None
    peak = notebook.metadata.get("peak_mb")
    fill(clean(notebook))
    with contextlib.suppress(OSError, UnreadableError):
        notebook = notebook if fresh else keep_measured(notebook, read(chapter.ipynb))
    write(notebook, chapter.ipynb)
    said = f"{chapter.notebook}: {time.perf_counter() - start:.1f} s"
    said += f", {peak} MB" if peak else ""
    return said + (f"; {kept}" if kept else "")


def _settle(chapter: Chapter) -> str:
    """Bring what was written in Lab to the source first; what happened."""
    with contextlib.suppress(OSError, UnreadableError):  # what is no notebook is made anew
        if is_edited(read(chapter.ipynb)):
            return sync(chapter.source, chapter.ipynb)
    return ""


def _failure(chapter: Chapter, reason: str, *details: str) -> NotebookError:
    kept = f"{chapter.ipynb.name} is as it was"
    return NotebookError("\n".join([f"{chapter.notebook}: {reason}; {kept}.", *details]))


def _first_error(notebook: NotebookNode) -> list[str]:
    """Which cell failed, its text, and the end of its traceback."""
    place, cell, error = next(
        (place, cell, output)
        for place, cell in enumerate(notebook.cells)
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    )
    traceback = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback))
    lines = [line for line in traceback.splitlines() if line.strip()]
    source = ["    " + line for line in cell.source.splitlines()]
    return [f"cell {place} failed", *source, *("  | " + line for line in lines[-12:])]


# Comparing --------------------------------------------------------------------


def pair_differences(chapter: Chapter) -> list[str]:
    """The lines in which a notebook differs from its source."""
    return differences(read_source(chapter.source), read(chapter.ipynb))


def check(chapter: Chapter) -> list[str]:
    """What is wrong with a committed notebook: it differs from its source, or breaks a rule."""
    return pair_differences(chapter) + broken_rules(chapter)


def broken_rules(chapter: Chapter) -> list[str]:
    """The rules that a committed notebook breaks."""
    return rules.complaints(Page(read(chapter.ipynb)))
