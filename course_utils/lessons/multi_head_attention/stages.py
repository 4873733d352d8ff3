"""Two heads in eight stages: the queries, keys and values of *Self-attention*, cut in the middle."""

import torch

from course_utils.kit.drawings.canvas import Canvas
from course_utils.lessons.self_attention.stages import (
    FEATURES,
    HER,
    SCORES,
    WEIGHTS,
    WORDS,
    K,
    Q,
    V,
    Z,
    described,
    row_of_her,
    rows,
)

COLORS = ["plum", "wrong"]
"""Colors of the two heads."""

W_O = torch.tensor([[1, 0, 0, 0], [0, 0, 0, 1], [0, 1, 0, 0], [1, 0, 1, 0]]).double()
Q_H, K_H, V_H = (
    matrix.unflatten(-1, (2, 2)).transpose(0, 1) for matrix in (Q, K, V)
)  # (heads, 5, 2)
SCORES_H = Q_H @ K_H.transpose(-2, -1)
WEIGHTS_H = (SCORES_H / 2**0.5).softmax(dim=-1)
H = WEIGHTS_H @ V_H
JOINED = H.transpose(0, 1).flatten(1)
WRITTEN = H @ W_O.unflatten(0, (2, 2))  # (heads, 5, 4): what each head adds
OUTPUT = JOINED @ W_O


def sheets() -> list[Canvas]:
    """The drawing of each stage in `stages.toml`."""
    return [
        _one_softmax(),
        _cut(),
        _scores(),
        _two_softmaxes(),
        _mix(),
        _join(),
        _maps(),
        _compared(),
    ]


def _list(values: torch.Tensor) -> str:
    return ", ".join(f"{value:.2f}" for value in values.tolist())


def _named(weights: torch.Tensor) -> str:
    return ", ".join(
        f"{word} {weight:.2f}" for word, weight in zip(WORDS, weights.tolist(), strict=True)
    )


def _row(values: torch.Tensor) -> torch.Tensor:
    """The row of her, as a table of one row."""
    return values[HER : HER + 1]


WORDS_AT = [58, 150, 240, 330, 422]


def _arcs(
    sheet: Canvas, y: float, weights: torch.Tensor, color: str, up: int, step: float = 92
) -> None:
    """Arcs from her to each word, as wide as the weight; `up` is −1 above the words and 1 below."""
    for j in weights.argsort().tolist():
        weight, far, side = float(weights[j]), abs(j - HER), -1 if j < HER else 1
        start, end, wide = WORDS_AT[HER], WORDS_AT[j], 24 * weight + 0.8
        if far == 0:
            lift = 62.0
            path = f"M{start - 4} {y}C{start - 28} {y + up * lift} {start + 28} {y + up * lift} {start + 4} {y}"
            at = start
        else:
            lift = step * far * (0.9 if far == 1 else 0.97)
            start += (12 if far == 1 else 25) * side
            path = f"M{start} {y}C{start} {y + up * lift:.1f} {end} {y + up * lift:.1f} {end} {y}"
            at = (start + end) // 2 if far == 2 else end - 15 * side
        sheet.line(path, color, width=wide, strength=0.75)
        height = y + up * (0.75 * lift + (wide / 2 + 13 if far else 14))
        sheet.text(f"{weight:.2f}", at, height, size=19 if weight > 0.3 else 16, bold=weight > 0.3)


def _words(sheet: Canvas, y: float) -> None:
    for i, (x, word) in enumerate(zip(WORDS_AT, WORDS, strict=True)):
        asking = i == HER
        sheet.text(
            word, x, y, size=20, bold=asking, color="query" if asking else "ink", name=f"word:{i}"
        )


def _column(sheet: Canvas, ys: list[float], height: float) -> None:
    sheet.column(WORDS, 6, [y + height / 2 for y in ys], asking=HER, name="word")


def _one_softmax() -> Canvas:
    sheet = Canvas(
        f"The words Anna sold her old car in a row, with arcs from her to each word. Weights: "
        f"{_named(WEIGHTS[HER])}."
    )
    _arcs(sheet, 206, WEIGHTS[HER], "key", -1)
    _words(sheet, 226)
    sheet.text("one head", 20, 292, anchor="start", color="key", bold=True, size=17)
    sheet.text(
        " + ".join(f"{weight:.2f}" for weight in WEIGHTS[HER].tolist()) + " = 1",
        134,
        292,
        anchor="start",
        size=17,
    )
    sheet.text("z of her", 20, 342, anchor="start", color="value", bold=True, size=17)
    row_of_her(sheet, Z, 134, 320, (72, 44), size=18)
    return sheet


