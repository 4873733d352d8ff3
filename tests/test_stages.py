"""Pictures in stages: their numbers are attention's, and the reader goes through them by slider, keys and address."""

import itertools
import math

import pytest
import torch
from playwright.sync_api import Page, expect
from torch import nn
from torch.nn import functional as F

import course_utils as cu
from course_utils.figures.style import tokens_css
from course_utils.files import LESSONS
from course_utils.kit.drawings.canvas import CONTRAST, Canvas, _clearest, legible
from course_utils.kit.stages import Stage, Stages
from course_utils.lessons.masks import stages as masked
from course_utils.lessons.multi_head_attention import stages as heads
from course_utils.lessons.queries_keys_values import stages as softmax
from course_utils.lessons.self_attention import stages as one

SLUGS = ["self_attention", "multi_head_attention", "masks", "queries_keys_values"]


def test_self_attention_in_stages_is_pytorchs():
    q, k, v = (matrix[None] for matrix in (one.Q, one.K, one.V))
    assert torch.allclose(one.Z, F.scaled_dot_product_attention(q, k, v)[0], atol=1e-12)
    by_pytorch = F.scaled_dot_product_attention(q, k, v, is_causal=True)[0]
    assert torch.allclose(one.CAUSAL @ one.V, by_pytorch, atol=1e-12)


def test_a_mask_in_stages_is_pytorchs():
    query = masked.SCORES[None]  # with unit vectors as keys and values the answers are the weights
    unit = torch.eye(4).double()[None]
    weights = F.scaled_dot_product_attention(query, unit, unit, masked.MASK, scale=1.0)
    assert torch.allclose(weights[0], masked.WEIGHTS, atol=1e-12)


def test_two_heads_in_stages_are_pytorchs():
    layer = nn.MultiheadAttention(4, 2, bias=False, batch_first=True, dtype=torch.double)
    with torch.no_grad():
        layer.in_proj_weight.copy_(torch.cat([one.W_Q.T, one.W_K.T, one.W_V.T]))
        layer.out_proj.weight.copy_(heads.W_O.T)
        output, weights = layer(*[one.X[None]] * 3, average_attn_weights=False)
    assert torch.allclose(output[0], heads.OUTPUT, atol=1e-12)
    assert torch.allclose(weights[0], heads.WEIGHTS_H, atol=1e-12)


def test_softmax_in_stages_is_pytorchs():
    assert torch.allclose(softmax.WEIGHTS, F.softmax(softmax.SCORES, dim=0), atol=1e-12)


def test_a_pencil_that_adds_the_rounded_numbers_gets_the_rounded_sums():
    def rounded(table):
        return table.mul(100).round() / 100

    her = one.HER
    weighted = rounded(one.WEIGHTS[her][:, None] * one.V)
    assert torch.allclose(weighted.sum(dim=0), rounded(one.Z[her]), atol=1e-9)
    written = rounded(heads.WRITTEN[:, her])
    assert torch.allclose(written.sum(dim=0), rounded(heads.OUTPUT[her]), atol=1e-9)
    powers, weights = rounded(softmax.EXPONENTIALS), rounded(softmax.WEIGHTS)
    assert torch.allclose(powers.sum(), rounded(softmax.EXPONENTIALS.sum()), atol=1e-9)
    assert torch.allclose(rounded(powers / powers.sum()), weights, atol=1e-9)
    assert math.isclose(weights.sum(), 1, abs_tol=1e-9)
    assert torch.equal(
        heads.SCORES_H.sum(dim=0), one.SCORES
    )  # the heads' scores add up to those of one


NUMBERS = {
    "0.38 each": (one.WEIGHTS[2, [0, 4]], [0.38, 0.38]),
    "with a score of 4": (one.SCORES[2], [4, 0, 2, 0, 4]),
    "the scores are 8 and 4": (torch.stack([one.SCORES[1, 4], one.SCORES[4, 1]]), [8, 4]),
    "The second number loses 0.76 and the third 1.52": (one.WEIGHTS[2, 4] * one.V[4], [0, 0.76, 1.52, 0]),
    "0.93 of its weight is on *car*": (one.WEIGHTS[3, 4:], [0.93]),
    "*Anna* gets 0.67": (one.CAUSAL[2, :1], [0.67]),
    "*Anna* gets 0.70 in head 0": (heads.WEIGHTS_H[0, 2, :1], [0.70]),
    "which gets 0.81 in head 1": (heads.WEIGHTS_H[1, 2, 4:], [0.81]),
    "with 0.56 for *Anna*": ((heads.SCORES_H[0, 2] / 2).softmax(-1)[:1], [0.56]),
    "(3.24, 0, 0, 0.42)": (heads.WRITTEN[0, 2], [3.24, 0, 0, 0.42]),
    "(1.60, 1.40)": (heads.H[0, 3], [1.60, 1.40]),
    "which makes 0.67 and 0.33": (masked.WEIGHTS[1, :2], [0.67, 0.33]),
    "keeps only 0.375 of its weight": (8 * masked.TOO_LATE[1].sum()[None], [3]),
    "so the weights are 0.25, 0.50, 0.25, and 0": (masked.WEIGHTS[2], [0.25, 0.5, 0.25, 0]),
    "receives 1.90 and 1.76 from one head, but 3.24 and 3.38 from two": (
        torch.cat([one.Z[2, [0, 2]], heads.JOINED[2, [0, 2]]]), [1.90, 1.76, 3.24, 3.38],
    ),
    "It gives 0.50, 0.33 and 0.17": ((softmax.SCORES + 2) / (softmax.SCORES + 2).sum(), [0.5, 0.33, 0.17]),
    "If we add 1, it gives 0.67, 0.33 and 0": ((softmax.SCORES + 1) / (softmax.SCORES + 1).sum(), [0.67, 0.33, 0]),
    "they become 7.39, 2.72 and 1.00": ((softmax.SCORES + 1).exp(), [7.39, 2.72, 1]),
    "add up to 4.09": (softmax.EXPONENTIALS.sum()[None], [4.09]),
    "7.39 / 8.53 = 0.87": ((2 * softmax.SCORES).softmax(0)[:1], [0.87]),
}  # fmt: skip


