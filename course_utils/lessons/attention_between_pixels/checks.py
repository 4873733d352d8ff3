"""Checks of *Attention between pixels*: non-local means, pixels on paper, heads of a line of pixels."""

import torch
from torch.nn.functional import pad, scaled_dot_product_attention, unfold

from course_utils.kit.check import Check
from course_utils.kit.expect import Unmet, expect, expect_close, expect_shape, expect_unchanged
from course_utils.kit.on_paper import on_paper
from course_utils.lessons.attention_between_pixels import pixels

SMALL = 1e-4  # differences that are rounding

# Non-local means ----------------------------------------------------------------------------------

non_local_means = Check(forbids=["non_local_means"])


def _wrong_means(pictures, *, padding="replicate", axis=-1):
    """Non-local means of the width 0.5 with another padding, or another axis of the softmax."""
    keys = unfold(pad(pictures[:, None], [1] * 4, mode=padding), 3).mT / 0.5
    weights = (-torch.cdist(keys, keys).square() / 2).softmax(dim=axis)
    return (weights @ pictures.flatten(1)[..., None]).view_as(pictures)


def _expect_not(answer, mistaken, reason):
    expect_shape(answer, tuple(mistaken.shape))
    expect(not torch.allclose(answer, mistaken, atol=SMALL), reason)


@non_local_means.must("returns pictures of the same shape")
def returns_pictures_of_same_shape(candidate):
    """Which keys does `smooth` get? It needs one key for each pixel, so (pictures, pixels, 9).

    `unfold` gives a column for each pixel. Which two axes do we have to swap?
    """
    answer = expect_unchanged(candidate, torch.rand(2, 6, 6), 0.5)
    if isinstance(answer, torch.Tensor) and answer.shape != (2, 6, 6):
        got = tuple(answer.shape)
        hint = "What does `smooth` return, and do you return that?"
        raise Unmet(f"got shape {got}, expected shape (2, 6, 6)", hint)
    expect_shape(answer, (2, 6, 6))


@non_local_means.must("keeps the pictures of a batch apart")
def keeps_pictures_of_batch_apart(candidate):
    """Which pixels are along the axis of the softmax? Only those of one picture should be.

    `F.pad` and `F.unfold` want (pictures, 1, height, width). Without that 1, what do they take for the channels?
    """
    pictures = torch.rand(2, 5, 5)
    changed = torch.stack([pictures[0], torch.rand(5, 5)])
    same = candidate(changed, 0.5)[0], candidate(pictures, 0.5)[0]
    expect_close(*same, "the first picture after the second one changed", atol=1e-6)


@non_local_means.must("leaves a uniform picture as it is")
def leaves_uniform_picture_as_it_is(candidate):
    """Over which axis is your softmax? The weights of each pixel have to sum to 1."""
    uniform = torch.full((1, 5, 5), 0.25)
    expect_close(candidate(uniform, 0.5), uniform, "a picture of 0.25 everywhere")
    other = torch.rand(1, 5, 5)
    by_columns = _wrong_means(other, axis=-2)
    _expect_not(
        candidate(other, 0.5), by_columns, "the columns of the weights sum to 1, the rows do not"
    )


@non_local_means.must("continues a picture at its edges with its own pixels, not with zeros")
def continues_edges_with_own_pixels_not_zeros(candidate):
    """What does a patch in a corner contain where there is no pixel? Look at the mode of the padding.

    Is the middle of the picture wrong as well? Then look at the keys. Do you divide them by the width?
    """
    narrow, wide = (candidate(torch.linspace(0, 1, 36).view(1, 6, 6), w) for w in (0.3, 3.0))
    expect(
        not torch.allclose(narrow, wide, atol=SMALL),
        "the widths 0.3 and 3 give the same picture",
        "Where does the width come in? Divide the patches by it, so that they become the keys.",
    )
    picture = torch.ones(1, 6, 6)
    picture[0, :, 3:] = -1.0
    weights = (
        "How does a distance become a weight? At width 0.1 the other half should get hardly any: compare with "
        "exp(−½ · distance²)."
    )
    halves = "a white and a black half, width 0.1"
    expect_close(candidate(picture, 0.1), picture, halves, atol=1e-3, hint=weights)
    other = torch.rand(1, 6, 6)
    for padding, beyond in (
        ("constant", "zeros"),
        ("reflect", "other pixels"),
        ("circular", "pixels of the other edge"),
    ):
        mistaken = _wrong_means(other, padding=padding)
        _expect_not(
            candidate(other, 0.5),
            mistaken,
            f"beyond the edge are {beyond}, not the edge's own pixels",
        )


@non_local_means.must("weights a pixel far away like one nearby if its patch is the same")
def weights_pixels_by_their_patch_not_their_place(candidate):
    """Does a key contain the position of its pixel? It should hold the nine numbers of the patch, and no more."""
    near, far = torch.zeros(2, 1, 9, 9)
    near[0, 2, 2], near[0, 2, 5] = 1.0, 1.5
    far[0, 2, 2], far[0, 6, 6] = 1.0, 1.5
    same = candidate(far, 0.5)[0, 2, 2], candidate(near, 0.5)[0, 2, 2]
    expect_close(*same, "one of two bright pixels after the other moved away", atol=1e-4)


