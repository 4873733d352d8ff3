"""What single words need of attention: where it lies, what it costs to go without, how the loss pulls at the scores."""

import copy
from collections.abc import Sequence

import pandas as pd
import torch
from torch import Tensor, nn

from course_utils.data.translation import Batch, Pair
from course_utils.runtime import evaluating
from course_utils.train.losses import translation_loss


@torch.no_grad()
def word_by_word(
    model: nn.Module, pairs: Sequence[Pair], batch: Batch, maps: Sequence[Tensor]
) -> pd.DataFrame:
    """A row per target word: is its largest weight on gold, and its probability with attention and without.

    Without: at this one step all keys are zero, so that all scores are equal.
    """
    both = []
    with evaluating(model):
        state = model.start(batch.source, batch.source_lens)
        for tokens, right in zip(batch.target_in.T, batch.target_out.T, strict=True):
            blind = copy.copy(state)
            blind.keys = torch.zeros_like(state.keys)
            p = [model.step(tokens, each).softmax(dim=-1) for each in (state, blind)]
            both.append([each.gather(1, right[:, None])[:, 0].tolist() for each in p])
    rows = [
        (word, (int(maps[i][t].argmax()), t) in pair.alignment, both[t][0][i], both[t][1][i])
        for i, pair in enumerate(pairs)
        for t, word in enumerate(pair.target)
    ]
    return pd.DataFrame(rows, columns=["word", "on gold", "attention", "all keys zero"])


def pull(model: nn.Module, batch: Batch) -> Tensor:
    """How strongly the loss pulls at each step's scores, (batch, steps): the sum of |∂loss/∂score| over the source."""
    kept: list[Tensor] = []

    def keep(_module, _inputs, scores: Tensor) -> None:
        scores.retain_grad()
        kept.append(scores)

    hook = model.attention.score_proj.register_forward_hook(keep)
    try:
        loss, _ = translation_loss()(model, batch)
        loss.backward()
    finally:
        hook.remove()
        model.zero_grad()
    return torch.stack([scores.grad.flatten(1).abs().sum(dim=1) for scores in kept], dim=1)
