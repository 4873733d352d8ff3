"""Stored trainings of *GPT* on sentences and on repeated letters: `make runs CHAPTER=13`.

Those on whole texts are in `text_runs` and `own_texts`.
"""

import random
from functools import cache, partial

import torch
from torch import Tensor, nn

from course_utils.attention import MultiHeadAttention
from course_utils.data.prose import Subwords, load_english
from course_utils.data.text import EOS
from course_utils.kit.runs import stored
from course_utils.kit.stored_model import StoredModel, checkpoints_of, largest_logits
from course_utils.layers import FeedForward
from course_utils.lessons.gpt import repeats
from course_utils.lessons.gpt.ngrams import kneser_ney_losses
from course_utils.lessons.gpt.text_runs import ids
from course_utils.lessons.gpt.training import evaluate, train, windows
from course_utils.models.language import GPT

SEEDS = (0, 1, 2)
VOCAB, WIDTH, LENGTH, BATCH, STEPS, RATE = 512, 64, 32, 32, 400, 1e-2
RATES = (3e-3, 1e-2, 3e-2, 1e-1, 3e-1)
"""Rates at which one head is compared with four."""
EARLIER = (0, 100)
"""Steps after which `writer` is stored, too."""
COPIER = {"embed_dim": 64, "num_heads": 4, "max_len": repeats.LENGTH}


@cache
def sentences() -> tuple[list[str], list[str]]:
    """The course's English sentences: training, and 1,000 held out."""
    shuffled = load_english()
    random.Random(0).shuffle(shuffled)
    return shuffled[1000:], shuffled[:1000]


@cache
def streams() -> tuple[Tensor, Tensor]:
    """The ids of the sentences, one behind the other, as the chapter reads them: training, and held out."""
    subwords = Subwords(sentences()[0], size=VOCAB)
    training, unread = (_joined(texts, subwords) for texts in sentences())
    return training, unread


def _joined(texts: list[str], subwords: Subwords) -> Tensor:
    """The ids of some texts, each with its end, one behind the other: (tokens,)."""
    return torch.tensor([i for text in texts for i in [*subwords.encode(text), EOS]])


# From one head to a GPT, a part at a time ---------------------------------------------------------

PARTS: dict[str, dict] = {
    "one head": {"heads": 1},
    "four heads": {"heads": 4},
    "+ network": {"heads": 4, "network": True},
    "+ residual": {"heads": 4, "network": True, "residual": True},
    "+ norm": {"heads": 4, "blocks": 1},
    "+ second block": {"heads": 4, "blocks": 2},
}
"""Name → parts of a model, from the simplest to a GPT; those with `blocks` are whole GPTs."""


class PartOfGPT(nn.Module):
    """A GPT of one block, without norms, and with parts left out.

    Args:
        vocab_size, embed_dim, max_len: as in `GPT`.
        heads: number of heads.
        network: whether the position-wise network follows the attention.
        residual: whether each part's input is added to what it gives.
    """

    def __init__(
        self,
        vocab_size: int,
        *,
        embed_dim: int,
        max_len: int,
        heads: int,
        network: bool = False,
        residual: bool = False,
    ):
        super().__init__()
        self.residual = residual
        self.embedding = nn.Embedding(vocab_size, embed_dim)
        self.positions = nn.Embedding(max_len, embed_dim)
        self.attention = MultiHeadAttention(embed_dim, heads)
        self.network = None
        if network:
            self.network = FeedForward(embed_dim, 4 * embed_dim, activation="gelu")
        self.output = nn.Linear(embed_dim, vocab_size, bias=False)
        self.output.weight = self.embedding.weight
        for table in (self.embedding, self.positions):
            nn.init.normal_(table.weight, std=embed_dim**-0.5)

    def forward(self, tokens: Tensor) -> Tensor:
        """(batch, length) ids → logits (batch, length, vocab_size)."""
        x = self.embedding(tokens) + self.positions(torch.arange(tokens.shape[1]))
        attended = self.attention(x, x, x, is_causal=True)
        x = x + attended if self.residual else attended
        if self.network is not None:
            x = x + self.network(x) if self.residual else self.network(x)
        return self.output(x)


