"""Source in, executed notebook out: ``notebooks/source/NN.py`` becomes ``notebooks/NN.ipynb``.

``python -m course_utils.notebooks run [CHAPTER …]`` executes and cleans, so that running twice changes no byte;
``check`` holds the committed notebooks against :mod:`course_utils.rules` and against their sources;
``handout [--to DIR]`` writes the course without solutions and outputs. CHAPTER is the start of a name, such as ``02``.

Stands above :mod:`course_utils.book`, which executes through :func:`execute`, and below :mod:`course_utils.manifest`.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import sys
import time
from collections import Counter
from collections.abc import Iterable, Mapping
from pathlib import Path

import jupytext
import nbformat
from jupyter_client.kernelspec import KernelSpec
from jupyter_client.manager import AsyncKernelManager
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, DeadKernelError
from nbformat import NotebookNode
from tqdm import tqdm

from course_utils import manifest, rules
from course_utils.manifest import Chapter, ManifestError
from course_utils.runtime import ROOT

CELL_TIMEOUT = 600  # seconds; far above what a chapter may take
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
METADATA = {
    "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
    "language_info": {
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "pygments_lexer": "ipython3",
    },
}


class NotebookError(RuntimeError):
    """A notebook that could not be made: which one, which cell, and why."""


# Executing ------------------------------------------------------------------------------------------------------------


def read_source(path: Path) -> NotebookNode:
    """The notebook that a jupytext py:percent file describes, with stable cell ids and no outputs."""
    notebook = jupytext.read(path, fmt="py:percent")
    notebook.metadata = nbformat.from_dict(METADATA)
    notebook.nbformat, notebook.nbformat_minor = 4, 5
    for cell in notebook.cells:
        cell.metadata.pop("lines_to_next_cell", None)  # jupytext's memory of blank lines
    return name_cells(notebook)


class ThisInterpreter(AsyncKernelManager):
    """Starts kernels with the Python that runs this, whatever kernelspecs a machine has."""

    @property
    def kernel_spec(self) -> KernelSpec:
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        argv += ["--log-level=ERROR"]  # recent kernels warn at each start that they speak TCP
        return KernelSpec(argv=argv, display_name="Python 3", language="python")


def execute(
    notebook: NotebookNode,
    *,
    cwd: Path | str,
    env: Mapping[str, str] | None = None,
    progress: str | None = None,
) -> NotebookNode:
    """Run all cells in a fresh kernel and fill in their outputs, in place.

    Args:
        notebook: as :func:`read_source` gives it.
        cwd: the folder in which the kernel starts.
        env: variables added to this process's own, such as ``{"COURSE_BOOK": "1"}``, which is never inherited.
        progress: the label of a bar over the cells; None shows none.

    Returns:
        the same notebook, with ``metadata.peak_mb`` where the system tells the kernel's peak memory.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed.
        nbclient.exceptions.DeadKernelError: the kernel ended, by an interrupt or for lack of memory.
    """
    inherited = {name: value for name, value in os.environ.items() if name != "COURSE_BOOK"}
    inherited["PYTHONPATH"] = os.pathsep.join(
        filter(None, [str(ROOT), inherited.get("PYTHONPATH")])
    )
    bar = tqdm(
        total=len(notebook.cells),
        desc=progress,
        unit="cell",
        leave=False,
        disable=None if progress else True,
    )
    client = NotebookClient(
        notebook,
        kernel_manager_class=ThisInterpreter,
        resources={"metadata": {"path": str(cwd)}},
        timeout=CELL_TIMEOUT,
        record_timing=False,
        store_widget_state=False,
        on_cell_complete=lambda cell, cell_index: bar.update(cell_index + 1 - bar.n),
    )

    def note_peak(cell: NotebookNode, cell_index: int, execute_reply: dict) -> None:
        notebook.metadata["peak_mb"] = _peak_mb(client.km.provisioner.pid)

    client.on_cell_executed = note_peak
    with bar:
        client.execute(env=inherited | dict(env or {}))
    return notebook


def _peak_mb(pid: int) -> int | None:
    """The most memory a process has held so far, in MB; None where there is no /proc."""
    try:
        found = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    except OSError:
        return None
    return int(found[1]) // 1000 if found else None


# Cleaning -------------------------------------------------------------------------------------------------------------


def name_cells(notebook: NotebookNode) -> NotebookNode:
    """Give each cell an id made from its content, so that a new cell leaves the ids of the others alone."""
    seen: Counter[str] = Counter()
    for cell in notebook.cells:
        digest = hashlib.sha256(f"{cell.cell_type}\n{cell.source}".encode()).hexdigest()[:8]
        seen[digest] += 1
        cell["id"] = digest if seen[digest] == 1 else f"{digest}-{seen[digest]}"
    return notebook


def clean(notebook: NotebookNode) -> NotebookNode:
    """Drop, in place, whatever differs between two runs or two machines and says nothing to a reader."""
    notebook.metadata = nbformat.from_dict(METADATA)
    count = 0
    for cell in name_cells(notebook).cells:
        for noise in ("execution", "trusted", "widgets"):
            cell.metadata.pop(noise, None)
        if cell.cell_type == "code":
            executed = cell.execution_count is not None
            count += executed
            cell.execution_count = count if executed else None
            cell.outputs = [
                _clean_output(output, cell.execution_count)
                for output in _merge_streams(cell.outputs)
            ]
            cell.outputs = [output for output in cell.outputs if output.get("data") != {}]
    return notebook


def _merge_streams(outputs: Iterable[NotebookNode]) -> list[NotebookNode]:
    """Join text that the kernel happened to send in several pieces."""
    merged: list[NotebookNode] = []
    for output in outputs:
        before = merged[-1] if merged else None
        if (
            before
            and output.output_type == before.output_type == "stream"
            and output.name == before.name
        ):
            before.text += output.text
        else:
            merged.append(output)
    return merged


def _clean_output(output: NotebookNode, count: int | None) -> NotebookNode:
    output.pop("transient", None)
    if "execution_count" in output:
        output.execution_count = count
    if output.output_type == "stream":
        output.text = re.sub(r"\S*ipykernel_\d+\S*\.py", "<cell>", output.text)
        output.text = re.sub(r"\S*site-packages/", "", output.text)
    for part in ("data", "metadata"):
        output.get(part, {}).pop(WIDGET_VIEW, None)
    return output


def keep_measured(notebook: NotebookNode, old: NotebookNode) -> NotebookNode:
    """Keep the old outputs of cells that measure this machine, unless more than the numbers has changed.

    A cell tagged ``nbval-ignore-output`` prints other seconds at each run; with this, running again changes no byte.
    """
    before = {cell.id: cell for cell in old.cells}
    for cell in notebook.cells:
        if (
            rules.IGNORE in rules.tags(cell)
            and cell.id in before
            and _gist(cell) == _gist(before[cell.id])
        ):
            cell.outputs = before[cell.id].outputs
            for output in cell.outputs:
                _clean_output(output, cell.execution_count)
    return notebook


def _gist(cell: NotebookNode) -> str:
    """A cell's outputs without pictures, numbers, units and spacing."""
    outputs = json.dumps(cell.get("outputs", []), sort_keys=True, ensure_ascii=False)
    outputs = re.sub(r'"image/\w+": "[^"]*"', "", outputs)
    return re.sub(r"[-−+]?\d[\d.,eE+×⁻-]*\s*([kKMGµmn]?i?(s|B|Hz)\b)?|\\n|\s+", "", outputs)


