"""Alignments as a widget: where two translators look for each French word, Bahdanau's and the Transformer.

Both read the same English, and each says its own French. For sentences that the course's corpus has, the gold links
are framed.
"""

from course_utils.kit.live.bundles import refuse_unknown
from course_utils.kit.live.widget import Live


class Alignment(Live):
    """Two live translators side by side, shown as the last line of a cell."""

    kind = "alignment"
    label = "Live alignments"
    models = ("bahdanau_fr", "translator_fr")
    later = ("bahdanau_fr_0", "bahdanau_fr_100")


def alignment(sentence: str = "please eat a pizza .") -> Alignment:
    """Two of the course's stored translators: write a sentence, and compare where they look.

    Args:
        sentence: what is translated first.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    refuse_unknown(sentence, "bahdanau_fr")
    return Alignment(sentence, sentence=sentence)
