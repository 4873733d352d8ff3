"""What SmolLM2 said without a token, and without a look in one layer: as it is stored, and found by the reader."""

from itertools import combinations

import pytest
from audit import CONTRAST, WCAG, broken_rules
from browsing import in_theme, live_page, part, write_page
from playwright.sync_api import Page, expect
from scripts import ask, load

import course_utils as cu
from course_utils.kit.runs import stored_runs
from course_utils.studio.first_states import first_states

JAPAN, EGYPT, MONTH = 0, 1, 4
FIRST = "No token from the question on may look at it."
CALM = {"reduced_motion": "reduce"}


def questions() -> list[dict]:
    return [run.config | run.examples[0] for run in stored_runs("real_weights", "questions")]


def countries() -> dict[str, dict]:
    runs = stored_runs("real_weights", "countries")
    return {run.config["country"]: run.examples[0] for run in runs}


# A question ---------------------------------------------------------------------------------------


def words_of(asked: dict) -> range:
    """Places of the question's own tokens."""
    return range(asked["tokens"].index("\n") + 1, asked["tokens"].index("<|im_end|>"))


def keeps(asked: dict, gone: str) -> bool:
    return asked["key"].lower() in asked["answers"][gone][0].lower()


def effects(asked: dict) -> list[str]:
    """Of each token, what happens without it."""
    whole = asked["answers"][""][0]
    return [
        ("same" if asked["answers"][str(i)][0] == whole else "other")
        if keeps(asked, str(i))
        else "gone"
        for i in range(len(asked["tokens"]))
    ]


def places(asked: dict, effect: str) -> list[int]:
    return [i for i, each in enumerate(effects(asked)) if each == effect]


@pytest.mark.parametrize("at", range(5))
def test_marks_and_numbers_of_the_search_follow_from_the_stored_answers(at):
    load("question")
    asked = questions()[at]
    own, total = words_of(asked), len(asked["tokens"])
    sets = [",".join(map(str, c)) for n in range(1, len(own) + 1) for c in combinations(own, n)]
    found = ask("question => studied(question)", asked)
    assert found["effects"] == effects(asked) and found["words"] == list(own)
    assert found["hasSets"] == all(key in asked["answers"] for key in sets) == (at != MONTH)
    if found["hasSets"]:
        right = [len(own) - len(key.split(",")) for key in sets if keeps(asked, key)]
        assert found["fewest"] == min(right)
    (html,) = first_states([cu.live.question(asked["question"])])
    assert f"For {total - len(places(asked, 'gone'))} of the {total} it still says" in html
    assert html.count('<span class="slot">?</span>') == len(places(asked, "gone"))
    assert ",".join(map(str, places(asked, "same"))) in asked["answers"]


def token(page: Page, place: int):
    return page.locator(f"form >> nth=0 >> [data-token='{place}']")


def said(page: Page) -> str:
    """The words of the answer, without their numbers."""
    return " ".join(part(page, "said").locator("b").all_inner_texts())


@pytest.mark.smoke
def test_forbidding_a_word_changes_the_answer_and_undo_brings_it_back(open_widget):
    asked = questions()[JAPAN]
    with open_widget(cu.live.question(), **CALM) as page:
        assert said(page) == asked["answers"][""][0]
        expect(part(page, "before")).to_contain_text("not whether it is right")
        token(page, 8).click()
        text, percents, _ = asked["answers"]["8"]
        assert said(page) == text and "Tokyo" not in text
        numbers = part(page, "said").locator("small").all_inner_texts()
        assert numbers == [f"{int(p) / 100:.2f}" for p in percents.split()]
        expect(token(page, 8)).to_have_attribute("aria-pressed", "true")
        expect(token(page, 8)).to_contain_text("≠")
        expect(part(page, "before").locator("s")).to_have_text(["Japan", "Tokyo."])
        fresh = part(page, "said").locator(".fresh b").all_inner_texts()
        assert "Tokyo." not in fresh and "United" in fresh and "capital" not in fresh
        expect(part(page, "heard")).to_contain_text(f"It answers: {text} Tokyo is gone.")
        page.get_by_role("button", name="allow again").click()
        assert said(page) == asked["answers"][""][0]
        expect(token(page, 8)).to_be_focused()
        token(page, 7).click()
        expect(part(page, "before")).to_contain_text("not a word changes")
        expect(token(page, 7)).to_contain_text("=")
        token(page, 7).click()
        expect(token(page, 7)).to_have_attribute("aria-pressed", "false")
        expect(token(page, 7)).to_have_attribute("aria-label", "of, no word changes")


