"""The live GPT: its subwords, draws and logits are Python's; it writes and is restored, by keys, on a phone."""

import json
import random
import re

import pytest
import torch
from browsing import html_page, live_page, load, part
from playwright.sync_api import Page, expect
from stored_models import network

import course_utils as cu
from course_utils.data.prose import Subwords, load_english
from course_utils.data.text import EOS
from course_utils.decoding import next_token_probs, sample
from course_utils.interventions import intervene
from course_utils.kit.live.widget import Live
from course_utils.lessons.gpt.training import evaluate
from course_utils.studio.first_states import first_state

pytestmark = pytest.mark.slow

PROMPT, TEMPERATURE, SEED = "she wants to", 0.7, 1
LETTERS = "abcdehilmnorstuwzéÉßσΣç'’.,!?␣ \t\xa0-3ab the she"
SUBWORDS = ("parts", "engine", "subwords")


def widget() -> Live:
    return cu.live.gpt(PROMPT, TEMPERATURE, SEED)


# In Python --------------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again():
    made = cu.live.gpt(PROMPT, TEMPERATURE, SEED)
    assert repr(made) == "live.gpt('she wants to', 0.7, 1)"
    html = first_state(made)
    assert html.count("<svg") == 1 + 2 * 4 + 1, (
        "arcs, and a small picture for each head and their mean"
    )
    assert "Written: she wants to visit the museum ." in html


@pytest.mark.parametrize(("prompt", "temperature"), [("a", -0.1), ("a", 2.1), ("word " * 40, 1.0)])
def test_what_cannot_be_begun_is_refused(prompt, temperature):
    with pytest.raises(ValueError, match="temperature=|prompt="):
        cu.live.gpt(prompt, temperature)


@pytest.fixture(scope="module")
def learned():
    """The subwords as the chapter learns them, and the sentences that it holds out."""
    sentences = load_english()
    random.Random(0).shuffle(sentences)
    return Subwords(sentences[1000:], size=512), sentences


@pytest.fixture(scope="module")
def texts(learned) -> list[str]:
    draw = random.Random(0)
    letters = ["".join(draw.choices(LETTERS, k=draw.randint(0, 20))) for _ in range(1000)]
    words = sorted({word for line in learned[1] for word in line.split()})
    return letters + [" ".join(draw.choices(words, k=draw.randint(1, 8))) for _ in range(1500)]


def test_the_stored_subwords_are_those_of_the_chapter(learned):
    subwords, sentences = learned
    packed = cu.live.bundle("gpt")
    assert tuple(packed["vocabularies"]["tokens"]) == tuple(subwords.tokens)
    assert packed["vocabularies"]["merges"] == [" ".join(merge) for merge in subwords.merges]
    assert packed["read"] == len(sentences) - 1000
    assert packed["vocabularies"]["words"] == sorted(set(" ".join(sentences[1000:]).split()))


def test_the_loss_that_is_said_is_that_of_the_rounded_weights(learned):
    subwords, sentences = learned
    ids = [i for text in sentences[:1000] for i in [*subwords.encode(text), EOS]]
    loss = evaluate(network("gpt"), torch.tensor(ids), 32, read=16)
    assert abs(loss - cu.live.bundle("gpt")["loss"]) < 0.02


def test_an_output_without_widgets_keeps_any_beginning_as_text(browser):
    prompt = "</script><!--<script> <b>she"
    with html_page(browser, cu.live.gpt(prompt).alone()) as page:
        expect(page.get_by_role("textbox", name="Beginning")).to_have_value(prompt)
        assert page.locator("b").count() == 0


# In a page --------------------------------------------------------------------------------------


@pytest.fixture
def page(browser, file):
    """A page for readers who do not want movement: a text is written at once."""
    with live_page(browser, file, reduced_motion="reduce") as page:
        yield page


def begin(page: Page, prompt: str) -> None:
    page.get_by_role("textbox", name="Beginning").fill(prompt)


def press(page: Page, name: str) -> None:
    page.get_by_role("button", name=name, exact=True).click()


def ids_of(page: Page) -> list[int]:
    return [int(i) for i in page.locator("[name=written]").input_value().split("|")[0].split()]


