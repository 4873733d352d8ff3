"""Lines between words, and looks that are forbidden: they are PyTorch's, by mouse, keys and address, on a phone."""

import json

import pytest
import torch
from browsing import live_page, part, write_page
from playwright.sync_api import Page, expect
from stored_models import network

import course_utils as cu
from course_utils.data.text import BOS, EOS
from course_utils.interventions import intervene
from course_utils.kit.live.packing import script
from course_utils.kit.live.widgets.translator import Translator
from course_utils.kit.page import asset
from course_utils.studio.first_states import engine

CASES = 200
FORBID = """cases => JSON.stringify(cases.map(({ source, words, looks, deeper, watched }) => {
    const places = source.map((_, i) => ({ places: [i] }));
    const end = live_inside.forbidden(model, places, { words, looks }, deeper);
    const said = live_engine.greedy(model, source, 12), state = model.start(source);
    const logits = model.step([live_engine.ids.BOS, ...said], state).map(row => watched.map(id => row[id]));
    end();
    return { said, logits };
}))"""


def page_of(inside: str):
    """The scripts of the translator's page without a page, `inside` within reach as `live_inside`."""
    page, end = engine(Translator.files()), "return { state, html, mount };"
    text = asset("live/widgets/translator.js")
    assert end in text
    page.eval(text.replace(end, f"globalThis.live_inside = {{ {inside} }};{end}"))
    return page


def drawn(at: torch.Generator) -> dict:
    """A sentence of random words and what may not be looked at: at least one look stays at each step."""

    def some(count: int, most: int) -> list[int]:
        many = int(torch.randint(0, most + 1, (1,), generator=at))
        return sorted(torch.randperm(count, generator=at)[:many].tolist())

    length = int(torch.randint(2, 9, (1,), generator=at))
    words = some(length + 1, length)
    rest = [j for j in range(length + 1) if j not in words]
    looks = [[i, rest[j]] for i in range(4) for j in some(len(rest), len(rest) - 1)]
    return {
        "source": [*torch.randint(1, 800, (length,), generator=at).tolist(), EOS],
        "words": words,
        "looks": looks,
        "deeper": bool(torch.randint(0, 2, (1,), generator=at)),
        "watched": torch.randint(0, 800, (40,), generator=at).tolist(),
    }


@torch.no_grad()
def test_forbidden_looks_are_those_of_pytorch_in_200_sentences():
    at, model = torch.Generator().manual_seed(0), network("translator_fr")
    cases = [drawn(at) for _ in range(CASES)]
    page = page_of("forbidden")
    page.eval(script("translator_fr", cu.live.bundle("translator_fr")))
    page.eval("globalThis.model = new live_engine.Transformer(live_bundles.translator_fr)")
    page.eval(f"globalThis.run = {FORBID}")
    free = 0.0  # how far the logits are from those without a ban
    for case, found in zip(cases, json.loads(page.call("run", cases)), strict=True):
        source, said = torch.tensor([case["source"]]), found["said"]
        with intervene(model) as acts:
            if case["words"]:
                acts.knock_out("cross_attention", keys=case["words"])
            if case["words"] and case["deeper"]:
                acts.knock_out("encoder.attention", keys=case["words"])
            for query, key in case["looks"]:
                if query <= len(said):
                    acts.knock_out("cross_attention", queries=query, keys=key)
            given = source, torch.tensor([source.shape[1]]), torch.tensor([[BOS, *said]])
            right = model(*given)[0]
        mine = torch.tensor(found["logits"])
        torch.testing.assert_close(mine, right[:, case["watched"]], atol=1e-4, rtol=0)
        free += float((model(*given)[0] - right).abs().max()) / CASES
    assert free > 1


def test_what_an_address_forbids_leaves_a_look_at_every_step():
    page = page_of("crossedOut")
    for forbid, line, words, looks in (
        ("4,1", "0.2", [4, 1], [[0, 2]]),
        ("0,1,2,3,4,5", "", [0, 1, 2, 3, 4], []),
        ("x,-1,9,1.5,2,2", "0,a.b,0.9,1.2", [2], []),
        ("0,1,2", "0.3,0.4,0.5,1.5", [0, 1, 2], [[0, 3], [0, 4], [1, 5]]),
    ):
        found = json.loads(page.eval(f"JSON.stringify(live_inside.crossedOut('{forbid}', '{line}', 6))"))  # fmt: skip
        assert found == {"words": words, "looks": looks}


