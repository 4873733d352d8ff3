"""What live widgets show first: V8 writes it where notebooks are made, and no kernel needs V8."""

import copy
import os
import signal

import nbformat
import pytest
from nbclient import NotebookClient
from nbconvert import HTMLExporter, MarkdownExporter
from nbformat.v4 import new_code_cell, new_notebook
from playwright.sync_api import expect

from course_utils.files import ROOT
from course_utils.kit.live import KINDS
from course_utils.studio import StudioError, first_states, notebooks, v8


@pytest.mark.slow
def test_a_kernel_shows_every_widget_without_the_engine_and_ends_with_exit_code_0():
    kinds = sorted(KINDS)
    before = "import sys\nsys.modules['py_mini_racer'] = None\nfrom course_utils.kit import live"
    cells = map(new_code_cell, [before, *(f"live.{kind}()" for kind in kinds)])
    notebook = new_notebook(cells=list(cells))
    # Python itself now and then aborts at its very end, when a thread still writes; a crash of another kind is final.
    codes = [_exit_code(notebook)]
    while codes[-1] == -signal.SIGABRT and len(codes) < 3:
        codes.append(_exit_code(notebook))
    assert codes[-1] == 0, codes
    for kind, cell in zip(kinds, notebook.cells[1:], strict=True):
        (output,) = cell.outputs
        assert "application/vnd.jupyter.widget-view+json" in output.data, kind
        assert output.data["text/html"].endswith('<fieldset disabled=""></fieldset></form>'), kind


def _exit_code(notebook) -> int:
    """Of a kernel that has run the cells and was asked to shut down."""
    client = NotebookClient(
        notebook, kernel_manager_class=notebooks.ThisInterpreter, store_widget_state=False
    )
    with client.setup_kernel(cwd=str(ROOT), env=os.environ | {"JPY_SESSION_NAME": "a.ipynb"}):
        for place, cell in enumerate(notebook.cells):
            client.execute_cell(cell, place)
        client.kc.shutdown()
        return client.km.provisioner.process.wait(timeout=600)


@pytest.mark.smoke
def test_an_exported_notebook_answers_or_stands_still_without_a_kernel_and_a_network(
    browser, tmp_path
):
    calls = ("live.translator('she has a red car .')", "live.words()", "explore.kernel_width()")
    cells = [new_code_cell(f"import course_utils as cu\ncu.{call}") for call in calls]
    notebook = new_notebook(cells=cells)
    NotebookClient(notebook, kernel_manager_class=notebooks.ThisInterpreter).execute()
    file = tmp_path / "export.html"
    file.write_text(HTMLExporter().from_notebook_node(notebook)[0], encoding="utf-8")
    context = browser.new_context(offline=True)
    page = context.new_page()
    page.goto(file.as_uri())
    said = page.locator("form.cu-live [data-part=said]")
    expect(said.first).to_have_text("elle a une voiture rouge .")
    page.locator("[data-word='0']").first.click()
    expect(said.first).to_have_text("ta fille a une voiture rouge .")
    expect(page.locator("form.cu-live[data-ready]")).to_have_count(2)
    expect(page.get_by_text("once its cell is run")).to_have_count(1)
    assert page.locator("img").evaluate_all("all => all.every((each) => each.naturalWidth > 0)")
    context.close()
    markdown, _ = MarkdownExporter().from_notebook_node(notebook)
    assert markdown.count("once its cell is run") >= 1
    for cell in notebook.cells:
        assert "once its cell is run" in cell.outputs[0].data["text/plain"]  # in LaTeX and PDF


def test_a_script_that_fails_and_a_missing_engine_are_said(monkeypatch):
    assert v8.evaluate("'→'.repeat(2)") == "→→"
    with pytest.raises(StudioError, match="missing is not defined"):
        v8.evaluate("missing()")
    monkeypatch.setattr(v8.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(StudioError, match="mini-racer is missing"):
        v8.evaluate("")


def test_every_committed_output_holds_what_its_widget_shows_first():
    """The sanitizer of `make test` leaves it out, so kernels need no engine."""
    live = [
        file
        for file in (ROOT / "notebooks").glob("*.ipynb")
        if '"live": ' in file.read_text("utf-8")
    ]
    assert len(live) >= 11
    for file in live:
        notebook = nbformat.read(file, as_version=4)
        assert first_states.fill(copy.deepcopy(notebook)) == notebook, file.name
