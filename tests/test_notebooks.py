"""Pairs, execution and rules: notebooks are made whole and reproducibly, and the committed ones keep the rules.

A tiny chapter in a temporary folder serves for the machinery; the chapters of book.toml for the rules.
"""

import ast
import copy
import json
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
from tiny_book import book

import course_utils as cu
from course_utils.files import ROOT
from course_utils.studio import StudioError, handout, manifest, notebooks, rules
from course_utils.studio.__main__ import main
from course_utils.studio.course_map import CourseMap
from course_utils.studio.manifest import Chapter
from course_utils.studio.page import Page

COURSE = manifest.load(files=False).whole
CHAPTERS = COURSE.notebooks

TINY = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Tiny

# %%
import io
import os
import sys
import time

import ipywidgets
from IPython.display import Image
from matplotlib.figure import Figure

# %%
figure = Figure()
figure.subplots().plot([1, 2])
buffer = io.BytesIO()
figure.savefig(buffer, format="png")
Image(buffer.getvalue(), metadata={"alt": "A line that rises from one to two"})

# %%
ipywidgets.IntSlider(3)

# %% tags=["nbval-ignore-output"]
print(f"{time.perf_counter():.4f} s for {time.time_ns()} things")

# %% tags=["solution"] jupyter={"source_hidden": true}
for word in ("merged", "into", "one"):
    print(word, flush=True)
    time.sleep(0.05)

# %%
sys.executable, os.environ.get("COURSE_STRICT")
"""

BOOK = book("00_tiny", "01_other")


@pytest.fixture
def tiny(tmp_path) -> Chapter:
    """A chapter whose source is on disk and whose notebook is not made yet."""
    return _chapter(tmp_path, TINY)


def _chapter(root, source) -> Chapter:
    (root / "notebooks" / "source").mkdir(parents=True)
    (root / "book.toml").write_text(BOOK)
    chapter = Chapter("00_tiny", "Tiny", root=root)
    chapter.source.write_text(source)
    return chapter


def _read(chapter):
    return nbformat.read(chapter.ipynb, as_version=4)


def _files(chapter):
    return sorted(path.name for path in chapter.ipynb.parent.iterdir() if path.is_file())


# Making a notebook ------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The tiny chapter, made once: its notebook's bytes and what was said."""
    chapter = _chapter(tmp_path_factory.mktemp("made"), TINY)
    said = notebooks.make(chapter)
    return chapter, chapter.ipynb.read_bytes(), said


@pytest.mark.notebook
def test_making_a_notebook_twice_changes_no_byte(made):
    chapter, first, _ = made
    notebooks.make(chapter)
    assert chapter.ipynb.read_bytes() == first


@pytest.mark.notebook
def test_the_notebook_is_complete_and_free_of_noise(made):
    chapter, raw, said = made
    notebook, text = _read(chapter), raw.decode()
    nbformat.validate(notebook)
    # The tiny chapter has a solution without its exercise, in cell 5.
    assert [one for one in rules.complaints(Page(notebook)) if "cell 5" not in one] == []
    assert "widget-view" not in text
    counts = [cell.execution_count for cell in notebook.cells if cell.cell_type == "code"]
    assert counts == [1, 2, 3, 4, 5, 6]
    assert set(notebook.metadata) == {"kernelspec", "language_info", "source"}
    assert all(set(cell.metadata) <= {"tags", "jupyter"} for cell in notebook.cells)
    assert not re.search("iopub|jupytext|peak_mb|timestamp|lines_to_next_cell|transient", text)
    assert text.endswith("}\n")
    assert "00_tiny: " in said and " s" in said


@pytest.mark.notebook
def test_execute_hands_variables_and_folder_to_the_kernel(tmp_path, monkeypatch):
    monkeypatch.setenv("OF_A_TEST", "inherited")
    source = "import os\nprint([os.environ.get('OF_A_TEST'), os.getcwd()])"
    for env, seen in ((None, "inherited"), ({"OF_A_TEST": "1"}, "1")):
        notebook = new_notebook(cells=[new_code_cell(source)])
        assert notebooks.execute(notebook, cwd=tmp_path, env=env) is notebook
        assert notebook.cells[0].outputs[0].text == f"{[seen, str(tmp_path)]}\n"


