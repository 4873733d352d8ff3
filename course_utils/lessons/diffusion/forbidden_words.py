"""Words that may be asked only for a part of the way from noise to garments, and what becomes of their halves."""

from collections.abc import Sequence

import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_utils.figures import COLORS
from course_utils.kit.runs import StoredRun
from course_utils.lessons.diffusion.sampling import STEPS
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
    """Garments for random captions, drawn with both words: what the other ways are compared with.

    Attributes:
        words: the captions, (count, 2).
        pictures: at each visited step, (visited steps, count, 1, 28, 56).
        right: which halves the judge names as their words do, (count, 2); only these are counted below.
    """

    def __init__(self, network: WordUNet, *, count: int, seed: int, scale: float):
        self.network, self.scale = network, scale
        self.words, self.noise = random_captions(count, seed), noises(count, seed)
        self.pictures = self.drawn()
        self.right = named(self.pictures[-1]) == self.words

    def drawn(
        self, allowed: Tensor | None = None, begin: int = 0, x: Tensor | None = None
    ) -> Tensor:
        """The pictures at each visited step, from pictures x at the place `begin` on, or all the way."""
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
        """What the judge calls the halves that are drawn from x on: (count, 2)."""
        return named(self.drawn(allowed, begin, x)[-1])

    def own(self, classes: Tensor, word: int) -> Tensor:
        """Whether the half of a word is as its own word says, for each half that counts."""
        return (classes[:, word] == self.words[:, word])[self.right[:, word]]

    def other(self, classes: Tensor, word: int) -> Tensor:
        """Whether the half of a word is as the other word says, for each half that counts."""
        return (classes[:, word] == self.words[:, 1 - word])[self.right[:, word]]


def forbidden(
    network: WordUNet, *, count: int, seed: int, scale: float = SCALE
) -> tuple[dict[str, float], dict[str, list[list[float]]]]:
    """Halves whose word is forbidden from a step on, and where pixels look with both words.

    Of `count` random captions the left word and the right one are forbidden in turn. Only halves count that are as
    named with both words.

    Returns:
        Shares by "step, what": "named" and "other", the half is as its own word or as the other one says, and
        "beside", the untouched half is still as its word says; and "right", the share of halves as named with both
        words. Then curves, [step, weight of the left word], by half.
    """
    draws = Draws(network, count=count, seed=seed, scale=scale)
    result = {"right": share([draws.right])}
    for begin in BEGINS:
        classes = [
            draws.classes(allowed, begin, draws.pictures[begin]) for allowed in all_but_one(count)
        ]
        step = VISITED[begin]
        result[f"{step}, named"] = share([draws.own(classes[word], word) for word in (0, 1)])
        result[f"{step}, other"] = share([draws.other(classes[word], word) for word in (0, 1)])
        result[f"{step}, beside"] = share([draws.own(classes[word], 1 - word) for word in (0, 1)])
    return result, looks_at_left_word(network, draws)


def looks_at_left_word(network: WordUNet, draws: Draws) -> dict[str, list[list[float]]]:
    """The weight of the left word, [step, mean weight], by the half in which the asking pixels lie."""
    curves: dict[str, list[list[float]]] = {"left half": [], "right half": []}
    head = telling_head(network)
    for i in range(0, len(VISITED) - 1, EVERY):
        weights = weights_of_left(network, draws.pictures[i], draws.words, VISITED[i])[:, head]
        for name, half in zip(curves, weights.chunk(2, dim=-1), strict=True):
            curves[name].append([VISITED[i].item(), round(half.mean().item(), 3)])
    return curves


def asked_late(
    network: WordUNet, *, count: int, seed: int, scale: float = SCALE
) -> dict[str, float]:
    """Halves whose word is missing at first, and may be asked only from a step on: the reverse of `forbidden`.

    The captions, the noise and the halves that count are those of `forbidden`.

    Returns:
        Shares by "step, what": "named" and "other", the half is as its own word or as the other one says.
    """
    draws = Draws(network, count=count, seed=seed, scale=scale)
    without = [draws.drawn(allowed) for allowed in all_but_one(count)]
    result = {}
    for begin in BEGINS[1:]:
        classes = [draws.classes(None, begin, pictures[begin]) for pictures in without]
        step = VISITED[begin]
        result[f"{step}, named"] = share([draws.own(classes[word], word) for word in (0, 1)])
        result[f"{step}, other"] = share([draws.other(classes[word], word) for word in (0, 1)])
    return result


def without_words(
    network: WordUNet, *, count: int, seed: int, scale: float = SCALE
) -> dict[str, float]:
    """Halves for which no word at all may be asked up to a step, or from it on, so that no other word takes over.

    Returns:
        Shares of halves as named by "step, until" and "step, from": words are asked until this step, or from it on.
    """
    draws = Draws(network, count=count, seed=seed, scale=scale)
    none = torch.zeros(count, 2, dtype=torch.bool)
    without = draws.drawn(none)
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
    """Shares of halves that become what their word says: asked only until a step, and asked only from a step on.

    Dotted, the means of `alone`, where no other word may be asked instead.
    """
    for runs, color, label in (
        (gone, "key", "asked until this step"),
        (late, "query", "asked only from this step on"),
    ):
        for run in runs:
            steps = [int(VISITED[i]) for i in BEGINS if f"{VISITED[i]}, named" in run.result]
            shares = [run.result[f"{step}, named"] for step in steps]
            look = {"color": COLORS[color], "label": label if run is runs[0] else None}
            ax.plot(steps, shares, "o-", ms=3, **look)
    for name, color, label in (
        ("until", "key", "the same, without a rival"),
        ("from", "query", None),
    ):
        steps = [int(VISITED[i]) for i in BEGINS]
        rows = [[run.result[f"{step}, {name}"] for step in steps] for run in alone]
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        ax.plot(steps, means, ":", color=COLORS[color], label=label)
    ax.set(xlabel="Step", ylabel="Halves as their word says", xlim=(STEPS + 4, 82), ylim=(0, 1.02))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(title="The word is", fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))
