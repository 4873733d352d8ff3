"""What holds for every kind of live widget: a new script in live/widgets is taken in by itself."""

import json
import re
import time
from pathlib import Path

import nbformat
import pytest
from browsing import CONTRAST, WAIT, copied_link, in_theme, live_page, run_together, write_page
from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook, new_output
from playwright.sync_api import Page, expect

import course_utils as cu
from course_utils.kit import live
from course_utils.studio import manifest
from course_utils.studio.book import widgets
from course_utils.studio.book.check import check
from course_utils.studio.first_states import fill, first_states, widget_of

pytestmark = pytest.mark.slow

KINDS = sorted(path.stem for path in (Path(live.__file__).parent / "widgets").glob("*.js"))

PHONE = {"width": 360, "height": 740}
CLOSER = {"closer": "1", "map": "1.3", "cell": "0.1", "operation": "merge"}
LONG = "there were three mirrors near the window and the old wuman is sleeping ."
FULL: dict[str, dict] = {
    "alignment": {"sentence": LONG, "map": "1.3", "cell": "cross:0.4", "operation": "merge"},
    "assistant": {"question": "Which pet does Gus Brook have ?"},
    "bert": {"sentence": "the old wuman is ___ near the old church .", **CLOSER},
    "character_gpt": {"rate": "0.01", "seed": "7"},
    "colors": {"symbols": "8", "sees": "counts", "painted": "012"},
    "gpt": {"prompt": "the old wuman is sleeping", "Write": "", "forbid": "3", **CLOSER},
    "heads": {"request": "HDC", "heads": "3", "sharpness": "12", "balls": "00010110"},
    "kernel_regression": {"kernel": "epanechnikov", "width": "1.5", "query": "4", "point": "3"},
    "layers": {"country": "Norway", "mode": "from", "layer": "23", "seen": "Japan.alone.7ffffff"},
    "learned_head": {"rate": "3", "seed": "7", "step": "40", "noun0": "1"},
    "look_up": {"size": "0.2", "home": "0.2", "temperature": "9", "kind": "top two"},
    "machine": {
        "sentence": LONG,
        "off": "norms,decoder.0.feed_forward",
        "open": "decoder.1.cross_attention",
    },
    "memory": {"board": "1", "card": "5", "forbid": True},
    "patches": {"garment": "coat", "gone": "1.2.5"},
    "question": {"question": "2", "several": True, "off": "4.7", "tried": "2.0 2.1 2.8 0.8"},
    "translator": {"sentence": LONG, "forbid": "4", **CLOSER},
    "vit": {"image": "1", "patch": "4", "map": "0.2"},
    "words": {"caption": "1", "frame": "9", "without": "0.2"},
}
"""Kind → controls and values with which it shows much; a name that is no control's is a button's."""


@pytest.fixture(scope="module", params=KINDS)
def kind(request) -> str:
    return request.param


@pytest.fixture(scope="module")
def file(kind, tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("book"), getattr(live, kind)())


def show_much(page: Page, kind: str) -> None:
    page.locator("details").evaluate_all("nodes => nodes.forEach(node => { node.open = true; })")
    page.locator("form").evaluate(
        """(form, values) => Object.entries(values).forEach(([name, value]) => {
            const control = form.elements[name], texts = [...form.querySelectorAll("button")];
            if (!control) return texts.find((button) => button.textContent === name).click();
            if (control.type === "checkbox") control.checked = true;
            else control.value = value;
            form.querySelector(`[name=${name}]`).dispatchEvent(new Event("input", { bubbles: true }));
        })""",
        FULL[kind],
    )


# In Python ----------------------------------------------------------------------------------------

