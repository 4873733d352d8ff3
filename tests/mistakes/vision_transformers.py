"""Mistakes that the checks of *Vision transformers* must catch."""

import math

import torch
from mistakes.table import wrong


def _grid(patches, channels, height, width):
    p = math.isqrt(patches.shape[-1] // channels)
    return patches.reshape(len(patches), height // p, width // p, channels, p, p)


def _joined(grid, *axes):
    """(batch, channels, height, width) of a grid whose axes are put into this order first."""
    return grid.permute(0, *axes).flatten(4, 5).flatten(2, 3)


class rebuild:
    transposed_patches = wrong("Exchanges rows and columns within each patch.",
        lambda patches, *sizes: _joined(_grid(patches, *sizes), 3, 1, 5, 2, 4))
    image_flattened = wrong("Gives one long vector per image.",
        lambda patches, *sizes: _joined(_grid(patches, *sizes), 3, 1, 4, 2, 5).flatten(1))

    def channel_last(patches, channels, height, width):
        """Takes the channel for the fastest axis of a patch."""
        p = math.isqrt(patches.shape[-1] // channels)
        grid = patches.reshape(len(patches), height // p, width // p, p, p, channels)
        return _joined(grid, 5, 1, 3, 2, 4)

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


class my_patches:
    pixels_exchanged = wrong("Exchanges rows and columns within a patch.",
        lambda images, size: _windows(images, size).permute(0, 2, 3, 1, 5, 4).flatten(3).flatten(1, 2))
    channel_fastest = wrong("The channel changes fastest within a patch.",
        lambda images, size: _windows(images, size).permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2))
    grid_kept = wrong("Leaves rows and columns of patches apart.",
        lambda images, size: _windows(images, size).permute(0, 2, 3, 1, 4, 5).flatten(3))
    cut_off = wrong("Gives numbers that no gradient passes.",
        lambda images, size: _windows(images.detach(), size).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2))

    squares_only = wrong("Takes the height of a patch for its width.",
        lambda images, size: _cut(images, size[0], size[0]))
    sizes_exchanged = wrong("Takes the width for the height.", lambda images, size: _cut(images, size[1], size[0]))


class fixed_class_map:
    not_fixed = wrong("The function as it was.",
        lambda maps, rows, columns: maps.mean(dim=1)[:, :, 0][:, 1:].unflatten(1, (rows, columns)))
    column_by_column = wrong("Counts patches down the columns.",
        lambda maps, rows, columns: maps.mean(dim=1)[:, 0, 1:].unflatten(1, (columns, rows)).transpose(1, 2))
    sum_of_heads = wrong("Sums over the heads.",
        lambda maps, rows, columns: maps.sum(dim=1)[:, 0, 1:].unflatten(1, (rows, columns)))
    strongest_head = wrong("Takes the maximum over the heads.",
        lambda maps, rows, columns: maps.amax(dim=1)[:, 0, 1:].unflatten(1, (rows, columns)))

    def rescaled(maps, rows, columns):
        """Divides the map by its own sum."""
        weights = maps.mean(dim=1)[:, 0, 1:]
        return (weights / weights.sum(dim=1, keepdim=True)).unflatten(1, (rows, columns))

    left_in_a_line = wrong("Forgets the grid.", lambda maps, rows, columns: maps.mean(dim=1)[:, 0, 1:])


ANSWERS = {
    "sum_of_heads": ("class token looks", "a sum or a mean"),
}
