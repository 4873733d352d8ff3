"""The book from the inside: transforms, pages, the cache, and what the checks refuse."""

import base64
import copy
import dataclasses
import re
import shutil
from pathlib import Path

import nbformat
import pandas as pd
import pytest
import yaml
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output

import course_utils as cu
from course_utils.figures.picture import image_tag
from course_utils.kit.live import stored
from course_utils.kit.page import MAX_BYTES
from course_utils.kit.words import marked
from course_utils.studio import manifest, notebooks
from course_utils.studio.book import build as builder
from course_utils.studio.book import calm, cover, explorers, pages, transforms
from course_utils.studio.book.__main__ import main
from course_utils.studio.book.build import BookError, build
from course_utils.studio.book.calm import tags
from course_utils.studio.book.check import check, page_problems, told_too_early
from course_utils.studio.book.pictures import settle_pictures

# Transforms -----------------------------------------------------------------------------------------------------------

PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


def picture(alt: str | None, **data: str):
    metadata = {} if alt is None else {"image/png": {"alt": alt}}
    return new_output("execute_result", data={"image/png": PNG} | data, metadata=metadata)


def code(source: str = "1", *outputs, tags: tuple[str, ...] = ()):
    return new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)})


def one(cell, transform=transforms.carry_alt_texts):
    return transform(new_notebook(cells=[cell])).cells[0]


def prose(text: str, transform) -> str:
    return one(new_markdown_cell(text), transform).source


def html(text: str):
    return new_output("display_data", data={"text/html": text})


LESSON = [
    new_markdown_cell("# One\nIn short: **what is\n`1 + 1`?** Read on.\n\n"
                      "On the way to two: [A](#A).\n\nAfter this chapter you can\n\n- add.\n"),
    code("import math\nimport torch"),
    code('cu.recall("masks")', new_output("display_data", data={"text/plain": "Recall masks: 3 questions"})),
    new_markdown_cell(
        "## A section\n\nText.\n\n"
        "### Exercise 1 · Weights\n\n*build · 5 minutes*\n\nWrite it."
    ),
    code("def average_weights(): ...", tags=("exercise", "build")),
    code("cu.checks.average_weights(average_weights)", tags=("check",)),
    code("def s():\n    return 2\n\n\ncu.checks.average_weights(s)", tags=("solution",)),
    new_markdown_cell("After it."),
    code('cu.predict("Which?", why="A reason.")', html("<p>Which?</p>"), tags=("hide-input",)),
    code("fig", html("<p>A picture</p>"), tags=("hide-input", "opening")),
    code('with cu.guard("One is less."):\n    assert 1 < 2', tags=("guard",)),
    new_markdown_cell("## Take-aways\n\n- Add.\n\nNext: [Two](02_two.ipynb).\nMore: [one](01_one_further.ipynb)."),
    new_markdown_cell("## References\n\n- A book.\n- A paper."),
]  # fmt: skip


@pytest.fixture
def lesson(small) -> list:
    """The cells of a chapter as the book has them."""
    one = dataclasses.replace(load(small).chapters[0], further="More of one")
    two = dataclasses.replace(one, notebook="02_two", title="Two")
    data = base64.b64encode(b'<svg xmlns="x"><style>*{}</style><rect/></svg>').decode()
    image = (
        f'<img alt="A box" src="data:image/svg+xml;base64,{data}" width="10" height="5" style="">'
    )
    asks = new_markdown_cell("# Two\n\n**Why `two`?**")
    nbformat.write(new_notebook(cells=[asks, code("draw()", html(image))]), two.ipynb)
    three = dataclasses.replace(one, notebook="03_three", title="Three")
    pages = {"02_two.ipynb": {}, "01_one_further.ipynb": {}}
    given = new_notebook(cells=copy.deepcopy(LESSON))
    return transforms.for_the_book(given, pages, "", one, {two: [], three: ["To B"]}).cells


def texts(cells) -> list[str]:
    return [cell.source for cell in cells]


