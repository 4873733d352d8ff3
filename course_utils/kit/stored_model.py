"""Stored models: trained networks in data/models, which pages load and compute with.

A stored model is data/models/<name>.npz: the tensors of a state_dict in half precision or fewer bits, the configuration
of its class, and its vocabularies. A run function returns it, and `make runs` writes it. Its card, <name>.json, holds
what a page tells of it: examples, scores, answers.

    load_model("vit").network(ViT)             as it is stored
    load_model("vit").for_page().network(ViT)  with the weights that a page computes with, rounded once more

Matrices of `LARGE` numbers or more are quantized to whole numbers of 8 or 6 bits with a scale for each row where fewer
than 16 bits are asked for; other tensors are in half precision.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.files import ROOT, atomic_write, is_first_process, locked, plain

MODELS = ROOT / "data" / "models"
SCALES = ".scales"
"""The suffix of the array that holds the scales of a quantized matrix, one for each row."""

LARGE = 1024
"""The number of elements from which on a matrix is quantized; in a smaller one it would save too little."""

PAGE_BITS = 8
"""Bits of a number of a large matrix in a page, unless the model is stored with fewer."""

Network = TypeVar("Network", bound=nn.Module)


@dataclass(frozen=True)
class StoredModel:
    """A trained model as it is stored.

    Attributes:
        config: the arguments of its class, by name, as JSON can hold them.
        arrays: the arrays of the file, by the names of its state_dict: half precision, or whole numbers with their
            scales under `<name>.scales`.
        vocabularies: lists of tokens in the order of their ids, by name, such as "source" and "target".
        bits: how many bits a number of its large matrices has; 16 where they are not quantized.
        same: name → first name, for each further name of a tensor that has several; it is stored once.
    """

    config: dict[str, Any]
    arrays: dict[str, np.ndarray]
    vocabularies: dict[str, list] = field(default_factory=dict)
    bits: int = 16
    same: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls,
        model: nn.Module,
        config: Mapping[str, Any],
        vocabularies: Mapping[str, Sequence] | None = None,
        *,
        bits: int = 16,
    ) -> "StoredModel":
        """A copy of a network as it is now, rounded as it will be in the file.

        Args:
            model: the network.
            config: the arguments of its class.
            vocabularies: lists of tokens in the order of their ids, by name.
            bits: 8 or 6 quantizes large matrices to so many bits, with a scale for each row; 16 does not.

        Raises:
            ValueError: a tensor does not fit half precision.
        """
        return cls.from_state(model.state_dict(), config, vocabularies, bits=bits)

    @classmethod
    def from_state(
        cls,
        state: Mapping[str, Tensor],
        config: Mapping[str, Any],
        vocabularies: Mapping[str, Sequence] | None = None,
        *,
        bits: int = 16,
    ) -> "StoredModel":
        """As `of`, from a state_dict."""
        arrays, same = {}, _shared(state)
        for name, tensor in state.items():
            tensor = tensor.detach().cpu()
            if not tensor.isfinite().all():
                raise ValueError(
                    f"{name} holds a value that is NaN or infinite; has the training diverged?"
                )
            if name in same:
                continue
            if name.endswith(SCALES):
                raise ValueError(
                    f"{name} has the name of the scales of a matrix; rename this parameter"
                )
            if bits < 16 and tensor.ndim == 2 and tensor.numel() >= LARGE:
                arrays[name], arrays[f"{name}{SCALES}"] = quantized(tensor, bits)
                continue
            half = tensor.half() if tensor.is_floating_point() else tensor.clone()
            if not half.isfinite().all():
                raise ValueError(f"{name} holds a value beyond half precision (65,504)")
            arrays[name] = half.numpy().copy()
        words = plain("vocabularies", vocabularies or {})
        return cls(plain("config", config), arrays, words, bits, same)

    @cached_property
    def state(self) -> dict[str, Tensor]:
        """Its state_dict, in single precision."""
        tensors = {name: torch.from_numpy(array) for name, array in self.arrays.items()}
        state = {}
        for name, tensor in tensors.items():
            if f"{name}{SCALES}" in tensors:
                state[name] = tensor.float() * tensors[f"{name}{SCALES}"][:, None]
            elif not name.endswith(SCALES):
                state[name] = tensor.float() if tensor.is_floating_point() else tensor
        return state | {name: state[first] for name, first in self.same.items()}

    def network(self, kind: type[Network], **changes: Any) -> Network:
        """PyTorch's network with these weights, in eval mode and without gradients.

        Args:
            kind: its class, the library's or the reader's own.
            changes: arguments of the class besides `config`, or in place of those.
        """
        network = kind(**(self.config | changes))
        network.load_state_dict(self.state)
        return network.eval().requires_grad_(False)

    def for_page(self) -> "StoredModel":
        """The model with the weights that a page computes with: large matrices in 8 bits, or in fewer."""
        bits = min(self.bits, PAGE_BITS)
        return self.from_state(self.state, self.config, self.vocabularies, bits=bits)


def quantized(matrix: Tensor, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix, (rows, columns), as whole numbers of so many bits, and the scale of each row, (rows,)."""
    scales = matrix.abs().amax(dim=1) / (2 ** (bits - 1) - 1)
    steps = (matrix / scales.where(scales > 0, 1.0)[:, None]).round()
    return steps.numpy().astype("i1"), scales.numpy().astype("<f4")


