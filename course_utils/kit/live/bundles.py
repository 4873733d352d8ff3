"""The bundles of the stored models: the weights, and what is told of the model beside them."""

from functools import cache

from course_utils.data.text import tokenize
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


def refuse_unknown(sentence: str, name: str) -> None:
    """Refuse a first sentence that a stored translator cannot read.

    Raises:
        ValueError: `sentence` has no word, or one that is not in the vocabulary.
    """
    known = bundle(name)["vocabularies"]["source"]
    words = tokenize(sentence)
    if not words:
        raise ValueError(f"sentence={sentence!r} is empty; write at least one word")
    if unknown := [word for word in words if word not in known]:
        raise ValueError(
            f"sentence={sentence!r} has words that the translator does not know: {', '.join(unknown)}; "
            "write others in their place"
        )
