"""The mean score over the offset: what rotary positions trained on 16 tokens do among more, and what mends them.

The mean of all scores at the offset −i is the product of the mean query, turned by i, and the mean key. Both are
stored; nothing is trained here.
"""

import torch
from matplotlib.axes import Axes

from course_utils.figures import COLORS, subplots
from course_utils.kit.explorer import Choice, Explorer, Slider
from course_utils.kit.runs import StoredRun, stored_runs
from course_utils.lessons.positions.cures import LENGTHS, RETUNED, SEEN
from course_utils.lessons.positions.turning import turn

__all__ = ["cures", "offsets"]

ASKED = 3  # tokens back
DIM = 64
CURES = {
    "none": "trained",
    "untrained offsets get the mean": "levelled",
    "positions / 64": "interpolated",
    "larger base": "larger base",
    "slow pairs / 64": "slow pairs",
}
"""What is chosen → its name in the stored results."""


def offsets() -> Explorer:
    """Mean score over the offset, and what is right, among 16 to 1,024 tokens."""
    return Explorer("offsets", Offsets, {"tokens": Slider(LENGTHS, 16, label="Tokens")})


def cures() -> Explorer:
    """The same after a change to the trained frequencies or scores, all of them made for 1,024 tokens."""
    controls = {
        "cure": Choice(list(CURES), "none", label="Change"),
        "tokens": Slider(LENGTHS, 1024, label="Tokens"),
    }
    return Explorer("cures", Offsets, controls)


class Offsets:
    """A curve over the offsets, those of training shaded, and a bar for each length."""

    def __init__(self):
        """Reads the seed that is the median among 1,024 tokens."""
        self.run = _median(stored_runs("positions", "cured", lowest="val_loss"))
        self.means = [torch.tensor(self.run.curves[name])[:, 1] for name in ("query", "key")]
        self.picture, (left, right) = subplots(
            1, 2, alt="Mean score over the offset, and share right", width=8.5, height=3.0,
            width_ratios=[3, 1],
        )  # fmt: skip
        self.left = left
        self._set_curve(left)
        bars = right.bar(range(len(LENGTHS)), [0.0] * len(LENGTHS), color=COLORS["key"])
        self.bars = list(bars)
        self.texts = [right.text(i, 0, "", ha="center", va="bottom") for i in range(len(LENGTHS))]
        right.set_xticks(range(len(LENGTHS)), [f"{n:,}" for n in LENGTHS])
        right.set(ylim=(0, 1.15), xlabel="tokens", title="share right")

    def _set_curve(self, ax: Axes) -> None:
        ax.axvspan(-(SEEN - 0.5), 0.5, color=COLORS["wash"])
        (self.line,) = ax.plot([], [], "-o", color=COLORS["key"], markersize=2)
        (self.rivals,) = ax.plot([], [], "o", color=COLORS["wrong"], markersize=4)
        self.level = ax.axhline(0, color="0.4", linestyle="--", linewidth=1)
        (self.mark,) = ax.plot([], [], "s", color=COLORS["query"], markersize=7)
        reach = 1.1 * max(self._scores(name).abs().max().item() for name in CURES.values())
        ax.set(ylim=(-reach, reach))
        ax.set(xlabel="offset of the key (shaded: trained)", ylabel="mean score")

    def draw(self, tokens: int, cure: str = "none") -> str:
        """Show the offsets 0 … −(tokens − 1) under one of `CURES`."""
        name = CURES[cure]
        scores = self._scores(name)[:tokens]
        back = torch.arange(tokens)
        best = scores[:SEEN][back[:SEEN] != ASKED].max().item()
        rivals = (scores > best) & (back >= SEEN)
        weight = scores.softmax(dim=0)[ASKED].item()
        self.line.set_data(-back, scores)
        self.line.set_linewidth(min(1.2, 40 / tokens))  # so that 1,024 are no block
        self.rivals.set_data(-back[rivals], scores[rivals])
        self.level.set_ydata([best, best])
        self.mark.set_data([-ASKED], [scores[ASKED]])
        self.left.set_xlim(-tokens * 1.02, tokens * 0.02 + 0.5)
        told = f"untrained offsets above the dashed line: {int(rivals.sum())}"
        self.left.set_title(f"{told}; weight of −{ASKED}: {weight:.2f}")
        shares = [self.run.result[f"{name} {n}"] for n in LENGTHS]
        for n, bar, text, share in zip(LENGTHS, self.bars, self.texts, shares, strict=True):
            bar.set_height(share)
            bar.set_color(COLORS["key"] if n == tokens else COLORS["wash"])
            text.set_text(f"{share:.2f}")
            text.set_y(share)
        changed = "" if cure == "none" else f"{cure}: "
        right = ", ".join(
            f"{share:.2f} among {n:,}" for n, share in zip(LENGTHS, shares, strict=True)
        )
        return (
            f"{changed}mean score over the offset, {tokens:,} tokens. At −{ASKED} it is {scores[ASKED]:.1f}, at the "
            f"best other trained offset {best:.1f}; {told}. With these scores, −{ASKED} has the weight {weight:.2f}. "
            f"Share right: {right}."
        )

    def _scores(self, name: str) -> torch.Tensor:
        """The mean score at each offset 0, −1, …: (1024,)."""
        query, key = self.means
        trained = 10_000.0 ** (-torch.arange(0, DIM, 2) / DIM)
        frequency = RETUNED.get(name, RETUNED["trained"])(trained)
        scores = turn(query.expand(LENGTHS[-1], DIM), frequency) @ key / DIM**0.5
        if name == "levelled":
            scores[SEEN:] = scores[:SEEN].mean()
        return scores


def _median(runs: list[StoredRun]) -> StoredRun:
    """The run whose share among the most tokens lies in the middle."""
    return sorted(runs, key=lambda run: run.result[f"trained {LENGTHS[-1]}"])[len(runs) // 2]
