"""The book from the inside: what becomes of a notebook, what stands beside it, and what is refused."""

import base64
import copy
import dataclasses
import re
import shutil
from types import MappingProxyType

import nbformat
import pandas as pd
import pytest
from bs4 import BeautifulSoup
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from tiny_book import book

import course_utils as cu
from course_utils.figures.picture import image_tag
from course_utils.files import ROOT
from course_utils.kit.explorer import Explorer
from course_utils.kit.mime import MADE_BY
from course_utils.kit.page import MAX_BYTES
from course_utils.kit.rich_text import to_html
from course_utils.studio import StudioError, manifest, notebook_files
from course_utils.studio import paths as studio_paths
from course_utils.studio.book import build as builder
from course_utils.studio.book import check, pages, signposts, transforms, widgets
from course_utils.studio.book.cells import html_outputs, tags
from course_utils.studio.book.outputs import flat_tables
from course_utils.studio.book.transforms import BookPage

COURSE = manifest.load(files=False)
PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
SOURCE = """\
# %% [markdown]
# # 1. One
# What is "it"? By [Attention](https://example.org/b).
# %%
1 + 1
"""


def code(source: str = "1", *outputs, tags: tuple[str, ...] = ()):
    return new_code_cell(source, outputs=list(outputs), metadata={"tags": list(tags)})


def text(source: str, tag: str):
    return new_markdown_cell(source, metadata={"tags": [tag]})


def html(text: str):
    return new_output("display_data", data={"text/html": text})


def picture(alt: str):
    return new_output("display_data", data={"image/png": PNG}, metadata={"image/png": {"alt": alt}})


@pytest.fixture
def small(tmp_path):
    """A course of one small chapter; called with lines for `[course]`, `repository` among them or not."""
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    (tmp_path / "notebooks" / "source" / "01_one.py").write_text(SOURCE)

    def load(lines: str = "") -> manifest.Manifest:
        lines = lines if "repository" in lines else f'{lines}\nrepository = ""'
        course = (
            f'[course]\ntitle = "Small & fine"\nauthors = ["A", "B"]\nlicense = "MIT"\n{lines}\n'
        )
        path = tmp_path / "book.toml"
        path.write_text(f'{course}[[chapter]]\nnotebook = "01_one"\ntitle = "One"\n')
        return manifest.load(path, files=False)

    return load


def execute(course, source: str = SOURCE, *outputs) -> None:
    """Write the chapter's notebook as if its source had been run, with these outputs in its code cell."""
    (chapter,) = course.chapters
    chapter.source.write_text(source)
    notebook = notebook_files.read_source(chapter.source)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            cell.execution_count, cell.outputs = 1, list(outputs)
    nbformat.write(notebook, chapter.ipynb)


# A chapter's page -------------------------------------------------------------------------------

CHAPTER = [
    new_markdown_cell("# One\nIn short: **what is\n`1 + 1`?** Read on."),
    text("On the path to two: [A](#A).", "paths"),
    code("import math\nimport torch"),
    new_markdown_cell("A lead."),
    text("You will add:\n\n- numbers.", "goals"),
    text("Bring paper.", "needs"),
    code('cu.recall("masks")', new_output("display_data", data={"text/plain": "Recall masks"})),
    new_markdown_cell(
        "## A section\n\nText.\n\nBring paper.\n\n"
        "### Exercise 1 · Weights\n\n*build · 5 minutes*\n\nWrite it."
    ),
    code("def average_weights(): ...", tags=("exercise", "build")),
    code("cu.checks.average_weights(average_weights)", tags=("check",)),
    code("def s():\n    return 2\n\n\ncu.checks.average_weights(s)", tags=("solution",)),
    new_markdown_cell("After it."),
    code('cu.predict("Which?", why="A reason.")', html("<p>Which?</p>"), tags=("hide-input",)),
    code("fig", html("<p>A picture</p>"), tags=("hide-input", "opening")),
    code("3", tags=("hide-output",)),
    code('with cu.guard("One is less."):\n    assert 1 < 2', tags=("guard",)),
    new_markdown_cell("## Take-aways\n\n- Add."),
    text("Now [Two](02_two.ipynb).\nMore: [one](01_one_further.ipynb).\nOr [rest](04_rest.ipynb).", "next"),
    new_markdown_cell("## References\n\n- A book.\n- A paper."),
]  # fmt: skip


