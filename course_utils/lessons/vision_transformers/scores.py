"""What a classifier says of many pictures, and which classes it takes for which."""

import torch
from torch import Tensor, nn

from course_utils.metrics import check_classes
from course_utils.runtime import evaluating


@torch.no_grad()
def predict_classes(model: nn.Module, batches) -> tuple[Tensor, Tensor]:
    """Predicted and true classes, each (n,), of all batches; the model runs in eval mode.

    Args:
        model: images (batch, channels, height, width) → logits (batch, classes).
        batches: an `ImageLoader` with `shuffle=False`, for instance.
    """
    device = next(model.parameters()).device
    with evaluating(model):
        pairs = [
            (model(batch.images.to(device)).argmax(-1).cpu(), batch.labels) for batch in batches
        ]
    predicted, true = (torch.cat(parts) for parts in zip(*pairs, strict=True))
    return predicted, true


def confusion_matrix(predicted: Tensor, true: Tensor, num_classes: int) -> Tensor:
    """How often each true class (row) was taken for each class (column): counts, int64.

    Raises:
        ValueError: the shapes differ, there is nothing to score, or a class lies out of range.
    """
    check_classes(predicted, true)
    for name, classes in (("predicted", predicted), ("true", true)):
        if classes.min() < 0 or classes.max() >= num_classes:
            raise ValueError(f"{name} has a class outside 0 … {num_classes - 1}")
    cells = true * num_classes + predicted
    return torch.bincount(cells, minlength=num_classes**2).view(num_classes, num_classes)
