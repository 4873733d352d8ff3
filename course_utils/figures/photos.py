"""Images in rows and columns, with attention weights of their patches over them."""

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.image import AxesImage

from course_utils.figures.picture import MAX_WIDTH, ArrayLike, Picture, subplots, to_numpy

OVERLAY = "#FF8C2E"
"""Color of weights over an image; the same on light and dark pages, as the image is."""


def show_images(
    images: ArrayLike,
    *,
    alt: str,
    titles: Sequence[str] | None = None,
    weights: ArrayLike | None = None,
    columns: int | None = None,
    vmax: float | None = None,
    width: float | None = None,
) -> Picture:
    """Images in rows and columns, each with a title and, if given, with weights of its patches over it.

    Args:
        images: (n, channels, height, width), 1 channel for gray or 3 for color; uint8, or floating
            point from -1 to 1.
        alt: what a reader who cannot see the picture needs to know.
        titles: one for each image.
        weights: (n, rows, columns), drawn over the images as in `overlay`, on one scale.
        columns: images per row; by default up to 10.
        vmax: the weight at the upper end of the scale; the largest one by default.
        width: inches; by default each image is about 0.9 wide.

    Raises:
        ValueError: `images` has another number of axes, or titles or weights do not fit.
    """
    images = image_pixels(images)
    if titles is not None and len(titles) != len(images):
        raise ValueError(f"titles has {len(titles)} entries; {len(images)} images need as many")
    if weights is not None:
        weights = to_numpy(weights)
        if weights.ndim != 3 or len(weights) != len(images):
            raise ValueError(
                f"weights has shape {weights.shape}; ({len(images)}, rows, columns) is needed"
            )
        vmax = vmax or float(weights.max())
    columns = min(columns or 10, len(images))
    rows = -(-len(images) // columns)
    width = width or min(MAX_WIDTH, max(0.9 * columns, 2.0))
    aspect = images.shape[1] / images.shape[2]
    height = rows * (aspect * width / columns + (0.26 if titles is not None else 0.05)) + 0.1
    picture, axes = subplots(rows, columns, alt=alt, width=width, height=height, squeeze=False)
    for ax in axes.flat[len(images) :]:
        ax.set_axis_off()
    for index, (ax, image) in enumerate(zip(axes.flat, images, strict=False)):
        draw_image(ax, image, title=titles[index] if titles is not None else None)
        if weights is not None and vmax is not None:
            overlay(ax, weights[index], size=image.shape[:2], vmax=vmax)
    return picture


def image_pixels(images: ArrayLike) -> np.ndarray:
    """Pixels as matplotlib draws them, (n, height, width, channels) from 0 to 1.

    Args:
        images: (n, channels, height, width), uint8, or floating point from -1 to 1.

    Raises:
        ValueError: `images` has another number of axes, or neither 1 nor 3 channels.
    """
    pixels = to_numpy(images)
    if pixels.ndim != 4 or pixels.shape[1] not in (1, 3):
        raise ValueError(f"images has shape {pixels.shape}; (n, 1 or 3 channels, height, width)")
    pixels = pixels / 255 if pixels.dtype == np.uint8 else (pixels + 1) / 2
    return np.clip(np.moveaxis(pixels, 1, -1), 0, 1)


def draw_image(ax: Axes, pixels: np.ndarray, *, title: str | None = None) -> AxesImage:
    """Draw one image, (height, width, channels) from 0 to 1, on given axes; return its artist."""
    shown = pixels[..., 0] if pixels.shape[-1] == 1 else pixels
    artist = ax.imshow(shown, cmap="gray", vmin=0, vmax=1, interpolation="nearest")
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)
    ax.set_title(title or "", fontsize=9, parse_math=False)
    return artist


def overlay(
    ax: Axes, weights: ArrayLike, *, size: tuple[int, int], vmax: float, opacity: float = 0.75
) -> AxesImage:
    """Draw the weights of an image's patches over it, each patch as one rectangle of a color.

    Args:
        ax: where the image has been drawn.
        weights: (rows, columns) of the grid of patches.
        size: height and width of the image under it, in pixels.
        vmax: the weight that is drawn with full `opacity`; a weight of 0 is transparent.
        opacity: from 0 to 1.

    Returns:
        The artist; `set_data(overlay_colors(weights, vmax=vmax))` redraws it.
    """
    colors = overlay_colors(weights, vmax=vmax, opacity=opacity)
    extent = (-0.5, size[1] - 0.5, size[0] - 0.5, -0.5)
    return ax.imshow(colors, extent=extent, interpolation="nearest")


def overlay_colors(weights: ArrayLike, *, vmax: float, opacity: float = 0.75) -> np.ndarray:
    """RGBA colors (rows, columns, 4) of weights (rows, columns): the larger, the more opaque."""
    weights = to_numpy(weights)
    colors = np.empty((*weights.shape, 4))
    colors[..., :3] = mpl.colors.to_rgb(OVERLAY)
    colors[..., 3] = opacity * np.clip(weights / vmax, 0, 1)
    return colors
