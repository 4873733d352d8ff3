"""One step of Bahdanau's attention, as the chapter asks for it: used where the reader's own has not passed."""

import math

from torch import Tensor


def attend(
    query: Tensor, keys: Tensor, memory: Tensor, mask: Tensor, w: Tensor
) -> tuple[Tensor, Tensor]:
    """Context and weights of one step, from projected query and keys: additive scores, masked.

    Bahdanau, Cho and Bengio (2015), section 3.1.

    Args:
        query: (batch, hidden), the decoder's last state, projected.
        keys: (batch, tokens, hidden), the memory, projected.
        memory: (batch, tokens, size), the encoder's states.
        mask: (batch, tokens), True at real tokens; at least one in each row.
        w: (hidden,).

    Returns:
        (batch, size) and (batch, tokens).
    """
    scores = (query[:, None] + keys).tanh() @ w
    weights = scores.masked_fill(~mask, -math.inf).softmax(dim=-1)
    return (weights[:, None] @ memory)[:, 0], weights
