"""One attention head that is trained in the page, by gradient descent: an adjective learns which noun it belongs to."""

import math
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.kit.live.parts import OURS, dice, percent, table
from course_utils.kit.live.widget import Live

NOUNS = (("cat", "mouse"), ("lemon", "apple"), ("desk", "table"))
"""Three kinds of nouns: masculine in French, and feminine."""

ADJECTIVES = ("hungry", "ripe", "varnished")
"""Each fits the nouns of one kind."""

WORDS = (*(noun for pair in NOUNS for noun in pair), *ADJECTIVES)
SIZES = {"Q": (len(WORDS), 2), "K": (len(WORDS), 2), "V": (len(WORDS), 1)}
COLUMNS = ("q 1", "q 2", "k 1", "k 2", "v")
FIRST = (0, 1, 0)
"""Genders of the nouns that are shown first."""

RATES = ("0.3", "1", "3")
STEPS = 300
DARK = 3
"""A number of this size has the darkest ground."""


class LearnedHead(Live):
    """A live head that learns, shown as the last line of a cell."""

    kind = "learned_head"
    scripts = ("head.js",)

    def form(self) -> str:
        """The widget as HTML in its first state."""
        return self.framed(_content(*self.given), "Live training of a head")


def learned_head(rate: float = 1, seed: int = 0) -> LearnedHead:
    """A head with random matrices that learns, step by step, at which noun an adjective has to look.

    Args:
        rate: of gradient descent; 0.3, 1 or 3.
        seed: of the matrices, from 0 to 99.

    Raises:
        ValueError: `rate` or `seed` is another.
    """
    if f"{rate:g}" not in RATES:
        raise ValueError(f"rate={rate!r}; one of {', '.join(RATES)} is needed")
    if seed not in range(100):
        raise ValueError(f"seed={seed!r}; 0 to 99 are needed")
    return LearnedHead(rate, seed)


def untrained(seed: int) -> dict[str, Tensor]:
    """W_Q, W_K and W_V before the first step: numbers from −1/2 to 1/2, one row for each word."""
    place, matrices = 0, {}
    for name, (rows, columns) in SIZES.items():
        drawn = [dice(seed, place + i) - 0.5 for i in range(rows * columns)]
        matrices[name] = torch.tensor(drawn, dtype=torch.float64).reshape(rows, columns)
        place += rows * columns
    return matrices


def sentences() -> tuple[Tensor, Tensor]:
    """All 24: ids of three nouns and an adjective, (24, 4); and whether its noun is feminine, (24,)."""
    ids, right = [], []
    for adjective in range(len(ADJECTIVES)):
        for number in range(2 ** len(NOUNS)):
            feminine = [number >> kind & 1 for kind in range(len(NOUNS))]
            nouns = [2 * kind + gender for kind, gender in enumerate(feminine)]
            ids.append([*nouns, 2 * len(NOUNS) + adjective])
            right.append(feminine[adjective])
    return torch.tensor(ids), torch.tensor(right, dtype=torch.float64)


def attended(W: dict[str, Tensor], ids: Tensor) -> tuple[Tensor, Tensor]:
    """Weights of the last word, (sentences, 4), and its answer, a logit of feminine."""
    X = F.one_hot(ids, len(WORDS)).double()
    queries, keys, values = X[:, -1:] @ W["Q"], X @ W["K"], X @ W["V"]
    weights = (queries @ keys.mT / math.sqrt(queries.shape[-1])).softmax(dim=-1)
    return weights[:, 0], (weights @ values)[:, 0, 0]


@cache
def uniform_loss() -> float:
    """The least loss of a head whose weights are all 1/4: the three nouns vote with values of one size."""
    ids, right = sentences()
    votes = (2.0 * (ids[:, :3] % 2) - 1).sum(dim=1)
    sizes = torch.arange(0, 4, 0.001, dtype=torch.float64)
    logits = sizes[:, None] * votes
    losses = F.binary_cross_entropy_with_logits(
        logits, right.expand_as(logits), reduction="none"
    ).mean(dim=1)
    return losses.min().item()


# The first state, as HTML: the same as learned_head.js writes --------------------------------------


def _height(loss: float) -> float:
    return 160 - 140 * min(loss, 0.8) / 0.8


def _signed(matrices: dict[str, Tensor]) -> str:
    """The three matrices side by side: blue for positive numbers, orange for negative ones."""
    heads = "".join(f'<th scope="col">{name}</th>' for name in COLUMNS)
    lines = []
    for word, row in zip(WORDS, torch.cat(list(matrices.values()), dim=1).tolist(), strict=True):
        cells = ""
        for x in row:
            share, below = percent(min(abs(x), DARK) / DARK) / 100, ' data-negative=""' * (x < 0)
            cells += f'<td style="--w: {share:g}"{below}>{_number(x)}</td>'
        lines.append(f'<tr><th scope="row">{word}</th>{cells}</tr>')
    return (
        "<table><caption>W_Q, W_K and W_V, a row for each word: its query, its key and its value</caption>"
        f"<thead><tr><th>word</th>{heads}</tr></thead><tbody>{''.join(lines)}</tbody></table>"
    )