def _shared(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Name → first name, for each further name of a tensor that has several in a state_dict."""
    first: dict[tuple, str] = {}
    names = {
        name: first.setdefault((tensor.data_ptr(), tensor.shape, tensor.stride()), name)
        for name, tensor in state.items()
    }
    return {name: other for name, other in names.items() if name != other}


# Files ----------------------------------------------------------------------------------------------------------------


def save_model(name: str, model: StoredModel, *, folder: Path | None = None) -> Path:
    """The path of the file in which a model is stored under a name.

    Args:
        name: the name of the file, without its ending.
        model: what is stored; `StoredModel.of` makes it of a network.
        folder: where the file goes; data/models by default.
    """
    about: dict[str, Any] = {"config": model.config, "vocabularies": model.vocabularies}
    about |= {"bits": model.bits} if model.bits < 16 else {}
    about |= {"same": model.same} if model.same else {}
    path = (folder or MODELS) / f"{name}.npz"
    if not is_first_process():
        return path
    with atomic_write(path) as part, part.open("wb") as file:
        text = np.array(json.dumps(about, ensure_ascii=False))
        np.savez_compressed(file, about=text, **model.arrays)
    if folder is None:
        _note_checksum(path)
    return path


def load_model(name: str, *, folder: Path | None = None) -> StoredModel:
    """The stored model of a name; `load_model(name).network(Class)` is the network.

    Raises:
        ValueError: no model has this name; the message lists those that exist.
    """
    path = (folder or MODELS) / f"{name}.npz"
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in path.parent.glob("*.npz"))) or "none"
        raise ValueError(f"name={name!r} is no stored model; there are: {names}")
    with np.load(path, allow_pickle=False) as file:
        about = json.loads(str(file["about"]))
        arrays = {key: file[key] for key in file.files if key != "about"}
    return StoredModel(
        about["config"],
        arrays,
        about["vocabularies"],
        about.get("bits", 16),
        about.get("same", {}),
    )


def write_card(name: str, **facts: object) -> None:
    """Write facts about a stored model onto its card, `<name>.json`, in place of those under the same keys.

    Args:
        name: the name of the model.
        facts: values that JSON can hold, such as `examples`, `score`, `answers`.
    """
    path = MODELS / f"{name}.json"
    with locked(path), atomic_write(path) as part:
        every = (read_card(name) if path.is_file() else {}) | plain("facts", facts)
        lines = (
            f"{json.dumps(key)}: {json.dumps(fact, ensure_ascii=False)}"
            for key, fact in every.items()
        )
        part.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
    _note_checksum(path)


def read_card(name: str) -> dict:
    """The card of a stored model, as `write_card` has written it."""
    return json.loads((MODELS / f"{name}.json").read_text(encoding="utf-8"))


def checkpoints_of(model: str, earlier: Sequence[int], result: Mapping[str, float]) -> list[dict]:
    """The checkpoints of a model for a slider, from first to last: name, steps and held-out loss of each.

    Args:
        model: the name of the trained model; its checkpoint after n steps is stored as `<model>_<n>`.
        earlier: the numbers of steps of the checkpoints before the last.
        result: the result of the run: "loss, <n>" for each checkpoint, and "steps" and "loss" of the last.
    """
    every = [(f"{model}_{steps}", steps, result[f"loss, {steps}"]) for steps in earlier]
    every.append((model, int(result["steps"]), result["loss"]))
    return [dict(zip(("model", "steps", "loss"), each, strict=True)) for each in every]


def largest_logits(logits: Tensor, count: int = 10) -> list[list[float]]:
    """The `count` largest of logits (vocabulary,), as [id, logit], for a card: a page compares its own with them."""
    best = logits.topk(count)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return [[token, round(logit, 6)] for token, logit in pairs]


def _note_checksum(path: Path) -> None:
    """Write the file's SHA-256 into data/SHA256SUMS, in place of an earlier one."""
    sums, name = MODELS.parent / "SHA256SUMS", path.relative_to(MODELS.parent).as_posix()
    with locked(sums), atomic_write(sums) as part:
        lines = sums.read_text(encoding="utf-8").splitlines()
        lines = [line for line in lines if line.split()[1] != name]
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}")
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")
