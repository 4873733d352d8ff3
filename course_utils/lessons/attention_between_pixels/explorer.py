"""The explorer of *Attention between pixels*: where one pixel of a noisy picture looks, with three filters."""

import functools

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.figures import COLORS, subplots
from course_utils.kit.controls import Choice, Slider
from course_utils.kit.explorer import Explorer
from course_utils.lessons.attention_between_pixels.pixels import clothes

__all__ = ["likeness"]

FILTERS = ("blur", "bilateral", "non-local means")
PLACES = (4, 8, 12, 16, 20, 24)
SIDE, NOISE = 28, 0.3
PICTURE = 2
"""The picture shown, of the test set: a shoe."""


def likeness() -> Explorer:
    """A noisy picture with one pixel marked, the weights with which it is averaged, and the picture cleaned."""
    controls = {
        "method": Choice(FILTERS, FILTERS[2], label="Filter"),
        "row": Slider(PLACES, 12, label="Row"),
        "column": Slider(PLACES, 12, label="Column"),
    }
    caption = "The marked pixel is replaced by the average of all, with the weights in the middle."
    return Explorer("likeness", Likeness, controls, caption=caption)


class Likeness:
    """Three panels: the noisy picture, the weights of one pixel, the cleaned picture."""

    def __init__(self) -> None:
        self.seen = _filtered()
        noisy, cleaned, _ = self.seen[FILTERS[0]]
        self.picture, axes = subplots(1, 3, alt="Where a pixel looks", width=7.2, height=2.7)
        gray = {"cmap": "gray", "vmin": -1, "vmax": 1}
        axes[0].imshow(noisy, **gray)
        self.weights = axes[1].imshow(np.zeros((SIDE, SIDE)), cmap="heat", vmin=0, vmax=0.05)
        self.cleaned = axes[2].imshow(cleaned, **gray)
        self.marks = []
        titles = ("noisy", "its weights", "cleaned")
        for ax, title in zip(axes, titles, strict=True):
            ax.set(xticks=[], yticks=[])
            ax.set_title(title, fontsize=10)
            (mark,) = ax.plot(
                [], [], "s", markersize=8, markerfacecolor="none", markeredgewidth=1.6
            )
            mark.set_color(COLORS["query"])
            self.marks.append(mark)
        self.title = axes[1]
        bar = self.picture.colorbar(self.weights, ax=axes[1], shrink=0.8, extend="max")
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8)

    def draw(self, method: str, row: int, column: int) -> str:
        """Mark one pixel, averaged by this filter."""
        _, cleaned, weights = self.seen[method]
        map_ = weights[row * SIDE + column].reshape(SIDE, SIDE)
        self.weights.set_data(map_)
        self.cleaned.set_data(cleaned)
        for mark in self.marks:
            mark.set_data([column], [row])
        near = map_[max(row - 2, 0) : row + 3, max(column - 2, 0) : column + 3].sum()
        self.title.set_title(f"weights: {near:.0%} within 2 pixels", fontsize=10)
        return (
            f"A shoe cleaned by {method}. The pixel in row {row}, column {column} takes {near:.0%} of its "
            f"average from pixels at most two rows and columns away, and {map_[row, column]:.0%} from itself."
        )


@functools.cache
def _filtered() -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """Filter → the noisy picture, the cleaned one, and the weights (pixels, pixels)."""
    clean = clothes("test", PICTURE + 1)[PICTURE]
    noisy = clean + NOISE * torch.randn(clean.shape, generator=torch.Generator().manual_seed(0))
    by_method = {}
    for method, keys in zip(FILTERS, _keys(noisy), strict=True):
        weights = (-torch.cdist(keys, keys).square() / 2).softmax(dim=-1)
        cleaned = (weights @ noisy.flatten()).view_as(noisy)
        by_method[method] = tuple(picture.numpy() for picture in (noisy, cleaned, weights))
    return by_method


def _keys(picture: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Keys of the pixels, (pixels, features), for each of FILTERS, with the widths that the chapter finds."""
    steps = torch.arange(float(SIDE))
    places = torch.cartesian_prod(steps, steps)
    values = picture.flatten()[:, None]
    patches = F.unfold(F.pad(picture[None, None], [1] * 4, mode="replicate"), 3)[0].T
    return places / 0.6, torch.cat([places / 1.5, values / 0.6], dim=1), patches / 0.7
