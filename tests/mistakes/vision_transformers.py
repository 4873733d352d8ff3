"""Mistakes in the exercises of *Vision transformers*, each with the property that catches it and its hint."""

import math

import torch
from mistakes.table import mistake


def _grid(patches, channels, height, width):
    p = math.isqrt(patches.shape[-1] // channels)
    return patches.reshape(len(patches), height // p, width // p, channels, p, p)


def _joined(grid, *axes):
    """(batch, channels, height, width) of a grid whose axes are put into this order first."""
    return grid.permute(0, *axes).flatten(4, 5).flatten(2, 3)


@mistake("rebuild", caught_by="gives a gray image back", hint="Which axes must be neighbors")
def transposed_patches(patches, *sizes):
    """Exchanges rows and columns within each patch."""
    return _joined(_grid(patches, *sizes), 3, 1, 5, 2, 4)


@mistake(
    "rebuild",
    caught_by="returns (batch, channels, height, width)",
    hint="How many rows and how many",
)
def image_flattened(patches, *sizes):
    """Gives one long vector per image."""
    return _joined(_grid(patches, *sizes), 3, 1, 4, 2, 5).flatten(1)


@mistake("rebuild", caught_by="gives a color image back", hint="Where does the axis")
def channel_last(patches, channels, height, width):
    """Takes the channel for the fastest axis of a patch."""
    p = math.isqrt(patches.shape[-1] // channels)
    grid = patches.reshape(len(patches), height // p, width // p, p, p, channels)
    return _joined(grid, 5, 1, 3, 2, 4)


@mistake(
    "rebuild",
    caught_by="gives back images that are not square",
    hint="Is one side taken for the other?",
)
def square_grids_only(patches, channels, height, width):
    """Takes as many rows of patches as columns."""
    p = math.isqrt(patches.shape[-1] // channels)
    side = math.isqrt(patches.shape[1])
    if side * side != patches.shape[1]:
        return torch.zeros(len(patches), channels, height, width)
    return _joined(patches.reshape(len(patches), side, side, channels, p, p), 3, 1, 4, 2, 5)


def _windows(images, size):
    height, width = size
    return images.unfold(2, height, height).unfold(3, width, width)


def _cut(images, height, width):
    if images.shape[2] % height or images.shape[3] % width:
        return torch.zeros(len(images), 1, 1)
    return _windows(images, (height, width)).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


@mistake(
    "my_patches",
    caught_by="cuts the picture of the text as we did",
    hint="What is where in your result?",
)
def pixels_exchanged(images, size):
    """Exchanges rows and columns within a patch."""
    return _windows(images, size).permute(0, 2, 3, 1, 5, 4).flatten(3).flatten(1, 2)


@mistake(
    "my_patches", caught_by="keeps all channels in each patch", hint="Where is the channel's axis"
)
def channel_fastest(images, size):
    """The channel changes fastest within a patch."""
    return _windows(images, size).permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2)


@mistake(
    "my_patches",
    caught_by="returns (batch, patches, channels · patch height · patch width)",
    hint="How many patches fit into a row",
)
def grid_kept(images, size):
    """Leaves rows and columns of patches apart."""
    return _windows(images, size).permute(0, 2, 3, 1, 4, 5).flatten(3)


@mistake("my_patches", caught_by="leaves the images unchanged", hint="Do you build the result")
def cut_off(images, size):
    """Gives numbers that no gradient passes."""
    return _windows(images.detach(), size).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


@mistake(
    "my_patches",
    caught_by="cuts rectangles as well as squares",
    hint="Is one side taken for the other?",
)
def squares_only(images, size):
    """Takes the height of a patch for its width."""
    return _cut(images, size[0], size[0])


@mistake(
    "my_patches",
    caught_by="cuts rectangles as well as squares",
    hint="Is one side taken for the other?",
)
def sizes_exchanged(images, size):
    """Takes the width for the height."""
    return _cut(images, size[1], size[0])


@mistake("fixed_class_map", caught_by="puts the map", hint="Is the class token a query")
def not_fixed(maps, rows, columns):
    """The function as it was."""
    return maps.mean(dim=1)[:, :, 0][:, 1:].unflatten(1, (rows, columns))


@mistake(
    "fixed_class_map",
    caught_by="keeps the patches in reading order",
    hint="Which token is the first patch?",
)
def column_by_column(maps, rows, columns):
    """Counts patches down the columns."""
    return maps.mean(dim=1)[:, 0, 1:].unflatten(1, (columns, rows)).transpose(1, 2)


@mistake("fixed_class_map", caught_by="puts the map", hint="a sum or a mean")
def sum_of_heads(maps, rows, columns):
    """Sums over the heads."""
    return maps.sum(dim=1)[:, 0, 1:].unflatten(1, (rows, columns))


@mistake("fixed_class_map", caught_by="sums to 1 together", hint="Do you average over")
def strongest_head(maps, rows, columns):
    """Takes the maximum over the heads."""
    return maps.amax(dim=1)[:, 0, 1:].unflatten(1, (rows, columns))


@mistake("fixed_class_map", caught_by="sums to 1 together", hint="Do you average over")
def rescaled(maps, rows, columns):
    """Divides the map by its own sum."""
    weights = maps.mean(dim=1)[:, 0, 1:]
    return (weights / weights.sum(dim=1, keepdim=True)).unflatten(1, (rows, columns))


@mistake(
    "fixed_class_map", caught_by="returns (batch, rows, columns)", hint="What happens to the heads?"
)
def left_in_a_line(maps, rows, columns):
    """Forgets the grid."""
    return maps.mean(dim=1)[:, 0, 1:]
