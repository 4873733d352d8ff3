"""`make runs` makes the stored runs that are missing or stale; `make gpu` runs the cells that need a GPU.

    python -m course_utils.studio.runs [--confirm] [CHAPTER …]
    python -m course_utils.studio.runs --gpu [CHAPTER …] [--quick]
    torchrun --nproc-per-node 8 -m course_utils.studio.runs --gpu [CHAPTER …]

CHAPTER is the start of a name: ``10``. Of a chapter's gpu cells, each runs after the first code cell (imports and
seed) and nothing else. With several processes each training is shared among them.
"""

import argparse
import ast
import os
import sys
from collections.abc import Sequence

import jupytext

from course_utils.kit import runs
from course_utils.kit.runs import StoredRun
from course_utils.runtime import has_gpu
from course_utils.studio import manifest
from course_utils.studio.manifest import Chapter, ManifestError
from course_utils.studio.notebooks import NotebookError, choose


def gpu_code(page: Chapter) -> list[str]:
    """The first code cell of a page and its cells tagged `gpu`, in order; nothing if it has none."""
    if not page.source.is_file():
        return []
    notebook = jupytext.read(page.source, fmt="py:percent")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    tagged = [cell.source for cell in code if "gpu" in cell.metadata.get("tags", [])]
    return [code[0].source, *tagged] if tagged else []


def run_gpu_cells(page: Chapter) -> list[StoredRun]:
    """Run a page's gpu cells and return what each of them gave."""
    names: dict = {"__name__": f"gpu_cells_of_{page.notebook}"}
    results = []
    for number, code in enumerate(gpu_code(page)):
        *body, last = ast.parse(code).body
        where = f"<{page.notebook}, gpu cell {number}>"
        if not number:
            body, last = [*body, last], None
        exec(compile(ast.Module(body, []), where, "exec"), names)
        if isinstance(last, ast.Expr):
            results.append(eval(compile(ast.Expression(last.value), where, "eval"), names))
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio.runs", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "chapter", nargs="*", help="start of a chapter's name, such as 10; all if none"
    )
    parser.add_argument(
        "--confirm",
        action="store_true",
        help="make one stale run of each function again; if it comes out as stored, the others are fresh",
    )
    parser.add_argument("--gpu", action="store_true", help="run the cells tagged gpu")
    parser.add_argument(
        "--quick", action="store_true", help="with --gpu: a few steps on any device; stores nothing"
    )
    options = parser.parse_args(arguments)
    try:
        chapters = choose(manifest.load(), options.chapter)
    except (ManifestError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    if options.gpu:
        return _gpu(chapters, quick=options.quick)
    for chapter in chapters:
        if options.confirm:
            runs.confirm(chapter.slug)
            continue
        count = len(runs.missing(chapter.slug))
        print(
            f"{chapter.notebook}: {count or 'no'} run{'' if count == 1 else 's'} to make",
            flush=True,
        )
        runs.make(chapter.slug, lambda line: print(f"  {line}", flush=True))
    return 0


def _gpu(pages: Sequence[Chapter], *, quick: bool) -> int:
    if not quick and not has_gpu():
        print(
            "There is no GPU here, so nothing was run; `--quick` tries the code on this CPU.",
            file=sys.stderr,
        )
        return 1
    os.environ["COURSE_QUICK" if quick else "COURSE_RECORD"] = "1"
    leads = os.environ.get("RANK", "0") == "0"
    for page in pages:
        for result in run_gpu_cells(page):
            if leads:
                print(result, flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
