"""Products that wait for each other, counted by hand."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.lessons.self_attention.layers import waiting_products


def test_products_that_need_nothing_from_each_other_wait_once():
    x, a, b = torch.randn(5, 4), *torch.randn(2, 4, 4, requires_grad=True)
    assert waiting_products(x @ a + x @ b) == 1
    assert waiting_products((x @ a) @ b) == 2
    assert waiting_products((x @ a).tanh() * (x @ b @ a)) == 2


@pytest.mark.parametrize("n", [1, 7])
def test_a_recurrence_waits_at_each_step_and_attention_does_not(n):
    x, square = torch.randn(1, n, 4), torch.randn(4, 4, requires_grad=True)
    state = x[:, 0] @ square
    for place in range(1, n):
        state = (x[:, place] @ square + state @ square).tanh()
    assert waiting_products(state) == n
    qkv = [x @ square for _ in range(3)]
    written_out = (qkv[0] @ qkv[1].mT).softmax(dim=-1) @ qkv[2]
    fused = F.scaled_dot_product_attention(*qkv)
    assert waiting_products(written_out) == waiting_products(fused) == 3


def test_a_convolution_and_a_linear_layer_are_one_product_each():
    x = torch.randn(2, 3, 8)
    assert waiting_products(nn.Linear(8, 2)(nn.Conv1d(3, 5, 3, padding=1)(x))) == 2


def test_what_was_computed_without_gradients_has_no_graph():
    with pytest.raises(ValueError, match="output has no graph"):
        waiting_products(torch.ones(2))