def _cut() -> Canvas:
    sheet = Canvas(
        "The matrices Q, K and V of the five words, each cut into two columns for head 0 and two columns for head "
        "1. "
        "The query of her is 2, 0 in head 0 and 2, 0 in head 1."
    )
    cell, height, left, gap, ys = 28, 40, 54, 8, rows(96, 46)
    for block, (role, name, halves) in enumerate(
        (("query", "queries Q", Q_H), ("key", "keys K", K_H), ("value", "values V", V_H))
    ):
        at = left + block * (4 * cell + gap + 22)
        sheet.text(name, at + 2 * cell + gap / 2, 28, color=role, size=17, bold=True)
        for head, color in enumerate(COLORS):
            x = at + head * (2 * cell + gap)
            look = {"step": 46, "size": 17, "name": f"{role} {head}"}
            sheet.table(halves[head], x, ys[0], (cell, height), role, **look)
            sheet.text(f"head {head}", x + cell, 64, color=color, size=15, bold=True)
            sheet.line(f"M{x + 1} 80H{x + 2 * cell - 1}", color, width=4)
            sheet.ring(x, ys[0], 2 * cell, ys[-1] + height - ys[0], color, pad=3)
    _column(sheet, ys, height)
    sheet.text("5 words × 4 numbers = 2 heads × 5 words × 2 numbers", 240, 362, color="muted")
    return sheet


def _scores() -> Canvas:
    sheet = Canvas(
        "For each word, the key's first half and head 0's score, the key's second half and head 1's score. "
        "Head 0: 4, 0, 2, 0, 0. Head 1: 0, 0, 0, 0, 4. Together 4, 0, 2, 0, 4, the scores of one head."
    )
    cell, height, ys = 34, 38, rows(124, 50)
    for head, color in enumerate(COLORS):
        x = 66 + head * 162
        sheet.text(f"head {head}", x + 70, 18, color=color, size=17, bold=True)
        sheet.table(_row(Q_H[head]), x, 38, (cell, height), "query", size=17, name=f"query {head}")
        sheet.line(f"M{x} 83H{x + 2 * cell}", color, width=4)
        sheet.text("query", x + 2 * cell + 8, 57, color="query", size=15, anchor="start")
        sheet.text("keys", x + cell, 104, color="key", size=15, bold=True)
        sheet.text("score", x + 2 * cell + 43, 104, color=color, size=15, bold=True)
        sheet.table(
            K_H[head], x, ys[0], (cell, height), "key", step=50, size=17, name=f"key {head}"
        )
        for i, y in enumerate(ys):
            score = float(SCORES_H[head, HER, i])
            sheet.text("→", x + 2 * cell + 12, y + height / 2, color="muted")
            box, look = (x + 2 * cell + 24, y, 40, height), {"size": 19, "faint": not score}
            sheet.cell(f"{score:g}", *box, color, 0.04 + 0.1 * score, bold=True, **look)
    for words, y in (("one", 88), ("head", 106)):
        sheet.text(words, 422, y, size=15, color="muted")
    for i, y in enumerate(ys):
        score = float(SCORES[HER, i])
        sheet.text("+", 213, y + height / 2, color="muted", size=17)
        sheet.text("=", 380, y + height / 2, color="muted", size=17)
        sheet.cell(
            f"{score:g}", 402, y, 40, height, "heat", 0.04 + 0.1 * score, size=19, faint=not score
        )
    _column(sheet, ys, height)
    return sheet


def _two_softmaxes() -> Canvas:
    sheet = Canvas(
        "Arcs from her to each word, head 0 above and head 1 below. "
        + " ".join(f"Head {head}: {_named(WEIGHTS_H[head, HER])}." for head in (0, 1))
    )
    _arcs(sheet, 180, WEIGHTS_H[0, HER], COLORS[0], -1, step=76)
    _arcs(sheet, 220, WEIGHTS_H[1, HER], COLORS[1], 1, step=76)
    _words(sheet, 200)
    sheet.text("head 0: whose?", 14, 22, anchor="start", color=COLORS[0], bold=True, size=18)
    sheet.text("head 1: what?", 14, 380, anchor="start", color=COLORS[1], bold=True, size=18)
    return sheet


def _mix() -> Canvas:
    sheet = Canvas(
        "For each word, the weight of head 0 and the first half of the value; the weight of head 1 and the second "
        "half. " + " ".join(f"Head {head} returns {_list(H[head, HER])}." for head in (0, 1))
    )
    height, cell, ys = 36, 44, rows(64, 48)
    for head, color in enumerate(COLORS):
        x = 66 + head * 210
        sheet.text(f"head {head}", x + 90, 16, color=color, size=17, bold=True)
        sheet.text("weight", x, 44, color=color, size=15, bold=True, anchor="start")
        sheet.text("value", x + 96 + cell, 44, color="value", size=15, bold=True)
        for i, y in enumerate(ys):
            weight = float(WEIGHTS_H[head, HER, i])
            sheet.bar(x, y + height - 6, 66 * weight, 6, color, name=f"bar {head}:{i}")
            sheet.text(
                f"{weight:.2f}", x, y + height / 2 - 4, anchor="start", bold=weight > 0.5, size=17
            )
            sheet.text("×", x + 78, y + height / 2, color="muted")
        look = {"step": 48, "size": 17, "name": f"value {head}"}
        sheet.table(V_H[head], x + 96, ys[0], (cell, height), "value", **look)
        sheet.line(f"M{x + 96} 302H{x + 96 + 2 * cell}", "ink")
        look = {"size": 17, "bold": 0, "name": f"head {head}"}
        row_of_her(sheet, H[head], x + 96, 318, (cell, 44), **look)
        sheet.ring(x + 96, 318, 2 * cell, 44, color, pad=3)
        sheet.text(f"H_{head}", x + 82, 340, anchor="end", color=color, bold=True, size=19)
    _column(sheet, ys, height)
    return sheet


