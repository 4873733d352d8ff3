"""What the last word alone tells of the next one, by hand."""

import math

import pytest
import torch

from course_utils.lessons.self_attention.words import from_the_last_word


def test_of_three_words_one_is_a_coin_and_past_the_end_nothing_counts():
    text = torch.tensor([[0, 1, 2], [0, 2, -100]])
    assert from_the_last_word(text) == pytest.approx(2 * math.log(2) / 3)
