"""Self-attention in eight stages, on one sentence, with numbers that a pencil can check.

*Anna sold her old car.* The matrices hold only 0, 1 and 2, so that the scores divided by √4 are 0, 1, 2 or 4.
*Multi-head attention* cuts the same queries, keys and values in the middle.
"""

import torch

from course_utils.kit.drawings.canvas import Canvas
from course_utils.masks import causal_mask, masked_softmax

WORDS = ["Anna", "sold", "her", "old", "car"]
FEATURES = ["person", "thing", "action", "quality"]
ASKED = ["person", "quality", "thing", "action"]
"""The columns of queries and keys."""
HER = 2
"""The word that we look at."""

X = torch.tensor([[2, 0, 0, 0], [0, 0, 2, 0], [1, 0, 0, 1], [0, 0, 0, 2], [0, 2, 0, 0]]).double()
W_Q = torch.tensor([[2, 0, 0, 0], [0, 1, 0, 1], [2, 0, 2, 0], [0, 0, 2, 0]]).double()
W_K = torch.tensor([[1, 0, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1], [0, 1, 0, 0]]).double()
W_V = torch.tensor([[2, 0, 0, 1], [0, 1, 2, 0], [1, 1, 0, 1], [0, 1, 1, 0]]).double()
Q, K, V = X @ W_Q, X @ W_K, X @ W_V
SCORES = Q @ K.T
WEIGHTS = (SCORES / 2).softmax(dim=-1)
Z = WEIGHTS @ V
CAUSAL = masked_softmax(SCORES / 2, causal_mask(5))

EMBEDDED = {"most": 2, "shades": (0.04, 0.54)}
WIDE = {"decimals": 2, "most": 4.2, "shades": (0.03, 0.88)}
"""Formats of embeddings and of mixed values."""


def rows(top: float, step: float, count: int = 5) -> list[float]:
    """The heights of rows, from the first down."""
    return [top + i * step for i in range(count)]


def row_of_her(
    sheet: Canvas,
    table: torch.Tensor,
    x: float,
    y: float,
    cell: tuple[float, float],
    color: str = "value",
    **look,
) -> None:
    """The row of her in a table of mixed values."""
    sheet.table(table[HER : HER + 1], x, y, cell, color, **WIDE | look)


def described(words: list[str], table: torch.Tensor, decimals: int = 2) -> str:
    """The rows of a table in words, for the text of a picture."""
    return " ".join(
        f"{word}: {', '.join(f'{value:.{decimals}f}' for value in row)}."
        for word, row in zip(words, table.tolist(), strict=True)
    )


def sheets() -> list[Canvas]:
    """The drawing of each stage in `stages.toml`."""
    return [
        _words(),
        _projections(),
        _scores_of_her(),
        _softmax_of_her(),
        _mix_of_her(),
        _all_scores(),
        _whole_formula(),
        _causal(),
    ]


def _words() -> Canvas:
    sheet = Canvas(
        f"Five words with four numbers each: {', '.join(FEATURES)}. {described(WORDS, X, 0)}"
    )
    left, width, height, ys = 96, 86, 48, rows(68, 62)
    for j, name in enumerate(FEATURES):
        sheet.text(name, left + (j + 0.5) * width, 40, color="muted")
    sheet.table(X, left, ys[0], (width, height), "line", step=62, **EMBEDDED, size=20, name="x")
    sheet.column(WORDS, 14, [y + height / 2 for y in ys], asking=HER, size=20, name="word")
    sheet.ring(left, ys[HER], 4 * width, height)
    return sheet


