"""Two garments of 28 × 28 side by side, drawn for a caption of two words that each pixel may ask.

`Captioned` is the network on the chapter's first screen, `fit` its training, and `walk` draws with or without a word.
A judge, the stored vision transformer, names what was drawn.
"""

import base64
import functools
import io
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
import torch.nn.functional as F
from IPython.display import Markdown
from matplotlib.axes import Axes
from PIL import Image
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel

from course_utils.data.images import load_fashion_mnist
from course_utils.figures import COLORS
from course_utils.files import atomic_write
from course_utils.kit.runs import StoredRun, stored_run, stored_runs
from course_utils.lessons.diffusion.sampling import (
    STEPS,
    diffusion,
    noise_like,
    revived,
    step_back,
    train,
)
from course_utils.models.diffusion import UNet
from course_utils.models.vision import ViT
from course_utils.recording import record_attention
from course_utils.runtime import evaluating
from course_utils.train.schedules import warmup_hold_decay

NAMES = ("T-shirt", "trousers", "pullover", "dress", "coat",
         "sandal", "shirt", "sneaker", "bag", "ankle boot")  # fmt: skip
SIDE, TOKEN, PAIRS = 28, 32, 16

EVERY_STEPS = 100
"""Of a training: so often its loss is noted, and its checkpoint written."""


class Captioned(nn.Module):
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
        """
        y = self.network(folded(x), t, tokens=self.tokens(words), token_mask=allowed)
        return F.pixel_shuffle(y[:, :4], 2)

    def tokens(self, words: Tensor) -> Tensor:
        """The vectors of the words plus those of their places: (batch, 2, TOKEN)."""
        return self.words(words) + self.places.weight


def folded(x: Tensor) -> Tensor:
    """Pictures, (batch, 1, 28, 56), with 2 × 2 pixels as four channels, and the column as a fifth, from -1 to 1."""
    fours = F.pixel_unshuffle(x, 2)
    column = torch.linspace(-1, 1, fours.shape[-1]).expand_as(fours[:, :1])
    return torch.cat([fours, column], dim=1)


def painter() -> Captioned:
    """The stored network."""
    return revived(Captioned, "words_unet")


@functools.cache
def garments(split: str) -> tuple[Tensor, Tensor]:
    """Our images of Fashion-MNIST, or with "full" its 60,000 training images: bytes (n, 1, 28, 28), and classes."""
    full = split == "full"
    data = load_fashion_mnist("train" if full else split, full=full)
    return data.images, data.labels


def pairs(images: Tensor, labels: Tensor) -> tuple[Tensor, Tensor]:
    """The first half of the images on the left, the second on the right, from -1 to 1, and their words."""
    left, right = (images.float() / 127.5 - 1).chunk(2)
    return torch.cat([left, right], dim=-1), torch.stack(labels.chunk(2), dim=1)


def captioned_loss(network: nn.Module, generator: torch.Generator) -> Tensor:
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
    """How often an error at a step counts."""
    return (1 / diffusion().alpha_bar[t]).clamp(max=20)


def fit(
    network: nn.Module, *, steps: int, lr: float, seed: int, checkpoint: Path | None = None
) -> dict[str, list[list[float]]]:
    """Train, then take the running mean of the weights.

    Args:
        network: a `Captioned`.
        steps, lr: how many steps, and the largest rate: it rises over 100 steps, stays, and falls in the last quarter.
        seed: of the batches.
        checkpoint: a file from which an interrupted training goes on; written every EVERY_STEPS.

    Returns:
        Curves, [step, value]: "loss", the mean since the last step noted, and "held out", that of the running mean.
    """
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.Adam(network.parameters(), lr=lr, betas=(0.9, 0.99))
    rate = warmup_hold_decay(100, steps // 4, steps)
    mean = AveragedModel(
        network, avg_fn=lambda old, new, n: old.lerp(new, max(0.001, 10 / (n + 10)))
    )
    curves: dict[str, list[list[float]]] = {"loss": [], "held out": []}
    begin, recent = 1, 0.0
    if checkpoint is not None and checkpoint.is_file():
        kept = torch.load(checkpoint)
        network.load_state_dict(kept["network"])
        optimizer.load_state_dict(kept["optimizer"])
        generator.set_state(kept["generator"])
        mean.load_state_dict(kept["mean"])
        curves, begin = kept["curves"], kept["step"] + 1
    for step in range(begin, steps + 1):
        optimizer.param_groups[0]["lr"] = lr * rate(step)
        loss = captioned_loss(network, generator)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimizer.step()
        mean.update_parameters(network)
        recent += loss.item() / EVERY_STEPS
        if step % EVERY_STEPS == 0:
            curves["loss"].append([step, round(recent, 5)])
            recent = 0.0
            if step % (10 * EVERY_STEPS) == 0 or step == steps:
                curves["held out"].append([step, round(held_out_loss(mean), 5)])
            if checkpoint is not None:
                kept = {"network": network.state_dict(), "optimizer": optimizer.state_dict(),
                        "generator": generator.get_state(), "mean": mean.state_dict(), "curves": curves,
                        "step": step}  # fmt: skip
                checkpoint.parent.mkdir(parents=True, exist_ok=True)
                with atomic_write(checkpoint) as part:
                    torch.save(kept, part)
    network.load_state_dict(mean.module.state_dict())
    return curves


def first_steps(noisy: Callable[..., Tensor], steps: int) -> list[float]:
    """The losses of a fresh network on the course's 10,000 pictures, whose noise `noisy` adds, as the exercise does."""
    pictures, captions = pairs(*garments("train"))
    torch.manual_seed(0)
    network, losses = Captioned(), []

    def loss(generator: torch.Generator) -> Tensor:
        rows = torch.randint(len(pictures), (PAIRS,), generator=generator)
        t, noise = noise_like(pictures[rows], generator)
        x = noisy(pictures[rows], t, noise, diffusion().alpha_bar)
        errors = (network(x, t, captions[rows]) - noise).square().mean(dim=(1, 2, 3))
        value = (errors * weight_of(t)).mean()
        losses.append(value.item())
        return value

    train(network, loss, steps=steps)
    return losses


