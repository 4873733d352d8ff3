"""The engine of live models against PyTorch with the same rounded weights: logits, maps, words, and more."""

import contextlib
import json
import random
from functools import cache
from itertools import product

import numpy as np
import pytest
import torch
from py_mini_racer import JSEvalException, JSParseException
from scripts import CLOSE, apart, ask, load
from stored_models import ANSWERED, KINDS, network

import course_utils as cu
from course_utils.data.prose import Subwords, load_english
from course_utils.data.text import BOS, EOS, PAD, tokenize
from course_utils.decoding import beam_search, next_token_probs, sample
from course_utils.interventions import intervene
from course_utils.kit.live import bundle, bundled
from course_utils.kit.live.bundles import MAX_BYTES, pack, script
from course_utils.kit.stored_model import StoredModel
from course_utils.lessons.sequence_to_sequence.small_world import larger_world

RUN = """cases => cases.map(({ kind, packed, source, parts }) => {
    const model = new (inside(kind))(packed);
    if (kind === "ViT") return { logits: [model.logits(source)], maps: model.maps };
    const state = model.start(source);
    return { logits: parts.flatMap(part => model.step(part, state)), maps: model.maps };
})"""


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
    if how == "one by one":
        return [[token] for token in ids]
    return [ids] if how == "at once" else [ids[:2], ids[2:]]


@torch.no_grad()
def case(kind: str, config: dict, *, how="at once", embeddings=1.0, tied=False, **options) -> tuple:
    """A random network of a kind, what the page is asked, and PyTorch's answer, of maps the last part's rows."""
    model = getattr(cu, kind)(**config)
    if tied:
        model.source_embedding.weight = model.output.weight = model.target_embedding.weight
    model = loud(model, embeddings=embeddings)
    stored = StoredModel.of(model, config, **{"bits": 8} | options)
    packed = pack(stored)
    assert any("same" in tensor for tensor in packed["tensors"].values()) or not tied
    model.load_state_dict(stored.state)
    source, target = [torch.randint(4, 20, (length,)).tolist() for length in (6, 5)]
    parts = cut(target, how)
    with cu.record_attention(model) as maps:
        if kind == "ViT":
            image = torch.rand(1, config["channels"], 28, 28)
            logits, source = model(image), image[0].tolist()
        elif kind in ("GPT", "BERT"):
            logits = model(torch.tensor([target]))[0]
        else:
            logits = model(torch.tensor([source]), torch.tensor([6]), torch.tensor([target]))[0]
    last = 0 if kind == "ViT" else len(parts[-1])
    answer = {"logits": logits, "maps": {}}
    for name, weights in maps.items():
        weights = weights[0] if weights.ndim == 4 else weights
        answer["maps"][name] = weights if name.startswith("encoder") else weights[:, -last:]
    return {"kind": kind, "packed": packed, "source": source, "parts": parts}, answer


@cache
def cases() -> tuple[list, list]:
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
    return tuple(zip(*made, strict=True))


def engine_apart() -> float:
    asked, answers = cases()
    return max(
        float("inf") if mine["maps"].keys() != right["maps"].keys() else apart(mine, right)
        for mine, right in zip(ask(RUN, asked), answers, strict=True)
    )


