"""The engine in plain JavaScript against PyTorch with the same rounded weights: logits, maps, words."""

import json
import random
from itertools import product

import numpy as np
import pytest
import torch
from browsing import one_playwright
from playwright.sync_api import Error

import course_utils as cu
from course_utils.data.text import tokenize
from course_utils.kit.live import bundle, restored
from course_utils.kit.live.packing import MAX_BYTES, pack, script
from course_utils.kit.page import asset
from course_utils.lessons.sequence_to_sequence.small_world import larger_world

pytestmark = pytest.mark.slow

NAMES = ("live/unpack.js", "live/engine.js", "live/others.js")
CLOSE = 1e-4
RUN = """() => cases.map(({ kind, packed, source, target, parts }) => {
    const model = new live_engine[kind](packed), logits = [];
    const plain = rows => ArrayBuffer.isView(rows) ? [...rows] : rows.map?.(plain) ?? rows;
    const maps = () => Object.fromEntries(Object.entries(model.maps).map(([name, map]) => [name, plain(map)]));
    if (kind === "ViT") return { logits: [plain(model.logits(source))], maps: maps() };
    const state = model.start(source);
    for (const part of parts) logits.push(...plain(model.step(part, state)));
    return { logits, maps: maps() };
})"""


@pytest.fixture(scope="module")
def page(chromium):
    with one_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        load(page)
        yield page
        browser.close()


def load(page, changed: tuple[str, str] | None = None) -> None:
    """The engine anew, with one piece of its text changed."""
    texts = [asset(name) for name in NAMES]
    if changed:
        assert sum(text.count(changed[0]) for text in texts) >= 1, f"{changed[0]} is gone"
        texts = [text.replace(*changed) for text in texts]
    for text in texts:
        page.evaluate(f"() => {{{text}}}")


def loud(model: torch.nn.Module, *, embeddings: float = 1.0) -> torch.nn.Module:
    """Random weights that leave no part of a network without effect; all norms and biases count."""
    for name, parameter in model.named_parameters():
        if parameter.ndim == 1:
            torch.nn.init.normal_(parameter, mean=float(name.endswith("norm.weight")), std=0.3)
        else:
            torch.nn.init.normal_(parameter, std=1.5 * parameter.shape[-1] ** -0.5)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "embedding" in name or "positions" in name:
                parameter *= embeddings
    return model.eval()


def cut(ids: list[int], how: str) -> list[list[int]]:
    """At once, in two parts, or one by one."""
    if how == "one by one":
        return [[token] for token in ids]
    return [ids] if how == "at once" else [ids[:2], ids[2:]]


@torch.no_grad()
def case(
    kind: str,
    config: dict,
    *,
    how: str = "at once",
    embeddings: float = 1.0,
    tied: bool = False,
    **options,
):
    """A random network of a kind, what the page is asked, and what PyTorch answers."""
    model = getattr(cu, kind)(**config)
    if tied:
        model.source_embedding.weight = model.output.weight = model.target_embedding.weight
    model = loud(model, embeddings=embeddings)
    packed = pack(config, model.state_dict(), **options)
    assert any("same" in tensor for tensor in packed["tensors"].values()) or not tied
    model.load_state_dict(restored(packed))
    source, target = [torch.randint(4, 20, (length,)).tolist() for length in (6, 5)]
    with cu.record_attention(model) as maps:
        if kind == "ViT":
            source = torch.rand(1, config["channels"], 28, 28)
            logits = model(source)
            source = source[0].tolist()
        elif kind in ("GPT", "BERT"):
            logits = model(torch.tensor([target]))[0]
        else:
            logits = model(torch.tensor([source]), torch.tensor([6]), torch.tensor([target]))[0]
    answer = {"logits": logits.numpy(), "maps": {n: w[0].numpy() for n, w in maps.items()}}
    parts = [] if kind == "ViT" else cut(target, how)
    asked = {"kind": kind, "packed": packed, "source": source, "parts": parts}
    return asked, answer


def deviation(found: dict, answer: dict, last: int | None) -> float:
    """The largest difference of a logit or a weight; infinite where shapes differ.

    `last`: so many queries stand in the maps of a decoder, those of the last part.
    """
    pairs = [(found["logits"], answer["logits"])]
    if found["maps"].keys() != answer["maps"].keys():
        return float("inf")
    for name, weights in answer["maps"].items():
        weights = weights if weights.ndim == 3 else weights[None]
        seen = weights if last is None or name.startswith("encoder") else weights[:, -last:]
        pairs.append((found["maps"][name], seen))
    worst = 0.0
    for mine, right in pairs:
        mine = np.array(mine, dtype=float)
        if mine.shape != right.shape:
            return float("inf")
        difference = np.abs(mine - right).max()
        worst = max(worst, float("inf") if np.isnan(difference) else float(difference))
    return worst


