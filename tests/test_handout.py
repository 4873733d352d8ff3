"""The handout: neither solutions nor outputs, all that it takes to work, and never over somebody's work."""

import dataclasses
import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import nbformat
import pytest
from tiny_book import TINY, write_book

import course_utils as cu
from course_utils.files import ROOT
from course_utils.studio import StudioError, handout, manifest, notebooks, written
from course_utils.studio.__main__ import main
from course_utils.studio.notebook_files import read_notebook, read_source, write_notebook

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


@pytest.mark.parametrize(
    "spoil", [lambda path: path.write_text("broken"), lambda path: path.unlink()]
)
def test_a_notebook_comes_back_as_it_was_handed_out_and_nothing_is_lost(
    build, spoil, monkeypatch, capsys
):
    monkeypatch.chdir(build() / "notebooks")  # where the cells of a notebook run
    path = Path("00_tiny.ipynb")
    handed_out = path.read_bytes()
    for count, name in enumerate(["00", "notebooks/00_tiny.ipynb"]):
        spoil(path)
        kept = path.read_bytes() if path.exists() else None
        assert main(["original", name]) == 0 and path.read_bytes() == handed_out
        name = "00_tiny_mine.ipynb" if count == 0 else "00_tiny_mine_2.ipynb"
        assert kept is None or (Path(name).read_bytes() == kept and name in capsys.readouterr().out)
    assert main(["original", "00"]) == 0 and capsys.readouterr().out.endswith("is as it was.\n")


def test_where_sources_are_they_are_the_originals_and_without_either_one_is_told_so(
    tmp_path, monkeypatch, capsys
):
    chapter = write_book(tmp_path)
    monkeypatch.chdir(tmp_path)
    write_notebook(original := read_source(chapter.source), chapter.ipynb)
    edited = read_source(chapter.source)
    edited.cells[0].source += " and mine"
    write_notebook(edited, chapter.ipynb)
    assert main(["original", "00"]) == 0 and read_notebook(chapter.ipynb) == original
    chapter.source.unlink()
    chapter.ipynb.write_text("broken")
    assert main(["original", "00"]) == 1 and chapter.ipynb.read_text() == "broken"
    assert "take it from a fresh download" in capsys.readouterr().err
    with zipfile.ZipFile(tmp_path / "originals.zip", "w") as file:
        file.writestr("00_tiny.ipynb", "{}" * 99)
    whole = (tmp_path / "originals.zip").read_bytes()
    (tmp_path / "originals.zip").write_bytes(whole[:-9])  # a download that broke off
    assert main(["original", "00"]) == 1
    assert "take it from a fresh download" in capsys.readouterr().err
    assert main(["original"]) == 1 and "Say which notebook" in capsys.readouterr().err


def test_a_handout_replaces_an_earlier_one_and_nothing_else(build, capsys):
    folder, theirs = build(), (".git/HEAD", "data/mine/a.csv", "plan.md", "notebooks/07_mine.ipynb")
    for name in theirs:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(name)
    record = folder / written.RECORD
    files = json.loads(record.read_text())
    (folder / "old" / "__pycache__").mkdir(parents=True)
    (folder / "old" / "__pycache__" / "a.pyc").touch()
    shutil.copy(
        folder / "Makefile", folder / "old" / "a.py"
    )  # as if an earlier release had written it
    record.write_text(json.dumps(files | {"old/a.py": files["Makefile"]}))
    assert main(["--book", str(folder.parent / "book.toml"), "handout", "--to", str(folder)]) == 0
    told = capsys.readouterr().out
    assert told.endswith("wrote it: .git, data, notebooks/07_mine.ipynb, plan.md\n")
    assert all((folder / name).read_text() == name for name in theirs)
    assert not (folder / "old").exists() and json.loads(record.read_text()) == files
    record.unlink()
    with pytest.raises(StudioError, match=r"holds something else.*--to"):
        build()
    assert (folder / "book.toml").exists()


def test_a_handout_takes_the_place_of_no_file_that_it_has_not_written(build, tmp_path):
    (tmp_path / "out" / ".git").mkdir(parents=True)  # a repository for it, still empty
    folder = build()
    record = folder / written.RECORD
    files = json.loads(record.read_text())
    record.write_text(json.dumps({name: files[name] for name in files if name != "Makefile"}))
    (folder / "Makefile").write_text("mine")
    with pytest.raises(
        StudioError, match=r"files of yours whose names are needed: Makefile\..*--to"
    ):
        build()
    assert (folder / "Makefile").read_text() == "mine"


