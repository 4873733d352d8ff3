"""No edit is lost silently: the two halves of a pair, edited, saved, pulled, merged and deleted in every order."""

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
import urllib.request
from pathlib import Path

import jupytext
import nbformat
import pytest
from browsing import jupyter
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from jupytext import AsyncTextFileContentsManager
from tornado.web import HTTPError

from course_utils.runtime import ROOT
from course_utils.studio import lab, notebooks
from course_utils.studio.pairs import NOTE, Pair, PairedContents

SOURCE = """\
# ---
# jupyter:
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # A chapter
#
# With prose.

# %% tags=["exercise"]
def answer():
    pass


# %%
print(6 * 7)

# %% [markdown]
# The end.
"""
PATH = "notebooks/00_tiny.ipynb"


class Course:
    """A course of one pair in a folder, and everybody who touches it."""

    def __init__(self, root: Path, manager: type = PairedContents):
        self.root, self.pair = root, Pair(root / PATH, root / "notebooks/source/00_tiny.py")
        self.manager = manager
        self.lab = manager(root_dir=str(root))

    @classmethod
    def made(cls, root: Path) -> "Course":
        """A pair as `make notebooks` leaves it."""
        course = cls(root)
        course.pair.source.parent.mkdir(parents=True)
        (root / "book.toml").touch()
        shutil.copy(ROOT / "pyproject.toml", root)
        course.pair.source.write_text(SOURCE)
        notebook = notebooks.read_source(course.pair.source)
        notebook.cells[2].execution_count = 1
        notebook.cells[2].outputs = [nbformat.v4.new_output("stream", text="42\n")]
        notebooks.write(notebook, course.pair.notebook)
        course.at(1000, 1000)
        return course

    def at(self, notebook: float, source: float) -> None:
        """Set the times of both files."""
        os.utime(self.pair.notebook, (notebook, notebook))
        os.utime(self.pair.source, (source, source))

    def in_notebook(self, old: str, new: str) -> None:
        """Edit the notebook, and nothing else, as an editor without jupytext does."""
        notebook = json.loads(self.pair.notebook.read_text())
        text = json.dumps([cell["source"] for cell in notebook["cells"]])
        assert old in text
        for cell, changed in zip(
            notebook["cells"], json.loads(text.replace(old, new)), strict=True
        ):
            cell["source"] = changed
        self.pair.notebook.write_text(json.dumps(notebook))

    def in_source(self, old: str, new: str) -> None:
        """Edit the source, and nothing else, in a text editor."""
        text = self.pair.source.read_text()
        assert old in text
        self.pair.source.write_text(text.replace(old, new))

    def open(self, path: str = PATH) -> dict:
        """What Lab gets when it opens the notebook."""
        return asyncio.run(self.lab.get(path, type="notebook"))["content"]

    def shown(self) -> str:
        """The text of the opened notebook, without the note."""
        cells = self.open().cells
        return "\n".join(c.source for c in cells if NOTE not in c.metadata.get("tags", []))

    def save(self, content: dict, old: str = "", new: str = "") -> None:
        """Edit the opened notebook in Lab, and save it."""
        for cell in content.cells:
            cell.source = cell.source.replace(old, new)
        asyncio.run(self.lab.save({"type": "notebook", "content": content}, PATH))

    def kept(self) -> list[str]:
        """The texts of the copies beside the pair."""
        files = sorted(self.pair.notebook.parent.glob("*.kept-*.ipynb"))
        return ["\n".join(c.source for c in nbformat.read(f, 4).cells) for f in files]

    def everything(self) -> str:
        """All that stands anywhere in the course's notebooks."""
        return "\n".join(f.read_text() for f in (self.root / "notebooks").rglob("*") if f.is_file())


@pytest.fixture
def course(tmp_path) -> Course:
    return Course.made(tmp_path)


# What is opened, and what is kept ---------------------------------------------------------------

MINE, OURS = "return 'mine'", "return 'ours'"


def notebook_edited(course):
    course.in_notebook("pass", MINE)


def source_edited(course):
    course.in_source("pass", OURS)


def saved_in_lab(course):
    course.save(course.open(), "pass", "return 'saved'")


def notebook_edited_after_that(course):
    course.in_notebook("return 'saved'", MINE)


