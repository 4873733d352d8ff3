"""Two Transformers that are compared with the chapter's: a first generation, and both orders of norm.

The first generation has the simplifications that the transformer lecture of Kak (2025) prints: heads on slices of the
embedding without a matrix behind them, scaled after the softmax; unknown words set to zero instead of masked, and in
each decoder layer a mask along the *features*; layers over the flattened sentence; no residual around the encoder's
self-attention and around the cross-attention; one pass of the decoder for each word. All this is here to be measured,
not to be used.

The orders of norm are compared on English–Spanish pairs of Tatoeba, from the archive at manythings.org/anki
(CC BY 2.0 FR); `data.registry` says how it is found. With the norm before, both halves end with one more. One seed
each: a small training. Their seconds are no comparison: other work on the same cores slowed them unequally.
"""

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from course_utils.data.text import EOS
from course_utils.data.translation import Pair, load_tatoeba, split_by_source
from course_utils.kit.runs import StoredRun, cpu_meter, stored, stored_run
from course_utils.lessons.sequence_to_sequence.real_translation import MIN_FREQ
from course_utils.lessons.sequence_to_sequence.small_world import vocabularies_of
from course_utils.lessons.sequence_to_sequence.translator_scores import (
    bleu_by_source,
    readable_pairs,
)
from course_utils.lessons.sequence_to_sequence.translator_training import (
    curves_of,
    train_translator,
)
from course_utils.models.transformer import Transformer
from course_utils.positions import SinusoidalPositions
from course_utils.runtime import seed_everything
from course_utils.train.schedules import warmup_decay


class SlicedHeads(nn.Module):
    """Attention whose heads read slices of the embedding, and whose outputs no matrix mixes.

    Args:
        embed_dim, num_heads: a slice has `embed_dim / num_heads` features.
        length: with a number, a head projects the slices of so many tokens as one long vector.
    """

    def __init__(self, embed_dim: int, num_heads: int, *, length: int = 1):
        super().__init__()
        self.length, self.size = length, embed_dim // num_heads
        long = length * self.size
        self.query_proj, self.key_proj, self.value_proj = (
            nn.ModuleList(nn.Linear(long, long) for _ in range(num_heads)) for _ in range(3)
        )

    def project(self, layers: nn.ModuleList, x: Tensor) -> Tensor:
        """The projection of each head's slice of x: (batch, tokens, embed_dim) → (batch, heads, tokens, size)."""
        heads = []
        for layer, features in zip(layers, x.split(self.size, dim=-1), strict=True):
            if self.length > 1:  # all tokens as one long vector
                heads.append(layer(features.flatten(1)).view_as(features))
            else:
                heads.append(layer(features))
        return torch.stack(heads, dim=1)

    def forward(self, queries: Tensor, memory: Tensor) -> Tensor:
        """Outputs like the queries, (batch, tokens, embed_dim), from a memory (batch, tokens, embed_dim)."""
        q = self.project(self.query_proj, queries)
        k, v = self.project(self.key_proj, memory), self.project(self.value_proj, memory)
        weights = (q @ k.transpose(-2, -1)).softmax(dim=-1)
        return (weights @ v / self.size**0.5).transpose(1, 2).flatten(2)  # scaled too late


class FlatFeedForward(nn.Sequential):
    """Two linear layers over all tokens of a sentence as one vector."""

    def __init__(self, embed_dim: int, length: int):
        flat = length * embed_dim
        super().__init__(
            nn.Flatten(1), nn.Linear(flat, 2 * flat), nn.ReLU(), nn.Linear(2 * flat, flat),
            nn.Unflatten(1, (length, embed_dim)),
        )  # fmt: skip


