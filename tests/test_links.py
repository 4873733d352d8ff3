"""Links within the notebooks lead somewhere, in Lab and in the book; the glossary is in order."""

import re

import nbformat
import pytest
from nbformat.v4 import new_markdown_cell, new_notebook

from course_utils.files import ROOT
from course_utils.studio import manifest
from course_utils.studio.book import pages, transforms
from course_utils.studio.links import LINK, places, targets, texts

COURSE = manifest.load(files=False).whole
FOLDER = ROOT / "notebooks"
GLOSSARY = next(page for page in COURSE.appendices if page.slug == "glossary")
BUILT = {"bibliography.md"}  # pages that only the book has


def markdown(name: str) -> list[str]:
    """The Markdown of a notebook, or of a page of the book that is written as such."""
    if name.removesuffix(".md") in WRITTEN:
        return [pages.text(COURSE, name.removesuffix(".md"))]
    return texts(nbformat.read(FOLDER / name, as_version=4))


WRITTEN = pages.texts(COURSE)
PAGES = [
    *(page.ipynb.name for page in COURSE.notebooks),
    *(f"{name}.md" for name in WRITTEN),
]


@pytest.mark.parametrize("name", PAGES)
def test_every_link_leads_to_a_file_and_to_a_place_in_it(name):
    for target in (target for text in markdown(name) for target in targets(text)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, place = target.partition("#")
        known = not file or file in BUILT or file.removesuffix(".md") in WRITTEN
        here = (FOLDER / name).parent
        assert known or (here / file).is_file(), f"{target}: no such file"
        if place:
            assert place.isascii(), f"{target}: Lab does not find a place with such letters"
            found = places(markdown(file or name))
            known = {*found, *found.values()} if name.endswith(".md") else found
            assert place in known, f"{target}: no such place"


def test_a_place_has_a_name_in_lab_and_one_in_the_book():
    page = ["# One\n\n## The `width`, *chosen*: how?\n", "## Example\n\n## Example\n\n#### Deep\n"]
    assert places([*page, '### <a id="kv-cache"></a>KV cache\n']) == {
        "One": "one",
        "The-width,-chosen:-how?": "the-width-chosen-how",
        "Example": "example",
        "KV-cache": "kv-cache",
        "kv-cache": "kv-cache",
    }


def test_links_within_a_page_lead_to_the_book_s_names_and_anchors_go():
    cell = new_markdown_cell('## <a id="x"></a>The Width\n\n[there](#The-Width), [too](#x)')
    made = transforms.keep_links_inside(new_notebook(cells=[cell]), {}, "")
    assert made.cells[0].source == "## The Width\n\n[there](#the-width), [too](#the-width)"


# The glossary ------------------------------------------------------------------------------------


def entries() -> dict[str, tuple[str, str]]:
    """Each term with its anchor and the text under it."""
    text = "\n".join(markdown(GLOSSARY.ipynb.name))
    pieces = re.split(r'^### <a id="([^"]+)"></a>(.+)$', text, flags=re.MULTILINE)[1:]
    return dict(zip(pieces[1::3], zip(pieces[::3], pieces[2::3], strict=True), strict=True))


def key(name: str) -> str:
    """A term as it is sorted."""
    return re.sub(r"[^\w ]", "", name.casefold().replace("-", " "))


def test_the_terms_stand_in_alphabetical_order_each_with_a_place_of_its_name():
    found = entries()
    assert len(found) > 60
    assert list(found) == sorted(found, key=key)
    for name, (anchor, _) in found.items():
        assert anchor == re.sub(
            r"[^a-z0-9-]", "", name.casefold().replace(" ", "-").replace("–", "-")
        )


def test_every_term_has_a_meaning_an_example_and_a_section_that_teaches_it():
    for name, (_, text) in entries().items():
        told, _, taught = " ".join(text.split()).partition("*Taught in*")
        meaning, _, example = told.partition("For example, ")
        assert 1 <= len(re.findall(r"\.\)?(?:\s|$)", meaning)) <= 2, f"{name}: a sentence or two"
        assert example.strip().endswith("."), f"{name}: no example"
        assert LINK.search(taught), f"{name}: no section"


def test_the_closing_page_names_every_chapter():
    text = "\n".join(markdown("F_one_formula.ipynb"))
    assert not [c.notebook for c in COURSE.chapters if f"({c.notebook}.ipynb)" not in text]
