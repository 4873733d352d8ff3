"""What is faster on a CPU is the same as PyTorch's: outputs, gradients, names of the weights."""

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given
from hypothesis import strategies as st
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from course_utils import cpu


@pytest.fixture
def onednn(monkeypatch):
    """The faster product at every size, where this PyTorch has it."""
    if not (
        torch.backends.mkldnn.is_available() and hasattr(torch.ops.mkldnn, "_linear_pointwise")
    ):
        pytest.skip("this PyTorch has no oneDNN")
    monkeypatch.setattr(cpu, "SMALLEST", 0)
    monkeypatch.setattr(cpu, "_has_slow_mkl", lambda: True)


def same_gradients(mine, other, inputs, **tolerances):
    torch.testing.assert_close(mine, other, **tolerances)
    direction = torch.randn_like(mine)
    pairs = zip(
        torch.autograd.grad(mine, inputs, direction),
        torch.autograd.grad(other, inputs, direction),
        strict=True,
    )
    for ours, theirs in pairs:
        torch.testing.assert_close(ours, theirs, **tolerances)


@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("shape", [(7,), (2, 7), (3, 4, 7), (2, 3, 4, 7)])
def test_linear_equals_pytorchs(onednn, shape, bias):
    layer = cpu.Linear(7, 5, bias=bias)
    x = torch.randn(shape, requires_grad=True)
    inputs = [x, *layer.parameters()]
    same_gradients(layer(x), F.linear(x, layer.weight, layer.bias), inputs, atol=1e-5, rtol=1e-5)
    assert list(layer.state_dict()) == list(nn.Linear(7, 5, bias=bias).state_dict())


def test_linear_takes_tensors_laid_out_in_any_way(onednn):
    x, weight = torch.randn(6, 12)[:, 2:9], torch.randn(9, 11)[1:6, 3:10]
    torch.testing.assert_close(cpu.linear(x, weight), F.linear(x, weight), atol=1e-5, rtol=1e-5)
    x = torch.randn(7, 6).t()
    torch.testing.assert_close(cpu.linear(x, weight), F.linear(x, weight), atol=1e-5, rtol=1e-5)


def test_linear_can_be_differentiated_twice(onednn):
    x = torch.randn(4, 3, requires_grad=True)
    weight = torch.randn(2, 3, requires_grad=True)

    def penalty(function):
        (gradient,) = torch.autograd.grad(function(x, weight).square().sum(), x, create_graph=True)
        return torch.autograd.grad(gradient.square().sum(), weight)[0]

    torch.testing.assert_close(penalty(cpu.linear), penalty(F.linear), atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16])
def test_other_dtypes_are_left_to_pytorch(onednn, dtype):
    x, weight = torch.randn(3, 4, dtype=dtype), torch.randn(2, 4, dtype=dtype)
    assert torch.equal(cpu.linear(x, weight), F.linear(x, weight))


def test_shapes_that_do_not_fit_are_refused(onednn):
    with pytest.raises(RuntimeError):
        cpu.linear(torch.randn(3, 4), torch.randn(2, 5))


@pytest.mark.parametrize("p", [0.1, 0.5, 0.9])
def test_dropout_drops_as_many_and_keeps_the_mean(p):
    x = torch.ones(500, 400, requires_grad=True)
    out = cpu.Dropout(p)(x)
    assert abs((out == 0).float().mean() - p) < 0.01
    torch.testing.assert_close(out[out > 0], torch.full_like(out[out > 0], 1 / (1 - p)))
    torch.testing.assert_close(torch.autograd.grad(out.sum(), x)[0], out.detach())


@given(st.lists(st.integers(0, 5), max_size=3), st.sampled_from([0.0, 0.3, 1.0]))
def test_dropout_takes_every_shape(shape, p):
    x = torch.ones(shape)
    assert cpu.Dropout(p)(x).shape == x.shape
    assert torch.equal(cpu.Dropout(p).eval()(x), x)


def test_dropout_follows_the_seed_and_no_pattern():
    x = torch.ones(64, 64)

    def draw(seed):
        torch.manual_seed(seed)
        return cpu.dropout(x, 0.5)

    assert torch.equal(draw(1), draw(1)) and not torch.equal(draw(1), draw(2))
    kept = torch.stack([draw(seed) > 0 for seed in range(400)]).float()
    assert kept.mean(0).sub(0.5).abs().max() < 0.13  # each element: 5 standard deviations
    neighbours = (kept[..., 1:] == kept[..., :-1]).float().mean()
    assert abs(neighbours - 0.5) < 0.005


@given(st.lists(st.integers(1, 6), min_size=1, max_size=4))
def test_gru_equals_pytorchs_on_packed_sequences(lengths):
    module = nn.GRU(3, 4, batch_first=True, bidirectional=True)
    x, lengths = torch.randn(len(lengths), 6, 3, requires_grad=True), torch.tensor(lengths)
    mine, last = cpu.gru(module, x, lengths)
    packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
    outputs, expected = module(packed)
    outputs, _ = pad_packed_sequence(outputs, batch_first=True, total_length=6)
    joined = torch.cat([mine.flatten(), last.flatten()])
    other = torch.cat([outputs.flatten(), expected.flatten()])
    same_gradients(joined, other, [x, *module.parameters()], atol=1e-5, rtol=1e-4)


def test_gru_gates_equal_a_cell_and_have_its_gradients():
    cell, x = nn.GRUCell(3, 4), torch.randn(5, 3, requires_grad=True)
    hidden = torch.randn(5, 4, requires_grad=True)
    mine = cpu.gru_gates(
        F.linear(x, cell.weight_ih, cell.bias_ih),
        F.linear(hidden, cell.weight_hh, cell.bias_hh),
        hidden,
    )
    same_gradients(mine, cell(x, hidden), [x, hidden, *cell.parameters()], atol=1e-5, rtol=1e-4)
