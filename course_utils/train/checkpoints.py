"""Checkpoints: what is written can be read again, and belongs to the model. Taught in *Training transformers*."""

import contextlib
import copy
import math
import os
import pickle
import shutil
import warnings
import zipfile
import zlib
from collections import Counter, OrderedDict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from course_utils.files import atomic_write

CONTAINERS = (dict, OrderedDict, Counter, list, tuple, set)
CONTENTS = (
    bool, int, float, complex, str, bytes, type(None), torch.Size, torch.dtype, torch.device,
)  # fmt: skip
"""Types that `torch.load(…, weights_only=True)` reads, besides tensors."""

UNREADABLE = (
    pickle.UnpicklingError, zipfile.BadZipFile, zlib.error, RuntimeError, OSError, EOFError, ValueError, TypeError,
    LookupError, AttributeError,
)  # fmt: skip
"""The exceptions of reading a file that is damaged, or that another program wrote."""


def save_checkpoint(
    state: dict[str, Any], path: str | os.PathLike, *, earlier: Path | None = None
) -> None:
    """Write a checkpoint in place of an earlier one, unless it could not be read again.

    Args:
        state: what is written.
        path: the file.
        earlier: a path under which the file that lies there is kept; not if one that was trained longer has it.

    Raises:
        TypeError: as in `check_readable`; the earlier one stays.
        OSError: the file can't be written; the earlier one stays.
    """
    check_readable(state)
    path = Path(os.path.realpath(path))
    with atomic_write(path) as part:
        try:
            torch.save(state, part)
        except RuntimeError as error:  # PyTorch's word for a write that was refused
            raise OSError(
                f"{path} could not be written, most likely because the disk is full or a quota reached; what was "
                "saved there before is unchanged"
            ) from error
        if earlier and path.exists() and steps_in(path) >= steps_in(earlier):
            earlier.unlink(missing_ok=True)
            try:
                os.link(path, earlier)
            except OSError:  # a drive without links
                shutil.copy2(path, earlier)


def name_of_earlier(path: Path) -> Path:
    """The name beside a checkpoint for that of an earlier training, such as run.earlier.pt; it is printed.

    Raises:
        FileExistsError: `path` is a folder or a device.
    """
    real = Path(os.path.realpath(path))
    if not real.is_file():
        raise FileExistsError(
            f"{path} is no file but a folder or a device; give the path of a file"
        )
    earlier = real.with_name(f"{real.stem}.earlier{real.suffix}")
    print(
        f"{path} is there, and training begins anew, without resume=True; of the earlier checkpoints, the one that was "
        f"trained longest is kept as {earlier.name}"
    )
    return earlier


def steps_in(path: Path) -> float:
    """The number of steps of a checkpoint; -1 if there is no file, infinite if it is none of a Trainer."""
    if not path.exists():
        return -1
    try:
        return torch.load(path, weights_only=True, mmap=True, map_location="cpu")["counters"][
            "step"
        ]
    except UNREADABLE:
        return math.inf


def copied(state: dict[str, Any]) -> dict[str, Any]:
    """A copy of a model's state that later training does not change."""
    return {
        name: part.clone() if isinstance(part, Tensor) else copy.deepcopy(part)
        for name, part in state.items()
    }


def check_readable(value: Any, name: str = "") -> None:
    """Raise TypeError for what `torch.load(…, weights_only=True)` refuses, such as a NumPy number; it says where."""
    kind = type(value)
    if kind in CONTAINERS:
        parts: Iterable = value.items() if isinstance(value, dict) else enumerate(value)
        for key, part in parts:
            check_readable(key, f"a key of {name}")
            check_readable(part, f"{name}[{key!r}]" if name else key)
    elif kind not in CONTENTS and not isinstance(value, Tensor):
        raise TypeError(
            f"{name} is a {kind.__module__}.{kind.__qualname__}, so the checkpoint could not be read again; "
            "hand over Python's numbers, strings and tensors, such as float(x) or torch.as_tensor(x)"
        )


