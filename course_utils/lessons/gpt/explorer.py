"""Drawing the next token, and who sees whom in three kinds of model."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_utils.attention import causal_mask
from course_utils.data.prose import IGNORE, masked_token
from course_utils.data.text import MASK
from course_utils.decoding import next_token_probs
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Choice, Explorer, IntRange, Slider

__all__ = ["masks", "sampling"]

TEMPERATURES = (0.0, 0.3, 0.6, 1.0, 1.5, 3.0)
TOP_K = (1, 2, 3, 5, 10, 0)
"""How many tokens may be drawn; 0 stands for all."""
SHOWN = 10
LINES = 6

WORDS = {
    "she drinks a cup of": (
        "tea coffee milk water juice soup wine the her sugar cold my beer hot oil",
        (5.0, 4.8, 3.1, 3.0, 2.3, 1.6, 1.4, 1.1, 0.7, 0.4, 0.2, 0.0, -0.3, -0.6, -1.5),
    ),
    "what time is": (
        "it the that this your lunch he school now dinner our she my there a",
        (7.5, 3.4, 2.6, 2.3, 1.9, 1.8, 1.0, 0.9, 0.7, 0.6, 0.3, 0.1, -0.2, -0.4, -1.0),
    ),
}
"""Prompt → tokens and logits, made up, for an explorer without a model."""


# Drawing ----------------------------------------------------------------------------------------


def sampling(
    logits: Mapping[str, Mapping[str, float]] | None = None,
    write: Callable[[str, float, int | None], list[str]] | None = None,
) -> Explorer:
    """Temperature and top-k against the probabilities of the next token, and what is then written.

    Args:
        logits: prompt → token → its logit, for at most three prompts; made-up ones by default.
        write: (prompt, temperature, top_k) → texts; by default draws of the next token alone.

    Raises:
        ValueError: there is no prompt, there are more than three, or one has fewer than 10 tokens.
    """
    if logits is None:
        logits = {p: dict(zip(words.split(), ls, strict=True)) for p, (words, ls) in WORDS.items()}
    if not 1 <= len(logits) <= 3 or min(map(len, logits.values())) < SHOWN:
        raise ValueError(f"logits has {len(logits)} prompts; 1 to 3 with {SHOWN} tokens each")
    tables = {prompt: Table.of(prompt, table) for prompt, table in logits.items()}
    texts = functools.cache(write or (lambda prompt, *limits: tables[prompt].texts(*limits)))
    prompts = tuple(tables)
    controls = {
        "prompt": Choice(prompts, prompts[0], label="Prompt"),
        "temperature": Slider(TEMPERATURES, 1.0, label="Temperature T", format="{:.1f}"),
        "top_k": Choice({"all" if k == 0 else str(k): k for k in TOP_K}, 0, label="Top k"),
    }
    caption = "Outlined: softmax of the logits. Filled: what is drawn from."
    return Explorer("sampling", lambda: Drawing(tables, texts), controls, caption=caption)


@dataclass(frozen=True)
class Table:
    """A prompt with its next tokens, the likeliest first, and their logits."""

    prompt: str
    tokens: list[str]
    logits: Tensor

    @classmethod
    def of(cls, prompt: str, table: Mapping[str, float]) -> "Table":
        """From token → logit."""
        tokens = sorted(table, key=table.get, reverse=True)
        return cls(prompt, tokens, torch.tensor([float(table[token]) for token in tokens]))

    def texts(self, temperature: float, top_k: int | None) -> list[str]:
        """The prompt with one more token, drawn a few times."""
        probs = next_token_probs(self.logits, temperature=temperature, top_k=top_k)
        generator = torch.Generator().manual_seed(0)
        draws = torch.multinomial(probs, LINES, replacement=True, generator=generator)
        return [f"{self.prompt} {self.tokens[index]}" for index in draws]


class Drawing:
    """Bars of the probabilities before and after the limits, and a few texts."""

    def __init__(
        self,
        tables: Mapping[str, Table],
        texts: Callable[[str, float, int | None], list[str]],
    ):
        """`texts` as `write` in `sampling`."""
        self.tables, self.texts = tables, texts
        self.picture, (self.ax, side) = subplots(
            1, 2, alt="Next tokens", width=8.5, height=3.0, width_ratios=[1, 1.35]
        )
        rows, ones = range(SHOWN), [1.0] * SHOWN
        self.before = self.ax.barh(rows, ones, height=0.8, color="none", edgecolor="black")
        self.after = self.ax.barh(rows, ones, height=0.5, color=COLORS["blue"])
        self.ax.set(xlim=(0, 1), ylim=(SHOWN - 0.4, -0.6), xlabel="Probability of the next token")
        self.ax.tick_params(axis="y", length=0)
        _bare(side)
        style = {"va": "top", "transform": side.transAxes}
        self.title = side.text(0, 0.97, "", fontsize=10, **style)
        self.lines = [side.text(0, 0.8 - 0.14 * i, "", fontsize=9, **style) for i in range(LINES)]

    def draw(self, prompt: str, temperature: float, top_k: int) -> str:
        """Draw from the `top_k` best tokens (0: from all) at this temperature."""
        table = self.tables[prompt]
        plain = table.logits.softmax(dim=0)
        probs = next_token_probs(table.logits, temperature=temperature, top_k=top_k or None)
        self.ax.set_yticks(range(SHOWN), table.tokens[:SHOWN])
        for before, after, p, q in zip(
            self.before, self.after, plain[:SHOWN], probs[:SHOWN], strict=True
        ):
            before.set_width(p.item())
            after.set_width(q.item())
        width = math.exp(torch.special.entr(probs).sum().item())
        self.title.set_text(f"As many as {width:.1f} equally likely tokens")
        written = self.texts(prompt, temperature, top_k or None)
        for i, line in enumerate(self.lines):
            line.set_text(_short(written[i]) if i < len(written) else "")
        best = zip(table.tokens[:3], probs[:3].tolist(), strict=True)
        listed = ", ".join(f"{token} {p:.0%}" for token, p in best)
        limit = f"only the best {top_k} tokens" if top_k else "all tokens"
        return (
            f"After “{prompt}”, at temperature {temperature:.1f} with {limit} allowed: {listed}. The choice is "
            f"as wide as {width:.1f} equally likely tokens. Written, for instance: {written[0]}"
        )


def _bare(ax: Axes) -> None:
    """Axes for text alone."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _short(text: str, limit: int = 52) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


