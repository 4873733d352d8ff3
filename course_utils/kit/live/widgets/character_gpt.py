"""A GPT of characters that learns a reader's own text in the page, and writes while it learns."""

from course_utils.data.prose import story_text
from course_utils.kit.live.widget import Live

RATES = (0.001, 0.003, 0.01)


class CharacterGPT(Live):
    """A live GPT that learns, shown as the last line of a cell."""

    kind = "character_gpt"
    label = "Live training of a GPT"


def character_gpt(rate: float = 0.003, seed: int = 0) -> CharacterGPT:
    """A small GPT with random weights that learns the reader's text, letter by letter, in the browser.

    The course's short story stands there first.

    Args:
        rate: of AdamW; 0.001, 0.003 or 0.01.
        seed: of the weights and of the draws, from 0 to 99.

    Raises:
        ValueError: `rate` or `seed` is another.
    """
    if rate not in RATES:
        raise ValueError(f"rate={rate!r}; one of {', '.join(map(str, RATES))} is needed")
    if seed not in range(100):
        raise ValueError(f"seed={seed!r}; 0 to 99 are needed")
    return CharacterGPT(rate, seed, text=story_text(), rate=rate, seed=seed)
