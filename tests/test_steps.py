"""The training loop that stored runs share."""

import torch
from torch import nn

from course_utils.train.steps import take_steps


def linear_fit(**options) -> tuple[nn.Linear, list[tuple[int, float]]]:
    """Three steps of plain descent on (w · 1 - 10)², from w = 0, at rates 0.1, 0.2 and 0.3; what each step noted."""
    model, noted = nn.Linear(1, 1, bias=False), []
    nn.init.zeros_(model.weight)
    take_steps(
        torch.optim.SGD(model.parameters()),
        lambda: (model(torch.ones(1)) - 10).square().mean(),
        steps=3,
        rate=lambda step: step / 10,
        after_step=lambda step, loss: noted.append((step, loss)),
        **options,
    )
    return model, noted


def test_each_step_has_its_rate_and_says_the_loss_before_it():
    model, noted = linear_fit(clip_norm=None)
    # The error shrinks by 1 - 2 · rate: 10, 8, 4.8, 1.92.
    assert [step for step, _ in noted] == [1, 2, 3]
    torch.testing.assert_close([loss for _, loss in noted], [100.0, 64.0, 23.04])
    torch.testing.assert_close(model.weight.item(), 8.08)


def test_a_gradient_longer_than_the_limit_is_shortened_to_it():
    model, _ = linear_fit()
    torch.testing.assert_close(model.weight.item(), 0.6)