class FirstEncoderLayer(nn.Module):
    """Encoder layer: norm(attention(x)), without a residual, and then norm(x + network(x)).

    Args:
        embed_dim, num_heads: as in `SlicedHeads`.
        length: tokens of every sentence.
        flat_attention: whether the heads read the whole sentence as one vector.
    """

    def __init__(self, embed_dim: int, num_heads: int, length: int, *, flat_attention: bool):
        super().__init__()
        read_at_once = length if flat_attention else 1
        self.attention = SlicedHeads(embed_dim, num_heads, length=read_at_once)
        self.feed_forward = FlatFeedForward(embed_dim, length)
        self.norms = nn.ModuleList(nn.LayerNorm(embed_dim) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        """(batch, length, embed_dim) → the same shape."""
        x = self.norms[0](self.attention(x, x))
        return self.norms[1](x + self.feed_forward(x))


class FirstDecoderLayer(nn.Module):
    """Decoder layer: self-attention with a residual, cross-attention without one, and the network with one.

    Of an input in which `known` words are known, the first `known` *features* of all tokens are kept, as the printed
    layer does.
    """

    def __init__(self, embed_dim: int, num_heads: int, length: int, *, flat_attention: bool):
        super().__init__()
        read_at_once = length if flat_attention else 1
        self.attention = SlicedHeads(embed_dim, num_heads, length=read_at_once)
        self.cross_attention = SlicedHeads(embed_dim, num_heads, length=length)
        self.feed_forward = FlatFeedForward(embed_dim, length)
        self.norms = nn.ModuleList(nn.LayerNorm(embed_dim) for _ in range(3))

    def forward(self, x: Tensor, memory: Tensor, known: Tensor) -> Tensor:
        """(batch, length, embed_dim), memory alike, known (batch,) → like x."""
        x = x * (torch.arange(x.shape[-1], device=x.device) < known[:, None, None])
        x = self.norms[0](x + self.attention(x, x))
        x = self.norms[1](self.cross_attention(x, memory))
        return self.norms[2](x + self.feed_forward(x))


@dataclass
class WordsSoFar:
    """The state of a translation.

    Attributes:
        memory: the encoded source, (batch, length, embed_dim).
        words: ids so far, (batch, words).
    """

    memory: Tensor
    words: Tensor


class FirstGeneration(nn.Module):
    """The first generation of the Transformer; its `features`, `start` and `step` are called like `Transformer`'s.

    Args:
        source_size, target_size: numbers of tokens in the two vocabularies.
        embed_dim, num_heads, num_layers: as in `Transformer`.
        length: tokens of every sentence: shorter ones are filled with padding, and longer ones cannot be read.
        flat_attention: whether the heads of self-attention read the whole sentence as one vector, too, as in the
            lecture; those of the cross-attention always do.
    """

    def __init__(
        self,
        source_size: int,
        target_size: int,
        *,
        embed_dim: int = 64,
        num_heads: int = 4,
        num_layers: int = 2,
        length: int = 12,
        flat_attention: bool = False,
    ):
        super().__init__()
        self.length = length
        self.source_embedding = nn.Embedding(source_size, embed_dim, padding_idx=0)
        self.target_embedding = nn.Embedding(target_size, embed_dim, padding_idx=0)
        self.positions = SinusoidalPositions(embed_dim)
        self.encoder = nn.ModuleList(
            FirstEncoderLayer(embed_dim, num_heads, length, flat_attention=flat_attention)
            for _ in range(num_layers)
        )
        self.decoder = nn.ModuleList(
            FirstDecoderLayer(embed_dim, num_heads, length, flat_attention=flat_attention)
            for _ in range(num_layers)
        )
        self.output = nn.Linear(embed_dim, target_size)

    def embed(self, embedding: nn.Embedding, tokens: Tensor) -> Tensor:
        """Ids (batch, at most length) → (batch, length, embed_dim)."""
        filled = F.pad(tokens, (0, self.length - tokens.shape[1]))
        return self.positions(embedding(filled))

    def encode(self, source: Tensor) -> Tensor:
        """(batch, tokens) → memory (batch, length, embed_dim)."""
        x = self.embed(self.source_embedding, source)
        for layer in self.encoder:
            x = layer(x)
        return x

    def decode(self, target: Tensor, memory: Tensor, known: Tensor) -> Tensor:
        """The features of the next word, (batch, embed_dim): words (batch, tokens), of which `known` (batch,) count."""
        x = self.embed(self.target_embedding, target)
        places = torch.arange(self.length, device=x.device)
        x = x * (places < known[:, None])[..., None]  # zeroed, not masked
        for layer in self.decoder:
            x = layer(x, memory, known)
        return x[torch.arange(len(x), device=x.device), known]

    def features(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """The features that `output` turns into logits, (batch, target length, embed_dim): a pass for each word."""
        batch, words = target.shape
        known = torch.arange(1, words + 1, device=target.device).repeat(batch)
        memory = self.encode(source).repeat_interleave(words, dim=0)
        rows = target.repeat_interleave(words, dim=0)
        return self.decode(rows, memory, known).view(batch, words, -1)

    def forward(self, source: Tensor, source_lens: Tensor, target: Tensor) -> Tensor:
        """Logits for teacher forcing, (batch, target length, target_size)."""
        return self.output(self.features(source, source_lens, target))

    def start(self, source: Tensor, source_lens: Tensor) -> WordsSoFar:
        """The state before the first `step`, with the source (batch, tokens) encoded."""
        return WordsSoFar(self.encode(source), source[:, :0])

    def step(self, tokens: Tensor, state: WordsSoFar) -> Tensor:
        """Logits (batch, target_size) of the token after `tokens` (batch,); at the last place only `<eos>`."""
        state.words = torch.cat([state.words, tokens[:, None]], dim=1)
        count = state.words.shape[1]
        if count >= self.length:
            ended = torch.full((len(tokens), self.output.out_features), -1e9, device=tokens.device)
            ended[:, EOS] = 0.0
            return ended
        known = torch.full_like(tokens, count)
        return self.output(self.decode(state.words, state.memory, known))


# Both orders of norm on real sentences ------------------------------------------------------------

MAX_TOKENS = 8
"""Tokens of either side, punctuation included."""
TRAIN = 20_000
"""Pairs for training."""
HELD_OUT = 500
"""Source sentences for validation, and as many for the test."""
SHAPE = {"embed_dim": 256, "num_heads": 4, "ffn_dim": 512, "num_layers": 4, "dropout": 0.1}
EPOCHS, BATCH, RATE, WARMUP = 6, 128, 1e-3, 200


@stored(
    cases=[{"norm_first": norm_first, "seed": 0} for norm_first in (False, True)],
    times=("cpu_seconds",),
)
def real_spanish(*, norm_first: bool, seed: int, checkpoint: Path | None = None) -> dict:
    """English to Spanish: losses and BLEU by epoch, and scores of the last epoch.

    Nothing is chosen by a score; the rate falls to 0 at the end, and the last weights are kept.
    """
    pairs = load_tatoeba("es", max_tokens=MAX_TOKENS)  # no sentence stands in two parts
    train, validation, test = split_by_source(pairs, (HELD_OUT, HELD_OUT))
    train = train[:TRAIN]
    vocabularies = vocabularies_of(train, min_freq=MIN_FREQ)
    seed_everything(seed)
    model = Transformer(*map(len, vocabularies), norm_first=norm_first, **SHAPE)
    since = cpu_meter()

    def bleu_of(pairs: list[Pair]) -> float:
        known = readable_pairs(pairs, vocabularies)
        return bleu_by_source(model, known, vocabularies, max_len=2 * MAX_TOKENS)

    rows = train_translator(
        model,
        train,
        validation,
        vocabularies,
        batch=BATCH,
        epochs=EPOCHS,
        lr=RATE,
        schedule=lambda steps: warmup_decay(WARMUP, EPOCHS * steps),
        measure=lambda _: {"bleu": bleu_of(validation), "cpu": since()},
        seed=seed,
        checkpoint=checkpoint,
        quiet=True,
    )
    last = rows[-1]
    result = {
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
        "steps": last["step"],
        "train_loss": last["train_loss"],
        "val_loss": last["val_loss"],
        "val_bleu": last["bleu"],
        "seen_bleu": bleu_of(train[:HELD_OUT]),
        "test_bleu": bleu_of(test),
        "cpu_seconds": sum(row["cpu"] for row in rows),
    }
    return {
        "result": result,
        "curves": curves_of(rows, "train_loss", "val_loss", "bleu"),
    }


def real_run(*, norm_first: bool) -> StoredRun:
    """The stored run of one of the two orders."""
    return stored_run("training_transformers", "real_spanish", norm_first=norm_first)
