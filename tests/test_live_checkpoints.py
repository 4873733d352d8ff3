"""Live models at several steps of their training: each is loaded when it is asked for, and says what PyTorch's says."""

import json
import random
from functools import cache

import pytest
import torch
from browsing import live_page, part, write_page
from playwright.sync_api import Page, expect
from stored_models import network, words

import course_utils as cu
from course_utils.data.prose import Subwords, load_english
from course_utils.data.text import BOS, EOS
from course_utils.decoding import sample
from course_utils.lessons.gpt import runs
from course_utils.studio.first_states import first_state

pytestmark = pytest.mark.slow

PROMPT = "she wants to"
LONGEST = 40
"""Tokens of a translation in `alignment.js`."""


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("book"), cu.live.gpt(PROMPT, 0.0))


@pytest.fixture
def page(browser, file):
    with live_page(browser, file, reduced_motion="reduce") as page:
        yield page


def slider(page: Page):
    return page.get_by_role("slider", name="Trained for")


@cache
def subwords() -> Subwords:
    """As the chapter learns them."""
    sentences = load_english()
    random.Random(0).shuffle(sentences)
    return Subwords(sentences[1000:], size=512)


def greedy_ids(name: str) -> list[int]:
    """What it writes at temperature 0, as far as its window reads."""
    start = torch.tensor([[EOS, *subwords().encode(PROMPT)]])
    options = {"temperature": 0.0, "banned": Subwords.unwritten, "end": EOS}
    (said,) = sample(network(name), start, max_new=32 - start.shape[1], **options)
    return said


def written(page: Page) -> list[int]:
    ids = page.locator("[name=written]").input_value().split("|")[0].split()
    return [int(i) for i in ids if int(i) != EOS]


def test_the_checkpoints_are_those_that_the_training_stored():
    (run,) = cu.stored_runs("gpt", "writer")
    checkpoints = cu.live.bundle("gpt")["checkpoints"]
    assert [each["steps"] for each in checkpoints] == [*runs.EARLIER, run.config["steps"]]
    losses = [each["loss"] for each in checkpoints]
    assert losses == sorted(losses, reverse=True) and losses[-1] == run.result["loss"]


def test_a_checkpoint_is_loaded_when_it_is_asked_for_and_writes_what_pytorch_writes(page: Page):
    scripts = page.locator("script[src*='gpt_']")
    assert scripts.count() == 0
    for place, name in ((1, "gpt_100"), (0, "gpt_0"), (2, "gpt")):
        slider(page).fill(str(place))
        expect(part(page, "checkpoint")).to_contain_text("perplexity")
        right = greedy_ids(name)
        assert written(page)[: len(right)] == right, name
    assert scripts.count() == 2


def test_after_100_steps_it_writes_what_the_chapter_says(page: Page):
    slider(page).fill("1")
    page.get_by_role("slider", name="Temperature").fill("0.7")
    page.get_by_role("spinbutton", name="Seed").fill("1")
    page.get_by_role("button", name="Write", exact=True).click()
    expect(part(page, "status")).to_have_text("Written: she wants to listen to him .")
    slider(page).press("Home")
    expect(part(page, "full")).to_be_visible()


def test_its_maps_and_probabilities_are_those_of_the_checkpoint(page: Page):
    slider(page).press("Home")
    expect(part(page, "checkpoint")).to_contain_text("untrained")
    page.get_by_role("button", name="Begin again").click()
    model = network("gpt_0")
    ids = torch.tensor([[EOS, *subwords().encode(PROMPT)]])
    with torch.no_grad(), cu.record_attention(model) as maps:
        logits = model(ids)[0]
    rows = part(page, "table").locator("tbody tr").all()
    for row, weights in zip(rows, maps["layers.1.attention"][0].mean(dim=0).tolist(), strict=True):
        shown = [int(text) for text in row.locator("td").all_inner_texts()]
        assert max(abs(a - 100 * b) for a, b in zip(shown, weights, strict=True)) < 0.51
    best = logits[-1].topk(8).indices.tolist()
    names = part(page, "next").locator("li button").all_inner_texts()
    assert names == [subwords().tokens[i] for i in best]


READ = """([name, ids]) => {
    const model = new live_engine.GPT({ ...live_bundles.gpt, tensors: live_bundles[name].tensors });
    return JSON.stringify(model.step(ids, model.start()).map(row => [...row]));
}"""


def test_logits_of_each_checkpoint_are_pytorchs(page: Page):
    ids = [EOS, *torch.randint(5, 512, (20,), generator=torch.Generator().manual_seed(0)).tolist()]
    for place, name in enumerate(("gpt_0", "gpt_100")):
        slider(page).fill(str(place))
        expect(part(page, "checkpoint")).to_contain_text("perplexity")
        found = torch.tensor(json.loads(page.evaluate(READ, [name, ids])))
        with torch.no_grad():
            right = network(name)(torch.tensor([ids]))[0]
        torch.testing.assert_close(found, right, atol=1e-4, rtol=0)


