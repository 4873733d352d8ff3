"""The stored runs of *Translating*: its Transformer and what it is compared with, and the translator of the book.

`real_sentences.py` and `everyday.py` have the runs on real sentences.
"""

import math
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from course_utils.data.translation import Pair, PairLoader, load_tatoeba
from course_utils.decoding import translate
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel, checkpoints_of
from course_utils.lessons.bahdanau_attention import live_translator
from course_utils.lessons.bahdanau_attention.alignment import diagonal
from course_utils.lessons.bahdanau_attention.runs import scores, scores_on_unread, train_recurrent
from course_utils.lessons.sequence_to_sequence.small_world import (
    FOUR,
    Vocabularies,
    larger_world,
    small_world,
    vocabularies_of,
)
from course_utils.lessons.sequence_to_sequence.translator_training import (
    curves_of,
    train_on_tatoeba,
)
from course_utils.lessons.translating.beams import (
    article_roads,
    attention_maps,
    error_rate,
    needs_maps,
    shares_of_each_word,
)
from course_utils.models.transformer import Transformer
from course_utils.runtime import seed_everything
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import inverse_sqrt
from course_utils.train.trainer import Trainer

PARTS = ["new_model", "train", "score", "world", "vocabularies"]
"""The names of the page that the runs need."""


@stored(rates=(0.0035, 0.007, 0.014), seeds=range(3), chapter=PARTS)
def transformer(chapter, *, rate: float, seed: int) -> dict:
    """Results of the chapter's Transformer: losses, scores, alignment error rates, and the gender of articles.

    "gender, <road>" are those of `article_roads`. "four" counts the sentences of `FOUR` that are right.
    """
    model = chapter.new_model(seed)
    rows = chapter.train(model, seed, lr=rate).rows
    test, words = chapter.world.test, chapter.vocabularies
    score, exact = chapter.score(model, test)
    long = [pair for pair in test if 8 <= len(pair.source) <= 10]
    translations = translate(model, FOUR, *words)
    result = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "train_loss": rows[-1]["train_loss"],
        "val_loss": rows[-1]["val_loss"],
        "bleu": score,
        "exact": exact,
        "exact_10": chapter.score(model, long)[1],
        "four": sum(
            a in chapter.world.references[line] for line, a in zip(FOUR, translations, strict=True)
        ),
    }
    result |= _alignments(model, chapter.world.val, test, words)
    for road, share in article_roads(model, test, words).items():
        result[f"gender, {road}"] = share
    return {"result": result, "curves": curves_of(rows, "val_loss")}


@stored(cases=[{"epochs": 18, "rate": 0.007}], seeds=range(3), chapter=PARTS)
def transformer_for_longer(chapter, *, epochs: int, rate: float, seed: int) -> dict:
    """Losses and shares of exact translations of the chapter's Transformer after more epochs."""
    model = chapter.new_model(seed)
    rows = chapter.train(model, seed, lr=rate, epochs=epochs).rows
    test = chapter.world.test
    long = [pair for pair in test if 8 <= len(pair.source) <= 10]
    result = {name: rows[-1][name] for name in ("train_loss", "val_loss")}
    result["exact"], result["exact_10"] = (chapter.score(model, pairs)[1] for pairs in (test, long))
    return {"result": result}


def _alignments(
    model: Transformer, val: Sequence[Pair], test: Sequence[Pair], words: Vocabularies
) -> dict[str, float]:
    """Alignment error rates ("aer, …") of several maps of the test pairs.

    "diagonal" is a guess that looks at no model, "head" the head that is best on the validation pairs, whose place is
    given, too; "mean" and "columns" read the mean of all heads by rows and by columns; "forbidding" is `needs_maps`.
    """
    on_val, on_test = (attention_maps(model, pairs, words) for pairs in (val, test))
    places = [(layer, head) for layer in range(2) for head in range(4)]
    best = min(places, key=lambda place: error_rate([maps[place] for maps in on_val], val))
    maps_of = {
        "diagonal": [diagonal(pair) for pair in test],
        "head": [maps[best] for maps in on_test],
        "mean": [maps.mean(dim=(0, 1)) for maps in on_test],
        "columns": shares_of_each_word(model, test, words),
        "forbidding": needs_maps(model, test, words),
    }
    result = dict(zip(("layer", "head"), best, strict=True))
    return result | {f"aer, {name}": error_rate(maps, test) for name, maps in maps_of.items()}


@stored(
    cases=[{"epochs": 20, "width": 512, "layers": 6, "pairs": 1_000_000, "seed": 0}],
    minutes=5,
    quick={"epochs": 1, "width": 16, "layers": 1, "pairs": 60},
)
def transformer_on_all_pairs(
    *, width: int, layers: int, checkpoint: Path | None = None, **options
) -> dict:
    """Results of a large Transformer on all English–French pairs of at most ten tokens.

    The norms stand after the sublayers, and warm-up and rate are those of Vaswani et al. (2017), section 5.3.
    """
    warmup = 4000
    sizes = {"embed_dim": width, "num_heads": 8, "ffn_dim": 4 * width, "num_layers": layers}
    return train_on_tatoeba(
        "fr",
        lambda *words: Transformer(*words, **sizes, dropout=0.1, norm_first=False),
        schedule=lambda steps: inverse_sqrt(warmup),
        lr=(width * warmup) ** -0.5,
        label_smoothing=0.1,
        graphs=True,
        checkpoint=checkpoint,
        **options,
    )


