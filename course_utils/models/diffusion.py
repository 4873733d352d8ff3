"""Denoising diffusion: noise is added by a formula, and a small U-Net learns to take it away.

Attention among pixels is one block of the U-Net. Above: `attention`. Below: `training`, whose Trainer
takes `Diffusion.loss`. Taught in *Attention between pixels*.
"""

import math
from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.attention import (
    Attention,
    dot_product_weights,
    merge_heads,
    scaled_dot_product_attention,
    split_heads,
)
from course_utils.runtime import evaluating

# Attention among pixels -------------------------------------------------------------------------


class PixelAttention(Attention):
    """Every pixel attends to every pixel: x + out(Attention(q, k, v)), with q, k, v from norm(x).

    One 1-D convolution of width 1 makes 3 · channels numbers per pixel: all queries, then all keys,
    then all values, in each the heads side by side. The last convolution begins at zero, so that a new
    block changes nothing. The block is not told where a pixel stands: permuting pixels permutes the
    output.

    Ho, Jain and Abbeel (2020), "Denoising diffusion probabilistic models", appendix B, has it with one
    head; Dhariwal and Nichol (2021), "Diffusion models beat GANs on image synthesis", with several.

    Args:
        channels: numbers per pixel, in and out.
        num_heads: number of heads; divides `channels`.
        groups: of the group norm; divides `channels`.

    Raises:
        ValueError: `num_heads` or `groups` does not divide `channels`, or a size is not positive.
    """

    def __init__(self, channels: int, num_heads: int = 1, *, groups: int = 8):
        super().__init__()
        _check_divides("num_heads", num_heads, channels)
        _check_divides("groups", groups, channels)
        self.num_heads = num_heads
        self.norm = nn.GroupNorm(groups, channels)
        self.qkv = nn.Conv1d(channels, 3 * channels, kernel_size=1)
        self.out_proj = _zeroed(nn.Conv1d(channels, channels, kernel_size=1))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, channels, height, width) → the same shape."""
        _check_images("x", x, self.norm.num_channels)
        pixels = self.norm(x).flatten(2)  # (batch, channels, pixels)
        q, k, v = (
            # The fused operator wants the numbers of a pixel side by side in memory.
            split_heads(part.transpose(1, 2).contiguous(), self.num_heads)
            for part in self.qkv(pixels).chunk(3, dim=1)
        )  # each (batch, heads, pixels, head_dim)
        self.note(lambda: dot_product_weights(q, k))
        attended = merge_heads(scaled_dot_product_attention(q, k, v))  # (batch, pixels, channels)
        return x + self.out_proj(attended.transpose(1, 2)).view_as(x)


# A U-Net ----------------------------------------------------------------------------------------


def time_features(t: Tensor, dim: int) -> Tensor:
    """Tell a network the step t by sin(t · ω_j) and cos(t · ω_j), ω_j = 10000^(-2j/dim).

    Ho, Jain and Abbeel (2020), appendix B; the sinusoids of *Self-attention and positions*, all sines first.

    Args:
        t: (batch,), whole numbers.
        dim: even.

    Returns:
        (batch, dim).

    Raises:
        ValueError: `dim` is odd or not positive.
    """
    if dim < 2 or dim % 2:
        raise ValueError(f"dim={dim}; a positive even number is needed")
    rates = 10_000 ** (-torch.arange(dim // 2, device=t.device) * 2 / dim)
    angles = t[:, None] * rates
    return torch.cat([angles.sin(), angles.cos()], dim=1)


class ResidualBlock(nn.Module):
    """x + conv(conv(x) + condition), a group norm and SiLU before each 3 × 3 convolution.

    The condition (the step, a class) is added to all pixels alike. The last convolution begins at zero.

    Args:
        inputs, outputs: channels; where they differ, a 1 × 1 convolution carries x over.
        condition_dim: size of the condition.
        groups: of both norms; divides `inputs` and `outputs`.
    """

    def __init__(self, inputs: int, outputs: int, condition_dim: int, *, groups: int = 8):
        super().__init__()
        _check_divides("groups", groups, inputs)
        _check_divides("groups", groups, outputs)
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


class Stage(nn.Module):
    """What a U-Net does on one level: a residual block and, where asked, attention among its pixels."""

    def __init__(self, inputs: int, outputs: int, condition_dim: int, num_heads: int, groups: int):
        super().__init__()
        self.block = ResidualBlock(inputs, outputs, condition_dim, groups=groups)
        attends = num_heads > 0
        self.attention = PixelAttention(outputs, num_heads, groups=groups) if attends else None

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        """(batch, inputs, height, width), (batch, condition_dim) → (batch, outputs, height, width)."""
        x = self.block(x, condition)
        return x if self.attention is None else self.attention(x)


class UNet(nn.Module):
    """Predicts the noise in a picture: down to coarser levels, up again, fine detail carried across.

    Ronneberger, Fischer and Brox (2015), "U-Net", with the blocks of Ho, Jain and Abbeel (2020),
    appendix B. One stage per level on the way down and one on the way up; 2 × 2 means go down, repeated
    pixels go up.

    Args:
        channels: of the pictures.
        widths: channels inside, from the finest level to the coarsest; each level has half the height
            and width of the one before.
        attention: for each level, whether its two stages end in attention among pixels.
        num_heads: of the attention; divides the widths of those levels.
        num_classes: how many classes there are, of which it is told one; 0: it is told none.
        groups: of all norms; divides all widths.

    Raises:
        ValueError: `attention` and `widths` differ in length, or a width is not divisible.
    """

    def __init__(
        self,
        channels: int = 1,
        *,
        widths: Sequence[int] = (16, 32),
        attention: Sequence[bool] = (False, True),
        num_heads: int = 2,
        num_classes: int = 0,
        groups: int = 8,
    ):
        super().__init__()
        if not widths or len(attention) != len(widths):
            raise ValueError(
                f"widths={tuple(widths)}, attention={tuple(attention)}; one of each per level is needed"
            )
        self.channels, self.num_classes = channels, num_classes
        self.factor = 2 ** (len(widths) - 1)  # from the finest level to the coarsest
        dim = 4 * widths[0]
        self.time = nn.Sequential(nn.Linear(dim, dim), nn.SiLU(), nn.Linear(dim, dim))
        self.classes = nn.Embedding(num_classes, dim) if num_classes else None
        self.entry = nn.Conv2d(channels, widths[0], 3, padding=1)
        heads = [num_heads if attends else 0 for attends in attention]
        before = [widths[0], *widths[:-1]]
        below = [*widths[1:], widths[-1]]
        self.down = nn.ModuleList(
            map(Stage, before, widths, *_each(len(widths), dim, heads, groups))
        )
        joined = [come + kept for come, kept in zip(below, widths, strict=True)]
        up = list(map(Stage, joined, widths, *_each(len(widths), dim, heads, groups)))
        self.up = nn.ModuleList(reversed(up))  # from the coarsest level to the finest
        self.norm = nn.GroupNorm(groups, widths[0])
        self.exit = _zeroed(nn.Conv2d(widths[0], channels, 3, padding=1))

    def forward(self, x: Tensor, t: Tensor, labels: Tensor | None = None) -> Tensor:
        """(batch, channels, height, width), step (batch,), class (batch,) → the noise, like x.

        A network that is told no classes takes no notice of `labels`.
        """
        self._check(x, t, labels)
        condition = self.time(time_features(t, self.time[0].in_features).to(x.dtype))
        if self.classes is not None:
            condition = condition + self.classes(labels)
        condition = F.silu(condition)
        x = self.entry(x)
        kept = []
        for level, stage in enumerate(self.down):
            x = stage(F.avg_pool2d(x, 2) if level else x, condition)
            kept.append(x)
        for level, stage in enumerate(self.up):
            x = F.interpolate(x, scale_factor=2) if level else x
            x = stage(torch.cat([x, kept.pop()], dim=1), condition)
        return self.exit(F.silu(self.norm(x)))

    def _check(self, x: Tensor, t: Tensor, labels: Tensor | None) -> None:
        _check_images("x", x, self.channels)
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
                f"labels are missing; the network is told one of {self.num_classes} classes"
            )


def _each(levels: int, dim: int, heads: list[int], groups: int) -> tuple[list[int], ...]:
    return [dim] * levels, heads, [groups] * levels


# Noise ------------------------------------------------------------------------------------------


def linear_schedule(steps: int, *, first: float = 1e-4, last: float = 0.02) -> Tensor:
    """ᾱ_t = Π_{s ≤ t} (1 − β_s), with β rising evenly from `first` to `last` over 1000 steps.

    Ho, Jain and Abbeel (2020), section 4. With fewer steps each is larger, 1000 / steps times.

    Returns:
        ᾱ_0 = 1, ᾱ_1, …: (steps + 1,), float32.

    Raises:
        ValueError: so few steps that β would reach 1.
    """
    _check_steps(steps)
    betas = torch.linspace(first, last, steps, dtype=torch.float64) * 1000 / steps
    if betas.max() >= 1:
        raise ValueError(f"steps={steps} makes beta {betas.max():.2f}; more steps are needed")
    return torch.cat([torch.ones(1), (1 - betas).cumprod(0)]).float()


def cosine_schedule(steps: int) -> Tensor:
    """ᾱ_t = f(t) / f(0), f(t) = cos²(π/2 · (t/steps + s) / (1 + s)), s = 0.008, and β_t ≤ 0.999.

    Nichol and Dhariwal (2021), "Improved denoising diffusion probabilistic models", section 3.2.

    Returns:
        ᾱ_0 = 1, ᾱ_1, …: (steps + 1,), float32.
    """
    _check_steps(steps)
    time = torch.arange(steps + 1, dtype=torch.float64) / steps
    f = ((time + 0.008) / 1.008 * math.pi / 2).cos().square()
    betas = (1 - f[1:] / f[:-1]).clamp(max=0.999)
    return torch.cat([torch.ones(1), (1 - betas).cumprod(0)]).float()


class Diffusion:
    """Adds noise step by step, says what a denoiser has to learn, and walks back.

    Steps are counted 0 (the picture) to `steps` (almost only noise).

    Args:
        alpha_bar: ᾱ, the share of the picture in the variance at each step: (steps + 1,), from 1 down
            to more than 0.

    Raises:
        ValueError: `alpha_bar` does not begin at 1, does not fall, or reaches 0.
    """

    def __init__(self, alpha_bar: Tensor):
        falls = alpha_bar.ndim == 1 and len(alpha_bar) > 1 and (alpha_bar.diff() < 0).all()
        if not falls or alpha_bar[0] != 1 or alpha_bar[-1] <= 0:
            raise ValueError("alpha_bar must begin at 1 and fall at each step, but not to 0")
        self.alpha_bar = alpha_bar
        self.steps = len(alpha_bar) - 1

    def add_noise(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """x_t = √ᾱ_t · x + √(1 − ᾱ_t) · noise, all t steps in one; Ho et al. (2020), equation 4.

        Args:
            x: pictures, (batch, channels, height, width).
            t: (batch,), whole numbers from 0 to `steps`.
            noise: like x, standard normal.

        Raises:
            ValueError: a t is out of range, or the shapes do not fit.
        """
        if t.shape != x.shape[:1] or noise.shape != x.shape:
            raise ValueError(
                f"x has shape {tuple(x.shape)}, t {tuple(t.shape)}, noise {tuple(noise.shape)}; "
                "one t per picture and noise like the pictures are needed"
            )
        if len(t) and not 0 <= t.min() <= t.max() <= self.steps:
            raise ValueError(
                f"t runs from {t.min().item()} to {t.max().item()}; 0 <= t <= {self.steps} is needed"
            )
        a = self._at(t)
        return a.sqrt() * x + (1 - a).sqrt() * noise

    def loss(self, model: nn.Module, batch) -> tuple[Tensor, int]:
        """‖noise − model(x_t, t)‖² per pixel, summed over pictures, at random t: for the Trainer.

        Ho et al. (2020), equation 14. A batch has `images` and `labels`.
        """
        x = batch.images
        t = torch.randint(1, self.steps + 1, (len(x),), device=x.device)
        return self._errors(model, x, batch.labels, t, torch.randn_like(x)).sum(), len(x)

    @torch.no_grad()
    def errors(
        self, model: nn.Module, images: Tensor, labels: Tensor | None = None, *, seed: int = 0
    ) -> tuple[Tensor, Tensor]:
        """The loss picture by picture, at steps and with noise that depend on `seed` only.

        Two networks measured with one seed have the same pictures to clean: compare them pair by pair.

        Returns:
            The errors (batch,), and the steps they belong to (batch,), spread evenly over 1 … steps.
        """
        generator = torch.Generator().manual_seed(seed)
        spread = torch.arange(len(images)) * self.steps // max(len(images), 1) + 1
        t = spread[torch.randperm(len(images), generator=generator)].to(images.device)
        noise = torch.randn(images.shape, generator=generator).to(images.device)
        with evaluating(model):
            parts = [
                self._errors(
                    model, images[i], None if labels is None else labels[i], t[i], noise[i]
                )
                for i in torch.arange(len(images)).split(500)
            ]
        return torch.cat(parts), t

    @torch.no_grad()
    def sample(
        self,
        model: nn.Module,
        shape: tuple[int, ...],
        *,
        labels: Tensor | None = None,
        num_steps: int | None = None,
        eta: float = 1.0,
        seed: int = 0,
        device: torch.device | str = "cpu",
    ) -> Tensor:
        """New pictures from noise. Each step guesses the clean picture x̂ and goes to step s < t:

            x̂ = (x_t − √(1 − ᾱ_t) · ε) / √ᾱ_t, cut to [−1, 1],   ε = model(x_t, t)
            x_s = √ᾱ_s · x̂ + √(1 − ᾱ_s − σ²) · ε̂ + σ · noise,   σ² = η² (1 − ᾱ_s)/(1 − ᾱ_t) · (1 − ᾱ_t/ᾱ_s)

        with ε̂ the noise that belongs to the cut x̂. Song, Meng and Ermon (2021), "Denoising diffusion
        implicit models", equations 12 and 16. η = 1 with all steps is the sampler of Ho et al. (2020),
        algorithm 2, with their second choice of variance; η = 0 (DDIM) adds no noise.

        Args:
            model: called as `model(x, t, labels)`, gives the noise.
            shape: (batch, channels, height, width).
            labels: (batch,), where the model is told classes.
            num_steps: how many of the steps to visit, evenly spread; all by default.
            eta: η, from 0 to 1.
            seed: of all noise; drawn on the CPU, so the same on every device.

        Returns:
            Pictures of this shape, from −1 to 1.

        Raises:
            ValueError: `num_steps` or `eta` is out of range.
        """
        num_steps = self.steps if num_steps is None else num_steps
        if not 1 <= num_steps <= self.steps:
            raise ValueError(f"num_steps={num_steps}; 1 <= num_steps <= {self.steps} is needed")
        if not 0 <= eta <= 1:
            raise ValueError(f"eta={eta}; 0 <= eta <= 1 is needed")
        generator = torch.Generator().manual_seed(seed)
        x = torch.randn(shape, generator=generator).to(device)
        visited = torch.linspace(self.steps, 0, num_steps + 1).round().long()
        for t, s in zip(visited[:-1], visited[1:], strict=True):
            predicted = model(x, t.expand(len(x)).to(device), labels)
            a, b = self.alpha_bar[t].to(device), self.alpha_bar[s].to(device)
            clean = ((x - (1 - a).sqrt() * predicted) / a.sqrt()).clamp(-1, 1)
            noise = (x - a.sqrt() * clean) / (1 - a).sqrt()
            variance = eta**2 * (1 - b) / (1 - a) * (1 - a / b)
            fresh = torch.randn(shape, generator=generator).to(device)
            kept = (1 - b - variance).clamp(min=0).sqrt()  # rounding may take it below 0
            x = b.sqrt() * clean + kept * noise + variance.sqrt() * fresh
        return x

    def _errors(self, model, x, labels, t, noise) -> Tensor:
        a = self._at(t)
        predicted = model(a.sqrt() * x + (1 - a).sqrt() * noise, t, labels)
        return (predicted.float() - noise).square().flatten(1).mean(dim=1)

    def _at(self, t: Tensor) -> Tensor:
        return self.alpha_bar.to(t.device)[t][:, None, None, None]


# Arguments --------------------------------------------------------------------------------------


def _zeroed(layer: nn.Module) -> nn.Module:
    """The layer with all its parameters at zero."""
    for parameter in layer.parameters():
        nn.init.zeros_(parameter)
    return layer


def _check_divides(name: str, count: int, channels: int) -> None:
    if count < 1 or channels < 1:
        raise ValueError(f"channels={channels}, {name}={count}; both are at least 1")
    if channels % count:
        raise ValueError(f"channels={channels} is not divisible by {name}={count}")


def _check_images(name: str, x: Tensor, channels: int) -> None:
    if x.ndim != 4 or x.shape[1] != channels:
        raise ValueError(
            f"{name} has shape {tuple(x.shape)}; (batch, {channels}, height, width) is needed"
        )


def _check_steps(steps: int) -> None:
    if steps < 1:
        raise ValueError(f"steps={steps}; at least one step is needed")
