"""The README and the pages for teachers promise only what is there: chapters, targets of the Makefile, commands."""

import re

import pytest

from course_utils.files import ROOT
from course_utils.studio import manifest, tables

README = (ROOT / "README.md").read_text(encoding="utf-8")
TEACHING = (ROOT / "docs" / "teaching.md").read_text(encoding="utf-8")
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
COVER = (ROOT / "course_utils" / "studio" / "book" / "cover.md").read_text(encoding="utf-8")


@pytest.mark.slow  # it reads every chapter, for the minutes
def test_the_chapters_are_those_of_the_manifest():
    course = manifest.load().whole
    for name, table in {"chapters": tables.chapter_table, "paths": tables.paths_table}.items():
        told = re.search(rf"<!-- {name} -->\n(.*?)\n<!-- /{name} -->", README, re.S)[1]
        assert told == table(course)


CHAPTERS = manifest.load(files=False).whole.chapters
IN_WORDS = {18: "Eighteen", 19: "Nineteen", 20: "Twenty", 21: "Twenty-one", 22: "Twenty-two"}


def test_it_counts_the_chapters_in_its_first_lines():
    assert f"{IN_WORDS[len(CHAPTERS)]} chapters lead from" in README


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.notebook)
def test_a_chapter_has_a_page_for_teachers_and_says_in_one_formula_what_it_builds(chapter):
    name = chapter.title.partition(":")[0]
    formula = (ROOT / "notebooks" / "source" / "F_one_formula.py").read_text(encoding="utf-8")
    assert f"\n# | [{name}]({chapter.notebook}.ipynb) | " in formula
    page = (ROOT / "docs" / "chapters" / f"{chapter.slug}.md").read_text(encoding="utf-8")
    assert page.startswith(f"# For teachers: {name}")


def test_the_commands_without_make_are_those_of_the_makefile():
    recipes = re.sub(r"^\t@?", "", MAKEFILE, flags=re.MULTILINE)
    recipes = re.sub(r" \$\((CHAPTER|if .*\))\)?", "", recipes)
    for variable, value in [("BIN", ".venv/bin"), ("PYTHON", "python3"), ("WORKERS", "2")]:
        recipes = recipes.replace(f"$({variable})", value)
    commands = re.findall(
        r"(?:^|`)((?:python3 tools|\.venv/bin/python) [^`\n]+)", README, re.MULTILINE
    )
    assert commands
    for command in commands:
        assert command in recipes.splitlines()


def test_a_teacher_without_make_runs_what_make_runs():
    rows = re.findall(r"^\|[^|]*\| `make ([a-z]+)[^`]*` \| `([^` ]+(?: [a-z]+\b)?)", TEACHING, re.M)
    assert rows
    for target, command in rows:
        recipe = re.search(rf"^{target}:.*\n((?:\t.*\n)+)", MAKEFILE, re.MULTILINE)[1]
        assert f"-m {command}" in recipe, target


def test_the_python_and_the_disk_that_it_asks_for_are_those_that_are_checked():
    import tomllib

    from tools import bootstrap

    oldest, newest = (".".join(map(str, one)) for one in (bootstrap.OLDEST, bootstrap.NEWEST))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == f">={oldest}"
    assert f"Python {oldest} to {newest} and about {bootstrap.GIGABYTES} GB" in README
    assert f"install Python {oldest} to {newest}" in MAKEFILE
    assert f"You need Python {oldest} to {newest}" in COVER