def _projections() -> Canvas:
    sheet = Canvas(
        "The embeddings X at the left meet three matrices above, W_Q, W_K and W_V, in queries, keys and values. "
        "The query of her is "
        "2, 0, 2, 0, its key 1, 1, 0, 0, its value 2, 1, 1, 1. Framed: row her of X, the first column of W_Q, and "
        "their product 2."
    )
    cell, height, left, gap, ys = 24, 30, 50, 12, rows(160, 30)
    sheet.text("X", left + 2 * cell, 140, color="muted", size=15)
    sheet.table(X, left, ys[0], (cell, height), "line", **EMBEDDED, name="x")
    made = [
        ("query", "W_Q", "looks for", W_Q, Q),
        ("key", "W_K", "is found by", W_K, K),
        ("value", "W_V", "hands over", W_V, V),
    ]
    for block, (role, name, sense, matrix, product) in enumerate(made, 1):
        at = left + block * (4 * cell + gap) - 2
        sheet.text(name, at + 2 * cell, 17, color=role, size=17, bold=True)
        sheet.table(matrix, at, 34, (cell, 26), role, most=8, shades=(0, 0.5))
        sheet.table(product, at, ys[0], (cell, height), role, name=role)
        sheet.text(role, at + 2 * cell, 330, color=role, bold=True)
        sheet.text(sense, at + 2 * cell, 350, color="muted", size=15)
    sheet.column(WORDS, 3, [y + height / 2 for y in ys], asking=HER, name="word")
    first = left + 4 * cell + gap - 2
    for box in (
        (left, ys[HER], 4 * cell, height),
        (first, 34, cell, 104),
        (first, ys[HER], cell, height),
    ):
        sheet.ring(*box, "ink")
    sheet.text("1·2 + 0·0 + 0·2 + 1·0 = 2", 240, 383)
    return sheet


def _scores_of_her() -> Canvas:
    sheet = Canvas(
        "The query of her, 2, 0, 2, 0, stands above the five keys. The dot products are 4 for Anna, 0 for sold, 2 "
        "for her, 0 for old and 4 for car."
    )
    cell, height, left, ys = 48.5, 38, 54, rows(120, 54)
    sheet.text("query of her", left, 18, color="query", bold=True, anchor="start")
    for j, name in enumerate(ASKED):
        sheet.text(name, left + (j + 0.5) * cell, 90, color="muted", size=14)
    sheet.table(Q[HER : HER + 1], left, 34, (cell, height), "query", size=17, name="query of her")
    sheet.table(K, left, ys[0], (cell, height), "key", step=54, size=17, name="key")
    sheet.text("score", 440, 96, bold=True)
    for i, y in enumerate(ys):
        for j in range(4):
            fits = bool(Q[HER, j] * K[i, j] > 0)
            words = f"{Q[HER, j]:g}·{K[i, j]:g}"
            sheet.text(
                words, 267 + 39 * j, y + height / 2, bold=fits, color="ink" if fits else "muted"
            )
            sheet.text(
                "+" if j < 3 else "=", 286.5 + 39 * j, y + height / 2, color="muted", size=15
            )
        _score(sheet, i, 418, y, height, bold=True)
    sheet.column(WORDS, 8, [y + height / 2 for y in ys], asking=HER, size=17, name="word")
    at = left + 4 * cell
    sheet.arrow([(at + 8, 53), (at + 88, 53), (at + 88, 106)], "query")
    sheet.text("times each key", at + 14, 36, anchor="start", size=15, color="query")
    return sheet


def _score(sheet: Canvas, i: int, x: float, y: float, height: float, *, bold: bool = False) -> None:
    """The score of word i for her."""
    score = float(SCORES[HER, i])
    look = {"size": 18, "bold": bold, "name": f"score:{HER}:{i}"}
    sheet.cell(f"{score:g}", x, y, 44, height, "heat", 0.06 + 0.11 * score, **look)


def _weight(sheet: Canvas, i: int, x: float, y: float, size: float) -> None:
    """The weight of word i for her."""
    look = {"bold": True, "size": size, "name": f"weight:{i}"}
    sheet.text(f"{WEIGHTS[HER, i]:.2f}", x, y, anchor="start", **look)


