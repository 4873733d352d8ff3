"""The tables of the chapters and of the paths, in the README and on the start page of Lab."""

import re
from collections.abc import Callable, Mapping, Sequence

from course_utils.files import atomic_write
from course_utils.studio import paths
from course_utils.studio.manifest import Chapter, Manifest


def chapter_table(course: Manifest) -> str:
    """The notebooks as a Markdown table, with links that start at the repository's root."""
    rows = ["| | Chapter | Minutes | Needs | GPU |", "|---|---|---|---|---|"]
    part = ""
    for chapter in course.notebooks:
        title = "Appendices" if chapter.kind == "appendix" else chapter.part
        if title and title != part:
            rows.append(f"| | **{_escape(title)}** | | | |")
        part = title
        rows.append(_row(chapter))
    return "\n".join(rows)


def _row(chapter: Chapter) -> str:
    link = f"[{_escape(chapter.title)}](notebooks/{chapter.notebook}.ipynb)"
    if chapter.kind == "further":
        return f"| | {link} | {chapter.minutes or '–'} | | |"
    needs = ", ".join(stem.partition("_")[0] for stem in chapter.prerequisites) or "–"
    minutes = (
        chapter.minutes if chapter.kind == "chapter" else 0
    )  # an appendix is looked up, not read
    gpu = "optional" if chapter.gpu else "–"
    return f"| {chapter.number} | {link} | {minutes or '–'} | {needs} | {gpu} |"


def solved(
    chapter: Chapter, passed: Mapping[str, str], sections: Sequence[str] = ()
) -> tuple[int, int]:
    """The number of exercises that passed, and of all: of a chapter and its further page, or of some sections.

    Args:
        chapter: which one.
        passed: the exercises that passed, "kernel_regression/fixed_loss", and their days.
        sections: the titles of the sections that count; none for all, and then the further page counts, too.
    """
    contents = [page.content for page in chapter.with_further()]
    if sections:
        contents = [contents[0].with_sections(sections)]
    code = "\n".join(cell.source for content in contents for cell in content.code)
    names = set(re.findall(r"^cu\.checks\.(\w+)\(", code, re.MULTILINE))
    return len({f"{chapter.slug}/{name}" for name in names} & passed.keys()), len(names)


def place(
    chapters: Sequence[Chapter],
    passed: Mapping[str, str],
    link: Callable[[Chapter], str] | None = None,
) -> str:
    """A sentence with a link to the chapter to begin with or to go on with.

    Args:
        chapters: those of the course, or of a way.
        passed: as in `solved`.
        link: writes a link; by default in Markdown.
    """
    link = link or _link
    days = {exercise.partition("/")[0]: day for exercise, day in sorted(passed.items(), key=_day)}
    begun = [chapter for chapter in chapters if chapter.slug in days]
    if not begun:
        return f"Begin with {link(chapters[0])}."
    latest = max(days[chapter.slug] for chapter in begun)
    recent = [chapter for chapter in begun if days[chapter.slug] == latest][-1]
    done, total = solved(recent, passed)
    if done < total:
        return f"Go on with {link(recent)}, where you have solved {done} of {total} exercises."
    after = chapters[chapters.index(recent) + 1 :]
    if not after:
        return f"You have solved all exercises of {link(recent)}, the last chapter."
    return f"Go on with {link(after[0])}, because {link(recent)} is done."


def _day(entry: tuple[str, str]) -> str:
    return entry[1]


def _link(chapter: Chapter) -> str:
    return f"[{chapter.number} · {_escape(chapter.title)}]({chapter.notebook}.ipynb)"


def _escape(text: str) -> str:
    return re.sub(r"([|\[\]\\])", r"\\\1", text)


def paths_table(course: Manifest) -> str:
    """The paths as a table in Markdown, with the sections in brackets if a path takes only some."""
    practised = paths.hours(sum(chapter.content.reading_minutes for chapter in course.chapters))
    rows = [
        *[("Way", "Chapters (sections)", "About"), ("---",) * 3],
        *paths.summaries(course),
        ("All chapters, only read", "without the further pages", practised),
    ]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def write_tables(course: Manifest) -> None:
    """Bring the tables in the README beside the manifest up to date, if there is one.

    They show all chapters, chosen or not: a release writes there, too, and the two would meet in a conflict.
    """
    path = course.root / "README.md"
    if not path.is_file():
        return
    old = text = path.read_text(encoding="utf-8")
    for name, table in {"chapters": chapter_table, "paths": paths_table}.items():
        before, start, rest = text.partition(f"<!-- {name} -->\n")
        _, end, after = rest.partition(f"\n<!-- /{name} -->")
        if start and end:
            text = f"{before}{start}{table(course.whole)}{end}{after}"
    if text != old:
        with atomic_write(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