def cases() -> list:
    """Every kind and every variant, small enough that a dozen mistakes can be tried on all of them."""
    made = []
    parts = "at once", "in two parts", "one by one"
    for width, heads, layers, first in [(16, 2, 1, True), (32, 4, 3, False), (32, 1, 2, True)]:
        config = {"source_size": 30, "target_size": 40, "embed_dim": width, "num_heads": heads}
        config |= {"ffn_dim": 24, "num_layers": layers, "norm_first": first}
        made += [case("Transformer", config, how=how) for how in parts]
    made += [case("Transformer", config, bits=bits) for bits in (16, 6)]
    made.append(case("Transformer", config | {"target_size": 30}, tied=True))
    later = {"norm": "rms", "activation": "swiglu", "rotary": True, "num_kv_heads": 2}
    for more, how in product([{}, later], parts):
        config = {"vocab_size": 40, "embed_dim": 32, "num_heads": 4, "num_layers": 2} | more
        made.append(case("GPT", config, how=how))
    for more in ({"norm": "rms"}, {"activation": "relu", "bias": False}, {"num_kv_heads": 1}):
        config = {"vocab_size": 40, "embed_dim": 16, "num_heads": 4, "num_layers": 1} | more
        made += [case("BERT", config), case("GPT", config)]
    made.append(case("GPT", config, embeddings=0.01))  # so small that the norm's eps counts
    for size, channels in ((14, 1), (7, 3)):
        config = {"patch_size": size, "channels": channels, "embed_dim": 32, "num_layers": 2}
        made.append(case("ViT", config))
    for layers, how in ((1, "at once"), (2, "one by one")):
        config = {"source_size": 30, "target_size": 40, "embed_dim": 16, "hidden_dim": 24}
        made.append(case("AttentionTranslator", config | {"num_layers": layers}, how=how))
    return made


@pytest.fixture(scope="module")
def asked(page):
    torch.manual_seed(0)
    made = cases()
    page.evaluate("questions => { globalThis.cases = questions; }", [each for each, _ in made])
    return made


def worst(page, asked: list) -> list[float]:
    found = page.evaluate(RUN)
    return [
        deviation(mine, answer, len(question["parts"][-1]) if question["parts"] else None)
        for mine, (question, answer) in zip(found, asked, strict=True)
    ]


def test_every_logit_and_every_weight_is_that_of_pytorch(page, asked):
    assert max(worst(page, asked)) < CLOSE


MISTAKES = {
    "scores are not scaled": ("dot(query[h], keys[j]) / Math.sqrt(dim)", "dot(query[h], keys[j])"),
    "scaled by the whole width": ("keys[j]) / Math.sqrt(dim)", "keys[j]) / Math.sqrt(dim * heads)"),
    "a token sees the next one": ("j > start + i ?", "j > start + i + 1 ?"),
    "the mask forgets the cache": ("j > start + i ?", "j > i ?"),
    "another eps": ("+ 1e-5)", "+ 1e-6)"),
    "the square of the mean is not taken away": ("bias ? mean(row) : 0", "0"),
    "the last number of an odd row is forgotten": ("even + odd + a.at(-1) * b.at(-1)", "even + odd"),
    "RMSNorm takes the mean away": ("bias ? mean(row) : 0", "mean(row)"),
    "GELU by tanh": (
        "(1 + erf(x / Math.SQRT2))",
        "(1 + Math.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))",
    ),
    "each new token at position 0": ("sinusoids(start + i, dim)", "sinusoids(i, dim)"),
    "rotary positions from 0": ("this.place(head, start + i)", "this.place(head, i)"),
    "learned positions from 0": ("table[state.length + i]", "table[i]"),
    "pairs turn backwards": ("j % 2 ? head[j - 1] : -head[j + 1]", "j % 2 ? -head[j - 1] : head[j + 1]"),
    "sine and cosine swapped": ("? Math.cos(angle) : Math.sin(angle)", "? Math.sin(angle) : Math.cos(angle)"),
    "heads cut in strips": ("x.slice(h * dim, (h + 1) * dim)", "x.filter((_, i) => i % (x.length / dim) === h)"),
    "groups of heads interleaved": ("key[Math.floor(h / group)]", "key[h % key.length]"),
    "values of another head": ("value[Math.floor(h / group)]", "value[h % value.length]"),
    "the norm is before although it should be after": ("this.config.norm_first ?? true", "true"),
    "no residual": ("plus(row, y[i])", "y[i]"),
    "the source is added to the cache at each step": ("known ? [] : memory", "memory"),
    "the encoder has no last norm": ('memory: this.norm("encoder_norm", x)', "memory: x"),
    "embeddings are not scaled": ("value * Math.sqrt(dim))", "value)"),
    "the gate and the other half swapped": ('"swiglu") return', '"relu") return'),
    "patches column by column": ("(column) => patch(row, column)", "(column) => patch(column, row)"),
    "the class token at the end": ("x.slice(0, 1)", "x.slice(-1)"),
    "the reset gate before the product": ("+ reset * outer[2 * size + j]", "+ outer[2 * size + j]"),
    "update the other way round": ("(1 - update) * fresh + update * old", "update * fresh + (1 - update) * old"),
    "the scale of the row before": ("(scale, row) => {", "(_, row, all) => { const scale = all[Math.max(row - 1, 0)];"),
    "whole numbers without a sign": ("new Int8Array(", "new Uint8Array("),
}  # fmt: skip


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_engine_is_found(page, asked, mistake):
    load(page, MISTAKES[mistake])
    try:
        found = max(worst(page, asked))
    except Error:  # a mistake may also end in an error of the page
        found = float("inf")
    finally:
        load(page)
    assert not found < CLOSE


