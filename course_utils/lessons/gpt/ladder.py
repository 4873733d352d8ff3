"""From one head to a GPT, a part at a time: the models whose losses *GPT* compares."""

import torch
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.layers import FeedForward
from course_utils.models.language import GPT

PARTS: dict[str, dict] = {
    "one head": {"heads": 1},
    "four heads": {"heads": 4},
    "+ network": {"heads": 4, "network": True},
    "+ residual": {"heads": 4, "network": True, "residual": True},
    "+ norm": {"heads": 4, "blocks": 1},
    "+ second block": {"heads": 4, "blocks": 2},
}
"""The rungs from the bottom up, and what each one has: those with `blocks` are whole GPTs."""


class Rung(nn.Module):
    """A GPT of one block, without norms, and with parts left out.

    Args:
        vocab_size, embed_dim, max_len: as in `GPT`.
        heads: number of heads.
        network: whether the position-wise network follows the attention.
        residual: whether each part's input is added to what it gives.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        embed_dim: int,
        max_len: int,
        heads: int,
        network: bool = False,
        residual: bool = False,
    ):
        super().__init__()
        self.residual = residual
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.positions = nn.Embedding(max_len, embed_dim)
        self.attention = MultiHeadAttention(embed_dim, heads)
        self.network = None
        if network:
            self.network = FeedForward(embed_dim, 4 * embed_dim, activation="gelu")
        self.output = nn.Linear(embed_dim, vocab_size, bias=False)
        self.output.weight = self.embedding.weight
        for table in (self.embedding, self.positions):
            nn.init.normal_(table.weight, std=embed_dim**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, length) ids → logits (batch, length, vocab_size)."""
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        heard = self.attention(x, x, x, is_causal=True)
        x = x + heard if self.residual else heard
        if self.network is not None:
            x = x + self.network(x) if self.residual else self.network(x)
        return self.output(x)


def rung(name: str, vocab_size: int, embed_dim: int, max_len: int) -> nn.Module:
    """The model of this name, untrained."""
    parts, sizes = PARTS[name], {"embed_dim": embed_dim, "max_len": max_len}
    if "blocks" in parts:
        numbers = {"num_heads": parts["heads"], "num_layers": parts["blocks"]}
        return GPT(vocab_size, **sizes, **numbers, dropout=0.0)
    return Rung(vocab_size, **sizes, **parts)
