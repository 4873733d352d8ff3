"""Trainings on pairs about which judges disagree, and what β protects: stored runs of the chapter's further page."""

from typing import Any

import torch

from course_utils.kit.runs import stored
from course_utils.lessons.from_gpt_to_assistant import measuring as m
from course_utils.lessons.from_gpt_to_assistant import preferences as p
from course_utils.lessons.from_gpt_to_assistant import world as w
from course_utils.lessons.from_gpt_to_assistant.runs import (
    BETA,
    BETAS,
    SEEDS,
    SIDES,
    gains,
    start_of,
)
from course_utils.models.language import GPT

STEPS, DRAWS = 240, 4
"""Steps of a training, and how often an answer is drawn to each question."""


def manners_drawn(model: GPT, people: list[w.Person]) -> tuple[dict[str, float], list[str]]:
    """Shares of the answers drawn at temperature 1: whole polite ones, whole long-winded ones, others; and the others.

    "begun politely" is the share of answers, whole or not, that begin as a polite one does.
    """
    draws = torch.Generator().manual_seed(2)
    rows = [
        row
        for _ in range(DRAWS)
        for row in m.answers(model, people, temperature=1.0, generator=draws)
    ]
    whole = [row["manner"] for row in rows if row["form"]]
    shares = {manner: whole.count(manner) / len(rows) for manner in ("polite", "long")}
    shares["other"] = 1 - sum(shares.values())
    shares["begun politely"] = m.share(rows, "polite")
    others = [row["text"] for row in rows if not row["form"] or row["manner"] not in shares]
    return shares, others


@stored(
    cases=[
        {"loss": loss, "beta": beta, "agree": 0.75, "rate": 0.0001, "steps": STEPS, "seed": seed}
        for loss, betas in (
            ("margin", BETAS),
            ("likelihood", (BETA,)),
            ("margin and likelihood", BETAS),
        )
        for beta in betas
        for seed in SEEDS
    ]
    + [
        {"loss": loss, "beta": beta, "agree": 1.0, "rate": 0.00003, "steps": steps, "seed": seed}
        for loss, beta, steps in (
            ("margin", 0.1, 35),
            ("margin", 0.1, 600),
            ("margin", 5.0, 600),
            ("margin and likelihood", 0.1, 600),
        )
        for seed in SEEDS
    ]
)
def judged(
    *, loss: str, beta: float, agree: float, rate: float, steps: int, seed: int
) -> dict[str, Any]:
    """How a fine-tuned model answers about held-out people after a training on pairs that judges have compared.

    The results are shares of drawn answers, as `manners_drawn` gives them, before ("before, polite" and so on) and
    after; the probability that an answer begins politely; and, of the greedy answers, those that are right and whole.
    With the smallest β the examples are drawn answers that are neither polite nor long-winded.

    Args:
        loss: a name in `SIDES`.
        beta: as in `preferences.dpo_loss`; fine-tuning alone makes no use of it.
        agree: share of the pairs in which the polite answer wins.
        rate, steps: of AdamW.
        seed: of the world and of the batches.
    """
    world, start = w.make_world(seed), start_of(seed)
    pairs = p.preference_pairs(world, agree=agree)
    settings = SIDES[loss] | {"beta": beta}
    model = p.prefer(start, pairs, steps=steps, lr=rate, seed=seed, **settings)
    begins = m.beginning(model, world.held_out, w.MANNERS["polite"])
    greedy, gain = m.answers(model, world.held_out), gains(model, start, world)
    before, _ = manners_drawn(start, world.held_out)
    after, others = manners_drawn(model, world.held_out)
    result = {f"before, {name}": share for name, share in before.items()}
    result |= after | {
        "begins politely": sum(begins) / len(begins),
        "right": m.share(greedy, "right"),
        "whole": m.share(greedy, "form"),
        "margin": beta * (gain[0] - gain[1]),
        "preferred": gain[0],
    }
    return {"result": result, "examples": [{"others": others[:8]}] if beta == BETA else []}
