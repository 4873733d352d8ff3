"""Interventions are what the same model, written out by hand, would compute, and leave nothing behind."""

import copy
import math
from functools import partial

import pytest
import torch
from torch import nn
from torch.func import functional_call

import course_utils as cu
from course_utils.attention import merge_heads, split_heads
from course_utils.interventions import intervene, record_activations
from course_utils.layers import DecoderLayer, EncoderLayer
from course_utils.lessons.vision_transformers.training import SmallCNN
from course_utils.models.diffusion import CrossAttention, PixelAttention
from course_utils.models.language import SentenceClassifier

LENS = torch.tensor([5, 7])
SOURCE = torch.arange(14).view(2, 7) % 11 + 1
TEXT = torch.arange(12).view(2, 6) * 5 % 13
IMAGES = torch.linspace(-1, 1, 2 * 8 * 8).double().view(2, 1, 8, 8).sin()
SHAPE = {"embed_dim": 8, "num_heads": 4, "num_layers": 2, "ffn_dim": 12, "dropout": 0.0}
GRU = {"embed_dim": 6, "hidden_dim": 8, "dropout": 0.0}
LLAMA = {"rotary": True, "norm": "rms", "activation": "swiglu", "num_kv_heads": 2, "bias": False}


class Mixer(nn.Module):
    """An attention that a reader has written, of one head and without a `num_heads`."""

    def __init__(self):
        super().__init__()
        self.project = nn.Linear(8, 24)

    def forward(self, x, attn_mask=None):
        q, k, v = self.project(x).chunk(3, dim=-1)
        return cu.masked_softmax(q @ k.mT / 8**0.5, attn_mask) @ v


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(13, 8)
        self.mixers = nn.ModuleList([Mixer(), Mixer()])

    def forward(self, tokens):
        x = self.embedding(tokens)
        for mix in self.mixers:
            x = x + mix(x)
        return x


def translated(model):
    return model(SOURCE, LENS, TEXT)


def pictured(model):
    return model(IMAGES, torch.tensor([3, 40]), tokens=IMAGES.view(2, 16, 4))


def encoded(model):
    return model(TEXT, LENS.clamp(max=6))


def read(model):
    return model(TEXT)


MODELS = {
    "recurrent": (partial(cu.AttentionTranslator, 13, 13, **GRU), translated),
    "transformer": (partial(cu.Transformer, 13, 13, **SHAPE), translated),
    "first transformer": (partial(cu.Transformer, 13, 13, **SHAPE, norm_first=False), translated),
    "gpt": (partial(cu.GPT, 13, **SHAPE), read),
    "llama": (partial(cu.GPT, 13, **SHAPE, **LLAMA), read),
    "bert": (partial(cu.BERT, 13, **SHAPE), encoded),
    "classifier": (lambda: SentenceClassifier(cu.BERT(13, **SHAPE), 3), encoded),
    "vit": (partial(cu.ViT, image_size=8, patch_size=4, **SHAPE), lambda model: model(IMAGES)),
    "unet": (partial(cu.UNet, widths=(8, 16), num_heads=4, token_dim=4), pictured),
    "reader": (Reader, read),
}
every_model = pytest.mark.parametrize("kind", MODELS)
with_heads = pytest.mark.parametrize(
    "kind", [k for k in MODELS if k not in ("recurrent", "reader")]
)


def made(kind):
    """A model whose every parameter matters, those that begin at zero too, and how it is called."""
    torch.manual_seed(0)
    make, call = MODELS[kind]
    model = make().double()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.5)
    return model, call


def answers_and_gradients(model, call, changed=None):
    """The logits, and the gradient of a sum of them to every parameter."""
    named = dict(model.named_parameters())

    def other(*args, **options):
        return functional_call(model, changed(named), args, options)

    logits = call(other if changed else model)
    total = (logits * torch.linspace(-1, 1, logits.numel()).view_as(logits)).sum()
    options = {"allow_unused": True, "materialize_grads": True}
    found = torch.autograd.grad(total, list(named.values()), **options)
    return logits, dict(zip(named, found, strict=True))


def assert_same(mine, hand):
    torch.testing.assert_close(mine[0], hand[0])
    torch.testing.assert_close(mine[1], hand[1])


def record_all(model, call):
    with record_activations(model) as run:
        call(model)
    return run