def source_edited_after_that(course):
    course.in_source("return 'saved'", OURS)


def end_of_source_edited(course):
    course.in_source("The end.", "Farewell.")


def notebook_newer(course):
    course.at(9000, 1000)


def source_newer(course):
    course.at(1000, 9000)


def one_age(course):
    course.at(5000, 5001)


def without_ids(course):
    """What a hosted editor does to a notebook that is uploaded and downloaded."""
    notebook = json.loads(course.pair.notebook.read_text())
    notebook["nbformat_minor"] = 0
    for cell in notebook["cells"]:
        del cell["id"]
    course.pair.notebook.write_text(json.dumps(notebook))


def backup_put_back(course):
    """The notebook, and it alone, as it was before it was ever opened."""
    source = jupytext.reads(SOURCE, "py:percent")
    notebooks.write(notebooks.clean(source), course.pair.notebook)


def backup_of_work_put_back(course):
    saved = course.pair.notebook.read_text()
    course.save(course.open(), "return 'saved'", OURS)
    course.pair.notebook.write_text(saved)


def _name(steps) -> str:
    return ", ".join(step.__name__ for step in steps) or "nothing"


ORDERS = [
    # what happened                                                   shown     kept
    ([], "pass", []),
    ([notebook_newer], "pass", []),
    ([source_newer], "pass", []),
    ([saved_in_lab], "saved", []),
    ([saved_in_lab, notebook_newer], "saved", []),
    ([notebook_edited], "mine", []),
    ([notebook_edited, source_newer], "mine", []),
    ([source_edited], "ours", []),
    ([source_edited, notebook_newer], "ours", []),
    ([notebook_edited, source_edited, notebook_newer], "mine", ["ours"]),
    ([notebook_edited, source_edited, source_newer], "ours", ["mine"]),
    ([notebook_edited, source_edited, one_age], "mine", ["ours"]),
    ([notebook_edited, end_of_source_edited, source_newer], "pass", ["mine"]),
    ([saved_in_lab, notebook_edited_after_that, notebook_newer], "mine", ["saved"]),
    ([saved_in_lab, notebook_edited_after_that, source_newer], "saved", ["mine"]),
    ([saved_in_lab, source_edited_after_that, source_newer], "ours", ["saved"]),
    ([notebook_edited, without_ids, notebook_newer], "mine", ["pass"]),
    ([notebook_edited, without_ids, source_newer], "pass", ["mine"]),
    ([saved_in_lab, backup_put_back, notebook_newer], "saved", []),
    ([saved_in_lab, backup_of_work_put_back, notebook_newer], "saved", ["ours"]),
    ([saved_in_lab, backup_of_work_put_back, source_newer], "ours", ["saved"]),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("steps", "shown", "kept"), [pytest.param(*row, id=_name(row[0])) for row in ORDERS]
)
def test_every_order_of_edits_opens_one_half_and_keeps_the_other(course, steps, shown, kept):
    for step in steps:
        step(course)
    course = Course(course.root)  # Lab is started again
    assert shown in course.shown()
    assert len(course.kept()) == len(kept)
    for text, copy in zip(kept, course.kept(), strict=True):
        assert text in copy
    # Saving what was opened changes nothing more, and both halves say the same from then on.
    course.save(course.open())
    assert shown in course.pair.source.read_text()
    assert not course.pair.difference().any
    assert len(course.kept()) == len(kept)


# Each word is written by one person into one half; Lab and `make notebooks` come in between.
STEPS = st.tuples(
    st.sampled_from(["notebook", "source", "lab", "open", "make", "times", "lab again"]),
    st.integers(0, 2),
)


