"""On each path through the course, nothing is used before it is taught there."""

import ast
import re
from collections.abc import Iterator

import pytest
from tiny_book import book

from course_utils.kit import quiz
from course_utils.kit.exercises import HEADING, prose_lines
from course_utils.kit.needed import bound_names, read_names
from course_utils.studio import paths
from course_utils.studio.content import UNCOUNTED, Content
from course_utils.studio.manifest import load
from course_utils.studio.paths import Leg

COURSE = load(files=False).whole
PATHS = paths.legs(COURSE) | {"All chapters": [Leg(chapter, (), 0) for chapter in COURSE.chapters]}
SYNC = "run python -m course_utils.studio sync"
STOPS = [
    pytest.param(path, stop, id=f"{path.title}-{stop.chapter}")
    for path in COURSE.paths
    for stop in path.stops
]
PAGES = [
    *COURSE.chapters,
    *(
        page
        for page in COURSE.appendices
        if page.notebook in {s.chapter for p in COURSE.paths for s in p.stops}
    ),
]
"""The chapters, and the appendices that are stops of a path."""
CHAPTER = {page.notebook: page for page in PAGES}


@pytest.mark.parametrize(("path", "stop"), STOPS)
def test_a_path_names_sections_that_are_there_in_their_order_and_not_all(path, stop):
    titles = CHAPTER[stop.chapter].content.sections
    assert list(stop.sections) == [title for title in titles if title in stop.sections]
    assert len(stop.sections) < len(titles), f"all of {stop.chapter}: name no sections"


@pytest.mark.parametrize("chapter", PAGES, ids=lambda page: page.notebook)
def test_a_chapter_says_first_which_sections_a_path_takes(chapter):
    text = "\n".join(paths.introductions(COURSE, chapter.notebook))
    places = [
        place
        for place, cell in enumerate(chapter.content.notebook.cells)
        if is_tagged(cell, "paths")
    ]
    assert places == ([1] if text else []), f"{SYNC}, or write:\n{text}"
    assert not text or chapter.content.notebook.cells[1].source == text, (
        f"{SYNC}, or write:\n{text}"
    )


@pytest.mark.parametrize("chapter", PAGES, ids=lambda page: page.notebook)
def test_a_chapter_says_last_where_a_path_goes_on_elsewhere_or_ends(chapter):
    cells = [c.source for c in chapter.content.notebook.cells if is_tagged(c, "next")]
    lines = "\n".join(cells).splitlines()
    expected = list(paths.directions(COURSE, chapter.notebook))
    said = [line for line in lines if paths.WAY_LINE.match(line)]
    assert len(said) == len(expected), f"{SYNC}, or write:\n" + "\n".join(expected)
    for line, text in zip(said, expected, strict=True):
        assert line == text or line.startswith(f"{text[:-1]},"), f"{SYNC}, or write: {text}"


def test_lines_of_ways_are_written_into_a_source_once_and_a_continuation_stays(tmp_path):
    (tmp_path / "book.toml").write_text(
        book("00_one", "01_two", "02_three")
        + '[[appendix]]\nnotebook = "B_words"\ntitle = "Words"\n\n'
        '[[path]]\ntitle = "To three"\ngoal = "02_three"\nchapters = ["00_one", '
        '{ chapter = "B_words", sections = ["Two"] }, "02_three"]\n'
    )
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    course = load(tmp_path / "book.toml", files=False)
    one, words = course.chapters[0], course.appendices[0]
    head = "# %% [markdown]\n# # One\n\n# %%\n1\n"
    leads_on = '\n# %% [markdown] tags=["next"]\n# Next: [Two](01_two.ipynb).\n'
    one.source.write_text(head + leads_on + "# More.\n")
    words.source.write_text("# %% [markdown]\n# # W\n\n# %% [markdown]\n# ## One\n# ## Two\n")
    assert paths.write_lines(course, one).startswith("00_one.py names the paths")
    line = "# On the path to three, [Words](B_words.ipynb) comes next"
    assert one.source.read_text() == f"{head}{leads_on}{line}.\n# More.\n"
    one.source.write_text(f"{head}{leads_on}{line}, because it is short.\n# More.\n")
    assert paths.write_lines(course, one) == ""
    paths.write_lines(course, words)
    text = words.source.read_text()
    assert (
        '# # W\n\n# %% [markdown] tags=["paths"]\n# On the path to three: [Two](#Two).\n\n# %%'
        in text
    )
    assert text.endswith(
        'tags=["next"]\n# On the path to three, [Three](02_three.ipynb) comes next.\n'
    )
    assert str(paths.legs(course)["To three"][1]) == "B (2)"
    assert paths.write_lines(course, words) == ""


