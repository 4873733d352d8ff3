"""A weight that explains itself: query, key, scores, mask, sum, mixed and merged values are PyTorch's."""

import re

import pytest
import torch
from browsing import live_page, load, one_playwright, write_page
from playwright.sync_api import Error, expect
from test_live_engine import CLOSE, loud

import course_utils as cu
from course_utils.kit.live import restored
from course_utils.kit.live.packing import pack

pytestmark = pytest.mark.slow

NAMES = ("parts", "unpack", "engine", "others", "explain")
RUN = """() => cases.map(({ kind, packed, source, parts }) => {
    const model = new live_engine[kind](packed), plain = numbers => numbers && Array.from(numbers);
    const state = model.start(source);
    for (const part of parts) model.step(part, state);
    return Object.entries(model.maps).flatMap(([name, map]) => map.flatMap((rows, head) => rows.map((row, i) => {
            const j = (3 * i + head) % row.length;
            const found = live_explain.work(model, name, head, i, j);
            return { name, head, i, j, last: rows.length, weights: plain(found.weights), query: plain(found.query),
                key: plain(found.keys[j]), mixed: plain(found.mixed), output: plain(found.output),
                heads: found.heads.flatMap(plain), summed: found.powers.reduce((a, b) => a + b) / found.sum,
                scored: found.terms[j].reduce((a, b) => a + b) - found.scores[j] };
        })));
})"""


@pytest.fixture(scope="module")
def page(chromium):
    with one_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_context().new_page()
        load_all(page)
        yield page
        browser.close()


def load_all(page, changed: tuple[str, str] = ("", "")) -> None:
    """The scripts anew, with one piece of `explain.js` changed."""
    for name in NAMES:
        load(page, name, changed if name == "explain" else ("", ""))


@torch.no_grad()
def case(kind: str, config: dict, parts: tuple[int, ...]) -> tuple[dict, dict]:
    """A random network, what the page is asked, and what PyTorch computes in each attention, by hooks."""
    model = loud(getattr(cu, kind)(**config))
    packed = pack(config, model.state_dict())
    model.load_state_dict(restored(packed))
    source, target = [torch.randint(4, 20, (length,)).tolist() for length in (6, 5)]
    seen: dict = {}

    def keep(name: str):
        def hook(module, given, result):
            seen[name] = given[0][0], result[0]

        return hook

    for name, module in model.named_modules():
        if name.endswith(("query_proj", "key_proj", "out_proj")):
            module.register_forward_hook(keep(name))
    with cu.record_attention(model) as maps:
        if kind == "GPT":
            model(torch.tensor([target]))
        else:
            model(torch.tensor([source]), torch.tensor([6]), torch.tensor([target]))
    ids, cut = list(target), []
    for length in parts:
        cut.append(ids[:length])
        ids = ids[length:]
    asked = {"kind": kind, "packed": packed, "source": source, "parts": cut}
    weights = {n: w[0] if w.ndim == 4 else w for n, w in maps.items()}
    return asked, {"maps": weights, "seen": seen, "rotary": config.get("rotary", False)}


@pytest.fixture(scope="module")
def asked(page):
    torch.manual_seed(0)
    made = []
    config = {"source_size": 30, "target_size": 40, "embed_dim": 16, "num_heads": 2}
    made.append(case("Transformer", config | {"ffn_dim": 24, "num_layers": 1}, (5,)))
    config = {"vocab_size": 40, "embed_dim": 32, "num_heads": 4, "num_layers": 1}
    made.append(case("GPT", config, (2, 3)))
    made.append(case("GPT", config | {"rotary": True, "num_kv_heads": 2}, (5,)))
    config = {"source_size": 30, "target_size": 40, "embed_dim": 16, "hidden_dim": 24}
    made.append(case("AttentionTranslator", config, (5,)))
    page.evaluate("questions => { globalThis.cases = questions; }", [each for each, _ in made])
    return made


def far(mine, right: torch.Tensor) -> float:
    """The largest difference; infinite where the shapes differ or a number is none."""
    mine = torch.tensor(mine, dtype=torch.double)
    if mine.shape != right.shape:
        return float("inf")
    return (mine - right).abs().nan_to_num(float("inf")).max().item()


