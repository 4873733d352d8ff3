"""Training: one loop that can be watched, stopped, saved, resumed and trusted.

Taught in *Training transformers*; used from *Bahdanau attention: learning to align* on.
"""

import contextlib
import functools
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.files import atomic_write
from course_utils.runtime import best_device, evaluating, keeping_modes, own_random_numbers, placed
from course_utils.train.bar import Silent, progress
from course_utils.train.checkpoints import load_weights
from course_utils.train.history import History
from course_utils.train.losses import Loss
from course_utils.train.processes import join
from course_utils.train.recorded import Recorded, recordable
from course_utils.train.schedules import Schedule, constant


class Trainer:
    """Fits models by gradient descent, with AdamW.

    On a GPU that computes in bfloat16 by itself, the forward passes run in it (autocast); elsewhere,
    and on every CPU, in full precision. The weights stay in full precision.

    Args:
        loss: (model, batch) → summed loss and number of things summed over.
        epochs: passes over the training data.
        lr: learning rate, multiplied by `schedule(step)`.
        schedule: step, from 1 on → factor; constant by default.
        clip_norm: gradients longer than this are shortened to it; None leaves them.
        weight_decay: of matrices and kernels (embeddings' as well); not of what has a single axis
            (biases, norms), nor of what is named `class_token` or `position…` (position tables).
        betas: of Adam.
        patience: stop when the validation loss has not improved for so many epochs.
        keep_best: end with the weights of the epoch with the best validation loss.
        measure: called after each epoch with the model in eval mode, on `device`; its dict joins
            the history.
        seed: of everything random in a run: dropout, and what the loss draws. Training, each validation and
            each `measure` draw from generators of their own, so that none changes another; the caller's stay.
        checkpoint: file that holds the last completed epoch, or the step of an interrupt.
        device: where to train; the GPU if there is one. The model comes back to where it was. Under
            `torchrun` every process has a GPU of its own and takes its share of each batch, and the
            step is that of one process on the whole.
        quiet: show no bar and no closing line, where many runs follow each other.
        graphs: on a GPU, record the kernels of a step for each shape of a batch and replay them, which trains small
            models several times as fast. Only where neither model nor loss branches on values, as ours but the
            recurrent ones. Elsewhere, and under `torchrun`, it changes nothing.

    Raises:
        TypeError: `epochs` or `patience` is no whole number.
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
        seed: int = 0,
        checkpoint: str | os.PathLike | None = None,
        device: torch.device | str | None = None,
        quiet: bool = False,
        graphs: bool = False,
    ):
        for name, whole in (("epochs", epochs), ("patience", patience)):
            if whole is not None and not isinstance(whole, int):
                raise TypeError(f"{name}={whole!r}; a whole number is needed")
        for name, value in (("epochs", epochs), ("lr", lr), ("patience", patience)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value}; a positive number is needed")
        if clip_norm is not None and not clip_norm > 0:
            raise ValueError(f"clip_norm={clip_norm}; a positive length or None is needed")
        self.loss, self.epochs, self.lr = loss, epochs, lr
        self.schedule = schedule or constant()
        self.clip_norm, self.weight_decay, self.betas = clip_norm, weight_decay, betas
        self.patience, self.keep_best, self.measure = patience, keep_best, measure
        self.seed, self.quiet, self.graphs = seed, quiet, graphs
        self.checkpoint = Path(checkpoint) if checkpoint else None
        self.device = torch.device(device or best_device())
        self.team = join()
        if self.team:
            self.loss, self.seed = self.team.loss(loss), seed + self.team.rank
            self.quiet = quiet or self.team.rank > 0

    def fit(
        self, model: nn.Module, train: Any, val: Any = None, *, resume: bool = False
    ) -> History:
        """Train `model` in place and return the history.

        Its parts get the modes and the device back that they had. Interrupting the kernel ends the
        run after the current step, with model and history intact and, where there is a `checkpoint`,
        a file from which `resume=True` goes on; a second interrupt ends it at once, as usual in
        Python. On a CPU the resumed run equals an uninterrupted one bit for bit.

        Args:
            model: all of it is put in train mode; parameters without `requires_grad` stay as they are.
            train: batches that have `to(device)`, anew for each pass, and a length; with `restart`,
                `state_dict` and `load_state_dict`, as our loaders have them, where the same run should
                give the same numbers and is to be resumed in the middle of a pass.
            val: batches to measure the loss on after each epoch.
            resume: go on from `checkpoint`, if the file is there; else begin as without it.

        Raises:
            FloatingPointError: the loss is NaN or infinite; says at which step, rate and gradient.
            TypeError: `train` has no length.
            ValueError: nothing to train on or nothing to learn, `resume` without a `checkpoint`,
                `patience` or `keep_best` without `val`, or a checkpoint of another model or of other
                batches.
        """
        steps = _number_of(train)
        if resume and self.checkpoint is None:
            raise ValueError("resume=True needs checkpoint=…, the file to go on from")
        if val is None and (self.patience or self.keep_best):
            raise ValueError("patience and keep_best need val, whose loss they follow")
        with placed(model, self.device), keeping_modes(model), own_random_numbers(self.seed):
            run = _Run(self, model, train)
            if resume and self.checkpoint and self.checkpoint.exists():
                run.load(self.checkpoint)
            elif hasattr(train, "restart"):
                train.restart()
            shown = not self.quiet
            with _gentle_interrupt() as pressed, progress(self.epochs, steps, shown=shown) as bar:
                run.all_epochs(val, bar, pressed)
                bar.done(run.history)
        return run.history

    @torch.no_grad()
    def evaluate(self, model: nn.Module, batches: Any) -> float:
        """Mean loss per token (or image) in eval mode, on `device`; mode and device are put back.

        A loss that draws, as of a diffusion model, draws the same each time, and nothing from the caller.

        Raises:
            ValueError: there is no batch.
        """
        total = count = 0.0
        with placed(model, self.device), evaluating(model), own_random_numbers(self.seed):
            for batch in batches:
                with self._autocast():
                    loss, n = self.loss(model, batch.to(self.device))
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
    """One call of `fit`: everything that changes while it goes on, so everything to save."""

    def __init__(self, trainer: Trainer, model: nn.Module, train: Any):
        self.trainer, self.model, self.train, self.team = trainer, model, train, trainer.team
        if self.team:
            self.team.begin_alike(model)
        self.optimizer = _optimizer(model, trainer)
        self.records = trainer.graphs and recordable(trainer.device) and not self.team
        # No method of this run: a cycle would keep its memory until Python looks for cycles.
        self.gradients = functools.partial(_gradients, trainer, model, self.optimizer)
        self.recorded: Recorded | None = None
        self.memory: list[int] = []
        self.history = History(per=getattr(trainer.loss, "per", None))
        self.epoch = self.step = self.since_best = 0
        self.best = math.inf
        self.best_state: dict[str, Tensor] | None = None
        self.lr = self.grad_norm = 0.0
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.total, self.count, self.seconds, self.largest = 0.0, 0.0, 0.0, 0.0

    def all_epochs(self, val: Any, bar: Silent, pressed: Callable[[], bool]) -> None:
        """The epochs that are left, up to an interrupt or until the loss no longer improves."""
        trainer, history = self.trainer, self.history
        while self.epoch < trainer.epochs and not self._no_longer_improves():
            self._one_epoch(val, bar, pressed)
            if self._stopped(pressed):
                history.stopped = "interrupted"
                break
        else:
            history.stopped = "finished" if self.epoch >= trainer.epochs else "early"
        if trainer.keep_best and self.best_state is not None:
            self.model.load_state_dict(self.best_state)

    def _no_longer_improves(self) -> bool:
        patience = self.trainer.patience
        return patience is not None and self.since_best >= patience

    def _stopped(self, pressed: Callable[[], bool]) -> bool:
        """Whether training was interrupted, in one of the processes at least."""
        return self.team.total(pressed())[0] > 0 if self.team else pressed()

    def _one_epoch(self, val: Any, bar: Silent, pressed: Callable[[], bool]) -> None:
        """The rest of the current epoch; an interrupt leaves it where it is, and saves."""
        began, before = time.perf_counter(), self.seconds
        self.model.train()
        if self.records:
            self._keep_memory()
        for batch in self.train:
            self._one_step(batch.to(self.trainer.device))
            bar.step(self.step, self.total / self.count)
            if self._stopped(pressed):
                self.seconds = before + time.perf_counter() - began
                self.save()
                return
        self._end_epoch(val, before + time.perf_counter() - began)
        bar.epoch(self.history)

    def _one_step(self, batch: Any) -> None:
        trainer, step = self.trainer, self.step + 1
        lr = trainer.lr * trainer.schedule(step)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        read, count = (self.recorded or self.gradients)(batch)
        value, norm = read.tolist()
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

    def _keep_memory(self) -> None:
        """Graphs write where the gradients were: what has moved since, as by a `measure`, is recorded anew."""
        parameters = [p for p in self.model.parameters() if p.requires_grad]
        memory = []
        for parameter in parameters:
            if parameter.grad is None:
                parameter.grad = torch.zeros_like(parameter)
            memory += [parameter.data_ptr(), parameter.grad.data_ptr()]
        if memory != self.memory:
            gradients = functools.partial(self.gradients, keep=True)
            self.recorded, self.memory = Recorded(gradients, self.trainer.device), memory

    def _end_epoch(self, val: Any, seconds: float) -> None:
        trainer, began = self.trainer, time.perf_counter()
        val_loss = trainer.evaluate(self.model, val) if val is not None else None
        measured = {}
        if trainer.measure:
            with evaluating(self.model), torch.no_grad(), own_random_numbers(trainer.seed):
                measured = dict(trainer.measure(self.model))
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
                **measured,
            }
        )
        self._remember_best(val_loss)
        self._begin_epoch()
        self.save()

    def _remember_best(self, val_loss: float | None) -> None:
        if val_loss is None:
            return
        if val_loss < self.best:
            self.best, self.since_best = val_loss, 0
            if self.trainer.keep_best:
                self.best_state = {k: v.clone() for k, v in self.model.state_dict().items()}
        else:
            self.since_best += 1

    # Checkpoints

    COUNTERS = (
        "epoch", "step", "since_best", "best", "best_state", "lr", "grad_norm",
        "total", "count", "seconds", "largest",
    )  # fmt: skip

    def save(self) -> None:
        """Write the checkpoint, if one is wanted: whole or not at all."""
        if self.trainer.checkpoint is None or (self.team and self.team.rank > 0):
            return
        state = {
            "kind": type(self.model).__name__,
            "model": self.model.state_dict(),
            "optimizer": self.optimizer.state_dict(),
            "counters": {name: getattr(self, name) for name in self.COUNTERS},
            "rows": self.history.rows,
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
            "loader": self.train.state_dict() if hasattr(self.train, "state_dict") else None,
        }
        with atomic_write(self.trainer.checkpoint) as part:
            torch.save(state, part)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint.

        Raises:
            ValueError: it belongs to another model or to other batches.
        """
        state = torch.load(path, weights_only=True, map_location=self.trainer.device)
        load_weights(self.model, state, path)
        if state["loader"] is not None:
            self.train.load_state_dict(state["loader"])
        self.optimizer.load_state_dict(state["optimizer"])
        for name in self.COUNTERS:  # and nothing else that the file may hold
            setattr(self, name, state["counters"][name])
        self.history.rows = state["rows"]
        torch.set_rng_state(state["rng"].cpu())
        if state["cuda_rng"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([rng.cpu() for rng in state["cuda_rng"]])


def _gradients(
    trainer: Trainer,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batch: Any,
    *,
    keep: bool = False,
) -> tuple[Tensor, float | Tensor]:
    """Those of the mean loss, shortened; (summed loss, norm before) as one tensor, and what was summed over.

    Together, since a GPU runs out of work each time something is read from it.

    Args:
        keep: whether the gradients stay where they are in memory, as graphs need them.
    """
    with trainer._autocast():
        loss, count = trainer.loss(model, batch)
    optimizer.zero_grad(set_to_none=not keep)
    (loss / count).backward()
    if trainer.team:
        trainer.team.sum_gradients(model)
    limit = trainer.clip_norm or math.inf
    norm = nn.utils.clip_grad_norm_(model.parameters(), limit)
    return torch.stack([loss.detach(), norm.to(loss.dtype)]), count


def _number_of(batches: Any) -> int:
    """How many batches a pass has.

    Raises:
        TypeError: nobody can tell, as of a generator, which gives a single pass anyway.
        ValueError: none.
    """
    if not hasattr(batches, "__len__"):
        raise TypeError(
            f"train is a {type(batches).__name__}, which has no length; a loader or a list of batches "
            "is needed, for several passes"
        )
    if not len(batches):
        raise ValueError("train is empty; there is nothing to learn from")
    return len(batches)


def _optimizer(model: nn.Module, trainer: Trainer) -> torch.optim.Optimizer:
    parameters = {name: p for name, p in model.named_parameters() if p.requires_grad}
    if not parameters:
        raise ValueError(f"{type(model).__name__} has no parameter to train")
    groups = [
        {
            "params": [p for name, p in parameters.items() if _decays(name, p) is decays],
            "weight_decay": trainer.weight_decay if decays else 0.0,
        }
        for decays in (True, False)
    ]
    return torch.optim.AdamW(groups, lr=trainer.lr, betas=trainer.betas, fused=True)


def _decays(name: str, parameter: Tensor) -> bool:
    """Whether weight decay applies; `Trainer` states the rule."""
    exempt = [
        part for part in name.split(".") if part == "class_token" or part.startswith("position")
    ]
    return parameter.ndim >= 2 and not exempt


@contextlib.contextmanager
def _gentle_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C, or the kernel's interrupt button, into a flag that is read between steps.

    Only the first: the usual handler is back for the next. Outside the main thread, and where no
    handler of Python's is there to put back, nothing is changed.
    """
    pressed = threading.Event()
    usual = signal.getsignal(signal.SIGINT)
    if threading.current_thread() is not threading.main_thread() or usual is None:
        yield pressed.is_set
        return

    def press(*_: Any) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, usual)

    signal.signal(signal.SIGINT, press)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, usual)
