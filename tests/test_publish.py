"""What a published book needs: heads, files for a host, links that lead somewhere; and what a service runs."""

import importlib.util
import re
import tomllib

import nbformat
import pytest
import yaml
from bs4 import BeautifulSoup

from course_utils.files import ROOT
from course_utils.studio import manifest, pairs
from course_utils.studio.book import pages, publish
from course_utils.studio.book.build import build
from course_utils.studio.book.local_links import dead

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]

# The book ---------------------------------------------------------------------------------------

PAGE = """<html><head><title>One</title></head><body>
<div class="bd-sidebar-primary bd-sidebar"></div><button title="Toggle primary sidebar"></button>
<a href="a">One</a><details><summary><i></i></summary></details>
<li><a href="https://mybinder.org/v2/git/https%3A//codeberg.org/a/b/main?urlpath=lab"></a></li>
</body></html>"""
TOML = """[course]
title = "Small & fine"
authors = []
license = "MIT"
repository = ""
[[chapter]]
notebook = "01_one"
title = "One"
"""


@pytest.fixture
def small(tmp_path):
    """A course of one chapter; called with lines for `[course]`."""

    def load(line=""):
        text = TOML.replace("[[chapter]]", f"{line}\n[[chapter]]", 1)
        if line.startswith("repository"):
            text = text.replace('repository = ""\n', "", 1)
        (tmp_path / "book.toml").write_text(text, encoding="utf-8")
        return manifest.load(tmp_path / "book.toml", files=False)

    return load


def test_the_themes_gaps_are_mended_and_done_again_nothing_changes(tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "_static" / "webpack-macros.html").write_text("{{ pathto('a.js') }}")
    page = tmp_path / "01_one.html"
    page.write_text(PAGE)
    publish.finish(tmp_path)
    first = page.read_text()
    assert "/v2/git/https%3A%2F%2Fcodeberg.org%2Fa%2Fb/main?" in first
    assert "bd-sidebar pst-sidebar-hidden" in first and 'title="All chapters"' in first
    assert '<summary aria-label="Pages below One">' in first
    assert not [*(tmp_path / "_static").iterdir()]
    publish.finish(tmp_path)
    assert page.read_text() == first


@pytest.mark.slow
def test_a_book_with_an_address_has_heads_a_sitemap_and_a_page_for_what_is_missing(small):
    course = small('url = "https://a.org/course"')
    (chapter,) = course.chapters
    chapter.source.parent.mkdir(parents=True)
    chapter.source.write_text('# %% [markdown]\n# # One\n# What is "it"?\n')
    nbformat.write(pairs.read_source(chapter.source), chapter.ipynb)
    for _ in range(2):  # the second time nothing has changed, and the sitemap is whole all the same
        html = build(course, course.root / "_build").parent
        found = re.findall(r"<loc>(.*?)</loc>", (html / "sitemap.xml").read_text())
        assert sorted(found) == [
            f"https://a.org/course/{name}.html" for name in ("01_one", "bibliography", "index")
        ]
    page = BeautifulSoup((html / "01_one.html").read_text(), "html.parser")
    said = {meta.get("property") or meta.get("name"): meta["content"] for meta in page("meta")[1:]}
    assert said["og:title"] == "One" and said["og:site_name"] == "Small & fine"
    assert said["description"] == said["og:description"] == "What is “it”?"
    address = "https://a.org/course/01_one.html"
    assert said["og:url"] == page.find("link", rel="canonical")["href"] == address
    absent = BeautifulSoup((html / "404.html").read_text(), "html.parser")
    assert "No such page" in [heading.text for heading in absent("h1")]
    loaded = [tag["href"] for tag in absent("link") if tag.get("rel") == ["stylesheet"]]
    assert loaded and all(one.startswith("/course/_static/") for one in loaded)
    assert (html / ".nojekyll").is_file()


def test_without_an_address_no_sitemap_is_made(small):
    assert "sitemap" not in pages.configuration(small())
    assert "sphinx_sitemap" in pages.configuration(small('url = "https://a.org"'))