MISTAKES = {
    "scores are not scaled": ("dot(query[h], keys[j]) / Math.sqrt(dim)", "dot(query[h], keys[j])"),
    "scaled by the whole width": ("keys[j]) / Math.sqrt(dim)", "keys[j]) / Math.sqrt(dim * heads)"),
    "a token sees the next one": ("j > start + i ?", "j > start + i + 1 ?"),
    "the mask forgets the cache": ("j > start + i ?", "j > i ?"),
    "BERT looks back only": ("causal = false", "causal = true"),
    "another eps": ("+ 1e-5)", "+ 1e-6)"),
    "the square of the mean is not taken away": ("bias ? rowMean(row) : 0", "0"),
    "the last number of an odd row is forgotten": ("even + odd + a.at(-1) * b.at(-1)", "even + odd"),
    "RMSNorm takes the mean away": ("bias ? rowMean(row) : 0", "rowMean(row)"),
    "GELU by tanh": ("(1 + erf(x / Math.SQRT2))", "(1 + Math.tanh(0.7978845608 * (x + 0.044715 * x ** 3)))"),
    "each new token at position 0": ("sinusoids(start + i, dim)", "sinusoids(i, dim)"),
    "rotary positions from 0": ("this.rotated(head, start + i)", "this.rotated(head, i)"),
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
    "the class token at the end": ("this.tokens(image).slice(0, 1)", "this.tokens(image).slice(-1)"),
    "the reset gate before the product": ("+ reset * outer[2 * size + j]", "+ outer[2 * size + j]"),
    "update the other way round": ("(1 - update) * fresh + update * old", "update * fresh + (1 - update) * old"),
    "the scale of the row before": ("(scale, row) => {", "(_, row, all) => { const scale = all[Math.max(row - 1, 0)];"),
    "whole numbers without a sign": ("new Int8Array(", "new Uint8Array("),
}  # fmt: skip


def test_every_logit_and_every_weight_is_that_of_pytorch():
    load()
    assert engine_apart() < CLOSE


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_the_engine_would_be_found(mistake):
    load(changed=MISTAKES[mistake])
    with contextlib.suppress(JSEvalException):  # it may also end in an error
        assert not engine_apart() < CLOSE


def test_a_name_that_two_scripts_declare_is_a_syntax_error():
    for declared in ("const total = 0;", "function total() {}"):
        with pytest.raises(JSParseException, match="'total' has already been declared"):
            load(changed=("const percent =", f"{declared}\nconst percent ="))


def test_numbers_in_half_precision_and_of_a_few_bits_come_back():
    load()
    halves = np.arange(2**16, dtype=np.uint16).view(np.float16)
    finite = torch.from_numpy(halves[np.isfinite(halves)].astype(np.float32))
    stored = StoredModel.from_state({"x": finite}, {})
    assert stored.state["x"].equal(finite)
    read = "packed => new Network(packed).p.x"
    assert ask(read, pack(stored)) == finite.tolist()
    for bits in (8, 6):
        matrix = torch.randn(40, 30) * torch.randn(40, 1).exp()
        stored = StoredModel.from_state({"x": matrix}, {}, bits=bits)
        assert ask(read, pack(stored)) == stored.state["x"].tolist()


# Stored models ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", sorted({*bundled()} - {"words"}))  # which were drawn beforehand
def test_a_stored_model_answers_as_pytorch_did(name):
    load()
    answers = ask(ANSWERED, bundle(name), KINDS[name.split("_")[0]].__name__)
    assert len(answers) == 3
    assert all(is_same and far < CLOSE for is_same, far in answers), answers


@pytest.mark.slow
@pytest.mark.parametrize(("bits", "size", "count"), [(8, 1, 500), (16, 1, 100), (8, 4, 60)])
def test_translations_are_those_of_pytorch(bits, size, count):
    load()
    world, kept = larger_world(), cu.load_model("translator_fr")
    lines = [" ".join(pair.source) for pair in world.test[:count]]
    rounded = StoredModel.from_state(kept.state, kept.config, kept.vocabularies, bits=bits)
    ids = [[*world.source_vocab.encode(tokenize(line)), EOS] for line in lines]
    say = """(packed, lines, size) => {
        const model = new Transformer(packed);
        return lines.map(ids => size === 1 ? greedy(model, ids) : beamSearch(model, ids, size));
    }"""
    mine = [
        " ".join(world.target_vocab.decode(each)) for each in ask(say, pack(rounded), ids, size)
    ]
    right, unrounded = (
        cu.translate(model, lines, world.source_vocab, world.target_vocab, beam_size=size)
        for model in (rounded.network(cu.Transformer), kept.network(cu.Transformer))
    )
    assert mine == right
    same = sum(a == b for a, b in zip(mine, unrounded, strict=True))
    print(f"{same} of {len(lines)} are those of the unrounded weights")
    assert same >= (0.99 if bits == 8 else 1) * len(lines)


