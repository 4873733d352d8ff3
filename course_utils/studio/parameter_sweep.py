"""Parameters that a reader may change, and a run of a chapter with other values of all of them.

    width = 0.5  # try 0.1 … 10
    steps = 40  # try 10 … 200
    kernel = "gaussian"  # try "gaussian" | "boxcar"

None of these values may end in an exception or set off a guard. The nightly tests draw some by chance.
"""

import ast
import math
import random
import re
from dataclasses import dataclass

from nbformat import NotebookNode

from course_utils.kit.guard import NO_LONGER
from course_utils.studio.manifest import Chapter

Value = int | float | str | bool

LINE = re.compile(r"^(?P<name>\w+) = (?P<value>.+?)  # try (?P<allowed>.+)$", re.MULTILINE)
FORM = 'write "name = 0.5  # try 0.1 … 10", or choices: # try "a" | "b"'
WIDE = 10  # a positive range is sampled by logarithm if its end is so many times its beginning, or more


@dataclass(frozen=True)
class Parameter:
    """A marked assignment: its name and value, and the choices or both ends of the range."""

    name: str
    value: Value
    choices: tuple[Value, ...]
    is_range: bool

    def draw(self, chance: random.Random) -> Value:
        """A random value: one of the choices; for a range, half of the time an end, else a value between them."""
        if not self.is_range or chance.random() < 0.5:
            return chance.choice(self.choices)
        low, high = map(float, self.choices)
        if isinstance(self.value, int):
            return chance.randint(int(low), int(high))
        if low > 0 and high / low >= WIDE:
            value = math.exp(chance.uniform(math.log(low), math.log(high)))
        else:
            value = chance.uniform(low, high)
        return min(max(float(f"{value:.3g}"), low), high)


def parameters(source: str) -> list[Parameter]:
    """The marked assignments of a code cell.

    Raises:
        ValueError: a mark can't be read, or its value isn't allowed.
    """
    marks = list(LINE.finditer(source))
    if len(marks) != len(re.findall(r"(?m)  # try .*$", source)):
        raise ValueError(f"a mark '# try' follows no assignment of a plain value; {FORM}")
    return [_parameter(mark) for mark in marks]


def _parameter(mark: re.Match) -> Parameter:
    is_range = "…" in mark["allowed"]
    try:
        value = ast.literal_eval(mark["value"])
        choices = mark["allowed"].split("…" if is_range else "|")
        choices = tuple(ast.literal_eval(choice.strip()) for choice in choices)
    except (ValueError, SyntaxError):
        raise ValueError(f"{mark[0]!r} holds something other than plain values; {FORM}") from None
    if is_range:
        low, high = choices
        whole = isinstance(value, int)
        allowed = low <= value <= high and all(isinstance(end, int) for end in choices if whole)
    else:
        allowed = value in choices and len(choices) > 1
    if not allowed:
        raise ValueError(f"{mark[0]!r}: {value!r} isn't among the values to try; {FORM}")
    return Parameter(mark["name"], value, choices, is_range)


def change_values(notebook: NotebookNode) -> list[str]:
    """Give each marked name another value, in place; returns the new assignments. The seed is the notebook's text."""
    code = [cell for cell in notebook.cells if cell.cell_type == "code"]
    chance = random.Random("\n".join(cell.source for cell in code))
    changes = []

    def draw(mark: re.Match) -> str:
        changes.append(f"{mark['name']} = {_parameter(mark).draw(chance)!r}")
        return changes[-1]

    for cell in code:
        cell.source = LINE.sub(draw, cell.source)
    return changes


def broken_claims(chapter: Chapter) -> list[str]:
    """The sentences of a chapter's guards when it runs with other values, as a reader runs it.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell failed; its notes name the values.
    """
    from course_utils.studio import notebook_files, notebooks  # slow to import

    notebook = notebook_files.read_source(chapter.source)
    changes = change_values(notebook)
    try:
        notebooks.execute(notebook, cwd=chapter.ipynb.parent, env={"COURSE_STRICT": "0"})
    except Exception as error:
        error.add_note(", ".join(changes))
        raise
    texts = (
        output.get("text", "") for cell in notebook.cells for output in cell.get("outputs", ())
    )
    lines = [line for text in texts for line in text.splitlines() if line.startswith(NO_LONGER)]
    return [*lines, *changes] if lines else []
