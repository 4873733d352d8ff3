"""The explorer of *Translating*: two unnamed maps of one sentence, what each French word attends to and what it needs.

The page draws such maps under their names with `show_maps`.
"""

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle
from torch import Tensor

from course_utils.data.translation import Pair
from course_utils.figures import COLORS, Picture, heatmap, subplots
from course_utils.kit.controls import Choice
from course_utils.kit.explorer import Explorer
from course_utils.lessons.sequence_to_sequence.small_world import larger_world
from course_utils.lessons.translating.beams import attention_maps, needs_maps, stored_translator

__all__ = ["which_map"]

SENTENCES = {
    "emma isn't repairing her pretty watch .": "emma ne répare pas sa jolie montre .",
    "there were three mirrors near the window .": "il y avait trois miroirs près de la fenêtre .",
    "this isn't her small toy .": "ce n'est pas son petit jouet .",
    "does oscar like to study ?": "est-ce qu'oscar aime étudier ?",
    "please eat a pizza .": "mange une pizza , s'il te plaît .",
}
"""Test sentences."""


def which_map() -> Explorer:
    """Explorer of two unnamed maps of the stored translator: A is what a word needs, B what it attends to."""
    sentences = tuple(SENTENCES)
    return Explorer(
        "which_map", TwoMaps, {"sentence": Choice(sentences, sentences[0], label="Sentence")}
    )


def both_maps(pairs: list[Pair]) -> list[tuple[np.ndarray, np.ndarray]]:
    """`needs_maps` and mean attention of the stored translator, both (target, source), for each pair."""
    model, world = stored_translator(), larger_world()
    words = world.source_vocab, world.target_vocab
    looks = [maps.mean(dim=(0, 1)) for maps in attention_maps(model, pairs, words)]
    return [
        (need.numpy(), look.numpy())
        for need, look in zip(needs_maps(model, pairs, words), looks, strict=True)
    ]


def label_above(ax: Axes) -> None:
    """Put the words of the columns above a map, slanted."""
    ax.tick_params(labelsize=9, length=0, labeltop=True, labelbottom=False)
    ax.tick_params(axis="x", rotation=45)


def show_maps(pair: Pair, maps: dict[str, Tensor]) -> Picture:
    """Picture of two maps of a pair, (target, source), by name; its gold links are framed, if it has any."""
    picture, axes = subplots(
        1, 2, width=8.6, height=0.36 * len(pair.target) + 1.3,
        alt=f"Two maps of “{' '.join(pair.source)}” over “{' '.join(pair.target)}”: {' and '.join(maps)}.",
    )  # fmt: skip
    for ax, (name, values) in zip(axes, maps.items(), strict=True):
        heatmap(
            ax, values, queries=pair.target, keys=pair.source,
            xlabel=None, ylabel=None, title=name,
        )  # fmt: skip
        label_above(ax)
        for source, target in pair.alignment or ():
            corner = (source - 0.44, target - 0.44)
            color = COLORS["query"]
            ax.add_patch(Rectangle(corner, 0.88, 0.88, fill=False, edgecolor=color, linewidth=1.6))
    return picture


class TwoMaps:
    """Maps A and B of a sentence."""

    def __init__(self) -> None:
        """Compute both maps of each sentence, and draw empty ones."""
        self.pairs = {
            source: Pair(tuple(source.split()), tuple(target.split()))
            for source, target in SENTENCES.items()
        }
        maps = both_maps(list(self.pairs.values()))
        self.maps = dict(zip(self.pairs, maps, strict=True))
        self.most = max(
            len(words) for pair in self.pairs.values() for words in (pair.source, pair.target)
        )
        self.picture, self.axes = subplots(1, 2, alt="Two maps, A and B", width=8.6, height=4.4)
        blank, empty = np.zeros((self.most, self.most)), [""] * self.most
        self.images = []
        for ax, name in zip(self.axes, "AB", strict=True):
            image = heatmap(ax, blank, queries=empty, keys=empty, xlabel=None, ylabel=None)
            ax.set_title(name, y=1.2, loc="left", fontweight="bold")  # where no label moves it
            image.set_cmap(image.cmap.with_extremes(bad="white"))
            label_above(ax)
            self.images.append(image)

    def draw(self, sentence: str) -> str:
        """Put both maps of this sentence in place."""
        pair = self.pairs[sentence]
        for ax, image, values in zip(self.axes, self.images, self.maps[sentence], strict=True):
            whole = np.full((self.most, self.most), np.nan)
            whole[: len(pair.target), : len(pair.source)] = values
            image.set_data(np.ma.masked_invalid(whole))
            ax.set_xticks(range(len(pair.source)), pair.source)
            ax.set_yticks(range(len(pair.target)), pair.target)
        return (
            f"Two maps of “{sentence}” (across) over “{' '.join(pair.target)}” (down). In A most rows have one dark "
            "field or none. In B each row has some color, and many share it among several words."
        )
