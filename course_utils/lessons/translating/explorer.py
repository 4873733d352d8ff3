"""Layer, head and step of a translation, and the word that comes next."""

import functools
from dataclasses import dataclass

import numpy as np
import torch
from matplotlib.axes import Axes

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, Vocabulary, tokenize
from course_utils.data.translation import PairLoader, load_sentences
from course_utils.decoding import greedy
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Choice, Explorer, IntRange, outline, still_copy
from course_utils.models.transformer import Transformer
from course_utils.train.losses import translation_loss
from course_utils.train.trainer import Trainer

__all__ = ["transformer"]

SENTENCE = "i'm home ."
MAX_STEPS = 10
SHOWN = 5
"""Candidates for the next token that are drawn."""


def transformer(
    model: Transformer | None = None,
    source_vocab: Vocabulary | None = None,
    target_vocab: Vocabulary | None = None,
    sentence: str = SENTENCE,
) -> Explorer:
    """Maps of one layer and head while a sentence is translated greedily, and the next token.

    Args:
        model, source_vocab, target_vocab: a trained translator. Without them a small one learns a
            hundred short sentences here, which takes some seconds.
        sentence: to be translated; the first ten steps are shown.

    Raises:
        ValueError: only some of the first three are given.
    """
    given = [each is not None for each in (model, source_vocab, target_vocab)]
    if any(given) and not all(given):
        raise ValueError("give model, source_vocab and target_vocab, or none of the three")
    if model is None:
        model, source_vocab, target_vocab = _trained()
    trace = follow(still_copy(model), source_vocab, target_vocab, sentence)
    layers, heads = trace.cross.shape[0], trace.cross.shape[1] - 1
    steps = len(trace.said)
    controls = {
        "layer": IntRange(0, layers - 1, layers - 1, "Layer"),
        "head": Choice({"mean": 0} | {str(head): head + 1 for head in range(heads)}, 0, "Head"),
        "step": IntRange(1, steps, steps, "Step"),
    }
    caption = f"“{sentence}”, one token at a time. Framed: the row of the newest token, from which the next is said."
    return Explorer("transformer", lambda: Inside(trace), controls, caption=caption)


@dataclass(frozen=True)
class Trace:
    """One translation, looked at from inside; all maps of layer l and head h, the mean last.

    Attributes:
        source: source tokens, `<eos>` at the end.
        said: target tokens that the decoder read, `<bos>` at the beginning.
        encoder: (layers, heads + 1, source, source).
        decoder: (layers, heads + 1, steps, steps).
        cross: (layers, heads + 1, steps, source).
        likeliest: for each step, `SHOWN` pairs of token and probability.
    """

    source: list[str]
    said: list[str]
    encoder: np.ndarray
    decoder: np.ndarray
    cross: np.ndarray
    likeliest: list[list[tuple[str, float]]]


def follow(
    model: Transformer, source_vocab: Vocabulary, target_vocab: Vocabulary, sentence: str
) -> Trace:
    """Translate greedily, then run once more over what was said, and keep the maps.

    Args:
        model: on the CPU, in eval mode, without gradients.
    """
    tokens = tokenize(sentence)
    source = torch.tensor([[*source_vocab.encode(tokens), EOS]])
    lens = torch.tensor([source.shape[1]])
    said = [BOS, *greedy(model, source, lens, max_len=MAX_STEPS - 1)[0]]
    with record_attention(model) as maps:
        probabilities = model(source, lens, torch.tensor([said]))[0].softmax(dim=-1)
    best, ids = probabilities.topk(SHOWN, dim=-1)
    names = target_vocab.tokens
    return Trace(
        source=[*tokens, "<eos>"],
        said=[names[token] for token in said],
        encoder=_stacked(maps, ".attention"),
        decoder=_stacked(maps, ".self_attention"),
        cross=_stacked(maps, ".cross_attention"),
        likeliest=[
            [(names[token], p) for token, p in zip(row, ps, strict=True)]
            for row, ps in zip(ids.tolist(), best.tolist(), strict=True)
        ],
    )


def _stacked(maps: dict[str, torch.Tensor], kind: str) -> np.ndarray:
    """The maps of one kind, (layers, heads + 1, queries, keys), the mean of the heads last."""
    layers = torch.stack([weights[0] for name, weights in maps.items() if name.endswith(kind)])
    return torch.cat([layers, layers.mean(dim=1, keepdim=True)], dim=1).numpy()


