# ruff: noqa: E501
"""Attention against PyTorch's operator and against its own laws: shapes, masks, dtypes, gradients."""

import copy
import io
import math
from functools import partial
from unittest.mock import Mock

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from peers import same_gradients
from torch import nn
from torch.autograd import gradcheck, gradgradcheck
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils._python_dispatch import TorchDispatchMode

import course_utils as cu
from course_utils import fused
from course_utils.attention import MultiHeadAttention, dot_product_weights, split_heads
from course_utils.cache import KVCache
from course_utils.masks import causal_mask, fit_mask_to_heads
from course_utils.models.diffusion import UNet
from course_utils.models.language import BERT, GPT
from course_utils.models.recurrent import AttentionTranslator
from course_utils.models.transformer import Transformer
from course_utils.models.vision import ViT
from course_utils.positions import rotate

TOLERANCE = {
    torch.float16: {"atol": 4e-3, "rtol": 4e-3},
    torch.bfloat16: {"atol": 3e-2, "rtol": 3e-2},
    torch.float32: {"atol": 1e-5, "rtol": 1e-4},
    torch.float64: {"atol": 1e-12, "rtol": 1e-10},
}
needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")


def test_attention_without_heads_keeps_no_scores_in_memory():
    kept = []

    def keep(tensor):
        kept.append(tensor.numel())
        return tensor

    queries, keys, values = (torch.randn(2, 256, 8, requires_grad=True) for _ in range(3))
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        cu.scaled_dot_product_attention(queries, keys, values)
    assert max(kept) < 2 * 256 * 256


DEVICES = ["cpu", pytest.param("cuda", marks=needs_gpu)]


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("device", DEVICES)
@pytest.mark.parametrize("per_query", [False, True], ids=["sequence", "query"])
def test_a_query_with_no_permitted_key_gets_exact_zeros_and_finite_gradients(
    dtype, device, per_query
):
    torch.manual_seed(0)
    queries, keys, values = (
        torch.randn(2, 2, 8, 16, device=device, dtype=dtype, requires_grad=True) for _ in range(3)
    )
    lengths = torch.tensor([[8, 0, 3, 0, 1, 2, 8, 0]] * 2) if per_query else torch.tensor([0, 5])
    mask = cu.padding_mask(lengths.to(device), 8)
    output = cu.scaled_dot_product_attention(queries, keys, values, mask)
    empty = ~mask.any(-1, keepdim=True).expand_as(output)
    assert (output[empty] == 0).all()
    output.float().square().sum().backward()
    assert all(x.grad.isfinite().all() for x in (queries, keys, values))
    assert (queries.grad[empty] == 0).all()


def test_no_kernel_is_asked_about_a_query_with_no_permitted_key(monkeypatch):
    def naive(q, k, v, attn_mask=None, dropout_p=0.0, scale=None, is_causal=False, **_):
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(~attn_mask, -math.inf)
        return scores.softmax(-1) @ v  # NaN where all scores are −inf

    usual = F.scaled_dot_product_attention
    x = torch.randn(2, 3, 8, 6, requires_grad=True)
    mask = cu.padding_mask(torch.tensor([[8, 0, 3, 0, 1, 2, 8, 0]] * 2), 8)
    outputs = []
    for kernel in (usual, naive):
        monkeypatch.setattr(F, "scaled_dot_product_attention", kernel)
        output = cu.scaled_dot_product_attention(x, x, x, mask)
        outputs.append((output, *torch.autograd.grad(output.square().sum(), x)))
    for ours, expected in zip(*outputs, strict=True):
        torch.testing.assert_close(ours, expected)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("scale", [1.0, 1e4, 1e6])
def test_softmax_survives_huge_scores_in_every_dtype(dtype, scale):
    limit = torch.finfo(dtype).max
    scores = (
        (torch.tensor([[-2.0, -1.0, -3.0, 5.0]]).double() * scale).clamp(-limit, limit).to(dtype)
    )
    mask = torch.tensor([[True, True, True, False]])
    weights = cu.masked_softmax(scores, mask)
    assert weights.isfinite().all() and weights[0, 3] == 0
    assert weights[0].argmax() == scores[0, :3].argmax()
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, dtype=dtype), **TOLERANCE[dtype])


