"""Kernel regression in a page: its numbers are the library's, its slope autograd's, and all of it answers to keys."""

import re
from itertools import product

import pytest
import torch
from browsing import live_page, load, part
from playwright.sync_api import Page, expect

import course_utils as cu
from course_utils.kit.live.widget import Live
from course_utils.pooling import kernel_weights, leave_one_out_error
from course_utils.studio.first_states import first_state

pytestmark = pytest.mark.slow

KERNELS = "gaussian", "boxcar", "triangular", "epanechnikov"


def widget() -> Live:
    return cu.live.kernel_regression()


@pytest.fixture
def page(browser, file):
    with live_page(browser, file) as page:
        page.locator("summary").click()
        yield page


def shown(page: Page) -> tuple[torch.Tensor, torch.Tensor]:
    """The points as they stand in the form."""
    pairs = page.locator("[name=points]").input_value().split(",")
    points = torch.tensor([[float(n) for n in pair.split()] for pair in pairs], dtype=torch.float64)
    return points[:, 0], points[:, 1]


def put(page: Page, name: str, value) -> None:
    """Move a slider or a hidden control there."""
    page.locator(f"[name={name}]").evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); }",
        str(value),
    )


# Numbers ----------------------------------------------------------------------------------------

RUN = """cases => cases.map(({ queries, points, kernel, width }) => {
    const { weights, average, leaveOneOut } = live_pooling, keys = points.map(([x]) => x);
    const { error, slope } = leaveOneOut(points, kernel, width);
    return {
        weights: queries.map(query => weights(query, keys, kernel, width)),
        averages: queries.map(query => average(query, points, kernel, width)),
        error: [error], slope: [slope],
    };
})"""


def slope_of(error: torch.Tensor, log_width: torch.Tensor) -> torch.Tensor:
    """By autograd; 0 where there is none."""
    if error.isfinite() and error.requires_grad:
        return torch.autograd.grad(error, log_width)[0]
    return torch.zeros(())


def cases() -> list[tuple[dict, dict]]:
    """What a page is asked, and what PyTorch answers."""
    made = []
    for kernel, width in product(KERNELS, (0.002, 0.02, 0.3, 1.1, 8.0)):
        points, queries = torch.rand(12, 2).double() * 5, torch.rand(4).double() * 5
        x, y = points.T
        log = torch.tensor(width, dtype=torch.float64).log().requires_grad_()
        error = leave_one_out_error(x, y, kernel=kernel, width=log.exp())
        weights = kernel_weights(queries, x, kernel=kernel, width=width)
        asked = {"queries": queries.tolist(), "points": points.tolist()}
        answer = {"weights": weights, "averages": weights @ y}
        answer |= {"error": error[None], "slope": slope_of(error, log)[None]}
        made.append((asked | {"kernel": kernel, "width": width}, answer))
    return made


def worst(page: Page) -> float:
    """The largest difference to PyTorch; infinite where one is finite and the other is not."""
    torch.manual_seed(1)
    made, difference = cases(), 0.0
    found = page.evaluate(RUN, [asked for asked, _ in made])
    for mine, (_, answer) in zip(found, made, strict=True):
        for name, right in answer.items():
            got = torch.tensor(mine[name], dtype=torch.float64)
            right = right.detach().double()
            if not torch.equal(got.isfinite(), right.isfinite()):
                return float("inf")
            apart = (got - right).nan_to_num(posinf=0, neginf=0).abs().max().item()
            difference = max(difference, apart)
    return difference


def test_weights_averages_errors_and_slopes_are_those_of_pytorch(page: Page):
    assert worst(page) < 1e-6


MISTAKES = {
    "no square of the width": ("/ width / width", "/ width"),
    "the nearest key is not taken away": ("(distance - nearest)", "(distance)"),
    "the point itself is left in": ("filter((_, j) => j !== i)", "filter(() => true)"),
    "a Gaussian without its half": ("Math.exp(-s / 2), slope", "Math.exp(-s), slope"),
    "the slope of the sum of weights is forgotten": ("- predicted * total(rises)", ""),
    "half the slope": ("2 * (predicted - y) * change", "(predicted - y) * change"),
    "the slope of a triangle as of a parabola": ("? Math.sqrt(s) : 0", "? 2 * s : 0"),
    "an error where a point has no neighbor": ("if (Number.isNaN(error))", "if (false)"),
}


def test_each_mistake_is_found(page: Page):
    for mistake, changed in MISTAKES.items():
        load(page, "pooling", changed)
        assert not worst(page) < 1e-6, mistake


def test_the_steps_are_those_of_the_chapter(page: Page):
    put(page, "width", 2)
    x, y = shown(page)
    parameter = torch.tensor(2.0, dtype=torch.float64).log().requires_grad_()
    optimizer = torch.optim.Adam([parameter], lr=0.05)
    for _ in range(12):
        optimizer.zero_grad()
        leave_one_out_error(x, y, width=parameter.exp()).backward()
        optimizer.step()
        part(page, "step").click()
        found = float(page.locator("[name=width]").input_value())
        assert found == pytest.approx(parameter.exp().item(), abs=1e-6)


# What is seen -----------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again_and_its_first_state_is_there_without_scripts():
    made = cu.live.kernel_regression(0.5)
    assert repr(made) == "live.kernel_regression(0.5)"
    html = first_state(cu.live.kernel_regression())
    assert not re.search(r">[^<]*-\d", html), "a hyphen for a minus sign"
    assert html.count("<circle") == 40 + 3
    assert "the average is 3.85" in html
    with pytest.raises(ValueError, match="noise"):
        cu.live.kernel_regression(-1.0)


