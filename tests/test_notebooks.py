"""Execution and rules: notebooks are made whole and reproducibly, and the committed ones keep the rules.

A tiny chapter in a temporary folder serves for the machinery; the chapters of book.toml for the rules.
"""

import ast
import copy
import re

import nbformat
import pytest
from IPython.core.formatters import DisplayFormatter
from tiny_book import write_book

import course_utils as cu
from course_utils.studio import manifest, notebooks, rules
from course_utils.studio.__main__ import main
from course_utils.studio.content import Content
from course_utils.studio.course_map import CourseMap
from course_utils.studio.manifest import Chapter

COURSE = manifest.load(files=False).whole
each_notebook = pytest.mark.parametrize(
    "chapter", COURSE.notebooks, ids=lambda chapter: chapter.notebook
)
OLD = "the old notebook"


@pytest.fixture
def tiny(tmp_path) -> Chapter:
    """A chapter whose source is on disk, with an old notebook that can't be read."""
    chapter = write_book(tmp_path)
    chapter.ipynb.write_text(OLD)
    return chapter


# Making a notebook ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Chapter, str]:
    """The tiny chapter, made once, and its notebook's text."""
    chapter = write_book(tmp_path_factory.mktemp("made"))
    assert notebooks.make(chapter).startswith("00_tiny: ")
    return chapter, chapter.ipynb.read_text()


@pytest.mark.notebook
def test_a_notebook_is_made_without_what_its_author_has_fetched(tiny, monkeypatch, tmp_path):
    monkeypatch.setenv("COURSE_CACHE", str(tmp_path))
    source = tiny.source.read_text(encoding="utf-8")
    cell = "# %%\nfrom course_utils.data.registry import cache_folder\nprint(list(cache_folder().glob('*')))\n"
    tiny.source.write_text(f"{source}\n{cell}", encoding="utf-8")
    notebooks.make(tiny)
    assert "[]\\n" in tiny.ipynb.read_text(encoding="utf-8")


@pytest.mark.notebook
def test_making_a_notebook_twice_changes_no_byte(made):
    chapter, first = made
    notebooks.make(chapter)
    assert chapter.ipynb.read_text() == first


@pytest.mark.notebook
def test_the_notebook_is_complete_and_free_of_noise(made):
    text = made[1]
    notebook = nbformat.reads(text, as_version=4)
    nbformat.validate(notebook)
    # The tiny chapter has a solution without its exercise, in cell 5.
    assert not [line for line in rules.complaints(Content(notebook)) if "cell 5" not in line]
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == [1, 2, 3, 4, 5, 6]
    assert set(notebook.metadata) == {"kernelspec", "language_info", "source"}
    assert all(set(cell.metadata) <= {"collapsed", "tags", "jupyter"} for cell in notebook.cells)
    noise = "iopub|jupytext|timestamp|lines_to_next_cell|transient|widget-view"
    assert not re.search(noise, text) and text.endswith("}\n")


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("width = 0\n1 / width", "An error.*1 / width.*ZeroDivisionError: division"),
        ("import os\nos._exit(1)", "Kernel died"),
    ],
)
def test_a_cell_that_fails_is_shown_and_leaves_the_old_notebook_as_it_was(
    tiny, capsys, code, message
):
    tiny.source.write_text(f"# %%\n{code}\n")
    assert main(["--book", str(tiny.root / "book.toml"), "run", "00"]) == 1
    text = capsys.readouterr().err
    assert re.search(f"00_tiny: {message}.*is as it was", text, re.S) and "\x1b" not in text
    files = [path for path in tiny.ipynb.parent.iterdir() if path.is_file()]
    assert files == [tiny.ipynb] and tiny.ipynb.read_text() == OLD


# The committed notebooks ------------------------------------------------------------------------


@each_notebook
def test_committed_notebooks_agree_with_their_sources_and_keep_every_rule(chapter):
    assert notebooks.check(chapter) == []


@each_notebook
def test_committed_notebooks_are_clean(chapter):
    notebook = nbformat.read(chapter.ipynb, as_version=4)
    clean = notebooks.clean(copy.deepcopy(notebook))
    assert clean == notebook


OF_THE_COURSE = {"quiz", "recall", "predict", "course_map"}
"""They show what stands elsewhere or beside them, and compute nothing: no kernel is needed to see it."""


def _shown_by(code: str):
    """What a cell shows that is one call of `OF_THE_COURSE`; None for any other."""
    names = {"cu": cu, "course_map": lambda: CourseMap(COURSE)}
    match ast.parse(code).body:
        case [ast.Expr(ast.Call(ast.Attribute(ast.Name("cu"), name) | ast.Name(name)) as call)] if (
            name in OF_THE_COURSE
        ):
            return eval(compile(ast.Expression(call), "<cell>", "eval"), names)


def _texts(data: dict) -> dict:
    """The texts of an output, without the pixels of pictures."""
    texts = {kind: text for kind, text in data.items() if kind.startswith("text/")}
    return {kind: re.sub(r"(?<=base64,)[\w+/=]*", "", text) for kind, text in texts.items()}


@each_notebook
def test_committed_questions_and_maps_are_those_of_today(chapter):
    show = DisplayFormatter().format
    for cell in nbformat.read(chapter.ipynb, as_version=4).cells:
        if cell.cell_type == "code" and (shown := _shown_by(cell.source)) is not None:
            today = _texts(show(shown)[0]) or {"text/plain": repr(shown)}  # a picture shows itself
            (output,) = cell.outputs
            kept = _texts(output.data)
            assert {kind: kept.get(kind) for kind in today} == today, (
                f"make notebooks CHAPTER={chapter.number}"
            )
