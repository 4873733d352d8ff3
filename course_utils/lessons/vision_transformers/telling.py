"""What a page tells of a stored vision transformer: pictures, how many it names right, and answers to compare with."""

import base64

import torch

from course_utils.data.images import FASHION, load_fashion_mnist, scaled
from course_utils.kit.live import network_of, packed
from course_utils.models.vision import ViT

RIGHT, WRONG = ("Ankle boot", "Trouser"), "Shirt"
"""Kinds of the examples."""


@torch.no_grad()
def examples_of(name: str) -> dict:
    """`examples`: pixels, what they show, what the model says. `score`: how many of how many are right. `answers`."""
    model, test = network_of(ViT, packed(name)), load_fashion_mnist("test")
    logits = torch.cat([model(scaled(part)) for part in test.images.split(500)])
    said = logits.argmax(dim=1)
    good = said == test.labels
    kinds = [(test.labels == FASHION.index(kind)) & good for kind in RIGHT]
    kinds.append((test.labels == FASHION.index(WRONG)) & ~good)
    rows = [int(kind.nonzero()[0]) for kind in kinds]
    examples = [
        {
            "pixels": base64.b64encode(test.images[row].numpy().tobytes()).decode("ascii"),
            "right": FASHION[test.labels[row]],
            "said": FASHION[said[row]],
        }
        for row in rows
    ]
    answers = [[round(logit, 6) for logit in logits[row].tolist()] for row in rows]
    score = [int(good.sum()), len(good)]
    return {"kinds": list(FASHION), "examples": examples, "score": score, "answers": answers}