def test_a_token_that_only_changes_other_words_has_its_own_mark(open_widget):
    asked = questions()[MONTH]
    place = places(asked, "other")[0]
    with open_widget(cu.live.question(asked["question"]), **CALM) as page:
        token(page, place).click()
        assert said(page) == asked["answers"][str(place)][0] != asked["answers"][""][0]
        expect(token(page, place)).to_contain_text("≈")


def test_of_the_two_equal_tokens_the_reader_learns_which_is_the_first_and_who_may_not_look(
    open_widget,
):
    asked = questions()[JAPAN]
    second = asked["tokens"].index("<|im_start|>", 1)
    with open_widget(cu.live.question(), **CALM) as page:
        expect(token(page, 0)).to_have_attribute("title", "the very first token")
        expect(token(page, second)).to_have_attribute("title", "the second of two")
        before = part(page, "before")
        token(page, 0).click()
        expect(before).to_contain_text("<|im_start|> (the very first token)")
        expect(before).to_contain_text(FIRST)
        expect(part(page, "heard")).to_contain_text(FIRST)
        token(page, second).click()
        expect(before).to_contain_text("<|im_start|> (the second of two): not a word changes")
        expect(before).not_to_contain_text("from the question on")
        token(page, 8).click()
        expect(before).not_to_contain_text("from the question on")


@pytest.mark.smoke
def test_the_search_ends_with_the_last_token_and_forbids_all_the_others_at_once(open_widget):
    asked = questions()[JAPAN]
    lost, same = places(asked, "gone"), places(asked, "same")
    with open_widget(cu.live.question(), **CALM) as page:
        side = part(page, "side")
        all_at_once = side.get_by_role("button", name="that change no word, at once")
        for i, place in enumerate([same[0], *lost]):
            expect(side).to_contain_text("Find the other three")
            expect(side.locator(".slot.full")).to_have_count(max(0, i - 1) if i else 0)
            expect(all_at_once).to_have_count(0)
            token(page, place).click()
        expect(side).to_contain_text("You found the other three.")
        expect(side.locator(".slot.full")).to_have_text(
            [asked["tokens"][place].strip() for place in lost]
        )
        expect(side.locator("li")).to_contain_text(["no word changes 1", "0", "Tokyo is gone 3"])
        all_at_once.click()
        expect(all_at_once).to_have_attribute("aria-pressed", "true")
        text = asked["answers"][",".join(map(str, same))][0]
        assert said(page) == text and "Tokyo" not in text
        expect(side).to_contain_text("but not all thirteen together")
        expect(part(page, "before")).to_contain_text("without thirteen of the 16 tokens")
        all_at_once.click()
        assert said(page) == asked["answers"][""][0]
        expect(side).not_to_contain_text("but not all thirteen together")


