"""The handout: neither solutions nor outputs, all that it takes to work, and never over somebody's work."""

import json

import nbformat
import pytest
from tiny_book import TINY, write_book

import course_utils as cu
from course_utils.files import ROOT
from course_utils.studio import StudioError, handout, manifest, notebooks
from course_utils.studio.__main__ import main

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


@pytest.fixture
def build(tmp_path):
    """Writes the handout of a course of one chapter, from this source; its folder."""

    def write(source=TINY):
        if not (tmp_path / "book.toml").exists():
            write_book(tmp_path, source)
        course = manifest.load(tmp_path / "book.toml", files=False)
        handout.build(course, tmp_path, tmp_path / "out")
        return tmp_path / "out"

    return write


def test_the_handout_has_neither_solutions_nor_outputs_nor_sources(tmp_path):
    write_book(tmp_path)
    (tmp_path / "LICENSE").write_text("MIT")
    (tmp_path / "course_utils" / "__pycache__").mkdir(parents=True)
    (tmp_path / "course_utils" / "a.py").touch()
    to = tmp_path / "_build" / "handout"
    assert main(["--book", str(tmp_path / "book.toml"), "handout", "--to", str(to)]) == 0
    (chapter,) = manifest.load(to / "book.toml", files=False).chapters
    cells = nbformat.read(chapter.ipynb, as_version=4).cells
    assert len(cells) == 7 and not any(cell.get("outputs") for cell in cells)
    assert "release.start_notebook" in cells[1].source
    assert not any("solution" in cell.metadata.get("tags", ()) for cell in cells)
    assert "make lab" in (to / "README.md").read_text()
    assert (to / "LICENSE").is_file() and (to / "course_utils" / "a.py").is_file()
    assert not list(to.rglob("__pycache__")) and not (to / "notebooks" / "source").exists()


def test_a_handout_replaces_an_earlier_one_and_nothing_else(build):
    folder = build()
    (folder / "old").touch()
    build()
    assert not (folder / "old").exists()
    (folder / "README.md").unlink()
    with pytest.raises(StudioError, match=r"holds something else.*--to"):
        build()
    assert (folder / "book.toml").exists()


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("00_tiny.ipynb", lambda text: text.replace("IntSlider(3)", "IntSlider(4)")),
        ("00_tiny.ipynb", lambda text: text[:-9]),
        ("07_mine.ipynb", lambda text: "{}"),
    ],
)
def test_a_handout_in_which_somebody_has_worked_is_not_replaced(build, file, edit):
    path = build() / "notebooks" / file
    path.write_text(changed := edit(path.read_text() if path.exists() else ""))
    with pytest.raises(StudioError, match=rf"worked in .*{path.stem}.*--to"):
        build()
    assert path.read_text() == changed


def test_a_handout_can_be_started(tmp_path):
    handout.build(manifest.Manifest("T", (), "", "", ()), ROOT, tmp_path / "out")
    assert "lab: .venv/.stamp" in (tmp_path / "out" / "Makefile").read_text()
    assert (tmp_path / "out" / "tools" / "bootstrap.py").is_file()


@pytest.mark.notebook
def test_a_handout_runs_through_with_open_stubs(build):
    name = dir(cu.checks)[0]
    folder = build(STUBBED.replace("CHECK", name))
    (chapter,) = manifest.load(folder / "book.toml", files=False).chapters
    assert "_solution" not in chapter.ipynb.read_text() and chapter.minutes >= 8
    (stub,) = json.loads((folder / "stubs.json").read_text()).items()
    assert stub[0] == name and stub[1].startswith("def mine(")
    notebook = nbformat.read(chapter.ipynb, as_version=4)
    notebooks.execute(notebook, cwd=chapter.ipynb.parent, env={"COURSE_STRICT": "0"})
    stub, check, choice = notebook.cells[-3:]
    assert stub.metadata["tags"] == ["exercise", "build"] and "def mine" in stub.source
    report = check.outputs[0].data["text/plain"]
    assert report.startswith(f"{name}: not done yet") and "It will test:\n  · " in report
    assert choice.outputs[0].text == (
        "causal_mask: the course's; mine has not passed its check yet\n"
        "[[True, False], [True, True]]\n"
    )