def page(*cells, chapter=COURSE.chapters[1], linked=MappingProxyType({}), onward=()) -> list:
    """The cells of a page that is made of these."""
    given = new_notebook(cells=copy.deepcopy(list(cells)))
    made = transforms.to_page(given, chapter, linked, "", dict(onward))
    assert given.cells == list(cells), "the notebook is left alone"
    nbformat.validate(made)
    return made.cells


@pytest.fixture
def lesson(small) -> list:
    """The cells of a chapter's page, two chapters after it."""
    one = dataclasses.replace(small().chapters[0], further=("More of one",))
    two = dataclasses.replace(one, notebook="02_two", title="Two")
    three = dataclasses.replace(one, notebook="03_three", title="Three")
    svg = base64.b64encode(b'<svg xmlns="x"><style>*{}</style><rect/></svg>').decode()
    box = f'<img alt="A box" src="data:image/svg+xml;base64,{svg}" width="10" height="5" style="">'
    asks = new_markdown_cell("# Two\n\n**Why `two`?**")
    nbformat.write(new_notebook(cells=[asks, code("draw()", html(box))]), two.ipynb)
    files = [chapter.ipynb.name for chapter in (*one.with_further(), two)]
    linked = {f"notebooks/{file}": BookPage(file, {}) for file in files}
    return page(*CHAPTER, chapter=one, linked=linked, onward={two: [], three: ["To B"]})


def texts(cells) -> list[str]:
    return [cell.source for cell in cells]


def test_a_page_begins_with_its_question_and_folds_what_is_tagged_goals_and_needs(lesson):
    found = texts(lesson)
    lede, lead, opening, _, _, paths, fold, goals, needs, *rest = found[2:]
    assert (lede, lead) == ("{.cu-lede}\nwhat is `1 + 1`?", "In short: Read on.")
    assert opening == '<div id="opening">'
    assert paths == "{.cu-further}\nOn the path to two: [A](#A)."
    summary = "<summary>Goals · needs · set-up, 2 lines · 2 questions to warm up</summary>"
    assert summary in fold and goals.startswith("You will add") and needs == "Bring paper."
    assert rest[:4] == [CHAPTER[2].source, 'cu.recall("masks")', "</details>", "A lead."]
    assert "## A section\n\nText.\n\nBring paper." in rest, "only a tag moves a text"


def test_a_page_ends_with_cards_and_the_lines_tagged_next_that_no_card_says(lesson):
    *_, takeaways, line, cards, aside, fold, works, end = texts(lesson)
    assert (takeaways, line) == ("## Take-aways\n\n- Add.", "Or rest.")
    assert "<b>Two</b>" in cards and 'data-ways="To B"' in cards
    assert aside == "{.cu-further}\nMore: [one](01_one_further.ipynb)."
    assert "References, 2 works" in fold and works.startswith("- A book") and end == "</details>"


WAYS = """
[[path]]
title = "To three"
goal = "03_three"
chapters = ["00_one", { chapter = "01_two", sections = ["B"] }, "03_three"]

[[path]]
title = "Short"
goal = "03_three"
chapters = [{ chapter = "01_two", sections = ["A"] }, "03_three"]
"""


def test_a_section_names_the_ways_that_leave_it_out_and_lines_on_ways_name_theirs(tmp_path):
    (tmp_path / "book.toml").write_text(book("00_one", "01_two", "02_between", "03_three") + WAYS)
    (tmp_path / "notebooks" / "source").mkdir(parents=True)
    course = manifest.load(tmp_path / "book.toml", files=False)
    two = course.chapters[1]
    two.source.write_text(
        "# %% [markdown]\n# # Two\n\n# %% [markdown]\n# ## A\n# Text.\n# ## B\n# ## Take-aways\n"
        '\n# %% [markdown] tags=["next"]\n# Next.\n'
    )
    studio_paths.write_lines(course, two)
    cells = notebook_files.read_source(two.source).cells
    _, ways, sections, leads_on = texts(
        signposts.put_up(new_notebook(cells=cells), course, two).cells
    )
    assert ways.splitlines() == [
        '<span class="cu-way" data-ways="To three">On the path to three: [B](#B).</span>',
        '<span class="cu-way" data-ways="Short">On the path *Short*: [A](#A).</span>',
    ]
    assert leads_on.splitlines()[1] == (
        '<span class="cu-way" data-ways="To three|Short">'
        "On the path to three and *Short*, [Three](03_three.ipynb) comes next.</span>"
    )
    one, other = sections.split("## B")
    assert 'data-ways="To three" hidden>\n\nNot on your path to three. Go on with [B](#B).\n' in one
    assert (
        'data-ways="Short"' in other
        and "Not on your path, *Short*. Go on with the [take-aways]" in other
    )
    without = [
        cell for cell in notebook_files.read_source(two.source).cells if "## A" in cell.source
    ]
    without[0].source = without[0].source.replace("## Take-aways", "")
    (page,) = texts(signposts.put_up(new_notebook(cells=without), course, two).cells)
    assert "Not on your path, *Short*. Go on with the next page of it." in page


