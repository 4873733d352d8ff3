"""Figures: functions from arrays to a `Picture`, in one style and each with an alt text.

A `Picture` is a matplotlib figure that displays itself, so a cell shows exactly the figure on its last line. Neither
pyplot nor the settings of the session are used or changed.
"""

from course_utils.figures.curves import label_lines, show_curves
from course_utils.figures.maps import heatmap, show_heatmaps
from course_utils.figures.photos import (
    draw_image,
    image_pixels,
    overlay,
    overlay_colors,
    show_images,
)
from course_utils.figures.picture import ArrayLike, Picture, image_tag, subplots, to_numpy
from course_utils.figures.style import COLORS

__all__ = [
    "COLORS",
    "ArrayLike",
    "Picture",
    "draw_image",
    "heatmap",
    "image_pixels",
    "image_tag",
    "label_lines",
    "overlay",
    "overlay_colors",
    "show_curves",
    "show_heatmaps",
    "show_images",
    "subplots",
    "to_numpy",
]