def test_several_words_are_forbidden_at_once_down_to_the_fewest(open_widget):
    asked = questions()[JAPAN]
    own = words_of(asked)
    right = [
        key
        for key in asked["answers"]
        if key and {*map(int, key.split(","))} <= {*own} and keeps(asked, key)
    ]
    best = max(right, key=lambda key: len(key.split(",")))
    with open_widget(cu.live.question(), **CALM) as page:
        token(page, 0).click()
        page.get_by_role("checkbox", name="Forbid several words at once").check()
        side = part(page, "side")
        expect(token(page, 0)).to_be_disabled()
        expect(token(page, 0)).to_have_attribute("aria-pressed", "false")
        assert said(page) == asked["answers"][""][0]
        for place in best.split(","):
            token(page, int(place)).click()
        assert said(page) == asked["answers"][best][0]
        expect(side).to_contain_text("Three words are left, and it says Tokyo.")
        expect(side).to_contain_text("Three are enough, and fewer never are.")
        expect(side.locator(".pips .on")).to_have_count(3)
        last = next(place for place in own if str(place) not in best.split(","))
        token(page, last).click()
        expect(side).to_contain_text("Two words are left, and Tokyo is gone.")
        expect(side.locator(".pips .lost")).to_have_count(2)
        expect(part(page, "heard")).to_contain_text("Two words are left, and Tokyo is gone.")
        page.get_by_role("checkbox").uncheck()
        assert said(page) == asked["answers"][""][0]


def test_another_question_keeps_what_was_tried_and_offers_sets_where_all_are_stored(open_widget):
    with open_widget(cu.live.question(), **CALM) as page:
        token(page, 8).click()
        page.get_by_role("radio", name="first month of the year").check(force=True)
        expect(part(page, "side")).to_contain_text("it still says January")
        expect(page.get_by_role("checkbox")).to_have_count(0)
        assert said(page) == questions()[MONTH]["answers"][""][0]
        expect(page.locator("[data-token][data-effect=gone]")).to_have_count(0)
        page.get_by_role("radio", name="capital of Japan").check(force=True)
        expect(token(page, 8)).to_have_attribute("data-effect", "gone")
        expect(token(page, 8)).to_have_attribute("aria-pressed", "false")
        expect(page.get_by_role("checkbox")).to_be_visible()


def test_tokens_are_reached_and_forbidden_by_keys(open_widget):
    with open_widget(cu.live.question(), **CALM) as page:
        token(page, 6).focus()
        for key in ("ArrowRight", "ArrowRight", "Enter"):
            page.keyboard.press(key)
        expect(token(page, 8)).to_be_focused()
        assert said(page) == questions()[JAPAN]["answers"]["8"][0]
        for key in ("ArrowLeft", "Space"):
            page.keyboard.press(key)
        assert said(page) == questions()[JAPAN]["answers"]["7"][0]
        expect(token(page, 8)).to_have_attribute("aria-pressed", "false")


def test_an_address_brings_back_a_question_and_one_of_nonsense_changes_nothing(open_widget):
    asked = questions()[EGYPT]
    state = f"question={EGYPT}&off=3.4&several=1&tried=1.0 0.8&least=1.5"
    with open_widget(cu.live.question(), **CALM) as page:
        whole = questions()[JAPAN]["answers"][""][0]
        for bad in (
            *("off=99", "off=0.8", "off=3.x", "off=-1", "off=<b>"),
            *("several=1&off=0", "tried=9.9 0.99 x&least=0.1 7.7 -"),
        ):
            page.goto(page.url.split("#")[0] + f"#live=question.0&{bad}")
            assert said(page) == whole, bad
            expect(page.locator("[data-effect=gone]")).to_have_count(0)
        page.goto(page.url.split("#")[0] + f"#live=question.0&{state}")
        assert said(page) == asked["answers"]["3,4"][0]
        expect(part(page, "side")).to_contain_text("Five words are left")
        expect(part(page, "side")).to_contain_text("The fewest so far: five.")
        expect(token(page, 0)).to_have_attribute("data-effect", "gone")
        expect(token(page, 8)).to_have_attribute("data-effect", "")


# Layers -------------------------------------------------------------------------------------------


def is_right(country: dict, row: list) -> bool:
    return row[1][0][0].strip() == country["piece"]


