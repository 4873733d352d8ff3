"""The explorers of *Training transformers*: a training that breaks, and peak rate and warm-up for both orders of norm.

They show stored runs, of `breaking` and of `runs`.
"""

import itertools

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import StoredRun, stored_runs
from course_utils.lessons.training_transformers.breaking import BREAK, END, NOTICED
from course_utils.lessons.training_transformers.runs import found, load_training_runs
from course_utils.lessons.training_transformers.small_spanish import PER_LOSS, STEPS, rate

__all__ = ["broken", "warmup"]

RATES = (1.5e-3, 3e-3, 6e-3, 1.2e-2)
WARMUPS = (0, 10, 50, 100)
ORDERS = {False: ("norm after", "-", "o", "key"), True: ("norm before", "--", "s", "query")}

WAYS = {
    "keep it as planned": "keep",
    "set it to 0.03": "high",
    "0.03 for 56 steps, then as planned": "lower",
    "the same, but back to the file of step 168": "file",
}
"""What may be done with the rate from step 168 on → the name of that branch in the stored run."""
SEEDS = {"0": 0, "1": 1, "2": 2}
SENTENCES = (0, 1, 2, 6)
"""Places of the stored translations that are shown."""


def broken() -> Explorer:
    """Loss and BLEU of a training up to step 336, and what it says at the end, for four ways on from step 168."""
    by_seed = {run.config["seed"]: run for run in stored_runs("training_transformers", "broken")}
    controls = {
        "way": Choice(WAYS, "keep", label="The learning rate from step 168 on"),
        "seed": Choice(SEEDS, 0, label="Training"),
    }
    caption = "Where the lines are red, the learning rate is 0.03."
    return Explorer("broken", lambda: Broken(by_seed), controls, caption=caption)


class Broken:
    """The curves of one training up to the break and after it, and four translations at its end."""

    def __init__(self, by_seed: dict[int, StoredRun]):
        """`by_seed` has the stored training for each seed."""
        self.by_seed = by_seed
        self.picture, axes = subplots(
            1, 3, alt="A training that breaks", width=8.8, height=3.0, width_ratios=[1, 1, 1.15]
        )
        limits = {"loss": (0, 6), "bleu": (-0.03, 1)}
        titles = {"loss": "Training loss", "bleu": "Validation BLEU"}
        self.lines: dict[tuple, Line2D] = {}
        for ax, kind in zip(axes[:2], titles, strict=True):
            ax.axvline(BREAK, color=COLORS["line"], linewidth=0.8, linestyle=":")
            for part, color in (("before", "ink"), ("high", "query"), ("after", "key")):
                (self.lines[kind, part],) = ax.plot([], [], "-", color=COLORS[color])
            ax.set(xlim=(0, END), ylim=limits[kind], xlabel="step", title=titles[kind])
            ax.set_xticks([0, BREAK, NOTICED, END])
        axes[2].set(xlim=(0, 1), ylim=(0, 1), title="What it says after step 336")
        axes[2].set(xticks=[], yticks=[])
        axes[2].spines[:].set_visible(False)
        self.words = []
        for row, place in enumerate(SENTENCES):
            top = 0.97 - 0.26 * row
            english = by_seed[0].examples[place]["source"]
            axes[2].text(0.02, top, english, va="top", color=COLORS["muted"])
            self.words.append(axes[2].text(0.06, top - 0.1, "", va="top"))

    def draw(self, way: str, seed: int) -> str:
        """Show the training with this seed, and what became of it."""
        run = self.by_seed[seed]
        for kind in ("loss", "bleu"):
            before = [[0, 0.0]] * (kind == "bleu") + run.curves[f"start, {kind}"]
            high = run.curves[f"high, {kind}"]
            jumped = [point for point in high if point[0] <= NOTICED]
            parts = {
                "before": before,
                "high": [] if way == "keep" else [before[-1], *(high if way == "high" else jumped)],
                "after": [],
            }
            if way != "high":
                last = before[-1] if way == "keep" else jumped[-1]
                parts["after"] = [last, *run.curves[f"{way}, {kind}"]]
            for part, points in parts.items():
                self.lines[kind, part].set_data(
                    [step for step, _ in points], [y for _, y in points]
                )
        translations = [run.examples[place][way] for place in SENTENCES]
        for text, translation in zip(self.words, translations, strict=True):
            text.set_text(translation or "(nothing)")
            text.set_color(COLORS["ink" if translation else "query"])
        at_break, at_end = run.curves["start, bleu"][-1][1], run.result[f"{way}, bleu"]
        shown = ", ".join(f"“{translation}”" for translation in translations if translation)
        return (
            f"BLEU is {at_break:.2f} at step {BREAK} and {at_end:.2f} at step {END}, where the loss is "
            f"{run.result[f'{way}, loss']:.2f} and the model says {shown or 'nothing'}."
        )


def warmup() -> Explorer:
    """Rate, training loss and validation BLEU over the steps of one training, for both orders of norm."""
    runs = load_training_runs()
    trainings = {
        (order, lr, steps): found(runs, norm_first=order, lr=lr, warmup=steps)[0]
        for order, lr, steps in itertools.product(ORDERS, RATES, WARMUPS)
    }
    controls = {
        "lr": Slider(RATES, 6e-3, label="Peak learning rate", format="{:g}"),
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
        for order, (label, dash, marker, color) in ORDERS.items():
            style = {"color": COLORS[color], "label": label, "markersize": 4}
            (self.losses[order],) = left.plot(middles, middles, dash, **style)
            (self.scores[order],) = right.plot(range(6), range(6), dash + marker, **style)
        left.set(xlim=(0, STEPS), ylim=(0, 6), xlabel="step", title="Training loss")
        right.set(xlim=(0, 5.15), ylim=(-0.03, 1), xlabel="epoch", title="Validation BLEU")
        left.legend(loc="upper right")

    def draw(self, lr: float, warmup: int) -> str:
        """Show the trainings with this peak rate and so many steps of warm-up."""
        self.rate.set_ydata([1000 * lr * rate(step, warmup) for step in self.steps])
        results = []
        for order, (label, *_) in ORDERS.items():
            run = self.runs[order, lr, warmup]
            bleu = [0.0, *(value for _, value in run["curves"]["bleu"])]
            self.losses[order].set_ydata([value for _, value in run["curves"]["loss"]])
            self.scores[order].set_ydata(bleu)
            results.append(f"with the {label}, BLEU {bleu[-1]:.2f}")
        ramp = f"{warmup} steps of warm-up" if warmup else "no warm-up"
        return f"Peak learning rate {lr:g}, {ramp}: {' and '.join(results)} after 5 epochs."
