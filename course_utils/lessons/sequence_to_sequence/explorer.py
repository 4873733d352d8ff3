"""Strings copied through a vector of some numbers; and one feature of a GRU, step by step."""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from course_utils.figures import COLORS, Picture, subplots
from course_utils.kit.explorer import Choice, Explorer, Slider
from course_utils.kit.runs import StoredRun, stored_runs

__all__ = ["gated_memory", "squeezed_context"]

OLD = 0.9
"""The state before the first word."""
PUSHES = (-1.6, 0.4, -0.7, 1.2, -0.9, 0.8, -1.4, 0.5, -0.6, 1.0)
"""What the embedding of each of the ten words, times W_n, gives."""
BACK = 1.5
"""U_n: how strongly an open reset gate lets the old state into the proposal."""
STEPS = len(PUSHES)
GATES = (0.0, 0.25, 0.5, 0.75, 0.95, 1.0)
SHUT, OPEN = "0: ignores it", "1: sees it"


def gated_memory() -> Explorer:
    """Ten steps of one feature with the same gates at each, and the shares of its state after any of them."""
    controls = {
        "update": Slider(GATES, 0.5, label="Update gate z", format="{:g}"),
        "reset": Choice((SHUT, OPEN), SHUT, label="Reset gate r: old state"),
        "step": Slider((1, 2, 3, 5, 7, STEPS), STEPS, label="Step"),
    }
    caption = "How long does the old state last? And the first word?"
    return Explorer("gated_memory", Memory, controls, caption=caption)


class Memory:
    """The state over the steps with its proposals, and the shares of the state after one of them."""

    def __init__(self):
        """Empty axes for ten steps, and a bar for the old state and for each word."""
        self.picture, (left, right) = subplots(
            1, 2, alt="State and shares", width=8.2, height=3.2, width_ratios=[1.5, 1]
        )
        self._set_states(left)
        self._set_shares(right)

    def _set_states(self, ax: Axes) -> None:
        steps = np.arange(STEPS + 1)
        self.here = ax.axvline(STEPS, color="0.75", linewidth=6, zorder=0)
        ax.axhline(0, color="0.8", linewidth=0.8, zorder=0)
        (self.state,) = ax.plot(steps, np.zeros(STEPS + 1), "-o", color=COLORS["key"])
        (self.proposals,) = ax.plot(
            steps[1:], np.zeros(STEPS), "^", color=COLORS["wrong"], markersize=7
        )
        self.state.set_label("state h")
        self.proposals.set_label("proposal n of the word")
        ax.set(
            xlabel="step", ylabel="value", xlim=(-0.4, STEPS + 0.4), ylim=(-1.5, 1.08),
            xticks=range(STEPS + 1), yticks=[-1, 0, 1], title="One feature, step by step",
        )  # fmt: skip
        ax.legend(loc="lower center", ncols=2, fontsize=8)

    def _set_shares(self, ax: Axes) -> None:
        places = range(STEPS + 1)
        colors = [COLORS["query"], *[COLORS["key"]] * STEPS]
        self.bars = ax.barh(places, [0.0] * (STEPS + 1), color=colors, height=0.7)
        self.texts = [ax.text(0, row, "", va="center", fontsize=8) for row in places]
        ax.set(xlim=(0, 1.16), xticks=[0, 0.5, 1], ylim=(STEPS + 0.6, -0.6), xlabel="share")
        ax.set_yticks(places, ["old state", *(f"word {row}" for row in places[1:])], fontsize=8)
        self.title = ax.set_title("The state after step 10")

    def draw(self, update: float, reset: str, step: int) -> str:
        """Run ten steps with these gates; the bars are of the state after `step`."""
        states, proposals = [OLD], []
        for push in PUSHES:
            seen = BACK * states[-1] if reset == OPEN else 0.0
            proposals.append(math.tanh(push + seen))
            states.append((1 - update) * proposals[-1] + update * states[-1])
        shares = [update**step, *((1 - update) * update ** (step - t) for t in range(1, step + 1))]
        shares += [0.0] * (STEPS - step)
        self.state.set_ydata(states)
        self.proposals.set_ydata(proposals)
        self.here.set_xdata([step, step])
        for row, (bar, text, share) in enumerate(zip(self.bars, self.texts, shares, strict=True)):
            bar.set_width(share)
            text.set_x(share + 0.02)
            text.set_text(f"{share:.3f}" if row <= step else "not read yet")
        self.title.set_text(f"The state after step {step}: {states[step]:.2f}".replace("-", "−"))
        sees = "sees" if reset == OPEN else "ignores"
        return (
            f"Update gate {update:g} at every step; the proposal {sees} the old state. After step {step} the "
            f"state is {states[step]:.2f}: {shares[0]:.3f} of it is the old state, {shares[1]:.3f} the "
            f"proposal of word 1, {shares[step]:.3f} that of word {step}, the last one read."
        )


def squeezed_context() -> Explorer:
    """The chapter's first string through a vector of C numbers, and how many strings come out whole by length."""
    runs = stored_runs("sequence_to_sequence", "copier", lowest="val_loss")
    written = {
        (run.config["room"], len(example["string"])): (example["string"], example["copy"])
        for run in stored_runs("sequence_to_sequence", "opening_string")
        for example in run.examples
    }
    rooms = sorted({room for room, _ in written} - {0})
    lengths = sorted({length for _, length in written})
    controls = {
        "room": Slider(rooms, rooms[0], label="Numbers in the vector, C"),
        "letters": Slider(lengths, lengths[-1], label="Letters of the string"),
    }
    caption = "Give the vector more room, or shorten the string. When does the copy come out whole?"
    return Explorer("squeezed_context", lambda: Copies(runs, written), controls, caption=caption)


