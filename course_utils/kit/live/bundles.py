"""Bundles: a stored model and its card as JSON, which a page loads by a script tag and `engine.js` unpacks.

Large matrices are whole numbers of 8 or 6 bits with a scale for each row, other tensors are in half precision, both as
base64. `StoredModel.for_page` has the same rounded weights.
"""

import base64
import json
from collections.abc import Mapping
from functools import cache

import numpy as np

from course_utils.kit.stored_model import MODELS, SCALES, StoredModel, load_model, read_card

LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
"""The letters of base64, which stand for the whole numbers from -31 to 32 in a matrix of 6 bits."""

MAX_BYTES = 700_000
"""The largest size of a bundle, as a script."""

LATER_BYTES = {"everyday_fr": 4_000_000}
"""Larger limits, by name, for bundles that a page loads only after it has answered with a smaller model."""


def bundled() -> list[str]:
    """The names of all bundles: of stored models that answer in a page, and of pictures that some drew beforehand."""
    return sorted(path.stem for path in MODELS.glob("*.json"))


@cache
def bundle(name: str) -> dict:
    """The bundle of a name: the weights as a page computes with them, if a model has this name, and its card.

    Raises:
        ValueError: no card has this name.
    """
    if name not in (names := bundled()):
        raise ValueError(f"name={name!r} answers in no page yet; those that do: {', '.join(names)}")
    has_weights = (MODELS / f"{name}.npz").is_file()
    return (pack(load_model(name).for_page()) if has_weights else {}) | read_card(name)


def script(name: str, bundle: Mapping) -> str:
    """A bundle as a classic script, because a page that is opened from a file cannot fetch JSON.

    Raises:
        ValueError: it has more than `MAX_BYTES`, or than `LATER_BYTES` allows.
    """
    most = LATER_BYTES.get(name, MAX_BYTES)
    data = json.dumps(bundle, ensure_ascii=False, separators=(",", ":"))
    text = f'(globalThis.live_bundles ??= {{}})["{name}"] = {data};\n'
    if (size := len(text.encode())) > most:
        raise ValueError(f"{name} takes {size // 1000} KB; at most {most // 1000} KB are allowed")
    return text


def pack(model: StoredModel) -> dict:
    """A model as JSON can hold it: `config`, `vocabularies`, and `tensors` by their names in the state_dict.

    A tensor that has several names stands under the first; the others refer to it.
    """
    tensors: dict[str, dict] = {}
    for name, array in model.arrays.items():
        if name.endswith(SCALES):
            tensors[name.removesuffix(SCALES)]["scales"] = _base64(array)
            continue
        is_quantized = f"{name}{SCALES}" in model.arrays
        if is_quantized and model.bits == 6:
            data = {"letters": _letters(array)}
        else:
            data = {"data": _base64(array if is_quantized else array.astype("<f2"))}
        tensors[name] = {"shape": list(array.shape)} | data
    tensors |= {name: {"same": first} for name, first in model.same.items()}
    return {"config": model.config, "vocabularies": model.vocabularies, "tensors": tensors}


def _base64(numbers: np.ndarray) -> str:
    return base64.b64encode(numbers.tobytes()).decode("ascii")


def _letters(steps: np.ndarray) -> str:
    codes = np.frombuffer(LETTERS.encode(), np.uint8)
    return codes[steps.ravel() + 31].tobytes().decode("ascii")
