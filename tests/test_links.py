"""Links of notebooks lead somewhere, in Lab and in the book, and so do those of the README."""

import posixpath
import re

import nbformat
import pytest

from course_utils.files import ROOT
from course_utils.studio import manifest
from course_utils.studio.book import build
from course_utils.studio.links import places, targets, texts

COURSE = manifest.load(files=False).whole
PAGES = build.link_targets(COURSE)
FILES = [*PAGES, "README.md", "CONTRIBUTING.md"]


def markdown(path: str) -> list[str]:
    """The Markdown of a page, by its path from the repository's root."""
    if path.endswith(".ipynb"):
        return texts(nbformat.read(ROOT / path, as_version=4))
    return [(ROOT / path).read_text(encoding="utf-8")] if (ROOT / path).is_file() else []


@pytest.mark.parametrize("path", FILES)
def test_every_link_leads_to_a_file_and_to_a_place_in_it(path):
    for target in (target for text in markdown(path) for target in targets(text)):
        if re.match(r"[a-z]+:", target):
            continue
        file, _, place = target.partition("#")
        there = posixpath.normpath(posixpath.join(posixpath.dirname(path), file)) if file else path
        assert there in PAGES or (ROOT / there).is_file(), f"{target}: no such file"
        if place and there in PAGES:
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