@pytest.mark.parametrize("forbidden", [math.inf, -math.inf, math.nan])
def test_forbidden_scores_leave_no_trace_even_when_not_finite(forbidden):
    scores = torch.tensor([[1.0, 2.0, forbidden], [forbidden] * 3], requires_grad=True)
    mask = torch.tensor([[True, True, False], [False, False, False]])
    weights = cu.masked_softmax(scores, mask)
    weights.square().sum().backward()
    torch.testing.assert_close(weights[0, :2], torch.tensor([1.0, 2.0]).softmax(0))
    assert (weights[1] == 0).all()
    assert scores.grad.isfinite().all() and (scores.grad[~mask] == 0).all()


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"is_causal": True},
        {"attn_mask": torch.tensor([True, False, True])},
        {"attn_mask": torch.tensor([[True, False, True], [False] * 3, [True] * 3])},
    ],
)
def test_derivatives_are_right_also_in_forward_mode_and_second_ones_with_products_written_out(
    options,
):
    given = [torch.randn(1, 2, 3, 2, dtype=torch.float64, requires_grad=True) for _ in range(3)]
    attend = partial(cu.scaled_dot_product_attention, **options)
    assert gradcheck(attend, given, check_forward_ad=True)
    with pytest.raises(RuntimeError, match=r"derivative for .* is not implemented"):
        gradgradcheck(attend, given)
    of_all = torch.func.hessian(lambda x: attend(x, x, x).square().sum())
    found, x = of_all(given[0].detach()), given[0].detach()
    with sdpa_kernel(SDPBackend.MATH):
        assert gradgradcheck(attend, given)
        torch.testing.assert_close(found, of_all(x))


def test_derivatives_of_masked_softmax_and_of_additive_attention_are_right():
    mask = torch.tensor([[True, False, True], [False, False, False], [True, True, True]])
    scores = torch.randn(2, 3, 3, dtype=torch.float64, requires_grad=True)
    assert gradcheck(lambda s: cu.masked_softmax(s, mask), scores)
    attention, padding = (
        cu.AdditiveAttention(3, 4, 5).double(),
        cu.padding_mask(torch.tensor([0, 3]), 4),
    )
    sizes = ((2, 3), (4, 4), (4, 6))
    given = [torch.randn(2, n, d, dtype=torch.float64, requires_grad=True) for n, d in sizes]
    assert gradcheck(lambda *inputs: attention(*inputs, padding), given)


def test_additive_attention_equals_its_formula():
    attention = cu.AdditiveAttention(3, 4, 5)
    q, k = torch.randn(2, 2, 3), torch.randn(2, 6, 4)
    shared = attention.key_proj(k)
    for b, i, j in ((0, 0, 0), (1, 1, 5), (0, 1, 3)):
        added = attention.query_proj.weight @ q[b, i] + attention.key_proj.weight @ k[b, j]
        expected = (attention.score_proj.weight @ added.tanh()).squeeze()
        torch.testing.assert_close(attention.scores(q, k)[b, i, j], expected)
        torch.testing.assert_close(attention.scores(q[b], k[b])[i, j], expected)
    right = attention(q, k, k)
    torch.testing.assert_close(attention(q, 0 * k, k, projected_keys=shared), right)


@given(st.lists(st.integers(0, 7), min_size=1, max_size=4))
def test_padding_mask_permits_the_first_keys(lengths):
    mask = cu.padding_mask(torch.tensor(lengths), 7)
    assert mask.shape == (len(lengths), 1, 1, 7)
    assert mask.sum(-1).flatten().tolist() == lengths
    assert (mask[..., :-1] >= mask[..., 1:]).all()


def test_padding_mask_takes_one_length_per_query():
    mask = cu.padding_mask(torch.tensor([[1, 3], [0, 2]]), 3)
    assert mask.shape == (2, 1, 2, 3)
    weights = cu.masked_softmax(torch.zeros(2, 2, 3), mask)  # without an axis of heads
    assert (weights > 0).sum(-1).tolist() == [[1, 3], [0, 2]]