def test_all_numbers_in_half_precision_come_back(page):
    bits = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = torch.from_numpy(bits[np.isfinite(bits)].astype(np.float32))
    packed = pack({}, {"x": finite})
    assert restored(packed)["x"].equal(finite)
    found = page.evaluate("packed => [...new live_engine.Network(packed).p.x]", packed)
    assert found == finite.tolist()


@pytest.mark.parametrize("bits", [8, 6])
def test_numbers_of_a_few_bits_come_back(page, bits):
    packed = pack({}, {"x": torch.randn(40, 30) * torch.randn(40, 1).exp()}, bits=bits)
    found = page.evaluate("packed => new live_engine.Network(packed).p.x.map(row => [...row])", packed)  # fmt: skip
    assert found == restored(packed)["x"].tolist()


# Words ------------------------------------------------------------------------------------------

LETTERS = "aZéÉßİσΣç'’.,!?;:…¿¡\"«»()-3"
SPACES = "".join(
    map(chr, [*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C)])
)
SPACES += "\u2028\u2029\u202f\u205f\u3000\ufeff\u180e\u200d"


def test_the_tokenizer_is_pythons(page):
    draw = random.Random(0)
    texts = ["".join(draw.choices(LETTERS + SPACES, k=draw.randint(0, 14))) for _ in range(4000)]
    found = page.evaluate("texts => texts.map(live_engine.tokenize)", texts)
    assert found == [tokenize(text) for text in texts]


# The translator ---------------------------------------------------------------------------------

SAY = """([packed, lines, size]) => {
    const model = new live_engine.Transformer(packed);
    return lines.map(ids => size === 1 ? live_engine.greedy(model, ids) : live_engine.beamSearch(model, ids, size));
}"""


@pytest.fixture(scope="module")
def said(page):
    """(bits, lines, size of the beam) → what the page and PyTorch say, as ids, and the unrounded model."""
    world = larger_world()
    vocabularies = world.source_vocab, world.target_vocab
    kept = cu.load_model("translator_fr")

    def ask(bits: int, lines: list[str], size: int):
        packed = pack(kept.config, kept.state, kept.vocabularies, bits=bits)
        ids = [[*vocabularies[0].encode(tokenize(line)), 3] for line in lines]
        mine = page.evaluate(SAY, [packed, ids, size])
        mine = [" ".join(vocabularies[1].decode(each)) for each in mine]
        answers = []
        for state in (restored(packed), kept.state):
            model = cu.Transformer(**kept.config).eval()
            model.load_state_dict(state)
            answers.append(cu.translate(model, lines, *vocabularies, beam_size=size))
        return mine, *answers

    return ask


@pytest.mark.parametrize(("bits", "size", "count"), [(8, 1, 500), (16, 1, 100), (8, 4, 60)])  # fmt: skip
def test_translations_are_those_of_pytorch(said, bits, size, count):
    lines = [" ".join(pair.source) for pair in larger_world().test[:count]]
    mine, right, unrounded = said(bits, lines, size)
    assert mine == right
    same = sum(a == b for a, b in zip(mine, unrounded, strict=True))
    print(f"{same} of {len(lines)} are those of the unrounded weights")
    assert same >= (0.99 if bits == 8 else 1) * len(lines)


def test_a_bundle_is_a_script_of_a_bounded_size():
    packed = bundle("translator_fr")
    text = script("translator_fr", packed)
    assert len(text.encode()) <= MAX_BYTES
    name, data = text.split(" = ", 1)
    assert name == '(globalThis.live_bundles ??= {})["translator_fr"]'
    assert json.loads(data.rstrip(";\n")) == packed
    with pytest.raises(ValueError, match=r"wide takes \d+ KB; at most 700"):
        script("wide", pack({}, {"x": torch.ones(800, 800)}))


def test_a_model_that_answers_in_no_page_yet_is_named():
    with pytest.raises(
        ValueError, match="name='vit_1' answers in no page yet; those that do: .*transl"
    ):
        bundle("vit_1")


# Form -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "most"), [("live/unpack.js", 60), ("live/engine.js", 200), ("live/others.js", 200)]
)
def test_the_engine_is_short_enough_to_be_read(name, most):
    lines = [line.split("//")[0].rstrip() for line in asset(name).splitlines()]
    code = [line for line in lines if line.strip()]
    assert len(code) <= most
    assert max(map(len, code)) <= 100
    assert not [line for line in code if line.rstrip(";").count("; ") and "for (" not in line]
