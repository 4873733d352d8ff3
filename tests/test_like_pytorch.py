"""The library as somebody uses it who knows PyTorch: its masks and layouts, its modules, its transforms."""

import copy
import io
import itertools
import random
from functools import partial
from unittest import mock

import pytest
import torch
import torch.nn.functional as F
from peers import copy_attention, copy_layer, same_gradients
from torch import nn
from torch.testing import assert_close

import course_utils as cu
from course_utils import fused
from course_utils.attention import MultiHeadAttention, dot_product_weights
from course_utils.data.images import ImageBatch
from course_utils.layers import DecoderLayer, EncoderLayer
from course_utils.masks import causal_mask, padding_mask
from course_utils.models.diffusion import CrossAttention, PixelAttention, UNet
from course_utils.models.language import BERT, GPT, SentenceClassifier
from course_utils.models.recurrent import AttentionTranslator, RecurrentTranslator
from course_utils.models.transformer import Transformer
from course_utils.models.vision import ViT
from course_utils.recording import record_attention
from course_utils.train.losses import classification_loss
from course_utils.train.trainer import Trainer

EXACT = {"atol": 1e-10, "rtol": 1e-8}


@pytest.fixture(autouse=True)
def seed():
    torch.manual_seed(0)


# Masks and layouts ------------------------------------------------------------------------------


def by_definition(q, k, v, mask=None, scale=None):
    """In float64, by sums over permitted keys; a query without any gets zeros."""
    scores = q.double() @ k.double().mT * (q.shape[-1] ** -0.5 if scale is None else scale)
    permitted = torch.ones_like(scores) if mask is None else mask.expand_as(scores).double()
    weights = (scores - scores.amax(-1, keepdim=True)).exp() * permitted
    return weights / weights.sum(-1, keepdim=True).clamp(min=1e-300) @ v.double()


def some(*shape):
    return torch.rand(*shape) > 0.4


@pytest.mark.parametrize(
    ("dtype", "tolerance"),
    [
        (torch.float64, 1e-10),
        (torch.float32, 2e-5),
        (torch.float16, 4e-3),
        (torch.bfloat16, 3e-2),
    ],
)
@pytest.mark.parametrize("lead", [(), (3,), (2, 4), (2, 3, 4)])
def test_averages_and_gradients_are_right_for_each_mask_that_broadcasts(lead, dtype, tolerance):
    sizes = [(5, 7, 8, 6), (1, 7, 8, 8), (5, 1, 8, 8), (7, 5, 8, 8), (33, 65, 16, 16)]
    for (queries, keys, dim, value_dim), scale in itertools.product(sizes, (None, 0.3)):
        q, k, v = (
            torch.randn(*lead, n, size).to(dtype).requires_grad_()
            for n, size in ((queries, dim), (keys, dim), (keys, value_dim))
        )
        masks = [None, some(()), some(keys), some(1, keys), some(queries, 1), some(queries, keys)]
        masks += [torch.zeros(queries, keys).bool(), some(*lead, queries, keys)]
        masks += [some(*lead[:-1], 1, queries, keys)] if lead else []
        given = (q, k, v, *masks[1:])
        before = [tensor.clone() for tensor in given]
        for mask in masks:
            expected = by_definition(q, k, v, mask, scale)
            weights = dot_product_weights(q, k, mask, scale=scale)
            assert mask is None or not weights[~mask.expand_as(weights)].any()
            for found in (
                cu.scaled_dot_product_attention(q, k, v, mask, scale=scale),
                weights @ v,
            ):
                assert_close(found.double(), expected, atol=tolerance, rtol=0)
                if dtype.itemsize > 2:
                    same_gradients(found, expected.to(dtype), (q, k, v))
        assert all(map(torch.equal, given, before))  # nothing is changed in place
        if queries <= keys:
            causal = causal_mask(keys)[keys - queries :]
            found = cu.scaled_dot_product_attention(q, k, v, is_causal=True)
            assert_close(found.double(), by_definition(q, k, v, causal), atol=tolerance, rtol=0)