def _number(x: float) -> str:
    return f"{'−' if x < 0 else ''}{math.floor(abs(x) * 100 + 0.5) / 100:.2f}"


def _asks(matrices: dict[str, Tensor], chosen: tuple[int, ...]) -> str:
    """What each adjective attends to among the chosen nouns, and what it then says."""
    rows, nouns = [], [2 * kind + feminine for kind, feminine in enumerate(chosen)]
    ids = torch.tensor([[*nouns, 2 * len(NOUNS) + i] for i in range(len(ADJECTIVES))])
    weights, logits = attended(matrices, ids)
    for word, p, gender in zip(ADJECTIVES, logits.sigmoid().tolist(), chosen, strict=True):
        rows.append([word, f"{percent(p)} %", ("no", "yes")[gender]])
    return table(
        "Each adjective asks the nouns and itself: weights in percent, and whether it says feminine",
        ["asks", "feminine", "is it"],
        rows,
        [*(WORDS[noun] for noun in nouns), "itself"],
        weights,
    )


def _content(rate: float, seed: int) -> str:
    matrices = untrained(seed)
    ids, right = sentences()
    _, logits = attended(matrices, ids)
    loss = F.binary_cross_entropy_with_logits(logits, right).item()
    hits = int(((logits > 0) == (right > 0)).sum())
    rates = "".join(
        f"<option{' selected' if each == f'{rate:g}' else ''}>{each}</option>" for each in RATES
    )
    nouns = "".join(
        f'<label><span class="cu-live-label">Noun {kind + 1}</span> <select {OURS} name="noun{kind}">'
        + "".join(
            f'<option value="{i}"{" selected" if i == FIRST[kind] else ""}>{noun}</option>'
            for i, noun in enumerate(pair)
        )
        + "</select></label>"
        for kind, pair in enumerate(NOUNS)
    )
    acts = {"step": "One step", "play": "Play", "again": "Begin again"}
    buttons = " ".join(
        f'<button type="button" {OURS} data-part="{act}">{name}</button>'
        for act, name in acts.items()
    )
    said = f"Step 0: loss {loss:.3f}, {hits} of {len(ids)} sentences right."
    return f"""<p>A sentence is three nouns and an adjective. The adjective needs the French gender of the noun that \
it fits: <q>hungry</q> that of the animal, <q>ripe</q> that of the fruit, <q>varnished</q> that of the furniture. \
The head begins with random matrices.</p>
<div class="cu-live-ask">{buttons}
<label><span class="cu-live-label">Rate</span> <select {OURS} name="rate">{rates}</select></label>
<label><span class="cu-live-label">Seed</span> <input type="number" {OURS} name="seed" min="0" max="99" \
value="{seed}"></label></div>
<label class="cu-live-step"><span class="cu-live-label">Step</span> <input type="range" {OURS} name="step" min="0" \
max="{STEPS}" value="0" aria-valuetext="0 of {STEPS}"> <output aria-live="off" data-part="at">0 of {STEPS}</output>\
</label>
<p aria-live="polite" data-part="said">{said}</p>
<div class="cu-live-beside"><div>{_curve(loss)}
<div class="cu-live-ask">{nouns}</div>
<div class="cu-live-table" role="region" aria-label="Attention of the adjectives" tabindex="0" {OURS} \
data-part="asks">{_asks(matrices, FIRST)}</div></div>
<div class="cu-live-table" role="region" aria-label="The three matrices" tabindex="0" {OURS} data-part="matrices">\
{_signed(matrices)}</div></div>
<p class="cu-live-note">Nothing is stored: your browser computes the gradients of the mean loss over all {len(ids)} \
sentences, and goes one step of gradient descent at a time. The head knows the words by their places in a list only. \
No sentence is held out, so this shows what a head can fit, not what it would do with new words.</p>"""


def _curve(loss: float) -> str:
    """The loss over the steps, and the least that equal weights can reach."""
    uniform = uniform_loss()
    ticks = "".join(
        f'<text x="{40 + 375 * tick / STEPS:g}" y="178" text-anchor="middle">{tick}</text>'
        for tick in (0, 100, 200, 300)
    )
    ticks += "".join(
        f'<text x="34" y="{_height(tick) + 5:g}" text-anchor="end">{tick:g}</text>'
        for tick in (0, 0.4, 0.8)
    )
    place = f"40.0 {_height(loss):.1f}"
    cx, cy = place.split()
    return f"""<svg class="cu-live-plot" role="img" aria-label="Loss over the steps; a line for the least loss with \
equal weights, {uniform:.3f}" viewBox="0 0 440 200">
<path class="cu-live-axis" d="M40 14V160H417"></path>{ticks}
<text x="415" y="196" text-anchor="end">step</text>
<path class="cu-live-truth" d="M40 {_height(uniform):.1f}H415"></path>
<text x="415" y="{_height(uniform) - 6:.1f}" text-anchor="end">equal weights, at best {uniform:.3f}</text>
<path class="cu-live-errors" data-part="curve" d="M{place}"></path>
<circle class="cu-live-answer" data-part="ball" cx="{cx}" cy="{cy}" r="6"></circle></svg>"""