TABLE = (
    {"pig": (0.6, 0.7, 3), "whale": (1.6, 0, 90)},
    {"calf": (0.6, 0.7)},
    ("size", "home", "weeks"),
)
MADE: dict[str, tuple[tuple, list[str]]] = {
    "alignment": (("i'm home .",), ["je suis chez moi .", "are not known"]),
    "assistant": (("Where does Gus Voss live ?",), ["No biography tells of", "Gladly"]),
    "bert": (("he ___ to .",), ["likes␣", "data-choice"]),
    "character_gpt": ((0.01, 3), ["Step 0: validation loss", "The clock in the tower"]),
    "colors": ((8, "counts"), ["The filled symbols are ", "number 1 of 8"]),
    "gpt": (("she wants to", 0.7, 1), ["Written: she wants to visit the museum ."]),
    "heads": (("GAB", 1), ["The readout says: G white, A white, B black.", "all at once 50 %"]),
    "kernel_regression": ((0.5,), ["the average is 3.76", "a weight of 0.13"]),
    "layers": (
        ("Norway",),
        ["the likeliest next word is <em>Oslo</em>", "Oslo, nothing forbidden"],
    ),
    "learned_head": ((3, 4), ["Step 0: loss 0.694", "at best 0.497"]),
    "look_up": (TABLE, ["<td>−0.745</td>", 'max="1.7"', "calf, size 0.60", "weeks v"]),
    "machine": (
        ("he isn't a painter .", ["decoder.0.cross_attention"]),
        ["peintre", 'aria-checked="false"'],
    ),
    "memory": ((), ["The card in row 3, column 1 says: my twin lies in"]),
    "question": (
        ("What is the opposite of hot?",),
        ["it still says <em>cold</em>", '<span class="slot">?</span>', "capital of Egypt"],
    ),
    "patches": (("coat",), ["before it is a pullover?", "The model says <strong>coat"]),
    "translator": (("he's calm .", True), ["il est calme .", 'name="checkpoint"']),
    "vit": ((), ["Ankle boot, 99 %"]),
    "words": (("trousers | T-shirt",), ["step 171 of 200", "attend mostly to “trousers”"]),
}
"""Kind → what it is made with, and what it shows then without a script."""


def saved(*widgets) -> NotebookNode:
    """A notebook that shows widgets, as it is read again after it was written."""
    data = [dict(widget._repr_mimebundle_()[0]) for widget in widgets]
    outputs = [new_output("execute_result", data=each) for each in data]
    return nbformat.reads(
        nbformat.writes(fill(new_notebook(cells=[new_code_cell(outputs=outputs)]))), 4
    )


def test_what_a_notebook_keeps_makes_the_widget_again(kind):
    given, shown = MADE[kind]
    made, asleep = getattr(live, kind)(*given), "once its cell is run"
    data, _ = made._repr_mimebundle_()
    assert "application/vnd.jupyter.widget-view+json" in data
    assert asleep in data["text/html"], "a saved form says why it does not answer"
    assert asleep not in made._panel.form, "one that lives does not"
    (output,) = saved(made).cells[0].outputs
    html, again = output.data["text/html"], widget_of(output)
    assert json.dumps(again.options) == json.dumps(made.options), "in the same order, too"
    (first,) = first_states([made])
    assert html == data["text/html"].replace("></fieldset>", f">{first}</fieldset>")
    assert '<fieldset disabled="">' in html and "<script" not in html
    bare = re.sub(r'<(span|bdi) translate="no">(.*?)</\1>', r"\2", html).replace(
        ' translate="no"', ""
    )
    assert [text for text in shown if text not in bare] == []
    assert not re.search(r">[^<]*-\d", first), "a hyphen for a minus sign"
    assert run_together(first) == []


