"""Images with classes: reading, splitting and batching.

A subset of Fashion-MNIST is in data/fashion_mnist/; the full set comes through `registry`, or from your
own folder. Taught in *Vision transformers*.
"""

import io
import math
import struct
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from course_utils.data.idx import find_idx, read_idx
from course_utils.data.loading import Loader
from course_utils.data.registry import fetch
from course_utils.files import data_path, path_of

FASHION = (
    "T-shirt/top", "Trouser", "Pullover", "Dress", "Coat",
    "Sandal", "Shirt", "Sneaker", "Bag", "Ankle boot",
)  # fmt: skip
LARGEST = 50_000_000
"""The largest number of pixels of an image that `read_image` opens."""

FORMATS = ("PNG", "JPEG", "GIF", "WEBP", "BMP", "TIFF")
"""The formats that `read_image` opens; others of Pillow's readers start programs or are seldom tested."""

NO_DATA = 42113
"""The tag of a GeoTIFF that names the number of pixels without a measurement (GDAL_NODATA)."""

SUFFIXES = (
    ".png", ".jpg", ".jpeg", ".jfif", ".gif", ".webp", ".bmp", ".tif", ".tiff",
    ".heic", ".heif", ".avif", ".jp2", ".svg", ".dng", ".ico", ".ppm", ".pgm",
)  # fmt: skip
"""How names of images end; those of the second line are of kinds that `read_image` does not open."""


@dataclass(frozen=True)
class ImageSet:
    """Images with their classes.

    Attributes:
        images: (n, channels, height, width), uint8.
        labels: (n,), int64.
        classes: the name of each label.
    """

    images: Tensor
    labels: Tensor
    classes: tuple[str, ...]

    def __post_init__(self):
        if self.images.ndim != 4 or self.images.dtype != torch.uint8:
            raise ValueError(
                f"images have shape {tuple(self.images.shape)} and dtype {self.images.dtype}; "
                "(n, channels, height, width) of uint8 is needed"
            )
        if len(self.images) != len(self.labels):
            raise ValueError(f"{len(self.images)} images, {len(self.labels)} labels; one each")
        if len(self.labels) and not 0 <= self.labels.min() <= self.labels.max() < len(self.classes):
            raise ValueError(
                f"labels go from {self.labels.min()} to {self.labels.max()}, outside the "
                f"{len(self.classes)} classes, which count from 0"
            )

    def __len__(self) -> int:
        return len(self.labels)

    def __getitem__(self, rows) -> "ImageSet":
        """The set of some of the images, given by a slice, a list or a tensor of row numbers."""
        return ImageSet(self.images[rows], self.labels[rows], self.classes)

    def take(self, n: int, *, seed: int = 0) -> "ImageSet":
        """A random set of n images with equal numbers of each class, up to one, drawn without replacement.

        Raises:
            ValueError: a class has fewer images than its share.
        """
        generator = torch.Generator().manual_seed(seed)
        share, extra = divmod(n, len(self.classes))
        rows = []
        for label in range(len(self.classes)):
            members = (self.labels == label).nonzero().flatten()
            wanted = share + (label < extra)
            if len(members) < wanted:
                raise ValueError(
                    f"n={n} asks for {wanted} images of {self.classes[label]!r}; "
                    f"there are {len(members)}"
                )
            rows.append(members[torch.randperm(len(members), generator=generator)[:wanted]])
        return self[torch.cat(rows)]

    def split(self, n: int, *, seed: int = 0) -> tuple["ImageSet", "ImageSet"]:
        """Two random parts, n images and the rest, for training and validation.

        The first part has an image of each class, if n is at least their number; otherwise classes are not balanced
        (`take` draws equal numbers).

        Raises:
            ValueError: n leaves one of the parts empty.
        """
        if not 0 < n < len(self):
            raise ValueError(f"n={n}; a number between 1 and {len(self) - 1} is needed")
        order = torch.randperm(len(self), generator=torch.Generator().manual_seed(seed))
        labels = self.labels[order].tolist()
        firsts = [labels.index(label) for label in sorted(set(labels))]
        if max(firsts) >= n:  # a class would be left out: begin with one image of each
            order = torch.cat([order[firsts], order[~torch.isin(order, order[firsts])]])
        return self[order[:n]], self[order[n:]]


# Batches ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ImageBatch:
    """A batch of images and labels.

    Attributes:
        images: (batch, channels, height, width), float32, from -1 (black) to 1 (white).
        labels: (batch,), int64.
    """

    images: Tensor
    labels: Tensor

    def to(self, device: torch.device | str) -> "ImageBatch":
        """The batch on another device."""
        return ImageBatch(self.images.to(device), self.labels.to(device))


