"""What a student does not get: no solution and no key is found in a handout, or in a book without solutions."""

import html
import importlib.util
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import types
from functools import cache
from pathlib import Path

import jupytext
import nbformat
import pytest
from tiny_book import book

from course_utils.files import LESSONS, ROOT
from course_utils.kit import words
from course_utils.kit.answers import Hidden, hide
from course_utils.kit.quiz import quiz
from course_utils.studio import handout, keys, manifest, other_graders
from course_utils.studio.__main__ import main
from course_utils.studio.book.build import build as build_book
from course_utils.studio.book.transforms import for_the_book

COURSE = manifest.load(files=False)


def squeezed(text: str) -> str:
    return "\n".join(" ".join(line.split()) for line in text.splitlines())


@cache
def secrets() -> frozenset[str]:
    """Lines that stand in solutions alone, and the reasons of all answers of all quizzes."""
    inside, outside = set(), []
    for chapter in COURSE.notebooks:
        for cell in jupytext.read(chapter.source, fmt="py:percent").cells:
            lines = squeezed(cell.source).splitlines()
            if "solution" in cell.metadata.get("tags", []):
                inside |= {line for line in lines if len(line) >= 18}
            else:
                outside += lines
    public = [squeezed(file.read_text()) for file in (ROOT / "course_utils").rglob("*.py")]
    known = "\n".join([*outside, *public])
    lines = {line for line in inside if line not in known and "cu.checks." not in line}
    tables = [tomllib.loads(file.read_text()) for file in LESSONS.glob("*/quiz.toml")]
    reasons = {
        squeezed(answer["why"])
        for table in tables
        for question in table["question"]
        for answer in question["answer"]
    }
    share = len(COURSE.chapters) / 18  # of all chapters
    assert len(lines) > 150 * share and len(reasons) > 300
    return frozenset(lines | reasons)


def told(text: str) -> set[str]:
    """The secrets that a file tells whoever searches it."""
    plain = html.unescape(re.sub(r"<[^>]+>", "", text)).replace('\\"', '"').replace("\\n", "\n")
    both = squeezed(f"{text}\n{plain}")
    found = {secret for secret in secrets() if secret in both}
    return found | set(
        re.findall(r"correct = (?:true|false)|data-correct|def \w+_solution\(", both)
    )


@pytest.fixture(scope="module")
def handed(tmp_path_factory) -> Path:
    to = tmp_path_factory.mktemp("handed") / "out"
    handout.build(COURSE, ROOT, to)
    return to


TEXTS = {
    ".py",
    ".ipynb",
    ".toml",
    ".json",
    ".md",
    ".sealed",
    ".js",
    ".tsv",
    ".txt",
    ".html",
    ".csv",
}


def test_no_solution_and_no_key_is_found_in_the_handout(handed):
    files = [path for path in handed.rglob("*") if path.suffix in TEXTS]
    assert len(files) > 200
    assert {path.name: told(path.read_text(encoding="utf-8")) for path in files} == {
        path.name: set() for path in files
    }
    assert not [path for path in files if "solution is folded" in path.read_text(encoding="utf-8")]


def test_what_is_the_instructors_is_not_handed_out_and_its_commands_say_so(handed):
    assert all(list((ROOT / "course_utils").glob(name)) for name in keys.PRIVATE)
    assert not [path for name in keys.PRIVATE for path in (handed / "course_utils").glob(name)]
    for command in ("pool", "grade", "homework"):
        done = subprocess.run(
            [sys.executable, "-m", "course_utils.studio", command], cwd=handed,
            env=os.environ | {"PYTHONPATH": str(handed)}, capture_output=True, text=True,
        )  # fmt: skip
        assert done.returncode == 1
        assert done.stderr == f"{command}: this command stays with the instructor.\n"


def test_what_finds_solutions_and_keys_finds_them():
    source = COURSE.chapters[2].source.read_text(encoding="utf-8")
    solutions = set(re.findall(r"^def \w+_solution\(", source, re.M))
    assert solutions and solutions <= told(source)
    assert "correct = true" in told((LESSONS / "masks" / "quiz.toml").read_text(encoding="utf-8"))
    shown = nbformat.read(COURSE.chapters[2].ipynb, as_version=4)
    page = for_the_book(shown, {}, "", COURSE.chapters[2])
    assert told(nbformat.writes(page))