SCORES = ("parameters", "train_loss", "val_loss", "bleu", "exact", "exact_5", "exact_10")


@stored(cases=[{"epochs": 9}], rates=(0.0045, 0.009, 0.018), seeds=range(3))
def recurrent(*, epochs: int, rate: float, seed: int) -> dict:
    """Losses and test scores of the recurrent translator with attention, after as many epochs as the chapter's."""
    world = small_world("fr")
    model, rows = train_recurrent(world, "attention", epochs, rate, seed)
    every = scores(model, world, rows[-1])
    return {"result": {name: every[name] for name in SCORES}}


LECTURE = {"embed_dim": 256, "num_heads": 4, "ffn_dim": 64, "num_layers": 2, "dropout": 0.2}
READ, BATCH, PASSES = 512, 128, 30


@stored(seeds=range(3))
def lecture(*, seed: int) -> dict:
    """Translations of `FOUR` by a lecture's Transformer, and its score on sentences outside its training set.

    Zhang et al. (2023), "Dive into deep learning", section 11.7, whose formula of BLEU scores each of the four.
    """
    corpus = load_tatoeba("fr")
    read = corpus[:READ]
    words = vocabularies_of(read)
    seed_everything(seed)
    model = Transformer(*map(len, words), norm_first=False, **LECTURE)
    trainer = Trainer(translation_loss(), epochs=PASSES, seed=seed, quiet=True)
    rows = trainer.fit(model, PairLoader(read, *words, batch_size=BATCH, seed=seed)).rows
    lines = {" ".join(pair.source): place for place, pair in reversed(list(enumerate(read, 1)))}
    examples = [
        {"English": line, "said": french, "line": lines.get(line, 0),
         "bleu": round(lecture_bleu(french, right), 3)}
        for line, french, right in zip(FOUR, translate(model, FOUR, *words), WANTED, strict=True)
    ]  # fmt: skip
    result = {"loss": rows[-1]["train_loss"]} | scores_on_unread(model, corpus, words)
    return {"result": result, "examples": examples, "curves": curves_of(rows, "train_loss")}


WANTED = "va !", "j'ai perdu .", "il est calme .", "je suis chez moi ."


def lecture_bleu(translation: str, reference: str, most: int = 2) -> float:
    """The lecture's BLEU of one sentence: a brevity penalty, times the precision of n-grams to the power of 1/2ⁿ.

    Args:
        translation: tokens separated by spaces.
        reference: the right translation, in the same way.
        most: the largest n.
    """
    said, wanted = translation.split(), reference.split()
    score = math.exp(min(0, 1 - len(wanted) / max(len(said), 1)))
    for n in range(1, min(most, len(said)) + 1):
        grams = _ngrams(said, n)
        matches = grams & _ngrams(wanted, n)
        score *= (matches.total() / grams.total()) ** 0.5**n
    return score


def _ngrams(words: Sequence[str], n: int) -> Counter[tuple[str, ...]]:
    """Numbers of all n-grams of some words."""
    return Counter(tuple(words[i : i + n]) for i in range(len(words) - n + 1))


# The stored translator ----------------------------------------------------------------------------

STORED = "translator_fr"
STORED_SHAPE = {"embed_dim": 64, "num_heads": 4, "ffn_dim": 64, "num_layers": 2, "norm_first": True}


@stored(cases=[{"seed": 0}], saves={STORED: {}, f"{STORED}_0": {}, f"{STORED}_100": {}})
def translator_checkpoints(*, seed: int) -> dict:
    """Held-out losses of the stored translator in training; the model, its card, and what it was early.

    On an AMD EPYC with AVX-512 the training gives the stored `translator_fr`, bit for bit. The stored numbers, and
    the model after 100 steps, are those of a repetition on another processor: it ended at 0.1951, instead of 0.1894.
    """
    world = larger_world()
    vocabularies = {"source": world.source_vocab.tokens, "target": world.target_vocab.tokens}
    config = {f"{side}_size": len(tokens) for side, tokens in vocabularies.items()} | STORED_SHAPE
    seed_everything(seed)
    model = Transformer(**config, dropout=0.0)
    result, earlier = live_translator.train_with_checkpoints(
        model, STORED, config, rate=0.007, warmup=60, passes=2, seed=seed
    )
    trained = StoredModel.of(model, config, vocabularies)
    card = live_translator.model_card(trained.for_page().network(Transformer))
    card["checkpoints"] = checkpoints_of(STORED, live_translator.EARLIER, result)
    cards = live_translator.cards_of_checkpoints(Transformer, earlier, card["examples"])
    return {
        "result": result,
        "models": {STORED: trained} | earlier,
        "cards": {STORED: card} | cards,
    }
