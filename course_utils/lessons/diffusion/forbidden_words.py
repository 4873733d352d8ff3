"""Drawings in which a word may be asked only for some of the steps, and what becomes of the half that it names.

`measure_forbidding`, `measure_asking_late` and `measure_without_words` are the stored runs of *Attention in a diffusion
model*, and its page shows them with `plot_window`.
"""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_utils.figures import COLORS
from course_utils.kit.runs import StoredRun
from course_utils.lessons.diffusion.training import STEPS
from course_utils.lessons.diffusion.words import (
    SCALE,
    VISITED,
    WordUNet,
    all_but_one,
    named,
    noises,
    random_captions,
    telling_head,
    walk,
    weights_of_left,
)

BEGINS = (0, 3, 6, 9, 12, 18, 24)
"""Places in VISITED where a word begins to be forbidden, or to be allowed."""

EVERY = 3
"""Steps of the sampler between two maps that are measured."""


class Draws:
    """Garments for random captions, drawn with both words, and the same captions drawn anew from a step on.

    The classifier (`words.named`) says of each half of a picture what it shows. Shares are over the *right halves*,
    those that it names as their word does if both words may be asked.

    Args:
        network: draws.
        count: captions.
        seed: of captions and noise.
        scale: of the guidance.

    Attributes:
        words: the captions, (count, 2).
        pictures: at each visited step, (visited steps, count, 1, 28, 56).
        right: which halves are right, (count, 2).
    """

    def __init__(self, network: WordUNet, *, count: int, seed: int, scale: float):
        self.network, self.scale = network, scale
        self.words, self.noise = random_captions(count, seed), noises(count, seed)
        self.pictures = self.draw()
        self.right = named(self.pictures[-1]) == self.words

    def draw(
        self, allowed: Tensor | None = None, begin: int = 0, x: Tensor | None = None
    ) -> Tensor:
        """Pictures at each visited step, (visited steps, count, 1, 28, 56).

        Args:
            allowed: which words may be asked, (count, 2); all by default.
            begin, x: a place in VISITED and the pictures there, to go on from; else all the way.
        """
        pictures, _ = walk(
            self.network,
            self.words,
            self.noise,
            allowed=allowed,
            scale=self.scale,
            begin=begin,
            x=x,
        )
        return pictures

    def classes(self, allowed: Tensor | None, begin: int, x: Tensor) -> Tensor:
        """The classifier's classes of the halves, (count, 2), of what is drawn from the pictures x at `begin` on."""
        return named(self.draw(allowed, begin, x)[-1])

    def shows_own_word(self, classes: Tensor, half: int) -> Tensor:
        """(right halves,): whether a left (0) or right (1) half shows what its own word says; classes (count, 2)."""
        return (classes[:, half] == self.words[:, half])[self.right[:, half]]

    def shows_other_word(self, classes: Tensor, half: int) -> Tensor:
        """(right halves,): whether a left (0) or right (1) half shows what the other half's word says."""
        return (classes[:, half] == self.words[:, 1 - half])[self.right[:, half]]


def measure_forbidding(
    network: WordUNet, *, count: int, seed: int, scale: float = SCALE
) -> tuple[dict[str, float], dict[str, list[list[float]]]]:
    """Shares of halves that still show their word if it is forbidden from a step on, and where pixels look.

    Of `count` random captions the left word and the right one are forbidden in turn.

    Returns:
        Shares of the right halves by "step, what": "named" and "other", the half of the forbidden word shows its own
        word or the other one; "beside", the other half still shows its word; and "right", the share of halves that are
        right. Then curves, [step, weight of the left word], by half.
    """
    draws = Draws(network, count=count, seed=seed, scale=scale)
    result = {"right": share([draws.right])}
    for begin in BEGINS:
        classes = [
            draws.classes(allowed, begin, draws.pictures[begin]) for allowed in all_but_one(count)
        ]
        step = VISITED[begin]
        result |= _shares_of_words(draws, classes, step)
        beside = [draws.shows_own_word(classes[word], 1 - word) for word in (0, 1)]
        result[f"{step}, beside"] = share(beside)
    return result, looks_at_left_word(network, draws)


