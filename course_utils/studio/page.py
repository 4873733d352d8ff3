"""A notebook, read: its sections and exercises, its words, the code that is seen, and the minutes that it takes."""

import ast
import re
import tomllib
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from course_utils.kit.exercises import Exercise, exercises, sections
from course_utils.kit.rich_text import quiz_file
from course_utils.studio import pairs

if TYPE_CHECKING:
    from nbformat import NotebookNode

WORDS_A_MINUTE = 90  # of one who meets all this for the first time
SECONDS_A_LINE = 9
MINUTES = {"question": 1, "prediction": 2, "widget": 3}
EXERCISES_TAKE = 1.5  # times what they say
UNCOUNTED = ("Take-aways", "Quiz", "References")  # headings that are no sections
FOLDED = {"hide-input", "guard", "solution"}

OWN = {"quiz", "recall", "predict", "live", "explore", "checks", "stored_run", "course_map"}
"""Calls of the course whose code tells a reader nothing: a cell of these alone shows what they show."""


# A notebook, read -------------------------------------------------------------


@dataclass(frozen=True)
class Section:
    """A section: the place of its heading, and its title."""

    place: int
    title: str


@dataclass(frozen=True)
class Cell:
    """A code cell with what stands above it.

    Attributes:
        place: in the notebook, from 0.
        node: the cell itself.
        section: the heading of level two that it stands under, with its place; ("", -1) before the first.
        exercise: the exercise that it belongs to or follows, up to the next heading.
    """

    place: int
    node: "NotebookNode"
    section: tuple[str, int] = ("", -1)
    exercise: Exercise | None = None

    @property
    def source(self) -> str:
        """Its code."""
        return self.node.source

    @property
    def tags(self) -> set[str]:
        """Its tags."""
        return set(self.node.metadata.get("tags", ()))

    @property
    def jupyter(self) -> dict:
        """What Lab folds of it."""
        return self.node.metadata.get("jupyter", {})

    @property
    def plumbing(self) -> bool:
        """Whether its code is to be out of sight: by its tag, or because it only calls the course."""
        return bool(self.tags & FOLDED) or is_own(self.source)

    @property
    def folded(self) -> bool:
        """Whether its code is out of sight."""
        return self.plumbing or self.jupyter.get("source_hidden", False)

    @cached_property
    def tree(self) -> ast.Module:
        """Its syntax tree; empty if it is not Python, which the rule plain_python reports."""
        try:
            return ast.parse(self.source)
        except SyntaxError:
            return ast.Module([], [])

    @cached_property
    def lines(self) -> list[str]:
        """Its code without blank lines and imports: what a reader reads."""
        imports = {
            place
            for node in self.tree.body
            if isinstance(node, ast.Import | ast.ImportFrom)
            for place in range(node.lineno, node.end_lineno + 1)
        }
        every = enumerate(self.source.splitlines(), 1)
        return [line for place, line in every if line.strip() and place not in imports]

    def calls(self, *names: str) -> int:
        """How often it calls ``cu.name``, for any of the names."""
        return sum(self._called[f"cu.{name}"] for name in names)

    @cached_property
    def _called(self) -> Counter[str]:
        """What it calls, and how often."""
        calls = (node for node in ast.walk(self.tree) if isinstance(node, ast.Call))
        return Counter(ast.unparse(call.func) for call in calls)


