"""Drawing the next token."""

import functools
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from torch import Tensor

from course_utils.decoding import next_token_probs
from course_utils.figures import COLORS, subplots
from course_utils.lessons.explorer import Choice, Explorer, Slider
from course_utils.lessons.runs import stored_runs

__all__ = ["sampling"]

TEMPERATURES = (0.0, 0.5, 1.0, 1.5, 3.0)
TOP_K = (1, 3, 10, 0)
"""How many tokens may be drawn; 0 stands for all."""
SHOWN = 10
LINES = 6

# Drawing ----------------------------------------------------------------------------------------


def sampling(
    logits: Mapping[str, Mapping[str, float]] | None = None,
    write: Callable[[str, float, int | None], list[str]] | None = None,
) -> Explorer:
    """Temperature and top-k against the probabilities of the next token, and what is then written.

    Args:
        logits: prompt → token → its logit, for at most three prompts; by default, in the book for instance, those
            of a GPT that was trained as the chapter trains its own, with what it wrote.
        write: (prompt, temperature, top_k) → texts; with `logits` alone, draws of the next token.

    Raises:
        ValueError: there is no prompt, there are more than three, or one has fewer than 10 tokens.
    """
    if logits is None:
        logits, write = _stored()
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


def _stored() -> tuple[dict[str, dict[str, float]], Callable[[str, float, int | None], list[str]]]:
    """Logits and texts of the run `written`, as `sampling` takes them."""
    (run,) = stored_runs("gpt", "written")
    texts = {one["prompt"]: one["texts"] for one in run.examples}
    logits = {one["prompt"]: one["logits"] for one in run.examples}
    return logits, lambda prompt, temperature, top_k: texts[prompt][f"{temperature:g} {top_k or 0}"]


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
        self.ax.set_xlim(0, max(0.1, 1.05 * max(plain.max().item(), probs.max().item())))
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