ENCODE = """([vocabularies, texts]) => {
    const subwords = new live_subwords.Subwords(vocabularies);
    const ids = texts.map(text => subwords.encode(text));
    return JSON.stringify([ids, ids.map(each => subwords.decode(each))]);
}"""


@pytest.fixture(scope="module")
def encoded(browser, learned, texts):
    """A change of the scripts → whether a page still cuts every text as Python does, and puts it together again."""
    subwords = learned[0]
    vocabularies = cu.live.bundle("gpt")["vocabularies"]
    ids = [subwords.encode(text) for text in texts]
    right = [ids, [subwords.decode(each) for each in ids]]
    page = browser.new_page()

    def same(old: str = "", new: str = "") -> bool:
        for name in SUBWORDS:
            load(page, name, (old, new) if name == "subwords" else ("", ""))
        return json.loads(page.evaluate(ENCODE, [vocabularies, texts])) == right

    return same


def test_the_subwords_of_a_page_are_pythons(encoded):
    assert encoded()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("[...word, END]", "[...word]"),
        ("Math.min(...ranks)", "(ranks.find(rank => rank < Infinity) ?? Infinity)"),
        ("ranks.indexOf(first)", "ranks.lastIndexOf(first)"),
        ("pieces.splice(place, 2,", "pieces.splice(place + 1, 2,"),
        ("?? UNK", "?? 0"),
        ('text.replaceAll(END, " ")', "text"),
        ('letters.replaceAll(END, " ")', "letters"),
    ],
)
def test_a_mistake_in_the_subwords_is_found(encoded, old, new):
    assert not encoded(old, new)


def test_a_greedy_text_is_that_of_the_package(page: Page, learned):
    model, subwords = network("gpt"), learned[0]
    options = {"temperature": 0.0, "banned": Subwords.unwritten, "end": EOS}
    page.get_by_role("slider", name="Temperature").fill("0")
    for prompt in ("we", "the old woman is", "did you"):
        begin(page, prompt)
        press(page, "Write")
        start = torch.tensor([[EOS, *subwords.encode(prompt)]])
        (right,) = sample(model, start, max_new=32 - start.shape[1], **options)
        assert [i for i in ids_of(page) if i != EOS] == right


READ = """ids => {
    const model = new live_engine.GPT(live_bundles.gpt), state = model.start();
    const logits = ids.map(id => [...model.step([id], state)[0]]);
    const last = model.layers("layers").map(name => model.maps[`${name}.attention`].map(rows => [...rows.at(-1)]));
    return JSON.stringify([logits, last]);
}"""


def test_logits_and_weights_token_by_token_are_pytorchs(page: Page):
    model = network("gpt")
    ids = [EOS, *torch.randint(5, 512, (31,), generator=torch.Generator().manual_seed(0)).tolist()]
    logits, last = map(torch.tensor, json.loads(page.evaluate(READ, ids)))
    with torch.no_grad(), cu.record_attention(model) as maps:
        right = model(torch.tensor([ids]))[0]
    torch.testing.assert_close(logits, right, atol=1e-4, rtol=0)
    weights = torch.cat(list(maps.values()))[:, :, -1]
    torch.testing.assert_close(last, weights, atol=1e-4, rtol=0)


REREAD = """texts => {
    const model = new live_engine.GPT(live_bundles.gpt), reading = new live_reading.Reading(model);
    const seen = each => JSON.stringify([each.logits, ...Object.keys(each.rows).map(name => each.map(name))]);
    return texts.every(ids => {
        const anew = new live_reading.Reading(model);
        [reading, anew].forEach(each => each.read(ids));
        return seen(reading) === seen(anew);
    });
}"""
SAFELY = f"texts => {{ try {{ return ({REREAD})(texts); }} catch {{ return false; }} }}"
TEXTS = [
    [EOS, 40, 50, 60, 70],
    [EOS, 40, 51, 60],
    [EOS, 40, 51, 60, 61, 62],
    [EOS, 40],
    [7, 40, 50],
]
FORGOTTEN = {
    "what was read before stays": ("reading", ("other >= 0", "other > 9")),
    "the cache stays": ("reading", ("this.model.forget(this.state, length);", "")),
    "a row too many stays": ("reading", ("each.length = length", "each.length = length + 1")),
    "the position stays": ("others", ("      state.length = length;\n", "")),
    "the values stay": ("others", ("keys.length = values.length = length", "keys.length = length")),
}  # fmt: skip


