"""The pictures as files of their own: each has title and description, and needs nothing of a page."""

import re
from xml.etree import ElementTree as xml

import pytest
from bs4 import BeautifulSoup

from course_utils.studio import manifest
from course_utils.studio.teaching import figures

COURSE = manifest.load(files=False)
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """The folder, and the pictures of the whole course."""
    out = tmp_path_factory.mktemp("figures")
    return out, figures.write(COURSE, COURSE.notebooks, out)


def test_every_picture_is_a_file_and_an_svg_has_title_description_and_plain_colors(made):
    out, found = made
    assert len(found) > 100 * len(COURSE.chapters) / 18 and any(not one.vector for one in found)
    for one in found:
        file = out / one.chapter.notebook / f"{one.name}.{'svg' if one.vector else 'png'}"
        data = file.read_bytes()
        if not one.vector:
            assert data.startswith(b"\x89PNG")
            continue
        root = xml.fromstring(data)
        assert [child.tag for child in root[:2]] == [f"{SVG}title", f"{SVG}desc"]
        assert root[0].text == one.title and root[1].text == one.alt and len(one.alt) > 20
        assert not re.search(rb"var\(|light-dark|<style|<script|(href|src)=\"http", data)
    assert len({(one.chapter.notebook, one.name) for one in found}) == len(found)


def test_the_index_shows_each_with_its_alt_text_and_says_whom_to_credit(made):
    out, found = made
    page = BeautifulSoup((out / "index.html").read_text(encoding="utf-8"), "html.parser")
    images = page.select("img")
    assert [image["alt"] for image in images] == [one.alt for one in found]
    assert all((out / image["src"]).is_file() for image in images)
    assert COURSE.license in page.p.get_text() and COURSE.title in page.p.get_text()


@pytest.mark.browser
def test_a_png_is_twice_as_large(made, chromium):
    from PIL import Image

    out, found = made
    one = next(one for one in found if one.vector)
    assert figures.draw([one], out) == ""
    width, height = (float(xml.fromstring(one.svg).get(key)) for key in ("width", "height"))
    with Image.open(out / one.chapter.notebook / f"{one.name}.png") as image:
        assert image.size == pytest.approx((2 * width, 2 * height), abs=2)