def _measured(*outputs, source="measure()"):
    cell = new_code_cell(source, execution_count=1, metadata={"tags": [notebooks.MEASURED]})
    cell.outputs = [new_output("stream", name="stdout", text=text) for text in outputs]
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


# Failing and interrupting -----------------------------------------------------------------------


@pytest.mark.notebook
def test_a_failing_cell_is_shown_with_its_error(tiny, capsys):
    tiny.source.write_text(TINY + "\n# %%\nwidth = 0\n1 / width\n")
    tiny.ipynb.write_text("the old notebook")
    assert main(["--book", str(tiny.root / "book.toml"), "run", "00"]) == 1
    assert tiny.ipynb.read_text() == "the old notebook" and _files(tiny) == ["00_tiny.ipynb"]
    said = capsys.readouterr().err
    assert re.search(
        "00_tiny: An error occurred.*1 / width.*ZeroDivisionError: division", said, re.S
    )
    assert "\x1b" not in said and len(said.splitlines()) < 25


@pytest.mark.notebook
def test_a_dead_kernel_leaves_the_old_notebook_as_it_was(tiny):
    tiny.source.write_text("# %%\nimport os\n\nos._exit(1)\n")
    tiny.ipynb.write_text("the old notebook")
    with pytest.raises(notebooks.NotebookError, match=r"Kernel died\n.* is as it was"):
        notebooks.make(tiny)
    assert tiny.ipynb.read_text() == "the old notebook" and _files(tiny) == ["00_tiny.ipynb"]


@pytest.mark.notebook
@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT to a process")
def test_an_interrupt_leaves_the_old_notebook_as_it_was(tiny):
    flag = tiny.root / "started"
    source = f"from pathlib import Path\nimport time\nPath({str(flag)!r}).touch()\ntime.sleep(60)"
    tiny.source.write_text(f"# %%\n{source}\n")
    tiny.ipynb.write_text("the old notebook")
    command = [sys.executable, "-m", "course_utils.studio", "--book", tiny.root / "book.toml"]
    process = subprocess.Popen([*command, "run", "00"], cwd=ROOT, stderr=subprocess.PIPE, text=True)
    while not flag.exists():
        assert process.poll() is None
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    message = process.communicate(timeout=300)[1]
    assert process.returncode == 130
    assert message.startswith("Interrupted") and "Traceback" not in message
    assert tiny.ipynb.read_text() == "the old notebook" and _files(tiny) == ["00_tiny.ipynb"]


@pytest.mark.notebook
def test_what_only_the_old_notebook_holds_goes_into_the_source_first(tiny):
    tiny.source.write_text("# %%\n1\n")
    edited = notebooks.read_source(tiny.source)
    edited.cells[0].source = "2"
    tiny.ipynb.write_text(nbformat.writes(edited))
    assert notebooks.make(tiny).endswith("; 00_tiny.py follows 00_tiny.ipynb")
    assert _read(tiny).cells[0].outputs[0].data["text/plain"] == "2"
    edited.cells[0].source = "3"
    tiny.ipynb.write_text(nbformat.writes(edited))
    tiny.source.write_text("# %%\n4\n")
    with pytest.raises(StudioError, match=r"both edited(.*\n)*-4\n\+3"):
        notebooks.make(tiny)


# The command ------------------------------------------------------------------------------------


@pytest.fixture
def course(tmp_path) -> manifest.Manifest:
    _chapter(tmp_path, TINY)
    return manifest.load(tmp_path / "book.toml", files=False)


def test_an_unknown_chapter_is_answered_with_those_that_exist(course, capsys):
    book = str(course.chapters[0].root / "book.toml")
    assert main(["--book", book, "run", "07"]) == 1
    assert "begins with '07'; there are 00_tiny, 01_other" in capsys.readouterr().err


