"""Checks of *Vision transformers*: cutting patches, sizes on paper, a wrong map.

On its further page: putting images together, and positions on a finer grid.
"""

import torch
import torch.nn.functional as F

from course_utils.kit.check import Check, expect, expect_close, expect_shape, expect_unchanged
from course_utils.kit.on_paper import on_paper
from course_utils.models.vision import cut_patches

# Patches ----------------------------------------------------------------------------------------

my_patches = Check("my_patches")


@my_patches.must("the result is (batch, patches, channels · patch height · patch width)")
def _(candidate):
    """How many patches fit into a row of the image, and how many such rows are there?

    Six axes become three: batch; rows and columns of patches; channel, row and column within a patch.
    """
    expect_shape(candidate(torch.randn(2, 1, 6, 9), (3, 3)), (2, 6, 9))
    expect_shape(candidate(torch.randn(2, 3, 4, 4), (2, 2)), (2, 4, 12))


@my_patches.must("the picture of the text is cut as by hand")
def _(candidate):
    """Rebuild the picture from your patches on paper. What stands where?

    A reshape alone reads whole lines of the image. Which axis has to move in front of which?
    """
    counted = torch.arange(16.0).view(1, 1, 4, 4)
    by_hand = [[[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]]
    expect_close(
        candidate(counted, (2, 2)), torch.tensor(by_hand).float(), "0 to 15 in patches of 2 × 2"
    )


@my_patches.must("a patch of a color image has all channels of its place, one after the other")
def _(candidate):
    """Where does the channel's axis stand after the split, and where does it belong?

    Within a patch the channel changes slowest: (batch, rows, columns, channels, height, width) before joining.
    """
    images = torch.randn(2, 3, 6, 6)
    expect_close(candidate(images, (3, 3)), cut_patches(images, 3), "three channels")


@my_patches.must("images and patches may be rectangles")
def _(candidate):
    """Is one side taken for the other, or a number written where a size belongs?"""
    for height, width, size in ((4, 8, (2, 4)), (9, 3, (3, 1)), (6, 8, (2, 8))):
        images = torch.randn(2, 2, height, width)
        what = f"{height} × {width} pixels in patches of {size[0]} × {size[1]}"
        expect_close(candidate(images, size), cut_patches(images, size), what)


@my_patches.must("the images are not changed, and gradients reach them")
def _(candidate):
    """Do you build the result from the images themselves, without writing into them?"""
    images = torch.randn(1, 2, 4, 4, requires_grad=True)
    cut = expect_unchanged(candidate, images, (2, 2))
    expect(cut.requires_grad, "the result does not depend on the images any more")


# Sizes on paper ---------------------------------------------------------------------------------

sizes_on_paper = on_paper(
    "sizes_on_paper", __name__, {
        "a": (192, "the number of numbers in a patch", "Three channels, and 8 · 8 pixels in each."),
        "b": (65, "the number of tokens that the blocks get",
             "How many patches has a row?",
             "8 · 8 patches. Which token is no patch?"),
        "c": (24704, "the number of parameters of the patch embedding",
             "A linear layer from your answer to (a) to 128 features.",
             "192 · 128, and a bias for each feature."),
        "d": (8320, "the number of parameters of the position table",
             "One row for each token of (b), with 128 numbers."),
        "e": (66049, "the number of weights in one map with patches of 4 × 4",
             "How many tokens are there now?",
             "16 · 16 patches and one more; each attends to each."),
    },
)  # fmt: skip

# Rebuilding -------------------------------------------------------------------------------------

rebuild = Check("rebuild")


@rebuild.must("the result is (batch, channels, height, width)")
def _(candidate):
    """How many rows and how many columns of patches are there?"""
    expect_shape(candidate(torch.randn(2, 6, 16), 1, 8, 12), (2, 1, 8, 12))


@rebuild.must("a gray image comes back")
def _(candidate):
    """A row of the image needs a row of patches and a row within the patch. Which axes must stand side by side
    before they are joined?
    """
    images = torch.arange(2 * 36.0).view(2, 1, 6, 6)
    expect_close(candidate(cut_patches(images, 3), 1, 6, 6), images, "gray images of 6 × 6")


@rebuild.must("a color image comes back")
def _(candidate):
    """Within a patch the channel changes slowest. Where does that axis go?"""
    images = torch.randn(2, 3, 8, 8)
    expect_close(candidate(cut_patches(images, 4), 3, 8, 8), images, "three channels")


@rebuild.must("images that are not square, and patches of any size, come back")
def _(candidate):
    """Is one side taken for the other, or a size written into the code?"""
    for height, width, size in ((4, 8, 2), (9, 3, 3), (5, 5, 1), (6, 6, 6)):
        images = torch.randn(1, 2, height, width)
        answer = candidate(cut_patches(images, size), 2, height, width)
        expect_close(answer, images, f"{height} × {width} pixels in patches of {size}")


# Positions on a finer grid ----------------------------------------------------------------------

resized_positions = Check("resized_positions")


@resized_positions.must("the result has a row for each place of the new grid, and one more")
def _(candidate):
    """How many rows does a grid of g × g patches need? Which token has no place in it?"""
    expect_shape(candidate(torch.randn(17, 8), 6), (37, 8))


@resized_positions.must("the class token's row is left as it was")
def _(candidate):
    """This row belongs to no place of the grid. Does it take part in the interpolation?"""
    table = torch.randn(17, 8)
    expect_close(expect_shape(candidate(table, 7), (50, 8))[0], table[0], "the class token's row")


@resized_positions.must("a grid of the same size gives the same table")
def _(candidate):
    """Which axes does F.interpolate take for height and width? Where do the features belong?"""
    table = torch.randn(10, 4)
    expect_close(candidate(table, 3), table, "a grid of the same size")


@resized_positions.must("what grew from row to row, or from column to column, still does")
def _(candidate):
    """Does a reshape mix features with places?"""
    rows, columns = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
    grid = torch.stack([rows, columns], dim=-1).view(16, 2)
    answer = expect_shape(candidate(torch.cat([torch.zeros(1, 2), grid]), 8), (65, 2))[1:]
    by_row, by_column = answer.view(8, 8, 2).unbind(-1)
    for along, name in ((by_row, "row"), (by_column.T, "column")):
        grows = (along[1:-1].diff(dim=0) > 0.1).all() and along.diff(dim=1).abs().max() < 0.01
        expect(bool(grows), f"a feature that grew from {name} to {name} only no longer does")


@resized_positions.must("it is bilinear interpolation")
def _(candidate):
    """Which mode and which options does your F.interpolate have?"""
    table = torch.randn(26, 6)
    grid = table[1:].T.reshape(1, 6, 5, 5)
    finer = F.interpolate(grid, size=(9, 9), mode="bilinear")[0].flatten(1).T
    expect_close(candidate(table, 9)[1:], finer, "bilinear interpolation of 5 × 5 to 9 × 9")


# A wrong map: find the bug ----------------------------------------------------------------------

fixed_class_map = Check("fixed_class_map")


@fixed_class_map.must("the result is (batch, rows, columns)")
def _(candidate):
    """What is done with the heads? Which of the tokens is no patch?"""
    expect_shape(candidate(torch.rand(2, 3, 13, 13).softmax(-1), 3, 4), (2, 3, 4))


@fixed_class_map.must("a class token that looks at the last patch alone has its map there")
def _(candidate):
    """Maps are (batch, heads, queries, keys). Is the class token a query or a key here?"""
    maps = torch.zeros(1, 2, 5, 5)
    maps[..., 1] = 1.0  # everybody looks at the first patch …
    maps[:, :, 0] = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])  # … but the class token at the last
    expected = torch.tensor([[[0.0, 0.0], [0.0, 1.0]]])
    expect_close(candidate(maps, 2, 2), expected, "a class token that looks at the last patch")


@fixed_class_map.must("with the class token's weight on itself, the map sums to 1")
def _(candidate):
    """A softmax runs over the keys. Which axis sums to 1?"""
    maps = torch.randn(2, 4, 10, 10).softmax(-1)
    answer = expect_shape(candidate(maps, 3, 3), (2, 3, 3))
    total = answer.sum(dim=(1, 2)) + maps.mean(1)[:, 0, 0]
    expect_close(
        total, torch.ones(2), "the sum of the map and of the class token's weight on itself"
    )


@fixed_class_map.must("patches stand in reading order")
def _(candidate):
    """Which token is the first patch? Do rows or columns come first in your result?"""
    maps = torch.zeros(1, 1, 7, 7)
    maps[0, 0, 0, 1:] = torch.arange(6.0) / 15
    expected = (torch.arange(6.0) / 15).view(1, 2, 3)
    expect_close(candidate(maps, 2, 3), expected, "patches counted row by row")