def worst(page, asked: list) -> float:
    found, differences = page.evaluate(RUN), [0.0]
    for lines, (_, answer) in zip(found, asked, strict=True):
        assert lines
        for line in lines:
            name, head, j = line["name"], line["head"], line["j"]
            weights, seen = answer["maps"][name], answer["seen"]
            i = weights.shape[1] - line["last"] + line["i"]
            differences += [far(line["weights"], weights[head, i]), abs(line["summed"] - 1)]
            differences.append(abs(line["scored"]))
            if f"{name}.out_proj" not in seen:
                continue
            merged, output = (each[i] for each in seen[f"{name}.out_proj"])
            size = len(line["mixed"])
            differences.append(far(line["mixed"], merged[head * size : (head + 1) * size]))
            differences += [far(line["heads"], merged), far(line["output"], output[:])]
            if not answer["rotary"]:
                for which, row in (("query", i), ("key", j)):
                    vector = seen[f"{name}.{which}_proj"][1][row]
                    differences.append(far(line[which], vector[head * size : (head + 1) * size]))
    return max(differences)


def test_each_operation_is_that_of_pytorch(page, asked):
    assert worst(page, asked) < CLOSE


MISTAKES = {
    "not scaled": ("(score) => score / scale)", "(score) => score)"),
    "every key is allowed": ("!found.causal || key <=", "true || key <="),
    "the mask forgets the cache": ("key <= found.start + i", "key <= i"),
    "groups of heads interleaved": ("Math.floor(head / found.group)", "head % found.keys[0].length"),
    "the sum leaves one key out": ("=> total + power, 0)", "=> total + power, -powers[0])"),
    "an additive score as a product": ("found.terms ?? (", "("),
    "mixed without weights": ("total + weights[key] * value[d]", "total + value[d]"),
    "merged at another place": ("found.merged[i]", "found.merged[0]"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_an_operation_is_found(page, asked, mistake):
    load_all(page, MISTAKES[mistake])
    try:
        found = worst(page, asked)
    except Error:
        found = float("inf")
    finally:
        load_all(page)
    assert not found < CLOSE


# In a page --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return write_page(tmp_path_factory.mktemp("book"), cu.live.translator("i'm home ."))


@pytest.fixture
def widget(page, file):
    with live_page(page.context, file, "#live=translator.0&closer=1&map=1.0") as opened:
        yield opened


def test_a_number_is_chosen_by_keys_and_stepped_operation_by_operation(widget):
    grid = widget.get_by_role("grid")
    assert grid.locator("td[tabindex='0']").count() == 1
    grid.locator("td[tabindex='0']").focus()
    widget.keyboard.press("ArrowDown")
    widget.keyboard.press("ArrowDown")
    widget.keyboard.press("ArrowRight")
    widget.keyboard.press("ArrowUp")
    widget.keyboard.press("Enter")
    cell = grid.locator("tbody tr").nth(1).locator("td").nth(1)
    expect(cell).to_be_focused()
    expect(cell).to_have_attribute("aria-selected", "true")
    assert grid.locator("td[tabindex='0']").count() == 1

    shown = widget.locator("[data-part=of]")
    weight = float(re.search(r"the weight is (0\.\d{4})", shown.inner_text())[1])
    assert abs(100 * weight - float(cell.inner_text())) <= 0.51
    expect(shown).to_contain_text("Query je, key home")
    work = widget.locator("[data-part=work]")
    assert f"= {weight:.4f}" in work.inner_text()

    operations = widget.get_by_role("group", name="Operation")
    rows = []
    for number, name in enumerate(
        ["project", "score", "scale", "mask", "normalize", "mix", "merge"]
    ):
        if number:
            operations.get_by_role("radio").nth(number - 1).press("ArrowRight")
        else:
            operations.get_by_role("radio", name=name).check()
        expect(operations.get_by_role("radio", name=name)).to_be_checked()
        expect(work.locator("p strong").first).to_have_text(name)
        rows.append(work.locator("tr, th[scope=col]").count())
        if name == "normalize":
            numbers = work.get_by_role("region", name="All keys of this row")
            expect(numbers.get_by_role("columnheader").last).to_have_text("weight")
            expect(numbers.locator("tr").last).to_contain_text("sum")
    assert rows == sorted(set(rows)), "each operation adds to what is shown"


def test_a_masked_number_and_one_of_the_mean_are_explained(widget):
    widget.get_by_role("radio", name="French to French").check()
    widget.get_by_role("grid").locator("tbody tr").first.locator("td").last.click()
    widget.get_by_role("radio", name="mask").check()
    expect(widget.locator("[data-part=work]")).to_contain_text("comes later: its weight is 0")
    widget.get_by_role("radio", name="French to English").check()
    widget.locator("[data-word='1']").click()
    widget.get_by_role("grid").locator("tbody tr").first.locator("td").nth(1).click()
    expect(widget.locator("[data-part=work]")).to_contain_text(
        "home is crossed out: its weight is 0"
    )
    widget.get_by_role("button", name="mean of layer 1").click()
    expect(widget.locator("[data-part=of]")).to_contain_text("the mean of 4 heads")
    expect(widget.get_by_role("group", name="Operation")).to_be_hidden()


def test_a_shorter_sentence_forgets_a_place_that_it_does_not_have(widget):
    widget.get_by_role("grid").locator("td").last.click()
    expect(widget.locator("[data-part=of]")).to_contain_text("the weight is")
    widget.get_by_role("textbox", name="English").fill("go .")
    expect(widget.locator("[data-part=of]")).to_contain_text("Choose a number")


# Of a language model ----------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["gpt", "bert"])
def test_every_number_of_a_text_is_explained(page, tmp_path, kind):
    """The GPT's text is read token by token as it is written: the first row is explained as well as the last."""
    file = write_page(tmp_path, getattr(cu.live, kind)())
    with live_page(page.context, file) as opened:
        part = opened.locator("[data-part=of]")
        expect(part).to_contain_text("Choose a number")
        if kind == "gpt":
            opened.get_by_role("checkbox", name="Look closer").check()
            opened.get_by_role("button", name="layer 1, head 0").click()
            opened.get_by_role("button", name="Begin again").click()
            for _ in range(3):
                opened.get_by_role("button", name="One token").click()
        grid, work = opened.get_by_role("grid"), opened.locator("[data-part=work]")
        words = grid.locator("thead th").all_text_contents()[1:]
        assert len(words) == grid.locator("tbody tr").count() >= 6
        for query, key in ((0, 0), (2, 1), (len(words) - 1, 3), (1, len(words) - 1)):
            cell = grid.locator("tbody tr").nth(query).locator("td").nth(key)
            cell.press("Enter")
            expect(cell).to_have_attribute("aria-selected", "true")
            expect(grid.locator("[aria-selected]")).to_have_count(1)
            expect(part).to_contain_text(f"Query {words[query]}, key {words[key]}:")
            weight = float(re.search(r"the weight is (\d\.\d{4})", part.inner_text())[1])
            assert abs(100 * weight - float(cell.inner_text())) <= 0.51
        opened.get_by_role("radio", name="mask").check()
        masked = "comes later: its weight is 0" if kind == "gpt" else "Nothing is masked"
        expect(work).to_contain_text(masked)
        mean = "mean of layer 1" if kind == "gpt" else "mean of all heads"
        opened.get_by_role("button", name=mean).click()
        expect(part).to_contain_text(f"the mean of {4 if kind == 'gpt' else 8} heads")
        opened.get_by_role("textbox").first.fill("go")
        expect(part).to_contain_text("Choose a number")  # there is no such place any more


def test_what_was_explained_is_restored_from_the_address(page, tmp_path):
    file = write_page(tmp_path, cu.live.gpt())
    address = "#live=gpt.0&prompt=we&written=|we&map=0.1&cell=1.0&operation=mix"
    with live_page(page.context, file, address) as opened:
        expect(opened.locator("[data-part=of]")).to_contain_text("Query we␣, key <eos>")
        expect(opened.locator("[data-part=work] strong").first).to_have_text("mix")