def test_a_handouts_quizzes_ask_and_answer_as_before(handed):
    for file in LESSONS.glob("*/quiz.toml"):
        slug = file.parent.name
        assert quiz(slug, folder=handed / "course_utils" / "lessons") == quiz(slug)


@pytest.mark.parametrize("chapter", COURSE.notebooks, ids=lambda chapter: chapter.notebook)
def test_no_solution_and_no_key_is_found_in_a_page_of_the_book_without_them(chapter):
    shown = nbformat.read(chapter.ipynb, as_version=4)
    page = for_the_book(shown, {}, "", chapter, solutions=False)
    assert told(nbformat.writes(page)) == set()
    cards = [cell.source for cell in page.cells if "cu-exercise" in cell.source]
    assert len(cards) == sum(title.startswith("### Exercise") for title in titles(shown))


def titles(notebook) -> list[str]:
    texts = (cell.source for cell in notebook.cells if cell.cell_type == "markdown")
    return [line for text in texts for line in text.splitlines() if line.startswith("### ")]


CELLS = [
    nbformat.v4.new_markdown_cell(
        "# One\n\n## A section\n\n### Exercise 1 · Weights\n\n*build · 5 minutes*\n\nWrite it."
    ),
    nbformat.v4.new_code_cell("def mine(): ...", metadata={"tags": ["exercise", "build"]}),
    nbformat.v4.new_code_cell("cu.checks.average_weights(mine)", metadata={"tags": ["check"]}),
    nbformat.v4.new_code_cell(
        "def mine_solution():\n    return 'well hidden'\n\n\ncu.checks.average_weights(mine_solution)",
        metadata={"tags": ["solution"]},
        outputs=[nbformat.v4.new_output("stream", text="shown by the solution")],
    ),
    nbformat.v4.new_markdown_cell("After it.\n\n## References\n\n- A book."),
]  # fmt: skip


@pytest.mark.slow
def test_a_book_is_built_with_solutions_then_without_and_no_file_keeps_them(tmp_path):
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    (tmp_path / "book.toml").write_text(book("01_one"))
    course = manifest.load(tmp_path / "book.toml", files=False)
    language = {"name": "python", "pygments_lexer": "ipython3"}
    notebook = nbformat.v4.new_notebook(cells=CELLS, metadata={"language_info": language})
    for place, cell in enumerate(notebook.cells):
        if cell.cell_type == "code":
            cell.execution_count = place
    nbformat.write(notebook, course.chapters[0].ipynb)

    def found(**options) -> set[str]:
        page = build_book(course, tmp_path / "_build", **options)
        files = [
            path for path in page.parent.rglob("*") if path.suffix in {".html", ".js", ".ipynb"}
        ]
        text = "\n".join(path.read_text(encoding="utf-8") for path in files)
        return {word for word in ("well hidden", "shown by the sol", "Hints") if word in text}

    assert found() == {"well hidden", "shown by the sol", "Hints"}
    assert found(solutions=False) == {"Hints"}


# Answers on paper -------------------------------------------------------------------------------


def on_paper(source: str) -> types.ModuleType:
    """A lesson's checks from this text."""
    module = types.ModuleType("course_utils.lessons.masks.checks")
    exec(compile(source, "checks.py", "exec"), vars(module))
    return module


ASKED = """\
import math
from course_utils.kit.answers import on_paper
first = on_paper("first", __name__, {"a": (1 / 8, "ä, the weight", "h"), "b": (-math.sqrt(2), "é", "h")}, within=0.006)
second = on_paper("second", __name__, {
    "a": (
        "no",  # said twice
        "the word", ("one", "two"),
    ),
    "b": ((5, 1), "the shape", "h")}, read=lambda answer: answer)
"""


def test_a_hidden_answer_is_recognized_and_not_told():
    text = keys.hidden(ASKED, Path("lessons/masks/checks.py"))
    assert "1 / 8" not in text and '"no"' not in text and "(5, 1)" not in text
    assert "ä, the weight" in text and "# said twice" in text
    plain, hidden = on_paper(ASKED), on_paper(text)
    for a in (0.1199, 0.125, 0.1309, 0.118, 0.132, -0.125, 7, float("nan"), float("inf")):
        for b in (-1.414, 1.414):
            given = [plain.first(lambda a=a, b=b: [a, b]), hidden.first(lambda a=a, b=b: [a, b])]
            assert repr(given[0]) == repr(given[1]), (a, b)
    for word in ("no", "yes"):
        for shape in ((5, 1), (1, 5)):
            answer = [word, shape]
            assert repr(plain.second(lambda a=answer: a)) == repr(hidden.second(lambda a=answer: a))
    assert plain.first.exercise == hidden.first.exercise == "masks/first"


