"""One word of a sentence asks: the products of its query with the keys, the weights, and the answer.

Word table and matrices are those of the chapter.
"""

import math

import numpy as np

from course_utils.figures import COLORS, subplots
from course_utils.kit.explorer import Choice, Explorer
from course_utils.lessons.self_attention.words import load_words

__all__ = ["asking_word"]

SENTENCES = (
    "cat drinks cold milk",
    "dog eats small bread",
    "fish chases fast bird",
)
PLACES = ("0", "1", "2", "3")
LOOKS_FOR = {
    ("action", "edible"): 10.0,
    ("action", "alive"): 8.0,
    ("alive", "action"): 8.0,
    ("edible", "quality"): 8.0,
    ("quality", "edible"): 8.0,
}
HANDED_OVER = ("alive", "edible", "action", "quality")


def asking_word(sentence: str = SENTENCES[0]) -> Explorer:
    """Four words, their scores and weights for the word that asks, and what it gathers.

    Args:
        sentence: one of the three.
    """
    controls = {
        "sentence": Choice(SENTENCES, sentence, label="Sentence"),
        "place": Choice(PLACES, "0", label="Word that asks"),
    }
    return Explorer("asking_word", Asking, controls)


class Asking:
    """Bars for the scores and the weights of four keys, and for the seven features of the answer."""

    def __init__(self) -> None:
        """Draws bars of any length; `draw` sets them."""
        self.table = load_words()
        names = self.table.names
        self.W_q = np.zeros((len(names), len(names)))
        for (has, wanted), strength in LOOKS_FOR.items():
            self.W_q[names.index(has), names.index(wanted)] = strength
        self.W_v = np.diag([float(name in HANDED_OVER) for name in names])
        self.picture, (self.top, self.middle, self.bottom) = subplots(
            3, 1, alt="Scores, weights, answer", width=3.5, height=5.4, height_ratios=[4, 4, 7],
        )  # fmt: skip
        self.scores, self.score_texts = self._bars(self.top, 4, "key", 7.4, "q·k / √7")
        self.weights, self.weight_texts = self._bars(self.middle, 4, "key", 1.25, "weight")
        features = len(names)
        self.had, _ = self._bars(
            self.bottom, features, None, 1.35, "the word (pale), its answer (dark)"
        )
        self.answer, self.answer_texts = self._bars(self.bottom, features, "value", 1.35, None)
        self.bottom.set_yticks(range(features), names)

    @staticmethod
    def _bars(ax, count, color, most, xlabel):
        height = 0.8 if color != "value" else 0.4
        bars = ax.barh(
            range(count), [0.0] * count, height, color=COLORS[color] if color else "0.85"
        )
        texts = [ax.text(0, row, "", va="center", fontsize=8) for row in range(count)]
        ax.set(ylim=(count - 0.5, -0.5), xlim=(0, most))
        ax.tick_params(labelsize=8)
        if xlabel:
            ax.set_xlabel(xlabel, fontsize=8)
        return bars, texts

    def draw(self, sentence: str, place: str) -> str:
        """Let the word at `place` ask its sentence."""
        words, asker = sentence.split(), int(place)
        X = np.asarray(self.table[words], dtype=float)
        scores = X[asker] @ self.W_q @ X.T / math.sqrt(X.shape[1])
        weights = np.exp(scores - scores.max())
        weights /= weights.sum()
        answer = weights @ X @ self.W_v
        for bars, texts, numbers in (
            (self.scores, self.score_texts, scores),
            (self.weights, self.weight_texts, weights),
            (self.answer, self.answer_texts, answer),
        ):
            for bar, text, number in zip(bars, texts, numbers, strict=True):
                bar.set_width(number)
                text.set(x=number + 0.02 * bar.axes.get_xlim()[1], text=f"{number:.2f}")
        for bar, text, number, had in zip(
            self.had, self.answer_texts, answer, X[asker], strict=True
        ):
            bar.set_width(had)
            text.set_x(max(number, had) + 0.03)
        for ax in (self.top, self.middle):
            ax.set_yticks(range(4), words)
        self.top.set_title(f"“{words[asker]}” asks", fontsize=9)
        shares = ", ".join(f"{w} {a:.2f}" for w, a in zip(words, weights, strict=True))
        return f"In “{sentence}”, the word {words[asker]} gives these weights: {shares}."