def written_out(scores, values, attn_mask, forbid):
    """Attention with quotients of exponentials, of which the forbidden ones are taken away."""
    weights = scores.exp()
    if attn_mask is not None:
        weights = weights * attn_mask
    weights = weights * forbid(weights)
    total = weights.sum(dim=-1, keepdim=True)
    return weights / (total + (total == 0)) @ values


def multi_head(module, forbid, q, k, v, attn_mask, *, is_causal):
    group = module.num_heads // module.num_kv_heads
    k, v = (x.repeat_interleave(group, dim=1) for x in (k, v))
    mask = torch.ones(q.shape[-2], k.shape[-2]).tril() if is_causal else attn_mask
    return written_out(q @ k.mT / math.sqrt(q.shape[-1]), v, mask, forbid)


def pixels(module, forbid, x, tokens=None, attn_mask=None):
    rows = module.norm(x).flatten(2).mT
    if tokens is None:
        parts = module.qkv(rows.mT).mT.chunk(3, dim=-1)
    else:
        parts = module.query_proj(rows), module.key_proj(tokens), module.value_proj(tokens)
    q, k, v = (split_heads(part, module.num_heads) for part in parts)
    mixed = merge_heads(written_out(q @ k.mT / math.sqrt(q.shape[-1]), v, attn_mask, forbid))
    return x + (module.out_proj(mixed.mT) if tokens is None else module.out_proj(mixed).mT).view_as(
        x
    )


def mixed(module, forbid, x):
    q, k, v = module.project(x).chunk(3, dim=-1)
    return written_out(q @ k.mT / 8**0.5, v, None, forbid)


def additive(module, forbid, q, k, v, attn_mask, *, projected_keys, start):
    scores = module.scores(q, k, projected_keys=projected_keys)
    return written_out(scores, v, attn_mask, lambda w: forbid(w.expand(-1, 6, -1))[start])


HAND = {
    cu.MultiHeadAttention: ("attend", multi_head),
    PixelAttention: ("forward", pixels),
    CrossAttention: ("forward", pixels),
    Mixer: ("forward", mixed),
    cu.AdditiveAttention: ("forward", additive),
}


def by_hand(model, forbid):
    """A copy of the model whose attentions are written out, their weights multiplied by `forbid(weights)`."""
    model = copy.deepcopy(model)
    for module in model.modules():
        if type(module) in HAND:
            name, function = HAND[type(module)]
            setattr(module, name, partial(function, module, forbid))
    return model


@every_model
@pytest.mark.parametrize("empty", [False, True])
def test_without_some_looks_the_softmax_is_over_the_others(kind, empty):
    def forbid(weights):
        rest = torch.ones(weights.shape[-2:], dtype=weights.dtype)
        rest[1:2, [0, 2]] = 0
        if empty:
            rest[3:4] = 0
        return rest

    model, call = made(kind)
    with intervene(model) as acts:
        acts.forbid(queries=1, keys=[0, 2])
        if empty:
            acts.forbid(queries=[3])
        mine = answers_and_gradients(model, call)
    assert_same(mine, answers_and_gradients(by_hand(model, forbid), call))


@pytest.mark.parametrize(
    ("kind", "place", "name"),
    [
        ("transformer", "cross_attention", "decoder.0.cross_attention"),
        ("classifier", None, "body.layers.0.attention"),
        ("vit", "layers.0.attention", "layers.0.attention"),
        ("unet", "up.attention", "up.0.attention"),
    ],
)
def test_a_look_is_forbidden_to_some_heads_of_some_layers(kind, place, name):
    model, call = made(kind)
    with cu.record_attention(model) as before:
        call(model)
    with intervene(model) as acts, cu.record_attention(model) as after:
        acts.forbid(place, keys=[0, 1], heads=[1, 3], layers=0)
        call(model)
    expected = before[name].clone()
    expected[:, [1, 3], :, :2] = 0
    torch.testing.assert_close(after[name], expected / expected.sum(dim=-1, keepdim=True))
    assert torch.equal(after[name][:, [0, 2]], before[name][:, [0, 2]])