# Masks ------------------------------------------------------------------------------------------

SENTENCE = ["she", "bought", "a", "red", "scarf", "last", "week", "."]
OTHERS = {"dog", "green", "he", "sold", "the"}
"""What else BERT may find in a place."""
SOURCE = 4
"""In the encoder–decoder, so many tokens are the source; the others are the target."""
KINDS = {
    "decoder-only (GPT)": "gpt",
    "encoder-only (BERT)": "bert",
    "encoder–decoder": "both",
}
NOTHING = "–"


def masks() -> Explorer:
    """Three kinds of model over one sentence: who sees whom, what is read, and what is asked."""
    controls = {
        "kind": Choice(KINDS, "bert", label="Model"),
        "place": IntRange(1, len(SENTENCE), 2, label="Place"),
        "seed": IntRange(0, 4, 3, label="Draw of masks"),
    }
    caption = "Blue: may attend. For BERT half of the tokens are picked here, instead of 15%."
    return Explorer("masks", Masks, controls, caption=caption)


class Masks:
    """The mask with one row framed, and a table of what each place reads and is asked."""

    def __init__(self):
        """An empty map and an empty table."""
        n = len(SENTENCE)
        self.picture, (ax, side) = subplots(
            1, 2, alt="Masks", width=8.5, height=3.2, width_ratios=[1, 1.25]
        )
        self.map = heatmap(ax, torch.zeros(n, n), queries=SENTENCE, keys=SENTENCE)
        sides = [-0.5, n - 0.5, n - 0.5, -0.5, -0.5]
        (self.row,) = ax.plot(sides, [0] * 5, color=COLORS["vermilion"])
        side.set(xlim=(0, 3), ylim=(n - 0.3, -1.0))
        _bare(side)
        for x, text in enumerate(("place", "reads", "is asked")):
            side.text(x + 0.1, -0.75, text, fontsize=9, color="0.4")
        self.cells = [[side.text(x + 0.1, y, "", fontsize=10) for x in range(3)] for y in range(n)]
        (self.band,) = side.fill([0, 3, 3, 0], [0] * 4, color=COLORS["yellow"], alpha=0.4)

    def draw(self, kind: str, place: int, seed: int) -> str:
        """Look from one place in one kind of model; `seed` draws what BERT does not read."""
        n, y = len(SENTENCE), place - 1
        allowed = _allowed(kind)
        reads, asked = _reads_and_asked(kind, seed)
        self.map.set_data(allowed.float().numpy())
        self.row.set_ydata([y - 0.5, y - 0.5, y + 0.5, y + 0.5, y - 0.5])
        self.band.set_xy([(0, y - 0.6), (3, y - 0.6), (3, y + 0.35), (0, y + 0.35)])
        for i, texts in enumerate(zip(range(1, n + 1), reads, asked, strict=True)):
            for cell, text in zip(self.cells[i], texts, strict=True):
                cell.set_text(text)
            self.cells[i][1].set_color("black" if reads[i] == SENTENCE[i] else COLORS["vermilion"])
        seen = [word for word, ok in zip(reads, allowed[y].tolist(), strict=True) if ok]
        count = sum(word != NOTHING for word in asked)
        question = "is asked nothing" if asked[y] == NOTHING else f"is asked for “{asked[y]}”"
        model = next(name for name, each in KINDS.items() if each == kind)
        return (
            f"{model}: place {place} reads “{reads[y]}”, sees {len(seen)} of {n} places "
            f"({' '.join(seen)}), and {question}. {count} places are asked for something."
        )


def _allowed(kind: str) -> Tensor:
    """(places, places): who may attend to whom."""
    n = len(SENTENCE)
    if kind == "bert":
        return torch.ones(n, n, dtype=torch.bool)
    if kind == "both":
        return causal_mask(n) | (torch.arange(n) < SOURCE)
    return causal_mask(n)


def _reads_and_asked(kind: str, seed: int) -> tuple[list[str], list[str]]:
    """The token that each place reads, and the one that it is asked for."""
    if kind == "bert":
        words = sorted(OTHERS.union(SENTENCE))
        first = MASK + 1  # the id of the first word
        ids = torch.tensor([[first + words.index(word) for word in SENTENCE]])
        hide = masked_token(first + len(words), share=0.5)
        batch = hide(ids, torch.tensor([len(SENTENCE)]), torch.Generator().manual_seed(seed))
        names = {MASK: "<mask>"} | dict(enumerate(words, start=first))
        picked = (batch.targets[0] != IGNORE).tolist()
        asked = [word if pick else NOTHING for word, pick in zip(SENTENCE, picked, strict=True)]
        return [names[index] for index in batch.tokens[0].tolist()], asked
    asked = [*SENTENCE[1:], "<eos>"]
    if kind == "both":
        asked[: SOURCE - 1] = [NOTHING] * (SOURCE - 1)
    return SENTENCE, asked