def test_a_bundle_is_a_script_of_a_bounded_size_of_a_model_that_answers():
    packed = bundle("translator_fr")
    text = script("translator_fr", packed)
    assert len(text.encode()) <= MAX_BYTES
    name, data = text.split(" = ", 1)
    assert name == '(globalThis.live_bundles ??= {})["translator_fr"]'
    assert json.loads(data.rstrip(";\n")) == packed
    with pytest.raises(ValueError, match=r"wide takes \d+ KB; at most 700"):
        script("wide", pack(StoredModel.from_state({"x": torch.ones(800, 800)}, {}, bits=8)))
    with pytest.raises(
        ValueError, match="name='vit_1' answers in no page yet; those that do: .*transl"
    ):
        bundle("vit_1")


# Words ------------------------------------------------------------------------------------------

LETTERS = "aZéÉßİσΣç'’.,!?;:…¿¡\"«»()-—“。，？｡、།।؟۔《」3\u0301\u0327\u037e가각ᄀ"
SPACES = [*range(9, 14), *range(28, 33), 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C)]
SPACES += [0x2028, 0x2029, 0x202F, 0x205F, 0x3000, 0xFEFF, 0x180E, 0x200D]


def test_the_tokenizer_is_pythons():
    load()
    draw, letters = random.Random(0), LETTERS + "".join(map(chr, SPACES))
    texts = ["".join(draw.choices(letters, k=draw.randint(0, 14))) for _ in range(4000)]
    assert ask("texts => texts.map(tokenize)", texts) == list(map(tokenize, texts))


ENCODE = """(vocabularies, texts) => {
    const subwords = new Subwords(vocabularies);
    return texts.map(text => [subwords.encode(text), subwords.decode(subwords.encode(text))]);
}"""


@cache
def learned() -> tuple[Subwords, list[str]]:
    """As the chapter on GPT learns them, and from which sentences."""
    sentences = load_english()
    random.Random(0).shuffle(sentences)
    return Subwords(sentences[1000:], size=512), sentences[1000:]


def test_subwords_are_pythons():
    draw, packed, (subwords, read) = random.Random(0), bundle("gpt")["vocabularies"], learned()
    assert (bundle("gpt")["read"], packed["words"]) == (
        len(read),
        sorted({*" ".join(read).split()}),
    )
    assert tuple(packed["tokens"]) == tuple(subwords.tokens)
    assert packed["merges"] == [" ".join(merge) for merge in subwords.merges]
    some = "abcdehilmnorstuwzéÉßσΣç'’.,!?␣ \t\xa0-3ab the she"
    texts = ["".join(draw.choices(some, k=draw.randint(0, 20))) for _ in range(1000)]
    texts += [" ".join(draw.choices(packed["words"], k=draw.randint(1, 8))) for _ in range(1500)]
    right = [[subwords.encode(text), subwords.decode(subwords.encode(text))] for text in texts]
    load()
    assert ask(ENCODE, packed, texts) == right


def test_special_tokens_that_a_reader_writes_are_words_she_does_not_know():
    load("translator")
    heard = """(packed, text) => {
        const { ids, unknown } = languageOf(packed).read(text);
        return [ids, unknown];
    }"""
    ids, unknown = ask(heard, bundle("translator_fr"), "<bos> she has <eos> a <pad> car <unk> .")
    assert unknown == ["<bos>", "<eos>", "<pad>", "<unk>"]
    words = bundle("translator_fr")["vocabularies"]["source"]
    said = ["<unk>", "she", "has", "<unk>", "a", "<unk>", "car", "<unk>", ".", "<eos>"]
    assert [words[i] for i in ids] == said
    load("gpt")
    text = "<bos> the <mask> and <eos>"
    subwords = Subwords([text] * 9, size=300)  # whole words
    merges = [" ".join(merge) for merge in subwords.merges]
    packed = {"tokens": subwords.tokens, "merges": merges, "words": []}
    assert ask(ENCODE, packed, [text]) == [[subwords.encode(text), text]]


