"""The course's fixed words by language: the table is whole, and a chapter in German keeps every rule."""

import ast
import re
import string

import nbformat
import pytest
from tiny_book import book

from course_utils.files import ROOT
from course_utils.kit import language, predict, quiz
from course_utils.kit.check import Check, expect
from course_utils.kit.language import GERMAN, WORDS, in_language, spoken
from course_utils.studio import handout, manifest, notebooks, pairs, ways
from course_utils.studio.__main__ import main
from course_utils.studio.book import pages, transforms
from course_utils.studio.page import Page

FORM = ("Exercise", "Take-aways", "Quiz", "References", "After this chapter", "It needs")
KIND = re.compile(r"^\*(\w+) · (\d+) minutes\*$", re.MULTILINE)


def in_german(text: str) -> str:
    """A text of a chapter, its fixed words by the table."""
    for english in FORM:
        text = re.sub(rf"^(#+ )?{english}\b", rf"\g<1>{GERMAN[english]}", text, flags=re.M)
    text = re.sub("^On the way", GERMAN["On the way"], text, flags=re.M)
    return KIND.sub(lambda m: f"*{GERMAN[m[1]]} · {m[2]} {GERMAN['minutes']}*", text)


@pytest.fixture(scope="module")
def german(tmp_path_factory):
    """A course of chapter 02 whose fixed words are German: outputs as they are committed."""
    root = tmp_path_factory.mktemp("german")
    (root / "notebooks" / "source").mkdir(parents=True)
    course = book("02_kernel_regression").replace("[course]", '[course]\nlanguage = "de"')
    (root / "book.toml").write_text(course)
    (chapter,) = manifest.load(root / "book.toml", files=False).chapters
    notebook = pairs.read(ROOT / "notebooks" / f"{chapter.notebook}.ipynb")
    for cell in notebook.cells:
        if cell.cell_type == "markdown":
            cell.source = in_german(cell.source)
    chapter.source.write_text(pairs.text(notebook))
    pairs.write(pairs.bare(notebook), chapter.ipynb)
    return root / "book.toml"


@pytest.mark.parametrize("name", WORDS)
def test_each_language_has_every_word_with_the_same_gaps(name):
    def gaps(text: str) -> set[str]:
        return {part[1] for part in string.Formatter().parse(text) if part[1] is not None}

    assert WORDS[name].keys() == WORDS["en"].keys()
    for english, said in WORDS[name].items():
        assert said and ("$" in english or gaps(said) == gaps(english))


def test_every_word_that_the_course_says_stands_in_the_table():
    asked = {*language.QUIZ, *language.PREDICTION}
    for file in (ROOT / "course_utils").rglob("*.py"):
        for call in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            name = ast.unparse(call.func) if isinstance(call, ast.Call) else ""
            if name in ("word", "pattern"):
                asked |= {one.value for one in call.args if isinstance(one, ast.Constant)}
    assert len(asked) > 50 and asked <= WORDS["en"].keys()


def test_every_phrase_of_a_page_is_in_its_form_or_script():
    forms = quiz._form(quiz.recall("queries_keys_values", "start_here"))
    many = quiz._form(quiz.quiz("masks"))
    choice = predict._page({"question": "?", "low": 0, "high": 1})
    for shown, phrases in ((forms + many, language.QUIZ), (choice, language.PREDICTION)):
        missing = [one for one in phrases if one not in shown]
        assert missing in ([], ["(More than one is right.)"])
        assert in_language(shown, phrases) == shown
        with spoken("de"):
            said = in_language(shown, phrases)
        assert not [one for one in phrases if one in said]


def test_chapter_02_in_german_keeps_every_rule_and_is_as_long_as_in_english(german, capsys):
    assert main(["--book", str(german), "check"]) == 0, capsys.readouterr().out
    (chapter,) = manifest.load(german).chapters
    english = Page(pairs.read(ROOT / "notebooks" / f"{chapter.notebook}.ipynb"))
    page = chapter.page
    assert "### Aufgabe 1" in pairs.text(page.notebook) and not re.search(
        "^#+ Exercise", pairs.text(page.notebook)
    )
    assert [one.kind for one in page.exercises] == [one.kind for one in english.exercises]
    assert page.exercise_minutes == english.exercise_minutes > 0
    assert len(page.sections) == len(english.sections)


def test_its_page_and_the_book_s_contents_speak_german(german):
    course = manifest.load(german)
    (chapter,) = course.chapters
    notebook = nbformat.read(chapter.ipynb, as_version=4)
    with spoken(course.language):
        made = transforms.for_the_book(notebook, {}, "", chapter)
        assert "caption: Am Ende" in pages.contents(course)
        assert "| Weg | Kapitel (Abschnitte) | Etwa |" in ways.ways_table(course)
    shown = "\n".join(cell.source for cell in made.cells)
    for said in (
        "[Aufgabe 1]{.cu-label}",
        "Eine Lösung besteht, wenn",
        "Lösung</summary>",
        "Literatur, 3 Werke",
        f"etwa {chapter.minutes} Minuten",
    ):
        assert said in shown, said
    for english in ("Exercise", ">Solution<", "References", "It needs"):
        assert english not in shown
    assert "language: de" in pages.configuration(course)


def test_its_handout_is_german(german, tmp_path):
    course = manifest.load(german)
    handout.build(course, german.parent, tmp_path / "out")
    assert (
        "### Aufgabe 1"
        in (tmp_path / "out" / "notebooks" / course.chapters[0].ipynb.name).read_text()
    )


def test_reports_are_said_in_the_language_of_the_course_and_a_kernel_knows_it():
    five = Check("five")
    five.must("it gives 5", hint=("count", "count again"))(lambda f: expect(f() == 5, "it gives 4"))
    with spoken("de"):
        assert notebooks._environment()["COURSE_LANGUAGE"] == "de"
        assert repr(five(...)).startswith("five: noch offen. Fülle die Zelle")
        report = repr(five(lambda: 4))
        assert report.startswith("five: noch nicht, bisher 0 von 1.")
        assert "Hinweis: count (Mehr, in einer neuen Zelle: cu.checks.five.hint())" in report
        assert repr(five.hint()).startswith("Hinweis 1 von 2 zu “it gives 5”: count\nHinweis 2")
        assert repr(five(lambda: 5)).startswith("five: bestanden, 1 von 1.")


def test_a_language_that_the_table_lacks_is_refused(german, tmp_path):
    path = tmp_path / "book.toml"
    path.write_text(german.read_text().replace('"de"', '"kl"'))
    with pytest.raises(
        manifest.ManifestError, match=r"course.language: is 'kl'. Write a language of"
    ):
        manifest.load(path, files=False)
