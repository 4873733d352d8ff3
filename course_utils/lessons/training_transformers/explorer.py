"""Peak rate and warm-up steps, and what became of both orders of norm.

Every training was done beforehand; `runs` of this lesson reads them.
"""

import numpy as np
from matplotlib.axes import Axes

from course_utils.figures import COLORS, subplots
from course_utils.kit.explorer import Explorer, Slider
from course_utils.lessons.training_transformers.runs import load_training_runs

__all__ = ["warmup"]

RATES = (1.5e-3, 3e-3, 6e-3, 1.2e-2)
WARMUPS = (0, 10, 50, 100)
STEPS, PER_LOSS = 280, 14
DRAWN = {False: ("norm after", "-", "o", "key"), True: ("norm before", "--", "s", "query")}


def warmup(runs: list[dict] | None = None) -> Explorer:
    """Rate, training loss and validation BLEU over the steps of one training, for both orders of norm.

    Args:
        runs: as `load_training_runs` gives them, its result by default.

    Raises:
        ValueError: a combination of rate, warm-up and order is missing.
    """
    trainings = _plain_runs(load_training_runs() if runs is None else runs)
    needed = [(o, rate, w) for o in DRAWN for rate in RATES for w in WARMUPS]
    if missing := [key for key in needed if key not in trainings]:
        raise ValueError(f"runs lacks (norm_first, lr, warmup) = {missing[0]} with seed 0")
    controls = {
        "lr": Slider(RATES, 6e-3, label="Peak rate", format="{:g}"),
        "warmup": Slider(WARMUPS, 0, label="Warm-up steps"),
    }
    caption = "One training for each setting, seed 0, run beforehand."
    return Explorer("warmup", lambda: Curves(trainings), controls, caption=caption)


class Curves:
    """The rate over the steps, and the loss and the BLEU of both orders."""

    def __init__(self, runs: dict[tuple, dict]):
        """`runs` by (order, rate, warm-up)."""
        self.runs = runs
        self.picture, axes = subplots(
            1, 3, alt="Rate, training loss and BLEU over the steps", width=8.5, height=3.0
        )
        self._set_rate(axes[0])
        self._set_results(*axes[1:])

    def _set_rate(self, ax: Axes) -> None:
        self.steps = np.arange(1, STEPS + 1)
        (self.rate,) = ax.plot(self.steps, self.steps, "-", color="black")
        ax.set(xlim=(0, STEPS), ylim=(0, 15), xlabel="step", title="Learning rate × 1000")

    def _set_results(self, left: Axes, right: Axes) -> None:
        self.losses, self.scores = {}, {}
        middles = PER_LOSS * (np.arange(STEPS // PER_LOSS) + 0.5)
        for order, (label, dash, marker, color) in DRAWN.items():
            style = {"color": COLORS[color], "label": label, "markersize": 4}
            (self.losses[order],) = left.plot(middles, middles, dash, **style)
            (self.scores[order],) = right.plot(range(6), range(6), dash + marker, **style)
        left.set(xlim=(0, STEPS), ylim=(0, 6), xlabel="step", title="Training loss")
        right.set(xlim=(0, 5.15), ylim=(-0.03, 1), xlabel="epoch", title="Validation BLEU")
        left.legend(loc="upper right")

    def draw(self, lr: float, warmup: int) -> str:
        """Show the trainings with this peak rate and so many steps of warm-up."""
        self.rate.set_ydata([1000 * lr * factor(step, warmup) for step in self.steps])
        results = []
        for order, (label, *_) in DRAWN.items():
            run = self.runs[order, lr, warmup]
            bleu = [0.0, *(value for _, value in run["curves"]["bleu"])]
            self.losses[order].set_ydata([value for _, value in run["curves"]["loss"]])
            self.scores[order].set_ydata(bleu)
            results.append(f"with the {label}, BLEU {bleu[-1]:.2f}")
        ramp = f"{warmup} steps of warm-up" if warmup else "no warm-up"
        return f"Peak rate {lr:g}, {ramp}: {' and '.join(results)} after 5 epochs."


def factor(step: int, warmup: int) -> float:
    """The chapter's schedule: a rise, 1, and from the end of the rise, or step 50, a fall as 1/√step."""
    return min(1.0, step / max(warmup, 1), (max(warmup, 50) / step) ** 0.5)


def _plain_runs(runs: list[dict]) -> dict[tuple, dict]:
    """The runs on all sentences with seed 0 and nothing special, by order, rate and warm-up."""
    plain = {"seed": 0, "label_smoothing": 0.0, "shortcut": "", "sentences": 3253}
    return {
        (run["norm_first"], run["lr"], run["warmup"]): run
        for run in runs
        if all(run[name] == value for name, value in plain.items())
    }