def test_a_chapter_begins_with_its_question_and_one_thing_to_look_at(lesson):
    head = lesson[: next(place for place, cell in enumerate(lesson) if "## A" in cell.source)]
    assert texts(head)[1:3] == ["# One", "{.cu-lede}\nwhat is `1 + 1`?"]
    assert [cell.outputs[0].data["text/html"] for cell in head if "opening" in tags(cell)] == [
        "<p>A picture</p>"
    ]
    (fold,) = [text for text in texts(head) if "cu-fold" in text]
    assert "Goals · set-up, 2 lines · 3 questions to warm up" in fold
    ways = "{.cu-further}\nOn the way to two: [A](#A)."  # small, below what is to be seen
    assert (
        texts(head).index("In short: Read on.") < texts(head).index(ways) < texts(head).index(fold)
    )
    assert 'href="#opening"' in "".join(texts(lesson[len(head) :]))


def test_each_chapter_has_one_opening():
    for chapter in manifest.load(files=False).chapters:
        text = chapter.source.read_text(encoding="utf-8")
        assert len(re.findall('^# %% tags=.*"opening"', text, re.M)) == 1, chapter.notebook


def test_goals_and_needs_are_folded_wherever_they_stand_before_the_sections(small):
    later = new_markdown_cell("A lead.\nAfter this chapter you can\n\n- add.\n\nIt needs paper.")
    cells = [new_markdown_cell("# One\n**Why?**"), code("import math"), later]
    given = new_notebook(cells=[*cells, new_markdown_cell("## A section\n\nAfter this chapter.")])
    found = texts(transforms.for_the_book(given, {}, "", load(small).chapters[0]).cells)
    fold = next(place for place, text in enumerate(found) if "Goals · needs · set-up" in text)
    assert found[fold + 1 : fold + 3] == ["After this chapter you can\n\n- add.", "It needs paper."]
    assert found[fold + 5 :] == ["A lead.", "## A section\n\nAfter this chapter."]


def test_a_chapter_ends_with_the_next_one_and_folded_references(lesson):
    after = texts(lesson)[texts(lesson).index("## Take-aways\n\n- Add.\n") :]
    two, three = BeautifulSoup(after[1], "html.parser").select("a.cu-next")
    assert two["href"] == "02_two.html" and "<span>Why <code>two</code>?</span>" in str(two)
    assert '<svg aria-hidden="true" xmlns="x"><rect></rect></svg>' in str(two)
    assert (three["data-ways"], three.has_attr("hidden")) == ("To B", True)
    assert after[2] == "{.cu-further}\nMore: [one](01_one_further.ipynb)."
    assert "References, 2 works" in after[3] and after[4] == "- A book.\n- A paper."


def test_an_exercise_is_a_card_that_lists_what_its_check_tests(lesson):
    found = texts(lesson)
    card = found[found.index("### [Exercise 1]{.cu-label}[ · ]{.cu-dot}Weights") + 1 :]
    card = card[: card.index("After it.")]
    assert "build · 5 minutes" in card[0] and card[1:3] == ["Write it.", LESSON[4].source]
    for asked in cu.checks.average_weights.properties:
        assert marked(asked.sentence) in card[3] and marked(asked.hints[0]) in card[4]
    assert card[5:] == ["def s():\n    return 2", "</details></div>", "</div>"]


@pytest.mark.parametrize(("tag", "link"), [("hide-input", "code"), ("hide-output", "result")])
def test_what_is_folded_opens_with_a_word(tag, link):
    assert one(code(tags=(tag,)), calm.with_code_links).metadata.mystnb["code_prompt_show"] == link


def test_what_only_calls_the_course_has_no_code_and_a_guard_is_its_sentence(lesson):
    page = "\n".join(texts(lesson))
    assert not re.search(r"cu\.(recall|checks|predict|guard)|A reason", page)
    assert "<span>✓</span> One is less.</summary><pre>1 &lt; 2</pre>" in page
    (asked,) = [cell for cell in lesson if "Which?" in str(cell.get("outputs"))]
    assert tags(asked) == ["remove-input"]


def test_a_table_has_one_row_of_names_and_words_at_the_left():
    frame = pd.DataFrame({"a": [1.5, -2.0], "b": ["one", "two"]}, index=pd.Index([1, 2], name="h"))
    given = code("frame", new_output("display_data", data={"text/html": frame.to_html()}))
    html = one(given, calm.with_plain_tables).outputs[0].data["text/html"]
    table = BeautifulSoup(html, "html.parser")
    assert [head.get_text() for head in table.select("thead th")] == ["h", "a", "b"]
    assert [entry.get_text() for entry in table.select("td.words")] == ["one", "two"]


