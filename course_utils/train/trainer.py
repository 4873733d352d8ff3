"""The training loop of the course: epochs, validation, checkpoints, and an end by an interrupt.

Taught in *Training transformers*; used from *Bahdanau attention: learning to align* on.
"""

import functools
import math
import os
import time
from collections.abc import Callable
from numbers import Integral
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.files import path_of
from course_utils.runtime import best_device, evaluating, keeping_modes, own_random_numbers, placed
from course_utils.train.bar import TrainingBar, training_bar
from course_utils.train.batches import batches_per_epoch, loss_of, measured, on_device
from course_utils.train.checkpoints import (
    check_readable,
    copied,
    load_checkpoint,
    name_of_earlier,
    save_checkpoint,
)
from course_utils.train.cuda_graphs import CapturedFunction
from course_utils.train.history import History
from course_utils.train.interrupts import deferred_interrupt
from course_utils.train.losses import Loss
from course_utils.train.optimizer import adamw
from course_utils.train.processes import data_parallel
from course_utils.train.schedules import Schedule, constant


class Trainer:
    """A training loop with AdamW: epochs, validation, checkpoints.

    On a GPU that supports bfloat16, forward passes run in it (autocast); elsewhere, and on every CPU, in full
    precision. The weights stay in full precision.

    Args:
        loss: (model, batch) → summed loss, and the number of tokens or images that it is summed over.
        epochs: passes over the training data.
        lr: learning rate, multiplied by `schedule(step)`.
        schedule: step, from 1 on → factor of the learning rate; constant by default.
        clip_norm: the largest norm of all gradients together; longer ones are scaled to it. None: no clipping.
        weight_decay: of parameters with two axes or more, embeddings as well; not of biases and norms, nor of
            parameters named `class_token` or `position…` (position tables).
        betas: of Adam.
        patience: epochs without a lower validation loss after which training stops.
        keep_best: end with the weights of the epoch with the lowest validation loss.
        measure: model → dict of numbers that joins the history; called after each epoch in eval mode, on `device`.
        before_step: (model, number of steps so far) → None; called before each step in eval mode, on `device`.
        seed: of dropout and of what the loss draws. Training, each validation, and each `measure` and `before_step`
            have random numbers of their own, so that none changes another; the caller's go on as before.
        checkpoint: file for the last completed epoch, or for the step of an interrupt.
        device: where to train; the GPU if there is one. The model comes back to where it was. Under `torchrun`
            every process has a GPU of its own and computes its share of each batch.
        quiet: show neither the bar nor the closing line.
        graphs: on a GPU, capture each training step as a CUDA graph, which trains small models several times as
            fast. It needs a model and a loss whose kernels do not depend on values, which excludes the recurrent
            models. On a CPU and under `torchrun` it changes nothing.

    Raises:
        TypeError: `epochs`, `patience` or `seed` is not an integer.
        ValueError: an argument is out of range.
    """

    def __init__(
        self,
        loss: Loss,
        *,
        epochs: int = 10,
        lr: float = 1e-3,
        schedule: Schedule | None = None,
        clip_norm: float | None = 1.0,
        weight_decay: float = 0.0,
        betas: tuple[float, float] = (0.9, 0.98),
        patience: int | None = None,
        keep_best: bool = False,
        measure: Callable[[nn.Module], dict[str, float]] | None = None,
        before_step: Callable[[nn.Module, int], None] | None = None,
        seed: int = 0,
        checkpoint: str | os.PathLike | None = None,
        device: torch.device | str | None = None,
        quiet: bool = False,
        graphs: bool = False,
    ):
        for name, whole in (("epochs", epochs), ("patience", patience), ("seed", seed)):
            if whole is not None and not isinstance(whole, Integral):
                raise TypeError(f"{name}={whole!r}; a whole number is needed")
        for name, value in (("epochs", epochs), ("lr", lr), ("patience", patience)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value}; a positive number is needed")
        if clip_norm is not None and not clip_norm > 0:
            raise ValueError(f"clip_norm={clip_norm}; a positive length or None is needed")
        self.loss, self.epochs, self.lr = loss, int(epochs), lr
        self.schedule = schedule or constant()
        self.clip_norm, self.weight_decay, self.betas = clip_norm, weight_decay, betas
        self.patience, self.keep_best = patience, keep_best
        self.measure, self.before_step = measure, before_step
        self.seed, self.quiet, self.graphs = int(seed), quiet, graphs
        self.checkpoint = path_of(checkpoint) if checkpoint else None
        self.device = torch.device(device or best_device())
        self.processes = data_parallel()
        if self.processes:
            self.loss, self.seed = self.processes.loss(loss), self.seed + self.processes.rank
            self.quiet = quiet or self.processes.rank > 0

    def fit(
        self, model: nn.Module, train: Any, val: Any = None, *, resume: bool = False
    ) -> History:
        """Train `model` in place and return the history.

        The model comes back in its modes (train or eval) and on its device. An interrupt (Ctrl-C, or the stop button)
        ends training after the current step, with model and history intact; with a `checkpoint`, `resume=True` goes
        on from there, on a CPU bit for bit as if it had not been interrupted. A second interrupt raises
        KeyboardInterrupt at once.

        Args:
            model: the whole model is put in train mode; parameters without `requires_grad` stay as they are.
            train: batches with a method `to(device)`, in an iterable with a length that can be iterated over again,
                such as a list. To resume within an epoch it needs `restart`, `state_dict` and `load_state_dict`, as
                our loaders have.
            val: batches to compute the validation loss on after each epoch.
            resume: go on from `checkpoint` if the file exists.

        Raises:
            FloatingPointError: the loss is NaN or infinite; the message has step, learning rate and gradient norm.
            TypeError: `train` has no length, or a checkpoint could not be read again: `measure` gives something else
                than numbers and texts, or the states of the model or of `train` hold it.
            ValueError: `train` is empty, no parameter is trainable, `resume` comes without a `checkpoint`,
                `patience` or `keep_best` without `val`, or the checkpoint is of another model or other batches.
        """
        steps = batches_per_epoch(train)
        if resume and self.checkpoint is None:
            raise ValueError("resume=True needs checkpoint=…, the file to go on from")
        if val is None and (self.patience or self.keep_best):
            raise ValueError("patience and keep_best need val, whose loss they follow")
        with placed(model, self.device), keeping_modes(model), own_random_numbers(self.seed):
            run = _Run(self, model, train)
            if self.checkpoint:
                check_readable(run.state())
            if resume and self.checkpoint and self.checkpoint.exists():
                run.load(self.checkpoint)
            else:
                run.begin_anew()
            shown = not self.quiet
            with (
                deferred_interrupt() as interrupted,
                training_bar(self.epochs, steps, shown=shown) as bar,
            ):
                run.all_epochs(val, bar, interrupted)
                bar.done(run.history)
        return run.history

    @torch.no_grad()
    def evaluate(self, model: nn.Module, batches: Any) -> float:
        """The mean loss per token (or image) in eval mode, on `device`; the model's modes and device are put back.

        A loss that draws random numbers, as that of a diffusion model, draws the same ones at each call.

        Raises:
            ValueError: `batches` is empty.
        """
        total = count = 0.0
        with placed(model, self.device), evaluating(model), own_random_numbers(self.seed):
            for batch in batches:
                with self._autocast():
                    loss, n = loss_of(self.loss, model, on_device(batch, self.device))
                total, count = total + loss.item(), count + float(n)
        if not count:
            raise ValueError("batches is empty; there is nothing to measure")
        return total / count

    def _autocast(self) -> torch.autocast:
        native = self.device.type == "cuda" and torch.cuda.is_bf16_supported(
            including_emulation=False
        )
        return torch.autocast("cuda", torch.bfloat16, enabled=native)


