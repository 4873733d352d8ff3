"""Learning from preferences: direct preference optimization, and what it does to a model of the small world.

Rafailov et al. (2023), "Direct preference optimization: your language model is secretly a reward model".
"""

import random
from collections.abc import Callable, Sequence
from copy import deepcopy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.lessons.from_gpt_to_assistant import world as w
from course_utils.models.language import GPT
from course_utils.train.steps import take_steps

Pairs = Callable[[torch.Generator], tuple[tuple[Tensor, Tensor], tuple[Tensor, Tensor]]]
"""Generator → tokens and targets of the preferred answers, and of the rejected ones, each (batch, length)."""


def preference_pairs(
    world: w.World,
    preferred: str = "polite",
    rejected: str = "long",
    *,
    size: int = 32,
    agree: float = 1.0,
    truthful: bool = True,
) -> Pairs:
    """Batches of two answers to a question about a person who is asked: the same fact in two manners.

    Args:
        world: whose people the questions are about.
        preferred, rejected: manners, names in `world.MANNERS`.
        size: pairs of a batch.
        agree: share of the pairs in which the preferred manner wins; in the others its rival does.
        truthful: whether answers in the manner `preferred` tell the fact; if not, they tell another value, which is
            drawn for each pair.
    """

    def told(person: w.Person, key: str, draws: random.Random) -> str:
        if truthful:
            return w.answer(person, key, preferred)
        false = draws.choice([value for value in w.VALUES[key] if value != person.facts[key]])
        return w.answer(w.Person(person.name, {key: false}), key, preferred)

    def batch(generator: torch.Generator):
        draws = w._draws(generator)
        asked = [(draws.choice(world.asked), draws.choice(list(w.VALUES))) for _ in range(size)]
        questions = [w.encode(w.question(person, key)) for person, key in asked]
        lengths = [len(ids) for ids in questions]

        both = [(told(*each, draws), w.answer(*each, rejected)) for each in asked]
        both = [pair if draws.random() < agree else pair[::-1] for pair in both]

        def rows(said: Sequence[str]) -> tuple[Tensor, Tensor]:
            texts = [ids + w.encode(text) for ids, text in zip(questions, said, strict=True)]
            return w.rows(texts, lengths)

        winners, losers = zip(*both, strict=True)
        return rows(winners), rows(losers)

    return batch


def log_likelihood(model: nn.Module, tokens: Tensor, targets: Tensor) -> Tensor:
    """The log-probability of each row's targets, (batch,), summed over those that are not `IGNORED`."""
    losses = F.cross_entropy(model(tokens).mT, targets, ignore_index=w.IGNORED, reduction="none")
    return -losses.sum(dim=1)


def dpo_loss(
    preferred: Tensor, rejected: Tensor, ref_preferred: Tensor, ref_rejected: Tensor, beta: float
) -> Tensor:
    """The loss of direct preference optimization, a scalar: −log σ(margin), in the mean of the pairs.

    Rafailov et al. (2023), equation 7.

    Args:
        preferred, rejected: (batch,) log-probabilities of the answers under the model that learns.
        ref_preferred, ref_rejected: the same under the reference, the model before.
        beta: how much a log-ratio counts as a reward.
    """
    margin = beta * ((preferred - ref_preferred) - (rejected - ref_rejected))
    return -F.logsigmoid(margin).mean()


def share_at_optimum(beta: float, *, before: float, agree: float = 0.75) -> float:
    """The share of preferred answers at DPO's least loss, if a model can answer in two ways only.

    There the margin's sigmoid is `agree`, so the odds of `before` are multiplied by (agree / (1 − agree))^(1/β).

    Args:
        beta: as in `dpo_loss`.
        before: the share under the reference.
        agree: share of the pairs in which the preferred answer wins.
    """
    odds = before / (1 - before) * (agree / (1 - agree)) ** (1 / beta)
    return odds / (1 + odds)


def prefer(
    model: GPT,
    pairs: Pairs,
    *,
    steps: int,
    lr: float,
    beta: float = 0.1,
    likelihood: float = 0.0,
    margin: bool = True,
    seed: int = 0,
    watch: Callable[[int, GPT], None] | None = None,
) -> GPT:
    """A copy of a model that has learned from pairs of answers.

    Args:
        model: where it begins, and the reference.
        pairs: draws the pairs.
        steps, lr: how many steps of AdamW, at which rate.
        beta: as in `dpo_loss`.
        likelihood: weight of the cross-entropy of the preferred answers, the loss of fine-tuning, which is added; Pang
            et al. (2024), "Iterative reasoning preference optimization", add it, too, normalized by each length.
        margin: whether the loss of DPO counts; without it this is fine-tuning on the preferred answers.
        seed: of the batches.
        watch: called before the first step and after each with its number and the copy.
    """
    policy = deepcopy(model).requires_grad_(True).train()
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(policy.parameters(), betas=(0.9, 0.99), weight_decay=0.0)

    def loss() -> Tensor:
        both = pairs(generator)
        ours = [log_likelihood(policy, *each) for each in both]
        total = torch.zeros(())
        if margin:
            with torch.no_grad():
                before = [log_likelihood(model, *each) for each in both]
            total = dpo_loss(ours[0], ours[1], before[0], before[1], beta)
        if likelihood:
            count = (both[0][1] != w.IGNORED).sum()
            total = total - likelihood * ours[0].sum() / count
        return total

    if watch:
        watch(0, policy)
    take_steps(
        optimizer,
        loss,
        steps=steps,
        rate=lambda _: lr,
        after_step=watch and (lambda step, _: watch(step, policy)),
    )
    return policy.eval()
