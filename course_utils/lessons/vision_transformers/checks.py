"""Checks: rebuilding images, counting parameters, rollout, positions on a finer grid, a wrong map."""

import torch
import torch.nn.functional as F

from course_utils.lessons.check import Check, expect, expect_close, expect_shape
from course_utils.models.vision import ViT, attention_rollout, cut_patches

# Rebuilding -------------------------------------------------------------------------------------


rebuild = Check("put the image together again")


@rebuild.must(
    "the result is (batch, channels, height, width)",
    hint="how many rows and how many columns of patches are there?",
)
def _(candidate):
    expect_shape(candidate(torch.randn(2, 6, 16), 1, 8, 12), (2, 1, 8, 12))


@rebuild.must(
    "a grey image comes back",
    hint=(
        "split the two axes first, (rows, columns) and (channel, row in patch, column in patch); "
        "then bring rows together with rows in patch, and columns with columns in patch"
    ),
)
def _(candidate):
    images = torch.arange(2 * 36.0).view(2, 1, 6, 6)
    expect_close(candidate(cut_patches(images, 3), 1, 6, 6), images, "grey images of 6 × 6")


@rebuild.must(
    "a color image comes back",
    hint="within a patch the channel changes slowest: where does that axis go?",
)
def _(candidate):
    images = torch.randn(2, 3, 8, 8)
    expect_close(candidate(cut_patches(images, 4), 3, 8, 8), images, "three channels")


@rebuild.must(
    "images that are not square, and patches of any size, come back",
    hint="is one side taken for the other, or a size written into the code?",
)
def _(candidate):
    for height, width, size in ((4, 8, 2), (9, 3, 3), (5, 5, 1), (6, 6, 6)):
        images = torch.randn(1, 2, height, width)
        found = candidate(cut_patches(images, size), 2, height, width)
        expect_close(found, images, f"{height} × {width} pixels in patches of {size}")


# Counting ---------------------------------------------------------------------------------------


def _count(candidate, **changes):
    sizes = {
        "image_size": 28,
        "patch_size": 7,
        "channels": 1,
        "embed_dim": 16,
        "ffn_dim": 24,
        "num_layers": 2,
        "num_classes": 10,
    } | changes
    found = candidate(*sizes.values())
    expect(isinstance(found, int), f"a whole number is expected, got a {type(found).__name__}")
    expected = sum(p.numel() for p in ViT(**sizes, num_heads=2).parameters())
    said = ", ".join(f"{name}={value}" for name, value in changes.items())
    expect(found == expected, f"{said or 'the chapter’s sizes, narrower'}: {found}, not {expected}")


vit_parameters = Check("count a ViT's parameters")


@vit_parameters.must(
    "a small model is counted right",
    hint="stem, class token, positions (one more than patches), blocks with two norms each, the last norm, head",
)
def _(candidate):
    _count(candidate)


@vit_parameters.must(
    "each layer is counted, and what stands outside of the layers once",
    hint="which parts are multiplied by num_layers?",
)
def _(candidate):
    _count(candidate, num_layers=1)
    _count(candidate, num_layers=5)


@vit_parameters.must(
    "color images and other patches change stem and positions",
    hint="a patch has channels · p² numbers, and there are (image_size / p)² of them",
)
def _(candidate):
    _count(candidate, image_size=32, patch_size=4, channels=3)


@vit_parameters.must(
    "other numbers of classes and other networks are counted right",
    hint="is a 10, or 2 · embed_dim, written where an argument belongs?",
)
def _(candidate):
    _count(candidate, num_classes=7, ffn_dim=40)


@vit_parameters.must("ViT-Base has 86,567,656", hint="all sizes differ here: compare part by part")
def _(candidate):
    found = candidate(224, 16, 3, 768, 3072, 12, 1000)
    expect(found == 86_567_656, f"ViT-Base with patches of 16: {found}, not 86567656")


# Rollout ----------------------------------------------------------------------------------------


def _random_maps(layers=3, heads=2, tokens=5):
    return [torch.randn(2, heads, tokens, tokens).softmax(-1) for _ in range(layers)]


rollout = Check("attention rollout")


@rollout.must(
    "the result has one map per image, (batch, tokens, tokens)",
    hint="average over the heads, and keep the batch",
)
def _(candidate):
    expect_shape(candidate(_random_maps()), (2, 5, 5))


@rollout.must(
    "rows sum to 1",
    hint="rows of each layer's matrix must sum to 1 before the matrices are multiplied",
)
def _(candidate):
    expect_close(candidate(_random_maps()).sum(-1), torch.ones(2, 5), "sums of the rows")


@rollout.must(
    "the example of the text comes out",
    hint="a later layer reads what earlier layers wrote: on which side does its matrix stand?",
)
def _(candidate):
    first = torch.tensor([[[[0.5, 0.5, 0.0], [0.0, 1.0, 0.0], [0.0, 0.5, 0.5]]]])
    second = torch.tensor([[[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]]])
    expected = torch.tensor([0.375, 0.25, 0.375])
    expect_close(
        candidate([first, second])[0, 0], expected, "the class token of the text's example"
    )


