"""Stored models: trained networks in files, and the bundles that a page loads of them.

A stored model is data/models/<name>.npz: the tensors of a state_dict in half precision or fewer bits, the configuration
of its class, and its vocabularies. `make runs` trains it with its chapter's own class, and it loads into the reader's
class as well. Its card, <name>.json, holds what a page tells of it: examples, scores, answers.

A bundle is a model and its card as JSON: a page loads it by a script tag, and `engine.js` unpacks it. Matrices of
`LARGE` numbers or more are quantized to whole numbers of 8 or 6 bits with a scale for each row; other tensors are in
half precision. A page computes with these rounded weights; `restored` gives them to PyTorch.
"""

import base64
import hashlib
import json
import shutil
import struct
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

from course_utils.files import ROOT, atomic_write, is_first_process, locked

MODELS = ROOT / "data" / "models"
SCALES = ".scales"
"""The suffix of the array in a file that holds the scales of a quantized matrix, one for each row."""

LARGE = 1024
"""The number of elements from which on a matrix is quantized; in a smaller one it would save too little."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
"""The letters of base64, which stand for the whole numbers from -31 to 32 in a matrix of 6 bits."""

MAX_BYTES = 700_000
"""The largest size of a bundle, as a script."""

LATER_BYTES = {"everyday_fr": 4_000_000}
"""Larger limits, by name, for bundles that a page loads only after it has answered with a smaller model."""

Network = TypeVar("Network", bound=nn.Module)


# Files ----------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class StoredModel:
    """A trained model as it is stored.

    Attributes:
        config: the arguments of its class, by name.
        state: its state_dict, in single precision.
        vocabularies: lists of tokens by name, such as "source" and "target".
        bits: how many bits a number of its large matrices has; 16 where they are not quantized.
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
    """The path of the file in which a trained model is stored under a name.

    Args:
        name: the name of the file, without its ending.
        model: the network; a tensor that has several names in its state_dict is stored once.
        config: the arguments of the model's class, as JSON can hold them.
        vocabularies: lists of tokens in the order of their ids, by name.
        bits: 8 or 6 quantizes large matrices to so many bits, with a scale for each row; 16 does not.
        folder: where the file goes; data/models by default.

    Raises:
        ValueError: a tensor does not fit half precision.
    """
    arrays, state = {}, model.state_dict()
    same = shared(state)
    for key, tensor in state.items():
        tensor = tensor.detach().cpu()
        if key in same:
            continue
        if is_rounded(tensor, bits):
            arrays[key], arrays[f"{key}{SCALES}"] = rounded(tensor, bits)
            continue
        half = tensor.half() if tensor.is_floating_point() else tensor
        if not half.isfinite().all():
            raise ValueError(f"{key} holds a value beyond half precision (65,504)")
        arrays[key] = half.numpy()
    about = {"config": dict(config), "vocabularies": dict(vocabularies or {})}
    about |= {"bits": bits} if bits < 16 else {}
    about |= {"same": same} if same else {}
    path = (folder or MODELS) / f"{name}.npz"
    if not is_first_process():
        return path
    with atomic_write(path) as part, part.open("wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about, ensure_ascii=False)), **arrays)
    if folder is None:
        _note_checksum(path)
    return path


def load_model(name: str, *, folder: Path | None = None) -> StoredModel:
    """The stored model of a name; `Class(**stored.config).load_state_dict(stored.state)` loads it into its class.

    Raises:
        ValueError: no model has this name; the message lists those that exist.
    """
    path = (folder or MODELS) / f"{name}.npz"
    if not path.is_file():
        names = ", ".join(sorted(file.stem for file in path.parent.glob("*.npz"))) or "none"
        raise ValueError(f"name={name!r} is no stored model; there are: {names}")
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


def write_card(name: str, **facts: object) -> None:
    """Write facts about a stored model onto its card, `<name>.json`, in place of those under the same keys.

    Args:
        name: the name of the model.
        facts: values that JSON can hold, such as `examples`, `score`, `answers`.
    """
    path = MODELS / f"{name}.json"
    with locked(path), atomic_write(path) as part:
        every = (read_card(name) if path.is_file() else {}) | facts
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


def _note_checksum(path: Path) -> None:
    """Write the file's SHA-256 into data/SHA256SUMS, in place of an earlier one."""
    sums, name = MODELS.parent / "SHA256SUMS", path.relative_to(MODELS.parent).as_posix()
    with locked(sums), atomic_write(sums) as part:
        lines = sums.read_text(encoding="utf-8").splitlines()
        lines = [line for line in lines if line.split()[1] != name]
        lines.append(f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {name}")
        part.write_text("\n".join(lines) + "\n", encoding="utf-8")


@contextmanager
def models_in_a_copy() -> Iterator[None]:
    """A block in which models and cards are read from a temporary copy of data/models, and written into it."""
    global MODELS
    kept = MODELS
    with tempfile.TemporaryDirectory() as folder:
        MODELS = Path(folder) / kept.name
        shutil.copytree(kept, MODELS)
        shutil.copy(kept.parent / "SHA256SUMS", folder)
        try:
            yield
        finally:
            MODELS = kept
            bundle.cache_clear()


# Bundles --------------------------------------------------------------------------------------------------------------


def bundled() -> list[str]:
    """The names of all bundles: of stored models that answer in a page, and of pictures that some drew beforehand."""
    return sorted(path.stem for path in MODELS.glob("*.json"))


def packed(name: str) -> dict:
    """The weights of a stored model as a page computes with them; `network_of` makes PyTorch's network of them.

    Raises:
        ValueError: no model has this name.
    """
    model = load_model(name)
    return pack(model.config, model.state, model.vocabularies, bits=min(model.bits, 8))


@cache
def bundle(name: str) -> dict:
    """The bundle of a name: the packed weights, if a model has this name, and its card.

    Raises:
        ValueError: no card has this name.
    """
    if name not in (names := bundled()):
        raise ValueError(f"name={name!r} answers in no page yet; those that do: {', '.join(names)}")
    has_weights = (MODELS / f"{name}.npz").is_file()
    return (packed(name) if has_weights else {}) | read_card(name)


def script(name: str, packed: Mapping) -> str:
    """A bundle as a classic script, because a page that is opened from a file cannot fetch JSON.

    Raises:
        ValueError: it has more than `MAX_BYTES`, or than `LATER_BYTES` allows.
    """
    most = LATER_BYTES.get(name, MAX_BYTES)
    data = json.dumps(packed, ensure_ascii=False, separators=(",", ":"))
    text = f'(globalThis.live_bundles ??= {{}})["{name}"] = {data};\n'
    if (size := len(text.encode())) > most:
        raise ValueError(f"{name} takes {size // 1000} KB; at most {most // 1000} KB are allowed")
    return text


def pack(
    config: Mapping,
    state: Mapping[str, Tensor],
    vocabularies: Mapping[str, Sequence[str]] | None = None,
    *,
    bits: int = 8,
) -> dict:
    """A model as JSON can hold it: `config`, `vocabularies`, and `tensors` by their names in the state_dict.

    A tensor that has several names stands under the first; the others refer to it.

    Args:
        config: the arguments of the model's class.
        state: its state_dict, in single precision.
        vocabularies: lists of tokens in the order of their ids, by name.
        bits: 8 or 6 quantizes large matrices to so many bits; with 16 every tensor is in half precision.
    """
    same = shared(state)
    tensors = {
        name: {"same": same[name]} if name in same else _packed(tensor.detach().float(), bits)
        for name, tensor in state.items()
    }
    words = {side: list(tokens) for side, tokens in (vocabularies or {}).items()}
    return {"config": dict(config), "vocabularies": words, "tensors": tensors}


def restored(packed: Mapping) -> dict[str, Tensor]:
    """The state_dict of a bundle, with the same rounded weights that a page computes with."""
    state: dict[str, Tensor] = {}
    for name, tensor in packed["tensors"].items():
        state[name] = state[tensor["same"]] if "same" in tensor else _unpacked(tensor)
    return state


def network_of(kind: type[Network], packed: Mapping) -> Network:
    """PyTorch's network with the weights of a bundle, in eval mode and without gradients."""
    network = kind(**packed["config"])
    network.load_state_dict(restored(packed))
    return network.eval().requires_grad_(False)


def shared(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Name → first name, for each further name of a tensor that has several in a state_dict."""
    first: dict[tuple, str] = {}
    names = {
        name: first.setdefault((tensor.data_ptr(), tensor.shape), name)
        for name, tensor in state.items()
    }
    return {name: other for name, other in names.items() if name != other}


def bitmap(pixels: Tensor) -> str:
    """The data URI of a gray picture, (height, width) of uint8, as a bitmap: the same bytes on every machine."""
    height, width = pixels.shape
    palette = bytes(gray for level in range(256) for gray in (level, level, level, 0))
    start = 54 + len(palette)
    sizes = 40, width, -height, 1, 8, 0, pixels.numel(), 0, 0, 256, 0
    header = struct.pack("<2sIIIIiiHHIIiiII", b"BM", start + pixels.numel(), 0, start, *sizes)
    data = base64.b64encode(header + palette + pixels.numpy().tobytes()).decode("ascii")
    return f"data:image/bmp;base64,{data}"


def is_rounded(tensor: Tensor, bits: int) -> bool:
    """Whether a tensor is quantized when large matrices have so many bits."""
    return bits < 16 and tensor.ndim == 2 and tensor.numel() >= LARGE


def rounded(matrix: Tensor, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """A matrix, (rows, columns), quantized to whole numbers of so many bits, and the scale of each row, (rows,)."""
    scales = matrix.abs().amax(dim=1) / (2 ** (bits - 1) - 1)
    steps = (matrix / scales.where(scales > 0, 1.0)[:, None]).round()
    return steps.numpy().astype("i1"), scales.numpy().astype("<f4")


def _packed(tensor: Tensor, bits: int) -> dict:
    packed: dict = {"shape": list(tensor.shape)}
    if not is_rounded(tensor, bits):
        return packed | {"data": _text(tensor.numpy().astype("<f2"))}
    steps, scales = rounded(tensor, bits)
    data = {"letters": _letters(steps)} if bits == 6 else {"data": _text(steps)}
    return packed | {"scales": _text(scales)} | data


def _unpacked(packed: Mapping) -> Tensor:
    if "scales" not in packed:
        numbers = _numbers(packed["data"], "<f2").astype(np.float32)
        return torch.from_numpy(numbers).reshape(packed["shape"])
    steps = _steps(packed["letters"]) if "letters" in packed else _numbers(packed["data"], "i1")
    scales = _numbers(packed["scales"], "<f4")
    return torch.from_numpy(steps.reshape(packed["shape"]).astype(np.float32) * scales[:, None])


def _text(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def _numbers(text: str, kind: str) -> np.ndarray:
    return np.frombuffer(base64.b64decode(text), kind)


def _letters(steps: np.ndarray) -> str:
    return _CODES[steps.ravel() + 31].tobytes().decode("ascii")


def _steps(letters: str) -> np.ndarray:
    steps = np.zeros(128, np.int8)
    steps[_CODES] = np.arange(64) - 31
    return steps[np.frombuffer(letters.encode(), np.uint8)]


_CODES = np.frombuffer(LETTERS.encode(), np.uint8)
