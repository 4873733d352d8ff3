"""Fine-tuning as *BERT and transfer* does it: all weights, LoRA, the output layer alone; and a GPT that answers."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.prose import IGNORE
from course_utils.data.text import PAD
from course_utils.lessons.bert_and_transfer.tasks import Labeled, texts
from course_utils.lessons.gpt.training import rate
from course_utils.models.language import GPT, LanguageModel, SentenceClassifier
from course_utils.runtime import evaluating

BATCH = 32


class LoRA(nn.Module):
    """A linear layer that stays as it is, and a change of low rank that is learned.

    x ↦ linear(x) + alpha / rank · x A Bᵀ with A (inputs, rank) random and B (outputs, rank) zero at the start.
    Hu et al. (2022), "LoRA: low-rank adaptation of large language models", section 4.1.

    Args:
        linear: the layer; its weight and bias are frozen.
        rank: columns of A and B.
        alpha: scale of the change.
    """

    def __init__(self, linear: nn.Linear, rank: int = 4, alpha: float = 8.0):
        super().__init__()
        self.linear = linear.requires_grad_(False)
        self.scale = alpha / rank
        self.A = nn.Parameter(torch.randn(linear.in_features, rank) / math.sqrt(rank))
        self.B = nn.Parameter(torch.zeros(linear.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """(…, inputs) → (…, outputs)."""
        return self.linear(x) + self.scale * (x @ self.A @ self.B.T)


def classifier(body: LanguageModel, classes: int, method: str = "all") -> SentenceClassifier:
    """A copy of the body with a new output layer, and only what `method` says trainable: all, LoRA or output."""
    model = SentenceClassifier(copy.deepcopy(body), classes)
    if method != "all":
        model.body.requires_grad_(False)
    if method == "LoRA":
        for layer in model.body.layers:
            for index in (0, 3):  # the two linear layers of the position-wise network
                layer.feed_forward[index] = LoRA(layer.feed_forward[index])
    return model


@torch.no_grad()
def accuracy(model: nn.Module, data: Labeled) -> float:
    """Share of the sentences whose class is right."""
    with evaluating(model):
        right = [
            model(ids, lengths).argmax(dim=-1) == labels
            for ids, lengths, labels in zip(
                data.ids.split(500), data.lengths.split(500), data.labels.split(500), strict=True
            )
        ]
    return torch.cat(right).float().mean().item()


def fine_tune(
    model: nn.Module,
    data: Labeled,
    *,
    steps: int,
    lr: float,
    seed: int,
    watch: Labeled | None = None,
) -> list[list[float]]:
    """Train what is trainable; points [step, accuracy on `watch`], eight of them."""
    generator, curve = torch.Generator().manual_seed(seed), []
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, lr, (0.9, 0.99), weight_decay=0.01, fused=True)
    for step in range(steps):
        rows = torch.randint(len(data.labels), (BATCH,), generator=generator)
        longest = data.lengths[rows].max()
        logits = model(data.ids[rows, :longest], data.lengths[rows])
        loss = F.cross_entropy(logits, data.labels[rows])
        optimizer.param_groups[0]["lr"] = lr * rate(step, steps, 30)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(trained, 1.0)
        optimizer.step()
        if watch and (step + 1) % (steps // 8) == 0:
            curve.append([step + 1, round(accuracy(model, watch), 4)])
    return curve


# A GPT that answers behind a sentence -------------------------------------------------------------

ANSWERS = ("y", "n")  # is the sentence in order?


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