@pytest.mark.parametrize(
    ("lines", "files"),
    [
        ('repository = "https://github.com/a/b"', "https://github.com/a/b/blob/main"),
        ('repository = "https://gitlab.com/a/b/"', "https://gitlab.com/a/b/-/blob/main"),
        ('repository = "https://codeberg.org/a/b"', "https://codeberg.org/a/b/src/branch/main"),
        (
            'repository = "https://git.a.edu/b/c"\nhost = "gitlab"\nbranch = "spring"',
            "https://git.a.edu/b/c/-/blob/spring",
        ),
        ("", ""),
    ],
)
def test_links_to_files_have_the_form_of_their_host(small, lines, files):
    assert small(lines).files == files


@pytest.mark.parametrize(
    ("link", "why"),
    [
        ('<a href="b.html#two">', ""),
        ('<a class="x" href="#one">', ""),
        ('<a href="b.html?q=1#live=gpt.0&amp;words=two">', ""),
        ('<a href="https://a.org/none">', ""),
        ("<script>link = '<a href=\"none.html\">'</script>", ""),
        ('<a href="folder/">', ""),
        ('<img src="data:image/png;base64,AA">', ""),
        ('<a href="none.html">', "a.html: none.html: no such file"),
        ('<a href="b.html#one">', "a.html: b.html#one: no such place in it"),
        ("<a\n href='#two'>", "a.html: #two: no such place in it"),
        ('<script src="none.js"></script>', "a.html: none.js: no such file"),
    ],
)
def test_a_link_to_nothing_is_found(tmp_path, link, why):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "index.html").touch()
    (tmp_path / "b.html").write_text('<h2 id="two">Two</h2>')
    (tmp_path / "a.html").write_text(f'<h1 id="one">One</h1>{link}')
    assert dead(tmp_path) == ([why] if why else [])


# What a service runs ----------------------------------------------------------------------------

WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
FORMS = sorted((ROOT / ".github" / "ISSUE_TEMPLATE").glob("*.yml"))


def steps(path) -> list[dict]:
    flow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert flow["permissions"] and flow[True] and all("runs-on" in j for j in flow["jobs"].values())
    return [step for job in flow["jobs"].values() for step in job["steps"]]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_a_workflow_runs_only_what_is_there(path):
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = "\n".join(step.get("run", "") for step in steps(path))
    for target in re.findall(r"\bmake ([a-z]+)", commands):
        assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    for module in re.findall(r"-m (course_utils[\w.]*)", commands):
        assert importlib.util.find_spec(module), module
    for file in re.findall(
        r"(?:^|[ =])((?:\.ci|tools|tests)/[\w./]+|[A-Z]+\.md|\w+\.toml)", commands
    ):
        assert (ROOT / file).exists(), file
    assert "|| true" not in commands
    for step in steps(path):
        assert ("run" in step) != ("uses" in step)
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "a/b@v1"))


def test_a_form_for_problems_asks_for_the_doctor_s_report():
    fields = {}
    for path in FORMS:
        form = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert form["name"] and form["description"] and form["body"]
        assert len({field["id"] for field in form["body"]}) == len(form["body"])
        fields |= {field["id"]: field["attributes"] for field in form["body"]}
    assert "-m course_utils.studio doctor" in fields["doctor"]["description"]


# Releases ---------------------------------------------------------------------------------------


def test_one_version_stands_in_pyproject_and_elsewhere_only_as_there():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    course = manifest.load(files=False)
    assert citation["version"] == PROJECT["version"]
    assert (citation["title"], [one["name"] for one in citation["authors"]]) == (
        course.title,
        list(course.authors),
    )
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.search(r"^## (\S+)", changes, re.MULTILINE)[1] == PROJECT["version"]


@pytest.mark.parametrize("page", ["accessibility", "privacy"])
def test_the_two_papers_say_what_was_measured_and_that_nothing_was_found(page):
    text = (ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8")
    measured = re.search(r"<!-- measured -->\n(.*)\n<!-- /measured -->", text, re.S)[1]
    found = re.findall(r": (\d+)\.", measured)
    assert found and set(found) == {"0"}, "mend it, then `python tests/audit.py` again"
