"""The live widgets: a function for each kind, which checks its arguments. The script of its name shows the widget.

To add a kind, write the function here below `@kind(label)`, and `<name>.js` beside this file.
"""

from collections.abc import Mapping, Sequence

import torch

from course_utils.data.images import load_fashion_mnist
from course_utils.data.prose import Subwords, story_text
from course_utils.data.regression import noisy_sine
from course_utils.data.text import tokenize
from course_utils.kit.live.bitmaps import bitmap
from course_utils.kit.live.bundles import bundle
from course_utils.kit.live.widget import KINDS, Live, kind
from course_utils.kit.runs import stored_runs

DRAWERS = "ABCDEFGH"
MAX_HEADS = 4
"""The largest number of heads, and of letters in a request, of `heads`."""

PARTS = (
    "source_embedding.positions",
    *(f"encoder.{layer}.{part}" for layer in (0, 1) for part in ("attention", "feed_forward")),
    "target_embedding.positions",
    *(
        f"decoder.{layer}.{part}"
        for layer in (0, 1)
        for part in ("self_attention", "cross_attention", "feed_forward")
    ),
    "norms",
    "residuals",
)
"""The parts of the translator that `machine` can ablate."""

GARMENTS = {"boot": (182, "Sandal"), "coat": (339, "Pullover"), "trousers": (5, "Dress")}
"""The pictures of `patches`: name → row in Fashion-MNIST's test set, and the class that it is to become."""

HEAD_RATES = (0.3, 1, 3)
GPT_RATES = (0.001, 0.003, 0.01)

ANIMALS = {
    "mouse": (0.1, 0.1, 2.0),
    "cat": (0.3, 0.8, 15.0),
    "dog": (0.4, 1.0, 12.0),
    "horse": (0.8, 0.4, 28.0),
    "elephant": (1.0, 0.0, 65.0),
}
FEATURES = ("size", "home", "years")
QUERIES = {"kitten": (0.2, 0.9), "bird": (0.2, 0.2), "farmer": (0.6, 0.8), "house": (1.0, 1.0)}

Rows = Mapping[str, Sequence[float]] | Sequence[tuple[str, Sequence[float]]]
"""Numbers by name, as a dictionary or as pairs."""


# Computed from what a reader gives ------------------------------------------------------------------------------------


@kind("Live look-up")
def look_up(
    animals: Rows | None = None,
    queries: Rows | None = None,
    features: tuple[str, str, str] = FEATURES,
) -> Live:
    """A query to drag over the keys, with its scores, its weights, and the weighted average of the values.

    Args:
        animals: name → (size, home, years), or such pairs; by default the five of *Queries, keys and values*.
        queries: name → (size, home), or such pairs: places to begin from; the first is shown.
        features: what the three numbers of a row are called.

    Raises:
        ValueError: there is no animal, or no query.
    """
    tables: dict[str, dict] = {}
    for name, given, usual in (("animals", animals, ANIMALS), ("queries", queries, QUERIES)):
        rows = usual if given is None else dict(given)
        if not rows:
            raise ValueError(f"{name}={given!r} is empty; one entry is needed")
        tables[name] = {key: tuple(map(float, row)) for key, row in rows.items()}
    # JSON in a notebook is sorted by its keys, so the rows are kept as pairs.
    arguments = {name: list(rows.items()) for name, rows in tables.items()}
    return Live("look_up", arguments | {"features": tuple(features)}, options=tables)


@kind("Live heads")
def heads(request: str = "CF", num_heads: int = 2) -> Live:
    """One attention by hand: a request for one to four drawers, with one to four heads.

    Args:
        request: one to four different letters from A to H.
        num_heads: from 1 to 4.

    Raises:
        ValueError: the request or the number of heads is another.
    """
    letters = set(request)
    if not 1 <= len(letters) == len(request) <= MAX_HEADS or letters - {*DRAWERS}:
        raise ValueError(
            f"request={request!r}; one to four different letters from A to H are needed"
        )
    if num_heads not in range(1, MAX_HEADS + 1):
        raise ValueError(f"num_heads={num_heads!r}; 1 to 4 are needed")
    return Live("heads", {"request": request, "num_heads": num_heads})


@kind("Live coloring of symbols")
def colors(symbols: int = 4, sees: str = "whole") -> Live:
    """A picture whose empty symbols a reader colors like their filled partners, with the accuracy beside the best one.

    Args:
        symbols: 2, 4 or 8.
        sees: "whole" picture, the "counts" of the colors, or what is "near" an empty symbol.

    Raises:
        ValueError: `symbols` or `sees` is another.
    """
    if symbols not in (2, 4, 8):
        raise ValueError(f"symbols={symbols!r}; 2, 4 or 8 are needed")
    if sees not in ("whole", "counts", "near"):
        raise ValueError(f"sees={sees!r}; 'whole', 'counts' or 'near' is needed")
    return Live("colors", {"symbols": symbols, "sees": sees})


