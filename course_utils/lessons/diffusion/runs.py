"""The trainings of *Attention in a diffusion model* that are made beforehand: `make runs CHAPTER=17`."""

from functools import partial

import torch
from torch import Tensor

from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel
from course_utils.lessons.diffusion import copies, forbidden_words, guidance, live_words, words
from course_utils.lessons.diffusion.training import (
    BATCH,
    clothes,
    diffusion,
    random_clothes,
    random_noise,
    train,
)
from course_utils.models.diffusion import UNet

SEEDS = (0, 1, 2)
SHOWN_NOISE = 2
"""Seed of the noise on the first screen. The classifier names all halves right with 2 and 0, and all but one with 1."""


def garment_loss(network: UNet, generator: torch.Generator) -> Tensor:
    """Mean loss of a batch at 14 × 14, where one label in ten is withheld."""
    images, labels = random_clothes(BATCH, generator, 14)
    withheld = torch.rand(len(labels), generator=generator) < 0.1
    labels = labels.masked_fill(withheld, guidance.NO_CLASS)
    t, noise = random_noise(images, generator)
    return (network(diffusion().add_noise(images, t, noise), t, labels) - noise).square().mean()


@stored(cases=[{"steps": 1500, "seed": 0}], saves={"clothes_unet": {}})
def garments(*, steps: int, seed: int) -> dict:
    """The held-out loss, with and without class, of the chapter's network at 14 × 14, trained ten times as long."""
    config = {"widths": [16, 32], "attention": [False, True], "num_classes": 11}
    torch.manual_seed(seed)
    network = UNet(**config)
    train(network, partial(garment_loss, network), steps=steps, seed=seed)
    images, labels = clothes("test", 14)
    errors, _ = diffusion().errors(network, images, labels)
    unlabeled = torch.full_like(labels, guidance.NO_CLASS)
    without_class, _ = diffusion().errors(network, images, unlabeled)
    result = {"loss": errors.mean().item(), "untold": without_class.mean().item()}
    return {"result": result, "models": {"clothes_unet": StoredModel.of(network, config)}}


# Two garments for two words -----------------------------------------------------------------------


@stored(cases=[{"steps": 600}], rates=(3e-3, 8e-3, 2e-2, 5e-2), seeds=SEEDS)
def rates_for_words(*, rate: float, steps: int, seed: int) -> dict:
    """Short trainings of the network of the first screen: the held-out loss."""
    torch.manual_seed(seed)
    network = words.WordUNet()
    words.fit(network, steps=steps, lr=rate, seed=seed)
    return {"result": {"loss": words.held_out_word_loss(network)}}


@stored(cases=[{"lr": 8e-3, "steps": 6_400, "seed": 0}], saves={"words_unet": {}})
def garments_for_words(*, lr: float, steps: int, seed: int) -> dict:
    """The network of the first screen, trained on pairs from the 60,000, and what the page shows of it."""
    torch.manual_seed(seed)
    network = words.WordUNet()
    curves = words.fit(network, steps=steps, lr=lr, seed=seed)
    model = StoredModel.of(network, {})
    network = model.network(words.WordUNet)  # in half precision
    cards = {"words": live_words.page_of(network, seed=SHOWN_NOISE)}
    named = [words.accuracy_of_drawings(network, count=100, seed=noise) for noise in SEEDS]
    result = {"loss": words.held_out_word_loss(network), "named": sum(named) / len(named)}
    return {"result": result, "curves": curves, "models": {"words_unet": model}, "cards": cards}


@stored(
    cases=[{"count": 24, "scale": scale} for scale in (1.0, words.SCALE)],
    seeds=SEEDS,
)
def forbidding(*, count: int, scale: float, seed: int) -> dict:
    """Random captions, each word forbidden from several steps on: what becomes of its half, and where pixels look."""
    painter = words.painter()
    result, curves = forbidden_words.measure_forbidding(
        painter, count=count, scale=scale, seed=seed
    )
    return {"result": result, "curves": curves}


@stored(
    cases=[{"count": 24, "scale": scale} for scale in (words.SCALE, 1.0)],
    seeds=SEEDS,
)
def asking_late(*, count: int, scale: float, seed: int) -> dict:
    """As `forbidding`, but each word may be asked only from several steps on."""
    painter = words.painter()
    late = forbidden_words.measure_asking_late(painter, count=count, scale=scale, seed=seed)
    return {"result": late}


@stored(
    cases=[{"count": 24, "scale": words.SCALE}],
    seeds=SEEDS,
)
def without_words(*, count: int, scale: float, seed: int) -> dict:
    """As `forbidding` and `asking_late`, but both words are forbidden together."""
    painter = words.painter()
    without = forbidden_words.measure_without_words(painter, count=count, scale=scale, seed=seed)
    return {"result": without}


@stored(
    cases=[
        {"kind": kind, "steps": steps, "seed": seed}
        for steps in (400, 1200)
        for seed in SEEDS
        for kind in ("both", "norm", "deep", "alone", "aligned")
    ],
    saves={"copier_unet": {"kind": "both", "steps": 400, "seed": 0}},
)
def copying(*, kind: str, steps: int, seed: int) -> dict:
    """A network that finds in noise on the right the garment that stands clean on the left: losses, drawn garments."""
    network = copies.new_network(kind, seed)
    train(network, partial(copies.copy_loss, kind, network), steps=steps, seed=seed)
    models = {}
    if kind == "both" and seed == 0 and steps == 400:
        models["copier_unet"] = StoredModel.of(network, {"attention": [False, True]})
    clean, _ = clothes("test", copies.SIDE)
    shown = clean[:40]
    drawn = copies.draw_copies(kind, network, shown)
    gap = (drawn - shown).square().mean().item()
    others = (shown - shown.roll(1, dims=0)).square().mean().item()
    result = {
        "loss": copies.held_out_copy_loss(kind, network),
        "difference": gap,
        "other garments": others,
    }
    examples = []
    if seed == 0 and steps == 400:
        examples = [
            {"drawn": [[round(p, 2) for p in row] for row in drawn[:4].flatten(1).tolist()]}
        ]
    return {"result": result, "examples": examples, "models": models}


@stored(
    cases=[
        {"kind": kind, "steps": 300, "seed": seed} for seed in SEEDS for kind in copies.CAPTIONS
    ],
)
def captions(*, kind: str, steps: int, seed: int) -> dict:
    """A network for two garments whose caption of two words is given in one of five ways.

    Held-out losses, in all and in the noisier half of the steps, and the share of drawn garments as named.
    """
    network = copies.captioned_network(kind, seed)
    train(network, partial(copies.caption_loss, network), steps=steps, seed=seed)
    loss, loss_in_noise = copies.held_out_caption_loss(network)
    result = {
        "loss": loss,
        "noisy half": loss_in_noise,
        "named": copies.share_nearest_to_own_mean(network, seed),
    }
    return {"result": result}


@stored(
    cases=[
        {"num_steps": 20, "scale": scale, "seed": seed}
        for scale in (0.0, 1.0, 2.0, 4.0)
        for seed in SEEDS
    ],
)
def scales(*, num_steps: int, scale: float, seed: int) -> dict:
    """The `class_scores` of garments that the stored network draws in few steps, guided or not."""
    pictures = guidance.draw_garments(15, num_steps=num_steps, eta=1.0, scale=scale, seed=seed)
    labels = torch.arange(10).repeat_interleave(15)
    return {"result": guidance.class_scores(pictures, labels)}
