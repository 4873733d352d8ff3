"""Sanity checks before a training, each of which catches a mistake that costs hours later.

How many parameters, and how many operations? Is the first loss that of a uniform guess? Does padding count?
Is the target shifted? Can one batch be learned by heart? Does every part learn, and how large is a step?
"""

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields, is_dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.metrics import multiply_adds
from course_utils.runtime import evaluating, keeping_modes, own_random_numbers
from course_utils.train.losses import Loss

INPUTS = {"target_out": "target_in", "targets": "tokens", "labels": ""}
"""The names of a batch's targets, each with what is read at the same places."""
STEPS = 30
"""In so many steps one batch is learned by heart."""


@dataclass(frozen=True)
class Row:
    """One line of the table.

    Attributes:
        name: what is checked, in a word or two.
        result: what came out.
        question: where to look if something seems wrong; empty if nothing does.
    """

    name: str
    result: str
    question: str = ""

    def __str__(self) -> str:
        line = f"{'?' if self.question else '✓'} {self.name:16} {self.result}"
        return f"{line}: {self.question}" if self.question else line


def before_training(
    model: nn.Module,
    batch: Any,
    loss: Loss,
    *,
    expected: int | None = None,
    choices: int | None = None,
    lr: float = 1e-3,
) -> None:
    """Look at a model, a batch and a loss before training, and print a short table.

    A line with a question mark is worth a look; nothing stops. Model, gradients, modes and random numbers
    are afterwards as they were.

    Args:
        model: as it will be trained.
        batch: one batch of the training data. Padding and shift are looked at in batches that name their
            parts as the course's do (`source`, `target_in`, `target_out`, `tokens`, `targets`, `labels`;
            lengths in `source_lens`, `target_lens`, `lengths`).
        loss: (model, batch) → loss summed over what counts, and how many they are.
        expected: number of trainable parameters, counted by hand.
        choices: among how many a uniform guess chooses; by default as many as the linear layer
            `model.output` has outputs.
        lr: rate of AdamW, in which one batch is learned by heart.
    """
    device = next(model.parameters(), torch.empty(0)).device
    batch = batch.to(device) if hasattr(batch, "to") else batch
    print(f"before training {type(model).__name__}")
    with _restored(model), own_random_numbers():
        with evaluating(model), torch.no_grad():
            first = _mean(loss, model, batch)
            rows = [
                _parameters(model, expected),
                _operations(model, batch, loss),
                _first_loss(model, first, choices),
                *_padding(model, batch, loss),
                *_target(model, batch, loss, first),
            ]
        rows += _learning(model, batch, loss, first, lr)
    print(*rows, sep="\n")


@contextmanager
def _restored(model: nn.Module) -> Iterator[None]:
    """Whatever happens in the block, weights, buffers, gradients and modes are as before."""
    state = {key: value.clone() for key, value in model.state_dict().items()}
    gradients = [parameter.grad for parameter in model.parameters()]
    try:
        with keeping_modes(model):
            yield
    finally:
        model.load_state_dict(state)
        for parameter, gradient in zip(model.parameters(), gradients, strict=True):
            parameter.grad = gradient


def _mean(loss: Loss, model: nn.Module, batch: Any) -> float:
    total, count = loss(model, batch)
    return (total / count).item()


# The model --------------------------------------------------------------------------------------


def _parameters(model: nn.Module, expected: int | None) -> Row:
    count = sum(parameter.numel() for parameter in model.parameters() if parameter.requires_grad)
    if expected is None or count == expected:
        by_hand = "" if expected is None else " as counted by hand"
        return Row("parameters", f"{count:,}{by_hand}")
    kind = "more" if count > expected else "fewer"
    gap = f"by hand {expected:,}, so {abs(count - expected):,} {kind} here"
    question = "is each part an attribute of its module, none in a plain list, none frozen?"
    return Row("parameters", f"{count:,}, {gap}", question)


def _operations(model: nn.Module, batch: Any, loss: Loss) -> Row:
    count = multiply_adds(lambda: loss(model, batch))
    return Row("operations", f"{count:,} multiply-adds for this batch")


def _first_loss(model: nn.Module, first: float, choices: int | None) -> Row:
    output = getattr(model, "output", None)
    choices = choices or (output.out_features if isinstance(output, nn.Linear) else 0)
    if choices < 2:
        return Row("first loss", f"{first:.2f}")
    uniform = math.log(choices)
    result = f"{first:.2f}, a uniform guess among {choices:,} has {uniform:.2f}"
    most = max(1.5 * uniform, uniform + 2)  # a new ViT of ten classes has up to 4.0
    usual = 0.5 * uniform < first < most
    question = "what does the model know, or claim, before it has learned?"
    return Row("first loss", result, "" if usual else question)


# The batch and the loss -------------------------------------------------------------------------


def _parts(batch: Any) -> dict[str, Any]:
    """The parts of a batch by name, if it names them."""
    if not is_dataclass(batch) or isinstance(batch, type):
        return {}
    return {field.name: getattr(batch, field.name) for field in fields(batch)}


