"""One sentence a line: where lines break, what stays as it is, and that no page looks otherwise."""

import shutil

import nbformat
import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook

from course_utils.studio import form, manifest, pairs, prose
from course_utils.studio.page import Page

CHAPTERS = manifest.load(files=False).whole.notebooks


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("One. Two\nlines? Three!", ["One.", "Two lines?", "Three!"]),
        ("See Fig. 2, e.g. `a. B`, by A. Vaswani et al. (2017). More.", [
            "See Fig. 2, e.g. `a. B`, by A. Vaswani et al. (2017).", "More."]),
        ("It is 3.5 here, $a. B$ there, [a. B](x. Y) too. `x` is one.", [
            "It is 3.5 here, $a. B$ there, [a. B](x. Y) too.", "`x` is one."]),
        ("He said “No.” She did not. (Nor did I.) **So.** *Or.*", [
            "He said “No.”", "She did not.", "(Nor did I.)", "**So.**", "*Or.*"]),
        ("- One. Two.\n- Three\n  goes on.", ["- One.", "  Two.", "- Three goes on."]),
        ("> 1. One. Two.", ["> 1. One.", ">    Two."]),
        ("*build · 8 minutes*\nWrite. Check.", ["*build · 8 minutes*", "Write.", "Check."]),
        ("*Section 1 of 2*\n\nOne. Two.", ["*Section 1 of 2*", "", "One.", "Two."]),
    ],
)  # fmt: skip
def test_a_sentence_is_a_line(text, lines):
    assert prose.one_a_line(text).split("\n") == lines


@pytest.mark.parametrize(
    "text",
    [
        "| a | b |\n|---|---|\n| One. Two. | 3 |",
        "```\nOne. Two.\n```",
        "$$\na. B\n$$",
        "Broken here. Twice.\\\nOr so.",
        "# Heading. More",
        "<div>One. Two.</div>",
        "A list of years. 2017. It began.\n2018. It went on.",
    ],
)
def test_what_would_look_otherwise_stays(text):
    assert prose.html(prose.one_a_line(text)) == prose.html(text)
    if "years" not in text:
        assert prose.one_a_line(text) == text


@pytest.mark.parametrize("chapter", CHAPTERS, ids=lambda chapter: chapter.notebook)
def test_each_chapter_looks_as_before_and_keeps_its_form(chapter):
    notebook = pairs.read_source(chapter.source)
    pages, complaints = [], []
    for _ in range(2):
        pages.append([prose.html(c.source) for c in notebook.cells if c.cell_type == "markdown"])
        complaints.append(form.complaints(Page(notebook, chapter.kind), full=True))
        prose.break_lines(notebook)
    assert pages[0] == pages[1] and complaints[0] == complaints[1]
    assert not prose.break_lines(notebook)


def test_code_that_only_calls_the_course_is_folded_and_counters_go():
    cells = [
        new_markdown_cell("## Keys\n\n*Section 1 of 5*\n\nText."),
        new_code_cell('cu.quiz("keys", "one")'),
        new_code_cell("cu.checks.look(look)", metadata={"tags": ["check"]}),
        new_code_cell("translator = cu.live.translator()"),
    ]
    notebook = new_notebook(cells=cells)
    assert prose.fold(notebook) and not prose.fold(notebook)
    assert cells[0].source == "## Keys\n\nText."
    assert [one.metadata.get("jupyter", {}).get("source_hidden", False) for one in cells] == [
        *(False, True, True, False)
    ]


def test_both_halves_get_the_lines_and_outputs_stay(tmp_path):
    chapter = CHAPTERS[0]
    source, ipynb = tmp_path / "notebooks/source/00_a.py", tmp_path / "notebooks/00_a.ipynb"
    source.parent.mkdir(parents=True)
    shutil.copy(chapter.ipynb, ipynb)
    wide = chapter.source.read_text(encoding="utf-8") + "\n# %% [markdown]\n# One. Two.\n"
    source.write_text(wide, encoding="utf-8")
    assert prose.format_pair(source, ipynb, check=True) and source.read_text() == wide
    with pytest.raises(pairs.PairError, match="'make sync' first"):
        prose.format_pair(source, ipynb)
    assert pairs.sync(source, ipynb)
    before = nbformat.read(ipynb, as_version=4)
    assert prose.format_pair(source, ipynb)
    after = nbformat.read(ipynb, as_version=4)
    assert after.cells[-1].source == "One.\nTwo."
    assert not any(pairs.edited(pairs.read_source(source), after)) and not pairs.is_edited(after)
    code = [[c for c in nb.cells if c.cell_type == "code"] for nb in (before, after)]
    assert code[0] == code[1] and any(cell.outputs for cell in code[1])
    comments = [line for line in wide.splitlines() if not line.startswith("#")]
    assert [
        line for line in source.read_text().splitlines() if not line.startswith("#")
    ] == comments
    assert not prose.format_pair(source, ipynb)
