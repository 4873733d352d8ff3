"""Drawing the next token, and who sees whom in three kinds of model."""

import functools
import math
from collections.abc import Callable, Mapping

import torch
from matplotlib.axes import Axes

from course_utils.attention import causal_mask
from course_utils.data.prose import IGNORE, masked_token
from course_utils.data.text import MASK
from course_utils.decoding import next_token_probs
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.explorer import Choice, Explorer, IntRange, Slider

__all__ = ["masks", "sampling"]

TEMPERATURES = (0.0, 0.3, 0.5, 0.7, 1.0, 1.5, 3.0)
TOP_K = (1, 2, 3, 5, 10, 0)
"""How many tokens may be drawn; 0 stands for all."""
SHOWN = 10
LINES = 6

WORDS = {
    "she drinks a cup of": (
        [
            "tea",
            "coffee",
            "milk",
            "water",
            "juice",
            "soup",
            "wine",
            "the",
            "her",
            "sugar",
            "cold",
            "my",
            "beer",
            "hot",
            "oil",
        ],
        (5.0, 4.8, 3.1, 3.0, 2.3, 1.6, 1.4, 1.1, 0.7, 0.4, 0.2, 0.0, -0.3, -0.6, -1.5),
    ),
    "what time is": (
        [
            "it",
            "the",
            "that",
            "this",
            "your",
            "lunch",
            "he",
            "school",
            "now",
            "dinner",
            "our",
            "she",
            "my",
            "there",
            "a",
        ],
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
        logits = {p: dict(zip(words, values, strict=True)) for p, (words, values) in WORDS.items()}
    if not 1 <= len(logits) <= 3 or min(map(len, logits.values())) < SHOWN:
        raise ValueError(f"logits has {len(logits)} prompts; 1 to 3 with {SHOWN} tokens each")
    tables = {}
    for prompt, table in logits.items():
        tokens = sorted(table, key=table.get, reverse=True)
        tables[prompt] = tokens, torch.tensor([table[token] for token in tokens]).float()

    @functools.cache
    def texts(prompt: str, temperature: float, top_k: int | None) -> tuple[str, ...]:
        if write is not None:
            return tuple(write(prompt, temperature, top_k)[:LINES])
        tokens, values = tables[prompt]
        probs = next_token_probs(values, temperature=temperature, top_k=top_k)
        draws = torch.multinomial(
            probs, LINES, replacement=True, generator=torch.Generator().manual_seed(0)
        )
        return tuple(f"{prompt} {tokens[index]}" for index in draws)

    def picture():
        fig, (ax, side) = subplots(
            1, 2, alt="Next tokens", width=8.5, height=3.0, width_ratios=[1, 1.35]
        )
        before = ax.barh(range(SHOWN), [1.0] * SHOWN, height=0.8, color="none", edgecolor="black")
        after = ax.barh(range(SHOWN), [1.0] * SHOWN, height=0.5, color=COLORS["blue"])
        ax.set(xlim=(0, 1), ylim=(SHOWN - 0.4, -0.6), xlabel="Probability of the next token")
        ax.set_yticks(range(SHOWN), [""] * SHOWN)
        ax.tick_params(axis="y", length=0)
        _bare(side)
        title = side.text(0, 0.97, "", va="top", fontsize=10, transform=side.transAxes)
        lines = [
            side.text(0, 0.8 - 0.14 * i, "", va="top", fontsize=9, transform=side.transAxes)
            for i in range(LINES)
        ]

        def draw(prompt: str, temperature: float, top_k: int) -> str:
            tokens, values = tables[prompt]
            plain = values.softmax(dim=0)
            probs = next_token_probs(values, temperature=temperature, top_k=top_k or None)
            ax.set_yticks(range(SHOWN), tokens[:SHOWN])
            for i in range(SHOWN):
                before[i].set_width(plain[i].item())
                after[i].set_width(probs[i].item())
            entropy = torch.special.entr(probs).sum().item()
            title.set_text(f"As many as {math.exp(entropy):.1f} equally likely tokens")
            written = texts(prompt, temperature, top_k or None)
            for i, line in enumerate(lines):
                line.set_text(_short(written[i]) if i < len(written) else "")
            best = ", ".join(
                f"{t} {p:.0%}" for t, p in zip(tokens[:3], probs[:3].tolist(), strict=True)
            )
            limit = f"only the best {top_k} tokens" if top_k else "all tokens"
            return (
                f"After “{prompt}”, at temperature {temperature:.1f} with {limit} allowed: {best}. The choice is "
                f"as wide as {math.exp(entropy):.1f} equally likely tokens. Written, for instance: {written[0]}"
            )

        return fig, draw

    prompts = tuple(tables)
    controls = {
        "prompt": Choice(prompts, prompts[0], label="Prompt"),
        "temperature": Slider(TEMPERATURES, 1.0, label="Temperature T", format="{:.1f}"),
        "top_k": Choice({"all" if k == 0 else str(k): k for k in TOP_K}, 0, label="Top k"),
    }
    caption = "Outlined: softmax of the logits. Filled: what is drawn from."
    return Explorer("sampling", picture, controls, caption=caption)


def _bare(ax: Axes) -> None:
    """Axes for text alone."""
    ax.set(xticks=[], yticks=[])
    ax.spines[:].set_visible(False)


def _short(text: str, limit: int = 52) -> str:
    return text if len(text) <= limit else text[: limit - 1] + "…"


# Masks ------------------------------------------------------------------------------------------

SENTENCE = ["she", "bought", "a", "red", "scarf", "last", "week", "."]
SOURCE = 4
"""In the encoder–decoder, so many tokens are the source; the others are the target."""
KINDS = {
    "decoder-only (GPT)": "gpt",
    "encoder-only (BERT)": "bert",
    "encoder–decoder": "both",
}


def masks() -> Explorer:
    """Three kinds of model over one sentence: who sees whom, what is read, and what is asked."""
    n = len(SENTENCE)
    vocabulary = sorted(set(SENTENCE) | {"dog", "green", "he", "sold", "the"})
    ids = torch.tensor([[MASK + 1 + vocabulary.index(word) for word in SENTENCE]])
    allowed = {
        "gpt": causal_mask(n),
        "bert": torch.ones(n, n, dtype=torch.bool),
        "both": causal_mask(n) | (torch.arange(n) < SOURCE),
    }
    hide = masked_token(MASK + 1 + len(vocabulary), share=0.5)

    def picture():
        fig, (ax, side) = subplots(1, 2, alt="Masks", width=8.5, height=3.2, width_ratios=[1, 1.25])
        image = heatmap(ax, torch.zeros(n, n), queries=SENTENCE, keys=SENTENCE)
        (row,) = ax.plot([-0.5, n - 0.5, n - 0.5, -0.5, -0.5], [0] * 5, color=COLORS["vermilion"])
        side.set(xlim=(0, 3), ylim=(n - 0.3, -1.0))
        _bare(side)
        for x, text in enumerate(("place", "reads", "is asked")):
            side.text(x + 0.1, -0.75, text, fontsize=9, color="0.4")
        cells = [[side.text(x + 0.1, y, "", fontsize=10) for x in range(3)] for y in range(n)]
        (band,) = side.fill([0, 3, 3, 0], [0] * 4, color=COLORS["yellow"], alpha=0.4)

        def draw(kind: str, place: int, seed: int) -> str:
            image.set_data(allowed[kind].float().numpy())
            y = place - 1
            row.set_ydata([y - 0.5, y - 0.5, y + 0.5, y + 0.5, y - 0.5])
            band.set_xy([(0, y - 0.6), (3, y - 0.6), (3, y + 0.35), (0, y + 0.35)])
            reads, asked = list(SENTENCE), [*SENTENCE[1:], "<eos>"]
            if kind == "bert":
                generator = torch.Generator().manual_seed(seed)
                batch = hide(ids, torch.tensor([n]), generator)
                picked = (batch.targets[0] != IGNORE).tolist()
                names = {MASK: "<mask>"} | {MASK + 1 + i: w for i, w in enumerate(vocabulary)}
                reads = [names[index] for index in batch.tokens[0].tolist()]
                asked = [word if pick else "–" for word, pick in zip(SENTENCE, picked, strict=True)]
            elif kind == "both":
                asked[: SOURCE - 1] = ["–"] * (SOURCE - 1)
            for i, (first, second, third) in enumerate(cells):
                first.set_text(str(i + 1))
                second.set_text(reads[i])
                third.set_text(asked[i])
                changed = reads[i] != SENTENCE[i]
                second.set_color(COLORS["vermilion"] if changed else "black")
            seen = [word for word, ok in zip(reads, allowed[kind][y].tolist(), strict=True) if ok]
            count = sum(word != "–" for word in asked)
            question = f"is asked for “{asked[y]}”" if asked[y] != "–" else "is asked nothing"
            return (
                f"{next(name for name, k in KINDS.items() if k == kind)}: place {place} reads “{reads[y]}”, sees "
                f"{len(seen)} of {n} places ({' '.join(seen)}), and {question}. {count} places are asked for something."
            )

        return fig, draw

    controls = {
        "kind": Choice(KINDS, "bert", label="Model"),
        "place": IntRange(1, n, 2, label="Place"),
        "seed": IntRange(0, 4, 3, label="Draw of masks"),
    }
    caption = "Blue: may attend. For BERT half of the tokens are picked here, instead of 15 %."
    return Explorer("masks", picture, controls, caption=caption)
