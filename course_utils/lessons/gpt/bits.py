"""Losses of models with different tokens, brought to one unit: bits per character of the text."""

import math
from collections.abc import Sequence
from typing import Any

from course_utils.data.prose import Subwords
from course_utils.data.text import EOS
from course_utils.lessons.gpt.ngrams import ngram_losses

ORDER = 8  # of the longest n-grams
HELD_OUT = 10  # every tenth sentence


def compare(sentences: Sequence[str], sizes: Sequence[int]) -> Any:
    """A table of the best n-grams on characters, and on subwords of each size.

    Args:
        sentences: every tenth is held out, the others are counted.
        sizes: of the vocabularies of subwords.

    Returns:
        A pandas.DataFrame, a row for each kind of token: the best n, loss and perplexity per token, bits per character.
    """
    import pandas as pd

    unread = sentences[::HELD_OUT]
    read = [text for place, text in enumerate(sentences) if place % HELD_OUT]
    letters = sum(len(text) + 1 for text in unread)  # and the sentence's end
    rows = {}
    for size in (0, *sizes):
        name, encode, vocab_size = _tokens(read, size)
        streams = [[i for text in texts for i in [*encode(text), EOS]] for texts in (read, unread)]
        losses = ngram_losses(*streams, ORDER, vocab_size)
        best = min(losses)
        rows[name] = {
            "best n": losses.index(best) + 1,
            "loss per token": best,
            "perplexity": math.exp(best),
            "bits per character": best * len(streams[1]) / letters / math.log(2),
        }
    return pd.DataFrame(rows).T.astype({"best n": int})


def _tokens(read: Sequence[str], size: int) -> tuple[str, Any, int]:
    """The name of a kind of token, how a text is encoded, and how many tokens there are; 0 stands for characters."""
    if size:
        subwords = Subwords(read, size=size)
        return f"{size} subwords", subwords.encode, len(subwords)
    alphabet = {letter: 5 + index for index, letter in enumerate(sorted(set("".join(read))))}
    return "characters", lambda text: [alphabet.get(c, 1) for c in text], 5 + len(alphabet)