def cliff(country: dict, mode: str) -> int:
    """Where a walk from the beginning stops: the answer is lost, or it is there again; else the last layer."""
    right = [is_right(country, row) for row in country[mode]]
    for layer in range(1, 30):
        if right[layer - 1] != right[layer] and right[layer] == (mode == "from"):
            return layer
    return 29


def layer(page: Page) -> int:
    return int(page.locator("[name=layer]").input_value())


def put(page: Page, value: int) -> None:
    page.locator("[name=layer]").fill(str(value))


def seen(page: Page) -> int:
    """How many columns there are, with the one of no layer."""
    return page.locator("[data-part=strip] > div:not(.unseen)").count()


@pytest.mark.smoke
def test_a_walk_stops_in_layer_23_for_japan(open_widget):
    japan = countries()["Japan"]
    with open_widget(cu.live.layers()) as page:
        assert (layer(page), seen(page)) == (-1, 1)
        expect(part(page, "sentence")).to_contain_text("The capital of Japan is Tokyo")
        walk = part(page, "walk")
        walk.click()
        expect(walk).to_have_text("Stop")
        expect(walk).to_have_text("Walk through the layers")
        assert (layer(page), seen(page)) == (23, 25) and cliff(japan, "alone") == 23
        wrong = japan["alone"][23][1][0][0].strip()
        expect(part(page, "sentence").locator("strong")).to_have_text(wrong)
        expect(part(page, "sentence").locator("strong")).to_have_class("wrong")
        expect(part(page, "sentence")).to_contain_text("not in layer 23")
        story = part(page, "story")
        expect(story).to_contain_text("There. One look in one layer is missing, Tokyo falls from")
        expect(story).to_contain_text(f"{japan['whole'][0]:.2f} to {japan['alone'][23][0]:.2f}")
        page.emulate_media(reduced_motion="reduce")
        walk.click()
        assert (layer(page), seen(page)) == (29, 31)


@pytest.mark.parametrize("mode", ["alone", "from"])
def test_a_walk_stops_for_each_country_where_its_stored_answers_turn(open_widget, mode):
    with open_widget(cu.live.layers(), **CALM) as page:
        page.locator(f"[name=mode][value={mode}]").check()
        for name, country in countries().items():
            button = page.locator(f"[data-country='{name}']")
            if button.count():
                button.click()
            else:
                page.get_by_role("combobox", name="Another country").select_option(name)
            expect(part(page, "sentence")).to_contain_text(f"The capital of {name} is")
            assert layer(page) == -1
            part(page, "walk").click()
            assert layer(page) == cliff(country, mode), name
            top = [p for _, p in country[mode][layer(page)][1]]
            rows = part(page, "odds").locator("li").all_inner_texts()
            shown = [float(row.split()[-1]) for row in rows]
            assert shown == pytest.approx(top, abs=0.0051), name


def test_columns_appear_only_where_the_reader_has_been(open_widget):
    with open_widget(cu.live.layers(), **CALM) as page:
        put(page, 20)
        assert seen(page) == 2, "a jump passes no layer"
        for _ in range(3):
            page.locator("[name=layer]").press("ArrowRight")
        assert (layer(page), seen(page)) == (23, 5)
        put(page, 26)
        assert seen(page) == 8, "a short way passes those between"
        page.locator("[data-country=France]").click()
        assert (layer(page), seen(page)) == (-1, 1)
        put(page, 23)
        expect(part(page, "story")).to_contain_text("same layer for both countries")
        page.locator("[data-country=Japan]").click()
        assert seen(page) == 8
        page.locator("[name=mode][value=from]").check()
        assert seen(page) == 1
        expect(page.locator("[name=layer]")).to_have_attribute(
            "aria-valuetext", "allowed in every layer: Tokyo, Tokyo 0.74"
        )


