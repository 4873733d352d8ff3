"""Links within the notebooks lead somewhere, in Lab and in the book; the glossary is in order."""

import posixpath
import re

import nbformat
import pytest

from course_utils.files import ROOT
from course_utils.studio import manifest
from course_utils.studio.book import build
from course_utils.studio.links import LINK, places, targets, texts

COURSE = manifest.load(files=False).whole
PAGES = build.link_targets(COURSE)


def markdown(path: str) -> list[str]:
    """The Markdown of a page, by its path from the repository's root."""
    if path.endswith(".ipynb"):
        return texts(nbformat.read(ROOT / path, as_version=4))
    return [(ROOT / path).read_text(encoding="utf-8")] if (ROOT / path).is_file() else []


@pytest.mark.parametrize("path", PAGES)
def test_every_link_leads_to_a_file_and_to_a_place_in_it(path):
    for target in (target for text in markdown(path) for target in targets(text)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, place = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
        assert there in PAGES or (ROOT / there).is_file(), f"{target}: no such file"
        if place:
            assert place.isascii(), f"{target}: Lab does not find a place with such letters"
            anchors = PAGES[there].anchors
            known = {*anchors, *anchors.values()} if there.endswith(".md") else anchors
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


# The glossary ------------------------------------------------------------------------------------


def entries() -> dict[str, tuple[str, str]]:
    """Each term with its anchor and the text under it."""
    (glossary,) = (path for path in PAGES if path.endswith("_glossary.ipynb"))
    text = "\n".join(markdown(glossary))
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
    text = "\n".join(markdown("notebooks/F_one_formula.ipynb"))
    assert not [c.notebook for c in COURSE.chapters if f"({c.notebook}.ipynb)" not in text]
