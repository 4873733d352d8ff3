"""No edit is lost: it reaches the other file of a pair; two edits, and what a source cannot hold, are refused."""

import jupytext
import nbformat
import pytest
from nbformat.v4 import new_output
from tiny_book import write_book

from course_utils.studio import manifest, notebook_files
from course_utils.studio.__main__ import main

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


class Pair:
    """A course of one pair, as `make notebooks` leaves it."""

    def __init__(self, root):
        chapter = write_book(root, SOURCE)
        self.root, self.source, self.ipynb = root, chapter.source, chapter.ipynb
        notebook = notebook_files.read_source(self.source)
        notebook.cells[2].execution_count = 1
        notebook.cells[2].outputs = [new_output("stream", text="42\n")]
        notebook_files.write_notebook(notebook, self.ipynb)

    def in_notebook(self, place, new, **changes):
        """Edit a cell of the notebook, and it alone, as Lab does; None deletes the cell."""
        notebook = self.notebook
        notebook.metadata.language_info["version"] = "3.11.9"
        if new is None:
            del notebook.cells[place]
        else:
            notebook.cells[place].update(source=new, **changes)
        nbformat.write(notebook, self.ipynb)

    def in_source(self, old, new):
        assert old in self.text
        self.source.write_text(self.text.replace(old, new))

    def sync(self):
        return main(["--book", str(self.root / "book.toml"), "sync", "00"])

    @property
    def notebook(self):
        return nbformat.read(self.ipynb, as_version=4)

    @property
    def text(self):
        return self.source.read_text()

    @property
    def both(self):
        return self.text, self.ipynb.read_text()


@pytest.fixture
def pair(tmp_path):
    return Pair(tmp_path)


def test_where_nobody_has_edited_nothing_is_written(pair, capsys):
    before = pair.both
    assert pair.sync() == 0
    assert pair.both == before and capsys.readouterr().out == ""


def test_an_edit_in_lab_changes_its_lines_of_the_source_and_no_others(pair, capsys):
    tags = {"tags": ["exercise", "build"]}
    pair.in_notebook(1, "def answer():\n    return 42", metadata=tags)
    assert pair.sync() == 0
    expected = SOURCE.replace("pass", "return 42").replace('["exercise"]', '["exercise", "build"]')
    assert pair.text == expected
    assert capsys.readouterr().out == "00_tiny.py follows 00_tiny.ipynb\n"
    assert "3.11.9" not in pair.ipynb.read_text()


def test_an_edit_of_the_source_reaches_the_notebook_and_leaves_the_other_outputs(pair):
    pair.in_source("pass\n\n\n", "return 42\n\n")
    assert pair.sync() == 0
    cells = pair.notebook.cells
    assert "return 42" in cells[1].source and cells[2].outputs[0].text == "42\n"
    assert not notebook_files.is_edited(pair.notebook), "other blank lines are no edit"


def test_a_deleted_cell_is_deleted_in_the_other_file(pair):
    pair.in_notebook(3, None)
    assert pair.sync() == 0 and "The end." not in pair.text
    pair.in_source("\n\n# %%\nprint(6 * 7)\n", "\n")
    assert pair.sync() == 0 and "print" not in pair.ipynb.read_text()


def test_two_edits_change_nothing_and_are_shown_and_two_equal_ones_are_one(pair, capsys):
    pair.in_notebook(3, "Goodbye.")
    pair.in_source("The end.", "Farewell.")
    before = pair.both
    assert pair.sync() == 1 and pair.both == before
    text = capsys.readouterr().out
    assert "both edited" in text and "-# Farewell." in text and "+# Goodbye." in text
    pair.in_source("Farewell.", "Goodbye.")
    assert pair.sync() == 0
    pair.in_notebook(3, "So long.")
    assert pair.sync() == 0
    pair.in_source("So long.", "See you.")
    assert pair.sync() == 0 and "See you." in pair.ipynb.read_text()


@pytest.mark.parametrize(
    ("place", "text", "changes"),
    [
        (3, "![i](attachment:i)", {"attachments": {"i": {"image/png": "aGVsbG8="}}}),
        (2, "print(6 * 7)\n\n# %% [markdown]\nnot a cell", {}),
    ],
)
def test_what_a_source_cannot_hold_is_refused(pair, capsys, place, text, changes):
    pair.in_notebook(place, text, **changes)
    before = pair.both
    assert pair.sync() == 1 and pair.both == before
    assert "cannot hold all of the notebook: take out pasted pictures" in capsys.readouterr().out


def test_a_chapter_begun_in_lab_gets_its_source(pair):
    pair.source.unlink()
    assert pair.sync() == 0 and pair.text == SOURCE


@pytest.mark.parametrize("broken", ["<<<<<<< HEAD\n{}", "{}", "[]", '{"cells": 3}', "null"])
def test_what_is_no_notebook_is_said_and_left(pair, capsys, broken):
    pair.ipynb.write_text(broken)
    assert pair.sync() == 1
    assert capsys.readouterr().out == "00_tiny.ipynb is no notebook\n"
    assert pair.both == (SOURCE, broken)


def test_the_source_of_each_chapter_is_written_back_to_the_byte():
    for page in manifest.load(files=False).whole.notebooks:
        like = jupytext.read(page.source, fmt=notebook_files.FORMAT)
        text = notebook_files.source_text(notebook_files.read_notebook(page.ipynb), like)
        assert text == page.source.read_text(encoding="utf-8")
