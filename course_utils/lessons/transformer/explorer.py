"""One token is exchanged: what changes in a Transformer, stage by stage, and how much."""

import functools

import numpy as np
import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from course_utils.attention import causal_mask
from course_utils.data.text import EOS, PAD
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.kit.explorer import Choice, Explorer, outline, still_copy
from course_utils.lessons.transformer.totals import FIRST, HOURS, SIZE, SIZES, batch_of, names
from course_utils.models.transformer import Transformer

__all__ = ["ripple"]

DIGITS = (3, 4, 4, 2)
"""Of the source; two places of padding follow."""
UNCHANGED = 1e-6  # of a token's vector, relative to its size: rounding


def ripple(model: nn.Module | None = None) -> Explorer:
    """Relative changes of all tokens' vectors, from the embeddings to the logits, when one token is exchanged.

    Args:
        model: a Transformer over the tokens of running totals, in the reader's classes or the package's. An
            untrained one by default.
    """
    stages = Stages(_trained() if model is None else still_copy(model))
    source, target = stages.labels
    changes = {f"source {place}: {name}": place for place, name in enumerate(source[: len(DIGITS)])}
    changes["source, padding"] = len(DIGITS) + 1
    changes |= {
        f"target {place}: {name}": place + 100 for place, name in enumerate(target) if place
    }
    controls = {
        "place": Choice(changes, 1, "Exchanged"),
        "causal": Choice({"with": 1, "without": 0}, 1, "Causal mask"),
    }
    caption = (
        "How much each vector changes, relative to its size. Read upwards, from the embeddings to memory and logits; "
        "an empty cell does not change at all. Framed: the token that is exchanged."
    )
    return Explorer("ripple", lambda: Ripple(stages), controls, caption=caption)


class Stages:
    """The vectors of all stages for one pair, and for the same with one token exchanged."""

    def __init__(self, model: nn.Module):
        """The model is on the CPU, in eval mode, without gradients."""
        self.model = model
        row = torch.tensor([[*DIGITS, 0, 0]])
        self.pair = batch_of(row, torch.tensor([len(DIGITS)]))
        padding = ["pad"] * 2
        self.labels = [names(self.pair.source[0]) + padding, names(self.pair.target_in[0])]
        self.length = len(self.labels[1])

    @torch.no_grad()
    def changed(self, place: int, causal: bool) -> tuple[np.ndarray, np.ndarray]:
        """(stages, source places) and (stages, target places): relative changes, NaN where there is none."""
        source, target = self.pair.source.clone(), self.pair.target_in[:, : self.length].clone()
        ids = target if place >= 100 else source
        at = (0, place % 100)
        ids[at] = FIRST + 2 if ids[at] in (PAD, EOS) else FIRST + (ids[at] - FIRST + 2) % HOURS
        before = self._run(self.pair.source, self.pair.target_in[:, : self.length], causal)
        after = self._run(source, target, causal)
        return tuple(_relative(*both) for both in zip(before, after, strict=True))

    def _run(self, source: Tensor, target: Tensor, causal: bool) -> tuple[list, list]:
        model, lens = self.model, self.pair.source_lens
        memory, memory_mask = model.encode(source, lens)
        x = model.embed(model.source_embedding, source)
        read = [x]
        for block in model.encoder:
            read.append(x := block(x, memory_mask))
        y = model.embed(model.target_embedding, target)
        outputs = [y]
        mask = causal_mask(self.length) if causal else None
        for block in model.decoder:
            outputs.append(y := block(y, memory, mask, memory_mask))
        return [*read[:-1], memory], [*outputs, model.output(model.decoder_norm(y))]


def _relative(before: list[Tensor], after: list[Tensor]) -> np.ndarray:
    """The last stage in the first row."""
    rows = []
    for old, new in zip(before, after, strict=True):
        change = (new - old)[0].norm(dim=-1) / old[0].norm(dim=-1)
        rows.append(change.masked_fill(change < UNCHANGED, torch.nan))
    return torch.stack(rows[::-1]).numpy()


class Ripple:
    """Two maps side by side, the encoder's and the decoder's."""

    def __init__(self, stages: Stages):
        """Everything is drawn once, as for no change."""
        self.stages = stages
        layers = len(stages.model.encoder)
        blocks = [f"block {number}" for number in range(layers - 2, -1, -1)]
        decoders = [f"block {number}" for number in range(layers - 1, -1, -1)]
        rows = [["memory", *blocks, "embedded"], ["logits", *decoders, "embedded"]]
        source, target = stages.labels
        self.picture, axes = subplots(
            1, 2, alt="Changes stage by stage", width=7.8, height=2.9, width_ratios=[len(source), len(target)],
        )  # fmt: skip
        titles = ("encoder", "decoder")
        self.maps = [
            _map(ax, title, labels, tokens)
            for ax, title, labels, tokens in zip(axes, titles, rows, (source, target), strict=True)
        ]
        style = {"color": COLORS["query"], "linewidth": 1.8, "clip_on": False}
        self.frames = [ax.plot([], [], **style)[0] for ax in axes]
        self.numbers = [
            [[ax.text(x, y, "", ha="center", va="center", fontsize=8) for x in range(len(tokens))]
             for y in range(len(labels))]
            for ax, labels, tokens in zip(axes, rows, (source, target), strict=True)
        ]  # fmt: skip

    def draw(self, place: int, causal: int) -> str:
        """Show what changes when this token is exchanged: 100 and more are places of the target."""
        changes = self.stages.changed(place, bool(causal))
        side, at = place >= 100, place % 100
        for image, table, words in zip(self.maps, changes, self.numbers, strict=True):
            image.set_data(np.ceil(6 * np.nan_to_num(table)) / 6)  # few colors: a light page
            for row, texts in zip(table, words, strict=True):
                for value, text in zip(row, texts, strict=True):
                    text.set_text("" if np.isnan(value) else f"{value:.2f}")
                    text.set_color("white" if value > 0.7 else "black")
        for which, frame in enumerate(self.frames):
            bottom = changes[which].shape[0] - 1
            box = outline(at - 0.5, bottom - 0.5, at + 0.5, bottom + 0.5)
            frame.set_data(*(box if which == side else ([], [])))
        memory, logits = (~np.isnan(table[0]) for table in changes)
        name = f"token {at} of the {'target' if side else 'source'}"
        with_mask = "with" if causal else "without"
        return (
            f"{name[0].upper()}{name[1:]} is exchanged, {with_mask} the causal mask. "
            f"Rows of the memory that change: {_listed(memory)}; rows of the logits: {_listed(logits)}."
        )


def _listed(changed: np.ndarray) -> str:
    return ", ".join(map(str, np.flatnonzero(changed))) or "none"


def _map(ax: Axes, title: str, rows: list[str], tokens: list[str]):
    empty = np.zeros((len(rows), len(tokens)))
    image = heatmap(ax, empty, title=title, queries=rows, keys=tokens, xlabel=None, ylabel=None)
    ax.tick_params(labelsize=9)
    return image


@functools.cache
def _trained() -> Transformer:
    """Not trained at all: what can change what is the same in any weights."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return Transformer(SIZE, SIZE, **SIZES | {"num_layers": 2}).eval().requires_grad_(False)
