"""A new release over the handout in use: every answer, cell and file of the reader's is there afterwards."""

import random
import shutil
from copy import deepcopy
from pathlib import Path

import nbformat
import pytest
from handouts import (
    ANSWER,
    CHANGED_STUB,
    CHAPTER,
    CHECK,
    SECOND,
    SOURCE,
    STUB,
    cells,
    edit,
    git,
    hand_out,
)
from nbformat.v4 import new_code_cell, new_markdown_cell

from course_utils.studio import update
from course_utils.studio.__main__ import main
from course_utils.studio.carry import carry, remember
from course_utils.studio.pairs import bare


@pytest.fixture
def mine(tmp_path):
    """A handout in use, with an answer and a cell of the reader's own behind it."""
    root = hand_out(tmp_path / "mine", pooling="1", gone="1")
    edit(root / CHAPTER, STUB, ANSWER)
    insert(root / CHAPTER, new_code_cell("print('my own')"), behind=ANSWER)
    return root


def insert(ipynb, cell, behind):
    notebook = nbformat.read(ipynb, as_version=4)
    place = [one.source for one in notebook.cells].index(behind)
    notebook.cells.insert(place + 1, cell)
    nbformat.write(notebook, ipynb)


def second(tmp_path, source=SECOND, **options):
    return hand_out(tmp_path / "second", source, **options)


def kept(root, name="*"):
    return sorted(path for path in root.rglob(f"{name}.kept-*") if path.is_file())


def run(root, release):
    return main(["--book", str(root / "book.toml"), "update", str(release)])


# A notebook -------------------------------------------------------------------------------------


def test_an_answer_wins_a_changed_stub_stands_below_and_an_own_cell_stays(mine, tmp_path, capsys):
    before = (mine / CHAPTER).read_bytes()
    assert run(mine, second(tmp_path)) == 0
    prose, _, imports, answer, note, own, check, *_ = cells(mine / CHAPTER)
    assert "better prose" in prose and imports == "import course_utils as cu"
    assert (answer, own, check) == (ANSWER, "print('my own')", CHECK)
    assert "has changed the stub of `loo_residuals`" in note and CHANGED_STUB in note
    (copy,) = kept(mine)
    assert copy.read_bytes() == before and copy.parent == (mine / CHAPTER).parent
    said = capsys.readouterr().out
    assert "00_a: carried over: loo_residuals; changed stubs" in said and copy.name in said
    assert run(mine, tmp_path / "second") == 0
    assert kept(mine) == [copy] and "New from the release: 0 of 1" in capsys.readouterr().out


def test_the_newest_of_two_changed_stubs_is_shown_and_a_second_copy_has_its_own_name(
    mine, tmp_path
):
    run(mine, second(tmp_path))
    third = CHANGED_STUB.replace("values", "heights")
    run(mine, second(tmp_path, SECOND.replace(CHANGED_STUB, third)))
    _, _, _, answer, note, own, *_ = shown = cells(mine / CHAPTER)
    assert answer == ANSWER and third in note and own == "print('my own')"
    assert "".join(shown).count("has changed the stub") == 1 and len(kept(mine)) == 2


def test_a_handout_that_a_teacher_has_edited_is_a_release(mine, tmp_path):
    edited = hand_out(tmp_path / "edited")
    edit(edited / CHAPTER, "With prose.", "With a teacher's prose.")
    edit(edited / CHAPTER, STUB, CHANGED_STUB)
    assert run(mine, edited) == 0
    prose, _, _, answer, note, own, *_ = cells(mine / CHAPTER)
    assert "a teacher's prose" in prose and answer == ANSWER and own == "print('my own')"
    assert CHANGED_STUB in note
    assert run(mine, edited) == 0 and len(kept(mine)) == 1


def test_what_nobody_has_answered_is_the_releases(tmp_path):
    mine = hand_out(tmp_path / "mine")
    run(mine, second(tmp_path))
    assert (mine / CHAPTER).read_bytes() == (tmp_path / "second" / CHAPTER).read_bytes()
    assert kept(mine) == []


def test_an_edited_cell_stays_where_the_release_has_left_it_and_stands_below_where_it_has_not(
    mine, tmp_path
):
    edit(mine / CHAPTER, "width = 0.5", "width = 0.7")
    edit(mine / CHAPTER, "With prose.", "With prose. My note.")
    run(mine, second(tmp_path))
    prose, theirs, *rest = cells(mine / CHAPTER)
    assert "My note." not in prose and "better" in prose
    assert theirs.startswith("*The release has changed a cell here") and "My note." in theirs
    assert "width = 0.7  # try 0.1 … 10" in rest


