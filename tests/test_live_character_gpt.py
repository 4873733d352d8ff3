"""A GPT trained in a page: its steps are PyTorch's, counting is done fairly, and the page can be stopped and asked."""

import json
import math
from collections import Counter, defaultdict

import pytest
import torch
from browsing import live_page, part, write_page
from playwright.sync_api import expect
from torch.nn import functional as F

import course_utils as cu
from course_utils.data.prose import story_text
from course_utils.kit.live.widgets.character_gpt import CharacterGPT
from course_utils.studio.first_states import engine

pytestmark = pytest.mark.slow

SHAPES = {"embedDim": "embed_dim", "numHeads": "num_heads", "numLayers": "num_layers"}


@pytest.fixture(scope="module")
def ask():
    """What the scripts of the widget give for an expression; `Training` is what a worker trains."""
    page = engine(CharacterGPT.files())
    page.eval("globalThis.Training = live_learning(live_engine.erf).Training")
    return lambda expression: json.loads(page.eval(f"JSON.stringify({expression})"))


@pytest.mark.parametrize(
    ("sizes", "rate", "seed"),
    [({}, 0.003, 0), ({"embedDim": 24, "numHeads": 2, "numLayers": 3, "maxLen": 7}, 0.01, 5)],
)
def test_twenty_steps_are_those_of_pytorch_from_the_same_seed(ask, sizes, rate, seed):
    made = json.dumps({"rate": rate, "seed": seed, "sizes": sizes})
    ask(f"(globalThis.mine = new Training({json.dumps(story_text())}, {made}), 0)")
    begun, letters, length = ask(
        "[Object.fromEntries(Object.entries(mine.model.p).map(([name, { rows, columns, data }]) =>"
        " [name, { rows, columns, data: [...data] }])), mine.letters.length, mine.maxLen]"
    )
    shape = {name: ask(f"mine.{theirs}") for theirs, name in SHAPES.items()}
    model = cu.GPT(letters, **shape, max_len=length, dropout=0.0)
    state = {}
    for name, own in model.state_dict().items():
        if name != "output.weight":
            drawn = torch.tensor(begun[name]["data"]).reshape(begun[name]["rows"], -1)
            state[name] = drawn[: len(own)] if own.ndim == 2 else drawn[0]
    model.load_state_dict(state, strict=False)
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate)
    for step in range(20):
        ids, targets = ask("(mine.drawn = mine.draw())")
        batch, following = (torch.tensor(each).reshape(-1, length) for each in (ids, targets))
        loss = F.cross_entropy(model(batch).flatten(0, 1), following.flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        said = ask(
            "((loss) => (mine.optimizer.step(), loss))"
            "(mine.model.loss(...mine.drawn, mine.maxLen, { back: true }))"
        )
        assert said == pytest.approx(loss.item(), abs=1e-4), f"step {step}"


def test_counting_is_that_of_witten_and_bell(ask):
    text = story_text()
    read, held = text[: math.ceil(0.9 * len(text))], text[math.ceil(0.9 * len(text)) :]
    follows = defaultdict(Counter)
    for n in range(6):
        for i in range(n, len(read)):
            follows[read[i - n : i]][read[i]] += 1

    def p(letter: str, context: str) -> float:
        counts = follows[context]
        shorter = p(letter, context[1:]) if context else 1 / len(set(text))
        kinds = len(counts)
        return (counts[letter] + kinds * shorter) / (counts.total() + kinds) if kinds else shorter

    losses = [
        -sum(math.log(p(held[i], held[max(0, i - n) : i])) for i in range(1, len(held))) / (len(held) - 1)
        for n in range(6)
    ]  # fmt: skip
    loss, letters = ask(f"Object.values(new Training({json.dumps(text)}).counted())")
    assert (loss, letters) == (pytest.approx(min(losses)), losses.index(min(losses)))
    assert sum(p(letter, "the ") for letter in set(text)) == pytest.approx(1)


def test_a_reader_lets_it_learn_stops_it_and_brings_another_text(browser, tmp_path):
    with live_page(browser, write_page(tmp_path, cu.live.character_gpt(0.01))) as page:
        learn, said = page.locator("[data-part=learn]"), part(page, "said")
        first = float(said.inner_text().split("loss ")[1].split()[0])
        learn.click()
        expect(part(page, "lines").locator("tr")).to_have_count(3)  # 0, 25 and 50
        learn.click()
        expect(learn).to_have_text("Go on")
        stopped = said.inner_text()
        assert float(stopped.split("loss ")[1].split()[0]) < first - 1
        own = page.get_by_role("textbox", name="Your text")
        own.fill("too short")
        expect(said).to_contain_text("500 letters or more is needed; here are 9")
        expect(learn).to_be_disabled()
        own.fill("<b>to be or not to be</b> " * 40)
        expect(said).to_contain_text("Step 0")
        learn.click()
        expect(part(page, "lines").locator("tr")).to_have_count(2)
        assert page.locator("[data-part=lines] b").count() == 0
