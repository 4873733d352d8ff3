"""Strings copied through a vector of some numbers; and one feature of a GRU, step by step."""

import math
from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes

from course_utils.figures import COLORS, subplots
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
    """How many strings come out whole, over their length, when C numbers are all that is kept of them."""
    runs = stored_runs("sequence_to_sequence", "copier", lowest="val_loss")
    rooms = sorted({run.config["room"] for run in runs} - {0})
    controls = {"room": Slider(rooms, rooms[0], label="Numbers in the vector, C")}
    caption = "Give the vector more room. How far does it carry?"
    return Explorer("squeezed_context", lambda: Copies(runs), controls, caption=caption)


class Copies:
    """The share of whole strings right over their length, means of seeds: one size, others gray, attention dashed."""

    def __init__(self, runs: Sequence[StoredRun]):
        """A gray line for each size, dotted for that trained longer; one line moves, with a dot for each seed."""
        self.picture, ax = subplots(alt="Copied strings", width=6.4, height=3.4)
        names = [name for name in runs[0].result if name != "val_loss"]
        self.lengths = [int(name.split(", ")[1]) for name in names]
        self.shares: dict[int, np.ndarray] = {}  # a row for each seed
        for room, passes in {(r.config["room"], r.config.get("passes", 0)): None for r in runs}:
            same = [
                r for r in runs if (r.config["room"], r.config.get("passes", 0)) == (room, passes)
            ]
            seeds = np.array([[run.result[name] for name in names] for run in same])
            style: dict[str, str] = {"color": "0.8"}
            if passes:
                style = {
                    "color": "0.4",
                    "linestyle": ":",
                    "label": f"C = {room}, three times as long",
                }
            elif room == 0:
                style = {"color": COLORS["value"], "linestyle": "--", "label": "may look back"}
            else:
                self.shares[room] = seeds
            ax.plot(self.lengths, seeds.mean(axis=0), **style)
        ax.lines[0].set_label("other sizes")
        (self.line,) = ax.plot([], [], "-", color=COLORS["key"])
        (self.dots,) = ax.plot([], [], "o", color=COLORS["key"], markersize=3.5)
        ax.set(
            xlabel="letters in the string", ylabel="whole strings right",
            xticks=self.lengths, ylim=(-0.03, 1.05),
        )  # fmt: skip
        ax.legend(loc="lower left", fontsize=8)
        self.title = ax.set_title("All that is kept of a string: 128 numbers")

    def draw(self, room: int) -> str:
        """The line of one size."""
        seeds = self.shares[room]
        shares = seeds.mean(axis=0)
        self.line.set_data(self.lengths, shares)
        self.dots.set_data(self.lengths * len(seeds), seeds.flatten())
        self.title.set_text(f"All that is kept of a string: {room} numbers")
        listed = ", ".join(
            f"{n}: {share:.2f}" for n, share in zip(self.lengths, shares, strict=True)
        )
        spread = seeds.max(axis=0) - seeds.min(axis=0)
        return (
            f"A vector of {room} numbers; share of whole strings right by letters, mean of {len(seeds)} seeds that lie "
            f"{spread.max():.2f} apart at most: {listed}. A dashed line stays near 1: a decoder that may look back at "
            "the string."
        )
