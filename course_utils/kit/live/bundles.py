"""The bundles of the stored models: the weights, and what is told of the model beside them."""

from functools import cache

from course_utils.kit.live.packing import pack
from course_utils.kit.live.stored import MODELS, load_model, told


def bundled() -> list[str]:
    """The stored models that answer in a page."""
    return sorted(path.stem for path in MODELS.glob("*.json"))


def packed(name: str) -> dict:
    """A stored model as a page computes with it; `network_of` makes PyTorch's network of it.

    Raises:
        ValueError: there is no model of this name.
    """
    kept = load_model(name)
    return pack(kept.config, kept.state, kept.vocabularies, bits=min(kept.bits, 8))


@cache
def bundle(name: str) -> dict:
    """A stored model, packed, and what `tell` has kept of it.

    Raises:
        ValueError: there is no model of this name, or none of its kind answers in a page yet.
    """
    weights = packed(name)
    if name not in bundled():
        known = ", ".join(bundled())
        raise ValueError(f"name={name!r} answers in no page yet; those that do: {known}")
    return weights | told(name)
