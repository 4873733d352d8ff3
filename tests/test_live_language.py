"""Live models of language in a page: translator, GPT, BERT and alignments answer to mouse, keys and address."""

import re

import pytest
import torch
from browsing import CONTRAST, copied_link, html_page, in_theme, part
from playwright.sync_api import Page, expect
from stored_models import network

import course_utils as cu
from course_utils.data.text import EOS
from course_utils.decoding import next_token_probs
from course_utils.interventions import intervene
from course_utils.kit.live.widget import Live

pytestmark = pytest.mark.slow

CALM = {"reduced_motion": "reduce"}
PROMPT = "she wants to"
TOKENS = cu.live.bundle("gpt")["vocabularies"]["tokens"]
BEGUN = [EOS, *(TOKENS.index(f"{word}␣") for word in PROMPT.split())]


def translator(**options) -> Live:
    return cu.live.translator("she has a red car .", **options)


def gpt() -> Live:
    return cu.live.gpt(PROMPT, 0.7, 1)


def write(page: Page, text: str) -> None:
    page.get_by_role("textbox").first.fill(text)


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def slider(page: Page, name: str):
    return page.get_by_role("slider", name=name)


def closer(page: Page) -> None:
    page.get_by_role("checkbox", name="Look closer").first.check()


def inside(page: Page, which: str, name: str):
    """A part of one of two translators."""
    return page.locator(f"[data-part={which}] [data-part={name}]")


def percents(cells) -> torch.Tensor:
    """The numbers of table cells, from 0 to 1."""
    return torch.tensor([int(text) for text in cells.all_text_contents()]) / 100


def ids_of(page: Page) -> list[int]:
    """What the GPT has written."""
    return [int(i) for i in page.locator("[name=written]").input_value().split("|")[0].split()]


def texts_of(page: Page) -> list[str]:
    shown = part(page, "lines").locator("[data-word]").all_inner_texts()
    return [text for text in shown if text != "…"]


# Sentences --------------------------------------------------------------------------------------


def test_a_sentence_is_translated_as_it_is_written(open_widget):
    with open_widget(translator(), cu.live.translator("he's calm .")) as page:
        for written in ("Please eat a pizza.", "please eat a pizza"):
            write(page, written)
            expect(part(page, "said")).to_have_text("mange une pizza , s'il te plaît .")
            columns = part(page, "table").locator("thead th").all_text_contents()
            assert columns == ["reads", "says", "please", "eat", "a", "pizza", ".", "<eos>"]
        expect(page.locator("form >> nth=1 >> [data-part=said]")).to_have_text("il est calme .")
        page.keyboard.press("Enter")
        assert page.url.endswith("page.html")
        closer(page)
        button(page, "layer 1, head 3").first.click()
        for label, title in (
            ("French to French", "Self-attention of the decoder, layer 1, head 3"),
            ("English to English", "Self-attention of the encoder, layer 1, head 3"),
        ):
            page.get_by_role("radio", name=label).first.check()
            expect(part(page, "table").locator("caption")).to_contain_text(title)


@pytest.mark.parametrize("make", [translator, cu.live.alignment])
def test_unknown_words_are_named_and_known_ones_like_them_offered(open_widget, make):
    with open_widget(make()) as page:
        unknown, field = part(page, "unknown"), page.get_by_role("textbox")
        write(page, "The old wuman <b>is</b> sleeping.")
        expect(unknown).to_contain_text("It does not know wuman. Words it knows: woman")
        expect(unknown).to_contain_text("<b>is</b>")
        button(page, "woman").first.click()
        expect(field).to_have_value("the old woman <b>is</b> sleeping .")
        expect(field).to_be_focused()
        write(page, "I am home.")
        unknown.get_by_role("button", name="i'm", exact=True).click()
        expect(part(page, "said").first).to_contain_text("je suis chez moi .")
        write(page, "xyzzy qwrtp")
        expect(part(page, "inside")).to_be_hidden()
        write(page, "")
        expect(unknown).to_have_text("Write an English sentence.")
        write(page, "i'm home .")
        expect(part(page, "inside")).to_be_visible()
        expect(unknown).to_be_empty()


