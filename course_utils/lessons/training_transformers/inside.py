"""What the chapter measures inside a Transformer while it is trained."""

from collections.abc import Hashable, Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from course_utils.cache import record_attention
from course_utils.data.translation import Batch
from course_utils.models.transformer import Transformer
from course_utils.runtime import evaluating


@torch.no_grad()
def likeness(model: Transformer, batch: Batch) -> float:
    """Mean cosine between the encoder's outputs for different tokens of a batch; 1 if all are one vector."""
    with evaluating(model):
        memory, mask = model.encode(batch.source, batch.source_lens)
    vectors = F.normalize(memory[mask[:, 0, 0]], dim=-1)
    n = len(vectors)
    return ((vectors.sum(dim=0).square().sum() - n) / (n * n - n)).item()


@torch.no_grad()
def evenness(model: Transformer, batch: Batch) -> float:
    """Mean entropy of the cross-attention's rows as a share of that of equal weights, over all layers.

    1 means that the decoder looks at no source token more than at another.
    """
    with evaluating(model), record_attention(model) as maps:
        model(batch.source, batch.source_lens, batch.target_in)
    even = batch.source_lens.float().log()[:, None, None]
    shares = [
        (torch.special.entr(weights).sum(dim=-1) / even).mean()
        for name, weights in maps.items()
        if "cross" in name
    ]
    return torch.stack(shares).mean().item()


def entropy_given(contexts: Sequence[Hashable], tokens: Sequence[Hashable]) -> float:
    """Mean surprise in nats of the best model that sees the context alone, on these very tokens."""
    index: dict = {}
    rows = torch.tensor([index.setdefault(context, len(index)) for context in contexts])
    names: dict = {}
    columns = torch.tensor([names.setdefault(token, len(names)) for token in tokens])
    counts = torch.zeros(len(index), len(names)).index_put(
        (rows, columns), torch.ones(len(rows)), True
    )
    chance: Tensor = counts[rows, columns] / counts.sum(dim=1)[rows]
    return -chance.log().mean().item()
