"""A course of chosen chapters: what follows from one line of book.toml, and what the line may not say."""

import re
from pathlib import Path

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

from course_utils.files import ROOT
from course_utils.studio import StudioError, handout, manifest, subset
from course_utils.studio.links import places, targets, texts
from course_utils.studio.manifest import Manifest

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
        "07": ("01_queries_keys_values",),
        "10": ("01_queries_keys_values", "07_self_attention"),
        "15": ("10_transformer",),
    }
    assert (
        six.missing_prerequisites
        == "Needed, and left out: 04 (by 07), 04 (by 10), 08 (by 10), 09 (by 10)."
    )
    assert six.after(six.chapters[1]).notebook == "03_scoring_functions"
    assert [page.notebook for page in six.chosen(["04"])] == ["04_masks", "04_masks_further"]
    assert len(six.chosen([])) == len(six.notebooks)


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
    with pytest.raises(StudioError) as caught:
        manifest.load(choose(*names))
    assert str(caught.value).startswith(f"book.toml: {message}")


TEXT = """\
Masks come [in their chapter](04_masks.ipynb#Padding-gets-weight), `[code](04_masks.ipynb)` not.
It needs [Queries](01_queries_keys_values.ipynb).
*Taught in* [a](04_masks.ipynb), [b](00_start_here.ipynb).
*Taught in* [a](04_masks.ipynb)."""
NEXT = """\
Now read on in [Masks](04_masks.ipynb), which say much.
On the path to images: [Masks](04_masks.ipynb).
[The further page](03_scoring_functions_further.ipynb) has more."""


def tagged(tag: str, text: str):
    return new_markdown_cell(text, metadata={"tags": [tag]})


def trimmed(course: Manifest, *cells) -> list:
    chapter = next(chapter for chapter in course.chapters if chapter.number == "03")
    first = [new_markdown_cell("# Title\n\nText."), tagged("paths", "On the path to GPT: [A](#A).")]
    return subset.trim(new_notebook(cells=[*first, *cells]), course, chapter).cells


def test_links_to_chapters_left_out_become_text_and_what_leads_on_leads_further(six):
    first, paths, text, leads_on = trimmed(six, new_markdown_cell(TEXT), tagged("next", NEXT))
    assert first.source == "# Title\n\nText."
    assert paths.source.startswith("On the path to images: [A dot product")
    assert "GPT" not in paths.source
    assert text.source.splitlines() == [
        "Masks come in their chapter (not in this course), `[code](04_masks.ipynb)` not.",
        "It needs [Queries](01_queries_keys_values.ipynb).",
        "*Taught in* [b](00_start_here.ipynb).",
        "Not taught in this course.",
    ]
    assert leads_on.source.splitlines() == [
        "Next: [Self-attention](07_self_attention.ipynb).",
        "[The further page](03_scoring_functions_further.ipynb) has more.",
    ]


def test_links_to_chapters_left_out_lead_to_the_full_course_where_there_is_one(choose):
    course = manifest.load(choose(*SIX, full_course="https://a.org/course/"))
    text = trimmed(course, new_markdown_cell(TEXT))[2].source
    assert "[in their chapter](https://a.org/course/04_masks.html#padding-gets-weight)" in text
    assert "*Taught in* [a](https://a.org/course/04_masks.html)." in text


def test_a_quiz_leads_on_to_the_next_chosen_chapter(six):
    old = new_output("display_data", data={"text/html": "old"})
    asked = trimmed(six, new_code_cell('cu.quiz("scoring_functions")', outputs=[old]))[2]
    assert "Next: 07 · Self-attention" in asked.outputs[0].data["text/html"]


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
