"""Kernel regression as a widget: points to add, drag and remove, a query with its window, a width to learn."""

import math
from collections.abc import Iterable, Sequence

import torch
from torch import Tensor

from course_utils.data.regression import noisy_sine
from course_utils.kit.live.parts import OURS, fixed
from course_utils.kit.live.widget import Live
from course_utils.pooling import kernel_weights, leave_one_out_error

KERNELS = ("gaussian", "boxcar", "triangular", "epanechnikov")
RATES = ("0.03", "0.05", "0.1", "0.3")
QUERY, WIDTH = 2.4, 0.4
NARROW, WIDE = 0.02, 10.0
"""Ends of the axis of widths, as in the script."""


class KernelRegression(Live):
    """Live kernel regression, shown as the last line of a cell."""

    kind = "kernel_regression"
    scripts = ("pooling.js",)

    def form(self) -> str:
        """The widget as HTML in its first state."""
        return self.framed(_content(*self.given), "Live kernel regression")


def kernel_regression(noise: float = 1.0) -> KernelRegression:
    """Points that can be dragged, one query with its window and its weights, and a width to learn.

    Args:
        noise: standard deviation of the noise on the forty points that are shown first; finite, not negative.

    Raises:
        ValueError: what `noisy_sine` says about `noise`.
    """
    noisy_sine(noise=noise)
    return KernelRegression(float(noise))


# The first state, as HTML: the same as kernel_regression.js writes --------------------------------


def _across(x: float) -> float:
    return 34 + 396 * x / 5


def _across_widths(width: float) -> float:
    return 34 + 396 * math.log(width / NARROW) / math.log(WIDE / NARROW)


def _line(places: Iterable[tuple[float, float]]) -> str:
    """A path through places."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in places)


def _points(points: Sequence[tuple[float, float]]) -> str:
    return ",".join(f"{x:g} {y:g}" for x, y in points)


def _content(noise: float) -> str:
    data = noisy_sine(40, noise=noise)
    x = torch.tensor([round(each, 3) for each in data.x.tolist()], dtype=torch.float64)
    y = torch.tensor([round(each, 3) for each in data.y.tolist()], dtype=torch.float64)
    low, high = math.floor(min(y.min().item(), 0) - 0.5), math.ceil(max(y.max().item(), 6) + 0.5)
    weights = kernel_weights(torch.tensor([QUERY], dtype=x.dtype), x, width=WIDTH)[0]
    answer, used = (weights @ y).item(), (1 / weights.square().sum()).item()
    error, slope = _error(x, y)
    points = _points(list(zip(x.tolist(), y.tolist(), strict=True)))
    kernels = "".join(f"<option>{name}</option>" for name in KERNELS)
    rates = "".join(
        f"<option{' selected' if rate == '0.05' else ''}>{rate}</option>" for rate in RATES
    )
    said = (
        f"Query {QUERY:.2f}, width {WIDTH:.3f}: the average is {fixed(answer, 2)}, as if {used:.1f} points shared "
        f"the weight equally. The longest bar is a weight of {weights.max():.2f}."
    )
    learned = f"Step 0: width {WIDTH:.3f}, leave-one-out error {error:.3f}, its slope in log σ {fixed(slope, 4)}."
    return f"""<p>Drag a point or the query (the upright line). Click on an empty place to add a point.</p>
<input type="hidden" name="points" value="{points}"><input type="hidden" name="width" value="{
        WIDTH:g}">
<div class="cu-live-ask"><label><span class="cu-live-label">Kernel</span> <select {
        OURS
    } name="kernel">{kernels}\
</select></label>
{
        _slider(
            "Query q",
            'name="query" min="0" max="5" step="0.05"',
            f"{QUERY:g}",
            "query",
            f"{QUERY:.2f}",
        )
    }
{
        _slider(
            "Width σ",
            f'data-part="slider" min="{math.log(NARROW):.2f}" max="2.3" step="0.02"',
            f"{math.log(WIDTH):.3f}",
            "slider",
            f"{WIDTH:.3f}",
        )
    }
<label><input type="checkbox" {OURS} name="whole"> whole curve</label></div>
{_plot(x, y, weights, answer, data.truth, low, high)}
<p aria-live="polite" data-part="said">{said}</p>
<div class="cu-live-ask" role="group" aria-label="One point">\
{_slider("Point", f'name="point" min="1" max="{len(x)}" step="1"', "1", "point", f"1 of {len(x)}")}
{_slider("x", 'data-part="x" min="0" max="5" step="0.05"', f"{x[0]:g}", "x", fixed(x[0].item(), 2))}
{
        _slider(
            "y",
            f'data-part="y" min="{low}" max="{high}" step="0.05"',
            f"{y[0]:g}",
            "y",
            fixed(y[0].item(), 2),
        )
    }
<button type="button" {OURS} data-part="add">Add at the query</button>
<button type="button" {OURS} data-part="remove">Remove</button>
<button type="button" {OURS} data-part="again">First points</button></div>
<details {OURS}><summary>Learn the width: leave-one-out error and gradient descent</summary>
{_errors(x, y, error)}
<div class="cu-live-ask"><button type="button" {OURS} data-part="step">Step</button>
<button type="button" {OURS} data-part="play">Play</button>
<label><span class="cu-live-label">Rate</span> <select {OURS} name="rate">{
        rates
    }</select></label></div>