def test_an_exercise_is_a_card_that_lists_what_its_check_tests(lesson):
    found = texts(lesson)
    card = found[found.index("### [Exercise 1]{.cu-label}[ · ]{.cu-dot}Weights") + 1 :]
    card = card[: card.index("After it.")]
    assert "build · 5 minutes" in card[0] and card[1:3] == [
        "Write it.",
        "def average_weights(): ...",
    ]
    for asked in cu.checks.average_weights.properties:
        assert to_html(asked.sentence) in card[3] and to_html(asked.hints[0]) in card[4]
    assert card[5:] == ["def s():\n    return 2", "</details></div>", "</div>"]


def test_calls_of_the_course_have_no_code_a_guard_is_its_claim_and_folds_say_what_they_show(lesson):
    text = "\n".join(cell.source for cell in lesson if "remove-input" not in tags(cell))
    assert not re.search(r"cu\.(recall|checks|predict|guard)|A reason", text)
    assert "<span>✓</span> One is less.</summary><pre>1 &lt; 2</pre>" in text
    (asked,) = (cell for cell in lesson if "Which?" in str(cell.get("outputs")))
    assert tags(asked) == ["remove-input"]
    for tag, word in (("hide-input", "code"), ("hide-output", "result")):
        (fold,) = (cell for cell in lesson if tag in tags(cell))
        assert fold.metadata.mystnb["code_prompt_show"] == f"Show the {word}"


def test_a_section_without_its_stored_run_is_not_printed():
    run = new_output("execute_result", data={MADE_BY: {"run": "train", "stored": False}})
    section = [new_markdown_cell("## At full size"), code("run", run, tags=("gpu",))]
    cells = [new_markdown_cell("# One"), code("1"), *section, new_markdown_cell("## After")]
    assert not {"## At full size", "run"} & set(texts(page(*cells)))
    run.data = {"text/plain": "no run is stored, says a text"}
    assert "run" in texts(page(*cells))


# Links, pictures, tables ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "wanted", "in_repository"),
    [
        ("[two](02_b.ipynb)", None, None),
        ("[two](02_b.ipynb#kv-cache)", "[two](02_b.ipynb#the-kv-cache)", None),
        ("[paper](https://arxiv.org/abs/1706.03762)", None, None),
        ("## <a id='x'></a>[above](#Widths)".replace("'", '"'), "## [above](#widths)", None),
        ("`w[i](x)` and $f[a](b)$ stay", None, None),
        ("[a](../docs/teaching.md#b)", "[a](teaching.md#b)", None),
        ("[code](../course_utils/a.py#L1)", "code", "[code](R/course_utils/a.py#L1)"),
        ("[later](09_c.ipynb)", "later", "[later](R/notebooks/09_c.ipynb)"),
    ],
)
def test_a_link_leads_to_a_page_of_the_book_or_to_the_repository(text, wanted, in_repository):
    own = "notebooks/01_a.ipynb"
    linked = {
        own: BookPage("01_a.ipynb", {"Widths": "widths"}),
        "notebooks/02_b.ipynb": BookPage("02_b.ipynb", {"kv-cache": "the-kv-cache"}),
        "docs/teaching.md": BookPage("teaching.md", {}),
    }
    wanted = wanted or text
    assert transforms.relink(text, own, linked, "") == wanted
    assert transforms.relink(text, own, linked, "R") == (in_repository or wanted)