def some_inputs(network: Captioned) -> tuple[Tensor, Tensor, Tensor]:
    """Two folded pairs of the test part, their steps, and the tokens of their captions, to compare networks with."""
    pictures, words = pairs(*garments("test"))
    return folded(pictures[:2]), torch.tensor([60, 140]), network.tokens(words[:2]).detach()


# Drawing ------------------------------------------------------------------------------------------

VISITED = torch.linspace(STEPS, 0, 43).round().long()
"""The steps of the diffusion that the sampler visits."""

SCALE = 3.0
"""Of the guidance."""


@torch.no_grad()
def held_out_loss(network: nn.Module) -> float:
    """Mean loss on 1,000 pairs of the test part, weighted as in the training, at steps spread evenly."""
    pictures, words = pairs(*garments("test"))
    errors, t = diffusion().errors(network, pictures, words)
    return (errors * weight_of(t)).mean().item()


def guided(
    network: Callable[..., Tensor], allowed: Tensor | None = None, scale: float = SCALE
) -> Callable[..., Tensor]:
    """The noise without any word, plus `scale` times what the words change.

    Ho and Salimans (2022), "Classifier-free diffusion guidance", equation 6, whose w is `scale` − 1.
    """

    def guess(x: Tensor, t: Tensor, words: Tensor) -> Tensor:
        untold = network(x, t, words, torch.zeros(words.shape, dtype=torch.bool))
        return untold + scale * (network(x, t, words, allowed) - untold)

    return guess


@functools.cache
def judge() -> ViT:
    """The stored vision transformer, right on 0.84 of held-out pictures."""
    return revived(ViT, "vit")


@torch.no_grad()
def named(pictures: Tensor) -> Tensor:
    """What the judge calls the left halves and the right ones: classes, (batch, 2)."""
    halves = pictures.clamp(-1, 1).chunk(2, dim=-1)
    return torch.stack([judge()(half.contiguous()).argmax(dim=1) for half in halves], dim=1)


