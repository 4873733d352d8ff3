"""Live pictures in a page: look-ups, heads, kernels, trainings and a drawing board answer to mouse and keys."""

import base64
import io
import re

import numpy as np
import pytest
import torch
from browsing import part
from PIL import Image
from playwright.sync_api import Page, expect
from stored_models import network

import course_utils as cu
from course_utils.data.images import FASHION, scaled
from course_utils.kit.live.widgets import ANIMALS, QUERIES
from course_utils.pooling import kernel_weights, leave_one_out_error

pytestmark = pytest.mark.slow


def button(page: Page, name: str):
    return page.get_by_role("button", name=name, exact=True)


def slider(page: Page, name: str):
    return page.get_by_role("slider", name=name, exact=True)


def put(page: Page, name: str, value) -> None:
    """Move a slider or a hidden control there."""
    page.locator(f"[name={name}]").evaluate(
        "(node, value) => { node.value = value; node.dispatchEvent(new Event('input', { bubbles: true })); }",
        str(value),
    )


def drag(page: Page, *places: tuple[float, float], steps: int = 4) -> None:
    page.mouse.move(*places[0])
    page.mouse.down()
    for place in places[1:]:
        page.mouse.move(*place, steps=steps)
    page.mouse.up()


# What a reader does by keys -----------------------------------------------------------------------

WORDS = [
    ("button", name, "Enter", "said", f"{name}, size {size:.2f}, home {home:.2f}")
    for name, (size, home, *_) in (ANIMALS | QUERIES).items()
]
BY_KEYS = {
    "look_up": [
        ("slider", "size", "ArrowRight", "said", "Your query, size 0.21, home 0.90"),
        *WORDS,
        ("slider", "Temperature T", "End", "said", "the answer is 24.4 years."),
        ("slider", "Temperature T", "Home", "said", "T = 0.001"),
        ("button", "kitten", "Enter", "said", "kitten, size 0.20, home 0.90"),
        ("combobox", "Look-up", "nearest", "said", "Its slope is 0: a small step changes nothing."),
        ("button", "Walk there", "Enter", "said", "It stays there, after 0 steps."),
        ("combobox", "Look-up", "softmax", "said", "kitten"),
        ("slider", "Temperature T", "PageUp", "said", "T = 0.002"),
    ],
    "heads": [
        ("radio", "1", "", "shares", "all at once 75 %. No linear readout of as many heads has more than 75 %."),
        ("button", "C white", "Enter", "said", "The readout says: "),
        ("button", "F black", "Enter", "said", "The readout says: C white (wrong), F black (wrong)."),
        ("textbox", "Request", "hdc", "shares", "all at once"),
        ("radio", "3", "", "shares", "H 100 %, D 100 %, C 100 %; all at once 100 %"),
        ("textbox", "Request", "CC", "said", "Write one to four different letters from A to H."),
        ("textbox", "Request", "A", "said", "The readout says: A "),
        ("textbox", "Request", "XY", "said", "Write one to four different letters from A to H."),
        ("textbox", "Request", "", "said", "Write one to four different letters from A to H."),
    ],
    "colors": [
        *[("button", "blue", "Enter", "said", f"It is number {i} of 4") for i in (2, 3, 4)],
        ("button", "blue", "Enter", "said", "of 4 are right"),
        ("button", "Next picture", "Enter", "said", "Which color does the empty circle get?"),
        ("radio", "only how many are blue, red, …", "", "said", "The filled symbols are"),
        ("radio", "only three pixels around", "", "said", "It is number 1 of 4"),
        ("radio", "8", "", "said", "It is number 1 of 8"),
    ],
    "kernel_regression": [
        ("slider", "Point", "ArrowRight", "point-text", "2 of 40"),
        ("slider", "x", "End", "x-text", "5.00"),
        ("button", "Add at the query", "Enter", "x-text", "2.40"),
        *[("button", "Remove", "Enter", "point-text", f"of {40 - i}") for i in range(39)],
    ],
    "vit": [
        *[
            ("button", f"Example {i}: {each['right']}", "Enter", "said", each["said"])
            for i, each in enumerate(cu.live.bundle("vit")["examples"])
        ],
        ("button", "rollout", "Enter", "where", "Rollout: most weight"),
        ("radio", "14 × 14", "", "where", "of 2 × 2 patches"),
        ("radio", "4 × 4", "", "where", "of 7 × 7 patches"),
        ("button", "block 0, head 2", "Enter", "where", "Block 0, head 2: most weight"),
    ],
}  # fmt: skip
"""Kind → role and name of a control, the key or value that it is given, a part of the form, and what that says then."""