@with_heads
def test_a_head_without_its_columns_of_the_output_projection(kind):
    model, call = made(kind)
    name = next(name for name in record_all(model, call) if name.endswith(".heads"))
    weight_of = f"{name.removesuffix('.heads')}.out_proj.weight"

    def changed(named):
        weight = named[weight_of]
        kept = torch.ones(4, weight.shape[1] // 4, dtype=weight.dtype)
        kept[[1, 2]] = 0
        return named | {weight_of: weight * kept.view(-1, *[1] * (weight.ndim - 2))}

    with intervene(model) as acts:
        acts.ablate(name.removesuffix(".heads"), heads=[1, 2])
        mine = answers_and_gradients(model, call)
    assert_same(mine, answers_and_gradients(model, call, changed))


@pytest.mark.parametrize(
    ("kind", "place", "parameters"),
    [
        ("transformer", "decoder.1.cross_attention", "decoder.1.cross_attention.out_proj."),
        ("first transformer", "encoder.0.feed_forward", "encoder.0.feed_forward.3."),
        ("llama", "layers.1.feed_forward", "layers.1.feed_forward.down."),
        ("unet", "down.1.cross", "down.1.cross.out_proj."),
        ("unet", "down.1.attention", "down.1.attention.out_proj."),
    ],
)
def test_a_part_without_its_last_layer(kind, place, parameters):
    model, call = made(kind)

    def changed(named):
        return {n: p * 0 if n.startswith(parameters) else p for n, p in named.items()}

    with intervene(model) as acts:
        acts.ablate(place)
        mine = answers_and_gradients(model, call)
    assert_same(mine, answers_and_gradients(model, call, changed))


def test_the_mean_of_a_run_stands_in_the_place_of_a_part():
    model, _ = made("gpt")
    run = record_all(model, read)
    with intervene(model) as acts:
        acts.ablate(heads=2, layers=0, by="mean", run=run)
        acts.ablate("feed_forward", layers=1, positions=3, by="mean", run=run)
        after = record_all(model, lambda model: model(TEXT.flip(1)))
    heads = run["layers.0.attention.heads"]
    out = model.layers[0].attention.out_proj
    whole = record_all(model, lambda model: model(TEXT.flip(1)))
    difference = heads[:, 2].mean(dim=(0, 1)) - whole["layers.0.attention.heads"][:, 2]
    expected = whole["layers.0.attention"] + difference @ out.weight[:, 4:6].T
    torch.testing.assert_close(after["layers.0.attention"], expected)
    mean = run["layers.1.feed_forward"].mean(dim=(0, 1))
    torch.testing.assert_close(after["layers.1.feed_forward"][:, 3], mean.expand(2, -1))
    assert not torch.allclose(after["layers.1.feed_forward"][:, 2], mean.expand(2, -1))


@every_model
def test_its_own_activations_change_nothing(kind):
    model, call = made(kind)
    logits, run = call(model), record_all(model, call)
    assert run
    for name in run:
        with intervene(model) as acts:
            heads = range(4) if name.endswith(".heads") else None
            acts.patch(name.removesuffix(".heads"), run, heads=heads)
            torch.testing.assert_close(call(model), logits)


def test_one_head_at_one_place_and_a_residual_are_patched():
    (model, _), other = made("gpt"), TEXT.flip(1)
    run, own = record_all(model, lambda model: model(other)), record_all(model, read)
    with intervene(model) as acts:
        acts.patch("attention", run, heads=1, layers=0, positions=[2, 4])
        after = record_all(model, read)
    difference = (run["layers.0.attention.heads"] - own["layers.0.attention.heads"])[:, 1]
    difference[:, [0, 1, 3, 5]] = 0
    weight = model.layers[0].attention.out_proj.weight[:, 2:4]
    expected = own["layers.0.attention"] + difference @ weight.T
    torch.testing.assert_close(after["layers.0.attention"], expected)
    with intervene(model) as acts:
        acts.patch("residual", run, layers=1, positions=5)
        logits = model(TEXT)
    torch.testing.assert_close(logits[:, 5], model(other)[:, 5])
    torch.testing.assert_close(logits[:, :5], model(TEXT)[:, :5])


def decoded(model):
    """Logits of TEXT, token by token on a cache."""
    state = model.start(SOURCE, LENS) if hasattr(model, "decoder") else model.start()
    return torch.stack([model.step(token, state) for token in TEXT.T], dim=1)


@pytest.mark.parametrize("kind", ["recurrent", "transformer", "gpt", "llama"])
@pytest.mark.parametrize("grad", [True, False])
def test_decoding_on_a_cache_is_changed_as_one_pass_is(kind, grad):
    model, call = made(kind)
    with torch.set_grad_enabled(grad), intervene(model) as acts:
        run = {name: x.flip(0) for name, x in record_all(model, call).items()}
        acts.forbid(queries=[2, 3], keys=[0, 1])
        if kind == "recurrent":
            acts.patch("attention", run, positions=[1, 4])
        else:
            acts.patch("feed_forward", run, layers=1, positions=[1, 4])
            name = "cross_attention" if kind == "transformer" else "attention"
            acts.ablate(name, heads=0, layers=1, positions=2)
        with record_activations(model) as once:
            whole = call(model)
        with record_activations(model) as slowly:
            torch.testing.assert_close(decoded(model), whole)
    torch.testing.assert_close(slowly, once)
    assert not torch.allclose(whole, call(model))


def test_a_translator_that_looks_back_shows_the_map_that_it_used():
    model, _ = made("recurrent")
    with cu.record_attention(model) as maps, intervene(model) as acts:
        acts.forbid(queries=[1, 2], keys=[3])
        translated(model)
    assert maps["attention"].shape == (2, 6, 7)
    hidden = (maps["attention"][:, :, 3] == 0).all(dim=0)
    assert hidden.nonzero().flatten().tolist() == [1, 2]


def traces(model):
    """Everything that a module holds, and every hook."""
    return [
        {n: dict(value) if isinstance(value, dict) else value for n, value in vars(module).items()}
        for module in model.modules()
    ]


@every_model
def test_nothing_is_left_behind_also_after_an_exception(kind):
    model, call = made(kind)
    before, logits = traces(model), call(model)
    mine = pytest.raises(KeyError, match="mine")
    with mine, intervene(model) as acts, record_activations(model):
        acts.forbid(keys=0)
        acts.ablate()
        with intervene(model) as inner:
            inner.ablate(layers=None)
            copied = copy.deepcopy(model)
            raise KeyError("mine")
    assert traces(model) == before
    torch.testing.assert_close(call(copied), logits)
    assert torch.equal(call(model), logits)


def test_blocks_may_stand_in_each_other():
    model, _ = made("gpt")
    with intervene(model) as both:
        both.forbid(queries=3, keys=1)
        both.ablate(heads=1, layers=1)
        expected = model(TEXT)
    with intervene(model) as outer:
        outer.forbid(queries=3, keys=1)
        with intervene(model) as inner:
            inner.ablate(heads=1, layers=1)
            assert torch.equal(model(TEXT), expected)
        assert not torch.equal(model(TEXT), expected)


RUN = {"layers.0.residual": torch.zeros(1, 5, 8)}


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda acts: acts.forbid("attentoin"), r"place='attentoin' is unknown; .*layers.0.attention"),
        (lambda acts: acts.forbid(layers=2), "layers=2; .*layers.1.attention"),
        (lambda acts: acts.forbid(heads=[0, 4]), r"heads=\[0, 4\]; layers.0.attention has 4"),
        (lambda acts: acts.forbid(keys=-1), "keys=-1; numbers counted from 0"),
        (lambda acts: acts.forbid(queries=[]), r"queries=\[\]; numbers"),
        (lambda acts: acts.forbid(queries=6), r"queries=\[6\]; layers.0.attention has 6"),
        (lambda acts: acts.ablate("feed_forward", positions=9), r"positions=\[9\]; layers.0.feed"),
        (lambda acts: acts.ablate("feed_forward", heads=0), "heads=0; layers.0.feed_forward has none"),
        (lambda acts: acts.ablate(heads=4), r"heads=\[4\]; layers.0.attention.heads has 4"),
        (lambda acts: acts.ablate(by="average"), "by='average' is unknown; there are 'zero', 'mean'"),
        (lambda acts: acts.ablate(by="mean"), "by='mean'; a run is needed"),
        (lambda acts: acts.patch("feed_forward", RUN), "run holds nothing of layers.0.feed_forward"),
        (lambda acts: acts.patch("residual", RUN, layers=0), r"shape \(1, 5, 8\); from .*\(2, 6, 8\)"),
    ],
)  # fmt: skip
def test_what_is_not_there_is_named(act, message):
    model, _ = made("gpt")
    with pytest.raises(ValueError, match=message), intervene(model) as acts:
        act(acts)
        model(TEXT)


