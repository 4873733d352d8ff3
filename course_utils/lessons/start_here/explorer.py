"""A translator that the reader can talk to, and a softmax over four scores while one score grows."""

import functools
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np
import torch

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, SPECIALS, Vocabulary, tokenize
from course_utils.decoding import greedy
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Explorer, Slider, Text, still_copy
from course_utils.lessons.live import load_model
from course_utils.models.transformer import Transformer

__all__ = ["first_slider", "translator"]

# The translator ---------------------------------------------------------------------------------

EXAMPLES = (
    "She has a red car.",
    "The teacher is closing the green door.",
    "I'm home.",
    "She found a key and hid it.",
    "The black cat drinks milk.",
    "The little girl eats the red apple.",
)
MOST_TOKENS = 12
"""Words and signs of a sentence; those that the model has learned from have at most 10."""


def translator(sentence: str = EXAMPLES[0]) -> Explorer:
    """A stored Transformer translates an English sentence, and shows where it looks for each French word.

    Args:
        sentence: to begin with. In Lab the reader may write others, in the book choose an example.
    """
    known = len(_stored()[1]) - len(SPECIALS)
    caption = (
        f"It knows {known} English words and signs, and short, plain sentences. "
        "The map is that of its last layer, the mean of four heads."
    )
    controls = {"sentence": Text(EXAMPLES, sentence, "English sentence")}
    return Explorer("translator", CrossAttention, controls, caption=caption)


@dataclass(frozen=True)
class Translation:
    """A sentence, what became of it, and where each word of that came from.

    Attributes:
        source: English tokens, `<eos>` at the end.
        target: French tokens, `<eos>` at the end.
        heads: (heads, target, source), the weights of the last layer; each row sums to 1.
        unknown: tokens of the source that the model does not know → known ones that are spelled alike.
    """

    source: list[str]
    target: list[str]
    heads: np.ndarray
    unknown: dict[str, list[str]]

    @property
    def weights(self) -> np.ndarray:
        """(target, source), the mean of the heads; each row sums to 1."""
        return self.heads.mean(axis=0)


def translate(sentence: str) -> Translation:
    """Translate greedily, then run once more over what was said, and keep the weights.

    Raises:
        ValueError: the sentence has too many tokens, or none that the model knows.
    """
    model, english, french = _stored()
    tokens = tokenize(sentence)
    if tokens[-1] not in (".", "!", "?"):
        tokens.append(".")  # each sentence that it learned from has an end
    if len(tokens) > MOST_TOKENS:
        raise ValueError(f"{len(tokens)} words and signs; at most {MOST_TOKENS} are possible")
    words = [word for word in english.tokens if word not in SPECIALS]
    unknown = {word: get_close_matches(word, words) for word in tokens if word not in words}
    if not set(tokens[:-1]) - set(unknown):
        raise ValueError("it knows none of these words; try some such as cat, horse, old, sees")
    source = torch.tensor([[*english.encode(tokens), EOS]])
    lens = torch.tensor([source.shape[1]])
    said = greedy(model, source, lens, max_len=MOST_TOKENS + 4)[0]
    with record_attention(model) as maps:
        model(source, lens, torch.tensor([[BOS, *said]]))
    *_, last = (weights for name, weights in maps.items() if name.endswith(".cross_attention"))
    target = [*french.decode(said), "<eos>"]
    return Translation([*tokens, "<eos>"], target, last[0].numpy(), unknown)


@functools.cache
def _stored() -> tuple[Transformer, Vocabulary, Vocabulary]:
    kept = load_model("translator_fr")
    model = Transformer(**kept.config)
    model.load_state_dict(kept.state)
    english, french = (Vocabulary.of_tokens(kept.vocabularies[k]) for k in ("source", "target"))
    return still_copy(model), english, french


