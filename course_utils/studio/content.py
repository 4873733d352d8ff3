"""The content of a notebook: its sections and exercises, its words, and the minutes that it takes."""

import ast
import re
import tomllib
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from course_utils.kit.exercises import Exercise, exercises, sections
from course_utils.kit.rich_text import quiz_file

if TYPE_CHECKING:
    from nbformat import NotebookNode

WORDS_A_MINUTE = 70  # of a beginner
MINUTES = {
    "line": 0.2,
    "formula": 0.3,
    "figure": 4,
    "question": 1,
    "prediction": 2,
    "widget": 3,
}
"""Minutes for one of each; an exercise has its own. CONTRIBUTING says how they were fitted."""
FIGURE = r"\balt=|\.(?:show|draw|plot)\w*\("
"""Pattern of the code that draws a picture: it hands over an alt text, or a lesson or a history draws for it."""
FORMULA = r"\$\$.+?\$\$|\$[^$]+\$"
TO_OPEN = re.compile("open the cell", re.IGNORECASE)
"""What a text says that sends the reader to the folded cell below it."""
UNCOUNTED = ("Take-aways", "Quiz", "References")  # headings that are no sections
COURSE_CALLS = {
    "quiz",
    "recall",
    "predict",
    "live",
    "explore",
    "checks",
    "stages",
    "stored_run",
    "course_map",
}
"""Functions of the course whose calls are folded away, because only what they show matters to a reader."""
NO_WORDS = r"!\[[^\]]*\]\([^)]*\)|<[^>]+>|\$+[^$]*\$+|```.*?```|\]\([^)]*\)|`[^`]*`"
"""Pattern of the parts of Markdown without words: pictures, tags, formulas, code, and targets of links."""


@dataclass(frozen=True)
class CodeCell:
    """A code cell: its index in the notebook, and the exercise that it belongs to or follows."""

    place: int
    node: "NotebookNode"
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
        """Its metadata for Lab, which say what is folded."""
        return self.node.metadata.get("jupyter", {})


@dataclass
class Content:
    """What stands in a notebook: its code cells, the titles of its sections (without UNCOUNTED), and its exercises."""

    notebook: "NotebookNode"
    code: list[CodeCell] = field(default_factory=list)
    sections: list[str] = field(default_factory=list)
    exercises: list[Exercise] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.exercises = exercises(self.notebook.cells)
        headed = {(exercise.place, exercise.heading): exercise for exercise in self.exercises}
        exercise = None
        for place, cell in enumerate(self.notebook.cells):
            if cell.cell_type == "code":
                self.code.append(CodeCell(place, cell, exercise))
                continue
            for level, title, _ in sections(cell.source):
                if level:
                    exercise = headed.get((place, title))
                if level == 2 and title not in UNCOUNTED:
                    self.sections.append(title)

    def with_sections(self, titles: Iterable[str]) -> "Content":
        """The content of the sections of these titles, and of the cells that belong to no section."""
        left_out = set(self.sections) - set(titles)
        cells, current = [], ""
        for cell in self.notebook.cells:
            if cell.cell_type == "markdown":
                headings = (title for level, title, _ in sections(cell.source) if level == 2)
                current = next(headings, current)
            if current not in left_out:
                cells.append(cell)
        return Content(type(self.notebook)(self.notebook, cells=cells))

    @property
    def words(self) -> int:
        """The number of words of its prose, without quiz and references."""
        texts = (cell.source for cell in self.notebook.cells if cell.cell_type == "markdown")
        return sum(count_words(t) for t in texts if not re.match(r"#+ (?:Quiz|References)\b", t))

    @property
    def minutes(self) -> int:
        """Estimated minutes of a beginner who does everything, rounded to five."""
        code = "\n".join(cell.source for cell in self.code)
        answering = MINUTES["question"] * count_questions(code, self.sections)
        answering += MINUTES["prediction"] * code.count("cu.predict(")
        practice = sum(exercise.minutes for exercise in self.exercises)
        return _to_five(self._reading + answering + practice)

    @property
    def reading_minutes(self) -> int:
        """Estimated minutes of somebody who reads at twice that pace, without questions and exercises."""
        return _to_five(self._reading / 2)

    @property
    def _reading(self) -> float:
        read = (cell.source for cell in self.code if self._is_read(cell))
        code = "\n".join(cell.source for cell in self.code)
        texts = "\n".join(c.source for c in self.notebook.cells if c.cell_type == "markdown")
        counted = {
            "line": sum(bool(line.strip()) for source in read for line in source.splitlines()),
            "formula": len(re.findall(FORMULA, texts, re.DOTALL)),
            "figure": sum(bool(re.search(FIGURE, cell.source)) for cell in self.code),
            "widget": len(re.findall(r"\bcu\.(?:(?:live|explore)\.\w+|stages)\(", code)),
        }
        minutes = sum(MINUTES[what] * number for what, number in counted.items())
        return self.words / WORDS_A_MINUTE + minutes

    def _is_read(self, cell: CodeCell) -> bool:
        """Whether a reader sees the code of a cell: it is not folded, or the text above sends her there."""
        if cell is self.code[0]:
            return True  # imports are folded in Lab only, and the minutes were fitted with them
        above = self.notebook.cells[cell.place - 1] if cell.place else None
        sent = above is not None and above.cell_type == "markdown" and TO_OPEN.search(above.source)
        return not cell.jupyter.get("source_hidden") or bool(sent)


def _to_five(minutes: float) -> int:
    return 5 * int(minutes / 5 + 0.5)


def is_course_call(source: str) -> bool:
    """Whether code consists of calls of `COURSE_CALLS` alone."""
    try:
        body = ast.parse(source).body
    except SyntaxError:
        return False
    calls = [node.value for node in body if isinstance(node, ast.Expr)]
    names = {ast.unparse(call.func) for call in calls if isinstance(call, ast.Call)}
    all_calls = len(calls) == len(body) > 0 and all(isinstance(call, ast.Call) for call in calls)
    return all_calls and {name.removeprefix("cu.").split(".")[0] for name in names} <= COURSE_CALLS


def count_words(text: str) -> int:
    """The number of words of a text in Markdown, without formulas, code, pictures and targets of links."""
    plain = re.sub(NO_WORDS, " ", text, flags=re.DOTALL)
    return len(re.findall(r"[^\W\d_][^\W\d_'’]*", plain))


def count_questions(code: str, titles: Iterable[str] = ()) -> int:
    """The number of questions: of recalls, after sections and at the end those of these sections."""
    from course_utils.kit.quiz import RECALLED  # slow to import

    count = RECALLED * code.count("cu.recall(")
    for arguments in re.findall(r"\bcu\.quiz\(([^)]*)\)", code):
        slug, *ids = re.findall(r'"([^"]+)"', arguments) or [""]
        count += len(ids) or _count_end_questions(slug, tuple(titles))
    return count


@cache
def _count_end_questions(slug: str, titles: tuple[str, ...]) -> int:
    """The number of questions at a chapter's end that belong to one of these sections; 0 without a quiz."""
    try:
        questions = tomllib.loads(quiz_file(slug)).get("question", ())
    except FileNotFoundError:
        return 0
    return sum("asked" not in one and one.get("section") in titles for one in questions)