@pytest.mark.parametrize(
    ("make", "name", "said", "right"),
    [
        (translator, "translator_fr", "said", "right"),
        (cu.live.bert, "bert", "next", "right"),
        (cu.live.alignment, "bahdanau_fr", "said", "said"),
    ],
)
def test_examples_are_two_right_and_one_wrong_that_is_called_so(open_widget, make, name, said, right):  # fmt: skip
    with open_widget(make()) as page:
        for i, example in enumerate(cu.live.bundle(name)["examples"]):
            page.locator(f"[data-example='{i}']").click()
            expect(part(page, said).first).to_contain_text(example["said"])
            wrong = example["right"].removesuffix("␣")
            told = ("The corpus has: " if right == "said" else "Wrong. Right is: ") + wrong
            place = part(page, right).first
            expect(place).to_contain_text(told) if i == 2 else expect(place).not_to_contain_text(told)  # fmt: skip


# Lines of the translator ------------------------------------------------------------------------


def english(page: Page, word: str):
    return page.locator("[data-word]").filter(has_text=word).first


def test_a_word_is_forbidden_and_allowed_again(open_widget):
    with open_widget(translator()) as page:
        said, before, car = part(page, "said"), part(page, "before"), english(page, "car")
        car.press("Space")
        expect(car).to_be_focused()
        expect(car).to_have_attribute("aria-pressed", "true")
        expect(said).to_have_text("elle a une actrice rouge .")
        expect(before).to_contain_text("without car — before: elle a une voiture rouge .")
        for sort in (".fresh", "[data-step].unsure", "[data-step][aria-current]"):
            expect(page.locator(sort)).to_have_text("actrice")
        bar = part(page, "next").locator("li").filter(has_text="voiture")
        expect(bar).to_contain_text("99 → 0 %")
        assert copied_link(page).endswith("forbid=4")
        page.locator("[data-step='4']").click()
        expect(part(page, "next")).to_contain_text("It has read other words than before")
        page.locator("[data-step='4']").press("Escape")
        expect(said).to_have_text("elle a une voiture rouge .")
        expect(before).to_contain_text("Press an English word")
        expect(page.locator(".fresh, [aria-pressed=true][data-word]")).to_have_count(0)
        page.locator("[data-step='3']").click()  # one look, at its step only
        page.locator(".across [data-look='3.4'] .hit").dispatch_event("click")
        expect(said).to_have_text("elle a une actrice rouge .")
        expect(before).to_contain_text("without car at word 4")
        assert copied_link(page).endswith("line=3.4")
        car.click(modifiers=["Shift"])
        expect(said).to_have_text("elle a une voiture rouge .")


# The width of the line below a word; a sample is written in its color.
LINE = """word => {
    const { borderBottomColor, borderBottomWidth } = getComputedStyle(word, "::after");
    const sample = word.closest("form").appendChild(document.createElement("div"));
    sample.innerHTML = `<p style="color: ${borderBottomColor}">sample</p>`;
    return parseFloat(borderBottomWidth);
}"""


@pytest.mark.smoke
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_words_look_pressable_before_they_are_hovered(open_widget, theme):
    with open_widget(translator()) as page:
        in_theme(page, theme)
        expect(part(page, "before")).to_contain_text("Press an English word")
        assert english(page, "car").evaluate(LINE) >= 1
        assert page.locator("form > div", has_text="sample").evaluate(CONTRAST) >= 3


@pytest.mark.smoke
def test_weights_have_a_unit_and_what_is_no_word_is_named(open_widget):
    with open_widget(translator()) as page:
        unit = "word => getComputedStyle(word, '::before').content"
        assert re.fullmatch(r'"93\W+%"', english(page, "car").evaluate(unit))
        end = page.locator("[data-word]").last
        expect(end).to_have_text("end")
        expect(end.get_by_role("img", name="the end")).to_be_visible()
        heads = part(page, "maps")
        expect(heads).to_contain_text("the first is the mean over the heads of the last layer")
        texts = [" ".join(text.split()) for text in heads.get_by_role("button").all_inner_texts()]
        assert texts[:2] == ["mean of layer 1", "layer 0, head 0"]
        write(page, "she has a <eos> .")
        expect(part(page, "unknown")).to_contain_text("It does not know <eos>.")
        expect(page.locator("[data-word]")).to_have_text(["she", "has", "a", "<eos>", ".", "end"])