class Copies:
    """A string with its copies, wrong letters marked; and the share of whole strings right over their length."""

    def __init__(
        self,
        runs: Sequence[StoredRun],
        written: dict[tuple[int, int], tuple[str, str]],
    ):
        """Takes the runs behind the curves, and (room, letters) → the string and its copy; room 0 looks back."""
        self.written = written
        self.picture, (left, right) = subplots(
            1, 2, alt="A string and its copies", width=7.9, height=3.4, width_ratios=[1.15, 1]
        )
        self._set_letters(left)
        self._set_curves(right, runs)

    def _set_letters(self, ax: Axes) -> None:
        ax.set(xlim=(-0.6, SHOWN - 0.4), ylim=(6.1, 0.9), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        self.rows, self.heads = [], []
        for row in (0, 2, 4):
            self.heads.append(ax.text(-0.4, row - 0.1, "", fontsize=10, color="0.35"))
            self.rows.append(
                [
                    ax.text(at, row + 0.8, "", ha="center", va="center", fontsize=15, family="monospace")
                    for at in range(SHOWN)
                ]
            )  # fmt: skip

    def _set_curves(self, ax: Axes, runs: Sequence[StoredRun]) -> None:
        self.shares = mean_shares(runs)
        for room, shares in self.shares.items():
            ax.plot(*zip(*shares.items(), strict=True), **curve_style(room))
        ax.lines[0].set_label("other sizes")
        (self.line,) = ax.plot([], [], "-", color=COLORS["key"], linewidth=2)
        (self.here,) = ax.plot([], [], "o", color=COLORS["key"], markersize=9)
        ax.set(
            xlabel="Letters in the string", ylabel="Strings copied whole",
            xticks=list(self.shares[0, 4]), ylim=(-0.03, 1.05),
        )  # fmt: skip
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=8, borderaxespad=0.2)

    def draw(self, room: int, letters: int) -> str:
        """The string and its copies, and the curve of one size with a point at this length."""
        string, copy = self.written[room, letters]
        looked = self.written[0, letters][1]
        heads = ("read", f"written from {room} numbers", "written by a decoder that may look back")
        for head, text, row, cells in zip(
            self.heads, heads, (string, copy, looked), self.rows, strict=True
        ):
            head.set_text(text)
            for at, cell in enumerate(cells):
                right = string[at : at + 1] == row[at : at + 1]
                cell.set_text(row[at : at + 1] or ("" if right else MISSING))
                cell.set_color("0.1" if right else COLORS["wrong"])
                cell.set_fontweight("normal" if right else "bold")
        shares = self.shares[room, 4]
        self.line.set_data(list(shares), list(shares.values()))
        self.here.set_data([letters], [shares[letters]])
        listed = ", ".join(f"{length}: {share:.2f}" for length, share in shares.items())
        return (
            f"The string {string} comes out of {room} numbers as {copy}, of a decoder that may look back as {looked}. "
            f"Strings copied without a mistake by {room} numbers, over their letters: {listed}. The dashed line of the "
            "decoder that may look back stays near 1."
        )


SHOWN = 13
"""Letters of a copy that fit the picture."""
MISSING = "·"
"""In the place of a letter that a copy lacks."""


def mean_shares(runs: Sequence[StoredRun]) -> dict[tuple[int, int], dict[int, float]]:
    """(room, passes) → length → the share of strings copied without a mistake, a mean over the seeds."""
    of_variant: dict[tuple[int, int], list[dict[str, float]]] = {}
    for run in runs:
        variant = run.config["room"], run.config.get("passes", 4)
        of_variant.setdefault(variant, []).append(run.result)
    names = [name for name in runs[0].result if name.startswith("right")]
    return {
        variant: {
            int(name.split(", ")[1]): float(np.mean([result[name] for result in results]))
            for name in names
        }
        for variant, results in of_variant.items()
    }


def curve_style(variant: tuple[int, int]) -> dict[str, str]:
    """The look of a curve: gray for a vector, dotted if it has trained for longer, dashed for a look back."""
    room, passes = variant
    if room == 0:
        return {"color": COLORS["value"], "linestyle": "--", "label": "may look back"}
    if passes > 4:
        label = f"{room} numbers, {passes // 4} times the training"
        return {"color": "0.45", "linestyle": ":", "label": label}
    return {"color": "0.8"}


def beside_the_stored(shares: Mapping[int, float], label: str) -> Picture:
    """The curve of a copier, by the length of its strings, over those of the first screen."""
    stored = mean_shares(stored_runs("sequence_to_sequence", "copier", lowest="val_loss"))
    picture, ax = subplots(
        alt=f"Strings copied without a mistake, over their letters: {label}, falls with the stored curves of 4 to "
        "128 numbers, while the dashed line of a decoder that may look back stays near 1.",
        width=6.2,
        height=3.1,
    )
    for variant, curve in stored.items():
        ax.plot(*zip(*curve.items(), strict=True), **curve_style(variant))
    ax.lines[0].set_label("4 to 128 numbers, stored")
    ax.plot(*zip(*shares.items(), strict=True), "-o", color=COLORS["query"], label=label)
    ax.set(
        xlabel="Letters in the string", ylabel="Strings copied whole",
        xticks=list(shares), ylim=(-0.03, 1.05),
    )  # fmt: skip
    ax.legend(loc="lower left", fontsize=8)
    return picture
