"""The tree of beam search: its log-probabilities, what is kept and what is chosen are PyTorch's."""

import pytest
import torch
from browsing import load
from playwright.sync_api import Error
from test_live_engine import CLOSE, loud

import course_utils as cu
from course_utils.data.text import BOS, EOS, PAD
from course_utils.decoding import beam_search
from course_utils.kit.live import restored
from course_utils.kit.live.packing import pack

pytestmark = pytest.mark.slow

NAMES = ("parts", "unpack", "engine", "tree")
SIZE, LONGEST = 3, 6
RUN = """([packed, lines, size, longest]) => lines.map(source => {
    const model = new live_engine.Transformer(packed), watched = [];
    const watch = (grown, ended) => watched.push({ grown, ended });
    const said = live_engine.beamSearch(model, source, size, longest, 0.6, watch);
    const words = Array.from({ length: 40 }, (_, id) => `<b>${id}`);
    const root = live_tree.grow(watched, size, said), html = live_tree.html(root, id => words[id]);
    const plain = ({ said, score, children, end, kept, chosen }) =>
        ({ said, score, end, kept, chosen, children: children.map(plain) });
    return { said, html, root: plain(root) };
})"""


@pytest.fixture(scope="module")
def page(browser):
    page = browser.new_page()
    load_all(page)
    yield page
    page.close()


def load_all(page, changed: tuple[str, str] = ("", "")) -> None:
    """The scripts anew, with one piece of `tree.js` changed."""
    for name in NAMES:
        load(page, name, changed if name == "tree" else ("", ""))


@pytest.fixture(scope="module")
def asked():
    """A random translator with the page's weights, and three sentences."""
    torch.manual_seed(3)
    config = {"source_size": 30, "target_size": 12, "embed_dim": 16, "num_heads": 2}
    config |= {"ffn_dim": 24, "num_layers": 1}
    model = loud(cu.Transformer(**config))
    packed = pack(config, model.state_dict())
    model.load_state_dict(restored(packed))
    return model, packed, [torch.randint(4, 30, (length,)).tolist() for length in (3, 5, 6)]


def nodes(root: dict, depth: int = 0):
    yield depth, root
    for child in root["children"]:
        yield from nodes(child, depth + 1)


@torch.no_grad()
def problems(page, asked) -> list[str]:
    """What is wrong with the trees that the page grows."""
    model, packed, lines = asked
    wrong = []
    for source, found in zip(
        lines, page.evaluate(RUN, [packed, lines, SIZE, LONGEST]), strict=True
    ):
        ids, lens = torch.tensor([source]), torch.tensor([len(source)])
        best = beam_search(model, ids, lens, beam_size=SIZE, max_len=LONGEST)[0]
        every = list(nodes(found["root"]))
        for _, node in every[1:]:
            said = node["said"] + [EOS] * bool(node["end"])
            logits = model(ids, lens, torch.tensor([[BOS, *said[:-1]]]))[0]
            logits[:, [PAD, BOS]] = -torch.inf
            right = logits.log_softmax(dim=-1)[range(len(said)), said].sum().item()
            if not abs(right - node["score"]) < CLOSE:
                wrong.append(f"{said}: {node['score']}, not {right}")
        for depth in range(1, 1 + max(depth for depth, _ in every)):
            level = [node for d, node in every if d == depth and not node["end"]]
            level.sort(key=lambda node: -node["score"])
            if [bool(node["kept"]) for node in level] != [i < SIZE for i in range(len(level))]:
                wrong.append(f"of length {depth} others are kept")
        chosen = [node["said"] for _, node in every if node["chosen"]]
        if chosen != [best[:n] for n in range(len(best) + 1)] + [best]:
            wrong.append(f"{chosen} is not the way to {best}")
    return wrong


def test_log_probabilities_and_choices_are_those_of_pytorch(page, asked):
    assert problems(page, asked) == []


MISTAKES = {
    "one more is kept": ("place < size", "place <= size"),
    "the best end is left out": ("rank <= rankOfBest", "rank >= rankOfBest"),
    "any word of the best translation": ("said.every((id, i) => id === best[i])", "best.includes(said.at(-1))"),
    "the score of another": ("const child = node(said, score,", "const child = node(said, score / 2,"),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_tree_is_found(page, asked, mistake):
    load_all(page, MISTAKES[mistake])
    try:
        assert problems(page, asked)
    except Error:
        pass
    finally:
        load_all(page)


def test_the_list_holds_every_node_and_no_html_of_words(page, asked):
    _, packed, lines = asked
    found = page.evaluate(RUN, [packed, lines[:1], SIZE, LONGEST])[0]
    count = len(list(nodes(found["root"])))
    assert found["html"].count("<li>") == found["html"].count("<text") == count
    assert "<b>" not in found["html"] and "&lt;b&gt;" in found["html"]
