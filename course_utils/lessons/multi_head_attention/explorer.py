"""Heads of a translator: what each attends to, and what is lost without it."""

from collections.abc import Mapping
from textwrap import fill

import torch
from matplotlib.axes import Axes

from course_utils.figures import COLORS, heatmap, subplots
from course_utils.kit.explorer import Choice, Explorer
from course_utils.kit.runs import StoredRun, stored_run
from course_utils.lessons.multi_head_attention.runs import HEADS, KINDS, LAYERS

__all__ = ["dissection"]

NOBODY, MIXED = "none", "mixed"
NAMES = tuple(f"{layer}.{head}" for layer in range(LAYERS) for head in range(HEADS))
"""Layer and head."""
BYS = ("zero", "mean")


def named(result: Mapping[str, float], head: str) -> tuple[str, float]:
    """The kind of token on which a head has most weight beyond an even head, and this weight; "mixed" below 0.1."""
    over = {kind: result[f"{head}, {kind}"] - result[f"even, {kind}"] for kind in KINDS}
    kind = max(over, key=lambda kind: over[kind])
    return kind if over[kind] > 0.1 else MIXED, result[f"{head}, {kind}"]


def dissection() -> Explorer:
    """Eight heads of the stored translator; one is taken away, by zero or by its mean."""
    run = stored_run("multi_head_attention", "translator_heads")
    sources = tuple(example["source"] for example in run.examples)
    controls = {
        "head": Choice((NOBODY, *NAMES), NOBODY, label="Take away"),
        "by": Choice(BYS, "zero", label="by"),
        "sentence": Choice(sources, sources[0], label="Sentence"),
    }
    caption = "Take a head away: which one does the sentence need?"
    return Explorer("dissection", lambda: Dissected(run), controls, caption=caption)


class Dissected:
    """The maps of all heads over what was said, the translation, and the loss without each head."""

    def __init__(self, run: StoredRun):
        """Maps are drawn for each sentence; those of one are visible."""
        self.run, result = run, run.result
        self.examples = {example["source"]: example for example in run.examples}
        self.picture, bars = subplots(alt="Heads of a translator", width=8.2, height=6.4)
        self.picture.set_layout_engine("none")
        bars.set_position((0.6, 0.1, 0.38, 0.76))
        self.bars = {}
        for by, shift in (("zero", -0.2), ("mean", 0.2)):
            more = [result[f"{head}, {by}"] - result["loss"] for head in NAMES]
            places = [index + shift for index in range(len(NAMES))]
            self.bars[by] = bars.barh(places, more, 0.38, color=COLORS["key"], edgecolor="white")
            bars.text(more[0] + 0.01, shift, f"by {by}", va="center")
        bars.set_yticks(range(len(NAMES)), NAMES)
        bars.invert_yaxis()
        bars.set(xlabel="loss rises by, nats", ylabel="without head (layer.head)")
        bars.margins(x=0.2)
        self.said = bars.set_title("", loc="left", fontsize=10)
        self.grids = {
            source: self._grid(run_example, type(bars))
            for source, run_example in self.examples.items()
        }

    def _grid(self, example: dict, kind_of_axes: type[Axes]) -> list[Axes]:
        cells = []
        words = [piece.rstrip("␣") for piece in example["pieces"]]
        for index, head in enumerate(NAMES):
            row, column = divmod(index, 2)
            ax = self.picture.add_axes(
                (0.08 + 0.22 * column, 0.78 - 0.23 * row, 0.2, 0.19), axes_class=kind_of_axes
            )
            heatmap(
                ax, torch.tensor(example["maps"][index]), queries=words, keys=words, xlabel=None,
                ylabel="query: said last" if column == 0 else None,
            )  # fmt: skip
            ax.tick_params(labelsize=8, length=0, pad=1)
            ax.tick_params(axis="x", labelrotation=90)
            ax.yaxis.label.set_size(8)
            if column:
                ax.set_yticks([])
            if row < 3:
                ax.set_xticks([])
            else:
                ax.set_xlabel("key", fontsize=8)
            kind, weight = named(self.run.result, head)
            label = kind if kind == MIXED else f"{kind} {weight:.2f}"
            ax.set_title(f"{head}  {label}", fontsize=8.5, pad=3)
            cells.append(ax)
        return cells

    def draw(self, head: str, by: str, sentence: str) -> str:
        """Gray out the head and the bars of the other way, and show what the translator says without it."""
        for source, grid in self.grids.items():
            for name, ax in zip(NAMES, grid, strict=True):
                ax.set_visible(source == sentence)
                ax.images[0].set_alpha(0.12 if name == head else 1.0)
                ax.title.set_color(COLORS["wrong"] if name == head else COLORS["ink"])
        for way, bars in self.bars.items():
            for name, bar in zip(NAMES, bars, strict=True):
                chosen = name == head and way == by
                bar.set_facecolor(COLORS["wrong" if chosen else "key"])
                bar.set_alpha(1.0 if way == by else 0.35)
        example, result = self.examples[sentence], self.run.result
        if head == NOBODY:
            translation, about = example["whole"], "All heads"
        else:
            translation, about = example[f"{head}, {by}"], f"Without {head}, by {by}"
        self.said.set_text(f"{about}:\n{fill(translation, 36)}")
        listed = "; ".join(f"{name} {named(result, name)[0]}" for name in NAMES)
        return (
            f"Eight heads of a translator: {listed}. {about}, “{sentence}” becomes “{translation}”. "
            f"The bars by {by} are dark. "
            + (
                ""
                if head == NOBODY
                else f"The loss rises from {result['loss']:.2f} to {result[f'{head}, {by}']:.2f}."
            )
        )
