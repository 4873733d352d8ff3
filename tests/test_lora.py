"""LoRA: its start, in place of an attention's projections, merged, and what a classifier trains with it."""

import copy
import math

import pytest
import torch
from torch import nn
from torch.testing import assert_close

import course_utils as cu
from course_utils import fused
from course_utils.cache import KVCache
from course_utils.lessons.bert_and_transfer.tuning import LORA_AT, LoRA, classifier
from course_utils.models.language import BERT, GPT

SMALL = {"embed_dim": 16, "num_heads": 4, "num_layers": 2, "rotary": True, "dropout": 0.0}


def learned(layer, std=0.2):
    """The layer as after a training: B is no longer zero."""
    nn.init.normal_(layer.B, std=std)
    return layer


def adapted(module, **options):
    """A copy with LoRA on its queries and values, and one in which both changes are merged."""
    torch.manual_seed(1)
    beside, merged = copy.deepcopy(module), copy.deepcopy(module)
    places = [
        f"{name}.{projection}".lstrip(".")
        for name, part in module.named_modules()
        if isinstance(part, cu.MultiHeadAttention)
        for projection in ("query_proj", "value_proj")
    ]
    for place in places:
        layer = learned(LoRA(beside.get_submodule(place), **options))
        beside.set_submodule(place, layer)
        merged.set_submodule(place, layer.merged())
    return beside, merged


# The layer --------------------------------------------------------------------------------------


def test_a_begins_as_in_loralib_and_b_as_zeros():
    layer = LoRA(nn.Linear(400, 300), rank=50)
    widest = 1 / math.sqrt(400)
    assert layer.A.shape == (400, 50) and layer.B.shape == (300, 50)
    assert 0.99 * widest < layer.A.max() <= widest and -widest <= layer.A.min() < -0.99 * widest
    assert layer.A.std().item() == pytest.approx(widest / math.sqrt(3), rel=0.02)
    reference = nn.init.kaiming_uniform_(torch.empty(50, 400), a=math.sqrt(5))
    assert layer.A.std().item() == pytest.approx(reference.std().item(), rel=0.02)
    assert not layer.B.any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_a_layer_has_the_dtype_of_the_linear_layer_and_gives_at_first_what_that_gives(dtype):
    linear, x = nn.Linear(6, 5, dtype=dtype), torch.randn(3, 6, dtype=dtype)
    layer = LoRA(linear, rank=2)
    assert {parameter.dtype for parameter in layer.parameters()} == {dtype}
    assert torch.equal(layer(x), linear(x))
    assert (layer.in_features, layer.out_features) == (6, 5)


@pytest.mark.parametrize("bias", [True, False])
def test_merged_it_is_one_linear_layer_with_the_same_output(bias):
    layer = learned(LoRA(nn.Linear(6, 5, bias=bias), rank=2, alpha=3.0))
    before, x = layer.linear.weight.clone(), torch.randn(3, 6)
    merged = layer.merged()
    assert type(merged) is nn.Linear
    assert_close(merged(x), layer(x))
    assert (merged(x) - layer.linear(x)).abs().max() > 0.01
    assert torch.equal(layer.linear.weight, before)


def test_a_rank_of_zero_is_refused():
    with pytest.raises(ValueError, match="rank=0"):
        LoRA(nn.Linear(6, 5), rank=0)


# On queries and values --------------------------------------------------------------------------


@pytest.fixture(params=[False, True], ids=["separate", "joined as on a GPU"])
def joining(request, monkeypatch):
    monkeypatch.setattr(fused, "_joining_pays", lambda _: request.param)


@pytest.mark.usefixtures("joining")
@pytest.mark.parametrize("kv_heads", [4, 2])
def test_on_queries_and_values_an_attention_gives_what_it_gives_with_both_merged(kv_heads):
    module = cu.MultiHeadAttention(16, 4, num_kv_heads=kv_heads)
    beside, merged = adapted(module)
    x = torch.randn(2, 5, 16)
    expected = merged(x, x, x, is_causal=True)
    assert_close(beside(x, x, x, is_causal=True), expected)
    assert (expected - module(x, x, x, is_causal=True)).abs().max() > 0.01
    with torch.no_grad():
        for one in (beside, merged):
            cache = KVCache()
            tokens = [one(t, t, t, is_causal=True, cache=cache) for t in x.split(1, dim=1)]
            assert_close(torch.cat(tokens, dim=1), expected)


def test_only_a_and_b_get_gradients_and_the_layers_below_learn_too():
    module = cu.MultiHeadAttention(16, 4).requires_grad_(False)
    beside, merged = adapted(module)
    x = torch.randn(2, 5, 16).requires_grad_()
    same = x.detach().clone().requires_grad_()
    beside(x, x, x).square().sum().backward()
    merged(same, same, same).square().sum().backward()
    assert_close(x.grad, same.grad)
    given = {name for name, parameter in beside.named_parameters() if parameter.grad is not None}
    assert given == {
        f"{place}.{matrix}" for place in ("query_proj", "value_proj") for matrix in "AB"
    }
    assert all(beside.get_parameter(name).grad.any() for name in given)


def test_its_weights_are_recorded_and_looks_forbidden_as_without_it():
    torch.manual_seed(0)
    beside, merged = adapted(GPT(23, **SMALL).eval())
    ids = torch.randint(5, 23, (2, 7))
    said, maps = [], []
    for model in (beside, merged):
        with cu.record_attention(model) as weights:
            model(ids)
        maps.append(weights)
        with cu.intervene(model) as change:
            change.forbid(keys=[2])
            forbidden = model(ids)
            state = model.start()
            steps = [model.step(token, state) for token in ids.T]
        assert (forbidden - model(ids))[:, 3:].abs().max() > 1e-3
        assert_close(torch.stack(steps, dim=1), forbidden, rtol=1e-4, atol=1e-5)
        said.append(forbidden)
    assert_close(said[0], said[1], rtol=1e-4, atol=1e-5)
    assert maps[0].keys() == maps[1].keys() and len(maps[0]) == 2
    for place, weights in maps[0].items():
        assert_close(weights, maps[1][place])


# A classifier -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "trained"),
    [("LoRA", 4 * 2 * 2 * (16 + 64)), ("LoRA, attention", 4 * 2 * 2 * (16 + 16)), ("output", 0)],
)
def test_a_classifier_trains_what_its_method_says_and_the_output_layer(method, trained):
    torch.manual_seed(0)
    body = BERT(23, **SMALL)
    model, plain = classifier(body, method), classifier(body, "all")
    plain.output.load_state_dict(model.output.state_dict())
    learns = {name for name, parameter in model.named_parameters() if parameter.requires_grad}
    count = sum(model.get_parameter(name).numel() for name in learns)
    assert count == trained + 2 * 16 + 2
    assert {name.rpartition(".")[2] for name in learns} - {"weight", "bias"} <= {"A", "B"}
    ids, lengths = torch.randint(5, 23, (3, 6)), torch.tensor([6, 5, 2])
    assert torch.equal(model(ids, lengths), plain(ids, lengths))
    assert not any(isinstance(part, LoRA) for part in body.modules()) and method in {
        *LORA_AT,
        "output",
    }
