"""A text of one's own for SmolLM2: read as a prompt, or learned with LoRA; and what learning it costs.

Hu et al. (2022), "LoRA: low-rank adaptation of large language models". Nine tenths of the text are read, and the loss
is measured on the last tenth.
"""

import time
from collections.abc import Callable, Sequence
from copy import deepcopy
from dataclasses import asdict, dataclass
from typing import Any

import pandas as pd
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from course_utils.data.text import path_of, read_text
from course_utils.kit.runs import stored, stored_runs
from course_utils.lessons.bert_and_transfer.tuning import LoRA
from course_utils.lessons.gpt.own_texts import own_text
from course_utils.lessons.real_weights import experiments
from course_utils.lessons.real_weights.smollm import SmolLM, chat, reference
from course_utils.runtime import own_random_numbers
from course_utils.train.bar import training_bar
from course_utils.train.steps import take_steps

WINDOW, ASKED, SHORT, LONG = 256, 512, 128, 1024
"""Tokens of a training window; the most that are asked for; and tokens of a short and of a long prompt."""

STEPS, RATE, RANK = 20, 0.001, 8
RATES, SEEDS = (0.0005, 0.001, 0.002, 0.006), range(3)
COUNTRIES = (
    "France", "Italy", "Germany", "Spain", "Greece", "Austria", "Japan", "Egypt", "Peru", "Cuba",
)  # fmt: skip
CITIES = experiments.COUNTRIES["well known"]


def parts_of(lm: SmolLM, text: str) -> tuple[list[int], list[int], int]:
    """Ids of the first nine tenths of a text, ids of what follows, at most `ASKED`, and the characters of those."""
    made, cut = lm.tokenizer.encode(text), int(0.9 * len(text))
    first = next(i for i, (start, _) in enumerate(made.offsets) if start >= cut)
    asked = made.ids[first : first + ASKED]
    spans = made.offsets[first : first + ASKED]
    return made.ids[:first], asked, spans[-1][1] - spans[0][0]


@torch.inference_mode()
def losses(model: nn.Module, before: list[int], asked: list[int]) -> Tensor:
    """The loss of each token of `asked`, (asked,), in nats, read behind <|endoftext|> and `before`."""
    logits = model(torch.tensor([[0, *before, *asked[:-1]]]))[0, -len(asked) :]
    return F.cross_entropy(logits, torch.tensor(asked), reduction="none")


def with_lora(lm: SmolLM, seed: int) -> SmolLM:
    """A copy whose queries and values get a change of low rank in each layer; all other weights are shared."""
    model = deepcopy(lm.model, {id(each): each for each in lm.model.parameters()})
    with own_random_numbers(seed):
        for layer in model.get_submodule("layers").children():
            for name in ("query_proj", "value_proj"):
                linear = getattr(layer.attention, name)
                setattr(layer.attention, name, LoRA(linear, rank=RANK, alpha=RANK))
    return SmolLM(model, lm.tokenizer)


