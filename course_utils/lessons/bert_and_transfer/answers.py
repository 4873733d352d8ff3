"""A GPT that answers behind a sentence, and what is asked of it: everything, or the answer alone."""

import copy

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.prose import IGNORE
from course_utils.data.text import PAD
from course_utils.lessons.bert_and_transfer.tasks import Labeled, texts
from course_utils.lessons.gpt.training import rate
from course_utils.models.language import GPT

ANSWERS = ("y", "n")  # is the sentence in order?
BATCH = 32


def answer_ids() -> Tensor:
    """The tokens of the two answers: classes 0 (in order) and 1."""
    return torch.tensor([texts().subwords.encode(letter)[0] for letter in ANSWERS])


def with_answers(data: Labeled) -> tuple[Tensor, Tensor]:
    """Ids (sentences, longest + 1): behind each sentence's <eos> its answer; and the lengths of the prompts."""
    ids = F.pad(data.ids, (0, 1), value=PAD)
    ids[torch.arange(len(ids)), data.lengths] = answer_ids()[data.labels]
    return ids, data.lengths


def answer_targets(ids: Tensor, prompt_lens: Tensor, pad: int = PAD) -> Tensor:
    """(batch, length − 1): the next token where it belongs to the answer, else -100.

    Args:
        ids: (batch, length) prompts and answers, padded on the right.
        prompt_lens: (batch,) tokens of each prompt.
        pad: id of the padding.
    """
    targets, places = ids[:, 1:], torch.arange(1, ids.shape[1])
    return targets.masked_fill((places < prompt_lens[:, None]) | (targets == pad), IGNORE)


def all_targets(ids: Tensor) -> Tensor:
    """(batch, length − 1): every next token; where there is padding, -100."""
    return ids[:, 1:].masked_fill(ids[:, 1:] == PAD, IGNORE)


def tune(body: GPT, data: Labeled, *, answers_only: bool, steps: int, lr: float, seed: int) -> GPT:
    """A copy of the GPT, trained to answer."""
    model, generator = copy.deepcopy(body), torch.Generator().manual_seed(seed)
    ids, prompt_lens = with_answers(data)
    optimizer = torch.optim.AdamW(
        model.parameters(), lr, (0.9, 0.99), weight_decay=0.01, fused=True
    )
    for step in range(steps):
        rows = torch.randint(len(ids), (BATCH,), generator=generator)
        some, lens = ids[rows, : prompt_lens[rows].max() + 1], prompt_lens[rows]
        targets = answer_targets(some, lens) if answers_only else all_targets(some)
        picked = targets != IGNORE
        loss = F.cross_entropy(model.output(model.features(some[:, :-1])[picked]), targets[picked])
        optimizer.param_groups[0]["lr"] = lr * rate(step, steps, 30)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
    return model


@torch.no_grad()
def answered(model: GPT, data: Labeled) -> float:
    """Share of the sentences behind which the right one of the two answers is the likelier."""
    ids, prompt_lens = with_answers(data)
    logits = model(ids[:, :-1])[torch.arange(len(ids)), prompt_lens - 1]
    return (logits[:, answer_ids()].argmax(dim=1) == data.labels).float().mean().item()


@torch.no_grad()
def prompt_loss(model: GPT, data: Labeled) -> float:
    """Mean loss of a sentence's tokens."""
    targets = data.ids[:, 1:].masked_fill(data.ids[:, 1:] == PAD, IGNORE)
    return F.cross_entropy(model(data.ids[:, :-1]).mT, targets, ignore_index=IGNORE).item()
