"""Explorers, quizzes and training in a real JupyterLab: controls answer the keyboard, bar and curve live."""

import shutil

import nbformat
import pytest
from browsing import (
    FLAGS,
    WAIT,
    jupyter,
    jupyterlab,
    one_playwright,
    open_notebook,
    run_all,
    write_notebook,
)
from nbformat.v4 import new_markdown_cell, new_notebook
from playwright.sync_api import expect

from course_utils.files import ROOT
from course_utils.studio import lab as starting
from course_utils.studio import manifest

COURSE = "import course_utils as cu\ncu.explore.kernel_width()"
MADE = """
from course_utils.kit.controls import Choice, Slider, Toggle
from course_utils.kit.explorer import Explorer

class Number:
    def __init__(self):
        self.picture, ax = cu.subplots(alt="A number", width=4, height=1)
        self.text = ax.text(0.1, 0.5, "")

    def draw(self, number, kind, on):
        if number == 8:
            raise ZeroDivisionError("eight is <too much>")
        self.text.set_text(f"{number} {kind} {on}")
        return f"number {number}, kind {kind}, on {on}"

controls = {
    "number": Slider(range(9), 1, label="A description that is longer than Lab's labels are wide"),
    "kind": Choice(list("abcdefg"), "b", label="Kind"),
    "on": Toggle(False, label="Switched on"),
}
made = Explorer("made", Number, controls)
made
"""
MOVED = "made.set(kind='g')"
QUIZ = "cu.quiz('start_here')"
PREDICT = """
wrong = {"less": "Is it squared?", "more": "Is it halved?"}
cu.predict("What is 2 squared?", (0, 10), answer=4, wrong=wrong, why="It is 2 · 2.")
"""
RESULT = "print('the square is four')"
CHECKED = (
    "import os\nos.environ['COURSE_STRICT'] = '0'  # as a reader runs it\nimport course_utils as cu",
    "def loo_residuals(weights, values):\n    return values",
    "cu.checks.loo_residuals(loo_residuals)",
)
OVER = ("import course_utils as cu", "cu.checks.loo_residuals.start_over()")
LIVE = "cu.live.translator()"
OFFLINE = "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1"
TRAINING = """
import course_utils as cu
from course_utils.data.text import Vocabulary
from course_utils.data.translation import PairLoader
from course_utils.data.translation import load_sentences
pairs = [pair for pair in load_sentences("fr")][:64]
source, target = Vocabulary(p.source for p in pairs), Vocabulary(p.target for p in pairs)
model = cu.Transformer(len(source), len(target), embed_dim=16, num_heads=2, ffn_dim=16, num_layers=1)
trainer = cu.Trainer(cu.translation_loss(), epochs=10_000)
history = trainer.fit(model, PairLoader(pairs, source, target, batch_size=16))
"""


@pytest.fixture(scope="module")
def lab(chromium, tmp_path_factory):
    """Opens a notebook of Lab and runs all its cells; shared, so that Lab starts once."""
    folder = tmp_path_factory.mktemp("lab")
    write_notebook(folder / "explorers.ipynb", COURSE, MADE, MOVED, QUIZ, LIVE, PREDICT, RESULT)
    write_notebook(folder / "training.ipynb", TRAINING, "history.stopped, len(history) > 2")
    write_notebook(folder / "over.ipynb", *OVER)
    write_notebook(folder / "checked.ipynb", *CHECKED)
    with jupyterlab(folder) as address, one_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, OFFLINE])
        yield lambda name: open_notebook(browser, address, name)
        browser.close()


@pytest.fixture(scope="module")
def notebook(lab):
    """The page of explorers."""
    page = lab("explorers.ipynb")
    page.locator(".cu-explorer input[type=range]").nth(1).wait_for(timeout=WAIT)
    yield page
    assert page.locator(".jp-RenderedText[data-mime-type*=stderr]").count() == 0


@pytest.fixture
def made(notebook):
    """The second explorer, at its start values."""
    return notebook.locator(".cu-explorer").nth(1)


