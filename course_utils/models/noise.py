"""The diffusion process: noise added to pictures, the loss of a denoiser, and sampling of new pictures.

Taught in *Attention in a diffusion model*; `models.diffusion` has a network that predicts the noise.
"""

import itertools
import math
from collections.abc import Callable

import torch
from torch import Tensor, nn

from course_utils.arguments import check_positive
from course_utils.runtime import evaluating


def cosine_schedule(steps: int) -> Tensor:
    """Cosine schedule ᾱ_t = f(t) / f(0), f(t) = cos²(π/2 · (t/steps + s) / (1 + s)), with s = 0.008.

    β_t = 1 − ᾱ_t / ᾱ_(t−1) is at most 0.999. Nichol and Dhariwal (2021), "Improved denoising diffusion
    probabilistic models", section 3.2.

    Args:
        steps: number of steps.

    Returns:
        ᾱ_0 = 1, ᾱ_1, …: (steps + 1,), float32.

    Raises:
        ValueError: `steps` is not positive.
    """
    check_positive(steps=steps)
    time = torch.arange(steps + 1, dtype=torch.float64) / steps
    f = ((time + 0.008) / 1.008 * math.pi / 2).cos().square()
    betas = (1 - f[1:] / f[:-1]).clamp(max=0.999)
    return torch.cat([torch.ones(1), (1 - betas).cumprod(0)]).float()


def step_back(
    x: Tensor, noise: Tensor, a: Tensor, b: Tensor, fresh: Tensor, *, eta: float = 1.0
) -> Tensor:
    """Pictures at level b, one step of a sampler from level a; the guessed clean pictures are cut to [−1, 1].

    Song, Meng and Ermon (2021), "Denoising diffusion implicit models", equations 12 and 16, as in `Diffusion.sample`.

    Args:
        x: pictures at level a, (batch, channels, height, width).
        noise: the noise that a denoiser predicts in them, like x.
        a, b: ᾱ, the share of the picture in the variance, before the step and after it; a < b.
        fresh: new noise, like x.
        eta: 1 for the sampler of Ho et al. (2020), algorithm 2; 0 for DDIM, which adds no fresh noise.
    """
    clean = ((x - (1 - a).sqrt() * noise) / a.sqrt()).clamp(-1, 1)
    old = (x - a.sqrt() * clean) / (1 - a).sqrt()
    variance = eta**2 * (1 - b) / (1 - a) * (1 - a / b)
    old_scale = (1 - b - variance).clamp(min=0).sqrt()  # rounding may take it below 0
    return b.sqrt() * clean + old_scale * old + variance.sqrt() * fresh