@pytest.mark.parametrize("kind", BY_KEYS)
def test_each_control_is_answered(open_widget, kind):
    with open_widget(getattr(cu.live, kind)()) as page:
        for role, name, given, where, said in BY_KEYS[kind]:
            control = page.get_by_role(role, name=name, exact=True)
            if role == "textbox":
                control.fill(given)
            elif role == "combobox":
                control.select_option(given)
            elif role == "radio":
                control.check()
            else:
                control.press(given)
            expect(part(page, where)).to_contain_text(said)
        if kind == "heads":
            expect(part(page, "table")).to_be_hidden()
        if kind == "kernel_regression":
            expect(button(page, "Remove")).to_be_disabled()
            assert points(page)[0][-1] == 5  # the second point, moved
        if kind == "vit":
            expect(part(page, "maps").locator("button")).to_have_count(11)


# Look-ups ---------------------------------------------------------------------------------------


def test_a_query_is_dragged_and_walks_to_the_wanted_answer(open_widget):
    with open_widget(cu.live.look_up(), reduced_motion="reduce") as page:
        go, said, plane = button(page, "Walk there"), part(page, "said"), part(page, "plane")
        go.press("Enter")
        expect(said).to_contain_text("the answer is 20.0 years.")
        expect(said).to_contain_text("It arrived, after")
        button(page, "kitten").press("Enter")
        slider(page, "Temperature T").press("ArrowLeft")
        slider(page, "Temperature T").press("ArrowLeft")
        go.press("Enter")  # colder, the way leads off to the left, and the answer stays below 15
        expect(said).to_contain_text("the answer is 14.9 years.")
        expect(said).to_contain_text("It has left the picture, after")
        slider(page, "Temperature T").press("ArrowRight")
        slider(page, "Temperature T").press("ArrowRight")
        page.emulate_media(reduced_motion="no-preference")
        page.get_by_label("Wanted").fill("18")
        go.press("Enter")
        expect(said).to_contain_text("the answer is 18.0 years.")
        plane.scroll_into_view_if_needed()
        box, ring = plane.bounding_box(), plane.locator("circle.cu-live-ring").nth(3).bounding_box()
        middle = ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2
        drag(page, (box["x"] + 100, box["y"] + 100), middle)
        slider(page, "Temperature T").press("Home")
        expect(said).to_contain_text("the answer is 28.0 years.")  # of the horse
        assert float(page.locator("[name=size]").input_value()) == pytest.approx(0.8, abs=0.02)


# Kernel regression ------------------------------------------------------------------------------


def points(page: Page) -> tuple[torch.Tensor, torch.Tensor]:
    """As they stand in the form."""
    pairs = page.locator("[name=points]").input_value().split(",")
    found = torch.tensor([[float(n) for n in pair.split()] for pair in pairs], dtype=torch.float64)
    return found[:, 0], found[:, 1]


def test_query_kernel_and_width_give_the_average_of_the_library(open_widget):
    with open_widget(cu.live.kernel_regression()) as page:
        assert part(page, "points").locator("circle").count() == 40
        slider(page, "Query q").press("Home")
        page.get_by_role("combobox", name="Kernel").select_option("epanechnikov")
        slider(page, "Width σ").press("End")
        x, y = points(page)
        width = float(page.locator("[name=width]").input_value())
        weights = kernel_weights(x.new_zeros(1), x, kernel="epanechnikov", width=width)[0]
        said, curve = part(page, "said"), part(page, "fit")
        expect(said).to_contain_text(f"the average is {weights @ y:.2f}")
        expect(said).to_contain_text(f"The longest bar is a weight of {weights.max():.2f}.")
        assert curve.get_attribute("d").count("L") == 48  # from 0 to 2.4, where it was
        page.get_by_role("checkbox", name="whole curve").check()
        assert curve.get_attribute("d").count("L") == 100
        expect(slider(page, "Query q")).to_have_attribute("aria-valuetext", "0.00")
        slider(page, "Width σ").press("Home")
        put(page, "query", 1.25)
        expect(said).to_contain_text("no point is in reach")
        expect(part(page, "learned")).to_contain_text("a point has no other in reach")


