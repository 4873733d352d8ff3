"""The questions of *Self-attention*: the target is what the sentences say, read as text."""

import torch

from course_utils.lessons.self_attention.tasks import COLORS, TEXTS, counting, friends, owners


def _read(draw, **options):
    tokens, targets = draw(50, torch.Generator().manual_seed(0), **options)
    assert (targets[:, :-1] == -100).all()
    for row, target in zip(tokens.tolist(), targets[:, -1].tolist(), strict=True):
        *told, question = (TEXTS[token] for token in row)
        yield dict(sentence.split(" is ") for sentence in told), question[:-3], COLORS[target]


def test_the_asked_car_has_the_color_of_the_target():
    for told, asked, color in _read(owners, pairs=12):
        assert len(told) == 12 and told[f"{asked}'s car"] == color


def test_the_asked_friends_car_has_the_color_of_the_target():
    for told, asked, color in _read(friends):
        friend = told[f"{asked}'s friend"]
        assert told[f"{friend}'s car"] == color


def test_one_who_counts_is_right_with_one_car_and_above_a_guess_with_twelve():
    assert counting(1) == 1 and 1 / 8 < counting(12) < 0.35