# A text that is read and written ----------------------------------------------------------------

REREAD = """texts => {
    const model = new GPT(live_bundles.gpt), reading = new Reading(model);
    const seen = each => JSON.stringify([each.logits, ...Object.keys(each.rows).map(name => each.map(name))]);
    return texts.every(ids => {
        const anew = new Reading(model);
        [reading, anew].forEach(each => each.read(ids));
        return seen(reading) === seen(anew);
    });
}"""


def test_a_text_that_changed_is_read_on_from_where_it_changed():
    texts = [
        [EOS, 40, 50, 60, 70],
        [EOS, 40, 51, 60],
        [EOS, 40, 51, 60, 61, 62],
        [EOS, 40],
        [7, 40, 50],
    ]
    load("gpt")
    assert ask(REREAD, texts)


def test_a_token_is_drawn_by_temperature_and_top_k_and_a_greedy_text_is_the_packages():
    load("gpt")
    model, (subwords, _) = network("gpt"), learned()
    for temperature, top_k in ((1.0, None), (0.5, None), (1.5, 3), (0.0, None)):
        logits = torch.randn(3, 20).tolist()
        found = ask(
            "(logits, ...limits) => logits.map(row => probabilities(row, ...limits))",
            logits,
            temperature,
            top_k or 0,
        )
        assert (
            apart(
                found, next_token_probs(torch.tensor(logits), temperature=temperature, top_k=top_k)
            )
            < CLOSE
        )
    options = {"temperature": 0.0, "banned": Subwords.unwritten, "end": EOS}
    for prompt in ("we", "the old woman is", "did you"):
        start = torch.tensor([[EOS, *subwords.encode(prompt)]])
        (right,) = sample(model, start, max_new=32 - start.shape[1], **options)
        write = "prompt => state([live_bundles.gpt], { prompt, temperature: 0, seed: 0 })"
        found = ask(
            f"prompt => (({{ begun, ids }}) => ids.slice(begun.length))(({write})(prompt))", prompt
        )
        assert [i for i in found if i != EOS] == right


def test_a_place_of_an_address_is_written_as_text():
    load()
    assert ask("named", "<b>.<i>") == "layer &lt;b&gt;, head &lt;i&gt;"


# Beam search as a tree --------------------------------------------------------------------------

SIZE, LONGEST = 3, 6
GROW = """(packed, lines, size, longest) => lines.map(source => {
    const model = new Transformer(packed), watched = [];
    const watch = (grown, ended) => watched.push({ grown, ended });
    const said = beamSearch(model, source, size, longest, 0.6, watch);
    const root = growTree(watched, size, said);
    return { html: treeHTML(root, id => `<b>${id}`), root };
})"""


def nodes(root: dict, depth: int = 0):
    yield depth, root
    for child in root["children"]:
        yield from nodes(child, depth + 1)


@torch.no_grad()
def tree_apart(model, packed, lines) -> float:
    """The largest difference of a log-probability; infinite where others are kept or chosen."""
    far = 0.0
    for source, found in zip(lines, ask(GROW, packed, lines, SIZE, LONGEST), strict=True):
        ids, lens = torch.tensor([source]), torch.tensor([len(source)])
        best = beam_search(model, ids, lens, beam_size=SIZE, max_len=LONGEST)[0]
        every = list(nodes(found["root"]))
        for _, node in every[1:]:
            said = node["said"] + [EOS] * ("end" in node)
            logits = model(ids, lens, torch.tensor([[BOS, *said[:-1]]]))[0]
            logits[:, [PAD, BOS]] = -torch.inf
            right = logits.log_softmax(dim=-1)[range(len(said)), said].sum().item()
            far = max(far, abs(right - node["score"]))
        for depth in range(1, 1 + max(depth for depth, _ in every)):
            level = [node for d, node in every if d == depth and "end" not in node]
            level.sort(key=lambda node: -node["score"])
            if [node["kept"] for node in level] != [i < SIZE for i in range(len(level))]:
                return float("inf")
        chosen = [node["said"] for _, node in every if node["chosen"]]
        if chosen != [best[:n] for n in range(len(best) + 1)] + [best]:
            return float("inf")
    return far


