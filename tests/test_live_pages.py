"""Live models on the pages of the built book: in Chromium and Firefox, from a server and from a file."""

import pytest
from audit import CONTRAST, WCAG, told_by_axe
from browsing import opened
from firefox import running
from playwright.sync_api import expect

from course_utils.kit.live import bundled
from course_utils.studio import manifest

pytestmark = pytest.mark.browser

FORMS = "article form.cu-live"

TRANSLATE = """bundle => {
    const model = new live_engine.KIND(bundle);
    return bundle.answers.map(({ source, said, logits }) => {
        const state = model.start(source);
        const last = model.step([live_engine.ids.BOS, ...said], state).at(-1);
        const far = Math.max(...logits.map(([id, logit]) => Math.abs(last[id] - logit)));
        return [live_engine.greedy(model, source).join() === said.join(), far];
    });
}"""

ANSWERS = {
    "translator_fr": TRANSLATE.replace("KIND", "Transformer"),
    "everyday_fr": TRANSLATE.replace("KIND", "Transformer"),
    "bahdanau_fr": TRANSLATE.replace("KIND", "AttentionTranslator"),
    "bert": """bundle => {
        const model = new live_engine.BERT(bundle);
        return bundle.answers.map(({ ids, place, logits }) => {
            const found = model.step(ids, model.start())[place];
            const far = Math.max(...logits.map(([id, logit]) => Math.abs(found[id] - logit)));
            return [live_engine.tools.argmax(found) === logits[0][0], far];
        });
    }""",
    "gpt": """bundle => {
        const model = new live_engine.GPT(bundle);
        return bundle.answers.map(({ ids, logits }) => {
            const last = model.step(ids, model.start()).at(-1);
            const far = Math.max(...logits.map(([id, logit]) => Math.abs(last[id] - logit)));
            return [live_engine.tools.argmax(last) === logits[0][0], far];
        });
    }""",
}
ANSWERS |= dict.fromkeys(
    ("vit", "vit_patch14", "vit_patch4"),
    """bundle => {
        const model = new live_engine.ViT(bundle);
        return bundle.examples.map(({ pixels, said }, i) => {
            const values = Array.from(atob(pixels), letter => letter.charCodeAt(0) / 127.5 - 1);
            const rows = Array.from({ length: 28 }, (_, row) => values.slice(28 * row, 28 * (row + 1)));
            const logits = [...model.logits([rows])], right = bundle.answers[i];
            const far = Math.max(...logits.map((logit, kind) => Math.abs(logit - right[kind])));
            return [bundle.kinds[logits.indexOf(Math.max(...logits))] === said, far];
        });
    }""",
)
for _model in ("gpt", "translator_fr", "bahdanau_fr"):
    ANSWERS |= {f"{_model}_{steps}": ANSWERS[_model] for steps in (0, 100)}
"""Model → a function of its bundle: for each stored answer, whether the page gives it, and how far its logits are."""

COMPARE = "Object.entries(live_bundles).map(([name, bundle]) => [name, ({%s})[name](bundle)])"
COMPARE %= ", ".join(f"{name}: {function}" for name, function in ANSWERS.items())

COME_NEAR = """(async () => {
    for (const form of document.querySelectorAll("article form.cu-live")) {
        form.scrollIntoView();
        while (!form.dataset.ready) await new Promise((done) => setTimeout(done, 20));
        const { checkpoint } = form.elements;
        for (let place = Number(checkpoint?.max) - 1; place >= 0; place -= 1) {
            checkpoint.value = place;
            checkpoint.dispatchEvent(new Event("input", { bubbles: true }));
            const said = form.querySelector("[data-part=checkpoint]");
            while (!said.textContent.includes("perplexity")) await new Promise((done) => setTimeout(done, 20));
        }
    }
    return document.querySelectorAll("article form.cu-live").length;
})()"""


NAMES = [
    "index",
    *(
        chapter.notebook
        for chapter in manifest.load(files=False).notebooks
        if "cu.live." in chapter.source.read_text(encoding="utf-8")
    ),
]
"""The pages with a live model."""

EVERY_PUSH = {"index", "11_translating"}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(name, marks=pytest.mark.smoke if name in EVERY_PUSH else ()) for name in NAMES
    ],
)
def near(request, browser, address):
    """Each page with live models, opened once for all tests that ask for it; a reader came near to each model."""
    with opened(browser, address) as page:
        page.goto(f"/{request.param}.html")
        if page.locator(FORMS).first.bounding_box()["y"] > 3000:
            assert page.locator("script[src*='live/']").count() == 0  # nobody came near yet
        assert page.evaluate(COME_NEAR) == page.locator(FORMS).count()
        yield page


def test_the_pages_with_a_live_model_are_known(book):
    found = {
        file.stem
        for file in book.glob("*.html")
        if '<form class="cu-live"' in file.read_text("utf-8")
    }
    assert found == set(NAMES)


def same(answers: list) -> None:
    assert answers, "a page without a bundle"
    for name, found in answers:
        assert len(found) == 3, name
        assert all(equal and far < 1e-4 for equal, far in found), (name, found)


def test_every_bundle_is_compared():
    assert sorted(ANSWERS) == bundled()


def test_a_live_model_answers_as_pytorch_did(near):
    """Three stored answers of each bundle."""
    if near.evaluate("'live_bundles' in globalThis"):
        same(near.evaluate(COMPARE))


def test_a_live_model_answers_from_a_file(browser, book):
    for name in NAMES:
        with opened(browser, "http://127.0.0.1") as page:
            page.goto((book / f"{name}.html").as_uri())
            assert page.evaluate(COME_NEAR) == page.locator(FORMS).count()
            if page.evaluate("'live_bundles' in globalThis"):
                same(page.evaluate(COMPARE))


@pytest.mark.skipif("11_translating" not in NAMES, reason="chapter 11 is left out")
def test_a_sentence_that_is_written_is_translated(browser, address):
    with opened(browser, address) as page:
        page.goto("/11_translating.html")
        form = page.locator(f"{FORMS}[data-live=translator]").first
        form.scroll_into_view_if_needed()
        expect(form).to_have_attribute("data-ready", "true")
        form.get_by_role("textbox").fill("He's calm.")
        expect(form.locator("[data-part=said]")).to_have_text("il est calme .")


@pytest.fixture(scope="module")
def fox(firefox, tmp_path_factory):
    with running(firefox, tmp_path_factory.mktemp("profile")) as fox:
        yield fox


@pytest.mark.parametrize("way", ["http", "file"])
def test_a_live_model_answers_as_pytorch_did_in_firefox(fox, address, book, way: str):
    fox.errors.clear()
    for name in NAMES:
        file = f"{name}.html"
        fox.open(f"{address}/{file}" if way == "http" else (book / file).as_uri())
        assert fox.evaluate(COME_NEAR) >= 1
        if fox.evaluate("'live_bundles' in globalThis"):
            same(fox.evaluate(COMPARE))
        assert fox.errors == [], name


def test_live_models_are_for_everyone(near):
    """WCAG 2.1 AA, as far as axe-core can tell, and contrast in the dark, too; at rest, for words fade in."""
    near.emulate_media(reduced_motion="reduce")
    assert told_by_axe(near, WCAG, FORMS) == []
    near.emulate_media(color_scheme="dark")
    expect(near.locator("html")).to_have_attribute("data-theme", "dark")
    assert told_by_axe(near, CONTRAST, FORMS) == []
