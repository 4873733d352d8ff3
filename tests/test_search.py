"""The book's search finds sections by their words, also by "sqrt" for √, and shows the sentence, from a file, too."""

import json

import pytest

from course_utils.studio.book import search
from course_utils.studio.book.pages import STATIC

PAGE = """<meta charset=utf-8><article><section id=scores><h1>Scores<a class=headerlink>#</a></h1><p>All scores.</p>
<section id=root><h2>Why divide by √d?</h2><p>A first sentence. The variance of <b>the product</b> is d.</p>
<div class=cell_input>softmax(x)</div></section>
<section id=entry><h2>Product</h2><p>A product is a product.</p></section>
</section></article>"""
# As Sphinx has it: a constant with a method, called when the page stands there.
SEARCH = """<meta charset=utf-8><div id=search-results></div><script>const Search = {performSearch() {}};</script>
<script>SCRIPT</script><script>addEventListener("load", () => Search.performSearch("QUERY"));</script>"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "03.html").write_text(PAGE, encoding="utf-8")
    search.write_sections(tmp_path)
    return tmp_path


def test_each_section_has_its_own_text_without_code(folder):
    text = (folder / search.SCRIPT).read_text(encoding="utf-8")
    sections = json.loads(text.removeprefix("window.SECTIONS = ").removesuffix(";\n"))
    assert sections == [
        ["03.html", "scores", "Scores", "Scores", "All scores."],
        ["03.html", "root", "Scores", "Why divide by √d?", "A first sentence. The variance of the product is d."],
        ["03.html", "entry", "Scores", "Product", "A product is a product."],
    ]  # fmt: skip


@pytest.mark.smoke
@pytest.mark.parametrize(
    ("query", "found", "sentence"),
    [
        ("why divide by sqrt d", ["03.html?found#root"], "The variance of the product is d."),
        ("score", ["03.html?found#scores"], "All scores."),
        ("product", ["03.html?found#entry", "03.html?found#root"], "A product is a product."),
        ("softmax", [], ""),
    ],
)
def test_the_best_section_comes_first_with_its_sentence(browser, folder, query, found, sentence):
    page = SEARCH.replace("SCRIPT", (STATIC / "search.js").read_text()).replace("QUERY", query)
    (folder / "search.html").write_text(page, encoding="utf-8")
    view = browser.new_page()
    view.goto((folder / "search.html").as_uri())
    view.locator(".search-summary").wait_for()
    links = view.locator("#search-results a")
    assert [link.get_attribute("href") for link in links.all()] == found
    assert not found or view.locator(".context").first.text_content() == sentence
    view.close()


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\frac{q\cdot k}{\sqrt{d}}", "q·k/√d"),
        (r"\sqrt d", "√d"),
        (r"\alpha_i = 0", "α_i = 0"),
        (r"\lambda \in \mathbb{R}^{n\times d}", "λ ∈ R^n×d"),
    ],
)
def test_a_formula_is_found_as_a_line_of_text(tex, text):
    assert " ".join(search.plain_formula(tex).split()) == text
