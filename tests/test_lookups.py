"""The task of *Multi-head attention*: what it asks is what it says, and training is the same each time."""

import pytest
import torch

from course_utils.lessons.multi_head_attention.tasks import (
    LookupNetwork,
    train_lookups,
    two_lookups,
)


def test_answers_are_the_balls_in_the_drawers_that_a_request_names():
    task = two_lookups()
    balls = task.balls[[37]]
    answers = task.answers(balls)[0]
    for request, answer in zip(task.requests, answers.tolist(), strict=True):
        assert answer == [balls[0, task.drawers.index(letter)].item() for letter in request]


@pytest.mark.slow
def test_training_is_reproducible_and_leaves_the_callers_random_numbers_alone():
    def trained():
        torch.manual_seed(3)
        network = train_lookups(LookupNetwork(6, 2), steps=5, seed=1)
        return network.readout.weight, torch.rand(1)

    (first, after), (second, _) = trained(), trained()
    assert torch.equal(first, second)
    torch.manual_seed(3)
    LookupNetwork(6, 2)
    assert torch.equal(after, torch.rand(1))