def _join() -> Canvas:
    sheet = Canvas(
        f"The joined row {_list(JOINED[HER])} times W_O. Head 0 writes {_list(WRITTEN[0, HER])}, head 1 writes "
        f"{_list(WRITTEN[1, HER])}, "
        f"together {_list(OUTPUT[HER])}."
    )
    width, height, left, grid, y = 48, 38, 20, 250, 222
    sheet.text("W_O", grid + 2 * width, 18, bold=True, size=19)
    for j, name in enumerate(FEATURES):
        sheet.text(name, grid + (j + 0.5) * width, 44, size=14, color="muted")
    sheet.table(W_O, grid, 62, (width, 34), "line", most=2, shades=(0.02, 0.52), size=17)
    sheet.text("[H_0, H_1]", left + 2 * width, y - 16, size=17, bold=True)
    for head, color in enumerate(COLORS):
        sheet.ring(grid, 62 + 68 * head, 4 * width, 68, color, pad=-1)
        sheet.text(f"head {head}", grid - 12, 96 + 68 * head, color=color, bold=True, anchor="end")
        at, below, look = left + 2 * head * width, y + 48 * head, {"name": f"head {head}"}
        row_of_her(sheet, H[head], at, y, (width, height), size=17, bold=0, **look)
        sheet.ring(at, y, 2 * width, height, color, pad=-1)
        row_of_her(sheet, WRITTEN[head], grid, below, (width, height), "line", shades=(0.02, 0.47))
        sheet.ring(grid, below, 4 * width, height, color, pad=-1)
    sheet.arrow([(left + 4 * width + 6, y + height / 2), (grid - 8, y + height / 2)])
    sheet.text("+", grid - 16, y + 48 + height / 2, size=20, color="muted")
    sheet.line(f"M{grid} 318H{grid + 4 * width}", "ink")
    look = {"shades": (0.05, 0.55), "size": 17, "bold": 0}
    row_of_her(sheet, OUTPUT, grid, 332, (width, 44), "line", **look)
    sheet.text("output for her", grid - 16, 354, anchor="end", bold=True, color="query", size=17)
    return sheet


def _maps() -> Canvas:
    sheet = Canvas(
        "Two matrices of weights. "
        + " ".join(f"Head {head}: {described(WORDS, WEIGHTS_H[head])}" for head in (0, 1))
    )
    width, height, left = 40, 44, 54
    ys = rows(96, height)
    for head, color in enumerate(COLORS):
        x = left + head * (5 * width + 14)
        sheet.text(f"head {head}", x + 2.5 * width, 28, color=color, bold=True, size=18)
        for j, word in enumerate(WORDS):
            sheet.text(word, x + (j + 0.5) * width, 74, size=15, bold=j == HER)
        look = {"decimals": 2, "most": 1, "shades": (0.03, 0.98), "size": 15, "bold": HER}
        sheet.table(WEIGHTS_H[head], x, ys[0], (width, height), color, **look)
        sheet.ring(x, ys[HER], 5 * width, height)
    _column(sheet, ys, height)
    sheet.text(
        "rows: who asks · columns: who is asked", left + 5 * width + 7, 350, size=15, color="muted"
    )
    return sheet


def _compared() -> Canvas:
    one, two = Z[HER].tolist(), JOINED[HER].tolist()
    sheet = Canvas(
        f"Bars of the four mixed numbers of her. One head: {_list(Z[HER])}. Two heads: {_list(JOINED[HER])}."
    )
    base, scale, width = 318, 62, 40
    sheet.line(f"M40 {base}H462")
    sheet.line(f"M40 {base - 4 * scale}H462", "rule", dash="5 5")
    for value in (0, 4):
        sheet.text(str(value), 34, base - value * scale, anchor="end", color="muted")
    for j, note in enumerate(("mostly Anna", "", "mostly car", "")):
        x, color = 54 + j * 106, COLORS[j // 2]
        for value, at, role, strength in (
            (one[j], x, "key", 0.45),
            (two[j], x + width + 4, color, 0.75),
        ):
            sheet.bar(at, base - scale * value, width, scale * value, role, strength=strength)
            sheet.text(
                f"{value:.2f}", at + width / 2, base - scale * value - 12, bold=role == color
            )
        sheet.text(f"column {j}", x + width + 2, base + 20, size=15, color="muted")
        if note:
            sheet.text(note, x + width + 2, base + 42, bold=True, color=color)
    for words, x, role, strength in (
        ("one head", 54, "key", 0.45),
        ("head 0", 180, COLORS[0], 0.75),
        ("head 1", 284, COLORS[1], 0.75),
    ):
        sheet.bar(x, 14, 16, 16, role, strength=strength)
        sheet.text(words, x + 24, 22, anchor="start")
    return sheet
