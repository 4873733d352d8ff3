"""The machine says what PyTorch says without the same parts, and a reader without a mouse can switch them."""

import io

import pytest
import torch
from browsing import live_page, part, write_page
from PIL import Image
from playwright.sync_api import expect
from scripts import CLOSE, ask, load
from stored_models import network

import course_utils as cu
from course_utils.interventions import intervene
from course_utils.kit.live import bundle
from course_utils.kit.live.widgets import PARTS
from course_utils.lessons.transformer.machine import ablate

BOS, EOS, PAD, LONGEST = 2, 3, 0, 20
SENTENCES = (
    "oscar was a doctor .", "she has a red car .", "the dog is behind the house .",
    "tom doesn't know anna .", "did you see my sisters ?",
)  # fmt: skip
TOGETHER = (
    [], ["norms", "residuals"], [part for part in PARTS if part.endswith("positions")],
    ["encoder.0.attention", "encoder.1.attention"], ["norms", "decoder.0.cross_attention"],
    ["residuals", "decoder.1.feed_forward"], ["decoder.0.cross_attention", "decoder.1.cross_attention"],
)  # fmt: skip


@torch.no_grad()
def translated(ids: list[int], off: list[str]) -> tuple[list[int], torch.Tensor]:
    """What PyTorch says, each time from the beginning, and its last logits."""
    said: list[int] = []
    with intervene(network("translator_fr")) as acts:
        ablate(acts, *off)
        while True:
            read = torch.tensor([[BOS, *said]])
            logits = network("translator_fr")(torch.tensor([ids]), torch.tensor([len(ids)]), read)[
                0
            ]
            token = int(logits[-1].index_fill(0, torch.tensor([PAD, BOS]), -torch.inf).argmax())
            if token == EOS or len(said) == LONGEST:
                return said, logits
            said.append(token)


@pytest.mark.parametrize("off", [*([part] for part in PARTS), *TOGETHER], ids="+".join)
def test_without_these_parts_it_says_what_pytorch_says(off):
    load("machine")
    answers = ask(
        """(sentences, off) => {
            const who = answering(live_bundles.translator_fr);
            return sentences.map((sentence) => {
                const { said, logits } = translated(who, heard(who, sentence), off);
                return { said, logits };
            });
        }""",
        SENTENCES,
        off,
    )
    words = bundle("translator_fr")["vocabularies"]["source"]
    for sentence, answer in zip(SENTENCES, answers, strict=True):
        ids = [words.index(word) for word in [*sentence.split(), "<eos>"]]
        said, logits = translated(ids, off)
        assert answer["said"] == said, sentence
        far = (torch.tensor(answer["logits"]) - logits).abs().max() / logits.abs().max()
        assert far < CLOSE, sentence


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("machine"), cu.live.machine())


@pytest.mark.browser
def test_a_switch_answers_to_the_keyboard_keeps_the_focus_and_is_read_aloud(browser, file):
    with live_page(browser, file) as page:
        switch = page.get_by_role("switch", name="masked self-attention (decoder, layer 0)")
        switch.focus()
        page.keyboard.press("Space")
        expect(switch).to_be_focused()
        expect(switch).to_have_attribute("aria-checked", "false")
        expect(part(page, "status")).to_contain_text("oscar était médecin était médecin .")
        expect(part(page, "french")).to_contain_text("You found it")
        page.get_by_role("button", name="All on").click()
        expect(switch).to_be_focused()
        expect(part(page, "status")).to_have_text("oscar était médecin .")


@pytest.mark.smoke
def test_forced_colors_leave_a_switch_its_ground(browser, file):
    with live_page(browser, file, forced_colors="active") as page:
        picture = page.locator(".switch[aria-checked=true] i").first.screenshot()
        assert len(Image.open(io.BytesIO(picture)).convert("RGB").getcolors()) > 2


@pytest.mark.browser
def test_a_press_opens_a_part_with_its_maps_and_its_numbers(browser, file):
    with live_page(browser, file) as page:
        name = "Cross-attention looks at the English"  # the arrow beside it is for the eye alone
        page.get_by_role("button", name=name, exact=True).first.press("Enter")
        inside = page.locator(".inside")
        expect(inside.locator("figure")).to_have_count(4)
        expect(inside.locator(".strip")).to_have_count(3)
        page.get_by_role("switch", name="cross-attention (decoder, layer 0)").press("Space")
        expect(inside).to_contain_text("it adds zeros")


@pytest.mark.parametrize(
    ("given", "told"),
    [(("oscar was a wuman .",), "does not know: wuman"), (("he ran .", ["memory"]), "no parts")],
)
def test_an_unknown_word_or_part_is_refused(given, told):
    with pytest.raises(ValueError, match=told):
        cu.live.machine(*given)
