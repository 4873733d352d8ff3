"""What stands between the attentions: the position-wise network, and the residual with its norm.

Above: `attention` and `positions`. Below: `models`. Taught in *The Transformer* (both orders of norm), 08, and
09 (what later models put in their place).
"""

from collections.abc import Callable

import torch.nn.functional as F
from torch import Tensor, nn

ACTIVATIONS = {"relu": nn.ReLU, "gelu": nn.GELU}
NORMS = {"layer": nn.LayerNorm, "rms": nn.RMSNorm}


class FeedForward(nn.Sequential):
    """The same two-layer network at every position: embed_dim → ffn_dim → embed_dim.

    Vaswani et al. (2017), section 3.3; with `activation="gelu"` as in BERT, GPT and ViT.

    Raises:
        ValueError: no activation has this name.
    """

    def __init__(
        self, embed_dim: int, ffn_dim: int, *, dropout: float = 0.0, activation: str = "relu"
    ):
        super().__init__(
            nn.Linear(embed_dim, ffn_dim),
            _named(ACTIVATIONS, "activation", activation)(),
            nn.Dropout(dropout),
            nn.Linear(ffn_dim, embed_dim),
        )


class SwiGLU(nn.Module):
    """A gated network at every position: down(silu(gate(x)) · up(x)), without biases.

    Shazeer (2020), "GLU variants improve Transformer", section 2. Three matrices where `FeedForward`
    has two: with two thirds of its `ffn_dim` it has as many parameters.
    """

    def __init__(self, embed_dim: int, ffn_dim: int, *, dropout: float = 0.0):
        super().__init__()
        self.gate = nn.Linear(embed_dim, ffn_dim, bias=False)
        self.up = nn.Linear(embed_dim, ffn_dim, bias=False)
        self.down = nn.Linear(ffn_dim, embed_dim, bias=False)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor) -> Tensor:
        """(…, embed_dim) → the same shape."""
        return self.down(self.dropout(F.silu(self.gate(x)) * self.up(x)))


class Residual(nn.Module):
    """A sublayer with its shortcut and its norm, in either order.

    After the sum (the first generation; Vaswani et al., 2017): norm(x + f(x)).
    Before the sublayer (`norm_first`; Xiong et al., 2020): x + f(norm(x)).

    Args:
        embed_dim: size of what is normalized.
        dropout: probability with which an output of the sublayer is dropped.
        norm_first: which order.
        norm: "layer" (LayerNorm), or "rms" (RMSNorm; Zhang and Sennrich, 2019).

    Raises:
        ValueError: no norm has this name.
    """

    def __init__(
        self,
        embed_dim: int,
        *,
        dropout: float = 0.0,
        norm_first: bool = False,
        norm: str = "layer",
    ):
        super().__init__()
        self.norm = make_norm(norm, embed_dim)
        self.dropout = nn.Dropout(dropout)
        self.norm_first = norm_first

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """(batch, length, embed_dim) → the same shape; `sublayer` keeps the shape too."""
        if self.norm_first:
            return x + self.dropout(sublayer(self.norm(x)))
        return self.norm(x + self.dropout(sublayer(x)))


def make_norm(name: str, embed_dim: int) -> nn.Module:
    """`nn.LayerNorm` for "layer", `nn.RMSNorm` for "rms", both with eps 1e-5."""
    return _named(NORMS, "norm", name)(embed_dim, eps=1e-5)


def make_feed_forward(
    embed_dim: int, ffn_dim: int, *, dropout: float = 0.0, activation: str = "relu"
) -> nn.Module:
    """`FeedForward` with this activation, or `SwiGLU` for "swiglu"."""
    if activation == "swiglu":
        return SwiGLU(embed_dim, ffn_dim, dropout=dropout)
    return FeedForward(embed_dim, ffn_dim, dropout=dropout, activation=activation)


def _named(table: dict, argument: str, name: str):
    if name not in table:
        known = ", ".join(map(repr, table))
        raise ValueError(f"{argument}={name!r} is unknown; there are {known}")
    return table[name]
