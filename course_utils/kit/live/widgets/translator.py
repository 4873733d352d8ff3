"""The translator as a widget: any English sentence, its French translation, where it looks, and looks taken away."""

from course_utils.kit.live.widget import Live


class Translator(Live):
    """A live translator, shown as the last line of a cell."""

    kind = "translator"
    label = "Live translator"
    scripts = (
        *("unpack.js", "engine.js", "interventions.js", "reading.js", "lines.js"),
        *("explain.js", "tree.js", "tour.js", "checkpoints.js"),
    )
    models = ("translator_fr",)


def translator(
    sentence: str = "she has a red car .", checkpoints: bool = False, compact: bool = False
) -> Translator:
    """The course's stored translator: write a sentence, see where each French word looks, and take looks away.

    Args:
        sentence: what is translated first.
        checkpoints: whether a slider goes back to earlier steps of its training.
        compact: without a word around it: for a page that says them itself.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    options = {"sentence": sentence, "checkpoints": checkpoints, "compact": compact}
    given = [sentence, *[checkpoints, compact][: 2 * compact or int(checkpoints)]]
    made = Translator(*given, **options)
    if checkpoints:
        made.later = ("translator_fr_0", "translator_fr_100")
    return made