@kind("Live kernel regression")
def kernel_regression(noise: float = 1.0) -> Live:
    """A kernel regression whose points can be dragged, with one query, its window, its weights, and a width to learn.

    Args:
        noise: standard deviation of the noise on the forty points that are shown first; finite, not negative.

    Raises:
        ValueError: what `noisy_sine` says about `noise`.
    """
    data = noisy_sine(40, noise=noise)
    pairs = zip(data.x.tolist(), data.y.tolist(), strict=True)
    points = [[round(x, 3), round(y, 3)] for x, y in pairs]
    truth = data.truth(torch.linspace(0, 5, 101, dtype=torch.float64)).tolist()
    options = {"points": points, "truth": truth}
    return Live("kernel_regression", {"noise": float(noise)}, options=options)


# Trained in the page --------------------------------------------------------------------------------------------------


def _check_training(rate: float, rates: tuple[float, ...], seed: int) -> None:
    if rate not in rates:
        raise ValueError(f"rate={rate!r}; one of {', '.join(map(str, rates))} is needed")
    if seed not in range(100):
        raise ValueError(f"seed={seed!r}; 0 to 99 are needed")


@kind("Live training of a head")
def learned_head(rate: float = 1, seed: int = 0) -> Live:
    """A head with random matrices that learns, step by step, at which noun an adjective has to look.

    Args:
        rate: of gradient descent; 0.3, 1 or 3.
        seed: of the matrices, from 0 to 99.

    Raises:
        ValueError: `rate` or `seed` is another.
    """
    _check_training(rate, HEAD_RATES, seed)
    return Live("learned_head", {"rate": rate, "seed": seed})


@kind("Live training of a GPT")
def character_gpt(rate: float = 0.003, seed: int = 0) -> Live:
    """A small GPT with random weights that learns the reader's text, letter by letter, in the browser.

    The course's short story stands there first.

    Args:
        rate: of AdamW; 0.001, 0.003 or 0.01.
        seed: of the weights and of the draws, from 0 to 99.

    Raises:
        ValueError: `rate` or `seed` is another.
    """
    _check_training(rate, GPT_RATES, seed)
    return Live("character_gpt", {"rate": rate, "seed": seed}, options={"text": story_text()})


# Stored models --------------------------------------------------------------------------------------------------------


def _refuse_unknown(model: str, vocabulary: str = "source", **text: str) -> None:
    """Refuse a first text, by its parameter, without a word or with one that a stored model does not know."""
    known = {word.lower() for word in bundle(model)["vocabularies"][vocabulary]}
    ((name, said),) = text.items()
    words = tokenize(said)
    if not words:
        raise ValueError(f"{name}={said!r} is empty; write at least one word")
    if unknown := [word for word in words if word not in known]:
        raise ValueError(
            f"{name}={said!r} has words that the model does not know: {', '.join(unknown)}; "
            "write others in their place"
        )


@kind("Live translator", models=("translator_fr",))
def translator(
    sentence: str = "she has a red car .",
    checkpoints: bool = False,
    compact: bool = False,
    everyday: bool = False,
) -> Live:
    """The stored translator: a reader writes a sentence, sees where each French word looks, and forbids looks.

    Args:
        sentence: what is translated first.
        checkpoints: whether a slider goes back to earlier steps of its training.
        compact: without what is said around it, for a page that says it itself.
        everyday: whether a larger model, of any words, is loaded after this one has answered.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    _refuse_unknown("translator_fr", sentence=sentence)
    arguments = {"sentence": sentence, "checkpoints": checkpoints}
    arguments |= {"compact": compact, "everyday": everyday}
    later = ("translator_fr_0", "translator_fr_100") * checkpoints + ("everyday_fr",) * everyday
    return Live("translator", arguments, later=later)


@kind("Live Transformer", models=("translator_fr",))
def machine(sentence: str = "Tom doesn't know Anna.", off: Sequence[str] = ()) -> Live:
    """The stored translator as a drawing whose parts can be ablated, and what it says then.

    Args:
        sentence: what is translated first.
        off: parts that are ablated at first: sublayers, such as "decoder.0.cross_attention", "norms", "residuals", and
            positions, "source_embedding.positions" or "target_embedding.positions".

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none; or a part is unknown.
    """
    _refuse_unknown("translator_fr", sentence=sentence)
    if unknown := [part for part in off if part not in PARTS]:
        raise ValueError(f"off={unknown!r} are no parts; there are {', '.join(PARTS)}")
    return Live("machine", {"sentence": sentence, "off": list(off)})


@kind(
    "Live alignments",
    models=("bahdanau_fr", "translator_fr"),
    later=("bahdanau_fr_0", "bahdanau_fr_100"),
)
def alignment(sentence: str = "please eat a pizza .") -> Live:
    """Two stored translators, recurrent and Transformer, side by side: where each of them looks for a sentence.

    Args:
        sentence: what is translated first.

    Raises:
        ValueError: a word of `sentence` is not in the vocabulary, or there is none.
    """
    _refuse_unknown("bahdanau_fr", sentence=sentence)
    return Live("alignment", {"sentence": sentence})


@kind("Live BERT and GPT", models=("bert", "gpt_left"))
def bert(sentence: str = "she wants to ___ a novel .") -> Live:
    """A gap in a sentence, for two stored models of one size: BERT reads both sides of it, a GPT only the left.

    Args:
        sentence: what is read first; ___ is a gap.

    Raises:
        ValueError: `sentence` has no gap.
    """
    if "_" not in sentence:
        raise ValueError(f"sentence={sentence!r} has no gap; write ___ where a word is missing")
    return Live("bert", {"sentence": sentence})


@kind("Live GPT", models=("gpt",), later=("gpt_0", "gpt_100"))
def gpt(prompt: str = "she wants to", temperature: float = 0.7, seed: int = 0) -> Live:
    """The stored GPT: a reader writes a beginning, and it goes on, token by token.

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
    subwords = Subwords.from_merges(
        words["tokens"], [tuple(merge.split()) for merge in words["merges"]]
    )
    if (count := 1 + len(subwords.encode(prompt))) > most:
        raise ValueError(
            f"prompt={prompt!r} has {count} tokens with the <eos> before it; the model reads at most {most}, "
            "so write a shorter one"
        )
    return Live("gpt", {"prompt": prompt, "temperature": temperature, "seed": seed})


