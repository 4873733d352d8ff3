"""The three drawings of *Queries, keys and values* in stages: scores, exponentials, weights that sum to 1.

The numbers can be checked with a pencil.
"""

import torch

from course_utils.kit.drawings.canvas import Canvas

KEYS = ["key 1", "key 2", "key 3"]
SCORES = torch.tensor([1, 0, -1]).double()
EXPONENTIALS = SCORES.exp()
WEIGHTS = EXPONENTIALS / EXPONENTIALS.sum()

TOPS = [64, 124, 184]
"""Upper edges of the three rows."""
HEIGHT = 44


def sheets() -> list[Canvas]:
    """The drawing of each stage in `stages.toml`."""
    return [_scores(), _exponentials(), _weights()]


def _sheet(alt: str, rows: list[str]) -> Canvas:
    """A sheet with the names of the keys at the left; `rows` says each row in words, for the `{}` of `alt`."""
    listed = ", ".join(f"{key} {row}" for key, row in zip(KEYS, rows, strict=True))
    sheet = Canvas(alt.format(listed), size=(480, 300))
    middles = [top + HEIGHT / 2 for top in TOPS]
    sheet.column(KEYS, 10, middles, size=18, name="key")
    return sheet


def _text_of(number: float, decimals: int = 2) -> str:
    """A number with a minus as wide as a plus."""
    return f"{number:.{decimals}f}".replace("-", "−")


def _score_cell(sheet: Canvas, row: int, left: float) -> None:
    """Draw the cell of a row's score."""
    score, box = float(SCORES[row]), (left, TOPS[row], 52, HEIGHT)
    look = {"size": 19, "bold": True, "name": f"score:{row}"}
    sheet.cell(_text_of(score, 0), *box, "heat", 0.16 + 0.12 * score, **look)


def _sum(sheet: Canvas, number: str, left: float) -> None:
    """Draw the sum of a column below a line."""
    sheet.line(f"M{left - 66} 240H{left + 6}")
    sheet.text("sum", left - 70, 264, color="muted", anchor="end")
    sheet.text(number, left, 264, size=19, anchor="end", bold=True, name="sum")


def _scores() -> Canvas:
    """The scores as bars to the left and to the right of zero."""
    rows = [_text_of(score, 0) for score in SCORES.tolist()]
    sheet = _sheet(
        "Three keys with their scores as bars to the right or to the left of zero: {}. The sum is 0.",
        rows,
    )
    sheet.text("score", 136, 36, bold=True)
    zero, unit = 316, 96
    for row, score in enumerate(SCORES.tolist()):
        _score_cell(sheet, row, 110)
        left = zero + min(0, score) * unit
        sheet.bar(left, TOPS[row] + 6, abs(score) * unit, HEIGHT - 12, "heat", name=f"bar:{row}")
    for number in (-1, 0, 1):
        sheet.text(_text_of(number, 0), zero + number * unit, 36, color="muted")
    sheet.line(f"M{zero} 52V240", "ink")
    _sum(sheet, "0", 146)
    return sheet


def _exponentials() -> Canvas:
    """Each score with its exponential as a bar."""
    rows = [
        f"{_text_of(score, 0)} becomes {power:.2f}"
        for score, power in zip(SCORES.tolist(), EXPONENTIALS.tolist(), strict=True)
    ]
    sheet = _sheet(
        "Each score with e to its power, as a bar: {}. From row to row the bar is divided by 2.72. The sum is 4.09.",
        rows,
    )
    sheet.text("score", 106, 36, bold=True)
    sheet.text("e^{score}", 206, 36, bold=True)
    left, unit = 244, 56
    for row, power in enumerate(EXPONENTIALS.tolist()):
        middle = TOPS[row] + HEIGHT / 2
        _score_cell(sheet, row, 80)
        sheet.arrow([(138, middle), (166, middle)])
        sheet.text(f"{power:.2f}", 230, middle, size=19, anchor="end", name=f"power:{row}")
        sheet.bar(left, TOPS[row] + 6, power * unit, HEIGHT - 12, "heat", name=f"bar:{row}")
    sheet.line(f"M{left} 56V236", "ink")
    for upper, lower in ((86, 146), (146, 206)):
        sheet.arrow([(410, upper), (410, lower - 4)])
        sheet.text("÷ 2.72", 420, (upper + lower) / 2, anchor="start", size=14, color="muted")
    _sum(sheet, f"{EXPONENTIALS.sum():.2f}", 230)
    return sheet


def _weights() -> Canvas:
    """Each exponential divided by the sum, and the three bars end to end."""
    total = f"{EXPONENTIALS.sum():.2f}"
    rows = [
        f"{power:.2f} / {total} = {weight:.2f}"
        for power, weight in zip(EXPONENTIALS.tolist(), WEIGHTS.tolist(), strict=True)
    ]
    sheet = _sheet(
        "Each exponential divided by the sum, as a bar: {}. End to end, the three bars are 1 long.",
        rows,
    )
    sheet.text("÷ sum", 168, 36, bold=True)
    sheet.text("weight", 226, 36, bold=True, color="key", anchor="start")
    left, unit, start = 226, 200, 0.0
    for row, (power, weight) in enumerate(
        zip(EXPONENTIALS.tolist(), WEIGHTS.tolist(), strict=True)
    ):
        middle = TOPS[row] + HEIGHT / 2
        sheet.text(f"{power:.2f}", 130, middle, size=19, anchor="end", name=f"power:{row}")
        sheet.text(f"÷ {total} =", 210, middle, size=16, anchor="end", color="muted")
        sheet.bar(left, TOPS[row] + 6, weight * unit, HEIGHT - 12, "key", name=f"bar:{row}")
        at = left + weight * unit + 8
        sheet.text(f"{weight:.2f}", at, middle, size=19, anchor="start", bold=True)
        sheet.bar(left + start * unit + 1, 248, weight * unit - 2, 32, "key")
        start += weight
    sheet.line(f"M{left} 56V284M{left + unit} 244V284", "ink")
    sheet.text("sum", 210, 264, color="muted", anchor="end")
    sheet.text("1.00", left + unit + 8, 264, size=19, anchor="start", bold=True, name="sum")
    return sheet