def learn(
    lm: SmolLM,
    read: list[int],
    *,
    steps: int,
    rate: float,
    seed: int,
    watch: Callable[[int, float], None] = lambda step, loss: None,
) -> list[float]:
    """Train what is trainable on windows of a text, one a step; the loss of each step.

    Args:
        lm: the model, trained in place.
        read: ids of the text, more than `WINDOW`.
        steps, rate: how many steps, and the rate, which is reached after five of them and then stays.
        seed: of the windows.
        watch: called after each step with its number, from 1 on, and its loss.
    """
    trained = [parameter for parameter in lm.model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.AdamW(trained, betas=(0.9, 0.99), weight_decay=0.0)
    draws, stream, seen = torch.Generator().manual_seed(seed), torch.tensor(read), []

    def loss() -> Tensor:
        first = int(torch.randint(len(stream) - WINDOW + 1, (), generator=draws))
        ids = torch.cat([torch.tensor([0]), stream[first : first + WINDOW]])[None]
        return F.cross_entropy(lm.model(ids[:, :-1]).mT, ids[:, 1:])

    def after_step(step: int, value: float) -> None:
        seen.append(round(value, 3))
        watch(step, value)

    take_steps(
        optimizer,
        loss,
        steps=steps,
        rate=lambda step: rate * min(1, step / 5),
        after_step=after_step,
    )
    return seen


@torch.inference_mode()
def knows(lm: SmolLM) -> dict[str, float]:
    """How many of ten capitals are right in the chat template, their probability, and the loss on a piece of news."""
    right, sure = 0, 0.0
    for country in COUNTRIES:
        prompt = chat(f"What is the capital of {country}?") + f"The capital of {country} is"
        probs = lm.model(lm.encode(prompt))[0, -1].softmax(-1)
        city = lm.encode(" " + CITIES[country])[0, 0]
        right, sure = (
            right + int(probs.argmax() == city),
            sure + probs[city].item() / len(COUNTRIES),
        )
    news = lm.encode(experiments.NEWS)[0].tolist()
    return {
        "capitals": right,
        "capitals, probability": sure,
        "news": losses(lm.model, [], news).mean().item(),
    }


def per_character(lm: SmolLM, text: str, before: int) -> float:
    """Nats a character on the last tenth of a text, behind so many tokens of what stands before it."""
    read, asked, characters = parts_of(lm, text)
    return losses(lm.model, read[-before:], asked).sum().item() / characters


def measured(lm: SmolLM, name: str) -> tuple[dict[str, float], dict[str, list[float]]]:
    """Nats a character on the last tenth of a text by what is read before it, and the loss of each token.

    The prompts are none, a short one, a long one, and all nine tenths if these are longer; the losses of the tokens are
    those behind the short one and behind all.
    """
    read, asked, characters = parts_of(lm, own_text(name))
    prompts = {f"{length} tokens before": length for length in (0, SHORT, LONG)}
    if len(read) > LONG:
        prompts["all before"] = len(read)
    each = {
        what: losses(lm.model, read[-length:] if length else [], asked)
        for what, length in prompts.items()
    }
    shown = (f"{SHORT} tokens before", list(prompts)[-1])
    return (
        {what: values.sum().item() / characters for what, values in each.items()},
        {what: [round(value, 3) for value in each[what].tolist()] for what in shown},
    )


@stored(cases=[{"text": text} for text in ("story", "topics")])
def prompted(*, text: str) -> dict[str, Any]:
    """What SmolLM2 expects of a text without having learned it."""
    lm = reference()
    result, each = measured(lm, text)
    read, asked, characters = parts_of(lm, own_text(text))
    result |= knows(lm) | {"characters": characters, "asked": len(asked), "read": len(read)}
    return {"result": result, "examples": [each]}


def learned_by(
    text: str, *, steps: int, rate: float, seed: int, watch: Callable[[SmolLM, int], None]
) -> dict[str, Any]:
    """The same after LoRA on the first nine tenths; and what it still knows of other things."""
    lm = with_lora(reference(), seed)
    read, _, _ = parts_of(lm, own_text(text))
    seen = learn(lm, read, steps=steps, rate=rate, seed=seed, watch=lambda step, _: watch(lm, step))
    result, each = measured(lm, text)
    result |= knows(lm) | {"read": len(read)}
    curve = [[step, value] for step, value in enumerate(seen, start=1)]
    return {"result": result, "curves": {"loss": curve}, "examples": [each]}


@stored(cases=[{"text": "story"}], rates=RATES, seeds=SEEDS)
def learned(*, text: str, rate: float, seed: int) -> dict[str, Any]:
    """What it expects after twenty steps."""
    return learned_by(text, steps=STEPS, rate=rate, seed=seed, watch=lambda lm, step: None)


@stored(cases=[{"text": "topics", "steps": 40, "rate": 0.001, "seed": seed} for seed in SEEDS])
def learned_and_read(*, text: str, steps: int, rate: float, seed: int) -> dict[str, Any]:
    """The same of a text that is longer than the long prompt."""
    return learned_by(text, steps=steps, rate=rate, seed=seed, watch=lambda lm, step: None)


@stored(cases=[{"prompt": "topics"}])
def prompted_otherwise(*, prompt: str) -> dict[str, Any]:
    """What SmolLM2 expects of the story's last tenth behind another text and `SHORT` tokens: as many as all."""
    lm = reference()
    read, asked, characters = parts_of(lm, own_text("story"))
    first = lm.tokenizer.encode(own_text(prompt)).ids[: len(read) - SHORT]
    each = losses(lm.model, [*first, *read[-SHORT:]], asked)
    return {"result": {"loss": each.sum().item() / characters}}


@stored(cases=[{"learned": "topics", "seed": seed} for seed in SEEDS])
def learned_otherwise(*, learned: str, seed: int) -> dict[str, Any]:
    """What it expects of the story after twenty steps at `RATE` on as many tokens of another text."""
    lm = with_lora(reference(), seed)
    of_story, _, _ = parts_of(lm, own_text("story"))
    read, _, _ = parts_of(lm, own_text(learned))
    learn(lm, read[: len(of_story)], steps=STEPS, rate=RATE, seed=seed)
    result, each = measured(lm, "story")
    shown = f"{SHORT} tokens before"
    return {"result": {shown: result[shown]}, "examples": [{shown: each[shown]}]}


@stored(
    cases=[
        {"text": text, "steps": steps, "rate": rate, "seed": 0}
        for text, steps, rate in (
            ("story", 80, 0.0005),
            ("story", 80, 0.001),
            ("topics", 160, 0.0005),
            ("topics", 80, 0.001),
            ("topics", 80, 0.002),
        )
    ]
)
def learned_longer(*, text: str, steps: int, rate: float, seed: int) -> dict[str, Any]:
    """The loss of the last tenth behind a short prompt, every ten steps of a longer training."""
    curve: list[list[float]] = []

    def watch(lm: SmolLM, step: int) -> None:
        if step % 10 == 0:
            curve.append([step, round(per_character(lm, own_text(text), SHORT), 4)])

    gave = learned_by(text, steps=steps, rate=rate, seed=seed, watch=watch)
    gave["curves"][f"{SHORT} tokens before"] = curve
    gave["result"].pop("all before", None)
    return {"result": gave["result"], "curves": gave["curves"]}


# The reader's own text ----------------------------------------------------------------------------

WAYS = "as it is, 128 tokens", "as it is, all", "after LoRA, 128 tokens", "after LoRA, all"
"""How the last tenth of a text can be asked for: by an untrained model or after LoRA, behind few or all tokens."""

LEAST, MOST = 2_000, 4_096
"""The fewest letters of a reader's file, and the most tokens: reading more takes several gigabytes."""


@dataclass(frozen=True)
class Comparison:
    """A text that was read and learned.

    Attributes:
        title: of the text.
        losses: one of `WAYS` → the loss of each token of the last tenth, in nats.
        characters: of the last tenth.
        says: one of `WAYS` → how the model goes on after the first nine tenths.
    """

    title: str
    losses: dict[str, list[float]]
    characters: int
    says: dict[str, str]

    @property
    def table(self) -> pd.DataFrame:
        """Nats a character: rows as it is and after LoRA, columns after 128 tokens and after all."""
        each = [sum(self.losses[way]) / self.characters for way in WAYS]
        columns = [f"after {SHORT} tokens", "after all nine tenths"]
        return pd.DataFrame([each[:2], each[2:]], index=["as it is", "after LoRA"], columns=columns)

    def difference(self, way: str, other: str) -> tuple[float, float]:
        """How much larger the loss of one way is than that of another, and the standard error, in nats a character."""
        return paired(self.losses[way], self.losses[other], self.characters)

    def verdict(self) -> str:
        """A sentence on learning against reading, with its standard error."""
        more, error = self.difference(WAYS[2], WAYS[1])
        better = "reading" if more > 0 else "learning"
        said = f"{better} is ahead" if abs(more) > 2 * error else "too close to tell apart"
        return f"learned minus read: {more:+.3f} ± {error:.3f} nats a character, {said}"


def paired(one: Sequence[float], other: Sequence[float], characters: int) -> tuple[float, float]:
    """The difference of two sums of losses of the same tokens, and its standard error, both in nats a character.

    The tokens count as independent, so the error is a little too small where a text repeats itself.
    """
    gaps = torch.tensor(one, dtype=torch.float64) - torch.tensor(other, dtype=torch.float64)
    return gaps.sum().item() / characters, gaps.std().item() * len(gaps) ** 0.5 / characters


def own_file(path: str, lm: SmolLM | None, *, steps: int = STEPS, rate: float = RATE) -> Comparison:
    """The last tenth of a reader's file, as SmolLM2 reads the rest, and as it learns the rest with LoRA.

    Before it starts, a line says how long it will take and how much memory.

    Args:
        path: of a text file with `LEAST` letters or more and `MOST` tokens or fewer; "" is the course's story.
        lm: the model with its weights; the story as it was recorded is shown without.
        steps, rate: of LoRA.

    Raises:
        ValueError: there is no such file, it is no text, or it is too short or too long; the message says what to do.
    """
    text = _checked(path, lm) if path else ""
    if lm is None or not path:
        (run,) = stored_runs("from_gpt_to_assistant", "compared", text="story")
        why = "Without the weights there is nothing to compute." if path else ""
        print(f"{why} This is our story, recorded on {run.date}.".strip())
        return Comparison(**run.examples[0])
    tokens = len(lm.tokenizer.encode(text).ids)
    began = time.perf_counter()
    losses(lm.model, [], lm.tokenizer.encode(text[: 4 * WINDOW]).ids[:WINDOW])
    windows = STEP_COSTS * steps + 4 * tokens / WINDOW + SAID / 2  # both models read all twice
    seconds = (time.perf_counter() - began) * windows
    memory = max(1.6, 0.9 + tokens * 4.2e-4)
    name, minutes = path_of(path).name, max(1, round(seconds / 60))
    cost = f"about {minutes} minute{'s' * (minutes > 1)} and {memory:.1f} GB of memory"
    print(f"{name}: {tokens} tokens, {steps} steps of LoRA; {cost}.")
    return _compare(lm, name, text, steps=steps, rate=rate, seed=0)


STEP_COSTS = 3.0
"""A step of LoRA, in readings of as many tokens."""


def _checked(path: str, lm: SmolLM | None) -> str:
    """The text of a file that is neither too short nor too long."""
    text, name = read_text(path, most=100 * MOST), path_of(path).name
    if len(text) < LEAST:
        raise ValueError(
            f"{name} has only {len(text)} letters, and its last tenth would say little. "
            f"Put in a text of at least {LEAST} letters."
        )
    tokens = len(lm.tokenizer.encode(text).ids) if lm else len(text) // 8
    if tokens > MOST:
        fit = MOST * len(text) // tokens // 1000 * 1000
        raise ValueError(
            f"{name} has more than {MOST} tokens, and to read them at once takes much memory. "
            f"Put in a file with a part of it, about {fit} letters."
        )
    return text


def _compare(
    lm: SmolLM, title: str, text: str, *, steps: int, rate: float, seed: int
) -> Comparison:
    """Both ways to know a text, and how the model goes on in each."""
    read, asked, characters = parts_of(lm, text)
    tuned = with_lora(lm, seed)
    with training_bar(1, steps) as bar:
        learn(tuned, read, steps=steps, rate=rate, seed=seed, watch=bar.step)
    found, says = {}, {}
    for way, model, before in zip(WAYS, (lm, lm, tuned, tuned), (SHORT, MOST) * 2, strict=True):
        each = losses(model.model, read[-before:], asked)
        found[way] = [round(value, 3) for value in each.tolist()]
        start = lm.decode([0, *read[-before:]])
        says[way] = model.write(start, max_new=SAID, temperature=0.7, mark=" …")
    return Comparison(title, found, characters, says)


SAID = 40
"""Tokens of a continuation."""


@stored(cases=[{"text": "story"}])
def compared(*, text: str) -> dict[str, Any]:
    """What `own_file` gives for the course's story."""
    gave = _compare(reference(), text, own_text(text), steps=STEPS, rate=RATE, seed=0)
    result = {way: sum(each) / gave.characters for way, each in gave.losses.items()}
    return {"result": result, "examples": [asdict(gave)]}
