"""The live vision transformer: what it says is what PyTorch says; draw, upload, choose, with a mouse and by keys."""

import base64
import io

import numpy as np
import pytest
import torch
from browsing import load, part
from PIL import Image
from playwright.sync_api import Page, expect
from stored_models import network

import course_utils as cu
from course_utils.data.images import FASHION, load_fashion_mnist, scaled
from course_utils.kit.live.widget import Live
from course_utils.lessons.vision_transformers.looking import attention_rollout
from course_utils.studio.first_states import first_state

pytestmark = pytest.mark.slow

SCRIPT, INSIDE = "widgets/vit", "look"
MODELS = {7: "vit", 14: "vit_patch14", 4: "vit_patch4"}


def widget() -> Live:
    return cu.live.vit()


def pixels(page: Page) -> torch.Tensor:
    data = base64.b64decode(page.locator("[name=image]").input_value())
    return torch.frombuffer(bytearray(data), dtype=torch.uint8).view(28, 28)


# Numbers ----------------------------------------------------------------------------------------

RUN = """([name, pictures]) => {
    const model = new live_engine.ViT(live_bundles[name]);
    return pictures.map(pixels => {
        const { p, maps, rollout } = live_inside.look(model, pixels);
        return { p: [...p], maps, rollout };
    });
}"""


@torch.no_grad()
def look(model: cu.ViT, pixels: torch.Tensor) -> dict[str, torch.Tensor]:
    """Probabilities, the weights of the class token on the patches, and the rollout, of a picture (28, 28)."""
    with cu.record_attention(model) as recorded:
        logits = model(scaled(pixels[None, None]))[0]
    layers = list(recorded.values())
    heads = torch.stack([layer[0, :, 0, 1:].unflatten(1, model.grid) for layer in layers])
    rollout = attention_rollout(layers)[0, 0, 1:].unflatten(0, model.grid)
    maps = torch.cat([heads, heads.mean(dim=1, keepdim=True)], dim=1)
    return {"p": logits.softmax(dim=0), "maps": maps, "rollout": rollout}


def deviation(page: Page, size: int) -> float:
    pictures = load_fashion_mnist("test").images[:3, 0]
    found = page.evaluate(RUN, [MODELS[size], pictures.flatten(1).tolist()])
    worst = 0.0
    for mine, picture in zip(found, pictures, strict=True):
        for name, right in look(network(MODELS[size]), picture).items():
            got = torch.tensor(mine[name])
            if got.shape != right.shape:
                return float("inf")
            worst = max(worst, (got - right).abs().max().item())
    return worst


def test_probabilities_maps_and_rollout_are_those_of_pytorch(page: Page):
    load(page, SCRIPT, inside=INSIDE)
    for size in MODELS:
        assert deviation(page, size) < 1e-4


MISTAKES = {
    "pixels from 0 to 2": ("value / 127.5 - 1", "value / 127.5"),
    "what all tokens give to the class token": ("onPatches(map[0])", "onPatches(map.map((row) => row[0]))"),
    "no residual in the rollout": ("(weight + (i === j ? 1 : 0)) / 2", "weight"),
    "the blocks multiplied in the other order": ("halves.reduceRight(", "halves.reduce("),
    "the class token's weight on itself is shown": ("slice(1), width", "slice(0, -1), width"),
    "the sum of the heads": ("/ heads.length)", ")"),
}  # fmt: skip


def test_each_mistake_is_found(page: Page):
    for mistake, changed in MISTAKES.items():
        load(page, SCRIPT, changed, inside=INSIDE)
        assert not deviation(page, 7) < 1e-4, mistake


# What is seen -----------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again_and_its_first_answer_is_there_without_scripts():
    assert repr(cu.live.vit()) == "live.vit()"
    assert "Ankle boot, 99 %" in first_state(cu.live.vit())


def test_examples_are_two_right_and_one_wrong_that_is_called_so(page: Page):
    for i, example in enumerate(cu.live.bundle("vit")["examples"]):
        page.get_by_role("button", name=f"Example {i}").click()
        expect(part(page, "said")).to_contain_text(example["said"])
        wrong = f"Wrong. Right is: {example['right']}" if i == 2 else ""
        expect(part(page, "right")).to_have_text(wrong)
        assert (example["said"] == example["right"]) == (i < 2)


