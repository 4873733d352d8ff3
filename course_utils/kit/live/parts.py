"""What live models are shown with, as HTML: small maps, a map as a table, bars. `parts.js` writes the same in a page.

So what a reader sees first, in print or without scripts, is what a page goes on from.
"""

import html
import math
from collections.abc import Collection, Iterable, Mapping, Sequence

from torch import Tensor

OURS = 'data-lm-suppress-shortcuts="true"'
"""Keys on a control are the reader's, not Lab's."""


def safe(text: str) -> str:
    """Text as it is written in HTML and in an attribute."""
    return html.escape(text, quote=False).replace('"', "&quot;")


def radios(name: str, labels: Mapping, chosen: object) -> str:
    """A choice among few: value → label of each."""
    return "".join(
        f'<label><input type="radio" {OURS} name="{name}" value="{value}"{" checked" if value == chosen else ""}> '
        f"{label}</label>"
        for value, label in labels.items()
    )


def sentences(examples: Iterable[Mapping]) -> str:
    """A button for each example of a bundle, with its sentence."""
    return " ".join(
        f'<button type="button" {OURS} data-example="{i}">{safe(each["sentence"])}</button>'
        for i, each in enumerate(examples)
    )


def percent(p: float) -> int:
    """A share in whole percent, halves up."""
    return math.floor(100 * p + 0.5)


def dice(seed: int, place: int) -> float:
    """A number from 0 to 1 for each place, as parts.js draws it."""
    whole = 2**32 - 1
    bits = (seed * 0x9E3779B1 + (place + 1) * 0x85EBCA6B) & whole
    bits = ((bits ^ bits >> 16) * 0x7FEB352D) & whole
    bits = ((bits ^ bits >> 15) * 0x846CA68B) & whole
    return (bits ^ bits >> 16) / 2**32


def share(p: float) -> str:
    """Whole percent as a part of one, written as JavaScript writes it."""
    return f"{percent(p) / 100:g}"


def fixed(number: float, digits: int) -> str:
    """A number with so many digits after the point, and a real minus sign; what is rounded to 0 has none."""
    text = f"{number:.{digits}f}"
    return text.removeprefix("-") if float(text) == 0 else text.replace("-", "−")


def svg(weights: Tensor) -> str:
    """A small map of weights (queries, keys): for each tenth of weight one path of squares."""
    tenths = [""] * 11
    for i, row in enumerate(weights.tolist()):
        for j, weight in enumerate(row):
            tenths[math.floor(10 * weight + 0.5)] += f"M{j} {i}h1v1h-1z"
    paths = "".join(
        f'<path fill-opacity="{tenth / 10:g}" d="{squares}"></path>'
        for tenth, squares in enumerate(tenths)
        if tenth and squares
    )
    box = f"0 0 {weights.shape[1]} {weights.shape[0]}"
    return f'<svg aria-hidden="true" viewBox="{box}" preserveAspectRatio="none">{paths}</svg>'


def named(place: str) -> str:
    """A place among maps, "1.0" for layer 1 and head 0, or "mean", in words."""
    layer, _, head = place.partition(".")
    return f"layer {layer}, head {head}" if head else "mean of all heads"


def gallery(maps: Tensor, chosen: str) -> str:
    """All maps (layers, heads, queries, keys) as buttons; the chosen one is pressed."""
    layers, heads = maps.shape[:2]
    every = [
        (f"{layer}.{head}", maps[layer, head]) for layer in range(layers) for head in range(heads)
    ]
    every.append(("mean", maps.flatten(0, 1).mean(dim=0)))
    return "".join(
        f'<button type="button" {OURS} aria-pressed="{"true" if place == chosen else "false"}" '
        f'data-map="{place}">{svg(weights)}<span>{named(place)}</span></button>'
        for place, weights in every
    )