@pytest.mark.parametrize(
    "leads",
    [
        ((4,), (2, 4), (2, 4)),
        ((1, 4), (2, 4), (2, 4)),
        ((2, 4), (2, 4), (4,)),
        ((), (2, 4), (2, 4)),
    ],
    ids=str,
)
@pytest.mark.parametrize("mask", [None, some(5, 7), some(7)], ids=["none", "queries", "keys"])
def test_leading_axes_broadcast(leads, mask):
    q, k, v = (
        torch.randn(*lead, *size)
        for lead, size in zip(leads, ((5, 8), (7, 8), (7, 6)), strict=True)
    )
    found = cu.scaled_dot_product_attention(q, k, v, mask)
    assert_close(found.double(), by_definition(q, k, v, mask), atol=1e-5, rtol=0)


LAYOUTS = {
    "transposed": lambda x: x.mT.contiguous().mT,
    "strided": lambda x: torch.stack([x, x], -1)[..., 0],
    "expanded": lambda x: x[:1].expand(x.shape),
    "flipped": lambda x: x.flip(-2),
}


@pytest.mark.parametrize("lead", [(3,), (2, 4)])
def test_no_layout_in_memory_changes_a_result(lead):
    q, k, v = torch.randn(*lead, 5, 8), torch.randn(*lead, 7, 8), torch.randn(*lead, 7, 8)
    mask = some(5, 7)
    masks = [None, mask, mask.T.contiguous().T, mask[:, :1].expand(5, 7)]
    for one, two, three in itertools.product(LAYOUTS.values(), repeat=3):
        given = one(q), two(k), three(v)
        for mask in masks:
            found = cu.scaled_dot_product_attention(*given, mask)
            assert_close(found.double(), by_definition(*given, mask), atol=1e-5, rtol=0)


@pytest.mark.parametrize("lead", [(0,), (2, 0), (0, 2), (2,)])
@pytest.mark.parametrize("masked", [False, True])
def test_where_there_is_nothing_there_are_zeros_or_nothing(lead, masked):
    for queries, keys in itertools.product((0, 3), (0, 4)):
        q, k, v = (
            torch.randn(*lead, *size, requires_grad=True)
            for size in ((queries, 8), (keys, 8), (keys, 6))
        )
        mask = torch.ones(queries, keys).bool() if masked else None
        found = cu.scaled_dot_product_attention(q, k, v, mask)
        found.sum().backward()
        assert found.shape == (*lead, queries, 6) and found.isfinite().all()
        assert keys or not found.any()


# Modules ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("embed_dim", "num_heads"), [(16, 4), (12, 1)])
@pytest.mark.parametrize(("key_dim", "value_dim"), [(None, None), (7, None), (7, 9)])
@pytest.mark.parametrize("bias", [True, False])
def test_outputs_and_weights_are_those_of_pytorchs_module(
    embed_dim, num_heads, key_dim, value_dim, bias
):
    options = {"kdim": key_dim, "vdim": value_dim, "bias": bias, "batch_first": True}
    theirs = nn.MultiheadAttention(embed_dim, num_heads, **options).double()
    ours = MultiHeadAttention(
        embed_dim, num_heads, key_dim=key_dim, value_dim=value_dim, bias=bias
    ).double()
    copy_attention(ours, theirs)
    for batch, queries, keys in ((3, 5, 6), (1, 1, 4), (4, 4, 4), (2, 3, 1)):
        q = torch.randn(batch, queries, embed_dim).double()
        k = torch.randn(batch, keys, key_dim or embed_dim).double()
        v = torch.randn(batch, keys, value_dim or embed_dim).double()
        real, pairs = some(batch, keys), some(queries, keys)
        heads = some(batch, num_heads, queries, keys)
        for mask in (real, pairs, heads):
            mask[..., 0] = True
        padding = {"key_padding_mask": ~real}
        for asked, mask in (
            ({}, None),
            (padding, real[:, None, None]),
            ({"attn_mask": ~pairs}, pairs[None, None]),
            (padding | {"attn_mask": ~pairs}, (pairs & real[:, None])[:, None]),
            ({"attn_mask": ~heads.flatten(0, 1)}, heads),
            ({"attn_mask": ~pairs[:1].expand(queries, keys)}, pairs[0]),
        ):
            for training in (True, False):
                theirs.train(training)
                ours.train(training)
                expected, weights = theirs(q, k, v, average_attn_weights=False, **asked)
                with record_attention(ours) as maps:
                    assert_close(ours(q, k, v, mask), expected, **EXACT)
                assert_close(maps["attention"], weights, **EXACT)


