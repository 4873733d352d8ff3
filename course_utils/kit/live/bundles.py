"""The bundles of the stored models: the weights, and what the model says to its examples."""

from collections.abc import Callable
from functools import cache

from course_utils.kit.live.packing import pack
from course_utils.kit.live.stored import load_model

ABOUT: dict[str, Callable[[dict], dict]] = {}
"""Model → what its bundle holds beside the weights, from the bundle without it."""


def about(name: str) -> Callable:
    """Decorates the function that says what the bundle of a stored model holds beside the weights.

    `examples` are what the model says with the weights as they are packed; `answers` are ids and logits, for a page
    to compare with.
    """

    def noted(function: Callable[[dict], dict]) -> Callable[[dict], dict]:
        ABOUT[name] = function
        return function

    return noted


@cache
def bundle(name: str) -> dict:
    """A stored model, packed, and what it says to its examples.

    Raises:
        ValueError: there is no model of this name, or none of its kind answers in a page yet.
    """
    kept = load_model(name)
    if name not in ABOUT:
        known = ", ".join(sorted(ABOUT))
        raise ValueError(f"name={name!r} answers in no page yet; those that do: {known}")
    packed = pack(kept.config, kept.state, kept.vocabularies)
    return packed | ABOUT[name](packed)
