"""Execution and rules: notebooks are made whole and reproducibly, and the committed ones keep the rules.

A tiny chapter in a temporary folder serves for the machinery; the chapters of book.toml for the rules.
"""

import ast
import copy
import os
import re
import signal
import subprocess
import sys
import time

import nbformat
import pytest
from IPython.core.formatters import DisplayFormatter
from nbformat.v4 import new_code_cell, new_notebook, new_output
from tiny_book import TINY, write_book

import course_utils as cu
from course_utils.files import ROOT
from course_utils.studio import manifest, notebooks, rules
from course_utils.studio.__main__ import main
from course_utils.studio.course_map import CourseMap
from course_utils.studio.manifest import Chapter
from course_utils.studio.page import Page
from course_utils.studio.pairs import PairError

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


def _is_as_it_was(chapter: Chapter) -> bool:
    files = [path for path in chapter.ipynb.parent.iterdir() if path.is_file()]
    return files == [chapter.ipynb] and chapter.ipynb.read_text() == OLD


# Making a notebook ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> tuple[Chapter, str]:
    """The tiny chapter, made once, and its notebook's text."""
    chapter = write_book(tmp_path_factory.mktemp("made"))
    assert notebooks.make(chapter).startswith("00_tiny: ")
    return chapter, chapter.ipynb.read_text()


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
    assert not [line for line in rules.complaints(Page(notebook)) if "cell 5" not in line]
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == [1, 2, 3, 4, 5, 6]
    assert set(notebook.metadata) == {"kernelspec", "language_info", "source"}
    assert all(set(cell.metadata) <= {"collapsed", "tags", "jupyter"} for cell in notebook.cells)
    noise = "iopub|jupytext|timestamp|lines_to_next_cell|transient|widget-view"
    assert not re.search(noise, text) and text.endswith("}\n")


@pytest.mark.notebook
def test_execute_hands_variables_and_folder_to_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("INHERITED", "1")
    names = "'INHERITED', 'GIVEN', 'COURSE_STRICT'"
    source = f"import os\nprint([os.environ[name] for name in ({names})], os.getcwd())"
    notebook = new_notebook(cells=[new_code_cell(source)])
    notebooks.execute(notebook, cwd=tmp_path, env={"GIVEN": "2"})
    assert notebook.cells[0].outputs[0].text == f"['1', '2', '1'] {tmp_path}\n"


def _measured(text):
    cell = new_code_cell("measure()", execution_count=1, metadata={"tags": [notebooks.MEASURED]})
    cell.outputs = [new_output("stream", name="stdout", text=text)]
    return notebooks.clean(new_notebook(cells=[cell]))


@pytest.mark.parametrize(
    ("old", "new", "kept"),
    [
        ("1.25 ms on 2 cores", "987.1 µs on 4 cores", True),
        ("n   time\n10  1.0 s", "n   time\n10  0.9e-3 s", True),
        ("device: cpu", "device: cuda", False),
    ],
)
def test_measured_numbers_are_kept_and_other_news_is_not(old, new, kept):
    result = notebooks.keep_measured(_measured(new), _measured(old))
    assert result.cells[0].outputs[0].text == (old if kept else new)


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
    assert _is_as_it_was(tiny)


