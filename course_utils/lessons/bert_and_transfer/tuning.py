"""Fine-tuning as *BERT and transfer* does it, on its page and in its stored runs: all weights, LoRA, or the output."""

import copy
import math

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.arguments import check_positive
from course_utils.lessons.bert_and_transfer.tasks import Labeled
from course_utils.lessons.gpt.training import rate
from course_utils.models.language import LanguageModel, SentenceClassifier
from course_utils.runtime import evaluating
from course_utils.train.steps import take_steps

BATCH = 32


class LoRA(nn.Module):
    """A linear layer whose weight is frozen, plus a change of low rank that is learned.

    x ↦ linear(x) + alpha / rank · x A Bᵀ with A (inputs, rank) random and B (outputs, rank) zero at the start.
    Hu et al. (2022), "LoRA: low-rank adaptation of large language models", section 4.1. The paper draws A from a normal
    distribution and doesn't say how wide. Here it is drawn evenly between ±1/√inputs, as in its authors' loralib and in
    the library PEFT (`kaiming_uniform_` with a = √5, the start of `nn.Linear`, too), so that a learning rate means the
    same here as there.

    It takes the place of a linear layer, also of a projection in `attention.MultiHeadAttention`.

    Args:
        linear: the layer; its weight and bias are frozen.
        rank: columns of A and B.
        alpha: scale of the change.

    Raises:
        ValueError: `rank` is not positive.
    """

    def __init__(self, linear: nn.Linear, rank: int = 4, alpha: float = 8.0):
        super().__init__()
        check_positive(rank=rank)
        self.linear = linear.requires_grad_(False)
        self.in_features, self.out_features = linear.in_features, linear.out_features
        self.scale = alpha / rank
        widest = 1 / math.sqrt(self.in_features)
        weight = linear.weight
        self.A = nn.Parameter(weight.new_empty(self.in_features, rank).uniform_(-widest, widest))
        self.B = nn.Parameter(weight.new_zeros(self.out_features, rank))

    def forward(self, x: Tensor) -> Tensor:
        """(…, inputs) → (…, outputs)."""
        return self.linear(x) + self.scale * (x @ self.A @ self.B.T)

    @torch.no_grad()
    def merged(self) -> nn.Linear:
        """One linear layer that gives the same, with the change in its weight: as fast as before."""
        layer = copy.deepcopy(self.linear)
        layer.weight.add_(self.B @ self.A.T, alpha=self.scale)
        return layer


LORA_AT = {
    "LoRA": ("feed_forward.0", "feed_forward.3"),
    "LoRA, attention": ("attention.query_proj", "attention.value_proj"),
}
"""Method → the linear layers of a block that get a change; those of the attention are the paper's."""


def classifier(body: LanguageModel, method: str = "all") -> SentenceClassifier:
    """A copy of the body with a new output layer for two classes.

    Args:
        body: the pretrained network.
        method: what is trainable: "all", "output", or a key of LORA_AT.
    """
    model = SentenceClassifier(copy.deepcopy(body), 2)
    if method != "all":
        model.body.requires_grad_(False)
    for layer in model.body.layers:
        for place in LORA_AT.get(method, ()):
            layer.set_submodule(place, LoRA(layer.get_submodule(place)))
    return model


@torch.no_grad()
def accuracy(model: nn.Module, data: Labeled) -> float:
    """Share of the sentences whose class is right."""
    parts = zip(data.ids.split(500), data.lengths.split(500), strict=True)
    with evaluating(model):
        classes = [model(ids, lengths).argmax(dim=-1) for ids, lengths in parts]
    return (torch.cat(classes) == data.labels).float().mean().item()


def fine_tune(
    model: nn.Module,
    data: Labeled,
    *,
    steps: int,
    lr: float,
    seed: int,
    watch: Labeled | None = None,
) -> list[list[float]]:
    """Points [step, accuracy on `watch`], eight of them, of a training of the model's trainable parameters.

    Args:
        model: a classifier, trained in place.
        data: labeled sentences to learn from.
        steps, lr: how many steps, and the largest rate.
        seed: of the batches.
        watch: labeled sentences on which it is measured; no points without them.
    """
    generator = torch.Generator().manual_seed(seed)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, betas=(0.9, 0.99), weight_decay=0.01, fused=True)
    curve: list[list[float]] = []

    def loss() -> Tensor:
        rows = torch.randint(len(data.labels), (BATCH,), generator=generator)
        longest = data.lengths[rows].max()
        logits = model(data.ids[rows, :longest], data.lengths[rows])
        return F.cross_entropy(logits, data.labels[rows])

    def after_step(step: int, value: float) -> None:
        if watch and step % (steps // 8) == 0:
            curve.append([step, round(accuracy(model, watch), 4)])

    take_steps(
        optimizer,
        loss,
        steps=steps,
        rate=lambda step: lr * rate(step - 1, steps, 30),
        after_step=after_step,
    )
    return curve