def says(explorer, text: str) -> None:
    """Wait until the caption, and with it the picture's alt text, is `text`."""
    explorer.locator(".cu-caption", has_text=text).wait_for(timeout=WAIT)
    assert text in explorer.locator("img").get_attribute("alt")


@pytest.mark.smoke
def test_a_key_press_on_the_slider_moves_the_picture(notebook):
    explorer = notebook.locator(".cu-explorer").first
    slider = explorer.get_by_role("slider", name="Width σ")
    image, caption = explorer.locator("img"), explorer.locator(".cu-caption")
    slider.focus()  # Lab moves it into sight
    before, said, box = image.get_attribute("src"), caption.text_content(), image.bounding_box()
    value = slider.get_attribute("aria-valuetext")
    notebook.keyboard.press("ArrowRight")
    explorer.locator(f"img:not([src='{before}'])").wait_for(timeout=WAIT)
    notebook.wait_for_function(
        "([node, old]) => node.textContent !== old",
        arg=[caption.element_handle(), said],
        timeout=WAIT,
    )
    assert slider.get_attribute("aria-valuetext") != value
    assert image.bounding_box() == box
    assert explorer.get_by_role("alert").count() == 0


def test_a_list_and_a_box_move_the_picture_by_keyboard(notebook, made):
    made.get_by_role("combobox", name="Kind").focus()
    notebook.keyboard.press("c")
    says(made, "kind c, on False")
    made.get_by_role("checkbox", name="Switched on").focus()
    notebook.keyboard.press("Space")
    says(made, "kind c, on True")


def test_in_a_burst_of_key_presses_the_newest_value_wins(notebook, made):
    made.get_by_role("slider").focus()
    notebook.keyboard.press("Home")
    says(made, "number 0")
    made.evaluate("""explorer => {
        explorer.seen = [];
        const caption = () => explorer.querySelector(".cu-caption").textContent;
        new MutationObserver(() => explorer.seen.push(caption())).observe(
            explorer, { childList: true, subtree: true });
    }""")
    for _ in range(6):
        notebook.keyboard.press("ArrowRight")
    says(made, "number 6")
    notebook.keyboard.press("ArrowRight")  # by its picture everything before it has come
    says(made, "number 7")
    seen = made.evaluate("explorer => explorer.seen.map(text => Number(text.match(/\\d+/)[0]))")
    assert seen == sorted(seen), "an older picture came after a newer one"


def test_an_exception_is_shown_in_place_beside_the_last_good_picture(notebook, made):
    image = made.locator("img")
    made.get_by_role("slider").focus()
    notebook.keyboard.press("Home")
    says(made, "number 0")
    before = image.get_attribute("src")
    notebook.keyboard.press("End")
    made.get_by_role("alert").get_by_text("ZeroDivisionError: eight is <too much>").wait_for(
        timeout=WAIT
    )
    assert image.get_attribute("src") == before
    notebook.keyboard.press("Home")
    notebook.keyboard.press("ArrowRight")
    says(made, "number 1")
    assert made.get_by_role("alert").count() == 0


@pytest.mark.smoke
def test_a_quiz_is_answered_by_keyboard(notebook):
    question = notebook.locator(".course-quiz[data-ready] fieldset").first
    question.get_by_role("radio").first.focus()
    notebook.keyboard.press("Space")
    expect(question.locator(".reason")).not_to_be_empty()
    before = question.locator(".reason").inner_text()
    notebook.keyboard.press("ArrowDown")
    expect(question.locator(".reason")).not_to_have_text(before)


def test_a_prediction_is_made_by_keyboard_and_unveils_its_result(notebook):
    result = notebook.get_by_text("the square is four", exact=True)
    field = notebook.get_by_label("A number from 0 to 10")
    field.focus()
    expect(result).to_be_hidden()
    notebook.keyboard.type("1")
    notebook.keyboard.press("Enter")
    expect(notebook.locator(".cu-predict .said")).to_contain_text("Is it squared?")
    expect(result).to_be_visible()