def test_outputs_lead_to_pages_and_their_pictures_and_tables_fit_the_page():
    link = '<a href="02_b.ipynb#widths">B</a> <a href="https://x.org/02_b.ipynb">far</a>'
    drawn, ax = cu.subplots(alt='A > "B"')
    ax.plot([1, 2])
    photo = image_tag(b"", 'A > "B"', 768, 200)
    names = pd.Index([1, 2], name="h")
    table = pd.DataFrame({"a": [1.5, -2.0], "b": ["one", "two"]}, index=names).to_html()
    shown = [link, drawn._repr_html_(), photo, table]
    _, _, *cells = page(new_markdown_cell("# One"), *(code("x", html(text)) for text in shown))
    found = [cell.outputs[0].data["text/html"] for cell in cells if cell.get("outputs")]
    assert found[0] == link.replace("02_b.ipynb#", "02_b.html#")
    for text, tag in zip(found[1:3], ("svg", "img"), strict=True):
        (image,) = BeautifulSoup(text, "html.parser").select(f".cu-figure > div > {tag}")
        assert image.get("aria-label", image.get("alt")) == 'A > "B"'
        assert image.parent["style"] == "min-width:699px;max-width:768px"
        assert "--cu-ink:" not in text, "the page has the colors"
    flat = BeautifulSoup(found[3], "html.parser")
    assert [head.get_text() for head in flat.select("thead th")] == ["h", "a", "b"]
    assert [entry.get_text() for entry in flat.select("td.words")] == ["one", "two"]


RATE = pd.Index([0.003, 0.01], name="rate")
SEED = pd.Index([0, 1], name="seed")
PAIRS = pd.MultiIndex.from_product([["a", "b"], [1, 2]], names=["kind", None])


def grid(index, columns) -> pd.DataFrame:
    return pd.DataFrame([[5] * len(columns)] * len(index), index=index, columns=columns)


@pytest.mark.parametrize(
    ("table", "head"),
    [
        (grid(RATE, [0, 1]), [["rate", "0", "1"]]),
        (grid(RATE, SEED), [["rate", "seed"], ["0", "1"]]),
        (grid([3, 4], SEED), [["", "seed"], ["0", "1"]]),
        (grid(PAIRS, SEED), [["kind", "", "seed"], ["0", "1"]]),
        (grid(PAIRS, ["x", "y"]), [["kind", "", "x", "y"]]),
        (grid(RATE, PAIRS), [["rate", "kind"], ["a", "b"], ["1", "2", "1", "2"]]),
        (grid(RATE, PAIRS.set_names(["kind", "n"])), [["rate", "kind · n"], ["a", "b"], ["1", "2", "1", "2"]]),
    ],
)  # fmt: skip
def test_each_index_is_named_over_its_own_values_and_the_columns_over_theirs(table, head):
    for html in (table.to_html(), table.style.to_html()):
        flat = BeautifulSoup(flat_tables(html), "html.parser")
        rows = flat.select("thead tr")
        assert [[cell.get_text(strip=True) for cell in row("th")] for row in rows] == head
        assert int(rows[0].th.get("rowspan", 1)) == len(head)
        assert len(flat.select("tbody td")) == table.size


def test_no_table_of_a_notebook_loses_the_name_of_an_index():
    tables = 0
    for chapter in COURSE.notebooks:
        for data in html_outputs(nbformat.read(chapter.ipynb, 4).cells):
            pairs = (
                BeautifulSoup(html, "html.parser").select("table.dataframe")
                for html in (data["text/html"], flat_tables(data["text/html"]))
            )
            for raw, flat in zip(*pairs, strict=True):
                levels = len(raw.tbody.tr("th"))
                *above, last = [
                    [th.get_text() for th in row("th")] for row in raw.select("thead tr")
                ]
                is_named = bool(above) and not any(last[levels:])
                head = [th.get_text() for th in flat.thead.tr("th")]
                assert head[:levels] == (last[:levels] if is_named else [""] * levels), (
                    chapter.notebook
                )
                columns = [row[levels - 1] for row in (above if is_named else [*above, last])]
                assert [name for name in columns if name] in ([], head[levels:]), chapter.notebook
                tables += is_named
    assert tables > 30


def test_an_image_output_keeps_its_alt_text_in_one_line():
    *_, cell = page(new_markdown_cell("# One"), code("1"), code("2", picture('"the"\n sees <it>')))
    assert cell.metadata["mystnb"]["image"]["alt"] == '"the" sees <it>'


