"""`make gpu`: run the cells tagged `gpu` of every chapter, and record what they give.

    python -m course_utils.studio.gpu [CHAPTER …] [--quick]
    torchrun --nproc-per-node 8 -m course_utils.studio.gpu [CHAPTER …]

Of a chapter, only its first code cell (imports and seed) and its gpu cells run. With several
processes each training is shared among them (`distributed`). CHAPTER is the start of a name: ``10``.
Above: `notebooks`, `recorded`.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from course_utils.lessons.runs import RECORDS, RecordedRun
from course_utils.runtime import has_gpu
from course_utils.studio import manifest
from course_utils.studio.manifest import Chapter, ManifestError
from course_utils.studio.notebooks import NotebookError, choose


def gpu_code(chapter: Chapter) -> list[str]:
    """The first code cell of a chapter and its cells tagged `gpu`, in order."""
    import jupytext

    notebook = jupytext.read(chapter.source, fmt="py:percent")
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    tagged = [cell.source for cell in code if "gpu" in cell.metadata.get("tags", [])]
    return [code[0].source, *tagged] if tagged else []


def run(chapter: Chapter) -> list[RecordedRun]:
    """Run a chapter's gpu cells and return what each of them gave."""
    import ast

    names: dict = {"__name__": f"gpu_cells_of_{chapter.notebook}"}
    results = []
    for number, code in enumerate(gpu_code(chapter)):
        *body, last = ast.parse(code).body
        where = f"<{chapter.notebook}, gpu cell {number}>"
        exec(compile(ast.Module(body, []), where, "exec"), names)
        if number:
            results.append(eval(compile(ast.Expression(last.value), where, "eval"), names))
        else:
            exec(compile(ast.Module([last], []), where, "exec"), names)
    return results


def main(arguments: Sequence[str] | None = None) -> int:
    """The command line; returns the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m course_utils.studio.gpu", description=__doc__.split("\n")[0]
    )
    parser.add_argument(
        "chapter", nargs="*", help="start of a chapter's name, such as 10; all if none"
    )
    parser.add_argument(
        "--quick", action="store_true", help="a few steps on any device; records nothing"
    )
    options = parser.parse_args(arguments)
    try:
        chapters = choose(manifest.load(), options.chapter)
    except (ManifestError, NotebookError) as error:
        print(error, file=sys.stderr)
        return 1
    if not options.quick and not has_gpu():
        print(
            "There is no GPU here, so nothing was run; `--quick` tries the code on this CPU.",
            file=sys.stderr,
        )
        return 1
    os.environ["COURSE_QUICK" if options.quick else "COURSE_RECORD"] = "1"
    leads = os.environ.get("RANK", "0") == "0"
    for chapter in chapters:
        for result in run(chapter) if chapter.gpu else []:
            if leads:
                print(result, flush=True)
    if leads and not options.quick:
        print(f"Written to {RECORDS.name}.")
    return 0


if __name__ == "__main__":
    sys.exit(main())
