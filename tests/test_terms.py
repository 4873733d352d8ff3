"""The index of terms leads somewhere, in order; the pages after the chapters say what they promise."""

import re

import pytest

from course_utils.studio import manifest
from course_utils.studio.book import pages, terms

SOURCE = """\
# %% [markdown]
# # One
# ## A softmax, step by step: √d & [more]
# Here is the *softmax*.
# ### Example
# First.
# ### Example
# Second, with masks.
"""


@pytest.fixture
def course(tmp_path):
    folder = tmp_path / "notebooks" / "source"
    folder.mkdir(parents=True)
    (folder / "01_one.py").write_text(SOURCE, encoding="utf-8")
    (tmp_path / "book.toml").write_text(
        '[course]\ntitle = "Small"\nauthors = ["A"]\nlicense = "MIT"\nrepository = ""\n'
        '[[chapter]]\nnotebook = "01_one"\ntitle = "One"\n'
    )
    return manifest.load(tmp_path / "book.toml", files=False)


def load(course, text: str) -> list[terms.Term]:
    path = course.chapters[0].ipynb.parent / "terms.toml"
    path.write_text(text, encoding="utf-8")
    return terms.load(course)


def test_an_entry_links_the_sections_that_teach_it_by_the_anchors_of_the_book(course):
    found = load(
        course,
        '["mask"]\nmeans = "Who may attend."\ntaught = ["one Example"]\n'
        '["softmax"]\nmeans = "Weights."\ntaught = ["one A softmax, step by step: √d & [more]"]\n',
    )
    text = terms.page(found)
    assert text.index("## M") < text.index("**mask**") < text.index("## S")
    assert "[01 Example](01_one.ipynb#example-1)" in text
    assert "#a-softmax-step-by-step-d--more)" in text


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ('["a"]\nmeans = "x"\ntaught = ["one Nowhere"]', "'one Nowhere', which does not exist"),
        ('["a"]\nmeans = "x"\ntaught = ["07 Example"]', "'07 Example', which does not exist"),
        ('["zebra"]\nmeans = "x"\ntaught = ["one Example"]', "does not contain zebra"),
        ('["a"]\nmeans = "x"', "needs means and taught"),
        ('["a"]\nmeans = "x"\ntaught = ["one One"]\nsee = 1', "needs means and taught"),
        (
            '["b"]\nmeans = "x"\ntaught = ["one One"]\n["a"]\nmeans = "x"\ntaught = ["one One"]',
            "order",
        ),
    ],
    ids=range(6),
)
def test_an_entry_that_leads_nowhere_is_named(course, text, problem):
    with pytest.raises(terms.TermError, match=re.escape(problem)):
        load(course, text)


def test_every_chapter_has_terms_in_the_course_s_index():
    course = manifest.load()
    listed = {section.chapter for term in terms.load(course) for section in term.taught}
    assert set(course.chapters) <= listed <= set(course.notebooks)


def test_the_closing_page_names_every_chapter():
    course = manifest.load()
    text = pages.closing(course)
    missing = [c.notebook for c in course.chapters if f"({c.notebook}.ipynb)" not in text]
    assert not missing