def compiled_in_place(model):
    model.layers[0].compile(backend="eager")
    return model


@pytest.mark.parametrize("look", [intervene, record_activations])
@pytest.mark.parametrize(
    "compiled", [partial(torch.compile, backend="eager"), compiled_in_place], ids=["", "in place"]
)
def test_a_compiled_model_which_would_skip_the_hooks_is_refused(compiled, look):
    model = made("gpt")[0]
    with pytest.raises(ValueError, match="model is compiled, .*deepcopy"), look(compiled(model)):
        pass
    with look(copy.deepcopy(model)):  # which is not
        model(TEXT)


def test_a_module_on_its_own_is_called_attention():
    torch.manual_seed(0)
    module, x = cu.MultiHeadAttention(8, 2), torch.randn(1, 3, 8)
    with record_activations(module) as run:
        answer = module(x, x, x)
    assert set(run) == {"attention", "attention.heads"} and torch.equal(run["attention"], answer)
    with intervene(module) as acts, cu.record_attention(module) as maps:
        acts.forbid("attention", keys=1)
        module(x, x, x)
    assert not maps["attention"][..., 1].any()


def test_a_model_without_attention_is_refused():
    refused = pytest.raises(ValueError, match="SmallCNN contains no attention")
    with refused, intervene(SmallCNN()):
        pass