def test_masks_on_another_device_are_not_waited_for():
    mask = causal_mask(3, device="meta")  # reading a value would fail
    assert fit_mask_to_heads(mask, torch.Size((3, 2, 3, 3))) is mask and mask.is_meta
    lengths = torch.empty(3, dtype=torch.long, device="meta")
    mask, x = cu.padding_mask(lengths, 5), torch.empty(3, 2, 5, 4, device="meta")
    assert mask.shape == (3, 1, 1, 5)
    assert cu.scaled_dot_product_attention(x, x, x, mask).shape == x.shape


@given(st.integers(1, 6), st.integers(0, 5))
def test_a_causal_mask_permits_the_places_so_far(length, place):
    place %= length
    assert causal_mask(length)[place].tolist() == [key <= place for key in range(length)]
    assert torch.equal(causal_mask(length, queries=place), causal_mask(length)[length - place :])


@pytest.mark.parametrize("kv_heads", [1, 3])
@pytest.mark.parametrize("queries", [1, 2, 5])
def test_is_causal_takes_the_queries_for_the_last_of_the_keys(queries, kv_heads):
    module, x = MultiHeadAttention(12, 3, num_kv_heads=kv_heads), torch.randn(2, 5, 12)
    last, mask = x[:, -queries:], causal_mask(5)[-queries:]
    attend = partial(cu.scaled_dot_product_attention, last, x, x, scale=0.7)
    torch.testing.assert_close(attend(is_causal=True), attend(mask))
    with cu.record_attention(module) as maps:
        right = module(last, x, x, mask)
        weights = maps.pop("attention")
        torch.testing.assert_close(module(last, x, x, is_causal=True), right)
        torch.testing.assert_close(maps["attention"], weights)
    torch.testing.assert_close(module(last, x, x, is_causal=True), right)


def test_weights_are_dropped_in_training_only():
    x, mask = torch.randn(2, 5, 4), cu.padding_mask(torch.tensor([5, 3]), 5)
    for kind, sizes in ((cu.AdditiveAttention, (4, 4, 8)), (MultiHeadAttention, (4, 2))):
        plain, module = kind(*sizes), kind(*sizes, dropout=0.4)
        module.load_state_dict(plain.state_dict())
        right = plain(x, x, x, mask)
        assert not torch.allclose(module.train()(x, x, x, mask), right)
        torch.testing.assert_close(module.eval()(x, x, x, mask), right)