@pytest.mark.parametrize("alts", [[" "], ["One", "Two"]])
def test_a_picture_without_alt_text_and_two_in_a_cell_are_refused(alts):
    with pytest.raises(StudioError, match=r"01_queries.*: cell 1 .*cu\.subplots\(alt="):
        page(new_markdown_cell("# One"), code("fig", *map(picture, alts)))


@pytest.mark.slow
def test_an_explorer_gets_its_page_at_the_values_it_was_left_at(tmp_path, monkeypatch):
    shown = cu.explore.first_slider()
    values = {key: control.values[-1] for key, control in shown.controls.items()}
    shown.set(**values)
    data = shown._repr_mimebundle_()[0]
    slide, output = (new_output("execute_result", data=dict(data)) for _ in range(2))
    widgets.show_widgets([code("cu.explore.first_slider()", slide)])
    assert "<img" in slide.data["text/html"], "without a folder for its frames it stays a picture"
    assert "cu-live-note" in data["text/html"], "of a notebook, not of a slide"
    assert "cu-live-note" not in slide.data["text/html"]
    widgets.show_widgets([code("cu.explore.first_slider()", output)], tmp_path)
    assert 'data-explorer="first_slider"' in output.data["text/html"]
    assert output.data.keys() == {"text/html"}

    monkeypatch.setattr(Explorer, "page", lambda explorer: pytest.fail("made twice"))
    again = widgets.explorer_html("first_slider", values, tmp_path)
    assert again == output.data["text/html"]
    monkeypatch.setattr(widgets, "STUDIO", ROOT)  # as if all code were other
    with pytest.raises(pytest.fail.Exception, match="made twice"):
        widgets.explorer_html("first_slider", values, tmp_path)


# The whole --------------------------------------------------------------------------------------


def test_a_notebook_that_was_never_executed_is_refused(small):
    course = small()
    execute(course)
    notebook = nbformat.read(course.chapters[0].ipynb, as_version=4)
    notebook.cells[1].execution_count = None
    nbformat.write(notebook, course.chapters[0].ipynb)
    with pytest.raises(StudioError, match="01_one: cell 1 was never executed; make notebooks CH"):
        builder.build(course, course.root / "_build")


@pytest.mark.slow
def test_a_warning_is_fatal_and_only_what_changed_is_rendered_again(small, capsys):
    course = small('repository = "https://github.com/someone/course"')
    out, work = course.root / "_build", "@misc{b, author = {Kaiser, {\\L}ukasz}, title = {B}}"
    (course.root / "notebooks" / "references.bib").write_text(work)
    execute(course, SOURCE.replace("By", "By {ref}`nobody` and"))
    with pytest.raises(StudioError, match="nobody") as warned:
        builder.build(course, out)
    assert "reading" not in str(warned.value), "the warning is not lost among lines of progress"
    assert not (out / ".doctrees").exists(), "Sphinx warns once about what it keeps"
    execute(course, SOURCE, new_output("stream", text="forty-two"))
    page = builder.build(course, out).with_name("01_one.html")
    said = capsys.readouterr().out
    for step in ("preparing", "reading", "writing"):
        assert re.search(rf"^{step} 01_one, \d+%$", said, re.MULTILINE), "a line a page"
    text, other = page.read_text(), page.with_name("bibliography.html")
    assert "forty-two" in text, "the book shows what the notebook holds"
    assert "https://mybinder.org/v2/gh/someone/course/main?urlpath=lab/tree/notebooks/01" in text
    assert "Kaiser" in other.read_text()
    rendered = other.stat().st_mtime_ns
    execute(course, SOURCE.replace("By", "Written by"))
    builder.build(course, out)
    assert "Written by" in page.read_text()
    assert other.stat().st_mtime_ns == rendered, "a page that did not change is not rendered again"

    shutil.copy(page, page.with_name("09_old.html"))
    page.unlink()
    assert check.check(out / "html", course) == [
        "01_one.html is missing: make book",
        "09_old.html is no page of book.toml: make book",
    ]