# Norms, positions and shortcuts -----------------------------------------------------------------------


def without_norms(model):
    for module in list(model.modules()):
        for name, child in list(module.named_children()):
            if isinstance(child, nn.LayerNorm):
                setattr(module, name, nn.Identity())


class EncoderWithoutSums(EncoderLayer):
    def forward(self, x, attn_mask=None, **options):
        y = self.attention_norm(x)
        x = self.attention(y, y, y, attn_mask)
        return self.feed_forward(self.feed_forward_norm(x))


class DecoderWithoutSums(DecoderLayer):
    def forward(self, x, memory, attn_mask=None, memory_mask=None, *, is_causal=False, cache=None):
        y = self.self_attention_norm(x)
        x = self.self_attention(y, y, y, attn_mask, is_causal=is_causal)
        x = self.cross_attention(self.cross_attention_norm(x), memory, memory, memory_mask)
        return self.feed_forward(self.feed_forward_norm(x))


def without_sums(model):
    for layer in (*model.encoder, *model.decoder):
        encodes = hasattr(layer, "attention")
        layer.__class__ = EncoderWithoutSums if encodes else DecoderWithoutSums


def without_positions(side, model):
    embed = model.embed

    def by_words(embedding, tokens, start=0):
        if embedding is not getattr(model, side):
            return embed(embedding, tokens, start)
        return embedding(tokens) * math.sqrt(embedding.embedding_dim)

    model.embed = by_words


@pytest.mark.parametrize(
    ("verb", "place", "by_hand"),
    [
        ("ablate", "norm", without_norms),
        ("ablate", "shortcut", without_sums),
        ("ablate", "source_embedding.positions", partial(without_positions, "source_embedding")),
        ("ablate", "target_embedding.positions", partial(without_positions, "target_embedding")),
    ],
)
def test_without_norms_shortcuts_or_positions_it_is_the_model_written_without_them(
    verb, place, by_hand
):
    torch.manual_seed(0)
    model = cu.Transformer(12, 13, **SHAPE).eval()
    before = translated(model)
    with intervene(model) as acts:
        getattr(acts, verb)(place)
        found = translated(model)
    assert torch.equal(translated(model), before)
    written = copy.deepcopy(model)
    by_hand(written)
    torch.testing.assert_close(found, translated(written), atol=1e-5, rtol=1e-4)
    assert not torch.allclose(found, before, atol=1e-3)


def test_one_shortcut_is_cut_whatever_else_is_off():
    torch.manual_seed(0)
    model = cu.Transformer(12, 13, **SHAPE).eval()
    with intervene(model) as acts, record_activations(model) as run:
        acts.ablate("decoder.1.feed_forward.shortcut")
        acts.ablate("decoder.1.feed_forward")
        translated(model)
    assert not run["decoder.1.residual"].any() and run["decoder.0.residual"].any()


@pytest.mark.parametrize(
    ("act", "message"),
    [
        (lambda acts: acts.ablate("memory"), "place='memory' is unknown; there are"),
        (lambda acts: acts.ablate("shortcut", by="mean", run={}), "ablated as a whole"),
    ],
)
def test_what_cannot_be_ablated_is_refused(act, message):
    with (
        intervene(cu.Transformer(12, 13, **SHAPE)) as acts,
        pytest.raises(ValueError, match=message),
    ):
        act(acts)
