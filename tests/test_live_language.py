"""Live models of language in a page: translator, GPT, BERT and alignments answer to mouse, keys and address."""

import re

import pytest
import torch
from browsing import html_page, part
from playwright.sync_api import Page, expect
from stored_models import network, words

import course_utils as cu
from course_utils.data.text import EOS
from course_utils.decoding import next_token_probs
from course_utils.interventions import intervene
from course_utils.kit.live.widget import Live
from course_utils.lessons.sequence_to_sequence.small_world import larger_world

pytestmark = pytest.mark.slow

CALM = {"reduced_motion": "reduce"}
PROMPT = "she wants to"
TOKENS = cu.live.bundle("gpt")["vocabularies"]["tokens"]
BEGUN = [EOS, *(TOKENS.index(f"{word}␣") for word in PROMPT.split())]
PUT = "(node, text) => { node.value = text; node.dispatchEvent(new Event('input', { bubbles: true })); }"


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


def link(page: Page) -> str:
    return page.evaluate("live_modules.form.link(document.forms[0])")


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


@pytest.mark.parametrize("make", [gpt, cu.live.bert])
def test_words_that_it_never_read_are_named(open_widget, make):
    gap, told = ("", "") if make is gpt else (" ___", " Write ___ where a word is missing.")
    with open_widget(make()) as page:
        unread = part(page, "unread")
        write(page, f"the wuman{gap} <b>is</b>")
        expect(unread).to_contain_text("It has never read wuman, and reads it in pieces: ")
        expect(unread).to_contain_text("<b>is</b>")
        unread.get_by_role("button", name="woman", exact=True).click()
        expect(page.get_by_role("textbox")).to_have_value(f"the woman{gap} <b>is</b>")
        write(page, "le")
        expect(unread).to_contain_text("It has never read le, and reads it as one piece: le␣.")
        write(page, "")
        expect(unread).to_have_text(told.strip())


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


def test_a_word_is_crossed_out_and_comes_back(open_widget):
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
        assert link(page).endswith("forbid=4")
        page.locator("[data-step='4']").click()
        expect(part(page, "next")).to_contain_text("It has read other words than before")
        page.locator("[data-step='4']").press("Escape")
        expect(said).to_have_text("elle a une voiture rouge .")
        expect(before).to_be_empty()
        expect(page.locator(".fresh, [aria-pressed=true][data-word]")).to_have_count(0)
        page.locator("[data-step='3']").click()  # one look, at its step only
        page.locator(".across [data-look='3.4'] .hit").dispatch_event("click")
        expect(said).to_have_text("elle a une actrice rouge .")
        expect(before).to_contain_text("without car at word 4")
        assert link(page).endswith("line=3.4")
        car.click(modifiers=["Shift"])
        expect(said).to_have_text("elle a une voiture rouge .")


def test_a_chapter_crosses_out_no_word_that_chapter_00_asks_for(open_widget):
    with open_widget(translator()) as page:
        expect(page.locator("[data-find] s")).to_have_text(["mother", "."])


def test_the_last_look_stays_and_the_encoder_can_be_forbidden_too(open_widget):
    with open_widget(translator()) as page:
        for word in page.locator("[data-word]").all():
            word.click()
        expect(page.locator("[data-word][aria-pressed=true]")).to_have_count(6)
        told = "It has to attend to something: the last word stays."
        expect(part(page, "told")).to_have_text(told)
        assert set(percents(part(page, "table").locator("tbody td:last-child")).tolist()) == {1}
        button(page, "undo").click()
        english(page, "car").click()
        page.get_by_role("checkbox", name="where other words have read car").check()
        expect(part(page, "next").locator("li").nth(1)).to_contain_text("écrivain")
        closer(page)
        page.get_by_role("radio", name="English to English").check()
        assert not percents(part(page, "table").locator("tbody td:nth-child(6)")).any()
        for find in page.locator("[data-find]").all():
            find.click()
            expect(page.locator("[data-word][aria-pressed=true]")).to_have_count(1)
            expect(part(page, "before")).to_contain_text("before:")


ENDS = """svg => {
    const middle = ({ x, y, width, height }) => [x + width / 2, y + height / 2];
    const box = (name, place) => middle(document.querySelector(`[data-${name}="${place}"]`).getBoundingClientRect());
    const at = (path, part) => {
        const { x, y } = path.getPointAtLength(part * path.getTotalLength()).matrixTransform(path.getScreenCTM());
        return [x, y];
    };
    return [...svg.querySelectorAll(".now path.hit")].map(path => {
        const [i, j] = path.parentNode.dataset.look.split(".");
        return [[at(path, 0), box("word", j)], [at(path, 1), box("step", i)]];
    });
}"""