# Making one notebook --------------------------------------------------------------------------------------------------


def make(chapter: Chapter, *, fresh: bool = False) -> str:
    """Execute a chapter's source and put the clean notebook in place of the old one, all at once or not at all.

    Args:
        chapter: which one.
        fresh: also renew the outputs of cells that measure this machine.

    Returns:
        one line with the seconds and the peak memory.

    Raises:
        NotebookError: a cell failed or the kernel ended; the old notebook is as it was.
    """
    start = time.perf_counter()
    notebook = read_source(chapter.source)
    try:
        execute(notebook, cwd=chapter.ipynb.parent, progress=chapter.notebook)
    except CellExecutionError:
        raise NotebookError(_failure(chapter, notebook)) from None
    except DeadKernelError:
        raise NotebookError(
            f"{chapter.notebook}: the kernel ended, by an interrupt or for lack of memory. The old notebook is as it was."
        ) from None
    peak = notebook.metadata.get("peak_mb")
    clean(notebook)
    if chapter.ipynb.is_file() and not fresh:
        keep_measured(notebook, nbformat.read(chapter.ipynb, as_version=4))
    write(notebook, chapter.ipynb)
    # A pair of one age: jupytext asks no reader of Lab which of the two is right.
    shutil.copystat(chapter.source, chapter.ipynb)
    return f"{chapter.notebook}: {time.perf_counter() - start:.1f} s" + (
        f", {peak} MB" if peak else ""
    )


