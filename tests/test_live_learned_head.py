"""A head trained in a page: its gradients are autograd's, its steps those of SGD, and all of it answers to keys."""

import itertools
import math

import pytest
import torch
from browsing import live_page, load, part
from playwright.sync_api import Page, expect
from torch.nn import functional as F

import course_utils as cu
from course_utils.kit.live.widget import Live

pytestmark = pytest.mark.slow

NOUNS = (
    ("cat", "mouse"),
    ("lemon", "apple"),
    ("desk", "table"),
)  # masculine and feminine in French
ADJECTIVES = ("hungry", "ripe", "varnished")  # each fits the nouns of one kind
WORDS = [*itertools.chain(*NOUNS), *ADJECTIVES]


def widget() -> Live:
    return cu.live.learned_head()


def move(page: Page, step: int) -> None:
    page.get_by_role("slider", name="Step").fill(str(step))


# Numbers ----------------------------------------------------------------------------------------

RUN = """cases => cases.map(({ X, asking, W, dZ, rights, rate }) => {
    const passed = live_head.forward(X[0], W, asking);
    const sentences = X.map((each, i) => ({ X: each, right: rights[i] }));
    const narrow = { ...W, V: W.V.map(row => row.slice(0, 1)) };
    const { loss, hits, gradients } = live_head.lossOf(sentences, narrow);
    return {
        weights: passed.weights, Z: passed.Z, slopes: live_head.backward(passed, dZ),
        loss: [[loss, hits]], gradients, next: live_head.descended(narrow, gradients, rate),
    };
})"""


def attention(X: torch.Tensor, asking: torch.Tensor, W: dict) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights and answers by PyTorch's own operator."""
    queries, keys, values = asking @ W["Q"], X @ W["K"], X @ W["V"]
    names = torch.eye(X.shape[-2], dtype=X.dtype)
    weights, Z = (F.scaled_dot_product_attention(queries, keys, v) for v in (names, values))
    return weights, Z


def cases() -> list[tuple[dict, dict]]:
    """What a page is asked, and what PyTorch answers, for sizes of all kinds."""
    made = []
    for n, M, d, d_v in itertools.product((1, 2, 5), (3, 6), (1, 2, 4), (1, 3)):
        X, asking = torch.randn(4, n, M).double(), torch.randn(n + 1, M).double()
        W = {"Q": torch.randn(M, d), "K": torch.randn(M, d), "V": 2 * torch.randn(M, d_v)}
        W = {name: matrix.double().requires_grad_() for name, matrix in W.items()}
        dZ, rights, rate = torch.randn(n + 1, d_v).double(), torch.randint(2, (4,)), 0.7
        weights, Z = attention(X[0], asking, W)
        slopes = torch.autograd.grad(Z, list(W.values()), dZ)
        narrow = {
            name: (m[:, :1] if name == "V" else m).detach().clone().requires_grad_()
            for name, m in W.items()
        }
        logits = torch.stack([attention(x, x[-1:], narrow)[1][0, 0] for x in X])
        loss = F.binary_cross_entropy_with_logits(logits, rights.double())
        optimizer = torch.optim.SGD(narrow.values(), lr=rate)
        loss.backward()
        gradients = {name: matrix.grad.clone() for name, matrix in narrow.items()}
        optimizer.step()
        hits = ((logits > 0) == (rights > 0)).sum().item()
        asked = {"X": X, "asking": asking, "dZ": dZ, "rights": rights}
        asked = {name: tensor.tolist() for name, tensor in asked.items()} | {"rate": rate}
        asked["W"] = {name: matrix.tolist() for name, matrix in W.items()}
        right = {
            "weights": weights,
            "Z": Z,
            "slopes": dict(zip("QKV", slopes, strict=True)),
            "loss": torch.tensor([[loss.item(), hits]], dtype=torch.float64),
            "gradients": gradients,
            "next": narrow,
        }
        made.append((asked, right))
    return made


