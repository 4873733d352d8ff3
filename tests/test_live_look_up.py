"""The live look-up: weights, answers and slopes are PyTorch's; a query moves by mouse, keys and along its slope."""

import pytest
import torch
from browsing import load, part
from playwright.sync_api import Page, expect

import course_utils as cu
from course_utils.kit.live.widget import Live
from course_utils.kit.live.widgets.look_up import ANIMALS, QUERIES
from course_utils.studio.first_states import first_state

pytestmark = pytest.mark.slow

SCRIPT, INSIDE = "widgets/look_up", "find, walk"


def widget() -> Live:
    return cu.live.look_up()


def column(page: Page, number: int) -> list[float]:
    """A column of the table, without its sum."""
    rows = part(page, "table").locator("tbody tr").all()[:-1]
    texts = [row.locator("td").nth(number).text_content() for row in rows]
    return [float(text.replace("−", "-")) for text in texts]


# Numbers ----------------------------------------------------------------------------------------


def sparsemax(scores: torch.Tensor) -> torch.Tensor:
    """The point of the simplex that is nearest to the scores, found by halving: not as the script does it."""
    low, high = scores.max() - 1, scores.max()
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if (scores - middle).relu().sum() > 1 else (low, middle)
    inside = scores > high.detach()
    return (scores - (scores[inside].sum() - 1) / inside.sum()).relu()


WEIGH = {
    "softmax": lambda scores: scores.softmax(0),
    "nearest": lambda scores: torch.nn.functional.one_hot(scores.argmax(), len(scores)).double(),
    "sparsemax": sparsemax,
}


def deviation(page: Page) -> float:
    torch.manual_seed(0)
    worst = 0.0
    for kind, weigh in WEIGH.items():
        for temperature in (1e-3, 0.1, 0.7, 7.0):
            rows, query = torch.randn(6, 3).double(), torch.randn(2).double().requires_grad_()
            found = page.evaluate(
                """(given) => {
                    const found = live_inside.find(...given);
                    return [found.scores, found.weights, [found.answer], found.slope];
                }""",
                [query.tolist(), rows.tolist(), temperature, kind],
            )
            scores = -(query - rows[:, :2]).square().sum(1) / 2
            weights = weigh(scores / temperature)
            answer = weights @ rows[:, 2:]
            (slope,) = torch.autograd.grad(
                answer + 0 * query.sum(), query
            )  # nearest has no way back
            for mine, right in zip(found, (scores, weights, answer, slope), strict=True):
                far = (torch.tensor(mine).double() - right).abs().max().item()
                worst = max(worst, far if far == far else float("inf"))
    return worst


def test_scores_weights_answer_and_slope_are_those_of_pytorch(page: Page):
    load(page, SCRIPT, inside=INSIDE)
    assert deviation(page) < 1e-4


MISTAKES = {
    "the whole square": ("** 2) / 2 + 0", "** 2) + 0"),
    "nearer is less": ("-((query[0] - x)", "((query[0] - x)"),
    "hotter is sharper": ("(score - most) / temperature", "(score - most) * temperature"),
    "the largest is not taken away": ("(score - most)", "(score + 900)"),
    "the answer is a key": ("weights[i] * row[2]", "weights[i] * row[1]"),
    "a slope without the temperature": ("(row[axis] - query[axis])) / temperature", "row[axis])"),
    "the slope counts keys without weight": ("Number(weight > 0)", "1"),
    "sparsemax takes the last line": ("sorted[i] > each", "sorted[i] < 9"),
}


def test_each_mistake_is_found(page: Page):
    for mistake, changed in MISTAKES.items():
        load(page, SCRIPT, changed, inside=INSIDE)
        assert not deviation(page) < 1e-4, mistake


def test_a_walk_arrives_by_short_steps_and_stays_where_the_slope_is_0(page: Page):
    load(page, SCRIPT, inside=INSIDE)

    def walked(temperature: float, kind: str, wanted: float) -> tuple[torch.Tensor, float]:
        given = [list(QUERIES["kitten"]), list(ANIMALS.values()), temperature, kind]
        places = torch.tensor(
            page.evaluate("(given) => live_inside.walk(...given)", [*given, wanted])
        )
        steps = places.diff(dim=0).norm(dim=1)
        assert (steps < 0.02001).all()
        found = page.evaluate(
            "(given) => live_inside.find(...given)", [places[-1].tolist(), *given[1:]]
        )
        return places, found["answer"]

    assert walked(0.1, "softmax", 20)[1] == pytest.approx(20, abs=0.05)
    assert walked(1, "sparsemax", 20)[1] == pytest.approx(20, abs=0.05)
    assert len(walked(0.1, "nearest", 20)[0]) == 1
    for temperature, kind in ((0.1, "nearest"), (0.001, "softmax"), (0.1, "sparsemax")):
        assert walked(temperature, kind, 20)[1] < 15.001  # no more than the cat's
    places, answer = walked(0.1, "softmax", 70)  # beyond every value
    assert len(places) > 50 and answer < 65.001


# What is seen -----------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again_and_takes_the_readers_own_table():
    made = cu.live.look_up({"pig": (0.6, 0.7, 3), "whale": (1.6, 0, 90)}, {"calf": (0.6, 0.7)})
    expected = (
        "live.look_up({'pig': (0.6, 0.7, 3.0), 'whale': (1.6, 0.0, 90.0)}, {'calf': (0.6, 0.7)})"
    )
    assert repr(made) == expected
    html = first_state(made)
    assert "<td>−0.745</td>" in html, "no hyphen for a minus sign"
    assert 'max="1.7"' in html and "calf, size 0.60" in html
    said = "kitten, size 0.20, home 0.90, T = 0.1: the answer is 13.8 years."
    assert said in first_state(cu.live.look_up())
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


def test_a_button_moves_the_query_to_the_wanted_answer(page: Page):
    page.emulate_media(reduced_motion="reduce")
    go, said = page.get_by_role("button", name="Walk there"), part(page, "said")
    go.press("Enter")
    expect(said).to_contain_text("the answer is 20.0 years.")
    expect(said).to_contain_text("It arrived, after")
    page.get_by_role("button", name="kitten", exact=True).press("Enter")
    page.locator("[name=kind]").select_option("nearest")
    go.press("Enter")
    expect(said).to_contain_text("kitten, size 0.20, home 0.90")
    expect(said).to_contain_text(
        "Its slope is 0: a small step changes nothing. It stays there, after 0 steps."
    )
    page.emulate_media(reduced_motion="no-preference")
    page.locator("[name=kind]").select_option("softmax")
    page.get_by_label("Wanted").fill("18")
    go.press("Enter")
    expect(said).to_contain_text("the answer is 18.0 years.")
