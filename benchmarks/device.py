"""A step of training and a decoded token against plain models: in time on any device, and in operators.

On a GPU small models wait for their kernels to be started one by one, so what counts is how many there are. The
rows `operators-…` count them on a CPU, views as well, for our models as a GPU computes them; the others race. In
`recorded-…` the peer does what it does in `step-…`, and our kernels are recorded once and replayed.
Every side takes the same step: bfloat16 on a GPU (autocast), forward, mean loss, backward, gradients clipped at
1, fused AdamW.
"""

import statistics
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from unittest import mock

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from benchmarks.peers import Unavailable
from benchmarks.plain_models import PlainGPT, PlainTransformer, PlainViT
from benchmarks.timing import Row, Settings, faster, race
from course_utils import fused
from course_utils.data.images import ImageBatch
from course_utils.data.prose import TextBatch
from course_utils.data.translation import Batch
from course_utils.models.language import GPT
from course_utils.models.transformer import Transformer
from course_utils.models.vision import ViT
from course_utils.train.cuda_graphs import CapturedFunction
from course_utils.train.losses import classification_loss, language_model_loss, translation_loss

DROPOUT = 0.1
VOCABULARY = 80
STEPS = 4  # a round


@dataclass
class Sizes:
    """How large a contest is.

    Attributes:
        width: of the models.
        batch: rows of a batch.
        length: tokens of a text or a sentence.
        written: tokens that are written.
        half: whether the forward passes run in bfloat16.
    """

    width: int
    batch: int
    length: int
    written: int = 0
    half: bool = True


TINY, CPU = Sizes(16, 4, 8, 4), Sizes(128, 12, 64, 256, half=False)
GPU = {
    "gpt": Sizes(384, 64, 256, 256),
    "vit": Sizes(256, 512, 0),
    "transformer": Sizes(512, 128, 12),
}


def sizes(settings: Settings, name: str) -> Sizes:
    """How large a contest is where it runs."""
    return TINY if settings.tiny else GPU[name] if settings.device == "cuda" else CPU


Loss = Callable[[nn.Module, Any], Tensor]
"""(model, batch) → mean loss."""


def step_of(
    model: nn.Module, loss: Loss, batch: Any, device: str, *, half: bool, recorded: bool = False
) -> Callable[[], None]:
    """A step of training; `recorded` as by `Trainer(graphs=True)`."""
    parameters = list(model.to(device).train().parameters())
    groups = [
        {"params": [p for p in parameters if p.ndim > 1], "weight_decay": 0.1},
        {"params": [p for p in parameters if p.ndim < 2], "weight_decay": 0.0},
    ]
    optimizer = torch.optim.AdamW(groups, fused=True)

    def gradients(batch: Any) -> None:
        optimizer.zero_grad(set_to_none=not recorded)
        with torch.autocast(device, torch.bfloat16, enabled=half):
            mean = loss(model, batch)
        mean.backward()
        nn.utils.clip_grad_norm_(parameters, 1.0)

    start = CapturedFunction(gradients, device) if recorded else gradients

    def step() -> None:
        start(batch)
        optimizer.step()

    return step


def mean_of(loss: Any) -> Loss:
    """One of the library's losses as a mean over what it counts."""

    def mean(model: nn.Module, batch: Any) -> Tensor:
        total, count = loss(model, batch)
        return total / count

    return mean


# Contests: our step and the plain model's ------------------------------------------------------


@dataclass
class Contest:
    """Two models, their losses, and the batch that both read."""

    ours: nn.Module
    our_loss: Loss
    plain: nn.Module
    plain_loss: Loss
    batch: Any

    def steps(
        self, size: Sizes, device: str, *, recorded: bool = False
    ) -> tuple[Callable[[], None], Callable[[], None]]:
        """A step of each; of ours `recorded`."""
        batch = self.batch.to(device)
        our_step = step_of(
            self.ours, self.our_loss, batch, device, half=size.half, recorded=recorded
        )
        return our_step, step_of(self.plain, self.plain_loss, batch, device, half=size.half)


def gpt(size: Sizes) -> Contest:
    """A GPT of six layers on texts without padding."""
    text = torch.randint(VOCABULARY, (size.batch, size.length + 1))
    batch = TextBatch(text[:, :-1], torch.full((size.batch,), size.length), text[:, 1:])

    def plain_loss(model: nn.Module, batch: TextBatch) -> Tensor:
        logits = model(batch.tokens).flatten(0, 1)
        return F.cross_entropy(logits, batch.targets.flatten(), ignore_index=-1)

    ours, plain = writers(size)
    return Contest(ours, mean_of(language_model_loss()), plain, plain_loss, batch)


