"""A chapter of one's own: begun by a command, whole in book and handout, and apart from what a release brings."""

import shutil

import nbformat
import pytest
import yaml
from tiny_book import book

from course_utils.studio import handout, lab, manifest, notebooks, own, update
from course_utils.studio.__main__ import main
from course_utils.studio.book import pages, transforms

TITLE = 'Sensors of "our" lab'


def files(root):
    """Every file with its bytes, by its path below the root."""
    return {
        file.relative_to(root).as_posix(): file.read_bytes()
        for file in root.rglob("*")
        if file.is_file()
    }


@pytest.fixture
def course(tmp_path):
    """The manifest of a course of one chapter, both halves on disk."""
    root = tmp_path / "course"
    (root / "notebooks" / "source").mkdir(parents=True)
    path = root / "book.toml"
    path.write_text(book("00_tiny"))
    (chapter,) = manifest.load(path, files=False).chapters
    chapter.source.write_text("# %% [markdown]\n# # Tiny\n")
    notebook = notebooks.read_source(chapter.source)
    notebooks.write(notebook, chapter.ipynb)
    (root / "README.md").write_text("<!-- chapters -->\n<!-- /chapters -->\n")
    return path


@pytest.mark.notebook
def test_the_skeleton_is_three_files_of_its_own_and_passes_in_book_handout_and_check(
    course, capsys
):
    root, before = course.parent, files(course.parent)
    assert main(["chapter", "my_sensors", "--title", TITLE, "--book", str(course)]) == 0
    made = {"own/own.toml", "own/my_sensors.ipynb", "own/source/my_sensors.py"}
    after = files(root)
    assert after.keys() - before.keys() == made
    assert {name: after[name] for name in before} == before
    read = manifest.load(course)
    (mine,) = read.own
    assert (mine.title, mine.slug, mine.number) == (TITLE, "my_sensors", "")
    assert len(nbformat.read(mine.ipynb, as_version=4).cells) == 5
    assert notebooks.check(read, mine) == []
    assert read.chosen(["my_"]) == [mine]

    entry = {"caption": "Own chapters", "chapters": [{"file": "my_sensors", "title": TITLE}]}
    assert entry in yaml.safe_load(pages.contents(read))["parts"]
    assert "](../own/my_sensors.ipynb)" in lab.start_page(read)
    text = transforms.lead(mine.source.read_text(), {"00_tiny.ipynb": {}}, "", {})
    assert "[Tiny](00_tiny.ipynb)" in text
    to = root / "_build" / "handout"
    assert main(["--book", str(course), "handout", "--to", str(to)]) == 0
    (handed,) = manifest.load(to / "book.toml", files=False).own
    assert handed.ipynb.is_file() and not handed.source.exists()

    shutil.copy(mine.ipynb, root / "own" / "stray.ipynb")
    capsys.readouterr()
    assert main(["--book", str(course), "check"]) == 1
    assert "own/stray.ipynb. Add a [[chapter]] for it in own/own.toml" in capsys.readouterr().err


def test_a_release_without_own_chapters_leaves_theirs_as_they_are(course, tmp_path):
    root = course.parent
    handout.build(manifest.load(course), root, tmp_path / "release")
    chapter = own.begin("my_sensors", "", root)
    notebooks.write(notebooks.read_source(chapter.source), chapter.ipynb)
    handout.build(manifest.load(course), root, tmp_path / "used")
    mine = tmp_path / "used" / "own" / "my_sensors.ipynb"
    mine.write_text(mine.read_text().replace("width = 0.5", "width = 0.7"))
    before = files(tmp_path / "used" / "own")
    update.update(tmp_path / "used", str(tmp_path / "release"))
    assert files(tmp_path / "used" / "own") == before and len(before) == 2


@pytest.mark.parametrize(
    ("name", "said"),
    [("My sensors", "small letters"), ("00_tiny", "small letters"), ("tiny", "already")],
)
def test_a_name_that_cannot_be_one_is_refused_and_nothing_is_written(course, capsys, name, said):
    before = files(course.parent)
    assert main(["chapter", name, "--book", str(course)]) == 1
    assert said in capsys.readouterr().err and files(course.parent) == before


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ('notebook = "00_x"\ntitle = "X"', "chapter[0].notebook: is '00_x'"),
        ('notebook = "x"\ntitel = "X"', "chapter[0].titel: unknown key. Did you mean 'title'"),
        ('notebook = "x"\ntitle = "X"\nprerequisites = ["00_tin"]', "Did you mean '00_tiny'"),
    ],
)
def test_a_mistake_in_the_list_is_named(course, entry, said):
    (course.parent / "own").mkdir()
    (course.parent / "own" / "own.toml").write_text(f"[[chapter]]\n{entry}\n")
    with pytest.raises(manifest.ManifestError) as error:
        manifest.load(course, files=False)
    assert said in str(error.value) and "own.toml" in str(error.value)
