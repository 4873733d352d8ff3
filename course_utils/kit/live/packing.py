"""A model as plain data, a bundle: a page loads it by a script tag, and `engine.js` unpacks it.

A matrix of some size is kept as whole numbers of 8 bits, with a scale for each row; all else in half precision.
What a page computes with are these rounded weights; `restored` gives them to PyTorch.
"""

import base64
import json
from collections.abc import Mapping, Sequence
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor, nn

LARGE = 1024
"""From so many numbers on a matrix is rounded to 8 bits: below, it would save too little."""

MAX_BYTES = 700_000
"""Of one bundle, as a script."""

Network = TypeVar("Network", bound=nn.Module)


def pack(
    config: Mapping,
    state: Mapping[str, Tensor],
    vocabularies: Mapping[str, Sequence[str]] | None = None,
    *,
    eight_bits: bool = True,
) -> dict:
    """What JSON can hold: `config`, `vocabularies`, and under `tensors` each one by its name in the state_dict.

    Args:
        config: the arguments that make the model's class.
        state: its state_dict, in single precision.
        vocabularies: tokens in the order of their ids, by name.
        eight_bits: whether large matrices are rounded to 8 bits; otherwise all is in half precision.
    """
    tensors = {
        name: _packed(tensor.detach().float(), eight_bits=eight_bits)
        for name, tensor in state.items()
    }
    words = {side: list(tokens) for side, tokens in (vocabularies or {}).items()}
    return {"config": dict(config), "vocabularies": words, "tensors": tensors}


def restored(packed: Mapping) -> dict[str, Tensor]:
    """The state_dict that a page sees: the weights of a bundle, to the last bit."""
    return {name: _unpacked(tensor) for name, tensor in packed["tensors"].items()}


def network_of(kind: type[Network], packed: Mapping) -> Network:
    """The network that a page sees, as PyTorch's, in eval mode; it is not trained further."""
    network = kind(**packed["config"])
    network.load_state_dict(restored(packed))
    return network.eval().requires_grad_(False)


def script(name: str, packed: Mapping) -> str:
    """A bundle as a classic script, which a page may load from a file, too.

    Raises:
        ValueError: it has more than `MAX_BYTES`.
    """
    data = json.dumps(packed, ensure_ascii=False, separators=(",", ":"))
    text = f'(globalThis.live_bundles ??= {{}})["{name}"] = {data};\n'
    if (size := len(text.encode())) > MAX_BYTES:
        raise ValueError(
            f"{name} takes {size // 1000} KB; at most {MAX_BYTES // 1000} KB are allowed"
        )
    return text


def _packed(tensor: Tensor, *, eight_bits: bool) -> dict:
    packed: dict = {"shape": list(tensor.shape)}
    if not (eight_bits and tensor.ndim == 2 and tensor.numel() >= LARGE):
        return packed | {"data": _text(tensor.numpy().astype("<f2"))}
    scales = tensor.abs().amax(dim=1) / 127
    steps = (tensor / scales.where(scales > 0, 1.0)[:, None]).round()
    return packed | {
        "scales": _text(scales.numpy().astype("<f4")),
        "data": _text(steps.numpy().astype("i1")),
    }


def _unpacked(packed: Mapping) -> Tensor:
    data = base64.b64decode(packed["data"])
    if "scales" not in packed:
        numbers = np.frombuffer(data, "<f2").astype(np.float32)
        return torch.from_numpy(numbers).reshape(packed["shape"])
    steps = np.frombuffer(data, "i1").reshape(packed["shape"]).astype(np.float32)
    scales = np.frombuffer(base64.b64decode(packed["scales"]), "<f4")
    return torch.from_numpy(steps * scales[:, None])


def _text(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")