class Inside:
    """The three kinds of map with the row of the newest token framed, and the likeliest next tokens."""

    def __init__(self, trace: Trace):
        """Each map as wide as its keys."""
        self.trace = trace
        source, said = trace.source, trace.said
        self.picture, axes = subplots(
            1, 4, alt="A translation from inside", width=8.5, height=3.0,
            width_ratios=[len(source), len(said), len(source), 0.8 * len(said)],
        )  # fmt: skip
        self.encoder = _map(axes[0], "encoder: self", source, source)
        self.decoder = _map(axes[1], "decoder: self", said, said)
        self.cross = _map(axes[2], "decoder: cross", said, source)
        axes[2].set_yticks([])  # the same as beside it
        style = {"color": COLORS["vermilion"], "linewidth": 1.6, "clip_on": False}
        self.frames = [  # each with the width of its map
            (*axes[1].plot([], [], **style), len(said)),
            (*axes[2].plot([], [], **style), len(source)),
        ]
        self._set_bars(axes[3])

    def _set_bars(self, ax: Axes) -> None:
        self.bars = ax.barh(range(SHOWN), [0.0] * SHOWN, color=COLORS["sky"], height=0.8)
        self.words = [ax.text(0.03, row, "", va="center", fontsize=8.5) for row in range(SHOWN)]
        ax.set(xlim=(0, 1), ylim=(SHOWN - 0.5, -0.5), xticks=[0, 0.5, 1], yticks=[])
        ax.set(title="next token")

    def draw(self, layer: int, head: int, step: int) -> str:
        """Show one layer and head (0: the mean, 1: head 0) when the decoder has read `step` tokens."""
        trace = self.trace
        chosen = layer, head - 1  # the mean stands last
        future = np.arange(len(trace.said))[:, None] >= step
        self.encoder.set_data(trace.encoder[chosen])
        for image, maps in ((self.decoder, trace.decoder), (self.cross, trace.cross)):
            rows = maps[chosen]
            image.set_data(np.ma.masked_array(rows, np.broadcast_to(future, rows.shape)))
        for frame, width in self.frames:
            frame.set_data(*outline(-0.5, step - 1.5, width - 0.5, step - 0.5))
        best = trace.likeliest[step - 1]
        for bar, word, (token, probability) in zip(self.bars, self.words, best, strict=True):
            bar.set_width(probability)
            word.set_text(f"{token}  {probability:.2f}")
        row = trace.cross[chosen][step - 1]
        token, probability = best[0]
        which = "the mean of the heads" if head == 0 else f"head {head - 1}"
        return (
            f"Layer {layer}, {which}, step {step} of {len(trace.said)}: having read "
            f"{' '.join(trace.said[:step])!r}, the decoder looks most at {trace.source[row.argmax()]!r}, with "
            f"weight {row.max():.2f}, and says {token!r} with probability {probability:.2f}."
        )


def _map(ax: Axes, title: str, queries: list[str], keys: list[str]):
    empty = np.zeros((len(queries), len(keys)))
    image = heatmap(ax, empty, title=title, queries=queries, keys=keys, xlabel=None, ylabel=None)
    ax.tick_params(axis="x", rotation=90, labelsize=8)
    ax.tick_params(axis="y", labelsize=8)
    return image


@functools.cache
def _trained() -> tuple[Transformer, Vocabulary, Vocabulary]:
    preferred = {
        pair.source: pair for pair in reversed(load_sentences("fr")) if len(pair.source) <= 3
    }
    four = [tuple(text.split()) for text in ("go .", "i lost .", "he's calm .", SENTENCE)]
    pairs = [preferred[source] for source in [*four, *sorted(preferred)[:96]]]
    source_vocab = Vocabulary(pair.source for pair in pairs)
    target_vocab = Vocabulary(pair.target for pair in pairs)
    loader = PairLoader(pairs, source_vocab, target_vocab, batch_size=50)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = Transformer(
            len(source_vocab), len(target_vocab), embed_dim=32, ffn_dim=64, dropout=0.0
        )
        trainer = Trainer(translation_loss(), epochs=40, lr=0.01, device="cpu", quiet=True)
        trainer.fit(model, loader)
    return model, source_vocab, target_vocab
