"""What a page tells of a translator: examples, how many sentences it gets right, and answers to compare with."""

from collections.abc import Iterable, Mapping

import torch
from torch import nn

from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.decoding import greedy, translate
from course_utils.kit.live import network_of, packed, tell, told, trained
from course_utils.lessons.sequence_to_sequence.larger_world import larger_world

LONG = 5
"""An example has so many tokens at least."""


def examples_of(kind: type[nn.Module], name: str) -> dict:
    """`examples`: sentence, what is said, what is right. `score`: how many of how many are right. `answers`."""
    world, model = larger_world(), network_of(kind, packed(name))
    lines = [" ".join(pair.source) for pair in world.test]
    right = [" ".join(pair.target) for pair in world.test]
    said = translate(model, lines, world.source_vocab, world.target_vocab)
    every = [
        {"sentence": line, "said": mine, "right": theirs}
        for line, mine, theirs in zip(lines, said, right, strict=True)
        if len(line.split()) >= LONG
    ]
    good = [each for each in every if each["said"] == each["right"]]
    bad = [each for each in every if each["said"] != each["right"]]
    examples = [*good[:2], *bad[:1]]
    score = [sum(a == b for a, b in zip(said, right, strict=True)), len(said)]
    answers = answers_of(kind, name, [each["sentence"] for each in examples])
    return {"examples": examples, "score": score, "answers": answers}


@torch.no_grad()
def answers_of(
    kind: type[nn.Module], name: str, lines: Iterable[str], words: Vocabulary | None = None
) -> list[dict]:
    """Ids of each sentence and of its translation, and the ten largest logits after it.

    `words`: those that it reads; of `larger_world`, unless others are given.
    """
    model, answers = network_of(kind, packed(name)), []
    for line in lines:
        read = words or larger_world().source_vocab
        ids = torch.tensor([[*read.encode(tokenize(line)), EOS]])
        lens = torch.tensor([ids.shape[1]])
        said = greedy(model, ids, lens)[0]
        best = model(ids, lens, torch.tensor([[BOS, *said]]))[0, -1].topk(10)
        pairs = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        logits = [[token, round(value, 6)] for token, value in pairs]
        answers.append({"source": ids[0].tolist(), "said": said, "logits": logits})
    return answers


def tell_earlier(
    kind: type[nn.Module], name: str, earlier: Iterable[int], result: Mapping[str, float]
) -> None:
    """What the model said to its examples after earlier steps of its training, and the losses there."""
    lines = [each["sentence"] for each in told(name)["examples"]]
    steps = list(earlier)
    for step in steps:
        tell(f"{name}_{step}", answers=answers_of(kind, f"{name}_{step}", lines))
    tell(name, checkpoints=trained(name, steps, result))