@pytest.mark.notebook
def test_check_says_where_a_pair_differs_and_which_rule_is_broken(made, tmp_path, capsys):
    chapter = _chapter(tmp_path, TINY.replace("merged", "changed"))
    chapter.ipynb.write_bytes(made[1])
    path = tmp_path / "book.toml"
    path.write_text(book("00_tiny"))
    assert main(["--book", str(path), "check"]) == 1
    said = capsys.readouterr().out
    assert "00_tiny: -for word in" in said and "00_tiny: +for word in" in said
    assert "an exercise's cell under no '### Exercise 1 · Title'; add it" in said


# Pairs ------------------------------------------------------------------------------------------


@pytest.mark.notebook
@pytest.mark.parametrize(
    ("old", "new", "difference"),
    [
        ("IntSlider(3)", "IntSlider(4)", "-ipywidgets.IntSlider(4)\n+ipywidgets.IntSlider(3)"),
        ('tags=["solution"]', 'tags=["check"]', '-# %% tags=["check"]'),
        ('jupyter={"source_hidden": true}', "", '+# %% tags=["solution"] jupyter='),
        ("[markdown]", "[raw]", "-# %% [raw]\n+# %% [markdown]"),
        ("# %% [markdown]\n# # Tiny\n\n", "", "+# %% [markdown]\n+# # Tiny"),
    ],
)
def test_every_difference_in_a_pair_is_found(made, tmp_path, old, new, difference):
    assert old in TINY
    chapter = _chapter(tmp_path, TINY.replace(old, new))
    chapter.ipynb.write_bytes(made[1])
    assert difference in "\n".join(notebooks.check(chapter))


# The handout ------------------------------------------------------------------------------------


def test_the_handout_has_neither_solutions_nor_outputs_nor_sources(course, tmp_path):
    root = course.chapters[0].root
    (root / "LICENSE").write_text("MIT")
    (root / "course_utils" / "__pycache__").mkdir(parents=True)
    (root / "course_utils" / "a.py").touch()
    (root / "notebooks" / "source" / "01_other.py").write_text("# %%\n1\n")
    to = tmp_path / "_build" / "handout"
    assert main(["--book", str(root / "book.toml"), "handout", "--to", str(to)]) == 0
    handed = manifest.load(to / "book.toml", files=False).chapters
    assert len(handed) == 2
    cells = _read(handed[0]).cells
    assert len(cells) == 7 and not any(cell.get("outputs") for cell in cells)
    assert "release.meet" in cells[1].source
    assert "_solution" not in handed[0].ipynb.read_text()
    assert not any("solution" in cell.metadata.get("tags", ()) for cell in cells)
    assert (to / "book.toml").read_text() == BOOK and "make lab" in (to / "README.md").read_text()
    assert (to / "LICENSE").is_file() and (to / "course_utils" / "a.py").is_file()
    assert not list(to.rglob("__pycache__")) and not (to / "notebooks" / "source").exists()


@pytest.fixture
def handed(course, tmp_path):
    """A handout; called, it is written again."""
    root, to = course.chapters[0].root, tmp_path / "out"
    (root / "notebooks" / "source" / "01_other.py").write_text("# %%\n1\n")

    def build():
        handout.build(course, root, to)

    build()
    return build


def test_a_handout_replaces_an_earlier_one_and_nothing_else(course, handed, tmp_path):
    old = tmp_path / "out" / "old"
    old.touch()
    handed()
    assert not old.exists()
    mine = tmp_path / "mine"
    mine.mkdir()
    (mine / "thesis.txt").touch()
    with pytest.raises(handout.HandoutError, match=r"holds something else.*--to"):
        handout.build(course, course.chapters[0].root, mine)
    assert (mine / "thesis.txt").exists()


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("00_tiny.ipynb", lambda text: text.replace("IntSlider(3)", "IntSlider(4)")),
        ("00_tiny.ipynb", lambda text: text[:-9]),
        ("07_mine.ipynb", lambda text: "{}"),
    ],
)
def test_a_handout_in_which_somebody_has_worked_is_not_replaced(handed, tmp_path, file, edit):
    path = tmp_path / "out" / "notebooks" / file
    path.write_text(changed := edit(path.read_text() if path.exists() else ""))
    with pytest.raises(handout.HandoutError, match=rf"worked in .*{path.stem}.*--to"):
        handed()
    assert path.read_text() == changed


