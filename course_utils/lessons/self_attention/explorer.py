"""Whose car has which color, among more and more; and one word of a sentence that asks, step by step.

Word table and matrices are those of the chapter.
"""

import math

import numpy as np
import torch

from course_utils.figures import COLORS, subplots
from course_utils.kit.explorer import Choice, Explorer, Slider
from course_utils.kit.runs import stored_runs
from course_utils.lessons.self_attention.tasks import COLORS as CAR_COLORS
from course_utils.lessons.self_attention.tasks import TEXTS, counting, load_words, owners

__all__ = ["asking_word", "whose_car"]

SENTENCES = ("cat drinks cold milk", "dog eats small bread", "fish chases fast bird")
PLACES = ("0", "1", "2", "3")
LOOKS_FOR = {
    ("action", "edible"): 10.0,
    ("action", "alive"): 8.0,
    ("alive", "action"): 8.0,
    ("edible", "quality"): 8.0,
    ("quality", "edible"): 8.0,
}
HANDED_OVER = ("alive", "edible", "action", "quality")


def asking_word() -> Explorer:
    """Four words, their scores and weights for the word that asks, and what it gathers."""
    controls = {
        "sentence": Choice(SENTENCES, SENTENCES[0], label="Sentence"),
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
        for (has, sought), strength in LOOKS_FOR.items():
            self.W_q[names.index(has), names.index(sought)] = strength
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
        rows = [self.table.words.index(word) for word in words]
        X = self.table.features[rows].double().numpy()
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
            1, 2, alt="Cars", width=8.2, height=3.4, width_ratios=[1, 1.35]
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
        for kind, color in SIDES.items():
            means = [sum(seeds) / len(seeds) for seeds in self.shares[kind]]
            right.plot(PAIRS, means, "-o", color=COLORS[color], label=kind)
            for n, seeds in zip(PAIRS, self.shares[kind], strict=True):
                right.plot([n] * len(seeds), seeds, ".", color=COLORS[color], markersize=4)
        self.counted = [counting(n) for n in PAIRS]
        right.plot(PAIRS, self.counted, "--", color="0.5", label="counting colors")
        self.here = right.axvline(2, color="0.85", linewidth=8, zorder=0)
        right.set(xlabel="cars", ylabel="share of right answers", xticks=PAIRS, ylim=(0, 1.05))
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
        means = {kind: sum(s[index]) / len(s[index]) for kind, s in self.shares.items()}
        summary = ", ".join(f"{kind} {share:.2f}" for kind, share in means.items())
        return (
            f"{'; '.join(cars)}. {lines[-1]} It is {color}. Of such questions right: {summary}; "
            f"counting colors {self.counted[index]:.2f}."
        )