@pytest.mark.parametrize(
    ("kind", "given", "told"),
    [
        ("alignment", ("colorless green ideas .",), "does not know: colorless, ideas"),
        ("translator", ("colorless green ideas .",), "does not know: colorless, ideas"),
        ("translator", ("  ",), "is empty; write at least one word"),
        ("assistant", ("Where does Gus Wuman live ?",), "does not know: wuman"),
        ("assistant", ("  ",), "is empty; write at least one word"),
        ("bert", ("she wants to read .",), "write ___ where a word is missing"),
        ("gpt", ("a", -0.1), "temperature=-0.1; 0 to 2"),
        ("gpt", ("a", 2.1), "temperature=2.1; 0 to 2"),
        ("gpt", ("word " * 40,), "prompt=.* at most 32"),
        *[("heads", (asked,), "one to four different") for asked in ("", "CC", "ABCDE", "cf")],
        ("heads", ("CF", 5), "num_heads=5; 1 to 4"),
        ("kernel_regression", (-1.0,), "noise"),
        ("learned_head", (2, 0), "rate=2; one of"),
        *[("learned_head", (1, seed), f"seed={seed!r}; 0 to 99") for seed in (-1, 100, "x")],
        ("colors", (3, "whole"), "symbols=3; 2, 4 or 8"),
        ("colors", (2, "all"), "sees='all'; 'whole'"),
        ("character_gpt", (1, 0), "rate=1; one of"),
        ("character_gpt", (0.01, 100), "seed=100; 0 to 99"),
        ("words", ("socks | hat",), "not drawn; there are trousers | ankle boot, "),
        ("question", ("Who?",), "is not stored; there are What is the capital of Japan"),
        ("layers", ("Atlantis",), "'Atlantis' is not stored; there are .*Japan"),
        *[("look_up", given, "is empty; one entry") for given in (({},), (None, {}))],
    ],
)
def test_what_a_widget_cannot_begin_with_is_refused(kind, given, told):
    with pytest.raises(ValueError, match=told):
        getattr(live, kind)(*given)


def test_other_outputs_are_no_widgets():
    for data in ({"text/plain": "live.memory()"}, cu.explore.first_slider()._repr_mimebundle_()[0]):
        assert widget_of(new_output("execute_result", data=dict(data))) is None


