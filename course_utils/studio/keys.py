"""What a student does not get: solutions, and which answers of quizzes and of exercises on paper are right.

The quizzes and checks of a handout answer at once and without a network, so what they know travels with them: sealed,
or as a hash. Reading and searching give nothing away. Who tries all answers by a program finds the right ones; what
counts for marks is graded with the instructor's own copy.
"""

import ast
import math
import re
import shutil
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.kit.words import sealed
from course_utils.studio import StudioError

if TYPE_CHECKING:
    from nbformat import NotebookNode

SAID = re.compile(r";\s+the \**solution\** is folded(?=\.)|\s+The \**solution\** is folded\.")
"""Where a text tells where the solution is."""

PRIVATE = (
    "lessons/*/homework.py",
    "studio/homework.py",
    "studio/other_graders.py",
    "studio/grading",
    "studio/teaching",
)
"""What stays with the instructor, of the package: exercises by seed, and tools that would print what is sealed."""


class KeysError(StudioError):
    """An answer on paper that cannot be hidden: where, and what to write."""


# Solutions --------------------------------------------------------------------------------------


def without_solutions(notebook: "NotebookNode") -> "NotebookNode":
    """Take out, in place, the cells tagged ``solution``, and the words that tell where they are."""
    notebook.cells = [c for c in notebook.cells if "solution" not in c.metadata.get("tags", [])]
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = untold(cell.source)
    return notebook


def untold(text: str) -> str:
    """A text without the words that tell where the solution is."""
    return SAID.sub("", text)


# Quizzes and answers on paper -------------------------------------------------------------------


def seal(package: Path) -> None:
    """Seal, in a copy of the package, the quizzes and the answers on paper; take out what is the instructor's.

    Raises:
        KeysError: an answer is no plain value.
    """
    lessons = package / "lessons"
    for file in sorted(lessons.glob("*/quiz.toml")):
        letters = sealed(file.read_text(encoding="utf-8"))
        file.with_suffix(".sealed").write_text(letters, encoding="ascii")
        file.unlink()
    for file in sorted(lessons.glob("*/checks.py")):
        file.write_text(hidden(file.read_text(encoding="utf-8"), file), encoding="utf-8")
    for path in [path for name in PRIVATE for path in package.glob(name)]:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink()


def hidden(source: str, file: Path) -> str:
    """A lesson's checks with `Hidden` in the place of each right answer that `on_paper` is given.

    Args:
        source: the text of `checks.py`.
        file: where it stands; its folder is the lesson's name.

    Raises:
        KeysError: an answer is no plain value.
    """
    module = f"course_utils.lessons.{file.parent.name}.checks"
    found = [each for call in _calls(ast.parse(source)) for each in _answers(call, module, file)]
    lines = [line.encode() for line in source.splitlines(keepends=True)]  # places count bytes
    last_first = sorted(found, key=lambda each: (each[0].lineno, each[0].col_offset), reverse=True)
    for node, text in last_first:
        first, last = node.lineno - 1, (node.end_lineno or node.lineno) - 1
        rest = lines[last][node.end_col_offset :]
        lines[first : last + 1] = [lines[first][: node.col_offset] + text.encode() + rest]
    text = b"".join(lines).decode()
    return re.sub(r"(kit\.answers import )(?=on_paper)", r"\1Hidden, ", text) if found else source


def _calls(tree: ast.Module) -> Iterator[ast.Call]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "on_paper":
            yield node


def _answers(call: ast.Call, module: str, file: Path) -> Iterator[tuple[ast.expr, str]]:
    """Each right answer of a call, and what stands in its place."""
    answers = import_module("course_utils.kit.answers")  # slow to import
    name, asked = ast.literal_eval(call.args[0]), call.args[2]
    given = {keyword.arg: keyword.value for keyword in call.keywords}
    within = ast.literal_eval(given["within"]) if "within" in given else answers.WITHIN
    if not isinstance(asked, ast.Dict):
        raise KeysError(f"{file}: on_paper({name!r}, …): write what is asked as a table in braces.")
    for letter, entry in zip(asked.keys, asked.values, strict=True):
        node = entry.elts[0] if isinstance(entry, ast.Tuple) else entry
        try:
            code = compile(ast.Expression(node), str(file), "eval")
            right = eval(code, {"__builtins__": {}, "math": math})
        except NameError as error:
            raise KeysError(
                f"{file}, line {node.lineno}: {error}; write the right answer as a plain value."
            ) from None
        salt = answers.salt(module, name, ast.literal_eval(letter))
        yield node, repr(answers.hide(right, within, salt))