def apart(mine, right) -> float:
    """The largest difference between numbers of a page and PyTorch's."""
    if isinstance(right, dict):
        return max(apart(mine[name], each) for name, each in right.items())
    got = torch.tensor(mine, dtype=torch.float64)
    if got.shape != right.shape:
        return float("inf")
    return (got - right).abs().nan_to_num(nan=float("inf")).max().item()


def worst(page: Page) -> float:
    torch.manual_seed(1)
    made = cases()
    found = page.evaluate(RUN, [asked for asked, _ in made])
    return max(apart(mine, right) for mine, (_, right) in zip(found, made, strict=True))


def test_weights_gradients_and_steps_are_those_of_pytorch(page: Page):
    assert worst(page) < 1e-6


MISTAKES = {
    "scaled by d": ("1 / Math.sqrt(Q[0].length)", "1 / Q[0].length"),
    "scaled by the number of features": ("Math.sqrt(Q[0].length)", "Math.sqrt(X[0].length)"),
    "the gradient is not scaled": ("(dWeights[i][j] - mean) * scale", "(dWeights[i][j] - mean)"),
    "a softmax without its mean": ("(dWeights[i][j] - mean)", "dWeights[i][j]"),
    "a mean that is not weighted": (
        "dot(row, dWeights[i])",
        "dot(row.map(() => 1 / row.length), dWeights[i])",
    ),
    "keys as if scores were symmetric": ("times(transposed(dScores), Q)", "times(dScores, Q)"),
    "keys from keys": ("times(transposed(dScores), Q)", "times(transposed(dScores), K)"),
    "values by weights that are not transposed": (
        "times(transposed(weights), dZ)",
        "times(weights, dZ)",
    ),
    "queries of those who are asked": ("times(transposed(asking), dQ)", "times(words, dQ)"),
    "values forget the words": ("V: times(words, dV)", "V: times(transposed(asking), dV)"),
    "uphill": ("weight - rate * slope", "weight + rate * slope"),
    "right for wrong": ("chance(z) - right", "chance(z) - 1 + right"),
    "a sum, not a mean": ("(chance(z) - right) / count", "(chance(z) - right)"),
    "the first word asks": ("X.slice(-1)", "X.slice(0, 1)"),
}


def test_each_mistake_is_found(page: Page):
    for mistake, changed in MISTAKES.items():
        load(page, "head", changed)
        assert not worst(page) < 1e-4, mistake
    load(page, "head")
    assert worst(page) < 1e-6


INSIDE = "untrained, uniformLoss, SENTENCES"


@pytest.fixture
def inside(page: Page):
    """What the script gives for an expression of what is inside it."""
    load(page, "widgets/learned_head", inside=INSIDE)
    return lambda expression: page.evaluate(f"live_inside.{expression}")


def sentences() -> tuple[torch.Tensor, torch.Tensor]:
    """All 24: ids of three nouns and an adjective, (24, 4); and whether its noun is feminine, (24,)."""
    every = list(itertools.product(range(3), *[range(2)] * 3))
    ids = [[a, 2 + b, 4 + c, 6 + adjective] for adjective, c, b, a in every]
    right = [(a, b, c)[adjective] for adjective, c, b, a in every]
    return torch.tensor(ids), torch.tensor(right).double()


