"""Heads as a widget: the reader's own look-ups in a cabinet of eight drawers, by weights that are written down."""

import math

import torch
from torch import Tensor

from course_utils.kit.live.parts import (
    OURS,
    fixed,
    percent,
    radios,
    table,
)
from course_utils.kit.live.widget import Live

DRAWERS = "ABCDEFGH"
MOST = 4
"""Letters of a request, and heads."""

SHARPNESS = 30
BALLS = "10110010"
"""What the drawers hold first: 1 for white."""


class Heads(Live):
    """Live look-ups by heads, shown as the last line of a cell."""

    kind = "heads"

    def form(self) -> str:
        """The widget as HTML in its first state."""
        return self.framed(_content(*self.given), "Live heads")


def heads(request: str = "CF", num_heads: int = 2) -> Heads:
    """One attention by hand: ask for one to four drawers, with one to four heads.

    Args:
        request: one to four different letters from A to H.
        num_heads: from 1 to 4.

    Raises:
        ValueError: the request or the number of heads is another.
    """
    if not 1 <= len(request) <= MOST or len(set(request)) < len(request) or set(request) - {*DRAWERS}:  # fmt: skip
        raise ValueError(f"request={request!r}; one to four different letters from A to H are needed")  # fmt: skip
    if num_heads not in range(1, MOST + 1):
        raise ValueError(f"num_heads={num_heads!r}; 1 to 4 are needed")
    return Heads(request, num_heads)


def weights_of(request: str, num_heads: int, sharpness: float) -> Tensor:
    """(heads, drawers): look-up j is done by head j mod h; its drawers have the score sharpness / √8, the others 0."""
    scores = torch.zeros(num_heads, len(DRAWERS), dtype=torch.float64)
    for place, letter in enumerate(request):
        scores[place % num_heads, DRAWERS.index(letter)] = sharpness / math.sqrt(len(DRAWERS))
    return scores.softmax(dim=1)


def answers_of(request: str, num_heads: int, numbers: Tensor) -> Tensor:
    """What a linear readout makes of the heads' numbers: (fillings, heads) → (fillings, look-ups), True for white.

    Of r look-ups that share a head, number t is white if more than t of them are.
    """
    said = []
    for place in range(len(request)):
        head = place % num_heads
        shared = len(range(head, len(request), num_heads))
        cut = (2 * (place // num_heads) + 1 - shared) / shared
        said.append(numbers[:, head] > cut)
    return torch.stack(said, dim=1)


def shares_of(request: str, num_heads: int, sharpness: float) -> tuple[list[float], float]:
    """Over all 256 fillings: how often each answer is right, and how often all are."""
    balls = torch.cartesian_prod(*[torch.tensor([1.0, -1.0], dtype=torch.float64)] * len(DRAWERS))
    said = answers_of(request, num_heads, balls @ weights_of(request, num_heads, sharpness).T)
    right = said == (balls[:, [DRAWERS.index(letter) for letter in request]] > 0)
    return right.double().mean(dim=0).tolist(), right.all(dim=1).double().mean().item()


def most_right(k: int, num_heads: int) -> float:
    """No linear readout of so many numbers is right about all k in a larger share of the cases."""
    return sum(math.comb(k, i) for i in range(min(k, num_heads) + 1)) / 2**k


# The first state, as HTML: the same as heads.js writes --------------------------------------------


def _content(request: str, num_heads: int) -> str:
    counts = radios("heads", {h: str(h) for h in range(1, MOST + 1)}, num_heads)
    balls = " ".join(
        f'<button type="button" {OURS} data-ball="{i}">{letter} {_color(BALLS[i] == "1")}</button>'
        for i, letter in enumerate(DRAWERS)
    )
    colors = torch.tensor([[1.0 if ball == "1" else -1.0 for ball in BALLS]], dtype=torch.float64)
    weights = weights_of(request, num_heads, SHARPNESS)
    numbers = colors @ weights.T
    rows = [
        [str(head), request[head::num_heads] or "–", fixed(numbers[0, head].item(), 2)]
        for head in range(num_heads)
    ]
    maps = table(
        "Weights of each head on the drawers, in percent",
        ["head", "asks for", "returns"],
        rows,
        list(DRAWERS),
        weights,
    )
    answers = answers_of(request, num_heads, numbers)[0].tolist()
    return f"""<p>Ask for one to four drawers, and give the layer one to four heads. Click on a drawer to change its \
ball.</p>
<input type="hidden" name="balls" value="{BALLS}">
<div class="cu-live-ask"><label><span class="cu-live-label">Request</span> <input type="text" {OURS} name="request" \
value="{request}" maxlength="{MOST}" size="5" spellcheck="false" autocapitalize="characters"></label>
<fieldset class="cu-live-kinds"><legend>Heads</legend> {counts}</fieldset>
<label class="cu-live-slider"><span class="cu-live-label">Number in W_Q</span> <input type="range" {OURS} \
name="sharpness" min="0" max="60" step="1" value="{SHARPNESS}"> <output aria-live="off" data-part="sharpness">\
{SHARPNESS}</output></label></div>
<p class="cu-live-examples" data-part="balls">Drawers: {balls}</p>
<div class="cu-live-table" role="region" aria-label="Weights of the heads" tabindex="0" {OURS} data-part="table">\
{maps}</div>
<div aria-live="polite"><p data-part="said">{_said(request, BALLS, answers)}</p>
<p data-part="shares">{_shares(request, num_heads)}</p></div>
<p class="cu-live-note">Nothing is trained here: the weights and the readout are written down. The balls are white, \
+1, or black, −1, and the keys do not show them.</p>"""


def _color(white: bool) -> str:
    return "white" if white else "black"


def _said(request: str, balls: str, answers: list[bool]) -> str:
    parts = []
    for letter, white in zip(request, answers, strict=True):
        right = white == (balls[DRAWERS.index(letter)] == "1")
        parts.append(f"{letter} {_color(white)}{'' if right else ' (wrong)'}")
    return f"The readout says: {', '.join(parts)}."


def _shares(request: str, num_heads: int) -> str:
    each, every = shares_of(request, num_heads, SHARPNESS)
    listed = ", ".join(
        f"{letter} {percent(share)} %" for letter, share in zip(request, each, strict=True)
    )
    most = percent(most_right(len(request), num_heads))
    return (
        f"Over all 256 fillings, right: {listed}; all at once {percent(every)} %. "
        f"No linear readout of as many heads has more than {most} %."
    )
