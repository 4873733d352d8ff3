"""Who sees whom in three kinds of model, what is read, and what is asked."""

import torch
from torch import Tensor

from course_utils.attention import causal_mask
from course_utils.data.prose import IGNORE, masked_token
from course_utils.data.text import MASK
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.kit.explorer import Choice, Explorer, IntRange

__all__ = ["masks"]

SENTENCE = ["she", "bought", "a", "red", "scarf", "last", "week", "."]
OTHERS = {"dog", "green", "he", "sold", "the"}
"""What else BERT may find in a place."""
SOURCE = 4
"""In the encoder–decoder, so many tokens are the source; the others are the target."""
KINDS = {
    "decoder-only (GPT)": "gpt",
    "encoder-only (BERT)": "bert",
    "encoder–decoder, in one picture": "both",
}
NOTHING = "–"


def masks() -> Explorer:
    """Three kinds of model over one sentence: who sees whom, what is read, and what is asked."""
    controls = {
        "kind": Choice(KINDS, "bert", label="Model"),
        "place": IntRange(1, len(SENTENCE), 2, label="Place"),
        "seed": IntRange(0, 4, 3, label="Draw of masks"),
    }
    caption = "Blue: may attend. For BERT half of the tokens are picked here, instead of 15%."
    return Explorer("masks", Masks, controls, caption=caption)


class Masks:
    """The mask with one row framed, and a table of what each place reads and is asked."""

    def __init__(self):
        """An empty map and an empty table."""
        n = len(SENTENCE)
        self.picture, (ax, side) = subplots(
            1, 2, alt="Masks", width=8.5, height=4.0, width_ratios=[1, 1.25]
        )
        self.map = heatmap(ax, torch.zeros(n, n), queries=SENTENCE, keys=SENTENCE)
        sides = [-0.5, n - 0.5, n - 0.5, -0.5, -0.5]
        (self.row,) = ax.plot(sides, [0] * 5, color=COLORS["query"])
        side.set(xlim=(0, 3), ylim=(n - 0.3, -1.0))
        side.set(xticks=[], yticks=[])
        side.spines[:].set_visible(False)
        for x, text in enumerate(("place", "reads", "is asked")):
            side.text(x + 0.1, -0.75, text, fontsize=9, color="0.4")
        self.cells = [[side.text(x + 0.1, y, "", fontsize=10) for x in range(3)] for y in range(n)]
        (self.band,) = side.fill([0, 3, 3, 0], [0] * 4, color=COLORS["wash"], alpha=0.4)

    def draw(self, kind: str, place: int, seed: int) -> str:
        """Look from one place in one kind of model; `seed` draws what BERT does not read."""
        n, y = len(SENTENCE), place - 1
        allowed = _allowed(kind)
        reads, asked = _reads_and_asked(kind, seed)
        self.map.set_data(allowed.float().numpy())
        self.row.set_ydata([y - 0.5, y - 0.5, y + 0.5, y + 0.5, y - 0.5])
        self.band.set_xy([(0, y - 0.6), (3, y - 0.6), (3, y + 0.35), (0, y + 0.35)])
        for i, texts in enumerate(zip(range(1, n + 1), reads, asked, strict=True)):
            for cell, text in zip(self.cells[i], texts, strict=True):
                cell.set_text(text)
            self.cells[i][1].set_color("black" if reads[i] == SENTENCE[i] else COLORS["query"])
        seen = [word for word, ok in zip(reads, allowed[y].tolist(), strict=True) if ok]
        count = sum(word != NOTHING for word in asked)
        question = "is asked nothing" if asked[y] == NOTHING else f"is asked for “{asked[y]}”"
        model = next(name for name, each in KINDS.items() if each == kind)
        return (
            f"{model}: place {place} reads “{reads[y]}”, sees {len(seen)} of {n} places "
            f"({' '.join(seen)}), and {question}. {count} places are asked for something."
        )


def _allowed(kind: str) -> Tensor:
    """(places, places): who may attend to whom."""
    n = len(SENTENCE)
    if kind == "bert":
        return torch.ones(n, n, dtype=torch.bool)
    if kind == "both":
        return causal_mask(n) | (torch.arange(n) < SOURCE)
    return causal_mask(n)


def _reads_and_asked(kind: str, seed: int) -> tuple[list[str], list[str]]:
    """The token that each place reads, and the one that it is asked for."""
    if kind == "bert":
        words = sorted(OTHERS.union(SENTENCE))
        first = MASK + 1  # the id of the first word
        ids = torch.tensor([[first + words.index(word) for word in SENTENCE]])
        hide = masked_token(first + len(words), share=0.5)
        batch = hide(ids, torch.tensor([len(SENTENCE)]), torch.Generator().manual_seed(seed))
        names = {MASK: "<mask>"} | dict(enumerate(words, start=first))
        picked = (batch.targets[0] != IGNORE).tolist()
        asked = [word if pick else NOTHING for word, pick in zip(SENTENCE, picked, strict=True)]
        return [names[index] for index in batch.tokens[0].tolist()], asked
    asked = [*SENTENCE[1:], "<eos>"]
    if kind == "both":
        asked[: SOURCE - 1] = [NOTHING] * (SOURCE - 1)
    return SENTENCE, asked