@pytest.mark.smoke
def test_a_live_model_answers_as_one_writes_and_keys_are_the_readers(notebook):
    form = notebook.locator("form.cu-live[data-ready]")
    form.wait_for(timeout=WAIT)
    cells = notebook.locator(".jp-Notebook .jp-Cell").count()
    box = form.get_by_role("textbox", name="English")
    says = form.locator("[data-part=said]")
    expect(says).to_have_text("elle a une voiture rouge .")
    box.fill("")
    box.press_sequentially("He's calm.")  # a letter that is a command of Lab's would move cells
    expect(says).to_have_text("il est calme .")
    form.get_by_role("button", name="layer 0, head 1").press("d")
    form.get_by_role("button", name="layer 0, head 1").press("d")
    form.get_by_role("button", name="layer 0, head 1").press("Enter")
    expect(form.locator("caption")).to_contain_text("layer 0, head 1")
    assert notebook.locator(".jp-Notebook .jp-Cell").count() == cells


def test_training_shows_a_bar_and_a_curve_and_the_interrupt_button_ends_it(lab):
    page = lab("training.ipynb")
    output = page.locator(".jp-OutputArea").first
    curve = output.locator("img.widget-image")
    curve.wait_for(timeout=WAIT)
    first = curve.get_attribute("src")
    output.locator(f"img.widget-image:not([src='{first}'])").wait_for(timeout=WAIT)
    assert output.get_by_text("s left").count() == 1
    page.get_by_role("menuitem", name="Kernel", exact=True).click()
    page.get_by_role("menuitem", name="Interrupt Kernel").first.click()
    output.locator(".widget-label", has_text="interrupted").wait_for(timeout=WAIT)
    page.get_by_text("('interrupted', True)").wait_for(timeout=WAIT)
    assert page.locator(".jp-RenderedText[data-mime-type*=error]").count() == 0


def test_starting_over_makes_the_cell_the_stub(lab):
    page = lab("over.ipynb")
    cell = page.locator(".jp-CodeCell .cm-content").nth(1)
    expect(cell).to_contain_text("def loo_residuals(weights, values):")
    expect(cell).not_to_contain_text("start_over")


@pytest.mark.smoke
def test_a_button_of_a_report_makes_the_answer_the_stub_and_undo_brings_it_back(lab):
    page = lab("checked.ipynb")
    report = page.locator(".cu-report")
    expect(report).to_contain_text("tests pass.")
    report.get_by_role("button", name="Start over").press("Enter")
    cell = page.locator(".jp-CodeCell .cm-content").nth(1)
    expect(cell).not_to_contain_text("return values")
    expect(cell).to_contain_text("def loo_residuals(weights, values):")
    expect(report).to_contain_text("cu.checks.loo_residuals.answers()")
    cell.press("ControlOrMeta+z")
    expect(cell).to_contain_text("return values")


# The course, as `make lab` opens it ---------------------------------------------------------------


@pytest.fixture(scope="module")
def started(chromium, tmp_path_factory):
    """A fresh clone of a course with one chapter, opened on its start page."""
    folder = tmp_path_factory.mktemp("course")
    first = manifest.load(files=False).chapters[0]
    (folder / "notebooks" / "source").mkdir(parents=True)
    shutil.copy(ROOT / "pyproject.toml", folder)
    for file in (first.ipynb, first.source):
        shutil.copy(file, folder / file.relative_to(ROOT))
    (folder / "book.toml").write_text(
        '[course]\ntitle = "Small"\nauthors = ["A"]\nlicense = "MIT"\nrepository = ""\n'
        f'[[chapter]]\nnotebook = "{first.notebook}"\ntitle = "{first.title}"\n'
    )
    far = [new_markdown_cell(f"## Part {number}\n" + "text\n\n" * 9) for number in range(40)]
    far.append(new_markdown_cell('### <a id="kv-cache"></a>KV cache\n' + "text\n\n" * 40))
    for name, cells in {
        "links.ipynb": [
            new_markdown_cell("[cache](far.ipynb#kv-cache), [part](far.ipynb#Part-20)")
        ],
        "far.ipynb": far,
    }.items():
        notebook = new_notebook(cells=cells)
        notebook.metadata["kernelspec"] = {"name": "python3", "display_name": "x"}
        nbformat.write(notebook, folder / name)
    course = manifest.load(folder / "book.toml", files=False)
    page = starting.prepare(course, folder).relative_to(folder)
    shutil.copytree(folder / starting.WORKSPACES, folder / ".workspaces")
    with jupyter(folder) as address, one_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=[*FLAGS, OFFLINE])
        context = browser.new_context(viewport={"width": 1400, "height": 1000})
        view = context.new_page()
        view.goto(address.format(f"lab/tree/{page.as_posix()}"))
        yield view, first.title, address, folder
        browser.close()


