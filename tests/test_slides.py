"""A deck of a chapter: what becomes a slide, and that it stands in a browser without any other host."""

import copy

import pytest
from nbformat.v4 import new_code_cell, new_markdown_cell, new_notebook, new_output
from playwright.sync_api import expect

from course_utils.files import ROOT
from course_utils.studio import StudioError, manifest, pairs
from course_utils.studio.teaching import beats, forms, slides

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


def test_what_is_seen_becomes_a_slide_and_what_is_said_its_notes():
    made = beats.slides(notebook())
    assert [(one.title, one.kind) for one in made] == [
        *(("Title", "title"), ("One", "formula"), ("One", "picture"), ("Two", "code")),
        *(("Exercise 1 · Mine", "text"), ("Take-aways", "points")),
    ]
    title, formula, picture, code, exercise, points = (one.body for one in made)
    assert "What is asked?" in title
    assert "What does the width do?" in formula and r"\[x^2\]" in formula
    assert "a picture:" in picture and "01_b" not in picture and PICTURE in picture
    assert '<p class="after fragment">It rises.</p>' in picture
    assert "Text alone." in code and "width" in code
    assert "build · 8 minutes" in exercise and "mine" in exercise and "solution" not in exercise
    assert "A point." in points
    assert "This comes first." in made[1].notes[0] and "More is said." in "".join(made[2].notes)


def test_where_cells_are_tagged_they_alone_begin_slides():
    tagged = notebook()
    for place in (2, 7):
        tagged.cells[place].metadata["tags"] = ["slide"]
    first, second = beats.slides(tagged)
    assert first.title == "One" and PICTURE in first.body and "Text alone." in first.body
    assert second.title == "Exercise 1 · Mine" and "return 1" not in second.body
    assert pairs.bare(copy.deepcopy(tagged)).cells[2].metadata["tags"] == ["slide"]


def test_a_question_tells_its_answer_at_a_click_only():
    shown = pairs.read(ROOT / "notebooks" / "02_kernel_regression.ipynb")
    asked = [one.body for one in beats.slides(shown) if one.kind == "question"]
    assert len(asked) == 9
    for body in asked:
        assert body.count('class="mark fragment"') >= 1
        assert body.count("<small") == body.count('<small class="fragment"')
        assert body.count('class="why') == body.count('class="why fragment"')


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
    expect(page.locator("section.present form.cu-live")).to_have_attribute("data-ready", "true")
    assert page.evaluate("Reveal.getTotalSlides()") == count
    for place in range(count):
        page.evaluate(f"Reveal.slide({place})")
        body = page.locator("section.present .body")
        expect(body).to_have_attribute("data-fitted", "true")
        beyond = "e => [e.scrollHeight - e.clientHeight, e.scrollWidth - e.clientWidth]"
        assert max(body.evaluate(beyond)) <= 2, page.locator("section.present h2").inner_text()
        assert body.evaluate("e => (e.style.zoom || 1) >= .55")
        assert page.locator("section.present .slide").evaluate("e => e.scrollHeight") <= 720
    images = page.locator("img").evaluate_all("all => all.map(e => [e.alt, e.naturalWidth])")
    assert len(images) >= 3 and all(alt and width for alt, width in images)
    assert page.locator("mjx-container").count() > 0
    assert not [url for url in asked if not url.startswith(("file:", "data:", "blob:"))]
    assert not errors


def test_a_question_sealed_by_another_release_is_said_with_the_remedy():
    shown = '<form class="cu-predict" data-sealed="AAAA/////w=="><legend>Which?</legend></form>'
    with pytest.raises(StudioError, match="of another release; make the notebook anew"):
        list(forms.questions(shown))