def test_alt_texts_move_from_the_output_to_the_cell_in_one_line():
    cell = one(code("fig", picture('Weights: "the"\n  sees <itself> & more')))
    assert cell.metadata["mystnb"]["image"]["alt"] == 'Weights: "the" sees <itself> & more'


@pytest.mark.parametrize("alt", [None, "", "  "])
def test_a_picture_without_alt_text_is_an_error_that_names_the_cell(alt):
    with pytest.raises(transforms.PictureError, match=r"cell 0 .*cu\.subplots\(alt="):
        one(code("fig", picture(alt)))


@pytest.mark.parametrize(
    ("text", "without", "with_repository"),
    [
        ("[two](02_b.ipynb)", None, None),
        (
            "[two](02_b.ipynb#kv-cache)",
            "[two](02_b.ipynb#the-kv-cache)",
            "[two](02_b.ipynb#the-kv-cache)",
        ),
        (
            "[two](02_b.ipynb#Two:-Widths?)",
            "[two](02_b.ipynb#two-widths)",
            "[two](02_b.ipynb#two-widths)",
        ),
        ("[paper](https://arxiv.org/abs/1706.03762)", None, None),
        ("[above](#widths)", None, None),
        ("`w[i](x)` stays", None, None),
        ("$f[a](b)$ stays", None, None),
        (
            "[code](../course_utils/pooling.py)",
            "code",
            "[code](R/course_utils/pooling.py)",
        ),
        ("[later](09_c.ipynb)", "later", "[later](R/notebooks/09_c.ipynb)"),
    ],
)
def test_links_to_what_is_no_page_lead_to_the_repository_or_nowhere(text, without, with_repository):
    known = {"02_b.ipynb": {"kv-cache": "the-kv-cache", "Two:-Widths?": "two-widths"}}
    for files, wanted in (("", without), ("R", with_repository)):
        found = prose(text, lambda nb: transforms.keep_links_inside(nb, known, files))  # noqa: B023
        assert found == (wanted or text)


@pytest.mark.parametrize(
    ("shown", "wanted"),
    [
        ('From <a href="02_b.ipynb">B & C</a>.', 'From <a href="02_b.html">B & C</a>.'),
        ('<a href="02_b.ipynb#widths">B</a>', '<a href="02_b.html#widths">B</a>'),
        ('From <a href="09_c.ipynb">C</a>.', "From C."),
        ('<a href="https://x.org/02_b.ipynb">far</a>', None),
    ],
)
def test_links_in_outputs_lead_to_the_books_pages(shown, wanted):
    given = new_notebook(
        cells=[code("cu.recall('b')", new_output("display_data", data={"text/html": shown}))]
    )
    found = transforms.lead_outputs_to_pages(given, {"02_b.ipynb": {}}).cells[0].outputs[0]
    assert found.data["text/html"] == (wanted or shown)
    assert given.cells[0].outputs[0].data["text/html"] == shown


def test_a_picture_becomes_part_of_its_page_and_is_scrolled_where_it_is_narrow():
    drawn, ax = cu.subplots(alt='A > "B"')
    ax.plot([1, 2])
    for shown, tag in ((drawn._repr_html_(), "svg"), (image_tag(b"", 'A > "B"', 768, 200), "img")):
        given = code("fig", new_output("display_data", data={"text/html": shown}))
        html = one(given, settle_pictures).outputs[0].data["text/html"]
        (found,) = BeautifulSoup(html, "html.parser").select(f".cu-figure > div > {tag}")
        assert found.get("aria-label", found.get("alt")) == 'A > "B"'
        assert found.parent["style"] == "min-width:699px;max-width:768px"
        assert "--cu-ink:" not in html, "the page has the colors"


def test_transforms_leave_the_notebook_they_are_given_alone(small):
    given = new_notebook(cells=copy.deepcopy(LESSON))
    changed = transforms.for_the_book(given, {}, "", load(small).chapters[0])
    assert given.cells == LESSON
    nbformat.validate(changed)


