"""Two garments of 28 × 28 side by side, drawn for a caption of two words that each pixel may ask.

`WordUNet` is the network on the first screen of *Attention in a diffusion model*, `fit` its training, and `walk` draws
with or without a word. A classifier, the stored vision transformer, names what was drawn. The page draws with it, too,
and *One formula* shows where its pixels look.
"""

import functools
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from course_utils.data.images import load_fashion_mnist
from course_utils.kit.stored_model import load_model
from course_utils.lessons.diffusion.training import STEPS, diffusion, random_noise, train
from course_utils.models.diffusion import UNet
from course_utils.models.noise import step_back
from course_utils.models.vision import ViT
from course_utils.recording import record_attention
from course_utils.runtime import evaluating
from course_utils.train.schedules import warmup_hold_decay
from course_utils.train.steps import take_steps

NAMES = ("T-shirt", "trousers", "pullover", "dress", "coat",
         "sandal", "shirt", "sneaker", "bag", "ankle boot")  # fmt: skip
SIDE = 28
"""Pixels along each side of a garment."""

TOKEN = 32
"""Features of a word's vector."""

PAIRS = 16
"""Pairs of garments of a batch."""

EVERY_STEPS = 100
"""Steps of a training between two points of its loss curve; there are ten times as many between two held-out losses."""


class WordUNet(nn.Module):
    """A U-Net whose pixels attend to two words: the left garment's and the right one's.

    A token is the vector of a word plus the vector of its place in the caption. Four neighboring pixels become four
    channels of one, and a fifth channel tells its column, because convolutions alone don't know left from right.
    """

    def __init__(self):
        super().__init__()
        self.network = UNet(5, widths=(32, 64), token_dim=TOKEN)
        self.words, self.places = nn.Embedding(len(NAMES), TOKEN), nn.Embedding(2, TOKEN)

    def forward(self, x: Tensor, t: Tensor, words: Tensor, allowed: Tensor | None = None) -> Tensor:
        """The noise in x.

        Args:
            x: (batch, 1, 28, 56).
            t: (batch,).
            words: (batch, 2).
            allowed: which of the words may be asked, (batch, 2); all by default.

        Returns:
            (batch, 1, 28, 56).
        """
        y = self.network(fold_pixels(x), t, tokens=self.tokens(words), token_mask=allowed)
        return F.pixel_shuffle(y[:, :4], 2)

    def tokens(self, words: Tensor) -> Tensor:
        """The vectors of words (batch, 2) plus those of their places: (batch, 2, TOKEN)."""
        return self.words(words) + self.places.weight


def fold_pixels(x: Tensor) -> Tensor:
    """Pictures (batch, 1, 28, 56) with 2 × 2 pixels as four channels and their column as a fifth: (batch, 5, 14, 28).

    The column runs from −1 to 1.
    """
    fours = F.pixel_unshuffle(x, 2)
    column = torch.linspace(-1, 1, fours.shape[-1]).expand_as(fours[:, :1])
    return torch.cat([fours, column], dim=1)


def painter() -> WordUNet:
    """The stored network, in eval mode."""
    return load_model("words_unet").network(WordUNet)


@functools.cache
def garments(split: str) -> tuple[Tensor, Tensor]:
    """Our images of Fashion-MNIST, or with "full" its 60,000 training images: bytes (n, 1, 28, 28), and classes."""
    full = split == "full"
    data = load_fashion_mnist("train" if full else split, full=full)
    return data.images, data.labels


