"""The explorer of *Self-attention*: a question about more and more cars, and who still answers it."""

import torch

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Slider
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import stored_runs
from course_utils.lessons.self_attention.tasks import COLORS as CAR_COLORS
from course_utils.lessons.self_attention.tasks import TEXTS, counting, owners

__all__ = ["whose_car"]

PAIRS = (2, 4, 12)
MODELS = {"one attention": "query", "average, 256 wide": "key"}
"""The kinds of model that are compared, with the color of each."""
LABELS = {"one attention": "one attention layer", "average, 256 wide": "average, 256 wide"}
"""Their names in the picture."""
BASELINE = "most frequent color"
"""What needs no network."""


def whose_car() -> Explorer:
    """Explorer of cars and a question, beside the accuracy of stored models on such questions."""
    controls = {"pairs": Slider(PAIRS, 2, label="Cars", format="{:g}")}
    caption = "More cars: who still knows?"
    return Explorer("whose_car", Cars, controls, caption=caption)


class Cars:
    """The sentences of one question, and the accuracy of two models, each at its best rate."""

    def __init__(self) -> None:
        """Read the accuracies of stored runs, and draw the axes; `draw` fills them."""
        self.picture, (left, right) = subplots(
            1, 2, alt="Cars", width=7.6, height=3.4, width_ratios=[1, 1.1]
        )
        left.set(xlim=(0, 1), ylim=(14, -0.7), xticks=[], yticks=[])
        left.spines[:].set_visible(False)
        self.lines = [left.text(0, row, "", va="center", fontsize=9) for row in range(14)]
        self.accuracies = {kind: accuracies(kind) for kind in MODELS}
        self.curves, self.dots = {}, {}
        for kind, color in MODELS.items():
            (self.curves[kind],) = right.plot([], [], "-o", color=COLORS[color], label=LABELS[kind])
            (self.dots[kind],) = right.plot([], [], ".", color=COLORS[color], markersize=4)
        self.of_baseline = [counting(n) for n in PAIRS]
        (self.baseline,) = right.plot([], [], "--o", color="0.5", markersize=4, label=BASELINE)
        self.here = right.axvline(2, color="0.85", linewidth=8, zorder=0)
        right.set(xlim=(1.5, 12.5), ylim=(0, 1.05), xticks=PAIRS)
        right.set(xlabel="cars", ylabel="accuracy")
        right.legend(loc="lower center", fontsize=8)

    def draw(self, pairs: int) -> str:
        """Show a question about `pairs` cars."""
        generator = torch.Generator().manual_seed(3)
        tokens, targets = owners(1, generator, pairs=pairs)
        *cars, question = (TEXTS[token] for token in tokens[0].tolist())
        color = CAR_COLORS[int(targets[0, -1])]
        cars.sort()
        lines = [*cars, f"Which color is {question[:-1]}?"]
        for row, line in enumerate(self.lines):
            line.set_text(lines[row] if row < len(lines) else "")
            line.set_color(COLORS["query" if row == len(cars) else "ink"])
        self.here.set_xdata([pairs])
        index = PAIRS.index(pairs)
        self.baseline.set_data(PAIRS[: index + 1], self.of_baseline[: index + 1])
        attention, average = (self._show_accuracies(kind, index + 1) for kind in MODELS)
        return (
            f"{'. '.join(cars)}. {lines[-1]} It is {color}. On such questions one attention layer has an accuracy of "
            f"{attention:.2f}, an average with a network 256 wide {average:.2f}, and the most frequent color "
            f"{self.of_baseline[index]:.2f}."
        )

    def _show_accuracies(self, kind: str, count: int) -> float:
        """Show a model's accuracies for the first `count` numbers of cars, and return the mean of the last of them."""
        reached = self.accuracies[kind][:count]
        means = [sum(seeds) / len(seeds) for seeds in reached]
        self.curves[kind].set_data(PAIRS[:count], means)
        cars = [n for n, seeds in zip(PAIRS, reached, strict=False) for _ in seeds]
        self.dots[kind].set_data(cars, [accuracy for seeds in reached for accuracy in seeds])
        return means[-1]


def accuracies(kind: str) -> list[list[float]]:
    """Accuracies of a kind of model at its best rate: for each of `PAIRS` a list, with one for each seed."""
    runs = stored_runs("self_attention", "recalled", highest="validation", kind=kind)
    return [[run.result["right"] for run in runs if run.config["pairs"] == n] for n in PAIRS]