@pytest.mark.parametrize("words", NUMBERS)
def test_what_a_stage_says_is_what_it_shows(words):
    texts = " ".join(
        " ".join((LESSONS / slug / "stages.toml").read_text(encoding="utf-8").split())
        for slug in SLUGS
    )
    values, said = NUMBERS[words]
    assert words in texts
    assert [round(value, 2) for value in values.tolist()] == said


@pytest.mark.parametrize("color", ["query", "key", "value", "heat", "line", "plum", "wrong"])
def test_a_number_is_legible_in_every_shade_on_light_and_on_dark(color):
    for strength in (i / 20 for i in range(21)):
        near, _ = legible(color, strength)
        assert min(_clearest(color, near, mode)[0] for mode in (0, 1)) >= CONTRAST > 4.5
        assert abs(near - strength) < 0.2


def test_texts_without_a_drawing_and_sheets_of_two_sizes_are_refused():
    stage = Stage("title", "caption", "question", "answer")
    with pytest.raises(ValueError, match="got 2 texts and 1 drawings"):
        Stages("name", [stage, stage], [Canvas("empty")])
    with pytest.raises(ValueError, match="expected one size"):
        Stages("name", [stage, stage], [Canvas("empty"), Canvas("wider", size=(500, 400))])
    with pytest.raises(ValueError, match="describe the picture"):
        Canvas(" ")
    with pytest.raises(FileNotFoundError, match="masks, multi_head_attention"):
        cu.stages("heads")


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("stages") / "page.html"
    sets = "".join(cu.stages(slug)._repr_html_() for slug in SLUGS)
    path.write_text(
        f"<!doctype html><meta charset=utf-8><style>{tokens_css()}</style>{sets}", encoding="utf-8"
    )
    return path


@pytest.fixture(params=[1280, 390])
def page(browser, file, request):
    page, errors = browser.new_page(viewport={"width": request.param, "height": 900}), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.goto(file.as_uri())
    yield page
    page.close()
    assert errors == []


@pytest.mark.smoke
def test_a_reader_goes_through_the_stages_and_comes_back_by_the_address(page: Page, file):
    first, second, *_ = page.locator(".cu-stages").all()
    shown = first.locator("figure:visible .title")
    expect(shown).to_have_text("1Five words, each a vector")
    first.get_by_role("button", name="Next stage").click()
    first.get_by_role("slider").press("ArrowRight")
    expect(shown).to_have_text("3One word asks: its query meets every key")
    first.locator("figure:visible summary").focus()
    page.keyboard.press("ArrowRight")
    expect(shown).to_have_count(1)
    expect(shown).to_contain_text("From scores to weights")
    expect(second.locator("figure:visible .title")).to_contain_text("One head has one softmax")
    assert page.url.endswith("#self-attention-4")
    page.reload()
    expect(shown).to_contain_text("From scores to weights")
    first.get_by_role("button", name="All stages").click()
    expect(shown).to_have_count(8)
    first.locator("figure").last.focus()
    page.keyboard.press("Enter")
    expect(shown).to_have_text("8The same with a causal mask")
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    with page.expect_download() as download:
        first.get_by_role("button", name="Save as SVG").click()
    saved = download.value.path().read_text(encoding="utf-8")
    assert download.value.suggested_filename == "self-attention-8.svg"
    assert saved.startswith("<svg") and "var(" not in saved


@pytest.mark.smoke
def test_no_word_of_a_stage_leaves_its_sheet_or_lies_on_another(page: Page):
    for stages in page.locator(".cu-stages").all():
        stages.get_by_role("button", name="All stages").click()
    figures = page.locator("figure").all()
    assert figures
    for figure in figures:
        boxes = figure.evaluate(
            """figure => {
              const sheet = figure.querySelector("svg").getBoundingClientRect();
              return [sheet, ...[...figure.querySelectorAll("svg text")].map((text) => text.getBoundingClientRect())]
                .map(({ left, top, right, bottom }) => [left, top, right, bottom]);
            }"""
        )
        (left, top, right, bottom), *words = boxes
        assert words and all(
            left <= a and top <= b and c <= right and d <= bottom for a, b, c, d in words
        )
        for one_word, other in itertools.combinations(words, 2):
            across = min(one_word[2], other[2]) - max(one_word[0], other[0])
            down = min(one_word[3], other[3]) - max(one_word[1], other[1])
            height = one_word[3] - one_word[1]
            assert across <= 1 or down <= 0.3 * height, figure.inner_text()
