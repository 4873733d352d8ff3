"""A small U-Net that predicts the noise in a picture, with attention among pixels on coarse levels.

Taught in *Attention in a diffusion model*; `models.noise` adds the noise and samples pictures.
"""

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.arguments import check_divides, check_even
from course_utils.attention import (
    dot_product_weights,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from course_utils.recording import Attention


def time_features(t: Tensor, dim: int) -> Tensor:
    """Encoding of the step t as sin(t · ω_j) and cos(t · ω_j), ω_j = 10000^(−2j/dim).

    Ho, Jain and Abbeel (2020), "Denoising diffusion probabilistic models", appendix B; the sinusoids
    of *Positions*, all sines first.

    Args:
        t: (batch,), whole numbers.
        dim: even.

    Returns:
        (batch, dim).

    Raises:
        ValueError: `dim` is odd or not positive.
    """
    check_even(dim=dim)
    rates = 10_000 ** (-torch.arange(dim // 2, device=t.device) * 2 / dim)
    angles = t[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class ResidualBlock(nn.Module):
    """Residual block of two 3 × 3 convolutions and a condition c.

        shortcut(x) + conv₂(silu(norm(conv₁(silu(norm(x))) + W c)))

    W c is added to all pixels alike; c encodes the step and a class. The shortcut, `carry`, is a 1 × 1
    convolution where the numbers of channels differ, and the identity elsewhere. conv₂ is initialized to zero,
    so that a new block returns its shortcut.

    Ho, Jain and Abbeel (2020), appendix B.

    Args:
        inputs: channels of x.
        outputs: channels of the result.
        condition_dim: size of the condition.
        groups: of both group norms; divides `inputs` and `outputs`.

    Raises:
        ValueError: `groups` does not divide `inputs` or `outputs`, or a size is not positive.
    """

    def __init__(self, inputs: int, outputs: int, condition_dim: int, *, groups: int = 8):
        super().__init__()
        check_divides(channels=inputs, groups=groups)
        check_divides(channels=outputs, groups=groups)
        self.norm1 = nn.GroupNorm(groups, inputs)
        self.conv1 = nn.Conv2d(inputs, outputs, 3, padding=1)
        self.condition = nn.Linear(condition_dim, outputs)
        self.norm2 = nn.GroupNorm(groups, outputs)
        self.conv2 = _zeroed(nn.Conv2d(outputs, outputs, 3, padding=1))
        self.carry = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """(batch, inputs, height, width), (batch, condition_dim) → (batch, outputs, height, width)."""
        y = self.conv1(F.silu(self.norm1(x))) + self.condition(condition)[:, :, None, None]
        return self.carry(x) + self.conv2(F.silu(self.norm2(y)))


class PixelAttention(Attention):
    """Self-attention among pixels: x + out(Attention(q, k, v)), with q, k, v from norm(x).

    A 1-D convolution of width 1, weight (3 · channels, channels, 1), computes all queries, then all
    keys, then all values, in each the heads side by side. The last convolution, weight (channels,
    channels, 1), is initialized to zero, so that a new block returns x. Positions are not encoded:
    permuting pixels permutes the output.

    Ho, Jain and Abbeel (2020), appendix B, has it with one head; Dhariwal and Nichol (2021),
    "Diffusion models beat GANs on image synthesis", with several.

    Args:
        channels: numbers per pixel, in and out.
        num_heads: number of heads; divides `channels`.
        groups: of the group norm; divides `channels`.

    Raises:
        ValueError: `num_heads` or `groups` does not divide `channels`, a size is not positive, or,
            when called, x has another shape.
    """

    def __init__(self, channels: int, num_heads: int = 1, *, groups: int = 8):
        super().__init__()
        check_divides(channels=channels, num_heads=num_heads)
        check_divides(channels=channels, groups=groups)
        self.num_heads = num_heads
        self.norm = nn.GroupNorm(groups, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, kernel_size=1)
        self.out_proj = _zeroed(nn.Conv1d(channels, channels, kernel_size=1))

    def forward(self, x: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """Outputs of the block, like x.

        Args:
            x: (batch, channels, height, width).
            attn_mask: boolean, True = may attend, as in `scaled_dot_product_attention`; queries and keys are
                pixels, row by row.
        """
        _check_pictures(x, self.norm.num_channels)
        pixels = self.norm(x).flatten(2)  # (batch, channels, pixels)
        q, k, v = (
            # The fused operator is faster where the numbers of a pixel are contiguous.
            split_heads(part.transpose(1, 2).contiguous(), self.num_heads)
            for part in self.qkv(pixels).chunk(3, dim=1)
        )  # each (batch, heads, pixels, head_dim)
        self.record(lambda: dot_product_weights(q, k, attn_mask))
        heads = scaled_dot_product_attention(q, k, v, attn_mask)
        attended = merge_heads(heads)  # (batch, pixels, channels)
        return x + self.out_proj(attended.transpose(1, 2)).view_as(x)


class CrossAttention(Attention):
    """Cross-attention of pixels to tokens, such as words: x + out(Attention(q, k, v)).

    Queries come from norm(x), keys and values from the tokens. The output layer is initialized to zero, so that
    a new block returns x. With a single token every weight is 1, so that all pixels get the same vector.

    Rombach et al. (2022), "High-resolution image synthesis with latent diffusion models", section 3.3.

    Args:
        channels: numbers per pixel, in and out.
        token_dim: numbers per token.
        num_heads: number of heads; divides `channels`.
        groups: of the group norm; divides `channels`.

    Raises:
        ValueError: `num_heads` or `groups` does not divide `channels`, a size is not positive, or,
            when called, x has another shape.
    """

    def __init__(self, channels: int, token_dim: int, num_heads: int = 1, *, groups: int = 8):
        super().__init__()
        check_divides(channels=channels, num_heads=num_heads)
        check_divides(channels=channels, groups=groups)
        self.num_heads = num_heads
        self.norm = nn.GroupNorm(groups, channels)
        self.query_proj = nn.Linear(channels, channels)
        self.key_proj = nn.Linear(token_dim, channels)
        self.value_proj = nn.Linear(token_dim, channels)
        self.out_proj = _zeroed(nn.Linear(channels, channels))

    def forward(self, x: Tensor, tokens: Tensor, attn_mask: Tensor | None = None) -> Tensor:
        """Outputs of the block, like x.

        Args:
            x: (batch, channels, height, width).
            tokens: (batch, tokens, token_dim).
            attn_mask: boolean, True = may attend, as in `scaled_dot_product_attention`; queries are pixels,
                row by row, and keys are tokens.
        """
        _check_pictures(x, self.norm.num_channels)
        pixels = self.norm(x).flatten(2).transpose(1, 2)  # (batch, pixels, channels)
        q, k, v = (
            split_heads(part, self.num_heads)
            for part in (self.query_proj(pixels), self.key_proj(tokens), self.value_proj(tokens))
        )  # (batch, heads, pixels or tokens, head_dim)
        self.record(lambda: dot_product_weights(q, k, attn_mask))
        heads = scaled_dot_product_attention(q, k, v, attn_mask)
        attended = merge_heads(heads)  # (batch, pixels, channels)
        return x + self.out_proj(attended).transpose(1, 2).view_as(x)


class Stage(nn.Module):
    """One level of the U-Net: a residual block, then attention among its pixels, and to tokens.

    Args:
        block: the residual block.
        attention: `PixelAttention`, or `nn.Identity` on levels without.
        cross: attention to tokens; none by default.
    """

    def __init__(
        self, block: ResidualBlock, attention: nn.Module, cross: CrossAttention | None = None
    ):
        super().__init__()
        self.block, self.attention, self.cross = block, attention, cross

    def forward(
        self,
        x: Tensor,
        condition: Tensor,
        tokens: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """(batch, inputs, height, width), (batch, condition_dim) → (batch, outputs, height, width).

        `tokens`, (batch, tokens, token_dim), and their `mask` are those of `CrossAttention`.
        """
        x = self.attention(self.block(x, condition))
        return x if self.cross is None else self.cross(x, tokens, mask)


class UNet(nn.Module):
    """U-Net that predicts the noise in a picture: down to coarser levels, and up again with skip connections.

    Ronneberger, Fischer and Brox (2015), "U-Net: Convolutional networks for biomedical image
    segmentation", with the blocks of Ho, Jain and Abbeel (2020), appendix B. Each level has one stage on the way
    down, where 2 × 2 pixels are averaged, and one on the way up, where pixels are repeated.

    Args:
        channels: of the pictures.
        widths: channels inside, from the finest level to the coarsest; each level has half the height
            and width of the one before.
        attention: for each level, whether its two stages end in attention.
        num_heads: of the attention; divides the widths of those levels.
        num_classes: number of classes, of which one is a condition; 0 for a network without classes.
        token_dim: numbers per token, to which pixels attend on the levels with attention; 0 for a network without
            tokens.
        groups: of all group norms; divides all widths.

    Raises:
        ValueError: `attention` and `widths` differ in length, a width is not divisible, or, when
            called, the shapes do not fit or labels or tokens are missing.
    """

    def __init__(
        self,
        channels: int = 1,
        *,
        widths: Sequence[int] = (16, 32),
        attention: Sequence[bool] = (False, True),
        num_heads: int = 2,
        num_classes: int = 0,
        token_dim: int = 0,
        groups: int = 8,
    ):
        super().__init__()
        if not widths or len(attention) != len(widths):
            raise ValueError(
                f"widths={tuple(widths)}, attention={tuple(attention)}; one of each per level is needed"
            )
        self.channels, self.num_classes, self.token_dim = channels, num_classes, token_dim
        self.factor = 2 ** (len(widths) - 1)  # from the finest level to the coarsest
        self.time_dim = 4 * widths[0]

        def stage(inputs: int, outputs: int, attends: bool) -> Stage:
            block = ResidualBlock(inputs, outputs, self.time_dim, groups=groups)
            if not attends:
                return Stage(block, nn.Identity())
            among = PixelAttention(outputs, num_heads, groups=groups)
            if not token_dim:
                return Stage(block, among)
            return Stage(block, among, CrossAttention(outputs, token_dim, num_heads, groups=groups))

        self.time = nn.Sequential(
            nn.Linear(self.time_dim, self.time_dim),
            nn.SiLU(),
            nn.Linear(self.time_dim, self.time_dim),
        )
        self.classes = nn.Embedding(num_classes, self.time_dim) if num_classes else None
        self.entry = nn.Conv2d(channels, widths[0], 3, padding=1)
        self.down, self.up = nn.ModuleList(), nn.ModuleList()
        inputs = widths[0]
        for width, attends in zip(widths, attention, strict=True):
            self.down.append(stage(inputs, width, attends))
            inputs = width
        for level in reversed(range(len(widths))):
            # A skip connection adds the channels of the way down, except on the coarsest level.
            skipped = widths[level] if level < len(widths) - 1 else 0
            self.up.append(stage(inputs + skipped, widths[level], attention[level]))
            inputs = widths[level]
        self.norm = nn.GroupNorm(groups, widths[0])
        self.output = _zeroed(nn.Conv2d(widths[0], channels, 3, padding=1))

    def forward(
        self,
        x: Tensor,
        t: Tensor,
        labels: Tensor | None = None,
        tokens: Tensor | None = None,
        token_mask: Tensor | None = None,
    ) -> Tensor:
        """Estimated noise, like x.

        Args:
            x: noisy pictures, (batch, channels, height, width).
            t: their steps, (batch,).
            labels: their classes, (batch,); ignored by a network without classes.
            tokens: (batch, tokens, token_dim); ignored by a network without tokens.
            token_mask: (batch, tokens), boolean, True = may be attended to; all by default.
        """
        self._check(x, t, labels, tokens)
        condition = self.time(time_features(t, self.time_dim).to(x.dtype))
        if self.classes is not None:
            condition = condition + self.classes(labels)
        condition = F.silu(condition)
        # (batch, heads, pixels, tokens)
        mask = None if token_mask is None else token_mask[:, None, None, :]
        x = self.entry(x)
        skips = []
        for level, stage in enumerate(self.down):
            if level:
                x = F.avg_pool2d(x, 2)
            x = stage(x, condition, tokens, mask)
            skips.append(x)
        for level, stage in enumerate(self.up):
            skip = skips.pop()
            x = torch.cat([F.interpolate(x, scale_factor=2), skip], dim=1) if level else skip
            x = stage(x, condition, tokens, mask)
        return self.output(F.silu(self.norm(x)))

    def _check(self, x: Tensor, t: Tensor, labels: Tensor | None, tokens: Tensor | None) -> None:
        """Raise ValueError unless the shapes fit the network, and its conditions are given."""
        _check_pictures(x, self.channels)
        if x.shape[2] % self.factor or x.shape[3] % self.factor:
            raise ValueError(
                f"x has height {x.shape[2]} and width {x.shape[3]}; the levels halve them, "
                f"so multiples of {self.factor} are needed"
            )
        if t.shape != x.shape[:1]:
            raise ValueError(
                f"t has shape {tuple(t.shape)}; ({len(x)},) is needed, one per picture"
            )
        if labels is None and self.classes is not None:
            raise ValueError(
                f"labels are missing; the network needs one of {self.num_classes} classes per picture"
            )
        if tokens is None and self.token_dim:
            raise ValueError(f"tokens are missing; (batch, tokens, {self.token_dim}) is needed")


def _zeroed(layer: nn.Module) -> nn.Module:
    """The layer with all its parameters at zero."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


def _check_pictures(x: Tensor, channels: int) -> None:
    """Raise ValueError unless x is (batch, channels, height, width)."""
    if x.ndim != 4 or x.shape[1] != channels:
        raise ValueError(
            f"x has shape {tuple(x.shape)}; (batch, {channels}, height, width) is needed"
        )
