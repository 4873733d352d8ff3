"""Live alignments: answers and maps are PyTorch's, gold links stand where the corpus has them."""

import pytest
import torch
from browsing import load as load_script
from playwright.sync_api import Page, expect
from stored_models import network, words

import course_utils as cu
from course_utils.data.text import BOS, EOS
from course_utils.kit.live.widget import Live
from course_utils.lessons.bahdanau_attention.alignment import links_of
from course_utils.lessons.sequence_to_sequence.small_world import larger_world

pytestmark = pytest.mark.slow

CLOSE = 1e-4
MODELS = {"AttentionTranslator": "bahdanau_fr", "Transformer": "translator_fr"}
NAMES = "attention", "cross"
ASKED = 6
"""Sentences for which the page is compared with PyTorch."""


def widget() -> Live:
    return cu.live.alignment()


def part(page: Page, name: str, which: str = ""):
    return page.locator(
        f"[data-part={which}] [data-part={name}]" if which else f"[data-part={name}]"
    )


def write(page: Page, sentence: str) -> None:
    page.get_by_role("textbox", name="English").fill(sentence)


# Numbers ----------------------------------------------------------------------------------------


def load(page: Page, changed: tuple[str, str] = ("", "")) -> None:
    """The script anew, what is inside it in reach, with one piece of it changed."""
    load_script(page, "widgets/alignment", changed, inside="looked, placesOf, hitsOf")


LOOK = """([kind, source, given]) => {
    const bundle = live_bundles[kind === "Transformer" ? "translator_fr" : "bahdanau_fr"];
    const words = bundle.vocabularies.target;
    const model = (globalThis.live_models ??= {})[kind] ??= new live_engine[kind](bundle);
    const found = live_inside.looked(model, source, words, given);
    const maps = found.maps.map((heads) => heads.map((rows) => rows.map((row) => [...row])));
    return { own: found.own, says: found.says, maps };
}"""

HITS = "([weights, links]) => live_inside.hitsOf(weights, live_inside.placesOf(links))"


@pytest.fixture(scope="module")
def right() -> list:
    """Test sentences, with each model's French and the corpus's: what the page is asked, and the answer."""
    cases, english, french = [], words("source"), words("target")
    for pair in larger_world().test[:ASKED]:
        for kind, name in MODELS.items():
            model = network(name)
            source = [*english.encode(pair.source), EOS]
            ids, lens = torch.tensor([source]), torch.tensor([len(source)])
            own = french.decode(cu.greedy(model, ids, lens)[0])
            for given in (None, list(pair.target)):
                says = given or own
                with cu.record_attention(model) as maps:
                    model(ids, lens, torch.tensor([[BOS, *french.encode(says)]]))
                looks = [w for name, w in maps.items() if "cross" in name or name == "attention"]
                looks = torch.stack([w.reshape(-1, *w.shape[-2:]) for w in looks])
                cases.append(((kind, source, given), own, [*says, "<eos>"], looks))
    return cases


def deviation(page: Page, right: list) -> float:
    """The largest difference of a weight; infinite where a word or a shape is another."""
    worst = 0.0
    for asked, own, says, looks in right:
        found = page.evaluate(LOOK, list(asked))
        maps = torch.tensor(found["maps"])
        if (found["own"], found["says"], maps.shape) != (own, says, looks.shape):
            return float("inf")
        worst = max(worst, (maps - looks).abs().max().item())
    return worst


def wrong_counts(page: Page) -> int:
    """For how many random maps the hits are not those of the course's own rule, the largest weight of each word."""
    torch.manual_seed(0)
    wrong = 0
    for pair in larger_world().test[:40]:
        weights = torch.rand(len(pair.target) + 1, len(pair.source) + 1).softmax(dim=1)
        links = " ".join(f"{s}-{t}" for s, t in sorted(pair.alignment))
        hits = len(links_of(weights[:-1, :-1]) & pair.alignment)
        wrong += page.evaluate(HITS, [weights.tolist(), links]) != hits
    return wrong


def test_answers_and_maps_are_those_of_pytorch(page: Page, right):
    load(page)
    assert deviation(page, right) < CLOSE
    assert wrong_counts(page) == 0


MISTAKES = {
    "a row is that of the word before": ("[BOS, ...read]", "[BOS, BOS, ...read.slice(0, -1)]"),
    "the corpus's French is not read": ("const read = given?.map(", "const read = null?.map("),
    "the French words look at each other": ("\\.cross_", "\\.self_"),
    "attention without heads is forgotten": ("(^|\\.cross_)", "(\\.cross_)"),
    "the greedy state is not a copy": ("model.fork(state)", "state"),
}  # fmt: skip

MISCOUNTS = {
    "links the other way round": (".reverse()", ""),
    "<eos> counts as English": ("largest(Array.from(row).slice(0, -1), 1)", "largest(Array.from(row), 1)"),
    "<eos> counts as French": ("Array.from(weights).slice(0, -1)", "Array.from(weights).slice(1)"),
}  # fmt: skip


