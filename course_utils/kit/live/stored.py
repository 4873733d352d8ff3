"""Trained networks in files.

`make runs` trains one with its chapter's own class and saves it in data/models/<name>.npz: the tensors of its
state_dict in half precision or fewer bits, its configuration, and its vocabularies. They load into the reader's
class, too. What a page tells of it, its examples and scores, stands beside it in <name>.json.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.files import ROOT, atomic_write, leads, locked
from course_utils.kit.live.packing import is_rounded, rounded, shared

MODELS = ROOT / "data" / "models"
SCALES = ".scales"
"""Behind a matrix's name, of what its rows are multiplied by."""


@dataclass(frozen=True)
class StoredModel:
    """A trained model as it is stored.

    Attributes:
        config: the arguments that make its class, by name.
        state: its state_dict, in single precision.
        vocabularies: lists of tokens by name, such as "source" and "target".
        bits: of a number of its large matrices; 16, unless it is stored with fewer.
    """

    config: dict
    state: dict[str, Tensor]
    vocabularies: dict[str, list[str]]
    bits: int = 16


def save_model(
    name: str,
    model: nn.Module,
    config: Mapping,
    vocabularies: Mapping[str, Sequence[str]] | None = None,
    *,
    bits: int = 16,
    folder: Path | None = None,
) -> Path:
    """Store a trained model under a name; give the file.

    Args:
        name: of the file, without its ending.
        model: its parameters and buffers are stored in half precision, each once, whatever names it has.
        config: the arguments that make its class; what JSON can hold.
        vocabularies: tokens in the order of their ids, by name.
        bits: with 8 or 6, large matrices are rounded to whole numbers of so many bits, with a scale for each row.

    Raises:
        ValueError: a tensor does not fit half precision.
    """
    arrays, state = {}, model.state_dict()
    same = shared(state)
    for key, tensor in state.items():
        if key in same:
            continue
        if is_rounded(tensor, bits):
            arrays[key], arrays[f"{key}{SCALES}"] = rounded(tensor.detach().cpu(), bits)
            continue
        half = tensor.detach().cpu().half() if tensor.is_floating_point() else tensor.cpu()
        if not half.isfinite().all():
            raise ValueError(f"{key} holds a value beyond half precision (65,504)")
        arrays[key] = half.numpy()
    about = {"config": dict(config), "vocabularies": dict(vocabularies or {})}
    if bits < 16:
        about |= {"bits": bits}
    if same:
        about |= {"same": same}
    path = (folder or MODELS) / f"{name}.npz"
    if not leads():
        return path
    with atomic_write(path) as part, part.open("wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about, ensure_ascii=False)), **arrays)
    if folder is None:
        _note_checksum(path)
    return path


def tell(name: str, **facts: object) -> None:
    """Keep what a page tells of a stored model, in place of what was kept under the same keys.

    Args:
        name: of the model.
        facts: what JSON can hold: such as `examples`, `score`, `answers`.
    """
    path = MODELS / f"{name}.json"
    with locked(path), atomic_write(path) as part:
        every = (told(name) if path.is_file() else {}) | facts
        lines = (
            f"{json.dumps(key)}: {json.dumps(fact, ensure_ascii=False)}"
            for key, fact in every.items()
        )
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    _note_checksum(path)


def told(name: str) -> dict:
    """What `tell` has kept of a stored model."""
    return json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))


def trained(model: str, earlier: Sequence[int], result: Mapping[str, float]) -> list[dict]:
    """A model at some steps of its training, for a slider: name, steps and held-out loss of each.

    Args:
        model: the stored model; what it was after n steps is stored as `<model>_<n>`.
        earlier: those numbers of steps.
        result: of the run: "loss, <n>" for each, and "steps" and "loss" of the end.
    """
    every = [(f"{model}_{steps}", steps, result[f"loss, {steps}"]) for steps in earlier]
    every.append((model, int(result["steps"]), result["loss"]))
    return [dict(zip(("model", "steps", "loss"), each, strict=True)) for each in every]


def _note_checksum(path: Path) -> None:
    """Write the file's SHA-256 into data/SHA256SUMS, in place of an earlier one."""
    sums, name = ROOT / "data" / "SHA256SUMS", path.relative_to(ROOT / "data").as_posix()
    with locked(sums), atomic_write(sums) as part:
        lines = sums.read_text(encoding="utf-8").splitlines()
        lines = [line for line in lines if line.split()[1] != name]
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}")
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")


def load_model(name: str, *, folder: Path | None = None) -> StoredModel:
    """A stored model by its name; `Class(**stored.config).load_state_dict(stored.state)` revives it.

    Raises:
        ValueError: there is no model of this name; those that exist are named.
    """
    path = (folder or MODELS) / f"{name}.npz"
    if not path.is_file():
        known = ", ".join(sorted(file.stem for file in path.parent.glob("*.npz"))) or "none"
        raise ValueError(f"name={name!r} is no stored model; there are: {known}")
    with np.load(path, allow_pickle=False) as file:
        about = json.loads(str(file["about"]))
        arrays = {key: torch.from_numpy(file[key]) for key in file.files if key != "about"}
    state = {}
    for key, array in arrays.items():
        if f"{key}{SCALES}" in arrays:
            state[key] = array.float() * arrays[f"{key}{SCALES}"][:, None]
        elif not key.endswith(SCALES):
            state[key] = array.float() if array.is_floating_point() else array
    state |= {key: state[first] for key, first in about.get("same", {}).items()}
    return StoredModel(about["config"], state, about["vocabularies"], about.get("bits", 16))