def test_lines_begin_and_end_at_their_words_and_arrows_move_among_them(open_widget):
    """Nothing is measured when they are drawn; in both layouts each end is in the middle of its word."""
    with open_widget(translator()) as page:
        page.locator("[data-step='3']").click()
        for keys, place in (("→", "step='4'"), ("↑→", "word='1'"), ("↓", "step='4'")):
            for key in keys:
                page.keyboard.press({"→": "ArrowRight", "↑": "ArrowUp", "↓": "ArrowDown"}[key])
            expect(page.locator(f"[data-{place}]")).to_be_focused()
        expect(part(page, "next")).to_contain_text("Word 5 of 7: it says rouge")
        assert page.locator(".cu-words > [tabindex='0']").count() == 2
        for which, width, axis in (("across", 1000, 0), ("beside", 380, 1)):
            page.evaluate("width => { document.forms[0].style.width = `${width}px`; }", width)
            page.locator(f"svg.{which}").wait_for()
            ends = page.locator(f"svg.{which}").evaluate(ENDS)
            assert len(ends) >= 2
            assert all(abs(end[axis] - word[axis]) < 4 for line in ends for end, word in line)
    with open_widget(translator()) as page:  # line by line
        page.wait_for_function("() => document.getAnimations().length > 5")
    with open_widget(translator(), **CALM) as page:
        assert page.evaluate("document.getAnimations().length") == 0


