"""The explorer of *Bahdanau attention*: how a translator learns to align, epoch by epoch.

`show_learned` draws the same picture for a translator that the reader has trained.
"""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from course_utils.figures import COLORS, Picture, heatmap, subplots
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import stored_run
from course_utils.lessons.bahdanau_attention.alignment import (
    SHOWN,
    Rule,
    alignment_error_rate,
    diagonal,
    links_of,
    world_in,
)

__all__ = ["learning_to_align"]

ORDERS = ("backwards", "French")
Order = str | Rule
MOST_WORDS = 10
"""Words of a sentence that the map has room for, in each language."""
MOST_LINKS = 20


def learning_to_align() -> Explorer:
    """Stored maps of three test sentences, from before training to its end, in two orders of the French words."""
    learned = {order: _maps_by_epochs(order) for order in ORDERS}
    epochs = tuple(learned[ORDERS[0]])
    titles = tuple(" ".join(shown["source"]) for shown in learned[ORDERS[0]][0]["maps"])
    controls = {
        "epochs": Slider(epochs, epochs[0], label="Epochs of training"),
        "sentence": Choice(titles, titles[0], label="Test sentence"),
        "order": Choice(ORDERS, ORDERS[0], label="Order of the French words"),
    }
    return Explorer("learning_to_align", lambda: AlignmentOverEpochs(learned, titles), controls)


def _maps_by_epochs(order: str) -> dict[int, dict]:
    """Epochs → {"maps": of the test sentences `SHOWN`, "rate": alignment error of all}."""
    run = stored_run("bahdanau_attention", "learning", order=order)
    by_epochs = {example["passes"]: example["maps"] for example in run.examples}
    return {
        epochs: {"maps": maps, "rate": run.result[f"aer_{epochs}"]}
        for epochs, maps in by_epochs.items()
    }


def diagonal_rate(order: Order) -> float:
    """The alignment error rate of the guess on the diagonal."""
    test = world_in(order).test
    guesses = [links_of(diagonal(pair)) for pair in test]
    return alignment_error_rate(guesses, [pair.alignment or frozenset() for pair in test])


class AlignmentOverEpochs:
    """A map with the gold links framed, and the error rate until this epoch beside the diagonal's."""

    def __init__(self, learned: dict[Order, dict[int, dict]], titles: tuple[str, ...]):
        """An empty map, and the curve of errors.

        Args:
            learned: order → epochs → {"maps": …, "rate": …}.
            titles: the sentences of the maps.
        """
        self.learned, self.titles = learned, titles
        self.guess = {order: diagonal_rate(order) for order in learned}
        self.picture, (left, right) = subplots(
            1, 2, alt="A map and its error rate", width=8.0, height=4.1, width_ratios=[1.12, 1]
        )
        self.map = left
        self.image = heatmap(
            left, np.zeros((MOST_WORDS, MOST_WORDS)), queries=[""] * MOST_WORDS, keys=[""] * MOST_WORDS,
            xlabel=None, ylabel=None, vmin=0, vmax=1,
        )  # fmt: skip
        self.image.set_cmap(self.image.cmap.with_extremes(bad="white"))
        left.tick_params(labelsize=8, length=0)
        left.tick_params(axis="x", rotation=60)
        self.frames = [
            left.add_patch(
                Rectangle((0, 0), 0.84, 0.84, fill=False, edgecolor=COLORS["query"], linewidth=1.6)
            )
            for _ in range(MOST_LINKS)
        ]
        (self.largest,) = left.plot([], [], "o", color=COLORS["query"], markersize=5)
        self._set_rates(right)

    def _set_rates(self, ax: Axes) -> None:
        self.epochs = list(next(iter(self.learned.values())))
        ticks = range(len(self.epochs))
        (self.rates,) = ax.plot([], [], "-o", color=COLORS["key"])
        self.rates.set_label("attention")
        (self.level,) = ax.plot([-0.3, len(ticks) - 0.7], [0, 0], "--", color=COLORS["wrong"])
        self.level.set_label("a guess on the diagonal")
        (self.here,) = ax.plot([0], [0], "o", color=COLORS["query"], markersize=10, zorder=3)
        ax.set(ylim=(0, 1), xlabel="epochs", ylabel="alignment error, 400 sentences")
        ax.set_xticks(ticks, self.epochs)
        ax.legend(loc="lower left", fontsize=8)

    def draw(self, epochs: int, sentence: str, order: Order) -> str:
        """Show the map of this sentence, and the curve until this epoch."""
        example = self.learned[order][epochs]["maps"][self.titles.index(sentence)]
        weights = np.full((MOST_WORDS, MOST_WORDS), np.nan)
        weights[: len(example["target"]), : len(example["source"])] = example["weights"]
        self.image.set_data(np.ma.masked_invalid(weights))
        self.map.set(
            xlim=(-0.5, len(example["source"]) - 0.5), ylim=(len(example["target"]) - 0.5, -0.5)
        )
        self.map.set_xticks(range(len(example["source"])), example["source"])
        self.map.set_yticks(range(len(example["target"])), example["target"])
        for index, frame in enumerate(self.frames):
            frame.set_visible(index < len(example["links"]))
            if index < len(example["links"]):
                s, t = example["links"][index]
                frame.set_xy((s - 0.42, t - 0.42))
        chosen = [int(np.argmax(row)) for row in example["weights"]]
        self.largest.set_data(chosen, range(len(chosen)))
        rates = [after["rate"] for after in self.learned[order].values()]
        index = self.epochs.index(epochs)
        self.rates.set_data(range(index + 1), rates[: index + 1])
        self.level.set_ydata([self.guess[order]] * 2)
        self.here.set_data([index], [rates[index]])
        links = {tuple(link) for link in example["links"]}
        hits = sum((source, target) in links for target, source in enumerate(chosen))
        name = {"French": "in French word order", "backwards": "backwards"}.get(
            order, "in your order"
        )
        return (
            f"After {epochs} epochs, with the French words {name}, the alignment error is {rates[index]:.2f}, and the "
            f"diagonal has {self.guess[order]:.2f}. In the map of “{sentence}” and “{' '.join(example['target'])}” "
            f"{hits} of {len(chosen)} words have their largest weight on a gold link, which is framed."
        )


def show_learned(rule: Rule, rates: Sequence[float], maps: Sequence[Tensor]) -> Picture:
    """The picture of `learning_to_align` for French in an order of one's own, at the end of a training.

    Args:
        rule: the order.
        rates: alignment error before training and after each epoch.
        maps: (target, source) weights of all test sentences in this order.
    """
    pair, weights = world_in(rule).test[SHOWN[0]], maps[SHOWN[0]].tolist()
    shown = {
        "source": pair.source,
        "target": pair.target,
        "links": sorted(pair.alignment or ()),
        "weights": weights,
    }
    learned = {epochs: {"maps": [shown], "rate": rate} for epochs, rate in enumerate(rates)}
    sentence = " ".join(pair.source)
    drawing = AlignmentOverEpochs({rule: learned}, (sentence,))
    drawing.picture.alt = drawing.draw(len(rates) - 1, sentence, rule)
    return drawing.picture