class Diffusion:
    """Diffusion process of a schedule ᾱ: it adds noise, measures a denoiser, and samples with one.

    Steps are counted from 0 (the picture) to `steps` (almost only noise). A denoiser is called as
    `model(x_t, t, labels)`, with pictures (batch, channels, height, width), their steps (batch,) and
    their classes (batch,) or None; it returns its estimate of the noise, shaped like the pictures.

    Ho, Jain and Abbeel (2020), "Denoising diffusion probabilistic models", sections 2 and 3.

    Args:
        alpha_bar: ᾱ, the share of the picture in the variance at each step: (steps + 1,), from 1 down
            to more than 0.

    Raises:
        ValueError: `alpha_bar` does not begin at 1, does not fall, or reaches 0.
    """

    def __init__(self, alpha_bar: Tensor):
        falls = alpha_bar.ndim == 1 and len(alpha_bar) > 1 and bool((alpha_bar.diff() < 0).all())
        if not falls or alpha_bar[0] != 1 or alpha_bar[-1] <= 0:
            raise ValueError("alpha_bar must begin at 1 and fall at each step, but not to 0")
        self.alpha_bar = alpha_bar
        self.steps = len(alpha_bar) - 1

    def add_noise(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """Noisy pictures x_t = √ᾱ_t · x + √(1 − ᾱ_t) · noise; Ho et al. (2020), equation 4.

        Args:
            x: pictures, (batch, channels, height, width).
            t: (batch,), whole numbers from 0 to `steps`.
            noise: like x, standard normal.

        Returns:
            Like x.

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
        return self._mix(x, t, noise)

    def loss(self, model: nn.Module, batch) -> tuple[Tensor, int]:
        """Squared error ‖noise − model(x_t, t)‖² per pixel at random t, summed over pictures, for the Trainer.

        Ho et al. (2020), equation 14.

        Args:
            model: the denoiser.
            batch: with `images`, (batch, channels, height, width), and `labels`, (batch,) or None.

        Returns:
            The sum, and the number of pictures.
        """
        x = batch.images
        t = torch.randint(1, self.steps + 1, (len(x),), device=x.device)
        return self._errors(model, x, batch.labels, t, torch.randn_like(x)).sum(), len(x)

    loss.per = "pixel"  # type: ignore[attr-defined]  # the unit on the axis of its curves

    @torch.no_grad()
    def errors(
        self, model: nn.Module, images: Tensor, labels: Tensor | None = None, *, seed: int = 0
    ) -> tuple[Tensor, Tensor]:
        """Squared error per pixel of each picture, at steps and with noise that depend on `seed` only.

        Networks that are measured with the same seed get the same noisy pictures, so compare them in pairs.

        Args:
            model: in any mode; it is measured in eval mode.
            images: (batch, channels, height, width), on any device.
            labels: (batch,), for a model with classes.
            seed: of steps and noise, which are drawn on the CPU.

        Returns:
            The errors (batch,), and the steps they belong to (batch,), spread evenly over 1 … steps;
            both on the model's device.
        """
        generator = torch.Generator("cpu").manual_seed(seed)
        count = len(images)
        spread = torch.arange(count, device="cpu") * self.steps // max(count, 1) + 1
        t = spread[torch.randperm(count, generator=generator, device="cpu")]
        noise = torch.randn(images.shape, generator=generator, device="cpu")
        device = _device_of(model)
        images, t, noise = images.to(device), t.to(device), noise.to(device)
        labels = None if labels is None else labels.to(device)
        parts = []
        with evaluating(model):
            for start in range(0, count, 500):
                part = slice(start, start + 500)
                some_labels = None if labels is None else labels[part]
                parts.append(self._errors(model, images[part], some_labels, t[part], noise[part]))
        return torch.cat(parts), t

    @torch.no_grad()
    def sample(
        self,
        model: Callable[..., Tensor],
        shape: tuple[int, ...],
        *,
        labels: Tensor | None = None,
        num_steps: int | None = None,
        eta: float = 1.0,
        seed: int = 0,
    ) -> Tensor:
        """New pictures, sampled from noise. Each step estimates the clean picture x̂ and goes to step s < t:

            x̂ = (x_t − √(1 − ᾱ_t) · ε) / √ᾱ_t, cut to [−1, 1],   ε = model(x_t, t)
            x_s = √ᾱ_s · x̂ + √(1 − ᾱ_s − σ²) · ε̂ + σ · noise,   σ² = η² (1 − ᾱ_s)/(1 − ᾱ_t) · (1 − ᾱ_t/ᾱ_s)

        with ε̂ the noise that belongs to the cut x̂. Song, Meng and Ermon (2021), "Denoising diffusion
        implicit models", equations 12 and 16. η = 1 with all steps is the sampler of Ho et al. (2020),
        algorithm 2, with their second choice of variance; η = 0 (DDIM) adds no noise.

        Args:
            model: the denoiser; the pictures are made on its device.
            shape: (batch, channels, height, width).
            labels: (batch,), for a model with classes.
            num_steps: number of steps, evenly spread; all by default.
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
        device = _device_of(model)
        labels = None if labels is None else labels.to(device)
        generator = torch.Generator("cpu").manual_seed(seed)
        x = torch.randn(shape, generator=generator, device="cpu").to(device)
        visited = torch.linspace(self.steps, 0, num_steps + 1, device="cpu").round().long()
        for t, s in itertools.pairwise(visited):
            predicted = model(x, t.expand(len(x)).to(device), labels)
            fresh = torch.randn(shape, generator=generator, device="cpu").to(device)
            a, b = self.alpha_bar[t].to(device), self.alpha_bar[s].to(device)
            x = step_back(x, predicted, a, b, fresh, eta=eta)
        return x

    def _errors(
        self, model: nn.Module, x: Tensor, labels: Tensor | None, t: Tensor, noise: Tensor
    ) -> Tensor:
        """Mean squared error of the predicted noise, for each picture: (batch,)."""
        predicted = model(self._mix(x, t, noise), t, labels)
        return (predicted.float() - noise).square().flatten(1).mean(dim=1)

    def _mix(self, x: Tensor, t: Tensor, noise: Tensor) -> Tensor:
        """`add_noise` without its checks."""
        a = self.alpha_bar.to(t.device)[t][:, None, None, None]
        return a.sqrt() * x + (1 - a).sqrt() * noise


def _device_of(model: object) -> torch.device:
    """Device of a model's parameters; PyTorch's default device for a function without any."""
    parameters = list(model.parameters()) if isinstance(model, nn.Module) else []
    return parameters[0].device if parameters else torch.get_default_device()