def pairs(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """Pictures of two garments side by side, (n / 2, 1, 28, 56), from −1 to 1, and their words, (n / 2, 2).

    The first half of the images stands on the left, the second on the right.

    Args:
        images: bytes, (n, 1, 28, 28).
        labels: classes, (n,).
    """
    left, right = (images.float() / 127.5 - 1).chunk(2)
    return torch.cat([left, right], dim=-1), torch.stack(labels.chunk(2), dim=1)


def word_loss(network: nn.Module, generator: torch.Generator) -> Tensor:
    """Mean loss of a batch in which one word in ten is withheld, and in one caption of twenty both are.

    An error counts 1/ᾱ times, at most 20 times: else the early steps of a drawing, where words matter, would count
    little. Up to this bound it is the loss of the velocity; Salimans and Ho (2022), "Progressive distillation for fast
    sampling of diffusion models", section 4.
    """
    images, labels = garments("full")
    rows = torch.randint(len(images), (2 * PAIRS,), generator=generator)
    pictures, words = pairs(images[rows], labels[rows])
    allowed = torch.rand(PAIRS, 2, generator=generator) >= 0.1
    allowed &= torch.rand(PAIRS, 1, generator=generator) >= 0.05
    t = torch.randint(1, STEPS + 1, (PAIRS,), generator=generator)
    noise = torch.randn(pictures.shape, generator=generator)
    predicted = network(diffusion().add_noise(pictures, t, noise), t, words, allowed)
    errors = (predicted - noise).square().mean(dim=(1, 2, 3))
    return (errors * weight_of(t)).mean()


def weight_of(t: Tensor) -> Tensor:
    """The weight of an error at each step of t (batch,), 1/ᾱ, at most 20: (batch,)."""
    return (1 / diffusion().alpha_bar[t]).clamp(max=20)


def fit(network: nn.Module, *, steps: int, lr: float, seed: int) -> dict[str, list[list[float]]]:
    """The curves of a training, after which the network has the running mean of its weights.

    Args:
        network: a `WordUNet`, trained in place.
        steps, lr: how many steps, and the largest rate: it rises over 100 steps, stays, and falls in the last quarter.
        seed: of the batches.

    Returns:
        Points [step, value]: "loss", the mean since the point before, and "held out", the loss of the running mean.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), betas=(0.9, 0.99))
    schedule = warmup_hold_decay(100, steps // 4, steps)
    mean = AveragedModel(network, avg_fn=running_mean)
    curves: dict[str, list[list[float]]] = {"loss": [], "held out": []}
    recent: list[float] = []

    def after_step(step: int, loss: float) -> None:
        mean.update_parameters(network)
        recent.append(loss / EVERY_STEPS)
        if step % EVERY_STEPS == 0:
            curves["loss"].append([step, round(sum(recent), 5)])
            recent.clear()
            if step % (10 * EVERY_STEPS) == 0 or step == steps:
                curves["held out"].append([step, round(held_out_word_loss(mean), 5)])

    take_steps(
        optimizer,
        lambda: word_loss(network, generator),
        steps=steps,
        rate=lambda step: lr * schedule(step),
        after_step=after_step,
    )
    network.load_state_dict(mean.module.state_dict())
    return curves


def running_mean(mean: Tensor, new: Tensor, count: Tensor) -> Tensor:
    """The new running mean of a weight: over the last tenth of the steps at first, over some thousand later.

    Args:
        mean: the mean before, in the shape of the weight.
        new: the weight.
        count: steps before, a tensor of one number.
    """
    return mean.lerp(new, max(0.001, 10 / (count + 10)))


def first_steps(noisy: Callable[..., Tensor], steps: int) -> list[float]:
    """The losses of the first steps of a new network on the course's 10,000 pictures.

    Args:
        noisy: adds the noise, as the exercise of that name does.
        steps: how many.
    """
    pictures, captions = pairs(*garments("train"))
    torch.manual_seed(0)
    network = WordUNet()

    def loss(generator: torch.Generator) -> Tensor:
        rows = torch.randint(len(pictures), (PAIRS,), generator=generator)
        t, noise = random_noise(pictures[rows], generator)
        x = noisy(pictures[rows], t, noise, diffusion().alpha_bar)
        errors = (network(x, t, captions[rows]) - noise).square().mean(dim=(1, 2, 3))
        return (errors * weight_of(t)).mean()

    return train(network, loss, steps=steps)


def some_inputs(network: WordUNet) -> tuple[Tensor, Tensor, Tensor]:
    """Two folded pairs of the test part, their steps, and the tokens of their captions, to compare networks with."""
    pictures, words = pairs(*garments("test"))
    return fold_pixels(pictures[:2]), torch.tensor([60, 140]), network.tokens(words[:2]).detach()


# Drawing ------------------------------------------------------------------------------------------

VISITED = torch.linspace(STEPS, 0, 43).round().long()
"""The steps of the diffusion that the sampler visits."""

SCALE = 3.0
"""The scale of the guidance."""


@torch.no_grad()
def held_out_word_loss(network: nn.Module) -> float:
    """Mean loss on 1,000 pairs of the test part, weighted as in the training, at steps spread evenly."""
    pictures, words = pairs(*garments("test"))
    errors, t = diffusion().errors(network, pictures, words)
    return (errors * weight_of(t)).mean().item()


def guided_by_words(
    network: Callable[..., Tensor], allowed: Tensor | None = None, scale: float = SCALE
) -> Callable[..., Tensor]:
    """A denoiser that gives the noise without any word, plus `scale` times what the words change.

    Ho and Salimans (2022), "Classifier-free diffusion guidance", equation 6, whose w is `scale` − 1.
    """

    def guess(x: Tensor, t: Tensor, words: Tensor) -> Tensor:
        without = network(x, t, words, torch.zeros(words.shape, dtype=torch.bool))
        return without + scale * (network(x, t, words, allowed) - without)

    return guess


def all_but_one(count: int) -> list[Tensor]:
    """Masks of the words that may be asked, all but the left one and all but the right one: each (count, 2)."""
    return [torch.arange(2).expand(count, 2) != word for word in (0, 1)]


@functools.cache
def classifier() -> ViT:
    """The stored vision transformer, whose accuracy on held-out pictures is 0.84."""
    return load_model("vit").network(ViT)


@torch.no_grad()
def named(pictures: Tensor) -> Tensor:
    """The classifier's classes of the left and the right halves, (batch, 2), of pictures (batch, 1, 28, 56)."""
    halves = pictures.clamp(-1, 1).chunk(2, dim=-1)
    return torch.stack([classifier()(half.contiguous()).argmax(dim=1) for half in halves], dim=1)


def random_captions(count: int, seed: int) -> Tensor:
    """Random pairs of different words, (count, 2)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.rand(count, len(NAMES), generator=generator).argsort(dim=1)[:, :2]


def noises(count: int, seed: int) -> Tensor:
    """The first noise of each picture, and the fresh noise of each step: (steps + 1, count, 1, 28, 56)."""
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(len(VISITED), count, 1, SIDE, 2 * SIDE, generator=generator)


@torch.no_grad()
def walk(
    network: Callable[..., Tensor],
    words: Tensor,
    noise: Tensor,
    *,
    allowed: Tensor | None = None,
    scale: float = SCALE,
    begin: int = 0,
    x: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """Pictures at each visited step from noise to garments, and the guess of the finished picture there.

    Args:
        network: a `WordUNet`.
        words: (batch, 2).
        noise: as `noises` gives it.
        allowed: which words may be asked, (batch, 2); all by default.
        scale: of the guidance.
        begin, x: a place in VISITED and the pictures there, to go on from.

    Returns:
        Pictures and guesses, each (visited steps, batch, 1, 28, 56); the last guess is the last picture.
    """
    x = noise[0] if x is None else x
    pictures, guesses = [x], []
    alpha_bar = diffusion().alpha_bar
    for i in range(begin, len(VISITED) - 1):
        a, b = alpha_bar[VISITED[i]], alpha_bar[VISITED[i + 1]]
        predicted = guided_by_words(network, allowed, scale)(x, VISITED[i].expand(len(x)), words)
        guesses.append(((x - (1 - a).sqrt() * predicted) / a.sqrt()).clamp(-1, 1))
        x = step_back(x, predicted, a, b, noise[i + 1])
        pictures.append(x)
    return torch.stack(pictures), torch.stack([*guesses, x])


@torch.no_grad()
def weights_of_left(network: WordUNet, pictures: Tensor, words: Tensor, step: Tensor) -> Tensor:
    """The attention on the left word by head, at each place of the coarse level on the way down.

    Args:
        network: in any mode.
        pictures: (batch, 1, 28, 56).
        words: (batch, 2).
        step: of the diffusion, a tensor of one number.

    Returns:
        (batch, heads, 7, 14).
    """
    with record_attention(network) as maps:
        network(pictures, step.expand(len(pictures)), words)
    return maps["network.down.1.cross"][..., 0].unflatten(-1, (7, 14))


def telling_head(network: WordUNet) -> int:
    """The head of `weights_of_left` whose weights differ most between the halves of a picture that is pure noise."""
    weights = weights_of_left(network, noises(20, 3)[0], random_captions(20, 3), VISITED[0])
    left, right = weights.mean(dim=(0, 2)).chunk(2, dim=-1)
    return int((left - right).mean(dim=-1).argmax())


def accuracy_of_drawings(network: nn.Module, *, count: int, seed: int) -> float:
    """The classifier's accuracy on the halves of `count` random captions, as the network draws them."""
    words = random_captions(count, seed)
    with evaluating(network):
        pictures, _ = walk(network, words, noises(count, seed))
    return (named(pictures[-1]) == words).float().mean().item()


def verdict(asked: Tensor, seen: Tensor) -> str:
    """A caption, (2,), in words, and in brackets what the classifier calls a half instead, of its classes (2,)."""
    halves = (
        NAMES[word] + ("" if word == other else f" ({NAMES[other]})")
        for word, other in zip(asked.tolist(), seen.tolist(), strict=True)
    )
    return " | ".join(halves)
