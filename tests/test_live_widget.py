"""The live translator: what is written first, and what a page makes of it, from a file, by keys, on a phone."""

import re

import pytest
import torch
from browsing import part, write_page
from nbformat.v4 import new_code_cell, new_notebook, new_output
from playwright.sync_api import Page, expect
from stored_models import network

import course_utils as cu
from course_utils.data.text import BOS
from course_utils.studio import manifest
from course_utils.studio.book import live as book
from course_utils.studio.book.check import check
from course_utils.studio.first_states import first_state, widget_of

pytestmark = pytest.mark.slow

SENTENCE = "i'm home ."


# In Python --------------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again():
    made = cu.live.translator("he's calm .")
    assert repr(made) == """live.translator("he's calm .")"""
    data, _ = made._repr_mimebundle_()
    assert data["text/plain"] == repr(made)
    assert "application/vnd.jupyter.widget-view+json" in data


@pytest.mark.parametrize("sentence", ["", "   ", "colorless green ideas ."])
def test_a_first_sentence_with_unknown_words_is_refused(sentence):
    with pytest.raises(ValueError, match="is empty|does not know: colorless, ideas"):
        cu.live.translator(sentence)


def test_print_and_pages_without_scripts_have_the_first_translation_and_its_map():
    html = first_state(cu.live.translator(SENTENCE))
    assert "je suis chez moi ." in html
    assert html.count("<svg") == 2 + 2 * 4 + 1, (
        "lines across and beside, and a small picture for each head"
    )
    assert html.count('<th scope="row"') == 2 * 6  # reads and says, for five words and <eos>


def shown(text: str):
    return new_output("execute_result", data={"text/plain": text, "text/html": "<form></form>"})


def test_the_book_makes_the_widget_anew_and_loads_its_scripts():
    output = shown(repr(cu.live.translator(SENTENCE)))
    given = new_notebook(cells=[new_code_cell("cu.live.translator()", outputs=[output])])
    made = book.with_widgets(given).cells[0].outputs[0]
    assert list(made.data) == ["text/html"]
    assert given.cells[0].outputs[0].data["text/html"] == "<form></form>"
    loaded = re.findall(r"live/[\w/]+\.js", made.data["text/html"])
    assert loaded == ["live/widgets/translator.js", "live/translator_fr.js"]
    assert set(loaded) <= book.scripts().keys()


@pytest.mark.parametrize(
    "text", ["3", "alive.x()", "live.translator", "liver", "live.load_model('vit')"]
)
def test_other_outputs_are_no_widgets(text):
    assert widget_of(shown(text)) is None


def test_a_book_without_a_script_that_a_page_needs_is_not_whole(tmp_path):
    course = manifest.load(files=False)
    form = book.page(cu.live.translator(SENTENCE))
    (tmp_path / "index.html").write_text(form, encoding="utf-8")
    problems = "\n".join(check(tmp_path, course))
    assert (
        "index.html: live/translator_fr.js is missing, a live model needs it: make book" in problems
    )
    for name, text in book.scripts().items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert "a live model needs it" not in "\n".join(check(tmp_path, course))


# In a page --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with two widgets, opened from a file, as a book without a server."""
    made = map(cu.live.translator, (SENTENCE, "he's calm ."))
    return write_page(tmp_path_factory.mktemp("book"), *made)


def write(page: Page, sentence: str) -> None:
    page.get_by_role("textbox", name="English").first.fill(sentence)


def test_a_sentence_is_translated_as_it_is_written(page: Page):
    for written in ("Please eat a pizza.", "please eat a pizza"):
        write(page, written)
        expect(part(page, "said")).to_have_text("mange une pizza , s'il te plaît .")
        columns = part(page, "table").locator("thead th").all_text_contents()
        assert columns == ["reads", "says", "please", "eat", "a", "pizza", ".", "<eos>"]
    second = page.locator("form >> nth=1 >> [data-part=said]")
    expect(second).to_have_text("il est calme .")
    expect(page.locator("form").first.get_by_role("status").filter(has_text="mange")).to_have_count(
        1
    )
    page.keyboard.press("Enter")
    assert page.url.endswith("page.html")


def test_unknown_words_are_named_and_known_ones_like_them_offered(page: Page):
    write(page, "The old wuman <b>is</b> sleeping.")
    unknown = part(page, "unknown")
    expect(unknown).to_contain_text("It does not know wuman. Words it knows: woman")
    expect(unknown).to_contain_text("<b>is</b>")
    unknown.get_by_role("button", name="woman", exact=True).click()
    expect(page.get_by_role("textbox").first).to_have_value("the old woman <b>is</b> sleeping .")
    expect(page.get_by_role("textbox").first).to_be_focused()
    write(page, "I am home.")
    unknown.get_by_role("button", name="i'm", exact=True).click()
    expect(part(page, "said")).to_have_text("je suis chez moi .")
    write(page, "xyzzy qwrtp")
    expect(part(page, "inside")).to_be_hidden()
    write(page, "")
    expect(unknown).to_have_text("Write an English sentence.")
    write(page, SENTENCE)
    expect(part(page, "inside")).to_be_visible()
    expect(unknown).to_be_empty()


def test_examples_are_two_right_and_one_wrong_that_is_called_so(page: Page):
    form = page.locator("form").first
    for index, wrong in enumerate([False, False, True]):
        form.locator(f"[data-example='{index}']").click()
        example = cu.live.bundle("translator_fr")["examples"][index]
        expect(part(page, "said")).to_have_text(example["said"])
        expect(part(page, "right")).to_have_text(
            f"Wrong. Right is: {example['right']}" if wrong else ""
        )


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("cross", "decoder.1.cross_attention"),
        ("decoder", "decoder.1.self_attention"),
        ("encoder", "encoder.1.attention"),
    ],
)
def test_the_large_map_is_that_of_pytorch(page: Page, kind, name):
    write(page, "please eat a pizza .")
    form = page.locator("form").first
    form.get_by_role("checkbox", name="Look closer").check()
    form.locator(f"input[value={kind}]").check()
    form.get_by_role("button", name="layer 1, head 3").click()
    rows = part(page, "table").locator("tbody tr").all()
    found = [[int(text) for text in row.locator("td").all_text_contents()] for row in rows]

    packed = cu.live.bundle("translator_fr")
    model, answer = network("translator_fr"), packed["answers"][1]
    source = torch.tensor([answer["source"]])
    words = [packed["vocabularies"]["source"][token] for token in answer["source"]]
    assert words == ["please", "eat", "a", "pizza", ".", "<eos>"]
    with cu.record_attention(model) as maps:
        model(source, torch.tensor([source.shape[1]]), torch.tensor([[BOS, *answer["said"]]]))
    torch.testing.assert_close(torch.tensor(found).float(), 100 * maps[name][0, 3], atol=0.51, rtol=0)  # fmt: skip


def test_a_screen_reader_finds_names_and_roles(page: Page):
    form = page.locator("form").first
    expect(form).to_have_attribute("aria-label", "Live translator")
    for name in ("Heads", "English: press a word to cross it out", "French: choose a word"):
        expect(form.get_by_role("group", name=name)).to_be_visible()
    form.get_by_role("checkbox", name="Look closer").check()
    assert form.locator("svg:not([aria-hidden=true])").count() == 0
    table = form.get_by_role("grid")
    assert table.locator("th:not([scope])").count() == 0
    assert {node.get_attribute("lang") for node in table.locator("tbody th").all()} == {"fr"}