def test_query_kernel_and_width_give_the_average_of_the_library(page: Page):
    query = page.get_by_role("slider", name="Query q")
    query.press("Home")
    page.get_by_role("combobox", name="Kernel").select_option("epanechnikov")
    slider = page.get_by_role("slider", name="Width σ")
    slider.press("End")
    x, y = shown(page)
    width = float(page.locator("[name=width]").input_value())
    weights = kernel_weights(x.new_zeros(1), x, kernel="epanechnikov", width=width)[0]
    expect(part(page, "said")).to_contain_text(f"the average is {weights @ y:.2f}")
    expect(part(page, "said")).to_contain_text(f"The longest bar is a weight of {weights.max():.2f}.")  # fmt: skip
    length = len(part(page, "fit").get_attribute("d").split("L"))
    assert length == 49  # from 0 to 2.4, where it was first
    page.get_by_role("checkbox", name="whole curve").check()
    assert len(part(page, "fit").get_attribute("d").split("L")) == 101
    expect(query).to_have_attribute("aria-valuetext", "0.00")
    slider.press("Home")
    put(page, "query", 1.25)
    expect(part(page, "said")).to_contain_text("no point is in reach")
    expect(part(page, "learned")).to_contain_text("a point has no other in reach")


def test_points_are_dragged_added_and_removed_by_the_mouse(page: Page):
    plot = part(page, "plot")
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    at = lambda x, y: (box["x"] + x * box["width"] / 440, box["y"] + y * box["width"] / 440)  # noqa: E731
    first = plot.locator("[data-part=points] circle").first
    place = [float(first.get_attribute(name)) for name in ("cx", "cy")]
    page.mouse.move(*at(*place))
    page.mouse.down()
    page.mouse.move(*at(34 + 396 * 0.6, 60), steps=3)
    page.mouse.up()
    x, y = shown(page)
    assert len(x) == 40
    assert x[0].item() == pytest.approx(3, abs=0.03)
    low, high = (float(plot.get_attribute(f"data-{end}")) for end in ("low", "high"))
    assert y[0].item() == pytest.approx(low + 190 / 240 * (high - low), abs=0.05)
    page.mouse.click(*at(400, 60))
    assert len(shown(page)[0]) == 41
    expect(part(page, "point-text")).to_have_text("41 of 41")
    page.get_by_role("button", name="Remove").click()
    assert len(shown(page)[0]) == 40
    page.mouse.move(*at(34 + 396 * 0.48, 300))
    page.mouse.down()
    page.mouse.move(*at(34 + 396 * 0.8, 300))
    page.mouse.up()
    expect(page.get_by_role("slider", name="Query q")).to_have_attribute("aria-valuetext", "4.00")
    page.get_by_role("button", name="First points").click()
    assert shown(page)[0][0].item() < 1


def test_points_are_moved_added_and_removed_by_keys(page: Page):
    before, _ = shown(page)
    page.get_by_role("slider", name="Point").press("ArrowRight")
    expect(part(page, "point-text")).to_have_text("2 of 40")
    page.get_by_role("slider", name="x", exact=True).press("End")
    page.get_by_role("slider", name="y", exact=True).press("PageUp")
    x, _ = shown(page)
    assert x[1] == 5 and torch.equal(x[2:], before[2:])
    page.get_by_role("button", name="Add at the query").press("Enter")
    assert len(shown(page)[0]) == 41 and shown(page)[0][-1].item() == 2.4
    remove = page.get_by_role("button", name="Remove")
    for _ in range(39):
        remove.press("Enter")
    expect(remove).to_be_disabled()
    assert len(shown(page)[0]) == 2


def test_the_width_is_learned_step_by_step_played_and_paused(page: Page):
    put(page, "width", 2)
    learned, play = part(page, "learned"), part(page, "play")
    part(page, "step").click()
    expect(learned).to_contain_text("Step 1: width 1.902, leave-one-out error 1.5")
    play.press("Enter")
    expect(play).to_have_text("Pause")
    assert part(page, "said").get_attribute("aria-live") == "off"
    expect(learned).to_contain_text(re.compile("Step [2-9]"))
    play.press("Enter")
    expect(learned).to_contain_text("Paused.")
    expect(play).to_have_text("Play")
    assert part(page, "said").get_attribute("aria-live") == "polite"
    assert part(page, "trail").get_attribute("d").startswith("M")
    put(page, "width", 1)
    expect(learned).to_contain_text("Step 0: width 1.000")
    assert part(page, "trail").get_attribute("d") == ""


def test_without_motion_play_shows_the_end_at_once(browser, file):
    with live_page(browser, file, reduced_motion="reduce") as page:
        page.locator("summary").click()
        put(page, "width", 2)
        part(page, "play").click()
        expect(part(page, "learned")).to_contain_text("Step 200: width 0.32")
        expect(part(page, "play")).to_have_text("Play")


# For everyone -----------------------------------------------------------------------------------


def test_an_address_that_holds_nonsense_leaves_the_first_state(browser, file):
    page = browser.new_page()
    page.goto(f"{file.as_uri()}#live=kernel_regression.0&points=1%202,x%203")
    page.locator("form[data-ready]").wait_for()
    assert page.locator("[name=points]").input_value() != "1%202,x%203".replace("%20", " ")
    assert part(page, "said").text_content()
    page.close()
