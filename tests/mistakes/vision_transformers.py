"""Mistakes that the checks of *Vision transformers* must catch."""

import math

import torch
import torch.nn.functional as F
from mistakes.table import wrong


def _grid(patches, channels, height, width):
    p = math.isqrt(patches.shape[-1] // channels)
    return patches.reshape(len(patches), height // p, width // p, channels, p, p)


class rebuild:
    def transposed_patches(patches, channels, height, width):
        """Exchanges rows and columns within each patch."""
        grid = _grid(patches, channels, height, width)
        return grid.permute(0, 3, 1, 5, 2, 4).reshape(len(patches), channels, height, width)

    def channel_last(patches, channels, height, width):
        """Takes the channel for the fastest axis of a patch."""
        p = math.isqrt(patches.shape[-1] // channels)
        grid = patches.reshape(len(patches), height // p, width // p, p, p, channels)
        return grid.permute(0, 5, 1, 3, 2, 4).reshape(len(patches), channels, height, width)

    def square_grids_only(patches, channels, height, width):
        """Takes as many rows of patches as columns."""
        p = math.isqrt(patches.shape[-1] // channels)
        side = math.isqrt(patches.shape[1])
        if side * side != patches.shape[1]:
            return torch.zeros(len(patches), channels, height, width)
        grid = patches.reshape(len(patches), side, side, channels, p, p)
        return grid.permute(0, 3, 1, 4, 2, 5).reshape(len(patches), channels, side * p, side * p)

    def image_flattened(patches, channels, height, width):
        """Gives one long vector per image."""
        grid = _grid(patches, channels, height, width)
        return grid.permute(0, 3, 1, 4, 2, 5).flatten(1)


def _windows(images, size):
    height, width = size
    return images.unfold(2, height, height).unfold(3, width, width)


class my_patches:
    pixels_exchanged = wrong("Exchanges rows and columns within a patch.",
        lambda images, size: _windows(images, size).permute(0, 2, 3, 1, 5, 4).flatten(3).flatten(1, 2))
    channel_fastest = wrong("The channel changes fastest within a patch.",
        lambda images, size: _windows(images, size).permute(0, 2, 3, 4, 5, 1).flatten(3).flatten(1, 2))
    grid_kept = wrong("Leaves rows and columns of patches apart.",
        lambda images, size: _windows(images, size).permute(0, 2, 3, 1, 4, 5).flatten(3))
    cut_off = wrong("Gives numbers that no gradient passes.",
        lambda images, size: _windows(images.detach(), size).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2))

    def squares_only(images, size):
        """Takes the height of a patch for its width."""
        high = size[0]
        if images.shape[3] % high:
            return torch.zeros(len(images), 1, 1)
        return _windows(images, (high, high)).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)

    def sizes_exchanged(images, size):
        """Takes the width for the height."""
        high, wide = size
        if images.shape[2] % wide or images.shape[3] % high:
            return torch.zeros(len(images), 1, 1)
        return _windows(images, (wide, high)).permute(0, 2, 3, 1, 4, 5).flatten(3).flatten(1, 2)


class resized_positions:
    def class_row_dropped(table, grid):
        """Loses the class token."""
        old = math.isqrt(len(table) - 1)
        square = table[1:].T.reshape(1, -1, old, old)
        return F.interpolate(square, size=(grid, grid), mode="bilinear")[0].flatten(1).T

    def features_and_places_mixed(table, grid):
        """Views (places, features) as (features, rows, columns) without a transpose."""
        old = math.isqrt(len(table) - 1)
        square = table[1:].reshape(1, -1, old, old)
        finer = F.interpolate(square, size=(grid, grid), mode="bilinear")[0]
        return torch.cat([table[:1], finer.flatten(1).T])

    def nearest(table, grid):
        """Repeats the nearest row."""
        old = math.isqrt(len(table) - 1)
        square = table[1:].T.reshape(1, -1, old, old)
        finer = F.interpolate(square, size=(grid, grid), mode="nearest")[0]
        return torch.cat([table[:1], finer.flatten(1).T])


class fixed_class_map:
    not_fixed = wrong("The function as it was.",
        lambda maps, rows, columns: maps.mean(dim=1)[:, :, 0][:, 1:].unflatten(1, (rows, columns)))
    column_by_column = wrong("Counts patches down the columns.",
        lambda maps, rows, columns: maps.mean(dim=1)[:, 0, 1:].unflatten(1, (columns, rows)).transpose(1, 2))
    strongest_head = wrong("Takes the maximum over the heads.",
        lambda maps, rows, columns: maps.amax(dim=1)[:, 0, 1:].unflatten(1, (rows, columns)))
    left_in_a_line = wrong("Forgets the grid.", lambda maps, rows, columns: maps.mean(dim=1)[:, 0, 1:])


ON_PAPER = {
    "sizes_on_paper": {
        "a": 64,  # counts a gray patch
        "b": 64,  # counts patches alone
        "c": 24576,  # counts the matrix of the embedding alone
        "d": 8192,  # counts patches alone
        "e": 16641,  # doubles the number of patches
    },
}