def random_captions(count: int, seed: int) -> Tensor:
    """Pairs of different words, (count, 2)."""
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
    """From the noise to garments: the picture at each visited step, and the guess of the finished one there.

    Args:
        network: a `Captioned`.
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
        predicted = guided(network, allowed, scale)(x, VISITED[i].expand(len(x)), words)
        guesses.append(((x - (1 - a).sqrt() * predicted) / a.sqrt()).clamp(-1, 1))
        x = step_back(x, predicted, a, b, noise[i + 1])
        pictures.append(x)
    return torch.stack(pictures), torch.stack([*guesses, x])


@torch.no_grad()
def weights_of_left(network: Captioned, pictures: Tensor, words: Tensor, step: Tensor) -> Tensor:
    """Weight on the left word at each place of the coarse level, on the way down, by head: (batch, heads, 7, 14)."""
    with record_attention(network) as maps:
        network(pictures, step.expand(len(pictures)), words)
    return maps["network.down.1.cross"][..., 0].unflatten(-1, (7, 14))


def telling_head(network: Captioned) -> int:
    """The head of that attention that tells the halves best apart in pure noise."""
    weights = weights_of_left(network, noises(20, 3)[0], random_captions(20, 3), VISITED[0])
    left, right = weights.mean(dim=(0, 2)).chunk(2, dim=-1)
    return int((left - right).mean(dim=-1).argmax())


def named_right(network: nn.Module, *, count: int, seed: int) -> float:
    """Share of the halves of `count` random captions that the judge names right."""
    words = random_captions(count, seed)
    with evaluating(network):
        pictures, _ = walk(network, words, noises(count, seed))
    return (named(pictures[-1]) == words).float().mean().item()


def forbidden(
    network: Captioned, *, count: int, seed: int, scale: float = SCALE
) -> tuple[dict[str, float], dict[str, list[list[float]]]]:
    """What becomes of a half whose word is forbidden from a step on, and where pixels look with both words.

    Of `count` random captions the left word and the right one are forbidden in turn. Only halves count that are as
    named with both words.

    Returns:
        Shares by "step, what": "named" and "other", the half is as its own word or as the other one says, and
        "beside", the untouched half is still as its word says; and "right", the share of halves as named with both
        words. Then curves, [step, weight of the left word], by half.
    """
    words, noise = random_captions(count, seed), noises(count, seed)
    pictures, _ = walk(network, words, noise, scale=scale)
    right = named(pictures[-1]) == words
    result = {"right": right.float().mean().item()}
    for begin in BEGINS:
        shares: dict[str, list[Tensor]] = {"named": [], "other": [], "beside": []}
        for word, allowed in enumerate(all_but_one(count)):
            drawn, _ = walk(
                network, words, noise, allowed=allowed, scale=scale, begin=begin, x=pictures[begin]
            )
            classes, mine = named(drawn[-1]), right[:, word]
            shares["named"].append((classes[:, word] == words[:, word])[mine])
            shares["other"].append((classes[:, word] == words[:, 1 - word])[mine])
            shares["beside"].append((classes == words)[:, 1 - word][right[:, 1 - word]])
        for what, halves in shares.items():
            result[f"{VISITED[begin]}, {what}"] = torch.cat(halves).float().mean().item()
    curves: dict[str, list[list[float]]] = {"left half": [], "right half": []}
    head = telling_head(network)
    for i in range(0, len(VISITED) - 1, EVERY):
        weights = weights_of_left(network, pictures[i], words, VISITED[i])[:, head]
        for name, half in zip(curves, weights.chunk(2, dim=-1), strict=True):
            curves[name].append([VISITED[i].item(), round(half.mean().item(), 3)])
    return {name: round(share, 3) for name, share in result.items()}, curves


def asked_late(
    network: Captioned, *, count: int, seed: int, scale: float = SCALE
) -> dict[str, float]:
    """The reverse of `forbidden`: a half whose word is missing at first, and may be asked only from a step on.

    The captions, the noise and the halves that count are those of `forbidden`.

    Returns:
        Shares by "step, what": "named" and "other", the half is as its own word or as the other one says.
    """
    words, noise = random_captions(count, seed), noises(count, seed)
    right = named(walk(network, words, noise, scale=scale)[0][-1]) == words
    without = [
        walk(network, words, noise, allowed=allowed, scale=scale)[0]
        for allowed in all_but_one(count)
    ]
    result = {}
    for begin in BEGINS[1:]:
        own, other = [], []
        for word, pictures in enumerate(without):
            drawn, _ = walk(network, words, noise, scale=scale, begin=begin, x=pictures[begin])
            half, mine = named(drawn[-1])[:, word], right[:, word]
            own.append((half == words[:, word])[mine])
            other.append((half == words[:, 1 - word])[mine])
        for what, halves in (("named", own), ("other", other)):
            result[f"{VISITED[begin]}, {what}"] = round(torch.cat(halves).float().mean().item(), 3)
    return result


def without_words(
    network: Captioned, *, count: int, seed: int, scale: float = SCALE
) -> dict[str, float]:
    """As `forbidden` and `asked_late`, but no word at all may be asked, so no other word takes over.

    Returns:
        Shares of halves as named by "step, until" and "step, from": words are asked until this step, or from it on.
    """
    words, noise = random_captions(count, seed), noises(count, seed)
    none = torch.zeros(count, 2, dtype=torch.bool)
    pictures, _ = walk(network, words, noise, scale=scale)
    right = named(pictures[-1]) == words
    untold, _ = walk(network, words, noise, allowed=none, scale=scale)
    result = {}
    for begin in BEGINS:
        until, _ = walk(
            network, words, noise, allowed=none, scale=scale, begin=begin, x=pictures[begin]
        )
        later, _ = walk(network, words, noise, scale=scale, begin=begin, x=untold[begin])
        for name, drawn in (("until", until), ("from", later)):
            kept = (named(drawn[-1]) == words)[right].float().mean().item()
            result[f"{VISITED[begin]}, {name}"] = round(kept, 3)
    return result


def all_but_one(count: int) -> list[Tensor]:
    """Which words may be asked without the left word, and without the right one: each (count, 2)."""
    return [torch.arange(2).expand(count, 2) != word for word in (0, 1)]


# What the page shows ------------------------------------------------------------------------------

EVERY = 3
"""Steps of the sampler between two frames of the page."""

BEGINS = (0, 3, 6, 9, 12, 18, 24)
"""Places in VISITED from which on a word is forbidden, to count what becomes of its half; PRESSED: on the page."""

PRESSED = (0, 6, 12, 18, 24, 30)

CAPTIONS = ((1, 9), (1, 0), (8, 3), (9, 1), (5, 2), (7, 4), (0, 7), (9, 8))


def sheet(rows: Tensor) -> str:
    """Runs × frames, (runs, frames, 28, 56), as one PNG of 16 grays, in base64."""
    grays = ((rows.clamp(-1, 1) + 1) * 7.5).round().byte()
    image = Image.fromarray(grays.transpose(1, 2).flatten(2).flatten(0, 1).numpy(), "P")
    image.putpalette([17 * gray for gray in range(16) for _ in range(3)])
    buffer = io.BytesIO()
    image.save(buffer, "PNG", bits=4, optimize=True)
    return base64.b64encode(buffer.getvalue()).decode()


def letters(weights: Tensor) -> str:
    """A map, a letter for each place: # is 0, } is 1."""
    return "".join(chr(35 + round(90 * weight)) for weight in weights.flatten().tolist())