def test_an_exercise_that_moves_takes_its_answer_along_and_one_that_ends_leaves_it(mine, tmp_path):
    part = SECOND[SECOND.index("# %% tags") : SECOND.index("# %%\nwidth")]
    ended = second(tmp_path, SECOND.replace(part, ""))
    other = hand_out(tmp_path / "other", part, name="01_b")
    shutil.copy(other / "notebooks/01_b.ipynb", ended / "notebooks")
    assert run(mine, ended) == 0
    assert ANSWER in cells(mine / CHAPTER) and "print('my own')" in cells(mine / CHAPTER)
    assert cells(mine / "notebooks/01_b.ipynb")[0] == ANSWER


def test_a_chapter_with_another_number_is_the_same_chapter(mine, tmp_path):
    run(mine, second(tmp_path, name="04_a"))
    assert ANSWER in cells(mine / "notebooks/04_a.ipynb")
    assert not (mine / CHAPTER).exists() and len(kept(mine, "00_a")) == 1


def without_ids(path):
    notebook = nbformat.read(path, as_version=4)
    notebook.nbformat_minor, notebook.metadata = 4, {}
    for cell in notebook.cells:
        del cell["id"]
    nbformat.write(notebook, path)


def as_colab(path):
    notebook = nbformat.read(path, as_version=4)
    notebook.nbformat_minor = 0
    for cell in notebook.cells:
        cell.metadata["id"] = cell.pop("id")
    nbformat.write(notebook, path)


def merged(path):
    text = path.read_text().splitlines(keepends=True)
    path.write_text(
        "".join(
            [*text[:3], "<<<<<<< HEAD\n", *text[3:9], "=======\n", "x\n", ">>>>>>> b\n", *text[9:]]
        )
    )


def untagged(path):
    path.write_text(path.read_text().replace('"exercise"', '"mine"'))


@pytest.mark.parametrize("editor", [without_ids, as_colab, merged, untagged])
def test_the_answer_is_found_whatever_an_editor_or_a_merge_has_made_of_the_file(
    mine, tmp_path, editor
):
    editor(mine / CHAPTER)
    assert run(mine, second(tmp_path)) == 0
    shown = cells(mine / CHAPTER)
    assert ANSWER in shown and "print('my own')" in shown and "better" in "".join(shown)
    assert CHANGED_STUB not in shown and CHANGED_STUB in "".join(shown)


def test_what_is_no_notebook_is_kept_and_said(mine, tmp_path, capsys):
    (mine / CHAPTER).write_text("no JSON")
    assert run(mine, second(tmp_path)) == 0
    (copy,) = kept(mine)
    assert copy.read_text() == "no JSON" and copy.name in capsys.readouterr().out
    assert CHANGED_STUB in cells(mine / CHAPTER)


def worked(notebook, rng):
    """Do what a reader may do to a notebook, in any order; the texts that must not be lost."""
    written = []
    for number in range(rng.randint(1, 6)):
        place = rng.randrange(len(notebook.cells))
        cell, text = notebook.cells[place], f"# text {number} of mine"
        match rng.choice(["edit", "replace", "add", "note", "delete", "move"]):
            case "edit":
                cell.source += f"\n{text}"
            case "replace":
                written = [one for one in written if one not in cell.source]
                cell.source = text
            case "add":
                notebook.cells.insert(place, new_code_cell(text))
            case "note":
                notebook.cells.insert(place, new_markdown_cell(text))
            case "delete":
                del notebook.cells[place]
                written = [one for one in written if one not in cell.source]
                continue
            case "move":
                notebook.cells.insert(0, notebook.cells.pop(place))
                continue
        written.append(text)
    return written


@pytest.fixture(scope="module")
def releases(tmp_path_factory):
    """The notebooks of two releases."""
    root = tmp_path_factory.mktemp("releases")
    made = (hand_out(root / name, text) for name, text in (("1", SOURCE), ("2", SECOND)))
    return [nbformat.read(one / CHAPTER, as_version=4) for one in made]


@pytest.mark.parametrize("seed", range(40))
def test_whatever_a_reader_has_done_all_of_it_is_in_the_new_notebook(releases, seed):
    rng = random.Random(seed)
    mine = deepcopy(releases[0])
    written = worked(mine, rng)
    for _ in range(3):
        new = deepcopy(releases[1])
        new.cells = [cell for cell in new.cells if rng.random() < 0.8]
        mine = carry(mine, remember(bare(new))).notebook
        shown = [cell.source for cell in mine.cells]
        for text in written:
            assert sum(text in one for one in shown) == 1, text
        assert len({cell.id for cell in mine.cells}) == len(shown)
        nbformat.validate(mine)