def write(notebook: NotebookNode, path: Path) -> None:
    """Write under a temporary name in the same folder, then rename: a reader sees the old file or the new one."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        temporary.write_text(nbformat.writes(notebook).rstrip("\n") + "\n", encoding="utf-8")
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _failure(chapter: Chapter, notebook: NotebookNode) -> str:
    """Which cell failed, its text, and the end of its traceback."""
    place, cell, error = next(
        (place, cell, output)
        for place, cell in enumerate(notebook.cells)
        for output in cell.get("outputs", [])
        if output.output_type == "error"
    )
    traceback = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(error.traceback)).splitlines()
    return "\n".join(
        [
            f"{chapter.notebook}: cell {place} of {chapter.source.name} failed; the old notebook is as it was.",
            *("    " + line for line in cell.source.splitlines()),
            *("  | " + line for line in traceback[-12:]),
        ]
    )


# Comparing ------------------------------------------------------------------------------------------------------------


def pair_differences(chapter: Chapter) -> list[str]:
    """Where the notebook and its source disagree in a cell's kind, text or metadata (tags among them)."""
    source, made = read_source(chapter.source), nbformat.read(chapter.ipynb, as_version=4)
    remedy = f"'make notebooks CHAPTER={chapter.number}' makes the notebook from its source"
    if len(source.cells) != len(made.cells):
        return [
            f"the source has {len(source.cells)} cells and the notebook {len(made.cells)}; {remedy}"
        ]
    return [
        f"cell {place}: {part} differs between source and notebook; {remedy}"
        for place, (left, right) in enumerate(zip(source.cells, made.cells, strict=True))
        for part in ("cell_type", "source", "metadata")
        if left[part] != right[part]
    ]


def check(chapter: Chapter) -> list[str]:
    """All that is wrong with a committed notebook: the rules it breaks and where it differs from its source."""
    notebook = nbformat.read(chapter.ipynb, as_version=4)
    return [
        *pair_differences(chapter),
        *rules.complaints(notebook, first=not chapter.prerequisites),
    ]


# The handout ----------------------------------------------------------------------------------------------------------

HANDOUT_HEAD = "# The course, without its solutions\n"
HANDOUT_README = (
    HANDOUT_HEAD
    + """
These are the notebooks to work through: exercises are open, outputs are empty, and every check tells you at once whether
you are right. Type `make lab`; it makes an environment and opens JupyterLab on the first chapter. Without make, see
`make -n lab` on any machine, or `pip install -c constraints.txt -e .` and then `jupyter lab notebooks`.
"""
)
HANDOUT_PARTS = (
    "Makefile", "LICENSE", "book.toml", "constraints.txt", "environment.yml", "pyproject.toml", "course_utils", "data",
    "notebooks/quizzes", "notebooks/references.bib",
)  # fmt: skip


def without_solutions(notebook: NotebookNode) -> NotebookNode:
    """A copy with no solution cells and no outputs."""
    from nbconvert.preprocessors import ClearOutputPreprocessor, TagRemovePreprocessor

    notebook = nbformat.from_dict(json.loads(json.dumps(notebook)))
    for preprocessor in (
        TagRemovePreprocessor(remove_cell_tags={"solution"}),
        ClearOutputPreprocessor(),
    ):
        notebook, _ = preprocessor.preprocess(notebook, {})
    return notebook