def load_checkpoint(
    path: Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    batches: Any,
    device: torch.device,
    counters: Iterable[str],
) -> dict[str, Any]:
    """The state that `save_checkpoint` wrote, with tensors on a device.

    Args:
        path: the file.
        model: the model that gets the weights.
        optimizer: the optimizer that gets its averages.
        batches: the batches that go on from the place that was reached, if they can.
        device: where the tensors shall be.
        counters: names that the state's `counters` must have.

    Raises:
        ValueError: the file is no checkpoint or damaged, or it is one of another model, of other trained parameters,
            of other batches or of an older Trainer.
    """
    state = None
    if zipfile.is_zipfile(path):
        with contextlib.suppress(*UNREADABLE), zipfile.ZipFile(path) as file:
            if file.testzip() is None:  # PyTorch does not compare the checksums
                with warnings.catch_warnings(action="ignore"):  # TorchScript's
                    state = torch.load(path, weights_only=True, map_location=device)
    if not isinstance(state, dict) or not {"kind", "model", "optimizer"} <= state.keys():
        raise ValueError(
            f"{path} is damaged or no checkpoint of a Trainer, so there is nothing to go on from; train without "
            "resume=True, or give another file"
        )
    missing = [
        name for name in ("counters", "rows", "rng", "cuda_rng", "loader") if name not in state
    ]
    missing = missing or [name for name in counters if name not in state["counters"]]
    if missing:
        raise ValueError(
            f"{path} has no {missing[0]!r}, so it is of another edition of the course, and training can't go on from "
            f"it exactly; load its weights with model.load_state_dict(torch.load({str(path)!r})['model']), and "
            "train without resume=True"
        )
    load_weights(model, state, path)
    _load_optimizer(optimizer, model, state, path)
    _load_place(batches, state, path)
    torch.set_rng_state(state["rng"].cpu())
    if state["cuda_rng"] and torch.cuda.is_available():
        known = state["cuda_rng"][: torch.cuda.device_count()]
        torch.cuda.set_rng_state_all([rng.cpu() for rng in known])
    return state


def _load_optimizer(
    optimizer: torch.optim.Optimizer, model: nn.Module, state: dict[str, Any], path: Path
) -> None:
    """Load the optimizer's state of a checkpoint.

    Raises:
        ValueError: other parameters of the model were trained; the message names one.
    """
    then, now = (
        [len(group["params"]) for group in groups]
        for groups in (state["optimizer"]["param_groups"], optimizer.param_groups)
    )
    problem = f"{sum(then)} parameters were trained, here {sum(now)} are" if then != now else ""
    if "trained" in state:  # not in files of older editions
        was, trained = (
            set(state["trained"]),
            {n for n, p in model.named_parameters() if p.requires_grad},
        )
        frozen, thawed = sorted(was - trained), sorted(trained - was)
        if frozen or thawed:
            problem = (
                f"{frozen[0]} was trained and is frozen here"
                if frozen
                else f"{thawed[0]} was frozen and is trained here"
            )
    if problem:
        raise ValueError(
            f"{path.name} is a checkpoint of a training of other parameters: {problem}. Set requires_grad as it was "
            "there, or train without resume=True"
        )
    optimizer.load_state_dict(state["optimizer"])


def _load_place(batches: Any, state: dict[str, Any], path: Path) -> None:
    """Load the place in the batches at which a checkpoint was written, if it has one.

    Raises:
        ValueError: these batches can't go on from a place, or they are other ones.
    """
    if state["loader"] is None:
        return
    if not hasattr(batches, "load_state_dict"):
        raise ValueError(
            f"{path.name} holds the place in a loader, and train is a {type(batches).__name__}, which can't go on "
            "from there; give the loader that the training began with"
        )
    batches.load_state_dict(state["loader"])


def load_weights(model: nn.Module, state: dict[str, Any], path: str | os.PathLike) -> None:
    """Load the weights of a checkpoint into `model`.

    Args:
        model: the model that gets the weights.
        state: the checkpoint, as `torch.load(path, weights_only=True)` returns it: `kind`, the name of the class, and
            `model`, its `state_dict()`.
        path: the checkpoint's file, for the message.

    Raises:
        ValueError: names or shapes of the weights are not those of the model; the message has the first difference.
    """
    saved, own = state["model"], model.state_dict()
    problem = None
    if missing := [name for name in own if name not in saved]:
        problem = f"it has no {missing[0]}"
    elif unknown := [name for name in saved if name not in own]:
        problem = f"its {unknown[0]} is unknown here"
    else:
        for name, tensor in own.items():
            extra = name.endswith("_extra_state")  # which is anything, and the model's own
            if not extra and saved[name].shape != tensor.shape:
                problem = f"{name} is {tuple(saved[name].shape)}, here {tuple(tensor.shape)}"
                break
    if problem:
        raise ValueError(
            f"{Path(path).name} is a checkpoint of another {state['kind']}, not of this "
            f"{type(model).__name__}: {problem}"
        )
    model.load_state_dict(saved)