def test_a_handout_can_be_started(tmp_path):
    handout.build(manifest.Manifest("T", (), "", "", ()), ROOT, tmp_path / "out")
    assert "lab: .venv/.stamp" in (tmp_path / "out" / "Makefile").read_text()
    assert (tmp_path / "out" / "tools" / "bootstrap.py").is_file()


STUBBED = """\
# %%
import course_utils as cu

# %% [markdown]
# ### Exercise 1 · Mine
# *build · 8 minutes*

# %% tags=["exercise", "build"]
def mine(*given):
    \"\"\"What the check asks for.\"\"\"

# %% tags=["check"]
cu.checks.CHECK(mine)

# %% tags=["solution"] jupyter={"source_hidden": true, "outputs_hidden": true}
def mine_solution(*given):
    raise RuntimeError("handed out")

cu.checks.CHECK(mine_solution)

# %%
part = cu.choose(mine, cu.causal_mask)
print(part(2).tolist())
"""


@pytest.mark.notebook
def test_a_handout_in_the_form_runs_through_with_open_stubs(tmp_path):
    import course_utils as cu

    name = dir(cu.checks)[0]
    chapter = _chapter(tmp_path, STUBBED.replace("CHECK", name))
    course = manifest.Manifest("T", (), "", "", (chapter,), path=tmp_path / "book.toml")
    handout.build(course, tmp_path, tmp_path / "out")
    handed = Chapter("00_tiny", "Tiny", root=tmp_path / "out")
    assert "_solution" not in handed.ipynb.read_text() and handed.minutes >= 8
    (stub,) = json.loads((tmp_path / "out" / "stubs.json").read_text()).items()
    assert stub[0] == name and stub[1].startswith("def mine(")
    notebook = _read(handed)
    notebooks.execute(notebook, cwd=handed.ipynb.parent, env={"COURSE_STRICT": "0"})
    stub, check, choice = notebook.cells[-3:]
    assert stub.metadata["tags"] == ["exercise", "build"] and "def mine" in stub.source
    said = check.outputs[0].data["text/plain"]
    assert said.startswith(f"{name}: not done yet") and "It will test:\n  · " in said
    assert choice.outputs[0].text == (
        "causal_mask: the course's; mine has not passed its check yet\n"
        "[[True, False], [True, True]]\n"
    )


# nbval ------------------------------------------------------------------------------------------


def _nbval(path):
    command = [sys.executable, "-m", "pytest", "--nbval", "--nbval-current-env", "-q"]
    options = ["-p", "no:cacheprovider", "-c", os.devnull, f"--rootdir={path.parent}"]
    return subprocess.run(
        [*command, *options, str(path)], capture_output=True, text=True, cwd=path.parent
    )


@pytest.mark.notebook
def test_nbval_passes_what_was_made_and_catches_a_changed_output(tiny):
    tiny.source.write_text("# %%\nprint(6 * 7)\n\n# %%\nprint(6 * 8)\n")
    notebooks.make(tiny)
    tiny.ipynb.write_text(tiny.ipynb.read_text().replace('"48', '"49'))
    result = _nbval(tiny.ipynb)
    assert result.returncode == 1 and "1 failed, 1 passed" in result.stdout, result.stdout


# The committed notebooks ------------------------------------------------------------------------


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.notebook)
def test_committed_notebooks_agree_with_their_sources_and_keep_every_rule(chapter):
    assert notebooks.check(chapter) == []


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.notebook)
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


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.notebook)
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