def attended(W: dict, ids: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Weights of the last word, (sentences, 4), and its answer, a logit of feminine."""
    X = F.one_hot(ids, len(WORDS)).double()
    queries, keys, values = X[:, -1:] @ W["Q"], X @ W["K"], X @ W["V"]
    weights = (queries @ keys.mT / math.sqrt(queries.shape[-1])).softmax(dim=-1)
    return weights[:, 0], (weights @ values)[:, 0, 0]


def begun(inside, seed: int) -> dict[str, torch.Tensor]:
    """The matrices before the first step."""
    drawn = inside(f"untrained({seed})")
    return {name: torch.tensor(matrix, dtype=torch.float64) for name, matrix in drawn.items()}


def trained(inside, rate: float, seed: int, steps: int) -> tuple[dict, float]:
    """The matrices after so many steps of torch's SGD, and the loss there."""
    W = {name: matrix.requires_grad_() for name, matrix in begun(inside, seed).items()}
    ids, right = sentences()
    optimizer = torch.optim.SGD(W.values(), lr=rate)
    for _ in range(steps):
        optimizer.zero_grad()
        F.binary_cross_entropy_with_logits(attended(W, ids)[1], right).backward()
        optimizer.step()
    with torch.no_grad():
        loss = F.binary_cross_entropy_with_logits(attended(W, ids)[1], right).item()
    return {name: matrix.detach() for name, matrix in W.items()}, loss


@pytest.mark.parametrize(("rate", "seed", "steps"), [("1", 0, 90), ("3", 7, 40), ("0.3", 2, 60)])
def test_a_training_is_that_of_sgd(page: Page, inside, rate, seed, steps):
    page.get_by_role("combobox", name="Rate").select_option(rate)
    page.get_by_role("spinbutton", name="Seed").fill(str(seed))
    move(page, steps)
    W, loss = trained(inside, float(rate), seed, steps)
    expect(part(page, "said")).to_contain_text(f"Step {steps}: loss {loss:.3f}")
    cells = part(page, "matrices").locator("tbody tr").all()
    shown = [[float(c.replace("−", "-")) for c in row.locator("td").all_inner_texts()] for row in cells]  # fmt: skip
    torch.testing.assert_close(
        torch.tensor(shown).double(), torch.cat(list(W.values()), dim=1), atol=0.0051, rtol=0
    )
    nouns = [0, 1, 0]  # of those that are shown first
    ids = torch.tensor([[0, 3, 4, 6 + i] for i in range(3)])
    weights, logits = attended(W, ids)
    rows = part(page, "asks").locator("tbody tr")
    for i, p in enumerate(logits.sigmoid().tolist()):
        texts = rows.nth(i).locator("th, td").all_inner_texts()
        assert texts[0] == ADJECTIVES[i] and texts[2] == ("no", "yes")[nouns[i]]
        assert abs(int(texts[1].split()[0]) - 100 * p) < 0.51
        for text, weight in zip(texts[3:], weights[i].tolist(), strict=True):
            assert abs(int(text) - 100 * weight) < 0.51


def test_equal_weights_reach_the_line_and_no_less(inside):
    """Values alone, trained by PyTorch: the loss of a head that cannot look."""
    ids, right = sentences()
    X = F.one_hot(ids, len(WORDS)).double().mean(dim=1)
    values = torch.zeros(len(WORDS), dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([values], max_iter=200)

    def loss():
        optimizer.zero_grad()
        found = F.binary_cross_entropy_with_logits(X @ values, right)
        found.backward()
        return found

    optimizer.step(loss)
    assert loss().item() == pytest.approx(inside("uniformLoss()"), abs=1e-5)


def test_seed_0_learns_what_the_further_page_of_scoring_functions_says(inside):
    ids, right = sentences()
    first = begun(inside, 0)

    def after(rate: float, steps: int) -> tuple[float, int, torch.Tensor, dict]:
        W, loss = trained(inside, rate, 0, steps)
        weights, logits = attended(W, ids)
        return round(loss, 3), ((logits > 0) == (right > 0)).sum().item(), weights, W

    loss, hits, weights, W = after(1, 50)
    assert (loss, hits) == (0.606, 19)
    shown = weights[[2, 10, 18]]  # cat, apple, desk
    assert shown.min().item() == pytest.approx(0.2, abs=0.005)
    assert shown.max().item() == pytest.approx(0.31, abs=0.005)
    apple, desk = (WORDS.index(word) for word in ("apple", "desk"))
    values = [round(v[i].item(), 2) for i in (apple, desk) for v in (first["V"], W["V"])]
    assert values == [-0.41, 0.62, -0.07, -0.99]
    assert after(1, 83)[0] >= 0.497 > after(1, 84)[0]
    assert after(1, 130)[1] < 24 == after(1, 131)[1] == after(1, 300)[1]
    assert after(3, 44)[1] < 24 == after(3, 45)[1] and after(0.3, 300)[1] < 24
    weights, W = after(1, 300)[2:]
    assert torch.equal(W["Q"][:6], first["Q"][:6])
    assert not torch.isclose(W["Q"][6:], first["Q"][6:]).any()
    found = [round(weights[i, j].item(), 2) for i, j in ((10, 1), (18, 2), (2, 0), (3, 0))]
    assert found == [0.95, 0.99, 0.03, 0.97]
    assert W["V"][WORDS.index("hungry")] < -3


def test_the_sentences_are_all_there_are(inside):
    ids, right = sentences()
    found = inside("SENTENCES")
    assert [[word.index(1) for word in each["X"]] for each in found] == ids.tolist()
    assert [each["right"] for each in found] == right.tolist()


# What is seen -----------------------------------------------------------------------------------


def test_the_widget_says_how_it_is_made_again_and_refuses_what_it_cannot_do():
    made = cu.live.learned_head(3, 4)
    assert repr(made) == "live.learned_head(3, 4)"
    for rate, seed in ((2, 0), (1, -1), (1, 100), (1, "x")):
        with pytest.raises(ValueError, match="rate=|seed="):
            cu.live.learned_head(rate, seed)


def test_steps_are_made_played_paused_and_begun_again_by_keys(page: Page):
    said, play = part(page, "said"), part(page, "play")
    part(page, "step").press("Enter")
    expect(said).to_contain_text("Step 1: loss 0.7")
    page.get_by_role("slider", name="Step").press("ArrowRight")
    expect(said).to_contain_text("Step 2:")
    play.press("Enter")
    expect(play).to_have_text("Pause")
    assert said.get_attribute("aria-live") == "off"
    expect(part(page, "at")).not_to_have_text("2 of 300")
    play.press("Enter")
    expect(play).to_have_text("Play")
    assert said.get_attribute("aria-live") == "polite"
    stopped = part(page, "at").inner_text()
    page.wait_for_timeout(200)
    assert part(page, "at").inner_text() == stopped
    assert part(page, "curve").get_attribute("d").count("L") == int(stopped.split()[0])
    part(page, "again").press("Enter")
    expect(part(page, "at")).to_have_text("0 of 300")
    page.get_by_role("slider", name="Step").press("End")
    expect(said).to_contain_text("24 of 24 sentences right.")


def test_another_noun_changes_what_is_asked_and_nothing_else(page: Page):
    move(page, 300)
    asks, matrices = part(page, "asks"), part(page, "matrices").inner_html()
    assert asks.locator("tbody tr").first.locator("th").nth(2).inner_text() == "no"
    page.get_by_role("combobox", name="Noun 1").select_option("mouse")
    expect(asks.locator("thead th").nth(3)).to_have_text("mouse")
    assert asks.locator("tbody tr").first.locator("th").nth(2).inner_text() == "yes"
    assert int(asks.locator("tbody tr").first.locator("th").nth(1).inner_text().split()[0]) > 90
    assert part(page, "matrices").inner_html() == matrices


def test_a_seed_that_is_none_leaves_what_is_shown(page: Page):
    before = part(page, "said").inner_text()
    for nonsense in ("", "100", "-3", "1.5"):
        page.get_by_role("spinbutton", name="Seed").fill(nonsense)
        assert part(page, "said").inner_text() == before
    page.get_by_role("spinbutton", name="Seed").fill("5")
    expect(part(page, "said")).not_to_have_text(before)


def test_without_motion_play_shows_the_end_at_once(browser, file):
    with live_page(browser, file, reduced_motion="reduce") as page:
        part(page, "play").click()
        expect(part(page, "at")).to_have_text("300 of 300")
        expect(part(page, "play")).to_have_text("Play")


def test_an_address_holds_rate_seed_step_and_nouns(browser, inside, file):
    state = "live=learned_head.0&rate=3&seed=7&step=40&noun0=1"
    page = browser.new_page()
    page.goto(f"{file.as_uri()}#{state}")
    page.locator("form[data-ready]").wait_for()
    expect(part(page, "said")).to_contain_text(
        f"Step 40: loss {trained(inside, 3.0, 7, 40)[1]:.3f}"
    )
    expect(part(page, "asks").locator("thead th").nth(3)).to_have_text("mouse")
    page.close()
