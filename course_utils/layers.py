"""What stands between the attentions: the position-wise network, and the residual with its norm.

Above: `attention` and `positions`. Below: `models`. Taught in chapters 07 (both orders of norm) and 08.
"""

from collections.abc import Callable

from torch import Tensor, nn


class FeedForward(nn.Sequential):
    """The same two-layer network at every position: embed_dim → ffn_dim → embed_dim.

    Vaswani et al. (2017), section 3.3.
    """

    def __init__(self, embed_dim: int, ffn_dim: int, *, dropout: float = 0.0):
        super().__init__(
            nn.Linear(embed_dim, ffn_dim),
            nn.ReLU(),
            nn.Dropout(dropout),
            nn.Linear(ffn_dim, embed_dim),
        )


class Residual(nn.Module):
    """A sublayer with its shortcut and its layer norm, in either order.

    After the sum (the first generation; Vaswani et al., 2017): norm(x + f(x)).
    Before the sublayer (`norm_first`; Xiong et al., 2020): x + f(norm(x)).
    """

    def __init__(self, embed_dim: int, *, dropout: float = 0.0, norm_first: bool = False):
        super().__init__()
        self.norm = nn.LayerNorm(embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(batch, length, embed_dim) → the same shape; `sublayer` keeps the shape too."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))
