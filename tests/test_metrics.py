"""Scores against numbers worked out by hand."""

import math

import pytest
import torch

from course_utils.metrics import accuracy, bleu


def test_a_word_counts_no_oftener_than_in_the_reference():
    said, right = "the the the the the the the", "the cat is on the mat"
    assert bleu([said], [right], max_order=1) == pytest.approx(2 / 7)


def test_bleu_is_the_geometric_mean_of_precisions_with_brevity():
    hypothesis, reference = "il est mouillé .", "il est très calme ."
    expected = math.exp(1 - 5 / 4) * math.sqrt((3 / 4) * (1 / 3))
    assert bleu([hypothesis], [reference], max_order=2) == pytest.approx(expected)
    assert bleu(["a b"], ["a c"], max_order=2) == 0
    assert (
        bleu(["a b"], ["a b"]) == 0 and bleu(["a b"], ["a b"], max_order=2) == 1
    )  # no 4-gram, no 4-gram asked
    assert bleu(["il est calme ."], ["il est calme ."]) == pytest.approx(1)


def test_bleu_takes_the_tokens_as_they_are():
    assert bleu(["x:y z"], ["x:q z"], max_order=1) == pytest.approx(1 / 2)


def test_the_best_of_several_references_counts():
    assert bleu(["va !"], [["pars !", "va !"]], max_order=2) == pytest.approx(1)
    assert bleu(
        ["va !", "je pars ."], [["pars !", "va !"], "je pars ."], max_order=2
    ) == pytest.approx(1)


@pytest.mark.parametrize(
    ("call", "kind", "message"),
    [
        (lambda: bleu("go", ["go"]), TypeError, "^hypotheses is the str 'go'; a list of tr"),
        (lambda: bleu(["g", "o"], "go"), TypeError, "^references is the str 'go'; a list of ref"),
        (lambda: bleu([], []), ValueError, "^hypotheses is empty"),
        (lambda: bleu(["a"], []), ValueError, "1 hypotheses, 0 references"),
        (lambda: bleu(["a"], [[]]), ValueError, "^a hypothesis has no reference"),
        (lambda: accuracy(torch.ones(2), torch.ones(3)), ValueError, r"\(2,\), true \(3,\)"),
        (lambda: accuracy(torch.ones(0), torch.ones(0)), ValueError, "^there is nothing to score"),
    ],
)
def test_bad_input_is_named(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
