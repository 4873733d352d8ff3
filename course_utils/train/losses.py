"""Losses, each summed over the tokens or images of a batch, with their number.

Taught in *Bahdanau attention: learning to align* (real tokens only), *Training transformers* (label
smoothing), *GPT* and *Vision transformers*.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.train.cuda_graphs import is_capturing

Loss = Callable[[nn.Module, Any], tuple[Tensor, float | Tensor]]
"""(model, batch) → loss summed over tokens or images, and their number.

An attribute `per`, if it has one, says what the loss is summed over, such as "token": it labels the loss in pictures.
"""


def per(what: str) -> Callable[[Loss], Loss]:
    """A decorator that says what a loss is summed over, such as `@per("token")`."""

    def named(loss: Any) -> Loss:
        loss.per = what
        return loss

    return named


def translation_loss(*, label_smoothing: float = 0.0) -> Loss:
    """The cross-entropy of the target tokens without padding, of which no logits are computed.

    Args:
        label_smoothing: share of the target that is spread evenly over all tokens (Szegedy et al., 2016).

    Raises:
        ValueError: `label_smoothing` is not in [0, 1).
    """
    _check_smoothing(label_smoothing)

    @per("token")
    def loss(model: Any, batch: Any) -> tuple[Tensor, float | Tensor]:
        steps = torch.arange(batch.target_out.shape[1], device=batch.target_out.device)
        real = steps < batch.target_lens[:, None]
        sentences = batch.source, batch.source_lens, batch.target_in
        return _cross_entropy(
            model, sentences, batch.target_out, real, label_smoothing=label_smoothing
        )

    return loss


def classification_loss(*, label_smoothing: float = 0.0) -> Loss:
    """The cross-entropy of images' classes, for models (batch, channels, height, width) → (batch, classes) of logits.

    Args:
        label_smoothing: share of the target that is spread evenly over all classes (Szegedy et al., 2016).

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
    """The cross-entropy of a `TextBatch` at the places whose target is not negative; no other place becomes logits."""

    @per("token")
    def loss(model: Any, batch: Any) -> tuple[Tensor, float | Tensor]:
        texts = batch.tokens, batch.lengths
        return _cross_entropy(model, texts, batch.targets, batch.targets >= 0)

    return loss


def _cross_entropy(
    model: Any, inputs: tuple, targets: Tensor, kept: Tensor, **options: Any
) -> tuple[Tensor, float | Tensor]:
    """The cross-entropy summed over the tokens that are kept, and their number.

    Args:
        model: has the methods `features`, inputs → (batch, length, embed_dim), and `output`, → logits.
        inputs: arguments of `features`.
        targets: (batch, length), token ids.
        kept: (batch, length), boolean.
        options: of `torch.nn.functional.cross_entropy`.
    """
    if is_capturing(kept):
        # No shape may depend on values: compute all places, and leave some out of the sum.
        logits = model.output(model.features(*inputs)).flatten(0, 1)
        targets = targets.masked_fill(~kept, -100).flatten()  # the `ignore_index` of cross-entropy
        return F.cross_entropy(logits, targets, reduction="sum", **options), kept.sum()
    # `nonzero` waits for a GPU to finish its work, so it comes before the model.
    places = kept.flatten().nonzero()[:, 0]
    features, targets = model.features(*inputs).flatten(0, 1), targets.flatten()
    if len(places) < len(targets):
        features, targets = features.index_select(0, places), targets.index_select(0, places)
    return F.cross_entropy(model.output(features), targets, reduction="sum", **options), len(places)


def _check_smoothing(label_smoothing: float) -> None:
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing={label_smoothing}; 0 <= label_smoothing < 1 is needed")