<p aria-live="polite" data-part="learned">{learned}</p></details>
<p class="cu-live-note">No stored model is behind this: all is computed from the points that you see.</p>"""


def _slider(label: str, attributes: str, value: str, name: str, text: str) -> str:
    """A range with its value in words beside it."""
    return (
        f'<label class="cu-live-slider"><span class="cu-live-label">{label}</span> <input type="range" {OURS} '
        f'{attributes} value="{value}" aria-valuetext="{text}"> '
        f'<output aria-live="off" data-part="{name}-text">{text}</output></label>'
    )


def _plot(
    x: Tensor, y: Tensor, weights: Tensor, answer: float, truth, low: float, high: float
) -> str:
    """Points, query and answer above, the window and its weights below."""

    def height(value: float) -> float:
        return 250 - 240 * (value - low) / (high - low)

    places = torch.linspace(0, 5, 101, dtype=torch.float64)
    curve = _line(
        (_across(place), height(value))
        for place, value in zip(places.tolist(), truth(places).tolist(), strict=True)
    )
    circles = "".join(
        f'<circle cx="{_across(a):.1f}" cy="{height(b):.1f}" r="{3 + 14 * math.sqrt(weight):.1f}"'
        + ("></circle>" if i else ' aria-current="true"></circle>')
        for i, (a, b, weight) in enumerate(zip(*(t.tolist() for t in (x, y, weights)), strict=True))
    )
    shares = (weights / weights.max()).tolist()
    bars = "".join(
        f"M{_across(a):.1f} 345V{345 - 75 * share:.1f}"
        for a, share in zip(x.tolist(), shares, strict=True)
    )
    edge = (
        (_across(place), 345 - 75 * math.exp(-(((place - QUERY) / WIDTH) ** 2) / 2))
        for place in places.tolist()
    )
    ticks = "".join(
        f'<text x="{_across(tick):g}" y="364" text-anchor="middle">{tick}</text>'
        for tick in range(6)
    )
    ticks += "".join(
        f'<text x="28" y="{height(tick) + 5:.1f}" text-anchor="end">{fixed(tick, 0)}</text>'
        for tick in range(low, high + 1)
        if tick % (2 if high - low < 16 else 4) == 0
    )
    return f"""<svg class="cu-live-plot" role="img" aria-label="Points with the fitted curve and one query; below, the \
window and the weights" viewBox="0 0 440 388" data-part="plot" data-low="{low}" data-high="{high}">
<path class="cu-live-axis" d="M34 10V250H430M34 345H430"></path>{ticks}
<text x="2" y="135">y</text><text x="430" y="382" text-anchor="end">x</text>
<text x="22" y="342" transform="rotate(-90 22 342)">weight</text>
<path class="cu-live-truth" d="{curve}"></path>
<path class="cu-live-window" data-part="window" d="{_line(edge)}L430.0 345L34.0 345Z"></path>
<path class="cu-live-bars" data-part="bars" d="{bars}"></path>
<path class="cu-live-query" data-part="query" d="M{_across(QUERY):.1f} 30V345"></path>
<path class="cu-live-fit" data-part="fit" d="M{_across(QUERY):.1f} {height(answer):.1f}"></path>
<g class="cu-live-points" data-part="points">{circles}</g>
<circle class="cu-live-answer" data-part="answer" cx="{_across(QUERY):.1f}" cy="{height(answer):.1f}" r="6"></circle>
<g aria-hidden="true"><path class="cu-live-truth" d="M44 20H70"></path><text x="76" y="25">true curve</text>
<path class="cu-live-fit" d="M160 20H186"></path><circle class="cu-live-answer" cx="173" cy="20" r="6"></circle>
<text x="192" y="25">average</text></g></svg>"""


def _error(x: Tensor, y: Tensor) -> tuple[float, float]:
    """The leave-one-out error at the first width, and its slope in log σ."""
    log_width = torch.tensor(math.log(WIDTH), dtype=x.dtype, requires_grad=True)
    error = leave_one_out_error(x, y, width=log_width.exp())
    error.backward()
    return error.item(), log_width.grad.item()


def _errors(x: Tensor, y: Tensor, error: float) -> str:
    """The leave-one-out error over the widths, and where the width stands."""
    widths = [NARROW * (WIDE / NARROW) ** (i / 60) for i in range(61)]
    errors = [leave_one_out_error(x, y, width=width).item() for width in widths]
    top = max(errors)
    curve = _line(
        (_across_widths(width), 150 - 130 * each / top)
        for width, each in zip(widths, errors, strict=True)
    )
    ticks = "".join(
        f'<text x="{_across_widths(tick):.1f}" y="168" text-anchor="middle">{tick:g}</text>'
        for tick in (0.02, 0.1, 0.4, 1, 4, 10)
    )
    return f"""<svg class="cu-live-plot" role="img" aria-label="Leave-one-out error over the width" \
viewBox="0 0 440 190">
<path class="cu-live-axis" d="M34 14V150H430"></path>{ticks}
<text x="430" y="186" text-anchor="end">width σ</text><text x="28" y="155" text-anchor="end">0</text>
<text x="22" y="110" transform="rotate(-90 22 110)">error</text>
<text x="28" y="24" text-anchor="end" data-part="top">{top:.1f}</text>
<path class="cu-live-errors" data-part="errors" d="{curve}"></path>
<path class="cu-live-fit" data-part="trail" d=""></path>
<circle class="cu-live-answer" data-part="ball" cx="{_across_widths(WIDTH):.1f}" cy="{150 - 130 * error / top:.1f}" \
r="6"></circle></svg>"""