class ImageLoader(Loader):
    """A loader of images, scaled to [-1, 1].

    Args:
        data: the images.
        batch_size: images per batch.
        shuffle: False keeps the order, for evaluation.
        augment: whether each image is shifted at random, and mirrored with probability ½; for training only.
        shift: largest shift along each axis, in pixels; the pixels that come in are black.
        mirror: False never mirrors, for images such as digits.
        seed: seed of the loader's own generators.

    Raises:
        ValueError: there are no images, `batch_size` is not positive, or `shift` is negative or as
            large as the images.
    """

    def __init__(
        self,
        data: ImageSet,
        *,
        batch_size: int = 128,
        shuffle: bool = True,
        augment: bool = False,
        shift: int = 2,
        mirror: bool = True,
        seed: int = 0,
    ):
        super().__init__(len(data), batch_size=batch_size, shuffle=shuffle, seed=seed)
        side = min(data.images.shape[-2:])
        if not 0 <= shift < side:
            raise ValueError(f"shift={shift}; between 0 and {side - 1} pixels are needed")
        self.data, self.augment, self.shift, self.mirror = data, augment, shift, mirror

    def _batch(self, rows: list[int], generator: torch.Generator) -> ImageBatch:
        images = scaled(self.data.images[rows])
        if self.augment:
            images = self._shifted(images, generator)
        return ImageBatch(images, self.data.labels[rows])

    def _shifted(self, images: Tensor, generator: torch.Generator) -> Tensor:
        n, _, height, width = images.shape
        if self.mirror:
            mirrored = torch.rand(n, generator=generator) < 0.5
            images = torch.where(mirrored[:, None, None, None], images.flip(-1), images)
        size = 2 * self.shift + 1
        down, right = torch.randint(size, (2, n, 1), generator=generator)
        padded = torch.nn.functional.pad(images, [self.shift] * 4, value=-1.0)
        rows = down + torch.arange(height)  # (n, height)
        columns = right + torch.arange(width)
        batch = torch.arange(n)[:, None, None]
        return padded[batch, :, rows[:, :, None], columns[:, None, :]].movedim(-1, 1)


def scaled(images: Tensor) -> Tensor:
    """The images as float32 from -1 to 1, of uint8 from 0 to 255."""
    return images.float() / 127.5 - 1


# Fashion-MNIST ----------------------------------------------------------------------------------


def load_fashion_mnist(
    split: str = "train",
    *,
    full: bool = False,
    folder: str | Path | None = None,
    classes: Sequence[str] | None = None,
) -> ImageSet:
    """Fashion-MNIST: 28 × 28 gray pictures of clothes in ten classes (Xiao, Rasul and Vollgraf, 2017).

    Args:
        split: "train" or "test".
        full: False reads the course's subset of 10,000 + 2,000 images, with equal numbers of each class; True the
            whole set of 60,000 + 10,000, which `registry` downloads.
        folder: a folder with IDX files to read instead, with or without .gz: Fashion-MNIST or another set in MNIST's
            format, by the names that MNIST's site, Kaggle or EMNIST gave them (see `find_idx`).
        classes: names of the labels 0, 1, 2, … of the files in `folder`; the numbers by default.

    Raises:
        ValueError: `split` is another word, several sets lie in `folder`, a file is damaged or no IDX file, or a label
            has no name in `classes`.
        FileNotFoundError: a file is missing; the message says which, and what lies in the folder.
    """
    names = {
        "train": ("train-images-idx3-ubyte", "train-labels-idx1-ubyte"),
        "test": ("t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"),
    }
    if split not in names:
        raise ValueError(f"split={split!r}; 'train' or 'test' is needed")
    if folder is not None:
        paths = [find_idx(folder, name) for name in names[split]]
    elif full:
        paths = [fetch("fashion-mnist-" + name.split("-idx")[0]) for name in names[split]]
    else:
        paths = [data_path(f"fashion_mnist/{name}.gz") for name in names[split]]
    images, labels = (torch.from_numpy(read_idx(path)) for path in paths)
    if classes is None:
        numbers = range(int(labels.max()) + 1)
        classes = FASHION if folder is None else [str(label) for label in numbers]
    return ImageSet(images.unsqueeze(1), labels.long(), tuple(classes))


# An image of your own ---------------------------------------------------------------------------


