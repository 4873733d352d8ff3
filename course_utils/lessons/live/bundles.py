"""The bundles of the stored models, each with examples: two that it gets right and one that it gets wrong."""

from functools import cache

import torch
from torch import nn

from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.decoding import greedy, translate
from course_utils.lessons.live.packing import pack, restored
from course_utils.lessons.live.stored import load_model
from course_utils.models.transformer import Transformer

LONG = 5
"""An example has so many tokens at least."""


@cache
def bundle(name: str) -> dict:
    """A stored model, packed, and what it says to its examples with the weights as they are packed.

    Raises:
        ValueError: there is no model of this name, or none of its kind answers in a page yet.
    """
    kept = load_model(name)
    if name not in ABOUT:
        known = ", ".join(sorted(ABOUT))
        raise ValueError(f"name={name!r} answers in no page yet; those that do: {known}")
    packed = pack(kept.config, kept.state, kept.vocabularies)
    return packed | ABOUT[name](packed)


@cache
def translator_of(name: str) -> tuple[Transformer, Vocabulary, Vocabulary]:
    """The translator that a page sees, as PyTorch's, and its vocabularies."""
    kept = load_model(name)
    packed = pack(kept.config, kept.state, kept.vocabularies)
    return _translator(packed)


def _translator(packed: dict) -> tuple[Transformer, Vocabulary, Vocabulary]:
    model: nn.Module = Transformer(**packed["config"])
    model.load_state_dict(restored(packed))
    words = packed["vocabularies"]
    source, target = (Vocabulary.of_tokens(words[side]) for side in ("source", "target"))
    return model.eval().requires_grad_(False), source, target


def _about_translator(packed: dict) -> dict:
    """`examples`: sentence, what is said, what is right. `score`: how many of how many are right. `answers`."""
    # Only here: a bundle of another model needs no sentences.
    from course_utils.lessons.translating.larger_world import larger_world

    model, source, target = _translator(packed)
    pairs = larger_world().test
    lines = [" ".join(pair.source) for pair in pairs]
    right = [" ".join(pair.target) for pair in pairs]
    said = translate(model, lines, source, target)
    every = [
        {"sentence": line, "said": mine, "right": theirs}
        for line, mine, theirs in zip(lines, said, right, strict=True)
        if len(line.split()) >= LONG
    ]
    good = [each for each in every if each["said"] == each["right"]]
    bad = [each for each in every if each["said"] != each["right"]]
    examples = [*good[:2], *bad[:1]]
    score = [sum(a == b for a, b in zip(said, right, strict=True)), len(said)]
    answers = [_answer(model, source, each["sentence"]) for each in examples]
    return {"examples": examples, "score": score, "answers": answers}


@torch.no_grad()
def _answer(model: Transformer, vocabulary: Vocabulary, sentence: str) -> dict:
    """Ids of a sentence and of its translation, and the ten largest logits after it, for a page to compare with."""
    ids = torch.tensor([[*vocabulary.encode(tokenize(sentence)), EOS]])
    lens = torch.tensor([ids.shape[1]])
    said = greedy(model, ids, lens)[0]
    logits = model(ids, lens, torch.tensor([[BOS, *said]]))[0, -1]
    best = logits.topk(10)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    return {
        "source": ids[0].tolist(),
        "said": said,
        "logits": [[token, round(value, 6)] for token, value in pairs],
    }


ABOUT = {"translator_fr": _about_translator}
"""What a bundle holds beside the weights, by its model's name."""