def test_equal_answers_look_different_and_zero_is_an_answer():
    one, other = (hide(0, 0.02, f"check {letter}") for letter in "ab")
    assert one != other and isinstance(one, Hidden)
    assert one.accepts(-0.01, 0.02, "check a") and not one.accepts(0.03, 0.02, "check a")


def test_an_answer_that_is_no_plain_value_is_named_with_its_line():
    with pytest.raises(keys.KeysError, match=r"checks\.py, line 3: name 'ONE' .* plain value"):
        keys.hidden(ASKED.replace("1 / 8", "ONE"), Path("lessons/masks/checks.py"))


def test_what_is_sealed_looks_different_however_it_begins():
    one, other = (
        words.sealed([[True, "a"], [False, "b"]]),
        words.sealed([[True, "c"], [False, "b"]]),
    )
    assert one[:8] != other[:8] and words.unsealed(one) == [[True, "a"], [False, "b"]]
    assert words.sealed([1]) == words.sealed([1])


# Other graders ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def for_nbgrader(tmp_path_factory) -> Path:
    to = tmp_path_factory.mktemp("nbgrader") / "out"
    assert main(["handout", "--for", "nbgrader", "--to", str(to)]) == 0
    return to


def cells(path: Path):
    return [(path.stem, cell) for cell in nbformat.read(path, as_version=4).cells]


def test_what_nbgrader_reads_is_in_its_format(for_nbgrader):
    files = sorted(for_nbgrader.glob("source/*/*.ipynb"))
    assert len(files) > len(COURSE.chapters)
    seen = set()
    for name, cell in (each for file in files for each in cells(file)):
        entry = cell.metadata.get("nbgrader")
        if entry is None:
            assert "### BEGIN" not in cell.source and "_solution" not in cell.source
            continue
        assert (name, entry["grade_id"]) not in seen and re.fullmatch(r"[\w-]+", entry["grade_id"])
        seen.add((name, entry["grade_id"]))
        assert entry["schema_version"] == 3 and entry["cell_type"] == cell.cell_type == "code"
        assert entry["grade"] == entry["locked"] != entry["solution"] and not entry["task"]
        assert ("points" in entry) == entry["grade"] and entry.get("points", 1) > 0
        marks = re.findall(r"^### (BEGIN|END) (SOLUTION|HIDDEN TESTS)$", cell.source, re.M)
        kind = "HIDDEN TESTS" if entry["grade"] else "SOLUTION"
        assert marks == [("BEGIN", kind), ("END", kind)]
        compile(cell.source, entry["grade_id"], "exec")
        assert told(re.sub(r"### BEGIN .*### END .*", "", cell.source, flags=re.S)) == set()


def test_a_stub_fails_what_is_hidden_and_the_solution_does_not(for_nbgrader):
    chapter = "01_queries_keys_values"
    page = nbformat.read(for_nbgrader / "source" / chapter / f"{chapter}.ipynb", as_version=4)
    first = next(cell.source for cell in page.cells if cell.cell_type == "code")
    graded = [cell for cell in page.cells if "nbgrader" in cell.metadata]
    for answer, check in zip(graded[::2], graded[1::2], strict=True):
        stub = re.sub(r"### BEGIN .*### END .*", "", answer.source, flags=re.S)
        for source, passes in ((answer.source, True), (stub, False)):
            space: dict = {}
            exec(f"{first}\n{source}", space)
            if passes:
                exec(check.source, space)
            else:
                with pytest.raises(AssertionError, match="not done yet"):
                    exec(check.source, space)


