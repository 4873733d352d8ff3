"""The three drawings of *Masks* in stages: scores, −∞ where the mask forbids, a softmax that gives exact zeros.

*birds sing well* and one `<pad>`, with scores whose exponentials are 1 to 4, so that a pencil can check every
weight.
"""

from collections.abc import Callable

import torch

from course_utils.kit.drawings.canvas import Canvas
from course_utils.masks import causal_mask, masked_softmax, padding_mask

WORDS = ["birds", "sing", "well", "<pad>"]
SING = 1
"""Index of the query that we look at."""

EXPONENTIALS = torch.tensor([[1, 2, 3, 4], [2, 1, 4, 1], [1, 2, 1, 3], [1, 1, 1, 1]]).double()
"""The exponentials of the scores."""
SCORES = EXPONENTIALS.log()
MASK = (padding_mask(torch.tensor([3]), 4) & causal_mask(4))[0, 0]
WEIGHTS = masked_softmax(SCORES, MASK)
TOO_LATE = SCORES.softmax(dim=-1) * MASK
"""The weights if the mask is multiplied in after the softmax."""

WIDTH, HEIGHT = 46, 50
"""Size of a cell in both tables of a sheet, in the drawing's units."""
TOP = 104
"""Upper edge of both tables."""
LEFT, RIGHT = 68, 290
"""Left edges of the two tables."""


def sheets() -> list[Canvas]:
    """The drawing of each stage in `stages.toml`."""
    return [_scores_and_mask(), _minus_infinity(), _weights()]


def _scores_and_mask() -> Canvas:
    """The scores beside the mask."""
    sheet = Canvas(
        "Two tables with a row for each query and a column for each key, birds, sing, well and <pad>. Scores: "
        f"{_rows(_log)} The mask permits 1, 2, 3 and 3 keys in the four rows, never a later one and never <pad>."
    )
    _frame(sheet, "scores", "mask")
    for i, j in _pairs():
        _cell(
            sheet, LEFT, i, j, _log(i, j), "heat", 0.04 + 0.12 * float(EXPONENTIALS[i, j]), "score"
        )
        letter, color = ("T", "key") if MASK[i, j] else ("F", "line")
        _cell(sheet, RIGHT, i, j, letter, color, 0.3, "mask")
    sheet.text("T: this query may attend to this key", 240, 342, color="muted")
    return sheet


def _minus_infinity() -> Canvas:
    """The masked scores beside their exponentials."""
    sheet = Canvas(
        "The same scores, with minus infinity in the seven pairs that the mask forbids, and to the right of them e "
        f"to that power, 0 in these pairs: {_rows(_exponential)}"
    )
    _frame(sheet, "masked scores", "exp(score)")
    for i, j in _pairs():
        if MASK[i, j]:
            heat = "heat", 0.04 + 0.12 * float(EXPONENTIALS[i, j])
            _cell(sheet, LEFT, i, j, _log(i, j), *heat, "score")
            _cell(sheet, RIGHT, i, j, _exponential(i, j), *heat, "weight")
        else:
            _cell(sheet, LEFT, i, j, "−∞", "wrong", 0.25, "mask")
            _cell(sheet, RIGHT, i, j, "0", "line", 0.16, "weight", faint=True)
    sheet.arrow([(LEFT + 4 * WIDTH + 8, TOP + 2 * HEIGHT), (RIGHT - 8, TOP + 2 * HEIGHT)])
    sheet.text("e to the power of −∞ is exactly 0", 240, 342, color="muted")
    return sheet


def _weights() -> Canvas:
    """The weights, and below them one row if the mask comes too late."""
    late = [f"{weight:g}" for weight in TOO_LATE[SING]]
    sheet = Canvas(
        f"The weights, each row summing to 1: {_rows(lambda i, j: f'{WEIGHTS[i, j]:.2f}')} For comparison, the row "
        f"of sing if the mask comes after the softmax: {', '.join(late)}, with the sum {TOO_LATE[SING].sum():g}."
    )
    left, width, height, top = 92, 68, 46, 52
    for j, word in enumerate(WORDS):
        sheet.text(word, left + (j + 0.5) * width, 30, bold=j == SING)
    sheet.text("sum", 424, 30, bold=True)
    middles = [top + (i + 0.5) * height for i in range(4)]
    for i, j in _pairs():
        weight, at = float(WEIGHTS[i, j]), (left + j * width, top + i * height)
        look = ("heat", 0.03 + 0.75 * weight) if MASK[i, j] else ("line", 0.16)
        words = f"{weight:.2f}" if MASK[i, j] else "0"
        sheet.cell(
            words, *at, width, height, *look, size=18, faint=not MASK[i, j], bold=i == SING,
            name=f"weight:{i}:{j}",
        )  # fmt: skip
    sheet.column(WORDS, 12, middles, asking=SING, size=17, name="word")
    sheet.column(["1"] * 4, 424, middles, anchor="middle", size=18)
    sheet.ring(left, top + SING * height, 4 * width, height)
    y = 318
    sheet.text("mask after the softmax: too late", left, y - 20, anchor="start", color="muted")
    for j, number in enumerate(late):
        sheet.cell(number, left + j * width, y, width, 40, "line", 0.16, size=17)
    sheet.text("sing", 12, y + 20, anchor="start", color="query", bold=True, size=17)
    sheet.text(f"{TOO_LATE[SING].sum():g}", 424, y + 20, bold=True, size=18)
    return sheet


def _frame(sheet: Canvas, left: str, right: str) -> None:
    """The titles and words of two tables, and a ring around the row of the query that we look at."""
    for title, x in ((left, LEFT), (right, RIGHT)):
        sheet.text(title, x + 2 * WIDTH, 34, bold=True, size=18)
        for j, word in enumerate(WORDS):
            sheet.text(word, x + (j + 0.5) * WIDTH, 80, size=14, bold=j == SING)
        sheet.ring(x, TOP + SING * HEIGHT, 4 * WIDTH, HEIGHT)
    middles = [TOP + (i + 0.5) * HEIGHT for i in range(4)]
    sheet.column(WORDS, 8, middles, asking=SING, size=17, name="word")


def _cell(
    sheet: Canvas, left: float, i: int, j: int, words: str, color: str, strength: float, name: str,
    *, faint: bool = False,
) -> None:  # fmt: skip
    """One cell of a table; those of the query that we look at are bold."""
    sheet.cell(
        words, left + j * WIDTH, TOP + i * HEIGHT, WIDTH, HEIGHT, color, strength, faint=faint, bold=i == SING,
        name=f"{name}:{i}:{j}",
    )  # fmt: skip


def _pairs() -> list[tuple[int, int]]:
    """Row and column of each cell."""
    return [(i, j) for i in range(4) for j in range(4)]


def _exponential(i: int, j: int) -> str:
    """e to the power of the masked score."""
    return f"{EXPONENTIALS[i, j]:g}" if MASK[i, j] else "0"


def _log(i: int, j: int) -> str:
    """The score, as the logarithm of its exponential."""
    return f"ln {EXPONENTIALS[i, j]:g}" if EXPONENTIALS[i, j] > 1 else "0"


def _rows(words: Callable[[int, int], str]) -> str:
    """A table in words, row by row, for the text alternative of a drawing."""
    return " ".join(
        f"{word}: {', '.join(words(i, j) for j in range(4))}." for i, word in enumerate(WORDS)
    )