@non_local_means.must("divides the difference of two patches by the width")
def divides_difference_of_two_patches_by_width(candidate):
    """Where does the width come in? Do two patches by hand: divide each of the nine differences by the width, square,
    add, and halve the sum.

    `smooth` squares and halves the distance of the keys as they are. By what do you divide the keys first?
    """
    for width in (0.3, 1.0, 2.5):
        pictures = torch.rand(2, 6, 6)
        expected = pixels.non_local_means(pictures, width)
        expect_close(candidate(pictures, width), expected, f"width {width}", atol=1e-4)


@non_local_means.must("works for other sizes, and for pictures that are not square")
def works_for_other_sizes_and_for_pictures_that_are_not_square(candidate):
    """Is a size written into your code? Take each of them from the pictures."""
    pictures = torch.rand(3, 4, 7)
    expected = pixels.non_local_means(pictures, 0.7)
    expect_close(candidate(pictures, 0.7), expected, "three pictures of 4 × 7", atol=1e-4)


# Pixels on paper ----------------------------------------------------------------------------------

predicted_pixels = on_paper({
    "a": (13, "the number of the token",
         "The line runs through row after row. How many pixels are in the rows before this one? Then count on "
         "in its own row, from 0.",
         "Rows 0 and 1 have ten pixels."),
    "b": (3, "how many pixels have numbers in token 0 of the view",
         "In memory channel 0 comes first, whole. Which pixels do the first three numbers belong to? Count the "
         "different ones."),
    "c": (3, "how many rows of the view change",
         "How far apart are the numbers of one pixel in memory? Find the row of three in which each of them is.",
         "They are 20 apart, so no two can be in one row of three."),
    "d": (468, "the number of parameters",
         "How many output channels are there, 12 or 36? There is a weight for each pair of an input and an "
         "output channel, and a bias for each output."),
    "e": (1, "how many pixels that do not touch it",
         "Row 1 has five columns. Which pixel follows its last one in the line? See whether it touches (1, 4).",
         "The neighbors in the line are (1, 3) and (2, 0). Which of the two touches (1, 4)?"),
})  # fmt: skip


# Heads of a line of pixels: find the bug ------------------------------------------------------------

fixed_heads = Check()


def _head_by_head(qkv, num_heads):
    """Attention head by head, with PyTorch's operator, and the heads joined."""
    q, k, v = (vectors.chunk(num_heads, dim=1) for vectors in qkv.chunk(3, dim=1))
    heads = [
        scaled_dot_product_attention(*(vectors.mT for vectors in head))
        for head in zip(q, k, v, strict=True)
    ]
    return torch.cat(heads, dim=-1).mT


def _expect_equal_heads(candidate, num_heads, width, what):
    qkv = torch.randn(2, 3 * width, 7)
    expect_close(
        candidate(qkv, num_heads), _head_by_head(qkv, num_heads), what, atol=1e-4, rtol=1e-3
    )


@fixed_heads.must("turns (batch, 3 · channels, pixels) into (batch, channels, pixels)")
def has_a_third_of_the_channels(candidate):
    """Are the heads joined again? They have to return to the axis of the channels, which they came from."""
    expect_shape(candidate(torch.randn(2, 36, 10), 3), (2, 12, 10))


@fixed_heads.must("equals attention over all pixels with one head")
def equals_attention_over_all_pixels_with_one_head(candidate):
    """What did you change besides the bug? One head was right before, so compare with the buggy version."""
    _expect_equal_heads(candidate, 1, 8, "one head")


@fixed_heads.must("keeps the pictures of a batch apart")
def heads_keep_pictures_of_batch_apart(candidate):
    """Which numbers belong to one picture? Only the axes after the first, so no reshape may reach into the batch."""
    qkv = torch.randn(2, 36, 5)
    changed = torch.stack([qkv[0], qkv[1] + 1])
    moved = (candidate(changed, 3) - candidate(qkv, 3))[0].abs().max().item()
    expect(moved < 1e-6, "changing the second picture changed the first")


@fixed_heads.must("takes the values of head 0 from the first channels of the last third")
def takes_values_of_head_0_from_first_channels_of_last_third(candidate):
    """Which of your 12 channels are the values of head 0? Write down all 12, for two heads: queries, keys and values.

    `qkv` is cut into thirds and into heads. Which of the two cuts has to come first?
    """
    qkv = torch.zeros(1, 12, 4)  # all scores are equal: each pixel gets the mean of the values
    qkv[0, 8:] = torch.tensor([1.0, 2, 3, 4])[:, None]
    expected = torch.tensor([1.0, 2, 3, 4])[:, None].expand(4, 4)[None]
    expect_close(candidate(qkv, 2), expected, "values 1, 2, 3, 4, two heads", atol=1e-5)


@fixed_heads.must("equals the heads one by one, for 2, 3 and 6 heads")
def equals_heads_one_by_one(candidate):
    """Which channels become the queries of head 1? Print them, and check that the scale is 1/√head_dim."""
    for num_heads in (2, 3, 6):
        _expect_equal_heads(candidate, num_heads, 12, f"{num_heads} heads")
