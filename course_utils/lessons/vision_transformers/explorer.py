"""What the class token attends to, by patch size, block and head, on any image."""

import functools
import html
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_utils.cache import record_attention
from course_utils.data.images import (
    FASHION,
    load_fashion_mnist,
    read_image,
    scaled,
)
from course_utils.figures import COLORS, draw_image, heatmap, image_pixels, subplots
from course_utils.lessons.explorer import Choice, Explorer, still_copy
from course_utils.lessons.live import load_model
from course_utils.models.vision import ViT

__all__ = ["class_token"]

NUM_LAYERS, NUM_HEADS = 2, 4
SHOWN = ("Ankle boot", "Trouser", "Bag", "Shirt")
STRONG = 3.0
"""The upper end of the scale: so many times the weight that a patch would have if all had the same."""


def class_token(
    models: Mapping[int, ViT] | None = None, images: Tensor | None = None
) -> "ImageExplorer":
    """An image, what the class token attends to in it, and what the model takes it for.

    In JupyterLab an image of yours can be uploaded in place of the chosen one.

    Args:
        models: patch size → trained model of two layers and four heads, for 28 × 28 gray images and the
            classes of Fashion-MNIST; by default those that are stored.
        images: (4, 1, 28, 28), uint8; by default four of the test set.

    Raises:
        ValueError: there is no model, one has other sizes, or `images` has another shape.
    """
    models = _stored() if models is None else models
    images = _samples() if images is None else images
    if not models:
        raise ValueError("models is empty; one model for each patch size is needed")
    for size, model in models.items():
        sizes = len(model.layers), model.layers[0].attention.num_heads
        if sizes != (NUM_LAYERS, NUM_HEADS):
            raise ValueError(
                f"models[{size}] has {sizes[0]} layers of {sizes[1]} heads; "
                f"{NUM_LAYERS} layers of {NUM_HEADS} are needed"
            )
    if tuple(images.shape) != (len(SHOWN), 1, 28, 28) or images.dtype != torch.uint8:
        raise ValueError(
            f"images has shape {tuple(images.shape)} and dtype {images.dtype}; "
            f"({len(SHOWN)}, 1, 28, 28) of uint8 is needed"
        )
    return ImageExplorer(Gallery(models, images))


class Gallery:
    """Images, and what each model sees in them.

    Attributes:
        images: (n, 1, 28, 28), uint8.
        titles: one for each.
        models: patch size → model.
    """

    def __init__(self, models: Mapping[int, ViT], images: Tensor):
        """Copies both: what is shown does not change when a model learns on."""
        self.models = {size: still_copy(model) for size, model in models.items()}
        self.images = images.clone()
        self.titles = list(SHOWN)
        self._seen: dict[tuple[int, int], tuple[list[Tensor], Tensor]] = {}

    def replace(self, index: int, image: Tensor) -> None:
        """Put the reader's image, (1, 28, 28) of uint8, in place of one."""
        self.images[index] = image
        self.titles[index] = "Your image"
        self._seen = {key: kept for key, kept in self._seen.items() if key[0] != index}

    def look(self, index: int, patch_size: int) -> tuple[list[Tensor], Tensor]:
        """Weights (heads, rows, columns) of the class token for each layer, and class probabilities."""
        if (index, patch_size) not in self._seen:
            model = self.models[patch_size]
            with record_attention(model) as maps:
                logits = model(scaled(self.images[index : index + 1]))
            layers = [layer[0, :, 0, 1:].unflatten(1, model.grid) for layer in maps.values()]
            self._seen[index, patch_size] = layers, logits[0].softmax(-1)
        return self._seen[index, patch_size]