def test_points_are_dragged_added_and_removed_by_the_mouse(open_widget):
    with open_widget(cu.live.kernel_regression()) as page:
        plot = part(page, "plot")

        def at(x: float, y: float) -> tuple[float, float]:
            plot.scroll_into_view_if_needed()
            box = plot.bounding_box()
            return box["x"] + x * box["width"] / 440, box["y"] + y * box["width"] / 440

        first = plot.locator("[data-part=points] circle").first
        place = [float(first.get_attribute(name)) for name in ("cx", "cy")]
        drag(page, at(*place), at(34 + 396 * 0.6, 60))
        x, y = points(page)
        low, high = (float(plot.get_attribute(f"data-{end}")) for end in ("low", "high"))
        assert (len(x), x[0].item()) == (40, pytest.approx(3, abs=0.03))
        assert y[0].item() == pytest.approx(low + 190 / 240 * (high - low), abs=0.05)
        page.mouse.click(*at(400, 60))
        expect(part(page, "point-text")).to_have_text("41 of 41")
        drag(page, at(34 + 396 * 0.48, 300), at(34 + 396 * 0.8, 300))
        expect(slider(page, "Query q")).to_have_attribute("aria-valuetext", "4.00")
        button(page, "First points").click()
        x, _ = points(page)
        assert len(x) == 40 and x[0] < 1


def test_a_width_is_learned_by_the_steps_of_the_chapter(open_widget):
    with open_widget(cu.live.kernel_regression()) as page:
        page.locator("summary").click()
        put(page, "width", 2)
        x, y = points(page)
        parameter = torch.tensor(2.0, dtype=torch.float64).log().requires_grad_()
        optimizer = torch.optim.Adam([parameter], lr=0.05)
        for _ in range(12):
            optimizer.zero_grad()
            leave_one_out_error(x, y, width=parameter.exp()).backward()
            optimizer.step()
            part(page, "step").click()
            width = float(page.locator("[name=width]").input_value())
            assert width == pytest.approx(parameter.exp().item(), abs=1e-6)
        learned = part(page, "learned")
        expect(learned).to_contain_text(f"Step 12: width {width:.3f}, leave-one-out error")
        assert part(page, "trail").get_attribute("d").startswith("M")
        put(page, "width", 2)
        expect(learned).to_contain_text("Step 0: width 2.000")
        assert part(page, "trail").get_attribute("d") == ""


# Trainings --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "said", "end"),
    [
        ("kernel_regression", "learned", "Step 200: width 0.3"),
        ("learned_head", "said", "24 of 24 sentences right."),
    ],
)
def test_a_training_is_played_and_paused_by_keys_or_shows_its_end_at_once(open_widget, kind, said, end):  # fmt: skip
    with open_widget(getattr(cu.live, kind)()) as page:
        page.locator("details").evaluate_all("all => all.forEach(each => { each.open = true; })")
        play, told = part(page, "play"), part(page, said)
        part(page, "step").press("Enter")
        expect(told).to_contain_text("Step 1:")
        play.press("Enter")
        expect(play).to_have_text("Pause")
        assert part(page, "said").get_attribute("aria-live") == "off"
        expect(told).to_contain_text(re.compile("Step [2-9]"))
        play.press("Enter")
        expect(play).to_have_text("Play")
        assert part(page, "said").get_attribute("aria-live") == "polite"
        stopped = told.inner_text()
        page.wait_for_timeout(200)
        assert told.inner_text() == stopped
        part(page, "again").press("Enter")
        expect(told).to_contain_text("Step 0:")
        page.emulate_media(reduced_motion="reduce")
        play.click()
        expect(told).to_contain_text(end)
        expect(play).to_have_text("Play")


def test_a_head_answers_for_the_nouns_that_are_chosen_and_ignores_a_bad_seed(open_widget):
    with open_widget(cu.live.learned_head()) as page:
        slider(page, "Step").press("End")
        asks, matrices = part(page, "asks"), part(page, "matrices").inner_html()
        first = asks.locator("tbody tr").first.locator("th")
        assert part(page, "curve").get_attribute("d").count("L") == 300
        assert first.nth(2).inner_text() == "no"
        page.get_by_role("combobox", name="Noun 1").select_option("mouse")
        expect(asks.locator("thead th").nth(3)).to_have_text("mouse")
        assert first.nth(2).inner_text() == "yes" and int(first.nth(1).inner_text().split()[0]) > 90
        assert part(page, "matrices").inner_html() == matrices
        said, seed = part(page, "said"), page.get_by_role("spinbutton", name="Seed")
        before = said.inner_text()
        for nonsense in ("", "100", "-3", "1.5"):
            seed.fill(nonsense)
            assert said.inner_text() == before
        seed.fill("5")
        expect(said).not_to_have_text(before)