@pytest.mark.smoke
def test_a_sentence_of_nine_words_stays_in_rows_and_the_page_does_not_move(open_widget):
    with open_widget(translator(), viewport={"width": 876, "height": 900}, **CALM) as page:
        height = "document.forms[0].offsetHeight"
        before, field = page.evaluate(height), page.get_by_role("textbox")
        for text in ("", "she", "she has a", "my mother has a big red car in the house ."):
            write(page, text)
            page.keyboard.press("Enter")
            assert page.evaluate(height) == before, text
        assert len(field.input_value().split()) == 11
        expect(page.locator("svg.across")).to_be_visible()
        stage = part(page, "lines").evaluate("stage => stage.scrollWidth - stage.clientWidth")
        assert stage == 0


@pytest.mark.smoke
def test_what_is_written_is_translated_after_a_rest_or_at_once_at_a_space_or_enter(open_widget):
    with open_widget(translator(), **CALM) as page:
        page.clock.install()
        page.clock.pause_at(page.evaluate("Date.now()") + 1000)
        said, keys = part(page, "said"), page.keyboard
        old = said.text_content()
        page.get_by_role("textbox").focus()
        keys.press("Control+a")
        keys.type("he")
        page.clock.run_for(249)
        keys.type("r")
        page.clock.run_for(249)
        assert said.text_content() == old
        page.clock.run_for(1)
        assert (rested := said.text_content()) != old
        keys.press("Backspace")
        assert said.text_content() == rested
        keys.press("Enter")
        assert (entered := said.text_content()) != rested
        keys.type(" wants")
        assert said.text_content() == entered
        keys.type(" ")
        assert said.text_content() != entered


@pytest.mark.parametrize(
    ("width", "at"),
    [
        (320, ""),
        (1280, "sentence=the old woman and the young man are in the house near the small church ."),
    ],
)
def test_on_a_phone_and_where_it_is_long_the_rows_are_columns(open_widget, width, at):
    with open_widget(translator(), at=at, viewport={"width": width, "height": 700}) as page:
        expect(page.locator("svg.beside")).to_be_visible()
        expect(page.locator("svg.across")).to_be_hidden()
        heights = "all => all.map((word) => word.offsetHeight)"
        assert min(page.locator(".cu-words > button").evaluate_all(heights)) >= 44
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_larger_model_answers_when_it_has_come_and_its_pieces_are_words(open_widget):
    with open_widget(translator(everyday=True), **CALM) as page:
        expect(part(page, "said")).to_have_text("elle a une voiture rouge .")
        page.wait_for_function("() => globalThis.live_bundles.everyday_fr")
        write(page, "My grandmother’s neighbour forgot my umbrella")
        expect(page.get_by_role("combobox", name="Model")).to_have_value("everyday")
        asked = page.locator("[data-word]")
        read = ["my", "grandmother's", "neighbour", "forgot", "my", "umbrella"]
        expect(asked.nth(1)).to_have_text("grandmother's")
        assert asked.all_inner_texts()[:-1] == read
        pieces = part(page, "table").locator("thead th").count() - 2
        assert pieces > asked.count(), "no word is in pieces: another sentence is needed"
        shares = asked.evaluate_all("all => all.map((word) => Number(word.dataset.share ?? 0))")
        assert abs(sum(shares) - 100) <= len(shares)
        asked.filter(has_text="umbrella").click()
        expect(part(page, "before")).to_contain_text("without umbrella — before:")
        gone = percents(part(page, "table").locator("tbody tr").first.locator("td"))
        assert gone[-2] == 0  # before <eos>
        write(page, "I like ж")
        expect(part(page, "unknown")).to_have_text("It has no sign for ж.")
        page.locator("[data-find]").first.click()
        expect(part(page, "said")).to_have_text("prends le taxi , s'il te plaît .")