def test_each_mistake_is_found(page: Page, right):
    for mistake, changed in MISTAKES.items():
        load(page, changed)
        assert not deviation(page, right) < CLOSE, mistake
    for mistake, changed in MISCOUNTS.items():
        load(page, changed)
        assert wrong_counts(page), mistake


def test_gold_links_are_of_sentences_that_neither_has_read():
    read = {" ".join(pair.source) for pair in larger_world().train}
    packed = cu.live.bundle("bahdanau_fr")
    assert packed["vocabularies"] == cu.live.bundle("translator_fr")["vocabularies"]
    assert not read & {english for english, _, _ in packed["gold"]}


# What is seen -----------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again_and_refuses_what_it_cannot_show():
    assert repr(cu.live.alignment("i'm home .")) == """live.alignment("i'm home .")"""
    html = cu.live.alignment().form()
    assert html.count("<table") == 2 and "<fieldset disabled" in html and "<script" not in html
    with pytest.raises(ValueError, match="a known word is needed"):
        cu.live.alignment("colorless green ideas .")


def test_gold_links_are_framed_where_a_map_has_the_corpuss_french(page: Page):
    pair = larger_world().test[0]
    write(page, " ".join(pair.source))
    page.get_by_role("radio", name="the corpus's").check()
    for which in NAMES:
        rows = part(page, "table", which).locator("tbody tr")
        assert rows.locator("th").all_text_contents() == [*pair.target, "<eos>"]
        framed = {
            (s, t)
            for t in range(len(pair.target) + 1)
            for s in range(len(pair.source) + 1)
            if rows.nth(t).locator("td").nth(s).get_attribute("data-framed") is not None
        }
        assert framed == pair.alignment
        expect(part(page, "counted", which)).to_contain_text(f"of {len(pair.target)} words")
    write(page, "he's calm .")
    expect(part(page, "gold")).to_contain_text("gold links are not known")
    expect(page.locator("[data-framed]")).to_have_count(0)
    for which in NAMES:
        expect(part(page, "said", which).locator("strong")).to_have_text("il est calme .")
        expect(part(page, "counted", which)).to_be_empty()
    page.get_by_role("button", name="another sentence with gold links").click()
    expect(page.get_by_role("textbox", name="English")).to_have_value(" ".join(pair.source))
    page.get_by_role("radio", name="each its own").check()
    for which in NAMES:
        own = part(page, "said", which).locator("strong").text_content()
        rows = part(page, "table", which).locator("tbody th").all_text_contents()
        assert rows == [*own.split(), "<eos>"]


def test_examples_of_which_one_is_wrong_and_what_would_be_right(page: Page):
    for index, example in enumerate(cu.live.bundle("bahdanau_fr")["examples"]):
        page.locator(f"[data-example='{index}']").click()
        said = part(page, "said", "attention")
        expect(said).to_contain_text(example["said"])
        told = (
            f"The corpus has: {example['right']}" if index == 2 else "This is the corpus's French."
        )
        expect(said).to_contain_text(told)


def test_unknown_words_are_named_and_known_ones_like_them_offered(page: Page):
    write(page, "The old wuman is sleeping.")
    expect(part(page, "unknown")).to_contain_text("It does not know wuman. Words it knows: woman")
    part(page, "unknown").get_by_role("button", name="woman", exact=True).click()
    expect(page.get_by_role("textbox")).to_have_value("the old woman is sleeping .")
    expect(page.get_by_role("textbox")).to_be_focused()
    write(page, "xyzzy")
    expect(part(page, "inside")).to_be_hidden()
    write(page, "i'm home .")
    expect(part(page, "inside")).to_be_visible()
    expect(part(page, "unknown")).to_be_empty()


def test_maps_are_chosen_and_numbers_explained_by_keys(page: Page):
    caption = part(page, "table", "cross").locator("caption")
    expect(caption).to_contain_text("Cross-attention, mean of all heads")
    page.get_by_role("button", name="layer 0, head 2").press("Enter")
    expect(caption).to_contain_text("Cross-attention, layer 0, head 2")
    for which, said in (
        ("attention", "query and key are added"),
        ("cross", "The products of the two"),
    ):
        table = part(page, "table", which)
        table.locator("td").first.focus()
        page.keyboard.press("ArrowDown")
        page.keyboard.press("Enter")
        expect(page.locator("td[aria-selected=true]")).to_have_count(1)
        chosen = table.locator("tr").nth(2).locator("td").first
        expect(chosen).to_have_attribute("aria-selected", "true")
        expect(part(page, "of")).to_contain_text(f", {chosen.text_content()} %")
        page.get_by_role("radio", name="score").check()
        expect(part(page, "work")).to_contain_text(said)


def test_an_address_holds_sentence_map_and_number(browser, file):
    state = "#live=alignment.0&sentence=she has a red car .&map=1.3&cell=attention:1.2"
    page = browser.new_page()
    page.goto(file.as_uri() + state)
    page.locator("form[data-ready]").wait_for()
    expect(part(page, "table", "cross").locator("caption")).to_contain_text("layer 1, head 3")
    chosen = part(page, "table", "attention").locator("tr").nth(2).locator("td").nth(2)
    expect(chosen).to_have_attribute("aria-selected", "true")
    page.close()