def test_a_reader_lets_a_gpt_learn_stops_it_and_brings_another_text(open_widget):
    with open_widget(cu.live.character_gpt(0.01)) as page:
        learn, said = part(page, "learn"), part(page, "said")
        loss = lambda: float(re.search(r"loss (\d+\.\d+)", said.inner_text())[1])  # noqa: E731
        first = loss()
        learn.click()
        expect(part(page, "lines").locator("tr")).to_have_count(3)  # 0, 25 and 50
        learn.click()
        expect(learn).to_have_text("Go on")
        assert loss() < first - 1
        own = page.get_by_role("textbox", name="Your text")
        own.fill("too short")
        expect(said).to_contain_text("500 letters or more is needed; here are 9")
        expect(learn).to_be_disabled()
        own.fill("<b>to be or not to be</b> " * 40)
        expect(said).to_contain_text("Step 0")
        learn.click()
        expect(part(page, "lines").locator("tr")).to_have_count(2)
        assert page.locator("[data-part=lines] b").count() == 0


# The vision transformer -------------------------------------------------------------------------


def pixels(page: Page) -> torch.Tensor:
    data = base64.b64decode(page.locator("[name=image]").input_value())
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(28, 28)


def upload(page: Page, content: bytes) -> None:
    given = {"name": "a.png", "mimeType": "image/png", "buffer": content}
    part(page, "file").set_input_files(given)


@pytest.mark.parametrize("steps", [15, 2])
def test_a_picture_is_drawn_with_the_mouse_and_by_keys(open_widget, steps):
    with open_widget(cu.live.vit()) as page:
        page.locator("[data-example='2']").click()
        wrong = cu.live.bundle("vit")["examples"][2]["right"]
        expect(part(page, "right")).to_have_text(f"Wrong. Right is: {wrong}")
        button(page, "Clear").click()
        assert pixels(page).sum() == 0
        board = part(page, "board")
        box = board.bounding_box()
        at = lambda x, y: (box["x"] + box["width"] * x / 28, box["y"] + box["width"] * y / 28)  # noqa: E731
        drag(page, at(5, 10), at(20, 10), steps=steps)
        drawn = pixels(page)
        assert (drawn[10, 5:20] > 200).all() and drawn[:7].sum() == 0 and drawn[13:].sum() == 0
        best = int(network("vit")(scaled(drawn[None, None])).argmax())
        expect(part(page, "said")).to_contain_text(FASHION[best])
        button(page, "Clear").click()
        board.focus()
        for key in ("ArrowUp", " ", "ArrowRight", "ArrowRight", " ", "ArrowDown"):
            page.keyboard.press(key)
        drawn = pixels(page)
        assert drawn[13, 14] == drawn[13, 16] == 255 and drawn[16].sum() == 0
        expect(board).to_have_attribute("data-pen", "up")


def test_a_picture_is_uploaded_a_light_ground_made_dark_and_no_picture_refused(open_widget):
    with open_widget(cu.live.vit()) as page:
        right = part(page, "right")
        upload(page, b"no")
        expect(right).to_have_text("This is no picture that your browser can read.")
        assert page.locator("[name=image]").input_value() == "0"
        part(page, "file").set_input_files([])  # the dialog, left without a choice
        for ground, told in ((0, ""), (255, "Its ground is light: it was inverted.")):
            button(page, "Clear").click()
            image = np.full((84, 168), ground, dtype=np.uint8)
            image[28:56, 70:98] = 255 - ground
            buffer = io.BytesIO()
            Image.fromarray(image).save(buffer, "PNG")
            blank = page.locator("[name=image]").input_value()
            upload(page, buffer.getvalue())
            expect(page.locator("[name=image]")).not_to_have_value(blank)
            expect(right).to_have_text(told)
            found = pixels(page).float()
            assert found[0].max() == 0 and found[12:16, 12:16].min() > 250