@pytest.mark.parametrize("norm_first", [True, False])
@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize(
    ("activation", "other"),
    [("relu", "relu"), ("gelu", "gelu"), ("gelu_tanh", partial(F.gelu, approximate="tanh"))],
)
def test_layers_are_those_of_pytorch(norm_first, training, activation, other):
    options = {"dropout": 0.0, "norm_first": norm_first}
    ours = EncoderLayer(16, 4, 32, activation=activation, eps=1e-3, **options).double()
    theirs = nn.TransformerEncoderLayer(
        16, 4, 32, activation=other, layer_norm_eps=1e-3, batch_first=True, **options
    ).double()
    decoder = DecoderLayer(16, 4, 32, **options).double()
    their_decoder = nn.TransformerDecoderLayer(16, 4, 32, batch_first=True, **options).double()
    copy_layer(ours, theirs)
    copy_layer(decoder, their_decoder)
    for module in (ours, theirs, decoder, their_decoder):
        module.train(training)
    for batch, length, memory_length in ((2, 5, 6), (3, 1, 2), (4, 4, 4)):
        x = torch.randn(batch, length, 16).double()
        memory = torch.randn(batch, memory_length, 16).double()
        real, known = some(batch, length), some(batch, memory_length)
        real[:, 0] = known[:, 0] = True
        causal = nn.Transformer.generate_square_subsequent_mask(length, dtype=torch.bool)
        assert_close(ours(x), theirs(x), **EXACT)
        padded = theirs(x, src_key_padding_mask=~real)
        assert_close(ours(x, real[:, None, None])[real], padded[real], **EXACT)
        assert_close(ours(x, is_causal=True), theirs(x, src_mask=causal, is_causal=True), **EXACT)
        expected = their_decoder(x, memory, tgt_mask=causal, memory_key_padding_mask=~known)
        assert_close(
            decoder(x, memory, None, known[:, None, None], is_causal=True), expected, **EXACT
        )


@pytest.mark.filterwarnings("ignore:enable_nested_tensor is True")
@pytest.mark.parametrize("norm_first", [True, False])
def test_the_whole_transformer_is_pytorchs(norm_first):
    sizes = {"embed_dim": 16, "num_heads": 4, "ffn_dim": 32, "num_layers": 2}
    ours = Transformer(11, 13, **sizes, dropout=0.0, norm_first=norm_first).double()
    theirs = nn.Transformer(16, 4, 2, 2, 32, 0.0, batch_first=True, norm_first=norm_first).double()
    layers = zip(
        [*ours.encoder, *ours.decoder],
        [*theirs.encoder.layers, *theirs.decoder.layers],
        strict=True,
    )
    for mine, other in layers:
        copy_layer(mine, other)
    if not norm_first:
        theirs.encoder.norm = theirs.decoder.norm = None
    source, lengths = torch.randint(3, 11, (4, 7)), torch.tensor([7, 3, 1, 5])
    target, padding = torch.randint(3, 13, (4, 5)), torch.arange(7) >= lengths[:, None]
    with torch.no_grad():
        features = theirs(
            ours.embed(ours.source_embedding, source),
            ours.embed(ours.target_embedding, target),
            tgt_mask=nn.Transformer.generate_square_subsequent_mask(5, dtype=torch.bool),
            src_key_padding_mask=padding,
            memory_key_padding_mask=padding,
        )
        assert_close(ours(source, lengths, target), ours.output(features), **EXACT)