@rollout.must(
    "a layer in which every token looks at itself changes nothing",
    hint="for such a layer, (A + I)/2 is the identity",
)
def _(candidate):
    maps, idle = _random_maps(2), torch.eye(5).expand(2, 2, 5, 5)
    expect_close(candidate([*maps, idle]), attention_rollout(maps), "an idle layer at the end")
    expect_close(candidate([idle, *maps]), attention_rollout(maps), "an idle layer at the start")


@rollout.must(
    "any number of layers and heads agrees with cu.attention_rollout",
    hint="are all layers multiplied, the first one too?",
)
def _(candidate):
    for layers, heads in ((1, 1), (2, 4), (6, 3)):
        maps = _random_maps(layers, heads)
        expect_close(candidate(maps), attention_rollout(maps), f"{layers} layers of {heads} heads")


# Positions on a finer grid ----------------------------------------------------------------------


resized_positions = Check("positions on a finer grid")


@resized_positions.must(
    "the result has a row for each place of the new grid, and one more",
    hint="a grid of g × g patches needs 1 + g² rows",
)
def _(candidate):
    expect_shape(candidate(torch.randn(17, 8), 6), (37, 8))


@resized_positions.must(
    "the class token's row is left as it was",
    hint="it belongs to no place of the grid: take it off first, put it in front again at the end",
)
def _(candidate):
    table = torch.randn(17, 8)
    expect_close(candidate(table, 7)[0], table[0], "the row of the class token")


@resized_positions.must(
    "a grid of the same size gives the same table",
    hint="which axes does F.interpolate take for height and width? features belong before them",
)
def _(candidate):
    table = torch.randn(10, 4)
    expect_close(candidate(table, 3), table, "a grid of the same size")


@resized_positions.must(
    "what grew from row to row, or from column to column, still does",
    hint="a reshape in the wrong order mixes features with places",
)
def _(candidate):
    rows, columns = torch.meshgrid(torch.arange(4.0), torch.arange(4.0), indexing="ij")
    grid = torch.stack([rows, columns], dim=-1).view(16, 2)
    found = candidate(torch.cat([torch.zeros(1, 2), grid]), 8)[1:].view(8, 8, 2)
    expect(
        bool(
            (found[1:-1, :, 0].diff(dim=0) > 0.1).all()
            and found[..., 0].diff(dim=1).abs().max() < 0.01
        ),
        "feature 0, which grew from row to row only, no longer does",
    )
    expect(
        bool(
            (found[:, 1:-1, 1].diff(dim=1) > 0.1).all()
            and found[..., 1].diff(dim=0).abs().max() < 0.01
        ),
        "feature 1, which grew from column to column only, no longer does",
    )


@resized_positions.must(
    "it is bilinear interpolation", hint="mode='bilinear', everything else as it is by default"
)
def _(candidate):
    table = torch.randn(26, 6)
    grid = table[1:].T.reshape(1, 6, 5, 5)
    finer = F.interpolate(grid, size=(9, 9), mode="bilinear")[0].flatten(1).T
    expect_close(candidate(table, 9)[1:], finer, "bilinear interpolation of 5 × 5 to 9 × 9")


# A wrong map ------------------------------------------------------------------------------------


fixed_class_map = Check("fixed map of the class token")


@fixed_class_map.must(
    "the result is (batch, rows, columns)",
    hint="the heads are averaged, and the class token is no patch",
)
def _(candidate):
    expect_shape(candidate(torch.rand(2, 3, 13, 13).softmax(-1), 3, 4), (2, 3, 4))


@fixed_class_map.must(
    "a class token that looks at the last patch alone has its map there",
    hint="maps are (batch, heads, queries, keys); here the class token is the one who asks",
)
def _(candidate):
    maps = torch.zeros(1, 2, 5, 5)
    maps[..., 1] = 1.0  # everybody looks at the first patch …
    maps[:, :, 0] = torch.tensor([0.0, 0.0, 0.0, 0.0, 1.0])  # … but the class token at the last
    expected = torch.tensor([[[0.0, 0.0], [0.0, 1.0]]])
    expect_close(
        candidate(maps, 2, 2), expected, "a class token that looks at the last patch alone"
    )


@fixed_class_map.must(
    "with the class token's weight on itself, the map sums to 1",
    hint="a softmax runs over the keys: which axis sums to 1?",
)
def _(candidate):
    maps = torch.randn(2, 4, 10, 10).softmax(-1)
    total = candidate(maps, 3, 3).sum(dim=(1, 2)) + maps.mean(1)[:, 0, 0]
    expect_close(total, torch.ones(2), "the map and the class token's weight on itself, summed")


@fixed_class_map.must(
    "patches stand in reading order",
    hint="line by line, (rows, columns), and the first patch is token 1",
)
def _(candidate):
    maps = torch.zeros(1, 1, 7, 7)
    maps[0, 0, 0, 1:] = torch.arange(6.0) / 15
    expected = (torch.arange(6.0) / 15).view(1, 2, 3)
    expect_close(candidate(maps, 2, 3), expected, "patches counted line by line")
