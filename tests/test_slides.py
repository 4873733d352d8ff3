"""A deck of a chapter: what becomes a slide, and that it stands in a browser without any other host."""

import copy

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import expect

from course_utils.kit.exercises import exercises
from course_utils.studio import manifest, notebook_files
from course_utils.studio.book.cells import tags
from course_utils.studio.book.transforms import cut_at_headings
from course_utils.studio.teaching import slides

COURSE = manifest.load(files=False)
PICTURE = '<img alt="A line that rises from one to two" src="data:image/png;base64,aGVsbG8=">'


def cell(source, shown="", *tags):
    outputs = [new_output("display_data", data={"text/html": shown})] if shown else []
    return new_code_cell(source, outputs=outputs, metadata={"tags": list(tags)})


def notebook():
    return new_notebook(
        cells=[
            new_markdown_cell("# Title\n\n**What is asked?**\nThe rest."),
            cell("import torch"),
            new_markdown_cell(
                "## One\n\nThis comes first.\nWhat does the width do?\n\n$$x^2$$\n\nHere is [a picture](01_b.ipynb):"
            ),
            cell("draw()", PICTURE, "hide-input"),
            new_markdown_cell("It rises.\nMore is said.\n\n## Two\n\nText alone."),
            cell("width = 1\nprint(width)"),
            cell("assert True", "", "guard"),
            new_markdown_cell("### Exercise 1 · Mine\n\n*build · 8 minutes*\n\nDo it."),
            cell("def mine(): ...", "", "exercise"),
            cell("def mine_solution(): return 1", "", "solution"),
            new_markdown_cell(
                "## Take-aways\n\n- A point.\n\nNext: more.\n\n## References\n\n- One"
            ),
        ]
    )


def kinds(made):
    """Each cell's first words, by the slide that it is on; notes and what is left out apart."""
    shown, notes = [], []
    for one in made.cells:
        kind, text = one.metadata["slideshow"]["slide_type"], one.source
        if kind == "slide":
            shown.append([text])
        elif kind == "-":
            shown[-1].append(text)
        elif kind == "notes":
            notes.append(text)
    return shown, notes


def test_what_is_seen_becomes_a_slide_and_what_is_said_its_notes():
    made = slides.slides(notebook())
    shown, notes = kinds(made)
    assert shown == [
        ["# Title\n\nWhat is asked?"],
        ["## One\n\nThis comes first.\nWhat does the width do?"],
        ["## One", "draw()"],
        ["## Two\n\nText alone."],
        ["## Two", "width = 1\nprint(width)"],
        ["### Exercise 1 · Mine\n\n\n*build · 8 minutes*\n\nDo it.", "def mine(): ..."],
        ["## Take-aways\n\n- A point."],
        ["## References\n\n- One"],
    ]
    said = "\n".join(notes)
    assert "It rises." in said and "a picture" in said and "01_b" not in said
    (drawn,) = [one for one in made.cells if one.source == "draw()"]
    assert "remove-input" in drawn.metadata["tags"]


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("It is:\n\n$$x$$\n\nwhere x is:\n\n- a\n\nNo more.", "It is:\n\n$$x$$\n\nwhere x is:\n\n- a"),
        ("Two kinds:\n\n| a | b |\n|---|---|\n\nNo more.", "Two kinds:\n\n| a | b |\n|---|---|"),
        ("So we get\n\n$$x .$$\n\nNo more.", "So we get\n\n$$x .$$"),
        ("Like this:\n\n```\na\n\nb\n```\n\nNo more.", "Like this:\n\n```\na\n\nb\n```"),
        ("It has **an end.**\n\nNo more.", "It has **an end.**"),
        ("Is it ([A, 2017](b.html))?\n\nNo more.", "Is it ([A, 2017](b.html))?"),
    ],
)  # fmt: skip
def test_a_slide_shows_what_its_sentence_announces(text, shown):
    made = slides.slides(new_notebook(cells=[new_markdown_cell(f"## One\n\n{text}")]))
    assert made.cells[0].source.removeprefix("## One\n\n") == slides.LINK.sub(r"\1", shown)


