"""Scores against numbers worked out by hand."""

import math

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from course_utils.metrics import (
    alignment_error_rate,
    bleu,
    links_of,
    perplexity,
    waiting_products,
)


def test_a_word_counts_no_oftener_than_in_the_reference():
    said, right = "the the the the the the the", "the cat is on the mat"
    assert bleu([said], [right], max_order=1) == pytest.approx(2 / 7)


def test_bleu_of_perfect_and_hopeless_translations():
    assert bleu(["il est calme ."], ["il est calme ."]) == pytest.approx(1)
    assert bleu(["a b c d e"], ["v w x y z"]) == 0


def test_bleu_is_the_geometric_mean_of_precisions_with_brevity():
    hypothesis, reference = "il est mouillé .", "il est très calme ."
    expected = math.exp(1 - 5 / 4) * math.sqrt((3 / 4) * (1 / 3))
    assert bleu([hypothesis], [reference], max_order=2) == pytest.approx(expected)


def test_the_best_of_several_references_counts():
    assert bleu(["va !"], [["pars !", "va !"]], max_order=2) == pytest.approx(1)
    assert bleu(
        ["va !", "je pars ."], [["pars !", "va !"], "je pars ."], max_order=2
    ) == pytest.approx(1)


def test_links_are_where_each_target_token_looks_most():
    weights = torch.tensor([[0.9, 0.1, 0.0], [0.2, 0.1, 0.7]])
    assert links_of(weights) == {(0, 0), (2, 1)}


def test_alignment_error_rate_by_hand():
    found, gold = frozenset({(0, 0), (2, 1)}), frozenset({(0, 0), (1, 1), (2, 2)})
    assert alignment_error_rate([found], [gold]) == pytest.approx(1 - 2 * 1 / 5)
    assert alignment_error_rate([gold], [gold]) == 0


def test_perplexity_of_a_fair_choice():
    assert perplexity(math.log(6)) == pytest.approx(6)


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


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: waiting_products(torch.ones(2)), "output has no graph"),
        (lambda: bleu([], []), "hypotheses is empty"),
        (lambda: bleu(["a"], []), "1 hypotheses, 0 references"),
        (lambda: bleu(["a"], [[]]), "a hypothesis has no reference"),
        (lambda: alignment_error_rate([frozenset()], []), "1 sentences found, 0 gold"),
        (lambda: alignment_error_rate([frozenset()], [frozenset()]), "there are no links"),
    ],
)
def test_bad_input_is_named(call, message):
    with pytest.raises(ValueError, match=message):
        call()
