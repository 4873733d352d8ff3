"""The translator as a widget: any English sentence, its French translation, where it looks, and looks taken away."""

from course_utils.kit.live.bundles import refuse_unknown
from course_utils.kit.live.widget import Live


class Translator(Live):
    """A live translator, shown as the last line of a cell."""

    kind = "translator"
    label = "Live translator"
    models = ("translator_fr",)


def translator(
    sentence: str = "she has a red car .",
    checkpoints: bool = False,
    compact: bool = False,
    everyday: bool = False,
) -> Translator:
    """The course's stored translator: write a sentence, see where each French word looks, and take looks away.

    Args:
        sentence: what is translated first.
        checkpoints: whether a slider goes back to earlier steps of its training.
        compact: without what is said around it, for a page that says it itself.
        everyday: whether a larger model, of any words, is loaded after this one has answered.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    refuse_unknown(sentence, "translator_fr")
    options = {
        "sentence": sentence,
        "checkpoints": checkpoints,
        "compact": compact,
        "everyday": everyday,
    }
    given = list(options.values())
    while given[-1] is False:
        given.pop()
    made = Translator(*given, **options)
    made.later = ("translator_fr_0", "translator_fr_100") * checkpoints + (
        "everyday_fr",
    ) * everyday
    return made
