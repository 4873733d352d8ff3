"""A GPT as a widget: it goes on with a reader's sentence, token by token, and shows what it draws from and looks at."""

from course_utils.data.prose import Subwords
from course_utils.kit.live.bundles import bundle
from course_utils.kit.live.widget import Live


class Writer(Live):
    """A live GPT, shown as the last line of a cell."""

    kind = "gpt"
    label = "Live GPT"
    models = ("gpt",)
    later = ("gpt_0", "gpt_100")


def gpt(prompt: str = "she wants to", temperature: float = 0.7, seed: int = 0) -> Writer:
    """The course's stored GPT: write a beginning, and it goes on, token by token.

    Args:
        prompt: the beginning that stands there first.
        temperature: from 0 to 2, in tenths.
        seed: of the draws; the same seed draws the same text.

    Raises:
        ValueError: `temperature` is out of range, or `prompt` has no place in the window of the model.
    """
    if not 0 <= temperature <= 2:
        raise ValueError(f"temperature={temperature!r}; 0 to 2 is needed")
    model = bundle("gpt")
    words, most = model["vocabularies"], model["config"]["max_len"]
    subwords = Subwords.of(words["tokens"], [tuple(merge.split()) for merge in words["merges"]])
    if (count := 1 + len(subwords.encode(prompt))) > most:
        raise ValueError(
            f"prompt={prompt!r} has {count} tokens with the <eos> before it; the model reads at most {most}, "
            "so write a shorter one"
        )
    options = {"prompt": prompt, "temperature": temperature, "seed": seed}
    return Writer(*options.values(), **options)
