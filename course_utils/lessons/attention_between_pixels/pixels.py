"""The filters and the heads that the exercises of *Attention between pixels* build, and the pictures that it cleans."""

import torch
from torch import Tensor
from torch.nn import functional as F

from course_utils.attention import merge_heads, scaled_dot_product_attention, split_heads
from course_utils.data.images import load_fashion_mnist, scaled


def clothes(split: str, count: int) -> Tensor:
    """The first pictures of a part of Fashion-MNIST: (count, 28, 28), from −1 to 1."""
    return scaled(load_fashion_mnist(split).images[:count, 0])


def non_local_means(pictures: Tensor, width: float) -> Tensor:
    """Pictures in which each pixel is the average of all, weighted by how much their 3 × 3 patches look like its own.

    Buades, Coll and Morel (2005), in its plainest form: one Gaussian kernel, and no search window.

    Args:
        pictures: (pictures, height, width).
        width: by which the difference of two patches is divided.
    """
    keys = F.unfold(F.pad(pictures[:, None], [1] * 4, mode="replicate"), 3).mT / width
    weights = (-torch.cdist(keys, keys).square() / 2).softmax(dim=-1)
    return (weights @ pictures.flatten(1)[..., None]).view_as(pictures)


def patches_and_places(pictures: Tensor, reach: float, width: float) -> Tensor:
    """Pictures as `non_local_means` gives them, but far pixels count less.

    Args:
        pictures: (pictures, height, width).
        reach: by which the place of a pixel is divided to be part of its key.
        width: by which the difference of two patches is divided.
    """
    patches = F.unfold(F.pad(pictures[:, None], [1] * 4, mode="replicate"), 3).mT / width
    rows, columns = (torch.arange(float(side)) for side in pictures.shape[1:])
    places = torch.cartesian_prod(rows, columns).expand(len(pictures), -1, -1) / reach
    keys = torch.cat([patches, places], dim=-1)
    weights = (-torch.cdist(keys, keys).square() / 2).softmax(dim=-1)
    return (weights @ pictures.flatten(1)[..., None]).view_as(pictures)


def attend(qkv: Tensor, num_heads: int) -> Tensor:
    """The joined heads of an attention, (batch, channels, pixels).

    Args:
        qkv: (batch, 3 · channels, pixels), queries, keys and values, in each the heads side by side.
        num_heads: divides the channels.
    """
    q, k, v = (split_heads(part.mT, num_heads) for part in qkv.chunk(3, dim=1))
    return merge_heads(scaled_dot_product_attention(q, k, v)).mT