def test_training_through_a_cache_gives_the_gradients_of_reading_at_once():
    module, x, cache = MultiHeadAttention(12, 3), torch.randn(2, 5, 12), KVCache()
    steps = [module(new, new, new, cache=cache) for new in x.split(1, dim=1)]
    parameters = list(module.parameters())
    at_once = torch.autograd.grad(module(x, x, x, causal_mask(5)).square().sum(), parameters)
    one_by_one = torch.autograd.grad(torch.cat(steps, dim=1).square().sum(), parameters)
    for mine, expected in zip(one_by_one, at_once, strict=True):
        torch.testing.assert_close(mine, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("kv_heads", [1, 4])
def test_projections_joined_for_a_gpu_give_what_separate_ones_give(monkeypatch, bias, kv_heads):
    module = MultiHeadAttention(12, 4, bias=bias, num_kv_heads=kv_heads)
    x, memory = (torch.randn(2, n, 12, requires_grad=True) for n in (5, 7))
    monkeypatch.setattr(F, "linear", linear := Mock(wraps=F.linear))
    outputs = []
    for products in (8, 5):
        monkeypatch.setattr(fused, "_joining_pays", lambda _, joins=products == 5: joins)
        linear.reset_mock()
        outputs.append(module(x, x, x, is_causal=True) + module(x, memory, memory))
        assert linear.call_count == products
    same_gradients(*outputs, [x, memory, *module.parameters()])


def test_joined_projections_are_compiled_whole(monkeypatch):
    monkeypatch.setattr(fused, "_joining_pays", lambda _: True)
    module, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    compiled = torch.compile(module, fullgraph=True, backend="aot_eager")
    same_gradients(compiled(x, x, x), module(x, x, x), list(module.parameters()))


@pytest.mark.parametrize(("device", "training"), [("cpu", True), ("meta", False), ("meta", True)])
def test_projections_are_joined_on_a_gpu_while_gradients_are_recorded(
    monkeypatch, device, training
):
    with torch.device(device):
        module, x = MultiHeadAttention(12, 4), torch.randn(2, 5, 12)
    monkeypatch.setattr(F, "linear", linear := Mock(wraps=F.linear))
    with torch.set_grad_enabled(training):
        module(x, x, x)
    assert linear.call_count == (2 if device == "meta" and training else 4)


@pytest.mark.parametrize("hook", ["forward_hook", "forward_pre_hook", "full_backward_hook"])
def test_a_projection_with_a_hook_or_another_in_its_stead_is_called(monkeypatch, hook):
    monkeypatch.setattr(fused, "_joining_pays", lambda _: True)
    module, x, calls = MultiHeadAttention(12, 3), torch.randn(2, 5, 12, requires_grad=True), []
    getattr(module.key_proj, f"register_{hook}")(lambda *_: calls.append(hook))
    module(x, x, x).sum().backward()
    assert calls == [hook]
    module.key_proj = nn.Linear(12, 12)
    module.value_proj = nn.Sequential(nn.Linear(12, 12), nn.Tanh())
    module.value_proj.in_features = 12
    assert torch.equal(module(x, 0 * x, x), module(x, 0 * x, x.clone()))


@pytest.mark.parametrize("without", ["query_proj", "key_proj"])
def test_a_projection_without_a_bias_beside_others_is_not_joined(monkeypatch, without):
    module, x = MultiHeadAttention(12, 3), torch.randn(2, 5, 12)
    setattr(module, without, nn.Linear(12, 12, bias=False))
    separate = module(x, x, x)
    monkeypatch.setattr(fused, "_joining_pays", lambda _: True)
    assert torch.equal(module(x, x, x), separate)


@pytest.mark.parametrize("batch", [1, 2, 3, 4, 5])
def test_a_mask_of_two_axes_is_queries_by_keys_at_every_batch_size(batch):
    module, x = MultiHeadAttention(12, 3), torch.randn(batch, 4, 12)
    mask = torch.tensor([[1, 0, 0, 1], [0, 1, 1, 1], [0, 0, 0, 0], [1, 1, 0, 0]]).bool()
    assert torch.equal(module(x, x, x, mask), module(x, x, x, mask[None, None]))


def test_heads_are_split_and_merged_without_loss():
    x = torch.randn(2, 5, 12)
    heads = split_heads(x, 3)
    assert heads.shape == (2, 3, 5, 4) and torch.equal(heads[:, 1], x[..., 4:8])
    assert torch.equal(cu.merge_heads(heads), x)


# record_attention -------------------------------------------------------------------------------


class TwoLookUps(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = cu.AdditiveAttention(4, 4, 8, dropout=0.5)
        self.second = nn.ModuleList([cu.AdditiveAttention(4, 4, 8, dropout=0.5)])

    def forward(self, x, mask=None):
        return self.second[0](x, self.first(x, x, x, mask), x, mask)


def test_recorded_weights_are_detached_named_and_before_dropout():
    model, x = TwoLookUps().train(), torch.randn(2, 5, 4, requires_grad=True)
    with cu.record_attention(model) as maps:
        model(x, cu.padding_mask(torch.tensor([5, 3]), 5))
    assert list(maps) == ["first", "second.0"]
    for weights in maps.values():
        assert weights.shape == (2, 5, 5) and not weights.requires_grad
        torch.testing.assert_close(weights.sum(-1), torch.ones(2, 5))
        assert (weights[1, :, 3:] == 0).all()


def window(length, width=3):
    return causal_mask(length) & ~causal_mask(length).tril(-width)


KINDS = {
    "plain": {},
    "causal": {"is_causal": True},
    "window": {"attn_mask": window(6)},
    "a row without a key": {"attn_mask": torch.eye(6).bool() & (torch.arange(6) != 2)},
    "padding": {"attn_mask": cu.padding_mask(torch.tensor([6, 0]), 6)},
    "rotary": {"encode": rotate, "is_causal": True},
    "cache": {"is_causal": True, "cache": True},
    "cross-attention from a cache": {"cache": True, "keys": None, "values": None},
}


@pytest.mark.parametrize("size", [1, 5, 200])
@pytest.mark.parametrize("kv_heads", [1, 4])
@pytest.mark.parametrize("kind", KINDS.values(), ids=KINDS)
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_recorded_weights_give_the_output_in_every_dtype(dtype, kind, kv_heads, size):
    torch.manual_seed(0)
    module, x = MultiHeadAttention(64, 4, num_kv_heads=kv_heads), size * torch.randn(2, 6, 64)
    with torch.no_grad():
        module.query_proj.weight.copy_(
            torch.eye(64)
        )  # sizes above 25 give scores that float16 can't hold
        module.key_proj.weight.copy_(torch.eye(64)[: 16 * kv_heads])
        module.to(dtype)
        inputs, options = (
            {"queries": x.to(dtype)} | dict.fromkeys(["keys", "values"], x.to(dtype)),
            kind,
        )
        if kind.get("cache"):
            options = {**kind, "cache": (cache := KVCache())}
            inputs |= {name: options[name] for name in ("keys", "values") if name in options}
            first = x.to(dtype) if "keys" in options else x[:, :3].to(dtype)
            module(first, first, first, is_causal=True, cache=cache)
            inputs = {
                name: t if t is None or "keys" in options else t[:, 3:]
                for name, t in inputs.items()
            }
        with cu.record_attention(module) as maps:
            output = module(**(inputs | options))
        weights, values = maps["attention"], split_heads(module.value_proj(x.to(dtype)), kv_heads)
        values = values.repeat_interleave(4 // kv_heads, dim=1)
        expected = module.out_proj(cu.merge_heads(weights @ values))
    assert output.isfinite().all() and weights.isfinite().all() and weights.dtype == dtype
    sums = weights.double().sum(-1)
    torch.testing.assert_close(sums, (sums > 0.5).double(), atol=0.02, rtol=0)
    tolerance = TOLERANCE[dtype] | {"atol": size * TOLERANCE[dtype]["atol"]}
    torch.testing.assert_close(output, expected, **tolerance)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("size", [1, 4, 100, 400])
def test_weights_of_a_dtype_are_those_of_float64_rounded(dtype, size):
    torch.manual_seed(0)
    queries, keys = size * torch.randn(2, 2, 5, 60).to(dtype)
    exact = (queries.double() @ keys.double().mT / 60**0.5).softmax(-1)
    close = {torch.float32: 2e-3, torch.float64: 1e-10}.get(dtype, torch.finfo(dtype).eps)
    found = dot_product_weights(queries, keys).double()
    torch.testing.assert_close(found, exact, rtol=0, atol=close)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_recorded_weights_give_the_output_under_autocast(dtype):
    torch.manual_seed(0)
    module, x = MultiHeadAttention(64, 2), 8 * torch.randn(2, 6, 64)
    with torch.no_grad(), torch.autocast("cpu", dtype), cu.record_attention(module) as maps:
        output, values = module(x, x, x), split_heads(module.value_proj(x), 2)
    expected = module.out_proj(cu.merge_heads(maps["attention"].float() @ values.float()))
    tolerance = TOLERANCE[dtype] | {"atol": 8 * TOLERANCE[dtype]["atol"]}
    torch.testing.assert_close(output.float(), expected, **tolerance)


def whole_models():
    """Models of every kind with attention, and what they read; their scores are far above 65,504."""
    ids, lens = torch.arange(12).view(2, 6), torch.tensor([6, 4])
    sizes = {"embed_dim": 32, "num_heads": 2, "num_layers": 1}
    pictures, steps = torch.rand(2, 1, 8, 8), torch.tensor([3, 7])
    unet = UNet(widths=(8,), attention=(True,), num_heads=1, token_dim=4)
    return {
        "GPT": (GPT(20, **sizes), (ids, lens)),
        "rotary GPT": (GPT(20, rotary=True, num_kv_heads=1, **sizes), (ids,)),
        "BERT": (BERT(20, **sizes), (ids, lens)),
        "ViT": (ViT(image_size=8, patch_size=4, **sizes), (pictures,)),
        "Transformer": (Transformer(20, 20, ffn_dim=32, **sizes), (ids, lens, ids)),
        "Bahdanau": (AttentionTranslator(20, 20, embed_dim=8, hidden_dim=8), (ids, lens, ids)),
        "U-Net": (unet, (pictures, steps, None, torch.randn(2, 5, 4))),
    }


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("name", whole_models())
def test_every_map_of_every_model_is_that_of_float64_in_each_dtype(name, dtype):
    torch.manual_seed(0)
    model, inputs = whole_models()[name]
    for layer_name, parameter in model.named_parameters():
        if (
            any(part in layer_name for part in ("query_proj", "key_proj", "qkv"))
            and name != "Bahdanau"
        ):
            parameter.data *= 200
    found = []
    for kind in (torch.float64, dtype):
        copied = copy.deepcopy(model).eval().to(kind)
        given = [x.to(kind) if x is not None and x.is_floating_point() else x for x in inputs]
        with torch.no_grad(), cu.record_attention(copied) as maps:
            assert copied(*given).isfinite().all()
        found.append(maps)
    for place, weights in found[1].items():
        sums = weights.double().sum(-1)
        torch.testing.assert_close(sums, (sums > 0.5).double(), atol=0.02, rtol=0)
        if dtype.itemsize >= 4:
            torch.testing.assert_close(weights.double(), found[0][place], atol=2e-3, rtol=0)


class Softmaxes(TorchDispatchMode):
    """Counts the softmaxes that run outside of a fused operator."""

    count = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        self.count += "softmax" in str(function)
        return function(*args, **(kwargs or {}))


def test_weights_are_computed_only_inside_the_block():
    model = cu.MultiHeadAttention(4, 2, num_kv_heads=1)
    x, mask = torch.randn(1, 3, 4), cu.causal_mask(3)

    def softmaxes():
        with Softmaxes() as counted:
            torch.testing.assert_close(model(x, x, x, mask), plain)
        return counted.count

    plain = model(x, x, x, mask)
    assert softmaxes() == 0
    with cu.record_attention(model):
        assert softmaxes() == 1
    assert softmaxes() == 0


def test_recording_ends_when_the_block_fails_and_nests():
    model, x = TwoLookUps(), torch.randn(1, 3, 4)
    with cu.record_attention(model) as outer:
        with pytest.raises(RuntimeError, match="stop"), cu.record_attention(model) as inner:
            raise RuntimeError("stop")
        model(x)
    assert set(outer) == {"first", "second.0"}
    assert not inner
    seen = dict(outer)
    model(torch.randn(1, 3, 4))
    assert all(outer[name] is weights for name, weights in seen.items())


def test_a_model_can_be_copied_and_pickled_while_it_records_and_the_copies_do_not():
    model, x, saved = TwoLookUps().eval(), torch.randn(1, 3, 4), io.BytesIO()
    with cu.record_attention(model) as maps:
        torch.save(model, saved)
        saved.seek(0)
        for other in (copy.deepcopy(model), torch.load(saved, weights_only=False)):
            torch.testing.assert_close(other(2 * x), model(2 * x))
            seen = dict(maps)
            other(3 * x)
            assert all(maps[name] is weights for name, weights in seen.items())


def test_recording_a_model_without_attention_says_so():
    refused = pytest.raises(ValueError, match="Linear contains no course_utils attention module")
    with refused, cu.record_attention(nn.Linear(2, 2)):
        pass


# Bad input: each message ------------------------------------------------------------------------

X = torch.randn(2, 3, 4)


def heads(mask):
    return cu.MultiHeadAttention(4, 2)(X, X, X, mask)


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: cu.MultiHeadAttention(100, 7), ValueError, "embed_dim=100 is not divisible by num_heads=7"),
        (lambda: split_heads(X, 3), ValueError, "embed_dim=4 is not divisible by num_heads=3"),
        (lambda: cu.MultiHeadAttention(8, 0), ValueError, "embed_dim=8, num_heads=0; both are at least 1"),
        (lambda: cu.AdditiveAttention(0, 4, 8), ValueError, "query_dim=0; at least 1 is needed"),
        (lambda: cu.AdditiveAttention(4, 4, 8, dropout=-1), ValueError, "^dropout=-1; a probability"),
        (lambda: cu.MultiHeadAttention(4, 2, key_dim=0), ValueError, "^key_dim=0; at least 1 is needed"),
        (lambda: cu.MultiHeadAttention(32, 4, num_kv_heads=8), ValueError, "num_heads=4 is not divisible by num_kv_heads=8"),
        (lambda: cu.causal_mask(-1), ValueError, "length=-1; a length is at least 0"),
        (lambda: cu.padding_mask(torch.tensor([4]), 3), ValueError, "valid_lens contains 4, longer than the sequence: length=3"),
        (lambda: cu.padding_mask(torch.tensor([-1]), 3), ValueError, "valid_lens contains -1; a length is at least 0"),
        (lambda: cu.padding_mask(torch.tensor([1.0]), 3), TypeError, "valid_lens has dtype torch.float32; an integer dtype"),
        (lambda: cu.padding_mask([1, 2], 3), TypeError, "valid_lens is a list; a torch.Tensor"),
        (lambda: cu.padding_mask(torch.ones(1, 1, 1).long(), 3), ValueError, r"valid_lens has shape \(1, 1, 1\); \(batch,\) or"),
        (lambda: cu.masked_softmax(torch.ones(2, 2).long()), TypeError, "scores has dtype torch.int64; a floating-point"),
        (lambda: cu.masked_softmax(X, torch.ones(3, 4)), TypeError, "attn_mask has dtype torch.float32; a boolean mask"),
        (lambda: cu.masked_softmax(X, torch.ones(3, 5).bool()), ValueError, r"attn_mask has shape \(3, 5\), which does not broadcast"),
        (lambda: cu.masked_softmax(X, torch.ones(2, 2, 3, 4).bool()), ValueError, r"\(2, 2, 3, 4\), which does not broadcast to the scores' shape \(2, 3, 4\)$"),
        (lambda: cu.scaled_dot_product_attention(X, torch.randn(2, 3, 5), X), ValueError, "queries have 4 features, keys 5; a dot product"),
        (lambda: cu.scaled_dot_product_attention(X, X, X[:, :2]), ValueError, "each key needs one value"),
        (lambda: cu.scaled_dot_product_attention(X, X, X, dropout_p=-0.1), ValueError, "dropout_p=-0.1; a probability"),
        (lambda: cu.scaled_dot_product_attention(X.long(), X, X), TypeError, "queries has dtype torch.int64"),
        (lambda: cu.scaled_dot_product_attention(X.numpy(), X, X), TypeError, "queries is a ndarray; a torch.Tensor"),
        (lambda: cu.scaled_dot_product_attention(X, X.double(), X), TypeError, "queries are torch.float32, keys torch.float64"),
        (lambda: cu.scaled_dot_product_attention(X, X, X.double()), TypeError, "keys are torch.float32, values torch.float64"),
        (lambda: cu.scaled_dot_product_attention(X[0, 0], X, X), ValueError, r"queries has shape \(4,\)"),
        (lambda: cu.scaled_dot_product_attention(torch.randn(5, 3, 4), X, X), ValueError, "the axes before the last two must agree"),
        (lambda: cu.AdditiveAttention(5, 4, 8)(X, X, X), ValueError, r"^queries has shape \(2, 3, 4\); \(…, queries, 5\)"),
        (lambda: cu.scaled_dot_product_attention(X, X, X, cu.causal_mask(3), is_causal=True), ValueError, "attn_mask and is_causal=True are both given"),
        (lambda: cu.scaled_dot_product_attention(X, X[:, :2], X[:, :2], torch.ones(2, 2).bool()), ValueError, r"for \(batch, keys\) write attn_mask\[:, None\]"),
        (lambda: heads(torch.ones(2, 3, 3).bool()), ValueError, r"for \(batch, queries, keys\) write attn_mask\[:, None\], for \(heads, queries, keys\) attn_mask\[None\]"),
        (lambda: heads(torch.ones(2, 3).bool()), ValueError, r"for \(batch, keys\) write attn_mask\[:, None, None\]"),
        (lambda: cu.scaled_dot_product_attention(X, X[:, :2], X[:, :2], is_causal=True), ValueError, "3 queries and only 2 keys"),
        (lambda: cu.MultiHeadAttention(4, 2)(X, None, None), TypeError, "keys is a NoneType; a torch.Tensor"),
        (lambda: cu.MultiHeadAttention(4, 2)(X, None, None, cache=KVCache()), ValueError, "the cache is empty"),
        (lambda: cu.MultiHeadAttention(4, 2, key_dim=3)(X, X, X), ValueError, r"keys has shape \(2, 3, 4\); \(…, keys, 3\)"),
    ],
)  # fmt: skip
def test_bad_arguments_are_named(call, error, message):
    with pytest.raises(error, match=message):
        call()