def _shares_of_words(draws: Draws, classes: Sequence[Tensor], step: Tensor) -> dict[str, float]:
    """Shares of halves that show their own word, and the other one; classes without the left and the right word."""
    own = [draws.shows_own_word(classes[word], word) for word in (0, 1)]
    other = [draws.shows_other_word(classes[word], word) for word in (0, 1)]
    return {f"{step}, named": share(own), f"{step}, other": share(other)}


def looks_at_left_word(network: WordUNet, draws: Draws) -> dict[str, list[list[float]]]:
    """The weight of the left word, [step, mean weight], by the half in which the asking pixels lie."""
    curves: dict[str, list[list[float]]] = {"left half": [], "right half": []}
    head = telling_head(network)
    for i in range(0, len(VISITED) - 1, EVERY):
        weights = weights_of_left(network, draws.pictures[i], draws.words, VISITED[i])[:, head]
        for name, half in zip(curves, weights.chunk(2, dim=-1), strict=True):
            curves[name].append([VISITED[i].item(), round(half.mean().item(), 3)])
    return curves


def measure_asking_late(
    network: WordUNet, *, count: int, seed: int, scale: float = SCALE
) -> dict[str, float]:
    """Shares of halves that show their word if it may be asked only from a step on: the reverse of forbidding.

    Captions, noise and right halves are those of `measure_forbidding`.

    Returns:
        Shares of the right halves by "step, what": "named" and "other", the half shows its own word or the other one.
    """
    draws = Draws(network, count=count, seed=seed, scale=scale)
    without = [draws.draw(allowed) for allowed in all_but_one(count)]
    result: dict[str, float] = {}
    for begin in BEGINS[1:]:
        classes = [draws.classes(None, begin, pictures[begin]) for pictures in without]
        result |= _shares_of_words(draws, classes, VISITED[begin])
    return result


def measure_without_words(
    network: WordUNet, *, count: int, seed: int, scale: float = SCALE
) -> dict[str, float]:
    """Shares of halves that show their word if no word at all may be asked from a step on, or before it.

    Returns:
        Shares of the right halves by "step, until" and "step, from": words may be asked until this step, or from it on.
    """
    draws = Draws(network, count=count, seed=seed, scale=scale)
    none = torch.zeros(count, 2, dtype=torch.bool)
    without = draws.draw(none)
    result = {}
    for begin in BEGINS:
        until = draws.classes(none, begin, draws.pictures[begin]) == draws.words
        later = draws.classes(None, begin, without[begin]) == draws.words
        result[f"{VISITED[begin]}, until"] = share([until[draws.right]])
        result[f"{VISITED[begin]}, from"] = share([later[draws.right]])
    return result


def share(parts: Sequence[Tensor]) -> float:
    """The share of True in all parts together, to three digits."""
    return round(torch.cat(list(parts)).float().mean().item(), 3)


def plot_window(
    ax: Axes, gone: Sequence[StoredRun], late: Sequence[StoredRun], alone: Sequence[StoredRun]
) -> None:
    """Draw the shares of halves that show their word, over the step until which, or from which on, it is allowed.

    Args:
        ax: where to draw.
        gone, late: runs of `forbidding` and `asking_late`, a line each.
        alone: runs of `without_words`; their means are dotted.
    """
    for runs, color, label in (
        (gone, "key", "allowed until this step"),
        (late, "query", "allowed only from this step on"),
    ):
        for run in runs:
            steps = [int(VISITED[i]) for i in BEGINS if f"{VISITED[i]}, named" in run.result]
            shares = [run.result[f"{step}, named"] for step in steps]
            look = {"color": COLORS[color], "label": label if run is runs[0] else None}
            ax.plot(steps, shares, "o-", ms=3, **look)
    for name, color, label in (
        ("until", "key", "the same, with the other word forbidden"),
        ("from", "query", None),
    ):
        steps = [int(VISITED[i]) for i in BEGINS]
        rows = [[run.result[f"{step}, {name}"] for step in steps] for run in alone]
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        ax.plot(steps, means, ":", color=COLORS[color], label=label)
    ax.set(
        xlabel="Step", ylabel="Halves that match their word", xlim=(STEPS + 4, 82), ylim=(0, 1.02)
    )
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(title="The word is", fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
