"""A course of chosen chapters: what follows from one line of book.toml, and what the line may not say."""

import re
from dataclasses import replace
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import course_utils as cu
from course_utils.files import ROOT
from course_utils.kit import contents, progress
from course_utils.studio import handout, manifest, subset, tables
from course_utils.studio.course_map import CourseMap
from course_utils.studio.links import places, targets, texts
from course_utils.studio.manifest import Manifest, ManifestError

SIX = ["00", "01", "scoring_functions", "07_self_attention", "10", "15"]


@pytest.fixture
def choose(tmp_path):
    """Writes the manifest of this course beside its own notebooks, with these chapters chosen."""

    def write(*names: str, **values: str) -> Path:
        text = (ROOT / "book.toml").read_text(encoding="utf-8")
        for key, value in {"chapters": list(names), **values}.items():
            text, count = re.subn(rf"^{key} = .*$", f"{key} = {value!r}", text, count=1, flags=re.M)
            assert count
        (tmp_path / "book.toml").write_text(text, encoding="utf-8")
        return tmp_path / "book.toml"

    (tmp_path / "notebooks").symlink_to(ROOT / "notebooks")
    return write


@pytest.fixture
def six(choose) -> Manifest:
    return manifest.load(choose(*SIX))


def test_a_chapter_needs_what_the_chapters_left_out_between_need(six):
    assert {chapter.number: chapter.prerequisites for chapter in six.chapters} == {
        "00": (),
        "01": ("00_start_here",),
        "03": ("01_queries_keys_values",),
        "07": ("03_scoring_functions",),
        "10": ("03_scoring_functions", "07_self_attention"),
        "15": ("10_transformer",),
    }
    assert six.lacking == "Needed, and left out: 04 (by 07), 04 (by 10), 08 (by 10), 09 (by 10)."
    assert six.after(six.chapters[1]).notebook == "03_scoring_functions"
    assert [page.notebook for page in six.chosen(["04"])] == ["04_masks", "04_masks_further"]
    assert len(six.chosen([])) == len(six.notebooks)


def test_paths_map_and_tables_keep_what_is_chosen_and_the_readme_shows_all(six, tmp_path):
    (path,) = six.paths
    numbers = ["00", "01", "03", "07", "10", "15"]
    assert path.title == "To images" and [stop.chapter[:2] for stop in path.stops] == numbers
    shown = CourseMap(six)._repr_html_()
    assert re.findall(r'data-number="(\w+)"', shown) == numbers
    assert not re.search(r'href="(0[245689]|1[1-46-9])_', shown)
    for table in (tables.chapter_table(six), tables.paths_table(six)):
        assert not re.search(r"\b(0[24]|13)\b[ _]", table)
    readme = tmp_path / "README.md"
    marks = [f"<!-- {end}{name} -->\n" for name in ("chapters", "paths") for end in ("", "/")]
    readme.write_text("\n".join(marks))
    tables.write_tables(replace(six, path=tmp_path / "book.toml"))
    assert "04_masks" in readme.read_text() and "| To GPT | 00 → 01 → 03 " in readme.read_text()


def test_all_chapters_named_are_the_whole_course(choose):
    course = manifest.load(choose(*(f"{number:02}" for number in range(18))))
    assert course.whole is course and not course.left_out and not course.lacking


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["00", "99"], "course.chapters[1]: '99' is none of 00_start_here, 01_"),
        (["04", "masks"], "course.chapters[1]: 'masks' is chosen already."),
        ([4], "course.chapters[0]: 4 is not of type 'string'."),
        (["A_names"], "course.chapters[0]: 'A_names' is none of"),
    ],
)
def test_a_choice_that_can_t_be_made_is_named(choose, names, message):
    with pytest.raises(ManifestError) as caught:
        manifest.load(choose(*names))
    assert str(caught.value).startswith(f"book.toml: {message}")


TEXT = """\
Masks come [in their chapter](04_masks.ipynb#Padding-gets-weight), `[code](04_masks.ipynb)` not.
It needs [Queries](01_queries_keys_values.ipynb).
*Taught in* [a](04_masks.ipynb), [b](00_start_here.ipynb).
*Taught in* [a](04_masks.ipynb).

Next: [Masks](04_masks.ipynb), which say much.
On the way to images: [Masks](04_masks.ipynb)."""


def fitted(course: Manifest, *cells) -> list:
    chapter = next(chapter for chapter in course.chapters if chapter.number == "03")
    first = new_markdown_cell("# Title\n\nText.\n\nOn the way to GPT: [A](#A).")
    return subset.fit(new_notebook(cells=[first, *cells]), course, chapter).cells


def test_links_to_chapters_left_out_become_text_and_what_leads_on_leads_further(six):
    first, text = fitted(six, new_markdown_cell(TEXT))
    assert first.source.startswith("# Title\n\nText.\n\nOn the way to images: [One divisor]")
    assert "GPT" not in first.source
    assert text.source.splitlines() == [
        "Masks come in their chapter (not in this course), `[code](04_masks.ipynb)` not.",
        "It needs [Queries](01_queries_keys_values.ipynb).",
        "*Taught in* [b](00_start_here.ipynb).",
        "Not taught in this course.",
        "",
        "Next: [Self-attention](07_self_attention.ipynb).",
    ]


def test_links_to_chapters_left_out_lead_to_the_full_course_where_there_is_one(choose):
    course = manifest.load(choose(*SIX, full_course="https://a.org/course/"))
    text = fitted(course, new_markdown_cell(TEXT))[1].source
    assert "[in their chapter](https://a.org/course/04_masks.html#padding-gets-weight)" in text
    assert "*Taught in* [a](https://a.org/course/04_masks.html)." in text


def test_map_and_recalls_show_chosen_chapters_and_nothing_else(six):
    cells = [
        new_code_cell(source, outputs=[new_output("display_data", data={"text/html": "old"})])
        for source in ("course_map()", 'cu.recall("masks", "start_here")', 'cu.recall("masks")')
    ]
    _, drawn, recalled = fitted(six, *cells)
    assert 'data-number="07"' in drawn.outputs[0].data["text/html"]
    assert recalled.source == 'cu.recall("start_here")'
    assert recalled.outputs[0].data["text/plain"] == repr(cu.recall("start_here"))
    assert cells[1].source == 'cu.recall("masks", "start_here")', "what is given stays"


def test_progress_lists_the_exercises_of_chosen_chapters(choose, monkeypatch):
    path = choose(*SIX)
    monkeypatch.setattr(progress, "left_out", lambda: contents.left_out(path))
    titles = progress.progress().chapters
    assert "Self-attention" in titles and "PyTorch in an hour" in titles and "Masks" not in titles


@pytest.mark.slow
def test_a_handout_of_chosen_chapters_has_no_dead_link(six, tmp_path):
    handout.build(six, ROOT, tmp_path / "out")
    folder = tmp_path / "out" / "notebooks"
    pages = {file.name: texts(nbformat.read(file, as_version=4)) for file in folder.glob("*.ipynb")}
    assert set(pages) == {page.ipynb.name for page in six.notebooks}
    for name, cells in pages.items():
        for target in (target for text in cells for target in targets(text)):
            file, _, place = target.partition("#")
            if not re.match(r"[a-z]+:", target) and file != "bibliography.md":
                assert not file or file in pages or (folder / file).is_file(), f"{name}: {target}"
                assert not place or place in places(pages[file or name]), f"{name}: {target}"
    assert manifest.load(tmp_path / "out" / "book.toml", files=False).chapters[2].number == "03"
