"""Losses: what a model is trained for, summed over what counts.

Taught in *Bahdanau attention: learning to align* (real tokens only), *Training transformers* (label
smoothing), *GPT* and *Vision transformers*.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

Loss = Callable[[nn.Module, Any], tuple[Tensor, float]]
"""(model, batch) → loss summed over what counts (tokens, images), and how many they are.

An attribute `per`, if it has one, names what counts: it labels the loss in pictures.
"""


def per(what: str) -> Callable[[Loss], Loss]:
    """Say what a loss is summed over: `@per("token")` above the function."""

    def named(loss: Any) -> Loss:
        loss.per = what
        return loss

    return named


def translation_loss(*, label_smoothing: float = 0.0) -> Loss:
    """Cross-entropy over the *real* target tokens; padding is not even turned into logits.

    Raises:
        ValueError: `label_smoothing` is not in [0, 1).
    """
    _check_smoothing(label_smoothing)

    @per("token")
    def loss(model: Any, batch: Any) -> tuple[Tensor, int]:
        features = model.features(batch.source, batch.source_lens, batch.target_in)
        steps = torch.arange(batch.target_out.shape[1], device=batch.target_out.device)
        real = steps < batch.target_lens[:, None]
        features, targets = _tokens_where(real, features, batch.target_out)
        logits = model.output(features)
        total = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=label_smoothing)
        return total, len(logits)

    return loss


def classification_loss(*, label_smoothing: float = 0.0) -> Loss:
    """Cross-entropy of images' classes: the model turns (batch, channels, height, width) into logits.

    Raises:
        ValueError: `label_smoothing` is not in [0, 1).
    """
    _check_smoothing(label_smoothing)

    @per("image")
    def loss(model: Any, batch: Any) -> tuple[Tensor, int]:
        logits = model(batch.images)
        total = F.cross_entropy(
            logits, batch.labels, reduction="sum", label_smoothing=label_smoothing
        )
        return total, len(logits)

    return loss


def language_model_loss() -> Loss:
    """Cross-entropy of the tokens that a `TextBatch` asks for; no other place becomes logits."""

    @per("token")
    def loss(model: Any, batch: Any) -> tuple[Tensor, int]:
        features = model.features(batch.tokens, batch.lengths)
        features, targets = _tokens_where(batch.targets >= 0, features, batch.targets)
        logits = model.output(features)
        return F.cross_entropy(logits, targets, reduction="sum"), len(logits)

    return loss


def _tokens_where(mask: Tensor, *tensors: Tensor) -> list[Tensor]:
    """tensor[mask] of each, (batch, length, …) → (tokens, …); a GPU is asked only once how many there are."""
    rows = mask.flatten().nonzero()[:, 0]
    return [tensor.flatten(0, 1).index_select(0, rows) for tensor in tensors]


def _check_smoothing(label_smoothing: float) -> None:
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing={label_smoothing}; 0 <= label_smoothing < 1 is needed")
