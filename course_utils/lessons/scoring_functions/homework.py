"""Homework on *Scoring functions*: a bilinear score with a given matrix, a distance with a scale for each feature."""

import random

import torch

from course_utils.kit.homework import Assignment

__all__ = ["bilinear", "scaled_distance"]

BILINEAR = """\
def bilinear(queries, keys):
    matrix = torch.tensor({matrix})
    return (queries @ matrix @ keys.transpose(-2, -1)) / math.sqrt({d})
"""


def bilinear(draw: random.Random) -> Assignment:
    """Queries with two features, keys with three, and a matrix between them."""
    rows = [[float(draw.randint(-3, 3)) for _ in range(3)] for _ in range(2)]
    d = draw.choice([2, 3, 5])
    shown = r" \\ ".join(" & ".join(f"{entry:g}" for entry in row) for row in rows)
    text = (
        "Queries have two features and keys three. The score of a query $q$ and a key $k$ is\n\n"
        rf"$$\frac{{q^\top M k}}{{\sqrt{{{d}}}}}, \qquad M = \begin{{pmatrix}} {shown} \end{{pmatrix}} .$$"
        "\n\nWrite the scores of all pairs. A batch may stand in front."
    )
    stub = 'def bilinear(queries, keys):\n    """(…, n, 2), (…, m, 3) → (…, n, m)."""\n    ...'
    return Assignment(
        "bilinear", "A matrix between them", 8, text, stub, BILINEAR.format(matrix=rows, d=d),
        shown=[
            "torch.tensor([[1.0, 2.0], [-1.0, 0.5]]), torch.tensor([[1.0, 2.0, 3.0], [0.5, -1.0, 4.0]])",
            "torch.tensor([[3.0, -2.0]]), torch.tensor([[2.0, 1.0, -1.0]])",
        ],
        tried=lambda: (torch.randn(2, 4, 2), torch.randn(2, 5, 3)),
        hint="Which axis of the keys has to be last, so that three meets three? Is M transposed?",
    )  # fmt: skip


DISTANCE = """\
def scaled_distance(queries, keys):
    scales = torch.tensor({scales})
    d = (queries.unsqueeze(-2) - keys.unsqueeze(-3)) * scales
    return -d.{measure}.sum(dim=-1) / {width}
"""
MEASURES = {"square()": r"\left(s_j (q_j - k_j)\right)^2", "abs()": "|s_j (q_j - k_j)|"}


def scaled_distance(draw: random.Random) -> Assignment:
    """A distance to which the features count differently."""
    measure, formula = draw.choice(list(MEASURES.items()))
    scales = draw.sample([0.5, 1.0, 2.0, 3.0], 3)
    width = draw.choice([0.5, 2.0, 4.0])
    text = (
        "The score of a query and a key with three features each is\n\n"
        rf"$$-\frac{{1}}{{{width:g}}} \sum_{{j}} {formula}, \qquad s = ({', '.join(f'{s:g}' for s in scales)}) .$$"
        "\n\nWrite the scores of all pairs, without a loop. A batch may stand in front."
    )
    stub = (
        'def scaled_distance(queries, keys):\n    """(…, n, 3), (…, m, 3) → (…, n, m)."""\n    ...'
    )
    return Assignment(
        "scaled_distance", "Features count differently", 8, text, stub,
        DISTANCE.format(scales=scales, measure=measure, width=width),
        shown=[
            "torch.tensor([[1.0, 2.0, 0.5]]), torch.tensor([[0.5, 0.0, 3.0], [1.0, 2.0, -0.5]])",
            "torch.zeros(1, 3), torch.tensor([[2.0, -1.0, 3.0]])",
        ],
        tried=lambda: (torch.randn(2, 4, 3), torch.randn(2, 5, 3)),
        hint="Which axes have the differences of all pairs? Is the scale inside the square?",
    )  # fmt: skip
