"""A model as plain data, a bundle: a page loads it by a script tag, and `engine.js` unpacks it.

A matrix of some size is kept as whole numbers of 8 bits, or of 6, a letter each, with a scale for each row; all else in
half precision. What a page computes with are these rounded weights; `restored` gives them to PyTorch.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

LARGE = 1024
"""From so many numbers on a matrix is rounded: below, it would save too little."""

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
"""Those of base64, for the whole numbers from -31 on."""

MAX_BYTES = 700_000
"""Of one bundle, as a script."""

LATER_BYTES = {"everyday_fr": 4_000_000}
"""Of one that a page loads when it has answered with another."""

Network = TypeVar("Network", bound=nn.Module)


def pack(
    config: Mapping,
    state: Mapping[str, Tensor],
    vocabularies: Mapping[str, Sequence[str]] | None = None,
    *,
    bits: int = 8,
) -> dict:
    """What JSON can hold: `config`, `vocabularies`, and under `tensors` each one by its name in the state_dict.

    Of a tensor that has several names, the others name the first.

    Args:
        config: the arguments that make the model's class.
        state: its state_dict, in single precision.
        vocabularies: tokens in the order of their ids, by name.
        bits: of a number of a large matrix: 8 or 6; with 16 all is in half precision.
    """
    same = shared(state)
    tensors = {
        name: {"same": same[name]} if name in same else _packed(tensor.detach().float(), bits)
        for name, tensor in state.items()
    }
    words = {side: list(tokens) for side, tokens in (vocabularies or {}).items()}
    return {"config": dict(config), "vocabularies": words, "tensors": tensors}


def restored(packed: Mapping) -> dict[str, Tensor]:
    """The state_dict that a page sees: the weights of a bundle, to the last bit."""
    state: dict[str, Tensor] = {}
    for name, tensor in packed["tensors"].items():
        state[name] = state[tensor["same"]] if "same" in tensor else _unpacked(tensor)
    return state


def network_of(kind: type[Network], packed: Mapping) -> Network:
    """The network that a page sees, as PyTorch's, in eval mode; it is not trained further."""
    network = kind(**packed["config"])
    network.load_state_dict(restored(packed))
    return network.eval().requires_grad_(False)


def script(name: str, packed: Mapping) -> str:
    """A bundle as a classic script, which a page may load from a file, too.

    Raises:
        ValueError: it has more than `MAX_BYTES`, or than `LATER_BYTES` allows.
    """
    most = LATER_BYTES.get(name, MAX_BYTES)
    data = json.dumps(packed, ensure_ascii=False, separators=(",", ":"))
    text = f'(globalThis.live_bundles ??= {{}})["{name}"] = {data};\n'
    if (size := len(text.encode())) > most:
        raise ValueError(f"{name} takes {size // 1000} KB; at most {most // 1000} KB are allowed")
    return text


def shared(state: Mapping[str, Tensor]) -> dict[str, str]:
    """Name → the first name of the same tensor, of those that have several."""
    first: dict[tuple, str] = {}
    names = {
        name: first.setdefault((tensor.data_ptr(), tensor.shape), name)
        for name, tensor in state.items()
    }
    return {name: other for name, other in names.items() if name != other}


def is_rounded(tensor: Tensor, bits: int) -> bool:
    """Whether it is kept as whole numbers of so many bits."""
    return bits < 16 and tensor.ndim == 2 and tensor.numel() >= LARGE


def rounded(matrix: Tensor, bits: int) -> tuple[np.ndarray, np.ndarray]:
    """Whole numbers of so many bits, and the scale of each row: what they are multiplied by."""
    scales = matrix.abs().amax(dim=1) / (2 ** (bits - 1) - 1)
    steps = (matrix / scales.where(scales > 0, 1.0)[:, None]).round()
    return steps.numpy().astype("i1"), scales.numpy().astype("<f4")


def _packed(tensor: Tensor, bits: int) -> dict:
    packed: dict = {"shape": list(tensor.shape)}
    if not is_rounded(tensor, bits):
        return packed | {"data": _text(tensor.numpy().astype("<f2"))}
    steps, scales = rounded(tensor, bits)
    if bits == 6:
        return packed | {"scales": _text(scales), "letters": _letters(steps)}
    return packed | {"scales": _text(scales), "data": _text(steps)}


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
    codes = np.frombuffer(LETTERS.encode(), np.uint8)
    return codes[steps.ravel() + 31].tobytes().decode("ascii")


def _steps(letters: str) -> np.ndarray:
    places = np.zeros(128, np.int8)
    places[np.frombuffer(LETTERS.encode(), np.uint8)] = np.arange(64) - 31
    return places[np.frombuffer(letters.encode(), np.uint8)]