def test_a_text_that_changed_is_read_on_from_where_it_changed(page: Page):
    assert page.evaluate(REREAD, TEXTS)
    for mistake, (script, changed) in FORGOTTEN.items():
        load(page, script, changed)
        assert not page.evaluate(SAFELY, TEXTS), mistake
        load(page, script)


def test_temperature_and_top_k_act_on_the_logits_that_are_kept(page: Page, learned):
    model, subwords = network("gpt"), learned[0]
    press(page, "Begin again")
    logits = model(torch.tensor([[EOS, *subwords.encode(PROMPT)]]))[0, -1]
    for temperature, top_k in ((0.5, None), (1.5, 3), (0.0, None)):
        page.get_by_role("slider", name="Temperature").fill(str(temperature))
        page.get_by_role("combobox", name="Top k").select_option(str(top_k or "all"))
        before = logits.softmax(dim=-1)
        after = next_token_probs(logits, temperature=temperature, top_k=top_k)
        items = part(page, "next").locator("li").all()
        best = logits.topk(len(items)).indices.tolist()
        assert len(items) == 8
        for item, token in zip(items, best, strict=True):
            expect(item.get_by_role("button")).to_have_text(subwords.tokens[token])
            shares = [100 * float(p) for p in (before[token], after[token])]
            found = [int(n) for n in re.findall(r"\d+", item.locator("span").last.inner_text())]
            assert abs(found[-1] - shares[1]) < 0.51 and abs(found[0] - shares[0]) < 0.51
    assert ids_of(page) == []


def test_one_token_a_chosen_one_and_back(page: Page, learned):
    subwords = learned[0]
    press(page, "Begin again")
    expect(part(page, "status")).to_be_empty()
    press(page, "One token")
    assert len(ids_of(page)) == 1
    slider = page.get_by_role("slider", name="Token")
    begun = 1 + len(subwords.encode(PROMPT))
    expect(slider).to_have_attribute("max", str(begun + 1))
    slider.press("ArrowLeft")
    expect(part(page, "next")).to_contain_text("Here came")
    chosen = part(page, "next").get_by_role("button").nth(4)
    text = chosen.inner_text()
    chosen.press("Enter")
    expect(slider).to_be_focused()
    assert [subwords.tokens[i] for i in ids_of(page)] == [text]
    slider.press("Home")  # within the beginning nothing can be chosen
    assert part(page, "next").locator("button:enabled").count() == 0
    expect(slider).to_have_attribute("aria-valuetext", f"1 of {begun + 1}: <eos>")
    begin(page, "the dog")
    assert ids_of_text(page) == ["■", "the", "dog"]


def ids_of_text(page: Page) -> list[str]:
    texts = part(page, "lines").locator("[data-word]").all_inner_texts()
    return [text for text in texts if text != "…"]


def test_arcs_are_the_row_of_a_map_and_a_hover_chooses_its_token(page: Page):
    page.get_by_role("checkbox", name="Look closer").check()
    page.get_by_role("button", name="layer 0, head 2").press("Enter")
    row = part(page, "table").locator("tr[aria-current] td").all_inner_texts()
    words = part(page, "lines").locator("[data-word]")
    share = "word => Math.round(100 * word.style.getPropertyValue('--w'))"
    shares = [word.evaluate(share) for word in words.all()]
    now = words.evaluate_all("all => all.findIndex((word) => word.ariaCurrent)")
    assert shares[:now] == [int(text) for text in row[:now]] and not any(shares[now:])
    assert page.locator("svg.over .now > g").count() == sum(share >= 2 for share in shares)
    words.nth(2).hover()
    expect(page.get_by_role("slider", name="Token")).to_have_js_property("value", "2")
    expect(words.nth(2)).to_have_attribute("aria-current", "true")


AT_REST = """(word) => {
    const { x, y, width, height } = word.getBoundingClientRect();
    const place = { clientX: x + width / 2, clientY: y + height / 2, pointerType: "mouse", bubbles: true };
    for (const kind of ["pointermove", "pointerover"]) word.dispatchEvent(new PointerEvent(kind, place));
}"""