@pytest.mark.slow
@settings(max_examples=25, phases=[Phase.explicit, Phase.generate])
@given(steps=st.lists(STEPS, min_size=2, max_size=6))
def test_opening_and_saving_never_remove_what_another_wrote(tmp_path_factory, steps):
    course = Course.made(tmp_path_factory.mktemp("course"))
    opened = course.open()
    for number, (step, place) in enumerate(steps):
        word = f"word{number}"
        before = set(re.findall(r"word\d+", course.everything()))
        if step == "notebook":
            notebook = json.loads(course.pair.notebook.read_text())
            notebook["cells"][place]["source"] = word
            course.pair.notebook.write_text(json.dumps(notebook))
            continue
        if step == "source":
            heads = list(re.finditer(r"^# %%.*$", course.pair.source.read_text(), re.MULTILINE))
            text, end = course.pair.source.read_text(), heads[place].end()
            rest = text.find("\n# %%", end)
            comment = "# " if "markdown" in heads[place][0] else ""
            course.pair.source.write_text(f"{text[:end]}\n{comment}{word}\n{text[rest:]}")
            continue
        overwritten = set()
        if step == "open":
            opened = course.open()
        elif step in ("lab", "lab again"):  # again: an older page of Lab is still open, and saves
            opened = course.open() if step == "lab" else opened
            cell = [c for c in opened.cells if NOTE not in c.metadata.get("tags", [])][place]
            overwritten = set(re.findall(r"word\d+", cell.source))
            cell.source = word
            course.save(opened)
        elif step == "make":
            course.pair.keep_edits()
            notebooks.write(notebooks.read_source(course.pair.source), course.pair.notebook)
        else:
            course.at(1000 + 1000 * place, 2000)
        assert before - overwritten <= set(re.findall(r"word\d+", course.everything()))


# Halves that are deleted, merged, unreadable ----------------------------------------------------


def test_without_a_source_the_notebook_opens_and_saving_writes_the_source(course):
    course.pair.source.unlink()
    course.save(course.open(), "pass", MINE)
    assert MINE in course.pair.source.read_text() and MINE in course.pair.notebook.read_text()


def test_without_a_notebook_the_source_opens_and_saving_writes_the_notebook(course):
    course.pair.notebook.unlink()
    content = course.open("notebooks/source/00_tiny.py")
    course.save(content, "pass", MINE)
    assert MINE in course.pair.source.read_text() and MINE in course.pair.notebook.read_text()


def test_the_source_opened_as_a_notebook_is_the_same_pair(course):
    course.in_notebook("pass", MINE)
    shown = course.open("notebooks/source/00_tiny.py")
    assert MINE in shown.cells[1].source and MINE in course.pair.source.read_text()


def test_opened_as_text_each_half_is_what_it_is(course):
    course.in_notebook("pass", MINE)
    for half in (PATH, "notebooks/source/00_tiny.py"):
        model = asyncio.run(course.lab.get(half, type="file", format="text"))
        assert (MINE in model["content"]) is half.endswith("ipynb")


@pytest.mark.parametrize("broken", ["<<<<<<< HEAD\n{}", "{}", "[]", '{"cells": 3}', "null"])
def test_what_is_no_notebook_opens_from_its_source_and_is_kept(course, broken):
    course.pair.notebook.write_text(broken)
    note, *cells = course.open().cells
    assert "could not be read" in note.source and "pass" in cells[1].source
    (copy,) = course.pair.notebook.parent.glob("*.kept-*")
    assert copy.read_text() == broken
    assert copy.name in note.source
    assert not course.pair.difference().any


@pytest.fixture
def git(course):
    """A student's clone of a course; each call is a git command there, or in `upstream`."""
    if shutil.which("git") is None:
        pytest.skip("no git here")

    def run(*arguments, cwd=course.root):
        who = ["-c", "user.name=N", "-c", "user.email=n@example.org", "-c", "commit.gpgsign=false"]
        return subprocess.run(["git", *who, *arguments], cwd=cwd, capture_output=True, check=False)

    run("init", "-b", "main")
    run("add", ".")
    run("commit", "-m", "made")
    return run


def _upstream(course, git):
    """Another chapter text, published: both halves made anew, committed on a branch of their own."""
    git("checkout", "-b", "upstream")
    course.in_source("With prose.", "With better prose.")
    notebooks.write(notebooks.read_source(course.pair.source), course.pair.notebook)
    git("commit", "-am", "better")
    git("checkout", "main")


def test_a_merge_that_favors_ours_shows_the_answer_and_the_new_text(course, git):
    _upstream(course, git)
    course.in_notebook("pass", MINE)
    git("commit", "-am", "my answer, from an editor without jupytext")
    assert git("merge", "-X", "ours", "upstream").returncode == 0
    shown = course.shown()
    assert MINE in shown and ("better prose" in shown or "better prose" in course.kept()[0])


