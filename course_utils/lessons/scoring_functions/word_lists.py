"""The task of *Scoring functions*: lists of words with a digit each, and the kinds of heads that learn such lists."""

from collections.abc import Callable, Mapping

import torch
from torch import Tensor

_NOUNS = """
    rain cat door moon soup train hat tree lamp fish king river bread stone glove ship
    cloud horse key sun salt bus shoe leaf chair bird queen lake cheese sand sock boat
    wind dog wall star pepper car shirt grass table frog clown sea apple hill belt plane
    snow mouse roof sky sugar bike coat flower bed duck pirate pond cake rock scarf kite
"""
WORDS = tuple(_NOUNS.split())
"""The 64 words; a head knows each by its index."""
GUESS = 0.1
"""The accuracy of a guess among ten."""

SMALL_START = "nothing, small start"
LARGE_START = "√d, large start"
NAMES = {
    "√d": "divided by √d",
    SMALL_START: "not divided, small start",
    LARGE_START: "divided by √d, large start",
    "nothing": "not divided",
}
"""`divided_by` in the configuration of a run → the name of this kind of head in tables and pictures."""


def answer(head: Callable[..., Tensor], digits: Mapping[str, int], asked: str) -> int:
    """The digit that a head gives for one word of a list.

    Args:
        head: (asked (1,), words (1, m), digits (1, m)), words by index → scores (1, 10).
        digits: word → its digit.
        asked: one of the words.
    """
    listed = torch.tensor([[WORDS.index(word) for word in digits]])
    given = torch.tensor([list(digits.values())])
    return int(head(torch.tensor([WORDS.index(asked)]), listed, given).argmax())