# Pages ----------------------------------------------------------------------------------------------------------------

BIB = r"""
@inproceedings{b2017, author = {Vaswani, Ashish and Kaiser, {\L}ukasz}, title = {Attention is all you need},
  booktitle = {NeurIPS}, year = {2017}, url = {https://example.org/b}}
@article{a1964, author = {Nadaraya, Elizbar A.}, title = {On estimating regression}, journal = {Theory of Probability},
  volume = {9}, number = {1}, pages = {141--142}, year = {1964}, url = {https://example.org/a}}
"""

SOURCE = """\
# %% [markdown]
# # 1. One
# By [Attention](https://example.org/b).
# %%
1 + 1
"""


@pytest.fixture
def small(tmp_path) -> Path:
    """The manifest of a course of one small chapter."""
    folder = tmp_path / "notebooks"
    (folder / "source").mkdir(parents=True)
    (folder / "references.bib").write_text(BIB)
    (folder / "source" / "01_one.py").write_text(SOURCE)
    path = tmp_path / "book.toml"
    path.write_text(
        '[course]\ntitle = "Small"\nauthors = ["A", "B"]\nlicense = "MIT"\nrepository = ""\n'
        '[[chapter]]\nnotebook = "01_one"\ntitle = "One"\n'
    )
    return path


def load(path: Path, repository: str = "") -> manifest.Manifest:
    path.write_text(path.read_text().replace('repository = ""', f'repository = "{repository}"'))
    return manifest.load(path, files=False)


def test_the_contents_show_the_parts_the_appendices_and_the_back_pages():
    course = manifest.load(files=False)
    toc = yaml.safe_load(pages.contents(course))
    assert toc["root"] == "index"
    captions = [part["caption"] for part in toc["parts"]]
    assert captions == [*course.parts, "Appendices", "For teachers", "At the end"]
    files = [entry["file"] for part in toc["parts"] for entry in part["chapters"]]
    assert files == [
        *(chapter.notebook for chapter in (*course.chapters, *course.appendices)),
        *(name for name in pages.DOCS if name in pages.texts(course)),
        *(name for name in (pages.MOVED,) if name in pages.texts(course)),
        "bibliography",
    ]


def test_pages_for_teachers_link_as_files_do_and_lead_to_pages(small):
    docs = small.parent / "docs"
    (docs / "chapters").mkdir(parents=True)
    (docs / "teaching.md").write_text(
        "[a](chapters/one.md#b) [b](../notebooks/01_one.ipynb#c) [c](../README.md) [d](#e) [f](https://g.h)"
    )
    (docs / "chapters" / "one.md").write_text("# One")
    course = load(small)
    assert pages.text(course, "teaching") == (
        "[a](teaching_one.md#b) [b](01_one.ipynb#c) [c](../README.md) [d](#e) [f](https://g.h)"
    )
    (part,) = [
        part
        for part in yaml.safe_load(pages.contents(course))["parts"]
        if part.get("caption") == "For teachers"
    ]
    assert part["chapters"] == [{"file": "teaching", "sections": [{"file": "teaching_one"}]}]


def test_nothing_is_executed_or_fetched_by_jupyter_book_itself(small):
    settings = yaml.safe_load(pages.configuration(load(small)))
    assert settings["execute"]["execute_notebooks"] == "off"
    assert settings["launch_buttons"]["thebe"] is False
    assert settings["sphinx"]["config"]["nb_ipywidgets_js"] == {}
    assert "sphinx-mathjax-offline" in settings["sphinx"]["config"]["extensions"]
    assert not {"sphinx_thebe", "sphinx.ext.intersphinx"} & set(
        settings["sphinx"]["config"]["extensions"]
    )


# References of the course ---------------------------------------------------------------------------------------------


def cited() -> set[str]:
    """The links of all References cells."""
    cells = [
        cell.source
        for chapter in manifest.load(files=False).whole.notebooks
        if chapter.source.is_file()
        for cell in notebooks.read_source(chapter.source).cells
        if cell.cell_type == "markdown" and cell.source.startswith("## References")
    ]
    links = {match["target"] for cell in cells for match in transforms.LINK.finditer(cell)}
    return {link for link in links if not link.endswith(".ipynb")}


