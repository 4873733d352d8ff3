"""What a page forbids is forbidden as in PyTorch, with the same answers: patches of a garment, looks of cards."""

from itertools import combinations

import pytest
import torch
from browsing import live_page, part, write_page
from playwright.sync_api import expect
from scripts import CLOSE, ask, load
from stored_models import network, pixels_of

import course_utils as cu
from course_utils.data.images import FASHION, load_fashion_mnist, scaled
from course_utils.interventions import intervene
from course_utils.kit.live import read_card
from course_utils.kit.live.widgets import GARMENTS
from course_utils.lessons.vision_transformers.runs import memory_card
from course_utils.models.vision import cut_patches, join_patches

SAYS = """(picture, cases) => {
    const model = new ViT(live_bundles.vit);
    return cases.map(([gone, isBlack]) => logitsWithout(model, pixelsOf(picture), gone, isBlack));
}"""


@torch.no_grad()
def logits(image: torch.Tensor, gone: list[int], is_black: bool) -> torch.Tensor:
    patches = cut_patches(scaled(image[None]), 7)
    if is_black:
        patches[:, gone] = -1.0
        return network("vit")(join_patches(patches, 1, 28, 28))[0]
    with intervene(network("vit")) as acts:
        if gone:
            acts.forbid(keys=[patch + 1 for patch in gone])
        return network("vit")(scaled(image[None]))[0]


@pytest.mark.parametrize("garment", range(3))
def test_without_patches_the_page_says_what_pytorch_says(garment):
    load("patches")
    shown = cu.live.patches().options["garments"][garment]
    row, _ = GARMENTS[shown["name"]]
    image = load_fashion_mnist("test").images[row]
    assert pixels_of(shown["picture"]) == image.numpy().tobytes()
    dice = torch.Generator().manual_seed(row)
    gone = [torch.randperm(16, generator=dice)[:count].tolist() for count in range(17)]
    cases = [(patches, is_black) for patches in gone for is_black in (False, True)]
    said = torch.tensor(ask(SAYS, shown["picture"], cases))
    right = torch.stack([logits(image, *case) for case in cases])
    assert (said - right).abs().max() / right.abs().max() < CLOSE


@pytest.mark.slow
@pytest.mark.parametrize("garment", range(3))
def test_with_fewer_patches_than_the_stored_number_no_choice_does_it(garment):
    """All choices up to that size, the other patches left out in place of forbidden."""
    (row, kind), shown = (
        list(GARMENTS.values())[garment],
        cu.live.patches().options["garments"][garment],
    )
    assert (shown["target"], shown["choices"]) == (
        FASHION.index(kind),
        {4: 1820, 1: 16, 6: 8008}[shown["fewest"]],
    )
    tokens = network("vit").embed(scaled(load_fashion_mnist("test").images[row][None]))[0]
    for size in range(shown["fewest"] + 1):
        left = [
            [0, *(j + 1 for j in range(16) if j not in gone)]
            for gone in combinations(range(16), size)
        ]
        with torch.no_grad():
            x = tokens[torch.tensor(left)]
            for layer in network("vit").layers:
                x = layer(x)
            says = network("vit").output(network("vit").norm(x[:, 0])).argmax(dim=-1)
        assert (says == shown["target"]).sum() == (shown["ways"] if size == shown["fewest"] else 0)
    assert (
        logits(load_fashion_mnist("test").images[row], shown["patches"], False).argmax()
        == shown["target"]
    )


@torch.no_grad()
def test_a_model_that_sees_nothing_says_trousers_as_the_page_tells():
    for image in load_fashion_mnist("test").images[:20]:
        assert FASHION[logits(image, list(range(16)), False).argmax()] == "Trouser"


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("patches"), cu.live.patches())


@pytest.mark.browser
def test_patches_are_forbidden_and_allowed_again_by_keys_and_the_focus_stays(browser, file):
    with live_page(browser, file) as page:
        news, says = part(page, "news"), part(page, "says")
        page.get_by_role("button", name="the boot").press("Enter")
        expect(news).to_contain_text("You guess the boot.")
        page.get_by_role("radio", name="coat").check(force=True)
        page.get_by_role("button", name="Row 1, column 1").focus()
        for key in ("ArrowUp", "ArrowRight", "Space"):
            page.keyboard.press(key)
        taken = page.get_by_role("button", name="Row 1, column 2, forbidden")
        expect(taken).to_be_focused()
        expect(says).to_have_text("The model says pullover")
        expect(news).to_contain_text("Fewer are not enough. You guessed the boot.")
        page.keyboard.press("Backspace")
        expect(says).to_have_text("The model says coat")
        for key in ("End", "ArrowDown", "Enter"):
            page.keyboard.press(key)
        expect(page.get_by_role("button", name="Row 2, column 4, forbidden")).to_be_focused()
        expect(page.locator("[data-part=python]")).to_contain_text("forbid(keys=[8])")