def test_an_address_of_a_checkpoint_keeps_what_was_written(browser, file):
    """A text with a token of the reader's own choice is not written anew when the model has come."""
    page = browser.new_page()
    page.goto(f"{file.as_uri()}#live=gpt.0&checkpoint=1&written=7 8 9|{PROMPT}")
    page.locator("form[data-ready]").wait_for()
    expect(part(page, "checkpoint")).to_contain_text("100 steps, perplexity")
    assert page.locator("[name=written]").input_value() == f"7 8 9|{PROMPT}"
    assert slider(page).get_attribute("aria-valuetext").startswith("100 steps")
    expect(part(page, "lines").locator("[data-word]")).to_have_count(1 + 3 + 3)
    page.close()


def test_an_address_of_a_checkpoint_alone_has_that_model_write(browser, tmp_path):
    """What the trained model wrote before does not stay under another model's name."""
    file = write_page(tmp_path, cu.live.gpt(PROMPT, 0.0))
    with live_page(browser, file, f"#live=gpt.0&written=7 8 9|{PROMPT}") as page:
        assert written(page) == [7, 8, 9]
        page.evaluate("location.hash = 'live=gpt.0&checkpoint=1'")
        expect(part(page, "checkpoint")).to_contain_text("100 steps, perplexity")
        right = greedy_ids("gpt_100")
        assert written(page)[: len(right)] == right


@pytest.mark.parametrize("kind", ["gpt", "translator"])
def test_a_bad_map_with_a_checkpoint_is_taken_back_as_a_whole(browser, tmp_path, kind):
    given = {"gpt": (PROMPT, 0.0), "translator": ("he's calm .", True)}[kind]
    file = write_page(tmp_path, getattr(cu.live, kind)(*given))
    with live_page(browser, file, f"#live={kind}.0&checkpoint=0&map=9.9") as page:
        expect(slider(page)).to_have_value("2")
        assert page.locator("[name=map]").input_value() != "9.9"
        expect(part(page, "checkpoint")).to_contain_text("steps, perplexity")


# The translator -----------------------------------------------------------------------------------


def test_a_translator_without_the_slider_loads_no_other_model():
    assert cu.live.translator("he's calm .").later == ()
    assert 'name="checkpoint"' not in first_state(cu.live.translator("he's calm ."))
    assert repr(cu.live.translator("he's calm .", True)) == 'live.translator("he\'s calm .", True)'


TRANSLATE = """([name, source, said]) => {
    const packed = { ...live_bundles.translator_fr, tensors: live_bundles[name].tensors };
    const model = new live_engine.Transformer(packed), state = model.start(source);
    const last = model.step([live_engine.ids.BOS, ...said], state).at(-1);
    return JSON.stringify([live_engine.greedy(model, source), [...last]]);
}"""


def test_a_translator_says_what_it_said_earlier_in_its_training(browser, tmp_path):
    widget = cu.live.translator("oscar is at the market .", True)
    with live_page(browser, write_page(tmp_path, widget)) as page:
        said = part(page, "said")
        expect(said).to_have_text("oscar est au marché .")
        for place, name in enumerate(widget.later):
            slider(page).fill(str(place))
            expect(part(page, "checkpoint")).to_contain_text("perplexity")
            for answer in cu.live.bundle(name)["answers"]:
                given = [name, answer["source"], answer["said"]]
                greedy, logits = json.loads(page.evaluate(TRANSLATE, given))
                assert greedy == answer["said"]
                assert max(abs(logits[i] - value) for i, value in answer["logits"]) < 1e-4
        expect(said).to_have_text("oscar est à l'école .")
        slider(page).press("End")
        expect(said).to_have_text("oscar est au marché .")
        expect(part(page, "checkpoint")).to_contain_text("618 steps")


# Alignments -------------------------------------------------------------------------------------------


def test_bahdanaus_map_is_that_of_the_checkpoint(browser, tmp_path):
    sentence = "the old woman is sleeping ."
    widget = cu.live.alignment(sentence)
    source = torch.tensor([[*words("source").encode(sentence.split()), EOS]])
    with live_page(browser, write_page(tmp_path, widget)) as page:
        mine = page.locator("[data-part=attention]")
        others = page.locator("[data-part=cross] table")
        before = others.inner_html()
        for place, name in ((0, "bahdanau_fr_0"), (1, "bahdanau_fr_100"), (2, "bahdanau_fr")):
            slider(page).fill(str(place))
            expect(part(page, "checkpoint")).to_contain_text("perplexity")
            model = network(name)
            lens = torch.tensor([source.shape[1]])
            said = cu.greedy(model, source, lens, max_len=LONGEST)[0]
            french = " ".join(words("target").tokens[token] for token in said)
            expect(mine.locator("[data-part=said] strong")).to_have_text(french)
            with torch.no_grad(), cu.record_attention(model) as maps:
                model(source, lens, torch.tensor([[BOS, *said]]))
            for row, weights in zip(
                mine.locator("tbody tr").all(), maps["attention"][0].tolist(), strict=True
            ):
                shown = [int(text) for text in row.locator("td").all_inner_texts()]
                assert max(abs(a - 100 * b) for a, b in zip(shown, weights, strict=True)) < 0.51
        assert others.inner_html() == before
