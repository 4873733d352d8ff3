"""What the live translator says and where it looks, as numbers."""

from course_utils.kit.live.widgets.translator import Trace, follow


def translate(sentence: str) -> Trace:
    """A translation with its weights, those that the page shows: `cross`, (layers, heads, French, English).

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    return follow(sentence)
