"""What the class token looks at: maps of many pictures, their agreement, and what is left without some patches."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.cache import record_attention
from course_utils.models.vision import cut_patches, join_patches
from course_utils.runtime import evaluating

PATCH = 7  # pixels, along each side


def maps_of(model: nn.Module, images: Tensor) -> list[Tensor]:
    """The weights of each layer, (batch, heads, tokens, tokens)."""
    with evaluating(model), torch.no_grad(), record_attention(model) as maps:
        model(images)
    return list(maps.values())


def agreement(maps: Tensor, others: Tensor) -> float:
    """Mean over the pictures of the correlation of two maps, each (pictures, patches)."""
    one, two = (x - x.mean(dim=-1, keepdim=True) for x in (maps, others))
    return F.cosine_similarity(one, two, dim=-1).mean().item()


def agreements(maps: Sequence[Tensor]) -> dict[str, float]:
    """Agreement of every two trainings, and of the one's map with the other's of the next picture."""
    pairs = [(i, j) for i in range(len(maps)) for j in range(i)]
    same = [agreement(maps[i], maps[j]) for i, j in pairs]
    other = [agreement(maps[i], maps[j].roll(1, dims=0)) for i, j in pairs]
    return {
        "same picture": sum(same) / len(same),
        "lowest": min(same),
        "highest": max(same),
        "another picture": sum(other) / len(other),
    }


def blackened(images: Tensor, scores: Tensor, count: int) -> Tensor:
    """The pictures, (batch, 1, 28, 28), with `count` patches of the largest scores (batch, 16) in black."""
    patches = cut_patches(images, PATCH).clone()
    chosen = scores.topk(count, dim=-1).indices
    patches.scatter_(1, chosen[:, :, None].expand(-1, -1, patches.shape[-1]), -1.0)
    return join_patches(patches, *images.shape[1:])


def brightness(images: Tensor) -> Tensor:
    """(batch, 16): the mean of each patch's pixels."""
    return cut_patches(images, PATCH).mean(dim=-1)


def at_random(images: Tensor) -> Tensor:
    """(batch, 16): random scores, the same at each call."""
    return torch.rand(len(images), 16, generator=torch.Generator().manual_seed(0))


@torch.no_grad()
def right_without(
    model: nn.Module, images: Tensor, labels: Tensor, scores: Tensor | None, count: int = 4
) -> float:
    """Share of right answers when `count` patches of the largest scores are black; without scores, none is."""
    seen = images if scores is None else blackened(images, scores, count)
    with evaluating(model):
        return (model(seen).argmax(dim=-1) == labels).float().mean().item()
