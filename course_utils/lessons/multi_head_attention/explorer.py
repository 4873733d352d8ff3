"""The explorer of *Multi-head attention*: what each head of a translator attends to, and what is lost without it."""

from collections.abc import Mapping
from textwrap import fill

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Choice
from course_utils.kit.explorer import Explorer
from course_utils.kit.runs import StoredRun, stored_run
from course_utils.lessons.multi_head_attention.translator import HEADS, KINDS, LAYERS

__all__ = ["dissection"]

MIXED = "mixed"
NAMES = tuple(f"{layer}.{head}" for layer in range(LAYERS) for head in range(HEADS))
"""Names of the heads: layer and number."""
BYS = ("zero", "mean")
"""What takes the place of an ablated head's output."""


def favorite_kind(result: Mapping[str, float], head: str) -> tuple[str, float]:
    """Kind of token that a head prefers, and its mean weight on it.

    It is the kind on which the head has most weight beyond a head with even weights; `MIXED` if that is less than 0.1.
    """
    beyond_even = {kind: result[f"{head}, {kind}"] - result[f"even, {kind}"] for kind in KINDS}
    kind = max(beyond_even, key=lambda kind: beyond_even[kind])
    return kind if beyond_even[kind] > 0.1 else MIXED, result[f"{head}, {kind}"]


def dissection() -> Explorer:
    """Explorer of the stored translator's heads: what one attends to, and the translation without it."""
    run = stored_run("multi_head_attention", "translator_heads")
    sources = tuple(example["source"] for example in run.examples)
    controls = {
        "head": Choice(NAMES, NAMES[0], label="Ablate head"),
        "by": Choice(BYS, "zero", label="Ablation"),
        "sentence": Choice(sources, sources[0], label="Sentence"),
    }
    caption = "Ablate one head at a time. Without which of them does the translator stumble?"
    return Explorer("dissection", lambda: HeadAblated(run), controls, caption=caption)


class HeadAblated:
    """Lines from each word to those that a head attends to, the translation without it, and the loss without each."""

    def __init__(self, run: StoredRun):
        """Draw lines, words and bars for any head; `draw` sets them."""
        self.run, result = run, run.result
        self.examples = {example["source"]: example for example in run.examples}
        self.picture, (lines, bars) = subplots(
            1, 2, alt="A head of a translator", width=8.0, height=4.3, width_ratios=[1.2, 1]
        )
        most = max(len(example["pieces"]) for example in run.examples)
        lines.set(xlim=(-0.75, 1.75), ylim=(most - 0.5, -3.1), xticks=[], yticks=[])
        lines.spines[:].set_visible(False)
        self.whole = lines.text(-0.75, -2.9, "", va="center")
        self.without = lines.text(
            -0.75, -2.25, "", va="center", weight="bold", color=COLORS["query"]
        )
        lines.text(-0.06, -0.95, "word said last", ha="right", color=COLORS["muted"])
        lines.text(1.06, -0.95, "attends to", color=COLORS["muted"])
        self.asking = [lines.text(-0.06, row, "", ha="right", va="center") for row in range(most)]
        self.asked = [lines.text(1.06, row, "", va="center") for row in range(most)]
        self.links = {
            (row, column): lines.plot([0, 1], [row, column], color=COLORS["key"])[0]
            for row in range(most)
            for column in range(row + 1)
        }
        self.bars = {}
        for by, shift in (("zero", -0.2), ("mean", 0.2)):
            more = [result[f"{head}, {by}"] - result["loss"] for head in NAMES]
            places = [index + shift for index in range(len(NAMES))]
            self.bars[by] = bars.barh(places, more, 0.38, color=COLORS["key"], edgecolor="white")
            bars.text(more[0] + 0.01, shift, f"{by} ablation", va="center")
        labels = [f"{head}: {self._favorite(head)}" for head in NAMES]
        bars.set_yticks(range(len(NAMES)), labels)
        bars.invert_yaxis()
        bars.set(xlabel="loss rises by (nats)")
        bars.margins(x=0.4)

    def _favorite(self, head: str) -> str:
        """The head's mean weight on its favorite kind of token; of a head without one only `MIXED`."""
        kind, weight = favorite_kind(self.run.result, head)
        return kind if kind == MIXED else f"{weight:.2f} on {kind}"

    def draw(self, head: str, by: str, sentence: str) -> str:
        """Show the links of the head, mark its bar, and say what the translator says without it."""
        example, result = self.examples[sentence], self.run.result
        words = [piece.rstrip("␣") for piece in example["pieces"]]
        for texts in (self.asking, self.asked):
            for row, text in enumerate(texts):
                text.set_text(words[row] if row < len(words) else "")
        weights = example["maps"][NAMES.index(head)]
        for (row, column), line in self.links.items():
            weight = weights[row][column] if row < len(words) else 0.0
            line.set(linewidth=6 * weight, alpha=min(1.0, 0.15 + weight), visible=weight > 0.02)
        for way, bars in self.bars.items():
            for name, bar in zip(NAMES, bars, strict=True):
                chosen = name == head and way == by
                bar.set_facecolor(COLORS["query" if chosen else "key"])
                bar.set_alpha(1.0 if way == by else 0.35)
        self.whole.set_text(f"All heads: {example['whole']}")
        self.without.set_text(fill(f"Without {head}: {example[f'{head}, {by}']}", 48))
        kind, weight = favorite_kind(result, head)
        favorite = (
            "has no clear favorite"
            if kind == MIXED
            else f"mostly attends to the {kind}, with a mean weight of {weight:.2f}"
        )
        return (
            f"Head {head} of a translator {favorite}. With all heads “{sentence}” becomes “{example['whole']}”, and "
            f"with {'zeros' if by == 'zero' else 'its mean'} in place of this head “{example[f'{head}, {by}']}”. "
            f"The loss rises from {result['loss']:.2f} to {result[f'{head}, {by}']:.2f}."
        )
