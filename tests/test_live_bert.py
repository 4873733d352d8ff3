"""The live BERT: gaps and their fillings are PyTorch's; by keys, on a phone, for every reader."""

import json
import re

import pytest
import torch
from browsing import load, part
from playwright.sync_api import Page, expect
from stored_models import network

import course_utils as cu
from course_utils.data.text import BOS, EOS, MASK
from course_utils.kit.live.widget import Live
from course_utils.lessons.bert_and_transfer.tasks import texts
from course_utils.studio.first_states import first_state

pytestmark = pytest.mark.slow

SENTENCE = "she wants to ___ a novel ."


def widget() -> Live:
    return cu.live.bert(SENTENCE)


def encoded(sentence: str) -> list[int]:
    """Ids of a sentence; each ___ is one token that is hidden."""
    first, *others = map(texts().subwords.encode, sentence.split("___"))
    return [BOS, *first, *(i for ids in others for i in (MASK, *ids)), EOS]


# In Python --------------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again():
    made = cu.live.bert(SENTENCE)
    assert repr(made) == "live.bert('she wants to ___ a novel .')"
    html = first_state(made)
    assert html.count("<svg") == 2 * 4 + 1
    assert html.count("data-choice") == 8


def test_a_first_sentence_without_a_gap_is_refused():
    with pytest.raises(ValueError, match="write ___ where a word is missing"):
        cu.live.bert("she wants to read .")


# In a page --------------------------------------------------------------------------------------


def write(page: Page, sentence: str) -> None:
    page.get_by_role("textbox", name="Sentence").fill(sentence)


def words_of(page: Page) -> list[str]:
    return part(page, "text").locator("span").all_inner_texts()


READ = """lines => {
    const model = new live_engine.BERT(live_bundles.bert);
    const found = lines.map(ids => {
        const logits = model.step(ids, model.start()).map(row => [...row]);
        const plain = name => model.maps[`${name}.attention`].map(rows => rows.map(row => [...row]));
        const maps = model.layers("layers").map(plain);
        return [logits, maps];
    });
    return JSON.stringify(found);
}"""


def worst(page: Page) -> float:
    """The largest difference of a logit or a weight from PyTorch's, over sentences with gaps."""
    model = network("bert")
    lines = [encoded(line) for line in (SENTENCE, "___", "is ___ sick or ___ ?")]
    largest = 0.0
    for ids, found in zip(lines, json.loads(page.evaluate(READ, lines)), strict=True):
        with torch.no_grad(), cu.record_attention(model) as maps:
            logits = model(torch.tensor([ids]))[0]
        for mine, right in zip(found, (logits, torch.cat(list(maps.values()))), strict=True):
            largest = max(largest, (torch.tensor(mine) - right).abs().max().item())
    return largest


def test_logits_and_weights_are_pytorchs(page: Page):
    assert worst(page) < 1e-4


@pytest.mark.parametrize(
    ("name", "old", "new"),
    [
        ("others", "causal = false", "causal = true"),
        ("others", "if (!this.config.rotary) return head", "return head"),
        ("others", "value * Math.cos(angle) + other", "value * Math.cos(angle) - other"),
        ("engine", 'this.norm(`${name}_norm`, x)', "x"),
    ],
)  # fmt: skip
def test_a_mistake_is_found(page: Page, name, old, new):
    for each in ("engine", "others"):
        load(page, each, (old, new) if each == name else ("", ""))
    assert not worst(page) < 1e-4


def test_the_bars_are_the_probabilities_of_the_gap(page: Page):
    model, pieces = network("bert"), texts().subwords
    for sentence in ("the cat is ___ the sofa .", "they ___ want to sleep ."):
        write(page, sentence)
        ids = encoded(sentence)
        p = model(torch.tensor([ids]))[0, ids.index(MASK)].softmax(dim=-1)
        shares, best = p.topk(8)
        items = part(page, "next").locator("li").all()
        names = [item.get_by_role("button").inner_text() for item in items]
        assert names == [pieces.tokens[i] for i in best]
        for item, share in zip(items, shares.tolist(), strict=True):
            shown = int(re.findall(r"\d+", item.locator("span").inner_text())[-1])
            assert abs(shown - 100 * share) < 0.51


