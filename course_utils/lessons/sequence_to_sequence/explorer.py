"""The two explorers of *Sequence to sequence*: one feature of a GRU, and strings copied through a vector of numbers.

`beside_the_stored` draws a reader's training over the curves of the second.
"""

import math
from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes

from course_utils.figures import COLORS, Picture, subplots
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import StoredRun, stored_runs
from course_utils.lessons.sequence_to_sequence.strings import COPIED, OPENING

__all__ = ["gated_memory", "squeezed_context"]

# One feature of a GRU -----------------------------------------------------------------------------

INITIAL_STATE = 0.9
"""The state before the first word."""
INPUTS = (-1.6, 0.4, -0.7, 1.2, -0.9, 0.8, -1.4, 0.5, -0.6, 1.0)
"""x W_n of each of the ten words: what its embedding adds to the proposal."""
U_N = 1.5
"""How strongly an open reset gate lets the old state into the proposal."""
STEPS = len(INPUTS)
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

    def __init__(self) -> None:
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
        states, proposals = [INITIAL_STATE], []
        for from_word in INPUTS:
            from_state = U_N * states[-1] if reset == OPEN else 0.0
            proposals.append(math.tanh(from_word + from_state))
            states.append((1 - update) * proposals[-1] + update * states[-1])
        of_words = [(1 - update) * update ** (step - t) for t in range(1, step + 1)]
        shares = [update**step, *of_words, *[0.0] * (STEPS - step)]
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


# Strings copied through a vector ----------------------------------------------------------------

ROOM = 128
"""How many numbers the vector of the first screen has."""
EPOCHS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96)
"""Those that the slider offers."""
TICKS = (1, 2, 4, 8, 16, 32, 64)
STYLES = {
    0: {"color": COLORS["value"], "linestyle": "--"},
    16: {"color": "0.7", "linewidth": 1},
    ROOM: {"color": COLORS["key"]},
}
"""Lines of the curves, by how many numbers the vector has; 0 is the decoder that looks back."""
LABELS = {0: "looks back", 16: "a vector of 16 numbers", ROOM: f"a vector of {ROOM} numbers"}
COLUMNS = 13
"""Letters of a copy that the picture has room for."""
MISSING = "·"
"""The sign for a letter that the string has and its copy lacks."""


def squeezed_context() -> Explorer:
    """Copies of the chapter's first string in two trainings, through a vector and by looking back, and both curves."""
    runs = _long_trainings()
    vector, back = _copies_by_epochs(runs[ROOM]), _copies_by_epochs(runs[0])
    controls = {
        "epochs": Slider([n for n in vector if n in EPOCHS], 1, label="Epochs of training"),
        "letters": Slider((6, 8, 10, 12), 12, label="Letters of the string"),
    }
    caption = "Train longer. Which of the two has learned to copy the string?"
    return Explorer(
        "squeezed_context", lambda: Copies(runs, vector, back), controls, caption=caption
    )


