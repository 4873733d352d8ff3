"""An explorer's page of frames, opened from a file: every control answers mouse and keyboard."""

import re

import pytest
from playwright.sync_api import Page, expect

import course_utils as cu
from course_utils.figures import image_tag
from course_utils.kit.assets import asset
from course_utils.kit.controls import Choice, Slider, Toggle
from course_utils.kit.explorer import Explorer


class Values:
    def __init__(self):
        self.picture, ax = cu.subplots(alt="Values", width=4, height=1)
        self.text = ax.text(0.1, 0.5, "")

    def draw(self, number: int, kind: str, side: str, on: bool) -> str:
        self.text.set_text(f"{number} {kind} {side} {on}")
        return f"number {number}, kind {kind}, side {side}, on {on}"


def explorer(start: int) -> Explorer:
    controls = {
        "number": Slider(range(3), start, label="Number"),
        "kind": Choice(list("abcdef"), "b", label="Kind"),
        "side": Choice(["left", "right"], "left", label="Side"),
        "on": Toggle(False, label="Switched on"),
    }
    return Explorer("values", Values, controls)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    """A page with two explorers: each has to answer for itself."""
    path = tmp_path_factory.mktemp("page") / "page.html"
    pages = "".join(explorer(start).page() for start in (1, 2))
    path.write_text(f"<!doctype html><meta charset=utf-8>{pages}", encoding="utf-8")
    return path


@pytest.fixture
def page(browser, file):
    page, errors = browser.new_page(), []
    page.on("pageerror", lambda error: errors.append(str(error)))
    page.on("console", lambda message: errors.append(message.text))
    page.goto(file.as_uri())
    yield page
    page.close()
    assert errors == []


@pytest.mark.smoke
def test_every_control_moves_picture_and_alt_text(page: Page):
    first, second = page.locator("form").all()
    image, caption = first.locator("img"), first.locator(".cu-caption")
    width = image.evaluate("image => image.decode().then(() => image.naturalWidth)")
    moves = [
        ("slider", "Number", "End", "number 2, kind b, side left, on False"),
        ("combobox", "Kind", "f", "number 2, kind f, side left, on False"),
        ("radio", "left", "ArrowRight", "number 2, kind f, side right, on False"),
        ("checkbox", "Switched on", "Space", "number 2, kind f, side right, on True"),
    ]
    for role, name, key, says in moves:
        before = image.get_attribute("src")
        first.get_by_role(role, name=name, exact=True).focus()
        page.keyboard.press(key)
        expect(caption).to_have_text(says)
        expect(image).to_have_attribute("alt", says)
        assert image.get_attribute("src") != before
        assert image.evaluate("image => image.naturalWidth") == width
    expect(first.get_by_role("slider")).to_have_attribute("aria-valuetext", "2")
    expect(first.locator("output")).to_have_text("2")
    expect(second.locator(".cu-caption")).to_have_text(re.compile("^number 2, kind b"))


# On a phone -------------------------------------------------------------------------------------

PHONE = {"width": 390, "height": 844}
LEGIBLE = 9.9  # pixels

MEASURE = """form => {
    const parts = [...form.querySelectorAll("canvas")].map(canvas => {
        const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
        return [canvas.getBoundingClientRect().width, new Set(pixels).size > 1];
    });
    const controls = form.querySelectorAll(".cu-controls label, .cu-controls select, [type=range]");
    return {
        parts,
        scroll: document.documentElement.scrollWidth,
        image: form.querySelector(".cu-stage img").getBoundingClientRect().width,
        touch: [...controls].map(control => control.getBoundingClientRect().height),
    };
}"""


@pytest.fixture(scope="module")
def phone(browser):
    page = browser.new_page(viewport=PHONE)
    yield page
    page.close()


def still(name: str) -> tuple[str, Explorer]:
    """A page with an explorer of the course at its first picture, as a book shows it on a phone."""
    explorer = getattr(cu.explore, name)()
    png, alt = explorer.frame()
    source = re.search('src="([^"]*)"', image_tag(png, alt, *explorer.size))[1]
    text = explorer.form().html(alt, src=source)
    script = asset("explorer.js") + "; connect(document.querySelector('form'), () => {});"
    script = f"(() => {{{script}}})();"  # as a page of the book has it: the next one declares its names again
    return (
        "<!doctype html><meta charset=utf-8><meta name=viewport content='width=device-width'>"
        f"<body style='margin: 0 15px'>{text}<style>{asset('explorer.css')}</style>"
        f"<script>{script}</script>"
    ), explorer


@pytest.mark.slow
@pytest.mark.parametrize("name", dir(cu.explore))
def test_on_a_phone_panels_stand_one_below_the_other_with_legible_labels(phone: Page, name: str):
    text, explorer = still(name)
    cuts, least = explorer.form().cuts, explorer.form().least_scale
    smallest = 10 / least  # pixels, in the picture as it is drawn
    phone.set_content(text)
    room = phone.locator(".cu-stage").evaluate("stage => stage.getBoundingClientRect().width")
    if cuts[-1] <= room:  # shown whole
        image = phone.locator(".cu-stage img").first
        expect(image).to_be_visible()
        width = image.evaluate("image => image.getBoundingClientRect().width")
        assert smallest * width / cuts[-1] >= LEGIBLE
        return
    expect(phone.locator("canvas").first).to_be_visible()
    phone.wait_for_function("document.querySelector('canvas').width !== 300")
    seen = phone.locator("form").evaluate(MEASURE)
    assert seen["scroll"] <= PHONE["width"]
    assert min(seen["touch"]) >= 32
    assert seen["image"] <= 1, "the picture as a whole gives way to its parts"
    for left, right, (width, shows) in zip(cuts, cuts[1:], seen["parts"], strict=False):
        assert bool(width) == shows, "a part that is empty is left out"
        assert not width or smallest * width / (right - left) >= LEGIBLE


# In Lab: a model that stands for the kernel, which draws or has gone
KERNEL = """({form, answers}) => {
    const [frame, positions, heard] = [{png: new Uint8Array(), alt: "first"}, [1, 1, 0, 0], {}];
    const state = {form, positions, drawn: positions, alert: "", frame};
    const draw = () => { state.drawn = state.positions; heard["change:drawn"](); };
    render({el: document.body, model: {
        get: (name) => state[name],
        set: (name, value) => { state[name] = value; },
        on: (event, hear) => { heard[event] = hear; },
        save_changes: () => answers && setTimeout(draw, 100),
    }});
}"""


@pytest.mark.smoke
@pytest.mark.parametrize("answers", [True, False])
def test_a_kernel_that_is_gone_is_named_within_seconds(browser, answers):
    shown = explorer(1).form().html("")
    page = browser.new_page()
    page.add_script_tag(content=asset("explorer.js"))
    page.evaluate(KERNEL, {"form": shown, "answers": answers})
    page.get_by_role("slider", name="Number").press("End")
    alert = page.get_by_role("alert")
    if answers:
        page.wait_for_timeout(1500)
        expect(alert).to_be_hidden()
    else:
        expect(alert).to_contain_text("run this cell again")
    expect(page.locator("form[data-silent]")).to_have_count(int(not answers))
    page.close()