def _softmax_of_her() -> Canvas:
    scaled = SCORES[HER] / 2
    powers, weights = scaled.exp(), WEIGHTS[HER]
    total = f"{powers.sum():.2f}"
    steps = zip(WORDS, SCORES[HER], scaled, powers, weights, strict=True)
    sheet = Canvas(
        "For each word its score, the score divided by 2, e to that power, and the weight as a bar. "
        + " ".join(
            f"{word} {s:g}, {half:g}, {power:.2f}, {weight:.2f}."
            for word, s, half, power, weight in steps
        )
        + f" The powers sum to {total}, the weights to 1."
    )
    height, ys = 38, rows(62, 54)
    for words, x in (("score", 88), ("÷ √4", 164), ("exp", 249)):
        sheet.text(words, x, 34, bold=True)
    sheet.text(f"÷ {total} =", 312, 34, anchor="start", bold=True)
    sheet.text("weight", 392, 34, anchor="start", bold=True, color="key")
    for i, y in enumerate(ys):
        middle, bar = y + height / 2, 260 * float(weights[i])
        _score(sheet, i, 66, y, height)
        sheet.arrow([(116, middle), (138, middle)])
        sheet.text(f"{scaled[i]:g}", 164, middle, size=18)
        sheet.arrow([(190, middle), (212, middle)])
        sheet.text(f"{powers[i]:.2f}", 278, middle, size=18, anchor="end")
        sheet.line(f"M308 {y - 8}V{y + height + 8}", "rule")
        sheet.bar(309, y + 4, bar, height - 8, "key", name=f"bar:{i}")
        _weight(sheet, i, 317 + bar, middle, 18)
    sheet.line("M214 337H460")
    sheet.text("sum", 200, 362, color="muted", anchor="end")
    sheet.text(total, 278, 362, size=18, anchor="end")
    sheet.text("1.00", 312, 362, size=18, anchor="start", bold=True)
    sheet.column(WORDS, 8, [y + height / 2 for y in ys], asking=HER, size=17, name="word")
    return sheet


def _mix_of_her() -> Canvas:
    weights = WEIGHTS[HER]
    weighted = weights[:, None] * V
    answer = ", ".join(f"{value:.2f}" for value in Z[HER])
    sheet = Canvas(
        f"For each word, its weight times its value gives a weighted row. The five rows add up to the answer of "
        f"her: {answer}."
    )
    height, ys, wide = 36, rows(46, 50), WIDE | {"most": 3.2}
    for words, x, color in (
        ("weight", 82, "key"),
        ("value", 190, "value"),
        ("weight × value", 374, "value"),
    ):
        sheet.text(words, x, 24, color=color, bold=True)
    for i, y in enumerate(ys):
        sheet.bar(62, y + height - 6, 110 * float(weights[i]), 6, "key", name=f"bar:{i}")
        _weight(sheet, i, 62, y + height / 2 - 4, 17)
        sheet.text("×", 121, y + height / 2, color="muted", size=17)
        sheet.text("=", 264, y + height / 2, color="muted", size=17)
    sheet.table(V, 134, ys[0], (28, height), "value", step=50, size=17, name="value")
    sheet.table(weighted, 282, ys[0], (46, height), "value", step=50, **wide, name="weighted")
    sheet.line("M282 303H466", "ink")
    sheet.text("+", 266, 291, color="muted", size=17)
    row_of_her(sheet, Z, 282, 320, (46, 44), most=3.2, size=17, bold=0, name=f"z{HER}")
    sheet.text("z of her", 266, 342, anchor="end", color="value", bold=True, size=18)
    sheet.column(WORDS, 8, [y + height / 2 for y in ys], asking=HER, size=17, name="word")
    return sheet


def _all_scores() -> Canvas:
    sheet = Canvas(
        f"Matrix of scores, queries in rows, keys in columns. {described(WORDS, SCORES, 0)}"
    )
    cell, left, width, height, top = 25, 54, 48, 40, 170
    grid, ys = left + 4 * cell + 16, rows(top, height)
    for j, word in enumerate(WORDS):
        sheet.text(word, grid + (j + 0.5) * width, 26, bold=j == HER)
    for j in range(5):  # the keys stand upright here, and travel by their old names
        for i in range(4):
            value, box = float(K[j, i]), (grid + j * width, 44 + 24 * i, width, 24)
            look = {"faint": not value, "name": f"key:{j}:{i}"}
            sheet.cell(f"{value:g}", *box, "key", 0.1 + 0.125 * value, **look)
    sheet.text("K^T", grid + 5 * width + 10, 92, color="key", bold=True, anchor="start", size=19)
    sheet.text("Q", left + 2 * cell, 150, color="query", bold=True, size=19)
    sheet.table(Q, left, top, (cell, height), "query", name="query")
    look = EMBEDDED | {"most": 8, "size": 18, "bold": HER, "name": "score"}
    sheet.table(SCORES, grid, top, (width, height), "heat", **look)
    sheet.column(WORDS, 8, [y + height / 2 for y in ys], asking=HER, name="word")
    sheet.ring(left, ys[HER], 4 * cell, height)
    sheet.ring(grid, ys[HER], 5 * width, height)
    sheet.text("scores", grid + 2.5 * width, top + 5 * height + 17, bold=True)
    return sheet