def test_a_page_of_the_book_loads_the_scripts_that_it_needs_and_none_may_be_missing(tmp_path):
    made = live.translator("i'm home .")
    (cell,) = saved(made).cells
    widgets.show_widgets([cell])
    (output,) = cell.outputs
    assert output.data == {"text/html": widgets.live_html(made)[0]}
    loaded = re.findall(r"live/[\w/]+\.js", output.data["text/html"])
    assert loaded == ["live/widgets/translator.js", "live/translator_fr.js"]
    course = manifest.load(files=False)
    (tmp_path / "index.html").write_text(output.data["text/html"], encoding="utf-8")
    missing = "index.html: live/translator_fr.js is missing, a live model needs it: make book"
    assert missing in "\n".join(check(tmp_path, course))
    for name, text in widgets.live_scripts().items():
        (tmp_path / name).parent.mkdir(exist_ok=True, parents=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    assert "a live model needs it" not in "\n".join(check(tmp_path, course))


# In a page ----------------------------------------------------------------------------------------

PARTS = """form => [...form.querySelectorAll('[data-part]')].map(part => {
    const copy = part.cloneNode(true);
    copy.querySelector('.cu-live-link')?.remove();  // a script alone makes links
    // nor does it know the stage's width before it is shown
    return copy.outerHTML.replaceAll(/ (role|tabindex|aria-selected)="[^"]*"| style="--stage: [^"]*"/g, '');
})"""


@pytest.mark.smoke
def test_a_page_that_comes_alive_shows_what_it_showed_before(browser, kind, file):
    context = browser.new_context(java_script_enabled=False)
    before = context.new_page()
    before.goto(file.as_uri())
    assert before.locator("input:enabled, button:enabled").count() == 0
    written = before.locator("form").evaluate(PARTS)
    context.close()
    assert len(written) > 2
    for fragment in ("", f"#live={kind}.0"):  # the second makes the page draw all that it shows
        with live_page(browser, file, fragment, reduced_motion="reduce") as after:
            assert after.locator("form").evaluate(PARTS) == written


def test_without_widgets_an_output_is_the_same_page_and_needs_no_other_file(
    browser, kind, file, tmp_path
):
    alone = tmp_path / "output.html"
    text = f"<!doctype html><meta charset=utf-8><div>{getattr(live, kind)().alone()}</div>"
    alone.write_text(text, encoding="utf-8")
    with live_page(browser, file) as page:
        written = page.locator("form").evaluate(PARTS)
    with live_page(browser, alone) as page:
        assert page.locator("form").evaluate(PARTS) == written
        expect(page.get_by_text("once its cell is run")).to_have_count(0)


def test_a_link_opens_what_is_shown(browser, kind, file):
    with live_page(browser, file, reduced_motion="reduce") as page:
        show_much(page, kind)
        link = copied_link(page)
        fragment = f"#{link.split('#')[1]}"
        with live_page(browser, file, fragment, reduced_motion="reduce") as again:
            assert copied_link(again) == link
            limit = time.monotonic() + WAIT / 1000  # a worker answers when it has computed
            while (mine := again.locator("form").evaluate(PARTS)) != (
                shown := page.locator("form").evaluate(PARTS)
            ) and time.monotonic() < limit:
                page.wait_for_timeout(50)
            assert mine == shown


def test_an_address_that_holds_nonsense_does_no_harm(browser, kind, file):
    with live_page(browser, file) as page:
        named = "form => [...form.elements].filter(each => each.name).map(each => [each.name, each.type])"
        controls = dict(page.locator("form").evaluate(named))
        for name, sort in controls.items():
            texts = () if sort == "number" else ("<img src=x>",)  # the browser itself says so
            for junk in (*texts, "-1", "1e9", "9.9", ""):
                page.goto(f"{file.as_uri()}#live={kind}.0&{name}={junk}")
        assert page.locator("form img").count() == 0
        page.goto(f"{file.as_uri()}#live={kind}.0&hide={next(iter(controls))}")
        assert page.locator("form [data-away]").count() >= 1


def test_what_does_not_fit_into_a_field_is_said_to_be_left_out(browser, kind, file):
    with live_page(browser, file) as page:
        for field in page.locator("input[maxlength]").all():
            told = field.locator("xpath=ancestor::label/following-sibling::*[@role='status'][1]")
            most = int(field.get_attribute("maxlength"))
            field.fill("a" * (most - 1))
            field.press("End")
            field.press("b")
            expect(told).to_be_empty()
            field.press("c")
            expect(told).to_contain_text(f"At most {most} characters")
            assert field.input_value() == "a" * (most - 1) + "b"
            field.press("Backspace")
            expect(told).to_be_empty()


def test_it_is_for_everyone(browser, kind, file):
    """Every text has a contrast to its ground, every control a name, and on a phone all fits and can be touched."""
    with live_page(browser, file, reduced_motion="reduce") as page:
        form, contrasts = page.locator("form"), []
        for change in (lambda: None, lambda: show_much(page, kind)):
            change()
            for theme in ("light", "dark"):
                in_theme(page, theme)
                contrasts.append(form.evaluate(CONTRAST))
        assert min(contrasts) >= 4.5, contrasts
        expect(page.get_by_role("form", name=re.compile("^Live "))).to_be_visible()
        assert page.locator("svg:not([aria-hidden=true], [role=img][aria-label])").count() == 0
        name = "nodes => nodes.map(node => node.ariaLabel ?? (node.labels?.[0] ?? node).textContent.trim())"
        controls = ":is(input, select, button, [role=group], [role=region]):visible"
        assert all(page.locator(controls).evaluate_all(name))
        assert page.locator("[aria-live=polite], [role=status]").count() >= 1
        page.set_viewport_size(PHONE)
        assert page.evaluate("document.documentElement.scrollWidth") <= PHONE["width"]
        touched = page.locator(":is(button, select, label, summary, input[type=text]):visible")
        assert min(touched.evaluate_all("all => all.map(each => each.offsetHeight)")) >= 24
        wide = "all => all.some(node => node.scrollWidth > node.clientWidth && node.tabIndex !== 0)"
        assert not page.get_by_role("region").evaluate_all(wide), "what scrolls is reached by keys"


NAMED: dict[str, str] = {
    "alignment": "pizza mange mirrors wuman",
    "assistant": "Penn Paris Gladly Brook",
    "bert": "novel wants wuman woman",
    "character_gpt": "clock",
    "gpt": "wants wuman woman sleeping",
    "layers": "Japan Tokyo Norway Oslo",
    "learned_head": "hungry ripe",
    "look_up": "kitten mouse elephant bird",
    "machine": "tom connaît pas mirrors miroirs wuman",
    "patches": "boot sandal coat pullover",
    "question": "Japan Tokyo opposite",
    "translator": "car voiture mirrors miroirs wuman woman",
    "vit": "Sandal Bag Trouser",
    "words": "trousers ankle T-shirt",
}
"""Kind → words that its model reads or says, at first or in its state of FULL."""

NOT_PROTECTED = """words => {
    const isOpen = ({ parentElement }) => !parentElement.matches("style, script") &&
        parentElement.closest("[translate]")?.getAttribute("translate") !== "no";
    const walker = document.createTreeWalker(document.querySelector("form"), NodeFilter.SHOW_TEXT), texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode);
    const has = (word) => ({ data }) => new RegExp(`(?<![\\\\p{L}-])${word}(?![\\\\p{L}-])`, "u").test(data);
    return words.map((word) => {
        const found = texts.filter(has(word));
        return [word, found.length, found.filter(isOpen).map(({ data }) => data)];
    });
}"""


@pytest.mark.smoke
@pytest.mark.parametrize("kind", NAMED)
def test_a_translation_of_the_page_leaves_what_a_model_reads_and_says(browser, kind, tmp_path):
    file = write_page(tmp_path, getattr(live, kind)())
    with live_page(browser, file, reduced_motion="reduce") as page:
        words, counts = NAMED[kind].split(), dict.fromkeys(NAMED[kind].split(), 0)
        for change in (lambda: None, lambda: show_much(page, kind)):
            change()
            for word, count, unprotected in page.evaluate(NOT_PROTECTED, words):
                assert unprotected == [], word
                counts[word] += count
        assert all(counts.values()), counts


TEXTS = """form => {
    const isClipped = (node) => node && (getComputedStyle(node).clipPath !== "none" || isClipped(node.parentElement));
    const isSeen = (node) => node.checkVisibility({ visibilityProperty: true, opacityProperty: true }) &&
        !node.closest("option, style, script, textarea") && !isClipped(node);
    const walker = document.createTreeWalker(form, NodeFilter.SHOW_TEXT), lines = [], cut = [];
    while (walker.nextNode()) {
        const node = walker.currentNode;
        if (!node.data.trim() || !isSeen(node.parentElement)) continue;
        const range = document.createRange();
        range.selectNodeContents(node);
        for (const rect of range.getClientRects()) {
            let [left, right, top, bottom, scrolls] = [rect.left, rect.right, rect.top, rect.bottom, false];
            for (let e = node.parentElement; e && e !== form; e = e.parentElement) {
                const { overflowX, overflowY } = getComputedStyle(e);
                if (overflowX === "visible" && overflowY === "visible") continue;
                const box = e.getBoundingClientRect();
                scrolls ||= /auto|scroll/.test(overflowX + overflowY);
                [left, right] = [Math.max(left, box.left), Math.min(right, box.right)];
                [top, bottom] = [Math.max(top, box.top), Math.min(bottom, box.bottom)];
            }
            if (right - left < rect.width - 2 && !scrolls) cut.push(node.data.trim());
            if (right > form.getBoundingClientRect().right + 1) cut.push(`outside: ${node.data.trim()}`);
            const layer = node.parentElement.closest(".cu-machine-french, .cu-live-tour"); // lies on what scrolls
            if (right - left > 1 && bottom - top > 1) lines.push({ node, layer, left, right, top, bottom });
        }
    }
    const over = lines.flatMap((a, i) => lines.slice(i + 1).filter((b) => a.node !== b.node && a.layer === b.layer &&
        Math.min(a.right, b.right) - Math.max(a.left, b.left) > 2 &&
        Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top) > 0.35 * Math.min(a.bottom - a.top, b.bottom - b.top))
        .map((b) => `${a.node.data.trim()} / ${b.node.data.trim()}`));
    return { over, cut, count: new Set(lines.map(({ node }) => node)).size };
}"""
"""Texts of a form that lie over one another, or are cut where nothing scrolls; and how many are seen."""


@pytest.mark.smoke
def test_no_two_words_lie_over_one_another_and_none_is_cut_at_any_width(browser, kind, file):
    """On a laptop, a tablet and a phone, and in a tile of the cover, which is narrow on a wide screen."""
    with live_page(browser, file, reduced_motion="reduce") as page:
        for change in (lambda: None, lambda: show_much(page, kind)):
            change()
            counts = []
            for width, tile in ((1280, ""), (1280, "412px"), (768, ""), (390, "")):
                page.set_viewport_size({"width": width, "height": 900})
                page.locator("form").evaluate(
                    "(form, width) => { form.parentElement.style.width = width; }", tile
                )
                page.evaluate(
                    "new Promise((done) => requestAnimationFrame(() => setTimeout(done)))"
                )
                found = page.locator("form").evaluate(TEXTS)
                assert found["over"] == [] and found["cut"] == [], (width, tile)
                counts.append(found["count"])
            assert min(counts) > 0.5 * max(counts), (
                "what is seen on a wide page is seen on a narrow one"
            )


PRESSES: dict[str, tuple[str, str]] = {
    "bert": ("[data-choice]:enabled", "[data-part=text]"),
    "colors": ("[data-paint]", "[data-part=drawing]"),
    "gpt": ("[data-word='1']", "[data-part=before]"),
    "heads": ("[data-ball='2']", "[data-part=said]"),
    "layers": ("[data-country=France]", "[data-part=sentence]"),
    "learned_head": ("[data-part=step]", "[data-part=said]"),
    "look_up": ("[data-word=mouse]", "[data-part=said]"),
    "machine": (".switch", "[data-part=french] .said"),
    "memory": ("[data-card='0']", "[data-part=news]"),
    "patches": ("[data-patch='0']", "[data-part=bars]"),
    "question": (".word[data-token='8']", "[data-part=said]"),
    "translator": ("[data-word='0']", "[data-part=said]"),
    "vit": ("[data-example='1']", "[data-part=said]"),
    "words": ("[data-word='0']", "[data-part=without]"),
}
"""Kind → what a reader presses first, and where the answer is drawn."""


@pytest.mark.smoke
@pytest.mark.parametrize("kind", PRESSES)
def test_the_first_press_shows_its_effect(browser, kind, tmp_path):
    press, answer = PRESSES[kind]
    with live_page(
        browser, write_page(tmp_path, getattr(live, kind)()), reduced_motion="reduce"
    ) as page:
        shown = page.locator(answer).first
        before = shown.inner_html()
        page.locator(press).first.click()
        expect(shown).not_to_have_js_property("innerHTML", before)


def test_each_word_of_each_caption_has_an_effect_at_the_first_press():
    """It is forbidden from the start, for at a later step some are decided already."""
    for caption in live.bundle("words")["captions"]:
        from_the_start = [ends[0] for ends in caption["changes"]]
        assert all(a != b for a, b in zip(from_the_start, caption["named"], strict=True)), caption[
            "words"
        ]


@pytest.mark.smoke
@pytest.mark.parametrize("policy", ["script-src 'self' file:", ""])
def test_a_piece_whose_script_is_refused_says_so(browser, tmp_path, policy):
    """Under a strict content policy, and without scripts; where the script runs, it takes the sentence away."""
    page = write_page(tmp_path, live.memory())
    asked = cu.predict("Which?", ["a", "b"], answer="a", wrong={"b": "No."}, why="Yes.")
    html = page.read_text("utf-8").replace(
        "<body>",
        f"<body>{asked._repr_mimebundle_()['text/html']}{cu.explore.first_slider().page()}",
    )
    meta = f'<meta http-equiv="Content-Security-Policy" content="{policy}">' if policy else ""
    page.write_text(html.replace("<meta", f"{meta}<meta", 1), encoding="utf-8")
    opened = browser.new_page()
    opened.goto(page.as_uri())
    told = opened.get_by_text("refuses the scripts inside it")
    expect(told).to_have_count(3 if policy else 0)
    opened.close()