@pytest.mark.browser
def test_the_page_takes_the_fewest_at_once_from_who_wants_no_motion(browser, file):
    with live_page(browser, file, reduced_motion="reduce") as page:
        page.get_by_role("button", name="Find the fewest").click()
        expect(part(page, "says")).to_have_text("The model says sandal")
        expect(part(page, "news")).to_have_text(
            "4 patches are enough, and fewer are not. Of all 1,820 ways to forbid 4, only 4 do it."
        )
        page.get_by_role("button", name="Allow all again").click()
        expect(part(page, "says")).to_have_text("The model says ankle boot")


@pytest.mark.browser
def test_an_address_brings_back_the_patches_that_were_forbidden(browser, file):
    all_gone = ".".join(map(str, range(16)))
    state = f"#live=patches.0&garment=coat&gone={all_gone}"
    with live_page(browser, file, state) as page:
        expect(part(page, "news")).to_contain_text("it says trousers, whatever the picture is")
        page.get_by_role("checkbox", name="Paint them black instead").check()
        expect(part(page, "news")).to_contain_text("16 of 16 patches are painted black")
        page.goto(file.as_uri() + "#live=patches.0&garment=umbrella&gone=1.1.99.x")
        expect(part(page, "says")).to_have_text("The model says ankle boot")


def test_an_unknown_garment_is_refused():
    with pytest.raises(ValueError, match="garment='hat'; there are: boot, coat, trousers"):
        cu.live.patches("hat")


# Memory -------------------------------------------------------------------------------------------

ANSWERS = """(picture, bans) => {
    const model = new ViT(live_bundles.memory);
    return bans.map((ban) => answers(model, pixelsOf(picture), ban));
}"""


@torch.no_grad()
def twins_of(picture: str, ban: dict | None) -> torch.Tensor:
    """(16, 16) probabilities of the places of each card's twin."""
    model = network("memory")
    pixels = torch.frombuffer(bytearray(pixels_of(picture)), dtype=torch.uint8)
    with intervene(model) as acts:
        if ban:
            acts.forbid(queries=[ban["card"] + 1], keys=[ban["twin"] + 1])
        scores = model.output(model.tokens(scaled(pixels.view(1, 1, 56, 56)))[0, 1:])
    return scores.masked_fill(torch.eye(16, dtype=torch.bool), -torch.inf).softmax(dim=-1)


@pytest.mark.parametrize("deal", range(3))
def test_cards_find_the_twins_that_pytorch_finds_also_without_a_look(deal):
    load("memory")
    board = read_card("memory")["boards"][deal]
    bans = [None, *({"card": card, "twin": board["twins"][card]} for card in range(16))]
    said = torch.tensor(ask(ANSWERS, board["picture"], bans))
    right = torch.stack([twins_of(board["picture"], ban) for ban in bans])
    assert (said - right).abs().max() < CLOSE
    assert [board["twins"][twin] for twin in board["twins"]] == list(range(16))


def test_the_cards_on_the_page_are_those_that_the_lesson_deals():
    kept, today = read_card("memory"), memory_card(network("memory"))
    assert torch.allclose(
        torch.tensor(kept.pop("answers")), torch.tensor(today.pop("answers")), atol=1e-4
    )
    assert kept == today


@pytest.mark.browser
def test_a_card_is_asked_by_keys_and_loses_its_twin_when_one_look_is_forbidden(browser, tmp_path):
    with live_page(browser, write_page(tmp_path, cu.live.memory())) as page:
        news = part(page, "news")
        expect(news).to_contain_text("That is right.")
        card = page.locator("[data-card][aria-pressed=true]")
        expect(card).to_have_attribute("data-card", "8")
        page.get_by_role("checkbox", name="Forbid this card").check()
        expect(news).to_contain_text("may not look at its twin, and now says")
        expect(news).to_contain_text("That is wrong: it lies in")
        page.locator("[data-card='8']").focus()
        page.keyboard.press("ArrowRight")
        page.keyboard.press("Enter")
        expect(card).to_have_attribute("data-card", "9")
        expect(news).to_contain_text("The card in row 3, column 2 says")
