"""The book's search finds sections by their words, also by "sqrt" for √, and shows the sentence, from a file, too."""

import json
import re

import pytest

from course_utils.studio.book import search
from course_utils.studio.book.pages import STATIC
from course_utils.studio.plain_formula import plain_formula, plain_text

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


KINDS = """<meta charset=utf-8><article><section id=a><h1>TITLE</h1><p>On padding: x = α_i, padding.
Here is padding in words. It is padding √2 = 1.</p>
<section id=b><h3>Exercise 2 · Padding</h3><p>Padding, padding, padding.</p></section></section></article>"""


@pytest.mark.smoke
def test_a_chapter_comes_before_an_exercise_before_a_page_for_teachers(browser, tmp_path):
    for name, title in {"teaching_masks": "Padding", "04_masks": "Masks", "01_one": "One"}.items():
        (tmp_path / f"{name}.html").write_text(KINDS.replace("TITLE", title), encoding="utf-8")
    search.write_sections(tmp_path)
    page = SEARCH.replace("SCRIPT", (STATIC / "search.js").read_text()).replace("QUERY", "padding")
    (tmp_path / "search.html").write_text(page, encoding="utf-8")
    view = browser.new_page()
    view.goto((tmp_path / "search.html").as_uri())
    view.locator(".search-summary").wait_for()
    links = view.locator("#search-results a").evaluate_all(
        "all => all.map(e => e.getAttribute('href'))"
    )
    places = [link.replace(".html?found", "") for link in links]
    assert places[:2] == ["01_one#a", "04_masks#a"] and places[2:4] == ["01_one#b", "04_masks#b"]
    assert sorted(places[4:]) == ["teaching_masks#a", "teaching_masks#b"]
    assert view.locator(".context").first.text_content() == "Here is padding in words."
    view.close()


def test_no_tex_is_left_in_the_index_of_the_book(book):
    text = (book / search.SCRIPT).read_text(encoding="utf-8").partition("= ")[2].rstrip(";\n")
    sections = json.loads(text)
    assert len(sections) > 500
    words = [f"{title} {body}" for *_, title, body in sections]
    # A path of Windows has backslashes, and a word may have "bar" in it.
    fonts = r"\b(\w*bar|hat|boldsymbol|mathbf|pm) (\w_|[α-ω0-9])"
    debris = rf"(?<!\.venv)(?<!Scripts)\\|[_^]\{{|\b(begin|end) ?\w*matrix|{fonts}|\$\S+\$"
    assert [found[0] for word in words if (found := re.search(debris, word))] == []


@pytest.mark.parametrize(
    ("tex", "text"),
    [
        (r"\frac{q\cdot k}{\sqrt{d}}", "q·k/√d"),
        (r"\sqrt d", "√d"),
        (r"\alpha_i = 0", "α_i = 0"),
        (r"\lambda \in \mathbb{R}^{n\times d}", "λ ∈ R^n×d"),
        (r"\hat{\boldsymbol\varepsilon} \pm 1", "ε ±1"),
        (r"\sqrt{1-\bar\alpha_t}\,\mathbf x_{t-1}", "√(1-α_t) x_(t-1)"),
        (r"\begin{pmatrix}0&1\\2&3\end{pmatrix} < 1", "… < 1"),
        (r"\tfrac12\lVert q-k\rVert^2", "1/2‖q-k‖^2"),
        (r"\mathrm{softmax}\!\left(\frac{QK^\top}{\sqrt{d_k}}\right)V", "softmax(QKᵀ/√d_k)V"),
        (r"\sum_{j\ne i}\log_2 A_{ij}", "Σ_(j ≠ i) log_2 A_ij"),
        (r"50\%, \{1, 2\}, \unheardof{x}, }y{", "50%, {1, 2}, x, y"),
        (r"\operatorname{sign}(x)\label{one}", "sign(x)"),
    ],
)
def test_a_formula_is_found_as_a_line_of_text(tex, text):
    assert plain_formula(tex) == text


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        (r"divides by $\sqrt d$. Why?", "divides by √d. Why?"),
        (r"So \[x^2\] and \(x_i\).", "So … and x_i."),
        (r"$$x$$ \begin{align}a &= b\end{align}", "…"),
        ("from $5 to $6, a $", "from $5 to $6, a $"),
    ],
)
def test_a_text_keeps_its_words_and_shortens_what_stands_on_lines_of_its_own(text, plain):
    assert plain_text(text) == plain