def test_every_map_can_be_chosen_and_every_size_of_patch(page: Page):
    first = "Block 1, mean of the heads: most weight, 43 %, is on row 1, column 3 of 4 × 4 patches"
    expect(part(page, "where")).to_contain_text(first)
    rollout = page.get_by_role("button", name="rollout")
    rollout.press("Enter")
    expect(rollout).to_have_attribute("aria-pressed", "true")
    expect(part(page, "where")).to_contain_text("Rollout: most weight")
    radio = page.get_by_role("radio", name="7 × 7")
    radio.press("ArrowRight")
    expect(part(page, "where")).to_contain_text("of 2 × 2 patches")
    expect(part(page, "maps").locator("button")).to_have_count(11)
    page.get_by_role("radio", name="4 × 4").check()
    page.get_by_role("button", name="block 0, head 2").click()
    expect(part(page, "where")).to_contain_text("of 7 × 7 patches")


@pytest.mark.parametrize("steps", [15, 2])
def test_a_picture_is_drawn_with_the_mouse(page: Page, steps):
    page.get_by_role("button", name="Clear").click()
    assert pixels(page).sum() == 0
    box = part(page, "board").bounding_box()

    def at(column: int, row: int) -> tuple[float, float]:
        return box["x"] + box["width"] * column / 28, box["y"] + box["width"] * row / 28

    page.mouse.move(*at(5, 10))
    page.mouse.down()
    page.mouse.move(*at(20, 10), steps=steps)
    page.mouse.up()
    drawn = pixels(page)
    assert (drawn[10, 5:20] > 200).all() and drawn[:7].sum() == 0 and drawn[13:].sum() == 0
    seen = look(network("vit"), drawn)
    best = int(seen["p"].argmax())
    expect(part(page, "said")).to_contain_text(FASHION[best])


def test_a_picture_is_drawn_by_keys(page: Page):
    page.get_by_role("button", name="Clear").click()
    board = part(page, "board")
    board.focus()
    for key in ("ArrowUp", " ", "ArrowRight", "ArrowRight", " ", "ArrowDown"):
        page.keyboard.press(key)
    drawn = pixels(page)
    assert drawn[13, 14] == drawn[13, 16] == 255 and drawn[16].sum() == 0
    expect(board).to_have_attribute("data-pen", "up")


@pytest.mark.parametrize("ground", [0, 255])
def test_a_picture_is_uploaded_and_a_light_ground_is_made_dark(page: Page, ground):
    image = np.full((84, 168), ground, dtype=np.uint8)
    image[28:56, 70:98] = 255 - ground
    buffer = io.BytesIO()
    Image.fromarray(image).save(buffer, "PNG")
    given = {"name": "a.png", "mimeType": "image/png", "buffer": buffer.getvalue()}
    part(page, "file").set_input_files(given)
    told = "Its ground is light: it was inverted." if ground else ""
    expect(part(page, "right")).to_have_text(told)
    page.wait_for_function("() => document.querySelector('[name=image]').value.length > 9")
    found = pixels(page).float()
    assert found[0].max() == 0 and found[12:16, 12:16].min() > 250


def test_a_file_that_is_no_picture_is_refused_in_words(page: Page):
    part(page, "file").set_input_files({"name": "a.png", "mimeType": "image/png", "buffer": b"no"})
    expect(part(page, "right")).to_have_text("This is no picture that your browser can read.")
    assert page.locator("[name=image]").input_value() == "0"
    page.get_by_role("button", name="Clear").click()
    part(page, "file").set_input_files([])  # the dialog, left without a choice
    expect(part(page, "right")).to_have_text("")


# For everyone -----------------------------------------------------------------------------------


def test_an_address_that_holds_nonsense_leaves_the_first_state(browser, file):
    page = browser.new_page()
    page.goto(f"{file.as_uri()}#live=vit.0&image=junk")
    page.locator("form[data-ready]").wait_for()
    assert page.locator("[name=image]").input_value() != "junk".replace("%20", " ")
    assert part(page, "said").text_content()
    page.close()
