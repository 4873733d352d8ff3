"""The translator as a widget: any English sentence, its French translation, and all maps of all heads."""

from course_utils.kit.live.widget import Live


class Translator(Live):
    """A live translator, shown as the last line of a cell."""

    kind = "translator"
    label = "Live translator"
    scripts = (
        *("unpack.js", "engine.js", "reading.js", "explain.js"),
        *("tree.js", "tour.js", "checkpoints.js"),
    )
    models = ("translator_fr",)


def translator(sentence: str = "i'm home .", checkpoints: bool = False) -> Translator:
    """The course's stored translator: write a sentence, and read the translation and every map.

    Args:
        sentence: what is translated first.
        checkpoints: whether a slider goes back to earlier steps of its training.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    made = Translator(sentence, *[True] * checkpoints, sentence=sentence, checkpoints=checkpoints)
    if checkpoints:
        made.later = ("translator_fr_0", "translator_fr_100")
    return made
