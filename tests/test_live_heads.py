"""Live heads: weights and shares are PyTorch's, for every number of look-ups and of heads."""

import math

import pytest
import torch
from browsing import load, part
from playwright.sync_api import Page, expect

import course_utils as cu
from course_utils.kit.live.widget import Live
from course_utils.kit.live.widgets.heads import DRAWERS
from course_utils.studio.first_states import first_state

pytestmark = pytest.mark.slow

SCRIPT, INSIDE = "widgets/heads", "weightsOf, sharesOf, mostRight"


def widget() -> Live:
    return cu.live.heads()


# Numbers ----------------------------------------------------------------------------------------


def layer_by_hand(request: str, num_heads: int, sharpness: float) -> cu.MultiHeadAttention:
    """The further page's weights, for any number of heads: each compares a block of 8 features with the label."""
    layer = cu.MultiHeadAttention(8 * num_heads, num_heads).double()
    copied = torch.zeros(8 * num_heads, 8 * num_heads)
    copied[:8] = torch.eye(8).repeat(1, num_heads)
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter.zero_()
        layer.query_proj.weight.copy_(sharpness * torch.eye(8 * num_heads))
        layer.key_proj.weight.copy_(copied.T)
    return layer


def right_weights(request: str, num_heads: int, sharpness: float) -> torch.Tensor:
    query = torch.zeros(num_heads, 8).double()
    for place, letter in enumerate(request):
        query[place % num_heads, DRAWERS.index(letter)] = 1
    keys = torch.cat([torch.eye(8), torch.zeros(8, 8 * num_heads - 8)], dim=1).double()[None]
    layer = layer_by_hand(request, num_heads, sharpness)
    with cu.record_attention(layer) as maps:
        layer(query.view(1, 1, -1), keys, keys)
    return next(iter(maps.values()))[0, :, 0]


def shares_of(request: str, num_heads: int, sharpness: float) -> tuple[list[float], float]:
    """Over all 256 fillings: how often each answer is right, and how often all are.

    Of r look-ups that share a head, number t is white if more than t of them are.
    """
    balls = torch.cartesian_prod(*[torch.tensor([1.0, -1.0])] * 8).double()
    numbers = balls @ right_weights(request, num_heads, sharpness).T
    right = []
    for place, letter in enumerate(request):
        head, shared = place % num_heads, len(range(place % num_heads, len(request), num_heads))
        white = numbers[:, head] > (2 * (place // num_heads) + 1 - shared) / shared
        right.append(white == (balls[:, DRAWERS.index(letter)] > 0))
    every = torch.stack(right).double()
    return every.mean(dim=1).tolist(), every.prod(dim=0).mean().item()


def most_right(k: int, num_heads: int) -> float:
    """No linear readout of so many numbers is right about all k in a larger share of the cases."""
    return sum(math.comb(k, i) for i in range(min(k, num_heads) + 1)) / 2**k


def deviation(page: Page) -> float:
    worst = 0.0
    for request in ("C", "CF", "GAB", "HDCA"):
        for num_heads in (1, 2, 3, 4):
            for sharpness in (4.0, 30.0):
                weights, each, every, most = page.evaluate(
                    """([request, heads, sharpness]) => {
                        const asked = [...request], { each, every } = live_inside.sharesOf(asked, heads, sharpness);
                        const most = live_inside.mostRight(asked.length, heads);
                        return [live_inside.weightsOf(asked, heads, sharpness), each, every, most];
                    }""",
                    [request, num_heads, sharpness],
                )
                right = right_weights(request, num_heads, sharpness)
                worst = max(worst, (torch.tensor(weights).double() - right).abs().max().item())
                theirs = shares_of(request, num_heads, sharpness)
                mine = [*each, every, most]
                theirs = [*theirs[0], theirs[1], most_right(len(request), num_heads)]
                worst = max(worst, *(abs(a - b) for a, b in zip(mine, theirs, strict=True)))
    return worst


def test_weights_and_shares_are_those_of_pytorch(page: Page):
    load(page, SCRIPT, inside=INSIDE)
    assert deviation(page) < 1e-4


MISTAKES = {
    "not scaled": ("sharpness / Math.sqrt(8)", "sharpness"),
    "each look-up by the first head": ("place % heads === head)", "head === 0)"),
    "the cut of another look-up": ("2 * Math.floor(place / heads) + 1 - shared", "1 - shared"),
    "one filling is forgotten": ("range(256)", "range(255)"),
    "one piece too few": ("i <= Math.min(k, heads)", "i < Math.min(k, heads)"),
}


def test_each_mistake_is_found(page: Page):
    for mistake, changed in MISTAKES.items():
        load(page, SCRIPT, changed, inside=INSIDE)
        assert not deviation(page) < 1e-4, mistake


def test_as_many_heads_as_look_ups_are_always_right_and_fewer_never_beat_the_bound():
    for request in ("C", "CF", "GAB", "HDCA"):
        for num_heads in (1, 2, 3, 4):
            _, every = shares_of(request, num_heads, 30.0)
            assert every <= most_right(len(request), num_heads)
            assert (every == 1) == (num_heads >= len(request))
    assert shares_of("CF", 1, 30.0)[1] == 0.75 == most_right(2, 1)


# What is seen -----------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again_and_refuses_what_it_cannot_show():
    assert repr(cu.live.heads("GAB", 1)) == "live.heads('GAB', 1)"
    html = first_state(cu.live.heads())
    assert "all at once 100 %" in html
    for request in ("", "CC", "ABCDE", "cf"):
        with pytest.raises(ValueError, match="one to four different letters"):
            cu.live.heads(request)
    with pytest.raises(ValueError, match="num_heads=5"):
        cu.live.heads("CF", 5)


def test_one_head_for_two_look_ups_is_right_in_three_of_four_cases(page: Page):
    page.get_by_role("radio", name="2").press("ArrowLeft")
    told = "all at once 75 %. No linear readout of as many heads has more than 75 %."
    expect(part(page, "shares")).to_contain_text(told)
    page.get_by_role("button", name="C white").press("Enter")
    page.get_by_role("button", name="F black").press("Enter")
    expect(part(page, "said")).to_have_text("The readout says: C white (wrong), F black (wrong).")
    assert part(page, "table").locator("tbody tr").count() == 1


def test_a_request_is_written_and_a_wrong_one_refused_in_words(page: Page):
    field = page.get_by_role("textbox", name="Request")
    field.fill("hdc")
    page.get_by_role("radio", name="3").check()
    expect(part(page, "shares")).to_contain_text("H 100 %, D 100 %, C 100 %; all at once 100 %")
    page.get_by_role("slider", name="Number in W_Q").press("Home")
    expect(part(page, "shares")).not_to_contain_text("all at once 100 %")
    for wrong in ("CC", "XY", ""):
        field.fill(wrong)
        expect(part(page, "said")).to_have_text("Write one to four different letters from A to H.")
        expect(part(page, "table")).to_be_hidden()