REFUSED_LATER = """globalThis.Worker = class {
    constructor() { setTimeout(() => this.onerror()); }
    postMessage() {}
};"""


@pytest.mark.smoke
def test_the_larger_model_answers_from_a_worker_and_in_the_page_where_workers_are_refused(
    open_widget,
):
    """The page unpacks its weights only when a number of a table is asked for."""
    answers, unpacked = [], "() => live_unpacked"
    count = """() => {
        globalThis.live_unpacked = 0; // large matrices
        globalThis.Int8Array = new Proxy(Int8Array, { construct(array, [size]) {
            live_unpacked += (size.byteLength ?? size) > 200_000;
            return new array(size);
        } });
    }"""
    with open_widget(translator(everyday=True), **CALM) as page:
        for refuse in ("", "delete globalThis.Worker", REFUSED_LATER):
            if refuse:
                page.add_init_script(refuse)
                page.reload()
            page.wait_for_function("() => globalThis.live_bundles?.everyday_fr")
            page.evaluate(count)
            assert len(page.workers) == (not refuse)
            write(page, "My grandmother forgot my umbrella.")
            page.keyboard.press("Enter")
            expect(part(page, "said")).to_contain_text("grand-mère")
            english(page, "umbrella").click()
            expect(part(page, "before")).to_contain_text("without umbrella — before:")
            answers.append(part(page, "table").inner_html() + part(page, "next").inner_html())
            assert (page.evaluate(unpacked) > 0) == bool(refuse)
            if not refuse:
                closer(page)
                part(page, "table").locator("td").first.click()
                expect(part(page, "of")).to_contain_text("the weight is")
                assert page.evaluate(unpacked) > 0
    assert len(set(answers)) == 1


# GPT --------------------------------------------------------------------------------------------


def test_a_text_is_written_token_by_token_by_choice_and_at_once(open_widget):
    with open_widget(gpt()) as page:
        token, status = slider(page, "Token"), part(page, "status")
        button(page, "Begin again").click()
        expect(status).to_be_empty()
        items, limit = part(page, "next").locator("li"), page.get_by_role("combobox", name="Top k")
        limit.select_option("3")
        expect(items.filter(has_text=re.compile("(^|[^0-9])0 %$"))).to_have_count(5)
        limit.select_option("0")
        button(page, "One token").click()
        assert len(ids_of(page)) == 1
        expect(token).to_have_attribute("max", "5")
        token.press("ArrowLeft")
        expect(part(page, "next")).to_contain_text("Here came")
        chosen = part(page, "next").get_by_role("button").nth(4)
        text = chosen.inner_text()
        chosen.press("Enter")
        expect(token).to_be_focused()
        assert [TOKENS[i] for i in ids_of(page)] == [text]
        token.press("Home")  # within the beginning nothing can be chosen
        assert part(page, "next").locator("button:enabled").count() == 0
        expect(token).to_have_attribute("aria-valuetext", "1 of 5: <eos>")
        button(page, "Begin again").click()
        button(page, "Write").click()
        lengths = set()
        while status.inner_text() == "":
            lengths.add(len(ids_of(page)))
        assert len(lengths) >= 3
        expect(status).to_have_text("Written: she wants to visit the museum .")
        page.emulate_media(**CALM)
        write(page, "z " * 30)
        button(page, "Write").click()
        expect(part(page, "full")).to_be_visible()
        assert len(texts_of(page)) == 33


