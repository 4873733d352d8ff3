"""The vision transformer: its patches, its class token, its parameters, and what its attention says."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.testing import assert_close

from course_utils.interventions import intervene
from course_utils.lessons.vision_transformers.analysis import attention_rollout
from course_utils.metrics import multiply_adds
from course_utils.models.vision import (
    PatchEmbedding,
    ViT,
    cut_patches,
    join_patches,
)
from course_utils.recording import record_attention


def small(**options) -> ViT:
    sizes = {"image_size": 8, "patch_size": 4, "embed_dim": 16, "ffn_dim": 24, "num_heads": 2}
    return ViT(**sizes | options)


# Patches ----------------------------------------------------------------------------------------


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
    with intervene(model) as acts:
        acts.forbid(queries=2, layers=1)
        assert_close(model(images), logits)
    with record_attention(small()):  # of another model
        model(images)
    assert lengths == [1, 5, 5, 1]


@pytest.mark.parametrize("device", ["cpu", "meta"])
@pytest.mark.parametrize("num_heads", [1, 4])
@pytest.mark.parametrize("dropout", [0.0, 0.1])
def test_operations_are_counted_with_those_of_attention(device, num_heads, dropout):
    m, d, f = 50, 16, 24
    block = small(num_heads=num_heads, dropout=dropout).layers[0].to(device)
    counted = multiply_adds(block, torch.zeros(1, m, d, device=device))
    assert counted == m * (4 * d * d + 2 * d * f) + 2 * m * m * d


# Attention --------------------------------------------------------------------------------------


def test_rollout_of_two_maps_worked_out_by_hand():
    first = torch.tensor([[[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [1.0, 0.0, 0.0]]])
    second = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]])
    expected = torch.tensor([[0.375, 0.5, 0.125], [0.0, 0.5, 0.5], [0.5, 0.0, 0.5]])
    assert_close(attention_rollout([first, second]), expected)
