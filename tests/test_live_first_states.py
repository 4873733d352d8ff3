"""What live widgets show first: one V8 a process, begun in the main thread, on the authors' shelf only."""

import copy
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat.v4 import new_code_cell, new_notebook, new_output
from py_mini_racer import JSEvalException

from course_utils.files import ROOT
from course_utils.kit.live import heads
from course_utils.kit.live.widget import ASLEEP
from course_utils.studio import first_states, notebooks
from course_utils.studio.manifest import Chapter

AUTHOR = """
import asyncio
from concurrent.futures import ThreadPoolExecutor
from course_utils.kit import live
from course_utils.studio import first_states

kinds = sorted(first_states.KINDS)
ask = lambda kind: first_states.first_state(getattr(live, kind)())

async def cell():
    return list(map(ask, kinds))

first = asyncio.run(cell())
with ThreadPoolExecutor(4) as pool:  # after the loop of the first has ended
    assert list(pool.map(ask, 2 * kinds)) == 2 * first
"""


@pytest.mark.slow
def test_four_threads_ask_one_engine_which_outlives_a_loop_and_ends_with_the_process():
    done = subprocess.run([sys.executable, "-c", AUTHOR], cwd=ROOT, capture_output=True)
    assert done.returncode == 0, done.stderr.decode()


@pytest.mark.slow
def test_a_kernel_shows_every_widget_without_the_engine_and_ends_with_exit_code_0():
    kinds = sorted(first_states.KINDS)
    before = "import sys\nsys.modules['py_mini_racer'] = None\nfrom course_utils.kit import live"
    cells = map(new_code_cell, [before, *(f"live.{kind}()" for kind in kinds)])
    notebook = new_notebook(cells=list(cells))
    client = NotebookClient(
        notebook, kernel_manager_class=notebooks.ThisInterpreter, store_widget_state=False
    )
    with client.setup_kernel(cwd=str(ROOT)):
        for place, cell in enumerate(notebook.cells):
            client.execute_cell(cell, place)
        client.kc.shutdown()
        assert client.km.provisioner.process.wait(timeout=600) == 0
    for kind, cell in zip(kinds, notebook.cells[1:], strict=True):
        (output,) = cell.outputs
        assert "application/vnd.jupyter.widget-view+json" in output.data, kind
        assert output.data["text/html"].endswith('<fieldset disabled=""></fieldset></form>'), kind


def test_the_engine_begins_in_the_main_thread_only():
    with ThreadPoolExecutor(1) as pool, pytest.raises(RuntimeError, match="in the main thread"):
        pool.submit(first_states._begun.__wrapped__).result()


def test_one_function_begins_it():
    files = [
        *ROOT.glob("course_utils/**/*.py"),
        *ROOT.glob("tests/*.py"),
        *ROOT.glob("benchmarks/*.py"),
    ]
    begins = re.compile(r"^\s*(from|import) py_mini_racer.*\bMiniRacer\b", re.MULTILINE)
    found = [file.name for file in files if begins.search(file.read_text(encoding="utf-8"))]
    assert found == ["first_states.py"]


def test_without_it_an_author_is_told_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "py_mini_racer", None)
    with pytest.raises(first_states.StudioError, match=r"mini-racer is missing.*\.\[author\]"):
        first_states._begun.__wrapped__()


def test_a_mistake_in_a_script_is_not_hidden():
    made = heads()
    made.options = {}
    with pytest.raises(JSEvalException, match="TypeError"):
        first_states.first_state(made)


def test_a_place_of_an_address_is_written_as_text():
    page = first_states.engine(["parts.js"])
    assert page.eval("live_modules.parts.named('<b>.<i>')") == "layer &lt;b&gt;, head &lt;i&gt;"


def test_making_a_notebook_fills_what_the_kernel_left_empty(monkeypatch, tmp_path):
    widget, chapter = heads(), Chapter("00_tiny", "Tiny", root=tmp_path)
    chapter.source.parent.mkdir(parents=True)
    chapter.source.write_text("# %%\nlive.heads()\n", encoding="utf-8")

    def execute(notebook, **_):
        data, _ = widget._repr_mimebundle_()
        notebook.cells[0].outputs = [new_output("execute_result", data=dict(data))]

    monkeypatch.setattr(notebooks, "execute", execute)
    notebooks.make(chapter)
    (output,) = nbformat.read(chapter.ipynb, as_version=4).cells[0].outputs
    assert output.data["text/html"] == widget.form(ASLEEP, first_states.first_state(widget))


def test_every_committed_output_holds_what_its_widget_shows_first():
    """The sanitizer of `make test` leaves it out, so kernels need no engine."""
    live = [
        file for file in (ROOT / "notebooks").glob("*.ipynb") if '"live.' in file.read_text("utf-8")
    ]
    assert len(live) >= 11
    for file in live:
        notebook = nbformat.read(file, as_version=4)
        assert first_states.fill(copy.deepcopy(notebook)) == notebook, file.name