def model_with(parts_name: str, vocab_size: int, embed_dim: int, max_len: int) -> nn.Module:
    """An untrained model with the parts of this name in PARTS."""
    parts, sizes = PARTS[parts_name], {"embed_dim": embed_dim, "max_len": max_len}
    if "blocks" in parts:
        numbers = {"num_heads": parts["heads"], "num_layers": parts["blocks"]}
        return GPT(vocab_size, **sizes, **numbers, dropout=0.0)
    return PartOfGPT(vocab_size, **sizes, **parts)


@stored(
    cases=[
        {"parts": parts, "steps": 3 * STEPS, "lr": RATE, "seed": seed}
        for seed in SEEDS
        for parts in PARTS
    ],
)
def ladder(*, parts: str, steps: int, lr: float, seed: int) -> dict:
    """Held-out loss of a model that has some of a GPT's parts, trained as the chapter trains its GPT."""
    stream, unread = streams()
    torch.manual_seed(seed)
    model = model_with(parts, VOCAB, WIDTH, LENGTH)
    train(model, partial(windows, stream, LENGTH, BATCH), steps=steps, lr=lr, seed=seed)
    return {"result": {"loss": evaluate(model, unread, LENGTH, read=LENGTH // 2)}}


@stored(
    cases=[{"parts": parts, "steps": STEPS} for parts in ("one head", "four heads")],
    rates=RATES,
    seeds=SEEDS,
)
def heads_by_rate(*, parts: str, steps: int, rate: float, seed: int) -> dict:
    """Held-out loss of a model with one head or four after the short training, at several rates."""
    return ladder.function(parts=parts, steps=steps, lr=rate, seed=seed)


@stored(cases=[{}])
def kneser_ney() -> dict:
    """Held-out losses of n-grams with modified Kneser–Ney smoothing, by their length."""
    stream, unread = streams()
    losses = kneser_ney_losses(stream.tolist(), unread.tolist(), 6, VOCAB)
    return {"result": {str(n): loss for n, loss in enumerate(losses, start=1)}}


@stored(cases=[{"steps": 1500, "seed": seed} for seed in SEEDS[:2]])
def longer(*, steps: int, seed: int) -> dict:
    """Held-out loss of the chapter's GPT on the characters of the sentences, after three times as many steps."""
    texts = ["".join(text + "\n" for text in part) for part in sentences()]
    alphabet = "".join(sorted(set("".join(texts))))
    stream, unread = (ids(text, alphabet) for text in texts)
    torch.manual_seed(seed)
    sizes = {"embed_dim": WIDTH, "num_heads": 4, "num_layers": 2, "max_len": 64}
    model, curve = GPT(len(alphabet), **sizes, dropout=0.0), []

    def watch(step: int, _: float) -> None:
        if step % 250 == 0:
            curve.append([step, round(evaluate(model, unread, 64, read=32), 4)])

    train(model, partial(windows, stream, 64, 16), steps=steps, lr=RATE, seed=seed, watch=watch)
    return {"result": {"loss": curve[-1][1]}, "curves": {"held_out": curve}}


@stored(cases=[{"steps": 3 * STEPS, "seed": 0}], saves={"gpt": {}, "gpt_0": {}, "gpt_100": {}})
def writer(*, steps: int, seed: int) -> dict:
    """Held-out loss of the chapter's GPT after three times as many steps; it is stored, also as it was earlier."""
    stream, unread = streams()
    texts = sentences()[0]
    subwords = Subwords(texts, size=VOCAB)
    sizes = {"embed_dim": WIDTH, "num_heads": 4, "num_layers": 2, "max_len": LENGTH}
    torch.manual_seed(seed)
    model = GPT(VOCAB, **sizes, dropout=0.0)
    losses, models = {}, {}

    def held_out() -> float:
        return round(evaluate(model, unread, LENGTH, read=LENGTH // 2), 4)

    def keep(step: int, loss: float) -> None:
        if step in EARLIER:
            losses[f"loss, {step}"] = held_out()
            models[f"gpt_{step}"] = StoredModel.of(model, {"vocab_size": VOCAB} | sizes)

    batches = partial(windows, stream, LENGTH, BATCH)
    train(model, batches, steps=steps, lr=RATE, seed=seed, watch=keep)
    vocabularies = {
        "tokens": subwords.tokens,
        "merges": [" ".join(merge) for merge in subwords.merges],
        "words": sorted(set(" ".join(texts).split())),
    }
    models["gpt"] = StoredModel.of(model, {"vocab_size": VOCAB} | sizes, vocabularies)
    result = {"loss": held_out()} | losses
    cards: dict[str, dict] = {
        name: {"answers": answers_of(each.for_page().network(GPT), subwords)}
        for name, each in models.items()
    }
    checkpoints = checkpoints_of("gpt", EARLIER, result | {"steps": steps})
    cards["gpt"] |= {"loss": result["loss"], "read": len(texts), "checkpoints": checkpoints}
    return {"result": result, "models": models, "cards": cards}


@torch.no_grad()
def answers_of(model: GPT, subwords: Subwords) -> list[dict]:
    """Ids of some beginnings, and the ten largest logits of what follows, for a page to compare with."""
    answers = []
    for prompt in ("", "she wants to", "the old woman is"):
        ids = [EOS, *subwords.encode(prompt)]
        logits = model(torch.tensor([ids]))[0, -1]
        answers.append({"ids": ids, "logits": largest_logits(logits)})
    return answers


@stored(
    cases=[{"layers": layers, "steps": 500, "seed": seed} for layers in (2, 1) for seed in SEEDS],
    saves={"gpt_copier": {"layers": 2, "seed": 0}},
)
def copying(*, layers: int, steps: int, seed: int) -> dict:
    """Losses of a GPT that reads repeated blocks of letters, also without each head; the first one is stored."""
    torch.manual_seed(seed)
    model = GPT(len(repeats.LETTERS), num_layers=layers, dropout=0.0, **COPIER)
    curve: list[list[float]] = []

    def watch(step: int, loss: float) -> None:
        if step % 50 == 0:
            curve.append([step, round(repeats.losses(model, 200)[1], 4)])

    batches = partial(repeats.tokens_and_targets, 64)
    train(model, batches, steps=steps, lr=RATE, seed=seed, watch=watch)
    models = {}
    if layers == 2 and seed == 0:
        config = {"vocab_size": len(repeats.LETTERS), "num_layers": layers} | COPIER
        models["gpt_copier"] = StoredModel.of(model, config)
    first, again = repeats.losses(model)
    result = {"first": first, "again": again}
    for layer, row in enumerate(repeats.losses_without(model)):
        result |= {f"without {layer}.{head}": loss for head, loss in enumerate(row)}
    return {"result": result, "curves": {"again": curve}, "models": models}


@stored(cases=[{"lr": 0.003, "seed": seed} for seed in SEEDS])
def copying_slower(*, lr: float, seed: int) -> dict:
    """Losses of the copier at a third of the rate, on repetitions and on longer blocks, and how much one match adds."""
    torch.manual_seed(seed)
    model = GPT(len(repeats.LETTERS), num_layers=2, dropout=0.0, **COPIER)
    train(model, partial(repeats.tokens_and_targets, 64), steps=500, lr=lr, seed=seed)
    result = {"repetitions": repeats.losses(model)[1]}
    result |= {f"blocks of {n}": repeats.block_loss(model, n) for n in (9, 10)}
    for back in (6, 7, 8):
        with_it, without = (
            repeats.after_match(model, back, match=with_match) for with_match in (True, False)
        )
        result[f"a match {back} back adds"] = with_it - without
    return {"result": result}