def is_tagged(cell, tag: str) -> bool:
    return tag in cell.metadata.get("tags", ())


@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.notebook)
def test_a_chapter_tags_its_goals_and_what_comes_next(chapter):
    cells = chapter.content.notebook.cells
    goals, leads_on = (
        [cell.source for cell in cells if is_tagged(cell, tag)] for tag in ("goals", "next")
    )
    assert len(goals) == bool(chapter.prerequisites), 'one text before the sections, tagged "goals"'
    assert len(leads_on) == 1, 'one text after the take-aways, tagged "next"'
    if after := COURSE.after(chapter):
        assert f"]({after.ipynb.name})" in leads_on[0], "it links the next chapter"


def read_and_bound(cells) -> tuple[set[str], set[str]]:
    """The names that cells of code read, each but for those that it binds, and the names that they bind."""
    read, bound = set[str](), set[str]()
    for cell in cells:
        statements = ast.parse(cell.source).body
        own = {name for statement in statements for name in bound_names(statement)}
        read |= {name for statement in statements for name in read_names(statement)} - own
        bound |= own
    return read, bound


@pytest.mark.parametrize(("path", "stop"), STOPS)
def test_no_section_on_a_path_needs_a_name_of_a_section_left_out(path, stop):
    whole = CHAPTER[stop.chapter].content
    taken = whole.with_sections(stop.sections) if stop.sections else whole
    (_, everywhere), (read, taken_along) = read_and_bound(whole.code), read_and_bound(taken.code)
    lacking = read & (everywhere - taken_along)
    assert not lacking, (
        f"{path.title!r} leaves out the sections of {stop.chapter} that bind {lacking}"
    )


@pytest.mark.parametrize("title", PATHS)
def test_a_chapter_needs_and_imports_only_what_lies_before_it_on_the_path(title):
    before: dict[str, str] = {}  # slug → stem
    for chapter, _, _ in PATHS[title]:
        lacking = set(chapter.prerequisites) - set(before.values())
        assert not lacking, f"{title}: {chapter.notebook} needs {lacking}"
        code = "\n".join(cell.source for cell in chapter.content.code)
        lessons = set(re.findall(r"course_utils\.lessons\.(\w+)", code)) - {chapter.slug}
        assert lessons <= before.keys(), f"{title}: {chapter.notebook} imports from {lessons}"
        before[chapter.slug] = chapter.notebook


# Questions ---------------------------------------------------------------------------------------


def calls(chapter, name: str) -> Iterator[list[str]]:
    """The texts in the brackets of each call of `cu.quiz` or `cu.recall` in a chapter."""
    code = "\n".join(cell.source for cell in chapter.content.code)
    for arguments in re.findall(rf"^cu\.{name}\(([^)]*)\)$", code, re.MULTILINE):
        yield re.findall(r'"(\w+)"', arguments)


@pytest.mark.parametrize("path", COURSE.paths, ids=lambda path: path.title)
def test_on_a_path_each_recall_and_each_closing_quiz_has_two_questions_about_what_was_read(path):
    read: dict[str, tuple[str, ...]] = {}
    few = []
    for stop in path.stops:
        chapter = CHAPTER[stop.chapter]
        read[chapter.slug] = stop.sections or tuple(chapter.content.sections)
        asked = {f"recall{slugs}": quiz.recall(*slugs) for slugs in calls(chapter, "recall")}
        asked |= {f"quiz {s}": quiz.quiz(s) for s, *ids in calls(chapter, "quiz") if not ids}
        for name, form in asked.items():
            all_questions = (*form.questions, *form.spare)
            mine = [q for q in all_questions if q.section in read.get(q.slug, ())]
            if len(mine) < min(2, len(form.questions)):
                few.append(f"{stop.chapter}, {name}: {[question.id for question in mine]}")
    assert not few, "write a question on one of the sections that it takes"


