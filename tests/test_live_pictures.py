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


# Look-ups ---------------------------------------------------------------------------------------


def test_a_query_is_a_word_or_moved_and_dragged_and_the_temperature_turned(open_widget):
    with open_widget(cu.live.look_up()) as page:
        said = part(page, "said")
        told = "kitten, size 0.20, home 0.90, T = 0.1: the answer is 13.8 years."
        expect(said).to_contain_text(told)
        slider(page, "size").press("ArrowRight")
        expect(said).to_contain_text("Your query, size 0.21, home 0.90")
        for word, place in (ANIMALS | QUERIES).items():
            button(page, word).press("Enter")
            size, home = place[:2]
            expect(said).to_contain_text(f"{word}, size {size:.2f}, home {home:.2f}")
        slider(page, "Temperature T").press("End")
        expect(slider(page, "Temperature T")).to_have_attribute("aria-valuetext", "100")
        expect(said).to_contain_text("the answer is 24.4 years.")
        shares = part(page, "table").locator("td[style]").all_text_contents()
        assert shares == ["0.20"] * 5
        plane = part(page, "plane")
        plane.scroll_into_view_if_needed()
        box, ring = plane.bounding_box(), plane.locator("circle.cu-live-ring").nth(3).bounding_box()
        middle = ring["x"] + ring["width"] / 2, ring["y"] + ring["height"] / 2
        drag(page, (box["x"] + 100, box["y"] + 100), middle)
        slider(page, "Temperature T").press("Home")
        expect(said).to_contain_text("the answer is 28.0 years.")  # of the horse
        assert float(page.locator("[name=size]").input_value()) == pytest.approx(0.8, abs=0.02)


def test_a_button_moves_the_query_to_the_wanted_answer(open_widget):
    with open_widget(cu.live.look_up(), reduced_motion="reduce") as page:
        go, said = button(page, "Walk there"), part(page, "said")
        go.press("Enter")
        expect(said).to_contain_text("the answer is 20.0 years.")
        expect(said).to_contain_text("It arrived, after")
        button(page, "kitten").press("Enter")
        page.locator("[name=kind]").select_option("nearest")
        go.press("Enter")
        expect(said).to_contain_text("kitten, size 0.20, home 0.90")
        still = "Its slope is 0: a small step changes nothing. It stays there, after 0 steps."
        expect(said).to_contain_text(still)
        page.emulate_media(reduced_motion="no-preference")
        page.locator("[name=kind]").select_option("softmax")
        page.get_by_label("Wanted").fill("18")
        go.press("Enter")
        expect(said).to_contain_text("the answer is 18.0 years.")


def test_heads_answer_a_request_and_a_wrong_one_is_refused_in_words(open_widget):
    with open_widget(cu.live.heads()) as page:
        shares, field = part(page, "shares"), page.get_by_role("textbox", name="Request")
        page.get_by_role("radio", name="2").press("ArrowLeft")
        told = "all at once 75 %. No linear readout of as many heads has more than 75 %."
        expect(shares).to_contain_text(told)
        button(page, "C white").press("Enter")
        button(page, "F black").press("Enter")
        told = "The readout says: C white (wrong), F black (wrong)."
        expect(part(page, "said")).to_have_text(told)
        assert part(page, "table").locator("tbody tr").count() == 1
        field.fill("hdc")
        page.get_by_role("radio", name="3").check()
        expect(shares).to_contain_text("H 100 %, D 100 %, C 100 %; all at once 100 %")
        slider(page, "Number in W_Q").press("Home")
        expect(shares).not_to_contain_text("all at once 100 %")
        for wrong in ("CC", "XY", ""):
            field.fill(wrong)
            told = "Write one to four different letters from A to H."
            expect(part(page, "said")).to_have_text(told)
            expect(part(page, "table")).to_be_hidden()


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
        said = part(page, "said")
        expect(said).to_contain_text(f"the average is {weights @ y:.2f}")
        expect(said).to_contain_text(f"The longest bar is a weight of {weights.max():.2f}.")
        assert part(page, "fit").get_attribute("d").count("L") == 48  # from 0 to 2.4, where it was
        page.get_by_role("checkbox", name="whole curve").check()
        assert part(page, "fit").get_attribute("d").count("L") == 100
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
        button(page, "Remove").click()
        assert len(points(page)[0]) == 40
        drag(page, at(34 + 396 * 0.48, 300), at(34 + 396 * 0.8, 300))
        expect(slider(page, "Query q")).to_have_attribute("aria-valuetext", "4.00")
        button(page, "First points").click()
        assert points(page)[0][0].item() < 1


def test_points_are_moved_added_and_removed_by_keys(open_widget):
    with open_widget(cu.live.kernel_regression()) as page:
        before, _ = points(page)
        slider(page, "Point").press("ArrowRight")
        expect(part(page, "point-text")).to_have_text("2 of 40")
        slider(page, "x").press("End")
        slider(page, "y").press("PageUp")
        x, _ = points(page)
        assert x[1] == 5 and torch.equal(x[2:], before[2:])
        button(page, "Add at the query").press("Enter")
        assert points(page)[0].tolist()[40:] == [2.4]
        for _ in range(39):
            button(page, "Remove").press("Enter")
        expect(button(page, "Remove")).to_be_disabled()
        assert len(points(page)[0]) == 2