def handout(course: manifest.Manifest, to: Path) -> Path:
    """Write a course to hand out: both halves of each pair without solutions, and all that they need to run.

    Raises:
        NotebookError: the folder holds something that is not an earlier handout.
    """
    readme = to / "README.md"
    earlier = readme.is_file() and readme.read_text(encoding="utf-8").startswith(HANDOUT_HEAD)
    if to.exists() and any(to.iterdir()) and not earlier:
        raise NotebookError(
            f"{to} is not empty and no earlier handout. Name another folder with --to, or empty it."
        )
    root = course.chapters[0].root
    shutil.rmtree(to, ignore_errors=True)
    (to / "notebooks" / "source").mkdir(parents=True)
    readme.write_text(HANDOUT_README, encoding="utf-8")
    for part in HANDOUT_PARTS:
        if (root / part).is_dir():
            shutil.copytree(
                root / part, to / part, ignore=shutil.ignore_patterns("__pycache__", ".*")
            )
        elif (root / part).is_file():
            shutil.copy(root / part, to / part)
    for chapter in course.chapters:
        notebook = without_solutions(read_source(chapter.source))
        write(notebook, to / "notebooks" / chapter.ipynb.name)
        del notebook.metadata["kernelspec"], notebook.metadata["language_info"]
        jupytext.write(
            notebook, to / "notebooks" / "source" / chapter.source.name, fmt="py:percent"
        )
    return to


# The command ----------------------------------------------------------------------------------------------------------


def choose(course: manifest.Manifest, names: Iterable[str]) -> list[Chapter]:
    """The chapters whose names begin so, in the course's order; all of them if no name is given."""
    names = list(names)
    for name in names:
        if not any(chapter.notebook.startswith(name) for chapter in course.chapters):
            known = ", ".join(chapter.notebook for chapter in course.chapters)
            raise NotebookError(f"no chapter begins with {name!r}; there are {known}.")
    return [
        chapter
        for chapter in course.chapters
        if not names or chapter.notebook.startswith(tuple(names))
    ]


def main(argv: list[str] | None = None) -> int:
    """Run one command; 0 if all went well, 1 with the reason on stderr if not."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.notebooks", description="Make, check and hand out notebooks."
    )
    parser.add_argument("--manifest", type=Path, default=ROOT / "book.toml", help=argparse.SUPPRESS)
    commands = parser.add_subparsers(dest="command", required=True)
    run = commands.add_parser("run", help="execute sources into clean notebooks")
    run.add_argument(
        "chapters",
        nargs="*",
        metavar="CHAPTER",
        help="the start of a name, such as 02; default: all",
    )
    run.add_argument(
        "--fresh",
        action="store_true",
        help="also renew what cells tagged nbval-ignore-output measured",
    )
    commands.add_parser("check", help="hold notebooks against their sources and the rules")
    hand = commands.add_parser("handout", help="write the course without solutions and outputs")
    hand.add_argument("--to", type=Path, default=ROOT / "_build" / "handout", metavar="DIR")
    options = parser.parse_args(argv)
    try:
        return {"run": _run, "check": _check, "handout": _handout}[options.command](options)
    except (ManifestError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1


def _run(options: argparse.Namespace) -> int:
    for chapter in choose(manifest.load(options.manifest, files=False), options.chapters):
        if not chapter.source.is_file():
            raise NotebookError(
                f"{chapter.notebook}: {chapter.source} is not on disk. Write it, or remove it from book.toml."
            )
        print(make(chapter, fresh=options.fresh), flush=True)
    return 0


def _check(options: argparse.Namespace) -> int:
    course = manifest.load(options.manifest)
    found = [
        f"{chapter.notebook}: {complaint}"
        for chapter in course.chapters
        for complaint in check(chapter)
    ]
    print(
        "\n".join(found)
        if found
        else f"{len(course.chapters)} notebooks agree with their sources and the rules."
    )
    return 1 if found else 0


def _handout(options: argparse.Namespace) -> int:
    print(f"The handout is in {handout(manifest.load(options.manifest, files=False), options.to)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