@pytest.mark.parametrize(
    ("width", "at"),
    [(320, ""), (1280, "sentence=the old woman is in the house near the church .")],
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
        expect(part(page, "said")).to_have_text("ma robe aime la robe bleue .")


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


AT_REST = """(word) => {
    const { x, y, width, height } = word.getBoundingClientRect();
    const place = { clientX: x + width / 2, clientY: y + height / 2, pointerType: "mouse", bubbles: true };
    for (const kind of ["pointermove", "pointerover"]) word.dispatchEvent(new PointerEvent(kind, place));
}"""


def test_arcs_are_the_row_of_a_map_and_a_hover_that_moves_chooses_its_token(open_widget):
    with open_widget(gpt(), **CALM) as page:
        token, shown = slider(page, "Token"), part(page, "lines").locator("[data-word]")
        token.fill("4")
        shown.nth(2).evaluate(AT_REST)  # it is drawn anew under the pointer
        page.wait_for_timeout(600)  # longer than a hover takes
        assert token.input_value() == "4"
        closer(page)
        button(page, "layer 0, head 2").press("Enter")
        row = percents(part(page, "table").locator("tr[aria-current] td"))
        shares = shown.evaluate_all(
            "all => all.map((w) => Number(w.style.getPropertyValue('--w')))"
        )
        now = shown.evaluate_all("all => all.findIndex((word) => word.ariaCurrent)")
        torch.testing.assert_close(torch.tensor(shares[:now]), row[:now])
        assert not any(shares[now:])
        arcs = page.locator("svg.over .now > g")
        assert arcs.count() == sum(share >= 0.02 for share in shares)
        arcs.first.locator(".hit").dispatch_event("click")  # only tokens can be crossed out
        assert page.locator("[name=forbid]").input_value() == ""
        shown.nth(2).hover()
        expect(token).to_have_js_property("value", "2")
        expect(shown.nth(2)).to_have_attribute("aria-current", "true")


def test_a_token_is_crossed_out_the_rest_is_written_anew_and_comes_back(open_widget):
    model, anew = network("gpt"), "Written: she wants to choose his hat ."
    with open_widget(gpt(), **CALM) as page:
        was = ids_of(page)
        part(page, "lines").locator("[data-word='2']").click()
        before = "without wants — before: she wants to visit the museum . undo"
        expect(part(page, "before")).to_have_text(before)
        expect(part(page, "status")).to_have_text(anew)
        with torch.no_grad(), intervene(model) as acts:
            acts.knock_out("attention", queries=[3, 4], keys=2)
            logits = model(torch.tensor([[*BEGUN, *ids_of(page)]]))[0, 3]
        slider(page, "Token").fill("4")  # counted from 1
        most = 100 * float(next_token_probs(logits, temperature=0.7).max())
        item = part(page, "next").locator("li").first
        expect(item).to_contain_text(re.compile(rf"\b{most:.0f} %"))
        address = link(page)
        assert "forbid=2" in address
        part(page, "lines").locator("[data-word='1']").press("Escape")
        assert ids_of(page) == was
        page.goto(address)
        expect(part(page, "status")).to_have_text(anew)


def test_what_was_written_for_another_beginning_or_is_nonsense_is_ignored(open_widget):
    with open_widget(gpt(), **CALM) as page:
        written = page.locator("[name=written]")
        held = written.input_value()
        write(page, "the dog")
        assert texts_of(page) == ["■", "the", "dog"]
        write(page, PROMPT)
        written.evaluate(PUT, held)
        expect(part(page, "status")).to_have_text("Written: she wants to visit the museum .")
        for nonsense in (f"x 1e9 -4 0.5|{PROMPT}", "7 8|another", "|||", ""):
            written.evaluate(PUT, nonsense)
            assert texts_of(page) == ["■", "she", "wants", "to"]


def test_an_output_without_widgets_keeps_any_beginning_as_text(browser):
    prompt = "</script><!--<script> <b>she"
    with html_page(browser, cu.live.gpt(prompt).alone()) as page:
        expect(page.get_by_role("textbox", name="Beginning")).to_have_value(prompt)
        assert page.locator("b").count() == 0


# BERT -------------------------------------------------------------------------------------------


def test_gaps_are_filled_one_after_the_other_by_keys(open_widget):
    with open_widget(cu.live.bert()) as page:
        write(page, "the ___ is ___ the sofa .")
        token, choices = slider(page, "Token"), part(page, "next").locator("button:enabled")
        expect(token).to_have_attribute("aria-valuetext", "3 of 10: ___")
        token.press("ArrowRight")
        expect(part(page, "next")).to_contain_text("which it reads")
        assert choices.count() == 0
        token.press("ArrowRight")
        word = choices.first.inner_text().removesuffix("␣")
        choices.first.press("Enter")
        line = f"the ___ is {word} the sofa ."
        expect(page.get_by_role("textbox")).to_have_value(line)
        expect(part(page, "status")).to_have_text(f"Filled: {line}")
        expect(token).to_have_attribute("aria-valuetext", "3 of 10: ___")  # the gap that is left
        choices.first.press("Enter")
        expect(token).to_be_focused()
        assert "___" not in page.get_by_role("textbox").input_value()
        write(page, "")
        assert part(page, "text").locator("span").all_inner_texts() == ["<bos>", "<eos>"]


def test_a_map_colors_the_text(open_widget):
    with open_widget(cu.live.bert()) as page:
        button(page, "layer 0, head 2").press("Enter")
        expect(part(page, "table").locator("caption")).to_contain_text("layer 0, head 2")
        row = percents(part(page, "table").locator("tr[aria-current] td"))
        spans = part(page, "text").locator("span")
        shares = spans.evaluate_all("all => all.map(s => Number(s.style.getPropertyValue('--w')))")
        torch.testing.assert_close(torch.tensor(shares), row)
        spans.nth(1).click()
        expect(part(page, "text").locator("[aria-current]")).to_have_text("she")


# Alignments -------------------------------------------------------------------------------------

FRAMED = """rows => rows.flatMap((row, t) => [...row.querySelectorAll("td")]
    .flatMap((cell, s) => ("framed" in cell.dataset ? [[s, t]] : [])))"""


def test_gold_links_are_framed_where_a_map_has_the_corpuss_french(open_widget):
    packed, pair = cu.live.bundle("bahdanau_fr"), larger_world().test[0]
    read = {" ".join(each.source) for each in larger_world().train}
    assert not read & {sentence for sentence, _, _ in packed["gold"]}
    assert packed["vocabularies"] == cu.live.bundle("translator_fr")["vocabularies"]
    sides = "attention", "cross"
    with open_widget(cu.live.alignment()) as page:
        rows = lambda which: inside(page, which, "table").locator("tbody tr")  # noqa: E731
        write(page, " ".join(pair.source))
        page.get_by_role("radio", name="the corpus's").check()
        for which in sides:
            assert rows(which).locator("th").all_text_contents() == [*pair.target, "<eos>"]
            assert set(map(tuple, rows(which).evaluate_all(FRAMED))) == pair.alignment
            counted = f"of {len(pair.target)} words"
            expect(inside(page, which, "counted")).to_contain_text(counted)
        write(page, "he's calm .")
        expect(part(page, "gold")).to_contain_text("gold links are not known")
        expect(page.locator("[data-framed]")).to_have_count(0)
        for which in sides:
            expect(inside(page, which, "said").locator("strong")).to_have_text("il est calme .")
            expect(inside(page, which, "counted")).to_be_empty()
        button(page, "another sentence with gold links").click()
        expect(page.get_by_role("textbox")).to_have_value(" ".join(pair.source))
        page.get_by_role("radio", name="each its own").check()
        for which in sides:
            own = inside(page, which, "said").locator("strong").text_content()
            assert rows(which).locator("th").all_text_contents() == [*own.split(), "<eos>"]


def test_numbers_of_two_maps_are_explained(open_widget):
    at = "sentence=she has a red car .&map=1.3&cell=attention:1.2"
    with open_widget(cu.live.alignment(), at=at) as page:
        caption = inside(page, "cross", "table").locator("caption")
        expect(caption).to_contain_text("Cross-attention, layer 1, head 3")
        chosen = inside(page, "attention", "table").locator("tr").nth(2).locator("td").nth(2)
        expect(chosen).to_have_attribute("aria-selected", "true")
        button(page, "layer 0, head 2").press("Enter")
        expect(caption).to_contain_text("Cross-attention, layer 0, head 2")
        for which, said in (
            ("attention", "query and key are added"),
            ("cross", "The products of the two"),
        ):
            table = inside(page, which, "table")
            table.locator("td").first.focus()
            page.keyboard.press("ArrowDown")
            page.keyboard.press("Enter")
            expect(page.locator("td[aria-selected=true]")).to_have_count(1)
            weight_of(page, table.locator("tr").nth(2).locator("td").first)
            page.get_by_role("radio", name="score").check()
            expect(part(page, "work")).to_contain_text(said)


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
        expect(work).to_contain_text("home is crossed out: its weight is 0")
        button(page, "mean of layer 1").click()
        expect(part(page, "of")).to_contain_text("the mean of 4 heads")
        expect(page.get_by_role("group", name="Operation")).to_be_hidden()


@pytest.mark.parametrize(
    ("make", "masked", "mean"),
    [
        (gpt, "comes later: its weight is 0", ("mean of layer 1", 4)),
        (cu.live.bert, "Nothing is masked", ("mean of all heads", 8)),
    ],
)
def test_every_number_of_a_text_is_explained(open_widget, make, masked, mean):
    """The GPT's text is read token by token as it is written: the first row is explained as well as the last."""
    with open_widget(make()) as page:
        if make is gpt:
            closer(page)
            button(page, "layer 1, head 0").click()
            for name in ("Begin again", *["One token"] * 3):
                button(page, name).click()
        grid = page.get_by_role("grid")
        tokens = grid.locator("thead th").all_text_contents()[1:]
        assert len(tokens) == grid.locator("tbody tr").count() >= 6
        for query, key in ((0, 0), (2, 1), (len(tokens) - 1, 3), (1, len(tokens) - 1)):
            cell = grid.locator("tbody tr").nth(query).locator("td").nth(key)
            cell.press("Enter")
            weight_of(page, cell)
            expect(part(page, "of")).to_contain_text(f"Query {tokens[query]}, key {tokens[key]}:")
        page.get_by_role("radio", name="mask").check()
        expect(part(page, "work")).to_contain_text(masked)
        button(page, mean[0]).click()
        expect(part(page, "of")).to_contain_text(f"the mean of {mean[1]} heads")
        write(page, "go")  # there is no such place any more
        expect(part(page, "of")).to_contain_text("Choose a number")


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


def test_an_address_of_a_checkpoint_keeps_what_was_written_or_has_that_model_write(open_widget):
    """A text with a token of the reader's own choice is not written anew when the model has come."""
    held = f"7 8 9|{PROMPT}"
    with open_widget(cu.live.gpt(PROMPT, 0.0), at=f"checkpoint=1&written={held}") as page:
        expect(part(page, "checkpoint")).to_contain_text("100 steps, perplexity")
        assert page.locator("[name=written]").input_value() == held
        page.evaluate("location.hash = 'live=gpt.0&checkpoint=0'")
        expect(part(page, "checkpoint")).to_contain_text("untrained, perplexity")
        assert len(ids_of(page)) == 33 - len(BEGUN)


@pytest.mark.parametrize("make", [gpt, lambda: translator(checkpoints=True)])
def test_a_bad_map_with_a_checkpoint_is_taken_back_as_a_whole(open_widget, make):
    with open_widget(make(), at="checkpoint=0&map=9.9") as page:
        expect(slider(page, "Trained for")).to_have_value("2")
        assert page.locator("[name=map]").input_value() != "9.9"
        expect(part(page, "checkpoint")).to_contain_text("steps, perplexity")


def test_translators_say_what_they_said_earlier_in_their_training(open_widget):
    assert translator().later == ()
    with open_widget(cu.live.translator("oscar is at the market .", True)) as page:
        for place, said in ((1, "oscar est à l'école ."), (2, "oscar est au marché .")):
            trained_for(page, place)
            expect(part(page, "said")).to_have_text(said)
        expect(part(page, "checkpoint")).to_contain_text("618 steps")
    sentence = "the old woman is sleeping ."
    source = torch.tensor([[*words("source").encode(sentence.split()), EOS]])
    with open_widget(cu.live.alignment(sentence)) as page:
        transformer = page.locator("[data-part=cross] table")
        before = transformer.inner_html()
        for place, name in ((1, "bahdanau_fr_100"), (2, "bahdanau_fr")):
            trained_for(page, place)
            said = cu.greedy(network(name), source, torch.tensor([source.shape[1]]), max_len=40)[0]
            french = " ".join(words("target").tokens[token] for token in said)
            expect(inside(page, "attention", "said").locator("strong")).to_have_text(french)
        assert transformer.inner_html() == before