def test_every_cited_work_is_in_the_references_file_and_every_entry_is_cited():
    urls = re.findall(r"\burl\s*=\s*\{(.*?)\}", pages.references(manifest.load(files=False)))
    assert len(urls) == len(set(urls)), "an entry stands twice"
    assert cited() == set(urls)


# Outputs --------------------------------------------------------------------------------------------------------------


def execute(chapter, *outputs) -> None:
    """Write the chapter's notebook as if its source had been run, with these outputs in its code cell."""
    notebook = notebooks.read_source(chapter.source)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = 1, list(outputs)
    notebooks.write(notebook, chapter.ipynb)


def test_a_notebook_that_was_never_executed_is_refused(small):
    chapter = load(small).chapters[0]
    execute(chapter)
    notebook = nbformat.read(chapter.ipynb, as_version=4)
    notebook.cells[1].execution_count = None
    nbformat.write(notebook, chapter.ipynb)
    with pytest.raises(
        BookError, match="01_one: cell 1 was never executed; make notebooks CHAPTER=01"
    ):
        builder._chapter(load(small), chapter, {}, small.parent)


@pytest.mark.slow
def test_an_explorer_gets_its_page_at_the_values_it_was_left_at(tmp_path, monkeypatch):
    shown = cu.explore.first_slider()
    values = {key: control.values[-1] for key, control in shown.controls.items()}
    shown.set(**values)
    output = new_output("execute_result", data={"text/plain": repr(shown), "image/png": PNG})
    assert explorers.explorer_of(output) == ("first_slider", values)
    given = new_notebook(cells=[code("cu.explore.first_slider()", output)])
    made = explorers.with_pages(given, tmp_path).cells[0].outputs[0]
    assert (
        made.data.keys() == {"text/html"}
        and 'data-explorer="first_slider"' in made.data["text/html"]
    )
    assert given.cells[0].outputs[0].data["image/png"] == PNG

    monkeypatch.setattr(
        explorers.engine.Explorer, "page", lambda explorer: pytest.fail("made twice")
    )
    assert explorers.with_pages(given, tmp_path).cells[0].outputs[0] == made
    monkeypatch.setattr(explorers, "digest_of", lambda made_of: "of other code")
    with pytest.raises(pytest.fail.Exception, match="made twice"):
        explorers.with_pages(given, tmp_path)


def test_a_section_without_its_stored_run_is_not_printed():
    run = new_output("execute_result", data={"text/plain": "train: no run is stored yet. …"})
    cells = [
        new_markdown_cell("## Before"),
        code("1"),
        new_markdown_cell("## At full size\n\nOn a GPU …"),
        code("cu.stored_run(…)", run, tags=("gpu",)),
        new_markdown_cell("More on it."),
        new_markdown_cell("## After"),
    ]
    kept = transforms.without_missing_runs(new_notebook(cells=cells)).cells
    assert [cell.source for cell in kept] == ["## Before", "1", "## After"]
    run.data["text/plain"] = "train: accuracy 0.9 (Some GPU, 61 s, 2026-11-21)"
    assert len(transforms.without_missing_runs(new_notebook(cells=cells)).cells) == 6


# The whole ------------------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_a_warning_is_fatal_and_only_what_changed_is_rendered_again(small):
    course, out = load(small, "https://github.com/someone/course"), small.parent / "_build"
    chapter = course.chapters[0]
    chapter.source.write_text(SOURCE.replace("By", "By {ref}`nobody` and"))
    execute(chapter)
    with pytest.raises(BookError, match="nobody"):
        build(course, out)
    assert not (out / ".doctrees").exists(), (
        "Sphinx warns once about what it keeps; it has to warn again"
    )
    chapter.source.write_text(SOURCE)
    execute(chapter, new_output("stream", text="forty-two"))
    index = build(course, out)
    assert index == out / "html" / "index.html"
    assert check(out / "html", course) == []

    page = index.with_name("01_one.html")
    assert "forty-two" in page.read_text(), "the book shows what the notebook holds"
    assert (
        "https://mybinder.org/v2/gh/someone/course/main?urlpath=lab/tree/notebooks/01_one.ipynb"
        in page.read_text()
    )
    other = index.with_name("bibliography.html")
    assert "Nadaraya" in other.read_text() and "Kaiser" in other.read_text()
    rendered = other.stat().st_mtime_ns
    chapter.source.write_text(SOURCE.replace("By", "Written by"))
    execute(chapter)
    build(course, out)
    assert "Written by" in page.read_text()
    assert other.stat().st_mtime_ns == rendered, "a page that did not change is not rendered again"

    shutil.copy(page, page.with_name("09_old.html"))
    page.unlink()
    assert check(out / "html", course) == [
        "01_one.html is missing: make book",
        "09_old.html is no page of book.toml: make book",
    ]