@pytest.mark.notebook
@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT to a process")
def test_an_interrupt_leaves_the_old_notebook_as_it_was(tiny):
    flag = tiny.root / "started"
    source = f"from pathlib import Path\nimport time\nPath({str(flag)!r}).touch()\ntime.sleep(60)"
    tiny.source.write_text(f"# %%\n{source}\n")
    command = [sys.executable, "-m", "course_utils.studio", "--book", tiny.root / "book.toml"]
    process = subprocess.Popen([*command, "run", "00"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while not flag.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=300)[1]
    assert process.returncode == 130 and message.startswith("Interrupted")
    assert _is_as_it_was(tiny)


@pytest.mark.notebook
def test_what_only_the_old_notebook_holds_goes_into_the_source_first(tiny):
    tiny.source.write_text("# %%\n1\n")
    edited = notebooks.read_source(tiny.source)
    edited.cells[0].source = "2"
    tiny.ipynb.write_text(nbformat.writes(edited))
    assert notebooks.make(tiny).endswith("; 00_tiny.py follows 00_tiny.ipynb")
    made = nbformat.read(tiny.ipynb, as_version=4)
    assert made.cells[0].outputs[0].data["text/plain"] == "2"
    edited.cells[0].source = "3"
    tiny.ipynb.write_text(nbformat.writes(edited))
    tiny.source.write_text("# %%\n4\n")
    with pytest.raises(PairError, match=r"both edited(.*\n)*-4\n\+3"):
        notebooks.make(tiny)


def test_an_unknown_chapter_is_answered_with_those_that_exist(tiny, capsys):
    assert main(["--book", str(tiny.root / "book.toml"), "run", "07"]) == 1
    assert "begins with '07'; there are 00_tiny" in capsys.readouterr().err


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("IntSlider(3)", "IntSlider(4)", "-ipywidgets.IntSlider(4)\n00_tiny: +ipywidgets.IntSl"),
        ('tags=["solution"]', 'tags=["check"]', '00_tiny: -# %% tags=["check"]'),
        ("[markdown]", "[raw]", "-# %% [raw]\n00_tiny: +# %% [markdown]"),
        ("# %% [markdown]\n# # Tiny\n\n", "", "+# %% [markdown]\n00_tiny: +# # Tiny"),
    ],
)
def test_check_says_where_a_pair_differs_and_which_rule_is_broken(
    made, tmp_path, capsys, old, new, difference
):
    chapter = write_book(tmp_path, TINY.replace(old, new))
    chapter.ipynb.write_text(made[1])
    assert main(["--book", str(tmp_path / "book.toml"), "check"]) == 1
    text = capsys.readouterr().out
    assert difference in text
    assert "an exercise's cell under no '### Exercise 1 · Title'; add it" in text


@pytest.mark.notebook
def test_nbval_passes_what_was_made_and_catches_a_changed_output(tiny):
    tiny.source.write_text("# %%\nprint(6 * 7)\n\n# %%\nprint(6 * 8)\n")
    notebooks.make(tiny)
    tiny.ipynb.write_text(tiny.ipynb.read_text().replace('"48', '"49'))
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q"]
    command += ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={tiny.root}"]
    folder = tiny.ipynb.parent
    done = subprocess.run([*command, str(tiny.ipynb)], capture_output=True, text=True, cwd=folder)
    assert done.returncode == 1 and "1 failed, 1 passed" in done.stdout, done.stdout


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


TYPED = """\
# %%
import os

from course_utils.files import home
from course_utils.kit.guard import strict

1
2

# %%
strict(), (home() / "progress.json").exists(), os.environ["MPLBACKEND"], "mine" in globals()
"""

AT_HOME = {
    ".attention-course/progress.json": "{}",
    ".ipython/profile_default/ipython_config.py": (
        "get_config().InteractiveShell.ast_node_interactivity = 'all'"
    ),
    ".ipython/profile_default/startup/mine.py": "mine = 1",
    "startup.py": "mine = 1",
}


@pytest.mark.notebook
def test_a_notebook_is_green_as_it_is_typed_whatever_stands_in_the_home(tiny, tmp_path):
    tiny.source.write_text(TYPED)
    notebooks.make(tiny)
    for part in ("conftest.py", "pyproject.toml", "course_utils", "tests"):
        (tmp_path / part).symlink_to(ROOT / part)
    for name, text in AT_HOME.items():
        path = tmp_path / "home" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    ours = ("COURSE", "IPYTHON", "PYTEST", "JUPYTER")
    environ = {key: value for key, value in os.environ.items() if not key.startswith(ours)}
    environ |= {"HOME": str(tmp_path / "home"), "MPLBACKEND": "Agg"}
    environ |= {"PYTHONSTARTUP": str(tmp_path / "home" / "startup.py")}
    command = [sys.executable, "-m", "pytest", "--nbval", "notebooks/00_tiny.ipynb"]
    done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