def test_a_command_that_needs_sources_says_so_in_a_handout(build, capsys):
    book = ["--book", str(build() / "book.toml")]
    for command in (["handout"], ["handout", "--for", "otter"], ["run", "00"]):
        assert main([*book, *command]) == 1, command
        assert "a clone of the course" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("file", "edit"),
    [
        ("00_tiny.ipynb", lambda text: text.replace("IntSlider(3)", "IntSlider(4)")),
        ("00_tiny.ipynb", lambda text: text[:-9]),
        ("../Makefile", lambda text: text + "mine: lab"),
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


# Every command that its pages tell students to give --------------------------------------------------

COMMAND = re.compile(
    r"(?:%run|%pip|[!$] ?\w+|make|python3?|py|pip|git|uv|conda|docker|torchrun|jupyter|cd|export"
    r"|\.venv/bin/\w+|\.venv\\Scripts\\\w+) [^`\n]+"
)
NOT_RUN = {
    "python3 tools/bootstrap.py": "it installs; test_commands.py runs it with a stand-in for pip",
    "make lab": "it does not end; test_commands.py runs what it calls",
    ".venv/bin/python -m course_utils.studio lab": "it does not end; test_commands.py runs it",
}
SAYS = {
    "%run -m course_utils.studio original 00": (0, "00_start_here.ipynb is the original again"),
    "make runs": (0, "no runs to make"),
    "make gpu": (2, "There is no GPU here"),  # which is what a machine without one has to say
}


def told_to_students() -> set[str]:
    """The commands in the notebooks' texts and code, but for solutions, and in the handout's README.md."""
    texts = [handout.template("handout.md", release="0")]
    for page in manifest.load(files=False).notebooks:
        for cell in read_notebook(page.ipynb).cells:
            if cell.cell_type == "markdown":
                texts.append(cell.source)
            elif "solution" not in cell.metadata.get("tags", ()):
                shell = re.findall(r"^\s*([!%]\w.*)$", cell.source, re.MULTILINE)
                texts += [f"    {line}" for line in shell if not line.startswith("%%")]
    spans = (re.findall(r"^ {4}(.+)$|`([^`\n]+)`", text, re.MULTILINE) for text in texts)
    fenced = (
        line
        for text in texts
        for block in re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
        for line in block.splitlines()
    )
    found = [indented or span for each in spans for indented, span in each]
    return {text.strip() for text in [*found, *fenced] if COMMAND.fullmatch(text.strip())}


@pytest.fixture(scope="module")
def handed_out(tmp_path_factory):
    """A handout of the course's first chapter, with this environment in the place of its own."""
    folder = tmp_path_factory.mktemp("handed_out") / "handout"
    course = manifest.load(files=False)
    handout.build(dataclasses.replace(course, chapters=course.chapters[:1], paths=()), ROOT, folder)
    (python := folder / ".venv" / "bin" / "python").parent.mkdir(parents=True)
    python.write_text(f'#!/bin/sh\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (folder / ".venv" / ".stamp").touch()
    return folder


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="make is not what one types there")
def test_every_command_on_a_page_of_a_handout_does_there_what_the_page_says(handed_out):
    chapters = {page.number for page in manifest.load(files=False).chapters}
    told = told_to_students()
    assert len(told) >= 8  # or the pattern finds none
    shapes = set()
    for command in told:
        shape, _, chapter = command.partition(" CHAPTER=")
        assert not chapter or chapter in chapters, command
        shapes.add(shape)
    assert shapes == {*SAYS, *NOT_RUN}
    (handed_out / "notebooks" / "00_start_here.ipynb").write_text("broken")
    for command, (status, words) in SAYS.items():
        line = command.replace("%run", ".venv/bin/python")
        if line.startswith("make"):
            line += " CHAPTER=06"
        environ = os.environ | {"CUDA_VISIBLE_DEVICES": "", "PYTHONPATH": ""}
        done = subprocess.run(
            line, shell=True, cwd=handed_out, env=environ, capture_output=True, text=True
        )
        said = done.stdout + done.stderr
        assert done.returncode == status and words in said, f"{command}\n{said}"


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