class _Run:
    """The state of one call of `fit`, and so of a checkpoint."""

    def __init__(self, trainer: Trainer, model: nn.Module, train: Any):
        self.trainer, self.model, self.train = trainer, model, train
        self.processes = trainer.processes
        if self.processes:
            self.processes.broadcast_weights(model)
        self.optimizer = adamw(
            model, lr=trainer.lr, betas=trainer.betas, weight_decay=trainer.weight_decay
        )
        self.uses_graphs = (
            trainer.graphs and trainer.device.type == "cuda" and self.processes is None
        )
        self.captured: CapturedFunction | None = None
        self.addresses: list[int] = []
        self.history = History(per=getattr(trainer.loss, "per", None))
        self.epoch = self.step = self.since_best = 0
        self.best = math.inf
        self.best_state: dict[str, Tensor] | None = None
        self.lr = self.grad_norm = 0.0
        self.written = None if self.processes and self.processes.rank > 0 else trainer.checkpoint
        self.earlier: Path | None = None
        self._begin_epoch()

    def begin_anew(self) -> None:
        """Begin with the first batch; a checkpoint of an earlier training will be kept beside the new one."""
        if hasattr(self.train, "restart"):
            self.train.restart()
        if self.written and self.written.exists():
            self.earlier = name_of_earlier(self.written)

    def _begin_epoch(self) -> None:
        self.total, self.count, self.seconds, self.largest = 0.0, 0.0, 0.0, 0.0

    def all_epochs(self, val: Any, bar: TrainingBar, interrupted: Callable[[], bool]) -> None:
        """Train the epochs that are left, up to an interrupt or until the validation loss no longer falls."""
        trainer, history = self.trainer, self.history
        patience = trainer.patience or math.inf
        while self.epoch < trainer.epochs and self.since_best < patience:
            self._one_epoch(val, bar, interrupted)
            if self._any_interrupted(interrupted):
                history.stopped = "interrupted"
                break
        else:
            history.stopped = "finished" if self.epoch >= trainer.epochs else "early"
        if trainer.keep_best and self.best_state is not None:
            self.model.load_state_dict(self.best_state)

    def _any_interrupted(self, interrupted: Callable[[], bool]) -> bool:
        """Whether an interrupt has come in this process, or in one that trains with it."""
        return self.processes.sum(interrupted())[0] > 0 if self.processes else interrupted()

    def _one_epoch(self, val: Any, bar: TrainingBar, interrupted: Callable[[], bool]) -> None:
        """Train the rest of the current epoch and validate; or stop at an interrupt, and save."""
        began, before = time.perf_counter(), self.seconds
        self.model.train()
        if self.uses_graphs:
            self._prepare_graphs()
        for batch in self.train:
            if self.trainer.before_step:
                self._look(self.trainer.before_step, self.step)
            self._one_step(on_device(batch, self.trainer.device))
            bar.step(self.step, self.total / self.count)
            if self._any_interrupted(interrupted):
                self.seconds = before + time.perf_counter() - began
                self.save()
                return
        self._end_epoch(val, before + time.perf_counter() - began)
        bar.epoch(self.history)

    def _one_step(self, batch: Any) -> None:
        trainer, step = self.trainer, self.step + 1
        lr = float(trainer.lr) * float(trainer.schedule(step))
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        if self.captured:
            loss_and_norm, count = self.captured(batch)
        else:
            loss_and_norm, count = _compute_gradients(trainer, self.model, self.optimizer, batch)
        value, norm = loss_and_norm.tolist()
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss is {value} at step {step}; learning rate {lr:.3g}, gradient norm "
                f"{self.grad_norm:.3g} at the step before: lower the rate or clip the gradients"
            )
        self.grad_norm = norm
        self.optimizer.step()
        self.step, self.lr = step, lr
        self.total, self.count = self.total + value, self.count + float(count)
        self.largest = max(self.largest, self.grad_norm)

    def _prepare_graphs(self) -> None:
        """Give every parameter a gradient, and drop the graphs if one has moved in memory, as by a `measure`."""
        addresses = []
        for parameter in self.model.parameters():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                addresses += [parameter.data_ptr(), parameter.grad.data_ptr()]
        if addresses != self.addresses:
            # A partial, not a method, through which this run would refer to itself.
            gradients = functools.partial(
                _compute_gradients, self.trainer, self.model, self.optimizer, keep_memory=True
            )
            self.captured = CapturedFunction(gradients, self.trainer.device)
            self.addresses = addresses

    def _end_epoch(self, val: Any, seconds: float) -> None:
        trainer, began = self.trainer, time.perf_counter()
        val_loss = trainer.evaluate(self.model, val) if val is not None else None
        measurements: dict = {}
        failure: Exception | None = None
        if trainer.measure:
            measurements, failure = measured(functools.partial(self._look, trainer.measure))
        self.epoch += 1
        self.history.rows.append(
            {
                "epoch": self.epoch,
                "step": self.step,
                "train_loss": self.total / self.count,
                "val_loss": val_loss,
                "lr": self.lr,
                "grad_norm": self.largest,
                "seconds": seconds + time.perf_counter() - began,
                "per_second": self.count / seconds,
                **measurements,
            }
        )
        self._remember_best(val_loss)
        self._begin_epoch()
        self.save()
        if failure:  # now that the epoch is saved
            raise failure

    def _look(self, function: Callable, *arguments: Any) -> Any:
        """What a function of the caller's returns for the model: it changes nothing of the training."""
        with evaluating(self.model), torch.no_grad(), own_random_numbers(self.trainer.seed):
            return function(self.model, *arguments)

    def _remember_best(self, val_loss: float | None) -> None:
        if val_loss is None:
            return
        if val_loss < self.best:
            self.best, self.since_best = val_loss, 0
            if self.trainer.keep_best:
                self.best_state = copied(self.model.state_dict())
        else:
            self.since_best += 1

    COUNTERS = (
        "epoch", "step", "since_best", "best", "best_state", "lr", "grad_norm",
        "total", "count", "seconds", "largest",
    )  # fmt: skip

    def state(self) -> dict[str, Any]:
        """What a checkpoint holds."""
        return {
            "kind": type(self.model).__name__,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "trained": [name for name, p in self.model.named_parameters() if p.requires_grad],
            "counters": {name: getattr(self, name) for name in self.COUNTERS},
            "rows": self.history.rows,
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "loader": self.train.state_dict() if hasattr(self.train, "state_dict") else None,
        }

    def save(self) -> None:
        """Write the checkpoint, if there is one to write."""
        if self.written:
            save_checkpoint(self.state(), self.written, earlier=self.earlier)
            self.earlier = None

    def load(self, path: Path) -> None:
        """Read a checkpoint.

        Raises:
            ValueError: it is no checkpoint, or one of another model, of other trained parameters or other batches.
        """
        state = load_checkpoint(
            path, self.model, self.optimizer, self.train, self.trainer.device, self.COUNTERS
        )
        for name in self.COUNTERS:  # and nothing else that the file may hold
            setattr(self, name, state["counters"][name])
        self.history.rows = state["rows"]


def _compute_gradients(
    trainer: Trainer,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any,
    *,
    keep_memory: bool = False,
) -> tuple[Tensor, float | Tensor]:
    """Compute the gradients of the mean loss, and clip them.

    Args:
        keep_memory: set the gradients to zero in place, as CUDA graphs need, instead of removing them.

    Returns:
        The summed loss and the gradient norm before clipping, (2,), as one tensor, because each reading from a GPU
        waits until it has finished its work; and the number that the loss is summed over.
    """
    with trainer._autocast():
        loss, count = loss_of(trainer.loss, model, batch)
    optimizer.zero_grad(set_to_none=not keep_memory)
    (loss / count).backward()
    if trainer.processes:
        trainer.processes.sum_gradients(model)
    limit = trainer.clip_norm or math.inf
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    return torch.stack([loss.detach(), norm.to(loss.dtype)]), count
