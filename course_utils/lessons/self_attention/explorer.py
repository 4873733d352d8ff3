"""Whose car has which color, among more and more."""

import torch

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Slider
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import stored_runs
from course_utils.lessons.self_attention.tasks import COLORS as CAR_COLORS
from course_utils.lessons.self_attention.tasks import TEXTS, counting, owners

__all__ = ["whose_car"]

PAIRS = (2, 4, 12)
SIDES = {"one attention": "query", "average, 256 wide": "key"}


def whose_car() -> Explorer:
    """Cars and a question; beside it, how many questions stored models have right, over the number of cars."""
    controls = {"pairs": Slider(PAIRS, 2, label="Cars", format="{:g}")}
    caption = "More cars: who still knows?"
    return Explorer("whose_car", Cars, controls, caption=caption)


class Cars:
    """The sentences of one question, and the shares right of two models, each at its best rate."""

    def __init__(self) -> None:
        """Shares of stored runs; `draw` shows the sentences and marks the number of cars."""
        self.picture, (left, right) = subplots(
            1, 2, alt="Cars", width=7.6, height=3.4, width_ratios=[1, 1.1]
        )
        left.set(xlim=(0, 1), ylim=(14, -0.7), xticks=[], yticks=[])
        left.spines[:].set_visible(False)
        self.lines = [left.text(0, row, "", va="center", fontsize=9) for row in range(14)]
        runs = stored_runs("self_attention", "recalled", highest="validation")
        self.shares = {
            kind: [
                [r.result["right"] for r in runs if (r.config["kind"], r.config["pairs"]) == (kind, n)]
                for n in PAIRS
            ]
            for kind in SIDES
        }  # fmt: skip
        self.curves, self.dots = {}, {}
        for kind, color in SIDES.items():
            (self.curves[kind],) = right.plot([], [], "-o", color=COLORS[color], label=kind)
            (self.dots[kind],) = right.plot([], [], ".", color=COLORS[color], markersize=4)
        self.counted = [counting(n) for n in PAIRS]
        right.plot(PAIRS, self.counted, "--", color="0.5", label="counting colors")
        self.here = right.axvline(2, color="0.85", linewidth=8, zorder=0)
        right.set(xlim=(1.5, 12.5), ylim=(0, 1.05), xticks=PAIRS)
        right.set(xlabel="cars", ylabel="share of right answers")
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
        attention, average = (self._reached(kind, index + 1) for kind in SIDES)
        return (
            f"{'. '.join(cars)}. {lines[-1]} It is {color}. Of such questions one attention gets {attention:.2f} "
            f"right, an average with a network 256 wide {average:.2f}, and counting colors {self.counted[index]:.2f}."
        )

    def _reached(self, kind: str, count: int) -> float:
        """Show a model's shares for the first `count` numbers of cars; the mean of the last of them."""
        shares = self.shares[kind][:count]
        means = [sum(seeds) / len(seeds) for seeds in shares]
        self.curves[kind].set_data(PAIRS[:count], means)
        places = [n for n, seeds in zip(PAIRS, shares, strict=False) for _ in seeds]
        self.dots[kind].set_data(places, [share for seeds in shares for share in seeds])
        return means[-1]