def is_own(source: str) -> bool:
    """Whether code is made of calls of `OWN` alone."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    return bool(body) and all(_calls_own(node) for node in body)


def _calls_own(node: ast.stmt) -> bool:
    if not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)):
        return False
    return ast.unparse(node.value.func).removeprefix("cu.").split(".")[0] in OWN


@dataclass
class Page:
    """A notebook, read.

    Attributes:
        notebook: what was read.
        code: its code cells.
        sections: its sections, those of UNCOUNTED apart.
        exercises: its exercises.
    """

    notebook: "NotebookNode"
    code: list[Cell] = field(default_factory=list)
    sections: list[Section] = field(default_factory=list)
    exercises: list[Exercise] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exercises = exercises(self.notebook.cells)
        headed = {(one.place, one.heading): one for one in self.exercises}
        under, exercise = ("", -1), None
        for place, node in enumerate(self.notebook.cells):
            if node.cell_type == "code":
                self.code.append(Cell(place, node, under, exercise))
                continue
            for level, title, _ in sections(node.source):
                if level:
                    exercise = headed.get((place, title))
                if level == 2:
                    under = (title, place)
                    if title not in UNCOUNTED:
                        self.sections.append(Section(place, title))

    def only(self, titles: Iterable[str]) -> "Page":
        """The page with the sections of these titles alone, and what belongs to no section."""
        out = {section.title for section in self.sections} - set(titles)
        kept, under = [], ""
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown":
                found = (title for level, title, _ in sections(cell.source) if level == 2)
                under = next(found, under)
            if under not in out:
                kept.append(cell)
        return Page(type(self.notebook)(self.notebook, cells=kept))

    @property
    def seen(self) -> list[Cell]:
        """The code cells that are not folded."""
        return [cell for cell in self.code if not cell.folded]

    @cached_property
    def prose(self) -> list[str]:
        """Its texts; of quiz and references none."""
        texts = [cell.source for cell in self.notebook.cells if cell.cell_type == "markdown"]
        return [text for text in texts if not re.match(r"#+ (?:Quiz|References)\b", text)]

    @property
    def words(self) -> int:
        """Words of its prose."""
        return sum(map(count_words, self.prose))

    @property
    def lines(self) -> int:
        """Lines of code that a reader sees, imports among them."""
        return sum(bool(line.strip()) for cell in self.seen for line in cell.source.splitlines())

    @property
    def questions(self) -> int:
        """Questions after sections, at the end, and of chapters before; predictions aside."""
        return sum(map(_asked, self.code))

    @property
    def predictions(self) -> int:
        """What is to be predicted."""
        return sum(cell.calls("predict") for cell in self.code)

    @property
    def widgets(self) -> int:
        """Live models and explorers."""
        return sum(len(re.findall(r"\bcu\.(?:live|explore)\.\w+\(", c.source)) for c in self.code)

    @property
    def exercise_minutes(self) -> int:
        """What its exercises say together."""
        return sum(exercise.minutes for exercise in self.exercises)

    @property
    def minutes(self) -> int:
        """Minutes of a beginner who does everything: an estimate, rounded to five."""
        answering = MINUTES["question"] * self.questions + MINUTES["prediction"] * self.predictions
        return _to_five(self._reading + answering + EXERCISES_TAKE * self.exercise_minutes)

    @property
    def practised_minutes(self) -> int:
        """Minutes of one who reads and tries at twice that pace, and leaves questions and exercises out."""
        return _to_five(self._reading / 2)

    @property
    def _reading(self) -> float:
        reading = self.words / WORDS_A_MINUTE + self.lines * SECONDS_A_LINE / 60
        return reading + MINUTES["widget"] * self.widgets


def _to_five(minutes: float) -> int:
    return 5 * int(minutes / 5 + 0.5)


def _asked(cell: Cell) -> int:
    """How many questions a cell asks."""
    from course_utils.kit.quiz import RECALLED  # slow to import

    total = RECALLED * cell.calls("recall")
    for call in re.findall(r"\bcu\.quiz\(([^)]*)\)", cell.source):
        slug, *ids = re.findall(r'"([^"]+)"', call) or [""]
        total += len(ids) or _at_the_end(slug)
    return total


@cache
def _at_the_end(slug: str) -> int:
    """How many questions a chapter's quiz has; of one that is not there, none."""
    try:
        table = tomllib.loads(quiz_file(slug))
    except FileNotFoundError:
        return 0
    return sum(not question.get("section") for question in table.get("question", ()))


def count_words(text: str) -> int:
    """Words of a text in Markdown: of a link its text; formulas, code and pictures are none."""
    return len(re.findall(r"[^\W\d_][^\W\d_'’]*", _plain(text)))


def _plain(text: str) -> str:
    aside = r"!\[[^\]]*\]\([^)]*\)|<[^>]+>|\$+[^$]*\$+|```.*?```|\]\([^)]*\)|`[^`]*`"
    return re.sub(aside, " ", text, flags=re.DOTALL)


def read(source: Path) -> Page:
    """The page that a source describes."""
    return Page(pairs.read_source(source))