def test_a_word_that_is_drawn_anew_under_a_pointer_at_rest_is_not_chosen(page: Page):
    slider = page.get_by_role("slider", name="Token")
    slider.fill("4")
    part(page, "lines").locator("[data-word='2']").evaluate(AT_REST)
    page.wait_for_timeout(600)  # longer than a hover takes
    assert slider.input_value() == "4"


def test_a_token_is_crossed_out_the_rest_is_written_anew_and_comes_back(page: Page, learned):
    subwords, model = learned[0], network("gpt")
    was = ids_of(page)
    part(page, "lines").locator("[data-word='2']").click()
    expect(part(page, "before")).to_have_text(
        "without wants — before: she wants to visit the museum . undo"
    )
    expect(part(page, "status")).to_have_text("Written: she wants to choose his hat .")
    ids = [EOS, *subwords.encode(PROMPT), *ids_of(page)]
    with torch.no_grad(), intervene(model) as acts:
        acts.knock_out("attention", queries=list(range(3, len(ids))), keys=2)
        logits = model(torch.tensor([ids]))[0]
    for step in (4, len(ids) - 1):  # the slider counts from 1
        page.get_by_role("slider", name="Token").fill(str(step))
        right = next_token_probs(logits[step - 1], temperature=0.7)
        item = part(page, "next").locator("li").first
        expect(item).to_contain_text(re.compile(rf"\b{100 * float(right.max()):.0f} %"))
    address = page.evaluate("live_address.link(document.forms[0])")
    assert "forbid=2" in address
    part(page, "lines").locator("[data-word='1']").press("Escape")
    assert ids_of(page) == was
    page.goto(address)
    expect(part(page, "status")).to_have_text("Written: she wants to choose his hat .")


def test_without_a_wish_for_calm_it_writes_token_by_token(browser, file):
    with live_page(browser, file) as page:
        press(page, "Begin again")
        press(page, "Write")
        lengths = set()
        while part(page, "status").inner_text() == "":
            lengths.add(len(ids_of(page)))
        assert len(lengths) >= 3
        expect(part(page, "status")).to_have_text("Written: she wants to visit the museum .")


def test_a_full_window_says_so(page: Page):
    begin(page, "z " * 30)
    press(page, "Write")
    expect(part(page, "full")).to_be_visible()
    assert len(ids_of_text(page)) == 33
    begin(page, "z " * 49)
    expect(part(page, "full")).to_be_hidden()
    press(page, "One token")
    expect(part(page, "full")).to_be_visible()


def test_words_that_it_never_read_are_named(page: Page):
    begin(page, "the wuman <b>is</b>")
    unread = part(page, "unread")
    expect(unread).to_contain_text("It has never read wuman, and reads it in pieces: w u man␣.")
    expect(unread).to_contain_text("<b>is</b>")
    unread.get_by_role("button", name="woman", exact=True).click()
    expect(page.get_by_role("textbox")).to_have_value("the woman <b>is</b>")
    begin(page, "le")
    expect(unread).to_contain_text("It has never read le, and reads it as one piece: le␣.")


def test_its_state_stands_in_the_controls(page: Page):
    """What was written is put back by the control that holds it; one of another beginning, or nonsense, is ignored."""
    written = page.locator("[name=written]")
    put = "(node, text) => { node.value = text; node.dispatchEvent(new Event('input', { bubbles: true })); }"
    held = written.input_value()
    begin(page, "the dog")
    assert ids_of_text(page) == ["■", "the", "dog"]
    begin(page, PROMPT)
    written.evaluate(put, held)
    expect(part(page, "status")).to_have_text("Written: she wants to visit the museum .")
    for nonsense in (f"x 1e9 -4 0.5|{PROMPT}", "7 8|another", "|||", ""):
        written.evaluate(put, nonsense)
        assert ids_of_text(page)[:4] == ["■", "she", "wants", "to"]
        assert len(ids_of_text(page)) == 4


# For everyone -----------------------------------------------------------------------------------


def test_a_screen_reader_finds_names_and_roles(page: Page):
    form = page.locator("form")
    expect(form).to_have_attribute("aria-label", "Live GPT")
    expect(form.get_by_role("group", name="Heads")).to_be_visible()
    for name in ("Temperature", "Token"):
        expect(form.get_by_role("slider", name=name)).to_be_visible()
    assert form.locator("svg:not([aria-hidden=true])").count() == 0
    expect(part(page, "status")).to_have_attribute("aria-live", "polite")
