"""A translator at work, step by step: where it looks, and what it would say next."""

import functools
from collections.abc import Mapping, Sequence

import torch

from course_utils.cache import record_attention
from course_utils.data.text import BOS, EOS, pad, tokenize
from course_utils.figures import COLORS, heatmap, subplots
from course_utils.lessons.bahdanau_attention.small_world import FOUR, SmallWorld, small_world
from course_utils.lessons.explorer import Choice, Explorer, IntRange
from course_utils.models.recurrent import AttentionTranslator
from course_utils.runtime import evaluating

__all__ = ["alignment"]

SENTENCES = (*FOUR[1:], "we read the book .", "is your sister in the kitchen ?")
STEPS = 10
SHOWN = 6
"""Bars of the next-token distribution."""


def alignment(
    model: AttentionTranslator | None = None,
    world: SmallWorld | None = None,
    sentences: Sequence[str] = SENTENCES,
) -> Explorer:
    """Greedy decoding: the rows of weights so far, and the likeliest next tokens with their chances.

    Args:
        model: trained on `world`; without it a small one is trained here, which takes some seconds.
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
    decoded = {sentence: _decode(model, world, sentence) for sentence in sentences}
    longest = max(len(run["source"]) for run in decoded.values())

    def picture():
        fig, (left, right) = subplots(
            1, 2, alt="Attention and next token", width=8.5, height=3.2, width_ratios=[1.5, 1]
        )
        image = heatmap(
            left, torch.zeros(STEPS, longest), xlabel="Source tokens", ylabel="Step: token said"
        )
        small = {"fontsize": 8}
        columns = [
            left.text(place, STEPS - 0.3, "", ha="center", va="top", **small)
            for place in range(longest)
        ]
        rows = [
            left.text(-0.6, step, "", ha="right", va="center", **small) for step in range(STEPS)
        ]
        (frame,) = left.plot([], [], color=COLORS["vermilion"], linewidth=1.6)
        left.set(xticks=[], yticks=[], xlim=(-0.5, longest - 0.5), ylim=(STEPS - 0.5, -0.5))
        left.xaxis.labelpad, left.yaxis.labelpad = 16, 62
        bars = right.barh(range(SHOWN), [0.0] * SHOWN, color=COLORS["blue"], height=0.62)
        names = [right.text(0.02, i - 0.46, "", va="center", **small) for i in range(SHOWN)]
        right.set(xlim=(0, 1), ylim=(SHOWN - 0.5, -0.75), yticks=[])
        right.set(xlabel="Probability of the next token")

        def draw(sentence: str, step: int) -> str:
            run = decoded[sentence]
            source, said = run["source"], run["said"]
            now = min(step, len(said)) - 1
            shown = torch.zeros(STEPS, longest)
            shown[: now + 1, : len(source)] = run["weights"][: now + 1]
            image.set_data(shown)
            for place, text in enumerate(columns):
                text.set_text(source[place] if place < len(source) else "")
            for place, text in enumerate(rows):
                text.set_text(said[place] if place <= now else "")
            right_edge = len(source) - 0.5
            frame.set_data(
                [-0.5, right_edge, right_edge, -0.5, -0.5],
                [now - 0.5, now - 0.5, now + 0.5, now + 0.5, now - 0.5],
            )
            chances, tokens = run["chances"][now], run["tokens"][now]
            for bar, name, chance, token in zip(bars, names, chances, tokens, strict=True):
                bar.set_width(chance)
                name.set_text(f"{token}  {chance:.0%}")
            most = int(run["weights"][now].argmax())
            return (
                f"Translating “{sentence}”, step {now + 1} of {len(said)}: so far “{' '.join(said[:now])}”. "
                f"Most of the attention is on “{source[most]}”, {run['weights'][now, most]:.0%}. "
                f"Likeliest next: {_listed(tokens, chances)}."
            )

        return fig, draw

    controls = {
        "sentence": Choice(
            list(sentences), sentences[min(2, len(sentences) - 1)], label="Sentence"
        ),
        "step": IntRange(1, STEPS, 3, label="Step"),
    }
    caption = (
        "Each row is one step of the decoder. Framed: where it looks now. Right: what it would say."
    )
    return Explorer("alignment", picture, controls, caption=caption)


def _listed(tokens: Sequence[str], chances: Sequence[float]) -> str:
    return ", ".join(f"“{t}” {c:.0%}" for t, c in list(zip(tokens, chances, strict=True))[:3])


@torch.no_grad()
def _decode(model: AttentionTranslator, world: SmallWorld, sentence: str) -> Mapping:
    """Greedy decoding with everything written down: weights, likeliest tokens and their chances."""
    ids = [*world.source_vocab.encode(tokenize(sentence)), EOS]
    source, lengths = pad([ids])
    with evaluating(model):
        state = model.start(source, lengths)
        inputs, chances, tokens = [BOS], [], []
        for _ in range(STEPS):
            probabilities = model.step(torch.tensor(inputs[-1:]), state)[0].softmax(dim=-1)
            best = probabilities.topk(SHOWN)
            chances.append(best.values.tolist())
            tokens.append([world.target_vocab.tokens[index] for index in best.indices.tolist()])
            inputs.append(int(best.indices[0]))
            if inputs[-1] == EOS:
                break
        with record_attention(model) as maps:
            model(source, lengths, torch.tensor([inputs[:-1]]))
        weights = maps["attention"][0]
    said = [world.target_vocab.tokens[index] for index in inputs[1:]]
    return {
        "source": [*tokenize(sentence), "<eos>"],
        "said": said,
        "weights": weights,
        "chances": chances,
        "tokens": tokens,
    }


@functools.cache
def _trained() -> tuple[AttentionTranslator, SmallWorld]:
    """A translator of a smaller world, good enough to be looked at."""
    from course_utils.train.losses import translation_loss
    from course_utils.train.schedules import warmup_decay
    from course_utils.train.trainer import Trainer

    world = small_world("fr", words=120, held_out=120)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = AttentionTranslator(
            len(world.source_vocab), len(world.target_vocab), embed_dim=48, hidden_dim=48
        )
        loader = world.loader(world.train, batch_size=16)
        trainer = Trainer(
            translation_loss(),
            epochs=8,
            lr=6e-3,
            schedule=warmup_decay(20, 8 * len(loader)),
            device="cpu",
        )
        trainer.fit(model, loader)
    return model, world
