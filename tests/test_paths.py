"""On each path through the course, nothing is used before it is taught there."""

import ast
import re
from collections.abc import Iterator

import pytest

from course_utils.kit.exercises import HEADING, prose_lines
from course_utils.kit.needed import bound_names, read_names
from course_utils.studio import paths
from course_utils.studio.content import UNCOUNTED, Content
from course_utils.studio.manifest import load
from course_utils.studio.paths import Leg

COURSE = load(files=False).whole
PATHS = paths.legs(COURSE) | {"All chapters": [Leg(chapter, (), 0) for chapter in COURSE.chapters]}
STOPS = [
    pytest.param(path, stop, id=f"{path.title}-{stop.chapter}")
    for path in COURSE.paths
    for stop in path.stops
]
CHAPTER = {chapter.notebook: chapter for chapter in COURSE.chapters}


@pytest.mark.parametrize(("path", "stop"), STOPS)
def test_a_path_names_sections_that_are_there_in_their_order_and_not_all(path, stop):
    titles = CHAPTER[stop.chapter].content.sections
    assert list(stop.sections) == [title for title in titles if title in stop.sections]
    assert len(stop.sections) < len(titles), f"all of {stop.chapter}: name no sections"


@pytest.mark.parametrize("chapter", COURSE.chapters, ids=lambda chapter: chapter.notebook)
def test_a_chapter_says_first_which_sections_a_path_takes(chapter):
    text = paths.introduction(COURSE, chapter.notebook)
    places = [
        place
        for place, cell in enumerate(chapter.content.notebook.cells)
        if is_tagged(cell, "paths")
    ]
    assert places == ([1] if text else []), text
    assert not text or chapter.content.notebook.cells[1].source == text


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
def test_a_chapter_needs_imports_and_recalls_only_what_lies_before_it_on_the_path(title):
    before: dict[str, str] = {}  # slug → stem
    for chapter, _, _ in PATHS[title]:
        lacking = set(chapter.prerequisites) - set(before.values())
        assert not lacking, f"{title}: {chapter.notebook} needs {lacking}"
        code = "\n".join(cell.source for cell in chapter.content.code)
        lessons = set(re.findall(r"course_utils\.lessons\.(\w+)", code)) - {chapter.slug}
        recalled = {
            slug
            for call in re.findall(r"cu\.recall\(([^)]*)\)", code)
            for slug in re.findall(r'"(\w+)"', call)
        }
        for verb, slugs in {"imports from": lessons, "recalls": recalled}.items():
            assert slugs <= before.keys(), (
                f"{title}: {chapter.notebook} {verb} {slugs - before.keys()}"
            )
        before[chapter.slug] = chapter.notebook


# Terms -------------------------------------------------------------------------------------------

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
    known = {
        term for term, (_, places) in TERMS.items() if any(s.startswith("B_") for s, _ in places)
    }
    for chapter, sections, _ in path:
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
