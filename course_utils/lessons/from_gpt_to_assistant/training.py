"""The models of *From GPT to an assistant*, and how each is trained from the one before it."""

from copy import deepcopy

import torch

from course_utils.data.text import EOS
from course_utils.kit.stored_model import StoredModel, largest_logits, load_model
from course_utils.lessons.from_gpt_to_assistant import world as w
from course_utils.lessons.gpt.training import train
from course_utils.models.language import GPT

SIZES = {
    "vocab_size": len(w.VOCABULARY),
    "embed_dim": 64,
    "num_heads": 4,
    "num_layers": 2,
    "max_len": w.LENGTH,
}
PRETRAINING = {"steps": 2000, "warmup": 50}
RATE = 0.005
"""The rate of pretraining."""
FINE_TUNING = {"steps": 500, "warmup": 20, "lr": 1e-3}
MANNERS = {"long": 0.7, "polite": 0.3}
"""Manner → its share of the answers that people wrote for fine-tuning."""


def pretrained(
    world: w.World, told: str = "many", *, rate: float = RATE, seed: int = 0, watch=None, steps=None
) -> GPT:
    """A model that has read biographies and unanswered questions.

    Args:
        world: whose people they are about.
        told: how the biographies tell the facts, a name in `world.TOLD`.
        rate: the largest learning rate.
        seed: of the weights and of the batches.
        watch: as in `train`.
        steps: how many, if not those of `PRETRAINING`.
    """
    torch.manual_seed(seed)
    model = GPT(**SIZES, dropout=0.0)
    settings = PRETRAINING | ({"steps": steps} if steps else {})
    train(model, w.pretraining(world, told), lr=rate, seed=seed, watch=watch, **settings)
    return model


def fine_tuned(model: GPT, batch: w.Batch, *, seed: int = 0, **settings) -> GPT:
    """A copy of a model that was trained on batches of `world.fine_tuning`.

    Args:
        model: the model, which stays as it is.
        batch: draws the questions and answers.
        seed: of the batches.
        settings: arguments of `train` in place of those in `FINE_TUNING`.
    """
    tuned = deepcopy(model).requires_grad_(True)
    train(tuned, batch, seed=seed, **(FINE_TUNING | settings))
    return tuned.eval()


def kept(model: GPT) -> StoredModel:
    """A model as it is stored."""
    return StoredModel.of(model, SIZES, {"words": list(w.VOCABULARY.tokens)})


def card_of(model: GPT) -> dict[str, list]:
    """What a page compares with: ids of some questions, and the ten largest logits of what follows."""
    answers = []
    for person in w.make_world().unknown[:3]:
        ids = [EOS, *w.encode(w.question(person, "town"))]
        with torch.no_grad():
            logits = model(torch.tensor([ids]))[0, -1]
        answers.append({"ids": ids, "logits": largest_logits(logits)})
    return {"answers": answers}


def stored_reader(seed: int = 0) -> GPT:
    """The stored model that has read biographies in many wordings, of the world of this seed."""
    return load_model(reader_name(seed)).network(GPT, dropout=0.0)


def reader_name(seed: int) -> str:
    """The name of `stored_reader`."""
    return "assistant_read" + (f"_{seed}" if seed else "")