def table(
    caption: str,
    corner: Sequence[str],
    rows: Sequence[Sequence[str]],
    columns: Sequence[str],
    weights: Tensor,
    *,
    languages: tuple[str, str] = ("en", "en"),
    now: int = -1,
    framed: Collection[tuple[int, int]] = (),
) -> str:
    """A map in percent.

    Args:
        caption: over the table, as HTML.
        corner: a name for each column of words at the left.
        rows: those words, row by row.
        columns: words over the numbers.
        weights: (rows, columns).
        languages: of rows and of columns.
        now: the row that is marked.
        framed: (row, column) of cells in a frame.
    """
    names = "".join(f'<th scope="col">{text}</th>' for text in corner)
    heads = "".join(f'<th scope="col" lang="{languages[1]}">{safe(text)}</th>' for text in columns)
    lines = []
    for i, (words, line) in enumerate(zip(rows, weights.tolist(), strict=True)):
        begins = "".join(
            f'<th scope="row" lang="{languages[0]}">{safe(text)}</th>' for text in words
        )
        cells = "".join(_cell(weight, (i, j) in framed) for j, weight in enumerate(line))
        current = ' aria-current="step"' if i == now else ""
        lines.append(f"<tr{current}>{begins}{cells}</tr>")
    return (
        f"<table><caption>{caption}</caption><thead><tr>{names}{heads}</tr></thead>"
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _cell(weight: float, framed: bool) -> str:
    frame = ' data-framed=""' if framed else ""
    shown = percent(weight)
    return (
        f'<td{frame} style="--w: {share(weight)}">{shown}</td>' if shown else f"<td{frame}>0</td>"
    )


def bars(items: Iterable[tuple[str, float]], language: str = "en") -> str:
    """Words and their probabilities as bars."""
    lines = "".join(
        f'<li style="--w: {share(p)}"><span lang="{language}">{safe(text)}</span> '
        f"<span>{percent(p)} %</span></li>"
        for text, p in items
    )
    return f"<ol>{lines}</ol>"


def choices(items: Iterable[tuple[str, int | None, float, float]], now: int | None = None) -> str:
    """Candidates as bars, each a button: a bar for the probability, a line for the one before the limits.

    Args:
        items: word, what is chosen by it (None cannot be), probability before and after the limits.
        now: the one that was chosen.
    """
    lines = []
    for text, choice, before, after in items:
        both = "" if percent(before) == percent(after) else f"{percent(before)} → "
        taken = ' aria-current="true"' if choice is not None and choice == now else ""
        does = 'disabled=""' if choice is None else f'data-choice="{choice}"'
        lines.append(
            f'<li style="--w: {share(after)}; --before: {share(before)}"{taken}>'
            f'<button type="button" {OURS} {does}>{safe(text)}</button> '
            f"<span>{both}{percent(after)} %</span></li>"
        )
    return f'<ol class="cu-live-choices">{"".join(lines)}</ol>'


def weighted(pieces: Sequence[str], weights: Sequence[float], now: int) -> str:
    """A text, each piece on a ground as dark as its weight; "␣" ends a word. `now`: the piece that is marked."""
    spans = []
    for i, piece in enumerate(pieces):
        space = " " if piece.endswith(("␣", ">", "_")) else ""
        p = weights[i] if i < len(weights) else 0.0
        shown = safe(piece.replace("␣", ""))
        mark = ' aria-current="true"' if i == now else ""
        spans.append(f'<span data-place="{i}"{mark} style="--w: {share(p)}">{shown}</span>{space}')
    return "".join(spans).strip()


def trained(model: str, earlier: Sequence[int], result: Mapping[str, float]) -> list[dict]:
    """A model at some steps of its training, as `checkpoints.js` takes it: name, steps and held-out loss of each.

    Args:
        model: the stored model; what it was after n steps is stored as `<model>_<n>`.
        earlier: those numbers of steps.
        result: of the run: "loss, <n>" for each, and "steps" and "loss" of the end.
    """
    every = [(f"{model}_{steps}", steps, result[f"loss, {steps}"]) for steps in earlier]
    every.append((model, int(result["steps"]), result["loss"]))
    return [dict(zip(("model", "steps", "loss"), each, strict=True)) for each in every]


def checkpoints(every: Sequence[Mapping], label: str = "Trained for") -> str:
    """A slider over what `trained` gives; it stands at the end."""
    last, end = len(every) - 1, every[-1]
    name = f"{end['steps']:,} steps, perplexity {math.exp(end['loss']):.1f}"
    return (
        f'<label class="cu-live-step"><span class="cu-live-label">{label}</span> '
        f'<input type="range" {OURS} name="checkpoint" min="0" max="{last}" value="{last}" aria-valuetext="{name}"> '
        f'<output aria-live="off" data-part="checkpoint">{name}</output></label>'
    )


OPERATIONS = ("project", "score", "scale", "mask", "normalize", "mix", "merge")
"""What attention does, one after the other."""


def explained(chosen: str = "normalize") -> str:
    """The place below a table where `explain.js` shows how one of its numbers was computed, and its controls."""
    operations = radios("operation", dict(zip(OPERATIONS, OPERATIONS, strict=True)), chosen)
    return (
        '<input type="hidden" name="cell" value=""><div class="cu-live-explain" data-part="explain">'
        '<p data-part="of">Choose a number of the table: the page shows how it was computed.</p>'
        '<fieldset class="cu-live-kinds" data-part="operations" hidden=""><legend>Operation</legend> '
        f"{operations}</fieldset>"
        '<div data-part="work"></div></div>'
    )