def read_image(image, *, size: int = 28, channels: int = 1) -> Tensor:
    """The pixels of an image, cut to a square in its middle, resized, with black in place of transparency.

    Args:
        image: a path, the bytes of a file (as from an upload), or a PIL image.
        size: height and width of the result, in pixels.
        channels: 1 for gray, 3 for color.

    Returns:
        (channels, size, size), uint8. The image is turned as its EXIF orientation says, 16 bits per pixel become 8,
        and the first frame of an animation is taken.

    Raises:
        TypeError: `image` is neither a path, nor bytes, nor a PIL image.
        ValueError: the file is no image, is damaged, or has no pixel or more than 50 million; or `channels` or `size`
            is out of range.
        FileNotFoundError: there is no such file.
    """
    from PIL import Image, ImageOps

    check_form(size, channels)
    upright = _opened(image)
    flat = Image.new("RGBA", upright.size, "black")
    flat.alpha_composite(upright)
    square = ImageOps.fit(flat.convert("L" if channels == 1 else "RGB"), (size, size))
    pixels = torch.from_numpy(np.asarray(square).copy())
    return pixels.unsqueeze(0) if channels == 1 else pixels.movedim(-1, 0).contiguous()


def check_form(size: int, channels: int) -> None:
    """Raise ValueError unless images can have this size and number of channels."""
    if channels not in (1, 3):
        raise ValueError(f"channels={channels}; 1 for gray or 3 for color is needed")
    if size < 1:
        raise ValueError(f"size={size}; at least one pixel is needed")


def is_image(path: Path) -> bool:
    """Whether a file is an image by its name or by how it begins, even if it can't be read whole."""
    from PIL import Image

    if path.suffix.lower() in SUFFIXES:
        return True
    try:
        with warnings.catch_warnings(action="ignore"), Image.open(path, formats=FORMATS):
            return True
    except Image.DecompressionBombError:
        return True
    except (OSError, SyntaxError, struct.error):
        return False


def _opened(image):
    """The PIL image in RGBA, upright; all errors of reading it become a ValueError."""
    from PIL import Image, ImageOps, UnidentifiedImageError

    if isinstance(image, bytes | bytearray | memoryview):
        source, name = io.BytesIO(bytes(image)), "the upload"
    elif isinstance(image, str | Path):
        source, name = path_of(image), path_of(image).name
    elif isinstance(image, Image.Image):
        source, name = image, "the image"
    else:
        kind = type(image).__name__
        raise TypeError(f"image is a {kind}; a path, the bytes of a file or a PIL image is needed")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", Image.DecompressionBombWarning)  # judged below
            opened = (
                source if isinstance(source, Image.Image) else Image.open(source, formats=FORMATS)
            )
        if not 0 < opened.width * opened.height <= LARGEST:
            raise ValueError(_pixel_limit(name, f"{opened.width} × {opened.height} pixels"))
        return _eight_bits(ImageOps.exif_transpose(opened), _no_data(opened), name).convert("RGBA")
    except FileNotFoundError:
        raise
    except Image.DecompressionBombError as error:
        raise ValueError(_pixel_limit(name, "far too many pixels")) from error
    except UnidentifiedImageError as error:
        raise ValueError(
            f"{name} is no image of a kind that can be read; PNG, JPEG, GIF, WebP, BMP and TIFF are"
        ) from error
    except (OSError, SyntaxError, EOFError, struct.error) as error:  # what damaged files provoke
        raise ValueError(f"{name} can't be read as an image: {error}") from error


def _pixel_limit(name: str, found: str) -> str:
    return f"{name} has {found}; between 1 and {LARGEST // 1_000_000} million are taken"


def _no_data(image) -> float:
    """The number that a GeoTIFF has where nothing was measured; NaN if the file names none."""
    try:
        return float(getattr(image, "tag_v2", {})[NO_DATA].strip("\0 "))
    except (KeyError, ValueError, AttributeError):
        return math.nan


def _eight_bits(image, no_data: float, name: str):
    """An image with 16 bits or more per pixel (scans, depth maps), scaled to 0 to 255; others unchanged.

    Pixels without a number (NaN, `no_data`) become black, as transparent ones do.
    """
    from PIL import Image

    if not image.mode.startswith(("I", "F")):
        return image
    pixels = np.asarray(image).astype(np.float64)
    known = np.isfinite(pixels) & (pixels != no_data)
    if not known.any():
        raise ValueError(f"{name} has no pixel with a number; all are NaN, infinite or “no data”")
    low, high = 0, 65_535
    if not image.mode.startswith("I;16"):
        low, high = pixels[known].min(), pixels[known].max()
    shades = 255 * (np.where(known, pixels, low) - low) / max(high - low, 1e-12)
    return Image.fromarray(shades.clip(0, 255).astype(np.uint8))
