"""The vision transformer (ViT), and images cut into patches.

Dosovitskiy et al. (2021), "An image is worth 16×16 words: Transformers for image recognition at scale".
Taught in *Vision transformers*.
"""

from typing import Any

import torch
from torch import Tensor, nn

from course_utils.arguments import check_positive
from course_utils.layers import EncoderLayer
from course_utils.positions import LearnedPositions
from course_utils.recording import is_observed

Size = int | tuple[int, int]
"""Height and width in pixels; one number for both."""

POSITION_STD = 0.3
"""Standard deviation of the initial position vectors, near that of the tokens they are added to, so that a
short training learns them. (*Vision transformers* measures it against the usual 0.02.)"""


def cut_patches(images: Tensor, size: Size) -> Tensor:
    """Patches of images, rectangles that do not overlap, row by row, each as one vector.

    Args:
        images: (batch, channels, height, width).
        size: of a patch, in pixels; its height divides the images' height, its width their width.

    Returns:
        (batch, number of patches, channels · patch height · patch width); within a patch the channel
        changes slowest.

    Raises:
        ValueError: `images` has another number of axes, or `size` does not divide it.
    """
    height, width = _pair(size)
    valid = images.ndim == 4 and min(height, width) > 0
    if not valid or images.shape[2] % height or images.shape[3] % width:
        raise ValueError(
            f"images has shape {tuple(images.shape)}; (batch, channels, height, width) with sides "
            f"divisible by {size} is needed"
        )
    cut = images.unfold(2, height, height).unfold(3, width, width)
    # (batch, channels, rows, columns, height, width) → (batch, rows, columns, channels, height, width)
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def join_patches(
    patches: Tensor, channels: int, height: int, width: int, *, size: Size | None = None
) -> Tensor:
    """Images that consist of these patches: undoes `cut_patches`.

    Args:
        patches: (batch, number of patches, channels · patch height · patch width).
        channels: of the images.
        height, width: of the images, in pixels.
        size: of a patch, in pixels; a square by default.

    Returns:
        (batch, channels, height, width).

    Raises:
        ValueError: the patches do not make up such an image.
    """
    _batch, number, length = patches.shape
    side = round((length / channels) ** 0.5)
    patch_height, patch_width = (side, side) if size is None else _pair(size)
    area = patch_height * patch_width
    fits = channels * area == length and number * area == height * width
    if not fits or height % patch_height or width % patch_width:
        raise ValueError(
            f"patches has shape {tuple(patches.shape)}; {number} patches of {length} numbers do "
            f"not make an image of {channels} × {height} × {width}"
        )
    grid = patches.unflatten(1, (height // patch_height, -1))
    grid = grid.unflatten(3, (channels, patch_height, patch_width))
    # (batch, rows, columns, channels, height, width) → (batch, channels, rows, height, columns, width)
    return grid.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)


class PatchEmbedding(nn.Module):
    """Tokens E x + b, one for each patch x: (batch, channels, height, width) → (batch, patches, embed_dim).

    x is the patch as `cut_patches` gives it, E is (embed_dim, channels · patch height · patch width),
    the same for all patches. A convolution whose stride is its kernel is the same map; on a CPU the
    matrix is faster.

    Args:
        patch_size: height and width of a patch, in pixels, or one number for both.
        channels: of the images.
        embed_dim: size of a token.

    Raises:
        ValueError: when called, the patches do not fill the images.
    """

    def __init__(self, patch_size: Size, channels: int, embed_dim: int):
        super().__init__()
        self.patch_size = patch_size
        height, width = _pair(patch_size)
        self.proj = nn.Linear(channels * height * width, embed_dim)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, channels, height, width) → (batch, patches, embed_dim)."""
        return self.proj(cut_patches(images, self.patch_size))


class ViT(nn.Module):
    """Vision transformer: patches and a class token, layers with the norm first, a linear output layer.

        z₀ = [x_class; E x₁; …; E x_m] + P,   z_ℓ = layer_ℓ(z_ℓ₋₁),   logits = W norm(z_L)_class + b

    with P (1 + patches, embed_dim) and W (num_classes, embed_dim). Dosovitskiy et al. (2021),
    section 3.1.

    Args:
        image_size: height and width of the images, in pixels, or one number for both.
        patch_size: height and width of a patch, likewise; they divide those of the images.
        channels: of the images.
        num_classes: of the images.
        embed_dim: size of a token.
        num_heads: of the attention; divides `embed_dim`.
        ffn_dim: size of the hidden layer of the position-wise network.
        num_layers: number of blocks.
        dropout: as in `layers.EncoderLayer`, and on the tokens that enter.
        eps: as in `layers.EncoderLayer`.

    Raises:
        ValueError: `patch_size` does not divide `image_size`, `num_heads` does not divide
            `embed_dim`, there is no layer, or, when called, the images have another size.
    """

    def __init__(
        self,
        *,
        image_size: Size = 28,
        patch_size: Size = 7,
        channels: int = 1,
        num_classes: int = 10,
        embed_dim: int = 128,
        num_heads: int = 4,
        ffn_dim: int = 256,
        num_layers: int = 2,
        dropout: float = 0.1,
        eps: float = 1e-5,
    ):
        super().__init__()
        height, width = _pair(image_size)
        patch_height, patch_width = _pair(patch_size)
        if min(patch_height, patch_width) < 1 or height % patch_height or width % patch_width:
            raise ValueError(f"image_size={image_size} is not divisible by patch_size={patch_size}")
        check_positive(num_layers=num_layers)
        self.image_shape = (channels, height, width)
        self.grid = (height // patch_height, width // patch_width)  # rows and columns of patches
        rows, columns = self.grid
        self.patch_embedding = PatchEmbedding(patch_size, channels, embed_dim)
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.positions = LearnedPositions(embed_dim, max_len=1 + rows * columns)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(
                embed_dim,
                num_heads,
                ffn_dim,
                dropout=dropout,
                norm_first=True,
                activation="gelu",
                eps=eps,
            )
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(embed_dim, eps=eps)
        self.output = nn.Linear(embed_dim, num_classes)
        nn.init.normal_(self.positions.table, std=POSITION_STD)
        for module in [*self.layers.modules(), self.output]:
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    def forward(self, images: Tensor) -> Tensor:
        """Logits (batch, num_classes) of images (batch, channels, height, width), from the class token.

        The last layer computes this token only, unless its attention is recorded or a hook is set in it.
        """
        x = self.embed(images)
        for layer in self.layers[:-1]:
            x = layer(x)
        last = self.layers[-1]
        x = last(x) if is_observed(last) else _first_output(last, x)
        return self.output(self.norm(x)[:, 0])

    def tokens(self, images: Tensor) -> Tensor:
        """Outputs of the layers, (batch, 1 + patches, embed_dim), class token first; arguments as in `forward`."""
        x = self.embed(images)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def embed(self, images: Tensor) -> Tensor:
        """Tokens that enter the layers, (batch, 1 + patches, embed_dim), class token first.

        Raises:
            ValueError: the images have another size or number of channels.
        """
        if images.shape[1:] != self.image_shape:
            raise ValueError(
                f"images has shape {tuple(images.shape)}; "
                f"(batch, {', '.join(map(str, self.image_shape))}) is needed"
            )
        x = self.patch_embedding(images)
        x = torch.cat([self.class_token.expand(x.shape[0], -1, -1), x], dim=1)
        return self.dropout(self.positions(x))


def _first_output(layer: Any, x: Tensor) -> Tensor:
    """Output of an `EncoderLayer` for the first token only, (batch, 1, embed_dim); `norm_first` is needed."""
    first, keys = x[:, :1], layer.attention_norm(x)
    queries = layer.attention_norm(first)
    x = first + layer.dropout(layer.attention(queries, keys, keys))
    return x + layer.dropout(layer.feed_forward(layer.feed_forward_norm(x)))


def _pair(size: Size) -> tuple[int, int]:
    """Height and width."""
    return (size, size) if isinstance(size, int) else size
