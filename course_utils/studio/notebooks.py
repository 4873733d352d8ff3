"""Making a notebook: ``notebooks/source/NN.py`` is executed and becomes ``notebooks/NN.ipynb``.

`make` executes and cleans, so that running twice changes no byte. `check` holds a committed notebook
against its source and against `rules`.
"""

import asyncio
import contextlib
import json
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

from course_utils.files import ROOT
from course_utils.kit.mime import WIDGET_VIEW
from course_utils.studio import StudioError, kernel, rules
from course_utils.studio.content import Content
from course_utils.studio.manifest import Chapter
from course_utils.studio.notebook_files import (
    UnreadableError,
    differences,
    is_edited,
    normalize,
    read_notebook,
    read_source,
    sync,
    write_notebook,
)

CELL_TIMEOUT = 900  # seconds: a cell may take 15, and a busy machine many times as long
MEASURED = "nbval-ignore-output"  # the tag of a cell that prints other numbers at each run


# Executing --------------------------------------------------------------------


class ThisInterpreter(AsyncKernelManager):
    """A kernel manager that starts the Python that runs this, whatever kernelspecs the machine has."""

    @property
    def kernel_spec(self) -> KernelSpec:
        """The command that starts a kernel."""
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        argv.append("--log-level=ERROR")  # recent kernels warn at each start that they speak TCP
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


NO_CACHE = ROOT / "_build" / "no-cache"
"""A folder that holds no large data, so that a notebook comes out the same whatever its author has fetched."""


def execute(
    notebook: NotebookNode, *, cwd: Path | str, env: Mapping[str, str] | None = None
) -> NotebookNode:
    """Run all cells in a fresh kernel and fill in their outputs, in place.

    Args:
        notebook: as `read_source` gives it.
        cwd: the folder in which the kernel starts.
        env: variables added to the clean environment.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
        nbclient.exceptions.CellTimeoutError: a cell took longer than CELL_TIMEOUT.
        nbclient.exceptions.DeadKernelError: the kernel ended, for lack of memory perhaps.
    """
    client = NotebookClient(
        notebook,
        kernel_manager_class=ThisInterpreter,
        resources={"metadata": {"path": str(cwd)}},
        timeout=CELL_TIMEOUT,
        record_timing=False,
        store_widget_state=False,
        shutdown_kernel="immediate",
        on_notebook_start=_let_interrupts_through,
    )
    return client.execute(env=kernel.clean_environment() | dict(env or {}))


def _let_interrupts_through(**_: object) -> None:
    """Undo nbclient's own handlers, which end in an error that says nothing of an interrupt."""
    with contextlib.suppress(RuntimeError, NotImplementedError):  # another thread, or Windows
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().remove_signal_handler(number)


# Cleaning ---------------------------------------------------------------------


def clean(notebook: NotebookNode) -> NotebookNode:
    """Drop, in place, what differs between two runs or machines: counters, paths, widget views, broken-up streams."""
    executed = 0
    for cell in normalize(notebook).cells:
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
        output.get("data", {}).pop(WIDGET_VIEW, None)
        if "execution_count" in output:
            output.execution_count = cell.execution_count
        if output.output_type == "stream":
            output.text = re.sub(r"\S*ipykernel_\d+\S*\.py", "<cell>", output.text)
            output.text = re.sub(r"\S*site-packages/", "", output.text)
    return [output for output in outputs if output.get("data") != {}]


def keep_measured(notebook: NotebookNode, old: NotebookNode) -> NotebookNode:
    """The notebook with the old outputs of cells tagged MEASURED, unless more than numbers changed."""
    before = {cell.get("id"): cell for cell in old.cells}
    for cell in notebook.cells:
        is_measured = MEASURED in cell.metadata.get("tags", ()) and cell.id in before
        if is_measured and _without_numbers(cell) == _without_numbers(before[cell.id]):
            cell.outputs = before[cell.id].outputs
    return clean(notebook)


def _without_numbers(cell: NotebookNode) -> str:
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
        One line with the seconds, and what happened to the source.

    Raises:
        StudioError: nothing was made, and the old notebook is as it was.
    """
    from course_utils.studio.first_states import fill  # slow to import

    start = time.perf_counter()
    if not chapter.source.is_file():
        raise StudioError(
            f"{chapter.notebook}: {chapter.source} is missing; write it first. In a handout, which has no sources, "
            "give the command in a clone of the course."
        )
    synced, old = "", None
    with contextlib.suppress(OSError, UnreadableError):  # what is no notebook is made anew
        old = read_notebook(chapter.ipynb)
        synced = sync(chapter.source, chapter.ipynb) if is_edited(old) else ""
    notebook = read_source(chapter.source)
    try:
        execute(notebook, cwd=chapter.ipynb.parent, env={"COURSE_CACHE": str(NO_CACHE)})
    except (CellExecutionError, CellTimeoutError, DeadKernelError) as error:
        reason = re.sub(r"\x1b\[[\d;]*m", "", str(error)).strip()
        raise StudioError(
            f"{chapter.notebook}: {reason}\n{chapter.ipynb.name} is as it was."
        ) from None
    fill(clean(notebook))
    write_notebook(notebook if fresh or not old else keep_measured(notebook, old), chapter.ipynb)
    seconds = f"{chapter.notebook}: {time.perf_counter() - start:.1f} s"
    return f"{seconds}; {synced}" if synced else seconds


# Comparing --------------------------------------------------------------------


def check(chapter: Chapter) -> list[str]:
    """The faults of a committed notebook: differences from its source, and broken rules."""
    notebook = read_notebook(chapter.ipynb)
    return differences(read_source(chapter.source), notebook) + rules.complaints(Content(notebook))
