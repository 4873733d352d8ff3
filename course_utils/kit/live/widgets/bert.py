"""A BERT as a widget: it fills the gaps of a reader's sentence, and shows what each gap looks at."""

import re

from course_utils.kit.live.widget import Live


class Filler(Live):
    """A live BERT, shown as the last line of a cell."""

    kind = "bert"
    label = "Live BERT"
    models = ("bert",)


def bert(sentence: str = "she wants to ___ a novel .") -> Filler:
    """The course's stored BERT: write a sentence with gaps, and it says what may stand in them.

    Args:
        sentence: what is read first; ___ is a gap.

    Raises:
        ValueError: `sentence` has no gap.
    """
    if not re.search("_|<mask>", sentence):
        raise ValueError(f"sentence={sentence!r} has no gap; write ___ where a word is missing")
    return Filler(sentence, sentence=sentence)