def _whole_formula() -> Canvas:
    sheet = Canvas(
        f"Matrix of weights: {described(WORDS, WEIGHTS)} Times the values it gives the answers Z: {described(WORDS, Z)}"
    )
    left, width, height, top, wide = 50, 44, 38, 190, 46
    out, ys = left + 5 * width + 14, rows(top, height)
    sheet.text("weights =", left, 56, anchor="start", bold=True, color="key", size=17)
    sheet.text("softmax(Q K^T / √4)", left, 82, anchor="start", size=17)
    sheet.text("Z", left, 118, anchor="start", bold=True, color="value", size=17)
    sheet.text("= weights × V", left + 16, 118, anchor="start", size=17)
    for j, word in enumerate(WORDS):
        sheet.text(word, left + (j + 0.5) * width, top - 16, size=15, bold=j == HER)
        sheet.text(word, out - 6, 43 + 26 * j, size=15, anchor="end", color="muted")
    sheet.text("V", out + 2 * wide, 14, color="value", bold=True, size=18)
    sheet.text("Z", out + 2 * wide, top - 14, color="value", bold=True, size=18)
    sheet.table(V, out, 30, (wide, 26), "value", name="value")
    look = {"decimals": 2, "most": 1, "shades": (0.03, 0.93), "size": 15, "bold": HER}
    sheet.table(WEIGHTS, left, top, (width, height), "heat", **look, name="score")
    sheet.table(Z, out, top, (wide, height), "value", **WIDE, size=15, bold=HER, name="z")
    sheet.column(WORDS, 6, [y + height / 2 for y in ys], asking=HER, size=15, name="word")
    sheet.ring(left, ys[HER], 5 * width, height)
    sheet.ring(out, ys[HER], 4 * wide, height)
    return sheet


def _causal() -> Canvas:
    seen = [
        f"{word}: {', '.join(f'{weight:.2f}' for weight in row[: i + 1])}."
        for i, (word, row) in enumerate(zip(WORDS, CAUSAL, strict=True))
    ]
    sheet = Canvas(
        f"Matrix of weights with a causal mask; everything right of the diagonal is forbidden. {' '.join(seen)}"
    )
    left, width, height, top = 66, 62, 44, 44
    ys = rows(top, height)

    def row(
        weights: torch.Tensor, y: float, tall: float, visible: int, bold: bool, name: str = ""
    ) -> None:
        for j, weight in enumerate(weights.tolist()):
            x = left + j * width
            box = x, y, width, tall
            look = {"size": 18 if name else 16, "name": f"{name}:{j}" if name else ""}
            if j < visible:
                sheet.cell(f"{weight:.2f}", *box, "heat", 0.03 + 0.9 * weight, bold=bold, **look)
                continue
            sheet.cell("" if name else "0", *box, "line", 0.16, faint=True, **look)
            if name:
                sheet.line(f"M{x + 8} {y + tall - 8}L{x + width - 8} {y + 8}", "line", strength=0.6)

    for j, word in enumerate(WORDS):
        sheet.text(word, left + (j + 0.5) * width, 24, bold=j == HER)
        row(CAUSAL[j], ys[j], height, j + 1, j == HER, f"score:{j}")
    sheet.column(WORDS, 8, [y + height / 2 for y in ys], asking=HER, size=17, name="word")
    sheet.ring(left, ys[HER], 5 * width, height)
    sheet.text("hidden", left + 5 * width + 12, ys[0] + 22, anchor="start", color="muted")
    row(WEIGHTS[HER], 312, 30, 5, False)
    row(CAUSAL[HER], 352, 30, HER + 1, True)
    for words, y, color in (("before", 327, "muted"), ("now", 367, "query")):
        sheet.text(words, left - 10, y, anchor="end", color=color, bold=color == "query")
        sheet.text("her", left + 5 * width + 12, y, anchor="start", color="query", bold=True)
    return sheet
