"""book.toml: what it gives, and that each mistake in it is named by file, key and remedy."""

import pytest

from course_utils.studio.manifest import ManifestError, Stop, load
from course_utils.studio.tables import chapter_table

BOOK = """
[course]
title = "Attention"
authors = ["One", "Two"]
license = "MIT"
repository = ""

[[chapter]]
notebook = "00_start"
title = "Start here"

[[chapter]]
notebook = "01_keys"
title = "Keys"
prerequisites = ["00_start"]
gpu = true

[[chapter]]
notebook = "02_pooling"
title = "Pooling | kernels"
prerequisites = ["00_start", "01_keys"]
gpu = false
"""
STEMS = ("00_start", "01_keys", "02_pooling")


@pytest.fixture
def book(tmp_path):
    """A course of three chapters; called with replacements, it writes a changed manifest."""
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    for stem in STEMS:
        (tmp_path / "notebooks" / f"{stem}.ipynb").touch()
        (tmp_path / "notebooks" / "source" / f"{stem}.py").touch()

    def write(old="", new=""):
        assert old in BOOK
        (tmp_path / "book.toml").write_text(BOOK.replace(old, new, 1), encoding="utf-8")
        return tmp_path / "book.toml"

    return write


def test_the_manifest_gives_the_course_and_its_chapters_in_order(book):
    path = book()
    course = load(path)
    assert (course.title, course.authors, course.license) == ("Attention", ("One", "Two"), "MIT")
    assert course.repository == ""
    assert tuple(chapter.notebook for chapter in course.chapters) == STEMS
    first, second, third = course.chapters
    assert first.prerequisites == () and first.gpu is False
    assert second.prerequisites == ("00_start",) and second.gpu is True
    assert (third.number, third.slug) == ("02", "pooling")
    assert third.ipynb == path.parent / "notebooks" / "02_pooling.ipynb"
    assert third.source == path.parent / "notebooks" / "source" / "02_pooling.py"


READ = "# %% [markdown]\n# " + 450 * "word "  # five minutes
DONE = "### Exercise 1 · Keys\n# *build · 8 minutes*"


def test_minutes_are_computed_from_what_there_is_to_read_and_to_do(book):
    path = book()
    first, second, third = load(path).chapters
    first.source.write_text(READ)
    second.source.write_text(f"{READ}\n# {DONE}\n\n# %%\n" + 20 * "keys\n")
    assert first.minutes == 5
    assert second.minutes == 20  # 5 and one and a half times 8, and 3 for the lines of code
    third.source.unlink()
    assert third.minutes == 0


def test_the_chapter_table_links_each_notebook_and_names_what_it_needs(book):
    course = load(book())
    for chapter in course.chapters[:2]:
        chapter.source.write_text(READ)
    assert chapter_table(course).splitlines() == [
        "| | Chapter | Minutes | Needs | GPU |",
        "|---|---|---|---|---|",
        "| 00 | [Start here](notebooks/00_start.ipynb) | 5 | – | – |",
        "| 01 | [Keys](notebooks/01_keys.ipynb) | 5 | 00 | optional |",
        r"| 02 | [Pooling \| kernels](notebooks/02_pooling.ipynb) | – | 00, 01 | – |",
    ]


APPENDIX = '[[appendix]]\nnotebook = "01_names"\ntitle = "N"\n\n[[chapter]]'
MISTAKES = {
    "syntax": ('title = "Keys"', 'title = "Keys', ["not valid TOML", "line 14", "double quotes"]),
    "unknown table": (
        "[course]",
        "[extra]\n[course]",
        ["('extra' was unexpected)", "keys course,"],
    ),
    "no course": (BOOK.split("[[")[0], "", ["at the top: 'course' is a required", "the manifest"]),
    "no chapters": (BOOK[BOOK.index("[[") :], "", ["'chapter' is a required property"]),
    "chapter once": (BOOK[BOOK.index("[[") :], "[chapter]", ["chapter: {} is not", "[[chapter]]"]),
    "missing key": ('license = "MIT"', "", ["course: 'license' is a required", "keys title,"]),
    "authors no list": ('["One", "Two"]', '"One"', ["course.authors: 'One' is not", "a list"]),
    "author empty": ('"Two"]', '""]', ["course.authors[1]: ''", "text in quotes"]),
    "repository": ('repository = ""', 'repository = "x.org"', ["course.repository", "https://"]),
    "unknown key": ("gpu = false", "gup = false", ["chapter[2]: ", "('gup' was", "gpu, further"]),
    "unknown part": ("gpu = true", 'part = "Kexs"', ["chapter[1].part: no part", "Add a [[part]]"]),
    "further": ("gpu = true", "further = true", ["chapter[1].further: True", "further page"]),
    "slug": ('"02_pooling"', '"02_keys"', ["chapter[2].notebook: 'keys', without", "chapter[1]"]),
    "appendix": ("[[chapter]]", APPENDIX, ["appendix[0].notebook", "A_names"]),
    "empty title": ('"Keys"', '" "', ["chapter[1].title: ' '", "not empty"]),
    "gpu": ("gpu = true", "gpu = 1", ["chapter[1].gpu: 1 is not of type 'boolean'"]),
    "suffix": (
        '"01_keys"',
        '"01_keys.ipynb"',
        ["chapter[1].notebook", "without folder and suffix"],
    ),
    "needs no list": ('["00_start"]', '"00_start"', ["chapter[1].prerequisites", "a list"]),
    "unknown need": ('["00_start"]', '["00_strat"]', ["chapter[1].prerequisites", "'00_start'"]),
    "later need": (
        '["00_start"]',
        '["02_pooling"]',
        ["chapter[1].prerequisites", "not come before"],
    ),
    "needs itself": (
        '["00_start"]',
        '["01_keys"]',
        ["chapter[1].prerequisites", "not come before"],
    ),
    "twice": ('"02_pooling"', '"01_keys"', ["chapter[2].notebook", "chapter[1] already", "Remove"]),
}