def test_what_text_announces_is_on_its_slide_though_it_is_a_cell_and_a_title_waits_for_one():
    long = "\n".join(f"x = {i}" for i in range(40))
    cells = [
        new_markdown_cell("## One\n\nSo it goes:"),
        cell(long),
        new_markdown_cell("## Quiz"),
        cell("draw()", PICTURE),
        new_markdown_cell("### Exercise 1 · Mine\n\n*build · 8 minutes*\n\nDo it."),
        cell("def mine(): ...", "", "exercise"),
        cell("def mine_solution(): return 1", "", "solution"),
        new_markdown_cell("Here is ours."),
        cell("result = 3"),
    ]
    shown, _ = kinds(slides.slides(new_notebook(cells=cells)))
    assert shown[0] == ["## One\n\nSo it goes:", long]
    assert shown[1] == ["## Quiz\n\n", "draw()"]
    assert shown[2][1:] == ["def mine(): ..."] and shown[3] == ["## Quiz", "result = 3"]


@pytest.mark.parametrize("chapter", COURSE.notebooks, ids=lambda chapter: chapter.notebook)
def test_no_slide_of_the_course_ends_before_what_it_announces_or_bears_an_exercises_title(chapter):
    notebook = notebook_files.read_notebook(chapter.ipynb)
    cells = cut_at_headings(notebook.cells)
    tasks = {one.source for task in exercises(cells) for one in cells[task.place : task.end + 1]}
    shown, _ = kinds(slides.slides(notebook))
    assert [slide[-1] for slide in shown if slide[-1].rstrip("*_ \n").endswith((":", ","))] == []
    bare = [slide for slide in shown[1:] if not slide[1:] and "\n" not in slide[0].strip()]
    assert bare == [], "a title alone"
    titled = [slide for slide in shown if slide[0].startswith("### Exercise")]
    assert [one for slide in titled for one in slide[1:] if one not in tasks] == []


def test_where_cells_are_tagged_they_alone_begin_slides():
    tagged = notebook()
    for place in (2, 7):
        tagged.cells[place].metadata["tags"] = ["slide"]
    (first, second), _ = kinds(slides.slides(tagged))
    assert first[0].startswith("## One") and first[1] == "draw()" and len(first) == 4
    assert second[0].startswith("### Exercise 1") and "return 1" not in "".join(second)
    assert notebook_files.normalize(copy.deepcopy(tagged)).cells[2].metadata["tags"] == ["slide"]


def test_a_deck_tells_no_answer_of_a_prediction_and_no_solution():
    chapter = next(one for one in COURSE.chapters if one.slug == "kernel_regression")
    page = slides.deck(chapter, COURSE)
    solutions = [
        one for one in notebook_files.read_notebook(chapter.ipynb).cells if "solution" in tags(one)
    ]
    assert solutions and "_solution" not in page and "cu.predict" not in page
    assert page.count("<fieldset") > 5 and 'class="notes"' in page


@pytest.mark.browser
@pytest.mark.parametrize("name", ["00_start_here", "02_kernel_regression"])
def test_a_deck_asks_no_other_host_and_nothing_leaves_its_slide(tmp_path, browser, name):
    (file,) = slides.write(COURSE, COURSE.chosen([name])[:1], tmp_path)
    page = browser.new_page(viewport={"width": 1280, "height": 720})
    asked, errors = [], []
    page.on("request", lambda one: asked.append(one.url))
    page.on("pageerror", lambda one: errors.append(str(one)))
    page.goto(file.as_uri())
    page.wait_for_function("window.Reveal && Reveal.isReady()")
    count = page.evaluate("Reveal.getTotalSlides()")
    assert count >= 12
    page.evaluate("Reveal.slide(1)")
    expect(page.locator("section.present form.cu-live").first).to_have_attribute(
        "data-ready", "true"
    )
    assert page.evaluate("Reveal.getTotalSlides()") == count
    for place in range(count):
        page.evaluate(f"Reveal.slide({place})")
        body = page.locator("section.present section.present .body")
        expect(body).to_have_attribute("data-fitted", "true")
        beyond = "e => [e.scrollHeight - e.clientHeight, e.scrollWidth - e.clientWidth]"
        assert max(body.evaluate(beyond)) <= 2, place
        assert body.evaluate("e => (e.style.zoom || 1) >= .45")
    seen = "all => all.map(e => [e.alt ?? e.getAttribute('aria-label'), e.naturalWidth ?? e.viewBox.baseVal.width])"
    images = page.locator("img, svg[aria-label]").evaluate_all(seen)
    assert len(images) >= 3 and all(alt and width for alt, width in images)
    assert page.locator("mjx-container").count() > 0
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert not errors
