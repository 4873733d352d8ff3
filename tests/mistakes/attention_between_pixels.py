"""Mistakes that the checks of *Attention between pixels* must catch."""

import torch
from mistakes.table import wrong
from torch.nn import functional as F


def _patches(pictures, mode="replicate"):
    return F.unfold(F.pad(pictures[:, None], [1] * 4, mode=mode), 3).mT


def _smooth(pictures, keys, axis=-1):
    weights = (-torch.cdist(keys, keys).square() / 2).softmax(dim=axis)
    return (weights @ pictures.flatten(1)[..., None]).view_as(pictures)


class non_local_means:
    zeros_around = wrong("Pads with zeros.",
        lambda pictures, width: _smooth(pictures, _patches(pictures, "constant") / width))
    softmax_over_queries = wrong("The columns sum to 1.",
        lambda pictures, width: _smooth(pictures, _patches(pictures) / width, axis=-2))
    mean_of_nine = wrong("Takes the mean of the nine squares, not their sum.",
        lambda pictures, width: _smooth(pictures, _patches(pictures) / (3 * width)))
    squares_divided_once = wrong("Divides the squared distance by the width, not the differences.",
        lambda pictures, width: _smooth(pictures, _patches(pictures) / width**0.5))
    without_the_width = wrong("Forgets to divide by the width.",
        lambda pictures, width: _smooth(pictures, _patches(pictures)))
    mirrored_around = wrong("Pads with the pixels behind the edge.",
        lambda pictures, width: _smooth(pictures, _patches(pictures, "reflect") / width))

    def near_ones_only(pictures, width):
        """Puts the place into the key, too."""
        height, breadth = pictures.shape[1:]
        places = torch.cartesian_prod(torch.arange(float(height)), torch.arange(float(breadth)))
        where = places.view(-1, 2).expand(len(pictures), -1, -1)
        return _smooth(pictures, torch.cat([_patches(pictures) / width, where], dim=-1))

    def columns_for_patches(pictures, width):
        """Does not exchange the axes: nine keys, and a reshape that does not fit."""
        keys = _patches(pictures).mT / width
        return _smooth(pictures, keys)

    def across_the_batch(pictures, width):
        """Compares with the pixels of all pictures."""
        keys = _patches(pictures).flatten(0, 1) / width
        weights = (-torch.cdist(keys, keys).square() / 2).softmax(dim=-1)
        return (weights @ pictures.flatten()).view_as(pictures)

    def without_exponential(pictures, width):
        """Divides one over the distances."""
        patches = _patches(pictures) / width
        weights = 1 / (1 + torch.cdist(patches, patches).square())
        weights = weights / weights.sum(dim=-1, keepdim=True)
        return (weights @ pictures.flatten(1)[..., None]).view_as(pictures)

    def pictures_for_channels(pictures, width):
        """Pads and unfolds without the axis of channels: a patch holds the pixels of all pictures."""
        padded = F.pad(pictures, [1] * 4, mode="replicate")
        return _smooth(pictures, F.unfold(padded, 3).mT / width)


def _parts(qkv, num_heads):
    """(batch, heads, size, pixels), three times."""
    return (part.unflatten(1, (num_heads, -1)) for part in qkv.chunk(3, dim=1))


def _attended(qkv, num_heads, **options):
    q, k, v = _parts(qkv, num_heads)
    return F.scaled_dot_product_attention(q.mT, k.mT, v.mT, **options).mT


class fixed_heads:
    scaled_by_all_channels = wrong("Divides by the root of all channels.",
        lambda qkv, num_heads: _attended(qkv, num_heads, scale=(qkv.shape[1] / 3) ** -0.5).flatten(1, 2))
    heads_left_in_the_batch = wrong("Forgets to join the heads.",
        lambda qkv, num_heads: _attended(qkv, num_heads).flatten(0, 1))

    def not_fixed(qkv, num_heads):
        """The buggy function as it stands in the chapter."""
        batch, width, pixels = qkv.shape
        size = width // (3 * num_heads)
        q, k, v = qkv.reshape(batch * num_heads, 3 * size, pixels).split(size, dim=1)
        weights = (q.mT @ k / size**0.5).softmax(dim=-1)
        return (v @ weights.mT).reshape(batch, -1, pixels)

    def over_queries(qkv, num_heads):
        """The columns sum to 1."""
        q, k, v = _parts(qkv, num_heads)
        weights = (q.mT @ k / q.shape[2] ** 0.5).softmax(dim=-2)
        return (v @ weights.mT).flatten(1, 2)

    def all_pictures_in_one_line(qkv, num_heads):
        """All pixels of all pictures attend to one another."""
        heads = _attended(qkv.transpose(0, 1).flatten(1)[None], num_heads).flatten(1, 2)[0]
        return heads.unflatten(1, (len(qkv), -1)).transpose(0, 1)


ON_PAPER = {
    "predicted_pixels": {
        "a": 14,  # counts down the columns
        "b": 1,  # believes that a row of the view is a pixel
        "c": 1,  # believes that a row of the view is a pixel
        "d": 444,  # twelve biases
        "e": 0,  # takes neighbors in the line for neighbors in the picture
    },
}

ANSWERS = {
    "zeros_around": ("are zeros", "mode of the padding"),
    "squares_divided_once": ("by the width", "divide each of the nine differences by the width, square"),
    "without_the_width": ("widths 0.3 and 3", "Divide the patches"),
    "mirrored_around": ("other pixels", "mode of the padding"),
    "softmax_over_queries": ("columns of the weights", "Over which axis"),
    "pictures_for_channels": ("pictures of a batch", "along the axis"),
}