def test_a_token_is_forbidden_the_rest_is_written_anew_and_it_is_allowed_again(open_widget):
    model, anew = network("gpt"), "Written: she wants to choose his hat ."
    with open_widget(gpt(), **CALM) as page:
        was = ids_of(page)
        part(page, "lines").locator("[data-word='2']").click()
        before = "without wants — before: she wants to visit the museum . allow again"
        expect(part(page, "before")).to_have_text(before)
        expect(part(page, "status")).to_have_text(anew)
        with torch.no_grad(), intervene(model) as acts:
            acts.forbid("attention", queries=[3, 4], keys=2)
            logits = model(torch.tensor([[*BEGUN, *ids_of(page)]]))[0, 3]
        slider(page, "Token").fill("4")  # counted from 1
        most = 100 * float(next_token_probs(logits, temperature=0.7).max())
        item = part(page, "next").locator("li").first
        expect(item).to_contain_text(re.compile(rf"\b{most:.0f} %"))
        address = copied_link(page)
        assert "forbid=2" in address
        part(page, "lines").locator("[data-word='1']").press("Escape")
        assert ids_of(page) == was
        page.goto(address)
        expect(part(page, "status")).to_have_text(anew)


GAPS = """all => all.slice(1).map((word, i) => {
    const box = (node) => {
        const text = document.createRange();
        text.selectNodeContents(node);
        return text.getBoundingClientRect();
    };
    return [all[i].textContent + "|" + word.textContent, box(word).left - box(all[i]).right];
})"""


@pytest.mark.smoke
def test_pieces_of_a_word_touch_and_words_do_not(open_widget):
    with open_widget(cu.live.gpt("she wants to visit a museum", 0.7, 1), **CALM) as page:
        gaps = dict(part(page, "lines").locator("[data-word]").evaluate_all(GAPS))
        inside = {"vis|it", "mu|se", "se|u", "u|m"}
        assert all(abs(gaps[pair]) < 2 for pair in inside)
        assert min(gap for pair, gap in gaps.items() if pair not in inside) > 4


def test_an_output_without_widgets_keeps_any_beginning_as_text(browser):
    prompt = "</script><!--<script> <b>she"
    with html_page(browser, cu.live.gpt(prompt).alone()) as page:
        expect(page.get_by_role("textbox", name="Beginning")).to_have_value(prompt)
        assert page.locator("b").count() == 0


# BERT -------------------------------------------------------------------------------------------


def test_gaps_are_filled_one_after_the_other_by_keys(open_widget):
    with open_widget(cu.live.bert()) as page:
        page.get_by_label("Look closer").check()
        write(page, "the ___ is ___ the sofa .")
        token, choices = slider(page, "Token"), part(page, "next").locator("button:enabled")
        expect(token).to_have_attribute("aria-valuetext", "3 of 10: ___")
        token.press("ArrowRight")
        expect(token).to_have_attribute("aria-valuetext", "4 of 10: is␣")
        assert choices.count() == 0, "it reads this token"
        token.press("ArrowRight")
        expect(part(page, "left")).to_contain_text("fill the earlier one first")
        word = choices.first.inner_text().removesuffix("␣")
        choices.first.press("Enter")
        line = f"the ___ is {word} the sofa ."
        expect(page.get_by_role("textbox")).to_have_value(line)
        expect(part(page, "status")).to_have_text(f"Filled: {line}")
        expect(token).to_have_attribute("aria-valuetext", "3 of 10: ___")  # the gap that is left
        choices.first.press("Enter")
        expect(page.get_by_role("textbox")).to_be_focused()
        assert "___" not in page.get_by_role("textbox").input_value()
        write(page, "")
        assert part(page, "text").locator("span").all_inner_texts() == ["<bos>", "<eos>"]


def test_what_comes_after_a_gap_changes_the_answer_of_one_reader_only(open_widget):
    with open_widget(cu.live.bert("she wants to ___ a novel .")) as page:
        first = {
            name: part(page, name).locator("li").all_inner_texts() for name in ("next", "left")
        }
        write(page, "she wants to ___ .")
        expect(part(page, "next").locator("li").first).not_to_have_text(first["next"][0])
        assert part(page, "left").locator("li").all_inner_texts() == first["left"]


# A number that is explained ---------------------------------------------------------------------


def weight_of(page: Page, cell) -> float:
    """What is said of a chosen number, which is rounded in the table."""
    expect(cell).to_have_attribute("aria-selected", "true")
    weight = float(re.search(r"the weight is (\d\.\d{4})", part(page, "of").inner_text())[1])
    assert abs(100 * weight - float(cell.inner_text())) <= 0.51
    return weight


