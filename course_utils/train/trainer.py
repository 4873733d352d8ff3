"""Training: one loop that can be watched, stopped, saved, resumed and trusted.

Above: `losses`, `schedules`, `checkpoints`, `history`, `progress`, `distributed`. Below: the chapters, from 04 on.
"""

import contextlib
import math
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import torch
from torch import Tensor, nn

from course_utils.runtime import evaluating
from course_utils.train.bar import progress
from course_utils.train.checkpoints import load_weights, save_atomically
from course_utils.train.history import History
from course_utils.train.losses import Loss
from course_utils.train.processes import Team, join, own_device
from course_utils.train.schedules import Schedule, constant


class Trainer:
    """Fits models by gradient descent.

    Args:
        loss: (model, batch) → summed loss and number of things summed over.
        epochs: passes over the training data.
        lr: learning rate, multiplied by `schedule(step)`.
        schedule: step, from 1 on → factor; constant by default.
        clip_norm: gradients longer than this are shortened to it; None leaves them.
        weight_decay: of AdamW, applied to matrices only.
        betas: of Adam.
        patience: stop when the validation loss has not improved for so many epochs.
        keep_best: end with the weights of the epoch with the best validation loss.
        measure: called after each epoch with the model in eval mode; its dict joins the history.
        seed: of everything random in a run: dropout, and what the model draws.
        checkpoint: file that holds the last completed epoch, or the step of an interrupt.
        device: where to train; this process's GPU if there is one. Under `torchrun` every process
            takes its share of each batch, and the step is that of one process on the whole.
        quiet: show no bar and no closing line, where many runs follow each other.

    Raises:
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
    ):
        for name, value in (("epochs", epochs), ("lr", lr), ("patience", patience)):
            if value is not None and not value > 0:
                raise ValueError(f"{name}={value}; a positive number is needed")
        if clip_norm is not None and not clip_norm > 0:
            raise ValueError(f"clip_norm={clip_norm}; a positive length or None is needed")
        self.loss, self.epochs, self.lr = loss, epochs, lr
        self.schedule = schedule or constant()
        self.clip_norm, self.weight_decay, self.betas = clip_norm, weight_decay, betas
        self.patience, self.keep_best, self.measure = patience, keep_best, measure
        self.seed, self.quiet = seed, quiet
        self.checkpoint = Path(checkpoint) if checkpoint else None
        self.device = torch.device(device or own_device())

    def fit(self, model: nn.Module, train, val=None, *, resume: bool = False) -> History:
        """Train `model` in place and return the history.

        Interrupting the kernel ends the run after the current step, with model and history intact
        and, where there is a `checkpoint`, a file from which `resume=True` goes on. On a CPU the
        resumed run equals an uninterrupted one bit for bit.

        Args:
            train: iterable of batches, anew for each pass; with `state_dict` and `load_state_dict`
                where a run is to be resumed in the middle of a pass (`PairLoader` has them).
            val: iterable of batches to measure the loss on after each epoch.
            resume: go on from `checkpoint`, if the file is there.

        Raises:
            FloatingPointError: the loss is NaN or infinite; says at which step, rate and gradient.
            ValueError: nothing to train on or nothing to learn, or the checkpoint belongs to another
                model.
        """
        if len(train) == 0:
            raise ValueError("train is empty; there is nothing to learn from")
        model.to(self.device)
        team = join()
        run = _Run(self, model, train, team)
        if resume and self.checkpoint and self.checkpoint.exists():
            run.load(self.checkpoint)
        elif not resume:
            torch.manual_seed(self.seed + team.rank)
        was_training = model.training
        with (
            _gentle_interrupt() as pressed,
            progress(self.epochs, len(train), shown=team.leads and not self.quiet) as bar,
        ):
            while run.epoch < self.epochs and not run.exhausted(self.patience):
                run.one_epoch(train, val, bar, pressed)
                if team.any(pressed()):
                    run.history.stopped = "interrupted"
                    break
            else:
                run.history.stopped = "finished" if run.epoch >= self.epochs else "early"
            if self.keep_best and run.best_state is not None:
                model.load_state_dict(run.best_state)
            bar.done(run.history)
        model.train(was_training)
        return run.history

    @torch.no_grad()
    def evaluate(self, model: nn.Module, batches) -> float:
        """Mean loss per token (or image) in eval mode; the mode is put back afterwards."""
        team, total, count = join(), 0.0, 0
        with evaluating(model):
            for batch in batches:
                with self._autocast():
                    loss, n = self.loss(model, team.share(batch).to(self.device))
                total, count = total + loss.item(), count + n
        total, count = team.total(total, count)
        return total / count

    def _autocast(self):
        """bfloat16 on a GPU; on a CPU full precision."""
        return torch.autocast("cuda", torch.bfloat16, enabled=self.device.type == "cuda")


class _Objective(nn.Module):
    """The loss as a module around the model: what several processes average the gradients of."""

    def __init__(self, model: nn.Module, loss: Loss):
        super().__init__()
        self.model, self.loss = model, loss

    def forward(self, batch) -> tuple[Tensor, int]:
        return self.loss(self.model, batch)


class _Run:
    """One call of `fit`: everything that changes while it goes on, so everything to save."""

    def __init__(self, trainer: Trainer, model: nn.Module, train, team: Team):
        self.trainer, self.model, self.train, self.team = trainer, model, train, team
        self.objective = team.wrap(_Objective(model, trainer.loss))
        self.optimizer = _optimizer(model, trainer)
        self.history = History()
        self.epoch = self.step = self.since_best = 0
        self.best, self.best_state = math.inf, None
        self.lr = self.grad_norm = 0.0
        self._begin_epoch()

    def _begin_epoch(self) -> None:
        self.total, self.count, self.seconds, self.largest = 0.0, 0, 0.0, 0.0

    def exhausted(self, patience: int | None) -> bool:
        """Whether the validation loss has stood still for too long."""
        return patience is not None and self.since_best >= patience

    def one_epoch(self, train, val, bar, pressed: Callable[[], bool]) -> None:
        """The rest of the current epoch; an interrupt leaves it where it stands, and saves."""
        began, before = time.perf_counter(), self.seconds
        self.model.train()
        for batch in train:
            self._one_step(self.team.share(batch).to(self.trainer.device))
            bar.step(self.step, self.total / self.count)
            if self.team.any(pressed()):
                self.seconds = before + time.perf_counter() - began
                self.save()
                return
        self._end_epoch(val, before + time.perf_counter() - began)
        bar.epoch(self.history)

    def _one_step(self, batch) -> None:
        trainer, step = self.trainer, self.step + 1
        lr = trainer.lr * trainer.schedule(step)
        for group in self.optimizer.param_groups:
            group["lr"] = lr
        with trainer._autocast():
            loss, count = self.objective(batch)
        value, count = self.team.total(loss.item(), count)
        if not math.isfinite(value):
            raise FloatingPointError(
                f"the loss is {value} at step {step}; learning rate {lr:.3g}, gradient norm "
                f"{self.grad_norm:.3g} at the step before: lower the rate or clip the gradients"
            )
        self.optimizer.zero_grad()
        (loss / (count / self.team.size)).backward()  # the processes' gradients are averaged
        limit = trainer.clip_norm or math.inf
        self.grad_norm = nn.utils.clip_grad_norm_(self.model.parameters(), limit).item()
        self.optimizer.step()
        self.step, self.lr = step, lr
        self.total, self.count = self.total + value, self.count + count
        self.largest = max(self.largest, self.grad_norm)

    def _end_epoch(self, val, seconds: float) -> None:
        trainer, began = self.trainer, time.perf_counter()
        val_loss = trainer.evaluate(self.model, val) if val is not None else None
        measured = {}
        if trainer.measure:
            self.model.eval()
            with torch.no_grad():
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
        if self.trainer.checkpoint is None or not self.team.leads:
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
        save_atomically(state, self.trainer.checkpoint)

    def load(self, path: Path) -> None:
        """Go on from a checkpoint."""
        state = torch.load(path, weights_only=True, map_location=self.trainer.device)
        load_weights(self.model, state, path)
        self.optimizer.load_state_dict(state["optimizer"])
        for name, value in state["counters"].items():
            setattr(self, name, value)
        self.history.rows = state["rows"]
        torch.set_rng_state(state["rng"].cpu())
        if state["cuda_rng"] and torch.cuda.is_available():
            torch.cuda.set_rng_state_all([rng.cpu() for rng in state["cuda_rng"]])
        if state["loader"] is not None:
            loader = {
                k: v.cpu() if isinstance(v, Tensor) else v for k, v in state["loader"].items()
            }
            self.train.load_state_dict(loader)


def _optimizer(model: nn.Module, trainer: Trainer) -> torch.optim.Optimizer:
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    if not parameters:
        raise ValueError(f"{type(model).__name__} has no parameter to train")
    groups = [
        {"params": [p for p in parameters if p.ndim >= 2], "weight_decay": trainer.weight_decay},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    return torch.optim.AdamW(groups, lr=trainer.lr, betas=trainer.betas, fused=True)


@contextlib.contextmanager
def _gentle_interrupt() -> Iterator[Callable[[], bool]]:
    """Turn Ctrl-C, or the kernel's interrupt button, into a flag that is read between steps."""
    pressed = threading.Event()
    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    usual = signal.signal(signal.SIGINT, lambda *_: pressed.set())
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, usual)