def test_a_merge_after_work_in_lab_shows_the_answer_and_the_new_text(course, git):
    _upstream(course, git)
    course.save(course.open(), "pass", MINE)
    git("commit", "-am", "my answer, from Lab")
    git("merge", "-X", "ours", "upstream")
    shown = course.shown()
    assert MINE in shown and "better prose" in shown


def test_a_pull_opens_the_pair_whatever_the_times(course, git):
    _upstream(course, git)
    git("merge", "--ff-only", "upstream")
    for times in [(1000, 9000), (9000, 1000)]:
        course.at(*times)
        assert "better prose" in course.shown()
    assert course.kept() == []


# While Lab is open ------------------------------------------------------------------------------


def test_the_note_is_shown_and_never_saved(course):
    notebook_edited(course)
    source_edited(course)
    content = course.open()
    assert "both changed" in content.cells[0].source and ".kept-" in content.cells[0].source
    course.save(content)
    assert "both changed" not in course.everything()
    assert "both changed" not in course.open().cells[0].source


@pytest.mark.parametrize("half", ["notebook", "source"])
def test_saving_over_an_edit_from_elsewhere_keeps_that_edit(course, half):
    content = course.open()
    (notebook_edited if half == "notebook" else source_edited)(course)
    course.save(content, "The end.", "Farewell.")
    assert len(course.kept()) == 1 and (MINE if half == "notebook" else OURS) in course.kept()[0]
    course.save(content, "Farewell.", "Adieu.")
    assert len(course.kept()) == 1


def test_saving_again_and_again_keeps_nothing(course):
    content = course.open()
    for number in range(3):
        course.save(content, "pass" if not number else f"return {number - 1}", f"return {number}")
    assert course.kept() == []


def test_going_back_to_a_checkpoint_goes_back_in_both_halves(course):
    content = course.open()
    checkpoint = asyncio.run(course.lab.create_checkpoint(PATH))
    course.save(content, "pass", MINE)
    asyncio.run(course.lab.restore_checkpoint(checkpoint["id"], PATH))
    assert "pass" in course.shown() and "pass" in course.pair.source.read_text()
    assert MINE in course.kept()[0]


def test_a_copy_is_a_notebook_of_its_own(course):
    notebook_edited(course)
    source_edited(course)
    course.open()
    (copy,) = course.pair.notebook.parent.glob("*.kept-*")
    path = f"notebooks/{copy.name}"
    assert re.fullmatch(r"00_tiny\.kept-\d{4}-\d\d-\d\d-\d{4}\.ipynb", copy.name)
    content = asyncio.run(course.lab.get(path))["content"]
    asyncio.run(course.lab.save({"type": "notebook", "content": content}, path))
    assert [file.name for file in course.pair.source.parent.iterdir()] == ["00_tiny.py"]


def test_two_copies_of_one_minute_have_two_names(course):
    assert course.pair.keep(course.pair.notebook) != course.pair.keep(course.pair.notebook)


def test_outputs_and_metadata_of_the_notebook_survive_an_edit_of_the_source(course):
    notebook = json.loads(course.pair.notebook.read_text())
    notebook["cells"][1]["metadata"]["slideshow"] = {"slide_type": "slide"}
    course.pair.notebook.write_text(json.dumps(notebook))
    end_of_source_edited(course)
    content = course.open()
    course.save(content)
    cells = course.pair.read().cells
    assert cells[2].outputs[0].text == "42\n"
    assert cells[1].metadata.slideshow == {"slide_type": "slide"}


def test_where_nothing_can_be_written_the_notebook_opens_as_it_is(course, monkeypatch):
    notebook_edited(course)
    source_edited(course)
    monkeypatch.setattr(
        Pair, "keep", lambda *_: (_ for _ in ()).throw(PermissionError("read-only"))
    )
    assert MINE in course.shown()
    assert OURS in course.pair.source.read_text()


def test_a_folder_without_a_manifest_is_none_of_ours(course):
    (course.root / "book.toml").unlink()
    assert Pair.of(course.pair.notebook) is None


# `make notebooks` -------------------------------------------------------------------------------


def test_making_a_notebook_keeps_what_only_the_notebook_holds(course):
    notebook_edited(course)
    assert MINE in nbformat.read(course.pair.keep_edits(), 4).cells[1].source