def idle(view):
    """Wait until the notebook in front stands there with its kernel; it."""
    front = view.locator(".jp-NotebookPanel:not(.lm-mod-hidden)")
    front.locator(".jp-Cell").first.wait_for(timeout=WAIT)
    view.locator("#jp-main-statusbar").get_by_text("| Idle").wait_for(timeout=WAIT)
    return front


@pytest.mark.smoke
def test_lab_starts_with_the_chapters_and_its_table_of_contents(started):
    view, title, *_ = started
    view.get_by_role("heading", name="Small").wait_for(timeout=WAIT)
    view.locator(".jp-TableOfContents").get_by_text("Paths through").wait_for(timeout=WAIT)
    assert view.locator(".jp-RenderedMarkdown").get_by_role("link", name=title).count() == 1
    view.locator(".cu-map[data-ready]").get_by_role("link", name=title).wait_for(timeout=WAIT)


UNSAVED = ".lm-TabBar-tab.jp-mod-dirty"


@pytest.fixture(scope="module")
def chapter(started):
    """The panel of the chapter, opened from the start page."""
    view, title, *_ = started
    view.locator(".jp-RenderedMarkdown").get_by_role("link", name=title).first.click()
    panel = idle(view)
    expect(view.locator(UNSAVED)).to_have_count(0)
    return panel


@pytest.mark.smoke
def test_a_chapter_opens_from_there_and_its_quiz_answers_unrun(chapter):
    chapter.page.locator(".jp-TableOfContents").get_by_text("Take-aways").click()
    question = chapter.locator(".course-quiz[data-ready] fieldset").first
    question.wait_for(timeout=WAIT)
    question.get_by_role("radio").first.press("Space")  # a click may miss while Lab still scrolls
    expect(question.locator(".reason")).not_to_be_empty()


def test_a_chapter_that_was_run_and_saved_is_the_file_that_it_was(started, chapter):
    view, *_, folder = started
    first = manifest.load(files=False).chapters[0].ipynb
    file = folder / "notebooks" / first.name
    before = file.stat().st_mtime_ns
    cells = nbformat.read(file, as_version=4).cells
    count = sum(cell.cell_type == "code" for cell in cells)
    run_all(view)
    progress = chapter.locator(".jp-Notebook-ExecutionIndicator")
    expect(progress).to_contain_text(f"Executed {count} cells")  # while it runs: "0/21 cells"
    expect(view.locator(UNSAVED)).to_have_count(1)
    saved = f"/api/contents/notebooks/{first.name}"  # Lab puts its layout, too
    with view.expect_response(
        lambda answer: answer.request.method == "PUT" and saved in answer.url, timeout=WAIT
    ):
        view.keyboard.press("ControlOrMeta+s")
    expect(view.locator(UNSAVED)).to_have_count(0)
    assert file.read_bytes() == first.read_bytes()
    assert file.stat().st_mtime_ns > before


@pytest.mark.parametrize(("link", "heading"), [("cache", "KV cache"), ("part", "Part 20")])
def test_a_link_leads_to_its_place_in_another_notebook(started, link, heading):
    """Lab finds a place in a notebook that is open; one that it opens for the link it shows from its top."""
    view, _, address, _ = started
    page = view.context.new_page()
    page.goto(address.format(f"lab/workspaces/{link}/tree/links.ipynb"))
    idle(page).get_by_role("link", name=link).click()
    place = page.get_by_role("heading", name=heading)
    place.wait_for(timeout=WAIT)
    page.get_by_role("tab", name="links.ipynb").click()
    idle(page).get_by_role("link", name=link).click()
    expect(place).to_be_in_viewport()
    page.close()