# Copies, devices and transforms -----------------------------------------------------------------


SOURCE, LENGTHS = torch.arange(28).view(4, 7) * 5 % 17 + 3, torch.tensor([7, 3, 1, 5])
TARGET, TEXT = torch.arange(20).view(4, 5) * 3 % 17 + 3, torch.arange(27).view(3, 9) * 7 % 17 + 3
X = torch.linspace(-1, 1, 2 * 6 * 16).sin().view(2, 6, 16) * 3
PIXELS = torch.linspace(-1, 1, 2 * 16 * 16).cos().view(2, 16, 4, 4) * 2
PADDING = padding_mask(torch.tensor([6, 3]), 6)
LLAMA = {"rotary": True, "norm": "rms", "activation": "swiglu"}
GRU = {"embed_dim": 16, "hidden_dim": 16}


class DotProduct(nn.Module):
    """Attention without heads and parameters."""

    forward = staticmethod(cu.scaled_dot_product_attention)


MODELS = {
    "heads": (partial(MultiHeadAttention, 16, 4), (X, X, X)),
    "heads, padding": (partial(MultiHeadAttention, 16, 4), (X, X, X, PADDING)),
    "heads, causal": (partial(MultiHeadAttention, 16, 4), (X, X, X, causal_mask(6))),
    "grouped heads": (partial(MultiHeadAttention, 16, 4, num_kv_heads=2), (X, X, X)),
    "additive": (partial(cu.AdditiveAttention, 16, 16, 8), (X, X, X, PADDING)),
    "dot product": (DotProduct, (X, X, X, PADDING)),
    "encoder layer": (partial(EncoderLayer, 16, 4, 32, **LLAMA), (X,)),
    "decoder layer": (partial(DecoderLayer, 16, 4, 32), (X, X)),
    "transformer": (
        partial(Transformer, 20, 20, embed_dim=16, ffn_dim=32),
        (SOURCE, LENGTHS, TARGET),
    ),
    "gpt": (partial(GPT, 20, embed_dim=16), (TEXT,)),
    "llama": (partial(GPT, 20, embed_dim=16, num_kv_heads=2, **LLAMA), (TEXT,)),
    "bert": (partial(BERT, 20, embed_dim=16), (TEXT, LENGTHS[1:])),
    "classifier": (
        lambda: SentenceClassifier(BERT(20, embed_dim=16), 3),
        (TEXT, LENGTHS[1:]),
    ),
    "vit": (partial(ViT, image_size=8, patch_size=4, embed_dim=16, ffn_dim=32), (PIXELS[:, :1].repeat(1, 1, 2, 2),)),
    "pixels": (partial(PixelAttention, 16, 2), (PIXELS,)),
    "pixels and words": (partial(CrossAttention, 16, 16, 2), (PIXELS, X)),
    "u-net": (
        partial(UNet, 16, widths=(8, 16), num_classes=3),
        (PIXELS, torch.tensor([1, 5]), torch.tensor([0, 2])),
    ),
    "gru": (partial(RecurrentTranslator, 20, 20, **GRU), (SOURCE, LENGTHS, TARGET)),
    "gru with attention": (partial(AttentionTranslator, 20, 20, **GRU), (SOURCE, LENGTHS, TARGET)),
}  # fmt: skip
every_model = pytest.mark.parametrize("name", MODELS)
mapped = [name for name in MODELS if "gru" not in name]  # PyTorch packs no batch under a transform


def made(name):
    """A model in eval mode whose parameters are all of some size, and what to give to it."""
    make, args = MODELS[name]
    model = make().eval()
    for parameter in model.parameters():
        nn.init.normal_(parameter, std=0.2)
    return model, args


def on(dtype, args):
    return [arg.to(dtype) if arg.is_floating_point() else arg for arg in args]


def loaded(make, model, **options):
    """A new model with the weights of the old one, which went through a file."""
    file = io.BytesIO()
    torch.save(model.state_dict(), file)
    file.seek(0)
    new = make()
    new.load_state_dict(torch.load(file, weights_only=True), **options)
    return new.eval()


