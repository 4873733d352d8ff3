"""The live look-up: scores, weights and answers are PyTorch's, and the query moves by mouse and by keys."""

import pytest
import torch
from browsing import load, part
from playwright.sync_api import Page, expect

import course_utils as cu
from course_utils.kit.live.widget import Live
from course_utils.kit.live.widgets.look_up import ANIMALS, QUERIES

pytestmark = pytest.mark.slow

SCRIPT, INSIDE = "widgets/look_up", "weightsOf, answerOf"


def widget() -> Live:
    return cu.live.look_up()


def column(page: Page, number: int) -> list[float]:
    """A column of the table, without its sum."""
    rows = part(page, "table").locator("tbody tr").all()[:-1]
    texts = [row.locator("td").nth(number).text_content() for row in rows]
    return [float(text.replace("−", "-")) for text in texts]


# Numbers ----------------------------------------------------------------------------------------


def deviation(page: Page) -> float:
    torch.manual_seed(0)
    worst = 0.0
    for temperature in (1e-3, 0.1, 7.0):
        rows, query = torch.randn(6, 3).double(), torch.randn(2).double()
        found = page.evaluate(
            """([query, rows, temperature]) => {
                const found = live_inside.weightsOf(query, rows, temperature);
                return [found.scores, found.weights, [live_inside.answerOf(rows, found.weights)]];
            }""",
            [query.tolist(), rows.tolist(), temperature],
        )
        scores = -(query - rows[:, :2]).square().sum(1) / 2
        weights = (scores / temperature).softmax(0)
        for mine, right in zip(found, (scores, weights, weights @ rows[:, 2:]), strict=True):
            far = (torch.tensor(mine).double() - right).abs().max().item()
            worst = max(worst, far if far == far else float("inf"))
    return worst


def test_scores_weights_and_the_answer_are_those_of_pytorch(page: Page):
    load(page, SCRIPT, inside=INSIDE)
    assert deviation(page) < 1e-4


MISTAKES = {
    "the whole square": ("** 2) / 2 + 0", "** 2) + 0"),
    "nearer is less": ("-((query[0] - x)", "((query[0] - x)"),
    "hotter is sharper": ("(score - most) / temperature", "(score - most) * temperature"),
    "the largest is not taken away": ("(score - most)", "(score + 900)"),
    "the answer is a key": ("weights[i] * row[2], 0)", "weights[i] * row[1], 0)"),
}


def test_each_mistake_is_found(page: Page):
    for mistake, changed in MISTAKES.items():
        load(page, SCRIPT, changed, inside=INSIDE)
        assert not deviation(page) < 1e-4, mistake


# What is seen -----------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again_and_takes_the_readers_own_table():
    made = cu.live.look_up({"pig": (0.6, 0.7, 3), "whale": (1.6, 0, 90)}, {"calf": (0.6, 0.7)})
    expected = (
        "live.look_up({'pig': (0.6, 0.7, 3.0), 'whale': (1.6, 0.0, 90.0)}, {'calf': (0.6, 0.7)})"
    )
    assert repr(made) == expected
    assert "<td>−0.745</td>" in made.form(), "no hyphen for a minus sign"
    assert 'max="1.7"' in made.form() and "calf, size 0.60" in made.form()
    assert "kitten, size 0.20, home 0.90, T = 0.1: the answer is 13.8 years." in cu.live.look_up().form()  # fmt: skip
    for given in ({"animals": {}}, {"queries": {}}):
        with pytest.raises(ValueError, match="is empty; one entry is needed"):
            cu.live.look_up(**given)


def test_each_word_is_asked_for(page: Page):
    for word, place in (ANIMALS | QUERIES).items():
        page.get_by_role("button", name=word, exact=True).press("Enter")
        size, home = place[:2]
        expect(part(page, "said")).to_contain_text(f"{word}, size {size:.2f}, home {home:.2f}")
    keys = torch.tensor(list(ANIMALS.values()))
    scores = -(torch.tensor([1.0, 1.0]) - keys[:, :2]).square().sum(1) / 2
    assert column(page, 0) == pytest.approx(scores.tolist(), abs=6e-4)
    assert column(page, 1) == pytest.approx((scores / 0.1).softmax(0).tolist(), abs=6e-3)


def test_the_query_is_moved_by_keys_and_the_temperature_turned(page: Page):
    page.get_by_role("slider", name="size").press("ArrowRight")
    expect(part(page, "said")).to_contain_text("Your query, size 0.21, home 0.90")
    temperature = page.get_by_role("slider", name="Temperature T")
    temperature.press("Home")
    expect(temperature).to_have_attribute("aria-valuetext", "0.001")
    expect(part(page, "said")).to_contain_text("the answer is 15.0 years.")
    temperature.press("End")
    expect(part(page, "said")).to_contain_text("the answer is 24.4 years.")
    assert column(page, 1) == [0.2] * 5


def test_the_query_is_dragged_onto_a_key(page: Page):
    plane = part(page, "plane")
    plane.scroll_into_view_if_needed()
    box, ring = plane.bounding_box(), plane.locator("circle.cu-live-ring").nth(3).bounding_box()
    page.mouse.move(box["x"] + 100, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2, steps=4)
    page.mouse.up()
    page.get_by_role("slider", name="Temperature T").press("Home")
    expect(part(page, "said")).to_contain_text("the answer is 28.0 years.")  # of the horse
    assert float(page.locator("[name=size]").input_value()) == pytest.approx(0.8, abs=0.02)