def test_a_number_is_chosen_by_keys_and_stepped_operation_by_operation(open_widget):
    with open_widget(cu.live.translator("i'm home ."), at="closer=1&map=1.0") as page:
        grid, stop = page.get_by_role("grid"), page.get_by_role("grid").locator("td[tabindex='0']")
        stop.focus()
        for key in ("ArrowDown", "ArrowDown", "ArrowRight", "ArrowUp", "Enter"):
            page.keyboard.press(key)
        cell = grid.locator("tbody tr").nth(1).locator("td").nth(1)
        expect(cell).to_be_focused()
        expect(stop).to_have_count(1)
        weight = weight_of(page, cell)
        expect(part(page, "of")).to_contain_text("Query je, key home")
        work = part(page, "work")
        assert f"= {weight:.4f}" in work.inner_text()
        radios, rows = page.get_by_role("group", name="Operation").get_by_role("radio"), []
        names = ["project", "score", "scale", "mask", "normalize", "mix", "merge"]
        radios.first.check()
        for number, name in enumerate(names):
            if number:
                radios.nth(number - 1).press("ArrowRight")
            expect(work.locator("p strong").first).to_have_text(name)
            rows.append(work.locator("tr, th[scope=col]").count())
        assert rows == sorted(set(rows)), "each operation adds to what is shown"
        numbers = work.get_by_role("region", name="All keys of this row")
        expect(numbers.get_by_role("columnheader").last).to_have_text("weight")
        expect(numbers.locator("tr").last).to_contain_text("sum")
        page.get_by_role("radio", name="mask").check()
        page.locator("[data-word='1']").click()
        grid.locator("tbody tr").first.locator("td").nth(1).click()
        expect(work).to_contain_text("home is forbidden: its weight is 0")
        button(page, "mean of layer 1").click()
        expect(part(page, "of")).to_contain_text("the mean of 4 heads")
        expect(page.get_by_role("group", name="Operation")).to_be_hidden()


# Checkpoints ------------------------------------------------------------------------------------


def trained_for(page: Page, place: int) -> None:
    slider(page, "rained for").fill(str(place))
    expect(part(page, "checkpoint")).to_contain_text("perplexity")


def test_a_checkpoint_is_loaded_when_it_is_asked_for_and_writes_by_itself(open_widget):
    packed, (run,) = cu.live.bundle("gpt")["checkpoints"], cu.stored_runs("gpt", "writer")
    assert [each["steps"] for each in packed] == [0, 100, run.config["steps"]]
    losses = [each["loss"] for each in packed]
    assert losses == sorted(losses, reverse=True) and losses[-1] == run.result["loss"]
    with open_widget(cu.live.gpt(PROMPT, 0.0), **CALM) as page:
        scripts, was = page.locator("script[src*='gpt_']"), ids_of(page)
        assert scripts.count() == 0
        trained_for(page, 1)
        assert ids_of(page) != was
        slider(page, "Temperature").fill("0.7")
        page.get_by_role("spinbutton", name="Seed").fill("1")
        button(page, "Write").click()  # what the chapter says
        expect(part(page, "status")).to_have_text("Written: she wants to listen to him .")
        trained_for(page, 0)
        expect(part(page, "checkpoint")).to_contain_text("untrained")
        expect(part(page, "full")).to_be_visible()
        assert scripts.count() == 2
        trained_for(page, 2)
        slider(page, "Temperature").fill("0")
        button(page, "Write").click()
        assert ids_of(page) == was


def test_small_pictures_show_the_heads_of_the_attention_that_is_chosen(open_widget):
    with open_widget(cu.live.translator("i'm home ."), at="closer=1") as page:
        pictures = page.locator("[data-part=maps] [data-map='0.0'] svg")
        kinds = "French to English", "French to French", "English to English", "French to English"
        drawn = []
        for kind in kinds:
            page.get_by_role("radio", name=kind).check()
            drawn.append(pictures.inner_html())
        assert len(set(drawn)) == 3
        assert drawn[0] == drawn[-1]