def saved_whole(model):
    file = io.BytesIO()
    torch.save(model, file)
    file.seek(0)
    return torch.load(file, weights_only=False)


def on_meta(make):
    with torch.device("meta"):
        return make()


def emptied(make):
    """A new model on the CPU, whose tensors hold what was there in memory, or worse."""
    model = on_meta(make).to_empty(device="cpu")
    for buffer in model.buffers():
        buffer.fill_(torch.nan)
    return model


def autocast(model, *args):
    with torch.autocast("cpu", torch.bfloat16):
        return model(*args).float()


def joined(model, *args):
    with mock.patch.object(fused, "_joining_pays", return_value=True):
        return model(*args)


WAYS = {
    "deepcopy": (lambda make, model, args: copy.deepcopy(model)(*args), 0),
    "a whole file": (lambda make, model, args: saved_whole(model)(*args), 0),
    "a file of weights": (lambda make, model, args: loaded(make, model)(*args), 0),
    "weights assigned on meta": (
        lambda make, model, args: loaded(partial(on_meta, make), model, assign=True)(*args),
        0,
    ),
    "weights loaded after meta": (
        lambda make, model, args: loaded(partial(emptied, make), model)(*args),
        0,
    ),
    "inference mode": (lambda make, model, args: torch.inference_mode()(model)(*args), 0),
    "functional call": (
        lambda make, model, args: torch.func.functional_call(
            model, dict(model.named_parameters()), args
        ),
        0,
    ),
    "float64": (
        lambda make, model, args: copy.deepcopy(model).double()(*on(torch.double, args)).float(),
        1e-4,
    ),
    "bfloat16": (
        lambda make, model, args: copy.deepcopy(model).bfloat16()(*on(torch.bfloat16, args)).float(),
        0.2,
    ),
    "autocast": (lambda make, model, args: autocast(model, *args), 0.2),
    "joined as on a GPU": (lambda make, model, args: joined(model, *args), 1e-5),
}  # fmt: skip


@pytest.mark.parametrize("way", WAYS)
@every_model
@torch.no_grad()
def test_a_model_gives_the_same_in_each_of_these_ways(name, way):
    model, args = made(name)
    run, tolerance = WAYS[way]
    assert_close(run(MODELS[name][0], model, args), model(*args), atol=tolerance, rtol=0)


@pytest.mark.parametrize("name", sorted(MODELS.keys() - {"dot product", "classifier"}))
def test_every_parameter_gets_a_gradient_and_every_module_calls_its_hooks(name):
    model, args = made(name)
    modules = {n: m for n, m in model.named_modules() if not isinstance(m, nn.ModuleList)}
    called = set()
    for key, module in modules.items():
        module.register_forward_hook(lambda *_, key=key: called.add(key))
    model.train()(*args).square().sum().backward()
    assert called == set(modules)
    still = {key for key, parameter in model.named_parameters() if not parameter.grad.any()}
    # a bias of the keys shifts all scores of a row alike: its gradient is zero but for rounding
    assert all(key.endswith("key_proj.bias") for key in still), still


@pytest.mark.filterwarnings("ignore:There is a performance drop")
@pytest.mark.parametrize("name", mapped)
def test_each_sample_has_its_output_and_gradients_under_vmap(name):
    model, args = made(name)
    parameters = dict(model.named_parameters())
    shared = [None if arg.dtype == torch.bool and arg.ndim == 2 else 0 for arg in args]

    def output(parameters, *sample):
        batch = [
            arg if axis is None else arg[None] for arg, axis in zip(sample, shared, strict=True)
        ]
        return torch.func.functional_call(model, parameters, tuple(batch))[0]

    def loss(*given):
        return output(*given).square().sum()

    outputs = torch.vmap(output, (None, *shared))(parameters, *args)
    assert_close(outputs, model(*args), atol=1e-4, rtol=1e-4)
    each = torch.vmap(torch.func.grad(loss), (None, *shared))(parameters, *args)
    one = [arg if axis is None else arg[1] for arg, axis in zip(args, shared, strict=True)]
    for key, expected in torch.func.grad(loss)(parameters, *one).items():
        assert_close(each[key][1], expected, atol=1e-3, rtol=1e-3)


