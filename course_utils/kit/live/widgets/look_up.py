"""A look-up as a widget: a query that is dragged over a table of animals; scores, weights and answer follow."""

import json
import math
from collections.abc import Mapping, Sequence

from course_utils.kit.live.parts import OURS, fixed, safe
from course_utils.kit.live.widget import Live

ANIMALS = {
    "mouse": (0.1, 0.1, 2.0),
    "cat": (0.3, 0.8, 15.0),
    "dog": (0.4, 1.0, 12.0),
    "horse": (0.8, 0.4, 28.0),
    "elephant": (1.0, 0.0, 65.0),
}
QUERIES = {"kitten": (0.2, 0.9), "bird": (0.2, 0.2), "farmer": (0.6, 0.8), "house": (1.0, 1.0)}
TEMPERATURES = (0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 100.0)
FIRST = 6
"""The temperature that is shown first, by its place."""

LEFT, RIGHT, TOP, BOTTOM = 30, 390, 10, 370
"""Of the plane, in the units of its picture."""

RING = 20
"""Radius around a key with weight 1."""


class LookUp(Live):
    """A live look-up, shown as the last line of a cell."""

    kind = "look_up"

    def form(self) -> str:
        """The widget as HTML in its first state."""
        return self.framed(_content(*self.given), "Live look-up")


def look_up(
    animals: Mapping[str, tuple[float, float, float]] | None = None,
    queries: Mapping[str, tuple[float, float]] | None = None,
) -> LookUp:
    """Drag a query over the keys: its scores, its weights, and the weighted average of the values.

    Args:
        animals: name → (size, home, years); by default the five of *Queries, keys and values*.
        queries: name → (size, home), places to begin from; the first is shown.

    Raises:
        ValueError: there is no animal, or no query.
    """
    animals = ANIMALS if animals is None else animals
    queries = QUERIES if queries is None else queries
    for name, given in (("animals", animals), ("queries", queries)):
        if not given:
            raise ValueError(f"{name}={given!r} is empty; one entry is needed")
    table = {name: tuple(map(float, row)) for name, row in animals.items()}
    return LookUp(table, {name: tuple(map(float, place)) for name, place in queries.items()})


def weights_of(
    query: Sequence[float], keys: Sequence[Sequence[float]], temperature: float
) -> tuple[list[float], list[float]]:
    """Scores −½‖q − k‖², and the softmax of scores / T."""
    scores = [-((query[0] - x) ** 2 + (query[1] - y) ** 2) / 2 + 0.0 for x, y in keys]
    most = max(scores)
    powers = [math.exp((score - most) / temperature) for score in scores]
    return scores, [power / sum(powers) for power in powers]


# The first state, as HTML: the same as look_up.js writes ------------------------------------------


