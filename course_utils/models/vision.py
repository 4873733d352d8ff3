"""Networks that look at images: the vision transformer, and a small convolutional network.

Dosovitskiy et al. (2021), "An image is worth 16×16 words". Above: `attention`, `positions`,
`transformer`, whose encoder block is the body of the ViT. Below: `training`. Taught in *Vision transformers*.
"""

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.models.transformer import EncoderLayer
from course_utils.positions import LearnedPositions

POSITION_STD = 0.3
"""Spread of position vectors at the start: near that of the tokens they are added to, so that a short
training finds them. (With the usual 0.02 they drown at first; *Vision transformers* measures it.)"""


def cut_patches(images: Tensor, size: int) -> Tensor:
    """Cut images into squares that do not overlap, row by row, each as one vector.

    Args:
        images: (batch, channels, height, width).
        size: height and width of a patch, in pixels; divides both.

    Returns:
        (batch, number of patches, channels · size²); within a patch the channel changes slowest.

    Raises:
        ValueError: `images` has another number of axes, or `size` does not divide it.
    """
    _check_images(images, size)
    cut = images.unfold(2, size, size).unfold(3, size, size)
    # (batch, channels, rows, columns, size, size) → (batch, rows, columns, channels, size, size)
    return cut.permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


def join_patches(patches: Tensor, channels: int, height: int, width: int) -> Tensor:
    """Put the images together again: undoes `cut_patches`.

    Raises:
        ValueError: the patches do not make up such an image.
    """
    _batch, number, length = patches.shape
    size = round((length / channels) ** 0.5)
    if size * size * channels != length or number * size * size != height * width or height % size:
        raise ValueError(
            f"patches has shape {tuple(patches.shape)}; {number} patches of {length} numbers do "
            f"not make an image of {channels} × {height} × {width}"
        )
    grid = patches.unflatten(1, (height // size, -1)).unflatten(3, (channels, size, size))
    return grid.permute(0, 3, 1, 4, 2, 5).flatten(4).flatten(2, 3)


class PatchEmbedding(nn.Module):
    """Each patch as one token: (batch, channels, height, width) → (batch, patches, embed_dim).

    The same map in two guises, with the same parameters: a convolution whose stride is its kernel, or
    the patches cut out and multiplied by one matrix.

    Args:
        patch_size: height and width of a patch, in pixels.
        channels: of the images.
        embed_dim: size of a token.
        by: "unfolding", which is the faster one on a CPU, or "convolution".

    Raises:
        ValueError: `by` is neither; when called, the patches do not fill the images.
    """

    def __init__(self, patch_size: int, channels: int, embed_dim: int, *, by: str = "unfolding"):
        super().__init__()
        if by not in ("unfolding", "convolution"):
            raise ValueError(f"by={by!r}; 'unfolding' or 'convolution' is needed")
        self.patch_size, self.by = patch_size, by
        self.proj = nn.Conv2d(channels, embed_dim, patch_size, stride=patch_size)

    def forward(self, images: Tensor) -> Tensor:
        if self.by == "convolution":
            _check_images(images, self.patch_size)
            return self.proj(images).flatten(2).transpose(1, 2)
        return F.linear(
            cut_patches(images, self.patch_size), self.proj.weight.flatten(1), self.proj.bias
        )


class ViT(nn.Module):
    """Vision transformer: patches and a class token, pre-norm blocks with GELU, a linear head.

    Dosovitskiy et al. (2021), section 3.1.

    Args:
        image_size: height and width of the images, in pixels.
        patch_size: height and width of a patch; divides `image_size`.
        channels, num_classes: of the images.
        embed_dim, num_heads, ffn_dim, num_layers, dropout: as in `nn.TransformerEncoder`; the
            dropout also falls on the tokens that enter.
        patches_by: "unfolding" or "convolution", see `PatchEmbedding`.

    Raises:
        ValueError: `patch_size` does not divide `image_size`, `num_heads` does not divide
            `embed_dim`, there is no layer, or, when called, the images have another size.
    """

    def __init__(
        self,
        *,
        image_size: int = 28,
        patch_size: int = 7,
        channels: int = 1,
        num_classes: int = 10,
        embed_dim: int = 128,
        num_heads: int = 4,
        ffn_dim: int = 256,
        num_layers: int = 2,
        dropout: float = 0.1,
        patches_by: str = "unfolding",
    ):
        super().__init__()
        if patch_size < 1 or image_size % patch_size:
            raise ValueError(f"image_size={image_size} is not divisible by patch_size={patch_size}")
        if num_layers < 1:
            raise ValueError(f"num_layers={num_layers}; at least one is needed")
        self.channels, self.image_size = channels, image_size
        self.grid = image_size // patch_size  # patches along each side
        self.patch_embedding = PatchEmbedding(patch_size, channels, embed_dim, by=patches_by)
        self.class_token = nn.Parameter(torch.zeros(1, 1, embed_dim))
        self.positions = LearnedPositions(embed_dim, max_len=self.grid**2 + 1)
        self.dropout = nn.Dropout(dropout)
        self.layers = nn.ModuleList(
            EncoderLayer(
                embed_dim,
                num_heads,
                ffn_dim,
                dropout=dropout,
                norm_first=True,
                activation="gelu",
            )
            for _ in range(num_layers)
        )
        self.norm = nn.LayerNorm(embed_dim)
        self.head = nn.Linear(embed_dim, num_classes)
        self._initialize()

    def _initialize(self) -> None:
        nn.init.normal_(self.positions.table, std=POSITION_STD)
        for module in self.modules():
            if isinstance(module, nn.Linear):
                nn.init.xavier_uniform_(module.weight)

    def forward(self, images: Tensor) -> Tensor:
        """(batch, channels, height, width) → logits (batch, num_classes).

        The head reads the class token alone, so the last layer computes no other: the same function
        as `head(tokens(images)[:, 0])` in less time.
        """
        x = self._embed(images)
        *earlier, last = self.layers
        for layer in earlier:
            x = layer(x)
        keys = last.around_attention.norm(x)
        x = last.around_attention(x[:, :1], lambda query: last.attention(query, keys, keys))
        x = last.around_feed_forward(x, last.feed_forward)
        return self.head(self.norm(x[:, 0]))

    def tokens(self, images: Tensor) -> Tensor:
        """What the layers make of every token: (batch, 1 + patches, embed_dim), class token first."""
        x = self._embed(images)
        for layer in self.layers:
            x = layer(x)
        return self.norm(x)

    def _embed(self, images: Tensor) -> Tensor:
        size = (self.channels, self.image_size, self.image_size)
        if images.ndim != 4 or images.shape[1:] != size:
            raise ValueError(
                f"images has shape {tuple(images.shape)}; (batch, {', '.join(map(str, size))}) is needed"
            )
        x = self.patch_embedding(images)
        x = torch.cat([self.class_token.expand(len(x), -1, -1), x], dim=1)
        return self.dropout(self.positions(x))


class SmallCNN(nn.Sequential):
    """A convolutional network to compare with: three 3 × 3 convolutions with stride 2, a linear head.

    Args:
        channels, num_classes: of the images.
        width: channels after the first convolution; then twice, then four times as many.
        dropout: before the head.
    """

    def __init__(
        self, *, channels: int = 1, num_classes: int = 10, width: int = 16, dropout: float = 0.1
    ):
        layers = []
        for wider in (width, 2 * width, 4 * width):
            convolution = nn.Conv2d(channels, wider, 3, stride=2, padding=1, bias=False)
            layers += [convolution, nn.BatchNorm2d(wider), nn.ReLU()]
            channels = wider
        pooled = [nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Dropout(dropout)]
        super().__init__(*layers, *pooled, nn.Linear(16 * width, num_classes))


def attention_rollout(maps: list[Tensor]) -> Tensor:
    """How much of each input token reaches each output token, through all layers and residuals.

    Abnar and Zuidema (2020), "Quantifying attention flow in transformers", section 3: the mean over
    the heads, averaged with the identity for the residual, multiplied layer by layer.

    Args:
        maps: a map (…, heads, queries, tokens) per layer, the first layer first; the last may have
            fewer queries, the first of the tokens.

    Returns:
        (…, queries of the last map, tokens); rows sum to 1.

    Raises:
        ValueError: `maps` is empty.
    """
    if not maps:
        raise ValueError("maps is empty; one map per layer is needed")
    flow = None
    for layer in maps:
        mean = layer.mean(dim=-3)
        mixed = (mean + torch.eye(*mean.shape[-2:], device=mean.device, dtype=mean.dtype)) / 2
        flow = mixed if flow is None else mixed @ flow
    return flow


def _check_images(images: Tensor, size: int) -> None:
    if images.ndim != 4 or size < 1 or images.shape[2] % size or images.shape[3] % size:
        raise ValueError(
            f"images has shape {tuple(images.shape)}; (batch, channels, height, width) with sides "
            f"divisible by {size} is needed"
        )