@pytest.mark.slow
def test_a_book_with_an_address_has_heads_a_sitemap_and_a_page_for_what_is_missing(small):
    assert "sitemap" not in pages.configuration(small())
    course = small('url = "https://a.org/course"')
    execute(course, f"{SOURCE}# %%\ncu.predict('Which?', 'told-to-nobody')\n", html("<p>shown</p>"))
    for _ in range(2):  # the second time nothing has changed, and the sitemap is whole all the same
        folder = builder.build(course, course.root / "_build").parent
        found = re.findall(r"<loc>(.*?)</loc>", (folder / "sitemap.xml").read_text())
        names = ("01_one", "bibliography", "index")
        assert sorted(found) == [f"https://a.org/course/{name}.html" for name in names]
    page = BeautifulSoup((folder / "01_one.html").read_text(), "html.parser")
    heads = {tag.get("property") or tag.get("name"): tag["content"] for tag in page("meta")[1:]}
    assert heads["og:title"] == "1. One" and heads["og:site_name"] == "Small & fine"
    assert heads["description"].startswith("What is “it”?")
    address = "https://a.org/course/01_one.html"
    assert heads["og:url"] == page.find("link", rel="canonical")["href"] == address
    absent = BeautifulSoup((folder / "404.html").read_text(), "html.parser")
    assert "No such page" in [heading.text for heading in absent("h1")]
    loaded = [tag["href"] for tag in absent("link") if tag.get("rel") == ["stylesheet"]]
    assert loaded and all(sheet.startswith("/course/_static/") for sheet in loaded)
    assert (folder / ".nojekyll").is_file()
    assert "<p>shown</p>" in str(page)
    written = [file for file in folder.rglob("*") if file.is_file()]
    assert [file for file in written if b"told-to-nobody" in file.read_bytes()] == [], (
        "a call's code"
    )


# What is looked for in a built book -------------------------------------------------------------


@pytest.mark.parametrize(
    ("page", "problem"),
    [
        ('<img src="a.png" alt="A heatmap"><a href="https://example.org">x</a>', None),
        ("<article><h1>One</h1><h1>Two</h1></article>", "it has 2 titles"),
        ("<article><p>None</p></article>", "it has 0 titles"),
        ('<p class="cu-figure"><svg><text>a</text></svg></p>', "a picture has no alt text: a"),
        ('<img src="a.png" alt=" ">', "a picture has no alt text: a.png"),
        ('<script src="https://b.c/x.js"></script>', "asks another host: https://b.c/x.js"),
        ('<link rel="stylesheet" href="//b.c/x.css">', "asks another host: //b.c/x.css"),
        ('<link rel="canonical" href="https://a.example/x.html">', None),
        ("<details><summary><i></i></summary>More</details>", "a fold has no name: More"),
        ('<summary aria-label="More"><i></i></summary><summary>Code</summary>', None),
        ("<pre>Traceback (most recent call last)</pre>", "shows a traceback"),
        (f'<div class="cu-explorer">{"x" * MAX_BYTES}</div>', "an explorer has 1150 KB; at most 1150 fit a page"),
    ],
)  # fmt: skip
def test_a_page_is_refused_for_what_a_reader_would_miss(page, problem):
    found = list(check.page_problems(BeautifulSoup(page, "html.parser")))
    assert found == ([problem] if problem else [])


@pytest.mark.parametrize(
    ("link", "problem"),
    [
        ('<a href="b.html#two">', ""),
        ('<a class="x" href="#one">', ""),
        ('<a href="b.html?q=1#live=gpt.0&amp;words=two">', ""),
        ('<a href="https://a.org/none">', ""),
        ("<script>link = '<a href=\"none.html\">'</script>", ""),
        ('<a href="folder/">', ""),
        ('<img src="data:image/png;base64,AA">', ""),
        ('<a href="none.html">', "none.html: no such file"),
        ('<img src="none.png">', "none.png: no such file"),
        ('<a href="b.html#one">', "b.html#one: no such place in it"),
        ("<a\n href='#two'>", "#two: no such place in it"),
    ],
)
def test_a_link_or_a_picture_that_leads_nowhere_is_found(tmp_path, link, problem):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "index.html").touch()
    texts = {"b": '<h2 id="two">Two</h2>', "a": f'<h1 id="one">One</h1>{link}'}
    for name, text in texts.items():
        (tmp_path / f"{name}.html").write_text(text)
    soups = {name: BeautifulSoup(text, "html.parser") for name, text in texts.items()}
    assert check.dead_links(tmp_path, soups) == ([f"a.html: {problem}"] if problem else [])