@pytest.mark.parametrize(
    ("now", "before", "other"),
    [("abcd", "abcd", []), ("abd", "abcd", []), ("axcd", "abcd", [1]), ("xabc", "abc", [0]), ("", "ab", [])],
)  # fmt: skip
def test_words_that_are_new_are_those_that_were_not_said(now, before, other):
    found = engine(Translator.files()).eval(
        f"JSON.stringify(live_lines.fresh([...'{now}'], [...'{before}']))"
    )
    assert json.loads(found) == other


# In a page --------------------------------------------------------------------------------------


def widget():
    return cu.live.translator("she has a red car .")


def english(page: Page, word: str):
    return page.locator("[data-word]").filter(has_text=word).first


def test_a_word_is_crossed_out_and_comes_back(page: Page):
    said, before = part(page, "said"), part(page, "before")
    car = english(page, "car")
    car.press("Space")
    expect(car).to_be_focused()
    expect(car).to_have_attribute("aria-pressed", "true")
    expect(said).to_have_text("elle a une actrice rouge .")
    expect(before).to_contain_text("without car — before: elle a une voiture rouge .")
    expect(page.locator(".fresh")).to_have_text("actrice")
    expect(page.locator("[data-step].unsure")).to_have_text("actrice")
    expect(page.locator("[data-step][aria-current]")).to_have_text("actrice")
    bar = part(page, "next").locator("li").filter(has_text="voiture")
    expect(bar).to_contain_text("99 → 0 %")
    assert page.evaluate("live_address.link(document.forms[0])").endswith("forbid=4")
    page.locator("[data-step='4']").click()
    expect(part(page, "next")).to_contain_text("It has read other words than before")
    page.locator("[data-step='4']").press("Escape")
    expect(said).to_have_text("elle a une voiture rouge .")
    expect(before).to_be_empty()
    expect(page.locator(".fresh, [aria-pressed=true][data-word]")).to_have_count(0)


def test_one_look_is_crossed_out_at_its_step_only(page: Page):
    page.locator("[data-step='3']").click()
    page.locator(".across [data-look='3.4'] .hit").dispatch_event("click")
    expect(part(page, "said")).to_have_text("elle a une actrice rouge .")
    expect(part(page, "before")).to_contain_text("without car at word 4")
    assert page.evaluate("live_address.link(document.forms[0])").endswith("line=3.4")
    english(page, "car").click(modifiers=["Shift"])
    expect(part(page, "said")).to_have_text("elle a une voiture rouge .")


def test_the_last_look_stays_and_the_encoder_can_be_forbidden_too(page: Page):
    for word in page.locator("[data-word]").all():
        word.click()
    expect(page.locator("[data-word][aria-pressed=true]")).to_have_count(6)
    expect(part(page, "told")).to_have_text("It has to attend to something: the last word stays.")
    rows = page.locator("[data-part=table] tbody tr").all()
    assert {row.locator("td").last.text_content() for row in rows} == {"100"}
    page.get_by_role("button", name="undo").click()
    english(page, "car").click()
    page.get_by_role("checkbox", name="Other words have read car").check()
    expect(part(page, "next").locator("li").nth(1)).to_contain_text("écrivain")
    page.get_by_role("checkbox", name="Look closer").check()
    page.get_by_role("radio", name="English to English").check()
    assert set(part(page, "table").locator("tbody td:nth-child(6)").all_text_contents()) == {"0"}


def test_arrows_move_along_a_row_and_between_rows(page: Page):
    page.locator("[data-step='3']").click()
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-step='4']")).to_be_focused()
    expect(part(page, "next")).to_contain_text("Word 5 of 7: it says rouge")
    page.keyboard.press("ArrowUp")
    page.keyboard.press("ArrowRight")
    expect(page.locator("[data-word='1']")).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator("[data-step='4']")).to_be_focused()
    assert page.locator(".cu-words > [tabindex='0']").count() == 2