# Colors -------------------------------------------------------------------------------------------


def test_a_reader_who_looks_is_always_right_and_counts_stand_beside_the_best_possible(open_widget):
    partners = re.compile(r"d=\"M([\d. ]+)L([\d. ]+)\"")
    with open_widget(cu.live.colors()) as page:
        filled = page.locator(".cu-live-filled").evaluate_all(
            "nodes => nodes.map(node => node.style.color.match(/cu-(\\w+)/)[1])"
        )
        for color in filled:
            button(
                page, {"key": "blue", "query": "red", "value": "green"}.get(color, color)
            ).click()
        expect(part(page, "said")).to_contain_text("4 of 4 are right")
        expect(part(page, "tally")).to_contain_text("4 of 4, 100 %")
        ways = partners.findall(page.locator(".cu-live-symbols").inner_html())
        far = [
            max(
                abs(a - b)
                for a, b in zip(map(float, one.split()), map(float, other.split()), strict=True)
            )
            for one, other in ways
        ]
        assert len(far) == 4 and min(far) >= 4 * 40
        page.get_by_role("radio", name="only how many are blue").check()
        assert page.locator(".cu-live-filled").count() == 0, "counts show no filled symbol"
        for _ in filled:
            button(page, "blue").click()
        expect(part(page, "tally")).to_contain_text("53 %")
        page.get_by_role("radio", name="2", exact=True).check()
        expect(part(page, "tally")).not_to_contain_text("53 %")


# Words for pixels -------------------------------------------------------------------------------


def shown_run(page: Page) -> tuple[int, int]:
    """Column and row of the sheet that the large picture shows: its step, and its run."""
    data = cu.live.bundle("words")
    position = page.locator("[data-part=picture] .cu-live-sheet").evaluate(
        "node => node.style.backgroundPosition"
    )
    across, down = (float(share) / 100 for share in re.findall(r"[\d.]+(?=%)", position))
    return round(across * (data["frames"] - 1)), round(down * 2 * len(data["starts"]))


def test_a_word_is_forbidden_from_a_step_on_and_given_back(open_widget):
    data = cu.live.bundle("words")
    with open_widget(cu.live.words(), reduced_motion="reduce") as page:
        assert shown_run(page) == (2, 0)
        for frame in (3, 2):  # who has moved the slider forbids from there on
            put(page, "frame", frame)
        said, first = part(page, "said"), part(page, "word0")
        first.focus()
        page.keyboard.press("Enter")
        begin = max(start for start in data["starts"] if start <= 2)
        run = data["starts"].index(begin)
        expect(first).to_have_attribute("aria-pressed", "true")
        expect(first).to_contain_text(f"forbidden from step {data['steps'][begin]} on")
        expect(said).to_contain_text("Without “trousers”")
        assert shown_run(page) == (begin, 1 + run)
        put(page, "frame", 0)
        assert shown_run(page) == (0, 0), "before, the word was still there"
        part(page, "word1").click()
        expect(said).to_contain_text("Without “ankle boot” from the start")
        assert shown_run(page) == (0, 1 + len(data["starts"]))
        expect(first).to_have_attribute("aria-pressed", "false")
        part(page, "word1").click()
        assert page.locator("[name=without]").input_value() == "" and shown_run(page) == (0, 0)
        expect(part(page, "without")).to_be_empty()


def test_another_caption_begins_with_both_words_and_colors_can_be_left_out(open_widget):
    with open_widget(cu.live.words(), reduced_motion="reduce") as page:
        part(page, "word0").click()
        page.get_by_role("radio", name="trousers | T-shirt", exact=True).check()
        assert page.locator("[name=without]").input_value() == ""
        expect(part(page, "word1")).to_contain_text("T-shirt")
        colored = page.locator("[data-part=picture] svg")
        expect(colored).to_have_count(1)
        page.get_by_role("checkbox").uncheck()
        expect(colored).to_have_count(0)


def test_the_frames_are_played_to_the_end_and_paused(open_widget):
    with open_widget(cu.live.words()) as page:
        play = part(page, "play")
        play.click()
        expect(play).to_have_text("Pause")
        play.click()
        expect(play).to_have_text("Play")
        at = shown_run(page)
        page.emulate_media(reduced_motion="reduce")
        play.click()
        last = cu.live.bundle("words")["frames"] - 1
        assert at[0] < last and shown_run(page) == (last, 0)