def writers(size: Sizes) -> tuple[GPT, PlainGPT]:
    """Our GPT and nanoGPT's, as large as each other, without dropout, as nanoGPT trains by default.

    Ours has one more dropout a layer, inside the network, which draws twice as many numbers as the others together.
    """
    length = size.length + size.written
    ours = GPT(VOCABULARY, embed_dim=size.width, num_layers=6, max_len=length, dropout=0.0)
    plain = PlainGPT(VOCABULARY, width=size.width, heads=4, layers=6, length=length, dropout=0.0)
    return ours, plain


def vit(size: Sizes) -> Contest:
    """A vision transformer of six layers on color images of 32 × 32, in patches of 4 × 4."""
    batch = ImageBatch(torch.randn(size.batch, 3, 32, 32), torch.randint(10, (size.batch,)))
    ours = ViT(
        image_size=32, patch_size=4, channels=3, embed_dim=size.width, ffn_dim=2 * size.width,
        num_layers=6, dropout=DROPOUT,
    )  # fmt: skip
    plain = PlainViT(
        image_size=32, patch_size=4, channels=3, width=size.width, heads=4, ffn_dim=2 * size.width,
        layers=6, dropout=DROPOUT,
    )  # fmt: skip

    def plain_loss(model: nn.Module, batch: ImageBatch) -> Tensor:
        return F.cross_entropy(model(batch.images), batch.labels)

    return Contest(ours, mean_of(classification_loss()), plain, plain_loss, batch)


def transformer(size: Sizes) -> Contest:
    """A Transformer of six layers a side on sentences with padding."""
    source, target = torch.randint(4, VOCABULARY, (2, size.batch, size.length))
    lengths = torch.randint(1, size.length + 1, (size.batch,))
    targets = torch.where(torch.arange(size.length) < lengths[:, None], target, 0)
    ours = Transformer(
        VOCABULARY, VOCABULARY, embed_dim=size.width, ffn_dim=4 * size.width, num_layers=6,
        dropout=DROPOUT,
    )  # fmt: skip
    plain = PlainTransformer(
        VOCABULARY, VOCABULARY, width=size.width, heads=4, ffn_dim=4 * size.width, layers=6,
        dropout=DROPOUT, norm_first=True,
    )  # fmt: skip
    for module in plain.modules():
        if isinstance(module, nn.MultiheadAttention):
            module.dropout = 0.0  # as in ours: on a CPU there is no fused operator with it

    def plain_loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(batch.source, batch.source_lens, batch.target_in)
        return F.cross_entropy(logits.flatten(0, 1), batch.target_out.flatten(), ignore_index=0)

    batch = Batch(source, lengths, target, targets, lengths)
    return Contest(ours, mean_of(translation_loss()), plain, plain_loss, batch)


CONTESTS: dict[str, tuple[str, Callable[[Sizes], Contest]]] = {
    "gpt": ("GPT against nanoGPT's structure", gpt),
    "vit": ("ViT against timm's structure", vit),
    "transformer": ("Transformer against nn.Transformer", transformer),
}


def racing(name: str, *, recorded: bool = False) -> Callable[[Settings], Row]:
    """A row of milliseconds a step."""
    what, contest = CONTESTS[name]

    def row(settings: Settings) -> Row:
        if recorded and settings.device != "cuda":
            raise Unavailable("CUDA records graphs on a GPU alone")
        size = sizes(settings, name)
        ours, plain = contest(size).steps(size, settings.device, recorded=recorded)

        def several(step: Callable[[], None]) -> Callable[[], None]:
            def steps() -> None:
                for _ in range(STEPS):
                    step()

            return steps

        label = f"{'recorded' if recorded else 'step'}-{name}"
        row = times(label, what, several(ours), several(plain), settings, STEPS, 1.0)
        if settings.device == "cuda":
            row.note = f"kernels a step: ours {kernels(ours)}, peer {kernels(plain)}"
        return row

    return row


