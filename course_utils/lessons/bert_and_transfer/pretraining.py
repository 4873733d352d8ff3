"""Pretraining as *BERT and transfer* does it: one loop, and what is asked."""

import functools

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.prose import IGNORE
from course_utils.data.text import MASK, PAD, pad
from course_utils.lessons.bert_and_transfer.tasks import VOCAB, texts
from course_utils.lessons.gpt.training import rate
from course_utils.models.language import BERT, GPT, LanguageModel

SIZES = {"embed_dim": 64, "num_heads": 4, "num_layers": 2}
STEPS, BATCH, RATE, SHARE = 1200, 64, 1e-2, 0.4
BEGINNINGS = ("from scratch", "GPT", "BERT")
"""What a network has learned before the task."""


def masking(ids: Tensor, vocab_size: int, share: float = 0.15) -> tuple[Tensor, Tensor]:
    """Tokens to be read and targets, (batch, length): BERT's rule.

    Of the ordinary tokens `share` are picked. Of these 80 % become the mask, 10 % a random ordinary token, and
    10 % stay; where nothing is picked the target is -100. Devlin et al. (2019), section 3.1.
    """
    picked = (torch.rand(ids.shape) < share) & (ids > MASK)
    fate = torch.rand(ids.shape)
    random_ids = torch.randint(MASK + 1, vocab_size, ids.shape)
    tokens = ids.masked_fill(picked & (fate < 0.8), MASK)
    tokens = torch.where(picked & (fate >= 0.8) & (fate < 0.9), random_ids, tokens)
    return tokens, ids.masked_fill(~picked, IGNORE)


@functools.cache
def sentences() -> tuple[Tensor, Tensor]:
    """The pretraining text, the shortest sentence first: ids (sentences, longest) and lengths."""
    ids = [texts().subwords.sentence(text) for text in texts().read]
    return pad(sorted(ids, key=len))


def asked(name: str, ids: Tensor) -> tuple[Tensor, Tensor]:
    """What a pretraining reads, and what it is asked, where nothing is asked -100."""
    if name == "GPT":
        return ids[:, :-1], ids[:, 1:].masked_fill(ids[:, 1:] == PAD, IGNORE)
    if name == "autoencoder":
        return ids, ids.masked_fill(ids == PAD, IGNORE)
    return masking(ids, VOCAB, SHARE)


def new_model(name: str) -> LanguageModel:
    """A network that has learned nothing."""
    kind = GPT if name == "GPT" else BERT
    return kind(VOCAB, **SIZES, rotary=True, dropout=0.0)


def pretrain(
    name: str, seed: int, *, steps: int = STEPS, lr: float = RATE
) -> tuple[LanguageModel, list[list[float]]]:
    """A network pretrained on sentences without labels, and points [step, training loss]."""
    torch.manual_seed(seed)
    model, curve, recent = new_model(name), [], []
    if name == "from scratch":
        return model, curve
    table, lengths = sentences()
    optimizer = torch.optim.AdamW(model.parameters(), lr, (0.9, 0.99), weight_decay=0.1, fused=True)
    for step in range(steps):
        rows = torch.randint(len(table) - BATCH, ()) + torch.arange(BATCH)  # nearly equally long
        tokens, targets = asked(name, table[rows, : lengths[rows].max()])
        picked = targets != IGNORE
        features = model.features(tokens, lengths[rows].clamp(max=tokens.shape[1]))
        loss = F.cross_entropy(model.output(features[picked]), targets[picked])
        optimizer.param_groups[0]["lr"] = lr * rate(step, steps, 30)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        recent.append(loss.item())
        if (step + 1) % 100 == 0:
            curve.append([step + 1, round(sum(recent) / len(recent), 4)])
            recent = []
    return model.eval(), curve
