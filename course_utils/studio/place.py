"""Where a reader is: the exercises of a chapter that have passed, and the chapter to go on with."""

import re
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from course_utils.studio.manifest import Chapter


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
    taken: Mapping[Chapter, Sequence[str]] = MappingProxyType({}),
    link: Callable[[Chapter], str] | None = None,
) -> str:
    """A sentence with a link to the chapter to begin with or to go on with.

    Args:
        chapters: those of the course, or of a way.
        passed: as in `solved`.
        taken: the sections that a way takes of them.
        link: writes a link; by default in Markdown.
    """
    link = link or _link
    days = {exercise.partition("/")[0]: day for exercise, day in sorted(passed.items(), key=_day)}
    begun = [chapter for chapter in chapters if chapter.slug in days]
    if not begun:
        return f"Begin with {link(chapters[0])}."
    latest = max(days[chapter.slug] for chapter in begun)
    recent = [chapter for chapter in begun if days[chapter.slug] == latest][-1]
    done, total = solved(recent, passed, taken.get(recent, ()))
    if done < total:
        return f"Go on with {link(recent)}, where you have solved {done} of {total} exercises."
    after = chapters[chapters.index(recent) + 1 :]
    if not after:
        return f"You have solved all exercises of {link(recent)}, the last chapter."
    return f"Go on with {link(after[0])}, because {link(recent)} is done."


def _day(entry: tuple[str, str]) -> str:
    return entry[1]


def _link(chapter: Chapter) -> str:
    return f"[{chapter.number} · {chapter.title}]({chapter.notebook}.ipynb)"