def _content(animals: dict, queries: dict) -> str:
    names, rows = list(animals), list(animals.values())
    first, query = next(iter(queries.items()))
    places = [row[:2] for row in rows] + list(queries.values()) + [(0.0, 0.0), (1.0, 1.0)]
    ends = [
        (round(min(each) - 0.2, 2), round(max(each) + 0.1, 2)) for each in zip(*places, strict=True)
    ]
    temperature = TEMPERATURES[FIRST]
    scores, weights = weights_of(query, [row[:2] for row in rows], temperature)
    data = {"animals": animals, "queries": queries, "ends": ends, "temperatures": TEMPERATURES}
    table = safe(json.dumps(data, ensure_ascii=False))
    words = " ".join(
        f'<button type="button" {OURS} data-word="{safe(name)}">{safe(name)}</button>'
        for name in [*queries, *names]
    )
    answer = sum(w * row[2] for w, row in zip(weights, rows, strict=True))
    sliders = "".join(
        f'<label class="cu-live-slider"><span class="cu-live-label">{label}</span> <input type="range" {OURS} '
        f'name="{label}" min="{ends[i][0]:g}" max="{ends[i][1]:g}" step="0.01" value="{query[i]:g}"> '
        f'<output aria-live="off" data-part="{label}">{fixed(query[i], 2)}</output></label> '
        for i, label in enumerate(("size", "home"))
    )
    return f"""<p>Drag the query (the cross), or begin at a word.</p>
<p class="cu-live-examples">Ask for: {words}</p>
<div class="cu-live-ask">{sliders}<label class="cu-live-slider"><span class="cu-live-label">Temperature T</span> \
<input type="range" {OURS} name="temperature" min="0" max="{len(TEMPERATURES) - 1}" step="1" value="{FIRST}" \
aria-valuetext="{temperature:g}"> <output aria-live="off" data-part="temperature">{temperature:g}</output></label></div>
<div class="cu-live-beside"><svg class="cu-live-plot cu-live-plane" role="img" aria-label="Keys on the plane \
of size and home, and the query" viewBox="0 0 400 400" data-part="plane" data-table="{table}">
<path class="cu-live-axis" d="M{LEFT} {TOP}V{BOTTOM}H{RIGHT}"></path>
<text x="{RIGHT}" y="{BOTTOM + 20}" text-anchor="end">size</text>
<text x="{LEFT - 10}" y="{TOP}" text-anchor="end" transform="rotate(-90 {LEFT - 10} {TOP})">home</text>
<g data-part="keys">{_keys(animals, weights, ends)}</g>
<path class="cu-live-cross" data-part="query" d="{_cross(query, ends)}"></path></svg>
<div class="cu-live-table" role="region" aria-label="Scores, weights and values" tabindex="0" {OURS} \
data-part="table">{_table(names, rows, scores, weights)}</div></div>
<p aria-live="polite" data-part="said">{_said(first, query, temperature, answer)}</p>
<p class="cu-live-note">No stored model is behind this: all is computed from the table.</p>"""


def _across(x: float, ends: Sequence) -> float:
    low, high = ends[0]
    return LEFT + (RIGHT - LEFT) * (x - low) / (high - low)


def _down(y: float, ends: Sequence) -> float:
    low, high = ends[1]
    return BOTTOM - (BOTTOM - TOP) * (y - low) / (high - low)


def _keys(animals: dict, weights: Sequence[float], ends: Sequence) -> str:
    made = []
    for (name, (x, y, _)), weight in zip(animals.items(), weights, strict=True):
        place = f'cx="{_across(x, ends):.1f}" cy="{_down(y, ends):.1f}"'
        made.append(
            f'<circle class="cu-live-ring" {place} r="{RING}"></circle>'
            f'<circle class="cu-live-disk" {place} r="{RING * math.sqrt(weight):.1f}"></circle>'
            f'<text x="{_across(x, ends):.1f}" y="{_down(y, ends) + RING + 15:.1f}" text-anchor="middle">'
            f"{safe(name)}</text>"
        )
    return "".join(made)


def _cross(query: Sequence[float], ends: Sequence) -> str:
    x, y = _across(query[0], ends), _down(query[1], ends)
    return f"M{x - 8:.1f} {y - 8:.1f}L{x + 8:.1f} {y + 8:.1f}M{x - 8:.1f} {y + 8:.1f}L{x + 8:.1f} {y - 8:.1f}"


def _table(names: Sequence, rows: Sequence, scores: Sequence, weights: Sequence) -> str:
    head = "".join(
        f'<th scope="col">{text}</th>'
        for text in ("key", "score a", "weight α", "years v", "α × years")
    )
    lines = "".join(
        f'<tr><th scope="row">{safe(name)}</th><td>{fixed(score, 3)}</td>'
        f'<td style="--w: {weight:.2f}">{fixed(weight, 2)}</td><td>{row[2]:g}</td>'
        f"<td>{fixed(weight * row[2], 2)}</td></tr>"
        for name, row, score, weight in zip(names, rows, scores, weights, strict=True)
    )
    answer = sum(w * row[2] for w, row in zip(weights, rows, strict=True))
    return (
        f"<table><thead><tr>{head}</tr></thead><tbody>{lines}"
        f'<tr><th scope="row">sum</th><td></td><td>1.00</td><td></td><td>{fixed(answer, 2)}</td></tr></tbody></table>'
    )


def _said(name: str, query: Sequence[float], temperature: float, answer: float) -> str:
    return (
        f"{safe(name)}, size {fixed(query[0], 2)}, home {fixed(query[1], 2)}, T = {temperature:g}: "
        f"the answer is {fixed(answer, 1)} years."
    )