class CrossAttention:
    """The map of a translation: one row for each French word, one column for each English one."""

    def __init__(self):
        """Axes at fixed places, which suit the longest words; letters that a phone can show."""
        self.picture, (ax, bar) = subplots(1, 2, alt="A translation", width=4.9, height=4.4)
        ax.set_position((0.25, 0.2, 0.6, 0.66))
        bar.set_position((0.88, 0.2, 0.03, 0.66))
        bar.set_label("<colorbar>")  # it belongs to the map where a narrow page cuts the picture
        self.ax, self.image = ax, heatmap(ax, np.zeros((1, 1)), xlabel="English", ylabel="French")
        self.picture.colorbar(self.image, cax=bar)
        for axes in (ax, bar):
            axes.tick_params(labelsize=10)
        self.numbers = [
            ax.text(0, row, "", ha="center", va="center", fontsize=10)
            for row in range(MOST_TOKENS + 5)
        ]

    def draw(self, sentence: str) -> str:
        """Translate the sentence and show its map; the largest weight of each row in numbers."""
        found = translate(sentence)
        rows, columns = found.weights.shape
        ax = self.ax
        self.image.set_data(found.weights)
        self.image.set_extent((-0.5, columns - 0.5, rows - 0.5, -0.5))
        ax.set(xlim=(-0.5, columns - 0.5), ylim=(rows - 0.5, -0.5))
        turned = {"rotation": 40, "ha": "right", "rotation_mode": "anchor"}
        ax.set_xticks(range(columns), found.source, **turned)
        for label, word in zip(ax.get_xticklabels(), found.source, strict=True):
            label.set_color(COLORS["vermilion"] if word in found.unknown else "black")
        ax.set_yticks(range(rows), found.target)
        french = " ".join(found.target[:-1])
        fits = min(1, 42 / max(len(sentence), len(french)))
        ax.set_title(f"{sentence}\n{french}", fontsize=11 * fits, loc="left")
        for number in self.numbers:
            number.set_text("")
        for number, row in zip(self.numbers, found.weights, strict=False):
            largest = f"{row.max():.2f}"
            number.set_text(largest if columns < 10 else largest.removeprefix("0"))
            number.set(x=row.argmax(), color="white" if row.max() > 0.7 else "black")
        return f"“{sentence}” becomes “{french}”. {_unknown(found)}{_looks(found)}"


def _unknown(found: Translation) -> str:
    """Which words it does not know, and what it knows instead."""
    said = [
        f"It does not know “{word}”"
        + (f"; it knows {', '.join(near)}. " if near else ", nor any word that is spelled alike. ")
        for word, near in found.unknown.items()
    ]
    return "".join(said)


def _looks(found: Translation) -> str:
    """Where each row has its largest weight."""
    pairs = [
        f"{word} – {found.source[row.argmax()]} {row.max():.2f}"
        for word, row in zip(found.target, found.weights, strict=True)
    ]
    return f"Largest weight of each row: {', '.join(pairs)}."


# The first slider -------------------------------------------------------------------------------

NAMES = ("cat", "dog", "bird", "fish")
SCORES = np.array([1.0, 0.5, 0.0, -0.5])
BIRD = NAMES.index("bird")


def first_slider() -> Explorer:
    """Four scores become four weights; the slider moves the score of the bird from -4 to 6."""
    slider = Slider(np.arange(-4, 6.5, 0.5), -1.0, label="Score of the bird", format="{:+.1f}")
    return Explorer("first_slider", Scores, {"bird": slider})


class Scores:
    """Bars of the four scores, and bars of their weights."""

    def __init__(self):
        """Bars of any height; `draw` sets them."""
        self.picture, (left, right) = subplots(
            1, 2, alt="Four scores and their weights", width=7.5, height=2.7
        )
        colors = [COLORS["vermilion" if name == "bird" else "sky"] for name in NAMES]
        self.scores = left.bar(NAMES, SCORES, color=colors)
        left.axhline(0, color="black", linewidth=0.8)
        left.set(title="Scores", ylim=(-4.4, 6.4))
        self.weights = right.bar(NAMES, SCORES, color=colors)
        self.numbers = [
            right.text(i, 0, "", ha="center", va="bottom", fontsize=9) for i in range(len(NAMES))
        ]
        right.set(title="Weights: exp(score), divided by their sum", ylim=(0, 1.12))

    def draw(self, bird: float) -> str:
        """Set the bird's score."""
        scores = SCORES.copy()
        scores[BIRD] = bird
        weights = np.exp(scores) / np.exp(scores).sum()
        for bar, height in zip(self.scores, scores, strict=True):
            bar.set_height(height)
        for bar, number, height in zip(self.weights, self.numbers, weights, strict=True):
            bar.set_height(height)
            number.set_y(height + 0.015)
            number.set_text(f"{height:.2f}")
        listed = ", ".join(f"{name} {w:.2f}" for name, w in zip(NAMES, weights, strict=True))
        return f"With a score of {bird:g} for the bird, the weights are {listed}; they add up to 1."
