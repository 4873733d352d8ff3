"""A translator at work, step by step: where it looks, and what it would say next."""

import functools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from matplotlib.axes import Axes
from torch import Tensor, nn

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, pad, tokenize
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Choice, Explorer, IntRange, outline, still_copy
from course_utils.lessons.sequence_to_sequence.small_world import FOUR, SmallWorld, small_world
from course_utils.models.recurrent import AttentionTranslator
from course_utils.train.losses import translation_loss
from course_utils.train.schedules import warmup_decay
from course_utils.train.trainer import Trainer

__all__ = ["alignment"]

SENTENCES = (*FOUR[1:], "we read the book .", "is your sister in the kitchen ?")
STEPS = 10
SHOWN = 5
"""Bars of the next-token distribution."""


def alignment(
    model: nn.Module | None = None,
    world: SmallWorld | None = None,
    sentences: Sequence[str] = SENTENCES,
) -> Explorer:
    """Greedy decoding: the rows of weights so far, and the likeliest next tokens with their chances.

    Args:
        model: trained on `world`, with one attention that notes its map; without it a small one is trained
            here, which takes some seconds.
        sentences: to be translated, in English; at most ten tokens are decoded.

    Raises:
        ValueError: `model` is given without its `world`, or the reverse, or there is no sentence.
    """
    if (model is None) != (world is None):
        raise ValueError("model and world belong together; give both or neither")
    if not sentences:
        raise ValueError("sentences is empty; there is nothing to translate")
    if model is None:
        model, world = _trained()
    model = still_copy(model)
    runs = {sentence: _decode(model, world, sentence) for sentence in sentences}
    start = sentences[min(2, len(sentences) - 1)]
    longest = max(len(run.said) for run in runs.values())
    controls = {
        "sentence": Choice(list(sentences), start, label="Sentence"),
        "step": IntRange(1, longest, 1, label="Step"),
    }
    caption = (
        "Each row is one step of the decoder. Framed: where it looks now. Below: what it would say."
    )
    return Explorer("alignment", lambda: Decoding(runs), controls, caption=caption)


@dataclass(frozen=True)
class Run:
    """One greedy decoding.

    Attributes:
        source: source tokens, `<eos>` at the end.
        said: the tokens that were decoded.
        weights: (steps, source).
        chances: of the likeliest tokens at each step, (steps, SHOWN).
        tokens: those tokens.
    """

    source: list[str]
    said: list[str]
    weights: Tensor
    chances: list[list[float]]
    tokens: list[list[str]]


class Decoding:
    """The rows of weights so far with the row of now framed, and bars of the likeliest tokens."""

    def __init__(self, runs: dict[str, Run]):
        """Room for the longest source sentence and for all steps."""
        self.runs = runs
        self.longest = max(len(run.source) for run in runs.values())
        self.steps = max(len(run.said) for run in runs.values())
        self.picture, (above, below) = subplots(
            2, 1, alt="Attention and next token", width=4.1, height=5.2, height_ratios=[1.7, 1]
        )
        self._set_map(above)
        self._set_bars(below)

    def _set_map(self, ax: Axes) -> None:
        self.map = heatmap(
            ax, torch.zeros(self.steps, self.longest), xlabel=None, ylabel="Step: token said"
        )
        above = {"ha": "left", "va": "bottom", "fontsize": 8, "rotation": 35}
        self.columns = [ax.text(i - 0.2, -0.6, "", **above) for i in range(self.longest)]
        beside = {"ha": "right", "va": "center", "fontsize": 8}
        self.rows = [ax.text(-0.6, step, "", **beside) for step in range(self.steps)]
        (self.frame,) = ax.plot([], [], color=COLORS["vermilion"], linewidth=1.6)
        ax.set(xticks=[], yticks=[], xlim=(-0.5, self.longest - 0.5), ylim=(self.steps - 0.5, -0.5))
        ax.yaxis.labelpad = 50

    def _set_bars(self, ax: Axes) -> None:
        self.bars = ax.barh(range(SHOWN), [0.0] * SHOWN, color=COLORS["blue"], height=0.62)
        self.names = [
            ax.text(-0.02, i, "", ha="right", va="center", fontsize=8) for i in range(SHOWN)
        ]
        ax.set(xlim=(0, 1), ylim=(SHOWN - 0.5, -0.5), yticks=[])
        ax.set(xlabel="Probability of the next token")

    def draw(self, sentence: str, step: int) -> str:
        """Decode `sentence` up to `step`, or to its end."""
        run = self.runs[sentence]
        now = min(step, len(run.said)) - 1
        width = len(run.source)
        shown = torch.zeros(self.steps, self.longest)
        shown[: now + 1, :width] = run.weights[: now + 1]
        self.map.set_data(shown)
        for place, text in enumerate(self.columns):
            text.set_text(run.source[place] if place < width else "")
        for place, text in enumerate(self.rows):
            text.set_text(run.said[place] if place <= now else "")
        self.frame.set_data(*outline(-0.5, now - 0.5, width - 0.5, now + 0.5))
        tokens, chances = run.tokens[now], run.chances[now]
        for bar, name, token, chance in zip(self.bars, self.names, tokens, chances, strict=True):
            bar.set_width(chance)
            name.set_text(f"{token}  {chance:.0%}")
        most = int(run.weights[now].argmax())
        best = zip(tokens[:3], chances[:3], strict=True)
        listed = ", ".join(f"“{token}” {chance:.0%}" for token, chance in best)
        return (
            f"Translating “{sentence}”, step {now + 1} of {len(run.said)}: so far "
            f"“{' '.join(run.said[:now])}”. Most of the attention is on “{run.source[most]}”, "
            f"{run.weights[now, most]:.0%}. Likeliest next: {listed}."
        )


def _decode(model: Any, world: SmallWorld, sentence: str) -> Run:
    """Greedy decoding with everything written down: weights, likeliest tokens and their chances."""
    source, lengths = pad([[*world.source_vocab.encode(tokenize(sentence)), EOS]])
    state = model.start(source, lengths)
    inputs, chances, tokens = [BOS], [], []
    while len(inputs) <= STEPS and inputs[-1] != EOS:
        probabilities = model.step(torch.tensor(inputs[-1:]), state)[0].softmax(dim=-1)
        best = probabilities.topk(SHOWN)
        chances.append(best.values.tolist())
        tokens.append([world.target_vocab.tokens[index] for index in best.indices.tolist()])
        inputs.append(int(best.indices[0]))
    with record_attention(model) as maps:
        model(source, lengths, torch.tensor([inputs[:-1]]))
    said = [world.target_vocab.tokens[index] for index in inputs[1:]]
    return Run([*tokenize(sentence), "<eos>"], said, maps["attention"][0], chances, tokens)


@functools.cache
def _trained() -> tuple[AttentionTranslator, SmallWorld]:
    """A translator of a smaller world, good enough to be looked at."""
    world = small_world("fr", words=120, held_out=120)
    loader = world.loader(world.train, batch_size=16)
    trainer = Trainer(
        translation_loss(),
        epochs=8,
        lr=6e-3,
        schedule=warmup_decay(20, 8 * len(loader)),
        device="cpu",
        quiet=True,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AttentionTranslator(
            len(world.source_vocab), len(world.target_vocab), embed_dim=48, hidden_dim=48
        )
        trainer.fit(model, loader)
    return model, world