ASSISTANTS = ("assistant_read", "assistant_asked", "assistant_prefers", "assistant_overdone")
"""The four stages of `assistant`, from a pretrained model on."""


@kind("Live assistant", models=ASSISTANTS, style="assistant")
def assistant(question: str = "Where does Yara Penn live ?") -> Live:
    """One question for four stages of a small GPT: pretrained, fine-tuned on answers, and twice trained on preferences.

    Args:
        question: what is asked first, in words of its world.

    Raises:
        ValueError: a word of `question` is not in the vocabulary, or there is none.
    """
    _refuse_unknown(ASSISTANTS[0], "words", question=question)
    return Live("assistant", {"question": question})


@kind("Live patches", models=("vit",), style="patches")
def patches(garment: str = "boot") -> Live:
    """A garment in sixteen patches, which a reader forbids until a stored vision transformer calls it another one.

    Args:
        garment: what is shown first, "boot", "coat" or "trousers".

    Raises:
        ValueError: there is no such garment.
    """
    if garment not in GARMENTS:
        raise ValueError(f"garment={garment!r}; there are: {', '.join(GARMENTS)}")
    test = load_fashion_mnist("test")
    garments = []
    for name, (row, target) in GARMENTS.items():
        (run,) = stored_runs("vision_transformers", "fewest", row=row)
        counts = {key: int(value) for key, value in run.result.items()}
        shown = {
            "name": name,
            "target": test.classes.index(target),
            "picture": bitmap(test.images[row, 0]),
        }
        garments.append(shown | run.examples[0] | counts)
    return Live("patches", {"garment": garment}, options={"garments": garments})


@kind("Live Memory", models=("memory",), style="patches")
def memory() -> Live:
    """Sixteen cards in pairs, and for each card the place where a stored model says that its twin lies."""
    return Live("memory")


@kind("Live vision transformer", models=("vit", "vit_patch14", "vit_patch4"))
def vit() -> Live:
    """Three stored vision transformers for a picture of 28 × 28 pixels that a reader draws, uploads or chooses."""
    return Live("vit")


@kind("Live captions", models=("words",), style="words")
def words(caption: str = "trousers | ankle boot") -> Live:
    """Two garments that a network drew for two words: the word that each pixel attends to, and the end without one.

    Args:
        caption: what is shown first, a left word and a right one.

    Raises:
        ValueError: no run is stored for this caption; the message lists those that are.
    """
    drawn = [" | ".join(each["words"]) for each in bundle("words")["captions"]]
    if caption not in drawn:
        raise ValueError(f"caption={caption!r} was not drawn; there are {', '.join(drawn)}")
    return Live("words", {"caption": caption})


# Recorded answers of a model that somebody else has trained ----------------------------------------------------------


@kind("Live question to a language model", style="question")
def question(question: str = "What is the capital of Japan?") -> Live:
    """A question as SmolLM2 reads it, and what it answers when it may not look at one of the tokens.

    Args:
        question: what is shown first, one of the five whose answers are stored.

    Raises:
        ValueError: there are no stored answers for this question.
    """
    runs = stored_runs("real_weights", "questions")
    questions = [run.config | run.examples[0] for run in runs]
    _refuse_other("question", question, [each["question"] for each in questions])
    return Live("question", {"question": question}, options={"questions": questions})


@kind("Live layers of a language model", style="layers")
def layers(country: str = "Japan") -> Live:
    """The thirty layers of SmolLM2, and in which of them the last word must look at a country to know its capital.

    Args:
        country: what is shown first, one of those that are stored.

    Raises:
        ValueError: no run is stored for this country.
    """
    runs = stored_runs("real_weights", "countries")
    countries = [run.config | run.examples[0] for run in runs]
    _refuse_other("country", country, [each["country"] for each in countries])
    return Live("layers", {"country": country}, options={"countries": countries})


def _refuse_other(name: str, value: str, stored: Sequence[str]) -> None:
    if value not in stored:
        raise ValueError(f"{name}={value!r} is not stored; there are {', '.join(stored)}")


__all__ = list(KINDS)
