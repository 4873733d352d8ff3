"""Mistakes in the exercises of *Attention between pixels*, each with the property that catches it and its hint."""

import torch
from mistakes.table import mistake
from torch.nn import functional as F


def _patches(pictures, mode="replicate"):
    return F.unfold(F.pad(pictures[:, None], [1] * 4, mode=mode), 3).mT


def _smooth(pictures, keys, axis=-1):
    weights = (-torch.cdist(keys, keys).square() / 2).softmax(dim=axis)
    return (weights @ pictures.flatten(1)[..., None]).view_as(pictures)


@mistake(
    "non_local_means",
    caught_by="continues a picture at its edges",
    reason="are zeros",
    hint="mode of the padding",
)
def zeros_around(pictures, width):
    """Pads with zeros."""
    return _smooth(pictures, _patches(pictures, "constant") / width)


@mistake(
    "non_local_means",
    caught_by="leaves a uniform picture as it is",
    reason="columns of the weights",
    hint="Over which axis",
)
def softmax_over_queries(pictures, width):
    """The columns sum to 1."""
    return _smooth(pictures, _patches(pictures) / width, axis=-2)


@mistake(
    "non_local_means",
    caught_by="divides the difference of two patches",
    hint="Do two patches by hand",
)
def mean_of_nine(pictures, width):
    """Takes the mean of the nine squares, not their sum."""
    return _smooth(pictures, _patches(pictures) / (3 * width))


@mistake(
    "non_local_means",
    caught_by="divides the difference of two patches",
    hint="divide each of the nine differences by the width, square",
)
def squares_divided_once(pictures, width):
    """Divides the squared distance by the width, not the differences."""
    return _smooth(pictures, _patches(pictures) / width**0.5)


@mistake(
    "non_local_means",
    caught_by="continues a picture at its edges",
    reason="widths 0.3 and 3",
    hint="Divide the patches",
)
def without_the_width(pictures, width):
    """Forgets to divide by the width."""
    return _smooth(pictures, _patches(pictures))


@mistake(
    "non_local_means",
    caught_by="continues a picture at its edges",
    reason="other pixels",
    hint="mode of the padding",
)
def mirrored_around(pictures, width):
    """Pads with the pixels behind the edge."""
    return _smooth(pictures, _patches(pictures, "reflect") / width)


@mistake(
    "non_local_means",
    caught_by="weights a pixel far away like",
    hint="Does a key contain the position",
)
def near_ones_only(pictures, width):
    """Puts the position into the key, too."""
    height, breadth = pictures.shape[1:]
    places = torch.cartesian_prod(torch.arange(float(height)), torch.arange(float(breadth)))
    where = places.view(-1, 2).expand(len(pictures), -1, -1)
    return _smooth(pictures, torch.cat([_patches(pictures) / width, where], dim=-1))


@mistake(
    "non_local_means",
    caught_by="returns pictures of the same shape",
    hint="Which keys does `smooth` get?",
)
def columns_for_patches(pictures, width):
    """Does not exchange the axes: nine keys, and a reshape that does not fit."""
    keys = _patches(pictures).mT / width
    return _smooth(pictures, keys)


@mistake(
    "non_local_means",
    caught_by="keeps the pictures of a batch apart",
    hint="Which pixels are along the axis",
)
def across_the_batch(pictures, width):
    """Compares with the pixels of all pictures."""
    keys = _patches(pictures).flatten(0, 1) / width
    weights = (-torch.cdist(keys, keys).square() / 2).softmax(dim=-1)
    return (weights @ pictures.flatten()).view_as(pictures)


@mistake(
    "non_local_means",
    caught_by="continues a picture at its edges",
    hint="How does a distance become",
)
def without_exponential(pictures, width):
    """Divides one over the distances."""
    patches = _patches(pictures) / width
    weights = 1 / (1 + torch.cdist(patches, patches).square())
    weights = weights / weights.sum(dim=-1, keepdim=True)
    return (weights @ pictures.flatten(1)[..., None]).view_as(pictures)


@mistake("non_local_means", caught_by="keeps the pictures of a batch apart", hint="along the axis")
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


@mistake(
    "fixed_heads", caught_by="equals the heads one by one, for 2, 3", hint="Which channels become"
)
def scaled_by_all_channels(qkv, num_heads):
    """Divides by the root of all channels."""
    return _attended(qkv, num_heads, scale=(qkv.shape[1] / 3) ** -0.5).flatten(1, 2)


@mistake(
    "fixed_heads",
    caught_by="turns (batch, 3 · channels, pixels)",
    hint="Are the heads joined again?",
)
def heads_left_in_the_batch(qkv, num_heads):
    """Forgets to join the heads."""
    return _attended(qkv, num_heads).flatten(0, 1)


@mistake("fixed_heads", caught_by="takes the values of head 0", hint="Which of your 12 channels")
def not_fixed(qkv, num_heads):
    """The buggy function as it stands in the chapter."""
    batch, width, pixels = qkv.shape
    size = width // (3 * num_heads)
    q, k, v = qkv.reshape(batch * num_heads, 3 * size, pixels).split(size, dim=1)
    weights = (q.mT @ k / size**0.5).softmax(dim=-1)
    return (v @ weights.mT).reshape(batch, -1, pixels)


@mistake(
    "fixed_heads", caught_by="equals attention over all pixels", hint="What did you change besides"
)
def over_queries(qkv, num_heads):
    """The columns sum to 1."""
    q, k, v = _parts(qkv, num_heads)
    weights = (q.mT @ k / q.shape[2] ** 0.5).softmax(dim=-2)
    return (v @ weights.mT).flatten(1, 2)


@mistake(
    "fixed_heads", caught_by="equals attention over all pixels", hint="What did you change besides"
)
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
