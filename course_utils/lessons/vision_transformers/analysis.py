"""The attention maps of trained vision transformers, rollout, and how well two maps agree.

Both pages of *Vision transformers* use it.
"""

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.kit.stored_model import load_model
from course_utils.models.vision import cut_patches
from course_utils.recording import record_attention
from course_utils.runtime import evaluating

PATCH = 7  # pixels, along each side

Network = TypeVar("Network", bound=nn.Module)


def maps_of(model: nn.Module, images: Tensor) -> list[Tensor]:
    """The attention weights of each layer, each (batch, heads, tokens, tokens), for images as the model reads them."""
    with evaluating(model), torch.no_grad(), record_attention(model) as maps:
        model(images)
    return list(maps.values())


def trained(new_model: Callable[[], Network]) -> list[Network]:
    """The stored vision transformers of three trainings, in eval mode.

    Args:
        new_model: makes an untrained one of the reader's or the library's class.
    """
    models = []
    for name in ("vit", "vit_1", "vit_2"):
        model = new_model().eval()
        model.load_state_dict(load_model(name).state)
        models.append(model)
    return models


def attention_rollout(maps: list[Tensor]) -> Tensor:
    """Share of each input token in each output token, through all layers and residuals.

        rollout = R_L ⋯ R₂ R₁,   R_ℓ = (mean of the heads' maps of layer ℓ + identity) / 2

    Abnar and Zuidema (2020), "Quantifying attention flow in transformers", section 3.

    Args:
        maps: a map (…, heads, tokens, tokens) per layer, the first layer first.

    Returns:
        (…, tokens, tokens); rows sum to 1.

    Raises:
        ValueError: `maps` is empty.
    """
    if not maps:
        raise ValueError("maps is empty; one map per layer is needed")
    identity = torch.eye(maps[0].shape[-1], device=maps[0].device, dtype=maps[0].dtype)
    flow = identity
    for layer in maps:
        flow = (layer.mean(dim=-3) + identity) / 2 @ flow
    return flow


def agreement(maps: Tensor, others: Tensor) -> float:
    """Mean over the pictures of the correlation of two maps, each (pictures, patches)."""
    first, second = (x - x.mean(dim=-1, keepdim=True) for x in (maps, others))
    return F.cosine_similarity(first, second, dim=-1).mean().item()


def agreements(maps: Sequence[Tensor]) -> dict[str, float]:
    """The `agreement` of every two trainings on the same picture, and on a picture and the one after it.

    Args:
        maps: of each training, (pictures, patches).
    """
    pairs = [(i, j) for i in range(len(maps)) for j in range(i)]
    same = [agreement(maps[i], maps[j]) for i, j in pairs]
    other = [agreement(maps[i], maps[j].roll(1, dims=0)) for i, j in pairs]
    return {
        "same picture": sum(same) / len(same),
        "lowest": min(same),
        "highest": max(same),
        "another picture": sum(other) / len(other),
    }


def brightness(images: Tensor) -> Tensor:
    """(batch, 16): the mean of each patch's pixels."""
    return cut_patches(images, PATCH).mean(dim=-1)


def at_random(images: Tensor) -> Tensor:
    """(batch, 16): random scores, the same at each call."""
    return torch.rand(len(images), 16, generator=torch.Generator().manual_seed(0))