def test_the_tree_of_a_beam_has_the_log_probabilities_and_choices_of_pytorch():
    torch.manual_seed(3)
    config = {"source_size": 30, "target_size": 12, "embed_dim": 16, "num_heads": 2}
    model = loud(cu.Transformer(**config, ffn_dim=24, num_layers=1))
    stored = StoredModel.of(model, config | {"ffn_dim": 24, "num_layers": 1}, bits=8)
    packed = pack(stored)
    model.load_state_dict(stored.state)
    lines = [torch.randint(4, 30, (length,)).tolist() for length in (3, 5, 6)]
    load()
    assert tree_apart(model, packed, lines) < CLOSE
    (found,) = ask(GROW, packed, lines[:1], SIZE, LONGEST)
    count = len(list(nodes(found["root"])))
    assert found["html"].count("<li>") == found["html"].count("<text") == count
    assert "<b>" not in found["html"] and "&lt;b&gt;" in found["html"]


# A weight that explains itself ------------------------------------------------------------------

EXPLAIN = """cases => cases.map(({ kind, packed, source, parts }) => {
    const model = new (inside(kind))(packed), state = model.start(source);
    const sum = (row) => row.reduce((a, b) => a + b);
    for (const part of parts) model.step(part, state);
    return Object.entries(model.maps).flatMap(([name, map]) => map.flatMap((rows, head) => rows.map((row, i) => {
        const j = (3 * i + head) % row.length;
        const found = work(model, name, head, i, j), key = found.keys[j];
        const [summed, scored] = [sum(found.powers) / found.sum, sum(found.terms[j]) - found.scores[j]];
        const { weights, query, mixed, output, heads } = found;
        return { name, head, i, j, last: rows.length, weights, query, key, mixed, output, heads, summed, scored };
    })));
})"""


@torch.no_grad()
def explained(kind: str, config: dict, parts: tuple[int, ...]) -> tuple[dict, dict]:
    """A random network, what the page is asked, and what PyTorch computes in each attention, by hooks."""
    model = loud(getattr(cu, kind)(**config))
    stored = StoredModel.of(model, config, bits=8)
    packed = pack(stored)
    model.load_state_dict(stored.state)
    source, target = [torch.randint(4, 20, (length,)).tolist() for length in (6, 5)]
    seen: dict = {}
    for name, module in model.named_modules():
        if name.endswith(("query_proj", "key_proj", "out_proj")):
            keep = lambda _, given, result, name=name: seen.update({name: (given[0][0], result[0])})  # noqa: E731
            module.register_forward_hook(keep)
    with cu.record_attention(model) as maps:
        if kind == "GPT":
            model(torch.tensor([target]))
        else:
            model(torch.tensor([source]), torch.tensor([6]), torch.tensor([target]))
    pieces = [part.tolist() for part in torch.tensor(target).split(parts)]
    weights = {n: w[0] if w.ndim == 4 else w for n, w in maps.items()}
    asked = {"kind": kind, "packed": packed, "source": source, "parts": pieces}
    return asked, {"maps": weights, "seen": seen, "rotary": config.get("rotary", False)}