def _padding(model: nn.Module, batch: Any, loss: Loss) -> list[Row]:
    """The loss of the shorter examples is the same when the padding after all of them is cut off."""
    rows = []
    for padded, cut in _with_and_without_padding(batch):
        before, after = _mean(loss, model, padded), _mean(loss, model, cut)
        if not math.isclose(before, after, rel_tol=1e-3):
            text = f"of shorter examples, the loss is {before:.2f} with it and {after:.2f} without"
            return [Row("padding", text, "does the loss count it, or does attention look at it?")]
        rows = [Row("padding", "does not count")]
    return rows


def _with_and_without_padding(batch: Any) -> Iterator[tuple[Any, Any]]:
    """For each kind of lengths, the examples that are padded, and the same without the columns that all pad."""
    parts = _parts(batch)
    for key, lengths in parts.items():
        if not key.endswith(("_lens", "lengths")):
            continue
        stem = key.removesuffix("_lens").removesuffix("lengths")
        tables = [name for name, part in parts.items() if name.startswith(stem) and part.ndim == 2]
        shorter = lengths < parts[tables[0]].shape[1]
        if shorter.any():
            some = {name: part[shorter] for name, part in parts.items()}
            cut = {name: some[name][:, : int(some[key].max())] for name in tables}
            yield replace(batch, **some), replace(batch, **(some | cut))


def _target(model: nn.Module, batch: Any, loss: Loss, first: float) -> list[Row]:
    """The target is not what stands in the input at the same place, and the loss looks at it."""
    parts = _parts(batch)
    name = next((name for name in INPUTS if isinstance(parts.get(name), Tensor)), None)
    if name is None:
        return []
    target, read = parts[name], parts.get(INPUTS[name])
    asked = target > 0  # neither padding nor what is not asked
    if read is not None and asked.any():
        same = (target == read)[asked].float().mean().item()
        if same > 0.5:
            result = f"{same:.0%} of it stands in the input at the same place"
            return [Row("target", result, "is it shifted by one?")]
    changed = target.clone()
    changed[asked] = changed[asked].roll(1)
    if not torch.equal(changed, target):
        other = _mean(loss, model, replace(batch, **{name: changed}))
        if math.isclose(other, first, rel_tol=1e-7):
            result = f"another {name} gives the same loss"
            return [Row("target", result, "what does the loss look at?")]
    return [Row("target", "not in the input at its place" if read is not None else "counts")]


# A few steps ------------------------------------------------------------------------------------


def _learning(model: nn.Module, batch: Any, loss: Loss, first: float, lr: float) -> list[Row]:
    """One batch learned by heart, what moved, and how far the first step went."""
    before = {name: weight.detach().clone() for name, weight in model.named_parameters()}
    trainable = [weight for weight in model.parameters() if weight.requires_grad]
    if not trainable:
        return [Row("learning", "no parameter is trainable", "what is to learn?")]
    ratio, moved_at = 0.0, 1
    optimizer = torch.optim.AdamW(trainable, lr=lr, weight_decay=0.0)
    model.train()
    for step in range(1, STEPS + 1):
        optimizer.zero_grad()
        with torch.enable_grad():
            total, count = loss(model, batch)
            (total / count).backward()
        optimizer.step()
        if not ratio:  # after a layer that begins at zero nothing moves in the first step
            ratio, moved_at = _update_ratio(model, before), step
    with evaluating(model), torch.no_grad():
        last = _mean(loss, model, batch)
    still = [name for name, weight in model.named_parameters() if torch.equal(weight, before[name])]
    return [_by_heart(first, last), _moved(still, len(before)), _update(ratio, lr, moved_at)]


def _by_heart(first: float, last: float) -> Row:
    result = f"loss {first:.1f} → {last:.1f} in {STEPS} steps on this batch"
    question = "does it learn at all, and at this rate?"
    return Row("by heart", result, "" if last < 0.9 * first else question)


def _moved(still: list[str], count: int) -> Row:
    if not still:
        return Row("what learns", f"all {count} parts")
    names = f"{', '.join(still[:3])}{' …' * (len(still) > 3)}"
    question = "frozen on purpose, or does no gradient arrive?"
    return Row("what learns", f"{count - len(still)} of {count} parts; {names} not", question)


def _update_ratio(model: nn.Module, before: dict[str, Tensor]) -> float:
    """Size of the step over that of the weight: the median over all matrices that moved."""
    ratios = [
        ((weight - before[name]).norm() / before[name].norm()).item()
        for name, weight in model.named_parameters()
        if weight.ndim > 1 and before[name].any() and not torch.equal(weight, before[name])
    ]
    return torch.tensor(ratios or [0.0]).median().item()


def _update(ratio: float, lr: float, step: int) -> Row:
    which = "the first step" if step == 1 else f"step {step}, the first that moves it"
    result = f"{ratio:.1%} of the weight in {which}, at rate {lr:g}"
    return Row("update", result, "is the rate too large?" if ratio > 0.1 else "")