def test_the_columns_can_be_dragged_along(open_widget):
    with open_widget(cu.live.layers(), **CALM) as page:
        box = part(page, "strip").bounding_box()
        across, y = (lambda i: box["x"] + (i + 1.5) * box["width"] / 31), box["y"] + 40
        page.mouse.move(across(20), y)
        page.mouse.down()
        assert layer(page) == 20
        page.mouse.move(across(23), y, steps=6)
        assert (layer(page), seen(page)) == (23, 5)
        page.mouse.up()
        page.mouse.move(across(28), y)
        assert layer(page) == 23


def test_an_address_brings_back_layers_and_one_of_nonsense_changes_nothing(open_widget):
    norway = countries()["Norway"]
    state = "country=Norway&layer=14&seen=Norway.alone.fff&mode=alone"
    with open_widget(cu.live.layers(), **CALM) as page:
        for bad in ("country=Atlantis", "country=<b>&layer=3", "mode=all", "seen=Japan.x.7 a.b -"):
            page.goto(page.url.split("#")[0] + f"#live=layers.0&{bad}")
            expect(part(page, "sentence")).to_contain_text("The capital of Japan is")
            assert (layer(page), seen(page)) == (-1, 1), bad
        page.goto(page.url.split("#")[0] + "#live=layers.0&layer=99&seen=Japan.alone.-1")
        assert (layer(page), seen(page)) == (29, 2)
        page.goto(page.url.split("#")[0] + f"#live=layers.0&{state}")
        assert (layer(page), seen(page)) == (14, 13)
        told = f"it still says Oslo, with {norway['alone'][14][0]:.2f}"
        expect(part(page, "story")).to_contain_text(told)


def test_where_the_whole_answer_is_wrong_the_page_says_so(open_widget):
    egypt = countries()["Egypt"]
    with open_widget(cu.live.layers("Egypt"), **CALM) as page:
        said = egypt["whole"][1][0][0].strip()
        assert said != "Cairo"
        expect(part(page, "story")).to_contain_text(f"still the likeliest next word is {said}, and")
        assert page.get_by_role("combobox").input_value() == "Egypt"


# Both ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["question", "layers"])
@pytest.mark.parametrize("width", [360, 1280])
def test_axe_finds_nothing_and_nothing_is_wider_than_the_page(browser, tmp_path, kind, width):
    file = write_page(tmp_path, getattr(cu.live, kind)())
    states = {
        "question": ("", "off=0&tried=0.8 0.6", "several=1&off=3.4", "question=4&off=9"),
        "layers": ("", "layer=23&seen=Japan.alone.ffffff", "country=Germany&mode=from&layer=23"),
    }
    for state in states[kind]:
        options = CALM | {"viewport": {"width": width, "height": 800}}
        with live_page(browser, file, f"#live={kind}.0&{state}", **options) as page:
            assert broken_rules(page, WCAG, "form") == []
            assert page.evaluate("document.documentElement.scrollWidth") <= width, state
            in_theme(page, "dark")
            assert broken_rules(page, CONTRAST, "form") == []


@pytest.mark.parametrize("kind", ["question", "layers"])
def test_on_a_phone_no_state_is_wider_than_the_page(browser, tmp_path, kind):
    file = write_page(tmp_path, getattr(cu.live, kind)())
    states = {
        "question": [
            f"question={i}&off={key.replace(',', '.')}"
            for i, asked in enumerate(questions())
            for key in asked["answers"]
            if key.isdigit() or key == ",".join(map(str, places(asked, "same")))
        ],
        "layers": [
            f"country={name}&mode={mode}&layer=22"
            for name in countries()
            for mode in ("alone", "from")
        ],
    }
    with live_page(browser, file, **CALM | {"viewport": {"width": 360, "height": 740}}) as page:
        for state in states[kind]:
            page.goto(f"{file.as_uri()}#live={kind}.0&{state}")
            assert page.evaluate("document.documentElement.scrollWidth") <= 360, state
