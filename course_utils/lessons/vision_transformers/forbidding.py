"""The classes that a vision transformer names when some patches are forbidden, and how few change its answer.

For the stored run `fewest` of *Vision transformers*.
"""

from itertools import combinations

import torch
from torch import Tensor

from course_utils.models.vision import ViT


@torch.no_grad()
def logits_without(model: ViT, images: Tensor, gone: Tensor) -> Tensor:
    """Logits (n, classes) when no token may look at the forbidden patches.

    Args:
        model: in eval mode.
        images: (n, channels, height, width), or one image for all rows of `gone`.
        gone: (n, patches), True = forbidden as a key in every head of every layer.
    """
    allowed = torch.cat([torch.ones(len(gone), 1, dtype=torch.bool), ~gone], dim=1)
    x = model.embed(images).expand(len(gone), -1, -1)
    for layer in model.layers:
        x = layer(x, allowed[:, None, None])
    return model.output(model.norm(x[:, 0]))


def choices(patches: int, size: int) -> Tensor:
    """All ways to forbid `size` of so many patches, (ways, patches), True = forbidden."""
    rows = torch.tensor(list(combinations(range(patches), size)))
    return torch.zeros(len(rows), patches, dtype=torch.bool).scatter(1, rows, True)


def fewest(model: ViT, image: Tensor, target: int) -> tuple[int, int, list[int]]:
    """The fewest forbidden patches with which the model names another class: how many, how many ways, the surest way.

    Args:
        model: in eval mode.
        image: (1, channels, height, width).
        target: the other class.

    Raises:
        ValueError: it never does.
    """
    patches = model.grid[0] * model.grid[1]
    for size in range(patches):
        gone = choices(patches, size) if size else torch.zeros(1, patches, dtype=torch.bool)
        p = torch.cat([logits_without(model, image, each) for each in gone.split(2048)]).softmax(-1)
        done = p.argmax(dim=-1) == target
        if done.any():
            surest = p[:, target].where(done, 0).argmax()
            return size, int(done.sum()), gone[surest].nonzero().flatten().tolist()
    raise ValueError(f"without any patches the model does not say class {target}")