# Checks ---------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("where", ["01_one.html", "searchindex.js", "_sources/01_one.ipynb"])
def test_a_reason_that_is_told_before_the_prediction_is_found(small, tmp_path, where):
    course = load(small)
    asks = code(
        'cu.predict("Which?", ["a", "b"], answer="a", wrong={"b": "It isn\'t."}, why="It is.")'
    )
    nbformat.write(new_notebook(cells=[asks]), course.chapters[0].ipynb)
    html = tmp_path / "html"
    (html / where).parent.mkdir(parents=True)
    (html / "01_one.html").write_text("Which? a or b")
    assert told_too_early(html, course) == (
        ["_sources holds the code of predictions"] if where[0] == "_" else []
    )
    (html / where).write_text("It isn&#39;t." if where.endswith(".html") else "It is.")
    assert len(told_too_early(html, course)) == 1


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ('<img src="a.png" alt="A heatmap"><a href="https://example.org">x</a>', None),
        ('<img src="b.png" alt="A heatmap">', "a picture is missing: b.png"),
        ('<img src="data:image/png;base64,AA==" alt="A heatmap">', None),
        ("<article><h1>One</h1><h1>Two</h1></article>", "it has 2 titles"),
        ("<article><p>None</p></article>", "it has 0 titles"),
        ('<p class="cu-figure"><svg><text>a</text></svg></p>', "a drawing has no alt text: a"),
        ('<img src="a.png">', "no alt text: a.png"),
        ('<img src="a.png" alt=" ">', "no alt text"),
        (
            '<script src="https://cdn.example/x.js"></script>',
            "asks another host: https://cdn.example/x.js",
        ),
        ('<link rel="stylesheet" href="//cdn.example/x.css">', "asks another host"),
        ('<link rel="canonical" href="https://a.example/x.html">', None),
        ("<details><summary><i></i></summary>More</details>", "a fold has no name: More"),
        ('<summary aria-label="More"><i></i></summary><summary>Code</summary>', None),
        ("<pre>Traceback (most recent call last)</pre>", "shows a traceback"),
        (
            f'<p>\n<div class="cu-explorer"><p>{"x" * MAX_BYTES}</p></div>',
            "an explorer has 1150 KB",
        ),
        (
            f'<div class="cu-explorer"><img alt="x"><br></div><p>{"x" * MAX_BYTES}</p>',
            None,
        ),
    ],
)
def test_a_page_is_refused_for_what_a_reader_would_miss(page, problem, tmp_path):
    (tmp_path / "a.png").touch()
    found = page_problems(page, tmp_path)
    assert found == [] if problem is None else len(found) == 1 and problem in found[0]


def test_check_and_serve_say_what_to_do_while_there_is_no_book(small, capsys):
    (small.parent / "notebooks" / "01_one.ipynb").write_text("{}")
    assert main(["--manifest", str(small), "check"]) == 0
    assert "not built yet: make book" in capsys.readouterr().out
    assert main(["--manifest", str(small), "serve"]) == 1
    assert "not built yet: make book" in capsys.readouterr().err
    small.write_text(small.read_text().replace("license", "licence"))
    assert main(["--manifest", str(small), "check"]) == 1
    assert "licence" in capsys.readouterr().err


def test_the_cover_says_what_its_translator_gets_right(small):
    toys = dict.fromkeys(("", *cover.TILES), "<form></form>")
    text = cover.cover(manifest.load(small, files=False), toys)
    told = stored.told("everyday_fr")
    judged = [one["right"] for one in told["visitors"]]
    assert len(judged) == 40 and f"it got {sum(judged)} right" in text
    assert f"{told['test_exact']:.0%} (BLEU" in text
