"""The island of *PyTorch in an hour*: its points, the errors in its map, and the table of shapes beside it."""

import torch

from course_utils.lessons.pytorch.island import HALF, survey
from course_utils.lessons.pytorch.shapes import shapes


def test_land_is_nearer_to_the_middle_than_one():
    points, land = survey(1000)
    assert points.abs().max() <= HALF
    assert torch.equal(land == 1, points.norm(dim=-1) < 1)


def test_errors_turn_about_the_given_share_of_the_points():
    (points, land), (same, entered) = survey(5000), survey(5000, wrong=0.1)
    assert torch.equal(points, same)
    assert 0.08 < (land != entered).float().mean() < 0.12


def test_a_table_of_shapes_knows_torch_and_the_tensors():
    table = shapes("x[0]", "torch.cat([x, x])", x=torch.ones(2, 3))
    assert table["shape"].tolist() == [(3,), (4, 3)]
