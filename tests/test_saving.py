"""A chapter that was only run is saved as it came; whatever was edited is saved."""

import copy
import types

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_notebook, new_output

from course_utils.studio.notebook_files import text_digest
from course_utils.studio.saving import keep_if_unedited


def chapter(source: str = "1 + 1", output: str = "2", count: int | None = 1):
    """A notebook of the course as `make notebooks` writes it."""
    outputs = [new_output("stream", text=output)] if output else []
    notebook = new_notebook(cells=[new_code_cell(source, execution_count=count, outputs=outputs)])
    notebook.metadata["source"] = text_digest(notebook)
    return notebook


def edited(notebook):
    notebook = copy.deepcopy(notebook)
    notebook.cells[0].source = "1 + 2"
    return notebook


UNRUN = chapter(output="", count=None)


@pytest.mark.parametrize(
    ("stored", "saved", "keeps"),
    [
        (chapter(), chapter(output="2 after 3 s", count=7), True),
        (chapter(), edited(chapter()), False),
        (edited(chapter()), edited(chapter(output="3")), False),
        (UNRUN, chapter(), False),
        (None, chapter(), False),
        (chapter(), "a text", False),
    ],
    ids=["only run", "edited", "edited before", "from the handout", "new", "another file"],
)
def test_only_a_chapter_that_was_run_and_not_edited_stays_as_it_came(
    tmp_path, stored, saved, keeps
):
    if stored:
        nbformat.write(stored, tmp_path / "a.ipynb")
    kind = "file" if isinstance(saved, str) else "notebook"
    model = {"type": kind, "content": copy.deepcopy(saved)}
    manager = types.SimpleNamespace(root_dir=str(tmp_path))
    keep_if_unedited(model=model, path="/a.ipynb", contents_manager=manager)
    assert model["content"] == (stored if keeps else saved)
