"""The exercises of a notebook, read from its cells: heading, stub, check and solution.

    ### Exercise 2 · Find the bug            a heading, in a text cell
    *bug · 10 minutes*                       its kind and minutes; then the task
    def fixed_loss(...): ...                 a cell tagged `exercise`: the stub
    cu.checks.fixed_loss(fixed_loss)         a cell tagged `check`
    def fixed_loss_solution(...): ...        a cell tagged `solution`, which ends with the check of the solution

An open exercise has only its heading and its task.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from course_utils.files import ROOT

KINDS = ("build", "predict", "bug", "open")
HEADING = re.compile(r"^(#{1,6})\s+(.*\S)\s*$")
TITLE = re.compile(r"Exercise (\d+)\b(?: · )?(.*)")
EFFORT = re.compile(r"^\*(?:(\w+) · )?(\d+) minutes?\*$")
CALL = re.compile(r"^cu\.checks\.(\w+)\((\w+)\)\s*\Z", re.MULTILINE)
DEEPEST = 3
"""The level of an exercise's heading; a deeper heading belongs to the exercise."""
STUBS = "stubs.json"
"""The file of a handout that holds its stubs, by the names of their checks."""

Cell = Mapping[str, Any]


@dataclass
class Exercise:
    """An exercise of a notebook.

    Attributes:
        place: the index of the cell with its heading; of its stub, if it has no heading.
        heading: "Exercise 2 · Find the bug"; empty for none.
        number: of the heading; 0 for none.
        kind: one of `KINDS`, from the line below the heading; empty if that line is missing.
        minutes: from the same line; 0 if it is missing.
        task: the text below, in Markdown.
        end: the index of its last cell: the solution, or the heading of an open exercise.
        stub, check, solution: its cells; None for each that it lacks.
    """

    place: int
    heading: str = ""
    number: int = 0
    kind: str = ""
    minutes: int = 0
    task: str = ""
    end: int = 0
    stub: Cell | None = None
    check: Cell | None = None
    solution: Cell | None = None

    @property
    def title(self) -> str:
        """The heading without its number: "Find the bug"."""
        return title[2] if (title := TITLE.match(self.heading)) else self.heading

    @property
    def effort(self) -> str:
        """The line below the heading: "bug · 10 minutes"; empty if there is none."""
        about = f"{self.minutes} minute{'s' * (self.minutes != 1)}" if self.minutes else ""
        return " · ".join(filter(None, [self.kind, about]))

    @property
    def name(self) -> str:
        """The name of its check; empty without one."""
        return self._called[0]

    @property
    def function(self) -> str:
        """The name of the function or class that it asks for: the argument of its check."""
        return self._called[1]

    @property
    def _called(self) -> tuple[str, str]:
        call = CALL.search(cell_text(self.check)) if self.check else None
        return (call[1], call[2]) if call else ("", "")

    @property
    def is_whole(self) -> bool:
        """Whether it has a stub, a check and a solution."""
        return None not in (self.stub, self.check, self.solution) and bool(self.name)

    @property
    def solution_code(self) -> str:
        """The code of the solution, without the check that ends it."""
        source = cell_text(self.solution) if self.solution else ""
        return CALL.sub("", source).strip()

    @property
    def answer(self) -> str:
        """The code of the solution, and a line that gives it the name of the stub."""
        return f"{self.solution_code}\n\n\n{self.function} = {self.function}_solution"


def exercises(cells: Iterable[Cell]) -> list[Exercise]:
    """The exercises of a notebook, in their order.

    Args:
        cells: of the notebook, as in its file or as nbformat has them.
    """
    found: list[Exercise] = []
    current: Exercise | None = None
    for place, cell in enumerate(cells):
        if cell["cell_type"] == "markdown":
            for level, heading, text in sections(cell_text(cell)):
                if level:
                    current = _new_exercise(place, heading, text) if level == DEEPEST else None
                    found += [current] if current else []
            continue
        tags = cell["metadata"].get("tags", ())
        if "exercise" in tags and (current is None or current.stub):
            current = Exercise(place, end=place)
            found.append(current)
        if current and not current.solution:
            for tag, part in (("exercise", "stub"), ("check", "check"), ("solution", "solution")):
                if tag in tags:
                    setattr(current, part, cell)
                    current.end = place
    return found


def _new_exercise(place: int, heading: str, text: str) -> Exercise | None:
    if not (title := TITLE.match(heading)):
        return None
    first, _, rest = text.strip().partition("\n")
    effort = EFFORT.match(first.strip())
    kind, minutes = (effort[1] or "", int(effort[2])) if effort else ("", 0)
    task = rest if effort else text
    return Exercise(place, heading, int(title[1]), kind, minutes, task.strip(), place)


def sections(text: str) -> Iterator[tuple[int, str, str]]:
    """A text in Markdown, cut at headings of level 1 to 3: level (0 before the first), heading, and the text below."""
    level, heading, below = 0, "", list[str]()
    for line, prose in zip(text.splitlines(), prose_lines(text), strict=True):
        if (new := HEADING.match(prose)) and len(new[1]) <= DEEPEST:
            yield level, heading, "\n".join(below)
            level, heading, below = len(new[1]), new[2], []
        else:
            below.append(line)
    yield level, heading, "\n".join(below)


def prose_lines(text: str) -> Iterator[str]:
    """The lines of a Markdown cell, those of fenced code blanked."""
    fenced = False
    for line in text.splitlines():
        fence = line.lstrip().startswith("```")
        fenced ^= fence
        yield "" if fenced or fence else line


def cell_text(cell: Cell) -> str:
    """A cell's text as one string; in a file it may be a list of lines."""
    return "".join(cell["source"])


# Stubs, as they were handed out -----------------------------------------------------------------


def defined_name(stub: str) -> str:
    """The name of the function or class that a stub defines; empty if it defines none."""
    definition = re.search(r"^(?:class|def)\s+(\w+)", stub, re.MULTILINE)
    return definition[1] if definition else ""


def defines(text: str, name: str) -> bool:
    """Whether a cell defines a function, a class or a value of this name; it need not be right Python."""
    return bool(re.search(rf"^(?:async def|class|def)\s+{name}\b|^{name}\s*=[^=]", text, re.M))


def stub(name: str) -> str:
    """The stub of an exercise, by the name of its check.

    Raises:
        LookupError: it is not there.
    """
    stubs = _handout_stubs() or repository_stubs(f"cu.checks.{name}(")
    if name not in stubs:
        raise LookupError(f"{name}: no stub is stored here; download its notebook again.")
    return stubs[name]


@cache
def _handout_stubs() -> dict[str, str]:
    file = ROOT / STUBS
    return json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}


@cache
def repository_stubs(holding: str = "") -> dict[str, str]:
    """The stubs of the notebooks that hold a text, by the names of their checks.

    They are read from the sources, which students leave alone. A wheel has only notebooks, and nobody works there.
    """
    files = sorted((ROOT / "notebooks" / "source").glob("*.py"))
    files = files or sorted((ROOT / "notebooks").glob("*.ipynb"))
    texts = {file: file.read_text(encoding="utf-8") for file in files}
    pages = (_cells(file, text) for file, text in texts.items() if holding in text)
    found = (exercise for page in pages for exercise in exercises(page))
    return {
        exercise.name: cell_text(exercise.stub)
        for exercise in found
        if exercise.stub and exercise.name
    }


def _cells(file: Path, text: str) -> list[Cell]:
    if file.suffix == ".ipynb":
        return json.loads(text)["cells"]
    import jupytext  # slow to import

    return jupytext.reads(text, fmt="py:percent").cells