def page_of(network: Captioned, seed: int) -> dict:
    """What `live.words` shows: for each of CAPTIONS a sheet of frames, maps, and what the judge says of the ends."""
    words, noise = torch.tensor(CAPTIONS), noises(len(CAPTIONS), seed)
    frames = range(0, len(VISITED), EVERY)
    network.eval()
    pictures, guesses = walk(network, words, noise)
    runs = [guesses[::EVERY, :, 0]]
    head = telling_head(network)
    maps = [weights_of_left(network, pictures[i], words, VISITED[i])[:, head] for i in frames[:-1]]
    ends: list[list[Tensor]] = [[], []]
    for word, allowed in enumerate(all_but_one(len(words))):
        for begin in PRESSED:
            drawn, seen = walk(
                network, words, noise, allowed=allowed, begin=begin, x=pictures[begin]
            )
            before = -torch.ones(begin // EVERY, *runs[0].shape[1:])
            runs.append(torch.cat([before, seen[::EVERY, :, 0]]))
            ends[word].append(named(drawn[-1])[:, word])
    said = named(pictures[-1])
    return {
        "frames": len(frames),
        "starts": [begin // EVERY for begin in PRESSED],
        "steps": VISITED[::EVERY].tolist(),
        "captions": [
            {
                "words": [NAMES[word] for word in words[i].tolist()],
                "named": [NAMES[word] for word in said[i].tolist()],
                "sheet": sheet(torch.stack([run[:, i] for run in runs])),
                "maps": [letters(frame[i]) for frame in maps],
                "changes": [[NAMES[end[i]] for end in each] for each in ends],
            }
            for i in range(len(words))
        ],
    }


# Figures ------------------------------------------------------------------------------------------


def verdict(asked: Tensor, seen: Tensor) -> str:
    """A caption, and in brackets what the judge calls a half instead."""
    halves = (
        NAMES[word] + ("" if word == other else f" ({NAMES[other]})")
        for word, other in zip(asked.tolist(), seen.tolist(), strict=True)
    )
    return " | ".join(halves)


def plot_window(
    ax: Axes, gone: Sequence[StoredRun], late: Sequence[StoredRun], alone: Sequence[StoredRun]
) -> None:
    """Shares of halves that become what their word says: asked only until a step, and asked only from a step on.

    Dotted, the means of `alone`, where no other word may be asked instead.
    """
    for runs, color, label in (
        (gone, "key", "asked until this step"),
        (late, "query", "asked only from this step on"),
    ):
        for run in runs:
            steps = [int(VISITED[i]) for i in BEGINS if f"{VISITED[i]}, named" in run.result]
            shares = [run.result[f"{step}, named"] for step in steps]
            look = {"color": COLORS[color], "label": label if run is runs[0] else None}
            ax.plot(steps, shares, "o-", ms=3, **look)
    for name, color, label in (
        ("until", "key", "the same, without a rival"),
        ("from", "query", None),
    ):
        steps = [int(VISITED[i]) for i in BEGINS]
        rows = [[run.result[f"{step}, {name}"] for step in steps] for run in alone]
        means = [sum(column) / len(rows) for column in zip(*rows, strict=True)]
        ax.plot(steps, means, ":", color=COLORS[color], label=label)
    ax.set(xlabel="Step", ylabel="Halves as their word says", xlim=(STEPS + 4, 82), ylim=(0, 1.02))
    ax.yaxis.set_major_formatter("{x:.0%}")
    ax.legend(title="The word is", fontsize=8, loc="center left", bbox_to_anchor=(1.02, 0.5))


def how_sure() -> Markdown:
    """What the chapter's claims rest on, with the numbers of the stored runs."""
    training = stored_run("diffusion", "garments_for_words")
    rates = stored_runs("diffusion", "rates_for_words")
    plain = stored_runs("diffusion", "forbidding", scale=1.0)
    plain_late = stored_runs("diffusion", "asking_late", scale=1.0)
    (early, before), (_, end) = (training.curves["held out"][i] for i in (-3, -1))

    def mean(runs: Sequence[StoredRun], name: str) -> float:
        return sum(run.result[name] for run in runs) / len(runs)

    def share(runs: Sequence[StoredRun], name: str) -> str:
        return f"{100 * mean(runs, name):.0f} %"

    means = (
        f"{mean([run for run in rates if run.config['rate'] == rate], 'loss'):.3f} at {rate:g}"
        for rate in sorted({run.config["rate"] for run in rates})
    )
    return Markdown(
        "<details><summary><em>How sure is this?</em></summary>\n\n"
        f"All of it is one network, trained once, for {training.config['steps']:,} steps at a rate of "
        f"{training.config['lr']:g}. Trainings of {rates[0].config['steps']} steps, with three seeds each, had a mean "
        f"weighted loss of {', '.join(means)}. (The two best rates differ by less than two seeds do, so we took the "
        f"smaller.) In the long training the held-out loss fell from {before:.3f} at step {early:,} to {end:.3f} at "
        f"the end. The judge names {share([training], 'named')} of the halves of three hundred random captions right. "
        f"Without guidance it names {share(plain, 'right')} right, and 84 % of real garments, so guided drawings are "
        "more typical than real ones (except for shirts).\n\n"
        "In the picture of forbidding each line is one draw of 24 captions, and we only count halves that were right "
        "with both words. Guidance makes the stretch sharper, because it pushes a half towards the word that may be "
        f"asked. Without it, {share(plain, '114, named')} of the halves keep a word that is forbidden from step 114 "
        f"on, and {share(plain_late, '171, named')} find a word that may be asked only from step 171 on; the two ways "
        "are then worth the same near step 157, and the half whose word stays keeps it in "
        f"{share(plain, '200, beside')} of the cases if the other word is missing from the start. The colors are those "
        "of one head of the first cross-attention, chosen because it tells the halves best apart. We "
        "haven't tried whether added vectors would do as well at this size, but on the further page, at 8 × 8 pixels, "
        "they come close."
        "\n\n</details>"
    )