def test_one_is_a_size_and_none_a_length():
    module, x = cu.MultiHeadAttention(1, 1), torch.randn(1, 1, 1)
    assert torch.equal(module(x, x, x, torch.tensor([[False]])), module.out_proj.bias.view(1, 1, 1))
    assert cu.AdditiveAttention(1, 1, 1, dropout=1.0)(x, x, x) == 0
    assert cu.causal_mask(0).shape == (0, 0)


# Shared keys and values, positions inside the heads ---------------------------------------------


def test_grouped_heads_equal_full_heads_whose_keys_and_values_repeat():
    torch.manual_seed(0)
    grouped = MultiHeadAttention(24, 6, num_kv_heads=2)
    full = MultiHeadAttention(24, 6)
    state = grouped.state_dict()
    for name in ("key_proj.weight", "key_proj.bias", "value_proj.weight", "value_proj.bias"):
        state[name] = state[name].unflatten(0, (2, 4)).repeat_interleave(3, dim=0).flatten(0, 1)
    full.load_state_dict(state)
    x = torch.randn(2, 5, 24)
    mask = causal_mask(5)
    torch.testing.assert_close(grouped(x, x, x, mask), full(x, x, x, mask))


def test_under_autocast_queries_may_have_another_dtype_as_in_pytorchs_operator():
    queries, keys = torch.randn(2, 3, 8), torch.randn(2, 5, 8).bfloat16()
    with torch.autocast("cpu", dtype=torch.bfloat16):
        mixed = cu.scaled_dot_product_attention(queries, keys, keys)
        right = F.scaled_dot_product_attention(queries, keys, keys)
        assert dot_product_weights(queries, keys).shape == (2, 3, 5)
    assert dot_product_weights(queries.to("meta"), keys.float().to("meta")).shape == (2, 3, 5)
    torch.testing.assert_close(mixed, right, rtol=0.02, atol=0.02)
    with pytest.raises(TypeError, match="one dtype"):
        cu.scaled_dot_product_attention(queries, keys, keys)


def test_attention_with_dropout_is_right_on_average_and_zero_where_nothing_is_permitted():
    queries = torch.randn(2, 3, 4, 8, requires_grad=True)
    keys, values = (torch.randn(2, 3, 5, 8, requires_grad=True) for _ in range(2))
    mask = torch.rand(2, 1, 4, 5) < 0.7
    mask[1, :, 2] = False
    expected = cu.scaled_dot_product_attention(queries, keys, values, mask)
    tiny = cu.scaled_dot_product_attention(queries, keys, values, mask, dropout_p=1e-9)
    same_gradients(tiny, expected, (queries, keys, values))
    draws = [
        cu.scaled_dot_product_attention(queries, keys, values, mask, dropout_p=0.3)
        for _ in range(400)
    ]
    assert (torch.stack(draws).mean(0) - expected).abs().max() < 0.25
    assert all((draw[1, :, 2] == 0).all() for draw in draws)
