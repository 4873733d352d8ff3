"""Five checks before a training, each of which catches a mistake that costs hours later.

The number of parameters, the first loss, a target that is shifted, a batch to overfit, and parts that do not
learn. Used in *GPT* and *BERT and transfer*.
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.runtime import evaluating, keeping_modes, own_random_numbers
from course_utils.train.losses import Loss

TARGETS = {"target_out": "target_in", "targets": "tokens"}
"""The name of a batch's targets → the name of the inputs at the same positions."""

STEPS = 30
"""The number of steps in which the model has to overfit one batch."""


def before_training(
    model: nn.Module, batch: Any, loss: Loss, *, expected: int | None = None, lr: float = 1e-3
) -> None:
    """Five checks of a model, a batch and a loss before training, printed as a table.

    A line that begins with a question mark is worth a look; no exception is raised. The model, its gradients and
    modes, and the caller's random numbers are afterwards as they were.

    Args:
        model: the model as it will be trained.
        batch: one batch of the training data. Whether its target is shifted is checked if it has the attributes
            `target_out` and `target_in`, or `targets` and `tokens`, each (batch, length).
        loss: (model, batch) → summed loss, and the number of tokens or images that it is summed over.
        expected: the number of trainable parameters, counted by hand.
        lr: learning rate of AdamW, with which one batch is overfitted.
    """
    device = next(model.parameters(), torch.empty(0)).device
    batch = batch.to(device) if hasattr(batch, "to") else batch
    print(f"before training {type(model).__name__}")
    with _restored(model), own_random_numbers():
        _print("parameters", *_parameters(model, expected))
        first = _mean(model, batch, loss)
        _print("first loss", *_first_loss(model, first))
        if shift := _target(batch):
            _print("target", *shift)
        unchanged = _train(model, batch, loss, lr)
        _print("overfits", *_overfits(first, _mean(model, batch, loss)))
        _print("what learns", *_learned(model, unchanged))


def _print(name: str, result: str, question: str) -> None:
    """One line of the table; the question says where to look, and is empty if nothing seems wrong."""
    print(f"{'?' if question else '✓'} {name:16} {result}{': ' * bool(question)}{question}")


@contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    """A block after which weights, buffers, gradients and modes are as before."""
    state = {key: value.clone() for key, value in model.state_dict().items()}
    gradients = [parameter.grad for parameter in model.parameters()]
    try:
        with keeping_modes(model):
            yield
    finally:
        model.load_state_dict(state)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient


def _mean(model: nn.Module, batch: Any, loss: Loss) -> float:
    """The mean loss in eval mode."""
    with evaluating(model), torch.no_grad():
        total, count = loss(model, batch)
    return (total / count).item()


def _train(model: nn.Module, batch: Any, loss: Loss, lr: float) -> list[str]:
    """Train on this batch for `STEPS` steps; return the names of the parameters that did not change."""
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    if trainable := [weight for weight in model.parameters() if weight.requires_grad]:
        optimizer = torch.optim.AdamW(trainable, lr=lr, weight_decay=0.0)
        model.train()
        for _ in range(STEPS):
            optimizer.zero_grad()
            with torch.enable_grad():
                total, count = loss(model, batch)
                (total / count).backward()
            optimizer.step()
    return [name for name, weight in model.named_parameters() if torch.equal(weight, before[name])]


# The checks: each gives a result, and a question if something seems wrong ------------------------


def _parameters(model: nn.Module, expected: int | None) -> tuple[str, str]:
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    if expected is None or count == expected:
        return f"{count:,}" + " as counted by hand" * (expected is not None), ""
    kind = "more" if count > expected else "fewer"
    result = f"{count:,}, by hand {expected:,}, so {abs(count - expected):,} {kind} here"
    return result, "is each part an attribute of its module, none in a plain list, none frozen?"


def _first_loss(model: nn.Module, first: float) -> tuple[str, str]:
    """Compare with a uniform guess among the outputs of `model.output`, if it is a linear layer."""
    output = getattr(model, "output", None)
    if not isinstance(output, nn.Linear) or output.out_features < 2:
        return f"{first:.2f}", ""
    uniform = math.log(output.out_features)
    usual = 0.5 * uniform < first < max(1.5 * uniform, uniform + 2)  # a new ViT has up to 4.0
    result = f"{first:.2f}, a uniform guess among {output.out_features:,} has {uniform:.2f}"
    return result, "" if usual else "what does the model know, or claim, before it has learned?"


def _target(batch: Any) -> tuple[str, str] | None:
    """None for a batch without targets and inputs at the same positions."""
    for name, inputs in TARGETS.items():
        target, read = getattr(batch, name, None), getattr(batch, inputs, None)
        if isinstance(target, Tensor) and isinstance(read, Tensor):
            asked = target > 0  # neither padding, 0, nor a token that is not asked for, -1
            same = (target == read)[asked].float().mean().item()
            if same > 0.5:
                return (
                    f"{same:.0%} of it stands in the input at the same position",
                    "is it shifted by one?",
                )
            return "not in the input at its position", ""
    return None


def _overfits(first: float, last: float) -> tuple[str, str]:
    result = f"loss {first:.1f} → {last:.1f} in {STEPS} steps on this batch"
    return result, "" if last < 0.9 * first else "does it learn at all, and at this rate?"


def _learned(model: nn.Module, unchanged: list[str]) -> tuple[str, str]:
    count = len(list(model.parameters()))
    if not unchanged:
        return f"all {count} parts", ""
    names = f"{', '.join(unchanged[:3])}{' …' * (len(unchanged) > 3)}"
    result = f"{count - len(unchanged)} of {count} parts; {names} not"
    return result, "frozen on purpose, or does no gradient arrive?"