class Copies:
    """A string with its copies, wrong letters marked, and the accuracy on whole strings up to this epoch."""

    def __init__(
        self,
        runs: Mapping[int, Sequence[StoredRun]],
        vector: Mapping[int, list[str]],
        back: Mapping[int, list[str]],
    ):
        """Empty rows for a string and its copies, and empty axes for the curves.

        Args:
            runs: how many numbers the vector has, 0 for the look back → runs.
            vector, back: epochs → the copies of OPENING's beginnings, through a vector and by looking back.
        """
        self.runs, self.vector, self.back = runs, vector, back
        self.picture, (left, right) = subplots(
            1, 2, alt="A string and its copies", width=7.9, height=3.4, width_ratios=[1.15, 1]
        )
        self._set_letters(left)
        self._set_curves(right)

    def _set_letters(self, ax: Axes) -> None:
        ax.set(xlim=(-0.6, COLUMNS - 0.4), ylim=(6.1, 0.9), xticks=[], yticks=[])
        ax.spines[:].set_visible(False)
        self.rows, self.heads = [], []
        for row in (0, 2, 4):
            self.heads.append(ax.text(-0.4, row - 0.1, "", fontsize=10, color="0.35"))
            self.rows.append(
                [
                    ax.text(at, row + 0.8, "", ha="center", va="center", fontsize=15, family="monospace")
                    for at in range(COLUMNS)
                ]
            )  # fmt: skip

    def _set_curves(self, ax: Axes) -> None:
        self.lines = {
            room: [ax.plot([], [], marker="o", ms=3, **STYLES[room])[0] for _ in self.runs[room]]
            for room in (0, ROOM)
        }
        for room, lines in self.lines.items():
            lines[0].set_label(LABELS[room])
        self.here = ax.axvline(1, color="0.8", linewidth=5, zorder=0)
        ax.set(xlabel="epochs of training", ylabel="accuracy, whole strings", ylim=(-0.03, 1.05))
        ax.set_xscale("log", base=2)
        ax.set_xlim(0.9, 110)
        ax.set_xticks(TICKS, TICKS)
        ax.minorticks_off()
        ax.legend(loc="lower left", bbox_to_anchor=(-0.02, 1.0), fontsize=8, borderaxespad=0.2)

    def draw(self, epochs: int, letters: int) -> str:
        """Show the string and its copies after `epochs`, and the curves so far for strings of `letters` letters."""
        at = COPIED.index(letters)
        done = min(epochs, max(self.back))  # the look back has been trained for less
        string, copy, looked = OPENING[:letters], self.vector[epochs][at], self.back[done][at]
        trained = f"{epochs} {'epoch' if epochs == 1 else 'epochs'}"
        written = f"written after {trained}"
        heads = (
            "read",
            f"{written}, from {ROOM} numbers",
            f"written after {done}, looking back" if done < epochs else f"{written}, looking back",
        )
        for row, text in enumerate((string, copy, looked)):
            self.heads[row].set_text(heads[row])
            for position, cell in enumerate(self.rows[row]):
                wanted, letter = string[position : position + 1], text[position : position + 1]
                right = wanted == letter
                cell.set_text(letter or ("" if right else MISSING))
                cell.set_color("0.1" if right else COLORS["wrong"])
                cell.set_fontweight("normal" if right else "bold")
        ends = {}
        for room, lines in self.lines.items():
            for line, run in zip(lines, self.runs[room], strict=True):
                line.set_data(*zip(*_until(run, letters, epochs), strict=True))
            ends[room] = _mean_accuracy(self.runs[room], letters, epochs)
        self.here.set_xdata([epochs, epochs])
        return (
            f"After {trained} the string {string} comes out of {ROOM} numbers as {copy}, and of a decoder that looks "
            f"back as {looked}. On random strings of {letters} letters, copied whole, the accuracy is then "
            f"{ends[ROOM]:.2f} with {ROOM} numbers and {ends[0]:.2f} with looking back."
        )


def _long_trainings() -> dict[int, list[StoredRun]]:
    """The trainings of each room at its best rate, three seeds each."""
    runs = stored_runs("sequence_to_sequence", "learning_to_copy", lowest="val_loss")
    return {room: [run for run in runs if run.config["room"] == room] for room in STYLES}


def _copies_by_epochs(runs: Sequence[StoredRun]) -> dict[int, list[str]]:
    """Epochs → the copies then of OPENING's beginnings; one of the runs has them."""
    examples = [example for run in runs for example in run.examples]
    return {example["passes"]: example["copies"] for example in examples}


def _until(run: StoredRun, letters: int, epochs: int) -> list[list[float]]:
    """The points [epochs, accuracy] of a training until then, for strings of this length."""
    return [point for point in run.curves[f"right, {letters}"] if point[0] <= epochs]


def _mean_accuracy(runs: Sequence[StoredRun], letters: int, epochs: int) -> float:
    """The accuracy on whole strings after `epochs`, as last measured: a mean over the seeds."""
    return float(np.mean([_until(run, letters, epochs)[-1][1] for run in runs]))


def beside_the_stored(shares: Mapping[int, list[list[float]]], label: str) -> Picture:
    """The curves of a reader's copier over the stored ones, for strings of 6 and of 12 letters.

    Args:
        shares: length → points [epochs, accuracy on whole strings].
        label: what the reader's copier is called.
    """
    runs = _long_trainings()
    picture, axes = subplots(
        1, 2,
        alt=f"Accuracy on whole strings over the epochs, for 6 letters and for 12: {label}, beside the stored "
        "curves. Looking back is near 1 within eight epochs at both lengths. The vectors follow soon for 6 letters and "
        "late for 12.",
        width=7.9, height=3.0, sharey=True,
    )  # fmt: skip
    for ax, letters in zip(axes, (6, 12), strict=True):
        for room, style in STYLES.items():
            for run in runs[room]:
                name = LABELS[room] if run is runs[room][0] else None
                ax.plot(*zip(*run.curves[f"right, {letters}"], strict=True), **style, label=name)
        mine = zip(*shares[letters], strict=True)
        ax.plot(*mine, "-o", ms=4, color=COLORS["query"], label=label, zorder=3)
        ax.set(title=f"{letters} letters", xlabel="epochs of training", ylim=(-0.03, 1.05))
        ax.set_xscale("log", base=2)
        ax.set_xticks(TICKS, TICKS)
        ax.minorticks_off()
    axes[0].set_ylabel("accuracy, whole strings")
    axes[0].legend(fontsize=8, loc="lower right")
    return picture
