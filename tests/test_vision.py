"""The vision transformer: its patches, its class token, its parameters, and what its attention says."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from peers import copy_layer
from torch import nn
from torch.testing import assert_close

from course_utils.cache import record_attention
from course_utils.interventions import intervene
from course_utils.lessons.vision_transformers.analysis import attention_rollout
from course_utils.metrics import multiply_adds
from course_utils.models.vision import (
    PatchEmbedding,
    ViT,
    cut_patches,
    join_patches,
)


def small(**options) -> ViT:
    options = {
        "image_size": 8,
        "patch_size": 4,
        "embed_dim": 16,
        "ffn_dim": 24,
        "num_heads": 2,
    } | options
    return ViT(**options)


# Patches ----------------------------------------------------------------------------------------


def test_patches_of_a_picture_counted_by_hand():
    image = torch.arange(16).view(1, 1, 4, 4)
    assert cut_patches(image, 2).tolist() == [
        [[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]
    ]
    assert cut_patches(image, (2, 4)).tolist() == [[[*range(8)], [*range(8, 16)]]]


SIDE = st.integers(1, 5)


@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 4), SIDE, SIDE)
def test_an_image_is_rebuilt_from_its_patches(channels, rows, columns, high, wide):
    images = torch.randn(2, channels, rows * high, columns * wide)
    cut = cut_patches(images, (high, wide))
    assert cut.shape == (2, rows * columns, channels * high * wide)
    assert torch.equal(join_patches(cut, *images.shape[1:], size=(high, wide)), images)
    if high == wide:
        assert torch.equal(cut_patches(images, high), cut)
        assert torch.equal(join_patches(cut, *images.shape[1:]), images)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: cut_patches(torch.zeros(1, 1, 28, 30), 7), r"shape \(1, 1, 28, 30\).*divisible by 7"),
        (lambda: cut_patches(torch.zeros(1, 1, 4, 4), 0), "divisible by 0"),
        (lambda: cut_patches(torch.zeros(4, 4), 2), r"shape \(4, 4\)"),
        (lambda: join_patches(torch.zeros(1, 4, 4), 3, 4, 4), "do not make an image of 3 × 4 × 4"),
        (lambda: join_patches(torch.zeros(1, 2, 8), 1, 4, 4, size=(8, 1)), "of 1 × 4 × 4"),
        (lambda: small(patch_size=3), "image_size=8 is not divisible by patch_size=3"),
        (lambda: small(image_size=(8, 6)), r"image_size=\(8, 6\) is not divisible by patch_size=4"),
        (lambda: small(num_layers=0), "num_layers=0; at least 1"),
        (lambda: small()(torch.zeros(1, 1, 12, 12)), r"images has shape .*\(batch, 1, 8, 8\)"),
        (lambda: attention_rollout([]), "maps is empty"),
    ],
)  # fmt: skip
def test_sizes_that_do_not_fit_are_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()


@pytest.mark.parametrize("channels", [1, 3])
def test_the_embedding_is_a_convolution_whose_stride_is_its_kernel(channels):
    embedding = PatchEmbedding((4, 2), channels, 10)
    convolution = nn.Conv2d(channels, 10, kernel_size=(4, 2), stride=(4, 2))
    with torch.no_grad():
        convolution.weight.copy_(embedding.proj.weight.view_as(convolution.weight))
        convolution.bias.copy_(embedding.proj.bias)
    images = torch.randn(2, channels, 8, 12)
    outputs = [embedding(images), convolution(images).flatten(2).transpose(1, 2)]
    assert outputs[0].shape == (2, 12, 10)
    assert_close(*outputs, atol=1e-5, rtol=1e-4)
    for output in outputs:
        output.sin().sum().backward()
    for ours, theirs in zip(embedding.parameters(), convolution.parameters(), strict=True):
        assert_close(ours.grad, theirs.grad.view_as(ours), atol=1e-5, rtol=1e-4)


# The model --------------------------------------------------------------------------------------


def test_the_last_layer_computes_the_class_token_alone_unless_somebody_looks():
    model, images, lengths = small(dropout=0.0), torch.randn(3, 1, 8, 8), []
    usual = model.norm.forward
    model.norm.forward = lambda x: lengths.append(x.shape[1]) or usual(x)
    logits = model(images)
    with record_attention(model) as maps:
        assert_close(model(images), logits)
    assert maps["layers.1.attention"].shape == (3, 2, 5, 5)
    with intervene(model):
        assert_close(model(images), logits)
    model(images)
    assert lengths == [1, 5, 5, 1]


def test_the_eps_of_all_norms_can_be_chosen():
    norms = [m for m in small(eps=1e-12).modules() if isinstance(m, nn.LayerNorm)]
    assert {norm.eps for norm in norms} == {1e-12} and len(norms) == 5


def test_images_and_patches_may_be_rectangular():
    model = small(image_size=(8, 12), patch_size=(4, 2), channels=2)
    assert model.grid == (2, 6)
    images = torch.randn(3, 2, 8, 12)
    assert model(images).shape == (3, 10)
    assert model.tokens(images).shape == (3, 13, 16)
    with pytest.raises(ValueError, match=r"\(batch, 2, 8, 12\) is needed"):
        model(torch.randn(3, 2, 12, 8))


def test_the_body_is_pytorchs_pre_norm_encoder_with_gelu():
    model = small(dropout=0.0).eval()
    theirs = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(
            16, 2, 24, dropout=0.0, activation="gelu", batch_first=True, norm_first=True
        ),
        2,
        norm=nn.LayerNorm(16),
        enable_nested_tensor=False,
    ).eval()
    theirs.norm.load_state_dict(model.norm.state_dict())
    for ours, layer in zip(model.layers, theirs.layers, strict=True):
        copy_layer(ours, layer)
    images = torch.randn(2, 1, 8, 8)
    x = model.patch_embedding(images)
    x = torch.cat([model.class_token.expand(2, -1, -1), x], dim=1) + model.positions.table
    assert_close(model.tokens(images), theirs(x), atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("num_heads", [1, 4])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_operations_are_counted_with_those_of_attention(device, num_heads, dropout):
    m, d, f = 50, 16, 24
    block = small(num_heads=num_heads, dropout=dropout).layers[0].to(device)
    counted = multiply_adds(block, torch.zeros(1, m, d, device=device))
    assert counted == m * (4 * d * d + 2 * d * f) + 2 * m * m * d


def test_positions_tell_patches_apart_and_without_them_order_is_lost():
    model = small().eval()
    images = torch.randn(1, 1, 8, 8)
    cut = cut_patches(images, 4)
    mixed = join_patches(cut[:, [2, 0, 3, 1]], 1, 8, 8)
    assert not torch.allclose(model(images), model(mixed), atol=1e-4)
    with torch.no_grad():
        model.positions.table.zero_()
    assert_close(model(images), model(mixed), atol=1e-5, rtol=1e-4)


# Attention --------------------------------------------------------------------------------------


def test_rollout_of_two_maps_worked_out_by_hand():
    first = torch.tensor([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]])
    second = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    expected = torch.tensor([[0.375, 0.5, 0.125], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    assert_close(attention_rollout([first, second]), expected)


@given(st.integers(1, 4), st.integers(1, 3), st.integers(2, 6))
def test_rows_of_a_rollout_sum_to_one_and_no_layer_is_looked_at_in_vain(layers, heads, tokens):
    maps = [torch.randn(2, heads, tokens, tokens).softmax(-1) for _ in range(layers)]
    flow = attention_rollout(maps)
    assert_close(flow.sum(-1), torch.ones(2, tokens))
    assert flow.min() >= 0
    nothing = attention_rollout([*maps, torch.eye(tokens).expand(2, heads, -1, -1)])
    assert_close(nothing, flow)