@pytest.mark.parametrize("path", COURSE.paths, ids=lambda path: path.title)
def test_a_question_within_a_chapter_is_about_what_was_read_on_the_path(path):
    for stop in path.stops:
        whole = CHAPTER[stop.chapter]
        content = whole.content.with_sections(stop.sections) if stop.sections else whole.content
        code = "\n".join(cell.source for cell in content.code)
        sections = stop.sections or whole.content.sections
        for slug, names in re.findall(r'^cu\.quiz\("(\w+)", (.*)\)$', code, re.MULTILINE):
            asked = quiz.quiz(slug, *re.findall(r'"(\w+)"', names)).questions
            assert {question.section for question in asked} <= {*sections}, stop.chapter


# Terms -------------------------------------------------------------------------------------------

LOOKED_UP = "B_pytorch"  # known from the start on a path that does not take it, else from there on
GLOSSARY = next(one for one in COURSE.appendices if one.slug == "glossary")
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]*)\.ipynb(?:#([^)\s]*))?\)")
MENU = re.compile(r"\*[^*]* → [^*]*\*")  # of JupyterLab


def terms() -> dict[str, tuple[str, set[tuple[str, str]]]]:
    """Each term → its anchor, and the chapters and sections that teach it."""
    text = "\n".join(cell.source for cell in GLOSSARY.content.notebook.cells)
    pieces = re.split(r'^### <a id="([^"]+)"></a>(.+)$', text, flags=re.MULTILINE)[1:]
    return {
        name: (anchor, {(stem, place) for stem, place in LINK.findall(body)})
        for anchor, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
    }


TERMS = terms()


def sentences(content: Content) -> Iterator[tuple[set[str], str]]:
    """Each sentence of the sections, which is a line of prose, with the headings that it stands under."""
    under = ["", ""]
    for cell in content.notebook.cells:
        if cell.cell_type != "markdown":
            continue
        for line in prose_lines(cell.source):
            if heading := HEADING.match(line):
                level = min(len(heading[1]), 3) - 2
                under[level:] = [heading[2].replace(" ", "-")] + [""] * (1 - level)
            elif line.strip() and under[0] not in ("", *UNCOUNTED):
                yield {*under, ""}, line


def used_too_early(path: list[Leg]) -> Iterator[str]:
    """Where a term first comes on a path, if it is neither taught there, nor set in bold, nor linked to where it is."""
    before = {term for term, (_, places) in TERMS.items() if any(s == LOOKED_UP for s, _ in places)}
    takes = any(leg.chapter.notebook == LOOKED_UP for leg in path)
    known = set[str]() if takes else before
    for chapter, sections, _ in path:
        known |= before if chapter.notebook == LOOKED_UP else set()
        content = chapter.content.with_sections(sections) if sections else chapter.content
        for headings, line in sentences(content):
            leads = LINK.findall(line)
            plain = MENU.sub("", line)
            for term, (anchor, places) in TERMS.items():
                if term in known:
                    continue
                taught = any(
                    stem == chapter.notebook and place in headings for stem, place in places
                )
                used = re.search(rf"(?<![\w-]){re.escape(term)}s?\b", plain, re.IGNORECASE)
                bold = re.search(rf"\*\*[^*]*{re.escape(term)}[^*]*\*\*", line, re.IGNORECASE)
                stems = {stem for stem, _ in places}
                linked = any(
                    file in stems or (file, to) == (GLOSSARY.notebook, anchor) for file, to in leads
                )
                if taught or used:
                    known.add(term)
                if used and not (taught or bold or linked):
                    yield f"{chapter.notebook}, {headings - {''}}: {term!r} in {line!r}"


@pytest.mark.parametrize("title", PATHS)
def test_a_term_is_taught_where_it_first_comes_on_the_path(title):
    early = list(used_too_early(PATHS[title]))
    assert not early, "\n".join([f"{title}: teach it, or link it to the glossary", *early])