def test_what_otter_reads_is_in_its_format(tmp_path):
    assert main(["handout", "--for", "otter", "--to", str(tmp_path / "out")]) == 0
    files = sorted(tmp_path.glob("out/*/*.ipynb"))
    assert len(files) > len(COURSE.chapters)
    for file in files:
        page = nbformat.read(file, as_version=4)
        assert page.cells[0].source.startswith(f"# ASSIGNMENT CONFIG\nname: {file.stem}\n")
        kinds = [cell.source.split("\n")[0] for cell in page.cells[1:] if cell.cell_type == "raw"]
        whole = [f"# {word}" for word in ("BEGIN QUESTION", "BEGIN SOLUTION", "END SOLUTION",
                                          "BEGIN TESTS", "END TESTS", "END QUESTION")]  # fmt: skip
        assert kinds == whole * (len(kinds) // 6) and kinds
        names = re.findall(r"^name: (\w+)$", "\n".join(c.source for c in page.cells[1:]), re.M)
        assert len(set(names)) == len(kinds) // 6
        tests = [cell.source for cell in page.cells if cell.source.startswith("# HIDDEN\n")]
        assert [re.search(r"cu\.checks\.(\w+)", test)[1] for test in tests] == names


def test_a_folder_with_marks_or_other_things_is_not_replaced(for_nbgrader, tmp_path, capsys):
    (for_nbgrader / "gradebook.db").touch()
    assert main(["handout", "--for", "nbgrader", "--to", str(for_nbgrader)]) == 1
    assert "holds submissions or marks" in capsys.readouterr().err
    (for_nbgrader / "gradebook.db").unlink()
    (tmp_path / "thesis.txt").touch()
    assert main(["handout", "--for", "otter", "--to", str(tmp_path)]) == 1
    assert "holds something else" in capsys.readouterr().err


def test_an_exercise_without_its_solution_is_named():
    lacking = nbformat.v4.new_notebook(cells=CELLS[:3])
    with pytest.raises(other_graders.GraderError, match="0 tagged 'solution'"):
        other_graders.exercises(lacking)


def brief(page: Path) -> tuple[Path, int]:
    """A page with its first code cell and its exercises alone; and all points."""
    notebook = nbformat.read(page, as_version=4)
    first = next(cell for cell in notebook.cells if cell.cell_type == "code")
    tagged = {"exercise", "check"}
    notebook.cells = [
        cell
        for cell in notebook.cells
        if cell is first
        or cell.cell_type == "raw"
        or "# HIDDEN" in cell.source
        or tagged & set(cell.metadata.get("tags", []))
    ]
    nbformat.write(notebook, page)
    points = re.findall(r"^points: (\d+)", "\n".join(c.source for c in notebook.cells), re.M)
    entries = [cell.metadata.get("nbgrader", {}) for cell in notebook.cells]
    return page, sum(map(int, points)) + sum(entry.get("points", 0) for entry in entries)


def needs(tool: str):
    there = importlib.util.find_spec(tool) is not None
    return pytest.mark.skipif(not there, reason=f"{tool} is not installed")


@pytest.mark.slow
@needs("nbgrader")
def test_nbgraders_own_commands_give_all_points_and_none(for_nbgrader):
    name = "02_kernel_regression"
    page, points = brief(for_nbgrader / "source" / name / f"{name}.ipynb")
    (page.parent / f"{name}_further.ipynb").unlink()

    def run(*command: str) -> None:
        subprocess.run([sys.executable, "-m", "nbgrader", *command], cwd=for_nbgrader, check=True)

    run("generate_assignment", name)
    for student, folder in (("right", "source"), ("stub", "release")):
        shutil.copytree(for_nbgrader / folder / name, for_nbgrader / "submitted" / student / name)
    run("autograde", name, "--create")
    run("export")
    marks = (for_nbgrader / "grades.csv").read_text().splitlines()
    rows = [dict(zip(marks[0].split(","), row.split(","), strict=True)) for row in marks[1:]]
    assert {row["student_id"]: float(row["score"]) for row in rows} == {"right": points, "stub": 0}


@pytest.mark.slow
@needs("otter")
def test_otters_own_commands_give_all_points_and_none(tmp_path):
    assert main(["handout", "--for", "otter", "--to", str(tmp_path / "out")]) == 0
    name = "02_kernel_regression"
    page, points = brief(tmp_path / "out" / name / f"{name}.ipynb")

    def run(*command: str) -> None:
        code = "from otter.cli import cli; cli()"
        subprocess.run([sys.executable, "-c", code, *command], cwd=page.parent, check=True)

    run("assign", page.name, "dist")
    (archive,) = page.parent.glob("dist/autograder/*.zip")
    scores = []
    for which in ("autograder", "student"):
        shutil.copy(page.parent / "dist" / which / page.name, page.parent / "mine.ipynb")
        (to := page.parent / f"of-{which}").mkdir()
        run("run", "-a", str(archive), "-o", to.name, "mine.ipynb")
        told = json.loads((to / "results.json").read_text())
        scores.append(sum(test.get("score", 0) for test in told["tests"]))
    assert scores == [points, 0]