def explained_apart(made: list) -> float:
    asked, answers = zip(*made, strict=True)
    far = [0.0]
    for lines, answer in zip(ask(EXPLAIN, asked), answers, strict=True):
        assert lines
        for line in lines:
            name, head, j, size = line["name"], line["head"], line["j"], len(line["mixed"])
            weights, seen = answer["maps"][name], answer["seen"]
            i, own = (
                weights.shape[1] - line["last"] + line["i"],
                slice(head * size, (head + 1) * size),
            )
            far += [
                apart(line["weights"], weights[head, i]),
                abs(line["summed"] - 1),
                abs(line["scored"]),
            ]
            if f"{name}.out_proj" not in seen:
                continue
            merged, output = (each[i] for each in seen[f"{name}.out_proj"])
            far += [
                apart(line["mixed"], merged[own]),
                apart([x for row in line["heads"] for x in row], merged),
            ]
            far.append(apart(line["output"], output))
            if not answer["rotary"]:
                rows = seen[f"{name}.query_proj"][1][i], seen[f"{name}.key_proj"][1][j]
                far.append(apart((line["query"], line["key"]), [row[own] for row in rows]))
    return max(far)


def test_each_operation_that_explains_a_weight_is_that_of_pytorch():
    translator = {"source_size": 30, "target_size": 40, "embed_dim": 16}
    writer = {"vocab_size": 40, "embed_dim": 32, "num_heads": 4, "num_layers": 1}
    made = [
        explained(
            "Transformer", translator | {"num_heads": 2, "ffn_dim": 24, "num_layers": 1}, (5,)
        ),
        explained("GPT", writer, (2, 3)),
        explained("GPT", writer | {"rotary": True, "num_kv_heads": 2}, (5,)),
        explained("AttentionTranslator", translator | {"hidden_dim": 24}, (5,)),
    ]
    load()
    assert explained_apart(made) < CLOSE


# Interventions ----------------------------------------------------------------------------------

SHAPE = {"embed_dim": 8, "num_heads": 4, "num_layers": 2, "ffn_dim": 12}
LATER = {"rotary": True, "norm": "rms", "activation": "swiglu", "num_kv_heads": 2, "bias": False}
CONFIGS = {"Transformer": SHAPE, "GPT": SHAPE | LATER, "BERT": SHAPE | {"activation": "relu"}}
SOURCE, TARGET = [4, 9, 5, 17, 6], [8, 6, 19, 4]
FORBID = """(kind, packed, bans, source, parts) => {
  const model = new (inside(kind))(packed);
  const read = (forbidden) => {
    Object.assign(model, { forbidden });
    const state = model.start(source);
    return parts.flatMap((ids) => model.step(ids, state));
  };
  const forbidden = bans.map(({ place, ...ban }) => ({ place: RegExp(place), ...ban }));
  return [read([]), read(forbidden), read([])];
}"""


@pytest.mark.parametrize(
    ("kind", "parts"),
    [("Transformer", [4]), ("Transformer", [1] * 4), ("GPT", [4]), ("GPT", [3, 1]), ("BERT", [4])],
)
@torch.no_grad()
def test_what_a_page_forbids_to_look_at_is_what_pytorch_forbids_until_it_ends(kind, parts):
    sizes = (20, 20) if kind == "Transformer" else (20,)
    model = getattr(cu, kind)(*sizes, **CONFIGS[kind]).eval()
    for parameter in model.parameters():
        torch.nn.init.normal_(parameter, std=0.5)
    stored = StoredModel.of(model, CONFIGS[kind])
    packed = pack(stored)
    model.load_state_dict(stored.state)
    bans = [{"place": "attention", "queries": [1, 2], "keys": [0, 1]}]
    bans += [{"place": "cross", "keys": [2, 4]}] * (kind == "Transformer")
    given = [torch.tensor([ids]) for ids in (SOURCE, TARGET)]
    given = (given[0], torch.tensor([5]), given[1]) if kind == "Transformer" else given[1:]
    with intervene(model) as acts:
        acts.forbid(queries=[1, 2], keys=[0, 1])
        if kind == "Transformer":
            acts.forbid("cross_attention", keys=[2, 4])
        right = model(*given)[0]
    load()
    pieces = [part.tolist() for part in torch.tensor(TARGET).split(parts)]
    whole, found, after = ask(FORBID, kind, packed, bans, SOURCE, pieces)
    assert apart(found, right) < CLOSE < apart(whole, right)
    assert after == whole