def test_a_find_is_a_link_and_each_that_is_offered_is_one(browser, file):
    with live_page(browser, file, "#live=translator.0&forbid=4") as page:
        expect(part(page, "said")).to_have_text("elle a une actrice rouge .")
        for find in page.locator("[data-find]").all():
            find.click()
            expect(page.locator("[data-word][aria-pressed=true]")).to_have_count(1)
            expect(part(page, "before")).to_contain_text("before:")
        page.goto(f"{file.as_uri()}#live=translator.0&line=3.4")
        expect(part(page, "before")).to_contain_text("without car at word 4")
        page.goto(f"{file.as_uri()}#live=translator.0")
        expect(part(page, "before")).to_be_empty()


LONG = "the old woman is in the house near the church ."


@pytest.mark.parametrize(("width", "sentence"), [(320, "she has a red car ."), (1280, LONG)])
def test_on_a_phone_and_where_it_is_long_the_rows_are_columns(browser, file, width, sentence):
    size = {"width": width, "height": 700}
    with live_page(browser, file, f"#live=translator.0&sentence={sentence}", viewport=size) as page:
        expect(page.locator("svg.beside")).to_be_visible()
        expect(page.locator("svg.across")).to_be_hidden()
        words = page.locator(".cu-words > button")
        assert min(words.evaluate_all("all => all.map((word) => word.offsetHeight)")) >= 44
        assert page.evaluate("document.documentElement.scrollWidth") <= width


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


def test_lines_begin_and_end_at_their_words(page: Page):
    """Nothing is measured when they are drawn; in both layouts each end is in the middle of its word."""
    for which, width, axis in (("across", 1000, 0), ("beside", 380, 1)):
        page.evaluate("width => { document.forms[0].style.width = `${width}px`; }", width)
        page.locator(f"svg.{which}").wait_for()
        ends = page.locator(f"svg.{which}").evaluate(ENDS)
        assert len(ends) >= 2
        assert all(abs(end[axis] - word[axis]) < 4 for line in ends for end, word in line)


def test_reduced_motion_shows_all_lines_at_once(browser, tmp_path):
    with live_page(browser, write_page(tmp_path, widget()), reduced_motion="reduce") as page:
        moving = "() => document.getAnimations().length"
        assert page.evaluate(moving) == 0
    with live_page(browser, tmp_path / "page.html") as page:
        page.wait_for_function("() => document.getAnimations().length > 5")


# The larger model, of pieces of words ----------------------------------------------------------


def test_the_larger_model_answers_when_it_has_come_and_its_pieces_are_words(browser, tmp_path):
    file = write_page(tmp_path, cu.live.translator("she has a red car .", everyday=True))
    with live_page(browser, file, reduced_motion="reduce") as page:
        expect(part(page, "said")).to_have_text("elle a une voiture rouge .")
        page.wait_for_function("() => globalThis.live_bundles.everyday_fr")
        page.get_by_role("textbox", name="English").fill("My grandmother’s neighbour forgot my umbrella")  # fmt: skip
        expect(page.get_by_role("combobox", name="Model")).to_have_value("everyday")
        words = page.locator("[data-word]")
        assert words.all_inner_texts()[:-1] == [
            "my",
            "grandmother's",
            "neighbour",
            "forgot",
            "my",
            "umbrella",
        ]
        pieces = part(page, "table").locator("thead th").count() - 2
        assert pieces > words.count(), "no word is in pieces: another sentence is needed"
        shares = words.evaluate_all("all => all.map((word) => Number(word.dataset.share ?? 0))")
        assert abs(sum(shares) - 100) <= len(shares)
        words.filter(has_text="umbrella").click()
        expect(part(page, "before")).to_contain_text("without umbrella — before:")
        expect(words.filter(has_text="umbrella")).not_to_have_attribute("data-share", "1")
        gone = part(page, "table").locator("tbody tr").first.locator("td").all_text_contents()
        assert gone[-2] == "0"  # before <eos>
        page.get_by_role("textbox", name="English").fill("I like ж")
        expect(part(page, "unknown")).to_have_text("It has no sign for ж.")
        page.locator("[data-find='0']").click()
        expect(part(page, "said")).to_have_text("elle a une actrice rouge .")