def test_gaps_are_filled_one_after_the_other_by_keys(page: Page):
    write(page, "the ___ is ___ the sofa .")
    slider = page.get_by_role("slider", name="Token")
    expect(slider).to_have_attribute("aria-valuetext", "3 of 10: ___")
    slider.press("ArrowRight")
    expect(part(page, "next")).to_contain_text("which it reads")
    assert part(page, "next").locator("button:enabled").count() == 0
    slider.press("ArrowRight")
    expect(slider).to_have_attribute("aria-valuetext", "5 of 10: ___")
    choice = part(page, "next").locator("button:enabled").first
    word = choice.inner_text().removesuffix("␣")
    choice.press("Enter")
    line = f"the ___ is {word} the sofa ."
    expect(page.get_by_role("textbox")).to_have_value(line)
    expect(part(page, "status")).to_have_text(f"Filled: {line}")
    expect(slider).to_have_attribute("aria-valuetext", "3 of 10: ___")  # the gap that is left
    part(page, "next").locator("button:enabled").first.press("Enter")
    assert "___" not in page.get_by_role("textbox").input_value()
    expect(part(page, "unread")).to_contain_text("Write ___ where a word is missing.")


def test_examples_are_read(page: Page):
    for index, example in enumerate(cu.live.bundle("bert")["examples"]):
        page.locator(f"[data-example='{index}']").click()
        first = part(page, "next").get_by_role("button").first
        expect(first).to_have_text(example["said"])
        wrong = example["said"] != example["right"]
        told = f"Wrong. Right is: {example['right'].removesuffix('␣')}" if wrong else ""
        expect(part(page, "right")).to_have_text(told)
    first.click()
    expect(part(page, "right")).to_have_text("")
    expect(page.get_by_role("slider", name="Token")).to_be_focused()


def test_an_address_that_cannot_be_shown_is_taken_back_as_a_whole(browser, file):
    page = browser.new_page()
    page.goto(f"{file.as_uri()}#live=bert.0&sentence=____&place=99&map=9.9")
    page.locator("form[data-ready]").first.wait_for()
    expect(page.locator("form").first.get_by_role("slider", name="Token")).to_have_value("5")
    page.close()


def test_a_map_colors_the_text_and_is_a_table(page: Page):
    page.get_by_role("button", name="layer 0, head 2").press("Enter")
    expect(part(page, "table").locator("caption")).to_contain_text("layer 0, head 2")
    row = part(page, "table").locator("tr[aria-current] td").all_inner_texts()
    spans = part(page, "text").locator("span").all()
    shares = [float(s.evaluate("s => s.style.getPropertyValue('--w')")) for s in spans]
    assert [round(100 * share) for share in shares] == list(map(int, row))
    spans[1].click()
    expect(part(page, "text").locator("[aria-current]")).to_have_text("she")


def test_words_that_it_never_read_are_named(page: Page):
    write(page, "the wuman ___ <b>here</b>")
    unread = part(page, "unread")
    expect(unread).to_contain_text("It has never read wuman, and reads it in pieces:")
    expect(unread).to_contain_text("<b>here</b>")
    unread.get_by_role("button", name="woman", exact=True).click()
    expect(page.get_by_role("textbox")).to_have_value("the woman ___ <b>here</b>")
    write(page, "")
    assert words_of(page) == ["<bos>", "<eos>"]


# For everyone -----------------------------------------------------------------------------------


def test_a_screen_reader_finds_names_and_roles(page: Page):
    form = page.locator("form")
    expect(form).to_have_attribute("aria-label", "Live BERT")
    expect(form.get_by_role("group", name="Maps by layer and head")).to_be_visible()
    expect(form.get_by_role("slider", name="Token")).to_be_visible()
    expect(part(page, "status")).to_have_attribute("aria-live", "polite")
    assert form.locator("svg:not([aria-hidden=true])").count() == 0