def times(
    name: str,
    what: str,
    ours: Callable[[], None],
    peer: Callable[[], None],
    settings: Settings,
    number: int,
    target: float,
) -> Row:
    """Milliseconds of each of a `number` of steps or tokens, by the medians of a race."""
    mine, theirs = race(ours, peer, settings)
    return Row(
        name,
        what,
        "ms",
        ours=1e3 * statistics.median(mine) / number,
        peer=1e3 * statistics.median(theirs) / number,
        ratio=faster(mine, theirs),
        target=target,
    )


def kernels(run: Callable[[], None]) -> int:
    """How many kernels a GPU is told to start."""
    with torch.profiler.profile() as profile:
        run()
    return sum(event.count for event in profile.key_averages() if "LaunchKernel" in event.key)


# Decoding ----------------------------------------------------------------------------------------


def written(model: GPT, prompt: Tensor, count: int) -> None:
    """The likeliest tokens behind a prompt, on the cache."""
    state, token = model.start(), prompt
    for _ in range(count):
        token = model.step(token, state).argmax(-1)


def recomputed(next_logits: Callable[[Tensor], Tensor], prompt: Tensor, count: int) -> None:
    """The same by reading all that stands there, for each token again."""
    text = prompt
    for _ in range(count):
        text = torch.cat([text, next_logits(text).argmax(-1)[:, None]], dim=1)


def decoding(settings: Settings, *, against_ourselves: bool) -> Row:
    """Milliseconds a token on the cache, against recomputing with our model or with the plain one."""
    size = sizes(settings, "gpt")
    ours, plain = (model.to(settings.device).eval() for model in writers(size))
    prompt = torch.randint(VOCABULARY, (1, 4), device=settings.device)

    def again(text: Tensor) -> Tensor:
        return ours.output(ours.features(text)[:, -1])

    peer = again if against_ourselves else plain.next_logits
    with torch.inference_mode():
        return times(
            "decoding-recomputed" if against_ourselves else "decoding-plain",
            f"{size.written} tokens on the cache against "
            + ("recomputing" if against_ourselves else "nanoGPT"),
            lambda: written(ours, prompt, size.written),
            lambda: recomputed(peer, prompt, size.written),
            settings,
            size.written,
            2.0 if against_ourselves else 1.5,
        )


# Operators ---------------------------------------------------------------------------------------

FREE = ("empty", "new_empty", "_local_scalar_dense", "_record_function")
"""Beginnings of operators' names that start no kernel and make no view."""


class Operators(TorchDispatchMode):
    """Counts the operators that run inside it."""

    count = 0

    def __torch_dispatch__(self, operator, types, args=(), kwargs=None):
        name = operator.__name__
        self.count += not name.startswith(FREE)
        self.count -= 2 * name.startswith("bernoulli_")  # dropout is a single kernel of a GPU
        return operator(*args, **(kwargs or {}))


def count(run: Callable[[], object]) -> int:
    """How many operators run, with the projections joined where a GPU would, after a first time."""
    with mock.patch.object(fused, "_joining_pays", side_effect=lambda _: torch.is_grad_enabled()):
        run()
        with Operators() as operators:
            run()
    return operators.count


def counting(name: str) -> Callable[[Settings], Row]:
    """A row of operators a step."""
    what, contest = CONTESTS[name]
    return lambda _: counts_row(name, what, *contest(TINY).steps(TINY, "cpu"))


def counting_tokens(_: Settings) -> Row:
    """A row of operators a token."""
    ours, plain = (model.eval() for model in writers(TINY))
    state, token = ours.start(), torch.tensor([[1]])
    with torch.no_grad():
        return counts_row(
            "token",
            "A token on the cache against nanoGPT",
            lambda: ours.step(token, state).argmax(-1),
            lambda: plain.next_logits(token).argmax(-1),
        )


def counts_row(name: str, what: str, ours: Callable, peer: Callable) -> Row:
    """The operators of both."""
    mine, theirs = count(ours), count(peer)
    return Row(
        f"operators-{name}", what, "operators", ours=mine, peer=theirs, ratio=theirs / mine, target=1.0
    )  # fmt: skip


ROWS: dict[str, Callable[[Settings], Row]] = {
    **{f"step-{name}": racing(name) for name in CONTESTS},
    **{f"recorded-{name}": racing(name, recorded=True) for name in CONTESTS},
    "decoding-plain": lambda settings: decoding(settings, against_ourselves=False),
    "decoding-recomputed": lambda settings: decoding(settings, against_ourselves=True),
    **{f"operators-{name}": counting(name) for name in CONTESTS},
    "operators-token": counting_tokens,
}