@pytest.mark.parametrize("name", mapped)
@torch.no_grad()
def test_an_exported_model_takes_batches_of_any_size(name):
    model, args = made(name)
    rows = torch.export.Dim("rows", min=2, max=64)
    shapes = [None if arg.dtype == torch.bool and arg.ndim == 2 else {0: rows} for arg in args]
    exported = torch.export.export(model, args, dynamic_shapes=shapes, strict=False).module()
    more = [
        arg if shape is None else torch.cat([arg] * 3)
        for arg, shape in zip(args, shapes, strict=True)
    ]
    for given in (args, more):
        assert_close(exported(*given), model(*given), atol=1e-5, rtol=1e-5)


@pytest.mark.parametrize("name", ["heads, padding", "heads, causal", "transformer", "vit"])
def test_a_model_compiles_whole_and_its_gradients_are_the_same(name):
    model, args = made(name)
    found = []
    for run in (model, torch.compile(model, backend="aot_eager", fullgraph=True)):
        output = run(*args)
        found.append(
            (output, *torch.autograd.grad(output.square().sum(), list(model.parameters())))
        )
    torch._dynamo.reset()
    for ours, expected in zip(*found, strict=True):
        assert_close(ours, expected, atol=1e-4, rtol=1e-4)


# Decoding and training --------------------------------------------------------------------------


@pytest.mark.parametrize("number", range(16))
def test_a_text_in_any_portions_is_as_read_at_once(number):
    """With gradients or without, in turns, and going on with any of its rows."""
    draws = random.Random(number)
    model = GPT(
        20,
        embed_dim=16,
        norm=draws.choice(["layer", "rms"]),
        activation=draws.choice(["gelu", "swiglu"]),
        rotary=draws.random() < 0.5,
        num_kv_heads=draws.choice([1, 2, 4]),
    ).eval()
    tokens, state = torch.randint(20, (3, 30)), model.start()
    at_once = model(tokens)
    while (start := state.length) < 30:
        end = draws.randint(start + 1, min(start + 7, 30))
        with draws.choice([torch.no_grad, torch.inference_mode, torch.enable_grad])():
            logits = model.step(tokens[:, start:end], state)
        assert_close(logits, at_once[:, end - 1], atol=1e-5, rtol=1e-4)
        if draws.random() < 0.3:
            rows = torch.tensor(draws.choices(range(3), k=3))
            state.reorder(rows)
            tokens, at_once = tokens[rows], at_once[rows]


def test_a_training_is_the_loop_that_one_would_write():
    ours = ViT(image_size=8, patch_size=4, embed_dim=16, dropout=0.0).double()
    plain = copy.deepcopy(ours)
    batches = [
        ImageBatch(torch.randn(8, 1, 8, 8).double(), torch.randint(10, (8,))) for _ in range(4)
    ]
    trainer = Trainer(classification_loss(), epochs=2, lr=3e-3, weight_decay=0.1, quiet=True)
    trainer.fit(ours, batches)
    decayed = [p for name, p in plain.named_parameters() if p.ndim == 2 and "positions" not in name]
    others = [p for p in plain.parameters() if not any(p is other for other in decayed)]
    groups = [{"params": decayed, "weight_decay": 0.1}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, lr=3e-3, betas=(0.9, 0.98))
    for batch in batches * 2:
        optimizer.zero_grad()
        F.cross_entropy(plain(batch.images), batch.labels).backward()
        nn.utils.clip_grad_norm_(plain.parameters(), 1.0)
        optimizer.step()
    for name, parameter in ours.named_parameters():
        if not name.endswith("key_proj.bias"):  # whose gradient is nothing but rounding
            assert_close(parameter, plain.get_parameter(name), atol=1e-8, rtol=1e-6)