# All other files --------------------------------------------------------------------------------


def test_files_are_the_releases_and_a_readers_change_of_one_is_kept_beside_it(
    mine, tmp_path, capsys
):
    (mine / "course_utils" / "pooling.py").write_text("mine")
    (mine / "course_utils" / "own.py").write_text("own")
    run(mine, second(tmp_path, pooling="2", added="2"))
    modules = {path.stem: path.read_text() for path in (mine / "course_utils").glob("*.py")}
    copy = next(name for name in modules if ".kept-" in name)
    assert modules == {"pooling": "2", "added": "2", "own": "own", copy: "mine"}
    assert f"kept: course_utils/{copy}.py" in capsys.readouterr().out


@pytest.fixture
def zipped(tmp_path):
    """A release in a zip file, below a folder, as a browser brings it."""
    second(tmp_path, pooling="2")
    return Path(shutil.make_archive(str(tmp_path / "release"), "zip", tmp_path, "second"))


def test_a_zip_file_is_a_release_and_the_folder_in_which_one_works_the_handout(
    mine, zipped, monkeypatch
):
    monkeypatch.chdir(mine / "notebooks")
    assert main(["update", str(zipped)]) == 0 and "better" in cells(mine / CHAPTER)[0]


class Stop(BaseException):
    """Ends the process at one place."""


@pytest.mark.slow
def test_an_interrupt_anywhere_loses_nothing_and_the_next_run_ends_the_work(
    mine, zipped, tmp_path, monkeypatch
):
    after, steps = None, 0
    while after is None:
        root, left = tmp_path / f"try{steps}", [steps]
        shutil.copytree(mine, root)

        def step(usual, left=left):
            def checked(*given, **named):
                left[0] -= 1
                if left[0] < 0:
                    raise Stop
                return usual(*given, **named)

            return checked

        with monkeypatch.context() as patched:
            for owner, name in ((Path, "replace"), (shutil, "copy"), (Path, "unlink")):
                patched.setattr(owner, name, step(getattr(owner, name)))
            patched.setattr(update.shutil, "rmtree", lambda *given, **named: None)  # as if killed
            try:
                after = update.update(root, str(zipped))
            except Stop:
                steps += 1
        assert ANSWER in cells(root / CHAPTER)
        assert update.update(root, str(zipped))
        assert ANSWER in cells(root / CHAPTER) and "better" in cells(root / CHAPTER)[0]
        assert (root / "course_utils/pooling.py").read_text() == "2" and len(kept(root)) == 1
        assert not (root / "course_utils/gone.py").exists() and not list(root.glob(".update-*"))
    assert steps > 8


def test_after_a_pull_the_revision_brings_the_cells(mine, tmp_path):
    published = hand_out(tmp_path / "published")
    git(published, "init", "-q", "--initial-branch=main")
    git(published, "add", "-A")
    git(published, "commit", "-qm", "First")
    git(tmp_path, "clone", "-q", published, "clone")
    edit(tmp_path / "clone" / CHAPTER, STUB, ANSWER)
    git(tmp_path / "clone", "commit", "-qam", "My answer")
    shutil.copytree(second(tmp_path), published, dirs_exist_ok=True)
    git(published, "commit", "-qam", "Second")
    git(tmp_path / "clone", "pull", "-q", "--no-rebase", fails=True)
    assert run(tmp_path / "clone", "MERGE_HEAD") == 0
    git(tmp_path / "clone", "commit", "-qam", "Merged")
    shown = cells(tmp_path / "clone" / CHAPTER)
    assert ANSWER in shown and "better" in shown[0]


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ("nowhere", "is no folder, no file, and no revision that git knows"),
        ("mine", "is the handout in use"),
        ("mine/book.toml", "is no zip file"),
        ("mine-authors", "holds no handout: there is no handout.json"),
    ],
)
def test_what_is_no_release_is_one_sentence_and_changes_nothing(
    mine, tmp_path, capsys, release, said
):
    before = {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()}
    assert run(mine, tmp_path / release) == 1
    assert said in capsys.readouterr().err
    assert {path: path.read_bytes() for path in mine.rglob("*") if path.is_file()} == before


def test_a_handout_tells_jupytext_nothing_and_the_authors_folder_is_no_handout(mine, capsys):
    assert (mine / "pyproject.toml").read_text() == '[project]\nname = "a"\n'
    assert run(mine.with_name("mine-authors"), mine) == 1
    assert "is no handout: it has no handout.json" in capsys.readouterr().err
