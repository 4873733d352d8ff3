"""A course that is carried elsewhere: its wheel, the set-up cell of a notebook, and what is said where widgets lack."""

import dataclasses
import re
import subprocess
import sys
import types

import pytest
from IPython.core.inputtransformer2 import TransformerManager

from course_utils.files import ROOT
from course_utils.kit import release
from course_utils.studio import manifest
from course_utils.studio.handout import setup_cell

CARRIED = """
from course_utils import files
from course_utils.kit.release import release
from course_utils.kit.runs import read
from course_utils.lessons.self_attention.tasks import sentences
from course_utils.studio.course_map import course_map

print(files.ROOT)
assert release() and len(sentences()[1]) > 50 and read("masks")
assert " About 0 minutes" not in course_map()._repr_html_(), "the notebooks are there, to count them"
"""


@pytest.mark.slow
def test_a_wheel_carries_the_course_and_finds_it_inside(tmp_path):
    build = [sys.executable, "setup.py", "-q", "build", "--build-base", str(tmp_path / "base")]
    lib = tmp_path / "lib"
    subprocess.run([*build, "--build-lib", str(lib)], cwd=ROOT, check=True, capture_output=True)
    assert not list(lib.rglob("source")), "a wheel has no sources of notebooks"
    run = subprocess.run(
        [sys.executable, "-c", CARRIED],
        cwd=tmp_path,
        env={"PYTHONPATH": str(lib), "PATH": "", "HOME": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert not run.returncode, run.stderr
    assert run.stdout.splitlines()[0] == str(lib / "course_utils" / "_course")


@pytest.mark.parametrize("address", ["https://github.com/a/course", "https://gitlab.com/a/course"])
def test_the_set_up_cell_fetches_this_release_where_there_is_a_repository(address):
    course = dataclasses.replace(manifest.load(files=False), repository=address)
    text = setup_cell(course).source
    wheel = re.search(r"https://\S+\.whl", text)
    assert wheel and wheel[0].startswith(f"{address}/") and f"-{release.release()}-" in wheel[0]
    assert ("/-/releases/" in wheel[0]) is ("gitlab" in address)
    compile(TransformerManager().transform_cell(text), "cell", "exec")


def test_a_notebook_of_another_release_says_so(capsys):
    release.start_notebook("0.0.1")
    said = capsys.readouterr().out
    assert "release 0.0.1" in said and release.release() in said


def test_on_colab_widgets_are_switched_on(monkeypatch):
    asked = []
    output = types.SimpleNamespace(enable_custom_widget_manager=lambda: asked.append(True))
    monkeypatch.setitem(sys.modules, "google.colab", types.SimpleNamespace(output=output))
    release.start_notebook(release.release())
    assert asked == [True]