def test_a_width_is_learned_by_the_steps_of_the_chapter_played_and_paused(open_widget):
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
            found = float(page.locator("[name=width]").input_value())
            assert found == pytest.approx(parameter.exp().item(), abs=1e-6)
        learned, play = part(page, "learned"), part(page, "play")
        expect(learned).to_contain_text(f"Step 12: width {found:.3f}, leave-one-out error")
        play.press("Enter")
        expect(play).to_have_text("Pause")
        assert part(page, "said").get_attribute("aria-live") == "off"
        expect(learned).to_contain_text(re.compile("Step 1[3-9]"))
        play.press("Enter")
        expect(learned).to_contain_text("Paused.")
        expect(play).to_have_text("Play")
        assert part(page, "said").get_attribute("aria-live") == "polite"
        assert part(page, "trail").get_attribute("d").startswith("M")
        put(page, "width", 2)
        expect(learned).to_contain_text("Step 0: width 2.000")
        assert part(page, "trail").get_attribute("d") == ""
        page.emulate_media(reduced_motion="reduce")  # the end at once
        play.click()
        expect(learned).to_contain_text("Step 200: width 0.32")
        expect(play).to_have_text("Play")


# Trainings --------------------------------------------------------------------------------------


def test_steps_are_made_played_paused_and_begun_again_by_keys(open_widget):
    with open_widget(cu.live.learned_head()) as page:
        said, play, at = part(page, "said"), part(page, "play"), part(page, "at")
        part(page, "step").press("Enter")
        expect(said).to_contain_text("Step 1: loss 0.7")
        slider(page, "Step").press("ArrowRight")
        expect(said).to_contain_text("Step 2:")
        play.press("Enter")
        expect(play).to_have_text("Pause")
        assert said.get_attribute("aria-live") == "off"
        expect(at).not_to_have_text("2 of 300")
        play.press("Enter")
        expect(play).to_have_text("Play")
        assert said.get_attribute("aria-live") == "polite"
        stopped = at.inner_text()
        page.wait_for_timeout(200)
        assert at.inner_text() == stopped
        assert part(page, "curve").get_attribute("d").count("L") == int(stopped.split()[0])
        part(page, "again").press("Enter")
        expect(at).to_have_text("0 of 300")
        page.emulate_media(reduced_motion="reduce")  # the end at once
        play.click()
        expect(said).to_contain_text("24 of 24 sentences right.")
        expect(play).to_have_text("Play")
        asks, matrices = part(page, "asks"), part(page, "matrices").inner_html()
        first = asks.locator("tbody tr").first.locator("th")
        assert first.nth(2).inner_text() == "no"
        page.get_by_role("combobox", name="Noun 1").select_option("mouse")
        expect(asks.locator("thead th").nth(3)).to_have_text("mouse")
        assert first.nth(2).inner_text() == "yes" and int(first.nth(1).inner_text().split()[0]) > 90
        assert part(page, "matrices").inner_html() == matrices
        before, seed = said.inner_text(), page.get_by_role("spinbutton", name="Seed")
        for nonsense in ("", "100", "-3", "1.5"):
            seed.fill(nonsense)
            assert said.inner_text() == before
        seed.fill("5")
        expect(said).not_to_have_text(before)


def test_a_reader_lets_a_gpt_learn_stops_it_and_brings_another_text(open_widget):
    with open_widget(cu.live.character_gpt(0.01)) as page:
        learn, said = part(page, "learn"), part(page, "said")
        loss = lambda: float(said.inner_text().split("loss ")[1].split()[0])  # noqa: E731
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


def test_examples_maps_and_sizes_of_patches_are_chosen(open_widget):
    with open_widget(cu.live.vit()) as page:
        where = part(page, "where")
        for i, example in enumerate(cu.live.bundle("vit")["examples"]):
            button(page, f"Example {i}: {example['right']}").click()
            expect(part(page, "said")).to_contain_text(example["said"])
            wrong = f"Wrong. Right is: {example['right']}" if i == 2 else ""
            expect(part(page, "right")).to_have_text(wrong)
        page.locator("[data-example='0']").click()
        first = (
            "Block 1, mean of the heads: most weight, 43 %, is on row 1, column 3 of 4 × 4 patches"
        )
        expect(where).to_contain_text(first)
        button(page, "rollout").press("Enter")
        expect(button(page, "rollout")).to_have_attribute("aria-pressed", "true")
        expect(where).to_contain_text("Rollout: most weight")
        page.get_by_role("radio", name="7 × 7").press("ArrowRight")
        expect(where).to_contain_text("of 2 × 2 patches")
        expect(part(page, "maps").locator("button")).to_have_count(11)
        page.get_by_role("radio", name="4 × 4").check()
        button(page, "block 0, head 2").click()
        expect(where).to_contain_text("of 7 × 7 patches")


@pytest.mark.parametrize("steps", [15, 2])
def test_a_picture_is_drawn_with_the_mouse_and_by_keys(open_widget, steps):
    with open_widget(cu.live.vit()) as page:
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
        button(page, "Clear").click()
        part(page, "file").set_input_files([])  # the dialog, left without a choice
        expect(right).to_have_text("")
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
