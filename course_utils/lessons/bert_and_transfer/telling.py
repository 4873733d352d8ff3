"""What a page tells of the stored BERT: its words, examples, how often it is right, and answers to compare with."""

import torch
from torch import nn

from course_utils.data.prose import Subwords
from course_utils.data.text import BOS, EOS, MASK
from course_utils.kit.live import network_of, packed
from course_utils.lessons.bert_and_transfer.counting import hidden
from course_utils.lessons.bert_and_transfer.tasks import texts
from course_utils.models.language import BERT

LONG = 5
"""An example has so many words at least."""


@torch.no_grad()
def examples_of(name: str) -> dict:
    """`examples`: sentence, first guess, what was hidden. `score`: how many of how many are right. `answers`."""
    subwords, weights = texts().subwords, packed(name)
    config = weights["config"] | {"rotary": True}  # the chapter's class has no other positions
    model = network_of(BERT, weights | {"config": config})
    vocabularies = {
        "tokens": list(subwords.tokens),
        "merges": [" ".join(merge) for merge in subwords.merges],
        "words": sorted(set(" ".join(texts().read).split())),
    }
    data, places = hidden()
    rows = torch.arange(len(places))
    tokens = data.ids.clone()
    tokens[rows, places] = MASK
    guesses = model(tokens, data.lengths)[rows, places].argmax(dim=-1)
    right = data.ids[rows, places]
    found = zip(data.ids.tolist(), places.tolist(), guesses.tolist(), right.tolist(), strict=True)
    every = [
        {"sentence": line, "said": subwords.tokens[guess], "right": subwords.tokens[token]}
        for row, place, guess, token in found
        if (line := _with_gap(subwords, row, place)) and len(line.split()) >= LONG
    ]
    good = [each for each in every if each["said"] == each["right"]]
    bad = [each for each in every if each["said"] != each["right"]]
    examples = [*good[:2], *bad[:1]]
    return {
        "config": config,
        "vocabularies": vocabularies,
        "examples": examples,
        "score": [int((guesses == right).sum()), len(right)],
        "answers": [_answer(model, subwords, each["sentence"]) for each in examples],
    }


def _with_gap(subwords: Subwords, row: list[int], place: int) -> str:
    """A sentence with a gap for one of its words; none if the place holds a part of a word."""
    before, piece = (subwords.tokens[i] for i in row[place - 1 : place + 1])
    word = piece.removesuffix("␣")
    if not word.isalpha() or word == piece or not before.endswith(("␣", ">")):
        return ""
    return f"{subwords.decode(row[:place])} ___ {subwords.decode(row[place + 1 :])}".strip()


def _answer(model: nn.Module, subwords: Subwords, sentence: str) -> dict:
    """Ids of a sentence with a gap, the gap's place, and its ten largest logits."""
    left, right = sentence.split("___")
    ids = [BOS, *subwords.encode(left), MASK, *subwords.encode(right), EOS]
    best = model(torch.tensor([ids]))[0, ids.index(MASK)].topk(10)
    pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
    logits = [[token, round(value, 6)] for token, value in pairs]
    return {"ids": ids, "place": ids.index(MASK), "logits": logits}
