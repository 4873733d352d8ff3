"""Losses: what a model is trained for, summed over what counts.

Taught in *Bahdanau attention: learning to align* (real tokens only), *Training transformers* (label
smoothing), *GPT* and *Vision transformers*.
"""

from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.train.recorded import recording

Loss = Callable[[nn.Module, Any], tuple[Tensor, float | Tensor]]
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
    def loss(model: Any, batch: Any) -> tuple[Tensor, float | Tensor]:
        steps = torch.arange(batch.target_out.shape[1], device=batch.target_out.device)
        real = steps < batch.target_lens[:, None]
        sentences = batch.source, batch.source_lens, batch.target_in
        return _of_tokens(model, sentences, batch.target_out, real, label_smoothing=label_smoothing)

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
    def loss(model: Any, batch: Any) -> tuple[Tensor, float | Tensor]:
        texts = batch.tokens, batch.lengths
        return _of_tokens(model, texts, batch.targets, batch.targets >= 0)

    return loss


def _of_tokens(
    model: Any, inputs: tuple, targets: Tensor, asked: Tensor, **options: Any
) -> tuple[Tensor, float | Tensor]:
    """Cross-entropy summed over the tokens that are asked for, and their number; `inputs` are those of `features`."""
    if recording(asked):
        logits = model.output(model.features(*inputs)).flatten(0, 1)
        targets = targets.masked_fill(~asked, -100).flatten()  # which cross-entropy leaves out
        return F.cross_entropy(logits, targets, reduction="sum", **options), asked.sum()
    # Before the model runs, when a GPU has least to finish before it can tell where they are.
    rows = asked.flatten().nonzero()[:, 0]
    features, targets = model.features(*inputs).flatten(0, 1), targets.flatten()
    if len(rows) < len(targets):
        features, targets = features.index_select(0, rows), targets.index_select(0, rows)
    return F.cross_entropy(model.output(features), targets, reduction="sum", **options), len(rows)


def _check_smoothing(label_smoothing: float) -> None:
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing={label_smoothing}; 0 <= label_smoothing < 1 is needed")
