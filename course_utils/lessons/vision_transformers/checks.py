"""Checks of *Vision transformers*: cutting patches, a wrong map, and on its further page putting images together."""

import torch

from course_utils.kit.check import Check
from course_utils.kit.expect import expect, expect_close, expect_shape, expect_unchanged
from course_utils.models.vision import cut_patches

# Patches ----------------------------------------------------------------------------------------

my_patches = Check()


@my_patches.must("returns (batch, patches, channels · patch height · patch width)")
def returns_rows_of_patches(candidate):
    """How many patches fit into a row of the image? Multiply by the number of such rows, and you have the second
    axis.

    Six axes become three: batch; rows and columns of patches; channel, row and column within a patch.
    """
    expect_shape(candidate(torch.randn(2, 1, 6, 9), (3, 3)), (2, 6, 9))
    expect_shape(candidate(torch.randn(2, 3, 4, 4), (2, 2)), (2, 4, 12))


@my_patches.must("cuts the picture of the text as we did by hand")
def cuts_picture_of_text_as_we_did_by_hand(candidate):
    """What is where in your result? Rebuild the picture from your patches on paper.

    A reshape by itself reads whole lines of the image. Which axis has to move in front of which?
    """
    counted = torch.arange(16.0).view(1, 1, 4, 4)
    by_hand = [[[0, 1, 4, 5], [2, 3, 6, 7], [8, 9, 12, 13], [10, 11, 14, 15]]]
    expect_close(
        candidate(counted, (2, 2)), torch.tensor(by_hand).float(), "0 to 15 in patches of 2 × 2"
    )


@my_patches.must("keeps all channels in each patch, one after the other")
def keeps_all_channels_in_each_patch(candidate):
    """Where is the channel's axis after the split? Move it in front of the height and the width within a patch.

    Within a patch the channel changes slowest, so we have (batch, rows, columns, channels, height, width) before
    joining.
    """
    images = torch.randn(2, 3, 6, 6)
    expect_close(candidate(images, (3, 3)), cut_patches(images, 3), "three channels")


@my_patches.must("cuts rectangles as well as squares")
def cuts_rectangles_as_well_as_squares(candidate):
    """Is one side taken for the other? Look also for a number where a size belongs."""
    for height, width, size in ((4, 8, (2, 4)), (9, 3, (3, 1)), (6, 8, (2, 8))):
        images = torch.randn(2, 2, height, width)
        what = f"{height} × {width} pixels in patches of {size[0]} × {size[1]}"
        expect_close(candidate(images, size), cut_patches(images, size), what)


@my_patches.must("leaves the images unchanged, and lets gradients reach them")
def leaves_images_unchanged_and_passes_gradients(candidate):
    """Do you build the result from the images themselves? Reshape and permute them, and write into nothing."""
    images = torch.randn(1, 2, 4, 4, requires_grad=True)
    cut = expect_unchanged(candidate, images, (2, 2))
    expect(cut.requires_grad, "the result does not depend on the images any more")


# Rebuilding -------------------------------------------------------------------------------------

rebuild = Check()


@rebuild.must("returns (batch, channels, height, width)")
def returns_images(candidate):
    """How many rows and how many columns of patches are there? Divide the image's sides by the side of a patch, which
    you get from the size of a row.
    """
    expect_shape(candidate(torch.randn(2, 6, 16), 1, 8, 12), (2, 1, 8, 12))


@rebuild.must("gives a gray image back")
def gives_gray_image_back(candidate):
    """Which axes must be neighbors before we join them? A row of the image needs a row of patches and a row within
    the patch.
    """
    images = torch.arange(2 * 36.0).view(2, 1, 6, 6)
    expect_close(candidate(cut_patches(images, 3), 1, 6, 6), images, "gray images of 6 × 6")


@rebuild.must("gives a color image back")
def gives_color_image_back(candidate):
    """Where does the axis of the channels go? Within a patch it changes slowest, and in an image it comes before
    height and width.
    """
    images = torch.randn(2, 3, 8, 8)
    expect_close(candidate(cut_patches(images, 4), 3, 8, 8), images, "three channels")


@rebuild.must("gives back images that are not square, with patches of any size")
def gives_back_images_and_patches_of_any_size(candidate):
    """Is one side taken for the other? Look also for a size that is written into the code."""
    for height, width, size in ((4, 8, 2), (9, 3, 3), (5, 5, 1), (6, 6, 6)):
        images = torch.randn(1, 2, height, width)
        answer = candidate(cut_patches(images, size), 2, height, width)
        expect_close(answer, images, f"{height} × {width} pixels in patches of {size}")


# A wrong map: find the bug ----------------------------------------------------------------------

fixed_class_map = Check()

_SUMMED = "The place is right, and the weight is twice too large. What do we take over the two heads, a sum or a mean?"


@fixed_class_map.must("returns (batch, rows, columns)")
def returns_map_of_rows_and_columns(candidate):
    """What happens to the heads? We average over them, and leave out the token that is not a patch."""
    expect_shape(candidate(torch.rand(2, 3, 13, 13).softmax(-1), 3, 4), (2, 3, 4))


@fixed_class_map.must("puts the map where the class token looks, here at the last patch")
def puts_map_where_class_token_looks_here_at_last_patch(candidate):
    """Is the class token a query or a key here? Maps are (batch, heads, queries, keys), and we ask what the class
    token looks at.
    """
    maps = torch.zeros(1, 2, 5, 5)
    maps[..., 1] = 1.0  # everybody looks at the first patch …
    maps[:, :, 0] = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])  # … but the class token at the last
    expected = torch.tensor([[[0.0, 0.0], [0.0, 1.0]]])
    answer = candidate(maps, 2, 2)
    summed = isinstance(answer, torch.Tensor) and torch.equal(answer, 2 * expected)
    hint = _SUMMED if summed else ""
    expect_close(answer, expected, "a class token that looks at the last patch", hint=hint)


@fixed_class_map.must("sums to 1 together with the class token's weight on itself")
def sums_to_1_with_weight_of_class_token_on_itself(candidate):
    """Do you average over the heads, and leave the weights as they are? The class token keeps a part of its weight for
    itself, so the map sums to less than 1.

    Which axis sums to 1? A softmax runs over the keys, so don't sum over the queries.
    """
    maps = torch.randn(2, 4, 10, 10).softmax(-1)
    answer = expect_shape(candidate(maps, 3, 3), (2, 3, 3))
    total = answer.sum(dim=(1, 2)) + maps.mean(1)[:, 0, 0]
    expect_close(
        total, torch.ones(2), "the sum of the map and of the class token's weight on itself"
    )


@fixed_class_map.must("keeps the patches in reading order")
def keeps_patches_in_reading_order(candidate):
    """Which token is the first patch? The class token is before it; after it come the patches, row by row."""
    maps = torch.zeros(1, 1, 7, 7)
    maps[0, 0, 0, 1:] = torch.arange(6.0) / 15
    expected = (torch.arange(6.0) / 15).view(1, 2, 3)
    expect_close(candidate(maps, 2, 3), expected, "patches counted row by row")