class ImageExplorer(Explorer):
    """The explorer of this chapter: in JupyterLab it takes an image of the reader's."""

    def __init__(self, gallery: Gallery):
        """The controls follow the models in `gallery`."""
        self._gallery = gallery
        self._box = None
        sizes = tuple(gallery.models)
        heads = {"mean": 0} | {str(head): head + 1 for head in range(NUM_HEADS)}
        controls = {
            "image": Choice({name: index for index, name in enumerate(SHOWN)}, 0, label="Image"),
            "patch_size": Choice(sizes, 7 if 7 in sizes else sizes[0], label="Patch"),
            "block": Choice(range(NUM_LAYERS), NUM_LAYERS - 1, label="Block"),
            "head": Choice(heads, 0, label="Head"),
        }
        caption = "The class token's weight on each patch; 1 is the weight if all had the same."
        super().__init__("class_token", lambda: Look(gallery), controls, caption=caption)

    def take(self, image) -> None:
        """Put an image, whatever `read_image` takes, in place of the chosen one.

        Raises:
            ValueError: it is no image that can be read; says why.
        """
        self._gallery.replace(self.values["image"], read_image(image))
        self.set(**self.values)

    def panel(self):
        """The live controls, with a button to upload an image."""
        if self._box is None:
            import ipywidgets as widgets

            self._upload = widgets.FileUpload(
                accept="image/*", multiple=False, description="Your image", tooltip="Your image"
            )
            self._answer = widgets.HTML()
            self._upload.observe(self._uploaded, "value")
            below = widgets.HBox([self._upload, self._answer])
            self._box = widgets.VBox([super().panel(), below])
        return self._box

    def _uploaded(self, change: dict) -> None:
        if not change["new"]:
            return
        try:
            self.take(bytes(change["new"][0]["content"]))
            text = "Cut to a square, made gray, 28 × 28. The models know light clothes on black."
        except (
            Exception
        ) as error:  # a callback has no cell to raise in: say it where the reader looks
            text = f'<span role="alert">{html.escape(str(error))}</span>'
        self._answer.value = text


class Look:
    """The image, the weights of its patches beside it, and bars of the classes."""

    def __init__(self, gallery: Gallery):
        """Every artist; `draw` fills them."""
        self.gallery = gallery
        self.picture, (plain, seen, right) = subplots(
            1, 3, alt="What the class token attends to", width=7.8, height=2.7,
            width_ratios=[1, 1.2, 1.1],
        )  # fmt: skip
        self.picture.get_layout_engine().set(rect=(0, 0, 1, 0.94))  # room for the titles
        pixels = image_pixels(gallery.images[:1])[0]
        self.image = draw_image(plain, pixels, title=" ")
        self.map = heatmap(seen, np.zeros((4, 4)), xlabel=None, ylabel=None, title=" ", vmax=STRONG)
        self.map.set_extent((-0.5, 27.5, 27.5, -0.5))
        seen.set(xticks=[], yticks=[], aspect="equal")
        bar = self.picture.colorbar(self.map, ax=seen, shrink=0.75, extend="max")
        bar.outline.set_visible(False)
        bar.ax.tick_params(labelsize=8, length=0)
        self.titles = [plain.title, seen.title]
        self._set_bars(right, FASHION)

    def _set_bars(self, ax: Axes, classes: Sequence[str]) -> None:
        rows = range(len(classes))
        self.bars = ax.barh(rows, [1.0] * len(classes), color=COLORS["sky"], height=0.7)
        ax.set_yticks(rows, classes)
        ax.set(xlim=(0, 1), ylim=(len(classes) - 0.4, -0.6), xlabel="probability")
        ax.tick_params(labelsize=8, length=0)

    def draw(self, image: int, patch_size: int, block: int, head: int) -> str:
        """Look at one image with one model; head 0 is the mean of the heads, 1 is head 0."""
        layers, probabilities = self.gallery.look(image, patch_size)
        maps = layers[block]
        weights = maps.mean(0) if head == 0 else maps[head - 1]
        rows, columns = weights.shape
        pixels = image_pixels(self.gallery.images[image : image + 1])[0, ..., 0]
        self.image.set_data(pixels)
        self.map.set_data(weights * weights.numel())
        name = "mean of the heads" if head == 0 else f"head {head - 1}"
        title = self.gallery.titles[image]
        self.titles[0].set_text(title)
        self.titles[1].set_text(f"block {block}, {name}")
        best = int(probabilities.argmax())
        for label, (bar, value) in enumerate(zip(self.bars, probabilities.tolist(), strict=True)):
            bar.set_width(value)
            bar.set_color(COLORS["vermilion"] if label == best else COLORS["sky"])
        row, column = divmod(int(weights.argmax()), columns)
        return (
            f"{title}, cut into patches of {patch_size} × {patch_size} pixels. In block {block}, "
            f"{name}, the class token gives most weight, {weights.max():.0%}, to the patch in row {row}, "
            f"column {column} of {rows} × {columns}, counted from 0. The model says "
            f"{FASHION[best]}, with probability {probabilities[best]:.0%}."
        )


def _samples() -> Tensor:
    test = load_fashion_mnist("test")
    rows = [(test.labels == FASHION.index(name)).nonzero()[2].item() for name in SHOWN]
    return test.images[rows]


@functools.cache
def _stored() -> dict[int, ViT]:
    models = {}
    for size, name in ((14, "vit_patch14"), (7, "vit"), (4, "vit_patch4")):
        stored = load_model(name)
        models[size] = ViT(**stored.config)
        models[size].load_state_dict(stored.state)
    return models