@pytest.mark.parametrize("steps", [[], [source_edited], [saved_in_lab], [notebook_newer]])
def test_making_a_notebook_keeps_no_copy_of_what_the_source_holds(course, steps):
    for step in steps:
        step(course)
    assert course.pair.keep_edits() is None


# Other ways to start Lab ------------------------------------------------------------------------


def test_jupytext_alone_refuses_a_newer_notebook_with_an_edit_and_opens_one_without(tmp_path):
    course = Course.made(tmp_path)
    plain = Course(tmp_path, AsyncTextFileContentsManager)
    for times in [(1000, 9000), (9000, 1000)]:
        course.at(*times)
        assert "pass" in plain.shown()
    course.in_notebook("pass", MINE)
    course.at(9000, 1000)
    with pytest.raises(HTTPError) as caught:
        plain.open()
    assert caught.value.status_code == 400
    assert MINE in course.pair.notebook.read_text()


@pytest.mark.slow
def test_the_server_of_make_lab_opens_and_saves_pairs_so(course):
    notebook_edited(course)
    end_of_source_edited(course)
    course.at(1000, 9000)
    with jupyter(course.root) as address:

        def contents(model=None):
            url = address.format(f"api/contents/{PATH}") + ("" if model else "&content=1&hash=1")
            data = json.dumps(model).encode() if model else None
            method = "PUT" if model else "GET"
            request = urllib.request.Request(url, data=data, method=method)
            with urllib.request.urlopen(request, timeout=300) as answer:
                return json.load(answer)

        model = contents()
        note, *cells = model["content"]["cells"]
        assert "kept-" in note["source"] and cells[-1]["source"] == "Farewell."
        assert MINE in course.kept()[0]
        cells[-1]["source"] = "Adieu."
        contents({"type": "notebook", "format": "json", "content": model["content"]})
    assert "Adieu." in course.pair.source.read_text()
    assert "Adieu." in course.pair.notebook.read_text()
    assert "kept-" not in course.pair.notebook.read_text()


@pytest.mark.slow
def test_the_server_reads_the_course_s_configuration_and_loads_no_pytorch():
    script = """
import sys
from traitlets.config.loader import PyFileConfigLoader
config = PyFileConfigLoader("jupyter_server_config.py", path=sys.argv[1]).load_config()
print(config.ServerApp.contents_manager_class.__name__, "torch" in sys.modules)
"""
    command = [sys.executable, "-c", script, str(lab.SETTINGS)]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert said.split() == ["PairedContents", "False"]


# Trust and metadata -------------------------------------------------------------------------------


@pytest.fixture
def committed(course, monkeypatch):
    """A course in git, on a machine that has signed nothing; called, it says whether the outputs are trusted."""
    monkeypatch.setenv("JUPYTER_DATA_DIR", str(course.root / ".jupyter"))
    git = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org"]
    for command in (["init", "-q"], ["add", "notebooks"], ["commit", "-qm", "As published"]):
        subprocess.run([*git, *command], cwd=course.root, check=True)

    def trusted() -> bool:
        manager = PairedContents(root_dir=str(course.root))
        cells = asyncio.run(manager.get(PATH))["content"].cells
        return all(cell.metadata["trusted"] for cell in cells if cell.cell_type == "code")

    return trusted


def test_a_chapter_as_it_was_committed_is_trusted_and_a_changed_one_is_not(course, committed):
    assert committed()
    notebook = nbformat.read(course.pair.notebook, as_version=4)
    notebook.cells[2].outputs = [
        nbformat.v4.new_output("display_data", data={"text/html": "<script>alert(1)</script>"})
    ]
    nbformat.write(notebook, course.pair.notebook)
    assert not committed()


def test_a_chapter_outside_of_git_is_not_trusted_by_itself(course, committed):
    shutil.rmtree(course.root / ".git")
    assert not committed()


def test_a_notebook_opens_with_what_its_kernel_would_write_into_it(course):
    metadata = asyncio.run(course.lab.get(PATH))["content"].metadata
    assert metadata["language_info"]["version"] == sys.version.split()[0]
    assert metadata["kernelspec"]["display_name"] != "Python 3"