@pytest.mark.parametrize("name", MISTAKES)
def test_each_mistake_is_named_by_file_key_and_remedy(book, name):
    old, new, phrases = MISTAKES[name]
    with pytest.raises(ManifestError) as caught:
        load(book(old, new))
    message = str(caught.value)
    assert message.startswith("book.toml: ") and message.endswith(".")
    for phrase in phrases:
        assert phrase in message


def test_a_manifest_that_is_not_there_is_said_to_be_missing(tmp_path):
    with pytest.raises(ManifestError, match=r"book\.toml: there is no such file"):
        load(tmp_path / "book.toml")


@pytest.mark.parametrize("half", ["02_pooling.ipynb", "source/02_pooling.py"])
def test_either_half_of_a_pair_may_be_the_missing_one(book, half):
    path = book()
    (path.parent / "notebooks" / half).unlink()
    with pytest.raises(ManifestError, match=rf"chapter '02_pooling': notebooks/{half} is not on"):
        load(path)
    assert len(load(path, files=False).chapters) == 3


@pytest.mark.parametrize("half", ["07_stray.ipynb", "source/07_stray.py"])
def test_a_notebook_that_no_chapter_names_is_found(book, half):
    path = book()
    (path.parent / "notebooks" / half).touch()
    with pytest.raises(ManifestError, match=rf"chapter: no chapter names notebooks/{half}. Add a"):
        load(path)


PARTS = """
[[part]]
title = "Weights"

[[part]]
title = "Images"

[[chapter]]
notebook = "00_start"
title = "Start here"

[[chapter]]
notebook = "01_keys"
title = "Keys"
part = "Weights"
further = "More keys"
prerequisites = ["00_start"]

[[chapter]]
notebook = "02_pooling"
title = "Pooling"
part = "Images"

[[appendix]]
notebook = "A_names"
title = "Names elsewhere"
"""


@pytest.fixture
def parts(book):
    """A course of two parts, with a further page and an appendix."""
    path = book(BOOK[BOOK.index("[[") :], PARTS)
    for stem in ("01_keys_further", "A_names"):
        (path.parent / "notebooks" / f"{stem}.ipynb").touch()
        (path.parent / "notebooks" / "source" / f"{stem}.py").touch()
    return path


def test_further_pages_follow_their_chapters_and_appendices_come_last(parts):
    course = load(parts)
    pages = [(page.notebook, page.kind, page.part) for page in course.notebooks]
    assert pages == [
        ("00_start", "chapter", ""),
        ("01_keys", "chapter", "Weights"),
        ("01_keys_further", "further", "Weights"),
        ("02_pooling", "chapter", "Images"),
        ("A_names", "appendix", ""),
    ]
    assert course.parts == ("Weights", "Images")
    assert course.notebooks[2].title == "More keys"
    assert chapter_table(course).splitlines()[2:] == [
        "| 00 | [Start here](notebooks/00_start.ipynb) | – | – | – |",
        "| | **Weights** | | | |",
        "| 01 | [Keys](notebooks/01_keys.ipynb) | – | 00 | – |",
        "| | [More keys](notebooks/01_keys_further.ipynb) | – | | |",
        "| | **Images** | | | |",
        "| 02 | [Pooling](notebooks/02_pooling.ipynb) | – | – | – |",
        "| | **Appendices** | | | |",
        "| A | [Names elsewhere](notebooks/A_names.ipynb) | – | – | – |",
    ]


def test_after_a_chapter_and_its_further_page_comes_the_next_chapter(parts):
    course = load(parts)
    after = {page.notebook: course.after(page) for page in course.notebooks}
    assert {stem: found and found.notebook for stem, found in after.items()} == {
        "00_start": "01_keys",
        "01_keys": "02_pooling",
        "01_keys_further": "02_pooling",
        "02_pooling": None,
        "A_names": None,
    }


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ('["01_kexs"]', ["way[0].chapters[0]: no chapter is called '01_kexs'", "'01_keys'"]),
        (
            '["02_pooling", "01_keys"]',
            ["way[0].chapters[1]: '01_keys' does not come after '02_pooling'"],
        ),
        ('[{ sections = ["Widths"] }]', ["way[0].chapters[0]: {", 'sections = ["A heading"]']),
        ('["01_keys"]\nto = []', ["way[0]: ", "('to' was unexpected)"]),
    ],
)
def test_a_way_that_cannot_be_gone_is_named(parts, wrong, words):
    right = '["01_keys", { chapter = "02_pooling", sections = ["Widths"] }]'
    text = f'[[way]]\ntitle = "W"\nchapters = {right}\n{parts.read_text()}'
    parts.write_text(text)
    assert load(parts).ways[0].stops == (Stop("01_keys"), Stop("02_pooling", ("Widths",)))
    parts.write_text(text.replace(right, wrong, 1))
    with pytest.raises(ManifestError) as caught:
        load(parts)
    assert all(word in str(caught.value) for word in words)


def test_the_chapters_of_a_part_stand_together(parts):
    text = parts.read_text().replace(
        'title = "Start here"', 'title = "Start here"\npart = "Images"'
    )
    parts.write_text(text)
    with pytest.raises(ManifestError, match=r"chapter\[2\].part: 'Images' has ended above"):
        load(parts)
